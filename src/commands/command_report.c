/* tessera report DIR: collects the inputs of the report, writes the methods
 * paragraph from the configuration, and refuses to replace pages that are not
 * from tessera. */
#include "answer/verdict.h"
#include "commands/command.h"
#include "commands/map_job.h"
#include "commands/solve.h"
#include "likelihood/term_saxs.h"
#include "maps/map_source.h"
#include "session/past_run.h"
#include "session/run_directory.h"

#include "core/text.h"
#include "files/file.h"
#include "molecule/structure.h"
#include "report/figure.h"
#include "report/report.h"
#include "scattering/atom_model.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    char *output, *prior;
    int force;
    long threads;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(
        STRING, "output", options, output, .letter = 'o', .argument = "DIR",
        .doc = "output folder of report.html; default: the folder of the run"),
    TSR_FIELD(STRING, "prior", options, prior, .argument = "DIR",
              .doc =
                  "run made with --prior-only, to be shown with the posterior"),
    TSR_OPTION_FORCE(options),
    TSR_OPTION_THREADS(options),
    {0}};

typedef struct {
    tsr_log *log;
    tsr_past_run run, prior;
    tsr_map_models models;
    tsr_shape *shape;
    tsr_summary *summary;
    tsr_verdict *verdict;
    char *methods, *advice, *solved, *page, *folder;
    char why[TSR_ERR_SIZE], remark[160];
    tsr_pool pool; /* owns the members below */
    tsr_report_data *data;
    tsr_report_map *map;
    tsr_report_prior *density;
    tsr_report_options o;
} work;

/* ---- the methods paragraph ---- */

static void print_flexible(FILE *out, const tsr_structure_config *s)
{
    const tsr_strings *list = s->flexible.n > 0 ? &s->flexible : &s->rigid;
    if (s->frozen) {
        fputs("The structure did not move. ", out);
        return;
    }
    if (list->n == 0 || strcmp(list->item[0], "all") == 0) {
        fputs("All residues were flexible. ", out);
        return;
    }
    fputs(s->flexible.n > 0 ? "Flexible residues were " : "Rigid parts were ",
          out);
    for (int i = 0; i < list->n; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", list->item[i]);
    fputs(s->flexible.n > 0 ? "; the rest moved as rigid parts. " : ". ", out);
}

/* Number of an entry of `data:` among the entries of its kind, as the trace
 * numbers them. */
static int ordinal_of(const tsr_term_options *data, int number)
{
    const tsr_term_type *type = tsr_term_registry[data[number].kind];
    int ordinal = 0;
    for (int i = 0; i < number; i++)
        ordinal +=
            tsr_term_is_same_family(tsr_term_registry[data[i].kind], type);
    return ordinal;
}

/* The points of an entry of `data:` that the run used, which may be fewer than
 * its q_range allows. */
static void print_points(FILE *out, const tsr_past_run *run, int number)
{
    const tsr_term_options *data = run->config.data.item;
    const tsr_term_type *type = tsr_term_registry[data[number].kind];
    int n = 0;
    char name[64];
    double *coord = NULL;
    tsr_term_variable(type, ordinal_of(data, number), type->observable,
                      sizeof name, name);
    if (tsr_trace_coordinates(run->trace, TSR_TRACE_OBSERVED_DATA, name, &n,
                              &coord, NULL) == TSR_OK &&
        coord != NULL && n > 1)
        fprintf(out, "%d points were used, %s from %.4g to %.4g %s. ", n,
                type->axis, coord[0], coord[n - 1], type->axis_unit);
    free(coord);
}

static void print_data(FILE *out, const tsr_past_run *run)
{
    const tsr_config *c = &run->config;
    const tsr_term_options *data = c->data.item;
    for (int i = 0; i < c->data.n; i++) {
        tsr_term_registry[data[i].kind]->print_assumptions(&data[i], out);
        print_points(out, run, i);
    }
    tsr_term_print_setting(out, "The excluded volume c1", c->contrast.c1);
    tsr_term_print_setting(out, ", the hydration c2", c->contrast.c2);
    fputs(". ", out);
}

/* Writes the text for the methods section of a paper, freed by the caller.
 * NULL: settings unknown, or out of memory. */
static char *methods_text(const tsr_past_run *run)
{
    char *text = NULL;
    size_t size;
    const tsr_config *c = &run->config;
    FILE *out = run->has_config ? open_memstream(&text, &size) : NULL;
    if (out == NULL)
        return NULL;
    char *version =
        tsr_trace_attribute_text(run->trace, "inference_library_version");
    const int n_temp = tsr_sampler_n_temp(&c->sampler, run->has_data);
    fprintf(out, "%s was sampled with tessera %s (seed %ld). ",
            run->has_data ? "The posterior of the structure given the data"
                          : "The prior of the structure, without any data,",
            version != NULL ? version : "(version unknown)", c->seed);
    if (c->structure.file != NULL)
        fprintf(out, "The starting structure was %s. ",
                tsr_text_file_name(c->structure.file));
    print_flexible(out, &c->structure);
    if (c->structure.states > 1)
        fprintf(out,
                run->has_data
                    ? "The curve was the weighted mean of %ld states. "
                    : "It has %ld states. ",
                c->structure.states);
    if (run->has_data)
        print_data(out, run);
    fprintf(out, "%d chain%s", run->n_chain, run->n_chain == 1 ? "" : "s");
    if (n_temp > 1)
        fprintf(out,
                ", each with replicas at %d temperatures of the likelihood "
                "(replica exchange),",
                n_temp);
    fprintf(out,
            " ran for %ld warm-up steps and %ld draw%s, with %ld steps from "
            "one draw to the next. Convergence was judged by rank-normalised "
            "split R-hat and effective sample size (Vehtari et al. 2021).",
            c->sampler.warmup, (long)run->n_draw, run->n_draw == 1 ? "" : "s",
            tsr_sampler_thin(&c->sampler));
    free(version);
    return fclose(out) == 0 ? text : NULL;
}

/* ---- density maps ---- */

/* Width of the blur: the mean of the draws, or the fixed value. */
static double sigma_of_draws(const tsr_past_run *run, const tsr_report_map *m,
                             const tsr_map_options *o)
{
    char name[64];
    int n_chain = 0, n_draw = 0;
    double *value = NULL, sum = 0.0;
    tsr_term_variable(m->type, m->ordinal, "sigma_over_r", sizeof name, name);
    if (o->sigma_over_r.word < 0 ||
        tsr_summary_draws(run->trace, name, &n_chain, &n_draw, &value, NULL) !=
            TSR_OK ||
        value == NULL)
        return o->sigma_over_r.number;
    const int n = n_chain * n_draw;
    for (int i = 0; i < n; i++)
        sum += value[i] / n;
    free(value);
    return sum;
}

/* Compares each map with the draws, for the figures. If that fails, the log
 * gets the reason, and the page lacks the map. */
static void compare_maps(work *w)
{
    enum { MOST = 40 };
    const tsr_past_run *run = &w->run;
    const tsr_term_options *data = run->config.data.item;
    tsr_err err = {.status = TSR_OK};
    tsr_status status = TSR_OK;
    for (int i = 0; i < run->config.data.n; i++) {
        const tsr_term_type *type = tsr_term_registry[data[i].kind];
        tsr_report_map *m = &w->map[w->o.n_map];
        if (!type->is_map)
            continue;
        if (w->models.atoms == NULL) {
            status = tsr_map_models_open(run->directory, NULL, MOST, NULL,
                                         &w->models, &err);
            TSR_THEN(status, tsr_map_models_load(&w->models, &err));
        }
        *m = (tsr_report_map){.type = type,
                              .ordinal = ordinal_of(data, i),
                              .atoms = w->models.atoms};
        TSR_THEN(status, tsr_map_view_make(
                             &data[i], &w->models,
                             sigma_of_draws(run, m, (const void *)&data[i]),
                             &m->view, &err));
        if (status != TSR_OK) {
            tsr_warn(w->log, "the map itself is not shown: %s", err.message);
            return;
        }
        w->o.n_map++;
    }
}

/* ---- priors of parameters ---- */

/* Adds a prior; a parameter without a value in the run is left out. */
static void add_density(work *w, const tsr_parameter *p, int n_share,
                        const char *suffix)
{
    tsr_report_prior *item = &w->density[w->o.n_density];
    snprintf(item->name, sizeof item->name, "%.40s%s", p->name, suffix);
    w->o.n_density +=
        tsr_parameter_density(p, n_share, TSR_REPORT_DENSITY, item->x, item->y);
}

/* The priors of contrast, noise and weights are known. The prior of the
 * structure has to be sampled. */
static tsr_status find_densities(work *w, tsr_err *err)
{
    tsr_parameter p[TSR_NOISE_PARAMETERS + TSR_N_CONTRAST];
    const tsr_config *c = &w->run.config;
    const tsr_term_options *data = c->data.item;
    char suffix[16] = "";
    int ordinal = 0, is_shared = c->structure.weights == 0;
    const int n_state = (int)c->structure.states;
    tsr_pool_array(&w->pool, w->density,
                   TSR_N_CONTRAST + c->data.n * TSR_NOISE_PARAMETERS + n_state);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    if (tsr_contrast_priors(&c->contrast, p, NULL) == TSR_OK)
        for (int i = 0; i < TSR_N_CONTRAST; i++)
            add_density(w, &p[i], 0, "");
    for (int i = 0; i < c->data.n; i++) {
        if (!tsr_term_registry[data[i].kind]->is_curve)
            continue;
        const tsr_noise_options *noise =
            &((const tsr_saxs_options *)&data[i])->set.noise;
        is_shared &= !tsr_saxs_has_own_weights(&data[i]);
        const tsr_noise_type *type = tsr_noise_registry[noise->model];
        if (ordinal++ > 0)
            snprintf(suffix, sizeof suffix, "_%d", ordinal);
        if (type->n_parameter > 0)
            type->parameters(noise, p);
        for (int k = 0; k < type->n_parameter; k++)
            add_density(w, &p[k], 0, suffix);
    }
    for (int k = 1; k <= n_state && n_state > 1 && is_shared; k++) {
        const tsr_parameter weight = {
            .name = "weight", .infer = 1, .shape = TSR_PRIOR_SIMPLEX};
        snprintf(suffix, sizeof suffix, "_%d", k);
        add_density(w, &weight, n_state, suffix);
    }
    return TSR_OK;
}

/* ---- the output files ---- */

static tsr_status make_folder(const char *path, tsr_err *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0 ||
        (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return TSR_OK;
    return tsr_fail(err, TSR_E_IO,
                    "cannot make the folder '%s': %s; choose another folder "
                    "with --output DIR",
                    path, strerror(errno));
}

/* Endings of the files that a report's folder may contain. */
static const struct {
    const char *ending, *begins, *holds;
} kinds[] = {{".svg", "<svg", TSR_SVG_MARK},
             {".csv", "panel,series,mark,x,y,y2", ""},
             {"conformations.csv", "chain,draw,state", ""},
             {".cif", "data_", "\n# tessera: "}};

/* A new report replaces the previous one. A figure, table or model in its
 * folder that is not from tessera could have the name of a file still to be
 * written, so any such file is an error. */
static tsr_status check_file(const char *folder, const char *name,
                             const tsr_file_target *target, tsr_err *err)
{
    const size_t n = strlen(name);
    int kind = -1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const size_t m = strlen(kinds[k].ending);
        if (n >= m && strcmp(name + n - m, kinds[k].ending) == 0)
            kind = (int)k;
    }
    if (kind < 0)
        return TSR_OK;
    return tsr_file_check_target(target, tsr_path_in(folder, name).text,
                                 kinds[kind].begins, kinds[kind].holds, err);
}

static tsr_status check_targets(const char *page, const char *folder,
                                int is_forced, tsr_err *err)
{
    const tsr_file_target target = {.maker = "report", .is_forced = is_forced};
    TSR_TRY(tsr_file_check_target(&target, page, "<!doctype html>",
                                  "\"tessera report\"", err));
    tsr_status status = TSR_OK;
    DIR *list = opendir(folder);
    if (list == NULL)
        return TSR_OK; /* no folder yet */
    for (const struct dirent *item;
         status == TSR_OK && (item = readdir(list)) != NULL;)
        status = check_file(folder, item->d_name, &target, err);
    closedir(list);
    return status;
}

/* Errors: TSR_E_IO; TSR_E_USAGE (the file exists, and is not a report of
 * tessera). */
static tsr_status prepare_folder(work *w, const char *base, int is_forced,
                                 tsr_err *err)
{
    TSR_TRY(make_folder(base, err));
    w->page = tsr_text_format("%s/report.html", base);
    w->folder = tsr_text_format("%s/report", base);
    if (w->page == NULL || w->folder == NULL)
        return tsr_no_memory(err);
    TSR_TRY(check_targets(w->page, w->folder, is_forced, err));
    return make_folder(w->folder, err);
}

/* Mass of the structure file with hydrogens, Da; NaN: the run has no structure
 * file. */
static double compute_mass(const tsr_past_run *run)
{
    const char *file = run->has_config ? run->config.structure.file : NULL;
    const double water = 0.334; /* e/A^3: does not affect the mass */
    tsr_atoms *atoms = NULL;
    tsr_atom_model *model = NULL;
    double mass = (double)NAN;
    if (file != NULL &&
        tsr_atoms_read_symmetric(file, run->config.structure.symmetry, &atoms,
                                 NULL) == TSR_OK &&
        tsr_atom_model_new(atoms, TSR_SOLVENT_ATOMS, water, &model, NULL) ==
            TSR_OK)
        mass = model->mass;
    tsr_atom_model_free(model);
    tsr_atoms_free(atoms);
    return mass;
}

/* remark out: a sentence if the run has fewer draws than requested, except
 * where it ended by sampler.until; else "". */
static void describe_draws(const tsr_past_run *run, char remark[160])
{
    char draws[80];
    remark[0] = '\0';
    if (run->draws_requested <= run->n_draw ||
        (run->is_finished && run->config.sampler.until != NULL))
        return;
    tsr_sampler_draws_text(&run->config.sampler, run->n_draw, draws);
    snprintf(remark, 160,
             run->is_finished
                 ? "The time limit of the run was reached after %s."
                 : "The run is not finished: it has %s.",
             draws);
}

/* Fills the members that depend on the configuration of the run. */
static tsr_status read_config(work *w, tsr_err *err)
{
    const tsr_config *c = &w->run.config;
    const tsr_term_options *data = c->data.item;
    w->o.name = c->name;
    w->o.diagnose.n_temp = tsr_sampler_n_temp(&c->sampler, w->run.has_data);
    w->o.diagnose.warmup = c->sampler.warmup;
    w->o.diagnose.draws = tsr_sampler_draws(&c->sampler);
    w->o.diagnose.is_frozen = c->structure.frozen;
    tsr_pool_array(&w->pool, w->data, c->data.n);
    tsr_pool_array(&w->pool, w->map, c->data.n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    w->o.data = w->data;
    w->o.n_data = c->data.n;
    for (int i = 0; i < c->data.n; i++) {
        w->data[i].kind = data[i].kind;
        tsr_config_data_name(c, i, sizeof w->data[i].name, w->data[i].name);
    }
    if (!w->run.has_data)
        return TSR_OK;
    if (w->run.directory != NULL)
        compare_maps(w);
    w->o.map = w->map;
    TSR_TRY(find_densities(w, err));
    w->o.density = w->density;
    return TSR_OK;
}

static tsr_status make_report(work *w, const char *directory,
                              const char *output, const char *prior, int force,
                              tsr_err *err)
{
    tsr_report_options *o = &w->o;
    TSR_TRY(tsr_past_run_open(directory, &w->run, w->log, err));
    if (prior != NULL)
        TSR_TRY(tsr_past_run_open_prior(prior, &w->prior, w->log, err));
    const int is_beside = output == NULL && w->run.directory != NULL;
    TSR_TRY(prepare_folder(w,
                           output != NULL ? output
                           : is_beside    ? w->run.directory
                                          : ".",
                           force, err));
    tsr_log_progress(w->log, "report: conformations");
    TSR_TRY(tsr_past_run_shape(&w->run, w->log, &w->shape, w->why, err));
    TSR_TRY(tsr_verdict_of_run(&w->run, &w->summary, &w->verdict, err));
    w->methods = methods_text(&w->run);
    w->advice = tsr_advice_text(&w->verdict->advice);
    w->solved = tsr_report_solve_verdict(w->run.directory);
    describe_draws(&w->run, w->remark);
    *o = (tsr_report_options){
        .name = "tessera report",
        .verdict = w->verdict,
        .solved = w->solved,
        .mass = compute_mass(&w->run),
        .file = is_beside ? "model.pdb" : NULL,
        .atoms = w->shape != NULL ? tsr_frames_atoms(w->run.frames) : NULL,
        .frames = w->run.frames,
        .shape = w->shape,
        .no_frames = w->why[0] != '\0' ? w->why : NULL,
        .methods = w->methods,
        .prior = w->prior.trace,
        .is_prior = !w->run.has_data,
        .remark = w->remark[0] != '\0' ? w->remark : NULL,
        .diagnose = {.rhat = 1.01,
                     .ess = 400.0,
                     .summary = w->summary,
                     .advice = w->advice,
                     .arrangements = w->verdict->arrangements}};
    if (w->run.has_config)
        TSR_TRY(read_config(w, err));
    return tsr_report_write(w->run.trace, o, w->page, w->folder, w->log, err);
}

static void work_clear(work *w)
{
    tsr_verdict_free(w->verdict);
    tsr_shape_free(w->shape);
    tsr_summary_free(w->summary);
    for (int i = 0; i < w->o.n_map; i++)
        tsr_map_view_clear(&w->map[i].view);
    tsr_map_models_clear(&w->models);
    tsr_past_run_clear(&w->prior);
    tsr_past_run_clear(&w->run);
    free(w->solved);
    free(w->advice);
    free(w->methods);
    free(w->page);
    free(w->folder);
    tsr_pool_clear(&w->pool);
}

tsr_status tsr_report_run(const char *directory, const char *output,
                          const char *prior, int force, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    work w = {.log = log};
    tsr_status status = make_report(&w, directory, output, prior, force, err);
    if (status == TSR_OK)
        fprintf(out, "%s\n", w.page);
    work_clear(&w);
    return status;
}

static tsr_status report(const tsr_args *args, FILE *out, tsr_log *log,
                         tsr_err *err)
{
    const options *o = args->options;
    tsr_parallel_limit(tsr_threads(o->threads));
    return tsr_report_run(args->argument[0], o->output, o->prior, o->force, out,
                          log, err);
}

/* ---- without a run ---- */

tsr_status tsr_report_rigid(const tsr_solve *solve, tsr_log *log, tsr_err *err)
{
    work w = {.log = log};
    char *path = tsr_text_format("%s/verdict.json", solve->directory);
    size_t size;
    tsr_report_rigid_fit *fit;
    tsr_pool_array(&w.pool, fit, solve->n_curve);
    w.o = (tsr_report_options){.name = tsr_text_file_name(solve->model),
                               .n_rigid = solve->n_curve,
                               .rigid = fit,
                               .mass = (double)NAN,
                               .atoms = solve->atoms};
    tsr_status status =
        path == NULL || fit == NULL ? tsr_no_memory(err) : TSR_OK;
    for (int k = 0; status == TSR_OK && k < solve->n_curve; k++) {
        const tsr_profile_result *r = &solve->rigid[k];
        fit[k] = (tsr_report_rigid_fit){solve->saxs[k],
                                        r->curve,
                                        &r->fit,
                                        r->rg_guinier,
                                        r->structure.rg_ang,
                                        r->structure.d_max_ang};
        w.o.mass = r->structure.mass;
        w.o.file = "rigid.fit";
    }
    TSR_THEN(status, tsr_file_read(path, &w.solved, &size, err));
    TSR_THEN(status, prepare_folder(&w, solve->directory, 0, err));
    w.o.solved = w.solved;
    TSR_THEN(status, tsr_report_write(NULL, &w.o, w.page, w.folder, log, err));
    free(path);
    work_clear(&w);
    return status;
}

const tsr_command tsr_command_report = {
    .name = "report",
    .doc = "write figures and numbers of a run as one page that works offline",
    .arguments = "DIR",
    .options = fields,
    .size = sizeof(options),
    .about =
        "Writes report.html to the folder of the run, and next to it the "
        "folder report/ with every figure as SVG and its numbers as CSV. A new "
        "report replaces the previous one; files in report/ that are not from "
        "tessera are only replaced with --force. The page is self-contained.",
    .run = report};

/* tessera report DIR: finds what the report is made from, writes the methods
 * paragraph from the configuration, and refuses to replace a page of somebody
 * else. */
#include "answer/verdict.h"
#include "commands/command.h"
#include "commands/map_models.h"
#include "commands/solve_report.h"
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

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .doc = "where report.html goes; without it, into the run's folder"},
    {.name = "prior",
     .argument = "DIR",
     .doc = "a run made with --prior-only, shown beside the posterior"},
    TSR_OPTION_FORCE,
    {0}};

/* ---- the methods paragraph ---- */

static void print_flexible(FILE *out, const tsr_structure_config *s)
{
    const tsr_strings *list = s->flexible.n > 0 ? &s->flexible : &s->rigid;
    if (s->still) {
        fputs("Nothing of the structure moved. ", out);
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

/* Of an entry of `data:`, as the trace numbers it: among those alike. */
static int ordinal_of(const tsr_term_options *data, int number)
{
    const tsr_term_type *type = tsr_term_registry[data[number].kind];
    int ordinal = 0;
    for (int i = 0; i < number; i++)
        ordinal += tsr_term_is_alike(tsr_term_registry[data[i].kind], type);
    return ordinal;
}

/* The points of an entry of `data:` that the run used, not those it was allowed
 * to. */
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
        tsr_term_registry[data[i].kind]->tell(&data[i], out);
        print_points(out, run, i);
    }
    tsr_term_tell_free(out, "The excluded volume c1", c->contrast.c1);
    tsr_term_tell_free(out, ", the hydration c2", c->contrast.c2);
    fputs(". ", out);
}

/* What a paper's methods section needs; caller frees, NULL: no settings, or out
 * of memory. */
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

/* [data.n] of the config, caller frees. NULL: none, or out of memory. */
static tsr_report_data *data_entries(const tsr_past_run *run)
{
    const int n = run->has_config ? run->config.data.n : 0;
    const tsr_term_options *option = run->config.data.item;
    tsr_report_data *data = n > 0 ? calloc((size_t)n, sizeof *data) : NULL;
    for (int i = 0; data != NULL && i < n; i++) {
        data[i].kind = option[i].kind;
        tsr_config_data_name(&run->config, i, sizeof data[i].name,
                             data[i].name);
    }
    return data;
}

/* ---- density maps ---- */

/* The width of the blur that the draws have: their mean, or as it was fixed. */
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

/* How each map looks beside the draws; where that cannot be had the log says
 * why, and the page goes without. map [data.n] out, *n of them. */
static void look_at_maps(const tsr_past_run *run, tsr_log *log,
                         tsr_map_models *models, int *n, tsr_report_map *map)
{
    enum { MOST = 40 };
    const tsr_term_options *data = run->config.data.item;
    tsr_err err = {.status = TSR_OK};
    tsr_status status = TSR_OK;
    for (int i = 0; i < run->config.data.n; i++) {
        const tsr_term_type *type = tsr_term_registry[data[i].kind];
        if (!type->is_map)
            continue;
        if (models->atoms == NULL)
            status = tsr_map_models_read(run->directory, NULL, MOST, NULL,
                                         models, &err);
        map[*n] = (tsr_report_map){.type = type,
                                   .ordinal = ordinal_of(data, i),
                                   .atoms = models->atoms};
        TSR_THEN(status,
                 tsr_map_view_make(
                     &data[i], models,
                     sigma_of_draws(run, &map[*n], (const void *)&data[i]),
                     &map[*n].view, &err));
        if (status != TSR_OK) {
            tsr_warn(log, "the map itself is not shown: %s", err.message);
            return;
        }
        ++*n;
    }
}

/* ---- priors of parameters ---- */

typedef struct {
    int n;
    tsr_report_prior *item; /* [n] */
} densities;

/* Left out where it has none, or where memory is out. */
static void add_density(densities *d, const tsr_parameter *p, int n_share,
                        const char *suffix)
{
    tsr_report_prior *item =
        realloc(d->item, ((size_t)d->n + 1) * sizeof *item);
    if (item == NULL)
        return;
    d->item = item;
    item += d->n;
    snprintf(item->name, sizeof item->name, "%.40s%s", p->name, suffix);
    d->n +=
        tsr_parameter_density(p, n_share, TSR_REPORT_DENSITY, item->x, item->y);
}

/* Those of contrast, noise and weights; the prior of the structure has to be
 * sampled. */
static densities find_densities(const tsr_past_run *run)
{
    densities d = {0};
    tsr_parameter p[TSR_NOISE_PARAMETERS + TSR_N_CONTRAST];
    const tsr_config *c = &run->config;
    const tsr_term_options *data = c->data.item;
    char suffix[16] = "";
    int ordinal = 0;
    if (!run->has_config || !run->has_data)
        return d;
    if (tsr_contrast_priors(&c->contrast, p, NULL) == TSR_OK)
        for (int i = 0; i < TSR_N_CONTRAST; i++)
            add_density(&d, &p[i], 0, "");
    for (int i = 0; i < c->data.n; i++) {
        if (!tsr_term_registry[data[i].kind]->is_curve)
            continue;
        const tsr_noise_options *noise =
            &((const tsr_saxs_options *)&data[i])->noise;
        const tsr_noise_type *type = tsr_noise_registry[noise->model];
        if (ordinal++ > 0)
            snprintf(suffix, sizeof suffix, "_%d", ordinal);
        if (type->n_parameter > 0)
            type->parameters(noise, p);
        for (int k = 0; k < type->n_parameter; k++)
            add_density(&d, &p[k], 0, suffix);
    }
    const int n_state = (int)c->structure.states;
    for (int k = 1; k <= n_state && n_state > 1 && c->structure.weights == 0;
         k++) {
        const tsr_parameter weight = {
            .name = "weight", .infer = 1, .shape = TSR_PRIOR_SIMPLEX};
        snprintf(suffix, sizeof suffix, "_%d", k);
        add_density(&d, &weight, n_state, suffix);
    }
    return d;
}

/* ---- where it goes ---- */

static tsr_status make_folder(const char *path, tsr_err *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0 ||
        (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return TSR_OK;
    return tsr_fail(err, TSR_E_IO,
                    "cannot make the folder '%s': %s; choose another place "
                    "with --output DIR",
                    path, strerror(errno));
}

/* What a report's folder may hold already, by the ending of the names. */
static const struct {
    const char *ending, *begins, *holds;
} kinds[] = {{".svg", "<svg", TSR_SVG_MARK},
             {".csv", "panel,series,mark,x,y,y2", ""},
             {"conformations.csv", "chain,draw,state", ""},
             {".cif", "data_", "\n# tessera: "}};

/* A report is made again in the place of the one before. A figure, table or
 * model in its folder that is not from there may have the name of one that
 * comes, which only the numbers will tell: it is in the way. */
static tsr_status check_file(const char *folder, const char *name,
                             tsr_file_target target, tsr_err *err)
{
    const size_t n = strlen(name);
    tsr_status status = TSR_OK;
    target.begins = NULL;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const size_t m = strlen(kinds[k].ending);
        if (n < m || strcmp(name + n - m, kinds[k].ending) != 0)
            continue;
        target.begins = kinds[k].begins;
        target.holds = kinds[k].holds;
    }
    if (target.begins == NULL)
        return TSR_OK;
    char *path = tsr_run_directory_file(folder, name);
    status = tsr_allocated(path, err);
    TSR_THEN(status, tsr_file_check_target(&target, path, err));
    free(path);
    return status;
}

static tsr_status check_targets(const char *page, const char *folder,
                                int is_forced, tsr_err *err)
{
    const tsr_file_target target = {.maker = "report",
                                    .begins = "<!doctype html>",
                                    .holds = "\"tessera report\"",
                                    .is_forced = is_forced};
    tsr_status status = tsr_file_check_target(&target, page, err);
    DIR *list = status == TSR_OK ? opendir(folder) : NULL;
    if (list == NULL)
        return status; /* there is none yet */
    for (const struct dirent *item;
         status == TSR_OK && (item = readdir(list)) != NULL;)
        status = check_file(folder, item->d_name, target, err);
    closedir(list);
    return status;
}

/* *page and *folder, caller frees both. Errors: TSR_E_IO; TSR_E_USAGE (there
 * is a report of somebody else's). */
static tsr_status places(const char *base, int is_forced, char **page,
                         char **folder, tsr_err *err)
{
    tsr_status status = make_folder(base, err);
    *page = tsr_run_directory_file(base, "report.html");
    *folder = tsr_run_directory_file(base, "report");
    if (*page == NULL || *folder == NULL)
        return tsr_no_memory(err);
    TSR_THEN(status, check_targets(*page, *folder, is_forced, err));
    return status == TSR_OK ? make_folder(*folder, err) : status;
}

/* Of the structure file with its hydrogens, Da; NaN: there is none. */
static double mass_of(const tsr_past_run *run)
{
    const char *file = run->has_config ? run->config.structure.file : NULL;
    const double water = 0.334; /* e/A^3: without an effect on the mass */
    tsr_atoms *atoms = NULL;
    tsr_atom_model *model = NULL;
    double mass = (double)NAN;
    if (file != NULL && tsr_atoms_read(file, &atoms, NULL) == TSR_OK &&
        tsr_atom_model_new(atoms, TSR_SOLVENT_ATOMS, water, &model, NULL) ==
            TSR_OK)
        mass = model->mass;
    tsr_atom_model_free(model);
    tsr_atoms_free(atoms);
    return mass;
}

/* Empty where the run has all it was asked for: to end when converged, too. */
static void tell_draws(const tsr_past_run *run, char remark[160])
{
    char draws[80];
    remark[0] = '\0';
    if (run->asked <= run->n_draw ||
        (run->is_finished && run->config.sampler.until != NULL))
        return;
    tsr_sampler_draws_text(&run->config.sampler, run->n_draw, draws);
    snprintf(remark, 160,
             run->is_finished ? "The run's time was over after %s."
                              : "The run is not finished: it has %s.",
             draws);
}

static tsr_status report(const tsr_args *args, FILE *out, tsr_log *log,
                         tsr_err *err)
{
    const char *prior_path = tsr_args_value(args, "prior");
    const char *output = tsr_args_value(args, "output");
    tsr_past_run run = {.trace = NULL}, prior = {.trace = NULL};
    tsr_frames *frames = NULL;
    tsr_shape *shape = NULL;
    tsr_verdict *verdict = NULL;
    tsr_summary *summary = NULL;
    tsr_report_data *data = NULL;
    tsr_report_map *map = NULL;
    tsr_map_models models = {.path = NULL};
    densities density = {0};
    char *page = NULL, *folder = NULL, *methods = NULL, remark[160] = "";
    char why[TSR_ERR_SIZE] = "", *advice = NULL, *solved = NULL;
    tsr_report_options o = {.name = "tessera report",
                            .diagnose = {.rhat = 1.01, .ess = 400.0}};
    tsr_status status =
        tsr_past_run_open(tsr_args_argument(args), &run, log, err);
    if (status == TSR_OK && prior_path != NULL)
        status = tsr_past_run_open_prior(prior_path, &prior, log, err);
    const int is_beside = output == NULL && run.directory != NULL;
    TSR_THEN(status,
             places(output != NULL ? output
                    : is_beside    ? run.directory
                                   : ".",
                    tsr_args_count(args, "force") > 0, &page, &folder, err));
    if (status == TSR_OK) {
        tsr_log_progress(log, "report: conformations");
        status = tsr_past_run_shape(&run, log, &frames, &shape, why, err);
    }
    TSR_THEN(status, tsr_verdict_of_run(&run, &summary, &verdict, err));
    if (status == TSR_OK) {
        methods = methods_text(&run);
        advice = tsr_advice_text(&verdict->advice);
        solved = tsr_report_solved(run.directory);
        o.verdict = verdict;
        o.solved = solved;
        o.diagnose.advice = advice;
        o.mass = mass_of(&run);
        o.file = is_beside ? "model.pdb" : NULL;
        o.atoms = shape != NULL ? tsr_frames_atoms(frames) : NULL;
        o.frames = frames;
        o.shape = shape;
        o.diagnose.arrangements = verdict->arrangements;
        o.no_frames = why[0] != '\0' ? why : NULL;
        o.methods = methods;
        o.prior = prior.trace;
        o.is_prior = !run.has_data;
        data = data_entries(&run);
        o.data = data;
        o.n_data = data != NULL ? run.config.data.n : 0;
        density = find_densities(&run);
        o.density = density.item;
        o.n_density = density.n;
        map = run.has_config && run.directory != NULL && run.has_data
                  ? calloc((size_t)run.config.data.n + 1, sizeof *map)
                  : NULL;
        if (map != NULL)
            look_at_maps(&run, log, &models, &o.n_map, map);
        o.map = map;
        if (run.has_config) {
            o.name = run.config.name;
            o.diagnose.n_temp =
                tsr_sampler_n_temp(&run.config.sampler, run.has_data);
            o.diagnose.warmup = run.config.sampler.warmup;
            o.diagnose.draws = tsr_sampler_draws(&run.config.sampler);
            o.diagnose.is_still = run.config.structure.still;
        }
        tell_draws(&run, remark);
        o.remark = remark[0] != '\0' ? remark : NULL;
        status = tsr_report_write(run.trace, &o, page, folder, log, err);
    }
    if (status == TSR_OK)
        fprintf(out, "%s\n", page);
    tsr_verdict_free(verdict);
    tsr_shape_free(shape);
    tsr_frames_free(frames);
    tsr_summary_free(summary);
    free(solved);
    for (int i = 0; i < o.n_map; i++)
        tsr_map_view_clear(&map[i].view);
    free(map);
    tsr_map_models_clear(&models);
    free(density.item);
    free(advice);
    free(methods);
    free(data);
    free(page);
    free(folder);
    tsr_past_run_clear(&prior);
    tsr_past_run_clear(&run);
    return status;
}

/* ---- without a run ---- */

tsr_status tsr_report_rigid(const tsr_solve *solve, tsr_log *log, tsr_err *err)
{
    char *page = NULL, *folder = NULL, *solved = NULL;
    char *path = tsr_run_directory_file(solve->directory, "verdict.json");
    size_t size;
    tsr_report_rigid_fit *fit = calloc((size_t)solve->n_curve + 1, sizeof *fit);
    tsr_report_options o = {.name = tsr_text_file_name(solve->model),
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
        o.mass = r->structure.mass;
        o.file = "rigid.fit";
    }
    TSR_THEN(status, tsr_file_read(path, &solved, &size, err));
    TSR_THEN(status, places(solve->directory, 0, &page, &folder, err));
    o.solved = solved;
    TSR_THEN(status, tsr_report_write(NULL, &o, page, folder, log, err));
    free(fit);
    free(solved);
    free(path);
    free(page);
    free(folder);
    return status;
}

const tsr_command tsr_command_report = {
    .name = "report",
    .doc = "figures and numbers of a run, as one page that works offline",
    .usage = {.arguments = "DIR",
              .min_arguments = 1,
              .max_arguments = 1,
              .options = options,
              .about =
                  "Writes report.html into the run's folder, and beside "
                  "it report/ with every figure as SVG and, in "
                  "numbers, CSV. Made again, it takes the place of the "
                  "one before; figures, tables and models there that are "
                  "somebody else's are in the way, unless with --force. The "
                  "page holds all it needs."},
    .run = report};

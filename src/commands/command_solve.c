/* tessera solve: from a model and curves to an answer, by the other commands:
 * init, the fit of profile, run or resume for 1, 2, ... states, report. What
 * each of them leaves in its folder is all that is remembered, so that the same
 * command goes on where it was stopped. The verdict so far is kept there, too:
 * verdict.json and verdict.txt are written anew whenever a part of it is known.
 */
#include "commands/command.h"
#include "commands/solve_report.h"

#include "core/text.h"
#include "files/file.h"
#include "files/lock.h"
#include "likelihood/term_saxs.h"
#include "molecule/rigid_pose.h"
#include "posterior/setup.h"
#include "session/run_directory.h"
#include "session/run_place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .doc = "where everything goes, instead of runs/MODEL"},
    {.name = "states",
     .argument = "N",
     .initial = "3",
     .doc = "the most states that are tried"},
    {.name = "time-limit",
     .argument = "S",
     .initial = "3600",
     .unit = "s",
     .doc = "for each run; warm-up counts, but is never cut short; 0: none"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .repeats = 1,
     .doc = "override a key of the configuration in runs that begin"},
    {.name = "device",
     .argument = "DEVICE",
     .doc = "instead of device.use, as of run"},
    {.name = "threads", .argument = "N", .doc = "instead of device.threads"},
    TSR_INIT_DATA_OPTIONS,
    {.name = "sample",
     .doc = "also where the model fits as it is and tails alone are flexible"},
    {.name = "json", .doc = "the verdict as one JSON object"},
    {0}};

enum { MOST_STATES = 16 };

typedef struct {
    const tsr_args *args;
    FILE *out, *none; /* none: for what commands print that is told here */
    tsr_log *log;
    tsr_init_curves curves;
    int n_input;
    const char **input;     /* [n_input] model, curves; map, NULL */
    char *directory, *file; /* file: the configuration */
    char *page, *again;
    tsr_lock *lock;
    tsr_config config;
    tsr_profile_result *rigid;
    tsr_saxs **saxs;
    tsr_model_atoms *atoms;
    char *run[MOST_STATES]; /* folders */
    tsr_comparison runs;
    tsr_solve solve;
} work;

static void clear(work *w)
{
    for (int k = 0; k + 1 < w->n_input; k++) {
        if (w->rigid != NULL)
            tsr_profile_result_clear(&w->rigid[k]);
        if (w->saxs != NULL)
            tsr_saxs_free(w->saxs[k]);
    }
    tsr_comparison_clear(&w->runs);
    for (int k = 0; k < MOST_STATES; k++)
        free(w->run[k]);
    free(w->rigid);
    free(w->saxs);
    free(w->page);
    free(w->again);
    tsr_model_atoms_free(w->atoms);
    free(w->file);
    free(w->directory);
    tsr_config_clear(&w->config);
    tsr_init_curves_clear(&w->curves);
    free(w->input);
    tsr_lock_free(w->lock);
    if (w->none != NULL)
        fclose(w->none);
}

static int exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* A command with words of its own, as if it had been typed. */
static tsr_status call(work *w, const tsr_command *command, int n,
                       const char *const *word, FILE *out, tsr_err *err)
{
    tsr_args *args = NULL;
    TSR_TRY(tsr_args_parse(&command->usage, n, word, &args, err));
    tsr_log_set_brief(w->log, command != &tsr_command_init);
    tsr_status status = command->run(args, out, w->log, err);
    tsr_log_set_brief(w->log, 0);
    tsr_args_free(args);
    tsr_log_close(w->log); /* what follows is of another run */
    return status == TSR_E_NO ? TSR_OK : status; /* not converged: told below */
}

/* ---- the configuration ---- */

/* runs/MODEL, without the endings of the model's name. */
static char *default_directory(const char *model)
{
    const char *name = tsr_text_file_name(model);
    const size_t length = strcspn(name, ".");
    return tsr_words_of("runs/%.*s", (int)length, name);
}

/* The words of init. */
static int init_words(const work *w, const char **word)
{
    int n = 2 + tsr_init_data_words(w->args, word + 2);
    word[0] = "--output";
    word[1] = w->file;
    word[n++] = "--";
    for (int k = 0; k <= w->curves.n_xray; k++)
        word[n++] = w->input[k];
    return n;
}

static tsr_status write_config(work *w, tsr_err *err)
{
    int n_folder = 0;
    const size_t most = (size_t)(w->n_input + w->curves.n_deuterated);
    TSR_TRY(tsr_run_directory_make(w->directory, &n_folder, &w->lock, err));
    const char **word = calloc(2 * most + 12, sizeof *word);
    tsr_status status = word == NULL ? tsr_no_memory(err) : TSR_OK;
    if (status == TSR_OK)
        status =
            call(w, &tsr_command_init, init_words(w, word), word,
                 tsr_args_count(w->args, "json") > 0 ? w->none : w->out, err);
    if (status != TSR_OK) {
        tsr_run_directory_undo(w->directory, n_folder);
        tsr_lock_free(w->lock);
        w->lock = NULL;
    }
    free(word);
    return status;
}

/* The entry of `data:` with that file; NULL: there is none. */
static const tsr_term_options *find_data(const tsr_config *config,
                                         const char *path)
{
    const tsr_term_options *data = config->data.item;
    for (int k = 0; k < config->data.n; k++) {
        char **file = tsr_config_data_file(config, k);
        if (file != NULL && tsr_file_is_same(*file, path))
            return &data[k];
    }
    return NULL;
}

/* A folder answers for one model and what was measured of it. */
static tsr_status check_inputs(const work *w, tsr_err *err)
{
    for (int k = 0; w->input[k] != NULL; k++) {
        if (!exists(w->input[k]))
            return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s'",
                            w->input[k]);
        if (k == 0 ? tsr_file_is_same(w->config.structure.file, w->input[0])
                   : find_data(&w->config, w->input[k]) != NULL)
            continue;
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s' is of another %s than '%s'; choose another "
                        "folder with --output DIR",
                        w->file,
                        k == 0           ? "model"
                        : k < w->n_input ? "curve"
                                         : "map",
                        w->input[k]);
    }
    for (int k = 0; k < w->curves.n; k++)
        if (!tsr_init_curves_suit(
                &w->curves, k,
                tsr_saxs_neutron(find_data(&w->config, w->curves.path[k]))))
            return tsr_fail(err, TSR_E_USAGE,
                            "'%s' has '%s' in another solvent, of another kind "
                            "or sample; change it there, or choose another "
                            "folder with --output DIR",
                            w->file, w->curves.path[k]);
    return TSR_OK;
}

static tsr_status make_config(work *w, tsr_err *err)
{
    const char *const *set;
    int n_set = tsr_args_values(w->args, "set", &set);
    const char *output = tsr_args_value(w->args, "output");
    if (output != NULL && *output == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty: name a folder");
    w->directory = output != NULL ? tsr_words_of("%s", output)
                                  : default_directory(w->input[0]);
    w->file = w->directory == NULL
                  ? NULL
                  : tsr_run_directory_file(w->directory, "solve.yaml");
    TSR_TRY(tsr_allocated(w->file, err));
    if (!exists(w->file)) {
        TSR_TRY(write_config(w, err));
    } else {
        TSR_TRY(tsr_lock_take(w->directory, &w->lock, err));
        tsr_info(w->log, "going on with %s", w->file);
    }
    TSR_TRY(tsr_config_read(w->file, n_set, set, &w->config, err));
    return check_inputs(w, err);
}

/* ---- the rigid fit ---- */

/* Several devices are for chains: a fit takes one. */
static const char *one_device(const work *w)
{
    const char *device = tsr_args_value(w->args, "device");
    if (device == NULL)
        device = w->config.device.use;
    return device == NULL || strchr(device, ',') != NULL ||
                   strncmp(device, "all", 3) == 0
               ? "auto"
               : device;
}

/* All atoms, or of a model that lacks some, as a run writes it, bodies; these
 * have no tables for neutrons (NULL: X-rays). */
static tsr_status compute(work *w, const tsr_neutron *neutron, double q_max,
                          tsr_profile_structure *to, tsr_err *err)
{
    static const char *const name[] = {"atoms", "two"};
    tsr_err local = {.status = TSR_OK};
    tsr_status status = TSR_E_DATA;
    for (int two = 0; two < 2 && status == TSR_E_DATA; two++) {
        tsr_profile_maker *maker = NULL;
        const tsr_profile_spec spec = {.bodies = two ? TSR_PROFILE_TWO
                                                     : TSR_PROFILE_ATOMS,
                                       .method = TSR_METHOD_AUTO,
                                       .solvent = TSR_SOLVENT_LAYER,
                                       .density = w->config.solvent.density,
                                       .neutron = neutron,
                                       .device = one_device(w),
                                       .q_max_inv_ang = q_max};
        if (two && neutron != NULL)
            break;
        w->solve.bodies = name[two];
        tsr_profile_structure_clear(to);
        status = tsr_profile_maker_new(&spec, w->log, &maker, &local);
        TSR_THEN(status, tsr_profile_compute(maker, w->input[0], to, &local));
        tsr_profile_maker_free(maker);
        if (status != TSR_OK)
            tsr_debug(w->log, "rigid fit by %s: %s", name[two], local.message);
    }
    return status == TSR_OK ? status
                            : tsr_fail(err, status, "%s", local.message);
}

/* The model against a curve, over the points that the runs see. */
static tsr_status fit_curve(work *w, int k, tsr_err *err)
{
    const tsr_term_options *entry = find_data(&w->config, w->input[k + 1]);
    const tsr_saxs_options *o = (const void *)entry;
    tsr_profile_result *r = &w->rigid[k];
    tsr_profile_fit_options how = tsr_profile_fit_defaults;
    const tsr_neutron_options *of = tsr_saxs_neutron(entry);
    tsr_neutron neutron;
    if (of != NULL) {
        TSR_TRY(tsr_neutron_make(of, &neutron, err));
        how.c1[0] = how.c1[1] = 1.0; /* as of profile and of runs */
    }
    how.fit_background = o->background.word == 0; /* infer */
    how.background = o->background.word < 0 ? o->background.number : 0.0;
    TSR_TRY(tsr_saxs_read(o->file, (tsr_q_unit)o->q_unit, o->q_range, NULL,
                          &w->saxs[k], err));
    TSR_TRY(tsr_saxs_resolve(w->saxs[k], &o->resolution, NULL, err));
    TSR_TRY(compute(w, of != NULL ? &neutron : NULL, tsr_saxs_q_max(w->saxs[k]),
                    &r->structure, err));
    r->n_comp = r->structure.partials.n_comp;
    TSR_TRY(tsr_profile_fit_data(&how, w->saxs[k], r, err));
    TSR_TRY(tsr_contrast_guinier(&r->structure.partials, r->fit.c1, r->fit.c2,
                                 r->structure.rg_ang, &r->rg_guinier, &r->i0,
                                 err));
    r->i0 *= r->fit.scale;
    return tsr_profile_check_rg(r, w->saxs[k], w->log, err);
}

/* rigid.fit and its picture, rigid-2.fit for a second curve. */
static tsr_status write_fit(work *w, int k, tsr_err *err)
{
    char name[32] = "rigid.fit";
    if (k > 0)
        snprintf(name, sizeof name, "rigid-%d.fit", k + 1);
    char *path = tsr_run_directory_file(w->directory, name);
    const tsr_profile_output to = {.path = path, .saxs = w->saxs[k]};
    tsr_status status = tsr_allocated(path, err);
    TSR_THEN(status, tsr_profile_check_output(path, 0, 1, w->input,
                                              w->input[k + 1], NULL, err));
    TSR_THEN(status, tsr_profile_write(&to, 1, &w->rigid[k], w->log, err));
    free(path);
    return status;
}

static tsr_status fit_rigid(work *w, tsr_err *err)
{
    const size_t n = (size_t)w->n_input - 1;
    tsr_status status = TSR_OK;
    w->rigid = calloc(n + 1, sizeof *w->rigid);
    w->saxs = calloc(n + 1, sizeof *w->saxs);
    if (w->rigid == NULL || w->saxs == NULL)
        return tsr_no_memory(err);
    tsr_log_set_brief(w->log, 1);
    for (int k = 0; k < (int)n && status == TSR_OK; k++) {
        status = fit_curve(w, k, err);
        TSR_THEN(status, write_fit(w, k, err));
    }
    tsr_log_set_brief(w->log, 0);
    w->solve.n_curve = (int)n;
    w->solve.rigid = w->rigid;
    w->solve.saxs = w->saxs;
    return status;
}

/* What may move, as a run takes it from the configuration. Tails alone that
 * curves do not ask for are sampled where that is wanted, or has begun. */
static tsr_status find_motion(work *w, tsr_err *err)
{
    tsr_setup setup = {0};
    tsr_solve *s = &w->solve;
    char *begun = tsr_words_of("%s/1", w->directory);
    tsr_status status = tsr_allocated(begun, err);
    w->config.prior.clash = TSR_CLASH_NONE; /* no matter here, and slow */
    TSR_THEN(status, tsr_setup_read(&w->config, 0, NULL, &setup, err));
    if (status == TSR_OK) {
        s->is_still = w->config.structure.still;
        s->flexible = &w->config.structure.flexible;
        s->is_enough = s->n_curve > 0 && s->n_curve == w->config.data.n &&
                       tsr_solve_fits(s) &&
                       tsr_tails_alone(setup.molecule.topology) &&
                       tsr_args_count(w->args, "sample") == 0 && !exists(begun);
        w->atoms = tsr_model_atoms_of(setup.molecule.model);
        s->atoms = w->atoms;
        w->again = tsr_args_command(
            w->args, s->is_enough ? "tessera solve --sample" : "tessera solve");
        s->again = w->again;
        status = w->atoms == NULL ? tsr_no_memory(err)
                                  : tsr_allocated(w->again, err);
    }
    tsr_setup_clear(&setup);
    free(begun);
    return status;
}

/* The verdict so far, in the folder. */
static tsr_status keep_verdict(work *w, tsr_err *err)
{
    static tsr_status (*const print[])(const tsr_solve *, FILE *, tsr_err *) = {
        tsr_solve_print_json, tsr_solve_print};
    static const char *const name[] = {"verdict.json", "verdict.txt"};
    static const char *const begins[] = {"{\n \"verdict\": [", TSR_SOLVE_MARK};
    tsr_status status = TSR_OK;
    for (int i = 0; i < 2 && status == TSR_OK; i++) {
        const tsr_file_target target = {
            .maker = "solve", .begins = begins[i], .holds = begins[i]};
        tsr_file_writer to = {.out = NULL};
        char *path = tsr_run_directory_file(w->directory, name[i]);
        status = tsr_allocated(path, err);
        TSR_THEN(status, tsr_file_check_target(&target, path, err));
        TSR_THEN(status, tsr_file_begin(&to, path, err));
        TSR_THEN(status, print[i](&w->solve, to.out, err));
        status = tsr_file_end(&to, status, err);
        free(path);
    }
    return status;
}

/* ---- a run ---- */

/* --device and --threads, as they were given; returns how many words. */
static int common_words(const tsr_args *args, const char **word)
{
    static const char *const names[] = {"device", "threads"};
    static const char *const typed[] = {"--device", "--threads"};
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (tsr_args_count(args, names[i]) > 0) {
            word[n++] = typed[i];
            word[n++] = tsr_args_value(args, names[i]);
        }
    return n;
}

static tsr_status begin_run(work *w, int n_state, tsr_err *err)
{
    const char *const *set;
    const int n_set = tsr_args_values(w->args, "set", &set);
    char name[128], limit[64], states[64];
    const char *const own[] = {name, limit, states, "sampler.evidence=true"};
    enum { FIRST = 2, N_OWN = 4 }; /* before what is set on the command line */
    const char **word = calloc(2 * (size_t)n_set + 18, sizeof *word);
    int n = common_words(w->args, word);
    TSR_TRY(tsr_allocated(word, err));
    snprintf(states, sizeof states, "structure.states=%d", n_state);
    snprintf(limit, sizeof limit, "sampler.time_limit=%s",
             tsr_args_value(w->args, "time-limit"));
    tsr_solve_name_run(w->input[0], n_state, name, sizeof name);
    for (int i = 0; i < n_set + N_OWN; i++) {
        word[n++] = "--set";
        word[n++] = i < FIRST           ? own[i]
                    : i < FIRST + n_set ? set[i - FIRST]
                                        : own[i - n_set];
    }
    word[n++] = "--output";
    word[n++] = w->run[n_state - 1];
    word[n++] = "--";
    word[n++] = w->file;
    tsr_status status = call(w, &tsr_command_run, n, word, w->none, err);
    free(word);
    return status;
}

static tsr_status resume_run(work *w, const char *directory, tsr_err *err)
{
    const char *word[8];
    int n = common_words(w->args, word);
    word[n++] = "--";
    word[n++] = directory;
    return call(w, &tsr_command_resume, n, word, w->none, err);
}

/* A run keeps the configuration that it began with, so runs that are compared
 * may have two where the file was changed in between. */
static void tell_changed(const work *w, const char *directory)
{
    struct stat file, run;
    char *path = tsr_run_directory_file(directory, "config.yaml");
    if (path != NULL && stat(w->file, &file) == 0 && stat(path, &run) == 0 &&
        file.st_mtime > run.st_mtime)
        tsr_warn(w->log,
                 "%s was changed after the run in %s began, which keeps what "
                 "it began with; take that folder away to begin it anew",
                 w->file, directory);
    free(path);
}

/* Runs that are finished stay as they are. */
static tsr_status bring_to_end(work *w, int n_state, tsr_err *err)
{
    const char *directory = w->run[n_state - 1], *s = n_state == 1 ? "" : "s";
    tsr_run_checkpoint at = {0};
    if (tsr_run_directory_expect(directory, NULL) != TSR_OK) {
        tsr_info(w->log, "%d state%s: %s", n_state, s, directory);
        return begin_run(w, n_state, err);
    }
    tell_changed(w, directory);
    const int is_finished =
        tsr_run_checkpoint_read(directory, 0, &at, NULL) == TSR_OK &&
        at.place.is_finished;
    tsr_run_checkpoint_clear(&at);
    tsr_info(w->log, "%d state%s: %s %s", n_state, s, directory,
             is_finished ? "is finished" : "goes on");
    return is_finished ? TSR_OK : resume_run(w, directory, err);
}

/* One run more, as long as the data ask for it. */
static tsr_status run_states(work *w, long most, tsr_err *err)
{
    tsr_solve *s = &w->solve;
    for (int k = 0; k < most; k++) {
        double gain, error;
        w->run[k] = tsr_words_of("%s/%d", w->directory, k + 1);
        TSR_TRY(tsr_allocated(w->run[k], err));
        tsr_status status = bring_to_end(w, k + 1, err);
        if (status == TSR_E_INTERRUPTED)
            return tsr_fail(err, status,
                            "interrupted in the run of %d state%s; the same "
                            "command goes on",
                            k + 1, k == 0 ? "" : "s");
        if (status != TSR_OK)
            return tsr_wrap(err, status, "'%s'", w->run[k]);
        TSR_TRY(tsr_comparison_add(&w->runs, w->run[k], w->log, err));
        if (k > 0)
            s->says = tsr_evidence_gain(&w->runs, k - 1, k, &gain, &error);
        if (k == 0 || s->says == TSR_GAIN_CLEAR)
            s->chosen = k;
        TSR_TRY(keep_verdict(w, err));
        if (s->chosen < k || !isfinite(w->runs.run[k].verdict->evidence.log))
            break; /* nothing to compare the next one with */
    }
    return TSR_OK;
}

/* Of the chosen run, or where there is none of the model as it is; it shows the
 * verdict that is kept. */
static tsr_status write_report(work *w, tsr_err *err)
{
    const int is_run = w->runs.n > 0;
    const char *directory = is_run ? w->run[w->solve.chosen] : w->directory;
    const char *const word[] = {"--", directory};
    w->page = tsr_run_directory_file(directory, "report.html");
    w->solve.report = w->page;
    TSR_TRY(tsr_allocated(w->page, err));
    TSR_TRY(keep_verdict(w, err));
    return is_run ? call(w, &tsr_command_report, 2, word, w->none, err)
                  : tsr_report_rigid(&w->solve, w->log, err);
}

static tsr_status solve_all(work *w, long most, tsr_err *err)
{
    const int is_json = tsr_args_count(w->args, "json") > 0;
    tsr_solve *s = &w->solve;
    TSR_TRY(make_config(w, err));
    s->directory = w->directory;
    s->model = w->input[0];
    s->runs = &w->runs;
    TSR_TRY(fit_rigid(w, err));
    TSR_TRY(find_motion(w, err));
    s->is_finished = s->is_still || s->is_enough;
    TSR_TRY(keep_verdict(w, err));
    if (!is_json)
        TSR_TRY(tsr_solve_print_model(s, w->out, err));
    fflush(w->out); /* the runs take their time */
    tsr_status status = s->is_finished ? TSR_OK : run_states(w, most, err);
    if (status == TSR_OK) {
        s->is_finished = 1;
        status = write_report(w, err);
    }
    if (status != TSR_OK && status != TSR_E_INTERRUPTED)
        return status;
    /* What is finished is told also where a signal ended the rest. */
    const tsr_status printed =
        (is_json ? tsr_solve_print_json : tsr_solve_print_runs)(s, w->out,
                                                                NULL);
    return status != TSR_OK    ? status
           : printed != TSR_OK ? tsr_no_memory(err)
                               : TSR_OK;
}

/* The model and all curves. */
static tsr_status take_inputs(work *w, tsr_err *err)
{
    const char *const *argument;
    const int n = tsr_args_arguments(w->args, &argument);
    TSR_TRY(
        tsr_init_curves_read(w->args, n - 1, argument + 1, &w->curves, err));
    if (w->curves.n == 0 && tsr_args_count(w->args, "map") == 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "expected MODEL CURVE..., MODEL --sans FILE=X, or "
                        "MODEL --map MAP --resolution R");
    w->n_input = w->curves.n + 1;
    w->input = calloc((size_t)w->n_input + 2, sizeof *w->input);
    if (w->input == NULL)
        return tsr_no_memory(err);
    w->input[0] = argument[0];
    for (int k = 0; k < w->curves.n; k++)
        w->input[k + 1] = w->curves.path[k];
    w->input[w->n_input] = tsr_args_value(w->args, "map");
    return TSR_OK;
}

static tsr_status solve(const tsr_args *args, FILE *out, tsr_log *log,
                        tsr_err *err)
{
    work w = {.args = args, .out = out, .log = log};
    long most = 0;
    double limit = 0.0; /* checked here, passed on as it was typed */
    tsr_status status = take_inputs(&w, err);
    if (status == TSR_OK)
        status = tsr_args_long(args, "states", 1, MOST_STATES, &most, err);
    if (status == TSR_OK)
        status = tsr_args_double(args, "time-limit", 0.0, 1e9, &limit, err);
    w.none = fopen("/dev/null", "w");
    if (status == TSR_OK && w.none == NULL)
        status = tsr_fail(err, TSR_E_IO, "cannot open '/dev/null'");
    TSR_THEN(status, solve_all(&w, most, err));
    clear(&w);
    return status;
}

const tsr_command tsr_command_solve = {
    .name = "solve",
    .doc = "from a model and curves to an answer: all steps in one",
    .usage = {.arguments = "MODEL [CURVE]...",
              .min_arguments = 1,
              .max_arguments = -1,
              .options = options,
              .about =
                  "CURVEs are of X-rays; those of neutrons come by --sans, a "
                  "density map by --map. "
                  "Writes DIR/solve.yaml as init does, or takes the one that "
                  "is there; fits the model as it is to the curves, all atoms, "
                  "as profile does. Where it fits and tails alone are flexible "
                  "it stops there (--sample goes on). Else it samples with 1, "
                  "2, ... states in DIR/1, DIR/2, ..., each until converged or "
                  "out of time, as long as the log evidence grows by more than "
                  "two standard deviations and 1 nat. Ends with a verdict, the "
                  "table that it rests on, and the report of the run that the "
                  "data ask for; DIR/verdict.txt and verdict.json hold the "
                  "verdict, also while runs go on.\n\n"
                  "The same command goes on after Ctrl-C, a kill, or "
                  "'tessera resume' of one of the runs: what is finished is "
                  "not repeated. A run keeps the settings that it began with; "
                  "take its folder away to begin it anew."},
    .run = solve};

/* tessera solve: from a model and curves to an answer, by the other commands:
 * init, the fit of profile, run or resume for 1, 2, ... states, report. What
 * each of them leaves in its folder is all that is remembered, so that the same
 * command goes on where it was stopped. */
#include "commands/command.h"
#include "commands/solve_report.h"

#include "core/interrupt.h"
#include "core/text.h"
#include "files/file.h"
#include "files/lock.h"
#include "likelihood/term_saxs.h"
#include "session/past_run.h"
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
    TSR_INIT_SANS_OPTIONS,
    {.name = "json", .doc = "the verdict as one JSON object"},
    {0}};

enum { MOST_STATES = 16 };

typedef struct {
    const tsr_args *args;
    FILE *out, *none; /* none: for what commands print that is told here */
    tsr_log *log;
    tsr_init_curves curves;
    int n_input;
    const char **input;     /* [n_input] model, curves */
    char *directory, *file; /* file: the configuration */
    char *page;
    tsr_lock *lock;
    tsr_config config;
    tsr_past_run first; /* the run of one state */
    tsr_profile_result *rigid;
    tsr_saxs **saxs;
    tsr_solve_run run[MOST_STATES];
    tsr_solve solve;
} work;

static void clear(work *w)
{
    for (int k = 0; k + 1 < w->n_input; k++) {
        if (w->rigid != NULL) {
            tsr_profile_structure_clear(&w->rigid[k].structure);
            free(w->rigid[k].curve);
        }
        if (w->saxs != NULL)
            tsr_saxs_free(w->saxs[k]);
    }
    for (int k = 0; k < MOST_STATES; k++) {
        tsr_verdict_free(w->run[k].verdict);
        tsr_summary_free(w->run[k].summary);
        free(w->run[k].directory);
    }
    free(w->rigid);
    free(w->saxs);
    free(w->page);
    free(w->file);
    free(w->directory);
    tsr_past_run_clear(&w->first);
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
    tsr_status status = command->run(args, out, w->log, err);
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
    int n = 2 + tsr_init_curves_words(w->args, word + 2);
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
    const char **word = calloc(2 * most + 8, sizeof *word);
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

/* The entry of `data:` with that curve; NULL: there is none. */
static const tsr_term_options *find_curve(const tsr_config *config,
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

/* A folder answers for one model and its curves. */
static tsr_status check_inputs(const work *w, tsr_err *err)
{
    for (int k = 0; k < w->n_input; k++) {
        if (!exists(w->input[k]))
            return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s'",
                            w->input[k]);
        if (k == 0 ? tsr_file_is_same(w->config.structure.file, w->input[0])
                   : find_curve(&w->config, w->input[k]) != NULL)
            continue;
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s' is of another %s than '%s'; choose another "
                        "folder with --output DIR",
                        w->file, k == 0 ? "model" : "curve", w->input[k]);
    }
    for (int k = 0; k < w->curves.n; k++)
        if (!tsr_init_curves_suit(
                &w->curves, k,
                tsr_saxs_neutron(find_curve(&w->config, w->curves.path[k]))))
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

/* neutron: NULL of X-rays. */
static tsr_status compute(work *w, tsr_profile_bodies bodies,
                          const tsr_neutron *neutron, double q_max,
                          tsr_profile_structure *to, tsr_err *err)
{
    tsr_profile_maker *maker = NULL;
    const tsr_profile_spec spec = {.bodies = bodies,
                                   .method = TSR_METHOD_AUTO,
                                   .solvent = TSR_SOLVENT_LAYER,
                                   .density = w->config.solvent.density,
                                   .neutron = neutron,
                                   .device = one_device(w),
                                   .q_max_inv_ang = q_max};
    tsr_status status = tsr_profile_maker_new(&spec, w->log, &maker, err);
    TSR_THEN(status, tsr_profile_compute(maker, w->input[0], to, err));
    tsr_profile_maker_free(maker);
    return status;
}

/* All atoms, or of a model that lacks some, as a run writes it, bodies; these
 * have no tables for neutrons. */
static tsr_status compute_model(work *w, const tsr_neutron *neutron,
                                double q_max, tsr_profile_structure *to,
                                tsr_err *err)
{
    tsr_err local = {.status = TSR_OK};
    tsr_status status =
        compute(w, TSR_PROFILE_ATOMS, neutron, q_max, to, &local);
    w->solve.bodies = "atoms";
    if (status == TSR_E_DATA && neutron == NULL) {
        tsr_info(w->log, "the rigid fit is of two bodies a residue: the model "
                         "does not have all atoms");
        tsr_debug(w->log, "%s", local.message);
        tsr_profile_structure_clear(to);
        w->solve.bodies = "two";
        return compute(w, TSR_PROFILE_TWO, NULL, q_max, to, err);
    }
    return status == TSR_OK ? status
                            : tsr_fail(err, status, "%s", local.message);
}

/* The model against a curve, over the points that the runs see. */
static tsr_status fit_curve(work *w, int k, tsr_err *err)
{
    const tsr_term_options *entry = find_curve(&w->config, w->input[k + 1]);
    const tsr_saxs_options *o = (const void *)entry;
    tsr_profile_result *r = &w->rigid[k];
    const tsr_partials *p = &r->structure.partials;
    tsr_partial_curves curves = {0};
    tsr_profile_fit_options how = tsr_profile_fit_defaults;
    const tsr_neutron_options *of = tsr_saxs_neutron(entry);
    tsr_neutron neutron;
    if (of != NULL) {
        TSR_TRY(tsr_neutron_make(of, &neutron, err));
        how.c1[0] = how.c1[1] = 1.0; /* as of a run */
    }
    how.fit_background = o->background.word == 0; /* infer */
    how.background = o->background.word < 0 ? o->background.number : 0.0;
    TSR_TRY(tsr_saxs_read(o->file, (tsr_q_unit)o->q_unit, o->q_range, NULL,
                          &w->saxs[k], err));
    const tsr_saxs *s = w->saxs[k];
    TSR_TRY(tsr_saxs_resolve(w->saxs[k], &o->resolution, NULL, err));
    TSR_TRY(compute_model(w, of != NULL ? &neutron : NULL, tsr_saxs_q_max(s),
                          &r->structure, err));
    r->n_comp = p->n_comp;
    r->curve = calloc((size_t)s->n, sizeof *r->curve);
    TSR_TRY(tsr_allocated(r->curve, err));
    TSR_TRY(tsr_partial_curves_of(p, s, &curves, err));
    tsr_status status = tsr_profile_fit_make(&curves, s->intensity, s->sigma,
                                             &how, &r->fit, r->curve, err);
    tsr_partial_curves_clear(&curves);
    TSR_THEN(status,
             tsr_contrast_guinier(p, r->fit.c1, r->fit.c2, r->structure.rg_ang,
                                  &r->rg_guinier, &r->i0, err));
    r->i0 *= r->fit.scale;
    return status;
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
    w->rigid = calloc(n, sizeof *w->rigid);
    w->saxs = calloc(n, sizeof *w->saxs);
    if (w->rigid == NULL || w->saxs == NULL)
        return tsr_no_memory(err);
    for (int k = 0; k < (int)n && status == TSR_OK; k++) {
        status = fit_curve(w, k, err);
        TSR_THEN(status, write_fit(w, k, err));
    }
    w->solve.n_curve = (int)n;
    w->solve.rigid = w->rigid;
    w->solve.saxs = w->saxs;
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

static tsr_status begin_run(work *w, const tsr_solve_run *r, tsr_err *err)
{
    const char *const *set;
    const int n_set = tsr_args_values(w->args, "set", &set);
    char states[64], limit[64], name[128];
    const char **word = calloc(2 * (size_t)n_set + 18, sizeof *word);
    int n = 0;
    TSR_TRY(tsr_allocated(word, err));
    snprintf(states, sizeof states, "structure.states=%ld", r->states);
    snprintf(limit, sizeof limit, "sampler.time_limit=%s",
             tsr_args_value(w->args, "time-limit"));
    tsr_solve_name_run(w->input[0], r, name, sizeof name);
    word[n++] = "--output";
    word[n++] = r->directory;
    word[n++] = "--set";
    word[n++] = name;
    word[n++] = "--set";
    word[n++] = limit;
    for (int i = 0; i < n_set; i++) {
        word[n++] = "--set";
        word[n++] = set[i];
    }
    word[n++] = "--set";
    word[n++] = states;
    word[n++] = "--set";
    word[n++] = "sampler.evidence=true";
    n += common_words(w->args, word + n);
    word[n++] = "--";
    word[n++] = w->file;
    tsr_info(w->log, "%ld state%s: %s", r->states, r->states == 1 ? "" : "s",
             r->directory);
    tsr_status status = call(w, &tsr_command_run, n, word, w->none, err);
    free(word);
    return status;
}

static tsr_status resume_run(work *w, const tsr_solve_run *r, tsr_err *err)
{
    const char *word[8];
    int n = common_words(w->args, word);
    word[n++] = "--";
    word[n++] = r->directory;
    return call(w, &tsr_command_resume, n, word, w->none, err);
}

/* A run keeps the configuration that it began with, so runs that are compared
 * may have two where the file was changed in between. */
static void tell_changed(const work *w, const tsr_solve_run *r)
{
    struct stat file, run;
    char *path = tsr_run_directory_file(r->directory, "config.yaml");
    if (path != NULL && stat(w->file, &file) == 0 && stat(path, &run) == 0 &&
        file.st_mtime > run.st_mtime)
        tsr_warn(w->log,
                 "%s was changed after the run in %s began, which keeps what "
                 "it began with; take that folder away to begin it anew",
                 w->file, r->directory);
    free(path);
}

/* Runs that are finished stay as they are. */
static tsr_status bring_to_end(work *w, const tsr_solve_run *r, tsr_err *err)
{
    tsr_run_checkpoint at = {0};
    if (tsr_run_directory_expect(r->directory, NULL) != TSR_OK)
        return begin_run(w, r, err);
    tell_changed(w, r);
    const int is_finished =
        tsr_run_checkpoint_read(r->directory, 0, &at, NULL) == TSR_OK &&
        at.place.is_finished;
    tsr_run_checkpoint_clear(&at);
    if (!is_finished)
        return resume_run(w, r, err);
    tsr_info(w->log, "%s is finished", r->directory);
    return TSR_OK;
}

static tsr_status read_run(work *w, tsr_solve_run *r, tsr_err *err)
{
    tsr_past_run past = {.trace = NULL};
    tsr_status status = tsr_past_run_open(r->directory, &past, w->log, err);
    TSR_THEN(status, tsr_summary_make(past.trace, &r->summary, err));
    TSR_THEN(status, tsr_summary_add_evidence(r->summary, past.trace, err));
    TSR_THEN(status,
             tsr_verdict_make(&past, r->summary, -1, tsr_arrangements_threshold,
                              &r->verdict, err));
    if (status == TSR_OK) {
        tsr_solve_interval(r->summary, "chi2", &r->chi2);
        tsr_solve_interval(r->summary, "rg", &r->rg);
        r->n_draw = past.n_draw;
    }
    if (status != TSR_OK || r->states > 1) {
        tsr_past_run_clear(&past);
        return status;
    }
    w->first = past; /* its configuration says what moves */
    w->solve.flexible = &w->first.config.structure.flexible;
    return TSR_OK;
}

/* One run more, as long as the data ask for it. */
static tsr_status run_states(work *w, long most, tsr_err *err)
{
    tsr_solve *s = &w->solve;
    s->run = w->run;
    for (int k = 0; k < most; k++) {
        tsr_solve_run *r = &w->run[k];
        double gain, error;
        r->states = k + 1;
        r->directory = tsr_words_of("%s/%d", w->directory, k + 1);
        TSR_TRY(tsr_allocated(r->directory, err));
        tsr_status status = bring_to_end(w, r, err);
        if (status == TSR_E_INTERRUPTED)
            return tsr_fail(err, status,
                            "interrupted in the run of %ld state%s; the same "
                            "command goes on",
                            r->states, r->states == 1 ? "" : "s");
        TSR_THEN(status, read_run(w, r, err));
        if (status != TSR_OK)
            return tsr_wrap(err, status, "'%s'", r->directory);
        s->n_run = k + 1;
        if (k > 0 && !tsr_solve_gain(r - 1, r, &gain, &error))
            break;
        s->chosen = k;
        if (!isfinite(r->summary->evidence.log))
            break; /* nothing to compare the next one with */
    }
    return TSR_OK;
}

static tsr_status write_report(work *w, tsr_err *err)
{
    const char *directory = w->run[w->solve.chosen].directory;
    const char *const word[] = {"--", directory};
    TSR_TRY(call(w, &tsr_command_report, 2, word, w->none, err));
    w->page = tsr_run_directory_file(directory, "report.html");
    w->solve.report = w->page;
    return tsr_allocated(w->page, err);
}

static tsr_status solve_all(work *w, long most, tsr_err *err)
{
    TSR_TRY(make_config(w, err));
    w->solve.directory = w->directory;
    w->solve.model = w->input[0];
    TSR_TRY(fit_rigid(w, err));
    if (!w->config.structure.still) {
        TSR_TRY(run_states(w, most, err));
        TSR_TRY(write_report(w, err));
    }
    return tsr_args_count(w->args, "json") > 0
               ? tsr_solve_print_json(&w->solve, w->out, err)
               : tsr_solve_print(&w->solve, w->out, err);
}

/* The model and all curves. */
static tsr_status take_inputs(work *w, tsr_err *err)
{
    const char *const *argument;
    const int n = tsr_args_arguments(w->args, &argument);
    TSR_TRY(
        tsr_init_curves_read(w->args, n - 1, argument + 1, &w->curves, err));
    if (w->curves.n == 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "expected MODEL CURVE..., or MODEL --sans FILE=X");
    w->n_input = w->curves.n + 1;
    w->input = calloc((size_t)w->n_input, sizeof *w->input);
    if (w->input == NULL)
        return tsr_no_memory(err);
    w->input[0] = argument[0];
    for (int k = 0; k < w->curves.n; k++)
        w->input[k + 1] = w->curves.path[k];
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
                  "CURVEs are of X-rays; those of neutrons come by --sans. "
                  "Writes DIR/solve.yaml as init does, or takes the one that "
                  "is there; fits the model as it is to the curves, all "
                  "atoms; then samples with 1, 2, ... states in DIR/1, DIR/2, "
                  "..., each until converged or out of time, as long as the "
                  "log evidence grows by more than two standard deviations "
                  "and 1 nat. Ends with a verdict, the table that it rests "
                  "on, and the report of the run that the data ask for.\n\n"
                  "The same command goes on after Ctrl-C, a kill, or "
                  "'tessera resume' of one of the runs: what is finished is "
                  "not repeated. A run keeps the settings that it began with; "
                  "take its folder away to begin it anew."},
    .run = solve};

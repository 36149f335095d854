/* tessera run CONFIG and tessera resume DIR: apply the command line to the
 * configuration, handle signals, and start or continue the run
 * (session/run_session.h). */
#include "analysis/summary.h"
#include "answer/verdict.h"
#include "commands/command.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "session/run_directory.h"
#include "session/run_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OPTION_THREADS                                                   \
    TSR_FIELD(INT, "threads", tsr_run_options, threads, .argument = "N", \
              .min = 1, .max = 4096,                                     \
              .doc = "number of host threads, instead of device.threads")
#define OPTION_JSON                                                    \
    TSR_FIELD(BOOL, "json", tsr_run_options, json,                     \
              .doc = "print the result as one JSON object, including " \
                     "convergence")

/* Replaces the value of a key, *text in the config, by that of an option.
 */
static tsr_status set_option(const char *option, const char *given,
                             const char *key, char **text, tsr_config *config,
                             tsr_err *err)
{
    if (given == NULL)
        return TSR_OK;
    char *copy = strdup(given);
    TSR_TRY(tsr_allocated(copy, err));
    free(*text);
    *text = copy;
    return tsr_yaml_marks_put(&config->marks, key, option, err);
}

/* Applies the options to the configuration and checks it; messages name the
 * options. */
static tsr_status set_options(const tsr_run_options *o, tsr_config *config,
                              tsr_err *err)
{
    TSR_TRY(set_option("--output", o->output, "output.directory",
                       &config->output.directory, config, err));
    TSR_TRY(set_option("--device", o->device, "device.use", &config->device.use,
                       config, err));
    TSR_TRY(set_option("--until", o->until, "sampler.until",
                       &config->sampler.until, config, err));
    if (o->threads > 0)
        config->device.threads = (tsr_number_or_word){-1, (double)o->threads};
    if (o->draws > 0) {
        config->sampler.draws = (tsr_number_or_word){-1, (double)o->draws};
        TSR_TRY(tsr_yaml_marks_put(&config->marks, "sampler.draws", "--draws",
                                   err));
    }
    return tsr_config_locate_error(config, tsr_config_check(config, err), err);
}

/* ---- the result ---- */

/* The variable with the largest R-hat; NULL where no variable has one. */
static const tsr_summary_item *find_worst(const tsr_summary *summary)
{
    const tsr_summary_item *worst = NULL;
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        if (!isnan(item->value.rhat) &&
            (worst == NULL || item->value.rhat > worst->value.rhat))
            worst = item;
    }
    return worst;
}

static void print_convergence(const tsr_summary *summary, FILE *out)
{
    double ess;
    const tsr_summary_item *worst = find_worst(summary);
    const tsr_summary_item *slowest = tsr_summary_slowest(summary, &ess);
    if (worst == NULL) {
        fprintf(out, "  %-14s too few draws\n", "R-hat");
        return;
    }
    if (slowest != NULL)
        fprintf(out, "  %-14s %.0f (%s, smallest)\n", "effective", ess,
                slowest->name);
    fprintf(out, "  %-14s %.2f (%s, largest)\n", "R-hat", worst->value.rhat,
            worst->name);
}

/* If the run has not converged, warns in the log, with the command that
 * continues the run. */
static void warn_unconverged(const tsr_config *config, const tsr_advice *advice,
                             tsr_log *log)
{
    char *text = tsr_advice_text(advice);
    if (!advice->is_converged)
        tsr_warn(log, "not converged%s%s (%s); to continue: %s",
                 config->sampler.until != NULL ? " by the criterion " : "",
                 config->sampler.until != NULL ? config->sampler.until : "",
                 advice->worst[0] != '\0' ? advice->worst : "too few draws",
                 text != NULL ? text : "more draws");
    free(text);
}

static void put_convergence(tsr_json *j, const tsr_verdict *verdict,
                            const tsr_summary *summary)
{
    double ess;
    const tsr_summary_item *worst = find_worst(summary);
    const tsr_summary_item *slowest = tsr_summary_slowest(summary, &ess);
    tsr_json_members(j, "converged %i rhat %g rhat_of %s ess %g ess_of %s",
                     verdict->advice.is_converged,
                     worst == NULL ? (double)NAN : worst->value.rhat,
                     worst == NULL ? NULL : worst->name,
                     slowest == NULL ? (double)NAN : ess,
                     slowest == NULL ? NULL : slowest->name);
}

/* chi2 of the first conformation. For a single curve all other parameters are
 * fitted; otherwise they have their starting values. */
static double start_chi2(const tsr_session *s)
{
    const tsr_likelihood *l = s->setup->data.likelihood;
    return l != NULL && l->n_term == 1 && s->setup->data.rigid != NULL &&
                   s->setup->data.rigid[0].n_point > 0
               ? s->setup->data.rigid[0].chi2
               : s->progress.start_chi2;
}

/* A variable and its value at the start (NaN: not known), as a member of the
 * JSON object j or, where j is NULL, as a line of the table. */
static void put_variable(const tsr_summary *summary, const char *name,
                         const char *label, double start, tsr_json *j,
                         FILE *out)
{
    const tsr_summary_item *item = tsr_summary_find(summary, name);
    char before[32] = "-";
    if (item == NULL)
        return;
    const tsr_convergence *v = &item->value;
    if (!isnan(start))
        snprintf(before, sizeof before, "%.4g", start);
    if (j == NULL) {
        fprintf(out, "  %-14s %10s   %10.4g   [%.4g, %.4g]\n", label, before,
                v->mean, v->q5, v->q95);
        return;
    }
    tsr_json_object(j, name);
    if (!isnan(start))
        tsr_json_number(j, "start", start);
    tsr_json_members(j, "mean %g q5 %g q95 %g }", v->mean, v->q5, v->q95);
}

/* Prints chi2 of every entry of `data:`, and Rg. With several entries, chi2 of
 * the start is not known for each. */
static void put_variables(const tsr_session *s, const tsr_summary *summary,
                          tsr_json *j, FILE *out)
{
    const tsr_likelihood *l = s->setup->data.likelihood;
    char name[64];
    for (int d = 0; l != NULL && d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        tsr_term_variable(term->type, term->ordinal, "chi2", sizeof name, name);
        put_variable(summary, name, name,
                     l->n_term == 1 ? start_chi2(s) : (double)NAN, j, out);
    }
    put_variable(summary, "rg", "Rg, Angstrom", s->progress.start_rg, j, out);
}

static tsr_status print_json(const tsr_session *s, const tsr_summary *summary,
                             const tsr_verdict *verdict, FILE *out,
                             tsr_err *err)
{
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    put_convergence(&j, verdict, summary);
    tsr_json_members(
        &j, "directory %s n_chain %ld n_draw %ld steps %ld seconds %g",
        s->config->output.directory, (long)s->config->sampler.chains.number,
        s->progress.draws, s->progress.steps, s->progress.seconds);
    put_variables(s, summary, &j, NULL);
    tsr_status status = tsr_verdict_put(verdict, "verdict", &j, err);
    tsr_json_close(&j);
    return status;
}

static tsr_status print_table(const tsr_session *s, const tsr_summary *summary,
                              const tsr_verdict *verdict, FILE *out,
                              tsr_err *err)
{
    const long chains = (long)s->config->sampler.chains.number;
    fputc('\n', out);
    TSR_TRY(tsr_verdict_print(verdict, out, err));
    fprintf(out, "\n  %-14s %10s   %10s   %s\n", "", "start", "posterior",
            "5 % to 95 %");
    put_variables(s, summary, NULL, out);
    fprintf(out, "  %-14s %.0f (%ld chain%s, %ld draws each, %.1f s)\n",
            "steps/s",
            (double)s->progress.steps / fmax(s->progress.seconds, 1e-9), chains,
            chains == 1 ? "" : "s", s->progress.draws, s->progress.seconds);
    fprintf(out, "  %-14s %s\n", "files", s->config->output.directory);
    print_convergence(summary, out);
    return TSR_OK;
}

/* Prints the verdict and a table of results, from the run's folder. If the run
 * has not converged, the log gets a warning with the command that continues the
 * run. JSON: converged, rhat and ess with the names of their variables,
 * directory, n_chain, n_draw, steps, seconds, {start, mean, q5, q95} of chi2
 * and rg, and the verdict. Errors: those of tsr_past_run_open and
 * tsr_verdict_of_run; TSR_E_NO, without a message, where sampler.until is set
 * and the run has not converged. */
static tsr_status print_result(const tsr_session *s, int is_json, FILE *out,
                               tsr_err *err)
{
    tsr_past_run past = {.trace = NULL};
    tsr_summary *summary = NULL;
    tsr_verdict *verdict = NULL;
    tsr_status status =
        tsr_past_run_open(s->config->output.directory, &past, s->log, err);
    TSR_THEN(status, tsr_verdict_of_run(&past, &summary, &verdict, err));
    if (status == TSR_OK) {
        warn_unconverged(s->config, &verdict->advice, s->log);
        status =
            (is_json ? print_json : print_table)(s, summary, verdict, out, err);
    }
    if (status == TSR_OK && s->config->sampler.until != NULL &&
        !verdict->advice.is_converged)
        status = TSR_E_NO; /* the warning of warn_unconverged is the message */
    tsr_verdict_free(verdict);
    tsr_summary_free(summary);
    tsr_past_run_clear(&past);
    return status;
}

/* ---- run ---- */

/* Prints the plan, and its time, estimated from a few trial steps. */
static tsr_status plan(tsr_session *session, FILE *out, tsr_err *err)
{
    const double enough = 0.2; /* s */
    const tsr_sampler_options *o = &session->config->sampler;
    const double draws = (double)tsr_sampler_draws(o);
    const double warmup = (double)tsr_run_warmup_requested(session->config);
    double start, each;
    char all[32], some[32];
    tsr_run_plan(session->config, session->setup, out);
    TSR_TRY(tsr_session_estimate(session, enough, &start, &each, err));
    tsr_advice_time(start + (warmup + draws) * each, all);
    if (o->until == NULL)
        fprintf(out, "time: %s (%.3g s per draw of all chains, measured)\n",
                all, each);
    else
        fprintf(out,
                "time: until converged (%s), at most %s; warm-up and 1000 "
                "draws per chain need %s\n",
                o->until, all,
                tsr_advice_time(start + (warmup + 1000.0) * each, some));
    return TSR_OK;
}

/* A plan needs no accurate model error, and stores none. */
static void make_plan_quick(tsr_config *config)
{
    tsr_model_error_config *o = &config->model_error;
    if (o->conformations.word >= 0)
        o->conformations = (tsr_number_or_word){.word = -1, .number = 16};
    free(o->file);
    o->file = NULL;
}

tsr_status tsr_run_execute(const char *path, int is_resumed,
                           const tsr_run_options *o, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    tsr_config config = {0};
    tsr_setup setup = {0};
    tsr_session session = {.config = &config, .setup = &setup, .log = log};
    const char *const *set = (const char *const *)o->set.item;
    tsr_log_buffer(log);
    if (!o->dry_run)
        tsr_interrupt_catch();
    tsr_status status =
        is_resumed ? tsr_session_reopen(&session, path, o->set.n, set, err)
                   : tsr_config_read(path, o->set.n, set, &config, err);
    if (status == TSR_OK && o->output != NULL && o->output[0] == '\0')
        status = tsr_fail(err, TSR_E_USAGE, "--output is empty: name a folder");
    TSR_THEN(status, set_options(o, &config, err));
    if (o->dry_run)
        make_plan_quick(&config);
    if (o->prior_only)
        tsr_config_drop_data(
            &config); /* its config.yaml records the effective settings */
    TSR_THEN(status, tsr_session_read(&session, err));
    TSR_THEN(status,
             tsr_setup_engine(&config, (int)session.checkpoint.identity.n_chain,
                              log, &setup, err));
    if (o->dry_run) {
        TSR_THEN(status, plan(&session, out, err));
    } else {
        status = tsr_session_check_stop(&session, status, err);
        TSR_THEN(status, tsr_session_run(&session, err));
        tsr_parallel_limit(setup.n_thread > 0 ? setup.n_thread : 1);
        TSR_THEN(status, print_result(&session, o->json, out, err));
        tsr_parallel_limit(TSR_MAX_THREAD);
    }
    tsr_session_clear(&session);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}

void tsr_run_warn_if_changed(const char *file, const char *directory,
                             tsr_log *log)
{
    struct stat given, run;
    const tsr_path path = tsr_path_in(directory, "config.yaml");
    if (stat(file, &given) == 0 && stat(path.text, &run) == 0 &&
        given.st_mtime > run.st_mtime)
        tsr_warn(log,
                 "%s was changed after the run in %s began, which keeps its "
                 "settings; move that folder to begin the run anew",
                 file, directory);
}

/* `run --continue`. The folder of a run has a lock file from its first moment
 * on; without one a config.yaml is the user's own, and a run is refused. */
static tsr_status begin_or_resume(const char *file, const tsr_run_options *o,
                                  FILE *out, tsr_log *log, tsr_err *err)
{
    const tsr_run_options again = {
        .device = o->device, .threads = o->threads, .json = o->json};
    if (o->output == NULL || o->dry_run)
        return tsr_fail(err, TSR_E_USAGE,
                        "--continue needs --output DIR, and no --dry-run");
    if (!tsr_run_directory_has(o->output, "config.yaml") ||
        !tsr_run_directory_has(o->output, "run.lock"))
        return tsr_run_execute(file, 0, o, out, log, err);
    tsr_run_warn_if_changed(file, o->output, log);
    if (!tsr_run_is_finished(o->output))
        return tsr_run_execute(o->output, 1, &again, out, log, err);
    tsr_info(log, "the run in %s is finished", o->output);
    return TSR_OK;
}

static tsr_status run(const tsr_args *args, FILE *out, tsr_log *log,
                      tsr_err *err)
{
    const tsr_run_options *o = args->options;
    if (o->continues)
        return begin_or_resume(args->argument[0], o, out, log, err);
    return tsr_run_execute(args->argument[0], 0, o, out, log, err);
}

static const tsr_field run_fields[] = {
    TSR_FIELD(STRING, "output", tsr_run_options, output, .letter = 'o',
              .argument = "DIR",
              .doc = "output folder, instead of output.directory"),
    TSR_FIELD(STRINGS, "set", tsr_run_options, set, .argument = "KEY=VALUE",
              .doc = "override a key, as sampler.draws=500 or "
                     "data.0.file=x.dat"),
    TSR_FIELD(STRING, "device", tsr_run_options, device, .argument = "DEVICE",
              .doc = "device, instead of device.use: auto, gpu, cpu, "
                     "reference, number, name, a list like 0,1, all-gpu, all"),
    TSR_FIELD(STRING, "until", tsr_run_options, until, .argument = "WHAT",
              .doc = "stop at convergence: rhat<1.01,ess>400 (after "
                     "sampler.draws at most)"),
    TSR_FIELD(BOOL, "continue", tsr_run_options, continues,
              .doc = "resume the run if DIR contains one, else begin it; a "
                     "finished run stays as it is"),
    OPTION_THREADS,
    TSR_FIELD(BOOL, "prior-only", tsr_run_options, prior_only,
              .doc = "sample the prior, without the data"),
    OPTION_JSON,
    TSR_FIELD(
        BOOL, "dry-run", tsr_run_options, dry_run,
        .doc =
            "check the configuration, print the plan and its time, and stop"),
    {0}};

const tsr_command tsr_command_run = {
    .name = "run",
    .doc = "sample the posterior of a configuration",
    .arguments = "CONFIG",
    .options = run_fields,
    .size = sizeof(tsr_run_options),
    .about = "Prints a verdict and a table at the end. The exit status is 1 if "
             "a convergence criterion was set (--until, or sampler.draws: "
             "auto) and not reached within the draws or the time; the command "
             "that continues the run is printed.",
    .keys = tsr_config_fields,
    .run = run};

/* ---- resume ---- */

static tsr_status resume(const tsr_args *args, FILE *out, tsr_log *log,
                         tsr_err *err)
{
    return tsr_run_execute(args->argument[0], 1, args->options, out, log, err);
}

static const tsr_field resume_fields[] = {
    TSR_FIELD(INT, "draws", tsr_run_options, draws, .argument = "N", .min = 1,
              .max = 1e9,
              .doc = "draws per chain in total, instead of sampler.draws"),
    TSR_FIELD(
        STRING, "until", tsr_run_options, until, .argument = "WHAT",
        .doc =
            "continue until convergence: rhat<1.01,ess>400 (--draws at most)"),
    TSR_FIELD(STRING, "device", tsr_run_options, device, .argument = "DEVICE",
              .doc = "device, instead of device.use; another type of device "
                     "rounds differently"),
    OPTION_THREADS,
    OPTION_JSON,
    {0}};

const tsr_command tsr_command_resume = {
    .name = "resume",
    .doc = "continue a run from its last checkpoint",
    .arguments = "DIR",
    .options = resume_fields,
    .size = sizeof(tsr_run_options),
    .about =
        "Gives the same draws as an uninterrupted run, with any number of "
        "threads. --draws extends a finished run, and so does --until, which "
        "continues until the chains have converged; the exit status is 1 if "
        "the criterion is not reached. A run that was stopped before its first "
        "checkpoint starts from the beginning. DIR may have been moved, also "
        "to another machine: it contains copies of all input files.",
    .run = resume};

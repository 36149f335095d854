/* tessera run CONFIG and tessera resume DIR: apply the command line to the
 * configuration, handle signals, and start or continue the run
 * (session/run_session.h). A resumed run gives the same bits as an
 * uninterrupted one, so everything that affects bits is compared first. */
#include "analysis/summary.h"
#include "answer/verdict.h"
#include "commands/command.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "files/file.h"
#include "session/run_directory.h"
#include "session/run_session.h"
#include "store/trace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_THREADS                                                   \
    TSR_FIELD(INT, "threads", tsr_run_options, threads, .argument = "N", \
              .min = 1, .max = 4096,                                     \
              .doc = "number of host threads, instead of device.threads")
#define OPTION_JSON                                                    \
    TSR_FIELD(BOOL, "json", tsr_run_options, json,                     \
              .doc = "print the result as one JSON object, including " \
                     "convergence")

/* What one option says instead of a key of the file, at `text` in the config.
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

/* The configuration is then checked as with these keys. */
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
    if (o->draws > 0)
        config->sampler.draws = (tsr_number_or_word){-1, (double)o->draws};
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

tsr_status tsr_run_config(const char *path, const tsr_run_options *o, FILE *out,
                          tsr_log *log, tsr_err *err)
{
    tsr_config config;
    tsr_setup setup = {0};
    tsr_session session = {.config = &config, .setup = &setup, .log = log};
    tsr_log_buffer(log);
    int ignore_hang_up = tsr_hang_up_is_ignored();
    if (!o->dry_run)
        tsr_interrupt_catch(ignore_hang_up);
    tsr_status status = tsr_config_read(
        path, o->set.n, (const char *const *)o->set.item, &config, err);
    if (status == TSR_OK && o->output != NULL && o->output[0] == '\0')
        status = tsr_fail(err, TSR_E_USAGE, "--output is empty: name a folder");
    TSR_THEN(status, set_options(o, &config, err));
    if (o->dry_run)
        make_plan_quick(&config);
    if (o->prior_only)
        tsr_config_drop_data(
            &config); /* its config.yaml records the effective settings */
    TSR_THEN(status, tsr_session_read(&session, err));
    tsr_interrupt_block(!o->dry_run);
    TSR_THEN(status, tsr_setup_engine(&config, 0, log, &setup, err));
    if (!o->dry_run)
        tsr_interrupt_catch(ignore_hang_up); /* names of the devices in use */
    tsr_interrupt_block(0);
    if (o->dry_run) {
        TSR_THEN(status, plan(&session, out, err));
    } else {
        TSR_THEN(status, tsr_session_run(&session, err));
        TSR_THEN(status, print_result(&session, o->json, out, err));
    }
    tsr_session_clear(&session);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}

static tsr_status run(const tsr_args *args, FILE *out, tsr_log *log,
                      tsr_err *err)
{
    return tsr_run_config(args->argument[0], args->options, out, log, err);
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

/* Reads the configuration of the run and applies the command line. */
static tsr_status read_config(const tsr_run_options *o, const char *directory,
                              tsr_config *config, tsr_err *err)
{
    tsr_status status = tsr_config_read(
        tsr_path_in(directory, "config.yaml").text, 0, NULL, config, err);
    if (status == TSR_OK) {
        free(config->output.directory);
        config->output.directory = strdup(directory);
        TSR_THEN(status, tsr_allocated(config->output.directory, err));
    }
    if (o->checkpoint_every.word < 0)
        config->output.checkpoint_every = o->checkpoint_every.number;
    return status == TSR_OK ? set_options(o, config, err) : status;
}

/* Number of draws in the trace, which is ahead of the checkpoint. 0 where the
 * trace is unreadable; opening it later reports the error. */
static long draws_stored(const char *directory)
{
    tsr_trace_reader *reader = NULL;
    const tsr_path path = tsr_path_in(directory, "trace.h5");
    long n = 0;
    if (tsr_trace_open(path.text, &reader, NULL) == TSR_OK)
        n = tsr_trace_n_draw(reader, TSR_TRACE_POSTERIOR);
    tsr_trace_reader_free(reader);
    return n;
}

/* Refuses --draws that add no draws. */
static tsr_status check_draws(const tsr_run_checkpoint *at,
                              const tsr_config *config, int more_asked,
                              tsr_err *err)
{
    long draws = tsr_sampler_draws(&config->sampler);
    long stored = draws_stored(config->output.directory);
    long done = stored > at->progress.draws ? stored : at->progress.draws;
    if (draws < done)
        return tsr_fail(err, TSR_E_USAGE,
                        "--draws %ld: the run already has %ld", draws, done);
    if (at->progress.is_finished && !more_asked)
        return tsr_fail(
            err, TSR_E_USAGE,
            "the run in '%s' is finished; --draws N, above %ld, extends it",
            config->output.directory, done);
    return TSR_OK;
}

/* --until without --draws goes on until then: a hundred times the draws that
 * there are is no end that a user waits for, but files have one. */
static void extend_draws(const tsr_run_checkpoint *at, const tsr_run_options *o,
                         tsr_config *config)
{
    const double most = tsr_until_draws((double)at->progress.draws, 100.0);
    if (o->until != NULL && o->draws == 0 &&
        most > (double)tsr_sampler_draws(&config->sampler))
        config->sampler.draws = (tsr_number_or_word){-1, most};
}

/* A run that had converged as asked goes on when it is told how long, and one
 * whose time was over gets more. */
static void drop_end_condition(const tsr_run_checkpoint *at,
                               const tsr_run_options *o, tsr_config *config,
                               tsr_log *log)
{
    if (at->progress.is_finished)
        config->sampler.time_limit = 0.0;
    if (!at->progress.is_converged || o->draws == 0 || o->until != NULL ||
        config->sampler.until == NULL)
        return;
    tsr_info(log,
             "without '%s', as the run has reached that criterion: --draws "
             "sets the number of draws",
             config->sampler.until);
    free(config->sampler.until);
    config->sampler.until = NULL;
}

/* A damaged checkpoint must not become the one before the next. */
static tsr_status set_aside_checkpoint(const tsr_run_checkpoint *at,
                                       const char *directory, tsr_err *err)
{
    const tsr_path from = tsr_path_in(directory, "checkpoint.h5");
    const tsr_path to = tsr_path_in(directory, "checkpoint.h5.damaged");
    if (at->remark != NULL && rename(from.text, to.text) != 0 &&
        errno != ENOENT)
        return tsr_fail(err, TSR_E_IO, "cannot rename '%s': %s", from.text,
                        strerror(errno));
    return TSR_OK;
}

/* Opens the checkpoint. *is_new: the run was stopped before its first
 * checkpoint, and starts again from config.yaml and input/. */
static tsr_status read_checkpoint(const char *directory, tsr_run_checkpoint *at,
                                  int *is_new, tsr_err *err)
{
    TSR_TRY(tsr_run_directory_recover(directory, is_new, err));
    if (*is_new)
        return TSR_OK;
    tsr_status status = tsr_run_checkpoint_read(directory, 1, at, err);
    return status == TSR_E_NOINPUT
               ? tsr_wrap(
                     err, status,
                     "the run cannot be continued, and a restart would "
                     "overwrite its files; begin a new run in another folder")
               : status;
}

/* Takes the model error from the checkpoint, which must be of this
 * configuration and input. */
static tsr_status use_model_error(tsr_run_checkpoint *at, const char *directory,
                                  tsr_config *config, tsr_setup *setup,
                                  tsr_log *log, tsr_err *err)
{
    const tsr_path path = tsr_path_in(directory, "config.yaml");
    const tsr_run_identity identity = tsr_run_identity_of(setup);
    char *file = NULL, *text = NULL;
    size_t size;
    tsr_status status = tsr_file_read(path.text, &file, &size, err);
    TSR_THEN(status, tsr_run_inputs_text(config, &text, err));
    TSR_THEN(status, tsr_run_checkpoint_match(at, file, text, &identity, err));
    free(file);
    free(text);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", directory);
    tsr_archive_rewind(&at->error);
    setup->known_error = &at->error;
    if (at->error_text[0] == '\0')
        return TSR_OK;
    setup->data.model_error = at->error_text;
    at->error_text = NULL;
    tsr_info(log, "model error: %s (from the checkpoint)",
             setup->data.model_error);
    return TSR_OK;
}

/* The state of the checkpoint. */
static tsr_status restore_checkpoint(tsr_session *s, tsr_run_checkpoint *at,
                                     tsr_err *err)
{
    TSR_TRY(set_aside_checkpoint(at, s->directory, err));
    s->saved = at->saved;
    s->saved_progress = at->progress;
    at->saved = (tsr_archive){0};
    const tsr_status status = tsr_session_restore(s, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", s->directory);
    tsr_info(s->log,
             "resumed from the checkpoint of %s: %ld draws of warm-up, %ld "
             "kept; %d threads",
             at->written_at, s->progress.warmup, s->progress.draws,
             tsr_sampler_n_thread(s->sampler));
    const char *engine = s->setup->devices.text;
    if (strcmp(at->engine == NULL ? "" : at->engine,
               engine == NULL ? "" : engine) != 0)
        tsr_warn(s->log, "the device, its driver or the kernels changed since "
                         "the last session: further draws are valid, but not "
                         "bit-identical to those of an uninterrupted run");
    return TSR_OK;
}

static tsr_status continue_run(tsr_session *s, tsr_run_checkpoint *at,
                               int is_new, int is_json, FILE *out, tsr_err *err)
{
    tsr_status status =
        tsr_session_check_stop(s, tsr_session_prepare(s, err), err);
    if (status == TSR_E_INTERRUPTED)
        return status;
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", s->config->output.directory);
    TSR_TRY(is_new ? tsr_session_begin_again(s, err)
                   : restore_checkpoint(s, at, err));
    if (is_new)
        tsr_info(s->log,
                 "restarted from the beginning: the run was stopped before its "
                 "first checkpoint; %d threads",
                 tsr_sampler_n_thread(s->sampler));
    status = tsr_session_sample(s, err);
    TSR_THEN(status, print_result(s, is_json, out, err));
    if (status != TSR_OK && status != TSR_E_NO)
        tsr_log_write_file(s->log, TSR_LOG_ERROR, err->message);
    return status;
}

tsr_status tsr_resume_run(const char *directory, const tsr_run_options *o,
                          FILE *out, tsr_log *log, tsr_err *err)
{
    tsr_config config = {0};
    tsr_setup setup = {0};
    tsr_run_checkpoint at = {0};
    tsr_session session = {.config = &config, .setup = &setup, .log = log};
    int is_new = 0;
    int ignore_hang_up = tsr_hang_up_is_ignored();
    tsr_log_buffer(log);
    tsr_status status = tsr_run_directory_require(directory, err);
    TSR_THEN(status, tsr_lock_acquire(directory, &session.lock, err));
    if (status == TSR_OK)
        /* an interruption changes no file */
        tsr_interrupt_catch(ignore_hang_up);
    TSR_THEN(status, read_checkpoint(directory, &at, &is_new, err));
    if (status == TSR_OK && at.remark != NULL)
        tsr_warn(log, "%s", at.remark);
    TSR_THEN(status, read_config(o, directory, &config, err));
    if (status == TSR_OK && !is_new)
        status =
            check_draws(&at, &config, o->draws > 0 || o->until != NULL, err);
    if (status == TSR_OK) {
        drop_end_condition(&at, o, &config, log);
        extend_draws(&at, o, &config);
    }
    TSR_THEN(status,
             tsr_config_locate_error(
                 &config,
                 tsr_until_parse(config.sampler.until, &session.until, err),
                 err));
    TSR_THEN(status,
             tsr_session_check_stop(
                 &session, tsr_setup_read(&config, 1, log, &setup, err), err));
    if (status == TSR_OK && !is_new)
        status = use_model_error(&at, directory, &config, &setup, log, err);
    tsr_interrupt_block(1);
    TSR_THEN(status, tsr_setup_engine(&config, (int)at.identity.n_chain, log,
                                      &setup, err));
    if (session.lock != NULL)
        tsr_interrupt_catch(ignore_hang_up); /* names of the devices in use */
    tsr_interrupt_block(0);
    status = tsr_session_check_stop(&session, status, err);
    session.is_resumed = !is_new;
    TSR_THEN(status, continue_run(&session, &at, is_new, o->json, out, err));
    tsr_session_clear(&session);
    tsr_run_checkpoint_clear(&at);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}

static tsr_status resume(const tsr_args *args, FILE *out, tsr_log *log,
                         tsr_err *err)
{
    return tsr_resume_run(args->argument[0], args->options, out, log, err);
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
    TSR_FIELD(
        NUMBER_OR_WORD, "checkpoint-every", tsr_run_options, checkpoint_every,
        .argument = "SECONDS", .max = 86400.0,
        .words = (const char *const[]){"auto", NULL},
        .doc = "interval of checkpoints, instead of output.checkpoint_every"),
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

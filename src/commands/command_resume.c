/* tessera resume DIR: goes on from the last checkpoint to the same bits as if
 * the run had never stopped, so everything on which bits depend is compared
 * first. */
#include "answer/run_report.h"
#include "commands/command.h"
#include "core/interrupt.h"
#include "session/run_directory.h"
#include "session/run_session.h"

#include "store/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tsr_option options[] = {
    {.name = "draws",
     .argument = "N",
     .doc = "so many draws a chain in all, instead of sampler.draws"},
    {.name = "until",
     .argument = "WHAT",
     .doc = "go on until converged: rhat<1.01,ess>400 (--draws at most)"},
    {.name = "device",
     .argument = "DEVICE",
     .doc = "instead of device.use; another kind of device rounds otherwise"},
    {.name = "threads", .argument = "N", .doc = "instead of device.threads"},
    {.name = "checkpoint-every",
     .argument = "SECONDS",
     .doc = "instead of output.checkpoint_every"},
    {.name = "json",
     .doc = "the result as one JSON object, which says whether it converged"},
    {0}};

/* The config of the run, with what the command line changes. */
static tsr_status read_config(const tsr_args *args, const char *directory,
                              tsr_config *config, tsr_err *err)
{
    char *path = tsr_run_directory_file(directory, "config.yaml");
    TSR_TRY(tsr_allocated(path, err));
    tsr_status status = tsr_config_read(path, 0, NULL, config, err);
    free(path);
    if (status == TSR_OK) {
        free(config->output.directory);
        config->output.directory = strdup(directory);
        TSR_THEN(status, tsr_allocated(config->output.directory, err));
    }
    return status == TSR_OK ? tsr_run_options(args, config, err) : status;
}

/* In the trace, which is ahead of the checkpoint; 0 where it cannot be read,
 * which is said when it is opened to go on. */
static long draws_stored(const char *directory)
{
    tsr_trace_reader *reader = NULL;
    char *path = tsr_run_directory_file(directory, "trace.h5");
    long n = 0;
    if (path != NULL && tsr_trace_open(path, &reader, NULL) == TSR_OK)
        n = tsr_trace_n_draw(reader, TSR_TRACE_POSTERIOR);
    tsr_trace_reader_free(reader);
    free(path);
    return n;
}

/* Nothing to do, or less than nothing. */
static tsr_status check_draws(const tsr_run_checkpoint *at,
                              const tsr_config *config, int more_asked,
                              tsr_err *err)
{
    long draws = tsr_sampler_draws(&config->sampler);
    long stored = draws_stored(config->output.directory);
    long done = stored > at->place.draws ? stored : at->place.draws;
    if (draws < done)
        return tsr_fail(err, TSR_E_USAGE,
                        "--draws %ld: the run has %ld already", draws, done);
    if (at->place.is_finished && !more_asked)
        return tsr_fail(err, TSR_E_USAGE,
                        "the run in '%s' is finished; --draws N, with more "
                        "than %ld, extends it",
                        config->output.directory, done);
    return TSR_OK;
}

/* --until without --draws goes on until then: a hundred times the draws that
 * there are is no end that a user waits for, but files have one. */
static void lift_end(const tsr_run_checkpoint *at, const tsr_args *args,
                     tsr_config *config)
{
    const double most = tsr_until_draws((double)at->place.draws, 100.0);
    if (tsr_args_count(args, "until") > 0 &&
        tsr_args_count(args, "draws") == 0 &&
        most > (double)tsr_sampler_draws(&config->sampler))
        config->sampler.draws = (tsr_number_or_word){-1, most};
}

/* A run that had converged as asked goes on when it is told how long, and one
 * whose time was over gets more. */
static void drop_until(const tsr_run_checkpoint *at, const tsr_args *args,
                       tsr_config *config, tsr_log *log)
{
    if (at->place.is_finished)
        config->sampler.time_limit = 0.0;
    if (!at->place.is_converged || tsr_args_count(args, "draws") == 0 ||
        tsr_args_count(args, "until") > 0 || config->sampler.until == NULL)
        return;
    tsr_info(log, "without '%s', which the run has met: --draws says how long",
             config->sampler.until);
    free(config->sampler.until);
    config->sampler.until = NULL;
}

/* A damaged checkpoint must not become the one before the next. */
static tsr_status put_aside(const tsr_run_checkpoint *at, const char *directory,
                            tsr_err *err)
{
    tsr_status status = TSR_OK;
    if (at->remark == NULL)
        return TSR_OK;
    char *from = tsr_run_directory_file(directory, "checkpoint.h5");
    char *to = tsr_run_directory_file(directory, "checkpoint.h5.damaged");
    if (from == NULL || to == NULL)
        status = tsr_no_memory(err);
    else if (rename(from, to) != 0 && errno != ENOENT)
        status = tsr_fail(err, TSR_E_IO, "cannot rename '%s': %s", from,
                          strerror(errno));
    free(from);
    free(to);
    return status;
}

/* The checkpoint to go on from; *is_new: there is none, since the run was
 * stopped before its first one, and it begins with config.yaml and input/. */
static tsr_status read_checkpoint(const char *directory, tsr_run_checkpoint *at,
                                  int *is_new, tsr_err *err)
{
    TSR_TRY(tsr_run_directory_settle(directory, is_new, err));
    if (*is_new)
        return TSR_OK;
    tsr_status status = tsr_run_checkpoint_read(directory, 1, at, err);
    return status == TSR_E_NOINPUT
               ? tsr_wrap(err, status,
                          "the run cannot go on, and is not begun anew over "
                          "the files that it has; begin one in another folder")
               : status;
}

/* The state of the checkpoint. */
static tsr_status take_up(tsr_session *s, tsr_run_checkpoint *at, tsr_err *err)
{
    tsr_status status =
        tsr_run_checkpoint_match(at, s->config_text, &s->identity, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", s->directory);
    TSR_TRY(put_aside(at, s->directory, err));
    s->saved = at->saved;
    s->saved_place = at->place;
    at->saved = (tsr_archive){0};
    status = tsr_session_restore(s, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", s->directory);
    tsr_info(s->log,
             "resumed from the checkpoint of %s: %ld draws of warm-up, %ld "
             "kept; %d threads",
             at->written_at, s->place.warmup, s->place.draws,
             tsr_sampler_n_thread(s->sampler));
    const char *engine = s->setup->devices.text;
    if (strcmp(at->engine == NULL ? "" : at->engine,
               engine == NULL ? "" : engine) != 0)
        tsr_warn(s->log,
                 "the device, its driver or the kernels are not those of the "
                 "session before: from here on the draws are as good, but not "
                 "to the bit those of a run without a stop");
    return TSR_OK;
}

static tsr_status go_on(tsr_session *s, tsr_run_checkpoint *at, int is_new,
                        int is_json, FILE *out, tsr_err *err)
{
    tsr_status status =
        tsr_session_check_stop(s, tsr_session_prepare(s, err), err);
    if (status == TSR_E_INTERRUPTED)
        return status;
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", s->config->output.directory);
    TSR_TRY(is_new ? tsr_session_begin_again(s, err) : take_up(s, at, err));
    if (is_new)
        tsr_info(s->log,
                 "begun anew: the run was stopped before its first "
                 "checkpoint; %d threads",
                 tsr_sampler_n_thread(s->sampler));
    status = tsr_session_sample(s, err);
    TSR_THEN(status, tsr_run_report(s, is_json, out, err));
    if (status != TSR_OK && status != TSR_E_NO)
        tsr_log_keep(s->log, TSR_LOG_ERROR, err->message);
    return status;
}

static tsr_status resume(const tsr_args *args, FILE *out, tsr_log *log,
                         tsr_err *err)
{
    tsr_config config = {0};
    tsr_setup setup = {0};
    tsr_run_checkpoint at = {0};
    tsr_session session = {.config = &config, .setup = &setup, .log = log};
    const char *directory = tsr_args_argument(args);
    int is_new = 0;
    int ignore_hang_up = tsr_hang_up_is_ignored();
    tsr_log_hold(log);
    tsr_status status = tsr_run_directory_expect(directory, err);
    TSR_THEN(status, tsr_lock_take(directory, &session.lock, err));
    if (status == TSR_OK)
        /* a stop leaves all as it is */
        tsr_interrupt_catch(ignore_hang_up);
    TSR_THEN(status, read_checkpoint(directory, &at, &is_new, err));
    if (status == TSR_OK && at.remark != NULL)
        tsr_warn(log, "%s", at.remark);
    TSR_THEN(status, read_config(args, directory, &config, err));
    if (status == TSR_OK && !is_new)
        status = check_draws(&at, &config,
                             tsr_args_count(args, "draws") > 0 ||
                                 tsr_args_count(args, "until") > 0,
                             err);
    if (status == TSR_OK) {
        drop_until(&at, args, &config, log);
        lift_end(&at, args, &config);
    }
    TSR_THEN(status, tsr_config_blame(&config,
                                      tsr_until_parse(config.sampler.until,
                                                      &session.until, err),
                                      err));
    TSR_THEN(status,
             tsr_session_check_stop(
                 &session, tsr_setup_read(&config, 1, log, &setup, err), err));
    tsr_interrupt_hold(1);
    TSR_THEN(status, tsr_setup_engine(&config, (int)at.identity.n_chain, log,
                                      &setup, err));
    if (session.lock != NULL)
        tsr_interrupt_catch(ignore_hang_up); /* devices put in their own */
    tsr_interrupt_hold(0);
    status = tsr_session_check_stop(&session, status, err);
    session.is_resumed = !is_new;
    TSR_THEN(status, go_on(&session, &at, is_new,
                           tsr_args_count(args, "json") > 0, out, err));
    tsr_session_clear(&session);
    tsr_run_checkpoint_clear(&at);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}

const tsr_command tsr_command_resume = {
    .name = "resume",
    .doc = "continue a run from its last checkpoint",
    .usage = {.arguments = "DIR",
              .min_arguments = 1,
              .max_arguments = 1,
              .options = options,
              .about =
                  "Goes on to the same draws as if the run had never stopped, "
                  "with any number of threads; --draws extends a run that is "
                  "finished, and so does --until, which goes on until the "
                  "chains have converged; the exit status is 1 where that was "
                  "not reached. A run that was stopped before its first "
                  "checkpoint is begun anew. DIR may have been moved, also to "
                  "another "
                  "machine: it holds copies of what the run reads."},
    .run = resume};

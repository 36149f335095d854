/* Opens the files of a run. Messages describe a folder that is not a run, a run
 * without draws, and a run that has not ended. */
#include "session/past_run.h"

#include "analysis/frames.h"
#include "analysis/summary.h"
#include "core/text.h"
#include "files/file.h"
#include "files/lock.h"
#include "session/run_checkpoint.h"
#include "session/run_directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- folders without a trace ---- */

/* The last line of run.log without its time, or "". */
static void last_log_line(const char *directory, char line[TSR_EXCERPT_SIZE])
{
    char buffer[512] = "", last[512] = "";
    FILE *file = fopen(tsr_path_in(directory, "run.log").text, "r");
    while (file != NULL && fgets(buffer, sizeof buffer, file) != NULL)
        if (buffer[0] != '\n' && strchr(buffer, '\n') != NULL)
            memcpy(last, buffer, sizeof last);
    if (file != NULL)
        fclose(file);
    last[strcspn(last, "\n")] = '\0';
    const char *text = strchr(last, ' ');
    tsr_text_excerpt(text != NULL ? text + 1 : last, line);
}

static tsr_status report_no_trace(const char *directory, tsr_err *err)
{
    char line[TSR_EXCERPT_SIZE];
    TSR_TRY(tsr_run_directory_require(directory, err));
    last_log_line(directory, line);
    return tsr_fail(err, TSR_E_NOINPUT,
                    "'%s' contains a run without trace.h5: sampling has not "
                    "begun, or failed before; the last line of its log is '%s'",
                    directory, line);
}

/* ---- opening ---- */

static int is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static tsr_status open_trace(tsr_past_run *run, tsr_err *err)
{
    tsr_err local;
    tsr_status status = tsr_trace_open(run->trace_path, &run->trace, &local);
    if (status != TSR_OK) {
        const int can_repeat =
            status == TSR_E_DATA && run->directory != NULL &&
            tsr_run_directory_has(run->directory, "config.yaml");
        return tsr_fail(
            err, status, "%.1800s%s", local.message,
            can_repeat ? "; its config.yaml can repeat the run: tessera run"
                       : "");
    }
    return TSR_OK;
}

/* Chains and draws of a group, from its first variable over chain and draw. */
static void count_draws(tsr_trace_reader *trace, tsr_trace_group group,
                        int *n_chain, int *n_draw)
{
    const char *const *name;
    int chains, draws, n;
    int n_name = tsr_trace_variables(trace, group, &name);
    for (int i = 0; i < n_name; i++)
        if (tsr_trace_shape(trace, group, name[i], &chains, &draws, &n, NULL) ==
            TSR_OK) {
            *n_chain = chains;
            *n_draw = draws;
            return;
        }
}

/* Describes whether an unfinished run is still running, or how to resume it. */
static const char *describe_state(const tsr_past_run *run,
                                  char text[TSR_SHELL_SIZE + 80])
{
    char word[TSR_SHELL_SIZE];
    const size_t size = TSR_SHELL_SIZE + 80;
    tsr_lock_holder holder;
    if (run->directory == NULL)
        snprintf(text, size,
                 "a trace alone does not show whether the run is going on");
    else if (tsr_lock_query(run->directory, &holder, NULL) != TSR_OK)
        snprintf(text, size, "it is unknown whether the run is going on");
    else if (holder.is_held)
        snprintf(text, size, "it is running (process %ld on %s)", holder.pid,
                 tsr_text_excerpt(holder.host, word));
    else if (tsr_run_directory_has(run->directory, "checkpoint.h5"))
        snprintf(text, size, "it was stopped; to continue: tessera resume %s",
                 tsr_text_shell(run->directory, word));
    else
        snprintf(text, size, "it was stopped before its first checkpoint");
    return text;
}

/* Reads config.yaml. A file that cannot be read causes only a warning. */
static void read_config(tsr_past_run *run, tsr_log *log)
{
    tsr_err err = {.status = TSR_OK};
    if (run->directory == NULL)
        return;
    const tsr_status status =
        tsr_config_read(tsr_path_in(run->directory, "config.yaml").text, 0,
                        NULL, &run->config, &err);
    run->has_config = status == TSR_OK;
    if (status == TSR_OK)
        run->draws_requested = tsr_sampler_draws(&run->config.sampler);
    else
        tsr_warn(log, "the settings of the run are unknown: %s", err.message);
}

static tsr_status inspect_run(tsr_past_run *run, const char *path, tsr_log *log,
                              tsr_err *err)
{
    const char *const *name;
    const tsr_sampler_options *o = &run->config.sampler;
    tsr_run_checkpoint at = {.text = NULL};
    int warm_chains = 0;
    char state[TSR_SHELL_SIZE + 80], draws[80];
    count_draws(run->trace, TSR_TRACE_POSTERIOR, &run->n_chain, &run->n_draw);
    count_draws(run->trace, TSR_TRACE_WARMUP_POSTERIOR, &warm_chains,
                &run->n_warm);
    run->has_data =
        tsr_trace_variables(run->trace, TSR_TRACE_OBSERVED_DATA, &name) > 0;
    if (tsr_trace_variables(run->trace, TSR_TRACE_POSTERIOR, &name) == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has no group posterior, or nothing in it: no "
                        "trace of a run",
                        run->trace_path);
    read_config(run, log);
    if (run->n_draw == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has no draw yet: %d draws of warm-up, which do "
                        "not belong to the posterior; %s",
                        path, run->n_warm, describe_state(run, state));
    if (run->directory != NULL &&
        tsr_run_checkpoint_read(run->directory, 0, &at, NULL) == TSR_OK) {
        run->has_checkpoint = 1;
        run->progress = at.progress;
    }
    tsr_run_checkpoint_clear(&at);
    /* with these options, a run may end before all draws */
    run->is_finished =
        run->progress.is_finished && (o->until != NULL || o->time_limit > 0.0);
    if (run->draws_requested > run->n_draw && !run->is_finished) {
        tsr_sampler_draws_text(&run->config.sampler, run->n_draw, draws);
        tsr_warn(log,
                 "the run is not finished: %s; %s; results are preliminary",
                 draws, describe_state(run, state));
    }
    return TSR_OK;
}

tsr_status tsr_past_run_open(const char *path, tsr_past_run *run, tsr_log *log,
                             tsr_err *err)
{
    struct stat info;
    *run = (tsr_past_run){.trace = NULL};
    if (stat(path, &info) != 0)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    if (is_folder(path)) {
        if (!tsr_run_directory_has(path, "trace.h5"))
            return report_no_trace(path, err);
        run->directory = strdup(path);
        run->trace_path = tsr_text_format("%s/trace.h5", path);
        TSR_TRY(tsr_allocated(run->directory, err));
    } else {
        TSR_TRY(tsr_file_check_input(path, err));
        run->trace_path = strdup(path);
    }
    TSR_TRY(tsr_allocated(run->trace_path, err));
    TSR_TRY(open_trace(run, err));
    return inspect_run(run, path, log, err);
}

void tsr_past_run_clear(tsr_past_run *run)
{
    tsr_frames_free(run->frames);
    tsr_trace_reader_free(run->trace);
    tsr_config_clear(&run->config);
    free(run->directory);
    free(run->trace_path);
    *run = (tsr_past_run){.trace = NULL};
}

tsr_status tsr_past_run_open_prior(const char *path, tsr_past_run *prior,
                                   tsr_log *log, tsr_err *err)
{
    TSR_TRY(tsr_wrap(err, tsr_past_run_open(path, prior, log, err), "--prior"));
    if (prior->has_data)
        return tsr_fail(err, TSR_E_DATA,
                        "--prior: the run in '%s' used data; sample the prior "
                        "with: tessera run CONFIG --prior-only",
                        path);
    return TSR_OK;
}

/* *frames is NULL if the run has no folder. */
static tsr_status open_frames(const tsr_past_run *run, tsr_log *log,
                              tsr_frames **frames, tsr_err *why)
{
    *frames = NULL;
    return run->directory == NULL
               ? TSR_OK
               : tsr_frames_open(run->directory, log, frames, why);
}

/* Turns a failure to read conformations into a warning and success, without a
 * warning if the run has no conformations. Lack of memory and an unknown domain
 * remain errors. */
static tsr_status log_unreadable(tsr_status status, const tsr_err *why,
                                 tsr_log *log, tsr_err *err)
{
    if (status == TSR_E_NOMEM || status == TSR_E_USAGE)
        return tsr_fail(err, status, "%s", why->message);
    if (status != TSR_OK && status != TSR_E_NOINPUT)
        tsr_warn(log, "some conformations are left out: %s", why->message);
    return TSR_OK;
}

tsr_status tsr_past_run_shape(tsr_past_run *run, tsr_log *log,
                              tsr_shape **shape, char why[TSR_ERR_SIZE],
                              tsr_err *err)
{
    enum { MOST_FRAMES = 4000 };
    tsr_err local = {.status = TSR_OK};
    double *weight = NULL;
    *shape = NULL;
    why[0] = '\0';
    tsr_status status = open_frames(run, log, &run->frames, &local);
    if (status == TSR_OK && run->frames == NULL)
        return TSR_OK;
    TSR_THEN(status,
             tsr_frames_weights(run->frames, run->trace, &weight, &local));
    TSR_THEN(status,
             tsr_shape_make(run->frames, weight, MOST_FRAMES, shape, &local));
    free(weight);
    if (status != TSR_OK) {
        snprintf(why, TSR_ERR_SIZE, "%s", local.message);
        tsr_frames_free(run->frames);
        run->frames = NULL;
    }
    return log_unreadable(status, &local, log, err);
}

tsr_status tsr_past_run_arrangements(const tsr_past_run *run, int fixed,
                                     double threshold_ang, tsr_log *log,
                                     tsr_arrangements **out, tsr_err *err)
{
    tsr_err local = {.status = TSR_OK};
    tsr_frames *frames = run->frames;
    tsr_err absent = {.status = TSR_OK}; /* a trace may lack rg */
    int n_chain, n_draw;
    tsr_draw_values v = {0};
    tsr_status status = TSR_OK;
    *out = NULL;
    if (frames == NULL)
        status = open_frames(run, log, &frames, &local);
    if (frames != NULL)
        TSR_THEN(status, tsr_summary_draws(run->trace, "chi2", &v.n_chain,
                                           &v.n_draw, &v.chi2, &local));
    if (frames != NULL && status == TSR_OK) {
        v.n_group = tsr_trace_n_group(run->trace);
        (void)tsr_summary_draws(run->trace, "rg", &n_chain, &n_draw, &v.rg,
                                &absent);
        status = tsr_arrangements_make(frames, fixed, threshold_ang, &v, out,
                                       &local);
    }
    free(v.chi2);
    free(v.rg);
    if (frames != run->frames)
        tsr_frames_free(frames);
    return log_unreadable(status, &local, log, err);
}

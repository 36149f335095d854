/* Runs of the public library: a session (session/run_session.h) with a stop
 * flag of its own, and without handlers of signals. Draws of a run:
 * store/trace.h, store/trajectory.h. */
#include "library/library.h"

#include "core/log.h"
#include "files/file.h"
#include "session/run_session.h"
#include "store/trajectory.h"

#include <math.h>
#include <stdatomic.h>

_Static_assert(TESSERA_POSTERIOR == (int)TSR_TRACE_POSTERIOR &&
                   TESSERA_SAMPLE_STATS == (int)TSR_TRACE_SAMPLE_STATS &&
                   TESSERA_POSTERIOR_PREDICTIVE ==
                       (int)TSR_TRACE_POSTERIOR_PREDICTIVE &&
                   TESSERA_LOG_LIKELIHOOD == (int)TSR_TRACE_LOG_LIKELIHOOD &&
                   TESSERA_OBSERVED_DATA == (int)TSR_TRACE_OBSERVED_DATA &&
                   TESSERA_CONSTANT_DATA == (int)TSR_TRACE_CONSTANT_DATA,
               "the numbers of tessera.h stay while the soname stays");

/* ---- runs ---- */

struct tessera_run {
    atomic_int stop;
    atomic_int is_started;
    tsr_config config;
    tsr_setup setup;
    tsr_session session;
    tsr_log *log;
    tessera_progress progress;
    void *context;
};

static void watch(void *watcher, const char *phase, long done, long planned)
{
    tessera_run *r = watcher;
    if (!r->stop && r->progress != NULL &&
        r->progress(r->context, phase, done, planned) != 0)
        r->stop = 1;
}

static tsr_status read_run(tessera_run *r, const char *config,
                           const char *output, int n_set,
                           const char *const *set, tsr_err *err)
{
    r->log = tsr_log_new(NULL, TSR_LOG_INFO);
    TSR_TRY(tsr_allocated(r->log, err));
    tsr_log_buffer(r->log);
    r->session.config = &r->config;
    r->session.setup = &r->setup;
    r->session.log = r->log;
    r->session.watch = (tsr_watch){&r->stop, watch, r};
    TSR_TRY(tsr_config_read(config, n_set, set, &r->config, err));
    if (output != NULL) {
        free(r->config.output.directory);
        r->config.output.directory = strdup(output);
        TSR_TRY(tsr_allocated(r->config.output.directory, err));
    }
    return tsr_session_read(&r->session, err);
}

int tessera_run_new(const char *config, const char *output, int n_set,
                    const char *const *set, tessera_run **out)
{
    TSR_PUBLIC_NEW(out, config != NULL);
    TSR_REQUIRE(output == NULL || output[0] != '\0');
    TSR_REQUIRE(n_set >= 0 && (n_set == 0 || set != NULL));
    TSR_MAKE(out);
    TSR_MADE(read_run(*out, config, output, n_set, set, err), out,
             tessera_run_free);
}

int tessera_run_start(tessera_run *run, tessera_progress progress,
                      void *context)
{
    int expected = 0;
    TSR_PUBLIC(run != NULL);
    if (!atomic_compare_exchange_strong(&run->is_started, &expected, 1))
        return (int)tsr_fail(err, TSR_E_USAGE, "a run starts once");
    run->progress = progress;
    run->context = context;
    watch(run, "set-up", 0, 0);
    tsr_status status = tsr_session_check_stop(&run->session, TSR_OK, err);
    TSR_THEN(status,
             tsr_setup_engine(&run->config, 0, run->log, &run->setup, err));
    status = tsr_session_check_stop(&run->session, status, err);
    TSR_THEN(status, tsr_session_run(&run->session, err));
    return (int)status;
}

int tessera_run_numbers(const tessera_run *run, int n, double *value)
{
    TSR_PUBLIC(run != NULL && value != NULL);
    TSR_REQUIRE(n >= 0 && n <= TESSERA_RUN_N_NUMBER);
    const tsr_session_state *now = &run->session.now;
    const double all[TESSERA_RUN_N_NUMBER] = {[TESSERA_RUN_CHI2] = now->chi2,
                                              [TESSERA_RUN_LEFT] = now->left_s,
                                              [TESSERA_RUN_RHAT] = now->rhat,
                                              [TESSERA_RUN_ESS] = now->ess,
                                              [TESSERA_RUN_CONVERGED] =
                                                  now->converged};
    memcpy(value, all, (size_t)n * sizeof *value);
    return TESSERA_OK;
}

void tessera_run_stop(tessera_run *run)
{
    if (run != NULL)
        run->stop = 1;
}

const char *tessera_run_folder(const tessera_run *run)
{
    return run != NULL ? run->config.output.directory : "";
}

void tessera_run_free(tessera_run *run)
{
    if (run == NULL)
        return;
    tsr_session_clear(&run->session);
    tsr_setup_clear(&run->setup);
    tsr_config_clear(&run->config);
    tsr_log_free(run->log);
    free(run);
}

/* ---- draws ---- */

static tsr_trace_reader *trace_of(tessera_draws *draws)
{
    return (tsr_trace_reader *)draws;
}

int tessera_draws_open(const char *folder, tessera_draws **out)
{
    TSR_PUBLIC_NEW(out, folder != NULL);
    tsr_trace_reader *reader = NULL;
    const tsr_status status =
        tsr_trace_open(tsr_path_in(folder, "trace.h5").text, &reader, err);
    *out = (tessera_draws *)reader;
    return (int)status;
}

void tessera_draws_free(tessera_draws *draws)
{
    tsr_trace_reader_free(trace_of(draws));
}

static int is_group(int group)
{
    return group >= 0 && group < (int)TSR_TRACE_N_GROUP;
}

int tessera_draws_n_column(tessera_draws *draws, int group)
{
    const char *const *name;
    return draws != NULL && is_group(group)
               ? tsr_trace_variables(trace_of(draws), (tsr_trace_group)group,
                                     &name)
               : 0;
}

const char *tessera_draws_column(tessera_draws *draws, int group, int index)
{
    const char *const *name;
    if (index < 0 || index >= tessera_draws_n_column(draws, group))
        return NULL;
    tsr_trace_variables(trace_of(draws), (tsr_trace_group)group, &name);
    return name[index];
}

int tessera_draws_shape(tessera_draws *draws, int group, const char *column,
                        int *shape)
{
    TSR_PUBLIC(draws != NULL && column != NULL && shape != NULL);
    TSR_REQUIRE(is_group(group));
    return (int)tsr_trace_shape(trace_of(draws), (tsr_trace_group)group, column,
                                &shape[0], &shape[1], &shape[2], err);
}

int tessera_draws_read(tessera_draws *draws, int group, const char *column,
                       int64_t size, double *value)
{
    int shape[3];
    double *all = NULL;
    TSR_PUBLIC(value != NULL);
    const int status = tessera_draws_shape(draws, group, column, shape);
    if (status != TESSERA_OK)
        return status;
    const int64_t n = (int64_t)shape[0] * shape[1] * shape[2];
    TSR_REQUIRE(n <= size);
    TSR_CALL(tsr_trace_get(trace_of(draws), (tsr_trace_group)group, column,
                           &shape[0], &shape[1], &shape[2], &all, err));
    memcpy(value, all, (size_t)n * sizeof *value);
    free(all);
    return TESSERA_OK;
}

int tessera_draws_coordinates(tessera_draws *draws, int group,
                              const char *column, int size, double *value)
{
    int n;
    double *coordinate;
    TSR_PUBLIC(draws != NULL && column != NULL && value != NULL);
    TSR_REQUIRE(is_group(group));
    TSR_CALL(tsr_trace_coordinates(trace_of(draws), (tsr_trace_group)group,
                                   column, &n, &coordinate, err));
    tsr_status status = TSR_OK;
    if (coordinate == NULL)
        status = tsr_fail(err, TSR_E_DATA, "%s has no coordinates", column);
    else if (n != size)
        status = tsr_fail(err, TSR_E_USAGE, "%s has %d coordinates, not %d",
                          column, n, size);
    else
        memcpy(value, coordinate, (size_t)n * sizeof *value);
    free(coordinate);
    return (int)status;
}

int tessera_frames_open(const char *path, tessera_frames **out)
{
    TSR_PUBLIC_NEW(out, path != NULL);
    tsr_trajectory_reader *reader = NULL;
    const tsr_status status = tsr_trajectory_open(path, &reader, err);
    *out = (tessera_frames *)reader;
    return (int)status;
}

void tessera_frames_free(tessera_frames *frames)
{
    tsr_trajectory_reader_free((tsr_trajectory_reader *)frames);
}

int tessera_frames_shape(const tessera_frames *frames, int *shape)
{
    TSR_PUBLIC(frames != NULL && shape != NULL);
    const tsr_trajectory_info *info =
        tsr_trajectory_info_get((const tsr_trajectory_reader *)frames);
    shape[0] = info->n_frame;
    shape[1] = info->n_atom;
    shape[2] = info->n_body;
    return TESSERA_OK;
}

int tessera_frames_read(const tessera_frames *frames, int first, int n,
                        int64_t *draw, float *atom, float *body)
{
    TSR_PUBLIC(frames != NULL);
    return (int)tsr_trajectory_read((const tsr_trajectory_reader *)frames,
                                    first, n, draw, atom, body, err);
}

/* Runs of the public library: a session (session/run_session.h) with a stop
 * flag of its own, and without handlers of signals. */
#include "library/library.h"

#include "core/log.h"
#include "session/run_session.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

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
    r->session.stop = &r->stop;
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
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(config != NULL);
    TSR_REQUIRE(output == NULL || output[0] != '\0');
    TSR_REQUIRE(n_set >= 0 && (n_set == 0 || set != NULL));
    tessera_run *r = calloc(1, sizeof *r);
    TSR_CALL(tsr_allocated(r, err));
    const tsr_status status = read_run(r, config, output, n_set, set, err);
    if (status == TSR_OK)
        *out = r;
    else
        tessera_run_free(r);
    return (int)status;
}

static void watch(void *watcher, const char *phase, long done, long planned)
{
    tessera_run *r = watcher;
    if (!r->stop && r->progress(r->context, phase, done, planned) != 0)
        r->stop = 1;
}

int tessera_run_start(tessera_run *run, tessera_progress progress,
                      void *context)
{
    tsr_err *err = tsr_library_error();
    int expected = 0;
    TSR_REQUIRE(run != NULL);
    if (!atomic_compare_exchange_strong(&run->is_started, &expected, 1))
        return (int)tsr_fail(err, TSR_E_USAGE, "a run starts once");
    run->progress = progress;
    run->context = context;
    run->session.watch = progress != NULL ? watch : NULL;
    run->session.watcher = run;
    tsr_status status =
        tsr_setup_engine(&run->config, 0, run->log, &run->setup, err);
    status = tsr_session_check_stop(&run->session, status, err);
    TSR_THEN(status, tsr_session_run(&run->session, err));
    return (int)status;
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

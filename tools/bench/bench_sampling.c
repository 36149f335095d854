/* tessera bench --sampling: effective draws per second. Steps per second alone
 * do not measure a sampler, because a step may be small and a variable slow.
 * The smallest effective sample size over all variables is reported, poses of
 * domains and tails included. */
#include "bench/command_bench.h"

#include "analysis/summary.h"
#include "core/clock.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "session/run_directory.h"
#include "session/run_session.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *config;
    double seconds, steps_per_s;
    long draws; /* in each chain */
    int n_chain, n_variable, converged;
    double bulk, tail,
        rhat; /* smallest ESS, smallest ESS, largest; NaN: too few draws */
    char slowest[48], farthest[48];
} row;

/* ---- a run ---- */

static tsr_status summarise_trace(const char *trace, row *r, tsr_err *err)
{
    tsr_trace_reader *reader = NULL;
    tsr_summary *summary = NULL;
    r->bulk = r->tail = r->rhat = (double)NAN;
    if (r->draws < 4)
        return TSR_OK;
    r->bulk = r->tail = HUGE_VAL;
    r->rhat = 0.0;
    tsr_status status = tsr_trace_open(trace, &reader, err);
    TSR_THEN(status, tsr_summary_make(reader, &summary, err));
    for (int i = 0; status == TSR_OK && i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        const tsr_convergence *v = &item->value;
        if (item->flaw != TSR_FLAW_NONE)
            continue;
        r->n_variable++;
        if (fmin(v->ess_bulk, v->ess_tail) < fmin(r->bulk, r->tail))
            snprintf(r->slowest, sizeof r->slowest, "%s", item->name);
        if (v->rhat > r->rhat)
            snprintf(r->farthest, sizeof r->farthest, "%s", item->name);
        r->bulk = fmin(r->bulk, v->ess_bulk);
        r->tail = fmin(r->tail, v->ess_tail);
        r->rhat = fmax(r->rhat, v->rhat);
    }
    tsr_summary_free(summary);
    tsr_trace_reader_free(reader);
    return status;
}

/* ---- time limit ---- */

static void request_stop(int signal_number)
{
    int none = 0;
    atomic_compare_exchange_strong(&tsr_stop_requested, &none, signal_number);
}

/* 1 where the time limit requested the stop. */
static int is_out_of_time(void)
{
    return tsr_stop_requested == SIGALRM;
}

/* Requests a stop by SIGALRM after `seconds`. 0: cancels the request, and
 * forgets a stop that it has caused. */
static void stop_after(long seconds)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = request_stop;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)seconds);
    if (seconds == 0 && is_out_of_time())
        tsr_stop_requested = 0;
}

/* Starts the limit with the first steps. Device drivers have installed signal
 * handlers of their own by then. */
static void start_limit(void *context, const char *phase, long done,
                        long planned)
{
    long *seconds = context;
    (void)done, (void)planned;
    if (*seconds <= 0 || strcmp(phase, "set-up") == 0)
        return;
    tsr_interrupt_catch();
    stop_after(*seconds);
    *seconds = 0;
}

static tsr_status sample(tsr_session *s, long seconds, row *r, tsr_err *err)
{
    const double began = tsr_clock_s();
    s->watch.call = start_limit;
    s->watch.context = &seconds;
    tsr_status status = tsr_session_read(s, err);
    TSR_THEN(status, tsr_setup_engine(s->config, 0, s->log, s->setup, err));
    TSR_THEN(status, tsr_session_run(s, err));
    if (is_out_of_time() && status == TSR_E_INTERRUPTED)
        status = TSR_OK;
    r->seconds = tsr_clock_s() - began;
    r->steps_per_s =
        (double)s->progress.steps / fmax(s->progress.seconds, 1e-9);
    r->draws = s->progress.draws;
    r->n_chain = s->setup->n_chain;
    r->converged = s->progress.is_converged;
    return status;
}

/* Runs one configuration, with its output in `folder`. */
static tsr_status run_config(const tsr_bench_sampling_options *o,
                             const char *folder, tsr_log *log, row *r,
                             tsr_err *err)
{
    static const char *const own[] = {"sampler.draws=1000000",
                                      "output.trajectory=none"};
    enum { N_OWN = sizeof own / sizeof *own };
    char directory[512], device[300], until[64];
    const char **set = calloc((size_t)o->n_set + N_OWN + 3, sizeof *set);
    tsr_config config;
    tsr_setup setup = {0};
    tsr_session session = {.config = &config, .setup = &setup, .log = log};
    int n = 0;
    TSR_TRY(tsr_allocated(set, err));
    for (int k = 0; k < N_OWN; k++)
        set[n++] = own[k];
    for (int k = 0; k < o->n_set; k++)
        set[n++] = o->set[k];
    snprintf(directory, sizeof directory, "output.directory=%s/run", folder);
    snprintf(device, sizeof device, "device.use=%s", o->device);
    snprintf(until, sizeof until, "sampler.until=%s", tsr_sampler_until);
    set[n++] = directory;
    set[n++] = until;
    set[n++] = device;
    tsr_status status = tsr_config_read(r->config, n, set, &config, err);
    TSR_THEN(status, sample(&session, o->seconds, r, err));
    TSR_THEN(status, summarise_trace(session.trace.text, r, err));
    tsr_session_clear(&session);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    free(set);
    return status;
}

/* ---- the table ---- */

static void print_row(const row *r, tsr_table *t)
{
    const double converged = r->converged ? r->seconds : (double)NAN;
    char both[256];
    snprintf(both, sizeof both, " %s, %s", r->slowest, r->farthest);
    tsr_table_row(t, NULL);
    tsr_table_put(t,
                  "config|configuration %-28s chains|chains %6d draws %ld "
                  "variables %d seconds|seconds %8.1f "
                  "steps_per_second|steps/s %10.0f "
                  "least_ess_bulk_per_second|bulk/s %9.2f "
                  "least_ess_tail_per_second|tail/s %9.2f rhat|R-hat %7.3f "
                  "seconds_to_convergence|converged %10.1f~s "
                  "|~least,~largest~R-hat %-20s slowest %s largest_rhat %s",
                  r->config, r->n_chain, r->draws, r->n_variable, r->seconds,
                  r->steps_per_s, r->bulk / r->seconds, r->tail / r->seconds,
                  r->rhat, converged, both, r->slowest, r->farthest);
    tsr_table_end(t);
}

/* ---- all configurations ---- */

static void remove_folder(const char *folder)
{
    static const char *const inner[] = {"/run/input", "/run", ""};
    char path[300];
    for (int k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s%s", folder, inner[k]);
        tsr_run_directory_remove(path);
    }
}

static tsr_status run_all(const tsr_bench_sampling_options *o, int n,
                          const char *const *config, tsr_table *table,
                          tsr_log *log, tsr_err *err)
{
    tsr_status status = TSR_OK;
    if (table->json != NULL) {
        tsr_json_object(table->json, NULL);
        tsr_json_array(table->json, "sampling");
    } else {
        fputs("Effective draws a second, the least of all variables, from the "
              "start of each\nrun, warm-up included; converged: R-hat < 1.01 "
              "and ESS > 400 of all of them.\n\n",
              table->out);
    }
    for (int k = 0; k < n && status == TSR_OK; k++) {
        const char *where = getenv("TMPDIR");
        char folder[256];
        tsr_err why = {0};
        row r = {.config = config[k]};
        snprintf(folder, sizeof folder, "%s/tessera-bench-XXXXXX",
                 where != NULL ? where : "/tmp");
        if (mkdtemp(folder) == NULL)
            return tsr_fail(err, TSR_E_IO, "cannot make %s", folder);
        tsr_status own = run_config(o, folder, log, &r, &why);
        remove_folder(folder);
        if (tsr_stop_requested && !is_out_of_time())
            status = tsr_fail(err, TSR_E_INTERRUPTED, "interrupted");
        else if (own != TSR_OK && n == 1)
            status = tsr_fail(err, own, "%s", why.message);
        else if (own != TSR_OK)
            tsr_warn(log, "%s is left out: %s", config[k], why.message);
        else
            print_row(&r, table);
        stop_after(0);
    }
    return status;
}

tsr_status tsr_bench_sampling(const tsr_bench_sampling_options *options,
                              tsr_table *table, tsr_log *log, tsr_err *err)
{
    glob_t found = {0};
    if (options->n_config > 0)
        return run_all(options, options->n_config, options->config, table, log,
                       err);
    glob("configs/demo/demo.yaml", 0, NULL, &found);
    glob("configs/*.yaml", found.gl_pathc > 0 ? GLOB_APPEND : 0, NULL, &found);
    tsr_status status =
        found.gl_pathc == 0
            ? tsr_fail(err, TSR_E_NOINPUT,
                       "there is no configs/*.yaml here: name configurations")
            : run_all(options, (int)found.gl_pathc,
                      (const char *const *)found.gl_pathv, table, log, err);
    globfree(&found);
    return status;
}

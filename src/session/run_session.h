/* A session of a run, from `tessera run` or `tessera resume` until the run ends
 * or stops.
 *
 * A run is a sequence of draws: first warm-up draws, then kept draws. An epoch
 * is a fixed number of draws, which the configuration determines. At the start
 * of every epoch all chains are recomputed, and their state is saved in memory.
 * A checkpoint on disk is the last saved state. A resumed run therefore repeats
 * the draws after its checkpoint with identical bits. Draws are appended to a
 * log. At some checkpoints and at the end, trace.h5 and the trajectories are
 * rewritten with the draws of the log.
 *
 * The calls of a run from C. They print nothing; messages go to the log:
 *
 *     tsr_session session = {.config = &config, .setup = &setup, .log = log};
 *     tsr_config_read(path, 0, NULL, &config, &err);   or tsr_session_reopen
 *     tsr_session_read(&session, &err);
 *     tsr_setup_engine(&config, (int)session.checkpoint.identity.n_chain, log,
 *                      &setup, &err);
 *     tsr_session_run(&session, &err);
 *     tsr_session_clear(&session);  tsr_setup_clear(...); tsr_config_clear(...)
 */
#ifndef TSR_SESSION_RUN_SESSION_H
#define TSR_SESSION_RUN_SESSION_H

#include "core/archive.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "files/file.h"
#include "files/lock.h"
#include "posterior/config.h"
#include "posterior/setup.h"
#include "sampler/record.h"
#include "sampler/sampler.h"
#include "sampler/trajectory_writer.h"
#include "session/run_checkpoint.h"
#include "session/until.h"
#include "store/draw_log.h"
#include "store/trace.h"

#include <stdio.h>

/* How far a session is; NaN: not known yet. */
typedef struct {
    double chi2;      /* per point at temperature 1, mean over chains */
    double left_s;    /* estimated time until the end */
    double rhat, ess; /* of the variable that is farthest from sampler.until */
    double converged; /* draws, as a share of those that sampler.until needs */
} tsr_session_state;

/* A session. The caller sets config, setup and log, may set watch, and zeroes
 * the rest. */
typedef struct {
    tsr_config *config;
    tsr_setup *setup;
    tsr_log *log;
    tsr_watch watch; /* its call counts the steps of a phase, in the set-up the
                        conformations from which the model error is learnt */
    tsr_session_state now; /* for the watch */
    const char *directory; /* of the configuration; set with `trace`, the path
                              of trace.h5, before anything is written */
    tsr_path trace;
    char *config_text; /* content of config.yaml */
    tsr_until until;
    tsr_lock *lock;
    tsr_sampler *sampler;
    tsr_record *record;
    tsr_trajectory_writer *writer; /* NULL: no trajectories */
    tsr_draw_log *draws;           /* NULL: not created yet, or closed */

    tsr_run_progress progress;
    tsr_run_progress saved_progress; /* progress at the state in `saved` */
    tsr_archive saved, saved_error;  /* state of the sampler, model errors */
    tsr_run_identity identity;
    double next_checkpoint; /* time of the next checkpoint, s (tsr_clock_s) */
    double next_update; /* earliest time to rewrite trace and trajectories, s
                           (tsr_clock_s) */
    long n_updated;     /* draws in trace and trajectories, with warm-up */
    double storing;     /* s spent on writing in this session */
    int is_broken;      /* 1: the files can no longer be written */
    tsr_run_checkpoint checkpoint; /* of a reopened run */
    int is_resumed; /* 1: the chains will be restored from `checkpoint` */
} tsr_session;

/* Opens the folder of a run to continue it, in place of tsr_config_read: takes
 * its lock, mends what a kill left, reads its checkpoint, and its config.yaml
 * into session->config, with the overrides set [n_set] of keys that may change
 * (tsr_run_checkpoint_match). The caller may then change these keys as well,
 * with a mark (config->marks). Errors: TSR_E_NOINPUT (no run, or without
 * checkpoint), TSR_E_USAGE (a key that may not change), those of
 * tsr_lock_acquire, tsr_run_checkpoint_read and tsr_config_read. */
tsr_status tsr_session_reopen(tsr_session *session, const char *directory,
                              int n_set, const char *const *set, tsr_err *err);

/* Reads the input and makes prior and likelihood. This function, and
 * tsr_setup_engine after it, find all errors of the configuration before
 * anything is written, so that a refused run leaves no folder. Errors: those of
 * tsr_run_directory_check, tsr_until_parse and tsr_setup_read;
 * TSR_E_INTERRUPTED; of a reopened run TSR_E_USAGE (it has as many draws, or is
 * finished) and those of tsr_run_checkpoint_match. */
tsr_status tsr_session_read(tsr_session *session, tsr_err *err);

/* To be called after every step of the set-up. If a stop was requested, returns
 * TSR_E_INTERRUPTED, with advice on how to continue, in place of TSR_OK; else
 * returns `status`. */
tsr_status tsr_session_check_stop(const tsr_session *session, tsr_status status,
                                  tsr_err *err);

/* Runs a session whose engines are ready: creates the folder or restores the
 * checkpoint, draws until the run ends, a stop is requested or an error occurs,
 * and writes the last checkpoint, trace and trajectories. The message of an
 * error says how to continue. Errors: TSR_E_INTERRUPTED, TSR_E_DATA (checkpoint
 * and files do not match), TSR_E_IO, TSR_E_DEVICE, TSR_E_NOMEM. */
tsr_status tsr_session_run(tsr_session *session, tsr_err *err);

/* The part of rank 1, 2, ... (core/ranks.h) in a session that rank 0 runs or
 * estimates, after TSR_WORK_RUN was announced: sets up the same run from what
 * rank 0 sends, and carries out the calls of rank 0's sampler. Writes nothing.
 * Errors: those of tsr_session_read, tsr_setup_engine and tsr_session_run,
 * which rank 0 has, too. */
tsr_status tsr_session_follow(tsr_log *log, tsr_err *err);

/* Measures the speed of a run: makes warm-up steps for at least `seconds`,
 * without writing files. Called after tsr_setup_engine. The session cannot be
 * run afterwards.
 * start  out  s to prepare the chains
 * each   out  s for one draw, kept or warm-up, of all chains
 * Errors: those of tsr_session_run. */
tsr_status tsr_session_estimate(tsr_session *session, double seconds,
                                double *start, double *each, tsr_err *err);

void tsr_session_clear(tsr_session *session);

/* ---- reports ---- */

/* Prints molecule, data, engines, plan and file sizes, for --dry-run. */
void tsr_run_plan(const tsr_config *config, const tsr_setup *setup, FILE *out);

#endif

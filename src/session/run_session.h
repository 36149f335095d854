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
 *     tsr_config_read(path, 0, NULL, &config, &err);
 *     tsr_session session = {.config = &config, .setup = &setup, .log = log};
 *     tsr_session_read(&session, &err);
 *     tsr_setup_engine(&config, 0, log, &setup, &err);
 *     tsr_session_run(&session, &err);
 *     tsr_session_clear(&session);  tsr_setup_clear(...); tsr_config_clear(...)
 */
#ifndef TSR_SESSION_RUN_SESSION_H
#define TSR_SESSION_RUN_SESSION_H

#include "core/archive.h"
#include "core/interrupt.h"
#include "core/log.h"
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
    char *directory, *trace_path;
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
    int is_resumed;     /* 1: the chains will be restored from a checkpoint */
} tsr_session;

/* Reads the input and makes prior and likelihood. This function, and
 * tsr_setup_engine after it, find all errors of the configuration before
 * anything is written, so that a refused run leaves no folder. Errors: those of
 * tsr_run_directory_check, tsr_until_parse and tsr_setup_read;
 * TSR_E_INTERRUPTED. */
tsr_status tsr_session_read(tsr_session *session, tsr_err *err);

/* To be called after every step of the set-up. If a stop was requested, returns
 * TSR_E_INTERRUPTED, with advice on how to continue, in place of TSR_OK; else
 * returns `status`. */
tsr_status tsr_session_check_stop(const tsr_session *session, tsr_status status,
                                  tsr_err *err);

/* Runs a session whose engines are ready: creates the folder, draws, and writes
 * the last checkpoint. Errors: those of tsr_session_prepare, tsr_session_begin
 * and tsr_session_sample. */
tsr_status tsr_session_run(tsr_session *session, tsr_err *err);

/* Measures the speed of a run: makes warm-up steps for at least `seconds`,
 * without writing files. Called after tsr_setup_engine. The session cannot be
 * run afterwards.
 * start  out  s to prepare the chains
 * each   out  s for one draw, kept or warm-up, of all chains
 * Errors: those of tsr_session_prepare and of drawing. */
tsr_status tsr_session_estimate(tsr_session *session, double seconds,
                                double *start, double *each, tsr_err *err);

/* Makes the record, the trajectory writer and the sampler, with starts drawn
 * from the prior if sampler.start is `prior`. Config and setup are borrowed. */
tsr_status tsr_session_prepare(tsr_session *session, tsr_err *err);

/* Creates the folder of a new run with all files that it has before its first
 * draw. On failure the folder is restored to its former state. */
tsr_status tsr_session_begin(tsr_session *session, tsr_err *err);

/* Creates the files of a run that was stopped before its first checkpoint. The
 * lock is held. After a failure, created files stay. */
tsr_status tsr_session_begin_again(tsr_session *session, tsr_err *err);

/* Restores sampler and files to the checkpoint in `saved` and saved_progress.
 * Called after tsr_session_prepare. Errors: TSR_E_DATA (checkpoint and files do
 * not match), TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_session_restore(tsr_session *session, tsr_err *err);

/* Draws until the run ends, a signal requests a stop (TSR_E_INTERRUPTED), or an
 * error occurs. Then writes a checkpoint, trace and trajectories, unless
 * writing has already failed. The message states how to continue. */
tsr_status tsr_session_sample(tsr_session *session, tsr_err *err);

void tsr_session_clear(tsr_session *session);

/* ---- reports ---- */

/* Prints molecule, data, engines, plan and file sizes, for --dry-run. */
void tsr_run_plan(const tsr_config *config, const tsr_setup *setup, FILE *out);

#endif

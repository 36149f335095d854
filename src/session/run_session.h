/* A run while it goes on: what `tessera run` begins and `tessera resume` takes
 * up again.
 *
 * The run is a line of draws: those of warm-up, then those that are kept. After
 * every few draws (an epoch: a number that the configuration alone decides) all
 * chains are computed afresh, and their state is saved in memory; a checkpoint
 * on disk is the newest of these. A run that is resumed therefore repeats the
 * few draws after it, and goes on to the same bits. Draws go to a log; trace.h5
 * and the trajectories are made from it now and then and at the end.
 *
 * From C a run is these calls, none of which prints; what it says goes to the
 * log:
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

typedef struct {
    tsr_config *config;
    tsr_setup *setup;
    tsr_log *log;
    char *directory, *trace_path;
    char *config_text; /* as in config.yaml */
    tsr_until until;
    tsr_lock *lock;
    tsr_sampler *sampler;
    tsr_record *record;
    tsr_trajectory_writer *writer; /* trajectories; NULL: none are asked for */
    tsr_draw_log *draws; /* NULL: the files are not there yet, or closed */

    tsr_run_progress progress;
    tsr_run_progress saved_progress; /* of the state in `saved` */
    tsr_archive saved;
    tsr_run_identity identity;
    double next_checkpoint; /* s, monotonic clock */
    double next_update;     /* of trace and trajectories, at the earliest */
    long n_updated;         /* draws, with warm-up, that they have */
    double storing;         /* s that writing took in this session */
    long accepted_before_session;
    int is_broken;  /* files cannot be written any more */
    int is_resumed; /* its chains will be restored */
} tsr_session;

/* Reads what the configuration names, makes prior and likelihood. What can be
 * wrong is found here and by tsr_setup_engine, which comes next, before
 * anything is written, so that a refused run leaves no folder behind. Errors:
 * those of tsr_setup_read; TSR_E_INTERRUPTED. */
tsr_status tsr_session_read(tsr_session *session, tsr_err *err);

/* Behind every step of the set-up: TSR_E_INTERRUPTED, and how to go on, where a
 * stop is asked for; else `status`. */
tsr_status tsr_session_check_stop(const tsr_session *session, tsr_status status,
                                  tsr_err *err);

/* From a session with engines to the last draw: the folder, warm-up, draws, the
 * last checkpoint. Errors: those of what follows. */
tsr_status tsr_session_run(tsr_session *session, tsr_err *err);

/* How long it would take: warm-up steps for `seconds` at least, of which
 * nothing is kept or written. *start: s to prepare; *each: s a draw of all
 * chains, or of warm-up. After tsr_setup_engine; the session cannot be run
 * afterwards. Errors: those of tsr_session_prepare and of drawing. */
tsr_status tsr_session_estimate(tsr_session *session, double seconds,
                                double *start, double *each, tsr_err *err);

/* Record and sampler at the start. Config and setup are borrowed. */
tsr_status tsr_session_prepare(tsr_session *session, tsr_err *err);

/* A new run's folder with everything that it needs before the first step,
 * the first checkpoint included; or as it was before. */
tsr_status tsr_session_begin(tsr_session *session, tsr_err *err);

/* The same in the folder of a run that was stopped before its first
 * checkpoint, whose lock is held; what was made stays. */
tsr_status tsr_session_begin_again(tsr_session *session, tsr_err *err);

/* Sampler and files as the checkpoint in `saved` and saved_progress have them;
 * after tsr_session_prepare. Errors: TSR_E_DATA (what they hold does not go
 * together). */
tsr_status tsr_session_restore(tsr_session *session, tsr_err *err);

/* Draws until all are there, or a signal asks to stop (TSR_E_INTERRUPTED), or
 * something fails. Then closes the files and leaves a checkpoint, where that
 * can be; the message says how to go on. */
tsr_status tsr_session_sample(tsr_session *session, tsr_err *err);

void tsr_session_clear(tsr_session *session);

/* ---- what a run says of itself ----
 *
 * What a run says of itself before it starts and while it goes on. */

/* For --dry-run. */
void tsr_run_plan(const tsr_config *config, const tsr_setup *setup, FILE *out);

/* ---- of its sampler, while it goes on and at its end, to the log ---- */

#endif

/* A run as it is found on the disk: finished, running, stopped, or nothing of
 * the kind; what the commands that only read begin with. */
#ifndef TSR_SESSION_PAST_RUN_H
#define TSR_SESSION_PAST_RUN_H

#include "analysis/arrangements.h"
#include "analysis/shape.h"
#include "core/log.h"
#include "posterior/config.h"
#include "session/run_checkpoint.h"
#include "store/trace.h"

typedef struct {
    char *directory; /* NULL: the trace alone was named */
    char *trace_path;
    tsr_trace_reader *trace;
    int has_config; /* config.yaml is there and can be read */
    tsr_config config;
    int has_data;        /* 0: the prior was sampled */
    int n_chain, n_draw; /* of the posterior */
    int n_warm;          /* draws of warm-up */
    long asked;          /* draws a chain, at most; 0: not known */
    int has_checkpoint;
    tsr_run_progress
        progress;    /* of the newest checkpoint, where that is there */
    int is_finished; /* before all of them: converged, or out of time */
} tsr_past_run;

/* Opens the run in the folder `path`, or a trace.h5 itself. A run that has
 * fewer draws than were asked for, and so on, is told to `log` as a remark.
 * The caller clears `run`, also after an error.
 * Errors, each with what was found and what to do: TSR_E_NOINPUT (no such
 * folder, an empty one, one of something else, a run without a trace yet);
 * TSR_E_DATA (the trace is damaged or no trace; no draw yet). */
tsr_status tsr_past_run_open(const char *path, tsr_past_run *run, tsr_log *log,
                             tsr_err *err);
void tsr_past_run_clear(tsr_past_run *run);

/* Opens the run of the prior alone that is compared with `run`. Errors: as
 * above; TSR_E_DATA where it has seen data. */
tsr_status tsr_past_run_open_prior(const char *path, tsr_past_run *prior,
                                   tsr_log *log, tsr_err *err);

/* The conformations of the run and what they have in common; both NULL where
 * there are none, and `why` says why. The caller frees both, also after an
 * error. Errors: TSR_E_NOMEM. */
tsr_status tsr_past_run_shape(const tsr_past_run *run, tsr_log *log,
                              tsr_frames **frames, tsr_shape **shape,
                              char why[TSR_ERR_SIZE], tsr_err *err);

/* Their arrangements, as tsr_arrangements_make takes fixed and threshold; NULL
 * where there are none. Errors: TSR_E_NOMEM; TSR_E_USAGE (no such domain). */
tsr_status tsr_past_run_arrangements(const tsr_past_run *run, int fixed,
                                     double threshold_ang, tsr_log *log,
                                     tsr_arrangements **out, tsr_err *err);

#endif

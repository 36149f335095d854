/* Opens the folder of a run, finished, running or stopped, for the commands
 * that only read it. */
#ifndef TSR_SESSION_PAST_RUN_H
#define TSR_SESSION_PAST_RUN_H

#include "analysis/arrangements.h"
#include "analysis/shape.h"
#include "core/log.h"
#include "posterior/config.h"
#include "session/run_checkpoint.h"
#include "store/trace.h"

/* A run on disk. */
typedef struct {
    char *directory; /* NULL: only a trace file was given */
    char *trace_path;
    tsr_trace_reader *trace;
    tsr_frames *frames; /* from tsr_past_run_shape on; NULL: none */
    int has_config;     /* 1: config.yaml was read into `config` */
    tsr_config config;
    int has_data;        /* 0: a run of the prior */
    int n_chain, n_draw; /* of the posterior group: chains, and draws per
                            chain */
    int n_warm;          /* warm-up draws per chain */
    /* Largest number of draws per chain that the configuration requests; 0:
     * unknown. */
    long draws_requested;
    int has_checkpoint;
    tsr_run_progress progress; /* of the newest checkpoint, if has_checkpoint */
    int is_finished; /* 1: the run has ended, under a configuration with
                        sampler.until or time_limit, so that it may have fewer
                        draws than requested */
} tsr_past_run;

/* Opens the run in the folder `path`, or a trace.h5. If the run has not ended
 * and has fewer draws than requested, warns, and reports whether it is still
 * running or how to resume it. The caller clears `run`, also after an error.
 * Errors, each with the cause and a remedy: TSR_E_NOINPUT (no such folder,
 * not a folder of a run, no trace yet); TSR_E_DATA (the trace
 * is damaged, is not a trace, or has no draws); TSR_E_NOMEM. */
tsr_status tsr_past_run_open(const char *path, tsr_past_run *run, tsr_log *log,
                             tsr_err *err);
void tsr_past_run_clear(tsr_past_run *run);

/* Opens a run of the prior, for comparison. Errors: those of tsr_past_run_open;
 * TSR_E_DATA if the run used data. */
tsr_status tsr_past_run_open_prior(const char *path, tsr_past_run *prior,
                                   tsr_log *log, tsr_err *err);

/* Opens run->frames, the conformations of the run, and computes their
 * distances, mobility, P(r) and domains. If there are no conformations, both
 * are NULL, and `why` is the reason ("" if the run has no folder). The caller
 * frees the shape, also after an error. Errors: TSR_E_NOMEM. */
tsr_status tsr_past_run_shape(tsr_past_run *run, tsr_log *log,
                              tsr_shape **shape, char why[TSR_ERR_SIZE],
                              tsr_err *err);

/* Arrangements of the domains (arguments as of tsr_arrangements_make); *out is
 * NULL if there are no conformations. Errors: TSR_E_NOMEM; TSR_E_USAGE (no such
 * domain). */
tsr_status tsr_past_run_arrangements(const tsr_past_run *run, int fixed,
                                     double threshold_ang, tsr_log *log,
                                     tsr_arrangements **out, tsr_err *err);

#endif

/* What `tessera run` says to standard output: its plan, and its result. */
#ifndef TSR_RUN_RUN_REPORT_H
#define TSR_RUN_RUN_REPORT_H

#include "analysis/summary.h"
#include "core/log.h"
#include "run/config.h"
#include "run/setup.h"

typedef struct {
    double start_chi2, start_rg; /* chi2: NaN without data */
    double seconds;              /* of sampling, warm-up included */
    long steps;                  /* of all chains */
    long n_draw;                 /* stored a chain */
    int is_json;                 /* 1: one JSON object instead of the table */
} tsr_run_outcome;

/* For --dry-run. */
void tsr_run_plan(const tsr_config *config, const tsr_setup *setup, FILE *out);

/* How much the run will write, to the log; a warning where the disk has less
 * room. */
void tsr_run_tell_size(const tsr_config *config, const tsr_setup *setup,
                       tsr_log *log);

/* Warns where c1 or c2 lies against an end of its prior. */
void tsr_run_tell_bounds(const tsr_config *config, const tsr_summary *summary,
                         tsr_log *log);

/* The verdict, and the table at the end of a run, from its folder; where it has
 * not converged, a warning with the line that goes on. As JSON: converged,
 * rhat, ess and of which variables, directory, n_chain, n_draw, steps, seconds,
 * {mean, q5, q95} of chi2 and rg, and the verdict. likelihood NULL: there were
 * no data. Errors: those of reading a run; TSR_E_NO, without a message, where
 * it has not converged as sampler.until asks. */
tsr_status tsr_run_report(const tsr_config *config,
                          const tsr_likelihood *likelihood,
                          const tsr_run_outcome *outcome, tsr_log *log,
                          FILE *out, tsr_err *err);

#endif

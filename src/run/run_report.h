/* What `tessera run` says: its plan and its result to standard output, and to
 * the log how its sampler fares. */
#ifndef TSR_RUN_RUN_REPORT_H
#define TSR_RUN_RUN_REPORT_H

#include "analysis/summary.h"
#include "core/log.h"
#include "run/config.h"
#include "run/setup.h"
#include "sampler/sampler.h"

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

/* ---- of its sampler, while it goes on and at its end, to the log ---- */

/* Moves with a weight above 0 that have nothing to move here. */
void tsr_tell_idle_moves(const tsr_setup *setup, tsr_log *log);

/* Proposals and acceptance by move, at temperature 1. */
void tsr_tell_moves(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log);

/* Temperatures of the first chain, how often neighbours were exchanged, round
 * trips; nothing with one temperature. */
void tsr_tell_ladder(const tsr_setup *setup, const tsr_sampler *sampler,
                     tsr_log *log);

/* How often bodies gave a draw of all atoms, where draws are of them. */
void tsr_tell_atoms(const tsr_sampler *sampler, tsr_log *log);

/* Where the host's time went. */
void tsr_tell_times(const tsr_sampler *sampler, tsr_log *log);

/* After warm-up: chains that it left far behind the others, or where they
 * started. */
void tsr_tell_stuck(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log);

#endif

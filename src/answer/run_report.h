/* The result that `tessera run` and `tessera resume` print at their end. */
#ifndef TSR_ANSWER_RUN_REPORT_H
#define TSR_ANSWER_RUN_REPORT_H

#include "analysis/summary.h"
#include "session/run_session.h"

/* Prints the verdict and a table of results, from the run's folder. If the run
 * has not converged, the log gets a warning with the command that continues the
 * run. JSON: converged, rhat and ess with the names of their variables,
 * directory, n_chain, n_draw, steps, seconds, {start, mean, q5, q95} of chi2
 * and rg, and the verdict. Errors: those of tsr_past_run_open and
 * tsr_verdict_of_run; TSR_E_NO, without a message, where sampler.until is set
 * and the run has not converged. */
tsr_status tsr_run_report(const tsr_session *session, int is_json, FILE *out,
                          tsr_err *err);

#endif

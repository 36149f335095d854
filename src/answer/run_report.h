/* The result that `tessera run` and `tessera resume` print at their end. */
#ifndef TSR_ANSWER_RUN_REPORT_H
#define TSR_ANSWER_RUN_REPORT_H

#include "analysis/summary.h"
#include "session/run_session.h"

/* Prints the verdict and a table of results, from the run's folder. If the run
 * has not converged, the log gets a warning with the command that continues it.
 * JSON: converged, rhat and ess with their variables, directory, n_chain,
 * n_draw, steps, seconds, {mean, q5, q95} of chi2 and rg, and the verdict.
 * Errors: those of reading a run; TSR_E_NO, without a message, where the run
 * has not converged by sampler.until. */
tsr_status tsr_run_report(const tsr_session *session, int is_json, FILE *out,
                          tsr_err *err);

#endif

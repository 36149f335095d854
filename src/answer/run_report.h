/* What `tessera run` and `resume` say at their end. */
#ifndef TSR_ANSWER_RUN_REPORT_H
#define TSR_ANSWER_RUN_REPORT_H

#include "analysis/summary.h"
#include "session/run_session.h"

/* The verdict, and the table at the end of a run, from its folder; where it has
 * not converged, a warning with the line that goes on. As JSON: converged,
 * rhat, ess and of which variables, directory, n_chain, n_draw, steps, seconds,
 * {mean, q5, q95} of chi2 and rg, and the verdict. Errors: those of reading a
 * run; TSR_E_NO, without a message, where it has not converged as
 * sampler.until asks. */
tsr_status tsr_run_report(const tsr_session *session, int is_json, FILE *out,
                          tsr_err *err);

#endif

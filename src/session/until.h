/* run --until: stop when the chains have converged. */
#ifndef TSR_SESSION_UNTIL_H
#define TSR_SESSION_UNTIL_H

#include "analysis/summary.h"
#include "core/status.h"

/* The criteria. */
typedef struct {
    double rhat; /* largest R-hat allowed; infinite: no criterion */
    double ess;  /* smallest bulk and tail ESS allowed; 0: no criterion */
} tsr_until;

/* Parses "rhat<1.01,ess>400", one or both; NULL or "": no criterion. Errors:
 * TSR_E_CONFIG. */
tsr_status tsr_until_parse(const char *text, tsr_until *until, tsr_err *err);

/* Is there any criterion? */
int tsr_until_is_set(const tsr_until *until);

/* Evaluates the criteria on the draws in a trace file: rg, d_max, chi2, all
 * other scalars of the posterior, and the expected curve at some q.
 * factor out  estimated factor by which the number of draws must grow
 *             until all criteria hold, if R-hat - 1 falls and ESS grows in
 *             proportion to the number of draws; at most 1: they hold
 * worst  out  the variable farthest from its criterion, with its R-hat and
 *             ESS, as text
 * at_worst  out  these two numbers, NaN without draws
 * Errors: those of tsr_trace_open and tsr_summary_make; *factor is infinite
 * then. */
tsr_status tsr_until_check(const tsr_until *until, const char *trace,
                           double *factor, char worst[160], double at_worst[2],
                           tsr_err *err);

/* tsr_until_check for an open trace and its summary; at_worst may be NULL. */
tsr_status tsr_until_judge(const tsr_until *until, tsr_trace_reader *reader,
                           const tsr_summary *summary, double *factor,
                           char worst[160], double at_worst[2], tsr_err *err);

/* Number of draws to request after `done` draws: `factor` times as many, at
 * most a hundred times, rounded up to two significant digits. */
double tsr_until_draws(double done, double factor);

#endif

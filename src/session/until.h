/* run --until: stop when the chains have converged. */
#ifndef TSR_SESSION_UNTIL_H
#define TSR_SESSION_UNTIL_H

#include "analysis/summary.h"
#include "core/status.h"

typedef struct {
    double rhat; /* every R-hat below this; infinite: not asked for */
    double ess;  /* every bulk and tail ESS above this; 0: not asked for */
} tsr_until;

/* "rhat<1.01,ess>400", either or both; NULL or "": neither. Errors:
 * TSR_E_CONFIG. */
tsr_status tsr_until_parse(const char *text, tsr_until *until, tsr_err *err);

int tsr_until_is_set(const tsr_until *until);

/* Looks at the draws that the trace holds on disk: rg, d_max, chi2 and all
 * other scalars of the posterior, and the expected curve at some q. *far: how
 * many times as many draws it takes, about, until all are as asked (R-hat - 1
 * falls and ESS grows with the number of draws); at most 1: they are. worst
 * [160]: the one that is farthest from it, in words. */
tsr_status tsr_until_check(const tsr_until *until, const char *trace,
                           double *far, char worst[160], tsr_err *err);

/* The same of a trace that is open, and its summary. */
tsr_status tsr_until_judge(const tsr_until *until, tsr_trace_reader *reader,
                           const tsr_summary *summary, double *far,
                           char worst[160], tsr_err *err);

/* Draws to ask for where there are `done` and it takes `far` times as many, a
 * hundred times at most: rounded up to two digits. */
double tsr_until_draws(double done, double far);

#endif

/* Some draws of a variable instead of all, where thousands tell what millions
 * do. */
#ifndef TSR_ANALYSIS_THINNED_H
#define TSR_ANALYSIS_THINNED_H

#include "store/trace.h"

typedef struct {
    int n_chain, n_kept; /* 0: there are none */
    int every;           /* draw k of them is draw k every of the run */
    int n;               /* entries of each */
    double *value;       /* [n_chain][n_kept][n] */
} tsr_thinned;

/* Every so many draws of all chains, some `most` in all, and of each n entries
 * from entry_from on. Nothing where the trace has no such variable. The caller
 * frees value, also after an error. Errors: TSR_E_NOMEM, TSR_E_IO. */
tsr_status tsr_thinned_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, long most, int entry_from, int n,
                           tsr_thinned *out, tsr_err *err);

#endif

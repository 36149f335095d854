/* Summary of a curve of every draw, point by point: its band, and whether the
 * chains agree on it. */
#ifndef TSR_ANALYSIS_CURVE_SUMMARY_H
#define TSR_ANALYSIS_CURVE_SUMMARY_H

#include "analysis/convergence.h"
#include "store/trace.h"

typedef struct {
    char *name;  /* "intensity_mean" */
    int n_point; /* of the curve in the trace */
    int n;       /* points summarised: all, of very many draws some */
    int *at;     /* [n] which of n_point */
    double *q;   /* [n] 1/Angstrom; their number where there is no coordinate */
    tsr_convergence *point; /* [n] */
    int n_bad;              /* points where draws are not finite */
} tsr_curve_summary;

/* A variable of posterior_predictive with an axis of its own. Some 300 MiB
 * are in memory at most. Points are left out, evenly, where all of them would
 * be more than `most` numbers. Errors: those of tsr_trace_get_part; TSR_E_DATA
 * (no draws). Cost: O(most log n_draw). */
tsr_status tsr_curve_summary_make(tsr_trace_reader *reader, const char *name,
                                  double most, tsr_curve_summary **out,
                                  tsr_err *err);
void tsr_curve_summary_free(tsr_curve_summary *summary);

/* The point whose chains agree least (largest rhat); -1 where none has one. */
int tsr_curve_summary_worst(const tsr_curve_summary *summary);

#endif

/* Chains of one variable compared: which one stands still, which one is apart,
 * do two halves of them tell the same? */
#ifndef TSR_ANALYSIS_CHAIN_COMPARE_H
#define TSR_ANALYSIS_CHAIN_COMPARE_H

#include "core/status.h"

/* The longest run of equal values in a chain. value [n_draw]. */
int tsr_longest_rest(int n_draw, const double *value);

/* How far chain c is from the rest: 0 where its middle 90 % and that of the
 * others overlap; else the gap between the two, in units of the wider one's
 * width (infinite where both have none). Below 0: it lies under them.
 * value [n_chain][n_draw]. NaN: one chain, or out of memory. */
double tsr_chain_gap(int n_chain, int n_draw, const double *value, int c);

/* Kolmogorov and Smirnov's comparison of two halves of the chains (of one
 * chain, of its draws): the first (n + 1) / 2 against the rest. */
typedef struct {
    double distance; /* largest distance of the two distribution functions */
    /* Probability of as much between two sets of as many independent draws as
     * the halves are worth (their ess_bulk, or one a chain where none moves;
     * Stephens 1970 for small ones). NaN where there is no draw. */
    double p;
} tsr_half_compare;

/* Errors: TSR_E_NOMEM. Cost: O(n log n). */
tsr_status tsr_half_compare_make(int n_chain, int n_draw, const double *value,
                                 tsr_half_compare *out, tsr_err *err);

#endif

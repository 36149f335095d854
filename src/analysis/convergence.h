/* Posterior summary and convergence of one variable over several chains.
 *
 * After Vehtari, Gelman, Simpson, Carpenter & Buerkner 2021 (Bayesian Analysis
 * 16, 667), with the choices of ArviZ and R's posterior, whose numbers these
 * functions reproduce. Where those two differ, or differ from tessera:
 * - a constant variable: ess, mcse and rhat are NaN (as in posterior; ArviZ has
 *   ess equal to the number of draws);
 * - fewer than 4 draws per chain: ess, mcse and rhat are NaN (as in both);
 * - one chain: rhat compares its two halves (as in posterior; ArviZ has NaN).
 *   Such an rhat cannot detect a second mode, so check the number of chains;
 * - a value that is not finite: everything is NaN;
 * - constant chains with different values: rhat is +inf (as in both);
 * - an odd number of draws: folding is around the median of the split chains,
 *   as in az.rhat (az.summary folds around the median of all draws);
 * - a variable of few values may have a constant indicator or folded version:
 *   the indicator then counts every draw in ess_tail, and rhat is that of the
 *   bulk (as in ArviZ; posterior has NA). */
#ifndef TSR_ANALYSIS_CONVERGENCE_H
#define TSR_ANALYSIS_CONVERGENCE_H

#include "core/status.h"

/* Location, spread and convergence of one variable. */
typedef struct {
    double mean;
    double sd; /* over all draws, n - 1 in the denominator; NaN for one draw */
    double median;
    double q5, q95;  /* quantiles, linear between draws (numpy's default; R's
                        type 7) */
    double mcse;     /* standard error of the mean: sd / sqrt(ess of the
                        mean) */
    double ess_bulk; /* effective sample size of the rank-normalised split
                        chains */
    double ess_tail; /* the smaller ess of the indicators x <= q5 and x <=
                        q95 */
    double rhat;     /* split, rank-normalised; the larger of bulk and folded */
    double rhat_chains; /* rhat that compares single chains, if rhat compares
                           groups; else NaN */
} tsr_convergence;

/* Summarises the draws value [n_chain][n_draw] of a variable. The chains come
 * in n_group groups of equal size, one group after the other. The chains of a
 * group have a common start: rhat is then the nested R-hat of Margossian et al.
 * 2024 (Bayesian Analysis, doi:10.1214/24-BA1453), which compares groups and so
 * allows many short chains. Each chain is a group where n_group is 0, 1,
 * n_chain, or no divisor of n_chain. Cost: O(n log n). Errors: TSR_E_NOMEM;
 * TSR_E_INTERNAL (no draws). */
tsr_status tsr_convergence_make(int n_group, int n_chain, int n_draw,
                                const double *value, tsr_convergence *out,
                                tsr_err *err);

#endif

/* Posterior summary and convergence of one variable over several chains.
 *
 * After Vehtari, Gelman, Simpson, Carpenter, Buerkner 2021 (Bayesian Analysis
 * 16, 667), with the choices of ArviZ and R's posterior, whose numbers these
 * reproduce. Where those two differ, or differ from here:
 * - a constant variable: ess, mcse and rhat are NaN (posterior; ArviZ has ess =
 *   the number of draws);
 * - fewer than 4 draws a chain: ess, mcse and rhat are NaN (both);
 * - one chain: rhat compares its two halves (posterior; ArviZ has NaN). It
 *   cannot see a second mode: ask for chains, too, before trusting it;
 * - a number that is not finite: everything is NaN;
 * - chains that each stand still at values of their own: rhat is +inf (both);
 * - an odd number of draws: the fold is around the median of the split chains,
 *   as in az.rhat (az.summary folds around that of all draws);
 * - a variable of few values may have an indicator or a folded version that is
 *   constant: the indicator counts every draw in ess_tail and the folded
 *   version leaves rhat to the bulk (ArviZ; posterior has NA). */
#ifndef TSR_ANALYSIS_CONVERGENCE_H
#define TSR_ANALYSIS_CONVERGENCE_H

#include "core/status.h"

typedef struct {
    double mean;
    double sd; /* over all draws, n - 1 below; NaN for one draw */
    double median;
    double q5, q95;  /* quantiles, linear between draws (numpy; R's type 7) */
    double mcse;     /* error of the mean: sd / sqrt(ess of the mean) */
    double ess_bulk; /* of the rank-normalised split chains */
    double ess_tail; /* the smaller of those of x <= q5 and x <= q95 */
    double rhat;     /* split, rank-normalised; the larger of bulk and folded */
    double rhat_chains; /* the same of single chains, where rhat is of groups */
} tsr_convergence;

/* value [n_chain][n_draw]. The chains come in n_group groups of as many, in
 * turn, and those of a group started from one place: rhat is then the nested
 * R-hat of Margossian et al. 2024 (Bayesian Analysis, doi:10.1214/24-BA1453),
 * which compares groups, so that many chains may each be short. n_group 0, or
 * as many as chains: each chain is its own. Cost: O(n log n). Errors:
 * TSR_E_NOMEM; TSR_E_INTERNAL (no draws). */
tsr_status tsr_convergence_make(int n_group, int n_chain, int n_draw,
                                const double *value, tsr_convergence *out,
                                tsr_err *err);

#endif

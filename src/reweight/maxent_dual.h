/* Weights of draws nearest to equal ones whose mean comes near a target: the
 * least of |target - c sum_i w_i s_i|^2 / 2 + theta KL(w || 1 / n), by its dual
 * in as many unknowns as a score has. */
#ifndef TSR_ANALYSIS_MAXENT_DUAL_H
#define TSR_ANALYSIS_MAXENT_DUAL_H

#include "core/status.h"

enum { TSR_MAXENT_DIM = 64 };

typedef struct {
    long n;
    int n_dim;
    const double *score;           /* [n][n_dim], borrowed */
    double lambda[TSR_MAXENT_DIM]; /* of the last solution; where the next
                                      begins */
    double *log_weight;            /* [n] normalised */
    double mean[TSR_MAXENT_DIM];   /* of the scores under the weights */
    double covariance[TSR_MAXENT_DIM * TSR_MAXENT_DIM];
    double kl;
} tsr_maxent_dual;

/* Begins with equal weights. Errors: TSR_E_NOMEM. */
tsr_status tsr_maxent_dual_new(long n, int n_dim, const double *score,
                               tsr_maxent_dual **out, tsr_err *err);
void tsr_maxent_dual_free(tsr_maxent_dual *dual);

/* target [n_dim]. Cost: O(n n_dim^2) a step, some 10 steps. Errors:
 * TSR_E_NUMERIC. */
tsr_status tsr_maxent_dual_solve(tsr_maxent_dual *dual, double c,
                                 const double *target, double theta,
                                 tsr_err *err);

/* How the mean of the scores follows target / c after a solution:
 * out = (theta + c^2 C)^-1 C x, C their covariance; 0 where that fails. */
void tsr_maxent_dual_answer(const tsr_maxent_dual *dual, double c, double theta,
                            const double *x, double *out);

#endif

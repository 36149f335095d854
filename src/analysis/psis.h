/* Importance weights whose tail is smoothed by a generalised Pareto
 * distribution: Vehtari, Simpson, Gelman, Yao, Gabry 2024 (JMLR 25, 72), with
 * the choices of ArviZ and R's loo, whose numbers these reproduce. */
#ifndef TSR_ANALYSIS_PSIS_H
#define TSR_ANALYSIS_PSIS_H

#include "core/status.h"

typedef struct {
    double ess; /* (sum w)^2 / sum w^2 */
    /* Shape of the tail: below 0.7 the weighted means can be trusted. +infinity
     * where too few draws are in the tail to fit it, -infinity where all
     * weights are equal and there is no tail. */
    double pareto_k;
    int n_tail; /* draws in the tail */
} tsr_psis;

/* log_weight [n] in: logs of raw weights, -infinity for none; out: smoothed and
 * normalised, so that their exponentials have the sum 1. Errors: TSR_E_NUMERIC
 * (a weight is NaN or +infinity, or none is above 0), TSR_E_NOMEM. */
tsr_status tsr_psis_smooth(long n, double *log_weight, tsr_psis *psis,
                           tsr_err *err);

/* How many independent draws the weights are worth: their ess times the share
 * of the draws that the chains count for in the mean of the weight, at most 1
 * (as in R's loo); of fewer than 4 draws a chain, one a chain. log_weight
 * [n_chain][n_draw], of sum 1. Errors: TSR_E_NOMEM. */
tsr_status tsr_psis_worth(int n_chain, int n_draw, const double *log_weight,
                          double *worth, tsr_err *err);

/* (sum w)^2 / sum w^2 of weights that have the sum 1, given their logs. */
double tsr_psis_ess(long n, const double *log_weight);

/* Numbers of a variable whose draws have weights. */

typedef struct {
    double mean, sd;
    double q5, median, q95; /* linear between the middles of the draws' shares
                               of the weight; Hazen's where all are equal */
} tsr_weighted;

/* value [n], log_weight [n] with exponentials that have the sum 1; NULL: all
 * are equal. A draw without weight counts for nothing, whatever its value. All
 * numbers are NaN where a value that counts is not finite. Errors: TSR_E_NOMEM.
 */
tsr_status tsr_weighted_make(long n, const double *value,
                             const double *log_weight, tsr_weighted *out,
                             tsr_err *err);

#endif

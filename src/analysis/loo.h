/* How well a run's model predicts points that it has not seen: the expected
 * log predictive density, by leaving out one point after the other.
 *
 * Nothing is sampled again. The draws are weighted by 1 / p(y_k | draw), which
 * takes point k out of the posterior; the largest weights are smoothed, and
 * what the other points say of point k is the weighted mean of p(y_k | draw)
 * (PSIS-LOO: Vehtari, Gelman & Gabry 2017, Stat. Comput. 27, 1413). Unlike the
 * log evidence it hardly depends on the width of the priors, and it needs no
 * ladder of temperatures. */
#ifndef TSR_ANALYSIS_LOO_H
#define TSR_ANALYSIS_LOO_H

#include "core/json.h"
#include "core/status.h"
#include "store/trace.h"

typedef struct {
    int n;          /* points of all measurements; 0: the run stored none, or
                     has but one, as of a map alone */
    double *point;  /* [n] nat */
    double elpd;    /* their sum, nat; NaN: not known */
    double error;   /* of the sum as a sample of points: sqrt(n var) */
    double p_loo;   /* effective number of parameters */
    double worst_k; /* the largest Pareto k of a point */
    int n_bad;      /* points whose k is above 0.7: not to be relied on */
    long n_draw;    /* draws that were used */
} tsr_loo;

/* Of the group log_likelihood, with at most 4000 evenly chosen draws. The
 * caller clears it, also after an error. Errors: those of tsr_trace_get_part;
 * TSR_E_NUMERIC (a density that is not finite), TSR_E_NOMEM. */
tsr_status tsr_loo_make(tsr_trace_reader *reader, tsr_loo *loo, tsr_err *err);
void tsr_loo_clear(tsr_loo *loo);

/* The same of densities log_lik [n_draw][n]. */
tsr_status tsr_loo_compute(long n_draw, int n, const double *log_lik,
                           tsr_loo *loo, tsr_err *err);

/* elpd of b above that of a, and the error of the difference, which is that of
 * the differences point by point: both saw the same points, and what is hard
 * for one is hard for the other. Returns 0, and NaN, where their numbers of
 * points differ or one is not known. */
int tsr_loo_compare(const tsr_loo *a, const tsr_loo *b, double *difference,
                    double *error);

/* As the member `name` of an object: {"elpd", "error", "p_loo", "worst_k",
 * "n_bad", "points"}; null where nothing is known. */
void tsr_loo_put(const tsr_loo *loo, const char *name, tsr_json *json);

/* ---- psis ----
 *
 * Importance weights whose tail is smoothed by a generalised Pareto
 * distribution: Vehtari, Simpson, Gelman, Yao, Gabry 2024 (JMLR 25, 72), with
 * the choices of ArviZ and R's loo, whose numbers these reproduce. */

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
tsr_status tsr_psis_independent_draws(int n_chain, int n_draw,
                                      const double *log_weight, double *worth,
                                      tsr_err *err);

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

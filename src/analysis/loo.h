/* Predictive accuracy of a run's model: the expected log predictive density
 * (elpd) of points that the model has not seen, by leaving out one point at a
 * time.
 *
 * The posterior without a point is not sampled. Instead, weighting the stored
 * draws by 1 / p(y_k | draw) removes point k from the posterior. The largest
 * weights are smoothed, and the weighted mean of p(y_k | draw) is the density
 * of point k given the other points (PSIS-LOO: Vehtari, Gelman & Gabry 2017,
 * Stat. Comput. 27, 1413). Unlike the log evidence, the elpd hardly depends on
 * the width of the priors, and it needs no ladder of temperatures. */
#ifndef TSR_ANALYSIS_LOO_H
#define TSR_ANALYSIS_LOO_H

#include "core/json.h"
#include "core/status.h"
#include "store/trace.h"

/* Expected log predictive density of a run, and the reliability of this
 * estimate. */
typedef struct {
    int n;          /* number of points of all data sets; 0: the run stored no
                       densities, or there is one point, as with a map alone */
    double *point;  /* [n] elpd of each point, nat */
    double elpd;    /* sum over the points, nat; NaN: not known */
    double error;   /* standard error of the sum over a sample of points: sqrt(n
                       var) */
    double p_loo;   /* effective number of parameters */
    double worst_k; /* the largest Pareto k of all points */
    int n_bad;      /* points with k above 0.7, whose density is unreliable */
    long n_draw;    /* draws used */
} tsr_loo;

/* Computes the elpd from the group log_likelihood of a trace, with about 4000
 * evenly spread draws at most. The caller clears loo, also after an error.
 * Errors: those of tsr_trace_get_part; TSR_E_NUMERIC (a density that is not
 * finite), TSR_E_NOMEM. */
tsr_status tsr_loo_make(tsr_trace_reader *reader, tsr_loo *loo, tsr_err *err);
void tsr_loo_clear(tsr_loo *loo);

/* Computes the elpd from log densities log_lik [n_draw][n], nat. Errors: as for
 * tsr_loo_make. */
tsr_status tsr_loo_compute(long n_draw, int n, const double *log_lik,
                           tsr_loo *loo, tsr_err *err);

/* elpd of b minus elpd of a, and its standard error, computed from the
 * differences point by point: both models have the same points, so their errors
 * are correlated. If the numbers of points differ, an elpd is not known or
 * memory is short, returns 0, and *difference and *error are NaN. */
int tsr_loo_compare(const tsr_loo *a, const tsr_loo *b, double *difference,
                    double *error);

/* Adds the member `name` to an object: {"elpd", "error", "p_loo", "worst_k",
 * "n_bad", "points"}; null where n is 0. */
void tsr_loo_put(const tsr_loo *loo, const char *name, tsr_json *json);

/* ---- Pareto-smoothed importance sampling (PSIS) ----
 *
 * Importance weights whose tail is smoothed by a generalised Pareto
 * distribution: Vehtari, Simpson, Gelman, Yao & Gabry 2024 (JMLR 25, 72), with
 * the choices of ArviZ and R's loo, whose numbers these functions reproduce. */

/* Quality of smoothed weights. */
typedef struct {
    double ess; /* (sum w)^2 / sum w^2 */
    /* Shape of the tail. Below 0.7, weighted means are reliable. +infinity: the
     * tail has too few draws for a fit, so the weights are not smoothed.
     * -infinity: all weights are equal, so there is no tail. */
    double pareto_k;
    int n_tail; /* draws in the tail */
} tsr_psis;

/* Smooths and normalises weights in place.
 * log_weight  [n]  in   logs of raw weights; -infinity: weight 0
 *                  out  logs of smoothed weights with sum 1
 * Errors: TSR_E_NUMERIC (a weight is NaN or +infinity, or no weight is above
 * 0), TSR_E_NOMEM. */
tsr_status tsr_psis_smooth(long n, double *log_weight, tsr_psis *psis,
                           tsr_err *err);

#endif

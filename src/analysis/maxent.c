/* Weights of curves that fit data, by maximum entropy and by least squares.
 *
 * Maximum entropy: the models' curves are reduced to the few dimensions that
 * they span, the principal components of I / sigma. In these dimensions, lambda
 * at a given scale and background minimises a convex function. An outer Newton
 * iteration finds scale and background. The L-curve is followed from large
 * theta to small, each theta starting at the solution of the previous one.
 * Least squares: an active set method. */
#include "analysis/maxent.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 64 }; /* largest number of dimensions */

/* Curves divided by sigma, their weights, and the unknowns at one theta. */
typedef struct {
    tsr_pool pool;
    const double *given; /* [n][n_point] curves at the data's q */
    const tsr_saxs *saxs;
    const tsr_linear *linear;
    double theta;
    int n;                /* models */
    int n_point, n_dim;   /* number of points of the data; number of dimensions
                             that the curves span */
    double *curve, *mean; /* [n_point] I / sigma of one curve, and mean over the
                             models */
    double *covariance;   /* [n_point][n_point], lower triangle */
    double *axis;         /* [n_dim][n_point] principal axes */
    double *score;        /* [n][n_dim] principal components of the curves */
    /* Weights are proportional to exp(-lambda . score). */
    double lambda[DIM];
    double *log_weight;          /* [n] sum of weights 1 */
    double score_mean[DIM];      /* weighted mean of the scores */
    double score_cov[DIM * DIM]; /* their weighted covariance, lower triangle */
    double kl;
    double *model, *residual; /* [n_point] weighted mean curve and residuals,
                                 both divided by sigma */
} solver;

/* ---- weights at a given scale and background ----
 *
 * Newton's method with step halving on a smooth convex function, the log of a
 * sum of exponentials. The largest exponent is factored out, so that nothing
 * overflows. */

/* Computes log weights at lambda. Returns the log of the mean of exp(-lambda .
 * s). moments 1: also normalises the weights, and computes mean and covariance
 * of the scores, and KL. */
static double set_weights(solver *d, const double *lambda, int moments)
{
    const int m = d->n_dim;
    double top = -HUGE_VAL, sum = 0.0, kl = 0.0;
    for (int i = 0; i < d->n; i++) {
        const double *s = d->score + (size_t)i * (size_t)m;
        double x = 0.0;
        for (int k = 0; k < m; k++)
            x -= lambda[k] * s[k];
        d->log_weight[i] = x;
        top = fmax(top, x);
    }
    for (int i = 0; i < d->n; i++)
        sum += exp(d->log_weight[i] - top);
    const double log_sum = top + log(sum);
    if (!moments)
        return log_sum - log((double)d->n);
    memset(d->score_mean, 0, sizeof d->score_mean);
    memset(d->score_cov, 0, sizeof d->score_cov);
    for (int i = 0; i < d->n; i++) {
        const double *s = d->score + (size_t)i * (size_t)m;
        d->log_weight[i] -= log_sum;
        const double w = exp(d->log_weight[i]);
        kl += w > 0.0 ? w * (d->log_weight[i] + log((double)d->n)) : 0.0;
        for (int k = 0; k < m; k++) {
            d->score_mean[k] += w * s[k];
            for (int l = 0; l <= k; l++)
                d->score_cov[k * m + l] += w * s[k] * s[l];
        }
    }
    for (int k = 0; k < m; k++)
        for (int l = 0; l <= k; l++)
            d->score_cov[k * m + l] -= d->score_mean[k] * d->score_mean[l];
    d->kl = fmax(kl, 0.0);
    return log_sum - log((double)d->n);
}

/* The dual function of lambda,
 *     log mean exp(-lambda . s) + lambda . t / c + theta |lambda|^2 / (2 c^2),
 * with gradient -mean(s) + t / c + theta lambda / c^2, where t is the
 * target. */
static double dual_at(solver *d, const double *lambda, double c,
                      const double *target)
{
    double sum = set_weights(d, lambda, 0);
    for (int k = 0; k < d->n_dim; k++)
        sum += lambda[k] * target[k] / c +
               0.5 * d->theta * lambda[k] * lambda[k] / (c * c);
    return sum;
}

/* Solves (C + theta / c^2) x = y. The matrix has the second derivatives of the
 * dual, C is the covariance of the scores. Returns 0 where the matrix is not
 * positive definite. */
static int solve_hessian(const solver *d, double c, double *y, double *x)
{
    const size_t m = (size_t)d->n_dim;
    double h[DIM * DIM];
    memcpy(h, d->score_cov, m * m * sizeof *h);
    for (size_t k = 0; k < m; k++)
        h[k * m + k] += d->theta / (c * c);
    gsl_matrix_view a = gsl_matrix_view_array(h, m, m);
    gsl_vector_view from = gsl_vector_view_array(y, m);
    gsl_vector_view to = gsl_vector_view_array(x, m);
    if (gsl_linalg_cholesky_decomp1(&a.matrix) != GSL_SUCCESS)
        return 0;
    gsl_linalg_cholesky_solve(&a.matrix, &from.vector, &to.vector);
    return 1;
}

/* Computes a Newton step of lambda. *slope out: first-order decrease of the
 * dual along the step. Returns 0 where the Hessian is not positive definite. */
static int newton_step(const solver *d, double c, const double *target,
                       double *step, double *slope)
{
    double gradient[DIM];
    for (int k = 0; k < d->n_dim; k++)
        gradient[k] = target[k] / c - d->score_mean[k] +
                      d->theta * d->lambda[k] / (c * c);
    if (!solve_hessian(d, c, gradient, step))
        return 0;
    *slope = 0.0;
    for (int k = 0; k < d->n_dim; k++)
        *slope += gradient[k] * step[k];
    return 1;
}

/* out = K x with K = (theta + c^2 C)^-1 C, the response of the mean score at a
 * solution to a change x of the target; C is the covariance of the scores. out
 * is 0 where the equations cannot be solved. */
static void mean_response(const solver *d, double c, const double *x,
                          double *out)
{
    const int m = d->n_dim;
    double y[DIM];
    for (int k = 0; k < m; k++) {
        y[k] = 0.0;
        for (int l = 0; l < m; l++)
            y[k] +=
                d->score_cov[k > l ? k * m + l : l * m + k] * x[l] / (c * c);
    }
    if (!solve_hessian(d, c, y, out))
        memset(out, 0, (size_t)m * sizeof *out);
}

/* Minimises the dual for target [n_dim]. Cost: O(n n_dim^2) a step, some 10
 * steps. Errors: TSR_E_NUMERIC. */
static tsr_status dual_solve(solver *d, double c, const double *target,
                             tsr_err *err)
{
    enum { MOST_STEPS = 200 };
    const double enough = 1e-12; /* relative to the dual; above rounding
                                    errors */
    for (int round = 0; round < MOST_STEPS; round++) {
        double step[DIM], trial[DIM] = {0.0}, slope;
        double size = 1.0;
        double here = dual_at(d, d->lambda, c, target);
        set_weights(d, d->lambda, 1);
        if (!newton_step(d, c, target, step, &slope))
            break;
        if (slope < enough * (1.0 + fabs(here)))
            return TSR_OK;
        for (int half = 0; half < 60; half++, size *= 0.5) {
            for (int k = 0; k < d->n_dim; k++)
                trial[k] = d->lambda[k] - size * step[k];
            if (dual_at(d, trial, c, target) <= here - 1e-4 * size * slope)
                break;
        }
        if (size < 1e-12) { /* rounding prevents further progress */
            set_weights(d, d->lambda, 1);
            if (slope < 1e-9 * (1.0 + fabs(here)))
                return TSR_OK;
            break;
        }
        memcpy(d->lambda, trial, sizeof d->lambda);
    }
    return tsr_fail(
        err, TSR_E_NUMERIC,
        "the weights at theta = %g did not converge; choose a larger theta",
        d->theta);
}

/* ---- reduction to principal components ---- */

static void reduce_curve(solver *d, int i)
{
    const double *curve = d->given + (size_t)i * (size_t)d->n_point;
    for (int k = 0; k < d->n_point; k++)
        d->curve[k] = curve[k] / d->saxs->sigma[k] - d->mean[k];
}

/* Welford's update of the mean and of the sum of products by curve i. */
static void add_moments(solver *d, int i)
{
    const size_t n = (size_t)d->n_point;
    const double part = 1.0 / (i + 1.0);
    reduce_curve(d, i);
    gsl_vector_view x = gsl_vector_view_array(d->curve, n);
    gsl_matrix_view products = gsl_matrix_view_array(d->covariance, n, n);
    gsl_blas_dsyr(CblasLower, 1.0 - part, &x.vector, &products.matrix);
    for (size_t k = 0; k < n; k++)
        d->mean[k] += part * d->curve[k];
}

static void find_scores(solver *d, int i)
{
    reduce_curve(d, i);
    for (int l = 0; l < d->n_dim; l++) {
        const double *axis = d->axis + (size_t)l * (size_t)d->n_point;
        double sum = 0.0;
        for (int k = 0; k < d->n_point; k++)
            sum += axis[k] * d->curve[k];
        d->score[(size_t)i * (size_t)d->n_dim + (size_t)l] = sum;
    }
}

/* Finds the principal components that have variance, in descending order. */
static tsr_status find_axes(solver *d, tsr_err *err)
{
    const double left_out = 1e-12; /* relative to the largest variance */
    const size_t n = (size_t)d->n_point;
    gsl_vector *value = gsl_vector_alloc(n);
    gsl_matrix *vector = gsl_matrix_alloc(n, n);
    gsl_eigen_symmv_workspace *w = gsl_eigen_symmv_alloc(n);
    tsr_status status = value == NULL || vector == NULL || w == NULL
                            ? tsr_no_memory(err)
                            : TSR_OK;
    if (status == TSR_OK) {
        gsl_matrix_view a = gsl_matrix_view_array(d->covariance, n, n);
        gsl_eigen_symmv(&a.matrix, value, vector, w);
        gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
        const double largest = gsl_vector_get(value, 0);
        while (d->n_dim < d->n_point && d->n_dim < DIM && largest > 0.0 &&
               gsl_vector_get(value, (size_t)d->n_dim) > left_out * largest)
            d->n_dim++;
        tsr_pool_array(&d->pool, d->axis, (size_t)d->n_dim * n);
        tsr_pool_array(&d->pool, d->score, d->n * d->n_dim);
        status =
            d->n_dim > 0
                ? tsr_pool_check(&d->pool, err)
                : tsr_fail(
                      err, TSR_E_DATA,
                      "all curves are identical: weights cannot be inferred");
    }
    for (size_t i = 0; i < (size_t)d->n_dim && status == TSR_OK; i++)
        for (size_t k = 0; k < n; k++)
            d->axis[i * n + k] = gsl_matrix_get(vector, k, i);
    gsl_eigen_symmv_free(w);
    gsl_vector_free(value);
    gsl_matrix_free(vector);
    return status;
}

/* Computes mean, principal components and scores of the curves, with equal
 * weights. Clear the solver also after an error. */
static tsr_status init_solver(solver *d, tsr_err *err)
{
    const size_t n = (size_t)d->n_point;
    tsr_pool_array(&d->pool, d->curve, n);
    tsr_pool_array(&d->pool, d->mean, n);
    tsr_pool_array(&d->pool, d->model, n);
    tsr_pool_array(&d->pool, d->log_weight, d->n);
    tsr_pool_array(&d->pool, d->residual, n);
    tsr_pool_array(&d->pool, d->covariance, n * n);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    for (int i = 0; i < d->n; i++)
        add_moments(d, i);
    TSR_TRY(find_axes(d, err));
    for (int i = 0; i < d->n; i++)
        find_scores(d, i);
    set_weights(d, d->lambda, 1);
    return TSR_OK;
}

/* ---- scale and background ---- */

/* Fits c and b to a mean curve [n] at the data's q. */
static tsr_status fit_curve(const tsr_saxs *saxs, const tsr_linear *linear,
                            const double *curve, double kl,
                            tsr_maxent_point *point, tsr_err *err)
{
    tsr_fit fit = {.scale = 0.0};
    double *weight = malloc((size_t)saxs->n * sizeof *weight);
    TSR_TRY(tsr_allocated(weight, err));
    for (int k = 0; k < saxs->n; k++)
        weight[k] = 1.0 / (saxs->sigma[k] * saxs->sigma[k]);
    tsr_linear_fit(linear, saxs->n, curve, saxs->intensity, weight, &fit);
    free(weight);
    *point = (tsr_maxent_point){.chi2 = fit.square_sum / saxs->n,
                                .kl = kl,
                                .effective = exp(-kl),
                                .scale = fit.scale,
                                .background = fit.background};
    return TSR_OK;
}

/* Fits c and b to the mean curve with equal weights. */
static tsr_status fit_equal(solver *d, tsr_maxent_point *point, tsr_err *err)
{
    for (int k = 0; k < d->n_point; k++)
        d->model[k] = d->mean[k] * d->saxs->sigma[k];
    TSR_TRY(fit_curve(d->saxs, d->linear, d->model, 0.0, point, err));
    point->theta = (double)INFINITY;
    return point->scale > 0.0 ? TSR_OK
                              : tsr_fail(err, TSR_E_NUMERIC,
                                         "no positive scale fits the mean "
                                         "curve to the data (it is %g)",
                                         point->scale);
}

/* A scale c and background b, with chi2 and the objective chi2 / 2 + theta KL
 * at the best weights. */
typedef struct {
    double at[2]; /* c, b */
    double chi2, total;
} scale_point;

static tsr_status solve_weights(solver *d, scale_point *p, tsr_err *err)
{
    const size_t n = (size_t)d->n_point;
    const tsr_saxs *saxs = d->saxs;
    double target[DIM] = {0.0};
    for (size_t k = 0; k < n; k++)
        d->residual[k] = (saxs->intensity[k] - p->at[1]) / saxs->sigma[k] -
                         p->at[0] * d->mean[k];
    for (int i = 0; i < d->n_dim; i++)
        for (size_t k = 0; k < n; k++)
            target[i] += d->axis[(size_t)i * n + k] * d->residual[k];
    TSR_TRY(dual_solve(d, p->at[0], target, err));
    p->chi2 = 0.0;
    for (size_t k = 0; k < n; k++) {
        double off = 0.0;
        for (int i = 0; i < d->n_dim; i++)
            off += d->axis[(size_t)i * n + k] * d->score_mean[i];
        d->model[k] = d->mean[k] + off;
        d->residual[k] -= p->at[0] * off;
        p->chi2 += d->residual[k] * d->residual[k];
    }
    p->total = 0.5 * p->chi2 + d->theta * d->kl;
    return TSR_OK;
}

/* A Newton step of c and b for the objective at the best weights. The response
 * of the weights subtracts [u v]^T K [u v] from the Hessian of the least
 * squares. K = (theta + c^2 C)^-1 C, C is the covariance of the scores, and u
 * and v are the derivatives of the target by c and b. If the difference is not
 * positive definite, the Hessian of the least squares is used alone. *fall out:
 * predicted decrease of the objective. */
static void scale_step(const solver *d, double c, double step[2], double *fall)
{
    const size_t n = (size_t)d->n_point;
    double g[2] = {0.0}, h[3] = {0.0}, full[3];
    double u[2][DIM] = {{0.0}}, ku[2][DIM];
    for (size_t k = 0; k < n; k++) {
        const double m = d->model[k], one = 1.0 / d->saxs->sigma[k];
        g[0] -= d->residual[k] * m, g[1] -= d->residual[k] * one;
        h[0] += m * m, h[1] += m * one, h[2] += one * one;
        for (int i = 0; i < d->n_dim; i++) {
            const double a = d->axis[(size_t)i * n + k];
            u[0][i] += a * (d->residual[k] - c * m);
            u[1][i] -= a * c * one;
        }
    }
    memcpy(full, h, sizeof full);
    for (int i = 0; i < 2; i++)
        mean_response(d, c, u[i], ku[i]);
    for (int i = 0; i < d->n_dim; i++) {
        full[0] -= u[0][i] * ku[0][i];
        full[1] -= u[0][i] * ku[1][i];
        full[2] -= u[1][i] * ku[1][i];
    }
    if (full[0] > 1e-9 * h[0] && full[2] > 1e-9 * h[2] &&
        full[1] * full[1] < (1.0 - 1e-9) * full[0] * full[2])
        memcpy(h, full, sizeof h);
    if (!d->linear->infer_scale)
        g[0] = h[1] = 0.0;
    if (!d->linear->infer_background)
        g[1] = h[1] = 0.0;
    const double det = h[0] * h[2] - h[1] * h[1];
    step[0] = -(h[2] * g[0] - h[1] * g[1]) / det;
    step[1] = -(h[0] * g[1] - h[1] * g[0]) / det;
    *fall = -0.5 * (g[0] * step[0] + g[1] * step[1]);
}

/* Finds weights, c and b at one theta, starting from `point` and the present
 * lambda. */
static tsr_status solve_at_theta(solver *d, double theta,
                                 tsr_maxent_point *point, tsr_err *err)
{
    enum { MOST_ROUNDS = 100, MOST_HALVES = 30 };
    const double enough = 1e-9; /* nat */
    scale_point p = {.at = {point->scale, point->background}};
    d->theta = theta;
    tsr_status status = solve_weights(d, &p, err);
    for (int round = 0; round < MOST_ROUNDS && status == TSR_OK; round++) {
        const scale_point before = p;
        double step[2], fall, size = 1.0;
        scale_step(d, p.at[0], step, &fall);
        if (!(fall > enough * (1.0 + p.total)))
            break;
        for (int half = 0; half < MOST_HALVES; half++, size *= 0.5) {
            p.at[0] = before.at[0] + size * step[0];
            p.at[1] = before.at[1] + size * step[1];
            if (!(p.at[0] > 0.0))
                continue;
            status = solve_weights(d, &p, err);
            if (status != TSR_OK || p.total < before.total)
                break;
        }
        if (status == TSR_OK &&
            !(p.total < before.total)) { /* rounding prevents further
                                            progress */
            memcpy(p.at, before.at, sizeof p.at);
            status = solve_weights(d, &p, err);
            break;
        }
    }
    if (status == TSR_OK)
        *point = (tsr_maxent_point){
            theta, p.chi2 / d->n_point, d->kl, exp(-d->kl), p.at[0], p.at[1]};
    return status;
}

/* ---- the L-curve ---- */

enum { POINTS = 33 };

/* Index of the point farthest from the line between the ends of the curve of
 * chi2 over KL, both scaled to 1. */
static int elbow(const tsr_maxent_point *start, const tsr_maxent_point *point)
{
    const tsr_maxent_point *last = &point[POINTS - 1];
    const double fall = start->chi2 - last->chi2;
    int best = 0;
    double farthest = -HUGE_VAL;
    for (int i = 0; i < POINTS; i++) {
        double x = last->kl > 0.0 ? point[i].kl / last->kl : 0.0;
        double y = fall > 0.0 ? (point[i].chi2 - last->chi2) / fall : 0.0;
        if (1.0 - x - y > farthest) {
            farthest = 1.0 - x - y;
            best = i;
        }
    }
    return best;
}

static const double least_first = 1e4, theta_range = 1e-8;

/* A theta, a power of ten, at which the weights are nearly equal. For large
 * theta, lambda is c A^T r / theta with the residuals r, and KL = lambda^T C
 * lambda / 2. Call the function while the weights are equal. */
static double find_first(const solver *d, const tsr_maxent_point *start)
{
    const double small = 0.001; /* nat */
    const size_t n = (size_t)d->n_point;
    const int m = d->n_dim;
    const double c = start->scale;
    double u[DIM] = {0.0}, sum = 0.0;
    for (int i = 0; i < m; i++)
        for (size_t k = 0; k < n; k++)
            u[i] += c * d->axis[(size_t)i * n + k] *
                    ((d->saxs->intensity[k] - start->background) /
                         d->saxs->sigma[k] -
                     c * d->mean[k]);
    for (int i = 0; i < m; i++)
        for (int l = 0; l <= i; l++)
            sum += (l < i ? 2.0 : 1.0) * u[i] * d->score_cov[i * m + l] * u[l];
    const double theta = sqrt(0.5 * sum / small);
    return theta > least_first ? pow(10.0, ceil(log10(theta))) : least_first;
}

static double theta_of(double first, int i)
{
    return first * pow(theta_range, (double)i / (POINTS - 1));
}

/* Follows the L-curve from *at, the solution with equal weights, to theta, or
 * to its elbow if theta is 0. Each theta starts from the solution at the
 * previous, larger theta, since the iteration at a small theta does not
 * converge from equal weights. */
static tsr_status follow_l_curve(solver *d, double theta, tsr_maxent_point *at,
                                 tsr_err *err)
{
    const tsr_maxent_point start = *at;
    const double first = find_first(d, at);
    tsr_maxent_point point[POINTS];
    double lambda[POINTS][DIM];
    if (theta > 0.0) {
        for (int i = 0; theta_of(first, i) > theta; i++)
            TSR_TRY(solve_at_theta(d, theta_of(first, i), at, err));
        return solve_at_theta(d, theta, at, err);
    }
    for (int i = 0; i < POINTS; i++) {
        TSR_TRY(solve_at_theta(d, theta_of(first, i), at, err));
        point[i] = *at;
        memcpy(lambda[i], d->lambda, sizeof lambda[i]);
    }
    const int chosen = elbow(&start, point);
    *at = point[chosen];
    memcpy(d->lambda, lambda[chosen], sizeof d->lambda);
    return solve_at_theta(d, at->theta, at, err);
}

tsr_status tsr_ensemble_maxent(int n, const double *curve, const tsr_saxs *saxs,
                               const tsr_linear *linear, double theta,
                               double *weight, tsr_maxent_point *point,
                               tsr_err *err)
{
    solver d = {.given = curve,
                .saxs = saxs,
                .linear = linear,
                .n = n,
                .n_point = saxs->n};
    tsr_status status = init_solver(&d, err);
    TSR_THEN(status, fit_equal(&d, point, err));
    TSR_THEN(status, follow_l_curve(&d, theta, point, err));
    for (int i = 0; i < n && status == TSR_OK; i++)
        weight[i] = exp(d.log_weight[i]);
    tsr_pool_clear(&d.pool);
    return status;
}

/* ---- least squares ----
 *
 * An active set method. Models enter the active set one by one, first the model
 * with the steepest descent of chi2. Models whose weight would become negative
 * leave the set. The scale is the sum of the weights before normalisation. A
 * free background is projected out of curves and data. */

typedef struct {
    tsr_pool pool;
    int n, n_point; /* models; points of the data */
    double *curve;  /* [n][n_point] divided by sigma, background projected out,
                       length 1 */
    double *size;   /* [n] length of each curve before normalisation */
    double *data;   /* [n_point] divided by sigma, background projected out */
    double *residual; /* [n_point] residuals of the present weights */
    double *weight;   /* [n] weight of each curve of length 1 */
    int *active;      /* [n_active] models with a positive weight */
    int n_active;
    double *best;    /* [n_active] unconstrained least-squares weights of these
                        models */
    char *is_barred; /* [n] 1: the model cannot enter now, because of
                        rounding */
    /* Scratch of the QR decomposition. */
    double *qr, *tau, *norm, *off; /* [n_point][n], [n], [n], [n_point] */
    size_t *order;                 /* [n] */
} problem;

static gsl_vector_view curve_of(const problem *p, int i)
{
    return gsl_vector_view_array(p->curve + (size_t)i * (size_t)p->n_point,
                                 (size_t)p->n_point);
}

/* Removes the component of x along `one`, a vector of length 1. */
static void project(int n, const double *one, double *x)
{
    double along = 0.0;
    for (int k = 0; k < n; k++)
        along += one[k] * x[k];
    for (int k = 0; k < n; k++)
        x[k] -= along * one[k];
}

static tsr_status init_problem(problem *p, const double *curve,
                               const tsr_saxs *saxs, const tsr_linear *linear,
                               tsr_err *err)
{
    const int n = p->n, n_point = p->n_point;
    double *one, norm = 0.0;
    tsr_pool_array(&p->pool, one, n_point);
    tsr_pool_array(&p->pool, p->curve, (size_t)n * (size_t)n_point);
    tsr_pool_array(&p->pool, p->qr, (size_t)n * (size_t)n_point);
    tsr_pool_array(&p->pool, p->data, n_point);
    tsr_pool_array(&p->pool, p->residual, n_point);
    tsr_pool_array(&p->pool, p->off, n_point);
    tsr_pool_array(&p->pool, p->size, n);
    tsr_pool_array(&p->pool, p->weight, n);
    tsr_pool_array(&p->pool, p->best, n);
    tsr_pool_array(&p->pool, p->tau, n);
    tsr_pool_array(&p->pool, p->norm, n);
    tsr_pool_array(&p->pool, p->order, n);
    tsr_pool_array(&p->pool, p->active, n);
    tsr_pool_array(&p->pool, p->is_barred, n);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    const double b = linear->infer_background ? 0.0 : linear->background;
    for (int k = 0; k < n_point; k++) {
        one[k] = 1.0 / saxs->sigma[k];
        norm += one[k] * one[k];
        p->data[k] = (saxs->intensity[k] - b) / saxs->sigma[k];
    }
    for (int k = 0; k < n_point; k++)
        one[k] /= sqrt(norm);
    if (linear->infer_background)
        project(n_point, one, p->data);
    for (int i = 0; i < n; i++) {
        gsl_vector_view row = curve_of(p, i);
        for (int k = 0; k < n_point; k++)
            row.vector.data[k] = *curve++ / saxs->sigma[k];
        if (linear->infer_background)
            project(n_point, one, row.vector.data);
        p->size[i] = gsl_blas_dnrm2(&row.vector);
        gsl_vector_scale(&row.vector, 1.0 / p->size[i]);
    }
    return TSR_OK;
}

/* Computes the unconstrained least-squares weights of the active models, by QR
 * with pivoting, since curves are nearly collinear. */
static void fit_active(problem *p)
{
    const size_t n = (size_t)p->n_point, m = (size_t)p->n_active;
    gsl_matrix_view a = gsl_matrix_view_array(p->qr, n, m);
    gsl_vector_view tau = gsl_vector_view_array(p->tau, m);
    gsl_vector_view norm = gsl_vector_view_array(p->norm, m);
    gsl_vector_view off = gsl_vector_view_array(p->off, n);
    gsl_vector_view y = gsl_vector_view_array(p->data, n);
    gsl_vector_view x = gsl_vector_view_array(p->best, m);
    gsl_permutation order = {m, p->order};
    int sign;
    for (size_t i = 0; i < m; i++) {
        gsl_vector_view row = curve_of(p, p->active[i]);
        gsl_matrix_set_col(&a.matrix, i, &row.vector);
    }
    gsl_linalg_QRPT_decomp(&a.matrix, &tau.vector, &order, &sign, &norm.vector);
    gsl_linalg_QRPT_lssolve(&a.matrix, &tau.vector, &order, &y.vector,
                            &x.vector, &off.vector);
}

/* Number of the model with the steepest descent of chi2, among those that have
 * weight 0 and are not barred; -1: no model lowers chi2. */
static int steepest(const problem *p)
{
    const double enough = 1e-9; /* relative to the length of the residuals */
    gsl_vector_view residual =
        gsl_vector_view_array(p->residual, (size_t)p->n_point);
    double best = enough * gsl_blas_dnrm2(&residual.vector);
    int found = -1;
    for (int i = 0; i < p->n; i++) {
        double fall;
        gsl_vector_view row = curve_of(p, i);
        gsl_blas_ddot(&row.vector, &residual.vector, &fall);
        if (p->weight[i] == 0.0 && !p->is_barred[i] && fall > best) {
            best = fall;
            found = i;
        }
    }
    return found;
}

/* Moves the weights towards the unconstrained solution until a weight reaches
 * 0, and removes models of weight 0. Returns 1 where the unconstrained solution
 * was reached. */
static int move_to_fit(problem *p)
{
    double part = 1.0;
    for (int i = 0; i < p->n_active; i++) {
        const double now = p->weight[p->active[i]], to = p->best[i];
        if (to <= 0.0)
            part = fmin(part, now / (now - to));
    }
    int left = 0;
    for (int i = 0; i < p->n_active; i++) {
        double *now = &p->weight[p->active[i]];
        const double to = p->best[i], next = *now + part * (to - *now);
        *now = to <= 0.0 && next < 1e-12 * fmax(1.0, -to) ? 0.0 : next;
        if (*now > 0.0)
            p->active[left++] = p->active[i];
    }
    p->n_active = left;
    return part == 1.0;
}

static void find_residuals(problem *p)
{
    memcpy(p->residual, p->data, (size_t)p->n_point * sizeof *p->residual);
    gsl_vector_view residual =
        gsl_vector_view_array(p->residual, (size_t)p->n_point);
    for (int i = 0; i < p->n; i++) {
        gsl_vector_view row = curve_of(p, i);
        if (p->weight[i] > 0.0)
            gsl_blas_daxpy(-p->weight[i], &row.vector, &residual.vector);
    }
}

static void run_active_set(problem *p)
{
    find_residuals(p);
    for (int turn = 0; turn < 3 * p->n; turn++) {
        const int next = steepest(p);
        if (next < 0 || p->n_active >= p->n_point)
            break;
        p->active[p->n_active++] = next;
        fit_active(p);
        if (p->best[p->n_active - 1] <= 0.0) {
            p->is_barred[next] = 1; /* rounding: the model does not improve the
                                       fit */
            p->n_active--;
            continue;
        }
        while (!move_to_fit(p))
            fit_active(p);
        find_residuals(p);
        memset(p->is_barred, 0, (size_t)p->n);
    }
}

/* chi2, scale and background of weights with sum 1. */
static tsr_status evaluate_weights(int n, const double *curve,
                                   const tsr_saxs *saxs,
                                   const tsr_linear *linear,
                                   const double *weight,
                                   tsr_maxent_point *point, tsr_err *err)
{
    const size_t n_point = (size_t)saxs->n;
    double *model = calloc(n_point, sizeof *model), kl = 0.0;
    TSR_TRY(tsr_allocated(model, err));
    for (int i = 0; i < n; i++) {
        if (weight[i] > 0.0)
            kl += weight[i] * log(weight[i] * n);
        for (size_t k = 0; k < n_point; k++)
            model[k] += weight[i] * curve[(size_t)i * n_point + k];
    }
    const tsr_status status = fit_curve(saxs, linear, model, kl, point, err);
    free(model);
    return status;
}

tsr_status tsr_ensemble_least_squares(int n, const double *curve,
                                      const tsr_saxs *saxs,
                                      const tsr_linear *linear, double *weight,
                                      tsr_maxent_point *point, tsr_err *err)
{
    problem p = {.n = n, .n_point = saxs->n};
    double sum = 0.0;
    tsr_status status = init_problem(&p, curve, saxs, linear, err);
    if (status == TSR_OK)
        run_active_set(&p);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        weight[i] = p.weight[i] / p.size[i];
        sum += weight[i];
    }
    if (status == TSR_OK && !(sum > 0.0))
        status =
            tsr_fail(err, TSR_E_NUMERIC,
                     "no positive weight brings any model closer to the data");
    for (int i = 0; i < n && status == TSR_OK; i++)
        weight[i] /= sum;
    tsr_pool_clear(&p.pool);
    TSR_THEN(status,
             evaluate_weights(n, curve, saxs, linear, weight, point, err));
    return status;
}

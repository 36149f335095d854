/* The draws' curves are taken to the few dimensions that they span (principal
 * components of I / sigma); there the weights at a given scale and background
 * are those of maxent_dual.c. Around that, Newton's method finds scale and
 * background, and a walk from large theta to small ones the L-curve: every
 * theta begins where the one before, a little larger, has ended. */
#include "analysis/maxent.h"

#include "analysis/reweight.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- maxent_dual ----
 *
 * Newton's method with halved steps on a smooth convex function: log sum exp of
 * the scores. The largest exponent is taken out of the sum, so that nothing
 * overflows. */

/* Weights at lambda: log sum exp(-lambda . s) / n is returned. With moments 1
 * also mean and covariance. */
static double weigh(tsr_maxent_dual *d, const double *lambda, int moments)
{
    const int m = d->n_dim;
    double top = -HUGE_VAL, sum = 0.0, kl = 0.0;
    for (long i = 0; i < d->n; i++) {
        const double *s = d->score + (size_t)i * (size_t)m;
        double x = 0.0;
        for (int k = 0; k < m; k++)
            x -= lambda[k] * s[k];
        d->log_weight[i] = x;
        top = fmax(top, x);
    }
    for (long i = 0; i < d->n; i++)
        sum += exp(d->log_weight[i] - top);
    const double log_sum = top + log(sum);
    if (!moments)
        return log_sum - log((double)d->n);
    memset(d->mean, 0, sizeof d->mean);
    memset(d->covariance, 0, sizeof d->covariance);
    for (long i = 0; i < d->n; i++) {
        const double *s = d->score + (size_t)i * (size_t)m;
        d->log_weight[i] -= log_sum;
        const double w = exp(d->log_weight[i]);
        kl += w > 0.0 ? w * (d->log_weight[i] + log((double)d->n)) : 0.0;
        for (int k = 0; k < m; k++) {
            d->mean[k] += w * s[k];
            for (int l = 0; l <= k; l++)
                d->covariance[k * m + l] += w * s[k] * s[l];
        }
    }
    for (int k = 0; k < m; k++)
        for (int l = 0; l <= k; l++)
            d->covariance[k * m + l] -= d->mean[k] * d->mean[l];
    d->kl = fmax(kl, 0.0);
    return log_sum - log((double)d->n);
}

static void dual_free(tsr_maxent_dual *dual)
{
    if (dual == NULL)
        return;
    free(dual->log_weight);
    free(dual);
}

/* Begins with equal weights. Errors: TSR_E_NOMEM. */
static tsr_status dual_new(long n, int n_dim, const double *score,
                           tsr_maxent_dual **out, tsr_err *err)
{
    *out = calloc(1, sizeof **out);
    TSR_TRY(tsr_allocated(*out, err));
    (*out)->n = n;
    (*out)->n_dim = n_dim;
    (*out)->score = score;
    (*out)->log_weight = malloc((size_t)n * sizeof *(*out)->log_weight);
    if ((*out)->log_weight == NULL) {
        dual_free(*out);
        *out = NULL;
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %ld weights", n);
    }
    weigh(*out, (*out)->lambda, 1);
    return TSR_OK;
}

/* With lambda = c mu / theta in units of the weights' exponent, the dual is
 *     log mean exp(-lambda . s) + lambda . t / c + theta |lambda|^2 / (2 c^2);
 * its gradient is -mean(s) + t / c + theta lambda / c^2. */
static double dual_at(tsr_maxent_dual *d, const double *lambda, double c,
                      const double *target, double theta)
{
    double sum = weigh(d, lambda, 0);
    for (int k = 0; k < d->n_dim; k++)
        sum += lambda[k] * target[k] / c +
               0.5 * theta * lambda[k] * lambda[k] / (c * c);
    return sum;
}

/* x with (C + theta / c^2) x = y, the dual's second derivatives; 0: they are
 * not positive. */
static int divide(const tsr_maxent_dual *d, double c, double theta, double *y,
                  double *x)
{
    const size_t m = (size_t)d->n_dim;
    double h[TSR_MAXENT_DIM * TSR_MAXENT_DIM];
    for (size_t k = 0; k < m; k++) {
        for (size_t l = 0; l <= k; l++)
            h[k * m + l] = h[l * m + k] = d->covariance[k * m + l];
        h[k * m + k] += theta / (c * c);
    }
    gsl_matrix_view a = gsl_matrix_view_array(h, m, m);
    gsl_vector_view from = gsl_vector_view_array(y, m);
    gsl_vector_view to = gsl_vector_view_array(x, m);
    if (gsl_linalg_cholesky_decomp1(&a.matrix) != GSL_SUCCESS)
        return 0;
    gsl_linalg_cholesky_solve(&a.matrix, &from.vector, &to.vector);
    return 1;
}

/* The step by Newton's method; *slope: how much the dual falls along it. */
static int newton_step(const tsr_maxent_dual *d, double c, const double *target,
                       double theta, double *step, double *slope)
{
    double gradient[TSR_MAXENT_DIM];
    for (int k = 0; k < d->n_dim; k++)
        gradient[k] =
            target[k] / c - d->mean[k] + theta * d->lambda[k] / (c * c);
    if (!divide(d, c, theta, gradient, step))
        return 0;
    *slope = 0.0;
    for (int k = 0; k < d->n_dim; k++)
        *slope += gradient[k] * step[k];
    return 1;
}

/* How the mean of the scores follows target / c after a solution:
 * out = (theta + c^2 C)^-1 C x, C their covariance; 0 where that fails. */
static void dual_answer(const tsr_maxent_dual *d, double c, double theta,
                        const double *x, double *out)
{
    double y[TSR_MAXENT_DIM];
    for (int k = 0; k < d->n_dim; k++) {
        y[k] = 0.0;
        for (int l = 0; l < d->n_dim; l++)
            y[k] += d->covariance[k > l ? k * d->n_dim + l : l * d->n_dim + k] *
                    x[l] / (c * c);
    }
    if (!divide(d, c, theta, y, out))
        memset(out, 0, (size_t)d->n_dim * sizeof *out);
}

/* target [n_dim]. Cost: O(n n_dim^2) a step, some 10 steps. Errors:
 * TSR_E_NUMERIC. */
static tsr_status dual_solve(tsr_maxent_dual *d, double c, const double *target,
                             double theta, tsr_err *err)
{
    enum { MOST_STEPS = 200 };
    const double enough = 1e-12; /* of the dual, and rounding stays below */
    for (int round = 0; round < MOST_STEPS; round++) {
        double step[TSR_MAXENT_DIM], trial[TSR_MAXENT_DIM] = {0.0}, slope;
        double size = 1.0;
        double here = dual_at(d, d->lambda, c, target, theta);
        weigh(d, d->lambda, 1);
        if (!newton_step(d, c, target, theta, step, &slope))
            break;
        if (slope < enough * (1.0 + fabs(here)))
            return TSR_OK;
        for (int half = 0; half < 60; half++, size *= 0.5) {
            for (int k = 0; k < d->n_dim; k++)
                trial[k] = d->lambda[k] - size * step[k];
            if (dual_at(d, trial, c, target, theta) <=
                here - 1e-4 * size * slope)
                break;
        }
        if (size < 1e-12) { /* rounding: as good as it gets */
            weigh(d, d->lambda, 1);
            if (slope < 1e-9 * (1.0 + fabs(here)))
                return TSR_OK;
            break;
        }
        memcpy(d->lambda, trial, sizeof d->lambda);
    }
    return tsr_fail(err, TSR_E_NUMERIC,
                    "the weights at theta = %g were not found; ask for a "
                    "larger theta",
                    theta);
}

static const double least_first = 1e4, theta_range = 1e-8;

/* ---- the curves in the dimensions that they span ---- */

/* Curves by sigma, in two passes: mean and covariance, then the components. */
typedef struct {
    const tsr_stored_curve *stored;
    const tsr_saxs *saxs;
    double *matrix; /* [n][stored->n] to the data's q */
    int n, n_dim, n_seen;
    double *curve, *mean; /* [n] I / sigma */
    gsl_matrix *covariance;
    double *axis;  /* [n_dim][n] */
    double *score; /* [n_draw][n_dim] */
} curves;

static const double left_out = 1e-12; /* of the variance */

static void take(curves *e, const double *curve)
{
    const int n_run = e->stored->n;
    for (int k = 0; k < e->n; k++) {
        const double *row = e->matrix + (size_t)k * (size_t)n_run;
        double sum = 0.0;
        for (int j = 0; j < n_run; j++)
            sum += row[j] * curve[j];
        e->curve[k] = sum / e->saxs->sigma[k];
    }
}

/* Welford's update of mean and sum of products. */
static tsr_status visit_moments(void *context, size_t at, const double *curve,
                                tsr_err *err)
{
    curves *e = context;
    (void)at, (void)err;
    take(e, curve);
    const double part = 1.0 / ++e->n_seen;
    for (int k = 0; k < e->n; k++)
        e->curve[k] -= e->mean[k];
    gsl_vector_view x = gsl_vector_view_array(e->curve, (size_t)e->n);
    gsl_blas_dsyr(CblasLower, 1.0 - part, &x.vector, e->covariance);
    for (int k = 0; k < e->n; k++)
        e->mean[k] += part * e->curve[k];
    return TSR_OK;
}

static tsr_status visit_scores(void *context, size_t at, const double *curve,
                               tsr_err *err)
{
    curves *e = context;
    (void)err;
    take(e, curve);
    for (int d = 0; d < e->n_dim; d++) {
        const double *axis = e->axis + (size_t)d * (size_t)e->n;
        double sum = 0.0;
        for (int k = 0; k < e->n; k++)
            sum += axis[k] * (e->curve[k] - e->mean[k]);
        e->score[at * (size_t)e->n_dim + (size_t)d] = sum;
    }
    return TSR_OK;
}

static void clear_curves(curves *e)
{
    free(e->matrix);
    free(e->curve);
    free(e->mean);
    gsl_matrix_free(e->covariance);
    free(e->axis);
    free(e->score);
}

/* The components that carry the variance, the largest first. */
static tsr_status find_axes(curves *e, tsr_err *err)
{
    const size_t n = (size_t)e->n;
    tsr_status status = TSR_OK;
    gsl_vector *value = gsl_vector_alloc(n);
    gsl_matrix *vector = gsl_matrix_alloc(n, n);
    gsl_eigen_symmv_workspace *w = gsl_eigen_symmv_alloc(n);
    if (value == NULL || vector == NULL || w == NULL) {
        status = tsr_no_memory(err);
        goto done;
    }
    gsl_eigen_symmv(e->covariance, value, vector, w);
    gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
    const double largest = gsl_vector_get(value, 0);
    while (e->n_dim < e->n && e->n_dim < TSR_MAXENT_DIM && largest > 0.0 &&
           gsl_vector_get(value, (size_t)e->n_dim) > left_out * largest)
        e->n_dim++;
    if (e->n_dim == 0) {
        status = tsr_fail(err, TSR_E_DATA,
                          "all curves are the same: there is nothing to weigh");
        goto done;
    }
    e->axis = malloc((size_t)e->n_dim * n * sizeof *e->axis);
    e->score = malloc((size_t)e->n_seen * (size_t)e->n_dim * sizeof *e->score);
    if (e->axis == NULL || e->score == NULL) {
        status =
            tsr_fail(err, TSR_E_NOMEM, "no memory for %d draws", e->n_seen);
        goto done;
    }
    for (size_t d = 0; d < (size_t)e->n_dim; d++)
        for (size_t k = 0; k < n; k++)
            e->axis[d * n + k] = gsl_matrix_get(vector, k, d);
done:
    gsl_eigen_symmv_free(w);
    gsl_vector_free(value);
    gsl_matrix_free(vector);
    return status;
}

/* At the q of saxs; score [n_seen][n_dim]. To be cleared also after an error.
 */
static tsr_status make_curves(const tsr_stored_curve *stored,
                              const tsr_saxs *saxs, curves *e, tsr_err *err)
{
    const size_t n = (size_t)saxs->n;
    *e = (curves){.stored = stored, .saxs = saxs, .n = saxs->n};
    TSR_TRY(tsr_curve_operator(&stored->saxs, saxs, &e->matrix, err));
    e->curve = calloc(n, sizeof *e->curve);
    e->mean = calloc(n, sizeof *e->mean);
    e->covariance = gsl_matrix_calloc(n, n);
    if (e->curve == NULL || e->mean == NULL || e->covariance == NULL)
        return tsr_no_memory(err);
    TSR_TRY(tsr_stored_curve_each(stored, visit_moments, e, err));
    TSR_TRY(find_axes(e, err));
    return tsr_stored_curve_each(stored, visit_scores, e, err);
}

/* ---- scale and background ---- */

/* Best c and b for the mean of equal weights. */
static tsr_status fit_equal(const curves *e, const tsr_linear *linear,
                            double *scratch, tsr_maxent_point *point,
                            tsr_err *err)
{
    const tsr_saxs *saxs = e->saxs;
    double *model = scratch, *weight = scratch + e->n;
    tsr_fit fit = {.scale = 0.0};
    for (int k = 0; k < e->n; k++) {
        model[k] = e->mean[k] * saxs->sigma[k];
        weight[k] = 1.0 / (saxs->sigma[k] * saxs->sigma[k]);
    }
    tsr_linear_fit(linear, e->n, model, saxs->intensity, weight, &fit);
    if (!(fit.scale > 0.0))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "no positive scale takes the mean curve to the "
                        "data (it is %g)",
                        fit.scale);
    *point =
        (tsr_maxent_point){(double)INFINITY, fit.square_sum / e->n, 0.0, 1.0,
                           fit.scale,        fit.background};
    return TSR_OK;
}

/* c and b, with the best weights there. */
typedef struct {
    double at[2]; /* c, b */
    double chi2, total;
    double *model, *rest; /* [n] mean curve and residuals, by sigma */
} place;

static tsr_status weigh_there(const curves *e, tsr_maxent_dual *dual,
                              double theta, place *p, tsr_err *err)
{
    const size_t n = (size_t)e->n;
    const tsr_saxs *saxs = e->saxs;
    double target[TSR_MAXENT_DIM] = {0.0};
    for (size_t k = 0; k < n; k++)
        p->rest[k] = (saxs->intensity[k] - p->at[1]) / saxs->sigma[k] -
                     p->at[0] * e->mean[k];
    for (int d = 0; d < e->n_dim; d++)
        for (size_t k = 0; k < n; k++)
            target[d] += e->axis[(size_t)d * n + k] * p->rest[k];
    TSR_TRY(dual_solve(dual, p->at[0], target, theta, err));
    p->chi2 = 0.0;
    for (size_t k = 0; k < n; k++) {
        double off = 0.0;
        for (int d = 0; d < e->n_dim; d++)
            off += e->axis[(size_t)d * n + k] * dual->mean[d];
        p->model[k] = e->mean[k] + off;
        p->rest[k] -= p->at[0] * off;
        p->chi2 += p->rest[k] * p->rest[k];
    }
    p->total = 0.5 * p->chi2 + theta * dual->kl;
    return TSR_OK;
}

/* Newton's step of c and b for the total with the best weights at each: the
 * weights' answer takes [u v]^T K [u v] off the Hessian of the least squares,
 * K = (theta + c^2 C)^-1 C, C the covariance of the scores, u and v the slopes
 * in c and b of their target. Where that is not convex, it stays with the least
 * squares. *fall: what it promises. */
static void newton(const curves *e, const tsr_linear *linear,
                   tsr_maxent_dual *dual, double theta, const place *p,
                   double step[2], double *fall)
{
    const size_t n = (size_t)e->n;
    const double c = p->at[0];
    double g[2] = {0.0}, h[3] = {0.0}, full[3];
    double u[2][TSR_MAXENT_DIM] = {{0.0}}, ku[2][TSR_MAXENT_DIM];
    for (size_t k = 0; k < n; k++) {
        const double m = p->model[k], one = 1.0 / e->saxs->sigma[k];
        g[0] -= p->rest[k] * m, g[1] -= p->rest[k] * one;
        h[0] += m * m, h[1] += m * one, h[2] += one * one;
        for (int d = 0; d < e->n_dim; d++) {
            const double a = e->axis[(size_t)d * n + k];
            u[0][d] += a * (p->rest[k] - c * m);
            u[1][d] -= a * c * one;
        }
    }
    memcpy(full, h, sizeof full);
    for (int i = 0; i < 2; i++)
        dual_answer(dual, c, theta, u[i], ku[i]);
    for (int d = 0; d < e->n_dim; d++) {
        full[0] -= u[0][d] * ku[0][d];
        full[1] -= u[0][d] * ku[1][d];
        full[2] -= u[1][d] * ku[1][d];
    }
    if (full[0] > 1e-9 * h[0] && full[2] > 1e-9 * h[2] &&
        full[1] * full[1] < (1.0 - 1e-9) * full[0] * full[2])
        memcpy(h, full, sizeof h);
    if (!linear->infer_scale)
        g[0] = h[1] = 0.0;
    if (!linear->infer_background)
        g[1] = h[1] = 0.0;
    const double det = h[0] * h[2] - h[1] * h[1];
    step[0] = -(h[2] * g[0] - h[1] * g[1]) / det;
    step[1] = -(h[0] * g[1] - h[1] * g[0]) / det;
    *fall = -0.5 * (g[0] * step[0] + g[1] * step[1]);
}

/* Weights, c and b at one theta, from those of `from` and of the dual on. */
static tsr_status solve(const curves *e, const tsr_linear *linear,
                        tsr_maxent_dual *dual, double theta, double *scratch,
                        const tsr_maxent_point *from, tsr_maxent_point *point,
                        tsr_err *err)
{
    enum { MOST_ROUNDS = 100, MOST_HALVES = 30 };
    const double enough = 1e-9; /* nat */
    place p = {.at = {from->scale, from->background},
               .model = scratch,
               .rest = scratch + e->n};
    tsr_status status = weigh_there(e, dual, theta, &p, err);
    for (int round = 0; round < MOST_ROUNDS && status == TSR_OK; round++) {
        const place before = p;
        double step[2], fall, size = 1.0;
        newton(e, linear, dual, theta, &p, step, &fall);
        if (!(fall > enough * (1.0 + p.total)))
            break;
        for (int half = 0; half < MOST_HALVES; half++, size *= 0.5) {
            p.at[0] = before.at[0] + size * step[0];
            p.at[1] = before.at[1] + size * step[1];
            if (!(p.at[0] > 0.0))
                continue;
            status = weigh_there(e, dual, theta, &p, err);
            if (status != TSR_OK || p.total < before.total)
                break;
        }
        if (status == TSR_OK && !(p.total < before.total)) { /* rounding */
            memcpy(p.at, before.at, sizeof p.at);
            status = weigh_there(e, dual, theta, &p, err);
            break;
        }
    }
    if (status == TSR_OK)
        *point = (tsr_maxent_point){theta,          p.chi2 / e->n, dual->kl,
                                    exp(-dual->kl), p.at[0],       p.at[1]};
    return status;
}

/* ---- the L-curve ---- */

static int elbow(const tsr_maxent *m)
{
    const tsr_maxent_point *last = &m->point[m->n_point - 1];
    const double fall = m->start.chi2 - last->chi2;
    int best = 0;
    double farthest = -HUGE_VAL;
    for (int i = 0; i < m->n_point; i++) {
        double x = last->kl > 0.0 ? m->point[i].kl / last->kl : 0.0;
        double y = fall > 0.0 ? (m->point[i].chi2 - last->chi2) / fall : 0.0;
        if (1.0 - x - y > farthest) {
            farthest = 1.0 - x - y;
            best = i;
        }
    }
    return best;
}

/* A power of ten where the weights are all but equal: for large theta lambda is
 * c A^T r / theta, r the residuals, and KL half its square by C. dual: with
 * equal weights. */
static double find_first(const curves *e, const tsr_maxent_dual *dual,
                         const tsr_maxent_point *start)
{
    const double small = 0.001; /* nat */
    const size_t n = (size_t)e->n;
    const int m = e->n_dim;
    const double c = start->scale;
    double u[TSR_MAXENT_DIM] = {0.0}, sum = 0.0;
    for (int d = 0; d < m; d++)
        for (size_t k = 0; k < n; k++)
            u[d] += c * e->axis[(size_t)d * n + k] *
                    ((e->saxs->intensity[k] - start->background) /
                         e->saxs->sigma[k] -
                     c * e->mean[k]);
    for (int d = 0; d < m; d++)
        for (int l = 0; l <= d; l++)
            sum +=
                (l < d ? 2.0 : 1.0) * u[d] * dual->covariance[d * m + l] * u[l];
    const double theta = sqrt(0.5 * sum / small);
    return theta > least_first ? pow(10.0, ceil(log10(theta))) : least_first;
}

static double theta_of(double first, int i)
{
    return first * pow(theta_range, (double)i / (TSR_MAXENT_POINTS - 1));
}

/* Every theta begins where the one before, a little larger, has ended: the
 * weights of a small one are not found from equal ones. */
static tsr_status descend(const curves *e, const tsr_linear *linear,
                          tsr_maxent_dual *dual, double theta, double *scratch,
                          tsr_maxent *m, tsr_err *err)
{
    double lambda[TSR_MAXENT_POINTS][TSR_MAXENT_DIM];
    const double first = find_first(e, dual, &m->start);
    tsr_maxent_point at = m->start;
    tsr_status status = TSR_OK;
    if (theta > 0.0) {
        for (int i = 0; theta_of(first, i) > theta && status == TSR_OK; i++)
            status = solve(e, linear, dual, theta_of(first, i), scratch, &at,
                           &at, err);
        m->n_point = 1;
        return status == TSR_OK ? solve(e, linear, dual, theta, scratch, &at,
                                        &m->point[0], err)
                                : status;
    }
    m->n_point = TSR_MAXENT_POINTS;
    for (int i = 0; i < m->n_point && status == TSR_OK; i++) {
        status =
            solve(e, linear, dual, theta_of(first, i), scratch, &at, &at, err);
        m->point[i] = at;
        memcpy(lambda[i], dual->lambda, sizeof lambda[i]);
    }
    if (status != TSR_OK)
        return status;
    m->chosen = elbow(m);
    at = m->point[m->chosen];
    memcpy(dual->lambda, lambda[m->chosen], sizeof dual->lambda);
    return solve(e, linear, dual, at.theta, scratch, &at, &m->point[m->chosen],
                 err);
}

static tsr_status scan(const curves *e, const tsr_linear *linear, double theta,
                       tsr_maxent *m, tsr_err *err)
{
    tsr_maxent_dual *dual;
    double *scratch = malloc(2 * (size_t)e->n * sizeof *scratch);
    tsr_status status = dual_new(m->n, e->n_dim, e->score, &dual, err);
    TSR_THEN(status, tsr_allocated(scratch, err));
    TSR_THEN(status, fit_equal(e, linear, scratch, &m->start, err));
    TSR_THEN(status,
             tsr_curve_operator_check(&e->stored->saxs, e->saxs, m->mean_curve,
                                      m->start.scale, &m->interpolation, err));
    TSR_THEN(status, descend(e, linear, dual, theta, scratch, m, err));
    if (status == TSR_OK)
        memcpy(m->log_weight, dual->log_weight,
               (size_t)m->n * sizeof *m->log_weight);
    dual_free(dual);
    free(scratch);
    return status;
}

static tsr_status visit_mean(void *context, size_t at, const double *curve,
                             tsr_err *err)
{
    tsr_maxent *m = context;
    (void)at, (void)err;
    for (int k = 0; k < m->n_curve; k++)
        m->mean_curve[k] += curve[k] / (double)m->n;
    return TSR_OK;
}

void tsr_maxent_free(tsr_maxent *m)
{
    if (m == NULL)
        return;
    free(m->log_weight);
    free(m->mean_curve);
    free(m);
}

tsr_status tsr_maxent_make(const tsr_stored_curve *stored, const tsr_saxs *saxs,
                           const tsr_linear *linear, double theta,
                           tsr_maxent **out, tsr_err *err)
{
    curves e = {.n = 0};
    tsr_maxent *m = calloc(1, sizeof *m);
    *out = NULL;
    TSR_TRY(tsr_allocated(m, err));
    m->n = (long)stored->n_chain * stored->n_draw;
    m->n_curve = stored->n;
    m->log_weight = malloc((size_t)m->n * sizeof *m->log_weight);
    m->mean_curve = calloc((size_t)stored->n, sizeof *m->mean_curve);
    tsr_status status = m->log_weight != NULL && m->mean_curve != NULL
                            ? tsr_stored_curve_each(stored, visit_mean, m, err)
                            : tsr_no_memory(err);
    TSR_THEN(status, make_curves(stored, saxs, &e, err));
    m->n_dim = e.n_dim;
    TSR_THEN(status, scan(&e, linear, theta, m, err));
    clear_curves(&e);
    if (status != TSR_OK) {
        tsr_maxent_free(m);
        m = NULL;
    }
    *out = m;
    return status;
}

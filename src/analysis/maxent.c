#include "analysis/maxent.h"

#include "analysis/maxent_curves.h"
#include "analysis/maxent_dual.h"
#include "analysis/reweight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least_first = 1e4, theta_range = 1e-8;
static const double most_interpolation = 0.3;

/* ---- scale and background ---- */

/* Best c and b for the mean of equal weights. */
static tsr_status fit_equal(const tsr_maxent_curves *e,
                            const tsr_linear *linear, double *scratch,
                            tsr_maxent_point *point, tsr_err *err)
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

static tsr_status weigh_there(const tsr_maxent_curves *e, tsr_maxent_dual *dual,
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
    tsr_status status =
        tsr_maxent_dual_solve(dual, p->at[0], target, theta, err);
    if (status != TSR_OK)
        return status;
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
static void newton(const tsr_maxent_curves *e, const tsr_linear *linear,
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
        tsr_maxent_dual_answer(dual, c, theta, u[i], ku[i]);
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
static tsr_status solve(const tsr_maxent_curves *e, const tsr_linear *linear,
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
static double find_first(const tsr_maxent_curves *e,
                         const tsr_maxent_dual *dual,
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
static tsr_status descend(const tsr_maxent_curves *e, const tsr_linear *linear,
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

static tsr_status scan(const tsr_maxent_curves *e, const tsr_linear *linear,
                       double theta, tsr_maxent *m, tsr_err *err)
{
    tsr_maxent_dual *dual;
    double *scratch = malloc(2 * (size_t)e->n * sizeof *scratch);
    tsr_status status =
        tsr_maxent_dual_new(m->n, e->n_dim, e->score, &dual, err);
    if (status == TSR_OK && scratch == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (status == TSR_OK)
        status = fit_equal(e, linear, scratch, &m->start, err);
    if (status == TSR_OK)
        m->interpolation = tsr_curve_operator_error(
            &e->stored->saxs, e->saxs, m->mean_curve, m->start.scale);
    if (status == TSR_OK && !(m->interpolation <= most_interpolation))
        status = tsr_fail(err, TSR_E_DATA,
                          "the run's %d values of q are too far apart to "
                          "interpolate the curve for '%s': the error would be "
                          "%.2g of its sigma (%.2g are allowed); run with that "
                          "data",
                          e->stored->n, e->saxs->path, m->interpolation,
                          most_interpolation);
    if (status == TSR_OK)
        status = descend(e, linear, dual, theta, scratch, m, err);
    if (status == TSR_OK)
        memcpy(m->log_weight, dual->log_weight,
               (size_t)m->n * sizeof *m->log_weight);
    tsr_maxent_dual_free(dual);
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
    tsr_maxent_curves e = {.n = 0};
    tsr_maxent *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    m->n = (long)stored->n_chain * stored->n_draw;
    m->n_curve = stored->n;
    m->log_weight = malloc((size_t)m->n * sizeof *m->log_weight);
    m->mean_curve = calloc((size_t)stored->n, sizeof *m->mean_curve);
    tsr_status status = m->log_weight != NULL && m->mean_curve != NULL
                            ? tsr_stored_curve_each(stored, visit_mean, m, err)
                            : tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (status == TSR_OK)
        status = tsr_maxent_curves_make(stored, saxs, &e, err);
    m->n_dim = e.n_dim;
    if (status == TSR_OK)
        status = scan(&e, linear, theta, m, err);
    tsr_maxent_curves_clear(&e);
    if (status != TSR_OK) {
        tsr_maxent_free(m);
        m = NULL;
    }
    *out = m;
    return status;
}

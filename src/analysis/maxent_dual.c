/* Newton's method with halved steps on a smooth convex function: log sum exp of
 * the scores. The largest exponent is taken out of the sum, so that nothing
 * overflows. */
#include "analysis/maxent.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

void tsr_maxent_dual_free(tsr_maxent_dual *dual)
{
    if (dual == NULL)
        return;
    free(dual->log_weight);
    free(dual);
}

tsr_status tsr_maxent_dual_new(long n, int n_dim, const double *score,
                               tsr_maxent_dual **out, tsr_err *err)
{
    *out = calloc(1, sizeof **out);
    TSR_TRY(tsr_allocated(*out, err));
    (*out)->n = n;
    (*out)->n_dim = n_dim;
    (*out)->score = score;
    (*out)->log_weight = malloc((size_t)n * sizeof *(*out)->log_weight);
    if ((*out)->log_weight == NULL) {
        tsr_maxent_dual_free(*out);
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

void tsr_maxent_dual_answer(const tsr_maxent_dual *d, double c, double theta,
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

tsr_status tsr_maxent_dual_solve(tsr_maxent_dual *d, double c,
                                 const double *target, double theta,
                                 tsr_err *err)
{
    enum { MOST_STEPS = 200 };
    const double enough = 1e-12; /* of the dual, and rounding stays below */
    for (int round = 0; round < MOST_STEPS; round++) {
        double step[TSR_MAXENT_DIM], trial[TSR_MAXENT_DIM], slope, size = 1.0;
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

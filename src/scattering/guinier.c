/* A weighted straight line through ln I against q squared. The points that obey
 * Guinier's law depend on Rg (q Rg below 1.3), so line and points are found
 * alternately until Rg no longer changes. */
#include "scattering/guinier.h"

#include <gsl/gsl_fit.h>

#include <math.h>
#include <stdlib.h>

static const double max_q_rg = 1.3;
enum { MIN_POINTS = 5, MAX_ROUND = 20 };

/* Points for the line: q^2, ln I, and the weight of ln I. */
typedef struct {
    int n;
    double *x, *y, *weight;
} points;

/* Adds a point with the weight of the measured value and the ordinate ln
 * `value`, unless the measured value is not above sigma or `value` not
 * positive. */
static void add_point(points *p, double q, double measured, double sigma,
                      double value)
{
    if (!(measured > sigma) || !(value > 0.0))
        return;
    p->x[p->n] = q * q;
    p->y[p->n] = log(value);
    p->weight[p->n++] = measured * measured / (sigma * sigma);
}

/* Returns 0 if the line does not fall. */
static int fit_line(const points *p, double *rg, double *error, double *i0)
{
    double at_0, slope, c00, c01, c11, chi2;
    gsl_fit_wlinear(p->x, 1, p->weight, 1, p->y, 1, (size_t)p->n, &at_0, &slope,
                    &c00, &c01, &c11, &chi2);
    if (!(slope < 0.0))
        return 0;
    *rg = sqrt(-3.0 * slope);
    *error = 1.5 * sqrt(c11) / *rg;
    *i0 = exp(at_0);
    return 1;
}

static int points_make(int n, points *p)
{
    double *storage = malloc(3 * ((size_t)n + 1) * sizeof *storage);
    *p = (points){0, storage, storage + n, storage + 2 * (size_t)n};
    return storage != NULL;
}

tsr_status tsr_guinier_fit(int n, const double *q, const double *intensity,
                           const double *sigma, double background,
                           double rg_first, tsr_guinier *out, tsr_err *err)
{
    const double nan = (double)NAN;
    points p;
    double rg = rg_first;
    *out = (tsr_guinier){.rg = nan, .error = nan, .i0 = nan, .q = {nan, nan}};
    if (!points_make(n, &p))
        return tsr_no_memory(err);
    for (int round = 0; round < MAX_ROUND && isfinite(rg) && rg > 0.0;
         round++) {
        double next, error, i0;
        int k = 0;
        p.n = 0;
        for (; k < n && q[k] * rg < max_q_rg; k++)
            add_point(&p, q[k], intensity[k] - background, sigma[k],
                      intensity[k] - background);
        if (p.n < MIN_POINTS || !fit_line(&p, &next, &error, &i0))
            break;
        *out = (tsr_guinier){p.n, 0, k - 1, next, error, i0, {q[0], q[k - 1]}};
        if (fabs(next - rg) < 1e-4 * rg)
            break;
        rg = next;
    }
    free(p.x);
    return TSR_OK;
}

double tsr_guinier_rg(const tsr_guinier *range, const double *q,
                      const double *intensity, const double *sigma,
                      double background, const double *curve)
{
    points p;
    double rg = (double)NAN, error, i0;
    const int first = range->first;
    if (range->n < MIN_POINTS || !points_make(range->last + 1 - first, &p))
        return rg;
    for (int k = first; k <= range->last; k++)
        add_point(&p, q[k], intensity[k] - background, sigma[k],
                  curve[k - first]);
    if (p.n < MIN_POINTS || !fit_line(&p, &rg, &error, &i0))
        rg = (double)NAN;
    free(p.x);
    return rg;
}

int tsr_guinier_conflict(const tsr_guinier *a, const tsr_guinier *b,
                         double *sigma)
{
    const double min_sigma = 3.0, min_relative = 0.02;
    const double difference = fabs(a->rg - b->rg);
    *sigma = difference / hypot(a->error, b->error);
    return a->n > 0 && b->n > 0 && *sigma > min_sigma &&
           difference > min_relative * fmax(a->rg, b->rg);
}

double tsr_guinier_mass(const tsr_guinier *range, int n, const double *q,
                        const double *intensity, double background)
{
    const double per_mass = 0.1231, most = 0.3, least = 0.2;
    double sum = 0.5 * range->i0 * q[0] * q[0], q_max = q[0];
    for (int k = 1; k < n && q[k] <= most; k++) {
        sum += 0.5 * (q[k] - q[k - 1]) *
               (q[k] * (intensity[k] - background) +
                q[k - 1] * (intensity[k - 1] - background));
        q_max = q[k];
    }
    const double volume = range->i0 / sum;
    return range->n > 0 && q_max >= least
               ? volume * volume / (per_mass * range->rg)
               : (double)NAN;
}

/* Partial profiles at the q of data. The operator carries them there once; a
 * curve for any c1 and c2 is then a sum of a few curves. Rg of a curve is that
 * of the line through its smallest q (Guinier). */
#include "scattering/contrast.h"

#include "scattering/form_factor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t pairs(int n_comp)
{
    return (size_t)(n_comp * (n_comp + 1) / 2);
}

void tsr_partials_clear(tsr_partials *partials)
{
    free(partials->pair);
    free(partials->self);
    *partials = (tsr_partials){0};
}

void tsr_partial_curves_clear(tsr_partial_curves *curves)
{
    free(curves->q);
    free(curves->pair);
    free(curves->self);
    free(curves->matrix);
    free(curves->grid);
    *curves = (tsr_partial_curves){0};
}

static void carry(const double *matrix, int n, int n_q, const double *from,
                  double *to)
{
    for (int k = 0; k < n; k++) {
        double sum = 0.0;
        for (int j = 0; j < n_q; j++)
            sum += matrix[(size_t)k * (size_t)n_q + (size_t)j] * from[j];
        to[k] = sum;
    }
}

tsr_status tsr_partial_curves_make(const tsr_partials *partials, int n,
                                   const double *q_inv_ang,
                                   tsr_partial_curves *out, tsr_err *err)
{
    const tsr_partials *p = partials;
    size_t n_point = (size_t)n, n_q = (size_t)p->grid.n_q;
    size_t n_pair = pairs(p->n_comp);
    double *matrix = NULL;
    *out = (tsr_partial_curves){
        .n_comp = p->n_comp, .n = n, .radius_ang = p->radius_ang};
    TSR_TRY(tsr_q_operator_new(&p->grid, n, q_inv_ang, &matrix, err));
    out->q = calloc(n_point, sizeof *out->q);
    out->pair = calloc(n_pair * n_point, sizeof *out->pair);
    out->self = calloc(n_point, sizeof *out->self);
    if (out->q == NULL || out->pair == NULL || out->self == NULL) {
        tsr_partial_curves_clear(out);
        free(matrix);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %d q", n);
    }
    memcpy(out->q, q_inv_ang, n_point * sizeof *out->q);
    for (size_t i = 0; i < n_pair; i++)
        carry(matrix, n, p->grid.n_q, p->pair + i * n_q,
              out->pair + i * n_point);
    if (p->self != NULL)
        carry(matrix, n, p->grid.n_q, p->self, out->self);
    free(matrix);
    return TSR_OK;
}

tsr_status tsr_partial_curves_of(const tsr_partials *partials,
                                 const tsr_saxs *saxs, tsr_partial_curves *out,
                                 tsr_err *err)
{
    const tsr_partials *p = partials;
    const size_t n_q = (size_t)p->grid.n_q, n = pairs(p->n_comp) * n_q;
    if (tsr_resolution_is_ideal(&saxs->resolution))
        return tsr_partial_curves_make(p, saxs->n, saxs->q, out, err);
    *out = (tsr_partial_curves){.n_comp = p->n_comp,
                                .n = saxs->n,
                                .radius_ang = p->radius_ang,
                                .n_grid = p->grid.n_q,
                                .q = calloc(n_q, sizeof *out->q),
                                .pair = calloc(n, sizeof *out->pair),
                                .self = calloc(n_q, sizeof *out->self),
                                .grid = calloc(n_q, sizeof *out->grid)};
    tsr_status status = TSR_OK;
    if (out->q == NULL || out->pair == NULL || out->self == NULL ||
        out->grid == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for %d q", saxs->n);
    TSR_THEN(status,
             tsr_q_operator_smeared(&p->grid, &saxs->resolution, saxs->n,
                                    saxs->q, &out->matrix, err));
    if (status != TSR_OK) {
        tsr_partial_curves_clear(out);
        return status;
    }
    for (size_t k = 0; k < n_q; k++)
        out->q[k] = (double)k * p->grid.dq_inv_ang;
    memcpy(out->pair, p->pair, n * sizeof *out->pair);
    if (p->self != NULL)
        memcpy(out->self, p->self, n_q * sizeof *out->self);
    return TSR_OK;
}

/* At the q of the curves themselves, n of them. */
static void combine(const tsr_partial_curves *curves, size_t n, double c1,
                    double c2, double *intensity)
{
    for (size_t k = 0; k < n; k++) {
        const double *pair = curves->pair + k;
        double g = tsr_component_scale(c1, curves->radius_ang, curves->q[k]);
        intensity[k] =
            curves->self[k] + (curves->n_comp != TSR_N_COMP
                                   ? *pair
                                   : tsr_component_intensity(pair, n, g, c2));
    }
}

void tsr_contrast_intensity(const tsr_partial_curves *curves, double c1,
                            double c2, double *intensity)
{
    const tsr_partial_curves *c = curves;
    if (c->matrix == NULL) {
        combine(c, (size_t)c->n, c1, c2, intensity);
        return;
    }
    combine(c, (size_t)c->n_grid, c1, c2, c->grid);
    carry(c->matrix, c->n, c->n_grid, c->grid, intensity);
}

/* Straight line through (x, y); returns 0 where it does not fall. */
static int line(int n, const double *x, const double *y, double *slope,
                double *start)
{
    double sx = 0.0, sy = 0.0, sxx = 0.0, sxy = 0.0;
    for (int k = 0; k < n; k++) {
        sx += x[k], sy += y[k];
        sxx += x[k] * x[k], sxy += x[k] * y[k];
    }
    *slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    *start = (sy - *slope * sx) / n;
    return *slope < 0.0;
}

tsr_status tsr_contrast_guinier(const tsr_partials *partials, double c1,
                                double c2, double rg_first, double *rg_ang,
                                double *i0, tsr_err *err)
{
    enum { N = 20, ROUNDS = 5 };
    double q[N], intensity[N], x[N], y[N], slope, start;
    double rg = rg_first,
           q_top = (partials->grid.n_q - 1) * partials->grid.dq_inv_ang;
    *rg_ang = *i0 = (double)NAN;
    for (int round = 0; round < ROUNDS; round++) {
        tsr_partial_curves curves;
        for (int k = 0; k < N; k++)
            q[k] = fmin(1.3 / rg, q_top) * ((double)k / (N - 1));
        tsr_status status =
            tsr_partial_curves_make(partials, N, q, &curves, err);
        if (status != TSR_OK)
            return status;
        tsr_contrast_intensity(&curves, c1, c2, intensity);
        tsr_partial_curves_clear(&curves);
        for (int k = 0; k < N; k++) {
            x[k] = q[k] * q[k];
            y[k] = log(intensity[k]); /* NaN where it is negative */
        }
        *i0 = intensity[0];
        if (!line(N, x, y, &slope, &start))
            return TSR_OK;
        rg = sqrt(-3.0 * slope);
    }
    *rg_ang = rg;
    return TSR_OK;
}

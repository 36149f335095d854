/* The best fit of one structure's curve to data, for `tessera profile`: a
 * single answer with chi-square, in contrast to the posterior of a run.
 *
 * Chi-square may have several minima in c1 and c2. A grid search over both
 * comes first, and Levenberg-Marquardt continues from its best point. */
#include "scattering/profile_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- partial profiles at the q of data ----
 *
 * The operator is applied once to the partial profiles. The curve for any c1
 * and c2 is then a sum of a few curves. Rg follows from a line through the
 * smallest q (Guinier). */

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
    tsr_pool_clear(&curves->pool);
    free(curves->matrix);
    *curves = (tsr_partial_curves){0};
}

/* Allocates partial profiles at n values of q. */
static tsr_status curves_new(const tsr_partials *p, int n,
                             tsr_partial_curves *out, tsr_err *err)
{
    *out = (tsr_partial_curves){
        .n_comp = p->n_comp, .n = n, .radius_ang = p->radius_ang};
    tsr_pool_array(&out->pool, out->q, n);
    tsr_pool_array(&out->pool, out->pair, pairs(p->n_comp) * (size_t)n);
    tsr_pool_array(&out->pool, out->self, n);
    return out->pool.failed
               ? tsr_fail(err, TSR_E_NOMEM, "out of memory for %d q", n)
               : TSR_OK;
}

tsr_status tsr_partial_curves_make(const tsr_partials *p, int n,
                                   const double *q_inv_ang,
                                   tsr_partial_curves *out, tsr_err *err)
{
    const int n_q = p->grid.n_q;
    double *matrix = NULL;
    tsr_status status = curves_new(p, n, out, err);
    TSR_THEN(status, tsr_q_operator_new(&p->grid, n, q_inv_ang, &matrix, err));
    if (status != TSR_OK) {
        tsr_partial_curves_clear(out);
        return status;
    }
    memcpy(out->q, q_inv_ang, (size_t)n * sizeof *out->q);
    for (size_t i = 0; i < pairs(p->n_comp); i++)
        tsr_q_operator_apply(matrix, n, n_q, p->pair + i * (size_t)n_q,
                             out->pair + i * (size_t)n);
    if (p->self != NULL)
        tsr_q_operator_apply(matrix, n, n_q, p->self, out->self);
    free(matrix);
    return TSR_OK;
}

tsr_status tsr_partial_curves_of_data(const tsr_partials *p,
                                      const tsr_saxs *saxs,
                                      tsr_partial_curves *out, tsr_err *err)
{
    const size_t n_q = (size_t)p->grid.n_q;
    if (tsr_resolution_is_ideal(&saxs->resolution))
        return tsr_partial_curves_make(p, saxs->n, saxs->q, out, err);
    tsr_status status = curves_new(p, p->grid.n_q, out, err);
    out->n = saxs->n;
    out->n_grid = p->grid.n_q;
    tsr_pool_array(&out->pool, out->grid, n_q);
    TSR_THEN(status, tsr_pool_check(&out->pool, err));
    TSR_THEN(status,
             tsr_q_operator_smeared(&p->grid, &saxs->resolution, saxs->n,
                                    saxs->q, &out->matrix, err));
    if (status != TSR_OK) {
        tsr_partial_curves_clear(out);
        return status;
    }
    for (size_t k = 0; k < n_q; k++)
        out->q[k] = (double)k * p->grid.dq_inv_ang;
    memcpy(out->pair, p->pair, pairs(p->n_comp) * n_q * sizeof *out->pair);
    if (p->self != NULL)
        memcpy(out->self, p->self, n_q * sizeof *out->self);
    return TSR_OK;
}

/* intensity [n] out: the curve at the n values curves->q, before smearing. */
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

void tsr_contrast_intensity(const tsr_partial_curves *c, double c1, double c2,
                            double *intensity)
{
    if (c->matrix == NULL) {
        combine(c, (size_t)c->n, c1, c2, intensity);
        return;
    }
    combine(c, (size_t)c->n_grid, c1, c2, c->grid);
    tsr_q_operator_apply(c->matrix, c->n, c->n_grid, c->grid, intensity);
}

/* Straight line through (x, y). Returns 0 if it does not fall. */
static int fit_line(int n, const double *x, const double *y, double *slope,
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
        TSR_TRY(tsr_partial_curves_make(partials, N, q, &curves, err));
        tsr_contrast_intensity(&curves, c1, c2, intensity);
        tsr_partial_curves_clear(&curves);
        for (int k = 0; k < N; k++) {
            x[k] = q[k] * q[k];
            y[k] = log(intensity[k]); /* NaN if negative */
        }
        *i0 = intensity[0];
        if (!fit_line(N, x, y, &slope, &start))
            return TSR_OK;
        rg = sqrt(-3.0 * slope);
    }
    *rg_ang = rg;
    return TSR_OK;
}

/* ---- the CorMap test ----
 *
 * The longest run of residuals of one sign, and the probability of such a run
 * by chance. The test does not use sigma, so it detects a misfit even if sigma
 * is wrong. */

int tsr_cormap_longest_run(int n, const double *residual)
{
    int longest = 0, run = 0, before = 0;
    for (int k = 0; k < n; k++) {
        int sign = (residual[k] > 0.0) - (residual[k] < 0.0);
        run = sign != 0 && sign == before ? run + 1 : sign != 0;
        before = sign;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* n tosses contain a run of `run` if L = run - 1 of the n - 1 comparisons of
 * neighbours are "same" in a row. Let p[m] be the probability of this within m
 * comparisons. Then p[m] = p[m - 1] + 2^-(L + 1) (1 - p[m - L - 1]): the first
 * such row that ends at m follows a "different". The start is p[L] = 2^-L, at
 * the beginning of the series. */
double tsr_cormap_p(int n, int run)
{
    int m = n - 1, l = run - 1;
    if (run <= 1)
        return 1.0;
    if (run > n)
        return 0.0;
    double *p = malloc(((size_t)m + 1) * sizeof *p);
    if (p == NULL)
        return (double)NAN;
    for (int k = 0; k <= m; k++)
        p[k] = k < l    ? 0.0
               : k == l ? ldexp(1.0, -l)
                        : p[k - 1] + ldexp(1.0 - p[k - l - 1], -l - 1);
    double result = p[m];
    free(p);
    return result;
}

const char *tsr_cormap_text(const char *before, double p, char text[48])
{
    text[0] = '\0';
    if (!isnan(p))
        snprintf(text, 48, "%s%.2g", before, p);
    return text;
}

/* ---- the fit ---- */

const tsr_profile_fit_options tsr_profile_fit_defaults = {.c1 = {0.95, 1.05},
                                                          .c2 = {0.0, 4.0}};

enum { GRID_C1 = 11, GRID_C2 = 25, MAX_STEP = 100 };
static const double at_bound = 1e-3; /* fraction of the bounds' interval */

typedef struct {
    double scale, background;
} linear;

typedef struct {
    int n_data, n; /* n: points of all data together */
    const tsr_profile_fit_curve *data;
    tsr_profile_predict predict;
    void *context;
    const double *bound[2]; /* of c1, c2 */
    int free[2], n_free;
    double *model;  /* [n] scratch */
    linear *solved; /* [n_data] */
} problem;

/* Best scale and background for a model. Returns chi2, infinite if the scale is
 * not positive. */
static double solve_linear(const tsr_profile_fit_curve *d, const double *model,
                           linear *out)
{
    double w = 0.0, x = 0.0, y = 0.0, xx = 0.0, xy = 0.0;
    for (int k = 0; k < d->n; k++) {
        double weight = 1.0 / (d->sigma[k] * d->sigma[k]);
        double i = d->intensity[k] - (d->fit_background ? 0.0 : d->background);
        w += weight;
        x += weight * model[k];
        y += weight * i;
        xx += weight * model[k] * model[k];
        xy += weight * model[k] * i;
    }
    *out = (linear){xy / xx, d->background};
    if (d->fit_background) {
        out->scale = (w * xy - x * y) / (w * xx - x * x);
        out->background = (y - out->scale * x) / w;
    }
    double chi2 = 0.0;
    for (int k = 0; k < d->n; k++) {
        double r = (d->intensity[k] - out->scale * model[k] - out->background) /
                   d->sigma[k];
        chi2 += r * r;
    }
    return out->scale > 0.0 ? chi2 : (double)INFINITY;
}

static double chi2_at(problem *p, const double c[2])
{
    double chi2 = 0.0;
    const double *model = p->model;
    p->predict(p->context, c[0], c[1], p->model);
    for (int i = 0; i < p->n_data; model += p->data[i++].n)
        chi2 += solve_linear(&p->data[i], model, &p->solved[i]);
    return chi2;
}

/* ---- c1 and c2 ---- */

static void bounded_values(const problem *p, const gsl_vector *u, double c[2])
{
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        const double *b = p->bound[i];
        c[i] = b[0];
        if (p->free[i])
            c[i] = 0.5 * (b[0] + b[1]) +
                   0.5 * (b[1] - b[0]) * sin(gsl_vector_get(u, at++));
    }
}

static int residuals(const gsl_vector *u, void *context, gsl_vector *f)
{
    problem *p = context;
    double c[2];
    bounded_values(p, u, c);
    chi2_at(p, c);
    size_t at = 0;
    for (int i = 0; i < p->n_data; i++) {
        const tsr_profile_fit_curve *d = &p->data[i];
        for (int k = 0; k < d->n; k++, at++)
            gsl_vector_set(f, at,
                           (d->intensity[k] -
                            p->solved[i].scale * p->model[at] -
                            p->solved[i].background) /
                               d->sigma[k]);
    }
    return GSL_SUCCESS;
}

/* The best point of a grid of cell centres. Bounds are excluded, because the
 * sine has no slope there. */
static double search_grid(problem *p, double best[2])
{
    double lowest = (double)INFINITY;
    int n0 = p->free[0] ? GRID_C1 : 1, n1 = p->free[1] ? GRID_C2 : 1;
    for (int i = 0; i < n0; i++)
        for (int j = 0; j < n1; j++) {
            const double *a = p->bound[0], *b = p->bound[1];
            double c[2] = {a[0] + (a[1] - a[0]) * (i + 0.5) / n0,
                           b[0] + (b[1] - b[0]) * (j + 0.5) / n1};
            for (int k = 0; k < 2; k++)
                if (!p->free[k])
                    c[k] = p->bound[k][0];
            double chi2 = chi2_at(p, c);
            if (chi2 < lowest) {
                lowest = chi2;
                best[0] = c[0], best[1] = c[1];
            }
        }
    return lowest;
}

static tsr_status refine(problem *p, double best[2], double *lowest,
                         tsr_err *err)
{
    size_t n = (size_t)p->n, m = (size_t)p->n_free, at = 0;
    gsl_multifit_nlinear_parameters parameters =
        gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf fdf = {
        .f = residuals, .n = n, .p = m, .params = p};
    gsl_multifit_nlinear_workspace *work = gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &parameters, n, m);
    gsl_vector *u = gsl_vector_alloc(m);
    int info;
    if (work == NULL || u == NULL) {
        gsl_multifit_nlinear_free(work);
        gsl_vector_free(u);
        return tsr_no_memory(err);
    }
    for (int i = 0; i < 2; i++) {
        const double *b = p->bound[i];
        if (p->free[i])
            gsl_vector_set(u, at++,
                           asin((2.0 * best[i] - b[0] - b[1]) / (b[1] - b[0])));
    }
    gsl_multifit_nlinear_init(u, &fdf, work);
    /* Without convergence the best point so far is used. */
    gsl_multifit_nlinear_driver(MAX_STEP, 1e-8, 1e-10, 0.0, NULL, NULL, &info,
                                work);
    double c[2];
    bounded_values(p, gsl_multifit_nlinear_position(work), c);
    double chi2 = chi2_at(p, c);
    if (chi2 <= *lowest) {
        *lowest = chi2;
        best[0] = c[0], best[1] = c[1];
    }
    gsl_multifit_nlinear_free(work);
    gsl_vector_free(u);
    return TSR_OK;
}

/* -1 near the lower bound, 1 near the upper bound, 0 otherwise. */
static int bound_side(const problem *p, int which, double c)
{
    const double *b = p->bound[which];
    double tolerance = at_bound * (b[1] - b[0]);
    if (!p->free[which])
        return 0;
    return c < b[0] + tolerance ? -1 : c > b[1] - tolerance ? 1 : 0;
}

/* Sets the results of one data set. model [d->n]: its part of the model, in;
 * residuals, out. */
static void set_fit(const problem *p, const double c[2],
                    const tsr_profile_fit_curve *d, const linear *l,
                    double *model)
{
    const int n = d->n;
    const int n_parameter = 1 + p->n_free + (d->fit_background != 0);
    tsr_profile_fit *fit = d->fit;
    double chi2 = 0.0;
    for (int k = 0; k < n; k++) {
        d->curve[k] = l->scale * model[k] + l->background;
        model[k] = d->intensity[k] - d->curve[k];
        chi2 += model[k] * model[k] / (d->sigma[k] * d->sigma[k]);
    }
    *fit = (tsr_profile_fit){.n_point = n,
                             .n_parameter = n_parameter,
                             .scale = l->scale,
                             .background = l->background,
                             .c1 = c[0],
                             .c2 = c[1],
                             .c1_at = bound_side(p, 0, c[0]),
                             .c2_at = bound_side(p, 1, c[1]),
                             .chi2 = chi2 / n};
    fit->reduced_chi2 =
        n > n_parameter ? chi2 / (n - n_parameter) : (double)NAN;
    fit->longest_run = tsr_cormap_longest_run(n, model);
    fit->cormap_p = tsr_cormap_p(n, fit->longest_run);
}

static tsr_status fit_all(problem *p, tsr_err *err)
{
    double best[2] = {p->bound[0][0], p->bound[1][0]}, *model = p->model;
    double chi2 = search_grid(p, best);
    if (isfinite(chi2) && p->n_free > 0 && p->n > p->n_free)
        TSR_TRY(refine(p, best, &chi2, err));
    if (!isfinite(chi2_at(p, best)))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "no positive scale fits the curve to the data; are the "
                        "data of this molecule, and is the buffer subtracted?");
    for (int i = 0; i < p->n_data; model += p->data[i++].n)
        set_fit(p, best, &p->data[i], &p->solved[i], model);
    return TSR_OK;
}

tsr_status tsr_profile_fit_joint(int n_data, const tsr_profile_fit_curve *data,
                                 const double c1[2], const double c2[2],
                                 tsr_profile_predict predict, void *context,
                                 tsr_err *err)
{
    problem p = {.n_data = n_data,
                 .data = data,
                 .predict = predict,
                 .context = context,
                 .bound = {c1, c2},
                 .free = {c1[1] > c1[0], c2[1] > c2[0]}};
    p.n_free = p.free[0] + p.free[1];
    for (int i = 0; i < n_data; i++)
        p.n += data[i].n;
    tsr_pool pool = {0};
    tsr_pool_array(&pool, p.model, p.n);
    tsr_pool_array(&pool, p.solved, n_data);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, fit_all(&p, err));
    tsr_pool_clear(&pool);
    return status;
}

static void predict_one(void *context, double c1, double c2, double *model)
{
    tsr_contrast_intensity(context, c1, c2, model);
}

tsr_status tsr_profile_fit_make(const tsr_partial_curves *curves,
                                const double *intensity, const double *sigma,
                                const tsr_profile_fit_options *options,
                                tsr_profile_fit *fit, double *curve,
                                tsr_err *err)
{
    static const double none[2][2] = {{1.0, 1.0}, {0.0, 0.0}};
    const int has_contrast = curves->n_comp == 3;
    const tsr_profile_fit_curve data = {.n = curves->n,
                                        .intensity = intensity,
                                        .sigma = sigma,
                                        .fit_background =
                                            options->fit_background,
                                        .background = options->background,
                                        .fit = fit,
                                        .curve = curve};
    tsr_partial_curves copy = *curves;
    return tsr_profile_fit_joint(1, &data, has_contrast ? options->c1 : none[0],
                                 has_contrast ? options->c2 : none[1],
                                 predict_one, &copy, err);
}

void tsr_profile_fit_set_noise(tsr_profile_fit *fit,
                               const tsr_saxs_noise *noise)
{
    fit->noise = noise->level;
    if (noise->is_shared)
        fit->cormap_p = (double)NAN;
}

void tsr_profile_bounds_text(const tsr_profile_fit *fit, char *text,
                             size_t size)
{
    static const char *const side[] = {"lower", "", "upper"};
    text[0] = '\0';
    if (fit->c1_at != 0 && fit->c2_at != 0)
        snprintf(text, size, " (c1 at its %s bound, c2 at its %s bound)",
                 side[fit->c1_at + 1], side[fit->c2_at + 1]);
    else if (fit->c1_at != 0)
        snprintf(text, size, " (c1 at its %s bound)", side[fit->c1_at + 1]);
    else if (fit->c2_at != 0)
        snprintf(text, size, " (c2 at its %s bound)", side[fit->c2_at + 1]);
}

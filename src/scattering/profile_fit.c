/* The best fit of one structure's curve to data, for `tessera profile`: one
 * answer with its chi-square, where a run gives a posterior.
 *
 * Chi-square may have several minima in c1 and c2, so a grid of both is tried
 * before Levenberg-Marquardt goes on from the best of its points. */
#include "scattering/profile_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The CorMap test: the longest run of residuals of one sign, and how probable
 * a run as long is by chance alone. It asks for no errors, so it also tells a
 * misfit where sigma is wrong. */

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

/* n tosses have a run of `run` where the n - 1 comparisons of neighbours hold
 * L = run - 1 times "same" in a row. For the probability p[m] that m
 * comparisons do: p[m] = p[m - 1] + 2^-(L + 1) (1 - p[m - L - 1]), since the
 * first such row that ends at m follows a "different" (p[L] = 2^-L: it begins
 * the series). */
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

const tsr_profile_fit_options tsr_profile_fit_defaults = {.c1 = {0.95, 1.05},
                                                          .c2 = {0.0, 4.0}};

enum { GRID_C1 = 11, GRID_C2 = 25, MAX_STEP = 100 };
static const double at_bound = 1e-3; /* of the distance between the bounds */

typedef struct {
    const tsr_partial_curves *curves;
    const double *intensity, *sigma;
    const tsr_profile_fit_options *options;
    int free[2], n_free; /* of c1, c2 */
    double c[2];         /* where they are fixed */
    double *model;       /* [n] scratch */
    double scale, background;
} problem;

static const double *bounds(const problem *p, int which)
{
    return which == 0 ? p->options->c1 : p->options->c2;
}

/* The scale and background that fit best to p->model; returns chi2, infinite
 * where the scale is not positive. */
static double solve_linear(problem *p)
{
    double w = 0.0, x = 0.0, y = 0.0, xx = 0.0, xy = 0.0;
    for (int k = 0; k < p->curves->n; k++) {
        double weight = 1.0 / (p->sigma[k] * p->sigma[k]);
        double i = p->intensity[k] -
                   (p->options->fit_background ? 0.0 : p->options->background);
        w += weight;
        x += weight * p->model[k];
        y += weight * i;
        xx += weight * p->model[k] * p->model[k];
        xy += weight * p->model[k] * i;
    }
    p->background = p->options->background;
    p->scale = xy / xx;
    if (p->options->fit_background) {
        p->scale = (w * xy - x * y) / (w * xx - x * x);
        p->background = (y - p->scale * x) / w;
    }
    double chi2 = 0.0;
    for (int k = 0; k < p->curves->n; k++) {
        double r = (p->intensity[k] - p->scale * p->model[k] - p->background) /
                   p->sigma[k];
        chi2 += r * r;
    }
    return p->scale > 0.0 ? chi2 : (double)INFINITY;
}

static double chi2_at(problem *p, const double c[2])
{
    tsr_contrast_intensity(p->curves, c[0], c[1], p->model);
    return solve_linear(p);
}

/* ---- c1 and c2 ---- */

static void from_free(const problem *p, const gsl_vector *u, double c[2])
{
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        const double *b = bounds(p, i);
        c[i] = p->c[i];
        if (p->free[i])
            c[i] = 0.5 * (b[0] + b[1]) +
                   0.5 * (b[1] - b[0]) * sin(gsl_vector_get(u, at++));
    }
}

static int residuals(const gsl_vector *u, void *context, gsl_vector *f)
{
    problem *p = context;
    double c[2];
    from_free(p, u, c);
    chi2_at(p, c);
    for (int k = 0; k < p->curves->n; k++)
        gsl_vector_set(
            f, (size_t)k,
            (p->intensity[k] - p->scale * p->model[k] - p->background) /
                p->sigma[k]);
    return GSL_SUCCESS;
}

/* The best of a grid of the middles of cells: never at a bound, where the sine
 * has no slope. */
static double search(problem *p, double best[2])
{
    double lowest = (double)INFINITY;
    int n0 = p->free[0] ? GRID_C1 : 1, n1 = p->free[1] ? GRID_C2 : 1;
    for (int i = 0; i < n0; i++)
        for (int j = 0; j < n1; j++) {
            const double *a = bounds(p, 0), *b = bounds(p, 1);
            double c[2] = {a[0] + (a[1] - a[0]) * (i + 0.5) / n0,
                           b[0] + (b[1] - b[0]) * (j + 0.5) / n1};
            for (int k = 0; k < 2; k++)
                if (!p->free[k])
                    c[k] = p->c[k];
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
    size_t n = (size_t)p->curves->n, m = (size_t)p->n_free, at = 0;
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
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a fit");
    }
    for (int i = 0; i < 2; i++) {
        const double *b = bounds(p, i);
        if (p->free[i])
            gsl_vector_set(u, at++,
                           asin((2.0 * best[i] - b[0] - b[1]) / (b[1] - b[0])));
    }
    gsl_multifit_nlinear_init(u, &fdf, work);
    /* Not to converge is no error: the best point so far is what counts. */
    gsl_multifit_nlinear_driver(MAX_STEP, 1e-8, 1e-10, 0.0, NULL, NULL, &info,
                                work);
    double c[2];
    from_free(p, gsl_multifit_nlinear_position(work), c);
    double chi2 = chi2_at(p, c);
    if (chi2 <= *lowest) {
        *lowest = chi2;
        best[0] = c[0], best[1] = c[1];
    }
    gsl_multifit_nlinear_free(work);
    gsl_vector_free(u);
    return TSR_OK;
}

/* Where it lies, and whether the bound itself is as good. */
static int where(const problem *p, int which, double c)
{
    const double *b = bounds(p, which);
    double near = at_bound * (b[1] - b[0]);
    if (!p->free[which])
        return 0;
    return c < b[0] + near ? -1 : c > b[1] - near ? 1 : 0;
}

static void describe(problem *p, const double c[2], double chi2,
                     tsr_profile_fit *fit, double *curve)
{
    int n = p->curves->n;
    int n_parameter = 1 + p->n_free + (p->options->fit_background != 0);
    *fit = (tsr_profile_fit){.n_point = n,
                             .n_parameter = n_parameter,
                             .scale = p->scale,
                             .background = p->background,
                             .c1 = c[0],
                             .c2 = c[1],
                             .c1_at = where(p, 0, c[0]),
                             .c2_at = where(p, 1, c[1]),
                             .chi2 = chi2 / n};
    fit->reduced_chi2 =
        n > n_parameter ? chi2 / (n - n_parameter) : (double)NAN;
    for (int k = 0; k < n; k++) {
        curve[k] = p->scale * p->model[k] + p->background;
        p->model[k] = p->intensity[k] - curve[k];
    }
    fit->longest_run = tsr_cormap_longest_run(n, p->model);
    fit->cormap_p = tsr_cormap_p(n, fit->longest_run);
}

tsr_status tsr_profile_fit_make(const tsr_partial_curves *curves,
                                const double *intensity, const double *sigma,
                                const tsr_profile_fit_options *options,
                                tsr_profile_fit *fit, double *curve,
                                tsr_err *err)
{
    problem p = {.curves = curves,
                 .intensity = intensity,
                 .sigma = sigma,
                 .options = options,
                 .c = {1.0, 0.0}};
    double best[2] = {1.0, 0.0};
    tsr_status status = TSR_OK;
    if (curves->n_comp == 3) {
        for (int i = 0; i < 2; i++) {
            const double *b = bounds(&p, i);
            p.free[i] = b[1] > b[0];
            p.c[i] = b[0];
        }
        best[0] = p.c[0], best[1] = p.c[1];
    }
    p.n_free = p.free[0] + p.free[1];
    p.model = calloc((size_t)curves->n, sizeof *p.model);
    if (p.model == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a fit");
    double chi2 = search(&p, best);
    if (isfinite(chi2) && p.n_free > 0 && curves->n > p.n_free)
        status = refine(&p, best, &chi2, err);
    chi2 = chi2_at(&p, best);
    if (status == TSR_OK && !isfinite(chi2))
        status = tsr_fail(err, TSR_E_NUMERIC,
                          "no positive scale brings the curve to the data; are "
                          "they of this molecule, and is the buffer "
                          "subtracted?");
    if (status == TSR_OK)
        describe(&p, best, chi2, fit, curve);
    free(p.model);
    return status;
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

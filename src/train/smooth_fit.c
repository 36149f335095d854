#include "train/smooth_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>

/* Held-out structures chose it, broadly: with knots 0.15 1/Angstrom apart the
 * errors of the two-body table on them rise by less than a fifth. */
const double tsr_smooth_fit_knot = 0.1;

struct tsr_smooth_fit {
    int n_curve, n_q, n_basis, n_param; /* n_param = n_basis n_curve */
    double dq;
    double *basis;                               /* [n_basis][n_q] */
    gsl_matrix *normal;                          /* [n_param][n_param] */
    gsl_vector *gradient, *change, *coefficient; /* [n_param]: of spline b,
                                            curve c: b n_curve + c */
};

/* The uniform cubic B-spline around 0, knots at the integers. */
static double b_spline(double x)
{
    x = fabs(x);
    if (x >= 2.0)
        return 0.0;
    if (x >= 1.0)
        return (2.0 - x) * (2.0 - x) * (2.0 - x) / 6.0;
    return 2.0 / 3.0 - x * x * (1.0 - 0.5 * x);
}

/* What is fitted is exact at q = 0 and even in q: changes begin as q
 * squared. */
static double basis_at(int b, double q)
{
    const double knot = tsr_smooth_fit_knot;
    double rise = q * q / (q * q + knot * knot);
    return rise * b_spline(q / knot - (b - 1));
}

tsr_smooth_fit *tsr_smooth_fit_new(int n_curve, int n_q, double dq_inv_ang)
{
    tsr_smooth_fit *fit = calloc(1, sizeof *fit);
    if (fit == NULL)
        return NULL;
    double last = (n_q - 1) * dq_inv_ang;
    fit->n_curve = n_curve;
    fit->n_q = n_q;
    fit->dq = dq_inv_ang;
    fit->n_basis = (int)ceil(last / tsr_smooth_fit_knot - 1e-9) + 3;
    fit->n_param = fit->n_basis * n_curve;
    size_t n = (size_t)fit->n_param;
    fit->basis =
        malloc((size_t)fit->n_basis * (size_t)n_q * sizeof *fit->basis);
    fit->normal = gsl_matrix_alloc(n, n);
    fit->gradient = gsl_vector_alloc(n);
    fit->change = gsl_vector_alloc(n);
    fit->coefficient = gsl_vector_calloc(n);
    if (fit->basis == NULL || fit->normal == NULL || fit->gradient == NULL ||
        fit->change == NULL || fit->coefficient == NULL) {
        tsr_smooth_fit_free(fit);
        return NULL;
    }
    for (int b = 0; b < fit->n_basis; b++)
        for (int k = 0; k < n_q; k++)
            fit->basis[b * n_q + k] = basis_at(b, k * dq_inv_ang);
    return fit;
}

void tsr_smooth_fit_free(tsr_smooth_fit *fit)
{
    if (fit == NULL)
        return;
    free(fit->basis);
    gsl_matrix_free(fit->normal);
    gsl_vector_free(fit->gradient);
    gsl_vector_free(fit->change);
    gsl_vector_free(fit->coefficient);
    free(fit);
}

double tsr_smooth_fit_at(const tsr_smooth_fit *fit, int curve, double q)
{
    double sum = 0.0;
    for (int b = 0; b < fit->n_basis; b++)
        sum +=
            basis_at(b, q) * fit->coefficient->data[b * fit->n_curve + curve];
    return sum;
}

void tsr_smooth_fit_begin(tsr_smooth_fit *fit)
{
    gsl_matrix_set_zero(fit->normal);
    gsl_vector_set_zero(fit->gradient);
}

void tsr_smooth_fit_add(tsr_smooth_fit *fit, int k, int n_row,
                        const double *jacobian, const double *residual)
{
    enum { WIDTH = TSR_SMOOTH_MAX_CURVE };
    int n = fit->n_curve, n_q = fit->n_q;
    double square[WIDTH][WIDTH] = {{0}}, slope[WIDTH] = {0};
    for (int m = 0; m < n_row; m++) {
        const double *j = jacobian + m * n;
        for (int a = 0; a < n; a++) {
            slope[a] += j[a] * residual[m];
            for (int b = 0; b <= a; b++)
                square[a][b] += j[a] * j[b];
        }
    }
    for (int u = 0; u < fit->n_basis; u++) {
        double bu = fit->basis[u * n_q + k];
        for (int a = 0; a < n && bu != 0.0; a++)
            fit->gradient->data[u * n + a] += bu * slope[a];
        for (int v = 0; v < fit->n_basis; v++) {
            double w = bu * fit->basis[v * n_q + k];
            if (w == 0.0)
                continue;
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++)
                    *gsl_matrix_ptr(fit->normal, (size_t)(u * n + a),
                                    (size_t)(v * n + b)) +=
                        w * (a >= b ? square[a][b] : square[b][a]);
        }
    }
}

tsr_status tsr_smooth_fit_step(tsr_smooth_fit *fit, double hold,
                               double *largest, tsr_err *err)
{
    for (int i = 0; i < fit->n_param; i++) {
        *gsl_matrix_ptr(fit->normal, (size_t)i, (size_t)i) += hold;
        fit->gradient->data[i] -= hold * fit->coefficient->data[i];
    }
    int gsl = gsl_linalg_cholesky_decomp1(fit->normal);
    if (gsl == GSL_SUCCESS)
        gsl =
            gsl_linalg_cholesky_solve(fit->normal, fit->gradient, fit->change);
    if (gsl != GSL_SUCCESS)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of form factors has no solution: %s",
                        gsl_strerror(gsl));
    gsl_vector_add(fit->coefficient, fit->change);
    *largest = 0.0;
    for (int i = 0; i < fit->n_param; i++)
        *largest = fmax(*largest, fabs(fit->change->data[i]));
    return TSR_OK;
}

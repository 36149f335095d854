/* The grid of q on which the engine works, and the matrix that carries a
 * profile from there to the q of the data.
 *
 * The matrix is found by least squares: for each q of the data, the weights of
 * the grid's values that meet sinc(q r) best for all distances r that the
 * molecule can have. So it is right for any profile, which is a sum of these. A
 * smeared point is a sum of sinc(q r) over several q, met in the same way.
 */
#include "scattering/q_grid.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_matrix.h>
#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

/* Bodies have a size: F(q) spreads each distance by up to this, Angstrom. */
static const double body_size = 12.0;
static const int beyond = 2; /* grid points past q_max */
/* A peptide has so few points up to q_max that the fit fails; a band wider than
 * the molecule only adds some. */
static const double band_least = 60.0; /* Angstrom */
/* Relative to the mean diagonal; keeps the weights near 1 (their absolute sum
 * stays below 3, so that errors of the profile are not blown up). */
static const double ridge = 1e-12;

tsr_q_grid tsr_q_grid_make(double d_bound_ang, double q_max_inv_ang)
{
    tsr_q_grid g;
    g.band_ang = fmax(d_bound_ang + body_size, band_least);
    g.dq_inv_ang = PI / (2.0 * g.band_ang);
    g.n_q = (int)ceil(q_max_inv_ang / g.dq_inv_ang - 1e-9) + 1 + beyond;
    return g;
}

static double sinc(double x)
{
    return x < 1e-8 ? 1.0 : sin(x) / x;
}

/* The wave of an ideal point. */
static void set_wave(double q, const tsr_q_grid *grid, gsl_vector *b)
{
    for (size_t i = 0; i < b->size; i++) {
        double r = grid->band_ang * (double)i / (double)(b->size - 1);
        gsl_vector_set(b, i, sinc(q * r));
    }
}

/* Adds weight sinc(q r) at r = i dr to b. One angle is turned on and on, since
 * the sines of all would take most of the time of a smeared curve; every 32
 * turns it is computed afresh, so that rounding does not grow. */
static void add_wave(double q, double weight, double dr, gsl_vector *b)
{
    const double turn = q * dr, c = cos(turn), s = sin(turn);
    double real = 1.0, imaginary = 0.0;
    for (size_t i = 0; i < b->size; i++) {
        double x = (double)i * turn;
        if (i % 32 == 0) {
            real = cos(x);
            imaginary = sin(x);
        }
        *gsl_vector_ptr(b, i) += weight * (x < 1e-8 ? 1.0 : imaginary / x);
        double next = real * c - imaginary * s;
        imaginary = real * s + imaginary * c;
        real = next;
    }
}

static tsr_status check_nodes(const tsr_smearing *to, double q_top,
                              tsr_err *err)
{
    for (int j = 0; j < to->first[to->n]; j++)
        if (!(to->q[j] >= 0.0 && to->q[j] <= q_top))
            return tsr_fail(err, TSR_E_RANGE,
                            "q = %g 1/A lies outside the grid up to %g 1/A",
                            to->q[j], q_top);
    return TSR_OK;
}

/* The least-squares fit of each row of `to`, a sum of sinc(q r) over its nodes.
 */
static tsr_status solve(const tsr_q_grid *grid, const tsr_smearing *to,
                        double **matrix, tsr_err *err)
{
    size_t m = (size_t)grid->n_q, n_point = (size_t)to->n;
    double q_top = (grid->n_q - 1) * grid->dq_inv_ang;
    /* Four points a wavelength of the fastest oscillation. */
    size_t n_r = (size_t)(4.0 * grid->band_ang * q_top / PI) + 64;
    double dr = grid->band_ang / (double)(n_r - 1);
    tsr_status status = check_nodes(to, q_top, err);
    if (status != TSR_OK)
        return status;
    gsl_matrix *a = gsl_matrix_alloc(n_r, m);
    gsl_matrix *normal = gsl_matrix_alloc(m, m);
    gsl_vector *b = gsl_vector_alloc(n_r), *x = gsl_vector_alloc(m);
    double *out = calloc(n_point * m, sizeof *out);
    if (a == NULL || normal == NULL || b == NULL || x == NULL || out == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
        goto done;
    }
    for (size_t i = 0; i < n_r; i++) {
        double r = grid->band_ang * (double)i / (double)(n_r - 1);
        for (size_t j = 0; j < m; j++)
            gsl_matrix_set(a, i, j, sinc((double)j * grid->dq_inv_ang * r));
    }
    gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1.0, a, a, 0.0, normal);
    double trace = 0.0;
    for (size_t j = 0; j < m; j++)
        trace += gsl_matrix_get(normal, j, j);
    for (size_t j = 0; j < m; j++)
        *gsl_matrix_ptr(normal, j, j) += ridge * trace / (double)m;
    if (gsl_linalg_cholesky_decomp1(normal) != GSL_SUCCESS) {
        status = tsr_fail(err, TSR_E_INTERNAL,
                          "the operator from the q grid has no solution");
        goto done;
    }
    for (size_t k = 0; k < n_point; k++) {
        const int is_ideal = to->first[k + 1] == to->first[k] + 1;
        gsl_vector_set_zero(b);
        if (is_ideal)
            set_wave(to->q[to->first[k]], grid, b);
        for (int j = to->first[k]; j < to->first[k + 1] && !is_ideal; j++)
            add_wave(to->q[j], to->weight[j], dr, b);
        gsl_blas_dgemv(CblasTrans, 1.0, a, b, 0.0, x);
        gsl_linalg_cholesky_svx(normal, x);
        for (size_t j = 0; j < m; j++)
            out[k * m + j] = gsl_vector_get(x, j);
    }
    *matrix = out;
    out = NULL;
done:
    gsl_matrix_free(a);
    gsl_matrix_free(normal);
    gsl_vector_free(b);
    gsl_vector_free(x);
    free(out);
    return status;
}

tsr_status tsr_q_operator_new(const tsr_q_grid *grid, int n,
                              const double *q_inv_ang, double **matrix,
                              tsr_err *err)
{
    const tsr_resolution ideal = {.sigma = NULL};
    return tsr_q_operator_smeared(grid, &ideal, n, q_inv_ang, matrix, err);
}

tsr_status tsr_q_operator_smeared(const tsr_q_grid *grid,
                                  const tsr_resolution *resolution, int n,
                                  const double *q_inv_ang, double **matrix,
                                  tsr_err *err)
{
    tsr_smearing *to = NULL;
    *matrix = NULL;
    tsr_status status =
        tsr_smearing_new(resolution, n, q_inv_ang, grid->band_ang, &to, err);
    if (status == TSR_OK)
        status = solve(grid, to, matrix, err);
    tsr_smearing_free(to);
    return status;
}

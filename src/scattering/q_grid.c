/* The uniform q grid of the engine, and the matrix that maps a profile on it to
 * the q of the data.
 *
 * The matrix is a least-squares fit: for each q of the data it has the weights
 * of the grid values that best reproduce sinc(q r) for all distances r in the
 * molecule. Every profile is a sum of such functions, so the same weights hold
 * for every profile. A smeared point is a sum of sinc(q r) over several q,
 * fitted in the same way. */
#include "scattering/q_grid.h"
#include "core/vec3.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_matrix.h>
#include <math.h>
#include <stdlib.h>

/* Size of a body, Angstrom: F(q) broadens each distance by up to this
 * length. */
static const double body_size = 12.0;
/* oversampling: the grid has this many times the points that the sampling
 * theorem needs. beyond: points beyond q_max. The cost of every step is
 * proportional to the number of points. With fewer points the weights grow, and
 * with the weights the errors (bench/RESULTS.md). at_once: the engine processes
 * the points after q = 0 in fours, so their number is a multiple of 4. */
static const double oversampling = 1.18;
static const int beyond = 4, at_once = 4;
/* Smallest band, Angstrom. For a peptide the grid up to q_max would have too
 * few points for the fit; a band wider than the molecule only adds points. */
static const double band_least = 80.0; /* Angstrom */
/* Regularisation relative to the mean diagonal element of the normal equations.
 * Keeps the weights small (root of the sum of squares below 4), so that they do
 * not amplify errors of the profile. */
static const double ridge = 1e-12;
/* A molecule has few distances near the largest one, so these have less weight
 * in the fit: the weight falls linearly from 1 + min_count at r = 0 to
 * min_count at the largest r. */
static const double min_count = 0.2;

/* ---- the instrument ----
 *
 * The mean at a data point is a product of three quadrature rules: along q over
 * the normal distribution, along q over the width of the slit, and across q
 * over its length, where u changes q to sqrt(q^2 + u^2). */

/* A quadrature rule with weights that sum to 1. A failed allocation is recorded
 * in the pool. */
typedef struct {
    tsr_pool *pool;
    int n;
    double *x, *w;
} rule;

static void add_node(rule *r, double x, double w)
{
    if ((r->n & (r->n - 1)) == 0) { /* full at 1, 2, 4, 8, ... */
        const size_t capacity = 2 * (size_t)r->n + 1;
        double *more_x =
            tsr_pool_resize(r->pool, r->x, capacity, sizeof *more_x);
        r->x = more_x != NULL ? more_x : r->x;
        double *more_w =
            tsr_pool_resize(r->pool, r->w, capacity, sizeof *more_w);
        r->w = more_w != NULL ? more_w : r->w;
        if (more_x == NULL || more_w == NULL)
            return;
    }
    r->x[r->n] = x;
    r->w[r->n++] = w;
}

static void normalise(rule *r)
{
    double sum = 0.0;
    for (int i = 0; i < r->n; i++)
        sum += r->w[i];
    for (int i = 0; i < r->n; i++)
        r->w[i] /= sum;
}

/* Appends Gauss-Legendre nodes over [a, b]. The weights are multiplied by a
 * linear function that runs from line[0] to line[1], and for sigma > 0 by a
 * normal density about `centre`. There are `least` nodes, plus about two for
 * each wavelength, 2 pi / d, of a curve with largest distance d. */
static void add_interval(rule *r, double a, double b, const double line[2],
                         double centre, double sigma, double d, int least)
{
    const int n = least + (int)ceil((b - a) * d / 3.0);
    gsl_integration_glfixed_table *table =
        gsl_integration_glfixed_table_alloc((size_t)n);
    r->pool->failed |= table == NULL;
    for (int i = 0; i < n && table != NULL; i++) {
        double x, w;
        gsl_integration_glfixed_point(a, b, (size_t)i, &x, &w, table);
        double t = sigma > 0.0 ? (x - centre) / sigma : 0.0;
        w *= line[0] + (line[1] - line[0]) * (x - a) / (b - a);
        add_node(r, x, w * exp(-0.5 * t * t));
    }
    gsl_integration_glfixed_table_free(table);
}

static const double even[2] = {1.0, 1.0};

/* Sets r to the normal distribution about q. */
static void q_rule(double q, double sigma, double d, rule *r)
{
    const double far = TSR_RESOLUTION_REACH * sigma;
    r->n = 0;
    if (!(sigma > 0.0)) {
        add_node(r, q, 1.0);
        return;
    }
    add_interval(r, fmax(0.0, q - far), q + far, even, q, sigma, d, 16);
    normalise(r);
}

/* Sets r to the shifts of q over the width of the slit. */
static void width_rule(double width, double d, rule *r)
{
    if (width > 0.0)
        add_interval(r, -width, width, even, 0.0, 0.0, d, 8);
    else
        add_node(r, 0.0, 1.0);
    normalise(r);
}

/* Sets r to the component u perpendicular to q, over the length of the slit or
 * the beam profile. */
static void length_rule(const tsr_resolution *s, double d, rule *r)
{
    if (s->n_beam == 0 && s->slit_length > 0.0)
        add_interval(r, 0.0, s->slit_length, even, 0.0, 0.0, d, 16);
    else if (s->n_beam == 0)
        add_node(r, 0.0, 1.0);
    for (int i = 1; i < s->n_beam; i++)
        if (s->beam[i] > 0.0 || s->beam[i - 1] > 0.0)
            add_interval(r, s->beam_u[i - 1], s->beam_u[i], s->beam + i - 1,
                         0.0, 0.0, d, 2);
    normalise(r);
}

/* Appends the product of the three rules for one data point. */
static void add_point(rule *all, const rule *a, const rule *width,
                      const rule *length)
{
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < width->n; j++)
            for (int k = 0; k < length->n; k++)
                add_node(all,
                         length->x[k] == 0.0
                             ? fabs(a->x[i] + width->x[j])
                             : hypot(a->x[i] + width->x[j], length->x[k]),
                         a->w[i] * width->w[j] * length->w[k]);
}

tsr_status tsr_smearing_make(const tsr_resolution *r, int n,
                             const double *q_inv_ang, double d_max_ang,
                             tsr_pool *pool, tsr_smearing *out, tsr_err *err)
{
    rule all = {.pool = pool}, along = all, width = all, length = all;
    *out = (tsr_smearing){.n = n};
    width_rule(r->slit_width, d_max_ang, &width);
    length_rule(r, d_max_ang, &length);
    tsr_pool_array(pool, out->first, n + 1);
    for (int k = 0; k < n && !pool->failed; k++) {
        q_rule(q_inv_ang[k], r->sigma != NULL ? r->sigma[k] : 0.0, d_max_ang,
               &along);
        add_point(&all, &along, &width, &length);
        out->first[k + 1] = all.n;
    }
    out->q = all.x;
    out->weight = all.w;
    return all.x == NULL || all.w == NULL ? tsr_no_memory(err)
                                          : tsr_pool_check(pool, err);
}

/* ---- the grid and its operator ---- */

tsr_q_grid tsr_q_grid_make(double d_bound_ang, double q_max_inv_ang)
{
    tsr_q_grid g;
    g.band_ang = fmax(d_bound_ang + body_size, band_least);
    const double most = TSR_PI / (oversampling * g.band_ang);
    const int n = (int)ceil(q_max_inv_ang / most - 1e-9) + beyond;
    g.n_q = 1 + (n + at_once - 1) / at_once * at_once;
    g.dq_inv_ang = q_max_inv_ang / (g.n_q - 1 - beyond);
    return g;
}

static double sinc(double x)
{
    return x < 1e-8 ? 1.0 : sin(x) / x;
}

/* Sets b to sinc(q r) at all r, for a point that is not smeared. */
static void set_wave(double q, const tsr_q_grid *grid, gsl_vector *b)
{
    for (size_t i = 0; i < b->size; i++) {
        double r = grid->band_ang * (double)i / (double)(b->size - 1);
        gsl_vector_set(b, i, sinc(q * r));
    }
}

/* Adds weight sinc(q r) at r = i dr to b. The angle is rotated step by step,
 * because separate sines would dominate the time of a smeared curve. Every 32
 * steps it is computed anew, so that rounding errors do not grow. */
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
    const int n = to->first[to->n];
    for (int j = 0; j < n; j++)
        if (!(to->q[j] >= 0.0 && to->q[j] <= q_top))
            return tsr_fail(
                err, TSR_E_RANGE,
                "q = %g 1/A is outside the grid, which ends at %g 1/A",
                to->q[j], q_top);
    return TSR_OK;
}

/* Least-squares weights for each row of `to`, a sum of sinc(q r) over its
 * nodes: out [to->n][n_q]. */
static tsr_status solve_weights(const tsr_q_grid *grid, const tsr_smearing *to,
                                tsr_pool *pool, double *out, tsr_err *err)
{
    size_t m = (size_t)grid->n_q;
    double q_top = (grid->n_q - 1) * grid->dq_inv_ang;
    /* four points for each wavelength of the fastest oscillation */
    size_t n_r = (size_t)(4.0 * grid->band_ang * q_top / TSR_PI) + 64;
    double dr = grid->band_ang / (double)(n_r - 1), trace = 0.0;
    const size_t one = sizeof(double);
    gsl_matrix a =
        gsl_matrix_view_array(tsr_pool_new(pool, n_r * m, one), n_r, m).matrix;
    gsl_matrix normal =
        gsl_matrix_view_array(tsr_pool_new(pool, m * m, one), m, m).matrix;
    gsl_vector b =
        gsl_vector_view_array(tsr_pool_new(pool, n_r, one), n_r).vector;
    gsl_vector counts =
        gsl_vector_view_array(tsr_pool_new(pool, n_r, one), n_r).vector;
    TSR_TRY(tsr_pool_check(pool, err));
    TSR_TRY(check_nodes(to, q_top, err));
    for (size_t i = 0; i < n_r; i++) {
        double part = (double)i / (double)(n_r - 1);
        double r = grid->band_ang * part, count = 1.0 - part + min_count;
        gsl_vector_set(&counts, i, count);
        for (size_t j = 0; j < m; j++)
            gsl_matrix_set(&a, i, j,
                           count * sinc((double)j * grid->dq_inv_ang * r));
    }
    gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1.0, &a, &a, 0.0, &normal);
    for (size_t j = 0; j < m; j++)
        trace += gsl_matrix_get(&normal, j, j);
    for (size_t j = 0; j < m; j++)
        *gsl_matrix_ptr(&normal, j, j) += ridge * trace / (double)m;
    if (gsl_linalg_cholesky_decomp1(&normal) != GSL_SUCCESS)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "the operator from the q grid has no solution");
    for (int k = 0; k < to->n; k++) {
        const int first = to->first[k], end = to->first[k + 1];
        gsl_vector x = gsl_vector_view_array(out + (size_t)k * m, m).vector;
        gsl_vector_set_zero(&b);
        if (end == first + 1)
            set_wave(to->q[first], grid, &b);
        for (int j = first; j < end && end != first + 1; j++)
            add_wave(to->q[j], to->weight[j], dr, &b);
        gsl_vector_mul(&b, &counts);
        gsl_blas_dgemv(CblasTrans, 1.0, &a, &b, 0.0, &x);
        gsl_linalg_cholesky_svx(&normal, &x);
    }
    return TSR_OK;
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
    tsr_pool pool = {0};
    tsr_smearing to;
    double *out = calloc((size_t)n * (size_t)grid->n_q, sizeof *out);
    tsr_status status = tsr_allocated(out, err);
    TSR_THEN(status, tsr_smearing_make(resolution, n, q_inv_ang, grid->band_ang,
                                       &pool, &to, err));
    TSR_THEN(status, solve_weights(grid, &to, &pool, out, err));
    tsr_pool_clear(&pool);
    TSR_HAND_OVER(status, out, matrix, free);
}

void tsr_q_operator_apply(const double *matrix, int n, int n_q,
                          const double *from, double *to)
{
    for (int k = 0; k < n; k++) {
        const double *row = matrix + (size_t)k * (size_t)n_q;
        double sum = 0.0;
        for (int j = 0; j < n_q; j++)
            sum += row[j] * from[j];
        to[k] = sum;
    }
}

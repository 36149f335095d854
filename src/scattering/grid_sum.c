/* Debye profiles by fast Fourier transforms, in three passes over the grid.
 * Each pass is divided into parts that threads process independently:
 *
 * (1) Planes of constant z: spreads the particles onto the planes that they
 *     touch, for every mode, and transforms the planes along x and y.
 * (2) Columns along z: transforms all modes along z, combines them with the
 *     form factors into the amplitudes A_a(k) of the components, and multiplies
 *     the amplitudes. The products are real and even. They are transformed back
 *     along z and overwrite the modes.
 * (3) Planes: transforms the products back along y and x, and sums their values
 *     by distance. The products are even, so planes with z >= 0 suffice.
 *
 * Zeros are neither stored nor transformed: half of each axis before the
 * transforms, and everything beyond k_cut after them. Sums over several parts
 * are added in the order of the parts, so the result does not depend on the
 * threads. FFTW: Frigo & Johnson 2005, Proc. IEEE 93, 216. */
#include "scattering/grid_sum.h"

#include "core/clones.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/vec3.h"

#include <fftw3.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sf_bessel.h>
#include <gsl/gsl_spline.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_NODE = 48,
    N_FINE = 4096,
    MAX_SAMPLE = 48, /* values of q in the decomposition */
    BLOCK = 8,       /* columns that are processed together */
    N_BLOCK = 16,    /* blocks of planes and of distances, summed separately */
    MAX_MODE = 64,
    TYPICAL_MODE = 7
};

const double tsr_grid_q_max = 1.6;

typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));

/* ---- modes ----
 *
 * Form factors of many types as sums of a few products of a number (of the
 * type) and a curve. Only a few modes then have to be summed over all
 * particles, instead of one term for each type:
 *
 *     F_t^a(q) = sum_m v_tm u_m^a(q)
 *
 * The v_tm are singular vectors of the table of all types. All components
 * without particle weights share them. The decomposition is GSL's one-sided
 * Jacobi method. Amplitudes of displaced solvent fall by orders of magnitude
 * with q and must keep their relative accuracy. So each row, one component at
 * one q for all types, is first divided by its largest value. The curves u at
 * all q follow by projection, because the v_tm are orthonormal. */

/* The modes of all components. Group 0: modes of the components without
 * weights. Group 1: modes of the weighted component. */
typedef struct {
    int n_type, n_comp, n_q;
    int n_group[2]; /* modes in each group */
    int n;          /* modes in both groups */
    int weighted;   /* component of group 1; -1: none */
    double *value;  /* [n_type][n] v */
    double *curve;  /* [n_comp][n][n_q] u; 0 for modes of the other group */
} factor_modes;

/* The modes of a component are first <= m < end. */
static int modes_first(const factor_modes *m, int comp)
{
    return comp == m->weighted ? m->n_group[0] : 0;
}

static int modes_end(const factor_modes *m, int comp)
{
    return comp == m->weighted ? m->n : m->n_group[0];
}

/* Largest |F_t^a(q_k)| of component a over the types t. */
static double largest(const tsr_debye_spec *s, int comp, int k)
{
    double most = 0.0;
    for (int t = 0; t < s->n_type; t++)
        most = fmax(most, fabs(tsr_debye_factor(s, comp, t)[k]));
    return most;
}

/* Sets one row for each component of the group at each sampled q. Rows of zeros
 * follow, because the decomposition needs at least as many rows as columns
 * (types). */
static void set_samples(const tsr_debye_spec *s, int group, int n_sample,
                        gsl_matrix *a)
{
    size_t row = 0;
    gsl_matrix_set_zero(a);
    for (int c = 0; c < s->n_comp; c++) {
        const int is_in = (s->weight != NULL && c == s->weighted) == group;
        for (int i = 0; i < n_sample && is_in; i++, row++) {
            int k = (int)((long)i * (s->n_q - 1) / (n_sample - 1));
            double most = largest(s, c, k);
            for (int t = 0; t < s->n_type && most > 0.0; t++)
                gsl_matrix_set(a, row, (size_t)t,
                               tsr_debye_factor(s, c, t)[k] / most);
        }
    }
}

static gsl_matrix matrix_of(tsr_pool *pool, size_t rows, size_t columns)
{
    double *storage = tsr_pool_new(pool, rows * columns, sizeof *storage);
    return gsl_matrix_view_array(storage, rows, columns).matrix;
}

static gsl_vector vector_of(tsr_pool *pool, size_t n)
{
    return gsl_vector_view_array(tsr_pool_new(pool, n, sizeof(double)), n)
        .vector;
}

/* Vectors v of one group [n_type][n_type]; *n out: number of modes to keep. The
 * error of a row is at most the root of the sum of the squared singular values
 * that are dropped. */
static tsr_status decompose(const tsr_debye_spec *s, int group, double error,
                            tsr_pool *pool, gsl_matrix *v, int *n, tsr_err *err)
{
    const size_t n_type = (size_t)s->n_type;
    const int n_sample = s->n_q < MAX_SAMPLE ? s->n_q : MAX_SAMPLE;
    const size_t rows = (size_t)(s->n_comp * n_sample);
    gsl_matrix a = matrix_of(pool, rows > n_type ? rows : n_type, n_type);
    gsl_vector size = vector_of(pool, n_type);
    double remainder = 0.0;
    *v = matrix_of(pool, n_type, n_type);
    TSR_TRY(tsr_pool_check(pool, err));
    set_samples(s, group, n_sample, &a);
    gsl_linalg_SV_decomp_jacobi(&a, v, &size);
    for (*n = s->n_type; *n > 0; --*n) {
        remainder += pow(gsl_vector_get(&size, (size_t)*n - 1), 2.0);
        if (remainder > error * error)
            break;
    }
    return TSR_OK;
}

/* Curves u of the modes at all q. */
static void project(const tsr_debye_spec *s, factor_modes *out)
{
    for (int c = 0; c < s->n_comp; c++)
        for (int m = modes_first(out, c); m < modes_end(out, c); m++) {
            double *to = out->curve + ((size_t)c * (size_t)out->n + (size_t)m) *
                                          (size_t)s->n_q;
            for (int t = 0; t < s->n_type; t++) {
                double v = out->value[t * out->n + m];
                const double *f = tsr_debye_factor(s, c, t);
                for (int k = 0; k < s->n_q; k++)
                    to[k] += v * f[k];
            }
        }
}

/* Finds the modes. For each a and q, the neglected part is at most `error`
 * times the largest |F_t^a(q)|. */
static tsr_status make_modes(const tsr_debye_spec *spec, double error,
                             tsr_pool *pool, factor_modes *out, tsr_err *err)
{
    const size_t n_type = (size_t)spec->n_type;
    gsl_matrix v[2];
    *out =
        (factor_modes){.n_type = spec->n_type,
                       .n_comp = spec->n_comp,
                       .n_q = spec->n_q,
                       .weighted = spec->weight != NULL ? spec->weighted : -1};
    for (int g = 0; g < 2; g++)
        TSR_TRY(decompose(spec, g, error, pool, &v[g], &out->n_group[g], err));
    out->n = out->n_group[0] + out->n_group[1];
    const size_t n = (size_t)out->n, n_first = (size_t)out->n_group[0];
    tsr_pool_array(pool, out->value, n_type * n);
    tsr_pool_array(pool, out->curve,
                   (size_t)spec->n_comp * n * (size_t)spec->n_q);
    TSR_TRY(tsr_pool_check(pool, err));
    for (size_t t = 0; t < n_type; t++)
        for (size_t m = 0; m < n; m++)
            out->value[t * n + m] = m < n_first
                                        ? gsl_matrix_get(&v[0], t, m)
                                        : gsl_matrix_get(&v[1], t, m - n_first);
    project(spec, out);
    return TSR_OK;
}

/* ---- geometry of the grid ----
 *
 * The box, the spreading kernel, and the window in k.
 *
 * The box is aligned with the molecule's principal axes if this makes it
 * smaller, and its longest side becomes z. Padding doubles each side, so that
 * differences of positions do not overlap with periodic images, and adds a
 * margin for the width of the window.
 *
 * The kernel is exp(beta (sqrt(1 - (2x/w)^2) - 1)). Its error is close to that
 * of the optimal prolate function, exp(-pi w sqrt(1 - 1/s)) for oversampling s
 * (Barnett, Magland & af Klinteberg 2019, SIAM J. Sci. Comput. 41, C479). The
 * window is a Kaiser-Bessel function of |k| / k_cut. It is isotropic, so the
 * curve can be divided by it, and short in space, so the margin is small. */

/* Points along each axis that a particle is spread on, and polynomial terms of
 * the kernel between two points. */
enum { WIDTH = 8, TERM = 14 };

typedef struct {
    double axis[3][3];          /* rows: directions x, y and z of the box */
    double low[3], h_ang;       /* smallest coordinates; grid spacing */
    int n[3];                   /* points of the box */
    int n_filled[3];            /* points that can receive particles */
    double k_cut;               /* end of the spectrum, 1/Angstrom */
    double beta;                /* shape parameter of the kernel */
    double kernel[TERM][WIDTH]; /* Chebyshev coefficients of each piece */
    double *kernel_inv[3];      /* [n] 1 / transform of the kernel, by index */
    double *k[3];  /* [n] wave number, 1/Angstrom, of either sign */
    int n_fine;    /* samples of a curve, k_cut / (n_fine - 1) apart */
    double *curve; /* [n_comp][n_mode][n_fine] curves times the square
                      root of the window */
} grid_plan;

/* Sampling interval of the curves, 1/Angstrom. Linear interpolation is then
 * accurate to 1e-6 for Gaussians that fall by 1e3 to q = 2. */
static const double fine_step = 2e-4;

/* Range in space of the form factors of a pair of particles, Angstrom. */
static const double own_size = 20.0;

/* oversampling: pi / (h q_top); window: beta of the window; wanted_margin:
 * margin of the box in units of window / k_cut. */
static const double oversampling = 1.6, window = 16.0, wanted_margin = 3.0;

/* ---- the box ---- */

/* Smallest coordinates of the particles along the axes, and the lengths of the
 * sides of their box. */
static void extent(const tsr_debye_spec *s, double axis[3][3], double low[3],
                   double size[3])
{
    double high[3];
    for (int c = 0; c < 3; c++)
        low[c] = (double)INFINITY, high[c] = -(double)INFINITY;
    for (int i = 0; i < s->n; i++)
        for (int c = 0; c < 3; c++) {
            double x = tsr_vec3_dot(axis[c], s->xyz[i]);
            low[c] = x < low[c] ? x : low[c];
            high[c] = x > high[c] ? x : high[c];
        }
    for (int c = 0; c < 3; c++)
        size[c] = high[c] - low[c];
}

static void principal_axes(const tsr_debye_spec *s, double axis[3][3])
{
    double centre[3] = {0.0, 0.0, 0.0}, tensor[9] = {0.0};
    for (int i = 0; i < s->n; i++)
        for (int c = 0; c < 3; c++)
            centre[c] += s->xyz[i][c] / s->n;
    for (int i = 0; i < s->n; i++)
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                tensor[3 * a + b] +=
                    (s->xyz[i][a] - centre[a]) * (s->xyz[i][b] - centre[b]);
    double value[3], vector[9];
    gsl_matrix_view t = gsl_matrix_view_array(tensor, 3, 3);
    gsl_vector_view e = gsl_vector_view_array(value, 3);
    gsl_matrix_view v = gsl_matrix_view_array(vector, 3, 3);
    gsl_eigen_symmv_workspace *work = gsl_eigen_symmv_alloc(3);
    if (work == NULL)
        return; /* the original axes also work */
    gsl_eigen_symmv(&t.matrix, &e.vector, &v.matrix, work);
    gsl_eigen_symmv_free(work);
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 3; c++)
            axis[a][c] = vector[3 * c + a];
}

/* Exchanges axes so that the longest side becomes z. */
static void sort_axes(grid_plan *p, double size[3])
{
    int longest = 2;
    for (int c = 0; c < 2; c++)
        if (size[c] > size[longest])
            longest = c;
    double a[3], l = p->low[longest], d = size[longest];
    tsr_vec3_copy(a, p->axis[longest]);
    tsr_vec3_copy(p->axis[longest], p->axis[2]);
    p->low[longest] = p->low[2], size[longest] = size[2];
    tsr_vec3_copy(p->axis[2], a);
    p->low[2] = l, size[2] = d;
}

/* The next even number without prime factors above 7. */
static int good_size(int least)
{
    for (int n = least + least % 2;; n += 2) {
        int remainder = n;
        for (int f = 2; f <= 7; f++)
            while (remainder % f == 0)
                remainder /= f;
        if (remainder == 1)
            return n;
    }
}

/* Sets up the box without the tables, which is enough to predict the cost. */
static void make_box(const tsr_debye_spec *spec, grid_plan *out)
{
    double axis[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, low[3], size[3];
    double q_top = (spec->n_q - 1) * spec->dq_inv_ang;
    *out = (grid_plan){0};
    memcpy(out->axis, axis, sizeof axis);
    extent(spec, out->axis, out->low, size);
    double volume = (size[0] + 1.0) * (size[1] + 1.0) * (size[2] + 1.0);
    principal_axes(spec, axis);
    double other[3];
    extent(spec, axis, low, other);
    if ((other[0] + 1.0) * (other[1] + 1.0) * (other[2] + 1.0) < volume) {
        memcpy(out->axis, axis, sizeof axis);
        memcpy(out->low, low, sizeof low);
        memcpy(size, other, sizeof other);
    }
    sort_axes(out, size);
    out->h_ang = TSR_PI / (oversampling * q_top);
    out->k_cut = TSR_PI / out->h_ang;
    double width = window / out->k_cut;
    double margin = fmax(wanted_margin * width, 2.0 * width + own_size);
    for (int c = 0; c < 3; c++) {
        out->n_filled[c] = (int)floor(size[c] / out->h_ang) + WIDTH + 1;
        int wide = (int)ceil((2.0 * size[c] + margin) / out->h_ang) + 1;
        out->n[c] =
            good_size(wide > out->n_filled[c] ? wide : out->n_filled[c]);
    }
}

/* ---- the kernel ---- */

static double kernel(const grid_plan *p, double x)
{
    double u = 2.0 * x / WIDTH, inside = 1.0 - u * u;
    return inside > 0.0 ? exp(p->beta * (sqrt(inside) - 1.0)) : 0.0;
}

/* Coordinate of a particle along an axis, in grid spacings. */
static double grid_position(const grid_plan *plan, int axis,
                            const double xyz[3])
{
    return (tsr_vec3_dot(plan->axis[axis], xyz) - plan->low[axis]) /
               plan->h_ang +
           0.5 * WIDTH;
}

/* First grid point that receives part of a particle along one axis: the first
 * point not more than WIDTH / 2 before the particle. */
static int first_point(const grid_plan *plan, int axis, const double xyz[3])
{
    return (int)ceil(grid_position(plan, axis, xyz) - 0.5 * WIDTH);
}

/* Chebyshev coefficients of the kernel on the intervals between grid points.
 * The square root at both ends of the kernel limits the accuracy to 1e-8. */
static void set_kernel(grid_plan *p)
{
    for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < TERM; j++) {
            double sum = 0.0;
            for (int k = 0; k < TERM; k++) {
                double angle = TSR_PI * (k + 0.5) / TERM;
                double x = i - 0.5 * WIDTH + 0.5 * (1.0 + cos(angle));
                sum += kernel(p, x) * cos(j * angle);
            }
            p->kernel[j][i] = (j == 0 ? 1.0 : 2.0) * sum / TERM;
        }
}

/* The kernel at x, x + 1, ... by Clenshaw summation; the particle is the
 * given fraction of the way from the first point to the next. */
TSR_CLONES static void weights_of(const grid_plan *p, double fraction,
                                  double *out)
{
    const double x = 2.0 * fraction - 1.0;
    eight current = {0.0}, previous = {0.0};
    for (int j = TERM - 1; j > 0; j--) {
        eight next =
            *(const eight *)p->kernel[j] + 2.0 * x * current - previous;
        previous = current;
        current = next;
    }
    *(eight *)out = *(const eight *)p->kernel[0] + x * current - previous;
}

/* First points and weights along the three axes. */
static void particle_weights(const grid_plan *plan, const double xyz[3],
                             int first[3], double weight[3][WIDTH])
{
    for (int c = 0; c < 3; c++) {
        double at = grid_position(plan, c, xyz), base = ceil(at - 0.5 * WIDTH);
        first[c] = (int)base;
        weights_of(plan, base - at + 0.5 * WIDTH, weight[c]);
    }
}

/* Transform of the kernel, an even function, by Gauss-Legendre quadrature. */
static void set_kernel_transform(grid_plan *p,
                                 const gsl_integration_glfixed_table *rule)
{
    double x[N_NODE], w[N_NODE];
    for (size_t j = 0; j < N_NODE; j++) {
        gsl_integration_glfixed_point(0.0, 0.5 * WIDTH, j, &x[j], &w[j], rule);
        w[j] *= 2.0 * kernel(p, x[j]);
    }
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < p->n[c]; i++) {
            int m = i <= p->n[c] / 2 ? i : i - p->n[c];
            double kh = 2.0 * TSR_PI * m / p->n[c], sum = 0.0;
            for (int j = 0; j < N_NODE; j++)
                sum += w[j] * cos(kh * x[j]);
            p->k[c][i] = kh / p->h_ang;
            p->kernel_inv[c][i] = 1.0 / sum;
        }
}

/* ---- the curves ---- */

/* The factor by which the window reduces the spectrum's power at q. */
static double window_at(const grid_plan *plan, double q_inv_ang)
{
    double x = q_inv_ang / plan->k_cut, beta = window;
    double root = x < 1.0 ? beta * sqrt(1.0 - x * x) : 0.0;
    return gsl_sf_bessel_I0_scaled(root) / gsl_sf_bessel_I0_scaled(beta) *
           exp(root - beta);
}

/* Curves are needed up to k_cut, beyond the last q of the profile. They are
 * continued by a fit of Gaussians, which have a short range in space, and a
 * spline through the remainder of about 1e-5, so the curve is exact at every q
 * of the profile. I(q) depends only on |k| = q, so the values of the curve at
 * other q need not be correct. But the curve must be smooth, because a kink
 * would extend far in space. */
static const double gauss_width[] = {
    0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0}; /* widths, A^2 */
/* Beyond the last q of the profile, the last remainder decays over this
 * fraction of that q. */
static const double taper = 0.2;
enum { N_GAUSS = sizeof gauss_width / sizeof gauss_width[0], N_LEFT = 8 };

typedef struct {
    int n_q, n_gauss, n_knot;
    double dq;
    gsl_matrix u, v; /* SVD of the Gaussians at the profile's q */
    gsl_vector size, at, amount;
    double *x, *y; /* [n_knot] from -N_LEFT dq on, because curves are even */
    gsl_spline *spline;
    gsl_interp_accel *accel;
} continuation;

static double gauss(int i, double q)
{
    return exp(-gauss_width[i] * q * q);
}

static tsr_status continuation_make(int n_q, double dq, double k_cut,
                                    tsr_pool *pool, continuation *c,
                                    tsr_err *err)
{
    int n_right = (int)ceil(k_cut / dq) + 3;
    *c = (continuation){.n_q = n_q,
                        .n_gauss = n_q < N_GAUSS ? n_q : N_GAUSS,
                        .n_knot = N_LEFT + (n_right > n_q ? n_right : n_q),
                        .dq = dq};
    size_t n = (size_t)c->n_knot, m = (size_t)c->n_gauss;
    tsr_pool_array(pool, c->x, n);
    tsr_pool_array(pool, c->y, n);
    c->u = matrix_of(pool, (size_t)n_q, m);
    c->v = matrix_of(pool, m, m);
    c->size = vector_of(pool, m);
    c->amount = vector_of(pool, m);
    c->at = vector_of(pool, (size_t)n_q);
    c->spline = gsl_spline_alloc(gsl_interp_cspline, n);
    c->accel = gsl_interp_accel_alloc();
    if (pool->failed || c->spline == NULL || c->accel == NULL)
        return tsr_no_memory(err);
    for (size_t k = 0; k < (size_t)n_q; k++)
        for (size_t i = 0; i < m; i++)
            gsl_matrix_set(&c->u, k, i, gauss((int)i, (double)k * dq));
    gsl_linalg_SV_decomp_jacobi(&c->u, &c->v, &c->size);
    for (size_t i = 0; i < m; i++)
        if (gsl_vector_get(&c->size, i) < 1e-7 * gsl_vector_get(&c->size, 0))
            gsl_vector_set(&c->size, i, 0.0); /* 0: ignored by the solver */
    return TSR_OK;
}

/* Sum of the fitted Gaussians; gaussians [n_gauss]: their values at one q. */
static double sum_gaussians(const continuation *c, const double *gaussians)
{
    double sum = 0.0;
    for (int i = 0; i < c->n_gauss; i++)
        sum += gsl_vector_get(&c->amount, (size_t)i) * gaussians[i];
    return sum;
}

static double gaussian_fit(const continuation *c, double q)
{
    double gaussians[N_GAUSS];
    for (int i = 0; i < N_GAUSS; i++)
        gaussians[i] = gauss(i, q);
    return sum_gaussians(c, gaussians);
}

/* Fits the Gaussians and the spline to a curve f [n_q]. */
static void continuation_set(continuation *c, const double *f)
{
    double q_top = (c->n_q - 1) * c->dq;
    for (int k = 0; k < c->n_q; k++)
        gsl_vector_set(&c->at, (size_t)k, f[k]);
    gsl_linalg_SV_solve(&c->u, &c->v, &c->size, &c->at, &c->amount);
    double last = f[c->n_q - 1] - gaussian_fit(c, q_top);
    for (int i = 0; i < c->n_knot; i++) {
        int k = abs(i - N_LEFT);
        double q = k * c->dq, over = (q - q_top) / (taper * q_top);
        c->x[i] = (i - N_LEFT) * c->dq;
        c->y[i] =
            k < c->n_q ? f[k] - gaussian_fit(c, q) : last * exp(-over * over);
    }
    gsl_spline_init(c->spline, c->x, c->y, (size_t)c->n_knot);
}

/* Sets p->curve. */
static tsr_status make_curves(const tsr_debye_spec *spec,
                              const factor_modes *modes, tsr_pool *pool,
                              grid_plan *p, tsr_err *err)
{
    continuation c;
    double *root, *basis;
    const int n = p->n_fine;
    tsr_pool_array(pool, root, n);
    tsr_pool_array(pool, basis, n * N_GAUSS);
    tsr_status status =
        continuation_make(spec->n_q, spec->dq_inv_ang, p->k_cut, pool, &c, err);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        double k = p->k_cut * i / (n - 1);
        root[i] = sqrt(window_at(p, k));
        for (int g = 0; g < N_GAUSS; g++)
            basis[i * N_GAUSS + g] = gauss(g, k);
    }
    for (int row = 0; row < modes->n_comp * modes->n && status == TSR_OK;
         row++) {
        int comp = row / modes->n, m = row % modes->n;
        double *to = p->curve + (size_t)row * (size_t)n;
        if (m < modes_first(modes, comp) || m >= modes_end(modes, comp))
            continue;
        continuation_set(&c, modes->curve + (size_t)row * (size_t)spec->n_q);
        for (int i = 0; i < n; i++) {
            double k = p->k_cut * i / (n - 1);
            to[i] = root[i] * (sum_gaussians(&c, basis + (size_t)i * N_GAUSS) +
                               gsl_spline_eval(c.spline, k, c.accel));
        }
    }
    gsl_spline_free(c.spline);
    gsl_interp_accel_free(c.accel);
    return status;
}

/* ---- the plan ---- */

static tsr_status make_plan(const tsr_debye_spec *spec,
                            const factor_modes *modes, tsr_pool *pool,
                            grid_plan *p, tsr_err *err)
{
    make_box(spec, p);
    p->beta = 0.976 * TSR_PI * WIDTH * (1.0 - 0.5 / oversampling);
    p->n_fine = (int)fmax(N_FINE, ceil(p->k_cut / fine_step));
    tsr_pool_array(pool, p->curve,
                   (size_t)(modes->n_comp * modes->n) * (size_t)p->n_fine);
    for (int c = 0; c < 3; c++) {
        tsr_pool_array(pool, p->kernel_inv[c], p->n[c]);
        tsr_pool_array(pool, p->k[c], p->n[c]);
    }
    TSR_TRY(tsr_pool_check(pool, err));
    gsl_integration_glfixed_table *rule =
        gsl_integration_glfixed_table_alloc(N_NODE);
    TSR_TRY(tsr_allocated(rule, err));
    set_kernel(p);
    set_kernel_transform(p, rule);
    gsl_integration_glfixed_table_free(rule);
    return make_curves(spec, modes, pool, p, err);
}

/* ---- the sum ---- */

typedef struct {
    fftw_complex *column, *amplitude; /* [n_z][BLOCK], [n_comp][n_z][BLOCK] */
    double *product;                  /* [n_z][BLOCK] */
    int *at;                          /* [n_z][BLOCK] sample of the curves below
                                         |k| */
    double *part;                     /* [n_z][BLOCK] position of |k| between
                                         this sample and the next, 0 to 1 */
    double *weight;                   /* [n_z][BLOCK] inverse of the squared
                                         kernel transform; 0 beyond k_cut */
} scratch;

typedef struct {
    const tsr_debye_spec *spec;
    tsr_pool pool; /* owns everything but FFTW's arrays */
    factor_modes modes;
    grid_plan plan;
    int n_thread, n_pair, n_half, n_part;
    int n_column;       /* columns in kx below the Nyquist one */
    size_t row, plane;  /* lengths in complex numbers */
    fftw_complex *grid; /* planes [mode][z], later [pair][z] */
    int *order;         /* [n] particles sorted by first z */
    int *first;         /* [n_filled[2] + 1] start of each z in `order` */
    fftw_plan rows, lines, depth, depth_back, lines_back, rows_back;
    scratch *scratch; /* [n_thread] */
    int n_shell;
    double *shell;   /* [N_BLOCK][n_pair][n_shell] */
    double *partial; /* [N_BLOCK][n_pair][n_q] */
    double *sinc;    /* [N_BLOCK][n_q] */
} work;

static fftw_complex *plane_of(const work *w, int which, int n_z, int z)
{
    return w->grid + ((size_t)which * (size_t)n_z + (size_t)z) * w->plane;
}

/* ---- setup ---- */

/* FFTW's planner is not thread-safe. */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

static int plan_transforms(work *w)
{
    const int *n = w->plan.n, row = (int)w->row;
    fftw_complex *g = w->grid, *c = w->scratch[0].column;
    double *real = w->scratch[0].product;
    unsigned flags = FFTW_ESTIMATE;
    pthread_mutex_lock(&planner);
    w->rows = fftw_plan_many_dft_r2c(1, &n[0], w->plan.n_filled[1], (double *)g,
                                     NULL, 1, 2 * row, g, NULL, 1, row, flags);
    w->lines = fftw_plan_many_dft(1, &n[1], w->n_column, g, NULL, row, 1, g,
                                  NULL, row, 1, FFTW_FORWARD, flags);
    w->depth = fftw_plan_many_dft(1, &n[2], BLOCK, c, NULL, BLOCK, 1, c, NULL,
                                  BLOCK, 1, FFTW_FORWARD, flags);
    w->depth_back = fftw_plan_many_dft_r2c(1, &n[2], BLOCK, real, NULL, BLOCK,
                                           1, c, NULL, BLOCK, 1, flags);
    w->lines_back = fftw_plan_many_dft(1, &n[1], w->n_column, g, NULL, row, 1,
                                       g, NULL, row, 1, FFTW_BACKWARD, flags);
    w->rows_back = fftw_plan_many_dft_c2r(1, &n[0], n[1], g, NULL, 1, row,
                                          (double *)g, NULL, 1, 2 * row, flags);
    pthread_mutex_unlock(&planner);
    return w->rows != NULL && w->lines != NULL && w->depth != NULL &&
           w->depth_back != NULL && w->lines_back != NULL &&
           w->rows_back != NULL;
}

static int make_scratch(work *w)
{
    size_t n = (size_t)w->plan.n[2] * BLOCK;
    int is_ok = 1;
    tsr_pool_array(&w->pool, w->scratch, w->n_thread);
    for (int t = 0; w->scratch != NULL && t < w->n_thread; t++) {
        scratch *s = &w->scratch[t];
        s->column = fftw_alloc_complex(n);
        s->amplitude = fftw_alloc_complex((size_t)w->spec->n_comp * n);
        s->product = fftw_alloc_real(n);
        tsr_pool_array(&w->pool, s->at, n);
        tsr_pool_array(&w->pool, s->part, n);
        tsr_pool_array(&w->pool, s->weight, n);
        is_ok &=
            s->column != NULL && s->amplitude != NULL && s->product != NULL;
    }
    return is_ok;
}

static void set_sizes(work *w)
{
    const grid_plan *p = &w->plan;
    w->n_pair = tsr_debye_n_pair(w->spec);
    w->n_half = p->n[2] / 2 + 1;
    w->n_column = p->n[0] / 2;
    w->row = (size_t)p->n[0] / 2 + 1;
    w->plane = (w->row * (size_t)p->n[1] + 3) / 4 * 4;
    w->n_shell = 1;
    for (int c = 0; c < 3; c++)
        w->n_shell += (p->n[c] / 2) * (p->n[c] / 2);
    w->n_part =
        p->n_filled[2] < 4 * w->n_thread ? p->n_filled[2] : 4 * w->n_thread;
}

static size_t n_plane(const work *w)
{
    size_t previous = (size_t)w->modes.n * (size_t)w->plan.n_filled[2];
    size_t after = (size_t)w->n_pair * (size_t)w->n_half;
    return previous > after ? previous : after;
}

static tsr_status reserve(work *w, tsr_err *err)
{
    size_t n_pair = (size_t)w->n_pair, n = (size_t)w->spec->n;
    w->grid = fftw_alloc_complex(n_plane(w) * w->plane);
    tsr_pool_array(&w->pool, w->order, n);
    tsr_pool_array(&w->pool, w->first, w->plan.n_filled[2] + 1);
    tsr_pool_array(&w->pool, w->shell, N_BLOCK * n_pair * (size_t)w->n_shell);
    tsr_pool_array(&w->pool, w->partial,
                   N_BLOCK * n_pair * (size_t)w->spec->n_q);
    tsr_pool_array(&w->pool, w->sinc, N_BLOCK * w->spec->n_q);
    if (!make_scratch(w) || w->grid == NULL || w->pool.failed ||
        !plan_transforms(w))
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a grid of %d x %d x %d points",
                        w->plan.n[0], w->plan.n[1], w->plan.n[2]);
    return TSR_OK;
}

static void work_clear(work *w)
{
    fftw_plan plans[] = {w->rows,       w->lines,      w->depth,
                         w->depth_back, w->lines_back, w->rows_back};
    pthread_mutex_lock(&planner);
    for (int i = 0; i < 6; i++)
        if (plans[i] != NULL)
            fftw_destroy_plan(plans[i]);
    pthread_mutex_unlock(&planner);
    for (int t = 0; w->scratch != NULL && t < w->n_thread; t++) {
        fftw_free(w->scratch[t].column);
        fftw_free(w->scratch[t].amplitude);
        fftw_free(w->scratch[t].product);
    }
    fftw_free(w->grid);
    tsr_pool_clear(&w->pool);
}

void tsr_grid_size_of(const tsr_debye_spec *spec, tsr_grid_size *out)
{
    grid_plan plan;
    int most = TYPICAL_MODE;
    make_box(spec, &plan);
    work w = {.spec = spec, .plan = plan};
    set_sizes(&w);
    w.modes.n = spec->n_type < most ? spec->n_type : most;
    w.modes.n += spec->weight != NULL;
    *out = (tsr_grid_size){.n_mode = w.modes.n,
                           .n_pair = w.n_pair,
                           .n_point = (double)plan.n[0] * plan.n[1] * plan.n[2],
                           .bytes = (double)n_plane(&w) * (double)w.plane *
                                    sizeof *w.grid};
    for (int i = 0; i < spec->n; i++)
        out->n_spread +=
            spec->weight != NULL && spec->weight[i] > 0.0 ? 1.0 : w.modes.n;
}

/* ---- (1) planes: spreading ---- */

/* Counting sort by z. Particles with equal z keep the order of the input. */
static tsr_status sort_particles(work *w, tsr_err *err)
{
    const tsr_debye_spec *s = w->spec;
    int n_z = w->plan.n_filled[2];
    int *z, *next;
    tsr_pool_array(&w->pool, z, s->n);
    tsr_pool_array(&w->pool, next, n_z);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int i = 0; i < s->n; i++) {
        z[i] = first_point(&w->plan, 2, s->xyz[i]);
        w->first[z[i] + 1]++;
    }
    for (int k = 0; k < n_z; k++)
        w->first[k + 1] += w->first[k];
    memcpy(next, w->first, (size_t)n_z * sizeof *next);
    for (int i = 0; i < s->n; i++)
        w->order[next[z[i]]++] = i;
    return TSR_OK;
}

/* The modes of a particle and their amounts. Returns the number of modes. */
static int particle_modes(const work *w, int i, int mode[MAX_MODE],
                          double amount[MAX_MODE])
{
    const factor_modes *m = &w->modes;
    const double *value = m->value + (size_t)w->spec->type[i] * (size_t)m->n;
    int n = 0;
    for (int k = 0; k < m->n; k++) {
        double a = value[k];
        if (k >= m->n_group[0])
            a *= w->spec->weight[i];
        mode[n] = k;
        amount[n] = a;
        n += a != 0.0;
    }
    return n;
}

/* Adds one particle to n_line lines of one plane of n modes. line, along:
 * weights across and along the lines. */
TSR_CLONES static void spread(double *const *to, const double *amount, int n,
                              size_t row, int n_line, const double *line,
                              const double *along)
{
    eight x = *(const eight *)along;
    for (int k = 0; k < n; k++)
        for (int y = 0; y < n_line; y++) {
            eight *at = (eight *)(to[k] + (size_t)y * row);
            *at += amount[k] * line[y] * x;
        }
}

/* Spreads particle i onto its planes among low..high-1. */
static void spread_particle(const work *w, int i, int low, int high)
{
    int first[3], mode[MAX_MODE] = {0};
    double weight[3][WIDTH], amount[MAX_MODE] = {0.0}, own[MAX_MODE];
    double *to[MAX_MODE];
    size_t row = 2 * w->row;
    int n = particle_modes(w, i, mode, amount);
    if (n == 0)
        return;
    particle_weights(&w->plan, w->spec->xyz[i], first, weight);
    for (int z = 0; z < WIDTH; z++) {
        if (first[2] + z < low || first[2] + z >= high)
            continue;
        for (int k = 0; k < n; k++) {
            to[k] = (double *)plane_of(w, mode[k], w->plan.n_filled[2],
                                       first[2] + z) +
                    (size_t)first[1] * row + first[0];
            own[k] = amount[k] * weight[2][z];
        }
        spread(to, own, n, row, WIDTH, weight[1], weight[0]);
    }
}

static void spread_part(void *context, int part, int thread)
{
    const work *w = context;
    int n_z = w->plan.n_filled[2];
    int low = (int)((long)part * n_z / w->n_part);
    int high = (int)((long)(part + 1) * n_z / w->n_part);
    int from = low - WIDTH + 1 < 0 ? 0 : low - WIDTH + 1;
    (void)thread;
    for (int m = 0; m < w->modes.n; m++)
        memset(plane_of(w, m, n_z, low), 0,
               (size_t)(high - low) * w->plane * sizeof *w->grid);
    for (int i = w->first[from]; i < w->first[high]; i++)
        spread_particle(w, w->order[i], low, high);
    for (int m = 0; m < w->modes.n; m++)
        for (int z = low; z < high; z++) {
            fftw_complex *g = plane_of(w, m, n_z, z);
            fftw_execute_dft_r2c(w->rows, (double *)g, g);
            fftw_execute_dft(w->lines, g, g);
        }
}

/* ---- (2) columns ---- */

typedef struct {
    int y, x, n; /* columns x to x + n - 1 in plane y */
} columns;

/* kx^2 + ky^2 and the inverse kernel transform along x, for BLOCK columns. */
typedef struct {
    double k2[BLOCK], inverse[BLOCK];
} across;

/* Sets at, part and weight (see scratch) for BLOCK columns; beyond k_cut, `at`
 * is the last interval. Returns 0 if all |k| are beyond k_cut. */
TSR_CLONES static int locate(const grid_plan *p, const across *c,
                             double inverse_y, int *restrict at,
                             double *restrict part, double *restrict weight)
{
    const double scale = (p->n_fine - 1) / p->k_cut, cut2 = p->k_cut * p->k_cut;
    const int last = p->n_fine - 2;
    double any = 0.0;
    for (int z = 0; z < p->n[2]; z++, at += BLOCK, part += BLOCK) {
        const double kz = p->k[2][z],
                     inverse_yz = inverse_y * p->kernel_inv[2][z];
        for (int b = 0; b < BLOCK; b++) {
            double k2 = c->k2[b] + kz * kz, position = sqrt(k2) * scale;
            double inverse = inverse_yz * c->inverse[b];
            int i = position < last ? (int)position : last;
            at[b] = i;
            part[b] = position - i;
            weight[z * BLOCK + b] = k2 < cut2 ? inverse * inverse : 0.0;
        }
        for (int b = 0; b < BLOCK; b++)
            any += weight[z * BLOCK + b];
    }
    return any > 0.0;
}

static int locate_columns(const work *w, const columns *c, scratch *s)
{
    const grid_plan *p = &w->plan;
    const double ky = p->k[1][c->y];
    across at_columns;
    for (int b = 0; b < BLOCK; b++) {
        const int x = b < c->n ? c->x + b : c->x;
        at_columns.k2[b] = p->k[0][x] * p->k[0][x] + ky * ky;
        at_columns.inverse[b] = p->kernel_inv[0][x];
    }
    return locate(p, &at_columns, p->kernel_inv[1][c->y], s->at, s->part,
                  s->weight);
}

static void load_columns(const work *w, int mode, const columns *c, scratch *s)
{
    int n_z = w->plan.n_filled[2];
    memset(s->column, 0, (size_t)w->plan.n[2] * BLOCK * sizeof *s->column);
    for (int z = 0; z < n_z; z++)
        memcpy(s->column + (size_t)z * BLOCK,
               plane_of(w, mode, n_z, z) + (size_t)c->y * w->row + c->x,
               (size_t)c->n * sizeof *s->column);
}

/* Adds one mode times its curve to the amplitude of a component. */
TSR_CLONES static void add_mode(size_t n, const double *restrict curve,
                                const int *restrict at,
                                const double *restrict part,
                                const double *restrict mode,
                                double *restrict amplitude)
{
    for (size_t i = 0; i < n; i++) {
        const double low = curve[at[i]], high = curve[at[i] + 1];
        const double value = low + part[i] * (high - low);
        amplitude[2 * i] += value * mode[2 * i];
        amplitude[2 * i + 1] += value * mode[2 * i + 1];
    }
}

/* The product of two amplitudes, divided by the squared kernel transform. */
TSR_CLONES static void multiply(size_t n, const double *restrict weight,
                                const double *a, const double *b,
                                double *restrict product)
{
    for (size_t i = 0; i < n; i++)
        product[i] =
            weight[i] * (a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);
}

static void store_columns(const work *w, int pair, const columns *c,
                          const scratch *s)
{
    for (int z = 0; z < w->n_half; z++)
        memcpy(plane_of(w, pair, w->n_half, z) + (size_t)c->y * w->row + c->x,
               s->column + (size_t)z * BLOCK, (size_t)c->n * sizeof *s->column);
}

static void process_columns(const work *w, const columns *c, scratch *s)
{
    int is_in = locate_columns(w, c, s), n_comp = w->spec->n_comp, pair = 0;
    size_t n = (size_t)w->plan.n[2] * BLOCK;
    memset(s->amplitude, 0, (size_t)n_comp * n * sizeof *s->amplitude);
    for (int m = 0; m < w->modes.n && is_in; m++) {
        load_columns(w, m, c, s);
        fftw_execute_dft(w->depth, s->column, s->column);
        for (int a = 0; a < n_comp; a++)
            if (m >= modes_first(&w->modes, a) && m < modes_end(&w->modes, a))
                add_mode(n,
                         w->plan.curve + (size_t)(a * w->modes.n + m) *
                                             (size_t)w->plan.n_fine,
                         s->at, s->part, (const double *)s->column,
                         (double *)(s->amplitude + (size_t)a * n));
    }
    memset(s->column, 0, n * sizeof *s->column);
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, pair++) {
            if (is_in) {
                multiply(n, s->weight,
                         (const double *)(s->amplitude + (size_t)a * n),
                         (const double *)(s->amplitude + (size_t)b * n),
                         s->product);
                fftw_execute_dft_r2c(w->depth_back, s->product, s->column);
            }
            store_columns(w, pair, c, s);
        }
}

static void column_part(void *context, int part, int thread)
{
    const work *w = context;
    for (int x = 0; x < (int)w->row; x += BLOCK) {
        int remainder = (int)w->row - x;
        columns c = {part, x, remainder < BLOCK ? remainder : BLOCK};
        process_columns(w, &c, &w->scratch[thread]);
    }
}

/* ---- (3) planes: sums by distance ---- */

/* Adds the values of plane z, and of plane -z, which has the same values, to
 * shell [n_shell], indexed by the squared distance in grid spacings. */
static void add_plane(const work *w, const double *g, int z, double *shell)
{
    const int *n = w->plan.n;
    double times = z == 0 || 2 * z == n[2] ? 1.0 : 2.0;
    for (int y = 0; y < n[1]; y++) {
        int dy = y <= n[1] / 2 ? y : n[1] - y;
        const double *line = g + (size_t)y * 2 * w->row;
        double *at = shell + z * z + dy * dy;
        at[0] += times * line[0];
        for (int x = 1; x < n[0] / 2; x++)
            at[x * x] += times * (line[x] + line[n[0] - x]);
        at[n[0] / 2 * (n[0] / 2)] += times * line[n[0] / 2];
    }
}

static void plane_part(void *context, int part, int thread)
{
    const work *w = context;
    int low = part * w->n_half / N_BLOCK,
        high = (part + 1) * w->n_half / N_BLOCK;
    (void)thread;
    for (int pair = 0; pair < w->n_pair; pair++) {
        double *shell =
            w->shell + ((size_t)part * (size_t)w->n_pair + (size_t)pair) *
                           (size_t)w->n_shell;
        for (int z = low; z < high; z++) {
            fftw_complex *g = plane_of(w, pair, w->n_half, z);
            fftw_execute_dft(w->lines_back, g, g);
            fftw_execute_dft_c2r(w->rows_back, g, (double *)g);
            add_plane(w, (double *)g, z, shell);
        }
    }
}

/* ---- the profile ---- */

/* Adds value[p] sinc(q_k r) to profile [n_pair][n_q], with the recurrence of
 * debye.c. row [n_q]: scratch. */
static void add_shell(double r, double dq, int n_q, int n_pair,
                      const double *value, double *row, double *profile)
{
    double x = dq * r, two_cos = 2.0 * cos(x), previous = 0.0, current = sin(x);
    row[0] = 1.0;
    for (int k = 1; k < n_q; k++) {
        row[k] = x > 0.0 ? current / (k * x) : 1.0;
        double next = two_cos * current - previous;
        previous = current;
        current = next;
    }
    for (int p = 0; p < n_pair; p++)
        for (int k = 0; k < n_q; k++)
            profile[(size_t)p * (size_t)n_q + (size_t)k] += value[p] * row[k];
}

static void shell_part(void *context, int part, int thread)
{
    const work *w = context;
    size_t n_shell = (size_t)w->n_shell, n_pair = (size_t)w->n_pair;
    size_t low = (size_t)part * n_shell / N_BLOCK,
           high = ((size_t)part + 1) * n_shell / N_BLOCK;
    size_t n_q = (size_t)w->spec->n_q;
    double *to = w->partial + (size_t)part * n_pair * n_q;
    double *row = w->sinc + (size_t)part * n_q;
    (void)thread;
    for (size_t r2 = low; r2 < high; r2++) {
        double value[6] = {0.0}, any = 0.0;
        for (size_t p = 0; p < n_pair; p++) {
            for (size_t b = 0; b < N_BLOCK; b++)
                value[p] += w->shell[(b * n_pair + p) * n_shell + r2];
            any += fabs(value[p]);
        }
        if (any > 0.0)
            add_shell(w->plan.h_ang * sqrt((double)r2), w->spec->dq_inv_ang,
                      w->spec->n_q, w->n_pair, value, row, to);
    }
}

static void normalise_profile(const work *w, double *profile)
{
    size_t n_q = (size_t)w->spec->n_q, n = (size_t)w->n_pair * n_q;
    const int *box = w->plan.n;
    double points = (double)box[0] * box[1] * box[2];
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        double q = (double)(i % n_q) * w->spec->dq_inv_ang;
        for (size_t b = 0; b < N_BLOCK; b++)
            sum += w->partial[b * n + i];
        profile[i] = sum / (points * window_at(&w->plan, q));
    }
}

static tsr_status sum_on_grid(work *w, const tsr_debye_progress *progress,
                              double *profile, tsr_err *err)
{
    TSR_TRY(sort_particles(w, err));
    tsr_parallel_run(w->n_part, w->n_thread, spread_part, w);
    TSR_TRY(tsr_debye_report(progress, 0.4, err));
    tsr_parallel_run(w->plan.n[1], w->n_thread, column_part, w);
    TSR_TRY(tsr_debye_report(progress, 0.8, err));
    tsr_parallel_run(N_BLOCK, w->n_thread, plane_part, w);
    tsr_parallel_run(N_BLOCK, w->n_thread, shell_part, w);
    normalise_profile(w, profile);
    return tsr_debye_report(progress, 1.0, err);
}

static tsr_status check_spec(const tsr_debye_spec *spec, tsr_err *err)
{
    double q_top = (spec->n_q - 1) * spec->dq_inv_ang;
    TSR_TRY(tsr_debye_check(spec, err));
    if (q_top > tsr_grid_q_max)
        return tsr_fail(err, TSR_E_RANGE,
                        "a grid is exact up to q = %g 1/A, but the profile "
                        "extends to %g: use --method direct or quadrature",
                        tsr_grid_q_max, q_top);
    return TSR_OK;
}

tsr_status tsr_grid_sum(const tsr_debye_spec *spec, int n_thread,
                        const tsr_debye_progress *progress, double *profile,
                        tsr_err *err)
{
    static const double mode_error = 1e-6;
    work w = {.spec = spec, .n_thread = n_thread};
    TSR_TRY(check_spec(spec, err));
    tsr_status status = make_modes(spec, mode_error, &w.pool, &w.modes, err);
    if (status == TSR_OK && w.modes.n > MAX_MODE)
        status = tsr_fail(err, TSR_E_INTERNAL, "%d modes of form factors",
                          w.modes.n);
    TSR_THEN(status, make_plan(spec, &w.modes, &w.pool, &w.plan, err));
    if (status == TSR_OK) {
        set_sizes(&w);
        status = reserve(&w, err);
    }
    TSR_THEN(status, sum_on_grid(&w, progress, profile, err));
    work_clear(&w);
    return status;
}

/* The box lies along the molecule's principal axes where that makes it smaller;
 * its longest side is z. Padding doubles each side, so that differences of
 * positions do not meet their periodic images, and leaves a margin for the
 * window's own width.
 *
 * The kernel is exp(beta (sqrt(1 - (2x/w)^2) - 1)), whose error is that of the
 * prolate function or nearly so: exp(-pi w sqrt(1 - 1/s)), s the oversampling
 * (Barnett, Magland & af Klinteberg 2019, SIAM J. Sci. Comput. 41, C479). The
 * window is the Kaiser-Bessel function of |k| / k_cut: isotropic, so that it
 * comes off the curve as one factor, and short in space, so that the margin is
 * small. */
#include "scattering/grid_plan.h"

#include "core/clones.h"
#include "core/vec3.h"

#include <gsl/gsl_eigen.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sf_bessel.h>
#include <gsl/gsl_spline.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
enum { WIDTH = TSR_GRID_WIDTH, N_NODE = 48, N_FINE = 4096 };

typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));

/* Between two points of a curve, 1/Angstrom: straight lines are within 1e-6 of
 * Gaussians that fall by 1e3 to q = 2. */
static const double fine_step = 2e-4;

/* How far the form factors themselves reach, both of a pair: Angstrom. */
static const double own_size = 20.0;

/* pi / (h q_top); beta of the window; the box's margin in window / k_cut. */
static const double oversampling = 1.6, window = 16.0, wanted_margin = 3.0;

/* ---- the box ---- */

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
        return; /* the axes as they are do as well */
    gsl_eigen_symmv(&t.matrix, &e.vector, &v.matrix, work);
    gsl_eigen_symmv_free(work);
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 3; c++)
            axis[a][c] = vector[3 * c + a];
}

/* Puts the longest side last. */
static void sort_axes(tsr_grid_plan *p, double size[3])
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

/* Even, and without prime factors above 7. */
static int good_size(int least)
{
    for (int n = least + least % 2;; n += 2) {
        int left = n;
        for (int f = 2; f <= 7; f++)
            while (left % f == 0)
                left /= f;
        if (left == 1)
            return n;
    }
}

void tsr_grid_plan_box(const tsr_debye_spec *spec, tsr_grid_plan *out)
{
    double own[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, low[3], size[3];
    double q_top = (spec->n_q - 1) * spec->dq_inv_ang;
    *out = (tsr_grid_plan){0};
    memcpy(out->axis, own, sizeof own);
    extent(spec, out->axis, out->low, size);
    double volume = (size[0] + 1.0) * (size[1] + 1.0) * (size[2] + 1.0);
    principal_axes(spec, own);
    double other[3];
    extent(spec, own, low, other);
    if ((other[0] + 1.0) * (other[1] + 1.0) * (other[2] + 1.0) < volume) {
        memcpy(out->axis, own, sizeof own);
        memcpy(out->low, low, sizeof low);
        memcpy(size, other, sizeof other);
    }
    sort_axes(out, size);
    out->h_ang = PI / (oversampling * q_top);
    out->k_cut = PI / out->h_ang;
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

static double kernel(const tsr_grid_plan *p, double x)
{
    double u = 2.0 * x / WIDTH, inside = 1.0 - u * u;
    return inside > 0.0 ? exp(p->beta * (sqrt(inside) - 1.0)) : 0.0;
}

static double place(const tsr_grid_plan *plan, int axis, const double xyz[3])
{
    return (tsr_vec3_dot(plan->axis[axis], xyz) - plan->low[axis]) /
               plan->h_ang +
           0.5 * WIDTH;
}

int tsr_grid_first(const tsr_grid_plan *plan, int axis, const double xyz[3])
{
    return (int)ceil(place(plan, axis, xyz) - 0.5 * WIDTH);
}

/* One piece of the kernel from a point of the grid to the next, over all of
 * which a particle's place goes: the square root at both ends is worth 1e-8. */
static void fill_kernel(tsr_grid_plan *p)
{
    for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < TSR_GRID_TERM; j++) {
            double sum = 0.0;
            for (int k = 0; k < TSR_GRID_TERM; k++) {
                double angle = PI * (k + 0.5) / TSR_GRID_TERM;
                double x = i - 0.5 * WIDTH + 0.5 * (1.0 + cos(angle));
                sum += kernel(p, x) * cos(j * angle);
            }
            p->kernel[j][i] = (j == 0 ? 1.0 : 2.0) * sum / TSR_GRID_TERM;
        }
}

/* The kernel at x, x + 1, ... by Clenshaw's sums, `place` of the way from the
 * first point to the next. */
TSR_CLONES static void weights_of(const tsr_grid_plan *p, double place,
                                  double *out)
{
    const double x = 2.0 * place - 1.0;
    eight here = {0.0}, before = {0.0};
    for (int j = TSR_GRID_TERM - 1; j > 0; j--) {
        eight next = *(const eight *)p->kernel[j] + 2.0 * x * here - before;
        before = here;
        here = next;
    }
    *(eight *)out = *(const eight *)p->kernel[0] + x * here - before;
}

void tsr_grid_place(const tsr_grid_plan *plan, const double xyz[3],
                    int first[3], double weight[3][TSR_GRID_WIDTH])
{
    for (int c = 0; c < 3; c++) {
        double at = place(plan, c, xyz), base = ceil(at - 0.5 * WIDTH);
        first[c] = (int)base;
        weights_of(plan, base - at + 0.5 * WIDTH, weight[c]);
    }
}

/* Its transform, which is even, by Gauss and Legendre's rule. */
static void fill_axes(tsr_grid_plan *p,
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
            double kh = 2.0 * PI * m / p->n[c], sum = 0.0;
            for (int j = 0; j < N_NODE; j++)
                sum += w[j] * cos(kh * x[j]);
            p->k[c][i] = kh / p->h_ang;
            p->kernel_inv[c][i] = 1.0 / sum;
        }
}

/* ---- the curves ---- */

double tsr_grid_window(const tsr_grid_plan *plan, double q_inv_ang)
{
    double x = q_inv_ang / plan->k_cut, beta = window;
    double root = x < 1.0 ? beta * sqrt(1.0 - x * x) : 0.0;
    return gsl_sf_bessel_I0_scaled(root) / gsl_sf_bessel_I0_scaled(beta) *
           exp(root - beta);
}

/* A curve is continued beyond its end by Gaussians that fit it, which have a
 * short range in space; a spline adds what they leave, some 1e-5, so that at
 * each q of the profile the curve is what it is. Whether it is right between
 * them and beyond does not matter, as I at q follows from |k| = q alone; that
 * it is smooth does, since a kink would reach far in space. */
static const double gauss_width[] = {0.0, 0.25, 0.5, 1.0, 1.5, 2.0,
                                     3.0, 4.0,  6.0, 8.0, 12.0}; /* A^2 */
static const double taper = 0.2; /* of the end, of what is left beyond it */
enum { N_GAUSS = sizeof gauss_width / sizeof gauss_width[0], N_LEFT = 8 };

typedef struct {
    int n_q, n_gauss, n_knot;
    double dq;
    gsl_matrix *u, *v; /* of the Gaussians at the q, decomposed */
    gsl_vector *size, *at, *amount;
    double *x, *y; /* [n_knot] from -N_LEFT dq on, since curves are even */
    gsl_spline *spline;
    gsl_interp_accel *near;
} continued;

static void continued_clear(continued *c)
{
    gsl_matrix_free(c->u);
    gsl_matrix_free(c->v);
    gsl_vector_free(c->size);
    gsl_vector_free(c->at);
    gsl_vector_free(c->amount);
    free(c->x);
    free(c->y);
    gsl_spline_free(c->spline);
    gsl_interp_accel_free(c->near);
}

static double gauss(int i, double q)
{
    return exp(-gauss_width[i] * q * q);
}

static tsr_status continued_make(int n_q, double dq, double k_cut, continued *c,
                                 tsr_err *err)
{
    int n_right = (int)ceil(k_cut / dq) + 3;
    *c = (continued){.n_q = n_q,
                     .n_gauss = n_q < N_GAUSS ? n_q : N_GAUSS,
                     .n_knot = N_LEFT + (n_right > n_q ? n_right : n_q),
                     .dq = dq};
    size_t n = (size_t)c->n_knot, m = (size_t)c->n_gauss;
    c->x = calloc(n, sizeof *c->x);
    c->y = calloc(n, sizeof *c->y);
    c->u = gsl_matrix_alloc((size_t)n_q, m);
    c->v = gsl_matrix_alloc(m, m);
    c->size = gsl_vector_alloc(m);
    c->amount = gsl_vector_alloc(m);
    c->at = gsl_vector_alloc((size_t)n_q);
    c->spline = gsl_spline_alloc(gsl_interp_cspline, n);
    c->near = gsl_interp_accel_alloc();
    if (c->x == NULL || c->y == NULL || c->u == NULL || c->v == NULL ||
        c->size == NULL || c->amount == NULL || c->at == NULL ||
        c->spline == NULL || c->near == NULL)
        return tsr_no_memory(err);
    for (size_t k = 0; k < (size_t)n_q; k++)
        for (size_t i = 0; i < m; i++)
            gsl_matrix_set(c->u, k, i, gauss((int)i, (double)k * dq));
    gsl_linalg_SV_decomp_jacobi(c->u, c->v, c->size);
    for (size_t i = 0; i < m; i++)
        if (gsl_vector_get(c->size, i) < 1e-7 * gsl_vector_get(c->size, 0))
            gsl_vector_set(c->size, i, 0.0); /* left out of the solution */
    return TSR_OK;
}

/* gaussians [n_gauss]: their values at some q. */
static double add_up(const continued *c, const double *gaussians)
{
    double sum = 0.0;
    for (int i = 0; i < c->n_gauss; i++)
        sum += gsl_vector_get(c->amount, (size_t)i) * gaussians[i];
    return sum;
}

static double fitted(const continued *c, double q)
{
    double gaussians[N_GAUSS];
    for (int i = 0; i < N_GAUSS; i++)
        gaussians[i] = gauss(i, q);
    return add_up(c, gaussians);
}

static void continued_set(continued *c, const double *f)
{
    double q_top = (c->n_q - 1) * c->dq;
    for (int k = 0; k < c->n_q; k++)
        gsl_vector_set(c->at, (size_t)k, f[k]);
    gsl_linalg_SV_solve(c->u, c->v, c->size, c->at, c->amount);
    double last = f[c->n_q - 1] - fitted(c, q_top);
    for (int i = 0; i < c->n_knot; i++) {
        int k = abs(i - N_LEFT);
        double q = k * c->dq, over = (q - q_top) / (taper * q_top);
        c->x[i] = (i - N_LEFT) * c->dq;
        c->y[i] = k < c->n_q ? f[k] - fitted(c, q) : last * exp(-over * over);
    }
    gsl_spline_init(c->spline, c->x, c->y, (size_t)c->n_knot);
}

static tsr_status make_curves(const tsr_debye_spec *spec,
                              const tsr_factor_modes *modes, tsr_grid_plan *p,
                              tsr_err *err)
{
    continued c;
    tsr_status status =
        continued_make(spec->n_q, spec->dq_inv_ang, p->k_cut, &c, err);
    int n = p->n_fine;
    double *root = malloc((size_t)n * sizeof *root);
    double *basis = malloc((size_t)n * N_GAUSS * sizeof *basis);
    if (status == TSR_OK && (root == NULL || basis == NULL))
        status = tsr_no_memory(err);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        double k = p->k_cut * i / (n - 1);
        root[i] = sqrt(tsr_grid_window(p, k));
        for (int g = 0; g < N_GAUSS; g++)
            basis[i * N_GAUSS + g] = gauss(g, k);
    }
    for (int row = 0; row < modes->n_comp * modes->n && status == TSR_OK;
         row++) {
        int comp = row / modes->n, m = row % modes->n;
        double *to = p->curve + (size_t)row * (size_t)n;
        if (m < tsr_modes_first(modes, comp) || m >= tsr_modes_end(modes, comp))
            continue;
        continued_set(&c, modes->curve + (size_t)row * (size_t)spec->n_q);
        for (int i = 0; i < n; i++) {
            double k = p->k_cut * i / (n - 1);
            to[i] = root[i] * (add_up(&c, basis + (size_t)i * N_GAUSS) +
                               gsl_spline_eval(c.spline, k, c.near));
        }
    }
    continued_clear(&c);
    free(root);
    free(basis);
    return status;
}

/* ---- the plan ---- */

void tsr_grid_plan_clear(tsr_grid_plan *plan)
{
    for (int c = 0; c < 3; c++) {
        free(plan->kernel_inv[c]);
        free(plan->k[c]);
    }
    free(plan->curve);
    *plan = (tsr_grid_plan){0};
}

static tsr_status reserve(const tsr_factor_modes *modes, tsr_grid_plan *p,
                          tsr_err *err)
{
    int is_there = 1;
    p->n_fine = (int)fmax(N_FINE, ceil(p->k_cut / fine_step));
    p->curve =
        calloc((size_t)(modes->n_comp * modes->n) * (size_t)p->n_fine + 1,
               sizeof *p->curve);
    is_there = p->curve != NULL;
    for (int c = 0; c < 3; c++) {
        p->kernel_inv[c] = calloc((size_t)p->n[c], sizeof *p->kernel_inv[c]);
        p->k[c] = calloc((size_t)p->n[c], sizeof *p->k[c]);
        is_there &= p->kernel_inv[c] != NULL && p->k[c] != NULL;
    }
    return is_there ? TSR_OK : tsr_no_memory(err);
}

tsr_status tsr_grid_plan_make(const tsr_debye_spec *spec,
                              const tsr_factor_modes *modes, tsr_grid_plan *out,
                              tsr_err *err)
{
    tsr_grid_plan_box(spec, out);
    out->beta = 0.976 * PI * WIDTH * (1.0 - 0.5 / oversampling);
    gsl_integration_glfixed_table *rule =
        gsl_integration_glfixed_table_alloc(N_NODE);
    tsr_status status = reserve(modes, out, err);
    fill_kernel(out);
    TSR_THEN(status, tsr_allocated(rule, err));
    if (status == TSR_OK)
        fill_axes(out, rule);
    TSR_THEN(status, make_curves(spec, modes, out, err));
    if (rule != NULL)
        gsl_integration_glfixed_table_free(rule);
    if (status != TSR_OK)
        tsr_grid_plan_clear(out);
    return status;
}

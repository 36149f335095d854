/* Debye profiles as means over directions, and tables of amplitudes.
 *
 * Directions come from a product rule: Gauss-Legendre nodes in z and equal
 * spacing around z, exact for spherical harmonics up to a degree p. |A|^2
 * contains plane waves with q r up to q D, whose harmonics vanish soon beyond
 * the degree q D, so the degree p = 1.1 q D + 8 suffices. |A|^2 has the same
 * value in opposite directions, so the upper half of the sphere is enough.
 *
 * On the uniform grid of q, exp(i q_k n r) follows from two sines and cosines
 * by a recurrence. The q are divided into bands, each with the directions that
 * its last q needs. A unit of work is one band and one block of directions, one
 * direction in each lane of a vector. */
#include "scattering/plane_wave.h"

#include "core/clones.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/vec3.h"

#include <fftw3.h>
#include <gsl/gsl_integration.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, BAND = 16, MAX_COMP = 3, MAX_PAIR = 6 };

typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));

static int is_weighted(const tsr_debye_spec *s, int comp)
{
    return s->weight != NULL && comp == s->weighted;
}

/* ---- directions ---- */

static int degree(double q, double d)
{
    return (int)ceil(1.1 * q * d) + 8;
}

/* Numbers of nodes in z on the upper half sphere, and of points around z. */
static void rule_size(double q, double d, int *n_z, int *n_phi)
{
    int p = degree(q, d);
    *n_z = (p + 4) / 4;
    *n_phi = p + 1;
}

int tsr_plane_wave_directions_of(double q_inv_ang, double d_ang)
{
    int n_z, n_phi;
    rule_size(q_inv_ang, d_ang, &n_z, &n_phi);
    return n_z * n_phi;
}

static int n_band(int n_q)
{
    return (n_q + BAND - 1) / BAND;
}

static int band_end(int n_q, int band)
{
    return (band + 1) * BAND < n_q ? (band + 1) * BAND : n_q;
}

double tsr_plane_wave_terms(int n_q, double dq_inv_ang, double d_ang)
{
    double sum = 0.0;
    for (int b = 0; b < n_band(n_q); b++) {
        int end = band_end(n_q, b);
        sum += (double)BAND *
               tsr_plane_wave_directions_of((end - 1) * dq_inv_ang, d_ang);
    }
    return sum;
}

/* LANES directions; padding has weight 0. */
typedef struct {
    double x[LANES], y[LANES], z[LANES], weight[LANES];
} block;

typedef struct {
    int band;
    block block;
    double part[MAX_PAIR][BAND]; /* contribution to the profile */
} unit;

/* The particles of one type, with amplitude 1 for the components without
 * weights, or with their weights for the weighted component. Padded to an even
 * number by a particle of amplitude 0. */
typedef struct {
    int type, is_weighted, first, n;
} group;

typedef struct {
    const tsr_debye_spec *spec;
    tsr_pool pool;
    double *xyz[3], *amplitude; /* of the particles, sorted by group */
    group *group;
    int n_group;
    int n_unit;
    unit *unit;
} work;

tsr_status tsr_plane_wave_directions(double q_inv_ang, double d_ang,
                                     tsr_pool *pool, int *n, double (**out)[4],
                                     tsr_err *err)
{
    int n_z, n_phi;
    rule_size(q_inv_ang, d_ang, &n_z, &n_phi);
    *n = n_z * n_phi;
    tsr_pool_array(pool, *out, *n);
    TSR_TRY(tsr_pool_check(pool, err));
    gsl_integration_glfixed_table *rule =
        gsl_integration_glfixed_table_alloc((size_t)(2 * n_z));
    TSR_TRY(tsr_allocated(rule, err));
    for (int i = 0; i < *n; i++) {
        double z, weight, phi = 2.0 * TSR_PI * (i % n_phi) / n_phi;
        gsl_integration_glfixed_point(-1.0, 1.0, (size_t)(n_z + i / n_phi), &z,
                                      &weight, rule);
        const double s = sqrt(1.0 - z * z);
        double *to = (*out)[i];
        to[0] = s * cos(phi);
        to[1] = s * sin(phi);
        to[2] = z;
        to[3] = weight / n_phi;
    }
    gsl_integration_glfixed_table_free(rule);
    return TSR_OK;
}

/* Appends the units of work of a band. d: largest distance, Angstrom. */
static tsr_status add_band(work *w, int band, double d, tsr_err *err)
{
    const int end = band_end(w->spec->n_q, band);
    double(*at)[4];
    int n;
    TSR_TRY(tsr_plane_wave_directions((end - 1) * w->spec->dq_inv_ang, d,
                                      &w->pool, &n, &at, err));
    const int n_new = (n + LANES - 1) / LANES;
    unit *more = tsr_pool_resize(&w->pool, w->unit, (size_t)(w->n_unit + n_new),
                                 sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    w->unit = more;
    unit *to = w->unit + w->n_unit;
    memset(to, 0, (size_t)n_new * sizeof *to);
    for (int i = 0; i < n; i++) {
        block *b = &to[i / LANES].block;
        b->x[i % LANES] = at[i][0];
        b->y[i % LANES] = at[i][1];
        b->z[i % LANES] = at[i][2];
        b->weight[i % LANES] = at[i][3];
    }
    for (int u = 0; u < n_new; u++)
        to[u].band = band;
    w->n_unit += n_new;
    tsr_pool_free(&w->pool, at);
    return TSR_OK;
}

/* ---- amplitudes ---- */

/* Sines and cosines of eight angles, to 1e-15 for several thousand turns:
 * removes whole turns, evaluates Taylor series at a quarter of the angle, and
 * doubles the angle twice. */
TSR_INLINE void sine_cosine(const eight *angle, eight *sine, eight *cosine)
{
    const double turn = 6.283185307179586, rest = 2.4492935982947064e-16;
    const double round = 0x1.8p52;
    eight turns = *angle * (1.0 / turn) + round - round;
    eight x = 0.25 * (*angle - turns * turn - turns * rest), y = x * x;
    eight s = 1.0 - y * (1.0 / 210.0), c = 1.0 - y * (1.0 / 240.0);
    s = 1.0 - y * (1.0 / 156.0) * s;
    s = 1.0 - y * (1.0 / 110.0) * s;
    s = 1.0 - y * (1.0 / 72.0) * s;
    s = 1.0 - y * (1.0 / 42.0) * s;
    s = 1.0 - y * (1.0 / 20.0) * s;
    s = x * (1.0 - y * (1.0 / 6.0) * s);
    c = 1.0 - y * (1.0 / 182.0) * c;
    c = 1.0 - y * (1.0 / 132.0) * c;
    c = 1.0 - y * (1.0 / 90.0) * c;
    c = 1.0 - y * (1.0 / 56.0) * c;
    c = 1.0 - y * (1.0 / 30.0) * c;
    c = 1.0 - y * (1.0 / 12.0) * c;
    c = 1.0 - y * 0.5 * c;
    eight s2 = 2.0 * s * c, c2 = 1.0 - 2.0 * s * s;
    *sine = 2.0 * s2 * c2;
    *cosine = 1.0 - 2.0 * s2 * s2;
}

typedef struct {
    eight re[BAND], im[BAND];
} waves;

/* A wave (sine and cosine) at the current and the previous q, times an
 * amplitude; twice: 2 cos of the phase between two q. */
typedef struct {
    eight s, c, s_before, c_before, twice;
} wave;

TSR_INLINE void start_wave(const eight *path, double q, double dq,
                           double amplitude, wave *w)
{
    eight step = *path * dq, phase = *path * q, s, c, s1, c1;
    sine_cosine(&step, &s1, &c1);
    sine_cosine(&phase, &s, &c);
    w->s = amplitude * s;
    w->c = amplitude * c;
    w->s_before = amplitude * (s * c1 - c * s1);
    w->c_before = amplitude * (c * c1 + s * s1);
    w->twice = 2.0 * c1;
}

TSR_INLINE void advance(wave *w)
{
    eight s = w->twice * w->s - w->s_before, c = w->twice * w->c - w->c_before;
    w->s_before = w->s, w->c_before = w->c;
    w->s = s, w->c = c;
}

/* Adds the waves of n particles (n even) in the directions of a block, from q
 * on in steps of dq. Two particles at a time hide the latency of the
 * arithmetic. */
TSR_CLONES static void add_waves(int n, const double *x, const double *y,
                                 const double *z, const double *amplitude,
                                 const block *b, double q, double dq,
                                 waves *sum)
{
    eight nx = *(const eight *)b->x, ny = *(const eight *)b->y,
          nz = *(const eight *)b->z;
    for (int i = 0; i < n; i += 2) {
        eight p0 = nx * x[i] + ny * y[i] + nz * z[i];
        eight p1 = nx * x[i + 1] + ny * y[i + 1] + nz * z[i + 1];
        wave w0, w1;
        start_wave(&p0, q, dq, amplitude[i], &w0);
        start_wave(&p1, q, dq, amplitude[i + 1], &w1);
        for (int k = 0; k < BAND; k++) {
            sum->re[k] += w0.c + w1.c;
            sum->im[k] += w0.s + w1.s;
            advance(&w0);
            advance(&w1);
        }
    }
}

/* Adds the waves of a group times its form factors to the amplitudes sum
 * [n_comp], at n values of q from index `low` on. */
static void add_group(const work *w, const group *g, const block *b, int low,
                      int n, waves *sum)
{
    const tsr_debye_spec *s = w->spec;
    double dq = s->dq_inv_ang;
    size_t at = (size_t)g->first;
    waves of_group;
    memset(&of_group, 0, sizeof of_group);
    add_waves(g->n, w->xyz[0] + at, w->xyz[1] + at, w->xyz[2] + at,
              w->amplitude + at, b, low * dq, dq, &of_group);
    for (int a = 0; a < s->n_comp; a++) {
        const double *f = tsr_debye_factor(s, a, g->type) + low;
        if (is_weighted(s, a) != g->is_weighted)
            continue;
        for (int k = 0; k < n; k++) {
            sum[a].re[k] += f[k] * of_group.re[k];
            sum[a].im[k] += f[k] * of_group.im[k];
        }
    }
}

/* Amplitudes of a block of directions: sum [n_comp] out. */
static void add_groups(const work *w, const block *b, int low, int n,
                       waves *sum)
{
    memset(sum, 0, MAX_COMP * sizeof *sum);
    for (int g = 0; g < w->n_group; g++)
        add_group(w, &w->group[g], b, low, n, sum);
}

static void sum_unit(void *context, int part, int thread)
{
    const work *w = context;
    const tsr_debye_spec *s = w->spec;
    unit *u = &w->unit[part];
    int low = u->band * BAND, n = band_end(s->n_q, u->band) - low, pair = 0;
    waves sum[MAX_COMP];
    (void)thread;
    add_groups(w, &u->block, low, n, sum);
    for (int a = 0; a < s->n_comp; a++)
        for (int b = a; b < s->n_comp; b++, pair++)
            for (int k = 0; k < n; k++)
                for (int l = 0; l < LANES; l++)
                    u->part[pair][k] += u->block.weight[l] *
                                        (sum[a].re[k][l] * sum[b].re[k][l] +
                                         sum[a].im[k][l] * sum[b].im[k][l]);
}

/* ---- the profile ---- */

/* 1 if the type scatters in the weighted component, or (weighted 0) in a
 * component without weights. */
static int has_factor(const tsr_debye_spec *s, int type, int weighted)
{
    for (int a = 0; a < s->n_comp; a++)
        for (int k = 0; k < s->n_q && is_weighted(s, a) == weighted; k++)
            if (tsr_debye_factor(s, a, type)[k] != 0.0)
                return 1;
    return 0;
}

/* Appends a particle at index `at`, unless its amplitude is 0. Its position is
 * relative to the centre, so that phases are small. Returns the next index. */
static int add_particle(work *w, int at, const double *xyz,
                        const double *centre, double amplitude)
{
    if (amplitude == 0.0)
        return at;
    for (int c = 0; c < 3; c++)
        w->xyz[c][at] = xyz[c] - centre[c];
    w->amplitude[at] = amplitude;
    return at + 1;
}

/* Sorts particles by type: order [n] out, start [n_type + 1] out. */
static void sort_types(const tsr_debye_spec *s, int *start, int *order)
{
    for (int i = 0; i < s->n; i++)
        start[s->type[i] + 1]++;
    for (int t = 0; t < s->n_type; t++)
        start[t + 1] += start[t];
    for (int i = 0; i < s->n; i++)
        order[start[s->type[i]]++] = i;
    for (int t = s->n_type; t > 0; t--)
        start[t] = start[t - 1];
    start[0] = 0;
}

static void set_groups(work *w, const double *centre, const int *start,
                       const int *order)
{
    const tsr_debye_spec *s = w->spec;
    int at = 0;
    for (int t = 0; t < s->n_type; t++)
        for (int weighted = 0; weighted < 2; weighted++) {
            group g = {.type = t, .is_weighted = weighted, .first = at};
            if (start[t] == start[t + 1] || !has_factor(s, t, weighted))
                continue;
            for (int k = start[t]; k < start[t + 1]; k++) {
                const int i = order[k];
                at = add_particle(w, at, s->xyz[i], centre,
                                  weighted ? s->weight[i] : 1.0);
            }
            at += (at - g.first) % 2;
            g.n = at - g.first;
            if (g.n > 0)
                w->group[w->n_group++] = g;
        }
}

/* Sorts the particles into groups, at positions relative to `origin`. */
static tsr_status make_groups(work *w, const double origin[3], tsr_err *err)
{
    const tsr_debye_spec *s = w->spec;
    size_t n_group = 2 * (size_t)s->n_type, n = 2 * (size_t)s->n + n_group;
    int *start;
    for (int c = 0; c < 3; c++)
        tsr_pool_array(&w->pool, w->xyz[c], n);
    tsr_pool_array(&w->pool, w->amplitude, n);
    tsr_pool_array(&w->pool, w->group, n_group);
    tsr_pool_array(&w->pool, start, s->n_type + 1 + s->n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    sort_types(s, start, start + s->n_type + 1);
    set_groups(w, origin, start, start + s->n_type + 1);
    return TSR_OK;
}

tsr_status tsr_plane_wave_sum(const tsr_debye_spec *spec, double d_ang,
                              int n_thread, const tsr_debye_progress *progress,
                              double *profile, tsr_err *err)
{
    size_t n_q = (size_t)spec->n_q;
    int n_pair = tsr_debye_n_pair(spec);
    work w = {.spec = spec};
    double centre[3] = {0.0, 0.0, 0.0};
    TSR_TRY(tsr_debye_check(spec, err));
    for (int i = 0; i < spec->n; i++)
        for (int c = 0; c < 3; c++)
            centre[c] += spec->xyz[i][c] / spec->n;
    tsr_status status = make_groups(&w, centre, err);
    for (int b = 0; b < n_band(spec->n_q) && status == TSR_OK; b++)
        status = add_band(&w, b, d_ang, err);
    if (status == TSR_OK) {
        tsr_parallel_run(w.n_unit, n_thread, sum_unit, &w);
        memset(profile, 0, (size_t)n_pair * n_q * sizeof *profile);
        for (int u = 0; u < w.n_unit; u++) {
            int low = w.unit[u].band * BAND;
            int n = band_end(spec->n_q, w.unit[u].band) - low;
            for (int p = 0; p < n_pair; p++)
                for (int k = 0; k < n; k++)
                    profile[(size_t)p * n_q + (size_t)(low + k)] +=
                        w.unit[u].part[p][k];
        }
        status = tsr_debye_report(progress, 1.0, err);
    }
    tsr_pool_clear(&w.pool);
    return status;
}

/* ---- tables of amplitudes ----
 *
 * Amplitudes on half of the sphere, by direct sums over the particles, and two
 * Fourier transforms. */

enum {
    WIDTH = TSR_AMPLITUDE_WIDTH,
    TERMS = TSR_AMPLITUDE_TERMS,
    TABLE_BAND = TSR_AMPLITUDE_BAND,
    BEFORE = WIDTH / 2 - 1, /* additional rows (columns) before the first */
    AROUND = WIDTH,         /* additional rows (columns) in total */
    N_NODE = 40
};

static const double beta = 2.30 * WIDTH;

static double kernel(double x)
{
    const double u = 2.0 * x / WIDTH, inside = 1.0 - u * u;
    return inside > 0.0 ? exp(beta * (sqrt(inside) - 1.0)) : 0.0;
}

void tsr_amplitude_kernel(float c[TSR_AMPLITUDE_TERMS][TSR_AMPLITUDE_WIDTH])
{
    for (int i = 0; i < TERMS; i++)
        for (int j = 0; j < WIDTH; j++) {
            double sum = 0.0;
            for (int k = 0; k < TERMS; k++) {
                const double angle = TSR_PI * (k + 0.5) / TERMS;
                const double fraction = 0.5 * (1.0 + cos(angle));
                sum += kernel(fraction + BEFORE - j) * cos(i * angle);
            }
            c[i][j] = (float)((i == 0 ? 1.0 : 2.0) * sum / TERMS);
        }
}

/* out [n / 2 + 1]: 1 / transform of the kernel at frequencies 0 to n / 2, for a
 * circle of 2 n points. Returns 0 when out of memory. */
static int kernel_inverse(int n, double *out)
{
    gsl_integration_glfixed_table *rule =
        gsl_integration_glfixed_table_alloc(N_NODE);
    if (rule == NULL)
        return 0;
    for (int f = 0; f <= n / 2; f++) {
        double sum = 0.0;
        for (size_t j = 0; j < N_NODE; j++) {
            double x, w;
            gsl_integration_glfixed_point(0.0, 0.5 * WIDTH, j, &x, &w, rule);
            sum += 2.0 * w * kernel(x) * cos(TSR_PI * f * x / n);
        }
        out[f] = 1.0 / sum;
    }
    gsl_integration_glfixed_table_free(rule);
    return 1;
}

/* Number of samples around a circle before the refinement: more than twice the
 * degree of the harmonics, and a multiple of 4 so that half of the sphere
 * determines the other half. */
static int circle_samples(double q, double reach)
{
    const double x = q * reach;
    const int degree = (int)ceil(x + 4.0 * cbrt(x) + 6.0);
    return 4 * ((2 * degree + 2 + 3) / 4);
}

static size_t rows_of(int n_circle)
{
    return (size_t)n_circle / 2 + 1 + AROUND;
}

static size_t columns_of(int n_circle)
{
    return (size_t)n_circle + AROUND;
}

double tsr_amplitude_table_size(double q_inv_ang, double reach_ang, int n_comp)
{
    const int n = 2 * circle_samples(q_inv_ang, reach_ang);
    return (double)rows_of(n) * (double)columns_of(n) * TABLE_BAND * 2.0 *
           n_comp;
}

typedef struct {
    work sums;         /* sums over the particles */
    int low, n_k, n;   /* n: samples of a circle before the refinement */
    int n_job, n_grid; /* transforms; threads that have a grid each */
    size_t each;       /* numbers for each direction */
    double *half;      /* [n / 4 + 1][n][n_k][n_comp][2] amplitudes on the upper
                          half of the sphere */
    double *inverse;   /* [n / 2 + 1] from kernel_inverse */
    tsr_amplitude_table *table;
    fftw_complex *grid; /* [n_grid][2][2 n][2 n] */
    fftw_plan forth, back;
} table_maker;

/* Amplitudes along one row of theta on the upper half sphere. */
static void sum_row(void *context, int row, int thread)
{
    const table_maker *m = context;
    const double theta = 2.0 * TSR_PI * row / m->n;
    double *out = m->half + (size_t)row * (size_t)m->n * m->each;
    (void)thread;
    for (int first = 0; first < m->n; first += LANES) {
        const int n = m->n - first < LANES ? m->n - first : LANES;
        block b = {{0.0}, {0.0}, {0.0}, {0.0}};
        waves sum[MAX_COMP];
        for (int l = 0; l < n; l++) {
            const double phi = 2.0 * TSR_PI * (first + l) / m->n;
            b.x[l] = sin(theta) * cos(phi);
            b.y[l] = sin(theta) * sin(phi);
            b.z[l] = cos(theta);
        }
        add_groups(&m->sums, &b, m->low, m->n_k, sum);
        for (int l = 0; l < n; l++)
            for (int k = 0; k < m->n_k; k++)
                for (int a = 0; a < m->sums.spec->n_comp; a++) {
                    *out++ = sum[a].re[k][l];
                    *out++ = sum[a].im[k][l];
                }
    }
}

/* The values at row i and column j of the torus, from the upper half of the
 * sphere. *sign out: factor of their imaginary parts, because A(-n) is the
 * conjugate of A(n). */
static const double *torus_values(const table_maker *m, int i, int j,
                                  double *sign)
{
    const int n = m->n;
    *sign = 1.0;
    if (i > n / 2) {
        i = n - i;
        j += n / 2;
    }
    if (i > n / 4) {
        i = n / 2 - i;
        j += n / 2;
        *sign = -1.0;
    }
    return m->half + ((size_t)i * (size_t)n + (size_t)(j % n)) * m->each;
}

/* Index of frequency f, which may be negative, among n frequencies. */
static size_t wrap(int f, int n)
{
    return (size_t)(f < 0 ? f + n : f);
}

/* One q and component: Fourier series on the torus, division by the kernel's
 * transform, and values on the refined grid. */
static void transform(void *context, int part, int thread)
{
    const table_maker *m = context;
    const int n = m->n, wide = 2 * n, n_comp = m->sums.spec->n_comp;
    const size_t size = (size_t)wide * (size_t)wide;
    fftw_complex *fine = m->grid + (size_t)thread * 2 * size, *g = fine + size;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sign;
            const double *at = torus_values(m, i, j, &sign) + 2 * part;
            g[i * n + j][0] = at[0];
            g[i * n + j][1] = sign * at[1];
        }
    fftw_execute_dft(m->forth, g, g);
    memset(fine, 0, size * sizeof *fine);
    for (int a = -n / 2 + 1; a < n / 2; a++)
        for (int b = -n / 2 + 1; b < n / 2; b++) {
            const double *from = g[wrap(a, n) * (size_t)n + wrap(b, n)];
            double *to = fine[wrap(a, wide) * (size_t)wide + wrap(b, wide)];
            const double by =
                m->inverse[abs(a)] * m->inverse[abs(b)] / ((double)n * n);
            to[0] = by * from[0];
            to[1] = by * from[1];
        }
    fftw_execute_dft(m->back, fine, fine);
    const tsr_amplitude_table *t = m->table;
    for (int r = 0; r < t->rows; r++)
        for (int c = 0; c < t->columns; c++) {
            const double *from = fine[wrap(r - BEFORE, wide) * (size_t)wide +
                                      wrap((c - BEFORE + wide) % wide, wide)];
            float *to = t->value +
                        ((size_t)r * (size_t)t->columns + (size_t)c) *
                            (size_t)(2 * TABLE_BAND * n_comp) +
                        2 * part;
            to[0] = (float)from[0];
            to[1] = (float)from[1];
        }
}

/* Computes all samples, then the table. */
static tsr_status make_table(table_maker *m, int n_thread, tsr_err *err)
{
    const int wide = 2 * m->n, n = m->n;
    fftw_complex *g = m->grid;
    tsr_parallel_run(n / 4 + 1, n_thread, sum_row, m);
    m->forth = fftw_plan_dft_2d(n, n, g, g, FFTW_FORWARD, FFTW_ESTIMATE);
    m->back = fftw_plan_dft_2d(wide, wide, g, g, FFTW_BACKWARD, FFTW_ESTIMATE);
    if (m->forth == NULL || m->back == NULL)
        return tsr_no_memory(err);
    tsr_parallel_run(m->n_job, m->n_grid, transform, m);
    return TSR_OK;
}

tsr_status tsr_amplitude_table_make(const tsr_debye_spec *spec, int low,
                                    int n_thread, tsr_pool *pool,
                                    tsr_amplitude_table *out, tsr_err *err)
{
    static const double origin[3] = {0.0, 0.0, 0.0};
    const int end = low + TABLE_BAND < spec->n_q ? low + TABLE_BAND : spec->n_q;
    double reach2 = 0.0;
    TSR_TRY(tsr_debye_check(spec, err));
    for (int i = 0; i < spec->n; i++)
        reach2 = fmax(reach2, tsr_vec3_dot(spec->xyz[i], spec->xyz[i]));
    const int n = circle_samples((end - 1) * spec->dq_inv_ang, sqrt(reach2));
    const size_t wide = 2 * (size_t)n;
    table_maker m = {.sums = {.spec = spec},
                     .low = low,
                     .n_k = end - low,
                     .n = n,
                     .each = 2 * (size_t)((end - low) * spec->n_comp),
                     .n_job = (end - low) * spec->n_comp,
                     .table = out};
    tsr_pool *scratch = &m.sums.pool;
    *out = (tsr_amplitude_table){.n_comp = spec->n_comp,
                                 .n_circle = (int)wide,
                                 .rows = (int)rows_of((int)wide),
                                 .columns = (int)columns_of((int)wide)};
    tsr_pool_array(pool, out->value,
                   (size_t)out->rows * (size_t)out->columns *
                       (size_t)(2 * TABLE_BAND * spec->n_comp));
    TSR_TRY(tsr_pool_check(pool, err));
    tsr_pool_array(scratch, m.inverse, n);
    tsr_pool_array(scratch, m.half, ((size_t)n / 4 + 1) * (size_t)n * m.each);
    m.n_grid = n_thread < m.n_job ? n_thread : m.n_job;
    m.grid = fftw_alloc_complex((size_t)m.n_grid * 2 * wide * wide);
    tsr_status status = make_groups(&m.sums, origin, err);
    if (status == TSR_OK && (m.grid == NULL || !kernel_inverse(n, m.inverse)))
        status = tsr_no_memory(err);
    TSR_THEN(status, make_table(&m, n_thread, err));
    if (m.forth != NULL)
        fftw_destroy_plan(m.forth);
    if (m.back != NULL)
        fftw_destroy_plan(m.back);
    fftw_free(m.grid);
    tsr_pool_clear(scratch);
    return status;
}

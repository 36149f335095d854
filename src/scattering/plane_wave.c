/* The rule is a product: Gauss and Legendre's in z, even spacing around it; it
 * is exact for spherical harmonics up to a degree p. |A|^2 holds plane waves of
 * q r up to q D, whose harmonics vanish a little beyond the degree q D: 1.1 q D
 * and eight more are enough. The lower half of the sphere repeats the upper.
 *
 * exp(i q_k n r) over the uniform grid of q follows from two sines and cosines
 * by a recurrence, in bands of q: each has the directions that its last q asks
 * for. A unit of work is a band and a block of directions, side by side in
 * vector instructions. */
#include "scattering/plane_wave.h"

#include "core/clones.h"
#include "core/parallel.h"

#include <gsl/gsl_integration.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

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

/* Of the upper half: nodes of z, and points around it. */
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

/* LANES of them; those that pad have no weight. */
typedef struct {
    double x[LANES], y[LANES], z[LANES], weight[LANES];
} block;

typedef struct {
    int band;
    block block;
    double part[MAX_PAIR][BAND]; /* of the profile */
} unit;

/* The particles of a type, by number or by weight; one of amplitude 0 makes
 * their number even. */
typedef struct {
    int type, is_weighted, first, n;
} group;

typedef struct {
    const tsr_debye_spec *spec;
    double *xyz[3], *amplitude; /* of particles, group by group */
    group *group;
    int n_group;
    int n_unit;
    unit *unit;
} work;

tsr_status tsr_plane_wave_directions(double q_inv_ang, double d_ang, int *n,
                                     double (**out)[4], tsr_err *err)
{
    int n_z, n_phi;
    rule_size(q_inv_ang, d_ang, &n_z, &n_phi);
    *n = n_z * n_phi;
    *out = calloc((size_t)*n, sizeof **out);
    gsl_integration_glfixed_table *rule =
        gsl_integration_glfixed_table_alloc((size_t)(2 * n_z));
    if (*out == NULL || rule == NULL) {
        if (rule != NULL)
            gsl_integration_glfixed_table_free(rule);
        return tsr_no_memory(err);
    }
    for (int i = 0; i < *n; i++) {
        double z, weight, phi = 2.0 * PI * (i % n_phi) / n_phi;
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

static tsr_status add_band(work *w, int band, double d, tsr_err *err)
{
    const int end = band_end(w->spec->n_q, band);
    double(*at)[4] = NULL;
    int n;
    tsr_status status = tsr_plane_wave_directions(
        (end - 1) * w->spec->dq_inv_ang, d, &n, &at, err);
    const int n_new = (n + LANES - 1) / LANES;
    unit *more =
        realloc(w->unit, (size_t)(w->n_unit + n_new) * sizeof *w->unit);
    w->unit = more != NULL ? more : w->unit;
    if (more == NULL || status != TSR_OK) {
        free(at);
        return status != TSR_OK ? status : tsr_no_memory(err);
    }
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
    free(at);
    return TSR_OK;
}

/* ---- amplitudes ---- */

/* Sines and cosines of eight numbers: by their Taylor series at a quarter of
 * what is left of them without whole turns, and twice the doubled angle. To
 * 1e-15 for some thousand turns. */
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

/* A wave over q: this q's value and the last one's, times an amplitude. */
typedef struct {
    eight s, c, s_before, c_before, twice;
} wave;

TSR_INLINE void start(const eight *path, double q, double dq, double amplitude,
                      wave *w)
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

/* Adds the waves of n particles, which is even: by two, so that one's
 * arithmetic does not wait for itself. */
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
        start(&p0, q, dq, amplitude[i], &w0);
        start(&p1, q, dq, amplitude[i + 1], &w1);
        for (int k = 0; k < BAND; k++) {
            sum->re[k] += w0.c + w1.c;
            sum->im[k] += w0.s + w1.s;
            advance(&w0);
            advance(&w1);
        }
    }
}

/* The waves of a group times its form factors, to the amplitudes. */
static void add_group(const work *w, const group *g, const block *b, int low,
                      int n, waves *sum)
{
    const tsr_debye_spec *s = w->spec;
    double dq = s->dq_inv_ang;
    size_t at = (size_t)g->first;
    waves own;
    memset(&own, 0, sizeof own);
    add_waves(g->n, w->xyz[0] + at, w->xyz[1] + at, w->xyz[2] + at,
              w->amplitude + at, b, low * dq, dq, &own);
    for (int a = 0; a < s->n_comp; a++) {
        const double *f = tsr_debye_factor(s, a, g->type) + low;
        if (is_weighted(s, a) != g->is_weighted)
            continue;
        for (int k = 0; k < n; k++) {
            sum[a].re[k] += f[k] * own.re[k];
            sum[a].im[k] += f[k] * own.im[k];
        }
    }
}

/* Amplitudes of a block of directions: sum [n_comp]. */
static void add_groups(const work *w, const block *b, int low, int n,
                       waves *sum)
{
    memset(sum, 0, MAX_COMP * sizeof *sum);
    for (int g = 0; g < w->n_group; g++)
        add_group(w, &w->group[g], b, low, n, sum);
}

static void unit_part(void *context, int part, int thread)
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

static void work_clear(work *w)
{
    for (int c = 0; c < 3; c++)
        free(w->xyz[c]);
    free(w->amplitude);
    free(w->group);
    free(w->unit);
}

static int has_factor(const tsr_debye_spec *s, int type, int weighted)
{
    for (int a = 0; a < s->n_comp; a++)
        for (int k = 0; k < s->n_q && is_weighted(s, a) == weighted; k++)
            if (tsr_debye_factor(s, a, type)[k] != 0.0)
                return 1;
    return 0;
}

/* One more particle, about the centre: phases are small there. */
static int put(work *w, int at, const double *xyz, const double *centre,
               double amplitude)
{
    if (amplitude == 0.0)
        return at;
    for (int c = 0; c < 3; c++)
        w->xyz[c][at] = xyz[c] - centre[c];
    w->amplitude[at] = amplitude;
    return at + 1;
}

/* Particles in the order of their types: order [n], from start [n_type + 1]. */
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

static void fill_groups(work *w, const double *centre, const int *start,
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
                at = put(w, at, s->xyz[i], centre,
                         weighted ? s->weight[i] : 1.0);
            }
            at += (at - g.first) % 2;
            g.n = at - g.first;
            if (g.n > 0)
                w->group[w->n_group++] = g;
        }
}

/* origin: where phases are 0. */
static tsr_status make_groups(work *w, const double origin[3], tsr_err *err)
{
    const tsr_debye_spec *s = w->spec;
    size_t n_group = 2 * (size_t)s->n_type, n = 2 * (size_t)s->n + n_group;
    int is_there = 1;
    for (int c = 0; c < 3; c++) {
        w->xyz[c] = calloc(n, sizeof *w->xyz[c]);
        is_there &= w->xyz[c] != NULL;
    }
    w->amplitude = calloc(n, sizeof *w->amplitude);
    w->group = calloc(n_group, sizeof *w->group);
    int *start = calloc((size_t)s->n_type + 1 + (size_t)s->n, sizeof *start);
    is_there &= w->amplitude != NULL && w->group != NULL && start != NULL;
    if (is_there) {
        sort_types(s, start, start + s->n_type + 1);
        fill_groups(w, origin, start, start + s->n_type + 1);
    }
    free(start);
    return is_there ? TSR_OK
                    : tsr_fail(err, TSR_E_NOMEM,
                               "out of memory for %d particles", s->n);
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
        tsr_parallel_run(w.n_unit, n_thread, unit_part, &w);
        memset(profile, 0, (size_t)n_pair * n_q * sizeof *profile);
        for (int u = 0; u < w.n_unit; u++) {
            int low = w.unit[u].band * BAND;
            int n = band_end(spec->n_q, w.unit[u].band) - low;
            for (int p = 0; p < n_pair; p++)
                for (int k = 0; k < n; k++)
                    profile[(size_t)p * n_q + (size_t)(low + k)] +=
                        w.unit[u].part[p][k];
        }
        if (progress != NULL && progress->tell != NULL)
            status = progress->tell(progress->context, 1.0, err);
    }
    work_clear(&w);
    return status;
}

tsr_status tsr_plane_wave_amplitudes(const tsr_debye_spec *spec,
                                     int n_direction,
                                     const double (*direction)[3], int low,
                                     int n_k, double *out, tsr_err *err)
{
    static const double origin[3] = {0.0, 0.0, 0.0};
    work w = {.spec = spec};
    TSR_TRY(tsr_debye_check(spec, err));
    tsr_status status = make_groups(&w, origin, err);
    for (int first = 0; first < n_direction && status == TSR_OK;
         first += LANES) {
        const int n = n_direction - first < LANES ? n_direction - first : LANES;
        block b = {{0.0}, {0.0}, {0.0}, {0.0}};
        waves sum[MAX_COMP];
        for (int l = 0; l < n; l++) {
            b.x[l] = direction[first + l][0];
            b.y[l] = direction[first + l][1];
            b.z[l] = direction[first + l][2];
        }
        add_groups(&w, &b, low, n_k, sum);
        for (int l = 0; l < n; l++)
            for (int k = 0; k < n_k; k++)
                for (int a = 0; a < spec->n_comp; a++) {
                    *out++ = sum[a].re[k][l];
                    *out++ = sum[a].im[k][l];
                }
    }
    work_clear(&w);
    return status;
}

/* Molecules of chance and shapes, and the curves that any method must give. */
#ifndef TESTS_PROPERTY_PROFILE_METHODS_H
#define TESTS_PROPERTY_PROFILE_METHODS_H

#include "../engine_support.h"

#include "core/parallel.h"
#include "core/vec3.h"
#include "molecule/points.h"
#include "scattering/grid_sum.h"
#include "scattering/plane_wave.h"
#include "scattering/profile_method.h"

enum { N_TYPE = 6, BEAD = N_TYPE - 1, N_COMP = 3, N_PAIR = 6 };

typedef enum { BALL, SHELL, ROD, COIL, LATTICE, N_SHAPE } shape;
static const char *const shape_name[] = {"ball", "shell", "rod", "coil",
                                         "lattice"};

typedef struct {
    double (*xyz)[3], *weight, *factor, d;
    int *type;
    tsr_debye_spec spec;
} molecule;

static inline void in_ball(uint64_t *state, double radius, double x[3])
{
    do
        for (int c = 0; c < 3; c++)
            x[c] = radius * (2.0 * uniform(state) - 1.0);
    while (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] > radius * radius);
}

/* Of the diameter or length d, about a place that is not the origin; rods lie
 * askew. */
static inline void place(shape kind, int i, int n, double d, uint64_t *state,
                         double x[3])
{
    double r, along = d * (uniform(state) - 0.5);
    int side = (int)ceil(cbrt(n));
    in_ball(state, 0.5 * d, x);
    r = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    for (int c = 0; c < 3; c++) {
        if (kind == SHELL)
            x[c] *= 0.5 * d / r;
        if (kind == ROD || kind == COIL)
            x[c] = x[c] * (kind == ROD ? 20.0 / d : 0.1) + along * (c == 0 ? 0.6
                                                                    : c == 1
                                                                        ? 0.64
                                                                        : 0.48);
        if (kind == COIL)
            x[c] += 0.2 * d * sin(9.0 * along / d + 2.0 * c);
    }
    if (kind == LATTICE) {
        x[0] = d / side * (i % side);
        x[1] = d / side * (i / side % side);
        x[2] = d / side * (i / side / side);
    }
    x[0] += 31.0, x[1] -= 17.0, x[2] += 5.0;
}

/* Amplitudes like those of C, N, O, S with hydrogens, of what they displace,
 * and of a bead of water. */
static inline void fill_factors(molecule *m, int n_q, double dq)
{
    for (int t = 0; t < N_TYPE; t++)
        for (int k = 0; k < n_q; k++) {
            double q2 = k * dq * k * dq, v = 9.0 + 6.0 * t;
            double f[3] = {(6.0 + 2.0 * t) * exp(-(1.0 + 0.3 * t) * 0.6 * q2) +
                               t * exp(-4.0 * q2),
                           0.334 * v * exp(-q2 * cbrt(v * v) / (4.0 * TSR_PI)),
                           t == BEAD ? 0.9 * exp(-0.9 * q2) : 0.0};
            for (int c = 0; c < N_COMP; c++)
                m->factor[(c * N_TYPE + t) * n_q + k] =
                    (t == BEAD) == (c == 2) ? f[c] : 0.0;
        }
}

/* With q to q_top in the steps of profiles; a fifth are beads with weights. */
static inline void molecule_make(molecule *m, shape kind, int n, double d,
                                 double q_top, uint64_t seed)
{
    double dq = TSR_PI / (2.0 * fmax(d + 12.0, 60.0));
    int n_q = (int)ceil(q_top / dq) + 1;
    uint64_t state = seed;
    m->xyz = array((size_t)n, sizeof *m->xyz);
    m->weight = array((size_t)n, sizeof *m->weight);
    m->type = array((size_t)n, sizeof *m->type);
    m->factor = array((size_t)(N_COMP * N_TYPE * n_q), sizeof *m->factor);
    for (int i = 0; i < n; i++) {
        place(kind, i, n, d, &state, m->xyz[i]);
        m->type[i] = i % 5 == 4 ? BEAD : (int)(uniform(&state) * BEAD);
        m->weight[i] = m->type[i] == BEAD ? 0.5 + uniform(&state) : 0.0;
    }
    fill_factors(m, n_q, dq);
    m->spec = (tsr_debye_spec){.n = n,
                               .n_type = N_TYPE,
                               .n_comp = N_COMP,
                               .n_q = n_q,
                               .dq_inv_ang = dq,
                               .xyz = (const double(*)[3])m->xyz,
                               .type = m->type,
                               .weight = m->weight,
                               .weighted = 2,
                               .form_factor = m->factor};
    m->d = tsr_largest_distance(n, m->spec.xyz);
}

/* ---- Debye's formula at every `every`-th q, on all processors ---- */

enum { N_PART = 64, MAX_SAMPLE = 64 };

typedef struct {
    const molecule *m;
    int every, n_sample;
    double part[N_PART][N_TYPE][N_TYPE][MAX_SAMPLE]; /* sinc by types */
} exact_sum;

static inline void add_pair(const exact_sum *s, int i, int j, double weight,
                            double *sum)
{
    const tsr_debye_spec *spec = &s->m->spec;
    double x[3], dq = s->every * spec->dq_inv_ang;
    for (int c = 0; c < 3; c++)
        x[c] = spec->xyz[i][c] - spec->xyz[j][c];
    double phase = dq * sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    double twice = 2.0 * cos(phase), here = sin(phase), before = 0.0;
    sum[0] += weight;
    for (int k = 1; k < s->n_sample; k++) {
        double next = twice * here - before;
        sum[k] += weight * (phase > 0.0 ? here / (k * phase) : 1.0);
        before = here, here = next;
    }
}

static inline double weight_of(const tsr_debye_spec *spec, int i)
{
    return spec->type[i] == BEAD ? spec->weight[i] : 1.0;
}

static inline void exact_part(void *context, int part, int thread)
{
    exact_sum *s = context;
    const tsr_debye_spec *spec = &s->m->spec;
    (void)thread;
    for (int i = part; i < spec->n; i += N_PART)
        for (int j = 0; j <= i; j++)
            add_pair(s, i, j,
                     (i == j ? 0.5 : 1.0) * weight_of(spec, i) *
                         weight_of(spec, j),
                     s->part[part][spec->type[i]][spec->type[j]]);
}

/* Of one pair of components at one q. */
static inline double partial(const exact_sum *s, int a, int b, int k)
{
    const tsr_debye_spec *spec = &s->m->spec;
    double sum = 0.0;
    for (int t = 0; t < N_TYPE; t++)
        for (int u = 0; u < N_TYPE; u++) {
            double pairs = 0.0;
            for (int part = 0; part < N_PART; part++)
                pairs += s->part[part][t][u][k];
            sum += pairs * (tsr_debye_factor(spec, a, t)[k * s->every] *
                                tsr_debye_factor(spec, b, u)[k * s->every] +
                            tsr_debye_factor(spec, b, t)[k * s->every] *
                                tsr_debye_factor(spec, a, u)[k * s->every]);
        }
    return sum;
}

/* out [N_PAIR][n_sample]; returns n_sample. */
static inline int exact(const molecule *m, int every,
                        double out[N_PAIR][MAX_SAMPLE])
{
    exact_sum *s = array(1, sizeof *s);
    int n = (m->spec.n_q - 1) / every + 1;
    assert_true(s != NULL && n <= MAX_SAMPLE);
    s->m = m, s->every = every, s->n_sample = n;
    tsr_parallel_run(N_PART, tsr_parallel_processors(), exact_part, s);
    for (int a = 0, p = 0; a < N_COMP; a++)
        for (int b = a; b < N_COMP; b++, p++)
            for (int k = 0; k < n; k++)
                out[p][k] = partial(s, a, b, k);
    return n;
}

/* ---- the promise ---- */

typedef struct {
    double partial; /* of sqrt(I_aa I_bb) */
    double total;   /* of I with c1 = 1, c2 = 1 */
    double least;   /* I / I(0) where it is least, vacuum */
} errors;

static inline errors compare(const molecule *m, int every, int n,
                             double right[N_PAIR][MAX_SAMPLE],
                             const double *profile)
{
    static const int own[N_COMP] = {0, 3, 5};
    static const double c[N_COMP] = {1.0, -1.0, 1.0};
    errors e = {.least = 1.0};
    for (int k = 0; k < n; k++) {
        double total = 0.0, off = 0.0;
        for (int a = 0, p = 0; a < N_COMP; a++)
            for (int b = a; b < N_COMP; b++, p++) {
                double d = profile[p * m->spec.n_q + k * every] - right[p][k];
                double size = sqrt(right[own[a]][k] * right[own[b]][k]);
                double times = (a == b ? 1.0 : 2.0) * c[a] * c[b];
                e.partial = fmax(e.partial, size > 0.0 ? fabs(d) / size : 0.0);
                total += times * right[p][k];
                off += times * d;
            }
        e.total = fmax(e.total, fabs(off) / total);
        e.least = fmin(e.least, right[0][k] / right[0][0]);
    }
    return e;
}

/* The host's methods against Debye's formula; prints what it finds. Where the
 * components cancel, the total may be farther off than they: its own limit. */
static inline void methods_meet(const molecule *m, const char *what, int every,
                                double limit, double limit_total)
{
    double(*right)[MAX_SAMPLE] = array(N_PAIR, sizeof *right);
    double *profile = array((size_t)(N_PAIR * m->spec.n_q), sizeof *profile);
    int n = exact(m, every, right);
    for (int k = TSR_METHOD_FFT; k < TSR_N_METHOD; k++) {
        tsr_profile_method method = (tsr_profile_method)k;
        if (method == TSR_METHOD_QUADRATURE && m->spec.n > 2000 && m->d > 300.0)
            continue; /* minutes */
        OK(tsr_method_run(method, &m->spec, m->d, 2, NULL, profile, &err));
        errors e = compare(m, every, n, right, profile);
        print_message(
            "%s, %d particles, q D %.0f, %s: %.1e of partials, %.1e "
            "of I; least I / I(0) %.1e\n",
            what, m->spec.n, m->d * (m->spec.n_q - 1) * m->spec.dq_inv_ang,
            tsr_profile_method_name(method), e.partial, e.total, e.least);
        if (!(e.partial < limit) || !(e.total < limit_total))
            fail_msg("%s, %s", what, tsr_profile_method_name(method));
    }
}

#endif

/* Amounts of the surrogate's beads equal amplitudes summed over directions. */
#include "core/vec3.h"
#include "surrogate/surrogate.h"
#include "tests/test.h"

enum { BODIES = 120, EACH = 4, BEADS = BODIES / EACH, N_Q = 41, SHAPES = 2 };

static const double dq = 0.0075;

/* A chain that is folded into a ball of 15 Angstrom, of bodies that differ. */
typedef struct {
    double body[BODIES][3], centre[BEADS][3], factor[BODIES][N_Q];
    double shape[SHAPES][N_Q], amount[SHAPES][BEADS];
} molecule;

static void make(molecule *m, unsigned long seed)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    double x[3] = {0.0, 0.0, 0.0};
    gsl_rng_set(rng, seed);
    memset(m, 0, sizeof *m);
    for (int i = 0; i < BODIES; i++) {
        for (int d = 0; d < 3; d++) {
            x[d] += 6.0 * (gsl_rng_uniform(rng) - 0.5);
            x[d] = fmax(fmin(x[d], 15.0), -15.0);
            m->body[i][d] = x[d];
            m->centre[i / EACH][d] += x[d] / EACH;
        }
        const double size = 0.5 + gsl_rng_uniform(rng);
        for (int q = 0; q < N_Q; q++)
            m->factor[i][q] = size * exp(-2.0 * size * pow(q * dq, 2.0));
    }
    for (int q = 0; q < N_Q; q++) {
        m->shape[0][q] = exp(-6.0 * pow(q * dq, 2.0));
        m->shape[1][q] = pow(q * dq, 2.0) * m->shape[0][q];
    }
    for (int i = 0; i < BODIES; i++)
        m->amount[0][i / EACH] += m->factor[i][0];
    gsl_rng_free(rng);
}

/* Real and imaginary part of what scatters into a direction. */
typedef struct {
    double re, im;
} amplitude;

static void add(amplitude *a, double f, double q, const double u[3],
                const double x[3])
{
    const double phase = q * tsr_vec3_dot(u, x);
    a->re += f * cos(phase);
    a->im += f * sin(phase);
}

/* The root of <|B - A|^2> / <|A|^2> over directions at q, by a spiral. */
static double error_at(const molecule *m, int q)
{
    enum { DIRECTIONS = 2000 };
    double off = 0.0, all = 0.0;
    for (int k = 0; k < DIRECTIONS; k++) {
        const double z = 1.0 - (2.0 * k + 1.0) / DIRECTIONS,
                     turn = 2.399963 * k;
        const double across = sqrt(1.0 - z * z);
        const double u[3] = {across * cos(turn), across * sin(turn), z};
        amplitude a = {0.0, 0.0}, b = {0.0, 0.0};
        for (int i = 0; i < BODIES; i++)
            add(&a, m->factor[i][q], q * dq, u, m->body[i]);
        for (int i = 0; i < BEADS; i++)
            add(&b,
                m->amount[0][i] * m->shape[0][q] +
                    m->amount[1][i] * m->shape[1][q],
                q * dq, u, m->centre[i]);
        off += pow(a.re - b.re, 2.0) + pow(a.im - b.im, 2.0);
        all += a.re * a.re + a.im * a.im;
    }
    return sqrt(off / all);
}

static tsr_unit_beads unit_of(molecule *m)
{
    return (tsr_unit_beads){.n_bead = BEADS,
                            .n_body = BODIES,
                            .n_q = N_Q,
                            .dq_inv_ang = dq,
                            .width_inv_ang = 0.1,
                            .centre = (const double(*)[3])m->centre,
                            .body = (const double(*)[3])m->body,
                            .factor = m->factor[0],
                            .shape = m->shape[0],
                            .amount = m->amount[0]};
}

TEST(beads_scatter_as_their_unit)
{
    static molecule m;
    for (unsigned long seed = 1; seed < 6; seed++) {
        static const int at[] = {7, 13, 20, 27};
        double before[4];
        make(&m, seed);
        const tsr_unit_beads unit = unit_of(&m);
        for (int k = 0; k < 4; k++)
            before[k] = error_at(&m, at[k]);
        assert_true(tsr_unit_fit(&unit));
        for (int k = 0; k < 4; k++) {
            const double after = error_at(&m, at[k]);
            if (!(after < 0.25 * before[k]))
                fail_msg("at q = %.2f %.2g of the amplitude is missed, %.2g "
                         "before",
                         at[k] * dq, after, before[k]);
        }
    }
}

/* Beads that are bodies whose form factors the shapes have need nothing. */
TEST(what_is_exact_stays)
{
    static molecule m;
    double had[SHAPES][BEADS];
    make(&m, 7);
    for (int b = 0; b < BEADS; b++) {
        memcpy(m.body[b], m.centre[b], sizeof m.body[b]);
        m.amount[1][b] = 3.0 + b % 5;
        for (int q = 0; q < N_Q; q++)
            m.factor[b][q] =
                m.amount[0][b] * m.shape[0][q] + m.amount[1][b] * m.shape[1][q];
    }
    memcpy(had, m.amount, sizeof had);
    tsr_unit_beads unit = unit_of(&m);
    unit.n_body = BEADS;
    assert_true(tsr_unit_fit(&unit));
    for (int k = 0; k < SHAPES; k++)
        for (int b = 0; b < BEADS; b++)
            assert_near(m.amount[k][b], had[k][b], 1e-6);
}

TEST(series_is_sinc)
{
    static const double x[] = {0.0, 1e-9, 1e-4, 0.3, 2.0, 3.14159265, 40.0};
    for (size_t k = 0; k < COUNT_OF(x); k++) {
        double out[N_Q];
        tsr_sinc_series(N_Q, x[k], out);
        for (int j = 0; j < N_Q; j++)
            assert_near(out[j],
                        (j * x[k] < 1e-8 ? 1.0 : sin(j * x[k]) / (j * x[k])),
                        1e-9);
    }
}

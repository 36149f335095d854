/* Smearing by the resolution of an instrument equals closed forms and direct
 * sums. */
#include "core/vec3.h"
#include "scattering/q_grid.h"
#include "scattering/saxs.h"
#include "tests/io_files.h"
#include "tests/test.h"

OWNED(tsr_saxs)

enum { N = 60 };

typedef double (*curve)(double q, double size);

static double sphere(double q, double radius)
{
    double x = q * radius;
    double f = x < 1e-3 ? 1.0 - x * x / 10.0
                        : 3.0 * (sin(x) - x * cos(x)) / (x * x * x);
    return f * f;
}

static double guinier(double q, double rg)
{
    return exp(-q * q * rg * rg / 3.0);
}

/* q from 0.005 to 0.3. */
static void points(double *q)
{
    for (int k = 0; k < N; k++)
        q[k] = 0.005 * (k + 1);
}

/* The curve on the grid, carried to the points. */
static void smear(const tsr_resolution *r, curve of, double size, double d,
                  double *out)
{
    double q[N], *matrix;
    points(q);
    const tsr_q_grid grid = tsr_q_grid_make(d, tsr_resolution_q_max(r, N, q));
    OK(tsr_q_operator_smeared(&grid, r, N, q, &matrix, &err));
    for (int k = 0; k < N; k++) {
        out[k] = 0.0;
        for (int j = 0; j < grid.n_q; j++)
            out[k] += matrix[k * grid.n_q + j] * of(j * grid.dq_inv_ang, size);
    }
    free(matrix);
}

static void assert_close(const double *had, int k, double wanted, double rel)
{
    if (!(fabs(had[k] - wanted) < rel * fabs(wanted)))
        fail_msg("point %d: %.9g, expected %.9g", k, had[k], wanted);
}

/* A sphere has its minima at q R = 4.49 and 7.73: smearing fills them. The sum
 * has 20,000 points; sigma grows with q, as that of a velocity selector. */
TEST(gaussian_of_a_sphere)
{
    enum { M = 20000 };
    const double radius = 40.0;
    double q[N], sigma[N], had[N];
    points(q);
    for (int k = 0; k < N; k++)
        sigma[k] = 0.001 + 0.05 * q[k];
    const tsr_resolution r = {.sigma = sigma};
    smear(&r, sphere, radius, 2.0 * radius, had);
    for (int k = 0; k < N; k++) {
        const double low = fmax(0.0, q[k] - 4.0 * sigma[k]);
        const double h = (q[k] + 4.0 * sigma[k] - low) / M;
        double sum = 0.0, all = 0.0;
        for (int i = 0; i < M; i++) {
            double x = low + (i + 0.5) * h, t = (x - q[k]) / sigma[k];
            sum += exp(-0.5 * t * t) * sphere(x, radius);
            all += exp(-0.5 * t * t);
        }
        assert_close(had, k, sum / all, 1e-4);
    }
    assert_true(had[21] > 10.0 * sphere(q[21], radius)); /* a minimum */
}

/* A Gaussian over a Gaussian is one: what a cut at 4 sigma leaves out is
 * 6e-5. */
TEST(gaussian_of_guinier)
{
    const double rg = 15.0, a = rg * rg / 3.0, s = 0.006;
    double q[N], sigma[N], had[N];
    points(q);
    for (int k = 0; k < N; k++)
        sigma[k] = s;
    const tsr_resolution r = {.sigma = sigma};
    smear(&r, guinier, rg, 150.0, had);
    for (int k = 5; k < 40; k++) { /* from 4 sigma on */
        const double by = 1.0 + 2.0 * a * s * s;
        assert_close(had, k, exp(-a * q[k] * q[k] / by) / sqrt(by), 4e-4);
    }
}

/* The mean of exp(-a (q^2 + u^2)) over u from 0 to L. */
TEST(slit_length_of_guinier)
{
    const double rg = 20.0, a = rg * rg / 3.0, length = 0.08;
    double q[N], had[N];
    points(q);
    const tsr_resolution r = {.slit_length = length};
    smear(&r, guinier, rg, 180.0, had);
    for (int k = 0; k < 35; k++)
        assert_close(had, k,
                     exp(-a * q[k] * q[k]) * sqrt(TSR_PI) *
                         erf(sqrt(a) * length) / (2.0 * sqrt(a) * length),
                     1e-4);
}

TEST(slit_width_of_guinier)
{
    const double rg = 20.0, s = rg / sqrt(3.0), width = 0.012;
    double q[N], had[N];
    points(q);
    const tsr_resolution r = {.slit_width = width};
    smear(&r, guinier, rg, 180.0, had);
    for (int k = 0; k < 35; k++)
        assert_close(had, k,
                     sqrt(TSR_PI) / (4.0 * width * s) *
                         (erf(s * (q[k] + width)) - erf(s * (q[k] - width))),
                     1e-4);
}

/* A beam with a normal profile of standard deviation s: 1 / sqrt(1 + 2 a s^2).
 * Straight lines between 161 points are wider by h^2 / 6 in the variance. */
TEST(beam_profile_of_guinier)
{
    enum { M = 161 };
    const double rg = 20.0, a = rg * rg / 3.0, s = 0.02;
    double q[N], had[N], u[M], beam[M];
    points(q);
    for (int i = 0; i < M; i++) {
        u[i] = 0.001 * (i - M / 2);
        beam[i] = exp(-0.5 * u[i] * u[i] / (s * s));
    }
    const tsr_resolution r = {.n_beam = M, .beam_u = u, .beam = beam};
    smear(&r, guinier, rg, 180.0, had);
    for (int k = 0; k < 35; k++)
        assert_close(had, k,
                     exp(-a * q[k] * q[k]) / sqrt(1.0 + 2.0 * a * s * s), 3e-4);
}

/* A constant stays what it is, whatever the instrument; an ideal instrument
 * changes nothing. */
TEST(rows_add_up)
{
    double q[N], sigma[N], u[3] = {-0.02, 0.0, 0.05}, beam[3] = {0, 2, 0};
    points(q);
    for (int k = 0; k < N; k++)
        sigma[k] = k % 3 == 0 ? 0.0 : 0.004;
    const tsr_resolution r[] = {
        {.sigma = sigma},
        {.slit_length = 0.1},
        {.slit_width = 0.01},
        {.n_beam = 3, .beam_u = u, .beam = beam},
        {.sigma = sigma, .slit_width = 0.01, .slit_length = 0.05},
        {.sigma = NULL}};
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        CLEARED(tsr_pool) pool = {0};
        tsr_smearing s;
        OK(tsr_smearing_make(&r[i], N, q, 100.0, &pool, &s, &err));
        for (int k = 0; k < N; k++) {
            double sum = 0.0;
            for (int j = s.first[k]; j < s.first[k + 1]; j++) {
                sum += s.weight[j];
                assert_true(s.q[j] <= tsr_resolution_q_max(&r[i], N, q));
            }
            assert_float_equal(sum, 1.0, 1e-12);
        }
        if (i == 5) {
            assert_int_equal(s.first[N], N);
            assert_memory_equal(s.q, q, sizeof q);
        }
    }
}

/* ---- from a file ---- */

static tsr_saxs *read_curve(const char *text)
{
    tsr_saxs *saxs;
    const char *path = io_text("r.dat", text);
    OK(tsr_saxs_read(path, TSR_Q_AUTO, NULL, NULL, &saxs, &err));
    return own_tsr_saxs(saxs);
}

static tsr_status resolve(tsr_saxs *saxs, const char *dq)
{
    tsr_resolution_options o = {.slit_length = 0.0};
    assert_int_equal(tsr_fields_init(tsr_resolution_fields, &o, &err), TSR_OK);
    if (dq != NULL)
        assert_int_equal(tsr_field_parse(tsr_resolution_fields, &o, dq, &err),
                         TSR_OK);
    tsr_status status = tsr_saxs_set_resolution(saxs, &o, NULL, &err);
    tsr_fields_clear(tsr_resolution_fields, &o);
    return status;
}

static const char four[] = "# q (1/nm) I sigma dq\n"
                           "0.1 10 1 0.01\n0.2 9 1 0.02\n0.3 8 1 0.03\n"
                           "0.4 7 1 0.04\n0.5 6 1 0.05\n";

/* The fourth column is used where it is asked for, in the unit of q. */
TEST(fourth_column)
{
    tsr_saxs *saxs = read_curve(four);
    OK(resolve(saxs, NULL));
    assert_true(tsr_resolution_is_ideal(&saxs->resolution));
    assert_float_equal(tsr_saxs_q_max(saxs), 0.05, 1e-12);
    OK(resolve(saxs, "column"));
    assert_float_equal(saxs->resolution.sigma[2], 0.003, 1e-12);
    assert_float_equal(tsr_saxs_q_max(saxs), 0.07, 1e-12);
    OK(resolve(saxs, "0.002"));
    assert_float_equal(saxs->resolution.sigma[2], 0.002, 1e-12);
}

TEST(no_fourth_column)
{
    tsr_saxs *saxs = read_curve("0.01 10 1\n0.02 9 1\n0.03 8 1\n0.04 7 1\n"
                                "0.05 6 1\n");
    OK(resolve(saxs, "auto"));
    assert_true(tsr_resolution_is_ideal(&saxs->resolution));
    FAILS(resolve(saxs, "column"), TSR_E_DATA, "no fourth column");
    saxs = read_curve("0.01 10 1 -0.1\n0.02 9 1 -0.1\n0.03 8 1 -0.1\n"
                      "0.04 7 1 -0.1\n0.05 6 1 -0.1\n");
    FAILS(resolve(saxs, "column"), TSR_E_DATA, "slit_length");
}

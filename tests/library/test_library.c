/* libtessera.so as another program sees it, through tessera.h alone: numbers
 * against sums written here, errors with their messages, two threads at once.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, mkstemp */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>
#include <unistd.h>

#include <cmocka.h>

enum { N_Q = 21, N_BODY = 40, N_PROFILE = 3 * N_Q };
static const double q_max = 0.3;
static char path[] = "/tmp/test_library_XXXXXX";

static void ok(int status)
{
    if (status != TESSERA_OK)
        fail_msg("status %d: %s", status, tessera_message());
}

static void refused(int status, int expected, const char *part)
{
    assert_int_equal(status, expected);
    if (strstr(tessera_message(), part) == NULL)
        fail_msg("'%s' is not in '%s'", part, tessera_message());
}

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.12g is not %.12g within %g", got, want, tolerance);
}

enum { N_ATOM = 60 };
static const char *const name_of[] = {"N", "CA", "C", "O", "CB"};

/* A helix of 12 alanines, without a sequel of its chain. */
static int write_structure(void **state)
{
    static const double at[5][3] = {{1.5, 27, 0.9},
                                    {2.3, 0, 0},
                                    {1.6, -26, -1.2},
                                    {2.0, -24, -2.4},
                                    {3.3, -8, 1.1}};
    (void)state;
    const int file = mkstemp(path);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    if (out == NULL)
        return -1;
    for (int r = 0; r < 12; r++)
        for (int a = 0; a < 5; a++) {
            const double turn =
                (100.0 * r - at[a][1]) * 3.14159265358979 / 180.0;
            fprintf(out,
                    "ATOM  %5d  %-3s ALA A%4d    %8.3f%8.3f%8.3f  1.00  0.00"
                    "           %c\n",
                    5 * r + a + 1, name_of[a], r + 1, at[a][0] * cos(turn),
                    at[a][0] * sin(turn), 1.5 * r - at[a][2], name_of[a][0]);
        }
    return fclose(out);
}

static int remove_structure(void **state)
{
    (void)state;
    return remove(path);
}

static void q_grid(double q[N_Q])
{
    for (int k = 0; k < N_Q; k++)
        q[k] = q_max * k / (N_Q - 1);
}

/* ---- profiles and fits ---- */

/* The curve of atoms at xyz; NULL: as in the file. */
static void curve_at(tessera_profiler *x, const tessera_structure *s,
                     const double *xyz, double intensity[N_Q])
{
    double q[N_Q];
    tessera_profile *p;
    q_grid(q);
    ok(tessera_profile_coordinates(x, s, xyz, &p));
    ok(tessera_profile_intensity(p, 1.0, 0.5, N_Q, q, intensity));
    tessera_profile_free(p);
}

static void test_profiles(void **state)
{
    (void)state;
    double q[N_Q], whole[N_Q], moved[N_Q];
    double number[TESSERA_PROFILE_N_NUMBER];
    tessera_profiler *x;
    tessera_structure *s;
    tessera_profile *p;
    q_grid(q);
    ok(tessera_profiler_new(TESSERA_ATOMS, q_max, "reference", &x));
    ok(tessera_structure_read(path, &s));
    assert_int_equal(tessera_structure_size(s), 60);
    ok(tessera_profile_file(x, path, &p));
    ok(tessera_profile_intensity(p, 1.0, 0.5, N_Q, q, whole));
    ok(tessera_profile_numbers(p, TESSERA_PROFILE_N_NUMBER, number));
    /* C36 N12 O12 and hydrogens: 12 residues of 71.08 Da, ends included */
    near(number[TESSERA_PROFILE_MASS], 12 * 71.08, 20.0);
    tessera_profile_free(p);

    double xyz[60][3], turned[60][3];
    int in_file[60];
    ok(tessera_structure_get(s, xyz[0], in_file));
    for (int i = 0; i < 60; i++) {
        assert_int_equal(in_file[i], i);
        /* turned about z by 90 degrees, and shifted */
        turned[i][0] = 5.0 - xyz[i][1];
        turned[i][1] = xyz[i][0] - 7.0;
        turned[i][2] = xyz[i][2] + 11.0;
    }
    curve_at(x, s, NULL, moved);
    assert_memory_equal(moved, whole, sizeof whole);
    curve_at(x, s, xyz[0], moved);
    assert_memory_equal(moved, whole, sizeof whole);
    curve_at(x, s, turned[0], moved);
    for (int k = 0; k < N_Q; k++) /* the layer is on a grid: about 1 % */
        near(moved[k], whole[k], 0.02 * whole[k]);

    for (int i = 30; i < 60; i++) /* a stretched molecule: a larger Rg */
        turned[i][2] += 20.0;
    curve_at(x, s, turned[0], moved);
    assert_true(moved[10] < 0.9 * whole[10]);

    turned[3][1] = (double)NAN;
    refused(tessera_profile_coordinates(x, s, turned[0], &p), TESSERA_E_NUMERIC,
            "xyz[10] is");
    tessera_structure_free(s);
    tessera_profiler_free(x);
}

/* q from 0 to q_max; coordinates that no molecule has. */
static void test_ranges(void **state)
{
    (void)state;
    static const double wrong[] = {-1e-3, 0.301, 0.37};
    double xyz[N_ATOM][3], q[N_Q], value[N_Q];
    tessera_profiler *x, *bodies;
    tessera_structure *s;
    tessera_profile *p, *none;
    tessera_data *d;
    tessera_engine *e;
    ok(tessera_profiler_new(TESSERA_ATOMS, q_max, "reference", &x));
    ok(tessera_profile_file(x, path, &p));
    q_grid(q);
    q[N_Q - 1] = 0.1 * 3.0; /* 0.30000000000000004 */
    ok(tessera_profile_intensity(p, 1.0, 0.0, N_Q, q, value));
    refused(tessera_engine_of_file(x, path, 60.0, 1, &e), TESSERA_E_USAGE,
            "ATOMS");
    ok(tessera_profiler_new(TESSERA_TWO_BODIES, q_max, "reference", &bodies));
    ok(tessera_engine_of_file(bodies, path, 60.0, 1, &e));
    tessera_profiler_free(bodies);
    double *sum = calloc((size_t)tessera_engine_profile_size(e), sizeof *sum);
    ok(tessera_profile_of_engine(e, sum, &none));
    free(sum);
    for (int i = 0; i < 3; i++) {
        refused(tessera_profile_intensity(p, 1.0, 0.0, 1, &wrong[i], value),
                TESSERA_E_RANGE, "q[0]");
        refused(tessera_profile_intensity(none, 1.0, 0.0, 1, &wrong[i], value),
                TESSERA_E_RANGE, "q[0]");
    }
    tessera_profile_free(none);
    tessera_engine_free(e);
    for (int k = 0; k < N_Q; k++)
        value[k] = 1.0;
    q[N_Q - 1] = 0.31;
    ok(tessera_data_new(N_Q, q, value, value, &d));
    refused(tessera_fit(p, d, NULL, NULL, 0.0, 0, value, NULL), TESSERA_E_RANGE,
            "0.31");
    tessera_data_free(d);
    tessera_profile_free(p);

    ok(tessera_structure_read(path, &s));
    ok(tessera_structure_get(s, xyz[0], NULL));
    for (int i = 0; i < N_ATOM; i++)
        for (int c = 0; c < 3; c++)
            xyz[i][c] /= 10.0;
    refused(tessera_profile_coordinates(x, s, xyz[0], &none), TESSERA_E_DATA,
            "nm");
    memset(xyz, 0, sizeof xyz);
    refused(tessera_profile_coordinates(x, s, xyz[0], &none), TESSERA_E_DATA,
            "not set");
    assert_null(none);
    tessera_structure_free(s);
    tessera_profiler_free(x);
}

/* Without a layer, the root of I(0) is the number of electrons less those of
 * the displaced solvent. */
static void test_density(void **state)
{
    (void)state;
    static const double density[] = {0.334, 0.36};
    const double zero = 0.0;
    for (int scatterers = 0; scatterers < 3; scatterers++) {
        double forward[2], number[2];
        tessera_profiler *x;
        tessera_profile *p;
        ok(tessera_profiler_new(scatterers, q_max, "reference", &x));
        for (int i = 0; i < 2; i++) {
            ok(tessera_profiler_set_density(x, density[i]));
            ok(tessera_profile_file(x, path, &p));
            ok(tessera_profile_intensity(p, 1.0, 0.0, 1, &zero, &forward[i]));
            ok(tessera_profile_numbers(p, 2, number));
            tessera_profile_free(p);
        }
        const double volume = number[TESSERA_PROFILE_VOLUME];
        near(sqrt(forward[0]) - sqrt(forward[1]),
             (density[1] - density[0]) * volume, 1e-3 * sqrt(forward[0]));
        refused(tessera_profiler_set_density(x, 0.0), TESSERA_E_USAGE,
                "density");
        tessera_profiler_free(x);
    }
}

typedef struct {
    int is_neutron;
    double curve[N_Q];
} profile_job;

/* Profiles by a profiler of its own, again and again. */
static void *profile_alone(void *data)
{
    profile_job *j = data;
    double q[N_Q], first[N_Q];
    q_grid(q);
    for (int i = 0; i < 4; i++) {
        tessera_profiler *x;
        tessera_profile *p;
        if (j->is_neutron)
            ok(tessera_profiler_new_neutron(0.4, 0.9, 0, NULL, NULL, q_max,
                                            "reference", &x));
        else
            ok(tessera_profiler_new(TESSERA_TWO_BODIES, q_max, "reference",
                                    &x));
        ok(tessera_profile_file(x, path, &p));
        ok(tessera_profile_intensity(p, 1.0, 0.5, N_Q, q, j->curve));
        tessera_profile_free(p);
        tessera_profiler_free(x);
        if (i == 0)
            memcpy(first, j->curve, sizeof first);
        assert_memory_equal(j->curve, first, sizeof first);
    }
    return NULL;
}

/* Profilers in two threads at once compute what each computes alone. */
static void test_profilers_in_two_threads(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) { /* bodies twice, mixed, neutrons */
        profile_job alone[2] = {{.is_neutron = kind > 1},
                                {.is_neutron = kind > 0}};
        profile_job both[2] = {{.is_neutron = kind > 1},
                               {.is_neutron = kind > 0}};
        pthread_t other;
        for (int i = 0; i < 2; i++)
            profile_alone(&alone[i]);
        assert_int_equal(pthread_create(&other, NULL, profile_alone, &both[1]),
                         0);
        profile_alone(&both[0]);
        assert_int_equal(pthread_join(other, NULL), 0);
        assert_memory_equal(both, alone, sizeof both);
    }
}

/* Atoms from arrays, and a water: with names they are the file's, without names
 * the valence rule finds the hydrogens. */
static void test_structure_of_arrays(void **state)
{
    (void)state;
    double xyz[N_ATOM + 1][3] = {{0.0}}, q[N_Q], curve[3][N_Q], mass[3];
    const char *element[N_ATOM + 1], *name[N_ATOM + 1], *residue[N_ATOM + 1];
    int number[N_ATOM + 1], in_file[N_ATOM];
    tessera_profiler *x;
    tessera_structure *s[3];
    tessera_profile *p;
    ok(tessera_structure_read(path, &s[0]));
    ok(tessera_structure_get(s[0], xyz[1], NULL));
    for (int i = 0; i <= N_ATOM; i++) {
        name[i] = i > 0 ? name_of[(i - 1) % 5] : "OW";
        element[i] =
            i > 0 ? (const char *[]){"n", "C", "C", "O", "C"}[(i - 1) % 5]
                  : "O";
        residue[i] = i > 0 ? "ALA" : "HOH";
        number[i] = (i + 4) / 5;
    }
    ok(tessera_structure_new(N_ATOM + 1, xyz[0], element, name, residue, number,
                             NULL, &s[1]));
    ok(tessera_structure_new(N_ATOM, xyz[1], element + 1, NULL, NULL, NULL,
                             NULL, &s[2]));
    assert_int_equal(tessera_structure_size(s[1]), N_ATOM);
    ok(tessera_structure_get(s[1], NULL, in_file));
    q_grid(q);
    ok(tessera_profiler_new(TESSERA_ATOMS, q_max, "reference", &x));
    for (int i = 0; i < 3; i++) {
        ok(tessera_profile_coordinates(x, s[i], NULL, &p));
        ok(tessera_profile_intensity(p, 1.0, 0.5, N_Q, q, curve[i]));
        ok(tessera_profile_numbers(p, 1, &mass[i]));
        tessera_profile_free(p);
        tessera_structure_free(s[i]);
    }
    for (int i = 0; i < N_ATOM; i++)
        assert_int_equal(in_file[i], i + 1);
    assert_memory_equal(curve[1], curve[0], sizeof curve[0]);
    near(mass[2], mass[0], 5.0); /* the ends are charged, or not */
    near(curve[2][0], curve[0][0], 0.05 * curve[0][0]);
    tessera_profiler_free(x);

    element[7] = "Xx";
    refused(tessera_structure_new(N_ATOM, xyz[1], element, NULL, NULL, NULL,
                                  NULL, &s[0]),
            TESSERA_E_DATA, "atom 7: 'Xx'");
    assert_null(s[0]);
    element[7] = NULL;
    refused(tessera_structure_new(N_ATOM, xyz[1], element, NULL, NULL, NULL,
                                  NULL, &s[0]),
            TESSERA_E_USAGE, "element");
    refused(tessera_structure_new(5, xyz[1], element, name, NULL, NULL, NULL,
                                  &s[0]),
            TESSERA_E_USAGE, "residue");
}

static void test_neutrons(void **state)
{
    (void)state;
    static const char *const chain[] = {"A"};
    const double all = 1.0, zero = 0.0;
    double forward[3];
    tessera_profile *p;
    for (int i = 0; i < 3; i++) {
        tessera_profiler *x;
        ok(tessera_profiler_new_neutron(i == 1 ? 1.0 : 0.0, 0.9, i == 2, chain,
                                        &all, q_max, "reference", &x));
        ok(tessera_profile_file(x, path, &p));
        ok(tessera_profile_intensity(p, 1.0, 0.0, 1, &zero, &forward[i]));
        tessera_profile_free(p);
        tessera_profiler_free(x);
    }
    /* D2O, or deuterium in the chain, raises the contrast against H2O */
    assert_true(forward[1] > 2.0 * forward[0] && forward[2] > 4.0 * forward[0]);
}

static void test_fit(void **state)
{
    (void)state;
    double q[N_Q], curve[N_Q], sigma[N_Q], fitted[N_Q];
    double fit[TESSERA_FIT_N_NUMBER];
    const double c1[2] = {0.9, 1.1}, wrong[2] = {1.1, 0.9};
    tessera_profiler *x;
    tessera_profile *p;
    tessera_data *d;
    q_grid(q);
    ok(tessera_profiler_new(TESSERA_TWO_BODIES, q_max, "reference", &x));
    ok(tessera_profile_file(x, path, &p));
    ok(tessera_profile_intensity(p, 1.02, 1.5, N_Q, q, curve));
    for (int k = 0; k < N_Q; k++) {
        curve[k] = 3e-3 * curve[k] + 0.25;
        sigma[k] = 1e-3;
    }
    ok(tessera_data_new(N_Q, q, curve, sigma, &d));
    assert_int_equal(tessera_data_size(d), N_Q);
    assert_true(tessera_data_q_max(d) == q[N_Q - 1]);
    ok(tessera_fit(p, d, c1, NULL, (double)NAN, TESSERA_FIT_N_NUMBER, fit,
                   fitted));
    near(fit[TESSERA_FIT_C1], 1.02, 2e-3);
    near(fit[TESSERA_FIT_C2], 1.5, 2e-2);
    near(fit[TESSERA_FIT_SCALE], 3e-3, 2e-5);
    near(fit[TESSERA_FIT_BACKGROUND], 0.25, 0.02);
    double sum = 0.0;
    for (int k = 0; k < N_Q; k++)
        sum += pow((curve[k] - fitted[k]) / sigma[k], 2.0);
    near(fit[TESSERA_FIT_CHI2], sum / N_Q, 1e-9 + 1e-9 * sum);
    refused(tessera_fit(p, d, wrong, NULL, 0.0, 1, fit, NULL), TESSERA_E_USAGE,
            "c1");
    tessera_data_free(d);
    q[5] = q[4];
    refused(tessera_data_new(N_Q, q, curve, sigma, &d), TESSERA_E_DATA,
            "point 5");
    assert_null(d);
    tessera_profile_free(p);
    tessera_profiler_free(x);
}

/* ---- the engine ---- */

static double noise(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static double factor_at(int comp, int type, int k)
{
    return (comp + 1.0) * (type + 4.0) * exp(-1e-3 * k * k);
}

/* Debye's sum of two components, pairs 00 01 11. */
static void debye(const double (*xyz)[3], double dq, double *profile)
{
    memset(profile, 0, N_PROFILE * sizeof *profile);
    for (int k = 0; k < N_Q; k++)
        for (int i = 0; i < N_BODY; i++)
            for (int j = 0; j < N_BODY; j++) {
                double r2 = 0.0;
                for (int c = 0; c < 3; c++)
                    r2 += pow(xyz[i][c] - xyz[j][c], 2.0);
                const double x = k * dq * sqrt(r2);
                const double sinc = x > 1e-8 ? sin(x) / x : 1.0;
                for (int a = 0, p = 0; a < 2; a++)
                    for (int b = a; b < 2; b++, p++)
                        profile[p * N_Q + k] += factor_at(a, i % 2, k) *
                                                factor_at(b, j % 2, k) * sinc;
            }
}

static void same(const double *got, const double *want)
{
    for (int i = 0; i < N_PROFILE; i++)
        near(got[i], want[i], 1e-5 * fabs(want[i % N_Q]) + 1e-3);
}

typedef struct {
    tessera_engine *engine;
    int system;
} walker;

/* A walk of one system, whose profile is that of a sum at every step. */
static void *walk(void *data)
{
    const walker *w = data;
    double xyz[N_BODY][3], moved[N_BODY][3], got[N_PROFILE], want[N_PROFILE];
    uint64_t state = 7 + (uint64_t)w->system;
    tessera_batch *b;
    ok(tessera_batch_new(w->engine, 1, &b));
    for (int i = 0; i < N_BODY; i++)
        for (int c = 0; c < 3; c++)
            xyz[i][c] = 40.0 * noise(&state);
    ok(tessera_batch_set(b, w->system, xyz[0], got));
    debye((const double(*)[3])xyz, 0.02, want);
    same(got, want);
    for (int step = 0; step < 20; step++) {
        const int first = (int)(noise(&state) * 30), n_range = 1;
        const int range[3] = {first, 5, step % 2};
        const double by = 4.0 * noise(&state) - 2.0;
        memcpy(moved, xyz, sizeof moved);
        for (int i = first; i < first + 5; i++)
            moved[i][step % 3] += by;
        ok(tessera_batch_propose(b, 1, &w->system, &n_range, range,
                                 moved[first], got));
        debye((const double(*)[3])moved, 0.02, want);
        same(got, want);
        if (noise(&state) < 0.5) {
            ok(tessera_batch_accept(b, w->system));
            memcpy(xyz, moved, sizeof xyz);
        } else {
            ok(tessera_batch_reject(b, w->system));
        }
    }
    debye((const double(*)[3])xyz, 0.02, want);
    ok(tessera_batch_profile(b, w->system, got));
    same(got, want);
    tessera_batch_free(b);
    return NULL;
}

static tessera_engine *new_engine(void)
{
    double factor[2][2][N_Q];
    int type[N_BODY];
    tessera_engine *e;
    for (int i = 0; i < N_BODY; i++)
        type[i] = i % 2;
    for (int k = 0; k < 4 * N_Q; k++)
        factor[k / (2 * N_Q)][k / N_Q % 2][k % N_Q] =
            factor_at(k / (2 * N_Q), k / N_Q % 2, k % N_Q);
    ok(tessera_engine_new(N_BODY, type, 2, 2, N_Q, 0.02, factor[0][0], 120.0, 2,
                          "reference", &e));
    assert_int_equal(tessera_engine_profile_size(e), N_PROFILE);
    return e;
}

static void test_engine_in_two_threads(void **state)
{
    (void)state;
    tessera_engine *e = new_engine();
    walker w[2] = {{e, 0}, {e, 1}};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, walk, &w[1]), 0);
    walk(&w[0]);
    assert_int_equal(pthread_join(other, NULL), 0);
    tessera_engine_free(e);
}

static void test_engine_refuses(void **state)
{
    (void)state;
    tessera_engine *e = new_engine(), *none;
    tessera_batch *b;
    double xyz[N_BODY][3] = {{0.0}}, profile[2 * N_PROFILE], before[N_PROFILE];
    const int two[2] = {0, 0}, n_range[2] = {1, 1}, type = 0;
    const int range[2][3] = {{0, 1, 0}, {0, 1, 0}}, beyond[3] = {39, 2, 0};
    const double far[3] = {500.0, 0.0, 0.0}, one[2] = {1.0, 1.0};
    ok(tessera_batch_new(e, 2, &b));
    refused(tessera_batch_propose(b, 1, two, n_range, range[0], far, profile),
            TESSERA_E_USAGE, "never set");
    for (int i = 0; i < N_BODY; i++)
        xyz[i][0] = i;
    ok(tessera_batch_set(b, 0, xyz[0], before));
    refused(tessera_batch_propose(b, 1, two, n_range, range[0], far, profile),
            TESSERA_E_RANGE, "");
    refused(tessera_batch_propose(b, 1, two, n_range, beyond, xyz[0], profile),
            TESSERA_E_USAGE, "ranges ascend");
    refused(
        tessera_batch_propose(b, 2, two, n_range, range[0], xyz[0], profile),
        TESSERA_E_USAGE, "neither accepted");
    refused(tessera_batch_set(b, 2, xyz[0], profile), TESSERA_E_USAGE,
            "no system 2");
    refused(tessera_batch_accept(b, -1), TESSERA_E_USAGE, "has_system");
    ok(tessera_batch_profile(b, 0, profile));
    assert_memory_equal(profile, before, sizeof before);
    refused(tessera_engine_new(0, &type, 1, 1, 2, 0.1, one, 0.0, 1, "reference",
                               &none),
            TESSERA_E_USAGE, "0 bodies");
    refused(tessera_engine_new(1, &type, 1, 1, 2, 0.1, one, 32.0, 1,
                               "reference", &none),
            TESSERA_E_USAGE, "up to pi / dq = 31.4159");
    assert_null(none);
    tessera_batch_free(b);
    tessera_engine_free(e);
}

/* The curve of an engine's bodies at c1 1 and c2. */
static void curve_of(tessera_engine *e, double c2, double *intensity)
{
    double q[N_Q], xyz[12][3];
    double *sum = calloc((size_t)tessera_engine_profile_size(e), sizeof *sum);
    tessera_batch *b;
    tessera_profile *p;
    q_grid(q);
    ok(tessera_batch_new(e, 1, &b));
    ok(tessera_engine_bodies(e, xyz[0], NULL));
    ok(tessera_batch_set(b, 0, xyz[0], sum));
    ok(tessera_profile_of_engine(e, sum, &p));
    ok(tessera_profile_intensity(p, 1.0, c2, N_Q, q, intensity));
    tessera_profile_free(p);
    tessera_batch_free(b);
    free(sum);
}

/* The same residues at the same places without atoms: only the hydration
 * differs, which is estimated. */
static void test_engine_of_residues(void **state)
{
    (void)state;
    const char *const name[12] = {"ALA", "ALA", "ALA", "ALA", "ALA", "ALA",
                                  "ALA", "ALA", "ALA", "ALA", "ALA", "ALA"};
    const char *const unknown[1] = {"HOH"};
    double xyz[12][3], a[N_Q], b[N_Q];
    for (int n = TESSERA_TWO_BODIES; n <= TESSERA_ONE_BODY; n++) {
        tessera_profiler *x;
        tessera_engine *file, *array, *none;
        ok(tessera_profiler_new(n, q_max, "reference", &x));
        ok(tessera_engine_of_file(x, path, 60.0, 1, &file));
        ok(tessera_engine_bodies(file, xyz[0], NULL));
        ok(tessera_engine_of_residues(x, 12, name, 12, xyz[0], 60.0, 1,
                                      &array));
        refused(tessera_engine_of_residues(x, 1, unknown, 1, xyz[0], 60.0, 1,
                                           &none),
                TESSERA_E_DATA, "HOH");
        refused(
            tessera_engine_of_residues(x, 12, name, 11, xyz[0], 60.0, 1, &none),
            TESSERA_E_USAGE, "12 bodies, not 11");
        tessera_profiler_free(x);
        for (int c2 = 0; c2 < 2; c2++) {
            curve_of(file, c2, a);
            curve_of(array, c2, b);
            for (int k = 0; k < N_Q; k++)
                near(b[k], a[k], (c2 > 0 ? 0.2 : 1e-9) * a[k]);
        }
        tessera_engine_free(file);
        tessera_engine_free(array);
    }
}

/* Bodies of a file: the curve at their positions is that of the profiler, also
 * after a move and back. */
static void test_engine_of_file(void **state)
{
    (void)state;
    double q[N_Q], want[N_Q], got[N_Q];
    const int system = 0, n_range = 1;
    tessera_profiler *x;
    tessera_profile *p;
    tessera_engine *e;
    tessera_batch *b;
    q_grid(q);
    ok(tessera_profiler_new(TESSERA_TWO_BODIES, q_max, "reference", &x));
    ok(tessera_profile_file(x, path, &p));
    ok(tessera_profile_intensity(p, 1.02, 1.5, N_Q, q, want));
    tessera_profile_free(p);
    ok(tessera_engine_of_file(x, path, 60.0, 1, &e));
    ok(tessera_batch_new(e, 1, &b));
    const int n = tessera_engine_n_body(e);
    const int range[2][3] = {{6, n - 6, 1}, {6, n - 6, 1}};
    assert_int_equal(n, 12); /* an alanine is one body */
    double xyz[12][3], moved[12][3];
    double *sum = calloc((size_t)tessera_engine_profile_size(e), sizeof *sum);
    int residue[12];
    ok(tessera_engine_bodies(e, xyz[0], residue));
    assert_int_equal(residue[11], 11);
    ok(tessera_batch_set(b, 0, xyz[0], sum));
    for (int step = 0; step < 3; step++) {
        ok(tessera_profile_of_engine(e, sum, &p));
        ok(tessera_profile_intensity(p, 1.02, 1.5, N_Q, q, got));
        tessera_profile_free(p);
        if (step == 1)
            assert_true(got[N_Q / 2] < 0.9 * want[N_Q / 2]);
        for (int k = 0; k < N_Q && step != 1; k++)
            near(got[k], want[k], 1e-4 * want[k]);
        memcpy(moved, xyz, sizeof moved);
        for (int i = 0; i < 12; i++)
            moved[i][2] += step == 0 ? 20.0 : 0.0;
        ok(tessera_batch_propose(b, 1, &system, &n_range, range[0], moved[6],
                                 sum));
        ok(tessera_batch_accept(b, 0));
    }
    free(sum);
    tessera_batch_free(b);
    tessera_engine_free(e);
    refused(tessera_engine_of_file(x, "/nowhere/e", 60.0, 1, &e),
            TESSERA_E_NOINPUT, "/nowhere/e");
    tessera_profiler_free(x);
}

/* ---- runs and draws ---- */

typedef struct {
    char folder[64];
    int stop_after; /* calls of the callback; 0: never */
    int n_call, is_ordered;
    int64_t last;
    char phase[16];
    int status;
} job;

static int count(void *context, const char *phase, int64_t done,
                 int64_t planned)
{
    job *j = context;
    j->is_ordered &= strcmp(phase, j->phase) != 0 || done >= j->last;
    j->is_ordered &= done >= 0 && (planned == 0 || done <= planned);
    j->last = done;
    snprintf(j->phase, sizeof j->phase, "%s", phase);
    return ++j->n_call == j->stop_after;
}

static char config[] = "/tmp/test_library_yaml_XXXXXX";

/* A chain of alanines without data. */
static void *run_job(void *data)
{
    job *j = data;
    static const char *const set[] = {"sampler.draws=150", "sampler.warmup=50"};
    double number[2];
    tessera_run *r;
    j->is_ordered = 1;
    ok(tessera_run_new(config, j->folder, 2, set, &r));
    assert_string_equal(tessera_run_folder(r), j->folder);
    j->status = tessera_run_start(r, count, j);
    ok(tessera_run_numbers(r, 2, number));
    assert_true(isnan(number[TESSERA_RUN_CHI2]) &&
                number[TESSERA_RUN_LEFT] >= 0.0);
    refused(tessera_run_start(r, NULL, NULL), TESSERA_E_USAGE, "once");
    tessera_run_free(r);
    return NULL;
}

static void check_draws(const char *folder)
{
    char at[128];
    int shape[3], is_found = 0;
    tessera_draws *d;
    tessera_frames *f;
    ok(tessera_draws_open(folder, &d));
    for (int i = 0; i < tessera_draws_n_column(d, TESSERA_POSTERIOR); i++)
        is_found |=
            strcmp(tessera_draws_column(d, TESSERA_POSTERIOR, i), "rg") == 0;
    assert_true(is_found);
    assert_null(tessera_draws_column(d, TESSERA_POSTERIOR, -1));
    ok(tessera_draws_shape(d, TESSERA_POSTERIOR, "rg", shape));
    assert_int_equal(shape[0], 2);
    assert_int_equal(shape[1], 150);
    assert_int_equal(shape[2], 1);
    double rg[300];
    ok(tessera_draws_read(d, TESSERA_POSTERIOR, "rg", 300, rg));
    for (int i = 0; i < 300; i++)
        assert_true(rg[i] > 3.0 && rg[i] < 30.0);
    refused(tessera_draws_read(d, TESSERA_POSTERIOR, "rg", 299, rg),
            TESSERA_E_USAGE, "size");
    refused(tessera_draws_shape(d, TESSERA_POSTERIOR, "nothing", shape),
            TESSERA_E_DATA, "nothing");
    ok(tessera_draws_coordinates(d, TESSERA_POSTERIOR, "rg", 150, rg));
    assert_true(rg[0] == 0.0 && rg[149] == 149.0);
    refused(tessera_draws_coordinates(d, TESSERA_POSTERIOR, "rg", 149, rg),
            TESSERA_E_USAGE, "150");
    refused(tessera_draws_coordinates(d, TESSERA_SAMPLE_STATS,
                                      "acceptance_by_move", 10, rg),
            TESSERA_E_DATA, "no coordinates");
    tessera_draws_free(d);

    snprintf(at, sizeof at, "%s/trajectory-000.h5", folder);
    ok(tessera_frames_open(at, &f));
    ok(tessera_frames_shape(f, shape));
    assert_true(shape[0] > 0 && shape[1] > 0);
    float *atom = malloc((size_t)shape[1] * 3 * sizeof *atom);
    int64_t draw;
    assert_non_null(atom);
    ok(tessera_frames_read(f, shape[0] - 1, 1, &draw, atom));
    assert_true(draw >= 0 && draw <= 150);
    for (int i = 0; i < 3 * shape[1]; i++)
        assert_true(fabsf(atom[i]) < 200.0F);
    refused(tessera_frames_read(f, shape[0], 1, &draw, atom), TESSERA_E_RANGE,
            "");
    free(atom);
    tessera_frames_free(f);
}

static void read_rg(const char *folder, double rg[300])
{
    tessera_draws *d;
    ok(tessera_draws_open(folder, &d));
    ok(tessera_draws_read(d, TESSERA_POSTERIOR, "rg", 300, rg));
    tessera_draws_free(d);
}

/* A stopped run goes on to the draws of the whole run. */
static void check_resumed(const char *stopped, const char *whole)
{
    static const char *const seed[] = {"seed=3"};
    static const char *const more[] = {"sampler.draws=160"};
    job j = {.is_ordered = 1};
    double a[300], b[300];
    tessera_run *r, *other;
    refused(tessera_run_resume("/nowhere", 0, NULL, &r), TESSERA_E_NOINPUT,
            "/nowhere");
    refused(tessera_run_resume(whole, 0, NULL, &r), TESSERA_E_USAGE,
            "finished");
    refused(tessera_run_resume(stopped, 1, seed, &r), TESSERA_E_USAGE, "seed");
    ok(tessera_run_resume(stopped, 0, NULL, &r));
    assert_string_equal(tessera_run_folder(r), stopped);
    refused(tessera_run_resume(stopped, 0, NULL, &other), TESSERA_E_CONFIG,
            stopped);
    ok(tessera_run_start(r, count, &j));
    assert_true(j.n_call > 1 && j.is_ordered);
    tessera_run_free(r);
    read_rg(stopped, a);
    read_rg(whole, b);
    assert_memory_equal(a, b, sizeof a);
    ok(tessera_run_resume(stopped, 1, more, &r));
    ok(tessera_run_start(r, NULL, NULL));
    tessera_run_free(r);
    tessera_draws *d;
    int shape[3];
    ok(tessera_draws_open(stopped, &d));
    ok(tessera_draws_shape(d, TESSERA_POSTERIOR, "rg", shape));
    assert_int_equal(shape[1], 160);
    tessera_draws_free(d);
}

/* Two runs at once: one stops itself, the other comes to its end. */
static void test_runs(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_library_run_XXXXXX", command[160];
    job whole = {.stop_after = 0}, stopped = {.stop_after = 3};
    pthread_t other;
    const int file = mkstemp(config);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    assert_non_null(out);
    fputs("structure: {sequence: AAAAAAAAAA}\n"
          "sampler: {chains: 2, start: file, thin: 20}\n"
          "device: {use: reference, threads: 1}\n",
          out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(mkdtemp(folder));
    snprintf(whole.folder, sizeof whole.folder, "%s/whole", folder);
    snprintf(stopped.folder, sizeof stopped.folder, "%s/stopped", folder);
    assert_int_equal(pthread_create(&other, NULL, run_job, &stopped), 0);
    run_job(&whole);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(whole.status, TESSERA_OK);
    assert_int_equal(stopped.status, TESSERA_E_INTERRUPTED);
    assert_true(whole.n_call > 1 && whole.is_ordered);
    assert_int_equal(stopped.n_call, 3);
    assert_string_not_equal(stopped.phase, "set-up");
    assert_string_equal(whole.phase, "sampling");
    check_draws(whole.folder);
    check_resumed(stopped.folder, whole.folder);
    snprintf(command, sizeof command, "rm -r %s %s", folder, config);
    assert_int_equal(system(command), 0);
}

/* A run stops while its model error is learnt, and leaves no folder. */
static int stop_learning(void *context, const char *phase, int64_t done,
                         int64_t planned)
{
    double number[TESSERA_RUN_N_NUMBER];
    tessera_run **run = context;
    assert_string_equal(phase, "set-up");
    assert_true(done < 2 && (planned == 0) == (done == 0));
    ok(tessera_run_numbers(*run, TESSERA_RUN_N_NUMBER, number));
    assert_true(isnan(number[TESSERA_RUN_CHI2]));
    if (done == 1)
        tessera_run_stop(*run);
    return 0;
}

static void test_stop_in_set_up(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_library_stop_XXXXXX", yaml[64], curve[64];
    assert_non_null(mkdtemp(folder));
    snprintf(yaml, sizeof yaml, "%s/a.yaml", folder);
    snprintf(curve, sizeof curve, "%s/a.dat", folder);
    FILE *out = fopen(yaml, "w");
    assert_non_null(out);
    fprintf(out,
            "structure: {file: %s, flexible: ['A:4-8']}\n"
            "data: {file: a.dat}\n"
            "output: {directory: %s/run}\n"
            "device: {use: reference, threads: 1}\n",
            path, folder);
    fclose(out);
    out = fopen(curve, "w");
    assert_non_null(out);
    for (int k = 1; k < 20; k++)
        fprintf(out, "%g %g 1\n", 0.01 * k, 100.0 - k);
    fclose(out);
    tessera_run *run;
    ok(tessera_run_new(yaml, NULL, 0, NULL, &run));
    refused(tessera_run_start(run, stop_learning, &run), TESSERA_E_INTERRUPTED,
            "nothing was written");
    assert_int_equal(access(tessera_run_folder(run), F_OK), -1);
    tessera_run_free(run);
    remove(yaml);
    remove(curve);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- errors ---- */

static void *own_message(void *data)
{
    tessera_structure *s;
    (void)data;
    assert_string_equal(tessera_message(), "");
    refused(tessera_structure_read("/nowhere/b", &s), TESSERA_E_NOINPUT,
            "/nowhere/b");
    return NULL;
}

static void test_errors(void **state)
{
    (void)state;
    tessera_structure *s;
    tessera_data *d;
    tessera_run *r;
    tessera_draws *t;
    tessera_profiler *x;
    pthread_t other;
    refused(tessera_structure_read("/nowhere/a", &s), TESSERA_E_NOINPUT,
            "/nowhere/a");
    assert_int_equal(pthread_create(&other, NULL, own_message, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_non_null(strstr(tessera_message(), "/nowhere/a"));
    refused(tessera_data_read(path, 0.0, 0.0, 0, &d), TESSERA_E_DATA, path);
    refused(tessera_data_read(path, 0.2, 0.1, 0, &d), TESSERA_E_USAGE, "range");
    refused(tessera_run_new("/nowhere/c.yaml", NULL, 0, NULL, &r),
            TESSERA_E_NOINPUT, "/nowhere/c.yaml");
    refused(tessera_run_new(path, NULL, 0, NULL, &r), TESSERA_E_CONFIG, path);
    refused(tessera_draws_open("/nowhere", &t), TESSERA_E_NOINPUT, "/nowhere");
    refused(tessera_profiler_new(3, 0.3, NULL, &x), TESSERA_E_USAGE,
            "scatterers");
    refused(tessera_profiler_new(0, (double)NAN, NULL, &x), TESSERA_E_USAGE,
            "q_max");
    tessera_structure_free(NULL);
    tessera_data_free(NULL);
    tessera_run_free(NULL);
    tessera_draws_free(NULL);
    tessera_profiler_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_density),
        cmocka_unit_test(test_profilers_in_two_threads),
        cmocka_unit_test(test_structure_of_arrays),
        cmocka_unit_test(test_neutrons),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_engine_in_two_threads),
        cmocka_unit_test(test_engine_refuses),
        cmocka_unit_test(test_engine_of_file),
        cmocka_unit_test(test_engine_of_residues),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_stop_in_set_up),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, write_structure, remove_structure);
}

/* The grid FFT and the plane waves give the profile of Debye's formula for any
 * shape and size, with the same bits for any number of threads. */
#include "profile_methods.h"
#include "tests/test.h"

typedef struct {
    shape kind;
    int n;
    double d; /* Angstrom */
    int every;
} sample;

/* Dense as proteins, loose as coils; one, two and few particles; coordinates
 * that share a plane, a line, a point. */
static const sample samples[] = {
    {BALL, 1, 10.0, 1},      {BALL, 2, 10.0, 1},       {BALL, 10, 12.0, 1},
    {BALL, 100, 20.0, 1},    {SHELL, 100, 30.0, 1},    {ROD, 100, 90.0, 1},
    {BALL, 1000, 40.0, 2},   {SHELL, 1000, 60.0, 2},   {ROD, 1000, 200.0, 4},
    {COIL, 500, 300.0, 8},   {LATTICE, 1000, 30.0, 2}, {SHELL, 3000, 120.0, 12},
    {BALL, 10000, 90.0, 12},
};
enum { N_SAMPLE = COUNT_OF(samples) };

TEST(methods_are_debye)
{
    for (int i = 0; i < N_SAMPLE; i++) {
        const sample *s = &samples[i];
        molecule m;
        molecule_make(&m, s->kind, s->n, s->d, 0.5, 7 + (uint64_t)i);
        methods_meet(&m, shape_name[s->kind], s->every, 1e-5, 1e-5);
    }
}

TEST(other_ends_of_q)
{
    static const double q_top[] = {0.1, 0.25, 1.0, 1.5};
    for (int i = 0; i < 4; i++) {
        molecule m;
        molecule_make(&m, BALL, 400, 45.0, q_top[i], 3);
        methods_meet(&m, "ball, another q", i < 3 ? 1 : 3, 1e-5, 1e-5);
    }
}

/* Amplitudes of 1e-99 at q = 10 are none that a grid could get right. */
TEST(a_grid_knows_its_end)
{
    molecule m;
    const tsr_method_speed speed = {.n_thread = 2};
    molecule_make(&m, BALL, 1, 10.0, 10.0, 3);
    double *got = array((size_t)(N_PAIR * m.spec.n_q), sizeof *got);
    FAILS(tsr_grid_sum(&m.spec, 1, NULL, got, &err), TSR_E_RANGE, "10");
    assert_true(
        isinf(tsr_method_seconds(TSR_METHOD_FFT, &m.spec, m.d, &speed)));
}

/* Without weights all components share modes; one component has one row. */
TEST(fewer_components)
{
    molecule m;
    molecule_make(&m, BALL, 300, 40.0, 0.5, 5);
    size_t n = (size_t)(N_PAIR * m.spec.n_q);
    double *right = array(n, sizeof *right), *got = array(n, sizeof *got);
    m.spec.weight = NULL;
    for (m.spec.n_comp = 1; m.spec.n_comp <= 3; m.spec.n_comp++)
        for (int k = TSR_METHOD_FFT; k < TSR_N_METHOD; k++) {
            int n_pair = tsr_debye_n_pair(&m.spec);
            OK(tsr_debye_reference(&m.spec, NULL, right, &err));
            OK(tsr_method_run((tsr_profile_method)k, &m.spec, m.d, 1, NULL, got,
                              &err));
            assert_true(worst_error(got, right, n_pair * m.spec.n_q) < 1e-5);
        }
}

TEST(threads_change_nothing)
{
    molecule m;
    molecule_make(&m, COIL, 700, 90.0, 0.5, 11);
    size_t n = (size_t)(N_PAIR * m.spec.n_q);
    double *one = array(n, sizeof *one), *more = array(n, sizeof *more);
    for (int k = TSR_METHOD_FFT; k < TSR_N_METHOD; k++) {
        tsr_profile_method method = (tsr_profile_method)k;
        OK(tsr_method_run(method, &m.spec, m.d, 1, NULL, one, &err));
        OK(tsr_method_run(method, &m.spec, m.d, 5, NULL, more, &err));
        assert_memory_equal(one, more, n * sizeof *one);
    }
}

/* The method that is taken follows the size. */
TEST(costs_order_the_methods)
{
    const tsr_method_speed speed = {
        .n_thread = 2, .pair_s = 6e-11, .start_s = 0.35};
    static const struct {
        shape kind;
        int n;
        double d;
        tsr_profile_method best;
    } want[] = {{BALL, 300, 25.0, TSR_METHOD_QUADRATURE},
                {BALL, 30000, 100.0, TSR_METHOD_FFT},
                {BALL, 300, 1500.0, TSR_METHOD_DIRECT}};
    for (int i = 0; i < 3; i++) {
        molecule m;
        molecule_make(&m, want[i].kind, want[i].n, want[i].d, 0.5, 2);
        int best = 0;
        double seconds[TSR_N_METHOD];
        for (int k = 0; k < TSR_N_METHOD; k++) {
            seconds[k] =
                tsr_method_seconds((tsr_profile_method)k, &m.spec, m.d, &speed);
            best = seconds[k] < seconds[best] ? k : best;
        }
        assert_int_equal(best, want[i].best);
    }
}

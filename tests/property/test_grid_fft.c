/* The grid FFT of a device gives the profile of Debye's formula for any shape
 * and size, the same bits each time, and the host's but for rounding. */
#include "profile_methods.h"

#include "gpu/grid_fft.h"

static tsr_device *device;
static tsr_grid_fft *grid;

static int open_grid(void **state)
{
    tsr_err err;
    (void)state;
    device = open_device();
    if (device != NULL)
        must(tsr_grid_fft_new(device, &grid, &err), &err);
    return 0;
}

static int close_grid(void **state)
{
    (void)state;
    tsr_grid_fft_free(grid);
    tsr_device_free(device);
    return 0;
}

static double *room(const molecule *m)
{
    return calloc((size_t)(N_PAIR * m->spec.n_q), sizeof(double));
}

static void meets_debye(const molecule *m, const char *what, int every)
{
    double(*right)[MAX_SAMPLE] = calloc(N_PAIR, sizeof *right);
    double *profile = room(m);
    tsr_err err;
    int n = exact(m, every, right);
    must(tsr_grid_fft_run(grid, &m->spec, profile, &err), &err);
    errors e = compare(m, every, n, right, profile);
    print_message("%s, %d particles, q D %.0f: %.1e of partials, %.1e of I\n",
                  what, m->spec.n,
                  m->d * (m->spec.n_q - 1) * m->spec.dq_inv_ang, e.partial,
                  e.total);
    if (!(e.partial < 1e-5) || !(e.total < 1e-5))
        fail_msg("%s", what);
    free(right);
    free(profile);
}

static void is_debye(void **state)
{
    static const struct {
        shape kind;
        int n;
        double d;
        int every;
    } sample[] = {{BALL, 1, 10.0, 1},     {BALL, 2, 10.0, 1},
                  {BALL, 10, 12.0, 1},    {BALL, 100, 20.0, 1},
                  {SHELL, 1000, 60.0, 2}, {ROD, 1000, 200.0, 4},
                  {COIL, 500, 300.0, 8},  {LATTICE, 1000, 30.0, 2},
                  {BALL, 10000, 90.0, 12}};
    static const double q_top[] = {0.1, 0.25, 1.0, 1.5};
    molecule m;
    (void)state;
    if (grid == NULL)
        skip();
    for (size_t i = 0; i < sizeof sample / sizeof sample[0]; i++) {
        molecule_make(&m, sample[i].kind, sample[i].n, sample[i].d, 0.5, 7 + i);
        meets_debye(&m, shape_name[sample[i].kind], sample[i].every);
        molecule_clear(&m);
    }
    for (int i = 0; i < 4; i++) {
        molecule_make(&m, BALL, 400, 45.0, q_top[i], 3);
        meets_debye(&m, "ball, another q", i < 3 ? 1 : 3);
        molecule_clear(&m);
    }
}

/* Less than the errors of either: the plan is the same. */
static void is_the_host_s(void **state)
{
    molecule m;
    tsr_err err;
    (void)state;
    if (grid == NULL)
        skip();
    molecule_make(&m, COIL, 700, 90.0, 0.5, 11);
    for (m.spec.n_comp = 1; m.spec.n_comp <= 3; m.spec.n_comp++)
        for (int weighted = 0; weighted < 2; weighted++) {
            double *here = room(&m), *again = room(&m), *host = room(&m);
            int n = tsr_debye_n_pair(&m.spec) * m.spec.n_q;
            m.spec.weight = weighted && m.spec.n_comp == 3 ? m.weight : NULL;
            must(tsr_grid_sum(&m.spec, NULL, 2, NULL, host, &err), &err);
            must(tsr_grid_fft_run(grid, &m.spec, here, &err), &err);
            must(tsr_grid_fft_run(grid, &m.spec, again, &err), &err);
            assert_memory_equal(here, again, (size_t)n * sizeof *here);
            assert_true(worst_error(here, host, n) < 1e-8);
            free(here);
            free(again);
            free(host);
        }
    molecule_clear(&m);
}

static void knows_its_answers(void **state)
{
    double error;
    tsr_err err;
    molecule m;
    (void)state;
    if (grid == NULL)
        skip();
    must(tsr_grid_fft_test(grid, &error, &err), &err);
    print_message("self-test: %.1e\n", error);
    molecule_make(&m, BALL, 2, 10.0, 10.0, 3);
    double *profile = room(&m);
    assert_int_equal(tsr_grid_fft_run(grid, &m.spec, profile, &err),
                     TSR_E_RANGE);
    free(profile);
    molecule_clear(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_debye),
                                       cmocka_unit_test(is_the_host_s),
                                       cmocka_unit_test(knows_its_answers)};
    return cmocka_run_group_tests(tests, open_grid, close_grid);
}

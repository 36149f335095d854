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

static void meets_debye(const molecule *m, const char *what, int every)
{
    double(*right)[MAX_SAMPLE] = calloc(N_PAIR, sizeof *right);
    double *profile = calloc((size_t)(N_PAIR * m->spec.n_q), sizeof *profile);
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
    } sample[] = {{BALL, 2, 10.0, 1}, {SHELL, 1000, 60.0, 2},
                  {ROD, 1000, 200.0, 4}};
    (void)state;
    if (grid == NULL)
        skip();
    for (size_t i = 0; i < sizeof sample / sizeof sample[0]; i++) {
        molecule m;
        molecule_make(&m, sample[i].kind, sample[i].n, sample[i].d, 0.5, 7 + i);
        meets_debye(&m, shape_name[sample[i].kind], sample[i].every);
        molecule_clear(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_debye),
    };
    return cmocka_run_group_tests(tests, open_grid, close_grid);
}

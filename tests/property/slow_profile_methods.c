/* The grid FFT and the plane waves against Debye's formula for large molecules:
 * 100,000 particles, q D to 500; and the device's grid against the host's. */
#include "profile_methods.h"

#include "gpu/grid_fft.h"

/* Of sqrt(I_aa I_bb). */
static double difference(int n_q, const double *one, const double *other)
{
    static const int own[N_COMP] = {0, 3, 5};
    double worst = 0.0;
    for (int a = 0, p = 0; a < N_COMP; a++)
        for (int b = a; b < N_COMP; b++, p++)
            for (int k = 0; k < n_q; k++) {
                double size =
                    sqrt(other[own[a] * n_q + k] * other[own[b] * n_q + k]);
                double e = fabs(one[p * n_q + k] - other[p * n_q + k]) / size;
                if (!(e <= worst))
                    worst = e;
            }
    return worst;
}

static void device_meets_host(tsr_grid_fft *grid, const molecule *m)
{
    size_t n = (size_t)(N_PAIR * m->spec.n_q);
    double *host = calloc(n, sizeof *host), *here = calloc(n, sizeof *here);
    tsr_err err;
    tsr_status status = tsr_grid_fft_run(grid, &m->spec, here, &err);
    if (status == TSR_E_DEVICE && strstr(err.message, "too large") != NULL)
        print_message("device-fft: %s\n", err.message);
    else {
        must(status, &err);
        must(tsr_grid_sum(&m->spec, NULL, 2, NULL, host, &err), &err);
        double worst = difference(m->spec.n_q, here, host);
        print_message("device-fft and fft: %.1e\n", worst);
        assert_true(worst < 1e-7);
    }
    free(host);
    free(here);
}

static void large_molecules(void **state)
{
    (void)state;
    static const struct {
        shape kind;
        int n;
        double d;
        int every;
    } samples[] = {{BALL, 100000, 170.0, 24},
                   {SHELL, 15000, 990.0, 160},
                   {ROD, 15000, 990.0, 160},
                   {COIL, 15000, 990.0, 160},
                   {COIL, 1500, 990.0, 16}};
    tsr_err err;
    tsr_grid_fft *grid = NULL;
    tsr_device *device = open_device();
    if (device != NULL)
        must(tsr_grid_fft_new(device, &grid, &err), &err);
    for (int i = 0; i < 5; i++) {
        molecule m;
        molecule_make(&m, samples[i].kind, samples[i].n, samples[i].d, 0.5,
                      21 + (uint64_t)i);
        methods_meet(&m, shape_name[samples[i].kind], samples[i].every, 1e-5,
                     1e-5);
        if (grid != NULL)
            device_meets_host(grid, &m);
        molecule_clear(&m);
    }
    tsr_grid_fft_free(grid);
    tsr_device_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(large_molecules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Time of the grid FFT on a device, part by part, beside the host's, and how
 * far the two are from each other: balls of protein's atoms and beads of water,
 * as loose as large complexes are and as dense as a globule. Usage:
 *
 *     bench_grid [DEVICE [MOST]]
 *
 * DEVICE as --device takes it; MOST: the largest number of particles. Times are
 * the least of some runs, in milliseconds; `make` is of the first: buffers, and
 * the kernels of the transforms, which a driver may have kept. */
#include "core/clock.h"
#include "core/parallel.h"
#include "gpu/grid_fft.h"
#include "scattering/grid_sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_TYPE = 12, BEAD = N_TYPE - 1, N_COMP = 3, N_PAIR = 6, RUNS = 5 };

static const double pi = 3.14159265358979323846, q_top = 0.5;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

typedef struct {
    double (*xyz)[3], *weight, *factor;
    int *type;
    tsr_debye_spec spec;
} cloud;

static void fill_factors(cloud *c, int n_q, double dq)
{
    for (int t = 0; t < N_TYPE; t++)
        for (int k = 0; k < n_q; k++) {
            double q2 = k * dq * k * dq, v = 9.0 + 3.0 * t;
            double f[N_COMP] = {(5.0 + t) * exp(-(1.0 + 0.15 * t) * 0.6 * q2) +
                                    0.5 * t * exp(-4.0 * q2) +
                                    exp(-20.0 / (1.0 + t) * q2),
                                0.334 * v * exp(-q2 * cbrt(v * v) / (4.0 * pi)),
                                0.9 * exp(-0.9 * q2)};
            for (int a = 0; a < N_COMP; a++)
                c->factor[(a * N_TYPE + t) * n_q + k] =
                    (t == BEAD) == (a == 2) ? f[a] : 0.0;
        }
}

static int cloud_make(cloud *c, int n, double d)
{
    double dq = pi / (2.0 * (d + 12.0));
    int n_q = (int)ceil(q_top / dq) + 3;
    uint64_t state = 7;
    c->xyz = malloc((size_t)n * sizeof *c->xyz);
    c->weight = malloc((size_t)n * sizeof *c->weight);
    c->type = malloc((size_t)n * sizeof *c->type);
    c->factor = calloc((size_t)(N_COMP * N_TYPE * n_q), sizeof *c->factor);
    if (c->xyz == NULL || c->weight == NULL || c->type == NULL ||
        c->factor == NULL)
        return 0;
    for (int i = 0; i < n; i++) {
        double *x = c->xyz[i];
        do
            for (int k = 0; k < 3; k++)
                x[k] = d * (uniform(&state) - 0.5);
        while (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] > 0.25 * d * d);
        c->type[i] = i % 5 == 4 ? BEAD : (int)(uniform(&state) * BEAD);
        c->weight[i] = c->type[i] == BEAD ? 0.5 + uniform(&state) : 0.0;
    }
    fill_factors(c, n_q, dq);
    c->spec = (tsr_debye_spec){.n = n,
                               .n_type = N_TYPE,
                               .n_comp = N_COMP,
                               .n_q = n_q,
                               .dq_inv_ang = dq,
                               .xyz = (const double(*)[3])c->xyz,
                               .type = c->type,
                               .weight = c->weight,
                               .weighted = 2,
                               .form_factor = c->factor};
    return 1;
}

static void cloud_clear(cloud *c)
{
    free(c->xyz);
    free(c->weight);
    free(c->type);
    free(c->factor);
}

/* Of sqrt(I_aa I_bb). */
static double difference(int n_q, const double *got, const double *right)
{
    static const int own[N_COMP] = {0, 3, 5};
    double worst = 0.0;
    for (int a = 0, p = 0; a < N_COMP; a++)
        for (int b = a; b < N_COMP; b++, p++)
            for (int k = 0; k < n_q; k++) {
                double e =
                    fabs(got[p * n_q + k] - right[p * n_q + k]) /
                    sqrt(right[own[a] * n_q + k] * right[own[b] * n_q + k]);
                if (!(e <= worst))
                    worst = e;
            }
    return worst;
}

static tsr_status measure(tsr_grid_fft *grid, const cloud *c, double d,
                          double *got, double *right, tsr_err *err)
{
    tsr_grid_fft_seconds least = {0}, first = {0};
    double total = (double)INFINITY, host;
    for (int i = 0; i < RUNS; i++) {
        double started = tsr_clock_s();
        TSR_TRY(tsr_grid_fft_run(grid, &c->spec, got, err));
        double seconds = tsr_clock_s() - started;
        tsr_grid_fft_seconds s = tsr_grid_fft_last(grid);
        if (i == 0)
            first = s;
        else if (seconds < total)
            total = seconds, least = s;
    }
    double started = tsr_clock_s();
    TSR_TRY(tsr_grid_sum(&c->spec, NULL, tsr_parallel_processors(), NULL, right,
                         err));
    host = tsr_clock_s() - started;
    tsr_grid_size size;
    tsr_grid_size_of(&c->spec, &size);
    double device = total - least.host - least.make;
    printf("%8d %5.0f %4d %6.1f | %6.0f | %7.2f %7.2f |", c->spec.n, d,
           c->spec.n_q, size.n_point * 1e-6, 1e3 * first.make, 1e3 * device,
           1e3 * total);
#define PRINT(name) printf(" " #name " %.2f", 1e3 * least.name);
    TSR_GRID_FFT_PARTS(PRINT)
    printf(" | host %.0f | %.1e\n", 1e3 * host,
           difference(c->spec.n_q, got, right));
    return TSR_OK;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {10000, 100000, 1000000};
    static const double loose = 8.0, dense = 3.4; /* Angstrom n^(-1/3) */
    int most = argc > 2 ? atoi(argv[2]) : 1000000;
    tsr_err err;
    tsr_device *device = NULL;
    tsr_grid_fft *grid = NULL;
    double started = tsr_clock_s();
    tsr_status status =
        tsr_device_open(argc > 1 ? argv[1] : "auto", &device, &err);
    printf("open %.0f ms,", 1e3 * (tsr_clock_s() - started));
    started = tsr_clock_s();
    TSR_THEN(status, tsr_grid_fft_new(device, &grid, &err));
    if (status == TSR_OK)
        printf(" build %.0f ms: %s\n", 1e3 * (tsr_clock_s() - started),
               tsr_grid_fft_describe(grid));
    printf("       n D, A  n_q  Mpoint | make, ms | device, whole, ms | parts"
           " of it | host's grid, ms | difference\n");
    for (int i = 0; i < 6 && status == TSR_OK; i++) {
        int n = sizes[i / 2];
        double d = (i % 2 == 0 ? loose : dense) * cbrt(n);
        cloud c = {0};
        if (n > most)
            break;
        if (!cloud_make(&c, n, d))
            status = tsr_no_memory(&err);
        size_t n_out = (size_t)N_PAIR * (size_t)c.spec.n_q;
        double *got = calloc(n_out, sizeof *got),
               *right = calloc(n_out, sizeof *right);
        if (status == TSR_OK && got != NULL && right != NULL)
            status = measure(grid, &c, d, got, right, &err);
        fflush(stdout);
        free(got);
        free(right);
        cloud_clear(&c);
    }
    tsr_grid_fft_free(grid);
    tsr_device_free(device);
    if (status != TSR_OK)
        fprintf(stderr, "bench_grid: %s\n", err.message);
    return status != TSR_OK;
}

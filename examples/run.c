/* A run with its progress, and the mean of a column of its draws:
 *
 *     ./run config.yaml FOLDER COLUMN [KEY=VALUE...] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tessera.h>

static void check(int status)
{
    if (status == TESSERA_OK)
        return;
    fprintf(stderr, "tessera: %s\n", tessera_message());
    exit(status);
}

/* context: the run. */
static int show(void *context, const char *phase, int64_t done, int64_t planned)
{
    double now[TESSERA_RUN_N_NUMBER];
    check(tessera_run_numbers(context, TESSERA_RUN_N_NUMBER, now));
    fprintf(stderr,
            "%s: %" PRId64 " of %" PRId64 " steps, chi2 %.3g, %.0f s left\n",
            phase, done, planned, now[TESSERA_RUN_CHI2], now[TESSERA_RUN_LEFT]);
    return 0; /* 1 would stop the run */
}

int main(int argc, char **argv)
{
    tessera_run *run;
    tessera_draws *draws;
    int shape[3];
    if (argc < 4)
        return TESSERA_E_USAGE;
    check(tessera_run_new(argv[1], argv[2], argc - 4,
                          (const char *const *)argv + 4, &run));
    check(tessera_run_start(run, show, run));
    tessera_run_free(run);

    check(tessera_draws_open(argv[2], &draws));
    check(tessera_draws_shape(draws, TESSERA_POSTERIOR, argv[3], shape));
    const size_t n = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    double *value = malloc(n * sizeof *value), sum = 0.0;
    if (value == NULL)
        return TESSERA_E_NOMEM;
    check(tessera_draws_read(draws, TESSERA_POSTERIOR, argv[3], (int64_t)n,
                             value));
    for (size_t i = 0; i < n; i++)
        sum += value[i];
    printf("%s: mean %.6g over %d chains of %d draws\n", argv[3],
           sum / (double)n, shape[0], shape[1]);
    free(value);
    tessera_draws_free(draws);
    return 0;
}

/* tessera bench --sampling */
#ifndef TSR_CLI_BENCH_SAMPLING_H
#define TSR_CLI_BENCH_SAMPLING_H

#include "core/log.h"
#include "core/status.h"

#include <stdio.h>

typedef struct {
    int n_config;
    const char *const *config; /* [n_config]; 0: those of configs/ here */
    int n_set;
    const char *const *set; /* [n_set] KEY=VALUE for all of them */
    const char *device;
    long seconds; /* at most, of each */
    int json;
} tsr_bench_sampling_options;

/* Runs each configuration, with its seed, until R-hat < 1.01 and ESS > 400 of
 * all variables or for so many seconds, in a temporary folder that is removed,
 * and prints how many independent draws a second that made. What cannot be run
 * is left out, with a warning. Errors: TSR_E_NOINPUT (nothing to run),
 * TSR_E_INTERRUPTED, TSR_E_IO. */
tsr_status tsr_bench_sampling(const tsr_bench_sampling_options *options,
                              FILE *out, tsr_log *log, tsr_err *err);

#endif

/* The parts of `tessera bench` beside the engine's speed. */
#ifndef TSR_BENCH_COMMAND_BENCH_H
#define TSR_BENCH_COMMAND_BENCH_H

#include "core/json.h"
#include "core/log.h"
#include "core/status.h"
#include "gpu/device.h"

#include <stdio.h>

/* What rows of all kinds have before them: {device, platform, driver, version,
 * rows: [. The command closes all that is open at the end. */
void tsr_bench_begin_json(tsr_json *json, const tsr_device_info *info);

/* tessera bench --sampling */

typedef struct {
    int n_config;
    const char *const *config; /* [n_config]; 0: those of configs/ here */
    int n_set;
    const char *const *set; /* [n_set] KEY=VALUE for all of them */
    const char *device;
    long seconds; /* at most, of each */
} tsr_bench_sampling_options;

/* Runs each configuration, with its seed, until R-hat < 1.01 and ESS > 400 of
 * all variables or for so many seconds, in a temporary folder that is removed,
 * and prints how many independent draws a second that made. What cannot be run
 * is left out, with a warning. Errors: TSR_E_NOINPUT (nothing to run),
 * TSR_E_INTERRUPTED, TSR_E_IO. */
tsr_status tsr_bench_sampling(const tsr_bench_sampling_options *options,
                              tsr_table *table, tsr_log *log, tsr_err *err);

/* Proposals a second of each move on one thread, excluded volume and the copy
 * of what moved included, the likelihood left out; acceptance under the prior;
 * and the part of the engine's tiles that a proposal makes dirty. */
tsr_status tsr_bench_moves(tsr_table *table, int is_quick, tsr_log *log,
                           tsr_err *err);

/* Models of the sizes of a published benchmark compared with density maps: with
 * the map sent to the device and with it there, parts of them alone and in
 * batches, against double precision. */
tsr_status tsr_bench_map(const tsr_device *device, tsr_table *table,
                         int is_quick, tsr_log *log, tsr_err *err);

/* Tries settings of the page-tile engine on the device, one after the other
 * from what it has now, and prints each with its score: the geometric mean of
 * wall times over kinds of moves and batches, against the first one's. Last,
 * the best one as a line of the tuning table (gpu/engine_device.h). */
tsr_status tsr_bench_tune(const tsr_device *device, int is_quick, FILE *out,
                          tsr_log *log, tsr_err *err);

#endif

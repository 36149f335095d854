/* tessera bench --tune */
#ifndef TSR_CLI_BENCH_TUNE_H
#define TSR_CLI_BENCH_TUNE_H

#include "core/log.h"
#include "gpu/device.h"

#include <stdio.h>

/* Tries settings of the page-tile engine on the device, one after the other
 * from what it has now, and prints each with its score: the geometric mean of
 * wall times over kinds of moves and batches, against the first one's. Last,
 * the best one as a line of the tuning table (gpu/tuning.h). */
tsr_status tsr_bench_tune(const tsr_device *device, int is_quick, FILE *out,
                          tsr_log *log, tsr_err *err);

#endif

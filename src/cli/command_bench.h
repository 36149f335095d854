/* The parts of `tessera bench` beside the engine's speed. */
#ifndef TSR_CLI_BENCH_H
#define TSR_CLI_BENCH_H

#include "core/json.h"
#include "core/log.h"
#include "gpu/device.h"

/* Proposals a second of each move on one thread, excluded volume and the copy
 * of what moved included, the likelihood left out; acceptance under the prior;
 * and the part of the engine's tiles that a proposal makes dirty. json: NULL
 * for a table. */
tsr_status tsr_bench_moves(tsr_json *json, int is_quick, FILE *out,
                           tsr_log *log, tsr_err *err);

/* Tries settings of the page-tile engine on the device, one after the other
 * from what it has now, and prints each with its score: the geometric mean of
 * wall times over kinds of moves and batches, against the first one's. Last,
 * the best one as a line of the tuning table (gpu/tuning.h). */
tsr_status tsr_bench_tune(const tsr_device *device, int is_quick, FILE *out,
                          tsr_log *log, tsr_err *err);

#endif

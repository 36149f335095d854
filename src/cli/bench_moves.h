/* tessera bench --moves: how fast the proposals are. */
#ifndef TSR_CLI_BENCH_MOVES_H
#define TSR_CLI_BENCH_MOVES_H

#include "core/json.h"
#include "core/log.h"
#include "core/status.h"

#include <stdio.h>

/* Proposals a second of each move on one thread, excluded volume and the copy
 * of what moved included, the likelihood left out; acceptance under the prior;
 * and the part of the engine's tiles that a proposal makes dirty. json: NULL
 * for a table. */
tsr_status tsr_bench_moves(tsr_json *json, int is_quick, FILE *out,
                           tsr_log *log, tsr_err *err);

#endif

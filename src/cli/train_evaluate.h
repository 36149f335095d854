/* tessera train form-factors --evaluate. */
#ifndef TSR_CLI_TRAIN_EVALUATE_H
#define TSR_CLI_TRAIN_EVALUATE_H

#include "cli/args.h"
#include "core/log.h"
#include "core/status.h"

/* Reads the shipped tables and those of --table, evaluates them on the
 * structures of the folders that none of them was trained on, prints a table or
 * (--json) an object to `out`, and writes the file of --output where it is
 * given. Errors: those of reading; TSR_E_DATA where no structure is left. */
tsr_status tsr_train_evaluate(const tsr_args *args, FILE *out, tsr_log *log,
                              tsr_err *err);

#endif

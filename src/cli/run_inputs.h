/* Copies of what a run reads, in its own directory: it can then be moved,
 * resumed on another machine, and repeated when the originals are gone. */
#ifndef TSR_CLI_RUN_INPUTS_H
#define TSR_CLI_RUN_INPUTS_H

#include "cli/config.h"

/* The config as YAML that names the copies: every key, with defaults. Caller
 * frees. Errors: TSR_E_NOMEM. The config is as before afterwards. */
tsr_status tsr_run_inputs_text(tsr_config *config, char **text, tsr_err *err);

/* Copies structure, starts, data and a form factor table of one's own, unpacked
 * where they were gzipped, into a new folder DIRECTORY/input.PID.tmp: *waiting,
 * caller frees; NULL where the run reads no file. On failure nothing is left.
 * Errors: TSR_E_IO, TSR_E_NOMEM, those of tsr_file_read. */
tsr_status tsr_run_inputs_copy(tsr_config *config, const char *directory,
                               char **waiting, tsr_err *err);

/* Makes that folder DIRECTORY/input. Errors: TSR_E_IO. */
tsr_status tsr_run_inputs_place(const char *directory, const char *waiting,
                                tsr_err *err);

#endif

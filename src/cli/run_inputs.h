/* Copies of what a run reads, in its own directory: it can then be moved,
 * resumed on another machine, and repeated when the originals are gone. */
#ifndef TSR_CLI_RUN_INPUTS_H
#define TSR_CLI_RUN_INPUTS_H

#include "cli/config.h"

/* The config as YAML that names the copies: every key, with defaults. Caller
 * frees. Errors: TSR_E_NOMEM. The config is as before afterwards. */
tsr_status tsr_run_inputs_text(tsr_config *config, char **text, tsr_err *err);

/* Copies structure, starts, data and a form factor table of one's own into
 * DIRECTORY/input, unpacked where they were gzipped. Errors: TSR_E_IO,
 * TSR_E_NOMEM, those of tsr_file_read. */
tsr_status tsr_run_inputs_copy(tsr_config *config, const char *directory,
                               tsr_err *err);

/* Takes the copies away again; nothing else. */
void tsr_run_inputs_undo(tsr_config *config, const char *directory);

#endif

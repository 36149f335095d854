/* A run's directory: made, filled with what is known before the first step. */
#ifndef TSR_CLI_RUN_DIRECTORY_H
#define TSR_CLI_RUN_DIRECTORY_H

#include "cli/config.h"
#include "cli/setup.h"

/* Could a run go there? Makes nothing. Errors: TSR_E_CONFIG (it holds a run;
 * with the remedy), TSR_E_IO (it or its nearest parent cannot be written). */
tsr_status tsr_run_directory_check(const char *directory, tsr_err *err);

/* Makes the directory and its parents, and in it an empty config.yaml, which
 * keeps other runs out. Errors: as above. */
tsr_status tsr_run_directory_make(const char *directory, tsr_err *err);

/* Takes away what a run wrote that failed before its first step. */
void tsr_run_directory_undo(const char *directory);

/* Is there a run in it? */
int tsr_run_directory_is_used(const char *directory);

/* directory/name, caller frees; NULL: out of memory. */
char *tsr_run_directory_file(const char *directory, const char *name);

/* Writes config.yaml (every key, with defaults) and model.pdb. *text is the
 * config as written, caller frees. Errors: TSR_E_IO. */
tsr_status tsr_run_directory_fill(const char *directory,
                                  const tsr_config *config,
                                  const tsr_setup *setup, char **text,
                                  tsr_err *err);

/* The config as YAML text, caller frees. */
tsr_status tsr_config_text(const tsr_config *config, char **text, tsr_err *err);

#endif

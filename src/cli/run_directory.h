/* A run's directory: made, filled with what is known before the first step. */
#ifndef TSR_CLI_RUN_DIRECTORY_H
#define TSR_CLI_RUN_DIRECTORY_H

#include "cli/config.h"
#include "cli/setup.h"

/* Could a run go there? Makes nothing. Errors: TSR_E_CONFIG (a file that a run
 * writes is there, whoever made it; with the remedy), TSR_E_IO (it or its
 * nearest parent cannot be written). */
tsr_status tsr_run_directory_check(const char *directory, tsr_err *err);

/* Makes the directory and its parents, and in it config.yaml with `text`, which
 * keeps other runs out. On failure nothing of it is left. *n_folder: how many
 * folders were not there before. Errors: as above. */
tsr_status tsr_run_directory_make(const char *directory, const char *text,
                                  int *n_folder, tsr_err *err);

/* Takes away what a run wrote that failed before its first step, after its
 * tsr_run_directory_make returned TSR_OK; nothing that was there before. */
void tsr_run_directory_undo(const char *directory, int n_folder);

/* Is that a run's folder? Errors: TSR_E_NOINPUT (it is not there, or holds no
 * config.yaml). */
tsr_status tsr_run_directory_expect(const char *directory, tsr_err *err);

/* directory/name, caller frees; NULL: out of memory. */
char *tsr_run_directory_file(const char *directory, const char *name);

/* Writes model.pdb. Errors: TSR_E_IO. */
tsr_status tsr_run_directory_fill(const char *directory, const tsr_setup *setup,
                                  tsr_err *err);

/* The config as YAML text: every key, with defaults; caller frees. */
tsr_status tsr_config_text(const tsr_config *config, char **text, tsr_err *err);

/* Copies of what a run reads, in DIRECTORY/input: it can then be moved, resumed
 * on another machine, and repeated when the originals are gone. */

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

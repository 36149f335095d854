/* A run's directory: made, filled with what is known before the first step. */
#ifndef TSR_SESSION_RUN_DIRECTORY_H
#define TSR_SESSION_RUN_DIRECTORY_H

#include "files/lock.h"
#include "posterior/config.h"
#include "posterior/setup.h"

/* Could a run go there? Makes nothing. Errors: TSR_E_CONFIG (a file that a run
 * writes is there, whoever made it; with the remedy), TSR_E_IO (it or its
 * nearest parent cannot be written). */
tsr_status tsr_run_directory_check(const char *directory, tsr_err *err);

/* A new run's folder is made in steps, so that one that is killed at any of
 * them leaves what either `run` or `resume` can begin with: (1) the folder and
 * its lock; (2) copies of the inputs, under a temporary name; (3) config.yaml,
 * from which on it is a run's folder and all else in it is the run's; (4) the
 * copies get their name; (5) the first checkpoint, from which on trace and
 * trajectories can be made again. */

/* Step 1: makes the directory and its parents, and takes the lock. *n_folder:
 * how many folders were not there before. On failure nothing of it is left.
 * Errors: as above. */
tsr_status tsr_run_directory_make(const char *directory, int *n_folder,
                                  tsr_lock **lock, tsr_err *err);

/* Takes back what step 1 made, while the lock is still held; is_claimed: and
 * config.yaml with all files of a run, which step 1 and 3 found absent. */
void tsr_run_directory_undo(const char *directory, int is_claimed,
                            int n_folder);

/* Step 3: makes config.yaml with `text`. Errors: TSR_E_IO. */
tsr_status tsr_run_directory_write_config(const char *directory,
                                          const char *text, tsr_err *err);

/* For who takes a run up again and holds its lock: finishes step 4, and takes
 * away what a process that is dead left under temporary names. *is_new: no file
 * is there that is made from step 5 on. Errors: TSR_E_IO (also where one of
 * these is a symbolic link). */
tsr_status tsr_run_directory_recover(const char *directory, int *is_new,
                                     tsr_err *err);

/* Removes a folder and the files in it; one with a folder in it stays. */
void tsr_run_directory_remove(const char *path);

/* Is that a run's folder? Errors: TSR_E_NOINPUT (it is not there, or holds no
 * config.yaml). */
tsr_status tsr_run_directory_require(const char *directory, tsr_err *err);

/* directory/name, caller frees; NULL: out of memory. */
char *tsr_run_directory_file(const char *directory, const char *name);

/* Is a file of that name there? */
int tsr_run_directory_has(const char *directory, const char *name);

/* Writes model.pdb. Errors: TSR_E_IO. */
tsr_status tsr_run_directory_write_model(const char *directory,
                                         const tsr_setup *setup, tsr_err *err);

/* The config as YAML text: every key, with defaults; caller frees. */
tsr_status tsr_config_text(const tsr_config *config, char **text, tsr_err *err);

/* Copies of what a run reads, in DIRECTORY/input: it can then be moved, resumed
 * on another machine, and repeated when the originals are gone. */

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
tsr_status tsr_run_inputs_commit(const char *directory, const char *waiting,
                                 tsr_err *err);

#endif

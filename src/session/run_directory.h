/* A run's folder: checks, creation, recovery after a kill, and copies of the
 * inputs. */
#ifndef TSR_SESSION_RUN_DIRECTORY_H
#define TSR_SESSION_RUN_DIRECTORY_H

#include "files/lock.h"
#include "posterior/config.h"
#include "posterior/setup.h"

/* Checks whether a new run can use the folder. Writes nothing. Errors:
 * TSR_E_CONFIG (it contains a file that a run would write, other than the
 * lock of a process that has ended; with a remedy), TSR_E_IO (the folder, or
 * its nearest existing parent, is not a folder or not writable). */
tsr_status tsr_run_directory_check(const char *directory, tsr_err *err);

/* A new run's folder is created in steps. If the process is killed after any
 * step, either `run` can use the folder or `resume` can continue: (1) create
 * the folder and its lock; (2) copy the inputs to a temporary folder; (3)
 * create config.yaml, which marks the folder as that of a run; (4) rename the
 * copies; (5) write the first checkpoint, from which trace and trajectories can
 * be recreated. */

/* Step 1: creates the folder with its parents and acquires the lock. *n_folder
 * out: number of folders created. On failure, created folders that are empty
 * are removed again. Errors: those of tsr_run_directory_check and
 * tsr_lock_acquire. */
tsr_status tsr_run_directory_make(const char *directory, int *n_folder,
                                  tsr_lock **lock, tsr_err *err);

/* Creates a folder with its parents, and adds the number created to *n_folder.
 * Errors: TSR_E_IO. */
tsr_status tsr_run_directory_make_folders(const char *directory, int *n_folder,
                                          tsr_err *err);

/* Removes what step 1 created, while the lock is held. has_config 1: also
 * removes config.yaml and all files of the run, none of which existed before
 * step 1. */
void tsr_run_directory_undo(const char *directory, int has_config,
                            int n_folder);

/* Step 3: creates config.yaml with `text`. Errors: TSR_E_IO. */
tsr_status tsr_run_directory_write_config(const char *directory,
                                          const char *text, tsr_err *err);

/* Prepares the folder of a stopped run, while this process has its lock:
 * completes step 4 and removes temporary files of other processes that
 * have ended, and of this one. *is_new out:
 * no file of step 5 exists. Errors: TSR_E_IO (also if a file of step 5 is a
 * symbolic link). */
tsr_status tsr_run_directory_recover(const char *directory, int *is_new,
                                     tsr_err *err);

/* Removes a folder and its files. If it contains folders, it stays with them,
 * and only its files are removed. */
void tsr_run_directory_remove(const char *path);

/* Checks that the folder is that of a run. Errors: TSR_E_NOINPUT (no such
 * folder, or without config.yaml). */
tsr_status tsr_run_directory_require(const char *directory, tsr_err *err);

/* Does a file of that name exist in the folder? */
int tsr_run_directory_has(const char *directory, const char *name);

/* Writes the starting structure to model.pdb. Errors: TSR_E_IO. */
tsr_status tsr_run_directory_write_model(const char *directory,
                                         const tsr_setup *setup, tsr_err *err);

/* The configuration as YAML text, every key with its value. The caller frees
 * *text. Errors: TSR_E_NOMEM, those of tsr_yaml_write. */
tsr_status tsr_config_text(const tsr_config *config, char **text, tsr_err *err);

/* ---- copies of the inputs ----
 *
 * Copies of the input files in DIRECTORY/input, so that a run can be moved,
 * resumed on another machine, and repeated without the originals. */

/* The configuration as YAML text in which file names refer to the copies. The
 * config is unchanged on return. The caller frees *text. Errors: those of
 * tsr_config_text. */
tsr_status tsr_run_inputs_text(tsr_config *config, char **text, tsr_err *err);

/* Step 2: copies the structure, starting structures, data and the user's form
 * factors, gunzipped, into the new folder DIRECTORY/input.PID.tmp. *staged out:
 * path of the new folder, the caller frees it; NULL if the run reads no files.
 * On failure the new folder is removed. Errors: TSR_E_IO, TSR_E_NOMEM, those of
 * tsr_file_read. */
tsr_status tsr_run_inputs_copy(tsr_config *config, const char *directory,
                               char **staged, tsr_err *err);

/* Step 4: renames the folder `staged` to DIRECTORY/input. Errors: TSR_E_IO. */
tsr_status tsr_run_inputs_commit(const char *directory, const char *staged,
                                 tsr_err *err);

#endif

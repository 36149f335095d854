/* Remaking the tables of data/ from folders of structures. */
#ifndef TSR_MODEL_TRAIN_H
#define TSR_MODEL_TRAIN_H

#include "core/log.h"
#include "core/status.h"
#include "model/residue.h"

typedef struct {
    int n;
    char **path; /* [n], owned */
} tsr_path_list;

/* The structure files (*.pdb, *.ent, *.cif, each also .gz) of the folders, not
 * of folders within them, sorted by file name, then by path; what is named and
 * is not a folder is taken as a file. Errors: TSR_E_NOINPUT (missing, or none
 * found in a folder), TSR_E_NOMEM. */
tsr_status tsr_path_list_collect(tsr_path_list *list, int n_place,
                                 const char *const *place, tsr_err *err);
void tsr_path_list_clear(tsr_path_list *list);

/* The tables that the program ships: q_k = k 0.01/Angstrom, to 1. */
enum { TSR_TRAIN_N_Q = 101 };
#define TSR_TRAIN_DQ 0.01

/* Trains on the files of `place` and writes `output`. `command` goes into the
 * table's heading; n_thread 0: one a processor. Errors: those of collecting,
 * training and writing. */
tsr_status tsr_train_form_factors(int n_place, const char *const *place,
                                  tsr_body_model model, int n_thread,
                                  const char *command, const char *output,
                                  tsr_log *log, tsr_err *err);
tsr_status tsr_train_priors(int n_place, const char *const *place, int n_thread,
                            const char *command, const char *output,
                            tsr_log *log, tsr_err *err);

#endif

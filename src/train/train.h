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

/* Of a sorted list, every `every`-th is set aside (the sixth, the twelfth, ...
 * for 6), so that what is trained on the others can be tested on it; 0: none.
 * train, test [list->n] out, borrowed from the list. */
void tsr_path_list_split(const tsr_path_list *list, int every, int *n_train,
                         const char **train, int *n_test, const char **test);

/* The tables that the program ships: q_k = k 0.01/Angstrom, to 1; every sixth
 * structure held out. */
enum { TSR_TRAIN_N_Q = 101, TSR_TRAIN_HOLD_OUT = 6 };
#define TSR_TRAIN_DQ 0.01

typedef struct {
    tsr_body_model model;
    int n_comp;          /* 1, or 3 with displaced solvent and hydration apart,
                            which then fold to the table of one */
    int hold_out;        /* as `every` above */
    int n_thread;        /* 0: one a processor */
    const char *command; /* goes into the table's heading */
    const char *output;  /* file */
} tsr_form_factor_order;

/* Trains on the files of `place` but those held out, and writes the output,
 * whose heading names both. Errors: those of collecting, training and
 * writing. */
tsr_status tsr_train_form_factors(int n_place, const char *const *place,
                                  const tsr_form_factor_order *order,
                                  tsr_log *log, tsr_err *err);

/* The same for priors, on all files; those that would be held out choose the
 * sizes of the mixtures. */
tsr_status tsr_train_priors(int n_place, const char *const *place, int n_thread,
                            const char *command, const char *output,
                            tsr_log *log, tsr_err *err);

#endif

/* Remaking the tables of data/ from folders of structures. */
#ifndef TSR_TRAIN_TRAIN_H
#define TSR_TRAIN_TRAIN_H

#include "core/log.h"
#include "core/status.h"
#include "molecule/prior_table.h"
#include "molecule/structure.h"
#include "scattering/form_factor.h"

#include <stddef.h>

/* One pass over many structure files: every file gives a part, the parts are
 * added in the order of the files. Files are read by several threads; the sum
 * does not depend on how many. */

/* Fills the part of one structure; called by several threads at once. */
typedef tsr_status tsr_structure_visit(const tsr_structure *structure,
                                       const void *context, void *part,
                                       tsr_err *err);

typedef struct {
    size_t part_size; /* bytes; a part begins as zeroes */
    tsr_structure_visit *visit;
    /* Adds a part to the total; called in the order of the files. */
    void (*add)(const void *context, void *total, const void *part);
    /* Frees what a part has beside itself, also after an error; NULL: nothing.
     * A part that was not visited is zeroes. */
    void (*clear)(void *part);
    const void *context;
} tsr_structure_fold_type;

/* n_thread 0: as many as there are processors. Stops at the first file, in
 * their order, that cannot be read or visited, with its error. */
tsr_status tsr_structure_fold(const tsr_structure_fold_type *type, int n_path,
                              const char *const *path, int n_thread,
                              void *total, tsr_log *log, tsr_err *err);

/* What a table's heading says of its training: the program, how many residues
 * were used and left out, the base names of the files. Caller frees; NULL when
 * out of memory. */
char *tsr_structure_source(int n_path, const char *const *path, long n_used,
                           long n_skipped);

/* "<title>: <n_path>" and the base names in lines of at most 76 characters.
 * Caller frees; NULL when out of memory. */
char *tsr_structure_names(const char *title, int n_path,
                          const char *const *path);

/* 1 where a heading lists the base name of `path` under "<title>: ". `source`
 * may be NULL. */
int tsr_structure_listed(const char *source, const char *title,
                         const char *path);

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

/* Trains a new table on structure files: averages over the occurrences of each
 * type and, for three components, the exposures' curves. Residues that lack
 * atoms are left out; a chain's OXT and the extra hydrogens of its first N are
 * not counted. `log` gets what was used and left out. n_thread 0: as many as
 * there are processors; their number does not change the result. After an error
 * the table is not to be used.
 * Errors: those of reading; TSR_E_DATA where a type never occurs;
 * TSR_E_NUMERIC; TSR_E_NOMEM. */
tsr_status tsr_form_factor_train(tsr_form_factor_table *table, int n_path,
                                 const char *const *path, int n_thread,
                                 tsr_log *log, tsr_err *err);

/* Refines a trained table on structure files (those it was trained on): F and E
 * change, smoothly in q and little, to what makes the relative errors of I(q)
 * against all atoms least; first those of the contrast and then, over a few c1
 * and c2, those of displaced solvent and hydration. Keeps some 0.2 MB a
 * structure in memory, 0.5 MB for three components. After an error the table is
 * not to be used.
 * Errors: those of reading; TSR_E_NOMEM, TSR_E_NUMERIC (no convergence). */
tsr_status tsr_form_factor_refine(tsr_form_factor_table *table, int n_path,
                                  const char *const *path, int n_thread,
                                  tsr_log *log, tsr_err *err);

/* Puts the contrast of `folded` into a table of three components: the solute
 * becomes what folds to it. */
void tsr_form_factor_unfold(const tsr_form_factor_table *folded,
                            tsr_form_factor_table *table);

/* Fits the prior to structure files: those of the classes and types that
 * priors.h lists. Errors: those of reading and of the fits. */
tsr_status tsr_prior_table_train(int n_path, const char *const *path,
                                 int n_thread, tsr_log *log,
                                 tsr_prior_table **out, tsr_err *err);

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

/* ---- table_write ----
 *
 * The files of data/, as molecule/prior_table.h and scattering/form_factor.h
 * read them. Written beside and renamed. */

/* Replaces a heading by what the format makes, which may use the one before.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_table_head(char **source, tsr_err *err, const char *format, ...)
    TSR_PRINTF(3, 4);

/* Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_form_factor_write(const tsr_form_factor_table *table,
                                 const char *path, tsr_err *err);
tsr_status tsr_prior_table_write(const tsr_prior_table *table, const char *path,
                                 tsr_err *err);

#endif

/* One pass over many structure files: every file gives a part, the parts are
 * added in the order of the files. Files are read by several threads; the sum
 * does not depend on how many. */
#ifndef TSR_MODEL_STRUCTURE_FOLD_H
#define TSR_MODEL_STRUCTURE_FOLD_H

#include "core/log.h"
#include "core/status.h"
#include "io/structure.h"

#include <stddef.h>

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

#endif

/* checkpoint.h5: members of a struct, by name, that hold the state of a run.
 *
 * One table says which members these are, and both writes and reads them:
 *
 *     static const tsr_checkpoint_field fields[] = {
 *         {.name = "place/draws", .type = TSR_CHECKPOINT_LONG,
 *          .offset = offsetof(place, draws), .count = 1},
 *         {.name = "config", .type = TSR_CHECKPOINT_TEXT,
 *          .offset = offsetof(place, config)},
 *         {0}};
 *
 * An HDF5 file that is written and verified as a run's others are
 * (store/hdf5_store.h); the one before stays as PATH.previous. A name is a
 * path: groups are made as needed. Few large arrays (one over all chains) are
 * cheaper than many small ones: some 25 microseconds and a few hundred bytes
 * each.
 *
 * Root attributes: format "tessera checkpoint", format_version (integer),
 * tessera_version, config_hash, created_at (UTC, ISO 8601).
 *
 * What survives. At every moment PATH or PATH.previous is a whole checkpoint
 * once the first has been written. A full disk, a kill or a power cut leaves
 * PATH as it was (on a file system without links: renamed to PATH.previous).
 * One thread at a time; one writer at a time (files/lock.h). */
#ifndef TSR_STORE_CHECKPOINT_H
#define TSR_STORE_CHECKPOINT_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { TSR_CHECKPOINT_FORMAT = 4 };

#define TSR_CHECKPOINT_NAME "checkpoint.h5"

/* What the members are in memory; in the file whole numbers are int64. */
typedef enum {
    TSR_CHECKPOINT_INT,    /* int */
    TSR_CHECKPOINT_LONG,   /* long */
    TSR_CHECKPOINT_INT64,  /* int64_t */
    TSR_CHECKPOINT_DOUBLE, /* double */
    TSR_CHECKPOINT_TEXT,   /* char *, owned; NULL is written as "" */
    TSR_CHECKPOINT_N_TYPE
} tsr_checkpoint_type;

typedef struct {
    const char *name; /* in the file; NULL ends a table */
    tsr_checkpoint_type type;
    size_t offset; /* in bytes, from the start of the struct */
    size_t count;  /* so many in place; 0: an owned array, to which a pointer
                      is there */
    size_t length; /* of an owned array: offset of its length, a size_t */
} tsr_checkpoint_field;

/* ---- writing ---- */

typedef struct tsr_checkpoint_writer tsr_checkpoint_writer;

/* Begins the file `path`. config_hash: of the resolved config. Errors:
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_checkpoint_new(const char *path, const char *config_hash,
                              tsr_checkpoint_writer **out, tsr_err *err);

/* Adds the members of `object` that the table names; they are copied. Doubles
 * keep their bits. Errors: TSR_E_INTERNAL (a name that is taken). */
tsr_status tsr_checkpoint_put(tsr_checkpoint_writer *writer,
                              const tsr_checkpoint_field *fields,
                              const void *object, tsr_err *err);

/* Puts the file in place where `status` is TSR_OK, else takes it away and
 * returns `status`; frees. NULL is fine. Errors: TSR_E_IO (then the checkpoints
 * that were there still are). */
tsr_status tsr_checkpoint_end(tsr_checkpoint_writer *writer, tsr_status status,
                              tsr_err *err);

/* ---- reading ---- */

typedef struct tsr_checkpoint tsr_checkpoint;

/* Reads and verifies the whole file. Errors: TSR_E_NOINPUT (missing), TSR_E_IO
 * (unreadable), TSR_E_DATA (no checkpoint, cut short, damaged, of another
 * format, older or newer), TSR_E_NOMEM. */
tsr_status tsr_checkpoint_open(const char *path, tsr_checkpoint **out,
                               tsr_err *err);

/* The newest good checkpoint of a run: directory/checkpoint.h5, or else the one
 * before. *message: "" or, where it fell back, what happened to the newer one.
 * Errors: TSR_E_DATA (both are damaged; says how each is), TSR_E_NOINPUT (the
 * run has none yet), else as above. */
tsr_status tsr_checkpoint_open_newest(const char *directory,
                                      tsr_checkpoint **out,
                                      char message[TSR_ERR_SIZE], tsr_err *err);

/* Reads them back. Owned members, NULL so far, are allocated, and the caller
 * frees them, after an error, too; a text ends in NUL. Errors, which name the
 * member: TSR_E_DATA (it is not in the file, or of another type or length),
 * TSR_E_NOMEM. */
tsr_status tsr_checkpoint_get(const tsr_checkpoint *checkpoint,
                              const tsr_checkpoint_field *fields, void *object,
                              tsr_err *err);

const char *tsr_checkpoint_created_at(const tsr_checkpoint *checkpoint);

/* NULL is fine. */
void tsr_checkpoint_free(tsr_checkpoint *checkpoint);

#endif

/* checkpoint.h5: the state of a run, as named members of a struct.
 *
 * One table of fields lists the members, for writing and for reading:
 *
 *     static const tsr_checkpoint_field fields[] = {
 *         {.name = "run/draws", .type = TSR_CHECKPOINT_LONG,
 *          .offset = offsetof(state, draws), .count = 1},
 *         {.name = "config", .type = TSR_CHECKPOINT_TEXT,
 *          .offset = offsetof(state, config)},
 *         {0}};
 *
 * The file is HDF5, written and verified like the other HDF5 files of a run
 * (store/hdf5_store.h). A name is a path in the file, and groups are created as
 * needed. A few large arrays (one over all chains) are cheaper than many small
 * ones, each of which costs 25 microseconds and a few hundred bytes.
 *
 * Root attributes: format "tessera checkpoint", format_version (integer),
 * tessera_version, config_hash, created_at (UTC, ISO 8601).
 *
 * Once the first checkpoint has been written, checkpoint.h5 or
 * checkpoint.h5.previous is a complete checkpoint at every moment. A full disk,
 * a kill or a power cut leaves checkpoint.h5 unchanged (on a file system
 * without links: perhaps renamed to checkpoint.h5.previous). Only one process
 * (files/lock.h), and one thread in it, may write checkpoints. */
#ifndef TSR_STORE_CHECKPOINT_H
#define TSR_STORE_CHECKPOINT_H

#include "core/archive.h"

#include <stddef.h>
#include <stdint.h>

enum { TSR_CHECKPOINT_FORMAT = 9 };

#define TSR_CHECKPOINT_NAME "checkpoint.h5"

/* Types of members in memory. In the file all integers are int64. */
typedef enum {
    TSR_CHECKPOINT_INT,    /* int */
    TSR_CHECKPOINT_LONG,   /* long */
    TSR_CHECKPOINT_INT64,  /* int64_t */
    TSR_CHECKPOINT_DOUBLE, /* double */
    TSR_CHECKPOINT_TEXT,   /* char *, owned; NULL is written as "" */
    TSR_CHECKPOINT_N_TYPE
} tsr_checkpoint_type;

/* One entry of a table of members. */
typedef struct {
    const char *name; /* path in the file; NULL ends a table */
    tsr_checkpoint_type type;
    size_t offset; /* bytes from the start of the struct */
    size_t count;  /* elements in place; 0: the member is a pointer to an
                      owned array */
    size_t length; /* of an owned array: offset of its length, a size_t */
} tsr_checkpoint_field;

/* Fields of a struct: a text, and the two arrays of a tsr_archive. */
#define TSR_CHECKPOINT_STRING(NAME, STRUCT, MEMBER)  \
    {                                                \
        .name = (NAME), .type = TSR_CHECKPOINT_TEXT, \
        .offset = offsetof(STRUCT, MEMBER)           \
    }
#define TSR_CHECKPOINT_ARCHIVE(NAME, STRUCT, MEMBER)                          \
    {.name = NAME "/real",                                                    \
     .type = TSR_CHECKPOINT_DOUBLE,                                           \
     .offset = offsetof(STRUCT, MEMBER) + offsetof(tsr_archive, real),        \
     .length = offsetof(STRUCT, MEMBER) + offsetof(tsr_archive, n_real)},     \
    {                                                                         \
        .name = NAME "/integer", .type = TSR_CHECKPOINT_INT64,                \
        .offset = offsetof(STRUCT, MEMBER) + offsetof(tsr_archive, integer),  \
        .length = offsetof(STRUCT, MEMBER) + offsetof(tsr_archive, n_integer) \
    }

/* ---- writing ---- */

typedef struct tsr_checkpoint_writer tsr_checkpoint_writer;

/* Begins the file `path`. config_hash: hash of the resolved configuration.
 * Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_checkpoint_new(const char *path, const char *config_hash,
                              tsr_checkpoint_writer **out, tsr_err *err);

/* Writes the members of `object` that the table lists. Doubles keep their bits.
 * Errors: TSR_E_INTERNAL (a name is used twice, or HDF5 has failed otherwise).
 * tsr_checkpoint_end reports a full disk. */
tsr_status tsr_checkpoint_put(tsr_checkpoint_writer *writer,
                              const tsr_checkpoint_field *fields,
                              const void *object, tsr_err *err);

/* Puts the file in place if `status` is TSR_OK; otherwise removes it and
 * returns `status`. Frees the writer; NULL is fine. Errors: TSR_E_IO (the old
 * checkpoints still exist). */
tsr_status tsr_checkpoint_end(tsr_checkpoint_writer *writer, tsr_status status,
                              tsr_err *err);

/* ---- reading ---- */

typedef struct tsr_checkpoint tsr_checkpoint;

/* Reads and verifies a checkpoint. Errors: TSR_E_NOINPUT (missing, or no
 * permission), TSR_E_IO (a read failed), TSR_E_DATA (not a checkpoint,
 * truncated, damaged, or of an older or newer format), TSR_E_NOMEM. */
tsr_status tsr_checkpoint_open(const char *path, tsr_checkpoint **out,
                               tsr_err *err);

/* Opens the newest undamaged checkpoint of a run: directory/checkpoint.h5, or
 * else the previous one. message out: "", or why the newer one is not used.
 * Errors: TSR_E_NOINPUT (the run has no checkpoint), TSR_E_DATA (no checkpoint
 * can be used; the message has the reason for each), TSR_E_NOMEM. */
tsr_status tsr_checkpoint_open_newest(const char *directory,
                                      tsr_checkpoint **out,
                                      char message[TSR_ERR_SIZE], tsr_err *err);

/* Reads the members that the table lists. Owned members must be NULL on entry;
 * they are allocated, and the caller frees them, also after an error. Texts end
 * in NUL. Errors, with the name of the member: TSR_E_DATA (missing, or of
 * another type or length), TSR_E_NOMEM. */
tsr_status tsr_checkpoint_get(const tsr_checkpoint *checkpoint,
                              const tsr_checkpoint_field *fields, void *object,
                              tsr_err *err);

/* Time at which the checkpoint was begun, UTC, ISO 8601; borrowed. */
const char *tsr_checkpoint_created_at(const tsr_checkpoint *checkpoint);

/* NULL is fine. */
void tsr_checkpoint_free(tsr_checkpoint *checkpoint);

#endif

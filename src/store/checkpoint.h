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
 * An HDF5 file, written whole, beside, synced and renamed; the one before stays
 * as PATH.previous. A name is a path: groups are made as needed. Few large
 * arrays (one over all chains) are cheaper than many small ones: some 25
 * microseconds and a few hundred bytes each.
 *
 * Root attributes: format "tessera checkpoint", format_version (integer),
 * tessera_version, config_hash, created_at (UTC, ISO 8601). Behind the end of
 * what HDF5 reads stand 64 bytes of text with the length and the checksum
 * (files/checksum.h) of all before them. A reader verifies these before HDF5
 * sees the file (1.10 can crash on damaged metadata), so a file cut short, or
 * with any byte changed, is refused, never used.
 *
 * What survives. At every moment PATH or PATH.previous is a whole checkpoint
 * once the first has been committed. A full disk, a kill or a power cut during
 * a commit leaves PATH as it was (on a file system without links: renamed to
 * PATH.previous), and perhaps a PATH.tmp, which the next commit replaces and
 * readers look at only where both others are damaged.
 * One thread at a time; one writer at a time (files/lock.h). */
#ifndef TSR_STORE_CHECKPOINT_H
#define TSR_STORE_CHECKPOINT_H

#include "core/status.h"

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

enum { TSR_CHECKPOINT_FORMAT = 3 };

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

/* Errors: TSR_E_NOMEM, TSR_E_INTERNAL. config_hash: of the resolved config, to
 * be compared on resume; copied. */
tsr_status tsr_checkpoint_new(const char *config_hash,
                              tsr_checkpoint_writer **out, tsr_err *err);

/* Adds the members of `object` that the table names; they are copied. Doubles
 * keep their bits. Errors: TSR_E_INTERNAL (a name that is taken, or no good),
 * TSR_E_NOMEM. */
tsr_status tsr_checkpoint_put(tsr_checkpoint_writer *writer,
                              const tsr_checkpoint_field *fields,
                              const void *object, tsr_err *err);

/* Puts the file in place, as above; whatever comes of it, only free may follow.
 * Errors: TSR_E_IO (then the checkpoints that were there still are). */
tsr_status tsr_checkpoint_commit(tsr_checkpoint_writer *writer,
                                 const char *path, tsr_err *err);

/* NULL is fine. */
void tsr_checkpoint_writer_free(tsr_checkpoint_writer *writer);

/* A new HDF5 file that lives in memory only. `file` must keep its place while
 * the file is open: the address is its name. */
tsr_status tsr_checkpoint_image_new(hid_t *file, tsr_err *err);

/* Its bytes with the seal behind them; caller frees. */
tsr_status tsr_checkpoint_image_take(hid_t file, char **content, size_t *size,
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

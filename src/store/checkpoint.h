/* checkpoint.h5: named arrays that hold the state of a run.
 *
 * An HDF5 file, written whole, beside, synced and renamed; the one before stays
 * as PATH.previous. A name is a path, "chain/rng": groups are made as needed.
 * Few large arrays (one over all chains) are cheaper than many small ones: some
 * 25 microseconds and a few hundred bytes each.
 *
 * Root attributes: format "tessera checkpoint", format_version (integer),
 * tessera_version, config_hash, created_at (UTC, ISO 8601). Behind the end of
 * what HDF5 reads stand 64 bytes of text with the length and the checksum
 * (io/checksum.h) of all before them. A reader verifies these before HDF5 sees
 * the file (1.10 can crash on damaged metadata), so a file cut short, or with
 * any byte changed, is refused, never used.
 *
 * What survives. At every moment PATH or PATH.previous is a whole checkpoint
 * once the first has been committed. A full disk, a kill or a power cut during
 * a commit leaves PATH as it was (on a file system without links: renamed to
 * PATH.previous), and perhaps a PATH.tmp, which the next commit replaces and
 * readers look at only where both others are damaged.
 * One thread at a time; one writer at a time (io/lock.h). */
#ifndef TSR_IO_CHECKPOINT_H
#define TSR_IO_CHECKPOINT_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { TSR_CHECKPOINT_FORMAT = 1 };

#define TSR_CHECKPOINT_NAME "checkpoint.h5"

typedef enum {
    TSR_CHECKPOINT_DOUBLE, /* double */
    TSR_CHECKPOINT_INT64,  /* int64_t */
    TSR_CHECKPOINT_UINT64, /* uint64_t */
    TSR_CHECKPOINT_BYTES,  /* unsigned char */
    TSR_CHECKPOINT_TEXT,   /* char, n without the final NUL */
    TSR_CHECKPOINT_N_TYPE
} tsr_checkpoint_type;

/* ---- writing ---- */

typedef struct tsr_checkpoint_writer tsr_checkpoint_writer;

/* Errors: TSR_E_NOMEM, TSR_E_INTERNAL. config_hash: of the resolved config, to
 * be compared on resume; copied. */
tsr_status tsr_checkpoint_new(const char *config_hash,
                              tsr_checkpoint_writer **out, tsr_err *err);

/* Adds an array of n (which may be 0); the data is copied. Doubles keep their
 * bits. Errors: TSR_E_INTERNAL (a name that is taken, or no good), TSR_E_NOMEM.
 */
tsr_status tsr_checkpoint_put(tsr_checkpoint_writer *writer, const char *name,
                              tsr_checkpoint_type type, size_t n,
                              const void *data, tsr_err *err);

/* The same for a text that ends in NUL. */
tsr_status tsr_checkpoint_put_text(tsr_checkpoint_writer *writer,
                                   const char *name, const char *text,
                                   tsr_err *err);

/* Puts the file in place, as above; whatever comes of it, only free may follow.
 * Errors: TSR_E_IO (then the checkpoints that were there still are). */
tsr_status tsr_checkpoint_commit(tsr_checkpoint_writer *writer,
                                 const char *path, tsr_err *err);

/* NULL is fine. */
void tsr_checkpoint_writer_free(tsr_checkpoint_writer *writer);

/* ---- reading ---- */

typedef struct tsr_checkpoint tsr_checkpoint;

/* Reads and verifies the whole file. Errors: TSR_E_NOINPUT (missing), TSR_E_IO
 * (unreadable), TSR_E_DATA (no checkpoint, cut short, damaged, of a newer
 * format), TSR_E_NOMEM. */
tsr_status tsr_checkpoint_open(const char *path, tsr_checkpoint **out,
                               tsr_err *err);

/* The newest good checkpoint of a run: directory/checkpoint.h5, or else the one
 * before. *message: "" or, where it fell back, what happened to the newer one.
 * Errors: TSR_E_DATA (both are damaged; says how each is), TSR_E_NOINPUT (the
 * run has none yet), else as above. */
tsr_status tsr_checkpoint_open_newest(const char *directory,
                                      tsr_checkpoint **out,
                                      char message[TSR_ERR_SIZE], tsr_err *err);

/* The array, which belongs to the checkpoint; a text ends in NUL. *n may be
 * NULL. Errors: TSR_E_DATA (no such array, or of another type). */
tsr_status tsr_checkpoint_get(tsr_checkpoint *checkpoint, const char *name,
                              tsr_checkpoint_type type, size_t *n,
                              const void **data, tsr_err *err);

/* The same into memory of the caller, data [n]: TSR_E_DATA also where the file
 * has not just n. */
tsr_status tsr_checkpoint_copy(const tsr_checkpoint *checkpoint,
                               const char *name, tsr_checkpoint_type type,
                               size_t n, void *data, tsr_err *err);

/* 1 where there is an array of that name. */
int tsr_checkpoint_has(const tsr_checkpoint *checkpoint, const char *name);

const char *tsr_checkpoint_created_at(const tsr_checkpoint *checkpoint);

/* NULL is fine. */
void tsr_checkpoint_free(tsr_checkpoint *checkpoint);

#endif

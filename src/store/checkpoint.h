/* checkpoint.h5: the state of a run, as named archives (core/archive.h) and
 * texts.
 *
 *     const tsr_checkpoint_member members[] = {
 *         {"sampler", .archive = &state}, {"config", .text = &config}, {0}};
 *
 * The file is HDF5, written and verified like the other HDF5 files of a run
 * (store/hdf5_store.h). A name is a path in the file, and groups are created as
 * needed. An archive is two data sets: NAME/real (float64) and NAME/integer
 * (int64).
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

enum { TSR_CHECKPOINT_FORMAT = 9 };

#define TSR_CHECKPOINT_NAME "checkpoint.h5"

/* A member: an archive or a text. */
typedef struct {
    const char *name;     /* path in the file; NULL ends a list */
    tsr_archive *archive; /* NULL: a text */
    char **text;          /* NULL in *text is written as "" */
} tsr_checkpoint_member;

/* Writes the file `path` with the members. Doubles keep their bits.
 * config_hash: hash of the resolved configuration. Errors: TSR_E_IO (the old
 * checkpoints still exist), TSR_E_NOMEM, TSR_E_INTERNAL (a name is used
 * twice). */
tsr_status tsr_checkpoint_write(const char *path, const char *config_hash,
                                const tsr_checkpoint_member *members,
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

/* Reads the members. Archives must be empty and texts NULL on entry; they are
 * allocated, and the caller clears them, also after an error. Errors, with the
 * name of the member: TSR_E_DATA (missing, or of another type or shape),
 * TSR_E_NOMEM. */
tsr_status tsr_checkpoint_get(const tsr_checkpoint *checkpoint,
                              const tsr_checkpoint_member *members,
                              tsr_err *err);

/* Time at which the checkpoint was begun, UTC, ISO 8601; borrowed. */
const char *tsr_checkpoint_created_at(const tsr_checkpoint *checkpoint);

/* NULL is fine. */
void tsr_checkpoint_free(tsr_checkpoint *checkpoint);

#endif

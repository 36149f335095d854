/* An HDF5 file whose writes stay in memory until they are committed, and whose
 * content is verified before it is read: a file driver for HDF5.
 *
 * Two reasons for the first. HDF5 1.10 does not survive a failed write: it
 * crashes when the file is closed, or at exit. Here it never sees one; the
 * commit does. And a file that changes only in commits, each of them whole or
 * not at all, can be opened after a kill or a power cut at any moment.
 *
 * A commit, each step synced before the next:
 *   1. what lies behind the old end of the file is written there;
 *   2. the pages that change, the new seal and the new length go to
 *      PATH.journal (store/journal.h), and the directory is synced where that
 *      is new;
 *   3. these pages are put into the file;
 *   4. the journal is emptied (not synced).
 * Stopped before 2 is complete, the file is as the commit before left it, with
 * bytes behind its end that HDF5 does not look at and the next commit cuts off.
 * Stopped later, the journal is complete and whoever opens the file next
 * finishes the commit. A journal that a power cut brings back after 4 repeats
 * what the file has already: no step 3 of a later commit can come before a new
 * journal has replaced it. The first page of a new file goes through the
 * journal too, so a file is a HDF5 file only once its first commit is complete.
 * A disk that is full stops 1 or 2, and the file stays as it was. A clean close
 * removes the journal.
 *
 * The reason for the second: HDF5 1.10 can crash on damaged metadata, and knows
 * nothing of damaged numbers. So the file ends in a seal,
 * 64 bytes behind the end of what HDF5 looks at, with the length of the file
 * and the sum of its pages' checksums.
 *
 * The journal is open, and locked, during a commit only: a store needs one file
 * descriptor.
 *
 * For src/store only. One thread at a time; one writer at a time, which the
 * directory's lock (files/lock.h) sees to. */
#ifndef TSR_STORE_HDF5_STORE_H
#define TSR_STORE_HDF5_STORE_H

#include "core/status.h"

#include <hdf5.h>

typedef struct tsr_hdf5_store tsr_hdf5_store;

/* A new file on the disk. Errors: TSR_E_IO (also where it is there already),
 * TSR_E_NOMEM. */
tsr_status tsr_hdf5_store_create(const char *path, tsr_hdf5_store **out,
                                 tsr_err *err);

/* H5Fcreate or H5Fopen with this access list works on the store, which must
 * outlive the HDF5 file. 0, or < 0 with HDF5's error stack. */
herr_t tsr_hdf5_store_attach(tsr_hdf5_store *store, hid_t access);

/* Brings all writes so far to the disk (after H5Fflush), as above; nothing
 * where there are none. Each file is committed by itself, but all go through
 * each step together, so that one sync of the file system can serve them. Where
 * one fails, the others are committed all the same. Errors: TSR_E_IO; from then
 * on every commit of that file fails, and the file is as the last commit left
 * it, or has this one in its journal. */
tsr_status tsr_hdf5_store_commit_all(tsr_hdf5_store *const *store, int n,
                                     tsr_err *err);

/* 1: a commit has failed. */
int tsr_hdf5_store_has_failed(const tsr_hdf5_store *store);

/* Bytes in memory that the next commit will write. */
size_t tsr_hdf5_store_pending(const tsr_hdf5_store *store);

/* Closes; what was not committed is lost. NULL is fine. */
void tsr_hdf5_store_free(tsr_hdf5_store *store);

/* ---- a file opened for reading, beside its writer or after it was killed ----
 */

typedef struct {
    char *path;
    hid_t file;            /* < 0: closed */
    tsr_hdf5_store *store; /* through which HDF5 reads; NULL: closed */
} tsr_hdf5_input;

/* Finishes an interrupted commit first, where its writer is dead. While a
 * writer lives, opening can meet the milliseconds in which it changes the file,
 * and is tried a few times; `check` (NULL: none) is part of that: it looks at
 * what the caller needs and returns TSR_E_DATA where it cannot be read.
 * Messages name the file. Errors: TSR_E_NOINPUT (no such file), TSR_E_DATA (not
 * HDF5, or damaged), TSR_E_IO. */
tsr_status tsr_hdf5_input_open(const char *path,
                               tsr_status (*check)(hid_t file, void *context,
                                                   tsr_err *err),
                               void *context, tsr_hdf5_input *input,
                               tsr_err *err);
void tsr_hdf5_input_close(tsr_hdf5_input *input);

/* ---- a file opened for writing ---- */

typedef struct {
    char *path;
    hid_t file; /* < 0: closed */
    tsr_hdf5_store *store;
    int is_new;    /* created, and nothing in it is to be kept yet */
    int is_broken; /* a write failed: the file is not touched any more */
} tsr_hdf5_output;

/* A new file, or one that was created so, whose interrupted commit is finished
 * first. Whatever comes of it, tsr_hdf5_output_end follows. Errors: as those of
 * tsr_hdf5_store_create; TSR_E_NOINPUT (no such file), TSR_E_IO (may not be
 * written; another process is writing), TSR_E_DATA (damaged, or a journal that
 * does not fit the file). */
tsr_status tsr_hdf5_output_start(const char *path, int is_new,
                                 tsr_hdf5_output *output, tsr_err *err);

/* Names the file in a message of its owner; returns `status`. */
tsr_status tsr_hdf5_output_wrap(const tsr_hdf5_output *output,
                                tsr_status status, tsr_err *err);

/* From now on a new file is kept; until then its end removes it. */
void tsr_hdf5_output_keep(tsr_hdf5_output *output);

/* TSR_E_IO where an earlier write failed. */
tsr_status tsr_hdf5_output_check(const tsr_hdf5_output *output, tsr_err *err);

/* Everything to the disk, past HDF5's caches and the system's. */
tsr_status tsr_hdf5_output_commit(tsr_hdf5_output *output, tsr_err *err);

/* Closes the file, commits HDF5's last writes where `status` is TSR_OK, and
 * frees. Returns the first failure, `status` among them. */
tsr_status tsr_hdf5_output_end(tsr_hdf5_output *output, tsr_status status,
                               tsr_err *err);

/* Commits that a kill or a power cut interrupted, in the files of a run: for
 * `resume` and `status`, before other programs read the files. Opening a trace
 * or a trajectory does the same for that file by itself. */

typedef struct {
    int n_finished;    /* files whose commit has been finished now */
    int n_pending;     /* that could not be: no right to write, no space */
    int n_busy;        /* that a writer is in the middle of */
    int n_orphan;      /* journals whose file is gone */
    char pending[256]; /* name of the first pending file, or "" */
} tsr_recovery;

/* Looks at every journal in a directory. A pending one does no harm to readers
 * of ours; others (h5py) see the file as the commit before left it, or cannot
 * open it: say so, and that it takes the right to write. Errors: TSR_E_NOINPUT
 * (no such directory), TSR_E_DATA (a journal that does not fit its file, or of
 * a newer tessera; the other files are done all the same), TSR_E_IO. */
tsr_status tsr_recover(const char *directory, tsr_recovery *recovery,
                       tsr_err *err);

#endif

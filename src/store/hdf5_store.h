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
 * nothing of damaged numbers. So the file ends in a seal (hdf5_store_seal.c),
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

/* An existing file for reading and writing: finishes a commit that was
 * interrupted. H5Fopen then reads through the store. Errors: TSR_E_NOINPUT (no
 * such file), TSR_E_IO (may not be written; another process is writing),
 * TSR_E_DATA (a journal that does not fit the file). */
tsr_status tsr_hdf5_store_open(const char *path, tsr_hdf5_store **out,
                               tsr_err *err);

/* For a reader, before it opens the file: finishes a commit that was
 * interrupted, where its writer is dead. Where the writer lives, the file may
 * not be written (a read-only directory or medium), or the file system has no
 * locks to tell whether the writer lives, *overlay is a store that shows the
 * file as it will be, to be attached for reading; else NULL, and any HDF5
 * driver reads the file. *is_busy: a writer is in the middle of a commit.
 * Errors: TSR_E_DATA, TSR_E_NOINPUT, TSR_E_IO as above. */
tsr_status tsr_hdf5_store_recover(const char *path, tsr_hdf5_store **overlay,
                                  int *is_busy, tsr_err *err);

/* The file for reading alone, as it is on the disk. Where it changes after
 * tsr_hdf5_store_verify, HDF5's reads fail. Errors: TSR_E_NOINPUT, TSR_E_IO. */
tsr_status tsr_hdf5_store_open_reading(const char *path, tsr_hdf5_store **out,
                                       tsr_err *err);

/* Before tsr_hdf5_store_verify, of a file that a run goes on writing: reads
 * from a copy of its own, a file without a name in the folder TMPDIR, or /tmp.
 * The copy may have been made in the middle of a commit; then it has parts of
 * two states, which its seal betrays. Cost: 1 GB/s or so. Errors: TSR_E_DATA
 * (the file was cut meanwhile), TSR_E_IO (no room for the copy). */
tsr_status tsr_hdf5_store_copy(tsr_hdf5_store *store, tsr_err *err);

/* Reads the whole file and compares it with its seal, before HDF5 sees any of
 * it; a file without a seal is tried in a process of its own
 * (store/hdf5_store_seal.c). To be called once, before the store is attached;
 * tsr_hdf5_store_open has done it. Cost: 0.6 GB/s and more. Errors: TSR_E_DATA
 * (damaged), TSR_E_IO. */
tsr_status tsr_hdf5_store_verify(tsr_hdf5_store *store, tsr_err *err);

/* H5Fcreate or H5Fopen with this access list works on the store, which must
 * outlive the HDF5 file. 0, or < 0 with HDF5's error stack. */
herr_t tsr_hdf5_store_attach(tsr_hdf5_store *store, hid_t access);

/* Brings all writes so far to the disk (after H5Fflush), as above; nothing
 * where there are none. Errors: TSR_E_IO; from then on every commit fails, and
 * the file is as the last commit left it, or has this one in its journal. */
tsr_status tsr_hdf5_store_commit(tsr_hdf5_store *store, tsr_err *err);

/* The same for many files: each is committed by itself, but all go through each
 * step together, so that one sync of the file system can serve them. Where one
 * fails, the others are committed all the same. */
tsr_status tsr_hdf5_store_commit_all(tsr_hdf5_store *const *store, int n,
                                     tsr_err *err);

/* 1: a commit has failed. */
int tsr_hdf5_store_has_failed(const tsr_hdf5_store *store);

/* Bytes in memory that the next commit will write. */
size_t tsr_hdf5_store_pending(const tsr_hdf5_store *store);

/* Closes; what was not committed is lost. NULL is fine. */
void tsr_hdf5_store_free(tsr_hdf5_store *store);

/* Frees and removes the file: a creation that failed. NULL is fine. */
void tsr_hdf5_store_discard(tsr_hdf5_store *store);

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

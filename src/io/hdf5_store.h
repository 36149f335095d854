/* An HDF5 file whose writes stay in memory until they are committed: a file
 * driver for HDF5.
 *
 * Two reasons. HDF5 1.10 does not survive a failed write: it crashes when the
 * file is closed, or at exit. Here it never sees one; the commit does. And a
 * file that changes only at known moments can be opened after a kill.
 *
 * For src/io only. One thread at a time. */
#ifndef TSR_IO_HDF5_STORE_H
#define TSR_IO_HDF5_STORE_H

#include "core/status.h"

#include <hdf5.h>

typedef struct tsr_hdf5_store tsr_hdf5_store;

/* A new file on the disk. Errors: TSR_E_IO (also where it is there already),
 * TSR_E_NOMEM. */
tsr_status tsr_hdf5_store_create(const char *path, tsr_hdf5_store **out,
                                 tsr_err *err);

/* H5Fcreate with this access list writes into the store, which must outlive the
 * HDF5 file. 0, or < 0 with HDF5's error stack. */
herr_t tsr_hdf5_store_attach(tsr_hdf5_store *store, hid_t access);

/* Brings all writes so far to the disk (after H5Fflush; fsync). First what lies
 * behind the old end of the file, then what is overwritten: a full disk stops
 * it in the first part, and the file stays as the last commit left it. Errors:
 * TSR_E_IO; from then on every commit fails. */
tsr_status tsr_hdf5_store_commit(tsr_hdf5_store *store, tsr_err *err);

/* Closes; what was not committed is lost. NULL is fine. */
void tsr_hdf5_store_free(tsr_hdf5_store *store);

#endif

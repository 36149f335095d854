/* Whether HDF5 can read a file that has no seal: one of tessera 0.1, of another
 * program, or one that its writer is just changing. HDF5 1.10 dies of some
 * damaged files, so a child process looks at everything first: where it dies,
 * or loses its way, the file is damaged. For src/io only. */
#ifndef TSR_IO_HDF5_TRIAL_H
#define TSR_IO_HDF5_TRIAL_H

#include "core/status.h"
#include "store/hdf5_store.h"

/* Errors: TSR_E_DATA (damaged), TSR_E_IO (no child process). */
tsr_status tsr_hdf5_trial(tsr_hdf5_store *store, tsr_err *err);

#endif

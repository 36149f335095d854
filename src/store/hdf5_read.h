/* An HDF5 file of a run, opened for reading beside its writer, or after it was
 * killed. For src/io only. */
#ifndef TSR_IO_HDF5_READ_H
#define TSR_IO_HDF5_READ_H

#include "core/status.h"
#include "store/hdf5_store.h"

#include <hdf5.h>

typedef struct {
    hid_t file;            /* < 0: closed */
    tsr_hdf5_store *store; /* through which HDF5 reads; NULL: closed */
} tsr_hdf5_input;

/* Finishes an interrupted commit first (tsr_hdf5_store_recover). While a writer
 * lives, opening can meet the milliseconds in which it changes the file, and is
 * tried a few times; `check` (NULL: none) is part of that: it looks at what the
 * caller needs and returns TSR_E_DATA where it cannot be read. Messages name
 * the file. Errors: TSR_E_NOINPUT (no such file), TSR_E_DATA (not HDF5, or
 * damaged), TSR_E_IO. */
tsr_status tsr_hdf5_input_open(const char *path,
                               tsr_status (*check)(hid_t file, void *context,
                                                   tsr_err *err),
                               void *context, tsr_hdf5_input *input,
                               tsr_err *err);
void tsr_hdf5_input_close(tsr_hdf5_input *input);

/* Whether there is an object at a path "a/b/c". */
int tsr_hdf5_has(hid_t file, const char *path);

#endif

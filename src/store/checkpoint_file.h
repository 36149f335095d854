/* A checkpoint as bytes: the HDF5 file in memory, its seal, its names on the
 * disk. For src/store/checkpoint*.c only. */
#ifndef TSR_STORE_CHECKPOINT_FILE_H
#define TSR_STORE_CHECKPOINT_FILE_H

#include "core/status.h"

#include <hdf5.h>

/* A new HDF5 file that lives in memory only. `file` must keep its place while
 * the file is open: the address is its name. */
tsr_status tsr_checkpoint_image_new(hid_t *file, tsr_err *err);

/* Its bytes with the seal behind them; caller frees. */
tsr_status tsr_checkpoint_image_take(hid_t file, char **content, size_t *size,
                                     tsr_err *err);

/* Reads a file, verifies its seal, opens it from memory; `file` as above, < 0
 * on failure.
 * Errors: TSR_E_NOINPUT, TSR_E_IO, TSR_E_DATA, TSR_E_NOMEM. */
tsr_status tsr_checkpoint_image_open(const char *path, hid_t *file,
                                     tsr_err *err);

/* PATH.tmp, synced; PATH becomes PATH.previous; PATH.tmp becomes PATH; the
 * directory is synced. PATH stays what it was until the last rename replaces
 * it, so one good checkpoint has a known name at every moment. */
tsr_status tsr_checkpoint_file_replace(const char *path, const char *content,
                                       size_t size, tsr_err *err);

#endif

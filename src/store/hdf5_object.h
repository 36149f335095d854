/* What all HDF5 files of a run are made of: attributes and parts of data sets.
 * For src/store only. */
#ifndef TSR_STORE_HDF5_OBJECT_H
#define TSR_STORE_HDF5_OBJECT_H

#include "core/status.h"

#include <hdf5.h>

/* HDF5's error stack as our messages. */

/* Switches HDF5's printing of its error stack off. A thread-safe build of HDF5
 * (Debian's is one) keeps this setting for each thread, so every entry point
 * that calls HDF5 begins with it. Cheap. The first call also keeps HDF5 from
 * closing what is open when the process exits: HDF5 1.10 crashes there after a
 * failed write. */
void tsr_hdf5_quiet(void);

/* As tsr_fail, with the innermost reason that HDF5 gives put behind the
 * message. To be called right after the HDF5 call that failed: the next one
 * clears the reason. */
tsr_status tsr_hdf5_fail(tsr_err *err, tsr_status status, const char *format,
                         ...) TSR_PRINTF(3, 4);

/* Closes what the identifier stands for, except a file; does nothing where it
 * is < 0. */
void tsr_hdf5_close(hid_t id);

/* ---- attributes ---- */

/* netCDF finds the order of dimensions and variables, hence their numbers, from
 * the order of creation; without it a file opens for reading only. */
enum { TSR_HDF5_ORDER = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED };

/* A file or group to be created with this property list keeps that order. */
int tsr_hdf5_track_order(hid_t create);

/* UTF-8 of variable length; caller closes; < 0 with HDF5's error stack. */
hid_t tsr_hdf5_text_type(void);

/* A new attribute of n values; n = 0: a scalar. Errors: TSR_E_IO. */
tsr_status tsr_hdf5_attribute(hid_t object, const char *name, hid_t type,
                              hsize_t n, const void *value, tsr_err *err);

/* New text attributes: pairs of a name and its text, then NULL. Where a text is
 * NULL, there is no attribute. Texts may have any length (netCDF: NC_STRING):
 * they lie in the heap of the file, not in the object's header with its 64 KiB
 * (the text of a config can exceed that). Errors: TSR_E_IO. */
tsr_status tsr_hdf5_texts(hid_t object, tsr_err *err, ...);

/* A text attribute, of fixed or variable length; caller frees; NULL where there
 * is none. */
char *tsr_hdf5_attribute_text(hid_t object, const char *name);

/* A scalar integer attribute; `otherwise` where there is none. */
long long tsr_hdf5_attribute_integer(hid_t object, const char *name,
                                     long long otherwise);

/* ---- data sets ---- */

/* Sizes of a data set; returns its rank, or -1. size [H5S_MAX_RANK]. */
int tsr_hdf5_shape(hid_t data, hsize_t *size);

/* A block of a data set, size [rank] from `offset` [rank] on, into `to` or,
 * with that NULL, out of `from`. 0 where HDF5 fails, with its error stack. */
int tsr_hdf5_block(hid_t data, hid_t type, int rank, const hsize_t *offset,
                   const hsize_t *size, void *to, const void *from);

/* Whether there is an object at a path "a/b/c". */
int tsr_hdf5_has(hid_t file, const char *path);

#endif

/* Attributes and data sets of the run's HDF5 files. For src/store only. */
#ifndef TSR_STORE_HDF5_OBJECT_H
#define TSR_STORE_HDF5_OBJECT_H

#include "core/status.h"

#include <hdf5.h>
#include <hdf5_hl.h>

/* ---- errors ---- */

/* Disables HDF5's printing of errors. A thread-safe build of HDF5 (such as
 * Debian's) has this setting per thread, so that the functions of src/store
 * make this call before they use HDF5. The call is cheap. The first one also
 * prevents HDF5 from closing open objects when the process exits, because HDF5
 * 1.10 would crash there after a failed write. */
void tsr_hdf5_quiet(void);

/* As tsr_fail, followed by the innermost reason of HDF5's error stack. Must be
 * called immediately after the HDF5 call that failed, because the next call
 * clears the reason. */
tsr_status tsr_hdf5_fail(tsr_err *err, tsr_status status, const char *format,
                         ...) TSR_PRINTF(3, 4);

/* Closes the object of an identifier other than a file. Does nothing for id <
 * 0. */
void tsr_hdf5_close(hid_t id);

/* ---- attributes ---- */

/* netCDF numbers dimensions and variables by their order of creation. It opens
 * a file that was made without these flags for reading only. */
enum { TSR_HDF5_ORDER = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED };

/* Sets these flags in a property list for creating files or groups. Returns 0
 * on failure. */
int tsr_hdf5_track_order(hid_t create);

/* Type of UTF-8 texts of variable length. The caller closes the type; < 0:
 * failed, with HDF5's error stack. */
hid_t tsr_hdf5_text_type(void);

/* Creates an attribute of n values; n = 0: a scalar. Errors: TSR_E_IO. */
tsr_status tsr_hdf5_attribute(hid_t object, const char *name, hid_t type,
                              hsize_t n, const void *value, tsr_err *err);

/* Creates text attributes from pairs of name and text, ended by NULL. A NULL
 * text creates no attribute. Texts are stored in the heap of the file (netCDF:
 * NC_STRING) and may be longer than the 64 KiB of an object header, which the
 * text of a configuration can exceed. Errors: TSR_E_IO. */
tsr_status tsr_hdf5_texts(hid_t object, tsr_err *err, ...);

/* Reads a text attribute of fixed or variable length; the caller frees it.
 * NULL: no such attribute, or not a single text. */
char *tsr_hdf5_attribute_text(hid_t object, const char *name);

/* Reads an attribute that is a single integer; returns `otherwise` if there is
 * no such attribute. */
long long tsr_hdf5_attribute_integer(hid_t object, const char *name,
                                     long long otherwise);

/* ---- data sets ---- */

/* Sizes of a data set: size [H5S_MAX_RANK] out. Returns its rank, or -1, also
 * where the sizes exceed what the stored bytes can be unpacked to, so that a
 * small file cannot claim terabytes. */
int tsr_hdf5_shape(hid_t data, hsize_t *size);

/* H5DSiterate_scales for one axis of a data set of this rank: calls visit for
 * each dimension scale. Returns -1 as well if the attribute with the scales is
 * no list of references for each axis, which the library does not check. */
herr_t tsr_hdf5_scales(hid_t data, int rank, int axis, H5DS_iterate_t visit,
                       void *context);

/* Reads a block of a data set into `to`, or writes `from` if `to` is NULL. The
 * block begins at offset [rank] and has size [rank]. Returns 0 on failure, with
 * HDF5's error stack. */
int tsr_hdf5_block(hid_t data, hid_t type, int rank, const hsize_t *offset,
                   const hsize_t *size, void *to, const void *from);

/* Does an object exist at the path "a/b/c"? */
int tsr_hdf5_has(hid_t file, const char *path);

#endif

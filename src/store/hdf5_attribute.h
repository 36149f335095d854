/* Attributes of HDF5 objects. For src/io only. */
#ifndef TSR_IO_HDF5_ATTRIBUTE_H
#define TSR_IO_HDF5_ATTRIBUTE_H

#include "core/status.h"

#include <hdf5.h>

/* UTF-8 of variable length; caller closes; < 0 with HDF5's error stack. */
hid_t tsr_hdf5_text_type(void);

/* A new scalar attribute. Errors: TSR_E_IO. */
tsr_status tsr_hdf5_attribute(hid_t object, const char *name, hid_t type,
                              const void *value, tsr_err *err);

/* A new text attribute of any length (netCDF: NC_STRING): it lies in the heap
 * of the file, not in the object's header with its 64 KiB (the text of a config
 * can exceed that). Errors: TSR_E_IO. */
tsr_status tsr_hdf5_text(hid_t object, const char *name, const char *text,
                         tsr_err *err);

/* A text attribute, of fixed or variable length; caller frees; NULL where there
 * is none. */
char *tsr_hdf5_attribute_text(hid_t object, const char *name);

/* A scalar integer attribute; `otherwise` where there is none. */
long long tsr_hdf5_attribute_integer(hid_t object, const char *name,
                                     long long otherwise);

#endif

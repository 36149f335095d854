/* HDF5's error stack as our messages. */
#ifndef TSR_IO_HDF5_ERROR_H
#define TSR_IO_HDF5_ERROR_H

#include "core/status.h"

/* Switches HDF5's printing of its error stack off. A thread-safe build of HDF5
 * (Debian's is one) keeps this setting for each thread, so every entry point
 * that calls HDF5 begins with it. Cheap. */
void tsr_hdf5_quiet(void);

/* As tsr_fail, with the innermost reason that HDF5 gives put behind the
 * message. To be called right after the HDF5 call that failed: the next one
 * clears the reason. */
tsr_status tsr_hdf5_fail(tsr_err *err, tsr_status status, const char *format,
                         ...) TSR_PRINTF(3, 4);

#endif

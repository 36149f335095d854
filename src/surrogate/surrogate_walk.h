/* Walks by a surrogate on an OpenCL device (kernels/surrogate.cl). */
#ifndef TSR_SURROGATE_SURROGATE_WALK_H
#define TSR_SURROGATE_SURROGATE_WALK_H

#include "gpu/device.h"
#include "surrogate/walker.h"

/* Builds the kernel for the molecule. Device and spec are borrowed. Errors:
 * TSR_E_DEVICE (*out NULL), also where a work-group's memory is too small for
 * the molecule; TSR_E_NOMEM. */
tsr_status tsr_surrogate_device_new(const tsr_device *device,
                                    const tsr_surrogate_spec *spec,
                                    tsr_surrogate_engine **out, tsr_err *err);

#endif

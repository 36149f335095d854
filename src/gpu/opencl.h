/* OpenCL for the files of src/gpu; no other layer includes this. */
#ifndef TSR_GPU_OPENCL_H
#define TSR_GPU_OPENCL_H

#include "gpu/device.h"

#include <CL/cl.h>

struct tsr_device {
    tsr_device_info info;
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
};

/* "CL_OUT_OF_RESOURCES", or "unknown OpenCL error". */
const char *tsr_cl_symbol(cl_int code);

/* TSR_E_DEVICE, or TSR_E_NOMEM where the host ran out; the message names the
 * device (NULL: none yet), the call and the symbol. */
tsr_status tsr_cl_fail(tsr_err *err, const tsr_device *device, const char *call,
                       cl_int code);

#endif

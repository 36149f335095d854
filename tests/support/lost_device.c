/* A library to preload (LD_PRELOAD) that loses the device: from kernel launch
 * number TSR_LOST_AT on, each fails with CL_OUT_OF_RESOURCES, as after a fault
 * of the hardware or the driver. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef cl_int launch(cl_command_queue, cl_kernel, cl_uint, const size_t *,
                      const size_t *, const size_t *, cl_uint, const cl_event *,
                      cl_event *);

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                              cl_uint dimensions, const size_t *offset,
                              const size_t *global, const size_t *local,
                              cl_uint n_wait, const cl_event *wait,
                              cl_event *event)
{
    static atomic_long count;
    const char *at = getenv("TSR_LOST_AT");
    void *found = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    launch *real;
    memcpy(&real, &found, sizeof real);
    if (at != NULL && atomic_fetch_add(&count, 1) + 1 >= atol(at))
        return CL_OUT_OF_RESOURCES;
    return real(queue, kernel, dimensions, offset, global, local, n_wait, wait,
                event);
}

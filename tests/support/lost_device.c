/* A library to preload (LD_PRELOAD) that spoils the device: from kernel launch
 * number TSR_LOST_AT on, each fails with CL_OUT_OF_RESOURCES, as after a fault
 * of the hardware or the driver; from number TSR_WRONG_AT on, what updates add
 * to profiles counts 1.25 times, while full sums of all stay right. */
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

static atomic_long n_launch;

static int is_beyond(const char *variable)
{
    const char *at = getenv(variable);
    return at != NULL && atomic_load(&n_launch) >= atol(at);
}

typedef cl_int set_argument(cl_kernel, cl_uint, size_t, const void *);

/* Of kernel page_tile: 2 the scale of the fixed point, 3 whether all is fresh,
 * set in this order before every launch by the thread that owns the kernel. */
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
                      const void *value)
{
    static _Thread_local float scale;
    void *found = dlsym(RTLD_NEXT, "clSetKernelArg");
    set_argument *real;
    memcpy(&real, &found, sizeof real);
    if (index == 2 && size == sizeof scale)
        memcpy(&scale, value, sizeof scale);
    if (index == 3 && is_beyond("TSR_WRONG_AT") &&
        *(const cl_uint *)value == 0) {
        float wrong = 1.25f * scale;
        real(kernel, 2, sizeof wrong, &wrong);
    }
    return real(kernel, index, size, value);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                              cl_uint dimensions, const size_t *offset,
                              const size_t *global, const size_t *local,
                              cl_uint n_wait, const cl_event *wait,
                              cl_event *event)
{
    void *found = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    launch *real;
    memcpy(&real, &found, sizeof real);
    atomic_fetch_add(&n_launch, 1);
    if (is_beyond("TSR_LOST_AT"))
        return CL_OUT_OF_RESOURCES;
    return real(queue, kernel, dimensions, offset, global, local, n_wait, wait,
                event);
}

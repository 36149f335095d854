/* A library to preload (LD_PRELOAD) under Oclgrind, for --uninitialized. Its
 * record of which bytes of a buffer have a value is wrong after a write of a
 * part of the buffer: the rest of the buffer, and what lies before the part,
 * count as without value. Memory that is mapped for reading and writing counts
 * so, too, and a new buffer inherits the record of a released one. Here a write
 * of a part gives the whole buffer a value, as does a mapping, and no buffer is
 * released. Buffers that the host does not write, local memory and private
 * memory are followed exactly. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void find(void *to, const char *name)
{
    void *at = dlsym(RTLD_NEXT, name);
    memcpy(to, &at, sizeof at);
}

/* Oclgrind's device is a GPU. With TESSERA_SIMULATED=cpu it is a processor,
 * whose kernels differ. */
cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size,
                       void *value, size_t *size_out)
{
    cl_int (*real)(cl_device_id, cl_device_info, size_t, void *, size_t *);
    const char *kind = getenv("TESSERA_SIMULATED");
    find(&real, "clGetDeviceInfo");
    const cl_int code = real(device, what, size, value, size_out);
    if (code == CL_SUCCESS && what == CL_DEVICE_TYPE && value != NULL &&
        kind != NULL && strcmp(kind, "cpu") == 0)
        *(cl_device_type *)value = CL_DEVICE_TYPE_CPU;
    return code;
}

typedef void *map_buffer(cl_command_queue, cl_mem, cl_bool, cl_map_flags,
                         size_t, size_t, cl_uint, const cl_event *, cl_event *,
                         cl_int *);
typedef cl_int write_buffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t,
                            const void *, cl_uint, const cl_event *,
                            cl_event *);

cl_int clReleaseMemObject(cl_mem buffer)
{
    (void)buffer;
    return CL_SUCCESS;
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool waits,
                         cl_map_flags flags, size_t at, size_t size,
                         cl_uint n_wait, const cl_event *wait, cl_event *event,
                         cl_int *code)
{
    map_buffer *real;
    find(&real, "clEnqueueMapBuffer");
    if ((flags & CL_MAP_WRITE) != 0)
        flags &= ~(cl_map_flags)CL_MAP_READ;
    return real(queue, buffer, waits, flags, at, size, n_wait, wait, event,
                code);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer,
                            cl_bool waits, size_t at, size_t size,
                            const void *from, cl_uint n_wait,
                            const cl_event *wait, cl_event *event)
{
    write_buffer *real;
    size_t whole;
    cl_int code;
    find(&real, "clEnqueueWriteBuffer");
    code = real(queue, buffer, CL_TRUE, at, size, from, n_wait, wait, event);
    (void)waits;
    if (code != CL_SUCCESS)
        return code;
    code = clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof whole, &whole, NULL);
    if (code != CL_SUCCESS || size == whole)
        return code;
    void *mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0,
                                      whole, 0, NULL, NULL, &code);
    return mapped == NULL
               ? code
               : clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL);
}

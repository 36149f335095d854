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

/* Kernel programs: embedded sources, built for one device. */

/* The texts, embedded at build by kernels/embed.c. */
typedef struct {
    const char *name; /* file name, as in kernels/ */
    const char *text; /* ends with a zero byte */
    size_t size;      /* without it */
} tsr_kernel_source;

extern const tsr_kernel_source tsr_kernel_sources[]; /* ends with name NULL */

typedef struct {
    cl_program program;
    uint64_t source_hash; /* FNV-1a 64 over the sources in order */
} tsr_program;

/* SHORT_RANGE of kernels/page_tile.cl: whether dq r stays below 0.86 pi for all
 * distances up to d_bound_ang (0: no bound is known), as on the grid of
 * scattering/q_grid.h. */
static inline int tsr_is_short_range(double dq_inv_ang, double d_bound_ang)
{
    const double range = 2.7017696820872223; /* 0.86 pi */
    return d_bound_ang > 0.0 &&
           dq_inv_ang * d_bound_ang <= range * (1.0 + 1e-6);
}

/* Builds the sources named (as in kernels/), in order, as one program. With
 * TSR_KERNEL_DIR in the environment they are read from there instead.
 * Errors: TSR_E_NOINPUT, TSR_E_INTERNAL (no such source), TSR_E_DEVICE with
 * the whole build log as far as a message holds it. */
tsr_status tsr_program_build(const tsr_device *device, int n,
                             const char *const *name, const char *options,
                             tsr_program *out, tsr_err *err);

/* A text that ships with the kernels (path NULL), or of a file. out: caller
 * frees. Errors: TSR_E_NOINPUT, TSR_E_INTERNAL. */
tsr_status tsr_program_text(const char *name, const char *path, char **out,
                            tsr_err *err);

/* TSR_KERNEL_DIR; NULL: not set, or empty. */
const char *tsr_program_folder(void);

void tsr_program_clear(tsr_program *program);

#endif

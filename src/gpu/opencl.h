/* OpenCL for files with kernels: programs, objects of one owner, and pinned
 * memory for transfers to a device. */
#ifndef TSR_GPU_OPENCL_H
#define TSR_GPU_OPENCL_H

#include "gpu/device.h"

#include <CL/cl.h>

struct tsr_device {
    tsr_device_info info;
    cl_device_id id;
    cl_context context;
};

/* Reports a failed OpenCL call: TSR_E_DEVICE, or TSR_E_NOMEM if the host is out
 * of memory. The message has the device (NULL: none yet), the call and the
 * symbol of the code. */
tsr_status tsr_cl_fail(tsr_err *err, const tsr_device *device, const char *call,
                       cl_int code);

/* TSR_OK for CL_SUCCESS, else tsr_cl_fail. */
static inline tsr_status tsr_cl_status(tsr_err *err, const tsr_device *device,
                                       const char *call, cl_int code)
{
    return code == CL_SUCCESS ? TSR_OK : tsr_cl_fail(err, device, call, code);
}

/* ---- programs ---- */

/* A kernel source, embedded at build time by kernels/embed.c. */
typedef struct {
    const char *name; /* file name in kernels/ */
    const char *text; /* zero-terminated */
    size_t size;      /* without the final zero */
} tsr_kernel_source;

extern const tsr_kernel_source tsr_kernel_sources[]; /* ends with name NULL */

typedef struct {
    cl_program program;
    uint64_t source_hash; /* FNV-1a 64 over the sources in order */
} tsr_program;

/* SHORT_RANGE of kernels/page_tile.cl: 1 if dq r stays below 0.86 pi for all
 * distances up to d_bound_ang (0: unknown), as on the grid of
 * scattering/q_grid.h. */
static inline int tsr_is_short_range(double dq_inv_ang, double d_bound_ang)
{
    const double range = 2.7017696820872223; /* 0.86 pi */
    return d_bound_ang > 0.0 &&
           dq_inv_ang * d_bound_ang <= range * (1.0 + 1e-6);
}

/* Builds the named sources of kernels/, in this order, as one program. If
 * TSR_KERNEL_DIR is set, the sources are read from that folder. Errors:
 * TSR_E_NOINPUT, TSR_E_INTERNAL (no such source), TSR_E_DEVICE with as much of
 * the build log as fits into a message. */
tsr_status tsr_program_build(const tsr_device *device, int n,
                             const char *const *name, const char *options,
                             tsr_program *out, tsr_err *err);

/* "device, driver; source hash; options", for the trace. */
void tsr_program_describe(const tsr_program *program, const tsr_device *device,
                          const char *options, char *text, size_t size);

void tsr_program_clear(tsr_program *program);

/* ---- objects of one owner ----
 *
 * The counterpart of a memory pool (core/pool.h): objects are created one after
 * another, each only if all earlier ones succeeded. One check at the end covers
 * all of them, and all are released together. */

enum { TSR_CL_OBJECTS = 24 };

enum { TSR_CL_QUEUE, TSR_CL_KERNEL, TSR_CL_BUFFER, TSR_CL_MAPPED };

typedef struct {
    const tsr_device *device; /* borrowed, set by the owner */
    const char *call;         /* the call that failed */
    cl_int code;              /* its error code */
    int n;
    struct {
        int kind;               /* TSR_CL_QUEUE, ... */
        void *at;               /* the object; MAPPED: the host's address */
        cl_mem buffer;          /* MAPPED: the mapped buffer */
        cl_command_queue queue; /* MAPPED: the queue that mapped the buffer */
    } object[TSR_CL_OBJECTS];
} tsr_cl;

/* The functions that create an object return NULL after a failure. */
cl_command_queue tsr_cl_queue(tsr_cl *cl, cl_command_queue_properties with);
cl_kernel tsr_cl_kernel(tsr_cl *cl, const tsr_program *program,
                        const char *name);

/* from [bytes]: initial contents, copied; NULL: undefined contents. */
cl_mem tsr_cl_buffer(tsr_cl *cl, cl_mem_flags with, size_t bytes, void *from);

/* Pinned host memory, mapped for the owner's lifetime. *buffer out (NULL: not
 * wanted): the buffer behind it. */
void *tsr_cl_pinned(tsr_cl *cl, cl_command_queue queue, size_t bytes,
                    cl_mem *buffer);

/* The error of the first failed creation, or TSR_OK. */
tsr_status tsr_cl_check(const tsr_cl *cl, tsr_err *err);
void tsr_cl_finish(const tsr_cl *cl); /* waits for the owner's queues */
void tsr_cl_clear(tsr_cl *cl);        /* waits, then releases all objects */

void tsr_cl_release_event(cl_event *event); /* NULL is fine */

/* ---- staging ----
 *
 * The bus to a device transfers pinned memory at its full speed, without the
 * processor. Data in other memory are first copied into pinned memory by the
 * driver, in a single thread. Here several threads produce the data piece by
 * piece in pinned memory, and each piece is transferred while the next one is
 * produced. Kernels never access this memory. */

enum {
    TSR_STAGING_THREADS = 8, /* maximum; more threads do not increase the bus's
                                throughput */
    TSR_STAGING_SLOTS = 2,   /* of a thread: one in transfer, one being
                                filled */
    TSR_STAGING_BYTES = 1 << 19 /* size of a slot and of a piece */
};

typedef struct {
    tsr_cl cl;
    cl_command_queue queue;
    char *at; /* [n_thread][slots] pieces */
    int n_thread;
    struct {
        cl_event sent[TSR_STAGING_SLOTS]; /* transfer of each slot, or NULL */
        int next;                         /* slot to fill next */
        double seconds;                   /* time on the bus */
        cl_int code;                      /* of the last transfer */
    } lane[TSR_STAGING_THREADS];
} tsr_staging;

/* Callback: writes elements first to first + n - 1 to `out`. Called by several
 * threads, for different elements. */
typedef void (*tsr_staging_fill)(void *context, size_t first, size_t n,
                                 void *out);

/* Device and queue (with profiling enabled) are borrowed. Errors: TSR_E_DEVICE;
 * s can be cleared after an error, and also if it is all zero. */
tsr_status tsr_staging_make(tsr_staging *s, const tsr_device *device,
                            cl_command_queue queue, tsr_err *err);
void tsr_staging_clear(tsr_staging *s);

/* Transfers n elements of `size` bytes (at most TSR_STAGING_BYTES) to a buffer.
 * Returns when all elements are produced; the last pieces may still be in
 * transfer. Errors: TSR_E_DEVICE. */
tsr_status tsr_staging_send(tsr_staging *s, cl_mem to, size_t n, size_t size,
                            tsr_staging_fill fill, void *context, tsr_err *err);

/* Waits for all transfers. Returns the sum of their times on the bus since the
 * previous call, seconds. */
double tsr_staging_wait(tsr_staging *s);

#endif

/* OpenCL, for files that have kernels: programs, objects, and pinned memory
 * through which data goes to a device. */
#ifndef TSR_GPU_OPENCL_H
#define TSR_GPU_OPENCL_H

#include "gpu/device.h"

#include <CL/cl.h>

struct tsr_device {
    tsr_device_info info;
    cl_device_id id;
    cl_context context;
};

/* TSR_E_DEVICE, or TSR_E_NOMEM where the host ran out; the message names the
 * device (NULL: none yet), the call and the symbol. */
tsr_status tsr_cl_fail(tsr_err *err, const tsr_device *device, const char *call,
                       cl_int code);

/* The same of a call that may have gone well: TSR_OK then. */
static inline tsr_status tsr_cl_status(tsr_err *err, const tsr_device *device,
                                       const char *call, cl_int code)
{
    return code == CL_SUCCESS ? TSR_OK : tsr_cl_fail(err, device, call, code);
}

/* ---- programs ---- */

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

/* A text that ships with the kernels (path NULL), or of a file. *owned: caller
 * frees; NULL where the text is part of the program. Errors: TSR_E_NOINPUT,
 * TSR_E_INTERNAL. */
tsr_status tsr_program_text(const char *name, const char *path, char **owned,
                            const char **text, size_t *size, tsr_err *err);

/* "device, driver; source hash; options", as a trace has it. */
void tsr_program_describe(const tsr_program *program, const tsr_device *device,
                          const char *options, char *text, size_t size);

void tsr_program_clear(tsr_program *program);

/* ---- objects of one owner ----
 *
 * As a pool is of memory (core/pool.h): objects are made in a row, each only if
 * those before it could be, and checked once; all are released together. */

enum { TSR_CL_OBJECTS = 24 };

enum { TSR_CL_QUEUE, TSR_CL_KERNEL, TSR_CL_BUFFER, TSR_CL_MAPPED };

typedef struct {
    const tsr_device *device; /* borrowed, set by the owner */
    const char *call;         /* what failed, by */
    cl_int code;              /* this */
    int n;
    struct {
        int kind; /* TSR_CL_QUEUE, ... */
        void *at;
        cl_mem of;              /* MAPPED: this buffer, */
        cl_command_queue queue; /* by this queue */
    } object[TSR_CL_OBJECTS];
} tsr_cl;

cl_command_queue tsr_cl_queue(tsr_cl *cl, cl_command_queue_properties with);
cl_kernel tsr_cl_kernel(tsr_cl *cl, const tsr_program *program,
                        const char *name);

/* from [bytes]: what it begins with, which is copied; NULL: anything. */
cl_mem tsr_cl_buffer(tsr_cl *cl, cl_mem_flags with, size_t bytes, void *from);

/* Memory of the host that is pinned, mapped for good; *buffer (NULL: not
 * wanted) is what it is mapped of. */
void *tsr_cl_pinned(tsr_cl *cl, cl_command_queue queue, size_t bytes,
                    cl_mem *buffer);

tsr_status tsr_cl_check(const tsr_cl *cl, tsr_err *err);
void tsr_cl_finish(const tsr_cl *cl); /* waits for its queues */
void tsr_cl_clear(tsr_cl *cl);        /* and for these first */

void tsr_cl_release_event(cl_event *event); /* releases it, unless NULL */

/* Numbers of the device's precision: into place `at` of an array, as an
 * argument of a kernel. */
static inline void tsr_cl_store_real(void *to, size_t at, double value,
                                     int is_double)
{
    if (is_double)
        ((double *)to)[at] = value;
    else
        ((float *)to)[at] = (float)value;
}
cl_int tsr_cl_set_real(cl_kernel kernel, cl_uint at, double value,
                       int is_double);

/* ---- staging ----
 *
 * A bus reads memory that cannot be moved (pinned) at its full speed and
 * without the processor; anything else the driver first copies there itself, in
 * one thread. Here several threads make the data, piece by piece, in pinned
 * memory, and each piece is on its way while the next is made. Kernels never
 * see that memory: it is the source of copies, nothing else. */

enum {
    TSR_STAGING_THREADS = 8, /* at most; the bus is busy then */
    TSR_STAGING_SLOTS = 2,   /* of a thread: one on its way, one being filled */
    TSR_STAGING_BYTES = 1 << 19 /* of a slot, and so of a piece */
};

typedef struct {
    tsr_cl cl;
    cl_command_queue queue;
    char *at; /* [n_thread][slots] pieces */
    int n_thread;
    struct {
        cl_event sent[TSR_STAGING_SLOTS]; /* what a slot is read by, or NULL */
        int next;                         /* slot */
        double seconds;                   /* on the bus */
        cl_int code;
    } lane[TSR_STAGING_THREADS];
} tsr_staging;

/* Makes elements first to first + n - 1 at `out`; called by several threads,
 * for other elements each. */
typedef void (*tsr_staging_fill)(void *context, size_t first, size_t n,
                                 void *out);

/* Device and queue (with profiling) are borrowed. Errors: TSR_E_DEVICE; s can
 * be cleared then, as it can where it is all zero. */
tsr_status tsr_staging_make(tsr_staging *s, const tsr_device *device,
                            cl_command_queue queue, tsr_err *err);
void tsr_staging_clear(tsr_staging *s);

/* Queues the writing of n elements of `size` bytes (at most a piece's) to a
 * buffer. Returns when all are made, with the last ones still on their way.
 * Errors: TSR_E_DEVICE. */
tsr_status tsr_staging_send(tsr_staging *s, cl_mem to, size_t n, size_t size,
                            tsr_staging_fill fill, void *context, tsr_err *err);

/* Waits for all that was sent; the seconds it took on the bus since the last
 * time this was asked. */
double tsr_staging_wait(tsr_staging *s);

#endif

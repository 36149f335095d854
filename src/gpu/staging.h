/* Pinned memory of the host, through which data goes to a device.
 *
 * A bus reads memory that cannot be moved (pinned) at its full speed and
 * without the processor; anything else the driver first copies there itself, in
 * one thread. Here several threads make the data, piece by piece, in pinned
 * memory, and each piece is on its way while the next is made. Kernels never
 * see that memory: it is the source of copies, nothing else. */
#ifndef TSR_GPU_STAGING_H
#define TSR_GPU_STAGING_H

#include "gpu/opencl.h"

enum {
    TSR_STAGING_THREADS = 8, /* at most; the bus is busy then */
    TSR_STAGING_SLOTS = 2,   /* of a thread: one on its way, one being filled */
    TSR_STAGING_BYTES = 1 << 19 /* of a slot, and so of a piece */
};

typedef struct {
    const tsr_device *device;
    cl_command_queue queue;
    cl_mem pinned;
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

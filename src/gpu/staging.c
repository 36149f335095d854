/* Pieces of data, made by threads in pinned memory and sent from there. */
#include "gpu/staging.h"

#include "core/parallel.h"

#include <stdlib.h>

tsr_status tsr_staging_make(tsr_staging *s, const tsr_device *device,
                            cl_command_queue queue, tsr_err *err)
{
    const int n = tsr_parallel_processors();
    cl_int code;
    *s = (tsr_staging){.device = device,
                       .queue = queue,
                       .n_thread =
                           n < TSR_STAGING_THREADS ? n : TSR_STAGING_THREADS};
    const size_t bytes =
        (size_t)s->n_thread * TSR_STAGING_SLOTS * TSR_STAGING_BYTES;
    s->pinned = clCreateBuffer(device->context,
                               CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR, bytes,
                               NULL, &code);
    if (s->pinned == NULL)
        return tsr_cl_fail(err, device, "clCreateBuffer", code);
    s->at = clEnqueueMapBuffer(queue, s->pinned, CL_TRUE, CL_MAP_WRITE, 0,
                               bytes, 0, NULL, NULL, &code);
    if (s->at == NULL)
        return tsr_cl_fail(err, device, "clEnqueueMapBuffer", code);
    return TSR_OK;
}

/* Waits until a slot of a thread is free. */
static void wait_for(tsr_staging *s, int thread, int slot)
{
    cl_event *sent = &s->lane[thread].sent[slot];
    cl_ulong from = 0, to = 0;
    if (*sent == NULL)
        return;
    clWaitForEvents(1, sent);
    clGetEventProfilingInfo(*sent, CL_PROFILING_COMMAND_START, sizeof from,
                            &from, NULL);
    clGetEventProfilingInfo(*sent, CL_PROFILING_COMMAND_END, sizeof to, &to,
                            NULL);
    s->lane[thread].seconds += to > from ? 1e-9 * (double)(to - from) : 0.0;
    clReleaseEvent(*sent);
    *sent = NULL;
}

double tsr_staging_wait(tsr_staging *s)
{
    double seconds = 0.0;
    for (int t = 0; t < s->n_thread; t++) {
        for (int slot = 0; slot < TSR_STAGING_SLOTS; slot++)
            wait_for(s, t, slot);
        seconds += s->lane[t].seconds;
        s->lane[t].seconds = 0.0;
    }
    return seconds;
}

void tsr_staging_clear(tsr_staging *s)
{
    if (s->queue != NULL)
        tsr_staging_wait(s);
    if (s->at != NULL) {
        clEnqueueUnmapMemObject(s->queue, s->pinned, s->at, 0, NULL, NULL);
        clFinish(s->queue);
    }
    if (s->pinned != NULL)
        clReleaseMemObject(s->pinned);
    *s = (tsr_staging){0};
}

typedef struct {
    tsr_staging *staging;
    cl_mem to;
    size_t n, size, each; /* each: elements of a piece */
    tsr_staging_fill fill;
    void *context;
} delivery;

static void send_piece(void *context, int part, int thread)
{
    const delivery *d = context;
    tsr_staging *s = d->staging;
    if (s->lane[thread].code != CL_SUCCESS)
        return;
    const int slot = s->lane[thread].next++ % TSR_STAGING_SLOTS;
    const size_t first = (size_t)part * d->each;
    const size_t n = d->n - first < d->each ? d->n - first : d->each;
    char *at = s->at + ((size_t)thread * TSR_STAGING_SLOTS + (size_t)slot) *
                           TSR_STAGING_BYTES;
    wait_for(s, thread, slot);
    d->fill(d->context, first, n, at);
    s->lane[thread].code = clEnqueueWriteBuffer(
        s->queue, d->to, CL_FALSE, first * d->size, n * d->size, at, 0, NULL,
        &s->lane[thread].sent[slot]);
    clFlush(s->queue);
}

tsr_status tsr_staging_send(tsr_staging *s, cl_mem to, size_t n, size_t size,
                            tsr_staging_fill fill, void *context, tsr_err *err)
{
    delivery d = {.staging = s,
                  .to = to,
                  .n = n,
                  .size = size,
                  .each = TSR_STAGING_BYTES / size,
                  .fill = fill,
                  .context = context};
    for (int t = 0; t < s->n_thread; t++) {
        s->lane[t].code = CL_SUCCESS;
        s->lane[t].next = 0;
    }
    tsr_parallel_run((int)((n + d.each - 1) / d.each), s->n_thread, send_piece,
                     &d);
    for (int t = 0; t < s->n_thread; t++)
        if (s->lane[t].code != CL_SUCCESS)
            return tsr_cl_fail(err, s->device, "clEnqueueWriteBuffer",
                               s->lane[t].code);
    return TSR_OK;
}

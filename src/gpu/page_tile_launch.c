/* Between host and device: the exchange buffer, launches, results.
 *
 *   mapped    the host keeps the buffer mapped while kernels use it: only for
 *             devices that work in the host's memory (most CPUs)
 *   unmapped  mapped to write, unmapped for the kernel, mapped to read
 *   copy      the host has pinned memory of its own; a write and a read
 *
 * What a kernel and the host see of one another's writes differs between
 * drivers, so every batch tries it out first. */
#include "gpu/page_tile.h"

#include <math.h>
#include <string.h>

static const cl_map_flags map_all = CL_MAP_READ | CL_MAP_WRITE;

static const tsr_page_tile_engine *engine_of(const tsr_page_tile_batch *b)
{
    return (const tsr_page_tile_engine *)b->base.engine;
}

static void forget(cl_event *event)
{
    if (*event != NULL)
        clReleaseEvent(*event);
    *event = NULL;
}

static void forget_kernels(tsr_page_tile_batch *b)
{
    for (int i = 0; i < b->n_kernel_done; i++)
        forget(&b->kernel_done[i]);
    b->n_kernel_done = 0;
}

/* UNMAPPED: to write units 0..end-1 afresh. */
static cl_int open_input(tsr_page_tile_batch *b, size_t end)
{
    cl_int code = CL_SUCCESS;
    if (b->transfer == TSR_TRANSFER_UNMAPPED)
        b->host = clEnqueueMapBuffer(
            b->queue, b->exchange, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
            end * TSR_EXCHANGE_UNIT, 0, NULL, NULL, &code);
    return code;
}

/* Hands units from..end-1 to the device; is_beside: while kernels of earlier
 * launches run, which costs an event. */
static cl_int send_input(tsr_page_tile_batch *b, size_t from, size_t end,
                         int is_beside)
{
    cl_int code = CL_SUCCESS;
    if (b->transfer == TSR_TRANSFER_COPY) {
        const size_t at = from * TSR_EXCHANGE_UNIT;
        const size_t bytes = (end - from) * TSR_EXCHANGE_UNIT;
        is_beside = is_beside && b->loader != NULL;
        forget(&b->loaded);
        code = clEnqueueWriteBuffer(
            is_beside ? b->loader : b->queue, b->exchange, CL_FALSE, at, bytes,
            b->host + at, 0, NULL, is_beside ? &b->loaded : NULL);
        return code == CL_SUCCESS && is_beside ? clFlush(b->loader) : code;
    }
    if (b->transfer == TSR_TRANSFER_UNMAPPED) {
        code = clEnqueueUnmapMemObject(b->queue, b->exchange, b->host, 0, NULL,
                                       NULL);
        b->host = NULL;
    }
    return code;
}

/* Asks for units from..end-1; *done tells when they are in b->results. */
static cl_int ask_results(tsr_page_tile_batch *b, size_t from, size_t end,
                          cl_event *done)
{
    size_t at = from * TSR_EXCHANGE_UNIT;
    size_t bytes = (end - from) * TSR_EXCHANGE_UNIT;
    cl_int code = CL_SUCCESS;
    if (b->transfer == TSR_TRANSFER_UNMAPPED) {
        b->mapped_results =
            clEnqueueMapBuffer(b->queue, b->exchange, CL_FALSE, CL_MAP_READ, at,
                               bytes, 0, NULL, done, &code);
        b->results = b->mapped_results;
        return code;
    }
    b->results = b->host + at;
    if (b->transfer == TSR_TRANSFER_COPY)
        return clEnqueueReadBuffer(b->queue, b->exchange, CL_FALSE, at, bytes,
                                   b->host + at, 0, NULL, done);
    return CL_SUCCESS; /* there; the kernel's event tells when */
}

static cl_int close_results(tsr_page_tile_batch *b)
{
    void *mapped = b->mapped_results;
    b->mapped_results = NULL;
    return mapped == NULL ? CL_SUCCESS
                          : clEnqueueUnmapMemObject(b->queue, b->exchange,
                                                    mapped, 0, NULL, NULL);
}

/* A kernel that fails may leave work behind; then nothing is in flight. */
static tsr_status drain(tsr_page_tile_batch *b, const char *call, cl_int code,
                        tsr_err *err)
{
    if (b->loader != NULL)
        clFinish(b->loader);
    clFinish(b->queue);
    forget(&b->loaded);
    forget(&b->done);
    close_results(b);
    if (b->transfer == TSR_TRANSFER_UNMAPPED && b->host != NULL) {
        clEnqueueUnmapMemObject(b->queue, b->exchange, b->host, 0, NULL, NULL);
        b->host = NULL;
    }
    clFinish(b->queue);
    return tsr_cl_fail(err, engine_of(b)->device, call, code);
}

static cl_int set_arguments(const tsr_page_tile_engine *e,
                            const tsr_page_tile_batch *b, size_t run_at,
                            int is_fresh)
{
    cl_uint at = (cl_uint)run_at, fresh = (cl_uint)is_fresh;
    float single = (float)e->fixed_scale;
    cl_int code = clSetKernelArg(b->kernel, 1, sizeof at, &at);
    code |= e->options.use_double
                ? clSetKernelArg(b->kernel, 2, sizeof e->fixed_scale,
                                 &e->fixed_scale)
                : clSetKernelArg(b->kernel, 2, sizeof single, &single);
    code |= clSetKernelArg(b->kernel, 3, sizeof fresh, &fresh);
    return code;
}

/* Where nothing follows the kernel, its event tells that all is done. */
static cl_int enqueue_kernel(tsr_page_tile_batch *b, const size_t global[2],
                             const size_t local[2], int is_last)
{
    const int ends =
        is_last && (b->transfer == TSR_TRANSFER_MAPPED || b->out_rows == 0);
    const int timed =
        engine_of(b)->options.profiling && b->n_kernel_done < TSR_MAX_LAUNCHES;
    cl_event event = NULL;
    cl_int code = clEnqueueNDRangeKernel(
        b->queue, b->kernel, 2, NULL, global, local, b->loaded != NULL,
        b->loaded != NULL ? &b->loaded : NULL, ends || timed ? &event : NULL);
    forget(&b->loaded);
    if (code != CL_SUCCESS)
        return code;
    if (timed)
        b->kernel_done[b->n_kernel_done++] = event;
    if (ends && timed)
        code = clRetainEvent(event);
    if (ends && code == CL_SUCCESS)
        b->done = event;
    return code;
}

tsr_status tsr_launch(tsr_page_tile_batch *b, int is_fresh, int is_last,
                      tsr_err *err)
{
    const tsr_page_tile_engine *e = engine_of(b);
    int first = b->n_launched == 0;
    tsr_launch_layout l = tsr_launch_lay_out(e, b);
    size_t lanes = e->options.variant == TSR_PAGE_TILE_SIMT
                       ? (size_t)(e->shape.tile * e->options.parts)
                       : 1;
    size_t global[2] = {l.n_run * (size_t)e->split * lanes,
                        (size_t)e->shape.n_group};
    size_t local[2] = {lanes, 1};
    const char *call = "clEnqueueMapBuffer";
    if (first) {
        forget_kernels(b);
        b->out_rows = l.rows;
    }
    b->n_launched = b->n;
    b->sent = b->used = l.end;
    cl_int code = CL_SUCCESS;
    if (l.n_run > 0) {
        /* with atomics the results start as zeros */
        size_t from = first && e->is_atomic ? 0 : l.begin;
        int is_late = b->host == NULL;
        code = open_input(b, l.end);
        if (code == CL_SUCCESS) {
            tsr_launch_fill(e, b, &l, is_late);
            call = "clEnqueueWriteBuffer";
            code = send_input(b, from, l.end, !first);
        }
        if (code == CL_SUCCESS) {
            call = "clSetKernelArg";
            code = set_arguments(e, b, l.run_at, is_fresh);
        }
        if (code == CL_SUCCESS && !e->options.skip_kernel) {
            call = "clEnqueueNDRangeKernel";
            code = enqueue_kernel(b, global, local, is_last);
        }
    }
    if (code == CL_SUCCESS && is_last && b->out_rows > 0) {
        call = "clEnqueueReadBuffer";
        code =
            ask_results(b, 0, tsr_exchange_out_units(e, b->out_rows), &b->done);
    }
    if (code == CL_SUCCESS) {
        call = "clFlush";
        code = clFlush(b->queue);
    }
    return code == CL_SUCCESS ? TSR_OK : drain(b, call, code, err);
}

tsr_status tsr_launch_widest(tsr_page_tile_batch *b, tsr_err *err)
{
    const tsr_page_tile_engine *e = engine_of(b);
    const tsr_launch_layout l = tsr_launch_lay_out_widest(e, b);
    const size_t lanes = e->options.variant == TSR_PAGE_TILE_SIMT
                             ? (size_t)(e->shape.tile * e->options.parts)
                             : 1;
    const size_t global[2] = {l.n_run * (size_t)e->split * lanes,
                              (size_t)e->shape.n_group};
    const size_t local[2] = {lanes, 1};
    const char *call = "clEnqueueMapBuffer";
    cl_int code = open_input(b, l.end);
    if (code == CL_SUCCESS) {
        tsr_launch_fill_widest(b, &l);
        call = "clEnqueueWriteBuffer";
        code = send_input(b, l.begin, l.end, 0);
    }
    if (code == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel";
        code = set_arguments(e, b, l.run_at, 0);
        if (code == CL_SUCCESS)
            code = clEnqueueNDRangeKernel(b->queue, b->kernel, 2, NULL, global,
                                          local, 0, NULL, NULL);
    }
    if (code == CL_SUCCESS) {
        call = "clFinish";
        code = clFinish(b->queue);
    }
    return code == CL_SUCCESS ? TSR_OK : drain(b, call, code, err);
}

tsr_status tsr_launch_finish(tsr_page_tile_batch *b, tsr_err *err)
{
    const tsr_page_tile_engine *e = engine_of(b);
    const size_t row_size = (size_t)e->shape.row;
    cl_int code = CL_SUCCESS;
    if (b->done != NULL)
        code = clWaitForEvents(1, &b->done);
    forget(&b->done);
    if (code != CL_SUCCESS)
        return drain(b, "clWaitForEvents", code, err);
    const void *results = b->results;
    const int64_t *out = results;
    for (int p = 0; p < b->n; p++) {
        const tsr_tile_system *s = &e->system[b->system[p]];
        memcpy(s->proposed, s->accepted, row_size * sizeof *s->proposed);
        for (int r = 0; r < b->out_count[p]; r++) {
            const int64_t *row = out + (size_t)(b->out_first[p] + r) * row_size;
            for (size_t k = 0; k < row_size; k++)
                s->proposed[k] += row[k];
        }
    }
    code = close_results(b);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, e->device, "clEnqueueUnmapMemObject", code);
}

void tsr_launch_cancel(tsr_page_tile_batch *b)
{
    if (b->n_launched == 0)
        return;
    if (b->loader != NULL)
        clFinish(b->loader);
    clFinish(b->queue);
    forget(&b->loaded);
}

double tsr_page_tile_device_us(const tsr_batch *base)
{
    const tsr_page_tile_batch *b = (const tsr_page_tile_batch *)base;
    double sum = 0.0;
    if (b->n_kernel_done == TSR_MAX_LAUNCHES) /* there may have been more */
        return (double)NAN;
    for (int i = 0; i < b->n_kernel_done; i++) {
        cl_ulong start = 0, end = 0;
        if (clGetEventProfilingInfo(b->kernel_done[i],
                                    CL_PROFILING_COMMAND_START, sizeof start,
                                    &start, NULL) != CL_SUCCESS ||
            clGetEventProfilingInfo(b->kernel_done[i], CL_PROFILING_COMMAND_END,
                                    sizeof end, &end, NULL) != CL_SUCCESS)
            return (double)NAN;
        sum += 1e-3 * (double)(end - start);
    }
    return b->n_kernel_done > 0 ? sum : (double)NAN;
}

/* ---- buffers ---- */

enum { PROBE_WORDS = 64, PROBE_ROUNDS = 3 };

/* Host writes, kernel answers, host reads, as in a step, on memory at both ends
 * of the buffer. Nothing in it can go astray, whatever the device sees. */
static cl_int probe_round(tsr_page_tile_batch *b, cl_kernel kernel,
                          size_t units, uint32_t seed, int *agree)
{
    const size_t words = PROBE_WORDS, one = 1,
                 per = TSR_EXCHANGE_UNIT / sizeof seed;
    const size_t out_at = units - words / per;
    cl_uint argument[3] = {0, (cl_uint)(out_at * per), seed};
    cl_event done = NULL, kernel_done = NULL;
    cl_int code = open_input(b, units);
    if (code != CL_SUCCESS)
        return code;
    void *in = b->host;
    uint32_t *word = in;
    for (size_t i = 0; i < words; i++) {
        word[i] = (uint32_t)i * 7919 + seed * 31;
        word[out_at * per + i] = 0;
    }
    code = send_input(b, 0, units, 0);
    code |= clSetKernelArg(kernel, 0, sizeof b->exchange, &b->exchange);
    for (cl_uint i = 0; i < 3; i++)
        code |= clSetKernelArg(kernel, 1 + i, sizeof argument[i], &argument[i]);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(b->queue, kernel, 1, NULL, &words, &one,
                                      0, NULL, &kernel_done);
    if (code == CL_SUCCESS)
        code = ask_results(b, out_at, units, &done);
    if (code == CL_SUCCESS)
        code = clWaitForEvents(1, done != NULL ? &done : &kernel_done);
    forget(&done);
    forget(&kernel_done);
    if (code != CL_SUCCESS)
        return code;
    const void *out = b->results;
    for (size_t i = 0; i < words; i++) {
        uint32_t got;
        memcpy(&got, (const char *)out + i * sizeof got, sizeof got);
        *agree &= got == ((uint32_t)i * 7919 + seed * 31) * 3 + seed;
    }
    code = close_results(b);
    return code;
}

static tsr_status probe(tsr_page_tile_batch *b, tsr_err *err)
{
    const tsr_page_tile_engine *e = engine_of(b);
    int agree = 1;
    cl_int code;
    cl_kernel kernel =
        clCreateKernel(e->program.program, "exchange_probe", &code);
    if (kernel == NULL)
        return tsr_cl_fail(err, e->device, "clCreateKernel", code);
    for (uint32_t i = 1; i <= PROBE_ROUNDS && code == CL_SUCCESS; i++)
        code = probe_round(b, kernel, b->size, 0x9e3779b9u * i, &agree);
    clFinish(b->queue);
    clReleaseKernel(kernel);
    if (code != CL_SUCCESS)
        return drain(b, "trying the exchange buffer", code, err);
    if (!agree)
        return tsr_fail(err, TSR_E_DEVICE,
                        "%s does not see what the host writes into a buffer, "
                        "or the host not its answer, with %s transfer; leave "
                        "the transfer to the engine or use 'copy'",
                        e->device->info.name,
                        tsr_transfer_name(e->options.transfer));
    return TSR_OK;
}

const char *tsr_transfer_name(tsr_page_tile_transfer transfer)
{
    static const char *const name[] = {"auto", "mapped", "unmapped", "copied"};
    return name[transfer];
}

/* Those that no launch changes; the others are in set_arguments. */
static cl_int set_constant_arguments(const tsr_page_tile_engine *e,
                                     const tsr_page_tile_batch *b)
{
    const cl_uint blocks = (cl_uint)e->shape.n_block;
    const cl_uint groups = (cl_uint)e->shape.n_group;
    const double dq = e->base.dq_inv_ang;
    const float single = (float)dq;
    cl_kernel k = b->kernel;
    cl_int code = clSetKernelArg(k, 0, sizeof b->exchange, &b->exchange);
    code |= clSetKernelArg(k, 4, sizeof e->position, &e->position);
    code |= clSetKernelArg(k, 5, sizeof e->cache, &e->cache);
    code |= clSetKernelArg(k, 6, sizeof e->form_factor, &e->form_factor);
    code |= e->options.use_double
                ? clSetKernelArg(k, 7, sizeof dq, &dq)
                : clSetKernelArg(k, 7, sizeof single, &single);
    code |= clSetKernelArg(k, 8, sizeof blocks, &blocks);
    code |= clSetKernelArg(k, 9, sizeof groups, &groups);
    return code;
}

tsr_status tsr_exchange_make(tsr_page_tile_batch *b, tsr_err *err)
{
    const tsr_page_tile_engine *e = engine_of(b);
    const size_t bytes = b->size * TSR_EXCHANGE_UNIT;
    const int copies = b->transfer == TSR_TRANSFER_COPY;
    const cl_mem_flags host = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
    cl_int code = CL_SUCCESS;
    b->exchange =
        clCreateBuffer(e->device->context, copies ? CL_MEM_READ_WRITE : host,
                       bytes, NULL, &code);
    if (b->exchange != NULL && copies)
        b->pinned =
            clCreateBuffer(e->device->context, host, bytes, NULL, &code);
    if (code != CL_SUCCESS)
        return tsr_cl_fail(err, e->device, "clCreateBuffer", code);
    if (b->transfer != TSR_TRANSFER_UNMAPPED)
        b->host = clEnqueueMapBuffer(b->queue, copies ? b->pinned : b->exchange,
                                     CL_TRUE, map_all, 0, bytes, 0, NULL, NULL,
                                     &code);
    if (code != CL_SUCCESS)
        return tsr_cl_fail(err, e->device, "clEnqueueMapBuffer", code);
    code = set_constant_arguments(e, b);
    if (code != CL_SUCCESS)
        return tsr_cl_fail(err, e->device, "clSetKernelArg", code);
    return probe(b, err);
}

void tsr_exchange_free(tsr_page_tile_batch *b)
{
    cl_mem held = b->pinned != NULL ? b->pinned : b->exchange;
    if (b->loader != NULL)
        clFinish(b->loader);
    if (b->queue != NULL) {
        clFinish(b->queue);
        close_results(b);
        if (b->host != NULL)
            clEnqueueUnmapMemObject(b->queue, held, b->host, 0, NULL, NULL);
        clFinish(b->queue);
    }
    forget(&b->loaded);
    forget(&b->done);
    forget_kernels(b);
    if (b->exchange != NULL)
        clReleaseMemObject(b->exchange);
    if (b->pinned != NULL)
        clReleaseMemObject(b->pinned);
}

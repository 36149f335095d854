/* Batches of the engine by plane waves: entries of what moved, two launches and
 * one read-back for the proposals of many systems. */
#include "gpu/wave_engine.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    tsr_batch base;
    int max_proposal, n; /* in flight */
    int *system;         /* [max_proposal] */
    size_t input_units, sum_rows;
    cl_command_queue queue;
    cl_kernel add, take;
    cl_mem input, pinned, sum, profile;
    cl_uint (*host)[4]; /* pinned: asks, parts, entries; then results */
    float *results;
    cl_event done;
} wave_batch;

static size_t n_result(const tsr_wave_engine *e)
{
    return (size_t)e->n_block * (size_t)e->base.n_pair * TSR_WAVE_BAND;
}

/* Parts that so many loose entries fall into. */
static int n_part(const tsr_wave_engine *e, int n_entry)
{
    const int n = (n_entry + TSR_WAVE_PART - 1) / TSR_WAVE_PART;
    return e->items == 1 && n > 0    ? 1
           : n < TSR_WAVE_MOST_PARTS ? n
                                     : TSR_WAVE_MOST_PARTS;
}

size_t tsr_wave_most_parts(const tsr_wave_engine *e)
{
    return (size_t)n_part(e, 2 * e->n_loose) + (e->n_unit > 0);
}

/* Entries of a proposal at most. */
static size_t most_entries(const tsr_wave_engine *e)
{
    return 2 * (size_t)(e->n_loose + TSR_WAVE_POSE * e->n_unit);
}

static void forget(cl_event *event)
{
    if (*event != NULL)
        clReleaseEvent(*event);
    *event = NULL;
}

/* Launches `n` asks of `rows` parts whose entries end at `used`; the results go
 * behind everything that the host has. */
static tsr_status launch(wave_batch *b, size_t n, size_t rows, size_t used,
                         tsr_err *err)
{
    const tsr_wave_engine *e = (const tsr_wave_engine *)b->base.engine;
    const size_t items = (size_t)e->items, local[2] = {items, 1},
                 add[2] = {(size_t)e->n_block * items, rows},
                 take[2] = {(size_t)e->n_block * items, n};
    cl_int code =
        clEnqueueWriteBuffer(b->queue, b->input, CL_FALSE, 0,
                             used * sizeof *b->host, b->host, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(b->queue, b->add, 2, NULL, add, local, 0,
                                      NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(b->queue, b->take, 2, NULL, take, local,
                                      0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(b->queue, b->profile, CL_FALSE, 0,
                                   n * n_result(e) * sizeof *b->results,
                                   b->results, 0, NULL, &b->done);
    if (code == CL_SUCCESS)
        code = clFlush(b->queue);
    if (code == CL_SUCCESS)
        return TSR_OK;
    clFinish(b->queue);
    forget(&b->done);
    return tsr_cl_fail(err, e->device, "a launch of plane waves", code);
}

static void put_part(cl_uint to[4], size_t first, int n, size_t row, int level,
                     unsigned is_unit)
{
    const cl_uint part[4] = {(cl_uint)first, (cl_uint)n, (cl_uint)row,
                             (cl_uint)level << 1 | is_unit};
    memcpy(to, part, sizeof part);
}

/* Parts and entries of the pending systems. */
static tsr_status launch_all(wave_batch *b, tsr_err *err)
{
    const tsr_wave_engine *e = (const tsr_wave_engine *)b->base.engine;
    const size_t parts_at = (size_t)b->max_proposal;
    size_t rows = 0, used = parts_at + b->sum_rows, n = 0;
    for (int p = 0; p < b->n; p++) {
        const tsr_wave_system *s = &e->system[b->system[p]];
        if (s->is_same)
            continue;
        const cl_uint slot = 2 * (cl_uint)b->system[p] + (cl_uint)s->slot;
        const size_t first_row = rows;
        const int n_loose = tsr_wave_put_loose(e, s, b->host + used);
        const int n_own = n_part(e, n_loose);
        for (int k = 0; k < n_own; k++) {
            const size_t first = (size_t)((long)n_loose * k / n_own),
                         end = (size_t)((long)n_loose * (k + 1) / n_own);
            put_part(b->host[parts_at + rows], used + first, (int)(end - first),
                     rows, s->proposed_level, 0);
            rows++;
        }
        used += (size_t)n_loose;
        const int n_unit = tsr_wave_put_units(e, s, b->host + used);
        if (n_unit > 0) {
            put_part(b->host[parts_at + rows], used, n_unit, rows,
                     s->proposed_level, 1);
            rows++;
        }
        used += TSR_WAVE_POSE * (size_t)n_unit;
        const cl_uint ask[4] = {slot | (cl_uint)s->proposed_level << 28 |
                                    (s->is_full ? 1u << 31 : 0),
                                slot ^ 1, (cl_uint)first_row,
                                (cl_uint)(rows - first_row)};
        memcpy(b->host[n++], ask, sizeof ask);
    }
    return n == 0 ? TSR_OK : launch(b, n, rows, used, err);
}

static tsr_status idle_check(const wave_batch *b, tsr_err *err)
{
    return b->n == 0 ? TSR_OK
                     : tsr_fail(err, TSR_E_INTERNAL,
                                "engine: the batch has proposals in flight");
}

tsr_status tsr_wave_submit(tsr_batch *batch, int n,
                           const tsr_body_proposal *proposal, tsr_err *err)
{
    wave_batch *b = (wave_batch *)batch;
    const tsr_wave_engine *e = (const tsr_wave_engine *)batch->engine;
    tsr_status status = TSR_OK;
    if (n > b->max_proposal)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d proposals in a batch of %d", n,
                        b->max_proposal);
    TSR_TRY(idle_check(b, err));
    for (int p = 0; p < n && status == TSR_OK; p++) {
        status = tsr_engine_proposal_check(&e->base, &proposal[p], err);
        if (status == TSR_OK && !e->system[proposal[p].system].is_set)
            status =
                tsr_fail(err, TSR_E_INTERNAL, "engine: system %d was never set",
                         proposal[p].system);
        if (status == TSR_OK && e->system[proposal[p].system].is_pending)
            status = tsr_fail(err, TSR_E_INTERNAL,
                              "engine: system %d has a proposal already",
                              proposal[p].system);
        TSR_THEN(status, tsr_wave_propose(e, &proposal[p], err));
        if (status == TSR_OK)
            b->system[b->n++] = proposal[p].system;
    }
    TSR_THEN(status, launch_all(b, err));
    for (int p = 0; p < b->n && status != TSR_OK; p++)
        tsr_wave_reject(batch, b->system[p]);
    if (status != TSR_OK)
        b->n = 0;
    return status;
}

/* The parts of all blocks, in their order. */
static void add_up(const tsr_wave_engine *e, const float *part,
                   const tsr_wave_level *level, double *profile)
{
    const int n_q = e->base.n_q;
    memset(profile, 0, tsr_wave_n_profile(e) * sizeof *profile);
    for (int block = 0; block < level->n; block++) {
        const int low = e->band[level->first + block] * TSR_WAVE_BAND;
        const int n = n_q - low < TSR_WAVE_BAND ? n_q - low : TSR_WAVE_BAND;
        for (int pair = 0; pair < e->base.n_pair; pair++, part += TSR_WAVE_BAND)
            for (int k = 0; k < n; k++)
                profile[pair * n_q + low + k] += (double)part[k];
    }
    for (int pair = 0; pair < e->base.n_pair; pair++)
        profile[pair * n_q] = e->forward[pair];
}

tsr_status tsr_wave_wait(tsr_batch *batch, double *profile, tsr_err *err)
{
    wave_batch *b = (wave_batch *)batch;
    const tsr_wave_engine *e = (const tsr_wave_engine *)batch->engine;
    const float *result = b->results;
    if (b->done != NULL) {
        const cl_int code = clWaitForEvents(1, &b->done);
        forget(&b->done);
        if (code != CL_SUCCESS) {
            clFinish(b->queue);
            for (int p = 0; p < b->n; p++)
                tsr_wave_reject(batch, b->system[p]);
            b->n = 0;
            return tsr_cl_fail(err, e->device, "plane waves", code);
        }
    }
    for (int p = 0; p < b->n; p++) {
        tsr_wave_system *s = &e->system[b->system[p]];
        if (s->is_same) {
            memcpy(s->proposed, s->accepted,
                   tsr_wave_n_profile(e) * sizeof *profile);
        } else {
            add_up(e, result, &e->level[s->proposed_level], s->proposed);
            result += n_result(e);
        }
        if (profile != NULL)
            memcpy(profile + (size_t)p * tsr_wave_n_profile(e), s->proposed,
                   tsr_wave_n_profile(e) * sizeof *profile);
    }
    b->n = 0;
    return TSR_OK;
}

/* A proposal of all bodies that is accepted. */
tsr_status tsr_wave_set(tsr_batch *batch, int system, const double (*xyz)[3],
                        double *profile, tsr_err *err)
{
    wave_batch *b = (wave_batch *)batch;
    const tsr_wave_engine *e = (const tsr_wave_engine *)batch->engine;
    const tsr_body_range all = {.count = e->base.n_body, .xyz = xyz};
    const tsr_body_proposal proposal = {system, 1, &all};
    TSR_TRY(idle_check(b, err));
    TSR_TRY(tsr_engine_proposal_check(&e->base, &proposal, err));
    tsr_wave_reject(batch, system);
    TSR_TRY(tsr_wave_propose(e, &proposal, err));
    b->system[0] = system;
    b->n = 1;
    tsr_status status = launch_all(b, err);
    TSR_THEN(status, tsr_wave_wait(batch, profile, err));
    b->n = 0;
    if (status == TSR_OK)
        tsr_wave_accept(batch, system);
    else
        tsr_wave_reject(batch, system);
    return status;
}

void tsr_wave_batch_free(tsr_batch *batch)
{
    wave_batch *b = (wave_batch *)batch;
    const cl_mem all[] = {b->input, b->sum, b->profile, b->pinned};
    if (b->queue != NULL)
        clFinish(b->queue);
    for (int p = 0; p < b->n; p++) /* nobody waits for them any more */
        tsr_wave_reject(batch, b->system[p]);
    forget(&b->done);
    if (b->host != NULL)
        clEnqueueUnmapMemObject(b->queue, b->pinned, b->host, 0, NULL, NULL);
    if (b->queue != NULL)
        clFinish(b->queue);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != NULL)
            clReleaseMemObject(all[i]);
    if (b->add != NULL)
        clReleaseKernel(b->add);
    if (b->take != NULL)
        clReleaseKernel(b->take);
    if (b->queue != NULL)
        clReleaseCommandQueue(b->queue);
    free(b->system);
    free(b);
}

static cl_int set_arguments(const tsr_wave_engine *e, wave_batch *b)
{
    const cl_uint parts_at = (cl_uint)b->max_proposal;
    cl_int code = clSetKernelArg(b->add, 0, sizeof b->input, &b->input);
    code |= clSetKernelArg(b->add, 1, sizeof parts_at, &parts_at);
    code |= clSetKernelArg(b->add, 2, sizeof e->direction, &e->direction);
    code |= clSetKernelArg(b->add, 3, sizeof e->bands, &e->bands);
    code |= clSetKernelArg(b->add, 4, sizeof e->levels, &e->levels);
    code |= clSetKernelArg(b->add, 5, sizeof e->factor, &e->factor);
    code |= clSetKernelArg(b->add, 6, sizeof e->table, &e->table);
    code |= clSetKernelArg(b->add, 7, sizeof e->places, &e->places);
    code |= clSetKernelArg(b->add, 8, sizeof e->kernel, &e->kernel);
    code |= clSetKernelArg(b->add, 9, sizeof b->sum, &b->sum);
    code |= clSetKernelArg(b->take, 0, sizeof b->input, &b->input);
    code |= clSetKernelArg(b->take, 1, sizeof e->direction, &e->direction);
    code |= clSetKernelArg(b->take, 2, sizeof e->levels, &e->levels);
    code |= clSetKernelArg(b->take, 3, sizeof b->sum, &b->sum);
    code |= clSetKernelArg(b->take, 4, sizeof e->amplitude, &e->amplitude);
    code |= clSetKernelArg(b->take, 5, sizeof b->profile, &b->profile);
    return code;
}

static cl_int open_batch(const tsr_wave_engine *e, wave_batch *b)
{
    const cl_context context = e->device->context;
    const size_t results =
        (size_t)b->max_proposal * n_result(e) * sizeof *b->results;
    const size_t bytes = b->input_units * sizeof *b->host;
    cl_int code;
    b->queue = clCreateCommandQueue(context, e->device->id, 0, &code);
    if (code == CL_SUCCESS)
        b->add = clCreateKernel(e->program.program, "waves_add", &code);
    if (code == CL_SUCCESS)
        b->take = clCreateKernel(e->program.program, "waves_take", &code);
    if (code == CL_SUCCESS)
        b->input =
            clCreateBuffer(context, CL_MEM_READ_ONLY, bytes, NULL, &code);
    if (code == CL_SUCCESS)
        b->sum =
            clCreateBuffer(context, CL_MEM_READ_WRITE,
                           b->sum_rows * e->row * sizeof(float), NULL, &code);
    if (code == CL_SUCCESS)
        b->profile =
            clCreateBuffer(context, CL_MEM_READ_WRITE, results, NULL, &code);
    if (code == CL_SUCCESS)
        b->pinned =
            clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                           bytes + results, NULL, &code);
    if (code == CL_SUCCESS)
        b->host = clEnqueueMapBuffer(b->queue, b->pinned, CL_TRUE,
                                     CL_MAP_READ | CL_MAP_WRITE, 0,
                                     bytes + results, 0, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return code;
    b->results = (float *)(b->host + b->input_units);
    return set_arguments(e, b);
}

tsr_status tsr_wave_batch_new(tsr_engine *engine, int max_proposal,
                              tsr_batch **out, tsr_err *err)
{
    const tsr_wave_engine *e = (const tsr_wave_engine *)engine;
    const size_t n = (size_t)max_proposal;
    wave_batch *b = calloc(1, sizeof *b);
    TSR_TRY(tsr_allocated(b, err));
    b->base.engine = engine;
    b->max_proposal = max_proposal;
    b->sum_rows = n * tsr_wave_most_parts(e);
    b->input_units = n + b->sum_rows + n * most_entries(e);
    b->system = calloc(n, sizeof *b->system);
    tsr_status status = tsr_allocated(b->system, err);
    if (status == TSR_OK) {
        const cl_int code = open_batch(e, b);
        if (code != CL_SUCCESS)
            status =
                tsr_cl_fail(err, e->device, "a batch of plane waves", code);
    }
    if (status == TSR_OK)
        *out = &b->base;
    else
        tsr_wave_batch_free(&b->base);
    return status;
}

/* PoCL's first launch has to be its widest: engine_page_tile.c says why. */
tsr_status tsr_wave_open_widest(tsr_wave_engine *e, tsr_err *err)
{
    tsr_batch *batch = NULL;
    if (e->device->info.type != TSR_DEVICE_CPU)
        return TSR_OK;
    TSR_TRY(tsr_wave_batch_new(&e->base, e->base.n_system, &batch, err));
    wave_batch *b = (wave_batch *)batch;
    const size_t n = (size_t)b->max_proposal;
    tsr_status status = tsr_allocated(b->host, err);
    if (status == TSR_OK)
        memset(b->host, 0, (n + b->sum_rows) * sizeof *b->host);
    TSR_THEN(status, launch(b, n, b->sum_rows, n + b->sum_rows, err));
    TSR_THEN(status, tsr_wave_wait(batch, NULL, err));
    tsr_wave_batch_free(batch);
    return status;
}

/* Batches: one launch and one read-back for the proposals of many systems. */
#include "gpu/page_tile.h"

#include <stdlib.h>

enum { FIRST_LAUNCH = 16 }; /* of a full one, the fraction */

static void reject_all(tsr_page_tile_batch *b)
{
    const tsr_page_tile_engine *e =
        (const tsr_page_tile_engine *)b->base.engine;
    for (int p = 0; p < b->n; p++)
        tsr_tile_system_reject(e, b->system[p]);
    b->n = b->n_launched = 0;
}

static tsr_status idle_check(const tsr_page_tile_batch *b, tsr_err *err)
{
    if (b->n > 0)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: the batch has %d proposals in flight", b->n);
    return TSR_OK;
}

tsr_status tsr_page_tile_set(tsr_batch *base, int system,
                             const double (*xyz)[3], double *profile,
                             tsr_err *err)
{
    const tsr_page_tile_engine *e = (const tsr_page_tile_engine *)base->engine;
    tsr_page_tile_batch *b = (tsr_page_tile_batch *)base;
    tsr_status status = idle_check(b, err);
    if (status)
        return status;
    if (system < 0 || system >= e->base.n_system)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d of %d", system,
                        e->base.n_system);
    tsr_tile_system *s = &e->system[system];
    tsr_tile_system_reject(e, system);
    status = tsr_tile_system_propose(e, system, 0, NULL, xyz, err);
    if (status)
        return status;
    tsr_launch_begin(e, b, 1);
    tsr_launch_add(e, b, system);
    status = tsr_launch(b, 1, 1, err);
    if (!status)
        status = tsr_launch_finish(b, err);
    if (status) {
        reject_all(b);
        return status;
    }
    /* A fresh launch counted no old values: take off the accepted sum. */
    for (int k = 0; k < e->shape.row; k++)
        s->proposed[k] -= s->accepted[k];
    b->n = b->n_launched = 0;
    s->is_set = 1;
    tsr_tile_system_accept(e, system);
    if (profile != NULL)
        tsr_tile_system_profile(e, s->accepted, profile);
    return TSR_OK;
}

static tsr_status propose(tsr_page_tile_batch *b,
                          const tsr_body_proposal *proposal, tsr_err *err)
{
    const tsr_page_tile_engine *e =
        (const tsr_page_tile_engine *)b->base.engine;
    int system = proposal->system;
    tsr_status status = tsr_engine_ranges_check(&e->base, proposal, err);
    if (status)
        return status;
    const tsr_tile_system *s = &e->system[system];
    if (!s->is_set || s->is_pending)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d %s", system,
                        s->is_set ? "has a proposal that was neither "
                                    "accepted nor rejected"
                                  : "was never set");
    status = tsr_tile_system_propose(e, system, proposal->n_range,
                                     proposal->range, NULL, err);
    if (!status)
        tsr_launch_add(e, b, system);
    return status;
}

tsr_status tsr_page_tile_submit(tsr_batch *base, int n,
                                const tsr_body_proposal *proposal, tsr_err *err)
{
    const tsr_page_tile_engine *e = (const tsr_page_tile_engine *)base->engine;
    tsr_page_tile_batch *b = (tsr_page_tile_batch *)base;
    const size_t most = (size_t)e->options.tiles_a_launch;
    /* The first launches are small, so that the device starts soon. */
    size_t tiles = 0, enough = (most + FIRST_LAUNCH - 1) / FIRST_LAUNCH;
    tsr_status status = idle_check(b, err);
    if (status)
        return status;
    if (n < 0 || n > b->max_proposal)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d proposals in a batch of %d", n,
                        b->max_proposal);
    tsr_launch_begin(e, b, n);
    for (int p = 0; p < n && !status; p++) {
        status = propose(b, &proposal[p], err);
        if (status)
            break;
        tiles += b->tiles[p] + b->changes[p] / 4;
        if (e->is_pipelined && tiles >= enough && p + 1 < n) {
            status = tsr_launch(b, 0, 0, err);
            tiles = 0;
            enough = 2 * enough < most ? 2 * enough : most;
        }
    }
    if (!status && n > 0)
        status = tsr_launch(b, 0, 1, err);
    if (status) {
        tsr_launch_cancel(b);
        reject_all(b);
    }
    return status;
}

tsr_status tsr_page_tile_wait(tsr_batch *base, double *profile, tsr_err *err)
{
    const tsr_page_tile_engine *e = (const tsr_page_tile_engine *)base->engine;
    tsr_page_tile_batch *b = (tsr_page_tile_batch *)base;
    tsr_status status = tsr_launch_finish(b, err);
    if (status) {
        reject_all(b);
        return status;
    }
    for (int p = 0; p < b->n; p++)
        tsr_tile_system_profile(e, e->system[b->system[p]].proposed,
                                profile + (size_t)p * (size_t)e->shape.n_pair *
                                              (size_t)e->shape.n_q);
    b->n = b->n_launched = 0;
    return TSR_OK;
}

void tsr_page_tile_batch_free(tsr_batch *base)
{
    tsr_page_tile_batch *b = (tsr_page_tile_batch *)base;
    tsr_exchange_free(b);
    if (b->kernel != NULL)
        clReleaseKernel(b->kernel);
    if (b->queue != NULL)
        clReleaseCommandQueue(b->queue);
    if (b->loader != NULL)
        clReleaseCommandQueue(b->loader);
    free(b->system);
    free(b->tiles);
    free(b->changes);
    free(b->meta_at);
    free(b->staged_at);
    free(b->out_first);
    free(b->out_count);
    free(b);
}

tsr_status tsr_page_tile_batch_new(tsr_engine *engine, int max_proposal,
                                   tsr_batch **out, tsr_err *err)
{
    const tsr_page_tile_engine *e = (const tsr_page_tile_engine *)engine;
    const tsr_device_info *info = &e->device->info;
    const double mib = 1.0 / 1048576.0;
    size_t n = (size_t)max_proposal;
    tsr_status status = TSR_OK;
    cl_int code;
    tsr_page_tile_batch *b = calloc(1, sizeof *b);
    if (b == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a batch");
    b->base.engine = engine;
    b->transfer = e->options.transfer;
    b->max_proposal = max_proposal;
    b->size = tsr_exchange_size_of(e, max_proposal);
    b->system = calloc(n, sizeof *b->system);
    b->tiles = calloc(n, sizeof *b->tiles);
    b->changes = calloc(n, sizeof *b->changes);
    b->meta_at = calloc(n, sizeof *b->meta_at);
    b->staged_at = calloc(n, sizeof *b->staged_at);
    b->out_first = calloc(n, sizeof *b->out_first);
    b->out_count = calloc(n, sizeof *b->out_count);
    if (b->system == NULL || b->tiles == NULL || b->changes == NULL ||
        b->meta_at == NULL || b->staged_at == NULL || b->out_first == NULL ||
        b->out_count == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a batch of %d",
                          max_proposal);
    if (!status && b->size * TSR_EXCHANGE_UNIT > info->max_alloc_bytes)
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s: a batch of %d proposals takes %.0f MiB, a "
                          "buffer may have %.0f MiB; use smaller batches",
                          info->name, max_proposal,
                          (double)b->size * TSR_EXCHANGE_UNIT * mib,
                          (double)info->max_alloc_bytes * mib);
    if (!status) {
        b->queue = clCreateCommandQueue(
            e->device->context, e->device->id,
            e->options.profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
        if (b->queue == NULL)
            status = tsr_cl_fail(err, e->device, "clCreateCommandQueue", code);
    }
    if (!status && e->is_pipelined) {
        b->loader =
            clCreateCommandQueue(e->device->context, e->device->id, 0, &code);
        if (b->loader == NULL)
            status = tsr_cl_fail(err, e->device, "clCreateCommandQueue", code);
    }
    if (!status) {
        b->kernel = clCreateKernel(e->program.program, "page_tile", &code);
        if (b->kernel == NULL)
            status = tsr_cl_fail(err, e->device, "clCreateKernel", code);
    }
    if (!status)
        status = tsr_exchange_make(b, err);
    if (status) {
        tsr_page_tile_batch_free(&b->base);
        return status;
    }
    *out = &b->base;
    return TSR_OK;
}

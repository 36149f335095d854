/* Batches: one launch and one read-back for the proposals of many systems. */
#include "core/vec3.h"
#include "gpu/page_tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How far apart the bodies of a proposal are, against what the q grid allows.
 *
 * The exact largest distance costs O(n^2) at worst, too much for every step.
 * Around a centre c, |xy| <= |xc| + |yc|: mostly the bounds that staging keeps
 * decide. Where they do not, only bodies far out at opposite ends are compared.
 * The accepted state is within the limit and a rigid group keeps its distances,
 * so that a pair needs a touched block, and not two of one group. */

enum { MAX_TILE = 128 };

typedef struct {
    int n;
    double xyz[MAX_TILE][3];
} block_copy;

static int proposed_slot(const tsr_tile_system *s, int block)
{
    return tsr_tile_slot(s, block) ^ (s->dirt.group[block] != TSR_BLOCK_CLEAN);
}

static void copy_block(const tsr_page_tile_engine *e, const tsr_tile_system *s,
                       int slot, int block, block_copy *out)
{
    size_t tile = (size_t)e->shape.tile;
    const void *from = tsr_tile_block(e, s, slot, block);
    out->n = tsr_tile_block_size(&e->shape, block);
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < (size_t)out->n; i++)
            out->xyz[i][c] = e->options.use_double
                                 ? ((const double *)from)[c * tile + i]
                                 : (double)((const float *)from)[c * tile + i];
}

static double reach2_of(const block_copy *b, const double centre[3])
{
    double most2 = 0.0;
    for (int i = 0; i < b->n; i++)
        most2 = fmax(most2, tsr_vec3_distance2(b->xyz[i], centre));
    return most2;
}

/* The centre of the bounding box, and all reaches, of the state as proposed or
 * as accepted. O(bodies). */
static void find_centre(const tsr_page_tile_engine *e, const tsr_tile_system *s,
                        int proposed, tsr_tile_extent *out)
{
    double lo[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    double hi[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    block_copy copy;
    out->most2 = 0.0;
    for (int pass = 0; pass < 2; pass++) {
        for (int b = 0; b < e->shape.n_block; b++) {
            int slot = proposed ? proposed_slot(s, b) : tsr_tile_slot(s, b);
            copy_block(e, s, slot, b, &copy);
            if (pass == 1) {
                out->reach2[b] = reach2_of(&copy, out->centre);
                out->most2 = fmax(out->most2, out->reach2[b]);
                continue;
            }
            for (int i = 0; i < copy.n; i++)
                for (int c = 0; c < 3; c++) {
                    lo[c] = copy.xyz[i][c] < lo[c] ? copy.xyz[i][c] : lo[c];
                    hi[c] = copy.xyz[i][c] > hi[c] ? copy.xyz[i][c] : hi[c];
                }
        }
        for (int c = 0; c < 3; c++)
            out->centre[c] = 0.5 * (lo[c] + hi[c]);
    }
}

/* Exact reaches of the touched blocks (all, with a new centre, where many are
 * touched) and of the whole. */
static void tighten(const tsr_page_tile_engine *e, tsr_tile_system *s)
{
    tsr_tile_extent *x = &s->proposed_extent;
    if (2 * s->dirt.n_touched >= e->shape.n_block) {
        find_centre(e, s, 1, x);
        s->is_centred = 1;
        return;
    }
    for (int t = 0; t < s->dirt.n_touched; t++) {
        int b = s->dirt.touched[t];
        block_copy copy;
        copy_block(e, s, proposed_slot(s, b), b, &copy);
        x->reach2[b] = reach2_of(&copy, x->centre);
    }
    x->most2 = 0.0;
    for (int b = 0; b < e->shape.n_block; b++) {
        if (s->dirt.group[b] == TSR_BLOCK_CLEAN)
            x->reach2[b] = s->extent.reach2[b];
        x->most2 = fmax(x->most2, x->reach2[b]);
    }
}

static double touched_reach(const tsr_tile_system *s)
{
    double most2 = 0.0;
    for (int t = 0; t < s->dirt.n_touched; t++)
        most2 = fmax(most2, s->proposed_extent.reach2[s->dirt.touched[t]]);
    return sqrt(most2);
}

static int farther_first(const void *a, const void *b)
{
    double r = ((const tsr_far_body *)a)->radius;
    double t = ((const tsr_far_body *)b)->radius;
    return (r < t) - (r > t);
}

/* The bodies that are far enough out to be one of a pair in doubt. */
static int collect_far(const tsr_page_tile_engine *e, tsr_tile_system *s,
                       double beyond)
{
    const tsr_tile_extent *x = &s->proposed_extent;
    const double beyond2 = beyond > 0.0 ? beyond * beyond : -1.0;
    int n = 0;
    for (int b = 0; b < e->shape.n_block; b++) {
        block_copy copy;
        if (x->reach2[b] <= beyond2)
            continue;
        copy_block(e, s, proposed_slot(s, b), b, &copy);
        for (int i = 0; i < copy.n; i++) {
            double r2 = tsr_vec3_distance2(copy.xyz[i], x->centre);
            if (r2 <= beyond2)
                continue;
            s->far[n].radius = sqrt(r2);
            s->far[n].block = b;
            tsr_vec3_copy(s->far[n++].xyz, copy.xyz[i]);
        }
    }
    qsort(s->far, (size_t)n, sizeof *s->far, farther_first);
    return n;
}

/* Pairs that their radii decide are not looked at. */
static tsr_status compare(const tsr_page_tile_engine *e, int system,
                          double limit, tsr_err *err)
{
    tsr_tile_system *s = &e->system[system];
    const int *group = s->dirt.group;
    /* the margin covers the rounding of the radii */
    const double sure = limit * (1.0 - 1e-9);
    const int n = collect_far(e, s, sure - sqrt(s->proposed_extent.most2));
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            const tsr_far_body *a = &s->far[i], *b = &s->far[j];
            int g = group[a->block];
            if (a->radius + b->radius <= sure)
                break;
            if (g == group[b->block] && g != TSR_BLOCK_MIXED)
                continue; /* both clean, or carried along together */
            double d2 = tsr_vec3_distance2(a->xyz, b->xyz);
            if (d2 > limit * limit)
                return tsr_fail(err, TSR_E_RANGE,
                                "engine: two bodies of system %d are %.6g "
                                "Angstrom apart; the q grid allows for %.6g",
                                system, sqrt(d2), e->d_bound_ang);
        }
    return TSR_OK;
}

tsr_status tsr_tile_extent_check(const tsr_page_tile_engine *e, int system,
                                 tsr_err *err)
{
    tsr_tile_system *s = &e->system[system];
    tsr_tile_extent *x = &s->proposed_extent;
    const double limit = e->d_bound_ang * (1.0 + 1e-6); /* single precision */
    /* most2 is that of the moved bodies, so far */
    double moved = sqrt(x->most2), most2 = fmax(x->most2, s->extent.most2);
    if (s->is_centred)
        most2 = x->most2;
    x->most2 = most2;
    if (moved + sqrt(most2) <= e->d_bound_ang)
        return TSR_OK;
    s->is_tight = 1;
    tighten(e, s);
    if (2.0 * sqrt(x->most2) <= e->d_bound_ang ||
        touched_reach(s) + sqrt(x->most2) <= e->d_bound_ang)
        return TSR_OK;
    return compare(e, system, limit, err);
}

void tsr_tile_extent_accept(const tsr_page_tile_engine *e, tsr_tile_system *s)
{
    tsr_tile_extent *to = &s->extent, *from = &s->proposed_extent;
    to->most2 = from->most2;
    if (s->is_centred) {
        double *reach2 = to->reach2;
        to->reach2 = from->reach2;
        from->reach2 = reach2;
        memcpy(to->centre, from->centre, sizeof to->centre);
        s->n_since = 0;
        s->is_tight = 0;
        return;
    }
    for (int t = 0; t < s->dirt.n_touched; t++)
        to->reach2[s->dirt.touched[t]] = from->reach2[s->dirt.touched[t]];
    s->n_since += s->n_moved;
    /* As many bodies moved as finding a new centre looks at. */
    if (s->is_tight && s->n_since >= e->shape.n_body) {
        find_centre(e, s, 0, to);
        s->n_since = 0;
        s->is_tight = 0;
    }
}

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
    TSR_TRY(idle_check(b, err));
    if (system < 0 || system >= e->base.n_system)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d of %d", system,
                        e->base.n_system);
    tsr_tile_system *s = &e->system[system];
    tsr_tile_system_reject(e, system);
    TSR_TRY(tsr_tile_system_propose(e, system, 0, NULL, xyz, err));
    tsr_launch_begin(e, b, 1);
    tsr_launch_add(e, b, system);
    tsr_status status = tsr_launch(b, 1, 1, err);
    TSR_THEN(status, tsr_launch_finish(b, err));
    if (status != TSR_OK) {
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
    TSR_TRY(tsr_engine_ranges_check(&e->base, proposal, err));
    const tsr_tile_system *s = &e->system[system];
    if (!s->is_set || s->is_pending)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d %s", system,
                        s->is_set ? "has a proposal that was neither "
                                    "accepted nor rejected"
                                  : "was never set");
    TSR_TRY(tsr_tile_system_propose(e, system, proposal->n_range,
                                    proposal->range, NULL, err));
    tsr_launch_add(e, b, system);
    return TSR_OK;
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
    if (status != TSR_OK)
        return status;
    if (n < 0 || n > b->max_proposal)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d proposals in a batch of %d", n,
                        b->max_proposal);
    tsr_launch_begin(e, b, n);
    for (int p = 0; p < n && status == TSR_OK; p++) {
        status = propose(b, &proposal[p], err);
        if (status != TSR_OK)
            break;
        tiles += b->tiles[p] + b->changes[p] / 4;
        if (e->is_pipelined && tiles >= enough && p + 1 < n) {
            status = tsr_launch(b, 0, 0, err);
            tiles = 0;
            enough = 2 * enough < most ? 2 * enough : most;
        }
    }
    if (status == TSR_OK && n > 0)
        status = tsr_launch(b, 0, 1, err);
    if (status != TSR_OK) {
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
    if (status != TSR_OK) {
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
    TSR_TRY(tsr_allocated(b, err));
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
    if (status == TSR_OK && b->size * TSR_EXCHANGE_UNIT > info->max_alloc_bytes)
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s: a batch of %d proposals takes %.0f MiB, a "
                          "buffer may have %.0f MiB; use smaller batches",
                          info->name, max_proposal,
                          (double)b->size * TSR_EXCHANGE_UNIT * mib,
                          (double)info->max_alloc_bytes * mib);
    if (status == TSR_OK) {
        b->queue = clCreateCommandQueue(
            e->device->context, e->device->id,
            e->options.profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
        if (b->queue == NULL)
            status = tsr_cl_fail(err, e->device, "clCreateCommandQueue", code);
    }
    if (status == TSR_OK && e->is_pipelined) {
        b->loader =
            clCreateCommandQueue(e->device->context, e->device->id, 0, &code);
        if (b->loader == NULL)
            status = tsr_cl_fail(err, e->device, "clCreateCommandQueue", code);
    }
    if (status == TSR_OK) {
        b->kernel = clCreateKernel(e->program.program, "page_tile", &code);
        if (b->kernel == NULL)
            status = tsr_cl_fail(err, e->device, "clCreateKernel", code);
    }
    TSR_THEN(status, tsr_exchange_make(b, err));
    if (status != TSR_OK) {
        tsr_page_tile_batch_free(&b->base);
        return status;
    }
    *out = &b->base;
    return TSR_OK;
}

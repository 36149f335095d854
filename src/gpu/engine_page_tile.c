/* Makes the engine of a device: shape of the tiles, program with its constants,
 * buffers, and how results travel. What it does with proposals is in
 * page_tile_system.c, page_tile_batch.c and page_tile_launch.c. */
#include "gpu/engine_page_tile.h"

#include "gpu/page_tile.h"
#include "gpu/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_PAGES = 128,
    DEFAULT_PAGES = 64,
    MAX_BLOCKS = 65535,
    MAX_AGE = 255, /* a system keeps it in a byte */
    DEFAULT_SPLIT = 16,
    DEFAULT_PARTS = 1,
    DEFAULT_AGE = 64,
    DEFAULT_TILES_A_LAUNCH = 32768
};

static const tsr_engine_type simt_type, simd_type;

tsr_status tsr_page_tile_resolve(const tsr_device_info *info, int n_body,
                                 const tsr_page_tile_options *given,
                                 tsr_page_tile_options *out, tsr_err *err)
{
    tsr_page_tile_options o = {0};
    if (given != NULL)
        o = *given;
    const tsr_page_tile_variant natural =
        info->type == TSR_DEVICE_CPU ? TSR_PAGE_TILE_SIMD : TSR_PAGE_TILE_SIMT;
    if (o.variant == TSR_PAGE_TILE_AUTO)
        o.variant = natural;
    /* The table is for the variant that a kind of device gets by itself. */
    if (o.variant == natural) {
        tsr_status status = tsr_tuning_find(info, n_body, &o, err);
        if (status != TSR_OK)
            return status;
    }
    if (o.tile == 0)
        o.tile = 32;
    if (o.split == 0)
        o.split = DEFAULT_SPLIT;
    if (o.tiles_a_launch == 0)
        o.tiles_a_launch = DEFAULT_TILES_A_LAUNCH;
    if (o.max_pages == 0)
        o.max_pages = DEFAULT_PAGES;
    if (o.parts == 0 || o.variant == TSR_PAGE_TILE_SIMD)
        o.parts = o.variant == TSR_PAGE_TILE_SIMD ? 1 : DEFAULT_PARTS;
    if (o.max_age == 0)
        o.max_age = DEFAULT_AGE;
    if (o.difference == 0)
        o.difference = 3 * o.tile / 8;
    if (o.tile != 16 && o.tile != 32 && o.tile != 64 && o.tile != 128)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "page-tile engine: tiles of %d bodies; 16, 32, 64 or "
                        "128 are possible",
                        o.tile);
    if (o.split < 1 || o.split > 1024 || o.tiles_a_launch < 1)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "page-tile engine: %d work-groups a run, %d tiles a "
                        "launch; 1 to 1024 and 1 or more are possible",
                        o.split, o.tiles_a_launch);
    if (o.parts != 1 && o.parts != 2 && o.parts != 4)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "page-tile engine: %d tiles a work-group; 1, 2 or 4 "
                        "are possible",
                        o.parts);
    if (o.difference < -1 || o.difference > o.tile / 2 || o.max_age < 1 ||
        o.max_age > MAX_AGE)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "page-tile engine: differences for up to %d bodies, %d "
                        "in a row; %d and %d are the most",
                        o.difference, o.max_age, o.tile / 2, MAX_AGE);
    if (o.max_pages < 4 || o.max_pages > MAX_PAGES)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "page-tile engine: %d pages a group; 4 to %d are "
                        "possible",
                        o.max_pages, MAX_PAGES);
    if (o.use_double && !info->has_double)
        return tsr_fail(err, TSR_E_DEVICE,
                        "%s has no double precision (cl_khr_fp64); use single",
                        info->name);
    *out = o;
    return TSR_OK;
}

/* What AUTO tries first. */
static tsr_page_tile_transfer first_transfer(const tsr_page_tile_engine *e)
{
    if (e->options.transfer != TSR_TRANSFER_AUTO)
        return e->options.transfer;
    return e->device->info.is_unified ? TSR_TRANSFER_MAPPED : TSR_TRANSFER_COPY;
}

static void describe_shape(tsr_page_tile_engine *e, const tsr_engine_spec *spec,
                           const tsr_device *device)
{
    const tsr_device_info *info = &device->info;
    e->device = device;
    e->real_size = e->options.use_double ? sizeof(double) : sizeof(float);
    int n_comp = tsr_engine_n_comp(spec);
    /* The sums of all components share the registers. */
    int max_pages = e->options.variant == TSR_PAGE_TILE_SIMT
                        ? e->options.max_pages / n_comp
                        : e->options.max_pages;
    e->shape =
        tsr_tile_shape_make(spec->n_body, spec->n_q, n_comp, e->options.tile,
                            max_pages < 4 ? 4 : max_pages);
    e->is_atomic = e->options.variant == TSR_PAGE_TILE_SIMT &&
                   info->has_int64_atomics && !e->options.no_atomics;
    e->split = e->is_atomic ? e->options.split : 1;
}

/* Bodies with padding, and values of all their form factors. */
static size_t padded_bodies(const tsr_page_tile_engine *e)
{
    return (size_t)e->shape.n_block * (size_t)e->shape.tile;
}

static size_t factor_count(const tsr_page_tile_engine *e)
{
    return padded_bodies(e) * (size_t)e->shape.n_comp * (size_t)e->shape.stride;
}

/* tile_local of kernels/page_tile_simt.cl */
static uint64_t local_bytes(const tsr_page_tile_engine *e)
{
    uint64_t tile = (uint64_t)e->shape.tile, pages = (uint64_t)e->shape.pages;
    uint64_t parts = (uint64_t)e->options.parts;
    uint64_t full = parts * tile * pages;
    uint64_t half = tile / 2 * pages + parts * tile * ((pages + 7) / 8 * 4);
    uint64_t reals = 4 * parts * tile +
                     (uint64_t)e->shape.n_comp * (full > half ? full : half);
    return reals * e->real_size + tile / 2 * sizeof(uint32_t);
}

static tsr_page_tile_memory memory_of(const tsr_page_tile_engine *e)
{
    uint64_t block = 3 * (uint64_t)e->shape.tile * e->real_size;
    uint64_t row = (uint64_t)e->shape.row * e->real_size;
    return (tsr_page_tile_memory){.per_system =
                                      2 * (uint64_t)e->shape.n_block * block +
                                      2 * (uint64_t)e->shape.n_tile * row,
                                  .shared = factor_count(e) * e->real_size};
}

static uint64_t memory_limit(const tsr_page_tile_engine *e)
{
    uint64_t all = e->device->info.global_bytes,
             asked = e->options.memory_limit;
    return asked > 0 && asked < all ? asked : all;
}

/* Systems that there is room for: all tiles are in one buffer. */
static uint64_t most_systems(const tsr_page_tile_engine *e)
{
    tsr_page_tile_memory m = memory_of(e);
    uint64_t tiles = 2 * (uint64_t)e->shape.n_tile;
    uint64_t most = memory_limit(e),
             room = most > m.shared ? most - m.shared : 0;
    uint64_t n = room / m.per_system;
    uint64_t in_buffer = e->device->info.max_alloc_bytes /
                         (tiles * (uint64_t)e->shape.row * e->real_size);
    n = n < in_buffer ? n : in_buffer;
    return n < UINT32_MAX / tiles ? n : UINT32_MAX / tiles;
}

tsr_status tsr_page_tile_memory_needed(const tsr_engine_spec *spec,
                                       const tsr_device *device,
                                       const tsr_page_tile_options *options,
                                       tsr_page_tile_memory *out, tsr_err *err)
{
    tsr_page_tile_engine e = {0};
    TSR_TRY(tsr_engine_bodies_check(spec, err));
    TSR_TRY(tsr_page_tile_resolve(&device->info, spec->n_body, options,
                                  &e.options, err));
    describe_shape(&e, spec, device);
    *out = memory_of(&e);
    out->most_systems = most_systems(&e);
    return TSR_OK;
}

static tsr_status fits(const tsr_page_tile_engine *e, tsr_err *err)
{
    const double mib = 1.0 / 1048576.0;
    const tsr_device_info *info = &e->device->info;
    tsr_page_tile_memory m = memory_of(e);
    if (e->shape.n_block > MAX_BLOCKS)
        return tsr_fail(err, TSR_E_DEVICE,
                        "page-tile engine: %d bodies make %d blocks of %d; at "
                        "most %d are possible",
                        e->shape.n_body, e->shape.n_block, e->shape.tile,
                        MAX_BLOCKS);
    if ((uint64_t)e->base.n_system > most_systems(e))
        return tsr_fail(
            err, TSR_E_DEVICE,
            "%s: %d systems of %d bodies and %d q do not fit: each takes %.2f "
            "MiB of %.0f MiB, and their tiles share one buffer of at most "
            "%.0f MiB; there is room for %llu. Use fewer chains, states or "
            "temperatures",
            info->name, e->base.n_system, e->shape.n_body, e->shape.n_q,
            (double)m.per_system * mib, (double)memory_limit(e) * mib,
            (double)info->max_alloc_bytes * mib,
            (unsigned long long)most_systems(e));
    if (e->options.variant == TSR_PAGE_TILE_SIMT) {
        uint64_t local = local_bytes(e);
        int items = e->shape.tile * e->options.parts;
        if (local > info->local_bytes || items > info->max_work_group)
            return tsr_fail(err, TSR_E_DEVICE,
                            "%s: a tile of %d bodies and %d pages takes %.1f "
                            "KiB of local memory and %d work-items; there are "
                            "%.1f KiB and %d",
                            info->name, e->shape.tile, e->shape.pages,
                            (double)local / 1024.0, items,
                            (double)info->local_bytes / 1024.0,
                            info->max_work_group);
    }
    return TSR_OK;
}

/* sum_i F_i of a component at page k, and sum_i |F_i|. */
static double amplitude_sum(const tsr_engine_spec *spec, int comp, int k,
                            double *size)
{
    double sum = 0.0;
    *size = 0.0;
    for (int i = 0; i < spec->n_body; i++) {
        double f = *tsr_engine_factor(spec, comp, spec->type[i], k);
        sum += f;
        *size += fabs(f);
    }
    return sum;
}

static double self_sum(const tsr_engine_spec *spec, int a, int b, int k)
{
    double sum = 0.0;
    for (int i = 0; i < spec->n_body; i++)
        sum += *tsr_engine_factor(spec, a, spec->type[i], k) *
               *tsr_engine_factor(spec, b, spec->type[i], k);
    return sum;
}

/* What no move changes, and the scale of the fixed-point sums: the tiles of a
 * system add up to at most (sum |F^a|) (sum |F^b|), in absolute values too,
 * which becomes at most 2^60. */
static tsr_status constants(tsr_page_tile_engine *e,
                            const tsr_engine_spec *spec, tsr_err *err)
{
    double bound = 0.0;
    int exponent = 0, n_comp = e->shape.n_comp;
    e->constant = calloc((size_t)e->shape.n_pair * (size_t)spec->n_q,
                         sizeof *e->constant);
    if (e->constant == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %d q", spec->n_q);
    double *constant = e->constant;
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, constant += spec->n_q)
            for (int k = 0; k < spec->n_q; k++) {
                double size_a, size_b;
                double sum_a = amplitude_sum(spec, a, k, &size_a);
                double sum_b = amplitude_sum(spec, b, k, &size_b);
                constant[k] = k == 0 ? sum_a * sum_b : self_sum(spec, a, b, k);
                bound = fmax(bound, size_a * size_b);
            }
    if (bound > 0.0)
        frexp(bound, &exponent);
    exponent = exponent < -60 ? -60 : exponent;
    e->fixed_scale = ldexp(1.0, 60 - exponent);
    return TSR_OK;
}

/* Where the kernel reads a form factor: each page's of all bodies of a block
 * side by side for SIMD, each body's of all pages for SIMT, one component's
 * after all of the other's. */
static size_t factor_place(const tsr_page_tile_engine *e, int comp, int body,
                           int page)
{
    const tsr_tile_shape *s = &e->shape;
    const size_t tile = (size_t)s->tile, pages = (size_t)s->pages;
    const size_t n_group = (size_t)s->n_group, n_comp = (size_t)s->n_comp;
    const size_t c = (size_t)comp, block = (size_t)body / tile,
                 lane = (size_t)body % tile;
    const size_t group = (size_t)page / pages, k = (size_t)page % pages;
    if (e->options.variant == TSR_PAGE_TILE_SIMD)
        return (((block * n_group + group) * n_comp + c) * pages + k) * tile +
               lane;
    return c * (factor_count(e) / n_comp) +
           ((block * n_group + group) * tile + lane) * pages + k;
}

/* F_i(q_k) (k dq)^(-1/2) of every body. */
static void pack_form_factors(const tsr_page_tile_engine *e,
                              const tsr_engine_spec *spec, void *packed)
{
    for (int c = 0; c < e->shape.n_comp; c++)
        for (int i = 0; i < e->shape.n_body; i++)
            for (int k = 1; k < e->shape.n_q; k++) {
                double value = *tsr_engine_factor(spec, c, spec->type[i], k) /
                               sqrt(k * e->base.dq_inv_ang);
                size_t at = factor_place(e, c, i, k - 1);
                if (e->options.use_double)
                    ((double *)packed)[at] = value;
                else
                    ((float *)packed)[at] = (float)value;
            }
}

static tsr_status make_buffers(tsr_page_tile_engine *e,
                               const tsr_engine_spec *spec, tsr_err *err)
{
    tsr_page_tile_memory m = memory_of(e);
    size_t n = (size_t)e->base.n_system;
    size_t cache =
        n * 2 * (size_t)e->shape.n_tile * (size_t)e->shape.row * e->real_size;
    size_t position = n * 6 * padded_bodies(e) * e->real_size;
    cl_int code;
    void *packed = calloc(m.shared, 1);
    TSR_TRY(tsr_allocated(packed, err));
    pack_form_factors(e, spec, packed);
    e->form_factor = clCreateBuffer(e->device->context,
                                    CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                    m.shared, packed, &code);
    free(packed);
    if (e->form_factor != NULL)
        e->position = clCreateBuffer(e->device->context, CL_MEM_READ_WRITE,
                                     position, NULL, &code);
    if (e->position != NULL)
        e->cache = clCreateBuffer(e->device->context, CL_MEM_READ_WRITE, cache,
                                  NULL, &code);
    if (e->cache == NULL)
        return tsr_cl_fail(err, e->device, "clCreateBuffer", code);
    return TSR_OK;
}

static int vector_lanes(const tsr_page_tile_engine *e)
{
    int width = e->device->info.float_width;
    if (e->options.variant == TSR_PAGE_TILE_SIMT)
        return 1;
    width = width >= 16 ? 16 : width >= 8 ? 8 : 4;
    return e->options.use_double ? width / 2 : width;
}

static tsr_status build(tsr_page_tile_engine *e, tsr_err *err)
{
    double dq = e->base.dq_inv_ang;
    int is_simd = e->options.variant == TSR_PAGE_TILE_SIMD;
    int is_short = tsr_is_short_range(dq, e->d_bound_ang);
    const char *source[] = {"page_tile.cl", is_simd ? "page_tile_simd.cl"
                                                    : "page_tile_simt.cl"};
    /* A CPU's kernels take them as arguments: kernels/page_tile.cl says why. */
    const int groups = is_simd && e->shape.n_group > 1 ? 0 : e->shape.n_group;
    const int blocks = is_simd ? 0 : e->shape.n_block;
    /* Multiply-adds may fuse; nothing else is traded for speed. */
    snprintf(e->build_options, sizeof e->build_options,
             "-cl-std=CL1.2 -cl-mad-enable -DTILE=%d -DPAGES=%d -DGROUPS=%d "
             "-DCOMPS=%d -DBLOCKS=%d -DLANES=%d -DSHORT_RANGE=%d "
             "-DATOMIC_OUT=%d -DSPLIT=%d -DUSE_DOUBLE=%d -DPARTS=%d",
             e->shape.tile, e->shape.pages, groups, e->shape.n_comp, blocks,
             vector_lanes(e), is_short, e->is_atomic, e->split,
             e->options.use_double, e->options.parts);
    return tsr_program_build(e->device, 2, source, e->build_options,
                             &e->program, err);
}

/* A small batch tries the transfer out; what was not asked for by name gives
 * way to copies. */
static tsr_status choose_transfer(tsr_page_tile_engine *e, tsr_err *err)
{
    const int is_asked = e->options.transfer != TSR_TRANSFER_AUTO;
    tsr_batch *batch = NULL;
    e->options.transfer = first_transfer(e);
    tsr_status status = tsr_page_tile_batch_new(&e->base, 1, &batch, err);
    if (status == TSR_E_DEVICE && !is_asked &&
        e->options.transfer != TSR_TRANSFER_COPY) {
        e->options.transfer = TSR_TRANSFER_COPY;
        status = tsr_page_tile_batch_new(&e->base, 1, &batch, err);
    }
    if (status == TSR_OK)
        tsr_page_tile_batch_free(batch);
    e->is_pipelined = e->is_atomic && e->options.transfer == TSR_TRANSFER_COPY;
    return status;
}

/* PoCL (3 to 5) makes a kernel anew for a grid wider than it has one for, and
 * while others run then takes the one for the other in its count of users,
 * and aborts. So the widest grid there can be comes first, before any other
 * launch: all systems in one batch, and no work in it. A batch so large that
 * there is no memory for it will not be asked for. */
static tsr_status open_widest(tsr_page_tile_engine *e, tsr_err *err)
{
    tsr_batch *batch = NULL;
    if (e->device->info.type != TSR_DEVICE_CPU)
        return TSR_OK;
    tsr_status status =
        tsr_page_tile_batch_new(&e->base, e->base.n_system, &batch, NULL);
    if (status != TSR_OK)
        return TSR_OK;
    status = tsr_launch_widest((tsr_page_tile_batch *)batch, err);
    tsr_page_tile_batch_free(batch);
    return status;
}

static void describe(tsr_page_tile_engine *e)
{
    snprintf(e->base.description, sizeof e->base.description,
             "%s, %s precision, %s transfer, differences up to %d bodies; "
             "%.120s, driver %.60s; source %016llx%s; %s",
             e->base.type->name, e->options.use_double ? "double" : "single",
             tsr_transfer_name(e->options.transfer),
             e->options.difference > 0 ? e->options.difference : 0,
             e->device->info.name, e->device->info.driver,
             (unsigned long long)e->program.source_hash,
             tsr_program_folder() != NULL ? " from TSR_KERNEL_DIR" : "",
             e->build_options);
}

static void page_tile_free(tsr_engine *engine)
{
    tsr_page_tile_engine *e = (tsr_page_tile_engine *)engine;
    for (int i = 0; e->system != NULL && i < e->base.n_system; i++)
        tsr_tile_system_clear(&e->system[i]);
    if (e->cache != NULL)
        clReleaseMemObject(e->cache);
    if (e->position != NULL)
        clReleaseMemObject(e->position);
    if (e->form_factor != NULL)
        clReleaseMemObject(e->form_factor);
    tsr_program_clear(&e->program);
    free(e->system);
    free(e->constant);
    free(e->base.rounding);
    free(e);
}

static void page_tile_accept(tsr_batch *batch, int system)
{
    tsr_tile_system_accept((const tsr_page_tile_engine *)batch->engine, system);
}

static void page_tile_reject(tsr_batch *batch, int system)
{
    tsr_tile_system_reject((const tsr_page_tile_engine *)batch->engine, system);
}

static tsr_status page_tile_profile(tsr_batch *batch, int system,
                                    double *profile, tsr_err *err)
{
    const tsr_page_tile_engine *e = (const tsr_page_tile_engine *)batch->engine;
    if (system < 0 || system >= e->base.n_system || !e->system[system].is_set)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d was never set",
                        system);
    tsr_tile_system_profile(e, e->system[system].accepted, profile);
    return TSR_OK;
}

#define PAGE_TILE_FUNCTIONS                                           \
    .free = page_tile_free, .batch_new = tsr_page_tile_batch_new,     \
    .batch_free = tsr_page_tile_batch_free, .set = tsr_page_tile_set, \
    .submit = tsr_page_tile_submit, .wait = tsr_page_tile_wait,       \
    .accept = page_tile_accept, .reject = page_tile_reject,           \
    .profile = page_tile_profile

static const tsr_engine_type simt_type = {
    .name = "page-tile SIMT",
    .doc = "page-tile Debye sum, one work-item a row (Antonov et al. 2013)",
    PAGE_TILE_FUNCTIONS};

static const tsr_engine_type simd_type = {
    .name = "page-tile SIMD",
    .doc = "page-tile Debye sum, vectors of bodies (Antonov et al. 2013)",
    PAGE_TILE_FUNCTIONS};

tsr_status tsr_engine_page_tile_new(const tsr_engine_spec *spec,
                                    const tsr_device *device,
                                    const tsr_page_tile_options *options,
                                    tsr_engine **out, tsr_err *err)
{
    *out = NULL;
    TSR_TRY(tsr_engine_bodies_check(spec, err));
    tsr_page_tile_engine *e = calloc(1, sizeof *e);
    TSR_TRY(tsr_allocated(e, err));
    int n_comp = tsr_engine_n_comp(spec);
    e->base = (tsr_engine){.type = &simt_type,
                           .n_body = spec->n_body,
                           .n_q = spec->n_q,
                           .n_comp = n_comp,
                           .n_pair = n_comp * (n_comp + 1) / 2,
                           .n_system = spec->n_system,
                           .dq_inv_ang = spec->dq_inv_ang};
    e->d_bound_ang = spec->d_bound_ang;
    tsr_status status = tsr_page_tile_resolve(&device->info, spec->n_body,
                                              options, &e->options, err);
    if (status == TSR_OK) {
        if (e->options.variant == TSR_PAGE_TILE_SIMD)
            e->base.type = &simd_type;
        describe_shape(e, spec, device);
        e->base.system_bytes = (double)memory_of(e).per_system;
        e->base.shared_bytes = (double)memory_of(e).shared;
        e->base.most_systems = (double)most_systems(e);
        status = fits(e, err);
    }
    TSR_THEN(status, constants(e, spec, err));
    /* a tile has two blocks with max_age differences each */
    if (status == TSR_OK)
        status = tsr_engine_rounding(
            spec, e->options.use_double ? 0x1p-40 : 0x1p-24, e->shape.tile,
            1 + 2 * e->options.max_age, &e->base.rounding, err);
    TSR_THEN(status, build(e, err));
    TSR_THEN(status, make_buffers(e, spec, err));
    if (status == TSR_OK) {
        e->system = calloc((size_t)spec->n_system, sizeof *e->system);
        if (e->system == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory for %d systems",
                              spec->n_system);
    }
    for (int i = 0; i < spec->n_system && status == TSR_OK; i++)
        status = tsr_tile_system_init(e, &e->system[i], err);
    TSR_THEN(status, choose_transfer(e, err));
    TSR_THEN(status, open_widest(e, err));
    if (status != TSR_OK) {
        page_tile_free(&e->base);
        return status;
    }
    describe(e);
    *out = &e->base;
    return TSR_OK;
}

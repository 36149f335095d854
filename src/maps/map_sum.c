/* The calls of map sums: buffers, launches, and sums turned back into units of
 * the map. */
#include "maps/map_sum.h"

#include "core/clock.h"
#include "gpu/opencl.h"
#include "gpu/staging.h"
#include "maps/map_batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUMS = 18, /* as in the kernel */
    LANES = 64,
    LISTERS = 256,
    SMALL = 4096,      /* cells */
    MOST_VOXELS = 2000 /* along an axis: coordinates have 32 bits */
};

enum { COUNT, PLACE, SCATTER, LIST, SUM, N_KERNEL };
static const char *const kernel_name[N_KERNEL] = {
    "map_count", "map_place", "map_scatter", "map_list", "map_sum"};

/* Buffers that grow with what is asked for. */
enum {
    PARTICLE,
    CALL, /* counters and systems */
    CELL_COUNT,
    CURSOR,
    NEAR,
    ACTIVE,
    OUT,
    TILE,
    DENSITY,
    N_BUFFER
};

typedef struct {
    tsr_density_engine base;
    const tsr_device *device;
    tsr_program program;
    cl_command_queue queue;
    cl_kernel kernel[N_KERNEL];
    cl_mem map, blur, reach;
    cl_mem buffer[N_BUFFER];
    size_t bytes[N_BUFFER];
    tsr_staging staging;
    tsr_map_sum_times times;
    tsr_map_batch batch;
    cl_long (*sum)[SUMS]; /* [systems] */
    int room;             /* systems that it has room for */
} map_sum;

/* ---- making it ---- */

static void sum_free(tsr_density_engine *engine)
{
    map_sum *e = (map_sum *)engine;
    cl_mem fixed[] = {e->map, e->blur, e->reach};
    if (e->queue != NULL)
        clFinish(e->queue);
    tsr_staging_clear(&e->staging);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (fixed[i] != NULL)
            clReleaseMemObject(fixed[i]);
    for (int i = 0; i < N_BUFFER; i++)
        if (e->buffer[i] != NULL)
            clReleaseMemObject(e->buffer[i]);
    for (int i = 0; i < N_KERNEL; i++)
        if (e->kernel[i] != NULL)
            clReleaseKernel(e->kernel[i]);
    if (e->queue != NULL)
        clReleaseCommandQueue(e->queue);
    tsr_program_clear(&e->program);
    tsr_map_batch_clear(&e->batch);
    free(e->sum);
    free(e);
}

static tsr_status check(const tsr_device *device, const tsr_map *map,
                        tsr_err *err)
{
    const tsr_device_info *info = &device->info;
    const double bytes = (double)tsr_map_n_voxel(&map->grid) * sizeof(float);
    if (!info->has_double || !info->has_int64_atomics)
        return tsr_fail(err, TSR_E_DEVICE,
                        "%s has no %s, which density maps need; give another "
                        "--device, or reference",
                        info->name,
                        info->has_double ? "64-bit atomics "
                                           "(cl_khr_int64_base_atomics)"
                                         : "double precision (cl_khr_fp64)");
    for (int c = 0; c < 3; c++)
        if (map->grid.n[c] > MOST_VOXELS)
            return tsr_fail(err, TSR_E_RANGE,
                            "a map of %d voxels along %c; the most is %d, bin "
                            "or crop it",
                            map->grid.n[c], "xyz"[c], MOST_VOXELS);
    if (bytes > (double)info->max_alloc_bytes)
        return tsr_fail(err, TSR_E_DEVICE,
                        "a map of %.1f GiB on %s, which holds at most %.1f GiB "
                        "in one piece; bin or crop the map, or give --device "
                        "reference",
                        bytes / 0x1p30, info->name,
                        (double)info->max_alloc_bytes / 0x1p30);
    return TSR_OK;
}

static tsr_status build(map_sum *e, tsr_err *err)
{
    const char *source = "map_sum.cl";
    const tsr_device_info *info = &e->device->info;
    cl_int code;
    TSR_TRY(tsr_program_build(e->device, 1, &source, "-cl-std=CL1.2",
                              &e->program, err));
    snprintf(e->base.describe, sizeof e->base.describe,
             "map sums; %.120s, driver %.60s; source %016llx", info->name,
             info->driver, (unsigned long long)e->program.source_hash);
    e->queue = clCreateCommandQueue(e->device->context, e->device->id,
                                    CL_QUEUE_PROFILING_ENABLE, &code);
    if (e->queue == NULL)
        return tsr_cl_fail(err, e->device, "clCreateCommandQueue", code);
    for (int k = 0; k < N_KERNEL; k++) {
        e->kernel[k] =
            clCreateKernel(e->program.program, kernel_name[k], &code);
        if (e->kernel[k] == NULL)
            return tsr_cl_fail(err, e->device, "clCreateKernel", code);
    }
    return TSR_OK;
}

static tsr_status make(map_sum *e, size_t bytes, cl_mem *out, tsr_err *err)
{
    cl_int code;
    *out = clCreateBuffer(e->device->context, CL_MEM_READ_WRITE, bytes, NULL,
                          &code);
    if (*out == NULL)
        return tsr_cl_fail(err, e->device, "clCreateBuffer", code);
    return TSR_OK;
}

static tsr_status sum_blur(tsr_density_engine *engine,
                           const tsr_blur_table *blur, tsr_err *err)
{
    map_sum *e = (map_sum *)engine;
    cl_float value[TSR_MOST_GAUSSIANS][4] = {{0.0f}};
    TSR_TRY(tsr_map_batch_blur(&e->batch, blur, value, err));
    e->base.blur = *blur;
    const size_t n = TSR_MOST_GAUSSIANS;
    cl_int code = clEnqueueWriteBuffer(e->queue, e->blur, CL_TRUE, 0,
                                       n * sizeof *value, value, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueWriteBuffer(e->queue, e->reach, CL_TRUE, 0,
                                    n * sizeof *e->batch.reach, e->batch.reach,
                                    0, NULL, NULL);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, e->device, "clEnqueueWriteBuffer", code);
}

/* ---- a call on the device ---- */

static tsr_status need(map_sum *e, int which, size_t bytes, tsr_err *err)
{
    if (bytes <= e->bytes[which])
        return TSR_OK;
    if (e->buffer[which] != NULL)
        clReleaseMemObject(e->buffer[which]);
    e->buffer[which] = NULL;
    e->bytes[which] = 0;
    TSR_TRY(make(e, bytes, &e->buffer[which], err));
    e->bytes[which] = bytes;
    return TSR_OK;
}

static tsr_status write_to(map_sum *e, int which, size_t bytes,
                           const void *from, tsr_err *err)
{
    TSR_TRY(need(e, which, bytes, err));
    cl_int code = clEnqueueWriteBuffer(e->queue, e->buffer[which], CL_FALSE, 0,
                                       bytes, from, 0, NULL, NULL);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, e->device, "clEnqueueWriteBuffer", code);
}

static tsr_status zero(map_sum *e, cl_mem buffer, size_t bytes, tsr_err *err)
{
    const cl_uint none = 0;
    cl_int code = clEnqueueFillBuffer(e->queue, buffer, &none, sizeof none, 0,
                                      bytes, 0, NULL, NULL);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, e->device, "clEnqueueFillBuffer", code);
}

/* The systems' particles, and then the systems, whose boxes are known by then.
 */
static tsr_status send(map_sum *e, const tsr_density_batch *batch, int first,
                       const tsr_density_options *o, tsr_err *err)
{
    tsr_map_batch *b = &e->batch;
    const double start = tsr_clock_s();
    size_t n_atom;
    TSR_TRY(tsr_map_batch_begin(b, batch, first, o, &n_atom, err));
    const size_t size = b->each * 4 * sizeof(cl_int);
    TSR_TRY(need(e, PARTICLE, (n_atom + 1) * size, err));
    TSR_TRY(tsr_staging_send(&e->staging, e->buffer[PARTICLE], n_atom, size,
                             tsr_map_batch_put, b, err));
    e->times.place_s += tsr_clock_s() - start;
    TSR_TRY(tsr_map_batch_end(b, o, err));
    return write_to(e, CALL, ((size_t)b->n_system + 1) * sizeof *b->system,
                    b->system, err);
}

/* Room for what the kernels make, at 0 where they add to it. */
static tsr_status make_place(map_sum *e, const tsr_density_options *o,
                             tsr_err *err)
{
    const size_t n = (size_t)e->batch.n_system, n_cell = e->batch.n_cell;
    const tsr_map_grid *g = &e->base.map->grid;
    const size_t tiles = o->tile != NULL ? tsr_map_n_tile(g) : 1;
    const size_t voxels = o->density != NULL ? tsr_map_n_voxel(g) : 1;
    TSR_TRY(need(e, CELL_COUNT, n_cell * sizeof(cl_uint), err));
    TSR_TRY(need(e, CURSOR, n_cell * sizeof(cl_uint), err));
    TSR_TRY(need(e, NEAR, e->batch.n_listed * sizeof(cl_uint), err));
    TSR_TRY(need(e, ACTIVE, n_cell * 2 * sizeof(cl_uint), err));
    TSR_TRY(need(e, OUT, n * sizeof *e->sum, err));
    TSR_TRY(need(e, TILE, tiles * SUMS * sizeof(double), err));
    TSR_TRY(need(e, DENSITY, voxels * sizeof(float), err));
    if (!e->batch.is_small) {
        TSR_TRY(zero(e, e->buffer[CELL_COUNT], n_cell * sizeof(cl_uint), err));
        TSR_TRY(zero(e, e->buffer[OUT], n * sizeof *e->sum, err));
    }
    if (o->tile != NULL)
        TSR_TRY(zero(e, e->buffer[TILE], tiles * SUMS * sizeof(double), err));
    if (o->density != NULL)
        TSR_TRY(zero(e, e->buffer[DENSITY], voxels * sizeof(float), err));
    return TSR_OK;
}

/* An argument of a kernel; the kernels' own lists are the reference. */
typedef struct {
    size_t size;
    const void *value;
} argument;

static tsr_status launch(map_sum *e, int which, size_t global, size_t local,
                         int n, const argument *arguments, cl_event *event,
                         tsr_err *err)
{
    cl_kernel kernel = e->kernel[which];
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < n && code == CL_SUCCESS; i++)
        code = clSetKernelArg(kernel, (cl_uint)i, arguments[i].size,
                              arguments[i].value);
    if (code != CL_SUCCESS)
        return tsr_cl_fail(err, e->device, "clSetKernelArg", code);
    global = (global + local - 1) / local * local;
    code = clEnqueueNDRangeKernel(e->queue, kernel, 1, NULL, &global, &local, 0,
                                  NULL, event);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, e->device, "clEnqueueNDRangeKernel", code);
}

#define ARGUMENT(x)     \
    {                   \
        sizeof(x), &(x) \
    }
#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* The lists of atoms, a tile a list. */
static tsr_status make_lists(map_sum *e, cl_event *first, tsr_err *err)
{
    const cl_int n = (cl_int)e->batch.n_particle,
                 n_cell = (cl_int)e->batch.n_cell;
    const cl_int systems = e->batch.n_system;
    cl_mem *b = e->buffer;
    const argument count[] = {ARGUMENT(b[PARTICLE]),
                              ARGUMENT(n),
                              ARGUMENT(b[CALL]),
                              ARGUMENT(e->reach),
                              ARGUMENT(e->batch.mask_reach),
                              ARGUMENT(b[CELL_COUNT])};
    const argument place[] = {ARGUMENT(b[CALL]),       ARGUMENT(systems),
                              ARGUMENT(b[CELL_COUNT]), ARGUMENT(n_cell),
                              ARGUMENT(b[CURSOR]),     ARGUMENT(b[ACTIVE])};
    const argument scatter[] = {ARGUMENT(b[PARTICLE]),
                                ARGUMENT(n),
                                ARGUMENT(b[CALL]),
                                ARGUMENT(e->reach),
                                ARGUMENT(e->batch.mask_reach),
                                ARGUMENT(b[CURSOR]),
                                ARGUMENT(b[NEAR])};
    const argument list[] = {
        ARGUMENT(b[PARTICLE]),   ARGUMENT(b[CALL]),
        ARGUMENT(e->reach),      ARGUMENT(e->batch.mask_reach),
        ARGUMENT(b[CELL_COUNT]), ARGUMENT(b[CURSOR]),
        ARGUMENT(b[NEAR]),       ARGUMENT(b[ACTIVE]),
        ARGUMENT(b[OUT]),        {SMALL * sizeof(cl_uint), NULL}};
    if (e->batch.is_small)
        return launch(e, LIST, (size_t)systems * LISTERS, LISTERS,
                      COUNT_OF(list), list, first, err);
    TSR_TRY(launch(e, COUNT, e->batch.n_particle, LANES, COUNT_OF(count), count,
                   first, err));
    TSR_TRY(launch(e, PLACE, e->batch.n_cell, LANES, COUNT_OF(place), place,
                   NULL, err));
    return launch(e, SCATTER, e->batch.n_particle, LANES, COUNT_OF(scatter),
                  scatter, NULL, err);
}

/* The launch that makes densities and sums. */
static tsr_status sum_up(map_sum *e, const tsr_density_options *o,
                         cl_event *last, tsr_err *err)
{
    const tsr_map_grid *g = &e->base.map->grid;
    const cl_int size[4] = {g->n[0], g->n[1], g->n[2], 0};
    const int other_sets = o->mask_ang > 0.0 || o->threshold != NULL;
    const cl_int wanted = (o->density != NULL ? 1 : 0) |
                          (o->tile != NULL ? 2 : 0) | (other_sets ? 4 : 0);
    const cl_float radius[4] = {(cl_float)g->step[0], (cl_float)g->step[1],
                                (cl_float)g->step[2],
                                (cl_float)(o->mask_ang * o->mask_ang)};
    const double unit = e->batch.unit;
    cl_mem *b = e->buffer;
    const argument sum[] = {ARGUMENT(b[CALL]),
                            ARGUMENT(b[CELL_COUNT]),
                            ARGUMENT(b[CURSOR]),
                            ARGUMENT(b[NEAR]),
                            ARGUMENT(b[PARTICLE]),
                            ARGUMENT(e->blur),
                            ARGUMENT(e->reach),
                            ARGUMENT(e->map),
                            ARGUMENT(size),
                            ARGUMENT(wanted),
                            ARGUMENT(radius),
                            ARGUMENT(unit),
                            ARGUMENT(b[ACTIVE]),
                            ARGUMENT(b[OUT]),
                            ARGUMENT(b[TILE]),
                            ARGUMENT(b[DENSITY]),
                            {LANES * 4 * sizeof(cl_int), NULL},
                            {(size_t)SUMS * LANES * sizeof(double), NULL},
                            {sizeof(cl_uint), NULL}};
    const size_t units = (size_t)e->device->info.compute_units;
    size_t groups = units * (e->device->info.type == TSR_DEVICE_CPU ? 4 : 16);
    groups = groups < e->batch.n_cell ? groups : e->batch.n_cell;
    return launch(e, SUM, groups * LANES, LANES, COUNT_OF(sum), sum, last, err);
}

/* From the start of one event to the end of another, in seconds. */
static double between(cl_event first, cl_event last)
{
    cl_ulong from = 0, to = 0;
    clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof from,
                            &from, NULL);
    clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof to, &to,
                            NULL);
    return to > from ? 1e-9 * (double)(to - from) : 0.0;
}

static tsr_status read_back(map_sum *e, int which, size_t bytes, void *to,
                            tsr_err *err)
{
    cl_event event = NULL;
    cl_int code = clEnqueueReadBuffer(e->queue, e->buffer[which], CL_TRUE, 0,
                                      bytes, to, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return tsr_cl_fail(err, e->device, "clEnqueueReadBuffer", code);
    e->times.read_s += between(event, event);
    clReleaseEvent(event);
    return TSR_OK;
}

static tsr_status read_tiles(map_sum *e, const tsr_density_options *o,
                             tsr_err *err)
{
    const size_t n = tsr_map_n_tile(&e->base.map->grid);
    double *raw = malloc(n * SUMS * sizeof *raw);
    if (raw == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for tiles");
    tsr_status status = read_back(e, TILE, n * SUMS * sizeof *raw, raw, err);
    for (size_t k = 0; k < n && status == TSR_OK; k++) {
        const double *t = raw + k * SUMS;
        o->tile[k] = (tsr_map_sums){.n = t[0],
                                    .e = t[1],
                                    .ee = t[2],
                                    .s = t[3] * e->batch.unit,
                                    .ss = t[4] * e->batch.unit * e->batch.unit,
                                    .es = t[5] * e->batch.unit};
    }
    free(raw);
    return status;
}

static tsr_map_sums unpack(const map_sum *e, int at, int set)
{
    const cl_long *v = e->sum[at] + 6 * set;
    const double *f = e->batch.system[at + 1].scale, u = e->batch.unit;
    return (tsr_map_sums){.n = (double)v[0],
                          .e = (double)v[1] / f[0],
                          .ee = (double)v[2] / f[1],
                          .s = (double)v[3] * u,
                          .ss = (double)v[4] / f[2] * u * u,
                          .es = (double)v[5] / f[3] * u};
}

/* The sums of reached tiles are the device's; where no atom reaches, S is 0
 * and adds to those of E alone, which are known. */
static void finish(const map_sum *e, int at, tsr_density_sums *out)
{
    const tsr_map_sums *whole = &e->base.whole;
    out->box = unpack(e, at, 0);
    const double n_rest = whole->n - out->box.n;
    const double e_rest = whole->e - out->box.e;
    const double ee_rest = whole->ee - out->box.ee;
    out->box.n = whole->n, out->box.e = whole->e, out->box.ee = whole->ee;
    out->mask = unpack(e, at, 1);
    out->above = unpack(e, at, 2);
    if (e->batch.system[at + 1].threshold <= 0.0) {
        out->above.n += n_rest;
        out->above.e += e_rest;
        out->above.ee += ee_rest;
    }
}

/* What no atom reaches. */
static void put_nothing(const map_sum *e, const tsr_density_options *o)
{
    const tsr_map_grid *g = &e->base.map->grid;
    if (o->density != NULL)
        memset(o->density, 0, tsr_map_n_voxel(g) * sizeof *o->density);
    if (o->tile != NULL)
        memset(o->tile, 0, tsr_map_n_tile(g) * sizeof *o->tile);
}

static tsr_status run_device(map_sum *e, const tsr_density_options *o,
                             tsr_err *err)
{
    const size_t n_system = (size_t)e->batch.n_system;
    const double start = tsr_clock_s();
    cl_event first = NULL, last = NULL;
    memset(e->sum, 0, n_system * sizeof *e->sum);
    if (e->batch.n_cell == 0) {
        clFinish(e->queue); /* it may still read the batch's */
        put_nothing(e, o);
        return TSR_OK;
    }
    tsr_status status = make_place(e, o, err);
    if (status == TSR_OK)
        status = make_lists(e, &first, err);
    if (status == TSR_OK)
        status = sum_up(e, o, &last, err);
    e->times.queue_s += tsr_clock_s() - start;
    if (status == TSR_OK)
        status = read_back(e, OUT, n_system * sizeof *e->sum, e->sum, err);
    if (status == TSR_OK)
        e->times.kernel_s += between(first, last);
    if (status == TSR_OK && o->tile != NULL)
        status = read_tiles(e, o, err);
    if (status == TSR_OK && o->density != NULL)
        status =
            read_back(e, DENSITY,
                      tsr_map_n_voxel(&e->base.map->grid) * sizeof *o->density,
                      o->density, err);
    if (first != NULL)
        clReleaseEvent(first);
    if (last != NULL)
        clReleaseEvent(last);
    return status;
}

/* As many systems from number k on as go into one call. */
static tsr_status run_some(map_sum *e, const tsr_density_batch *batch, int k,
                           const tsr_density_options *o, tsr_err *err)
{
    TSR_TRY(send(e, batch, k, o, err));
    if (e->batch.n_system > e->room) {
        free(e->sum);
        e->room = 0;
        e->sum = calloc((size_t)e->batch.n_system, sizeof *e->sum);
        if (e->sum == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory for sums");
        e->room = e->batch.n_system;
    }
    return run_device(e, o, err);
}

static tsr_status sum_run(tsr_density_engine *engine,
                          const tsr_density_batch *batch,
                          const tsr_density_options *o, tsr_density_sums *out,
                          tsr_err *err)
{
    map_sum *e = (map_sum *)engine;
    e->times = (tsr_map_sum_times){.build_s = e->times.build_s,
                                   .map_s = e->times.map_s};
    for (int k = 0; k < batch->n_system; k += e->batch.n_system) {
        const tsr_status status = run_some(e, batch, k, o, err);
        if (status != TSR_OK)
            clFinish(e->queue); /* what it still reads is the engine's own */
        e->times.send_s += tsr_staging_wait(&e->staging);
        TSR_TRY(status);
        for (int i = 0; i < e->batch.n_system; i++)
            finish(e, i, &out[k + i]);
    }
    return TSR_OK;
}

tsr_map_sum_times tsr_map_sum_last(const tsr_density_engine *engine)
{
    return ((const map_sum *)engine)->times;
}

static void put_voxels(void *context, size_t first, size_t n, void *out)
{
    const tsr_map *map = context;
    memcpy(out, map->value + first, n * sizeof *map->value);
}

/* What stays on the device: the map, and room for the blur. */
static tsr_status bring(map_sum *e, const tsr_map *map, tsr_err *err)
{
    const double start = tsr_clock_s();
    const size_t n = tsr_map_n_voxel(&map->grid), m = TSR_MOST_GAUSSIANS;
    union {
        const tsr_map *from;
        void *context;
    } host = {map}; /* read only */
    TSR_TRY(tsr_staging_make(&e->staging, e->device, e->queue, err));
    TSR_TRY(make(e, n * sizeof(float), &e->map, err));
    TSR_TRY(tsr_staging_send(&e->staging, e->map, n, sizeof(float), put_voxels,
                             host.context, err));
    TSR_TRY(make(e, m * 4 * sizeof(cl_float), &e->blur, err));
    TSR_TRY(make(e, m * 4 * sizeof(cl_int), &e->reach, err));
    tsr_staging_wait(&e->staging);
    e->times.map_s += tsr_clock_s() - start;
    return TSR_OK;
}

tsr_status tsr_map_sum_new(const tsr_device *device, const tsr_map *map,
                           tsr_density_engine **out, tsr_err *err)
{
    *out = NULL;
    TSR_TRY(check(device, map, err));
    map_sum *e = calloc(1, sizeof *e);
    if (e == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for densities");
    double start = tsr_clock_s();
    const tsr_map_sums whole = tsr_map_whole(map);
    e->times.map_s = tsr_clock_s() - start;
    e->device = device;
    tsr_map_batch_make(&e->batch, &map->grid, &whole);
    e->base = (tsr_density_engine){.free = sum_free,
                                   .set_blur = sum_blur,
                                   .run = sum_run,
                                   .map = map,
                                   .whole = whole};
    start = tsr_clock_s();
    tsr_status status = build(e, err);
    e->times.build_s = tsr_clock_s() - start;
    if (status == TSR_OK)
        status = bring(e, map, err);
    if (status != TSR_OK) {
        sum_free(&e->base);
        return status;
    }
    *out = &e->base;
    return TSR_OK;
}

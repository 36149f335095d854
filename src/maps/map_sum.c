/* Host side of the map-sum kernels: coordinates in integer units, the tiles
 * that each system reaches, scales that keep 64-bit sums from overflowing,
 * launches, and the self-test. */
#include "maps/map_sum.h"

#include "core/clock.h"
#include "gpu/opencl.h"
#include "maps/density.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A system in the layout of the kernels. */
typedef struct {
    int32_t box[8]; /* the box of tiles that atoms may reach: first tile along
                       x, y, z; number of tiles along x, y, z; then number of
                       the system's first cell (a tile of its box) and first
                       particle (a Gaussian of an atom) */
    int32_t n_particle, n_cell;
    double threshold; /* in units of `unit` */
    double scale[4];  /* of E, E^2, S^2 and E S */
} map_system;

enum {
    SUMS = 18,         /* sums of a system, as in the kernels */
    LANES = 64,        /* work-group of all kernels but map_list */
    LISTERS = 256,     /* work-group of map_list */
    SMALL = 4096,      /* most cells of a small system */
    SIDE = 8,          /* voxels along a tile */
    MOST_VOXELS = 2000 /* most voxels along an axis: coordinates have 32 bits */
};

enum { COUNT, PLACE, SCATTER, LIST, SUM, N_KERNEL };
static const char *const kernel_name[N_KERNEL] = {
    "map_count", "map_place", "map_scatter", "map_list", "map_sum"};

/* Buffers on the device, which grow on demand. */
enum {
    PARTICLE,
    CALL, /* counters and systems */
    CELL_COUNT,
    CURSOR,
    NEAR,
    ACTIVE,
    OUT,
    DENSITY,
    N_BUFFER
};

/* The engine of a device. */
typedef struct {
    tsr_density_engine base;
    const tsr_device *device;
    int is_clone; /* 1: program and map are borrowed */
    tsr_program program;
    tsr_cl cl; /* owns queue, kernels, map, on_blur and on_reach */
    cl_command_queue queue;
    cl_kernel kernel[N_KERNEL];
    cl_mem map, on_blur, on_reach; /* on_blur: scale_blur's `value` */
    cl_mem buffer[N_BUFFER];
    size_t bytes[N_BUFFER];
    tsr_staging staging;
    tsr_map_sum_times times;
    /* The blur, in units of voxels and of `unit`. */
    double unit; /* unit of S */
    double most; /* bound on the sum of a Gaussian of height 1 over voxels */
    int32_t reach[TSR_MOST_GAUSSIANS][4]; /* reach of each Gaussian along x, y,
                                             z; then is_atom */
    int32_t mask_reach[4];
    int32_t reach_max[3]; /* largest reach of Gaussians and mask */
    /* The present call on the device. */
    const tsr_density_batch *from; /* the batch, borrowed */
    int first_system;              /* number of the call's first system in
                                      the batch */
    size_t gaussians_each;         /* largest number of Gaussians of an atom */
    size_t n_particle, n_cell, n_listed; /* n_listed: upper bound of the entries
                                            in all tiles' lists */
    int n_system, is_small; /* is_small 1: one work-group makes all lists of a
                               system (map_list) */
    int capacity;           /* allocated systems */
    map_system *system;     /* [1 + n_system]; number 0 is all 0 */
    int32_t (*bound)[2][3]; /* [n_system] lowest and highest coordinates of the
                               atoms */
    cl_long (*sum)[SUMS];   /* [n_system] */
    int is_bad;             /* 1: a coordinate is not finite */
    pthread_mutex_t shared; /* guards bound and is_bad */
} map_sum;

enum {
    FRACTION = 19,     /* bits of a coordinate below one voxel; as in the
                          kernels */
    MOST_REACH = 1000, /* voxels */
    MOST_CELLS = 1 << 24,
    MOST_LISTED = 1 << 27,
    MOST_PARTICLES = 1 << 24,
    MOST_SYSTEMS = 1 << 20,
    SMALL_PARTICLES = 1 << 14 /* of a system whose lists one work-group makes */
};

static const double ln_2 = 0.69314718055994531, root_2pi = 2.5066282746310002;

/* Sets the blur in units of the kernels. value [n] out: amplitude / unit; then
 * p for x, y and z, where the Gaussian at a distance of d voxels is 2^(-p d^2).
 * Errors: TSR_E_RANGE. */
static tsr_status scale_blur(map_sum *e, const tsr_blur_table *blur,
                             float (*value)[4], tsr_err *err)
{
    double largest = 0.0;
    for (int g = 0; g < blur->n; g++)
        largest = fmax(largest, blur->gaussian[g].amplitude);
    e->base.blur = *blur;
    e->unit = ldexp(largest, -22);
    e->most = 0.0;
    for (int g = 0; g < blur->n; g++) {
        const tsr_gaussian *one = &blur->gaussian[g];
        double volume = 1.0;
        value[g][0] = (float)ldexp(one->amplitude / largest, 22);
        e->reach[g][3] = one->is_atom;
        for (int c = 0; c < 3; c++) {
            const double sigma = one->sigma_ang / e->base.map->grid.step[c];
            const double far = TSR_BLUR_REACH * sigma;
            if (!(far < MOST_REACH))
                return tsr_fail(err, TSR_E_RANGE,
                                "an atom's Gaussian of %.1f Angstrom reaches "
                                "over %.0f voxels; is the resolution right?",
                                one->sigma_ang, far);
            value[g][1 + c] = (float)(0.5 / (ln_2 * sigma * sigma));
            e->reach[g][c] = (int32_t)ldexp(far, FRACTION);
            volume *= 1.0 + root_2pi * sigma;
        }
        e->most = fmax(e->most, volume);
    }
    return TSR_OK;
}

/* Memory on the host for the systems of a call. */
static tsr_status reserve(map_sum *e, int n_system, tsr_err *err)
{
    const size_t n = (size_t)n_system + 1;
    if (n_system <= e->capacity)
        return TSR_OK;
    e->system = tsr_pool_resize(&e->base.pool, e->system, n, sizeof *e->system);
    e->bound = tsr_pool_resize(&e->base.pool, e->bound, n, sizeof *e->bound);
    e->sum = tsr_pool_resize(&e->base.pool, e->sum, n, sizeof *e->sum);
    e->capacity = n_system;
    return tsr_pool_check(&e->base.pool, err);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static tsr_status set_mask(map_sum *b, double mask_ang, tsr_err *err)
{
    for (int c = 0; c < 3; c++) {
        const double far = mask_ang / b->base.map->grid.step[c];
        if (!(far < MOST_REACH))
            return tsr_fail(err, TSR_E_RANGE,
                            "a mask of %.0f voxels around "
                            "atoms",
                            far);
        b->mask_reach[c] = (int32_t)ceil(ldexp(far, FRACTION));
        b->reach_max[c] = b->mask_reach[c];
        for (int g = 0; g < b->base.blur.n; g++)
            b->reach_max[c] = larger(b->reach_max[c], b->reach[g][c]);
    }
    b->mask_reach[3] = 1;
    return TSR_OK;
}

/* ---- one system ---- */

/* The nearest integer of |x| < 2^31. Adding 1.5 * 2^52 leaves this integer in
 * the last bits of the sum. Calling lrint would take as long as the rest of the
 * loop. */
static int32_t nearest(double x)
{
    const double sum = x + 0x1.8p52;
    int64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return (int32_t)(bits & 0xffffffff);
}

/* A coordinate that reaches no voxel, for atoms too far away for 32 bits. */
static const int32_t too_far = 0x5fffffff;

/* Converts an atom's coordinates to integers. by [3]: units of a coordinate in
 * an Angstrom. Returns 0 where a coordinate is not finite. */
static int scale_coordinates(const map_sum *b, const double by[3],
                             const double x[3], int32_t out[3])
{
    int is_near = 1, is_good = 1;
    for (int c = 0; c < 3; c++) { /* hot loop without a branch */
        const double at = (x[c] - b->base.map->grid.origin[c]) * by[c];
        is_good &= fabs(x[c]) <= 1e30;
        is_near &= fabs(at) < 0x1.8p30;
        out[c] = nearest(at);
    }
    for (int c = 0; c < 3 && !is_near; c++)
        out[c] = too_far;
    return is_good;
}

/* Writes an atom's Gaussians, all at one position, and extends the bound of its
 * system. system: number in the call. Returns 0 where a coordinate is not
 * finite. */
static int make_particles(const map_sum *b, int atom, int system,
                          const double by[3], int32_t bound[2][3],
                          int32_t (*out)[4])
{
    const int z = b->from->z[atom];
    int32_t x[3];
    const int is_good = scale_coordinates(b, by, b->from->xyz[atom], x);
    for (size_t n = 0; n < b->gaussians_each; n++) {
        memcpy(out[n], x, sizeof x);
        out[n][3] =
            (b->base.blur.first[z] + (int)n) | (int32_t)((uint32_t)system << 8);
    }
    for (int c = 0; c < 3 && x[0] != too_far; c++) {
        bound[0][c] = smaller(bound[0][c], x[c]);
        bound[1][c] = larger(bound[1][c], x[c]);
    }
    return is_good;
}

static const int32_t no_bound[2][3] = {{INT32_MAX, INT32_MAX, INT32_MAX},
                                       {INT32_MIN, INT32_MIN, INT32_MIN}};

/* Number in the call of the system that contains an atom, by bisection:
 * first[k] <= atom < first[k + 1]. */
static int system_of(const map_sum *b, int atom)
{
    const int *first = b->from->first + b->first_system;
    int low = 0, high = b->n_system;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (first[middle] <= atom)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Converts the n atoms of the call from number `first` on, system by system.
 * Other threads may process parts of the first and the last system. Lowest and
 * highest coordinates do not depend on the order of threads. */
static void make_all_particles(void *engine, size_t first, size_t n, void *out)
{
    map_sum *b = engine;
    const int *first_of = b->from->first + b->first_system;
    const int begin = first_of[0] + (int)first, end = begin + (int)n;
    int32_t(*particle)[4] = out;
    int system = system_of(b, begin);
    double by[3];
    for (int c = 0; c < 3; c++)
        by[c] = ldexp(1.0 / b->base.map->grid.step[c], FRACTION);
    for (int i = begin; i < end; system++) {
        int32_t bound[2][3];
        int is_good = 1;
        memcpy(bound, no_bound, sizeof bound);
        for (; i < smaller(end, first_of[system + 1]); i++)
            is_good &= make_particles(b, i, system, by, bound,
                                      particle + (size_t)(i - begin) *
                                                     b->gaussians_each);
        int32_t(*to)[3] = b->bound[system];
        pthread_mutex_lock(&b->shared);
        b->is_bad |= !is_good;
        for (int c = 0; c < 3; c++) {
            to[0][c] = smaller(to[0][c], bound[0][c]);
            to[1][c] = larger(to[1][c], bound[1][c]);
        }
        pthread_mutex_unlock(&b->shared);
    }
}

/* Sets the box of tiles that the n particles of system number `at` may reach,
 * and adds the system to the numbers of cells, particles and list entries of
 * the call. */
static void set_box(map_sum *b, int at, size_t n)
{
    map_system *system = &b->system[at + 1];
    int32_t *s = system->box;
    const int32_t *low = b->bound[at][0], *high = b->bound[at][1];
    const size_t n_particle = low[0] <= high[0] ? n : 0;
    size_t n_cell = 1, n_each = 1;
    for (int c = 0; c < 3; c++) {
        const int reach = b->reach_max[c];
        const int most = (b->base.map->grid.n[c] - 1) / SIDE;
        int first = 0, last = -1;
        if (n_particle > 0) {
            first = larger((low[c] - reach) >> (FRACTION + 3), 0);
            last = smaller((high[c] + reach) >> (FRACTION + 3), most);
        }
        s[c] = first;
        s[3 + c] = last >= first ? last - first + 1 : 0;
        n_cell *= (size_t)s[3 + c];
        n_each *=
            (size_t)smaller(s[3 + c], ((2 * reach) >> (FRACTION + 3)) + 2);
    }
    s[6] = (int32_t)b->n_cell;
    s[7] = (int32_t)b->n_particle;
    system->n_particle = (int32_t)n;
    system->n_cell = (int32_t)n_cell;
    b->is_small &= n_cell <= SMALL && n <= SMALL_PARTICLES;
    b->n_cell += n_cell;
    b->n_listed += n_each * n_particle;
    b->n_particle += n;
}

/* The largest power of two by which a sum of at most `bound` can be multiplied
 * without overflow. */
static double largest_scale(double bound)
{
    return bound > 0.0 ? exp2(floor(61.0 - log2(bound))) : 1.0;
}

/* Sets scales that keep integer sums from overflowing, even with all particles
 * at one position. */
static tsr_status set_scales(map_sum *b, int at, size_t n_particle,
                             double threshold, tsr_err *err)
{
    const double n = (double)n_particle, peak = 0x1p22 * n;
    const double s = peak * b->most, ss = peak * s;
    map_system *system = &b->system[at + 1];
    if (!(s < 0x1p61))
        return tsr_fail(err, TSR_E_RANGE,
                        "%zu atoms, each over %.0f voxels, overflow the 64-bit "
                        "sums; bin the map",
                        n_particle, b->most);
    system->scale[0] = largest_scale(sqrt(b->base.whole.n * b->base.whole.ee));
    system->scale[1] = largest_scale(b->base.whole.ee);
    system->scale[2] = largest_scale(ss);
    system->scale[3] = largest_scale(sqrt(b->base.whole.ee * ss));
    system->threshold = threshold / b->unit;
    return TSR_OK;
}

/* ---- a call ---- */

/* Largest number of Gaussians of an atom. */
static size_t gaussians_per_atom(const map_sum *b)
{
    int most = 1;
    for (int z = 0; z < TSR_MOST_ELEMENTS; z++)
        most = larger(most, b->base.blur.count[z]);
    return (size_t)most;
}

/* Number of systems from k on that fit into one call, by their atoms. */
static int systems_that_fit(const map_sum *b, const tsr_density_batch *from,
                            int k)
{
    int end = k;
    while (end < from->n_system && end - k < MOST_SYSTEMS) {
        size_t n =
            (size_t)(from->first[end + 1] - from->first[k]) * b->gaussians_each;
        if (n > MOST_PARTICLES && end > k)
            break;
        end++;
    }
    return end - k;
}

/* Begins a call with as many systems from number `first` on as fit, at least
 * one. *n_atom out. Errors: TSR_E_NOMEM, TSR_E_RANGE. */
static tsr_status begin_call(map_sum *b, const tsr_density_batch *from,
                             int first, const tsr_density_options *options,
                             size_t *n_atom, tsr_err *err)
{
    b->from = from;
    b->first_system = first;
    b->gaussians_each = gaussians_per_atom(b);
    b->is_bad = 0;
    b->n_system = systems_that_fit(b, from, first);
    *n_atom = (size_t)(from->first[first + b->n_system] - from->first[first]);
    TSR_TRY(set_mask(b, options->mask_ang, err));
    TSR_TRY(reserve(b, b->n_system, err));
    b->system[0] = (map_system){0};
    for (int k = 0; k < b->n_system; k++)
        memcpy(b->bound[k], no_bound, sizeof no_bound);
    return TSR_OK;
}

/* Completes the systems after all particles are made. Reduces n_system to the
 * systems that keep the limits of a call. Errors: TSR_E_NUMERIC (a coordinate
 * is not finite), TSR_E_RANGE. */
static tsr_status end_call(map_sum *b, const tsr_density_options *options,
                           tsr_err *err)
{
    const int most = b->n_system;
    if (b->is_bad)
        return tsr_density_not_finite(err);
    b->n_particle = b->n_cell = b->n_listed = 0;
    b->is_small = 1;
    for (b->n_system = 0; b->n_system < most; b->n_system++) {
        const int at = b->n_system, k = b->first_system + at;
        const int *first = b->from->first + k;
        const size_t n = (size_t)(first[1] - first[0]) * b->gaussians_each;
        if (at > 0 && (b->n_cell > MOST_CELLS || b->n_listed > MOST_LISTED))
            break;
        set_box(b, at, n);
        TSR_TRY(set_scales(b, at, n,
                           options->threshold != NULL ? options->threshold[k]
                                                      : (double)INFINITY,
                           err));
    }
    return TSR_OK;
}

/* ---- the device ----
 *
 * Construction, buffers, launches, and conversion of sums to units of map and
 * model. */

/* ---- construction ---- */

static void sum_free(tsr_density_engine *engine)
{
    map_sum *e = (map_sum *)engine;
    tsr_cl_finish(&e->cl);
    tsr_staging_clear(&e->staging);
    for (int i = 0; i < N_BUFFER; i++)
        if (e->buffer[i] != NULL)
            clReleaseMemObject(e->buffer[i]);
    tsr_cl_clear(&e->cl);
    if (!e->is_clone)
        tsr_program_clear(&e->program);
    pthread_mutex_destroy(&e->shared);
}

static tsr_status check_device(const tsr_device *device, const tsr_map *map,
                               tsr_err *err)
{
    const tsr_device_info *info = &device->info;
    const double bytes = (double)tsr_map_n_voxel(&map->grid) * sizeof(float);
    if (!info->has_double || !info->has_int64_atomics)
        return tsr_fail(err, TSR_E_DEVICE,
                        "%s lacks %s, which density maps need; give another "
                        "--device, or reference",
                        info->name,
                        info->has_double ? "64-bit atomics "
                                           "(cl_khr_int64_base_atomics)"
                                         : "double precision (cl_khr_fp64)");
    for (int c = 0; c < 3; c++)
        if (map->grid.n[c] > MOST_VOXELS)
            return tsr_fail(err, TSR_E_RANGE,
                            "a map of %d voxels along %c; the limit is %d, bin "
                            "or crop the map",
                            map->grid.n[c], "xyz"[c], MOST_VOXELS);
    if (bytes > (double)info->max_alloc_bytes)
        return tsr_fail(
            err, TSR_E_DEVICE,
            "a map of %.1f GiB on %s, which stores at most %.1f GiB in one "
            "buffer; bin or crop the map, or give --device reference",
            bytes / 0x1p30, info->name, (double)info->max_alloc_bytes / 0x1p30);
    return TSR_OK;
}

/* Builds the program and allocates the map and the blur on the device. */
static tsr_status build(map_sum *e, tsr_err *err)
{
    const char *source = "map_sum.cl";
    const tsr_device_info *info = &e->device->info;
    const size_t n_voxel = tsr_map_n_voxel(&e->base.map->grid);
    TSR_TRY(tsr_program_build(e->device, 1, &source, "-cl-std=CL1.2",
                              &e->program, err));
    snprintf(e->base.describe, sizeof e->base.describe,
             "map sums; %.120s, driver %.60s; source %016llx", info->name,
             info->driver, (unsigned long long)e->program.source_hash);
    e->map = tsr_cl_buffer(&e->cl, CL_MEM_READ_WRITE,
                           n_voxel * sizeof(cl_float), NULL);
    return tsr_cl_check(&e->cl, err);
}

/* What an engine does not share with its clones. */
static tsr_status make_queue(map_sum *e, tsr_err *err)
{
    e->queue = tsr_cl_queue(&e->cl, CL_QUEUE_PROFILING_ENABLE);
    for (int k = 0; k < N_KERNEL; k++)
        e->kernel[k] = tsr_cl_kernel(&e->cl, &e->program, kernel_name[k]);
    e->on_blur = tsr_cl_buffer(&e->cl, CL_MEM_READ_WRITE,
                               TSR_MOST_GAUSSIANS * 4 * sizeof(cl_float), NULL);
    e->on_reach =
        tsr_cl_buffer(&e->cl, CL_MEM_READ_WRITE, sizeof e->reach, NULL);
    TSR_TRY(tsr_cl_check(&e->cl, err));
    return tsr_staging_make(&e->staging, e->device, e->queue, err);
}

/* Enqueues a write; `from` must stay unchanged until the queue is finished. */
static tsr_status write_to(const map_sum *e, cl_mem to, size_t bytes,
                           const void *from, tsr_err *err)
{
    return tsr_cl_status(err, e->device, "clEnqueueWriteBuffer",
                         clEnqueueWriteBuffer(e->queue, to, CL_FALSE, 0, bytes,
                                              from, 0, NULL, NULL));
}

static tsr_status sum_blur(tsr_density_engine *engine,
                           const tsr_blur_table *blur, tsr_err *err)
{
    map_sum *e = (map_sum *)engine;
    cl_float value[TSR_MOST_GAUSSIANS][4] = {{0.0f}};
    TSR_TRY(scale_blur(e, blur, value, err));
    tsr_status status = write_to(e, e->on_blur, sizeof value, value, err);
    TSR_THEN(status, write_to(e, e->on_reach, sizeof e->reach, e->reach, err));
    clFinish(e->queue);
    return status;
}

/* ---- a call on the device ---- */

static tsr_status reserve_buffer(map_sum *e, int which, size_t bytes,
                                 tsr_err *err)
{
    cl_int code;
    if (bytes <= e->bytes[which])
        return TSR_OK;
    if (e->buffer[which] != NULL)
        clReleaseMemObject(e->buffer[which]);
    e->buffer[which] = clCreateBuffer(e->device->context, CL_MEM_READ_WRITE,
                                      bytes, NULL, &code);
    e->bytes[which] = e->buffer[which] != NULL ? bytes : 0;
    return tsr_cl_status(err, e->device, "clCreateBuffer", code);
}

static tsr_status clear_buffer(map_sum *e, int which, size_t bytes,
                               tsr_err *err)
{
    const cl_uint none = 0;
    return tsr_cl_status(err, e->device, "clEnqueueFillBuffer",
                         clEnqueueFillBuffer(e->queue, e->buffer[which], &none,
                                             sizeof none, 0, bytes, 0, NULL,
                                             NULL));
}

/* Sends the particles, then the systems, whose boxes depend on the
 * particles. */
static tsr_status send_systems(map_sum *e, const tsr_density_batch *batch,
                               int first, const tsr_density_options *o,
                               tsr_err *err)
{
    const double start = tsr_clock_s();
    size_t n_atom, bytes;
    TSR_TRY(begin_call(e, batch, first, o, &n_atom, err));
    const size_t size = e->gaussians_each * 4 * sizeof(cl_int);
    TSR_TRY(reserve_buffer(e, PARTICLE, (n_atom + 1) * size, err));
    TSR_TRY(tsr_staging_send(&e->staging, e->buffer[PARTICLE], n_atom, size,
                             make_all_particles, e, err));
    e->times.place_s += tsr_clock_s() - start;
    TSR_TRY(end_call(e, o, err));
    bytes = ((size_t)e->n_system + 1) * sizeof *e->system;
    TSR_TRY(reserve_buffer(e, CALL, bytes, err));
    return write_to(e, e->buffer[CALL], bytes, e->system, err);
}

/* Reserves the kernels' output buffers and sets those to 0 to which the kernels
 * add. */
static tsr_status reserve_output(map_sum *e, const tsr_density_options *o,
                                 tsr_err *err)
{
    const size_t n = (size_t)e->n_system, n_cell = e->n_cell;
    const tsr_map_grid *g = &e->base.map->grid;
    const size_t voxels = o->density != NULL ? tsr_map_n_voxel(g) : 1;
    TSR_TRY(reserve_buffer(e, CELL_COUNT, n_cell * sizeof(cl_uint), err));
    TSR_TRY(reserve_buffer(e, CURSOR, n_cell * sizeof(cl_uint), err));
    TSR_TRY(reserve_buffer(e, NEAR, e->n_listed * sizeof(cl_uint), err));
    TSR_TRY(reserve_buffer(e, ACTIVE, n_cell * 2 * sizeof(cl_uint), err));
    TSR_TRY(reserve_buffer(e, OUT, n * sizeof *e->sum, err));
    TSR_TRY(reserve_buffer(e, DENSITY, voxels * sizeof(float), err));
    if (!e->is_small) {
        TSR_TRY(clear_buffer(e, CELL_COUNT, n_cell * sizeof(cl_uint), err));
        TSR_TRY(clear_buffer(e, OUT, n * sizeof *e->sum, err));
    }
    if (o->density != NULL)
        TSR_TRY(clear_buffer(e, DENSITY, voxels * sizeof(float), err));
    return TSR_OK;
}

/* An argument of a kernel, in the order of the kernel's parameters. */
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
    return tsr_cl_status(err, e->device, "clEnqueueNDRangeKernel",
                         clEnqueueNDRangeKernel(e->queue, kernel, 1, NULL,
                                                &global, &local, 0, NULL,
                                                event));
}

#define ARGUMENT(x)     \
    {                   \
        sizeof(x), &(x) \
    }
#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Makes the list of atoms of each tile. */
static tsr_status make_lists(map_sum *e, cl_event *first, tsr_err *err)
{
    const cl_int n = (cl_int)e->n_particle, n_cell = (cl_int)e->n_cell;
    const cl_int systems = e->n_system;
    cl_mem *b = e->buffer;
    const argument count[] = {ARGUMENT(b[PARTICLE]),   ARGUMENT(n),
                              ARGUMENT(b[CALL]),       ARGUMENT(e->on_reach),
                              ARGUMENT(e->mask_reach), ARGUMENT(b[CELL_COUNT])};
    const argument place[] = {ARGUMENT(b[CALL]),       ARGUMENT(systems),
                              ARGUMENT(b[CELL_COUNT]), ARGUMENT(n_cell),
                              ARGUMENT(b[CURSOR]),     ARGUMENT(b[ACTIVE])};
    const argument scatter[] = {ARGUMENT(b[PARTICLE]),   ARGUMENT(n),
                                ARGUMENT(b[CALL]),       ARGUMENT(e->on_reach),
                                ARGUMENT(e->mask_reach), ARGUMENT(b[CURSOR]),
                                ARGUMENT(b[NEAR])};
    const argument list[] = {
        ARGUMENT(b[PARTICLE]),   ARGUMENT(b[CALL]),
        ARGUMENT(e->on_reach),   ARGUMENT(e->mask_reach),
        ARGUMENT(b[CELL_COUNT]), ARGUMENT(b[CURSOR]),
        ARGUMENT(b[NEAR]),       ARGUMENT(b[ACTIVE]),
        ARGUMENT(b[OUT]),        {SMALL * sizeof(cl_uint), NULL}};
    if (e->is_small)
        return launch(e, LIST, (size_t)systems * LISTERS, LISTERS,
                      COUNT_OF(list), list, first, err);
    TSR_TRY(launch(e, COUNT, e->n_particle, LANES, COUNT_OF(count), count,
                   first, err));
    TSR_TRY(
        launch(e, PLACE, e->n_cell, LANES, COUNT_OF(place), place, NULL, err));
    return launch(e, SCATTER, e->n_particle, LANES, COUNT_OF(scatter), scatter,
                  NULL, err);
}

/* Launches the kernel that computes densities and sums. */
static tsr_status launch_sums(map_sum *e, const tsr_density_options *o,
                              cl_event *last, tsr_err *err)
{
    const tsr_map_grid *g = &e->base.map->grid;
    const cl_int size[4] = {g->n[0], g->n[1], g->n[2], 0};
    const int other_sets = o->mask_ang > 0.0 || o->threshold != NULL;
    const cl_int wanted = (o->density != NULL ? 1 : 0) | (other_sets ? 2 : 0);
    const cl_float radius[4] = {(cl_float)g->step[0], (cl_float)g->step[1],
                                (cl_float)g->step[2],
                                (cl_float)(o->mask_ang * o->mask_ang)};
    const double unit = e->unit;
    cl_mem *b = e->buffer;
    const argument sum[] = {ARGUMENT(b[CALL]),
                            ARGUMENT(b[CELL_COUNT]),
                            ARGUMENT(b[CURSOR]),
                            ARGUMENT(b[NEAR]),
                            ARGUMENT(b[PARTICLE]),
                            ARGUMENT(e->on_blur),
                            ARGUMENT(e->on_reach),
                            ARGUMENT(e->map),
                            ARGUMENT(size),
                            ARGUMENT(wanted),
                            ARGUMENT(radius),
                            ARGUMENT(unit),
                            ARGUMENT(b[ACTIVE]),
                            ARGUMENT(b[OUT]),
                            ARGUMENT(b[DENSITY]),
                            {LANES * 4 * sizeof(cl_int), NULL},
                            {(size_t)SUMS * LANES * sizeof(double), NULL},
                            {sizeof(cl_uint), NULL}};
    const size_t units = (size_t)e->device->info.compute_units;
    size_t groups = units * (e->device->info.type == TSR_DEVICE_CPU ? 4 : 16);
    groups = groups < e->n_cell ? groups : e->n_cell;
    return launch(e, SUM, groups * LANES, LANES, COUNT_OF(sum), sum, last, err);
}

/* Seconds from the start of one event to the end of another. */
static double event_seconds(cl_event first, cl_event last)
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
    e->times.read_s += event_seconds(event, event);
    clReleaseEvent(event);
    return TSR_OK;
}

/* Sums of system number `at` over a set of voxels: box 0, mask 1, above 2. */
static tsr_map_sums unpack(const map_sum *e, int at, int set)
{
    const cl_long *v = e->sum[at] + 6 * set;
    const double *f = e->system[at + 1].scale, u = e->unit;
    return (tsr_map_sums){.n = (double)v[0],
                          .e = (double)v[1] / f[0],
                          .ee = (double)v[2] / f[1],
                          .s = (double)v[3] * u,
                          .ss = (double)v[4] / f[2] * u * u,
                          .es = (double)v[5] / f[3] * u};
}

/* Completes the sums of system number `at`. The device sums only over tiles
 * that atoms reach. In all other tiles S is 0, and the sums of E follow from
 * those of the whole map. */
static void complete_sums(const map_sum *e, int at, tsr_density_sums *out)
{
    const tsr_map_sums *whole = &e->base.whole;
    out->box = unpack(e, at, 0);
    const double n_rest = whole->n - out->box.n;
    const double e_rest = whole->e - out->box.e;
    const double ee_rest = whole->ee - out->box.ee;
    out->box.n = whole->n, out->box.e = whole->e, out->box.ee = whole->ee;
    out->mask = unpack(e, at, 1);
    out->above = unpack(e, at, 2);
    if (e->system[at + 1].threshold <= 0.0) {
        out->above.n += n_rest;
        out->above.e += e_rest;
        out->above.ee += ee_rest;
    }
}

/* Optional results where no atom reaches the map. */
static void clear_output(const map_sum *e, const tsr_density_options *o)
{
    const tsr_map_grid *g = &e->base.map->grid;
    if (o->density != NULL)
        memset(o->density, 0, tsr_map_n_voxel(g) * sizeof *o->density);
}

static tsr_status run_device(map_sum *e, const tsr_density_options *o,
                             tsr_err *err)
{
    const size_t n_system = (size_t)e->n_system;
    const double start = tsr_clock_s();
    cl_event first = NULL, last = NULL;
    memset(e->sum, 0, n_system * sizeof *e->sum);
    if (e->n_cell == 0) {
        clFinish(e->queue); /* the queue may still read the batch's memory */
        clear_output(e, o);
        return TSR_OK;
    }
    tsr_status status = reserve_output(e, o, err);
    TSR_THEN(status, make_lists(e, &first, err));
    TSR_THEN(status, launch_sums(e, o, &last, err));
    e->times.queue_s += tsr_clock_s() - start;
    TSR_THEN(status, read_back(e, OUT, n_system * sizeof *e->sum, e->sum, err));
    if (status == TSR_OK)
        e->times.kernel_s += event_seconds(first, last);
    if (status == TSR_OK && o->density != NULL)
        status =
            read_back(e, DENSITY,
                      tsr_map_n_voxel(&e->base.map->grid) * sizeof *o->density,
                      o->density, err);
    tsr_cl_release_event(&first);
    tsr_cl_release_event(&last);
    return status;
}

static tsr_status sum_run(tsr_density_engine *engine,
                          const tsr_density_batch *batch,
                          const tsr_density_options *o, tsr_density_sums *out,
                          tsr_err *err)
{
    map_sum *e = (map_sum *)engine;
    e->times = (tsr_map_sum_times){.build_s = e->times.build_s,
                                   .map_s = e->times.map_s};
    for (int k = 0; k < batch->n_system; k += e->n_system) {
        tsr_status status = send_systems(e, batch, k, o, err);
        TSR_THEN(status, run_device(e, o, err));
        if (status != TSR_OK)
            clFinish(e->queue); /* the queue may still read the engine's
                                   memory */
        e->times.send_s += tsr_staging_wait(&e->staging);
        TSR_TRY(status);
        for (int i = 0; i < e->n_system; i++)
            complete_sums(e, i, &out[k + i]);
    }
    return TSR_OK;
}

tsr_map_sum_times tsr_map_sum_last(const tsr_density_engine *engine)
{
    return ((const map_sum *)engine)->times;
}

static void copy_voxels(void *context, size_t first, size_t n, void *out)
{
    const tsr_map *map = context;
    memcpy(out, map->value + first, n * sizeof *map->value);
}

static tsr_status upload_map(map_sum *e, const tsr_map *map, tsr_err *err)
{
    union {
        const tsr_map *from;
        void *context;
    } host = {map}; /* only read */
    TSR_TRY(tsr_staging_send(&e->staging, e->map, tsr_map_n_voxel(&map->grid),
                             sizeof(float), copy_voxels, host.context, err));
    tsr_staging_wait(&e->staging);
    return TSR_OK;
}

static tsr_status sum_clone(tsr_density_engine *engine,
                            tsr_density_engine **out, tsr_err *err);

static tsr_status allocate(const tsr_device *device, const tsr_map *map,
                           map_sum **out, tsr_err *err)
{
    tsr_pool pool = {0};
    map_sum *e = *out = tsr_pool_new(&pool, 1, sizeof *e);
    TSR_TRY(tsr_allocated(e, err));
    e->device = e->cl.device = device;
    e->base = (tsr_density_engine){.pool = pool,
                                   .free = sum_free,
                                   .set_blur = sum_blur,
                                   .run = sum_run,
                                   .clone = sum_clone,
                                   .map = map};
    pthread_mutex_init(&e->shared, NULL);
    return TSR_OK;
}

static tsr_status sum_clone(tsr_density_engine *engine,
                            tsr_density_engine **out, tsr_err *err)
{
    const map_sum *from = (const map_sum *)engine;
    map_sum *e;
    *out = NULL;
    TSR_TRY(allocate(from->device, engine->map, &e, err));
    e->is_clone = 1;
    e->program = from->program;
    e->map = from->map;
    e->base.whole = engine->whole;
    memcpy(e->base.describe, engine->describe, sizeof e->base.describe);
    tsr_status status = make_queue(e, err);
    if (engine->blur.n > 0)
        TSR_THEN(status, sum_blur(&e->base, &engine->blur, err));
    if (status == TSR_OK)
        *out = &e->base;
    else
        tsr_density_free(&e->base);
    return status;
}

tsr_status tsr_map_sum_new(const tsr_device *device, const tsr_map *map,
                           tsr_density_engine **out, tsr_err *err)
{
    map_sum *e;
    *out = NULL;
    TSR_TRY(check_device(device, map, err));
    TSR_TRY(allocate(device, map, &e, err));
    double start = tsr_clock_s();
    tsr_status status = build(e, err);
    TSR_THEN(status, make_queue(e, err));
    e->times.build_s = tsr_clock_s() - start;
    start = tsr_clock_s();
    e->base.whole = tsr_map_whole(map);
    TSR_THEN(status, upload_map(e, map, err));
    e->times.map_s = tsr_clock_s() - start;
    if (status == TSR_OK)
        *out = &e->base;
    else
        tsr_density_free(&e->base);
    return status;
}

/* ---- self-test ----
 *
 * Compares the device with the reference engine: the sums over all three sets
 * of voxels for two small models in a small map. */

enum { N_ATOM = 120 };

static const double limit = 1e-5; /* about ten times the rounding error */

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

typedef struct {
    tsr_pool pool;
    tsr_map *map;
    double xyz[N_ATOM][3];
    unsigned char z[N_ATOM];
    tsr_blur_table blur;
    tsr_density_engine *fast, *slow;
    tsr_density_sums got[2], want[2];
} sample;

/* A random map with NaN voxels, and atoms inside and outside. */
static tsr_status make_sample(sample *s, tsr_err *err)
{
    static const unsigned char element[] = {6, 7, 8};
    const tsr_map_grid grid = {.n = {21, 18, 27},
                               .step = {1.5, 1.7, 1.3},
                               .origin = {-10.0, 5.0, 100.0}};
    uint64_t state = 2014;
    TSR_TRY(tsr_map_new(&grid, &s->pool, &s->map, err));
    for (size_t k = 0; k < tsr_map_n_voxel(&grid); k++)
        s->map->value[k] = k % 61 == 0 ? NAN : (float)uniform(&state);
    for (int i = 0; i < N_ATOM; i++) {
        s->z[i] = element[i % 3];
        for (int c = 0; c < 3; c++)
            s->xyz[i][c] = grid.origin[c] + grid.step[c] * grid.n[c] *
                                                (1.2 * uniform(&state) - 0.1);
    }
    return tsr_blur_make(TSR_BLUR_GAUSSIAN, 6.0, 0.3, 3, element, &s->blur,
                         err);
}

static tsr_status run(const sample *s, tsr_density_engine *engine,
                      tsr_density_sums *out, tsr_err *err)
{
    const int first[3] = {0, N_ATOM / 3, N_ATOM};
    const double threshold[2] = {2.0, 4.0};
    const tsr_density_batch batch = {.n_system = 2,
                                     .first = first,
                                     .xyz = (const double(*)[3])s->xyz,
                                     .z = s->z};
    const tsr_density_options o = {.mask_ang = 3.0, .threshold = threshold};
    TSR_TRY(engine->set_blur(engine, &s->blur, err));
    return engine->run(engine, &batch, &o, out, err);
}

static tsr_status compare_engines(sample *s, const tsr_device *device,
                                  double *worst, tsr_err *err)
{
    TSR_TRY(tsr_map_sum_new(device, s->map, &s->fast, err));
    TSR_TRY(tsr_density_reference_new(s->map, &s->slow, err));
    TSR_TRY(run(s, s->fast, s->got, err));
    TSR_TRY(run(s, s->slow, s->want, err));
    double got[2 * SUMS], want[2 * SUMS];
    memcpy(got, s->got, sizeof got);
    memcpy(want, s->want, sizeof want);
    for (int k = 0; k < 2 * SUMS; k++) { /* NaN is kept as the worst */
        const double error = fabs(got[k] - want[k]) / (fabs(want[k]) + 1e-30);
        *worst = error <= *worst ? *worst : error;
    }
    return TSR_OK;
}

tsr_status tsr_map_sum_test(const tsr_device *device, double *max_rel_error,
                            tsr_err *err)
{
    double worst = 0.0;
    sample *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    tsr_status status = make_sample(s, err);
    TSR_THEN(status, compare_engines(s, device, &worst, err));
    if (status == TSR_OK && !(worst <= limit))
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s fails the self-test of density maps: a relative "
                          "error of %.2e; %.0e is allowed. Do not use this "
                          "device or driver, or give --device reference",
                          tsr_device_get_info(device)->name, worst, limit);
    if (max_rel_error != NULL)
        *max_rel_error = worst;
    tsr_density_free(s->fast);
    tsr_density_free(s->slow);
    tsr_pool_clear(&s->pool);
    free(s);
    return status;
}

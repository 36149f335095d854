/* What the kernels of map sums are given: coordinates in integer units, the
 * tiles that each system reaches, and scales that keep 64-bit sums from
 * running over. */
#include "gpu/map_batch.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FRACTION = 19,     /* bits of a coordinate below the voxel; the kernels' */
    MOST_REACH = 1000, /* voxels */
    MOST_CELLS = 1 << 24,
    MOST_LISTED = 1 << 27,
    MOST_PARTICLES = 1 << 24,
    MOST_SYSTEMS = 1 << 20
};

static const double ln_2 = 0.69314718055994531, root_2pi = 2.5066282746310002;

void tsr_map_batch_clear(tsr_map_batch *batch)
{
    free(batch->particle);
    free(batch->system);
    free(batch->bound);
    free(batch->threshold);
    free(batch->scale);
}

tsr_status tsr_map_batch_blur(tsr_map_batch *batch, const tsr_blur_table *blur,
                              float (*value)[4], tsr_err *err)
{
    double largest = 0.0;
    for (int g = 0; g < blur->n; g++)
        largest = fmax(largest, blur->gaussian[g].amplitude);
    batch->blur = *blur;
    batch->unit = ldexp(largest, -22);
    batch->most = 0.0;
    for (int g = 0; g < blur->n; g++) {
        const tsr_gaussian *one = &blur->gaussian[g];
        double volume = 1.0;
        value[g][0] = (float)ldexp(one->amplitude / largest, 22);
        batch->reach[g][3] = one->is_atom;
        for (int c = 0; c < 3; c++) {
            const double sigma = one->sigma_ang / batch->grid.step[c];
            const double far = TSR_BLUR_REACH * sigma;
            if (!(far < MOST_REACH))
                return tsr_fail(err, TSR_E_RANGE,
                                "an atom's Gaussian of %.1f Angstrom reaches "
                                "over %.0f voxels; is the resolution right?",
                                one->sigma_ang, far);
            value[g][1 + c] = (float)(0.5 / (ln_2 * sigma * sigma));
            batch->reach[g][c] = (int32_t)ldexp(far, FRACTION);
            volume *= 1.0 + root_2pi * sigma;
        }
        batch->most = fmax(batch->most, volume);
    }
    return TSR_OK;
}

/* Room for n entries of `size` bytes at *at. */
static tsr_status grow(void **at, size_t n, size_t size, tsr_err *err)
{
    void *more = realloc(*at, (n + 1) * size);
    if (more == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for densities");
    *at = more;
    return TSR_OK;
}

static tsr_status make_room(tsr_map_batch *b, size_t n_particle, int n_system,
                            tsr_err *err)
{
    if (n_particle > b->room_particle) {
        TSR_TRY(
            grow((void **)&b->particle, n_particle, sizeof *b->particle, err));
        b->room_particle = n_particle;
    }
    if (n_system > b->room_system) {
        const size_t n = (size_t)n_system;
        TSR_TRY(grow((void **)&b->system, n, sizeof *b->system, err));
        TSR_TRY(grow((void **)&b->bound, n, sizeof *b->bound, err));
        TSR_TRY(grow((void **)&b->threshold, n, sizeof *b->threshold, err));
        TSR_TRY(grow((void **)&b->scale, n, sizeof *b->scale, err));
        b->room_system = n_system;
    }
    return TSR_OK;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static tsr_status set_mask(tsr_map_batch *b, double mask_ang, tsr_err *err)
{
    for (int c = 0; c < 3; c++) {
        const double far = mask_ang / b->grid.step[c];
        if (!(far < MOST_REACH))
            return tsr_fail(err, TSR_E_RANGE,
                            "a mask of %.0f voxels around "
                            "atoms",
                            far);
        b->mask_reach[c] = (int32_t)ceil(ldexp(far, FRACTION));
        b->reach_max[c] = b->mask_reach[c];
        for (int g = 0; g < b->blur.n; g++)
            b->reach_max[c] = larger(b->reach_max[c], b->reach[g][c]);
    }
    b->mask_reach[3] = 1;
    return TSR_OK;
}

/* ---- one system ---- */

/* The nearest integer of |x| < 2^31: the sum with 1.5 * 2^52 has it as its last
 * bits. A call of lrint would take as long as all the rest here. */
static int32_t nearest(double x)
{
    const double sum = x + 0x1.8p52;
    int64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return (int32_t)(bits & 0xffffffff);
}

/* A coordinate too far from the map to reach it, or for 32 bits. */
static const int32_t too_far = 0x5fffffff;

/* An atom's coordinates; by: steps of a coordinate in an Angstrom. */
static void put_coordinates(const tsr_map_batch *b, const double by[3],
                            const double x[3], int32_t out[3])
{
    int is_near = 1;
    for (int c = 0; c < 3; c++) {
        const double at = (x[c] - b->grid.origin[c]) * by[c];
        is_near &= fabs(at) < 0x1.8p30;
        out[c] = nearest(at);
    }
    for (int c = 0; c < 3 && !is_near; c++)
        out[c] = too_far;
}

/* Some atoms of a call, which one thread turns into particles. */
typedef struct {
    const tsr_map_batch *batch;
    const tsr_density_batch *from;
    int first_system; /* of the call */
    int first, last;  /* atoms, from its first one on */
    size_t each;      /* Gaussians of an atom */
    pthread_mutex_t *bounds;
} slice;

/* An atom's Gaussians have one place; the place widens its system's bound. */
static void put_atom(const slice *s, int i, int system, const double by[3],
                     int32_t bound[2][3])
{
    const tsr_map_batch *b = s->batch;
    const int atom = s->from->first[s->first_system] + i;
    const int z = s->from->z[atom];
    int32_t x[3];
    put_coordinates(b, by, s->from->xyz[atom], x);
    for (size_t n = 0; n < s->each; n++) {
        int32_t *p = b->particle[(size_t)i * s->each + n];
        memcpy(p, x, sizeof x);
        p[3] = (b->blur.first[z] + (int)n) | (int32_t)((uint32_t)system << 8);
    }
    for (int c = 0; c < 3 && x[0] != too_far; c++) {
        bound[0][c] = smaller(bound[0][c], x[c]);
        bound[1][c] = larger(bound[1][c], x[c]);
    }
}

static const int32_t no_bound[2][3] = {{INT32_MAX, INT32_MAX, INT32_MAX},
                                       {INT32_MIN, INT32_MIN, INT32_MIN}};

/* System by system, of which the first and the last may be shared with other
 * threads. */
static void *put_slice(void *context)
{
    const slice *s = context;
    const tsr_map_batch *b = s->batch;
    const int *first = s->from->first + s->first_system;
    int system = 0;
    double by[3];
    for (int c = 0; c < 3; c++)
        by[c] = ldexp(1.0 / b->grid.step[c], FRACTION);
    for (int i = s->first; i < s->last;) {
        int32_t bound[2][3];
        memcpy(bound, no_bound, sizeof bound);
        while (first[system + 1] - first[0] <= i)
            system++;
        const int end = smaller(s->last, first[system + 1] - first[0]);
        for (; i < end; i++)
            put_atom(s, i, system, by, bound);
        pthread_mutex_lock(s->bounds);
        for (int c = 0; c < 3; c++) {
            int32_t(*to)[3] = b->bound[system];
            to[0][c] = smaller(to[0][c], bound[0][c]);
            to[1][c] = larger(to[1][c], bound[1][c]);
        }
        pthread_mutex_unlock(s->bounds);
    }
    return NULL;
}

/* The particles of n systems. A large molecule takes longer here than on a
 * fast device, so threads share it. */
static void put_particles(const tsr_map_batch *b, const tsr_density_batch *from,
                          int first, int n, size_t each)
{
    enum { MOST_THREADS = 8, ATOMS_A_THREAD = 1 << 15 };
    const int n_atom = from->first[first + n] - from->first[first];
    for (int k = 0; k < n; k++)
        memcpy(b->bound[k], no_bound, sizeof no_bound);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int n_thread = n_atom / ATOMS_A_THREAD + 1;
    n_thread = smaller(n_thread, MOST_THREADS);
    n_thread = smaller(n_thread, processors > 0 ? (int)processors : 1);
    slice part[MOST_THREADS];
    pthread_mutex_t bounds = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread[MOST_THREADS];
    int is_started[MOST_THREADS] = {0};
    for (int k = 0; k < n_thread; k++) {
        const long long all = n_atom;
        part[k] = (slice){.batch = b,
                          .from = from,
                          .first_system = first,
                          .first = (int)(all * k / n_thread),
                          .last = (int)(all * (k + 1) / n_thread),
                          .each = each,
                          .bounds = &bounds};
        is_started[k] =
            k + 1 < n_thread &&
            pthread_create(&thread[k], NULL, put_slice, &part[k]) == 0;
        if (!is_started[k])
            put_slice(&part[k]);
    }
    for (int k = 0; k < n_thread; k++)
        if (is_started[k])
            pthread_join(thread[k], NULL);
    pthread_mutex_destroy(&bounds);
}

/* The box of the map's tiles that the n particles of a system, which come next,
 * may reach, and how many at most one of them reaches. */
static void put_system(tsr_map_batch *b, int at, size_t n)
{
    int32_t *s = b->system[at];
    const int32_t *low = b->bound[at][0], *high = b->bound[at][1];
    const size_t n_particle = low[0] <= high[0] ? n : 0;
    size_t n_cell = 1, n_each = 1;
    for (int c = 0; c < 3; c++) {
        const int reach = b->reach_max[c];
        const int most = tsr_map_tiles(b->grid.n[c]) - 1;
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
    s[7] = 0;
    b->n_cell += n_cell;
    b->n_listed += n_each * n_particle;
    b->n_particle += n;
}

/* The largest power of two by which a sum of this size may be multiplied. */
static double room_in_long(double bound)
{
    return bound > 0.0 ? exp2(floor(61.0 - log2(bound))) : 1.0;
}

/* Bounds of the sums, so that their integers cannot overflow: all particles
 * in one place at most. */
static tsr_status put_scales(tsr_map_batch *b, int at, size_t n_particle,
                             double threshold, tsr_err *err)
{
    const double n = (double)n_particle, peak = 0x1p22 * n;
    const double s = peak * b->most, ss = peak * s;
    if (!(s < 0x1p61))
        return tsr_fail(err, TSR_E_RANGE,
                        "%zu atoms, each over %.0f voxels, are too much for "
                        "64-bit sums; bin the map",
                        n_particle, b->most);
    b->scale[at][0] = room_in_long(sqrt(b->whole.n * b->whole.ee));
    b->scale[at][1] = room_in_long(b->whole.ee);
    b->scale[at][2] = room_in_long(ss);
    b->scale[at][3] = room_in_long(sqrt(b->whole.ee * ss));
    b->threshold[at] = threshold / b->unit;
    return TSR_OK;
}

/* ---- a call ---- */

/* Gaussians of an atom at most. */
static size_t per_atom(const tsr_map_batch *b)
{
    int most = 1;
    for (int z = 0; z < TSR_MOST_ELEMENTS; z++)
        most = larger(most, b->blur.count[z]);
    return (size_t)most;
}

/* How many systems from k on may go into a call, by their atoms. */
static int portion(const tsr_map_batch *b, const tsr_density_batch *from, int k)
{
    const size_t each = per_atom(b);
    int end = k;
    while (end < from->n_system && end - k < MOST_SYSTEMS) {
        size_t n = (size_t)(from->first[end + 1] - from->first[k]) * each;
        if (n > MOST_PARTICLES && end > k)
            break;
        end++;
    }
    return end - k;
}

tsr_status tsr_map_batch_fill(tsr_map_batch *batch,
                              const tsr_density_batch *from, int first,
                              const tsr_density_options *options, tsr_err *err)
{
    tsr_map_batch *b = batch;
    const size_t each = per_atom(b);
    const int most = portion(b, from, first);
    const size_t n_atom =
        (size_t)(from->first[first + most] - from->first[first]);
    TSR_TRY(set_mask(b, options->mask_ang, err));
    TSR_TRY(make_room(b, n_atom * each, most, err));
    put_particles(b, from, first, most, each);
    b->n_particle = b->n_cell = b->n_listed = 0;
    for (b->n_system = 0; b->n_system < most; b->n_system++) {
        const int at = b->n_system, k = first + at;
        const size_t n = (size_t)(from->first[k + 1] - from->first[k]) * each;
        if (at > 0 && (b->n_cell > MOST_CELLS || b->n_listed > MOST_LISTED))
            break;
        put_system(b, at, n);
        TSR_TRY(put_scales(b, at, n,
                           options->threshold != NULL ? options->threshold[k]
                                                      : (double)INFINITY,
                           err));
    }
    return TSR_OK;
}

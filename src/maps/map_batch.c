/* What the kernels of map sums are given: coordinates in integer units, the
 * tiles that each system reaches, and scales that keep 64-bit sums from
 * running over. */
#include "maps/map_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRACTION = 19,     /* bits of a coordinate below the voxel; the kernels' */
    MOST_REACH = 1000, /* voxels */
    MOST_CELLS = 1 << 24,
    MOST_LISTED = 1 << 27,
    MOST_PARTICLES = 1 << 24,
    MOST_SYSTEMS = 1 << 20,
    /* of a system whose lists one work-group makes; the kernels' */
    SMALL_CELLS = 4096,
    SMALL_PARTICLES = 1 << 14
};

static const double ln_2 = 0.69314718055994531, root_2pi = 2.5066282746310002;

void tsr_map_batch_make(tsr_map_batch *batch, const tsr_map_grid *grid,
                        const tsr_map_sums *whole)
{
    batch->grid = *grid;
    batch->whole = *whole;
    pthread_mutex_init(&batch->shared, NULL);
}

void tsr_map_batch_clear(tsr_map_batch *batch)
{
    free(batch->system);
    free(batch->bound);
    pthread_mutex_destroy(&batch->shared);
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

static tsr_status make_room(tsr_map_batch *b, int n_system, tsr_err *err)
{
    const size_t n = (size_t)n_system + 1;
    if (n_system <= b->room)
        return TSR_OK;
    tsr_map_system *system = realloc(b->system, n * sizeof *system);
    b->system = system != NULL ? system : b->system;
    int32_t(*bound)[2][3] = realloc(b->bound, n * sizeof *bound);
    b->bound = bound != NULL ? bound : b->bound;
    if (system == NULL || bound == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for densities");
    b->room = n_system;
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

/* An atom's coordinates; by: steps of a coordinate in an Angstrom. Whether they
 * are finite. */
static int put_coordinates(const tsr_map_batch *b, const double by[3],
                           const double x[3], int32_t out[3])
{
    int is_near = 1, is_good = 1;
    for (int c = 0; c < 3; c++) { /* without a branch: this is hot */
        const double at = (x[c] - b->grid.origin[c]) * by[c];
        is_good &= fabs(x[c]) <= 1e30;
        is_near &= fabs(at) < 0x1.8p30;
        out[c] = nearest(at);
    }
    for (int c = 0; c < 3 && !is_near; c++)
        out[c] = too_far;
    return is_good;
}

/* An atom's Gaussians have one place; the place widens its system's bound. */
static int put_atom(const tsr_map_batch *b, int atom, int system,
                    const double by[3], int32_t bound[2][3], int32_t (*out)[4])
{
    const int z = b->from->z[atom];
    int32_t x[3];
    const int is_good = put_coordinates(b, by, b->from->xyz[atom], x);
    for (size_t n = 0; n < b->each; n++) {
        memcpy(out[n], x, sizeof x);
        out[n][3] =
            (b->blur.first[z] + (int)n) | (int32_t)((uint32_t)system << 8);
    }
    for (int c = 0; c < 3 && x[0] != too_far; c++) {
        bound[0][c] = smaller(bound[0][c], x[c]);
        bound[1][c] = larger(bound[1][c], x[c]);
    }
    return is_good;
}

static const int32_t no_bound[2][3] = {{INT32_MAX, INT32_MAX, INT32_MAX},
                                       {INT32_MIN, INT32_MIN, INT32_MIN}};

/* The call's system that an atom is of: first[k] <= atom < first[k + 1]. */
static int system_of(const tsr_map_batch *b, int atom)
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

/* System by system, of which the first and the last may be shared with other
 * threads. Lowest and highest do not depend on who comes first. */
void tsr_map_batch_put(void *batch, size_t first, size_t n, void *out)
{
    tsr_map_batch *b = batch;
    const int *first_of = b->from->first + b->first_system;
    const int begin = first_of[0] + (int)first, end = begin + (int)n;
    int32_t(*particle)[4] = out;
    int system = system_of(b, begin);
    double by[3];
    for (int c = 0; c < 3; c++)
        by[c] = ldexp(1.0 / b->grid.step[c], FRACTION);
    for (int i = begin; i < end; system++) {
        int32_t bound[2][3];
        int is_good = 1;
        memcpy(bound, no_bound, sizeof bound);
        for (; i < smaller(end, first_of[system + 1]); i++)
            is_good &= put_atom(b, i, system, by, bound,
                                particle + (size_t)(i - begin) * b->each);
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

/* The box of the map's tiles that the n particles of a system, which come next,
 * may reach, and how many at most one of them reaches. */
static void put_system(tsr_map_batch *b, int at, size_t n)
{
    tsr_map_system *system = &b->system[at + 1];
    int32_t *s = system->box;
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
    s[7] = (int32_t)b->n_particle;
    system->n_particle = (int32_t)n;
    system->n_cell = (int32_t)n_cell;
    b->is_small &= n_cell <= SMALL_CELLS && n <= SMALL_PARTICLES;
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
    tsr_map_system *system = &b->system[at + 1];
    if (!(s < 0x1p61))
        return tsr_fail(err, TSR_E_RANGE,
                        "%zu atoms, each over %.0f voxels, are too much for "
                        "64-bit sums; bin the map",
                        n_particle, b->most);
    system->scale[0] = room_in_long(sqrt(b->whole.n * b->whole.ee));
    system->scale[1] = room_in_long(b->whole.ee);
    system->scale[2] = room_in_long(ss);
    system->scale[3] = room_in_long(sqrt(b->whole.ee * ss));
    system->threshold = threshold / b->unit;
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
    int end = k;
    while (end < from->n_system && end - k < MOST_SYSTEMS) {
        size_t n = (size_t)(from->first[end + 1] - from->first[k]) * b->each;
        if (n > MOST_PARTICLES && end > k)
            break;
        end++;
    }
    return end - k;
}

tsr_status tsr_map_batch_begin(tsr_map_batch *batch,
                               const tsr_density_batch *from, int first,
                               const tsr_density_options *options,
                               size_t *n_atom, tsr_err *err)
{
    tsr_map_batch *b = batch;
    b->from = from;
    b->first_system = first;
    b->each = per_atom(b);
    b->is_bad = 0;
    b->n_system = portion(b, from, first);
    *n_atom = (size_t)(from->first[first + b->n_system] - from->first[first]);
    TSR_TRY(set_mask(b, options->mask_ang, err));
    TSR_TRY(make_room(b, b->n_system, err));
    b->system[0] = (tsr_map_system){0};
    for (int k = 0; k < b->n_system; k++)
        memcpy(b->bound[k], no_bound, sizeof no_bound);
    return TSR_OK;
}

tsr_status tsr_map_batch_end(tsr_map_batch *batch,
                             const tsr_density_options *options, tsr_err *err)
{
    tsr_map_batch *b = batch;
    const int most = b->n_system;
    if (b->is_bad)
        return tsr_density_not_finite(err);
    b->n_particle = b->n_cell = b->n_listed = 0;
    b->is_small = 1;
    for (b->n_system = 0; b->n_system < most; b->n_system++) {
        const int at = b->n_system, k = b->first_system + at;
        const int *first = b->from->first + k;
        const size_t n = (size_t)(first[1] - first[0]) * b->each;
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

/* A model's density on the grid of a map, and the sums of its correlation with
 * the map (src/maps/map_sum.c).
 *
 * The density is a sum of Gaussians, S(x) = sum_i A_i exp(-d_i^2 / 2 s_i^2),
 * where d_i is the distance from atom i. Each Gaussian is cut off beyond
 * `reach` along every axis. A Gaussian is a product of factors along x, y and
 * z, so a tile of 8 x 8 x 8 voxels needs 24 exponentials for each atom, and one
 * multiply-add for each voxel.
 *
 * Sums are integers, so their bits depend neither on the order of the atoms,
 * which atomic operations do not preserve, nor on the order of tiles and
 * work-groups.
 *   - A term is rounded to a unit of 2^-22 of the largest amplitude by adding
 *     1.5 * 2^23 in single precision: its last bits are then the integer. The
 *     integers are summed in 32 bits, and after every 64 atoms in 64 bits.
 *   - The voxels of a tile are added in double precision, in their order. These
 *     sums are rounded to 64-bit integers and added to the sums of the system.
 * Coordinates are integers too, in units of 2^-19 voxels, so a shift of all
 * atoms by whole voxels shifts the density exactly.
 *
 * A system is a model, a part of a model, or a frame of a trajectory, with sums
 * of its own. Its cells are the tiles of the map in a box around its atoms. One
 * call serves many systems. Three short launches list the atoms that reach each
 * tile: map_count and map_scatter with one work-item for each particle, and
 * between them map_place with one for each cell. Small systems need only one
 * launch (map_list, a work-group for each system). Tiles that no atom reaches
 * are not listed and cost nothing. One further launch, map_sum, computes
 * densities and sums in any number of work-groups of 64 work-items, each of
 * which computes one tile after another until all tiles are done. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

enum {
    SIDE = 8,      /* voxels along a tile */
    FRACTION = 19, /* bits of a coordinate below the voxel */
    LANES = 64,    /* work-items: rows of a tile, atoms processed together */
    LISTERS = 256, /* work-items that list the atoms of a small system */
    SMALL = 4096,  /* largest number of cells of a small system, as on the
                      host */
    FACTORS = 24,  /* exponentials of a particle */
    SUMS = 18      /* three sets of voxels, six sums each */
};

/* 1.5 * 2^23 and its bits. Added to a number below 2^22, this constant rounds
 * the number to an integer, the difference of the bits. */
#define MAGIC 12582912.0f
#define MAGIC_BITS 0x4b400000u

/* ---- lists of atoms ----
 *
 * A particle has three coordinates and a word type | system << 8. */

typedef struct {
    int box[8]; /* first tile along x, y, z; number of tiles along each; first
                   cell; first particle */
    int n_particle, n_cell;
    double threshold; /* threshold of S, in units of S */
    double scale[4];  /* scales of E, E^2, S^2, E S as integers */
} map_system;

/* `call` holds counters and then the systems, so that a single copy from the
 * host transfers both. Counters: [0] tiles to compute, [1] tiles taken, [2]
 * atoms listed. */
#define SYSTEMS(call) ((__global const map_system *)(call) + 1)
#define BOX(system) vload8(0, (system)->box)

/* The tiles of the system's box that a particle reaches, from first to last. */
static inline void tiles_of(int4 p, int4 reach, int8 s, int3 *first, int3 *last)
{
    const int3 up = (int3)((1 << FRACTION) - 1);
    const int3 low = (p.xyz - reach.xyz + up) >> FRACTION;
    const int3 high = (p.xyz + reach.xyz) >> FRACTION;
    const int3 from = (int3)(s.s0, s.s1, s.s2);
    *first = max(low >> 3, from) - from;
    *last = min(high >> 3, from + (int3)(s.s3, s.s4, s.s5) - 1) - from;
}

/* Reach of a particle along x, y and z: of its Gaussian, or of the mask if that
 * is larger and the type counts for the mask (w nonzero). */
static inline int4 reach_of(int4 p, __global const int4 *restrict reach,
                            int4 mask_reach)
{
    const int4 r = reach[p.w & 255];
    return r.w != 0 ? max(r, mask_reach) : r;
}

/* Executes `code` for every cell that particle i reaches, with the cell's
 * number in its system as `cell`. */
#define FOR_EACH_CELL(i, box, code)                                         \
    do {                                                                    \
        int3 first_, last_;                                                 \
        const int4 p_ = particle[i];                                        \
        tiles_of(p_, reach_of(p_, reach, mask_reach), box, &first_, &last_); \
        for (int z_ = first_.z; z_ <= last_.z; z_++)                        \
            for (int y_ = first_.y; y_ <= last_.y; y_++)                    \
                for (int x_ = first_.x; x_ <= last_.x; x_++) {              \
                    const int cell = (z_ * box.s4 + y_) * box.s3 + x_;      \
                    code;                                                   \
                }                                                           \
    } while (0)

/* Counts the atoms that reach each cell. count [cell]: zero on entry. */
__kernel void map_count(__global const int4 *restrict particle, int n,
                        __global const uint *restrict call,
                        __global const int4 *restrict reach, int4 mask_reach,
                        __global uint *restrict count)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    const int8 s = BOX(SYSTEMS(call) + (particle[i].w >> 8));
    FOR_EACH_CELL(i, s, atomic_inc(&count[s.s6 + cell]));
}

/* Reserves space for the list of every cell that has atoms.
 * cursor   [cell] position for the next atom
 * active   [tiles to compute] system and cell */
__kernel void map_place(__global uint *restrict call, int n_system,
                        __global const uint *restrict count, int n_cell,
                        __global uint *restrict cursor,
                        __global uint2 *restrict active)
{
    const int i = get_global_id(0);
    if (i >= n_cell || count[i] == 0)
        return;
    int low = 0, high = n_system; /* the system is in [low, high) */
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (SYSTEMS(call)[middle].box[6] <= i)
            low = middle;
        else
            high = middle;
    }
    cursor[i] = atomic_add(&call[2], count[i]);
    active[atomic_inc(&call[0])] = (uint2)(low, i);
}

/* Writes the lists of atoms; cursor then is the end of each list. */
__kernel void map_scatter(__global const int4 *restrict particle, int n,
                          __global const uint *restrict call,
                          __global const int4 *restrict reach, int4 mask_reach,
                          __global uint *restrict cursor,
                          __global uint *restrict list)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    const int8 s = BOX(SYSTEMS(call) + (particle[i].w >> 8));
    FOR_EACH_CELL(i, s, list[atomic_inc(&cursor[s.s6 + cell])] = (uint)i);
}

/* The three launches for a small system in one, one work-group for each system.
 * Also sets its sums to 0.
 * scratch  [SMALL] cursors of the cells */
__kernel __attribute__((reqd_work_group_size(LISTERS, 1, 1)))
void map_list(__global const int4 *restrict particle,
              __global uint *restrict call,
              __global const int4 *restrict reach, int4 mask_reach,
              __global uint *restrict count, __global uint *restrict cursor,
              __global uint *restrict list, __global uint2 *restrict active,
              __global long *restrict out, __local uint *scratch)
{
    const int lane = get_local_id(0), at = get_group_id(0);
    __global const map_system *system = SYSTEMS(call) + at;
    const int8 s = BOX(system);
    const int first = s.s7, end = first + system->n_particle;
    const int n_cell = system->n_cell;
    for (int c = lane; c < n_cell; c += LISTERS)
        scratch[c] = 0;
    if (lane < SUMS)
        out[at * SUMS + lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = first + lane; n_cell > 0 && i < end; i += LISTERS)
        FOR_EACH_CELL(i, s, atomic_inc(&scratch[cell]));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = lane; c < n_cell; c += LISTERS) {
        const uint n = scratch[c];
        if (n == 0)
            continue;
        scratch[c] = atomic_add(&call[2], n);
        count[s.s6 + c] = n;
        cursor[s.s6 + c] = scratch[c] + n;
        active[atomic_inc(&call[0])] = (uint2)(at, s.s6 + c);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = first + lane; n_cell > 0 && i < end; i += LISTERS)
        FOR_EACH_CELL(i, s, list[atomic_inc(&scratch[cell])] = (uint)i);
}

/* ---- the density of a tile ---- */

/* 2^x for -64 <= x <= 0, within 3e-7. Uses only operations that IEEE 754
 * defines to the bit, so that devices agree. */
static inline float8 power_of_two(float8 x)
{
    const float8 whole = rint(x);
    const float8 f = x - whole;
    float8 p = 1.5403530e-4f;
    p = fma(p, f, (float8)1.3333558e-3f);
    p = fma(p, f, (float8)9.6181291e-3f);
    p = fma(p, f, (float8)5.5504109e-2f);
    p = fma(p, f, (float8)2.4022651e-1f);
    p = fma(p, f, (float8)6.9314718e-1f);
    p = fma(p, f, (float8)1.0f);
    return as_float8(as_int8(p) + (convert_int8(whole) << 23));
}

/* The factors of a particle at eight planes of voxels across one axis, from
 * plane `from` on; 0 beyond its reach. */
static inline float8 factors(int at, int from, float falls, int reach)
{
    const int8 plane = (int8)(0, 1, 2, 3, 4, 5, 6, 7) + (int8)from;
    const int8 d = (plane << FRACTION) - (int8)at;
    const float8 x = convert_float8(d) * (float8)(1.0f / (1 << FRACTION));
    const float8 value = power_of_two(max(-(falls * (x * x)), -64.0f));
    return select((float8)0.0f, value, d <= (int8)reach && d >= (int8)-reach);
}

/* Stores the factors across x, y and z, the last one times the amplitude. */
static inline void store_factors(int4 p, int3 corner, float4 blur, int4 reach,
                                 __local float *table)
{
    vstore8(factors(p.x, corner.x, blur.y, reach.x), 0, table);
    vstore8(factors(p.y, corner.y, blur.z, reach.y), 1, table);
    vstore8(factors(p.z, corner.z, blur.w, reach.z) * (float8)blur.x, 2,
            table);
}

/* Bits for the voxels of a row that lie within the mask's radius of any of n
 * particles. */
static inline uint mask_row(__local const int4 *group, int n, int3 corner,
                            int y, int z, __global const int4 *restrict reach,
                            float4 radius)
{
    const float scale = 1.0f / (1 << FRACTION);
    uint mask = 0;
    for (int k = 0; k < n; k++) {
        const int4 p = group[k];
        if (reach[p.w & 255].w == 0)
            continue;
        const float dy =
            (float)(((corner.y + y) << FRACTION) - p.y) * scale * radius.y;
        const float dz =
            (float)(((corner.z + z) << FRACTION) - p.z) * scale * radius.z;
        const float rest = radius.w - (dy * dy + dz * dz);
        if (rest < 0.0f)
            continue;
        for (int v = 0; v < SIDE; v++) {
            const float dx =
                (float)(((corner.x + v) << FRACTION) - p.x) * scale * radius.x;
            if (dx * dx <= rest)
                mask |= 1u << v;
        }
    }
    return mask;
}

/* The sum of n particles' terms in one row of voxels, from their factors. */
static inline long8 add_row(__local const float *table, int n, int y, int z)
{
    uint8 sum = 0;
    for (int k = 0; k < n; k++) {
        __local const float *t = table + k * FACTORS;
        const float8 w = (float8)(t[SIDE + y] * t[2 * SIDE + z]);
        sum += as_uint8(fma(w, vload8(0, t), (float8)MAGIC));
    }
    return convert_long8(as_int8(sum - (uint)n * MAGIC_BITS));
}

/* ---- the sums ---- */

/* Adds a voxel to n, E, E^2, S, S^2, E S of one set of voxels. */
static inline void add_voxel(double *sum, double e, double s)
{
    sum[0] += 1.0;
    sum[1] += e;
    sum[2] += e * e;
    sum[3] += s;
    sum[4] += s * s;
    sum[5] += e * s;
}

/* Densities and sums of all active tiles.
 * size       voxels of the map
 * wanted     bits: 1 the densities, 2 the sums over the mask and over the
 *            voxels above the threshold, besides the box
 * radius     edges of a voxel in Angstrom; .w: squared radius of the mask, or 0
 *            for no mask
 * unit       of S as an integer, in the density's unit
 * scratch    [SUMS * LANES] for factors first, then for sums; an argument,
 *            because PoCL 3.1 shares local arrays between threads if they are
 *            declared here and used at a constant index */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void map_sum(__global uint *restrict call,
             __global const uint *restrict count,
             __global const uint *restrict cursor,
             __global const uint *restrict list,
             __global const int4 *restrict particle,
             __global const float4 *restrict blur,
             __global const int4 *restrict reach,
             __global const float *restrict map, int4 size, int wanted,
             float4 radius, double unit, __global const uint2 *restrict active,
             __global long *restrict out, __global float *restrict density,
             __local int4 *group, __local double *scratch,
             __local uint *taken)
{
    __local float *table = (__local float *)scratch;
    const int lane = get_local_id(0), y = lane % SIDE, z = lane / SIDE;
    const uint n_active = call[0];
    const int n_sum = (wanted & 2) != 0 ? SUMS : SUMS / 3;

    if (lane == 0)
        *taken = atomic_inc(&call[1]);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint at = *taken;
    while (at < n_active) {
        const uint2 job = active[at];
        __global const map_system *system = SYSTEMS(call) + job.x;
        const int8 s = BOX(system);
        const int cell = (int)job.y - s.s6;
        const int3 tile = (int3)(cell % s.s3 + s.s0, cell / s.s3 % s.s4 + s.s1,
                                 cell / (s.s3 * s.s4) + s.s2);
        const int3 corner = tile * SIDE;
        const int n_atom = count[job.y];
        const uint first = cursor[job.y] - n_atom;
        long8 total = 0;
        uint mask = 0;

        for (int base = 0; base < n_atom; base += LANES) {
            const int n = min((int)LANES, n_atom - base);
            if (lane < n) {
                const int4 p = particle[list[first + base + lane]];
                group[lane] = p;
                store_factors(p, corner, blur[p.w & 255], reach[p.w & 255],
                              table + lane * FACTORS);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            total += add_row(table, n, y, z);
            if (radius.w > 0.0f)
                mask |= mask_row(group, n, corner, y, z, reach, radius);
            barrier(CLK_LOCAL_MEM_FENCE);
        }

        double sum[SUMS];
        long row[SIDE];
        vstore8(total, 0, row);
        for (int k = 0; k < SUMS; k++)
            sum[k] = 0.0;
        const double least = system->threshold;
        const int vy = corner.y + y, vz = corner.z + z;
        const int is_inside = vy < size.y && vz < size.z;
        const size_t voxel = ((size_t)vz * size.y + vy) * size.x + corner.x;
        for (int v = 0; v < SIDE; v++)
            if (is_inside && corner.x + v < size.x) {
                const double d = (double)row[v];
                const double e = (double)map[voxel + v];
                if ((wanted & 1) != 0)
                    density[voxel + v] = (float)(d * unit);
                if (isnan(e))
                    continue;
                add_voxel(sum, e, d);
                if ((wanted & 2) == 0)
                    continue;
                if ((mask >> v & 1) != 0)
                    add_voxel(sum + 6, e, d);
                if (d >= least)
                    add_voxel(sum + 12, e, d);
            }
        for (int k = 0; k < n_sum; k++)
            scratch[k * LANES + lane] = sum[k];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < n_sum) {
            double whole = 0.0;
            for (int k = 0; k < LANES; k++)
                whole += scratch[lane * LANES + k];
            __global const double *f = system->scale;
            const int which = lane % 6;
            const double scale = which == 1   ? f[0]
                                 : which == 2 ? f[1]
                                 : which == 4 ? f[2]
                                 : which == 5 ? f[3]
                                              : 1.0;
            const long fixed = convert_long_rte(whole * scale);
            if (fixed != 0)
                atom_add(&out[job.x * SUMS + lane], fixed);
        }
        if (lane == 0)
            *taken = atomic_inc(&call[1]);
        barrier(CLK_LOCAL_MEM_FENCE);
        at = *taken;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Page-tile Debye sums: the part that page_tile_simt.cl and page_tile_simd.cl
 * have in common.
 *
 *     I(q_k) = sum_i sum_j F_i F_j sin(q_k r_ij) / (q_k r_ij),   q_k = k dq
 *
 * Bodies form blocks of TILE. A tile is a pair of blocks, and its value at each
 * page (a page is one q) is the sum over its pairs of bodies. Antonov et al.
 * 2013. The kernels compute neither the page q = 0 nor the self terms: both are
 * constants that the host adds.
 *
 * Recurrence. With s_k = sin(k theta) / r and theta = dq r,
 *
 *     s_{k+2} = 2 cos(2 theta) s_k - s_{k-2},
 *
 * in one chain for odd k and one for even k. This costs one multiply-add a
 * page, like a single chain, but takes half the steps at twice the angle. Each
 * step adds a phase error, from the rounding of the cosine, proportional to 1 /
 * sin(angle). Twice the angle halves this error and half the steps halve their
 * number, so a quarter of the error remains. The host has multiplied F by (k
 * dq)^(-1/2), so F_i F_j s_k is the term itself. At r = 0 the chains give s_k =
 * k dq, which corresponds to sinc = 1.
 *
 * Compile-time constants, set by the host:
 *   TILE         bodies of a block
 *   PAGES        pages of a group, a multiple of 4; each group restarts the
 *                chains
 *   COMPS        components K; a tile has a value for each pair of components
 *   GROUPS       groups of pages; 0: an argument of the kernel. The group is
 *                get_global_id(1)
 *   LANES        1 for SIMT, else the lanes of a vector
 *   SHORT_RANGE  1 if dq r <= 0.86 pi always holds: no square root and no sine,
 *                except to restart the chains in groups after the first
 *   BLOCKS       blocks of a system; 0: an argument of the kernel
 *   SPLIT        work-groups of a run (a part of the work, see below)
 *   ATOMIC_OUT   1: a run adds to its row of results; 0: it overwrites the row
 *
 * The grid step is always an argument. On a GPU all other sizes are
 * compile-time constants. On a CPU compiling takes seconds, and the number of
 * blocks as a constant saves no run time; nor does the number of groups, unless
 * it is 1. Both are arguments there, so that fewer programs serve all data.
 * (PAGES as an argument would cost a tenth of the speed.) */
#ifndef TILE
#define TILE 32 /* bodies of a block */
#endif
#ifndef PAGES
#define PAGES 52 /* pages of a group */
#endif
#ifndef COMPS
#define COMPS 1 /* components */
#endif
#ifndef GROUPS
#define GROUPS 0 /* groups of pages; 0: an argument */
#endif
#ifndef LANES
#define LANES 1 /* lanes of a vector */
#endif
#ifndef SHORT_RANGE
#define SHORT_RANGE 0 /* 1: dq r is bounded */
#endif
#ifndef BLOCKS
#define BLOCKS 0 /* blocks of a system; 0: an argument */
#endif
#ifndef SPLIT
#define SPLIT 1 /* work-groups of a run */
#endif
#ifndef ATOMIC_OUT
#define ATOMIC_OUT 0 /* 0: a run stores its row */
#endif

#define PAIRS (COMPS * (COMPS + 1) / 2)
#define BLOCK_REALS (3 * TILE) /* x[TILE], y[TILE], z[TILE] */
#define MOVED_WORDS ((TILE + 31) / 32)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if LANES == 1
#define VREAL float
#define VINT int
#define TO_VINT convert_int
#else
#define VREAL JOIN(float, LANES)
#define VINT JOIN(int, LANES)
#define TO_VINT JOIN(convert_int, LANES)
#endif

#if ATOMIC_OUT
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

/* Sizes that depend on the data. */
typedef struct {
    float dq;           /* grid step, 1/Angstrom */
    uint blocks;       /* of a system */
    uint words;        /* words of a mask with one bit for each block */
    uint groups;       /* of pages */
    uint stride;       /* pages of all groups */
    uint row;          /* values of a tile, [PAIRS][stride] */
    size_t components; /* SIMT: distance between the form factors of two
                          components */
} data_shape;

static inline data_shape data_shape_of(float dq, uint blocks, uint groups)
{
    data_shape s;
    s.dq = dq;
    s.blocks = BLOCKS > 0 ? BLOCKS : blocks;
    s.words = (s.blocks + 31) / 32;
    s.groups = GROUPS > 0 ? GROUPS : groups;
    s.stride = PAGES * s.groups;
    s.row = PAIRS * s.stride;
    s.components = (size_t)s.blocks * TILE * s.stride;
    return s;
}

/* Number of pages before the group; the constant 0 for the compiler if there is
 * one group. */
static inline int first_page(data_shape shape, int group)
{
    return shape.groups > 1 ? group * PAGES : 0;
}

/* Sine and cosine for 0 <= x < 1e5. An error common to all pairs must stay
 * below 1e-9, because at a minimum of I(q) a sum of 1e9 terms cancels almost
 * completely. Hence two measures. The polynomials are our own least-squares
 * fits in x^2 on [0, 0.63], with coefficients rounded to single precision one
 * after the other (error 2e-10). And x - n pi/2 is kept as y + rest, because
 * rounding it to y would shift all x between two powers of two by the same
 * amount; `rest` enters before the last rounding. */
static inline void sin_cos(VREAL x, VREAL *s, VREAL *c)
{
    VREAL n = rint(x * 0.636619772f);
    VREAL y1 = x - n * 1.5703125f; /* exact */
    VREAL y = y1 - n * 4.837512969970703125e-4f;
    VREAL rest = (y1 - y) - n * 4.837512969970703125e-4f;
    rest = rest - n * 7.54978995489188216e-8f;
    VREAL t = y * y;
    VREAL ps = (((2.799004733e-06f * t + -1.984983392e-04f) * t +
                 8.333371952e-03f) * t + -1.666666716e-01f) * t; /* sin y/y-1 */
    VREAL pc = (((2.443066478e-05f * t + -1.388730132e-03f) * t +
                 4.166664556e-02f) * t + -0.5f) * t; /* cos y - 1 */
    VREAL sr = y + (y * ps + rest * (1 + pc));
    VREAL cr = 1 + (pc - rest * (y + y * ps));
    VINT quadrant = TO_VINT(n);
    VREAL u = (quadrant & 1) != 0 ? cr : sr;
    VREAL v = (quadrant & 1) != 0 ? sr : cr;
    *s = (quadrant & 2) != 0 ? -u : u;
    *c = ((quadrant + 1) & 2) != 0 ? -v : v;
}

/* GPUs have an inverse root and a quotient of limited precision, which take a
 * third of the time of exact ones. One step of Newton's method makes the root
 * as good as exact. */
#if LANES == 1
#define QUOTIENT(x, y) native_divide(x, y)
static inline float root(float r2)
{
    const float inverse = native_rsqrt(r2), r = r2 * inverse;
    return r2 > 0 ? fma(0.5f * inverse, fma(-r, r, r2), r) : 0;
}
#else
#define QUOTIENT(x, y) ((x) / (y))
#define root sqrt
#endif

/* Starts the chains at page first + 1 for pairs at squared distance r2: odd =
 * s_{first+1}, odd_before = s_{first-1}, even = s_{first+2}, even_before =
 * s_{first}, and the factor 2 cos(2 theta). */
static inline __attribute__((always_inline)) void chain_start(
    VREAL r2, float dq, int first, VREAL *odd, VREAL *odd_before, VREAL *even,
    VREAL *even_before, VREAL *factor)
{
#if SHORT_RANGE
    /* sin h / h and cos h for half the angle h (our own fits, error 4e-10),
     * then for the full angle */
    VREAL t = r2 * (0.25f * dq * dq);
    VREAL half_sinc = ((((-2.821055567e-08f * t + 2.773359711e-06f) * t +
                         -1.984438713e-04f) * t + 8.333355188e-03f) * t +
                       -1.666666716e-01f) * t + 1.0f;
    VREAL half_cosine = ((((-2.656545348e-07f * t + 2.478488022e-05f) * t +
                           -1.388877514e-03f) * t + 4.166666418e-02f) * t +
                         -0.5f) * t + 1.0f;
    VREAL s1 = half_sinc * half_cosine;
    VREAL twice_cosine = 2 - 4 * (t * half_sinc * half_sinc);
    VREAL sine2 = t * s1 * s1; /* a quarter of the square of the sine */
    s1 *= dq;
#else
    VREAL r = root(r2), sine, cosine;
    sin_cos(r * dq, &sine, &cosine);
    VREAL twice_cosine = 2 * cosine;
    VREAL sine2 = 0.25f * (sine * sine);
    VREAL s1 = r > 0 ? QUOTIENT(sine, r) : (VREAL)dq;
#endif
    VREAL s2 = twice_cosine * s1;
    *factor = 2 - 16 * sine2;
    *odd = s1;
    *odd_before = -s1;
    *even = s2;
    *even_before = 0;
    if (first > 0) {
        VREAL sine_f, cosine_f;
#if SHORT_RANGE
        VREAL r = root(r2);
#endif
        sin_cos(r * (first * dq), &sine_f, &cosine_f);
        VREAL sf = r > 0 ? QUOTIENT(sine_f, r) : (VREAL)(first * dq);
        VREAL cosine = 0.5f * twice_cosine;
        *odd = sf * cosine + cosine_f * s1;
        *odd_before = sf * cosine - cosine_f * s1;
        *even = sf * (1 - 8 * sine2) + cosine_f * s2;
        *even_before = sf;
    }
}

/* The exchange buffer holds the work of a launch. Offsets into it count 16
 * bytes. A run is a part of the work for one proposal, and takes 32 bytes:
 *   {first, count, row of results, touched blocks | full blocks << 16}
 *   {system, offset of the block list, offset of the staged positions, kind}
 * The kinds are RUN_TILES and RUN_DIFFERENCES, each for `count` tiles of a list
 * from `first` on, and RUN_COPY, which copies `count` blocks of proposed
 * (staged) positions from `first` on to the slot of each block that does not
 * hold the accepted positions.
 *
 * The block list has one word for each block: block | accepted slot << 16 |
 * rigid group << 17. Touched blocks come first: those with full sums, then
 * those with differences (few moved bodies). After the list come, for each
 * touched block, `words` words with the accepted slots of its tiles, one bit
 * each, and then, for each touched block, MOVED_WORDS words with one bit for
 * each body of the block, set if the body moved.
 *
 * The lists of tiles are implicit: pairs (i, j >= i) in the order of the block
 * list. List of full sums: all pairs whose i has full sums, then the pairs of
 * two blocks with differences. Tiles inside one rigid group are clean and
 * skipped. List of differences: i a block with differences, j an untouched
 * block; the tile changes by the new terms of the moved bodies minus their old
 * terms. */
#define RUN_TILES 0
#define RUN_COPY 1
#define RUN_DIFFERENCES 2

typedef struct {
    uint row, column;   /* blocks, row >= column */
    size_t now, before; /* offsets in the cache of the first number of the new
                           and the accepted value */
    __global const float *bi, *bj; /* positions of row and column block */
} tile_work;

typedef struct {
    uint block, other;  /* the block with moved bodies, and the untouched one */
    size_t now, before; /* as above */
    __global const float *at; /* positions of the other block */
} difference_work;

static inline __global const float *accepted_positions(
    data_shape shape, __global const float *position, uint4 b, uint entry)
{
    return position + ((size_t)(2 * b.x + (entry >> 16 & 1)) * shape.blocks +
                       (entry & 0xffff)) * BLOCK_REALS;
}

/* Positions of block `at` of the list: staged if it is touched. */
static inline __global const float *block_positions(
    data_shape shape, __global const float *staged,
    __global const float *position, uint4 b, uint at, uint touched, uint entry)
{
    if (at < touched)
        return staged + (size_t)at * BLOCK_REALS;
    return accepted_positions(shape, position, b, entry);
}

/* Pair n in the list of all pairs (i, j >= i) of `size` blocks, row after
 * row. */
static inline uint2 pair_of(uint n, uint size)
{
    /* counted from the end, the pairs form a triangle */
    const uint from_end = size * (size + 1u) / 2 - 1 - n;
    uint r = (uint)((sqrt(8.0f * (float)from_end + 1.0f) - 1.0f) * 0.5f);
    while (r * (r + 1) / 2 > from_end)
        r--;
    while ((r + 1) * (r + 2) / 2 <= from_end)
        r++;
    return (uint2)(size - 1 - r, size - 1 - (from_end - r * (r + 1) / 2));
}

/* Offsets of a tile's two slots in the cache. i: index of its touched block in
 * the list. */
static inline void tile_slots(data_shape shape, __global const uint *entries,
                              uint4 b, uint i, uint block_i, uint block_j,
                              size_t *now, size_t *before)
{
    const uint n = shape.blocks;
    const uint bits = entries[n + i * shape.words + block_j / 32];
    const uint slot = bits >> (block_j & 31) & 1;
    const size_t row = max(block_i, block_j), column = min(block_i, block_j);
    const size_t first =
        2 * ((size_t)b.x * (n * (n + 1) / 2) + row * (row + 1) / 2 + column);
    *now = (first + (slot ^ 1)) * shape.row;
    *before = (first + slot) * shape.row;
}

/* Finds tile n of the full sums of a run's proposal. Returns 0 if the tile is
 * clean. */
static inline int find_tile(data_shape shape, __global const long *exchange,
                            __global const float *position, uint4 a, uint4 b,
                            uint n, tile_work *work)
{
    __global const uint *entries = (__global const uint *)exchange + 4 * b.y;
    __global const float *staged =
        (__global const float *)(exchange + 2 * (size_t)b.z);
    const uint touched = a.w & 0xffff, full = a.w >> 16;
    const uint n_full = full * shape.blocks - full * (full - 1) / 2;
    uint2 pair;
    if (n < n_full)
        pair = pair_of(n, shape.blocks);
    else
        pair = pair_of(n - n_full, touched - full) + full;
    const uint i = pair.x, j = pair.y;
    const uint entry_i = entries[i], entry_j = entries[j];
    if (entry_i >> 17 != 0 && entry_i >> 17 == entry_j >> 17)
        return 0;
    const uint block_i = entry_i & 0xffff, block_j = entry_j & 0xffff;
    __global const float *at_i =
        block_positions(shape, staged, position, b, i, touched, entry_i);
    __global const float *at_j =
        block_positions(shape, staged, position, b, j, touched, entry_j);
    const int is_lower = block_i >= block_j;
    work->row = is_lower ? block_i : block_j;
    work->column = is_lower ? block_j : block_i;
    work->bi = is_lower ? at_i : at_j;
    work->bj = is_lower ? at_j : at_i;
    tile_slots(shape, entries, b, i, block_i, block_j, &work->now,
               &work->before);
    return 1;
}

/* Finds the tile of blocks i (with differences) and j (untouched) of a
 * proposal's block list. */
static inline void find_difference(data_shape shape,
                                   __global const long *exchange,
                                   __global const float *position, uint4 b,
                                   uint i, uint j, difference_work *work)
{
    __global const uint *entries = (__global const uint *)exchange + 4 * b.y;
    const uint entry = entries[j];
    work->block = entries[i] & 0xffff;
    work->other = entry & 0xffff;
    work->at = accepted_positions(shape, position, b, entry);
    tile_slots(shape, entries, b, i, work->block, work->other, &work->now,
               &work->before);
}

/* The moved bodies of touched block i as bits, and its positions now and
 * before. */
static inline __global const uint *moved_bodies(
    data_shape shape, __global const long *exchange,
    __global const float *position, uint4 a, uint4 b, uint i,
    __global const float **now, __global const float **before)
{
    __global const uint *entries = (__global const uint *)exchange + 4 * b.y;
    *now = (__global const float *)(exchange + 2 * (size_t)b.z) +
           (size_t)i * BLOCK_REALS;
    *before = accepted_positions(shape, position, b, entries[i]);
    return entries + shape.blocks + (a.w & 0xffff) * shape.words +
           i * MOVED_WORDS;
}

/* Destination of staged block i. */
static inline __global float *copy_target(data_shape shape,
                                         __global const long *exchange,
                                         __global float *position, uint4 b,
                                         uint i)
{
    const uint entry = ((__global const uint *)exchange + 4 * b.y)[i];
    const size_t slot = 2 * b.x + ((entry >> 16 & 1) ^ 1);
    return position +
           (slot * shape.blocks + (entry & 0xffff)) * BLOCK_REALS;
}

/* Computes a known function of the host's data, to test that host and device
 * see the same memory. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void exchange_probe(__global uint *exchange, uint from, uint to, uint seed)
{
    const uint i = get_global_id(0);
    exchange[to + i] = exchange[from + i] * 3u + seed;
}

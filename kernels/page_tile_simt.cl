/* Tiles on a GPU: SPLIT work-groups for each run.
 *
 * Work size: (runs * SPLIT * TILE, groups), work-groups of (TILE, 1): a
 * work-lane for each row. Form factors are stored as
 * [COMPS][block][groups][TILE][PAGES].
 *
 * Full sums: a work-lane keeps the sums of its row for all pages of the group
 * in registers. The form factors of the columns are in local memory, where all
 * rows read the same form factor at a time. The same memory then serves the sum
 * over rows in their order. In this sum each work-lane computes one page, so
 * that work-items read adjacent form factors.
 *
 * Differences: the work-group loads the moved bodies of a block as columns, and
 * processes tiles of this block with untouched blocks, whose bodies are the
 * rows. The sum over rows is done in two halves of the pages, because local
 * memory is too small for all pages. */
#define OUT_STEPS ((PAGES + TILE - 1) / TILE) /* pages of a work-lane */
#define HALF ((PAGES + 7) / 8 * 4)              /* pages of the first half */
#define HALF_STEPS ((HALF + TILE - 1) / TILE)
/* Local memory for form factors, or for the sums of the rows. */
#define TILE_REALS (COMPS * TILE * PAGES)
#define DIFFERENCE_REALS (COMPS * (TILE / 2 * PAGES + TILE * HALF))
#define SHARED_REALS                                                           \
    (TILE_REALS > DIFFERENCE_REALS ? TILE_REALS : DIFFERENCE_REALS)

/* A tile value as the fixed-point number that is summed. The scale is a power
 * of two, and the sum of all tiles does not overflow, so the addition is exact
 * in any order. */
static inline long to_fixed(float value, float scale)
{
    return (long)(value * scale);
}

/* The sum over rows is repeated for every pair of components, so several
 * components unroll it less. */
#if COMPS == 1
#define ROWS_UNROLLED TILE
#else
#define ROWS_UNROLLED 4
#endif

/* Functions with local memory and barriers are always inlined: PoCL's compiler
 * fails if it has to decide about inlining. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef struct {
    float4 column[TILE]; /* full sums: x, y, z of the columns. Differences: x,
                            y, z, sign of each moved body at its new and its
                            old position */
    uint body[TILE / 2]; /* differences: index of each moved body in its
                            block */
    float4 shared[SHARED_REALS / 4];
} tile_local;

/* Page k of the pair (c, d) of components: sum over the rows, in their order,
 * of the row's form factor in c times its sum over the columns in d. */
ALWAYS_INLINE float sum_rows(data_shape shape, __local const float *shared,
                            __global const float *restrict fi, int c, int d,
                            int k)
{
    float value = 0;
#pragma unroll ROWS_UNROLLED
    for (int row = 0; row < TILE; row++)
        value += shared[(d * TILE + row) * PAGES + k] *
                 fi[c * shape.components + row * PAGES + k];
    return value;
}

/* The same in differences, where page k has index kh
 * in the current half. */
ALWAYS_INLINE float sum_half_rows(data_shape shape, __local const float *sums,
                                 __global const float *restrict fi, int c,
                                 int d, int kh, int k)
{
    float value = 0;
#pragma unroll ROWS_UNROLLED
    for (int row = 0; row < TILE; row++)
        value += sums[(d * TILE + row) * HALF + kh] *
                 fi[c * shape.components + row * PAGES + k];
    return value;
}

#if ATOMIC_OUT
#define PUT_OUT(out, value) atom_add(out, value)
#else
#define PUT_OUT(out, value) (*(out) = (value))
#endif

/* Full sums of a run. */
ALWAYS_INLINE void full_sums(data_shape shape, __local tile_local *at, uint4 a,
                             uint4 b, uint piece, int group, int lane,
                             __global long *restrict exchange, float scale,
                             uint is_fresh,
                             __global const float *restrict position,
                             __global float *restrict cache,
                             __global const float *restrict form_factor)
{
    __local float4 *column = at->column;
    __local float4 *shared4 = at->shared;
    __local const float *shared = (__local const float *)shared4;
    long total[PAIRS][OUT_STEPS];
    for (int pair = 0; pair < PAIRS; pair++)
        for (int p = 0; p < OUT_STEPS; p++)
            total[pair][p] = 0;
    /* With SPLIT > 1 a work-group has at most one tile. The condition tells
     * this to the compiler, because registers are scarce. */
    for (uint n = a.x + piece; n < a.x + a.y;
         n = SPLIT > 1 ? UINT_MAX : n + 1) {
        tile_work w;
        if (!find_tile(shape, exchange, position, a, b, n, &w))
            continue; /* for the whole work-group */
        __global const float *fi =
            form_factor + ((size_t)w.row * shape.groups + group) * TILE * PAGES;
        __global const float4 *fj =
            (__global const float4 *)(form_factor +
                                     ((size_t)w.column * shape.groups +
                                      group) * TILE * PAGES);
        const int is_diagonal = w.row == w.column;
        const float twice = is_diagonal ? 1 : 2;
        const float x = w.bi[lane], y = w.bi[TILE + lane],
                   z = w.bi[2 * TILE + lane];

        column[lane] =
            (float4)(w.bj[lane], w.bj[TILE + lane], w.bj[2 * TILE + lane], 0);
        for (int c = 0; c < COMPS; c++)
            for (int i = lane; i < TILE * PAGES / 4; i += TILE)
                shared4[c * (TILE * PAGES / 4) + i] =
                    fj[c * (shape.components / 4) + i];
        barrier(CLK_LOCAL_MEM_FENCE);

        float sum[COMPS][PAGES];
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int k = 0; k < PAGES; k++)
                sum[c][k] = 0;
#pragma unroll 1
        for (int j = 0; j < TILE; j++) {
            const float4 other = column[j];
            float dx = x - other.x, dy = y - other.y, dz = z - other.z;
            float odd, odd_before, even, even_before, factor;
            chain_start(dx * dx + dy * dy + dz * dz, shape.dq,
                        first_page(shape, group), &odd, &odd_before, &even,
                        &even_before, &factor);
            if (is_diagonal && j == lane) /* a body with itself: the host adds
                                             this term */
                odd = odd_before = even = even_before = 0;
#pragma unroll
            for (int k = 0; k < PAGES; k += 4) {
                odd_before = factor * odd - odd_before;
                even_before = factor * even - even_before;
#pragma unroll
                for (int c = 0; c < COMPS; c++) {
                    const float4 f =
                        shared4[(c * TILE + j) * (PAGES / 4) + k / 4];
                    sum[c][k] += f.x * odd;
                    sum[c][k + 1] += f.y * even;
                    sum[c][k + 2] += f.z * odd_before;
                    sum[c][k + 3] += f.w * even_before;
                }
                odd = factor * odd_before - odd;
                even = factor * even_before - even;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int k = 0; k < PAGES; k += 4)
                shared4[((c * TILE + lane) * PAGES + k) / 4] = (float4)(
                    sum[c][k], sum[c][k + 1], sum[c][k + 2], sum[c][k + 3]);
        barrier(CLK_LOCAL_MEM_FENCE);
        int pair = 0;
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int d = c; d < COMPS; d++, pair++) {
                const size_t row = pair * shape.stride + group * PAGES;
                const float weight = c == d ? twice : twice / 2;
                for (int p = 0; p < OUT_STEPS; p++) {
                    const int k = p * TILE + lane;
                    if (k >= PAGES)
                        continue;
                    float value = sum_rows(shape, shared, fi, c, d, k);
                    if (c != d)
                        value += sum_rows(shape, shared, fi, d, c, k);
                    value *= weight;
                    cache[w.now + row + k] = value;
                    total[pair][p] += to_fixed(value, scale);
                    if (!is_fresh)
                        total[pair][p] -=
                            to_fixed(cache[w.before + row + k], scale);
                }
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __global long *out = exchange + (size_t)a.z * shape.row + group * PAGES;
    for (int pair = 0; pair < PAIRS; pair++)
        for (int p = 0; p < OUT_STEPS; p++) {
            const int k = p * TILE + lane;
            if (k < PAGES)
                PUT_OUT(&out[pair * shape.stride + k], total[pair][p]);
        }
}

/* Loads the moved bodies of touched block i and their form factors into local
 * memory. Returns the number of moved bodies. */
ALWAYS_INLINE int stage_moved(data_shape shape, __local tile_local *at, uint4 a,
                              uint4 b, uint i, int group, int lane,
                              __global const long *exchange,
                              __global const float *restrict position,
                              __global const float *restrict form_factor)
{
    __global const float *now, *before;
    __global const uint *moved =
        moved_bodies(shape, exchange, position, a, b, i, &now, &before);
    const uint block = ((__global const uint *)exchange + 4 * b.y)[i] & 0xffff;
    int n = 0;
    for (int w = 0; w < MOVED_WORDS; w++)
        n += popcount(moved[w]);
    const uint word = moved[lane / 32];
    int to = popcount(word & ((1u << lane % 32) - 1));
    for (int w = 0; w < lane / 32; w++)
        to += popcount(moved[w]);
    if (word >> lane % 32 & 1) {
        at->body[to] = lane;
        at->column[2 * to] = (float4)(now[lane], now[TILE + lane],
                                     now[2 * TILE + lane], 1);
        at->column[2 * to + 1] = (float4)(before[lane], before[TILE + lane],
                                         before[2 * TILE + lane], -1);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const float4 *f =
        (__global const float4 *)(form_factor +
                                 ((size_t)block * shape.groups + group) * TILE *
                                     PAGES);
    for (int c = 0; c < COMPS; c++)
        for (int m = lane; m < n * (PAGES / 4); m += TILE)
            at->shared[c * (TILE / 2 * PAGES / 4) + m] =
                f[c * (shape.components / 4) +
                  at->body[m / (PAGES / 4)] * (PAGES / 4) + m % (PAGES / 4)];
    barrier(CLK_LOCAL_MEM_FENCE);
    return n;
}

/* Differences of a run. */
ALWAYS_INLINE void differences(data_shape shape, __local tile_local *at,
                               uint4 a, uint4 b, uint piece, int group,
                               int lane,
                               __global long *restrict exchange, float scale,
                               __global const float *restrict position,
                               __global float *restrict cache,
                               __global const float *restrict form_factor)
{
    __local float4 *sums4 = at->shared + COMPS * TILE / 2 * PAGES / 4;
    __local const float *sums = (__local const float *)sums4;
    const uint touched = a.w & 0xffff, n_other = shape.blocks - touched;
    const uint each = (a.y + SPLIT - 1) / SPLIT;
    const uint end = min(a.x + a.y, a.x + (piece + 1) * each);
    uint n = a.x + piece * each, staged = UINT_MAX;
    int n_moved = 0;
    long total[PAIRS][2 * HALF_STEPS];
    for (int pair = 0; pair < PAIRS; pair++)
        for (int p = 0; p < 2 * HALF_STEPS; p++)
            total[pair][p] = 0;
    if (n >= end)
        return;
    while (n < end) {
        const uint i = (a.w >> 16) + n / n_other, j = touched + n % n_other;
        difference_work w;
        float x = 0, y = 0, z = 0;
        float sum[COMPS][PAGES];
        if (i != staged) {
            barrier(CLK_LOCAL_MEM_FENCE);
            n_moved = stage_moved(shape, at, a, b, i, group, lane, exchange,
                                  position, form_factor);
            staged = i;
        }
        find_difference(shape, exchange, position, b, i, j, &w);
        x = w.at[lane], y = w.at[TILE + lane], z = w.at[2 * TILE + lane];
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int k = 0; k < PAGES; k++)
                sum[c][k] = 0;
#pragma unroll 1
        for (int j = 0; j < 2 * n_moved; j++) {
            const float4 moved = at->column[j];
            float dx = x - moved.x, dy = y - moved.y, dz = z - moved.z;
            float odd, odd_before, even, even_before, factor;
            chain_start(dx * dx + dy * dy + dz * dz, shape.dq,
                        first_page(shape, group), &odd, &odd_before, &even,
                        &even_before, &factor);
            odd *= moved.w, odd_before *= moved.w;
            even *= moved.w, even_before *= moved.w;
#pragma unroll
            for (int k = 0; k < PAGES; k += 4) {
                odd_before = factor * odd - odd_before;
                even_before = factor * even - even_before;
#pragma unroll
                for (int c = 0; c < COMPS; c++) {
                    const float4 f = at->shared[(c * (TILE / 2) + j / 2) *
                                                   (PAGES / 4) + k / 4];
                    sum[c][k] += f.x * odd;
                    sum[c][k + 1] += f.y * even;
                    sum[c][k + 2] += f.z * odd_before;
                    sum[c][k + 3] += f.w * even_before;
                }
                odd = factor * odd_before - odd;
                even = factor * even_before - even;
            }
        }
        __global const float *fj =
            form_factor +
            ((size_t)w.other * shape.groups + group) * TILE * PAGES;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
            for (int c = 0; c < COMPS; c++)
#pragma unroll
                for (int k = h * HALF; k < (h == 0 ? HALF : PAGES); k += 4)
                    sums4[((c * TILE + lane) * HALF + k - h * HALF) / 4] =
                        (float4)(sum[c][k], sum[c][k + 1], sum[c][k + 2],
                                sum[c][k + 3]);
            barrier(CLK_LOCAL_MEM_FENCE);
            int pair = 0;
#pragma unroll
            for (int c = 0; c < COMPS; c++)
#pragma unroll
                for (int d = c; d < COMPS; d++, pair++)
                    for (int p = 0; p < HALF_STEPS; p++) {
                        const int kh = p * TILE + lane, k = h * HALF + kh;
                        const size_t row =
                            pair * shape.stride + group * PAGES + k;
                        if (kh >= HALF || k >= PAGES)
                            continue;
                        const float before = cache[w.before + row];
                        float value =
                            sum_half_rows(shape, sums, fj, c, d, kh, k);
                        if (c != d)
                            value +=
                                sum_half_rows(shape, sums, fj, d, c, kh, k);
                        value = before + (c == d ? 2 : 1) * value;
                        cache[w.now + row] = value;
                        total[pair][h * HALF_STEPS + p] +=
                            to_fixed(value, scale) - to_fixed(before, scale);
                    }
        }
        n++;
    }
    __global long *out = exchange + (size_t)a.z * shape.row + group * PAGES;
    for (int pair = 0; pair < PAIRS; pair++)
        for (int h = 0; h < 2; h++)
            for (int p = 0; p < HALF_STEPS; p++) {
                const int kh = p * TILE + lane, k = h * HALF + kh;
                if (kh < HALF && k < PAGES)
                    PUT_OUT(&out[pair * shape.stride + k],
                            total[pair][h * HALF_STEPS + p]);
            }
#if !ATOMIC_OUT /* without this barrier PoCL 3.1 loses half of `total` */
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
}

__kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void page_tile(__global long *restrict exchange, uint run_at, float scale,
               uint is_fresh, __global float *restrict position,
               __global float *restrict cache,
               __global const float *restrict form_factor, float dq,
               uint blocks, uint groups)
{
    const data_shape shape = data_shape_of(dq, blocks, groups);
    __local tile_local at;
    const int lane = get_local_id(0), group = get_group_id(1);
    const uint piece = get_group_id(0) % SPLIT;
    __global const uint4 *run =
        (__global const uint4 *)exchange + run_at +
        2 * (get_group_id(0) / SPLIT);
    const uint4 a = run[0], b = run[1];
    if (b.w == RUN_COPY) {
        __global const float *staged =
            (__global const float *)(exchange + 2 * (size_t)b.z);
        for (uint n = a.x + piece; group == 0 && n < a.x + a.y; n += SPLIT) {
            __global float *to = copy_target(shape, exchange, position, b, n);
            for (int i = lane; i < BLOCK_REALS; i += TILE)
                to[i] = staged[(size_t)n * BLOCK_REALS + i];
        }
    } else if (b.w == RUN_DIFFERENCES) {
        differences(shape, &at, a, b, piece, group, lane, exchange, scale,
                    position, cache, form_factor);
    } else if (piece < a.y) {
        full_sums(shape, &at, a, b, piece, group, lane, exchange, scale,
                  is_fresh, position, cache, form_factor);
    }
}

/* Tiles on a GPU: SPLIT work-groups for each run.
 *
 * Work size: (runs * SPLIT * TILE, groups), work-groups of (TILE, 1). Form
 * factors are stored as [COMPS][block][groups][TILE][PAGES].
 *
 * A work-item has a row. It keeps the sums of its row for all components and
 * all pages of the group in registers. The form factors of the columns are in
 * local memory, where all rows read the same form factor at a time. The sums
 * are then written over them, and added over the rows in their order. In this
 * last step each work-item computes one page, so that work-items read adjacent
 * form factors. Reads of registers limit the speed on a GPU (bench/RESULTS.md).
 *
 * Full sums: the columns are the bodies of the other block. Differences: they
 * are the moved bodies of a block, in turn at their new and old positions, and
 * the rows are the bodies of an untouched block. */
#define OUT_STEPS ((PAGES + TILE - 1) / TILE) /* pages of a work-item */
#define QUADS (PAGES / 4)

/* A tile value as the fixed-point number that is summed. The scale is a power
 * of two, and the sum of all tiles does not overflow, so the addition is exact
 * in any order. */
static inline long to_fixed(float value, float scale)
{
    return (long)(value * scale);
}

/* Functions with local memory and barriers are always inlined: PoCL's compiler
 * fails if it has to decide about inlining. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef struct {
    float4 column[TILE]; /* x, y, z, and in differences the sign */
    uint body[TILE / 2]; /* differences: index of each moved body in its
                            block */
    float4 shared[COMPS * TILE * QUADS]; /* form factors of the columns, then
                                            the sums of the rows */
} tile_local;

#if ATOMIC_OUT
#define PUT_OUT(out, value) atom_add(out, value)
#else
#define PUT_OUT(out, value) (*(out) = (value))
#endif

/* Adds columns 0..end-1, with form factors number j >> shift, to the sums of a
 * row at (x, y, z). shift: 0 for full sums, 1 for differences, where columns
 * have signs. row: the row's body, if the columns are bodies of the same block,
 * else -1. */
ALWAYS_INLINE void add_columns(float (*restrict sum)[PAGES], float x, float y,
                               float z, __local const tile_local *tile, int end,
                               int shift, int row, float dq, int first)
{
#pragma unroll 1
    for (int j = 0; j < end; j++) {
        const float4 other = tile->column[j];
        const float dx = x - other.x, dy = y - other.y, dz = z - other.z;
        float odd, odd_before, even, even_before, factor;
        chain_start(dx * dx + dy * dy + dz * dz, dq, first, &odd, &odd_before,
                    &even, &even_before, &factor);
        if (shift > 0) {
            odd *= other.w, odd_before *= other.w;
            even *= other.w, even_before *= other.w;
        }
        if (row >= 0 && j == row) /* a body with itself: the host adds this */
            odd = odd_before = even = even_before = 0;
#pragma unroll
        for (int k = 0; k < PAGES; k += 4) {
            odd_before = factor * odd - odd_before;
            even_before = factor * even - even_before;
#pragma unroll
            for (int c = 0; c < COMPS; c++) {
                const float4 f =
                    tile->shared[(c * TILE + (j >> shift)) * QUADS + k / 4];
                sum[c][k] += f.x * odd;
                sum[c][k + 1] += f.y * even;
                sum[c][k + 2] += f.z * odd_before;
                sum[c][k + 3] += f.w * even_before;
            }
            odd = factor * odd_before - odd;
            even = factor * even_before - even;
        }
    }
}

/* Sums all columns; at: positions of the rows' block. */
ALWAYS_INLINE void sum_columns(data_shape shape, int group, int lane,
                               __global const float *restrict at,
                               __local tile_local *tile, int end, int shift,
                               int is_diagonal)
{
    const int first = first_page(shape, group);
    const float x = at[lane], y = at[TILE + lane], z = at[2 * TILE + lane];
    float sum[COMPS][PAGES];
#pragma unroll
    for (int c = 0; c < COMPS; c++)
#pragma unroll
        for (int k = 0; k < PAGES; k++)
            sum[c][k] = 0;
    if (is_diagonal) /* two loops, so that only one has to compare bodies */
        add_columns(sum, x, y, z, tile, end, shift, lane, shape.dq, first);
    else
        add_columns(sum, x, y, z, tile, end, shift, -1, shape.dq, first);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int c = 0; c < COMPS; c++)
#pragma unroll
        for (int k = 0; k < PAGES; k += 4)
            tile->shared[(c * TILE + lane) * QUADS + k / 4] = (float4)(
                sum[c][k], sum[c][k + 1], sum[c][k + 2], sum[c][k + 3]);
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Sums a tile over its rows, in their order, with form factors fi, stores its
 * values in the cache, and adds the change to the totals. is_difference: the
 * sums are a change themselves. weight: 1 for a tile on the diagonal, else
 * 2. */
ALWAYS_INLINE void put_tile(data_shape shape, __local const tile_local *tile,
                            __global const float *restrict fi, int group,
                            int lane, float weight, int is_difference,
                            uint is_fresh, float scale,
                            __global float *restrict cache, size_t now_at,
                            size_t before_at, long total[PAIRS][OUT_STEPS])
{
    __local const float *shared = (__local const float *)tile->shared;
#pragma unroll
    for (int p = 0; p < OUT_STEPS; p++) {
        const int k = p * TILE + lane;
        float sum[PAIRS];
        if (k >= PAGES)
            continue;
#pragma unroll
        for (int pair = 0; pair < PAIRS; pair++)
            sum[pair] = 0;
#pragma unroll 16
        for (int row = 0; row < TILE; row++) {
            float s[COMPS], f[COMPS];
            int pair = 0;
#pragma unroll
            for (int c = 0; c < COMPS; c++) {
                s[c] = shared[(c * TILE + row) * PAGES + k];
                f[c] = fi[c * shape.components + row * PAGES + k];
            }
#pragma unroll
            for (int c = 0; c < COMPS; c++) {
                sum[pair++] += f[c] * s[c];
#pragma unroll
                for (int d = c + 1; d < COMPS; d++)
                    sum[pair++] += 0.5f * (f[c] * s[d] + f[d] * s[c]);
            }
        }
#pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            const size_t at = pair * shape.stride + group * PAGES + k;
            const float before = is_fresh ? 0 : cache[before_at + at];
            float value = sum[pair];
            value *= weight;
            if (is_difference)
                value += before;
            cache[now_at + at] = value;
            total[pair][p] += to_fixed(value, scale) - to_fixed(before, scale);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Full sums of a run. */
ALWAYS_INLINE void full_sums(data_shape shape, __local tile_local *at, uint4 a,
                             uint4 b, uint piece, int group, int lane,
                             __global const long *restrict exchange,
                             float scale, uint is_fresh,
                             __global const float *restrict position,
                             __global float *restrict cache,
                             __global const float *restrict form_factor,
                             long total[PAIRS][OUT_STEPS])
{
    const size_t group_at = (size_t)TILE * PAGES * group,
                 block = (size_t)TILE * shape.stride;
    /* With SPLIT > 1 a work-group has at most one tile. The condition tells
     * this to the compiler, because registers are scarce. */
    for (uint n = a.x + piece; n < a.x + a.y;
         n = SPLIT > 1 ? UINT_MAX : n + 1) {
        tile_work w;
        if (!find_tile(shape, exchange, position, a, b, n, &w))
            continue; /* for the whole work-group */
        __global const float4 *fj =
            (__global const float4 *)(form_factor + w.column * block +
                                     group_at);
        const int is_diagonal = w.row == w.column;
        at->column[lane] =
            (float4)(w.bj[lane], w.bj[TILE + lane], w.bj[2 * TILE + lane], 1);
        for (int c = 0; c < COMPS; c++)
            for (int i = lane; i < TILE * QUADS; i += TILE)
                at->shared[c * TILE * QUADS + i] =
                    fj[c * (shape.components / 4) + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        sum_columns(shape, group, lane, w.bi, at, TILE, 0, is_diagonal);
        put_tile(shape, at, form_factor + w.row * block + group_at, group,
                 lane, is_diagonal ? 1 : 2, 0, is_fresh, scale, cache, w.now,
                 w.before, total);
    }
}

/* Loads the moved bodies of touched block i into local memory. Returns their
 * number. */
ALWAYS_INLINE int stage_moved(data_shape shape, __local tile_local *at, uint4 a,
                              uint4 b, uint i, int lane,
                              __global const long *exchange,
                              __global const float *restrict position)
{
    __global const float *now, *before;
    __global const uint *moved =
        moved_bodies(shape, exchange, position, a, b, i, &now, &before);
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
    return n;
}

/* Differences of a run. */
ALWAYS_INLINE void differences(data_shape shape, __local tile_local *at,
                               uint4 a, uint4 b, uint piece, int group,
                               int lane, __global const long *restrict exchange,
                               float scale,
                               __global const float *restrict position,
                               __global float *restrict cache,
                               __global const float *restrict form_factor,
                               long total[PAIRS][OUT_STEPS])
{
    const size_t group_at = (size_t)TILE * PAGES * group,
                 block = (size_t)TILE * shape.stride;
    const uint touched = a.w & 0xffff, n_other = shape.blocks - touched;
    const uint each = (a.y + SPLIT - 1) / SPLIT;
    const uint end = min(a.x + a.y, a.x + (piece + 1) * each);
    uint staged = UINT_MAX;
    int n_moved = 0;
    for (uint n = a.x + piece * each; n < end; n++) {
        const uint i = (a.w >> 16) + n / n_other, j = touched + n % n_other;
        difference_work w;
        if (i != staged)
            n_moved = stage_moved(shape, at, a, b, i, lane, exchange, position);
        staged = i;
        find_difference(shape, exchange, position, b, i, j, &w);
        __global const float4 *f =
            (__global const float4 *)(form_factor + w.block * block + group_at);
        for (int c = 0; c < COMPS; c++)
            for (int m = lane; m < n_moved * QUADS; m += TILE)
                at->shared[c * TILE * QUADS + m] =
                    f[c * (shape.components / 4) +
                      at->body[m / QUADS] * QUADS + m % QUADS];
        barrier(CLK_LOCAL_MEM_FENCE);
        sum_columns(shape, group, lane, w.at, at, 2 * n_moved, 1, 0);
        put_tile(shape, at, form_factor + w.other * block + group_at, group,
                 lane, 2, 1, 0, scale, cache, w.now, w.before, total);
    }
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
    long total[PAIRS][OUT_STEPS];
    if (b.w == RUN_COPY) {
        __global const float *staged =
            (__global const float *)(exchange + 2 * (size_t)b.z);
        for (uint n = a.x + piece; group == 0 && n < a.x + a.y; n += SPLIT) {
            __global float *to = copy_target(shape, exchange, position, b, n);
            for (int i = lane; i < BLOCK_REALS; i += TILE)
                to[i] = staged[(size_t)n * BLOCK_REALS + i];
        }
        return;
    }
    if (piece >= a.y)
        return;
#pragma unroll
    for (int pair = 0; pair < PAIRS; pair++)
#pragma unroll
        for (int p = 0; p < OUT_STEPS; p++)
            total[pair][p] = 0;
    if (b.w == RUN_DIFFERENCES)
        differences(shape, &at, a, b, piece, group, lane, exchange, scale,
                    position, cache, form_factor, total);
    else
        full_sums(shape, &at, a, b, piece, group, lane, exchange, scale,
                  is_fresh, position, cache, form_factor, total);
    __global long *out = exchange + (size_t)a.z * shape.row + group * PAGES;
#pragma unroll
    for (int pair = 0; pair < PAIRS; pair++)
#pragma unroll
        for (int p = 0; p < OUT_STEPS; p++) {
            const int k = p * TILE + lane;
            if (k < PAGES)
                PUT_OUT(&out[pair * shape.stride + k], total[pair][p]);
        }
#if !ATOMIC_OUT /* without this barrier PoCL 3.1 loses half of `total` */
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
}

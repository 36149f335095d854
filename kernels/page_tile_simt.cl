/* Tiles on a GPU: SPLIT work-groups for each run, each with PARTS tiles side by
 * side.
 *
 * Work size: (runs * SPLIT * TILE * PARTS, groups), work-groups of (TILE *
 * PARTS, 1). A part has TILE work-items, one for each row. Form factors are
 * stored as [COMPS][block][groups][TILE][PAGES].
 *
 * Full sums: a work-item keeps the sums of its row for all pages of the group
 * in registers. The form factors of the columns are in local memory, where all
 * rows read the same form factor at a time. The same memory then serves the sum
 * over rows in their order. In this sum each work-item computes one page, so
 * that work-items read adjacent form factors.
 *
 * Differences: the work-group loads the moved bodies of a block as columns, and
 * each part processes tiles of this block with untouched blocks, whose bodies
 * are the rows. The sum over rows is done in two halves of the pages, because
 * local memory is too small for all pages. */
#define REAL4 JOIN(REAL, 4)
#define ITEMS (TILE * PARTS)
#if PARTS == 1 /* a constant for the compiler */
#define LANE(item) (item)
#define PART(item) 0
#else
#define LANE(item) ((item) % TILE)
#define PART(item) ((item) / TILE)
#endif
#define OUT_STEPS ((PAGES + TILE - 1) / TILE) /* pages of a work-item */
#define HALF ((PAGES + 7) / 8 * 4)              /* pages of the first half */
#define HALF_STEPS ((HALF + TILE - 1) / TILE)
/* Local memory for form factors, or for the sums of the rows. */
#define TILE_REALS (COMPS * TILE * PAGES)
#define FULL_REALS (PARTS * TILE_REALS)
#define DIFFERENCE_REALS (COMPS * (TILE / 2 * PAGES + PARTS * TILE * HALF))
#define SHARED_REALS                                                           \
    (FULL_REALS > DIFFERENCE_REALS ? FULL_REALS : DIFFERENCE_REALS)

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
    REAL4 column[PARTS][TILE]; /* full sums: x, y, z of the columns of a part.
                                  Differences: column[0] has x, y, z, sign of
                                  each moved body at its new and its old
                                  position, for all parts */
    uint body[TILE / 2]; /* differences: index of each moved body in its
                            block */
    REAL4 shared[SHARED_REALS / 4];
} tile_local;

/* Page k of the pair (c, d) of components: sum over the rows, in their order,
 * of the row's form factor in c times its sum over the columns in d. */
ALWAYS_INLINE REAL sum_rows(data_shape shape, __local const REAL *shared,
                            __global const REAL *restrict fi, int c, int d,
                            int k)
{
    REAL value = 0;
#pragma unroll ROWS_UNROLLED
    for (int row = 0; row < TILE; row++)
        value += shared[(d * TILE + row) * PAGES + k] *
                 fi[c * shape.components + row * PAGES + k];
    return value;
}

/* The same for the tile of one part in differences, where page k has index kh
 * in the current half. */
ALWAYS_INLINE REAL sum_half_rows(data_shape shape, __local const REAL *sums,
                                 __global const REAL *restrict fi, int c,
                                 int d, int part, int kh, int k)
{
    REAL value = 0;
#pragma unroll ROWS_UNROLLED
    for (int row = 0; row < TILE; row++)
        value += sums[((d * PARTS + part) * TILE + row) * HALF + kh] *
                 fi[c * shape.components + row * PAGES + k];
    return value;
}

/* Without atomics the parts of a work-group add their results one after
 * another. */
#if ATOMIC_OUT
#define TURNS 1
#define PUT_OUT(out, value, is_first) atom_add(out, value)
#else
#define TURNS PARTS
#define PUT_OUT(out, value, is_first)                                          \
    (*(out) = (is_first) ? (value) : *(out) + (value))
#endif

/* Full sums of a run. */
ALWAYS_INLINE void full_sums(data_shape shape, __local tile_local *at, uint4 a,
                             uint4 b, uint piece, int group, int item,
                             __global long *restrict exchange, REAL scale,
                             uint is_fresh,
                             __global const REAL *restrict position,
                             __global REAL *restrict cache,
                             __global const REAL *restrict form_factor)
{
    const int lane = LANE(item), part = PART(item);
    __local REAL4 *column = at->column[part];
    __local REAL4 *shared4 = at->shared + part * (TILE_REALS / 4);
    __local const REAL *shared = (__local const REAL *)shared4;
    long total[PAIRS][OUT_STEPS];
    for (int pair = 0; pair < PAIRS; pair++)
        for (int p = 0; p < OUT_STEPS; p++)
            total[pair][p] = 0;
    /* With SPLIT > 1 a part has at most one tile. The condition tells this to
     * the compiler, because registers are scarce. */
    for (uint from = a.x + piece * PARTS; from < a.x + a.y;
         from = SPLIT > 1 ? UINT_MAX : from + PARTS) {
        const uint n = from + part;
        tile_work w;
        const int is_on =
            (PARTS == 1 || n < a.x + a.y) &&
            find_tile(shape, exchange, position, a, b, n, &w);
#if PARTS == 1
        if (!is_on)
            continue; /* for the whole work-group */
#else
        if (!is_on) {
            w.row = w.column = 0;
            w.now = w.before = 0;
            w.bi = w.bj =
                (__global const REAL *)(exchange + 2 * (size_t)b.z);
        }
#endif
        __global const REAL *fi =
            form_factor + ((size_t)w.row * shape.groups + group) * TILE * PAGES;
        __global const REAL4 *fj =
            (__global const REAL4 *)(form_factor +
                                     ((size_t)w.column * shape.groups +
                                      group) * TILE * PAGES);
        const int is_diagonal = w.row == w.column;
        const REAL twice = is_diagonal ? 1 : 2;
        const REAL x = w.bi[lane], y = w.bi[TILE + lane],
                   z = w.bi[2 * TILE + lane];

        column[lane] =
            (REAL4)(w.bj[lane], w.bj[TILE + lane], w.bj[2 * TILE + lane], 0);
        for (int c = 0; c < COMPS; c++)
            for (int i = lane; i < TILE * PAGES / 4; i += TILE)
                shared4[c * (TILE * PAGES / 4) + i] =
                    fj[c * (shape.components / 4) + i];
        barrier(CLK_LOCAL_MEM_FENCE);

        REAL sum[COMPS][PAGES];
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int k = 0; k < PAGES; k++)
                sum[c][k] = 0;
#pragma unroll 1
        for (int j = 0; j < TILE; j++) {
            const REAL4 other = column[j];
            REAL dx = x - other.x, dy = y - other.y, dz = z - other.z;
            REAL odd, odd_before, even, even_before, factor;
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
                    const REAL4 f =
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
                shared4[((c * TILE + lane) * PAGES + k) / 4] = (REAL4)(
                    sum[c][k], sum[c][k + 1], sum[c][k + 2], sum[c][k + 3]);
        barrier(CLK_LOCAL_MEM_FENCE);
        int pair = 0;
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int d = c; d < COMPS; d++, pair++) {
                const size_t row = pair * shape.stride + group * PAGES;
                const REAL weight = c == d ? twice : twice / 2;
                for (int p = 0; p < OUT_STEPS; p++) {
                    const int k = p * TILE + lane;
                    if (!is_on || k >= PAGES)
                        continue;
                    REAL value = sum_rows(shape, shared, fi, c, d, k);
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
    for (int turn = 0; turn < TURNS; turn++) {
        for (int pair = 0; pair < PAIRS; pair++)
            for (int p = 0; p < OUT_STEPS; p++) {
                const int k = p * TILE + lane;
                if ((TURNS == 1 || part == turn) && k < PAGES)
                    PUT_OUT(&out[pair * shape.stride + k], total[pair][p],
                            turn == 0);
            }
        if (TURNS > 1)
            barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

/* Loads the moved bodies of touched block i and their form factors into local
 * memory. Returns the number of moved bodies. */
ALWAYS_INLINE int stage_moved(data_shape shape, __local tile_local *at, uint4 a,
                              uint4 b, uint i, int group, int item,
                              __global const long *exchange,
                              __global const REAL *restrict position,
                              __global const REAL *restrict form_factor)
{
    __global const REAL *now, *before;
    __global const uint *moved =
        moved_bodies(shape, exchange, position, a, b, i, &now, &before);
    const uint block = ((__global const uint *)exchange + 4 * b.y)[i] & 0xffff;
    int n = 0;
    for (int w = 0; w < MOVED_WORDS; w++)
        n += popcount(moved[w]);
    if (item < TILE) {
        const uint word = moved[item / 32];
        int to = popcount(word & ((1u << item % 32) - 1));
        for (int w = 0; w < item / 32; w++)
            to += popcount(moved[w]);
        if (word >> item % 32 & 1) {
            at->body[to] = item;
            at->column[0][2 * to] = (REAL4)(now[item], now[TILE + item],
                                            now[2 * TILE + item], 1);
            at->column[0][2 * to + 1] =
                (REAL4)(before[item], before[TILE + item],
                        before[2 * TILE + item], -1);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const REAL4 *f =
        (__global const REAL4 *)(form_factor +
                                 ((size_t)block * shape.groups + group) * TILE *
                                     PAGES);
    for (int c = 0; c < COMPS; c++)
        for (int m = item; m < n * (PAGES / 4); m += ITEMS)
            at->shared[c * (TILE / 2 * PAGES / 4) + m] =
                f[c * (shape.components / 4) +
                  at->body[m / (PAGES / 4)] * (PAGES / 4) + m % (PAGES / 4)];
    barrier(CLK_LOCAL_MEM_FENCE);
    return n;
}

/* Differences of a run. */
ALWAYS_INLINE void differences(data_shape shape, __local tile_local *at,
                               uint4 a, uint4 b, uint piece, int group,
                               int item,
                               __global long *restrict exchange, REAL scale,
                               __global const REAL *restrict position,
                               __global REAL *restrict cache,
                               __global const REAL *restrict form_factor)
{
    __local REAL4 *sums4 = at->shared + COMPS * TILE / 2 * PAGES / 4;
    __local const REAL *sums = (__local const REAL *)sums4;
    const int lane = LANE(item), part = PART(item);
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
        const int n_now = min(min((uint)PARTS, shape.blocks - j), end - n);
        const int is_on = part < n_now;
        difference_work w;
        REAL x = 0, y = 0, z = 0;
        REAL sum[COMPS][PAGES];
        if (i != staged) {
            barrier(CLK_LOCAL_MEM_FENCE);
            n_moved = stage_moved(shape, at, a, b, i, group, item, exchange,
                                  position, form_factor);
            staged = i;
        }
        find_difference(shape, exchange, position, b, i, is_on ? j + part : j,
                        &w);
        x = w.at[lane], y = w.at[TILE + lane], z = w.at[2 * TILE + lane];
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int k = 0; k < PAGES; k++)
                sum[c][k] = 0;
#pragma unroll 1
        for (int j = 0; j < 2 * n_moved; j++) {
            const REAL4 moved = at->column[0][j];
            REAL dx = x - moved.x, dy = y - moved.y, dz = z - moved.z;
            REAL odd, odd_before, even, even_before, factor;
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
                    const REAL4 f = at->shared[(c * (TILE / 2) + j / 2) *
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
        __global const REAL *fj =
            form_factor +
            ((size_t)w.other * shape.groups + group) * TILE * PAGES;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
            for (int c = 0; c < COMPS; c++)
#pragma unroll
                for (int k = h * HALF; k < (h == 0 ? HALF : PAGES); k += 4)
                    sums4[(((c * PARTS + part) * TILE + lane) * HALF + k -
                           h * HALF) / 4] = (REAL4)(sum[c][k], sum[c][k + 1],
                                                    sum[c][k + 2],
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
                        if (!is_on || kh >= HALF || k >= PAGES)
                            continue;
                        const REAL before = cache[w.before + row];
                        REAL value =
                            sum_half_rows(shape, sums, fj, c, d, part, kh, k);
                        if (c != d)
                            value += sum_half_rows(shape, sums, fj, d, c, part,
                                                   kh, k);
                        value = before + (c == d ? 2 : 1) * value;
                        cache[w.now + row] = value;
                        total[pair][h * HALF_STEPS + p] +=
                            to_fixed(value, scale) - to_fixed(before, scale);
                    }
        }
        n += n_now;
    }
    __global long *out = exchange + (size_t)a.z * shape.row + group * PAGES;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int pair = 0; pair < PAIRS; pair++)
            for (int h = 0; h < 2; h++)
                for (int p = 0; p < HALF_STEPS; p++) {
                    const int kh = p * TILE + lane, k = h * HALF + kh;
                    if ((TURNS == 1 || part == turn) && kh < HALF && k < PAGES)
                        PUT_OUT(&out[pair * shape.stride + k],
                                total[pair][h * HALF_STEPS + p], turn == 0);
                }
#if !ATOMIC_OUT /* also for one part: without this barrier PoCL 3.1 loses half
                   of `total` */
        barrier(CLK_GLOBAL_MEM_FENCE);
#endif
    }
}

__kernel __attribute__((reqd_work_group_size(TILE * PARTS, 1, 1)))
void page_tile(__global long *restrict exchange, uint run_at, REAL scale,
               uint is_fresh, __global REAL *restrict position,
               __global REAL *restrict cache,
               __global const REAL *restrict form_factor, REAL dq,
               uint blocks, uint groups)
{
    const data_shape shape = data_shape_of(dq, blocks, groups);
    __local tile_local at;
    const int item = get_local_id(0), group = get_group_id(1);
    const uint piece = get_group_id(0) % SPLIT;
    __global const uint4 *run =
        (__global const uint4 *)exchange + run_at +
        2 * (get_group_id(0) / SPLIT);
    const uint4 a = run[0], b = run[1];
    if (b.w == RUN_COPY) {
        __global const REAL *staged =
            (__global const REAL *)(exchange + 2 * (size_t)b.z);
        for (uint n = a.x + piece; group == 0 && n < a.x + a.y; n += SPLIT) {
            __global REAL *to = copy_target(shape, exchange, position, b, n);
            for (int i = item; i < BLOCK_REALS; i += ITEMS)
                to[i] = staged[(size_t)n * BLOCK_REALS + i];
        }
    } else if (b.w == RUN_DIFFERENCES) {
        differences(shape, &at, a, b, piece, group, item, exchange, scale,
                    position, cache, form_factor);
    } else if (piece * PARTS < a.y) {
        full_sums(shape, &at, a, b, piece, group, item, exchange, scale,
                  is_fresh, position, cache, form_factor);
    }
}

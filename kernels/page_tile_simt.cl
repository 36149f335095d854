/* Tiles on a GPU: SPLIT work-groups a run, one work-item a row of a tile.
 *
 * Work size: (runs * SPLIT * TILE, GROUPS), work-groups of (TILE, 1). Form
 * factors are body-major: [block][GROUPS][TILE][PAGES]. A work-item keeps its
 * row's sums for all pages of the group in registers; the columns' form factors
 * are in local memory, read by all rows at once. The same memory then serves
 * the sum over rows, in the order of the rows; there each work-item takes a
 * page, so that the rows' form factors are read side by side. */
#define REAL4 JOIN(REAL, 4)

/* Page k of the pair (c, d): the rows' own form factors times their sums over
 * the columns, in the order of the rows. */
static inline REAL sum_rows(__local const REAL *shared,
                            __global const REAL *restrict fi, int c, int d,
                            int k)
{
    REAL value = 0;
#pragma unroll
    for (int row = 0; row < TILE; row++)
        value += shared[(d * TILE + row) * PAGES + k] *
                 fi[c * COMP_STRIDE + row * PAGES + k];
    if (c == d)
        return value;
#pragma unroll
    for (int row = 0; row < TILE; row++)
        value += shared[(c * TILE + row) * PAGES + k] *
                 fi[d * COMP_STRIDE + row * PAGES + k];
    return value;
}

__kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void page_tile(__global long *restrict exchange, uint run_at, REAL scale,
               uint is_fresh, __global REAL *restrict position,
               __global REAL *restrict cache,
               __global const REAL *restrict form_factor)
{
    __local REAL4 column[TILE];
    __local REAL4 shared4[COMPS * TILE * PAGES / 4];
    __local REAL *shared = (__local REAL *)shared4;
    const int lane = get_local_id(0), group = get_group_id(1);
    const uint part = get_group_id(0) % SPLIT;
    __global const uint4 *run =
        (__global const uint4 *)exchange + run_at +
        2 * (get_group_id(0) / SPLIT);
    const uint4 a = run[0], b = run[1];
    long total[PAIRS][(PAGES + TILE - 1) / TILE];

    for (int pair = 0; pair < PAIRS; pair++)
        for (int p = 0; p * TILE < PAGES; p++)
            total[pair][p] = 0;
    if (b.w != 0) {
        __global const REAL *staged =
            (__global const REAL *)(exchange + 2 * (size_t)b.z);
        for (uint n = a.x + part; group == 0 && n < a.x + a.y; n += SPLIT) {
            __global REAL *to = copy_target(exchange, position, b, n);
            for (int i = lane; i < BLOCK_REALS; i += TILE)
                to[i] = staged[(size_t)n * BLOCK_REALS + i];
        }
        return;
    }
    if (part >= a.y)
        return;

    /* With several work-groups a run each has one tile at most; the compiler is
     * told, since registers are short. */
    for (uint n = a.x + part; n < a.x + a.y; n = SPLIT > 1 ? UINT_MAX : n + 1) {
        tile_work w;
        if (!find_tile(exchange, position, a, b, n, &w))
            continue; /* all of the work-group */
        __global const REAL *bi = w.bi, *bj = w.bj;
        __global const REAL *fi =
            form_factor + ((size_t)w.row * GROUPS + group) * TILE * PAGES;
        __global const REAL4 *fj =
            (__global const REAL4 *)(form_factor +
                                     ((size_t)w.column * GROUPS + group) *
                                         TILE * PAGES);
        const int is_diagonal = w.row == w.column;
        const REAL twice = is_diagonal ? 1 : 2;
        const REAL x = bi[lane], y = bi[TILE + lane], z = bi[2 * TILE + lane];

        column[lane] =
            (REAL4)(bj[lane], bj[TILE + lane], bj[2 * TILE + lane], 0);
        for (int c = 0; c < COMPS; c++)
            for (int i = lane; i < TILE * PAGES / 4; i += TILE)
                shared4[c * (TILE * PAGES / 4) + i] =
                    fj[c * (COMP_STRIDE / 4) + i];
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
            chain_start(dx * dx + dy * dy + dz * dz, group * PAGES, &odd,
                        &odd_before, &even, &even_before, &factor);
            if (is_diagonal && j == lane) /* with itself: the host's term */
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
                const size_t at = pair * PAGE_STRIDE + group * PAGES;
                const REAL weight = c == d ? twice : twice / 2;
                for (int p = 0; p * TILE < PAGES; p++) {
                    const int k = p * TILE + lane;
                    if (k >= PAGES)
                        continue;
                    const REAL value =
                        weight * sum_rows(shared, fi, c, d, k);
                    cache[w.now + at + k] = value;
                    total[pair][p] += to_fixed(value, scale);
                    if (!is_fresh)
                        total[pair][p] -=
                            to_fixed(cache[w.before + at + k], scale);
                }
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    __global long *out = exchange + (size_t)a.z * ROW + group * PAGES;
    for (int pair = 0; pair < PAIRS; pair++, out += PAGE_STRIDE)
        for (int p = 0; p * TILE < PAGES; p++) {
            const int k = p * TILE + lane;
            if (k >= PAGES)
                continue;
#if ATOMIC_OUT
            atom_add(&out[k], total[pair][p]);
#else
            out[k] = total[pair][p];
#endif
        }
}

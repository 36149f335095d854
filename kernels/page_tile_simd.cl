/* Tiles on a CPU: one work-item for each run, with vectors over the bodies of
 * one block.
 *
 * Work size: (runs, groups), work-groups of one. Form factors are stored as
 * [block][groups][COMPS][PAGES][TILE]. The bodies of the second block are rows,
 * processed one after another. In a difference the rows are the moved bodies,
 * each at its new position, and then with negative form factors at its old
 * position. Four vectors of pairs are processed at a time, because a single
 * chain would stall on the latency of each multiply-add: four vectors across
 * one row, or fewer vectors across two or four rows if a row is short. */
#if TILE >= 4 * LANES
#define ACROSS 4 /* vectors across a row */
#elif TILE >= 2 * LANES
#define ACROSS 2
#else
#define ACROSS 1
#endif
#define DOWN (4 / ACROSS) /* rows processed at a time */

#define VLOAD JOIN(vload, LANES)

/* The rows of a tile. Consecutive tiles often have the same rows. */
typedef struct {
    __global const float *source; /* positions that the rows were loaded from;
                                     0: moved bodies, or no rows yet */
    int n;                   /* a multiple of DOWN */
    float x[TILE], y[TILE], z[TILE];
    float f[COMPS][PAGES][TILE];
} tile_rows;

/* Loads all bodies of a block, unless they are loaded; f: its form factors. */
static inline void load_rows(tile_rows *restrict rows,
                             __global const float *restrict xyz,
                             __global const float *restrict f)
{
    if (rows->source == xyz)
        return;
    rows->source = xyz;
    rows->n = TILE;
    for (int i = 0; i < TILE; i++) {
        rows->x[i] = xyz[i];
        rows->y[i] = xyz[TILE + i];
        rows->z[i] = xyz[2 * TILE + i];
    }
    for (int c = 0; c < COMPS; c++)
        for (int k = 0; k < PAGES; k++)
            for (int i = 0; i < TILE; i++)
                rows->f[c][k][i] = f[(c * PAGES + k) * TILE + i];
}

/* Loads one body as row `row`, with form factors times sign. */
static inline void load_row(tile_rows *restrict rows, int row,
                            __global const float *restrict xyz,
                            __global const float *restrict f, int body,
                            float sign)
{
    rows->x[row] = xyz[body];
    rows->y[row] = xyz[TILE + body];
    rows->z[row] = xyz[2 * TILE + body];
    for (int c = 0; c < COMPS; c++)
        for (int k = 0; k < PAGES; k++)
            rows->f[c][k][row] = sign * f[(c * PAGES + k) * TILE + body];
}

/* Loads the moved bodies, each at its new and its old position. */
static inline void load_moved_rows(tile_rows *restrict rows,
                                   __global const uint *restrict moved,
                                   __global const float *restrict now,
                                   __global const float *restrict before,
                                   __global const float *restrict f)
{
    int n = 0;
    for (int i = 0; i < TILE; i++)
        if (moved[i / 32] >> i % 32 & 1) {
            load_row(rows, n++, now, f, i, 1);
            load_row(rows, n++, before, f, i, -1);
            for (int r = n; r % DOWN != 0; r++) /* padding with form factor 0 */
                load_row(rows, r, now, f, i, 0);
        }
    rows->n = (n + DOWN - 1) / DOWN * DOWN;
    rows->source = 0;
}

/* One page of four vectors: sum += F_i (F_j s). fi, fj: form factors of rows
 * and columns at this page. */
static inline VREAL one_page(VREAL sum, const float *restrict fi,
                      __global const float *restrict fj, VREAL s0, VREAL s1,
                      VREAL s2, VREAL s3)
{
#if ACROSS == 4
    VREAL t = VLOAD(0, fj) * s0;
    VREAL u = VLOAD(1, fj) * s1;
    t = VLOAD(2, fj) * s2 + t;
    u = VLOAD(3, fj) * s3 + u;
    return fi[0] * (t + u) + sum;
#elif ACROSS == 2
    VREAL f0 = VLOAD(0, fj), f1 = VLOAD(1, fj);
    VREAL t = f0 * s0, u = f0 * s2;
    t = f1 * s1 + t;
    u = f1 * s3 + u;
    return fi[1] * u + (fi[0] * t + sum);
#else
    VREAL f0 = VLOAD(0, fj);
    VREAL t = fi[0] * s0 + fi[1] * s1, u = fi[2] * s2 + fi[3] * s3;
    return f0 * (t + u) + sum;
#endif
}

/* Adds page k of four vectors to all pairs of components: sum [PAIRS][PAGES].
 * Always inlined, because a call would move the chains' twenty vectors to
 * memory. */
static inline __attribute__((always_inline)) void add_page(
    VREAL *restrict sum, const tile_rows *rows, int row,
    __global const float *restrict fj, int k, VREAL s0, VREAL s1, VREAL s2,
    VREAL s3)
{
    fj += k * TILE;
    sum += k;
#pragma unroll /* so that F_j s of a component is computed once */
    for (int c = 0; c < COMPS; c++)
#pragma unroll
        for (int d = c; d < COMPS; d++, sum += PAGES) {
            *sum = one_page(*sum, &rows->f[c][k][row], fj + d * PAGES * TILE,
                            s0, s1, s2, s3);
            if (c != d)
                *sum = one_page(*sum, &rows->f[d][k][row],
                                fj + c * PAGES * TILE, s0, s1, s2, s3);
        }
}

/* Vector v of the four: row + v / ACROSS, and columns from column + v % ACROSS
 * vectors on. Separate variables instead of arrays: PoCL's compiler keeps
 * arrays in memory, but the chains must be in registers. */
#define START(v)                                                               \
    VREAL odd##v, odd_before##v, even##v, even_before##v, factor##v;           \
    {                                                                          \
        const int i = row + v / ACROSS, j = column + v % ACROSS * LANES;       \
        VREAL x = rows->x[i] - VLOAD(0, at + j);                               \
        VREAL y = rows->y[i] - VLOAD(0, at + TILE + j);                        \
        VREAL z = rows->z[i] - VLOAD(0, at + 2 * TILE + j);                    \
        chain_start(x * x + y * y + z * z, dq, first, &odd##v,                 \
                    &odd_before##v, &even##v, &even_before##v, &factor##v);    \
        if (is_diagonal && i >= j && i < j + LANES) {                          \
            float lane[LANES]; /* a body with itself: the host's term */       \
            for (int l = 0; l < LANES; l++)                                    \
                lane[l] = l == i - j ? 0 : 1;                                  \
            VREAL mask = VLOAD(0, lane);                                       \
            odd##v *= mask;                                                    \
            odd_before##v *= mask;                                             \
            even##v *= mask;                                                   \
            even_before##v *= mask;                                            \
        }                                                                      \
    }
#define PAGE(k, s)                                                             \
    add_page(sum, rows, row, fj, k, s##0, s##1, s##2, s##3)
#define ADVANCE(next, now)                                                     \
    next##0 = factor0 * now##0 - next##0;                                      \
    next##1 = factor1 * now##1 - next##1;                                      \
    next##2 = factor2 * now##2 - next##2;                                      \
    next##3 = factor3 * now##3 - next##3

/* Adds rows row..row+DOWN-1 against the columns from `column` on. */
static inline void four_vectors(VREAL *restrict sum, const tile_rows *rows,
                                __global const float *restrict at,
                                __global const float *restrict fj, int row,
                                int column, int is_diagonal, float dq,
                                int first)
{
    START(0)
    START(1)
    START(2)
    START(3)
    fj += column;
    for (int k = 0; k < PAGES; k += 4) {
        PAGE(k, odd);
        PAGE(k + 1, even);
        ADVANCE(odd_before, odd);
        ADVANCE(even_before, even);
        PAGE(k + 2, odd_before);
        PAGE(k + 3, even_before);
        ADVANCE(odd, odd_before);
        ADVANCE(even, even_before);
    }
}

/* The lanes of a vector added by halves until four are left. Adding one lane
 * after another would be a chain of dependent additions. */
static inline float4 four_lanes(VREAL v)
{
#if LANES == 16
    const JOIN(float, 8) v8 = v.lo + v.hi;
    return v8.lo + v8.hi;
#elif LANES == 8
    return v.lo + v.hi;
#elif LANES == 4
    return v;
#elif LANES == 2
    return (float4)(v, 0, 0);
#else
    return (float4)(v, 0, 0, 0);
#endif
}

/* Sums over the lanes of four vectors. */
static inline float4 sum_lanes(const VREAL *restrict v)
{
    const float4 a = four_lanes(v[0]), b = four_lanes(v[1]);
    const float4 c = four_lanes(v[2]), d = four_lanes(v[3]);
    const float2 x = a.lo + a.hi, y = b.lo + b.hi;
    const float2 z = c.lo + c.hi, w = d.lo + d.hi;
    return (float4)(x.x + x.y, y.x + y.y, z.x + z.y, w.x + w.y);
}

/* Stores one pair of components of a tile in the cache, and adds the change to
 * the totals, which are fixed-point numbers. The scale is a power of two, and
 * the sum of all tiles does not overflow, so the addition is exact in any
 * order. */
static inline void store_pair(const VREAL *restrict sum,
                              __global float *restrict now,
                              __global const float *restrict old, float weight,
                              float scale, int is_fresh, int is_difference,
                              long *restrict total)
{
    for (int k = 0; k < PAGES; k += 4) {
        const float4 before = is_fresh ? (float4)0 : vload4(0, old + k);
        float4 value = sum_lanes(sum + k);
        value *= weight;
        if (is_difference)
            value += before;
        vstore4(value, 0, now + k);
        vstore4(vload4(0, total + k) + (convert_long4(value * scale) -
                                        convert_long4(before * scale)),
                0, total + k);
    }
}

/* Sums a tile: rows against the bodies at `at` with form factors fj. */
static inline void sum_tile(data_shape shape, const tile_rows *rows,
                            __global const float *restrict at,
                            __global const float *restrict fj, int is_diagonal,
                            int group, __global float *restrict now,
                            __global const float *restrict before, float scale,
                            int is_fresh, int is_difference,
                            long *restrict total)
{
    const float twice = is_diagonal ? 1 : 2;
    VREAL sum[PAIRS * PAGES];
    for (int k = 0; k < PAIRS * PAGES; k++)
        sum[k] = 0;
    for (int row = 0; row < rows->n; row += DOWN)
        for (int column = 0; column < TILE; column += ACROSS * LANES)
            four_vectors(sum, rows, at, fj, row, column, is_diagonal, shape.dq,
                         first_page(shape, group));
    int pair = 0;
    for (int c = 0; c < COMPS; c++)
        for (int d = c; d < COMPS; d++, pair++) {
            const size_t row = pair * shape.stride + group * PAGES;
            store_pair(sum + pair * PAGES, now + row, before + row,
                       c == d ? twice : twice / 2, scale, is_fresh,
                       is_difference, total + pair * PAGES);
        }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void page_tile(__global long *restrict exchange, uint run_at, float scale,
               uint is_fresh, __global float *restrict position,
               __global float *restrict cache,
               __global const float *restrict form_factor, float dq,
               uint blocks, uint groups)
{
    const data_shape shape = data_shape_of(dq, blocks, groups);
    const int group = get_global_id(1);
    __global const uint4 *run =
        (__global const uint4 *)exchange + run_at + 2 * get_global_id(0);
    const uint4 a = run[0], b = run[1];
    if (b.w == RUN_COPY) {
        __global const float *staged =
            (__global const float *)(exchange + 2 * (size_t)b.z);
        for (uint n = a.x; group == 0 && n < a.x + a.y; n++) {
            __global float *to = copy_target(shape, exchange, position, b, n);
            for (int i = 0; i < BLOCK_REALS; i++)
                to[i] = staged[(size_t)n * BLOCK_REALS + i];
        }
        return;
    }
    const size_t values = COMPS * PAGES * TILE; /* size of a group's form
                                                   factors */
    __global const float *f = form_factor + group * values;
    const size_t block = shape.groups * values;
    const uint touched = a.w & 0xffff, full = a.w >> 16;
    uint loaded = UINT_MAX; /* block whose moved bodies are in rows */
    tile_rows rows;
    long total[PAIRS * PAGES];
    rows.source = 0;
    for (int k = 0; k < PAIRS * PAGES; k++)
        total[k] = 0;
    for (uint n = a.x; b.w == RUN_TILES && n < a.x + a.y; n++) {
        tile_work w;
        if (!find_tile(shape, exchange, position, a, b, n, &w))
            continue;
        load_rows(&rows, w.bj, f + w.column * block);
        sum_tile(shape, &rows, w.bi, f + w.row * block, w.row == w.column,
                 group, cache + w.now, cache + w.before,
                 scale, is_fresh, 0, total);
    }
    for (uint n = a.x; b.w == RUN_DIFFERENCES && n < a.x + a.y; n++) {
        const uint clean = shape.blocks - touched, i = full + n / clean;
        difference_work w;
        find_difference(shape, exchange, position, b, i, touched + n % clean,
                        &w);
        if (i != loaded) {
            __global const float *now, *before;
            __global const uint *moved =
                moved_bodies(shape, exchange, position, a, b, i, &now,
                             &before);
            load_moved_rows(&rows, moved, now, before, f + w.block * block);
            loaded = i;
        }
        sum_tile(shape, &rows, w.at, f + w.other * block, 0, group,
                 cache + w.now, cache + w.before, scale, 0, 1, total);
    }
    __global long *out = exchange + (size_t)a.z * shape.row + group * PAGES;
    for (int pair = 0; pair < PAIRS; pair++)
        for (int k = 0; k < PAGES; k++)
#if ATOMIC_OUT
            atom_add(&out[pair * shape.stride + k], total[pair * PAGES + k]);
#else
            out[pair * shape.stride + k] = total[pair * PAGES + k];
#endif
}

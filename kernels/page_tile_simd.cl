/* Tiles on a CPU: one work-item a run, vectors over the columns of a tile.
 *
 * Work size: (runs, GROUPS), work-groups of one. Form factors are q-major:
 * [block][PAGE_STRIDE][TILE]. Four vectors of pairs run at a time (the chains
 * of one vector would wait for each other's multiply-adds): four across a row,
 * or fewer across two or four rows when a row is short. */
#if TILE >= 4 * LANES
#define ACROSS 4 /* vectors across a row */
#elif TILE >= 2 * LANES
#define ACROSS 2
#else
#define ACROSS 1
#endif
#define DOWN (4 / ACROSS) /* rows at a time */

#define VLOAD JOIN(vload, LANES)
#define VSTORE JOIN(vstore, LANES)

/* One page of four vectors: sum += F_i (F_j s). fi: this page's form factors of
 * the rows, fj: of the columns. */
static inline VREAL one_page(VREAL sum, __global const REAL *restrict fi,
                      __global const REAL *restrict fj, VREAL s0, VREAL s1,
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

/* Page k of all pairs of components: sum [PAIRS][PAGES]. */
static inline void add_page(VREAL *restrict sum,
                            __global const REAL *restrict fi,
                            __global const REAL *restrict fj, int k, VREAL s0,
                            VREAL s1, VREAL s2, VREAL s3)
{
    fi += k * TILE;
    fj += k * TILE;
    sum += k;
    for (int c = 0; c < COMPS; c++)
        for (int d = c; d < COMPS; d++, sum += PAGES) {
            *sum = one_page(*sum, fi + c * COMP_STRIDE, fj + d * COMP_STRIDE,
                            s0, s1, s2, s3);
            if (c != d)
                *sum = one_page(*sum, fi + d * COMP_STRIDE,
                                fj + c * COMP_STRIDE, s0, s1, s2, s3);
        }
}

/* Vector v of the four: row + v / ACROSS, columns from column + v % ACROSS
 * vectors on. Named variables, not arrays: PoCL's compiler leaves an array in
 * memory, and the chains must be in registers. */
#define START(v)                                                               \
    VREAL odd##v, odd_before##v, even##v, even_before##v, factor##v;           \
    {                                                                          \
        const int i = row + v / ACROSS, j = column + v % ACROSS * LANES;       \
        VREAL x = bi[i] - VLOAD(0, bj + j);                                    \
        VREAL y = bi[TILE + i] - VLOAD(0, bj + TILE + j);                      \
        VREAL z = bi[2 * TILE + i] - VLOAD(0, bj + 2 * TILE + j);              \
        chain_start(x * x + y * y + z * z, first, &odd##v, &odd_before##v,     \
                    &even##v, &even_before##v, &factor##v);                    \
        if (is_diagonal && i >= j && i < j + LANES) {                          \
            REAL lane[LANES]; /* a body with itself: the host's term */        \
            for (int l = 0; l < LANES; l++)                                    \
                lane[l] = l == i - j ? 0 : 1;                                  \
            VREAL keep = VLOAD(0, lane);                                       \
            odd##v *= keep;                                                    \
            odd_before##v *= keep;                                             \
            even##v *= keep;                                                   \
            even_before##v *= keep;                                            \
        }                                                                      \
    }
#define PAGE(k, s)                                                             \
    add_page(sum, fi, fj, k, s##0, s##1, s##2, s##3)
#define ADVANCE(next, now)                                                     \
    next##0 = factor0 * now##0 - next##0;                                      \
    next##1 = factor1 * now##1 - next##1;                                      \
    next##2 = factor2 * now##2 - next##2;                                      \
    next##3 = factor3 * now##3 - next##3

/* Adds rows row..row+DOWN-1 against columns column.. to the sums. */
static inline void four_vectors(VREAL *restrict sum,
                                __global const REAL *restrict bi,
                                __global const REAL *restrict bj,
                                __global const REAL *restrict fi,
                                __global const REAL *restrict fj, int row,
                                int column, int is_diagonal, int first)
{
    START(0)
    START(1)
    START(2)
    START(3)
    fi += row;
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

/* One pair's pages of a tile: into the cache; the change into the totals. */
static inline void finish_pair(const VREAL *restrict sum,
                               __global REAL *restrict cache,
                               const tile_work *w, size_t at, REAL weight,
                               REAL scale, uint is_fresh, long *restrict total)
{
    __global REAL *now = cache + w->now + at;
    __global const REAL *before = cache + w->before + at;
    for (int k = 0; k < PAGES; k++) {
        REAL lane[LANES], value = 0;
        VSTORE(sum[k], 0, lane);
        for (int l = 0; l < LANES; l++)
            value += lane[l];
        value *= weight;
        now[k] = value;
        total[k] += to_fixed(value, scale);
    }
    for (int k = 0; !is_fresh && k < PAGES; k++)
        total[k] -= to_fixed(before[k], scale);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void page_tile(__global long *restrict exchange, uint run_at, REAL scale,
               uint is_fresh, __global REAL *restrict position,
               __global REAL *restrict cache,
               __global const REAL *restrict form_factor)
{
    const int group = get_global_id(1);
    __global const uint4 *run =
        (__global const uint4 *)exchange + run_at + 2 * get_global_id(0);
    const uint4 a = run[0], b = run[1];
    if (b.w != 0) {
        __global const REAL *staged =
            (__global const REAL *)(exchange + 2 * (size_t)b.z);
        for (uint n = a.x; group == 0 && n < a.x + a.y; n++) {
            __global REAL *to = copy_target(exchange, position, b, n);
            for (int i = 0; i < BLOCK_REALS; i++)
                to[i] = staged[(size_t)n * BLOCK_REALS + i];
        }
        return;
    }
    long total[PAIRS * PAGES];
    for (int k = 0; k < PAIRS * PAGES; k++)
        total[k] = 0;
    for (uint n = a.x; n < a.x + a.y; n++) {
        tile_work w;
        if (!find_tile(exchange, position, a, b, n, &w))
            continue;
        __global const REAL *fi =
            form_factor + ((size_t)w.row * PAGE_STRIDE + group * PAGES) * TILE;
        __global const REAL *fj =
            form_factor +
            ((size_t)w.column * PAGE_STRIDE + group * PAGES) * TILE;
        const int is_diagonal = w.row == w.column;
        VREAL sum[PAIRS * PAGES];
        for (int k = 0; k < PAIRS * PAGES; k++)
            sum[k] = 0;
        for (int row = 0; row < TILE; row += DOWN)
            for (int column = 0; column < TILE; column += ACROSS * LANES)
                four_vectors(sum, w.bi, w.bj, fi, fj, row, column, is_diagonal,
                             group * PAGES);
        const REAL twice = is_diagonal ? 1 : 2;
        int pair = 0;
        for (int c = 0; c < COMPS; c++)
            for (int d = c; d < COMPS; d++, pair++)
                finish_pair(sum + pair * PAGES, cache, &w,
                            pair * PAGE_STRIDE + group * PAGES,
                            c == d ? twice : twice / 2, scale, is_fresh,
                            total + pair * PAGES);
    }
    __global long *out = exchange + (size_t)a.z * ROW + group * PAGES;
    for (int pair = 0; pair < PAIRS; pair++)
        for (int k = 0; k < PAGES; k++)
#if ATOMIC_OUT
            atom_add(&out[pair * PAGE_STRIDE + k], total[pair * PAGES + k]);
#else
            out[pair * PAGE_STRIDE + k] = total[pair * PAGES + k];
#endif
}

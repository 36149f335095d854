/* The work of a launch.
 *
 * Everything that passes between host and device in a step lies in one
 * exchange buffer: results, and the input of each launch: runs, blocks,
 * positions of the touched blocks. Tile runs read touched blocks there, while
 * copy runs of the same launch put them into the systems' position slots, so
 * one launch is enough. What tiles a run means the kernel works out itself
 * (kernels/page_tile.cl); the host's work is O(touched blocks + blocks). */
#include "gpu/page_tile.h"

#include <string.h>

enum { RUN_UNITS = 2, ALIGN_UNITS = 4, CPU_COPIES = 8 };

typedef struct {
    uint32_t first, count, out, n_touched;
    uint32_t system, meta_at, staged_at, is_copy;
} tile_run;

static size_t target_runs(const tsr_page_tile_engine *e)
{
    int per_unit = e->options.variant == TSR_PAGE_TILE_SIMD ? 16 : 64;
    return (size_t)per_unit * (size_t)e->device->info.compute_units;
}

static size_t over(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static size_t align(size_t units)
{
    return over(units, ALIGN_UNITS) * ALIGN_UNITS;
}

static size_t block_units(const tsr_page_tile_engine *e)
{
    return 3 * (size_t)e->shape.tile * e->real_size / TSR_EXCHANGE_UNIT;
}

static size_t meta_units(const tsr_page_tile_engine *e, size_t n_touched)
{
    size_t n = (size_t)e->shape.n_block, words = over(n, 32);
    return over((n + n_touched * words) * sizeof(uint32_t), TSR_EXCHANGE_UNIT);
}

static size_t copies_a_run(const tsr_page_tile_engine *e)
{
    return e->split > 1 ? (size_t)e->split : CPU_COPIES;
}

size_t tsr_exchange_out_units(const tsr_page_tile_engine *e, size_t rows)
{
    return rows * (size_t)e->shape.row * sizeof(int64_t) / TSR_EXCHANGE_UNIT;
}

size_t tsr_exchange_rows(const tsr_page_tile_engine *e, int n)
{
    return (e->is_atomic ? 0 : target_runs(e)) + (size_t)n;
}

size_t tsr_exchange_size_of(const tsr_page_tile_engine *e, int max_proposal)
{
    size_t n = (size_t)max_proposal, n_block = (size_t)e->shape.n_block;
    size_t runs = n * over(n_block, copies_a_run(e));
    size_t rows = tsr_exchange_rows(e, max_proposal);
    runs += e->is_atomic ? n * over((size_t)e->shape.n_tile, (size_t)e->split)
                         : rows;
    return align(tsr_exchange_out_units(e, rows)) + RUN_UNITS * runs +
           n * (align(meta_units(e, n_block)) +
                align(n_block * block_units(e)) + 2 * ALIGN_UNITS);
}

/* The blocks of a proposal, touched ones first, the slots of their tiles, and
 * their positions. */
static void fill_blocks(const tsr_page_tile_engine *e, const tsr_tile_system *s,
                        uint32_t *meta, char *staged)
{
    const size_t bytes = block_units(e) * TSR_EXCHANGE_UNIT;
    const size_t row = (size_t)s->dirt.words * sizeof *meta;
    const int n_block = e->shape.n_block, n = s->dirt.n_touched;
    uint32_t *clean = meta + n, *select = meta + n_block;
    int next = 0; /* block after the last touched one */
    for (int t = 0; t < n; t++) {
        int b = s->dirt.touched[t], group = s->dirt.group[b];
        meta[t] = s->entry[b] | (group > 0 ? (uint32_t)group << 17 : 0);
        memcpy(select, s->select + (size_t)b * (size_t)s->dirt.words, row);
        select += s->dirt.words;
        memcpy(staged, tsr_tile_block(e, s, !tsr_tile_slot(s, b), b), bytes);
        staged += bytes;
        while (next < b)
            *clean++ = s->entry[next++];
        next = b + 1;
    }
    memcpy(clean, s->entry + next, (size_t)(n_block - next) * sizeof *clean);
}

static void fill(const tsr_page_tile_engine *e, const tsr_page_tile_batch *b,
                 int p)
{
    void *meta = b->host + b->meta_at[p] * TSR_EXCHANGE_UNIT;
    fill_blocks(e, &e->system[b->system[p]], meta,
                b->host + b->staged_at[p] * TSR_EXCHANGE_UNIT);
}

void tsr_launch_begin(const tsr_page_tile_engine *e, tsr_page_tile_batch *b,
                      int n)
{
    b->n = b->n_launched = 0;
    b->out_rows = (size_t)n;
    b->sent = align(tsr_exchange_out_units(e, tsr_exchange_rows(e, n)));
    b->used = b->sent;
}

void tsr_launch_add(const tsr_page_tile_engine *e, tsr_page_tile_batch *b,
                    int system)
{
    const tsr_tile_system *s = &e->system[system];
    const size_t touched = (size_t)s->dirt.n_touched;
    int p = b->n++;
    b->system[p] = system;
    b->tiles[p] = tsr_tile_system_tiles(e, s);
    b->meta_at[p] = b->used;
    b->staged_at[p] = align(b->used + meta_units(e, touched));
    b->used = align(b->staged_at[p] + touched * block_units(e));
    if (b->host != NULL) /* while the positions are in the cache */
        fill(e, b, p);
}

tsr_launch_layout tsr_launch_lay_out(const tsr_page_tile_engine *e,
                                     const tsr_page_tile_batch *b)
{
    tsr_launch_layout l = {.first = b->n_launched, .begin = b->sent};
    size_t tiles = 0;
    for (int p = l.first; p < b->n; p++) {
        tiles += b->tiles[p];
        l.n_run += over((size_t)e->system[b->system[p]].dirt.n_touched,
                        copies_a_run(e));
    }
    l.chunk = e->is_atomic ? (size_t)e->split : tiles / target_runs(e) + 1;
    for (int p = l.first; p < b->n; p++) {
        size_t runs = over(b->tiles[p], l.chunk);
        l.n_run += runs;
        l.rows += runs;
    }
    if (e->is_atomic)
        l.rows = b->out_rows;
    l.run_at = b->used;
    l.end = align(l.run_at + RUN_UNITS * l.n_run);
    return l;
}

void tsr_launch_fill(const tsr_page_tile_engine *e, tsr_page_tile_batch *b,
                     const tsr_launch_layout *l, int is_late)
{
    void *runs = b->host + l->run_at * TSR_EXCHANGE_UNIT;
    size_t row = e->is_atomic ? (size_t)l->first : 0;
    tile_run *run = runs, *copy = run + l->n_run;
    const size_t copies = copies_a_run(e);
    /* Copies come last in the list: tiles take longer to do. */
    for (int p = l->first; p < b->n; p++)
        copy -= over((size_t)e->system[b->system[p]].dirt.n_touched, copies);
    for (int p = l->first; p < b->n; p++) {
        size_t n = (size_t)e->system[b->system[p]].dirt.n_touched;
        tile_run one = {.n_touched = (uint32_t)n,
                        .system = (uint32_t)b->system[p],
                        .meta_at = (uint32_t)b->meta_at[p],
                        .staged_at = (uint32_t)b->staged_at[p]};
        if (is_late)
            fill(e, b, p);
        b->out_first[p] = (int)row;
        for (size_t at = 0; at < b->tiles[p]; at += l->chunk) {
            size_t left = b->tiles[p] - at;
            one.first = (uint32_t)at;
            one.count = (uint32_t)(left < l->chunk ? left : l->chunk);
            one.out = (uint32_t)row;
            *run++ = one;
            row += !e->is_atomic;
        }
        row += (size_t)e->is_atomic;
        b->out_count[p] = (int)row - b->out_first[p];
        one.is_copy = 1;
        for (size_t at = 0; at < n; at += copies) {
            one.first = (uint32_t)at;
            one.count = (uint32_t)(n - at < copies ? n - at : copies);
            *copy++ = one;
        }
    }
    if (e->is_atomic && l->first == 0)
        memset(b->host, 0,
               tsr_exchange_out_units(e, l->rows) * TSR_EXCHANGE_UNIT);
}

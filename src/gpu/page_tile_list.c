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

/* A difference takes so much less time than a full sum; tiles a part of a
 * work-group does of one run, at most. */
enum { CHANGES_A_TILE = 3, MOST_CHANGES = 8 };

enum { RUN_TILES, RUN_COPY, RUN_DIFFERENCES }; /* kernels/page_tile.cl */

typedef struct {
    uint32_t first, count, out, blocks; /* touched | full << 16 */
    uint32_t system, meta_at, staged_at, what;
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
    size_t n = (size_t)e->shape.n_block;
    size_t each = over(n, 32) + over((size_t)e->shape.tile, 32);
    return over((n + n_touched * each) * sizeof(uint32_t), TSR_EXCHANGE_UNIT);
}

static size_t copies_a_run(const tsr_page_tile_engine *e)
{
    return e->split > 1 ? (size_t)e->split : CPU_COPIES;
}

size_t tsr_exchange_out_units(const tsr_page_tile_engine *e, size_t rows)
{
    return rows * (size_t)e->shape.row * sizeof(int64_t) / TSR_EXCHANGE_UNIT;
}

/* Rows of results that n proposals can take, and their units. */
static size_t exchange_rows(const tsr_page_tile_engine *e, int n)
{
    return e->is_atomic ? (size_t)n : target_runs(e) + 2 * (size_t)n;
}

/* A launch of n proposals has no more. */
static size_t most_runs(const tsr_page_tile_engine *e, size_t n)
{
    size_t copies = n * over((size_t)e->shape.n_block, copies_a_run(e));
    return copies +
           (e->is_atomic
                ? n * (over((size_t)e->shape.n_tile, (size_t)e->split) + 1)
                : exchange_rows(e, (int)n));
}

size_t tsr_exchange_size_of(const tsr_page_tile_engine *e, int max_proposal)
{
    size_t n = (size_t)max_proposal, n_block = (size_t)e->shape.n_block;
    size_t rows = exchange_rows(e, max_proposal);
    return align(tsr_exchange_out_units(e, rows)) +
           RUN_UNITS * most_runs(e, n) +
           n * (align(meta_units(e, n_block)) +
                align(n_block * block_units(e)) + 2 * ALIGN_UNITS);
}

/* The blocks of a proposal, touched ones first, the slots of their tiles, their
 * moved bodies, and positions. */
static void fill_blocks(const tsr_page_tile_engine *e, const tsr_tile_system *s,
                        uint32_t *meta, char *staged)
{
    const size_t bytes = block_units(e) * TSR_EXCHANGE_UNIT;
    const size_t words = (size_t)s->dirt.words;
    const size_t moved_words = (size_t)s->dirt.moved_words;
    const int n_block = e->shape.n_block, n = s->dirt.n_touched;
    uint32_t *clean = meta + n, *select = meta + n_block;
    uint32_t *moved = select + (size_t)n * words;
    int next = 0; /* block after the last touched one */
    for (int t = 0; t < n; t++) {
        size_t b = (size_t)s->order[t];
        int group = s->dirt.group[b];
        meta[t] = s->entry[b] | (group > 0 ? (uint32_t)group << 17 : 0);
        memcpy(select, s->select + b * words, words * sizeof *select);
        select += words;
        memcpy(moved, s->dirt.moved + b * moved_words,
               moved_words * sizeof *moved);
        moved += moved_words;
        memcpy(staged, tsr_tile_block(e, s, !tsr_tile_slot(s, (int)b), (int)b),
               bytes);
        staged += bytes;
    }
    for (int t = 0; t < n; t++) {
        int b = s->dirt.touched[t];
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
    b->sent = align(tsr_exchange_out_units(e, exchange_rows(e, n)));
    b->used = b->sent;
}

void tsr_launch_add(const tsr_page_tile_engine *e, tsr_page_tile_batch *b,
                    int system)
{
    const tsr_tile_system *s = &e->system[system];
    const size_t touched = (size_t)s->dirt.n_touched;
    int p = b->n++;
    b->system[p] = system;
    b->out_first[p] = b->out_count[p] = 0; /* no rows unless a launch says so */
    b->tiles[p] = tsr_tile_system_tiles(e, s, &b->changes[p]);
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
    size_t tiles = 0, changes = 0;
    for (int p = l.first; p < b->n; p++) {
        tiles += b->tiles[p];
        changes += b->changes[p];
        l.n_run += over((size_t)e->system[b->system[p]].dirt.n_touched,
                        copies_a_run(e));
    }
    if (e->is_atomic) {
        size_t items = (size_t)e->split * (size_t)e->options.parts;
        size_t steps = changes / (items * target_runs(e)) + 1;
        l.chunk = items;
        l.change_chunk =
            items * (steps < MOST_CHANGES ? steps : (size_t)MOST_CHANGES);
    } else {
        l.chunk = (tiles + changes / CHANGES_A_TILE) / target_runs(e) + 1;
        l.change_chunk = l.chunk * CHANGES_A_TILE;
    }
    for (int p = l.first; p < b->n; p++) {
        size_t runs =
            over(b->tiles[p], l.chunk) + over(b->changes[p], l.change_chunk);
        l.n_run += runs;
        l.rows += runs;
    }
    if (e->is_atomic)
        l.rows = b->out_rows;
    l.run_at = b->used;
    l.end = align(l.run_at + RUN_UNITS * l.n_run);
    return l;
}

tsr_launch_layout tsr_launch_lay_out_widest(const tsr_page_tile_engine *e,
                                            const tsr_page_tile_batch *b)
{
    tsr_launch_layout l = {.n_run = most_runs(e, (size_t)b->max_proposal)};
    l.run_at =
        align(tsr_exchange_out_units(e, exchange_rows(e, b->max_proposal)));
    l.begin = l.run_at;
    l.end = l.run_at + RUN_UNITS * l.n_run;
    return l;
}

void tsr_launch_fill_widest(tsr_page_tile_batch *b, const tsr_launch_layout *l)
{
    const tile_run nothing = {.what = RUN_COPY};
    void *runs = b->host + l->run_at * TSR_EXCHANGE_UNIT;
    tile_run *run = runs;
    for (size_t i = 0; i < l->n_run; i++)
        run[i] = nothing;
}

/* Runs of `what` for a list of n tiles; with atomics all have one row. */
static tile_run *fill_runs(const tsr_page_tile_engine *e, tile_run *run,
                           tile_run one, uint32_t what, size_t n, size_t chunk,
                           size_t *row)
{
    one.what = what;
    for (size_t at = 0; at < n; at += chunk) {
        one.first = (uint32_t)at;
        one.count = (uint32_t)(n - at < chunk ? n - at : chunk);
        one.out = (uint32_t)*row;
        *run++ = one;
        if (what != RUN_COPY)
            *row += !e->is_atomic;
    }
    return run;
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
        const tsr_tile_system *s = &e->system[b->system[p]];
        size_t n = (size_t)s->dirt.n_touched;
        tile_run one = {.blocks = (uint32_t)n | (uint32_t)s->n_full << 16,
                        .system = (uint32_t)b->system[p],
                        .meta_at = (uint32_t)b->meta_at[p],
                        .staged_at = (uint32_t)b->staged_at[p]};
        if (is_late)
            fill(e, b, p);
        b->out_first[p] = (int)row;
        run = fill_runs(e, run, one, RUN_TILES, b->tiles[p], l->chunk, &row);
        run = fill_runs(e, run, one, RUN_DIFFERENCES, b->changes[p],
                        l->change_chunk, &row);
        row += (size_t)e->is_atomic;
        b->out_count[p] = (int)row - b->out_first[p];
        copy = fill_runs(e, copy, one, RUN_COPY, n, copies, &row);
    }
    if (e->is_atomic && l->first == 0)
        memset(b->host, 0,
               tsr_exchange_out_units(e, l->rows) * TSR_EXCHANGE_UNIT);
}

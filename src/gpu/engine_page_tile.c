/* The engine by tiles (engine_device.h). Host side, in the order of a step:
 * settings; blocks and dirty tiles; positions of a system and the check of
 * their extent; the work list of a launch; launches; batches; setup of the
 * engine. */
#include "gpu/engine_device.h"

#include "core/clones.h"
#include "core/vec3.h"
#include "gpu/opencl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sphere around all bodies, for the check of the largest distance: no body is
 * farther than sqrt(most2) from `centre`. Staging only increases most2, and the
 * exact check makes it tight again. Angstrom, Angstrom^2, relative to the
 * system's origin. */
typedef struct {
    double centre[3], most2;
} tile_extent;

/* The host's record of a system. Blocks and tiles have two slots. One holds the
 * accepted value, and a proposal writes the other. */
typedef struct {
    uint32_t *entry;  /* [n_block] block | accepted slot << 16, and for copies
                         TSR_COPIES_GROUP << 17 */
    uint32_t *select; /* [n_block][words] accepted slots of tiles, a bit each */
    float *position;  /* [2][n_block][3][tile] */
    tile_extent extent, proposed_extent;
    double (*xyz)[3]; /* [n_body] scratch */
    double origin[3]; /* Angstrom; positions are relative to it */
    double proposed_origin[3];
    int64_t *accepted, *proposed; /* [shape.row] fixed point */
    tsr_dirty_tiles dirty;        /* dirty tiles of the proposal */
    int *order; /* [n_block] touched blocks: first n_full blocks with full sums,
                   then blocks whose tiles with untouched blocks are updated by
                   differences */
    int n_full;
    uint8_t *age; /* [n_block] differences since the last full sums */
} tile_system;

typedef struct {
    tsr_engine base;
    tsr_page_tile_options options; /* resolved, without AUTO */
    tsr_tile_shape shape;
    double fixed_scale; /* a power of two: fixed = value * scale */
    int n_copy;         /* copies for which the sums stand; 1: no symmetry */
    double *constant;   /* [n_pair][n_q] self terms; all of I at q = 0 */
    int is_atomic;      /* 1: all runs of a proposal add to one result row */
    int split;          /* work-groups for each run */
    int is_pipelined;   /* 1: a submit may use several launches */
    tsr_program program;
    char build_options[320];
    tsr_cl cl;
    cl_mem position; /* [n_system][2][n_block][3][tile] */
    cl_mem cache;    /* [n_system][n_tile][2][shape.row] */
    cl_mem form_factor;
    tile_system *system; /* [n_system] */
} tile_engine;

enum {
    UNIT = 16, /* alignment in bytes; offsets and sizes are in this unit */
    MAX_LAUNCHES = 64
};

/* The part of one proposal in a batch. */
typedef struct {
    size_t tiles;             /* tiles listed for full sums, some are clean */
    size_t changes;           /* tiles updated by differences */
    size_t meta_at;           /* offset of the block list, in units */
    size_t staged_at;         /* offset of the staged positions, in units */
    int out_first, out_count; /* rows of results */
} tile_part;

typedef struct {
    tsr_batch base;
    tsr_cl cl;
    int n_launched;          /* proposals launched so far */
    size_t tiles, launch_at; /* tiles not launched yet; number of tiles that
                             triggers a launch */
    tile_part *part;         /* [max_proposal] */
    cl_command_queue queue;
    cl_command_queue loader; /* pipelined: queue for input in parallel with
                                kernels, or NULL */
    cl_event loaded;         /* the next kernel waits for this event, or NULL */
    cl_kernel kernel;
    cl_mem exchange;   /* exchange buffer on the device */
    char *host;        /* the mapped buffer or the host's copy; results first */
    cl_event done;     /* NULL: no work in flight */
    int n_kernel_done; /* with profiling: events of the launches */
    cl_event kernel_done[MAX_LAUNCHES];
    size_t size;       /* of the exchange buffer, units */
    size_t sent, used; /* units launched so far; units written so far */
    size_t out_rows;   /* result rows in flight, at the buffer's start */
} tile_batch;

static const tile_engine *engine_of(const tile_batch *b)
{
    return (const tile_engine *)b->base.engine;
}

/* ---- settings ---- */

static void set_default(int *to, int value)
{
    if (*to == 0)
        *to = value;
}

/* Replaces zeros in the options by values of `from`. */
static void apply_defaults(const tsr_page_tile_options *from,
                           tsr_page_tile_options *options)
{
    set_default(&options->tile, from->tile);
    set_default(&options->split, from->split);
    if (options->tile == from->tile)
        set_default(&options->difference, from->difference);
    set_default(&options->tiles_a_launch, from->tiles_a_launch);
    set_default(&options->max_pages, from->max_pages);
    set_default(&options->max_age, from->max_age);
}

static int is_valid(const tsr_page_tile_options *o)
{
    return (o->tile == 16 || o->tile == 32 || o->tile == 64 ||
            o->tile == 128) &&
           o->split >= 1 && o->split <= 1024 && o->difference >= -1 &&
           o->difference <= o->tile / 2;
}

enum {
    MAX_PAGES = 128,
    MAX_SUMS = 168, /* SIMT: pages and components that a work-item sums in its
                       registers, of which an NVIDIA GPU has 255 */
    MAX_BLOCKS = 65535,
    MAX_AGE = 255 /* a system stores the age in a byte */
};

static const tsr_page_tile_options defaults = {.tile = 32,
                                               .split = 16,
                                               .tiles_a_launch = 32768,
                                               .max_pages = 64,
                                               .max_age = 64};

/* The fastest settings by kind of device, for the variant that AUTO chooses
 * there (bench/RESULTS.md). Processors take small tiles for small molecules. */
static tsr_page_tile_options settings_of(tsr_device_type type, int n_body)
{
    if (type != TSR_DEVICE_CPU)
        return (tsr_page_tile_options){.tile = 32, .split = 8};
    if (n_body > 0 && n_body <= 800)
        return (tsr_page_tile_options){
            .tile = 32, .split = 1, .difference = 16};
    return (tsr_page_tile_options){.tile = 64, .split = 1};
}

tsr_status tsr_page_tile_resolve(const tsr_device_info *info, int n_body,
                                 const tsr_page_tile_options *given,
                                 tsr_page_tile_options *out, tsr_err *err)
{
    tsr_page_tile_options o = {0};
    if (given != NULL)
        o = *given;
    const tsr_page_tile_variant natural =
        info->type == TSR_DEVICE_CPU ? TSR_PAGE_TILE_SIMD : TSR_PAGE_TILE_SIMT;
    if (o.variant == TSR_PAGE_TILE_AUTO)
        o.variant = natural;
    if (o.variant == natural) {
        const tsr_page_tile_options settings = settings_of(info->type, n_body);
        apply_defaults(&settings, &o);
    }
    apply_defaults(&defaults, &o);
    set_default(&o.difference, 3 * o.tile / 8);
    if (!is_valid(&o) || o.tiles_a_launch < 1 || o.max_age < 1 ||
        o.max_age > MAX_AGE || o.max_pages < 4 || o.max_pages > MAX_PAGES)
        return tsr_fail(
            err, TSR_E_INTERNAL,
            "page-tile engine: tiles of %d bodies (16, 32, 64 or 128), "
            "%d work-groups a run (1 to 1024), %d tiles a launch (1 or more), "
            "differences for up to %d bodies (half "
            "a tile at most), %d in a row (1 to %d), %d pages a group (4 to "
            "%d)",
            o.tile, o.split, o.tiles_a_launch, o.difference, o.max_age, MAX_AGE,
            o.max_pages, MAX_PAGES);
    *out = o;
    return TSR_OK;
}

/* ---- blocks and tiles ----
 *
 * Bodies are divided into blocks, and pairs of blocks are tiles. A move makes
 * all tiles of its blocks dirty, except tiles between blocks that move wholly
 * with one rigid group: their distances do not change. */

tsr_tile_shape tsr_tile_shape_make(int n_body, int n_q, int n_comp, int tile,
                                   int max_pages)
{
    tsr_tile_shape s = {
        .n_body = n_body, .n_q = n_q, .n_comp = n_comp, .tile = tile};
    int n_page = n_q - 1;
    s.n_block = (n_body + tile - 1) / tile;
    s.n_tile = (int)((long)s.n_block * (s.n_block + 1) / 2);
    s.n_group = (n_page + max_pages - 1) / max_pages;
    s.pages = ((n_page + s.n_group - 1) / s.n_group + 3) / 4 * 4;
    s.stride = s.n_group * s.pages;
    s.n_own = n_body;
    s.own_blocks = s.n_block;
    s.n_pair = n_comp * (n_comp + 1) / 2;
    s.row = s.n_pair * s.stride;
    return s;
}

/* The shape of n copies of a molecule. */
static void repeat_shape(tsr_tile_shape *s, int n)
{
    s->n_body *= n;
    s->n_block *= n;
    s->n_tile = (int)((long)s->n_block * (s->n_block + 1) / 2);
}

static int is_copy(const tsr_tile_shape *s, int block)
{
    return block >= s->own_blocks;
}

/* Takes from `rest` the bodies of its first copy. part->first out: counts the
 * padding of earlier copies, so that block b begins with b tile. Returns 0 at
 * the end, or if the engine does not need the copy. */
static int next_part(const tsr_tile_shape *s, tsr_body_range *rest,
                     tsr_body_range *part)
{
    if (rest->count <= 0 || rest->first >= s->n_body)
        return 0;
    const int copy = rest->first / s->n_own,
              left = (copy + 1) * s->n_own - rest->first;
    *part = *rest;
    part->count = rest->count < left ? rest->count : left;
    part->first += copy * (s->own_blocks * s->tile - s->n_own);
    rest->first += part->count;
    rest->count -= part->count;
    rest->xyz = rest->xyz == NULL ? NULL : rest->xyz + part->count;
    return 1;
}

void tsr_dirty_tiles_make(tsr_dirty_tiles *dirty, const tsr_tile_shape *shape,
                          tsr_pool *pool)
{
    const size_t n = (size_t)shape->n_block, words = (n + 31) / 32;
    *dirty = (tsr_dirty_tiles){.words = (int)words,
                               .moved_words = (shape->tile + 31) / 32};
    tsr_pool_array(pool, dirty->group, n);
    tsr_pool_array(pool, dirty->covered, n);
    tsr_pool_array(pool, dirty->touched, n);
    tsr_pool_array(pool, dirty->name, n + 1);
    tsr_pool_array(pool, dirty->mask, (n + 2) * words);
    tsr_pool_array(pool, dirty->moved, n * (size_t)dirty->moved_words);
    for (size_t b = 0; b < n && !pool->failed; b++)
        dirty->mask[(n + 1) * words + b / 32] |= UINT32_C(1) << b % 32;
}

/* New number of a rigid group. If there are too many groups, blocks count as
 * mixed. This is also correct, because tiles of mixed blocks are always
 * computed. */
static int number_group(tsr_dirty_tiles *dirty, const tsr_tile_shape *shape,
                        int name)
{
    if (name <= 0)
        return TSR_BLOCK_MIXED;
    for (int g = dirty->n_group; g > 0; g--)
        if (dirty->name[g] == name)
            return g;
    if (dirty->n_group == shape->n_block || dirty->n_group == TSR_MAX_GROUPS)
        return TSR_BLOCK_MIXED;
    dirty->name[++dirty->n_group] = name;
    return dirty->n_group;
}

/* Sets the bits from..to-1 of a block's bodies. */
static void mark_moved(tsr_dirty_tiles *dirty, int block, int from, int to)
{
    uint32_t *word = dirty->moved + block * dirty->moved_words;
    for (int w = from / 32; w * 32 < to; w++) {
        int low = from > w * 32 ? from - w * 32 : 0;
        int high = to < w * 32 + 32 ? to - w * 32 : 32;
        word[w] |= UINT32_MAX << low & UINT32_MAX >> (32 - high);
    }
}

/* Marks a range, starting at or after block `start_block`, where the previous
 * range ended. Returns the last block of the range. */
static int mark_range(tsr_dirty_tiles *dirty, const tsr_tile_shape *shape,
                      const tsr_body_range *range, int start_block)
{
    int end = range->first + range->count, b = start_block;
    int group = is_copy(shape, range->first / shape->tile)
                    ? TSR_COPIES_GROUP
                    : number_group(dirty, shape, range->group);
    if (range->first >= (b + 1) * shape->tile)
        b = range->first / shape->tile;
    for (; b * shape->tile < end; b++) {
        int from = b * shape->tile, to = from + shape->tile;
        from = from > range->first ? from : range->first;
        to = to < end ? to : end;
        if (dirty->group[b] == TSR_BLOCK_CLEAN) {
            dirty->touched[dirty->n_touched++] = b;
            dirty->group[b] = group;
            dirty->covered[b] = to - from;
            memset(dirty->moved + b * dirty->moved_words, 0,
                   (size_t)dirty->moved_words * sizeof *dirty->moved);
        } else {
            dirty->covered[b] += to - from;
            if (dirty->group[b] != group)
                dirty->group[b] = TSR_BLOCK_MIXED;
        }
        mark_moved(dirty, b, from - b * shape->tile, to - b * shape->tile);
    }
    return b - 1;
}

static void set_bit(uint32_t *mask, int block)
{
    unsigned b = (unsigned)block;
    mask[b / 32] |= UINT32_C(1) << b % 32;
}

void tsr_dirty_tiles_mark(tsr_dirty_tiles *dirty, const tsr_tile_shape *shape,
                          int n_range, const tsr_body_range *range)
{
    const tsr_body_range all = {.count = shape->n_body};
    if (n_range < 0) {
        n_range = 1;
        range = &all;
    }
    for (int t = 0; t < dirty->n_touched; t++)
        dirty->group[dirty->touched[t]] = TSR_BLOCK_CLEAN;
    dirty->n_touched = 0;
    dirty->n_group = shape->own_blocks < shape->n_block ? TSR_COPIES_GROUP : 0;
    tsr_body_range part;
    for (int r = 0, b = 0; r < n_range; r++)
        for (tsr_body_range rest = range[r]; next_part(shape, &rest, &part);)
            b = mark_range(dirty, shape, &part, b);
    memset(dirty->mask, 0,
           (size_t)(dirty->n_group + 1) * (size_t)dirty->words *
               sizeof *dirty->mask);
    for (int t = 0; t < dirty->n_touched; t++) {
        int b = dirty->touched[t];
        /* a block with a body that did not move is not wholly in a group */
        if (dirty->covered[b] < tsr_tile_block_size(shape, b) &&
            !is_copy(shape, b))
            dirty->group[b] = TSR_BLOCK_MIXED;
        set_bit(dirty->mask, b);
        if (dirty->group[b] > 0)
            set_bit(dirty->mask + dirty->group[b] * dirty->words, b);
    }
}

int tsr_dirty_tiles_is_empty(const tsr_dirty_tiles *dirty,
                             const tsr_tile_shape *shape)
{
    if (dirty->n_group != 1 || dirty->n_touched < shape->n_block)
        return dirty->n_touched == 0;
    for (int b = 0; b < shape->n_block; b++)
        if (dirty->group[b] == TSR_BLOCK_MIXED)
            return 0;
    return 1;
}

void tsr_dirty_tiles_flip(const tsr_dirty_tiles *dirty,
                          const tsr_tile_shape *shape, uint32_t *select)
{
    const int words = dirty->words;
    if (dirty->n_touched == 0)
        return;
    /* only touched blocks can be dirty partners of a clean block */
    int from = dirty->touched[0] / 32;
    int to = dirty->touched[dirty->n_touched - 1] / 32;
    for (int b = 0; b < shape->n_block; b++, select += words)
        if (dirty->group[b] == TSR_BLOCK_CLEAN)
            for (int w = from; w <= to; w++)
                select[w] ^= dirty->mask[w];
        else
            for (int w = 0; w < words; w++)
                select[w] ^= tsr_dirty_tiles_bits(dirty, shape, b, w);
}

/* ---- a system ---- */

/* Accepted slot of a block, and (block_at) coordinates [3][tile] of a block in
 * a slot. */
static inline int slot_of(const tile_system *s, int block)
{
    return (int)(s->entry[block] >> 16 & 1);
}
static inline float *block_at(const tile_engine *e, const tile_system *s,
                              int slot, int block)
{
    size_t at = (size_t)(slot * e->shape.n_block + block);
    return s->position + at * 3 * (size_t)e->shape.tile;
}

/* Beyond this distance from the origin, single precision cannot resolve
 * neighbouring bodies. */
static const double max_coordinate_ang = 1e5;

static void make_system(tile_engine *e, tile_system *s)
{
    tsr_pool *pool = &e->base.pool;
    const size_t n_block = (size_t)e->shape.n_block;
    const size_t n_body = n_block * (size_t)e->shape.tile;
    tsr_pool_array(pool, s->entry, n_block);
    tsr_pool_array(pool, s->select, n_block * ((n_block + 31) / 32));
    tsr_pool_array(pool, s->position, 2 * n_body * 3);
    tsr_pool_array(pool, s->xyz, e->shape.n_body);
    tsr_pool_array(pool, s->order, n_block);
    tsr_pool_array(pool, s->age, n_block);
    tsr_pool_array(pool, s->accepted, e->shape.row);
    tsr_pool_array(pool, s->proposed, e->shape.row);
    tsr_dirty_tiles_make(&s->dirty, &e->shape, pool);
    for (size_t b = 0; b < n_block && !pool->failed; b++)
        s->entry[b] =
            (uint32_t)b |
            (is_copy(&e->shape, (int)b) ? (uint32_t)TSR_COPIES_GROUP << 17 : 0);
}

/* Stores bodies in a block as x[], y[], z[], each `tile` long, from index
 * `lane` on, relative to the origin. Returns the largest squared distance from
 * the centre, and adds all squared distances to *sum. A position that is not
 * finite makes *sum infinite or NaN. */
static double store_bodies(float *restrict out, size_t tile, size_t lane, int n,
                           const double (*restrict xyz)[3],
                           const double *origin, const double *centre,
                           double *sum)
{
    const double ox = origin[0], oy = origin[1], oz = origin[2];
    const double cx = centre[0], cy = centre[1], cz = centre[2];
    double most2 = 0.0, all = 0.0;
    for (size_t i = 0; i < (size_t)n; i++) {
        double x = xyz[i][0] - ox, y = xyz[i][1] - oy, z = xyz[i][2] - oz;
        out[lane + i] = (float)x;
        out[tile + lane + i] = (float)y;
        out[2 * tile + lane + i] = (float)z;
        x -= cx, y -= cy, z -= cz;
        double r2 = x * x + y * y + z * z;
        all += r2;
        most2 = r2 > most2 ? r2 : most2;
    }
    *sum += all;
    return most2;
}

/* Stores a range, starting at or after block `start_block`, where the previous
 * range ended. Returns the last block of the range. */
static int store_range(const tile_engine *e, tile_system *s, int first,
                       int count, const double (*xyz)[3], int start_block,
                       double *sum)
{
    const int tile = e->shape.tile;
    tile_extent *x = &s->proposed_extent;
    int block = start_block;
    if (first >= (block + 1) * tile)
        block = first / tile;
    for (;; block++) {
        int lane = first - block * tile;
        int n = tile - lane < count ? tile - lane : count;
        double most2 = store_bodies(block_at(e, s, !slot_of(s, block), block),
                                    (size_t)tile, (size_t)lane, n, xyz,
                                    s->proposed_origin, x->centre, sum);
        x->most2 = most2 > x->most2 ? most2 : x->most2;
        first += n;
        xyz += n;
        count -= n;
        if (count == 0)
            return block;
    }
}

static tsr_status check_coordinates(const tile_system *s, int system, int first,
                                    int n, const double (*xyz)[3], tsr_err *err)
{
    TSR_TRY(tsr_engine_xyz_check(n, first, system, xyz, err));
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            if (fabs(xyz[i][c] - s->proposed_origin[c]) > max_coordinate_ang)
                return tsr_fail(
                    err, TSR_E_RANGE,
                    "engine: body %d of system %d is at %g Angstrom, more than "
                    "%g from the position where the system was set",
                    first + i, system, xyz[i][c], max_coordinate_ang);
    return TSR_OK;
}

/* Writes the positions of all bodies to the free slots, with their mean as new
 * origin. */
static tsr_status stage_all(const tile_engine *e, int system,
                            const double (*all)[3], tsr_err *err)
{
    tile_system *s = &e->system[system];
    tile_extent *x = &s->proposed_extent;
    int n = e->shape.n_body;
    TSR_TRY(tsr_engine_xyz_check(n, 0, system, all, err));
    for (int c = 0; c < 3; c++) {
        double lo = all[0][c], hi = lo, sum = 0.0;
        for (int i = 0; i < n; i++) {
            sum += all[i][c] / n;
            lo = all[i][c] < lo ? all[i][c] : lo;
            hi = all[i][c] > hi ? all[i][c] : hi;
        }
        s->proposed_origin[c] = sum;
        x->centre[c] = 0.5 * (lo + hi) - sum;
    }
    TSR_TRY(check_coordinates(s, system, 0, n, all, err));
    double sum = 0.0;
    tsr_body_range rest = {.count = n, .xyz = all}, part;
    tsr_dirty_tiles_mark(&s->dirty, &e->shape, -1, NULL);
    for (int b = 0; next_part(&e->shape, &rest, &part);)
        b = store_range(e, s, part.first, part.count, part.xyz, b, &sum);
    return TSR_OK;
}

/* Writes the touched blocks to the free slots, with the positions of bodies
 * that did not move copied from the accepted slots. */
static tsr_status stage_ranges(const tile_engine *e,
                               const tsr_body_proposal *proposal, tsr_err *err)
{
    const int system = proposal->system, n_range = proposal->n_range;
    const tsr_body_range *range = proposal->range;
    tile_system *s = &e->system[system];
    tile_extent *x = &s->proposed_extent;
    const size_t bytes = 3 * (size_t)e->shape.tile * sizeof(float);
    double sum = 0.0;
    tsr_vec3_copy(s->proposed_origin, s->origin);
    tsr_vec3_copy(x->centre, s->extent.centre);
    tsr_dirty_tiles_mark(&s->dirty, &e->shape, n_range, range);
    for (int t = 0; t < s->dirty.n_touched; t++) {
        int b = s->dirty.touched[t], slot = slot_of(s, b);
        if (s->dirty.covered[b] < tsr_tile_block_size(&e->shape, b))
            memcpy(block_at(e, s, !slot, b), block_at(e, s, slot, b), bytes);
    }
    tsr_body_range part;
    for (int r = 0, b = 0; r < n_range; r++)
        for (tsr_body_range rest = range[r];
             next_part(&e->shape, &rest, &part);)
            b = store_range(e, s, part.first, part.count, part.xyz, b, &sum);
    /* one comparison of the sum shows that all positions are valid */
    double limit = max_coordinate_ang - tsr_vec3_norm(x->centre);
    if (!(limit > 0.0 && sum < limit * limit))
        for (int r = 0; r < n_range; r++)
            TSR_TRY(check_coordinates(s, system, range[r].first, range[r].count,
                                      range[r].xyz, err));
    return TSR_OK;
}

/* Collects the proposed positions of all bodies, relative to the origin. */
static void gather_positions(const tile_engine *e, const tile_system *s)
{
    const size_t tile = (size_t)e->shape.tile;
    for (int b = 0; b < e->shape.n_block; b++) {
        const int is_touched = s->dirty.group[b] != TSR_BLOCK_CLEAN;
        const float *from = block_at(e, s, slot_of(s, b) ^ is_touched, b);
        double(*to)[3] = s->xyz + tsr_tile_block_body(&e->shape, b);
        for (size_t i = 0; i < (size_t)tsr_tile_block_size(&e->shape, b); i++)
            for (size_t c = 0; c < 3; c++)
                to[i][c] = (double)from[c * tile + i];
    }
}

/* Exact check that a proposal stays within the distance that the grid allows;
 * else TSR_E_RANGE. With |xy| <= |xc| + |yc| for any centre c, the bounds kept
 * by staging decide most cases without a sum over pairs. The proposed bound
 * covers only the moved bodies at first. */
static tsr_status check_extent(const tile_engine *e, int system, int is_fresh,
                               tsr_err *err)
{
    tile_system *s = &e->system[system];
    tile_extent *x = &s->proposed_extent;
    const double moved = sqrt(x->most2);
    if (!is_fresh)
        x->most2 = fmax(x->most2, s->extent.most2);
    if (moved + sqrt(x->most2) <= e->base.d_bound_ang)
        return TSR_OK;
    gather_positions(e, s);
    const double(*xyz)[3] = (const double(*)[3])s->xyz;
    TSR_TRY(
        tsr_engine_extent_check(&e->base, system, e->shape.n_body, xyz, err));
    x->most2 = tsr_engine_bounding_ball(e->shape.n_body, xyz, x->centre);
    return TSR_OK;
}

/* 1 if the tiles of a touched block with untouched blocks are updated by
 * differences. */
static int uses_difference(const tile_engine *e, const tile_system *s,
                           int block)
{
    return s->dirty.n_touched < e->shape.n_block &&
           !is_copy(&e->shape, block) &&
           s->dirty.covered[block] <= e->options.difference &&
           s->age[block] < e->options.max_age;
}

/* Sets s->order and s->n_full. */
static void order_touched(const tile_engine *e, tile_system *s)
{
    int n = s->dirty.n_touched, end = n;
    s->n_full = 0;
    for (int t = 0; t < n; t++)
        if (!uses_difference(e, s, s->dirty.touched[t]))
            s->order[s->n_full++] = s->dirty.touched[t];
    for (int t = n - 1; t >= 0 && end > s->n_full; t--)
        if (uses_difference(e, s, s->dirty.touched[t]))
            s->order[--end] = s->dirty.touched[t];
}

/* Checks a proposal and writes its positions and dirty tiles to the free slots.
 * is_fresh: all bodies are set, with a new origin. */
static tsr_status propose_system(const tile_engine *e,
                                 const tsr_body_proposal *proposal,
                                 int is_fresh, tsr_err *err)
{
    const int system = proposal->system;
    tile_system *s = &e->system[system];
    s->proposed_extent.most2 = 0.0;
    TSR_TRY(is_fresh ? stage_all(e, system, proposal->range->xyz, err)
                     : stage_ranges(e, proposal, err));
    if (e->base.d_bound_ang > 0.0)
        TSR_TRY(check_extent(e, system, is_fresh, err));
    order_touched(e, s);
    return TSR_OK;
}

static size_t triangle(size_t n)
{
    return n * (n + 1) / 2;
}

/* Number of tiles in a launch's list of full sums for a proposal: all pairs
 * with a block of full sums, and the pairs of two blocks with differences; 0 if
 * all tiles are clean. *changes out: tiles updated by differences. */
static size_t count_tiles(const tile_engine *e, const tile_system *s,
                          size_t *changes)
{
    size_t n_block = (size_t)e->shape.n_block, full = (size_t)s->n_full;
    size_t touched = (size_t)s->dirty.n_touched;
    *changes = 0;
    /* a rigid motion of the whole molecule changes no distance */
    if (tsr_dirty_tiles_is_empty(&s->dirty, &e->shape))
        return 0;
    *changes = (touched - full) * (n_block - touched);
    return triangle(n_block) - triangle(n_block - full) +
           triangle(touched - full);
}

static void tile_accept(tsr_engine *engine, int system)
{
    const tile_engine *e = (const tile_engine *)engine;
    tile_system *s = &e->system[system];
    for (int t = 0; t < s->dirty.n_touched; t++) {
        int block = s->order[t];
        s->entry[block] ^= UINT32_C(1) << 16;
        /* a block in a rigid group keeps its tiles and their age */
        if (t >= s->n_full)
            s->age[block]++;
        else if (s->dirty.group[block] == TSR_BLOCK_MIXED)
            s->age[block] = 0;
    }
    tsr_dirty_tiles_flip(&s->dirty, &e->shape, s->select);
    s->extent = s->proposed_extent;
    int64_t *accepted = s->proposed;
    s->proposed = s->accepted;
    s->accepted = accepted;
    tsr_vec3_copy(s->origin, s->proposed_origin);
}

/* Converts fixed-point numbers to electrons squared: profile [n_pair][n_q]
 * out. */
static void convert_profile(const tile_engine *e, const int64_t *fixed,
                            double *profile)
{
    const double unit = e->n_copy / e->fixed_scale;
    const double *constant = e->constant;
    for (int p = 0; p < e->shape.n_pair; p++) {
        profile[0] = constant[0];
        for (int k = 1; k < e->shape.n_q; k++)
            profile[k] = constant[k] + (double)fixed[k - 1] * unit;
        profile += e->shape.n_q;
        constant += e->shape.n_q;
        fixed += e->shape.stride;
    }
}

/* ---- the work list of a launch ----
 *
 * All data between host and device are in one exchange buffer: the results, and
 * for each launch a list of runs, block lists, and positions of touched blocks.
 * Tile runs read the touched blocks in this buffer, while copy runs of the same
 * launch copy these blocks to the systems' position slots, so one launch
 * suffices. The kernel itself determines the tiles of a run
 * (kernels/page_tile.cl), so the work of the host is O(touched blocks +
 * blocks). */

/* Offsets of one launch in the exchange buffer, in units: block lists and
 * positions of its proposals from `begin`, then the runs. */
typedef struct {
    int first; /* first proposal of the launch */
    size_t begin, run_at, end;
    size_t n_run;
    size_t chunk, change_chunk; /* full sums in a run, differences in a run */
    size_t rows; /* rows of results; with atomics those of the whole batch */
} launch_layout;

enum { RUN_UNITS = 2, ALIGN_UNITS = 4, CPU_COPIES = 8 };

/* CHANGES_A_TILE: a full sum takes as long as this many differences.
 * MAX_CHANGES: limit for the tiles that one part of a work-group processes in
 * a run. */
enum { CHANGES_A_TILE = 3, MAX_CHANGES = 8 };

enum { RUN_TILES, RUN_COPY, RUN_DIFFERENCES }; /* as in kernels/page_tile.cl */

typedef struct {
    uint32_t first, count, out, blocks; /* touched | full << 16 */
    uint32_t system, meta_at, staged_at, what;
} tile_run;

/* Number of runs that occupies the whole device. */
static size_t target_runs(const tile_engine *e)
{
    int per_unit = e->options.variant == TSR_PAGE_TILE_SIMD ? 16 : 64;
    return (size_t)per_unit * (size_t)e->cl.device->info.compute_units;
}

static size_t ceil_div(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static size_t align(size_t units)
{
    return ceil_div(units, ALIGN_UNITS) * ALIGN_UNITS;
}

static size_t block_units(const tile_engine *e)
{
    return 3 * (size_t)e->shape.tile * sizeof(float) / UNIT;
}

/* Size of a proposal's block list, with slots and moved bodies. */
static size_t meta_units(const tile_engine *e, size_t n_touched)
{
    size_t n = (size_t)e->shape.n_block;
    size_t each = ceil_div(n, 32) + ceil_div((size_t)e->shape.tile, 32);
    return ceil_div((n + n_touched * each) * sizeof(uint32_t), UNIT);
}

static size_t copies_a_run(const tile_engine *e)
{
    return e->split > 1 ? (size_t)e->split : CPU_COPIES;
}

static size_t out_units(const tile_engine *e, size_t rows)
{
    return rows * (size_t)e->shape.row * sizeof(int64_t) / UNIT;
}

/* Rows of results for n proposals. */
static size_t exchange_rows(const tile_engine *e, int n)
{
    return e->is_atomic ? (size_t)n : target_runs(e) + 2 * (size_t)n;
}

/* Upper bound of the runs in a launch of n proposals. */
static size_t max_runs(const tile_engine *e, size_t n)
{
    size_t copies = n * ceil_div((size_t)e->shape.n_block, copies_a_run(e));
    return copies +
           (e->is_atomic
                ? n * (ceil_div((size_t)e->shape.n_tile, (size_t)e->split) + 1)
                : exchange_rows(e, (int)n));
}

/* Size of the exchange buffer of a batch, in units. */
static size_t exchange_size(const tile_engine *e, int max_proposal)
{
    size_t n = (size_t)max_proposal, n_block = (size_t)e->shape.n_block;
    size_t rows = exchange_rows(e, max_proposal);
    return align(out_units(e, rows)) + RUN_UNITS * max_runs(e, n) +
           n * (align(meta_units(e, n_block)) +
                align(n_block * block_units(e)) + 2 * ALIGN_UNITS);
}

/* Writes the block list of a proposal (touched blocks first), the slots of
 * their tiles, their moved bodies, and their positions. */
static void write_blocks(const tile_engine *e, const tile_system *s,
                         uint32_t *meta, char *staged)
{
    const size_t bytes = block_units(e) * UNIT;
    const size_t words = (size_t)s->dirty.words;
    const size_t moved_words = (size_t)s->dirty.moved_words;
    const int n_block = e->shape.n_block, n = s->dirty.n_touched;
    uint32_t *clean = meta + n, *select = meta + n_block;
    uint32_t *moved = select + (size_t)n * words;
    int next = 0; /* block after the last touched one */
    for (int t = 0; t < n; t++) {
        size_t b = (size_t)s->order[t];
        int group = s->dirty.group[b];
        meta[t] = s->entry[b] | (group > 0 ? (uint32_t)group << 17 : 0);
        memcpy(select, s->select + b * words, words * sizeof *select);
        select += words;
        memcpy(moved, s->dirty.moved + b * moved_words,
               moved_words * sizeof *moved);
        moved += moved_words;
        memcpy(staged, block_at(e, s, !slot_of(s, (int)b), (int)b), bytes);
        staged += bytes;
    }
    for (int t = 0; t < n; t++) {
        int b = s->dirty.touched[t];
        while (next < b)
            *clean++ = s->entry[next++];
        next = b + 1;
    }
    memcpy(clean, s->entry + next, (size_t)(n_block - next) * sizeof *clean);
}

/* Resets the batch before the first of n proposals. */
static void begin_launches(const tile_engine *e, tile_batch *b, int n)
{
    b->n_launched = 0;
    b->out_rows = (size_t)n;
    b->sent = align(out_units(e, exchange_rows(e, n)));
    b->used = b->sent;
}

/* Writes the blocks of the newest proposal, whose positions are still in the
 * CPU's cache. */
static void add_blocks(const tile_engine *e, tile_batch *b)
{
    const int p = b->base.n - 1;
    const tile_system *s = &e->system[b->base.system[p]];
    const size_t touched = (size_t)s->dirty.n_touched;
    b->part[p].out_first = b->part[p].out_count = 0; /* set later by a launch */
    b->part[p].tiles = count_tiles(e, s, &b->part[p].changes);
    b->part[p].meta_at = b->used;
    b->part[p].staged_at = align(b->used + meta_units(e, touched));
    b->used = align(b->part[p].staged_at + touched * block_units(e));
    void *meta = b->host + b->part[p].meta_at * UNIT;
    write_blocks(e, s, meta, b->host + b->part[p].staged_at * UNIT);
}

/* Layout of a launch of all proposals that are written but not launched. */
static launch_layout make_layout(const tile_engine *e, const tile_batch *b)
{
    launch_layout l = {.first = b->n_launched, .begin = b->sent};
    size_t tiles = 0, changes = 0;
    for (int p = l.first; p < b->base.n; p++) {
        tiles += b->part[p].tiles;
        changes += b->part[p].changes;
        l.n_run +=
            ceil_div((size_t)e->system[b->base.system[p]].dirty.n_touched,
                     copies_a_run(e));
    }
    if (e->is_atomic) {
        size_t items = (size_t)e->split;
        size_t steps = changes / (items * target_runs(e)) + 1;
        l.chunk = items;
        l.change_chunk =
            items * (steps < MAX_CHANGES ? steps : (size_t)MAX_CHANGES);
    } else {
        l.chunk = (tiles + changes / CHANGES_A_TILE) / target_runs(e) + 1;
        l.change_chunk = l.chunk * CHANGES_A_TILE;
    }
    for (int p = l.first; p < b->base.n; p++) {
        size_t runs = ceil_div(b->part[p].tiles, l.chunk) +
                      ceil_div(b->part[p].changes, l.change_chunk);
        l.n_run += runs;
        l.rows += runs;
    }
    if (e->is_atomic)
        l.rows = b->out_rows;
    l.run_at = b->used;
    l.end = align(l.run_at + RUN_UNITS * l.n_run);
    return l;
}

/* Layout of a launch with the largest possible number of runs, all empty. */
static launch_layout widest_layout(const tile_engine *e, const tile_batch *b)
{
    launch_layout l = {.n_run = max_runs(e, (size_t)b->base.max_proposal)};
    l.run_at = align(out_units(e, exchange_rows(e, b->base.max_proposal)));
    l.begin = l.run_at;
    l.end = l.run_at + RUN_UNITS * l.n_run;
    return l;
}

static void write_widest(tile_batch *b, const launch_layout *l)
{
    const tile_run nothing = {.what = RUN_COPY};
    void *runs = b->host + l->run_at * UNIT;
    tile_run *run = runs;
    for (size_t i = 0; i < l->n_run; i++)
        run[i] = nothing;
}

/* Writes runs of kind `what` for a list of n tiles. With atomics all runs share
 * one row. */
static tile_run *write_runs(const tile_engine *e, tile_run *run, tile_run one,
                            uint32_t what, size_t n, size_t chunk, size_t *row)
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

/* Writes the runs of a launch, and records the result rows of each proposal. */
static void write_launch(const tile_engine *e, tile_batch *b,
                         const launch_layout *l)
{
    void *runs = b->host + l->run_at * UNIT;
    size_t row = e->is_atomic ? (size_t)l->first : 0;
    tile_run *run = runs, *copy = run + l->n_run;
    const size_t copies = copies_a_run(e);
    /* copies come last in the list, because tiles take longer */
    for (int p = l->first; p < b->base.n; p++)
        copy -= ceil_div((size_t)e->system[b->base.system[p]].dirty.n_touched,
                         copies);
    for (int p = l->first; p < b->base.n; p++) {
        const tile_system *s = &e->system[b->base.system[p]];
        size_t n = (size_t)s->dirty.n_touched;
        tile_run one = {.blocks = (uint32_t)n | (uint32_t)s->n_full << 16,
                        .system = (uint32_t)b->base.system[p],
                        .meta_at = (uint32_t)b->part[p].meta_at,
                        .staged_at = (uint32_t)b->part[p].staged_at};
        b->part[p].out_first = (int)row;
        run = write_runs(e, run, one, RUN_TILES, b->part[p].tiles, l->chunk,
                         &row);
        run = write_runs(e, run, one, RUN_DIFFERENCES, b->part[p].changes,
                         l->change_chunk, &row);
        row += (size_t)e->is_atomic;
        b->part[p].out_count = (int)row - b->part[p].out_first;
        copy = write_runs(e, copy, one, RUN_COPY, n, copies, &row);
    }
    if (e->is_atomic && l->first == 0)
        memset(b->host, 0, out_units(e, l->rows) * UNIT);
}

/* ---- launches ---- */

static void release_kernel_events(tile_batch *b)
{
    for (int i = 0; i < b->n_kernel_done; i++)
        tsr_cl_release_event(&b->kernel_done[i]);
    b->n_kernel_done = 0;
}

/* Transfers units from..end-1 to the device. is_beside: in parallel with
 * kernels of earlier launches, which costs an event. */
static cl_int send_input(tile_batch *b, size_t from, size_t end, int is_beside)
{
    const size_t at = from * UNIT, bytes = (end - from) * UNIT;
    if (engine_of(b)->options.transfer != TSR_TRANSFER_COPY)
        return CL_SUCCESS;
    is_beside = is_beside && b->loader != NULL;
    tsr_cl_release_event(&b->loaded);
    const cl_int code = clEnqueueWriteBuffer(
        is_beside ? b->loader : b->queue, b->exchange, CL_FALSE, at, bytes,
        b->host + at, 0, NULL, is_beside ? &b->loaded : NULL);
    return code == CL_SUCCESS && is_beside ? clFlush(b->loader) : code;
}

/* Starts reading units from..end-1. *done out: event of the read. With mapped
 * memory nothing is read, and *done is not set. */
static cl_int enqueue_read(tile_batch *b, size_t from, size_t end,
                           cl_event *done)
{
    const size_t at = from * UNIT, bytes = (end - from) * UNIT;
    if (engine_of(b)->options.transfer != TSR_TRANSFER_COPY)
        return CL_SUCCESS;
    return clEnqueueReadBuffer(b->queue, b->exchange, CL_FALSE, at, bytes,
                               b->host + at, 0, NULL, done);
}

/* After a failure: waits until no work is in flight, and returns the error. */
static tsr_status fail_launch(tile_batch *b, const char *call, cl_int code,
                              tsr_err *err)
{
    tsr_cl_finish(&b->cl);
    tsr_cl_release_event(&b->loaded);
    tsr_cl_release_event(&b->done);
    return tsr_cl_fail(err, b->cl.device, call, code);
}

static cl_int set_arguments(const tile_engine *e, const tile_batch *b,
                            size_t run_at)
{
    const cl_uint at = (cl_uint)run_at, fresh = (cl_uint)b->base.is_fresh;
    const float scale = (float)e->fixed_scale;
    cl_int code = clSetKernelArg(b->kernel, 1, sizeof at, &at);
    code |= clSetKernelArg(b->kernel, 2, sizeof scale, &scale);
    code |= clSetKernelArg(b->kernel, 3, sizeof fresh, &fresh);
    return code;
}

/* If no read follows the kernel, the kernel's event marks the end of the
 * submit. */
static cl_int enqueue_kernel(const tile_engine *e, tile_batch *b,
                             const launch_layout *l, int is_last)
{
    const size_t lanes =
        e->options.variant == TSR_PAGE_TILE_SIMT ? (size_t)e->shape.tile : 1;
    const size_t global[2] = {l->n_run * (size_t)e->split * lanes,
                              (size_t)e->shape.n_group};
    const size_t local[2] = {lanes, 1};
    const int ends = is_last && (e->options.transfer != TSR_TRANSFER_COPY ||
                                 b->out_rows == 0);
    const int timed = e->options.profiling && b->n_kernel_done < MAX_LAUNCHES;
    cl_event event = NULL;
    cl_int code = clEnqueueNDRangeKernel(
        b->queue, b->kernel, 2, NULL, global, local, b->loaded != NULL,
        b->loaded != NULL ? &b->loaded : NULL, ends || timed ? &event : NULL);
    tsr_cl_release_event(&b->loaded);
    if (code != CL_SUCCESS)
        return code;
    if (timed)
        b->kernel_done[b->n_kernel_done++] = event;
    if (ends && timed)
        code = clRetainEvent(event);
    if (ends && code == CL_SUCCESS)
        b->done = event;
    return code;
}

/* Input and kernel of a launch. *call out: the call that failed. */
static cl_int enqueue(const tile_engine *e, tile_batch *b,
                      const launch_layout *l, size_t from, int is_last,
                      const char **call)
{
    cl_int code = send_input(b, from, l->end, l->first > 0);
    *call = "clEnqueueWriteBuffer";
    if (code == CL_SUCCESS) {
        *call = "clSetKernelArg";
        code = set_arguments(e, b, l->run_at);
    }
    if (code == CL_SUCCESS) {
        *call = "clEnqueueNDRangeKernel";
        code = enqueue_kernel(e, b, l, is_last);
    }
    return code;
}

/* Enqueues all proposals that were not launched yet. The last launch of a
 * submit also reads the results. After an error no work is in flight. */
static tsr_status launch(tile_batch *b, int is_last, tsr_err *err)
{
    const tile_engine *e = engine_of(b);
    const launch_layout l = make_layout(e, b);
    const char *call = NULL;
    cl_int code = CL_SUCCESS;
    if (l.first == 0) {
        release_kernel_events(b);
        b->out_rows = l.rows;
    }
    b->n_launched = b->base.n;
    b->sent = b->used = l.end;
    if (l.n_run > 0) {
        write_launch(e, b, &l);
        /* with atomics, results must start at zero, so they are sent too */
        code = enqueue(e, b, &l, l.first == 0 && e->is_atomic ? 0 : l.begin,
                       is_last, &call);
    }
    if (code == CL_SUCCESS && is_last && b->out_rows > 0) {
        call = "clEnqueueReadBuffer";
        code = enqueue_read(b, 0, out_units(e, b->out_rows), &b->done);
    }
    if (code == CL_SUCCESS) {
        call = "clFlush";
        code = clFlush(b->queue);
    }
    return code == CL_SUCCESS ? TSR_OK : fail_launch(b, call, code, err);
}

static tsr_status launch_widest(tile_batch *b, tsr_err *err)
{
    const tile_engine *e = engine_of(b);
    const launch_layout l = widest_layout(e, b);
    const char *call;
    write_widest(b, &l);
    cl_int code = enqueue(e, b, &l, l.begin, 0, &call);
    if (code == CL_SUCCESS) {
        call = "clFinish";
        code = clFinish(b->queue);
    }
    return code == CL_SUCCESS ? TSR_OK : fail_launch(b, call, code, err);
}

/* Waits, and adds the results to the systems' profiles. In a fresh launch the
 * kernel did not subtract old values. */
static tsr_status tile_wait(tsr_batch *base, double *profile, tsr_err *err)
{
    tile_batch *b = (tile_batch *)base;
    const tile_engine *e = engine_of(b);
    const size_t row_size = (size_t)e->shape.row;
    const cl_int code =
        b->done != NULL ? clWaitForEvents(1, &b->done) : CL_SUCCESS;
    tsr_cl_release_event(&b->done);
    if (code != CL_SUCCESS)
        return fail_launch(b, "clWaitForEvents", code, err);
    const void *results = b->host;
    const int64_t *out = results;
    for (int p = 0; p < base->n; p++) {
        const tile_system *s = &e->system[base->system[p]];
        if (base->is_fresh)
            memset(s->proposed, 0, row_size * sizeof *s->proposed);
        else
            memcpy(s->proposed, s->accepted, row_size * sizeof *s->proposed);
        for (int r = 0; r < b->part[p].out_count; r++) {
            const int64_t *row =
                out + (size_t)(b->part[p].out_first + r) * row_size;
            for (size_t k = 0; k < row_size; k++)
                s->proposed[k] += row[k];
        }
        if (profile != NULL)
            convert_profile(e, s->proposed,
                            profile +
                                (size_t)p * tsr_engine_n_profile(&e->base));
    }
    return TSR_OK;
}

/* Waits for launches whose results are no longer needed. */
static void tile_cancel(tsr_batch *base)
{
    tile_batch *b = (tile_batch *)base;
    tsr_cl_finish(&b->cl);
    tsr_cl_release_event(&b->loaded);
}

double tsr_page_tile_device_us(const tsr_batch *base)
{
    const tile_batch *b = (const tile_batch *)base;
    double sum = 0.0;
    if (b->n_kernel_done == MAX_LAUNCHES) /* there may be more launches */
        return (double)NAN;
    for (int i = 0; i < b->n_kernel_done; i++) {
        cl_ulong start = 0, end = 0;
        if (clGetEventProfilingInfo(b->kernel_done[i],
                                    CL_PROFILING_COMMAND_START, sizeof start,
                                    &start, NULL) != CL_SUCCESS ||
            clGetEventProfilingInfo(b->kernel_done[i], CL_PROFILING_COMMAND_END,
                                    sizeof end, &end, NULL) != CL_SUCCESS)
            return (double)NAN;
        sum += 1e-3 * (double)(end - start);
    }
    return b->n_kernel_done > 0 ? sum : (double)NAN;
}

/* ---- buffers ---- */

enum { PROBE_WORDS = 64, PROBE_ROUNDS = 3 };

static const char *transfer_name(tsr_page_tile_transfer transfer)
{
    static const char *const name[] = {"auto", "mapped", "copied"};
    return name[transfer];
}

/* One round of the transfer test, in the order of a step: the host writes at
 * the start of the buffer, a kernel writes its answer at the end, the host
 * reads. The kernel accesses no other memory, so the test is safe even if the
 * device sees wrong data. */
static cl_int probe_round(tile_batch *b, cl_kernel kernel, size_t units,
                          uint32_t seed, int *agree)
{
    const size_t words = PROBE_WORDS, one = 1, per = UNIT / sizeof seed;
    const size_t out_at = units - words / per;
    cl_uint argument[3] = {0, (cl_uint)(out_at * per), seed};
    cl_event done = NULL, kernel_done = NULL;
    void *in = b->host;
    uint32_t *word = in;
    for (size_t i = 0; i < words; i++) {
        word[i] = (uint32_t)i * 7919 + seed * 31;
        word[out_at * per + i] = 0;
    }
    cl_int code = send_input(b, 0, units, 0);
    code |= clSetKernelArg(kernel, 0, sizeof b->exchange, &b->exchange);
    for (cl_uint i = 0; i < 3; i++)
        code |= clSetKernelArg(kernel, 1 + i, sizeof argument[i], &argument[i]);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(b->queue, kernel, 1, NULL, &words, &one,
                                      0, NULL, &kernel_done);
    if (code == CL_SUCCESS)
        code = enqueue_read(b, out_at, units, &done);
    if (code == CL_SUCCESS)
        code = clWaitForEvents(1, done != NULL ? &done : &kernel_done);
    tsr_cl_release_event(&done);
    tsr_cl_release_event(&kernel_done);
    if (code != CL_SUCCESS)
        return code;
    for (size_t i = 0; i < words; i++)
        *agree &= word[out_at * per + i] ==
                  ((uint32_t)i * 7919 + seed * 31) * 3 + seed;
    return CL_SUCCESS;
}

static tsr_status probe(tile_batch *b, tsr_err *err)
{
    const tile_engine *e = engine_of(b);
    int agree = 1;
    cl_int code;
    cl_kernel kernel =
        clCreateKernel(e->program.program, "exchange_probe", &code);
    if (kernel == NULL)
        return tsr_cl_fail(err, e->cl.device, "clCreateKernel", code);
    for (uint32_t i = 1; i <= PROBE_ROUNDS && code == CL_SUCCESS; i++)
        code = probe_round(b, kernel, b->size, 0x9e3779b9u * i, &agree);
    clFinish(b->queue);
    clReleaseKernel(kernel);
    if (code != CL_SUCCESS)
        return fail_launch(b, "trying the exchange buffer", code, err);
    if (!agree)
        return tsr_fail(err, TSR_E_DEVICE,
                        "data written by the host do not reach %s, or its "
                        "results do not reach the host, with %s transfer; "
                        "leave the transfer to the engine or use 'copy'",
                        e->cl.device->info.name,
                        transfer_name(e->options.transfer));
    return TSR_OK;
}

/* Sets the arguments that no launch changes; set_arguments sets the others. */
static cl_int set_constant_arguments(const tile_engine *e, const tile_batch *b)
{
    const cl_uint blocks = (cl_uint)e->shape.n_block;
    const cl_uint groups = (cl_uint)e->shape.n_group;
    const float dq = (float)e->base.dq_inv_ang;
    cl_kernel k = b->kernel;
    cl_int code = clSetKernelArg(k, 0, sizeof b->exchange, &b->exchange);
    code |= clSetKernelArg(k, 4, sizeof e->position, &e->position);
    code |= clSetKernelArg(k, 5, sizeof e->cache, &e->cache);
    code |= clSetKernelArg(k, 6, sizeof e->form_factor, &e->form_factor);
    code |= clSetKernelArg(k, 7, sizeof dq, &dq);
    code |= clSetKernelArg(k, 8, sizeof blocks, &blocks);
    code |= clSetKernelArg(k, 9, sizeof groups, &groups);
    return code;
}

/* Creates the exchange buffer, and tests that host and device see the same
 * contents (TSR_E_DEVICE). */
static tsr_status make_exchange(tile_batch *b, tsr_err *err)
{
    const tile_engine *e = engine_of(b);
    const size_t bytes = b->size * UNIT;
    const int copies = e->options.transfer == TSR_TRANSFER_COPY;
    if (copies)
        b->exchange = tsr_cl_buffer(&b->cl, CL_MEM_READ_WRITE, bytes, NULL);
    b->host =
        tsr_cl_pinned(&b->cl, b->queue, bytes, copies ? NULL : &b->exchange);
    TSR_TRY(tsr_cl_check(&b->cl, err));
    TSR_TRY(tsr_cl_status(err, e->cl.device, "clSetKernelArg",
                          set_constant_arguments(e, b)));
    return probe(b, err);
}

/* ---- batches ---- */

enum {
    FIRST_LAUNCH = 16
}; /* the first launch has 1 / 16 of the tiles of a
      full launch */

/* Writes a proposal, and launches the waiting proposals if they have enough
 * tiles. The first launches are small, so that the device starts early. */
static tsr_status tile_propose(tsr_batch *base,
                               const tsr_body_proposal *proposal, tsr_err *err)
{
    tile_batch *b = (tile_batch *)base;
    const tile_engine *e = engine_of(b);
    const size_t most = (size_t)e->options.tiles_a_launch;
    if (base->n == 1) {
        begin_launches(e, b, base->n_submitted);
        b->tiles = 0;
        b->launch_at = ceil_div(most, FIRST_LAUNCH);
    }
    TSR_TRY(propose_system(e, proposal, base->is_fresh, err));
    add_blocks(e, b);
    b->tiles += b->part[base->n - 1].tiles + b->part[base->n - 1].changes / 4;
    if (!e->is_pipelined || b->tiles < b->launch_at ||
        base->n == base->n_submitted)
        return TSR_OK;
    b->tiles = 0;
    b->launch_at = 2 * b->launch_at < most ? 2 * b->launch_at : most;
    return launch(b, 0, err);
}

static tsr_status tile_start(tsr_batch *base, const tsr_body_proposal *proposal,
                             tsr_err *err)
{
    (void)proposal;
    return launch((tile_batch *)base, 1, err);
}

static void tile_batch_close(tsr_batch *base)
{
    tile_batch *b = (tile_batch *)base;
    tsr_cl_clear(&b->cl);
    tsr_cl_release_event(&b->loaded);
    tsr_cl_release_event(&b->done);
    release_kernel_events(b);
}

static tsr_status tile_batch_open(tsr_batch *base, tsr_err *err)
{
    tile_batch *b = (tile_batch *)base;
    const tile_engine *e = engine_of(b);
    const tsr_device_info *info = &e->cl.device->info;
    const double mib = 1.0 / 1048576.0;
    b->cl.device = e->cl.device;
    b->size = exchange_size(e, base->max_proposal);
    tsr_pool_array(&base->pool, b->part, base->max_proposal);
    TSR_TRY(tsr_pool_check(&base->pool, err));
    if (b->size * UNIT > info->max_alloc_bytes)
        return tsr_fail(err, TSR_E_DEVICE,
                        "%s: a batch of %d proposals needs %.0f MiB, a buffer "
                        "holds at most %.0f MiB; use smaller batches",
                        info->name, base->max_proposal,
                        (double)b->size * UNIT * mib,
                        (double)info->max_alloc_bytes * mib);
    b->queue = tsr_cl_queue(
        &b->cl, e->options.profiling ? CL_QUEUE_PROFILING_ENABLE : 0);
    if (e->is_pipelined)
        b->loader = tsr_cl_queue(&b->cl, 0);
    b->kernel = tsr_cl_kernel(&b->cl, &e->program, "page_tile");
    return make_exchange(b, err);
}

/* ---- the engine ---- */

static void set_shape(tile_engine *e, const tsr_engine_spec *spec,
                      const tsr_device *device)
{
    const tsr_device_info *info = &device->info;
    e->cl.device = device;
    const int n_comp = tsr_engine_n_comp(spec);
    int max_pages = e->options.max_pages;
    if (e->options.variant == TSR_PAGE_TILE_SIMT &&
        max_pages * n_comp > MAX_SUMS)
        max_pages = MAX_SUMS / n_comp;
    e->n_copy = spec->n_copy > 1 ? spec->n_copy : 1;
    e->shape = tsr_tile_shape_make(spec->n_body / e->n_copy, spec->n_q, n_comp,
                                   e->options.tile, max_pages);
    if (e->n_copy > 1)
        repeat_shape(&e->shape, spec->n_unique);
    e->is_atomic = e->options.variant == TSR_PAGE_TILE_SIMT &&
                   info->has_int64_atomics && !e->options.no_atomics;
    e->split = e->is_atomic ? e->options.split : 1;
}

/* Number of bodies with padding, and (factor_count) of their form factor
 * values. */
static size_t padded_bodies(const tile_engine *e)
{
    return (size_t)e->shape.n_block * (size_t)e->shape.tile;
}

static size_t factor_count(const tile_engine *e)
{
    return padded_bodies(e) * (size_t)e->shape.n_comp * (size_t)e->shape.stride;
}

/* Size of tile_local in kernels/page_tile_simt.cl. */
static uint64_t local_bytes(const tile_engine *e)
{
    uint64_t tile = (uint64_t)e->shape.tile, pages = (uint64_t)e->shape.pages;
    uint64_t reals = 4 * tile + (uint64_t)e->shape.n_comp * tile * pages;
    return reals * sizeof(float) + tile / 2 * sizeof(uint32_t);
}

/* Device memory of a system, and (shared_bytes) of the engine as a whole. */
static uint64_t system_bytes(const tile_engine *e)
{
    const uint64_t block = 3 * (uint64_t)e->shape.tile * sizeof(float);
    const uint64_t row = (uint64_t)e->shape.row * sizeof(float);
    return 2 * (uint64_t)e->shape.n_block * block +
           2 * (uint64_t)e->shape.n_tile * row;
}

static uint64_t shared_bytes(const tile_engine *e)
{
    return factor_count(e) * sizeof(float);
}

static uint64_t memory_limit(const tile_engine *e)
{
    uint64_t all = e->cl.device->info.global_bytes,
             requested = e->options.memory_limit;
    return requested > 0 && requested < all ? requested : all;
}

/* Number of systems that fit. All tiles are in one buffer. */
static uint64_t max_systems(const tile_engine *e)
{
    const uint64_t tiles = 2 * (uint64_t)e->shape.n_tile;
    const uint64_t most = memory_limit(e), shared = shared_bytes(e);
    uint64_t n = (most > shared ? most - shared : 0) / system_bytes(e);
    const uint64_t in_buffer = e->cl.device->info.max_alloc_bytes /
                               (tiles * (uint64_t)e->shape.row * sizeof(float));
    n = n < in_buffer ? n : in_buffer;
    return n < UINT32_MAX / tiles ? n : UINT32_MAX / tiles;
}

static int own_bodies(const tsr_engine_spec *spec)
{
    return spec->n_body / (spec->n_copy > 1 ? spec->n_copy : 1);
}

double tsr_page_tile_capacity(const tsr_engine_spec *spec,
                              const tsr_device *device)
{
    tile_engine e = {0};
    if (tsr_engine_spec_check(spec, NULL) != TSR_OK ||
        tsr_page_tile_resolve(&device->info, own_bodies(spec), NULL, &e.options,
                              NULL) != TSR_OK)
        return 0.0;
    set_shape(&e, spec, device);
    return (double)max_systems(&e);
}

static tsr_status check_memory(const tile_engine *e, tsr_err *err)
{
    const double mib = 1.0 / 1048576.0;
    const tsr_device_info *info = &e->cl.device->info;
    if (e->shape.n_block > MAX_BLOCKS)
        return tsr_fail(err, TSR_E_DEVICE,
                        "page-tile engine: %d bodies make %d blocks of %d; at "
                        "most %d are possible",
                        e->shape.n_body, e->shape.n_block, e->shape.tile,
                        MAX_BLOCKS);
    if ((uint64_t)e->base.n_system > max_systems(e))
        return tsr_fail(
            err, TSR_E_DEVICE,
            "%s: %d systems of %d bodies and %d q do not fit: each needs %.2f "
            "MiB of %.0f MiB, and their tiles share one buffer of at most %.0f "
            "MiB; %llu systems fit. Use fewer chains, states or temperatures",
            info->name, e->base.n_system, e->shape.n_body, e->shape.n_q,
            (double)system_bytes(e) * mib, (double)memory_limit(e) * mib,
            (double)info->max_alloc_bytes * mib,
            (unsigned long long)max_systems(e));
    if (e->options.variant == TSR_PAGE_TILE_SIMT) {
        uint64_t local = local_bytes(e);
        if (local > info->local_bytes || e->shape.tile > info->max_work_group)
            return tsr_fail(
                err, TSR_E_DEVICE,
                "%s: a tile of %d bodies and %d pages needs %.1f KiB of local "
                "memory and %d work-items; the device has %.1f KiB and %d",
                info->name, e->shape.tile, e->shape.pages,
                (double)local / 1024.0, e->shape.tile,
                (double)info->local_bytes / 1024.0, info->max_work_group);
    }
    return TSR_OK;
}

/* sum_i F_i and sum_i |F_i| of a component at page k. */
static double amplitude_sum(const tsr_engine_spec *spec, int comp, int k,
                            double *size)
{
    double sum = 0.0;
    *size = 0.0;
    for (int i = 0; i < spec->n_body; i++) {
        double f = *tsr_engine_factor(spec, comp, spec->type[i], k);
        sum += f;
        *size += fabs(f);
    }
    return sum;
}

static double self_sum(const tsr_engine_spec *spec, int a, int b, int k)
{
    double sum = 0.0;
    for (int i = 0; i < spec->n_body; i++)
        sum += *tsr_engine_factor(spec, a, spec->type[i], k) *
               *tsr_engine_factor(spec, b, spec->type[i], k);
    return sum;
}

/* Computes the constant part of the profile and the scale of the fixed-point
 * sums. The absolute values of a system's tiles sum to at most (sum |F^a|) (sum
 * |F^b|), which is scaled to at most 2^60. */
static void set_constants(tile_engine *e, const tsr_engine_spec *spec)
{
    double bound = 0.0;
    int exponent = 0, n_comp = e->shape.n_comp;
    double *constant = e->constant;
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, constant += spec->n_q)
            for (int k = 0; k < spec->n_q; k++) {
                double size_a, size_b;
                double sum_a = amplitude_sum(spec, a, k, &size_a);
                double sum_b = amplitude_sum(spec, b, k, &size_b);
                constant[k] = k == 0 ? sum_a * sum_b : self_sum(spec, a, b, k);
                bound = fmax(bound, size_a * size_b);
            }
    if (bound > 0.0)
        frexp(bound, &exponent);
    exponent = exponent < -60 ? -60 : exponent;
    e->fixed_scale = ldexp(1.0, 60 - exponent);
}

/* Index of a form factor in the kernel's array; `body` counts padding. SIMD:
 * the bodies of a block are contiguous for each page. SIMT: the pages of a body
 * are contiguous, and components follow one another. */
static size_t factor_index(const tile_engine *e, int comp, int body, int page)
{
    const tsr_tile_shape *s = &e->shape;
    const size_t tile = (size_t)s->tile, pages = (size_t)s->pages;
    const size_t n_group = (size_t)s->n_group, n_comp = (size_t)s->n_comp;
    const size_t c = (size_t)comp, block = (size_t)body / tile,
                 lane = (size_t)body % tile;
    const size_t group = (size_t)page / pages, k = (size_t)page % pages;
    if (e->options.variant == TSR_PAGE_TILE_SIMD)
        return (((block * n_group + group) * n_comp + c) * pages + k) * tile +
               lane;
    return c * (factor_count(e) / n_comp) +
           ((block * n_group + group) * tile + lane) * pages + k;
}

/* Stores F_i(q_k) (k dq)^(-1/2) for every body, times its share of the pairs
 * with copy 0. */
static void pack_form_factors(const tile_engine *e, const tsr_engine_spec *spec,
                              float *packed)
{
    for (int c = 0; c < e->shape.n_comp; c++)
        for (int i = 0; i < e->shape.n_body; i++)
            for (int k = 1; k < e->shape.n_q; k++) {
                const int copy = i / e->shape.n_own;
                const int at = i % e->shape.n_own +
                               copy * e->shape.own_blocks * e->shape.tile;
                double value = tsr_engine_share(spec, i) *
                               *tsr_engine_factor(spec, c, spec->type[i], k) /
                               sqrt(k * e->base.dq_inv_ang);
                packed[factor_index(e, c, at, k - 1)] = (float)value;
            }
}

static tsr_status make_buffers(tile_engine *e, const tsr_engine_spec *spec,
                               tsr_err *err)
{
    const size_t n = (size_t)e->base.n_system;
    const size_t cache =
        n * 2 * (size_t)e->shape.n_tile * (size_t)e->shape.row * sizeof(float);
    float *packed = calloc(factor_count(e), sizeof *packed);
    TSR_TRY(tsr_allocated(packed, err));
    pack_form_factors(e, spec, packed);
    e->form_factor =
        tsr_cl_buffer(&e->cl, CL_MEM_READ_ONLY, shared_bytes(e), packed);
    free(packed);
    e->position = tsr_cl_buffer(&e->cl, CL_MEM_READ_WRITE,
                                n * 6 * padded_bodies(e) * sizeof(float), NULL);
    e->cache = tsr_cl_buffer(&e->cl, CL_MEM_READ_WRITE, cache, NULL);
    return tsr_cl_check(&e->cl, err);
}

static int vector_lanes(const tile_engine *e)
{
    int width = e->cl.device->info.float_width;
    if (e->options.variant == TSR_PAGE_TILE_SIMT)
        return 1;
    return width >= 16 ? 16 : width >= 8 ? 8 : 4;
}

static tsr_status build(tile_engine *e, tsr_err *err)
{
    double dq = e->base.dq_inv_ang;
    int is_simd = e->options.variant == TSR_PAGE_TILE_SIMD;
    int is_short = tsr_is_short_range(dq, e->base.d_bound_ang);
    const char *source[] = {"page_tile.cl", is_simd ? "page_tile_simd.cl"
                                                    : "page_tile_simt.cl"};
    /* on a CPU they are kernel arguments; kernels/page_tile.cl has the
     * reason */
    const int groups = is_simd && e->shape.n_group > 1 ? 0 : e->shape.n_group;
    const int blocks = is_simd ? 0 : e->shape.n_block;
    /* the only optimisation that may change bits: fused multiply-adds */
    snprintf(e->build_options, sizeof e->build_options,
             "-cl-std=CL1.2 -cl-mad-enable -DTILE=%d -DPAGES=%d -DGROUPS=%d "
             "-DCOMPS=%d -DBLOCKS=%d -DLANES=%d -DSHORT_RANGE=%d "
             "-DATOMIC_OUT=%d -DSPLIT=%d",
             e->shape.tile, e->shape.pages, groups, e->shape.n_comp, blocks,
             vector_lanes(e), is_short, e->is_atomic, e->split);
    return tsr_program_build(e->cl.device, 2, source, e->build_options,
                             &e->program, err);
}

/* Tests the transfer with a small batch. A method that was not requested by
 * name is replaced by copies if it fails. */
static tsr_status choose_transfer(tile_engine *e, tsr_err *err)
{
    const int is_requested = e->options.transfer != TSR_TRANSFER_AUTO;
    tsr_batch *batch = NULL;
    if (!is_requested)
        e->options.transfer = e->cl.device->info.is_unified
                                  ? TSR_TRANSFER_MAPPED
                                  : TSR_TRANSFER_COPY;
    tsr_status status = tsr_batch_new(&e->base, 1, &batch, err);
    if (status == TSR_E_DEVICE && !is_requested &&
        e->options.transfer != TSR_TRANSFER_COPY) {
        e->options.transfer = TSR_TRANSFER_COPY;
        status = tsr_batch_new(&e->base, 1, &batch, err);
    }
    tsr_batch_free(batch);
    e->is_pipelined = e->is_atomic && e->options.transfer == TSR_TRANSFER_COPY;
    return status;
}

/* PoCL (3 to 5) recompiles a kernel for a wider grid than before. If other
 * kernels run meanwhile, PoCL counts the references to the two kernels wrongly
 * and aborts. So the first launch has the widest possible grid: all systems in
 * one batch, without work. A batch that does not fit into memory is never
 * requested later, and needs no such launch. */
static tsr_status launch_widest_first(tile_engine *e, tsr_err *err)
{
    tsr_batch *batch = NULL;
    if (e->cl.device->info.type != TSR_DEVICE_CPU ||
        tsr_batch_new(&e->base, e->base.n_system, &batch, NULL) != TSR_OK)
        return TSR_OK;
    const tsr_status status = launch_widest((tile_batch *)batch, err);
    tsr_batch_free(batch);
    return status;
}

static void describe(tile_engine *e)
{
    char *to = e->base.description;
    const int n = snprintf(
        to, sizeof e->base.description,
        "%s, single precision, %s transfer, differences up to %d bodies; ",
        e->base.type->name, transfer_name(e->options.transfer),
        e->options.difference > 0 ? e->options.difference : 0);
    tsr_program_describe(&e->program, e->cl.device, e->build_options, to + n,
                         sizeof e->base.description - (size_t)n);
}

static void tile_close(tsr_engine *engine)
{
    tile_engine *e = (tile_engine *)engine;
    tsr_cl_clear(&e->cl);
    tsr_program_clear(&e->program);
}

static void tile_profile(const tsr_engine *engine, int system, double *profile)
{
    const tile_engine *e = (const tile_engine *)engine;
    convert_profile(e, e->system[system].accepted, profile);
}

#define PAGE_TILE_FUNCTIONS                                        \
    .size = sizeof(tile_engine), .batch_size = sizeof(tile_batch), \
    .close = tile_close, .batch_open = tile_batch_open,            \
    .batch_close = tile_batch_close, .propose = tile_propose,      \
    .start = tile_start, .cancel = tile_cancel, .wait = tile_wait, \
    .accept = tile_accept, .profile = tile_profile

static const tsr_engine_type simt_type = {
    .name = "page-tile SIMT",
    .doc = "page-tile Debye sum, one work-item per row (Antonov et al. 2013)",
    PAGE_TILE_FUNCTIONS};

static const tsr_engine_type simd_type = {
    .name = "page-tile SIMD",
    .doc = "page-tile Debye sum, vectors of bodies (Antonov et al. 2013)",
    PAGE_TILE_FUNCTIONS};

static tsr_status build_engine(tile_engine *e, const tsr_engine_spec *spec,
                               tsr_err *err)
{
    tsr_pool *pool = &e->base.pool;
    e->base.system_bytes = (double)system_bytes(e);
    e->base.shared_bytes = (double)shared_bytes(e);
    e->base.max_systems = (double)max_systems(e);
    TSR_TRY(check_memory(e, err));
    tsr_pool_array(pool, e->constant, tsr_engine_n_profile(&e->base));
    tsr_pool_array(pool, e->system, spec->n_system);
    for (int i = 0; i < spec->n_system && !pool->failed; i++)
        make_system(e, &e->system[i]);
    TSR_TRY(tsr_pool_check(pool, err));
    set_constants(e, spec);
    /* a tile has two blocks, each with up to max_age differences */
    tsr_engine_rounding(spec, 0x1p-24, e->shape.tile,
                        1 + 2 * e->options.max_age, e->base.rounding);
    TSR_TRY(build(e, err));
    TSR_TRY(make_buffers(e, spec, err));
    TSR_TRY(choose_transfer(e, err));
    TSR_TRY(launch_widest_first(e, err));
    describe(e);
    return TSR_OK;
}

tsr_status tsr_engine_page_tile_new(const tsr_engine_spec *spec,
                                    const tsr_device *device,
                                    const tsr_page_tile_options *options,
                                    tsr_engine **out, tsr_err *err)
{
    tsr_page_tile_options o;
    *out = NULL;
    TSR_TRY(tsr_engine_spec_check(spec, err));
    TSR_TRY(tsr_page_tile_resolve(&device->info, own_bodies(spec), options, &o,
                                  err));
    TSR_TRY(tsr_engine_open(o.variant == TSR_PAGE_TILE_SIMD ? &simd_type
                                                            : &simt_type,
                            spec, out, err));
    tile_engine *e = (tile_engine *)*out;
    e->options = o;
    set_shape(e, spec, device);
    return tsr_engine_finish(out, build_engine(e, spec, err));
}

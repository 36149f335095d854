/* Bodies stand in blocks, pairs of blocks are tiles. A move makes all tiles of
 * its blocks dirty, except those between blocks that one rigid group carries
 * along whole: their distances do not change. */
#include "gpu/plan.h"

#include <string.h>

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
    s.n_pair = n_comp * (n_comp + 1) / 2;
    s.row = s.n_pair * s.stride;
    return s;
}

void tsr_tile_dirt_make(tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                        tsr_pool *pool)
{
    const size_t n = (size_t)shape->n_block, words = (n + 31) / 32;
    *dirt = (tsr_tile_dirt){.words = (int)words,
                            .moved_words = (shape->tile + 31) / 32};
    tsr_pool_array(pool, dirt->group, n);
    tsr_pool_array(pool, dirt->covered, n);
    tsr_pool_array(pool, dirt->touched, n);
    tsr_pool_array(pool, dirt->name, n + 1);
    tsr_pool_array(pool, dirt->mask, (n + 2) * words);
    tsr_pool_array(pool, dirt->moved, n * (size_t)dirt->moved_words);
    for (size_t b = 0; b < n && !pool->failed; b++)
        dirt->mask[(n + 1) * words + b / 32] |= UINT32_C(1) << b % 32;
}

/* The number here of a rigid group. Beyond what a number may hold the blocks
 * count as mixed, which is right too: their tiles are computed. */
static int number_group(tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                        int name)
{
    if (name <= 0)
        return TSR_BLOCK_MIXED;
    for (int g = dirt->n_group; g > 0; g--)
        if (dirt->name[g] == name)
            return g;
    if (dirt->n_group == shape->n_block || dirt->n_group == TSR_MAX_GROUPS)
        return TSR_BLOCK_MIXED;
    dirt->name[++dirt->n_group] = name;
    return dirt->n_group;
}

/* Bits from..to-1 of a block's bodies. */
static void mark_moved(tsr_tile_dirt *dirt, int block, int from, int to)
{
    uint32_t *word = dirt->moved + block * dirt->moved_words;
    for (int w = from / 32; w * 32 < to; w++) {
        int low = from > w * 32 ? from - w * 32 : 0;
        int high = to < w * 32 + 32 ? to - w * 32 : 32;
        word[w] |= UINT32_MAX << low & UINT32_MAX >> (32 - high);
    }
}

/* From block `near` on, where the range before ended; returns its own last. */
static int mark_range(tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                      const tsr_body_range *range, int near)
{
    int end = range->first + range->count, b = near;
    int group = number_group(dirt, shape, range->group);
    if (range->first >= (b + 1) * shape->tile)
        b = range->first / shape->tile;
    for (; b * shape->tile < end; b++) {
        int from = b * shape->tile, to = from + shape->tile;
        from = from > range->first ? from : range->first;
        to = to < end ? to : end;
        if (dirt->group[b] == TSR_BLOCK_CLEAN) {
            dirt->touched[dirt->n_touched++] = b;
            dirt->group[b] = group;
            dirt->covered[b] = to - from;
            memset(dirt->moved + b * dirt->moved_words, 0,
                   (size_t)dirt->moved_words * sizeof *dirt->moved);
        } else {
            dirt->covered[b] += to - from;
            if (dirt->group[b] != group)
                dirt->group[b] = TSR_BLOCK_MIXED;
        }
        mark_moved(dirt, b, from - b * shape->tile, to - b * shape->tile);
    }
    return b - 1;
}

static void set_bit(uint32_t *mask, int block)
{
    unsigned b = (unsigned)block;
    mask[b / 32] |= UINT32_C(1) << b % 32;
}

void tsr_tile_dirt_mark(tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                        int n_range, const tsr_body_range *range)
{
    const tsr_body_range all = {.count = shape->n_body};
    if (n_range < 0) {
        n_range = 1;
        range = &all;
    }
    for (int t = 0; t < dirt->n_touched; t++)
        dirt->group[dirt->touched[t]] = TSR_BLOCK_CLEAN;
    dirt->n_touched = dirt->n_group = 0;
    for (int r = 0, b = 0; r < n_range; r++)
        b = mark_range(dirt, shape, &range[r], b);
    memset(dirt->mask, 0,
           (size_t)(dirt->n_group + 1) * (size_t)dirt->words *
               sizeof *dirt->mask);
    for (int t = 0; t < dirt->n_touched; t++) {
        int b = dirt->touched[t];
        /* A block with a body that stayed is not wholly in a group. */
        if (dirt->covered[b] < tsr_tile_block_size(shape, b))
            dirt->group[b] = TSR_BLOCK_MIXED;
        set_bit(dirt->mask, b);
        if (dirt->group[b] > 0)
            set_bit(dirt->mask + dirt->group[b] * dirt->words, b);
    }
}

int tsr_tile_dirt_is_none(const tsr_tile_dirt *dirt,
                          const tsr_tile_shape *shape)
{
    if (dirt->n_group != 1 || dirt->n_touched < shape->n_block)
        return dirt->n_touched == 0;
    for (int b = 0; b < shape->n_block; b++)
        if (dirt->group[b] == TSR_BLOCK_MIXED)
            return 0;
    return 1;
}

void tsr_tile_dirt_flip(const tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                        uint32_t *select)
{
    const int words = dirt->words;
    if (dirt->n_touched == 0)
        return;
    /* Partners of a clean block are touched ones. */
    int from = dirt->touched[0] / 32;
    int to = dirt->touched[dirt->n_touched - 1] / 32;
    for (int b = 0; b < shape->n_block; b++, select += words)
        if (dirt->group[b] == TSR_BLOCK_CLEAN)
            for (int w = from; w <= to; w++)
                select[w] ^= dirt->mask[w];
        else
            for (int w = 0; w < words; w++)
                select[w] ^= tsr_tile_dirt_bits(dirt, shape, b, w);
}

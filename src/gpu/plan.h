/* Blocks, tiles and pages, and which tiles a proposal makes dirty (DESIGN 4).
 * Host only; knows nothing of devices. */
#ifndef TSR_GPU_PLAN_H
#define TSR_GPU_PLAN_H

#include "engine/engine.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int n_body, n_q;
    int n_comp, n_pair; /* components, and pairs of them */
    int tile;           /* bodies a block */
    int n_block;        /* the last one is padded */
    int n_tile;         /* pairs of blocks, lower triangle with the diagonal */
    int n_group;        /* groups of pages; the page q = 0 belongs to none */
    int pages;          /* a group, a multiple of 4 */
    int stride;         /* n_group * pages */
    int row;            /* n_pair * stride: values of a tile */
} tsr_tile_shape;

/* max_pages: at most so many pages a group. */
tsr_tile_shape tsr_tile_shape_make(int n_body, int n_q, int n_comp, int tile,
                                   int max_pages);

/* Bodies in a block that are not padding. */
static inline int tsr_tile_block_size(const tsr_tile_shape *shape, int block)
{
    int left = shape->n_body - block * shape->tile;
    return left < shape->tile ? left : shape->tile;
}

enum { TSR_BLOCK_CLEAN = 0, TSR_BLOCK_MIXED = -1, TSR_MAX_GROUPS = 0x7fff };

/* What a proposal touches. Rigid groups are numbered anew, 1..n_group. Masks
 * hold one bit a block in `words` words. */
typedef struct {
    int *group;      /* [n_block] CLEAN: untouched; g > 0: wholly in rigid group
                        g; MIXED: else */
    int *covered;    /* [n_block] of the touched blocks: bodies that moved */
    int *touched;    /* [n_block] the touched blocks, ascending */
    int *name;       /* [n_block + 1] the proposal's number of a group */
    uint32_t *mask;  /* [n_block + 2][words] 0: touched; g: wholly in group g;
                        the last: every block */
    uint32_t *moved; /* [n_block][moved_words] of the touched blocks: bodies
                        that moved, a bit each */
    int words, moved_words, n_touched, n_group;
} tsr_tile_dirt;

void tsr_tile_dirt_make(tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                        tsr_pool *pool);

/* Marks what the ranges touch; n_range -1: every body moved, each on its own.
 * Cost: O(ranges + touched blocks). */
void tsr_tile_dirt_mark(tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                        int n_range, const tsr_body_range *range);

/* The dirty tiles of a block, those where a distance may have changed: the bits
 * of its partners 32 word to 32 word + 31. */
static inline uint32_t tsr_tile_dirt_bits(const tsr_tile_dirt *dirt,
                                          const tsr_tile_shape *shape,
                                          int block, int word)
{
    int group = dirt->group[block];
    uint32_t all = dirt->mask[(shape->n_block + 1) * dirt->words + word];
    if (group == TSR_BLOCK_MIXED)
        return all;
    uint32_t bits = dirt->mask[group * dirt->words + word];
    return group == TSR_BLOCK_CLEAN ? bits : all & ~bits;
}

/* Whether none is: nothing moved, or everything as one. Cost: O(blocks). */
int tsr_tile_dirt_is_none(const tsr_tile_dirt *dirt,
                          const tsr_tile_shape *shape);

/* Which of a tile's two slots is the accepted one, a bit each: select
 * [n_block][words], the same bit for (row, column) and (column, row). Turns
 * round those of the dirty tiles. Cost: O(touched words * blocks). */
void tsr_tile_dirt_flip(const tsr_tile_dirt *dirt, const tsr_tile_shape *shape,
                        uint32_t *select);

#endif

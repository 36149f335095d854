/* Which bodies come near which, sixteen at a time.
 *
 * Runs of sixteen bodies stand in blocks with a sphere around each, sixteen
 * spheres in a shelf with a sphere around them: a block asks shelf, sphere and
 * body, and what is far falls out early. Coordinates stand lane by lane, so
 * that one instruction looks at two to eight bodies. The distances are those of
 * tsr_vec3_distance2, to the bit, on every processor. */
#ifndef TSR_PRIOR_NEAR_H
#define TSR_PRIOR_NEAR_H

#include "core/pool.h"

#include <stdint.h>

enum { TSR_LANES = 16 };

typedef double tsr_eight __attribute__((vector_size(64), aligned(64)));

typedef union {
    tsr_eight half[2];
    double at[TSR_LANES];
} tsr_lanes;

/* Bodies first..first+15, Angstrom; lanes without one are infinitely far. */
typedef struct {
    tsr_lanes x[3];
    double centre[3], radius; /* all lie within */
    int first;
} tsr_near_block;

typedef struct {
    tsr_lanes x[3], radius;
} tsr_near_shelf;

typedef struct {
    int n_block, n_shelf;
    tsr_near_block *block; /* [n_block] block k begins with body 16 k */
    tsr_near_shelf *shelf; /* [n_shelf] the spheres of 16 blocks */
    tsr_near_shelf *top;   /* [(n_shelf + 15) / 16] those of 16 shelves */
} tsr_near_tree;

/* a: lane of the block that asks; b: body. */
typedef struct {
    int a, b;
} tsr_near_pair;

/* A block of bodies first..end-1 of xyz, which share one block of the tree;
 * they keep their lanes. */
void tsr_near_place(tsr_near_block *block, const double (*xyz)[3], int first,
                    int end);

/* Pairs of `own` and the bodies of the tree whose bit in still[block] is set,
 * at a distance below `reach`; a few may be missing that are within rounding of
 * it. pair has room for 16 of each body. Returns how many. */
int tsr_near_find(const tsr_near_tree *tree, const tsr_near_block *own,
                  const uint16_t *still, double reach, tsr_near_pair *pair);

/* The same of two blocks; pair: room for 256. */
int tsr_near_between(const tsr_near_block *own, const tsr_near_block *other,
                     double reach, tsr_near_pair *pair);

/* n elements with lanes, which stand where instructions want them. NULL: out of
 * memory, as tsr_pool_new. */
void *tsr_lanes_new(tsr_pool *pool, int n, size_t size);

/* Of n bodies. NULL: out of memory. */
tsr_near_tree *tsr_near_tree_new(tsr_pool *pool, int n, const double (*xyz)[3]);

/* Blocks first..last have changed: so do the spheres around them. */
void tsr_near_tree_renew(tsr_near_tree *tree, int first, int last);

#endif

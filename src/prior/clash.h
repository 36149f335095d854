/* Excluded volume between bodies, updated move by move.
 *
 * Two data structures make the cost of a step proportional to the number of
 * moved bodies. A tree of bounding spheres finds the bodies within the contact
 * distance of moved bodies. A list of all pairs in contact gives, without a
 * search, the energy that the moved bodies had before the step. Energies are
 * integers (tsr_to_fixed), so their sum does not depend on the order of the
 * terms. */
#ifndef TSR_PRIOR_CLASH_H
#define TSR_PRIOR_CLASH_H

#include "core/pool.h"
#include "core/vec3.h"
#include "molecule/topology.h"

#include <math.h>
#include <stdint.h>

/* ---- neighbour search ----
 *
 * Finds bodies within a distance, sixteen at a time. Sixteen consecutive bodies
 * are a block with a bounding sphere, and sixteen blocks are a group with a
 * bounding sphere. A search tests groups, then blocks, then bodies. The
 * coordinates of sixteen elements are stored contiguously, in one array per
 * dimension (the lanes of a vector), so that one instruction compares two to
 * eight of them. Distances agree with tsr_vec3_distance2 to the bit on every
 * processor. */

enum { TSR_LANES = 16 };

typedef double tsr_eight __attribute__((vector_size(64), aligned(64)));

/* Sixteen numbers, as vectors or one by one. */
typedef union {
    tsr_eight half[2];
    double at[TSR_LANES];
} tsr_lanes;

/* Bodies first..first+15, Angstrom. A lane without a body is at infinity. */
typedef struct {
    tsr_lanes x[3];
    double centre[3], radius; /* a sphere that contains all bodies */
    int first;
} tsr_body_block;

/* 16 spheres: centres and radii, Angstrom. A lane without a sphere is at
 * infinity. */
typedef struct {
    tsr_lanes x[3], radius;
} tsr_block_group;

/* Blocks and groups of all bodies. */
typedef struct {
    int n_block, n_group;
    tsr_body_block *block;  /* [n_block] block k begins with body 16 k */
    tsr_block_group *group; /* [n_group] the bounding spheres of 16 blocks */
    tsr_block_group
        *top; /* [(n_group + 15) / 16] the bounding spheres of 16 groups */
} tsr_sphere_tree;

/* A pair of neighbours. a: lane of the first body in its block; b: index of the
 * second body. */
typedef struct {
    int a, b;
} tsr_body_pair;

/* Sets a block, with its bounding sphere, to bodies first..end-1 of xyz
 * [n_body][3]. They must lie in one block of the tree, and have the lanes that
 * they have there. */
void tsr_body_block_set(tsr_body_block *block, const double (*xyz)[3],
                        int first, int end);

/* Finds pairs of a body in the block `own` and a body of the tree at a distance
 * below `reach`, Angstrom. Bodies of the tree count if their bit in unmoved
 * [n_block] is set. Pairs within rounding of `reach` may be missing. pair [16
 * n_body] out. Returns the number of pairs. */
int tsr_sphere_tree_pairs(const tsr_sphere_tree *tree,
                          const tsr_body_block *own, const uint16_t *unmoved,
                          double reach, tsr_body_pair *pair);

/* The same for the bodies of two blocks. pair [256] out. */
int tsr_body_block_pairs(const tsr_body_block *own, const tsr_body_block *other,
                         double reach, tsr_body_pair *pair);

/* Makes a tree over n bodies xyz [n][3], Angstrom. NULL: out of memory. */
tsr_sphere_tree *tsr_sphere_tree_new(tsr_pool *pool, int n,
                                     const double (*xyz)[3]);

/* Recomputes the bounding spheres after blocks first..last have changed. */
void tsr_sphere_tree_update(tsr_sphere_tree *tree, int first, int last);

/* ---- excluded volume ---- */

/* Log densities are sums of integers in units of 2^-32 nat. Such sums are
 * exact. */
#define TSR_FIXED_SCALE 0x1p32

/* Converts nat to a fixed-point number, clipped to +-2^20 nat, far beyond any
 * useful value. A sum of two thousand terms of that size does not overflow. */
static inline int64_t tsr_to_fixed(double nat)
{
    double bound = 0x1p20;
    nat = nat > bound ? bound : nat < -bound ? -bound : nat;
    return (int64_t)llrint(nat * TSR_FIXED_SCALE);
}

static inline double tsr_from_fixed(int64_t fixed)
{
    return (double)fixed / TSR_FIXED_SCALE;
}

/* Parameters of the excluded volume. */
typedef struct {
    const tsr_topology *topology;
    double contact[TSR_MAX_TYPE][TSR_MAX_TYPE]; /* Angstrom */
    double cutoff; /* the largest contact distance; 0: no excluded volume */
    double inverse_softness; /* 1/Angstrom */
    double limit;            /* nat: a pair with a higher energy is forbidden */
} tsr_clash;

/* The result for a forbidden pair or conformation. */
#define TSR_CLASH_FORBIDDEN INT64_MIN

/* Returns -E of bodies a and b at positions x and y, Angstrom, as a fixed-point
 * number; 0 for a pair that does not count; TSR_CLASH_FORBIDDEN for a forbidden
 * pair. In a symmetric assembly the sum over all pairs is the energy of one
 * subunit: pairs in the subunit count, pairs of the subunit and a copy count
 * half, and pairs of copies are equivalent to these. */
static inline int64_t tsr_clash_pair(const tsr_clash *clash, int a,
                                     const double x[3], int b,
                                     const double y[3])
{
    double r2 = tsr_vec3_distance2(x, y);
    if (r2 >= clash->cutoff * clash->cutoff)
        return 0;
    const tsr_body *p = &clash->topology->body[a];
    const tsr_body *q = &clash->topology->body[b];
    double d = clash->contact[p->contact_type][q->contact_type];
    if (r2 >= d * d)
        return 0;
    const tsr_residue *i = &clash->topology->residue[p->residue];
    const tsr_residue *j = &clash->topology->residue[q->residue];
    if (i->copy > 0 && j->copy > 0)
        return 0;
    int apart = i->sequence_index - j->sequence_index;
    if ((i->chain_first == j->chain_first && apart < 3 && apart > -3) ||
        (i->unit >= 0 && i->unit == j->unit))
        return 0;
    double z = (d - sqrt(r2)) * clash->inverse_softness, nat = 0.5 * z * z;
    if (nat > clash->limit)
        return TSR_CLASH_FORBIDDEN;
    return tsr_to_fixed(i->copy == j->copy ? -nat : -0.5 * nat);
}

/* Bodies first..end-1, which moved; group as in tsr_span. */
typedef struct {
    int first, end, group;
} tsr_body_span;

typedef struct tsr_clash_state tsr_clash_state;

/* Makes the contact lists of a conformation without forbidden pairs. body
 * [n_body][3], Angstrom. total out: sum of -E over all pairs. NULL: out of
 * memory. */
tsr_clash_state *tsr_clash_state_new(tsr_pool *pool, const tsr_clash *clash,
                                     const double (*body)[3], int64_t *total);

/* Returns the sum of -E over the proposed conformation minus the sum over the
 * current one; TSR_CLASH_FORBIDDEN if a pair is forbidden. current, proposed
 * [n_body][3], Angstrom. Spans are in ascending order. */
int64_t tsr_clash_propose(tsr_clash_state *state, const double (*current)[3],
                          const double (*proposed)[3], int n_span,
                          const tsr_body_span *span);

/* Accepts the latest proposal, which must not be forbidden. The arguments are
 * those of tsr_clash_propose. */
void tsr_clash_accept(tsr_clash_state *state, const double (*proposed)[3],
                      int n_span, const tsr_body_span *span);

#endif

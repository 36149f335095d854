/* Excluded volume between bodies, incrementally.
 *
 * Three structures keep a step's cost at the bodies that it moves: cells of the
 * contact distance for a few bodies, bounding spheres of runs of bodies for
 * parts that move rigidly, and a list of the pairs that are in contact, so that
 * the old energy of what moved needs no search. Energies are integers
 * (tsr_to_fixed): their sum does not depend on the order, nor on which
 * structure found a pair. */
#ifndef TSR_PRIOR_CLASH_H
#define TSR_PRIOR_CLASH_H

#include "core/pool.h"
#include "core/vec3.h"
#include "molecule/topology.h"

#include <math.h>
#include <stdint.h>

/* ---- which bodies are near ----
 *
 * Which bodies come near which, sixteen at a time.
 *
 * Runs of sixteen bodies stand in blocks with a sphere around each, sixteen
 * spheres in a group with a sphere around them: a block asks group, sphere and
 * body, and what is far falls out early. Coordinates stand lane by lane, so
 * that one instruction looks at two to eight bodies. The distances are those of
 * tsr_vec3_distance2, to the bit, on every processor. */

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
} tsr_body_block;

typedef struct {
    tsr_lanes x[3], radius;
} tsr_block_group;

typedef struct {
    int n_block, n_group;
    tsr_body_block *block;  /* [n_block] block k begins with body 16 k */
    tsr_block_group *group; /* [n_group] the spheres of 16 blocks */
    tsr_block_group *top;   /* [(n_group + 15) / 16] those of 16 shelves */
} tsr_sphere_tree;

/* a: lane of the block that asks; b: body. */
typedef struct {
    int a, b;
} tsr_body_pair;

/* A block of bodies first..end-1 of xyz, which share one block of the tree;
 * they keep their lanes. */
void tsr_body_block_set(tsr_body_block *block, const double (*xyz)[3],
                        int first, int end);

/* Pairs of `own` and the bodies of the tree whose bit in still[block] is set,
 * at a distance below `reach`; a few may be missing that are within rounding of
 * it. pair has room for 16 of each body. Returns how many. */
int tsr_sphere_tree_pairs(const tsr_sphere_tree *tree,
                          const tsr_body_block *own, const uint16_t *still,
                          double reach, tsr_body_pair *pair);

/* The same of two blocks; pair: room for 256. */
int tsr_body_block_pairs(const tsr_body_block *own, const tsr_body_block *other,
                         double reach, tsr_body_pair *pair);

/* n elements with lanes, which stand where instructions want them. NULL: out of
 * memory, as tsr_pool_new. */
void *tsr_lanes_new(tsr_pool *pool, int n, size_t size);

/* Of n bodies. NULL: out of memory. */
tsr_sphere_tree *tsr_sphere_tree_new(tsr_pool *pool, int n,
                                     const double (*xyz)[3]);

/* Blocks first..last have changed: so do the spheres around them. */
void tsr_sphere_tree_update(tsr_sphere_tree *tree, int first, int last);

/* ---- excluded volume ---- */

/* Log densities are integers in units of 2^-32 nat: sums of them are exact. */
#define TSR_FIXED_SCALE 0x1p32

/* Held within 2^20 nat, far beyond any use; two thousand at that bound still
 * add up, and any number of terms of the size that samples have. */
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

typedef struct {
    const tsr_topology *topology;
    double contact[TSR_MAX_TYPE][TSR_MAX_TYPE]; /* Angstrom */
    double cutoff; /* the largest; 0: no excluded volume */
    double inverse_softness;
    double limit; /* nat: a pair that costs more is impossible */
} tsr_clash;

/* What a forbidden pair or conformation gives. */
#define TSR_CLASH_FORBIDDEN INT64_MIN

/* -E of bodies a and b at x and y; 0 for pairs that do not count. */
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
    int apart = i->sequence_index - j->sequence_index;
    if ((i->chain_first == j->chain_first && apart < 3 && apart > -3) ||
        (i->unit >= 0 && i->unit == j->unit))
        return 0;
    double z = (d - sqrt(r2)) * clash->inverse_softness, nat = 0.5 * z * z;
    return nat > clash->limit ? TSR_CLASH_FORBIDDEN : tsr_to_fixed(-nat);
}

/* Bodies first..end-1 moved; group as in tsr_span. */
typedef struct {
    int first, end, group;
} tsr_body_span;

typedef struct tsr_clash_state tsr_clash_state;

/* From the bodies of a conformation that has no forbidden pair; *total is the
 * sum over all pairs. NULL: out of memory. */
tsr_clash_state *tsr_clash_state_new(tsr_pool *pool, const tsr_clash *clash,
                                     const double (*body)[3], int64_t *total);

/* New sum less old, or TSR_CLASH_FORBIDDEN. Spans ascend. */
int64_t tsr_clash_propose(tsr_clash_state *state, const double (*current)[3],
                          const double (*proposed)[3], int n_span,
                          const tsr_body_span *span);

/* Makes the proposal just evaluated (and not forbidden) the state. */
void tsr_clash_accept(tsr_clash_state *state, const double (*proposed)[3],
                      int n_span, const tsr_body_span *span);

#endif

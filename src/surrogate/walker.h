/* Walks by a surrogate: many Metropolis steps of many molecules in one launch
 * of a device, by a cheap stand-in for the posterior.
 *
 * What a molecule is, is common to all walks (tsr_surrogate_spec); where one
 * starts and by what it goes is a job, two runs of numbers. A walk of n steps
 * keeps its target, written g here, exactly as any Metropolis chain does: each
 * step is one of a fixed mix of proposals. Whoever asked decides
 * about its end by the posterior p itself, with the probability
 *
 *     min(1, p(Y) g(X) / (p(X) g(Y))),
 *
 * and has then drawn from p, whatever g is (surrogate transition: Liu 2001,
 * Monte Carlo Strategies in Scientific Computing, 9.4.3; Christen & Fox 2005).
 *
 * g is a product of torsion densities, excluded volume between bodies, and
 * exp(beta L): the normal likelihood of curves, scale and background at their
 * best. Curves are summed from counted distances between beads. A bead is one
 * body where the chain is flexible, and several residues of a rigid unit
 * elsewhere; its form factor is a sum of two shapes of q, the same for all,
 * each in an amount of its own that grows with c2. */
#ifndef TSR_SURROGATE_WALKER_H
#define TSR_SURROGATE_WALKER_H

#include "core/status.h"

#include <stdint.h>

/* Products of two shapes: 00, 01, 11. */
enum {
    TSR_SURROGATE_SHAPES = 2,
    TSR_SURROGATE_PRODUCTS = 3,
    TSR_SURROGATE_POWERS = 3, /* of c2: 1, c2, c2^2 */
    TSR_SURROGATE_PARTS = 24, /* of a torsion density at most */
    TSR_SURROGATE_CELLS = 36, /* of phi, and of psi, from -pi on */
    TSR_SURROGATE_FREE = 7,   /* torsions of a linker that cannot close */
    TSR_SURROGATE_FACTOR = 36 /* numbers of a lower factor, 8 x 8 at most */
};

/* Points are what moves: bodies of rigid residues, and of flexible ones N, CB,
 * the side chain's centre, CA, C, O in this order, so that any torsion turns a
 * run of points. A point, a bead or a body is named by its number. */
typedef struct {
    int n_point, n_bead, n_part, n_body, n_pair, n_torsion, n_slot, n_like;
    int n_knot, n_q, n_curve, has_c2, n_linker;
    int32_t (*bead)[4];  /* [n_bead] first part, parts, first body, bodies */
    int32_t (*reach)[2]; /* [n_bead] its points lie in first..end-1 */
    float *radius;       /* [n_bead] Angstrom, of its bodies' centres */
    int32_t *part;       /* [n_part] points; of a bead of several bodies part k
                            is its k-th body */
    float *share;        /* [n_part] weights: a bead is where these say */
    int32_t (*body)[4];  /* [n_body] contact type, residue, chain, unit or -1 */
    float *contact;      /* [n_like][n_like] Angstrom */
    float cutoff, inverse_softness, limit; /* Angstrom, 1 / Angstrom, nat */
    uint16_t (*pair)[2];   /* [n_pair] beads whose distance may change */
    int32_t (*torsion)[4]; /* [n_torsion] axis from, to; points that turn */
    int32_t (*turn)[4];    /* [n_torsion] slot, 0 phi or 1 psi, the torsion
                              next to it inside what it turns (-1: none), sign
                              of the angle */
    int32_t (*edge)[2];    /* [n_torsion] the points before it end, those after
                              it begin here */
    int32_t (*linker)[8];  /* [n_linker] first torsion, torsions; 1: what comes
                              after moves, -1: what comes before; the end, or
                              first, of the points of the chain; points: middle
                              of the part that moves, middle of the part that
                              stays, and another one of it */
    int32_t *density;      /* [n_slot] which of the densities */
    int n_density;
    float (*term)[TSR_SURROGATE_PARTS][12]; /* [n_density] log of each part by
                                the nine products of cos and sin; 0 beyond */
    int32_t *n_term;                        /* [n_density] parts */
    uint32_t (*cell)[TSR_SURROGATE_CELLS * TSR_SURROGATE_CELLS];
    /* [n_density] by which torsions are drawn (tsr_torsion_density_cells) */
    float dq_inv_ang;    /* curves are at q = 0, dq, 2 dq, ... */
    float knots_per_ang; /* distances are shared by two knots */
    float *sinc;         /* [n_knot][n_q] of a knot's distance */
} tsr_surrogate_spec;

/* Where the numbers of a job stand. */
typedef struct {
    int head;   /* [8] beta, c2, its prior's mean, width, low and high; how
                   many steps */
    int unit;   /* [PRODUCTS] of counts, which are integers: so many to 1 */
    int angle;  /* [n_slot][2] phi, psi, rad */
    int width;  /* [n_torsion + 1 + n_linker] of turns, rad; of steps of c2;
                   of turns of linkers that close */
    int factor; /* [n_linker][FACTOR] lower factor of the covariance of the
                   steps that the part beyond makes (a rotation vector, rad,
                   and a shift in units of 10 Angstrom), or, where there are
                   at most FREE torsions, of their turns */
    int amount; /* [n_bead][4] of the two shapes, and times c2 */
    int shape;  /* [SHAPES][n_q] whose amounts these are; two beads scatter
                   the product of theirs */
    int rest;   /* [POWERS][n_q] what does not change */
    int top;    /* [POWERS][n_q] by which the profile is multiplied, */
    int bottom; /* [POWERS][n_q] and divided */
    int curve;  /* [n_curve]: rows [n_q][n_q + 1], target [n_q + 1], scale (0:
                   the best) */
    int size;
    int n_row, curve_size;
} tsr_surrogate_layout;

tsr_surrogate_layout tsr_surrogate_layout_of(const tsr_surrogate_spec *spec);

/* A result: log g at the start and at the end, c2 there; the profiles of start
 * and end without `top` and `bottom` [2][n_q]; what every torsion was turned by
 * [n_torsion], rad; what factors learn from [n_linker][FACTOR]: sums of
 * (a - 0.25) u u' / |u|^2 over steps F u accepted with probability a. */
enum { TSR_SURROGATE_HEAD = 3 };

static inline int tsr_surrogate_result_size(const tsr_surrogate_spec *spec)
{
    return TSR_SURROGATE_HEAD + 2 * spec->n_q + spec->n_torsion +
           spec->n_linker * TSR_SURROGATE_FACTOR;
}

static inline int tsr_surrogate_linker_rows(const tsr_surrogate_spec *spec,
                                            int linker)
{
    const int n = spec->linker[linker][1];
    return n > TSR_SURROGATE_FREE ? 6 : n;
}

/* Kinds of steps that are counted: torsions, c2, and of every linker those that
 * leave the part beyond and those that move it. */
static inline int tsr_surrogate_n_count(const tsr_surrogate_spec *spec)
{
    return spec->n_torsion + 1 + 2 * spec->n_linker;
}

/* What chains ask for at once. */
typedef struct {
    int n_job;
    float *job;         /* [n_job][layout.size] */
    float (*point)[4];  /* [n_job][n_point] Angstrom */
    uint32_t (*key)[2]; /* [n_job] of their random numbers */
    float *result;      /* [n_job][tsr_surrogate_result_size] out */
    int32_t (
        *count)[2]; /* [n_job][tsr_surrogate_n_count] steps, accepted; out */
} tsr_surrogate_call;

typedef struct tsr_surrogate tsr_surrogate;
typedef struct tsr_surrogate_walker tsr_surrogate_walker;
typedef struct tsr_surrogate_engine tsr_surrogate_engine;

/* A device that walks. Threads may make walkers of it and use each on its own.
 */
struct tsr_surrogate_engine {
    const tsr_surrogate_spec *spec; /* borrowed */
    void (*free)(tsr_surrogate_engine *engine);
    tsr_status (*walker_new)(tsr_surrogate_engine *engine, int most_jobs,
                             tsr_surrogate_walker **out, tsr_err *err);
    tsr_status (*walk)(tsr_surrogate_walker *walker, tsr_err *err);
    void (*walker_free)(tsr_surrogate_walker *walker);

    /* set by whoever made it */
    const tsr_surrogate *surrogate; /* borrowed; what chains go by, of which
                                       this is the spec */
    double walk_cost; /* walks are made so many times as seldom as their weight
                         says; 0 counts as 1 */
};

/* Its room is for most_jobs; whoever uses it fills `call` and reads it. */
struct tsr_surrogate_walker {
    tsr_surrogate_engine *engine;
    tsr_surrogate_layout layout;
    tsr_surrogate_call call;
};

void tsr_surrogate_engine_free(tsr_surrogate_engine *engine); /* NULL: none */
void tsr_surrogate_walker_free(tsr_surrogate_walker *walker);

#endif

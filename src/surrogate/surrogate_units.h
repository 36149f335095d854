/* The beads of a molecule, and amounts by which those of a rigid unit scatter
 * as the unit does.
 *
 * A bead of a unit stands for a few residues, and its own form factor is round.
 * What that loses, the beads of a unit can give back together: with amounts a
 * of the shapes s(q) they have the amplitude
 *
 *     B(q) = sum over beads b and shapes m of a_mb s_m(q) exp(i q x_b),
 *
 * and a is chosen such that the mean of |B - A|^2 over all directions, A the
 * amplitude of the unit's bodies, or of its particles, is least in a weighted
 * sum over q. The mean of exp(i q (x - y)) is sinc(q |x - y|), so that all sums
 * are known, and a solves linear equations. Beads are nearer to each other than
 * the curve can tell, so a is held near what it was (ridge regression). What
 * other units and flexible residues see of the unit, products of its amplitude
 * with theirs, is as good as B. */
#ifndef TSR_SURROGATE_SURROGATE_UNITS_H
#define TSR_SURROGATE_SURROGATE_UNITS_H

#include "likelihood/likelihood.h"
#include "molecule/topology.h"
#include "surrogate/walker.h"

/* Bodies first..first+count-1, which move as one; of a flexible residue one
 * body, unit -1. */
typedef struct {
    int first, count, unit;
} tsr_bead;

/* Points of a flexible residue, in the order in which torsions take them. */
enum {
    TSR_POINT_N,
    TSR_POINT_CB,
    TSR_POINT_SC,
    TSR_POINT_CA,
    TSR_POINT_C,
    TSR_POINT_O,
    TSR_N_POINT
};

/* Of these, how much of each body 0 or 1 of the residue is. */
void tsr_bead_shares(const tsr_residue *residue, int body,
                     double share[TSR_N_POINT]);

/* Into out (NULL: they are only counted). Returns how many. */
int tsr_bead_list(const tsr_topology *topology, tsr_bead *out);

void tsr_bead_centre(const tsr_bead *bead, const double (*body)[3],
                     double x[3]);

typedef struct {
    int n_bead, n_body, n_q;
    double dq_inv_ang, width_inv_ang; /* of the weight, a normal in q */
    const double (*centre)[3];        /* [n_bead] Angstrom */
    const double (*body)[3];          /* [n_body] Angstrom */
    const double *factor;             /* [n_body][n_q] form factors */
    const double *shape;              /* [SHAPES][n_q] */
    double *amount;                   /* [SHAPES][n_bead] in and out */
} tsr_unit_beads;

/* 0: out of memory. Amounts stay where the equations have no solution. */
int tsr_unit_fit(const tsr_unit_beads *unit);

/* Particles of a unit of the topology; 0 where the likelihood is of bodies, or
 * the unit is too small. */
int tsr_unit_n_particle(const tsr_likelihood *likelihood, int unit);

/* Adds the partial profiles of a unit's particles to partial [n_pair][n_q], of
 * the first probe. Errors: TSR_E_NOMEM. */
tsr_status tsr_unit_add_pairs(const tsr_likelihood *likelihood, int unit,
                              double *partial, tsr_err *err);

/* sinc(j x), j = 0 to n_q - 1, by the recurrence of sin(j x). */
void tsr_sinc_series(int n_q, double x, double *out);

#endif

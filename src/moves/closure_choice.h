/* The ways to close a chain at three pivots, and a choice among them that a
 * move can undo.
 *
 * Let a move bring the chain before pivot a and the chain after pivot c to
 * where they shall be, by something symmetric in the measure of that frame or
 * of the torsions before a. The six torsions s of the pivots follow; among the
 * closures j one is chosen with
 *
 *     P(j | s) = W(j) K(s, j) / Z,   W = f_a f_b f_c / D,
 *     K(s, j) = exp(sum over the six of (cos(j - s) - 1) / width^2),
 *
 * f the prior's densities of (phi, psi) at the pivots, D = |det d(frame) / ds|.
 * The density over what was held is p / D, and the way back chooses s among the
 * closures from where the move began. So D and K fall out, and a closure adds
 * to the move's log ratio
 *
 *     log Z(there) - log Z(back) + log f_abc(s) - log f_abc(s'). */
#ifndef TSR_MOVES_CLOSURE_CHOICE_H
#define TSR_MOVES_CLOSURE_CHOICE_H

#include "moves/closure.h"
#include "prior/prior.h"

typedef struct {
    int a, b, c; /* residues, ascending */
} tsr_pivots;

/* Flexible, with phi and psi, and not proline. */
int tsr_can_pivot(const tsr_residue *residue);

typedef struct {
    double c, s; /* of a torsion */
} tsr_circle;

/* One closure: its motions, the atoms it places (C_a, N_b, CA_b, C_b, N_c). */
typedef struct {
    tsr_closure_solution motion;
    double x[5][3];
    tsr_circle torsion[6];
    double log_f, log_weight;
} tsr_closed;

typedef struct {
    int n;
    tsr_closed at[TSR_MAX_CLOSURE];
} tsr_closures;

/* All closures of the pieces as they are in `pieces`, where N and CA of a (and
 * what is before) stand as in `before`, CA and C of c (and what follows) as in
 * `after`. Closures that are all but singular are left out. */
void tsr_closures_find(const tsr_prior *prior, const tsr_pivots *pivots,
                       const tsr_conformation *pieces,
                       const tsr_conformation *before,
                       const tsr_conformation *after, tsr_closures *closures);

/* The closure that the conformation has, to rounding; -1: none. */
int tsr_closures_own(const tsr_closures *closures, const tsr_pivots *pivots,
                     const tsr_conformation *conformation);

/* log (W K) of each closure, seen from one; returns log Z. */
double tsr_closures_log_z(const tsr_closures *closures, const tsr_closed *from,
                          double width_rad, double log_p[TSR_MAX_CLOSURE]);

int tsr_closures_choose(const tsr_closures *closures,
                        const double log_p[TSR_MAX_CLOSURE], double log_z,
                        gsl_rng *rng);

/* Puts the pieces of `pieces` to their place; not the bodies. */
void tsr_closed_place(const tsr_closed *closed, const tsr_pivots *pivots,
                      const tsr_conformation *pieces, tsr_conformation *out);

#endif

/* Ring closure: three pivot residues with fixed bond geometry.
 *
 * A chain comes in at pivot a and goes out at pivot c; b lies between. What
 * stands between two pivots is rigid. Six torsions (phi and psi of a, b and c)
 * bring the pieces into place; there are up to 16 ways (Coutsias, Seok,
 * Jacobson & Dill 2004; Wedemeyer & Scheraga 1999). The pivots need not be
 * neighbours. */
#ifndef TSR_MOVES_CLOSURE_H
#define TSR_MOVES_CLOSURE_H

#include "core/vec3.h"
#include "prior/prior.h"

enum { TSR_MAX_CLOSURE = 16 };

/* All in Angstrom and rad. */
typedef struct {
    double n_a[3], ca_a[3]; /* where the chain comes in */
    double ca_c[3], c_c[3]; /* where it goes out */
    double piece1[4][3];    /* CA_a, C_a, N_b, CA_b, in any one frame */
    double piece2[4][3];    /* CA_b, C_b, N_c, CA_c, in any one frame */
    double angle[3];        /* N-CA-C at a, b, c */
} tsr_closure;

/* The motions that take piece 1 and piece 2 from the frame they were given in
 * to their place. */
typedef struct {
    tsr_motion piece1, piece2;
} tsr_closure_solution;

/* All solutions, as far as they are more than rounding apart; returns how many
 * (0: it cannot be closed). What it finds depends on the problem alone, not on
 * any solution that is known. Every solution meets distances and angles to
 * 1e-9. Cost: some microseconds. */
int tsr_closure_solve(const tsr_closure *closure,
                      tsr_closure_solution solution[TSR_MAX_CLOSURE]);

/* log |det d(frame) / d(torsions)| of six torsions: axis k goes from
 * axis[k][0] to axis[k][1] (Angstrom), the frame is that of what comes after
 * them all. A density over the torsions of a chain whose end is held is the
 * density of all torsions divided by this determinant (Dodd, Boone &
 * Theodorou 1993). */
double tsr_closure_log_det(double axis[6][2][3]);

/* ---- a choice among closures ----
 *
 * The ways to close a chain at three pivots, and a choice among them that a
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
int tsr_closures_find_current(const tsr_closures *closures,
                              const tsr_pivots *pivots,
                              const tsr_conformation *conformation);

/* log (W K) of each closure, seen from one; returns log Z. */
double tsr_closures_log_z(const tsr_closures *closures, const tsr_closed *from,
                          double width_rad, double log_p[TSR_MAX_CLOSURE]);

int tsr_closures_choose(const tsr_closures *closures,
                        const double log_p[TSR_MAX_CLOSURE], double log_z,
                        gsl_rng *rng);

/* Puts the pieces of `pieces` to their place; not the bodies. */
void tsr_closed_apply(const tsr_closed *closed, const tsr_pivots *pivots,
                      const tsr_conformation *pieces, tsr_conformation *out);

/* ---- roots, for tests ----
 *
 * Real roots of a polynomial of degree 16 given in Bernstein form on [0, 1].
 *
 * Descartes' rule of signs on the coefficients, with subdivision: an interval
 * whose coefficients do not change sign has no root, one that has a single
 * change has exactly one (Lane & Riesenfeld 1981; Eigenwillig 2008). */

enum {
    TSR_ROOT_DEGREE = 16,
    TSR_MAX_ROOT = 32 /* with those that may be double or none */
};

/* An interval with a root. single: exactly one, with the coefficients of the
 * polynomial on it for tsr_root_refine; otherwise the interval is too short to
 * tell whether it holds none, one or more, and `near` is its middle. */
typedef struct {
    double from, to;
    double near; /* a guess, from <= near <= to */
    int single;
    double b[TSR_ROOT_DEGREE + 1];
} tsr_root;

/* Coefficients b[k] of binom(16, k) (1 - t)^(16 - k) t^k. Below `noise` a
 * coefficient says nothing. Returns how many intervals were found. */
int tsr_root_isolate(const double b[TSR_ROOT_DEGREE + 1], double noise,
                     tsr_root root[TSR_MAX_ROOT]);

/* The root of a `single` interval to rounding. */
double tsr_root_refine(const tsr_root *root);

#endif

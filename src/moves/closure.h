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

#endif

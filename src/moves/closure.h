/* Ring closure: closes a chain at three pivot residues without changing its
 * bond lengths and angles.
 *
 * The chain before pivot a and the chain after pivot c have given positions.
 * Pivot b lies between a and c. The piece between a and b is rigid, and so is
 * the piece between b and c. Six torsions (phi and psi of a, b and c) bring
 * both pieces into place. There are up to 16 solutions (Coutsias, Seok,
 * Jacobson & Dill 2004; Wedemeyer & Scheraga 1999). Pivots need not be
 * neighbours in the sequence. */
#ifndef TSR_MOVES_CLOSURE_H
#define TSR_MOVES_CLOSURE_H

#include "core/vec3.h"
#include "prior/prior.h"

enum { TSR_MAX_CLOSURE = 16 };

/* A closure problem. Lengths in Angstrom, angles in rad. */
typedef struct {
    double n_a[3], ca_a[3]; /* given positions at pivot a */
    double ca_c[3], c_c[3]; /* given positions at pivot c */
    double piece1[4][3];    /* CA_a, C_a, N_b, CA_b, in any frame */
    double piece2[4][3];    /* CA_b, C_b, N_c, CA_c, in any frame */
    double angle[3];        /* bond angles N-CA-C at a, b, c */
} tsr_closure;

/* One solution: the motions that take piece 1 and piece 2 from their given
 * frames into place. */
typedef struct {
    tsr_motion piece1, piece2;
} tsr_closure_solution;

/* Finds all solutions that differ by more than rounding, and returns their
 * number. 0: the chain cannot be closed, or the problem is degenerate (a piece
 * of length 0, three CA on a line). The result depends on the problem alone:
 * the current conformation does not serve as a start. Every solution meets the
 * given distances and angles to 1e-9. Cost: some microseconds. */
int tsr_closure_solve(const tsr_closure *closure,
                      tsr_closure_solution solution[TSR_MAX_CLOSURE]);

/* Returns log |det d(frame) / d(torsions)|, with the determinant in Angstrom^3.
 * The frame is that of the chain after the last of six torsion axes. Axis k
 * goes from axis[k][0] to axis[k][1], Angstrom. Returns -infinity if the matrix
 * is singular to rounding. If the end of a chain is fixed, the density over its
 * remaining torsions is the density over all torsions divided by this
 * determinant (Dodd, Boone & Theodorou 1993). */
double tsr_closure_log_det(double axis[6][2][3]);

/* ---- choosing one of the closures, reversibly ----
 *
 * A move first changes the chain before pivot a or after pivot c, by a proposal
 * that is symmetric in the coordinates of that part. The six pivot torsions s
 * must then change so that the chain is closed. Of all closures j of the new
 * geometry the move chooses one, with torsions s', with the probability
 *
 *     P(j | s) = W(j) K(s, j) / Z,   W = f_a f_b f_c / D,
 *     K(s, j) = exp(sum over the six of (cos(s_j - s) - 1) / width^2),
 *
 * where s_j are the torsions of closure j, Z is the sum of W(j) K(s, j) over
 * all closures, f_a, f_b, f_c are the prior's densities of (phi, psi) at the
 * pivots, f_abc is their product, and D = |det d(frame) / ds|. In the
 * coordinates of the part that was changed, the target density is p / D. The
 * reverse move chooses s among the closures of the old geometry. K is symmetric
 * and D cancels, so a closure contributes to the move's log ratio
 *
 *     log Z(new) - log Z(old) + log f_abc(s) - log f_abc(s'). */

/* The three pivots of a closure. */
typedef struct {
    int a, b, c; /* residues, ascending */
} tsr_pivots;

/* Returns 1 for a flexible amino acid with phi and psi, except proline. */
int tsr_can_pivot(const tsr_residue *residue);

/* An angle, by its cosine and sine. */
typedef struct {
    double c, s;
} tsr_cos_sin;

/* One closure. */
typedef struct {
    tsr_closure_solution motion;
    double x[5][3];           /* C_a, N_b, CA_b, C_b, N_c; Angstrom */
    tsr_cos_sin torsion[6];   /* phi and psi of a, b, c */
    double log_f, log_weight; /* log f_abc and log W, as above */
} tsr_closed;

/* All closures of a problem. */
typedef struct {
    int n;
    tsr_closed at[TSR_MAX_CLOSURE];
} tsr_closures;

/* Finds all closures. The geometry of both pieces is that in `pieces`. N and CA
 * of pivot a and the chain before them are those of `before`; CA and C of pivot
 * c and the chain after them are those of `after`. Nearly singular closures (D
 * below exp(-5) Angstrom^3) are left out. */
void tsr_closures_find(const tsr_prior *prior, const tsr_pivots *pivots,
                       const tsr_conformation *pieces,
                       const tsr_conformation *before,
                       const tsr_conformation *after, tsr_closures *closures);

/* Returns the index of the closure whose atoms agree with the conformation to
 * 1e-6 Angstrom; -1: no closure does. */
int tsr_closures_find_current(const tsr_closures *closures,
                              const tsr_pivots *pivots,
                              const tsr_conformation *conformation);

/* Returns log Z. log_p out: log (W K) of each closure, with K relative to the
 * torsions of `from`. There must be at least one closure. */
double tsr_closures_log_z(const tsr_closures *closures, const tsr_closed *from,
                          double width_rad, double log_p[TSR_MAX_CLOSURE]);

/* Draws the index of a closure with probability W K / Z. log_p and log_z are
 * those of tsr_closures_log_z. */
int tsr_closures_choose(const tsr_closures *closures,
                        const double log_p[TSR_MAX_CLOSURE], double log_z,
                        gsl_rng *rng);

/* Writes the backbone atoms from C of pivot a to N of pivot c into `out`: those
 * of `pieces`, moved by the closure. The bodies of `out` do not change; the
 * caller computes them (tsr_conformation_place_bodies). */
void tsr_closed_apply(const tsr_closed *closed, const tsr_pivots *pivots,
                      const tsr_conformation *pieces, tsr_conformation *out);

/* ---- roots of a polynomial (public for tests) ----
 *
 * Real roots of a polynomial of degree 16 given in Bernstein form on [0, 1].
 *
 * The interval is subdivided until Descartes' rule of signs decides: no sign
 * change between coefficients means no root, a single change exactly one root
 * (Lane & Riesenfeld 1981; Eigenwillig 2008). */

enum {
    TSR_ROOT_DEGREE = 16,
    TSR_MAX_ROOT = 32 /* includes intervals that may have no root */
};

/* An interval that may contain a root. single = 1: it contains exactly one, and
 * b are the coefficients of the polynomial on this interval, for
 * tsr_root_refine. single = 0: subdivision stopped, the interval may contain no
 * root, one or several, and `guess` is its middle. */
typedef struct {
    double from, to; /* within [0, 1] */
    double guess;    /* estimate of the root, from <= guess <= to */
    int single;
    double b[TSR_ROOT_DEGREE + 1];
} tsr_root;

/* Isolates the roots of a polynomial with coefficients b[k] of
 * binom(16, k) (1 - t)^(16 - k) t^k. Coefficients below `noise` in size may be
 * rounding. Returns the number of intervals. */
int tsr_root_isolate(const double b[TSR_ROOT_DEGREE + 1], double noise,
                     tsr_root root[TSR_MAX_ROOT]);

/* Returns the root of a `single` interval to rounding. */
double tsr_root_refine(const tsr_root *root);

#endif

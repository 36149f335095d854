/* The pre-rotation of a concerted move: its density, a draw, what it moves. */
#ifndef TSR_MOVES_CONCERTED_TURNS_H
#define TSR_MOVES_CONCERTED_TURNS_H

#include "moves/concerted_window.h"

#include <gsl/gsl_rng.h>

/* N(0, C), C^-1 = (I + kappa S) / width^2 = F F^T, F lower triangular; S_ij =
 * sum over the atoms e = N, CA, C of pivot a of (dr_e / dt_i).(dr_e / dt_j). */
typedef struct {
    int n;
    double f[TSR_MAX_TURN][TSR_MAX_TURN];
    double log_det; /* of F */
} tsr_turns;

/* width_rad; kappa in 1/Angstrom^2. */
void tsr_turns_set(tsr_turns *turns, const tsr_window *window,
                   const tsr_conformation *conformation, double width_rad,
                   double kappa);

/* log N(d; 0, C) = log N(-d; 0, C) but for a constant of n. */
double tsr_turns_log(const tsr_turns *turns, const double d[TSR_MAX_TURN]);

/* Returns 0 where an angle is beyond pi: not what the way back would measure.
 */
int tsr_turns_draw(const tsr_turns *turns, gsl_rng *rng,
                   double d[TSR_MAX_TURN]);

/* Turns the torsions of `current` by d into `out`: atoms of the window up to N
 * and CA of pivot a. All is about the axes of `current`: what follows axis i
 * takes the turns i, i-1, ..., 0 one after the other. */
void tsr_turns_apply(const tsr_window *window, const tsr_conformation *current,
                     const double d[TSR_MAX_TURN], tsr_conformation *out);

#endif

/* Summary of an angle: what tsr_convergence is for a number on the line.
 *
 * The circle is cut opposite the mean direction, and what is left is a variable
 * on a line around it. So:
 * - mean: the direction of the mean of the unit vectors, in the range that the
 *   values use: (-half, half] of a turn, or [0, turn) where none is below 0 and
 *   some are above half a turn;
 * - sd: the circular standard deviation sqrt(-2 ln R), R the length of that
 *   mean (Mardia & Jupp 2000, 2.3.4; ArviZ's circ_var_names);
 * - median, q5, q95: of the line, so q5 <= median <= q95 even where that takes
 *   one of them beyond the end of the range (370 degrees is 10);
 * - mcse, ess, rhat: of the line. They do not change when all angles turn by
 *   the same.
 * Without a preferred direction the mean says nothing; the sd is then large,
 * above some 2 rad or 115 degrees. */
#ifndef TSR_ANALYSIS_CIRCULAR_H
#define TSR_ANALYSIS_CIRCULAR_H

#include "analysis/convergence.h"

/* A whole turn in a unit of angle ("rad", "radian", "deg", "degree", and their
 * plurals), or 0 for what is no angle; NULL is none. */
double tsr_circular_turn(const char *unit);

/* As tsr_convergence_of_groups, for angles of which `turn` is a whole one;
 * value [n_chain][n_draw] is changed. */
tsr_status tsr_circular_make(int n_group, int n_chain, int n_draw, double turn,
                             double *value, tsr_convergence *out, tsr_err *err);

#endif

/* Weights of a given set of conformations whose mean curve is to meet data:
 * models of other programs, of NMR, of a simulation.
 *
 * Least squares finds the few models that fit best together and leaves the
 * others out; maximum entropy changes equal weights no more than the data ask
 * for. The first fits noise as readily as signal and is seldom unique: models
 * with like curves stand for each other. */
#ifndef TSR_ANALYSIS_ENSEMBLE_H
#define TSR_ANALYSIS_ENSEMBLE_H

#include "analysis/maxent.h"

/* weight [n] >= 0 with the sum 1 that minimise chi2 of c sum_i w_i I_i(q) + b;
 * curve [n][saxs->n] at the data's q. The point's theta is 0. Source: Lawson &
 * Hanson 1974, Solving Least Squares Problems, chapter 23. Errors:
 * TSR_E_NUMERIC (no weight above 0 comes nearer to the data), TSR_E_NOMEM. */
tsr_status tsr_ensemble_least_squares(int n, const double *curve,
                                      const tsr_saxs *saxs,
                                      const tsr_linear *linear, double *weight,
                                      tsr_maxent_point *point, tsr_err *err);

/* The same by maximum entropy (analysis/maxent.h); theta 0: the elbow. Errors:
 * those of tsr_maxent_make. */
tsr_status tsr_ensemble_maxent(int n, const double *curve, const tsr_saxs *saxs,
                               const tsr_linear *linear, double theta,
                               double *weight, tsr_maxent_point *point,
                               tsr_err *err);

#endif

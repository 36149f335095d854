/* Weights for a given set of conformations: models from other programs, from
 * NMR, or from a simulation, whose mean curve should fit data.
 *
 * Maximum entropy changes equal weights no more than the data require. Least
 * squares selects the few models that fit best together. Least squares fits
 * noise as readily as signal and is seldom unique: models with similar curves
 * are interchangeable. */
#ifndef TSR_ANALYSIS_MAXENT_H
#define TSR_ANALYSIS_MAXENT_H

#include "core/status.h"
#include "likelihood/noise.h"
#include "scattering/saxs.h"

/* The fit of a weighted mean curve. */
typedef struct {
    double theta;     /* penalty on KL; 0: least squares */
    double chi2;      /* chi2 per point of the mean curve at the best c and b */
    double kl;        /* KL(w || equal weights), nat */
    double effective; /* exp(-KL), the effective fraction of the ensemble */
    double scale, background;
} tsr_maxent_point;

/* Maximum entropy: weights [n] with sum 1 that minimise
 *
 *     chi2 / 2 + theta KL(w || equal),   chi2 of c sum_i w_i I_i(q) + b
 *
 * (Hummer & Koefinger 2015, J. Chem. Phys. 143, 243150; Bottaro, Bengtsen &
 * Lindorff-Larsen 2020, Methods Mol. Biol. 2112, 219). The solution has the
 * form w_i ~ exp(-lambda . I_i). lambda, with one component for each dimension
 * of the data, minimises a convex function, by Newton's method. The dimensions
 * are the principal components of the curves I / sigma whose variance exceeds
 * 1e-12 of the largest variance, but at most 64. Scale c and background b are
 * fitted to the mean curve together with the weights, again by Newton's method.
 *
 * theta 0: solves for 33 values of theta, and chooses the elbow of the curve of
 * chi2 over KL: with both scaled to 1, the point farthest from the line between
 * the curve's ends.
 * curve   [n][saxs->n]  in   at the data's q
 * weight  [n]           out
 * Errors: TSR_E_DATA (all curves equal), TSR_E_NUMERIC (no positive scale, or
 * no solution), TSR_E_NOMEM. */
tsr_status tsr_ensemble_maxent(int n, const double *curve, const tsr_saxs *saxs,
                               const tsr_linear *linear, double theta,
                               double *weight, tsr_maxent_point *point,
                               tsr_err *err);

/* Nonnegative least squares: weights [n] with sum 1 that minimise chi2 of c
 * sum_i w_i I_i(q) + b.
 * curve   [n][saxs->n]  in   at the data's q
 * weight  [n]           out  >= 0
 * *point                out  with theta 0
 * Source: Lawson & Hanson 1974, Solving Least Squares Problems, chapter 23.
 * Errors: TSR_E_NUMERIC (no weight above 0 improves the fit), TSR_E_NOMEM. */
tsr_status tsr_ensemble_least_squares(int n, const double *curve,
                                      const tsr_saxs *saxs,
                                      const tsr_linear *linear, double *weight,
                                      tsr_maxent_point *point, tsr_err *err);

#endif

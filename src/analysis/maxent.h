/* Maximum-entropy weights of an ensemble of curves: the weights that fit data
 * with the least change. They minimise
 *
 *     chi2 / 2 + theta KL(w || w0),   chi2 of c sum_i w_i I_i(q) + b
 *
 * over draws i of equal prior weight w0 (Hummer & Koefinger 2015, J. Chem.
 * Phys. 143, 243150; Bottaro, Bengtsen & Lindorff-Larsen 2020, Methods Mol.
 * Biol. 2112, 219). The solution has the form w_i ~ exp(-lambda . I_i). lambda,
 * with one component for each dimension of the data, minimises a convex
 * function, by Newton's method. The dimensions are the principal components of
 * the curves I / sigma whose variance exceeds 1e-12 of the largest variance,
 * but at most 64. Scale c and background b are fitted to the mean curve
 * together with the weights, again by Newton's method. */
#ifndef TSR_ANALYSIS_MAXENT_H
#define TSR_ANALYSIS_MAXENT_H

#include "analysis/reweight.h"
#include "core/status.h"

/* A solution at one theta. */
typedef struct {
    double theta;
    double chi2; /* chi2 per point of the weighted mean curve at the best c and
                    b */
    double kl;   /* KL(w || w0), nat */
    double effective; /* exp(-KL), the effective fraction of the ensemble */
    double scale, background;
} tsr_maxent_point;

enum { TSR_MAXENT_POINTS = 33 };

/* The L-curve, and the weights at the chosen point. */
typedef struct {
    long n;                 /* draws */
    int n_dim;              /* dimensions of the data that the curves span */
    tsr_maxent_point start; /* solution with equal weights; theta is infinite */
    int n_point;
    tsr_maxent_point point[TSR_MAXENT_POINTS]; /* [n_point] solutions, theta
                                                  descending */
    int chosen;           /* index into `point`: the elbow of the L-curve, or
                             the theta that the caller gave */
    double *log_weight;   /* [n] at the chosen point; sum of weights 1 */
    double interpolation; /* as in tsr_reweight */
} tsr_maxent;

/* saxs: the data. theta > 0: solves for this theta only. theta 0: solves for
 * TSR_MAXENT_POINTS values of theta, and chooses the elbow of the curve of chi2
 * over KL: with both scaled to 1, the point farthest from the line between the
 * curve's ends. Errors: TSR_E_DATA (q outside the run's range, the run's q too
 * far apart, or all curves equal), TSR_E_NUMERIC (no positive scale, or no
 * solution), TSR_E_NOMEM, those of tsr_stored_curve_for_each. */
tsr_status tsr_maxent_make(const tsr_stored_curve *stored, const tsr_saxs *saxs,
                           const tsr_linear *linear, double theta,
                           tsr_maxent **out, tsr_err *err);
void tsr_maxent_free(tsr_maxent *maxent);

/* ---- a given set of conformations ----
 *
 * Weights for models from other programs, from NMR, or from a simulation, whose
 * mean curve should fit data. Least squares selects the few models that fit
 * best together. Maximum entropy changes equal weights no more than the data
 * require. Least squares fits noise as readily as signal and is seldom unique:
 * models with similar curves are interchangeable. */

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

/* Weights of the same models by maximum entropy. theta 0: chooses the elbow.
 * Errors: those of tsr_maxent_make. */
tsr_status tsr_ensemble_maxent(int n, const double *curve, const tsr_saxs *saxs,
                               const tsr_linear *linear, double theta,
                               double *weight, tsr_maxent_point *point,
                               tsr_err *err);

#endif

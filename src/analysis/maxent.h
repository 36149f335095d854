/* Weights of an ensemble of curves that fit data with the least change: those
 * that minimise
 *
 *     chi2 / 2 + theta KL(w || w0),   chi2 of c sum_i w_i I_i(q) + b
 *
 * over draws i of equal weight w0 (Hummer & Koefinger 2015, J. Chem. Phys. 143,
 * 243150; Bottaro, Bengtsen, Lindorff-Larsen 2020, Methods Mol. Biol. 2112,
 * 219). They have the form w_i ~ exp(-lambda . I_i), and lambda minimises a
 * convex function of one number a dimension of the data, found by Newton's
 * method. The dimensions are the principal components of the draws' curves by
 * sigma, 64 at most: what they leave out is below 1e-12 of their variance.
 * Scale c and background b are fitted to the mean curve together with the
 * weights: what is minimised at the best weights for each is a function of the
 * two, whose minimum is Newton's, too. */
#ifndef TSR_ANALYSIS_MAXENT_H
#define TSR_ANALYSIS_MAXENT_H

#include "analysis/reweight.h"
#include "core/status.h"

typedef struct {
    double theta;
    double chi2; /* a point, of the weighted mean curve at the best c and b */
    double kl;   /* KL(w || w0), nat */
    double effective; /* exp(-KL): the part of the ensemble that is used */
    double scale, background;
} tsr_maxent_point;

enum { TSR_MAXENT_POINTS = 33 };

typedef struct {
    long n;                 /* draws */
    int n_dim;              /* dimensions of the data that the draws span */
    tsr_maxent_point start; /* with equal weights; theta infinite */
    int n_point;
    tsr_maxent_point point[TSR_MAXENT_POINTS]; /* theta falling */
    int chosen;           /* of point; the elbow of the L-curve, or as asked */
    double *log_weight;   /* [n] there; exponentials have the sum 1 */
    double interpolation; /* as in tsr_reweight */
} tsr_maxent;

/* saxs: the data. theta > 0: that one and no other; 0: the elbow, the point
 * farthest from the line between the ends of the curve of chi2 over KL, both
 * scaled to 1. Errors: TSR_E_DATA (q outside the run's; too far apart),
 * TSR_E_NUMERIC, TSR_E_NOMEM. */
tsr_status tsr_maxent_make(const tsr_stored_curve *stored, const tsr_saxs *saxs,
                           const tsr_linear *linear, double theta,
                           tsr_maxent **out, tsr_err *err);
void tsr_maxent_free(tsr_maxent *maxent);

/* ---- a given set of conformations ----
 *
 * Weights of models of other programs, of NMR, of a simulation whose mean curve
 * is to meet data. Least squares finds the few models that fit best together
 * and leaves the others out; maximum entropy changes equal weights no more than
 * the data ask for. The first fits noise as readily as signal and is seldom
 * unique: models with like curves stand for each other. */

/* weight [n] >= 0 with the sum 1 that minimise chi2 of c sum_i w_i I_i(q) + b;
 * curve [n][saxs->n] at the data's q. The point's theta is 0. Source: Lawson &
 * Hanson 1974, Solving Least Squares Problems, chapter 23. Errors:
 * TSR_E_NUMERIC (no weight above 0 comes nearer to the data), TSR_E_NOMEM. */
tsr_status tsr_ensemble_least_squares(int n, const double *curve,
                                      const tsr_saxs *saxs,
                                      const tsr_linear *linear, double *weight,
                                      tsr_maxent_point *point, tsr_err *err);

/* The same by maximum entropy; theta 0: the elbow. Errors: those of
 * tsr_maxent_make. */
tsr_status tsr_ensemble_maxent(int n, const double *curve, const tsr_saxs *saxs,
                               const tsr_linear *linear, double theta,
                               double *weight, tsr_maxent_point *point,
                               tsr_err *err);

#endif

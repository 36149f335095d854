/* Guinier's law, ln I = ln I(0) - q^2 Rg^2 / 3 for q Rg up to 1.3.
 *
 * The same fit serves measured and computed curves, so their radii are
 * comparable: both include the hydration, and both use the same points and
 * weights. The Rg of the trace, in contrast, is that of the molecule's mass. */
#ifndef TSR_SCATTERING_GUINIER_H
#define TSR_SCATTERING_GUINIER_H

#include "core/status.h"

typedef struct {
    int n;            /* points in the fit; 0: no fit, because fewer than 5
                         points are in the range of the law, or the curve does
                         not fall */
    int first, last;  /* the fit uses the points first to last of the curve,
                         except those that are not above their sigma */
    double rg, error; /* Rg and its standard deviation, Angstrom; NaN if n is
                         0 */
    double i0;
    double q[2]; /* range of q, 1/Angstrom */
} tsr_guinier;

/* Fits a weighted line to ln (I - background) against q^2 over the points with
 * q Rg below 1.3. Starts from Rg = rg_first (Angstrom) and iterates, 20 times
 * at most, until Rg changes by less than 1e-4 of Rg. If an iteration has too
 * few points or a line that does not fall, the previous iteration is the
 * result. q, intensity, sigma [n]. Errors: TSR_E_NOMEM. */
tsr_status tsr_guinier_fit(int n, const double *q, const double *intensity,
                           const double *sigma, double background,
                           double rg_first, tsr_guinier *out, tsr_err *err);

/* Rg of a computed curve over the points of `range`, with the same weights.
 * intensity, sigma  [n]  in  the measured data, including background
 * curve  [range->last + 1 - range->first]  in  from point range->first on,
 *        without background
 * Returns NaN if `range` has no fit, the curve is positive at fewer than 5 of
 * its points or does not fall, or memory is out. */
double tsr_guinier_rg(const tsr_guinier *range, const double *q,
                      const double *intensity, const double *sigma,
                      double background, const double *curve);

/* 1 if two measured curves cannot come from one structure: their radii differ
 * by more than three standard deviations, and by more than the 2 % that the
 * choice of points may cause. 0 if a curve has no fit. *sigma out: the
 * difference in standard deviations. */
int tsr_guinier_conflict(const tsr_guinier *a, const tsr_guinier *b,
                         double *sigma);

/* Mass of a protein from the volume of correlation, Da: Vc^2 / (0.1231 Rg),
 * where Vc is I(0) over the integral of q I up to 0.3 1/Angstrom. Accuracy
 * about 20 %. NaN if no Guinier range was found or if q ends below 0.2. Source:
 * Rambo & Tainer 2013, Nature 496, 477. */
double tsr_guinier_mass(const tsr_guinier *range, int n, const double *q,
                        const double *intensity, double background);

#endif

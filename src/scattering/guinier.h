/* Guinier's law, ln I = ln I(0) - q^2 Rg^2 / 3 for q Rg up to 1.3, in measured
 * and in computed curves alike, so that the two radii can be compared: both see
 * the water around the molecule, the same points and the same weights, while
 * the Rg of the trace is that of the molecule's mass. */
#ifndef TSR_SCATTERING_GUINIER_H
#define TSR_SCATTERING_GUINIER_H

#include "core/status.h"

typedef struct {
    int n;            /* points; 0: fewer than 5 lie where the law holds */
    int first;        /* of them: the points first to last of the curve, */
    int last;         /* but for those that noise makes useless */
    double rg, error; /* Angstrom; NaN without points */
    double i0;
    double q[2]; /* the range, 1/Angstrom */
} tsr_guinier;

/* A weighted line through ln (I - background) over q^2; begins with rg_first,
 * Angstrom, and goes on until the range stays. Points that do not rise above
 * their error are left out. Errors: TSR_E_NOMEM. */
tsr_status tsr_guinier_fit(int n, const double *q, const double *intensity,
                           const double *sigma, double background,
                           double rg_first, tsr_guinier *out, tsr_err *err);

/* Rg of another curve over the points of `range`, each with the weight that it
 * had there. intensity and sigma [n]: as measured, with its background; curve
 * [range->last + 1 - range->first] from the point range->first on, without
 * background. NaN where it does not fall. */
double tsr_guinier_rg(const tsr_guinier *range, const double *q,
                      const double *intensity, const double *sigma,
                      double background, const double *curve);

/* Whether two measured curves cannot be of one structure: their radii differ by
 * more than three standard deviations, and by more than the 2 % that the choice
 * of points may make. *sigma: how many standard deviations. */
int tsr_guinier_conflict(const tsr_guinier *a, const tsr_guinier *b,
                         double *sigma);

/* Mass of a protein by the volume of correlation, Da: Vc^2 / (0.1231 Rg), Vc =
 * I(0) over the integral of q I up to 0.3 1/Angstrom; good to some 20 %. NaN
 * where Guinier's law was not found or q ends before 0.2. Source: Rambo &
 * Tainer 2013, Nature 496, 477. */
double tsr_guinier_mass(const tsr_guinier *range, int n, const double *q,
                        const double *intensity, double background);

#endif

/* One bivariate von Mises distribution in the sine model (torsion_density.h):
 * its normalisation, its moments and exact draws. */
#ifndef TSR_MODEL_VON_MISES_H
#define TSR_MODEL_VON_MISES_H

#include "model/torsion_density.h"

/* Returns log(1 / C) - k_phi - k_psi, which is small where 1 / C overflows.
 * moment [3] out, NULL allowed: the means of cos(phi - mu), cos(psi - nu) and
 * sin(phi - mu) sin(psi - nu), the derivatives of log(1 / C) by k_phi, k_psi
 * and lambda. Cost: some 9 sqrt(k) + 40 steps, k the larger of the two. */
double tsr_von_mises_moments(double k_phi, double k_psi, double lambda,
                             double moment[3]);

/* The log density, weight included, is linear in these nine: 1, cos phi,
 * sin phi, cos psi, sin psi, and cos phi cos psi, cos phi sin psi,
 * sin phi cos psi, sin phi sin psi. term [9] out: their coefficients. */
enum { TSR_VON_MISES_TERM = 9 };
void tsr_von_mises_terms(const tsr_von_mises *part,
                         double term[TSR_VON_MISES_TERM]);

/* log(I0(x)) - |x|. */
double tsr_von_mises_log_i0(double x);

/* An exact draw of one angle from exp(kappa cos x), rad, in [-pi, pi]. */
double tsr_von_mises_draw_angle(gsl_rng *rng, double kappa);

/* An exact draw of both, rad, each in [-pi, pi). */
void tsr_von_mises_draw(const tsr_von_mises *part, gsl_rng *rng,
                        double *phi_rad, double *psi_rad);

/* The same angle in [-pi, pi). */
double tsr_von_mises_wrap(double angle_rad);

#endif

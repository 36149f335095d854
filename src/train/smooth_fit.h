/* Least squares for curves in q that are smooth and small: Gauss-Newton steps
 * for n_curve curves at once, each a sum of cubic B-splines in q (knots 0.1
 * 1/Angstrom apart), zero at q = 0 and held near zero by a ridge.
 *
 * One step: tsr_smooth_fit_begin, tsr_smooth_fit_add at every q but 0,
 * tsr_smooth_fit_step. */
#ifndef TSR_MODEL_SMOOTH_FIT_H
#define TSR_MODEL_SMOOTH_FIT_H

#include "core/status.h"

enum { TSR_SMOOTH_MAX_CURVE = 84 };

typedef struct tsr_smooth_fit tsr_smooth_fit;

/* Curves of zero on q_k = k dq, k < n_q; NULL when out of memory. */
tsr_smooth_fit *tsr_smooth_fit_new(int n_curve, int n_q, double dq_inv_ang);
void tsr_smooth_fit_free(tsr_smooth_fit *fit);

/* Value of a curve at any q up to the grid's last. */
double tsr_smooth_fit_at(const tsr_smooth_fit *fit, int curve, double q);

void tsr_smooth_fit_begin(tsr_smooth_fit *fit);

/* Adds n_row equations at q_k: residual [n_row] and how it would fall with each
 * curve's value there, jacobian [n_row][n_curve]. */
void tsr_smooth_fit_add(tsr_smooth_fit *fit, int k, int n_row,
                        const double *jacobian, const double *residual);

/* Solves with a ridge of `hold` a spline; *largest is the largest change.
 * Errors: TSR_E_NUMERIC. */
tsr_status tsr_smooth_fit_step(tsr_smooth_fit *fit, double hold,
                               double *largest, tsr_err *err);

/* Distance of the knots, 1/Angstrom. */
extern const double tsr_smooth_fit_knot;

#endif

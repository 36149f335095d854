/* Partial profiles of one structure, and the curve that they make for given
 * excluded-volume scale and hydration (DESIGN 3).
 *
 *     I(q) = sum_a sum_b C_a C_b I_ab(q) + S(q)
 *     K = 1: C = (1)     K = 3: C = (1, -G(q), c2)
 *
 * G: tsr_component_scale (scattering/form_factor.h), for atoms and bodies. */
#ifndef TSR_SCATTERING_CONTRAST_H
#define TSR_SCATTERING_CONTRAST_H

#include "core/status.h"
#include "scattering/q_grid.h"
#include "scattering/saxs.h"

/* On the uniform grid. Self terms that depend on the contrast (S_ab of tables
 * with three components) belong to `pair`. */
typedef struct {
    int n_comp; /* 1: c1 and c2 mean nothing; 3 */
    tsr_q_grid grid;
    double *pair;      /* [n_pair][grid.n_q] I_ab, 00 01 02 11 12 22 */
    double *self;      /* [grid.n_q] S(q); NULL: none */
    double radius_ang; /* r_m */
} tsr_partials;

/* The same at any q. */
typedef struct {
    int n_comp, n;
    double *q;    /* [n] 1/Angstrom */
    double *pair; /* [n_pair][n] */
    double *self; /* [n] zero where there is none */
    double radius_ang;
    /* Of smeared points: q, pair and self are on a grid of n_grid q (n_grid in
     * their place below), since c1 acts before the instrument does. */
    int n_grid;
    double *matrix; /* [n][n_grid] from there to the points; NULL: ideal */
    double *grid;   /* [n_grid] scratch */
} tsr_partial_curves;

void tsr_partials_clear(tsr_partials *partials);

/* Carries the partial profiles to q [n]. Errors: those of
 * tsr_q_operator_new. */
tsr_status tsr_partial_curves_make(const tsr_partials *partials, int n,
                                   const double *q_inv_ang,
                                   tsr_partial_curves *out, tsr_err *err);
/* The same at the points of data, smeared as their instrument does. */
tsr_status tsr_partial_curves_of(const tsr_partials *partials,
                                 const tsr_saxs *saxs, tsr_partial_curves *out,
                                 tsr_err *err);
void tsr_partial_curves_clear(tsr_partial_curves *curves);

/* intensity [n] out, electrons squared. */
void tsr_contrast_intensity(const tsr_partial_curves *curves, double c1,
                            double c2, double *intensity);

/* Guinier's Rg and I(0) of the curve: ln I = ln I(0) - q^2 Rg^2 / 3 by least
 * squares with equal weights, over q Rg from 0 to 1.3 or the end of the grid.
 * rg_first: where to begin. NaN where the curve does not fall. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_contrast_guinier(const tsr_partials *partials, double c1,
                                double c2, double rg_first, double *rg_ang,
                                double *i0, tsr_err *err);

#endif

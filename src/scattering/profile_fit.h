/* Fit of one structure's curve to data: scale, background, excluded volume (c1)
 * and hydration (c2), from partial profiles.
 *
 * Least squares of (I_exp - scale I(q; c1, c2) - background) / sigma. Scale and
 * background are linear and are eliminated (variable projection, Golub &
 * Pereyra 1973). c1 and c2 are fitted by Levenberg-Marquardt (GSL) from the
 * best point of a grid. Each is the sine of a free variable, scaled to its
 * bounds. */
#ifndef TSR_SCATTERING_PROFILE_FIT_H
#define TSR_SCATTERING_PROFILE_FIT_H

#include "core/pool.h"
#include "scattering/contrast.h"
#include "scattering/q_grid.h"
#include "scattering/saxs.h"

#include <stddef.h>

/* ---- partial profiles of one structure ----
 *
 * Partial profiles give the curve for any c1 and c2:
 *
 *     I(q) = sum_a sum_b C_a C_b I_ab(q) + S(q)
 *     K = 1: C = (1)     K = 3: C = (1, -G(q), c2)
 *
 * G is tsr_component_scale (scattering/contrast.h), for atoms and bodies
 * alike. */

/* Partial profiles on the uniform grid. With three components, `pair` includes
 * the self terms S_ab. */
typedef struct {
    int n_comp; /* 1: c1 and c2 have no effect; 3 */
    tsr_q_grid grid;
    double *pair;      /* [n_pair][grid.n_q] I_ab, 00 01 02 11 12 22 */
    double *self;      /* [grid.n_q] S(q); NULL: zero */
    double radius_ang; /* r_m of G */
} tsr_partials;

/* Partial profiles at any q. */
typedef struct {
    tsr_pool pool;
    int n_comp, n;
    double *q;    /* [n] 1/Angstrom */
    double *pair; /* [n_pair][n] */
    double *self; /* [n] S(q), or zero */
    double radius_ang;
    /* For smeared data: q, pair and self are on a grid of n_grid values in
     * place of n, because c1 must act before the smearing. */
    int n_grid;
    double *matrix; /* [n][n_grid] from the grid to the data; NULL: the data
                       are not smeared */
    double *grid;   /* [n_grid] scratch */
} tsr_partial_curves;

void tsr_partials_clear(tsr_partials *partials);

/* Interpolates partial profiles to q [n]. Errors: those of
 * tsr_q_operator_new. */
tsr_status tsr_partial_curves_make(const tsr_partials *partials, int n,
                                   const double *q_inv_ang,
                                   tsr_partial_curves *out, tsr_err *err);
/* The same at the data's q, smeared by their instrument. Errors: as above. */
tsr_status tsr_partial_curves_of_data(const tsr_partials *partials,
                                      const tsr_saxs *saxs,
                                      tsr_partial_curves *out, tsr_err *err);
void tsr_partial_curves_clear(tsr_partial_curves *curves);

/* The curve for c1 and c2: intensity [n] out, electrons squared. */
void tsr_contrast_intensity(const tsr_partial_curves *curves, double c1,
                            double c2, double *intensity);

/* Rg and I(0) of the curve. *rg_ang out, Angstrom: from a least-squares line ln
 * I = ln I(0) - q^2 Rg^2 / 3 with equal weights, for q Rg from 0 to 1.3 or the
 * end of the grid; NaN if the line does not fall. *i0 out: the curve at q = 0.
 * rg_first: starting value of Rg. Errors: those of tsr_partial_curves_make. */
tsr_status tsr_contrast_guinier(const tsr_partials *partials, double c1,
                                double c2, double rg_first, double *rg_ang,
                                double *i0, tsr_err *err);

/* ---- the fit ---- */

typedef struct {
    int fit_background; /* 0: the background is fixed to the member below */
    double background;
    double c1[2], c2[2]; /* bounds; two equal numbers: fixed */
} tsr_profile_fit_options;

/* c1 0.95 to 1.05, c2 0 to 4, background 0. Negative c2 (a layer less dense
 * than the buffer) is excluded, because it would only compensate other errors
 * of the model. */
extern const tsr_profile_fit_options tsr_profile_fit_defaults;

typedef struct {
    int n_point, n_parameter;
    double scale, background, c1, c2;
    int c1_at, c2_at;    /* -1: at the lower bound, 1: at the upper bound; 0:
                            between the bounds, or fixed */
    double chi2;         /* sum of squares / n_point */
    double reduced_chi2; /* sum of squares / degrees of freedom; NaN if there
                            are no degrees of freedom */
    int longest_run;     /* longest run of residuals of one sign */
    double cormap_p;     /* CorMap probability (tsr_cormap_p) */
    double noise;        /* noise of the data in units of sigma, from
                            tsr_profile_fit_set_noise; 0 before */
} tsr_profile_fit;

/* Fits one curve.
 * curves            in   partial profiles at the n points of the data
 * intensity, sigma  [n]  in
 * curve             [n]  out  scale I + background
 * With one component c1 = 1 and c2 = 0. Errors: TSR_E_NUMERIC (the curve is not
 * finite, or no positive scale exists), TSR_E_NOMEM. */
tsr_status tsr_profile_fit_make(const tsr_partial_curves *curves,
                                const double *intensity, const double *sigma,
                                const tsr_profile_fit_options *options,
                                tsr_profile_fit *fit, double *curve,
                                tsr_err *err);

/* One of several curves that are fitted with common c1 and c2. Each has a scale
 * and a background of its own. */
typedef struct {
    int n;
    const double *intensity, *sigma; /* [n] */
    int fit_background;              /* 0: fixed to the member below */
    double background;
    tsr_profile_fit *fit; /* out */
    double *curve;        /* [n] out: scale I + background */
} tsr_profile_fit_curve;

/* Callback: intensities of the structure at c1 and c2, electrons squared, at
 * the points of all data, data set after data set: model [sum of n] out. */
typedef void (*tsr_profile_predict)(void *context, double c1, double c2,
                                    double *model);

/* Fits several curves. c1, c2: bounds; two equal numbers: fixed. Errors: as
 * tsr_profile_fit_make. */
tsr_status tsr_profile_fit_joint(int n_data, const tsr_profile_fit_curve *data,
                                 const double c1[2], const double c2[2],
                                 tsr_profile_predict predict, void *context,
                                 tsr_err *err);

/* Sets fit->noise, and sets fit->cormap_p to NaN if neighbouring points share
 * noise, because the test does not apply then. */
void tsr_profile_fit_set_noise(tsr_profile_fit *fit,
                               const tsr_saxs_noise *noise);

/* " (c1 at its lower bound)", or an empty text, to text [size]. */
void tsr_profile_bounds_text(const tsr_profile_fit *fit, char *text,
                             size_t size);

/* CorMap: a test of two curves by the longest run of residuals of one sign.
 * Source: Franke, Jeffries & Svergun 2015, Nat. Methods 12, 419. */

/* Longest run of residuals of one sign; a residual of 0 ends a run. */
int tsr_cormap_longest_run(int n, const double *residual);

/* Probability that n tosses of a fair coin contain a run of `run` or more heads
 * or tails. Exact, by recursion (Schilling 1990, Coll. Math. J. 21, 196). NaN
 * when out of memory. Cost: O(n). */
double tsr_cormap_p(int n, int run);

/* `before` followed by p, or an empty text if p is NaN; text [48] out. Returns
 * text. */
const char *tsr_cormap_text(const char *before, double p, char text[48]);

#endif

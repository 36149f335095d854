/* A structure's curve fitted to data: scale, background, excluded volume (c1)
 * and hydration (c2), from partial profiles alone.
 *
 * Least squares of (I_exp - scale I(q; c1, c2) - background) / sigma. Scale and
 * background are linear and solved for (variable projection, Golub & Pereyra
 * 1973); c1 and c2 by Levenberg-Marquardt (GSL), each the sine of a free
 * variable between its bounds, from the best point of a grid. */
#ifndef TSR_SCATTERING_PROFILE_FIT_H
#define TSR_SCATTERING_PROFILE_FIT_H

#include "core/pool.h"
#include "scattering/contrast.h"
#include "scattering/q_grid.h"
#include "scattering/saxs.h"

#include <stddef.h>

/* ---- partial profiles of one structure ----
 *
 * And the curve that they make for given excluded-volume scale and hydration.
 *
 *     I(q) = sum_a sum_b C_a C_b I_ab(q) + S(q)
 *     K = 1: C = (1)     K = 3: C = (1, -G(q), c2)
 *
 * G: tsr_component_scale (scattering/contrast.h), for atoms and bodies. */

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
    tsr_pool pool;
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
tsr_status tsr_partial_curves_of_data(const tsr_partials *partials,
                                      const tsr_saxs *saxs,
                                      tsr_partial_curves *out, tsr_err *err);
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

/* ---- the fit ---- */

typedef struct {
    int fit_background; /* 0: the background is the number below */
    double background;
    double c1[2], c2[2]; /* bounds; equal: fixed */
} tsr_profile_fit_options;

/* c1 0.95 to 1.05, c2 0 to 4, background 0. A layer thinner than the buffer is
 * not offered: it fits what is wrong elsewhere. */
extern const tsr_profile_fit_options tsr_profile_fit_defaults;

typedef struct {
    int n_point, n_parameter;
    double scale, background, c1, c2;
    int c1_at, c2_at; /* -1: at the lower bound, 1: at the upper; 0: between, or
                         fixed */
    double chi2;      /* sum of squares over n_point */
    double reduced_chi2; /* over n_point - n_parameter; NaN where that is 0 */
    int longest_run;     /* of residuals of one sign */
    double cormap_p; /* NaN: neighbours share noise, CorMap does not apply */
    double noise;    /* of the data, in sigma (tsr_saxs_noise.level) */
} tsr_profile_fit;

/* curves at the n points of the data; intensity, sigma [n]; curve [n] out:
 * scale I + background. Curves of one component leave c1 = 1, c2 = 0.
 * Errors: TSR_E_NUMERIC (the curve is not finite or has no positive scale),
 * TSR_E_NOMEM. */
tsr_status tsr_profile_fit_make(const tsr_partial_curves *curves,
                                const double *intensity, const double *sigma,
                                const tsr_profile_fit_options *options,
                                tsr_profile_fit *fit, double *curve,
                                tsr_err *err);

/* One curve of several that a structure is fitted to at the same c1 and c2,
 * each with a scale and a background of its own. */
typedef struct {
    int n;
    const double *intensity, *sigma; /* [n] */
    int fit_background;              /* 0: it is the number below */
    double background;
    tsr_profile_fit *fit; /* out */
    double *curve;        /* [n] out: scale I + background */
} tsr_profile_fit_curve;

/* The structure's intensities at c1 and c2 where the data are, those of the
 * second behind those of the first: model [sum of n] out. */
typedef void (*tsr_profile_predict)(void *context, double c1, double c2,
                                    double *model);

/* c1, c2: bounds; equal: fixed. Errors: as above. */
tsr_status tsr_profile_fit_joint(int n_data, const tsr_profile_fit_curve *data,
                                 const double c1[2], const double c2[2],
                                 tsr_profile_predict predict, void *context,
                                 tsr_err *err);

/* What the noise of the data, known by neighbours, says of a fit: sets noise,
 * and takes CorMap's p back where it does not apply. */
void tsr_profile_fit_set_noise(tsr_profile_fit *fit,
                               const tsr_saxs_noise *noise);

/* " (c1 at its lower bound)", or empty; text [size] out. */
void tsr_profile_bounds_text(const tsr_profile_fit *fit, char *text,
                             size_t size);

/* Runs of residuals of one sign: the CorMap test of two curves.
 * Source: Franke, Jeffries & Svergun 2015, Nat. Methods 12, 419. */

/* Longest run of residuals of one sign; one that is 0 ends a run. */
int tsr_cormap_longest_run(int n, const double *residual);

/* Probability that n tosses of a fair coin hold a run, of heads or of tails, of
 * `run` or more; exact, by recursion (Schilling 1990, Coll. Math. J. 21, 196).
 * Cost: O(n). */
double tsr_cormap_p(int n, int run);

/* `before` and p, or nothing where p is NaN; text [48]. */
const char *tsr_cormap_text(const char *before, double p, char text[48]);

#endif

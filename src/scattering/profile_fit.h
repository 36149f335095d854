/* A structure's curve fitted to data: scale, background, excluded volume (c1)
 * and hydration (c2), from partial profiles alone.
 *
 * Least squares of (I_exp - scale I(q; c1, c2) - background) / sigma. Scale and
 * background are linear and solved for (variable projection, Golub & Pereyra
 * 1973); c1 and c2 by Levenberg-Marquardt (GSL), each the sine of a free
 * variable between its bounds, from the best point of a grid. */
#ifndef TSR_SCATTERING_PROFILE_FIT_H
#define TSR_SCATTERING_PROFILE_FIT_H

#include "scattering/contrast.h"

#include <stddef.h>

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
void tsr_profile_fit_judge(tsr_profile_fit *fit, const tsr_saxs_noise *noise);

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

/* The likelihood of a scattering curve, of X-rays or neutrons: one entry of
 * `data:`.
 *
 *     I_exp,k = c I(q_k; X) + b + noise
 *
 * with a noise model (likelihood/noise.h), its parameters, and scale c and
 * background b, integrated out or sampled. */
#ifndef TSR_LIKELIHOOD_TERM_SAXS_H
#define TSR_LIKELIHOOD_TERM_SAXS_H

#include "likelihood/noise.h"
#include "likelihood/term.h"

/* auto: integrated out where the noise model has an integral. */
enum { TSR_NUISANCE_AUTO, TSR_NUISANCE_INTEGRATE, TSR_NUISANCE_SAMPLE };

/* An entry of `data:` of this kind. */
typedef struct {
    int kind;
    char *file;
    int q_unit;        /* tsr_q_unit */
    double q_range[2]; /* 1/Angstrom */
    tsr_noise_options noise;
    tsr_number_or_word background;      /* infer, none, a number */
    tsr_number_or_word intensity_scale; /* infer, a number */
    int nuisance;                       /* of scale and background */
    tsr_resolution_options resolution;
} tsr_saxs_options;

/* What is said of neutrons in an entry of kind sans; NULL of another kind. */
const tsr_neutron_options *tsr_saxs_neutron(const tsr_term_options *entry);

/* One data set and how it is treated, without a file. */
typedef struct {
    const tsr_saxs *saxs;
    tsr_noise_options noise;
    tsr_number_or_word background, intensity_scale;
    int nuisance;
} tsr_data_set;

/* theta: of the noise model (n_noise), then scale and background, which are the
 * chain's, or integrated out (term.is_integrated). */
typedef struct {
    tsr_term term;
    const tsr_noise_type *noise;
    tsr_noise_options noise_options;
    tsr_noise *state;     /* NULL until prepared; */
    tsr_pool state_pool;  /* its memory, and that of `error` */
    const tsr_saxs *saxs; /* borrowed, or: */
    tsr_saxs *own;        /* the term's; NULL */
    int n_noise, n_q;
    double *matrix; /* [saxs->n][n_q] from the grid to the data */
    double *error;  /* [term.n_error + 1][saxs->n] the reference and the model's
                       own error at the data's q, electrons squared; NULL: none
                     */
    tsr_linear linear;
    tsr_neutron neutron; /* of neutrons */
    char unit_text[128]; /* of q in the file, and how that is known */
    char resolution_text[200];
} tsr_saxs_term;

/* The term of a curve; the data are borrowed. number: for messages. Errors:
 * TSR_E_CONFIG (beginning with the key), TSR_E_DATA (data that the noise model
 * cannot have, or fewer points than parameters), TSR_E_NOMEM. */
tsr_status tsr_saxs_term_new(const tsr_data_set *set, int number,
                             tsr_term **out, tsr_err *err);

/* Prepares it for profiles at n_q values of q of any kind: matrix
 * [saxs->n][n_q] takes them to the data's q. The term takes the matrix, also
 * after an error. */
tsr_status tsr_saxs_term_prepare(tsr_saxs_term *term, int n_q, double *matrix,
                                 tsr_err *err);

/* Makes a prepared term one whose model has errors of its own, on the same kind
 * of profiles. Under a noise model without an integral it does nothing. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_saxs_set_model_error(tsr_term *term,
                                    const tsr_profile_error *error,
                                    tsr_err *err);

/* How the trace calls row k of `error`. */
const char *tsr_saxs_error_name(int k);

/* Fits a profile [n_q] with S(q) at theta; the fit is that of tsr_term_fit_new.
 * Errors: TSR_E_NUMERIC. */
tsr_status tsr_saxs_fit(const tsr_saxs_term *term, const double *profile,
                        const double *theta, tsr_fit *fit, tsr_err *err);

/* log likelihood: at the scale and background of theta where they are sampled,
 * else the marginal one. */
double tsr_saxs_log_lik(const tsr_saxs_term *term, const tsr_fit *fit,
                        const double *theta);

/* c I(q_k) + b at the data's q: curve [n_point] out. */
void tsr_saxs_curve(const tsr_saxs_term *term, const double *profile,
                    double scale, double background, double *curve);

/* ---- all its nuisances integrated out (marginal.c) ----
 *
 * log P(D | X) of one data set: scale and background, and the parameters of its
 * noise under their priors.
 *
 * Scale and background in closed form; where the noise model has none, by
 * Laplace's approximation about the best ones, good to O(1 / n) for n points,
 * most of which is the same for every curve. The parameters (two at most) by
 * the trapezoid rule on a grid of one standard deviation about their mode. */

/* What is left after the integral, drawn from its distribution. */
typedef struct {
    double scale, background;
    double theta[TSR_NOISE_PARAMETERS];
} tsr_nuisance_draw;

/* profile: as the term's matrix takes it. fit: for scratch, of the term. rng
 * NULL: nothing is drawn. fit->chi2 is that of the profile. -infinity where no
 * positive scale fits. */
double tsr_marginal_log(const tsr_saxs_term *term, const double *profile,
                        tsr_fit *fit, gsl_rng *rng, tsr_nuisance_draw *drawn);

#endif

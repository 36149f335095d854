/* The likelihood of a scattering curve, of X-rays or neutrons: one entry of
 * `data:`.
 *
 *     I_exp,k = c I(q_k; X) + b + noise
 *
 * with a noise model (likelihood/noise.h), its parameters, and scale c and
 * background b, integrated out or sampled (scattering/linear.h). */
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

/* theta: of the noise model (n_noise), then scale and background. */
typedef struct {
    tsr_term term;
    const tsr_noise_type *noise;
    tsr_noise_options noise_options;
    void *state;          /* of the noise model; NULL until prepared */
    const tsr_saxs *saxs; /* borrowed, or: */
    tsr_saxs *own;        /* the term's; NULL */
    int n_noise, n_q;
    double *matrix; /* [saxs->n][n_q] from the grid to the data */
    int n_error;    /* curves of the model's own error */
    double *error;  /* [n_error + 1][saxs->n] the reference and these at the
                       data's q, electrons squared; NULL: none */
    tsr_linear linear;
    int is_sampled;      /* 1: c and b are the chain's, 0: integrated out */
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
tsr_status tsr_saxs_term_doubt(tsr_saxs_term *term,
                               const tsr_profile_error *error, tsr_err *err);

/* Of the type (likelihood/term.h). */
tsr_status tsr_saxs_prepare(tsr_term *term, const tsr_q_grid *grid,
                            tsr_err *err);
tsr_status tsr_saxs_doubt(tsr_term *term, const tsr_profile_error *error,
                          tsr_err *err);
const double *tsr_saxs_constant(const tsr_term *term, int k, const char **name,
                                const char **doc);

/* How the trace calls row k of `error`. */
const char *tsr_saxs_error_name(int k);

/* fit->model and weight have room where the noise model uses them; free() frees
 * it. NULL: out of memory. */
tsr_fit *tsr_saxs_fit_new(const tsr_saxs_term *term);

/* Fits a profile [n_q] with S(q) at theta. Errors: TSR_E_NUMERIC. */
tsr_status tsr_saxs_fit(const tsr_saxs_term *term, const double *profile,
                        const double *theta, tsr_fit *fit, tsr_err *err);

/* log likelihood: at the scale and background of theta where they are sampled,
 * else the marginal one. */
double tsr_saxs_log_lik(const tsr_saxs_term *term, const tsr_fit *fit,
                        const double *theta);

/* c I(q_k) + b at the data's q: curve [n_point] out. */
void tsr_saxs_curve(const tsr_saxs_term *term, const double *profile,
                    double scale, double background, double *curve);

#endif

/* The likelihood term of one scattering curve, X-ray or neutron: one entry of
 * `data:`.
 *
 *     I_exp,k = c (I S)(q_k; X) + b + noise, smeared by the instrument
 *
 * S(q) is 1, or the structure factor of interference between particles
 * (scattering/contrast.h). The noise model (likelihood/noise.h) may have
 * parameters. Scale c and background b are integrated out or sampled. */
#ifndef TSR_LIKELIHOOD_TERM_SAXS_H
#define TSR_LIKELIHOOD_TERM_SAXS_H

#include "likelihood/noise.h"
#include "likelihood/term.h"
#include "scattering/contrast.h"

/* Treatment of scale and background. AUTO: integrate if the noise model has an
 * integral, else sample. */
enum { TSR_NUISANCE_AUTO, TSR_NUISANCE_INTEGRATE, TSR_NUISANCE_SAMPLE };

/* What the sample of a curve has in common with those of the other curves.
 * STRUCTURE: structures and their weights, STATES: the structures alone. */
enum { TSR_SHARE_STRUCTURE, TSR_SHARE_STATES };

/* A data set and its treatment, independent of a configuration file. */
typedef struct {
    const tsr_saxs *saxs;
    tsr_noise_options noise;
    tsr_number_or_word background;      /* flat, none, infer, a number */
    tsr_number_or_word background_sd;   /* auto, a number */
    tsr_number_or_word intensity_scale; /* infer, a number */
    tsr_number_or_word interparticle;   /* none, infer, S(0) */
    double interparticle_width;         /* sd of log S(0) in its prior */
    int nuisance;                       /* treatment of scale and background:
                                           TSR_NUISANCE_... */
} tsr_data_set;

/* Options of an entry of `data:` with kind saxs or sans. */
typedef struct {
    int kind;
    char *file;
    int q_unit;            /* tsr_q_unit */
    double q_range[2];     /* 1/Angstrom */
    int share;             /* TSR_SHARE_... */
    tsr_number_or_word at; /* coordinate of the sample in a series, or none */
    char *unit;            /* of `at` */
    tsr_data_set set;      /* saxs: NULL */
    tsr_resolution_options resolution;
} tsr_saxs_options;

/* The neutron options of an entry of kind sans; NULL for any other kind. */
const tsr_neutron_options *tsr_saxs_neutron(const tsr_term_options *entry);

/* 1 if the entry is a curve with share: states. */
int tsr_saxs_has_own_weights(const tsr_term_options *entry);

/* The term of a curve. Its theta holds the n_noise parameters of the noise
 * model, then scale and background, then log S(0) if there is interference.
 * Scale and background are parameters of the chain, or integrated out
 * (term.is_integrated). */
typedef struct {
    tsr_term term;
    const tsr_noise_type *noise;
    tsr_noise_options noise_options;
    tsr_noise *state;     /* noise model of these data; NULL before `prepare` */
    tsr_pool state_pool;  /* owns `state` and `error` */
    const tsr_saxs *saxs; /* the data: borrowed, or owned_saxs */
    tsr_saxs *owned_saxs; /* the data if the term owns them, else NULL */
    int n_noise, n_q;     /* noise parameters; grid points of a profile */
    double *matrix; /* [saxs->n][n_q] from a profile's grid to the data's q */
    double *error;  /* [term.n_error + 1][saxs->n] the reference, then the
                       curves of the model's own error, at the data's q,
                       electrons squared; NULL: no model error */
    tsr_linear linear;
    int has_interparticle; /* 1: interference between particles */
    tsr_interference interference;
    tsr_neutron neutron; /* sample and solvent; neutrons only */
    char unit_text[128]; /* unit of q in the file, and its reason */
    char resolution_text[200];
} tsr_saxs_term;

/* Creates the term of a curve from borrowed data. number: of the entry, for
 * messages. Errors: TSR_E_CONFIG (the message begins with the key), TSR_E_DATA
 * (data that the noise model cannot describe, or fewer points than parameters),
 * TSR_E_NOMEM. */
tsr_status tsr_saxs_term_new(const tsr_data_set *set, int number,
                             tsr_term **out, tsr_err *err);

/* Prepares the term for profiles at any n_q values of q: matrix [saxs->n][n_q]
 * maps a profile to the data's q. The term owns the matrix, also after an
 * error. Errors: TSR_E_NOMEM. */
tsr_status tsr_saxs_term_prepare(tsr_saxs_term *term, int n_q, double *matrix,
                                 tsr_err *err);

/* Adds the model's own error, on the grid of the profiles, to a prepared term,
 * in place of an earlier error. No effect without curves, or under a noise
 * model without an integral. Errors: TSR_E_NOMEM. */
tsr_status tsr_saxs_set_model_error(tsr_term *term,
                                    const tsr_profile_error *error,
                                    tsr_err *err);

/* Fits a profile [n_q], including S(q), at theta; fit from tsr_term_fit_new.
 * Errors: TSR_E_NUMERIC. */
tsr_status tsr_saxs_fit(const tsr_saxs_term *term, const double *profile,
                        const double *theta, tsr_fit *fit, tsr_err *err);

/* Log likelihood, nat: at the scale and background in theta if they are
 * sampled, else integrated over both. */
double tsr_saxs_log_lik(const tsr_saxs_term *term, const tsr_fit *fit,
                        const double *theta);

/* I S at the data's q: curve [n_point] out. s0: S(0), without effect if the
 * term has no interference. joint [4 n_q]: scratch; NULL: S = 1. */
void tsr_saxs_curve(const tsr_saxs_term *term, const double *profile, double s0,
                    double *joint, double *curve);

#endif

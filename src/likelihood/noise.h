/* P(D | X, theta) of one data set: noise models.
 *
 * A model is one const struct: the distribution of I_exp,k about c I(q_k; X) +
 * b, with at most a few parameters theta of its own. Scale c and background b
 * (likelihood/linear.h) are integrated out where the model has an integral in
 * closed form, and sampled with the chain where it has none or the config asks
 * for it. */
#ifndef TSR_LIKELIHOOD_NOISE_H
#define TSR_LIKELIHOOD_NOISE_H

#include "core/field.h"
#include "core/random.h"
#include "core/status.h"
#include "io/saxs.h"
#include "likelihood/linear.h"

typedef struct {
    int model;                /* index into tsr_noise_registry */
    tsr_number_or_word scale; /* s: infer, or a number */
    double scale_width;       /* sd of log s in its prior */
    tsr_number_or_word alpha; /* 1/Angstrom: infer, or a number */
    double alpha_width;       /* sd of log alpha */
    tsr_number_or_word beta;
    double beta_width;
    tsr_number_or_word nu;
} tsr_noise_options;

enum { TSR_INFER = 0 };
extern const tsr_field tsr_noise_fields[];

enum { TSR_NOISE_PARAMETERS = 2 }; /* of a model, at most */

/* A parameter as the trace tells of it. */
typedef struct {
    const char *name, *unit, *doc;
    int refit; /* 1: it changes the weights of the points, so the fit */
} tsr_noise_parameter;

/* Where a parameter starts or is fixed, and its prior. Chains hold theta =
 * log(value - low). width > 0: theta is normal(mean, width). width 0: the value
 * is Gamma(shape, rate), cut below at low. */
typedef struct {
    int infer;
    double start; /* theta */
    double low;
    double mean, width;
    double shape, rate;
} tsr_noise_prior;

double tsr_noise_value(const tsr_noise_prior *prior, double theta);

/* log density of theta, normalised; 0 where it is fixed. */
double tsr_noise_log_prior(const tsr_noise_prior *prior, double theta);

/* A prior log-normal about `middle`; a number fixes the value. */
tsr_noise_prior tsr_noise_log_normal(tsr_number_or_word value, double middle,
                                     double width);

/* What a state is made from. */
typedef struct {
    const tsr_noise_options *options;
    const tsr_saxs *saxs; /* borrowed for as long as the state lives */
    const double *matrix; /* [saxs->n][n_q] from the grid to the data; copied */
    int n_q;
    const tsr_linear *linear; /* copied */
} tsr_noise_spec;

typedef struct {
    const char *name, *doc, *source;
    int n_parameter;
    const tsr_noise_parameter *parameter; /* [n_parameter] */
    const char *const *keys; /* of tsr_noise_fields it reads; ends with NULL */
    int per_point; /* 1: the fit's model and weight are used and have room */

    /* Refuses data that the model cannot have: TSR_E_DATA. NULL: none. */
    tsr_status (*check)(const tsr_saxs *saxs, tsr_err *err);

    /* prior [n_parameter] out. */
    void (*priors)(const tsr_noise_options *options, tsr_noise_prior *prior);

    /* NULL: out of memory. */
    void *(*state_new)(const tsr_noise_spec *spec);
    void (*state_free)(void *state);

    /* profile [n_q] in electrons squared, S(q) included; theta
     * [n_parameter]. */
    void (*fit)(const void *state, const double *profile, const double *theta,
                tsr_fit *fit);

    /* The same profile at another theta. NULL where no parameter needs it. */
    void (*refit)(const void *state, const double *theta, tsr_fit *fit);

    /* log P(D | X, theta), c and b integrated out, nat, normalised in the data.
     * NULL: there is no closed form. */
    double (*log_integral)(const void *state, const tsr_fit *fit,
                           const double *theta);

    /* log P(D | X, c, b, theta). */
    double (*log_lik)(const void *state, const tsr_fit *fit,
                      const double *theta, double c, double b);

    /* The conditional of c and b, exact where there is an integral. */
    tsr_linear_shape (*conditional)(const double *theta);

    /* The least power by which the density of a point falls in its residual;
     * NULL: faster than any. */
    double (*tail)(const tsr_noise_prior *prior);

    /* One point: log density of I_exp - (c I + b), and a draw of it. */
    double (*log_point)(const void *state, const double *theta, int k,
                        double residual);
    double (*draw_point)(const void *state, const double *theta, int k,
                         gsl_rng *rng);
} tsr_noise_type;

extern const tsr_noise_type tsr_noise_measured;
extern const tsr_noise_type tsr_noise_relative;
extern const tsr_noise_type tsr_noise_student;
extern const tsr_noise_type *const tsr_noise_registry[]; /* ends with NULL */

/* Refuses values of keys that the chosen model does not read: TSR_E_CONFIG,
 * beginning with the key of data set `number`. */
tsr_status tsr_noise_check_options(const tsr_noise_options *options, int number,
                                   tsr_err *err);

#endif

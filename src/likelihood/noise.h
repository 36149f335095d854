/* Noise models of scattering curves: P(D | X, theta) of one data set.
 *
 *     I_exp,k = c m_k + b + noise,   m_k = I(q_k; X)
 *
 * A noise model is one file with one const struct, and a line in
 * TSR_NOISE_MODELS. It defines the distribution of I_exp,k about c m_k + b, its
 * options in the configuration, and up to TSR_NOISE_PARAMETERS parameters theta
 * of its own.
 *
 * Scale c and background b are inferred or fixed. The prior of c is flat on c >
 * 0, and the prior of b is normal about 0, or flat on the real line. A prior
 * flat in log c would make the posterior improper, because the likelihood does
 * not vanish at c = 0.
 * For normal errors noise.c has the integral over c and b in closed form, and
 * their exact conditional. In the other cases (`nuisance: sample`, or a noise
 * model without an integral) c and b are parameters of the chain, proposed from
 * their conditional or from a density close to it. */
#ifndef TSR_LIKELIHOOD_NOISE_H
#define TSR_LIKELIHOOD_NOISE_H

#include "core/field.h"
#include "core/parameter.h"
#include "core/pool.h"
#include "core/random.h"
#include "scattering/q_grid.h"
#include "scattering/saxs.h"

#include <stdalign.h>

/* ---- scale and background ---- */

/* INFER: normal prior; FLAT: flat prior. */
enum { TSR_BACKGROUND_FLAT, TSR_BACKGROUND_NONE, TSR_BACKGROUND_INFER };

/* Which of scale and background are inferred. */
typedef struct {
    int infer_scale, infer_background;
    double scale, background; /* the values if they are fixed */
    double background_sd; /* standard deviation of the normal prior of b about
                             0, in the unit of the data; 0: flat prior */
} tsr_linear;

/* Translates the options. Their words are infer for the scale, and those of
 * TSR_BACKGROUND_... for the background. The prior of b is flat. */
tsr_linear tsr_linear_make(tsr_number_or_word scale,
                           tsr_number_or_word background);

/* Log prior density of b, nat; 0 if b is fixed or its prior is flat. */
double tsr_linear_log_prior(const tsr_linear *linear, double b);

/* The error of the forward model in the likelihood of one data set: a sum of a
 * few curves E_j, each multiplied by an independent standard normal variate. */
enum { TSR_MODEL_ERRORS = 8 };

typedef struct {
    int n;                                           /* number of curves; 0: no
                                                        model error */
    double gram[TSR_MODEL_ERRORS][TSR_MODEL_ERRORS]; /* weighted products E_i .
                                                        E_j at s = 1 */
} tsr_model_error;

/* The fit without model error, and the weighted product of each E_j with the
 * residuals of that fit, with the model (background projected out), and with
 * 1. */
typedef struct {
    double scale, background, square_sum, model_norm, model_mean, one_norm;
    double residual[TSR_MODEL_ERRORS], model[TSR_MODEL_ERRORS],
        one[TSR_MODEL_ERRORS];
} tsr_plain_fit;

/* The fit of one profile to one data set. The weights are those of the noise
 * model at common factor s = 1. A normal prior of b, of standard deviation w,
 * counts as one more point: the sum of squares includes (s b / w)^2. */
typedef struct {
    double scale;        /* best c for this profile, of either sign */
    double background;   /* best b */
    double square_sum;   /* weighted sum of squares at the best c and b */
    double model_norm;   /* weighted |m|^2, background projected out */
    double model_mean;   /* decrease of the best b by one more c: the weighted
                            mean of the model; 0 if b is fixed */
    double one_norm;     /* sum of the weights */
    double log_sigma;    /* sum of log sigma_k */
    double chi2;         /* smallest sum of squared residuals over sigma_exp,
                            for reports */
    double log_det;      /* 1/2 log |1 + E^T W E / s^2|; 0: no model error */
    tsr_plain_fit plain; /* valid if there is a model error */

    double *model;  /* [n] the curve at the data's q; NULL unless
                      tsr_noise_type.per_point */
    double *weight; /* [n] scratch; only with `model` */
    double *joint;  /* scratch of a term with interference; else NULL */
} tsr_fit;

/* Weighted least squares over n points; sets the first members of the fit, from
 * `scale` through `one_norm`. model, data, weight [n]; the weights are 1 /
 * sigma_k^2. */
void tsr_linear_fit(const tsr_linear *linear, int n, const double *model,
                    const double *data, const double *weight, tsr_fit *fit);

/* Integrates out the error of the forward model, for measurement errors s
 * sigma_k: sets the members from `scale` through `one_norm`, and log_det, from
 * fit->plain. The matrix s^2 (s^2 W^-1 + E E^T)^-1 replaces the weights W, so
 * the formulas for normal errors hold unchanged. The prior of b is included.
 * Cost: n^3 / 6 for n curves. */
void tsr_linear_add_model_error(const tsr_linear *linear,
                                const tsr_model_error *error, double log_s,
                                tsr_fit *fit);

/* Includes the prior of b in a fit without it, for measurement errors s
 * sigma_k. No effect if b is fixed or its prior is flat. */
void tsr_linear_add_prior(const tsr_linear *linear, double s, tsr_fit *fit);

/* Copies the members from `scale` through `one_norm` into fit->plain. The
 * caller sets the products with the E_j. */
void tsr_linear_save_plain(tsr_fit *fit);

/* The distribution of c and b given a fit. c has its centre at its best
 * value and the standard deviation (Student's t: width) spread / |m|, |m|^2 =
 * model_norm, and is truncated to c > 0. b has its centre at its best value for
 * that c, and the width spread / |1|, |1|^2 = one_norm. dof
 * 0: normal; with spread = s this is the exact conditional under normal errors.
 * dof > 0: Student's t, used as a proposal; if the best c is more than 2 scales
 * below 0, c has an exponential density instead. Fixed values stay fixed. */
typedef struct {
    double spread;
    int dof;
} tsr_linear_shape;

void tsr_linear_draw(const tsr_linear *linear, const tsr_fit *fit,
                     tsr_linear_shape shape, gsl_rng *rng, double *c,
                     double *b);

/* Log density of this distribution at c and b, nat; -infinity for c <= 0 if c
 * is inferred. */
double tsr_linear_log_density(const tsr_linear *linear, const tsr_fit *fit,
                              tsr_linear_shape shape, double c, double b);

/* ---- models ---- */

/* Options of a noise model. Each model has an options struct of its own, which
 * begins with the same `int model`, is not larger than this one, takes its
 * place, and is read through the field table of the model. */
typedef struct {
    int model; /* index into tsr_noise_registry */
    alignas(double) unsigned char storage[120];
} tsr_noise_options;

/* Options common to measured and student: the factor s in s sigma_exp. */
typedef struct {
    int model;
    tsr_number_or_word scale; /* infer, or a number */
    double scale_width;       /* sd of log s in its prior */
} tsr_noise_scale_options;

extern const char *const tsr_noise_infer_words[]; /* infer */

#define TSR_NOISE_SCALE_FIELDS                                                 \
    TSR_FIELD(NUMBER_OR_WORD, "scale", tsr_noise_scale_options, scale,         \
              .initial = "infer", .min = 1e-3, .max = 1e3,                     \
              .words = tsr_noise_infer_words,                                  \
              .doc = "scale s of the stated errors: inferred with a "          \
                     "log-normal prior around 1, or fixed"),                   \
        TSR_FIELD(DOUBLE, "scale_width", tsr_noise_scale_options, scale_width, \
                  .initial = "0.5", .min = 1e-3, .max = 10.0,                  \
                  .doc = "standard deviation of log s in its prior")

enum { TSR_NOISE_PARAMETERS = 2 }; /* maximum for one model */

typedef struct tsr_noise_type tsr_noise_type;

/* A noise model applied to one data set. Each model's own struct begins with
 * it. */
typedef struct {
    const tsr_noise_type *type;
    const tsr_saxs *saxs; /* borrowed for the lifetime of this struct */
    tsr_linear linear;
    int n_q;
    double *column;   /* [n_q][n] transpose of the matrix from the grid to the
                         data; NULL unless per_point */
    double *weight;   /* [n] 1 / sigma_exp^2; NULL likewise */
    int n_error;      /* number of curves of the forward model's error */
    double *curve;    /* [n_error][n] these curves at the data's q */
    double *variance; /* [n] sum of their squares */
    double log_sigma; /* sum of log sigma_exp */
} tsr_noise;

/* The arguments of tsr_noise_new. */
typedef struct {
    const tsr_noise_options *options;
    const tsr_saxs *saxs;
    const double *matrix; /* [saxs->n][n_q] from the grid to the data */
    int n_q;
    const tsr_linear *linear;
    int n_error;
    const double *error; /* [n_error][n_q] the model's own error on the grid, in
                            the data's unit; used by models with an integral */
} tsr_noise_spec;

struct tsr_noise_type {
    const char *name, *doc, *source;
    const tsr_field *fields; /* field table of its options */
    int n_parameter;
    size_t size;   /* size of the struct that begins with tsr_noise; 0: the
                      model has no struct of its own */
    int per_point; /* 1: the model uses column and weight, and model and weight
                      of the fit */
    int log_s;     /* index of the parameter log s, for normal errors */

    /* Refuses data that the model cannot describe: TSR_E_DATA. NULL: accepts
     * all data. */
    tsr_status (*check)(const tsr_saxs *saxs, tsr_err *err);

    /* The model's parameters and priors: parameter [n_parameter] out. */
    void (*parameters)(const tsr_noise_options *options,
                       tsr_parameter *parameter);

    /* Sets the members of the model's own struct that follow its tsr_noise,
     * which is already set. NULL: nothing to set. Errors: TSR_E_NOMEM. */
    tsr_status (*make)(tsr_noise *noise, const tsr_noise_spec *spec,
                       tsr_pool *pool, tsr_err *err);

    /* Fits a profile [n_q] (electrons squared, or fm^2 for neutrons, including
     * the correction of self terms) at theta, whose first n_parameter elements
     * are those of the noise model. */
    void (*fit)(const tsr_noise *noise, const double *profile,
                const double *theta, tsr_fit *fit);

    /* Updates the fit of the same profile for another theta. NULL: the fit does
     * not depend on theta. */
    void (*refit)(const tsr_noise *noise, const double *theta, tsr_fit *fit);

    /* Standard deviation of point k (of a Student's t: its scale), without the
     * model's own error. */
    double (*sigma)(const tsr_noise *noise, const double *theta, int k);

    /* log P(D | X, theta) with c and b integrated out under their priors, nat,
     * normalised in the data. NULL: no closed form. */
    double (*log_integral)(const tsr_noise *noise, const tsr_fit *fit,
                           const double *theta);

    /* log P(D | X, c, b, theta). */
    double (*log_lik)(const tsr_noise *noise, const tsr_fit *fit,
                      const double *theta, double c, double b);

    /* Conditional distribution of c and b, exact if log_integral exists. */
    tsr_linear_shape (*conditional)(const tsr_noise *noise,
                                    const double *theta);

    /* Exponent of the power law by which the density of a point falls with its
     * residual; if the exponent is inferred, the smallest of its prior. NULL:
     * the density falls faster than any power. */
    double (*tail)(const tsr_parameter *parameter);

    /* One point: log density of the residual I_exp - (c I + b), and a random
     * residual. */
    double (*log_point)(const tsr_noise *noise, const double *theta, int k,
                        double residual);
    double (*draw_point)(const tsr_noise *noise, const double *theta, int k,
                         gsl_rng *rng);
};

/* The members log_integral to draw_point of a model with normal errors s
 * sigma_k, whose fit uses weights 1 / sigma_k^2 at s = 1. The log density is
 * -infinity for c <= 0. */
#define TSR_NOISE_NORMAL                         \
    .log_integral = tsr_noise_normal_integral,   \
    .log_lik = tsr_noise_normal_log_lik,         \
    .conditional = tsr_noise_normal_conditional, \
    .log_point = tsr_noise_normal_log_point,     \
    .draw_point = tsr_noise_normal_draw_point

double tsr_noise_normal_integral(const tsr_noise *noise, const tsr_fit *fit,
                                 const double *theta);
double tsr_noise_normal_log_lik(const tsr_noise *noise, const tsr_fit *fit,
                                const double *theta, double c, double b);
tsr_linear_shape tsr_noise_normal_conditional(const tsr_noise *noise,
                                              const double *theta);
double tsr_noise_normal_log_point(const tsr_noise *noise, const double *theta,
                                  int k, double residual);
double tsr_noise_normal_draw_point(const tsr_noise *noise, const double *theta,
                                   int k, gsl_rng *rng);

/* Computes fit->model [n] from the profile, then the fit with weights 1 /
 * sigma_exp^2 and its chi2. Needs `column`. */
void tsr_noise_fit_points(const tsr_noise *noise, const double *profile,
                          tsr_fit *fit);

/* Integrates out the model's own error, and includes the prior of b, in a fit
 * of fit->model with weights [n]. */
void tsr_noise_add_error(const tsr_noise *noise, const double *weight,
                         double log_s, tsr_fit *fit);

/* Creates a noise model for one data set, in memory of the pool. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_noise_new(const tsr_noise_spec *spec, tsr_pool *pool,
                         tsr_noise **out, tsr_err *err);

/* All noise models, by the names of their structs: X(student) is
 * tsr_noise_student. The first model is the default. */
#define TSR_NOISE_MODELS(X) \
    X(measured)             \
    X(relative)             \
    X(student)

#define X(name) extern const tsr_noise_type tsr_noise_##name;
TSR_NOISE_MODELS(X)
#undef X

/* The models as an array, terminated by NULL. */
extern const tsr_noise_type *const tsr_noise_registry[];

/* Name, doc and fields of model number `number`, for the field `noise` of a
 * data set; name NULL beyond the last model. */
tsr_field_kind tsr_noise_kind(int number);

/* A field with this name for a tsr_noise_options at OFFSET of the owner. */
#define TSR_NOISE_FIELD(NAME, OFFSET)                                \
    {                                                                \
        .name = (NAME), .type = TSR_FIELD_GROUP, .offset = (OFFSET), \
        .selector = "model", .kind = tsr_noise_kind,                 \
        .size = sizeof(tsr_noise_options),                           \
        .doc = "model of the errors of the data"                     \
    }

#endif

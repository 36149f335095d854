/* Noise models of scattering curves: P(D | X, theta) of one data set.
 *
 *     I_exp,k = c m_k + b + noise,   m_k = I(q_k; X)
 *
 * A model is one file with one const struct, and a line in TSR_NOISE_MODELS:
 * the distribution of I_exp,k about c m_k + b, its options in the
 * configuration, and at most a few parameters theta of its own.
 *
 * Scale c and background b are inferred or fixed. The prior of c is flat on
 * c > 0, that of b flat on the real line. A prior log-flat in c would leave no
 * proper posterior, since the likelihood does not vanish at c = 0. With normal
 * errors noise.c has the integral over both in closed form, and their exact
 * conditional. Where they are parameters of the chain instead (`nuisance:
 * sample`, or a noise model without an integral), they are proposed from their
 * conditional, or from a density close to it. */
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

enum { TSR_BACKGROUND_INFER, TSR_BACKGROUND_NONE };

typedef struct {
    int infer_scale, infer_background;
    double scale, background; /* where they are fixed */
} tsr_linear;

/* Words of scale: infer; of background: infer, none. */
tsr_linear tsr_linear_make(tsr_number_or_word scale,
                           tsr_number_or_word background);

/* How many of the two are inferred. */
int tsr_linear_n_free(const tsr_linear *linear);

/* The model's own error in a likelihood: normal, along a few curves E_j, each
 * with an amplitude of variance 1. */
enum { TSR_MODEL_ERRORS = 6 };

typedef struct {
    int n;                                           /* 0: none */
    double gram[TSR_MODEL_ERRORS][TSR_MODEL_ERRORS]; /* weighted E_i . E_j, at
                                                        s = 1 */
} tsr_model_error;

/* A fit without it, and the weighted products of each E_j with what that fit
 * leaves of the data, with the model (background projected out), and with 1. */
typedef struct {
    double scale, background, square_sum, model_norm, model_mean, one_norm;
    double residual[TSR_MODEL_ERRORS], model[TSR_MODEL_ERRORS],
        one[TSR_MODEL_ERRORS];
} tsr_plain_fit;

/* What the likelihood keeps of one profile. The weights are those of the noise
 * model apart from its common factor s. */
typedef struct {
    double scale;        /* best c for this profile, of either sign */
    double background;   /* best b */
    double square_sum;   /* weighted sum of squares there, at s = 1 */
    double model_norm;   /* weighted |m|^2, background projected out */
    double model_mean;   /* weighted mean of the model; 0 with b fixed */
    double one_norm;     /* sum of the weights */
    double log_sigma;    /* sum of log sigma_k at s = 1 */
    double chi2;         /* least sum of squares by sigma_exp, for reports */
    double log_det;      /* 1/2 log |1 + E^T W E / s^2|; 0: no model error */
    tsr_plain_fit plain; /* where there is a model error */

    double *model;  /* [n] curve at the data's q, where the model needs it */
    double *weight; /* [n] scratch, likewise */
} tsr_fit;

/* Weighted least squares over n points; fills scale to one_norm of the fit.
 * model, data, weight [n]; the weights are 1 / sigma_k^2. */
void tsr_linear_fit(const tsr_linear *linear, int n, const double *model,
                    const double *data, const double *weight, tsr_fit *fit);

/* The fit with the model's own error integrated out: fills scale to one_norm,
 * and log_det, from fit->plain, for errors s sigma_k. The weights are then
 * those of the covariance s^2 W^-1 + E E^T, times s^2, so that all that follows
 * holds as it stands. Cost: n^3 / 6. */
void tsr_linear_widen(const tsr_linear *linear, const tsr_model_error *error,
                      double log_s, tsr_fit *fit);

/* fit->plain but its products, from the fit as tsr_linear_fit leaves it. */
void tsr_linear_keep(tsr_fit *fit);

/* The distribution of c and b that a fit leaves: c about its best value with
 * standard deviation spread / |m|, cut at 0; b about its best value at that c
 * with spread / |1|. dof 0: normal, and with spread = s exactly the conditional
 * under normal errors. dof > 0: Student's t, for proposals. What is fixed stays
 * where it is. */
typedef struct {
    double spread;
    int dof;
} tsr_linear_shape;

void tsr_linear_draw(const tsr_linear *linear, const tsr_fit *fit,
                     tsr_linear_shape shape, gsl_rng *rng, double *c,
                     double *b);

/* Its log density, nat; -infinity for c <= 0. */
double tsr_linear_log_density(const tsr_linear *linear, const tsr_fit *fit,
                              tsr_linear_shape shape, double c, double b);

/* ---- models ---- */

/* The options of any model. Each model's own struct begins with the same int
 * and is read by the model's field table. */
typedef struct {
    int model; /* index into tsr_noise_registry */
    alignas(double) unsigned char room[120];
} tsr_noise_options;

/* What measured and student have in common: s in s sigma_exp. */
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

enum { TSR_NOISE_PARAMETERS = 2 }; /* of a model, at most */

typedef struct tsr_noise_type tsr_noise_type;

/* A model on one data set; each model's own struct begins with it. */
typedef struct {
    const tsr_noise_type *type;
    const tsr_saxs *saxs; /* borrowed for as long as it lives */
    tsr_linear linear;
    int n_q;
    double *column;   /* [n_q][n] from the grid to the data, by columns, and */
    double *weight;   /* [n] 1 / sigma_exp^2: NULL unless per_point */
    int n_error;      /* curves of the model's own error; 0: none */
    double *curve;    /* [n_error][n] at the data's q, and then */
    double *variance; /* [n] the sum of their squares */
    double log_sigma; /* sum of log sigma_exp */
} tsr_noise;

/* What it is made from. */
typedef struct {
    const tsr_noise_options *options;
    const tsr_saxs *saxs;
    const double *matrix; /* [saxs->n][n_q] from the grid to the data */
    int n_q;
    const tsr_linear *linear;
    int n_error;
    const double *error; /* [n_error][n_q] on the grid, in the data's unit. Of
                            use where there is an integral */
} tsr_noise_spec;

struct tsr_noise_type {
    const char *name, *doc, *source;
    const tsr_field *fields; /* of its options */
    int n_parameter;
    size_t size;   /* of its struct; 0: it has none of its own */
    int per_point; /* 1: the fit's model and weight are used and have room */
    int log_s;     /* of normal errors: the parameter that is log s */

    /* Refuses data that the model cannot have: TSR_E_DATA. NULL: none. */
    tsr_status (*check)(const tsr_saxs *saxs, tsr_err *err);

    /* parameter [n_parameter] out. */
    void (*parameters)(const tsr_noise_options *options,
                       tsr_parameter *parameter);

    /* What its own struct has beside tsr_noise, which is filled. NULL: nothing.
     * Errors: TSR_E_NOMEM. */
    tsr_status (*make)(tsr_noise *noise, const tsr_noise_spec *spec,
                       tsr_pool *pool, tsr_err *err);

    /* profile [n_q] in electrons squared, S(q) included; theta
     * [n_parameter]. */
    void (*fit)(const tsr_noise *noise, const double *profile,
                const double *theta, tsr_fit *fit);

    /* The same profile at another theta. NULL where no parameter needs it. */
    void (*refit)(const tsr_noise *noise, const double *theta, tsr_fit *fit);

    /* Standard deviation of point k, or what there is in its place, apart from
     * the model's own error. */
    double (*sigma)(const tsr_noise *noise, const double *theta, int k);

    /* log P(D | X, theta), c and b integrated out, nat, normalised in the data.
     * NULL: there is no closed form. */
    double (*log_integral)(const tsr_noise *noise, const tsr_fit *fit,
                           const double *theta);

    /* log P(D | X, c, b, theta). */
    double (*log_lik)(const tsr_noise *noise, const tsr_fit *fit,
                      const double *theta, double c, double b);

    /* The conditional of c and b, exact where there is an integral. */
    tsr_linear_shape (*conditional)(const tsr_noise *noise,
                                    const double *theta);

    /* The least power by which the density of a point falls in its residual;
     * NULL: faster than any. */
    double (*tail)(const tsr_parameter *parameter);

    /* One point: log density of I_exp - (c I + b), and a draw of it. */
    double (*log_point)(const tsr_noise *noise, const double *theta, int k,
                        double residual);
    double (*draw_point)(const tsr_noise *noise, const double *theta, int k,
                         gsl_rng *rng);
};

/* The last of these of a model with normal errors, sigma_k times s, whose fit
 * is by weights 1 / sigma_k^2 at s = 1; -infinity for c <= 0. */
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

/* Of a model that is per_point: fit->model [n] from the profile, then the fit
 * by sigma_exp with its chi2. */
void tsr_noise_fit_points(const tsr_noise *noise, const double *profile,
                          tsr_fit *fit);

/* Errors: TSR_E_NOMEM. */
tsr_status tsr_noise_new(const tsr_noise_spec *spec, tsr_pool *pool,
                         tsr_noise **out, tsr_err *err);

/* All models, by the names of their structs: X(student) is tsr_noise_student.
 * The first is the default. */
#define TSR_NOISE_MODELS(X) \
    X(measured)             \
    X(relative)             \
    X(student)

#define X(name) extern const tsr_noise_type tsr_noise_##name;
TSR_NOISE_MODELS(X)
#undef X

/* The same as a list, which ends with NULL. */
extern const tsr_noise_type *const tsr_noise_registry[];

/* For the field `noise` of a data set: the models as kinds of one struct, of
 * which `model` is the selector. */
tsr_field_kind tsr_noise_kind(int number);

/* A field of that name, tsr_noise_options at `offset`. */
#define TSR_NOISE_FIELD(NAME, OFFSET)                                \
    {                                                                \
        .name = (NAME), .type = TSR_FIELD_GROUP, .offset = (OFFSET), \
        .selector = "model", .kind = tsr_noise_kind,                 \
        .size = sizeof(tsr_noise_options),                           \
        .doc = "model of the errors of the data"                     \
    }

/* Makes them the usual options of the model of that name, where they are of
 * another. Errors: TSR_E_CONFIG, which names those that there are. */
tsr_status tsr_noise_choose(tsr_noise_options *options, const char *name,
                            tsr_err *err);

#endif

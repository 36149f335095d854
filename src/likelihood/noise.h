/* Noise models of scattering curves: P(D | X, theta) of one data set.
 *
 * A model is one file with one const struct, and a line in TSR_NOISE_MODELS:
 * the distribution of I_exp,k about c I(q_k; X) + b, its options in the
 * configuration, and at most a few parameters theta of its own. Scale c and
 * background b (scattering/linear.h) are integrated out where the model has an
 * integral in closed form, and sampled with the chain where it has none or the
 * config asks for it. */
#ifndef TSR_LIKELIHOOD_NOISE_H
#define TSR_LIKELIHOOD_NOISE_H

#include "core/field.h"
#include "core/parameter.h"
#include "core/random.h"
#include "core/status.h"
#include "scattering/linear.h"
#include "scattering/saxs.h"

#include <stdalign.h>

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

#define TSR_NOISE_SCALE_FIELDS                                         \
    {.name = "scale",                                                  \
     .type = TSR_FIELD_NUMBER_OR_WORD,                                 \
     .offset = offsetof(tsr_noise_scale_options, scale),               \
     .initial = "infer",                                               \
     .min = 1e-3,                                                      \
     .max = 1e3,                                                       \
     .words = tsr_noise_infer_words,                                   \
     .doc = "s: inferred with a log-normal prior around 1, or fixed"}, \
    {                                                                  \
        .name = "scale_width", .type = TSR_FIELD_DOUBLE,               \
        .offset = offsetof(tsr_noise_scale_options, scale_width),      \
        .initial = "0.5", .min = 1e-3, .max = 10.0,                    \
        .doc = "standard deviation of log s in its prior"              \
    }

enum { TSR_NOISE_PARAMETERS = 2 }; /* of a model, at most */

/* What a state is made from. */
typedef struct {
    const tsr_noise_options *options;
    const tsr_saxs *saxs; /* borrowed for as long as the state lives */
    const double *matrix; /* [saxs->n][n_q] from the grid to the data; copied */
    int n_q;
    const tsr_linear *linear; /* copied */
    int n_error;              /* curves of the model's own error; 0: none */
    const double *error;      /* [n_error][n_q] on the grid, in the data's unit;
                                 copied. Of use where there is an integral */
} tsr_noise_spec;

/* The curves of the model's own error at the data's q: out [n_error][saxs->n];
 * variance [saxs->n] out, the sum of their squares. */
void tsr_noise_carry_errors(const tsr_noise_spec *spec, double *out,
                            double *variance);

typedef struct {
    const char *name, *doc, *source;
    const tsr_field *fields; /* of its options */
    int n_parameter;
    int per_point; /* 1: the fit's model and weight are used and have room */

    /* Refuses data that the model cannot have: TSR_E_DATA. NULL: none. */
    tsr_status (*check)(const tsr_saxs *saxs, tsr_err *err);

    /* parameter [n_parameter] out. */
    void (*parameters)(const tsr_noise_options *options,
                       tsr_parameter *parameter);

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
    double (*tail)(const tsr_parameter *parameter);

    /* One point: log density of I_exp - (c I + b), and a draw of it. */
    double (*log_point)(const void *state, const double *theta, int k,
                        double residual);
    double (*draw_point)(const void *state, const double *theta, int k,
                         gsl_rng *rng);
} tsr_noise_type;

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
#define TSR_NOISE_FIELD(NAME, OFFSET)                                      \
    {                                                                      \
        .name = (NAME), .type = TSR_FIELD_GROUP, .offset = (OFFSET),       \
        .selector = "model", .kind = tsr_noise_kind,                       \
        .size = sizeof(tsr_noise_options), .doc = "the errors of the data" \
    }

/* Makes them the usual options of the model of that name, where they are of
 * another. Errors: TSR_E_CONFIG, which names those that there are. */
tsr_status tsr_noise_choose(tsr_noise_options *options, const char *name,
                            tsr_err *err);

#endif

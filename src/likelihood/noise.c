#include "likelihood/noise.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <string.h>

const tsr_noise_type *const tsr_noise_registry[] = {
    &tsr_noise_measured, &tsr_noise_relative, &tsr_noise_student, NULL};

static const char *const model_words[] = {"measured", "relative", "student",
                                          NULL};
static const char *const infer_words[] = {"infer", NULL};

const tsr_field tsr_noise_fields[] = {
    {.name = "model",
     .type = TSR_FIELD_CHOICE,
     .offset = offsetof(tsr_noise_options, model),
     .initial = "measured",
     .words = model_words,
     .doc = "measured: normal, sigma = s sigma_exp; relative: normal, sigma = "
            "I_exp (q + alpha) beta; student: t with nu degrees of freedom, "
            "scale s sigma_exp"},
    {.name = "scale",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_noise_options, scale),
     .initial = "infer",
     .min = 1e-3,
     .max = 1e3,
     .words = infer_words,
     .doc = "s (measured, student): inferred with a log-normal prior around 1, "
            "or fixed"},
    {.name = "scale_width",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_noise_options, scale_width),
     .initial = "0.5",
     .min = 1e-3,
     .max = 10.0,
     .doc = "standard deviation of log s in its prior"},
    {.name = "alpha",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_noise_options, alpha),
     .unit = "1/Angstrom",
     .initial = "0.15",
     .min = 1e-4,
     .max = 100.0,
     .words = infer_words,
     .doc = "of relative: fixed, or inferred with a log-normal prior around "
            "0.15"},
    {.name = "alpha_width",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_noise_options, alpha_width),
     .initial = "0.5",
     .min = 1e-3,
     .max = 10.0,
     .doc = "standard deviation of log alpha in its prior"},
    {.name = "beta",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_noise_options, beta),
     .unit = "Angstrom",
     .initial = "0.3",
     .min = 1e-4,
     .max = 1e3,
     .words = infer_words,
     .doc = "of relative: fixed, or inferred with a log-normal prior around "
            "0.3"},
    {.name = "beta_width",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_noise_options, beta_width),
     .initial = "0.5",
     .min = 1e-3,
     .max = 10.0,
     .doc = "standard deviation of log beta in its prior"},
    {.name = "nu",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_noise_options, nu),
     .initial = "infer",
     .min = 1.1,
     .max = 1e4,
     .words = infer_words,
     .doc = "degrees of freedom of student: fixed, or inferred with a prior "
            "Gamma(2, 0.1) on nu > 1"},
    {0}};

double tsr_noise_value(const tsr_noise_prior *prior, double theta)
{
    return prior->low + exp(theta);
}

double tsr_noise_log_prior(const tsr_noise_prior *prior, double theta)
{
    const double half_log_2pi = 0.9189385332046727;
    const tsr_noise_prior *p = prior;
    if (!p->infer)
        return 0.0;
    if (p->width > 0.0) {
        double z = (theta - p->mean) / p->width;
        return -0.5 * z * z - log(p->width) - half_log_2pi;
    }
    double value = tsr_noise_value(p, theta);
    return p->shape * log(p->rate) - gsl_sf_lngamma(p->shape) +
           (p->shape - 1.0) * log(value) - p->rate * value -
           log(gsl_cdf_gamma_Q(p->low, p->shape, 1.0 / p->rate)) + theta;
}

tsr_noise_prior tsr_noise_log_normal(tsr_number_or_word value, double middle,
                                     double width)
{
    int infer = value.word == TSR_INFER;
    return (tsr_noise_prior){.infer = infer,
                             .start = log(infer ? middle : value.number),
                             .mean = log(middle),
                             .width = width};
}

static int reads(const tsr_noise_type *type, const char *key)
{
    for (int k = 0; type->keys[k] != NULL; k++)
        if (strcmp(type->keys[k], key) == 0)
            return 1;
    return strcmp(key, "model") == 0;
}

tsr_status tsr_noise_check_options(const tsr_noise_options *options, int number,
                                   tsr_err *err)
{
    const tsr_noise_type *type = tsr_noise_registry[options->model];
    tsr_noise_options usual;
    tsr_status status = tsr_fields_init(tsr_noise_fields, &usual, err);
    for (const tsr_field *f = tsr_noise_fields; f->name != NULL; f++) {
        char text[64], initial[64];
        if (status != TSR_OK || reads(type, f->name))
            continue;
        tsr_field_format(f, options, text, sizeof text);
        tsr_field_format(f, &usual, initial, sizeof initial);
        if (strcmp(text, initial) != 0)
            return tsr_fail(err, TSR_E_CONFIG,
                            "data.%d.noise.%s: %s has no effect with the "
                            "noise model %s",
                            number, f->name, text, type->name);
    }
    return status;
}

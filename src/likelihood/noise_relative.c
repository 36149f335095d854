/* Noise model `relative`: normal errors, sigma_k = I_exp,k (q_k + alpha) beta.
 *
 * beta is the common factor s of noise.h. alpha changes the relative weights of
 * the points, so a new alpha needs a new fit of the curve at the data's q. */
#include "likelihood/noise.h"

#include <math.h>

enum { ALPHA, BETA };

typedef struct {
    int model;
    tsr_number_or_word alpha; /* infer, or a number, 1/Angstrom */
    double alpha_width;       /* standard deviation of log alpha in its prior */
    tsr_number_or_word beta;
    double beta_width;
} relative_options;

static const tsr_field fields[] = {
    TSR_FIELD(NUMBER_OR_WORD, "alpha", relative_options, alpha,
              .unit = "1/Angstrom", .initial = "0.15", .min = 1e-4,
              .max = 100.0, .words = tsr_noise_infer_words,
              .doc = "fixed, or inferred with a log-normal prior around 0.15"),
    TSR_FIELD(DOUBLE, "alpha_width", relative_options, alpha_width,
              .initial = "0.5", .min = 1e-3, .max = 10.0,
              .doc = "standard deviation of log alpha in its prior"),
    TSR_FIELD(NUMBER_OR_WORD, "beta", relative_options, beta,
              .unit = "Angstrom", .initial = "0.3", .min = 1e-4, .max = 1e3,
              .words = tsr_noise_infer_words,
              .doc = "fixed, or inferred with a log-normal prior around 0.3"),
    TSR_FIELD(DOUBLE, "beta_width", relative_options, beta_width,
              .initial = "0.5", .min = 1e-3, .max = 10.0,
              .doc = "standard deviation of log beta in its prior"),
    {0}};

typedef struct {
    tsr_noise noise;
    double log_intensity; /* sum of log I_exp */
    int is_fixed;         /* 1: alpha is fixed, and log_fixed is valid */
    double log_fixed;     /* sum of log(q + alpha) */
} relative;

static tsr_status relative_check(const tsr_saxs *saxs, tsr_err *err)
{
    int n = 0, first = -1;
    for (int k = 0; k < saxs->n; k++)
        if (!(saxs->intensity[k] > 0.0)) {
            first = first < 0 ? k : first;
            n++;
        }
    if (n == 0)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': the noise model relative derives the errors from "
                    "I(q), but %d of %d points have I <= 0, the first I = %g "
                    "at q = %.4f 1/A; narrow q_range, or choose measured",
                    saxs->path, n, saxs->n, saxs->intensity[first],
                    saxs->q[first]);
}

static double sum_log_q(const tsr_saxs *saxs, double alpha)
{
    double sum = 0.0;
    for (int k = 0; k < saxs->n; k++)
        sum += log(saxs->q[k] + alpha);
    return sum;
}

static tsr_status relative_make(tsr_noise *noise, const tsr_noise_spec *spec,
                                tsr_pool *pool, tsr_err *err)
{
    relative *s = (relative *)noise;
    const relative_options *o = (const void *)spec->options;
    (void)pool, (void)err;
    for (int k = 0; k < spec->saxs->n; k++)
        s->log_intensity += log(spec->saxs->intensity[k]);
    s->is_fixed = o->alpha.word < 0;
    if (s->is_fixed)
        s->log_fixed = sum_log_q(spec->saxs, o->alpha.number);
    return TSR_OK;
}

static void relative_refit(const tsr_noise *noise, const double *theta,
                           tsr_fit *fit)
{
    const relative *s = (const relative *)noise;
    const tsr_saxs *saxs = noise->saxs;
    double alpha = exp(theta[ALPHA]);
    for (int k = 0; k < saxs->n; k++) {
        double sigma = saxs->intensity[k] * (saxs->q[k] + alpha);
        fit->weight[k] = 1.0 / (sigma * sigma);
    }
    tsr_linear_fit(&noise->linear, saxs->n, fit->model, saxs->intensity,
                   fit->weight, fit);
    fit->log_sigma = s->log_intensity +
                     (s->is_fixed ? s->log_fixed : sum_log_q(saxs, alpha));
    if (noise->n_error > 0 || noise->linear.background_sd > 0.0)
        tsr_noise_add_error(noise, fit->weight, theta[BETA], fit);
}

static void relative_fit(const tsr_noise *noise, const double *profile,
                         const double *theta, tsr_fit *fit)
{
    tsr_noise_fit_points(noise, profile, fit);
    relative_refit(noise, theta, fit);
}

static double relative_sigma(const tsr_noise *noise, const double *theta, int k)
{
    const tsr_saxs *saxs = noise->saxs;
    return saxs->intensity[k] * (saxs->q[k] + exp(theta[ALPHA])) *
           exp(theta[BETA]);
}

static void relative_parameters(const tsr_noise_options *options,
                                tsr_parameter *parameter)
{
    const relative_options *o = (const void *)options;
    parameter[ALPHA] = tsr_parameter_log_normal(
        "noise_alpha", "1/Angstrom", "alpha in sigma = I_exp (q + alpha) beta",
        o->alpha, 0.15, o->alpha_width, TSR_CHANGES_FIT);
    parameter[BETA] = tsr_parameter_log_normal(
        "noise_beta", "Angstrom", "beta in sigma = I_exp (q + alpha) beta",
        o->beta, 0.3, o->beta_width, TSR_CHANGES_LIKELIHOOD);
}

const tsr_noise_type tsr_noise_relative = {
    .name = "relative",
    .doc = "normal errors, sigma = I_exp (q + alpha) beta",
    .source = "Stovgaard et al. 2010; Antonov et al. 2013, Eq. 4",
    .fields = fields,
    .n_parameter = 2,
    .size = sizeof(relative),
    .per_point = 1,
    .log_s = BETA,
    .check = relative_check,
    .parameters = relative_parameters,
    .make = relative_make,
    .fit = relative_fit,
    .refit = relative_refit,
    .sigma = relative_sigma,
    TSR_NOISE_NORMAL};

/* Prior densities of parameters. They are normalised, so that log posteriors of
 * runs with different parameters can be compared. For calibration tests,
 * tests/parameter_draw.h draws from every proper prior. */
#include "core/parameter.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

double tsr_parameter_value(const tsr_parameter *parameter, double theta)
{
    return parameter->is_log ? parameter->low + exp(theta) : theta;
}

double tsr_parameter_theta(const tsr_parameter *parameter, double value)
{
    return parameter->is_log ? log(value - parameter->low) : value;
}

static double log_normal(const tsr_parameter *p, double theta)
{
    const double half_log_2pi = 0.9189385332046727;
    double z = (theta - p->mean) / p->width;
    return -0.5 * z * z - log(p->width) - half_log_2pi;
}

static double log_cut_normal(const tsr_parameter *p, double theta)
{
    if (!(theta >= p->low && theta <= p->high))
        return -(double)INFINITY;
    double z = (theta - p->mean) / p->width;
    return p->log_norm - 0.5 * z * z;
}

/* Gamma density of the value; the last term is the Jacobian of theta =
 * log(value - low). */
static double log_gamma(const tsr_parameter *p, double theta)
{
    double value = tsr_parameter_value(p, theta);
    return p->gamma_k * log(p->rate) - gsl_sf_lngamma(p->gamma_k) +
           (p->gamma_k - 1.0) * log(value) - p->rate * value -
           log(gsl_cdf_gamma_Q(p->low, p->gamma_k, 1.0 / p->rate)) + theta;
}

double tsr_parameter_log_prior(const tsr_parameter *parameter, double theta)
{
    if (!parameter->infer)
        return 0.0;
    switch (parameter->shape) {
    case TSR_PRIOR_NORMAL:
        return log_normal(parameter, theta);
    case TSR_PRIOR_CUT_NORMAL:
        return log_cut_normal(parameter, theta);
    case TSR_PRIOR_UNIFORM:
        return fabs(theta - parameter->mean) <= parameter->width
                   ? -log(2.0 * parameter->width)
                   : -(double)INFINITY;
    case TSR_PRIOR_GAMMA:
        return log_gamma(parameter, theta);
    case TSR_PRIOR_SIMPLEX:
        return theta > 0.0 ? parameter->log_norm : -(double)INFINITY;
    case TSR_PRIOR_FLAT:
        break;
    }
    return 0.0;
}

/* Range that contains nearly all of the prior. */
static void density_range(const tsr_parameter *p, double *low, double *high)
{
    /* standard deviations, or halves of a uniform range */
    const double far = p->shape == TSR_PRIOR_UNIFORM ? 1.0 : 4.0;
    if (p->shape == TSR_PRIOR_SIMPLEX) {
        *low = 0.0;
        *high = 1.0;
    } else if (p->shape == TSR_PRIOR_GAMMA) {
        *low = p->low;
        *high = (p->gamma_k + far * sqrt(p->gamma_k)) / p->rate;
    } else {
        *low = tsr_parameter_value(p, p->mean - far * p->width);
        *high = tsr_parameter_value(p, p->mean + far * p->width);
    }
    if (p->shape == TSR_PRIOR_CUT_NORMAL) {
        *low = fmax(*low, p->low);
        *high = fmin(*high, p->high);
    }
}

int tsr_parameter_density(const tsr_parameter *p, int n_weight, int n,
                          double *x, double *y)
{
    double low, high;
    if (!p->infer || p->shape == TSR_PRIOR_FLAT)
        return 0;
    density_range(p, &low, &high);
    for (int i = 0; i < n; i++) {
        x[i] = low + (high - low) * (i + 0.5) / n;
        if (p->shape == TSR_PRIOR_SIMPLEX)
            y[i] = (n_weight - 1) * pow(1.0 - x[i], n_weight - 2);
        else
            y[i] =
                exp(tsr_parameter_log_prior(p, tsr_parameter_theta(p, x[i]))) /
                (p->is_log ? x[i] - p->low : 1.0);
    }
    return 1;
}

tsr_parameter tsr_parameter_log_normal(const char *name, const char *unit,
                                       const char *doc,
                                       tsr_number_or_word value, double middle,
                                       double width, tsr_scope scope)
{
    int infer = value.word >= 0;
    return (tsr_parameter){.name = name,
                           .unit = unit,
                           .doc = doc,
                           .infer = infer,
                           .is_log = 1,
                           .start = log(infer ? middle : value.number),
                           .high = HUGE_VAL,
                           .shape = TSR_PRIOR_NORMAL,
                           .mean = log(middle),
                           .width = width,
                           .step = infer ? TSR_STEP_WALK : TSR_STEP_NONE,
                           .scope = scope};
}

int tsr_parameter_quantiles(const tsr_parameter *p, int n, double *value)
{
    const double low = gsl_cdf_ugaussian_P((p->low - p->mean) / p->width);
    const double high = gsl_cdf_ugaussian_P((p->high - p->mean) / p->width);
    value[0] = p->start;
    if (!p->infer)
        return 1;
    for (int i = 0; i < n; i++)
        value[i] = p->mean + p->width * gsl_cdf_ugaussian_Pinv(
                                            low + (high - low) * (i + 0.5) / n);
    return n;
}

/* Noise model `student`: (I_exp - c I - b) / (s sigma_exp) follows Student's t
 * with nu degrees of freedom, so outliers have little influence on the fit.
 *
 * The likelihood has no closed-form integral over c and b, so both are
 * parameters of the chain. A step to a new structure draws new c and b from an
 * approximation of their conditional: a t with TAIL degrees of freedom about
 * the mode. The mode comes from iteratively reweighted least squares with
 * weights (nu + 1) / (nu + z^2) at residuals z (Lange et al. 1989). The scale
 * of the t follows from the Fisher information of Student's t, which is (nu +
 * 1) / (nu + 3) times that of normal errors. The approximation affects the
 * acceptance rate, but not the sampled distribution. */
#include "core/vec3.h"
#include "likelihood/noise.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

enum { SCALE, NU };

typedef struct {
    tsr_noise_scale_options s;
    tsr_number_or_word nu;
} student_options;

static const tsr_field fields[] = {
    TSR_NOISE_SCALE_FIELDS,
    TSR_FIELD(
        NUMBER_OR_WORD, "nu", student_options, nu, .initial = "infer",
        .min = 1.1, .max = 1e4, .words = tsr_noise_infer_words,
        .doc =
            "degrees of freedom: fixed, or inferred with a prior Gamma(2, 0.1) "
            "on nu > 1"),
    {0}};

enum { TAIL = 12, MAX_ROUND = 25 };
static const double nu_low = 1.0;

static double nu_of(const double *theta)
{
    return nu_low + exp(theta[NU]);
}

/* Computes new weights from the residuals at the current c and b, and fits
 * again. */
static void reweight(const tsr_noise *s, double nu, double inv_s2, tsr_fit *fit)
{
    const tsr_saxs *saxs = s->saxs;
    double c = fit->scale, b = fit->background;
    for (int k = 0; k < saxs->n; k++) {
        double r = saxs->intensity[k] - c * fit->model[k] - b;
        double w = s->weight[k];
        fit->weight[k] = w * (nu + 1.0) / (nu + r * r * w * inv_s2);
    }
    tsr_linear_fit(&s->linear, saxs->n, fit->model, saxs->intensity,
                   fit->weight, fit);
}

/* Iterates `reweight` until c and b move by less than 0.01 standard deviations.
 * On entry the fit is the least-squares fit, so that the result, and with it
 * the proposal, depends on the structure and theta only. */
static void find_mode(const tsr_noise *s, const double *theta, tsr_fit *fit)
{
    double nu = nu_of(theta), inv_s2 = exp(-2.0 * theta[SCALE]);
    for (int round = 0; round < MAX_ROUND; round++) {
        double c = fit->scale, b = fit->background;
        reweight(s, nu, inv_s2, fit);
        double dc = fit->scale - c, db = fit->background - b;
        double change = fit->model_norm * dc * dc;
        db += dc * fit->model_mean;
        change += fit->one_norm * db * db;
        if (!(change * inv_s2 > 1e-4)) /* 0.01 standard deviations */
            break;
    }
    fit->log_sigma = s->log_sigma;
    tsr_linear_add_prior(&s->linear, s->type->conditional(s, theta).spread,
                         fit);
}

static void student_refit(const tsr_noise *noise, const double *theta,
                          tsr_fit *fit)
{
    tsr_linear_fit(&noise->linear, noise->saxs->n, fit->model,
                   noise->saxs->intensity, noise->weight, fit);
    find_mode(noise, theta, fit);
}

static void student_fit(const tsr_noise *noise, const double *profile,
                        const double *theta, tsr_fit *fit)
{
    tsr_noise_fit_points(noise, profile, fit);
    find_mode(noise, theta, fit);
}

/* Log of Student's t density at 0, at scale 1. */
static double log_top(double nu)
{
    return gsl_sf_lngamma(0.5 * (nu + 1.0)) - gsl_sf_lngamma(0.5 * nu) -
           0.5 * log(TSR_PI * nu);
}

/* One logarithm for a product of BLOCK factors. A factor is at least 1, and
 * below 1e70 for |z| < 1e35, so the product does not overflow. */
static double student_log_lik(const tsr_noise *noise, const tsr_fit *fit,
                              const double *theta, double c, double b)
{
    enum { BLOCK = 4 };
    const tsr_saxs *saxs = noise->saxs;
    double nu = nu_of(theta), sum = 0.0, product = 1.0;
    double inverse = exp(-2.0 * theta[SCALE]) / nu;
    if (!(c > 0.0))
        return -(double)INFINITY;
    for (int k = 0; k < saxs->n; k++) {
        double r = saxs->intensity[k] - c * fit->model[k] - b;
        product *= 1.0 + r * r * noise->weight[k] * inverse;
        if (k % BLOCK == BLOCK - 1) {
            sum += log(product);
            product = 1.0;
        }
    }
    sum += log(product);
    return saxs->n * (log_top(nu) - theta[SCALE]) - noise->log_sigma -
           0.5 * (nu + 1.0) * sum;
}

static tsr_linear_shape student_conditional(const tsr_noise *noise,
                                            const double *theta)
{
    (void)noise;
    double nu = nu_of(theta);
    return (tsr_linear_shape){exp(theta[SCALE]) * sqrt((nu + 3.0) / (nu + 1.0)),
                              TAIL};
}

static double student_tail(const tsr_parameter *parameter)
{
    const tsr_parameter *p = &parameter[NU];
    return (p->infer ? nu_low : nu_low + exp(p->start)) + 1.0;
}

static double student_sigma(const tsr_noise *noise, const double *theta, int k)
{
    return exp(theta[SCALE]) * noise->saxs->sigma[k];
}

static double student_log_point(const tsr_noise *noise, const double *theta,
                                int k, double residual)
{
    double nu = nu_of(theta), sd = student_sigma(noise, theta, k);
    double z = residual / sd;
    return log_top(nu) - log(sd) - 0.5 * (nu + 1.0) * log1p(z * z / nu);
}

static double student_draw_point(const tsr_noise *noise, const double *theta,
                                 int k, gsl_rng *rng)
{
    return student_sigma(noise, theta, k) * gsl_ran_tdist(rng, nu_of(theta));
}

static void student_parameters(const tsr_noise_options *options,
                               tsr_parameter *parameter)
{
    const double start = 10.0;
    const student_options *o = (const void *)options;
    int infer = o->nu.word >= 0;
    parameter[SCALE] = tsr_parameter_log_normal(
        "noise_scale", NULL,
        "scale s; an error is s sigma_exp times a t variable", o->s.scale, 1.0,
        o->s.scale_width, TSR_CHANGES_FIT);
    parameter[NU] = (tsr_parameter){
        .name = "noise_nu",
        .doc = "degrees of freedom of the t distribution of the errors",
        .infer = infer,
        .is_log = 1,
        .low = nu_low,
        .high = HUGE_VAL,
        .start = log((infer ? start : o->nu.number) - nu_low),
        .shape = TSR_PRIOR_GAMMA,
        .gamma_k = 2.0,
        .rate = 0.1,
        .step = infer ? TSR_STEP_WALK : TSR_STEP_NONE,
        .scope = TSR_CHANGES_FIT};
}

const tsr_noise_type tsr_noise_student = {
    .name = "student",
    .doc = "errors of Student's t distribution with nu degrees of freedom and "
           "scale s sigma_exp",
    .source = "Lange et al. 1989; prior of nu: Juarez & Steel 2010",
    .fields = fields,
    .n_parameter = 2,
    .per_point = 1,
    .parameters = student_parameters,
    .fit = student_fit,
    .refit = student_refit,
    .sigma = student_sigma,
    .log_lik = student_log_lik,
    .conditional = student_conditional,
    .tail = student_tail,
    .log_point = student_log_point,
    .draw_point = student_draw_point};

/* The integral over scale, background and noise equals a sum over a grid, for
 * good fits and for errors far from those stated. */
#include "likelihood/term_saxs.h"
#include "tests/saxs_likelihood.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

enum { N = 40 };
static double q[N], intensity[N], sigma[N];

static double sphere(double at, double r_ang)
{
    const double x = at * r_ang;
    const double f = 3.0 * (sin(x) - x * cos(x)) / (x * x * x);
    return 1e6 * f * f;
}

/* Errors `factor` times those stated; three points in forty are far off. */
static void measure(tsr_saxs *saxs, double factor)
{
    static char name[] = "spheres";
    gsl_rng *rng = rng_new(7, 0);
    for (int k = 0; k < N; k++) {
        q[k] = 0.01 + 0.24 * k / (N - 1);
        const double i = 1e-4 * sphere(q[k], 25.0) + 2.0;
        sigma[k] = 0.02 * i + 0.2;
        intensity[k] = i + gsl_ran_gaussian(rng, factor * sigma[k]) +
                       (k % 13 == 5 ? 6.0 * sigma[k] : 0.0);
    }
    *saxs = (tsr_saxs){
        .path = name, .n = N, .q = q, .intensity = intensity, .sigma = sigma};
}

/* The term of a data set to which profiles come at the data's own q. */
static tsr_saxs_term *term_of(const tsr_data_set *set)
{
    tsr_term *term;
    double *same = calloc((size_t)N * N, sizeof *same);
    for (int k = 0; k < N; k++)
        same[k * N + k] = 1.0;
    OK(tsr_saxs_term_new(set, 0, &term, &err));
    tsr_saxs_term *t = (tsr_saxs_term *)term;
    OK(tsr_saxs_term_prepare(t, N, same, &err));
    return t;
}

static double by_grid(const tsr_saxs_term *term, tsr_fit *fit,
                      const double *profile, const double *theta)
{
    enum { REACH = 60 };
    const double h = 0.2;
    term->noise->fit(term->state, profile, theta, fit);
    const double spread = term->noise->conditional(term->state, theta).spread;
    const double sd_c = spread / sqrt(fit->model_norm),
                 sd_b = spread / sqrt(fit->one_norm);
    const double top = term->noise->log_lik(term->state, fit, theta, fit->scale,
                                            fit->background);
    double sum = 0.0;
    for (int i = -REACH; i <= REACH; i++)
        for (int j = -REACH; j <= REACH; j++) {
            const double c = fit->scale + i * h * sd_c;
            const double b = fit->background -
                             (c - fit->scale) * fit->model_mean + j * h * sd_b;
            sum +=
                exp(term->noise->log_lik(term->state, fit, theta, c, b) - top);
        }
    return top + log(sum * h * h * sd_c * sd_b);
}

TEST(test_student)
{
    tsr_saxs saxs;
    tsr_data_set set = {.saxs = &saxs};
    double model[N], weight[N], profile[N], theta[TSR_TERM_PARAMETERS];
    double low = HUGE_VAL, high = -HUGE_VAL;
    tsr_fit fit = {.model = model, .weight = weight};
    measure(&saxs, 1.0);
    set.noise = noise_of("student");
    noise_set(&set.noise, "scale", "1");
    noise_set(&set.noise, "nu", "3");
    tsr_saxs_term *term = term_of(&set);
    tsr_term_start(&term->term, theta);
    for (double r = 24.0; r < 26.1; r += 0.25) {
        for (int k = 0; k < N; k++)
            profile[k] = sphere(q[k], r);
        const double off = tsr_marginal_log(term, profile, &fit, NULL, NULL) -
                           by_grid(term, &fit, profile, theta);
        low = fmin(low, off);
        high = fmax(high, off);
    }
    /* of order 1 / N, and much the same for every curve: nat */
    if (!(high - low < 0.03))
        fail_msg("%g to %g nat", low, high);
    assert_true(fmax(fabs(low), fabs(high)) < 0.05);
    tsr_term_free(&term->term);
}

TEST(test_poor_fit)
{
    enum { STEPS = 4000 };
    const double first = -2.0, last = 8.0, h = (last - first) / STEPS;
    tsr_saxs saxs;
    tsr_data_set set = {.saxs = &saxs};
    double profile[N], value[STEPS], top = -HUGE_VAL, sum = 0.0;
    double theta[TSR_NOISE_PARAMETERS] = {0.0};
    tsr_fit fit = {.scale = 0.0};
    measure(&saxs, 100.0);
    for (int k = 0; k < N; k++)
        profile[k] = sphere(q[k], 25.0);
    set.noise = noise_of("measured");
    tsr_saxs_term *term = term_of(&set);
    const double got = tsr_marginal_log(term, profile, &fit, NULL, NULL);
    for (int i = 0; i < STEPS; i++) {
        theta[0] = first + h * (i + 0.5);
        value[i] = tsr_parameter_log_prior(&term->term.parameter[0], theta[0]) +
                   term->noise->log_integral(term->state, &fit, theta);
        top = fmax(top, value[i]);
    }
    for (int i = 0; i < STEPS; i++)
        sum += h * exp(value[i] - top);
    if (!(fabs(got - top - log(sum)) < 1e-3))
        fail_msg("%g, not %g", got, top + log(sum));
    tsr_term_free(&term->term);
}

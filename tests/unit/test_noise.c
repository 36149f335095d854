/* The `measured` noise model against brute-force integrals. */
#include "likelihood/noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_Q = 6, MAX_N = 40 };

typedef struct {
    tsr_saxs saxs;
    double q[MAX_N], intensity[MAX_N], sigma[MAX_N];
    double matrix[MAX_N * N_Q], profile[N_Q], model[MAX_N];
} problem;

/* Data near scale * model + background; matrix and profile are random. */
static void make_problem(problem *p, int n, double scale, double background,
                         uint64_t seed)
{
    gsl_rng *rng = tsr_rng_new(seed, 0);
    memset(p, 0, sizeof *p);
    for (int j = 0; j < N_Q; j++)
        p->profile[j] = 10.0 + 3.0 * j + gsl_ran_gaussian(rng, 1.0);
    for (int k = 0; k < n; k++) {
        for (int j = 0; j < N_Q; j++) {
            p->matrix[k * N_Q + j] = gsl_ran_gaussian(rng, 0.3);
            p->model[k] += p->matrix[k * N_Q + j] * p->profile[j];
        }
        p->q[k] = 0.01 * (k + 1);
        p->sigma[k] = 0.5 + gsl_rng_uniform(rng);
        p->intensity[k] = scale * p->model[k] + background +
                          gsl_ran_gaussian(rng, p->sigma[k]);
    }
    p->saxs = (tsr_saxs){
        .n = n, .q = p->q, .intensity = p->intensity, .sigma = p->sigma};
    gsl_rng_free(rng);
}

static double log_density(const problem *p, double c, double b, double s)
{
    double sum = 0.0;
    for (int k = 0; k < p->saxs.n; k++) {
        double sd = s * p->sigma[k];
        double z = (p->intensity[k] - c * p->model[k] - b) / sd;
        sum -= 0.5 * z * z + log(sd) + 0.5 * log(2.0 * 3.14159265358979324);
    }
    return sum;
}

static const tsr_noise_type *type = &tsr_noise_measured;
static const tsr_noise_options options = {0, {TSR_INFER, 0.0}, 0.5};
static const tsr_number_or_word infer = {TSR_BACKGROUND_INFER, 0.0};

/* The integral over c > 0 (Simpson; the cut at 0 may be steep) and b (sums of a
 * whole Gaussian are exact) over +-9 standard deviations. */
static double integral(const problem *p, const tsr_fit *fit, double s,
                       int with_background)
{
    enum { M = 600 };
    double one = 0.0, top = log_density(p, fit->scale > 0 ? fit->scale : 0.0,
                                        fit->background, s);
    for (int k = 0; k < p->saxs.n; k++)
        one += 1.0 / (p->sigma[k] * p->sigma[k]);
    double sd_c = s / sqrt(fit->model_norm), sd_b = s / sqrt(one);
    double low = fmax(0.0, fit->scale - 9.0 * sd_c);
    double high = fmax(0.0, fit->scale) + 9.0 * sd_c, sum = 0.0;
    if (fit->scale < 0.0) /* the tail falls as exp(c scale / sd_c^2) */
        high = fmin(high, 40.0 * sd_c * sd_c / -fit->scale);
    double dc = (high - low) / M, db = 18.0 * sd_b / 200;
    for (int i = 0; i <= M; i++) {
        double c = low + i * dc, inner = 0.0;
        double middle = fit->background - (c - fit->scale) * fit->model_mean;
        if (!with_background)
            inner = exp(log_density(p, c, fit->background, s) - top);
        for (int j = 0; with_background && j <= 200; j++)
            inner +=
                db * exp(log_density(p, c, middle + (j - 100) * db, s) - top);
        sum += dc / 3.0 * inner * (i == 0 || i == M ? 1.0 : i % 2 ? 4.0 : 2.0);
    }
    return top + log(sum);
}

static void against_quadrature(void **state)
{
    (void)state;
    static const struct {
        int n;
        double scale, background;
        tsr_number_or_word b;
    } cases[] = {{30, 2.0, 5.0, {TSR_BACKGROUND_INFER, 0.0}},
                 {7, 2.0, 5.0, {TSR_BACKGROUND_INFER, 0.0}},
                 {30, 0.02, 1.0, {TSR_BACKGROUND_INFER, 0.0}},
                 {30, -0.05, 1.0, {TSR_BACKGROUND_INFER, 0.0}},
                 {30, -0.15, 1.0, {TSR_BACKGROUND_INFER, 0.0}},
                 {30, 2.0, 0.0, {TSR_BACKGROUND_NONE, 0.0}},
                 {30, 2.0, 1.5, {-1, 1.5}}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (double log_s = -0.7; log_s < 1.0; log_s += 0.8) {
            problem p;
            tsr_fit fit;
            make_problem(&p, cases[k].n, cases[k].scale, cases[k].background,
                         10 + k);
            void *s =
                type->state_new(&options, &p.saxs, p.matrix, N_Q, cases[k].b);
            type->fit(s, p.profile, &fit);
            double got = type->log_lik(s, &fit, log_s);
            double want = integral(&p, &fit, exp(log_s),
                                   cases[k].b.word == TSR_BACKGROUND_INFER);
            if (fabs(got - want) > 2e-5)
                fail_msg("case %zu: %.8f, quadrature %.8f", k, got, want);
            type->state_free(s);
        }
}

/* With many points the rows are rotated into a triangle; the fit must be that
 * of the points themselves. */
static void rotation_changes_nothing(void **state)
{
    (void)state;
    problem p;
    tsr_fit fit;
    make_problem(&p, 40, 3.0, -2.0, 4);
    void *s = type->state_new(&options, &p.saxs, p.matrix, N_Q, infer);
    type->fit(s, p.profile, &fit);
    double chi2 = 0.0;
    for (int k = 0; k < 40; k++)
        chi2 += pow((p.intensity[k] - fit.scale * p.model[k] - fit.background) /
                        p.sigma[k],
                    2.0);
    assert_true(fabs(chi2 - fit.chi2) < 1e-9 * chi2);
    /* a minimum: any other c and b are worse */
    double best = log_density(&p, fit.scale, fit.background, 1.0);
    for (int i = 0; i < 4; i++)
        assert_true(log_density(&p, fit.scale + (i & 1 ? 1e-3 : -1e-3),
                                fit.background + (i & 2 ? 1e-3 : -1e-3),
                                1.0) < best);
    type->state_free(s);
}

/* Moments of drawn c and b against those by quadrature, 5 standard errors. */
static void draws(void **state)
{
    (void)state;
    enum { N = 40000 };
    static const double scale[] = {2.0, 0.02};
    for (int k = 0; k < 2; k++) {
        problem p;
        tsr_fit fit;
        make_problem(&p, 20, scale[k], 1.0, 33);
        void *s = type->state_new(&options, &p.saxs, p.matrix, N_Q, infer);
        gsl_rng *rng = tsr_rng_new(5, (uint64_t)k);
        type->fit(s, p.profile, &fit);
        double one = 0.0, sums[4] = {0}, want[4] = {0}, total = 0.0;
        for (int i = 0; i < 20; i++)
            one += 1.0 / (p.sigma[i] * p.sigma[i]);
        double s0 = exp(0.2), sd_c = s0 / sqrt(fit.model_norm);
        for (int i = 0; i < N; i++) {
            double c, b;
            type->draw(s, &fit, 0.2, rng, &c, &b);
            assert_true(c > 0.0);
            sums[0] += c, sums[1] += c * c, sums[2] += b, sums[3] += b * c;
        }
        for (int i = 0; i <= 4000; i++) {
            double c =
                fmax(0.0, fit.scale - 9.0 * sd_c) + i * 18.0 * sd_c / 4000;
            double z = (c - fit.scale) / sd_c, w = exp(-0.5 * z * z);
            double b = fit.background - (c - fit.scale) * fit.model_mean;
            total += w;
            want[0] += w * c, want[1] += w * c * c;
            want[2] += w * b, want[3] += w * b * c;
        }
        double sd_b = hypot(s0 / sqrt(one), sd_c * fit.model_mean);
        double error[4] = {sd_c, 3.0 * sd_c * (fabs(fit.scale) + sd_c), sd_b,
                           3.0 * sd_b * (fabs(fit.scale) + sd_c)};
        for (int i = 0; i < 4; i++) {
            double off = sums[i] / N - want[i] / total;
            if (fabs(off) > 5.0 * error[i] / sqrt(N))
                fail_msg("scale %g, moment %d: off by %g", scale[k], i, off);
        }
        gsl_rng_free(rng);
        type->state_free(s);
    }
}

/* Data that run against the model leave the far tail of c. There it is
 * exponential with mean sd^2 / |c|; a draw must end, above 0. */
static void draws_far_out(void **state)
{
    (void)state;
    enum { N = 4000 };
    static const double scale[] = {-30.0, -3e3, -3e8};
    problem p;
    make_problem(&p, 20, 1.0, 0.0, 6);
    void *s = type->state_new(&options, &p.saxs, p.matrix, N_Q, infer);
    gsl_rng *rng = tsr_rng_new(6, 0);
    for (int k = 0; k < 3; k++) {
        tsr_fit fit = {.scale = scale[k], .model_norm = 1.0};
        double sum = 0.0;
        for (int i = 0; i < N; i++) {
            double c, b;
            type->draw(s, &fit, 0.0, rng, &c, &b);
            assert_true(c > 0.0);
            sum += c * fabs(scale[k]) / N;
        }
        /* 1 - 2 / c^2 and an error of 5 / sqrt(N) */
        if (fabs(sum - 1.0) > 2.0 / 900.0 + 5.0 / sqrt(N))
            fail_msg("scale %g: mean %g", scale[k], sum);
    }
    gsl_rng_free(rng);
    type->state_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_quadrature),
        cmocka_unit_test(rotation_changes_nothing), cmocka_unit_test(draws),
        cmocka_unit_test(draws_far_out)};
    return cmocka_run_group_tests_name("noise", tests, NULL, NULL);
}

/* The likelihoods of the noise models equal brute-force integrals. */
#include "core/vec3.h"
#include "tests/test.h"
#include "tests/unit/noise_problem.h"

#include <gsl/gsl_cdf.h>

/* What the models say, written down once more. theta: log s; log alpha, log
 * beta; log s, log(nu - 1). */
static double log_point(const problem *p, const double *theta, int k, double r)
{
    double sd = exp(theta[0]) * p->sigma[k];
    if (p->type == &tsr_noise_student) {
        double nu = 1.0 + exp(theta[1]);
        return log(gsl_ran_tdist_pdf(r / sd, nu)) - log(sd);
    }
    if (p->type == &tsr_noise_relative)
        sd = p->intensity[k] * (p->q[k] + exp(theta[0])) * exp(theta[1]);
    return -0.5 * r * r / (sd * sd) - log(sd) - 0.5 * log(2.0 * TSR_PI);
}

static double log_density(const problem *p, double c, double b,
                          const double *theta)
{
    double sum = 0.0;
    for (int k = 0; k < p->saxs.n; k++)
        sum += log_point(p, theta, k, p->intensity[k] - c * p->model[k] - b);
    return sum;
}

static double log_prior(const problem *p, double b)
{
    const double sd = p->background_sd;
    return p->linear.infer_background && sd > 0.0
               ? log(gsl_ran_gaussian_pdf(b, sd))
               : 0.0;
}

/* The integral over c > 0 and b where they are free: Simpson in c, whose cut at
 * 0 may be steep; sums of a whole smooth peak are exact in b. `wide` standard
 * deviations each way. */
static double integral(const problem *p, const double *theta, double wide)
{
    enum { M = 300, MB = 60 };
    const tsr_fit *fit = &p->fit;
    double spread = p->type->conditional(p->state, theta).spread;
    double top = log_density(p, fit->scale > 0 ? fit->scale : 0.0,
                             fit->background, theta) +
                 log_prior(p, fit->background);
    double sd_c = spread / sqrt(fit->model_norm);
    double sd_b = spread / sqrt(fit->one_norm), db = 2.0 * wide * sd_b / MB;
    double low = fmax(0.0, fit->scale - wide * sd_c);
    double high = fmax(0.0, fit->scale) + wide * sd_c, sum = 0.0;
    int free_c = p->linear.infer_scale, free_b = p->linear.infer_background;
    if (fit->scale < 0.0) /* the tail falls as exp(c scale / sd_c^2) */
        high = fmin(high, 40.0 * sd_c * sd_c / -fit->scale);
    double dc = (high - low) / M;
    for (int i = 0; i <= (free_c ? M : 0); i++) {
        double c = free_c ? low + i * dc : fit->scale, inner = 0.0;
        double middle = fit->background - (c - fit->scale) * fit->model_mean;
        if (!free_b)
            inner = exp(log_density(p, c, fit->background, theta) - top);
        for (int j = 0; free_b && j <= MB; j++) {
            const double b = middle + (j - MB / 2) * db;
            inner +=
                db * exp(log_density(p, c, b, theta) + log_prior(p, b) - top);
        }
        double weight = i == 0 || i == M ? 1.0 : i % 2 ? 4.0 : 2.0;
        sum += free_c ? dc / 3.0 * inner * weight : inner;
    }
    return top + log(sum);
}

TEST(against_quadrature)
{
    static const struct {
        int n;
        double scale, background;
        tsr_number_or_word c, b;
        double sd;
    } cases[] = {{30, 2.0, 5.0, {0, 0.0}, {0, 0.0}, 0.0},
                 {7, 2.0, 5.0, {0, 0.0}, {0, 0.0}, 0.0},
                 {30, 0.02, 1.0, {0, 0.0}, {0, 0.0}, 0.0},
                 {30, -0.05, 1.0, {0, 0.0}, {0, 0.0}, 0.0},
                 {30, -0.15, 1.0, {0, 0.0}, {0, 0.0}, 0.0},
                 {30, 2.0, 0.0, {0, 0.0}, {TSR_BACKGROUND_NONE, 0.0}, 0.0},
                 {30, 2.0, 1.5, {0, 0.0}, {-1, 1.5}, 0.0},
                 {30, 2.0, 1.5, {-1, 2.01}, {0, 0.0}, 0.0},
                 {7, 2.0, 1.5, {-1, 2.01}, {-1, 1.4}, 0.0},
                 {30, 2.0, 5.0, {0, 0.0}, {0, 0.0}, 1e4},
                 {30, 2.0, 5.0, {0, 0.0}, {0, 0.0}, 0.3},
                 {7, 2.0, 5.0, {0, 0.0}, {0, 0.0}, 2.0},
                 {30, -0.05, 5.0, {0, 0.0}, {0, 0.0}, 0.5},
                 {30, 2.0, 5.0, {-1, 2.01}, {0, 0.0}, 0.3}};
    for (int model = MEASURED; model <= RELATIVE; model++)
        for (size_t k = 0; k < COUNT_OF(cases); k++)
            for (double x = -0.7; x < 1.0; x += 0.8) {
                problem p;
                double theta[] = {x, 0.3 * x};
                make_problem(&p, cases[k].n, cases[k].scale,
                             cases[k].background, 10 + k);
                p.background_sd = cases[k].sd;
                if (model == RELATIVE)
                    lift(&p);
                open_model(&p, model, cases[k].c, cases[k].b);
                p.type->fit(p.state, p.profile, theta, &p.fit);
                double got = p.type->log_integral(p.state, &p.fit, theta);
                double want = integral(&p, theta, 9.0);
                if (fabs(got - want) > 2e-5)
                    fail_msg("%s, case %zu: %.8f, quadrature %.8f",
                             p.type->name, k, got, want);
            }
}

/* At any c and b: the likelihood is the sum over the points; and with normal
 * errors likelihood * prior = integral * conditional. */
TEST(parts_agree)
{
    static const tsr_number_or_word c_of[] = {{0, 0.0}, {-1, 1.9}};
    static const tsr_number_or_word b_of[] = {{0, 0.0}, {-1, 4.0}};
    for (int model = 0; model < N_MODEL; model++)
        for (int way = 0; way < 8; way++) {
            problem p;
            const double first[] = {-0.3, 0.7}, theta[] = {0.4, 1.1};
            make_problem(&p, 30, 2.0, 5.0, 70);
            p.background_sd = way < 4 ? 0.0 : 3.0;
            if (model == RELATIVE)
                lift(&p);
            open_model(&p, model, c_of[way & 1], b_of[way >> 1 & 1]);
            p.type->fit(p.state, p.profile, first, &p.fit);
            if (p.type->refit != NULL)
                p.type->refit(p.state, theta, &p.fit);
            for (int i = 0; i < 4; i++) {
                double c = way & 1 ? 1.9 : 1.8 + 0.1 * i, sum = 0.0;
                double b = way & 2 ? 4.0 : 4.0 + (i - 1) * (i - 1);
                double got = p.type->log_lik(p.state, &p.fit, theta, c, b);
                double want = log_density(&p, c, b, theta);
                for (int k = 0; k < 30; k++)
                    sum += p.type->log_point(
                        p.state, theta, k, p.intensity[k] - c * p.model[k] - b);
                if (fabs(got - want) > 1e-8 || fabs(sum - want) > 1e-8)
                    fail_msg("%s, way %d: %.10f, its points %.10f, naive %.10f",
                             p.type->name, way, got, sum, want);
                if (p.type->log_integral == NULL)
                    continue;
                double other = p.type->log_integral(p.state, &p.fit, theta) +
                               tsr_linear_log_density(
                                   &p.linear, &p.fit,
                                   p.type->conditional(p.state, theta), c, b) -
                               log_prior(&p, b);
                if (fabs(other - got) > 1e-8)
                    fail_msg("%s, way %d: %.10f is not %.10f", p.type->name,
                             way, other, got);
            }
            assert_true(p.type->log_lik(p.state, &p.fit, theta, 0.0, 1.0) ==
                            -(double)INFINITY ||
                        (way & 1));
        }
}

/* With many points the rows are rotated into a triangle; the fit must be that
 * of the points themselves. */
TEST(rotation_changes_nothing)
{
    problem p;
    const double theta[] = {0.0, 0.0};
    make_problem(&p, 40, 3.0, -2.0, 4);
    open_model(&p, MEASURED, infer, infer);
    p.type->fit(p.state, p.profile, theta, &p.fit);
    double chi2 = 0.0;
    for (int k = 0; k < 40; k++)
        chi2 +=
            pow((p.intensity[k] - p.fit.scale * p.model[k] - p.fit.background) /
                    p.sigma[k],
                2.0);
    assert_near(chi2, p.fit.chi2, 1e-9 * chi2);
    /* a minimum: any other c and b are worse */
    double best = log_density(&p, p.fit.scale, p.fit.background, theta);
    for (int i = 0; i < 4; i++)
        assert_true(log_density(&p, p.fit.scale + (i & 1 ? 1e-3 : -1e-3),
                                p.fit.background + (i & 2 ? 1e-3 : -1e-3),
                                theta) < best);
    /* chi2 is by sigma_exp, whatever the model */
    for (int model = RELATIVE; model < N_MODEL; model++) {
        problem other;
        make_problem(&other, 40, 3.0, -2.0, 4);
        open_model(&other, model, infer, infer);
        other.type->fit(other.state, other.profile, theta, &other.fit);
        assert_near(chi2, other.fit.chi2, 1e-9 * chi2);
    }
}

/* The t's mode is found despite outliers: no other c and b are better. */
TEST(student_finds_its_mode)
{
    problem p;
    const double theta[] = {0.1, log(3.0)};
    make_problem(&p, 40, 3.0, -2.0, 4);
    p.intensity[3] += 60.0, p.intensity[20] -= 35.0;
    open_model(&p, STUDENT, infer, infer);
    p.type->fit(p.state, p.profile, theta, &p.fit);
    double best = log_density(&p, p.fit.scale, p.fit.background, theta);
    double sd_c = 1.0 / sqrt(p.fit.model_norm);
    double sd_b = 1.0 / sqrt(p.fit.one_norm);
    for (int i = 0; i < 9; i++) {
        double c = p.fit.scale + 0.5 * (i % 3 - 1) * sd_c;
        double b = p.fit.background + 0.5 * (i / 3 - 1) * sd_b;
        if (i != 4)
            assert_true(log_density(&p, c, b, theta) < best);
    }
    assert_near(p.fit.scale, 3.0, 0.15);
}

/* Weighted draws of the proposal give the integral over c and b, and the
 * weights are even: the proposal is near the conditional and covers it. */
TEST(student_proposal_covers)
{
    enum { N = 20000 };
    static const double scale[] = {2.0, 0.02, -0.1};
    for (int k = 0; k < 3; k++) {
        problem p;
        const double theta[] = {0.1, log(3.0)};
        make_problem(&p, 30, scale[k], 5.0, 21);
        p.intensity[3] += 20.0;
        open_model(&p, STUDENT, infer, infer);
        p.type->fit(p.state, p.profile, theta, &p.fit);
        double want = integral(&p, theta, 14.0), sum = 0.0, square = 0.0;
        gsl_rng *rng = rng_new(3, (uint64_t)k);
        tsr_linear_shape shape = p.type->conditional(p.state, theta);
        for (int i = 0; i < N; i++) {
            double c, b;
            tsr_linear_draw(&p.linear, &p.fit, shape, rng, &c, &b);
            double w =
                exp(p.type->log_lik(p.state, &p.fit, theta, c, b) - want -
                    tsr_linear_log_density(&p.linear, &p.fit, shape, c, b));
            sum += w / N, square += w * w / N;
        }
        double error = sqrt((square - sum * sum) / N);
        double even = sum * sum / square; /* effective share of the draws */
        if (fabs(sum - 1.0) > 5.0 * error + 1e-3 ||
            even < (scale[k] > 1.0 ? 0.9 : 0.4))
            fail_msg("scale %g: integral off by %g +- %g, even %.2f", scale[k],
                     sum - 1.0, error, even);
    }
}

/* Many degrees of freedom are the normal model. */
TEST(student_becomes_measured)
{
    problem a, b;
    const double theta[] = {0.1, log(1e8)};
    make_problem(&a, 30, 2.0, 5.0, 21);
    make_problem(&b, 30, 2.0, 5.0, 21);
    open_model(&a, MEASURED, infer, infer);
    open_model(&b, STUDENT, infer, infer);
    a.type->fit(a.state, a.profile, theta, &a.fit);
    b.type->fit(b.state, b.profile, theta, &b.fit);
    assert_near(a.fit.scale, b.fit.scale, 1e-6);
    assert_near(a.fit.background, b.fit.background, 1e-5);
    assert_near(a.type->log_lik(a.state, &a.fit, theta, 2.0, 5.0),
                b.type->log_lik(b.state, &b.fit, theta, 2.0, 5.0), 1e-4);
}

/* Draws of c against its density, and of b given c, by Kolmogorov and Smirnov:
 * normal and t, far from the cut at 0, near it and beyond. */
TEST(draws_follow_their_density)
{
    enum { N = 4000, M = 4000 };
    static const double scale[] = {5.0, 1.0, -1.0, -4.0};
    const tsr_linear linear = {.infer_scale = 1, .infer_background = 1};
    for (int k = 0; k < 8; k++) {
        const tsr_linear_shape shape = {0.7, k < 4 ? 0 : 12};
        const tsr_fit fit =
            ROW(.scale = scale[k % 4], .background = 2.0, .model_norm = 0.49,
                .model_mean = 3.0, .one_norm = 4.0);
        double *c = array(N, sizeof *c), *u = array(N, sizeof *u);
        gsl_rng *rng = rng_new(12, (uint64_t)k);
        for (int i = 0; i < N; i++) {
            double b;
            tsr_linear_draw(&linear, &fit, shape, rng, &c[i], &b);
            double z = (b - 2.0 + (c[i] - fit.scale) * 3.0) / 0.35;
            u[i] = shape.dof == 0 ? gsl_cdf_ugaussian_P(z)
                                  : gsl_cdf_tdist_P(z, shape.dof);
        }
        /* the density with b at its middle is that of c times a constant */
        const double peak = shape.dof == 0 ? gsl_ran_gaussian_pdf(0.0, 0.35)
                                           : gsl_ran_tdist_pdf(0.0, 12) / 0.35;
        double high = 30.0, dc = high / M, cdf = 0.0, worst = 0.0, even = 0.0;
        for (int i = 0; i < M; i++) {
            double middle = (i + 0.5) * dc;
            int below = 0, below_u = 0;
            cdf +=
                dc / peak *
                exp(tsr_linear_log_density(&linear, &fit, shape, middle,
                                           2.0 - (middle - fit.scale) * 3.0));
            if (i % 40 != 0)
                continue;
            for (int j = 0; j < N; j++) {
                below += c[j] < (i + 1) * dc;
                below_u += u[j] < (i + 1.0) / M;
            }
            worst = fmax(worst, fabs((double)below / N - cdf));
            even = fmax(even, fabs((double)below_u / N - (i + 1.0) / M));
        }
        /* 1.95 / sqrt(N) is p = 0.001 */
        if (fabs(cdf - 1.0) > 1e-3 || worst > 1.95 / sqrt(N) ||
            even > 1.95 / sqrt(N))
            fail_msg("case %d: the density sums to %.5f; off by %.3f, %.3f", k,
                     cdf, worst, even);
    }
}

/* Data that run against the model leave the far tail of c. There it is
 * exponential with mean sd^2 / |c|; a draw must end, above 0. */
TEST(draws_far_out)
{
    enum { N = 4000 };
    static const double scale[] = {-30.0, -3e3, -3e8};
    const tsr_linear linear = {.infer_scale = 1, .infer_background = 1};
    gsl_rng *rng = rng_new(6, 0);
    for (int k = 0; k < 3; k++) {
        tsr_fit fit = {.scale = scale[k], .model_norm = 1.0, .one_norm = 1.0};
        double sum = 0.0;
        for (int i = 0; i < N; i++) {
            double c, b;
            tsr_linear_draw(&linear, &fit, (tsr_linear_shape){1.0, 0}, rng, &c,
                            &b);
            assert_true(c > 0.0);
            sum += c * fabs(scale[k]) / N;
        }
        /* 1 - 2 / c^2 and an error of 5 / sqrt(N) */
        if (fabs(sum - 1.0) > 2.0 / 900.0 + 5.0 / sqrt(N))
            fail_msg("scale %g: mean %g", scale[k], sum);
    }
}

/* Replicates of a point against the density of the point. */
TEST(replicates)
{
    enum { N = 4000, K = 5 };
    for (int model = 0; model < N_MODEL; model++) {
        problem p;
        const double theta[] = {0.2, log(2.0)};
        double r[N], cdf = 0.0, worst = 0.0, dr = 0.02;
        gsl_rng *rng = rng_new(14, (uint64_t)model);
        make_problem(&p, 20, 2.0, 5.0, 3);
        lift(&p);
        open_model(&p, model, infer, infer);
        for (int i = 0; i < N; i++)
            r[i] = p.type->draw_point(p.state, theta, K, rng) / p.intensity[K];
        for (int i = -5000; i < 5000; i++) {
            double x = (i + 0.5) * dr * p.intensity[K];
            int below = 0;
            cdf += dr * p.intensity[K] *
                   exp(p.type->log_point(p.state, theta, K, x));
            for (int j = 0; i % 20 == 0 && j < N; j++)
                below += r[j] < (i + 1) * dr;
            if (i % 20 == 0)
                worst = fmax(worst, fabs((double)below / N - cdf));
        }
        if (fabs(cdf - 1.0) > 1e-3 || worst > 1.95 / sqrt(N))
            fail_msg("%s: the density sums to %.5f; off by %.3f", p.type->name,
                     cdf, worst);
    }
}

/* Priors are densities of theta. */
TEST(priors_are_normalised)
{
    problem p;
    for (int model = 0; model < N_MODEL; model++) {
        tsr_parameter parameter[TSR_NOISE_PARAMETERS];
        make_problem(&p, 20, 2.0, 5.0, 3);
        lift(&p);
        open_model(&p, model, infer, infer);
        p.type->parameters(&p.options, parameter);
        for (int i = 0; i < p.type->n_parameter; i++) {
            double sum = 0.0;
            for (int k = -4000; k < 4000; k++)
                sum += 0.005 * exp(tsr_parameter_log_prior(&parameter[i],
                                                           0.005 * (k + 0.5)));
            if (!parameter[i].infer || fabs(sum - 1.0) > 1e-5)
                fail_msg("%s, parameter %d: %.7f", p.type->name, i, sum);
        }
    }
}

/* ---- bad input ---- */

static void refused(const tsr_data_set *set, const char *why)
{
    err = (tsr_err){0};
    tsr_likelihood *l;
    const tsr_topology nothing = {0};
    tsr_form_factor_table *table =
        tsr_form_factor_new(TSR_BODIES_TWO, 1, 101, .01);
    const tsr_scattering scattering = {.plain = table};
    tsr_status status =
        saxs_likelihood(&nothing, &scattering, 50.0, 1, set, &l, &err);
    assert_null(l);
    if (status == TSR_OK || strstr(err.message, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, why);
    tsr_form_factor_free(table);
}

TEST(bad_input)
{
    problem p;
    make_problem(&p, 6, 2.0, 50.0, 3);
    char path[] = "x.dat";
    p.saxs.path = path;
    p.intensity[2] = -1.0;
    tsr_data_set set = {.saxs = &p.saxs, .noise = noise_of("relative")};
    refused(&set, "1 of 6 points have I <= 0, the first I = -1 at q = 0.0300");
    set.noise = noise_of("student");
    set.nuisance = TSR_NUISANCE_INTEGRATE;
    refused(&set, "data.0.nuisance: scale and background have no integral");
    set.nuisance = TSR_NUISANCE_AUTO;
    p.saxs.n = 4;
    refused(&set, "'x.dat': 4 points cannot determine 4 parameters");
    set.noise = noise_of("measured");
    p.saxs.n = 3;
    refused(&set, "3 points cannot determine 3 parameters");
}

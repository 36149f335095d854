/* Priors of parameters are normalised densities, draws follow them, and
 * impossible priors of c1 and c2 are refused. */
#include "sampler/parameters.h"
#include "scattering/scattering.h"
#include "tests/parameter_draw.h"
#include "tests/test.h"

#include <gsl/gsl_cdf.h>

static tsr_contrast_options defaults(void)
{
    tsr_contrast_options o;
    OK(tsr_fields_init(tsr_contrast_fields, &o, &err));
    return o;
}

enum { N_DRAW = 20000, N_CELL = 40000 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The density of theta adds up to 1 over the range, and draws follow it: the
 * largest distance of their distribution function from the density's is less
 * than by chance in one of a thousand cases. */
static void check_prior(const tsr_parameter *p, double low, double high)
{
    static double draw[N_DRAW];
    gsl_rng *rng = rng_new(5, 0);
    const double step = (high - low) / N_CELL;
    double sum = 0.0, worst = 0.0;
    int below = 0;
    for (int i = 0; i < N_DRAW; i++)
        parameters_draw(1, p, rng, &draw[i]);
    qsort(draw, N_DRAW, sizeof *draw, ascending);
    for (int i = 0; i < N_CELL; i++) {
        sum += step * exp(tsr_parameter_log_prior(p, low + (i + 0.5) * step));
        while (below < N_DRAW && draw[below] < low + (i + 1.0) * step)
            below++;
        worst = fmax(worst, fabs((double)below / N_DRAW - sum));
    }
    if (!(fabs(sum - 1.0) < 1e-5) || !(worst < 1.95 / sqrt(N_DRAW)))
        fail_msg("%s: sums to %.7f, draws off by %.4f", p->name, sum, worst);
}

/* That of the value, too, adds up to 1, and has the mean of the draws. */
static void check_density(const tsr_parameter *p, int n_share, double mean)
{
    enum { N = 4000 };
    static double x[N], y[N];
    double sum = 0.0, first = 0.0;
    assert_true(tsr_parameter_density(p, n_share, N, x, y));
    for (int i = 0; i < N; i++) {
        sum += y[i] * (x[1] - x[0]);
        first += x[i] * y[i] * (x[1] - x[0]);
    }
    if (!(fabs(sum - 1.0) < 0.02) || !(fabs(first - mean) < 0.02 * mean))
        fail_msg("%s: sums to %.4f, mean %.4f for %.4f", p->name, sum, first,
                 mean);
}

static const tsr_number_or_word infer = {0, 0.0};

TEST(test_density_of_values)
{
    const tsr_parameter weight = {
        .name = "weight", .infer = 1, .shape = TSR_PRIOR_SIMPLEX};
    const tsr_parameter scale = tsr_parameter_log_normal(
        "scale", NULL, "", infer, 2.0, 0.5, TSR_CHANGES_FIT);
    const tsr_parameter nu =
        ROW(.name = "nu", .infer = 1, .is_log = 1, .low = 1.0,
            .shape = TSR_PRIOR_GAMMA, .gamma_k = 9.0, .rate = 0.1);
    tsr_parameter cut =
        ROW(.name = "cut", .infer = 1, .low = 0.0, .high = 4.0,
            .shape = TSR_PRIOR_CUT_NORMAL, .mean = 2.0, .width = 1.5);
    double x[2], y[2];
    const double share = gsl_cdf_ugaussian_P(2.0 / 1.5) * 2.0 - 1.0;
    cut.log_norm = -log(1.5 * sqrt(2.0 * acos(-1.0)) * share);
    check_density(&weight, 2, 0.5);
    check_density(&weight, 5, 0.2);
    check_density(&scale, 0, 2.0 * exp(0.125));
    check_density(&nu, 0, 90.0);
    check_density(&cut, 0, 2.0);
    cut.infer = 0;
    assert_false(tsr_parameter_density(&cut, 0, 2, x, y));
    cut = (tsr_parameter){.infer = 1, .shape = TSR_PRIOR_FLAT};
    assert_false(tsr_parameter_density(&cut, 0, 2, x, y));
}

TEST(priors_are_densities_and_drawn)
{
    const tsr_parameter log_normal = tsr_parameter_log_normal(
        "log-normal", NULL, "", infer, 0.3, 0.5, TSR_CHANGES_FIT);
    check_prior(&log_normal, log(0.3) - 4.0, log(0.3) + 4.0);
    const tsr_parameter gamma =
        ROW(.name = "gamma", .infer = 1, .is_log = 1, .low = 1.0,
            .high = HUGE_VAL, .shape = TSR_PRIOR_GAMMA, .gamma_k = 2.0,
            .rate = 0.1);
    check_prior(&gamma, -20.0, log(400.0));
    /* most of a gamma cut off, another exponent */
    tsr_parameter cut = gamma;
    cut.low = 30.0, cut.gamma_k = 1.5;
    check_prior(&cut, -25.0, log(400.0));
}

TEST(prior_of_contrast)
{
    tsr_contrast_options o = defaults();
    tsr_parameter p[TSR_N_CONTRAST];
    o.c1 = o.c2 = (tsr_number_or_word){-1, 0.0};
    o.c1.number = 1.0;
    OK(tsr_contrast_priors(&o, p, &err));
    assert_true(tsr_contrast_is_plain(p));
    assert_true(tsr_parameter_log_prior(&p[TSR_C2], 77.0) == 0.0);
    o.c1.word = o.c2.word = 0;
    o.c2_mean = 3.5; /* most of it is cut off */
    OK(tsr_contrast_priors(&o, p, &err));
    assert_false(tsr_contrast_is_plain(p));
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        check_prior(&p[k], p[k].low, p[k].high);
        assert_true(isinf(tsr_parameter_log_prior(&p[k], p[k].high + 1e-9)));
        assert_true(isinf(tsr_parameter_log_prior(&p[k], p[k].low - 1e-9)));
        assert_true(isinf(tsr_parameter_log_prior(&p[k], (double)NAN)));
    }
}

/* Weights are drawn together, whatever stands before them in the table; each of
 * n is Beta(1, n - 1). The density is that of the n - 1 that are free: over
 * them it integrates to 1, their simplex having the volume 1 / (n - 1)!. */
TEST(weights_are_flat_on_the_simplex)
{
    enum { N_STATE = 4, N = 20000 };
    static double draw[N];
    gsl_rng *rng = rng_new(6, 0);
    CLEARED(tsr_pool) pool = {0};
    tsr_parameters *p = tsr_parameters_new(&pool, NULL, NULL, N_STATE, 1);
    double theta[N_STATE], density = 0.0, worst = 0.0;
    assert_non_null(p);
    assert_int_equal(p->n, N_STATE);
    for (int i = 0; i < N; i++) {
        double sum = 0.0;
        parameters_draw(p->n, p->table, rng, theta);
        for (int k = 0; k < N_STATE; k++)
            sum += theta[k];
        assert_near(sum, 1.0, 1e-12);
        draw[i] = theta[i % N_STATE];
    }
    qsort(draw, N, sizeof *draw, ascending);
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(gsl_cdf_beta_P(draw[i], 1.0, N_STATE - 1.0) -
                                 (i + 0.5) / N));
    assert_true(worst < 1.95 / sqrt(N));
    density = exp(tsr_parameters_log_prior(p, theta));
    assert_near(density / 6.0, 1.0, 1e-12); /* 3! */
    theta[2] = 0.0;
    assert_true(isinf(tsr_parameters_log_prior(p, theta)));
}

/* What is fixed, or has a flat prior, stays where it starts; values and thetas
 * belong together. */
TEST(fixed_ones_stay)
{
    gsl_rng *rng = rng_new(7, 0);
    const tsr_number_or_word number = {-1, 2.5};
    const tsr_parameter table[] = {tsr_parameter_log_normal("fixed", NULL, "",
                                                            number, 0.3, 0.5,
                                                            TSR_CHANGES_FIT),
                                   {.name = "flat", .infer = 1, .start = 7.0},
                                   {.infer = 1, .is_log = 1, .low = 1.0}};
    double theta[2];
    parameters_draw(2, table, rng, theta);
    assert_near(tsr_parameter_value(&table[0], theta[0]), 2.5, 1e-15);
    assert_true(theta[1] == 7.0);
    for (int i = 0; i < 2; i++)
        assert_true(tsr_parameter_log_prior(&table[i], 3.0) == 0.0);
    assert_true(table[0].step == TSR_STEP_NONE);
    assert_near(tsr_parameter_value(&table[2], log(4.0)), 5.0, 1e-12);
    assert_near(tsr_parameter_theta(&table[2], 5.0), log(4.0), 1e-12);
}

TEST(senseless_priors_are_refused)
{
    tsr_parameter p[TSR_N_CONTRAST];
    tsr_contrast_options o = defaults();
    o.c1_range[0] = o.c1_range[1] = 1.0;
    OK(tsr_contrast_priors(&o, p, &err)); /* not used */
    o.c1.word = 0;
    FAILS(tsr_contrast_priors(&o, p, &err), TSR_E_CONFIG,
          "contrast.c1_range: [1, 1] leaves");
    o = defaults();
    o.c2.word = 0;
    o.c2_mean = 4.5;
    FAILS(tsr_contrast_priors(&o, p, &err), TSR_E_CONFIG,
          "contrast.c2_mean: 4.5 is outside of");
}

/* Three bodies, some of them of one type. */
enum { N_BODY = 4, N_Q = 12 };
static const double dq = 0.03;
static const double xyz[N_BODY][3] = {
    {0.0, 0.0, 0.0}, {5.0, 1.0, 0.0}, {9.0, -2.0, 3.0}, {14.0, 0.0, 1.0}};
static const double exposure[N_BODY] = {0.5, 1.25, 1.25, 2.0};

static void partials_of(const tsr_coarse_spec *spec, double *partial)
{
    tsr_engine *engine;
    tsr_batch *batch;
    OK(tsr_engine_reference_new(&spec->spec, &engine, &err));
    OK(tsr_batch_new(engine, 1, &batch, &err));
    OK(tsr_batch_set(batch, 0, xyz, partial, &err));
    int n_comp = spec->spec.n_comp;
    for (int i = 0; i < n_comp * (n_comp + 1) / 2 * N_Q; i++)
        partial[i] += spec->self[i];
    tsr_batch_free(batch);
    tsr_engine_free(engine);
}

/* Whichever is inferred: the curve is that of three components. */
TEST(folding_changes_nothing)
{
    const int type[N_BODY] = {3, 7, 3, 12};
    const double at[TSR_N_CONTRAST] = {1.03, -1.3};
    double three[TSR_N_COMP_PAIR * N_Q], partial[TSR_N_COMP_PAIR * N_Q];
    tsr_form_factor_table *table;
    tsr_coarse_spec spec;
    CLEARED(tsr_pool) pool = {0};
    OK(tsr_form_factor_read("data/components_two_body.dat", &table, &err));
    OK(tsr_coarse_spec_of(table, N_BODY, type, exposure, N_Q, dq, &pool, &spec,
                          &err));
    double radius = spec.radius_ang;
    partials_of(&spec, three);
    for (int which = 0; which < 4; which++) {
        tsr_parameter prior[TSR_N_CONTRAST] = {
            {.infer = which & 1, .start = at[0]},
            {.infer = which >> 1, .start = at[1]}};
        OK(tsr_coarse_spec_of(table, N_BODY, type, exposure, N_Q, dq, &pool,
                              &spec, &err));
        spec.spec.n_comp = tsr_factors_fold(prior, radius, spec.spec.n_type,
                                            N_Q, dq, spec.form_factor);
        assert_int_equal(tsr_partials_fold(prior, radius, N_Q, dq, spec.self),
                         spec.spec.n_comp);
        assert_int_equal(spec.spec.n_comp, 1 + prior[0].infer + prior[1].infer);
        partials_of(&spec, partial);
        for (int k = 0; k < N_Q; k++) {
            double c[TSR_N_COMP];
            double g = tsr_component_scale(at[0], radius, k * dq);
            double want = tsr_component_intensity(three + k, N_Q, g, at[1]);
            int n = tsr_coarse_coefficients(
                prior, at, tsr_component_power(radius, k * dq), c);
            double got = tsr_coarse_sum(n, c, partial + k, N_Q);
            assert_int_equal(n, spec.spec.n_comp);
            assert_near(got, want, 1e-9 * three[0]);
        }
    }
    tsr_form_factor_free(table);
}

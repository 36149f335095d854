/* Priors of c1 and c2, what is refused of them, and components folded. */
#include "likelihood/scattering.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tsr_contrast_options defaults(void)
{
    tsr_err err = {0};
    tsr_contrast_options o;
    if (tsr_fields_init(tsr_contrast_fields, &o, &err) != TSR_OK)
        fail_msg("%s", err.message);
    return o;
}

static void prior_is_a_density(void **state)
{
    (void)state;
    tsr_contrast_options o = defaults();
    tsr_contrast_prior p[TSR_N_CONTRAST];
    assert_int_equal(tsr_contrast_priors(&o, p, NULL), TSR_OK);
    assert_true(tsr_contrast_is_plain(p));
    assert_true(tsr_contrast_log_prior(&p[TSR_C2], 77.0) == 0.0);
    o.c1.word = o.c2.word = 0;
    o.c2_mean = 3.5; /* most of it is cut off */
    assert_int_equal(tsr_contrast_priors(&o, p, NULL), TSR_OK);
    assert_false(tsr_contrast_is_plain(p));
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        enum { N = 20000 };
        double sum = 0.0, step = (p[k].high - p[k].low) / N;
        for (int i = 0; i < N; i++)
            sum +=
                step *
                exp(tsr_contrast_log_prior(&p[k], p[k].low + (i + 0.5) * step));
        assert_true(fabs(sum - 1.0) < 1e-6);
        assert_true(isinf(tsr_contrast_log_prior(&p[k], p[k].high + 1e-9)));
        assert_true(isinf(tsr_contrast_log_prior(&p[k], p[k].low - 1e-9)));
        assert_true(isinf(tsr_contrast_log_prior(&p[k], (double)NAN)));
    }
}

static void senseless_priors_are_refused(void **state)
{
    (void)state;
    tsr_contrast_prior p[TSR_N_CONTRAST];
    tsr_err err;
    tsr_contrast_options o = defaults();
    o.c1_range[0] = o.c1_range[1] = 1.0;
    assert_int_equal(tsr_contrast_priors(&o, p, &err), TSR_OK); /* not used */
    o.c1.word = 0;
    assert_int_equal(tsr_contrast_priors(&o, p, &err), TSR_E_CONFIG);
    assert_non_null(strstr(err.message, "contrast.c1_range: [1, 1] leaves"));
    o = defaults();
    o.c2.word = 0;
    o.c2_mean = 4.5;
    assert_int_equal(tsr_contrast_priors(&o, p, &err), TSR_E_CONFIG);
    assert_non_null(strstr(err.message, "contrast.c2_mean: 4.5 is not in"));
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
    assert_int_equal(tsr_engine_reference_new(&spec->spec, &engine, NULL),
                     TSR_OK);
    assert_int_equal(tsr_batch_new(engine, 1, &batch, NULL), TSR_OK);
    assert_int_equal(tsr_batch_set(batch, 0, xyz, partial, NULL), TSR_OK);
    int n_comp = spec->spec.n_comp;
    for (int i = 0; i < n_comp * (n_comp + 1) / 2 * N_Q; i++)
        partial[i] += spec->self[i];
    tsr_batch_free(batch);
    tsr_engine_free(engine);
}

/* Whichever is inferred: the curve is that of three components. */
static void folding_changes_nothing(void **state)
{
    (void)state;
    const int type[N_BODY] = {3, 7, 3, 12};
    const double at[TSR_N_CONTRAST] = {1.03, -1.3};
    double three[TSR_N_COMP_PAIR * N_Q], partial[TSR_N_COMP_PAIR * N_Q];
    tsr_form_factor_table *table;
    tsr_coarse_spec spec;
    assert_int_equal(
        tsr_form_factor_read("data/components_two_body.dat", &table, NULL),
        TSR_OK);
    assert_int_equal(
        tsr_coarse_spec_of(table, N_BODY, type, exposure, N_Q, dq, &spec, NULL),
        TSR_OK);
    double radius = spec.radius_ang;
    partials_of(&spec, three);
    tsr_coarse_spec_clear(&spec);
    for (int which = 0; which < 4; which++) {
        tsr_contrast_prior prior[TSR_N_CONTRAST] = {
            {.infer = which & 1, .start = at[0]},
            {.infer = which >> 1, .start = at[1]}};
        assert_int_equal(tsr_coarse_spec_of(table, N_BODY, type, exposure, N_Q,
                                            dq, &spec, NULL),
                         TSR_OK);
        tsr_coarse_fold(&spec, prior);
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
            assert_true(fabs(got - want) < 1e-9 * three[0]);
        }
        tsr_coarse_spec_clear(&spec);
    }
    tsr_form_factor_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prior_is_a_density),
        cmocka_unit_test(senseless_priors_are_refused),
        cmocka_unit_test(folding_changes_nothing)};
    return cmocka_run_group_tests_name("contrast prior", tests, NULL, NULL);
}

/* How often each move is made. */
#include "tests/model_sample.h"

#include "sampler/mix.h"

static void shares(void **state)
{
    (void)state;
    const double weight[TSR_N_MOVE] = {1.0, 0.0, 3.0, 0.0, 4.0, 0.0};
    tsr_mix mix;
    tsr_mix_set(&mix, weight);
    assert_int_equal(tsr_mix_choose(&mix, 0.0), 0);
    assert_int_equal(tsr_mix_choose(&mix, 0.1249), 0);
    assert_int_equal(tsr_mix_choose(&mix, 0.126), 2);
    assert_int_equal(tsr_mix_choose(&mix, 0.499), 2);
    assert_int_equal(tsr_mix_choose(&mix, 0.501), 4);
    assert_int_equal(tsr_mix_choose(&mix, 1.0 - 1e-16), 4);
    for (int m = 0; m < TSR_N_MOVE; m++)
        assert_true(fabs(tsr_mix_share(&mix, m) - weight[m] / 8.0) < 1e-15);
}

/* What changes the curve more for its cost is made more often, within a factor
 * of 4 of its weight; nothing is lost, what is off stays off. */
static void learns(void **state)
{
    (void)state;
    const double weight[TSR_N_MOVE] = {1.0, 1.0, 1.0, 0.0, 1.0, 1.0};
    const double gain[TSR_N_MOVE] = {1.0, 4.0, 1e2, 0.0, 0.0, 1.0};
    tsr_mix mix;
    tsr_mix_set(&mix, weight);
    for (int i = 0; i < 20000; i++) {
        int m = tsr_mix_choose(&mix, (i * 7919 % 20000) / 20000.0);
        tsr_mix_learn(&mix, m, gain[m], m == 5 ? 4.0 : 1.0);
    }
    double share[TSR_N_MOVE], sum = 0.0;
    for (int m = 0; m < TSR_N_MOVE; m++) {
        share[m] = tsr_mix_share(&mix, m);
        sum += share[m];
    }
    assert_true(fabs(sum - 1.0) < 1e-12);
    assert_true(share[3] == 0.0);
    assert_true(share[2] / share[4] > 15.9 && share[2] / share[4] < 16.1);
    assert_true(share[2] > share[1] && share[1] > share[0]);
    assert_true(share[0] > share[5] && share[4] > 0.0);
}

/* Nothing is decided before every move was tried. */
static void waits(void **state)
{
    (void)state;
    const double weight[TSR_N_MOVE] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    tsr_mix mix;
    tsr_mix_set(&mix, weight);
    for (int i = 0; i < 1000; i++)
        tsr_mix_learn(&mix, i % 5, 1.0 + i % 5, 1.0);
    for (int m = 0; m < TSR_N_MOVE; m++)
        assert_true(fabs(tsr_mix_share(&mix, m) - 1.0 / 6.0) < 1e-15);
}

static void costs(void **state)
{
    (void)state;
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    sample_prior_table(&table);
    sample_chain("AAAAAAAAAA", NULL, &table, &t, &c); /* a body each */
    tsr_proposal one = {.n_span = 1, .span = {{4, 1, 0}}};
    tsr_proposal half = {.n_span = 1, .span = {{5, 5, 1}}};
    tsr_proposal all = {.n_span = 1, .span = {{0, 10, 1}}};
    assert_true(tsr_mix_cost(t, &one, 0) == 0.25);
    assert_true(fabs(tsr_mix_cost(t, &all, 1) - (1.0 + 10.0 / 32)) < 1e-12);
    assert_true(fabs(tsr_mix_cost(t, &half, 1) -
                     (1.0 + 10.0 * 25 / 50 + 5.0 / 32)) < 1e-12);
    assert_true(fabs(tsr_mix_cost(t, &one, 1) -
                     (1.0 + 10.0 * 9.5 / 50 + 1.0 / 32)) < 1e-12);
    tsr_conformation_free(c);
    tsr_topology_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares), cmocka_unit_test(learns),
        cmocka_unit_test(waits), cmocka_unit_test(costs)};
    return cmocka_run_group_tests_name("mix", tests, NULL, NULL);
}

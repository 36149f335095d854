/* Each move is chosen in proportion to its weight. */
#include "sampler/chain.h"
#include "tests/model_sample.h"
#include "tests/test.h"

TEST(shares)
{
    const double weight[TSR_N_MOVE] = {1.0, 0.0, 3.0, 0.0, 4.0};
    tsr_mix mix;
    tsr_mix_set(&mix, weight);
    assert_int_equal(tsr_mix_choose(&mix, 0.0), 0);
    assert_int_equal(tsr_mix_choose(&mix, 0.1249), 0);
    assert_int_equal(tsr_mix_choose(&mix, 0.126), 2);
    assert_int_equal(tsr_mix_choose(&mix, 0.499), 2);
    assert_int_equal(tsr_mix_choose(&mix, 0.501), 4);
    assert_int_equal(tsr_mix_choose(&mix, 1.0 - 1e-16), 4);
}

/* The share of the 50 distances between 10 bodies that a proposal changes. */
TEST(changes)
{
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    sample_prior_table(&table);
    sample_chain("AAAAAAAAAA", NULL, &table, &t, &c); /* a body each */
    tsr_proposal one = {.n_span = 1, .span = {{4, 1, 0}}};
    tsr_proposal half = {.n_span = 1, .span = {{5, 5, 1}}};
    tsr_proposal all = {.n_span = 1, .span = {{0, 10, 1}}};
    assert_true(fabs(tsr_mix_changed(t, &all)) < 1e-12);
    assert_near(tsr_mix_changed(t, &half), 25.0 / 50, 1e-12);
    assert_near(tsr_mix_changed(t, &one), 9.5 / 50, 1e-12);
}

/* R-hat and effective sample sizes equal published values and closed forms for
 * autoregressive chains. */
#include "analysis/convergence.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

static tsr_convergence of(int n_chain, int n_draw, const double *value)
{
    tsr_convergence out;
    OK(tsr_convergence_make(0, n_chain, n_draw, value, &out, &err));
    return out;
}

enum { CHAINS = 4, DRAWS = 5000, N = CHAINS * DRAWS };

/* Stationary AR(1) chains of variance 1, chain c shifted by c * shift. */
static double *ar1(double phi, double shift, unsigned long seed)
{
    gsl_rng *random = own_gsl_rng(gsl_rng_alloc(gsl_rng_mt19937));
    double *value = array(N, sizeof *value);
    assert_non_null(random);
    gsl_rng_set(random, seed);
    for (int c = 0; c < CHAINS; c++) {
        double x = gsl_ran_gaussian(random, 1.0);
        for (int d = 0; d < DRAWS; d++) {
            value[c * DRAWS + d] = x + c * shift;
            x = phi * x + gsl_ran_gaussian(random, sqrt(1.0 - phi * phi));
        }
    }
    return value;
}

TEST(test_moments)
{
    const double value[10] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 4};
    const tsr_convergence c = of(2, 5, value);

    /* Sorted 1 1 2 3 4 4 5 5 6 9; quantile p is at 9p. */
    assert_near(c.mean, 4.0, 1e-15);
    assert_near(c.sd, sqrt(54.0 / 9.0), 1e-14);
    assert_nears(0.0, c.median, 4.0, c.q5, 1.0);
    assert_near(c.q95, 6.0 + 0.55 * 3.0, 1e-14);
}

/* Independent draws: ESS is n, with an error of a few per cent (the estimate's
 * own noise); R-hat is 1. */
TEST(test_independent)
{
    double *value = ar1(0.0, 0.0, 1);
    const tsr_convergence c = of(CHAINS, DRAWS, value);
    assert_near(c.mean, 0.0, 5.0 / sqrt(N));
    assert_near(c.sd, 1.0, 5.0 / sqrt(2.0 * N));
    assert_near(c.median, 0.0, 6.3 / sqrt(N));
    assert_nears(0.08, c.q5, -1.6449, c.q95, 1.6449);
    assert_nears(0.1, c.ess_bulk / N, 1.0, c.ess_tail / N, 1.0);
    assert_near(c.mcse * sqrt(N), 1.0, 0.06);
    assert_near(c.rhat, 1.0, 0.002);
}

/* AR(1): ESS of the mean is n (1 - phi) / (1 + phi). Rank normalisation leaves
 * a normal chain nearly as it is. The estimate's own error is some 6 per cent
 * here. A negative phi gives more than n. */
TEST(test_ar1)
{
    const double phi[] = {0.9, 0.5, -0.3};
    for (int i = 0; i < 3; i++) {
        double *value = ar1(phi[i], 0.0, 7);
        const tsr_convergence c = of(CHAINS, DRAWS, value);
        const double ess = N * (1.0 - phi[i]) / (1.0 + phi[i]);
        assert_near(c.ess_bulk / ess, 1.0, 0.15);
        assert_near(c.mcse, c.sd / sqrt(ess), 0.08 * c.mcse);
        assert_near(c.rhat, 1.0, 0.01);
    }
}

/* Two groups of chains apart, and one chain wider than the rest: the first
 * shows in the bulk, the second only in the folded ranks. */
TEST(test_apart)
{
    double *value = ar1(0.0, 3.0, 3);
    tsr_convergence c = of(CHAINS, DRAWS, value);
    assert_all(c.rhat > 1.8, c.ess_bulk < 20.0);

    value = ar1(0.0, 0.0, 4);
    for (int d = 0; d < DRAWS; d++)
        value[d] *= 4.0;
    c = of(CHAINS, DRAWS, value);
    assert_true(c.rhat > 1.1);

    /* One chain that drifts: its halves differ. */
    value = ar1(0.0, 0.0, 5);
    for (int d = 0; d < DRAWS; d++)
        value[d] += 4.0 * d / DRAWS;
    c = of(1, DRAWS, value);
    assert_true(c.rhat > 1.3);
}

/* Ranks do not change under a monotone map; R-hat and the ESSs are theirs. The
 * folded part is not, so R-hat is compared where the bulk rules. */
TEST(test_monotone_map)
{
    double *value = ar1(0.7, 0.5, 11);
    const tsr_convergence before = of(CHAINS, DRAWS, value);
    for (int i = 0; i < N; i++)
        value[i] = sinh(3.0 * value[i]);
    const tsr_convergence after = of(CHAINS, DRAWS, value);

    assert_near(after.ess_bulk, before.ess_bulk, 1e-9 * before.ess_bulk);
    assert_near(after.rhat, before.rhat, 1e-12);
}

/* Draws that repeat: a quantile between two equal draws is that draw. */
TEST(test_ties)
{
    enum { TIES = 100 };
    double value[TIES];

    for (int i = 0; i < TIES; i++)
        value[i] = i % 10 == 0 ? 0.1 : i % 10 == 9 ? 0.9 : 0.3;
    const tsr_convergence c = of(1, TIES, value);
    assert_all(c.q5 == 0.1, c.q95 == 0.9, c.median == 0.3,
               isfinite(c.ess_tail));
}

static void assert_no_diagnostics(tsr_convergence c)
{
    assert_all(isnan(c.mcse), isnan(c.ess_bulk), isnan(c.ess_tail),
               isnan(c.rhat));
}

TEST(test_nothing_to_say)
{
    double *value = ar1(0.5, 0.0, 2);

    /* Too few draws. */
    tsr_convergence c = of(4, 3, value);
    assert_no_diagnostics(c);
    assert_true(isfinite(c.mean) && isfinite(c.sd) && isfinite(c.q5));
    assert_true(isfinite(of(4, 4, value).rhat));
    c = of(1, 1, value);
    assert_true(c.mean == value[0] && c.q95 == value[0]);
    assert_true(isnan(c.sd));
    assert_no_diagnostics(c);

    /* Not finite. */
    value[17] = (double)INFINITY;
    c = of(CHAINS, DRAWS, value);
    assert_no_diagnostics(c);
    assert_true(isnan(c.mean) && isnan(c.sd) && isnan(c.median));

    /* Constant, and constant but for the middle draw that splitting drops. */
    for (int i = 0; i < N; i++)
        value[i] = 0.1;
    c = of(CHAINS, DRAWS, value);
    assert_no_diagnostics(c);
    assert_true(c.median == 0.1 && c.q5 == 0.1 && c.q95 == 0.1);
    assert_near(c.mean, 0.1, 1e-12);
    value[50] = 0.2;
    c = of(1, 101, value);
    assert_true(isnan(c.mcse) && isnan(c.ess_bulk) && isnan(c.rhat));

    /* Stuck chains at values of their own. */
    for (int i = 0; i < N; i++)
        value[i] = 0.1 * (double)(i / DRAWS);
    c = of(CHAINS, DRAWS, value);
    assert_true(isinf(c.rhat) && c.rhat > 0.0);

    assert_int_equal(tsr_convergence_make(0, 0, 5, NULL, &c, &err),
                     TSR_E_INTERNAL);
}

/* 320 chains of 20 draws that stay near values of their own, in 8 groups. Where
 * those values are alike in all groups, single chains disagree and groups do
 * not; where one group lies elsewhere, groups do, too. Normal scores of a known
 * mixture are not in closed form, so the expected value is that of
 * untransformed values, which are normal: the scores are nearly they. */
TEST(test_groups)
{
    enum { N_GROUP = 8, EACH = 40, MANY = N_GROUP * EACH, SHORT = 20 };
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double *value = array(MANY * SHORT * sizeof *value, 1), sum = 0.0;
    tsr_convergence c;
    assert_non_null(random);
    for (int repeat = 0; repeat < 20; repeat++) {
        for (int i = 0; i < MANY; i++) {
            const double own = gsl_ran_gaussian(random, 2.0);
            for (int d = 0; d < SHORT; d++)
                value[i * SHORT + d] = own + gsl_ran_gaussian(random, 1.0);
        }
        OK(tsr_convergence_make(N_GROUP, MANY, SHORT, value, &c, &err));
        const double single = of(MANY, SHORT, value).rhat;
        assert_all(c.rhat_chains == single, single > 2.0);
        sum += c.rhat / 20;
    }
    /* B is the variance of a chain's mean over 40: 1 + (4 + 1/20) / 40 / 5, and
     * the larger of bulk and folded. */
    const double expected = sqrt(1.0 + (4.0 + 1.0 / SHORT) / EACH / 5.0);
    assert_true(sum > expected - 0.002 && sum < expected + 0.006);
    for (int i = 0; i < EACH * SHORT; i++)
        value[i] += 2.0;
    OK(tsr_convergence_make(N_GROUP, MANY, SHORT, value, &c, &err));
    assert_true(c.rhat > expected + 0.02);
    /* groups that do not come out even are none */
    OK(tsr_convergence_make(7, MANY, SHORT, value, &c, &err));
    assert_true(isnan(c.rhat_chains) && c.rhat == of(MANY, SHORT, value).rhat);
    gsl_rng_free(random);
}

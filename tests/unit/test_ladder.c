/* Replica exchange keeps the exact distribution at every temperature, and its
 * acceptance equals the closed form.
 *
 * The target is x normal with a likelihood whose power 1 / T narrows it, so
 * every temperature can be drawn from exactly. */
#include "sampler/ladder.h"
#include "tests/test.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>

OWNED(tsr_ladder)

/* Prior normal(0, 1), log likelihood -A / 2 (x - CENTRE)^2: at 1 / T = beta
 * normal with precision 1 + beta A and mean beta A CENTRE / (1 + beta A). */
static const double SHARP = 8.0, CENTRE = 1.5;

static double log_lik_at(double x)
{
    return -0.5 * SHARP * (x - CENTRE) * (x - CENTRE);
}

static void target_at(double beta, double *mean, double *sd)
{
    double precision = 1.0 + beta * SHARP;
    *mean = beta * SHARP * CENTRE / precision;
    *sd = 1.0 / sqrt(precision);
}

/* Exact draws for all replicas, each at its temperature. */
static void draw_all(const tsr_ladder *l, double heat, gsl_rng *rng, double *x)
{
    for (int k = 0; k < tsr_ladder_size(l); k++) {
        double mean, sd;
        target_at(heat * tsr_ladder_beta(l, k), &mean, &sd);
        x[tsr_ladder_replica(l, k)] = mean + gsl_ran_gaussian(rng, sd);
    }
}

typedef struct {
    int n, pair[TSR_MAX_TEMPERATURES][2];
} exchanges;

static void note(void *context, int colder, int hotter)
{
    exchanges *e = context;
    e->pair[e->n][0] = colder;
    e->pair[e->n++][1] = hotter;
}

static exchanges swap(tsr_ladder *l, const double *x, double heat, int learn)
{
    double log_lik[TSR_MAX_TEMPERATURES];
    exchanges done = {0};
    for (int r = 0; r < tsr_ladder_size(l); r++)
        log_lik[r] = log_lik_at(x[r]);
    tsr_ladder_swap(l, log_lik, heat, learn, note, &done);
    return done;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov against the exact tempered normal; the p value. */
static double ks(double *x, int n, double beta)
{
    double mean, sd, d = 0.0, p = 0.0;
    target_at(beta, &mean, &sd);
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int i = 0; i < n; i++) {
        double f = gsl_cdf_gaussian_P(x[i] - mean, sd);
        d = fmax(d, fmax(f - (double)i / n, (double)(i + 1) / n - f));
    }
    double t = (sqrt((double)n) + 0.12 + 0.11 / sqrt((double)n)) * d;
    for (int j = 1; j < 100; j++)
        p += (j % 2 ? 2.0 : -2.0) * exp(-2.0 * j * j * t * t);
    return t < 0.2 ? 1.0 : p;
}

/* What one round does to exact draws leaves exact draws: the swap rule alone,
 * without any dynamics that could hide an error. */
TEST(exchange_keeps_every_marginal)
{
    enum { N = 20000, MOST = 6 };
    double *kept[MOST];
    for (int k = 0; k < MOST; k++)
        kept[k] = calloc(N, sizeof *kept[k]);
    for (int n = 2; n <= MOST; n++)
        for (int annealed = 0; annealed < 2; annealed++) {
            double heat = annealed ? 0.3 : 1.0;
            gsl_rng *rng = rng_new(11, (uint64_t)n);
            tsr_ladder *l = own_tsr_ladder(tsr_ladder_new(n, 40.0, 3, n));
            long n_exchange = 0;
            for (int i = 0; i < N; i++) {
                double x[MOST];
                draw_all(l, heat, rng, x);
                n_exchange += swap(l, x, heat, 0).n;
                for (int k = 0; k < n; k++)
                    kept[k][i] = x[tsr_ladder_replica(l, k)];
            }
            assert_true(n_exchange > N / 20);
            for (int k = 0; k < n; k++) {
                double p = ks(kept[k], N, heat * tsr_ladder_beta(l, k));
                if (p < 1e-3)
                    fail_msg("%d temperatures, heat %g: at number %d p = %.2g",
                             n, heat, k, p);
            }
        }
    for (int k = 0; k < MOST; k++)
        free(kept[k]);
}

/* The same in time: short random walks between exchanges, temperatures that
 * learned and were then held. */
TEST(chains_with_exchange_keep_every_marginal)
{
    enum { N_TEMP = 4, WARM = 2000, N = 120000, THIN = 30 };
    double x[N_TEMP] = {0}, *kept[N_TEMP];
    gsl_rng *rng = rng_new(12, 0);
    tsr_ladder *l = own_tsr_ladder(tsr_ladder_new(N_TEMP, 30.0, 4, 0));
    for (int k = 0; k < N_TEMP; k++)
        kept[k] = calloc(N / THIN, sizeof *kept[k]);
    for (int i = -WARM; i < N; i++) {
        for (int k = 0; k < N_TEMP; k++) {
            int r = tsr_ladder_replica(l, k);
            double y = x[r] + gsl_ran_gaussian(rng, 0.8);
            double change =
                0.5 * (x[r] * x[r] - y * y) +
                tsr_ladder_beta(l, k) * (log_lik_at(y) - log_lik_at(x[r]));
            if (log(gsl_rng_uniform_pos(rng)) < change)
                x[r] = y;
        }
        swap(l, x, 1.0, i < 0);
        for (int k = 0; k < N_TEMP && i >= 0 && i % THIN == 0; k++)
            kept[k][i / THIN] = x[tsr_ladder_replica(l, k)];
    }
    for (int k = 0; k < N_TEMP; k++) {
        double p = ks(kept[k], N / THIN, tsr_ladder_beta(l, k));
        if (p < 1e-3)
            fail_msg("at temperature %d p = %.2g", k, p);
        free(kept[k]);
    }
}

/* min(1, exp((1/T_a - 1/T_b) (L_b - L_a))): what is reported, to rounding, and
 * how often it happens. Even pairs, then odd ones. */
TEST(probability_is_exact)
{
    enum { N_TEMP = 5, N = 40000 };
    const double log_lik[N_TEMP] = {-3.0, -3.4, -2.9, -6.0, -5.5};
    tsr_ladder *l = own_tsr_ladder(tsr_ladder_new(N_TEMP, 16.0, 5, 0));
    double expected[N_TEMP] = {0}, happened[N_TEMP] = {0};
    for (int k = 0; k < N_TEMP; k++)
        assert_near(tsr_ladder_beta(l, k), pow(2.0, -k), 1e-15);
    for (int i = 0; i < N; i++) {
        exchanges done = {0};
        int at[N_TEMP];
        for (int k = 0; k < N_TEMP; k++)
            at[k] = tsr_ladder_replica(l, k);
        tsr_ladder_swap(l, log_lik, 0.7, 0, note, &done);
        for (int k = i % 2; k + 1 < N_TEMP; k += 2) {
            double slope = 0.7 * (pow(2.0, -k) - pow(2.0, -k - 1));
            expected[k] +=
                fmin(1.0, exp(slope * (log_lik[at[k + 1]] - log_lik[at[k]])));
            happened[k] += tsr_ladder_replica(l, k) != at[k];
        }
        for (int k = 0; k < done.n; k++) {
            int colder = done.pair[k][0], place = 0;
            while (at[place] != colder)
                place++;
            assert_ints(place % 2, i % 2, at[place + 1], done.pair[k][1],
                        tsr_ladder_replica(l, place), done.pair[k][1]);
        }
    }
    for (int k = 0; k + 1 < N_TEMP; k++) {
        double offered = N / 2.0, p = expected[k] / offered;
        double sd = sqrt(offered * p * (1.0 - p)) + 1e-9;
        assert_near(tsr_ladder_rate(l, k), p, 1e-12);
        assert_near(happened[k], expected[k], 4.5 * sd);
    }
    assert_true(isnan(tsr_ladder_rate(l, N_TEMP - 1)));
}

/* Learning evens what a geometric ladder leaves uneven; the ends stay to the
 * bit, and so does all once it is over. */
TEST(learning_evens_rates)
{
    enum { N_TEMP = 6, WARM = 20000, N = 20000 };
    const double t_max = 300.0 / 7.0;
    gsl_rng *rng = rng_new(13, 0);
    double lowest[2], highest[2], x[N_TEMP], beta[N_TEMP];
    for (int learn = 0; learn < 2; learn++) {
        tsr_ladder *l = own_tsr_ladder(tsr_ladder_new(N_TEMP, t_max, 6, 0));
        for (int i = 0; i < WARM && learn; i++) {
            draw_all(l, 1.0, rng, x);
            swap(l, x, 1.0, 1);
            assert_true(tsr_ladder_beta(l, 0) == 1.0);
            assert_true(tsr_ladder_beta(l, N_TEMP - 1) == 1.0 / t_max);
            for (int k = 0; k + 1 < N_TEMP; k++)
                assert_true(tsr_ladder_beta(l, k) > tsr_ladder_beta(l, k + 1));
        }
        for (int k = 0; k < N_TEMP; k++)
            beta[k] = tsr_ladder_beta(l, k);
        tsr_ladder_reset(l);
        for (int i = 0; i < N; i++) {
            draw_all(l, 1.0, rng, x);
            swap(l, x, 1.0, 0);
        }
        lowest[learn] = 1.0, highest[learn] = 0.0;
        for (int k = 0; k < N_TEMP; k++) {
            assert_true(tsr_ladder_beta(l, k) == beta[k]);
            if (k + 1 < N_TEMP) {
                lowest[learn] = fmin(lowest[learn], tsr_ladder_rate(l, k));
                highest[learn] = fmax(highest[learn], tsr_ladder_rate(l, k));
            }
        }
    }
    if (highest[1] - lowest[1] > 0.025 ||
        highest[0] - lowest[0] < 3.0 * (highest[1] - lowest[1]))
        fail_msg("rates %.3f to %.3f geometric, %.3f to %.3f learned",
                 lowest[0], highest[0], lowest[1], highest[1]);
}

/* All exchanges happen: each replica goes up one pair a round and down again,
 * so the round trips are known. Counted again from the places. */
TEST(round_trips_are_counted)
{
    const double even[TSR_MAX_TEMPERATURES] = {0};
    for (int n = 2; n <= 7; n++) {
        tsr_ladder *l = own_tsr_ladder(tsr_ladder_new(n, 9.0, 7, n));
        for (int part = 0; part < 2; part++) {
            enum { N = 1000 };
            int been[TSR_MAX_TEMPERATURES] = {0}; /* 1 cold, 2 then hot */
            long trips = 0;
            exchanges done;
            been[tsr_ladder_replica(l, 0)] = 1;
            for (int i = 0; i < N; i++) {
                done.n = 0;
                tsr_ladder_swap(l, even, 1.0, 0, note, &done);
                int cold = tsr_ladder_replica(l, 0);
                int hot = tsr_ladder_replica(l, n - 1);
                trips += been[cold] == 2;
                been[cold] = 1;
                if (been[hot] == 1)
                    been[hot] = 2;
            }
            assert_int_equal(tsr_ladder_round_trips(l), trips);
            /* n replicas, each round trip takes 2 n rounds (2 pairs: 4) */
            assert_true(labs(trips - N / 2) <= n);
            tsr_ladder_reset(l);
            assert_int_equal(tsr_ladder_round_trips(l), 0);
        }
    }
}

static void must_not(void *context, int colder, int hotter)
{
    (void)context;
    fail_msg("replicas %d and %d are exchanged", colder, hotter);
}

TEST(one_temperature_does_nothing)
{
    const double log_lik = -1.0;
    tsr_ladder *l = own_tsr_ladder(tsr_ladder_new(1, 50.0, 8, 0));
    for (int i = 0; i < 20; i++)
        tsr_ladder_swap(l, &log_lik, 0.5, 1, must_not, NULL);
    assert_ints(tsr_ladder_size(l), 1, tsr_ladder_replica(l, 0), 0);
    assert_all(tsr_ladder_beta(l, 0) == 1.0, isnan(tsr_ladder_rate(l, 0)));
    assert_int_equal(tsr_ladder_round_trips(l), 0);
}

/* The same seed and number, the same exchanges; another of either, others. */
TEST(stream_is_the_ladders_own)
{
    enum { N_TEMP = 4, N = 200, N_LADDER = 4 };
    const uint64_t seed[N_LADDER] = {21, 21, 21, 22};
    const int number[N_LADDER] = {3, 3, 4, 3};
    int trail[N_LADDER][N][N_TEMP];
    for (int j = 0; j < N_LADDER; j++) {
        gsl_rng *rng = rng_new(14, 0);
        tsr_ladder *l =
            own_tsr_ladder(tsr_ladder_new(N_TEMP, 20.0, seed[j], number[j]));
        for (int i = 0; i < N; i++) {
            double x[N_TEMP];
            for (int r = 0; r < N_TEMP; r++)
                x[r] = gsl_ran_gaussian(rng, 1.0);
            swap(l, x, 1.0, i < N / 2);
            for (int k = 0; k < N_TEMP; k++)
                trail[j][i][k] = tsr_ladder_replica(l, k);
        }
    }
    assert_memory_equal(trail[0], trail[1], sizeof trail[0]);
    assert_memory_not_equal(trail[0], trail[2], sizeof trail[0]);
    assert_memory_not_equal(trail[0], trail[3], sizeof trail[0]);
}

/* The estimated log evidence and its error are right for models whose tempered
 * posteriors are normal, where the exact value is known. */
#include "analysis/evidence.h"
#include "analysis/loo.h"
#include "tests/test.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <unistd.h>

enum { N_TEMP = 9, N_GROUP = 6, N_DRAW = 150 };

/* theta ~ N(0, 1) in DIM dimensions; log L = -sum (theta - m)^2 / 2 s^2. */
enum { DIM = 4 };
static const double m = 1.5, s2 = 0.01;

static double log_z(double beta)
{
    return DIM * (0.5 * log(s2 / (s2 + beta)) - 0.5 * m * m / (1 + s2 / beta));
}

/* Successive draws of a group have this correlation. */
static void fill(gsl_rng *rng, const double *beta, double correlation,
                 double *log_lik)
{
    double z[N_TEMP][DIM];
    for (int i = 0; i < N_GROUP * N_DRAW; i++)
        for (int k = 0; k < N_TEMP; k++) {
            const double precision = 1.0 + beta[k] / s2;
            const double old = i % N_DRAW == 0 ? 0.0 : correlation;
            double sum = 0.0;
            for (int d = 0; d < DIM; d++) {
                z[k][d] = (old > 0.0 ? old * z[k][d] : 0.0) +
                          sqrt(1.0 - old * old) * gsl_ran_gaussian(rng, 1.0);
                const double theta =
                    m * beta[k] / s2 / precision + z[k][d] / sqrt(precision);
                sum -= (theta - m) * (theta - m) / (2.0 * s2);
            }
            log_lik[i * N_TEMP + k] = sum;
        }
}

static void set_ladder(double *beta, double t_max)
{
    for (int k = 0; k < N_TEMP; k++)
        beta[k] = pow(t_max, -(double)k / (N_TEMP - 1));
}

/* Over repetitions the mean is right, and the errors are those told. */
static void check_answer(double t_max, double correlation)
{
    enum { REPEATS = 40 };
    double beta[N_TEMP], sum = 0.0, square = 0.0, told = 0.0, largest[2];
    double *log_lik = array(N_GROUP * N_DRAW * N_TEMP, sizeof *log_lik);
    gsl_rng *rng = rng_new(5, 0);
    set_ladder(beta, t_max);
    for (int r = 0; r < REPEATS; r++) {
        tsr_evidence e = {0};
        fill(rng, beta, correlation, log_lik);
        tsr_evidence_estimate(N_GROUP, N_DRAW, N_TEMP, beta, log_lik, largest,
                              &e);
        assert_string_equal(e.why_not, "");
        sum += e.log - log_z(1.0);
        square += pow(e.log - log_z(1.0), 2.0);
        told += e.error * e.error;
    }
    const double sd = sqrt(square / REPEATS);
    print_message("  log Z %.3f, off by %.4f on average, sd %.4f, told %.4f\n",
                  log_z(1.0), sum / REPEATS, sd, sqrt(told / REPEATS));
    assert_all(fabs(sum / REPEATS) < 4.0 * sd / sqrt(REPEATS),
               sd<0.7, 1.5 * sqrt(told / REPEATS)> sd,
               sd > 0.6 * sqrt(told / REPEATS));
}

/* At T = 1e6 beta log L is some -7e-4, at T = 1200 -0.5 with a deviation of
 * 0.3: there the step from the hottest temperature to the prior counts. */
TEST(known_answer)
{
    check_answer(1e6, 0.0);
    check_answer(1200.0, 0.0);
}

/* Draws of a chain that follow each other closely are worth fewer. */
TEST(correlated_draws)
{
    check_answer(1e6, 0.9);
}

/* A group that lies apart is named, with its share of the squared error. */
TEST(largest_group)
{
    enum { APART = 4 };
    double beta[N_TEMP], largest[2];
    double *log_lik = array(N_GROUP * N_DRAW * N_TEMP, sizeof *log_lik);
    gsl_rng *rng = rng_new(5, 2);
    tsr_evidence e = {0};
    char text[TSR_EVIDENCE_TEXT];
    set_ladder(beta, 1e6);
    fill(rng, beta, 0.0, log_lik);
    for (int i = 0; i < N_DRAW * N_TEMP; i++)
        log_lik[APART * N_DRAW * N_TEMP + i] -= 3.0;
    tsr_evidence_estimate(N_GROUP, N_DRAW, N_TEMP, beta, log_lik, largest, &e);
    assert_all(largest[0] == APART, largest[1] > 0.7);
    e.largest = largest[1];
    e.first_chain = e.last_chain = APART;
    assert_has(tsr_evidence_format(&e, text),
               "of the squared error from chain 4");
}

/* The precise estimate counts most, one known alone is taken as it is, and
 * estimates that exclude each other leave their difference as the error. */
TEST(combination)
{
    tsr_evidence e = {.ladder = 10.0,
                      .ladder_error = 0.1,
                      .population = 10.5,
                      .population_error = 0.3,
                      .n_population = 4};
    const double x = 0.01 * 15.0 / 13.0, y = 0.09 * 3.0, by = y / (x + y);
    tsr_evidence_combine(16, &e);
    assert_near(e.log, 10.0 * by + 10.5 * (1.0 - by), 1e-12);
    assert_near(e.error, hypot(0.1 * by, 0.3 * (1.0 - by)), 1e-12);
    e.population = 13.0;
    tsr_evidence_combine(16, &e);
    assert_near(e.error, 3.0, 1e-12);
    e.population = (double)NAN;
    tsr_evidence_combine(16, &e);
    assert_all(e.log == 10.0, e.error == 0.1);
    e.ladder = (double)NAN;
    e.population = 13.0;
    tsr_evidence_combine(16, &e);
    assert_all(e.log == 13.0, e.error == 0.3);
}

/* A ladder that ends before the prior gives no number. */
TEST(no_prior)
{
    double beta[N_TEMP], largest[2];
    double *log_lik = array(N_GROUP * N_DRAW * N_TEMP, sizeof *log_lik);
    gsl_rng *rng = rng_new(5, 1);
    tsr_evidence e = {0};
    char text[TSR_EVIDENCE_TEXT];
    set_ladder(beta, 20.0);
    fill(rng, beta, 0.0, log_lik);
    tsr_evidence_estimate(N_GROUP, N_DRAW, N_TEMP, beta, log_lik, largest, &e);
    assert_true(isnan(e.log));
    assert_non_null(
        strstr(tsr_evidence_format(&e, text), "does not sample the prior"));
    /* where evidence is asked for already, that alone is no help */
    assert_has(text, "a higher sampler.t_max");
    assert_has(text, "or a higher sampler.t_max)");
}

/* Likelihoods so far apart that doubles between them are too: the search for
 * the ratio ends all the same. */
TEST(ends_at_any_size)
{
    enum { N = 20 };
    const double beta[] = {1.0, 1e-14};
    double log_lik[2 * N][2], largest[2];
    tsr_evidence e = {0};
    for (int i = 0; i < 2 * N; i++) {
        log_lik[i][0] = -1e12 + i;
        log_lik[i][1] = -2e12 - 1e9 * i;
    }
    alarm(20);
    tsr_evidence_estimate(2, N, 2, beta, log_lik[0], largest, &e);
    alarm(0);
    assert_true(e.log > -2.1e12 && e.log < -1e12);
}

/* ---- leaving out points ---- */

enum { N_POINT = 12, N_THETA = 2000 };
static const double noise = 0.5;

/* Points about an unknown mean under a flat prior, one of them far away, and
 * draws of the mean's posterior, the middles of equal parts of it. */
static void measure_points(double shift, double *y, double *log_lik)
{
    double mean = 0.0;
    for (int k = 0; k < N_POINT; k++)
        y[k] = k == 3 ? 2.2 : sin(1.7 * k);
    for (int k = 0; k < N_POINT; k++)
        mean += y[k] / N_POINT;
    for (int i = 0; i < N_THETA; i++) {
        const double theta =
            mean + shift +
            noise / sqrt(N_POINT) *
                gsl_cdf_ugaussian_Pinv((i + 0.5) / (double)N_THETA);
        for (int k = 0; k < N_POINT; k++)
            log_lik[i * N_POINT + k] =
                log(gsl_ran_gaussian_pdf(y[k] - theta, noise));
    }
}

/* log p(y_k | the others), in closed form. */
static double without(const double *y, int k)
{
    double mean = 0.0;
    for (int j = 0; j < N_POINT; j++)
        mean += j == k ? 0.0 : y[j] / (N_POINT - 1);
    return log(gsl_ran_gaussian_pdf(y[k] - mean,
                                    noise * sqrt(1.0 + 1.0 / (N_POINT - 1))));
}

TEST(test_loo)
{
    double y[N_POINT], difference, error;
    double *log_lik = array(N_THETA * N_POINT, sizeof *log_lik);
    tsr_loo loo, other;
    measure_points(0.0, y, log_lik);
    assert_int_equal(tsr_loo_compute(N_THETA, N_POINT, log_lik, &loo, NULL), 0);
    for (int k = 0; k < N_POINT; k++)
        assert_near(loo.point[k], without(y, k), 0.005);
    /* arviz.loo(..., reff=1.0), version 1, whose variance of the points
     * divides by n; R's loo divides by n - 1 */
    assert_nears(1e-9, loo.elpd, -22.225669054830494, loo.error,
                 sqrt(12.0 / 11.0) * 7.62392582124751, loo.p_loo,
                 2.9623341917390213, loo.worst_k, 0.40935040735873524);
    assert_int_equal(loo.n_bad, 0);

    measure_points(0.3, y, log_lik); /* a worse model */
    assert_int_equal(tsr_loo_compute(N_THETA, N_POINT, log_lik, &other, NULL),
                     0);
    assert_true(tsr_loo_compare(&loo, &other, &difference, &error));
    assert_near(difference, other.elpd - loo.elpd, 1e-12);
    assert_true(difference < -1.0);
    assert_true(error < 0.7 * loo.error); /* the far point is hard for both */
    other.n--;
    assert_false(tsr_loo_compare(&loo, &other, &difference, &error));
    assert_true(isnan(difference) && isnan(error));
    tsr_loo_clear(&loo);
    tsr_loo_clear(&other);
}

/* az.psislw(x) for x = -power log(1 - u), u the middles of n
 * equal parts in a fixed disorder. */
TEST(test_psis)
{
    static const struct {
        double power, k, ess, largest;
    } want[] = {{0.45 * 0.9, 0.42007954894248917, 268.89111868057694,
                 -3.798106893885162},
                {0.45 * 4.0, 1.5424187143572967, 2.347187410130731,
                 -0.4491638436216264}};
    enum { SIZE = 400 };
    for (size_t c = 0; c < COUNT_OF(want); c++) {
        double x[SIZE], top = -HUGE_VAL, sum = 0.0;
        tsr_psis psis;
        for (int i = 0; i < SIZE; i++)
            x[i] = -want[c].power * log1p(-((i * 7919) % SIZE + 0.5) / SIZE);
        OK(tsr_psis_smooth(SIZE, x, &psis, &err));
        for (int i = 0; i < SIZE; i++) {
            top = fmax(top, x[i]);
            sum += exp(x[i]);
        }
        assert_near(sum, 1.0, 1e-12);
        assert_near(psis.pareto_k, want[c].k, 1e-9);
        assert_near(psis.ess, want[c].ess, 1e-7);
        assert_near(top, want[c].largest, 1e-9);
    }
    double none[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    double bad[3] = {0.0, (double)NAN, 0.0}, same[3] = {7.0, 7.0, 7.0};
    tsr_psis psis;
    assert_int_equal(tsr_psis_smooth(3, none, &psis, NULL), TSR_E_NUMERIC);
    assert_int_equal(tsr_psis_smooth(3, bad, &psis, NULL), TSR_E_NUMERIC);
    OK(tsr_psis_smooth(3, same, &psis, &err));
    assert_near(psis.ess, 3.0, 1e-12);
    assert_true(psis.pareto_k < 0.0);
}

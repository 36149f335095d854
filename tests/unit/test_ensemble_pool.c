/* Posteriors over ensembles of a pool: the likelihood is that of the noise
 * model, evidence and weights are those of sums over all ensembles, and
 * intervals hold the truth as often as they say. */
#include "analysis/ensemble.h"
#include "analysis/evidence.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

enum { N_Q = 40, MOST = 200 };

/* A pool of chains, Rg from `low` to `high` evenly, and its data. */
typedef struct {
    double q[N_Q], intensity[N_Q], sigma[N_Q], identity[N_Q * N_Q];
    double pair[MOST][TSR_N_COMP_PAIR * N_Q], rg[MOST];
    tsr_saxs saxs;
    tsr_linear linear;
    tsr_parameter contrast[TSR_N_CONTRAST];
    tsr_ensemble_pool pool;
} problem;

static const double dq = 0.006, radius_ang = 1.6;
static char name[] = "chains";

/* Debye's curve of a Gaussian chain. */
static double chain(double q, double rg)
{
    const double x = q * q * rg * rg;
    return x < 1e-9 ? 1.0 : 2.0 * (exp(-x) + x - 1.0) / (x * x);
}

/* mode bit 0: infer c1, bit 1: c2; bit 2: curves of more dimensions, which
 * later conformations add. */
static problem *new_problem(int n, double low, double high, int mode)
{
    const tsr_contrast_options contrast = {
        .c1 = {mode & 1 ? TSR_CONTRAST_INFER : -1, 1.0},
        .c1_mean = 1.0,
        .c1_width = 0.02,
        .c1_range = {0.95, 1.05},
        .c2 = {mode & 2 ? TSR_CONTRAST_INFER : -1, 1.0},
        .c2_mean = 1.0,
        .c2_width = 1.5,
        .c2_range = {0.0, 4.0}};
    const double electrons[] = {10000.0, 8000.0, 300.0};
    problem *p = calloc(1, sizeof *p);
    assert_non_null(p);
    OK(tsr_contrast_priors(&contrast, p->contrast, &err));
    for (int m = 0; m < n; m++) {
        const double rg = p->rg[m] = low + (high - low) * (m + 0.5) / n;
        const double part[] = {rg, 0.98 * rg, rg + 3.0};
        for (int a = 0, i = 0; a < 3; a++)
            for (int b = a; b < 3; b++, i++)
                for (int k = 0; k < N_Q; k++)
                    p->pair[m][i * N_Q + k] =
                        electrons[a] * electrons[b] *
                        chain(k * dq, sqrt(0.5 * (part[a] * part[a] +
                                                  part[b] * part[b])));
    }
    for (int m = 0; m < n && mode & 4; m++)
        for (int i = 0; i < TSR_N_COMP_PAIR * N_Q; i++)
            p->pair[m][i] *= 1.0 + 0.4 * sin(i % N_Q * dq * (10.0 + 6.0 * m));
    for (int k = 0; k < N_Q; k++)
        p->identity[k * (N_Q + 1)] = 1.0;
    p->linear = (tsr_linear){.infer_scale = 1,
                             .infer_background = 1,
                             .scale = 1.0,
                             .background_sd = 0.2};
    p->saxs = (tsr_saxs){.path = name,
                         .n = N_Q,
                         .q = p->q,
                         .intensity = p->intensity,
                         .sigma = p->sigma};
    return p;
}

/* I(q) of an ensemble, by the formula itself. */
static void curve_of(problem *p, int k, const int *member, const double *weight,
                     double c1, double c2, double *out)
{
    for (int i = 0; i < N_Q; i++) {
        out[i] = 0.0;
        for (int j = 0; j < k; j++)
            out[i] += weight[j] *
                      tsr_component_intensity(
                          p->pair[member[j]] + i, N_Q,
                          tsr_component_scale(c1, radius_ang, i * dq), c2);
    }
}

/* Data of an ensemble with s times the stated errors; then the pool of n. */
static void measure(problem *p, int n, int k, const int *member,
                    const double *weight, double c2, double relative, double s,
                    gsl_rng *rng)
{
    double curve[N_Q], part[TSR_ENSEMBLE_PARTS * N_Q];
    curve_of(p, k, member, weight, 1.0, c2, curve);
    for (int i = 0; i < N_Q; i++) {
        p->q[i] = i * dq;
        p->sigma[i] = relative * (1e-5 * curve[i] + 0.5);
        p->intensity[i] =
            1e-5 * curve[i] + 0.1 + gsl_ran_gaussian(rng, s * p->sigma[i]);
    }
    tsr_pool_clear(&p->pool.pool);
    OK(tsr_ensemble_pool_make(&p->saxs, &p->linear, p->contrast, n, &p->pool,
                              &err));
    for (int m = 0; m < n; m++) {
        const tsr_partials partials = {.n_comp = 3,
                                       .grid = {.n_q = N_Q, .dq_inv_ang = dq},
                                       .pair = p->pair[m],
                                       .radius_ang = radius_ang};
        OK(tsr_ensemble_parts(&p->pool, &partials, p->identity, part, &err));
        OK(tsr_ensemble_pool_add(&p->pool, part, &err));
    }
}

static void end(problem *p)
{
    tsr_pool_clear(&p->pool.pool);
    free(p);
}

static double log_lik(const problem *p, int k, const int *member,
                      const double *weight, double log_s)
{
    tsr_ensemble_draw draw = {.theta = {1.0, 1.0, log_s}};
    OK(tsr_ensemble_evaluate(&p->pool, k, member, weight, NULL, &draw, NULL,
                             &err));
    return draw.log_lik;
}

/* log of exp(a) + exp(b) */
static double log_add(double a, double b)
{
    const double top = fmax(a, b);
    return top == -HUGE_VAL ? top : top + log(exp(a - top) + exp(b - top));
}

TEST(test_likelihood_is_that_of_the_noise_model)
{
    enum { N = 30 };
    gsl_rng *rng = rng_new(1, 0);
    for (int mode = 0; mode < 8; mode++) {
        problem *p = new_problem(N, 15.0, 40.0, mode);
        const int truth[] = {3, 20};
        const double share[] = {0.3, 0.7};
        p->linear.background_sd = mode & 4 ? 0.2 : 0.0;
        p->linear.infer_background = mode != 5;
        measure(p, N, 2, truth, share, 1.0, 0.01, 1.0, rng);
        tsr_pool pool = {0};
        tsr_noise *noise;
        const tsr_noise_options options = {.model = 0};
        const tsr_noise_spec spec = {.options = &options,
                                     .saxs = &p->saxs,
                                     .matrix = p->identity,
                                     .n_q = N_Q,
                                     .linear = &p->linear};
        OK(tsr_noise_new(&spec, &pool, &noise, &err));
        for (int i = 0; i < 20; i++) {
            int member[3];
            double weight[3], sum = 0.0, curve[N_Q];
            tsr_ensemble_draw draw = {.theta = {1.0, 1.0, 0.0}};
            for (int j = 0; j < 3; j++) {
                member[j] = (int)gsl_rng_uniform_int(rng, N);
                sum += weight[j] = gsl_rng_uniform(rng);
            }
            for (int j = 0; j < 3; j++)
                weight[j] /= sum;
            if (mode & 1)
                draw.theta[TSR_C1] = 0.95 + 0.1 * gsl_rng_uniform(rng);
            if (mode & 2)
                draw.theta[TSR_C2] = 4.0 * gsl_rng_uniform(rng);
            draw.theta[TSR_ENSEMBLE_LOG_S] = gsl_ran_gaussian(rng, 0.5);
            const double *theta = draw.theta + TSR_ENSEMBLE_LOG_S;
            OK(tsr_ensemble_evaluate(&p->pool, 3, member, weight, NULL, &draw,
                                     NULL, &err));
            curve_of(p, 3, member, weight, draw.theta[TSR_C1],
                     draw.theta[TSR_C2], curve);
            tsr_fit fit = {.scale = 0.0};
            noise->type->fit(noise, curve, theta, &fit);
            const double want = noise->type->log_integral(noise, &fit, theta);
            /* the rest outside the axes, 0.01 sigma, times the misfit */
            assert_near(draw.log_lik, want,
                        0.02 * (1.0 + sqrt(fit.chi2)) *
                            exp(-2.0 * draw.theta[TSR_ENSEMBLE_LOG_S]));
            assert_near(draw.chi2, fit.chi2 / N_Q,
                        0.002 * (1.0 + sqrt(fit.chi2)));
            assert_near(draw.scale, fit.scale,
                        1e-4 * (1.0 + sqrt(fit.chi2 / N_Q)) * fit.scale);
            assert_near(draw.background, fit.background, 1e-3);
        }
        assert_all(p->pool.n_dim<N_Q, p->pool.n_dim> 2);
        tsr_pool_clear(&pool);
        end(p);
    }
}

/* log of the mean over the prior of log s, by its quantiles, of exp(log_lik):
 * a quadrature of a smooth function. */
static double over_noise(const problem *p, int k, const int *member,
                         const double *weight)
{
    enum { POINTS = 60 };
    double sum = -HUGE_VAL;
    for (int i = 0; i < POINTS; i++) {
        const double z = 6.0 * (2.0 * (i + 0.5) / POINTS - 1.0);
        const double log_mass =
            -0.5 * z * z - 0.5 * log(6.283185307179586) + log(12.0 / POINTS);
        sum = log_add(sum, log_mass + log_lik(p, k, member, weight, 0.5 * z));
    }
    return sum;
}

static double log_z_of(const tsr_ensemble_sample *s)
{
    double error;
    return tsr_evidence_pool_groups(s->n_group, s->log_z, &error);
}

/* One member: the evidence is a sum over the pool. Two: over pairs and shares
 * of weight. Three members of a pool of two with equal weights: over four
 * counts. */
TEST(test_evidence_is_the_sum_over_all_ensembles)
{
    enum { N = 12, SHARES = 40 };
    problem *p = new_problem(N, 18.0, 30.0, 0);
    const int truth[] = {2, 9};
    const double share[] = {0.4, 0.6};
    measure(p, N, 2, truth, share, 1.0, 0.01, 1.0, rng_new(2, 0));
    tsr_pool memory = {0};
    tsr_ensemble_sample s[] = {{.kind = {1, 0}, .n_group = 4, .n_draw = 250},
                               {.kind = {2, 0}, .n_group = 4, .n_draw = 250},
                               {.kind = {3, 1}, .n_group = 4, .n_draw = 250}};
    OK(tsr_ensemble_run(&p->pool, 3, s, 7, 2, &memory, &err));
    double one = -HUGE_VAL, two = -HUGE_VAL, three = -HUGE_VAL, share_2 = 0.0;
    double small = -HUGE_VAL; /* of two, with the weight of members below 6 */
    const double third[] = {1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0}, all = 1.0;
    for (int i = 0; i < N; i++) {
        one = log_add(one, over_noise(p, 1, &i, &all) - log(N));
        for (int j = 0; j < N; j++) {
            for (int k = 0; k < SHARES; k++) {
                const double w = (k + 0.5) / SHARES, weight[] = {w, 1.0 - w};
                const double term = over_noise(p, 2, (int[]){i, j}, weight) -
                                    log((double)N * N * SHARES);
                two = log_add(two, term);
                small = log_add(small, term + log((i < 6 ? w : 0.0) +
                                                  (j < 6 ? 1.0 - w : 0.0)));
            }
            for (int k = 0; k < N; k++)
                three =
                    log_add(three, over_noise(p, 3, (int[]){i, j, k}, third) -
                                       3.0 * log((double)N));
        }
    }
    assert_near(log_z_of(&s[0]), one, 0.15);
    assert_near(log_z_of(&s[1]), two, 0.15);
    assert_near(log_z_of(&s[2]), three, 0.15);
    assert_true(two > one + 3.0); /* the data tell these kinds apart */
    for (int i = 0; i < 1000; i++)
        for (int j = 0; j < 2; j++)
            share_2 +=
                s[1].member[2 * i + j] < 6 ? s[1].weight[2 * i + j] / 1e3 : 0.0;
    assert_near(share_2, exp(small - two), 0.02);
    tsr_pool_clear(&memory);
    end(p);
}

/* log Z of three members of a pool of three, with s fixed: the sum over 27
 * triples and the cells of a triangle of weights. */
static double three_members(const problem *p, double log_s)
{
    enum { CELLS = 40 };
    double sum = -HUGE_VAL;
    int n = 0;
    for (int i = 0; i < CELLS; i++)
        for (int j = 0; i + j < CELLS; j++, n++)
            for (int t = 0; t < 27; t++) {
                const int member[] = {t % 3, t / 3 % 3, t / 9};
                const double a = (i + 1.0 / 3.0) / CELLS;
                const double b = (j + 1.0 / 3.0) / CELLS;
                const double weight[] = {a, b, 1.0 - a - b};
                sum = log_add(sum, log_lik(p, 3, member, weight, log_s));
            }
    return sum - log(27.0 * n);
}

/* Many copies of a pool of three: the sum over all counts, each with its
 * multinomial probability; and the shares that maximum entropy gives, the least
 * chi2 / 2 + k KL. */
TEST(test_many_copies_are_maximum_entropy)
{
    enum { N = 3, K = 60 };
    problem *p = new_problem(N, 20.0, 29.0, 0);
    const int truth[] = {0, 1, 2};
    const double share[] = {0.15, 0.25, 0.6}, fixed = 0.0;
    p->linear.infer_background = 0;
    measure(p, N, 3, truth, share, 1.0, 0.06, 1.0, rng_new(3, 0));
    p->pool.parameter[TSR_ENSEMBLE_LOG_S].infer = 0;
    tsr_pool memory = {0};
    tsr_ensemble_sample both[] = {
        {.kind = {K, 1}, .n_group = 4, .n_draw = 200},
        {.kind = {3, 0}, .n_group = 4, .n_draw = 200}};
    OK(tsr_ensemble_run(&p->pool, 2, both, 8, 2, &memory, &err));
    const tsr_ensemble_sample s = both[0];
    assert_near(log_z_of(&both[1]), three_members(p, fixed), 0.15);
    double log_z = -HUGE_VAL, exact[N] = {0.0}, drawn[N] = {0.0}, best[N];
    double least = HUGE_VAL;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i <= K; i++)
            for (int j = 0; i + j <= K; j++) {
                const int n[] = {i, j, K - i - j};
                double weight[N], log_p = lgamma(K + 1.0) - K * log(3.0);
                for (int m = 0; m < N; m++) {
                    weight[m] = (double)n[m] / K;
                    log_p -= lgamma(n[m] + 1.0);
                }
                log_p += log_lik(p, N, truth, weight, fixed);
                if (pass == 0)
                    log_z = log_add(log_z, log_p);
                for (int m = 0; m < N && pass == 1; m++)
                    exact[m] += weight[m] * exp(log_p - log_z);
            }
    for (int i = 0; i < 800 * K; i++)
        drawn[s.member[i]] += 1.0 / (800.0 * K);
    assert_near(log_z_of(&s), log_z, 0.15);
    for (int m = 0; m < N; m++)
        assert_near(drawn[m], exact[m], 0.01);
    for (int i = 1; i < 200; i++)
        for (int j = 1; i + j < 200; j++) {
            const double w[] = {i / 200.0, j / 200.0, 1.0 - (i + j) / 200.0};
            double cost = -log_lik(p, N, truth, w, fixed);
            for (int m = 0; m < N; m++)
                cost += K * w[m] * log(3.0 * w[m]);
            if (cost < least) {
                least = cost;
                memcpy(best, w, sizeof best);
            }
        }
    for (int m = 0; m < N; m++)
        assert_near(drawn[m], best[m], 0.02);
    assert_true(best[2] > 0.38); /* the data count */
    tsr_pool_clear(&memory);
    end(p);
}

/* Truths from the prior: the rank of the true mean square Rg, and of c2, among
 * the draws is uniform. */
TEST(test_coverage)
{
    enum { N = 60, SEEDS = 60, DRAWS = 160 };
    problem *p = new_problem(N, 15.0, 40.0, 2);
    gsl_rng *rng = rng_new(4, 0);
    int held[2][2] = {{0, 0}, {0, 0}}; /* of Rg and c2, by 50 and 90 % */
    for (int seed = 0; seed < SEEDS; seed++) {
        const double w = gsl_rng_uniform(rng), weight[] = {w, 1.0 - w};
        const int member[] = {(int)gsl_rng_uniform_int(rng, N),
                              (int)gsl_rng_uniform_int(rng, N)};
        const double s = exp(gsl_ran_gaussian(rng, 0.5));
        double c2, below[2] = {0.0, 0.0};
        do
            c2 = 1.0 + gsl_ran_gaussian(rng, 1.5);
        while (c2 < 0.0 || c2 > 4.0);
        measure(p, N, 2, member, weight, c2, 0.02, s, rng);
        double truth = 0.0;
        for (int j = 0; j < 2; j++)
            truth += weight[j] * p->rg[member[j]] * p->rg[member[j]];
        tsr_pool memory = {0};
        tsr_ensemble_sample x = {.kind = {2, 0}, .n_group = 1, .n_draw = DRAWS};
        OK(tsr_ensemble_run(&p->pool, 1, &x, (uint64_t)seed, 1, &memory, &err));
        for (int i = 0; i < DRAWS; i++) {
            double square = 0.0;
            for (int j = 0; j < 2; j++)
                square += x.weight[2 * i + j] * p->rg[x.member[2 * i + j]] *
                          p->rg[x.member[2 * i + j]];
            below[0] += (square < truth) / (double)DRAWS;
            below[1] += (x.draw[i].theta[TSR_C2] < c2) / (double)DRAWS;
        }
        for (int v = 0; v < 2; v++) {
            held[v][0] += below[v] > 0.25 && below[v] < 0.75;
            held[v][1] += below[v] > 0.05 && below[v] < 0.95;
        }
        tsr_pool_clear(&memory);
    }
    for (int v = 0; v < 2; v++) { /* three standard deviations */
        assert_near(held[v][0], 0.5 * SEEDS, 11.7);
        assert_near(held[v][1], 0.9 * SEEDS, 7.0);
    }
    end(p);
}

TEST(test_threads_and_groups)
{
    enum { N = 100 };
    problem *p = new_problem(N, 15.0, 40.0, 3);
    const int truth[] = {30, 80};
    const double share[] = {0.5, 0.5}, contrast[] = {1.0, 1.0};
    measure(p, N, 2, truth, share, 1.0, 0.01, 1.0, rng_new(5, 0));
    tsr_pool memory = {0};
    tsr_ensemble_sample s[2] = {{.kind = {2, 0}, .n_group = 2, .n_draw = 20}};
    s[1] = s[0];
    OK(tsr_ensemble_run(&p->pool, 1, &s[0], 9, 1, &memory, &err));
    OK(tsr_ensemble_run(&p->pool, 1, &s[1], 9, 2, &memory, &err));
    assert_memory_equal(s[0].member, s[1].member, 80 * sizeof(int));
    assert_memory_equal(s[0].weight, s[1].weight, 80 * sizeof(double));
    assert_memory_equal(s[0].log_z, s[1].log_z, 2 * sizeof(double));
    int group[N], centre[5];
    assert_int_equal(
        tsr_ensemble_groups(&p->pool, contrast, 0.0, 5, group, centre), 5);
    int n_change = 0; /* groups are intervals of Rg, each with its centre */
    for (int m = 1; m < N; m++)
        n_change += group[m] != group[m - 1];
    assert_int_equal(n_change, 4);
    for (int g = 0; g < 5; g++)
        assert_int_equal(group[centre[g]], g);
    assert_int_equal(
        tsr_ensemble_groups(&p->pool, contrast, 1e9, 5, group, centre), 1);
    tsr_pool_clear(&memory);
    end(p);
}

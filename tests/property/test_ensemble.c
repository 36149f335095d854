/* Sampling an ensemble keeps a consistent state, and gives the prior without
 * data and the posterior with data. */
#include "tests/property/importance.h"
#include "tests/test.h"

#include <gsl/gsl_statistics_double.h>

static const tsr_prior_options soft = {
    .clash = TSR_CLASH_SOFT, .softness = 0.8, .clash_limit = 10.0};
static const tsr_prior_options no_clash = {.clash = TSR_CLASH_NONE,
                                           .softness = 0.5};

/* How many times as long as in `make check`; slow_ensemble.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

/* ---- running sums ---- */

/* The profile is the mean of direct ones plus S(q), and so on. */
static void check_sums(const posterior_sample *s, tsr_batch *fresh,
                       const tsr_chain_view *view, double *one, double *mean)
{
    int n_q = s->likelihood->grid.n_q;
    double sum = 0.0, log_prior = 0.0, square = 0.0, d_max = 0.0;
    memcpy(mean, s->likelihood->self, (size_t)n_q * sizeof *mean);
    for (int k = 0; k < view->n_state; k++) {
        const tsr_conformation *c = view->state[k];
        double w = view->state_weight[k],
               rg = tsr_conformation_rg(s->t, c, NULL);
        OK(tsr_batch_set(fresh, 0, (const double(*)[3])c->body, one, &err));
        for (int q = 0; q < n_q; q++)
            mean[q] += w * one[q];
        assert_true(w > 0.0 && w <= 1.0);
        sum += w, square += w * rg * rg;
        log_prior += tsr_prior_log_reference(s->prior, c);
        assert_true(rg == view->state_rg_ang[k]);
        assert_true(k == 0 || rg >= view->state_rg_ang[k - 1]);
        d_max = fmax(d_max, tsr_largest_distance(s->t->n_body,
                                                 (const double(*)[3])c->body));
    }
    assert_near(sum, 1.0, 1e-12);
    assert_near(view->log_prior, log_prior, 1e-8);
    assert_near(view->rg_ang, sqrt(square), 1e-12 * view->rg_ang);
    assert_true(view->d_max_ang == d_max);
    for (int q = 0; q < n_q; q++)
        if (fabs(view->point->profile[q] - mean[q]) > 1e-10 * mean[0])
            fail_msg("at q number %d the profile is %.12g, of the states "
                     "%.12g",
                     q, view->point->profile[q], mean[q]);
}

/* The likelihood, too, is that of the profile. */
static double fresh_log_lik(const posterior_sample *s, double *mean,
                            gsl_rng *rng)
{
    tsr_point point;
    saxs_point(s->likelihood, &point);
    for (int q = 0; q < s->likelihood->grid.n_q; q++)
        mean[q] -= s->likelihood->self[q]; /* evaluation adds it */
    double log_lik = saxs_evaluate(s->likelihood, mean, 1.0, rng, &point);
    tsr_point_clear(&point);
    return log_lik;
}

TEST(sums_stay_right)
{
    for (int n = 2; n <= 3; n++) {
        posterior_sample s;
        const double third[3] = {0.5, 0.3, 0.2};
        gsl_rng *rng = rng_new(8, 0);
        posterior_open(&s, "GASFPLGKEW", NULL, soft);
        s.target.n_state = n, s.target.infer_weights = 1;
        s.target.n_temp = 2, s.target.t_max = 6.0, s.target.swap_every = 5;
        posterior_data(&s, 1, (const tsr_conformation *const[]){s.extended},
                       third, 0.02, 1.0, 0.0, 0.0, rng);
        posterior_start(&s, 0.0, 2, 0);
        size_t n_q = (size_t)s.likelihood->grid.n_q;
        double *one = array(2 * n_q, sizeof *one), *mean = one + n_q;
        posterior_run run = posterior_run_new(&s, 2, 2, 1);
        posterior_sample other; /* an engine for direct profiles */
        posterior_open(&other, "GASFPLGKEW", NULL, soft);
        memcpy(other.intensity, s.intensity, sizeof s.intensity);
        memcpy(other.sigma, s.sigma, sizeof s.sigma);
        posterior_start(&other, 0.0, 1, 0);
        NEW(tsr_batch, fresh, tsr_batch_new, other.share.engine, 1);
        for (int warm = 1; warm >= 0; warm--)
            for (int i = 0; i < 10; i++) {
                posterior_advance(run, 1, 80 * LENGTH, warm);
                for (int c = 0; c < 2; c++) {
                    tsr_chain_view view;
                    tsr_chain_view_get(tsr_sampler_chain(run.sampler, c),
                                       &view);
                    assert_int_equal(view.n_state, n);
                    check_sums(&other, fresh, &view, one, mean);
                    assert_near(fresh_log_lik(&other, mean, rng), view.log_lik,
                                1e-6);
                }
            }
    }
}

/* ---- prior in, prior out ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double ks_p(double d, double n)
{
    double t = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * d, p = 0.0;
    for (int j = 1; j < 100; j++)
        p += (j % 2 ? 2.0 : -2.0) * exp(-2.0 * j * j * t * t);
    return t < 0.2 ? 1.0 : p;
}

/* Against Beta(a, b). */
static double ks_beta(double *x, int n, double a, double b)
{
    double d = 0.0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int i = 0; i < n; i++) {
        double f = gsl_cdf_beta_P(x[i], a, b);
        d = fmax(d, fmax(f - (double)i / n, (double)(i + 1) / n - f));
    }
    return ks_p(d, n);
}

static double ks_two(double *x, int n, double *y, int m)
{
    double d = 0.0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    qsort(y, (size_t)m, sizeof *y, ascending);
    for (int i = 0, j = 0; i < n && j < m;) {
        if (x[i] <= y[j])
            i++;
        else
            j++;
        d = fmax(d, fabs((double)i / n - (double)j / m));
    }
    return ks_p(d, (double)n * m / (n + m));
}

/* Of n states each weight is Beta(1, n - 1), and since the weights have
 * nothing to do with the states, those in the order of Rg are as well. The
 * radii in that order are order statistics of independent draws. Of 1000 draws
 * at a limit of p = 1e-3: a distribution function that is off by 0.06 (weights)
 * or 0.09 (radii, of two samples) somewhere fails. */
TEST(prior_is_flat_and_independent)
{
    enum { N = 1000 * LENGTH, THIN = 120 };
    for (int n = 2; n <= 3; n++) {
        posterior_sample s;
        double *weight[3], *rg[3], *exact[3];
        posterior_open(&s, "GAFSLG", NULL, soft);
        s.target.n_state = n, s.target.infer_weights = 1, s.target.seed = 17;
        prior_sampler prior = prior_of(&s);
        gsl_rng *rng = rng_new(18, 0);
        tsr_conformation *c = new_conformation(s.t);
        NEW(tsr_chain, chain, tsr_chain_new, &s.target, 0);
        for (int k = 0; k < n; k++) {
            weight[k] = array(N, sizeof(double));
            rg[k] = array(N, sizeof(double));
            exact[k] = array(N, sizeof(double));
        }
        for (int i = -20; i < N; i++) {
            tsr_chain_view view;
            double draw[3];
            for (int j = 0; j < THIN; j++) {
                tsr_body_proposal ask;
                int accepted;
                assert_int_equal(tsr_chain_propose(chain, &ask), 0);
                OK(tsr_chain_decide(chain, NULL, i < 0, &accepted, &err));
            }
            tsr_chain_view_get(chain, &view);
            for (int k = 0; k < n; k++) {
                sample_prior(&prior, rng, c);
                draw[k] = tsr_conformation_rg(s.t, c, NULL);
            }
            qsort(draw, (size_t)n, sizeof *draw, ascending);
            for (int k = 0; k < n && i >= 0; k++) {
                weight[k][i] = view.state_weight[k];
                rg[k][i] = view.state_rg_ang[k];
                exact[k][i] = draw[k];
            }
        }
        double with = gsl_stats_correlation(weight[0], 1, rg[0], 1, N);
        assert_true(fabs(with) < 4.5 / sqrt(N));
        double expected = gsl_stats_correlation(exact[0], 1, exact[1], 1, N);
        double between = gsl_stats_correlation(rg[0], 1, rg[1], 1, N);
        assert_near(between, expected, 6.5 / sqrt(N));
        for (int k = 0; k < n; k++) {
            double p = ks_beta(weight[k], N, 1.0, n - 1.0);
            double p_rg = ks_two(rg[k], N, exact[k], N);
            print_message("  %d states, number %d: p of the weight %.3f, of Rg "
                          "%.3f\n",
                          n, k + 1, p, p_rg);
            assert_true(p > 1e-3);
            assert_true(p_rg > 1e-3);
        }
    }
}

/* ---- with data ---- */

TEST(posterior_is_right)
{
    posterior_sample s;
    posterior_open(&s, "GAFSLG", NULL, no_clash);
    s.target.n_state = 2, s.target.infer_weights = 1;
    s.target.n_temp = 2, s.target.t_max = 5.0, s.target.swap_every = 4;
    compare_with_importance(&s, 1.0, 46, 0.003, 8000 * LENGTH, 10, 60 * LENGTH);
}

/* A chain that is hot stays so: the power of the likelihood is in every step,
 * those of the weights, too. Without exchanges nothing could hide an error. */
TEST(hot_chain_is_right)
{
    posterior_sample s;
    posterior_open(&s, "GAFSLG", NULL, no_clash);
    s.target.n_state = 2, s.target.infer_weights = 1;
    compare_with_importance(&s, 0.2, 46, 0.0007, 8000 * LENGTH, 40,
                            100 * LENGTH);
}

static int has_variable(const posterior_sample *s, const char *name)
{
    const tsr_trace_variable *variable;
    int found = 0;
    NEW(tsr_record, record, tsr_record_new, &s->target, 1, 1);
    int n = tsr_record_variables(record, &variable);
    for (int v = 0; v < n; v++)
        found += strcmp(variable[v].name, name) == 0;
    return found;
}

/* Weights that are not inferred stay equal, and are not stored. */
TEST(equal_weights_stay_equal)
{
    posterior_sample s;
    const double one = 1.0;
    gsl_rng *rng = rng_new(9, 0);
    posterior_open(&s, "GAFSLG", NULL, no_clash);
    s.target.n_state = 3;
    assert_int_equal(has_variable(&s, "weight_1"), 0);
    assert_int_equal(has_variable(&s, "rg_3"), 2); /* and of warm-up */
    s.target.infer_weights = 1;
    assert_int_equal(has_variable(&s, "weight_3"), 2);
    s.target.n_state = 1;
    assert_int_equal(has_variable(&s, "weight_1"), 0);
    assert_int_equal(has_variable(&s, "rg_1"), 0);
    s.target.n_state = 3, s.target.infer_weights = 0;
    posterior_data(&s, 1, (const tsr_conformation *const[]){s.extended}, &one,
                   0.02, 1.0, 0.0, 0.0, rng);
    posterior_start(&s, 0.3, 1, 0);
    posterior_run run = posterior_run_new(&s, 1, 1, 1);
    for (int i = 0; i < 20; i++) {
        tsr_chain_view view;
        posterior_advance(run, 1, 10, i < 10);
        tsr_chain_view_get(tsr_sampler_chain(run.sampler, 0), &view);
        for (int k = 0; k < 3; k++)
            assert_true(view.state_weight[k] == 1.0 / 3.0);
    }
}

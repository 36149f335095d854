/* Sampling of c1 and c2: without data their prior, at a fixed structure the
 * exact conditional, with all data a consistent state that recovers the truth.
 * */
#include "sampler/chain.h"
#include "sampler/sampler.h"
#include "tests/parameter_draw.h"
#include "tests/property/posterior_sample.h"
#include "tests/property/prior_sampler.h"
#include "tests/test.h"
#include "tests/weighted.h"

#include <gsl/gsl_cdf.h>

static const tsr_prior_options no_clash = {.clash = TSR_CLASH_NONE,
                                           .softness = 0.5};

/* How many times as long as in `make check`; slow_contrast.c says more. 800
 * independent draws, a limit of p = 1e-3: a distribution function that is off
 * by 0.07 somewhere fails. */
#ifndef LENGTH
#define LENGTH 1
#endif

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov: the probability of a distance as large, of n numbers u
 * that should be even on 0 to 1. */
static double ks_even(int n, double *u)
{
    double d = 0.0, p = 0.0;
    qsort(u, (size_t)n, sizeof *u, ascending);
    for (int i = 0; i < n; i++)
        d = fmax(d, fmax(u[i] - (double)i / n, (i + 1.0) / n - u[i]));
    double x = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * d;
    for (int k = 1; k < 100; k++)
        p += 2.0 * (k % 2 ? 1.0 : -1.0) * exp(-2.0 * k * k * x * x);
    return x < 0.2 ? 1.0 : p;
}

static double prior_cdf(const tsr_parameter *p, double x)
{
    double low = gsl_cdf_ugaussian_P((p->low - p->mean) / p->width);
    double high = gsl_cdf_ugaussian_P((p->high - p->mean) / p->width);
    return (gsl_cdf_ugaussian_P((x - p->mean) / p->width) - low) / (high - low);
}

/* ---- without data ---- */

TEST(prior_in_prior_out)
{
    enum { N = 4000, THIN = 30 };
    static double u[TSR_N_CONTRAST][N];
    posterior_sample s;
    tsr_contrast_options o = posterior_infer_contrast();
    o.c1_mean = 1.03; /* cut on one side */
    posterior_open(&s, "GASFG", NULL, no_clash);
    posterior_contrast(&s, &o);
    tsr_body_proposal ask;
    int accepted;
    NEW(tsr_chain, chain, tsr_chain_new, &s.target, 0);
    for (int i = -100; i < N; i++) {
        tsr_chain_view view;
        for (int j = 0; j < THIN; j++) {
            assert_int_equal(tsr_chain_propose(chain, &ask), 0);
            OK(tsr_chain_decide(chain, NULL, i < 0, &accepted, &err));
        }
        tsr_chain_view_get(chain, &view);
        const double *value = posterior_contrast_of(&view);
        double log_prior = view.log_prior;
        for (int k = 0; k < TSR_N_CONTRAST; k++) {
            log_prior += tsr_parameter_log_prior(&s.contrast[k], value[k]);
            if (i >= 0)
                u[k][i] = prior_cdf(&s.contrast[k], value[k]);
        }
        assert_near(view.lp, log_prior, 1e-9);
    }
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        double p = ks_even(N, u[k]);
        print_message("  %s on the prior: p = %.3g\n", s.contrast[k].name, p);
        assert_true(p > 1e-3);
    }
}

/* ---- at a structure that stays ---- */

enum { N_GRID = 161 };

typedef struct {
    double low[TSR_N_CONTRAST], step[TSR_N_CONTRAST];
    double cdf[TSR_N_CONTRAST][N_GRID + 1];
} conditional;

/* Of c1 and c2 at the chain's mean profile: the likelihood with c and b
 * integrated out, to the power beta, times the prior, in cells of a grid. */
static void make_conditional(const posterior_sample *s, const tsr_chain *chain,
                             double beta, conditional *c)
{
    static double log_p[N_GRID][N_GRID];
    const tsr_saxs_term *term = saxs_term(s->likelihood, 0);
    double theta[TSR_TERM_PARAMETERS], top = -(double)INFINITY, sum = 0.0;
    double *profile = array((size_t)s->likelihood->grid.n_q, sizeof *profile);
    memset(c, 0, sizeof *c);
    tsr_term_start(&term->term, theta);
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        c->low[k] = s->contrast[k].low;
        c->step[k] = (s->contrast[k].high - c->low[k]) / N_GRID;
    }
    for (int i = 0; i < N_GRID; i++)
        for (int j = 0; j < N_GRID; j++) {
            const double value[] = {c->low[0] + (i + 0.5) * c->step[0],
                                    c->low[1] + (j + 0.5) * c->step[1]};
            tsr_fit fit;
            tsr_likelihood_profile(s->likelihood, 0, chain->now.partial, value,
                                   profile);
            term->noise->fit(term->state, profile, theta, &fit);
            log_p[i][j] =
                beta * term->noise->log_integral(term->state, &fit, theta) +
                tsr_parameter_log_prior(&s->contrast[0], value[0]) +
                tsr_parameter_log_prior(&s->contrast[1], value[1]);
            top = fmax(top, log_p[i][j]);
        }
    for (int i = 0; i < N_GRID; i++)
        for (int j = 0; j < N_GRID; j++) {
            double p = exp(log_p[i][j] - top);
            c->cdf[0][i + 1] += p, c->cdf[1][j + 1] += p;
            sum += p;
        }
    for (int k = 0; k < TSR_N_CONTRAST; k++)
        for (int i = 0; i < N_GRID; i++)
            c->cdf[k][i + 1] = c->cdf[k][i] + c->cdf[k][i + 1] / sum;
}

static double conditional_cdf(const conditional *c, int k, double x)
{
    double at = (x - c->low[k]) / c->step[k];
    int i = (int)fmin(at, N_GRID - 1.0);
    return c->cdf[k][i] + (at - i) * (c->cdf[k][i + 1] - c->cdf[k][i]);
}

/* Steps on c1 and c2 alone. c and b integrated out, or sampled: the posterior
 * to the power beta then integrates to the same where beta is 1. */
static void conditional_at(int n_state, double beta, int sample)
{
    enum { N = 800 * LENGTH, THIN = 120 };
    static double u[TSR_N_CONTRAST][N];
    posterior_sample s;
    conditional exact;
    gsl_rng *rng = rng_new(31, (uint64_t)n_state);
    const double at[] = {1.02, 1.8}, one = 1.0;
    const tsr_contrast_options o = posterior_infer_contrast();
    posterior_open(&s, "GASFPLGKEWRTVAGSDK", NULL, no_clash);
    posterior_contrast(&s, &o);
    s.target.n_state = n_state, s.target.infer_weights = 0;
    posterior_data_at(&s, 1, (const tsr_conformation *const[]){s.extended},
                      &one, at, 0.004, 1.5, 0.02, 0.0, rng);
    posterior_start_with(&s, 0.0, 1, 0,
                         sample ? TSR_NUISANCE_SAMPLE : TSR_NUISANCE_INTEGRATE);
    NEW(tsr_batch, batch, tsr_batch_new, s.share.engine, 1);
    NEW(tsr_chain, chain, tsr_chain_new, &s.target, 0);
    for (int k = 1; k < n_state; k++) /* states that differ */
        for (int i = 0; i < s.t->n_torsion; i++)
            tsr_conformation_turn(s.t, chain->state[k].current,
                                  &s.t->torsion[i], gsl_ran_gaussian(rng, 0.3));
    tsr_chain_set_beta(chain, beta);
    OK(tsr_chain_start(chain, batch, &err));
    make_conditional(&s, chain, beta, &exact);
    for (int i = -200; i < N; i++) {
        for (int j = 0; j < THIN; j++) {
            OK(tsr_chain_step_parameters(chain, i < 0, &err));
        }
        for (int k = 0; k < TSR_N_CONTRAST && i >= 0; k++)
            u[k][i] = conditional_cdf(
                &exact, k, chain->now.theta[chain->parameters->contrast + k]);
    }
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        double p = ks_even(N, u[k]);
        print_message("  %d states, beta %g, %s: %s p = %.3g\n", n_state, beta,
                      sample ? "sampled" : "integrated", s.contrast[k].name, p);
        if (!(p > 1e-3))
            fail_msg("%s is not as its conditional", s.contrast[k].name);
    }
}

TEST(conditional_is_exact)
{
    conditional_at(1, 1.0, 0);
    conditional_at(1, 0.2, 0);
    conditional_at(2, 1.0, 0);
    conditional_at(1, 1.0, 1);
}

/* ---- all of it ---- */

/* The profile is that of the states, pair by pair, at c1 and c2; with either,
 * both or none of them inferred. */
TEST(state_stays_right)
{
    const double half[] = {0.5, 0.5};
    for (int which = 0; which < 4; which++) {
        posterior_sample s;
        tsr_contrast_options o = posterior_infer_contrast();
        gsl_rng *rng = rng_new(3, 0);
        if (which & 1)
            o.c1 = (tsr_number_or_word){-1, 1.03};
        if (which & 2)
            o.c2 = (tsr_number_or_word){-1, 1.7};
        posterior_open(&s, "GASFPLGKEW", NULL, no_clash);
        posterior_contrast(&s, &o);
        s.target.n_state = 2, s.target.infer_weights = 1;
        s.target.n_temp = 2, s.target.t_max = 5.0, s.target.swap_every = 5;
        posterior_data(
            &s, 2, (const tsr_conformation *const[]){s.extended, s.extended},
            half, 0.02, 1.0, 0.0, 0.0, rng);
        posterior_start(&s, 0.3, 1, 0);
        assert_int_equal(s.likelihood->probe->n_comp,
                         1 + s.contrast[0].infer + s.contrast[1].infer);
        posterior_run run = posterior_run_new(&s, 1, 1, 1);
        for (int i = 0; i < 12; i++) {
            tsr_chain_view view;
            posterior_advance(run, 1, 60 * LENGTH, i < 6);
            tsr_chain_view_get(tsr_sampler_chain(run.sampler, 0), &view);
            const double *value = posterior_contrast_of(&view);
            for (int k = 0; k < s.likelihood->grid.n_q; k += 4) {
                double mean = 0.0, one;
                for (int a = 0; a < 2; a++) {
                    OK(tsr_scattering_intensity(
                        &s.scattering, s.t, view.state[a], value,
                        k * s.likelihood->grid.dq_inv_ang, &one, &err));
                    mean += view.state_weight[a] * one;
                }
                assert_near(view.point->profile[k], mean,
                            1e-9 * view.point->profile[0]);
            }
        }
    }
}

enum { BY_RG, BY_C1, BY_C2, BY_LOG_S, BY_LOG_LIK, BY_WEIGHT, N_BY };
static const char *const by_name[N_BY] = {"Rg",    "c1",      "c2",
                                          "log s", "log lik", "weight 1"};

/* Structures that move with c1 and c2, against draws of the prior weighted with
 * the likelihood to the power beta. Returns the weighted draws' worth. */
static double by_weights(const posterior_sample *s, int n, double beta,
                         double mean[N_BY], double error[N_BY])
{
    const tsr_likelihood *l = s->likelihood;
    const int n_state = tsr_target_n_state(&s->target);
    const int n_profile = tsr_likelihood_n_profile(l);
    double(*value)[N_BY] = array((size_t)n, sizeof *value);
    double *w = array((size_t)n, sizeof *w);
    double *one = array((size_t)n_profile, sizeof *one);
    gsl_rng *rng = rng_new(77, (uint64_t)n_state);
    prior_sampler prior = prior_of(s);
    tsr_conformation *c = new_conformation(s->t);
    tsr_point point;
    tsr_pool *pool = new_pool();
    tsr_parameters *p = tsr_parameters_new(pool, l, s->contrast, n_state,
                                           s->target.infer_weights);
    assert_true(tsr_point_make(l, p->n, &point));
    NEW(tsr_batch, batch, tsr_batch_new, s->share.engine, 1);
    for (int i = 0; i < n; i++) {
        const double *weight = point.theta + p->weight;
        double rg2 = 0.0, least = 1e9;
        parameters_draw(p->n, p->table, rng, point.theta);
        memset(point.partial, 0, (size_t)n_profile * sizeof *point.partial);
        for (int k = 0; k < n_state; k++) {
            sample_prior(&prior, rng, c);
            OK(tsr_batch_set(batch, 0, (const double(*)[3])c->body, one, &err));
            for (int q = 0; q < n_profile; q++)
                point.partial[q] += weight[k] * one[q];
            const double rg = tsr_conformation_rg(s->t, c, NULL);
            rg2 += weight[k] * rg * rg;
            if (rg < least)
                least = rg, value[i][BY_WEIGHT] = weight[k];
        }
        const tsr_prediction prediction = {NULL, n_state, NULL, weight};
        const double *contrast = tsr_parameters_contrast(p, point.theta);
        OK(tsr_likelihood_evaluate(l, point.partial, contrast, prediction, beta,
                                   NULL, NULL, &point, &err));
        value[i][BY_RG] = sqrt(rg2);
        value[i][BY_C1] = contrast[0], value[i][BY_C2] = contrast[1];
        value[i][BY_LOG_S] = point.theta[0];
        w[i] = value[i][BY_LOG_LIK] = point.log_lik;
        w[i] *= beta;
    }
    tsr_point_clear(&point);
    return weighted_means(n, N_BY, value[0], w, mean, error, NULL);
}

static void look_at(const tsr_chain *chain, double by, double sum[N_BY])
{
    tsr_chain_view view;
    tsr_chain_view_get(chain, &view);
    const double *contrast = posterior_contrast_of(&view);
    sum[BY_RG] += by * view.rg_ang;
    sum[BY_C1] += by * contrast[0];
    sum[BY_C2] += by * contrast[1];
    sum[BY_LOG_S] += by * view.point->theta[0];
    sum[BY_LOG_LIK] += by * view.log_lik;
    sum[BY_WEIGHT] += by * view.state_weight[0];
}

/* n_temp 2: also the hotter replica, whose power of the likelihood is beta. */
static void structures_move(int n_state, int infer_c1, double beta)
{
    enum { N_CHAIN = 4, N_BLOCK = 10, BLOCK = 20 * LENGTH, THIN = 12 };
    const int n = N_BLOCK * N_CHAIN;
    static double block[2][N_BLOCK * N_CHAIN][N_BY];
    const double at[] = {1.01, 2.0}, one = 1.0;
    posterior_sample s;
    tsr_contrast_options o = posterior_infer_contrast();
    gsl_rng *rng = rng_new(8, 0);
    if (!infer_c1)
        o.c1 = (tsr_number_or_word){-1, 1.01};
    posterior_open(&s, "GASFPLGK", NULL, no_clash);
    posterior_contrast(&s, &o);
    s.target.n_state = n_state, s.target.infer_weights = n_state > 1;
    s.target.n_temp = 2, s.target.t_max = 1.0 / beta, s.target.swap_every = 3;
    posterior_data_at(&s, 1, (const tsr_conformation *const[]){s.extended},
                      &one, at, 0.03, 0.5, 0.0, 0.0, rng);
    posterior_start(&s, 0.3, N_CHAIN, 0);
    posterior_run run = posterior_run_new(&s, N_CHAIN, 2, 1);
    posterior_warm_up(run, 2000);
    memset(block, 0, sizeof block);
    for (int i = 0; i < N_BLOCK * BLOCK; i++) {
        posterior_advance(run, 1, THIN, 0);
        for (int c = 0; c < N_CHAIN; c++)
            for (int k = 0; k < 2; k++) {
                const int replica =
                    tsr_ladder_replica(tsr_sampler_ladder(run.sampler, c), k);
                look_at(run.sampler->chain[2 * c + replica], 1.0 / BLOCK,
                        block[k][i / BLOCK * N_CHAIN + c]);
            }
    }
    for (int k = 0; k < 2; k++) {
        double mean[N_BY], error[N_BY], own[N_BY], own_error[N_BY];
        block_means(n, N_BY, block[k][0], own, own_error);
        const double power = k == 0 ? 1.0 : beta;
        double worth = by_weights(&s, 4000 * LENGTH, power, mean, error);
        print_message("  %d states, beta %g: weighted draws worth %.0f\n",
                      n_state, power, worth);
        assert_true(worth > 150.0);
        for (int v = 0; v < N_BY - (n_state == 1); v++) {
            const double total = hypot(error[v], own_error[v]);
            print_message("    %-8s %9.4f, weighted %9.4f, error %.4f\n",
                          by_name[v], own[v], mean[v], total);
            assert_near(own[v], mean[v], 4.5 * total + 1e-12);
        }
    }
}

TEST(structures_move_with_it)
{
    structures_move(1, 1, 0.3);
    structures_move(2, 0, 0.3);
}

/* c1 and c2 come out where they were put in, scale, background and noise
 * inferred beside them, for the structure that the data are of. The structure
 * stays: beside c1 and c2 it would mix too slowly for the width of one chain to
 * be that of the posterior. */
TEST(truth_is_found)
{
    enum { N = 400 * LENGTH };
    const double at[] = {1.015, 2.4}, one = 1.0;
    double mean[2] = {0.0}, square[2] = {0.0};
    posterior_sample s;
    gsl_rng *rng = rng_new(12, 0);
    tsr_contrast_options o = posterior_infer_contrast();
    char linker[] = "A:9-11", *range[] = {linker};
    const tsr_strings flexible = {1, range};
    posterior_open(&s, "GASFPLGKEWRTVAGSDKLE", &flexible, no_clash);
    posterior_contrast(&s, &o);
    s.target.n_temp = 2, s.target.t_max = 5.0, s.target.swap_every = 5;
    tsr_conformation *truth = new_conformation(s.t);
    prior_sampler prior = prior_of(&s);
    sample_prior(&prior, rng, truth);
    posterior_data_at(&s, 1, (const tsr_conformation *const[]){truth}, &one, at,
                      0.0001, 1.5, 0.0, 0.0, rng);
    s.target.first = truth;
    s.target.is_frozen = 1;
    posterior_start(&s, 0.3, 1, 0);
    posterior_run run = posterior_run_new(&s, 1, 1, 1);
    posterior_warm_up(run, 4000);
    for (int i = 0; i < N; i++) {
        tsr_chain_view view;
        posterior_advance(run, 1, 20, 0);
        tsr_chain_view_get(tsr_sampler_chain(run.sampler, 0), &view);
        const double *value = posterior_contrast_of(&view);
        for (int k = 0; k < 2; k++)
            mean[k] += value[k] / N, square[k] += value[k] * value[k] / N;
    }
    for (int k = 0; k < 2; k++) {
        double sd = sqrt(square[k] - mean[k] * mean[k]);
        print_message("  %s %.4f, found %.4f +- %.4f\n", s.contrast[k].name,
                      at[k], mean[k], sd);
        assert_near(mean[k], at[k], 3.0 * sd);
    }
    assert_true(sqrt(square[1] - mean[1] * mean[1]) <
                0.5 * s.contrast[1].width);
}

/* Of the steps that ask no engine: a fit that is broken is an error, not a
 * chain that stays for ever. */
TEST(nan_is_an_error)
{
    const double one = 1.0;
    posterior_sample s;
    gsl_rng *rng = rng_new(13, 0);
    posterior_open(&s, "GASFG", NULL, no_clash);
    posterior_data(&s, 1, (const tsr_conformation *const[]){s.extended}, &one,
                   0.01, 1.0, 0.0, 0.0, rng);
    s.saxs.path = (char[]){"made up"};
    posterior_start_with(&s, 0.0, 1, 0, TSR_NUISANCE_SAMPLE);
    NEW(tsr_batch, batch, tsr_batch_new, s.share.engine, 1);
    tsr_chain *chain = new_chain(&s.target, 0, batch);
    ((tsr_fit *)chain->now.fit[0])->scale = (double)NAN;
    FAILS(tsr_chain_step_parameters(chain, 0, &err), TSR_E_NUMERIC,
          "scale and background: the acceptance "
          "is not a number");
}

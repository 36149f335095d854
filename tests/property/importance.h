/* Posterior means another way: exact draws of the prior, weighted with the
 * likelihood, against those of a sampler. No step of a chain is used for the
 * first. */
#ifndef TESTS_IMPORTANCE_H
#define TESTS_IMPORTANCE_H

#include "tests/chain_step.h"
#include "tests/parameter_draw.h"
#include "tests/property/posterior_sample.h"
#include "tests/property/prior_sampler.h"
#include "tests/weighted.h"

enum { BY_RG, BY_LOG_LIK, BY_RG_1, BY_WEIGHT_1, N_BY };
static const char *const by_name[N_BY] = {"Rg", "log likelihood", "Rg 1",
                                          "weight 1"};

typedef struct {
    double mean[N_BY], error[N_BY];
    double plain[N_BY]; /* of the prior */
    double n_effective;
} expectation;

/* Flat on the simplex. */
static inline void draw_weights(gsl_rng *rng, int n, double *weight)
{
    tsr_parameter table[TSR_MAX_STATES];
    for (int k = 0; k < n; k++)
        table[k] = (tsr_parameter){.infer = 1, .shape = TSR_PRIOR_SIMPLEX};
    parameters_draw(n, table, rng, weight);
}

/* One draw: its log likelihood and what is compared. rg_1 and weight_1 are of
 * the state with the smallest Rg. */
static inline void weigh_one(const posterior_sample *s, prior_sampler *prior,
                             tsr_point *point, tsr_batch *batch, gsl_rng *rng,
                             tsr_conformation *c, double value[N_BY])
{
    int n = tsr_target_n_state(&s->target), n_q = s->likelihood->grid.n_q;
    double weight[TSR_MAX_STATES], square = 0.0;
    double *one = array((size_t)n_q, sizeof *one);
    double *mean = point->partial;
    memset(mean, 0, (size_t)n_q * sizeof *mean);
    for (int k = 0; k < n; k++)
        weight[k] = 1.0 / n;
    if (s->target.infer_weights)
        draw_weights(rng, n, weight);
    value[BY_RG_1] = 1e9;
    for (int k = 0; k < n; k++) {
        sample_prior(prior, rng, c);
        OK(tsr_batch_set(batch, 0, (const double(*)[3])c->body, one, &err));
        for (int q = 0; q < n_q; q++)
            mean[q] += weight[k] * one[q];
        double rg = tsr_conformation_rg(s->t, c, NULL);
        square += weight[k] * rg * rg;
        if (rg < value[BY_RG_1])
            value[BY_RG_1] = rg, value[BY_WEIGHT_1] = weight[k];
    }
    value[BY_RG] = sqrt(square);
    value[BY_LOG_LIK] = saxs_evaluate(s->likelihood, mean, 1.0, rng, point);
}

/* At the power beta of the likelihood. The noise scale must be fixed. */
static inline expectation importance(const posterior_sample *s, double beta,
                                     int n, uint64_t seed)
{
    expectation e = {.n_effective = 0.0};
    double(*value)[N_BY] = array((size_t)n, sizeof *value);
    double *w = array((size_t)n, sizeof *w);
    prior_sampler prior = prior_of(s);
    gsl_rng *rng = rng_new(seed, 0);
    tsr_conformation *c = new_conformation(s->t);
    tsr_point point;
    saxs_point(s->likelihood, &point);
    NEW(tsr_batch, batch, tsr_batch_new, s->share.engine, 1);
    for (int i = 0; i < n; i++) {
        weigh_one(s, &prior, &point, batch, rng, c, value[i]);
        w[i] = beta * value[i][BY_LOG_LIK];
    }
    block_means(n, N_BY, value[0], e.plain, e.error);
    e.n_effective = weighted_means(n, N_BY, value[0], w, e.mean, e.error, NULL);
    tsr_point_clear(&point);
    return e;
}

/* Means of blocks, each [n_block][N_BY]. */
static inline expectation of_blocks(int n_block, double (*block)[N_BY])
{
    expectation e = {.n_effective = 0.0};
    block_means(n_block, N_BY, block[0], e.mean, e.error);
    return e;
}

static inline void add_look(const tsr_chain *chain, double by, double sum[N_BY])
{
    tsr_chain_view view;
    tsr_chain_view_get(chain, &view);
    sum[BY_RG] += by * view.rg_ang;
    sum[BY_LOG_LIK] += by * view.log_lik;
    sum[BY_RG_1] += by * view.state_rg_ang[0];
    sum[BY_WEIGHT_1] += by * view.state_weight[0];
}

/* The same from a warmed-up sampler. */
static inline expectation sampled(posterior_run run, int n_chain, int n_block,
                                  int block, long thin)
{
    int n = n_block * n_chain;
    double(*sum)[N_BY] = array((size_t)n, sizeof *sum);
    for (int b = 0; b < n_block; b++)
        for (int i = 0; i < block; i++) {
            posterior_advance(run, 1, thin, 0);
            for (int c = 0; c < n_chain; c++)
                add_look(tsr_sampler_chain(run.sampler, c), 1.0 / block,
                         sum[b * n_chain + c]);
        }
    expectation e = of_blocks(n, sum);
    return e;
}

/* From one chain at a temperature of its own. */
static inline expectation tempered(const posterior_sample *s, double beta,
                                   int n_block, int block, int thin)
{
    double(*sum)[N_BY] = array((size_t)n_block, sizeof *sum);
    double *profile = array((size_t)s->likelihood->grid.n_q, sizeof *profile);
    NEW(tsr_batch, batch, tsr_batch_new, s->share.engine, 1);
    tsr_chain *chain = new_chain(&s->target, 0, batch);
    tsr_chain_set_beta(chain, beta);
    for (int b = -1; b < n_block; b++)
        for (int i = 0; i < block; i++) {
            for (int j = 0; j < thin; j++)
                chain_step(chain, batch, profile, b < 0);
            if (b >= 0)
                add_look(chain, 1.0 / block, sum[b]);
        }
    expectation e = of_blocks(n_block, sum);
    return e;
}

static inline void compare(const posterior_sample *s, const expectation *a,
                           const expectation *b)
{
    double farthest = 0.0;
    int n_by = tsr_target_n_state(&s->target) > 1 ? N_BY : BY_RG_1;
    for (int k = 0; k < n_by; k++) {
        double total = hypot(a->error[k], b->error[k]);
        print_message("  %-15s %.4f +- %.4f, weighted %.4f +- %.4f, prior "
                      "%.4f\n",
                      by_name[k], b->mean[k], b->error[k], a->mean[k],
                      a->error[k], a->plain[k]);
        farthest = fmax(farthest, fabs(a->plain[k] - a->mean[k]) / total);
        if (!(fabs(a->mean[k] - b->mean[k]) <= 4.5 * total))
            fail_msg("mean %s %.4f +- %.4f, by importance sampling %.4f +- "
                     "%.4f",
                     by_name[k], b->mean[k], b->error[k], a->mean[k],
                     a->error[k]);
    }
    print_message("  %.0f effective weighted draws\n", a->n_effective);
    assert_true(a->n_effective > 100.0);
    assert_true(farthest > 8.0);
}

/* Data of states drawn from the prior with seed `data_seed`, with relative
 * errors; then both ways: a sampler at temperature 1, where beta is 1, or one
 * chain. The data must matter, or this would not tell: some mean has to be far
 * from the prior's. */
static inline void compare_with_importance(posterior_sample *s, double beta,
                                           uint64_t data_seed, double relative,
                                           int n_weighed, int n_block,
                                           int block)
{
    enum { N_CHAIN = 4, THIN = 10, WARMUP = 3000 };
    int n = tsr_target_n_state(&s->target);
    tsr_conformation *truth[TSR_MAX_STATES];
    double weight[TSR_MAX_STATES];
    gsl_rng *rng = rng_new(data_seed, 1);
    prior_sampler prior = prior_of(s);
    expectation drawn;
    for (int k = 0; k < n; k++) {
        truth[k] = new_conformation(s->t);
        sample_prior(&prior, rng, truth[k]);
    }
    draw_weights(rng, n, weight);
    posterior_data(s, n, (const tsr_conformation *const *)truth, weight,
                   relative, 1.3, 0.05, 0.0, rng);
    posterior_start(s, 0.0, N_CHAIN, 0);
    expectation weighted = importance(s, beta, n_weighed, 31);
    if (beta == 1.0) {
        posterior_run run = posterior_run_new(s, N_CHAIN, 1, 1);
        posterior_warm_up(run, WARMUP);
        drawn = sampled(run, N_CHAIN, n_block, block, THIN);
    } else {
        drawn = tempered(s, beta, n_block, block, THIN);
    }
    compare(s, &weighted, &drawn);
}

#endif

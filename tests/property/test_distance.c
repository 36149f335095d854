/* Sampling with a measured distance gives the posterior of weighted exact
 * draws, for one structure and for an ensemble, with inferred scale, weights
 * and temperatures. */
#include "tests/io_files.h"
#include "tests/parameter_draw.h"
#include "tests/property/importance.h"
#include "tests/record_trace.h"
#include "tests/test.h"
#include "tests/weighted.h"

#include "analysis/evidence.h"
#include "sampler/chain.h"
#include "sampler/sampler.h"

#include <unistd.h>

static const tsr_prior_options soft = {
    .clash = TSR_CLASH_SOFT, .softness = 0.8, .clash_limit = 10.0};

enum { N_SAMPLE = 2 }; /* the largest number */
enum { DISTANCE, MEAN_RG, LOG_S, LIKELIHOOD, FIRST_WEIGHT, N_SEEN };
static const char *const seen_name[N_SEEN] = {
    "distance", "Rg", "log s", "log likelihood", "weight of the compact one"};

/* Between the CA atoms of the first and the last residue. n_sample: samples
 * with weights of their own, each measured as the others. */
static void start_samples(posterior_sample *s, const char *mean, const char *sd,
                          int n_sample)
{
    const tsr_field list = {.name = "data",
                            .type = TSR_FIELD_LIST,
                            .selector = "kind",
                            .kind = tsr_term_kind,
                            .element_size = sizeof(tsr_term_options)};
    tsr_list data = {0, NULL};
    void *entry;
    char last[16];
    tsr_term *term[N_SAMPLE];
    snprintf(last, sizeof last, "A:%d", s->t->n_residue);
    const tsr_field *fields = tsr_term_distance.fields;
    const char *const value[][2] = {{"at", "ca"}, {"mean", mean}, {"sd", sd}};
    OK(tsr_field_append(&list, &data, &entry, &err));
    OK(tsr_field_set_kind(&list, entry, "distance", &err));
    for (size_t i = 0; i < COUNT_OF(value); i++)
        OK(tsr_field_parse(tsr_field_find(fields, value[i][0]), entry,
                           value[i][1], &err));
    tsr_strings *between =
        (void *)((char *)entry + tsr_field_find(fields, "between")->offset);
    OK(tsr_strings_append(between, "A:1", &err));
    OK(tsr_strings_append(between, last, &err));
    const tsr_term_source source = {
        .options = entry, .number = 0, .topology = s->t};
    for (int d = 0; d < n_sample; d++) {
        OK(tsr_term_read(&source, &term[d], &err));
        term[d]->has_own_weights = n_sample > 1;
        term[d]->at = d;
    }
    OK(tsr_likelihood_new(s->t, 0, NULL, 0.0, n_sample, term, &s->likelihood,
                          &err));
    assert_int_equal(s->likelihood->n_mixture, n_sample);
    assert_int_equal(tsr_likelihood_n_profile(s->likelihood), 0);
    s->target.likelihood = s->likelihood;
    const tsr_field whole[] = {list, {0}};
    tsr_fields_clear(whole, &data);
}

static void start_distance(posterior_sample *s, const char *mean,
                           const char *sd)
{
    start_samples(s, mean, sd, 1);
}

/* The mean distance of states; Rg of the ensemble; the weight of the state with
 * the least Rg. */
static void see(const posterior_sample *s, int n,
                const tsr_conformation *const *state, const double *weight,
                double log_s, double value[N_SEEN])
{
    const tsr_term *term = s->likelihood->term[0];
    const tsr_prediction prediction = {NULL, n, state, weight};
    double square = 0.0, least = 1e9;
    for (int k = 0; k < n; k++) {
        double rg = tsr_conformation_rg(s->t, state[k], NULL);
        square += weight[k] * rg * rg;
        if (rg < least)
            least = rg, value[FIRST_WEIGHT] = weight[k];
    }
    tsr_pool *pool = new_pool();
    void *fit = tsr_term_fit_new(term, pool);
    term->type->fit(term, NULL, &prediction, &log_s, fit, NULL);
    term->type->predict(term, &prediction, fit, &log_s, &value[DISTANCE]);
    value[MEAN_RG] = sqrt(square);
    value[LOG_S] = log_s;
}

/* Returns how many draws the weighted ones are worth. plain: of the prior, and
 * as its last entry the logarithm of the mean likelihood, with its error. */
static double by_weights(const posterior_sample *s, int n_draw,
                         double mean[N_SEEN], double error[N_SEEN],
                         double plain[N_SEEN], double log_z[2])
{
    const int n = tsr_target_n_state(&s->target);
    double(*value)[N_SEEN] = array((size_t)n_draw, sizeof *value);
    double *w = array((size_t)n_draw, sizeof *w);
    prior_sampler prior = prior_of(s);
    gsl_rng *rng = rng_new(91, 0);
    tsr_conformation *state[TSR_MAX_STATES] = {NULL};
    const tsr_conformation *both[TSR_MAX_STATES];
    for (int k = 0; k < TSR_MAX_STATES; k++)
        both[k] = state[k] = k < n ? new_conformation(s->t) : NULL;
    tsr_pool *pool = new_pool();
    tsr_parameters *p = tsr_parameters_new(pool, s->likelihood, NULL, n,
                                           s->target.infer_weights);
    tsr_point point;
    assert_true(tsr_point_make(s->likelihood, p->n, &point));
    for (int i = 0; i < n_draw; i++) {
        const double *weight = point.theta + p->weight;
        table_draw(p, rng, point.theta);
        for (int k = 0; k < n; k++)
            sample_prior(&prior, rng, state[k]);
        const tsr_prediction prediction = {NULL, n, both, weight};
        OK(tsr_likelihood_evaluate(s->likelihood, NULL, NULL, prediction, 1.0,
                                   rng, NULL, &point, &err));
        see(s, n, both, weight, point.theta[0], value[i]);
        w[i] = value[i][LIKELIHOOD] = point.log_lik;
    }
    block_means(n_draw, N_SEEN, value[0], plain, error);
    double worth =
        weighted_means(n_draw, N_SEEN, value[0], w, mean, error, &log_z[0]);
    log_z[0] -= log(n_draw);
    log_z[1] = sqrt(1.0 / worth - 1.0 / n_draw);
    tsr_point_clear(&point);
    return worth;
}

static void by_sampler(const posterior_sample *s, double mean[N_SEEN],
                       double error[N_SEEN])
{
    enum { N_CHAIN = 4, N_BLOCK = 8, BLOCK = 100, THIN = 20 };
    static double block[N_BLOCK * N_CHAIN][N_SEEN];
    const int n = N_BLOCK * N_CHAIN;
    posterior_run run = posterior_run_new(s, N_CHAIN, 2, 1);
    memset(block, 0, sizeof block);
    posterior_warm_up(run, 3000);
    for (int i = 0; i < N_BLOCK * BLOCK; i++) {
        posterior_advance(run, 1, THIN, 0);
        for (int c = 0; c < N_CHAIN; c++) {
            tsr_chain_view view;
            double value[N_SEEN];
            tsr_chain_view_get(tsr_sampler_chain(run.sampler, c), &view);
            see(s, view.n_state, view.state, view.state_weight,
                view.point->theta[0], value);
            value[LIKELIHOOD] = view.log_lik;
            for (int v = 0; v < N_SEEN; v++)
                block[i / BLOCK * N_CHAIN + c][v] += value[v] / BLOCK;
        }
    }
    block_means(n, N_SEEN, block[0], mean, error);
}

static void compare_both(int n_state, int n_temp)
{
    double mean[2][N_SEEN], error[2][N_SEEN], plain[N_SEEN], farthest = 0.0;
    double log_z[2];
    posterior_sample s;
    posterior_open(&s, "GAFSLGAG", NULL, soft);
    s.target.n_state = n_state, s.target.infer_weights = 1;
    s.target.n_temp = n_temp, s.target.t_max = 4.0, s.target.swap_every = 4;
    start_distance(&s, "11", "1.5");
    double worth = by_weights(&s, 15000, mean[0], error[0], plain, log_z);
    by_sampler(&s, mean[1], error[1]);
    print_message("  %d states, weighted draws worth %.0f\n", n_state, worth);
    assert_true(worth > 500.0);
    for (int v = 0; v < (n_state > 1 ? N_SEEN : FIRST_WEIGHT); v++) {
        double total = hypot(error[0][v], error[1][v]);
        print_message("  %-25s %8.4f +- %.4f, weighted %8.4f +- %.4f, prior "
                      "%.4f\n",
                      seen_name[v], mean[1][v], error[1][v], mean[0][v],
                      error[0][v], plain[v]);
        farthest = fmax(farthest, fabs(plain[v] - mean[0][v]) / total);
        assert_near(mean[0][v], mean[1][v], 4.5 * total);
    }
    assert_true(farthest > 8.0); /* the data matter */
}

TEST(one_structure)
{
    compare_both(1, 1);
}

TEST(an_ensemble_at_temperatures)
{
    compare_both(2, 3);
}

/* The marginal likelihood, from a ladder that reaches the prior, by way of a
 * trace: the mean likelihood of exact draws of the prior. */
static void check_evidence(int n_sample)
{
    enum { N_CHAIN = 4, N_DRAW = 600, THIN = 20 };
    double mean[N_SEEN], error[N_SEEN], plain[N_SEEN], log_z[2];
    tsr_evidence e;
    posterior_sample s;
    posterior_open(&s, "GAFSLGAG", NULL, soft);
    s.target.n_state = 2, s.target.infer_weights = 1;
    s.target.n_temp = 5, s.target.t_max = 1e6, s.target.swap_every = 2;
    start_samples(&s, "11", "1.5", n_sample);
    by_weights(&s, 15000, mean, error, plain, log_z);
    posterior_run run = posterior_run_new(&s, N_CHAIN, 2, N_DRAW);
    const char *file = io_path("trace.h5");
    tsr_draw_log *log = record_begin(file, N_CHAIN, run.record);
    posterior_warm_up(run, 3000);
    OK(tsr_sampler_average_warmup(run.sampler, &err));
    posterior_advance(run, N_DRAW, THIN, 0);
    OK(tsr_record_write(run.record, log, 0, 0, N_DRAW, &err));
    record_end(file, log);
    NEW(tsr_trace_reader, reader, tsr_trace_open, file);
    OK(tsr_evidence_make(reader, &e, &err));
    print_message("  log Z %.3f +- %.3f, weighted %.3f +- %.3f; barrier %.2f\n",
                  e.log, e.error, log_z[0], log_z[1], e.barrier);
    assert_string_equal(e.why_not, "");
    assert_near(e.log, log_z[0], 4.5 * hypot(e.error, log_z[1]));
    assert_true(e.error < 0.1 && log_z[1] > 0.0 && log_z[1] < 0.1);
    double refused = 0.0; /* the trace keeps single precision */
    for (int c = 0; c < N_CHAIN; c++)
        for (int k = 0; k + 1 < s.target.n_temp; k++)
            refused +=
                1.0 - tsr_ladder_rate(tsr_sampler_ladder(run.sampler, c), k);
    assert_near(e.barrier, refused / N_CHAIN, 1e-5);
}

TEST(evidence_of_an_ensemble)
{
    for (int n_sample = 1; n_sample <= N_SAMPLE; n_sample++)
        check_evidence(n_sample);
}

/* ---- populations from the prior ---- */

enum { N_GROUP = 8, CHAINS_EACH = 64 };

/* The ensemble with chains in groups that start stretched. */
static void open_groups(posterior_sample *s, tsr_conformation **start,
                        double *log_z)
{
    posterior_open(s, "GAFSLGAG", NULL, soft);
    s->target.n_state = 2, s->target.infer_weights = 1;
    start_distance(s, "9", "0.7");
    for (int i = 0; i < 2 * N_GROUP; i++)
        start[i] = s->extended;
    for (int g = 0; g < N_GROUP; g++)
        log_z[g] = (double)NAN;
    s->target.n_group = N_GROUP;
    s->target.group_start = start;
    s->target.group_log_z = log_z;
}

static void populate(posterior_run run, long most_each)
{
    OK(tsr_sampler_populate(run.sampler, run.record, most_each, 0.0, NULL, NULL,
                            &err));
}

/* The means of the chains are those of weighted draws of the prior, the
 * evidence is that of exact draws. */
TEST(populations_are_of_the_posterior)
{
    double mean[2][N_SEEN] = {{0.0}}, error[2][N_SEEN], plain[N_SEEN];
    double group[N_GROUP][N_SEEN] = {{0.0}}, log_z[N_GROUP], exact[2], sd;
    tsr_conformation *start[2 * N_GROUP];
    posterior_sample s;
    open_groups(&s, start, log_z);
    by_weights(&s, 10000, mean[0], error[0], plain, exact);
    s.target.chains_each = CHAINS_EACH;
    posterior_run run = posterior_run_new(&s, N_GROUP * CHAINS_EACH, 2, 1);
    populate(run, 12); /* too few to forget: weights and copies matter */
    for (int c = 0; c < N_GROUP * CHAINS_EACH; c++) {
        tsr_chain_view view;
        double value[N_SEEN];
        tsr_chain_view_get(tsr_sampler_chain(run.sampler, c), &view);
        see(&s, view.n_state, view.state, view.state_weight,
            view.point->theta[0], value);
        value[LIKELIHOOD] = view.log_lik;
        for (int v = 0; v < N_SEEN; v++)
            group[c / CHAINS_EACH][v] += value[v] / CHAINS_EACH;
    }
    block_means(N_GROUP, N_SEEN, group[0], mean[1], error[1]);
    for (int v = 0; v < N_SEEN; v++) {
        double total = hypot(error[0][v], error[1][v]);
        print_message("  %-25s %8.4f +- %.4f, weighted %8.4f +- %.4f, prior "
                      "%.4f\n",
                      seen_name[v], mean[1][v], error[1][v], mean[0][v],
                      error[0][v], plain[v]);
        assert_near(mean[0][v], mean[1][v], 5.0 * total);
    }
    assert_true(fabs(plain[DISTANCE] - mean[1][DISTANCE]) >
                8.0 * hypot(error[0][DISTANCE], error[1][DISTANCE]));
    double made = tsr_evidence_pool_groups(N_GROUP, log_z, &sd);
    print_message("  log Z %.3f +- %.3f, weighted %.3f +- %.3f, %d levels\n",
                  made, sd, exact[0], exact[1],
                  tsr_sampler_population(run.sampler).n_level);
    assert_true(tsr_sampler_population(run.sampler).n_level > 2);
    assert_true(sd > 0.0 && sd < 0.3);
    assert_near(made, exact[0], 4.5 * hypot(sd, exact[1]));
}

static tsr_chain *at_temperature(posterior_run run, int chain, int k)
{
    const tsr_sampler *s = run.sampler;
    return s
        ->chain[chain * s->n_temp + tsr_ladder_replica(s->ladder[chain], k)];
}

/* With temperatures: they rise from 1 to the prior, equally often exchanged;
 * threads make no difference, and what was done is not done again. */
TEST(populations_found_ladders)
{
    enum { N_CHAIN = 16, N_TEMP = 5 };
    double log_z[2][N_GROUP], rate[N_TEMP] = {0.0};
    tsr_conformation *start[2 * N_GROUP];
    posterior_run run[2];
    posterior_sample s[2];
    for (int k = 0; k < 2; k++) {
        open_groups(&s[k], start, log_z[k]);
        s[k].target.chains_each = N_CHAIN / N_GROUP;
        s[k].target.n_temp = N_TEMP, s[k].target.t_max = 1e6;
        s[k].target.swap_every = 2;
        run[k] = posterior_run_new(&s[k], N_CHAIN, k + 1, 1);
        populate(run[k], 100);
    }
    assert_memory_equal(log_z[0], log_z[1], sizeof log_z[0]);
    for (int c = 0; c < N_CHAIN; c++)
        assert_true(tsr_chain_log_lik(tsr_sampler_chain(run[0].sampler, c)) ==
                    tsr_chain_log_lik(tsr_sampler_chain(run[1].sampler, c)));
    const tsr_ladder *ladder = tsr_sampler_ladder(run[0].sampler, 0);
    assert_true(tsr_ladder_beta(ladder, 0) == 1.0);
    assert_true(tsr_ladder_beta(ladder, N_TEMP - 1) == 1.0 / 1e6);
    for (int k = 1; k < N_TEMP; k++)
        assert_true(tsr_ladder_beta(ladder, k) <
                    tsr_ladder_beta(ladder, k - 1));
    posterior_advance(run[0], 1, 500, 0);
    for (int c = 0; c < N_CHAIN; c++)
        for (int k = 0; k + 1 < N_TEMP; k++)
            rate[k] +=
                tsr_ladder_rate(tsr_sampler_ladder(run[0].sampler, c), k) /
                N_CHAIN;
    print_message("  exchanged %.2f %.2f %.2f %.2f\n", rate[0], rate[1],
                  rate[2], rate[3]);
    for (int k = 1; k + 1 < N_TEMP; k++)
        assert_near(rate[k], rate[0], 0.15);
    const tsr_population before = tsr_sampler_population(run[0].sampler);
    populate(run[0], 100);
    assert_true(tsr_sampler_population(run[0].sampler).n_step == before.n_step);
}

/* What the pivots of a chain at a temperature have learnt: n numbers. */
static size_t learnt(posterior_run run, int c, int k, double *value)
{
    tsr_archive archive = {0};
    tsr_archive_begin(&archive);
    tsr_move_registry[TSR_MOVE_pivot]->archive(
        at_temperature(run, c, k)->move[TSR_MOVE_pivot], &archive);
    const size_t n = archive.n_real;
    assert_true(n > 1 && n < 100 && !archive.failed);
    memcpy(value, archive.real, n * sizeof *value);
    tsr_archive_clear(&archive);
    return n;
}

/* Steps that chains have learnt apart become the means of them, temperature by
 * temperature, and a second time nothing changes, to the bit. */
TEST(steps_are_shared)
{
    enum { N_CHAIN = 3 };
    double before[N_CHAIN][100], after[100], again[100];
    posterior_sample s;
    posterior_open(&s, "GAFSLGAG", NULL, soft);
    s.target.n_temp = 3, s.target.t_max = 50.0, s.target.swap_every = 3;
    start_distance(&s, "11", "1.5");
    posterior_run run = posterior_run_new(&s, N_CHAIN, 1, 1);
    posterior_advance(run, 1, 500, 1);
    size_t n = 0;
    for (int c = 0; c < N_CHAIN; c++)
        n = learnt(run, c, 1, before[c]);
    assert_true(memcmp(before[0], before[1], n * sizeof **before) != 0);
    OK(tsr_sampler_average_warmup(run.sampler, &err));
    for (int c = 0; c < N_CHAIN; c++) {
        assert_int_equal(learnt(run, c, 1, after), n);
        for (size_t i = 0; i < n; i++) {
            const double mean =
                (before[0][i] + before[1][i] + before[2][i]) / 3.0;
            assert_near(after[i], mean, 1e-12);
        }
    }
    const double beta = tsr_ladder_beta(tsr_sampler_ladder(run.sampler, 0), 1);
    for (int c = 1; c < N_CHAIN; c++)
        assert_true(tsr_ladder_beta(tsr_sampler_ladder(run.sampler, c), 1) ==
                    beta);
    for (int i = 0; i < 50; i++) /* more than one call's luck */
        OK(tsr_sampler_average_warmup(run.sampler, &err));
    assert_true(tsr_ladder_beta(tsr_sampler_ladder(run.sampler, 0), 1) == beta);
    learnt(run, 0, 1, again);
    assert_memory_equal(after, again, n * sizeof *after);
}

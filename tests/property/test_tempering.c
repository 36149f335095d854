/* Replica exchange and annealing: draws at temperature 1 follow the posterior
 * and depend neither on threads, blocks nor other chains. */
#include "sampler/chain.h"
#include "sampler/sampler.h"
#include "tests/io_files.h"
#include "tests/property/importance.h"
#include "tests/record_trace.h"
#include "tests/test.h"
#include "tests/trace_compare.h"

#include <unistd.h>

/* How many times as long as in `make check`; slow_exchange.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

static const tsr_prior_options no_clash = {.clash = TSR_CLASH_NONE,
                                           .softness = 0.5};

TEST(posterior_is_right)
{
    posterior_sample s;
    posterior_open(&s, "GAFGSLG", NULL, no_clash);
    s.target.n_temp = 4, s.target.t_max = 12.0, s.target.swap_every = 3;
    compare_with_importance(&s, 1.0, 41, 0.01, 8000 * LENGTH, 10, 50 * LENGTH);
}

/* ---- draws of a finer model ---- */

/* Data of the finer model; places above the ladders hold its posterior, and
 * temperature 1 that of the coarse one as if nothing were above it. */
TEST(both_posteriors_are_right)
{
    enum { N = 4, BLOCK = 60 * LENGTH, N_BLOCK = 10, STEPS = 10 };
    posterior_sample coarse, all_atom;
    double(*sum)[N_BY] = array(2 * N * N_BLOCK, sizeof *sum);
    double rate = 0.0;
    gsl_rng *rng = rng_new(41, 1);
    posterior_open(&coarse, "GAFGSLG", NULL, no_clash);
    posterior_open(&all_atom, "GAFGSLG", NULL, no_clash);
    posterior_sharpen(coarse.factors);
    tsr_conformation *truth = new_conformation(all_atom.t);
    prior_sampler prior = prior_of(&all_atom);
    sample_prior(&prior, rng, truth);
    const tsr_conformation *const one[] = {truth};
    posterior_data(&all_atom, 1, one, (const double[]){1.0}, 0.035, 1.3, 0.05,
                   0.0, rng);
    posterior_share_data(&coarse, &all_atom);
    coarse.target.n_temp = 3, coarse.target.t_max = 8.0;
    coarse.target.swap_every = 3;
    posterior_start(&coarse, 0.0, N, 0);
    posterior_start(&all_atom, 0.0, 1, 0);
    NEW(tsr_batch, batch, tsr_batch_new, all_atom.share.engine, 1);
    tsr_all_atom_model model;
    posterior_put_above(&coarse, &all_atom, batch, &model);
    posterior_run run = posterior_run_new(&coarse, N, 1, 1);
    posterior_warm_up(run, 3000);
    for (int b = 0; b < N_BLOCK; b++)
        for (int i = 0; i < BLOCK; i++) {
            posterior_advance(run, 1, STEPS, 0);
            for (int c = 0; c < N; c++) {
                add_look(tsr_all_atom_chain_as_chain(run.sampler->all_atom[c]),
                         1.0 / BLOCK, sum[b * N + c]);
                add_look(tsr_sampler_chain(run.sampler, c), 1.0 / BLOCK,
                         sum[(N_BLOCK + b) * N + c]);
            }
        }
    for (int c = 0; c < N; c++)
        rate += tsr_all_atom_chain_acceptance(run.sampler->all_atom[c]) / N;
    print_message("  exchanged %.2f\n", rate);
    assert_true(rate > 0.1 && rate < 0.9);
    const expectation upper = of_blocks(N_BLOCK * N, sum);
    const expectation lower = of_blocks(N_BLOCK * N, sum + N_BLOCK * N);
    const expectation upper_weighted = importance(&all_atom, 1.0, 8000, 31);
    const expectation lower_weighted = importance(&coarse, 1.0, 8000, 32);
    compare(&all_atom, &upper_weighted, &upper);
    compare(&coarse, &lower_weighted, &lower);
    assert_true(
        fabs(upper_weighted.mean[BY_RG] - lower_weighted.mean[BY_RG]) >
        8.0 * hypot(upper_weighted.error[BY_RG], lower_weighted.error[BY_RG]));
}

/* A coarse and a finer model of the same data. */
typedef struct {
    posterior_sample coarse, all_atom;
    tsr_all_atom_model model;
    tsr_batch *batch; /* of the finer one's engine */
} pair_of_models;

static void open_pair(pair_of_models *m, int n_chain, int n_state)
{
    gsl_rng *rng = rng_new(43, 1);
    posterior_open(&m->coarse, "GAFGSLG", NULL, no_clash);
    posterior_open(&m->all_atom, "GAFGSLG", NULL, no_clash);
    posterior_sharpen(m->coarse.factors);
    const tsr_conformation *const one[] = {m->all_atom.extended};
    posterior_data(&m->all_atom, 1, one, (const double[]){1.0}, 0.035, 1.3,
                   0.05, 0.0, rng);
    posterior_share_data(&m->coarse, &m->all_atom);
    m->coarse.target.n_state = m->all_atom.target.n_state = n_state;
    m->coarse.target.infer_weights = n_state > 1;
    m->coarse.target.n_temp = 2, m->coarse.target.t_max = 8.0;
    m->coarse.target.swap_every = 3;
    posterior_start(&m->coarse, 0.0, n_chain, 0);
    posterior_start(&m->all_atom, 0.0, 1, 0);
    MAKE(tsr_batch, m->batch, tsr_batch_new, m->all_atom.share.engine, 1);
    posterior_put_above(&m->coarse, &m->all_atom, m->batch, &m->model);
}

/* The coarse model becomes another one, as by a lesson in warm-up: from then on
 * log L_c of what is held is by that one. So little another that some places
 * would keep what they hold. */
TEST(lesson_reaches_what_is_held)
{
    enum { N = 8 };
    pair_of_models m;
    open_pair(&m, N, 1);
    posterior_run run = posterior_run_new(&m.coarse, N, 1, 1);
    posterior_warm_up(run, 600);
    const size_t n = (size_t)tsr_likelihood_n_profile(m.coarse.likelihood);
    double *atoms = array(2 * n, sizeof *atoms), *bodies = atoms + n;
    for (size_t k = 0; k < n; k++)
        atoms[k] = exp(-0.002 * (double)k), bodies[k] = 1.0;
    OK(tsr_likelihood_correct(m.coarse.likelihood, 0, atoms, bodies, 1.0,
                              &err));
    atoms[1] = -1.0; /* what is refused leaves the correction before */
    assert_int_equal(tsr_likelihood_correct(m.coarse.likelihood, 0, atoms,
                                            bodies, 2.0, &err),
                     TSR_E_NUMERIC);
    const tsr_view *view = &m.coarse.likelihood->view[0];
    assert_non_null(view->atoms);
    assert_true(view->atoms[1] == exp(-0.002) && view->radius_ang == 1.0);
    for (int c = 0; c < N; c++)
        tsr_all_atom_chain_set_learning(
            tsr_sampler_all_atom_chain(run.sampler, c), 0);
    OK(tsr_sampler_refresh(run.sampler, &err));
    posterior_advance(run, 1, 10, 1);
    NEW(tsr_chain, own, tsr_chain_new, &m.coarse.target, 0);
    NEW(tsr_batch, batch, tsr_batch_new, m.coarse.share.engine, 1);
    for (int c = 0; c < N; c++) {
        const tsr_all_atom_chain *all_atom =
            tsr_sampler_all_atom_chain(run.sampler, c);
        double gain[2];
        tsr_all_atom_chain_log_ratio(all_atom, gain);
        tsr_chain_copy(own, tsr_all_atom_chain_as_chain(all_atom));
        OK(tsr_chain_refresh(own, batch, &err));
        assert_true(
            fabs(gain[0] -
                 tsr_chain_log_lik(tsr_all_atom_chain_as_chain(all_atom)) +
                 tsr_chain_log_lik(own)) < 1e-6);
    }
}

/* What is kept of an ensemble is what met the data, the mean of its states. */
TEST(example_is_of_all_states)
{
    pair_of_models m;
    open_pair(&m, 1, 2);
    posterior_run run = posterior_run_new(&m.coarse, 1, 1, 1);
    posterior_warm_up(run, 100);
    tsr_all_atom_chain *all_atom = tsr_sampler_all_atom_chain(run.sampler, 0);
    tsr_all_atom_chain_set_learning(all_atom, 1);
    posterior_advance(run, 1, 10, 1); /* the first offer leaves the chain */
    const tsr_chain *own = tsr_sampler_chain(run.sampler, 0);
    const double *weight = own->now.theta + own->parameters->weight;
    assert_int_equal(tsr_all_atom_chain_n_example(all_atom), 1);
    const tsr_all_atom_example e = tsr_all_atom_chain_example(all_atom, 0);
    const int n = tsr_likelihood_n_profile(m.coarse.likelihood);
    for (int k = 0; k < n; k++) {
        const double mean = weight[0] * own->state[0].profile[k] +
                            weight[1] * own->state[1].profile[k];
        assert_near(e.coarse[k] / mean, 1.0, 1e-9);
        assert_true(fabs(own->state[0].profile[k] / mean - 1.0) > 1e-9 ||
                    k == 0);
    }
    for (int draw = 1; draw < 10 * TSR_ALL_ATOM_EXAMPLES; draw++)
        posterior_advance(run, 1, 1, 1);
    assert_in_range(tsr_all_atom_chain_n_example(all_atom),
                    TSR_ALL_ATOM_EXAMPLES / 2, TSR_ALL_ATOM_EXAMPLES);
}

/* ---- a likelihood of 0 ---- */

static const tsr_term_type *uncut;
static double least_log_lik;

static double cut_log_lik(const tsr_term *term, const void *fit,
                          const double *theta)
{
    const double own = uncut->log_lik(term, fit, theta);
    return own < least_log_lik ? -HUGE_VAL : own;
}

/* A finer model that rules states out: they are offered, also as the first, and
 * not drawn. */
TEST(likelihood_of_0_is_refused)
{
    enum { N = 4, N_LOOK = 200 };
    int n_cut = 0;
    pair_of_models m;
    open_pair(&m, N, 1);
    posterior_run run = posterior_run_new(&m.coarse, N, 1, 1);
    posterior_warm_up(run, 600);
    double gain[2], middle = 0.0;
    for (int c = 0; c < N; c++)
        middle += tsr_chain_log_lik(tsr_all_atom_chain_as_chain(
                      tsr_sampler_all_atom_chain(run.sampler, c))) /
                  N;
    tsr_term *term = m.all_atom.likelihood->term[0];
    tsr_term_type cut = *term->type;
    uncut = term->type;
    cut.log_lik = cut_log_lik;
    least_log_lik = middle;
    term->type = &cut;
    for (int c = 0; c < N; c++)
        tsr_all_atom_chain_set_learning(
            tsr_sampler_all_atom_chain(run.sampler, c), 0);
    for (int i = 0; i < N_LOOK; i++) {
        posterior_advance(run, 1, 5, 1);
        for (int c = 0; c < N; c++) {
            const tsr_all_atom_chain *all_atom =
                tsr_sampler_all_atom_chain(run.sampler, c);
            tsr_all_atom_chain_log_ratio(all_atom, gain);
            n_cut += isinf(gain[1]) != 0;
            if (i >= N_LOOK / 2)
                assert_true(tsr_chain_log_lik(tsr_all_atom_chain_as_chain(
                                all_atom)) >= middle);
        }
    }
    print_message("  %d of %d offers ruled out, %.2f taken\n", n_cut,
                  N * N_LOOK, tsr_sampler_all_atom_acceptance(run.sampler));
    assert_in_range(n_cut, N * N_LOOK / 20, N * N_LOOK * 19 / 20);
    assert_true(tsr_sampler_all_atom_acceptance(run.sampler) > 0.02);
    term->type = uncut;
}

/* Populations are of the coarse model alone: an exchange with a place that is
 * not at its posterior would change their law. */
TEST(populations_know_no_finer_model)
{
    enum { N = 16 };
    pair_of_models m;
    open_pair(&m, N, 1);
    tsr_conformation *start[] = {m.coarse.extended};
    double log_z[] = {(double)NAN};
    m.coarse.target.n_group = 1, m.coarse.target.chains_each = N;
    m.coarse.target.group_start = start;
    m.coarse.target.group_log_z = log_z;
    m.model.target.n_group = 0;
    posterior_run run = posterior_run_new(&m.coarse, N, 1, 1);
    OK(tsr_sampler_populate(run.sampler, run.record, 40, 0.0, NULL, NULL,
                            &err));
    assert_true(tsr_sampler_population(run.sampler).n_level > 0);
    assert_true(isfinite(log_z[0]));
    assert_true(isnan(tsr_sampler_all_atom_acceptance(run.sampler)));
    posterior_advance(run, 1, 10, 1);
    const double rate = tsr_sampler_all_atom_acceptance(run.sampler);
    assert_true(rate >= 0.0);
}

/* ---- the same bits ---- */

enum { N_CHAIN = 5, N_WARM = 14, N_DRAW = 14, THIN = 4 };

typedef struct {
    const char *path;
    int n_thread, block;
} split;

/* contrast: c1 and c2 are inferred, in three components. */
static void open_tempered(posterior_sample *s, int n_chain, int on_device,
                          int contrast)
{
    const double half[2] = {0.5, 0.5};
    gsl_rng *rng = rng_new(6, 0);
    posterior_open(s, "MKTAYIAKQRPGI", NULL, no_clash);
    if (contrast) {
        const tsr_contrast_options both = posterior_infer_contrast();
        posterior_contrast(s, &both);
    }
    tsr_conformation *turned = new_conformation(s->t);
    tsr_conformation_copy(s->t, turned, s->extended, 0, s->t->n_residue);
    for (int k = 0; k < s->t->n_torsion; k++)
        tsr_conformation_turn(s->t, turned, &s->t->torsion[k],
                              gsl_ran_gaussian(rng, 1.0));
    s->target.n_temp = 3, s->target.t_max = 8.0, s->target.swap_every = 4;
    s->target.n_state = 2, s->target.infer_weights = 1;
    posterior_data(s, 2, (const tsr_conformation *const[]){s->extended, turned},
                   half, 0.002, 2.0, 0.0, 0.0, rng);
    posterior_start(s, 0.5, n_chain, on_device);
}

static void sample_into(const split *by, int on_device, int contrast)
{
    posterior_sample s;
    long swapped = 0;
    open_tempered(&s, N_CHAIN, on_device, contrast);
    posterior_run run = posterior_run_new(&s, N_CHAIN, by->n_thread, N_DRAW);
    unlink(by->path);
    tsr_draw_log *log = record_begin(by->path, N_CHAIN, run.record);
    tsr_sampler_plan_warmup(run.sampler, N_WARM * THIN, 0.5);
    for (int warm = 1; warm >= 0; warm--) {
        int total = warm ? N_WARM : N_DRAW;
        for (int done = 0; done < total;) {
            int step = total - done < by->block ? total - done : by->block;
            posterior_advance(run, step, THIN, warm);
            OK(tsr_record_write(run.record, log, warm, done, step, &err));
            done += step;
        }
    }
    for (int c = 0; c < N_CHAIN; c++)
        swapped += tsr_ladder_rate(tsr_sampler_ladder(run.sampler, c), 0) > 0.0;
    assert_true(swapped > 0);
    record_end(by->path, log);
}

/* Three temperatures, two states, annealing in warm-up. */
TEST(division_changes_nothing)
{
    static split by[] = {{.n_thread = 1, .block = N_DRAW},
                         {.n_thread = 3, .block = 7},
                         {.n_thread = 5, .block = 5},
                         {.n_thread = 1, .block = 1}};
    enum { N = COUNT_OF(by) };
    const int has_device = is_device("cpu");
    for (int way = 0; way < 2 + 2 * has_device; way++) {
        int n = way % 2 ? N - 2 : N; /* with c1 and c2 */
        for (int k = 0; k < n; k++) {
            by[k].path = format("%s/%d.h5", io_dir, k);
            sample_into(&by[k], way / 2, way % 2);
            if (k > 0)
                assert_true(trace_compare(
                                (const char *const[]){by[0].path, by[k].path}) >
                            N_CHAIN * N_DRAW * 3 * POSTERIOR_POINTS);
        }
    }
}

/* A chain alone draws what it draws among others. */
TEST(chains_are_independent)
{
    posterior_sample s[2];
    posterior_run run[2];
    for (int k = 0; k < 2; k++) {
        open_tempered(&s[k], k == 0 ? 1 : N_CHAIN, 0, 1);
        run[k] = posterior_run_new(&s[k], k == 0 ? 1 : N_CHAIN, 1, 1);
        posterior_warm_up(run[k], 60);
    }
    for (int i = 0; i < 40; i++) {
        tsr_chain_view view[2];
        for (int k = 0; k < 2; k++) {
            posterior_advance(run[k], 1, 5, 0);
            tsr_chain_view_get(tsr_sampler_chain(run[k].sampler, 0), &view[k]);
        }
        assert_true(view[0].lp == view[1].lp);
        for (int a = 0; a < TSR_N_CONTRAST; a++)
            assert_true(posterior_contrast_of(&view[0])[a] ==
                        posterior_contrast_of(&view[1])[a]);
        for (int a = 0; a < 2; a++) {
            assert_true(view[0].state_weight[a] == view[1].state_weight[a]);
            assert_memory_equal(view[0].state[a]->body, view[1].state[a]->body,
                                (size_t)s[0].t->n_body * 3 * sizeof(double));
        }
    }
    for (int k = 0; k < 2; k++) {
    }
}

/* ---- what warm-up leaves behind ---- */

/* The likelihood is turned on from 1 / chi2 to 1; after warm-up what is stored
 * is at temperature 1, and the ladder stays as it is. */
TEST(temperatures_are_held_after_warm_up)
{
    enum { WARM = 400 };
    posterior_sample s;
    double beta[3];
    open_tempered(&s, 1, 0, 0);
    posterior_run run = posterior_run_new(&s, 1, 1, 1);
    double chi2 = tsr_chain_chi2(tsr_sampler_chain(run.sampler, 0));
    assert_true(chi2 > 2.0);
    tsr_sampler_plan_warmup(run.sampler, WARM, 0.5);
    for (int i = 1; i <= WARM; i++) {
        tsr_chain_view view;
        posterior_advance(run, 1, 1, 1);
        tsr_chain_view_get(tsr_sampler_chain(run.sampler, 0), &view);
        double expected = i < WARM / 2 ? pow(chi2, 2.0 * i / WARM - 1.0) : 1.0;
        assert_true(fabs(log(view.beta / expected)) < 1e-9);
        if (i <= WARM / 2) /* the ladder learns afterwards */
            assert_true(fabs(log(tsr_ladder_beta(
                                     tsr_sampler_ladder(run.sampler, 0), 1) *
                                 sqrt(8.0))) < (i < WARM / 2 ? 1e-12 : 1.0));
    }
    for (int k = 0; k < 3; k++)
        beta[k] = tsr_ladder_beta(tsr_sampler_ladder(run.sampler, 0), k);
    assert_true(fabs(log(beta[1] * sqrt(8.0))) > 1e-6);
    assert_true(beta[0] == 1.0 && beta[2] == 1.0 / 8.0);
    for (int i = 0; i < 200; i++) {
        tsr_chain_view view;
        posterior_advance(run, 1, 3, 0);
        tsr_chain_view_get(tsr_sampler_chain(run.sampler, 0), &view);
        assert_true(view.beta == 1.0);
        for (int k = 0; k < 3; k++)
            assert_true(tsr_ladder_beta(tsr_sampler_ladder(run.sampler, 0),
                                        k) == beta[k]);
    }
}

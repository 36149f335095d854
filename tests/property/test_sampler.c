/* The sampler draws from the right posterior, whatever the threads and engines.
 * */
#include "tests/chain_step.h"
#include "tests/io_files.h"
#include "tests/objects.h"
#include "tests/property/prior_sampler.h"
#include "tests/record_trace.h"
#include "tests/saxs_likelihood.h"
#include "tests/test.h"
#include "tests/trace_compare.h"
#include "tests/weighted.h"

#include "core/vec3.h"
#include "gpu/engine_device.h"
#include "sampler/sampler.h"

#include <gsl/gsl_randist.h>
#include <unistd.h>

/* How many times as long as in `make check`; slow_sampler.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

enum { N_POINT = 40, THIN = 20, MAX_SHARE = 3 };

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    tsr_prior *prior;
    tsr_form_factor_table *factors;
    tsr_saxs saxs;
    double q[N_POINT], intensity[N_POINT], sigma[N_POINT];
    tsr_likelihood *likelihood;
    unsigned char option[TSR_N_MOVE][256];
    const void *options[TSR_N_MOVE];
    tsr_target target;
    tsr_engine_group share[MAX_SHARE];
    tsr_device *device[MAX_SHARE];
} fixture;

/* Data: the curve of the extended chain after some turns, with errors. */
static void open_fixture(fixture *f, const char *sequence, double error,
                         const char *scale)
{
    memset(f, 0, sizeof *f);
    const tsr_prior_options prior = {.clash = TSR_CLASH_NONE, .softness = 0.5};
    sample_prior_table(&f->table);
    sample_chain(sequence, NULL, &f->table, &f->t, &f->c);
    MAKE(tsr_prior, f->prior, tsr_prior_new, f->t, &f->table, &prior, 0.0);
    f->factors = own_tsr_form_factor(sample_form_factors());
    gsl_rng *rng = rng_new(77, 0);
    for (int k = 0; k < f->t->n_torsion; k++)
        tsr_conformation_turn(f->t, f->c, &f->t->torsion[k],
                              gsl_ran_gaussian(rng, 0.7));
    for (int k = 0; k < N_POINT; k++) {
        f->q[k] = 0.01 + 0.4 * k / (N_POINT - 1);
        OK(tsr_scattering_intensity(&(tsr_scattering){.plain = f->factors},
                                    f->t, f->c, NULL, f->q[k], &f->intensity[k],
                                    &err));
        f->sigma[k] = error * f->intensity[0];
        f->intensity[k] += gsl_ran_gaussian(rng, f->sigma[k]);
    }
    f->saxs = (tsr_saxs){.path = NULL,
                         .n = N_POINT,
                         .q = f->q,
                         .intensity = f->intensity,
                         .sigma = f->sigma};
    const tsr_scattering scattering = {.plain = f->factors};
    tsr_data_set set = {.saxs = &f->saxs,
                        .noise = noise_of("measured"),
                        .background = {TSR_BACKGROUND_FLAT, 0.0}};
    noise_set(&set.noise, "scale", scale);
    MAKE(tsr_likelihood, f->likelihood, saxs_likelihood, f->t, &scattering,
         tsr_topology_reach(f->t, f->c), 1, &set);
    for (int m = 0; m < TSR_N_MOVE; m++) {
        OK(tsr_fields_init(tsr_move_registry[m]->fields, f->option[m], &err));
        f->options[m] = f->option[m];
    }
    f->target = (tsr_target){.topology = f->t,
                             .first = f->c,
                             .prior = f->prior,
                             .likelihood = f->likelihood,
                             .rg2 = f->factors->rg2,
                             .move_options = f->options,
                             .seed = 5};
}

static double radius(const fixture *f, const tsr_conformation *c)
{
    return tsr_conformation_rg(f->t, c, f->factors->rg2);
}

/* What the two ways to the posterior are compared by. */
enum { BY_RG, BY_LOG_LIK, N_BY };
static const char *const by_name[N_BY] = {"Rg", "log likelihood"};

/* Quantities whose posterior means are known another way: exact draws of the
 * prior, weighted with the likelihood. The data are noisy enough for the
 * weights to stay even. */
static void importance(fixture *f, double mean[N_BY], double error[N_BY],
                       double plain[N_BY])
{
    enum { N = 5000 * LENGTH };
    double *w = array(N, sizeof *w), (*value)[N_BY] = array(N, sizeof *value);
    double *profile = array((size_t)f->likelihood->grid.n_q, sizeof *profile);
    prior_sampler prior = {
        .t = f->t, .table = &f->table, .prior = f->prior, .first = f->c};
    tsr_engine_spec spec = probe_spec(f->likelihood, f->t->n_body, 1);
    tsr_point point;
    gsl_rng *rng = rng_new(99, 0);
    tsr_conformation *c = new_conformation(f->t);
    saxs_point(f->likelihood, &point);
    NEW(tsr_engine, engine, tsr_engine_reference_new, &spec);
    NEW(tsr_batch, batch, tsr_batch_new, engine, 1);
    for (int i = 0; i < N; i++) {
        sample_prior(&prior, rng, c);
        OK(tsr_batch_set(batch, 0, (const double(*)[3])c->body, profile, &err));
        w[i] = saxs_evaluate(f->likelihood, profile, 1.0, NULL, &point);
        value[i][BY_RG] = radius(f, c);
        value[i][BY_LOG_LIK] = w[i];
    }
    block_means(N, N_BY, value[0], plain, error);
    assert_true(weighted_means(N, N_BY, value[0], w, mean, error, NULL) >
                100.0); /* effective draws */
    tsr_point_clear(&point);
}

TEST(posterior_is_right)
{
    enum { N = 3200 * LENGTH, BLOCK = 80 * LENGTH };
    fixture f;
    double expected[N_BY], error[N_BY], plain[N_BY];
    double mean[N_BY] = {0}, square[N_BY] = {0};
    open_fixture(&f, "GAFGSLG", 0.02, "1");
    importance(&f, expected, error, plain);
    tsr_engine_spec spec = probe_spec(f.likelihood, f.t->n_body, 1);
    MAKE(tsr_engine, f.share[0].engine, tsr_engine_reference_new, &spec);
    tsr_chain_view view;
    NEW(tsr_batch, batch, tsr_batch_new, f.share[0].engine, 1);
    tsr_chain *chain = new_chain(&f.target, 0, batch);
    double *profile = array((size_t)f.likelihood->grid.n_q, sizeof *profile);
    for (int block = -4; block < N / BLOCK; block++) {
        double sum[N_BY] = {0};
        for (int i = 0; i < BLOCK * THIN; i++) {
            chain_step(chain, batch, profile, block < 0);
            if (i % THIN == 0) {
                tsr_chain_view_get(chain, &view);
                sum[BY_RG] += view.rg_ang / BLOCK;
                sum[BY_LOG_LIK] += view.log_lik / BLOCK;
            }
        }
        for (int k = 0; k < N_BY && block >= 0; k++) {
            mean[k] += sum[k] / (N / BLOCK);
            square[k] += sum[k] * sum[k] / (N / BLOCK);
        }
    }
    for (int k = 0; k < N_BY; k++) {
        double own = sqrt((square[k] - mean[k] * mean[k]) / (N / BLOCK - 1.0));
        double total = hypot(own, error[k]);
        /* the data must matter, or the test would not tell */
        assert_true(fabs(plain[k] - expected[k]) > 8.0 * total);
        if (fabs(mean[k] - expected[k]) > 4.5 * total)
            fail_msg("mean %s %.4f +- %.4f, by importance sampling %.4f +- "
                     "%.4f",
                     by_name[k], mean[k], own, expected[k], error[k]);
    }
}

enum { N_CHAIN = 7, N_DRAW = 12 };

static void skip_without_cpu(void)
{
    if (!is_device("cpu"))
        skip();
}

/* Each engine has a context of its own on the same device. */
static void open_engines(fixture *f, int n_share, const int *n_chain)
{
    for (int e = 0; e < n_share; e++) {
        tsr_engine_spec spec =
            probe_spec(f->likelihood, f->t->n_body, n_chain[e]);
        MAKE(tsr_device, f->device[e], tsr_device_open, "cpu");
        MAKE(tsr_engine, f->share[e].engine, tsr_engine_page_tile_new, &spec,
             f->device[e], NULL);
        f->share[e].n_chain = n_chain[e];
    }
    f->target.n_engine = n_share;
    f->target.engines = f->share;
}

typedef struct {
    const char *path;
    int n_thread, n_worker; /* asked for, and what it comes to */
    int n_share, n_chain[MAX_SHARE];
} split;

static void sample_into(const split *by)
{
    fixture f;
    int n_done;
    char long_chain[] = "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCEMKTAYIAKQRPGISFVKSHF";
    open_fixture(&f, long_chain, 0.01, "infer");
    open_engines(&f, by->n_share, by->n_chain);
    NEW(tsr_record, record, tsr_record_new, &f.target, N_CHAIN, 5);
    NEW(tsr_sampler, sampler, tsr_sampler_new, &f.target, N_CHAIN, by->n_thread,
        NULL);
    assert_int_equal(tsr_sampler_n_thread(sampler), by->n_worker);
    unlink(by->path);
    tsr_draw_log *log = record_begin(by->path, N_CHAIN, record);
    for (int phase = 1; phase >= 0; phase--)
        for (int i = 0; i < N_DRAW; i += 4) {
            OK(tsr_sampler_advance(sampler, record, 4, THIN, phase, NULL, NULL,
                                   &n_done, &err));
            assert_int_equal(n_done, 4);
            OK(tsr_record_write(record, log, phase, i, n_done, &err));
        }
    record_end(by->path, log);
}

/* Threads change nothing, nor do engines: two or three of them, with equal
 * shares or not, and with fewer threads than engines. */
TEST(division_changes_nothing)
{
    static split by[] = {{.n_thread = 1, .n_worker = 1, 1, {N_CHAIN}},
                         {.n_thread = 4, .n_worker = 4, 1, {N_CHAIN}},
                         {.n_thread = 5, .n_worker = 5, 2, {2, 5}},
                         {.n_thread = 1, .n_worker = 3, 3, {3, 1, 3}}};
    enum { N = COUNT_OF(by) };
    skip_without_cpu();
    for (int k = 0; k < N; k++)
        by[k].path = format("%s/%d.h5", io_dir, k);
    for (int k = 0; k < N; k++) {
        sample_into(&by[k]);
        if (k > 0)
            assert_true(
                trace_compare((const char *const[]){by[0].path, by[k].path}) >
                N_CHAIN * N_DRAW * 3 * N_POINT);
    }
}

/* Shares that leave chains out, or that an engine has no room for. */
TEST(wrong_shares_are_refused)
{
    fixture f;
    tsr_sampler *sampler;
    skip_without_cpu();
    open_fixture(&f, "GAFGSLG", 0.02, "1");
    open_engines(&f, 2, (const int[]){2, 1});
    assert_int_equal(tsr_sampler_new(&f.target, 4, 2, NULL, &sampler, &err),
                     TSR_E_INTERNAL);
    assert_null(sampler);
    f.share[1].n_chain = 2;
    assert_int_equal(tsr_sampler_new(&f.target, 4, 2, NULL, &sampler, &err),
                     TSR_E_INTERNAL);
    f.share[0].n_chain = 0;
    f.share[1].n_chain = 1;
    assert_int_equal(tsr_sampler_new(&f.target, 1, 2, NULL, &sampler, &err),
                     TSR_E_INTERNAL);
}

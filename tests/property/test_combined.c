/* The posterior of everything that a run can infer at once equals weighted
 * draws of the prior.
 *
 * An ensemble with weights, c1 and c2, two data sets with different noise
 * models, of one sample or of two with weights of their own, temperatures; the
 * likelihood is written out here. What replicas keep
 * of moving structures equals a fresh computation. */
#include "sampler/chain.h"
#include "sampler/sampler.h"
#include "tests/parameter_draw.h"
#include "tests/property/posterior_sample.h"
#include "tests/test.h"
#include "tests/weighted.h"

enum { N_SET = 2, N_STATE = 2, N_TEMP = 3, N_CHAIN = 2, SHORT = 15 };
enum { STUDENT_SET, RELATIVE_SET };
enum {
    N_THETA = N_SET * TSR_TERM_PARAMETERS + TSR_N_CONTRAST + N_SET * N_STATE
};
enum {
    WEIGHT,
    WEIGHT_2,
    C1,
    C2,
    LOG_S,
    LOG_NU,
    LOG_C,
    BACKGROUND,
    LOG_BETA,
    LOG_C_2
};
enum { N_VALUE = LOG_C_2 + 1 };
static const char *const value_name[N_VALUE] = {
    "weight 1", "weight 1 of sample 2", "c1",        "c2",
    "log s",    "log(nu - 1)",          "log scale", "background",
    "log beta", "log scale 2"};

typedef struct {
    posterior_sample s;
    tsr_saxs other; /* fewer points, of the same curve or of other weights */
    double intensity[POSTERIOR_POINTS], sigma[POSTERIOR_POINTS];
    tsr_conformation *start[N_STATE];
    double i0;
} combined;

static void make_terms(const combined *m, int n_sample, tsr_term *term[N_SET])
{
    tsr_data_set set[N_SET] = {
        [STUDENT_SET] = {.saxs = &m->s.saxs,
                         .noise = noise_of("student"),
                         .background = {TSR_BACKGROUND_INFER, 0.0},
                         .background_sd = {-1, 0.05 * m->i0}},
        [RELATIVE_SET] = {.saxs = &m->other,
                          .noise = noise_of("relative"),
                          .background = {-1, 0.1 * m->i0}}};
    noise_set(&set[STUDENT_SET].noise, "scale_width", "0.3");
    noise_set(&set[RELATIVE_SET].noise, "beta", "infer");
    for (int d = 0; d < N_SET; d++) {
        OK(tsr_saxs_term_new(&set[d], d, &term[d], &err));
        term[d]->has_own_weights = n_sample > 1;
        term[d]->at = -d; /* the second set is the first of the series */
    }
}

static void open_combined(combined *m, const char *sequence, int is_frozen,
                          double e, int n_sample)
{
    const tsr_prior_options prior = {
        .clash = TSR_CLASH_SOFT, .softness = 0.5, .clash_limit = 10.0};
    const tsr_contrast_options infer = posterior_infer_contrast();
    const double weight[N_STATE] = {0.4, 0.6}, other[N_STATE] = {0.95, 0.05};
    tsr_term *term[N_SET];
    posterior_sample *s = &m->s;
    gsl_rng *rng = rng_new(31, 0);
    posterior_open(s, sequence, NULL, prior);
    posterior_contrast(s, &infer);
    for (int k = 0; k < N_STATE; k++) {
        m->start[k] = new_conformation(s->t);
        tsr_conformation_copy(s->t, m->start[k], s->extended, 0,
                              s->t->n_residue);
    }
    for (int k = 0; k < s->t->n_torsion; k++)
        tsr_conformation_turn(s->t, m->start[1], &s->t->torsion[k],
                              gsl_ran_gaussian(rng, n_sample > 1 ? 0.7 : 0.3));
    m->other = s->saxs;
    m->other.n = SHORT;
    if (n_sample > 1) {
        posterior_data(s, N_STATE, (const tsr_conformation *const *)m->start,
                       other, e, 2.0, 0.1, 0.0, rng);
        memcpy(m->intensity, s->intensity, sizeof m->intensity);
        memcpy(m->sigma, s->sigma, sizeof m->sigma);
        m->other.intensity = m->intensity, m->other.sigma = m->sigma;
    }
    m->i0 =
        posterior_data(s, N_STATE, (const tsr_conformation *const *)m->start,
                       weight, e, 2.0, 0.1, 0.0, rng);
    make_terms(m, n_sample, term);
    MAKE(tsr_likelihood, s->likelihood, tsr_likelihood_new, s->t, 1,
         &s->scattering, tsr_topology_reach(s->t, s->extended), N_SET, term);
    assert_int_equal(s->likelihood->n_mixture, n_sample);
    const tsr_engine_spec spec =
        probe_spec(s->likelihood, s->t->n_body, N_CHAIN * N_TEMP * N_STATE);
    MAKE(tsr_engine, s->share.engine, tsr_engine_reference_new, &spec);
    s->share.n_chain = N_CHAIN;
    s->target.n_engine = 1, s->target.engines = &s->share;
    s->target.likelihood = s->likelihood;
    s->target.n_state = N_STATE, s->target.infer_weights = 1;
    s->target.n_start = N_STATE, s->target.start = m->start;
    s->target.n_temp = N_TEMP, s->target.t_max = 8.0;
    s->target.swap_every = 2, s->target.is_frozen = is_frozen;
}

/* ---- weighted draws of the prior ---- */

/* log density of a data set at c and b. */
static double log_density(const combined *m, int d, const double *model,
                          double c, double b, double s, double nu)
{
    const tsr_saxs *x = saxs_term(m->s.likelihood, d)->saxs;
    double sum = 0.0;
    for (int k = 0; k < x->n; k++) {
        double r = x->intensity[k] - c * model[k] - b, sd = s * x->sigma[k];
        if (d == RELATIVE_SET) {
            sd = s * x->intensity[k] * (x->q[k] + 0.15);
            sum += log(gsl_ran_ugaussian_pdf(r / sd)) - log(sd);
        } else {
            sum += log(gsl_ran_tdist_pdf(r / sd, nu)) - log(sd);
        }
    }
    return sum;
}

/* c and b about their best by the errors of the model. Returns the log of what
 * the draw weighs. */
static double weigh_set(const combined *m, int d, const double *profile,
                        double s, double nu, gsl_rng *rng, double *c, double *b)
{
    const tsr_saxs_term *term = saxs_term(m->s.likelihood, d);
    const tsr_linear_shape shape = {1.3 * s, 5};
    double model[POSTERIOR_POINTS], weight[POSTERIOR_POINTS];
    tsr_fit fit = {0};
    tsr_saxs_curve(term, profile, 1.0, NULL, model);
    for (int k = 0; k < term->saxs->n; k++) {
        double u = d == STUDENT_SET
                       ? term->saxs->sigma[k]
                       : term->saxs->intensity[k] * (term->saxs->q[k] + 0.15);
        weight[k] = 1.0 / (u * u);
    }
    tsr_linear_fit(&term->linear, term->saxs->n, model, term->saxs->intensity,
                   weight, &fit);
    tsr_linear_draw(&term->linear, &fit, shape, rng, c, b);
    const double sd = term->linear.background_sd;
    const double log_prior =
        d == STUDENT_SET ? log(gsl_ran_gaussian_pdf(*b, sd)) : 0.0;
    return log_density(m, d, model, *c, *b, s, nu) + log_prior -
           tsr_linear_log_density(&term->linear, &fit, shape, *c, *b);
}

/* Where the parameters of the noise of a data set lie in a chain's theta. */
static const double *noise_in(const combined *m, int d, const double *theta)
{
    return theta + m->s.likelihood->term[d]->first;
}

/* Weight of the first state in a data set: two samples are in the order of
 * `at`. */
static double first_weight(const tsr_parameters *p, int d, const double *theta)
{
    const int mixture = p->n_mixture > 1 && d == STUDENT_SET;
    return theta[p->weight + mixture * N_STATE];
}

/* One draw of the prior: its log weight. partial: of the two states. mixed:
 * scratch for two sets. */
static double weigh(const combined *m, const tsr_parameters *p,
                    double *const *partial, gsl_rng *rng, double *mixed,
                    double value[N_VALUE])
{
    const tsr_likelihood *l = m->s.likelihood;
    double theta[N_THETA], b, c[N_SET], w[N_SET];
    table_draw(p, rng, theta);
    const double *contrast = tsr_parameters_contrast(p, theta);
    const int n = l->n_pair * l->grid.n_q;
    for (int d = 0; d < N_SET; d++, mixed += n) {
        w[d] = first_weight(p, d, theta);
        for (int i = 0; i < n; i++)
            mixed[i] = w[d] * partial[0][i] + (1.0 - w[d]) * partial[1][i];
        tsr_likelihood_profile(l, 0, mixed, contrast, mixed);
    }
    const double log_s = noise_in(m, STUDENT_SET, theta)[0];
    const double nu = 1.0 + exp(noise_in(m, STUDENT_SET, theta)[1]);
    const double log_beta = noise_in(m, RELATIVE_SET, theta)[1];
    double log_weight = weigh_set(m, RELATIVE_SET, mixed - n, exp(log_beta),
                                  0.0, rng, &c[RELATIVE_SET], &b);
    log_weight += weigh_set(m, STUDENT_SET, mixed - 2 * n, exp(log_s), nu, rng,
                            &c[STUDENT_SET], &b);
    value[WEIGHT] = w[STUDENT_SET], value[WEIGHT_2] = w[RELATIVE_SET];
    value[C1] = contrast[TSR_C1];
    value[C2] = contrast[TSR_C2];
    value[LOG_S] = log_s, value[LOG_NU] = log(nu - 1.0);
    value[LOG_C] = log(c[STUDENT_SET]), value[BACKGROUND] = b / m->i0;
    value[LOG_BETA] = log_beta, value[LOG_C_2] = log(c[RELATIVE_SET]);
    return log_weight;
}

/* Returns how many draws the weighted ones are worth. */
static double by_weights(const combined *m, int n, double *mean, double *error)
{
    const tsr_likelihood *l = m->s.likelihood;
    size_t size = (size_t)l->n_pair * (size_t)l->grid.n_q;
    double(*value)[N_VALUE] = array((size_t)n, sizeof *value);
    double *w = array((size_t)n, sizeof *w), *mixed = array(N_SET * size, 8);
    double *partial[N_STATE];
    gsl_rng *rng = rng_new(77, 0);
    tsr_pool *pool = new_pool();
    tsr_parameters *p = tsr_parameters_new(pool, l, m->s.contrast, N_STATE, 1);
    NEW(tsr_batch, batch, tsr_batch_new, m->s.share.engine, 1);
    for (int k = 0; k < N_STATE; k++) {
        partial[k] = array(size, sizeof(double));
        OK(tsr_batch_set(batch, 0, (const double(*)[3])m->start[k]->body,
                         partial[k], &err));
    }
    for (int i = 0; i < n; i++)
        w[i] = weigh(m, p, partial, rng, mixed, value[i]);
    return weighted_means(n, N_VALUE, value[0], w, mean, error, NULL);
}

/* ---- the sampler ---- */

/* How many times as long as in `make check`; slow_combined.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

static void look(const combined *m, const tsr_chain *chain,
                 double value[N_VALUE])
{
    const tsr_likelihood *l = m->s.likelihood;
    tsr_chain_view view;
    tsr_chain_view_get(chain, &view);
    const double *contrast = posterior_contrast_of(&view);
    double theta[TSR_TERM_PARAMETERS];
    int n = saxs_draw(l, STUDENT_SET, view.point, view.rng, theta);
    value[WEIGHT] =
        first_weight(chain->parameters, STUDENT_SET, view.point->theta);
    value[WEIGHT_2] =
        first_weight(chain->parameters, RELATIVE_SET, view.point->theta);
    value[C1] = contrast[TSR_C1], value[C2] = contrast[TSR_C2];
    value[LOG_S] = theta[0], value[LOG_NU] = theta[1];
    value[LOG_C] = log(theta[n - 2]), value[BACKGROUND] = theta[n - 1] / m->i0;
    n = saxs_draw(l, RELATIVE_SET, view.point, view.rng, theta);
    value[LOG_BETA] = theta[1];
    value[LOG_C_2] = log(theta[n - 2]);
}

static void check_posterior(int n_sample)
{
    enum { N_BLOCK = 60, BLOCK = 50 * LENGTH, THIN = 10 };
    enum { N_WEIGHTED = 45000 * LENGTH };
    double(*block)[N_VALUE] = array(N_BLOCK * N_CHAIN, sizeof *block);
    double expected[N_VALUE], error[N_VALUE], value[N_VALUE];
    double mean[N_VALUE], block_error[N_VALUE];
    int n = N_BLOCK * N_CHAIN;
    combined m;
    open_combined(&m, "GASFGKLE", 1, 0.1, n_sample);
    double worth = by_weights(&m, N_WEIGHTED, expected, error);
    posterior_run run = posterior_run_new(&m.s, N_CHAIN, 1, 1);
    posterior_warm_up(run, 3000);
    for (int i = 0; i < N_BLOCK; i++)
        for (int j = 0; j < BLOCK; j++) {
            posterior_advance(run, 1, THIN, 0);
            for (int c = 0; c < N_CHAIN; c++) {
                look(&m, tsr_sampler_chain(run.sampler, c), value);
                for (int v = 0; v < N_VALUE; v++)
                    block[i * N_CHAIN + c][v] += value[v] / BLOCK;
            }
        }
    print_message("  weighted draws worth %.0f\n", worth);
    assert_true(worth > 1000.0);
    block_means(n, N_VALUE, block[0], mean, block_error);
    for (int v = 0; v < N_VALUE; v++) {
        double z = (mean[v] - expected[v]) / hypot(error[v], block_error[v]);
        print_message("  %-20s %8.4f, weighted %8.4f +- %.4f: z %.2f\n",
                      value_name[v], mean[v], expected[v], error[v], z);
        assert_true(fabs(z) < 4.0);
    }
}

TEST(posterior_is_right)
{
    check_posterior(1);
}

TEST(posterior_of_two_samples_is_right)
{
    check_posterior(2);
}

static void check_replicas(int n_sample)
{
    combined m;
    open_combined(&m, "MKTAYIAKQRPG", 0, 0.05, n_sample);
    posterior_run run = posterior_run_new(&m.s, N_CHAIN, 2, 1);
    NEW(tsr_batch, batch, tsr_batch_new, m.s.share.engine, 1);
    size_t bytes = (size_t)m.s.likelihood->grid.n_q * sizeof(double);
    double *profile = array(1, bytes);
    for (int round = 0; round < 8; round++) {
        posterior_advance(run, 1, 101, round < 4);
        for (int r = 0; r < N_CHAIN * N_TEMP; r++) {
            tsr_chain *chain = run.sampler->chain[r];
            tsr_chain_view was, is;
            tsr_chain_view_get(chain, &was);
            memcpy(profile, was.point->profile, bytes);
            OK(tsr_chain_refresh(chain, batch, &err));
            tsr_chain_view_get(chain, &is);
            assert_near(is.log_prior, was.log_prior, 1e-7);
            assert_near(is.log_lik, was.log_lik, 1e-7);
            assert_near(is.lp, was.lp, 1e-7);
            for (int q = 0; q < m.s.likelihood->grid.n_q; q++)
                assert_near(profile[q], is.point->profile[q],
                            1e-9 * fabs(is.point->profile[0]));
        }
    }
    for (int c = 0; c < N_CHAIN; c++)
        assert_true(tsr_ladder_rate(tsr_sampler_ladder(run.sampler, c), 0) >
                    0.01);
}

TEST(replicas_are_as_if_afresh)
{
    check_replicas(1);
    check_replicas(2);
}

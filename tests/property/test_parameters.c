/* Steps on parameters give the same posterior whether parameters are sampled or
 * integrated, and the truth ranks evenly among the draws.
 *
 * Spheres' Guinier curves of radius R stand in place of a structure, no engine
 * is needed. Source of the ranks: Talts et al. 2018. */
#include "sampler/chain.h"
#include "tests/objects.h"
#include "tests/parameter_draw.h"
#include "tests/saxs_likelihood.h"
#include "tests/test.h"
#include "tests/weighted.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>

enum { N_POINT = 30, MAX_DATA = 2, MAX_Q = 64, MAX_BIN = 5 };
static const double d_bound = 120.0, i0 = 1e4;
static const double log_r_mean = 3.0, log_r_width = 0.2;

typedef struct {
    tsr_topology topology; /* of nothing */
    tsr_form_factor_table *table;
    int n_data;
    tsr_saxs saxs[MAX_DATA];
    double q[N_POINT], intensity[MAX_DATA][N_POINT], sigma[MAX_DATA][N_POINT];
    tsr_data_set set[MAX_DATA];
    tsr_likelihood *likelihood;
} problem;

enum { MEASURED, RELATIVE, STUDENT };

/* All its parameters inferred, with priors narrower than by default. */
static tsr_noise_options narrow_noise(int model)
{
    static const char *const with[][2] = {{"scale_width", "0.3"},
                                          {"alpha", "infer"},
                                          {"alpha_width", "0.2"},
                                          {"beta", "infer"},
                                          {"beta_width", "0.2"}};
    const tsr_noise_type *type = tsr_noise_registry[model];
    tsr_noise_options o = noise_of(type->name);
    for (size_t i = 0; i < COUNT_OF(with); i++)
        if (tsr_field_find(type->fields, with[i][0]) != NULL)
            noise_set(&o, with[i][0], with[i][1]);
    return o;
}

static void open_problem(problem *p, int n_data, const int *model)
{
    memset(p, 0, sizeof *p);
    p->table = tsr_form_factor_new(TSR_BODIES_TWO, 1, 101, 0.01);
    own_tsr_form_factor(p->table);
    p->n_data = n_data;
    for (int k = 0; k < N_POINT; k++)
        p->q[k] = 0.01 + 0.14 * k / (N_POINT - 1);
    for (int d = 0; d < n_data; d++) {
        p->saxs[d] = (tsr_saxs){.path = NULL,
                                .n = N_POINT,
                                .q = p->q,
                                .intensity = p->intensity[d],
                                .sigma = p->sigma[d]};
        p->set[d].saxs = &p->saxs[d];
        p->set[d].noise = narrow_noise(model[d]);
        for (int k = 0; k < N_POINT; k++)
            p->sigma[d][k] = (0.02 + 0.2 * p->q[k]) * 0.5 * i0;
    }
}

static void make_likelihood(problem *p)
{
    const tsr_scattering scattering = {.plain = p->table};
    MAKE(tsr_likelihood, p->likelihood, saxs_likelihood, &p->topology,
         &scattering, d_bound, p->n_data, p->set);
    assert_true(p->likelihood->grid.n_q <= MAX_Q);
}

static void family(const tsr_q_grid *grid, double r, double *profile)
{
    for (int j = 0; j < grid->n_q; j++) {
        double x = j * grid->dq_inv_ang * r;
        profile[j] = i0 * exp(-x * x / 3.0);
    }
}

/* Noise of one point. That of `relative` depends on the value itself: with y =
 * mean / I its density falls as exp(-(1 - y)^2 / 2 kappa^2) / y. */
static double measure_point(const problem *p, int d, int k, double mean,
                            const double *value, gsl_rng *rng)
{
    double s = p->sigma[d][k];
    if (p->set[d].noise.model == MEASURED)
        return mean + gsl_ran_gaussian(rng, value[0] * s);
    if (p->set[d].noise.model == STUDENT)
        return mean + value[0] * s * gsl_ran_tdist(rng, value[1]);
    double y, kappa = (p->q[k] + value[0]) * value[1];
    do
        y = 1.0 + gsl_ran_gaussian(rng, kappa);
    while (y < 0.2 || gsl_rng_uniform(rng) > 0.2 / y);
    return mean / y;
}

/* Data of every set at its c, b, noise and log S(0) (NULL: 0). */
static void make_data_at(problem *p, double r, const double *c, const double *b,
                         double (*value)[TSR_NOISE_PARAMETERS],
                         const double *log_s0, gsl_rng *rng)
{
    double profile[MAX_Q], *matrix;
    tsr_q_grid grid = tsr_q_grid_make(d_bound, p->q[N_POINT - 1]);
    OK(tsr_q_operator_new(&grid, N_POINT, p->q, &matrix, &err));
    family(&grid, r, profile);
    for (int d = 0; d < p->n_data; d++)
        for (int k = 0; k < N_POINT; k++) {
            double one = 0.0;
            for (int j = 0; j < grid.n_q; j++)
                one += matrix[k * grid.n_q + j] * profile[j];
            if (log_s0 != NULL)
                one /= 1.0 + expm1(-log_s0[d]) * pow(one / profile[0], 2.0);
            p->intensity[d][k] =
                measure_point(p, d, k, c[d] * one + b[d], value[d], rng);
        }
    free(matrix);
    make_likelihood(p);
}

static void make_data(problem *p, double r, const double *c, const double *b,
                      double (*value)[TSR_NOISE_PARAMETERS], gsl_rng *rng)
{
    make_data_at(p, r, c, b, value, NULL, rng);
}

/* ---- a chain ---- */

/* A chain whose one state is R: its partial profile stands for the structure.
 */
typedef struct {
    const problem *p;
    tsr_target target;
    tsr_conformer state;
    tsr_chain chain;
    double r, step;
    long n_step, n_accepted;
} chain;

static void release_chain(void *object)
{
    tsr_chain *k = object;
    tsr_point_clear(&k->now);
    tsr_point_clear(&k->trial);
    tsr_pool_clear(&k->pool);
}

static void open_chain(chain *c, const problem *p, uint64_t seed, double beta,
                       double r)
{
    tsr_chain *k = &c->chain;
    *c = (chain){.p = p, .r = r, .step = 0.03};
    c->target.likelihood = p->likelihood;
    *k = (tsr_chain){.target = &c->target,
                     .rng = rng_new(seed, 1),
                     .n_state = 1,
                     .state = &c->state,
                     .beta = beta};
    k->parameters = tsr_parameters_new(&k->pool, p->likelihood, NULL, 1, 0);
    assert_non_null(k->parameters);
    assert_true(tsr_point_make(p->likelihood, k->parameters->n, &k->now));
    assert_true(tsr_point_make(p->likelihood, k->parameters->n, &k->trial));
    own_copy(k, release_chain);
    tsr_parameters_start(k->parameters, k->now.theta);
    family(&p->likelihood->grid, r, k->now.partial);
    saxs_evaluate(p->likelihood, k->now.partial, beta, k->rng, &k->now);
}

static double log_prior_r(double r)
{
    double z = (log(r) - log_r_mean) / log_r_width;
    return -0.5 * z * z; /* of log r */
}

static void step_chain(chain *c, int warm)
{
    tsr_chain *k = &c->chain;
    const tsr_likelihood *l = c->p->likelihood;
    double r = c->r * exp(gsl_ran_gaussian(k->rng, c->step));
    memcpy(k->trial.theta, k->now.theta,
           (size_t)k->parameters->n * sizeof(double));
    family(&l->grid, r, k->trial.partial);
    saxs_evaluate(l, k->trial.partial, k->beta, k->rng, &k->trial);
    double log_alpha = k->beta * (k->trial.log_lik - k->now.log_lik) +
                       log_prior_r(r) - log_prior_r(c->r) +
                       tsr_likelihood_log_ratio(l, &k->now, &k->trial, k->beta);
    c->n_step++;
    if (log(gsl_rng_uniform_pos(k->rng)) < log_alpha) {
        tsr_point_swap(l, TSR_CHANGES_MEAN, -1, &k->now, &k->trial);
        c->r = r;
        c->n_accepted++;
    }
    OK(tsr_chain_step_parameters(k, warm, &err));
}

/* R, then per data set c, b, theta of the noise, log S(0). */
enum { PER_DATA = 3 + TSR_NOISE_PARAMETERS, LOG_S0 = PER_DATA - 1 };
enum { N_QUANTITY = 1 + MAX_DATA * PER_DATA };

static void look(const chain *c, double value[N_QUANTITY])
{
    value[0] = c->r;
    for (int d = 0; d < c->p->n_data; d++) {
        double *v = value + 1 + d * PER_DATA, theta[TSR_TERM_PARAMETERS];
        const tsr_saxs_term *term = saxs_term(c->p->likelihood, d);
        const int n = term->n_noise;
        saxs_draw(c->p->likelihood, d, &c->chain.now, c->chain.rng, theta);
        v[0] = theta[n], v[1] = theta[n + 1];
        for (int i = 0; i < TSR_NOISE_PARAMETERS; i++)
            v[2 + i] = i < n ? theta[i] : 0.0;
        v[LOG_S0] = term->has_interparticle ? theta[n + 2] : 0.0;
    }
}

/* Means of the quantities and of their squares about `centre`, over a long
 * chain, with the errors of the means of 40 batches. */
enum { N_MEAN = 2 * N_QUANTITY };

static void run_chain(const problem *p, uint64_t seed, double beta, int n,
                      const double centre[N_QUANTITY], double mean[N_MEAN],
                      double error[N_MEAN])
{
    enum { BATCHES = 40 };
    chain c;
    open_chain(&c, p, seed, beta, centre[0]);
    c.step = 0.2;
    for (int i = 0; i < 3000; i++)
        step_chain(&c, 1);
    double sum[N_MEAN] = {0}, square[N_MEAN] = {0};
    for (int b = 0; b < BATCHES; b++) {
        double batch[N_MEAN] = {0}, value[N_QUANTITY] = {0};
        for (int i = 0; i < n / BATCHES; i++) {
            step_chain(&c, 0);
            look(&c, value);
            for (int v = 0; v < N_QUANTITY; v++) {
                double x = value[v] - centre[v];
                batch[2 * v] += value[v] / (n / BATCHES);
                batch[2 * v + 1] += x * x / (n / BATCHES);
            }
        }
        for (int v = 0; v < N_MEAN; v++)
            sum[v] += batch[v], square[v] += batch[v] * batch[v];
    }
    for (int v = 0; v < N_MEAN; v++) {
        mean[v] = sum[v] / BATCHES;
        double variance = square[v] / BATCHES - mean[v] * mean[v];
        error[v] = sqrt(fmax(variance, 0.0) / (BATCHES - 1));
    }
}

static void compare(const char *what, const double *a, const double *ea,
                    const double *b, const double *eb, int n)
{
    for (int v = 0; v < n; v++) {
        double off = fabs(a[v] - b[v]), error = hypot(ea[v], eb[v]);
        if (off > 4.5 * error + 1e-9 * fabs(a[v]))
            fail_msg("%s, quantity %d: %g and %g, error %g", what, v, a[v],
                     b[v], error);
    }
}

/* Data so noisy that R is open over much of its prior: the width of c's and b's
 * conditional, and what the cut at c = 0 takes away, change with it. */
TEST(sampled_is_integrated)
{
    static const tsr_number_or_word background[] = {
        {TSR_BACKGROUND_FLAT, 0.0},
        {-1, 200.0},
        {TSR_BACKGROUND_FLAT, 0.0},
        {TSR_BACKGROUND_INFER, 0.0}};
    static const tsr_number_or_word scale[] = {{0, 0.0}, {-1, 1.3}};
    double c = 1.3, b = 200.0;
    double value[2][TSR_NOISE_PARAMETERS] = {{10.0, 0.0}, {0.15, 1.5}};
    for (int model = MEASURED; model <= RELATIVE; model++)
        /* both free, b fixed, c fixed, b with a narrow prior */
        for (int k = 0; k < 4; k++) {
            problem p;
            double mean[2][N_MEAN], error[2][N_MEAN];
            const double centre[N_QUANTITY] = {21.0, 1.3, 200.0};
            gsl_rng *rng = rng_new(8, (uint64_t)model);
            open_problem(&p, 1, &model);
            p.set[0].background = background[k];
            p.set[0].background_sd = (tsr_number_or_word){-1, 150.0};
            p.set[0].intensity_scale = scale[k == 2];
            if (model == MEASURED)
                noise_set(&p.set[0].noise, "scale", "10");
            else
                noise_set(&p.set[0].noise, "beta", "1.5");
            make_data(&p, 21.0, &c, &b, &value[model], rng);
            for (int way = 0; way < 2; way++) {
                p.set[0].nuisance =
                    way ? TSR_NUISANCE_SAMPLE : TSR_NUISANCE_INTEGRATE;
                make_likelihood(&p);
                assert_int_equal(p.likelihood->term[0]->is_integrated, !way);
                run_chain(&p, 50 + (uint64_t)way, 1.0, 40000, centre, mean[way],
                          error[way]);
            }
            compare("sampled, integrated", mean[0], error[0], mean[1], error[1],
                    2 + 2 * PER_DATA);
        }
}

/* With c and b sampled and s fixed, the likelihood to the power beta is that of
 * s / sqrt(beta). */
TEST(tempered_is_wider)
{
    const int model = MEASURED;
    const double beta[] = {1.0, 0.3}, s[] = {8.0 / sqrt(0.3), 8.0};
    const double centre[N_QUANTITY] = {21.0, 1.3, 200.0};
    double mean[2][N_MEAN], error[2][N_MEAN], c = 1.3, b = 200.0;
    double value[1][TSR_NOISE_PARAMETERS] = {{8.0}};
    for (int way = 0; way < 2; way++) {
        problem p;
        gsl_rng *rng = rng_new(15, 0);
        open_problem(&p, 1, &model);
        p.set[0].nuisance = TSR_NUISANCE_SAMPLE;
        noise_put(&p.set[0].noise, "scale", s[way]);
        make_data(&p, 21.0, &c, &b, value, rng);
        run_chain(&p, 80 + (uint64_t)way, beta[way], 60000, centre, mean[way],
                  error[way]);
    }
    /* all but s itself */
    compare("tempered", mean[0], error[0], mean[1], error[1], 6);
}

/* Student's posterior against draws of R from its prior and of c and b from
 * their proposal, weighted; s and nu are fixed. Data with an outlier. b has a
 * normal prior of standard deviation sd, which is not tempered (0: flat).
 * c_fixed 0: c is inferred. */
static void student_at(double beta, double sd, double c_fixed)
{
    enum { N = 60000, N_BY = 6 };
    const int model = STUDENT;
    problem p;
    double c = 1.3, b = 200.0, value[1][TSR_NOISE_PARAMETERS] = {{1.0, 3.0}};
    double mean[N_MEAN], error[N_MEAN], want[N_BY], want_error[N_BY];
    const double centre[N_QUANTITY] = {21.0, 1.3, 200.0};
    gsl_rng *rng = rng_new(9, 0);
    open_problem(&p, 1, &model);
    noise_set(&p.set[0].noise, "scale", "10");
    noise_set(&p.set[0].noise, "nu", "3");
    if (sd > 0.0)
        p.set[0].background.word = TSR_BACKGROUND_INFER;
    p.set[0].background_sd = (tsr_number_or_word){-1, sd};
    if (c_fixed > 0.0)
        p.set[0].intensity_scale = (tsr_number_or_word){-1, c_fixed};
    make_data(&p, 21.0, &c, &b, value, rng);
    p.intensity[0][7] *= 3.0;
    make_likelihood(&p);
    run_chain(&p, 60, beta, 60000, centre, mean, error);

    tsr_point point;
    saxs_point(p.likelihood, &point);
    const tsr_term *term = p.likelihood->term[0];
    double *w = array(N, sizeof *w), (*x)[N_BY] = array(N, sizeof *x);
    for (int i = 0; i < N; i++) {
        x[i][0] = exp(log_r_mean + gsl_ran_gaussian(rng, log_r_width));
        family(&p.likelihood->grid, x[i][0], point.partial);
        saxs_evaluate(p.likelihood, point.partial, beta, rng, &point);
        x[i][2] = point.theta[2], x[i][4] = point.theta[3];
        for (int v = 0; v < N_BY; v += 2)
            x[i][v + 1] = pow(x[i][v] - centre[v / 2], 2.0);
        w[i] = beta * point.log_lik -
               term->type->log_density(term, point.fit[0], beta, point.theta);
    }
    weighted_means(N, N_BY, x[0], w, want, want_error, NULL);
    for (int v = 0; v < N_BY; v++)
        compare("student", &mean[v], &error[v], &want[v], &want_error[v], 1);
    if (beta == 0.0) { /* the priors of R and b */
        const double of_b[] = {0.0, sd * sd + centre[2] * centre[2]};
        const double none[2] = {0.0};
        compare("prior of b", mean + 4, error + 4, of_b, none, 2);
        assert_true(term->min_beta == 0.0);
    }
    tsr_point_clear(&point);
}

TEST(student_is_right)
{
    student_at(1.0, 0.0, 0.0);
}

TEST(student_tempered)
{
    student_at(0.4, 0.0, 0.0);
}

TEST(student_with_prior)
{
    student_at(1.0, 100.0, 0.0);
    student_at(0.4, 100.0, 0.0);
    student_at(0.0, 100.0, 1.3);
}

/* After any number of steps the state is what the profile and theta say. */
TEST(state_is_consistent)
{
    const int models[][2] = {{STUDENT, RELATIVE}, {MEASURED, STUDENT}};
    double c[] = {1.3, 2.0}, b[] = {900.0, 1500.0};
    for (int m = 0; m < 2; m++) {
        problem p;
        chain run;
        gsl_rng *rng = rng_new(11, 0);
        double value[2][TSR_NOISE_PARAMETERS] = {{1.0, 4.0}, {0.15, 0.3}};
        double profile[MAX_Q], sum = 0.0;
        open_problem(&p, 2, models[m]);
        make_data(&p, 21.0, c, b, value, rng);
        open_chain(&run, &p, 4, 1.0, 21.0);
        for (int i = 0; i < 200; i++) {
            step_chain(&run, 1);
            family(&p.likelihood->grid, run.r, profile);
            tsr_likelihood_profile(p.likelihood, 0, profile, NULL, profile);
            sum = 0.0;
            for (int d = 0; d < 2; d++) {
                const tsr_saxs_term *term = saxs_term(p.likelihood, d);
                const tsr_fit *had = run.chain.now.fit[d];
                const double *theta = run.chain.now.theta + term->term.first;
                tsr_pool *pool = new_pool();
                tsr_fit *fit = tsr_term_fit_new(&term->term, pool);
                OK(tsr_saxs_fit(term, profile, theta, fit, &err));
                assert_true(fit->scale == had->scale);
                assert_true(fit->background == had->background);
                assert_true(fit->model_norm == had->model_norm);
                assert_true(fit->log_sigma == had->log_sigma);
                assert_true(fit->chi2 == had->chi2);
                sum += tsr_saxs_log_lik(term, fit, theta);
            }
            assert_true(sum == run.chain.now.log_lik);
        }
    }
}

/* A new structure brings new c and b; that must not cost many acceptances, and
 * none of normal errors, also where the likelihood is tempered and the prior of
 * b, of standard deviation sd (0: flat), is not. */
TEST(proposals_are_good)
{
    static const struct {
        int model;
        double beta, sd, least;
    } of[] = {{MEASURED, 1.0, 0.0, 0.999},
              {STUDENT, 1.0, 0.0, 0.85},
              {MEASURED, 0.05, 100.0, 0.999},
              {STUDENT, 0.05, 100.0, 0.85}};
    double c = 1.3, b = 200.0;
    for (size_t m = 0; m < COUNT_OF(of); m++) {
        problem p;
        chain run;
        gsl_rng *rng = rng_new(10, 0);
        double value[1][TSR_NOISE_PARAMETERS] = {{1.0, 4.0}};
        open_problem(&p, 1, &of[m].model);
        p.set[0].nuisance = TSR_NUISANCE_SAMPLE;
        if (of[m].sd > 0.0)
            p.set[0].background.word = TSR_BACKGROUND_INFER;
        p.set[0].background_sd = (tsr_number_or_word){-1, of[m].sd};
        make_data(&p, 21.0, &c, &b, value, rng);
        open_chain(&run, &p, 4, of[m].beta, 21.0);
        run.step = 1e-6; /* R all but stays */
        for (int i = 0; i < 4000; i++)
            step_chain(&run, i < 1000);
        const double share = (double)run.n_accepted / (double)run.n_step;
        if (share < of[m].least)
            fail_msg("case %zu accepts %.3f of new c and b", m, share);
    }
}

/* ---- calibration ---- */

enum { N_REPEAT = 200, N_DRAW = 14, N_BIN = 5 };

/* Where c and b of the truth come from. Their flat priors have no end; draws
 * beyond these are left out, so that both are flat on the same ranges. b_sd: of
 * a normal prior of b. */
static const double c_range[] = {1.0, 3.0}, b_range[] = {500.0, 2000.0};
static const double b_sd = 300.0, log_s0_sd = 0.3;

static int has_prior(const problem *p, int d)
{
    return p->set[d].background.word == TSR_BACKGROUND_INFER;
}

static int is_possible(const problem *p, const double value[N_QUANTITY])
{
    for (int d = 0; d < p->n_data; d++) {
        const double *v = value + 1 + d * PER_DATA;
        if (v[0] < c_range[0] || v[0] > c_range[1])
            return 0;
        if (!has_prior(p, d) && (v[1] < b_range[0] || v[1] > b_range[1]))
            return 0;
    }
    return 1;
}

static void draw_truth(const problem *p, gsl_rng *rng, double *r, double *c,
                       double *b, double (*value)[TSR_NOISE_PARAMETERS],
                       double truth[N_QUANTITY])
{
    truth[0] = *r = exp(log_r_mean + gsl_ran_gaussian(rng, log_r_width));
    for (int d = 0; d < p->n_data; d++) {
        const tsr_noise_options *noise = &p->set[d].noise;
        const tsr_noise_type *type = tsr_noise_registry[noise->model];
        tsr_parameter parameter[TSR_NOISE_PARAMETERS];
        double *v = truth + 1 + d * PER_DATA, *theta = v + 2;
        c[d] = gsl_ran_flat(rng, c_range[0], c_range[1]);
        b[d] = has_prior(p, d) ? gsl_ran_gaussian(rng, b_sd)
                               : gsl_ran_flat(rng, b_range[0], b_range[1]);
        v[0] = c[d], v[1] = b[d];
        theta[0] = theta[1] = v[LOG_S0] = 0.0;
        if (p->set[d].interparticle.word > 0)
            v[LOG_S0] = gsl_ran_gaussian(rng, log_s0_sd);
        type->parameters(noise, parameter);
        parameters_draw(type->n_parameter, parameter, rng, theta);
        for (int i = 0; i < type->n_parameter; i++)
            value[d][i] = tsr_parameter_value(&parameter[i], theta[i]);
    }
}

static void calibrate(const char *what, int n_data, const int *model,
                      int nuisance, int background, int interparticle)
{
    _Static_assert((N_DRAW + 1) % N_BIN == 0, "bins of one size");
    int count[N_QUANTITY][N_BIN] = {{0}}, n = 1 + n_data * PER_DATA, bad = 0;
    for (int repeat = 0; repeat < N_REPEAT; repeat++) {
        problem p;
        chain run;
        double r, c[MAX_DATA], b[MAX_DATA], log_s0[MAX_DATA];
        double truth[N_QUANTITY];
        double value[MAX_DATA][TSR_NOISE_PARAMETERS] = {{0}};
        int rank[N_QUANTITY] = {0};
        gsl_rng *rng = rng_new(70, (uint64_t)repeat);
        open_problem(&p, n_data, model);
        for (int d = 0; d < n_data; d++)
            p.set[d] = (tsr_data_set){.saxs = &p.saxs[d],
                                      .noise = p.set[d].noise,
                                      .nuisance = nuisance,
                                      .background = {background, 0.0},
                                      .background_sd = {-1, b_sd},
                                      .interparticle = {interparticle, 0.0},
                                      .interparticle_width = log_s0_sd};
        draw_truth(&p, rng, &r, c, b, value, truth);
        for (int d = 0; d < n_data; d++)
            log_s0[d] = truth[1 + d * PER_DATA + LOG_S0];
        make_data_at(&p, r, c, b, value, log_s0, rng);
        open_chain(&run, &p, 700 + (uint64_t)repeat, 1.0, r);
        for (int i = 0; i < 300; i++)
            step_chain(&run, 1);
        for (int i = 0; i < N_DRAW; i++) {
            double draw[N_QUANTITY];
            do {
                for (int j = 0; j < 24; j++)
                    step_chain(&run, 0);
                look(&run, draw);
            } while (!is_possible(&p, draw));
            for (int v = 0; v < n; v++)
                rank[v] += draw[v] < truth[v];
        }
        for (int v = 0; v < n; v++)
            count[v][rank[v] * N_BIN / (N_DRAW + 1)]++;
    }
    for (int v = 0; v < n; v++) {
        double chi2 = 0.0, each = (double)N_REPEAT / N_BIN;
        int data = v > 0 ? (v - 1) / PER_DATA : 0, i = (v - 1) % PER_DATA - 2;
        const int is_noise = v > 0 && i >= 0 && i + 2 != LOG_S0;
        if (is_noise && i >= tsr_noise_registry[model[data]]->n_parameter)
            continue;
        if (v > 0 && i + 2 == LOG_S0 && !interparticle)
            continue;
        for (int k = 0; k < N_BIN; k++)
            chi2 += pow(count[v][k] - each, 2.0) / each;
        double prob = gsl_cdf_chisq_Q(chi2, N_BIN - 1);
        print_message("  %s %d:", what, v);
        for (int k = 0; k < N_BIN; k++)
            print_message(" %3d", count[v][k]);
        print_message("  p = %.3g\n", prob);
        bad += prob < 1e-3;
    }
    if (bad > 0)
        fail_msg("%s: %d quantities are not calibrated", what, bad);
}

TEST(ranks_are_even)
{
    const int measured[] = {MEASURED, RELATIVE}, student[] = {STUDENT};
    const int relative[] = {RELATIVE}, both[] = {MEASURED, MEASURED};
    calibrate("relative, sampled", 1, relative, TSR_NUISANCE_SAMPLE,
              TSR_BACKGROUND_FLAT, 0);
    calibrate("student", 1, student, TSR_NUISANCE_AUTO, TSR_BACKGROUND_FLAT, 0);
    calibrate("measured and relative", 2, measured, TSR_NUISANCE_AUTO,
              TSR_BACKGROUND_FLAT, 0);
    calibrate("measured, prior of b", 1, measured, TSR_NUISANCE_AUTO,
              TSR_BACKGROUND_INFER, 0);
    calibrate("student, prior of b", 1, student, TSR_NUISANCE_AUTO,
              TSR_BACKGROUND_INFER, 0);
    calibrate("measured, S(0)", 2, both, TSR_NUISANCE_AUTO,
              TSR_BACKGROUND_INFER, 1);
    calibrate("student, S(0)", 1, student, TSR_NUISANCE_AUTO,
              TSR_BACKGROUND_INFER, 1);
}

/* Chains that go by a surrogate, for tests: walks, or stretches drawn anew;
 * what beads summed one by one say of a structure; and means over such a chain
 * beside those of weighted draws of the prior. */
#ifndef TESTS_PROPERTY_WALKING_H
#define TESTS_PROPERTY_WALKING_H

#include "sampler/chain.h"
#include "surrogate/surrogate.h"
#include "tests/chain_step.h"
#include "tests/property/posterior_sample.h"
#include "tests/property/prior_sampler.h"
#include "tests/weighted.h"

static const tsr_prior_options soft = {
    .clash = TSR_CLASH_SOFT, .softness = 0.5, .clash_limit = 10.0};

typedef struct {
    posterior_sample s;
    tsr_surrogate *surrogate;
    int kind; /* TSR_MOVE_surrogate or TSR_MOVE_redraw */
} walking;

/* Of a walk, at most. */
static inline void set_steps(posterior_sample *s, long steps)
{
    const tsr_number_or_word number = {-1, (double)steps};
    memcpy(s->option[TSR_MOVE_surrogate] +
               offsetof(tsr_surrogate_options, steps),
           &number, sizeof number);
}

/* Torsions that walks turn belong to them alone, nearly; angles and side chains
 * have a move of their own. */
static inline void open_kind(walking *w, int kind, const char *sequence,
                             const tsr_strings *flexible, int with_water,
                             double e, int n_state)
{
    const double weight[] = {0.6, 0.4}, one = 1.0, at[] = {1.0, 1.8};
    gsl_rng *rng = rng_new(12, 0);
    posterior_sample *s = &w->s;
    w->kind = kind;
    posterior_open(s, sequence, flexible, soft);
    const tsr_conformation *const data[] = {s->extended, s->extended};
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const char *name = tsr_move_registry[m]->name;
        posterior_set(s, m, "weight",
                      strcmp(name, "surrogate") == 0    ? 2.0
                      : strcmp(name, "redraw") == 0     ? 400.0 /* of time */
                      : strcmp(name, "crankshaft") == 0 ? 0.5
                      : strcmp(name, "side_chain") == 0 ? 0.5
                      : strcmp(name, "pivot") == 0      ? 0.6
                                                        : 0.0);
    }
    set_steps(s, 12);
    if (with_water) {
        tsr_contrast_options o = posterior_infer_contrast();
        o.c1 = (tsr_number_or_word){-1, 1.0};
        o.c2_mean = 0.8, o.c2_width = 0.3; /* the prior shows */
        posterior_contrast(s, &o);
        s->contrast[TSR_C2].skip_fraction = 1.0; /* walks alone move it */
    }
    s->target.n_state = n_state;
    posterior_data_at(s, n_state, data, n_state > 1 ? weight : &one,
                      with_water ? at : NULL, e, 1.5, 0.0, 0.0, rng);
    posterior_start(s, 0.0, 1, 0);
    posterior_open_device(s);
    MAKE(tsr_surrogate, w->surrogate, tsr_surrogate_new, s->t, s->prior,
         &s->table, s->likelihood, s->extended);
    assert_non_null(w->surrogate);
    const tsr_surrogate_spec *spec = tsr_surrogate_spec_of(w->surrogate);
    tsr_surrogate_engine *launcher = NULL;
    if (kind == TSR_MOVE_redraw)
        launcher = tsr_redraw_engine_new(spec);
    else
        OK(tsr_surrogate_device_new(s->device, spec, &launcher, &err));
    assert_non_null(launcher);
    own(launcher, tsr_move_registry[kind]->launch->launcher_free);
    launcher->surrogate = w->surrogate;
    launcher->is_on_gpu = 1;
    s->share.launcher[kind] = launcher;
}

static inline void open_walking(walking *w, const char *sequence,
                                const tsr_strings *flexible, int with_water,
                                double e, int n_state)
{
    open_kind(w, TSR_MOVE_surrogate, sequence, flexible, with_water, e,
              n_state);
}

typedef struct {
    tsr_batch *batch;
    tsr_chain *chain;
    tsr_surrogate_walker *walker;
    double *profile;
    int kind;
    long step;
} walking_chain;

static inline tsr_surrogate_walker *new_walker(const walking *w, int n_job)
{
    const tsr_move_launch *launch = tsr_move_registry[w->kind]->launch;
    void *walker = NULL;
    OK(launch->workspace_new(w->s.share.launcher[w->kind], n_job, &walker,
                             &err));
    own(walker, launch->workspace_free);
    return walker;
}

static inline walking_chain start_chain(const walking *w, double beta)
{
    const posterior_sample *s = &w->s;
    walking_chain c = {.kind = w->kind};
    c.profile = array((size_t)tsr_likelihood_n_profile(s->likelihood),
                      sizeof *c.profile);
    MAKE(tsr_batch, c.batch, tsr_batch_new, s->share.engine, 1);
    c.chain = new_chain(&s->target, 0, c.batch);
    tsr_chain_set_beta(c.chain, beta);
    c.walker = new_walker(w, 1);
    return c;
}

static inline void run_jobs(int kind, tsr_surrogate_walker *walker, int n_job)
{
    const tsr_move_launch *launch = tsr_move_registry[kind]->launch;
    OK(launch->start(walker, n_job, &err));
    if (launch->wait != NULL)
        OK(launch->wait(walker, &err));
}

static inline void begin_walks(const walking_chain *c)
{
    OK(tsr_chain_launch_begin(c->chain, c->kind, c->walker, 0, &err));
}

/* As a worker does it. */
static inline void walking_step(walking_chain *c, int warm)
{
    tsr_body_proposal ask;
    int accepted, needed;
    if (tsr_chain_launch_at(c->chain, c->step++) < 0) {
        chain_step(c->chain, c->batch, c->profile, warm);
        return;
    }
    begin_walks(c);
    run_jobs(c->kind, c->walker, 1);
    OK(tsr_chain_launch_end(c->chain, c->kind, c->walker, 0, &ask, &needed,
                            &err));
    if (needed) {
        OK(tsr_batch_submit(c->batch, 1, &ask, &err));
        OK(tsr_batch_wait(c->batch, c->profile, &err));
    }
    OK(tsr_chain_decide(c->chain, needed ? c->profile : NULL, warm, &accepted,
                        &err));
    if (needed && accepted)
        tsr_batch_accept(c->batch, tsr_chain_system(c->chain));
    else if (needed)
        tsr_batch_reject(c->batch, tsr_chain_system(c->chain));
}

/* ---- what the device says of a structure ---- */

static inline double sinc(double x)
{
    return fabs(x) < 1e-6 ? 1.0 : sin(x) / x;
}

static inline double by_powers(const float *a, int n_q, int q, double c2)
{
    return (double)a[q] +
           c2 * ((double)a[n_q + q] + c2 * (double)a[2 * n_q + q]);
}

/* The bare profile of beads, pair by pair, from the numbers of a job. */
static inline void sum_beads(const tsr_surrogate_spec *p,
                             const tsr_surrogate_layout *at, const float *job,
                             const tsr_conformation *c, double dq, double c2,
                             double *profile)
{
    const float *shape = job + at->shape;
    for (int q = 0; q < p->n_q; q++)
        profile[q] = by_powers(job + at->constant, p->n_q, q, c2);
    for (int k = 0; k < p->n_pair; k++) {
        double x[2][3], amount[2][2];
        for (int i = 0; i < 2; i++) {
            const int b = p->pair[k][i];
            const float *own = job + at->amount + 4 * b;
            tsr_bead_centre(&(tsr_bead){p->bead[b][2], p->bead[b][3], 0},
                            (const double(*)[3])c->body, x[i]);
            for (int m = 0; m < 2; m++)
                amount[i][m] = (double)own[m] + c2 * (double)own[2 + m];
        }
        const double r = tsr_vec3_distance(x[0], x[1]);
        const double by[3] = {amount[0][0] * amount[1][0],
                              amount[0][0] * amount[1][1] +
                                  amount[0][1] * amount[1][0],
                              amount[0][1] * amount[1][1]};
        for (int q = 0; q < p->n_q; q++)
            for (int m = 0; m < TSR_SURROGATE_PRODUCTS; m++)
                profile[q] += by[m] * (double)shape[m / 2 * p->n_q + q] *
                              (double)shape[(m + 1) / 2 * p->n_q + q] *
                              sinc(q * dq * r);
    }
}

/* log likelihood of a profile by a job's rows. */
static inline double weigh(const tsr_surrogate_spec *p,
                           const tsr_surrogate_layout *at, const float *job,
                           const double *profile, double c2)
{
    double sum = 0.0;
    for (int d = 0; d < p->n_curve; d++) {
        const float *rows = job + at->curve + d * at->curve_size;
        const float *target = rows + p->n_q * at->n_row;
        double mm = 0.0, tm = 0.0, tt = 0.0;
        for (int i = 0; i < at->n_row; i++) {
            double m = 0.0;
            for (int q = 0; q < p->n_q; q++)
                m += (double)rows[q * at->n_row + i] * profile[q] *
                     by_powers(job + at->numerator, p->n_q, q, c2) /
                     by_powers(job + at->denominator, p->n_q, q, c2);
            mm += m * m, tm += m * (double)target[i];
            tt += (double)target[i] * (double)target[i];
        }
        sum -= 0.5 * (tt - tm * tm / mm);
    }
    return sum;
}

/* Two rigid parts, a tail and a linker. */
static const char two_parts[] = "GASFPLGKEWRTVAGSDKLFPAGEWK";
static const tsr_strings loose = {2, (char *[]){"A:1-3", "A:12-15"}};

/* log density of the torsions that walk. */
static inline double torsion_density(const posterior_sample *s,
                                     const tsr_conformation *x)
{
    double sum = 0.0;
    for (int i = 0; i < s->t->n_residue; i++)
        if (s->t->residue[i].flexible && s->t->residue[i].has_phi &&
            s->t->residue[i].has_psi)
            sum += tsr_prior_torsion_log_of(s->prior, x, i);
    return sum;
}

/* log density of excluded volume. */
static inline double overlaps(const posterior_sample *s,
                              const tsr_conformation *x)
{
    double term[TSR_N_TERM];
    tsr_prior_state *state = tsr_prior_state_new(s->prior, x);
    tsr_prior_state_terms(state, term);
    tsr_prior_state_free(state);
    return term[TSR_TERM_CLASH];
}

/* log g by the prior's own functions, beads in double precision, and c2's
 * prior. */
static inline double reference(const walking *w, const walking_chain *c,
                               const tsr_conformation *x, double c2,
                               double beta)
{
    const tsr_surrogate_spec *p = tsr_surrogate_spec_of(w->surrogate);
    const tsr_surrogate_layout *at = &c->walker->layout;
    const float *job = c->walker->call.job;
    const posterior_sample *s = &w->s;
    double *profile = array((size_t)p->n_q, sizeof *profile);
    double sum = torsion_density(s, x) + overlaps(s, x);
    sum_beads(p, at, job, x, s->likelihood->grid.dq_inv_ang, c2, profile);
    sum += beta * weigh(p, at, job, profile, c2);
    if (p->has_c2)
        sum -= 0.5 * pow((c2 - (double)job[2]) / (double)job[3], 2.0);
    return sum;
}

/* The same job with several keys, alone and with the others, must have the same
 * bits. Returns how many keys gave another result than the first. */
enum { N_LAUNCHED = 5 };
static inline int compare_launches(const walking *w)
{
    const tsr_surrogate_spec *p = tsr_surrogate_spec_of(w->surrogate);
    const size_t size = (size_t)tsr_surrogate_result_size(p);
    walking_chain c = start_chain(w, 1.0);
    int n_other = 0;
    tsr_surrogate_walker *many = new_walker(w, N_LAUNCHED);
    begin_walks(&c);
    const size_t job = (size_t)c.walker->layout.size;
    for (size_t i = 0; i < N_LAUNCHED; i++) {
        memcpy(many->call.job + i * job, c.walker->call.job,
               job * sizeof(float));
        memcpy(many->call.point + i * (size_t)p->n_point, c.walker->call.point,
               (size_t)p->n_point * sizeof *many->call.point);
        many->call.key[i][0] = (uint32_t)i, many->call.key[i][1] = 7;
    }
    run_jobs(c.kind, many, N_LAUNCHED);
    for (size_t i = 0; i < N_LAUNCHED; i++) {
        c.walker->call.key[0][0] = (uint32_t)i, c.walker->call.key[0][1] = 7;
        run_jobs(c.kind, c.walker, 1);
        assert_memory_equal(c.walker->call.result, many->call.result + i * size,
                            size * sizeof(float));
        n_other += memcmp(many->call.result, many->call.result + i * size,
                          size * sizeof(float)) != 0;
    }
    return n_other;
}

enum { BY_C2, BY_RG, BY_LOG_LIK, BY_TORSIONS, BY_OVERLAPS, N_BY };
static const char *const by_name[N_BY] = {
    "c2", "Rg", "log likelihood", "log density of torsions", "overlaps"};

static inline void draw_weighted(const posterior_sample *s, double beta, int n,
                                 double (*value)[N_BY], double *log_w)
{
    const tsr_prediction nothing = {.n_state = 0};
    const tsr_parameter *p = &s->contrast[TSR_C2];
    double *partial =
        array((size_t)tsr_likelihood_n_profile(s->likelihood), sizeof *partial);
    prior_sampler prior = prior_of(s);
    gsl_rng *rng = rng_new(8, 1);
    tsr_conformation *c = new_conformation(s->t);
    tsr_point point;
    saxs_point(s->likelihood, &point);
    NEW(tsr_batch, batch, tsr_batch_new, s->share.engine, 1);
    for (int i = 0; i < n; i++) {
        double contrast[TSR_N_CONTRAST] = {s->contrast[TSR_C1].start, -1.0};
        while (contrast[TSR_C2] < p->low || contrast[TSR_C2] > p->high)
            contrast[TSR_C2] = p->mean + gsl_ran_gaussian(rng, p->width);
        sample_prior(&prior, rng, c);
        OK(tsr_batch_set(batch, 0, (const double(*)[3])c->body, partial, &err));
        OK(tsr_likelihood_evaluate(s->likelihood, partial, contrast, nothing,
                                   beta, rng, NULL, &point, &err));
        value[i][BY_C2] = contrast[TSR_C2];
        value[i][BY_RG] = tsr_conformation_rg(s->t, c, NULL);
        value[i][BY_LOG_LIK] = point.log_lik;
        value[i][BY_TORSIONS] = torsion_density(s, c);
        value[i][BY_OVERLAPS] = overlaps(s, c);
        log_w[i] = beta * point.log_lik;
    }
    tsr_point_clear(&point);
}

static inline void by_weights(const posterior_sample *s, double beta, int n,
                              double mean[N_BY], double error[N_BY])
{
    double(*value)[N_BY] = array((size_t)n, sizeof *value);
    double *w = array((size_t)n, sizeof *w);
    draw_weighted(s, beta, n, value, w);
    const double worth =
        weighted_means(n, N_BY, value[0], w, mean, error, NULL);
    print_message("  %d draws of the prior are worth %.0f\n", n, worth);
    assert_true(worth > 300.0);
}

/* Means of N_BLOCK blocks of a chain. */
static inline void by_chain(const walking *w, double beta, int block,
                            double mean[N_BY], double error[N_BY])
{
    enum { N_BLOCK = 16 };
    double had[N_BLOCK][N_BY] = {{0.0}};
    walking_chain c = start_chain(w, beta);
    for (int i = 0; i < 300; i++)
        walking_step(&c, 1);
    tsr_chain_counts_reset(c.chain);
    for (int b = 0; b < N_BLOCK; b++)
        for (int i = 0; i < block; i++) {
            tsr_chain_view view;
            walking_step(&c, 0);
            tsr_chain_view_get(c.chain, &view);
            had[b][BY_C2] += posterior_contrast_of(&view)[TSR_C2] / block;
            had[b][BY_RG] += view.rg_ang / block;
            had[b][BY_LOG_LIK] += view.log_lik / block;
            had[b][BY_TORSIONS] +=
                torsion_density(&w->s, c.chain->state[0].current) / block;
            had[b][BY_OVERLAPS] +=
                overlaps(&w->s, c.chain->state[0].current) / block;
        }
    for (int k = 0; k < N_BY; k++) {
        mean[k] = error[k] = 0.0;
        for (int b = 0; b < N_BLOCK; b++)
            mean[k] += had[b][k] / N_BLOCK;
        for (int b = 0; b < N_BLOCK; b++)
            error[k] += pow(had[b][k] - mean[k], 2.0);
        error[k] = sqrt(error[k] / (N_BLOCK * (N_BLOCK - 1.0)));
    }
    const tsr_chain_counts *counts = tsr_chain_counts_get(c.chain);
    const double accepted =
        (double)counts->accepted[w->kind] / (double)counts->proposed[w->kind];
    print_message("  %.0f %% of %ss accepted\n", 100.0 * accepted,
                  w->kind == TSR_MOVE_redraw ? "redraw" : "walk");
    assert_true(accepted > 0.3);
}

static inline void compare(const walking *w, double beta, int n_weighted,
                           int block)
{
    double weighted[N_BY], its_error[N_BY], mean[N_BY], error[N_BY];
    by_weights(&w->s, beta, n_weighted, weighted, its_error);
    by_chain(w, beta, block, mean, error);
    assert_true(error[BY_C2] < 0.05); /* its prior holds it */
    for (int k = 0; k < N_BY; k++) {
        const double total = hypot(error[k], its_error[k]);
        print_message("  beta %g, %s %.4f +- %.4f, weighted %.4f +- %.4f\n",
                      beta, by_name[k], mean[k], error[k], weighted[k],
                      its_error[k]);
        if (!(fabs(mean[k] - weighted[k]) <= 4.0 * total))
            fail_msg("mean %s", by_name[k]);
    }
}

#endif

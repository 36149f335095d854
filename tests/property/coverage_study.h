/* What slow_coverage.c is about: truths, the curves of their atoms and data of
 * them, likelihoods, and the draws of the prior with their curves. */
#ifndef TESTS_COVERAGE_STUDY_H
#define TESTS_COVERAGE_STUDY_H

#include "posterior/setup.h"

#include "core/clock.h"
#include "core/random.h"
#include "posterior/all_atoms.h"
#include "sampler/chain.h"
#include "tests/objects.h"
#include "tests/saxs_likelihood.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    N_OBSERVABLE = 3,
    N_ERROR = 3,
    MOST_THREAD = 64,
    BATCH = 32,
    EVERY = 50,
    SOME = 20,
    DEPTH = 60
};

static const char *const observable_name[N_OBSERVABLE] = {"Rg", "D_max",
                                                          "domains"};
static const double error_at[N_ERROR] = {0.02, 0.01, 0.005};

typedef struct {
    tsr_config config;
    tsr_setup s;
    tsr_target prior; /* without data */
    tsr_saxs saxs;    /* the q of the configuration's data */
    double *matrix;
    int n_truth, n_thread, next, next_truth, n_profile;
    double begin_s, limit_s;
    int n_particle;
    long n_stage, n_step;
    long n_draw, thin; /* draws of the prior, steps from one to the next */
    int is_own;        /* 1: data are of the model itself */
    double c2;         /* NaN: from its prior */
    tsr_conformation **truth;      /* [n_truth] */
    double *atoms;                 /* [n_truth][n_q] their curves on the grid */
    double *below, *mean, *square; /* [N_ERROR][n_truth][N_OBSERVABLE] over the
                                      draws: less than the truth; of the value
                                      less the truth */
    double *effective;        /* [N_ERROR][n_truth] draws of the prior: by their
                                 weights, or that particles descend from */
    tsr_conformation **drawn; /* [n_draw] */
    float *value;             /* [n_draw][N_OBSERVABLE] */
    double *rg;               /* [n_draw] */
    float *partial;           /* [n_draw][n_profile] */
    pthread_mutex_t lock;
} study;

/* ---- conformations ---- */

typedef struct {
    study *x;
    int first, n;
    int stream;
} walker;

/* n steps of the prior; where it is then. */
static const tsr_conformation *walk_prior(tsr_chain *chain, long n, int is_warm)
{
    tsr_chain_view view;
    for (long k = 0; k < n; k++) {
        tsr_body_proposal ask;
        int accepted;
        tsr_chain_propose(chain, &ask);
        OK(tsr_chain_decide(chain, NULL, is_warm, &accepted, &err));
    }
    tsr_chain_view_get(chain, &view);
    return view.conformation;
}

/* A chain of the prior, warmed up. */
static tsr_chain *prior_chain(study *x, int stream)
{
    const tsr_topology *t = x->s.molecule.topology;
    const long burn = 1000 + 30 * (t->n_torsion + t->n_side);
    tsr_chain *chain;
    OK(tsr_chain_new(&x->prior, stream, &chain, &err));
    walk_prior(chain, burn / 2, 1);
    walk_prior(chain, burn / 2, 0);
    return chain;
}

static void *walk(void *context)
{
    const walker *w = context;
    const tsr_topology *t = w->x->s.molecule.topology;
    tsr_chain *chain = prior_chain(w->x, w->stream);
    for (int i = w->first; i < w->first + w->n; i++) {
        w->x->truth[i] = tsr_conformation_new(t);
        tsr_conformation_copy(t, w->x->truth[i], walk_prior(chain, 2000, 0), 0,
                              t->n_residue);
    }
    tsr_chain_free(chain);
    return NULL;
}

static void draw_truths(study *x)
{
    pthread_t thread[MOST_THREAD];
    walker w[MOST_THREAD];
    for (int i = 0; i < x->n_thread; i++) {
        const int from = x->n_truth * i / x->n_thread;
        const int to = x->n_truth * (i + 1) / x->n_thread;
        w[i] = (walker){x, from, to - from, 0x7d000000 + i};
        pthread_create(&thread[i], NULL, walk, &w[i]);
    }
    for (int i = 0; i < x->n_thread; i++)
        pthread_join(thread[i], NULL);
}

/* Centres of the two largest rigid parts, from each other. */
static double domains(const tsr_topology *t, const tsr_conformation *c)
{
    int count[512] = {0}, best[2] = {-1, -1};
    double centre[2][3] = {{0.0}};
    for (int r = 0; r < t->n_residue; r++)
        if (t->residue[r].unit >= 0 && t->residue[r].unit < 512)
            count[t->residue[r].unit]++;
    for (int u = 0; u < 512; u++) {
        if (best[0] < 0 || count[u] > count[best[0]]) {
            best[1] = best[0];
            best[0] = u;
        } else if (best[1] < 0 || count[u] > count[best[1]]) {
            best[1] = u;
        }
    }
    for (int r = 0; r < t->n_residue; r++)
        for (int k = 0; k < 2; k++)
            for (int d = 0; d < 3 && t->residue[r].unit == best[k]; d++)
                centre[k][d] += c->backbone[r][TSR_CA][d] / count[best[k]];
    return tsr_vec3_distance(centre[0], centre[1]);
}

static void observe(const study *x, const tsr_conformation *c,
                    double value[N_OBSERVABLE])
{
    const tsr_topology *t = x->s.molecule.topology;
    value[0] = tsr_conformation_rg(t, c, x->s.molecule.form_factors->rg2);
    value[1] = tsr_largest_distance(t->n_body, (const double(*)[3])c->body);
    value[2] = domains(t, c);
}

/* ---- curves ---- */

static double c2_quantile(const study *x, double u)
{
    const tsr_parameter *p = &x->s.tables.contrast[TSR_C2];
    const double low = gsl_cdf_ugaussian_P((p->low - p->mean) / p->width);
    const double high = gsl_cdf_ugaussian_P((p->high - p->mean) / p->width);
    return p->mean + p->width * gsl_cdf_ugaussian_Pinv(low + u * (high - low));
}

static int take_next(study *x, int n)
{
    pthread_mutex_lock(&x->lock);
    const int i = x->next < n ? x->next++ : -1;
    pthread_mutex_unlock(&x->lock);
    return i;
}

/* What the likelihood takes to be the truth: the corrected curve of the bodies,
 * times an error that it knows of. */
static void own_curve(const study *x, const tsr_conformation *c, int truth,
                      double c2, double *partial, double *curve)
{
    const tsr_likelihood *l = x->s.data.likelihood;
    const tsr_profile_error *error = &l->view->error;
    const double contrast[TSR_N_CONTRAST] = {x->s.tables.contrast[TSR_C1].start,
                                             c2};
    const size_t n_q = (size_t)l->grid.n_q;
    gsl_rng *rng = rng_new(79, (uint64_t)truth);
    OK(tsr_likelihood_direct(l, x->s.molecule.topology->n_body, c, NULL,
                             partial, &err));
    tsr_likelihood_profile(l, 0, partial, contrast, curve);
    for (int e = 0; e < error->n; e++) {
        const double a = gsl_ran_gaussian(rng, 1.0);
        for (size_t k = 0; k < n_q; k++)
            partial[k] =
                (e > 0 ? partial[k] : 0.0) +
                a * error->curve[(size_t)e * n_q + k] / error->reference[k];
    }
    for (size_t k = 0; k < n_q && error->n > 0; k++)
        curve[k] *= 1.0 + partial[k];
}

static void *compute_truths(void *context)
{
    study *x = context;
    const tsr_likelihood *l = x->s.data.likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    tsr_atom_curves *curves;
    double *six = array(TSR_N_COMP_PAIR * n_q, sizeof *six), radius;
    OK(tsr_atom_curves_new(&x->s.molecule, &l->grid, NULL, NULL, &curves,
                           &err));
    for (int t; (t = take_next(x, x->n_truth)) >= 0;) {
        const tsr_conformation *c = x->truth[t];
        const double c2 =
            isnan(x->c2) ? c2_quantile(x, (t + 0.5) / x->n_truth) : x->c2;
        if (x->is_own) {
            own_curve(x, c, t, c2, six, x->atoms + (size_t)t * n_q);
            continue;
        }
        OK(tsr_atom_curves_partial(curves, c, NULL, 0.0, six, &radius, &err));
        for (size_t k = 0; k < n_q; k++)
            x->atoms[(size_t)t * n_q + k] =
                tsr_component_intensity(six + k, n_q, 1.0, c2);
    }
    tsr_atom_curves_free(curves);
    return NULL;
}

static void in_threads(study *x, void *(*work)(void *))
{
    pthread_t thread[MOST_THREAD];
    x->next = 0;
    for (int i = 0; i < x->n_thread; i++)
        pthread_create(&thread[i], NULL, work, x);
    for (int i = 0; i < x->n_thread; i++)
        pthread_join(thread[i], NULL);
}

/* ---- posteriors ---- */

/* As `tessera simulate`: sigma of Sedlak, Bruetzel & Lipfert 2017. */
static void make_data(const study *x, int t, double error, tsr_saxs *saxs)
{
    const double c = 0.85;
    const int n = x->saxs.n, n_q = x->s.data.likelihood->grid.n_q;
    const double *truth = x->atoms + (size_t)t * (size_t)n_q;
    double at_01 = 0.0, at_02 = 0.0;
    gsl_rng *rng = rng_new(77, (uint64_t)t);
    for (int k = 0; k < n; k++) {
        double sum = 0.0;
        for (int j = 0; j < n_q; j++)
            sum += x->matrix[k * n_q + j] * truth[j];
        saxs->intensity[k] = sum;
        at_01 = at_01 == 0.0 && saxs->q[k] >= 0.1 ? sum : at_01;
        at_02 = at_02 == 0.0 && saxs->q[k] >= 0.2 ? sum : at_02;
    }
    const double offset = 2.0 * c * at_02 / (1.0 - c);
    const double scale = (at_01 + offset) / (0.1 * pow(error * at_01, 2.0));
    for (int k = 0; k < n; k++) {
        saxs->sigma[k] =
            sqrt((saxs->intensity[k] + offset) / (scale * saxs->q[k]));
        saxs->intensity[k] += gsl_ran_gaussian(rng, saxs->sigma[k]);
    }
}

/* A likelihood of these data alone; all else is the run's. */
static tsr_likelihood likelihood_of(const study *x, const tsr_saxs *saxs,
                                    tsr_term **term)
{
    tsr_likelihood l = *x->s.data.likelihood;
    const size_t n = (size_t)saxs->n * (size_t)l.grid.n_q;
    const tsr_data_set set = {.saxs = saxs,
                              .noise = noise_of("measured"),
                              .background = {0, 0.0},
                              .intensity_scale = {0, 0.0}};
    double *matrix = malloc(n * sizeof *matrix);
    memcpy(matrix, x->matrix, n * sizeof *matrix);
    OK(tsr_saxs_term_new(&set, 0, term, &err));
    OK(tsr_saxs_term_prepare((tsr_saxs_term *)*term, l.grid.n_q, matrix, &err));
    if (l.view->error.n > 0)
        OK(tsr_saxs_set_model_error(*term, &l.view->error, &err));
    l.term = term;
    l.n_term = 1;
    l.n_parameter = (*term)->n_parameter;
    return l;
}

/* ---- the draws of the prior that all posteriors are made of ---- */

/* A chain of the prior; every `thin` steps its bodies wait in `place` until
 * there are BATCH of them, whose curves the engine is then asked for. */
typedef struct {
    study *x;
    tsr_chain *chain;
    tsr_batch *batch;
    int first_system;
    long at;
    double (*place)[3]; /* [BATCH][places of an engine's system] */
    double *profile;    /* [BATCH][n_profile] */
} supplier;

static void put_place(const study *x, const tsr_conformation *c,
                      double (*place)[3])
{
    memcpy(place, c->body,
           (size_t)x->s.molecule.topology->n_body * sizeof *place);
}

static void supplier_open(study *x, int i, supplier *u)
{
    *u = (supplier){.x = x, .first_system = i * BATCH};
    u->place =
        array(BATCH * (size_t)x->s.molecule.topology->n_body, sizeof *u->place);
    put_place(x, x->s.molecule.first, u->place);
    u->profile = array(BATCH * (size_t)x->n_profile, sizeof *u->profile);
    u->chain = prior_chain(x, 0x7c000000 + i);
    MAKE(tsr_batch, u->batch, tsr_batch_new, x->s.devices.group[0].engine,
         BATCH);
    for (int k = 0; k < BATCH; k++)
        OK(tsr_batch_set(u->batch, u->first_system + k,
                         (const double(*)[3])u->place, NULL, &err));
}

/* Curves and observables of the next n draws, n at most BATCH. */
static void supply(supplier *u, int n)
{
    study *x = u->x;
    const int n_own = x->s.molecule.topology->n_body;
    tsr_body_range range[BATCH];
    tsr_body_proposal ask[BATCH];
    for (int k = 0; k < n; k++) {
        double(*place)[3] = u->place + (size_t)k * (size_t)n_own;
        const tsr_conformation *c = walk_prior(u->chain, x->thin, 0);
        put_place(x, c, place);
        if (x->n_particle > 0) {
            x->drawn[u->at + k] = new_conformation(x->s.molecule.topology);
            tsr_conformation_copy(x->s.molecule.topology, x->drawn[u->at + k],
                                  c, 0, x->s.molecule.topology->n_residue);
        }
        double value[N_OBSERVABLE];
        observe(x, c, value);
        for (int o = 0; o < N_OBSERVABLE; o++)
            x->value[(u->at + k) * N_OBSERVABLE + o] = (float)value[o];
        x->rg[u->at + k] = tsr_conformation_rg(x->s.molecule.topology, c,
                                               x->s.molecule.form_factors->rg2);
        range[k] = (tsr_body_range){0, n_own, 0, (const double(*)[3])place};
        ask[k] = (tsr_body_proposal){u->first_system + k, 1, &range[k]};
    }
    OK(tsr_batch_submit(u->batch, n, ask, &err));
    OK(tsr_batch_wait(u->batch, u->profile, &err));
    for (int k = 0; k < n; k++)
        tsr_batch_reject(u->batch, u->first_system + k);
    for (size_t k = 0; k < (size_t)n * (size_t)x->n_profile; k++)
        x->partial[(size_t)u->at * (size_t)x->n_profile + k] =
            (float)u->profile[k];
    u->at += n;
}

static void *draw_prior(void *context)
{
    study *x = context;
    const int i = take_next(x, x->n_thread);
    const long to = x->n_draw * (i + 1) / x->n_thread;
    supplier u;
    supplier_open(x, i, &u);
    u.at = x->n_draw * i / x->n_thread;
    while (u.at < to)
        supply(&u, (int)(to - u.at < BATCH ? to - u.at : BATCH));
    return NULL;
}

#endif

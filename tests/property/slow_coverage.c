/* Do 90 % intervals hold the truth nine times in ten, when data come from
 * atoms?
 *
 * Truths are conformations drawn from the prior; their curves are those of all
 * atoms, with the conformation's own surface. The posterior is that of a run,
 * with c2 and the scale of the noise inferred. Chains would need hours for
 * hundreds of them, since each has to find its conformations anew. So many
 * draws of the prior get their curves once, for all truths. For each truth a
 * crowd of particles is drawn from these, at the temperature where enough of
 * them have weight, and goes on to temperature 1 as a sequential Monte Carlo
 * sampler does (Del Moral, Doucet & Jasra 2006): weighted and drawn anew where
 * half of the weight is left, then moved by steps of the run's chains. The
 * crowd of a small error begins with that of the next larger one. No particle
 * knows of the truth. docs/statistics.md has the table.
 *
 *     slow_coverage CONFIG LEARN TRUTHS DRAWS PARTICLES STEPS C2 [DEVICE
 *         [SECONDS]]
 *
 * CONFIG: a file, or three: domains 1 to 3 of a longer construct of LAR.
 * LEARN: all, ratio, none; own: all, but data are of the bodies with an error
 * of the kind that the likelihood takes them to have, where nine in ten is what
 * has to come out. STEPS: of each particle at temperature 1, and a
 * fifth of them between two temperatures. PARTICLES 0: the draws of the prior
 * are weighted at temperature 1 and that is all, with s = 1, which serves for
 * large errors; then each truth is told of on the error output: error, number,
 * effective draws, the shares of them below the truth. C2: a number, or prior.
 * After SECONDS no truth is begun. Without arguments: a few, with bounds. */
#include "run/setup.h"

#include "core/clock.h"
#include "core/random.h"
#include "run/atom_curves.h"
#include "sampler/chain.h"
#include "tests/saxs_likelihood.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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
    double *effective; /* [N_ERROR][n_truth] draws, where none is moved */
    int *lines;        /* [N_ERROR][n_truth] draws of the prior that are left */
    tsr_conformation **drawn; /* [n_draw] */
    float *value;             /* [n_draw][N_OBSERVABLE] */
    double *rg;               /* [n_draw] */
    float *partial;           /* [n_draw][n_profile] */
    pthread_mutex_t lock;
} study;

static void must(tsr_status status, const tsr_err *err)
{
    if (status != TSR_OK) {
        fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

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
    tsr_err err = {0};
    for (long k = 0; k < n; k++) {
        tsr_body_proposal ask;
        int accepted;
        tsr_chain_propose(chain, &ask);
        must(tsr_chain_decide(chain, NULL, is_warm, &accepted, &err), &err);
    }
    tsr_chain_look(chain, &view);
    return view.conformation;
}

/* A chain of the prior, warmed up. */
static tsr_chain *prior_chain(study *x, int stream)
{
    const tsr_topology *t = x->s.topology;
    const long burn = 1000 + 30 * (t->n_torsion + t->n_side);
    tsr_chain *chain;
    tsr_err err = {0};
    must(tsr_chain_new(&x->prior, stream, &chain, &err), &err);
    walk_prior(chain, burn / 2, 1);
    walk_prior(chain, burn / 2, 0);
    return chain;
}

static void *walk(void *context)
{
    const walker *w = context;
    const tsr_topology *t = w->x->s.topology;
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
    const tsr_topology *t = x->s.topology;
    value[0] = tsr_conformation_rg(t, c, x->s.form_factors->rg2);
    value[1] = tsr_largest_distance(t->n_body, (const double(*)[3])c->body);
    value[2] = domains(t, c);
}

/* ---- curves ---- */

static double c2_quantile(const study *x, double u)
{
    const tsr_parameter *p = &x->s.contrast[TSR_C2];
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
    const tsr_likelihood *l = x->s.likelihood;
    const tsr_profile_error *error = &l->view->error;
    const double contrast[TSR_N_CONTRAST] = {x->s.contrast[TSR_C1].start, c2};
    const size_t n_q = (size_t)l->grid.n_q;
    gsl_rng *rng = tsr_rng_new(79, (uint64_t)truth);
    tsr_err err = {0};
    must(tsr_likelihood_direct(l, x->s.topology->n_body,
                               (const double(*)[3])c->body, NULL, partial,
                               &err),
         &err);
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
    gsl_rng_free(rng);
}

static void *compute_truths(void *context)
{
    study *x = context;
    const tsr_likelihood *l = x->s.likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    const tsr_atom_curves_spec spec = {.topology = x->s.topology,
                                       .model = x->s.model,
                                       .file = x->config.structure.file,
                                       .density = x->config.solvent.density,
                                       .grid = l->grid};
    tsr_atom_curves *curves;
    tsr_err err = {0};
    double *six = calloc(TSR_N_COMP_PAIR * n_q, sizeof *six), radius;
    must(tsr_atom_curves_new(&spec, NULL, &curves, &err), &err);
    for (int t; (t = take_next(x, x->n_truth)) >= 0;) {
        const tsr_conformation *c = x->truth[t];
        const double c2 =
            isnan(x->c2) ? c2_quantile(x, (t + 0.5) / x->n_truth) : x->c2;
        if (x->is_own) {
            own_curve(x, c, t, c2, six, x->atoms + (size_t)t * n_q);
            continue;
        }
        must(tsr_atom_curves_partial(curves, c, six, &radius, &err), &err);
        for (size_t k = 0; k < n_q; k++)
            x->atoms[(size_t)t * n_q + k] =
                tsr_component_intensity(six + k, n_q, 1.0, c2);
    }
    tsr_atom_curves_free(curves);
    free(six);
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
    const int n = x->saxs.n, n_q = x->s.likelihood->grid.n_q;
    const double *truth = x->atoms + (size_t)t * (size_t)n_q;
    double at_01 = 0.0, at_02 = 0.0;
    gsl_rng *rng = tsr_rng_new(77, (uint64_t)t);
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
    gsl_rng_free(rng);
}

/* A likelihood of these data alone; all else is the run's. */
static tsr_likelihood likelihood_of(const study *x, const tsr_saxs *saxs,
                                    tsr_term **term)
{
    tsr_likelihood l = *x->s.likelihood;
    const size_t n = (size_t)saxs->n * (size_t)l.grid.n_q;
    const tsr_data_set set = {.saxs = saxs,
                              .noise = noise_of("measured"),
                              .background = {0, 0.0},
                              .intensity_scale = {0, 0.0}};
    tsr_err err = {0};
    double *matrix = malloc(n * sizeof *matrix);
    memcpy(matrix, x->matrix, n * sizeof *matrix);
    must(tsr_saxs_term_new(&set, 0, term, &err), &err);
    must(
        tsr_saxs_term_prepare((tsr_saxs_term *)*term, l.grid.n_q, matrix, &err),
        &err);
    if (l.view->error.n > 0)
        must(tsr_saxs_term_doubt((tsr_saxs_term *)*term, &l.view->error, &err),
             &err);
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
    double (*place)[3]; /* [BATCH][n_body] */
    double *profile;    /* [BATCH][n_profile] */
} supplier;

static void supplier_open(study *x, int i, supplier *u)
{
    const tsr_topology *t = x->s.topology;
    const size_t n_body = (size_t)t->n_body;
    tsr_err err = {0};
    *u = (supplier){.x = x, .first_system = i * BATCH};
    u->place = calloc(BATCH * n_body, sizeof *u->place);
    u->profile = calloc(BATCH * (size_t)x->n_profile, sizeof *u->profile);
    u->chain = prior_chain(x, 0x7c000000 + i);
    must(tsr_batch_new(x->s.share[0].engine, BATCH, &u->batch, &err), &err);
    for (int k = 0; k < BATCH; k++)
        must(tsr_batch_set(u->batch, u->first_system + k,
                           (const double(*)[3])x->s.first->body, NULL, &err),
             &err);
}

static void supplier_close(supplier *u)
{
    tsr_chain_free(u->chain);
    tsr_batch_free(u->batch);
    free(u->place);
    free(u->profile);
}

/* Curves and observables of the next n draws, n at most BATCH. */
static void supply(supplier *u, int n)
{
    study *x = u->x;
    const int n_body = x->s.topology->n_body;
    tsr_body_range range[BATCH];
    tsr_body_proposal ask[BATCH];
    tsr_err err = {0};
    for (int k = 0; k < n; k++) {
        double(*place)[3] = u->place + (size_t)k * (size_t)n_body;
        const tsr_conformation *c = walk_prior(u->chain, x->thin, 0);
        memcpy(place, c->body, (size_t)n_body * sizeof *place);
        if (x->n_particle > 0) {
            x->drawn[u->at + k] = tsr_conformation_new(x->s.topology);
            tsr_conformation_copy(x->s.topology, x->drawn[u->at + k], c, 0,
                                  x->s.topology->n_residue);
        }
        double value[N_OBSERVABLE];
        observe(x, c, value);
        for (int o = 0; o < N_OBSERVABLE; o++)
            x->value[(u->at + k) * N_OBSERVABLE + o] = (float)value[o];
        x->rg[u->at + k] =
            tsr_conformation_rg(x->s.topology, c, x->s.form_factors->rg2);
        range[k] = (tsr_body_range){0, n_body, 0, (const double(*)[3])place};
        ask[k] = (tsr_body_proposal){u->first_system + k, 1, &range[k]};
    }
    must(tsr_batch_submit(u->batch, n, ask, &err), &err);
    must(tsr_batch_wait(u->batch, u->profile, &err), &err);
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
    supplier_close(&u);
    return NULL;
}

/* ---- which draws a posterior may begin with ---- */

/* log of P(D | X, c2)^beta, about its best c2, where s = 1. */
typedef struct {
    double top, bend, c2; /* value, minus the second derivative, where */
} parabola;

static double at_c2(const study *x, const tsr_likelihood *l, double c2,
                    const double *partial, tsr_point *point)
{
    const double contrast[TSR_N_CONTRAST] = {x->s.contrast[TSR_C1].start, c2};
    const tsr_prediction none = {.n_state = 0};
    tsr_err err = {0};
    must(tsr_likelihood_evaluate(l, partial, contrast, none, 1.0, NULL, NULL,
                                 point, &err),
         &err);
    return point->log_lik;
}

/* Where it bends the wrong way, which it does far from the data alone, the top
 * is as low as can be. */
static parabola find_top(const study *x, const tsr_likelihood *l, long draw,
                         double c2, double h, double *partial, tsr_point *point)
{
    const size_t n = (size_t)x->n_profile;
    double f[3];
    for (size_t k = 0; k < n; k++)
        partial[k] = (double)x->partial[(size_t)draw * n + k];
    for (int i = 0; i < 3; i++)
        f[i] = at_c2(x, l, c2 + h * (i - 1), partial, point);
    const double slope = (f[2] - f[0]) / (2.0 * h);
    const double bend = (2.0 * f[1] - f[0] - f[2]) / (h * h);
    if (!(bend > 0.0))
        return (parabola){-1e9, 1.0, c2};
    const double top = f[1] + 0.5 * slope * slope / bend;
    return (parabola){fmax(top, -1e9), bend, c2 + slope / bend};
}

/* ---- weights ---- */

static double effective(int n, const double *log_weight)
{
    double most = -(double)INFINITY, sum = 0.0, square = 0.0;
    for (int i = 0; i < n; i++)
        most = fmax(most, log_weight[i]);
    for (int i = 0; i < n; i++) {
        const double w = exp(log_weight[i] - most);
        sum += w;
        square += w * w;
    }
    return sum * sum / square;
}

/* Systematic resampling: who takes the place of the k-th of m. */
static void resample(gsl_rng *rng, int n, const double *log_weight, int m,
                     int *from)
{
    double most = -(double)INFINITY, sum = 0.0, passed = 0.0;
    const double u = gsl_rng_uniform(rng);
    for (int i = 0; i < n; i++)
        most = fmax(most, log_weight[i]);
    for (int i = 0; i < n; i++)
        sum += exp(log_weight[i] - most);
    for (int i = 0, k = 0; i < n; i++) {
        passed += exp(log_weight[i] - most) / sum;
        while (k < m && (k + u) / m < passed)
            from[k++] = i;
        for (int j = k; i == n - 1 && j < m; j++)
            from[j] = i; /* rounding */
    }
}

/* ---- posteriors ---- */

/* The particles of one truth and one error: a chain each. */
typedef struct {
    study *x;
    int truth, error, n, first_system;
    tsr_batch *batch;
    gsl_rng *rng;
    tsr_saxs saxs;
    tsr_term *term;
    tsr_likelihood likelihood;
    tsr_target *target; /* [n] */
    tsr_chain **chain;  /* [n] */
    long *ancestor;     /* [n] draw of the prior that each comes from */
    double beta;
    parabola *best; /* [n_draw] */
    tsr_body_proposal *ask;
    double *profile;
    int *place;
} crowd;

static void crowd_open(study *x, int truth, int error, int first_system,
                       tsr_batch *batch, crowd *c)
{
    const size_t n = (size_t)x->n_particle + 1, n_point = (size_t)x->saxs.n;
    *c = (crowd){.x = x, .truth = truth, .error = error, .n = x->n_particle};
    c->first_system = first_system;
    c->batch = batch;
    c->rng = tsr_rng_new(78, (uint64_t)(error * x->n_truth + truth));
    c->saxs = x->saxs;
    c->saxs.intensity = malloc(n_point * sizeof *c->saxs.intensity);
    c->saxs.sigma = malloc(n_point * sizeof *c->saxs.sigma);
    make_data(x, truth, error_at[error], &c->saxs);
    c->likelihood = likelihood_of(x, &c->saxs, &c->term);
    c->target = calloc(n, sizeof *c->target);
    c->chain = calloc(n, sizeof *c->chain);
    c->ancestor = calloc(n, sizeof *c->ancestor);
    c->ask = calloc(n, sizeof *c->ask);
    c->profile = calloc(n * (size_t)x->n_profile, sizeof *c->profile);
    c->place = calloc(n, sizeof *c->place);
    c->best = calloc((size_t)x->n_draw, sizeof *c->best);
}

static void crowd_close(crowd *c)
{
    for (int k = 0; k < c->n; k++)
        tsr_chain_free(c->chain[k]);
    tsr_term_free(c->term);
    gsl_rng_free(c->rng);
    free(c->saxs.intensity);
    free(c->saxs.sigma);
    free(c->target);
    free(c->chain);
    free(c->ancestor);
    free(c->ask);
    free(c->profile);
    free(c->place);
    free(c->best);
}

static void begin_at(crowd *c, int k, const tsr_conformation *first)
{
    const int stream = c->error * c->x->n_truth + c->truth;
    tsr_err err = {0};
    c->target[k] = c->x->s.target;
    c->target[k].likelihood = &c->likelihood;
    c->target[k].first = first;
    c->target[k].n_group = 0;
    c->target[k].seed += 1000003u * (uint64_t)(stream + 1);
    must(tsr_chain_new(&c->target[k], c->first_system + k, &c->chain[k], &err),
         &err);
    must(tsr_chain_start(c->chain[k], c->batch, &err), &err);
}

/* Each takes the place that it was drawn for; those that were drawn keep
 * theirs. */
static void take_places(crowd *c, const int *from)
{
    int *count = calloc((size_t)c->n, sizeof *count), next = 0;
    tsr_err err = {0};
    for (int k = 0; k < c->n; k++)
        count[from[k]]++;
    for (int k = 0; k < c->n; k++) {
        if (count[k] > 0)
            continue;
        while (count[next] < 2)
            next++;
        count[next]--;
        tsr_chain_copy(c->chain[k], c->chain[next]);
        must(tsr_chain_refresh(c->chain[k], c->batch, &err), &err);
        c->ancestor[k] = c->ancestor[next];
    }
    free(count);
}

/* One step of each; the device is asked for all at once. */
static void step_all(crowd *c, int is_warm)
{
    int n_ask = 0;
    tsr_err err = {0};
    for (int i = 0; i < c->n; i++)
        c->place[i] =
            tsr_chain_propose(c->chain[i], &c->ask[n_ask]) != 0 ? n_ask++ : -1;
    if (n_ask > 0) {
        must(tsr_batch_submit(c->batch, n_ask, c->ask, &err), &err);
        must(tsr_batch_wait(c->batch, c->profile, &err), &err);
    }
    for (int i = 0; i < c->n; i++) {
        const int at = c->place[i];
        int accepted;
        const double *answer =
            at < 0 ? NULL : c->profile + (size_t)(at * c->x->n_profile);
        must(tsr_chain_decide(c->chain[i], answer, is_warm, &accepted, &err),
             &err);
        if (at >= 0 && accepted)
            tsr_batch_accept(c->batch, tsr_chain_system(c->chain[i]));
        else if (at >= 0)
            tsr_batch_reject(c->batch, tsr_chain_system(c->chain[i]));
    }
}

static void heat(crowd *c, double beta)
{
    c->beta = beta;
    for (int k = 0; k < c->n; k++)
        tsr_chain_heat(c->chain[k], beta);
    for (long i = 0; i < c->x->n_stage; i++)
        step_all(c, 1);
}

/* The largest power at which half of the weight is left, of log weights
 * power log_lik[i] + other[i]; at most 1. */
static double cooler(int n, const double *log_lik, const double *other,
                     double from, double enough, double *log_weight)
{
    double low = from, high = 1.0;
    for (int i = 0; i < 40; i++) {
        const double power = i == 0 ? 1.0 : 0.5 * (low + high);
        for (int k = 0; k < n; k++)
            log_weight[k] = power * log_lik[k] + other[k];
        const int is_enough = effective(n, log_weight) >= enough;
        if (i == 0 && is_enough)
            return 1.0;
        *(is_enough ? &low : &high) = power;
    }
    for (int k = 0; k < n; k++)
        log_weight[k] = low * log_lik[k] + other[k];
    return low;
}

/* To temperature 1, by halves of the crowd. */
static void cool(crowd *c)
{
    const size_t n = (size_t)c->n;
    double *room = calloc(3 * n, sizeof *room);
    double *log_lik = room, *other = room + n, *log_weight = other + n;
    int *from = calloc(n, sizeof *from);
    while (c->beta < 1.0) {
        for (int k = 0; k < c->n; k++) {
            log_lik[k] = tsr_chain_log_lik(c->chain[k]);
            other[k] = -c->beta * log_lik[k];
        }
        const double beta =
            cooler(c->n, log_lik, other, c->beta, 0.5 * c->n, log_weight);
        resample(c->rng, c->n, log_weight, c->n, from);
        take_places(c, from);
        heat(c, beta);
    }
    free(room);
    free(from);
}

/* The range of Rg beyond which draws have no weight, from one in SOME: of those
 * within 50 nat of the best one, and half as far again. */
static void possible(const study *x, const parabola *parabolas, double *low,
                     double *high)
{
    double best = -(double)INFINITY, least = HUGE_VAL, most = 0.0;
    for (int i = 0; i < x->n_draw; i += SOME)
        best = fmax(best, parabolas[i].top);
    for (int i = 0; i < x->n_draw; i += SOME)
        if (parabolas[i].top > best - 50.0) {
            least = fmin(least, x->rg[i]);
            most = fmax(most, x->rg[i]);
        }
    *low = least - 0.25 * (most - least);
    *high = most + 0.25 * (most - least);
}

/* The parabolas of those draws within DEPTH nat of the best once more, nearer
 * to their tops; the others have no weight from now on. */
static void look_closer(const crowd *c, parabola *best, double *partial,
                        tsr_point *point)
{
    const study *x = c->x;
    const tsr_parameter *p = &x->s.contrast[TSR_C2];
    double most = -(double)INFINITY;
    for (int i = 0; i < x->n_draw; i++)
        most = fmax(most, best[i].top);
    for (int i = 0; i < x->n_draw; i++) {
        const int is_near = best[i].top > most - DEPTH;
        for (int k = 0; k < 2 && is_near; k++) {
            const double h = fmin(1.5 / sqrt(best[i].bend), 0.5 * p->width);
            const double c2 = fmin(fmax(best[i].c2, p->low), p->high);
            best[i] = find_top(x, &c->likelihood, i, c2, h, partial, point);
        }
        if (!is_near)
            best[i].top = -1e9;
    }
}

/* Of all draws of the prior, best [n_draw] out; what has no weight with larger
 * errors, of the crowd `before`, has none. */
static void look_through(const crowd *c, const crowd *before, parabola *best)
{
    const study *x = c->x;
    const tsr_parameter *p = &x->s.contrast[TSR_C2];
    double *partial = calloc((size_t)x->n_profile, sizeof *partial);
    double low = 0.0, high = HUGE_VAL;
    tsr_point point;
    saxs_point(&c->likelihood, &point);
    point.theta[c->term->first] = 0.0; /* s = 1 */
    for (int i = 0; i < x->n_draw; i++)
        best[i] =
            before != NULL ? before->best[i] : (parabola){-1e9, 1.0, p->mean};
    for (int pass = 0; pass < 2 && before == NULL; pass++) {
        for (int i = 0; i < x->n_draw; i++)
            if ((i % SOME == 0) == (pass == 0) && x->rg[i] >= low &&
                x->rg[i] <= high)
                best[i] = find_top(x, &c->likelihood, i, p->mean,
                                   0.5 * p->width, partial, &point);
        if (pass == 0)
            possible(x, best, &low, &high);
    }
    look_closer(c, best, partial, &point);
    tsr_point_clear(&c->likelihood, &point);
    free(partial);
}

/* log weights [n_draw] out, at the temperature where `enough` draws have
 * weight, whose inverse it returns. */
static double weigh(const crowd *c, const parabola *best, double enough,
                    double *log_weight)
{
    const size_t n = (size_t)c->x->n_draw;
    double *top = calloc(2 * n, sizeof *top), *other = top + n;
    for (size_t i = 0; i < n; i++) {
        top[i] = best[i].top;
        other[i] = -0.5 * log(best[i].bend);
    }
    const double beta = cooler((int)n, top, other, 1e-5, enough, log_weight);
    free(top);
    return beta;
}

/* From the draws of the prior, at the temperature where as many of them have
 * weight as the crowd has particles. */
static void gather(crowd *c)
{
    const study *x = c->x;
    const size_t n = (size_t)x->n_draw;
    double *log_weight = calloc(n, sizeof *log_weight);
    int *from = calloc((size_t)c->n, sizeof *from);
    look_through(c, NULL, c->best);
    const double beta = weigh(c, c->best, c->n, log_weight);
    resample(c->rng, (int)n, log_weight, c->n, from);
    for (int k = 0; k < c->n; k++) {
        begin_at(c, k, x->drawn[from[k]]);
        c->ancestor[k] = from[k];
    }
    heat(c, beta);
    free(log_weight);
    free(from);
}

/* From the crowd of a larger error, at the temperature where most of it has
 * weight. */
static void follow(crowd *c, const crowd *before)
{
    const size_t n = (size_t)c->n;
    double *room = calloc(3 * n, sizeof *room), best = 0.0, power = 1.0;
    double *log_lik = room, *old = room + n, *log_weight = old + n;
    int *from = calloc(n, sizeof *from);
    tsr_err err = {0};
    for (int k = 0; k < c->n; k++) {
        old[k] = tsr_chain_log_lik(before->chain[k]);
        begin_at(c, k, before->target[k].first);
        tsr_chain_copy(c->chain[k], before->chain[k]);
        must(tsr_chain_refresh(c->chain[k], c->batch, &err), &err);
        log_lik[k] = tsr_chain_log_lik(c->chain[k]);
        c->ancestor[k] = before->ancestor[k];
    }
    for (int i = 0; i <= 16; i++) {
        const double beta = pow(0.02, i / 16.0);
        for (int k = 0; k < c->n; k++)
            log_weight[k] = beta * log_lik[k] - old[k];
        const double left = effective(c->n, log_weight);
        if (left > best) {
            best = left;
            power = beta;
        }
    }
    for (int k = 0; k < c->n; k++)
        log_weight[k] = power * log_lik[k] - old[k];
    resample(c->rng, c->n, log_weight, c->n, from);
    take_places(c, from);
    heat(c, power);
    free(room);
    free(from);
}

/* Draws at temperature 1. */
static void harvest(crowd *c)
{
    study *x = c->x;
    const size_t at = (size_t)((c->error * x->n_truth + c->truth));
    const double each =
        (double)EVERY / ((double)x->n_step * (double)x->n_particle);
    double truth[N_OBSERVABLE], value[N_OBSERVABLE];
    observe(x, x->truth[c->truth], truth);
    for (long i = 0; i < x->n_step; i++) {
        step_all(c, 0);
        for (int k = 0; k < c->n && i % EVERY == 0; k++) {
            tsr_chain_view view;
            tsr_chain_look(c->chain[k], &view);
            observe(x, view.conformation, value);
            for (size_t o = 0; o < N_OBSERVABLE; o++) {
                const double off = value[o] - truth[o];
                x->below[at * N_OBSERVABLE + o] += off < 0.0 ? each : 0.0;
                x->mean[at * N_OBSERVABLE + o] += each * off;
                x->square[at * N_OBSERVABLE + o] += each * off * off;
            }
        }
    }
    for (int k = 0; k < c->n; k++) {
        int is_new = 1;
        for (int j = 0; j < k; j++)
            is_new &= c->ancestor[j] != c->ancestor[k];
        x->lines[at] += is_new;
    }
}

/* From weighted draws of the prior alone. */
static void guess(crowd *c, const crowd *before)
{
    study *x = c->x;
    const long n = x->n_draw;
    const size_t at = (size_t)(c->error * x->n_truth + c->truth);
    double *log_weight = calloc((size_t)n, sizeof *log_weight);
    double truth[N_OBSERVABLE], most = -(double)INFINITY, sum = 0.0;
    look_through(c, before, c->best);
    for (long i = 0; i < n; i++) {
        log_weight[i] = c->best[i].top - 0.5 * log(c->best[i].bend);
        most = fmax(most, log_weight[i]);
    }
    x->effective[at] = effective((int)n, log_weight);
    for (long i = 0; i < n; i++)
        sum += exp(log_weight[i] - most);
    observe(x, x->truth[c->truth], truth);
    for (long i = 0; i < n; i++) {
        const double w = exp(log_weight[i] - most) / sum;
        for (size_t o = 0; o < N_OBSERVABLE; o++) {
            const double off =
                (double)x->value[(size_t)i * N_OBSERVABLE + o] - truth[o];
            x->below[at * N_OBSERVABLE + o] += off < 0.0 ? w : 0.0;
            x->mean[at * N_OBSERVABLE + o] += w * off;
            x->square[at * N_OBSERVABLE + o] += w * off * off;
        }
    }
    free(log_weight);
}

/* In the order of their numbers; -1: none is left, or the time is up. */
static int next_truth(study *x)
{
    pthread_mutex_lock(&x->lock);
    const int is_left =
        x->next_truth < x->n_truth && tsr_clock_s() < x->begin_s + x->limit_s;
    const int t = is_left ? x->next_truth++ : -1;
    pthread_mutex_unlock(&x->lock);
    return t;
}

static void *infer(void *context)
{
    study *x = context;
    const int i = take_next(x, x->n_thread);
    tsr_batch *batch;
    tsr_err err = {0};
    must(tsr_batch_new(x->s.share[0].engine,
                       x->n_particle > 0 ? x->n_particle : 1, &batch, &err),
         &err);
    for (int t; (t = next_truth(x)) >= 0;) {
        crowd c[N_ERROR];
        for (int e = 0; e < N_ERROR; e++) {
            crowd_open(x, t, e, i * x->n_particle, batch, &c[e]);
            if (x->n_particle == 0)
                guess(&c[e], e > 0 ? &c[e - 1] : NULL);
            else if (e == 0)
                gather(&c[e]);
            else
                follow(&c[e], &c[e - 1]);
            if (e > 0)
                crowd_close(&c[e - 1]);
            if (x->n_particle > 0) {
                cool(&c[e]);
                harvest(&c[e]);
            }
        }
        crowd_close(&c[N_ERROR - 1]);
    }
    tsr_batch_free(batch);
    return NULL;
}

/* ---- the table ---- */

/* coverage [N_ERROR][N_OBSERVABLE] out. */
static void report(const study *x, const char *label,
                   double (*coverage)[N_OBSERVABLE])
{
    const int n = x->next_truth;
    if (n == 0) {
        fprintf(stderr, "%s: the time was up before any truth\n", label);
        exit(1);
    }
    for (int e = 0; e < N_ERROR; e++) {
        printf("%s, %.1f %%:", label, 100.0 * error_at[e]);
        for (int o = 0; o < N_OBSERVABLE; o++) {
            double held = 0.0, shift = 0.0, square = 0.0, sd = 0.0;
            for (int t = 0; t < n; t++) {
                const size_t at =
                    (size_t)((e * x->n_truth + t) * N_OBSERVABLE + o);
                const double own =
                    sqrt(x->square[at] - x->mean[at] * x->mean[at]);
                held += x->below[at] > 0.05 && x->below[at] < 0.95;
                shift += x->mean[at] / own / n;
                square += pow(x->mean[at] / own, 2.0) / n;
                sd += own / n;
            }
            coverage[e][o] = held / n;
            printf("%s %s %.2f (z %+.2f, rms %.2f, sd %.2f A)",
                   o > 0 ? "," : "", observable_name[o], coverage[e][o], shift,
                   sqrt(square), sd);
        }
        double lines = 0.0;
        int count[4] = {0}; /* of truths with 10, 20, 40, 80 draws */
        for (int t = 0; t < n; t++) {
            const int at = e * x->n_truth + t;
            lines += (double)x->lines[at] / n;
            if (x->n_particle == 0)
                fprintf(stderr, "%g %d %.1f %.3f %.3f %.3f\n", error_at[e], t,
                        x->effective[at], x->below[3 * at],
                        x->below[3 * at + 1], x->below[3 * at + 2]);
            for (int k = 0; k < 4; k++)
                count[k] += x->effective[at] >= 10 << k;
        }
        if (x->n_particle > 0)
            printf("; %d truths, from %.1f draws of the prior\n", n, lines);
        else
            printf("; %d truths, with 10, 20, 40, 80 effective draws %d %d %d "
                   "%d\n",
                   n, count[0], count[1], count[2], count[3]);
    }
    fflush(stdout);
}

/* Residues 8 to 293 of the longer construct, into a file of the name `part`. */
static void cut_three(char *part)
{
    const char *whole = "../shared/data/saxs/lar_fn3_1_2/model_LAR1-4.pdb";
    FILE *from = fopen(whole, "r");
    const int made = mkstemp(part);
    FILE *to = made < 0 ? NULL : fdopen(made, "w");
    char line[256];
    if (from == NULL || to == NULL) {
        fprintf(stderr, "cannot copy '%s' to '%s'\n", whole, part);
        exit(1);
    }
    while (fgets(line, sizeof line, from) != NULL)
        if (strncmp(line, "ATOM", 4) == 0 && atoi(line + 22) >= 8 &&
            atoi(line + 22) <= 293)
            fputs(line, to);
    fclose(from);
    fclose(to);
}

static void open_study(study *x, const char *name, const char *learn,
                       const char *device)
{
    char word[48], use[48];
    char part[] = "/tmp/tessera_coverage_XXXXXX", file[64];
    const int is_three = strcmp(name, "three") == 0;
    const char *const set[] = {
        "contrast.c2=infer",
        "structure.states=1",
        "sampler.temperatures=1",
        word,
        use,
        file,
        "structure.flexible=[\"A:97-103\", \"A:193-203\"]"};
    tsr_err err = {0};
    x->is_own = strcmp(learn, "own") == 0;
    snprintf(word, sizeof word, "model_error=%s", x->is_own ? "all" : learn);
    snprintf(use, sizeof use, "device.use=%s", device);
    if (is_three)
        cut_three(part);
    snprintf(file, sizeof file, "structure.file=%s", part);
    must(tsr_config_read(is_three ? "configs/lar.yaml" : name, is_three ? 7 : 5,
                         set, &x->config, &err),
         &err);
    tsr_log *log = tsr_log_new(stdout, TSR_LOG_INFO);
    must(tsr_setup_read(&x->config, 1, NULL, &x->s, &err), &err);
    must(tsr_setup_engine(&x->config,
                          (x->n_particle > BATCH ? x->n_particle : BATCH) *
                              x->s.n_thread,
                          log, &x->s, &err),
         &err);
    tsr_log_free(log);
    const tsr_saxs_term *term = saxs_term(x->s.likelihood, 0);
    x->saxs = *term->saxs;
    x->matrix = term->matrix;
    x->prior = x->s.target;
    x->prior.likelihood = NULL;
    x->prior.n_share = x->prior.n_group = 0;
    x->prior.n_temp = x->prior.n_state = 1;
    x->n_profile = tsr_likelihood_n_profile(x->s.likelihood);
    x->n_thread = x->s.n_thread < MOST_THREAD ? x->s.n_thread : MOST_THREAD;
}

static void run_study(study *x, const char *name, const char *learn,
                      const char *device, double (*coverage)[N_OBSERVABLE])
{
    char label[160];
    pthread_mutex_init(&x->lock, NULL);
    x->begin_s = tsr_clock_s();
    x->thin = 10;
    x->n_stage = x->n_step / 5;
    open_study(x, name, learn, device);
    const size_t n = (size_t)x->n_truth;
    const size_t n_q = (size_t)x->s.likelihood->grid.n_q;
    const size_t n_value = N_ERROR * n * N_OBSERVABLE;
    x->truth = calloc(n, sizeof(*x->truth));
    x->atoms = calloc(n * n_q, sizeof *x->atoms);
    x->below = calloc(n_value, sizeof *x->below);
    x->mean = calloc(n_value, sizeof *x->mean);
    x->square = calloc(n_value, sizeof *x->square);
    x->effective = calloc(N_ERROR * n, sizeof *x->effective);
    x->lines = calloc(N_ERROR * n, sizeof *x->lines);
    x->drawn = calloc((size_t)x->n_draw, sizeof(*x->drawn));
    x->value = calloc((size_t)x->n_draw * N_OBSERVABLE, sizeof *x->value);
    x->rg = calloc((size_t)x->n_draw, sizeof *x->rg);
    x->partial = calloc((size_t)(x->n_draw * x->n_profile), sizeof *x->partial);
    draw_truths(x);
    in_threads(x, compute_truths);
    in_threads(x, draw_prior);
    in_threads(x, infer);
    snprintf(label, sizeof label, "%s, %s, c2 %s", name, learn,
             isnan(x->c2) ? "of the prior" : "fixed");
    report(x, label, coverage);
    for (int t = 0; t < x->n_truth; t++)
        tsr_conformation_free(x->truth[t]);
    free(x->truth);
    free(x->atoms);
    free(x->below);
    free(x->mean);
    free(x->square);
    for (long i = 0; i < x->n_draw; i++)
        tsr_conformation_free(x->drawn[i]);
    free(x->drawn);
    free(x->effective);
    free(x->lines);
    free(x->value);
    free(x->rg);
    free(x->partial);
    if (strcmp(name, "three") == 0)
        remove(x->config.structure.file);
    tsr_setup_clear(&x->s);
    tsr_config_clear(&x->config);
}

static void intervals_hold_the_truth(void **state)
{
    double coverage[N_ERROR][N_OBSERVABLE];
    study x = {.n_truth = 30, .n_draw = 40000, .c2 = 1.0, .limit_s = HUGE_VAL};
    (void)state;
    if (access("../shared/data/saxs/lar_fn3_1_2", R_OK) != 0) {
        print_message("../shared/data/saxs is absent\n");
        skip();
    }
    run_study(&x, "configs/lar.yaml", "all", "auto", coverage);
    print_message("  90 %% intervals of Rg hold the truth in %.2f at errors of "
                  "2 %%\n",
                  coverage[0][0]);
    /* 0.88 of 100 truths, without what is learnt 0.48: this share of 30 is
     * three standard errors below the one and two above the other. */
    assert_true(coverage[0][0] > 0.68);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_the_truth)};
    double coverage[N_ERROR][N_OBSERVABLE];
    if (argc < 8)
        return cmocka_run_group_tests_name("coverage", tests, NULL, NULL);
    study x = {.n_truth = atoi(argv[3]),
               .n_draw = atol(argv[4]),
               .n_particle = atoi(argv[5]),
               .n_step = atol(argv[6]),
               .c2 =
                   strcmp(argv[7], "prior") == 0 ? (double)NAN : atof(argv[7]),
               .limit_s = argc > 9 ? atof(argv[9]) : HUGE_VAL};
    run_study(&x, argv[1], argv[2], argc > 8 ? argv[8] : "auto", coverage);
    return 0;
}

/* Do 90 % intervals hold the truth nine times in ten, when data come from
 * atoms?
 *
 * Truths are conformations drawn from the prior; their curves are those of all
 * atoms, with the conformation's own surface. The posterior is had by
 * importance sampling: many other draws of the prior, whose curves of bodies
 * are computed once, weighed by the program's own likelihood of each truth's
 * data at several c2. docs/statistics.md has the table.
 *
 *     slow_coverage CONFIG LEARN DRAWS TRUTHS C2 [SCALE]
 *
 * LEARN: all, ratio, none; C2: a number, or prior; SCALE: of the noise, infer
 * or 1. Without arguments: few draws, with bounds. */
#include "run/setup.h"

#include "core/random.h"
#include "likelihood/marginal.h"
#include "run/atom_curves.h"
#include "sampler/chain.h"
#include "tests/saxs_likelihood.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_OBSERVABLE = 3, N_NODE = 8, N_ERROR = 3, MOST_THREAD = 64 };

static const char *const observable_name[N_OBSERVABLE] = {"Rg", "D_max",
                                                          "domains"};
static const double error_at[N_ERROR] = {0.02, 0.01, 0.005};

typedef struct {
    tsr_config config;
    tsr_setup s;
    tsr_saxs saxs; /* the q of the configuration's data */
    double *matrix;
    int n_draw, n_truth, n_thread, n_profile, n_atom_profile;
    double c2; /* NaN: from its prior */
    const char *scale;
    double *value;   /* [n_draw + n_truth][N_OBSERVABLE] */
    double *partial; /* [n_draw][n_profile] of bodies */
    double *profile; /* [n_draw][N_NODE][n_q] */
    double node[N_NODE];
    tsr_conformation **drawn; /* [n_draw + n_truth] */
    double *atoms;            /* [n_truth][n_q] the true curves on the grid */
    double *rank;             /* [N_ERROR][n_truth][N_OBSERVABLE] */
    double *shift;            /* likewise: (mean - truth) / sd */
    double *effect;           /* [N_ERROR][n_truth] effective draws */
    int next;
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
    long thin;
    int stream;
} walker;

static void *walk(void *context)
{
    const walker *w = context;
    const tsr_topology *t = w->x->s.topology;
    tsr_target prior = w->x->s.target;
    tsr_chain *chain;
    tsr_err err = {0};
    const long burn = 1000 + 30 * (t->n_torsion + t->n_side);
    prior.likelihood = NULL;
    prior.n_share = prior.n_group = 0;
    prior.n_temp = prior.n_state = 1;
    must(tsr_chain_new(&prior, w->stream, &chain, &err), &err);
    for (int i = 0; i < w->n; i++) {
        tsr_chain_view view;
        for (long k = 0; k < (i == 0 ? burn : w->thin); k++) {
            tsr_body_proposal ask;
            int accepted;
            tsr_chain_propose(chain, &ask);
            must(tsr_chain_decide(chain, NULL, i == 0 && k < burn / 2,
                                  &accepted, &err),
                 &err);
        }
        tsr_chain_look(chain, &view);
        w->x->drawn[w->first + i] = tsr_conformation_new(t);
        tsr_conformation_copy(t, w->x->drawn[w->first + i], view.conformation,
                              0, t->n_residue);
    }
    tsr_chain_free(chain);
    return NULL;
}

static void draw_all(study *x, int first, int n, long thin, int stream)
{
    pthread_t thread[MOST_THREAD];
    walker w[MOST_THREAD];
    for (int i = 0; i < x->n_thread; i++) {
        const int from = n * i / x->n_thread, to = n * (i + 1) / x->n_thread;
        w[i] = (walker){x, first + from, to - from, thin, stream + i};
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

static void observe(const study *x, int i)
{
    const tsr_topology *t = x->s.topology;
    const tsr_conformation *c = x->drawn[i];
    double *value = x->value + (size_t)(i * N_OBSERVABLE);
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

static void compute_bodies(study *x)
{
    const tsr_likelihood *l = x->s.likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    tsr_batch *batch;
    tsr_err err = {0};
    double *partial = calloc((size_t)x->n_profile, sizeof *partial);
    must(tsr_batch_new(x->s.share[0].engine, 1, &batch, &err), &err);
    for (int i = 0; i < x->n_draw; i++) {
        must(tsr_batch_set(batch, 0, (const double(*)[3])x->drawn[i]->body,
                           partial, &err),
             &err);
        for (int v = 0; v < N_NODE; v++) {
            const double contrast[TSR_N_CONTRAST] = {
                x->s.contrast[TSR_C1].start, x->node[v]};
            tsr_likelihood_profile(l, partial, contrast,
                                   x->profile +
                                       ((size_t)i * N_NODE + (size_t)v) * n_q);
        }
        tsr_conformation_free(x->drawn[i]);
    }
    tsr_batch_free(batch);
    free(partial);
}

static int take_next(study *x, int n)
{
    pthread_mutex_lock(&x->lock);
    const int i = x->next < n ? x->next++ : -1;
    pthread_mutex_unlock(&x->lock);
    return i;
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
        const tsr_conformation *c = x->drawn[x->n_draw + t];
        const double c2 =
            isnan(x->c2) ? c2_quantile(x, (t + 0.5) / x->n_truth) : x->c2;
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

static tsr_saxs_term *make_term(const study *x, const tsr_saxs *saxs)
{
    const tsr_likelihood *l = x->s.likelihood;
    const size_t n = (size_t)saxs->n * (size_t)l->grid.n_q;
    tsr_data_set set = {.saxs = saxs,
                        .noise = noise_of("measured"),
                        .background = {0, 0.0},
                        .intensity_scale = {0, 0.0}};
    tsr_term *term;
    tsr_err err = {0};
    double *matrix = malloc(n * sizeof *matrix);
    memcpy(matrix, x->matrix, n * sizeof *matrix);
    noise_set(&set.noise, "scale", x->scale);
    must(tsr_saxs_term_new(&set, 0, &term, &err), &err);
    must(
        tsr_saxs_term_prepare((tsr_saxs_term *)term, l->grid.n_q, matrix, &err),
        &err);
    if (l->error.n > 0)
        must(tsr_saxs_term_doubt((tsr_saxs_term *)term, &l->error, &err), &err);
    return (tsr_saxs_term *)term;
}

static void weigh(const study *x, const tsr_saxs_term *term, tsr_fit *fit,
                  double *weight)
{
    const int n_q = x->s.likelihood->grid.n_q;
    double top = -HUGE_VAL, *at = malloc(N_NODE * sizeof *at);
    double *log_weight = malloc((size_t)x->n_draw * N_NODE * sizeof *at);
    for (int i = 0; i < x->n_draw * N_NODE; i++) {
        log_weight[i] = tsr_marginal_log(
            term, x->profile + (size_t)i * (size_t)n_q, fit, NULL, NULL);
        top = fmax(top, log_weight[i]);
    }
    for (int i = 0; i < x->n_draw; i++) {
        weight[i] = 0.0;
        for (int v = 0; v < N_NODE; v++)
            weight[i] += exp(log_weight[i * N_NODE + v] - top);
    }
    free(log_weight);
    free(at);
}

static void judge(const study *x, int e, int t, const double *weight)
{
    const double *truth = x->value + (size_t)((x->n_draw + t) * N_OBSERVABLE);
    const size_t at = (size_t)(e * x->n_truth + t);
    double sum = 0.0, square = 0.0;
    for (int i = 0; i < x->n_draw; i++) {
        sum += weight[i];
        square += weight[i] * weight[i];
    }
    x->effect[at] = sum * sum / square;
    for (int o = 0; o < N_OBSERVABLE; o++) {
        double below = 0.0, mean = 0.0, spread = 0.0;
        for (int i = 0; i < x->n_draw; i++) {
            const double v = x->value[i * N_OBSERVABLE + o];
            below += v < truth[o] ? weight[i] / sum : 0.0;
            mean += v * weight[i] / sum;
        }
        for (int i = 0; i < x->n_draw; i++)
            spread += pow(x->value[i * N_OBSERVABLE + o] - mean, 2.0) *
                      weight[i] / sum;
        x->rank[at * N_OBSERVABLE + (size_t)o] = below;
        x->shift[at * N_OBSERVABLE + (size_t)o] =
            (mean - truth[o]) / sqrt(spread);
    }
}

static void *compute_posteriors(void *context)
{
    study *x = context;
    tsr_saxs saxs = x->saxs;
    const size_t n = (size_t)saxs.n;
    double *weight = malloc((size_t)x->n_draw * sizeof *weight);
    saxs.intensity = malloc(n * sizeof *saxs.intensity);
    saxs.sigma = malloc(n * sizeof *saxs.sigma);
    for (int i; (i = take_next(x, N_ERROR * x->n_truth)) >= 0;) {
        const int e = i / x->n_truth, t = i % x->n_truth;
        make_data(x, t, error_at[e], &saxs);
        tsr_saxs_term *term = make_term(x, &saxs);
        tsr_fit *fit = tsr_saxs_fit_new(term);
        weigh(x, term, fit, weight);
        judge(x, e, t, weight);
        free(fit);
        tsr_term_free(&term->term);
    }
    free(weight);
    free(saxs.intensity);
    free(saxs.sigma);
    return NULL;
}

/* ---- the table ---- */

/* coverage [N_ERROR][N_OBSERVABLE] out. */
static void report(const study *x, const char *label,
                   double (*coverage)[N_OBSERVABLE])
{
    double *sorted = malloc((size_t)x->n_truth * sizeof *sorted);
    for (int e = 0; e < N_ERROR; e++) {
        memcpy(sorted, x->effect + e * x->n_truth,
               (size_t)x->n_truth * sizeof *sorted);
        gsl_sort(sorted, 1, (size_t)x->n_truth);
        printf("%s, %.1f %%:", label, 100.0 * error_at[e]);
        for (int o = 0; o < N_OBSERVABLE; o++) {
            double held = 0.0, mean = 0.0, square = 0.0;
            for (int t = 0; t < x->n_truth; t++) {
                const size_t at =
                    (size_t)((e * x->n_truth + t) * N_OBSERVABLE + o);
                held += x->rank[at] > 0.05 && x->rank[at] < 0.95;
                mean += x->shift[at] / x->n_truth;
                square += x->shift[at] * x->shift[at] / x->n_truth;
            }
            coverage[e][o] = held / x->n_truth;
            printf(" %s %.2f (z %+.2f, rms %.2f)", observable_name[o],
                   coverage[e][o], mean, sqrt(square));
        }
        printf("; effective draws %.0f, 5 %% %.0f\n", sorted[x->n_truth / 2],
               sorted[x->n_truth / 20]);
    }
    free(sorted);
    fflush(stdout);
}

static void open_study(study *x, const char *name, const char *learn)
{
    char word[48];
    const char *const set[] = {"contrast.c2=infer", "structure.states=1",
                               "sampler.chains=1", "sampler.temperatures=1",
                               word};
    tsr_err err = {0};
    snprintf(word, sizeof word, "model_error=%s", learn);
    must(tsr_config_read(name, 5, set, &x->config, &err), &err);
    tsr_log *log = tsr_log_new(stdout, TSR_LOG_INFO);
    must(tsr_setup_read(&x->config, 1, NULL, &x->s, &err), &err);
    must(tsr_setup_engine(&x->config, 0, log, &x->s, &err), &err);
    tsr_log_free(log);
    const tsr_saxs_term *term = saxs_term(x->s.likelihood, 0);
    x->saxs = *term->saxs;
    x->matrix = term->matrix;
    x->n_profile = tsr_likelihood_n_profile(x->s.likelihood);
    x->n_thread = x->s.n_thread < MOST_THREAD ? x->s.n_thread : MOST_THREAD;
    for (int v = 0; v < N_NODE; v++)
        x->node[v] = c2_quantile(x, (v + 0.5) / N_NODE);
}

static void run_study(const char *name, const char *learn, int n_draw,
                      int n_truth, double c2, const char *scale,
                      double (*coverage)[N_OBSERVABLE])
{
    study x = {.n_draw = n_draw, .n_truth = n_truth, .c2 = c2, .scale = scale};
    char label[160];
    pthread_mutex_init(&x.lock, NULL);
    open_study(&x, name, learn);
    const size_t n = (size_t)(n_draw + n_truth);
    const size_t n_q = (size_t)x.s.likelihood->grid.n_q;
    const size_t n_rank = (size_t)(N_ERROR * n_truth);
    x.drawn = calloc(n, sizeof(*x.drawn));
    x.value = calloc(n * N_OBSERVABLE, sizeof *x.value);
    x.profile = calloc((size_t)n_draw * N_NODE * n_q, sizeof *x.profile);
    x.atoms = calloc((size_t)n_truth * n_q, sizeof *x.atoms);
    x.rank = calloc(n_rank * N_OBSERVABLE, sizeof *x.rank);
    x.shift = calloc(n_rank * N_OBSERVABLE, sizeof *x.shift);
    x.effect = calloc(n_rank, sizeof *x.effect);
    draw_all(&x, 0, n_draw, 100, 100);
    draw_all(&x, n_draw, n_truth, 2000, 500);
    for (int i = 0; i < n_draw + n_truth; i++)
        observe(&x, i);
    compute_bodies(&x);
    in_threads(&x, compute_truths);
    in_threads(&x, compute_posteriors);
    snprintf(label, sizeof label, "%s, %s, c2 %s", name, learn,
             isnan(c2) ? "of the prior" : "fixed");
    report(&x, label, coverage);
    for (int t = 0; t < n_truth; t++)
        tsr_conformation_free(x.drawn[n_draw + t]);
    free(x.drawn);
    free(x.value);
    free(x.profile);
    free(x.atoms);
    free(x.rank);
    free(x.shift);
    free(x.effect);
    tsr_setup_clear(&x.s);
    tsr_config_clear(&x.config);
}

static void intervals_hold_the_truth(void **state)
{
    double coverage[N_ERROR][N_OBSERVABLE];
    (void)state;
    if (access("../shared/data/saxs/lar_fn3_1_2", R_OK) != 0) {
        print_message("../shared/data/saxs is absent\n");
        skip();
    }
    run_study("configs/lar.yaml", "all", 3000, 60, 1.0, "1", coverage);
    for (int o = 0; o < N_OBSERVABLE; o++)
        assert_true(coverage[0][o] > 0.8 && coverage[1][o] > 0.78);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_the_truth)};
    double coverage[N_ERROR][N_OBSERVABLE];
    if (argc < 6)
        return cmocka_run_group_tests_name("coverage", tests, NULL, NULL);
    run_study(argv[1], argv[2], atoi(argv[3]), atoi(argv[4]),
              strcmp(argv[5], "prior") == 0 ? (double)NAN : atof(argv[5]),
              argc > 6 ? argv[6] : "1", coverage);
    return 0;
}

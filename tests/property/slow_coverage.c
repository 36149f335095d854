/* Do 90 % intervals hold the truth nine times in ten, when data come from
 * atoms?
 *
 * Truths are conformations drawn from the prior; their curves are those of all
 * atoms, with the conformation's own surface. Each has chains of its own, one
 * for each error of the data, which share an engine: as a run has them, with
 * c2 and the scale of the noise inferred, at one temperature, after annealing.
 * docs/statistics.md has the table.
 *
 *     slow_coverage CONFIG LEARN TRUTHS WARMUP STEPS C2 [DEVICE]
 *
 * LEARN: all, ratio, none; C2: a number, or prior. Without arguments: a few,
 * with bounds. */
#include "run/setup.h"

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

enum { N_OBSERVABLE = 3, N_ERROR = 3, MOST_THREAD = 64, EVERY = 50 };

static const char *const observable_name[N_OBSERVABLE] = {"Rg", "D_max",
                                                          "domains"};
static const double error_at[N_ERROR] = {0.02, 0.01, 0.005};

typedef struct {
    tsr_config config;
    tsr_setup s;
    tsr_saxs saxs; /* the q of the configuration's data */
    double *matrix;
    int n_truth, n_thread, next;
    long n_warm, n_step;
    double c2;                     /* NaN: from its prior */
    tsr_conformation **truth;      /* [n_truth] */
    double *atoms;                 /* [n_truth][n_q] their curves on the grid */
    double *below, *mean, *square; /* [N_ERROR][n_truth][N_OBSERVABLE] over the
                                      draws: less than the truth; of the value
                                      less the truth */
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
        w->x->truth[w->first + i] = tsr_conformation_new(t);
        tsr_conformation_copy(t, w->x->truth[w->first + i], view.conformation,
                              0, t->n_residue);
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
        w[i] = (walker){x, from, to - from, 2000, 0x7d000000 + i};
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

/* One chain, and what it is about. */
typedef struct {
    int at, truth; /* [N_ERROR][n_truth] */
    tsr_saxs saxs;
    tsr_term *term;
    tsr_likelihood likelihood;
    tsr_target target;
    tsr_chain *chain;
    double value[N_OBSERVABLE]; /* of the truth */
} inquiry;

static void inquiry_open(study *x, int i, tsr_batch *batch, inquiry *q)
{
    const size_t n = (size_t)x->saxs.n;
    tsr_err err = {0};
    *q = (inquiry){.at = i, .truth = i % x->n_truth, .saxs = x->saxs};
    q->saxs.intensity = malloc(n * sizeof *q->saxs.intensity);
    q->saxs.sigma = malloc(n * sizeof *q->saxs.sigma);
    make_data(x, q->truth, error_at[i / x->n_truth], &q->saxs);
    q->likelihood = likelihood_of(x, &q->saxs, &q->term);
    q->target = x->s.target;
    q->target.likelihood = &q->likelihood;
    q->target.first = x->truth[q->truth];
    q->target.n_group = 0;
    observe(x, q->target.first, q->value);
    must(tsr_chain_new(&q->target, i, &q->chain, &err), &err);
    must(tsr_chain_start(q->chain, batch, &err), &err);
}

static void inquiry_close(inquiry *q)
{
    tsr_chain_free(q->chain);
    tsr_term_free(q->term);
    free(q->saxs.intensity);
    free(q->saxs.sigma);
}

/* Of each chain; the device is asked for all at once. */
static void step_all(int n, inquiry *q, tsr_batch *batch, int is_warm,
                     tsr_body_proposal *ask, double *profile, int *place)
{
    const size_t n_profile = (size_t)tsr_likelihood_n_profile(&q[0].likelihood);
    int n_ask = 0;
    tsr_err err = {0};
    for (int i = 0; i < n; i++)
        place[i] =
            tsr_chain_propose(q[i].chain, &ask[n_ask]) != 0 ? n_ask++ : -1;
    if (n_ask > 0) {
        must(tsr_batch_submit(batch, n_ask, ask, &err), &err);
        must(tsr_batch_wait(batch, profile, &err), &err);
    }
    for (int i = 0; i < n; i++) {
        int accepted;
        const double *answer =
            place[i] < 0 ? NULL : profile + (size_t)place[i] * n_profile;
        must(tsr_chain_decide(q[i].chain, answer, is_warm, &accepted, &err),
             &err);
        if (place[i] >= 0 && accepted)
            tsr_batch_accept(batch, tsr_chain_system(q[i].chain));
        else if (place[i] >= 0)
            tsr_batch_reject(batch, tsr_chain_system(q[i].chain));
    }
}

static void take_draw(study *x, const inquiry *q)
{
    const double each = (double)EVERY / (double)x->n_step;
    double value[N_OBSERVABLE];
    tsr_chain_view view;
    tsr_chain_look(q->chain, &view);
    observe(x, view.conformation, value);
    for (int o = 0; o < N_OBSERVABLE; o++) {
        const size_t at = (size_t)(q->at * N_OBSERVABLE + o);
        const double off = value[o] - q->value[o];
        x->below[at] += off < 0.0 ? each : 0.0;
        x->mean[at] += each * off;
        x->square[at] += each * off * off;
    }
}

/* Chains i, i + n_thread, ... */
static void *run_chains(void *context)
{
    study *x = context;
    const int first = take_next(x, x->n_thread), all = N_ERROR * x->n_truth;
    const int n = first < all ? (all - first - 1) / x->n_thread + 1 : 0;
    const size_t n_profile = (size_t)tsr_likelihood_n_profile(x->s.likelihood);
    tsr_batch *batch;
    tsr_err err = {0};
    if (n == 0)
        return NULL;
    inquiry *q = calloc((size_t)n, sizeof *q);
    tsr_body_proposal *ask = calloc((size_t)n, sizeof *ask);
    double *profile = calloc((size_t)n * n_profile, sizeof *profile);
    int *place = calloc((size_t)n, sizeof *place);
    must(tsr_batch_new(x->s.share[0].engine, n, &batch, &err), &err);
    for (int i = 0; i < n; i++)
        inquiry_open(x, first + i * x->n_thread, batch, &q[i]);
    for (long step = 0; step < x->n_warm + x->n_step; step++) {
        const double done = 2.0 * (double)step / (double)x->n_warm;
        for (int i = 0; i < n && step <= x->n_warm; i++)
            tsr_chain_heat(q[i].chain, pow(0.01, fmax(0.0, 1.0 - done)));
        step_all(n, q, batch, step < x->n_warm, ask, profile, place);
        for (int i = 0; i < n && step >= x->n_warm && step % EVERY == 0; i++)
            take_draw(x, &q[i]);
    }
    for (int i = 0; i < n; i++)
        inquiry_close(&q[i]);
    tsr_batch_free(batch);
    free(place);
    free(profile);
    free(ask);
    free(q);
    return NULL;
}

/* ---- the table ---- */

/* coverage [N_ERROR][N_OBSERVABLE] out. */
static void report(const study *x, const char *label,
                   double (*coverage)[N_OBSERVABLE])
{
    for (int e = 0; e < N_ERROR; e++) {
        printf("%s, %.1f %%:", label, 100.0 * error_at[e]);
        for (int o = 0; o < N_OBSERVABLE; o++) {
            double held = 0.0, shift = 0.0, square = 0.0, sd = 0.0;
            for (int t = 0; t < x->n_truth; t++) {
                const size_t at =
                    (size_t)((e * x->n_truth + t) * N_OBSERVABLE + o);
                const double own =
                    sqrt(x->square[at] - x->mean[at] * x->mean[at]);
                held += x->below[at] > 0.05 && x->below[at] < 0.95;
                shift += x->mean[at] / own / x->n_truth;
                square += pow(x->mean[at] / own, 2.0) / x->n_truth;
                sd += own / x->n_truth;
            }
            coverage[e][o] = held / x->n_truth;
            printf("%s %s %.2f (z %+.2f, rms %.2f, sd %.2f A)",
                   o > 0 ? "," : "", observable_name[o], coverage[e][o], shift,
                   sqrt(square), sd);
        }
        printf("\n");
    }
    fflush(stdout);
}

static void open_study(study *x, const char *name, const char *learn,
                       const char *device)
{
    char word[48], use[48];
    const char *const set[] = {"contrast.c2=infer", "structure.states=1",
                               "sampler.temperatures=1", word, use};
    tsr_err err = {0};
    snprintf(word, sizeof word, "model_error=%s", learn);
    snprintf(use, sizeof use, "device.use=%s", device);
    must(tsr_config_read(name, 5, set, &x->config, &err), &err);
    tsr_log *log = tsr_log_new(stdout, TSR_LOG_INFO);
    must(tsr_setup_read(&x->config, 1, NULL, &x->s, &err), &err);
    must(tsr_setup_engine(&x->config, N_ERROR * x->n_truth, log, &x->s, &err),
         &err);
    tsr_log_free(log);
    const tsr_saxs_term *term = saxs_term(x->s.likelihood, 0);
    x->saxs = *term->saxs;
    x->matrix = term->matrix;
    x->n_thread = x->s.n_thread < MOST_THREAD ? x->s.n_thread : MOST_THREAD;
}

static void run_study(study *x, const char *name, const char *learn,
                      const char *device, double (*coverage)[N_OBSERVABLE])
{
    char label[160];
    pthread_mutex_init(&x->lock, NULL);
    open_study(x, name, learn, device);
    const size_t n = (size_t)x->n_truth;
    const size_t n_q = (size_t)x->s.likelihood->grid.n_q;
    const size_t n_value = N_ERROR * n * N_OBSERVABLE;
    x->truth = calloc(n, sizeof(*x->truth));
    x->atoms = calloc(n * n_q, sizeof *x->atoms);
    x->below = calloc(n_value, sizeof *x->below);
    x->mean = calloc(n_value, sizeof *x->mean);
    x->square = calloc(n_value, sizeof *x->square);
    draw_truths(x);
    in_threads(x, compute_truths);
    in_threads(x, run_chains);
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
    tsr_setup_clear(&x->s);
    tsr_config_clear(&x->config);
}

static void intervals_hold_the_truth(void **state)
{
    double coverage[N_ERROR][N_OBSERVABLE], held = 0.0;
    study x = {.n_truth = 10, .n_warm = 4000, .n_step = 16000, .c2 = 1.0};
    (void)state;
    if (access("../shared/data/saxs/lar_fn3_1_2", R_OK) != 0) {
        print_message("../shared/data/saxs is absent\n");
        skip();
    }
    run_study(&x, "configs/lar.yaml", "all", "auto", coverage);
    for (int e = 0; e < N_ERROR; e++) /* 9 of 10 in the long run */
        for (int o = 0; o < N_OBSERVABLE; o++)
            held += coverage[e][o] / (N_ERROR * N_OBSERVABLE);
    print_message("  90 %% intervals hold the truth in %.2f\n", held);
    assert_true(held > 0.7);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_the_truth)};
    double coverage[N_ERROR][N_OBSERVABLE];
    if (argc < 7)
        return cmocka_run_group_tests_name("coverage", tests, NULL, NULL);
    study x = {.n_truth = atoi(argv[3]),
               .n_warm = atol(argv[4]),
               .n_step = atol(argv[5]),
               .c2 =
                   strcmp(argv[6], "prior") == 0 ? (double)NAN : atof(argv[6])};
    run_study(&x, argv[1], argv[2], argc > 7 ? argv[7] : "auto", coverage);
    return 0;
}

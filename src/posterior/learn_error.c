/* Learns the model error, the difference between the curves of bodies and those
 * of all atoms, whose water is made anew for each conformation: before a run
 * from draws of the prior, and with all-atom draws again during warm-up from
 * conformations of the chains.
 *
 * Data are scattered by atoms, but chains compute the curve of bodies, each
 * with the hydration that it has in the starting structure. Both curves are
 * computed for example conformations. Their ratio corrects all curves of the
 * run. The remaining error is described by a few smooth curves with standard
 * deviations, which the terms of the likelihood integrate out
 * (docs/statistics.md). */
#include "posterior/setup.h"

#include "core/clock.h"
#include "core/interrupt.h"
#include "core/parallel.h"
#include "core/ranks.h"
#include "core/text.h"
#include "likelihood/noise.h"
#include "store/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A random stream that no chain of a run uses. */
enum { LEARN_STREAM = 0x7e000000 };

/* Fewest conformations for a covariance. */
enum { MIN_EXAMPLES = 6 };

/* Chains on the prior, from which the conformations come. Their number and the
 * chain of each conformation do not depend on the number of threads, so that
 * the conformations do not either. */
enum { N_STREAM = 16 };

/* One of these chains, and what one thread needs to compute curves. */
typedef struct {
    tsr_chain *chain;
    tsr_atom_curves *curves;
    double *workspace, radius_ang;
    tsr_status status;
    tsr_err err;
} stream;

/* Comparison of bodies with all atoms. */
typedef struct {
    const tsr_setup *s;
    char **text; /* description, of the setup */
    tsr_likelihood *l;
    tsr_examples examples;
    tsr_pool pool; /* owns the arrays */
    double radius_ang;
    int has_chains;       /* 1: chains exist, and the error is learnt again */
    tsr_batch *batch;     /* of bodies */
    pthread_mutex_t lock; /* of the batch, which has one system */
    tsr_target prior;
    stream stream[N_STREAM];
    int first;          /* first of the examples that are computed next */
    atomic_long n_done; /* examples */
    pthread_t caller;
} comparison;

/* ---- conformations and their curves ---- */

tsr_status tsr_data_sum_atoms(const tsr_data *data,
                              const tsr_likelihood *likelihood,
                              tsr_atom_curves *curves,
                              const tsr_conformation *conformation,
                              double *workspace, double *partial,
                              double *radius_ang, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    const tsr_q_grid *grid = &l->grid;
    for (int k = 0; k < l->n_probe; k++) {
        const tsr_probe *p = &l->probe[k];
        TSR_TRY(tsr_atom_curves_partial(
            curves, conformation, data->scattering[k].absent,
            p->is_neutron ? &data->sample[k] : NULL, p->basis.origin, workspace,
            radius_ang, err));
        if (p->is_neutron)
            tsr_neutron_fold(&p->basis, l->contrast, grid->n_q, workspace);
        else
            tsr_partials_fold(l->run_contrast, *radius_ang, grid->n_q,
                              grid->dq_inv_ang, workspace);
        memcpy(partial + (ptrdiff_t)p->first_atom * grid->n_q, workspace,
               (size_t)(p->n_atom_pair * grid->n_q) * sizeof *workspace);
    }
    return TSR_OK;
}

static const tsr_probe *probe_of(const comparison *x)
{
    return &x->l->probe[x->l->view[x->examples.view].probe];
}

/* Does nothing move, so that the starts are the only conformations? */
static int is_frozen(const tsr_config *config, const tsr_topology *t)
{
    int n = t->n_torsion + t->n_side + t->moves_subunit;
    for (int c = 0; c < t->n_chain; c++)
        n += t->mobile[c];
    return config->structure.frozen || n == 0;
}

/* `all` [n_example + 1][n] has the profiles of the examples: sets the last row
 * to their mean. */
static void compute_mean(const comparison *x, size_t n, double *all)
{
    double *mean = all + n * (size_t)x->examples.n;
    memset(mean, 0, n * sizeof *mean);
    for (int i = 0; i < x->examples.n; i++)
        for (size_t k = 0; k < n; k++)
            mean[k] += all[n * (size_t)i + k] / x->examples.n;
}

/* Memory for n examples and their mean. */
static tsr_status reserve(comparison *x, int most, tsr_err *err)
{
    tsr_pool_array(&x->pool, x->examples.atoms,
                   tsr_examples_atom_size(&x->examples, most + 1));
    tsr_pool_array(&x->pool, x->examples.bodies,
                   tsr_examples_size(&x->examples, most + 1));
    return tsr_pool_check(&x->pool, err);
}

static void scale(size_t n, double by, double *value)
{
    for (size_t k = 0; k < n; k++)
        value[k] *= by;
}

static tsr_status compute_example(comparison *x, int i,
                                  const tsr_conformation *c,
                                  tsr_atom_curves *curves, double *workspace,
                                  double *radius_ang, tsr_err *err)
{
    double *atoms = x->examples.atoms + tsr_examples_atom_size(&x->examples, i);
    double *bodies = x->examples.bodies + tsr_examples_size(&x->examples, i);
    TSR_TRY(tsr_data_sum_atoms(&x->s->data, x->l, curves, c, workspace, atoms,
                               radius_ang, err));
    pthread_mutex_lock(&x->lock);
    const tsr_status status =
        tsr_batch_set(x->batch, 0, (const double(*)[3])c->body, bodies, err);
    pthread_mutex_unlock(&x->lock);
    for (size_t k = 0; k < tsr_examples_size(&x->examples, 1); k++)
        bodies[k] += x->l->self[k]; /* engines leave S_ab out */
    return status;
}

tsr_target tsr_setup_prior_target(const tsr_target *target, int n_state)
{
    tsr_target prior = *target;
    prior.likelihood = NULL;
    prior.n_engine = prior.n_group = 0;
    prior.n_temp = 1;
    prior.n_state = n_state;
    return prior;
}

tsr_status tsr_setup_prior_steps(tsr_chain *chain, long n, int warm,
                                 const tsr_watch *watch, const char *what,
                                 tsr_err *err)
{
    for (long i = 0; i < n; i++) {
        tsr_body_proposal ask;
        int accepted;
        TSR_TRY(tsr_watch_check(watch, what, err));
        tsr_chain_propose(chain, &ask);
        TSR_TRY(tsr_chain_decide(chain, NULL, warm, &accepted, err));
    }
    return TSR_OK;
}

/* Computes examples part, part + N_STREAM, ... from the chain `part`. */
static void draw_examples(void *context, int part, int thread)
{
    static const char what[] = "the model error was learnt";
    comparison *x = context;
    stream *s = &x->stream[part];
    const stream *own = &x->stream[thread];
    const tsr_watch *watch = x->s->watch;
    const tsr_topology *t = x->s->molecule.topology;
    const long apart = (1000 + 30 * (t->n_torsion + t->n_side)) / 8;
    if (s->status == TSR_OK && x->first == 0)
        s->status =
            tsr_setup_prior_steps(s->chain, apart, 1, watch, what, &s->err);
    for (int i = x->first + part; i < x->examples.n && s->status == TSR_OK;
         i += N_STREAM) {
        tsr_chain_view view;
        s->status =
            tsr_setup_prior_steps(s->chain, apart, 0, watch, what, &s->err);
        if (s->status != TSR_OK)
            break;
        tsr_chain_view_get(s->chain, &view);
        s->status = compute_example(x, i, view.conformation, own->curves,
                                    own->workspace, &s->radius_ang, &s->err);
        x->n_done++;
        if (pthread_equal(x->caller, pthread_self()))
            tsr_watch_call(watch, "set-up", x->n_done, x->examples.n);
    }
}

/* Threads that draw examples. The other ranks of this computer wait for the
 * model error meanwhile, so that their processors are free. */
static int n_learner(const tsr_setup *s)
{
    int n_rank;
    (void)tsr_ranks_on_node(&n_rank);
    return s->n_thread * n_rank < N_STREAM ? s->n_thread * n_rank : N_STREAM;
}

/* Opens the chains, and curves for each thread but the first, which has them
 * already. */
static tsr_status open_streams(comparison *x, tsr_err *err)
{
    x->prior = tsr_setup_prior_target(&x->s->target, 1);
    x->prior.seed = TSR_MODEL_SEED;
    for (int k = 0; k < N_STREAM; k++) {
        stream *s = &x->stream[k];
        TSR_TRY(tsr_chain_new(&x->prior, LEARN_STREAM + k, &s->chain, err));
        if (k > 0 && k < n_learner(x->s))
            TSR_TRY(tsr_atom_curves_new(&x->s->molecule, &x->l->grid,
                                        x->s->devices.device[0], NULL,
                                        &s->curves, err));
        tsr_pool_array(&x->pool, s->workspace,
                       TSR_N_COMP_PAIR * x->l->grid.n_q);
    }
    return tsr_pool_check(&x->pool, err);
}

/* Adds examples from draws of the prior, up to n. */
static tsr_status compute_prior_examples(comparison *x, int n, tsr_err *err)
{
    x->first = x->examples.n;
    x->examples.n = n;
    tsr_parallel_run(N_STREAM, n_learner(x->s), draw_examples, x);
    for (int k = 0; k < N_STREAM; k++)
        if (x->stream[k].status != TSR_OK)
            return tsr_fail(err, x->stream[k].status, "%s",
                            x->stream[k].err.message);
    x->radius_ang = x->stream[0].radius_ang;
    return TSR_OK;
}

/* ---- description ---- */

/* Adds "; " between views, and then "of neutrons in 42 % D2O " or "of X-rays ";
 * a single X-ray view has no name. */
static void name_view(const comparison *x, tsr_words *words)
{
    if (x->examples.view > 0)
        tsr_words_add(words, "; ");
    if (x->l->n_view == 1 && !probe_of(x)->is_neutron)
        return;
    if (x->l->n_species > 0) {
        tsr_words_add(words, "of %s ", x->l->species[x->examples.view].name);
        return;
    }
    if (probe_of(x)->is_neutron)
        tsr_words_add(words, "of neutrons in %.4g %% D2O ",
                      100.0 * x->l->view[x->examples.view].d2o);
    else
        tsr_words_add(words, "of X-rays ");
}

static void describe_error(const comparison *x, int n_error,
                           const double *before, const double *after,
                           tsr_words *words)
{
    static const double edge[] = {0.0, 0.1, 0.2, 0.3, 0.5};
    name_view(x, words);
    tsr_words_add(words,
                  "over %d conformation%s curves of bodies deviate from "
                  "all-atom curves by",
                  x->examples.n,
                  x->has_chains       ? "s of chains"
                  : x->examples.n > 1 ? "s of the prior"
                                      : "");
    for (int k = 0; k < 4; k++) {
        const double b =
            tsr_examples_percent(&x->examples, before, edge[k], edge[k + 1]);
        const double a =
            tsr_examples_percent(&x->examples, after, edge[k], edge[k + 1]);
        if (isnan(b))
            break;
        tsr_words_add(words, "%s %.2g -> %.2g %% (q %g to %g)",
                      k > 0 ? "," : "", b, a, edge[k], edge[k + 1]);
    }
    tsr_words_add(words, " before -> after correction; ");
    if (n_error > 0)
        tsr_words_add(words,
                      "the remaining error is integrated out in %d components",
                      n_error);
    else
        tsr_words_add(words, "the remaining error is not in the likelihood");
}

/* ---- remaining error ---- */

/* Values of (c1, c2) at which bodies and atoms are compared: 3 x 4 quantiles of
 * their priors, or the fixed values. */
static void set_contrast_nodes(comparison *x)
{
    double c1[4], c2[4];
    const int n1 = tsr_parameter_quantiles(&x->l->run_contrast[TSR_C1], 3, c1);
    const int n2 = tsr_parameter_quantiles(&x->l->run_contrast[TSR_C2], 4, c2);
    for (int i = 0; i < n1; i++)
        for (int j = 0; j < n2; j++) {
            x->examples.node[x->examples.n_node][TSR_C1] = c1[i];
            x->examples.node[x->examples.n_node++][TSR_C2] = c2[j];
        }
}

/* Sets the correction of a view, and the weights of c1 and c2, from the
 * examples so far. Those of chains have the c1 and c2 of the posterior. */
static tsr_status correct_view(comparison *x, tsr_err *err)
{
    const int mean = x->examples.n;
    TSR_TRY(tsr_likelihood_correct(
        x->l, x->examples.view, tsr_examples_atoms(&x->examples, mean),
        tsr_examples_bodies(&x->examples, mean), x->radius_ang, err));
    tsr_examples_weigh_nodes(&x->examples, !x->has_chains);
    return TSR_OK;
}

/* Once chains exist, an error may replace an earlier one, but not be the first:
 * a first error makes the fit depend on the noise parameters, and chains have
 * copied the scope of these parameters at their creation. */
static int may_set_error(const comparison *x)
{
    return !x->has_chains || x->l->view[x->examples.view].error.n > 0;
}

/* Learns the error that remains after the correction, passes it to the
 * likelihood, and describes it in `words`. */
static tsr_status learn_remaining_error(const tsr_config *config, comparison *x,
                                        tsr_words *words, tsr_err *err)
{
    const size_t n_q = (size_t)x->l->grid.n_q;
    const int is_all = config->model_error.learn == TSR_LEARN_ALL &&
                       x->examples.n >= MIN_EXAMPLES;
    const int n_regressor = tsr_likelihood_n_regressor(x->l);
    const int is_regressed =
        is_all && !probe_of(x)->is_neutron && x->examples.n >= 4 * n_regressor;
    double *square, *before, *weight, *covariance, *curve, *reference;
    int n = 0;
    tsr_pool_array(&x->pool, square, n_q);
    tsr_pool_array(&x->pool, before, n_q);
    tsr_pool_array(&x->pool, weight, TSR_REGRESSORS * n_q);
    tsr_pool_array(&x->pool, covariance, n_q * n_q);
    tsr_pool_array(&x->pool, curve, TSR_MODEL_ERRORS * n_q);
    tsr_pool_array(&x->pool, reference, n_q);
    TSR_TRY(tsr_pool_check(&x->pool, err));
    TSR_TRY(tsr_examples_compare(&x->examples, before, covariance,
                                 is_regressed ? weight : NULL, err));
    if (is_regressed)
        TSR_TRY(tsr_likelihood_regress(x->l, x->examples.view, weight, err));
    if (x->examples.n > 3)
        scale(n_q * n_q,
              tsr_examples_variance_factor(x->examples.n,
                                           is_regressed ? n_regressor : 0),
              covariance);
    for (size_t k = 0; k < n_q; k++)
        square[k] = covariance[k * n_q + k];
    if (is_all)
        n = tsr_examples_components(&x->examples, covariance, curve);
    const double start[TSR_N_CONTRAST] = {x->l->run_contrast[TSR_C1].start,
                                          x->l->run_contrast[TSR_C2].start};
    for (size_t k = 0; k < n_q; k++) {
        reference[k] = tsr_likelihood_combine_atoms(
            x->l, x->examples.view,
            tsr_examples_atoms(&x->examples, x->examples.n), start, k);
        for (size_t e = 0; e < (size_t)n; e++)
            curve[e * n_q + k] *= reference[k];
    }
    const tsr_profile_error error = {n, curve, reference};
    const int had = x->l->view[x->examples.view].error.n > 0;
    if (n > 0 ? may_set_error(x) : had && !x->has_chains)
        TSR_TRY(tsr_likelihood_set_model_error(x->l, x->examples.view, &error,
                                               err));
    describe_error(x, n, before, square, words);
    return TSR_OK;
}

/* Warns if the ratio of a neutron curve exceeds its bounds somewhere in the
 * range of c2. The curve then carries little information on the structure. */
static void warn_low_contrast(const comparison *x, tsr_log *log)
{
    enum { N = 17 };
    const tsr_likelihood *l = x->l;
    const tsr_view *view = &l->view[x->examples.view];
    const tsr_parameter *p = &x->l->contrast[TSR_C2];
    double least = HUGE_VAL, most = 0.0;
    for (int i = 0; i < (p->infer ? N : 1); i++)
        for (size_t k = 0; k < (size_t)l->grid.n_q; k++) {
            const double at[TSR_N_CONTRAST] = {
                x->l->contrast[TSR_C1].start,
                p->infer ? p->low + (p->high - p->low) * i / (N - 1)
                         : p->start};
            const double ratio =
                tsr_likelihood_combine_atoms(l, x->examples.view, view->atoms,
                                             at, k) /
                tsr_likelihood_combine(l, x->examples.view, view->bodies, at,
                                       probe_of(x)->power[k], k);
            least = fmin(least, ratio);
            most = fmax(most, ratio);
        }
    if (least < 1.0 / TSR_RATIO_BOUND || most > TSR_RATIO_BOUND)
        tsr_warn(
            log,
            "model error: neutrons in %.4g %% D2O have little contrast: atoms "
            "scatter %.2g to %.2g times as much as bodies over c2 and q; the "
            "correction is limited to %g to %g, the rest counts as model "
            "error, and the curve contains little information on the structure",
            100.0 * view->d2o, least, most, 1.0 / TSR_RATIO_BOUND,
            TSR_RATIO_BOUND);
}

/* Corrects a view, and learns its remaining error. Near the match point, bodies
 * and atoms may scatter too little for a comparison: neutron curves then stay
 * those of the bodies, and with chains the view keeps its earlier
 * correction. */
static tsr_status learn_view(const tsr_config *config, comparison *x,
                             tsr_words *words, tsr_err *err)
{
    tsr_err why = {0};
    const tsr_status status = correct_view(x, &why);
    if (status == TSR_OK)
        return learn_remaining_error(config, x, words, err);
    if (status != TSR_E_NUMERIC || !(probe_of(x)->is_neutron || x->has_chains))
        return tsr_fail(err, status, "%s", why.message);
    name_view(x, words);
    tsr_words_add(words, "the model error is %s: %s",
                  x->has_chains ? "unchanged" : "unknown", why.message);
    return TSR_OK;
}

/* Warns of neutron curves that carry little information, and of terms whose
 * noise model has no closed-form integral: these treat the remaining error as
 * noise. */
static void warn_of_error(comparison *x, tsr_log *log)
{
    const tsr_likelihood *l = x->l;
    for (int v = 0; v < l->n_view; v++) {
        x->examples.view = v;
        if (probe_of(x)->is_neutron && l->view[v].atoms != NULL)
            warn_low_contrast(x, log);
        else if (probe_of(x)->is_neutron)
            tsr_warn(log,
                     "model error: curves of neutrons in %.4g %% D2O are "
                     "computed from bodies: bodies and atoms scatter too "
                     "little there for a comparison",
                     100.0 * l->view[v].d2o);
    }
    for (int d = 0; d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        if (term->type->set_model_error != NULL &&
            l->view[term->view].error.n > 0 && term->n_error == 0)
            tsr_warn(log,
                     "'%s': its noise model has no integral in closed form: "
                     "the remaining model error counts as noise there",
                     term->label);
    }
}

/* Learns the error of all views from the examples, and replaces *x->text by
 * their descriptions, joined by "; ". */
static tsr_status learn_views(const tsr_config *config, comparison *x,
                              tsr_err *err)
{
    tsr_words words;
    tsr_status status = TSR_OK;
    tsr_words_begin(&words);
    compute_mean(x, tsr_examples_size(&x->examples, 1), x->examples.bodies);
    compute_mean(x, tsr_examples_atom_size(&x->examples, 1), x->examples.atoms);
    for (int v = 0; v < x->l->n_view && status == TSR_OK; v++) {
        x->examples.view = v;
        if (!x->has_chains || x->l->view[v].atoms != NULL)
            status = learn_view(config, x, &words, err);
    }
    free(*x->text);
    *x->text = tsr_words_end(&words);
    TSR_THEN(status, tsr_allocated(*x->text, err));
    return status;
}

/* ---- how many conformations ---- */

/* Copies the errors of all views, to compare them with later ones. error
 * [n_view] out; the arrays are of the pool. */
static tsr_status copy_errors(const tsr_likelihood *l, tsr_pool *pool,
                              tsr_profile_error *error, tsr_err *err)
{
    for (int v = 0; v < l->n_view; v++) {
        const tsr_profile_error *e = &l->view[v].error;
        const size_t n = ((size_t)e->n + 1) * (size_t)l->grid.n_q;
        double *curve;
        tsr_pool_array(pool, curve, n);
        TSR_TRY(tsr_pool_check(pool, err));
        if (e->n > 0)
            memcpy(curve, e->curve, n * sizeof *curve);
        error[v] =
            (tsr_profile_error){e->n, curve, curve + n - (size_t)l->grid.n_q};
    }
    return TSR_OK;
}

/* Learns the error from the examples so far. *settled out: 1 where the log
 * likelihood of no view changes much. */
static tsr_status learn_and_compare(const tsr_config *config, comparison *x,
                                    int *settled, tsr_err *err)
{
    const double enough = 0.1; /* nat */
    tsr_pool pool = {0};
    tsr_profile_error *before;
    tsr_pool_array(&pool, before, x->l->n_view);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, copy_errors(x->l, &pool, before, err));
    TSR_THEN(status, learn_views(config, x, err));
    *settled = 1;
    for (int v = 0; v < x->l->n_view && status == TSR_OK; v++) {
        x->examples.view = v;
        *settled &= tsr_examples_change(&x->examples, &before[v],
                                        &x->l->view[v].error) < enough;
    }
    tsr_pool_clear(&pool);
    return status;
}

/* The largest number of conformations: fewer for large molecules, of which each
 * takes longer. */
static int most_conformations(const tsr_setup *s)
{
    const int most = 4096, n = 16 + 1600000 / s->molecule.topology->n_body;
    return n > most ? most : n;
}

/* Learns from draws of the prior: from as many as the configuration says, or
 * from twice as many again and again until the likelihood no longer changes. */
static tsr_status learn_from_prior(const tsr_config *config, comparison *x,
                                   tsr_err *err)
{
    const tsr_number_or_word *wanted = &config->model_error.conformations;
    const int of_ratio = 256; /* enough where only the ratio is learnt */
    const int is_auto =
        wanted->word >= 0 && config->model_error.learn == TSR_LEARN_ALL;
    const int most = is_auto             ? most_conformations(x->s)
                     : wanted->word >= 0 ? of_ratio
                                         : (int)wanted->number;
    int settled = 0;
    TSR_TRY(reserve(x, most, err));
    TSR_TRY(open_streams(x, err));
    for (int n = is_auto ? N_STREAM : most; !settled && x->examples.n < most;
         n *= 2) {
        TSR_TRY(compute_prior_examples(x, n < most ? n : most, err));
        TSR_TRY(learn_and_compare(config, x, &settled, err));
    }
    return TSR_OK;
}

/* Learns from the starts, if nothing moves. */
static tsr_status learn_from_starts(const tsr_config *config, comparison *x,
                                    tsr_err *err)
{
    const tsr_molecule *m = &x->s->molecule;
    stream *s = &x->stream[0];
    x->examples.n = m->n_start > 0 ? m->n_start : 1;
    TSR_TRY(reserve(x, x->examples.n, err));
    tsr_pool_array(&x->pool, s->workspace, TSR_N_COMP_PAIR * x->l->grid.n_q);
    TSR_TRY(tsr_pool_check(&x->pool, err));
    for (int i = 0; i < x->examples.n; i++)
        TSR_TRY(compute_example(x, i, m->n_start > 0 ? m->start[i] : m->first,
                                s->curves, s->workspace, &x->radius_ang, err));
    return learn_views(config, x, err);
}

/* ---- the file ----
 *
 * Runs that are compared share one model error by a file (store/checkpoint.h)
 * with what was learnt. */

typedef struct {
    char *text;
    tsr_archive archive;
} error_file;

static void clear_file(error_file *f)
{
    free(f->text);
    tsr_archive_clear(&f->archive);
}

static tsr_status read_file(const char *path, error_file *f, tsr_err *err)
{
    const tsr_checkpoint_member members[] = {{"bodies", .archive = &f->archive},
                                             {"bodies/text", .text = &f->text},
                                             {0}};
    tsr_checkpoint *file = NULL;
    tsr_status status = tsr_checkpoint_open(path, &file, err);
    TSR_THEN(status, tsr_checkpoint_get(file, members, err));
    tsr_checkpoint_free(file);
    return status;
}

/* What the error depends on: the settings, values of c1 and c2, the data, and
 * the curve of the start by bodies on the grid of q. Saves these numbers, or
 * checks that those in the archive agree. */
static tsr_status archive_identity(const tsr_config *config, comparison *x,
                                   tsr_archive *a, tsr_err *err)
{
    const tsr_number_or_word *count = &config->model_error.conformations;
    const size_t n_node = TSR_EXAMPLE_NODES * TSR_N_CONTRAST;
    const size_t n_term = (size_t)x->l->n_term;
    const size_t n = 2 + n_node + n_term + tsr_examples_size(&x->examples, 1);
    double *own = calloc(2 * n, sizeof *own);
    TSR_TRY(tsr_allocated(own, err));
    double *stored = own + n, *sum = own + 2 + n_node;
    int differs = 0;
    own[0] = config->model_error.learn;
    own[1] = count->word < 0 ? count->number : 0.0;
    memcpy(own + 2, x->examples.node, n_node * sizeof *own);
    for (size_t d = 0; d < n_term; d++)
        for (int k = 0; k < x->l->term[d]->n_point; k++)
            sum[d] += x->l->term[d]->observed[k] / x->l->term[d]->sigma[k];
    tsr_status status = tsr_batch_set(
        x->batch, 0, (const double(*)[3])x->s->molecule.first->body,
        sum + n_term, err);
    memcpy(stored, own, n * sizeof *own);
    tsr_archive_real(a, stored, n);
    for (size_t k = 0; k < n; k++)
        differs |= fabs(stored[k] - own[k]) > 1e-3 * fabs(own[k]) + 1e-3;
    free(own);
    if (status == TSR_OK && (a->failed || differs))
        return tsr_fail(err, TSR_E_DATA,
                        "the model error was learnt for another molecule, "
                        "other data, flexible residues, contrast or settings "
                        "of model_error: remove the file, or name another");
    return status;
}

/* Takes the model error from the file. *found out: 0 where there is no file. */
static tsr_status restore_error(const tsr_config *config, comparison *x,
                                error_file *f, int *found, tsr_err *err)
{
    const char *path = config->model_error.file;
    *found = 0;
    if (path == NULL || access(path, F_OK) != 0)
        return TSR_OK;
    tsr_status status = read_file(path, f, err);
    TSR_TRY(tsr_wrap(err, status, "model_error.file"));
    tsr_archive_rewind(&f->archive);
    status = archive_identity(config, x, &f->archive, err);
    TSR_THEN(status, tsr_likelihood_archive(x->l, &f->archive, err));
    TSR_THEN(status, tsr_archive_end(&f->archive, err));
    TSR_TRY(tsr_wrap(err, status, "'%s'", path));
    free(*x->text);
    *x->text = f->text;
    f->text = NULL;
    *found = 1;
    return TSR_OK;
}

/* Writes the file. A run whose file cannot be written warns, and goes on. */
static tsr_status save_error(const tsr_config *config, comparison *x,
                             error_file *f, tsr_log *log, tsr_err *err)
{
    const char *path = config->model_error.file;
    const tsr_checkpoint_member members[] = {{"bodies", .archive = &f->archive},
                                             {"bodies/text", .text = x->text},
                                             {0}};
    tsr_err why = {0};
    if (path == NULL)
        return TSR_OK;
    tsr_archive_begin(&f->archive);
    TSR_TRY(archive_identity(config, x, &f->archive, err));
    TSR_TRY(tsr_likelihood_archive(x->l, &f->archive, err));
    TSR_TRY(tsr_archive_end(&f->archive, err));
    if (tsr_checkpoint_write(path, "", members, &why) != TSR_OK)
        tsr_warn(log, "model_error.file: not written: %s", why.message);
    return TSR_OK;
}

/* ---- learning before a run ---- */

/* Opens the curves of the first thread. *why_not out: the reason why the error
 * cannot be learnt, else "". */
static void open_curves(const tsr_config *config, comparison *x, tsr_log *log,
                        char why_not[TSR_ERR_SIZE])
{
    const char *why = tsr_config_why_no_atoms(config);
    int n_cut = 0;
    tsr_err reason = {0};
    snprintf(why_not, TSR_ERR_SIZE, "%s", why != NULL ? why : "");
    if (why == NULL &&
        tsr_atom_curves_new(&x->s->molecule, &x->l->grid,
                            x->s->devices.device[0], &n_cut,
                            &x->stream[0].curves, &reason) != TSR_OK)
        snprintf(why_not, TSR_ERR_SIZE, "%s", reason.message);
    if (n_cut > 0)
        tsr_warn(log,
                 "'%s': %d residue%s atoms, which do not scatter; complete "
                 "them (PDBFixer, MODELLER), or set model_error: none",
                 config->structure.file, n_cut,
                 n_cut == 1 ? " lacks" : "s lack");
}

static tsr_status learn(const tsr_config *config, comparison *x, tsr_log *log,
                        tsr_err *err)
{
    const double begin = tsr_clock_s();
    const char *path = config->model_error.file;
    error_file file = {0};
    int found;
    set_contrast_nodes(x);
    tsr_status status = restore_error(config, x, &file, &found, err);
    if (!found) {
        TSR_THEN(status, is_frozen(config, x->s->molecule.topology)
                             ? learn_from_starts(config, x, err)
                             : learn_from_prior(config, x, err));
        TSR_THEN(status, save_error(config, x, &file, log, err));
    }
    if (status == TSR_OK && found)
        tsr_info(log, "model error: %s (from '%s')", *x->text, path);
    else if (status == TSR_OK)
        tsr_info(log, "model error: %s (learnt in %.1f s%s%s%s)", *x->text,
                 tsr_clock_s() - begin, path != NULL ? ", for '" : "",
                 path != NULL ? path : "", path != NULL ? "'" : "");
    if (status == TSR_OK)
        warn_of_error(x, log);
    clear_file(&file);
    return status;
}

tsr_status tsr_setup_learn_model_error(const tsr_config *config,
                                       tsr_batch *batch, tsr_log *log,
                                       tsr_setup *setup, tsr_err *err)
{
    tsr_likelihood *likelihood = setup->data.likelihood;
    comparison x = {.s = setup,
                    .text = &setup->data.model_error,
                    .l = likelihood,
                    .batch = batch,
                    .caller = pthread_self(),
                    .examples = {.likelihood = likelihood}};
    char why_not[TSR_ERR_SIZE];
    if (setup->known_error != NULL)
        return tsr_likelihood_archive(likelihood, setup->known_error, err);
    open_curves(config, &x, log, why_not);
    if (why_not[0] != '\0') {
        tsr_info(log,
                 "model error unknown: curves are computed from the bodies, "
                 "since %s",
                 why_not);
        return TSR_OK;
    }
    pthread_mutex_init(&x.lock, NULL);
    const tsr_status status = learn(config, &x, log, err);
    for (int k = 0; k < N_STREAM; k++) {
        tsr_chain_free(x.stream[k].chain);
        tsr_atom_curves_free(x.stream[k].curves);
    }
    pthread_mutex_destroy(&x.lock);
    tsr_pool_clear(&x.pool);
    return status;
}

/* ---- learning from chains ---- */

tsr_status tsr_setup_relearn_model_error(const tsr_config *config, int n,
                                         const tsr_all_atom_example *example,
                                         tsr_log *log, tsr_setup *setup,
                                         tsr_err *err)
{
    tsr_likelihood *l = setup->data.likelihood;
    char *text = NULL;
    comparison x = {.s = setup,
                    .text = &text,
                    .l = l,
                    .examples = {l, .n = n},
                    .has_chains = 1,
                    .radius_ang = setup->atoms.radius_ang};
    const int n_node = n < TSR_EXAMPLE_NODES ? n : TSR_EXAMPLE_NODES;
    for (; x.examples.n_node < n_node; x.examples.n_node++)
        memcpy(x.examples.node[x.examples.n_node],
               example[x.examples.n_node * n / n_node].contrast,
               sizeof x.examples.node[0]);
    tsr_status status = reserve(&x, n, err);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        double *to = x.examples.bodies + tsr_examples_size(&x.examples, i);
        memcpy(x.examples.atoms + tsr_examples_atom_size(&x.examples, i),
               example[i].all_atom,
               tsr_examples_atom_size(&x.examples, 1) * sizeof *to);
        for (size_t k = 0; k < tsr_examples_size(&x.examples, 1); k++)
            to[k] = example[i].coarse[k] + l->self[k];
    }
    TSR_THEN(status, learn_views(config, &x, err));
    if (status == TSR_OK && *text != '\0')
        tsr_info(log, "model error of the bodies near the posterior: %s", text);
    free(text);
    tsr_pool_clear(&x.pool);
    if (setup->devices.surrogate != NULL)
        TSR_THEN(status, tsr_surrogate_update(setup->devices.surrogate, err));
    return status;
}

tsr_status tsr_setup_relearn_from_chains(const tsr_config *config, tsr_log *log,
                                         tsr_sampler *sampler, int last,
                                         tsr_setup *setup, tsr_err *err)
{
    /* fewer examples are not informative, and more hardly help */
    enum { FEWEST = 8, ENOUGH = 256 };
    int n = 0, n_kept = 0, n_seen = 0;
    TSR_TRY(tsr_sampler_share_examples(sampler, last, err));
    tsr_all_atom_example *list =
        calloc((size_t)(setup->n_chain * TSR_ALL_ATOM_EXAMPLES), sizeof *list);
    TSR_TRY(tsr_allocated(list, err));
    for (int c = 0; c < setup->n_chain; c++)
        n_kept += tsr_all_atom_chain_n_example(
            tsr_sampler_all_atom_chain(sampler, c));
    const int every = n_kept / ENOUGH + 1;
    for (int c = 0; c < setup->n_chain; c++) {
        const tsr_all_atom_chain *all_atom =
            tsr_sampler_all_atom_chain(sampler, c);
        for (int k = 0; k < tsr_all_atom_chain_n_example(all_atom); k++)
            if (n_seen++ % every == 0)
                list[n++] = tsr_all_atom_chain_example(all_atom, k);
    }
    tsr_status status =
        n < FEWEST
            ? TSR_OK
            : tsr_setup_relearn_model_error(config, n, list, log, setup, err);
    for (int c = 0; c < setup->n_chain; c++)
        tsr_all_atom_chain_set_learning(tsr_sampler_all_atom_chain(sampler, c),
                                        !last);
    free(list);
    return tsr_ranks_agree(status, NULL, err);
}

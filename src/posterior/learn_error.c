/* Learns the model error, the difference between the curves of bodies and those
 * of all atoms: before a run from draws of the prior, and with all-atom draws
 * again during warm-up from conformations of the chains.
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
#include "core/text.h"
#include "likelihood/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A random stream that no chain of a run uses. */
enum { LEARN_STREAM = 0x7e000000 };

/* Fewest conformations for a covariance. */
enum { MIN_EXAMPLES = 6 };

/* Comparison of a likelihood's model with all atoms whose water is
 * recomputed. */
typedef struct {
    const tsr_setup *s;
    tsr_likelihood *l;
    tsr_examples examples;
    tsr_pool pool; /* owns the arrays */
    double radius_ang;
    int has_chains; /* 1: chains exist, and the error is learnt again */
    const tsr_likelihood
        *all_atom; /* likelihood of the all-atom chains that collected the
                      examples. Its own model error is added to that of the
                      bodies. NULL: the examples are draws of the prior */
    tsr_profiler *profiler;
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
            curves, conformation, p->is_neutron ? &data->sample[k] : NULL,
            p->basis.origin, workspace, radius_ang, err));
        if (p->is_neutron)
            tsr_neutron_fold(&p->basis, l->contrast, grid->n_q, workspace);
        else
            tsr_partials_fold(l->contrast, *radius_ang, grid->n_q,
                              grid->dq_inv_ang, workspace);
        memcpy(partial + (ptrdiff_t)p->first * grid->n_q, workspace,
               (size_t)(p->n_pair * grid->n_q) * sizeof *workspace);
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
    int n = t->n_torsion + t->n_side;
    for (int c = 0; c < t->n_chain; c++)
        n += t->mobile[c];
    return config->structure.frozen || n == 0;
}

static int count_conformations(const tsr_config *config, const tsr_setup *s)
{
    const tsr_number_or_word *wanted = &config->model_error.conformations;
    const int n = 8 + 6000 / s->molecule.topology->n_body, most = 32;
    if (is_frozen(config, s->molecule.topology))
        return s->molecule.n_start > 0 ? s->molecule.n_start : 1;
    return wanted->word < 0 ? (int)wanted->number : n > most ? most : n;
}

/* `all` [n + 1][n_pair][n_q] has the profiles of the n examples, and their mean
 * as row n. Adds example i to the mean. self: S_ab, which engines leave out, is
 * added to the example; NULL: already included. */
static void add_to_mean(const comparison *x, double *all, int i,
                        const double *self)
{
    const size_t n = tsr_examples_size(&x->examples, 1);
    double *own = all + n * (size_t)i, *mean = all + n * (size_t)x->examples.n;
    for (size_t k = 0; k < n; k++) {
        own[k] += self != NULL ? self[k] : 0.0;
        mean[k] += own[k] / x->examples.n;
    }
}

static tsr_status reserve(comparison *x, tsr_err *err)
{
    const size_t n = tsr_examples_size(&x->examples, x->examples.n + 1);
    tsr_pool_array(&x->pool, x->examples.atoms, n);
    tsr_pool_array(&x->pool, x->examples.bodies, n);
    return tsr_pool_check(&x->pool, err);
}

static tsr_status compute_example(comparison *x, int i,
                                  const tsr_conformation *c,
                                  tsr_atom_curves *curves, double *workspace,
                                  tsr_err *err)
{
    double *atoms = x->examples.atoms + tsr_examples_size(&x->examples, i);
    double *bodies = x->examples.bodies + tsr_examples_size(&x->examples, i);
    TSR_TRY(tsr_data_sum_atoms(&x->s->data, x->l, curves, c, workspace, atoms,
                               &x->radius_ang, err));
    add_to_mean(x, x->examples.atoms, i, NULL);
    TSR_TRY(tsr_profiler_run(x->profiler, c, bodies, err));
    add_to_mean(x, x->examples.bodies, i, x->l->self);
    return TSR_OK;
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
                                 const char *what, tsr_err *err)
{
    for (long i = 0; i < n; i++) {
        tsr_body_proposal ask;
        int accepted;
        if (tsr_stop_requested)
            return tsr_fail(err, TSR_E_INTERRUPTED, "interrupted while %s",
                            what);
        tsr_chain_propose(chain, &ask);
        TSR_TRY(tsr_chain_decide(chain, NULL, warm, &accepted, err));
    }
    return TSR_OK;
}

/* Examples from draws of a chain on the prior, separated by enough steps to be
 * nearly independent. */
static tsr_status compute_prior_examples(comparison *x, tsr_atom_curves *curves,
                                         double *workspace, tsr_err *err)
{
    static const char what[] = "the model error was learnt";
    const tsr_topology *t = x->s->molecule.topology;
    const long apart = (1000 + 30 * (t->n_torsion + t->n_side)) / 2;
    tsr_target prior = tsr_setup_prior_target(&x->s->target, 1);
    tsr_chain *chain = NULL;
    prior.seed = TSR_MODEL_SEED;
    tsr_status status = tsr_chain_new(&prior, LEARN_STREAM, &chain, err);
    TSR_THEN(status, tsr_setup_prior_steps(chain, apart, 1, what, err));
    for (int i = 0; i < x->examples.n && status == TSR_OK; i++) {
        tsr_chain_view view;
        status = tsr_setup_prior_steps(chain, apart, 0, what, err);
        if (status == TSR_OK) {
            tsr_chain_view_get(chain, &view);
            status = compute_example(x, i, view.conformation, curves, workspace,
                                     err);
        }
    }
    tsr_chain_free(chain);
    return status;
}

/* Examples from draws of the prior, or from the starts if nothing moves. */
static tsr_status compute_examples(comparison *x, int is_frozen,
                                   tsr_atom_curves *curves, tsr_err *err)
{
    const tsr_molecule *m = &x->s->molecule;
    double *workspace;
    tsr_pool_array(&x->pool, workspace, TSR_N_COMP_PAIR * x->l->grid.n_q);
    tsr_status status = reserve(x, err);
    if (!is_frozen)
        TSR_THEN(status, compute_prior_examples(x, curves, workspace, err));
    for (int i = 0; i < x->examples.n && is_frozen; i++)
        TSR_THEN(status,
                 compute_example(x, i, m->n_start > 0 ? m->start[i] : m->first,
                                 curves, workspace, err));
    return status;
}

/* ---- remaining error ---- */

/* Values of (c1, c2) at which bodies and atoms are compared: 3 x 4 quantiles of
 * their priors, or the fixed values. */
static void set_contrast_nodes(comparison *x)
{
    double c1[4], c2[4];
    const int n1 = tsr_parameter_quantiles(&x->l->contrast[TSR_C1], 3, c1);
    const int n2 = tsr_parameter_quantiles(&x->l->contrast[TSR_C2], 4, c2);
    for (int i = 0; i < n1; i++)
        for (int j = 0; j < n2; j++) {
            x->examples.node[x->examples.n_node][TSR_C1] = c1[i];
            x->examples.node[x->examples.n_node++][TSR_C2] = c2[j];
        }
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
    tsr_words_add(words, "over %d conformation%s %s by", x->examples.n,
                  x->has_chains       ? "s of chains"
                  : x->examples.n > 1 ? "s of the prior"
                                      : "",
                  x->l->particles == NULL
                      ? "curves of bodies deviate from all-atom curves"
                      : "curves with the starting water layer deviate from "
                        "curves with a new water layer");
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
    tsr_words_add(words, " before -> after correction by their ratio; ");
    if (n_error > 0)
        tsr_words_add(words,
                      "the remaining error is integrated out in %d components",
                      n_error);
    else
        tsr_words_add(words, "the remaining error is not in the likelihood");
}

/* ---- the whole ---- */

/* Once chains exist, an error may replace an earlier one, but not be the first:
 * a first error makes the fit depend on the noise parameters, and chains have
 * copied the scope of these parameters at their creation. */
static int may_set_error(const comparison *x)
{
    return !x->has_chains || x->l->view[x->examples.view].error.n > 0;
}

/* Adds the error of the all-atom model itself, which bodies have as well.
 * Otherwise the posterior of the bodies would be narrower than the all-atom
 * posterior for which it proposes. */
static void add_all_atom_error(const comparison *x, double *square,
                               double *covariance)
{
    const tsr_profile_error *e = &x->all_atom->view[x->examples.view].error;
    const size_t n_q = (size_t)x->l->grid.n_q;
    const double by = x->examples.n > 3
                          ? 1.0 / tsr_examples_variance_factor(x->examples.n)
                          : 1.0;
    for (size_t c = 0; c < (size_t)e->n; c++)
        for (size_t k = 0; k < n_q; k++) {
            const double own = e->curve[c * n_q + k] / e->reference[k];
            square[k] += by * own * own;
            for (size_t j = 0; j < n_q; j++)
                covariance[k * n_q + j] +=
                    by * own * e->curve[c * n_q + j] / e->reference[j];
        }
}

/* Learns the error that remains after the correction, passes it to the
 * likelihood, and describes it in `words`. */
static tsr_status learn_remaining_error(const tsr_config *config, comparison *x,
                                        tsr_words *words, tsr_err *err)
{
    const size_t n_q = (size_t)x->l->grid.n_q;
    double *square, *before, *left, *covariance, *curve, *reference;
    int n = 0;
    tsr_pool_array(&x->pool, square, n_q);
    tsr_pool_array(&x->pool, before, n_q);
    tsr_pool_array(&x->pool, left, n_q);
    tsr_pool_array(&x->pool, covariance, n_q * n_q);
    tsr_pool_array(&x->pool, curve, TSR_MODEL_ERRORS * n_q);
    tsr_pool_array(&x->pool, reference, n_q);
    TSR_TRY(tsr_pool_check(&x->pool, err));
    tsr_examples_moments(&x->examples, 1, before, NULL, left);
    tsr_examples_moments(&x->examples, 0, square, covariance, left);
    if (x->all_atom != NULL)
        add_all_atom_error(x, square, covariance);
    if (x->examples.n >= MIN_EXAMPLES &&
        config->model_error.learn == TSR_LEARN_ALL)
        n = tsr_examples_components(&x->examples, square, covariance, curve);
    const double start[TSR_N_CONTRAST] = {x->l->contrast[TSR_C1].start,
                                          x->l->contrast[TSR_C2].start};
    for (size_t k = 0; k < n_q; k++) {
        reference[k] = tsr_likelihood_combine(
            x->l, x->examples.view,
            x->examples.atoms +
                tsr_examples_offset(&x->examples, x->examples.n),
            start, x->l->view[x->examples.view].atom_power[k], k);
        for (size_t e = 0; e < (size_t)n; e++)
            curve[e * n_q + k] *= reference[k];
    }
    const tsr_profile_error error = {n, curve, reference};
    if (n > 0 && may_set_error(x))
        TSR_TRY(tsr_likelihood_set_model_error(x->l, x->examples.view, &error,
                                               err));
    for (size_t k = 0; k < n_q && x->examples.n > 3; k++)
        square[k] *= tsr_examples_variance_factor(x->examples.n);
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
                tsr_likelihood_combine(l, x->examples.view, view->atoms, at,
                                       view->atom_power[k], k) /
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
                             tsr_log *log, tsr_words *words, tsr_err *err)
{
    const size_t mean = tsr_examples_offset(&x->examples, x->examples.n);
    tsr_err why = {0};
    tsr_status status =
        tsr_likelihood_correct(x->l, x->examples.view, x->examples.atoms + mean,
                               x->examples.bodies + mean, x->radius_ang, &why);
    if (status == TSR_OK && probe_of(x)->is_neutron)
        warn_low_contrast(x, log);
    if (status == TSR_OK)
        return learn_remaining_error(config, x, words, err);
    const int is_neutron = probe_of(x)->is_neutron;
    if (status != TSR_E_NUMERIC || !(is_neutron || x->has_chains))
        return tsr_fail(err, status, "%s", why.message);
    name_view(x, words);
    if (x->has_chains)
        tsr_words_add(words, "the model error is unchanged: %s", why.message);
    else
        tsr_words_add(words, "the model error is unknown");
    tsr_warn(log, "model error: %s: %s",
             x->has_chains ? "the model error learnt before is kept"
                           : "curves of neutrons are computed from bodies",
             why.message);
    return TSR_OK;
}

/* Warns of terms whose noise model has no closed-form integral: they treat the
 * remaining error as noise. */
static void warn_without_integral(const tsr_likelihood *l, tsr_log *log)
{
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

/* Copies the all-atom profiles of the examples, and multiplies them by the
 * ratio with which the all-atom likelihood corrects this view at the c1 and c2
 * of the example. */
static void load_all_atom_curves(comparison *x,
                                 const tsr_all_atom_example *example)
{
    const tsr_likelihood *all_atom = x->all_atom;
    const tsr_view *view = &all_atom->view[x->examples.view];
    const tsr_probe *p = &all_atom->probe[view->probe];
    const size_t n = tsr_examples_size(&x->examples, 1),
                 n_q = (size_t)all_atom->grid.n_q;
    memset(x->examples.atoms + n * (size_t)x->examples.n, 0,
           n * sizeof *x->examples.atoms);
    for (int i = 0; i < x->examples.n; i++) {
        double *to = x->examples.atoms + n * (size_t)i;
        memcpy(to, example[i].all_atom, n * sizeof *to);
        for (size_t k = 0; k < n_q && view->atoms != NULL; k++) {
            const double by = tsr_likelihood_ratio(all_atom, x->examples.view,
                                                   example[i].contrast, k);
            for (int pair = p->first; pair < p->first + p->n_pair; pair++)
                to[(size_t)pair * n_q + k] *= by;
        }
        add_to_mean(x, x->examples.atoms, i, NULL);
    }
}

/* Learns the error of all views. *text out: their descriptions, joined by ";
 * ". */
static tsr_status learn_views(const tsr_config *config, comparison *x,
                              tsr_log *log, const tsr_all_atom_example *example,
                              char **text, tsr_err *err)
{
    tsr_words words;
    tsr_status status = TSR_OK;
    tsr_words_begin(&words);
    for (; x->examples.view < x->l->n_view && status == TSR_OK;
         x->examples.view++) {
        if (example != NULL && x->l->view[x->examples.view].atoms == NULL)
            continue;
        if (example != NULL)
            load_all_atom_curves(x, example);
        status = learn_view(config, x, log, &words, err);
    }
    *text = tsr_words_end(&words);
    TSR_THEN(status, tsr_allocated(*text, err));
    return status;
}

tsr_status tsr_setup_learn_model_error(const tsr_config *config,
                                       tsr_likelihood *likelihood,
                                       tsr_profiler *profiler, tsr_log *log,
                                       tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    tsr_likelihood *l = likelihood;
    char **text = &s->data.model_error;
    const double begin = tsr_clock_s();
    const char *why = tsr_config_why_no_atoms(config);
    tsr_atom_curves *curves = NULL;
    tsr_err reason;
    int n_cut = 0;
    if (why != NULL) {
        tsr_info(
            log,
            "model error unknown: curves are computed from the %s, since %s",
            l->particles == NULL ? "bodies" : "atoms without a correction",
            why);
        return TSR_OK;
    }
    if (tsr_atom_curves_new(&s->molecule, &l->grid, s->devices.device[0],
                            &n_cut, &curves, &reason) != TSR_OK) {
        tsr_info(log,
                 "model error unknown: curves are computed from bodies: %s",
                 reason.message);
        return TSR_OK;
    }
    if (n_cut > 0)
        tsr_warn(log,
                 "'%s': %d residue%s atoms, which do not scatter; complete "
                 "them (PDBFixer, MODELLER), or set model_error: none",
                 config->structure.file, n_cut,
                 n_cut == 1 ? " lacks" : "s lack");
    comparison x = {.s = s,
                    .l = l,
                    .profiler = profiler,
                    .examples = {l, .n = count_conformations(config, s)}};
    set_contrast_nodes(&x);
    tsr_status status = compute_examples(
        &x, is_frozen(config, s->molecule.topology), curves, err);
    if (status == TSR_OK) {
        free(*text);
        status = learn_views(config, &x, log, NULL, text, err);
    }
    if (status == TSR_OK) {
        tsr_info(log, "model error: %s (learnt in %.1f s)", *text,
                 tsr_clock_s() - begin);
        warn_without_integral(l, log);
    }
    tsr_pool_clear(&x.pool);
    tsr_atom_curves_free(curves);
    return status;
}

/* ---- learning from chains ---- */

tsr_status tsr_setup_relearn_model_error(const tsr_config *config, int n,
                                         const tsr_all_atom_example *example,
                                         tsr_log *log, tsr_setup *setup,
                                         tsr_err *err)
{
    tsr_likelihood *l = setup->data.likelihood;
    comparison x = {.s = setup,
                    .l = l,
                    .examples = {l, .n = n},
                    .has_chains = 1,
                    .all_atom = setup->atoms.likelihood,
                    .radius_ang = setup->atoms.particles->radius_ang};
    char *text = NULL;
    const int n_node = n < TSR_EXAMPLE_NODES ? n : TSR_EXAMPLE_NODES;
    for (; x.examples.n_node < n_node; x.examples.n_node++)
        memcpy(x.examples.node[x.examples.n_node],
               example[x.examples.n_node * n / n_node].contrast,
               sizeof x.examples.node[0]);
    tsr_status status = reserve(&x, err);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        memcpy(x.examples.bodies + tsr_examples_size(&x.examples, i),
               example[i].coarse,
               tsr_examples_size(&x.examples, 1) * sizeof *x.examples.bodies);
        add_to_mean(&x, x.examples.bodies, i, l->self);
    }
    TSR_THEN(status, learn_views(config, &x, NULL, example, &text, err));
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
    return status == TSR_OK ? tsr_sampler_refresh(sampler, err) : status;
}

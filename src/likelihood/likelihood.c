/* The likelihood of a run: the list of term kinds, functions common to all
 * terms, the sum over the terms, and the profiles that they share.
 *
 * The scope of a change decides what is recomputed. New weights of the states
 * in a sample change its mean partial profiles and everything that follows from
 * them. New
 * c1 or c2 change the profiles and everything that follows from them. A
 * parameter of one term changes the fit of this term, or only its likelihood.
 * tsr_point_swap exchanges exactly these parts, so an accepted step copies no
 * profiles. */
#include "likelihood/likelihood.h"

#include "likelihood/term_saxs.h"

#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- terms ---- */

#define X(name) &tsr_term_##name,
const tsr_term_type *const tsr_term_registry[] = {TSR_TERMS(X) NULL};
#undef X

tsr_field_kind tsr_term_kind(int number)
{
    const tsr_term_type *type = tsr_term_registry[number];
    return type == NULL ? (tsr_field_kind){.name = NULL}
                        : (tsr_field_kind){type->name, type->doc, type->fields};
}

void tsr_term_print_setting(FILE *out, const char *name,
                            tsr_number_or_word value)
{
    if (value.word == 0 || value.word == TSR_BACKGROUND_INFER)
        fprintf(out, "%s was free", name);
    else
        fprintf(out, "%s was %g", name, value.number);
}

int tsr_term_is_same_family(const tsr_term_type *a, const tsr_term_type *b)
{
    return a == b || (a->is_curve && b->is_curve);
}

tsr_term *tsr_term_new(const tsr_term_type *type, int number)
{
    tsr_pool pool = {0};
    tsr_term *term = tsr_pool_new(&pool, 1, type->size);
    if (term == NULL)
        return NULL;
    term->type = type;
    term->pool = pool;
    term->number = number;
    return term;
}

tsr_status tsr_term_read(const tsr_term_source *source, tsr_term **out,
                         tsr_err *err)
{
    const tsr_term_type *type = tsr_term_registry[source->options->kind];
    tsr_term *term = tsr_term_new(type, source->number);
    tsr_status status = tsr_allocated(term, err);
    TSR_THEN(status, type->read(source, term, err));
    TSR_HAND_OVER(status, term, out, tsr_term_free);
}

void tsr_term_free(tsr_term *term)
{
    if (term == NULL)
        return;
    if (term->type->free != NULL)
        term->type->free(term);
    tsr_pool pool = term->pool;
    tsr_pool_clear(&pool);
}

void tsr_term_add_note(tsr_term *term, const char *name, const char *text,
                       const double *value)
{
    if (term->n_note < TSR_TERM_NOTES)
        term->note[term->n_note++] = (tsr_term_note){name, text, value};
}

void *tsr_term_fit_new(const tsr_term *term, tsr_pool *pool)
{
    return term->type->fit_new != NULL
               ? term->type->fit_new(term, pool)
               : tsr_pool_new(pool, 1, term->type->fit_size);
}

double tsr_term_log_point(const tsr_term *term, const void *fit,
                          const double *theta, int k, double value)
{
    return term->type->log_point != NULL
               ? term->type->log_point(term, theta, k, value)
               : term->type->log_lik(term, fit, theta);
}

double tsr_term_draw_point(const tsr_term *term, const double *theta, int k,
                           double value, gsl_rng *rng)
{
    return term->type->draw_point != NULL
               ? term->type->draw_point(term, theta, k, value, rng)
               : value;
}

/* Sets theta[i] to the value of maximum likelihood on a grid from three prior
 * widths below the prior's mean to three above, in steps of a tenth. */
static tsr_status find_best(const tsr_term *term, int i,
                            const tsr_prediction *prediction, void *fit,
                            double *theta, tsr_err *err)
{
    const tsr_parameter *p = &term->parameter[i];
    double most = -HUGE_VAL, best = theta[i];
    for (int k = -30; k <= 30; k++) {
        theta[i] = p->mean + 0.1 * k * p->width;
        TSR_TRY(term->type->fit(term, NULL, prediction, theta, fit, err));
        const double log_lik = term->type->log_lik(term, fit, theta);
        if (log_lik > most) {
            most = log_lik;
            best = theta[i];
        }
    }
    theta[i] = best;
    return TSR_OK;
}

tsr_status tsr_term_predict_start(tsr_term *term,
                                  const tsr_prediction *prediction,
                                  tsr_err *err)
{
    double theta[TSR_TERM_PARAMETERS];
    tsr_pool pool = {0};
    void *fit = tsr_term_fit_new(term, &pool);
    if (term->start == NULL)
        tsr_pool_array(&term->pool, term->start, term->n_point);
    tsr_status status = tsr_allocated(fit, err);
    TSR_THEN(status, tsr_allocated(term->start, err));
    tsr_term_start(term, theta);
    for (int i = 0; i < term->n_parameter && status == TSR_OK; i++) {
        const tsr_parameter *p = &term->parameter[i];
        if (p->infer && p->scope == TSR_CHANGES_FIT &&
            p->shape == TSR_PRIOR_NORMAL)
            status = find_best(term, i, prediction, fit, theta, err);
    }
    TSR_THEN(status, term->type->fit(term, NULL, prediction, theta, fit, err));
    if (status == TSR_OK)
        term->type->predict(term, prediction, fit, theta, term->start);
    tsr_pool_clear(&pool);
    return status;
}

int tsr_term_n_free(const tsr_term *term)
{
    int n = 0;
    for (int i = 0; i < term->n_parameter; i++)
        n += term->parameter[i].infer;
    return n;
}

void tsr_term_start(const tsr_term *term, double *theta)
{
    for (int i = 0; i < term->n_parameter; i++)
        theta[i] = term->parameter[i].start;
}

void tsr_term_variable(const tsr_term_type *type, int ordinal, const char *name,
                       size_t size, char *out)
{
    char number[16] = "";
    const int is_plain =
        type->is_curve || strncmp(name, type->name, strlen(type->name)) == 0;
    if (ordinal > 0)
        snprintf(number, sizeof number, "_%d", ordinal + 1);
    snprintf(out, size, "%s%s%s%s", is_plain ? "" : type->name,
             is_plain ? "" : "_", name, number);
}

/* ---- sum over the terms ---- */

void tsr_likelihood_free(tsr_likelihood *likelihood)
{
    if (likelihood == NULL)
        return;
    for (int d = 0; d < likelihood->n_term; d++)
        tsr_term_free(likelihood->term[d]);
    tsr_pool pool = likelihood->pool;
    tsr_pool_clear(&pool);
}

/* power [n_q]: tsr_component_power on the grid. */
static void set_power(const tsr_likelihood *l, double radius_ang, double *power)
{
    for (int k = 0; k < l->grid.n_q; k++)
        power[k] = tsr_component_power(radius_ang, k * l->grid.dq_inv_ang);
}

/* Computes the form factors of a probe on the grid, and appends its S_ab to
 * those of the earlier probes. */
static tsr_status init_probe(tsr_likelihood *l, const tsr_topology *topology,
                             const tsr_scattering *scattering, tsr_probe *probe,
                             tsr_err *err)
{
    tsr_coarse_spec coarse;
    const size_t n_q = (size_t)l->grid.n_q;
    TSR_TRY(tsr_scattering_spec(scattering, topology, l->grid.n_q,
                                l->grid.dq_inv_ang, &l->pool, &coarse, err));
    probe->n_comp = coarse.spec.n_comp;
    probe->n_pair = probe->n_comp * (probe->n_comp + 1) / 2;
    probe->first = l->n_pair;
    probe->n_type = coarse.spec.n_type;
    probe->type = coarse.type;
    probe->amplitude = coarse.form_factor;
    probe->is_neutron = scattering->neutron != NULL;
    if (probe->is_neutron)
        probe->basis = *tsr_neutron_bodies_basis(scattering->neutron);
    const int n_comp =
        probe->n_comp + (scattering->run_contrast != NULL &&
                         scattering->run_contrast[TSR_C1].infer &&
                         !scattering->contrast[TSR_C1].infer);
    probe->n_atom_pair = n_comp * (n_comp + 1) / 2;
    probe->first_atom = l->n_atom_pair;
    l->n_pair += probe->n_pair;
    l->n_atom_pair += probe->n_atom_pair;
    l->self = tsr_pool_resize(&l->pool, l->self, (size_t)l->n_pair * n_q,
                              sizeof *l->self);
    tsr_pool_array(&l->pool, probe->power, n_q);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    memcpy(l->self + (size_t)probe->first * n_q, coarse.self,
           (size_t)probe->n_pair * n_q * sizeof *l->self);
    set_power(l, coarse.radius_ang, probe->power);
    return TSR_OK;
}

static tsr_status init_probes(tsr_likelihood *l, const tsr_topology *topology,
                              int n, const tsr_scattering *scattering,
                              tsr_err *err)
{
    tsr_pool_array(&l->pool, l->probe, n);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    for (int i = 0; i < n; i++) {
        l->n_probe++;
        TSR_TRY(init_probe(l, topology, &scattering[i], &l->probe[i], err));
    }
    const tsr_parameter *run = scattering->run_contrast != NULL
                                   ? scattering->run_contrast
                                   : scattering->contrast;
    for (int i = 0; i < TSR_N_CONTRAST && scattering->contrast != NULL; i++) {
        l->contrast[i] = scattering->contrast[i];
        l->run_contrast[i] = run[i];
    }
    return TSR_OK;
}

/* Assigns a view to every term that needs a profile. Terms with the same probe
 * and solvent use the same view. */
static void make_views(tsr_likelihood *l)
{
    for (int d = 0; d < l->n_term; d++) {
        tsr_term *term = l->term[d];
        const double d2o = term->neutron != NULL ? term->neutron->d2o : 0.0;
        if ((term->type->needs & TSR_NEEDS_PROFILE) == 0)
            continue;
        for (term->view = 0; term->view < l->n_view; term->view++)
            if (l->view[term->view].probe == term->probe &&
                l->view[term->view].d2o == d2o)
                break;
        if (term->view == l->n_view)
            l->view[l->n_view++] = (tsr_view){.probe = term->probe, .d2o = d2o};
    }
}

/* Sets the index of each term's first parameter in the chain's table, and its
 * number among the terms of its family. */
static void number_terms(tsr_likelihood *l)
{
    for (int d = 0; d < l->n_term; d++) {
        tsr_term *term = l->term[d];
        term->first = l->n_parameter;
        l->n_parameter += term->n_parameter;
        int e = d - 1;
        while (e >= 0 && !tsr_term_is_same_family(l->term[e]->type, term->type))
            e--;
        term->ordinal = e < 0 ? 0 : l->term[e]->ordinal + 1;
    }
}

/* Order of two terms with weights of their own, for qsort; 0: both are of one
 * sample. */
static int compare_samples(const void *one, const void *other)
{
    const tsr_term *a = *(tsr_term *const *)one;
    const tsr_term *b = *(tsr_term *const *)other;
    if (isnan(a->at) || isnan(b->at))
        return isnan(a->at) && isnan(b->at) ? a->number - b->number
                                            : isnan(a->at) - isnan(b->at);
    return (a->at > b->at) - (a->at < b->at);
}

/* Assigns a mixture to every term. */
static tsr_status find_mixtures(tsr_likelihood *l, tsr_err *err)
{
    tsr_term **own;
    int n = 0;
    tsr_pool_array(&l->pool, own, l->n_term + 1);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    for (int d = 0; d < l->n_term; d++)
        if (l->term[d]->has_own_weights)
            own[n++] = l->term[d];
    qsort(own, (size_t)n, sizeof(*own), compare_samples);
    l->n_mixture = n < l->n_term || n == 0;
    for (int i = 0; i < n; i++) {
        l->n_mixture += i == 0 || compare_samples(&own[i - 1], &own[i]) != 0;
        own[i]->mixture = l->n_mixture - 1;
    }
    return TSR_OK;
}

static tsr_status init_likelihood(tsr_likelihood *l,
                                  const tsr_topology *topology, int n_probe,
                                  const tsr_scattering *scattering,
                                  double d_bound_ang, tsr_err *err)
{
    double q_max = 0.0;
    for (int d = 0; d < l->n_term; d++)
        q_max = fmax(q_max, l->term[d]->q_max_inv_ang);
    number_terms(l);
    TSR_TRY(find_mixtures(l, err));
    if (q_max > 0.0) {
        l->grid = tsr_q_grid_make(d_bound_ang, q_max);
        TSR_TRY(init_probes(l, topology, n_probe, scattering, err));
    }
    make_views(l);
    for (int d = 0; d < l->n_term; d++)
        if (l->term[d]->type->prepare != NULL)
            TSR_TRY(l->term[d]->type->prepare(l->term[d], &l->grid, err));
    return TSR_OK;
}

tsr_status tsr_likelihood_new(const tsr_topology *topology, int n_probe,
                              const tsr_scattering *scattering,
                              double d_bound_ang, int n_term, tsr_term **term,
                              tsr_likelihood **out, tsr_err *err)
{
    tsr_pool pool = {0};
    tsr_likelihood *l = *out = tsr_pool_new(&pool, 1, sizeof *l);
    tsr_term **copy = tsr_pool_new(&pool, (size_t)n_term, sizeof(*copy));
    tsr_view *view = tsr_pool_new(&pool, (size_t)n_term, sizeof *view);
    tsr_status status = tsr_pool_check(&pool, err);
    if (status == TSR_OK) {
        *l = (tsr_likelihood){
            .pool = pool, .n_term = n_term, .term = copy, .view = view};
        memcpy(copy, term, (size_t)n_term * sizeof(*copy));
        status =
            init_likelihood(l, topology, n_probe, scattering, d_bound_ang, err);
        if (status != TSR_OK)
            tsr_likelihood_free(l);
    } else {
        for (int d = 0; d < n_term; d++)
            tsr_term_free(term[d]);
        tsr_pool_clear(&pool);
    }
    if (status != TSR_OK)
        *out = NULL;
    return status;
}

/* ---- species ---- */

/* The free share u = c_0 / c solves u + sum_s n_s u^n_s (c / kd_s)^(n_s - 1) =
 * 1. The left side is convex and rises, so Newton's steps descend to the
 * solution from any u above. Such a u is 1, and where one term alone is 1. */
void tsr_species_equilibrium(int n, const int *n_unit, const double *kd,
                             double c, double *fraction)
{
    double u = 1.0, step = 1.0;
    for (int s = 1; s < n; s++)
        u = fmin(u, exp((log(kd[s] / c) * (n_unit[s] - 1) - log(n_unit[s])) /
                        n_unit[s]));
    for (int i = 0; i < 200 && step > 1e-15 * u; i++) {
        double value = u - 1.0, slope = 1.0;
        for (int s = 1; s < n; s++) {
            const double order = n_unit[s];
            const double term = order * pow(u * c / kd[s], order - 1.0);
            value += term * u;
            slope += term * order;
        }
        step = value / slope;
        u -= step;
    }
    fraction[0] = 1.0;
    for (int s = 1; s < n; s++) {
        fraction[s] = n_unit[s] * u * pow(u * c / kd[s], n_unit[s] - 1.0);
        fraction[0] -= fraction[s];
    }
    fraction[0] = fmax(fraction[0], 0.0);
}

static tsr_parameter kd_parameter(const tsr_species *s, const char *name)
{
    const int infer = s->kd.word > 0;
    const double low = log(s->kd_range[0]), high = log(s->kd_range[1]);
    return (tsr_parameter){
        .name = name,
        .doc = "apparent dissociation constant into the first species",
        .infer = infer,
        .is_log = 1,
        .start = infer ? 0.5 * (low + high) : log(s->kd.number),
        .high = HUGE_VAL,
        .shape = TSR_PRIOR_UNIFORM,
        .mean = 0.5 * (low + high),
        .width = 0.5 * (high - low),
        .step = infer ? TSR_STEP_WALK : TSR_STEP_NONE,
        .scope = TSR_CHANGES_PROFILE};
}

static tsr_parameter fraction_parameter(int n, int is_first)
{
    return (tsr_parameter){.name = "fraction",
                           .doc = "mass fraction of the species",
                           .infer = 1,
                           .start = 1.0 / n,
                           .high = 1.0,
                           .shape = TSR_PRIOR_SIMPLEX,
                           .log_norm = is_first ? gsl_sf_lngamma(n) : 0.0,
                           .step = TSR_STEP_PAIR,
                           .scope = TSR_CHANGES_PROFILE};
}

tsr_status tsr_likelihood_set_species(tsr_likelihood *l, int n,
                                      const tsr_species *species, tsr_err *err)
{
    const int has_kd = species[n - 1].kd.word != 0;
    l->n_species = l->n_view = n;
    l->n_mixing = has_kd ? n - 1 : l->n_mixture * n;
    l->n_parameter += l->n_mixing;
    tsr_pool_array(&l->pool, l->view, n);
    tsr_pool_array(&l->pool, l->species, n);
    tsr_pool_array(&l->pool, l->mixing, l->n_mixing);
    tsr_pool_array(&l->pool, l->concentration, l->n_mixture);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    for (int s = 0; s < n; s++) {
        l->species[s] = species[s];
        l->view[s].probe = s;
        if (species[s].mass > species[l->whole].mass)
            l->whole = s;
    }
    for (int i = 0; i < l->n_mixing && !has_kd; i++)
        l->mixing[i] = fraction_parameter(n, i % n == 0);
    for (int s = 1; s < n && has_kd; s++)
        l->mixing[s - 1] = kd_parameter(
            &species[s],
            n == 2 ? "kd"
                   : tsr_pool_format(&l->pool, "kd_%s", species[s].name));
    for (int d = 0; d < l->n_term; d++) {
        l->term[d]->view = l->whole;
        l->concentration[l->term[d]->mixture] = l->term[d]->at;
        for (int i = 0; i < l->n_mixing && has_kd; i++)
            if (l->term[d]->at_unit != NULL)
                l->mixing[i].unit = l->term[d]->at_unit;
    }
    return tsr_pool_check(&l->pool, err);
}

void tsr_likelihood_fractions(const tsr_likelihood *l, const double *theta,
                              int mixture, double *fraction)
{
    const int n = l->n_species;
    const double *own = theta + l->n_parameter - l->n_mixing;
    double kd[TSR_MAX_SPECIES];
    int n_unit[TSR_MAX_SPECIES];
    if (l->mixing[0].shape == TSR_PRIOR_SIMPLEX) {
        memcpy(fraction, own + mixture * n, (size_t)n * sizeof *fraction);
        return;
    }
    for (int s = 0; s < n; s++) {
        n_unit[s] = l->species[s].n_unit;
        kd[s] = s == 0 ? 0.0 : exp(own[s - 1]);
    }
    tsr_species_equilibrium(n, n_unit, kd, l->concentration[mixture], fraction);
}

int tsr_likelihood_n_profile(const tsr_likelihood *likelihood)
{
    return likelihood == NULL ? 0 : likelihood->n_pair * likelihood->grid.n_q;
}

tsr_engine_spec tsr_likelihood_engine(const tsr_likelihood *likelihood,
                                      int probe, int n_body, int n_system,
                                      double d_bound_ang)
{
    const tsr_probe *p = &likelihood->probe[probe];
    return (tsr_engine_spec){.n_body = n_body,
                             .n_type = p->n_type,
                             .n_comp = p->n_comp,
                             .n_q = likelihood->grid.n_q,
                             .dq_inv_ang = likelihood->grid.dq_inv_ang,
                             .n_system = n_system,
                             .type = p->type,
                             .form_factor = p->amplitude,
                             .d_bound_ang = d_bound_ang};
}

tsr_status tsr_likelihood_direct(const tsr_likelihood *l, int n_body,
                                 const tsr_conformation *conformation,
                                 const tsr_debye_progress *progress,
                                 double *partial, tsr_err *err)
{
    const size_t n_q = (size_t)l->grid.n_q;
    double *six = calloc(TSR_N_COMP_PAIR * n_q, sizeof *six);
    tsr_status status = tsr_allocated(six, err);
    for (int i = 0; i < l->n_probe && status == TSR_OK; i++) {
        const tsr_probe *p = &l->probe[i];
        const tsr_debye_spec spec = {.n = n_body,
                                     .n_type = p->n_type,
                                     .n_comp = p->n_comp,
                                     .n_q = l->grid.n_q,
                                     .dq_inv_ang = l->grid.dq_inv_ang,
                                     .xyz =
                                         (const double(*)[3])conformation->body,
                                     .type = p->type,
                                     .form_factor = p->amplitude};
        status = tsr_debye_reference(&spec, progress, six, err);
        memcpy(partial + (size_t)p->first * n_q, six,
               (size_t)p->n_pair * n_q * sizeof *six);
    }
    free(six);
    return status;
}

/* Measured cost: 4 ns for each pair of bodies, q and pair of components. */
double tsr_likelihood_direct_seconds(const tsr_likelihood *l, int n_body)
{
    return 2e-9 * n_body * (double)n_body * l->grid.n_q * l->n_pair;
}

/* ---- points ---- */

void tsr_point_clear(tsr_point *point)
{
    tsr_pool_clear(&point->pool);
}

int tsr_point_make(const tsr_likelihood *l, int n_parameter, tsr_point *p)
{
    const int n_term = l == NULL ? 0 : l->n_term;
    const int n_mixture = l == NULL ? 0 : l->n_mixture;
    *p = (tsr_point){.mixture = -1};
    tsr_pool_array(&p->pool, p->theta, n_parameter);
    tsr_pool_array(&p->pool, p->partial,
                   n_mixture * tsr_likelihood_n_profile(l));
    tsr_pool_array(&p->pool, p->profile,
                   l == NULL ? 0 : n_mixture * l->n_view * l->grid.n_q);
    tsr_pool_array(&p->pool, p->term_log_lik, n_term);
    tsr_pool_array(&p->pool, p->fit, n_term);
    for (int d = 0; d < n_term && p->fit != NULL; d++)
        p->fit[d] = tsr_term_fit_new(l->term[d], &p->pool);
    return tsr_pool_check(&p->pool, NULL) == TSR_OK;
}

tsr_prediction tsr_likelihood_prediction(const tsr_likelihood *likelihood,
                                         const tsr_point *point,
                                         const tsr_term *term,
                                         tsr_prediction prediction)
{
    const int at = term->mixture * likelihood->n_view + term->view;
    const int has_profile = (term->type->needs & TSR_NEEDS_PROFILE) != 0;
    prediction.profile =
        has_profile ? point->profile + (size_t)at * (size_t)likelihood->grid.n_q
                    : NULL;
    return prediction;
}

/* 1 if an evaluation of the point includes this mixture. */
static int includes(const tsr_point *point, int mixture)
{
    return point->mixture < 0 || point->mixture == mixture;
}

/* 1 if the term's linear parameters are sampled, with `draw` as proposal. */
static int is_drawn(const tsr_term *term)
{
    return term->type->draw != NULL && !term->is_integrated;
}

/* Sums the profiles of the species by their numbers of particles. */
static void mix_species(const tsr_likelihood *l, int mixture, tsr_point *point)
{
    const int n_q = l->grid.n_q;
    double *profile = point->profile + mixture * l->n_view * n_q;
    double *sum = profile + l->whole * n_q, weight[TSR_MAX_SPECIES];
    tsr_likelihood_fractions(l, point->theta, mixture, weight);
    for (int s = 0; s < l->n_species; s++)
        weight[s] *= l->species[0].mass / l->species[s].mass;
    for (int k = 0; k < n_q; k++) {
        sum[k] *= weight[l->whole];
        for (int s = 0; s < l->n_species; s++)
            if (s != l->whole)
                sum[k] += weight[s] * profile[s * n_q + k];
    }
}

static tsr_status evaluate_term(const tsr_likelihood *l, int d,
                                tsr_prediction prediction, double beta,
                                gsl_rng *rng, const tsr_point *from,
                                tsr_point *point, tsr_err *err)
{
    const tsr_term *term = l->term[d];
    double *theta = point->theta + term->first;
    prediction = tsr_likelihood_prediction(l, point, term, prediction);
    if (prediction.weight != NULL)
        prediction.weight += term->mixture * prediction.n_state;
    TSR_TRY(term->type->fit(term, from != NULL ? from->fit[d] : NULL,
                            &prediction, theta, point->fit[d], err));
    if (rng != NULL && is_drawn(term))
        term->type->draw(term, point->fit[d], beta, rng, theta);
    point->term_log_lik[d] = term->type->log_lik(term, point->fit[d], theta);
    return TSR_OK;
}

tsr_status tsr_likelihood_evaluate(const tsr_likelihood *l,
                                   const double *partial,
                                   const double *contrast,
                                   tsr_prediction prediction, double beta,
                                   gsl_rng *rng, const tsr_point *from,
                                   tsr_point *point, tsr_err *err)
{
    const int n = tsr_likelihood_n_profile(l);
    for (int i = 0; i < l->n_mixture * l->n_view; i++)
        if (includes(point, i / l->n_view))
            tsr_likelihood_profile(l, i % l->n_view,
                                   partial + i / l->n_view * n, contrast,
                                   point->profile + i * l->grid.n_q);
    for (int m = 0; m < l->n_mixture && l->n_species > 0; m++)
        if (includes(point, m))
            mix_species(l, m, point);
    point->log_lik = 0.0;
    for (int d = 0; d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        if (includes(point, term->mixture))
            TSR_TRY(
                evaluate_term(l, d, prediction, beta, rng, from, point, err));
        else
            point->term_log_lik[d] = from->term_log_lik[d];
        point->log_lik += point->term_log_lik[d];
    }
    return TSR_OK;
}

double tsr_likelihood_log_ratio(const tsr_likelihood *likelihood,
                                const tsr_point *from, const tsr_point *to,
                                double beta)
{
    double sum = 0.0;
    for (int d = 0; d < likelihood->n_term; d++) {
        const tsr_term *t = likelihood->term[d];
        if (is_drawn(t) && includes(to, t->mixture))
            sum +=
                t->type->log_density(t, from->fit[d], beta,
                                     from->theta + t->first) -
                t->type->log_density(t, to->fit[d], beta, to->theta + t->first);
    }
    return sum;
}

/* Swaps two pointers of any type; a, b: their addresses. */
static void swap(void *a, void *b)
{
    void *saved;
    memcpy(&saved, a, sizeof saved);
    memcpy(a, b, sizeof saved);
    memcpy(b, &saved, sizeof saved);
}

/* Copies a mixture's part of an array [n_mixture][n]. */
static void copy_mixture(double *to, const double *from, int mixture, int n)
{
    memcpy(to + mixture * n, from + mixture * n, (size_t)n * sizeof *to);
}

void tsr_point_swap(const tsr_likelihood *l, tsr_scope scope, int d,
                    tsr_point *now, tsr_point *trial)
{
    const int is_one = scope >= TSR_CHANGES_FIT, mixture = trial->mixture;
    swap(&now->theta, &trial->theta);
    if (l == NULL)
        return;
    if (mixture >= 0) {
        if (scope == TSR_CHANGES_MEAN)
            copy_mixture(now->partial, trial->partial, mixture,
                         tsr_likelihood_n_profile(l));
        copy_mixture(now->profile, trial->profile, mixture,
                     l->n_view * l->grid.n_q);
    } else {
        if (scope == TSR_CHANGES_MEAN)
            swap(&now->partial, &trial->partial);
        if (!is_one)
            swap(&now->profile, &trial->profile);
    }
    now->log_lik = 0.0;
    for (int e = 0; e < l->n_term; e++) {
        const int is_new =
            is_one ? e == d : includes(trial, l->term[e]->mixture);
        if (is_new)
            now->term_log_lik[e] = trial->term_log_lik[e];
        if (is_new && scope <= TSR_CHANGES_FIT)
            swap(&now->fit[e], &trial->fit[e]);
        now->log_lik += now->term_log_lik[e];
    }
}

int tsr_likelihood_coefficients(const tsr_likelihood *l, int view,
                                const double *contrast, double power, double *c)
{
    const tsr_probe *p = &l->probe[l->view[view].probe];
    c[0] = 1.0;
    if (p->is_neutron)
        return tsr_neutron_coefficients(&p->basis, l->contrast, contrast,
                                        l->view[view].d2o, c);
    return p->n_comp == 1
               ? 1
               : tsr_coarse_coefficients(l->contrast, contrast, power, c);
}

double tsr_likelihood_combine(const tsr_likelihood *l, int view,
                              const double *partial, const double *contrast,
                              double power, size_t k)
{
    double c[TSR_N_COMP];
    const int n = tsr_likelihood_coefficients(l, view, contrast, power, c);
    return tsr_coarse_sum(n, c, partial + k, (size_t)l->grid.n_q);
}

double tsr_likelihood_combine_atoms(const tsr_likelihood *l, int view,
                                    const double *partial,
                                    const double *contrast, size_t k)
{
    const tsr_view *v = &l->view[view];
    const tsr_probe *p = &l->probe[v->probe];
    double c[TSR_N_COMP];
    if (p->n_atom_pair == p->n_pair)
        return tsr_likelihood_combine(l, view, partial, contrast,
                                      v->atom_power[k], k);
    const int n =
        tsr_coarse_coefficients(l->run_contrast, contrast, v->atom_power[k], c);
    return tsr_coarse_sum(n, c, partial + k, (size_t)l->grid.n_q);
}

/* R without the limits for neutrons. */
static double unbounded_ratio(const tsr_likelihood *l, int view,
                              const double *contrast, size_t k)
{
    const tsr_view *v = &l->view[view];
    return tsr_likelihood_combine_atoms(l, view, v->atoms, contrast, k) /
           tsr_likelihood_combine(l, view, v->bodies, contrast,
                                  l->probe[v->probe].power[k], k);
}

double tsr_likelihood_ratio(const tsr_likelihood *l, int view,
                            const double *contrast, size_t k)
{
    const double ratio = unbounded_ratio(l, view, contrast, k);
    return l->probe[l->view[view].probe].is_neutron
               ? fmax(1.0 / TSR_RATIO_BOUND, fmin(ratio, TSR_RATIO_BOUND))
               : ratio;
}

int tsr_likelihood_n_regressor(const tsr_likelihood *l)
{
    return l->grid.n_q < TSR_REGRESSORS ? l->grid.n_q : TSR_REGRESSORS;
}

void tsr_likelihood_deviation(const tsr_likelihood *l, int view,
                              const double *contrast, const double *profile,
                              double *deviation)
{
    const tsr_view *v = &l->view[view];
    const double *power = l->probe[v->probe].power;
    for (int k = 0; k < tsr_likelihood_n_regressor(l); k++) {
        const double mean = tsr_likelihood_combine(l, view, v->bodies, contrast,
                                                   power[k], (size_t)k);
        const double d = contrast[TSR_C2] * log(profile[k] / mean);
        deviation[k] = isfinite(d) ? d : 0.0;
    }
}

void tsr_likelihood_apply_correction(const tsr_likelihood *l, int view,
                                     const double *contrast, double *profile)
{
    const tsr_view *v = &l->view[view];
    const int n = v->regression != NULL ? tsr_likelihood_n_regressor(l) : 0;
    const double limit = 0.2; /* far from all examples */
    double deviation[TSR_REGRESSORS] = {0.0};
    if (n > 0)
        tsr_likelihood_deviation(l, view, contrast, profile, deviation);
    for (int k = 0; k < l->grid.n_q; k++) {
        double sum = 0.0;
        for (int j = 0; j < n; j++)
            sum += v->regression[j * l->grid.n_q + k] * deviation[j];
        profile[k] *= tsr_likelihood_ratio(l, view, contrast, (size_t)k);
        if (n > 0)
            profile[k] *= exp(fmax(-limit, fmin(sum, limit)));
    }
}

void tsr_likelihood_profile(const tsr_likelihood *l, int view,
                            const double *partial, const double *contrast,
                            double *profile)
{
    const tsr_view *v = &l->view[view];
    const tsr_probe *p = &l->probe[v->probe];
    const size_t n_q = (size_t)l->grid.n_q, first = (size_t)p->first * n_q;
    double start[TSR_N_CONTRAST], c[TSR_N_COMP];
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        start[i] = contrast != NULL ? contrast[i] : l->contrast[i].start;
    for (size_t k = 0; k < n_q; k++) {
        const int n =
            tsr_likelihood_coefficients(l, view, start, p->power[k], c);
        double sum = 0.0;
        size_t at = first + k;
        for (int a = 0; a < n; a++)
            for (int b = a; b < n; b++, at += n_q)
                sum += (a == b ? 1.0 : 2.0) * c[a] * c[b] *
                       (partial[at] + l->self[at]);
        profile[k] = sum;
    }
    if (v->atoms != NULL)
        tsr_likelihood_apply_correction(l, view, start, profile);
}

double tsr_likelihood_chi2(const tsr_likelihood *likelihood,
                           const tsr_point *point)
{
    double sum = 0.0;
    long n = 0;
    for (int d = 0; likelihood != NULL && d < likelihood->n_term; d++) {
        const tsr_term *term = likelihood->term[d];
        sum += term->type->chi2(term, point->fit[d]);
        n += term->n_point;
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

double tsr_likelihood_min_beta(const tsr_likelihood *likelihood)
{
    double least = 0.0;
    for (int d = 0; likelihood != NULL && d < likelihood->n_term; d++)
        least = fmax(least, likelihood->term[d]->min_beta);
    return least;
}

int tsr_likelihood_has_hessian(const tsr_likelihood *likelihood)
{
    for (int d = 0; d < likelihood->n_term; d++)
        if (likelihood->term[d]->type->hessian_product != NULL)
            return 1;
    return 0;
}

void tsr_likelihood_hessian_product(const tsr_likelihood *likelihood,
                                    const tsr_point *point, int state, int n,
                                    const double *v, double *y)
{
    for (int d = 0; d < likelihood->n_term; d++)
        if (likelihood->term[d]->type->hessian_product != NULL)
            likelihood->term[d]->type->hessian_product(
                likelihood->term[d], point->fit[d], state, n, v, y);
}

/* ---- correction and model error ----
 *
 * Setting, replacing, saving and restoring the corrections of the views and the
 * model's own errors. */

/* The starting values of c1 and c2, then the corners of their ranges (a fixed
 * parameter has its value there): value [5] out. Returns the number of values,
 * 1 for one component. */
static int contrast_corners(const tsr_parameter *contrast, int n_pair,
                            double (*value)[TSR_N_CONTRAST])
{
    const int n = n_pair == 1 ? 1 : 5;
    for (int i = 0; i < n; i++)
        for (int v = 0; v < TSR_N_CONTRAST; v++) {
            const tsr_parameter *p = &contrast[v];
            value[i][v] = i == 0 || !p->infer ? p->start
                          : (i - 1) >> v & 1  ? p->high
                                              : p->low;
        }
    return n;
}

static tsr_status check_correction(const tsr_likelihood *l, int view,
                                   tsr_err *err)
{
    double value[5][TSR_N_CONTRAST];
    const int n = contrast_corners(
        l->run_contrast, l->probe[l->view[view].probe].n_atom_pair, value);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < l->grid.n_q; k++) {
            double ratio = unbounded_ratio(l, view, value[i], (size_t)k);
            if (!(ratio > 0.0) || !isfinite(ratio))
                return tsr_fail(
                    err, TSR_E_NUMERIC,
                    "at c1 = %.4g, c2 = %.4g and q = %.4f 1/A atoms scatter %g "
                    "times as much as bodies; narrow contrast.c1_range and "
                    "contrast.c2_range, or set model_error: none",
                    value[i][TSR_C1], value[i][TSR_C2], k * l->grid.dq_inv_ang,
                    ratio);
        }
    return TSR_OK;
}

static double *copy_array(tsr_pool *pool, size_t n, const double *from)
{
    double *to = tsr_pool_new(pool, n, sizeof *to);
    if (to != NULL)
        memcpy(to, from, n * sizeof *to);
    return to;
}

tsr_status tsr_likelihood_correct(tsr_likelihood *l, int view,
                                  const double *atoms, const double *bodies,
                                  double radius_ang, tsr_err *err)
{
    tsr_view *v = &l->view[view];
    tsr_view before = *v;
    const size_t n_q = (size_t)l->grid.n_q;
    const tsr_probe *p = &l->probe[v->probe];
    v->radius_ang = radius_ang;
    v->atoms = copy_array(&l->pool, (size_t)p->n_atom_pair * n_q, atoms);
    v->bodies = copy_array(&l->pool, (size_t)p->n_pair * n_q, bodies);
    v->regression = NULL;
    tsr_pool_array(&l->pool, v->atom_power, n_q);
    tsr_status status = tsr_pool_check(&l->pool, err);
    if (status == TSR_OK)
        set_power(l, radius_ang, v->atom_power);
    TSR_THEN(status, check_correction(l, view, err));
    tsr_view *old = status == TSR_OK ? &before : v;
    tsr_pool_free(&l->pool, old->atoms);
    tsr_pool_free(&l->pool, old->bodies);
    tsr_pool_free(&l->pool, old->atom_power);
    tsr_pool_free(&l->pool, old->regression);
    if (status != TSR_OK)
        *v = before;
    return status;
}

/* Number of elements of a regression. */
static size_t regression_size(const tsr_likelihood *l)
{
    return (size_t)(l->grid.n_q * tsr_likelihood_n_regressor(l));
}

tsr_status tsr_likelihood_regress(tsr_likelihood *l, int view,
                                  const double *weight, tsr_err *err)
{
    tsr_view *v = &l->view[view];
    tsr_pool_free(&l->pool, v->regression);
    v->regression = copy_array(&l->pool, regression_size(l), weight);
    return tsr_pool_check(&l->pool, err);
}

void tsr_likelihood_use_atoms(tsr_likelihood *l, double radius_ang)
{
    for (int p = 0; p < l->n_probe; p++)
        set_power(l, radius_ang, l->probe[p].power);
    memset(l->self, 0, (size_t)(l->n_pair * l->grid.n_q) * sizeof *l->self);
}

tsr_status tsr_likelihood_set_model_error(tsr_likelihood *l, int view,
                                          const tsr_profile_error *error,
                                          tsr_err *err)
{
    tsr_view *v = &l->view[view];
    const size_t n_q = (size_t)l->grid.n_q, n = (size_t)error->n * n_q;
    tsr_pool_free(&l->pool, v->error_curve);
    tsr_pool_array(&l->pool, v->error_curve, n + n_q);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    memcpy(v->error_curve, error->curve, n * sizeof *error->curve);
    memcpy(v->error_curve + n, error->reference,
           n_q * sizeof *error->reference);
    v->error =
        (tsr_profile_error){error->n, v->error_curve, v->error_curve + n};
    for (int d = 0; d < l->n_term; d++)
        if (l->term[d]->type->set_model_error != NULL &&
            l->term[d]->view == view)
            TSR_TRY(
                l->term[d]->type->set_model_error(l->term[d], &v->error, err));
    return TSR_OK;
}

/* Restored values are set by the same functions as values that this run has
 * learnt. */
static tsr_status archive_view(tsr_likelihood *l, int view,
                               tsr_archive *archive, tsr_err *err)
{
    tsr_view *v = &l->view[view];
    const size_t n_q = (size_t)l->grid.n_q;
    const size_t n_atom = (size_t)l->probe[v->probe].n_atom_pair * n_q;
    const size_t n_body = (size_t)l->probe[v->probe].n_pair * n_q;
    const size_t n_error = (TSR_MODEL_ERRORS + 1) * n_q;
    const size_t n_weight = regression_size(l);
    const size_t n_real = n_atom + n_body + n_error + n_weight;
    int is_known = v->atoms != NULL, n = v->error.n;
    int is_regressed = v->regression != NULL;
    double radius_ang = v->radius_ang;
    double *atoms = calloc(n_real, sizeof *atoms);
    TSR_TRY(tsr_allocated(atoms, err));
    double *bodies = atoms + n_atom, *error = bodies + n_body;
    double *weight = error + n_error;
    if (is_known) {
        memcpy(atoms, v->atoms, n_atom * sizeof *atoms);
        memcpy(bodies, v->bodies, n_body * sizeof *bodies);
    }
    if (n > 0)
        memcpy(error, v->error_curve, ((size_t)n + 1) * n_q * sizeof *error);
    if (is_regressed)
        memcpy(weight, v->regression, n_weight * sizeof *weight);
    tsr_archive_int(archive, &is_known, 1);
    tsr_archive_int(archive, &is_regressed, 1);
    tsr_archive_int(archive, &n, 1);
    tsr_archive_real(archive, &radius_ang, 1);
    tsr_archive_real(archive, atoms, n_real);
    tsr_status status = TSR_OK;
    if (archive->is_restoring && !archive->failed && is_known)
        status =
            tsr_likelihood_correct(l, view, atoms, bodies, radius_ang, err);
    if (archive->is_restoring && !archive->failed && is_known && is_regressed)
        TSR_THEN(status, tsr_likelihood_regress(l, view, weight, err));
    if (archive->is_restoring && !archive->failed && n > 0 &&
        n <= TSR_MODEL_ERRORS) {
        const tsr_profile_error known = {n, error, error + (size_t)n * n_q};
        TSR_THEN(status, tsr_likelihood_set_model_error(l, view, &known, err));
    }
    free(atoms);
    return status;
}

tsr_status tsr_likelihood_archive(tsr_likelihood *likelihood,
                                  tsr_archive *archive, tsr_err *err)
{
    for (int v = 0; v < likelihood->n_view; v++)
        TSR_TRY(archive_view(likelihood, v, archive, err));
    return TSR_OK;
}

/* ---- the check before chains start ----
 *
 * Tests the resolution of the grid and the engine's result: compares the curves
 * of the starting structure with direct sums, at the starting values of c1 and
 * c2 and at the corners of their ranges. */

typedef struct {
    const tsr_likelihood *l;
    const tsr_topology *topology;
    const tsr_scattering *scattering;
    const tsr_conformation *conformation;
    const double *partial; /* the engine's result */
    tsr_pool pool;
    double *profile; /* [n_q] scratch */
    double worst;
} check;

/* Checks one view at data point k of a term, for all values of c1 and c2. scale
 * [n] (n values of c1 and c2): fitted scale, which converts sigma to the unit
 * of I(q). curve [n][n_point]: the model at the data's q. */
static tsr_status check_point(check *c, const tsr_term *term, int number, int k,
                              const double *scale, const double *curve,
                              tsr_err *err)
{
    double q = term->coord[k], direct[TSR_N_COMP_PAIR], radius,
           coefficient[TSR_N_COMP];
    double value[5][TSR_N_CONTRAST];
    const tsr_view *view = &c->l->view[number];
    const int n = contrast_corners(c->l->contrast,
                                   c->l->probe[view->probe].n_pair, value);
    tsr_status status =
        tsr_scattering_direct(&c->scattering[view->probe], c->topology,
                              c->conformation, q, direct, &radius, err);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        const int n_comp = tsr_likelihood_coefficients(
            c->l, number, value[i], tsr_component_power(radius, q),
            coefficient);
        double exact = tsr_coarse_sum(n_comp, coefficient, direct, 1);
        double allowed =
            fmax(1e-4 * fabs(exact), 0.05 * term->sigma[k] / fabs(scale[i]));
        double model = curve[i * term->n_point + k];
        double error = fabs(model - exact) / allowed;
        c->worst = fmax(c->worst, error);
        if (error <= 1.0)
            continue;
        status = tsr_fail(
            err, TSR_E_INTERNAL,
            "'%s': at q = %.4f 1/A the engine and its q grid give I = %.8g, "
            "the direct sum %.8g: the error exceeds the limit (%.2g)",
            term->label, q, model, exact, allowed);
        if (i > 0) /* near a corner the components may almost cancel */
            status = tsr_fail(err, TSR_E_CONFIG,
                              "contrast: at c1 = %.4g, c2 = %.4g, within their "
                              "ranges, the curve at q = %.4f 1/A of '%s' is "
                              "not accurate to %.2g (%.8g instead of %.8g); "
                              "narrow contrast.c1_range and contrast.c2_range",
                              value[i][TSR_C1], value[i][TSR_C2], q,
                              term->label, allowed, model, exact);
    }
    return status;
}

/* The model's curve at the data's q, and its best scale. A smeared term is
 * checked without smearing, which only averages the curve with weights that sum
 * to 1. */
static tsr_status check_curve(const check *c, const tsr_saxs_term *t,
                              tsr_fit *fit, double *scale, double *curve,
                              tsr_err *err)
{
    const tsr_q_grid *grid = &c->l->grid;
    const int n = t->term.n_point;
    double theta[TSR_TERM_PARAMETERS], *matrix;
    tsr_term_start(&t->term, theta);
    TSR_TRY(tsr_saxs_fit(t, c->profile, theta, fit, err));
    *scale = fit->scale;
    tsr_saxs_curve(t, c->profile, 1.0, NULL, curve);
    if (!t->term.is_smeared)
        return TSR_OK;
    TSR_TRY(tsr_q_operator_new(grid, n, t->term.coord, &matrix, err));
    tsr_q_operator_apply(matrix, n, grid->n_q, c->profile, curve);
    free(matrix);
    return TSR_OK;
}

static tsr_status check_view(check *c, const tsr_term *term, int view,
                             tsr_err *err)
{
    enum { N_CHECK = 16 };
    const int n_point = term->n_point;
    double value[5][TSR_N_CONTRAST], scale[5] = {0.0};
    const int n = contrast_corners(
        c->l->contrast, c->l->probe[c->l->view[view].probe].n_pair, value);
    double *curve =
        tsr_pool_new(&c->pool, (size_t)(n * n_point), sizeof *curve);
    tsr_fit *fit = tsr_term_fit_new(term, &c->pool);
    TSR_TRY(tsr_pool_check(&c->pool, err));
    for (int i = 0; i < n; i++) {
        tsr_likelihood_profile(c->l, view, c->partial, value[i], c->profile);
        TSR_TRY(check_curve(c, (const tsr_saxs_term *)term, fit, &scale[i],
                            curve + i * n_point, err));
    }
    for (int i = 0; i < N_CHECK; i++)
        TSR_TRY(check_point(c, term, view,
                            (int)((long)i * (n_point - 1) / (N_CHECK - 1)),
                            scale, curve, err));
    return TSR_OK;
}

tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_scattering *scattering,
                                const tsr_conformation *conformation,
                                const double *partial, double *worst,
                                tsr_err *err)
{
    check c = {.l = likelihood,
               .topology = topology,
               .scattering = scattering,
               .conformation = conformation,
               .partial = partial};
    tsr_pool_array(&c.pool, c.profile, likelihood->grid.n_q);
    tsr_status status = tsr_pool_check(&c.pool, err);
    for (int d = 0; d < likelihood->n_term; d++)
        for (int v = 0; v < likelihood->n_view && status == TSR_OK; v++)
            if (likelihood->term[d]->type->is_curve &&
                (v == likelihood->term[d]->view || likelihood->n_species > 0))
                status = check_view(&c, likelihood->term[d], v, err);
    tsr_pool_clear(&c.pool);
    if (worst != NULL)
        *worst = c.worst;
    return status;
}

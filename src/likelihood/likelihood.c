/* The likelihood as the product of its terms, and where the profile for those
 * that need it comes from.
 *
 * What changes decides what is computed anew: other weights of the states, the
 * mean of their partial profiles and all that follows; other c1 or c2, the
 * profile and all that follows; a parameter of one term, that term's fit or
 * only its likelihood. tsr_point_take exchanges just these parts, so that
 * nothing is copied when a step is accepted. */
#include "likelihood/likelihood.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void clear_probe(tsr_probe *probe)
{
    free(probe->type);
    free(probe->amplitude);
    free(probe->body_type);
    free(probe->body_amplitude);
    free(probe->power);
}

static void clear_view(tsr_view *view)
{
    free(view->atoms);
    free(view->bodies);
    free(view->atom_power);
    free(view->error_curve);
}

void tsr_likelihood_free(tsr_likelihood *likelihood)
{
    tsr_likelihood *l = likelihood;
    if (l == NULL)
        return;
    for (int d = 0; d < l->n_term; d++)
        tsr_term_free(l->term[d]);
    for (int p = 0; p < l->n_probe; p++)
        clear_probe(&l->probe[p]);
    for (int v = 0; v < l->n_view; v++)
        clear_view(&l->view[v]);
    free(l->term);
    free(l->probe);
    free(l->view);
    free(l->self);
    free(l);
}

/* Form factors of a probe on the grid; S_ab goes behind those of the probes
 * before it. */
static tsr_status take_factors(tsr_likelihood *l, const tsr_topology *topology,
                               const tsr_scattering *scattering,
                               tsr_probe *probe, tsr_err *err)
{
    tsr_coarse_spec coarse;
    const size_t n_q = (size_t)l->grid.n_q;
    TSR_TRY(tsr_scattering_spec(scattering, topology, l->grid.n_q,
                                l->grid.dq_inv_ang, &coarse, err));
    probe->n_comp = coarse.spec.n_comp;
    probe->n_pair = probe->n_comp * (probe->n_comp + 1) / 2;
    probe->first = l->n_pair;
    probe->n_type = coarse.spec.n_type;
    probe->type = coarse.type;
    probe->amplitude = coarse.form_factor;
    coarse.type = NULL;
    coarse.form_factor = NULL;
    l->n_pair += probe->n_pair;
    double *self = realloc(l->self, (size_t)l->n_pair * n_q * sizeof *self);
    if (self != NULL) {
        l->self = self;
        memcpy(self + (size_t)probe->first * n_q, coarse.self,
               (size_t)probe->n_pair * n_q * sizeof *self);
    }
    probe->power = calloc(n_q, sizeof *probe->power);
    for (size_t k = 0; k < n_q && probe->power != NULL; k++)
        probe->power[k] = tsr_component_power(coarse.radius_ang,
                                              (double)k * l->grid.dq_inv_ang);
    probe->is_neutron = scattering->neutron != NULL;
    if (probe->is_neutron)
        probe->basis = *tsr_neutron_bodies_basis(scattering->neutron);
    const int is_complete = self != NULL && probe->power != NULL;
    tsr_coarse_spec_clear(&coarse);
    return is_complete ? TSR_OK : tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

static tsr_status take_probes(tsr_likelihood *l, const tsr_topology *topology,
                              int n, const tsr_scattering *scattering,
                              tsr_err *err)
{
    l->probe = calloc((size_t)n, sizeof *l->probe);
    if (l->probe == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int i = 0; i < n; i++) {
        l->n_probe++;
        TSR_TRY(take_factors(l, topology, &scattering[i], &l->probe[i], err));
    }
    for (int i = 0; i < TSR_N_CONTRAST && scattering->contrast != NULL; i++)
        l->contrast[i] = scattering->contrast[i];
    return TSR_OK;
}

/* Terms that ask for the same curve have one view. */
static tsr_status make_views(tsr_likelihood *l, tsr_err *err)
{
    l->view = calloc((size_t)l->n_term + 1, sizeof *l->view);
    if (l->view == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
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
    return TSR_OK;
}

/* The terms' places in the table of parameters and among their kind. */
static void number_terms(tsr_likelihood *l)
{
    for (int d = 0; d < l->n_term; d++) {
        tsr_term *term = l->term[d];
        term->first = l->n_parameter;
        l->n_parameter += term->n_parameter;
        int e = d - 1;
        while (e >= 0 && !tsr_term_is_alike(l->term[e]->type, term->type))
            e--;
        term->ordinal = e < 0 ? 0 : l->term[e]->ordinal + 1;
    }
}

tsr_status tsr_likelihood_new(const tsr_topology *topology, int n_probe,
                              const tsr_scattering *scattering,
                              double d_bound_ang, int n_term, tsr_term **term,
                              tsr_likelihood **out, tsr_err *err)
{
    double q_max = 0.0;
    *out = NULL;
    tsr_likelihood *l = calloc(1, sizeof *l);
    tsr_term **own = calloc((size_t)n_term + 1, sizeof(*own));
    if (l == NULL || own == NULL) {
        for (int d = 0; d < n_term; d++)
            tsr_term_free(term[d]);
        free(l);
        free(own);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    l->term = own;
    l->n_term = n_term;
    for (int d = 0; d < n_term; d++) {
        own[d] = term[d];
        q_max = fmax(q_max, term[d]->q_max_inv_ang);
    }
    number_terms(l);
    tsr_status status = TSR_OK;
    if (q_max > 0.0) {
        l->grid = tsr_q_grid_make(d_bound_ang, q_max);
        status = take_probes(l, topology, n_probe, scattering, err);
    }
    if (status == TSR_OK)
        status = make_views(l, err);
    for (int d = 0; d < n_term && status == TSR_OK; d++)
        if (own[d]->type->prepare != NULL)
            status = own[d]->type->prepare(own[d], &l->grid, err);
    if (status == TSR_OK)
        *out = l;
    else
        tsr_likelihood_free(l);
    return status;
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
    const tsr_particles *own = likelihood->particles;
    tsr_engine_spec spec = {.n_body = n_body,
                            .n_type = p->n_type,
                            .n_comp = p->n_comp,
                            .n_q = likelihood->grid.n_q,
                            .dq_inv_ang = likelihood->grid.dq_inv_ang,
                            .n_system = n_system,
                            .type = p->type,
                            .form_factor = p->amplitude,
                            .d_bound_ang = d_bound_ang};
    if (own == NULL)
        return spec;
    spec.n_body = own->n;
    spec.unit = own->unit;
    spec.rigid = (const double(*)[3])own->start;
    spec.inside = &own->inside;
    if (d_bound_ang > 0.0)
        spec.d_bound_ang += 2.0 * own->margin_ang;
    return spec;
}

tsr_status tsr_likelihood_direct(const tsr_likelihood *likelihood, int n_body,
                                 const tsr_conformation *conformation,
                                 const tsr_debye_progress *progress,
                                 double *partial, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
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
        status = l->particles == NULL
                     ? tsr_debye_reference(&spec, progress, six, err)
                     : l->particles->type->direct(
                           l->particles, conformation, i, l->grid.n_q,
                           l->grid.dq_inv_ang, progress, six, err);
        memcpy(partial + (size_t)p->first * n_q, six,
               (size_t)p->n_pair * n_q * sizeof *six);
    }
    free(six);
    return status;
}

/* Some 4 ns a pair of bodies, page and pair of components; of a grid of
 * distances a hundredth of a second and 10 us a particle. */
double tsr_likelihood_direct_seconds(const tsr_likelihood *likelihood,
                                     int n_body)
{
    const tsr_likelihood *l = likelihood;
    return l->particles == NULL
               ? 2e-9 * n_body * (double)n_body * l->grid.n_q * l->n_pair
               : l->n_probe * (0.01 + 1e-5 * l->particles->n_all);
}

/* ---- points ---- */

void tsr_point_clear(const tsr_likelihood *likelihood, tsr_point *point)
{
    for (int d = 0; point->fit != NULL && d < likelihood->n_term; d++)
        free(point->fit[d]);
    free(point->theta);
    free(point->partial);
    free(point->profile);
    free(point->fit);
    free(point->term_log_lik);
    *point = (tsr_point){.theta = NULL};
}

int tsr_point_make(const tsr_likelihood *likelihood, int n_parameter,
                   tsr_point *point)
{
    const tsr_likelihood *l = likelihood;
    const size_t n_profile = (size_t)tsr_likelihood_n_profile(l);
    const size_t n_curve =
        l == NULL ? 0 : (size_t)l->n_view * (size_t)l->grid.n_q;
    const size_t n_term = l == NULL ? 0 : (size_t)l->n_term;
    tsr_point *p = point;
    *p = (tsr_point){.theta = calloc((size_t)n_parameter + 1, sizeof *p->theta),
                     .partial = calloc(n_profile + 1, sizeof *p->partial),
                     .profile = calloc(n_curve + 1, sizeof *p->profile),
                     .term_log_lik =
                         calloc(n_term + 1, sizeof *p->term_log_lik)};
    int complete = p->theta != NULL && p->partial != NULL &&
                   p->profile != NULL && p->term_log_lik != NULL;
    if (n_term > 0)
        p->fit = calloc(n_term, sizeof *p->fit);
    complete &= n_term == 0 || p->fit != NULL;
    for (size_t d = 0; d < n_term && complete; d++) {
        p->fit[d] = l->term[d]->type->fit_new(l->term[d]);
        complete = p->fit[d] != NULL;
    }
    return complete;
}

tsr_prediction tsr_likelihood_view_of(const tsr_likelihood *likelihood,
                                      const tsr_point *point,
                                      const tsr_term *term,
                                      tsr_prediction prediction)
{
    const size_t n_q = (size_t)likelihood->grid.n_q;
    const int has_profile = (term->type->needs & TSR_NEEDS_PROFILE) != 0;
    prediction.profile =
        has_profile ? point->profile + (size_t)term->view * n_q : NULL;
    return prediction;
}

tsr_status tsr_likelihood_evaluate(const tsr_likelihood *likelihood,
                                   const double *partial,
                                   const double *contrast,
                                   tsr_prediction prediction, double beta,
                                   gsl_rng *rng, const tsr_point *from,
                                   tsr_point *point, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    tsr_status status = TSR_OK;
    for (int v = 0; v < l->n_view; v++)
        tsr_likelihood_profile(l, v, partial, contrast,
                               point->profile + v * l->grid.n_q);
    point->log_lik = 0.0;
    for (int d = 0; d < l->n_term && status == TSR_OK; d++) {
        const tsr_term *term = l->term[d];
        double *theta = point->theta + term->first;
        prediction = tsr_likelihood_view_of(l, point, term, prediction);
        status =
            from != NULL && term->type->update != NULL
                ? term->type->update(term, from->fit[d], &prediction, theta,
                                     point->fit[d], err)
                : term->type->fit(term, &prediction, theta, point->fit[d], err);
        if (status != TSR_OK)
            break;
        if (rng != NULL && term->type->draw != NULL)
            term->type->draw(term, point->fit[d], beta, rng, theta);
        point->term_log_lik[d] =
            term->type->log_lik(term, point->fit[d], theta);
        point->log_lik += point->term_log_lik[d];
    }
    return status;
}

double tsr_likelihood_log_ratio(const tsr_likelihood *likelihood,
                                const tsr_point *from, const tsr_point *to,
                                double beta)
{
    double sum = 0.0;
    for (int d = 0; d < likelihood->n_term; d++) {
        const tsr_term *t = likelihood->term[d];
        if (t->type->log_density != NULL)
            sum +=
                t->type->log_density(t, from->fit[d], beta,
                                     from->theta + t->first) -
                t->type->log_density(t, to->fit[d], beta, to->theta + t->first);
    }
    return sum;
}

static void swap_rows(double **a, double **b)
{
    double *held = *a;
    *a = *b;
    *b = held;
}

static void swap_fits(void **a, void **b)
{
    void *held = *a;
    *a = *b;
    *b = held;
}

void tsr_point_take(const tsr_likelihood *likelihood, tsr_scope scope, int d,
                    tsr_point *now, tsr_point *trial)
{
    const tsr_likelihood *l = likelihood;
    const int is_one = scope >= TSR_CHANGES_FIT;
    swap_rows(&now->theta, &trial->theta);
    if (l == NULL)
        return;
    if (scope == TSR_CHANGES_MEAN)
        swap_rows(&now->partial, &trial->partial);
    if (!is_one)
        swap_rows(&now->profile, &trial->profile);
    now->log_lik = 0.0;
    for (int e = 0; e < l->n_term; e++) {
        if (!is_one || e == d)
            now->term_log_lik[e] = trial->term_log_lik[e];
        if (!is_one || (e == d && scope == TSR_CHANGES_FIT))
            swap_fits(&now->fit[e], &trial->fit[e]);
        now->log_lik += now->term_log_lik[e];
    }
}

int tsr_likelihood_coefficients(const tsr_likelihood *likelihood, int view,
                                const double *contrast, double power, double *c)
{
    const tsr_likelihood *l = likelihood;
    const tsr_probe *p = &l->probe[l->view[view].probe];
    c[0] = 1.0;
    if (p->is_neutron)
        return tsr_neutron_coefficients(&p->basis, l->contrast, contrast,
                                        l->view[view].d2o, c);
    return p->n_comp == 1
               ? 1
               : tsr_coarse_coefficients(l->contrast, contrast, power, c);
}

double tsr_likelihood_combine(const tsr_likelihood *likelihood, int view,
                              const double *partial, const double *contrast,
                              double power, size_t k)
{
    const tsr_likelihood *l = likelihood;
    double c[TSR_N_COMP];
    const int n = tsr_likelihood_coefficients(l, view, contrast, power, c);
    return tsr_coarse_sum(n, c, partial + k, (size_t)l->grid.n_q);
}

double tsr_likelihood_free_ratio(const tsr_likelihood *l, int view,
                                 const double *contrast, size_t k)
{
    const tsr_view *v = &l->view[view];
    return tsr_likelihood_combine(l, view, v->atoms, contrast, v->atom_power[k],
                                  k) /
           tsr_likelihood_combine(l, view, v->bodies, contrast,
                                  l->probe[v->probe].power[k], k);
}

double tsr_likelihood_ratio(const tsr_likelihood *likelihood, int view,
                            const double *contrast, size_t k)
{
    const tsr_likelihood *l = likelihood;
    const double ratio = tsr_likelihood_free_ratio(l, view, contrast, k);
    return l->probe[l->view[view].probe].is_neutron
               ? fmax(1.0 / TSR_RATIO_BOUND, fmin(ratio, TSR_RATIO_BOUND))
               : ratio;
}

void tsr_likelihood_profile(const tsr_likelihood *likelihood, int view,
                            const double *partial, const double *contrast,
                            double *profile)
{
    const tsr_likelihood *l = likelihood;
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
    for (size_t k = 0; k < n_q && v->atoms != NULL; k++)
        profile[k] *= tsr_likelihood_ratio(l, view, start, k);
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

double tsr_likelihood_least_beta(const tsr_likelihood *likelihood)
{
    double least = 0.0;
    for (int d = 0; likelihood != NULL && d < likelihood->n_term; d++) {
        const tsr_term *term = likelihood->term[d];
        if (term->type->least_beta != NULL)
            least = fmax(least, term->type->least_beta(term));
    }
    return least;
}

int tsr_likelihood_is_stiff(const tsr_likelihood *likelihood)
{
    for (int d = 0; d < likelihood->n_term; d++)
        if (likelihood->term[d]->type->stiffen != NULL)
            return 1;
    return 0;
}

void tsr_likelihood_stiffen(const tsr_likelihood *likelihood,
                            const tsr_point *point, int state, int n,
                            const double *v, double *y)
{
    for (int d = 0; d < likelihood->n_term; d++)
        if (likelihood->term[d]->type->stiffen != NULL)
            likelihood->term[d]->type->stiffen(likelihood->term[d],
                                               point->fit[d], state, n, v, y);
}

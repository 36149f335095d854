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

void tsr_likelihood_free(tsr_likelihood *likelihood)
{
    if (likelihood == NULL)
        return;
    for (int d = 0; d < likelihood->n_term; d++)
        tsr_term_free(likelihood->term[d]);
    free(likelihood->term);
    free(likelihood->type);
    free(likelihood->amplitude);
    free(likelihood->self);
    free(likelihood->power);
    free(likelihood->atoms);
    free(likelihood->bodies);
    free(likelihood->atom_power);
    free(likelihood->error_curve);
    free(likelihood);
}

/* Form factors and S_ab on the grid. */
static tsr_status take_factors(tsr_likelihood *l, const tsr_topology *topology,
                               const tsr_scattering *scattering, tsr_err *err)
{
    tsr_coarse_spec coarse;
    size_t n_q = (size_t)l->grid.n_q;
    tsr_status status = tsr_scattering_spec(scattering, topology, l->grid.n_q,
                                            l->grid.dq_inv_ang, &coarse, err);
    if (status != TSR_OK)
        return status;
    l->n_comp = coarse.spec.n_comp;
    l->n_pair = l->n_comp * (l->n_comp + 1) / 2;
    l->n_type = coarse.spec.n_type;
    l->type = coarse.type;
    l->amplitude = coarse.form_factor;
    l->self = coarse.self;
    coarse.type = NULL;
    coarse.form_factor = coarse.self = NULL;
    l->power = calloc(n_q, sizeof *l->power);
    if (l->power == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (size_t k = 0; k < n_q && status == TSR_OK; k++)
        l->power[k] = tsr_component_power(coarse.radius_ang,
                                          (double)k * l->grid.dq_inv_ang);
    for (int i = 0; i < TSR_N_CONTRAST && scattering->contrast != NULL; i++)
        l->contrast[i] = scattering->contrast[i];
    tsr_coarse_spec_clear(&coarse);
    return status;
}

/* The terms' places in the table of parameters and among their kind. */
static void number_terms(tsr_likelihood *l)
{
    for (int d = 0; d < l->n_term; d++) {
        tsr_term *term = l->term[d];
        term->first = l->n_parameter;
        l->n_parameter += term->n_parameter;
        for (int e = 0; e < d; e++)
            term->ordinal += l->term[e]->type == term->type;
    }
}

tsr_status tsr_likelihood_new(const tsr_topology *topology,
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
        status = take_factors(l, topology, scattering, err);
    }
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
    const size_t n_q = l == NULL ? 0 : (size_t)l->grid.n_q;
    const size_t n_term = l == NULL ? 0 : (size_t)l->n_term;
    tsr_point *p = point;
    *p = (tsr_point){.theta = calloc((size_t)n_parameter + 1, sizeof *p->theta),
                     .partial = calloc(n_profile + 1, sizeof *p->partial),
                     .profile = calloc(n_q + 1, sizeof *p->profile),
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

tsr_status tsr_likelihood_evaluate(const tsr_likelihood *likelihood,
                                   const double *partial,
                                   const double *contrast,
                                   tsr_prediction prediction, double beta,
                                   gsl_rng *rng, const tsr_point *from,
                                   tsr_point *point, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    tsr_status status = TSR_OK;
    if (l->grid.n_q > 0)
        tsr_likelihood_profile(l, partial, contrast, point->profile);
    prediction.profile = l->grid.n_q > 0 ? point->profile : NULL;
    point->log_lik = 0.0;
    for (int d = 0; d < l->n_term && status == TSR_OK; d++) {
        const tsr_term *term = l->term[d];
        double *theta = point->theta + term->first;
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

double tsr_likelihood_combine(const tsr_likelihood *likelihood,
                              const double *partial, const double *contrast,
                              double power, size_t k)
{
    const tsr_likelihood *l = likelihood;
    double c[TSR_N_COMP];
    if (l->n_comp == 1)
        return partial[k];
    tsr_coarse_coefficients(l->contrast, contrast, power, c);
    return tsr_coarse_sum(l->n_comp, c, partial + k, (size_t)l->grid.n_q);
}

double tsr_likelihood_ratio(const tsr_likelihood *likelihood,
                            const double *contrast, size_t k)
{
    const tsr_likelihood *l = likelihood;
    return tsr_likelihood_combine(l, l->atoms, contrast, l->atom_power[k], k) /
           tsr_likelihood_combine(l, l->bodies, contrast, l->power[k], k);
}

void tsr_likelihood_profile(const tsr_likelihood *likelihood,
                            const double *partial, const double *contrast,
                            double *profile)
{
    const tsr_likelihood *l = likelihood;
    size_t n_q = (size_t)l->grid.n_q;
    double start[TSR_N_CONTRAST], c[TSR_N_COMP];
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        start[i] = contrast != NULL ? contrast[i] : l->contrast[i].start;
    for (size_t k = 0; k < n_q && l->n_comp == 1; k++)
        profile[k] = partial[k] + l->self[k];
    for (size_t k = 0; k < n_q && l->n_comp > 1; k++) {
        double sum = 0.0;
        size_t at = k;
        tsr_coarse_coefficients(l->contrast, start, l->power[k], c);
        for (int a = 0; a < l->n_comp; a++)
            for (int b = a; b < l->n_comp; b++, at += n_q)
                sum += (a == b ? 1.0 : 2.0) * c[a] * c[b] *
                       (partial[at] + l->self[at]);
        profile[k] = sum;
    }
    for (size_t k = 0; k < n_q && l->atoms != NULL; k++)
        profile[k] *= tsr_likelihood_ratio(l, start, k);
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

/* ---- is the grid fine enough? ---- */

/* The corners of what c1 and c2 may be, and where they start: value [5]
 * out. Returns how many. */
static int places(const tsr_likelihood *l, double (*value)[TSR_N_CONTRAST])
{
    int n = l->n_comp == 1 ? 1 : 5;
    for (int i = 0; i < n; i++)
        for (int v = 0; v < TSR_N_CONTRAST; v++) {
            const tsr_parameter *p = &l->contrast[v];
            value[i][v] = i == 0 || !p->infer ? p->start
                          : (i - 1) >> v & 1  ? p->high
                                              : p->low;
        }
    return n;
}

/* ---- what bodies lack of atoms ---- */

static double *copied(size_t n, const double *from)
{
    double *to = malloc(n * sizeof *to);
    if (to != NULL)
        memcpy(to, from, n * sizeof *to);
    return to;
}

static tsr_status check_correction(const tsr_likelihood *l, tsr_err *err)
{
    double value[5][TSR_N_CONTRAST];
    int n = places(l, value);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < l->grid.n_q; k++) {
            double ratio = tsr_likelihood_ratio(l, value[i], (size_t)k);
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

tsr_status tsr_likelihood_correct(tsr_likelihood *likelihood,
                                  const double *atoms, const double *bodies,
                                  double radius_ang, tsr_err *err)
{
    tsr_likelihood *l = likelihood;
    const size_t n_q = (size_t)l->grid.n_q, n = (size_t)l->n_pair * n_q;
    l->atoms = copied(n, atoms);
    l->bodies = copied(n, bodies);
    l->atom_power = malloc(n_q * sizeof *l->atom_power);
    if (l->atoms == NULL || l->bodies == NULL || l->atom_power == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (size_t k = 0; k < n_q; k++)
        l->atom_power[k] =
            tsr_component_power(radius_ang, (double)k * l->grid.dq_inv_ang);
    return check_correction(l, err);
}

tsr_status tsr_likelihood_doubt(tsr_likelihood *likelihood,
                                const tsr_profile_error *error, tsr_err *err)
{
    tsr_likelihood *l = likelihood;
    const size_t n_q = (size_t)l->grid.n_q, n = (size_t)error->n * n_q;
    tsr_status status = TSR_OK;
    l->error_curve = malloc((n + n_q) * sizeof *l->error_curve);
    if (l->error_curve == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    memcpy(l->error_curve, error->curve, n * sizeof *error->curve);
    memcpy(l->error_curve + n, error->reference,
           n_q * sizeof *error->reference);
    l->error =
        (tsr_profile_error){error->n, l->error_curve, l->error_curve + n};
    for (int d = 0; d < l->n_term && status == TSR_OK; d++)
        if (l->term[d]->type->doubt != NULL)
            status = l->term[d]->type->doubt(l->term[d], &l->error, err);
    return status;
}

/* ---- the check ---- */

typedef struct {
    const tsr_likelihood *l;
    const tsr_topology *topology;
    const tsr_scattering *scattering;
    const tsr_conformation *conformation;
    const double *partial; /* of the engine */
    double *profile;       /* [n_q] scratch */
    double worst;
} check;

/* One term at one q, at every place of c1 and c2. The scale of sigma is that of
 * the place. */
static tsr_status check_point(check *c, const tsr_term *term, int k,
                              const double *scale, const double *curve,
                              tsr_err *err)
{
    double q = term->coord[k], direct[TSR_N_COMP_PAIR], radius, by[TSR_N_COMP];
    double value[5][TSR_N_CONTRAST];
    int n = places(c->l, value);
    tsr_status status = tsr_scattering_direct(
        c->scattering, c->topology, c->conformation, q, direct, &radius, err);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        by[0] = 1.0;
        if (c->l->n_comp > 1)
            tsr_coarse_coefficients(c->l->contrast, value[i],
                                    tsr_component_power(radius, q), by);
        double exact = tsr_coarse_sum(c->l->n_comp, by, direct, 1);
        double allowed =
            fmax(1e-4 * fabs(exact), 0.05 * term->sigma[k] / fabs(scale[i]));
        double had = curve[i * term->n_point + k];
        double error = fabs(had - exact) / allowed;
        c->worst = fmax(c->worst, error);
        if (error <= 1.0)
            continue;
        status = tsr_fail(
            err, TSR_E_INTERNAL,
            "'%s': at q = %.4f 1/A the engine and its q grid give "
            "I = %.8g, the direct sum %.8g: more than is allowed (%.2g)",
            term->label, q, had, exact, allowed);
        if (i > 0) /* the parts of the curve all but cancel there */
            status = tsr_fail(
                err, TSR_E_CONFIG,
                "contrast: at c1 = %.4g, c2 = %.4g, within what is allowed for "
                "them, the curve at q = %.4f 1/A of '%s' cannot be had to "
                "%.2g (%.8g instead of %.8g); narrow contrast.c1_range and "
                "contrast.c2_range",
                value[i][TSR_C1], value[i][TSR_C2], q, term->label, allowed,
                had, exact);
    }
    return status;
}

/* The profile at the points' own q: of a smeared term, whose points are means
 * of it with weights that add up to 1, the ideal curve is what is checked. */
static tsr_status check_curve(const check *c, const tsr_term *term,
                              double *scale, double *curve, tsr_err *err)
{
    const tsr_q_grid *grid = &c->l->grid;
    const size_t n_q = (size_t)grid->n_q;
    double *matrix;
    TSR_TRY(term->type->carry(term, c->profile, scale, curve, err));
    if (!term->is_smeared)
        return TSR_OK;
    TSR_TRY(tsr_q_operator_new(grid, term->n_point, term->coord, &matrix, err));
    for (size_t k = 0; k < (size_t)term->n_point; k++) {
        curve[k] = 0.0;
        for (size_t j = 0; j < n_q; j++)
            curve[k] += matrix[k * n_q + j] * c->profile[j];
    }
    free(matrix);
    return TSR_OK;
}

static tsr_status check_term(check *c, const tsr_term *term, tsr_err *err)
{
    enum { N_CHECK = 16 };
    const int n_point = term->n_point;
    double value[5][TSR_N_CONTRAST], scale[5] = {0.0};
    int n = places(c->l, value);
    double *curve = calloc((size_t)(n * n_point), sizeof *curve);
    tsr_status status = TSR_OK;
    if (curve == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int i = 0; i < n && status == TSR_OK; i++) {
        tsr_likelihood_profile(c->l, c->partial, value[i], c->profile);
        status = check_curve(c, term, &scale[i], curve + i * n_point, err);
    }
    for (int i = 0; i < N_CHECK && status == TSR_OK; i++)
        status =
            check_point(c, term, (int)((long)i * (n_point - 1) / (N_CHECK - 1)),
                        scale, curve, err);
    free(curve);
    return status;
}

tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_scattering *scattering,
                                const tsr_conformation *conformation,
                                const double *partial, double *worst,
                                tsr_err *err)
{
    check c = {
        likelihood, topology,
        scattering, conformation,
        partial,    calloc((size_t)likelihood->grid.n_q + 1, sizeof(double)),
        0.0};
    tsr_status status = c.profile == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : TSR_OK;
    for (int d = 0; d < likelihood->n_term && status == TSR_OK; d++)
        if (likelihood->term[d]->type->carry != NULL)
            status = check_term(&c, likelihood->term[d], err);
    free(c.profile);
    if (worst != NULL)
        *worst = c.worst;
    return status;
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

#include "likelihood/likelihood.h"

#include <math.h>
#include <stdlib.h>

void tsr_likelihood_free(tsr_likelihood *likelihood)
{
    if (likelihood == NULL)
        return;
    for (int d = 0; d < likelihood->n_data; d++)
        tsr_data_term_clear(&likelihood->data[d]);
    free(likelihood->data);
    free(likelihood->type);
    free(likelihood->amplitude);
    free(likelihood->self);
    free(likelihood->power);
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

tsr_status tsr_likelihood_new_of(const tsr_topology *topology,
                                 const tsr_scattering *scattering,
                                 double d_bound_ang, int n_data,
                                 const tsr_data_set *data, tsr_likelihood **out,
                                 tsr_err *err)
{
    double q_max = 0.0;
    *out = NULL;
    for (int d = 0; d < n_data; d++)
        q_max = fmax(q_max, data[d].saxs->q[data[d].saxs->n - 1]);
    tsr_likelihood *l = calloc(1, sizeof *l);
    if (l == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    l->grid = tsr_q_grid_make(d_bound_ang, q_max);
    l->data = calloc((size_t)n_data, sizeof *l->data);
    tsr_status status = l->data == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : take_factors(l, topology, scattering, err);
    for (int d = 0; d < n_data && status == TSR_OK; d++) {
        l->n_data = d + 1;
        status = tsr_data_term_make(&l->data[d], &data[d], d, &l->grid, err);
    }
    if (status != TSR_OK) {
        tsr_likelihood_free(l);
        return status;
    }
    *out = l;
    return TSR_OK;
}

tsr_status tsr_likelihood_new(const tsr_topology *topology,
                              const tsr_form_factor_table *table,
                              double d_bound_ang, int n_data,
                              const tsr_data_set *data, tsr_likelihood **out,
                              tsr_err *err)
{
    const tsr_scattering plain = {.plain = table};
    return tsr_likelihood_new_of(topology, &plain, d_bound_ang, n_data, data,
                                 out, err);
}

tsr_fit *tsr_fits_new(const tsr_likelihood *likelihood)
{
    size_t n_data = (size_t)likelihood->n_data;
    size_t bytes = (n_data + 1) * sizeof(tsr_fit), at = bytes;
    for (size_t d = 0; d < n_data; d++)
        if (likelihood->data[d].type->per_point)
            bytes += 2 * (size_t)likelihood->data[d].saxs->n * sizeof(double);
    tsr_fit *fit = calloc(bytes, 1);
    if (fit == NULL)
        return NULL;
    double *room = (double *)(void *)((char *)fit + at);
    for (size_t d = 0; d < n_data; d++)
        if (likelihood->data[d].type->per_point) {
            fit[d].model = room;
            fit[d].weight = room + likelihood->data[d].saxs->n;
            room += 2 * likelihood->data[d].saxs->n;
        }
    return fit;
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
}

tsr_status tsr_likelihood_fit(const tsr_likelihood *likelihood,
                              const double *profile, const double *theta,
                              tsr_fit *fit, tsr_err *err)
{
    double start[TSR_NOISE_PARAMETERS];
    for (int d = 0; d < likelihood->n_data; d++) {
        const tsr_data_term *term = &likelihood->data[d];
        if (theta == NULL)
            tsr_data_term_start(term, start);
        term->type->fit(
            term->state, profile,
            theta == NULL ? start : theta + d * TSR_NOISE_PARAMETERS, &fit[d]);
        if (!isfinite(fit[d].chi2) || !isfinite(fit[d].square_sum) ||
            !isfinite(fit[d].scale))
            return tsr_fail(err, TSR_E_NUMERIC,
                            "the profile does not fit '%s': chi2 %g, scale %g",
                            term->saxs->path, fit[d].chi2, fit[d].scale);
    }
    return TSR_OK;
}

double tsr_likelihood_least_beta(const tsr_likelihood *likelihood)
{
    double least = 0.0;
    for (int d = 0; d < likelihood->n_data; d++)
        least = fmax(least, tsr_data_term_least_beta(&likelihood->data[d]));
    return least;
}

void tsr_likelihood_curve(const tsr_likelihood *likelihood, int data,
                          const double *profile, double scale,
                          double background, double *curve)
{
    const tsr_data_term *term = &likelihood->data[data];
    int n_q = likelihood->grid.n_q;
    for (int k = 0; k < term->saxs->n; k++) {
        const double *row = term->matrix + (size_t)k * (size_t)n_q;
        double sum = 0.0;
        for (int j = 0; j < n_q; j++)
            sum += row[j] * profile[j];
        curve[k] = scale * sum + background;
    }
}

/* The corners of what c1 and c2 may be, and where they start: value [5]
 * out. Returns how many. */
static int places(const tsr_likelihood *l, double (*value)[TSR_N_CONTRAST])
{
    int n = l->n_comp == 1 ? 1 : 5;
    for (int i = 0; i < n; i++)
        for (int v = 0; v < TSR_N_CONTRAST; v++) {
            const tsr_contrast_prior *p = &l->contrast[v];
            value[i][v] = i == 0 || !p->infer ? p->start
                          : (i - 1) >> v & 1  ? p->high
                                              : p->low;
        }
    return n;
}

typedef struct {
    const tsr_likelihood *l;
    const tsr_topology *topology;
    const tsr_scattering *scattering;
    const tsr_conformation *conformation;
    const double *partial; /* of the engine */
    double *profile;       /* [n_q] scratch */
    tsr_fit *fit;          /* scratch */
    double worst;
} check;

/* One data set at one q, at every place of c1 and c2. The scale of sigma is
 * that of the place. */
static tsr_status check_point(check *c, int d, int k, const double *scale,
                              const double *curve, int stride, tsr_err *err)
{
    const tsr_saxs *saxs = c->l->data[d].saxs;
    double q = saxs->q[k], direct[TSR_N_COMP_PAIR], radius, by[TSR_N_COMP];
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
            fmax(1e-4 * fabs(exact), 0.05 * saxs->sigma[k] / fabs(scale[i]));
        double error = fabs(curve[i * stride + k] - exact) / allowed;
        c->worst = fmax(c->worst, error);
        if (error <= 1.0)
            continue;
        status = tsr_fail(
            err, TSR_E_INTERNAL,
            "'%s': at q = %.4f 1/A the engine and its q grid give "
            "I = %.8g, the direct sum %.8g: more than is allowed (%.2g)",
            saxs->path, q, curve[i * stride + k], exact, allowed);
        if (i > 0) /* the parts of the curve all but cancel there */
            status = tsr_fail(
                err, TSR_E_CONFIG,
                "contrast: at c1 = %.4g, c2 = %.4g, within what is allowed for "
                "them, the curve at q = %.4f 1/A of '%s' cannot be had to "
                "%.2g (%.8g instead of %.8g); narrow contrast.c1_range and "
                "contrast.c2_range",
                value[i][TSR_C1], value[i][TSR_C2], q, saxs->path, allowed,
                curve[i * stride + k], exact);
    }
    return status;
}

static tsr_status check_data_set(check *c, int d, tsr_err *err)
{
    enum { N_CHECK = 16 };
    const tsr_data_term *term = &c->l->data[d];
    int n_point = term->saxs->n;
    double value[5][TSR_N_CONTRAST], scale[5] = {0.0},
                                     theta[TSR_NOISE_PARAMETERS];
    int n = places(c->l, value);
    double *curve = calloc((size_t)(n * n_point), sizeof *curve);
    if (curve == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    tsr_data_term_start(term, theta);
    for (int i = 0; i < n; i++) {
        tsr_likelihood_profile(c->l, c->partial, value[i], c->profile);
        term->type->fit(term->state, c->profile, theta, &c->fit[d]);
        scale[i] = c->fit[d].scale;
        tsr_likelihood_curve(c->l, d, c->profile, 1.0, 0.0,
                             curve + i * n_point);
    }
    tsr_status status = TSR_OK;
    for (int i = 0; i < N_CHECK && status == TSR_OK; i++)
        status =
            check_point(c, d, (int)((long)i * (n_point - 1) / (N_CHECK - 1)),
                        scale, curve, n_point, err);
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
    check c = {likelihood,
               topology,
               scattering,
               conformation,
               partial,
               calloc((size_t)likelihood->grid.n_q, sizeof(double)),
               tsr_fits_new(likelihood),
               0.0};
    tsr_status status = c.profile == NULL || c.fit == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : TSR_OK;
    for (int d = 0; d < likelihood->n_data && status == TSR_OK; d++)
        status = check_data_set(&c, d, err);
    free(c.profile);
    free(c.fit);
    if (worst != NULL)
        *worst = c.worst;
    return status;
}

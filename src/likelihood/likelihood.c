#include "likelihood/likelihood.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

void tsr_likelihood_free(tsr_likelihood *likelihood)
{
    if (likelihood == NULL)
        return;
    for (int d = 0; d < likelihood->n_data; d++)
        tsr_data_term_clear(&likelihood->data[d]);
    free(likelihood->data);
    free(likelihood->amplitude);
    free(likelihood->self);
    free(likelihood);
}

tsr_status tsr_likelihood_new(const tsr_topology *topology,
                              const tsr_form_factor_table *table,
                              double d_bound_ang, int n_data,
                              const tsr_data_set *data, tsr_likelihood **out,
                              tsr_err *err)
{
    tsr_status status = TSR_OK;
    double q_max = 0.0;
    *out = NULL;
    for (int d = 0; d < n_data; d++)
        q_max = fmax(q_max, data[d].saxs->q[data[d].saxs->n - 1]);
    tsr_likelihood *l = calloc(1, sizeof *l);
    double *excess = NULL;
    if (l == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    l->grid = tsr_q_grid_make(d_bound_ang, q_max);
    l->n_type = table->n_type;
    size_t n_q = (size_t)l->grid.n_q, n_type = (size_t)table->n_type;
    l->data = calloc((size_t)n_data, sizeof *l->data);
    l->amplitude = calloc(n_type * n_q, sizeof *l->amplitude);
    l->self = calloc(n_q, sizeof *l->self);
    excess = calloc(n_type * n_q, sizeof *excess);
    if (l->data == NULL || l->amplitude == NULL || l->self == NULL ||
        excess == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
        goto fail;
    }
    status = tsr_form_factor_at(table, l->grid.n_q, l->grid.dq_inv_ang,
                                l->amplitude, excess, err);
    if (status != TSR_OK)
        goto fail;
    for (int b = 0; b < topology->n_body; b++)
        for (size_t k = 0; k < n_q; k++)
            l->self[k] += excess[(size_t)topology->body[b].type * n_q + k];
    for (int d = 0; d < n_data && status == TSR_OK; d++) {
        l->n_data = d + 1;
        status = tsr_data_term_make(&l->data[d], &data[d], d, &l->grid, err);
    }
    if (status != TSR_OK)
        goto fail;
    free(excess);
    *out = l;
    return TSR_OK;
fail:
    free(excess);
    tsr_likelihood_free(l);
    return status;
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

tsr_status tsr_likelihood_fit(const tsr_likelihood *likelihood, double *profile,
                              const double *theta, tsr_fit *fit, tsr_err *err)
{
    double start[TSR_NOISE_PARAMETERS];
    for (int k = 0; k < likelihood->grid.n_q; k++)
        profile[k] += likelihood->self[k];
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

tsr_status tsr_direct_intensity(const tsr_topology *topology,
                                const tsr_form_factor_table *table,
                                const tsr_conformation *conformation,
                                double q_inv_ang, double *intensity,
                                tsr_err *err)
{
    /* The table on a grid of 0 and q. */
    double f[2 * TSR_MAX_TYPE], excess[2 * TSR_MAX_TYPE], sum = 0.0;
    const tsr_topology *t = topology;
    int at = q_inv_ang > 0.0;
    tsr_status status = tsr_form_factor_at(
        table, 2, at ? q_inv_ang : table->dq_inv_ang, f, excess, err);
    for (int a = 0; a < t->n_body && status == TSR_OK; a++) {
        int ta = 2 * t->body[a].type + at;
        double pairs = 0.0;
        for (int b = 0; b < a; b++) {
            double x = q_inv_ang * tsr_vec3_distance(conformation->body[a],
                                                     conformation->body[b]);
            pairs +=
                f[2 * t->body[b].type + at] * (x > 1e-8 ? sin(x) / x : 1.0);
        }
        sum += 2.0 * f[ta] * pairs + f[ta] * f[ta] + excess[ta];
    }
    *intensity = sum;
    return status;
}

tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_form_factor_table *table,
                                const tsr_conformation *conformation,
                                const double *profile, double *worst,
                                tsr_err *err)
{
    enum { N_CHECK = 16 };
    const tsr_likelihood *l = likelihood;
    double largest = 0.0, exact;
    double *curve = NULL, theta[TSR_NOISE_PARAMETERS];
    tsr_fit *fit = tsr_fits_new(l);
    tsr_status status = TSR_OK;
    for (int d = 0; d < l->n_data && status == TSR_OK; d++) {
        const tsr_data_term *term = &l->data[d];
        const tsr_saxs *saxs = term->saxs;
        free(curve);
        curve = calloc((size_t)saxs->n, sizeof *curve);
        if (curve == NULL || fit == NULL) {
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
            break;
        }
        tsr_data_term_start(term, theta);
        term->type->fit(term->state, profile, theta, &fit[d]);
        tsr_likelihood_curve(l, d, profile, 1.0, 0.0, curve);
        for (int i = 0; i < N_CHECK && status == TSR_OK; i++) {
            int k = (int)((long)i * (saxs->n - 1) / (N_CHECK - 1));
            double q = saxs->q[k];
            status = tsr_direct_intensity(topology, table, conformation, q,
                                          &exact, err);
            if (status != TSR_OK)
                break;
            double allowed = fmax(1e-4 * fabs(exact),
                                  0.05 * saxs->sigma[k] / fabs(fit[d].scale));
            double error = fabs(curve[k] - exact) / allowed;
            largest = fmax(largest, error);
            if (!(error <= 1.0))
                status = tsr_fail(
                    err, TSR_E_INTERNAL,
                    "'%s': at q = %.4f 1/A the engine and its q grid give "
                    "I = %.8g, the direct sum %.8g: more than is allowed "
                    "(%.2g)",
                    saxs->path, q, curve[k], exact, allowed);
        }
    }
    free(curve);
    free(fit);
    if (worst != NULL)
        *worst = largest;
    return status;
}

/* Bodies as an engine sees them. Hydration is an exposure times an amplitude of
 * the type, and an engine knows types alone: bodies of one type and one
 * exposure are one type of the engine, so that no engine needs to know of
 * exposures. */
#include "scattering/coarse_profile.h"

#include <stdlib.h>
#include <string.h>

void tsr_coarse_spec_clear(tsr_coarse_spec *spec)
{
    free(spec->type);
    free(spec->form_factor);
    free(spec->exposure);
    free(spec->self);
    *spec = (tsr_coarse_spec){0};
}

/* Numbers the pairs (type, exposure) that occur: out->type; body [n] out is the
 * first body of each, with room for n and n_table more. Returns how many. */
static int number_types(int n, const int *type, int n_table,
                        tsr_coarse_spec *out, int *body)
{
    int n_type = 0;
    int *next = body + n;
    int *last = next + n; /* of each type the newest, others by `next` */
    for (int t = 0; t < n_table; t++)
        last[t] = -1;
    for (int i = 0; i < n; i++) {
        int e = last[type[i]];
        while (e >= 0 && out->exposure[body[e]] != out->exposure[i])
            e = next[e];
        if (e < 0) {
            e = n_type++;
            body[e] = i;
            next[e] = last[type[i]];
            last[type[i]] = e;
        }
        out->type[i] = e;
    }
    return n_type;
}

/* form_factor of the engine's types from that of the table's,
 * [TSR_N_COMP][n_table][n_q]. */
static void fill_factors(const tsr_form_factor_table *table, const int *type,
                         const int *body, const double *amplitude,
                         tsr_coarse_spec *out)
{
    size_t n_q = (size_t)out->spec.n_q, n_type = (size_t)out->spec.n_type;
    for (size_t c = 0; c < TSR_N_COMP; c++)
        for (size_t e = 0; e < n_type; e++) {
            size_t t = (size_t)type[body[e]];
            double by = c == TSR_HYDRATION ? out->exposure[body[e]] : 1.0;
            const double *from =
                amplitude + (c * (size_t)table->n_type + t) * n_q;
            double *to = out->form_factor + (c * n_type + e) * n_q;
            for (size_t k = 0; k < n_q; k++)
                to[k] = by * from[k];
        }
}

void tsr_coarse_add_self(const tsr_form_factor_table *table, int n_body,
                         const int *type, const double *exposure, int n_q,
                         const double *excess, double *partial)
{
    size_t row = (size_t)n_q, n_type = (size_t)table->n_type;
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++) {
            size_t pair = (size_t)tsr_component_pair(a, b);
            double *to = partial + pair * row;
            for (int i = 0; i < n_body; i++) {
                double by = (a == TSR_HYDRATION ? exposure[i] : 1.0) *
                            (b == TSR_HYDRATION ? exposure[i] : 1.0);
                const double *from =
                    excess + (pair * n_type + (size_t)type[i]) * row;
                for (size_t k = 0; k < row; k++)
                    to[k] += by * from[k];
            }
        }
}

tsr_status tsr_coarse_spec_of(const tsr_form_factor_table *table, int n_body,
                              const int *type, const double *exposure, int n_q,
                              double dq_inv_ang, tsr_coarse_spec *out,
                              tsr_err *err)
{
    size_t n = (size_t)n_body, row = (size_t)n_q;
    size_t n_table = (size_t)table->n_type * row;
    *out = (tsr_coarse_spec){.type = malloc(n * sizeof *out->type),
                             .exposure = malloc(n * sizeof(double)),
                             .self =
                                 calloc(TSR_N_COMP_PAIR * row, sizeof(double))};
    int *body = malloc((2 * n + (size_t)table->n_type) * sizeof *body);
    double *amplitude = malloc(TSR_N_COMP * n_table * sizeof *amplitude);
    double *excess = malloc(TSR_N_COMP_PAIR * n_table * sizeof *excess);
    tsr_status s = TSR_OK;
    if (out->type == NULL || out->exposure == NULL || out->self == NULL ||
        body == NULL || amplitude == NULL || excess == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n_body);
    TSR_THEN(
        s, tsr_form_factor_at(table, n_q, dq_inv_ang, amplitude, excess, err));
    if (s == TSR_OK) {
        memcpy(out->exposure, exposure, n * sizeof *exposure);
        out->spec = (tsr_engine_spec){
            .n_body = n_body,
            .n_type = number_types(n_body, type, table->n_type, out, body),
            .n_comp = TSR_N_COMP,
            .n_q = n_q,
            .dq_inv_ang = dq_inv_ang,
            .n_system = 1,
            .type = out->type};
        out->form_factor = malloc(TSR_N_COMP * (size_t)out->spec.n_type * row *
                                  sizeof(double));
        if (out->form_factor == NULL)
            s = tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n_body);
    }
    if (s == TSR_OK) {
        out->spec.form_factor = out->form_factor;
        fill_factors(table, type, body, amplitude, out);
        tsr_coarse_add_self(table, n_body, type, out->exposure, n_q, excess,
                            out->self);
        out->radius_ang = tsr_component_radius(table, n_body, type);
    } else {
        tsr_coarse_spec_clear(out);
    }
    free(body);
    free(amplitude);
    free(excess);
    return s;
}

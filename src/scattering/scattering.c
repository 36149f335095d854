/* From a molecule and its form factors to the spec of an engine, and direct
 * sums in double precision to check engine and grid. */
#include "scattering/scattering.h"

#include "scattering/debye.h"

/* The spec for a table with one component: the engine has the types of the
 * table. */
static tsr_status plain_spec(const tsr_form_factor_table *table, int n,
                             int *type, int n_q, double dq_inv_ang,
                             tsr_pool *pool, tsr_coarse_spec *out, tsr_err *err)
{
    const size_t row = (size_t)n_q, n_table = (size_t)table->n_type * row;
    double *excess;
    *out = (tsr_coarse_spec){.type = type};
    tsr_pool_array(pool, out->form_factor, n_table);
    tsr_pool_array(pool, out->self, row);
    tsr_pool_array(pool, excess, n_table);
    if (pool->failed)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n);
    TSR_TRY(tsr_form_factor_resample(table, n_q, dq_inv_ang, out->form_factor,
                                     excess, err));
    for (int b = 0; b < n; b++)
        for (size_t k = 0; k < row; k++)
            out->self[k] += excess[(size_t)type[b] * row + k];
    tsr_pool_free(pool, excess);
    tsr_coarse_spec_set(out, n, table->n_type, 1, n_q, dq_inv_ang);
    return TSR_OK;
}

tsr_status tsr_scattering_spec(const tsr_scattering *s,
                               const tsr_topology *topology, int n_q,
                               double dq_inv_ang, tsr_pool *pool,
                               tsr_coarse_spec *out, tsr_err *err)
{
    const int n = topology->n_body;
    if (s->neutron != NULL)
        return tsr_neutron_bodies_spec(s->neutron, s->contrast, n_q, dq_inv_ang,
                                       pool, out, err);
    int *type = tsr_pool_new(pool, (size_t)n, sizeof *type);
    TSR_TRY(tsr_allocated(type, err));
    const tsr_form_factor_table *table =
        s->component != NULL ? s->component : s->plain;
    tsr_form_factor_table *extended = NULL; /* by a type of zeros */
    if (s->absent != NULL)
        table = extended = tsr_form_factor_extend(table, 1);
    TSR_TRY(tsr_allocated(table, err));
    for (int b = 0; b < n; b++)
        type[b] = s->absent != NULL && s->absent[b] ? table->n_type - 1
                                                    : topology->body[b].type;
    const tsr_status status =
        s->component == NULL
            ? plain_spec(table, n, type, n_q, dq_inv_ang, pool, out, err)
            : tsr_coarse_spec_of(table, n, type, s->exposure, n_q, dq_inv_ang,
                                 pool, out, err);
    tsr_form_factor_free(extended);
    if (status != TSR_OK || s->component == NULL)
        return status;
    out->spec.n_comp =
        tsr_factors_fold(s->contrast, out->radius_ang, out->spec.n_type, n_q,
                         dq_inv_ang, out->form_factor);
    tsr_partials_fold(s->contrast, out->radius_ang, n_q, dq_inv_ang, out->self);
    return TSR_OK;
}

tsr_status tsr_scattering_direct(const tsr_scattering *scattering,
                                 const tsr_topology *topology,
                                 const tsr_conformation *conformation,
                                 double q_inv_ang, double *partial,
                                 double *radius_ang, tsr_err *err)
{
    /* evaluates the tables on a grid of two points, 0 and q */
    const tsr_scattering *s = scattering;
    int at = q_inv_ang > 0.0;
    double dq = at                     ? q_inv_ang
                : s->neutron != NULL   ? 1.0
                : s->component != NULL ? s->component->dq_inv_ang
                                       : s->plain->dq_inv_ang;
    tsr_coarse_spec coarse;
    tsr_pool pool = {0};
    tsr_status status =
        tsr_scattering_spec(s, topology, 2, dq, &pool, &coarse, err);
    if (status != TSR_OK) {
        tsr_pool_clear(&pool);
        return status;
    }
    const tsr_debye_spec debye = {.n = topology->n_body,
                                  .n_type = coarse.spec.n_type,
                                  .n_comp = coarse.spec.n_comp,
                                  .n_q = 2,
                                  .dq_inv_ang = dq,
                                  .xyz = (const double(*)[3])conformation->body,
                                  .type = coarse.type,
                                  .form_factor = coarse.form_factor};
    double sum[TSR_N_COMP_PAIR][2];
    status = tsr_debye_reference(&debye, NULL, sum[0], err);
    for (int p = 0; p < tsr_debye_n_pair(&debye) && status == TSR_OK; p++)
        partial[p] = sum[p][at] + coarse.self[2 * p + at];
    if (radius_ang != NULL)
        *radius_ang = coarse.radius_ang;
    tsr_pool_clear(&pool);
    return status;
}

tsr_status tsr_scattering_intensity(const tsr_scattering *scattering,
                                    const tsr_topology *topology,
                                    const tsr_conformation *conformation,
                                    const double *value, double q_inv_ang,
                                    double *intensity, tsr_err *err)
{
    const tsr_parameter *prior = scattering->contrast;
    double partial[TSR_N_COMP_PAIR] = {0.0}, c[TSR_N_COMP] = {1.0}, radius;
    double start[TSR_N_CONTRAST];
    const tsr_neutron_basis *basis =
        scattering->neutron != NULL
            ? tsr_neutron_bodies_basis(scattering->neutron)
            : NULL;
    int n_comp = 1;
    TSR_TRY(tsr_scattering_direct(scattering, topology, conformation, q_inv_ang,
                                  partial, &radius, err));
    const int is_plain = basis == NULL && scattering->component == NULL;
    for (int i = 0; i < TSR_N_CONTRAST && !is_plain; i++)
        start[i] = value != NULL ? value[i] : prior[i].start;
    if (basis != NULL)
        n_comp =
            tsr_neutron_coefficients(basis, prior, start, basis->origin, c);
    else if (!is_plain)
        n_comp = tsr_coarse_coefficients(
            prior, start, tsr_component_power(radius, q_inv_ang), c);
    *intensity = tsr_coarse_sum(n_comp, c, partial, 1);
    return TSR_OK;
}

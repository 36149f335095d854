/* I_ab + S_ab of a conformation from any engine, as a run computes them. */
#ifndef TESTS_COARSE_PARTIALS_H
#define TESTS_COARSE_PARTIALS_H

#include "scattering/form_factor.h"

#include <stdlib.h>

/* Makes an engine of a spec: tsr_engine_page_tile_new with the context's
 * device, or another. */
typedef tsr_status engine_make(void *context, const tsr_engine_spec *spec,
                               tsr_engine **out, tsr_err *err);

/* Makes it for n_body bodies of types `type` (molecule/residue.h, those of the
 * table's body model) at xyz [n_body][3], Angstrom, on q_k = k dq, k < n_q.
 * exposure [n_body]: carried outside; NULL: estimated here.
 * Its memory is of the pool. Errors: TSR_E_RANGE (the table ends before),
 * TSR_E_NOMEM. */
static inline tsr_status coarse_spec_make(const tsr_form_factor_table *table,
                                          int n_body, const int *type,
                                          const double (*xyz)[3],
                                          const double *exposure, int n_q,
                                          double dq_inv_ang, tsr_pool *pool,
                                          tsr_coarse_spec *out, tsr_err *err)
{
    double *own = malloc((size_t)n_body * sizeof *own);
    *out = (tsr_coarse_spec){0};
    if (own == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n_body);
    tsr_form_factor_exposures(table, n_body, type, xyz, own);
    tsr_status s =
        tsr_exposure_displace(&table->exposure, n_body, xyz, NULL, own, err);
    if (s == TSR_OK)
        s = tsr_coarse_spec_of(table, n_body, type,
                               exposure != NULL ? exposure : own, n_q,
                               dq_inv_ang, pool, out, err);
    free(own);
    return s;
}

/* All of it: the spec, an engine for it (make NULL: the reference engine), its
 * profile of the bodies at xyz, S_ab.
 * partial    [TSR_N_COMP_PAIR][n_q]  out  electrons squared
 * radius_ang                         out  r_m, Angstrom
 * Errors: those of the spec and of the engine. Cost: n_body^2 n_q. */
static inline tsr_status
coarse_partials(const tsr_form_factor_table *table, int n_body, const int *type,
                const double (*xyz)[3], const double *exposure, int n_q,
                double dq_inv_ang, engine_make *make, void *context,
                double *partial, double *radius_ang, tsr_err *err)
{
    tsr_coarse_spec coarse;
    tsr_pool pool = {0};
    tsr_engine *engine = NULL;
    tsr_batch *batch = NULL;
    tsr_status s = coarse_spec_make(table, n_body, type, xyz, exposure, n_q,
                                    dq_inv_ang, &pool, &coarse, err);
    if (s != TSR_OK) {
        tsr_pool_clear(&pool);
        return s;
    }
    s = make == NULL ? tsr_engine_reference_new(&coarse.spec, &engine, err)
                     : make(context, &coarse.spec, &engine, err);
    if (s == TSR_OK)
        s = tsr_batch_new(engine, 1, &batch, err);
    if (s == TSR_OK)
        s = tsr_batch_set(batch, 0, xyz, partial, err);
    for (size_t i = 0; i < TSR_N_COMP_PAIR * (size_t)n_q && s == TSR_OK; i++)
        partial[i] += coarse.self[i];
    *radius_ang = coarse.radius_ang;
    tsr_batch_free(batch);
    tsr_engine_free(engine);
    tsr_pool_clear(&pool);
    return s;
}

#endif

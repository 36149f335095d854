/* I_ab + S_ab of a conformation from any engine, as a run computes them. */
#ifndef TESTS_COARSE_PARTIALS_H
#define TESTS_COARSE_PARTIALS_H

#include "scattering/form_factor.h"

#include "tests/objects.h"

/* Makes an engine of a spec: tsr_engine_page_tile_new with the context's
 * device, or another. */
typedef tsr_status engine_make(void *context, const tsr_engine_spec *spec,
                               tsr_engine **out, tsr_err *err);

/* Makes it for n_body bodies of types `type` (molecule/residue.h, those of the
 * table's body model) at xyz [n_body][3], Angstrom, on q_k = k dq, k < n_q.
 * exposure [n_body]: carried outside; NULL: estimated here.
 * Its memory is of the pool. Errors: TSR_E_RANGE (the table ends before). */
static inline tsr_status coarse_spec_make(const tsr_form_factor_table *table,
                                          int n_body, const int *type,
                                          const double (*xyz)[3],
                                          const double *exposure, int n_q,
                                          double dq_inv_ang, tsr_pool *pool,
                                          tsr_coarse_spec *out, tsr_err *err)
{
    double *own_exposure = array((size_t)n_body, sizeof *own_exposure);
    *out = (tsr_coarse_spec){0};
    tsr_form_factor_exposures(table, n_body, type, xyz, own_exposure);
    tsr_status s = tsr_exposure_displace(&table->exposure, n_body, xyz, NULL,
                                         own_exposure, err);
    if (s == TSR_OK)
        s = tsr_coarse_spec_of(table, n_body, type,
                               exposure != NULL ? exposure : own_exposure, n_q,
                               dq_inv_ang, pool, out, err);
    return s;
}

/* All of it: the spec, an engine for it (make NULL: the reference engine), its
 * profile of the bodies at xyz, S_ab.
 * partial    [TSR_N_COMP_PAIR][n_q]  out  electrons squared
 * radius_ang                         out  r_m, Angstrom
 * Cost: n_body^2 n_q. */
static inline void
coarse_partials(const tsr_form_factor_table *table, int n_body, const int *type,
                const double (*xyz)[3], const double *exposure, int n_q,
                double dq_inv_ang, engine_make *make, void *context,
                double *partial, double *radius_ang)
{
    tsr_coarse_spec coarse;
    tsr_engine *engine;
    OK(coarse_spec_make(table, n_body, type, xyz, exposure, n_q, dq_inv_ang,
                        new_pool(), &coarse, &err));
    OK(make == NULL ? tsr_engine_reference_new(&coarse.spec, &engine, &err)
                    : make(context, &coarse.spec, &engine, &err));
    own_tsr_engine(engine);
    NEW(tsr_batch, batch, tsr_batch_new, engine, 1);
    OK(tsr_batch_set(batch, 0, xyz, partial, &err));
    for (size_t i = 0; i < TSR_N_COMP_PAIR * (size_t)n_q; i++)
        partial[i] += coarse.self[i];
    *radius_ang = coarse.radius_ang;
}

#endif

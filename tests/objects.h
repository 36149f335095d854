/* Objects of the library that are freed when the test ends. */
#ifndef TESTS_OBJECTS_H
#define TESTS_OBJECTS_H

#include "gpu/debye_sum.h"
#include "maps/density.h"
#include "posterior/all_atoms.h"
#include "posterior/profile_partials.h"
#include "sampler/sampler.h"
#include "scattering/neutron.h"
#include "store/trace.h"
#include "surrogate/surrogate.h"
#include "tests/model_sample.h"

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_permutation.h>
#include <gsl/gsl_vector.h>

OWNED(tsr_atoms)
OWNED(tsr_structure)
OWNED(tsr_model_atoms)
OWNED(tsr_prior_table)
OWNED(tsr_prior_state)
OWNED(tsr_device)
OWNED(tsr_engine)
OWNED(tsr_batch)
OWNED_AS(tsr_density, tsr_density_engine)
OWNED(tsr_debye_sum)
OWNED_AS(tsr_form_factor, tsr_form_factor_table)
OWNED(tsr_atom_model)
OWNED(tsr_atom_curves)
OWNED(tsr_neutron_bodies)
OWNED(tsr_profile_maker)
OWNED(tsr_saxs)
OWNED(tsr_term)
OWNED(tsr_likelihood)
OWNED(tsr_chain)
OWNED(tsr_sampler)
OWNED(tsr_record)
OWNED(tsr_trace_reader)
OWNED(gsl_matrix)
OWNED(gsl_vector)
OWNED(gsl_permutation)
OWNED(tsr_surrogate)
#define own_tsr_form_factor_table own_tsr_form_factor
#define own_tsr_density_engine own_tsr_density

/* MAKE: `object`, a variable, is made by make(..., &object, &err), which must
 * succeed. NEW: so is `type *name`, which it declares. */
#define MAKE(type, object, make, ...)         \
    do {                                      \
        OK(make(__VA_ARGS__, &object, &err)); \
        own_##type(object);                   \
    } while (0)

#define NEW(type, name, make, ...) \
    type *name;                    \
    MAKE(type, name, make, __VA_ARGS__)

/* Of an engine for the curves of l: n_body bodies, as its first probe. */
static inline tsr_engine_spec probe_spec(const tsr_likelihood *l, int n_body,
                                         int n_system)
{
    return (tsr_engine_spec){.n_body = n_body,
                             .n_type = l->probe->n_type,
                             .n_comp = l->probe->n_comp,
                             .n_q = l->grid.n_q,
                             .dq_inv_ang = l->grid.dq_inv_ang,
                             .n_system = n_system,
                             .type = l->probe->type,
                             .form_factor = l->probe->amplitude};
}

/* Chain `number` of a target, at its start. */
static inline tsr_chain *new_chain(const tsr_target *target, int number,
                                   tsr_batch *batch)
{
    NEW(tsr_chain, chain, tsr_chain_new, target, number);
    OK(tsr_chain_start(chain, batch, &err));
    return chain;
}

/* 1 where this device can be opened. */
static inline int is_device(const char *name)
{
    tsr_device *device = NULL;
    const int is = tsr_device_open(name, &device, &err) == TSR_OK;
    tsr_device_free(device);
    if (!is)
        print_message("skipped: %s\n", err.message);
    return is;
}

static inline tsr_pool *new_pool(void)
{
    tsr_pool *pool = array(1, sizeof *pool);
    return own(pool, release_pool);
}

#endif

/* A start that the prior forbids is moved until it is allowed. */
#ifndef TSR_SAMPLER_RELAX_H
#define TSR_SAMPLER_RELAX_H

#include "core/log.h"
#include "prior/prior.h"
#include "sampler/chain.h"

/* Samples the prior without its clash limit, where overlaps cost what they
 * cost, until `prior` allows the conformation; says how far it went. Errors:
 * TSR_E_DATA where 200,000 steps do not do. */
tsr_status tsr_relax(const tsr_topology *topology, const tsr_prior_table *table,
                     const tsr_prior_options *options, double d_limit_ang,
                     const void *const *move_options, uint64_t seed,
                     const tsr_prior *prior, tsr_conformation *first,
                     tsr_log *log, tsr_err *err);

#endif

/* Moves a starting structure with overlaps that the prior forbids, until the
 * prior allows the structure. */
#ifndef TSR_SAMPLER_RELAX_H
#define TSR_SAMPLER_RELAX_H

#include "core/log.h"
#include "prior/prior.h"
#include "sampler/chain.h"

/* Makes steps that sample the prior without its clash limit, so that an overlap
 * costs energy but is not forbidden, until `prior` finds no forbidden overlap.
 * The log names the number of steps and the displacement.
 * first       in/out  the conformation
 * d_limit_ang in      largest distance allowed, Angstrom
 * Errors: TSR_E_DATA where 200,000 steps leave an overlap; those of
 * tsr_prior_new and tsr_chain_new. */
tsr_status tsr_relax(const tsr_topology *topology, const tsr_prior_table *table,
                     const tsr_prior_options *options, double d_limit_ang,
                     const void *const *move_options, uint64_t seed,
                     const tsr_prior *prior, tsr_conformation *first,
                     tsr_log *log, tsr_err *err);

#endif

/* Random streams: Philox 4x32-10 (Salmon et al. 2011) behind a gsl_rng_type.
 *
 * Counter-based: a stream is fixed by (seed, stream) alone, so the draws of a
 * chain depend on neither threads nor batching. GSL's distributions take the
 * gsl_rng as any other. gsl_rng_get gives 32 bits, gsl_rng_uniform 53. */
#ifndef TSR_CORE_RANDOM_H
#define TSR_CORE_RANDOM_H

#include "core/status.h"

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* A new generator at the start of its stream; gsl_rng_free frees it. NULL when
 * out of memory. */
gsl_rng *tsr_rng_new(uint64_t seed, uint64_t stream);

/* All of a generator's state, for checkpoints: 4 words, restored to the bit. */
enum { TSR_RNG_WORDS = 4 };
void tsr_rng_save(const gsl_rng *rng, uint64_t word[TSR_RNG_WORDS]);
void tsr_rng_restore(gsl_rng *rng, const uint64_t word[TSR_RNG_WORDS]);

#endif

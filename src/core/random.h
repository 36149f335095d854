/* Random streams: Philox 4x32-10 (Salmon et al. 2011) as a gsl_rng_type.
 *
 * The generator is counter-based: (seed, stream) determines the numbers, so
 * that the draws of a chain depend neither on threads nor on batches. All
 * distributions of GSL accept the gsl_rng. gsl_rng_get returns 32 random bits,
 * gsl_rng_uniform 53. */
#ifndef TSR_CORE_RANDOM_H
#define TSR_CORE_RANDOM_H

#include "core/status.h"

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* A new generator at the start of its stream, to be freed with gsl_rng_free.
 * Returns NULL when out of memory. */
gsl_rng *tsr_rng_new(uint64_t seed, uint64_t stream);

/* Saves and restores the complete state of a generator, for checkpoints. */
enum { TSR_RNG_WORDS = 4 };
void tsr_rng_save(const gsl_rng *rng, uint64_t word[TSR_RNG_WORDS]);
void tsr_rng_restore(gsl_rng *rng, const uint64_t word[TSR_RNG_WORDS]);

#endif

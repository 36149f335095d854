/* Philox as a generator type of GSL, for use with its distributions. One value
 * of the counter yields four 32-bit words, and the state is small enough for
 * checkpoints. */
#include "core/random.h"

#include <Random123/philox.h>
#include <string.h>

/* The counter is (block, stream), the key is the seed, and each block has four
 * words. */
typedef struct {
    uint64_t seed, stream, block;
    uint32_t word[4];
    unsigned used; /* words of the block already returned; 4: all */
} philox_state;

static void philox_compute_block(philox_state *s)
{
    philox4x32_ctr_t counter = {{(uint32_t)s->block, (uint32_t)(s->block >> 32),
                                 (uint32_t)s->stream,
                                 (uint32_t)(s->stream >> 32)}};
    philox4x32_key_t key = {{(uint32_t)s->seed, (uint32_t)(s->seed >> 32)}};
    philox4x32_ctr_t out = philox4x32(counter, key);
    memcpy(s->word, out.v, sizeof s->word);
}

static uint32_t philox_next(philox_state *s)
{
    if (s->used == 4) {
        s->block++;
        philox_compute_block(s);
        s->used = 0;
    }
    return s->word[s->used++];
}

static void philox_start(philox_state *s, uint64_t seed, uint64_t stream)
{
    s->seed = seed, s->stream = stream, s->block = 0, s->used = 0;
    philox_compute_block(s);
}

static void philox_set(void *state, unsigned long seed)
{
    philox_start(state, seed, 0);
}

static unsigned long philox_get(void *state)
{
    return philox_next(state);
}

static double philox_get_double(void *state)
{
    uint64_t high = philox_next(state), low = philox_next(state);
    return (double)(((high << 32) | low) >> 11) * 0x1.0p-53;
}

static const gsl_rng_type philox_type = {
    "philox4x32-10", 0xffffffffUL,     0, sizeof(philox_state), philox_set,
    philox_get,      philox_get_double};

gsl_rng *tsr_rng_new(uint64_t seed, uint64_t stream)
{
    gsl_rng *rng = gsl_rng_alloc(&philox_type);
    if (rng != NULL)
        philox_start(rng->state, seed, stream);
    return rng;
}

void tsr_rng_save(const gsl_rng *rng, uint64_t word[TSR_RNG_WORDS])
{
    const philox_state *s = rng->state;
    word[0] = s->seed, word[1] = s->stream, word[2] = s->block;
    word[3] = s->used;
}

void tsr_rng_restore(gsl_rng *rng, const uint64_t word[TSR_RNG_WORDS])
{
    philox_state *s = rng->state;
    s->seed = word[0], s->stream = word[1], s->block = word[2];
    s->used = word[3] < 4 ? (unsigned)word[3]
                          : 4; /* read from a file, and used as an index */
    philox_compute_block(s);
}

/* Each step mixes eight bytes into the state by a multiplication and a shift.
 * The state after one piece of data is the start of the next. */
#include "files/checksum.h"

/* The bytes as a little-endian number on any machine. */
static uint64_t word_at(const unsigned char *at, size_t n)
{
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

/* The multiplication propagates differences to higher bits, the shift to lower
 * bits. */
static uint64_t mix(uint64_t state, uint64_t word)
{
    state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return state ^ (state >> 32);
}

uint64_t tsr_checksum(uint64_t before, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint64_t state = mix(before + UINT64_C(0xcbf29ce484222325), n);

    for (size_t left = n; left > 0;) {
        const size_t part = left < 8 ? left : 8;
        state = mix(state, part == 8 ? word_at(at, 8) : word_at(at, part));
        at += part;
        left -= part;
    }
    return mix(state, UINT64_C(0x2545f4914f6cdd1d));
}

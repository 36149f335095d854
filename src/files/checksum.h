/* A 64-bit checksum of bytes: finds damage, is no cryptographic hash. */
#ifndef TSR_FILES_CHECKSUM_H
#define TSR_FILES_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `before` (0 to begin) over n bytes. Each step is a bijection of
 * the state, so one changed word always changes the result; n is part of it.
 * The same on every machine. About 4 GB/s. */
uint64_t tsr_checksum(uint64_t before, const void *bytes, size_t n);

#endif

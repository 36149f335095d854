/* A 64-bit checksum of bytes. It detects damage, but is not a cryptographic
 * hash. */
#ifndef TSR_FILES_CHECKSUM_H
#define TSR_FILES_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of n bytes, continuing from `before` (0 to begin). The length n is
 * included, so the result also depends on how the bytes are divided among
 * calls. Each step is a bijection of the state, so a single changed word always
 * changes the result. The result is the same on every machine. About 4 GB/s. */
uint64_t tsr_checksum(uint64_t before, const void *bytes, size_t n);

#endif

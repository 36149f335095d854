/* Log densities as integers in units of 2^-32 nat: sums of them are exact. */
#ifndef TSR_MOLECULE_FIXED_H
#define TSR_MOLECULE_FIXED_H

#include <math.h>
#include <stdint.h>

#define TSR_FIXED_SCALE 0x1p32

/* Held within 2^20 nat, far beyond any use; two thousand at that bound still
 * add up, and any number of terms of the size that samples have. */
static inline int64_t tsr_fix(double nat)
{
    double bound = 0x1p20;
    nat = nat > bound ? bound : nat < -bound ? -bound : nat;
    return (int64_t)llrint(nat * TSR_FIXED_SCALE);
}

static inline double tsr_unfix(int64_t fixed)
{
    return (double)fixed / TSR_FIXED_SCALE;
}

#endif

/* Dividing chains and threads among devices. */
#ifndef TSR_SAMPLER_SHARE_H
#define TSR_SAMPLER_SHARE_H

/* Divides `total` whole things into n parts in proportion to weight, by the
 * largest remainder; of equal remainders the first wins. Where total >= n every
 * part is at least 1. A weight that is not positive and finite counts as 0;
 * where all do, the parts are equal.
 * weight [n] in; part [n] out, its sum is total. Cost: O(n^2). */
void tsr_share_divide(int total, int n, const double *weight, int *part);

#endif

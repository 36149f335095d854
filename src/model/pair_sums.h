/* Sums of sinc(q r) over pairs of points of a few kinds: of them any amplitudes
 * of the kinds make a profile.
 *
 *     plain_ts(q) = sum over pairs of kinds t and s of sinc(q r)
 *     one_ts(q)   = sum_{i in t} sum_{j in s, j != i} w_j sinc(q r_ij)
 *     both_ts(q)  = as plain, of w_i w_j sinc(q r_ij)
 *
 * Distances go through bins of 0.05 Angstrom, shared between two neighbours,
 * which leaves errors of 1e-4 of a profile at q = 1/Angstrom. */
#ifndef TSR_MODEL_PAIR_SUMS_H
#define TSR_MODEL_PAIR_SUMS_H

#include "core/status.h"

#include <stddef.h>

typedef struct {
    int n, n_kind;
    double (*xyz)[3]; /* [n] Angstrom */
    int *kind;        /* [n] */
    double *weight;   /* [n] w, zeroes at first */
} tsr_pair_points;

/* Room for n points: 0, or -1 when out of memory. n and n_kind stay. */
int tsr_pair_points_new(tsr_pair_points *points, int n);
void tsr_pair_points_clear(tsr_pair_points *points);

/* Number of the pair of kinds, in either order: of n kinds n (n + 1) / 2. */
static inline size_t tsr_pair_index(int t, int s)
{
    return (size_t)(t >= s ? t * (t + 1) / 2 + s : s * (s + 1) / 2 + t);
}

/* Added to, on q_k = k dq: plain and both [pairs of kinds][n_q], one
 * [n_kind][n_kind][n_q]; one and both NULL: not wanted. */
typedef struct {
    double *plain, *one, *both;
} tsr_pair_sums;

/* Errors: TSR_E_NOMEM. */
tsr_status tsr_pair_sums_add(const tsr_pair_points *points, int n_q,
                             double dq_inv_ang, const tsr_pair_sums *sums,
                             tsr_err *err);

#endif

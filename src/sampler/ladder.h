/* Replica exchange along a ladder of likelihood temperatures.
 *
 * Replica r of a ladder samples P(X) P(D | X)^(1 / T). The temperatures start
 * geometric from 1 to t_max. Pairs of neighbours try to exchange in a fixed
 * alternation, even pairs, then odd pairs (deterministic even-odd scheme: Okabe
 * et al. 2001; Syed et al. 2022). In warm-up the temperatures between the first
 * and the last adapt until all pairs exchange equally often (Syed et al.
 * 2022). */
#ifndef TSR_SAMPLER_LADDER_H
#define TSR_SAMPLER_LADDER_H

#include "core/archive.h"
#include "core/random.h"

typedef struct tsr_ladder tsr_ladder;

enum { TSR_MAX_TEMPERATURES = 64 };

/* Temperatures 1 = T_0 < ... < T_{n-1} = t_max; n = 1: no exchanges. The random
 * stream depends on seed and number and differs from those of the chains. NULL:
 * out of memory. */
tsr_ladder *tsr_ladder_new(int n, double t_max, uint64_t seed, int number);
void tsr_ladder_free(tsr_ladder *ladder);

/* Number of temperatures. */
int tsr_ladder_size(const tsr_ladder *ladder);

/* The replica at temperature k, and 1 / T of temperature k. */
int tsr_ladder_replica(const tsr_ladder *ladder, int k);
double tsr_ladder_beta(const tsr_ladder *ladder, int k);

/* Sets the temperatures between the first and the last, before any exchange.
 * beta [n] in: 1 / T, descending from 1. */
void tsr_ladder_set(tsr_ladder *ladder, const double *beta);

/* One round of exchanges. log_lik [n], nat, by replica. beta_factor: factor of
 * all 1 / T during annealing. learn 1: the temperatures adapt. Calls `exchange`
 * for each pair of replicas that trade temperatures; `colder` is the index of
 * the replica that had the lower temperature before. */
void tsr_ladder_swap(tsr_ladder *ladder, const double *log_lik,
                     double beta_factor, int learn,
                     void (*exchange)(void *context, int colder, int hotter),
                     void *context);

/* In warm-up: sets the temperatures of n ladders of equal size to their
 * geometric means. So ladders that learnt from few rounds profit from the
 * others, and draws of all chains can be pooled. */
void tsr_ladder_average(tsr_ladder *const *ladder, int n);

/* Since the last reset: mean probability of an exchange between temperatures k
 * and k + 1 (NaN: no exchange was tried), and how often a replica went from the
 * lowest temperature to the highest and back. */
double tsr_ladder_rate(const tsr_ladder *ladder, int k);
long tsr_ladder_round_trips(const tsr_ladder *ladder);
void tsr_ladder_reset(tsr_ladder *ladder);

/* Saves or restores temperatures, their replicas, the counters and the random
 * stream. */
void tsr_ladder_archive(tsr_ladder *ladder, tsr_archive *archive);

#endif

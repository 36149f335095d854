/* Replica exchange: a ladder of temperatures of the likelihood.
 *
 * Replica r of a ladder samples P(X) P(D | X)^(1 / T). The temperatures start
 * geometric from 1 to t_max; pairs of neighbours are offered an exchange in
 * turns, even pairs, then odd ones, without chance in the order
 * (deterministic even-odd: Okabe et al. 2001; Syed et al. 2022). In warm-up the
 * temperatures learn to be exchanged equally often, from the refusals seen
 * between them (Syed et al. 2022), with the first and the last held. */
#ifndef TSR_SAMPLER_LADDER_H
#define TSR_SAMPLER_LADDER_H

#include "core/archive.h"
#include "core/random.h"

typedef struct tsr_ladder tsr_ladder;

enum { TSR_MAX_TEMPERATURES = 64 };

/* Temperatures 1 = T_0 < ... < T_{n-1} = t_max (n = 1: no exchange). The random
 * stream is fixed by seed and number, apart from those of chains. NULL: out of
 * memory. */
tsr_ladder *tsr_ladder_new(int n, double t_max, uint64_t seed, int number);
void tsr_ladder_free(tsr_ladder *ladder);

int tsr_ladder_size(const tsr_ladder *ladder);

/* The replica at temperature k, 1 / T of temperature k. */
int tsr_ladder_replica(const tsr_ladder *ladder, int k);
double tsr_ladder_beta(const tsr_ladder *ladder, int k);

/* Before any exchange: beta [n] = 1 / T, descending from 1; the first and the
 * last stay as they were made. */
void tsr_ladder_set(tsr_ladder *ladder, const double *beta);

/* Offers exchanges, one round. log_lik [n] of the replicas; heat: what all 1 /
 * T are multiplied by (annealing). learn: the temperatures adapt. Calls
 * exchange for each pair of replicas that changed places. */
void tsr_ladder_swap(tsr_ladder *ladder, const double *log_lik, double heat,
                     int learn,
                     void (*exchange)(void *context, int colder, int hotter),
                     void *context);

/* In warm-up: all ladders, of one size, get the same temperatures, the
 * geometric means of theirs. So chains that had to learn from little share what
 * they know, and draws of all can be taken together. */
void tsr_ladder_average(tsr_ladder *const *ladder, int n);

/* Since the last reset: mean probability of an exchange between k and k + 1
 * (NaN where none was offered), and how often a replica went from the hottest
 * to the coldest place after having been there before. */
double tsr_ladder_rate(const tsr_ladder *ladder, int k);
long tsr_ladder_round_trips(const tsr_ladder *ladder);
void tsr_ladder_reset(tsr_ladder *ladder);

/* Saves or restores temperatures, places and counters. */
void tsr_ladder_archive(tsr_ladder *ladder, tsr_archive *archive);

#endif

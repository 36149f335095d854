/* Which move a chain makes next: weights, and how warm-up learns them.
 *
 * A move is worth what it changes in the curve: its rate is the expected
 * squared relative change of I(q), weighted with the probability of acceptance,
 * over what a proposal costs. In warm-up the configured weights are multiplied
 * by the square root of the rate over the moves' geometric mean, held within a
 * factor of 4 either way, so that no move is lost: some change what the curve
 * hardly sees. Cost is counted, not timed, so that a run can be repeated. After
 * Pasarica & Gelman 2010 (expected squared jumped distance). */
#ifndef TSR_SAMPLER_MIX_H
#define TSR_SAMPLER_MIX_H

#include "model/topology.h"
#include "moves/move.h"

typedef struct {
    double weight[TSR_N_MOVE]; /* as configured; 0: not used */
    double end[TSR_N_MOVE];    /* cumulative shares now, the last is 1 */
    double gain[TSR_N_MOVE], cost[TSR_N_MOVE];
    long n[TSR_N_MOVE], n_all;
} tsr_mix;

/* weight [TSR_N_MOVE], not all 0. */
void tsr_mix_set(tsr_mix *mix, const double *weight);

/* u in [0, 1). */
int tsr_mix_choose(const tsr_mix *mix, double u);

/* Present share of a move. */
double tsr_mix_share(const tsr_mix *mix, int move);

/* Share of all distances between bodies that a proposal changes. */
double tsr_mix_changed(const tsr_topology *topology,
                       const tsr_proposal *proposal);

/* Cost of a proposal in units of one that changes little: 1, up to 10 more with
 * the part of all distances that change (the device), and one more for every 32
 * bodies that move (the host). A proposal that did not reach the engine costs a
 * quarter. */
double tsr_mix_cost(const tsr_topology *topology, const tsr_proposal *proposal,
                    int reached);

/* Warm-up: one proposal of a move. */
void tsr_mix_learn(tsr_mix *mix, int move, double gain, double cost);

/* Saves or restores what was learnt. */
void tsr_mix_archive(tsr_mix *mix, tsr_archive *archive);

#endif

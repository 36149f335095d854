/* Which move a chain makes next, by the configured weights, and how much of the
 * molecule a proposal changes.
 *
 * The weights stay. A mix that was learnt from how much each move changes the
 * curve for its cost ended with side chains and few pivots, and the slowest
 * variables, the orientations of domains, moved half as far. */
#ifndef TSR_SAMPLER_MIX_H
#define TSR_SAMPLER_MIX_H

#include "molecule/topology.h"
#include "moves/move.h"

typedef struct {
    double end[TSR_N_MOVE]; /* cumulative shares, the last is 1 */
} tsr_mix;

/* weight [TSR_N_MOVE], not all 0. */
void tsr_mix_set(tsr_mix *mix, const double *weight);

/* u in [0, 1). */
int tsr_mix_choose(const tsr_mix *mix, double u);

/* Share of all distances between bodies that a proposal changes. */
double tsr_mix_changed(const tsr_topology *topology,
                       const tsr_proposal *proposal);

#endif

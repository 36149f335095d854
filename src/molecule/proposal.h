/* A proposal: which residues moved, how rigidly, and its Hastings correction.
 */
#ifndef TSR_MOLECULE_PROPOSAL_H
#define TSR_MOLECULE_PROPOSAL_H

#include "molecule/topology.h"

enum { TSR_MAX_SPAN = 8 };

/* Residues first..first+count-1 moved. group > 0: as one rigid body with the
 * other spans of that number; 0: their inner distances may have changed. */
typedef struct {
    int first, count, group;
} tsr_span;

/* Spans ascend and do not overlap. The proposed coordinates stand in a second
 * conformation, equal to the current one outside the spans. No span: nothing
 * could be proposed (no closure was found, say); the step is a rejection. */
typedef struct {
    int target; /* which of the move's own targets: a torsion, a window */
    int n_span;
    tsr_span span[TSR_MAX_SPAN];
    double log_ratio; /* log q(old | new) - log q(new | old), nat, densities in
                         the coordinates of the prior (prior/prior.h) */
} tsr_proposal;

/* Takes chains along that ride on what was moved (topology.h): places them in
 * `proposed`, and adds their spans. The way back does the opposite, and the
 * torsions of these chains stay, so that the correction does. */
void tsr_proposal_carry(const tsr_topology *topology,
                        const tsr_conformation *current,
                        tsr_conformation *proposed, tsr_proposal *proposal);

#endif

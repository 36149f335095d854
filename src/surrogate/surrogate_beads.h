/* The beads of a surrogate: which there are, their shapes, and the curve of
 * what does not move. */
#ifndef TSR_SURROGATE_SURROGATE_BEADS_H
#define TSR_SURROGATE_SURROGATE_BEADS_H

#include "likelihood/likelihood.h"
#include "surrogate/surrogate_units.h"
#include "surrogate/walker.h"

typedef struct tsr_surrogate_beads tsr_surrogate_beads;

/* Borrows topology and likelihood. NULL: out of memory. */
tsr_surrogate_beads *tsr_surrogate_beads_new(const tsr_topology *topology,
                                             const tsr_likelihood *likelihood,
                                             const tsr_conformation *first);
void tsr_surrogate_beads_free(tsr_surrogate_beads *beads);

int tsr_surrogate_n_bead(const tsr_surrogate_beads *beads);
const tsr_bead *tsr_surrogate_bead(const tsr_surrogate_beads *beads, int bead);

/* Is c2 inferred, with a prior that a walk knows? */
int tsr_surrogate_has_water(const tsr_surrogate_beads *beads);

/* What a chain's curve is made of (surrogate/surrogate.h). */
typedef struct {
    const double *contrast, *others;
    double weight;
    const double *learnt;
} tsr_surrogate_mix;

/* The parts of a job from unit and amount to bottom. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_beads_fill(const tsr_surrogate_beads *beads,
                                    const tsr_surrogate_mix *mix,
                                    const tsr_surrogate_layout *layout,
                                    float *job, tsr_err *err);

#endif

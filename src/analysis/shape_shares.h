/* What share of the conformations is in each group. For src/analysis/shape.c.
 */
#ifndef TSR_ANALYSIS_SHAPE_SHARES_H
#define TSR_ANALYSIS_SHAPE_SHARES_H

#include "analysis/shape.h"

/* Fills share, half and overlap, and numbers the groups anew, the heaviest
 * first. frame: of the run; weight [n]: of the frames looked at. */
void tsr_shape_find_shares(tsr_shape *shape, const tsr_drawn_frame *frame,
                           const double *weight);

#endif

/* Where a chain comes apart into pieces that little holds together (private to
 * src/parts). */
#ifndef TSR_PARTS_CUT_H
#define TSR_PARTS_CUT_H

#include "parts/parts_graph.h"

typedef enum {
    TSR_CUT_NONE,
    TSR_CUT_LINKER, /* the pieces move against each other */
    TSR_CUT_HELIX   /* only a helix that runs on joins them: held straight */
} tsr_cut;

/* Cuts each chain where, for the size of the smaller side, the least crosses;
 * and its pieces again. Little: contacts of total weight below
 * 1.5 m^(2/3), m the held residues of the smaller side (0.4 m^(2/3) where that
 * has fewer than 25; none with fewer than 10): of 299 structures, pairs of
 * domains have 0.3 to 1.5, halves of one domain 1.6 to 12 (docs/domains.md).
 * With predicted aligned errors the mean relation of residues across the cut
 * must be below 0.3, too. cut [n]: between residue i and the one after it.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_parts_cut(const tsr_parts_graph *graph, tsr_cut *cut,
                         tsr_err *err);

#endif

/* Secondary structure from the hydrogen bonds of the backbone, after Kabsch &
 * Sander 1983 (DSSP): helices with bonds from i to i + 3, 4 or 5, and strands
 * that are paired in ladders. */
#ifndef TSR_PARTS_SECONDARY_H
#define TSR_PARTS_SECONDARY_H

#include "io/structure.h"

enum { TSR_COIL = 'C', TSR_HELIX = 'H', TSR_STRAND = 'E' };

/* One letter a residue: kind [n_residue] out. A residue without N, CA, C or O
 * has no bonds. Errors: TSR_E_NOMEM. */
tsr_status tsr_secondary_find(const tsr_structure *structure, char *kind,
                              tsr_err *err);

#endif

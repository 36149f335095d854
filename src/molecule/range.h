/* Residue ranges: "A:262-269", "A:17", "262-269", "A:-6-8", "A". */
#ifndef TSR_MOLECULE_RANGE_H
#define TSR_MOLECULE_RANGE_H

#include "core/status.h"
#include "molecule/topology.h"

/* Sets mark[i] = value for each residue that the text names. A range takes the
 * residues of the chain whose numbers lie in it, and may not reach beyond the
 * chain's first and last number. The chain may be left out
 * where there is one. Errors: TSR_E_CONFIG, naming text and remedy. */
tsr_status tsr_range_mark(const char *text, int n_residue,
                          const tsr_residue *residue, int value, int *mark,
                          tsr_err *err);

/* "A, B, C": the chains there are, into text, which it returns. */
enum { TSR_CHAINS_SIZE = 256 };
const char *tsr_range_chains(int n_residue, const tsr_residue *residue,
                             char text[TSR_CHAINS_SIZE]);

#endif

/* Windows of a concerted rotation: stretches of a chain that can change while
 * both ends stay in place. */
#ifndef TSR_MOVES_CONCERTED_H
#define TSR_MOVES_CONCERTED_H

#include "molecule/topology.h"
#include "moves/closure.h"

enum { TSR_MAX_PRE = 8, TSR_MAX_TURN = 2 * TSR_MAX_PRE };

/* A window. Torsions of residues first..a-1 turn (the pre-rotation), and the
 * pivots a < b < c close the chain again. Peptide bonds join all these
 * residues. N and CA of `first`, CA, C and O of c and everything beyond them
 * stay in place. */
typedef struct {
    int first;
    tsr_pivots pivots;
    int n_turn; /* torsions of the pre-rotation, in the order of the chain */
    struct {
        int residue;
        tsr_torsion_kind kind;
    } turn[TSR_MAX_TURN];
} tsr_window;

/* Lists one window for every possible pivot a, and returns the number of
 * windows. The window begins 1 to n_pre flexible residues before a, as many as
 * there are; phi of a proline is not turned. b and c are the next residues for
 * which tsr_can_pivot holds. Up to two other residues may lie between two
 * pivots; their torsions do not change. A rigid residue there must not be
 * fixed, and its whole rigid unit must lie there. window [n_residue] out; NULL:
 * windows are only counted. */
int tsr_window_list(const tsr_topology *topology, int n_pre,
                    tsr_window *window);

#endif

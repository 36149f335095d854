/* Windows of a concerted rotation: where a stretch of chain may change while
 * both its ends stay. */
#ifndef TSR_MOVES_CONCERTED_H
#define TSR_MOVES_CONCERTED_H

#include "molecule/topology.h"
#include "moves/closure.h"

enum { TSR_MAX_PRE = 8, TSR_MAX_TURN = 2 * TSR_MAX_PRE };

/* Residues first..a-1 take the pre-rotation, at the pivots a < b < c the chain
 * is closed again. All are joined by peptide bonds. N and CA of `first` and CA,
 * C and O of c stay where they are, as all beyond them. */
typedef struct {
    int first;
    tsr_pivots pivots; /* a, b, c */
    int n_turn;        /* torsions of the pre-rotation, from N to C */
    struct {
        int residue;
        tsr_torsion_kind kind;
    } turn[TSR_MAX_TURN];
} tsr_window;

/* One window for every residue that can be pivot a. Before it up to n_pre
 * flexible residues, at least one; phi of proline is not turned. b and c are
 * the next residues that can be pivots: flexible, not proline, with phi and
 * psi; up to two others stand between and keep their torsions. Returns how
 * many; window [n_residue] may be NULL. */
int tsr_window_list(const tsr_topology *topology, int n_pre,
                    tsr_window *window);

#endif

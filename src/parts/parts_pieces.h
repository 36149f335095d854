/* From the cuts of chains to what is rigid in each piece (private to
 * src/parts). */
#ifndef TSR_PARTS_PIECES_H
#define TSR_PARTS_PIECES_H

#include "parts/parts_cut.h"

/* What lies between two cuts, or a cut and an end of the chain. */
typedef struct {
    int first, last;
    int low, high;   /* what of it is rigid; low > high: nothing */
    int is_fixed;    /* 1: keeps its place with others that do */
    int n_loop;      /* residues in loops that hang free */
    int moves_loops; /* 1: these may move */
    double other;    /* contacts of its rigid residues with other chains */
} tsr_piece;

typedef struct {
    int n;
    tsr_piece *piece; /* [n] in order */
    double *own;      /* [residues] contacts within the piece, or with other
                         chains */
    char *is_loop;    /* [residues] 1: in a run inside of a piece that nothing
                         holds */
} tsr_pieces;

/* no_loops: none may move. Errors: TSR_E_NOMEM; to be cleared all the same. */
tsr_status tsr_pieces_make(const tsr_parts_graph *graph, const tsr_cut *cut,
                           int no_loops, tsr_pieces *pieces, tsr_err *err);
void tsr_pieces_clear(tsr_pieces *pieces);

#endif

/* The steps from a structure to its parts (private to src/molecule): a graph of
 * residues, where chains come apart, what is rigid in the pieces, and what a
 * user should be told. */
#ifndef TSR_MOLECULE_PARTS_STEPS_H
#define TSR_MOLECULE_PARTS_STEPS_H

#include "molecule/pae.h"
#include "molecule/parts.h"
#include "molecule/structure.h"

/* ---- residues as a graph (parts_graph.c) ----
 *
 * An edge joins two residues whose CB (of GLY where it would be) are near. Its
 * weight is 1 up to 7 Angstrom and 0 from 9 on, times the confidence of both
 * ends, times that of their relation where predicted aligned errors are known.
 * A disulfide bond is an edge of weight 5. */

typedef struct {
    int a, b; /* residues, a < b */
    double weight;
} tsr_contact;

typedef struct {
    const tsr_structure *structure;
    const tsr_pae *pae;            /* NULL: without */
    int *row;                      /* [n] of pae */
    int n;                         /* residues */
    int *chain_first, *chain_last; /* [n] of the residue's chain */
    char *kind;                    /* [n] secondary structure */
    double *confidence;            /* [n] 0 to 1 */
    int has_plddt;
    int n_contact;
    tsr_contact *contact; /* [n_contact] four or more apart in a chain */
    char *is_bridged;     /* [n] 1: half of a disulfide bond */
    int *held; /* [n] 1: secondary structure or contacts hold the residue */
} tsr_parts_graph;

/* Errors: TSR_E_DATA, TSR_E_NOMEM; the graph is to be cleared all the same. */
tsr_status tsr_parts_graph_make(const tsr_structure *structure,
                                const tsr_pae *pae, tsr_parts_graph *graph,
                                tsr_err *err);
void tsr_parts_graph_clear(tsr_parts_graph *graph);

/* How sure the relation of two residues is, 0 to 1, by its predicted aligned
 * error: one half at 6 Angstrom. 1 without errors. */
double tsr_parts_relation(const tsr_parts_graph *graph, int a, int b);

/* A peptide bond joins residue i to the one before. */
int tsr_parts_is_linked(const tsr_parts_graph *graph, int i);

/* Of residues first to last, how many are held. */
int tsr_parts_n_held(const tsr_parts_graph *graph, int first, int last);

/* ---- where a chain comes apart (parts_cut.c) ---- */

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

/* ---- what is rigid in each piece (parts_pieces.c) ---- */

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

/* ---- what a user should look at (parts_notes.c) ---- */

/* What the file lacks, and what was decided that could be decided otherwise:
 * fills parts->note. Errors: TSR_E_NOMEM. */
tsr_status tsr_parts_take_notes(const tsr_parts_graph *graph,
                                const tsr_cut *cut, const tsr_pieces *pieces,
                                tsr_parts *parts, tsr_err *err);

#endif

/* Residues as a graph: which of them touch, and how sure that is (private to
 * src/parts).
 *
 * An edge joins two residues whose CB (of GLY where it would be) are near. Its
 * weight is 1 up to 7 Angstrom and 0 from 9 on, times the confidence of both
 * ends, times that of their relation where predicted aligned errors are known.
 * A disulfide bond is an edge of weight 5. */
#ifndef TSR_PARTS_GRAPH_H
#define TSR_PARTS_GRAPH_H

#include "io/structure.h"
#include "parts/pae.h"

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

#endif

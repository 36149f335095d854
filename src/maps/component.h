/* The parts of a model whose agreement with a map is looked at one by one:
 * residues, elements of secondary structure, chains, or what a user names. */
#ifndef TSR_MAPS_COMPONENT_H
#define TSR_MAPS_COMPONENT_H

#include "core/status.h"
#include "molecule/structure.h"

typedef enum {
    TSR_BY_RESIDUE,
    TSR_BY_STRUCTURE, /* helices, strands, and what is between them */
    TSR_BY_CHAIN
} tsr_component_kind;

typedef struct {
    char name[48]; /* "A:17 GLY", "helix A:12-24", "A" */
    int n;
    int *atom; /* [n] ascending */
} tsr_component;

typedef struct {
    int n;
    tsr_component *component; /* [n] in order of the file */
} tsr_components;

/* Of atoms at the coordinates xyz [n_atom][3], which decide the secondary
 * structure. Errors: TSR_E_DATA (no backbone to find secondary structure in),
 * TSR_E_NOMEM. */
tsr_status tsr_components_make(tsr_component_kind kind, const tsr_atoms *atoms,
                               const double (*xyz)[3], tsr_components *out,
                               tsr_err *err);

/* Named selections, NAME=RANGE,RANGE... with ranges as in a configuration
 * ("A:1-29", "B"). Errors: TSR_E_USAGE, TSR_E_NOMEM. */
tsr_status tsr_components_select(int n, const char *const *text,
                                 const tsr_atoms *atoms, tsr_components *out,
                                 tsr_err *err);
void tsr_components_clear(tsr_components *components);

#endif

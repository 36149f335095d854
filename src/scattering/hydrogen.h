/* How many hydrogens each atom of a structure carries that the file does not
 * show (united atoms). */
#ifndef TSR_MODEL_HYDROGEN_H
#define TSR_MODEL_HYDROGEN_H

#include "io/atoms.h"

/* Residues by how their hydrogens were found. */
typedef struct {
    int n_explicit; /* the file has them all */
    int n_polar;    /* the file has those of N, O and S alone */
    int n_table;    /* amino acids and nucleotides, by the atom's name */
    int n_valence;  /* by the valence rule */
    int n_atom;     /* hydrogens added in all */
} tsr_hydrogen_count;

/* n_hydrogen [n_atom] out; 0 for hydrogens. In a residue with a hydrogen on a
 * carbon, none is added; with hydrogens on other atoms only, carbons get
 * theirs. Amino acids at pH 7 and standard nucleotides go by the names of their
 * atoms (a half of a disulfide has none; so has the first N of a chain no
 * extra ones); a residue with an atom that its table lacks, and every other, by
 * valence from bond lengths and angles:
 *   C  planar or with a short bond: 3 - bonds, else 4 - bonds
 *   N  one bond: 3, or 2 where it is short; two: 1, or 0 where both are short
 *   O  one bond to carbon and that long: 1;  S the same;  others none.
 * Metals have no bonds. Errors: TSR_E_NOMEM. */
tsr_status tsr_hydrogens_assign(const tsr_atoms *atoms, int *n_hydrogen,
                                tsr_hydrogen_count *count, tsr_err *err);

#endif

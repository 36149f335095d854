/* A residue of a structure laid beside the table of amino acids: which atoms
 * it has, and where its bodies are. */
#ifndef TSR_TRAIN_RESIDUE_ATOMS_H
#define TSR_TRAIN_RESIDUE_ATOMS_H

#include "molecule/residue.h"
#include "molecule/structure.h"

typedef struct {
    tsr_amino amino;
    int n_missing;                           /* atoms of the table */
    const double *xyz[TSR_MAX_RESIDUE_ATOM]; /* Angstrom, in the table's
                                                order; NULL: missing */
} tsr_residue_atoms;

/* Finds the atoms; xyz point into the structure. OXT and atoms that the table
 * lacks are passed over. Returns 0; -1 where the name is not one of the 20. */
int tsr_residue_atoms_find(const tsr_structure *structure,
                           const tsr_residue_record *residue,
                           tsr_residue_atoms *out);

/* The atoms of one body: index [TSR_MAX_RESIDUE_ATOM] out, into the table.
 * Returns how many. */
int tsr_body_atoms(tsr_body_model model, tsr_amino amino, int body,
                   int index[TSR_MAX_RESIDUE_ATOM]);

/* Mass-weighted centre of a body. Returns 0, or -1 where an atom of the body is
 * missing (centre untouched). */
int tsr_body_centre(tsr_body_model model, const tsr_residue_atoms *atoms,
                    int body, double centre[3]);

/* The same for the atoms beyond CB, in any body model; -1 for ALA and GLY. */
int tsr_side_chain_centre(const tsr_residue_atoms *atoms, double centre[3]);

#endif

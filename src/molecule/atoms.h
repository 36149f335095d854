/* Every atom of a structure file, whatever molecule it belongs to.
 *
 * For all-atom profiles: proteins, nucleic acids, glycans, ligands, ions and
 * residues that no table knows, hydrogens included; waters are left out. The
 * first model and of every atom one alternate location, that of the largest
 * occupancy in its residue (of equals the first). Of what is there the whole is
 * taken: a chain's atoms are somewhere in solution, whatever part of them a
 * crystal shows. molecule/structure.h reads the same files for models made of
 * the 20 amino acids. */
#ifndef TSR_MOLECULE_ATOMS_H
#define TSR_MOLECULE_ATOMS_H

#include "core/status.h"

typedef enum {
    TSR_MOLECULE_PROTEIN,    /* the 20 and residues derived from them */
    TSR_MOLECULE_NUCLEOTIDE, /* RNA, DNA, and what is bonded as these */
    TSR_MOLECULE_SUGAR,      /* pyranoses and furanoses of its table */
    TSR_MOLECULE_ION,        /* one atom alone */
    TSR_MOLECULE_BUFFER, /* what crystals are grown from: glycerol, sulphate */
    TSR_MOLECULE_OTHER
} tsr_molecule_kind;

typedef struct {
    char name[8]; /* upper case; ' for * in nucleotides: "C1'" */
    int z;        /* atomic number */
    int residue;  /* index into residue[] */
    int in_file;  /* its place among all atoms of the model, from 0 */
    double xyz[3];
} tsr_file_atom;

typedef struct {
    char name[8];   /* as in the file: "MSE" */
    char parent[4]; /* "MET"; of a nucleotide its letter "A"; "" where none */
    char chain[8];  /* author chain id; a free letter where it is blank */
    int number;
    char insertion;
    tsr_molecule_kind kind;
    int is_tabulated; /* gemmi's table of residues knows the name */
    int first_atom, n_atom;
} tsr_file_residue;

typedef struct {
    char *path;
    int n_atom, n_residue;
    int n_in_file;                      /* atoms, those left out included */
    tsr_file_atom *atom;                /* [n_atom] by residue */
    tsr_file_residue *residue;          /* [n_residue] those that have atoms */
    int n_hydrogen;                     /* among the atoms */
    int n_kind[TSR_MOLECULE_OTHER + 1]; /* residues */
    /* left out */
    int n_water;                     /* residues */
    int n_altloc_atom, n_no_element; /* atoms */
    int n_partial;                   /* not left out: atoms of ligands and ions
                                        whose occupancy is below 1 */
    int n_model;                     /* models after the first */
} tsr_atoms;

/* Errors, naming the file: TSR_E_NOINPUT, TSR_E_DATA (not a structure, nothing
 * but water, coordinates that can be of no molecule (gemmi_read.hh), centres
 * of side chains that tessera itself wrote). */
tsr_status tsr_atoms_read(const char *path, tsr_atoms **out, tsr_err *err);
void tsr_atoms_free(tsr_atoms *atoms);

/* Are atoms i and k bonded, by their distance? Those of metals never are. */
int tsr_atoms_are_bonded(const tsr_atoms *atoms, int i, int k);

/* All models of a file, which must be of the same atoms: those of the first,
 * and the coordinates of all, xyz [*n_model][n_atom][3], which the caller
 * frees. Errors: as above, naming the model; TSR_E_DATA (a model of other
 * atoms). */
tsr_status tsr_atoms_read_models(const char *path, tsr_atoms **out,
                                 int *n_model, double (**xyz)[3], tsr_err *err);

#endif

/* The atoms of a run's model.pdb, in its order: what the frames of its
 * trajectories are coordinates of. All records are kept, also SC, the centre of
 * a side chain, which is no atom of a residue. What is no amino acid, a guest,
 * comes last and does not count as a residue; but where there is no amino acid
 * nucleotides do, and C3' stands for CA. */
#ifndef TSR_MOLECULE_MODEL_ATOMS_H
#define TSR_MOLECULE_MODEL_ATOMS_H

#include "core/status.h"
#include "molecule/structure.h"

#include <stdio.h>

typedef struct {
    char name[5];     /* "CA", "SC" */
    char residue[4];  /* "GLY" */
    char element[3];  /* "C" */
    char chain;       /* '\0': no letter stands for chain_id */
    char chain_id[8]; /* for mmCIF, where it is longer; "": chain */
    int number;       /* of the residue */
    char insertion;   /* ' ': none */
    int at;           /* residue, counted from 0 over the file; -1: none */
    tsr_guest_kind is_guest;
} tsr_model_atom;

typedef struct {
    int n_atom, n_residue;
    int is_nucleic;       /* 1: the residues are nucleotides */
    tsr_model_atom *atom; /* [n_atom] */
    double *xyz;          /* [n_atom][3] of the start, Angstrom */
    int *ca;              /* [n_residue] atom number of its CA */
} tsr_model_atoms;

/* Errors: TSR_E_NOINPUT, TSR_E_DATA (no ATOM record, one that cannot be read, a
 * residue without CA; with the line), TSR_E_NOMEM. */
tsr_status tsr_model_atoms_read(const char *path, tsr_model_atoms **out,
                                tsr_err *err);
/* The same of a structure in memory, as model.pdb would have it; all xyz are
 * its own. NULL: out of memory. */
tsr_model_atoms *tsr_model_atoms_of(const tsr_structure *structure);
void tsr_model_atoms_free(tsr_model_atoms *atoms);

/* Conformations as text, model after model, into a stream: PDB, mmCIF, XYZ. */

typedef enum { TSR_MODEL_PDB, TSR_MODEL_CIF, TSR_MODEL_XYZ } tsr_model_format;

typedef struct {
    tsr_model_format format;
    const char *name; /* of the entry: letters, digits, - and _ */
    const tsr_model_atoms *atoms;
    const double *b; /* [n_atom] last column of PDB; NULL: 0 */
} tsr_model_spec;

/* Can the format hold it? Errors: TSR_E_DATA (a coordinate that is not finite;
 * of PDB more than 99,999 atoms, and a chain, number or coordinate that has no
 * room in its columns). */
tsr_status tsr_model_check(const tsr_model_spec *spec, const double (*xyz)[3],
                           tsr_err *err);

/* What comes before the first model; `remark`: lines, may be NULL. */
void tsr_model_begin(const tsr_model_spec *spec, const char *remark, FILE *out);

/* One model: number from 1, or 0 of one that is alone in its file, where PDB
 * has no record MODEL; label one line, xyz [n_atom][3] Angstrom. Errors: those
 * of tsr_model_check. */
tsr_status tsr_model_write(const tsr_model_spec *spec, int number,
                           const char *label, const double (*xyz)[3], FILE *out,
                           tsr_err *err);

void tsr_model_end(const tsr_model_spec *spec, FILE *out);

/* A file of one model, written beside and renamed. Errors: those of
 * tsr_model_check, TSR_E_IO. */
tsr_status tsr_model_file(const tsr_model_spec *spec, const char *path,
                          const char *remark, const double (*xyz)[3],
                          tsr_err *err);

#endif

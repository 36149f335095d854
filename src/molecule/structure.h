/* Atomic structures from PDB and mmCIF files, gzipped or not.
 *
 * Read by gemmi (molecule/structure.cc, the only C++ of the project). Only
 * protein is kept: the first model, the first alternate location, no hydrogens,
 * no waters, no ligands; modified residues that gemmi maps to a parent (MSE and
 * others) and the force-field names of protonation states (HID, HSE, CYX)
 * appear under the parent's name and with its atoms only (MSE: SE is SD, a
 * sulphur). Every atom therefore is one of the parent's or OXT. What was left
 * out is counted, so that the caller can say so. */
#ifndef TSR_MOLECULE_STRUCTURE_H
#define TSR_MOLECULE_STRUCTURE_H

#include "core/log.h"
#include "core/status.h"

typedef struct {
    char name[8];      /* "CA" */
    int z;             /* atomic number */
    double xyz[3];     /* Angstrom */
    char file_name[8]; /* as in the file: "SE" of MSE */
} tsr_atom;

/* What stands in a model that tessera writes and is no amino acid: HETATM in
 * files, nucleotides ATOM. */
typedef enum {
    TSR_GUEST_NONE,
    TSR_GUEST_LIGAND,
    TSR_GUEST_NUCLEOTIDE
} tsr_guest_kind;

typedef struct {
    char name[8];      /* parent name, one of the 20: "MET" */
    char file_name[8]; /* as in the file: "MSE" */
    char chain[8];     /* author chain id; a free letter where it is blank */
    int number;        /* author residue number */
    char insertion;    /* ' ' where there is none */
    int first_atom;    /* index into atom[] */
    int n_atom;
    int is_cut; /* 1: the file has heavy atoms that the parent lacks */
    tsr_guest_kind is_guest; /* other than 0 only in models to be written */
    double b; /* the B column of its CA: a B factor, or what a prediction
                 puts there */
} tsr_residue_record;

/* What the file says was in the sample (SEQRES, _entity_poly_seq). */
typedef struct {
    char chain[8];
    char *letters; /* one a residue, X for what is no amino acid */
} tsr_declared;

typedef struct {
    char *path;
    int n_residue, n_atom, n_chain;
    int n_guest; /* of n_residue the last: what is no amino acid in models that
                    tessera writes; 0 in what is read */
    tsr_residue_record *residue; /* [n_residue], in file order, by chain */
    tsr_atom *atom;              /* [n_atom], non-hydrogen */
    int n_declared;
    tsr_declared *declared; /* [n_declared], chains of which it says it */
    int is_prediction;      /* 1: the file says so (_ma_qa_metric, ALPHAFOLD) */
    /* left out */
    int n_water, n_ligand, n_nucleotide; /* residues */
    int n_hydrogen, n_altloc_atom;       /* atoms of the protein */
    int n_extra_atom;    /* atoms that the parent lacks, or that come twice; */
    int n_modified_atom; /* of them those of modified residues */
    int n_model;         /* models after the first */
    int n_bare;          /* residues without N, CA or C */
    char bare[320];      /* a sentence that names them */
    int n_mapped;        /* kept: residues renamed to their parent */
    char copies[128];    /* kept: "B C D", chains made of what had the id of
                            another with the same residues; or "" */
} tsr_structure;

/* Reads a file; the content decides what it is, not the name. Errors, each
 * naming the file and where it can chain, residue and remedy: TSR_E_NOINPUT
 * (missing, unreadable), TSR_E_DATA (not a structure, no protein, an unknown
 * residue within a protein chain, two residues of one chain id and number,
 * coordinates that can be of no molecule, gemmi_read.hh). Residues that lack
 * atoms are read as they are. */
tsr_status tsr_structure_read(const char *path, tsr_structure **out,
                              tsr_err *err);
/* The same of a file that a model is made of. It may hold nucleotides alone:
 * n_residue is then 0. Residues without N, CA or C are left out, and refused
 * (TSR_E_DATA) where they are more than a tenth. */
tsr_status tsr_structure_read_any(const char *path, tsr_structure **out,
                                  tsr_err *err);
void tsr_structure_free(tsr_structure *structure);

/* "A:262" or "A:262B", for messages. Returns the length, as snprintf. */
int tsr_residue_label(const tsr_residue_record *residue, char *text,
                      unsigned long size);

/* The atom of that name in a residue, or NULL. */
const tsr_atom *tsr_residue_atom(const tsr_structure *structure,
                                 const tsr_residue_record *residue,
                                 const char *name);

/* Gives each chain whose id has more than one character a free single one, as
 * PDB needs it, and tells the log. Errors: TSR_E_DATA (no letter or digit is
 * left). */
tsr_status tsr_structure_letter_chains(tsr_structure *structure, tsr_log *log,
                                       tsr_err *err);

/* Would tsr_structure_write_pdb take it? Errors: as there. */
tsr_status tsr_structure_check_pdb(const tsr_structure *structure,
                                   tsr_err *err);

/* Writes one model as PDB (`remark`, which may be NULL or several lines, as
 * REMARK 999; ATOM records, TER after a chain, END). Chain ids of more than one
 * character, more than 99,999 atoms and chain ends, and numbers or coordinates
 * that do not fit their columns are refused with TSR_E_DATA; writes beside and
 * renames. Errors: TSR_E_IO. */
tsr_status tsr_structure_write_pdb(const tsr_structure *structure,
                                   const char *path, const char *remark,
                                   tsr_err *err);

/* X-ray amplitude of a neutral atom at q (1/Angstrom), in electrons:
 * International Tables for Crystallography C (1992), table 6.1.1.4, through
 * gemmi's it92. z: atomic number. Returns NaN for an element it lacks. */
double tsr_atom_form_factor(int z, double q_inv_ang);

/* What electrons scatter from: f(s) = sum_k a_k exp(-b_k s^2), in Angstrom,
 * with s = q / 4 pi; International Tables C (2011), table 4.3.2.2, through
 * gemmi. Returns 0 for an element it lacks. */
int tsr_atom_electron_gaussians(int z, double a[5], double b[5]);

/* Bound coherent scattering length of an element in natural composition, fm:
 * Sears 1992, Neutron News 3(3), 26, through gemmi's neutron92. NaN for what it
 * lacks and for strong absorbers, whose lengths are complex and change with the
 * wavelength: B, Cd, In, Sm, Eu, Gd, Dy. */
double tsr_atom_neutron_length(int z);
#define TSR_DEUTERIUM_LENGTH 6.671 /* fm, ibid. */

/* Mass in Da, covalent and van der Waals radius in Angstrom (gemmi's element
 * table); NaN for an unknown element. */
double tsr_atom_mass(int z);
double tsr_atom_covalent_radius(int z);
double tsr_atom_vdw_radius(int z);
int tsr_atom_is_metal(int z);

/* "C", "SE"; "" for an unknown element. */
const char *tsr_atom_symbol(int z);

#endif

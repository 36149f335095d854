/* Atomic structures from PDB and mmCIF files, gzipped or not, and conformations
 * as such files.
 *
 * Three readings of the same files, all through gemmi
 * (molecule/structure_read.cc, the only C++ of the room): tsr_structure is what
 * a model is made of, the protein in terms of the 20 amino acids; tsr_atoms is
 * every atom, for all-atom profiles; tsr_model_atoms is a model.pdb of tessera
 * itself, record by record, and what a writer is given. */
#ifndef TSR_MOLECULE_STRUCTURE_H
#define TSR_MOLECULE_STRUCTURE_H

#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"

#include <stdio.h>

/* ---- the protein ----
 *
 * Only protein is kept: the first model, the first alternate location, no
 * hydrogens, no waters, no ligands; modified residues that gemmi maps to a
 * parent (MSE and others) and the force-field names of protonation states (HID,
 * HSE, CYX) appear under the parent's name and with its atoms only (MSE: SE is
 * SD, a sulphur). Every atom therefore is one of the parent's or OXT. What was
 * left out is counted, so that the caller can say so. */

typedef struct {
    char name[8];      /* "CA" */
    int z;             /* atomic number */
    double xyz[3];     /* Angstrom */
    char file_name[8]; /* as in the file: "SE" of MSE */
} tsr_atom;

typedef struct {
    char name[8];      /* parent name, one of the 20: "MET" */
    char file_name[8]; /* as in the file: "MSE" */
    char chain[8];     /* author chain id; a free letter where it is blank */
    int number;        /* author residue number */
    char insertion;    /* ' ' where there is none */
    int first_atom;    /* index into atom[] */
    int n_atom;
    int is_cut; /* 1: the file has heavy atoms that the parent lacks */
    double b;   /* the B column of its CA: a B factor, or what a prediction
                   puts there */
} tsr_residue_record;

/* What the file says was in the sample (SEQRES, _entity_poly_seq). */
typedef struct {
    char chain[8];
    char *letters; /* one a residue, X for what is no amino acid */
} tsr_declared;

typedef struct {
    tsr_pool pool;
    char *path;
    int n_residue, n_atom, n_chain;
    tsr_residue_record *residue; /* [n_residue], in file order, by chain */
    tsr_atom *atom;              /* [n_atom], non-hydrogen */
    int n_declared;
    tsr_declared *declared; /* [n_declared], chains of which it says it */
    int is_prediction;      /* 1: the file says so (_ma_qa_metric, ALPHAFOLD) */
    /* left out */
    int n_water, n_ligand, n_nucleotide; /* residues */
    int n_hydrogen, n_altloc_atom;       /* atoms of the protein */
    int n_extra_atom;     /* atoms that the parent lacks, or that come twice; */
    int n_modified_atom;  /* of them those of modified residues */
    int n_model;          /* models after the first */
    int n_incomplete;     /* residues without N, CA or C */
    char incomplete[320]; /* a sentence that names them */
    int n_renamed;        /* kept: residues renamed to their parent */
    char copies[128];     /* kept: "B C D", chains made of what had the id of
                             another with the same residues; or "" */
} tsr_structure;

/* Reads a file; the content decides what it is, not the name. Errors, each
 * naming the file and where it can chain, residue and remedy: TSR_E_NOINPUT
 * (missing, unreadable), TSR_E_DATA (not a structure, no protein, an unknown
 * residue within a protein chain, two residues of one chain id and number,
 * coordinates that can be of no molecule). Residues that lack atoms are read as
 * they are. */
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

/* The first letter or digit that no chain has, of `taken` ones; '\0': there is
 * none. */
char tsr_free_letter(const char *taken);

/* ---- every atom, whatever molecule it belongs to ----
 *
 * Proteins, nucleic acids, glycans, ligands, ions and residues that no table
 * knows, hydrogens included; waters are left out. The first model and of every
 * atom one alternate location, that of the largest occupancy in its residue (of
 * equals the first). Of what is there the whole is taken: a chain's atoms are
 * somewhere in solution, whatever part of them a crystal shows. */

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
    tsr_pool pool;
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
 * but water, coordinates that can be of no molecule, centres of side chains
 * that tessera itself wrote). */
tsr_status tsr_atoms_read(const char *path, tsr_atoms **out, tsr_err *err);
void tsr_atoms_free(tsr_atoms *atoms);

/* Are atoms i and k bonded, by their distance? Those of metals never are. */
int tsr_atoms_are_bonded(const tsr_atoms *atoms, int i, int k);

/* All models of a file, which must be of the same atoms: those of the first,
 * and the coordinates of all, xyz [*n_model][n_atom][3], which is theirs.
 * Errors: as above, naming the model; TSR_E_DATA (a model of other
 * atoms). */
tsr_status tsr_atoms_read_models(const char *path, tsr_atoms **out,
                                 int *n_model, double (**xyz)[3], tsr_err *err);

/* ---- the atoms of a run's model.pdb ----
 *
 * In its order: what the frames of its trajectories are coordinates of. All
 * records are kept, also SC, the centre of a side chain, which is no atom of a
 * residue. What is no amino acid, a guest, comes last and does not count as a
 * residue; but where there is no amino acid nucleotides do, and C3' stands for
 * CA. */

/* What stands in a model that tessera writes and is no amino acid: HETATM in
 * files, nucleotides ATOM. */
typedef enum {
    TSR_GUEST_NONE,
    TSR_GUEST_LIGAND,
    TSR_GUEST_NUCLEOTIDE
} tsr_guest_kind;

typedef struct {
    char name[5];     /* "CA", "SC" */
    char residue[4];  /* "GLY" */
    char element[3];  /* "C" */
    char chain;       /* '\0': no letter stands for chain_id */
    char chain_id[8]; /* for mmCIF, where it is longer; "": chain */
    int number;       /* of the residue */
    char insertion;   /* ' ': none */
    int at;           /* residue, counted from 0 over the file; -1: none */
    tsr_guest_kind guest_kind;
} tsr_model_atom;

typedef struct {
    tsr_pool pool;
    int n_atom, n_residue;
    int n_chain;          /* of a model of a topology */
    int is_nucleic;       /* 1: the residues are nucleotides */
    tsr_model_atom *atom; /* [n_atom] */
    double *xyz;          /* [n_atom][3] of the start, Angstrom */
    int *ca;              /* [n_residue] atom number of its CA; -1: none */
} tsr_model_atoms;

/* Errors: TSR_E_NOINPUT, TSR_E_DATA (no ATOM record, one that cannot be read,
 * with the line; a residue without CA), TSR_E_NOMEM. */
tsr_status tsr_model_atoms_read(const char *path, tsr_model_atoms **out,
                                tsr_err *err);
void tsr_model_atoms_free(tsr_model_atoms *atoms);

/* Between the two and their file: n_atom zeroed atoms (NULL: out of memory),
 * and, when these are filled, which residues they make. */
tsr_model_atoms *tsr_model_atoms_new(int n_atom);
void tsr_model_atoms_count(tsr_model_atoms *atoms);

/* Gives each chain whose id has more than one character a free single one, as
 * PDB needs it, and tells the log. Errors: TSR_E_DATA (no letter or digit is
 * left). */
tsr_status tsr_model_atoms_letter_chains(tsr_model_atoms *atoms, tsr_log *log,
                                         tsr_err *err);

/* ---- writing: model after model into a stream, or a file of one ---- */

typedef enum { TSR_MODEL_PDB, TSR_MODEL_CIF, TSR_MODEL_XYZ } tsr_model_format;

typedef struct {
    tsr_model_format format;
    const char *name; /* of the entry: letters, digits, - and _ */
    const tsr_model_atoms *atoms;
    const double *b; /* [n_atom] last column of PDB; NULL: 0 */
} tsr_model_spec;

/* What comes before the first model; `remark`: lines, may be NULL (REMARK 999
 * in PDB). */
void tsr_model_begin(const tsr_model_spec *spec, const char *remark, FILE *out);

/* One model: number from 1, or 0 of one that is alone in its file, where PDB
 * has no record MODEL; label one line, xyz [n_atom][3] Angstrom. Errors:
 * TSR_E_DATA (a coordinate that is not finite; of PDB more than 99,999 atoms
 * and chain ends, and a chain, number or coordinate that has no room in its
 * columns). */
tsr_status tsr_model_write(const tsr_model_spec *spec, int number,
                           const char *label, const double (*xyz)[3], FILE *out,
                           tsr_err *err);

void tsr_model_end(const tsr_model_spec *spec, FILE *out);

/* A file of one model, written beside and renamed. Errors: those of
 * tsr_model_write, TSR_E_IO. */
tsr_status tsr_model_file(const tsr_model_spec *spec, const char *path,
                          const char *remark, const double (*xyz)[3],
                          tsr_err *err);

/* The atoms where they are, as a PDB file; path NULL: looks alone whether PDB
 * can hold them. Errors: as there. */
tsr_status tsr_model_atoms_write(const tsr_model_atoms *atoms, const char *path,
                                 const char *remark, tsr_err *err);

/* ---- elements ---- */

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

/* Mass in Da (standard atomic weights, IUPAC), covalent and van der Waals
 * radius in Angstrom (gemmi's element table); NaN for an unknown element. */
double tsr_atom_mass(int z);
double tsr_atom_covalent_radius(int z);
double tsr_atom_vdw_radius(int z);
int tsr_atom_is_metal(int z);

/* "C", "SE"; "" for an unknown element. */
const char *tsr_atom_symbol(int z);

#endif

/* Reads atomic structures from PDB and mmCIF files, compressed or not, and
 * writes conformations as such files.
 *
 * The same file can be read in three ways, all through gemmi
 * (molecule/structure_read.cc, the only C++ file here). tsr_structure holds the
 * protein in terms of the 20 amino acids, from which a model is made. tsr_atoms
 * holds every atom, for all-atom profiles. tsr_model_atoms holds the records of
 * a model.pdb that tessera wrote, and is also the input of the writers. */
#ifndef TSR_MOLECULE_STRUCTURE_H
#define TSR_MOLECULE_STRUCTURE_H

#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/vec3.h"

#include <stdio.h>

/* ---- symmetric assemblies ----
 *
 * An assembly of point group Cn, Dn, T, O or I is its subunit and exact copies
 * of the subunit. The subunit is one chain of each set of equivalent chains:
 * the first in the file.
 *
 * A rotation g of the group is found as the superposition of a chain on another
 * chain with the same residues (least trimmed squares: the better half counts,
 * so that flexible tails may differ; Rousseeuw 1984). It must place every chain
 * on another one with the same residues, the better half within 6 Angstrom. The
 * products of the rotations are those of the chains on which they place the
 * first. Rotations R_g are then made exact by the iteration
 *
 *     R_g <- rotation nearest to  sum_h R_gh R_h^T
 *
 * and turn about the mean of the images of the subunit's centre. They must
 * place half of the residues of each chain within 2 Angstrom of the file. */

enum { TSR_MAX_COPY = 60 };

/* Copies: 0 is the subunit. The copies that follow up to n_unique are one of
 * each pair of a rotation and its inverse, which have the same distances to the
 * subunit. */
typedef struct {
    char group[8]; /* "C3"; "": no symmetry */
    int n;         /* copies; 0: no symmetry */
    int n_unique;
    int weight[TSR_MAX_COPY];        /* [n_unique] 2: its inverse is another
                                        copy, else 1 */
    tsr_motion motion[TSR_MAX_COPY]; /* [n] from the subunit to the copy */
} tsr_symmetry;

/* Order of a point group by its name: 3 for C3, 12 for T. "auto": 1. 0: not a
 * name, or more than TSR_MAX_COPY. */
int tsr_symmetry_order(const char *group);

/* ---- the protein ----
 *
 * Only the protein of the first model is kept, without hydrogens, waters and
 * ligands. An atom with several alternate locations has the location with the
 * largest mean occupancy in its residue. Modified residues that gemmi maps to a
 * parent (such as MSE) and residues with a force field's name for a protonation
 * state (HID, HSE, CYX) get the parent's name and only the parent's atoms; SE
 * of MSE becomes SD, a sulphur. Every atom is therefore an atom of the parent,
 * or OXT. All omissions are counted, so that the caller can report them. */

/* An atom of the protein. */
typedef struct {
    char name[8];      /* "CA" */
    int z;             /* atomic number */
    double xyz[3];     /* Angstrom */
    char file_name[8]; /* name in the file: "SE" in MSE */
} tsr_atom;

/* A residue of the protein. */
typedef struct {
    char name[8];      /* name of the parent, one of the 20: "MET" */
    char file_name[8]; /* name in the file: "MSE" */
    char chain[8];     /* author chain id; a free letter if it is blank */
    int number;        /* author residue number */
    char insertion;    /* ' ': none */
    int first_atom;    /* index into atom[] */
    int n_atom;
    int is_cut; /* 1: heavy atoms that the parent lacks were omitted */
    double
        b; /* B column of CA: a B factor, or the confidence of a prediction */
} tsr_residue_record;

/* Sequence of the sample according to the file (SEQRES, _entity_poly_seq). */
typedef struct {
    char chain[8];
    char *letters; /* one per residue, X for other than amino acids */
} tsr_declared;

/* The protein of a file. */
typedef struct {
    tsr_pool pool;
    char *path;
    int n_residue, n_atom, n_chain;
    tsr_residue_record *residue; /* [n_residue], in file order, by chain */
    tsr_atom *atom;              /* [n_atom], non-hydrogen */
    int n_declared;
    tsr_declared *declared; /* [n_declared] chains with a declared sequence */
    int is_prediction; /* 1: the file is marked as a prediction (_ma_qa_metric,
                          ALPHAFOLD) */
    /* omitted */
    int n_water, n_ligand, n_nucleotide; /* residues */
    int n_hydrogen, n_altloc_atom;       /* atoms of the protein */
    int n_extra_atom;    /* atoms that the parent lacks, or duplicates */
    int n_modified_atom; /* atoms of modified residues among n_extra_atom */
    int n_model;         /* models after the first */
    int n_incomplete; /* residues without N, CA or C (tsr_structure_read_any) */
    char incomplete[320]; /* a sentence that names these residues */
    int n_renamed;        /* kept: residues renamed to their parent */
    char copies[128]; /* kept: "B C D", new ids of chains that repeated the id
                         and the residues of another chain; or "" */
    tsr_symmetry symmetry;
} tsr_structure;

/* Reads a file of any name. Its content determines the format. Residues with
 * missing atoms are kept. Errors, each with the file and, if possible, chain,
 * residue and remedy: TSR_E_NOINPUT (missing, unreadable), TSR_E_DATA (not a
 * structure, no protein, an unknown residue within a protein chain, two
 * residues with the same chain id and number, coordinates that no molecule can
 * have), TSR_E_NOMEM. */
tsr_status tsr_structure_read(const char *path, tsr_structure **out,
                              tsr_err *err);
/* Reads a file from which a model is made. The file may contain nucleotides
 * alone; n_residue is then 0. Residues without N, CA or C are left out. Errors:
 * as above, and TSR_E_DATA if more than a tenth of the residues is left out, or
 * N, CA and C of a residue lie in a line or far apart. */
tsr_status tsr_structure_read_any(const char *path, tsr_structure **out,
                                  tsr_err *err);
/* The same, as a symmetric assembly: chains copy by copy, each with the
 * residues, numbers and ligands of the subunit and the chain ids that the file
 * has there. group: name of a point group, or of one that the assembly's group
 * contains; "auto": the largest, if there is one; NULL or "": as above. Errors:
 * as above, and TSR_E_DATA (the chains have no such symmetry, with the
 * reason). */
tsr_status tsr_structure_read_symmetric(const char *path, const char *group,
                                        tsr_structure **out, tsr_err *err);
void tsr_structure_free(tsr_structure *structure);

/* Writes "A:262" or "A:262B", for messages. Returns the length, as snprintf. */
int tsr_residue_label(const tsr_residue_record *residue, char *text,
                      unsigned long size);

/* Finds an atom of a residue by name. NULL: the residue lacks it. */
const tsr_atom *tsr_residue_atom(const tsr_structure *structure,
                                 const tsr_residue_record *residue,
                                 const char *name);

/* Returns the first letter or digit that is not in `taken`, the chain ids in
 * use; '\0': all are in use. */
char tsr_free_letter(const char *taken);

/* ---- every atom of the file ----
 *
 * Proteins, nucleic acids, glycans, ligands, ions and residues in no table are
 * read, hydrogens included, but not waters. Only the first model is read. An
 * atom with several alternate locations has the location with the largest mean
 * occupancy in its residue, or the first of equals. Every atom counts fully,
 * whatever its occupancy, because it is somewhere in solution even if a crystal
 * does not show it. */

/* The kind of a residue, by its name and bonds. */
typedef enum {
    TSR_MOLECULE_PROTEIN, /* the 20 amino acids, and residues derived from them
                           */
    TSR_MOLECULE_NUCLEOTIDE, /* RNA, DNA, and residues bonded in the same way */
    TSR_MOLECULE_SUGAR,      /* pyranoses and furanoses in gemmi's table */
    TSR_MOLECULE_ION,        /* a single atom, or atoms of one name */
    TSR_MOLECULE_BUFFER,     /* from crystallisation: glycerol, sulphate, ... */
    TSR_MOLECULE_OTHER
} tsr_molecule_kind;

/* An atom of the file. */
typedef struct {
    char name[8]; /* upper case; ' for * in nucleotides: "C1'" */
    int z;        /* atomic number */
    int residue;  /* index into residue[] */
    int in_file;  /* index among all atoms of the model in the file */
    double xyz[3];
} tsr_file_atom;

/* A residue of the file. */
typedef struct {
    char name[8];   /* name in the file: "MSE" */
    char parent[4]; /* "MET"; for a nucleotide its letter, "A"; "" if unknown */
    char chain[8];  /* author chain id; a free letter if it is blank */
    int number;
    char insertion;
    tsr_molecule_kind kind;
    int is_tabulated; /* 1: the name is in gemmi's table of residues */
    int first_atom, n_atom;
} tsr_file_residue;

/* All atoms of a file. */
typedef struct {
    tsr_pool pool;
    char *path;
    int n_atom, n_residue;
    int n_in_file;             /* atoms in the file, omitted ones included */
    tsr_file_atom *atom;       /* [n_atom] ordered by residue */
    tsr_file_residue *residue; /* [n_residue] residues that have atoms */
    int n_hydrogen;            /* among the atoms */
    int n_kind[TSR_MOLECULE_OTHER + 1]; /* residues of each kind */
    /* omitted */
    int n_water;       /* residues */
    int n_altloc_atom; /* atoms at other alternate locations */
    int n_no_element;  /* atoms of no known element */
    int n_partial;     /* not omitted: atoms of sugars, ligands and ions with an
                          occupancy below 1 */
    int n_model;       /* models after the first */
} tsr_atoms;

/* Reads a file. Errors, with the name of the file: TSR_E_NOINPUT, TSR_E_DATA
 * (not a structure, only water, coordinates that no molecule can have,
 * side-chain centres written by tessera). */
tsr_status tsr_atoms_read(const char *path, tsr_atoms **out, tsr_err *err);
/* The same, as tsr_structure_read_symmetric. */
tsr_status tsr_atoms_read_symmetric(const char *path, const char *group,
                                    tsr_atoms **out, tsr_err *err);
void tsr_atoms_free(tsr_atoms *atoms);

/* Atoms of another program. */
typedef struct {
    int n;
    const double *xyz;          /* [n][3] Angstrom */
    const char *const *element; /* [n] symbols in any case */
    const char *const *name, *const *residue, *const *chain;
    const int *number; /* [n] as the names of atoms, residues and chains, or
                          NULL: own names, UNL, A, 1. Consecutive atoms of one
                          chain, number and residue name are a residue */
} tsr_atom_arrays;

/* Makes atoms as if they were read from a file with these records; in_file is
 * the index in the arrays. Errors: as tsr_atoms_read, and TSR_E_DATA (an
 * unknown element, with the index of the atom). */
tsr_status tsr_atoms_of_arrays(const tsr_atom_arrays *from, tsr_atoms **out,
                               tsr_err *err);

/* Copies the residues with keep [n_residue] not 0: `to` has arrays as large as
 * those of `from`, whose path it borrows. */
void tsr_atoms_select(const tsr_atoms *from, const int *keep, tsr_atoms *to);

/* Returns 1 if atoms i and k are bonded: closer than the sum of their covalent
 * radii plus 0.4 Angstrom. Metals have no bonds. */
int tsr_atoms_are_bonded(const tsr_atoms *atoms, int i, int k);

/* Reads all models of a file, which must have the same atoms. out: atoms of the
 * first model. xyz [*n_model][n_atom][3] out, Angstrom, in the pool of *out.
 * Errors: as above, with the number of the model; TSR_E_DATA (a model with
 * other atoms). */
tsr_status tsr_atoms_read_models(const char *path, tsr_atoms **out,
                                 int *n_model, double (**xyz)[3], tsr_err *err);

/* ---- the atoms of a run's model.pdb ----
 *
 * The atoms in the order of a run's trajectory frames. All records are kept,
 * including the pseudo atom SC, the centre of a side chain. Atoms of guests,
 * which are not amino acids, come last and have no residue index. If the model
 * has no amino acids, nucleotides are the residues, and C3' stands for CA. */

/* Kind of an atom in a model that tessera wrote. Ligands are HETATM in files,
 * nucleotides are ATOM. */
typedef enum {
    TSR_GUEST_NONE,
    TSR_GUEST_LIGAND,
    TSR_GUEST_NUCLEOTIDE
} tsr_guest_kind;

/* An atom of a model.pdb. */
typedef struct {
    char name[5];     /* "CA", "SC" */
    char residue[4];  /* "GLY" */
    char element[3];  /* "C" */
    char chain;       /* '\0': no single letter stands for chain_id */
    char chain_id[8]; /* the full id, which mmCIF can hold; "": same as chain */
    int number;       /* number of its residue */
    char insertion;   /* ' ': none */
    int at;           /* index of its residue; -1: an atom of a guest */
    tsr_guest_kind guest_kind;
} tsr_model_atom;

/* All atoms of a model.pdb. */
typedef struct {
    tsr_pool pool;
    int n_atom, n_residue;
    int n_chain;          /* set only in a model of a topology */
    int is_nucleic;       /* 1: the residues are nucleotides */
    tsr_model_atom *atom; /* [n_atom] */
    double *xyz;          /* [n_atom][3] starting coordinates, Angstrom */
    int *ca;              /* [n_residue] index of its CA; -1: it has no CA */
} tsr_model_atoms;

/* Reads a model.pdb. Errors: TSR_E_NOINPUT, TSR_E_DATA (no ATOM record, an
 * unreadable record, with its line, a residue without CA), TSR_E_NOMEM. */
tsr_status tsr_model_atoms_read(const char *path, tsr_model_atoms **out,
                                tsr_err *err);
void tsr_model_atoms_free(tsr_model_atoms *atoms);

/* For code that makes the atoms itself. tsr_model_atoms_new allocates n_atom
 * zeroed atoms (NULL: out of memory). After the caller has set the atoms,
 * tsr_model_atoms_count finds the residues: sets n_residue, is_nucleic, ca and
 * `at` of each atom. */
tsr_model_atoms *tsr_model_atoms_new(int n_atom);
void tsr_model_atoms_count(tsr_model_atoms *atoms);

/* Gives each chain whose id has several characters a free single letter, as the
 * PDB format requires, and logs it. Errors: TSR_E_DATA (no letter or digit is
 * left). */
tsr_status tsr_model_atoms_letter_chains(tsr_model_atoms *atoms, tsr_log *log,
                                         tsr_err *err);

/* ---- writing: several models into a stream, or one into a file ---- */

typedef enum { TSR_MODEL_PDB, TSR_MODEL_CIF } tsr_model_format;

/* A chain, strand or ligand as mmCIF counts them. Asyms with the same residues
 * have the same entity. */
typedef struct {
    char id[24];  /* label_asym_id: the chain's id, or for guests that share it
                     one that begins with it */
    int entity;   /* from 1 */
    int is_first; /* 1: the first asym of its entity */
    int first, n_atom, n_residue;
    tsr_guest_kind kind; /* TSR_GUEST_NUCLEOTIDE also in a nucleic model */
} tsr_cif_asym;

/* Labels of a model's atoms in mmCIF. */
typedef struct {
    int n_asym;
    tsr_cif_asym *asym; /* [n_asym] in the order of atoms */
    int *of, *seq; /* [n_atom] index of its asym; number of its residue in the
                      asym, from 1 */
} tsr_cif_labels;

/* Labels the atoms, in memory of the pool. Errors: TSR_E_NOMEM. */
tsr_status tsr_cif_labels_make(const tsr_model_atoms *atoms, tsr_pool *pool,
                               tsr_cif_labels *out, tsr_err *err);

/* How models are written, and which atoms they have. */
typedef struct {
    tsr_model_format format;
    const char *name; /* name of the entry: letters, digits, - and _ */
    const tsr_model_atoms *atoms;
    const tsr_cif_labels *labels; /* for mmCIF; tsr_model_file makes them */
    const double *b;              /* [n_atom] B column of PDB; NULL: 0 */
} tsr_model_spec;

/* Writes the header before the first model, in mmCIF with the entities. remark:
 * lines of text (REMARK 999 in PDB), may be NULL. */
void tsr_model_begin(const tsr_model_spec *spec, const char *remark, FILE *out);

/* Writes the header of a loop of mmCIF, for rows that follow. items: names with
 * blanks between them. */
void tsr_cif_loop(FILE *out, const char *category, const char *items);

/* Writes one model. number: from 1, or 0 for a single model, which has no MODEL
 * record in PDB. label: one line. xyz [n_atom][3], Angstrom. Errors: TSR_E_DATA
 * (a coordinate that is not finite; in PDB more than 99,937 atoms, or a chain,
 * number or coordinate too wide for its columns). */
tsr_status tsr_model_write(const tsr_model_spec *spec, int number,
                           const char *label, const double (*xyz)[3], FILE *out,
                           tsr_err *err);

/* Writes the end of the file. */
void tsr_model_end(const tsr_model_spec *spec, FILE *out);

/* Writes a file with one model, and replaces an existing file as a whole.
 * Errors: those of tsr_model_write, TSR_E_IO. */
tsr_status tsr_model_file(const tsr_model_spec *spec, const char *path,
                          const char *remark, const double (*xyz)[3],
                          tsr_err *err);

/* Writes the atoms at their starting coordinates as a PDB file. path NULL: only
 * checks that PDB can hold them. Errors: as above. */
tsr_status tsr_model_atoms_write(const tsr_model_atoms *atoms, const char *path,
                                 const char *remark, tsr_err *err);

/* ---- elements ---- */

/* X-ray scattering amplitude of a neutral atom at q (1/Angstrom), in electrons:
 * International Tables for Crystallography C (1992), table 6.1.1.4, through
 * gemmi's it92. z: atomic number. NaN for an element without a value. */
double tsr_atom_form_factor(int z, double q_inv_ang);

/* Electron scattering amplitude f(s) = sum_k a_k exp(-b_k s^2), in Angstrom,
 * with s = q / 4 pi: International Tables C (2011), table 4.3.2.2, through
 * gemmi. Returns 0 for an element without values. */
int tsr_atom_electron_gaussians(int z, double a[5], double b[5]);

/* Bound coherent neutron scattering length of an element in natural
 * composition, fm: Sears 1992, Neutron News 3(3), 26, through gemmi's
 * neutron92. NaN for an element without a value, and for the strong absorbers
 * B, Cd, In, Sm, Eu, Gd and Dy, whose lengths are complex and depend on the
 * wavelength. */
double tsr_atom_neutron_length(int z);
#define TSR_DEUTERIUM_LENGTH 6.671 /* fm, Sears 1992 */

/* Mass in Da (standard atomic weights, IUPAC); covalent and van der Waals radii
 * in Angstrom (gemmi's element table). NaN for an unknown element.
 * tsr_atom_is_metal returns 1 for a metal. */
double tsr_atom_mass(int z);
double tsr_atom_covalent_radius(int z);
double tsr_atom_vdw_radius(int z);
int tsr_atom_is_metal(int z);

/* Symbol in upper case: "C", "SE"; "" for an unknown element. */
const char *tsr_atom_symbol(int z);

#endif

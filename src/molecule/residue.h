/* The 20 amino acids: names in files, atoms, and the bodies that represent
 * them.
 *
 * A body is a centre of non-hydrogen atoms, weighted by mass (docs/design.md,
 * section 2). In the two-body model a residue has a backbone body (N, CA, C, O,
 * CB) and a side-chain body (atoms beyond CB without OXT); GLY and ALA have one
 * body. In the one-body model a body is the whole residue. */
#ifndef TSR_MOLECULE_RESIDUE_H
#define TSR_MOLECULE_RESIDUE_H

enum { TSR_N_AMINO = 20, TSR_MAX_TYPE = 21, TSR_MAX_RESIDUE_ATOM = 14 };

/* In alphabetical order of the three-letter codes. */
typedef enum {
    TSR_ALA,
    TSR_ARG,
    TSR_ASN,
    TSR_ASP,
    TSR_CYS,
    TSR_GLN,
    TSR_GLU,
    TSR_GLY,
    TSR_HIS,
    TSR_ILE,
    TSR_LEU,
    TSR_LYS,
    TSR_MET,
    TSR_PHE,
    TSR_PRO,
    TSR_SER,
    TSR_THR,
    TSR_TRP,
    TSR_TYR,
    TSR_VAL
} tsr_amino;

/* An atom of an amino acid. */
typedef struct {
    const char *name; /* "CG1" */
    int z;            /* atomic number */
    int n_hydrogen;   /* bound hydrogens at pH 7 */
} tsr_amino_atom;

/* An amino acid. */
typedef struct {
    const char *three; /* "ARG" */
    char one;          /* 'R' */
    int n_atom;        /* non-hydrogen atoms, without OXT */
    tsr_amino_atom atom[TSR_MAX_RESIDUE_ATOM]; /* N, CA, C, O, CB first */
} tsr_amino_info;

/* All amino acids, by tsr_amino. */
extern const tsr_amino_info tsr_amino_table[TSR_N_AMINO];

/* Finds an amino acid by its three-letter code, "ARG", or by its letter, 'R' or
 * 'r'; -1: unknown. */
int tsr_amino_by_three(const char *three);
int tsr_amino_by_one(char one);

/* The amino acid of a residue name for a protonation state (HID, HSE, CYX and
 * others), as AMBER, CHARMM and GROMACS write it; -1: not such a name. Some of
 * these names denote other molecules in the PDB. The result holds only if the
 * residue has the atom *needs. */
int tsr_amino_by_protonation(const char *residue, const char **needs);

/* The standard name of an atom: its name in tsr_amino_table, OXT, or SC (the
 * centre of a side chain, in files of tessera). An alias is replaced, such as
 * "SE" of MET (selenomethionine) or "OT1". NULL: the residue has no such
 * atom. */
const char *tsr_amino_atom_name(tsr_amino amino, const char *atom);

/* Atomic number of an atom that tsr_amino_atom_name returned. */
int tsr_amino_atomic_number(const char *atom);

/* Returns 1 for the name of a hydrogen: apart from leading digits it begins
 * with H or D. No other atom of the 20 amino acids has such a name. */
int tsr_is_hydrogen_name(const char *atom);

/* Number of bodies in a residue with a side chain. */
typedef enum { TSR_BODIES_ONE = 1, TSR_BODIES_TWO = 2 } tsr_body_model;

/* Number of body types, 20 or 21. Two-body model: type 0 is the backbone, and
 * 1 + amino the side chain, or the whole residue for ALA and GLY. One-body
 * model: the type is the amino acid. */
int tsr_body_n_type(tsr_body_model model);

/* Body types of a residue, type [2] out. Returns the number of bodies, 1 or
 * 2. */
int tsr_body_types(tsr_body_model model, tsr_amino amino, int type[2]);

/* Name of a type: "backbone", "ARG side chain", "ALA"; "unknown" if there is no
 * such type. */
const char *tsr_body_type_name(tsr_body_model model, int type);

/* Index of the body (0 or 1) of its residue that contains an atom; OXT counts
 * with the backbone, or with the whole residue. -1: the atom is not in the
 * table. */
int tsr_body_of_atom(tsr_body_model model, tsr_amino amino, const char *atom);

/* Returns 1 if the residue has a separate side-chain centre (not ALA, GLY). */
int tsr_amino_has_side_chain(tsr_amino amino);

/* Mass in Da, without hydrogens: of a body type; of the side chain beyond
 * CB. */
double tsr_body_mass(tsr_body_model model, int type);
double tsr_amino_side_chain_mass(tsr_amino amino);

#endif

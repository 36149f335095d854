/* The 20 amino acids, their names in files, and their bodies.
 *
 * Bodies are centres of non-hydrogen atoms, weighted by mass (docs/design.md,
 * section 2): two-body: backbone (N, CA, C, O, CB) and side chain (atoms beyond
 * CB, OXT is not among them); GLY and ALA are one body. one-body: the whole
 * residue. */
#ifndef TSR_MOLECULE_RESIDUE_H
#define TSR_MOLECULE_RESIDUE_H

enum { TSR_N_AMINO = 20, TSR_MAX_TYPE = 21, TSR_MAX_RESIDUE_ATOM = 14 };

/* Alphabetical by three-letter code. */
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

typedef struct {
    const char *name; /* "CG1" */
    int z;            /* atomic number */
    int n_hydrogen;   /* bound, at pH 7 (implicit hydrogens) */
} tsr_amino_atom;

typedef struct {
    const char *three;                         /* "ARG" */
    char one;                                  /* 'R' */
    int n_atom;                                /* non-hydrogen, without OXT */
    tsr_amino_atom atom[TSR_MAX_RESIDUE_ATOM]; /* N, CA, C, O, CB first */
} tsr_amino_info;

extern const tsr_amino_info tsr_amino_table[TSR_N_AMINO];

/* By three-letter code ("ARG") or one letter; -1 where there is none. */
int tsr_amino_by_three(const char *three);
int tsr_amino_by_one(char one);

/* HID, HSE, CYX and the like, as AMBER, CHARMM and GROMACS write them: the one
 * of the 20; -1 for others. Some of these names are other molecules in the PDB:
 * it is that one only where the residue has the atom *needs. */
int tsr_amino_by_protonation(const char *residue, const char **needs);

/* The table's name of an atom, or OXT: itself where the residue has it, another
 * for "SE" of MET (selenomethionine) or "OT1"; NULL where it has none. */
const char *tsr_amino_atom_name(tsr_amino amino, const char *atom);

/* Atomic number of an atom that tsr_amino_atom_name returned. */
int tsr_amino_atomic_number(const char *atom);

/* 1 where a name is a hydrogen's: no other atom of the 20 begins with H or D,
 * digits apart. */
int tsr_is_hydrogen_name(const char *atom);

typedef enum { TSR_BODIES_ONE = 1, TSR_BODIES_TWO = 2 } tsr_body_model;

/* 20 or 21. Two-body order: 0 backbone, 1 + amino for the side chain, or for
 * the whole residue of ALA and GLY. One-body: amino. */
int tsr_body_n_type(tsr_body_model model);

/* 1 or 2 bodies; type [2] out. */
int tsr_body_types(tsr_body_model model, tsr_amino amino, int type[2]);

/* "backbone", "ARG side chain", "ALA". */
const char *tsr_body_type_name(tsr_body_model model, int type);

/* Number of the body (0 or 1) that an atom of the residue belongs to. OXT
 * belongs with the backbone (or the whole residue). -1: not in the table. */
int tsr_body_of_atom(tsr_body_model model, tsr_amino amino, const char *atom);

/* 1 where the residue has a side-chain centre of its own: all but ALA, GLY. */
int tsr_amino_has_side_chain(tsr_amino amino);

/* Mass in Da of the non-hydrogen atoms that tsr_body_model puts into body b;
 * of the side chain beyond CB; hydrogens not counted. */
double tsr_body_mass(tsr_body_model model, int type);
double tsr_amino_side_chain_mass(tsr_amino amino);

#endif

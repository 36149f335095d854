/* The 20 amino acids as files name them: their atoms, the names that force
 * fields give to protonation states, and other names of the same atoms. */
#ifndef TSR_MOLECULE_PARENT_H
#define TSR_MOLECULE_PARENT_H

typedef struct {
    const char *name;  /* "ARG" */
    char letter;       /* 'R' */
    const char *atoms; /* beyond N, CA, C, O, OXT: " CB CG ... " */
} tsr_parent;

/* NULL where the letter is none of the 20. */
const tsr_parent *tsr_parent_by_letter(char letter);

/* "ARG"; NULL where the name is none of the 20. */
const tsr_parent *tsr_parent_by_name(const char *name);

/* HID, HSE, CYX and the like, as AMBER, CHARMM and GROMACS write them; NULL for
 * others. Some of these names are other molecules in the PDB: it is the parent
 * only where the residue has the atom *needs. */
const tsr_parent *tsr_parent_by_protonation(const char *residue,
                                            const char **needs);

/* The parent's name of an atom: itself where the parent has it, another for
 * "SE" of MET (selenomethionine) or "OT1"; NULL where the parent has none. */
const char *tsr_parent_atom(const tsr_parent *parent, const char *atom);

/* 1 where a name is a hydrogen's: no other atom of the 20 begins with H or D,
 * digits apart. */
int tsr_parent_is_hydrogen(const char *atom);

/* Atomic number of an atom that tsr_parent_atom returned. */
int tsr_parent_atomic_number(const char *atom);

#endif

/* Nucleotides that have torsions of their own: chains of DNA and RNA as
 * polymers of rigid groups.
 *
 * The backbone of a nucleotide has six bonds. delta, in the ring of the sugar,
 * is held; the others turn. The bonds come in pairs that share an atom, so a
 * nucleotide is three links (topology.h), each with the atoms N, CA, C of an
 * amino acid, and the torsions about its two bonds are phi and psi:
 *
 *     phosphate  O3'-P-O5'      zeta of the nucleotide before, alpha
 *     methylene  O5'-C5'-C4'    beta, gamma
 *     sugar      C4'-C3'-O3'    (delta), epsilon
 *
 * Everything that turns phi and psi of a protein so turns these. Of the atoms P
 * and the oxygens bound to it alone are rigid with the first link, O5' and C5'
 * with the second, the sugar with the third, and so is the base, which turns by
 * chi about the bond from C1'. A nucleotide without P begins with its methylene
 * link. Where a strand begins with P, or is broken before it, the fourth corner
 * of the phosphate stands for O3'. Names of torsions: IUPAC-IUB Joint
 * Commission 1983, Eur. J. Biochem. 131, 9. */
#ifndef TSR_MOLECULE_NUCLEIC_H
#define TSR_MOLECULE_NUCLEIC_H

#include "molecule/atoms.h"
#include "molecule/topology.h"

/* Densities of torsions: by sugar and, for epsilon, its pucker. */
typedef enum {
    TSR_NUCLEIC_PHOSPHATE, /* zeta, alpha */
    TSR_NUCLEIC_METHYLENE, /* beta, gamma */
    TSR_NUCLEIC_C3_ENDO,   /* epsilon as psi, where delta < 115 degrees */
    TSR_NUCLEIC_C2_ENDO,   /* the same elsewhere */
    TSR_NUCLEIC_CHI,       /* chi as phi */
    TSR_N_NUCLEIC,         /* so many of RNA; then those of DNA */
    TSR_N_NUCLEIC_CLASS = 2 * TSR_N_NUCLEIC
} tsr_nucleic_class;

typedef struct {
    tsr_link link;
    char name[8], chain[8];
    int number;
    char insertion;
    int residue;      /* of the file's atoms */
    int linked;       /* 1: bonded to the link before */
    int class;        /* tsr_nucleic_class */
    double xyz[3][3]; /* N, CA, C */
    int has_base;     /* of a sugar link: C1', the base's N, chi */
    double c1[3], base[3], chi;
} tsr_nucleic_link;

typedef struct tsr_nucleic {
    int n;
    tsr_nucleic_link *link; /* [n] chain by chain, from 5' to 3' */
} tsr_nucleic;

/* Chains of nucleotides that the ranges `named` name, or all where there is no
 * protein (structure->n_residue is 0) and there are no ranges; *out NULL where
 * there are none. A chain that has amino acids, too, is left out.
 * Errors: TSR_E_DATA, naming file, residue, atom and remedy, where a backbone
 * is not whole; TSR_E_NOMEM. */
tsr_status tsr_nucleic_find(const tsr_structure *structure,
                            const tsr_atoms *atoms, const tsr_strings *named,
                            tsr_nucleic **out, tsr_err *err);
void tsr_nucleic_free(tsr_nucleic *nucleic);

/* What of a nucleotide is rigid: with one of its links, or the base. */
typedef enum {
    TSR_PART_PHOSPHATE,
    TSR_PART_METHYLENE,
    TSR_PART_SUGAR,
    TSR_PART_BASE
} tsr_nucleic_part;

/* part [n_atom of residue r] out: tsr_nucleic_part of each atom. Primes in
 * names say what the sugar's are; an atom without goes with what it is bonded
 * to, as the methyl group of a 2'-O-methylated sugar does. */
void tsr_nucleic_parts(const tsr_atoms *atoms, int r, int *part);

/* Does the bond O3'-P join residue `before` to r? */
int tsr_nucleic_are_joined(const tsr_atoms *atoms, int before, int r);

#endif

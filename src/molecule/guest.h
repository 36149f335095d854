/* What of a structure is no amino acid: nucleotides, sugars, ligands, cofactors
 * and ions. They ride as rigid bodies on a residue of the protein, their host.
 *
 * A nucleotide is three bodies, phosphate, sugar and base; any other residue is
 * one, halved until no atom is farther than 4 Angstrom from its body's centre.
 * Their form factors are computed from their own atoms when the file is read
 * (scattering/atom_model.h).
 *
 * Atoms of a modified residue that its parent among the 20 lacks, such as the
 * phosphate of phosphoserine, ride on that residue, as a body of their own.
 *
 * What is bonded together, and nucleotides that touch (4.5 Angstrom), ride
 * together, so that a double helix is one rigid body. Its host is in the rigid
 * unit (topology.h) with which it has most contacts below 4.5 Angstrom, and
 * there the residue with most; where nothing is so near the nearest residue.
 * What is bonded to a strand that moves rides on its link or base.
 *
 * Nucleotides that have torsions of their own (below) are guests of their
 * own links: phosphate, O5' and C5', sugar and base are bodies of these. */
#ifndef TSR_MOLECULE_GUEST_H
#define TSR_MOLECULE_GUEST_H

#include "molecule/topology.h"

typedef struct {
    int host;        /* residue */
    double local[3]; /* its centre in the frame of the host's N-CA-C */
    double xyz[3];   /* the same in the file, Angstrom */
    int residue;     /* of atoms->residue */
    int turns;       /* 1: with the base of its host, a link */
    int n_atom;      /* non-hydrogen atoms */
    double mass;     /* Da, theirs */
} tsr_guest_body;

struct tsr_guests {
    tsr_atoms *atoms; /* of the guests alone, hydrogens included; by residue */
    int *file_atom;   /* [atoms->n_atom] their numbers in the file's list */
    int *body;        /* [atoms->n_atom] -1: a hydrogen */
    int *host;        /* [atoms->n_atom] residue that carries it */
    int *turns;       /* [atoms->n_atom] 1: with that residue's base */
    int *has_links; /* [atoms->n_residue] 1: a nucleotide with its own links */
    double (*local)[3]; /* [atoms->n_atom] in the frame of the host's N-CA-C */
    double hydrogen_mass; /* Da, of hydrogens that their atoms carry; 0 until it
                             is set */
    int n_body;
    tsr_guest_body *part; /* [n_body] in the order of their hosts; body k has
                             the type tsr_body_n_type + k */
};

/* Finds the guests among all atoms of the file that `structure` was read from,
 * and adds their bodies to a topology, which owns them, and its conformation.
 * bound (may be NULL): who rides on whom where that is told, "I = A:45" or
 * "A:301-303 = B:17". `log` hears of each. Nothing changes where the file has
 * no guests. Errors: TSR_E_CONFIG (bound), TSR_E_NOMEM. */
tsr_status tsr_guests_attach(const tsr_structure *structure,
                             const tsr_atoms *atoms, const tsr_strings *bound,
                             tsr_log *log, tsr_topology *topology,
                             tsr_conformation *conformation, tsr_err *err);

/* Body b of a topology, which is one of a guest. */
const tsr_guest_body *tsr_guests_body(const tsr_topology *topology, int b);

/* guests NULL: 0. */
int tsr_guests_n_atom(const tsr_guests *guests);
int tsr_guests_n_residue(const tsr_guests *guests);

/* xyz [tsr_guests_n_atom][3] out, Angstrom. */
void tsr_guests_place(const tsr_topology *topology,
                      const tsr_conformation *conformation, double (*xyz)[3]);

/* ---- nucleotides that have torsions of their own ----
 *
 * Chains of DNA and RNA as polymers of rigid groups.
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

/* Chains of nucleotides that the ranges `named` name, or all where there is no
 * protein (structure->n_residue is 0) and there are no ranges; *out, which the
 * caller frees, NULL where there are none. A chain that has amino acids, too,
 * is left out. Errors: TSR_E_DATA, naming file, residue, atom and remedy, where
 * a backbone is not whole; TSR_E_NOMEM. */
tsr_status tsr_nucleic_find(const tsr_structure *structure,
                            const tsr_atoms *atoms, const tsr_strings *named,
                            tsr_nucleic **out, tsr_err *err);

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

/* Guests: all parts of a structure that are not amino acids, such as
 * nucleotides, sugars, ligands, cofactors and ions. A guest is a set of rigid
 * bodies attached to a residue of the protein, its host.
 *
 * A nucleotide has three bodies: phosphate, sugar and base. Any other residue
 * is one body, which is split until no atom is farther than 4 Angstrom from the
 * centre of its body. The form factors of these bodies are computed from their
 * own atoms when the file is read (scattering/atom_model.h).
 *
 * Atoms of a modified residue that its parent amino acid lacks, such as the
 * phosphate of phosphoserine, are a body attached to that residue.
 *
 * Guests that are bonded to each other, and nucleotides in contact (4.5
 * Angstrom), form a group with one host, so that a double helix is one rigid
 * body. The host lies in the rigid unit (topology.h) with which the group has
 * most contacts below 4.5 Angstrom, and is the residue of that unit with most
 * contacts. Without any contact the nearest residue is the host. A group bonded
 * to a strand with free torsions is attached to the link or base that it is
 * bonded to.
 *
 * Nucleotides with free torsions (below) are guests of their own links:
 * phosphate, O5' and C5', sugar and base are bodies of these links. */
#ifndef TSR_MOLECULE_GUEST_H
#define TSR_MOLECULE_GUEST_H

#include "molecule/topology.h"

/* A body of a guest. */
typedef struct {
    int host;        /* index of the host residue in the topology */
    double local[3]; /* centre in the frame of the host's N-CA-C, Angstrom */
    double xyz[3];   /* centre in the file, Angstrom */
    int residue;     /* index in atoms->residue */
    int with_base;   /* 1: turns with the base of its host, a sugar link */
    int n_atom;      /* non-hydrogen atoms */
    double mass;     /* mass of these atoms, Da */
} tsr_guest_body;

/* All guests of a topology, in its memory. */
struct tsr_guests {
    tsr_atoms *atoms; /* the atoms of the guests, hydrogens included, ordered by
                         residue */
    int *file_atom;   /* [atoms->n_atom] index in tsr_atoms of the file */
    int *body;        /* [atoms->n_atom] index of its body; -1: a hydrogen */
    int *host;        /* [atoms->n_atom] host residue */
    int *with_base;   /* [atoms->n_atom] 1: turns with the base of its host */
    int *has_links; /* [atoms->n_residue] 1: a nucleotide with links (below) */
    double (*local)[3];   /* [atoms->n_atom] position in the frame of the host's
                             N-CA-C, Angstrom */
    double hydrogen_mass; /* Da, of all bound hydrogens; 0 until the caller sets
                             it */
    int n_body;
    tsr_guest_body *part; /* [n_body] ordered by host; body k has the type
                             tsr_body_n_type + k */
};

/* Finds the guests among all atoms of the file from which `structure` was read,
 * and adds their bodies to the topology, which owns them, and to the
 * conformation. bound (may be NULL): hosts chosen by the user, "I = A:45" or
 * "A:301-303 = B:17". The hosts of the first groups are logged. If the file has
 * no guests, nothing changes. Errors: TSR_E_CONFIG (bound), TSR_E_NOMEM. */
tsr_status tsr_guests_attach(const tsr_structure *structure,
                             const tsr_atoms *atoms, const tsr_strings *bound,
                             tsr_log *log, tsr_topology *topology,
                             tsr_conformation *conformation, tsr_err *err);

/* The guest body that is body b of the topology. */
const tsr_guest_body *tsr_guests_body(const tsr_topology *topology, int b);

/* Number of atoms and of residues of all guests; guests NULL: 0. */
int tsr_guests_n_atom(const tsr_guests *guests);
int tsr_guests_n_residue(const tsr_guests *guests);

/* Positions of all guest atoms, xyz [tsr_guests_n_atom][3] out, Angstrom. */
void tsr_guests_place(const tsr_topology *topology,
                      const tsr_conformation *conformation, double (*xyz)[3]);

/* ---- nucleotides with free torsions ----
 *
 * Chains of DNA and RNA as polymers of rigid groups.
 *
 * The backbone of a nucleotide has six bonds. delta, in the ring of the sugar,
 * is constant; the torsions of the other five are free. Bonds come in pairs
 * that share an atom. A nucleotide is therefore three links (topology.h), each
 * with atoms N, CA, C like an amino acid, and the torsions about its two bonds
 * are phi and psi:
 *
 *     phosphate  O3'-P-O5'      zeta of the preceding nucleotide, alpha
 *     methylene  O5'-C5'-C4'    beta, gamma
 *     sugar      C4'-C3'-O3'    (delta), epsilon
 *
 * All code that turns phi and psi of a protein applies to these links. P and
 * the oxygens bound only to P are rigid with the phosphate link, O5' and C5'
 * with the methylene link, and the other atoms of the sugar with the sugar
 * link. The base is attached to the sugar link and turns by chi about the bond
 * from C1'. A nucleotide without P begins with its methylene link. Where a
 * strand begins with P, or is broken before P, a point at the fourth corner of
 * the phosphate tetrahedron replaces O3'. Names of torsions: IUPAC-IUB Joint
 * Commission 1983, Eur. J. Biochem. 131, 9. */

/* Classes of torsion densities, by type of link and sugar pucker. */
typedef enum {
    TSR_NUCLEIC_PHOSPHATE, /* zeta, alpha */
    TSR_NUCLEIC_METHYLENE, /* beta, gamma */
    TSR_NUCLEIC_C3_ENDO, /* epsilon, stored as psi; pucker C3'-endo, delta < 115
                            degrees */
    TSR_NUCLEIC_C2_ENDO, /* epsilon, stored as psi; pucker C2'-endo */
    TSR_NUCLEIC_CHI,     /* chi, stored as phi */
    TSR_N_NUCLEIC,       /* number of classes for RNA; those for DNA follow */
    TSR_N_NUCLEIC_CLASS = 2 * TSR_N_NUCLEIC
} tsr_nucleic_class;

/* Makes the links of all nucleotides in chains to which a range of `named` (may
 * be NULL) belongs. Without protein (structure->n_residue is 0), no range or
 * the single range "all" means all chains. A chain that also has
 * amino acids is left out. *out: the caller frees it with free; NULL: no such
 * chain. Errors: TSR_E_DATA (an incomplete backbone, with file, residue, atom
 * and remedy), TSR_E_NOMEM. */
tsr_status tsr_nucleic_find(const tsr_structure *structure,
                            const tsr_atoms *atoms, const tsr_strings *named,
                            tsr_nucleic **out, tsr_err *err);

/* Rigid parts of a nucleotide. */
typedef enum {
    TSR_PART_PHOSPHATE,
    TSR_PART_METHYLENE,
    TSR_PART_SUGAR,
    TSR_PART_BASE
} tsr_nucleic_part;

/* part [n_atom of residue r] out: tsr_nucleic_part of each atom. P and the
 * names of its oxygens (OP1, O1P) mark the phosphate; a prime marks the sugar,
 * or with a 5 the methylene. Any other atom belongs to the same part as the
 * atom to which it is bonded, as the methyl group of a 2'-O-methylated sugar
 * does, or else to the base. */
void tsr_nucleic_parts(const tsr_atoms *atoms, int r, int *part);

/* Returns 1 if a bond O3'-P (below 2 Angstrom) joins residue `before` to
 * residue r. */
int tsr_nucleic_are_joined(const tsr_atoms *atoms, int before, int r);

#endif

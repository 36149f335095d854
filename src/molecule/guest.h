/* What of a structure is no amino acid: nucleotides, sugars, ligands, cofactors
 * and ions. They ride as rigid bodies on a residue of the protein, their host.
 *
 * A nucleotide is three bodies, phosphate, sugar and base; any other residue is
 * one, halved until no atom is farther than 4 Angstrom from its body's centre.
 * Their form factors are computed from their own atoms when the file is read
 * (scattering/guest_factor.h).
 *
 * Atoms of a modified residue that its parent among the 20 lacks, such as the
 * phosphate of phosphoserine, ride on that residue, as a body of their own.
 *
 * What is bonded together, and nucleotides that touch (4.5 Angstrom), ride
 * together, so that a double helix is one rigid body. Its host is in the rigid
 * unit (topology.h) with which it has most contacts below 4.5 Angstrom, and
 * there the residue with most; where nothing is so near the nearest residue.
 * What is bonded to a strand that moves (below) rides on its link or base.
 *
 * Nucleotides that have torsions of their own (nucleic.h) are guests of their
 * own links: phosphate, O5' and C5', sugar and base are bodies of these. */
#ifndef TSR_MOLECULE_GUEST_H
#define TSR_MOLECULE_GUEST_H

#include "molecule/atoms.h"
#include "molecule/topology.h"

typedef struct {
    int host;        /* residue */
    double local[3]; /* its centre in the frame of the host's N-CA-C */
    double xyz[3];   /* the same in the file, Angstrom */
    int residue;     /* of atoms->residue */
    int turns;       /* 1: with the base of its host, a link (nucleic.h) */
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
 * and adds their bodies to a topology and its conformation, whose arrays grow.
 * bound (may be NULL): who rides on whom where that is told, "I = A:45" or
 * "A:301-303 = B:17". `log` hears of each. Nothing changes where the file has
 * no guests. Errors: TSR_E_CONFIG (bound), TSR_E_NOMEM. */
tsr_status tsr_guests_attach(const tsr_structure *structure,
                             const tsr_atoms *atoms, const tsr_strings *bound,
                             tsr_log *log, tsr_topology *topology,
                             tsr_conformation *conformation, tsr_err *err);
void tsr_guests_free(tsr_guests *guests);

/* Body b of a topology, which is one of a guest. */
const tsr_guest_body *tsr_guests_body(const tsr_topology *topology, int b);

/* guests NULL: 0. */
int tsr_guests_n_atom(const tsr_guests *guests);
int tsr_guests_n_residue(const tsr_guests *guests);

/* xyz [tsr_guests_n_atom][3] out, Angstrom. */
void tsr_guests_place(const tsr_topology *topology,
                      const tsr_conformation *conformation, double (*xyz)[3]);

/* Appends them to a structure for writing, which has room; xyz
 * [structure->n_atom + n_atom][3]. */
void tsr_guests_write(const tsr_guests *guests, const double (*xyz)[3],
                      tsr_structure *structure);

/* ---- on whom they ride (guest_hosts.c), how they are cut (guest_bodies.c)
 * ---- */

/* host [atoms->n_residue] out: the residue of the topology that carries it, -1
 * for residues of the protein; of a modified residue of the protein itself, of
 * a nucleotide with links its sugar link.
 * group [atoms->n_residue] out: the first of those that ride together. is_guest
 * [atoms->n_atom] out: of guests 1, or 2 where they turn with the base of their
 * host; of a modified residue for those atoms that its parent lacks. *n_guest:
 * how many have a host. Errors: as above. */
tsr_status tsr_guest_hosts(const tsr_structure *structure,
                           const tsr_atoms *atoms, const tsr_strings *bound,
                           tsr_topology *topology, int *host, int *group,
                           char *is_guest, int *n_guest, tsr_err *err);

/* The link of the nucleotide of sugar link `sugar` that a part of it
 * (tsr_nucleic_part) is rigid with; the first there is, where it has no
 * phosphate. *turns: with the base. */
int tsr_guest_link_of(const tsr_topology *topology, int sugar, int part,
                      int *turns);

/* Bodies of residue r, all atoms of which have one host, or, is_link, are rigid
 * with the links of a nucleotide: part [n_atom of the residue] out, from 0, -1
 * for hydrogens. Returns how many. */
int tsr_guest_cut(const tsr_atoms *atoms, int r, int is_link, int *part);

#endif

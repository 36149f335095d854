/* The constant part of a molecular model: residues, bodies, and what can move.
 *
 * Residues are in the order of the file, chain by chain. A chain is a polymer
 * chain of the input. Where a peptide bond is missing (a break), the parts on
 * both sides keep their relative position, as if a rigid link joined them. A
 * flexible residue has free phi, psi, bond angle N-CA-C and side chain.
 * Residues whose mutual distances never change form a rigid unit. */
#ifndef TSR_MOLECULE_TOPOLOGY_H
#define TSR_MOLECULE_TOPOLOGY_H

#include "core/field.h"
#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/vec3.h"
#include "molecule/prior_table.h"
#include "molecule/residue.h"
#include "molecule/structure.h"

/* The kind of a residue: an amino acid, or one of the three links of a
 * nucleotide. The atoms N, CA, C of a link (molecule/guest.h) and its torsions
 * are
 *
 *   phosphate  O3' of the preceding nucleotide, P, O5'   phi zeta, psi alpha
 *   methylene  O5', C5', C4'                            phi beta, psi gamma
 *   sugar      C4', C3', O3'                            phi delta, psi epsilon
 *
 * delta is constant. O is the same point as C. C of a link is N of the next
 * link. */
typedef enum {
    TSR_LINK_NONE,
    TSR_LINK_PHOSPHATE,
    TSR_LINK_METHYLENE,
    TSR_LINK_SUGAR
} tsr_link;

/* A residue, or a link of a nucleotide. */
typedef struct {
    tsr_amino amino; /* TSR_GLY for a link */
    tsr_link link;
    char chain[8];
    int number;
    char insertion;              /* ' ': none */
    int in_chain;                /* index of the chain */
    int chain_first, chain_last; /* first and last residue of the chain */
    int linked;   /* 1: a bond joins it to the preceding residue */
    int flexible; /* 1: its torsions and side chain are free */
    int has_phi;  /* 1: phi exists (there is a bond before it) and can turn */
    int has_psi;  /* 1: psi exists (there is a bond after it) and can turn;
                     neither depends on `flexible` */
    int is_fixed; /* 1: keeps its position in space; in an attached chain, its
                     position relative to the host */
    int copy;     /* copy in a symmetric assembly; 0: the subunit */
    int unit;     /* rigid unit; -1: flexible */
    int rama; /* tsr_rama_class; for a link TSR_N_RAMA + tsr_nucleic_class */
    int sequence_index; /* position in the chain, by which the excluded volume
                           omits neighbours */
    int first_body, n_body; /* its own bodies, then those of its guests */
    int n_guest;            /* bodies of guests among them */
    double cb[3];   /* CB in the frame of N-CA-C, Angstrom; unused for GLY */
    int nucleotide; /* only for a link: index of its nucleotide in tsr_atoms */
    char name[8];   /* only for a link: name of the nucleotide, "DT"; or "" */
} tsr_residue;

/* The base of a sugar link, which turns about the bond C1'-N by chi. */
typedef struct {
    int exists;            /* 0: the link has no base that can turn */
    double chi;            /* in the input file, rad */
    double from[3], to[3]; /* C1' and N of that bond, in the frame of N-CA-C */
} tsr_base;

/* A body: a scatterer of the coarse-grained model. */
typedef struct {
    int type; /* form factor: molecule/residue.h; a guest's body has a type of
                 its own */
    int contact_type; /* amino acid type whose contact distances it has */
    int residue;
    double mass; /* Da, non-hydrogen atoms */
} tsr_body;

/* All guests of a model: nucleotides, ligands, ions (molecule/guest.h). */
typedef struct tsr_guests tsr_guests;

typedef enum { TSR_PHI, TSR_PSI } tsr_torsion_kind;

/* A free torsion that can be turned by itself. Turning moves the shorter side
 * of the chain, or the side without fixed residues. A torsion with fixed
 * residues on both sides is not in the list.
 *
 *   C side: phi moves residue..chain_last as one rigid group; psi moves
 *           residue+1..chain_last, and O of the residue itself.
 *   N side: phi moves chain_first..residue-1; psi moves these, and N, CB and
 *           the side chain of the residue itself. */
typedef struct {
    int residue;
    tsr_torsion_kind kind;
    int c_side; /* 1: the C-terminal side moves, 0: the N-terminal side */
} tsr_torsion;

/* A chain attached to a residue of another chain, its host. When the host
 * moves, the whole attached chain moves with it rigidly, so that its fixed
 * residues keep their position relative to the host. */
typedef struct {
    int chain, first, last; /* index of the chain; its residues */
    int host;               /* residue of the host chain */
} tsr_attached_chain;

/* Largest number of attached chains. A proposal needs spans for its own
 * residues and for all attached chains. */
enum { TSR_MAX_ATTACHED = 4 };

/* In a symmetric assembly (structure.h) copy g of the subunit is residues
 * g n_own to (g + 1) n_own - 1, and its bodies and chains likewise. Moves turn
 * and shift the subunit alone, and the copies follow exactly
 * (tsr_proposal_move_attached). A residue of a copy has `flexible` 0 and
 * `is_fixed` 1, and unit -1 where that of the subunit is flexible. */

/* The constant part of a model. */
typedef struct {
    tsr_pool pool;
    int n_residue, n_chain, n_body, n_torsion, n_side;
    int n_own; /* residues of the subunit; n_residue without symmetry */
    tsr_symmetry symmetry;
    int moves_subunit; /* 1: the subunit, of several chains, also moves as a
                          whole */
    tsr_body_model body_model;
    tsr_residue *residue; /* [n_residue] */
    tsr_body *body;       /* [n_body], in the order of the residues */
    tsr_torsion *torsion; /* [n_torsion] */
    int *side;            /* [n_side] residues with a free side chain or base */
    int *chain_start;     /* [n_chain + 1] first residue; the last element is
                             n_residue */
    int *mobile;          /* [n_chain] 1: the chain also moves as a whole */
    int contacts; /* least number of contacts that join a mobile chain to the
                     complex (prior/prior.h); 0: none are required */
    int n_attached;
    tsr_attached_chain *attached; /* [n_attached] if the chain of a host is
                                     itself attached, it comes first */
    double total_mass;            /* Da, of all bodies */
    int n_link;         /* links of nucleotides, the last n_link residues */
    tsr_base *base;     /* [n_residue]; NULL where n_link is 0 */
    tsr_guests *guests; /* NULL: no guests */
} tsr_topology;

/* Coordinates of one conformation. */
typedef struct {
    tsr_pool pool;
    double (*backbone)[4][3]; /* [n_residue] N, CA, C, O; Angstrom */
    double (*side)[3]; /* [n_residue] side-chain centre in the frame of N-CA-C,
                          Angstrom; unused for ALA and GLY. For a sugar link [0]
                          is chi, rad in [-pi, pi) */
    double (*body)[3]; /* [n_body] Angstrom */
} tsr_conformation;

enum { TSR_N, TSR_CA, TSR_C, TSR_O };

/* ---- from a structure or a sequence ---- */

/* A link of a nucleotide with free torsions (tsr_nucleic_find). */
typedef struct {
    tsr_link link;
    char name[8], chain[8];
    int number;
    char insertion;
    int residue;      /* index in tsr_atoms */
    int linked;       /* 1: bonded to the preceding link */
    int class;        /* tsr_nucleic_class */
    double xyz[3][3]; /* N, CA, C */
    int has_base;     /* only for a sugar link: C1', N of the base, and chi */
    double c1[3], base[3], chi;
} tsr_nucleic_link;

/* All links of nucleotides with free torsions. */
typedef struct {
    int n;
    tsr_nucleic_link link[]; /* [n] chain by chain, from 5' to 3' */
} tsr_nucleic;

/* Which parts may move, as residue ranges: "A:262-269", "A:17", "262-269" (if
 * there is one chain), "A". Each list may be NULL. flexible and rigid exclude
 * each other. With neither, or with the single word "all" in flexible, all
 * residues are flexible. fixed: ranges that are rigid and stay in space. In a
 * complex, a chain without fixed ranges keeps its largest rigid unit fixed; a
 * chain without a rigid unit moves as a whole, except the first chain if no
 * chain has a rigid unit or a fixed range. mobile: names of chains that
 * also move as a whole; in a symmetric assembly also "subunit", all chains of
 * the subunit together. Ranges of copies are those of the subunit. */
typedef struct {
    const tsr_strings *flexible, *rigid, *fixed, *mobile;
    const char *file; /* for messages; may be NULL */
    int is_frozen;    /* 1: nothing moves, and the ranges are ignored */
    const tsr_nucleic *nucleic; /* nucleotides with free torsions, whose links
                                   follow the protein; or NULL */
    int contacts;               /* as in tsr_topology */
    int is_placed; /* 1: the position of the molecule matters (a density map),
                      so every chain may be mobile. A single chain is then
                      mobile unless parts of it are fixed */
} tsr_flexibility;

/* Makes the model of a structure whose residues all have a backbone
 * (tsr_structure_read_any), and its first conformation; the caller frees both.
 * A missing O or CB is built with ideal geometry. An incomplete side chain gets
 * the prior's mean position. Both are logged. Errors: TSR_E_CONFIG (a range
 * that cannot be applied, with the reason), TSR_E_NOMEM. */
tsr_status tsr_topology_from_structure(const tsr_structure *structure,
                                       tsr_body_model body_model,
                                       tsr_flexibility flexibility,
                                       const tsr_prior_table *prior,
                                       tsr_log *log, tsr_topology **out,
                                       tsr_conformation **first, tsr_err *err);

/* Makes the model of a one-letter sequence of 3 to 100,000 residues: chain A,
 * numbered from 1, extended, with ideal geometry (Engh & Huber 1991), trans
 * peptides and side chains at the prior's mean. Errors: as above, and
 * TSR_E_CONFIG (an unknown letter, another length). */
tsr_status tsr_topology_from_sequence(const char *sequence,
                                      tsr_body_model body_model,
                                      tsr_flexibility flexibility,
                                      const tsr_prior_table *prior,
                                      tsr_topology **out,
                                      tsr_conformation **first, tsr_err *err);

void tsr_topology_free(tsr_topology *topology);

/* Private to src/molecule. Sets which parts may move, with rigid units,
 * torsions and attached chains, in a topology whose residues, links, bodies and
 * CB are set. omega and contacts between chains are measured in the
 * conformation. log (may be NULL) gets the decisions about complexes. */
tsr_status tsr_freedom_set(tsr_topology *topology,
                           const tsr_conformation *conformation,
                           const tsr_flexibility *flexibility, tsr_log *log,
                           tsr_err *err);

/* A residue range as text: "A:262-269", "A:17", "262-269", "A:-6-8", "A". */
typedef struct {
    char chain[8]; /* "": no chain given */
    int has_number;
    long first, last; /* without numbers: from INT_MIN to INT_MAX */
} tsr_range;

/* Reads a range. Returns 0 if the text is not a range. */
int tsr_range_read(const char *text, tsr_range *range);

/* Sets mark[i] = 1 for each residue that a range names: those of its chain
 * whose numbers lie in the range. The range must lie within the chain's first
 * and last number. The chain may be omitted if there is only one. Errors:
 * TSR_E_CONFIG, with the text and a remedy. */
tsr_status tsr_range_mark(const char *text, int n_residue,
                          const tsr_residue *residue, int *mark, tsr_err *err);

/* Writes the names of all chains, "A, B, C", with "..." if there are too many,
 * and returns text. */
enum { TSR_CHAINS_SIZE = 256 };
const char *tsr_range_chains(int n_residue, const tsr_residue *residue,
                             char text[TSR_CHAINS_SIZE]);

/* ---- properties ---- */

/* Name of the residue or nucleotide: "LEU", "DT". */
const char *tsr_residue_name(const tsr_residue *residue);

/* Number of amino acids and nucleotides. */
int tsr_topology_n_monomer(const tsr_topology *topology);

/* Returns one letter per amino acid or nucleotide, with '/' between chains. A
 * nucleotide has the last letter of its name, in lower case. The caller frees
 * it. NULL: out of memory. */
char *tsr_topology_sequence(const tsr_topology *topology);

/* Two bodies of different parts of a complex closer than this are a contact,
 * Angstrom (as side chains: Miyazawa & Jernigan 1985, Macromolecules 18,
 * 534). */
#define TSR_CONTACT_ANG 6.5

/* The part of a complex that carries a chain: 1 + the index of a mobile chain,
 * or 0, the part of all chains that stay. */
int tsr_topology_part(const tsr_topology *topology, int chain);

/* Returns an upper bound on the largest distance between two bodies, over all
 * values of the free torsions, Angstrom. Free side chains are assumed to stay
 * within 3 Angstrom of their position in `first`. If a chain of a complex moves
 * as a whole, the bound is the sum of the diameters of all parts with
 * TSR_CONTACT_ANG between them, or infinite if no contacts are required. NaN:
 * out of memory. */
double tsr_topology_reach(const tsr_topology *topology,
                          const tsr_conformation *first);

/* ---- conformations ---- */

/* Allocates zeroed coordinates. NULL: out of memory. */
tsr_conformation *tsr_conformation_new(const tsr_topology *topology);
void tsr_conformation_free(tsr_conformation *conformation);

/* Copies residues first..first+count-1, bodies included. */
void tsr_conformation_copy(const tsr_topology *topology, tsr_conformation *to,
                           const tsr_conformation *from, int first, int count);

/* Computes the positions of the bodies of residues first..first+count-1, guests
 * included, from backbone and side. */
void tsr_conformation_place_bodies(const tsr_topology *topology,
                                   tsr_conformation *conformation, int first,
                                   int count);

/* Position of CB of an amino acid other than GLY, Angstrom. */
void tsr_conformation_cb(const tsr_topology *topology,
                         const tsr_conformation *conformation, int residue,
                         double cb[3]);

/* The atom of the preceding residue with which phi begins, and the atom of the
 * next residue with which psi ends. */
static inline int tsr_residue_atom_before(const tsr_residue *residue)
{
    return residue->link == TSR_LINK_NONE ? TSR_C : TSR_CA;
}

static inline int tsr_residue_atom_after(const tsr_residue *residue)
{
    return residue->link == TSR_LINK_NONE ? TSR_N : TSR_CA;
}

/* motion out: turns the base of sugar link `residue` from its position in the
 * file to the current chi, in the frame of N-CA-C. */
void tsr_conformation_base(const tsr_topology *topology,
                           const tsr_conformation *conformation, int residue,
                           tsr_motion *motion);

/* Returns a torsion, rad; NaN at the end of a chain. */
double tsr_conformation_torsion(const tsr_topology *topology,
                                const tsr_conformation *conformation,
                                int residue, tsr_torsion_kind kind);

/* Moves residues first..last rigidly, bodies included. Does nothing if
 * last < first. */
void tsr_conformation_move(const tsr_topology *topology,
                           tsr_conformation *conformation, int first, int last,
                           const tsr_motion *motion);

/* Increases a free torsion by angle_rad, bodies included. */
void tsr_conformation_turn(const tsr_topology *topology,
                           tsr_conformation *conformation,
                           const tsr_torsion *torsion, double angle_rad);

/* Increases phi and psi of residues first..last of one chain by change_rad
 * [last - first + 1][2]. c_side 1: the part of the chain after `last` moves
 * rigidly; 0: the part before `first`. */
void tsr_conformation_turn_many(const tsr_topology *topology,
                                tsr_conformation *conformation, int first,
                                int last, int c_side,
                                const double (*change_rad)[2]);

/* Returns the radius of gyration over the bodies, weighted by mass, Angstrom.
 * rg2 [n_type]: mean square radius of each body type itself, Angstrom squared;
 * NULL: bodies are points. */
double tsr_conformation_rg(const tsr_topology *topology,
                           const tsr_conformation *conformation,
                           const double *rg2);

/* The atoms that represent a conformation in files: for each residue N, CA, C,
 * O, CB (not GLY) and SC, the side-chain centre (not GLY and ALA), then the
 * atoms of guests. xyz [tsr_topology_n_atom][3] out, Angstrom. */
int tsr_topology_n_atom(const tsr_topology *topology);
void tsr_conformation_atoms(const tsr_topology *topology,
                            const tsr_conformation *conformation,
                            double (*xyz)[3]);

/* The conformation as the atoms of model.pdb, in the order above; SC is a
 * pseudo atom. The caller frees it. NULL: out of memory. */
tsr_model_atoms *tsr_topology_model(const tsr_topology *topology,
                                    const tsr_conformation *conformation);

/* ---- ideal geometry of the backbone (Engh & Huber 1991) ---- */

#define TSR_BOND_N_CA 1.458
#define TSR_BOND_CA_C 1.525
#define TSR_BOND_C_N 1.329
#define TSR_BOND_C_O 1.231
#define TSR_ANGLE_N_CA_C 1.9373 /* 111.0 degrees */
#define TSR_ANGLE_CA_C_N 2.0281 /* 116.2 */
#define TSR_ANGLE_C_N_CA 2.1241 /* 121.7 */
#define TSR_ANGLE_CA_C_O 2.1031 /* 120.5 */

/* Places d so that the distance c-d is bond_ang, the angle b-c-d angle_rad and
 * the torsion a-b-c-d torsion_rad (Parsons et al. 2005, natural extension
 * reference frame). */
void tsr_place_atom(double d[3], const double a[3], const double b[3],
                    const double c[3], double bond_ang, double angle_rad,
                    double torsion_rad);

/* Ideal position of CB from N, CA, C. */
void tsr_place_cb(double cb[3], const double n[3], const double ca[3],
                  const double c[3]);

/* ---- a proposal: residues that moved, and the Hastings correction ---- */

enum {
    TSR_MAX_SPAN = 8, /* of a move; and with the spans of copies: */
    TSR_ALL_SPANS = TSR_MAX_SPAN * TSR_MAX_COPY
};

/* Residues first..first+count-1 moved. group > 0: as one rigid body, together
 * with all other spans of the same group. group 0: their mutual distances may
 * have changed. */
typedef struct {
    int first, count, group;
} tsr_span;

/* Spans are in ascending order and do not overlap. The proposed coordinates are
 * in a second conformation, which equals the current one outside the spans.
 * n_span 0: no proposal was possible (no closure was found, for example), and
 * the step is a rejection. */
typedef struct {
    int target; /* number of a torsion, window or other target of the move */
    int n_span;
    tsr_span span[TSR_ALL_SPANS];
    double log_ratio; /* log q(old | new) - log q(new | old), nat, densities in
                         the coordinates of the prior (prior/prior.h) */
} tsr_proposal;

/* Moves the chains attached to moved residues in `proposed`, and adds their
 * spans, which replace earlier spans in these chains. The reverse proposal
 * moves them back, and their torsions do not change, so the Hastings correction
 * does not change either. In a symmetric assembly, places the copies of moved
 * residues and adds their spans. */
void tsr_proposal_move_attached(const tsr_topology *topology,
                                const tsr_conformation *current,
                                tsr_conformation *proposed,
                                tsr_proposal *proposal);

/* Places all copies of residues first..first+count-1 of the subunit, bodies
 * included. */
void tsr_conformation_place_copies(const tsr_topology *topology,
                                   tsr_conformation *conformation, int first,
                                   int count);

/* Removes from a shift of the subunit the part along the axis of Cn, with which
 * the whole assembly would drift. */
void tsr_topology_project_shift(const tsr_topology *topology, double shift[3]);

/* Refuses an assembly whose guests are not carried by the same residues of all
 * copies (TSR_E_DATA). To be called after tsr_guests_attach. */
tsr_status tsr_topology_check_copies(const tsr_topology *topology,
                                     tsr_err *err);

#endif

/* The molecule as it does not change: residues, bodies, what may move.
 *
 * Residues stand in the order of the file, chain after chain. A chain is a
 * polymer chain of the input; a break in it (no peptide bond) keeps the parts'
 * relation, like a rigid link. Of a flexible residue phi, psi, the bond angle
 * N-CA-C and the side chain are free. What never changes its inner distances is
 * a rigid unit. */
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

/* What a residue of the chain is: an amino acid, or one of the three links of a
 * nucleotide, whose atoms N, CA, C are then (molecule/guest.h)
 * phosphate O3' of the nucleotide before, P, O5': phi is zeta, psi alpha
 * methylene O5', C5', C4': phi is beta, psi gamma
 * sugar     C4', C3', O3': phi is delta, which is held, psi epsilon
 * and O is C once more. C of a link is N of the next. */
typedef enum {
    TSR_LINK_NONE,
    TSR_LINK_PHOSPHATE,
    TSR_LINK_METHYLENE,
    TSR_LINK_SUGAR
} tsr_link;

typedef struct {
    tsr_amino amino; /* of a link GLY */
    tsr_link link;
    char chain[8];
    int number;
    char insertion; /* ' ' where there is none */
    int in_chain;   /* number of its chain; the first and last residue of it */
    int chain_first;
    int chain_last;
    int linked;   /* 1: a bond joins it to the residue before */
    int flexible; /* 1: its torsions and side chain are free */
    int has_phi;  /* 1: phi exists (a bond before it) and can turn, and */
    int has_psi;  /*    psi (one after it), flexible or not */
    int is_fixed; /* 1: stays where it is in space, or of a chain that rides
                     on another in its place beside that */
    int unit;     /* rigid unit; -1: flexible, none */
    int rama;     /* tsr_rama_class; of a link TSR_N_RAMA + tsr_nucleic_class */
    int place;    /* along its chain, as excluded volume counts */
    int first_body, n_body; /* its own, then those of guests */
    int n_guest;            /* of guests alone */
    double cb[3];           /* CB in the frame of N-CA-C, Angstrom; not GLY */
    int nucleotide;         /* of a link: its residue among the file's atoms */
    char name[8];           /* of a link: of the nucleotide, "DT"; or "" */
} tsr_residue;

/* The base of a sugar link turns about the bond to it. */
typedef struct {
    int is_there;
    double chi;            /* in the file, rad */
    double from[3], to[3]; /* C1' and N of the bond in the frame of N-CA-C */
} tsr_base;

typedef struct {
    int type; /* form factor: molecule/residue.h, of guests the types behind */
    int like; /* the type of amino acids whose contact distances it has */
    int residue;
    double mass; /* Da, non-hydrogen atoms */
} tsr_body;

/* What is no amino acid (molecule/guest.h). */
typedef struct tsr_guests tsr_guests;

typedef enum { TSR_PHI, TSR_PSI } tsr_torsion_kind;

/* A free torsion that can be turned alone. Turning it moves the shorter side of
 * its chain, or the one without residues that are fixed (where both have some
 * it is not in the list):
 * C side: phi turns residues residue..chain_last as one rigid group; psi turns
 *         residue+1..chain_last and, of the residue itself, O.
 * N side: phi turns chain_first..residue-1; psi those and, of the residue
 *         itself, N, CB and the side chain. */
typedef struct {
    int residue;
    tsr_torsion_kind kind;
    int c_side; /* 1: the C-terminal side turns, 0: the N-terminal */
} tsr_torsion;

/* A chain that goes along with a residue of another, on which it rides: where
 * that is moved as one, so is the whole chain, and its own fixed residues stay
 * in their place beside it. */
typedef struct {
    int chain, first, last; /* residues of the chain */
    int host;
} tsr_ride;

/* So that a proposal has spans for its own and for all that ride. */
enum { TSR_MAX_RIDE = 4 };

typedef struct {
    tsr_pool pool;
    int n_residue, n_chain, n_body, n_torsion, n_side;
    tsr_body_model body_model;
    tsr_residue *residue; /* [n_residue] */
    tsr_body *body;       /* [n_body], in the order of the residues */
    tsr_torsion *torsion; /* [n_torsion] the free ones */
    int *side;            /* [n_side] residues with a free side chain */
    int *chain_start;     /* [n_chain + 1] first residue; then n_residue */
    int *mobile;          /* [n_chain] 1: the chain moves as a whole too */
    int n_ride;
    tsr_ride *ride;     /* [n_ride] hosts before those that ride on them */
    double total_mass;  /* Da, of all bodies */
    int n_link;         /* of n_residue the last: links of nucleotides */
    tsr_base *base;     /* [n_residue]; NULL where n_link is 0 */
    tsr_guests *guests; /* NULL: none */
} tsr_topology;

/* Coordinates of one conformation. */
typedef struct {
    tsr_pool pool;
    double (*backbone)[4][3]; /* [n_residue] N, CA, C, O; Angstrom */
    double (*side)[3];        /* [n_residue] side-chain centre in the frame of
                                 N-CA-C, Angstrom; unused for ALA, GLY. Of a
                                 sugar link [0] is chi, rad in [-pi, pi) */
    double (*body)[3];        /* [n_body] Angstrom */
} tsr_conformation;

enum { TSR_N, TSR_CA, TSR_C, TSR_O };

/* ---- from a structure or a sequence ---- */

/* A nucleotide's part with torsions of its own (molecule/guest.h finds them).
 */
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

typedef struct {
    int n;
    tsr_nucleic_link link[]; /* [n] chain by chain, from 5' to 3' */
} tsr_nucleic;

/* What may move, as residue ranges: "A:262-269", "A:17", "262-269" (where there
 * is one chain), "A". Each may be NULL. Flexible and rigid are not given both;
 * neither, or flexible: all (one word): all is flexible. Fixed ranges are rigid
 * and stay in space; where chains are to keep their relation and none is named,
 * the largest rigid unit of each does; a chain without one moves as a whole.
 * Mobile: names of chains that also move as a whole. */
typedef struct {
    const tsr_strings *flexible, *rigid, *fixed, *mobile;
    const char *file; /* for messages; may be NULL */
    int is_frozen;    /* 1: nothing is to move, the rest is not looked at */
    const tsr_nucleic *nucleic; /* nucleotides with torsions of their own,
                                   behind the protein; or NULL */
    int is_placed; /* 1: where the molecule is matters, so that all of its
                      chains may move as a whole; one chain alone does,
                      unless parts of it are fixed */
} tsr_flexibility;

/* From a structure whose residues all have a backbone
 * (tsr_structure_read_any); a missing O or CB is built with ideal geometry, an
 * incomplete side chain put at the prior's mean, and `log` told.
 * A range that cannot be, with what is wrong with it: TSR_E_CONFIG. The first
 * conformation comes with it; the caller frees both. */
tsr_status tsr_topology_from_structure(const tsr_structure *structure,
                                       tsr_body_model body_model,
                                       tsr_flexibility flexibility,
                                       const tsr_prior_table *prior,
                                       tsr_log *log, tsr_topology **out,
                                       tsr_conformation **first, tsr_err *err);

/* From a one-letter sequence: chain A from 1, extended, ideal geometry (Engh &
 * Huber 1991), trans peptides, side chains at the prior's mean. Unknown
 * letters: TSR_E_CONFIG. */
tsr_status tsr_topology_from_sequence(const char *sequence,
                                      tsr_body_model body_model,
                                      tsr_flexibility flexibility,
                                      const tsr_prior_table *prior,
                                      tsr_topology **out,
                                      tsr_conformation **first, tsr_err *err);

void tsr_topology_free(tsr_topology *topology);

/* Sets what may move, and what follows from that, of a topology whose residues,
 * links, bodies and CB are set; private to the room. The conformation tells
 * omega. log (may be NULL) hears what was decided for complexes. */
tsr_status tsr_freedom_set(tsr_topology *topology,
                           const tsr_conformation *conformation,
                           const tsr_flexibility *flexibility, tsr_log *log,
                           tsr_err *err);

/* A range as text: "A:262-269", "A:17", "262-269", "A:-6-8", "A". */
typedef struct {
    char chain[8]; /* "": not named */
    int has_number;
    long first, last; /* without numbers all that there are */
} tsr_range;

/* 0: the text is none. */
int tsr_range_read(const char *text, tsr_range *range);

/* Sets mark[i] = 1 for each residue that a range names: "A:262-269", "A:17",
 * "262-269", "A:-6-8", "A". It takes the residues of the chain whose numbers
 * lie in it, and may not reach beyond the chain's first and last number. The
 * chain may be left out where there is one. Errors: TSR_E_CONFIG, naming text
 * and remedy. */
tsr_status tsr_range_mark(const char *text, int n_residue,
                          const tsr_residue *residue, int *mark, tsr_err *err);

/* "A, B, C": the chains there are, into text, which it returns. */
enum { TSR_CHAINS_SIZE = 256 };
const char *tsr_range_chains(int n_residue, const tsr_residue *residue,
                             char text[TSR_CHAINS_SIZE]);

/* ---- what it is ---- */

/* "LEU", "DT". */
const char *tsr_residue_name(const tsr_residue *residue);

/* Amino acids and nucleotides. */
int tsr_topology_n_monomer(const tsr_topology *topology);

/* One letter per residue, chains separated by '/'; of nucleotides the last of
 * their names, small. Caller frees. */
char *tsr_topology_sequence(const tsr_topology *topology);

/* An upper bound of the largest distance between two bodies that any values of
 * the free torsions can reach, Angstrom; free side chains up to 3 Angstrom
 * farther out than in `first`. Infinite where a chain moves as a whole. NaN:
 * out of memory. */
double tsr_topology_reach(const tsr_topology *topology,
                          const tsr_conformation *first);

/* ---- conformations ---- */

tsr_conformation *tsr_conformation_new(const tsr_topology *topology);
void tsr_conformation_free(tsr_conformation *conformation);

/* Copies residues first..first+count-1, bodies too. */
void tsr_conformation_copy(const tsr_topology *topology, tsr_conformation *to,
                           const tsr_conformation *from, int first, int count);

/* Body positions of residues first..first+count-1 from their atoms. */
void tsr_conformation_place_bodies(const tsr_topology *topology,
                                   tsr_conformation *conformation, int first,
                                   int count);

/* CB of a residue, Angstrom. */
void tsr_conformation_cb(const tsr_topology *topology,
                         const tsr_conformation *conformation, int residue,
                         double cb[3]);

/* Of phi the atom of the residue before that it begins with, of psi that of the
 * residue after that it ends with. */
static inline int tsr_residue_atom_before(const tsr_residue *residue)
{
    return residue->link == TSR_LINK_NONE ? TSR_C : TSR_CA;
}

static inline int tsr_residue_atom_after(const tsr_residue *residue)
{
    return residue->link == TSR_LINK_NONE ? TSR_N : TSR_CA;
}

/* Turns the base of sugar link `residue` from where it is in the file to its
 * chi, as a motion in the frame of N-CA-C. */
void tsr_conformation_base(const tsr_topology *topology,
                           const tsr_conformation *conformation, int residue,
                           tsr_motion *motion);

/* Torsion of a residue, rad; NaN where a neighbour is missing. */
double tsr_conformation_torsion(const tsr_topology *topology,
                                const tsr_conformation *conformation,
                                int residue, tsr_torsion_kind kind);

/* Moves residues first..last as one, bodies too; nothing where last < first. */
void tsr_conformation_move(const tsr_topology *topology,
                           tsr_conformation *conformation, int first, int last,
                           const tsr_motion *motion);

/* Turns a free torsion by angle_rad (it grows by that), bodies included. */
void tsr_conformation_turn(const tsr_topology *topology,
                           tsr_conformation *conformation,
                           const tsr_torsion *torsion, double angle_rad);

/* Turns phi and psi of residues first..last of one chain by change_rad
 * [last - first + 1][2]; what lies beyond them on that side moves as one. */
void tsr_conformation_turn_many(const tsr_topology *topology,
                                tsr_conformation *conformation, int first,
                                int last, int c_side,
                                const double (*change_rad)[2]);

/* Radius of gyration over the bodies, mass-weighted, with each body's own mean
 * square radius rg2 [n_type] (Angstrom squared; NULL: points). Angstrom. */
double tsr_conformation_rg(const tsr_topology *topology,
                           const tsr_conformation *conformation,
                           const double *rg2);

/* The atoms that a conformation is written with, residue by residue: N, CA, C,
 * O, CB (not GLY) and SC, the side-chain centre (neither GLY nor ALA); then
 * the atoms of guests.
 * xyz [tsr_topology_n_atom][3] out, Angstrom. */
int tsr_topology_n_atom(const tsr_topology *topology);
void tsr_conformation_atoms(const tsr_topology *topology,
                            const tsr_conformation *conformation,
                            double (*xyz)[3]);

/* The same of one residue, without guests. Returns how many. */
enum { TSR_MODEL_ATOMS = 6 };
int tsr_conformation_residue_atoms(const tsr_topology *topology,
                                   const tsr_conformation *conformation,
                                   int residue, double xyz[TSR_MODEL_ATOMS][3]);

/* The conformation as model.pdb has it: N, CA, C, O, CB and, as a pseudo atom
 * SC, the side-chain centre; guests last. Caller frees. NULL: out of memory. */
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

/* Places d so that |cd| = bond, angle bcd, torsion abcd (Parsons et al. 2005,
 * natural extension reference frame). */
void tsr_place_atom(double d[3], const double a[3], const double b[3],
                    const double c[3], double bond_ang, double angle_rad,
                    double torsion_rad);

/* Ideal position of CB from N, CA, C. */
void tsr_place_cb(double cb[3], const double n[3], const double ca[3],
                  const double c[3]);

/* ---- a proposal: which residues moved, how rigidly, and its Hastings
 * correction ---- */

enum { TSR_MAX_SPAN = 8 };

/* Residues first..first+count-1 moved. group > 0: as one rigid body with the
 * other spans of that number; 0: their inner distances may have changed. */
typedef struct {
    int first, count, group;
} tsr_span;

/* Spans ascend and do not overlap. The proposed coordinates stand in a second
 * conformation, equal to the current one outside the spans. No span: nothing
 * could be proposed (no closure was found, say); the step is a rejection. */
typedef struct {
    int target; /* which of the move's own targets: a torsion, a window */
    int n_span;
    tsr_span span[TSR_MAX_SPAN];
    double log_ratio; /* log q(old | new) - log q(new | old), nat, densities in
                         the coordinates of the prior (prior/prior.h) */
} tsr_proposal;

/* Takes chains along that ride on what was moved: places them in
 * `proposed`, and adds their spans. The way back does the opposite, and the
 * torsions of these chains stay, so that the correction does. */
void tsr_proposal_carry(const tsr_topology *topology,
                        const tsr_conformation *current,
                        tsr_conformation *proposed, tsr_proposal *proposal);

#endif

/* P(X): the prior density of a conformation (docs/design.md, section 1).
 *
 *     log P(X) = sum over flexible residues   log f_class(phi_i, psi_i)
 *                                           + log N(tau_i; mean, sd)
 *                                           + log g_type(s_i)
 *              - sum over pairs of bodies     E_tu(r)         (unnormalised)
 *              - sum over restraints          R(d)            (unnormalised)
 *
 *     E_tu(r) = ((d_tu - r) / w)^2 / 2 for r < d_tu, else 0;
 *               infinite if that exceeds `clash_limit`
 *     R(d)    = ((d - upper) / w)^2 / 2 above upper, ((lower - d) / w)^2 / 2
 *               below lower, 0 between
 *
 * and P(X) = 0 if two bodies are farther apart than d_limit, or if mobile
 * chains that have to be in contact are not. P(X) is a density
 * in the torsions phi, psi and the bond angles tau = N-CA-C (rad), the
 * side-chain centres s in the frame of N-CA-C (Angstrom) and, for chains that
 * move as a whole, their position (Angstrom) and orientation (uniform). Bond
 * lengths, other angles and omega are those of the first conformation. In a
 * link of a nucleotide tau is constant, and s is the torsion chi of the base.
 *
 * f and g are mixtures (prior_table.h). A residue at a chain end or break lacks
 * phi or psi, and then has the marginal density of the other torsion. A pair of
 * bodies counts if they are at least 3 residues apart or in different chains.
 * Pairs inside one rigid unit (topology.h) never count, since no move changes
 * them.
 *
 * Each term is clipped to +-2^20 nat and rounded to an integer in units of
 * 2^-32 nat, so that sums are exact, whatever their order. */
#ifndef TSR_PRIOR_PRIOR_H
#define TSR_PRIOR_PRIOR_H

#include "core/field.h"
#include "core/pool.h"
#include "core/status.h"
#include "molecule/guest.h"
#include "molecule/prior_table.h"
#include "molecule/topology.h"
#include "prior/clash.h"

/* ---- restraints ----
 *
 * Distances between two residues that are known from other experiments, such as
 * cross-links or FRET: R(d), flat between lower and upper, harmonic outside. */

/* A restraint in a configuration. */
typedef struct {
    tsr_strings between; /* two residues, as "A:17" */
    int at;              /* 0: CA, 1: side-chain centres */
    double distance[2];  /* lower, upper; Angstrom */
    double width;        /* w, Angstrom */
} tsr_restraint_options;

/* A restraint on a topology. */
typedef struct {
    int residue[2];
    int at;
    double lower, upper, inverse_width;
} tsr_restraint;

/* Resolves the names of the residues. Errors: TSR_E_CONFIG (not two residues,
 * unknown residues, or residues whose distance cannot change), TSR_E_NOMEM. */
tsr_status tsr_restraint_make(const tsr_topology *topology,
                              const tsr_restraint_options *options,
                              tsr_restraint *restraint, tsr_err *err);

/* The distance between the two CA, or between the side-chain centres (CB for
 * alanine, CA for glycine), Angstrom. In a nucleotide both are the CA of its
 * first link, which is P if the nucleotide has P. */
double tsr_restraint_distance(const tsr_topology *topology,
                              const tsr_restraint *restraint,
                              const tsr_conformation *conformation);

/* -R(d), nat. */
double tsr_restraint_log(const tsr_restraint *restraint, double distance_ang);

/* ---- chains in contact ----
 *
 * With structure.contacts = n > 0, P(X) = 0 unless each mobile chain has n or
 * more contacts, pairs of bodies within TSR_CONTACT_ANG, with chains of other
 * parts of the complex (tsr_topology_part). All placements in contact are
 * equally probable before excluded volume and restraints. */

/* 1: each mobile chain is in contact, or no contacts are required. Cost:
 * O(bodies), and O(bodies^2) between chains that are near each other. */
int tsr_prior_is_in_contact(const tsr_topology *topology,
                            const tsr_conformation *conformation);

/* ---- the prior ---- */

/* Options of the prior in a configuration. */
typedef struct {
    int clash;          /* TSR_CLASH_SOFT or TSR_CLASH_NONE */
    double softness;    /* w, Angstrom */
    double clash_limit; /* nat, for one pair */
    int relax; /* 1: a start with forbidden pairs is relaxed, 0: refused */
    tsr_list restraints; /* of tsr_restraint_options */
} tsr_prior_options;

enum { TSR_CLASH_SOFT, TSR_CLASH_NONE };
extern const tsr_field tsr_prior_fields[];

/* The prior of a molecule. Members are read only by src/prior, src/surrogate
 * and src/moves/place.c. */
typedef struct {
    tsr_pool pool;
    const tsr_topology *topology;
    tsr_torsion_density *torsion[TSR_N_RAMA + TSR_N_NUCLEIC_CLASS];
    tsr_side_density *side[TSR_N_AMINO]; /* NULL: no side chain */
    tsr_angle_gaussian angle[TSR_N_AMINO];
    tsr_clash clash;
    double d_limit_ang; /* 0: no limit */
    int n_restraint;
    tsr_restraint *restraint; /* [n_restraint] */
} tsr_prior;

typedef struct tsr_prior_state tsr_prior_state;

/* Makes the prior that all chains share; borrows topology and table.
 * d_limit_ang: P(X) = 0 if two bodies are farther apart; 0: no limit. Errors:
 * TSR_E_NOMEM, TSR_E_CONFIG (a restraint, as tsr_restraint_make). */
tsr_status tsr_prior_new(const tsr_topology *topology,
                         const tsr_prior_table *table,
                         const tsr_prior_options *options, double d_limit_ang,
                         tsr_prior **out, tsr_err *err);
void tsr_prior_free(tsr_prior *prior);

/* ---- factors of the prior, for moves that draw from them ---- */

/* Log density of the torsions of a flexible residue, nat. A torsion is given as
 * {cos, sin}. A torsion that the residue does not have (topology.h, has_phi and
 * has_psi) is ignored. If the residue has neither, the result is 0. */
double tsr_prior_torsion_log(const tsr_prior *prior, int residue,
                             const double phi_cos_sin[2],
                             const double psi_cos_sin[2]);
/* The same, with torsions measured in a conformation. */
double tsr_prior_torsion_log_of(const tsr_prior *prior,
                                const tsr_conformation *conformation,
                                int residue);
/* Draws both torsions of a residue from their density, rad. */
void tsr_prior_torsion_draw(const tsr_prior *prior, int residue, gsl_rng *rng,
                            double *phi_rad, double *psi_rad);

/* Log density of a bond angle N-CA-C, nat per rad. */
double tsr_prior_angle_log(const tsr_prior *prior, int residue, double tau_rad);

/* Log density of a side-chain centre, nat per Angstrom^3, or of chi = side[0]
 * of a sugar link, nat per rad. Only for residues with a side chain or base. */
double tsr_prior_side_log(const tsr_prior *prior, int residue,
                          const double side[3]);
/* Draws from this density: a centre, or chi in side[0]. */
void tsr_prior_side_draw(const tsr_prior *prior, int residue, gsl_rng *rng,
                         double side[3]);

/* ---- the complete prior ---- */

/* Log density summed over all pairs of bodies without any list, as a reference
 * for tests; -inf where the density is 0. */
double tsr_prior_log_reference(const tsr_prior *prior,
                               const tsr_conformation *conformation);

/* Returns the number of forbidden pairs. worst [160] out: describes the pair
 * with the highest energy; unchanged if no pair is forbidden. */
int tsr_prior_clashes(const tsr_prior *prior,
                      const tsr_conformation *conformation, char worst[160]);

/* Makes the running log density of a chain, with its contact lists. The
 * conformation must have P(X) > 0. NULL: out of memory. */
tsr_prior_state *tsr_prior_state_new(const tsr_prior *prior,
                                     const tsr_conformation *conformation);
void tsr_prior_state_free(tsr_prior_state *state);
/* Log density of the chain's current conformation, nat, unnormalised. */
double tsr_prior_state_log(const tsr_prior_state *state);

/* Terms of the log density, nat. They add up to tsr_prior_state_log. */
enum {
    TSR_TERM_TORSION,
    TSR_TERM_ANGLE,
    TSR_TERM_SIDE,
    TSR_TERM_CLASH,
    TSR_TERM_RESTRAINT,
    TSR_N_TERM
};
void tsr_prior_state_terms(const tsr_prior_state *state,
                           double term[TSR_N_TERM]);

/* Estimated time spent on the excluded volume of all proposals since the state
 * was made, seconds. One proposal in 64 is timed. */
double tsr_prior_state_clash_seconds(const tsr_prior_state *state);

/* Returns log P(proposed) - log P(current), nat; -infinity if P(proposed) = 0.
 * Cost: about O(moved bodies). */
double tsr_prior_propose(tsr_prior_state *state,
                         const tsr_conformation *current,
                         const tsr_conformation *proposed,
                         const tsr_proposal *proposal);

/* Accepts the latest proposal, which must have P > 0. */
void tsr_prior_accept(tsr_prior_state *state, const tsr_conformation *proposed,
                      const tsr_proposal *proposal);

/* mixture out: density of (phi, psi) for a class of nucleotide links
 * (molecule/guest.h). If the class has only one torsion, the other angle is
 * uniform. */
void tsr_nucleotide_mixture(tsr_nucleic_class class,
                            tsr_torsion_mixture *mixture);

#endif

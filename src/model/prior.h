/* P(X): the prior density of a conformation (DESIGN 1 and 5).
 *
 *     log P(X) = sum over free torsions      -log 2 pi
 *              + sum over free side chains   log N(s_i; mean_t, cov_t)
 *              - sum over pairs of bodies    E_tu(r)          (unnormalised)
 *
 *     E_tu(r) = ((d_tu - r) / w)^2 / 2 for r < d_tu, else 0
 *
 * in the coordinates torsion (rad) and side-chain centre in the frame of N-CA-C
 * (Angstrom). Pairs count when at least 3 residues apart or in different
 * chains. d: contact distances of prior_table.h; w: softness.
 *
 * The sum is kept in units of 2^-32 nat as an integer: sums are then exact,
 * whatever their order. Pairs inside a rigid group are not looked at when it
 * moves, though their distances change in the last bits, so that after long
 * runs the running value is off by some units (40 after a million moves of a
 * fully flexible lysozyme); it is part of a chain's state. */
#ifndef TSR_MODEL_PRIOR_H
#define TSR_MODEL_PRIOR_H

#include "core/field.h"
#include "core/status.h"
#include "model/prior_table.h"
#include "model/proposal.h"
#include "model/topology.h"

#include <stdint.h>

typedef struct {
    int clash;       /* index: soft, none */
    double softness; /* w, Angstrom */
} tsr_prior_options;

enum { TSR_CLASH_SOFT, TSR_CLASH_NONE };
extern const tsr_field tsr_prior_fields[];

typedef struct tsr_prior tsr_prior;
typedef struct tsr_prior_state tsr_prior_state;

/* Shared by all chains; borrows topology and table. NULL: out of memory. */
tsr_prior *tsr_prior_new(const tsr_topology *topology,
                         const tsr_prior_table *table,
                         const tsr_prior_options *options);
void tsr_prior_free(tsr_prior *prior);

/* Log density of one side-chain centre, nat. */
double tsr_prior_side_log(const tsr_prior *prior, tsr_amino amino,
                          const double side[3]);

/* out = mean + a (side - mean) + b L z, where L L^T is the covariance: with
 * a^2 + b^2 = 1 and z standard normal this keeps the Gaussian. */
void tsr_prior_side_mix(const tsr_prior *prior, tsr_amino amino, double a,
                        const double side[3], double b, const double z[3],
                        double out[3]);

/* The whole log density, pair by pair over all bodies: the reference. */
double tsr_prior_log_reference(const tsr_prior *prior,
                               const tsr_conformation *conformation);

/* A chain's running value with its cell list. NULL: out of memory. */
tsr_prior_state *tsr_prior_state_new(const tsr_prior *prior,
                                     const tsr_conformation *conformation);
void tsr_prior_state_free(tsr_prior_state *state);
double tsr_prior_state_log(const tsr_prior_state *state);

/* log P(proposed) - log P(current), nat. Cost: O(moved bodies). */
double tsr_prior_propose(tsr_prior_state *state,
                         const tsr_conformation *current,
                         const tsr_conformation *proposed,
                         const tsr_proposal *proposal);

/* Makes the proposal just evaluated the state. */
void tsr_prior_accept(tsr_prior_state *state, const tsr_conformation *proposed,
                      const tsr_proposal *proposal);

#endif

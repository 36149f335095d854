/* What the files of a chain share: its state. */
#ifndef TSR_SAMPLER_CHAIN_STATE_H
#define TSR_SAMPLER_CHAIN_STATE_H

#include "sampler/chain.h"

/* One of the structures whose weighted mean meets the data. */
typedef struct {
    tsr_conformation *current, *proposed; /* equal between steps */
    tsr_prior_state *prior;
    double *profile; /* [n_pair][n_q] as the engine gave it */
    int is_restored; /* the profile is not of `current` */
    double weight;
} tsr_conformer;

struct tsr_chain {
    const tsr_target *target;
    int number, system; /* of the engine: the first state's */
    gsl_rng *rng;
    int n_state;
    tsr_conformer *state; /* [n_state] */
    double log_weight_step;
    long n_weight_learnt;
    void *move[TSR_N_MOVE];
    tsr_mix mix;

    double beta;                       /* 1 / T */
    double *partial;                   /* [n_pair][n_q] the mean over states */
    double *profile;                   /* [n_q] of it with S(q), at c1 and c2 */
    double *new_partial, *new_profile; /* of a proposal */
    double log_lik;
    tsr_fit *fit, *new_fit; /* [n_data] */
    tsr_nuisance *nuisance;

    /* the proposal in flight */
    int kind, which; /* move, state */
    double log_prior_change;
    tsr_proposal proposal;
    tsr_body_range range[TSR_MAX_SPAN];

    tsr_chain_counts counts, since_draw;
    double changed; /* sum over proposals since the last draw, */
    long n_asked;   /* those that reached the engine */

    double clash_seconds; /* of prior states that a refresh replaced */
};

/* The mean of the partial profiles over states, with state `which` at others
 * (-1: none). */
void tsr_chain_mean(const tsr_chain *chain, int which, const double *other,
                    double *out);

/* Steps on c1 and c2, where they are inferred. */
tsr_status tsr_chain_move_contrast(tsr_chain *chain, int warm, tsr_err *err);

/* Refuses a profile [n_pair][n_q] of the engine that is farther from what it
 * must be than rounding explains: TSR_E_DEVICE, with q and values. The texts
 * say where each is from. */
tsr_status tsr_chain_compare(const tsr_engine *engine, const double *had,
                             const char *had_from, const double *right,
                             const char *right_from, tsr_err *err);

/* Puts the number of the chain, and of its replica, before a message. */
tsr_status tsr_chain_blame(const tsr_chain *chain, tsr_status status,
                           tsr_err *err);

/* The fit of a proposal becomes the chain's, with its profile at c1 and c2. */
void tsr_chain_take_fit(tsr_chain *chain, double log_lik);

#endif

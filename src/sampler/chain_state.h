/* What the files of a chain share: its state. */
#ifndef TSR_SAMPLER_CHAIN_STATE_H
#define TSR_SAMPLER_CHAIN_STATE_H

#include "sampler/chain.h"

/* One of the structures whose weighted mean meets the data. */
typedef struct {
    tsr_conformation *current, *proposed; /* equal between steps */
    tsr_prior_state *prior;
    double *profile; /* [n_q] as the engine gave it */
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

    double beta;     /* 1 / T */
    double *profile; /* [n_q] the mean over states, with S(q) */
    double *mean;    /* [n_q] of a proposal */
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
};

/* The mean profile over states, with state `which` at another one (-1: none).
 */
void tsr_chain_mean(const tsr_chain *chain, int which, const double *other,
                    double *out);

#endif

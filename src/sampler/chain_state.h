/* What the files of a chain share: its state. */
#ifndef TSR_SAMPLER_CHAIN_STATE_H
#define TSR_SAMPLER_CHAIN_STATE_H

#include "sampler/chain.h"

/* One of the structures whose weighted mean meets the data. */
typedef struct {
    tsr_conformation *current, *proposed; /* equal between steps */
    tsr_prior_state *prior;
    double *profile;       /* [n_pair][n_q] as the engine gave it */
    double (*particle)[3]; /* scratch for tsr_chain_places; NULL: bodies */
    int is_restored;       /* the profile is not of `current` */
} tsr_conformer;

struct tsr_chain {
    const tsr_target *target;
    int number, system; /* of the engine: the first state's */
    gsl_rng *rng;
    int n_state;
    tsr_conformer *state; /* [n_state] */
    void *move[TSR_N_MOVE];
    tsr_mix mix;
    long walk_period, redraw_period; /* steps from one to the next; 0: none */

    double beta; /* 1 / T */
    tsr_parameters *parameters;
    tsr_point now, trial; /* the present state, a proposal */

    /* the proposal in flight */
    int kind, which; /* move, state */
    double log_prior_change;
    const float *walked; /* of a walk: its result and counts, the walker's */
    const int32_t (*walk_count)[2];
    double *others; /* [n_pair][n_q] scratch; NULL where nothing walks */
    tsr_proposal proposal;
    tsr_body_range range[TSR_MAX_SPAN];

    tsr_chain_counts counts, since_draw;
    double changed; /* sum over proposals since the last draw, */
    long n_asked;   /* those that reached the engine */

    double clash_seconds; /* of prior states that a refresh replaced */
};

/* What the engine is told of residues first..first+count-1 of a state's
 * conformation: from what number on, how many, and where they are, which holds
 * until it is asked for again. */
tsr_body_range tsr_chain_places(const tsr_chain *chain, int state,
                                const tsr_conformation *conformation, int first,
                                int count);

/* The mean of the partial profiles over the states into to->partial, by the
 * weights of to->theta, with state `which` at another profile (-1: none). */
void tsr_chain_mean(const tsr_chain *chain, int which, const double *other,
                    tsr_point *to);

/* Likelihood, profile and fits of `to` from the mean partial profiles, with
 * state `which` (-1: none) as it is proposed; what terms propose themselves is
 * drawn. */
tsr_status tsr_chain_evaluate(tsr_chain *chain, int which,
                              const double *partial, tsr_point *to,
                              tsr_err *err);

/* The same with nothing drawn, of the present state. */
tsr_status tsr_chain_reevaluate(tsr_chain *chain, tsr_err *err);

/* Asks the prior about the proposal in flight, which is counted. Returns 1
 * where the engine has to be asked, as `ask` then says. */
int tsr_chain_ask(tsr_chain *chain, tsr_body_proposal *ask);

/* Room for walks, where the chain has that move. Errors: TSR_E_NOMEM. */
tsr_status tsr_chain_open_surrogate(tsr_chain *chain, tsr_err *err);

/* Warm-up, once a walk's end is settled: from what the device counted, and from
 * what its curve of where the chain is now lacks of the engine's. */
void tsr_chain_learn_surrogate(tsr_chain *chain, int accepted);

/* One step on each block of parameters. */
tsr_status tsr_chain_step_parameters(tsr_chain *chain, int warm, tsr_err *err);

/* Refuses a profile [n_pair][n_q] of the engine that is farther from what it
 * must be than rounding explains: TSR_E_DEVICE, with q and values. The texts
 * say where each is from. */
tsr_status tsr_chain_compare(const tsr_engine *engine, const double *had,
                             const char *had_from, const double *right,
                             const char *right_from, tsr_err *err);

/* Puts the number of the chain, and of its replica, before a message. */
tsr_status tsr_chain_blame(const tsr_chain *chain, tsr_status status,
                           tsr_err *err);

#endif

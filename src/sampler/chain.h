/* One Markov chain: its state, its random stream, a Metropolis-Hastings step in
 * two halves, so that the device can work between them. */
#ifndef TSR_SAMPLER_CHAIN_H
#define TSR_SAMPLER_CHAIN_H

#include "core/archive.h"
#include "core/random.h"
#include "engine/engine.h"
#include "likelihood/likelihood.h"
#include "moves/move.h"
#include "prior/prior.h"
#include "sampler/parameters.h"
#include "scattering/debye.h"

#include <stdint.h>

/* An engine and how many of a run's chains it computes. */
typedef struct {
    tsr_engine *engine;         /* NULL: the prior alone */
    void *launcher[TSR_N_MOVE]; /* of moves with a launch; NULL: not made */
    int n_chain;
} tsr_engine_group;

/* Frees the engine and the launchers. */
void tsr_engine_group_clear(tsr_engine_group *share);

typedef struct tsr_all_atom_model tsr_all_atom_model;

/* What all chains share; everything is borrowed. */
typedef struct {
    const tsr_topology *topology;
    const tsr_conformation *first; /* where every chain starts */
    const tsr_prior *prior;
    const tsr_likelihood *likelihood; /* NULL: the prior alone is sampled */
    int n_share;                      /* 0 where likelihood is NULL */
    const tsr_engine_group *share;    /* [n_share] chains in order: the first
                                         share's, then the next's */
    const double *rg2;                /* [n_type] Angstrom squared, or NULL */
    const void *const *move_options;  /* [TSR_N_MOVE], NULL: not used */
    uint64_t seed;
    int n_state;       /* structures whose mean meets the data; 0 counts as 1 */
    int infer_weights; /* 0: they weigh the same */
    int n_temp;        /* temperatures of a chain; 0 counts as 1 */
    double t_max;      /* the highest */
    long swap_every;   /* steps between exchanges; 0 counts as 1 */
    int n_start;       /* 0: all states start from `first` */
    tsr_conformation *const *start; /* [n_start] of the states, in turn */
    int n_group; /* 0: all chains start there; else groups of chains, of
                    chains_each, start from group_start [n_group][n_state] */
    int chains_each;
    tsr_conformation *const *group_start;
    double *group_log_z; /* [n_group] sampler/sampler.h; NaN: not known */
    int is_frozen;       /* 1: no moves, structures stay where they start */
    const tsr_parameter *contrast; /* c1 and c2; NULL: there are none */
    const tsr_all_atom_model
        *all_atom; /* whose draws are stored (fine.h); NULL: it
              is those at temperature 1 that are */
} tsr_target;

static inline int tsr_target_n_state(const tsr_target *target)
{
    return target->n_state > 0 ? target->n_state : 1;
}

static inline int tsr_target_n_temp(const tsr_target *target)
{
    return target->n_temp > 0 ? target->n_temp : 1;
}

/* 1: chains have a move each proposal of which is many turns. */
int tsr_target_turns_much(const tsr_target *target);

/* Which move a chain makes next, by the configured weights, and how much of the
 * molecule a proposal changes.
 *
 * The weights stay. A mix that was learnt from how much each move changes the
 * curve for its cost ended with side chains and few pivots, and the slowest
 * variables, the orientations of domains, moved half as far. */
typedef struct {
    double end[TSR_N_MOVE]; /* cumulative shares, the last is 1 */
} tsr_mix;

/* weight [TSR_N_MOVE], not all 0. */
void tsr_mix_set(tsr_mix *mix, const double *weight);

/* u in [0, 1). */
int tsr_mix_choose(const tsr_mix *mix, double u);

/* Share of all distances between bodies that a proposal changes. */
double tsr_mix_changed(const tsr_topology *topology,
                       const tsr_proposal *proposal);

/* Counters since the last tsr_chain_counts_reset. */
typedef struct {
    long proposed[TSR_N_MOVE], accepted[TSR_N_MOVE];
    /* those that the engine was asked for, and the sum over them of the share
     * of distances that they changed */
    long asked[TSR_N_MOVE];
    double changed[TSR_N_MOVE];
} tsr_chain_counts;

/* One of the structures whose weighted mean meets the data. */
typedef struct {
    tsr_conformation *current, *proposed; /* equal between steps */
    tsr_prior_state *prior;
    double *profile;       /* [n_pair][n_q] as the engine gave it */
    double (*particle)[3]; /* scratch for tsr_chain_places; NULL: bodies */
    int is_restored;       /* the profile is not of `current` */
} tsr_conformer;

/* Members are for src/sampler and tests alone. */
typedef struct tsr_chain {
    tsr_pool pool; /* memory of it, and of what its moves have learnt */
    const tsr_target *target;
    int number, system; /* of the engine: the first state's */
    gsl_rng *rng;
    int n_state;
    tsr_conformer *state; /* [n_state] */
    void *move[TSR_N_MOVE];
    tsr_mix mix;
    long period[TSR_N_MOVE]; /* of moves with a launch, steps from one to the
                                next; 0: none is made */

    double beta; /* 1 / T */
    tsr_parameters *parameters;
    tsr_point now, trial; /* the present state, a proposal */

    /* the proposal in flight */
    int kind, which; /* move, state */
    double log_prior_change;
    const void *workspace; /* of a launch: where its result is */
    int job;
    tsr_move_along along;
    double *others; /* [n_pair][n_q] scratch; NULL: nothing is launched */
    tsr_proposal proposal;
    tsr_body_range range[TSR_MAX_SPAN];

    tsr_chain_counts counts, since_draw;
    double changed; /* sum over proposals since the last draw, */
    long n_asked;   /* those that reached the engine */

    double clash_seconds; /* of prior states that a refresh replaced */
} tsr_chain;

/* One replica of a chain: number n_temp * chain + replica, which names its
 * random stream as well and counts over all engines. It is at temperature 1
 * until tsr_chain_heat says otherwise. */
tsr_status tsr_chain_new(const tsr_target *target, int number, tsr_chain **out,
                         tsr_err *err);
void tsr_chain_free(tsr_chain *chain);

/* Computes the first profile and likelihood; before the first step. The batch
 * is one of the chain's engine. */
tsr_status tsr_chain_start(tsr_chain *chain, tsr_batch *batch, tsr_err *err);

/* The engine's system that the proposal in flight is of. */
int tsr_chain_system(const tsr_chain *chain);

/* Draws a proposal. Returns 1 where the engine has to be asked; `ask` is then
 * filled and stays valid until tsr_chain_decide. */
int tsr_chain_propose(tsr_chain *chain, tsr_body_proposal *ask);

/* A move with a launch, instead of tsr_chain_propose: the chain's job in a
 * thread's room; and, once the room has run, its end as a proposal, `needed` as
 * tsr_chain_propose returns it. The room stays until tsr_chain_decide. */
tsr_status tsr_chain_launch_begin(tsr_chain *chain, int move, void *workspace,
                                  int job, tsr_err *err);
tsr_status tsr_chain_launch_end(tsr_chain *chain, int move,
                                const void *workspace, int job,
                                tsr_body_proposal *ask, int *needed,
                                tsr_err *err);

/* The move with a launch that all chains make at a step of the run; -1: none.
 */
int tsr_chain_launch_at(const tsr_chain *chain, long step);

/* Accepts or rejects, then takes a step on each block of parameters. partial
 * [n_pair][n_q] is the engine's answer; NULL where it was not asked. *accepted
 * says what to tell the engine. warm: the step sizes learn. */
tsr_status tsr_chain_decide(tsr_chain *chain, const double *partial, int warm,
                            int *accepted, tsr_err *err);

/* 1 / T: the power of the likelihood. */
void tsr_chain_heat(tsr_chain *chain, double beta);

/* What belongs to a temperature (step sizes of the moves and the weights, the
 * counters) changes places between two replicas. */
void tsr_chain_exchange(tsr_chain *a, tsr_chain *b);

/* Saves or restores what cannot be made again, between two steps.
 * tsr_chain_refresh comes after it, in the run that goes on as in one that was
 * restored, so that both have the same bits. */
void tsr_chain_archive(tsr_chain *chain, tsr_archive *archive);

/* What the moves of n chains at one temperature have learnt becomes the mean of
 * it, in all of them; where it is alike it stays to the bit. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_chain_average_steps(tsr_chain *const *chain, int n,
                                   tsr_err *err);

/* The structures and parameters of `from` become those of `to`, which keeps its
 * random stream and what it has learnt. tsr_chain_refresh has to follow. */
void tsr_chain_copy(tsr_chain *to, const tsr_chain *from);

/* The chain becomes what was saved of another, with what that had learnt; its
 * random stream stays. tsr_chain_refresh has to follow. */
void tsr_chain_become(tsr_chain *chain, tsr_archive *saved);

/* Prior, profiles and likelihood afresh from the conformations: running sums of
 * differences begin again. Between two steps; draws nothing. Errors: those of
 * tsr_batch_set and tsr_likelihood_evaluate, TSR_E_NOMEM; TSR_E_DEVICE where a
 * running profile was farther from the fresh one than rounding takes it. */
tsr_status tsr_chain_refresh(tsr_chain *chain, tsr_batch *batch, tsr_err *err);

/* The engine's answer to the proposal in flight against a sum in double
 * precision; draws nothing. Errors: TSR_E_DEVICE where it is wrong, those of
 * tsr_debye_reference. */
tsr_status tsr_chain_audit(tsr_chain *chain, const tsr_engine *engine,
                           const double *partial,
                           const tsr_debye_progress *progress, tsr_err *err);

double tsr_chain_log_lik(const tsr_chain *chain);

/* What a stored draw is made of. */
typedef struct {
    double log_prior, log_lik, lp;
    double beta; /* 1 / T of the likelihood */
    double rg_ang, d_max_ang;
    const tsr_point *point;
    const tsr_parameters *parameters;
    int n_state; /* in the order of their Rg */
    double state_rg_ang[TSR_MAX_STATES], state_weight[TSR_MAX_STATES];
    const tsr_conformation *state[TSR_MAX_STATES];
    const tsr_conformation *conformation; /* the first of them */
    double term[TSR_N_TERM];              /* of log_prior */
    const tsr_chain_counts *since_draw;   /* proposals since the last draw */
    double changed; /* mean share of distances that proposals which the engine
                       was asked for changed; NaN: there were none */
    gsl_rng *rng;   /* the chain's, for draws of scale and so on */
} tsr_chain_view;

void tsr_chain_view_get(const tsr_chain *chain, tsr_chain_view *view);

/* After a draw of its chain was stored: what is counted between two draws
 * begins again. Of all replicas. */
void tsr_chain_draw_done(tsr_chain *chain);

const tsr_chain_counts *tsr_chain_counts_get(const tsr_chain *chain);
void tsr_chain_counts_reset(tsr_chain *chain);

/* Time in the excluded volume of proposals so far, s. */
double tsr_chain_clash_seconds(const tsr_chain *chain);

/* tsr_likelihood_chi2 of where it is. */
double tsr_chain_chi2(const tsr_chain *chain);

/* One step on each block of parameters; of tsr_chain_decide, and of tests. */
tsr_status tsr_chain_step_parameters(tsr_chain *chain, int warm, tsr_err *err);

#endif

/* One Markov chain: its state, its random stream, and a Metropolis-Hastings
 * step in two parts, between which the engine computes the profile of the
 * proposal. */
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

/* An engine, its launchers, and the number of chains whose profiles the engine
 * computes. */
typedef struct {
    tsr_engine *engine;         /* NULL: no term needs a profile */
    void *launcher[TSR_N_MOVE]; /* launchers of the moves with a launch
                                   (moves/move.h); NULL: the run does not use
                                   the move */
    int n_chain;
} tsr_engine_group;

/* Frees the engine and the launchers. */
void tsr_engine_group_clear(tsr_engine_group *group);

typedef struct tsr_all_atom_model tsr_all_atom_model;

/* What all chains have in common: model, data, settings. All pointers are
 * borrowed. */
typedef struct {
    const tsr_topology *topology;
    const tsr_conformation *first; /* start of states for which neither `start`
                                      nor `group_start` has a structure */
    const tsr_prior *prior;
    const tsr_likelihood *likelihood; /* NULL: only the prior is sampled */
    int n_engine; /* 0: only the prior is sampled, or no term needs a profile */
    const tsr_engine_group *engines; /* [n_engine] the first engines[0].n_chain
                                        chains of this rank belong to engine 0,
                                        the next engines[1].n_chain to engine 1,
                                        and so on */
    int first_chain;                 /* of this rank (core/ranks.h) */
    const double *rg2; /* [n_type] mean square radius of a body of each type,
                          Angstrom squared (tsr_conformation_rg); NULL: all 0 */
    const void *const *move_options; /* [TSR_N_MOVE]; NULL: the move is not
                                        used */
    uint64_t seed;
    int n_state;       /* structures of an ensemble; 0 counts as 1 */
    int infer_weights; /* 0: equal weights */
    int n_temp;        /* temperatures of the ladder; 0 counts as 1 */
    double t_max;      /* the highest temperature */
    long swap_every;   /* steps between exchanges of replicas; 0 counts as 1 */
    int n_start;       /* 0: all states start from `first` */
    tsr_conformation *const *start; /* [n_start] starting structures; state k of
                                       every chain starts from number k %
                                       n_start */
    /* Groups of chains_each chains. State k of group g starts from
     * group_start[n_state g + k]. n_group 0: all chains start from `start` or
     * `first`. */
    int n_group;
    int starts_in_pool; /* 1: group_start are no draws of the prior, so no
                           population is brought from the prior */
    int chains_each;
    tsr_conformation *const *group_start;
    double *group_log_z; /* [n_group] log marginal likelihood estimated by each
                            group's population (sampler/sampler.h), nat; NaN:
                            not known */
    int is_frozen;       /* 1: no moves, structures stay at their start */
    const tsr_parameter *contrast; /* [TSR_N_CONTRAST] c1 and c2; NULL: the
                                      model has none */
    /* Model whose draws are stored (all_atom_chain.h). NULL: the draws at
     * temperature 1 are stored. */
    const tsr_all_atom_model *all_atom;
} tsr_target;

/* Number of states; at least 1. */
static inline int tsr_target_n_state(const tsr_target *target)
{
    return target->n_state > 0 ? target->n_state : 1;
}

/* Number of temperatures; at least 1. */
static inline int tsr_target_n_temp(const tsr_target *target)
{
    return target->n_temp > 0 ? target->n_temp : 1;
}

/* 1: the chains use a move whose one proposal turns many torsions, such as a
 * walk by a surrogate. */
int tsr_target_has_global_moves(const tsr_target *target);

/* Shares of the moves among a chain's ordinary proposals, from which the next
 * move is drawn.
 *
 * The shares are the configured weights and do not adapt. (If the chain has a
 * move with a launch that turns many torsions, ordinary moves that only turn
 * torsions get a fifth of their weight.) Shares in proportion to a move's
 * change of the curve per unit of cost were tested: they favoured side chains
 * over pivots, and the slowest variables, the orientations of domains, moved
 * half as far. */
typedef struct {
    double end[TSR_N_MOVE]; /* cumulative shares; the last is 1 */
} tsr_mix;

/* weight [TSR_N_MOVE] in, not all 0. */
void tsr_mix_set(tsr_mix *mix, const double *weight);

/* The number of the move that a uniform number u in [0, 1) selects. */
int tsr_mix_choose(const tsr_mix *mix, double u);

/* Share of the distances between bodies that a proposal changes, in [0, 1]. */
double tsr_mix_changed(const tsr_topology *topology,
                       const tsr_proposal *proposal);

/* Counters of proposals, for each move. */
typedef struct {
    long proposed[TSR_N_MOVE], accepted[TSR_N_MOVE];
    /* Counted since the last draw only. evaluated: proposals whose profile the
     * engine computed. changed: sum over these proposals of the share of
     * distances that they changed. */
    long evaluated[TSR_N_MOVE];
    double changed[TSR_N_MOVE];
} tsr_chain_counts;

/* One structure of the ensemble. The weighted mean of the structures' profiles
 * is compared with the data. */
typedef struct {
    tsr_conformation *current, *proposed; /* equal between steps */
    tsr_prior_state *prior;
    double *profile; /* [n_pair][n_q] from the engine, electrons squared */
    int is_restored; /* 1: `profile` is not that of `current` until
                        tsr_chain_refresh */
} tsr_conformer;

/* A chain. Only src/sampler and tests use the members. */
typedef struct tsr_chain {
    tsr_pool pool; /* memory of the chain and of the states of its moves */
    const tsr_target *target;
    int number, system; /* number: as for tsr_chain_new; system: index in the
                           engine of the first state's system */
    gsl_rng *rng;
    int n_state;
    tsr_conformer *state;   /* [n_state] */
    void *move[TSR_N_MOVE]; /* states of the moves; NULL: not used */
    tsr_mix mix;
    long period[TSR_N_MOVE]; /* moves with a launch: steps between two
                                proposals; 0: the move is not used */

    double beta; /* 1 / T */
    tsr_parameters *parameters;
    tsr_point now, trial; /* of the present state and of the proposal */

    /* The proposal under way: numbers of the move and of the state. */
    int move_number, moved_state;
    double log_prior_change;
    const void *workspace; /* after a launch: holds the result of `job` */
    int job;
    tsr_coupled_parameter coupled; /* parameter that a launch proposes together
                                      with the structure; index -1: no
                                      parameter */
    double *others; /* [n_pair][n_q] scratch: weighted profiles of the other
                       states; NULL: no move has a launch */
    tsr_proposal proposal;
    tsr_body_range range[TSR_ALL_SPANS];

    tsr_chain_counts counts, since_draw;
    double changed;   /* since the last draw: sum over the evaluated proposals
                         of the share of distances that they changed */
    long n_evaluated; /* since the last draw: number of evaluated proposals */

    double clash_seconds; /* computing time, s, of excluded volume in prior
                             states that tsr_chain_refresh has freed */
} tsr_chain;

/* Makes one replica of a chain's ladder. number = n_temp * chain + replica,
 * counted over all engines; the number also selects the random stream. beta is
 * 1 until tsr_chain_set_beta. Errors: TSR_E_NOMEM; TSR_E_CONFIG where the
 * structure is not frozen and no move has anything to move. */
tsr_status tsr_chain_new(const tsr_target *target, int number, tsr_chain **out,
                         tsr_err *err);
void tsr_chain_free(tsr_chain *chain);

/* Computes the first profile and likelihood, before the first step. batch
 * belongs to the chain's engine; NULL without an engine. Errors: those of
 * tsr_batch_set and tsr_likelihood_evaluate. */
tsr_status tsr_chain_start(tsr_chain *chain, tsr_batch *batch, tsr_err *err);

/* Index in the engine of the system that the proposal changes. */
int tsr_chain_system(const tsr_chain *chain);

/* Draws a proposal. Returns 1 where the engine has to evaluate the proposal;
 * `request` is then filled and stays valid until tsr_chain_decide. Returns 0
 * where the engine is not needed: the move found no proposal, the prior forbids
 * the proposal, no term needs a profile, or the structure is frozen.
 * tsr_chain_decide follows in either case. */
int tsr_chain_propose(tsr_chain *chain, tsr_body_proposal *request);

/* Replaces tsr_chain_propose for a move with a launch. tsr_chain_launch_begin
 * adds the chain's job to a thread's workspace. After the launch has run,
 * tsr_chain_launch_end turns the job's result into a proposal; *needed is what
 * tsr_chain_propose would return. The workspace must not change until
 * tsr_chain_decide. Errors: those of the launch's functions. */
tsr_status tsr_chain_launch_begin(tsr_chain *chain, int move, void *workspace,
                                  int job, tsr_err *err);
tsr_status tsr_chain_launch_end(tsr_chain *chain, int move,
                                const void *workspace, int job,
                                tsr_body_proposal *request, int *needed,
                                tsr_err *err);

/* The number of the move with a launch that all chains make at a step of the
 * run; -1: each chain makes a move of its own choice. */
int tsr_chain_launch_at(const tsr_chain *chain, long step);

/* Accepts or rejects the proposal, then makes one step on each block of
 * parameters; blocks with a skip_fraction are skipped at random.
 * partial   [n_pair][n_q]  in   profile from the engine; NULL where it was not
 *                               evaluated
 * warm                     in   1: step sizes adapt
 * *accepted                out  the engine must accept or reject accordingly
 * Errors: TSR_E_NUMERIC where the acceptance probability is NaN, those of
 * tsr_likelihood_evaluate. */
tsr_status tsr_chain_decide(tsr_chain *chain, const double *partial, int warm,
                            int *accepted, tsr_err *err);

/* beta = 1 / T, the power of the likelihood. */
void tsr_chain_set_beta(tsr_chain *chain, double beta);

/* Called when two replicas trade temperatures: swaps what belongs to a
 * temperature, namely what moves and parameter steps have learnt, and the
 * counters. The caller sets beta of both. */
void tsr_chain_exchange(tsr_chain *a, tsr_chain *b);

/* Saves or restores, between two steps, the part of the state that cannot be
 * recomputed. tsr_chain_refresh must follow, both in the run that saved and in
 * the run that restored, so that both continue with equal bits. */
void tsr_chain_archive(tsr_chain *chain, tsr_archive *archive);

/* The part of tsr_chain_archive that moves have learnt. */
void tsr_chain_archive_moves(tsr_chain *chain, tsr_archive *archive);

/* Sets what the moves of n chains at one temperature have learnt to the mean
 * over the chains. Values that are equal in all chains keep their bits. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_chain_average_steps(tsr_chain *const *chain, int n,
                                   tsr_err *err);

/* Copies structures, parameters and the log likelihood. `to` keeps its random
 * stream and its adapted step sizes. tsr_chain_refresh must follow. */
void tsr_chain_copy(tsr_chain *to, const tsr_chain *from);

/* Restores into this chain what tsr_chain_archive saved of another chain,
 * adapted step sizes included. The random stream of this chain stays.
 * tsr_chain_refresh must follow. */
void tsr_chain_restore_copy(tsr_chain *chain, tsr_archive *saved);

/* Recomputes prior, profiles and likelihood from the conformations, which ends
 * the accumulation of rounding errors in sums of differences. Call it between
 * two steps; no random number is used. Errors: those of tsr_batch_set and
 * tsr_likelihood_evaluate; TSR_E_NOMEM; TSR_E_DEVICE where the accumulated
 * profile differs from the new one by more than rounding explains. */
tsr_status tsr_chain_refresh(tsr_chain *chain, tsr_batch *batch, tsr_err *err);

/* Compares the engine's profile of the proposal under way with a sum in double
 * precision; no random number is used. Errors: TSR_E_DEVICE where the profile
 * is wrong, those of tsr_likelihood_direct. */
tsr_status tsr_chain_audit(tsr_chain *chain, const tsr_engine *engine,
                           const double *partial,
                           const tsr_debye_progress *progress, tsr_err *err);

/* Log likelihood of the present state at beta = 1, nat. */
double tsr_chain_log_lik(const tsr_chain *chain);

/* The quantities of the present state that a stored draw is made of. */
typedef struct {
    double log_prior, log_lik, lp; /* nat; lp: log posterior density */
    double beta;                   /* 1 / T */
    double rg_ang, d_max_ang;
    const tsr_point *point;
    const tsr_parameters *parameters;
    /* States are sorted by Rg, ascending. state_weight: means over the
     * mixtures; number: of the state in the chain, as in its table of
     * parameters. */
    int n_state, number[TSR_MAX_STATES];
    double state_rg_ang[TSR_MAX_STATES], state_weight[TSR_MAX_STATES];
    const tsr_conformation *state[TSR_MAX_STATES];
    const tsr_conformation *conformation; /* of state[0] */
    double term[TSR_N_TERM];              /* summands of log_prior, nat */
    const tsr_chain_counts *since_draw;   /* proposals since the last draw */
    double changed; /* share of distances that a proposal changed, mean over the
                       evaluated proposals since the last draw; NaN: no proposal
                       was evaluated */
    gsl_rng *rng;   /* the chain's random stream, for scale, background and
                       replicates */
} tsr_chain_view;

/* Fills the view of the present state. The next step makes the view invalid. */
void tsr_chain_view_get(const tsr_chain *chain, tsr_chain_view *view);

/* Weight of state k of the view in a mixture. */
double tsr_chain_view_weight(const tsr_chain_view *view, int mixture, int k);

/* Resets the counters `since_draw`. Call it for all replicas after a draw of
 * the chain was stored. */
void tsr_chain_draw_done(tsr_chain *chain);

/* The counters since the last tsr_chain_counts_reset; the pointer is valid as
 * long as the chain. */
const tsr_chain_counts *tsr_chain_counts_get(const tsr_chain *chain);
void tsr_chain_counts_reset(tsr_chain *chain);

/* Seconds spent so far in excluded volume, estimated from a sample. */
double tsr_chain_clash_seconds(const tsr_chain *chain);

/* chi2 per point of the present state (tsr_likelihood_chi2). */
double tsr_chain_chi2(const tsr_chain *chain);

/* Makes one step on each block of parameters; blocks with a skip_fraction are
 * skipped at random. tsr_chain_decide calls this function, which is public for
 * tests. */
tsr_status tsr_chain_step_parameters(tsr_chain *chain, int warm, tsr_err *err);

#endif

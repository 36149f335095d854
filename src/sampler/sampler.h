/* The sampler: many chains on several host threads and one or more devices.
 *
 * Each worker thread runs chains of one engine, in two halves: while the device
 * evaluates the proposals of one half, the host decides and proposes for the
 * other. While a launch (moves/move.h) of one half runs, the host makes the
 * steps of the other up to its next launch, so that the halves may be some
 * steps apart. The draws of a chain depend on seed, configuration and kind of
 * device, not on the number of threads or devices.
 *
 * With several temperatures a chain is a ladder of replicas (ladder.h), all in
 * one half. The replica at temperature 1 is stored, or the all-atom chain above
 * this replica (all_atom_chain.h). In the first part of warm-up the power of
 * the likelihood rises slowly (annealing), so that a chain whose start fits
 * badly does not freeze in a local mode. Chains that a population brought from
 * the prior are not annealed. */
#ifndef TSR_SAMPLER_SAMPLER_H
#define TSR_SAMPLER_SAMPLER_H

#include "sampler/all_atom_chain.h"
#include "sampler/ladder.h"
#include "sampler/record.h"
#include "sampler/trajectory_writer.h"

#include <pthread.h>
#include <stdatomic.h>

/* The section `sampler` of the configuration. */
typedef struct {
    tsr_number_or_word chains;       /* auto, or a number */
    long warmup;                     /* steps of each chain */
    tsr_number_or_word thin;         /* auto, or steps between draws */
    tsr_number_or_word draws;        /* auto, or the largest number of draws */
    tsr_number_or_word temperatures; /* auto, or a number */
    tsr_number_or_word t_max;
    long swap_every; /* steps between exchanges of replicas */
    double anneal;   /* share of warm-up in which the power of the likelihood
                        rises */
    int evidence; /* 1: if temperatures and t_max are auto, the ladder reaches
                     the prior */
    int start;    /* TSR_START_AUTO, ... */
    char *until;  /* convergence criterion; NULL: make all draws */
    double time_limit; /* s, including warm-up; 0: no limit */
} tsr_sampler_options;

/* Where chains start: from the structure of the configuration, from draws of
 * the prior, one for each group of chains, or each from a member of
 * structure.pool. auto: see tsr_sampler_resolve_auto. */
enum { TSR_START_AUTO, TSR_START_FILE, TSR_START_PRIOR, TSR_START_POOL };

/* Values of the options. While an option is auto, these functions return the
 * values for a CPU.
 *
 * Number of temperatures (1 without data), and the highest temperature. */
int tsr_sampler_n_temp(const tsr_sampler_options *options, int has_data);
double tsr_sampler_t_max(const tsr_sampler_options *options);

/* Steps between two draws of a chain. */
long tsr_sampler_thin(const tsr_sampler_options *options);

/* Largest number of draws of a chain. */
long tsr_sampler_draws(const tsr_sampler_options *options);

/* The progress in words: "12 of 5000 draws per chain", or, if the run ends at
 * convergence, "12 draws per chain (50000 at most)". */
void tsr_sampler_draws_text(const tsr_sampler_options *options, long done,
                            char text[80]);

/* Default convergence criterion, for tsr_until_parse. */
extern const char tsr_sampler_until[];

/* Smallest number of replicas that are run as a population. */
enum { TSR_POPULATION_LEAST = 16 };

/* Properties of a run on which the values of auto depend. */
typedef struct {
    int has_data, is_gpu, n_thread, n_state;
    int uses_surrogate; /* 1: chains have walks by a surrogate on the device */
    int is_all_atom;    /* 1: each draw costs a curve of all atoms */
    double capacity;    /* systems that fit into the devices' memory */
    double min_beta;    /* power of the likelihood below which the posterior is
                           improper (likelihood/term.h); 1 / t_max must be
                           larger */
    int is_placed;      /* 1: data fix the position of the molecule, and the
                           start has that position */
} tsr_sampler_problem;

/* Replaces each auto by a number.
 *
 * On a CPU the time grows in proportion to the number of systems, so there are
 * few chains, and the ladder ends at T = 20 unless `evidence` is set. On a GPU
 * a system is cheap if a launch has many, so with data and enough memory the
 * ladder reaches the prior. There are so many chains that each half of a thread
 * submits at least 64 systems at a time, if memory allows. With walks by a
 * surrogate, one launch holds half of the walks of all threads, and 512
 * replicas suffice. If the number of draws is auto, the run ends when the
 * chains have converged, or at a largest number of draws, which bounds the size
 * of the files.
 *
 * With data, chains start from the prior if the ladder reaches the prior, or if
 * there are enough replicas for a population (TSR_POPULATION_LEAST) and the
 * posterior is proper at any beta > 0, since chains from one structure agree
 * before they have left its mode. If the data fix the molecule's position and
 * the ladder does not reach the prior, chains start from the file: a population
 * as small as a CPU allows would not find the position. Errors: TSR_E_NOMEM. */
tsr_status tsr_sampler_resolve_auto(tsr_sampler_options *options,
                                    const tsr_sampler_problem *problem,
                                    tsr_err *err);

/* Fields of tsr_sampler_options. */
extern const tsr_field tsr_sampler_fields[];

typedef struct tsr_sampler tsr_sampler;

/* Makes the chains, computes their first profiles, and starts the worker
 * threads: n_thread, but at most one for each chain and at least one for each
 * engine. The threads are divided among the engines in proportion to the
 * chains. The n_chain of the target's engines must add up to n_chain and be at
 * least 1 each. target is borrowed. `stop` (NULL: never) is read at every step:
 * once it is not 0 the workers finish their step and stop. Errors:
 * TSR_E_INTERRUPTED where `stop` was set while the profiles were computed;
 * TSR_E_INTERNAL where the engines do not fit the chains or a thread cannot be
 * started; TSR_E_NOMEM; those of tsr_chain_new, tsr_chain_start and
 * tsr_all_atom_chain_new. */
tsr_status tsr_sampler_new(const tsr_target *target, int n_chain, int n_thread,
                           const atomic_int *stop, tsr_sampler **out,
                           tsr_err *err);
void tsr_sampler_free(tsr_sampler *sampler);

/* Progress of a call of tsr_sampler_advance. */
typedef struct {
    long step;   /* sum over all replicas of the steps made in this call */
    double chi2; /* chi2 per point at temperature 1, mean over chains; NaN: no
                    data */
} tsr_progress;

/* Advances every chain by n_draw draws of `thin` steps and stores the draws in
 * the record from draw 0 on. warm 1: warm-up, in which step sizes and
 * temperatures adapt. `tick` (NULL: no calls) is called in the caller's thread
 * about four times a second. *n_done: draws that all chains completed, fewer
 * than n_draw after a stop. Errors: those of the engine, of launches, of
 * tsr_chain_decide, tsr_chain_audit and tsr_all_atom_chain_exchange; the first
 * *n_done draws of the record are then valid. */
tsr_status tsr_sampler_advance(tsr_sampler *sampler, tsr_record *record,
                               int n_draw, long thin, int warm,
                               void (*tick)(void *context,
                                            const tsr_progress *progress),
                               void *context, int *n_done, tsr_err *err);

/* Recomputes every chain from its conformations (tsr_chain_refresh), which also
 * detects an engine whose accumulated profile is wrong. Call it after fixed
 * numbers of draws, and after a restore. Occasionally the function chooses, by
 * seed and step, a replica and a step: the replica's first evaluated proposal
 * from this step on is compared with a sum in double precision. These
 * comparisons take at most about 0.4 % of the time, or 20 ms if the first one
 * would take longer than that. Errors: those of tsr_chain_refresh and
 * tsr_all_atom_chain_refresh; TSR_E_INTERRUPTED after a stop: some chains are
 * not recomputed then, and no advance may follow. */
tsr_status tsr_sampler_refresh(tsr_sampler *sampler, tsr_err *err);

/* Saves or restores everything that the next draws depend on, between two calls
 * of advance that ended with a complete draw. Refresh before saving and after
 * restoring. */
void tsr_sampler_archive(tsr_sampler *sampler, tsr_archive *archive);

/* From now on the kept draws also go to `writer` (borrowed; NULL: no
 * trajectories). */
void tsr_sampler_set_trajectory_writer(tsr_sampler *sampler,
                                       tsr_trajectory_writer *writer);

/* Plans the annealing of a warm-up of n_step steps. During the first anneal *
 * n_step steps a factor of all 1 / T rises to 1. The factor starts at 1 / chi2
 * per point of the chain that fits worst, but at 1 at most, or at 1/5 if a term
 * has a Hessian, such as a map. If this start is below twice the smallest
 * factor with a proper posterior at the highest temperature
 * (tsr_likelihood_min_beta), the factor starts at twice this smallest factor,
 * and the function returns 1; else 0. */
int tsr_sampler_plan_warmup(tsr_sampler *sampler, long n_step, double anneal);

/* In warm-up, between two steps: sets temperatures, and what the moves have
 * learnt at each temperature, to their means over the chains. So every chain
 * profits from rare proposals of the others. A second call changes nothing.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_sampler_average_warmup(tsr_sampler *sampler, tsr_err *err);

/* Number of worker threads of this rank. */
int tsr_sampler_n_thread(const tsr_sampler *sampler);

/* chi2 per point of a chain at temperature 1, after tsr_sampler_gather. */
double tsr_sampler_chi2(const tsr_sampler *sampler, int chain);

/* The replica of a chain that is at temperature 1. */
tsr_chain *tsr_sampler_chain(tsr_sampler *sampler, int chain);

/* The all-atom chain above a ladder; NULL: the run has no all-atom chains. */
tsr_all_atom_chain *tsr_sampler_all_atom_chain(tsr_sampler *sampler, int chain);

/* The ladder of a chain. */
const tsr_ladder *tsr_sampler_ladder(const tsr_sampler *sampler, int chain);

/* Accepted share of the exchanges with all-atom chains since the counters were
 * reset, mean over chains; NaN: there are no all-atom chains, or no exchange
 * was tried. */
double tsr_sampler_all_atom_acceptance(const tsr_sampler *sampler);

/* Seconds spent by the workers since the sampler was made, summed over
 * workers. */
typedef struct {
    double propose;  /* proposals, prior included */
    double clash;    /* excluded volume, a part of propose; estimate */
    double walk;     /* launches: walks by a surrogate, redraws */
    double submit;   /* handing proposals to the device */
    double wait;     /* waiting for the device */
    double decide;   /* likelihood, acceptance, steps of parameters */
    double store;    /* storing draws */
    double refresh;  /* recomputing chains */
    double audit;    /* checks of the engine in double precision */
    double all_atom; /* all-atom curves and exchanges */
} tsr_sampler_times;

tsr_sampler_times tsr_sampler_times_get(const tsr_sampler *sampler);

/* Resets the counters of all replicas, ladders and all-atom chains. */
void tsr_sampler_counts_reset(tsr_sampler *sampler);

/* Divides the integer `total` into n parts in proportion to weight, by the
 * largest remainder; of equal remainders the first wins. Where total >= n every
 * part is at least 1. A weight that is not positive and finite counts as 0. If
 * all weights count as 0, they count as equal.
 * weight  [n]  in
 * part    [n]  out  sum is total
 * Cost: O(n^2). */
void tsr_apportion(int total, int n, const double *weight, int *part);

/* ---- populations ----
 *
 * Chains that start in equilibrium: sequential Monte Carlo from the prior.
 *
 * All replicas of a group of chains begin as draws of the prior: they start
 * from the group's draw and make steps at beta = 0. The power of the
 * likelihood, beta, then rises from 0 to 1 in levels. At each level the
 * replicas of a group are resampled with weights L^(change of beta): replicas
 * that fit the data well are copied, replicas that fit badly are dropped. Then
 * all replicas make steps until their log likelihoods have largely decorrelated
 * from those at the level's start, or for the largest number of steps of a
 * level. So chains do not stay in local modes. The product of the mean weights
 * estimates the marginal likelihood, once for each group and independently of
 * replica exchange. The communication barrier, the rate at which exchanges
 * between neighbouring temperatures are refused, integrated over beta, is
 * estimated as well. The ladder's temperatures divide the barrier evenly, and
 * each temperature begins with replicas of the nearest level.
 *
 * Sources: Del Moral, Doucet & Jasra 2006 (J. R. Stat. Soc. B 68, 411); levels
 * by effective sample size: Zhou, Johansen & Aston 2016 (J. Comput. Graph.
 * Stat. 25, 701); barrier: Syed et al. 2022 (J. R. Stat. Soc. B 84, 321). */

/* Summary of a pass of populations from the prior to the posterior; all zero
 * where no pass was made. */
typedef struct {
    int n_level;    /* number of levels, the prior included */
    long n_step;    /* steps of each replica */
    double barrier; /* communication barrier from the prior to the posterior */
} tsr_population;

/* Makes the pass, before warm-up. The pass needs data whose posterior is proper
 * at any beta > 0, chains that start in groups from draws of the prior, and at
 * least TSR_POPULATION_LEAST replicas. If one of these is missing, on a second
 * call, or after a restore of a run that made the pass, the function does
 * nothing. A level has at most about most_each steps. After `seconds` (0: no
 * limit) the levels become fewer and shorter, so that an interactive user gets
 * draws; the bits of the draws then depend on the clock. The log marginal
 * likelihoods go into the target's group_log_z. record: scratch for one draw.
 * tick: as for tsr_sampler_advance. After a stop the chains are unusable.
 * Errors: those of tsr_sampler_advance and tsr_sampler_refresh, TSR_E_NOMEM. */
tsr_status tsr_sampler_populate(tsr_sampler *sampler, tsr_record *record,
                                long most_each, double seconds,
                                void (*tick)(void *context,
                                             const tsr_progress *progress),
                                void *context, tsr_err *err);

/* Summary of the pass that was made. */
tsr_population tsr_sampler_population(const tsr_sampler *sampler);

/* ---- several ranks (core/ranks.h) ----
 *
 * A rank owns whole ladders, in the order of chains, so that exchanges between
 * temperatures need no message. It makes the steps of its own chains. In memory
 * it has all chains; those of other ranks are copies without an engine, brought
 * up to date where a mean over chains or a copy of a chain needs them. So each
 * sum has the same terms in the same order for any number of ranks.
 *
 * Rank 0 calls the functions of this header as if it were alone. It announces
 * each call to the other ranks, which carry out the same call inside of
 * tsr_sampler_follow, and all return the same status. All functions above have
 * the errors of core/ranks.h, too. */

/* Learns the model error from the examples of all chains
 * (tsr_setup_relearn_from_chains). */
typedef tsr_status (*tsr_sampler_learn)(void *context, int last, tsr_err *err);

/* Rank 0: from now on calls are announced, and tsr_sampler_free ends
 * tsr_sampler_follow on the other ranks. */
void tsr_sampler_lead(tsr_sampler *sampler);

/* Other ranks: carries out the calls of rank 0, with a record and a trajectory
 * writer like those of rank 0, until rank 0 frees its sampler. */
tsr_status tsr_sampler_follow(tsr_sampler *sampler, tsr_record *record,
                              tsr_sampler_learn learn, void *context,
                              tsr_err *err);

/* Brings the copies on rank 0 up to date, before rank 0 saves them
 * (tsr_sampler_archive) or reports on chains. */
tsr_status tsr_sampler_gather(tsr_sampler *sampler, tsr_err *err);

/* Restores all ranks from a saved archive of rank 0. Errors: those of
 * tsr_archive_end. */
tsr_status tsr_sampler_restore(tsr_sampler *sampler, tsr_archive *archive,
                               tsr_err *err);

/* Rank 0: starts `learn` on the other ranks. On all ranks: brings the examples
 * of all chains here. */
tsr_status tsr_sampler_share_examples(tsr_sampler *sampler, int last,
                                      tsr_err *err);

/* ---- internals, for src/sampler and tests alone ---- */

/* The chains whose proposals go to the device in one batch, each with all its
 * replicas: replica r of chain i has index n_temp * i + r. */
typedef struct {
    int n_chain, n_replica;
    tsr_chain **chain;             /* [n_replica] */
    tsr_ladder **ladder;           /* [n_chain] */
    tsr_all_atom_chain **all_atom; /* [n_chain]; NULL: the model has none */
    int *number;      /* [n_chain] number of the chain in the run */
    long *accepted;   /* [n_chain] accepted proposals at temperature 1 since the
                         last draw */
    tsr_batch *batch; /* NULL: no term needs a profile */
    int n_request;
    tsr_body_proposal *request; /* [n_replica] proposals for the engine,
                                   n_request of them filled */
    int *request_of; /* [n_replica] index in `request` of the replica's
                        proposal; -1: the engine is not needed */
    double *profile; /* [n_replica][n_profile] the engine's results, in the
                        order of `request` */
    void *workspace[TSR_N_MOVE]; /* jobs of the replicas for a move with a
                                    launch; NULL for other moves */
    int launched; /* number of the move whose launch runs; -1: no launch */
    long n_step;  /* steps completed in this call */
    int is_done;  /* 1: all steps of this call are completed, or it stops */
    int audited;  /* index of the replica whose proposal is compared with a sum
                     in double precision next; -1: no replica */
    int audit_after; /* steps until this comparison */
} tsr_half;

/* A thread and its two halves. */
typedef struct {
    tsr_sampler *sampler;
    pthread_t thread;
    int started;
    tsr_half half[2];
    int n_done;  /* draws that both halves have completed in this call */
    long n_step; /* steps that both halves have completed in this call */
    tsr_status status;
    tsr_err err;
    atomic_long step;  /* progress of this call (tsr_progress) */
    int n_audit;       /* comparisons with double precision made */
    double part_start; /* start of the current part of the step, s */
    tsr_sampler_times times;
} tsr_worker;

/* Chains, workers, and the call that they carry out. */
struct tsr_sampler {
    tsr_pool pool;
    const tsr_target *target;
    const atomic_int *stop;
    int n_chain, n_temp, n_worker;
    int n_profile;                 /* length of a profile, n_pair * n_q */
    tsr_chain **chain;             /* [n_chain * n_temp] */
    tsr_ladder **ladder;           /* [n_chain] */
    tsr_all_atom_chain **all_atom; /* [n_chain]; NULL: the model has none */
    int first, end; /* this rank makes the steps of chains [first, end) */
    int is_leader;  /* 1: calls are announced to other ranks */
    int is_nested;  /* 1: a function that was announced calls others */
    int is_stopped; /* 1: a rank is to stop, agreed on in the last call */
    long n_step;    /* steps of each chain before the present call */
    long n_anneal;  /* steps of annealing in warm-up */
    double first_beta_factor; /* factor of all 1 / T at the first step */
    int is_flat; /* 1: all replicas are at flat_beta and do not exchange */
    double flat_beta;
    tsr_population population;
    _Atomic double *chi2; /* [n_chain] per point, at temperature 1 */
    tsr_worker *worker;

    pthread_mutex_t lock;
    pthread_cond_t go, done;
    int lock_made;
    long n_call;       /* number of the call; workers start when this number
                          changes */
    int n_busy, quit;  /* n_busy: workers that have not finished; quit 1: the
                          threads end */
    atomic_int failed; /* 1: a worker failed, the others stop */

    /* the present call */
    tsr_record *record;
    tsr_trajectory_writer *writer; /* NULL: no trajectories */
    int n_draw, warm, refresh;     /* refresh 1: recompute and make no steps */
    long thin;
    double seconds; /* duration of all calls, s */
};

/* Calls that are announced. The meaning of the arguments is in
 * sampler_ranks.c. */
enum {
    TSR_CALL_END,
    TSR_CALL_ADVANCE,
    TSR_CALL_REFRESH,
    TSR_CALL_POPULATE,
    TSR_CALL_AVERAGE,
    TSR_CALL_GATHER,
    TSR_CALL_RESTORE,
    TSR_CALL_RESET,
    TSR_CALL_LEARN
};
typedef struct {
    int what, n_draw, flag;
    long n, first, n_anneal;
    double x;
} tsr_sampler_call;
tsr_status tsr_sampler_announce(const tsr_sampler *sampler,
                                tsr_sampler_call call, tsr_err *err);
#define TSR_ANNOUNCE(sampler, err, ...) \
    tsr_sampler_announce(sampler, (tsr_sampler_call){__VA_ARGS__}, err)

/* tsr_ranks_agree, also on a stop (is_stopped). */
tsr_status tsr_sampler_agree(tsr_sampler *sampler, tsr_status status,
                             tsr_err *err);

/* The rank that owns a chain. */
int tsr_sampler_owner(const tsr_sampler *sampler, int chain);

/* Each rank saves what `part` archives of its own chains, and rank `to` (-1:
 * all ranks) restores it. */
typedef void (*tsr_sampler_part)(tsr_sampler *sampler, void *context, int first,
                                 int end, tsr_archive *archive);
tsr_status tsr_sampler_share(tsr_sampler *sampler, int to,
                             tsr_sampler_part part, void *context,
                             tsr_err *err);

/* Archives a chain with its log likelihood. */
void tsr_sampler_part_chain(tsr_chain *chain, tsr_archive *archive);

/* Share: what warm-up has learnt, with all ranks; the draws of a call of
 * advance and their number, with rank 0. */
tsr_status tsr_sampler_share_learnt(tsr_sampler *sampler, tsr_err *err);
tsr_status tsr_sampler_gather_draws(tsr_sampler *sampler, int *n_done,
                                    tsr_err *err);

/* 1: the caller asked for a stop, or a worker failed. */
int tsr_sampler_should_stop(const tsr_sampler *sampler);

/* A pseudo-random number, uniform in [0, 1), from the seed and two numbers.
 * Uses no chain's random stream. */
double tsr_sampler_uniform(const tsr_sampler *sampler, uint64_t a, uint64_t b);

#endif

/* The sampler: many chains over several host threads and one device or more.
 *
 * Each worker thread drives chains of one engine in two halves: while the
 * device evaluates one half's proposals, the host decides and proposes the
 * other's. What a chain draws depends on seed, configuration and the device
 * that computes it, not on the threads, nor on how many devices there are.
 *
 * With several temperatures a chain is a ladder of replicas (ladder.h), all in
 * one half; what is stored is the replica at temperature 1. In the first part
 * of warm-up the likelihood is turned on slowly (annealing), where no
 * population came from the prior before (population.h), so that a start that
 * fits badly does not freeze where it is. */
#ifndef TSR_SAMPLER_SAMPLER_H
#define TSR_SAMPLER_SAMPLER_H

#include "sampler/all_atom_chain.h"
#include "sampler/ladder.h"
#include "sampler/record.h"
#include "sampler/trajectory_writer.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct {
    tsr_number_or_word chains; /* auto, or how many */
    long warmup;
    tsr_number_or_word thin;         /* auto, or how many steps */
    tsr_number_or_word draws;        /* auto, or how many, at most */
    tsr_number_or_word temperatures; /* auto, or how many */
    tsr_number_or_word t_max;
    long swap_every;
    double anneal;     /* share of warm-up */
    int evidence;      /* 1: temperatures that are auto reach the prior */
    int start;         /* TSR_START_AUTO, ... */
    char *until;       /* NULL: all draws */
    double time_limit; /* s, with warm-up; 0: none */
} tsr_sampler_options;

/* Where chains start: the structure of the configuration, or draws of the
 * prior, one for each group of chains. auto: the prior where the ladder reaches
 * it. */
enum { TSR_START_AUTO, TSR_START_FILE, TSR_START_PRIOR };

/* How many temperatures that makes, and the highest; without data there is 1.
 */
int tsr_sampler_n_temp(const tsr_sampler_options *options, int has_data);
double tsr_sampler_t_max(const tsr_sampler_options *options);

/* Steps from one draw of a chain to the next. */
long tsr_sampler_thin(const tsr_sampler_options *options);

/* Draws of a chain, at most. */
long tsr_sampler_draws(const tsr_sampler_options *options);

/* How many of them there are, in words: "12 of 5000 draws a chain", or, where
 * convergence ends the run, "12 draws a chain (50000 at most)". */
void tsr_sampler_draws_text(const tsr_sampler_options *options, long done,
                            char text[80]);

/* What converged means where nothing else is said: for tsr_until_parse. */
extern const char tsr_sampler_until[];

/* Replicas that are a population (population.h), at least. */
enum { TSR_POPULATION_LEAST = 16 };

/* Where a run is to be. */
typedef struct {
    int has_data, is_gpu, n_thread, n_state;
    int walks;       /* 1: chains walk by a surrogate on the device */
    double capacity; /* systems that the devices have room for */
    double min_beta; /* of the likelihood; 1 / t_max has to be more */
    int is_placed;   /* 1: data say where the molecule lies, as its file does */
} tsr_sampler_problem;

/* What is auto becomes a number. A CPU takes its time for every system: few
 * chains, and a ladder that only reaches to T = 20. On a GPU systems are cheap
 * where a launch has many: a ladder to the prior, and so many chains that each
 * half of a thread's hands over 64 systems at a time, where they fit. Where
 * chains walk, launches have the walks of all threads, and 512 replicas are
 * enough. Draws
 * that are auto go on until the chains have converged, with an end where files
 * get too large for anybody. Chains start from the prior wherever a population
 * can take them from there: chains from one structure agree before they have
 * left its valley. Not on a processor where the molecule is placed: there too
 * few replicas look for its place. Errors: TSR_E_NOMEM. */
tsr_status tsr_sampler_settle(tsr_sampler_options *options,
                              const tsr_sampler_problem *problem, tsr_err *err);

extern const tsr_field tsr_sampler_fields[];

typedef struct tsr_sampler tsr_sampler;

/* Makes the chains (the target says how many temperatures), computes their
 * first profiles, starts n_thread workers (at most one a chain, at least one an
 * engine; divided among the engines like the chains). The target's shares have
 * n_chain chains in all, each at least one. `stop` (may be NULL) is polled at
 * every step: once it is not 0 the workers finish the step and rest; here, for
 * every chain, TSR_E_INTERRUPTED is the answer. target is borrowed. */
tsr_status tsr_sampler_new(const tsr_target *target, int n_chain, int n_thread,
                           const atomic_int *stop, tsr_sampler **out,
                           tsr_err *err);
void tsr_sampler_free(tsr_sampler *sampler);

/* Read while the workers run. */
typedef struct {
    long step;     /* steps of all chains in this call */
    long accepted; /* proposals accepted */
    double chi2;   /* mean over chains of chi2 per point; NaN: no data */
} tsr_progress;

/* Advances every chain by n_draw draws of `thin` steps, into the record from
 * draw 0 on. `tick` (may be NULL) is called in this thread a few times a
 * second. *n_done: draws that all chains completed; less than n_draw after a
 * stop. Errors: those of the engine and TSR_E_NUMERIC; the record then holds
 * *n_done sound draws. */
tsr_status tsr_sampler_advance(tsr_sampler *sampler, tsr_record *record,
                               int n_draw, long thin, int warm,
                               void (*tick)(void *context,
                                            const tsr_progress *progress),
                               void *context, int *n_done, tsr_err *err);

/* Computes every chain afresh from its conformations (tsr_chain_refresh); where
 * that changes a profile by more than rounding, the engine is wrong. After
 * fixed numbers of draws, and after a restore. Now and then it also chooses a
 * replica whose next proposal is compared with double precision, so seldom that
 * this takes some 0.4 % of the time (or 20 ms, once); seed and step say which.
 * Errors: TSR_E_DEVICE, those of tsr_chain_refresh; TSR_E_INTERRUPTED, where
 * some chains are not afresh: to be followed by no advance. */
tsr_status tsr_sampler_refresh(tsr_sampler *sampler, tsr_err *err);

/* Saves or restores everything that the next draws depend on, between two
 * calls of advance that ended at the end of a draw. A refresh has to stand
 * before what is saved and to follow what is restored. */
void tsr_sampler_archive(tsr_sampler *sampler, tsr_archive *archive);

/* Frames of the draws that are kept go to `track` too (borrowed; NULL: none).
 */
void tsr_sampler_set_trajectory_writer(tsr_sampler *sampler,
                                       tsr_trajectory_writer *writer);

/* Before warm-up: how many steps it will have, of which `anneal` with the
 * likelihood turned on slowly, from chi2 of the start. Returns 1 where it has
 * to begin with more of the likelihood, twice what scale and background need to
 * have a proper distribution at the highest temperature. */
int tsr_sampler_plan_warmup(tsr_sampler *sampler, long n_step, double anneal);

/* In warm-up, between two steps: all chains get the means of what they have
 * learnt, temperatures and, for each of them, widths of steps. What one chain
 * has hardly tried others have. A second call changes nothing. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_sampler_average_warmup(tsr_sampler *sampler, tsr_err *err);

int tsr_sampler_n_thread(const tsr_sampler *sampler);

/* The replica of a chain that is at temperature 1 now. */
tsr_chain *tsr_sampler_chain(tsr_sampler *sampler, int chain);

/* The place above its ladder; NULL: there is none. */
tsr_all_atom_chain *tsr_sampler_all_atom_chain(tsr_sampler *sampler, int chain);
const tsr_ladder *tsr_sampler_ladder(const tsr_sampler *sampler, int chain);

/* Mean share of offers that the places above the ladders took since the
 * counters began; NaN: there are none (fine.h). */
double tsr_sampler_all_atom_acceptance(const tsr_sampler *sampler);

/* Where the workers' time went since the sampler was made, s, summed over them:
 * proposals with the prior (clash: the part of it in excluded volume, from a
 * sample), waiting for walks by a surrogate, handing proposals to the device,
 * waiting for it, likelihood and acceptance, storing draws, computing afresh,
 * checking the engine, curves of all atoms (fine.h). */
typedef struct {
    double propose, clash, walk, submit, wait, decide, store, refresh, audit,
        all_atom;
} tsr_sampler_times;

tsr_sampler_times tsr_sampler_times_get(const tsr_sampler *sampler);

/* Proposals accepted since the counters began, all chains and replicas. */
long tsr_sampler_accepted(const tsr_sampler *sampler);

/* Counters of all chains and replicas begin again. */
void tsr_sampler_counts_reset(tsr_sampler *sampler);

/* Divides `total` whole things into n parts in proportion to weight, by the
 * largest remainder; of equal remainders the first wins. Where total >= n every
 * part is at least 1. A weight that is not positive and finite counts as 0;
 * where all do, the parts are equal.
 * weight [n] in; part [n] out, its sum is total. Cost: O(n^2). */
void tsr_apportion(int total, int n, const double *weight, int *part);

/* ---- populations ----
 *
 * Chains that start in equilibrium: sequential Monte Carlo from the prior.
 *
 * All replicas of a group of chains begin as draws of the prior. The power of
 * the likelihood, beta, rises from 0 to 1 in levels. At each level the replicas
 * of a group are resampled with weights L^(change of beta), so that those that
 * fit become several and those that do not fall out, and then take steps until
 * they have largely forgotten where they were. So no chain is left in a side
 * valley, and the mean weights multiply to the marginal likelihood, once for
 * each group: an estimate that owes nothing to exchanges. On the way the
 * communication barrier is measured; the ladder's temperatures divide it
 * evenly, and each temperature begins with replicas of the level next to it.
 *
 * Source: Del Moral, Doucet & Jasra 2006 (J. R. Stat. Soc. B 68, 411); levels
 * by effective draws: Zhou, Johansen & Aston 2016 (J. Comput. Graph. Stat. 25,
 * 701); the barrier: Syed et al. 2022 (J. R. Stat. Soc. B 84, 321). */
/* What a pass did; all zero where there was none. */
typedef struct {
    int n_level;    /* from the prior on */
    long n_step;    /* of each replica */
    double barrier; /* from the prior to the posterior */
} tsr_population;

/* Before warm-up, where 16 replicas or more of the target's chains start in
 * groups from draws of the prior, and once: a second call, or one after a
 * restore, does nothing. Levels have at most most_each steps; after so many
 * seconds (0: never) they are fewer and short, so that somebody who waits gets
 * draws, of which the bits then depend on the clock. The estimates of the log
 * marginal likelihood go to the target's group_log_z. record: scratch
 * for one draw. `tick` (may be NULL) is called as by tsr_sampler_advance. Ends
 * early when it is to stop; the chains are then of no use. Errors: those of
 * tsr_sampler_advance and tsr_sampler_refresh, TSR_E_NOMEM. */
tsr_status tsr_sampler_populate(tsr_sampler *sampler, tsr_record *record,
                                long most_each, double seconds,
                                void (*tick)(void *context,
                                             const tsr_progress *progress),
                                void *context, tsr_err *err);

tsr_population tsr_sampler_population(const tsr_sampler *sampler);

/* ---- what it is made of: for src/sampler and tests alone ---- */

/* The chains that go to the device together, each with all its replicas:
 * replica r of the i-th is number n_temp * i + r here. */
typedef struct {
    int n_chain, n_replica;
    tsr_chain **chain;   /* [n_replica] */
    tsr_ladder **ladder; /* [n_chain] */
    tsr_all_atom_chain *
        *all_atom;    /* [n_chain] NULL: no place above the ladders */
    int *number;      /* [n_chain] */
    long *accepted;   /* [n_chain] at temperature 1 since the last draw */
    tsr_batch *batch; /* NULL without data */
    int n_ask;
    tsr_body_proposal *ask; /* [n_replica] */
    int *asked;             /* [n_replica] place in ask, or -1 */
    double *profile;        /* [n_replica][n_profile] */
    int audited;            /* replica whose proposal is checked next, or -1 */
    int audit_after;        /* steps until then */
} tsr_half;

typedef struct {
    tsr_sampler *sampler;
    pthread_t thread;
    int started;
    tsr_half half[2];
    void *workspace[TSR_N_MOVE]; /* of both, for moves with a launch; or NULL */
    int n_done;                  /* draws completed in this call */
    long n_step;                 /* steps */
    tsr_status status;
    tsr_err err;
    atomic_long step, accepted;
    int n_audit;
    double mark; /* when the part of the step under way began */
    tsr_sampler_times times;
} tsr_worker;

struct tsr_sampler {
    tsr_pool pool;
    const tsr_target *target;
    const atomic_int *stop;
    int n_chain, n_temp, n_worker;
    int n_profile;       /* numbers an answer of the engine has */
    tsr_chain **chain;   /* [n_chain * n_temp] */
    tsr_ladder **ladder; /* [n_chain] */
    tsr_all_atom_chain *
        *all_atom; /* [n_chain] NULL: no place above the ladders */
    long n_step;   /* of each chain, before the call under way */
    long n_anneal; /* steps in which the likelihood is turned on */
    double first_heat;
    int is_flat; /* 1: all replicas at flat_beta, without exchanges */
    double flat_beta;
    tsr_population population;
    _Atomic double *chi2; /* [n_chain] */
    tsr_worker *worker;

    pthread_mutex_t lock;
    pthread_cond_t go, done;
    int lock_made;
    long round; /* grows with every call of advance */
    int n_busy, quit;
    atomic_int failed; /* a worker failed: the others stop too */

    /* the call under way */
    tsr_record *record;
    tsr_trajectory_writer *writer; /* NULL: no trajectories */
    int n_draw, warm, refresh;     /* refresh: nothing but that */
    long thin;
    double seconds; /* of all calls */
};

/* The caller asked, or a worker failed. */
int tsr_sampler_should_stop(const tsr_sampler *sampler);

/* Uniform in [0, 1), of the seed and two numbers; no chain's. */
double tsr_sampler_chance(const tsr_sampler *sampler, uint64_t a, uint64_t b);

#endif

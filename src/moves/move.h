/* The interface of a Monte Carlo move. A move is one file with one const struct
 * of type tsr_move_type and one line in TSR_MOVES below. docs/extend.md shows a
 * complete example.
 *
 * A move changes a copy of the current conformation and reports which residues
 * changed. Most moves know only the topology, the prior and a random stream. A
 * move with a launch also receives the chain's parameters and profile. */
#ifndef TSR_MOVES_MOVE_H
#define TSR_MOVES_MOVE_H

#include "core/archive.h"
#include "core/field.h"
#include "core/pool.h"
#include "core/random.h"
#include "molecule/topology.h"
#include "prior/prior.h"

#include <stdint.h>

/* Product of a vector with K, the matrix of second derivatives of -log L by the
 * positions of the bodies, made positive semidefinite. apply computes y += K v
 * for n displacements at once; v and y [n_body][3][n], v in Angstrom. */
typedef struct {
    const void *context;
    void (*apply)(const void *context, int n, const double *v, double *y);
} tsr_hessian;

/* State of a chain, for moves whose proposals depend on more than the
 * structure. */
typedef struct {
    const tsr_topology *topology;
    double beta;         /* inverse temperature: power of the likelihood */
    const double *theta; /* all parameters of the chain */
    int contrast; /* index of c1 in theta, c2 follows; -1: no such parameters */
    const double *profile; /* [n_q] current mean profile over the states, as the
                              likelihood's terms get it */
    const double *others; /* [n_pair][n_q] partial profiles of the other states,
                             summed with their weights; NULL: a single state */
    double weight;        /* of the state that the move changes */
    const tsr_conformation *current; /* conformation of that state */
} tsr_move_context;

/* A parameter whose value the move proposes together with a structure. */
typedef struct {
    int index;    /* in theta; -1: the move proposes no parameter */
    double value; /* the proposed value */
} tsr_coupled_parameter;

typedef struct tsr_move_type tsr_move_type;

/* The extra interface of a move that proposes for many chains in one launch, on
 * a device for example. All chains make such a proposal at the same steps of
 * the run, once in a period that follows from weight and cost. A launcher
 * belongs to one engine (sampler/chain.h) and makes one workspace for each
 * half of a thread's chains. A workspace runs one job for each of these
 * chains. */
typedef struct {
    const tsr_move_type
        *state_owner; /* the move whose state holds what this move learns */
    int turns_many_torsions; /* 1: a proposal turns many torsions, so that moves
                                which only turn torsions get a smaller weight */
    int is_mid_period; /* 1: launched in the middle of its period, and replaces
                          another launch that is due at the same step; 0:
                          launched at multiples of its period */

    /* Cost of one proposal in ordinary steps of a chain, by which proposals are
     * made less often. */
    double (*cost)(const void *launcher, const tsr_topology *topology);

    /* Allocates the launcher's part of a new state of state_owner. Returns 0
     * when out of memory. */
    int (*extend_state)(tsr_pool *pool, void *state, const void *launcher);

    void (*launcher_free)(void *launcher);
    tsr_status (*workspace_new)(void *launcher, int max_jobs, void **workspace,
                                tsr_err *err);
    void (*workspace_free)(void *workspace);

    /* Writes the input of one chain's job. key: key of the job's random
     * numbers. */
    tsr_status (*job)(void *workspace, int job, const void *state,
                      const tsr_move_context *context, const uint32_t key[2],
                      tsr_err *err);
    /* Starts jobs 0..n_job-1 of a workspace; wait returns once their results
     * are complete. wait NULL: start returns with the results. */
    tsr_status (*start)(void *workspace, int n_job, tsr_err *err);
    tsr_status (*wait)(void *workspace, tsr_err *err);

    /* Reads the end of a job: fills `proposed` and `proposal` as `propose` of
     * other moves does, and *along if a parameter was proposed (index -1 on
     * entry). */
    tsr_status (*result)(const void *workspace, int job,
                         const tsr_move_context *context,
                         tsr_conformation *proposed, tsr_proposal *proposal,
                         tsr_coupled_parameter *along, tsr_err *err);

    /* Called during warm-up after a result was accepted or rejected. context:
     * the chain's state after that decision. */
    void (*learn)(const void *workspace, int job, void *state,
                  const tsr_move_context *context, int accepted);
} tsr_move_launch;

/* A move: its options and its functions. */
struct tsr_move_type {
    const char *name;
    const char *doc;     /* one line */
    const char *source;  /* publication */
    size_t options_size; /* the options begin with `double weight` */
    const tsr_field *fields;
    int only_torsions; /* 1: a proposal changes nothing but torsions */

    /* NULL: the move makes its own proposals, one at a time. Otherwise, of the
     * functions below only state_new and archive are used, and only if the move
     * is its own state_owner. */
    const tsr_move_launch *launch;

    /* Allocates a chain's state in the pool; borrows all arguments. Returns
     * NULL when out of memory. */
    void *(*state_new)(tsr_pool *pool, const void *options,
                       const tsr_topology *topology, const tsr_prior *prior);

    /* Number of torsions, windows or other targets that the move could change
     * in this molecule; with 0 the run does not use the move. */
    int (*n_target)(const void *options, const tsr_topology *topology);

    /* Draws a proposal. `proposed` equals `current` on entry and may be written
     * anywhere. Fills all of *proposal. If no proposal is possible, sets n_span
     * to 0 and leaves `proposed` equal to `current`. The caller moves attached
     * chains (tsr_proposal_move_attached). */
    void (*propose)(void *state, const tsr_conformation *current,
                    tsr_conformation *proposed, gsl_rng *rng,
                    tsr_proposal *proposal);

    /* For tests: computes proposal->log_ratio again from the two conformations,
     * without the random numbers that led from one to the other. Exchanging the
     * conformations changes the sign. NULL: the move is symmetric, and
     * log_ratio is always 0. */
    double (*log_ratio)(const void *state, const tsr_conformation *current,
                        const tsr_conformation *proposed,
                        const tsr_proposal *proposal);

    /* Warm-up only: adapts step sizes to the acceptance probability of the
     * latest proposal. NULL: nothing is adapted. */
    void (*adapt)(void *state, const tsr_proposal *proposal,
                  double accept_probability);

    /* Warm-up only, after each decision on a proposal of this move: adapts to
     * the Hessian at the current structure. NULL: the move does not use the
     * Hessian. If no data term provides a Hessian, a run leaves out moves with
     * this function. */
    void (*learn)(void *state, const tsr_conformation *current,
                  const tsr_hessian *hessian);

    /* Saves or restores what the move has learnt; no other part of its state
     * outlives a proposal. The real numbers must be quantities that can be
     * averaged over chains at one temperature, such as logarithms of widths or
     * covariances. state NULL, only for moves with a launch: the chain has no
     * state at present. NULL: the move learns nothing. */
    void (*archive)(void *state, tsr_archive *archive);
};

/* Weight of a move among all moves: the first member of every move's options.
 * options NULL: the run does not use the move. */
static inline double tsr_move_weight(const void *options)
{
    return options != NULL ? *(const double *)options : 0.0;
}

/* All moves. X(pivot) stands for the struct tsr_move_pivot. */
#define TSR_MOVES(X) \
    X(pivot)         \
    X(crankshaft)    \
    X(concerted)     \
    X(side_chain)    \
    X(rigid_body)    \
    X(regrow)        \
    X(collective)    \
    X(place)         \
    X(surrogate)     \
    X(redraw)

#define X(name) extern const tsr_move_type tsr_move_##name;
TSR_MOVES(X)
#undef X

#define X(name) TSR_MOVE_##name,
enum { TSR_MOVES(X) TSR_N_MOVE };
#undef X

/* All moves as an array that ends with NULL. */
extern const tsr_move_type *const tsr_move_registry[];

/* Robbins-Monro update of a log step size towards a target acceptance
 * probability (Andrieu & Thoms 2008). n: number of earlier updates; the gain
 * falls as n^-0.6. Returns the increment of the log step size. */
double tsr_move_robbins_monro(long n, double accept_probability, double target);

/* Draws placements of all mobile chains until each is in contact
 * (tsr_prior_is_in_contact) without forbidden overlaps, or, after 1000 draws,
 * with some. Returns 0 where one still is not in contact, or out of memory. */
int tsr_place_chains(const tsr_prior *prior, gsl_rng *rng,
                     tsr_conformation *conformation);

/* A field `target` of a move's options, of type double. */
#define TSR_FIELD_TARGET(options, value)                                      \
    {                                                                         \
        .name = "target", .type = TSR_FIELD_DOUBLE,                           \
        .offset = offsetof(options, target), .initial = (value), .min = 0.01, \
        .max = 0.99, .doc = "acceptance rate that warm-up aims at"            \
    }

/* A step size that warm-up learns. The log width of a step is the sum of two
 * log_step: one common to all targets of a move, and one of the target. */
typedef struct {
    long n; /* number of updates */
    double log_step;
} tsr_step;

/* Returns exp(common + own), at most max_width. own: the step of the target. */
double tsr_step_width(const tsr_step *common, const tsr_step *own,
                      double max_width);

/* Updates both by an acceptance probability (tsr_move_robbins_monro). Their sum
 * does not exceed log(max_width). */
void tsr_step_adapt(tsr_step *common, tsr_step *own, double accept_probability,
                    double target, double max_width);

/* Saves or restores n step sizes. */
void tsr_step_archive(tsr_step *step, size_t n, tsr_archive *archive);

#endif

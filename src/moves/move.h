/* Moves: one file each, one const struct each, one line in TSR_MOVES below.
 * docs/extend.md has a whole example.
 *
 * A move changes a copy of the current conformation and says what it changed.
 * It knows the model and a random stream, nothing of likelihood or device. */
#ifndef TSR_MOVES_MOVE_H
#define TSR_MOVES_MOVE_H

#include "core/archive.h"
#include "core/field.h"
#include "core/pool.h"
#include "core/random.h"
#include "molecule/topology.h"
#include "prior/prior.h"

#include <stdint.h>

/* How stiffly the data hold the bodies of a structure where they are: K, the
 * second derivatives of -log L by their places, positive. y += K v for n
 * displacements of all of them at once, v and y [n_body][3][n]. */
typedef struct {
    const void *context;
    void (*apply)(const void *context, int n, const double *v, double *y);
} tsr_hessian;

/* Where a chain is, for moves that go by more than its structure. */
typedef struct {
    const tsr_topology *topology;
    double beta;         /* power of the likelihood */
    const double *theta; /* the chain's parameters */
    int contrast;        /* place of c1 and c2 among them; -1: there are none */
    const double *profile; /* what the likelihood's terms see */
    const double *others;  /* [n_pair][n_q] weighted sum of the other states'
                              partial profiles; NULL: there are none */
    double weight;         /* of the state that moves */
    const tsr_conformation *current; /* of that state */
} tsr_move_context;

/* A parameter that moves along with the structure. */
typedef struct {
    int at; /* in theta; -1: none does */
    double to;
} tsr_move_along;

typedef struct tsr_move_type tsr_move_type;

/* What a move has whose proposals are made for many chains at once, by a device
 * say: all chains make them at the same steps of the run, one launch of jobs
 * for the chains of a thread. A launcher (of an engine's share,
 * sampler/chain.h) makes rooms, of which each thread has one. */
typedef struct {
    const tsr_move_type *keeper; /* the move whose state has what is learnt */
    int turns_much; /* a proposal is many turns of torsions: moves that do
                       nothing else are made seldom beside it */
    int is_between; /* due in the middle of its period, and then before a move
                       that is due as well */

    /* A proposal takes as long as so many other steps. */
    double (*cost)(const void *launcher, const tsr_topology *topology);

    /* Room in a new state of the keeper. 0: out of memory. */
    int (*open)(tsr_pool *pool, void *state, const void *launcher);

    void (*launcher_free)(void *launcher);
    tsr_status (*workspace_new)(void *launcher, int most_jobs, void **workspace,
                                tsr_err *err);
    void (*workspace_free)(void *workspace);

    /* One chain's job; key: for its random numbers. */
    tsr_status (*job)(void *workspace, int job, const void *state,
                      const tsr_move_context *context, const uint32_t key[2],
                      tsr_err *err);
    tsr_status (*run)(void *workspace, int n_job, tsr_err *err);

    /* The end of a job as `propose` of other moves gives it, and the parameter
     * that moved along, which is -1 on entry. */
    tsr_status (*result)(const void *workspace, int job,
                         const tsr_move_context *context,
                         tsr_conformation *proposed, tsr_proposal *proposal,
                         tsr_move_along *along, tsr_err *err);

    /* Warm-up only, once a result was decided: place is where the chain is. */
    void (*learn)(const void *workspace, int job, void *state,
                  const tsr_move_context *context, int accepted);
} tsr_move_launch;

struct tsr_move_type {
    const char *name;
    const char *doc;     /* one line */
    const char *source;  /* where it was published */
    size_t options_size; /* the options begin with `double weight` */
    const tsr_field *fields;
    int only_turns; /* torsions */

    /* NULL: the move makes its own proposals, one at a time. Of the functions
     * below others have those of a state, if they keep one, and no more. */
    const tsr_move_launch *launch;

    /* A chain's own state, in memory of the pool; NULL: there was none. Borrows
     * all. */
    void *(*state_new)(tsr_pool *pool, const void *options,
                       const tsr_topology *topology, const tsr_prior *prior);

    /* How many things it could move here; 0 leaves it out of the run. */
    int (*n_target)(const void *options, const tsr_topology *topology);

    /* Draws a proposal into `proposed`, which equals `current` on entry; fills
     * all of it. Where nothing could be proposed, n_span is 0 and `proposed`
     * as it was. Chains that ride on what moved (molecule/topology.h) are taken
     * along by the caller. */
    void (*propose)(void *state, const tsr_conformation *current,
                    tsr_conformation *proposed, gsl_rng *rng,
                    tsr_proposal *proposal);

    /* proposal->log_ratio once more, from the two conformations alone (the
     * order of the draws is not used): with the two exchanged it gives the
     * negative. For tests; `proposal` is one that `propose` filled. NULL: the
     * move is symmetric, and log_ratio always 0. */
    double (*log_ratio)(const void *state, const tsr_conformation *current,
                        const tsr_conformation *proposed,
                        const tsr_proposal *proposal);

    /* Warm-up only: learns from the acceptance probability of the proposal
     * that it drew last. */
    void (*adapt)(void *state, const tsr_proposal *proposal,
                  double accept_probability);

    /* Warm-up only, after each of its proposals was decided: learns from the
     * stiffness of the structure as it now is. NULL: it has no use for it.
     * Moves that have are left out where no data say it. */
    void (*learn)(void *state, const tsr_conformation *current,
                  const tsr_hessian *stiffness);

    /* Saves or restores what was learnt; nothing else outlives a proposal. Its
     * real numbers are such that chains at one temperature may take the mean of
     * theirs: logarithms of widths, covariances. state NULL, of moves with a
     * launch alone: the chain has none now. */
    void (*archive)(void *state, tsr_archive *archive);
};

/* Every move's options begin with its weight. options NULL: it is not used. */
static inline double tsr_move_weight(const void *options)
{
    return options != NULL ? *(const double *)options : 0.0;
}

/* All moves, by the names of their structs: X(pivot) is tsr_move_pivot. */
#define TSR_MOVES(X) \
    X(pivot)         \
    X(crankshaft)    \
    X(concerted)     \
    X(side_chain)    \
    X(rigid_body)    \
    X(regrow)        \
    X(pose)          \
    X(collective)    \
    X(surrogate)     \
    X(redraw)

#define X(name) extern const tsr_move_type tsr_move_##name;
TSR_MOVES(X)
#undef X

#define X(name) TSR_MOVE_##name,
enum { TSR_MOVES(X) TSR_N_MOVE };
#undef X

/* The same as a list, which ends with NULL. */
extern const tsr_move_type *const tsr_move_registry[];

/* Robbins-Monro step towards a wanted acceptance (Andrieu & Thoms 2008): the
 * gain falls as n^-0.6. Returns what to add to a log step size. */
double tsr_move_learn(long n, double accept_probability, double target);

/* A field `target` of a move's options, a double. */
#define TSR_FIELD_TARGET(options, value)                                      \
    {                                                                         \
        .name = "target", .type = TSR_FIELD_DOUBLE,                           \
        .offset = offsetof(options, target), .initial = (value), .min = 0.01, \
        .max = 0.99, .doc = "acceptance rate that warm-up aims at"            \
    }

/* Step sizes that warm-up learns: a common one, and each target's own on top.
 */
typedef struct {
    long n; /* proposals learnt from */
    double log_step;
} tsr_step;

/* The width of a step: both together, at most `most`. */
double tsr_step_width(const tsr_step *common, const tsr_step *own, double most);

/* Both learn from an acceptance probability (tsr_move_learn). */
void tsr_step_learn(tsr_step *common, tsr_step *own, double accept_probability,
                    double target, double most);

/* Saves or restores n of them. */
void tsr_step_archive(tsr_step *step, size_t n, tsr_archive *archive);

#endif

/* Moves: one file each, one const struct each, one line in TSR_MOVES below.
 * docs/extend.md has a whole example.
 *
 * A move changes a copy of the current conformation and says what it changed.
 * It knows the model and a random stream, nothing of likelihood or device. */
#ifndef TSR_MOVES_MOVE_H
#define TSR_MOVES_MOVE_H

#include "core/archive.h"
#include "core/field.h"
#include "core/random.h"
#include "molecule/topology.h"
#include "prior/prior.h"

/* How stiffly the data hold the bodies of a structure where they are: K, the
 * second derivatives of -log L by their places, positive. y += K v for n
 * displacements of all of them at once, v and y [n_body][3][n]. */
typedef struct {
    const void *context;
    void (*apply)(const void *context, int n, const double *v, double *y);
} tsr_stiffness;

typedef struct {
    const char *name;
    const char *doc;     /* one line */
    const char *source;  /* where it was published */
    size_t options_size; /* the options begin with `double weight` */
    const tsr_field *fields;
    int only_turns; /* torsions, as the steps of walks do */

    /* A chain's own state, or NULL when out of memory. Borrows all. */
    void *(*state_new)(const void *options, const tsr_topology *topology,
                       const tsr_prior *prior);
    void (*state_free)(void *state);

    /* How many things it could move here; 0 leaves it out of the run. */
    int (*n_target)(const void *options, const tsr_topology *topology);

    /* NULL: it is the chain that makes the proposals, by the surrogate, of all
     * chains at the same steps.
     * Draws a proposal into `proposed`, which equals `current` on entry; fills
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
                  const tsr_stiffness *stiffness);

    /* Saves or restores what was learnt; nothing else outlives a proposal. Its
     * real numbers are such that chains at one temperature may take the mean of
     * theirs: logarithms of widths, covariances. */
    void (*archive)(void *state, tsr_archive *archive);
} tsr_move_type;

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
        .max = 0.99, .doc = "acceptance that warm-up aims at"                 \
    }

#endif

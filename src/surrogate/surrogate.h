/* Walks and redraws by a surrogate: many Metropolis steps of many molecules in
 * one launch of a device, or a stretch of a chain drawn anew on the host, by a
 * cheap stand-in for the posterior.
 *
 * What a molecule is, is common to all walks (tsr_surrogate_spec); where one
 * starts and by what it goes is a job, two runs of numbers. A walk of n steps
 * keeps its target, written g here, exactly as any Metropolis chain does: each
 * step is one of a fixed mix of proposals. Whoever asked decides about its end
 * by the posterior p itself, with the probability
 *
 *     min(1, p(Y) g(X) / (p(X) g(Y))),
 *
 * and has then drawn from p, whatever g is (surrogate transition: Liu 2001,
 * Monte Carlo Strategies in Scientific Computing, 9.4.3; Christen & Fox 2005).
 *
 * g is a product of torsion densities, excluded volume between bodies, and
 * exp(beta L): the normal likelihood of curves, scale and background at their
 * best. Curves are summed from counted distances between beads. A bead is one
 * body where the chain is flexible, and several residues of a rigid unit
 * elsewhere; its form factor is a sum of two shapes of q, the same for all,
 * each in an amount of its own that grows with c2.
 *
 * The surrogate of a run stands for the curves of X-rays alone, whose errors
 * are taken to be normal with the measured sigma, s and the model's own
 * error; scale and background, where they are free, are at their best. What
 * beads get wrong on average, the ratio of the engine's curve to theirs, is
 * learnt in warm-up; in lar, of two domains, the surrogate is then within a nat
 * of the likelihood. Side chains, bond angles, other data and other parameters
 * stay while a molecule walks. */
#ifndef TSR_SURROGATE_SURROGATE_H
#define TSR_SURROGATE_SURROGATE_H

#include "core/log.h"
#include "gpu/device.h"
#include "likelihood/likelihood.h"
#include "moves/move.h"
#include "prior/prior.h"

#include <stdint.h>

/* ---- a molecule, and a job ---- */

/* Products of two shapes: 00, 01, 11. */
enum {
    TSR_SURROGATE_SHAPES = 2,
    TSR_SURROGATE_PRODUCTS = 3,
    TSR_SURROGATE_POWERS = 3, /* of c2: 1, c2, c2^2 */
    TSR_SURROGATE_PARTS = 24, /* of a torsion density at most */
    TSR_SURROGATE_CELLS = 36, /* of phi, and of psi, from -pi on */
    TSR_SURROGATE_FREE = 7,   /* torsions of a linker that cannot close */
    TSR_SURROGATE_FACTOR = 36 /* numbers of a lower factor, 8 x 8 at most */
};

/* Points are what moves: bodies of rigid residues, and of flexible ones N, CB,
 * the side chain's centre, CA, C, O in this order, so that any torsion turns a
 * run of points. A point, a bead or a body is named by its number. */
typedef struct {
    int n_point, n_bead, n_part, n_body, n_pair, n_torsion, n_slot, n_like;
    int n_knot, n_q, n_curve, has_c2, n_linker;
    int32_t (*bead)[4];  /* [n_bead] first part, parts, first body, bodies */
    int32_t (*reach)[2]; /* [n_bead] its points lie in first..end-1 */
    float *radius;       /* [n_bead] Angstrom, of its bodies' centres */
    int32_t *part;       /* [n_part] points; of a bead of several bodies part k
                            is its k-th body */
    float *share;        /* [n_part] weights: a bead is where these say */
    int32_t (*body)[4];  /* [n_body] contact type, residue, chain, unit or -1 */
    float *contact;      /* [n_like][n_like] Angstrom */
    float cutoff, inverse_softness, limit; /* Angstrom, 1 / Angstrom, nat */
    uint16_t (*pair)[2];   /* [n_pair] beads whose distance may change */
    int32_t (*torsion)[4]; /* [n_torsion] axis from, to; points that turn */
    int32_t (*turn)[4];    /* [n_torsion] slot, 0 phi or 1 psi, the torsion
                              next to it inside what it turns (-1: none), sign
                              of the angle */
    int32_t (*edge)[2];    /* [n_torsion] the points before it end, those after
                              it begin here */
    int32_t (*linker)[8];  /* [n_linker] first torsion, torsions; 1: what comes
                              after moves, -1: what comes before; the end, or
                              first, of the points of the chain; points: middle
                              of the part that moves, middle of the part that
                              stays, and another one of it */
    int32_t *density;      /* [n_slot] which of the densities */
    int n_density;
    float (*term)[TSR_SURROGATE_PARTS][12]; /* [n_density] log of each part by
                                the nine products of cos and sin; 0 beyond */
    int32_t *n_term;                        /* [n_density] parts */
    uint32_t (*cell)[TSR_SURROGATE_CELLS * TSR_SURROGATE_CELLS];
    /* [n_density] by which torsions are drawn (tsr_torsion_density_cells) */
    float dq_inv_ang;    /* curves are at q = 0, dq, 2 dq, ... */
    float knots_per_ang; /* distances are shared by two knots */
    float *sinc;         /* [n_knot][n_q] of a knot's distance */
} tsr_surrogate_spec;

/* Where the numbers of a job stand. */
typedef struct {
    int head;   /* [8] beta, c2, its prior's mean, width, low and high; how
                   many steps */
    int unit;   /* [PRODUCTS] of counts, which are integers: so many to 1 */
    int angle;  /* [n_slot][2] phi, psi, rad */
    int width;  /* [n_torsion + 1 + n_linker] of turns, rad; of steps of c2;
                   of turns of linkers that close */
    int factor; /* [n_linker][FACTOR] lower factor of the covariance of the
                   steps that the part beyond makes (a rotation vector, rad,
                   and a shift in units of 10 Angstrom), or, where there are
                   at most FREE torsions, of their turns */
    int amount; /* [n_bead][4] of the two shapes, and times c2 */
    int shape;  /* [SHAPES][n_q] whose amounts these are; two beads scatter
                   the product of theirs */
    int rest;   /* [POWERS][n_q] what does not change */
    int top;    /* [POWERS][n_q] by which the profile is multiplied, */
    int bottom; /* [POWERS][n_q] and divided */
    int curve;  /* [n_curve]: rows [n_q][n_q + 1], target [n_q + 1], scale (0:
                   the best) */
    int size;
    int n_row, curve_size;
} tsr_surrogate_layout;

tsr_surrogate_layout tsr_surrogate_layout_of(const tsr_surrogate_spec *spec);

/* A result: log g at the start and at the end, c2 there; the profiles of start
 * and end without `top` and `bottom` [2][n_q]; what every torsion was turned by
 * [n_torsion], rad; what factors learn from [n_linker][FACTOR]: sums of
 * (a - 0.25) u u' / |u|^2 over steps F u accepted with probability a. */
enum { TSR_SURROGATE_HEAD = 3 };

static inline int tsr_surrogate_result_size(const tsr_surrogate_spec *spec)
{
    return TSR_SURROGATE_HEAD + 2 * spec->n_q + spec->n_torsion +
           spec->n_linker * TSR_SURROGATE_FACTOR;
}

static inline int tsr_surrogate_linker_rows(const tsr_surrogate_spec *spec,
                                            int linker)
{
    const int n = spec->linker[linker][1];
    return n > TSR_SURROGATE_FREE ? 6 : n;
}

/* Kinds of steps that are counted: torsions, c2, and of every linker those that
 * leave the part beyond and those that move it. */
static inline int tsr_surrogate_n_count(const tsr_surrogate_spec *spec)
{
    return spec->n_torsion + 1 + 2 * spec->n_linker;
}

/* What chains ask for at once. */
typedef struct {
    int n_job;
    float *job;         /* [n_job][layout.size] */
    float (*point)[4];  /* [n_job][n_point] Angstrom */
    uint32_t (*key)[2]; /* [n_job] of their random numbers */
    float *result;      /* [n_job][tsr_surrogate_result_size] out */
    int32_t (
        *count)[2]; /* [n_job][tsr_surrogate_n_count] steps, accepted; out */
} tsr_surrogate_call;

typedef struct tsr_surrogate tsr_surrogate;
typedef struct tsr_surrogate_walker tsr_surrogate_walker;
typedef struct tsr_surrogate_engine tsr_surrogate_engine;

/* A device that walks. Threads may make walkers of it and use each on its own.
 */
struct tsr_surrogate_engine {
    const tsr_surrogate_spec *spec; /* borrowed */
    void (*free)(tsr_surrogate_engine *engine);
    tsr_status (*walker_new)(tsr_surrogate_engine *engine, int most_jobs,
                             tsr_surrogate_walker **out, tsr_err *err);
    tsr_status (*walk)(tsr_surrogate_walker *walker, tsr_err *err);
    void (*walker_free)(tsr_surrogate_walker *walker);

    /* set by whoever made it */
    const tsr_surrogate *surrogate; /* borrowed; what chains go by, of which
                                       this is the spec */
    double walk_cost; /* walks are made so many times as seldom as their weight
                         says; 0 counts as 1 */
};

/* Its room is for most_jobs; whoever uses it fills `call` and reads it. */
struct tsr_surrogate_walker {
    tsr_surrogate_engine *engine;
    tsr_surrogate_layout layout;
    tsr_surrogate_call call;
};

/* As tsr_move_launch has them, of an engine and a walker; NULL: none. */
void tsr_surrogate_engine_free(void *engine);
tsr_status tsr_surrogate_walker_new(void *engine, int most_jobs, void **walker,
                                    tsr_err *err);
void tsr_surrogate_walker_free(void *walker);

/* ---- those that walk ---- */

/* By a kernel on an OpenCL device (kernels/surrogate.cl), which is built for
 * the molecule. Device and spec are borrowed. Errors: TSR_E_DEVICE (*out NULL),
 * also where a work-group's memory is too small for the molecule; TSR_E_NOMEM.
 */
tsr_status tsr_surrogate_device_new(const tsr_device *device,
                                    const tsr_surrogate_spec *spec,
                                    tsr_surrogate_engine **out, tsr_err *err);

/* Stretches drawn anew, on the host: linkers and tails take another of many
 * thousands of shapes at once.
 *
 * A curve holds the distance of two domains to a few tenths of an Angstrom, so
 * that of some 10^5 draws of a linker from the prior one will do. So many are
 * had by halves: with n draws of each half of a stretch, n^2 shapes of the
 * whole are candidates, and which of them have the right distance costs a
 * nanosecond each to say. Half k of the present shape is one of the draws, so
 * that the candidates are the same seen from any of them, and choosing one as g
 * says keeps g (Neal, Beal & Roweis 2003, embedded hidden Markov models;
 * Tjelmeland 2004). Let C be the candidates in a shell of distances that holds
 * the present one at a place drawn at random. g is a product of what is ever
 * dearer to say: torsions and each half's own overlaps, w0; the other overlaps,
 * w1; the curve, w2, summed over values of c2 that lie on a grid through the
 * present one. Of a set that holds the present member x, n draws by weights w
 * and x itself are another such set, in which what is left of g decides
 * (iterated sampling importance resampling: Andrieu, Lee & Vihola 2018). So 256
 * are drawn by w0, of these 64 by w1, and the end by w2.
 *
 * A job is that of a walk, of which only its place counts. A result has 0 and
 * the change of log g for log g at the start and at the end, and their bare
 * profiles (NaN where nothing could be drawn). */

/* How many stretches there are to draw; 0: none, and there is no engine. */
int tsr_redraw_n_stretch(const tsr_surrogate_spec *spec);

/* Borrows the spec. NULL: out of memory. */
tsr_surrogate_engine *tsr_redraw_engine_new(const tsr_surrogate_spec *spec);

/* ---- the move that walks ---- */

/* Where walks are made. */
enum { TSR_SURROGATE_ON_AUTO, TSR_SURROGATE_ON_GPU, TSR_SURROGATE_ON_ALL };

typedef struct {
    double weight;
    int on;
    long steps; /* at most */
    double target;
} tsr_surrogate_options;

/* What a state of tsr_move_surrogate has learnt. */
typedef struct {
    tsr_surrogate_options options;
    int n_width, n_ratio, n_linker;
    double log_steps;  /* of a walk */
    long n_learnt;     /* walks that these and the ratio were learnt from */
    long n_redrawn;    /* redraws that the ratio was, too */
    long *n_seen;      /* [n_width] walks that each width was learnt from */
    double *log_width; /* [n_width] of the torsions that walk, of c2, of linkers
                          that close */
    int *size;         /* [n_linker] rows of each factor */
    long *n_step;      /* [n_linker] walks that each was learnt from */
    double (*factor)[TSR_SURROGATE_FACTOR]; /* [n_linker] of steps of linkers:
                          lower, of their covariance */
    double *ratio; /* [n_ratio] the engine's curve over that of beads, - 1 */
} tsr_surrogate_state;

/* ---- the surrogate of a run's posterior ---- */

/* 0: there is nothing to go by: no curve of X-rays, other probes beside them,
 * errors that are not about normal, data that hold the molecule in space,
 * chains that ride on others, no torsion to turn. likelihood NULL: none. */
int tsr_surrogate_applies(const tsr_topology *topology,
                          const tsr_likelihood *likelihood);

/* Shared by all chains of all threads; borrows all but `first`, whose rigid
 * units say how their beads lie. The likelihood's terms know the model's error
 * already. *out NULL: there is nothing to go by. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_new(const tsr_topology *topology,
                             const tsr_prior *prior,
                             const tsr_prior_table *table,
                             const tsr_likelihood *likelihood,
                             const tsr_conformation *first, tsr_surrogate **out,
                             tsr_err *err);
void tsr_surrogate_free(tsr_surrogate *surrogate);

/* The likelihood's terms have learnt of another error; between two walks.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_update(tsr_surrogate *surrogate, tsr_err *err);

const tsr_surrogate_spec *tsr_surrogate_spec_of(const tsr_surrogate *surrogate);

/* What a chain asks where it is, by what it has learnt: job [layout.size],
 * point [n_point] out. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_fill(const tsr_surrogate *surrogate,
                              const tsr_surrogate_layout *layout,
                              const tsr_surrogate_state *learnt,
                              const tsr_move_context *context, float *job,
                              float (*point)[4], tsr_err *err);

/* Turns the conformation by change_rad [n_torsion], as a walk has. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_surrogate_turn(const tsr_surrogate *surrogate,
                              const float *change_rad, tsr_conformation *to,
                              tsr_err *err);

/* Warm-up: learns the ratio from the engine's curve where a chain is and that
 * of a walk there [n_q]; n: how many times before. */
void tsr_surrogate_learn(const tsr_surrogate *surrogate,
                         const tsr_move_context *context, const float *walked,
                         long n, double *ratio);

/* ---- both moves in a run ---- */

/* Everything is borrowed. */
typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    const tsr_prior_table *table;
    const tsr_likelihood *likelihood;
    const tsr_conformation *first;
    const void *const *move_options; /* [TSR_N_MOVE] */
    int is_frozen;                   /* 1: nothing moves */
    int n_device;
    tsr_device *const *device; /* [n_device] NULL: the reference engine */
} tsr_surrogate_run;

/* Whether chains will walk: on all devices or on none, since chains on them
 * have the same moves. */
int tsr_surrogate_walks(const tsr_surrogate_run *run);

/* Launchers of both moves, where they are made, for each device: launcher
 * [n_device][TSR_N_MOVE] out, to be freed before *out. *out NULL: neither is
 * made. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_open(const tsr_surrogate_run *run, tsr_log *log,
                              void **const *launcher, tsr_surrogate **out,
                              tsr_err *err);

/* ---- beads, which tests look at ----
 *
 * A bead of a unit stands for a few residues, and its own form factor is round.
 * What that loses, the beads of a unit can give back together: with amounts a
 * of the shapes s(q) they have the amplitude
 *
 *     B(q) = sum over beads b and shapes m of a_mb s_m(q) exp(i q x_b),
 *
 * and a is chosen such that the mean of |B - A|^2 over all directions, A the
 * amplitude of the unit's bodies, or of its particles, is least in a weighted
 * sum over q. The mean of exp(i q (x - y)) is sinc(q |x - y|), so that all sums
 * are known, and a solves linear equations. Beads are nearer to each other than
 * the curve can tell, so a is held near what it was (ridge regression). What
 * other units and flexible residues see of the unit, products of its amplitude
 * with theirs, is as good as B. */

/* Bodies first..first+count-1, which move as one; of a flexible residue one
 * body, unit -1. */
typedef struct {
    int first, count, unit;
} tsr_bead;

void tsr_bead_centre(const tsr_bead *bead, const double (*body)[3],
                     double x[3]);

typedef struct {
    int n_bead, n_body, n_q;
    double dq_inv_ang, width_inv_ang; /* of the weight, a normal in q */
    const double (*centre)[3];        /* [n_bead] Angstrom */
    const double (*body)[3];          /* [n_body] Angstrom */
    const double *factor;             /* [n_body][n_q] form factors */
    const double *shape;              /* [SHAPES][n_q] */
    double *amount;                   /* [SHAPES][n_bead] in and out */
} tsr_unit_beads;

/* 0: out of memory. Amounts stay where the equations have no solution. */
int tsr_unit_fit(const tsr_unit_beads *unit);

/* sinc(j x), j = 0 to n_q - 1, by the recurrence of sin(j x). */
void tsr_sinc_series(int n_q, double x, double *out);

#endif

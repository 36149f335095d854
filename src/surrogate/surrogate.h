/* A cheap surrogate of the posterior, and two moves that use it: walks of many
 * Metropolis steps for many chains in one launch on a device, and redraws of a
 * stretch of a chain on the host.
 *
 * All walks share the description of the molecule (tsr_surrogate_spec). A job
 * holds the starting point and the parameters of one walk, as an array of
 * numbers and an array of points. A walk is an ordinary Metropolis chain of n
 * steps with a fixed mixture of proposals, and leaves the surrogate density g
 * invariant. The sampler accepts the end Y of a walk from X by the posterior p
 * itself, with the probability
 *
 *     min(1, p(Y) g(X) / (p(X) g(Y))),
 *
 * and so samples p, whatever g is (surrogate transition: Liu 2001, Monte Carlo
 * Strategies in Scientific Computing, 9.4.3; Christen & Fox 2005).
 *
 * g is a product of torsion densities, excluded volume between bodies, the
 * prior of c2, and exp(beta L). L is a normal log likelihood of curves. Curves
 * are computed from histograms of distances between beads. A bead is one body
 * in flexible residues, and several residues in a rigid unit. The form factor
 * of a bead is a sum of two shapes, which are functions of q common to all
 * beads. Each shape is multiplied by an amount that is linear in c2.
 *
 * The surrogate of a run covers only X-ray curves. Their errors are taken as
 * normal, with the measured sigma times s and the model's own error. Where
 * scale and background are free, they take their best values. Warm-up learns
 * the mean error of the bead model, as the ratio of the engine's curve to that
 * of beads. In the two-domain benchmark `lar` the surrogate is then within a
 * nat of the likelihood. Side chains, bond angles and other parameters do not
 * change in a walk, and other data are not used. */
#ifndef TSR_SURROGATE_SURROGATE_H
#define TSR_SURROGATE_SURROGATE_H

#include "core/log.h"
#include "gpu/device.h"
#include "likelihood/likelihood.h"
#include "moves/move.h"
#include "prior/prior.h"

#include <stdint.h>

/* ---- a molecule, and a job ---- */

/* The products of two shapes are 0 0, 0 1 and 1 1. */
enum {
    TSR_SURROGATE_SHAPES = 2,
    TSR_SURROGATE_PRODUCTS = 3,
    TSR_SURROGATE_POWERS = 3, /* of c2: 1, c2, c2^2 */
    TSR_SURROGATE_PARTS =
        24, /* largest number of components of a torsion density */
    TSR_SURROGATE_CELLS =
        36, /* number of cells of phi, and of psi, from -pi on */
    TSR_SURROGATE_FREE = 7,   /* a linker with at most so many torsions is not
                                 closed; its torsions turn freely */
    TSR_SURROGATE_FACTOR = 36 /* elements of a lower factor, at most 8 x 8 */
};

/* The molecule of walks. Points are all that moves: the bodies of rigid
 * residues, and N, CB, the side-chain centre, CA, C, O of flexible residues. In
 * this order every torsion moves a contiguous range of points. A slot is a
 * residue with both torsions free. Points, beads, bodies and slots are referred
 * to by index. */
typedef struct {
    int n_point, n_bead, n_part, n_body, n_pair, n_torsion, n_slot,
        n_contact_type;
    int n_knot, n_q, n_curve, has_c2, n_linker;
    int32_t (*bead)[4]; /* [n_bead] first part, number of parts, first body,
                           number of bodies */
    int32_t (*point_range)[2]; /* [n_bead] range first..end-1 of its points */
    float *radius; /* [n_bead] of a sphere around the centres of its bodies,
                      Angstrom; 0: a single body */
    int32_t *part; /* [n_part] point of each part; in a bead of several bodies
                      part k is body k */
    float *part_weight; /* [n_part] the centre of a bead is the weighted mean of
                           its parts */
    int32_t (
        *body)[4]; /* [n_body] contact type, residue, chain, rigid unit or -1 */
    float *contact; /* [n_contact_type][n_contact_type] Angstrom */
    float cutoff, inverse_softness, limit; /* Angstrom, 1 / Angstrom, nat */
    uint16_t (*pair)[2]; /* [n_pair] pairs of beads whose distance can change */
    int32_t (*torsion)[4]; /* [n_torsion] points of the axis, from and to; range
                              of points that turn */
    int32_t (*turn)[4]; /* [n_torsion] slot; 0 phi or 1 psi; the other torsion
                           of the peptide plane on the moving side (-1: none);
                           sign of the angle */
    int32_t (*point_bounds)[2]; /* [n_torsion] end of the points before the
                                   torsion, begin of the points after it */
    int32_t (
        *linker)[8]; /* [n_linker] 0: first torsion; 1: number of torsions; 2: 1
                        if the C side moves, -1 if the N side moves; 3: end of
                        the moving points (N side: begin); 4: point in the
                        middle of the moving part; 5: point in the middle of the
                        other part; 6: another point of the other part */
    int32_t *density; /* [n_slot] index of the slot's torsion density */
    int n_density;
    float (
        *term)[TSR_SURROGATE_PARTS]
              [12];  /* [n_density] log density of each component: coefficients
                        of the nine products of cos and sin; 0 beyond */
    int32_t *n_term; /* [n_density] number of components */
    uint32_t (*cell)[TSR_SURROGATE_CELLS * TSR_SURROGATE_CELLS];
    /* [n_density] table from which torsions are drawn
     * (tsr_torsion_density_cells) */
    float dq_inv_ang; /* curves are at q = 0, dq, 2 dq, ... */
    float
        knots_per_ang; /* a distance is divided between the two nearest knots */
    float *sinc;       /* [n_knot][n_q] sinc at a knot's distance */
} tsr_surrogate_spec;

/* Offsets of the quantities in a job. */
typedef struct {
    int head; /* [8] beta; c2 and mean, width, low and high of its prior; number
                 of steps */
    int count_unit; /* [PRODUCTS] integer count that represents a product of
                       amounts equal to 1 */
    int angle;      /* [n_slot][2] phi, psi, rad */
    int width;  /* [n_torsion + 1 + n_linker] step widths: of torsions, rad; of
                   c2; of torsions of closed linkers, rad. Jobs of redraws have
                   instead, for each stretch, the probability that a redraw of
                   it is tried */
    int factor; /* [n_linker][FACTOR] lower factor of the covariance of the
                   moving part's steps (a rotation vector, rad, and a shift in
                   units of 10 Angstrom), or, with at most FREE torsions, of the
                   turns of the linker */
    int amount; /* [n_bead][4] amounts of both shapes, then their derivatives by
                   c2 */
    int shape;  /* [SHAPES][n_q] the shapes */
    int constant;  /* [POWERS][n_q] part of the profile that does not change, by
                      power of c2 */
    int numerator; /* [POWERS][n_q] factor of the profile */
    int denominator; /* [POWERS][n_q] divisor of the profile */
    int curve; /* [n_curve] of each curve: rows [n_q][n_row], target [n_row],
                  scale (0: the best scale) */
    int size;  /* numbers in a job */
    int n_row, curve_size; /* n_q + 1; numbers of one curve */
} tsr_surrogate_layout;

tsr_surrogate_layout tsr_surrogate_layout_of(const tsr_surrogate_spec *spec);

/* A result consists of log g at the start and at the end; c2 at the end; the
 * profiles at start and end without numerator and denominator [2][n_q]; the
 * total turn of each torsion [n_torsion], rad; and the data from which factors
 * are learnt [n_linker][FACTOR]: sums of (a - 0.25) u u' / |u|^2 over steps F u
 * accepted with probability a. */
enum { TSR_SURROGATE_HEAD = 3 };

/* Numbers in a result. */
static inline int tsr_surrogate_result_size(const tsr_surrogate_spec *spec)
{
    return TSR_SURROGATE_HEAD + 2 * spec->n_q + spec->n_torsion +
           spec->n_linker * TSR_SURROGATE_FACTOR;
}

/* Rows of a linker's factor: 6 for steps of the moving part, or the number of
 * its torsions. */
static inline int tsr_surrogate_linker_rows(const tsr_surrogate_spec *spec,
                                            int linker)
{
    const int n = spec->linker[linker][1];
    return n > TSR_SURROGATE_FREE ? 6 : n;
}

/* Number of kinds of steps that are counted: each torsion, c2, and for each
 * linker steps that leave the moving part in place, then steps that move it. */
static inline int tsr_surrogate_n_count(const tsr_surrogate_spec *spec)
{
    return spec->n_torsion + 1 + 2 * spec->n_linker;
}

/* Jobs of a launch. */
typedef struct {
    float *job;          /* [n_job][layout.size] */
    float (*point)[4];   /* [n_job][n_point] Angstrom */
    uint32_t (*key)[2];  /* [n_job] keys of random numbers */
    float *result;       /* [n_job][tsr_surrogate_result_size] out */
    int32_t (*count)[2]; /* [n_job][tsr_surrogate_n_count] steps made, steps
                            accepted; out */
} tsr_surrogate_call;

typedef struct tsr_surrogate tsr_surrogate;

/* A launcher of tsr_move_launch: a device that makes walks, or the host for
 * redraws. */
typedef struct {
    const tsr_surrogate_spec *spec; /* borrowed */

    /* set by the owner */
    const tsr_surrogate *surrogate; /* borrowed; writes the jobs */
    int is_on_gpu;                  /* 1: walks cost the host little */
} tsr_surrogate_engine;

/* A workspace of tsr_move_launch, for the jobs of a half of a thread's chains.
 * The caller fills `call` and reads the results. */
typedef struct {
    tsr_surrogate_engine *engine;
    tsr_surrogate_layout layout;
    tsr_surrogate_call call;
} tsr_surrogate_walker;

/* ---- engines ----
 *
 * Functions of tsr_move_launch for both kinds. Freeing NULL does nothing.
 * Errors: TSR_E_DEVICE, TSR_E_NOMEM. */

void tsr_walk_engine_free(void *engine);
tsr_status tsr_walker_new(void *engine, int max_jobs, void **walker,
                          tsr_err *err);
void tsr_walker_free(void *walker);
tsr_status tsr_walker_start(void *walker, int n_job, tsr_err *err);
tsr_status tsr_walker_wait(void *walker, tsr_err *err);

/* A redraw engine is freed by free(). */
tsr_status tsr_redrawer_new(void *engine, int max_jobs, void **redrawer,
                            tsr_err *err);
void tsr_redrawer_free(void *redrawer);
tsr_status tsr_redrawer_run(void *redrawer, int n_job, tsr_err *err);

/* Makes an engine that runs walks by a kernel on an OpenCL device
 * (kernels/surrogate.cl), compiled for this molecule. Borrows device and spec.
 * *out is NULL after an error. Errors: TSR_E_DEVICE (also if a work-group has
 * too little memory for the molecule), TSR_E_NOMEM. */
tsr_status tsr_surrogate_device_new(const tsr_device *device,
                                    const tsr_surrogate_spec *spec,
                                    tsr_surrogate_engine **out, tsr_err *err);

/* Redraws: a linker or a tail is replaced by one of many thousands of candidate
 * shapes, on the host.
 *
 * A curve determines the distance of two domains to a few tenths of an
 * Angstrom. Of about 10^5 draws of a linker from the prior, one fits. So many
 * candidates are combined from halves: n draws of each half of a stretch give
 * n^2 shapes, and testing the distance of each takes a nanosecond. The present
 * shape of each half is among the draws of that half. The set of candidates is
 * therefore the same whichever candidate is the present shape, and a choice
 * with probabilities proportional to g leaves g invariant (Neal, Beal & Roweis
 * 2003, embedded hidden Markov models; Tjelmeland 2004).
 *
 * Candidates are limited to a shell of distances, which contains the present
 * distance at a uniformly random position. g is a product of factors of
 * increasing cost: w0, torsions and the overlaps within each half; w1, the
 * other overlaps; w2, the curve, summed over values of c2 on a grid through the
 * present value. n draws from a set, with weights w, and the present shape
 * together form a smaller set. Choosing from the smaller set by the remaining
 * factors of g also leaves g invariant (iterated sampling importance
 * resampling: Andrieu, Lee & Vihola 2018). 256 candidates are drawn by w0, 64
 * of these by w1, and the final one by w2.
 *
 * A redraw uses the job of a walk, except step widths and factors. In its
 * result log g is 0 at the start and the change of log g at the end. The
 * profiles are those without numerator and denominator, or NaN if no redraw was
 * tried or possible. The first count of a stretch is 1 if its redraw was
 * tried. */

/* Number of stretches (linkers and tails) that can be redrawn. Redraws need at
 * least one. */
int tsr_redraw_n_stretch(const tsr_surrogate_spec *spec);

/* Makes an engine that runs redraws. Borrows the spec. NULL: out of memory. */
tsr_surrogate_engine *tsr_redraw_engine_new(const tsr_surrogate_spec *spec);

/* ---- the move `surrogate` ---- */

/* Devices that make walks. */
enum { TSR_SURROGATE_ON_AUTO, TSR_SURROGATE_ON_GPU, TSR_SURROGATE_ON_ALL };

/* Options of the move `surrogate`. */
typedef struct {
    double weight;
    int on;                   /* TSR_SURROGATE_ON_AUTO, _GPU or _ALL */
    tsr_number_or_word steps; /* auto, or largest number of steps in a walk */
    double target;            /* acceptance probability of walks aimed at */
} tsr_surrogate_options;

/* A chain's state of tsr_move_surrogate: what both moves have learnt. */
typedef struct {
    tsr_surrogate_options options;
    double most_steps; /* largest number of steps in a walk */
    int n_width, n_ratio, n_linker;
    double log_steps;  /* log of the number of steps in a walk */
    long n_learnt;     /* walks from which log_steps and ratio were learnt */
    long n_redrawn;    /* redraws from which ratio was learnt */
    long *n_seen;      /* [n_width] walks from which each width was learnt */
    double *log_width; /* [n_width] of torsions, of c2, of closed linkers */
    double *redrawn; /* [n_width] share of the redraws of each stretch that were
                        accepted */
    int *size;       /* [n_linker] rows of each factor */
    long *n_step;    /* [n_linker] walks from which each factor was learnt */
    double (*factor)[TSR_SURROGATE_FACTOR]; /* [n_linker] lower factor of the
                                               covariance of a linker's steps */
    double *ratio; /* [n_ratio] the engine's curve divided by that of beads,
                      minus 1 */
} tsr_surrogate_state;

/* ---- the surrogate of a run's posterior ---- */

/* Returns 0 if no surrogate can be made: no likelihood (NULL), no X-ray curve,
 * a second probe or view, a curve with the noise model `relative` or with
 * interference between particles, data that depend on the position in space,
 * attached chains, guests on flexible residues, or no torsion to turn. */
int tsr_surrogate_applies(const tsr_topology *topology,
                          const tsr_likelihood *likelihood);

/* Makes the surrogate that all chains of all threads share. Borrows topology
 * and likelihood. first: the coordinates of rigid units. The model's error must
 * already be set in the likelihood's terms. *out NULL: no surrogate can be made
 * (tsr_surrogate_applies), or no distance between beads can change. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_surrogate_new(const tsr_topology *topology,
                             const tsr_prior *prior,
                             const tsr_prior_table *table,
                             const tsr_likelihood *likelihood,
                             const tsr_conformation *first, tsr_surrogate **out,
                             tsr_err *err);
void tsr_surrogate_free(tsr_surrogate *surrogate);

/* Must be called, while no job is written, after the model's error in the
 * likelihood's terms has changed. After an error the surrogate is as before.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_update(tsr_surrogate *surrogate, tsr_err *err);

const tsr_surrogate_spec *tsr_surrogate_spec_of(const tsr_surrogate *surrogate);

/* Writes the job of a chain at its current state: job [layout.size], zeroed
 * before the first use, and point [n_point], Angstrom from the molecule's
 * centre; both out. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_write_job(const tsr_surrogate *surrogate,
                                   const tsr_surrogate_layout *layout,
                                   const tsr_surrogate_state *learnt,
                                   const tsr_move_context *context, float *job,
                                   float (*point)[4], tsr_err *err);

/* Turns the torsions of a conformation by change_rad [n_torsion], the turns of
 * a result. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_apply_turns(const tsr_surrogate *surrogate,
                                     const float *change_rad,
                                     tsr_conformation *to, tsr_err *err);

/* Warm-up: updates ratio [n_q] (in and out; tsr_surrogate_state) by the
 * engine's curve at the chain's state. walked [n_q]: profile of a result at
 * that state, without numerator and denominator. n: number of earlier
 * updates. */
void tsr_surrogate_update_ratio(const tsr_surrogate *surrogate,
                                const tsr_move_context *context,
                                const float *walked, long n, double *ratio);

/* ---- both moves in a run ---- */

/* All pointers are borrowed. */
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

/* Returns 1 if chains are to make walks. Either all devices make walks or no
 * device does, so that chains on different devices have the same moves. */
int tsr_surrogate_is_possible(const tsr_surrogate_run *run);

/* Makes the launchers of both moves for each device. launcher
 * [n_device][TSR_N_MOVE]: NULL on entry; entries of moves that are made are
 * set, and the caller frees them before *out, also after an error. *out NULL:
 * neither move is made. If a device cannot make walks, no device does, and the
 * log has a warning. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_launchers_new(const tsr_surrogate_run *run,
                                       tsr_log *log, void **const *launcher,
                                       tsr_surrogate **out, tsr_err *err);

/* ---- beads (public for tests) ----
 *
 * A bead of a rigid unit stands for a few residues, but scatters like a sphere.
 * The amounts of all beads of a unit together can correct most of this error.
 * With amounts a of the shapes s(q) their amplitude is
 *
 *     B(q) = sum over beads b and shapes m of a_mb s_m(q) exp(i q x_b).
 *
 * The amounts minimise the orientational mean of |B - A|^2, summed over q with
 * weights, where A is the amplitude of the unit's bodies. The mean
 * of exp(i q (x - y)) is sinc(q |x - y|), so that the amounts solve linear
 * equations with known coefficients. Beads are closer to each other than the
 * resolution of the curve, so the amounts are regularised towards their initial
 * values (ridge regression). The scattering between the unit and all other
 * beads is a product with the unit's amplitude, and is therefore as accurate as
 * B. */

/* A bead: bodies first..first+count-1, which move rigidly together. In a
 * flexible residue a bead is one body, with unit -1. */
typedef struct {
    int first, count, unit;
} tsr_bead;

/* Centre of a bead, Angstrom: the mean of its bodies. */
void tsr_bead_centre(const tsr_bead *bead, const double (*body)[3],
                     double x[3]);

/* A rigid unit for tsr_unit_fit. */
typedef struct {
    int n_bead, n_body, n_q;
    double dq_inv_ang;
    double width_inv_ang;      /* width of the Gaussian weight in q */
    const double (*centre)[3]; /* [n_bead] Angstrom */
    const double (*body)[3];   /* [n_body] Angstrom */
    const double *factor;      /* [n_body][n_q] form factors */
    const double *shape;       /* [SHAPES][n_q] */
    double *amount;            /* [SHAPES][n_bead] in and out */
} tsr_unit_beads;

/* Fits the amounts of a unit's beads. Returns 0 when out of memory. If the
 * equations have no solution, the amounts do not change. */
int tsr_unit_fit(const tsr_unit_beads *unit);

/* out [n_q]: sinc(j x) for j = 0 to n_q - 1, by the recurrence of sin(j x). */
void tsr_sinc_series(int n_q, double x, double *out);

#endif

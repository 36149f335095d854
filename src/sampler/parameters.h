/* A chain's parameters beside the structure: their table, and the steps on
 * them.
 *
 * The table (core/parameter.h) lists the parameters of every likelihood term,
 * then those of the equilibrium of species, c1 and c2, and the weights of the
 * states in every mixture. A block is a
 * set of parameters that are proposed together: one parameter of a noise model,
 * one direction in the plane of c1 and c2, all weights of a mixture (a step
 * redistributes two of them), or scale with background. A step on a block never
 * calls the engine. sampler/chain.c accepts or rejects the step. */
#ifndef TSR_SAMPLER_PARAMETERS_H
#define TSR_SAMPLER_PARAMETERS_H

#include "core/archive.h"
#include "core/pool.h"
#include "core/random.h"
#include "likelihood/likelihood.h"

/* Parameters that are proposed together. */
typedef struct {
    tsr_step_kind kind;
    tsr_scope scope; /* first quantity to recompute after a step
                        (core/parameter.h) */
    int term;        /* number of the term with these parameters; -1: no term */
    int mixture;     /* mixture whose terms alone are recomputed; -1: all */
    int first, n;    /* range in the table; scale with background: `first` is
                        the first of the two, n is 1 */
    int axis;        /* TSR_STEP_AXES: number of the principal axis, 0 or 1 */
    const char *name;
} tsr_block;

/* Steps since the last reset. */
typedef struct {
    long proposed, accepted;
} tsr_parameter_counts;

/* What warm-up adapts; belongs to a temperature. */
typedef struct {
    long n;               /* warm-up steps so far */
    double *log_step;     /* [n_block] logarithms of the step sizes */
    double n_seen;        /* number of pairs of c1 and c2 averaged */
    double mean[2];       /* running mean, in units of the priors' widths */
    double covariance[3]; /* covariance 00, 01, 11, likewise */
    double angle; /* from the axis of c1 to the first principal axis, rad */
    tsr_parameter_counts counts;
} tsr_parameter_learnt;

/* A chain's table of parameters, its blocks, and what the steps have
 * adapted. */
typedef struct {
    int n;
    tsr_parameter *table;   /* [n] */
    int contrast;           /* index of c1; -1: the model has no c1 and c2 */
    int weight;             /* index of the first weight */
    int n_mixture, n_state; /* weights [n_mixture][n_state] */
    int n_block;
    tsr_block *block; /* [n_block] in the order of the steps */
    tsr_parameter_learnt learnt;
} tsr_parameters;

/* likelihood NULL: no terms. contrast [TSR_N_CONTRAST]: c1 and c2; NULL: the
 * model has none. infer_weights 0: the weights stay equal. The pool owns the
 * memory. Returns NULL when out of memory. */
tsr_parameters *tsr_parameters_new(tsr_pool *pool,
                                   const tsr_likelihood *likelihood,
                                   const tsr_parameter *contrast, int n_state,
                                   int infer_weights);

/* Start values, theta [n] out. */
void tsr_parameters_start(const tsr_parameters *parameters, double *theta);

/* Sum of the log prior densities, nat. */
double tsr_parameters_log_prior(const tsr_parameters *parameters,
                                const double *theta);

/* c1 and c2 in theta [n]; NULL: the model has none. */
const double *tsr_parameters_contrast(const tsr_parameters *parameters,
                                      const double *theta);

/* Proposes new values for one block.
 * trial->theta  [n]  in   equal to now->theta
 *                    out  with the proposal
 * *to, *from         out  nat; to - from is the change of the log acceptance
 *                         ratio by prior, measure and proposal density
 * beta               in   power of the likelihood
 * Returns 0 where the prior density of the new values is 0, so that the step
 * must be rejected. */
int tsr_parameters_propose(const tsr_parameters *parameters, int block,
                           const tsr_likelihood *likelihood,
                           const tsr_point *now, tsr_point *trial, double beta,
                           gsl_rng *rng, double *to, double *from);

/* In warm-up: tsr_parameters_learn adapts a block's step size to the acceptance
 * probability alpha of its step. tsr_parameters_learn_axes, called after the
 * steps on all blocks, updates the principal axes of c1 and c2. */
void tsr_parameters_learn(tsr_parameters *parameters, int block, double alpha);
void tsr_parameters_learn_axes(tsr_parameters *parameters, const double *theta);

/* Saves or restores what warm-up adapted, and the counters. */
void tsr_parameters_archive(tsr_parameters *parameters, tsr_archive *archive);

#endif

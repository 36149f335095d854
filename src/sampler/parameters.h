/* A chain's parameters beside the structure: their table, and the steps on
 * them.
 *
 * The table (core/parameter.h) has the parameters of every likelihood
 * term, then c1 and c2, then the weights of the states. Those that are proposed
 * together are a block: one parameter of a noise model, one direction in the
 * plane of c1 and c2, two weights, scale with background. A step on a block
 * costs no engine call; sampler/chain.c accepts it. */
#ifndef TSR_SAMPLER_PARAMETERS_H
#define TSR_SAMPLER_PARAMETERS_H

#include "core/archive.h"
#include "core/pool.h"
#include "core/random.h"
#include "likelihood/likelihood.h"

typedef struct {
    tsr_step_kind kind;
    tsr_scope scope; /* what a step on it changes */
    int term;        /* whose parameters; -1: the run's */
    int first, n;    /* of the table */
    int which;       /* AXES: the direction, 0 or 1 */
    const char *name;
} tsr_block;

/* Steps since the last reset. */
typedef struct {
    long proposed, accepted;
} tsr_parameter_counts;

/* What warm-up learns; it belongs to a temperature. */
typedef struct {
    long n;           /* steps learnt from */
    double *log_step; /* [n_block] sizes of the steps */
    double n_seen;    /* of c1 and c2, in units of their priors' widths: */
    double mean[2], square[3]; /* mean, covariance 00 01 11 */
    double angle;              /* of its first principal axis */
    tsr_parameter_counts counts;
} tsr_parameter_learnt;

typedef struct {
    int n;
    tsr_parameter *table; /* [n] */
    int contrast;         /* place of c1; -1: there is none */
    int weight, n_state;  /* place of the first weight */
    int n_block;
    tsr_block *block; /* [n_block] in the order of the steps */
    tsr_parameter_learnt learnt;
} tsr_parameters;

/* likelihood NULL: no terms; contrast [TSR_N_CONTRAST] NULL: no c1 and c2. In
 * memory of the pool; NULL: there was none. */
tsr_parameters *tsr_parameters_new(tsr_pool *pool,
                                   const tsr_likelihood *likelihood,
                                   const tsr_parameter *contrast, int n_state,
                                   int infer_weights);

/* Where all start: theta [n] out. */
void tsr_parameters_start(const tsr_parameters *parameters, double *theta);

/* log density of their priors, nat. */
double tsr_parameters_log_prior(const tsr_parameters *parameters,
                                const double *theta);

/* c1 and c2 in theta [n]; NULL: there are none. */
const double *tsr_parameters_contrast(const tsr_parameters *parameters,
                                      const double *theta);

/* A proposal for a block, trial->theta, which equals now->theta on entry.
 * to, from: what adds to the log of the acceptance for the new values and
 * against the old ones (prior, measure, density of the proposal). Returns 0
 * where the new values cannot be. */
int tsr_parameters_propose(const tsr_parameters *parameters, int block,
                           const tsr_likelihood *likelihood,
                           const tsr_point *now, tsr_point *trial, double beta,
                           gsl_rng *rng, double *to, double *from);

/* Warm-up: a block learns from the probability of acceptance of its step;
 * after the steps on all blocks, the axes from the values. */
void tsr_parameters_learn(tsr_parameters *parameters, int block, double alpha);
void tsr_parameters_learn_axes(tsr_parameters *parameters, const double *theta);

/* Saves or restores what was learnt, and the counters. */
void tsr_parameters_archive(tsr_parameters *parameters, tsr_archive *archive);

#endif

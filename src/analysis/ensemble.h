/* The posterior over ensembles of given conformations, a pool: models of
 * another program, of NMR or of a simulation, or draws of the prior.
 *
 *     I(q) = c sum_j w_j I(q; x_j, c1, c2) + b,     j = 1..k
 *
 * The sample holds k members x_j, each drawn from the pool with equal
 * probability. Their weights w_j have a flat Dirichlet prior, as the states of
 * a run, or are equal (`copies`: one conformation can be several members).
 *
 * Few members are the discrete ensembles of MultiFoXS or EOM. Many copies are
 * maximum entropy: the prior of the shares that conformations have among k
 * copies falls as exp(-k KL(shares || pool)) (Sanov 1957), so the number of
 * copies is theta of Hummer & Koefinger 2015 (J. Chem. Phys. 143, 243150) and
 * of Bottaro, Bengtsen & Lindorff-Larsen 2020 (Methods Mol. Biol. 2112, 219),
 * and the evidence over k determines theta. k = 0 stands for the limit: the
 * whole pool with equal weights.
 *
 * The likelihood is that of a run with `bodies: atoms` and `noise: measured`:
 * scale and background are integrated out; c1, c2 and log s have the priors of
 * runs, or are fixed (docs/pools.md). */
#ifndef TSR_ANALYSIS_ENSEMBLE_H
#define TSR_ANALYSIS_ENSEMBLE_H

#include "likelihood/noise.h"
#include "scattering/profile_fit.h"

#include <stdint.h>

enum {
    TSR_ENSEMBLE_NODES = 5,
    TSR_ENSEMBLE_PARTS = 2 * TSR_ENSEMBLE_NODES + 1
};

/* Parameters of an ensemble: c1, c2 and the log of s in sigma = s sigma_exp. */
enum { TSR_ENSEMBLE_LOG_S = TSR_N_CONTRAST, TSR_ENSEMBLE_PARAMETERS };

/* The curves of a pool. A curve at any c1 and c2 is a sum of n_part curves: one
 * for each power of c2 and each of n_node values of c1, between which a
 * polynomial interpolates. A curve over sigma is kept as its coordinates along
 * `axis`, orthonormal curves that are added as the pool needs them: what lies
 * outside changes no residual sum by more than 0.01 sigma. */
typedef struct {
    tsr_pool pool;        /* owns the arrays */
    const tsr_saxs *saxs; /* the data, borrowed */
    tsr_linear linear;
    tsr_parameter parameter[TSR_ENSEMBLE_PARAMETERS];
    int n_node, n_part;
    double node[TSR_ENSEMBLE_NODES]; /* c1 */
    int n, n_dim, room;              /* conformations, axes, reserved axes */
    int most;                        /* reserved conformations */
    double *u, *d;                   /* [n_point] 1 / sigma, data over sigma */
    double *axis;                    /* [n_point][n_point] */
    float *score;                    /* [n][n_part][room] */
    double scale;                    /* c of the first conformation */
    double log_sigma;                /* sum of log sigma */
    double one_norm, one_data, data_norm; /* products of u and d */
    double *one, *data;                   /* [n_dim] coordinates of both */
} tsr_ensemble_pool;

/* An empty pool for `most` conformations. contrast: priors or fixed values of
 * c1 and c2. The scale is inferred. The prior of s is that of `noise:
 * measured`. The caller clears out->pool, also after an error. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_ensemble_pool_make(const tsr_saxs *saxs,
                                  const tsr_linear *linear,
                                  const tsr_parameter contrast[TSR_N_CONTRAST],
                                  int most, tsr_ensemble_pool *out,
                                  tsr_err *err);

/* The part curves of a conformation at the data's q: part [n_part][n_point]
 * out, electrons squared. matrix [n_point][n_q]: operator from the grid of the
 * partial profiles, which have three components. Errors: TSR_E_NOMEM. */
tsr_status tsr_ensemble_parts(const tsr_ensemble_pool *pool,
                              const tsr_partials *partials,
                              const double *matrix, double *part, tsr_err *err);

/* Adds a conformation. Errors: TSR_E_NOMEM, TSR_E_NUMERIC (not finite). */
tsr_status tsr_ensemble_pool_add(tsr_ensemble_pool *pool, const double *part,
                                 tsr_err *err);

/* A kind of ensemble. */
typedef struct {
    int n_member;  /* k; 0: the whole pool with equal weights */
    int is_copies; /* 1: members have equal weights */
} tsr_ensemble_kind;

/* Scale, background and fit at a draw. */
typedef struct {
    double theta[TSR_ENSEMBLE_PARAMETERS];
    double log_lik;           /* nat, c and b integrated out */
    double chi2;              /* sum of squares at the best c and b over N */
    double scale, background; /* drawn from their conditional */
} tsr_ensemble_draw;

/* log P(D | ensemble, theta) of members [n] (indices) with weights [n]; the
 * draw's theta in, its other members out. rng NULL:
 * scale and background are the best. fit [n_point] out, at this scale and
 * background; or NULL. Errors: TSR_E_NOMEM. */
tsr_status tsr_ensemble_evaluate(const tsr_ensemble_pool *pool, int n,
                                 const int *member, const double *weight,
                                 gsl_rng *rng, tsr_ensemble_draw *draw,
                                 double *fit, tsr_err *err);

typedef struct {
    tsr_ensemble_kind kind;
    int n_group, n_draw;     /* independent populations, and draws of each */
    int *member;             /* [n_group][n_draw][k] */
    double *weight;          /* [n_group][n_draw][k] */
    tsr_ensemble_draw *draw; /* [n_group][n_draw] */
    double *log_z;           /* [n_group] estimates of the log evidence, nat */
} tsr_ensemble_sample;

/* Sequential Monte Carlo (Del Moral, Doucet & Jasra 2006) from prior to
 * posterior, by n_group independent populations of n_draw ensembles. At each
 * temperature members are drawn from their conditional among themselves and
 * random conformations of the pool; weights and parameters make random walks.
 * sample [n_kind]: kind, n_group and n_draw in, the rest out, in memory of
 * `memory`. Results depend on the seed and not on threads. Errors: TSR_E_NOMEM,
 * TSR_E_INTERRUPTED, TSR_E_NUMERIC (no ensemble has a finite likelihood). */
tsr_status tsr_ensemble_run(const tsr_ensemble_pool *pool, int n_kind,
                            tsr_ensemble_sample *sample, uint64_t seed,
                            int n_thread, tsr_pool *memory, tsr_err *err);

enum { TSR_ENSEMBLE_GROUPS = 20 };

/* Groups of conformations with similar curves, at c1 and c2: k-means, from
 * centres that are farthest from each other. Distances are those of the scaled
 * curves over sigma. group [n] out, from 0; centre [n_group] out: the
 * conformation nearest to the mean of its group. Returns the number of groups,
 * at most n_group <= TSR_ENSEMBLE_GROUPS: fewer where all curves lie within
 * `least` of a centre. 0: no memory. */
int tsr_ensemble_groups(const tsr_ensemble_pool *pool,
                        const double contrast[TSR_N_CONTRAST], double least,
                        int n_group, int *group, int *centre);

#endif

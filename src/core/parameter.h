/* Parameters of the posterior other than the structure: scale and background of
 * a curve, noise parameters, excluded volume c1, hydration c2, weights of the
 * states.
 *
 * Each parameter is one entry of a table: its name, its prior, the coordinate
 * in which chains store it, the kind of step that proposes it, and the
 * quantities to recompute when it changes. A change of a parameter never
 * requires an engine call.
 *
 * Chains store the coordinate theta. Theta is the value itself, or, if is_log
 * is set, log(value - low), which is unbounded. */
#ifndef TSR_CORE_PARAMETER_H
#define TSR_CORE_PARAMETER_H

#include "core/field.h"
#include "core/random.h"

/* Forms of the prior. */
typedef enum {
    TSR_PRIOR_FLAT,       /* improper; log density 0 */
    TSR_PRIOR_NORMAL,     /* normal distribution of theta */
    TSR_PRIOR_CUT_NORMAL, /* normal distribution of the value, truncated to
                             [low, high] and normalised; is_log is 0 */
    TSR_PRIOR_UNIFORM, /* uniform distribution of theta on [mean - width, mean +
                          width]: log-uniform of the value with is_log */
    TSR_PRIOR_GAMMA,   /* gamma distribution of the value, truncated to values
                          above low and normalised; is_log is 1 */
    TSR_PRIOR_SIMPLEX  /* flat on weights with sum 1 (Dirichlet with all
                          exponents 1). The weights of all states are one block
                          with one prior */
} tsr_prior_shape;

/* How a parameter is proposed. */
typedef enum {
    TSR_STEP_NONE,       /* not proposed: fixed, or integrated out */
    TSR_STEP_WALK,       /* random walk in theta */
    TSR_STEP_AXES,       /* random walk of two parameters along the principal
                            axes of their covariance */
    TSR_STEP_PAIR,       /* redistributes the sum of two weights */
    TSR_STEP_CONDITIONAL /* by its likelihood term, from a distribution close
                            to its conditional */
} tsr_step_kind;

/* The scope of a change: the first quantity of this list that must be
 * recomputed. All quantities after it in the list follow. */
typedef enum {
    TSR_CHANGES_MEAN,      /* mean of the states' partial profiles */
    TSR_CHANGES_PROFILE,   /* profile at c1 and c2 */
    TSR_CHANGES_FIT,       /* fit of the term to the profile */
    TSR_CHANGES_LIKELIHOOD /* likelihood of the term */
} tsr_scope;

/* A parameter of the posterior. */
typedef struct {
    const char *name, *unit, *doc; /* as in the trace */
    int infer;                     /* 0: fixed at `start` */
    int is_log;
    double start;     /* theta */
    double low, high; /* bounds of the value */
    tsr_prior_shape shape;
    double mean, width; /* NORMAL, CUT_NORMAL, UNIFORM: of theta */
    double log_norm;    /* CUT_NORMAL, SIMPLEX: log of the normalising factor */
    double gamma_k, rate; /* GAMMA: shape k and rate; density of the value in
                             proportion to value^(k - 1) exp(-rate value) */
    tsr_step_kind step;
    tsr_scope scope;
    double skip_fraction; /* fraction of a chain's steps that skip this
                             parameter, if its step costs much more than a step
                             of the structure */
} tsr_parameter;

/* Conversion between the coordinate theta and the value. */
double tsr_parameter_value(const tsr_parameter *parameter, double theta);
double tsr_parameter_theta(const tsr_parameter *parameter, double value);

/* Log prior density of theta, nat: normalised, except that FLAT gives 0;
 * -infinity outside the support; 0 if the parameter is fixed. For a SIMPLEX,
 * the first weight gives the density of all weights, and each other weight
 * 0. */
double tsr_parameter_log_prior(const tsr_parameter *parameter, double theta);

/* Prior density of the value for a plot: values x and densities y, [n] out,
 * over the range with nearly all of the probability. For a SIMPLEX, the density
 * of a single weight among n_weight. Returns 0, with nothing in x and y, if the
 * parameter is fixed or its prior is FLAT. */
int tsr_parameter_density(const tsr_parameter *parameter, int n_weight, int n,
                          double *x, double *y);

/* Quantiles of a CUT_NORMAL prior at the midpoints of n equal probability
 * intervals: value [n] out. Returns n; 1, with the fixed value, if the
 * parameter is fixed. */
int tsr_parameter_quantiles(const tsr_parameter *parameter, int n,
                            double *value);

/* A positive parameter, proposed by a random walk. If `value` is a word
 * ("infer"), the prior is log-normal with median `middle` and standard
 * deviation `width` of the logarithm; else the parameter is fixed at the
 * number. */
tsr_parameter tsr_parameter_log_normal(const char *name, const char *unit,
                                       const char *doc,
                                       tsr_number_or_word value, double middle,
                                       double width, tsr_scope scope);

#endif

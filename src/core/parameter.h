/* A parameter of the posterior beside the structure: an entry of a table.
 *
 * Scale and background of a curve, the parameters of its noise, excluded volume
 * c1 and hydration c2, the weights of the states: each entry says what the
 * parameter is called, what its prior is, in which coordinate chains hold it,
 * which kind of step proposes it and what has to be computed anew when it
 * changes. None of them needs the engine.
 *
 * Chains hold the coordinate theta: the value itself, or, where is_log is set,
 * log(value - low), which has no bounds. */
#ifndef TSR_CORE_PARAMETER_H
#define TSR_CORE_PARAMETER_H

#include "core/field.h"
#include "core/random.h"

typedef enum {
    TSR_PRIOR_FLAT,       /* improper: its log density counts as 0 */
    TSR_PRIOR_NORMAL,     /* of theta */
    TSR_PRIOR_CUT_NORMAL, /* of theta, cut to [low, high] and normalised there
                           */
    TSR_PRIOR_GAMMA,      /* of the value, cut below at low */
    TSR_PRIOR_SIMPLEX     /* flat on the weights that add up to 1 (a Dirichlet
                             density with all exponents 1); one block */
} tsr_prior_shape;

/* Who proposes a parameter. */
typedef enum {
    TSR_STEP_NONE,       /* nobody: it is fixed, or integrated out */
    TSR_STEP_WALK,       /* normal steps of theta */
    TSR_STEP_AXES,       /* normal steps of two parameters along the principal
                            axes of their covariance */
    TSR_STEP_PAIR,       /* two weights share their sum anew */
    TSR_STEP_CONDITIONAL /* its likelihood term, from a distribution close to
                            its conditional */
} tsr_step_kind;

/* What a change of it makes necessary, each with all that come after it. */
typedef enum {
    TSR_CHANGES_MEAN,      /* the mean of the states' partial profiles */
    TSR_CHANGES_PROFILE,   /* the profile at c1 and c2 */
    TSR_CHANGES_FIT,       /* its own term's fit to the profile */
    TSR_CHANGES_LIKELIHOOD /* its own term's likelihood alone */
} tsr_scope;

typedef struct {
    const char *name, *unit, *doc; /* as the trace tells of it */
    int infer;                     /* 0: fixed at `start` */
    int is_log;
    double start;     /* theta */
    double low, high; /* the value lies between them */
    tsr_prior_shape shape;
    double mean, width;   /* NORMAL, CUT_NORMAL: of theta */
    double log_norm;      /* CUT_NORMAL, SIMPLEX: log of the normalisation */
    double gamma_k, rate; /* GAMMA: exponent k and rate */
    tsr_step_kind step;
    tsr_scope scope;
    double skip_fraction; /* the share of a chain's steps that pass it over,
                      because a step on it costs much more than one on the
                      structure */
} tsr_parameter;

double tsr_parameter_value(const tsr_parameter *parameter, double theta);
double tsr_parameter_theta(const tsr_parameter *parameter, double value);

/* log density of theta, normalised, nat; -infinity where it may not be; 0 where
 * it is fixed. Of a SIMPLEX the first entry has the density of all. */
double tsr_parameter_log_prior(const tsr_parameter *parameter, double theta);

/* The prior density of its value, for a picture: x, y [n] over the range that
 * holds nearly all of it. n_share: of a SIMPLEX, how many weights share the
 * sum. Returns 0 where it has no density: fixed, or flat without bounds. */
int tsr_parameter_density(const tsr_parameter *parameter, int n_share, int n,
                          double *x, double *y);

/* Quantiles of a CUT_NORMAL's prior, at the middles of n equal parts: value [n]
 * out. Returns how many: one where it is fixed. */
int tsr_parameter_quantiles(const tsr_parameter *parameter, int n,
                            double *value);

/* A positive parameter: log-normal about `middle` with standard deviation
 * `width` of the logarithm where `value` is the word infer, else fixed. It is
 * proposed by a walk. */
tsr_parameter tsr_parameter_log_normal(const char *name, const char *unit,
                                       const char *doc,
                                       tsr_number_or_word value, double middle,
                                       double width, tsr_scope scope);

#endif

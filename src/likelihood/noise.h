/* P(D | X, theta) of one data set: noise models.
 *
 *     I_exp,k ~ Normal(c I(q_k; X) + b, sigma_k^2)
 *
 * c and b enter linearly and are integrated out: the prior of c is flat on
 * c > 0, that of b flat on the real line (or b is fixed). A prior log-flat in c
 * would leave no proper posterior, since the likelihood does not vanish at
 * c = 0. Values of c and b are drawn from their exact conditional when a draw
 * is stored. */
#ifndef TSR_LIKELIHOOD_NOISE_H
#define TSR_LIKELIHOOD_NOISE_H

#include "core/field.h"
#include "core/random.h"
#include "core/status.h"
#include "io/saxs.h"

typedef struct {
    int model;                /* index into tsr_noise_registry */
    tsr_number_or_word scale; /* s: infer, or a number */
    double scale_width;       /* sd of log s in its prior */
} tsr_noise_options;

enum { TSR_INFER = 0 };
extern const tsr_field tsr_noise_fields[];

enum { TSR_BACKGROUND_INFER, TSR_BACKGROUND_NONE };

/* What the likelihood keeps of one profile: enough for any s, c and b. */
typedef struct {
    double scale;      /* best c for this profile */
    double background; /* best b */
    double chi2;       /* sum of squares at both, with s = 1; not divided */
    double model_norm; /* |m'|^2: weighted norm of the model, background
                          projected out */
    double model_mean; /* weighted mean of the model; 0 with b fixed */
} tsr_fit;

typedef struct {
    const char *name, *doc, *source;

    /* matrix [saxs->n][n_q]: from the grid to the data. Copies what it needs.
     * NULL: out of memory. */
    void *(*state_new)(const tsr_noise_options *options, const tsr_saxs *saxs,
                       const double *matrix, int n_q,
                       tsr_number_or_word background);
    void (*state_free)(void *state);

    /* profile [n_q] in electrons squared, S(q) included. */
    void (*fit)(const void *state, const double *profile, tsr_fit *fit);

    /* Marginal log likelihood, nat, normalised in the data. */
    double (*log_lik)(const void *state, const tsr_fit *fit, double log_s);

    /* Draws c > 0 and b given X and s. */
    void (*draw)(const void *state, const tsr_fit *fit, double log_s,
                 gsl_rng *rng, double *scale, double *background);
} tsr_noise_type;

extern const tsr_noise_type tsr_noise_measured;
extern const tsr_noise_type *const tsr_noise_registry[]; /* ends with NULL */

#endif

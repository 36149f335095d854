/* The linear part of the model of a curve: scale c and background b.
 *
 *     I_exp,k = c m_k + b + noise,   m_k = I(q_k; X)
 *
 * Either is inferred or fixed. The prior of c is flat on c > 0, that of b flat
 * on the real line. A prior log-flat in c would leave no proper posterior,
 * since the likelihood does not vanish at c = 0. With normal errors this file
 * has the integral over both in closed form, and their exact conditional. Where
 * they are parameters of the chain instead (`nuisance: sample`, or a noise
 * model without an integral), they are proposed from their conditional, or from
 * a density close to it. */
#ifndef TSR_SCATTERING_LINEAR_H
#define TSR_SCATTERING_LINEAR_H

#include "core/field.h"
#include "core/random.h"

enum { TSR_BACKGROUND_INFER, TSR_BACKGROUND_NONE };

typedef struct {
    int infer_scale, infer_background;
    double scale, background; /* where they are fixed */
} tsr_linear;

/* Words of scale: infer; of background: infer, none. */
tsr_linear tsr_linear_make(tsr_number_or_word scale,
                           tsr_number_or_word background);

/* How many of the two are inferred. */
int tsr_linear_n_free(const tsr_linear *linear);

/* The model's own error in a likelihood: normal, along a few curves E_j, each
 * with an amplitude of variance 1. */
enum { TSR_MODEL_ERRORS = 6 };

typedef struct {
    int n;                                           /* 0: none */
    double gram[TSR_MODEL_ERRORS][TSR_MODEL_ERRORS]; /* weighted E_i . E_j, at
                                                        s = 1 */
} tsr_model_error;

/* A fit without it, and the weighted products of each E_j with what that fit
 * leaves of the data, with the model (background projected out), and with 1. */
typedef struct {
    double scale, background, square_sum, model_norm, model_mean, one_norm;
    double residual[TSR_MODEL_ERRORS], model[TSR_MODEL_ERRORS],
        one[TSR_MODEL_ERRORS];
} tsr_plain_fit;

/* What the likelihood keeps of one profile. The weights are those of the noise
 * model apart from its common factor s. */
typedef struct {
    double scale;        /* best c for this profile, of either sign */
    double background;   /* best b */
    double square_sum;   /* weighted sum of squares there, at s = 1 */
    double model_norm;   /* weighted |m|^2, background projected out */
    double model_mean;   /* weighted mean of the model; 0 with b fixed */
    double one_norm;     /* sum of the weights */
    double log_sigma;    /* sum of log sigma_k at s = 1 */
    double chi2;         /* least sum of squares by sigma_exp, for reports */
    double log_det;      /* 1/2 log |1 + E^T W E / s^2|; 0: no model error */
    tsr_plain_fit plain; /* where there is a model error */

    double *model;  /* [n] curve at the data's q, where the model needs it */
    double *weight; /* [n] scratch, likewise */
} tsr_fit;

/* Weighted least squares over n points; fills scale to one_norm of the fit.
 * model, data, weight [n]; the weights are 1 / sigma_k^2. */
void tsr_linear_fit(const tsr_linear *linear, int n, const double *model,
                    const double *data, const double *weight, tsr_fit *fit);

/* The fit with the model's own error integrated out: fills scale to one_norm,
 * and log_det, from fit->plain, for errors s sigma_k. The weights are then
 * those of the covariance s^2 W^-1 + E E^T, times s^2, so that all that follows
 * holds as it stands. Cost: n^3 / 6. */
void tsr_linear_widen(const tsr_linear *linear, const tsr_model_error *error,
                      double log_s, tsr_fit *fit);

/* fit->plain but its products, from the fit as tsr_linear_fit leaves it. */
void tsr_linear_keep(tsr_fit *fit);

/* log of the likelihood with normal errors of n points integrated over those
 * of c and b that are free, nat, normalised in the data. */
double tsr_linear_log_integral(const tsr_linear *linear, int n,
                               const tsr_fit *fit, double log_s);

/* The same likelihood at c and b, not integrated; -infinity for c <= 0. */
double tsr_linear_log_normal(int n, const tsr_fit *fit, double log_s, double c,
                             double b);

/* The distribution of c and b that a fit leaves: c about its best value with
 * standard deviation spread / |m|, cut at 0; b about its best value at that c
 * with spread / |1|. dof 0: normal, and with spread = s exactly the conditional
 * under normal errors. dof > 0: Student's t, for proposals. What is fixed stays
 * where it is. */
typedef struct {
    double spread;
    int dof;
} tsr_linear_shape;

void tsr_linear_draw(const tsr_linear *linear, const tsr_fit *fit,
                     tsr_linear_shape shape, gsl_rng *rng, double *c,
                     double *b);

/* Its log density, nat; -infinity for c <= 0. */
double tsr_linear_log_density(const tsr_linear *linear, const tsr_fit *fit,
                              tsr_linear_shape shape, double c, double b);

#endif

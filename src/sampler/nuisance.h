/* A chain's nuisance parameters: those of the noise of every data set, and c1
 * and c2 of the run.
 *
 * theta holds the noise's in coordinates without bounds (log s), c1 and c2 as
 * they are; a Metropolis step on one of them costs no engine call. Where scale
 * c and background b have no integral, or the config says so, they are the
 * chain's as well, kept in its fits: a proposal then comes with c and b of its
 * own.
 *
 * Everything here takes the inverse temperature `beta` > 0 of the likelihood: 1
 * samples the posterior. The priors of c and b are flat, so sampled ones have a
 * proper distribution only while the likelihood holds them: always for normal
 * errors, for student while beta (nu + 1) N > 2
 * (tsr_likelihood_least_beta). */
#ifndef TSR_SAMPLER_NUISANCE_H
#define TSR_SAMPLER_NUISANCE_H

#include "core/archive.h"
#include "core/random.h"
#include "likelihood/likelihood.h"

typedef struct tsr_nuisance tsr_nuisance;

/* At the values they start from or are fixed to. Both are borrowed. likelihood
 * NULL: no noise; contrast [TSR_N_CONTRAST], NULL: no c1 and c2. NULL when out
 * of memory. */
tsr_nuisance *tsr_nuisance_new(const tsr_likelihood *likelihood,
                               const tsr_contrast_prior *contrast);
void tsr_nuisance_free(tsr_nuisance *nuisance);

/* What is known of one profile, a fit for every data set, [n_data]; free()
 * frees it. NULL when out of memory. */
tsr_fit *tsr_nuisance_fits_new(const tsr_likelihood *likelihood);

/* Fits the partial profiles [n_pair][n_q] of the start or of a proposal, from
 * the engine, at the present parameters. profile [n_q] with S(q), fit, log_lik
 * out; profile may be `partial`. Errors: those of tsr_likelihood_fit. */
tsr_status tsr_nuisance_fit(const tsr_nuisance *nuisance, const double *partial,
                            double beta, gsl_rng *rng, double *profile,
                            tsr_fit *fit, double *log_lik, tsr_err *err);

/* What a step from one profile to another adds to the log of its acceptance,
 * apart from beta times the change of log_lik. */
double tsr_nuisance_log_ratio(const tsr_nuisance *nuisance, const tsr_fit *from,
                              const tsr_fit *to, double beta);

/* Metropolis steps on every inferred parameter of the noise: accepted by beta
 * times the change of the log likelihood plus that of the log prior. fit and
 * log_lik are those of the chain's present state, kept up to date. warm: the
 * step sizes learn. Errors: TSR_E_NUMERIC. */
tsr_status tsr_nuisance_update(tsr_nuisance *nuisance, double beta, int warm,
                               gsl_rng *rng, tsr_fit *fit, double *log_lik,
                               tsr_err *err);

/* c1 and c2 take a step from was [TSR_N_CONTRAST] out, in one of the directions
 * (which: TSR_C1 or TSR_C2, that is inferred) of contrast_axes.h; returns the
 * change of the log prior. The caller fits the profile anew, accepts or rejects
 * with probability alpha, and says so. */
double tsr_nuisance_propose_contrast(tsr_nuisance *nuisance, int which,
                                     gsl_rng *rng, double *was);
void tsr_nuisance_settle_contrast(tsr_nuisance *nuisance, int which,
                                  const double *was, int accept, double alpha,
                                  int warm);
int tsr_nuisance_infers_contrast(const tsr_nuisance *nuisance, int which);

/* What belongs to a temperature (sizes of the steps and how much they learnt,
 * counters) changes places between two replicas. */
void tsr_nuisance_exchange(tsr_nuisance *a, tsr_nuisance *b);

/* log density of theta, c1 and c2 in their priors, nat. */
double tsr_nuisance_log_prior(const tsr_nuisance *nuisance);

/* theta of one data set. */
const double *tsr_nuisance_theta(const tsr_nuisance *nuisance, int data);

/* c1, c2: [TSR_N_CONTRAST]. */
const double *tsr_nuisance_contrast(const tsr_nuisance *nuisance);

/* Steps on the parameters since the last reset. */
typedef struct {
    long proposed, accepted;
} tsr_nuisance_counts;

tsr_nuisance_counts tsr_nuisance_counts_get(const tsr_nuisance *nuisance);
void tsr_nuisance_counts_reset(tsr_nuisance *nuisance);

/* The likelihood of partial profiles that were computed afresh, at the
 * parameters, scale and background that the chain has; draws nothing. fit holds
 * the chain's c and b where they are sampled. Errors: those of
 * tsr_likelihood_fit. */
tsr_status tsr_nuisance_refit(const tsr_nuisance *nuisance,
                              const double *partial, double *profile,
                              tsr_fit *fit, double *log_lik, tsr_err *err);

/* Saves or restores the parameters, their steps, counters, and c and b of the
 * fits. */
void tsr_nuisance_archive(tsr_nuisance *nuisance, tsr_fit *fit,
                          tsr_archive *archive);

#endif

/* The surrogate of a run's posterior: what walks on a device go by
 * (surrogate/walker.h says what it is good for).
 *
 * It stands for torsions, excluded volume and the curves of X-rays, whose
 * errors are taken to be normal with the measured sigma, s and the model's own
 * error; scale and background, where they are free, are at their best. What
 * beads get wrong on average, the ratio of the engine's curve to theirs, is
 * learnt in warm-up; in lar, of two domains, the surrogate is then within a nat
 * of the likelihood. Side chains, bond angles, other data and other parameters
 * stay while a molecule walks. */
#ifndef TSR_SURROGATE_SURROGATE_H
#define TSR_SURROGATE_SURROGATE_H

#include "likelihood/likelihood.h"
#include "prior/prior.h"
#include "surrogate/walker.h"

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

/* The place of a chain. */
typedef struct {
    double beta;
    const double *theta;    /* of the chain's table */
    const double *contrast; /* [TSR_N_CONTRAST], or NULL: where they start */
    const double *others;   /* [n_pair][n_q] weighted sum of the other states'
                               partial profiles; NULL: there are none */
    double weight;          /* of the state that moves */
    const double *learnt;   /* [n_q] the engine's curve over the beads', - 1 */
    long steps;
    const double *log_width; /* [n_torsion + 1 + n_linker] of turns, rad; of c2;
                                of turns that close */
    const double (*factor)[TSR_SURROGATE_FACTOR]; /* [n_linker] */
    const tsr_conformation *conformation;
} tsr_surrogate_place;

/* A job (surrogate/walker.h): job [layout.size], point [n_point] out. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_surrogate_fill(const tsr_surrogate *surrogate,
                              const tsr_surrogate_layout *layout,
                              const tsr_surrogate_place *place, float *job,
                              float (*point)[4], tsr_err *err);

/* Turns the conformation by change_rad [n_torsion], as a walk has. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_surrogate_turn(const tsr_surrogate *surrogate,
                              const float *change_rad, tsr_conformation *to,
                              tsr_err *err);

/* Warm-up: learns from the engine's curve, profile [n_q] as the terms see it,
 * and that of a walk at the same place [n_q], both at c1 and c2; n: how many
 * times before. */
void tsr_surrogate_learn(const tsr_surrogate *surrogate, const double *profile,
                         const float *walked, const double *contrast, long n,
                         double *learnt);

/* What curves say of a profile, ready for a job: rows R [n_q][n_q + 1] of every
 * curve, target t [n_q + 1] and scale, such that the log likelihood is
 * -|t - c R I|^2 / 2 and a constant, with the best c where scale is 0. */
typedef struct tsr_surrogate_data tsr_surrogate_data;

/* Of all curves of the likelihood, which is borrowed. NULL: out of memory. */
tsr_surrogate_data *tsr_surrogate_data_new(const tsr_likelihood *likelihood);
void tsr_surrogate_data_free(tsr_surrogate_data *data);
int tsr_surrogate_data_n_curve(const tsr_surrogate_data *data);

/* At the noise's scales in theta (of the chain's table). out
 * [n_curve][curve_size]. Errors: TSR_E_NOMEM. */
tsr_status tsr_surrogate_data_fill(const tsr_surrogate_data *data,
                                   const double *theta, float *out,
                                   tsr_err *err);

/* The knots that distances are shared by, and their curves, into the spec. 0:
 * out of memory. */
int tsr_surrogate_knots(const tsr_likelihood *likelihood,
                        tsr_surrogate_spec *spec);

#endif

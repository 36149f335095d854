/* log P(D | X, theta) over all data sets, from the engine's profile. */
#ifndef TSR_LIKELIHOOD_LIKELIHOOD_H
#define TSR_LIKELIHOOD_LIKELIHOOD_H

#include "core/log.h"
#include "likelihood/data_term.h"
#include "likelihood/engine.h"
#include "model/form_factor.h"
#include "model/topology.h"

typedef struct {
    tsr_q_grid grid;
    int n_data;
    tsr_data_term *data; /* [n_data] */
    double *amplitude;   /* [n_type][n_q] form factors for the engine */
    double *self;        /* [n_q] S(q) */
    int n_type;
} tsr_likelihood;

/* Grid for d_bound_ang and the largest q of the data, operators, S(q). Copies
 * all but the curves. Errors: TSR_E_RANGE (the form factors end before the
 * data), TSR_E_NOMEM, those of tsr_data_term_make. */
tsr_status tsr_likelihood_new(const tsr_topology *topology,
                              const tsr_form_factor_table *table,
                              double d_bound_ang, int n_data,
                              const tsr_data_set *data, tsr_likelihood **out,
                              tsr_err *err);
void tsr_likelihood_free(tsr_likelihood *likelihood);

/* Room for the fits of a profile to every data set, [n_data]; free() frees it.
 * NULL when out of memory. */
tsr_fit *tsr_fits_new(const tsr_likelihood *likelihood);

/* Fits every data set. profile [n_q] from the engine is changed: S(q) is added
 * to it. theta [n_data][TSR_NOISE_PARAMETERS]; NULL: where the parameters
 * start. fit [n_data] from tsr_fits_new, out, without c and b. Returns
 * TSR_E_NUMERIC where the profile is not finite or nowhere positive. */
tsr_status tsr_likelihood_fit(const tsr_likelihood *likelihood, double *profile,
                              const double *theta, tsr_fit *fit, tsr_err *err);

/* c I(q_k) + b at the data's q. profile [n_q] with S(q); curve [n] out. */
void tsr_likelihood_curve(const tsr_likelihood *likelihood, int data,
                          const double *profile, double scale,
                          double background, double *curve);

/* I(q) of the bodies with S(q) at one q, pair by pair in double precision, in
 * electrons squared. Errors: TSR_E_RANGE (q beyond the form factors). */
tsr_status tsr_direct_intensity(const tsr_topology *topology,
                                const tsr_form_factor_table *table,
                                const tsr_conformation *conformation,
                                double q_inv_ang, double *intensity,
                                tsr_err *err);

/* Compares I(q) through the grid with a direct double precision Debye sum at
 * some of the data's q: the operator and the engine together. profile [n_q] is
 * the engine's for `conformation`, with S(q). Refuses an error beyond 1e-4 of
 * I(q) and 5 % of sigma (TSR_E_INTERNAL), with the worst q in the message;
 * worst (may be NULL) out: largest error relative to what is allowed. */
tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_form_factor_table *table,
                                const tsr_conformation *conformation,
                                const double *profile, double *worst,
                                tsr_err *err);

#endif

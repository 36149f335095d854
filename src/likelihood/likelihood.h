/* log P(D | X, theta) over all data sets, from the engine's profiles. */
#ifndef TSR_LIKELIHOOD_LIKELIHOOD_H
#define TSR_LIKELIHOOD_LIKELIHOOD_H

#include "core/log.h"
#include "likelihood/data_term.h"
#include "likelihood/engine.h"
#include "likelihood/scattering.h"
#include "model/topology.h"

typedef struct {
    tsr_q_grid grid;
    int n_data;
    tsr_data_term *data; /* [n_data] */
    int n_comp, n_pair;  /* K of the engine, K (K + 1) / 2 */
    int n_type;          /* the engine's */
    int *type;           /* [n_body] */
    double *amplitude;   /* [n_comp][n_type][n_q] form factors for it */
    double *self;        /* [n_pair][n_q] S_ab */
    double *power;       /* [n_q] tsr_component_power */
    tsr_contrast_prior contrast[TSR_N_CONTRAST]; /* where K > 1 */
} tsr_likelihood;

/* Grid for d_bound_ang and the largest q of the data, operators, S(q). Copies
 * all but the curves. Errors: TSR_E_RANGE (the form factors end before the
 * data), TSR_E_NOMEM, those of tsr_data_term_make. */
tsr_status tsr_likelihood_new_of(const tsr_topology *topology,
                                 const tsr_scattering *scattering,
                                 double d_bound_ang, int n_data,
                                 const tsr_data_set *data, tsr_likelihood **out,
                                 tsr_err *err);

/* The same with a table of one component. */
tsr_status tsr_likelihood_new(const tsr_topology *topology,
                              const tsr_form_factor_table *table,
                              double d_bound_ang, int n_data,
                              const tsr_data_set *data, tsr_likelihood **out,
                              tsr_err *err);
void tsr_likelihood_free(tsr_likelihood *likelihood);

/* Room for the fits of a profile to every data set, [n_data]; free() frees it.
 * NULL when out of memory. */
tsr_fit *tsr_fits_new(const tsr_likelihood *likelihood);

/* I(q) on the grid, with S(q): the partial profiles [n_pair][n_q] of the
 * engine, or their mean over states, at c1, c2 (contrast [TSR_N_CONTRAST];
 * NULL: where they start). profile [n_q] out may be `partial` itself. */
void tsr_likelihood_profile(const tsr_likelihood *likelihood,
                            const double *partial, const double *contrast,
                            double *profile);

/* Fits every data set. profile [n_q] with S(q). theta
 * [n_data][TSR_NOISE_PARAMETERS]; NULL: where the parameters start. fit
 * [n_data] from tsr_fits_new, out, without c and b. Returns TSR_E_NUMERIC where
 * the profile is not finite or nowhere positive. */
tsr_status tsr_likelihood_fit(const tsr_likelihood *likelihood,
                              const double *profile, const double *theta,
                              tsr_fit *fit, tsr_err *err);

/* The largest tsr_data_term_least_beta of the data sets. */
double tsr_likelihood_least_beta(const tsr_likelihood *likelihood);

/* c I(q_k) + b at the data's q. profile [n_q] with S(q); curve [n] out. */
void tsr_likelihood_curve(const tsr_likelihood *likelihood, int data,
                          const double *profile, double scale,
                          double background, double *curve);

/* Compares I(q) through the grid with a direct double precision Debye sum at
 * some of the data's q: the operator and the engine together; where c1 and c2
 * are inferred, also at the ends of their ranges. partial [n_pair][n_q] is the
 * engine's for `conformation`. Refuses an error beyond 1e-4 of I(q) and 5 % of
 * sigma (TSR_E_INTERNAL; at the ends of the ranges TSR_E_CONFIG), with the q in
 * the message; worst (may be NULL) out: largest error relative to what is
 * allowed. */
tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_scattering *scattering,
                                const tsr_conformation *conformation,
                                const double *partial, double *worst,
                                tsr_err *err);

#endif

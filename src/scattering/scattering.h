/* What the bodies of a run scatter: form factors of one component, or of three
 * with c1 and c2 (scattering/form_factor.h). */
#ifndef TSR_SCATTERING_SCATTERING_H
#define TSR_SCATTERING_SCATTERING_H

#include "molecule/topology.h"
#include "scattering/coarse_profile.h"
#include "scattering/contrast_prior.h"
#include "scattering/form_factor.h"
#include "scattering/neutron.h"

/* Components that only the inferred of c1 and c2 need apart.
 *
 * With C = (1, -G(c1), c2), what does not change is one component: of the three
 * of a coarse spec K = 1 + (c1 is inferred) + (c2 is inferred) are left, in the
 * order rest, displaced solvent, hydration. An engine's work grows with the
 * pairs, K (K + 1) / 2. */

/* Folds what `prior` [TSR_N_CONTRAST] fixes, at its values: form_factor becomes
 * [K][n_type][n_q], self [K (K + 1) / 2][n_q], spec.n_comp K. */
void tsr_coarse_fold(tsr_coarse_spec *spec, const tsr_parameter *prior);

/* The same of the six partial profiles [TSR_N_COMP_PAIR][n_q] of anything that
 * has three components, on q_k = k dq; radius_ang: r_m of its G. The first
 * K (K + 1) / 2 rows are what is left. Returns K. */
int tsr_partials_fold(const tsr_parameter *prior, double radius_ang, int n_q,
                      double dq_inv_ang, double *partial);

/* C of the K components at one q: c [3] out; power: tsr_component_power there.
 * value [TSR_N_CONTRAST]: c1, c2. Returns K. */
int tsr_coarse_coefficients(const tsr_parameter *prior, const double *value,
                            double power, double *c);

/* sum_ab C_a C_b partial_ab over a, b < n_comp; partial at steps of `stride`.
 */
double tsr_coarse_sum(int n_comp, const double *c, const double *partial,
                      size_t stride);

/* Everything is borrowed. */
typedef struct {
    const tsr_form_factor_table *plain;     /* where component is NULL */
    const tsr_form_factor_table *component; /* or NULL */
    const double *exposure;                 /* [n_body] of all conformations */
    const tsr_parameter *contrast;          /* [TSR_N_CONTRAST] */
    const tsr_neutron_bodies *neutron;      /* who sees them is neutrons, and
                                               the tables do not matter; or
                                               NULL: X-rays */
} tsr_scattering;

/* What an engine needs, and S_ab, on q_k = k dq, k < n_q: in K components, of
 * which the inferred of c1 and c2 have one each (tsr_coarse_fold), and those of
 * neutrons one for the solvent (scattering/neutron.h). Clear with
 * tsr_coarse_spec_clear. Errors: TSR_E_RANGE (the tables end before),
 * TSR_E_NOMEM. */
tsr_status tsr_scattering_spec(const tsr_scattering *scattering,
                               const tsr_topology *topology, int n_q,
                               double dq_inv_ang, tsr_coarse_spec *out,
                               tsr_err *err);

/* Partial profiles with S_ab at one q, pair by pair in double precision, in
 * electrons squared or fm^2: partial [K (K + 1) / 2] out, *radius_ang (may be
 * NULL) r_m of G. Errors: as above. Cost: n_body^2. */
tsr_status tsr_scattering_direct(const tsr_scattering *scattering,
                                 const tsr_topology *topology,
                                 const tsr_conformation *conformation,
                                 double q_inv_ang, double *partial,
                                 double *radius_ang, tsr_err *err);

/* I(q) of it at c1, c2 (value [TSR_N_CONTRAST]; NULL: where they start); for
 * neutrons in the solvent where their basis begins. */
tsr_status tsr_scattering_intensity(const tsr_scattering *scattering,
                                    const tsr_topology *topology,
                                    const tsr_conformation *conformation,
                                    const double *value, double q_inv_ang,
                                    double *intensity, tsr_err *err);

#endif

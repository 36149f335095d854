/* What the bodies of a run scatter: form factors of one component, or of three
 * with c1 and c2 (scattering/form_factor.h). */
#ifndef TSR_SCATTERING_SCATTERING_H
#define TSR_SCATTERING_SCATTERING_H

#include "molecule/topology.h"
#include "scattering/neutron.h"

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
 * which the inferred of c1 and c2 have one each (scattering/contrast.h), and
 * those of neutrons one for the solvent (scattering/neutron.h). Its memory is
 * of the pool. Errors: TSR_E_RANGE (the tables end before), TSR_E_NOMEM. */
tsr_status tsr_scattering_spec(const tsr_scattering *scattering,
                               const tsr_topology *topology, int n_q,
                               double dq_inv_ang, tsr_pool *pool,
                               tsr_coarse_spec *out, tsr_err *err);

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

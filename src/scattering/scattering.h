/* Scattering of the bodies of a run. The form factors have one component, or
 * three components combined by c1 and c2 (scattering/form_factor.h), or are
 * those of neutrons (scattering/neutron.h). */
#ifndef TSR_SCATTERING_SCATTERING_H
#define TSR_SCATTERING_SCATTERING_H

#include "molecule/topology.h"
#include "scattering/neutron.h"

/* All members are borrowed. */
typedef struct {
    const tsr_form_factor_table *plain;     /* table with one component; used if
                                               component is NULL */
    const tsr_form_factor_table *component; /* three components, or NULL */
    const double *exposure;                 /* [n_body] exposures for
                                               `component`, the same for all
                                               conformations */
    const int *absent;                      /* [n_body] 1: the body does not
                                               scatter, as that of another
                                               species. NULL: all scatter.
                                               Neutrons: NULL */
    const tsr_parameter *contrast;          /* [TSR_N_CONTRAST] */
    const tsr_parameter *run_contrast;      /* [TSR_N_CONTRAST] as the run
                                               infers them, if that differs:
                                               c1 is then fixed in `contrast`,
                                               and only the correction of the
                                               likelihood changes with it; or
                                               NULL */
    const tsr_neutron_bodies *neutron;      /* neutrons: used in place of the
                                               tables; NULL: X-rays */
} tsr_scattering;

/* The spec of an engine, and S_ab, on q_k = k dq, k < n_q, in memory of the
 * pool. K components: for the plain table 1; for three components 1, plus 1 for
 * each inferred parameter of c1 and c2 (scattering/contrast.h); for neutrons 1,
 * plus 1 for a series of solvents, plus 1 if c2 is inferred
 * (scattering/neutron.h). Errors: TSR_E_RANGE (the table ends below the last q
 * of the grid), TSR_E_NOMEM. */
tsr_status tsr_scattering_spec(const tsr_scattering *scattering,
                               const tsr_topology *topology, int n_q,
                               double dq_inv_ang, tsr_pool *pool,
                               tsr_coarse_spec *out, tsr_err *err);

/* Partial profiles including S_ab at one q, by a sum over all pairs in double
 * precision, electrons squared or fm^2: partial [K (K + 1) / 2] out.
 * *radius_ang out (may be NULL): r_m of G. Errors: as tsr_scattering_spec.
 * Cost: n_body^2. */
tsr_status tsr_scattering_direct(const tsr_scattering *scattering,
                                 const tsr_topology *topology,
                                 const tsr_conformation *conformation,
                                 double q_inv_ang, double *partial,
                                 double *radius_ang, tsr_err *err);

/* I(q) at c1, c2 (value [TSR_N_CONTRAST]; NULL: their starting values); for
 * neutrons in the solvent x0 of their basis. Errors and cost: as
 * tsr_scattering_direct. */
tsr_status tsr_scattering_intensity(const tsr_scattering *scattering,
                                    const tsr_topology *topology,
                                    const tsr_conformation *conformation,
                                    const double *value, double q_inv_ang,
                                    double *intensity, tsr_err *err);

#endif

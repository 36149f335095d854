/* Partial profiles of a coarse-grained conformation, from any engine
 * (DESIGN 3, scattering/form_factor.h).
 *
 *     I(q; c1, c2) = sum_a sum_b C_a C_b partial_ab,   C = (1, -G(q; c1), c2)
 *
 * with S_ab in the partial profiles, so that c1 and c2 change without an
 * engine: tsr_component_scale for G and tsr_component_intensity for the sum. */
#ifndef TSR_SCATTERING_COARSE_PROFILE_H
#define TSR_SCATTERING_COARSE_PROFILE_H

#include "engine/engine.h"
#include "scattering/form_factor.h"

/* What an engine needs of a conformation. Bodies of one type differ in their
 * hydration, so that the engine's types are bodies of the same type and
 * exposure. Exposures and S_ab belong to the conformation they were made of. */
typedef struct {
    tsr_engine_spec spec; /* n_system 1, no d_bound; points into the rest */
    int *type;            /* [n_body] of the engine */
    double *form_factor;  /* [TSR_N_COMP][spec.n_type][n_q] electrons */
    double *exposure;     /* [n_body] exposed atoms */
    double *self;         /* [TSR_N_COMP_PAIR][n_q] S_ab, electrons squared,
                             pairs 00 01 02 11 12 22 */
    double radius_ang;    /* r_m of G */
} tsr_coarse_spec;

/* The same with exposures [n_body] that are known; copies them. */
tsr_status tsr_coarse_spec_of(const tsr_form_factor_table *table, int n_body,
                              const int *type, const double *exposure, int n_q,
                              double dq_inv_ang, tsr_coarse_spec *out,
                              tsr_err *err);
void tsr_coarse_spec_clear(tsr_coarse_spec *spec);

/* Adds S_ab, on the n_q of excess [TSR_N_COMP_PAIR][n_type][n_q] (that of
 * tsr_form_factor_at), to partial [TSR_N_COMP_PAIR][n_q]. */
void tsr_coarse_add_self(const tsr_form_factor_table *table, int n_body,
                         const int *type, const double *exposure, int n_q,
                         const double *excess, double *partial);

#endif

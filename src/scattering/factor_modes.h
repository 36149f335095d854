/* Form factors of many types as sums of few products of a number of the type
 * and a curve, so that a sum over all particles has to be made only for each of
 * these modes, not for each type:
 *
 *     F_t^a(q) = sum_m v_tm u_m^a(q)
 *
 * The v_tm are the singular vectors of the table of all types; components whose
 * particles have no weight share them. */
#ifndef TSR_SCATTERING_FACTOR_MODES_H
#define TSR_SCATTERING_FACTOR_MODES_H

#include "scattering/debye.h"

/* Group 0: components without weights. Group 1: the one with. */
typedef struct {
    int n_type, n_comp, n_q;
    int n_group[2]; /* modes of each */
    int n;          /* of both */
    int weighted;   /* the component of group 1; -1: none */
    double *value;  /* [n_type][n] v */
    double *curve;  /* [n_comp][n][n_q] u; 0 for modes of the other group */
} tsr_factor_modes;

/* What is left out is at most `error` of the largest |F_t^a(q)| at each a and
 * q. Errors: TSR_E_NOMEM. */
tsr_status tsr_factor_modes_make(const tsr_debye_spec *spec, double error,
                                 tsr_factor_modes *out, tsr_err *err);
void tsr_factor_modes_clear(tsr_factor_modes *modes);

/* The first of the modes that a component has, and the end of them. */
static inline int tsr_modes_first(const tsr_factor_modes *m, int comp)
{
    return comp == m->weighted ? m->n_group[0] : 0;
}

static inline int tsr_modes_end(const tsr_factor_modes *m, int comp)
{
    return comp == m->weighted ? m->n : m->n_group[0];
}

#endif

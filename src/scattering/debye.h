/* A single Debye profile of many particles, without caching, for all-atom
 * models (docs/design.md, section 2; `tessera profile`).
 *
 *     I_ab(q_k) = sum_i sum_j F_i^a(q_k) F_j^b(q_k) sinc(q_k r_ij)
 *
 * The sums include i = j. The grid is q_k = k dq. The amplitude of a particle
 * is that of its type. In one component it is multiplied by a weight of the
 * particle, such as the exposed fraction of an atom's surface in the hydration
 * component. Source: Debye 1915. */
#ifndef TSR_SCATTERING_DEBYE_H
#define TSR_SCATTERING_DEBYE_H

#include "core/status.h"

#include <stddef.h>

typedef struct {
    int n, n_type;
    int n_comp;                /* number of components K, 1 to 3 */
    int n_q;                   /* at least 2 */
    double dq_inv_ang;         /* 1/Angstrom */
    const double (*xyz)[3];    /* [n] Angstrom */
    const int *type;           /* [n] type of each particle, 0..n_type-1 */
    const double *weight;      /* [n] in component `weighted`; NULL: all 1 */
    int weighted;              /* the component that `weight` applies to */
    const double *form_factor; /* [n_comp][n_type][n_q] electrons; fm for
                                  neutrons */
} tsr_debye_spec;

/* Number of pairs of components a <= b. */
static inline int tsr_debye_n_pair(const tsr_debye_spec *spec)
{
    return spec->n_comp * (spec->n_comp + 1) / 2;
}

/* The form factor [n_q] of a component and type. */
static inline const double *tsr_debye_factor(const tsr_debye_spec *spec,
                                             int comp, int type)
{
    return spec->form_factor +
           ((size_t)comp * (size_t)spec->n_type + (size_t)type) *
               (size_t)spec->n_q;
}

/* Progress callback. A computation calls `report` from time to time with the
 * finished fraction of its work, 0 to 1. A return value other than TSR_OK stops
 * the computation, which then returns this value. report NULL: no calls. */
typedef struct {
    tsr_status (*report)(void *context, double done, tsr_err *err);
    void *context;
} tsr_debye_progress;

static inline tsr_status tsr_debye_report(const tsr_debye_progress *progress,
                                          double done, tsr_err *err)
{
    return progress != NULL && progress->report != NULL
               ? progress->report(progress->context, done, err)
               : TSR_OK;
}

/* Checks a spec: TSR_E_INTERNAL for impossible sizes or types, TSR_E_NUMERIC
 * for a position or weight that is not finite. */
tsr_status tsr_debye_check(const tsr_debye_spec *spec, tsr_err *err);

/* The reference sum: double precision, plain C, one core. profile [n_pair][n_q]
 * out, electrons squared, pairs in the order 00 01 02 11 12 22. Cost: n^2 n_q
 * (K + 1) / 2 multiply-adds. Accuracy: about 1e-12 of I_ab(0). Errors:
 * TSR_E_NOMEM, those of tsr_debye_check and of progress. */
tsr_status tsr_debye_reference(const tsr_debye_spec *spec,
                               const tsr_debye_progress *progress,
                               double *profile, tsr_err *err);

#endif

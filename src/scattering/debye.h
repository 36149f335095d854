/* One Debye profile of many particles, without a cache: what an all-atom model
 * needs (docs/design.md, section 2; `tessera profile`).
 *
 *     I_ab(q_k) = sum_i sum_j F_i^a(q_k) F_j^b(q_k) sinc(q_k r_ij),  i = j too
 *
 * on the uniform grid q_k = k dq. A particle's amplitude is that of its type;
 * in one component it is multiplied by a weight of the particle's own, e.g. how
 * much of an atom's surface the hydration layer covers. Source: Debye 1915. */
#ifndef TSR_SCATTERING_DEBYE_H
#define TSR_SCATTERING_DEBYE_H

#include "core/status.h"

#include <stddef.h>

typedef struct {
    int n, n_type;
    int n_comp;                /* K, 1 to 3 */
    int n_q;                   /* at least 2 */
    double dq_inv_ang;         /* 1/Angstrom */
    const double (*xyz)[3];    /* [n] Angstrom */
    const int *type;           /* [n] 0..n_type-1 */
    const double *weight;      /* [n] for component `weighted`; NULL: none */
    int weighted;              /* the component that weight belongs to */
    const double *form_factor; /* [n_comp][n_type][n_q] electrons */
} tsr_debye_spec;

/* Pairs of components a <= b. */
static inline int tsr_debye_n_pair(const tsr_debye_spec *spec)
{
    return spec->n_comp * (spec->n_comp + 1) / 2;
}

static inline const double *tsr_debye_factor(const tsr_debye_spec *spec,
                                             int comp, int type)
{
    return spec->form_factor +
           ((size_t)comp * (size_t)spec->n_type + (size_t)type) *
               (size_t)spec->n_q;
}

/* Told how much is done, 0 to 1, as often as a launch ends; another return
 * value than TSR_OK stops the work with it. NULL function: nobody is told. */
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

/* Refuses what nobody can compute: TSR_E_INTERNAL for the shape,
 * TSR_E_NUMERIC for a position or weight that is not finite. */
tsr_status tsr_debye_check(const tsr_debye_spec *spec, tsr_err *err);

/* Double precision, plain C, one core. profile [n_pair][n_q] out, electrons
 * squared, pairs in the order 00 01 02 11 12 22. Cost: n^2 n_q (K + 1) / 2
 * multiply-adds. Error: some 1e-12 of I_ab(0). */
tsr_status tsr_debye_reference(const tsr_debye_spec *spec,
                               const tsr_debye_progress *progress,
                               double *profile, tsr_err *err);

#endif

/* Tables in q between their points: natural cubic splines through the table
 * mirrored at q = 0, for form factors and the like are even in q. */
#ifndef TSR_MODEL_EVEN_SPLINE_H
#define TSR_MODEL_EVEN_SPLINE_H

#include "core/status.h"

typedef struct {
    int n_q; /* points of the table, from q = 0 */
    double dq_inv_ang;
} tsr_even_spline;

/* out [n_curve][n_q] at k dq from y [n_curve][table->n_q]. Errors: TSR_E_RANGE
 * where the grid is none or goes beyond the table; TSR_E_NOMEM. */
tsr_status tsr_even_spline_at(const tsr_even_spline *table, int n_curve,
                              const double *y, int n_q, double dq_inv_ang,
                              double *out, tsr_err *err);

#endif

/* Numbers of a variable whose draws have weights. */
#ifndef TSR_ANALYSIS_WEIGHTED_H
#define TSR_ANALYSIS_WEIGHTED_H

#include "core/status.h"

typedef struct {
    double mean, sd;
    double q5, median, q95; /* linear between the middles of the draws' shares
                               of the weight; Hazen's where all are equal */
} tsr_weighted;

/* value [n], log_weight [n] with exponentials that have the sum 1; NULL: all
 * are equal. A draw without weight counts for nothing, whatever its value. All
 * numbers are NaN where a value that counts is not finite. Errors: TSR_E_NOMEM.
 */
tsr_status tsr_weighted_make(long n, const double *value,
                             const double *log_weight, tsr_weighted *out,
                             tsr_err *err);

#endif

/* Debye profiles by the fastest way there is here: pairs on the device, a grid
 * or plane waves on the host (scattering/profile_method.h), as their costs
 * predict; and what stays from one molecule to the next. */
#ifndef TSR_GPU_PROFILE_SUM_H
#define TSR_GPU_PROFILE_SUM_H

#include "core/log.h"
#include "scattering/profile_method.h"

typedef struct tsr_profile_sum tsr_profile_sum;

/* device: as --device takes it, or "reference", the direct sum in plain C. One
 * that is named is opened at once, "auto" when it is worth it. no_grid: form
 * factors are not smooth enough in q for a grid to be chosen. Errors:
 * TSR_E_DEVICE, TSR_E_NOMEM. */
tsr_status tsr_profile_sum_new(const char *device, tsr_profile_method method,
                               int no_grid, tsr_profile_sum **out,
                               tsr_err *err);
void tsr_profile_sum_free(tsr_profile_sum *sum);

typedef struct {
    tsr_profile_method method;
    double seconds, predicted_s; /* a device's opening and the build of its
                                    program are of the prediction alone */
} tsr_profile_sum_result;

/* profile [n_pair][n_q] out, within 1e-5 of sqrt(I_aa I_bb). d_ang: the largest
 * distance; d_bound_ang, not less, is what a direct sum's program is made for.
 * Costs go to the log. Errors: those of the methods. */
tsr_status tsr_profile_sum_run(tsr_profile_sum *sum, const tsr_debye_spec *spec,
                               double d_ang, double d_bound_ang, tsr_log *log,
                               const tsr_debye_progress *progress,
                               double *profile, tsr_profile_sum_result *result,
                               tsr_err *err);

/* What computed the last one. */
const char *tsr_profile_sum_describe(const tsr_profile_sum *sum);

#endif

/* Debye profiles of many particles, once each: on an OpenCL device, or by the
 * fastest way there is here (at the end). The device's (docs/design.md, section
 * 3: one-off profiles keep no tile cache; the work list of Berlin et al. 2013).
 *
 * Particles are put in order by type. A unit of work is a block of rows of one
 * type against a run of columns of one type; the device adds up s_k(r) of its
 * pairs, plain and with the particles' weights, and the host multiplies by form
 * factors in double precision: the device holds no form factors, memory is
 * linear in the particles, and all components cost as much as one. The units
 * of a launch are as many as 16 MiB of results hold; their runs are the shorter
 * the fewer particles there are, so that a small molecule fills the device.
 * Every unit has a place of its own for its result and the host adds them in
 * their order: the same numbers whatever the launches. */
#ifndef TSR_GPU_DEBYE_SUM_H
#define TSR_GPU_DEBYE_SUM_H

#include "core/log.h"
#include "gpu/device.h"
#include "scattering/profile_method.h"

/* All 0: chosen by the device. */
typedef struct {
    int is_simt;    /* 1: the GPU's kernel even on a CPU */
    int use_double; /* 1: double precision, where the device has it */
    int max_pages;  /* q values a group, at most 64 */
    int units_a_launch;
    int run; /* columns of a unit, in tiles */
} tsr_debye_sum_options;

typedef struct tsr_debye_sum tsr_debye_sum;

/* Builds the program for a grid; the device is borrowed. d_bound_ang: no two
 * particles are farther apart (0: not known, slower); with dq d_bound <= .86 pi
 * the kernel needs no sine. options: NULL for all defaults.
 * Errors: TSR_E_DEVICE, TSR_E_INTERNAL, TSR_E_NOMEM. */
tsr_status tsr_debye_sum_new(const tsr_device *device, int n_q,
                             double dq_inv_ang, int has_weight,
                             double d_bound_ang,
                             const tsr_debye_sum_options *options,
                             tsr_debye_sum **out, tsr_err *err);
void tsr_debye_sum_free(tsr_debye_sum *sum);

/* "debye SIMD; device, driver; source; options", as engines describe
 * themselves. */
const char *tsr_debye_sum_describe(const tsr_debye_sum *sum);

/* Known answers on a small sample, against the reference. TSR_E_DEVICE, with
 * device and error, when they are wrong; max_rel_error may be NULL. */
tsr_status tsr_debye_sum_test(tsr_debye_sum *sum, double *max_rel_error,
                              tsr_err *err);

/* profile [n_pair][n_q] out, as tsr_debye_reference's, which it meets to 1e-5
 * of I_ab(q) in single precision. The grid and whether there are weights are
 * those that it was made for. Errors: TSR_E_DEVICE, TSR_E_RANGE (beyond
 * d_bound_ang), TSR_E_NOMEM, those of tsr_debye_check and of progress. */
tsr_status tsr_debye_sum_run(tsr_debye_sum *sum, const tsr_debye_spec *spec,
                             const tsr_debye_progress *progress,
                             double *profile, tsr_err *err);

/* ---- the fastest way ----
 *
 * Pairs on the device, a grid or plane waves on the host
 * (scattering/profile_method.h), as their costs predict; and what stays from
 * one molecule to the next. */

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

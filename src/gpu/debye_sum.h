/* Debye profiles of many particles, computed once each: on an OpenCL device, or
 * by the fastest available method (second part).
 *
 * The device's method keeps no tile cache (docs/design.md, section 3; the work
 * list follows Berlin et al. 2013). Particles are sorted by type. A unit of
 * work is a block of rows (particles of one type) against a run of columns
 * (particles of one type). For each unit the device sums sin(q_k r) / r over
 * the pairs, without and with the particles' weights, and the host multiplies
 * by form factors in double precision. So the device needs no form factors, its
 * memory is linear in the number of particles, and several components cost as
 * much as one. The results of a launch have at most 16 MiB. With fewer
 * particles the runs are shorter, so that a small molecule also fills the
 * device. Each unit has a result of its own, and the host adds the results in
 * their order, so the profile does not depend on the launches. */
#ifndef TSR_GPU_DEBYE_SUM_H
#define TSR_GPU_DEBYE_SUM_H

#include "core/log.h"
#include "gpu/device.h"
#include "scattering/profile_method.h"

/* Sizes of 0 are replaced by a choice for the device. */
typedef struct {
    int is_simt;        /* 1: use the GPU's kernel even on a CPU; any other
                           device always uses it */
    int max_pages;      /* values of q in a group, at most 64 */
    int units_a_launch; /* largest number of units in a launch */
    int run;            /* largest number of columns of a unit, in tiles */
} tsr_debye_sum_options;

typedef struct tsr_debye_sum tsr_debye_sum;

/* Builds the program for a grid. The device is borrowed. d_bound_ang: largest
 * distance between two particles; 0: unknown. If dq d_bound <= 0.86 pi, the
 * kernel is faster, because it computes no sine for the first group of q.
 * options: NULL for all defaults. Errors: TSR_E_DEVICE, TSR_E_INTERNAL,
 * TSR_E_NOMEM. */
tsr_status tsr_debye_sum_new(const tsr_device *device, int n_q,
                             double dq_inv_ang, int has_weight,
                             double d_bound_ang,
                             const tsr_debye_sum_options *options,
                             tsr_debye_sum **out, tsr_err *err);
void tsr_debye_sum_free(tsr_debye_sum *sum);

/* "debye SIMD; device, driver; source; options", like an engine's
 * description. */
const char *tsr_debye_sum_describe(const tsr_debye_sum *sum);

/* Self-test: compares the profile of a small sample with that of the reference
 * sum. TSR_E_DEVICE, with device and error, if the profiles differ by more than
 * 2e-5. max_rel_error out, may be NULL. */
tsr_status tsr_debye_sum_test(tsr_debye_sum *sum, double *max_rel_error,
                              tsr_err *err);

/* profile [n_pair][n_q] out, as tsr_debye_reference, to 1e-5 of I_ab(q) in
 * single precision. The spec must have the grid, and weights or not, as given
 * to tsr_debye_sum_new. Errors: TSR_E_DEVICE, TSR_E_RANGE (beyond d_bound_ang),
 * TSR_E_NOMEM, those of tsr_debye_check and of progress. */
tsr_status tsr_debye_sum_run(tsr_debye_sum *sum, const tsr_debye_spec *spec,
                             const tsr_debye_progress *progress,
                             double *profile, tsr_err *err);

/* ---- the fastest method ----
 *
 * Pairs on the device, or a grid or plane waves on the host
 * (scattering/profile_method.h), chosen by their predicted times. Device and
 * program are kept from one molecule to the next. */

typedef struct tsr_profile_sum tsr_profile_sum;

/* device: as --device, or "reference" for the direct sum in plain C. A named
 * device is opened at once. The device for "auto" is opened before the first
 * profile for which the method is TSR_METHOD_DIRECT, or is not prescribed and
 * would take longer on the host than opening the device. no_grid: 1 if
 * the form factors are not smooth enough in q for the grid method. Errors:
 * TSR_E_DEVICE, TSR_E_NOMEM. */
tsr_status tsr_profile_sum_new(const char *device, tsr_profile_method method,
                               int no_grid, tsr_profile_sum **out,
                               tsr_err *err);
void tsr_profile_sum_free(tsr_profile_sum *sum);

/* Announces n molecules, of which each bears its share of the time to open the
 * device and build its program. The method chosen for a molecule then does not
 * depend on the molecules before it. */
void tsr_profile_sum_expect(tsr_profile_sum *sum, int n);

typedef struct {
    tsr_profile_method method;
    double seconds, predicted_s; /* predicted_s includes the time to open a
                                    device and build its program; seconds does
                                    not */
} tsr_profile_sum_result;

/* profile [n_pair][n_q] out, within 1e-5 of sqrt(I_aa I_bb). d_ang: largest
 * distance between particles; d_bound_ang >= d_ang: distance that the direct
 * sum's program is built for. Predicted times go to the log. Several threads
 * may call at the same time; the device sums for one after the other. Errors:
 * those of the methods. */
tsr_status tsr_profile_sum_run(tsr_profile_sum *sum, const tsr_debye_spec *spec,
                               double d_ang, double d_bound_ang, tsr_log *log,
                               const tsr_debye_progress *progress,
                               double *profile, tsr_profile_sum_result *result,
                               tsr_err *err);

/* Description of the method that computed the last profile; of announced
 * molecules, of the first method in the order of tsr_profile_method that
 * computed any, on the smallest grid. */
const char *tsr_profile_sum_describe(const tsr_profile_sum *sum);

#endif

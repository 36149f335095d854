/* Debye profiles of many particles, once each, on an OpenCL device (DESIGN 4:
 * one-off profiles keep no tile cache; the work list of Berlin et al. 2013).
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

#include "gpu/device.h"
#include "scattering/debye.h"

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

typedef struct {
    int n_q, has_weight, is_double;
    double dq_inv_ang, d_bound_ang;
    const char *device; /* its name */
} tsr_debye_sum_shape;

tsr_debye_sum_shape tsr_debye_sum_get_shape(const tsr_debye_sum *sum);

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

#endif

/* c1 and c2: the excluded-volume scale and the hydration of a run, and how they
 * make a profile of partial profiles.
 *
 *     I(q) = sum_a sum_b C_a C_b I_ab(q),   C = (1, -G(q; c1), c2)
 *
 * They belong to the molecule in its buffer, so that all states and data sets
 * of a run share them. Each is fixed to a number or inferred; its prior
 * P(c1, c2) is then a normal density cut to a range and normalised there.
 * c1 = 1, c2 = 0 is the molecule in vacuum less the solvent it displaces. */
#ifndef TSR_SCATTERING_CONTRAST_H
#define TSR_SCATTERING_CONTRAST_H

#include "core/field.h"
#include "core/parameter.h"

/* ---- components ---- */

enum {
    TSR_SOLUTE,
    TSR_DISPLACED,
    TSR_HYDRATION,
    TSR_N_COMP,
    TSR_N_COMP_PAIR = 6 /* 00 01 02 11 12 22, as engines order them */
};

/* Number of the pair a <= b of three components. */
int tsr_component_pair(int a, int b);

/* G(q) = c1^3 exp(-(c1^2 - 1) (4 pi r_m^3 / 3)^(2/3) q^2 / 4 pi): what scaling
 * every displaced radius by c1 does to the mean atom's Gaussian, which becomes
 * that of the volume c1^3 V. Svergun et al. 1995, eq. 13, and
 * Schneidman-Duhovny et al. 2013 print (4 pi / 3)^(3/2), with which G would not
 * go with the atoms' own exponent; FoXS's program leaves the factor out. */
double tsr_component_scale(double c1, double radius_ang, double q_inv_ang);

/* (4 pi r_m^3 / 3)^(2/3) q^2 / 4 pi in it. */
double tsr_component_power(double radius_ang, double q_inv_ang);

/* sum_ab C_a C_b partial_ab at one q: partial [TSR_N_COMP_PAIR] at steps of
 * `stride`, S_ab included. */
double tsr_component_intensity(const double *partial, size_t stride, double g,
                               double c2);

/* ---- the prior ---- */

enum { TSR_C1, TSR_C2, TSR_N_CONTRAST };

/* The words in place of a number. Reading a configuration decides auto. */
enum { TSR_CONTRAST_INFER, TSR_CONTRAST_AUTO };

typedef struct {
    tsr_number_or_word c1; /* infer, or a number */
    double c1_mean, c1_width;
    double c1_range[2];
    tsr_number_or_word c2; /* the same, or auto: if none decided it, 0 */
    double c2_mean, c2_width;
    double c2_range[2];
} tsr_contrast_options;

extern const tsr_field tsr_contrast_fields[];

/* parameter [TSR_N_CONTRAST] out, c1 and c2 as the table of a run has them.
 * Errors: TSR_E_CONFIG, beginning with the key (a range without width, or one
 * that the mean is not in). */
tsr_status tsr_contrast_priors(const tsr_contrast_options *options,
                               tsr_parameter *parameter, tsr_err *err);

/* 1 where the curve is that of tables with one component: c1 1 and c2 0, both
 * fixed. */
int tsr_contrast_is_plain(const tsr_parameter *parameter);

/* ---- as few components as the inferred of c1 and c2 need apart ----
 *
 * With C = (1, -G(c1), c2), what does not change is one component: of the three
 * K = 1 + (c1 is inferred) + (c2 is inferred) are left, in the order rest,
 * displaced solvent, hydration. An engine's work grows with the pairs,
 * K (K + 1) / 2. These functions fold what `prior` [TSR_N_CONTRAST] fixes, at
 * its values, into the rest, on q_k = k dq, with radius_ang, r_m of G, and
 * return K. */

/* Of form factors [TSR_N_COMP][n_type][n_q] the first K are what is left. */
int tsr_factors_fold(const tsr_parameter *prior, double radius_ang, int n_type,
                     int n_q, double dq_inv_ang, double *factor);

/* Of six partial profiles [TSR_N_COMP_PAIR][n_q], or S_ab, the first
 * K (K + 1) / 2. */
int tsr_partials_fold(const tsr_parameter *prior, double radius_ang, int n_q,
                      double dq_inv_ang, double *partial);

/* C of the K components at one q: c [3] out; power: tsr_component_power there.
 * value [TSR_N_CONTRAST]: c1, c2. Returns K. */
int tsr_coarse_coefficients(const tsr_parameter *prior, const double *value,
                            double power, double *c);

/* sum_ab C_a C_b partial_ab over a, b < n_comp; partial at steps of `stride`.
 */
double tsr_coarse_sum(int n_comp, const double *c, const double *partial,
                      size_t stride);

#endif

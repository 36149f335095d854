/* The contrast parameters c1 (scale of the excluded volume) and c2 (hydration),
 * and the profile as a function of them.
 *
 *     I(q) = sum_a sum_b C_a C_b I_ab(q),   C = (1, -G(q; c1), c2)
 *
 * c1 and c2 belong to the molecule in its buffer, so all states and data sets
 * of a run share them. Each is fixed to a number or inferred. The prior of an
 * inferred parameter is a normal density truncated to a range and normalised
 * there. With c1 = 1 and c2 = 0 the curve is that of the molecule in vacuum
 * minus the solvent that the molecule displaces. */
#ifndef TSR_SCATTERING_CONTRAST_H
#define TSR_SCATTERING_CONTRAST_H

#include "core/field.h"
#include "core/parameter.h"
#include "scattering/q_grid.h"

/* ---- components ---- */

enum {
    TSR_SOLUTE,
    TSR_DISPLACED,
    TSR_HYDRATION,
    TSR_N_COMP,
    TSR_N_COMP_PAIR = 6 /* 00 01 02 11 12 22, in the engines' order */
};

/* Index of the pair a <= b of three components. */
int tsr_component_pair(int a, int b);

/* G(q) = c1^3 exp(-(c1^2 - 1) (4 pi r_m^3 / 3)^(2/3) q^2 / 4 pi).
 *
 * If every radius of the displaced solvent is multiplied by c1, the Gaussian of
 * an atom with the mean radius r_m is multiplied by G and becomes that of the
 * volume c1^3 V. Svergun et al. 1995, eq. 13, and Schneidman-Duhovny et al.
 * 2013 print (4 pi / 3)^(3/2) in place of (4 pi / 3)^(2/3), which does not
 * match the exponent of the atoms' own Gaussians. The program FoXS has no
 * factor (4 pi / 3) in the exponent. */
double tsr_component_scale(double c1, double radius_ang, double q_inv_ang);

/* The factor (4 pi r_m^3 / 3)^(2/3) q^2 / 4 pi in the exponent of G. */
double tsr_component_power(double radius_ang, double q_inv_ang);

/* sum_ab C_a C_b partial_ab at one q. partial: TSR_N_COMP_PAIR values, `stride`
 * apart, including the self terms S_ab of bodies, which the engine leaves out;
 * g: G at this q. */
double tsr_component_intensity(const double *partial, size_t stride, double g,
                               double c2);

/* ---- the prior ---- */

enum { TSR_C1, TSR_C2, TSR_N_CONTRAST };

/* The words that may stand in place of a number. The caller of
 * tsr_contrast_priors replaces AUTO by INFER or a number before. */
enum { TSR_CONTRAST_INFER, TSR_CONTRAST_AUTO };

typedef struct {
    tsr_number_or_word c1;    /* infer, auto, or a number */
    double c1_mean, c1_width; /* of the normal density before truncation */
    double c1_range[2];
    tsr_number_or_word c2; /* infer, auto, or a number */
    double c2_mean, c2_width;
    double c2_range[2];
} tsr_contrast_options;

extern const tsr_field tsr_contrast_fields[];

/* The parameters c1 and c2 for the table of a run: parameter [TSR_N_CONTRAST]
 * out. Errors: TSR_E_CONFIG, with a message that begins with the key (an
 * inferred parameter has an empty range, or a mean outside its range). */
tsr_status tsr_contrast_priors(const tsr_contrast_options *options,
                               tsr_parameter *parameter, tsr_err *err);

/* 1 if c1 = 1 and c2 = 0, both fixed. The curve then is that of form factors
 * with one component, solute minus displaced solvent. */
int tsr_contrast_is_plain(const tsr_parameter *parameter);

/* ---- folding: fewer components for fixed parameters ----
 *
 * The storage of an engine is proportional to the number of pairs, K (K + 1)
 * / 2. With C = (1, -G(c1), c2), all components with a constant coefficient can
 * be added into one. This leaves K = 1 + (c1 is inferred) + (c2 is inferred)
 * components, in the order: sum of the constant ones, displaced solvent,
 * hydration. tsr_factors_fold and tsr_partials_fold multiply each component
 * whose parameter `prior` [TSR_N_CONTRAST] fixes by its coefficient at q_k = k
 * dq, and add it to the first; they return K. radius_ang is r_m of G. */

/* Folds form factors [TSR_N_COMP][n_type][n_q] in place; the first K components
 * remain. */
int tsr_factors_fold(const tsr_parameter *prior, double radius_ang, int n_type,
                     int n_q, double dq_inv_ang, double *factor);

/* Folds partial profiles [TSR_N_COMP_PAIR][n_q], or S_ab, in place; the first K
 * (K + 1) / 2 remain. */
int tsr_partials_fold(const tsr_parameter *prior, double radius_ang, int n_q,
                      double dq_inv_ang, double *partial);

/* Coefficients C of the K components at one q: c [3] out. power:
 * tsr_component_power at this q. value [TSR_N_CONTRAST]: c1, c2. Returns K. */
int tsr_coarse_coefficients(const tsr_parameter *prior, const double *value,
                            double power, double *c);

/* sum_ab C_a C_b partial_ab over a, b < n_comp; partial values are `stride`
 * apart. */
double tsr_coarse_sum(int n_comp, const double *c, const double *partial,
                      size_t stride);

/* ---- interference between particles ----
 *
 * A solution that is not dilute scatters I(q) S(q), with
 *
 *     S(q) = 1 / (1 + nu P(q)^2),   P(q) = I(q) / I(0),   nu = 1 / S(0) - 1
 *
 * nu > 0: repulsion; nu < 0: attraction. At low concentration nu = 2 A2 M c
 * (second virial coefficient, molar mass, concentration). For hard spheres of
 * radius R, P(q)^2 stands for Phi(2 q R) (Guinier & Fournet 1955), to which it
 * is equal up to order q^2. */

/* Multiplies the intensities [n] by S(q). s0: S(0) > 0. i0: I(0). */
void tsr_structure_factor_apply(double s0, double i0, int n, double *intensity);

/* The operator from the grid to I(q) S(q) as the instrument smears it. The
 * difference I(q) (S(q) - 1) has wavelengths shorter than those of I(q), and so
 * a grid of its own, three times as fine. A joint profile has I(q) on the grid,
 * and then the difference on the fine one. */
typedef struct {
    int n_q, n_fine, n_joint; /* grid points: n_joint = n_q + n_fine < 4 n_q */
    double *fine;             /* [n_fine][n_q] from one grid to the other */
    double *matrix;           /* [n][n_joint] to the data's q */
} tsr_interference;

/* In memory of the pool. Errors: those of tsr_q_operator_smeared. */
tsr_status tsr_interference_make(const tsr_q_grid *grid,
                                 const tsr_resolution *resolution, int n,
                                 const double *q_inv_ang, tsr_pool *pool,
                                 tsr_interference *out, tsr_err *err);

/* The joint profile [n_joint] of a profile [n_q]. */
void tsr_interference_apply(const tsr_interference *interference, double s0,
                            const double *profile, double *joint);

#endif

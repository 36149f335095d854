/* Form factors of bodies in three components (DESIGN 3): solute in vacuum,
 * displaced solvent, hydration.
 *
 *     I(q) = sum_a sum_b C_a C_b [I_ab(q) + S_ab(q)],   C = (1, -G(q), c2)
 *     I_ab(q) = sum_i sum_j F_i^a(q) F_j^b(q) sinc(q r_ij)
 *     S_ab(q) = sum_i E_i^ab(q)
 *
 * Body i of type t has F_i^a = F_t^a for solute and displaced solvent. Its
 * hydration is its exposure e_i (model/exposure.h) times that of the type:
 * F_i^hydration = e_i F_t, E_i = e_i E_t with one index hydration, e_i^2 E_t
 * with both. E_t^ab is the mean of the product of the body's own amplitudes
 * less the product of their means: what a sum of mean amplitudes leaves out. */
#ifndef TSR_MODEL_COMPONENT_TABLE_H
#define TSR_MODEL_COMPONENT_TABLE_H

#include "core/status.h"
#include "model/exposure.h"
#include "model/form_factor.h"

enum {
    TSR_SOLUTE,
    TSR_DISPLACED,
    TSR_HYDRATION,
    TSR_N_COMP,
    TSR_N_COMP_PAIR = 6 /* 00 01 02 11 12 22, as engines order them */
};

/* Number of the pair a <= b. */
int tsr_component_pair(int a, int b);

typedef struct {
    tsr_body_model model;
    int n_type, n_q;
    double dq_inv_ang;           /* q_k = k dq */
    double *amplitude;           /* [TSR_N_COMP][n_type][n_q] F, electrons */
    double *excess;              /* [TSR_N_COMP_PAIR][n_type][n_q] E, electrons
                                    squared */
    tsr_exposure_model exposure; /* [n_type] inside */
    double atoms[TSR_MAX_TYPE];  /* mean number of non-hydrogen atoms */
    double radius[TSR_MAX_TYPE]; /* their mean radius, Angstrom */
    char *source;                /* comment lines of the file */
} tsr_component_table;

/* A table of zeroes with the source NULL; NULL when out of memory. */
tsr_component_table *tsr_component_new(tsr_body_model model, int n_q,
                                       double dq_inv_ang);
void tsr_component_free(tsr_component_table *table);

/* Reads and writes a table of data/. Errors as tsr_form_factor_read, _write. */
tsr_status tsr_component_read(const char *path, tsr_component_table **out,
                              tsr_err *err);
tsr_status tsr_component_write(const tsr_component_table *table,
                               const char *path, tsr_err *err);

/* 1 where the file begins as one of these does. */
int tsr_component_is_file(const char *path);

/* The table at q = 0, dq, ... as tsr_form_factor_at.
 * amplitude [TSR_N_COMP][n_type][n_q], excess [TSR_N_COMP_PAIR][n_type][n_q]
 * out. Errors: TSR_E_RANGE, TSR_E_NOMEM. */
tsr_status tsr_component_at(const tsr_component_table *table, int n_q,
                            double dq_inv_ang, double *amplitude,
                            double *excess, tsr_err *err);

/* Folded into one component: F = F^solute - F^displaced, P of it; c1 = 1, no
 * hydration. Errors: TSR_E_NOMEM. */
tsr_status tsr_component_fold(const tsr_component_table *table,
                              tsr_form_factor_table **out, tsr_err *err);

/* Mean radius of the atoms of n bodies, Angstrom: r_m of G. */
double tsr_component_radius(const tsr_component_table *table, int n,
                            const int *type);

/* G(q) = c1^3 exp(-(c1^2 - 1) (4 pi r_m^3 / 3)^(2/3) q^2 / 4 pi): what scaling
 * every displaced radius by c1 does to the mean atom's Gaussian, which becomes
 * that of the volume c1^3 V. Svergun et al. 1995, eq. 13, and
 * Schneidman-Duhovny et al. 2013 print (4 pi / 3)^(3/2), with which G would not
 * go with the atoms' own exponent; FoXS's program leaves the factor out. */
double tsr_component_scale(double c1, double radius_ang, double q_inv_ang);

/* The same with (4 pi r_m^3 / 3)^(2/3) q^2 / 4 pi known: tsr_component_power.
 */
double tsr_component_scale_of(double c1, double power);
double tsr_component_power(double radius_ang, double q_inv_ang);

/* sum_ab C_a C_b partial_ab at one q: partial [TSR_N_COMP_PAIR] at steps of
 * `stride`, S_ab included. */
double tsr_component_intensity(const double *partial, size_t stride, double g,
                               double c2);

#endif

/* Form factors of bodies: tables and their training (DESIGN 3).
 *
 *     F_t(q) = < sum_{a in body} [f_a(q) - g_a(q)] sinc(q |r_a - r_body|) >
 *     P_t(q) = < sum_a sum_b [f_a - g_a][f_b - g_b] sinc(q r_ab) >
 *
 * averaged over the occurrences of the type in the training structures. The
 * amplitude F goes into the Debye sum; P - F^2, summed over the bodies, is
 * S(q), which repairs the terms of a body with itself. */
#ifndef TSR_MODEL_FORM_FACTOR_H
#define TSR_MODEL_FORM_FACTOR_H

#include "core/log.h"
#include "core/status.h"
#include "model/residue.h"

typedef struct {
    tsr_body_model model;
    int n_type;
    int n_q;
    double dq_inv_ang; /* q_k = k dq */
    double *amplitude; /* [n_type][n_q] F, electrons */
    double *self;      /* [n_type][n_q] P, electrons squared */
    double *rg2;       /* [n_type] mean square radius of the body's own atoms,
                          mass-weighted, Angstrom squared; all 0 where
                          the table does not say */
    long *count;       /* [n_type] occurrences it was trained on */
    char *source;      /* comment lines of the file: how it was made */
} tsr_form_factor_table;

/* Reads a table of data/, or a published one (form_factor_published.h). Errors
 * name file and line: TSR_E_NOINPUT, TSR_E_DATA. */
tsr_status tsr_form_factor_read(const char *path, tsr_form_factor_table **out,
                                tsr_err *err);

/* Writes beside and renames. Errors: TSR_E_IO. */
tsr_status tsr_form_factor_write(const tsr_form_factor_table *table,
                                 const char *path, tsr_err *err);

/* A table of zeroes with the source NULL; NULL when out of memory. */
tsr_form_factor_table *tsr_form_factor_new(tsr_body_model model, int n_q,
                                           double dq_inv_ang);
void tsr_form_factor_free(tsr_form_factor_table *table);

/* The table at q = 0, dq, ...: natural cubic splines in q of F and of the
 * difference P - F^2, of the table mirrored at q = 0 (both are even in q).
 * amplitude [n_type][n_q] out; excess [n_type][n_q] out: P - F^2; NULL: not
 * wanted. Errors: TSR_E_RANGE where the grid goes beyond the table. */
tsr_status tsr_form_factor_at(const tsr_form_factor_table *table, int n_q,
                              double dq_inv_ang, double *amplitude,
                              double *excess, tsr_err *err);

/* Trains a table on structure files. Residues that lack atoms are left out; a
 * chain's OXT and the extra hydrogens of its first N are not counted.
 * Grid: q_k = k dq, k < n_q. `log` gets what was used and left out. n_thread 0:
 * as many as there are processors; their number does not change the result.
 * Errors: those of reading; TSR_E_DATA where a type never occurs. */
tsr_status tsr_form_factor_train(int n_path, const char *const *path,
                                 tsr_body_model model, int n_q,
                                 double dq_inv_ang, int n_thread, tsr_log *log,
                                 tsr_form_factor_table **out, tsr_err *err);

/* Refines a trained table on structure files (those it was trained on): F and P
 * change, smoothly in q and little, to what makes the relative error of I(q)
 * against all atoms least. P - F^2 may then be negative. Keeps some 0.2 MB a
 * structure in memory. After an error the table is not to be used.
 * Errors: those of reading; TSR_E_NOMEM, TSR_E_NUMERIC (no convergence). */
tsr_status tsr_form_factor_refine(tsr_form_factor_table *table, int n_path,
                                  const char *const *path, int n_thread,
                                  tsr_log *log, tsr_err *err);

/* rho0 V exp(-q^2 V^(2/3) / 4 pi) below, and the radius (Angstrom) of a sphere
 * of the volume V. */
double tsr_atom_displaced_amplitude(int z, int n_hydrogen, double q_inv_ang);
double tsr_atom_radius(int z, int n_hydrogen);

/* Amplitude of one atom with its hydrogens less the water it displaces:
 * f_X + n_H f_H - rho0 V exp(-q^2 V^(2/3) / 4 pi), rho0 = 0.334 e/A^3,
 * V = V_X + n_H V_H: H 5.15, C 16.44, N 2.49, O 9.13, S 19.86 A^3 (Fraser et
 * al. 1978). NaN for an element without a volume. */
double tsr_atom_contrast_amplitude(int z, int n_hydrogen, double q_inv_ang);

#endif

/* What a table of form factors is trained on: atoms and exposures. */
#ifndef TSR_TRAIN_FORM_FACTOR_ATOMS_H
#define TSR_TRAIN_FORM_FACTOR_ATOMS_H

#include "scattering/form_factor.h"

/* ---- atoms ---- */

/* rho0 V exp(-q^2 V^(2/3) / 4 pi) below, and the radius (Angstrom) of a sphere
 * of the volume V. */
double tsr_atom_displaced_amplitude(int z, int n_hydrogen, double q_inv_ang);
double tsr_atom_radius(int z, int n_hydrogen);

/* Amplitude of one atom with its hydrogens less the water it displaces:
 * f_X + n_H f_H - rho0 V exp(-q^2 V^(2/3) / 4 pi), rho0 = 0.334 e/A^3,
 * V = V_X + n_H V_H: H 5.15, C 16.44, N 2.49, O 9.13, S 19.86 A^3 (Fraser et
 * al. 1978). NaN for an element without a volume. */
double tsr_atom_contrast_amplitude(int z, int n_hydrogen, double q_inv_ang);

/* Amplitude of the hydration of one atom that is wholly exposed: the contrast
 * of one water. */
double tsr_component_water(double q_inv_ang);

/* ---- exposures ---- */

/* Counts and exposures of one type by count, in bins of 0.1: what its curve is
 * fitted to. */
enum { TSR_EXPOSURE_N_BIN = 600 };
double *tsr_exposure_bin(double *bins, double count); /* bins [N_BIN][2] */

/* The curve of least squares through sums (number, exposure) [N_BIN][2] of one
 * type; the middle of the number in a bin stands for all. Errors:
 * TSR_E_NUMERIC (no minimum). */
tsr_status tsr_exposure_fit(const double *bins, tsr_exposure_type *type,
                            tsr_err *err);

#endif

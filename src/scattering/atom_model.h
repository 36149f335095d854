/* A molecule as scatterers: every atom with the hydrogens it carries, the water
 * it displaces and the hydration layer that it touches (DESIGN 3).
 *
 *     I(q) = sum_ab C_a C_b I_ab(q),   C = (1, -G(q), c2)
 *     component 0  f_X + n f_H, International Tables
 *               1  rho0 V exp(-q^2 V^(2/3) / 4 pi), rho0 = 0.334 e/A^3
 *               2  s (f_O + 2 f_H - rho0 g of the volume of H2O)
 *
 * s: the part of the atom's sphere that a probe of 1.8 Angstrom can touch; the
 * sphere has the volume V of the atom and its hydrogens. Source: Fraser et al.
 * 1978; Svergun et al. 1995; Schneidman-Duhovny et al. 2010, 2013 (FoXS). */
#ifndef TSR_MODEL_ATOM_MODEL_H
#define TSR_MODEL_ATOM_MODEL_H

#include "core/log.h"
#include "io/atoms.h"
#include "scattering/hydrogen.h"

enum { TSR_ATOM_COMP = 3, TSR_ATOM_HYDRATION = 2 };

typedef struct {
    int z, n_hydrogen;
    double volume; /* Angstrom cubed, of the atom with its hydrogens */
} tsr_atom_kind;

typedef struct {
    int n, n_type;
    double (*xyz)[3];    /* [n] Angstrom */
    int *type;           /* [n] */
    double *surface;     /* [n] 0 to 1 */
    tsr_atom_kind *kind; /* [n_type] in the order of z, then n_hydrogen */
    tsr_hydrogen_count hydrogens;
    double radius_ang; /* r_m, mean radius of the spheres */
    double volume;     /* Angstrom cubed, all atoms' */
    double mass;       /* Da, with hydrogens */
    double n_electron;
    double rg_ang; /* by mass */
} tsr_atom_model;

/* Errors: TSR_E_NOMEM. */
tsr_status tsr_atom_model_new(const tsr_atoms *atoms, tsr_atom_model **out,
                              tsr_err *err);
void tsr_atom_model_free(tsr_atom_model *model);

/* The amplitudes on q_k = k dq: out [3][n_type][n_q], electrons. */
void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out);

/* Says what the file held beside protein, what was left out and what was
 * assumed of hydrogens and volumes; warns of atoms that amino acids lack and of
 * residues that chains lack by their numbers. */
void tsr_atom_model_tell(const tsr_atoms *atoms, const tsr_atom_model *model,
                         tsr_log *log);

/* Volume that an atom displaces, Angstrom cubed: H, C, N, O, S of Fraser,
 * MacRae & Suzuki 1978; P and some metals as in CRYSOL (Svergun et al. 1995);
 * other metals 9.0, as in FoXS; other elements a sphere of the van der Waals
 * radius. */
double tsr_displaced_volume(int z);

#endif

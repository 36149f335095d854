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
#include "core/status.h"
#include "io/atoms.h"

/* How many hydrogens each atom of a structure carries that the file does not
 * show (united atoms). */

/* Residues by how their hydrogens were found. */
typedef struct {
    int n_explicit; /* the file has them all */
    int n_polar;    /* the file has those of N, O and S alone */
    int n_table;    /* amino acids and nucleotides, by the atom's name */
    int n_valence;  /* by the valence rule */
    int n_atom;     /* hydrogens added in all */
} tsr_hydrogen_count;

/* n_hydrogen [n_atom] out; 0 for hydrogens. In a residue with a hydrogen on a
 * carbon, none is added; with hydrogens on other atoms only, carbons get
 * theirs. Amino acids at pH 7 and standard nucleotides go by the names of their
 * atoms (a half of a disulfide has none; so has the first N of a chain no
 * extra ones); a residue with an atom that its table lacks, and every other, by
 * valence from bond lengths and angles:
 *   C  planar or with a short bond: 3 - bonds, else 4 - bonds
 *   N  one bond: 3, or 2 where it is short; two: 1, or 0 where both are short
 *   O  one bond to carbon and that long: 1;  S the same;  others none.
 * Metals have no bonds. Errors: TSR_E_NOMEM. */
tsr_status tsr_hydrogens_assign(const tsr_atoms *atoms, int *n_hydrogen,
                                tsr_hydrogen_count *count, tsr_err *err);

/* How much of each sphere of a molecule a probe can touch.
 * Source: Shrake & Rupley 1973, J. Mol. Biol. 79, 351. */

/* xyz      [n][3]  in   Angstrom
 * radius   [n]     in   Angstrom
 * fraction [n]     out  of n_point points at radius + probe, the part that lies
 *                       within no other sphere of radius + probe
 * The points are a golden spiral. Cost: O(n n_point neighbours).
 * Errors: TSR_E_NOMEM, TSR_E_INTERNAL (a probe or radius below 0). */
tsr_status tsr_surface_fraction(int n, const double (*xyz)[3],
                                const double *radius_ang, double probe_ang,
                                int n_point, double *fraction, tsr_err *err);

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

/* A molecule as scatterers: every atom with the hydrogens it carries, the water
 * it displaces, and the hydration layer (docs/forward-model.md).
 *
 *     I(q) = sum_ab C_a C_b I_ab(q),   C = (1, -G(q), c2)
 *     component 0  (f_X + n f_H) exp(-B q^2 / 16 pi^2), International Tables
 *               1  rho V exp(-q^2 V^(2/3) / 4 pi)
 *               2  the layer
 *
 * The layer is made of beads outside the surface, one for each atom that a
 * probe of 2.8 Angstrom can touch. With the sphere of the atom's volume V
 * widened by the probe, the part of it that lies in no other such sphere is the
 * bead's weight (Angstrom squared), and the bead sits where a cap of that area
 * has its middle: on the sphere, in the direction of the part's centroid. A
 * bead of area A holds c2 A times 3 Angstrom times 0.01 e/A^3, spread out as
 * exp(-0.9 q^2), which is a cap of that size, 3 Angstrom thick. */
#ifndef TSR_SCATTERING_ATOM_MODEL_H
#define TSR_SCATTERING_ATOM_MODEL_H

#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"
#include "molecule/guest.h"
#include "molecule/structure.h"
#include "scattering/debye.h"
#include "scattering/form_factor.h"

/* ---- hydrogens ----
 *
 * How many hydrogens each atom of a structure carries (united atoms). */

/* Residues by how their hydrogens were found. */
typedef struct {
    int n_explicit; /* counted in the file */
    int n_polar;    /* those of N, O and S counted, those of C by valence */
    int n_table;    /* amino acids and nucleotides, by the atom's name */
    int n_valence;  /* by the valence rule */
    int n_atom;     /* hydrogens in all */
} tsr_hydrogen_count;

/* n_hydrogen [n_atom] out; 0 for hydrogens. Amino acids at pH 7 and standard
 * nucleotides go by the names of their atoms, whether or not the file has their
 * hydrogens, so that both give one curve (a half of a disulfide has none; so
 * has the first N of a chain no extra ones). A residue with an atom that its
 * table lacks, and every other, has as many as are bonded in the file where a
 * carbon has one there; else, for N, O and S where one of them has, and for
 * carbons always, as many as follow from bond lengths and angles:
 *   C  planar or with a short bond: 3 - bonds, else 4 - bonds
 *   N  one bond: 3, or 2 where it is short; two: 1, or 0 where both are short
 *   O  one bond to carbon and that long: 1;  S the same;  others none.
 * Metals have no bonds. Errors: TSR_E_NOMEM. */
tsr_status tsr_hydrogens_assign(const tsr_atoms *atoms, int *n_hydrogen,
                                tsr_hydrogen_count *count, tsr_err *err);

/* ---- the model ---- */

enum { TSR_ATOM_COMP = 3, TSR_ATOM_HYDRATION = 2 };

typedef enum {
    TSR_SOLVENT_LAYER, /* as above */
    TSR_SOLVENT_ATOMS, /* hydration at the atoms: component 2 is s (f_O + 2 f_H
                          - rho0 g of the volume of H2O), s the part of the
                          atom's sphere that a probe of 1.8 A can touch; B = 0.
                          What the tables of bodies are trained on. */
    TSR_SOLVENT_FOXS   /* the same at q = 0, all times exp(-0.115 q^2):
                          Schneidman-Duhovny et al. 2010, 2013 */
} tsr_solvent_model;

typedef struct {
    int z, n_hydrogen; /* z 0: a bead of the layer */
    double volume;     /* Angstrom cubed, of the atom with its hydrogens */
    double length, hydrogen; /* for neutrons, fm: of the atom, and of all its
                                hydrogens, */
    double growth;           /* and by how much that grows from H2O to D2O */
} tsr_atom_kind;

typedef struct {
    tsr_pool pool; /* of all, and of itself */
    tsr_solvent_model solvent;
    int is_neutron; /* scattering/neutron.h: all amplitudes are in fm, */
    double d2o;     /* and of that share of D2O in the solvent */
    double density; /* of the solvent, e/A^3 */
    int n, n_atom;  /* atoms but hydrogens, then beads; the former alone */
    int n_type;
    double (*xyz)[3];    /* [n] Angstrom */
    int *type;           /* [n] */
    double *surface;     /* [n] the weight in component 2 */
    int *owner;          /* [n] of a bead the atom that it belongs to, of an
                            atom itself */
    tsr_atom_kind *kind; /* [n_type] in the order of z, then n_hydrogen; the
                            bead last */
    tsr_hydrogen_count hydrogens;
    double radius_ang;       /* r_m, mean radius of the atoms' spheres */
    double power_radius_ang; /* the radius that G takes (scattering/contrast.h):
                                r_m, or less for FoXS, whose G has another
                                exponent */
    double volume;           /* Angstrom cubed, all atoms' */
    double mass;             /* Da, with hydrogens */
    double rg_ang;           /* by mass */
} tsr_atom_model;

/* density: of the solvent, e/A^3. Errors: TSR_E_DATA (nothing but hydrogens),
 * TSR_E_NOMEM. */
tsr_status tsr_atom_model_new(const tsr_atoms *atoms, tsr_solvent_model solvent,
                              double density, tsr_atom_model **out,
                              tsr_err *err);
void tsr_atom_model_free(tsr_atom_model *model);

/* The amplitudes on q_k = k dq: out [3][n_type][n_q], electrons or fm. */
void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out);

/* The model for a Debye sum with these amplitudes; points into both. */
tsr_debye_spec tsr_atom_model_spec(const tsr_atom_model *model, int n_q,
                                   double dq_inv_ang, const double *factor);

/* Contrast of the hydration layer for c2 = 1, e/A^3: of 3 Angstrom on the
 * surface that the model has, or, at the atoms, of what an exposed atom of mean
 * radius carries over a layer of 3 Angstrom. */
double tsr_solvent_contrast(tsr_solvent_model solvent);

/* Says what the file held beside protein, what was left out and what was
 * assumed of hydrogens and volumes; warns of atoms that amino acids lack and of
 * residues that chains lack by their numbers. */
void tsr_atom_model_log(const tsr_atoms *atoms, const tsr_atom_model *model,
                        tsr_log *log);

/* Volume that an atom displaces, Angstrom cubed: H, C, N, O, S of Fraser,
 * MacRae & Suzuki 1978; P and some metals as in CRYSOL (Svergun et al. 1995);
 * other metals 9.0, as in FoXS; other elements a sphere of the van der Waals
 * radius. */
double tsr_displaced_volume(int z);

/* ---- form factors of bodies from their own atoms ----
 *
 * Form factors of what is no amino acid, from its own atoms (molecule/guest.h).
 *
 * As those of the trained types begin, for one occurrence: with r_k the
 * distance of atom k from the body's centre,
 *
 *     F^a(q)  = sum_k f_k^a(q) sinc(q r_k)
 *     E^ab(q) = sum_k sum_l f_k^a f_l^b sinc(q r_kl) - F^a F^b
 *
 * so that the body's own intensity is that of its atoms. Volumes, hydrogens and
 * what an exposed atom carries of water are those of all-atom profiles with
 * hydration at the atoms (TSR_SOLVENT_ATOMS), which the tables were trained on;
 * the exposure is that of the atoms in the file. */

/* Atoms of a model about a centre. */
typedef struct {
    int n;
    int *atom;    /* [n] of the model */
    double *r;    /* [n] from the centre, Angstrom */
    double *r_kl; /* [n][n] */
} tsr_cluster;

/* Room for n atoms, of the pool. */
void tsr_cluster_make(int n, tsr_pool *pool, tsr_cluster *cluster);

/* Distances, once `n` and `atom` are there. */
void tsr_cluster_distances(const tsr_atom_model *model, const double centre[3],
                           tsr_cluster *cluster);

/* F^a [3] and E^ab [6] of three components at q_k = k dq, from amplitudes
 * `factor` [TSR_ATOM_COMP][model->n_type][n_q]. */
void tsr_cluster_factor(const tsr_cluster *cluster, const tsr_atom_model *model,
                        const double *factor, int n_q, double dq_inv_ang, int k,
                        double *f, double *e);

/* A table with a type for each body of the guests behind those of `table`,
 * which may have one component or three. atoms: all of the file. density: of
 * the solvent, e/A^3. Caller frees *out, which an error leaves as it was.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_form_factor_add_guests(const tsr_form_factor_table *table,
                                      const tsr_guests *guests,
                                      const tsr_atoms *atoms, double density,
                                      tsr_form_factor_table **out,
                                      tsr_err *err);

#endif

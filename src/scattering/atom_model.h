/* An all-atom model of scattering: every atom with its hydrogens, the solvent
 * that it displaces, and the hydration layer (docs/forward-model.md).
 *
 *     I(q) = sum_ab C_a C_b I_ab(q),   C = (1, -G(q), c2)
 *     component 0  (f_X + n f_H) exp(-B q^2 / 16 pi^2), International Tables
 *               1  rho V exp(-q^2 V^(2/3) / 4 pi)
 *               2  the hydration layer
 *
 * The layer consists of beads outside the surface, one for each atom that a
 * probe of 2.8 Angstrom can touch. Around each atom there is a sphere, with the
 * radius of the atom's volume V plus the probe. The weight of the bead is the
 * area of the part of this sphere that lies in no other such sphere (Angstrom
 * squared). The bead lies in the direction of the centroid of this part, at the
 * radius where a spherical cap of the same area has its centroid. A bead of
 * area A holds c2 A times 3 Angstrom times 0.01 e/A^3, with the form factor
 * exp(-0.9 q^2) of a cap of this size and 3 Angstrom thickness. */
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
 * The number of hydrogens that each atom of a structure carries (united
 * atoms). */

/* Number of residues by the source of their hydrogens. */
typedef struct {
    int n_explicit; /* hydrogens of the file */
    int n_polar;    /* N, O and S from the file, C by valence */
    int n_table;    /* by atom names: amino acids, nucleotides */
    int n_valence;  /* by the valence rule */
    int n_atom;     /* hydrogens in total */
} tsr_hydrogen_count;

/* n_hydrogen [n_atom] out: hydrogens that each atom carries, 0 for the
 * hydrogens of the file themselves.
 *
 * Amino acids at pH 7 and standard nucleotides follow a table of atom names,
 * whether or not the file has their hydrogens, so both kinds of files give the
 * same curve. (A half-cystine has no hydrogen on S, and the first N of a chain
 * gets no extra hydrogens.) For any other residue, and for one with an atom
 * that its table lacks: if a carbon has a hydrogen in the file, the bonds of
 * the file are counted. Otherwise hydrogens of N, O and S are counted if any of
 * these atoms has one in the file. All remaining numbers follow from bond
 * lengths and angles:
 *   C  planar or with a short bond: 3 - bonds, else 4 - bonds
 *   N  one bond: 3, or 2 if it is short; two: 1, or 0 if both are short
 *   O  one bond to carbon with the length of a single bond: 1;  S the same;
 *      any other: 0.
 * Metals have no bonds. Errors: TSR_E_NOMEM. */
tsr_status tsr_hydrogens_assign(const tsr_atoms *atoms, int *n_hydrogen,
                                tsr_hydrogen_count *count, tsr_err *err);

/* ---- the model ---- */

enum { TSR_ATOM_COMP = 3, TSR_ATOM_HYDRATION = 2 };

typedef enum {
    TSR_SOLVENT_LAYER, /* the layer of beads described above */
    TSR_SOLVENT_ATOMS, /* hydration at the atoms: component 2 is s (f_O + 2 f_H
                          - rho0 g of the volume of H2O), where s is the exposed
                          fraction of the atom's sphere for a probe of 1.8 A; B
                          = 0. The tables of bodies are trained on this model */
    TSR_SOLVENT_FOXS   /* as TSR_SOLVENT_ATOMS, but with all amplitudes at q = 0
                          times exp(-0.115 q^2): Schneidman-Duhovny et al. 2010,
                          2013 */
} tsr_solvent_model;

typedef struct {
    int z, n_hydrogen;       /* z 0: a bead of the layer */
    double volume;           /* of the atom with its hydrogens, Angstrom^3 */
    double length, hydrogen; /* neutron scattering lengths, fm: of the atom, and
                                of all its hydrogens */
    double growth;           /* increase of `hydrogen` from H2O to D2O */
} tsr_atom_kind;

typedef struct {
    tsr_pool pool; /* owns the model and its arrays */
    tsr_solvent_model solvent;
    int is_neutron; /* 1: amplitudes in fm (scattering/neutron.h) */
    double d2o;     /* fraction of D2O in the solvent; neutrons only */
    double density; /* electron density of the solvent, e/A^3; for neutrons its
                       scattering length density, fm/A^3 */
    int n, n_atom;  /* n: atoms other than hydrogen, then beads; n_atom: the
                       atoms only */
    int n_type;
    double (*xyz)[3];    /* [n] Angstrom */
    int *type;           /* [n] */
    double *surface;     /* [n] weight in component 2 */
    int *owner;          /* [n] the atom that a bead belongs to; atoms:
                            itself */
    tsr_atom_kind *kind; /* [n_type] sorted by z, then n_hydrogen; the bead
                            comes last */
    tsr_hydrogen_count hydrogens;
    double radius_ang;       /* r_m, mean radius of spheres of the atoms'
                                volumes */
    double power_radius_ang; /* radius for G (scattering/contrast.h): r_m, or a
                                smaller radius for FoXS, whose G has a different
                                exponent */
    double volume;           /* sum over all atoms, Angstrom cubed */
    double mass;             /* including hydrogens, Da */
    double rg_ang;           /* mass-weighted radius of gyration */
} tsr_atom_model;

/* Creates the model. density: electron density of the solvent, e/A^3. Errors:
 * TSR_E_DATA (the file holds only hydrogens), TSR_E_NOMEM. */
tsr_status tsr_atom_model_new(const tsr_atoms *atoms, tsr_solvent_model solvent,
                              double density, tsr_atom_model **out,
                              tsr_err *err);
void tsr_atom_model_free(tsr_atom_model *model);

/* Amplitudes on q_k = k dq: out [3][n_type][n_q], electrons or fm. */
void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out);

/* The spec of a Debye sum over the model with these amplitudes. It points into
 * both. */
tsr_debye_spec tsr_atom_model_spec(const tsr_atom_model *model, int n_q,
                                   double dq_inv_ang, const double *factor);

/* Contrast of the hydration layer for c2 = 1, e/A^3. For TSR_SOLVENT_LAYER, the
 * contrast of the beads. For hydration at the atoms, the excess electrons of an
 * exposed atom of mean radius, divided by the volume of a 3 Angstrom layer on
 * it. */
double tsr_solvent_contrast(tsr_solvent_model solvent);

/* Reports what the file holds besides protein, which parts were left out, and
 * the assumptions about hydrogens and volumes. Warns about missing atoms of
 * amino acids and about gaps in the residue numbers. */
void tsr_atom_model_log(const tsr_atoms *atoms, const tsr_atom_model *model,
                        tsr_log *log);

/* Displaced volume of an atom, Angstrom cubed: H, C, N, O, S from Fraser,
 * MacRae & Suzuki 1978; P and some metals as in CRYSOL (Svergun et al. 1995);
 * other metals 9.0, as in FoXS; other elements the sphere of their van der
 * Waals radius. */
double tsr_displaced_volume(int z);

/* ---- form factors of bodies from their own atoms ----
 *
 * Form factors for bodies that are not amino acids (molecule/guest.h), computed
 * from the atoms of this one body. With r_k the distance of atom k from the
 * body's centre,
 *
 *     F^a(q)  = sum_k f_k^a(q) sinc(q r_k)
 *     E^ab(q) = sum_k sum_l f_k^a f_l^b sinc(q r_kl) - F^a F^b
 *
 * so the intensity of an isolated body equals that of its atoms. These are the
 * definitions of the trained types, without the average over occurrences.
 * Volumes, hydrogens and the water of exposed atoms follow TSR_SOLVENT_ATOMS,
 * the model that the tables were trained on. The exposure is that of the atoms
 * in the file. */

/* The atoms of one body and their distances. */
typedef struct {
    int n;
    int *atom;    /* [n] indices in the model */
    double *r;    /* [n] distances from the centre, Angstrom */
    double *r_kl; /* [n][n] distances between atoms, Angstrom */
} tsr_cluster;

/* Allocates a cluster of n atoms in the pool. */
void tsr_cluster_make(int n, tsr_pool *pool, tsr_cluster *cluster);

/* Computes r and r_kl from n and atom. */
void tsr_cluster_distances(const tsr_atom_model *model, const double centre[3],
                           tsr_cluster *cluster);

/* F^a [3] and E^ab [6] of three components at q_k = k dq, from amplitudes
 * `factor` [TSR_ATOM_COMP][model->n_type][n_q]. */
void tsr_cluster_factor(const tsr_cluster *cluster, const tsr_atom_model *model,
                        const double *factor, int n_q, double dq_inv_ang, int k,
                        double *f, double *e);

/* Extends a table (of one or three components) by one type for each body of the
 * guests. atoms: all atoms of the file. density: of the solvent, e/A^3. The
 * caller frees *out; an error leaves it unchanged. Errors: TSR_E_NOMEM. */
tsr_status tsr_form_factor_add_guests(const tsr_form_factor_table *table,
                                      const tsr_guests *guests,
                                      const tsr_atoms *atoms, double density,
                                      tsr_form_factor_table **out,
                                      tsr_err *err);

#endif

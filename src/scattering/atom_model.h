/* An all-atom model of scattering: every atom with its hydrogens, the solvent
 * that it displaces, and the hydration layer (docs/forward-model.md).
 *
 *     I(q) = sum_ab C_a C_b I_ab(q),   C = (1, -G(q), c2)
 *     component 0  (f_X + n f_H) exp(-B q^2 / 16 pi^2), International Tables
 *               1  rho V exp(-0.055 V^(2/3) q^2)
 *               2  the hydration layer
 *
 * f_X and f_H are the form factors of the atom and of hydrogen, n the number of
 * its hydrogens, V its volume with them, rho the electron density of the
 * solvent.
 *
 * The layer consists of beads outside the surface, one for each atom that a
 * probe of 4 Angstrom can touch. Around each atom there is a sphere: its
 * radius is that of a sphere of the atom's volume V, plus the probe. The weight
 * of the bead is the area A (Angstrom squared) of the exposed part of this
 * sphere, which lies in no other such sphere. The bead lies at the centroid of
 * the exposed part, moved outwards by the factor 1 / (1 - f), at most 2, where
 * f is the exposed fraction: the bead of a spherical cap then lies on the
 * sphere. It has c2 A times 3 Angstrom times 0.01 e/A^3 electrons, with the
 * form factor exp(-0.9 q^2) of a cap of typical size, 3 Angstrom thick. */
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
    int n_polar;    /* N, O and S from the file, C by the valence rule; these
                       residues are also part of n_valence */
    int n_table;    /* by atom names: amino acids, nucleotides */
    int n_valence;  /* by the valence rule */
    int n_atom;     /* hydrogens of all residues (not a number of residues) */
} tsr_hydrogen_count;

/* n_hydrogen [n_atom] out: hydrogens that each atom carries, 0 for the
 * hydrogens of the file themselves.
 *
 * Amino acids at pH 7 and standard nucleotides follow a table of atom names,
 * whether or not the file has their hydrogens, so both kinds of files give the
 * same curve. (A half-cystine has no hydrogen on S, and the first N of a chain
 * gets no extra hydrogens.) For any other residue, and for one with an atom
 * that its table lacks: if a carbon has a hydrogen in the file, the hydrogens
 * of the file are counted. Otherwise the hydrogens of N, O and S are taken from
 * the file if any of these atoms has one there. All remaining numbers follow
 * from the lengths and angles of the bonds to heavy atoms (the valence rule):
 *   C  4 - bonds; 1 less if planar or with a double bond, 2 less if linear or
 *      with a triple bond
 *   N  one bond to carbon: 3, with a shorter bond 2, with a triple bond 0; two
 *      bonds: 1, or 0 if both are short; no bond: 4; else 0
 *   O  one bond to carbon with the length of a single bond: 1;  S the same;
 *      any other: 0.
 * Metals have no bonds, and ions no hydrogens. Errors: TSR_E_NOMEM. */
tsr_status tsr_hydrogens_assign(const tsr_atoms *atoms, int *n_hydrogen,
                                tsr_hydrogen_count *count, tsr_err *err);

/* ---- the model ---- */

enum { TSR_ATOM_COMP = 3, TSR_ATOM_HYDRATION = 2 };

typedef enum {
    TSR_SOLVENT_LAYER, /* the layer of beads described above */
    TSR_SOLVENT_ATOMS, /* hydration at the atoms: component 2 of an atom is s
                          times the amplitude of a water molecule in excess of
                          the water of density 0.334 e/A^3 that it displaces,
                          where s is the exposed fraction of the atom's sphere
                          for a probe of 1.8 A; B = 0. The tables of bodies are
                          trained on this model. Displaced solvent of both
                          models at the atoms: rho V exp(-q^2 V^(2/3) / 4 pi) */
    TSR_SOLVENT_FOXS   /* as TSR_SOLVENT_ATOMS, but each amplitude is its value
                          at q = 0 times exp(-0.115 q^2): Schneidman-Duhovny et
                          al. 2010, 2013 */
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
    double *surface;     /* [n] weight in component 2: area of a bead, Angstrom
                            squared (then 0 for atoms), or exposed fraction of
                            an atom */
    int *owner;          /* [n] atom that a bead belongs to; of an atom: the
                            atom itself */
    tsr_atom_kind *kind; /* [n_type] sorted by z, then n_hydrogen; the bead
                            comes last */
    tsr_hydrogen_count hydrogens;
    double radius_ang;       /* r_m, mean radius of spheres of the atoms'
                                volumes */
    double power_radius_ang; /* radius for G (scattering/contrast.h): r_m for
                                TSR_SOLVENT_ATOMS; smaller where the Gaussians
                                of the displaced volumes, or FoXS's G, have a
                                smaller exponent */
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

/* Amplitudes on q_k = k dq at weight 1: out [3][n_type][n_q], electrons or
 * fm. */
void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out);

/* The spec of a Debye sum over the model with these amplitudes. It points into
 * the model and the amplitudes. */
tsr_debye_spec tsr_atom_model_spec(const tsr_atom_model *model, int n_q,
                                   double dq_inv_ang, const double *factor);

/* Contrast of the hydration layer for c2 = 1, e/A^3. For TSR_SOLVENT_LAYER, the
 * contrast of the beads. For hydration at the atoms, the excess electrons of an
 * exposed atom of mean radius, divided by the volume of a 3 Angstrom layer on
 * it. */
double tsr_solvent_contrast(tsr_solvent_model solvent);

/* Reports which molecules the file has besides protein, which parts were left
 * out, and the assumptions about hydrogens and volumes. Warns about missing
 * atoms of amino acids, missing residues, buffer molecules, partial occupancies
 * and unknown elements. */
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

/* Allocates the arrays of a cluster for up to n atoms in the pool, and sets
 * cluster->n to 0. */
void tsr_cluster_make(int n, tsr_pool *pool, tsr_cluster *cluster);

/* Computes r and r_kl from the positions of cluster->atom. centre: of the body,
 * Angstrom. */
void tsr_cluster_distances(const tsr_atom_model *model, const double centre[3],
                           tsr_cluster *cluster);

/* F^a and E^ab of three components at q_k = k dq: f [3] and e [6] out. factor
 * [TSR_ATOM_COMP][model->n_type][n_q]: from tsr_atom_model_factors. */
void tsr_cluster_factor(const tsr_cluster *cluster, const tsr_atom_model *model,
                        const double *factor, int n_q, double dq_inv_ang, int k,
                        double *f, double *e);

/* Extends a table (of one or three components) by one type for each body of the
 * guests. atoms: all atoms of the file. density: of the solvent, e/A^3. The
 * caller frees *out; an error leaves it unchanged. Errors: TSR_E_NOMEM, those
 * of tsr_atom_model_new. */
tsr_status tsr_form_factor_add_guests(const tsr_form_factor_table *table,
                                      const tsr_guests *guests,
                                      const tsr_atoms *atoms, double density,
                                      tsr_form_factor_table **out,
                                      tsr_err *err);

#endif

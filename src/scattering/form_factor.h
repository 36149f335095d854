/* Form factors of bodies (docs/design.md, section 2): the tables, which
 * tools/train makes, and how their components make a profile.
 *
 * A table has one component or three. With three, the solute in vacuum, the
 * solvent that it displaces and its hydration stay apart, so that c1, which
 * scales the displaced volume, and c2, which scales the hydration, can change
 * without a new sum over pairs:
 *
 *     I(q) = sum_a sum_b C_a C_b [I_ab(q) + S_ab(q)],   C = (1, -G(q), c2)
 *     I_ab(q) = sum_i sum_j F_i^a(q) F_j^b(q) sinc(q r_ij)
 *     S_ab(q) = sum_i E_i^ab(q)
 *
 * One component is the contrast, solute less displaced solvent, and C = (1).
 * The amplitude of a type is that of its atoms, averaged over its occurrences
 * in the training structures, and its excess is what a sum of mean amplitudes
 * leaves out of the terms of a body with itself:
 *
 *     F_t^a(q) = < sum_{k in body} f_k^a(q) sinc(q |r_k - r_body|) >
 *     E_t^ab(q) = < sum_k sum_l f_k^a f_l^b sinc(q r_kl) > - F_t^a F_t^b
 *
 * Body i of type t has F_i^a = F_t^a for all components but hydration, which is
 * its exposure e_i (below) times that of the type:
 * F_i^hydration = e_i F_t, E_i = e_i E_t with one index hydration, e_i^2 E_t
 * with both. */
#ifndef TSR_SCATTERING_FORM_FACTOR_H
#define TSR_SCATTERING_FORM_FACTOR_H

#include "core/pool.h"
#include "engine/engine.h"
#include "molecule/residue.h"
#include "scattering/contrast.h"

/* Electrons in a cubic Angstrom of water at 20 C. */
#define TSR_WATER_DENSITY 0.334

/* ---- how much hydration a body carries ----
 *
 * The exposure of a body is the sum over its atoms of the share of each atom's
 * sphere that a probe of 1.8 Angstrom can touch (scattering/atom_model.h).
 * Where there are no atoms it is estimated from how many bodies are around, by
 *
 *     e = A / (1 + exp((n - n0) / w)),   n_i = sum_{j != i} u(r_ij),
 *     u(r) = 1 below `near`, 0 above `far`, (1 + cos(pi x)) / 2 between, with
 *            x = (r - near) / (far - near)
 *
 * with A, n0 and w of the body's type. The count and its switch: Durham et al.
 * 2009, J. Mol. Model. 15, 1093.
 *
 * Water is outside of the body that it touches: with m_i the middle of the
 * bodies around i, weighted by u, at r_i + L (r_i - m_i). There is no body, but
 * a plane wave, or any other function that is smooth over that distance, has
 * there about (1 + L) of its value at r_i less L of its mean over the bodies
 * around. So a body gives up L e_i to those around it, and keeps (1 + L) e_i:
 *
 *     e'_i = e_i + L [e_i - sum_j u(r_ij) e_j / n_j]
 *
 * (without the bracket where none is around). The sum stays what it was; e' may
 * be negative, inside. */

typedef struct {
    double largest; /* A, exposed atoms; 0: never exposed */
    double middle;  /* n0, neighbours */
    double width;   /* w, neighbours, above 0 */
} tsr_exposure_type;

typedef struct {
    double near_ang, far_ang;
    double carry; /* L; 0: hydration at the bodies */
    tsr_exposure_type type[TSR_MAX_TYPE];
} tsr_exposure_model;

/* count [n] out: n_i. O(n^2). */
void tsr_exposure_count(const tsr_exposure_model *model, int n,
                        const double (*xyz)[3], double *count);

double tsr_exposure_at(const tsr_exposure_type *type, double count);

/* e' in place of e: exposure [n]. Bodies that are dry [n] (NULL: none) neither
 * give nor take. O(n^2). Errors: TSR_E_NOMEM. */
tsr_status tsr_exposure_displace(const tsr_exposure_model *model, int n,
                                 const double (*xyz)[3], const int *dry,
                                 double *exposure, tsr_err *err);

/* ---- tables ---- */

typedef struct {
    tsr_pool pool; /* of all but the source, and of itself */
    tsr_body_model model;
    int n_comp; /* 1 or TSR_N_COMP */
    int n_pair; /* of components: n_comp (n_comp + 1) / 2 */
    int n_type, n_q;
    int n_trained; /* the first types are those of amino acids, others those of
                      bodies of a molecule of its own (atom_model.h) */
    double dq_inv_ang; /* q_k = k dq */
    double *amplitude; /* [n_comp][n_type][n_q] F, electrons */
    double *excess;    /* [n_pair][n_type][n_q] E, electrons squared */
    char *source;      /* comment lines of the file: how it was made */
    /* Files of one component have these two, which are 0 elsewhere: */
    long *count; /* [n_type] occurrences it was trained on */
    double *rg2; /* [n_type] mean square radius of the body's own atoms,
                    mass-weighted, Angstrom squared */
    /* Files of three components have these three: */
    double *atoms;               /* [n_type] mean number of heavy atoms */
    double *radius;              /* [n_type] their mean radius, Angstrom */
    tsr_exposure_model exposure; /* [n_trained] inside */
    double *exposed; /* [n_type] exposed atoms of the types that come after the
                        trained ones; 0 before */
} tsr_form_factor_table;

/* A table of zeroes with the source NULL; NULL when out of memory. n_comp is 1
 * or TSR_N_COMP. */
tsr_form_factor_table *tsr_form_factor_new(tsr_body_model model, int n_comp,
                                           int n_q, double dq_inv_ang);
void tsr_form_factor_free(tsr_form_factor_table *table);

/* A copy with n_more types of zeroes behind. NULL: out of memory. */
tsr_form_factor_table *
tsr_form_factor_extend(const tsr_form_factor_table *table, int n_more);

/* Reads a table of data/, of one component or three, or one of form factors as
 * published by others, in the lists in brackets that resaxs ships for Stovgaard
 * et al. 2010, BMC Bioinformatics 11, 429:
 *
 *     [[6.03, 8.88, ...],      one list a q, one number a body type, electrons
 *      [6.02, 8.87, ...]]
 *
 * with q in 1/Angstrom, equally spaced from 0, in one list in a file beside:
 * "x-q_vector.dat" for "x-two_body_model.dat". 20 columns are residues by
 * three-letter code, 21 are backbone first, then the same order. Such a table
 * has one component without excess, so that S(q) = 0.
 *
 * Errors name file and line: TSR_E_NOINPUT (also of the q vector),
 * TSR_E_DATA. */
tsr_status tsr_form_factor_read(const char *path, tsr_form_factor_table **out,
                                tsr_err *err);

/* The first line of a table of data/. */
const char *tsr_form_factor_format(int n_comp);

/* The table at q = 0, dq, ...: natural cubic splines in q of F and of E, of the
 * table mirrored at q = 0 (both are even in q).
 * amplitude [n_comp][n_type][n_q], excess [n_pair][n_type][n_q] out; NULL: not
 * wanted. Errors: TSR_E_RANGE where the grid goes beyond the table. */
tsr_status tsr_form_factor_resample(const tsr_form_factor_table *table, int n_q,
                                    double dq_inv_ang, double *amplitude,
                                    double *excess, tsr_err *err);

/* exposure [n_body] out: estimated for the trained types, and for others what
 * the table has; not carried outside. O(n_body^2). */
void tsr_form_factor_exposures(const tsr_form_factor_table *table, int n_body,
                               const int *type, const double (*xyz)[3],
                               double *exposure);

/* What bodies displace is the solvent's density: of a table of three components
 * the amplitude of the displaced solvent becomes that of `density`, e/A^3,
 * instead of water's 0.334. Errors: TSR_E_USAGE where a table of one component,
 * which has water in it, is asked for another. */
tsr_status tsr_form_factor_set_density(tsr_form_factor_table *table,
                                       double density, tsr_err *err);

/* A table of three components as one: F = F^solute - F^displaced and its
 * excess, which is c1 = 1 and no hydration. Errors: TSR_E_NOMEM. */
tsr_status tsr_form_factor_fold(const tsr_form_factor_table *table,
                                tsr_form_factor_table **out, tsr_err *err);

/* Mean radius of the atoms of n bodies, Angstrom: r_m of G. */
double tsr_component_radius(const tsr_form_factor_table *table, int n,
                            const int *type);

/* ---- bodies as an engine sees them ----
 *
 * Partial profiles of a coarse-grained conformation, from any engine, with S_ab
 * in them, so that c1 and c2 change without an engine. */

/* What an engine needs of a conformation. Bodies of one type differ in their
 * hydration, so that the engine's types are bodies of the same type and
 * exposure. Exposures and S_ab belong to the conformation they were made of. */
typedef struct {
    tsr_engine_spec spec; /* n_system 1, no d_bound; points into the rest */
    int *type;            /* [n_body] of the engine */
    double *form_factor;  /* [TSR_N_COMP][spec.n_type][n_q] electrons */
    double *self;         /* [TSR_N_COMP_PAIR][n_q] S_ab, electrons squared,
                             pairs 00 01 02 11 12 22 */
    double radius_ang;    /* r_m of G */
} tsr_coarse_spec;

/* Sets spec, of which type and form_factor are there. */
void tsr_coarse_spec_set(tsr_coarse_spec *spec, int n_body, int n_type,
                         int n_comp, int n_q, double dq_inv_ang);

/* Of bodies with those exposures [n_body]; its memory is of the pool. Errors:
 * TSR_E_RANGE (the table ends before), TSR_E_NOMEM. */
tsr_status tsr_coarse_spec_of(const tsr_form_factor_table *table, int n_body,
                              const int *type, const double *exposure, int n_q,
                              double dq_inv_ang, tsr_pool *pool,
                              tsr_coarse_spec *out, tsr_err *err);

/* Adds S_ab, on the n_q of excess [TSR_N_COMP_PAIR][n_type][n_q] (that of
 * tsr_form_factor_resample), to partial [TSR_N_COMP_PAIR][n_q]. */
void tsr_coarse_add_self(const tsr_form_factor_table *table, int n_body,
                         const int *type, const double *exposure, int n_q,
                         const double *excess, double *partial);

#endif

/* Form factors of bodies (docs/design.md, section 2): tables made by
 * tools/train, and the profile as a combination of components.
 *
 * A table has one component or three. Three components are the solute in
 * vacuum, the displaced solvent, and the hydration. With these, the parameters
 * c1 (scale of the displaced volume) and c2 (scale of the hydration) can change
 * without a new sum over pairs of bodies:
 *
 *     I(q) = sum_a sum_b C_a C_b [I_ab(q) + S_ab(q)],   C = (1, -G(q), c2)
 *     I_ab(q) = sum_i sum_j F_i^a(q) F_j^b(q) sinc(q r_ij)
 *     S_ab(q) = sum_i E_i^ab(q)
 *
 * The single component is the contrast, solute minus displaced solvent, with C
 * = (1). The amplitude F of a type is the amplitude of its atoms, averaged over
 * all occurrences in the training structures. The excess E is the difference
 * between the mean self-intensity of a body and the square of its mean
 * amplitude:
 *
 *     F_t^a(q) = < sum_{k in body} f_k^a(q) sinc(q |r_k - r_body|) >
 *     E_t^ab(q) = < sum_k sum_l f_k^a f_l^b sinc(q r_kl) > - F_t^a F_t^b
 *
 * Body i of type t has F_i^a = F_t^a and E_i^ab = E_t^ab for solute and
 * displaced solvent. In the hydration component the exposure e_i of the
 * body (below) multiplies the values of the type: F_i = e_i F_t, and E_i = e_i
 * E_t or e_i^2 E_t for a pair with one or two hydration indices. */
#ifndef TSR_SCATTERING_FORM_FACTOR_H
#define TSR_SCATTERING_FORM_FACTOR_H

#include "core/pool.h"
#include "engine/engine.h"
#include "molecule/residue.h"
#include "scattering/contrast.h"

/* Electron density of water at 20 C, electrons per cubic Angstrom. */
#define TSR_WATER_DENSITY 0.334

/* ---- exposure: the amount of hydration of a body ----
 *
 * The exposure of a body is the sum over its atoms of the fraction of each
 * atom's sphere that a probe of 1.8 Angstrom can touch
 * (scattering/atom_model.h). If the atoms are not known, the exposure is
 * estimated from the number of neighbours:
 *
 *     e = A / (1 + exp((n - n0) / w)),   n_i = sum_{j != i} u(r_ij),
 *     u(r) = 1 below `near`, 0 above `far`, (1 + cos(pi x)) / 2 between, with
 *            x = (r - near) / (far - near)
 *
 * A, n0 and w belong to the body's type. The neighbour count and its switching
 * function: Durham et al. 2009, J. Mol. Model. 15, 1093.
 *
 * The water of a body lies outside the body. With m_i the mean position of the
 * neighbours of body i, weighted by u, the water of body i is at w_i = r_i + L
 * (r_i - m_i). No body is at w_i. But at w_i a smooth function, such as a plane
 * wave, has about (1 + L) times its value at r_i minus L times its mean over
 * the neighbours. So the exposure of body i becomes (1 + L) e_i, and the
 * neighbours lose L e_i in total:
 *
 *     e'_i = e_i + L [e_i - sum_j u(r_ij) e_j / n_j]
 *
 * (without the bracket for a body that has no neighbours). The sum over all
 * bodies stays the same; e' of a buried body may be negative. */

/* The parameters of the estimate, by body type. */
typedef struct {
    double largest; /* A, in exposed atoms; 0: never exposed */
    double middle;  /* n0, in neighbours */
    double width;   /* w, in neighbours, above 0 */
} tsr_exposure_type;

typedef struct {
    double near_ang, far_ang;
    double displacement; /* L, of the water; 0: hydration at the bodies */
    tsr_exposure_type type[TSR_MAX_TYPE];
} tsr_exposure_model;

/* Neighbour counts n_i: count [n] out. Cost: O(n^2). */
void tsr_exposure_count(const tsr_exposure_model *model, int n,
                        const double (*xyz)[3], double *count);

/* e of a body with this neighbour count. */
double tsr_exposure_at(const tsr_exposure_type *type, double count);

/* Replaces e by e' in exposure [n]. dry [n]: nonzero for bodies without
 * hydration, which keep their e and are nobody's neighbours; NULL: no such
 * bodies. Cost: O(n^2). Errors: TSR_E_NOMEM. */
tsr_status tsr_exposure_displace(const tsr_exposure_model *model, int n,
                                 const double (*xyz)[3], const int *dry,
                                 double *exposure, tsr_err *err);

/* ---- tables ---- */

typedef struct {
    tsr_pool pool; /* owns the table and its arrays, but not `source` */
    tsr_body_model model;
    int n_comp; /* 1 or TSR_N_COMP */
    int n_pair; /* pairs of components, n_comp (n_comp + 1) / 2 */
    int n_type, n_q;
    int n_trained; /* the first n_trained types are amino acids; the others are
                      guests (atom_model.h) */
    double dq_inv_ang; /* grid of the table: q_k = k dq */
    double *amplitude; /* [n_comp][n_type][n_q] F, electrons */
    double *excess;    /* [n_pair][n_type][n_q] E, electrons squared */
    char *source;      /* comment lines of the file, which state its origin */
    /* Trained types have these only in files with one component, else 0: */
    long *count; /* [n_type] occurrences in the training structures; 1 for a
                    guest */
    double *rg2; /* [n_type] mean square distance of the body's atoms from its
                    centre, mass-weighted, Angstrom squared */
    /* Trained types have these only in files with three components: */
    double *atoms;               /* [n_type] mean number of heavy atoms */
    double *radius;              /* [n_type] mean radius of these atoms,
                                    Angstrom */
    tsr_exposure_model exposure; /* parameters of the [n_trained] types */
    double *exposed; /* [n_type] exposed atoms of the types of guests; 0 for
                        trained types */
} tsr_form_factor_table;

/* A table of zeros with source NULL. n_comp is 1 or TSR_N_COMP. Returns NULL
 * when out of memory. */
tsr_form_factor_table *tsr_form_factor_new(tsr_body_model model, int n_comp,
                                           int n_q, double dq_inv_ang);
void tsr_form_factor_free(tsr_form_factor_table *table);

/* A copy of the table with n_more additional types of zeros. Returns NULL when
 * out of memory. */
tsr_form_factor_table *
tsr_form_factor_extend(const tsr_form_factor_table *table, int n_more);

/* Reads a table of data/ with one or three components, or a published table in
 * the bracketed lists that resaxs ships for Stovgaard et al. 2010, BMC
 * Bioinformatics 11, 429:
 *
 *     [[6.03, 8.88, ...], [6.02, 8.87, ...], ...]
 *
 * with one list for each q, and one number, in electrons, for each body type.
 * The q of a published table, in 1/Angstrom and equally spaced from 0, are one
 * list in a second file: "x-q_vector.dat" for "x-two_body_model.dat". A table
 * of 20 columns has the residues, sorted by three-letter code; one of 21
 * columns has the backbone first. Published tables have one component without
 * excess, so S(q) = 0.
 *
 * Errors name file and line: TSR_E_NOINPUT (also for a missing q vector),
 * TSR_E_DATA. */
tsr_status tsr_form_factor_read(const char *path, tsr_form_factor_table **out,
                                tsr_err *err);

/* The first line of a table file of data/. */
const char *tsr_form_factor_format(int n_comp);

/* Interpolates a table to q = k dq: natural cubic splines of F and E in q,
 * through the table mirrored at q = 0 (both are even in q).
 * amplitude  [n_comp][n_type][n_q]  out  may be NULL
 * excess     [n_pair][n_type][n_q]  out  may be NULL
 * Errors: TSR_E_RANGE if the grid ends beyond the table. */
tsr_status tsr_form_factor_resample(const tsr_form_factor_table *table, int n_q,
                                    double dq_inv_ang, double *amplitude,
                                    double *excess, tsr_err *err);

/* Exposures of bodies, exposure [n_body] out: estimated from neighbours for
 * trained types, from the table for guests. The water is at the bodies (L = 0).
 * Cost: O(n_body^2). */
void tsr_form_factor_exposures(const tsr_form_factor_table *table, int n_body,
                               const int *type, const double (*xyz)[3],
                               double *exposure);

/* Sets the electron density of the displaced solvent: multiplies the amplitude
 * of this component by density / (0.334 e/A^3), and the excess accordingly.
 * Errors: TSR_E_USAGE for a table with one component, which was made for water,
 * and any other density. */
tsr_status tsr_form_factor_set_density(tsr_form_factor_table *table,
                                       double density, tsr_err *err);

/* Folds a table of three components without guests into one, F = F^solute -
 * F^displaced with its excess: c1 = 1 and no hydration. Other members are not
 * copied. Errors: TSR_E_NOMEM. */
tsr_status tsr_form_factor_fold(const tsr_form_factor_table *table,
                                tsr_form_factor_table **out, tsr_err *err);

/* Mean radius of the atoms of n bodies, Angstrom: r_m of G. */
double tsr_component_radius(const tsr_form_factor_table *table, int n,
                            const int *type);

/* ---- bodies in the form that an engine needs ----
 *
 * The result of an engine plus S_ab are the partial profiles of a
 * coarse-grained conformation. They give its curve at any c1 and c2. */

/* Bodies for an engine. Two bodies of the same type may have different
 * exposures, so each combination of type and exposure becomes a type of the
 * engine. */
typedef struct {
    tsr_engine_spec spec; /* n_system 1, no d_bound_ang; points to the arrays
                             below */
    int *type;            /* [n_body] types of the engine */
    double *form_factor;  /* [spec.n_comp][spec.n_type][n_q] electrons or fm */
    double *self;         /* [pairs of components][n_q] S_ab, electrons squared
                             or fm^2; three components: 00 01 02 11 12 22 */
    double radius_ang;    /* r_m of G */
} tsr_coarse_spec;

/* Sets spec->spec from the arguments and the members type and form_factor. */
void tsr_coarse_spec_set(tsr_coarse_spec *spec, int n_body, int n_type,
                         int n_comp, int n_q, double dq_inv_ang);

/* The spec, with three components, for bodies with these types and exposures
 * [n_body], in memory of the pool. Errors: TSR_E_RANGE (the table ends below
 * the last q of the grid), TSR_E_NOMEM. */
tsr_status tsr_coarse_spec_of(const tsr_form_factor_table *table, int n_body,
                              const int *type, const double *exposure, int n_q,
                              double dq_inv_ang, tsr_pool *pool,
                              tsr_coarse_spec *out, tsr_err *err);

/* Adds S_ab to partial [TSR_N_COMP_PAIR][n_q]. excess
 * [TSR_N_COMP_PAIR][n_type][n_q]: from tsr_form_factor_resample. */
void tsr_coarse_add_self(const tsr_form_factor_table *table, int n_body,
                         const int *type, const double *exposure, int n_q,
                         const double *excess, double *partial);

#endif

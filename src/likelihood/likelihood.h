/* log P(D | X, theta): the terms of a run, and what they have in common.
 *
 * Terms that need scattering share one grid of q and the coefficients c1 and
 * c2. What sees the molecule is a probe, with form factors and an engine of its
 * own; a curve is a view of it, a probe with coefficients of its components. A
 * point is one structure (or ensemble) with values of all parameters, and
 * everything that is known of it. */
#ifndef TSR_LIKELIHOOD_LIKELIHOOD_H
#define TSR_LIKELIHOOD_LIKELIHOOD_H

#include "core/archive.h"
#include "core/log.h"
#include "engine/engine.h"
#include "likelihood/term.h"
#include "molecule/topology.h"
#include "scattering/debye.h"
#include "scattering/scattering.h"

/* ---- what an engine computes where that is not the bodies of a run ----
 *
 * Particles, of which every residue has some that follow from its coordinates.
 *
 * A rigid unit of many particles is in an engine by its pose and a table
 * (engine/engine.h, `unit_particles`). So the engine is told of two kinds of
 * places: the particles of all other residues, and the bodies of the residues
 * of such units, which do not scatter and say where the unit is. Those of a
 * residue are side by side, in the order of the residues.
 *
 * posterior/all_atoms.h makes them of atoms and their water. */

typedef struct tsr_particles tsr_particles;

typedef struct {
    void (*free)(tsr_particles *particles);
    /* Those of residues residue..residue+count-1: xyz [.][3] out, Angstrom.
     * From many threads at once, as all below. */
    void (*place)(const tsr_particles *particles,
                  const tsr_conformation *conformation, int residue, int count,
                  double (*xyz)[3]);
    /* factor [K][n_type][n_q] out, in the K components of that probe; room for
     * [TSR_N_COMP][n_type][n_q]. Errors: TSR_E_NOMEM. */
    tsr_status (*factors)(const tsr_particles *particles, int probe, int n_q,
                          double dq_inv_ang, double *factor, tsr_err *err);
    /* The partial profiles of a probe without an engine, in double precision:
     * partial [K (K + 1) / 2][n_q] out, room for [TSR_N_COMP_PAIR][n_q].
     * Errors: TSR_E_NOMEM, those of progress. */
    tsr_status (*direct)(const tsr_particles *particles,
                         const tsr_conformation *conformation, int probe,
                         int n_q, double dq_inv_ang,
                         const tsr_debye_progress *progress, double *partial,
                         tsr_err *err);
} tsr_particles_type;

struct tsr_particles {
    const tsr_particles_type *type;
    int n;              /* places that an engine is told of */
    int *first;         /* [n_residue + 1] the first of each residue */
    int *kind;          /* [n] type of the factors */
    int *unit;          /* [n] rigid unit with a table, -1: none */
    double (*start)[3]; /* [n] in the conformation that they were made of */
    int n_kind;         /* types; the last scatters nothing */
    int n_all;          /* particles, those within units, too */
    double margin_ang;  /* none is farther than that from every body */
    double radius_ang;  /* r_m of G (scattering/contrast.h) */
    tsr_unit_particles
        unit_particles; /* particles of these units, in `start` */
};

static inline void tsr_particles_free(tsr_particles *particles)
{
    if (particles != NULL)
        particles->type->free(particles);
}

/* ---- the likelihood ---- */

/* What has form factors of its own. */
typedef struct {
    int n_comp, n_pair; /* K of its engine, K (K + 1) / 2 */
    int first;          /* its first pair among those of all probes */
    int n_type;         /* the engine's */
    int *type;          /* [n_body], or of the particles */
    double *amplitude;  /* [n_comp][n_type][n_q] form factors for it */
    int n_body_type;    /* the same of bodies, where that is of particles; */
    int *body_type;     /* [n_body] NULL: it is of bodies */
    double *body_amplitude; /* [n_comp][n_body_type][n_q] */
    double *power;          /* [n_q] tsr_component_power */
    int is_neutron;
    tsr_neutron_basis basis; /* of neutrons */
} tsr_probe;

/* A curve that terms ask for. */
typedef struct {
    int probe;
    double d2o;              /* of neutrons: the solvent's share of D2O */
    double *atoms, *bodies;  /* [n_pair of the probe][n_q] what the profile is
                                corrected by (tsr_likelihood_correct); NULL: it
                                is not */
    double *atom_power;      /* [n_q] tsr_component_power of the atoms, */
    double radius_ang;       /* for this r_m of theirs */
    tsr_profile_error error; /* what the terms were told of it; owned */
    double *error_curve;     /* what that points to; NULL: nothing */
} tsr_view;

typedef struct {
    tsr_pool pool; /* of all but the terms, and of itself */
    int n_term;
    tsr_term **term;  /* [n_term] owned */
    int n_parameter;  /* of all terms */
    tsr_q_grid grid;  /* n_q 0: no term needs the profile, nor an engine */
    int n_probe;      /* 0 likewise */
    tsr_probe *probe; /* [n_probe] */
    int n_view;
    tsr_view *view; /* [n_view] */
    int n_pair;     /* of components, of all probes; 0 likewise */
    double *self;   /* [n_pair][n_q] S_ab */
    const tsr_particles *particles; /* what engines are told of; NULL: bodies */
    tsr_parameter contrast[TSR_N_CONTRAST]; /* c1, c2 where they matter */
} tsr_likelihood;

/* From now on the profiles of a view are multiplied by a ratio of two mean
 * curves,
 *     R(q; c1, c2) = sum_ab C_a C_b atoms_ab / sum_ab C_a C_b bodies_ab,
 * each known at every c1 and c2 by its partial profiles: of all atoms and of
 * their bodies, over the same conformations, so that bodies scatter like atoms.
 * Where neutrons see next to no contrast both are differences of large numbers,
 * and their ratio swings with c2; for neutrons R is held within 1 /
 * TSR_RATIO_BOUND and TSR_RATIO_BOUND, and what it then lacks is for the
 * model's error to hold (tsr_likelihood_set_model_error).
 * atoms, bodies [n_pair][n_q], S_ab included: copied. radius_ang: r_m of the
 * atoms' G. Replaces an earlier correction; after an error that stays. Before
 * chains start, or between two steps of them, if all are then computed afresh.
 * Errors: TSR_E_NUMERIC (a ratio that is not positive at the corners of c1 and
 * c2), TSR_E_NOMEM. */
tsr_status tsr_likelihood_correct(tsr_likelihood *likelihood, int view,
                                  const double *atoms, const double *bodies,
                                  double radius_ang, tsr_err *err);
#define TSR_RATIO_BOUND 2.0

/* R of a view at grid point k, and sum_ab C_a C_b I_ab there, of partial
 * profiles [n_pair] [n_q] of its probe with S_ab, for the `power` of their G.
 * contrast [TSR_N_CONTRAST]. */
double tsr_likelihood_ratio(const tsr_likelihood *likelihood, int view,
                            const double *contrast, size_t k);
/* The same before neutrons' bounds. */
double tsr_likelihood_combine(const tsr_likelihood *likelihood, int view,
                              const double *partial, const double *contrast,
                              double power, size_t k);

/* C of the components of a view's probe: c [TSR_N_COMP] out. Returns K. */
int tsr_likelihood_coefficients(const tsr_likelihood *likelihood, int view,
                                const double *contrast, double power,
                                double *c);

/* From now on partial profiles are those of particles, which engines make;
 * borrowed. The bodies' form factors are kept, for a surrogate. Before chains
 * start. Errors: TSR_E_NOMEM. */
tsr_status tsr_likelihood_use_particles(tsr_likelihood *likelihood,
                                        const tsr_particles *particles,
                                        tsr_err *err);

/* Every term that has use for it learns of the error of its view (term.h), in
 * place of an earlier one. */
tsr_status tsr_likelihood_set_model_error(tsr_likelihood *likelihood, int view,
                                          const tsr_profile_error *error,
                                          tsr_err *err);

/* Saves or restores corrections and errors of all views, of which there has to
 * be one each. Errors, of restoring: those of the two above. */
tsr_status tsr_likelihood_archive(tsr_likelihood *likelihood,
                                  tsr_archive *archive, tsr_err *err);

/* Grid for d_bound_ang and the largest q of the terms, operators, S(q).
 * scattering [n_probe], which the terms' `probe` numbers. Takes the terms, also
 * after an error; copies all else. Errors: TSR_E_RANGE (the
 * form factors end before the data), TSR_E_NOMEM, those of `prepare`. */
tsr_status tsr_likelihood_new(const tsr_topology *topology, int n_probe,
                              const tsr_scattering *scattering,
                              double d_bound_ang, int n_term, tsr_term **term,
                              tsr_likelihood **out, tsr_err *err);
void tsr_likelihood_free(tsr_likelihood *likelihood);

/* Numbers of an engine's answer, n_pair n_q; 0 where no engine is needed. */
int tsr_likelihood_n_profile(const tsr_likelihood *likelihood);

/* What the engine of a probe is made of: for n_system systems of n_body bodies,
 * or of the particles. It points into the likelihood. d_bound_ang: of bodies,
 * 0: no check. */
tsr_engine_spec tsr_likelihood_engine(const tsr_likelihood *likelihood,
                                      int probe, int n_body, int n_system,
                                      double d_bound_ang);

/* The partial profiles of all probes [n_pair][n_q], summed up in double
 * precision. Errors: those of tsr_debye_reference, or of the particles. */
tsr_status tsr_likelihood_direct(const tsr_likelihood *likelihood, int n_body,
                                 const tsr_conformation *conformation,
                                 const tsr_debye_progress *progress,
                                 double *partial, tsr_err *err);

/* About how long that takes, s. */
double tsr_likelihood_direct_seconds(const tsr_likelihood *likelihood,
                                     int n_body);

/* What is known at one point. */
typedef struct {
    tsr_pool pool;        /* points that have exchanged parts
                             (tsr_point_swap) are cleared together */
    double *theta;        /* [n_parameter] of the chain's table: the terms'
                             parameters, one after another, then others */
    double *partial;      /* [n_pair][n_q] mean over the states */
    double *profile;      /* [n_view][n_q] of it with S(q), at c1 and c2 */
    void **fit;           /* [n_term] */
    double *term_log_lik; /* [n_term] */
    double log_lik;       /* their sum */
} tsr_point;

/* Room for n_parameter parameters in all; likelihood NULL: nothing else. 0:
 * out of memory; clear it then too. */
int tsr_point_make(const tsr_likelihood *likelihood, int n_parameter,
                   tsr_point *point);
void tsr_point_clear(tsr_point *point);

/* The profile, every term's fit and the likelihood at `point`, from partial
 * profiles (point->partial or others), c1 and c2 (contrast [TSR_N_CONTRAST];
 * NULL: where they start) and the states of `prediction`, whose profile is set.
 * rng: parameters that terms propose themselves are drawn anew, from close to
 * their conditional at the power beta; NULL: they stay. from: a point that may
 * be close; NULL: there is none. Errors: those of `fit`. */
tsr_status tsr_likelihood_evaluate(const tsr_likelihood *likelihood,
                                   const double *partial,
                                   const double *contrast,
                                   tsr_prediction prediction, double beta,
                                   gsl_rng *rng, const tsr_point *from,
                                   tsr_point *point, tsr_err *err);

/* What drawing the terms' own parameters anew adds to the log of the acceptance
 * of a step from one point to another, apart from beta times the change of
 * log_lik. */
double tsr_likelihood_log_ratio(const tsr_likelihood *likelihood,
                                const tsr_point *from, const tsr_point *to,
                                double beta);

/* Whether a term tells how stiffly it holds structures; and the sum over the
 * terms of K, of a state at a point (term.h, hessian_product). */
int tsr_likelihood_has_hessian(const tsr_likelihood *likelihood);
void tsr_likelihood_hessian_product(const tsr_likelihood *likelihood,
                                    const tsr_point *point, int state, int n,
                                    const double *v, double *y);

/* theta and what a change of that scope made new in `trial` (of a term's
 * parameters: in term d) become `now`'s, and the other way round. likelihood
 * NULL: theta alone. */
void tsr_point_swap(const tsr_likelihood *likelihood, tsr_scope scope, int d,
                    tsr_point *now, tsr_point *trial);

/* The prediction for one term: `prediction` with that term's profile at
 * `point`. */
tsr_prediction tsr_likelihood_view_of(const tsr_likelihood *likelihood,
                                      const tsr_point *point,
                                      const tsr_term *term,
                                      tsr_prediction prediction);

/* I(q) of a view on the grid, with S(q), corrected: the partial profiles
 * [n_pair][n_q] of the engine, or their mean over states, at c1, c2 (contrast
 * [TSR_N_CONTRAST]; NULL: where they start). profile [n_q] out may be `partial`
 * itself where there is one probe. */
void tsr_likelihood_profile(const tsr_likelihood *likelihood, int view,
                            const double *partial, const double *contrast,
                            double *profile);

/* Sum of chi2 over the terms divided by the number of points; NaN without. */
double tsr_likelihood_chi2(const tsr_likelihood *likelihood,
                           const tsr_point *point);

/* The largest least_beta of the terms. */
double tsr_likelihood_least_beta(const tsr_likelihood *likelihood);

/* Compares I(q) through the grid with a direct double precision Debye sum at
 * some of the data's q: the operator and the engine together; where c1 and c2
 * are inferred, also at the ends of their ranges. partial [n_pair][n_q] is the
 * engine's for `conformation`. Refuses an error beyond 1e-4 of I(q) and 5 % of
 * sigma (TSR_E_INTERNAL; at the ends of the ranges TSR_E_CONFIG), with the q in
 * the message; worst (may be NULL) out: largest error relative to what is
 * allowed. */
tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_scattering *scattering,
                                const tsr_conformation *conformation,
                                const double *partial, double *worst,
                                tsr_err *err);

/* ---- examples (model_error.c) ----
 *
 * What curves of one model lack of those of a better one, from examples: both
 * models' partial profiles of the same conformations (docs/statistics.md).
 *
 * Bodies stand here for the model that chains compute, atoms for the better
 * one: atoms with water of their own. */

enum { TSR_EXAMPLE_NODES = 16 };

typedef struct {
    const tsr_likelihood *likelihood; /* that has the bodies' curves */
    int view;                         /* that is learnt */
    int n;                            /* conformations */
    double *atoms;  /* [n + 1][n_pair][n_q] partial profiles, S_ab included, the
                       mean last */
    double *bodies; /* [n + 1][n_pair][n_q] */
    int n_node;     /* values of c1 and c2 that stand for their prior */
    double node[TSR_EXAMPLE_NODES][TSR_N_CONTRAST];
} tsr_examples;

/* Numbers of i conformations' partial profiles, and where those of conformation
 * i begin that the view is made of. */
size_t tsr_examples_size(const tsr_examples *examples, int i);
size_t tsr_examples_offset(const tsr_examples *examples, int i);

/* Mean square [n_q] of what is left, over conformations and nodes: log of atoms
 * over bodies less its mean at small angles, which is a matter of scale;
 * without the ratio of the likelihood where is_plain. covariance [n_q][n_q]
 * (may be NULL): the mean of the products. Both are added to. left [n_q]:
 * scratch. */
void tsr_examples_moments(const tsr_examples *examples, int is_plain,
                          double *square, double *covariance, double *left);

/* The leading components of the correlation matrix, scaled so that every q
 * keeps its variance: curve [TSR_MODEL_ERRORS][n_q] out, relative. Returns how
 * many. 0: out of memory. */
int tsr_examples_components(const tsr_examples *examples, const double *square,
                            const double *covariance, double *curve);

/* A mean over n draws stands for the next one: the ratio itself is off by 1/n
 * of the variance, and of n draws the variance is known as badly as the tails
 * of Student's t say. By so much the variance is multiplied; n > 3. */
double tsr_examples_variance_factor(int n);

/* Root of the mean of square over the grid's q from `from` to `to`, in per
 * cent; NaN: there are none. */
double tsr_examples_percent(const tsr_examples *examples, const double *square,
                            double from, double to);

#endif

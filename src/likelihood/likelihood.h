/* The likelihood of a run, log P(D | X, theta): the sum over its terms, and the
 * profiles that the terms share.
 *
 * All terms that need a profile share one q grid and the coefficients c1 and
 * c2. A probe (X-rays, or neutrons with one labelling of the sample) has form
 * factors and an engine of its own. A view is one curve of a probe, with
 * coefficients for the probe's components; neutron curves in different solvents
 * are views of one probe. A point is a structure (or ensemble) together with
 * the values of all parameters, the profiles and the likelihood. */
#ifndef TSR_LIKELIHOOD_LIKELIHOOD_H
#define TSR_LIKELIHOOD_LIKELIHOOD_H

#include "core/archive.h"
#include "core/log.h"
#include "engine/engine.h"
#include "likelihood/term.h"
#include "molecule/topology.h"
#include "scattering/debye.h"
#include "scattering/scattering.h"

/* ---- particles: what an engine computes in place of bodies ----
 *
 * Every residue has some particles, at positions that follow from the residue's
 * coordinates. posterior/all_atoms.h makes them of atoms and their water.
 *
 * A rigid unit with many particles enters an engine as its pose and a table
 * (engine/engine.h, `unit_particles`). An engine therefore has two kinds of
 * sites: the particles of all other residues, and the bodies of the residues in
 * such units, which do not scatter and only define the unit's pose. Sites are
 * sorted by residue. */

typedef struct tsr_particles tsr_particles;

typedef struct {
    void (*free)(tsr_particles *particles);
    /* Positions of the sites of residues residue..residue+count-1: xyz [.][3]
     * out, Angstrom. This function and those below are safe to call from many
     * threads. */
    void (*place)(const tsr_particles *particles,
                  const tsr_conformation *conformation, int residue, int count,
                  double (*xyz)[3]);
    /* Form factors of the sites in the K components of a probe: factor
     * [K][n_type][n_q] out, with space for [TSR_N_COMP][n_type][n_q]. Errors:
     * TSR_E_NOMEM. */
    tsr_status (*factors)(const tsr_particles *particles, int probe, int n_q,
                          double dq_inv_ang, double *factor, tsr_err *err);
    /* Partial profiles of a probe in double precision, without an engine:
     * partial [K (K + 1) / 2][n_q] out, with space for [TSR_N_COMP_PAIR][n_q].
     * Errors: TSR_E_NOMEM, those of progress. */
    tsr_status (*direct)(const tsr_particles *particles,
                         const tsr_conformation *conformation, int probe,
                         int n_q, double dq_inv_ang,
                         const tsr_debye_progress *progress, double *partial,
                         tsr_err *err);
} tsr_particles_type;

struct tsr_particles {
    const tsr_particles_type *type;
    int n;              /* sites of the engine */
    int *first;         /* [n_residue + 1] first site of each residue */
    int *kind;          /* [n] form factor type of a site */
    int *unit;          /* [n] rigid unit with a table, or -1 */
    double (*start)[3]; /* [n] positions in the conformation that the particles
                           were built from */
    int n_kind;         /* types; the last type does not scatter */
    int n_all;          /* number of particles, with those in rigid units */
    double margin_ang;  /* largest distance of a particle from its nearest
                           body */
    double radius_ang;  /* r_m of G (scattering/contrast.h) */
    tsr_unit_particles unit_particles; /* particles of the rigid units, at their
                                          positions in `start` */
};

static inline void tsr_particles_free(tsr_particles *particles)
{
    if (particles != NULL)
        particles->type->free(particles);
}

/* ---- the likelihood ---- */

/* X-rays, or neutrons with one labelling of the sample: form factors and
 * components. */
typedef struct {
    int n_comp, n_pair; /* components K of its engine; K (K + 1) / 2 */
    int first;          /* its first pair among the pairs of all probes */
    int n_type;         /* types in the engine */
    int *type;          /* [n_body] type of each body or particle site */
    double *amplitude;  /* [n_comp][n_type][n_q] form factors for the engine */
    int n_body_type;    /* types of the bodies if the engine has particles */
    int *body_type;     /* [n_body] likewise; NULL if the engine has bodies */
    double *body_amplitude; /* [n_comp][n_body_type][n_q] */
    double *power;          /* [n_q] tsr_component_power */
    int is_neutron;
    tsr_neutron_basis basis; /* neutrons only */
} tsr_probe;

/* One curve that at least one term needs. */
typedef struct {
    int probe;
    double d2o;              /* fraction of D2O in the solvent; neutrons only */
    double *atoms, *bodies;  /* [n_pair of the probe][n_q] mean partial profiles
                                for the correction (tsr_likelihood_correct);
                                NULL: no correction */
    double *atom_power;      /* [n_q] tsr_component_power for `atoms` */
    double radius_ang;       /* r_m for `atoms` */
    tsr_profile_error error; /* the model's own error last passed to the terms;
                                owned */
    double *error_curve;     /* storage of `error`; NULL: no error */
} tsr_view;

typedef struct {
    tsr_pool pool; /* owns everything but the terms */
    int n_term;
    tsr_term **term;  /* [n_term] owned */
    int n_parameter;  /* number of parameters of all terms together */
    tsr_q_grid grid;  /* n_q 0: no term needs a profile or an engine */
    int n_probe;      /* 0 if there is no engine */
    tsr_probe *probe; /* [n_probe] */
    int n_view;
    tsr_view *view; /* [n_view] */
    int n_pair;     /* pairs of components of all probes; 0: no engine */
    double *self;   /* [n_pair][n_q] S_ab, the self terms of the bodies */
    const tsr_particles *particles; /* what the engines compute; NULL: bodies */
    tsr_parameter contrast[TSR_N_CONTRAST]; /* c1, c2 */
} tsr_likelihood;

/* Sets the correction of a view: from now on its profiles are multiplied by the
 * ratio of two mean curves,
 *     R(q; c1, c2) = sum_ab C_a C_b atoms_ab / sum_ab C_a C_b bodies_ab.
 * The partial profiles in numerator and denominator are means over the same
 * conformations, computed from all atoms and from bodies. After the correction,
 * bodies scatter on average like atoms. Near the match point of neutrons, both
 * curves are differences of large numbers and their ratio varies strongly with
 * c2. For neutrons R is therefore limited to [1 / TSR_RATIO_BOUND,
 * TSR_RATIO_BOUND]; the model's own error (tsr_likelihood_set_model_error)
 * covers the remainder.
 *
 * atoms, bodies  [n_pair][n_q]  in  including S_ab, copied
 * radius_ang                     in  r_m of G for `atoms`
 * Replaces an earlier correction, which stays after an error. Call it before
 * chains start, or between two steps if all profiles are then recomputed.
 * Errors: TSR_E_NUMERIC (the ratio is not positive at a corner of the ranges of
 * c1 and c2), TSR_E_NOMEM. */
tsr_status tsr_likelihood_correct(tsr_likelihood *likelihood, int view,
                                  const double *atoms, const double *bodies,
                                  double radius_ang, tsr_err *err);
#define TSR_RATIO_BOUND 2.0

/* R of a view at grid point k, with the limits for neutrons. contrast
 * [TSR_N_CONTRAST]. */
double tsr_likelihood_ratio(const tsr_likelihood *likelihood, int view,
                            const double *contrast, size_t k);
/* sum_ab C_a C_b partial_ab at grid point k. partial [n_pair][n_q]: partial
 * profiles of the view's probe, including S_ab; power: tsr_component_power of
 * their r_m at this q. */
double tsr_likelihood_combine(const tsr_likelihood *likelihood, int view,
                              const double *partial, const double *contrast,
                              double power, size_t k);

/* Coefficients C of the components of a view's probe: c [TSR_N_COMP] out.
 * Returns K. */
int tsr_likelihood_coefficients(const tsr_likelihood *likelihood, int view,
                                const double *contrast, double power,
                                double *c);

/* From now on the engines compute the profiles of particles (borrowed). The
 * form factors of the bodies are kept for a surrogate. Call before chains
 * start. Errors: TSR_E_NOMEM. */
tsr_status tsr_likelihood_use_particles(tsr_likelihood *likelihood,
                                        const tsr_particles *particles,
                                        tsr_err *err);

/* Passes the model's own error (term.h) to every term of a view that can use
 * it, and replaces an earlier error. */
tsr_status tsr_likelihood_set_model_error(tsr_likelihood *likelihood, int view,
                                          const tsr_profile_error *error,
                                          tsr_err *err);

/* Saves or restores the corrections and model errors of all views. Errors while
 * restoring: those of tsr_likelihood_correct and
 * tsr_likelihood_set_model_error. */
tsr_status tsr_likelihood_archive(tsr_likelihood *likelihood,
                                  tsr_archive *archive, tsr_err *err);

/* Creates the likelihood: the grid for d_bound_ang and the largest q of the
 * terms, form factors, S(q), and prepared terms. scattering [n_probe] is
 * indexed by the terms' `probe`. Takes the terms, also after an error, and
 * copies everything else. Errors: TSR_E_RANGE (the form factors end below the
 * data's q), TSR_E_NOMEM, those of `prepare`. */
tsr_status tsr_likelihood_new(const tsr_topology *topology, int n_probe,
                              const tsr_scattering *scattering,
                              double d_bound_ang, int n_term, tsr_term **term,
                              tsr_likelihood **out, tsr_err *err);
void tsr_likelihood_free(tsr_likelihood *likelihood);

/* Size of an engine's result, n_pair n_q; 0 if no engine is needed. */
int tsr_likelihood_n_profile(const tsr_likelihood *likelihood);

/* The spec of a probe's engine for n_system systems of n_body bodies, or of the
 * particles. It points into the likelihood. d_bound_ang: largest distance
 * between bodies; 0: no check. */
tsr_engine_spec tsr_likelihood_engine(const tsr_likelihood *likelihood,
                                      int probe, int n_body, int n_system,
                                      double d_bound_ang);

/* Partial profiles of all probes [n_pair][n_q] in double precision, without an
 * engine. Errors: those of tsr_debye_reference, or of the particles. */
tsr_status tsr_likelihood_direct(const tsr_likelihood *likelihood, int n_body,
                                 const tsr_conformation *conformation,
                                 const tsr_debye_progress *progress,
                                 double *partial, tsr_err *err);

/* Estimated time of tsr_likelihood_direct, seconds. */
double tsr_likelihood_direct_seconds(const tsr_likelihood *likelihood,
                                     int n_body);

/* The parameters, profiles and likelihood of one state of a chain. */
typedef struct {
    tsr_pool pool;        /* owns all arrays. tsr_point_swap exchanges arrays
                             between two points, so clear such points
                             together */
    double *theta;        /* [n_parameter] the chain's table: the parameters of
                             all terms, term after term, then others */
    double *partial;      /* [n_pair][n_q] mean over the states */
    double *profile;      /* [n_view][n_q] at c1 and c2, including S(q) */
    void **fit;           /* [n_term] the terms' fits */
    double *term_log_lik; /* [n_term] */
    double log_lik;       /* sum of term_log_lik */
} tsr_point;

/* Allocates a point with n_parameter parameters. likelihood NULL: parameters
 * only. Returns 0 when out of memory; clear the point in this case too. */
int tsr_point_make(const tsr_likelihood *likelihood, int n_parameter,
                   tsr_point *point);
void tsr_point_clear(tsr_point *point);

/* Computes the profiles, fits and log likelihoods of `point`.
 * partial    [n_pair][n_q]     in   point->partial or another mean
 * contrast   [TSR_N_CONTRAST]  in   c1, c2; NULL: their starting values
 * prediction in   the states; its profile is set by this function
 * rng        not NULL: terms that propose parameters themselves draw them anew,
 *            close to their conditional at power beta. NULL: parameters stay
 * from       a point that may be similar; NULL: no such point
 * Errors: those of `fit`. */
tsr_status tsr_likelihood_evaluate(const tsr_likelihood *likelihood,
                                   const double *partial,
                                   const double *contrast,
                                   tsr_prediction prediction, double beta,
                                   gsl_rng *rng, const tsr_point *from,
                                   tsr_point *point, tsr_err *err);

/* The terms' own parameters are redrawn in a step from one point to another.
 * This is the log ratio of the proposal densities, to add to the log acceptance
 * ratio besides beta times the change of log_lik. */
double tsr_likelihood_log_ratio(const tsr_likelihood *likelihood,
                                const tsr_point *from, const tsr_point *to,
                                double beta);

/* has_hessian: whether any term has a hessian_product. hessian_product: the sum
 * over the terms of K v for one state at a point (term.h). */
int tsr_likelihood_has_hessian(const tsr_likelihood *likelihood);
void tsr_likelihood_hessian_product(const tsr_likelihood *likelihood,
                                    const tsr_point *point, int state, int n,
                                    const double *v, double *y);

/* Exchanges theta, and whatever a parameter change of the given scope
 * recomputed, between `now` and `trial`. d: the term that the changed parameter
 * belongs to. likelihood NULL: exchanges theta only. */
void tsr_point_swap(const tsr_likelihood *likelihood, tsr_scope scope, int d,
                    tsr_point *now, tsr_point *trial);

/* `prediction` with the profile of one term at `point`. */
tsr_prediction tsr_likelihood_view_of(const tsr_likelihood *likelihood,
                                      const tsr_point *point,
                                      const tsr_term *term,
                                      tsr_prediction prediction);

/* I(q) of a view on the grid, with S(q) and the correction, from partial
 * profiles [n_pair][n_q] (of one state, or means over states) at contrast
 * [TSR_N_CONTRAST] (c1, c2; NULL: their starting values). profile [n_q] out; it
 * may be the same array as `partial` if there is only one probe. */
void tsr_likelihood_profile(const tsr_likelihood *likelihood, int view,
                            const double *partial, const double *contrast,
                            double *profile);

/* Sum of chi2 over the terms divided by the number of data points; NaN without
 * data. */
double tsr_likelihood_chi2(const tsr_likelihood *likelihood,
                           const tsr_point *point);

/* The largest min_beta of the terms. */
double tsr_likelihood_min_beta(const tsr_likelihood *likelihood);

/* Checks engine, grid and operator together: compares I(q) at some of the
 * data's q with a direct Debye sum in double precision, at the starting values
 * of c1 and c2 and, if they are inferred, at the ends of their ranges. partial
 * [n_pair][n_q]: the engine's result for `conformation`. An error beyond both
 * 1e-4 of I(q) and 5 % of sigma is refused (TSR_E_INTERNAL; at the ends of the
 * ranges TSR_E_CONFIG), and the message names the q. worst (may be NULL) out:
 * largest error relative to the allowed error. */
tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_scattering *scattering,
                                const tsr_conformation *conformation,
                                const double *partial, double *worst,
                                tsr_err *err);

/* ---- examples of the model's own error (model_error.c) ----
 *
 * Learns how the curves of one model differ from those of a better model. The
 * examples are partial profiles of the same conformations in both models
 * (docs/statistics.md). The names below call the chain's model `bodies` and the
 * better model `atoms`, which includes water. */

enum { TSR_EXAMPLE_NODES = 16 };

typedef struct {
    const tsr_likelihood *likelihood; /* likelihood of the bodies */
    int view;                         /* the view whose error is learnt */
    int n;                            /* number of conformations */
    double *atoms;  /* [n + 1][n_pair][n_q] partial profiles including S_ab; the
                       last one is the mean */
    double *bodies; /* [n + 1][n_pair][n_q] */
    int n_node;     /* values of c1 and c2 that represent their prior */
    double node[TSR_EXAMPLE_NODES][TSR_N_CONTRAST];
} tsr_examples;

/* Length of the arrays for i conformations; offset of the view's partial
 * profiles of conformation i. */
size_t tsr_examples_size(const tsr_examples *examples, int i);
size_t tsr_examples_offset(const tsr_examples *examples, int i);

/* Adds the mean square of the residual to square [n_q], and the mean of its
 * products to covariance [n_q][n_q] (may be NULL), over conformations and
 * nodes. The residual is log(atoms / bodies) minus its mean at small angles,
 * because a constant factor is part of the scale. bodies include the correction
 * of the likelihood, unless is_plain. residual [n_q]: scratch. */
void tsr_examples_moments(const tsr_examples *examples, int is_plain,
                          double *square, double *covariance, double *residual);

/* Leading principal components of the correlation matrix, rescaled to keep the
 * variance at every q: curve [TSR_MODEL_ERRORS][n_q] out, relative to I.
 * Returns their number, 0 when out of memory. */
int tsr_examples_components(const tsr_examples *examples, const double *square,
                            const double *covariance, double *curve);

/* Factor for a variance that was learnt from n draws, n > 3. A mean of n draws
 * that predicts the next draw has 1/n more variance, and the uncertainty of the
 * variance itself widens the prediction to Student's t. */
double tsr_examples_variance_factor(int n);

/* Root mean square over the grid's q from `from` to `to`, in per cent; NaN if
 * no grid point lies in this range. */
double tsr_examples_percent(const tsr_examples *examples, const double *square,
                            double from, double to);

#endif

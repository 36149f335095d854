/* The likelihood of a run, log P(D | X, theta): the sum over its terms, and the
 * profiles that the terms share.
 *
 * All terms that need a profile share one q grid and the contrast parameters c1
 * and c2. A probe (X-rays, or neutrons with one labelling of the sample) has
 * form factors and an engine of its own. A view is one curve of a probe, with
 * coefficients for the probe's components; neutron curves in different solvents
 * are views of one probe. A mixture is one set of weights of the states: terms
 * of one sample share a mixture (tsr_term.has_own_weights). A point has the
 * values of all parameters, and the profiles, fits and log likelihoods that
 * belong to them and to one structure or ensemble.
 *
 * The molecule may be an assembly that is in equilibrium with parts of it
 * (tsr_species). Every species then is a probe and a view of its own, and the
 * curve of a sample is the sum over them (tsr_likelihood_fractions). */
#ifndef TSR_LIKELIHOOD_LIKELIHOOD_H
#define TSR_LIKELIHOOD_LIKELIHOOD_H

#include "core/archive.h"
#include "core/log.h"
#include "engine/engine.h"
#include "likelihood/term.h"
#include "molecule/topology.h"
#include "scattering/debye.h"
#include "scattering/scattering.h"

/* X-rays, or neutrons with one labelling of the sample: form factors and
 * components. */
typedef struct {
    int n_comp, n_pair; /* components K of its engine; K (K + 1) / 2 */
    int first;          /* its first pair among the pairs of all probes */
    int n_type;         /* types in the engine */
    int *type;          /* [bodies or sites of the engine] their types */
    double *amplitude;  /* [n_comp][n_type][n_q] form factors for the engine */
    double *power;      /* [n_q] tsr_component_power at the r_m of the bodies */
    /* The same two numbers of all-atom profiles. They differ from n_pair and
     * first where c1 is inferred, but fixed in the engine. */
    int n_atom_pair, first_atom;
    int is_neutron;
    tsr_neutron_basis basis; /* neutrons only */
} tsr_probe;

/* One curve that at least one term needs. */
typedef struct {
    int probe;
    double d2o;              /* fraction of D2O in the solvent; neutrons only */
    double *atoms, *bodies;  /* [n_atom_pair], [n_pair of the probe][n_q] mean
                                partial profiles for the correction
                                (tsr_likelihood_correct); NULL: no correction */
    double *atom_power;      /* [n_q] tsr_component_power for `atoms` */
    double radius_ang;       /* r_m for `atoms` */
    double *regression;      /* [tsr_likelihood_n_regressor][n_q] of the
                                correction (tsr_likelihood_regress); NULL: the
                                ratio alone */
    tsr_profile_error error; /* the model's own error last passed to the
                                terms */
    double *error_curve;     /* owns the arrays of `error`; NULL: no error */
} tsr_view;

/* One kind of particles in solution: all chains of the molecule, or some. */
typedef struct {
    const char *name;
    double mass; /* Da */
    int n_unit;  /* particles of the first species that form this one; 0: not a
                    whole number */
    int is_part; /* 1: without some chains of the molecule */
    tsr_number_or_word kd; /* apparent dissociation constant into the first
                              species, in the unit of tsr_term.at. Word 0: mass
                              fractions are free; 1: inferred, with a
                              log-uniform prior on kd_range */
    double kd_range[2];
} tsr_species;

typedef struct {
    tsr_pool pool; /* owns everything but the terms */
    int n_term;
    tsr_term **term;  /* [n_term] owned */
    int n_parameter;  /* number of parameters of all terms and of `mixing` */
    int n_mixture;    /* sets of weights of the states, at least 1. 0 is that of
                         all terms without weights of their own, if there are
                         such; then follow the samples, by `at`. Terms with
                         equal `at` are of one sample */
    tsr_q_grid grid;  /* n_q 0: no term needs a profile */
    int n_probe;      /* 0 if there is no engine */
    tsr_probe *probe; /* [n_probe] */
    int n_view;
    tsr_view *view;  /* [n_view] */
    int n_pair;      /* pairs of components of all probes; 0: no engine */
    int n_atom_pair; /* the same of all-atom profiles */
    double *self;    /* [n_pair][n_q] S_ab, the self terms of the bodies; 0 for
                     profiles of all atoms */
    int n_species;   /* 0: one species, the whole molecule. Else species s is
                        probe s and view s, and all curves have the view
                        `whole`, where a point has the mixture's profile */
    int whole;       /* the species with the largest mass */
    tsr_species *species;
    int n_mixing; /* parameters of the equilibrium, which follow those of the
                     terms: the dissociation constant of every species but the
                     first, or the mass fractions [n_mixture][n_species] */
    tsr_parameter *mixing;
    double *concentration;                      /* [n_mixture] tsr_term.at */
    tsr_parameter contrast[TSR_N_CONTRAST];     /* c1, c2 of the engine */
    tsr_parameter run_contrast[TSR_N_CONTRAST]; /* as the run infers them */
} tsr_likelihood;

/* Sets the correction of a view: from now on its profiles are multiplied by the
 * ratio of two mean curves,
 *     R(q; c1, c2) = sum_ab C_a C_b atoms_ab / sum_ab C_a C_b bodies_ab.
 * The partial profiles in numerator and denominator are means over the same
 * conformations, computed from all atoms and from bodies. After the correction,
 * bodies scatter on average like atoms. Where the engine has c1 fixed and the
 * run infers it (run_contrast), only the numerator changes with c1. Near the
 * match point of neutrons, both curves are differences of large numbers and
 * their ratio varies strongly with c2. For neutrons R is therefore limited to
 * [1 / TSR_RATIO_BOUND, TSR_RATIO_BOUND]; the model's own error
 * (tsr_likelihood_set_model_error) covers the remainder.
 *
 * atoms   [n_atom_pair][n_q]  in  including self terms, copied
 * bodies  [n_pair][n_q]       in  including S_ab, copied
 * radius_ang                     in  r_m of G for `atoms`
 * Replaces an earlier correction with its regression; both stay after an error.
 * Call it before chains start, or between two steps if all profiles are then
 * recomputed.
 * Errors: TSR_E_NUMERIC (the ratio is not positive at the starting values of c1
 * and c2 or at a corner of their ranges), TSR_E_NOMEM. */
tsr_status tsr_likelihood_correct(tsr_likelihood *likelihood, int view,
                                  const double *atoms, const double *bodies,
                                  double radius_ang, tsr_err *err);
#define TSR_RATIO_BOUND 2.0

/* R of a view with a correction at grid point k, with the limits for neutrons.
 * contrast [TSR_N_CONTRAST]: c1, c2. */
double tsr_likelihood_ratio(const tsr_likelihood *likelihood, int view,
                            const double *contrast, size_t k);

/* Adds a regression to the correction of an X-ray view. The layer of the bodies
 * stays that of the starting structure, so the error of a curve b depends on
 * how b differs from the mean curve B of the bodies. Profiles are then
 * multiplied by R(q) exp(sum_j weight_j(q) d_j), d_j = c2 log(b(q_j) / B(q_j;
 * c1, c2)). d_j is 0 where it is not finite; the sum is limited to [-0.2, 0.2].
 * weight [tsr_likelihood_n_regressor][n_q]  in  copied
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_likelihood_regress(tsr_likelihood *likelihood, int view,
                                  const double *weight, tsr_err *err);
/* Number of the d_j, the first points of the grid. */
enum { TSR_REGRESSORS = 128 };
int tsr_likelihood_n_regressor(const tsr_likelihood *likelihood);
/* The d_j of a profile [n_q] of bodies: deviation [n] out. */
void tsr_likelihood_deviation(const tsr_likelihood *likelihood, int view,
                              const double *contrast, const double *profile,
                              double *deviation);
/* Multiplies a profile [n_q] by the correction of a view, which must have
 * one. */
void tsr_likelihood_apply_correction(const tsr_likelihood *likelihood, int view,
                                     const double *contrast, double *profile);

/* sum_ab C_a C_b partial_ab at grid point k. partial [n_pair][n_q]: partial
 * profiles of the view's probe, including S_ab; power: tsr_component_power of
 * their r_m at this q. */
double tsr_likelihood_combine(const tsr_likelihood *likelihood, int view,
                              const double *partial, const double *contrast,
                              double power, size_t k);

/* The same for partial profiles [n_atom_pair][n_q] of all atoms, by c1 and c2
 * as the run infers them. The view must have a correction, whose r_m is used.
 */
double tsr_likelihood_combine_atoms(const tsr_likelihood *likelihood, int view,
                                    const double *partial,
                                    const double *contrast, size_t k);

/* Coefficients C of the components of a view's probe: c [TSR_N_COMP] out.
 * power: as above, not used for neutrons. Returns K. */
int tsr_likelihood_coefficients(const tsr_likelihood *likelihood, int view,
                                const double *contrast, double power,
                                double *c);

/* From now on the partial profiles are those of all atoms: S_ab is 0, and
 * radius_ang is r_m of their G. The engine's form factors stay those of
 * bodies. */
void tsr_likelihood_use_atoms(tsr_likelihood *likelihood, double radius_ang);

/* Passes a copy of the model's own error (term.h) to every term of a view that
 * can use it, and replaces an earlier error. Errors: TSR_E_NOMEM. */
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
 * indexed by the terms' `probe`. The likelihood owns the terms, and an error
 * frees them; everything else is copied. Errors: TSR_E_RANGE (the form factors
 * end below the data's q), TSR_E_NOMEM, those of `prepare`. */
tsr_status tsr_likelihood_new(const tsr_topology *topology, int n_probe,
                              const tsr_scattering *scattering,
                              double d_bound_ang, int n_term, tsr_term **term,
                              tsr_likelihood **out, tsr_err *err);
void tsr_likelihood_free(tsr_likelihood *likelihood);

/* ---- species ----
 *
 * At mass fractions f_s, the intensity of a sample divided by its concentration
 * is a sum over the numbers of particles,
 *
 *     I(q) = sum_s f_s (M_0 / M_s) I_s(q),
 *
 * in electrons squared for the mass M_0 of one particle of species 0. I_s is
 * the curve of one particle, of mass M_s. */

enum { TSR_MAX_SPECIES = 8 };

/* Mass fractions in equilibrium at total concentration c of species 0, molar or
 * in the unit of kd. A particle of species s > 0 consists of n_s particles of
 * species 0, and its concentration is
 *
 *     c_s = c_0^n_s / kd_s^(n_s - 1),
 *
 * so that kd of a dimer is its dissociation constant, and kd of an n-mer the
 * power 1 / (n - 1) of that into n monomers. c = sum_s n_s c_s.
 * n_unit, kd  [n]  in   n_unit[0] is 1, kd[0] is not read
 * fraction    [n]  out  sum 1 */
void tsr_species_equilibrium(int n, const int *n_unit, const double *kd,
                             double c, double *fraction);

/* Makes every probe of a likelihood of X-ray curves one of the n species, and
 * adds the parameters. They are mass fractions (flat Dirichlet prior in every
 * sample) where the last species has no kd, else the dissociation constants.
 * The names are borrowed. To be called before points are made. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_likelihood_set_species(tsr_likelihood *likelihood, int n,
                                      const tsr_species *species, tsr_err *err);

/* Mass fractions of the species in a sample, fraction [n_species] out; theta:
 * of a point. */
void tsr_likelihood_fractions(const tsr_likelihood *likelihood,
                              const double *theta, int mixture,
                              double *fraction);

/* Size of an engine's result, n_pair n_q; 0 if no engine is needed. */
int tsr_likelihood_n_profile(const tsr_likelihood *likelihood);

/* The spec of a probe's engine for n_system systems of n_body bodies. It points
 * into the likelihood. d_bound_ang: largest distance between bodies; 0: no
 * check. */
tsr_engine_spec tsr_likelihood_engine(const tsr_likelihood *likelihood,
                                      int probe, int n_body, int n_system,
                                      double d_bound_ang);

/* Partial profiles of all probes, without S_ab, in double precision and without
 * an engine: partial [n_pair][n_q] out. Errors: those of
 * tsr_debye_reference. */
tsr_status tsr_likelihood_direct(const tsr_likelihood *likelihood, int n_body,
                                 const tsr_conformation *conformation,
                                 const tsr_debye_progress *progress,
                                 double *partial, tsr_err *err);

/* Estimated time of tsr_likelihood_direct, seconds. */
double tsr_likelihood_direct_seconds(const tsr_likelihood *likelihood,
                                     int n_body);

/* The parameters, profiles and likelihood of one structure or ensemble. Its
 * coordinates are kept elsewhere. */
typedef struct {
    tsr_pool pool;        /* owns all arrays. tsr_point_swap exchanges arrays
                             between two points, so clear such points
                             together */
    double *theta;        /* [n_parameter] the chain's table: the parameters of
                             all terms, term after term, then others */
    double *partial;      /* [n_mixture][n_pair][n_q] means over the states */
    double *profile;      /* [n_mixture][n_view][n_q] at c1 and c2, including
                             S(q); with species, view `whole` has the sum over
                             them */
    void **fit;           /* [n_term] the terms' fits */
    double *term_log_lik; /* [n_term] */
    double log_lik;       /* sum of term_log_lik */
    int mixture;          /* the three functions below evaluate, compare or
                             accept only the terms of this mixture; -1: all */
} tsr_point;

/* Allocates a point with n_parameter parameters. likelihood NULL: parameters
 * only. Returns 0 when out of memory; clear the point in this case too. */
int tsr_point_make(const tsr_likelihood *likelihood, int n_parameter,
                   tsr_point *point);
void tsr_point_clear(tsr_point *point);

/* Computes the profiles, fits and log likelihoods of `point`.
 * partial    [n_mixture][n_pair][n_q]  in   means over the states:
 *            point->partial or another array
 * contrast   [TSR_N_CONTRAST]  in   c1, c2; NULL: their starting values
 * prediction in   the states, with weights [n_mixture][n_state]; this function
 *            sets the profile
 * rng        not NULL: terms with sampled linear parameters draw them anew,
 *            close to their conditional at power beta, into point->theta. NULL:
 *            point->theta stays
 * from       a point of a similar structure, whose fits can be reused in part,
 *            and which has the log likelihoods of the terms that are not
 *            evaluated; NULL: no such point, and point->mixture is -1
 * Errors: those of `fit`. */
tsr_status tsr_likelihood_evaluate(const tsr_likelihood *likelihood,
                                   const double *partial,
                                   const double *contrast,
                                   tsr_prediction prediction, double beta,
                                   gsl_rng *rng, const tsr_point *from,
                                   tsr_point *point, tsr_err *err);

/* Log of the proposal density of the reverse step over that of the step `from`
 * to `to`, for the linear parameters that tsr_likelihood_evaluate draws with
 * rng. Added to the log acceptance ratio, besides beta times the change of
 * log_lik. */
double tsr_likelihood_log_ratio(const tsr_likelihood *likelihood,
                                const tsr_point *from, const tsr_point *to,
                                double beta);

/* has_hessian: 1 if any term has a hessian_product. hessian_product: adds K v
 * of every such term to y, for one state at a point (term.h). */
int tsr_likelihood_has_hessian(const tsr_likelihood *likelihood);
void tsr_likelihood_hessian_product(const tsr_likelihood *likelihood,
                                    const tsr_point *point, int state, int n,
                                    const double *v, double *y);

/* Accepts a change of parameters of the given scope: exchanges theta and the
 * recomputed arrays between `now` and `trial` (of a single mixture: copies its
 * arrays), and sets the log likelihoods of `now`. Those of `trial` are not
 * updated. d: the term of the changed parameter, if the scope is the fit or the
 * likelihood of one term. likelihood NULL: exchanges theta only. */
void tsr_point_swap(const tsr_likelihood *likelihood, tsr_scope scope, int d,
                    tsr_point *now, tsr_point *trial);

/* Returns `prediction` with the profile of the term's view at `point`; NULL if
 * the term needs no profile. */
tsr_prediction tsr_likelihood_prediction(const tsr_likelihood *likelihood,
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

/* Checks engine, grid and operator together: compares I(q) of every curve at 16
 * of the data's q with a direct Debye sum in double precision, at the starting
 * values of c1 and c2 and, if they are inferred, at the corners of their
 * ranges. The direct sum has no correction, so the likelihood must have none.
 * partial [n_pair][n_q]: the engine's result for `conformation`. An error
 * beyond both 1e-4 of I(q) and 5 % of sigma is refused (TSR_E_INTERNAL; at the
 * corners TSR_E_CONFIG), and the message names the q. worst (may be NULL) out:
 * largest error relative to the allowed error. */
tsr_status tsr_likelihood_check(const tsr_likelihood *likelihood,
                                const tsr_topology *topology,
                                const tsr_scattering *scattering,
                                const tsr_conformation *conformation,
                                const double *partial, double *worst,
                                tsr_err *err);

/* ---- the model's own error, learnt from examples (model_error.c) ----
 *
 * How the curves of one model differ from those of a more accurate model. The
 * examples are partial profiles of the same conformations in both models
 * (docs/statistics.md). The names below call the chain's model `bodies` and the
 * more accurate one `atoms`. `atoms` include water. */

enum { TSR_EXAMPLE_NODES = 16 };

typedef struct {
    const tsr_likelihood *likelihood; /* likelihood of the bodies */
    int view;                         /* the view whose error is learnt */
    int n;                            /* number of conformations */
    double *atoms;  /* [n + 1][n_atom_pair][n_q] partial profiles; entry n is
                       their mean */
    double *bodies; /* [n + 1][n_pair][n_q] including S_ab */
    int n_node;     /* values of c1 and c2 that represent their prior */
    double node[TSR_EXAMPLE_NODES][TSR_N_CONTRAST];
    double node_weight[TSR_EXAMPLE_NODES]; /* sum 1 */
} tsr_examples;

/* Number of values of i conformations in `bodies` and `atoms`. */
size_t tsr_examples_size(const tsr_examples *examples, int i);
size_t tsr_examples_atom_size(const tsr_examples *examples, int i);
/* The view's partial profiles of conformation i. */
const double *tsr_examples_bodies(const tsr_examples *examples, int i);
const double *tsr_examples_atoms(const tsr_examples *examples, int i);

/* Sets the weights of the nodes: equal, or with by_data by how well the
 * all-atom curves fit the view's curves at the c1 and c2 of each node. The
 * residual grows with c2, and a curve determines c2 well within its prior. */
void tsr_examples_weigh_nodes(tsr_examples *examples, int by_data);

/* Compares atoms and bodies. The residual is log(atoms / bodies) minus its mean
 * over 0 < q <= 0.1 1/Angstrom, because a constant factor is part of the scale.
 * A residual that is not finite counts as 0 in this mean, and before it is
 * subtracted. Means are over conformations and weighted nodes.
 *
 * before      [n_q]       out  mean square of the residual without correction
 * covariance  [n_q][n_q]  out  mean products of the residual after correction
 *             by the view's R and, if it is used, the regression
 * weight      [n][n_q]    out  of tsr_likelihood_regress, by ridge regression
 *             (Hoerl & Kennard 1970) of the residual on the d_j, whose fit is
 *             taken off the covariance; NULL: no regression
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_examples_compare(const tsr_examples *examples, double *before,
                                double *covariance, double *weight,
                                tsr_err *err);

/* Principal components of covariance [n_q][n_q] of log I, in units of the
 * data's own errors, so that the first are those which the data notice most:
 * those with more than a twentieth of the variance of the data, at most
 * TSR_MODEL_ERRORS. The sum of their products approximates the covariance.
 * curve [TSR_MODEL_ERRORS][n_q] out, relative to I. Returns their number, 0
 * when out of memory. */
int tsr_examples_components(const tsr_examples *examples,
                            const double *covariance, double *curve);

/* How much two model errors differ for the data: the root mean square of the
 * log ratio of the two densities, nat, over data drawn from the second. With
 * the covariances A and B of the data the mean is the Kullback-Leibler
 * divergence, and the variance half the squared norm of A^-1 B - 1. HUGE_VAL
 * when out of memory. */
double tsr_examples_change(const tsr_examples *examples,
                           const tsr_profile_error *before,
                           const tsr_profile_error *now);

/* (n + p + 1) / (n - p - 3), n > p + 3: predictive variance of the next draw,
 * divided by the mean square of n draws about a regression on p values (0:
 * about their mean). The uncertainty of mean and regression gives the factor 1
 * + (p + 1)/n. The uncertainty of the variance gives n / (n - p - 3): the
 * prediction is a Student's t. */
double tsr_examples_variance_factor(int n, int p);

/* 100 times the root of the mean of square [n_q] over the grid's q in [from,
 * to), 1/Angstrom, without q = 0 and the last two points; NaN if no grid point
 * lies in this range. */
double tsr_examples_percent(const tsr_examples *examples, const double *square,
                            double from, double to);

#endif

/* The interface of a likelihood term. Each kind of term is one file with one
 * const struct, and one line in TSR_TERMS below. docs/extend.md has a complete
 * example.
 *
 * A term is one entry of `data:`: a measurement, and the probability of that
 * measurement given a prediction from the chain's structures. The chain knows
 * no term by name. It makes a prediction, sums the log likelihoods of all
 * terms, and accepts or rejects.
 *
 * A term may have parameters of its own (core/parameter.h). Their values theta
 * [n_parameter] are stored in the chain. The results that a term computes from
 * one prediction (best scale, sums of squares) form a fit. A chain has two fits
 * for each term, one for the current structures and one for the proposal, and
 * swaps them on acceptance. A term is constant while chains make steps, so all
 * threads share it. */
#ifndef TSR_LIKELIHOOD_TERM_H
#define TSR_LIKELIHOOD_TERM_H

#include "core/field.h"
#include "core/log.h"
#include "core/parameter.h"
#include "core/pool.h"
#include "core/random.h"
#include "core/vec3.h"
#include "molecule/topology.h"
#include "scattering/neutron.h"
#include "scattering/q_grid.h"

#include <stdalign.h>
#include <stdio.h>

enum { TSR_MAX_STATES = 32 };

/* The structures of a chain, one for each state of the ensemble, and their
 * profile. Each term reads the members that it needs. */
typedef struct {
    const double *profile; /* [n_q] I(q) on the grid, including S(q), averaged
                              over the states by weight; electrons squared, or
                              fm^2 for a neutron term. NULL if the term does not
                              need the profile */
    int n_state;
    const tsr_conformation *const *state; /* [n_state] */
    const double *weight;                 /* [n_state] weights with sum 1 */
} tsr_prediction;

/* Flags for tsr_term_type.needs. PROFILE: the scattering profile, and so an
 * engine. STATES: the structures. POSE: the likelihood depends on the position
 * and orientation of the molecule, so the chain must also move it as a
 * whole. */
enum { TSR_NEEDS_PROFILE = 1, TSR_NEEDS_STATES = 2, TSR_NEEDS_POSE = 4 };

/* The error of the forward model itself, in electrons squared, or fm^2 for
 * neutrons. For a profile equal to `reference`, the error is the sum of the
 * curves, each multiplied by an independent standard normal variate. A term
 * scales the curves by the factor that fits the reference to its data
 * (term_saxs.c). */
typedef struct {
    int n;                   /* number of curves, at most TSR_MODEL_ERRORS */
    const double *curve;     /* [n][n_q] */
    const double *reference; /* [n_q] */
} tsr_profile_error;

/* Options of an entry of `data:`. Each kind has an options struct of its own,
 * which begins with the same `int kind`, is not larger than this one, takes its
 * place, and is read through the field table of the kind. */
typedef struct {
    int kind; /* index into tsr_term_registry */
    alignas(double) unsigned char storage[504];
} tsr_term_options;

/* The arguments of tsr_term_read. */
typedef struct {
    const tsr_term_options *options;
    int number; /* number of the entry in `data:`, for messages: data.0 */
    const tsr_topology *topology;
    tsr_log *log;      /* NULL: no messages */
    const double *rg2; /* [n_type] mean square radius of a body's atoms about
                          the body's centre, Angstrom^2; NULL: bodies are
                          points */
    int n_state;       /* states of the ensemble; 0: unknown */
    int n_species;     /* species in solution; 0: one */
    const tsr_conformation *start; /* starting structure of the first state;
                                      NULL: unknown */
} tsr_term_source;

typedef struct tsr_term tsr_term;

/* A kind of term. */
typedef struct {
    const char *name;        /* the entry's `kind` */
    const char *doc;         /* one line */
    const char *source;      /* literature reference */
    const tsr_field *fields; /* field table of its options */
    int needs;               /* flags TSR_NEEDS_... */

    /* Names for the trace and the report: the data are values [n_point] of
     * `observable` over `axis`. */
    const char *observable, *observable_unit; /* "intensity" */
    const char *axis, *axis_unit;             /* "q" */
    const char *title;                        /* of the report's section */
    int is_curve;   /* a scattering curve: options begin as tsr_saxs_options,
                       the term as tsr_saxs_term, and all curves are numbered
                       together */
    int is_neutron; /* a neutron curve: its Rg depends on the contrast with the
                       solvent, so the Rg of X-rays need not match */
    int is_map;     /* a density map: options begin as tsr_map_options; the
                       observed value is the correlation with the structures; a
                       note named "limit" holds the correlation that noise would
                       leave for a correct structure */

    /* ---- required members ---- */

    size_t size;     /* size of the struct that begins with tsr_term */
    size_t fit_size; /* size of a fit; see fit_new */

    /* Reads and checks the data. On entry `term` is zero except for type and
     * number. After an error the caller frees the term. Errors: TSR_E_NOINPUT,
     * TSR_E_DATA, TSR_E_CONFIG (with a message that begins with the key). */
    tsr_status (*read)(const tsr_term_source *source, tsr_term *term,
                       tsr_err *err);

    /* Prints one or two sentences for the methods section of a paper. */
    void (*print_assumptions)(const tsr_term_options *options, FILE *out);

    /* Computes the fit of a prediction at parameters theta. The functions below
     * read this fit. from: the fit of a similar prediction, whose unchanged
     * parts can be copied; NULL: no such fit. Errors: TSR_E_NUMERIC. */
    tsr_status (*fit)(const tsr_term *term, const void *from,
                      const tsr_prediction *prediction, const double *theta,
                      void *fit, tsr_err *err);

    double (*log_lik)(const tsr_term *term, const void *fit,
                      const double *theta);

    /* Sum of squared residuals in units of the measured errors, at the best
     * linear parameters. */
    double (*chi2)(const tsr_term *term, const void *fit);

    /* Expected values of the data: value [n_point] out. */
    void (*predict)(const tsr_term *term, const tsr_prediction *prediction,
                    const void *fit, const double *theta, double *value);

    /* ---- optional members, NULL if a kind does not need them ---- */

    /* Frees whatever the term's pool does not own. */
    void (*free)(tsr_term *term);

    /* Allocates a fit in the pool. Returns NULL when out of memory. Member
     * NULL: a fit is fit_size zero bytes. */
    void *(*fit_new)(const tsr_term *term, tsr_pool *pool);

    /* Log density of data point k given its expected value, and a random
     * replicate of point k. NULL: log_lik serves as the density of a single
     * point, and the expected value as its replicate. */
    double (*log_point)(const tsr_term *term, const double *theta, int k,
                        double value);
    double (*draw_point)(const tsr_term *term, const double *theta, int k,
                         double value, gsl_rng *rng);

    /* For parameters that change the fit (TSR_CHANGES_FIT). refit: computes
     * from the fit `from` of the same prediction the members that log_lik needs
     * at other parameters theta. complete: called after the decision to accept,
     * computes the remaining members, and returns 0 if they are not finite at
     * the new theta. */
    void (*refit)(const tsr_term *term, const void *from, const double *theta,
                  void *fit);
    int (*complete)(const tsr_term *term, const double *theta, void *fit);

    /* draw: draws the term's linear parameters into theta, from a distribution
     * close to their conditional under the likelihood to the power beta.
     * log_density: the log density of that distribution at theta, less the log
     * prior of these parameters. If they are sampled (TSR_STEP_CONDITIONAL),
     * the distribution is a proposal. If they are integrated out
     * (is_integrated), draw is called for stored draws only, and the
     * distribution is the exact conditional. */
    void (*draw)(const tsr_term *term, const void *fit, double beta,
                 gsl_rng *rng, double *theta);
    double (*log_density)(const tsr_term *term, const void *fit, double beta,
                          const double *theta);

    /* Called once before chains start. grid: the q grid of all later
     * profiles. */
    tsr_status (*prepare)(tsr_term *term, const tsr_q_grid *grid, tsr_err *err);

    /* Called after `prepare`, when the error of the forward model is known. The
     * term integrates out this error, in place of the error of an earlier call.
     * Errors: TSR_E_NOMEM. */
    tsr_status (*set_model_error)(tsr_term *term,
                                  const tsr_profile_error *error, tsr_err *err);

    /* Finds the pose of the molecule in the data, before chains start. *motion
     * out: from the pose in `conformation` to the pose in the data. *has_pose
     * out: 0 if the data do not determine the pose. */
    tsr_status (*find_pose)(const tsr_term *term,
                            const tsr_conformation *conformation,
                            tsr_motion *motion, int *has_pose, tsr_err *err);

    /* y += K v for n displacements of the bodies of one state; v and y are
     * [n_body][3][n]. K is a positive semidefinite approximation of the Hessian
     * of -log_lik with respect to the body positions. */
    void (*hessian_product)(const tsr_term *term, const void *fit, int state,
                            int n, const double *v, double *y);
} tsr_term_type;

/* A constant of a term for the trace: values [n_point] with their description,
 * or a text about a decision made while reading the data. */
typedef struct {
    const char *name, *text;
    const double *value; /* NULL: the note is the text alone */
} tsr_term_note;

enum { TSR_TERM_PARAMETERS = 8, TSR_TERM_NOTES = 14 }; /* maxima for one term */

/* The common head of all terms. Each type's own struct begins with it. */
struct tsr_term {
    const tsr_term_type *type;
    tsr_pool pool;     /* owns the term and its contents */
    const char *label; /* file name or name of the measurement, for messages */
    int number;        /* number of the entry in `data:` */
    int ordinal;       /* number among the terms of its family
                          (tsr_term_is_same_family), from 0 */
    int n_parameter;
    tsr_parameter parameter[TSR_TERM_PARAMETERS];
    int first;         /* index of its first parameter in the chain's table */
    int is_integrated; /* 1: the parameters of `draw` are integrated out */
    /* Smallest power beta of the likelihood at which the posterior is proper,
     * for replica exchange: parameters with flat priors need a likelihood that
     * is informative enough. 0: also at beta = 0, the prior. */
    double min_beta;
    int n_point;
    const double *coord;            /* [n_point] coordinate along the axis */
    const double *observed, *sigma; /* [n_point] */
    double *start; /* [n_point] expected data values for the first conformation,
                      at fitted parameters; NULL: not computed */
    int n_note;
    tsr_term_note note[TSR_TERM_NOTES];
    int n_error;          /* number of curves of the model's own error */
    int is_smeared;       /* 1: a data point is a mean over q around coord */
    double q_max_inv_ang; /* largest q at which the term needs the profile; 0:
                             it needs no profile */
    const tsr_neutron *neutron; /* sample and solvent; NULL: X-rays */
    int probe;                  /* index of the probe with its form factors
                                   (likelihood.h) */
    int view;                   /* index of the curve in the likelihood */
    int has_own_weights; /* 1: states and species have other weights in this
                            sample than in the samples of other terms */
    double at; /* coordinate of the sample in a series of samples, as a
                  concentration or a time; NaN: none */
    const char *at_unit; /* NULL: none */
    int mixture;         /* index of its weights in the likelihood */
};

/* All kinds of terms, by the names of their structs: X(saxs) is tsr_term_saxs.
 * The first kind is the default. */
#define TSR_TERMS(X) \
    X(saxs)          \
    X(sans)          \
    X(distance)      \
    X(map)

#define X(name) extern const tsr_term_type tsr_term_##name;
TSR_TERMS(X)
#undef X

/* The kinds as an array, terminated by NULL. */
extern const tsr_term_type *const tsr_term_registry[];

/* Name, doc and fields of kind number `number`, for the field `data`; name NULL
 * beyond the last kind. */
tsr_field_kind tsr_term_kind(int number);

/* For terms that need no profile: computes the expected data values for the
 * starting structures into term->start. Inferred parameters with a normal prior
 * that change the fit are set, one after another, to the maximum of the
 * likelihood on a grid from -3 to 3 widths of the prior about its mean, in
 * steps of a tenth; the other parameters have their starting values. Errors:
 * TSR_E_NOMEM, those of `fit`. */
tsr_status tsr_term_predict_start(tsr_term *term,
                                  const tsr_prediction *prediction,
                                  tsr_err *err);

/* For print_assumptions: prints "NAME was free", or "NAME was 3". */
void tsr_term_print_setting(FILE *out, const char *name,
                            tsr_number_or_word value);

/* 1 if terms of these two types share one numbering: equal types, or two
 * curves. */
int tsr_term_is_same_family(const tsr_term_type *a, const tsr_term_type *b);

/* Creates the term of an entry and reads its data. Errors: TSR_E_NOMEM, those
 * of `read`. */
tsr_status tsr_term_read(const tsr_term_source *source, tsr_term **out,
                         tsr_err *err);

/* A term with type and number, all other members zero. Returns NULL when out of
 * memory. */
tsr_term *tsr_term_new(const tsr_term_type *type, int number);
void tsr_term_free(tsr_term *term); /* NULL is fine */

/* Appends a note; no effect beyond TSR_TERM_NOTES. The arguments are
 * borrowed. */
void tsr_term_add_note(tsr_term *term, const char *name, const char *text,
                       const double *value);

/* Allocates a fit in the pool. Returns NULL when out of memory. */
void *tsr_term_fit_new(const tsr_term *term, tsr_pool *pool);

/* log_point and draw_point of the term; if these members are NULL, the
 * replacements that their description names. */
double tsr_term_log_point(const tsr_term *term, const void *fit,
                          const double *theta, int k, double value);
double tsr_term_draw_point(const tsr_term *term, const double *theta, int k,
                           double value, gsl_rng *rng);

/* Number of inferred parameters, including those that are integrated out. */
int tsr_term_n_free(const tsr_term *term);

/* theta [n_parameter] out: starting values of the parameters. */
void tsr_term_start(const tsr_term *term, double *theta);

/* Name of a term's variable in the trace: "chi2", and "chi2_2" for the second
 * term of the family. Terms that are not curves prefix the kind's name,
 * "distance_chi2", unless the variable already begins with it. */
void tsr_term_variable(const tsr_term_type *type, int ordinal, const char *name,
                       size_t size, char *out);

#endif

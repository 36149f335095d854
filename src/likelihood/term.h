/* Likelihood terms: one file each, one const struct each, one line in
 * TSR_TERMS below. docs/extend.md has a whole example.
 *
 * A term is one entry of `data:`: what was measured, and the probability of it
 * given what the chain's structures predict. The chain knows no term by name:
 * it makes a prediction, asks every term for its log likelihood there, and
 * accepts or rejects.
 *
 * A term has parameters of its own (core/parameter.h), whose values theta
 * [n_parameter] lie in the chain. What it finds out about one prediction (best
 * scale, sums of squares) it keeps in a fit; a chain has two of them a term,
 * the present one and that of the proposal, and exchanges them on acceptance.
 * The term itself does not change while chains run, so all threads share it. */
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

/* What a state of the chain predicts. Each term takes from it what it needs to
 * say how probable its data are. */
typedef struct {
    const double *profile; /* [n_q] I(q) on the grid with S(q), electrons
                              squared, or fm^2 where the term's is of neutrons;
                              the weighted mean over the states. NULL where the
                              term does not need it */
    int n_state;
    const tsr_conformation *const *state; /* [n_state] */
    const double *weight;                 /* [n_state], adding up to 1 */
} tsr_prediction;

/* What a term needs: the scattering profile, so the engine; the structures
 * themselves; and whether it matters where in space they are, so that the
 * molecule as a whole moves, too. */
enum { TSR_NEEDS_PROFILE = 1, TSR_NEEDS_STATES = 2, TSR_NEEDS_POSE = 4 };

/* By how much profiles are off, all in electrons squared: where a profile is
 * `reference`, by the sum of the curves, each times a normal variate of
 * variance 1; elsewhere in the same proportion. */
typedef struct {
    int n;                   /* at most TSR_MODEL_ERRORS */
    const double *curve;     /* [n][n_q] */
    const double *reference; /* [n_q] */
} tsr_profile_error;

/* Options of an entry of `data:`, whatever its kind. Each kind's own struct
 * begins with the same int and is read by the kind's field table. */
typedef struct {
    int kind; /* index into tsr_term_registry */
    alignas(double) unsigned char storage[504];
} tsr_term_options;

/* What a term is read from. */
typedef struct {
    const tsr_term_options *options;
    int number; /* of the entry, for messages: data.0 */
    const tsr_topology *topology;
    tsr_log *log;      /* NULL: nobody listens */
    const double *rg2; /* [n_type] mean square radius of a body's atoms about
                          it, Angstrom^2; NULL: bodies are points */
    int n_state;       /* of the ensemble; 0: not known */
    const tsr_conformation *start; /* the first; NULL: not known */
} tsr_term_source;

typedef struct tsr_term tsr_term;

typedef struct {
    const char *name; /* the entry's `kind` */
    const char *doc;  /* one line */
    const char *source;
    const tsr_field *fields;
    int needs;

    /* How the trace calls what was measured, and the report draws it: values
     * [n_point] over an axis. */
    const char *observable, *observable_unit; /* "intensity" */
    const char *axis, *axis_unit;             /* "q" */
    const char *title;                        /* of the report's section */
    int is_curve;   /* of scattering: named and counted with all others, read
                       from tsr_saxs_options, made as tsr_saxs_term */
    int is_neutron; /* a curve of neutrons: what they see depends on the
                       solvent, so its Rg may be another */
    int is_map;     /* a density map, read from tsr_map_options: what was
                       measured is how well it correlates with the structures;
                       a note may be "limit", what noise would leave of a
                       structure that is right */

    /* ---- what every term has ---- */

    size_t size;     /* of the struct around tsr_term */
    size_t fit_size; /* of what is known of one prediction */

    /* Reads and checks the data, into a term of zeroes but type and number.
     * After an error the term is freed. Errors: TSR_E_NOINPUT, TSR_E_DATA,
     * TSR_E_CONFIG (beginning with the key). */
    tsr_status (*read)(const tsr_term_source *source, tsr_term *term,
                       tsr_err *err);

    /* A sentence or two for a paper's methods section. */
    void (*print_assumptions)(const tsr_term_options *options, FILE *out);

    /* Finds out all that the functions below want to know of a prediction, with
     * the parameters theta. from: the fit of a prediction that may be alike, of
     * which what has not changed need not be found out again; NULL: there is
     * none. Errors: TSR_E_NUMERIC. */
    tsr_status (*fit)(const tsr_term *term, const void *from,
                      const tsr_prediction *prediction, const double *theta,
                      void *fit, tsr_err *err);

    double (*log_lik)(const tsr_term *term, const void *fit,
                      const double *theta);

    /* Sum of squared residuals in units of the measured errors, at the best of
     * the linear parameters. */
    double (*chi2)(const tsr_term *term, const void *fit);

    /* The expected values [n_point], of the prediction that `fit` is of. */
    void (*predict)(const tsr_term *term, const tsr_prediction *prediction,
                    const void *fit, const double *theta, double *value);

    /* ---- what a term may have; NULL: it has not ---- */

    /* What is not of its pool. */
    void (*free)(tsr_term *term);

    /* A fit that is more than fit_size of zeroes. NULL: out of memory. */
    void *(*fit_new)(const tsr_term *term, tsr_pool *pool);

    /* The log density of point k given its expected value; instead: log_lik,
     * of the one point. And a replicate of it; instead: the value itself. */
    double (*log_point)(const tsr_term *term, const double *theta, int k,
                        double value);
    double (*draw_point)(const tsr_term *term, const double *theta, int k,
                         double value, gsl_rng *rng);

    /* Parameters that change the fit (TSR_CHANGES_FIT): the same prediction as
     * `from` at other values of them, all that log_lik needs. The rest may wait
     * for `complete`, which comes after the decision to accept and returns 0
     * where the new values cannot be had after all. */
    void (*refit)(const tsr_term *term, const void *from, const double *theta,
                  void *fit);
    int (*complete)(const tsr_term *term, const double *theta, void *fit);

    /* Parameters that the term draws itself, into theta, and the log density of
     * theta: from a distribution close to their conditional under the
     * likelihood's power beta. They are proposed so (TSR_STEP_CONDITIONAL), or
     * are integrated out (is_integrated below): then for a stored draw alone,
     * and from the exact conditional. */
    void (*draw)(const tsr_term *term, const void *fit, double beta,
                 gsl_rng *rng, double *theta);
    double (*log_density)(const tsr_term *term, const void *fit, double beta,
                          const double *theta);

    /* The profile, if it is needed. Called once, before chains start: says on
     * which grid of q the profile of every prediction will be. */
    tsr_status (*prepare)(tsr_term *term, const tsr_q_grid *grid, tsr_err *err);

    /* Called after it, where the error of the forward model itself is known:
     * the profile is off by the curves of `error`, which the term integrates
     * out, instead of those of an earlier call. Errors: TSR_E_NOMEM. */
    tsr_status (*set_model_error)(tsr_term *term,
                                  const tsr_profile_error *error, tsr_err *err);

    /* Where the data say that the molecule lies, from where it is in
     * `conformation`, before chains start. *has_pose 0: they do not say. */
    tsr_status (*find_pose)(const tsr_term *term,
                            const tsr_conformation *conformation,
                            tsr_motion *motion, int *has_pose, tsr_err *err);

    /* y += K v for n displacements of the bodies of one state, v and y
     * [n_body][3][n]: K, positive, is about the second derivatives of -log_lik
     * by their places. */
    void (*hessian_product)(const tsr_term *term, const void *fit, int state,
                            int n, const double *v, double *y);
} tsr_term_type;

/* What else of a term the trace has: constants [n_point] with their doc, or a
 * text, what was decided about the data. */
typedef struct {
    const char *name, *text;
    const double *value; /* NULL: the text */
} tsr_term_note;

enum { TSR_TERM_PARAMETERS = 8, TSR_TERM_NOTES = 12 }; /* of a term, at most */

/* What every term begins with; each type has its own struct around it. */
struct tsr_term {
    const tsr_term_type *type;
    tsr_pool pool;     /* of what it holds, and of itself */
    const char *label; /* the file, or what it measures, for messages */
    int number;        /* of its entry */
    int ordinal;       /* among the terms of its kind, or all curves, from 0 */
    int n_parameter;
    tsr_parameter parameter[TSR_TERM_PARAMETERS];
    int first;         /* place of its parameters in the table of a chain */
    int is_integrated; /* 1: the parameters of `draw` are integrated out */
    double least_beta; /* Replica exchange takes the likelihood to a power below
                          1. Parameters with flat priors have a proper
                          distribution only above some power: this one. 0: any
                          power above 0 will do */
    int n_point;
    const double *coord;            /* [n_point] along the axis */
    const double *observed, *sigma; /* [n_point] */
    double *start; /* [n_point] what the first conformation makes expect, all
                      else at its best; NULL */
    int n_note;
    tsr_term_note note[TSR_TERM_NOTES];
    int n_error;    /* curves of the model's own error that it has */
    int is_smeared; /* 1: a point of a curve is a mean over q about coord */
    double q_max_inv_ang; /* up to where the profile is needed; 0: nowhere */
    const tsr_neutron *neutron; /* what the profile is of; NULL: of X-rays */
    int probe;                  /* what has it (likelihood.h), and */
    int view;                   /* which of the likelihood's curves it is */
};

/* All kinds of terms, by the names of their structs: X(saxs) is tsr_term_saxs.
 * The first is the default. */
#define TSR_TERMS(X) \
    X(saxs)          \
    X(sans)          \
    X(distance)      \
    X(map)

#define X(name) extern const tsr_term_type tsr_term_##name;
TSR_TERMS(X)
#undef X

/* The same as a list, which ends with NULL. */
extern const tsr_term_type *const tsr_term_registry[];

/* For the field `data`: the types as kinds of one struct. */
tsr_field_kind tsr_term_kind(int number);

/* What the structures of `prediction` make expect, into term->start: with those
 * of the term's own parameters that change its fit at the likelihood's best, to
 * a tenth of their prior's width. For terms that need no profile. Errors:
 * TSR_E_NOMEM, those of `fit`. */
tsr_status tsr_term_predict_start(tsr_term *term,
                                  const tsr_prediction *prediction,
                                  tsr_err *err);

/* For `tell`: "the scale was free", "the scale was 3". */
void tsr_term_print_setting(FILE *out, const char *name,
                            tsr_number_or_word value);

/* Whether terms of these kinds are counted together. */
int tsr_term_is_same_family(const tsr_term_type *a, const tsr_term_type *b);

tsr_status tsr_term_read(const tsr_term_source *source, tsr_term **out,
                         tsr_err *err);

/* A term of zeroes, before its data. NULL: out of memory. */
tsr_term *tsr_term_new(const tsr_term_type *type, int number);
void tsr_term_free(tsr_term *term); /* NULL is fine */

/* One more of its notes. */
void tsr_term_add_note(tsr_term *term, const char *name, const char *text,
                       const double *value);

/* Room for what is known of one prediction, of the pool. NULL: out of memory.
 */
void *tsr_term_fit_new(const tsr_term *term, tsr_pool *pool);

/* Of a stored draw (`log_point`, `draw_point` above). */
double tsr_term_log_point(const tsr_term *term, const void *fit,
                          const double *theta, int k, double value);
double tsr_term_draw_point(const tsr_term *term, const double *theta, int k,
                           double value, gsl_rng *rng);

/* How many parameters are inferred, the integrated ones among them. */
int tsr_term_n_free(const tsr_term *term);

/* Where the parameters start: theta [n_parameter] out. */
void tsr_term_start(const tsr_term *term, double *theta);

/* How the trace calls a variable of a term: "chi2", "chi2_2" of the second
 * curve. Those of other kinds than curves have the kind's name
 * before theirs, unless they begin with it: "distance_chi2". */
void tsr_term_variable(const tsr_term_type *type, int ordinal, const char *name,
                       size_t size, char *out);

#endif

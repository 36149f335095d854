/* The results of a run for readers without knowledge of sampling: a few numbers
 * from its folder, and sentences that follow from these numbers. `tessera run`
 * and `tessera summary` print these sentences first; solve and report contain
 * them.
 *
 * A first sentence warns if the run had no data or has not converged. Then the
 * sentences answer these questions, in this order. Do the draws fit the data?
 * What moves, and how far? How large is the molecule? Which arrangements of its
 * domains fit? What did the data leave undecided? How large are log evidence
 * and expected log predictive density, for comparison with other runs? Last, a
 * sentence states that the run has converged. */
#ifndef TSR_ANSWER_VERDICT_H
#define TSR_ANSWER_VERDICT_H

#include "analysis/arrangements.h"
#include "analysis/loo.h"
#include "analysis/summary.h"
#include "answer/advice.h"
#include "core/text.h"
#include "likelihood/term_saxs.h"
#include "scattering/guinier.h"
#include "scattering/profile_fit.h"
#include "session/past_run.h"

/* A curve of `data:`. */
typedef struct {
    char name[96];       /* file name */
    int is_neutron;      /* 1: a neutron curve, which depends on the solvent */
    int has_own_weights; /* 1: of a sample with weights of its own */
    int n;               /* number of points */
    /* Fit of the starting structure, kept rigid, computed from the run's
     * bodies; n_point 0: not stored. */
    tsr_profile_fit rigid;
    /* Fit of the draws' mean curve. */
    double chi2;           /* chi2 per point; NaN: not known */
    double cormap_p;       /* NaN: not known, or neighbouring points share
                              noise */
    tsr_saxs_noise noise;  /* of the data, estimated from neighbouring points */
    tsr_convergence draws; /* chi2 of the draws */
    /* Noise scale s in sigma = s sigma_exp; mean NaN: s was not inferred. */
    tsr_convergence noise_scale;
    /* Guinier fit of the data minus the mean background, and Guinier's Rg of
     * the draws' curves over the same points. */
    tsr_guinier guinier;
    tsr_convergence guinier_draws;
} tsr_verdict_curve;

/* Whether two curves cannot come from one structure, by their Guinier fits.
 * *sigma out: as for tsr_guinier_conflict. A neutron curve conflicts with no
 * other curve, since its Rg depends on the solvent, nor does a curve with
 * weights of its own; *sigma is then not set. */
int tsr_verdict_conflict(const tsr_verdict_curve *a, const tsr_verdict_curve *b,
                         double *sigma);

/* A measurement beside curves that is a single number: a distance, or a map by
 * its correlation. */
typedef struct {
    const tsr_term_type *type;
    char name[96];         /* file name, or the pair of residues */
    double value, sd;      /* measured value and its error; for a map: 1, and
                              the statistical error of a correlation over the
                              map's number of independent voxels */
    double start;          /* predicted from the starting structure; NaN: not
                              known */
    double limit;          /* for a map: correlation of a correct structure,
                              given the map's noise; NaN: not known */
    tsr_convergence draws; /* predictions from the draws */
} tsr_verdict_measured;

/* Displacement of a domain since the start, relative to the fixed domain on
 * which draws are superposed. */
typedef struct {
    int domain;               /* number in arrangements->domains */
    double start;             /* distance of the centres at the start,
                                 Angstrom */
    tsr_convergence distance; /* distance of the centres in the draws,
                                 Angstrom */
    tsr_convergence turn;     /* rotation since the start, degrees */
} tsr_verdict_moved;

/* Distance between two rigid parts, or between the ends of a tail. */
typedef struct {
    const char *variable; /* name in the summary */
    char where[80];       /* "parts A:11-96 and A:104-196" */
    int state;            /* number in an ensemble, from 1; 0: the run has one
                             state */
    int is_tail;
    tsr_convergence distance; /* Angstrom */
} tsr_verdict_motion;

/* A question that the data did not decide. */
typedef enum {
    TSR_UNDECIDED_BOUND,  /* c1, c2 or kd accumulates at an end of its prior */
    TSR_UNDECIDED_WEIGHT, /* the weight of a state is nearly as wide as its
                             prior */
    TSR_UNDECIDED_MIRROR, /* two arrangements are mirror images */
    TSR_UNDECIDED_OUTLINE /* two arrangements have the same outline */
} tsr_undecided_kind;

/* An undecided question and its numbers. */
typedef struct {
    tsr_undecided_kind kind;
    const char *variable; /* name in the summary, or NULL */
    double value;         /* BOUND: the end of the prior. WEIGHT: standard
                             deviation relative to that of the prior. MIRROR,
                             OUTLINE: normalised spatial discrepancy of the two
                             arrangements */
    int is_low;           /* TSR_UNDECIDED_BOUND: 1: the lower end */
    int item[2];          /* numbers of the two arrangements */
} tsr_verdict_undecided;

enum { TSR_MOST_UNDECIDED = 40, TSR_MOST_MOTIONS = 64 };

/* The numbers from which the sentences follow. */
typedef struct {
    tsr_pool pool; /* owns this structure, and all arrays but those of
                      arrangements, loo, advice and atoms */
    int has_data, n_state;
    int is_docked;   /* 1: chains were docked (structure.contacts), and
                        arrangements have interfaces */
    char *directory; /* the run's folder as the user named it; NULL: a trace
                        alone */
    int n_curve;
    tsr_verdict_curve *curve; /* [n_curve] */
    tsr_series series;        /* weights of the states in several samples, or
                                 mass fractions of the species */
    tsr_convergence kd[TSR_MAX_SPECIES]; /* dissociation constants of the
                                            species; median 0 or NaN: not
                                            inferred */
    int n_measured;
    tsr_verdict_measured *measured; /* [n_measured] sorted by kind */
    int n_moved; /* 0 without data that fix positions, such as maps, or with
                    several states */
    tsr_verdict_moved moved[TSR_MOST_DOMAINS];
    tsr_convergence rg, d_max; /* Angstrom; mean NaN: not known */
    int n_motion;
    tsr_verdict_motion motion[TSR_MOST_MOTIONS];
    tsr_arrangements *arrangements; /* NULL: no two domains move, or
                                       conformations are not stored or not
                                       readable */
    tsr_evidence evidence;
    double ess; /* effective draws of the slowest variable */
    tsr_loo loo;
    int n_undecided;
    tsr_verdict_undecided undecided[TSR_MOST_UNDECIDED];
    tsr_advice advice;
    tsr_model_atoms *atoms; /* atoms of model.pdb, for the names of domains;
                               NULL: not readable */
} tsr_verdict;

/* Computes the verdict of a run. summary: borrowed as long as the verdict
 * exists. fixed (a domain; -1: the largest) and threshold_ang as in
 * tsr_arrangements_make. Parts that cannot be read are left out. Errors:
 * TSR_E_NOMEM, those of tsr_advice_make; TSR_E_USAGE (no such domain). */
tsr_status tsr_verdict_make(const tsr_past_run *run, const tsr_summary *summary,
                            int fixed, double threshold_ang, tsr_verdict **out,
                            tsr_err *err);
void tsr_verdict_free(tsr_verdict *verdict);

/* The verdict with default arrangements, together with its summary, evidence
 * included. The caller frees both, also after an error. Errors: those of
 * tsr_verdict_make, tsr_summary_make and tsr_summary_add_evidence. */
tsr_status tsr_verdict_of_run(const tsr_past_run *run, tsr_summary **summary,
                              tsr_verdict **verdict, tsr_err *err);

/* Starts the text `words` and writes the sentences: one paragraph a line, the
 * most important first. */
void tsr_verdict_write(const tsr_verdict *verdict, tsr_words *words);

/* Prints the sentences, wrapped, and, if the run has not converged, the command
 * that continues the run. Errors: TSR_E_NOMEM. */
tsr_status tsr_verdict_print(const tsr_verdict *verdict, FILE *out,
                             tsr_err *err);

/* Prints the table of the series; nothing where the run has one sample. */
void tsr_verdict_print_series(const tsr_verdict *verdict, FILE *out,
                              int indent);

/* Adds the member `name` to an object: sentences, states, curves, conflicts,
 * series, measured, since_start, rg, d_max, motion, arrangements, evidence,
 * loo, undecided, advice. Errors: TSR_E_NOMEM. */
tsr_status tsr_verdict_put(const tsr_verdict *verdict, const char *name,
                           tsr_json *json, tsr_err *err);

/* Mean and 90 % interval, "28.4 [28.1, 28.8]"; text [64] out. */
const char *tsr_verdict_interval(const tsr_convergence *value, char text[64]);

/* Adds the member `name` to an object: {mean, q5, q95}. */
void tsr_verdict_put_interval(tsr_json *json, const char *name,
                              const tsr_convergence *value);

/* Adds the members chi2, reduced_chi2, cormap_p, c1, c2, scale, background. */
void tsr_verdict_put_fit(tsr_json *json, const tsr_profile_fit *fit);

/* Whether a fit is as good as the noise allows. The signs of the residuals must
 * look random (CorMap p at least 0.01, or NaN). The reduced chi2 must be at
 * most 1.5, times noise squared if noise is above 1. noise: estimated from
 * neighbouring points, in units of sigma. */
int tsr_verdict_fits(double reduced_chi2, double cormap_p, double noise);

/* The reason for the answer of tsr_verdict_fits: a clause on the residuals. */
const char *tsr_verdict_fit_clause(double reduced_chi2, double cormap_p,
                                   double noise);

#endif

/* What a run found, for someone who has never sampled anything: a few numbers
 * of its folder, and the sentences that rest on them. Every command that tells
 * of a run begins with these.
 *
 * In the order in which a reader asks: do the draws fit; what moves, and how
 * far; how large is the molecule; which arrangements of its domains fit; what
 * did the data leave open; may one believe the run. */
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
    char name[96];  /* its file */
    int is_neutron; /* 1: not of X-rays; what they see depends on the solvent */
    int n;          /* points */
    /* The first conformation, rigid, by the bodies of the run; n_point 0: the
     * run did not store it. */
    tsr_profile_fit rigid;
    /* The mean curve of the draws. */
    double chi2;           /* per point; NaN: not known */
    double cormap_p;       /* NaN: neighbours share noise */
    tsr_saxs_noise noise;  /* of the data, by neighbours */
    tsr_convergence draws; /* chi2 of each */
    /* s in sigma = s sigma_exp; mean NaN: it was not inferred. */
    tsr_convergence noise_scale;
    /* Guinier's law in the data less the mean background, and in the draws'
     * curves over the same points. */
    tsr_guinier guinier;
    tsr_convergence guinier_draws;
} tsr_verdict_curve;

/* tsr_guinier_conflict of two curves; those of neutrons may have any Rg beside
 * others. */
int tsr_verdict_conflict(const tsr_verdict_curve *a, const tsr_verdict_curve *b,
                         double *sigma);

/* What was measured beside curves, where it is one number: a distance, or a map
 * by its correlation. */
typedef struct {
    const tsr_term_type *type;
    char name[96];    /* of its file, or what it is between */
    double value, sd; /* measured; of a map 1, and what a correlation of as
                         many voxels is uncertain by */
    double start;     /* what the first conformation makes expect; NaN */
    double limit;     /* of a map: the correlation that its noise would leave
                         of a structure that is right; NaN: not known */
    tsr_convergence draws; /* what they make expect */
} tsr_verdict_measured;

/* How a domain lies to the one that draws are superposed on, since the start.
 */
typedef struct {
    int domain;               /* of arrangements->domains */
    double start;             /* distance of their centres then, Angstrom */
    tsr_convergence distance; /* of the draws */
    tsr_convergence turn;     /* by which it has turned, degrees */
} tsr_verdict_moved;

/* How far two parts are from each other, or the ends of a tail. */
typedef struct {
    const char *variable; /* of the summary */
    char where[80];       /* "parts A:11-96 and A:104-196" */
    int state;            /* of an ensemble from 1; 0: the only one */
    int is_tail;
    tsr_convergence distance; /* Angstrom */
} tsr_verdict_motion;

/* What the data did not decide. */
typedef enum {
    TSR_UNDECIDED_BOUND,  /* c1 or c2 piles up at an end of its prior */
    TSR_UNDECIDED_WEIGHT, /* a state's weight is as wide as the prior lets it be
                           */
    TSR_UNDECIDED_MIRROR, /* two arrangements are mirror images */
    TSR_UNDECIDED_OUTLINE /* two have the same outline */
} tsr_undecided_kind;

typedef struct {
    tsr_undecided_kind kind;
    const char *variable; /* of the summary; NULL */
    double value;         /* the end; the share of the prior's spread that is
                             left; the discrepancy */
    int is_low;           /* of a bound: which end */
    int item[2];          /* of arrangements: which two */
} tsr_verdict_undecided;

enum { TSR_MOST_UNDECIDED = 40, TSR_MOST_MOTIONS = 64 };

typedef struct {
    tsr_pool pool; /* of what it holds, and of itself */
    int has_data, n_state;
    char *directory; /* as it was named; NULL: a trace */
    int n_curve;
    tsr_verdict_curve *curve; /* [n_curve] */
    int n_measured;
    tsr_verdict_measured *measured; /* [n_measured] by kind */
    int n_moved; /* of one state whose data say where domains lie: maps */
    tsr_verdict_moved moved[TSR_MOST_DOMAINS];
    tsr_convergence rg, d_max; /* Angstrom; mean NaN: not known */
    int n_motion;
    tsr_verdict_motion motion[TSR_MOST_MOTIONS];
    tsr_arrangements *arrangements; /* NULL: no two domains move */
    tsr_evidence evidence;
    double ess; /* effective draws of the slowest variable */
    tsr_loo loo;
    int n_undecided;
    tsr_verdict_undecided undecided[TSR_MOST_UNDECIDED];
    tsr_advice advice;
    tsr_model_atoms *atoms; /* for the domains' names; NULL */
} tsr_verdict;

/* summary: of the run, borrowed as long as the verdict lives. Arrangements with
 * the domain `fixed` (-1: the largest) and a threshold as of
 * tsr_arrangements_make. What cannot be read is left out. Errors: TSR_E_NOMEM,
 * those of tsr_advice_make; TSR_E_USAGE (no such domain). */
tsr_status tsr_verdict_make(const tsr_past_run *run, const tsr_summary *summary,
                            int fixed, double threshold_ang, tsr_verdict **out,
                            tsr_err *err);
void tsr_verdict_free(tsr_verdict *verdict);

/* The same with the usual arrangements, and the summary, with the evidence,
 * that it rests on; the caller frees both, also after an error. Errors: also
 * those of tsr_summary_make and tsr_summary_add_evidence. */
tsr_status tsr_verdict_of_run(const tsr_past_run *run, tsr_summary **summary,
                              tsr_verdict **verdict, tsr_err *err);

/* Begins a text with the sentences: a line a paragraph, most important first.
 */
void tsr_verdict_write(const tsr_verdict *verdict, tsr_words *words);

/* The sentences, wrapped, to be read; and the advice as a line of its own where
 * the run has not converged. Errors: TSR_E_NOMEM. */
tsr_status tsr_verdict_print(const tsr_verdict *verdict, FILE *out,
                             tsr_err *err);

/* As the member `name` of an object: sentences, curves, conflicts, measured,
 * since_start, rg, d_max, motion, arrangements, evidence, loo, undecided,
 * advice. Errors: TSR_E_NOMEM.
 */
tsr_status tsr_verdict_put(const tsr_verdict *verdict, const char *name,
                           tsr_json *json, tsr_err *err);

/* "28.4 [28.1, 28.8]"; text [64]. */
const char *tsr_verdict_interval(const tsr_convergence *value, char text[64]);

/* {mean, q5, q95} */
void tsr_verdict_put_interval(tsr_json *json, const char *name,
                              const tsr_convergence *value);

/* chi2, reduced_chi2, cormap_p, c1, c2, scale, background */
void tsr_verdict_put_fit(tsr_json *json, const tsr_profile_fit *fit);

/* Whether a fit is as good as the noise lets one expect: residuals change their
 * sign as by chance (p of CorMap at least 0.01, or NaN) and are not much larger
 * than the noise: reduced chi2 at most 1.5, times the square of the noise by
 * neighbours (in sigma) where that is above 1. */
int tsr_verdict_fits(double reduced_chi2, double cormap_p, double noise);

/* Why it is, or is not: a clause on its residuals. */
const char *tsr_verdict_fit_clause(double reduced_chi2, double cormap_p,
                                   double noise);

#endif

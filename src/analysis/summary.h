/* Summary of a trace: location, spread and convergence of every variable, and
 * the same of the prior if a run without data is available. */
#ifndef TSR_ANALYSIS_SUMMARY_H
#define TSR_ANALYSIS_SUMMARY_H

#include "analysis/convergence.h"
#include "analysis/evidence.h"
#include "core/pool.h"
#include "core/status.h"
#include "store/trace.h"

#include <stdio.h>

/* Summary of an angle, in a tsr_convergence. The circle is cut opposite the
 * mean direction, so that the angles become numbers on a line. The numbers of
 * the summary are then
 *
 * - mean: direction of the mean of the unit vectors, in the range that the
 *   values use: (-half, half] of a turn, or [0, turn) where all values are >= 0
 *   and some exceed half a turn;
 * - sd: circular standard deviation sqrt(-2 ln R), where R is the length of the
 *   mean of the unit vectors (Mardia & Jupp 2000, 2.3.4; circ_var_names in
 *   ArviZ);
 * - median, q5, q95: on the line, so that q5 <= median <= q95. These numbers
 *   may lie outside the range of the angle (370 degrees means 10);
 * - mcse, ess, rhat: on the line, so that they do not change when all angles
 *   are turned by the same amount.
 *
 * Without a preferred direction the mean is meaningless; the sd then exceeds
 * about 2 rad or 115 degrees. */

/* A full turn in a unit of angle: "rad", "radian(s)", "deg" or "degree(s)". 0
 * for other units and for NULL. */
double tsr_circular_turn(const char *unit);

/* The counterpart of tsr_convergence_make for angles. turn: a full turn in
 * their unit. value [n_chain][n_draw] in, overwritten. */
tsr_status tsr_circular_make(int n_group, int n_chain, int n_draw, double turn,
                             double *value, tsr_convergence *out, tsr_err *err);

/* Reason why an item lacks numbers. */
typedef enum {
    TSR_FLAW_NONE,
    TSR_FLAW_FEW_DRAWS,  /* fewer than 4 draws per chain: no mcse, ess, rhat */
    TSR_FLAW_CONSTANT,   /* the variable does not vary: no mcse, ess, rhat */
    TSR_FLAW_NOT_FINITE, /* some draws are not finite: no numbers */
    TSR_FLAW_UNREADABLE  /* the file is damaged: no numbers */
} tsr_summary_flaw;

/* Summary of one variable, or of one element of a vector. */
typedef struct {
    char *name; /* "rg"; "weight[0]" for an element of a vector */
    char *unit; /* NULL: the variable has no unit */
    int n_chain, n_draw;
    int is_circular; /* 1: an angle (tsr_circular_make) */
    int is_hidden;   /* 1: tsr_summary_print omits it */
    tsr_summary_flaw flaw;
    char *flaw_text; /* a sentence for a warning; NULL: no warning */
    tsr_convergence value;
    int has_prior;
    tsr_convergence prior;
    /* Posterior contraction by the data, 1 - (sd / prior sd)^2 (Betancourt
     * 2018, arXiv:1803.08393); NaN where either sd is missing. */
    double contraction;
} tsr_summary_item;

/* Summary of all variables of a trace. */
typedef struct {
    tsr_pool pool;
    int n;
    tsr_summary_item *item; /* [n] */
    int has_prior;          /* 1: some item has a prior */
    tsr_evidence evidence;  /* n_temp 0: not computed, or the run had neither a
                               ladder nor populations */
} tsr_summary;

/* Summarises every variable of the posterior group, in the order of the file,
 * then lp of sample_stats. A vector gives one item for each element. One
 * variable is in memory at a time, or a part of a long vector. An item that
 * cannot be read or has a value that is not finite gets a flaw. Errors:
 * TSR_E_DATA (no posterior, or no draw yet); TSR_E_IO (no variable could be
 * read); TSR_E_NOMEM. */
tsr_status tsr_summary_make(tsr_trace_reader *reader, tsr_summary **out,
                            tsr_err *err);
void tsr_summary_free(tsr_summary *summary);

/* Reads a scalar variable of posterior or sample_stats: *value
 * [*n_chain][*n_draw], the caller frees it; NULL where the variable is missing,
 * is a vector, has no draw, or cannot be read. Errors: TSR_E_NOMEM. */
tsr_status tsr_summary_draws(tsr_trace_reader *reader, const char *name,
                             int *n_chain, int *n_draw, double **value,
                             tsr_err *err);

/* Adds the numbers of the prior, from a run without data, to items of the same
 * name and unit, but not to lp, which lacks the likelihood there. Errors:
 * TSR_E_DATA (no variable in common), those of tsr_summary_make. */
tsr_status tsr_summary_add_prior(tsr_summary *summary, tsr_trace_reader *prior,
                                 tsr_err *err);

/* Adds the marginal likelihood if the run has a ladder or an estimate by
 * populations. Errors: those of tsr_evidence_make. */
tsr_status tsr_summary_add_evidence(tsr_summary *summary,
                                    tsr_trace_reader *reader, tsr_err *err);

/* Hides most variables of poses and tails (molecule/rigid_pose.h), because a
 * run has many. The distances, items with a warning and, of poses and of tails,
 * the variable with the fewest effective draws are not hidden. Returns the
 * number of hidden items. */
int tsr_summary_hide_poses(tsr_summary *summary);

/* The item with a name, or NULL. */
const tsr_summary_item *tsr_summary_find(const tsr_summary *summary,
                                         const char *name);

/* The item with the fewest effective draws, bulk or tail; *ess out: this
 * number. NULL and 0 where no item has an effective sample size. */
const tsr_summary_item *tsr_summary_slowest(const tsr_summary *summary,
                                            double *ess);

/* Decimals of a mean that show two digits of its standard error; more digits
 * would change with the seed. */
int tsr_summary_decimals(const tsr_convergence *value);

/* Formats x with a number of decimals, or with 4 digits where |x| is at least
 * 1e9 or below 1e-4. */
enum { TSR_SUMMARY_CELL = 24 };
void tsr_summary_number(char text[TSR_SUMMARY_CELL], double x, int decimals);

/* Prints aligned columns, then the log evidence. Means have the digits that
 * their error supports. A missing number is replaced by its reason: "few"
 * draws, "-" (does not vary), "nan" (some draws are not finite), "damaged".
 * Errors: TSR_E_IO, also where the stream failed before. */
tsr_status tsr_summary_print(const tsr_summary *summary, FILE *out,
                             tsr_err *err);

/* Adds a member for each item to an object: name -> {mean, sd, median, q5, q95,
 * mcse, ess_bulk, ess_tail, rhat}, in full precision; null for values that are
 * not finite. Optional members: "rhat_chains"; "circular": true; "note": why a
 * number is null; "prior" {the same nine}, "contraction". The member "evidence"
 * is that of tsr_evidence_put. */
void tsr_summary_put(const tsr_summary *summary, tsr_json *json);

/* ---- curves ---- */

/* Summary of a curve over the draws, point by point. */
typedef struct {
    tsr_pool pool;
    char *name;  /* "intensity_mean" */
    int n_point; /* number of points of the curve in the trace */
    int n;       /* points summarised; fewer than n_point if there are very many
                    draws */
    int *at;     /* [n] index of each point in the trace's curve */
    double *q;   /* [n] 1/Angstrom; the index if the trace has no coordinate */
    tsr_convergence *point; /* [n] */
    int n_bad;              /* number of points with draws that are not
                               finite */
} tsr_curve_summary;

/* Summarises a curve of posterior_predictive. At most about 300 MiB are in
 * memory. If the draws of all points would exceed `most` numbers, points are
 * left out evenly, down to 2. Errors: those of tsr_trace_get_part; TSR_E_DATA
 * (no draws). Cost: O(most log n_draw). */
tsr_status tsr_curve_summary_make(tsr_trace_reader *reader, const char *name,
                                  double most, tsr_curve_summary **out,
                                  tsr_err *err);
void tsr_curve_summary_free(tsr_curve_summary *summary);

/* The point with the largest rhat; -1 where no point has an rhat. */
int tsr_curve_summary_worst(const tsr_curve_summary *summary);

/* ---- several samples of one molecule ----
 *
 * Mass fractions of the species in every sample, from fraction_1, ... of the
 * posterior, else weights of the states, from curve_weight_1, ... */

enum { TSR_SERIES_QUANTILES = 5 };
extern const double tsr_series_probability[TSR_SERIES_QUANTILES];

typedef struct {
    int n, n_state; /* number of samples, 0: the run has one, and no species;
                       of states or species */
    int is_species;
    char **name;   /* [n_state] "state 1", or "species 1" */
    double *at;    /* [n] coordinates, ascending */
    char **label;  /* [n] */
    char *unit;    /* of the coordinates; NULL: not stated */
    int is_series; /* 0: the coordinates only number entries of `data:` */
    /* [n_state][n] median, and ends of the central 68 and 95 % */
    double (*quantile)[TSR_SERIES_QUANTILES];
} tsr_series;

/* The pool owns the arrays. Errors: TSR_E_NOMEM, those of tsr_trace_get. */
tsr_status tsr_series_make(tsr_trace_reader *reader, tsr_pool *pool,
                           tsr_series *out, tsr_err *err);

/* ---- single draws ---- */

/* Calls `visit` with elements entry_from .. entry_from + n - 1 of every
 * `every`-th draw of a variable. `visit` may change these values. The order is
 * chain by chain within blocks of draws; about 32 MiB are in memory. Stops at
 * the first error. Errors: those of tsr_trace_get_part and of `visit`. */
typedef tsr_status (*tsr_row_callback)(void *context, int chain, int draw,
                                       double *row, tsr_err *err);
tsr_status tsr_rows_for_each(tsr_trace_reader *reader, tsr_trace_group group,
                             const char *name, int every, int entry_from, int n,
                             tsr_row_callback visit, void *context,
                             tsr_err *err);

/* Reads all draws of the elements with the numbers at [n], ascending, in one
 * pass over the variable: column [n][n_chain][n_draw] out. Errors: those of
 * tsr_trace_get_part. */
tsr_status tsr_entries_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, int n, const int *at,
                           double *column, tsr_err *err);

/* How many of n elements fit into 256 MiB with all their draws; the result is
 * at least 1. */
int tsr_entries_that_fit(int n_chain, int n_draw, int n);

/* A subset of a variable's draws, for statistics that do not need all of
 * them. */
typedef struct {
    int n_chain, n_kept; /* 0: the variable is missing */
    int every;           /* draw number k of the subset is draw number k * every
                            of the run */
    int n;               /* elements of a draw */
    double *value;       /* [n_chain][n_kept][n] */
} tsr_thinned;

/* Reads evenly spread draws of all chains, about `most` in all, with n elements
 * each from entry_from on. n_chain stays 0 where the trace lacks the variable,
 * these elements, or draws. The caller frees value, also after an error.
 * Errors: TSR_E_NOMEM, those of tsr_rows_for_each. */
tsr_status tsr_thinned_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, long most, int entry_from, int n,
                           tsr_thinned *out, tsr_err *err);

#endif

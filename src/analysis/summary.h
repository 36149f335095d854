/* Summary of a trace: location, spread and convergence of every variable, and
 * beside it the prior's where a run without data is at hand. */
#ifndef TSR_ANALYSIS_SUMMARY_H
#define TSR_ANALYSIS_SUMMARY_H

#include "analysis/convergence.h"
#include "analysis/evidence.h"
#include "core/pool.h"
#include "core/status.h"
#include "store/trace.h"

#include <stdio.h>

/* Summary of an angle: what tsr_convergence is for a number on the line.
 *
 * The circle is cut opposite the mean direction, and what is left is a variable
 * on a line around it. So:
 * - mean: the direction of the mean of the unit vectors, in the range that the
 *   values use: (-half, half] of a turn, or [0, turn) where none is below 0 and
 *   some are above half a turn;
 * - sd: the circular standard deviation sqrt(-2 ln R), R the length of that
 *   mean (Mardia & Jupp 2000, 2.3.4; ArviZ's circ_var_names);
 * - median, q5, q95: of the line, so q5 <= median <= q95 even where that takes
 *   one of them beyond the end of the range (370 degrees is 10);
 * - mcse, ess, rhat: of the line. They do not change when all angles turn by
 *   the same.
 * Without a preferred direction the mean says nothing; the sd is then large,
 * above some 2 rad or 115 degrees. */

/* A whole turn in a unit of angle ("rad", "radian", "deg", "degree", and their
 * plurals), or 0 for what is no angle; NULL is none. */
double tsr_circular_turn(const char *unit);

/* As tsr_convergence_make, for angles of which `turn` is a whole one;
 * value [n_chain][n_draw] is changed. */
tsr_status tsr_circular_make(int n_group, int n_chain, int n_draw, double turn,
                             double *value, tsr_convergence *out, tsr_err *err);

/* Why numbers of an item are missing. */
typedef enum {
    TSR_FLAW_NONE,
    TSR_FLAW_FEW_DRAWS,  /* for mcse, ess and rhat: below 4 a chain */
    TSR_FLAW_CONSTANT,   /* it does not vary: mcse, ess and rhat */
    TSR_FLAW_NOT_FINITE, /* some draws are not finite: everything */
    TSR_FLAW_UNREADABLE  /* the file is damaged there: everything */
} tsr_summary_flaw;

typedef struct {
    char *name; /* "rg"; "weight[0]" for an entry of a vector */
    char *unit; /* NULL: none */
    int n_chain, n_draw;
    int is_circular; /* an angle, see tsr_circular_make */
    int is_hidden;   /* tsr_summary_print leaves it out */
    tsr_summary_flaw flaw;
    char *flaw_text; /* a sentence for a warning; NULL: nothing to warn of */
    tsr_convergence value;
    int has_prior;
    tsr_convergence prior;
    /* What the data taught: 1 - (sd / prior sd)^2, the contraction of
     * Betancourt 2018 (arXiv:1803.08393); NaN where either is missing. */
    double contraction;
} tsr_summary_item;

typedef struct {
    tsr_pool pool;
    int n;
    tsr_summary_item *item; /* [n] */
    int has_prior;          /* of any item */
    tsr_evidence evidence;  /* n_temp 0: not asked for, or of no ladder */
} tsr_summary;

/* Every variable of the posterior group, in the order of the file, then lp of
 * sample_stats. A variable with an axis of its own gives one item an entry.
 * One variable at a time is in memory, of a long vector a part. Where one
 * cannot be read or holds NaN, its item says so.
 * Errors: TSR_E_DATA (nothing to summarise: no posterior, or no draw yet);
 * TSR_E_IO (nothing could be read); TSR_E_NOMEM. */
tsr_status tsr_summary_make(tsr_trace_reader *reader, tsr_summary **out,
                            tsr_err *err);
void tsr_summary_free(tsr_summary *summary);

/* A variable of posterior or sample_stats with one number a draw, *value
 * [*n_chain][*n_draw], caller frees; NULL where there is none, it has no draw,
 * or it cannot be read. Errors: TSR_E_NOMEM. */
tsr_status tsr_summary_draws(tsr_trace_reader *reader, const char *name,
                             int *n_chain, int *n_draw, double **value,
                             tsr_err *err);

/* Puts the numbers of the run of the prior beside those that have the same name
 * (and unit). lp gets none: its parts differ. Errors: TSR_E_DATA (the two have
 * no variable in common), those of tsr_summary_make. */
tsr_status tsr_summary_add_prior(tsr_summary *summary, tsr_trace_reader *prior,
                                 tsr_err *err);

/* Adds the marginal likelihood, where the run had a ladder of temperatures.
 * Errors: those of tsr_evidence_make. */
tsr_status tsr_summary_add_evidence(tsr_summary *summary,
                                    tsr_trace_reader *reader, tsr_err *err);

/* Poses and tails (molecule/rigid_pose.h) have many variables: hides, of each
 * kind, all but the distances and the one with the least effective draws.
 * Returns how many. */
int tsr_summary_hide_poses(tsr_summary *summary);

/* The item of that name, or NULL. */
const tsr_summary_item *tsr_summary_find(const tsr_summary *summary,
                                         const char *name);

/* The item with the fewest effective draws, in its middle or at its ends, and
 * these in *ess; NULL and 0: no item has a number of them. */
const tsr_summary_item *tsr_summary_slowest(const tsr_summary *summary,
                                            double *ess);

/* Decimals of a mean, and of what stands beside it, that show two digits of the
 * mean's error: further ones would change with another seed. */
int tsr_summary_decimals(const tsr_convergence *value);

/* A number with so many decimals; what they cannot show has an exponent. */
enum { TSR_SUMMARY_CELL = 24 };
void tsr_summary_number(char text[TSR_SUMMARY_CELL], double x, int decimals);

/* Aligned columns for people, and below them the log evidence: the mean to the
 * digits that its error supports; a number that is missing says why: "few"
 * draws, "-" (it does not vary), "nan" (some draws are), "damaged". Errors:
 * TSR_E_IO (also where the stream failed before). */
tsr_status tsr_summary_print(const tsr_summary *summary, FILE *out,
                             tsr_err *err);

/* Members of an object: name -> {mean, sd, median, q5, q95, mcse, ess_bulk,
 * ess_tail, rhat}, to the last bit; null for what is not finite. Beside these,
 * where they apply: "circular": true; "note": why a number is null; "prior":
 * {the same nine}, "contraction". "evidence" is that of tsr_evidence_put. */
void tsr_summary_put(const tsr_summary *summary, tsr_json *json);

/* ---- curves ---- */

/* Summary of a curve of every draw, point by point: its band, and whether the
 * chains agree on it. */

typedef struct {
    tsr_pool pool;
    char *name;  /* "intensity_mean" */
    int n_point; /* of the curve in the trace */
    int n;       /* points summarised: all, of very many draws some */
    int *at;     /* [n] which of n_point */
    double *q;   /* [n] 1/Angstrom; their number where there is no coordinate */
    tsr_convergence *point; /* [n] */
    int n_bad;              /* points where draws are not finite */
} tsr_curve_summary;

/* A variable of posterior_predictive with an axis of its own. Some 300 MiB
 * are in memory at most. Points are left out, evenly, where all of them would
 * be more than `most` numbers. Errors: those of tsr_trace_get_part; TSR_E_DATA
 * (no draws). Cost: O(most log n_draw). */
tsr_status tsr_curve_summary_make(tsr_trace_reader *reader, const char *name,
                                  double most, tsr_curve_summary **out,
                                  tsr_err *err);
void tsr_curve_summary_free(tsr_curve_summary *summary);

/* The point whose chains agree least (largest rhat); -1 where none has one. */
int tsr_curve_summary_worst(const tsr_curve_summary *summary);

/* ---- draws one by one ---- */

/* Calls `visit` with every `every`-th draw of a variable, the n entries from
 * entry_from on, which may be changed: chain by chain within blocks of draws,
 * some 32 MiB of which are in memory. Stops at its first error. Errors: those
 * of tsr_trace_get_part and of `visit`. */
typedef tsr_status (*tsr_row_callback)(void *context, int chain, int draw,
                                       double *row, tsr_err *err);
tsr_status tsr_rows_for_each(tsr_trace_reader *reader, tsr_trace_group group,
                             const char *name, int every, int entry_from, int n,
                             tsr_row_callback visit, void *context,
                             tsr_err *err);

/* All draws of the entries at [n], ascending, entry by entry: column
 * [n][n_chain][n_draw], in one pass over the variable. Errors: those of
 * tsr_trace_get_part. */
tsr_status tsr_entries_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, int n, const int *at,
                           double *column, tsr_err *err);

/* How many of n columns some 256 MiB hold; at least 1. */
int tsr_entries_that_fit(int n_chain, int n_draw, int n);

/* Some draws of a variable instead of all, where thousands tell what millions
 * do. */
typedef struct {
    int n_chain, n_kept; /* 0: there are none */
    int every;           /* draw k of them is draw k every of the run */
    int n;               /* entries of each */
    double *value;       /* [n_chain][n_kept][n] */
} tsr_thinned;

/* Every so many draws of all chains, some `most` in all, and of each n entries
 * from entry_from on. Nothing where the trace has no such variable. The caller
 * frees value, also after an error. Errors: TSR_E_NOMEM, TSR_E_IO. */
tsr_status tsr_thinned_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, long most, int entry_from, int n,
                           tsr_thinned *out, tsr_err *err);

#endif

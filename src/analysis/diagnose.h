/* Has a run converged? The questions that are asked of its trace, and their
 * answers with reasons and remedies. */
#ifndef TSR_ANALYSIS_DIAGNOSE_H
#define TSR_ANALYSIS_DIAGNOSE_H

#include "analysis/arrangements.h"
#include "analysis/convergence.h"
#include "analysis/summary.h"
#include "store/trace.h"

#include <stdio.h>

typedef enum {
    TSR_CHECK_YES,
    TSR_CHECK_NO,
    TSR_CHECK_UNKNOWN,  /* the trace does not say, or has too few draws */
    TSR_CHECK_NOT_ASKED /* does not apply: no data, one temperature */
} tsr_answer;

typedef struct {
    const char *name; /* "rhat" */
    const char *asks; /* "do the chains agree?" */
    tsr_answer answer;
    double value, limit; /* what was compared; NaN: several things */
    char *found;         /* one line or more, never NULL */
    char *remedy;        /* NULL: none needed */
} tsr_check;

enum { TSR_N_CHECK = 9 };

typedef struct {
    double rhat;        /* at most */
    double ess;         /* bulk and tail, at least */
    int n_temp;         /* temperatures of the run; 0: not known */
    long warmup, draws; /* steps and draws that the run was asked for; 0: not
                           known */
    int is_frozen;      /* structures that were not to move */
    const tsr_arrangements *arrangements; /* NULL: none */
    /* The line that goes on with the run, told once instead of a remedy by each
     * check that asks for more draws; NULL: there is none. Borrowed. */
    const char *advice;
} tsr_diagnose_options;

typedef struct {
    tsr_pool pool; /* of the texts and of the list of curves */
    int n_chain, n_draw;
    tsr_summary *summary;
    int n_curve;
    tsr_curve_summary **curve; /* [n_curve] of the data sets */
    int n;
    tsr_check check[TSR_N_CHECK];
    int is_converged; /* nothing says no, R-hat and ESS say yes */
    char *advice;     /* of the options, where more draws would help; NULL */
} tsr_diagnosis;

/* Errors: those of tsr_summary_make; TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_diagnose(tsr_trace_reader *reader,
                        const tsr_diagnose_options *options,
                        tsr_diagnosis **out, tsr_err *err);
void tsr_diagnosis_free(tsr_diagnosis *diagnosis);

/* The answers, one paragraph each, and the verdict. */
void tsr_diagnosis_print(const tsr_diagnosis *diagnosis, FILE *out);

/* One JSON object: converged, n_chain, n_draw, advice, checks [{name, asks,
 * answer: yes|no|unknown|not asked, value, limit, found, remedy}], variables
 * {name: {rhat, ess_bulk, ess_tail}}, curves {name: {q [], rhat [], ess_bulk
 * []}}. */
void tsr_diagnosis_print_json(const tsr_diagnosis *diagnosis, FILE *out);

/* ---- what its questions rest on ---- */

/* Chains of one variable compared: which one stands still, which one is apart,
 * do two halves of them tell the same? */

/* The longest run of equal values in a chain. value [n_draw]. */
int tsr_longest_rest(int n_draw, const double *value);

/* How far chain c is from the rest: 0 where its middle 90 % and that of the
 * others overlap; else the gap between the two, in units of the wider one's
 * width (infinite where both have none). Below 0: it lies under them.
 * value [n_chain][n_draw]. NaN: one chain, or out of memory. */
double tsr_chain_gap(int n_chain, int n_draw, const double *value, int c);

/* Kolmogorov and Smirnov's comparison of two halves of the chains (of one
 * chain, of its draws): the first (n + 1) / 2 against the rest. */
typedef struct {
    double distance; /* largest distance of the two distribution functions */
    /* Probability of as much between two sets of as many independent draws as
     * the halves are worth (their ess_bulk, or one a chain where none moves;
     * Stephens 1970 for small ones). NaN where there is no draw. */
    double p;
} tsr_half_compare;

/* Errors: TSR_E_NOMEM. Cost: O(n log n). */
tsr_status tsr_half_compare_make(int n_chain, int n_draw, const double *value,
                                 tsr_half_compare *out, tsr_err *err);

#endif

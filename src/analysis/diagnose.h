/* Checks whether a run has converged. Each check asks a question about the
 * draws in the trace, and gives an answer, a reason and a remedy. */
#ifndef TSR_ANALYSIS_DIAGNOSE_H
#define TSR_ANALYSIS_DIAGNOSE_H

#include "analysis/arrangements.h"
#include "analysis/convergence.h"
#include "analysis/summary.h"
#include "store/trace.h"

#include <stdio.h>

/* Answer to the question of a check. */
typedef enum {
    TSR_CHECK_YES,
    TSR_CHECK_NO,
    TSR_CHECK_UNKNOWN,  /* the trace lacks the variable, or has too few draws */
    TSR_CHECK_NOT_ASKED /* the question does not apply: no data, one
                           temperature, or no arrangements */
} tsr_answer;

/* One check: its question, answer, reason and remedy. */
typedef struct {
    const char *name; /* "rhat" */
    const char *asks; /* "do the chains agree?" */
    tsr_answer answer;
    double value, limit; /* the value compared with `limit`; NaN: the check
                            compares no value, or has no answer */
    char *found;         /* the reason, one line or more; never NULL */
    char *remedy;        /* NULL: no remedy is needed */
} tsr_check;

enum { TSR_N_CHECK = 8 };

/* Limits of the checks, and facts about the run that the trace lacks. */
typedef struct {
    double rhat;        /* largest R-hat allowed */
    double ess;         /* least effective sample size allowed, bulk and tail */
    int n_temp;         /* temperatures of the ladder; 0: not known */
    long warmup, draws; /* steps of warm-up and draws that the configuration
                           asks for; 0: not known */
    int is_frozen;      /* 1: the configuration keeps structures fixed */
    tsr_summary *summary; /* of the trace, borrowed by the diagnosis */
    const tsr_arrangements *arrangements; /* NULL: not analysed */
    /* The command line that continues the run, borrowed. It is printed once, in
     * place of the remedies of all checks that need more draws. NULL: each of
     * these checks has a remedy. */
    const char *advice;
} tsr_diagnose_options;

/* All checks of a run, and the summaries of the trace from which they
 * follow. */
typedef struct {
    tsr_pool pool; /* owns the texts and the list of curves */
    int n_chain, n_draw;
    tsr_summary *summary; /* borrowed */
    int n_curve;
    tsr_curve_summary **curve; /* [n_curve] one for each data set */
    int n;
    tsr_check check[TSR_N_CHECK];
    int is_converged; /* 1: no answer is no, and R-hat and ESS have the answer
                         yes */
    char *advice;     /* copy of options->advice, if some check needs more
                         draws; else NULL */
} tsr_diagnosis;

/* Makes all checks. Errors: those of tsr_curve_summary_make; TSR_E_NOMEM. */
tsr_status tsr_diagnose(tsr_trace_reader *reader,
                        const tsr_diagnose_options *options,
                        tsr_diagnosis **out, tsr_err *err);
void tsr_diagnosis_free(tsr_diagnosis *diagnosis);

/* Prints the answers, one paragraph each, and the conclusion. */
void tsr_diagnosis_print(const tsr_diagnosis *diagnosis, FILE *out);

/* One JSON object: converged, n_chain, n_draw, advice, checks [{name, asks,
 * answer: yes|no|unknown|not asked, value, limit, found, remedy}], variables
 * {name: {rhat, ess_bulk, ess_tail}}, curves {name: {q [], rhat [], ess_bulk
 * []}}. */
void tsr_diagnosis_print_json(const tsr_diagnosis *diagnosis, FILE *out);

/* ---- statistics of the checks ---- */

/* Comparisons of the chains of one variable. */

/* Length of the longest run of equal values in a chain, value [n_draw]. */
int tsr_longest_constant_run(int n_draw, const double *value);

/* Distance of chain c from all other chains together, value [n_chain][n_draw]:
 * 0 where the middle 90 % of both overlap; else the gap between the two
 * intervals, divided by the width of the wider one (infinite if both have width
 * 0). Negative: chain c lies below. NaN: one chain, or out of memory. */
double tsr_chain_gap(int n_chain, int n_draw, const double *value, int c);

#endif

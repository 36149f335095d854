/* Has a run converged? The questions that are asked of its trace, and their
 * answers with reasons and remedies. */
#ifndef TSR_ANALYSIS_DIAGNOSE_H
#define TSR_ANALYSIS_DIAGNOSE_H

#include "analysis/arrangements.h"
#include "analysis/convergence.h"
#include "analysis/summary.h"
#include "store/trace.h"

#include <stdio.h>

/* Summary of a curve of every draw, point by point: its band, and whether the
 * chains agree on it. */

typedef struct {
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
    int is_still;       /* structures that were not to move */
    const tsr_arrangements *arrangements; /* NULL: none */
    /* The line that goes on with the run, told once instead of a remedy by each
     * check that asks for more draws; NULL: there is none. Borrowed. */
    const char *advice;
} tsr_diagnose_options;

typedef struct {
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

#endif

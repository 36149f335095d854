/* Runs side by side, from their folders: numbers, and the sentences that rest
 * on them. */
#ifndef TSR_ANSWER_COMPARISON_H
#define TSR_ANSWER_COMPARISON_H

#include "answer/verdict.h"

enum { TSR_MOST_COMPARED = 32 };

/* One of the runs. */
typedef struct {
    const char *directory; /* borrowed */
    tsr_past_run past;
    tsr_summary *summary;
    tsr_verdict *verdict;
    uint64_t data; /* checksum of all measured values */
} tsr_compared;

/* Overlap of the distributions of a variable in two runs: sum over 30 bins of
 * the smaller share. 1: equal distributions; 0: no common values. */
typedef struct {
    int a, b;             /* numbers of the runs */
    const char *variable; /* name in the summary of run a */
    double overlap;
} tsr_overlap;

/* Runs that are compared, and the overlaps of their ensembles. */
typedef struct {
    tsr_pool pool; /* of the overlaps */
    int n;
    tsr_compared run[TSR_MOST_COMPARED];
    int n_overlap;
    tsr_overlap *overlap; /* [n_overlap] of the variables of size and shape, by
                             pairs of runs */
} tsr_comparison;

/* Reads n runs and computes overlaps. The caller clears `out`, also after an
 * error. Errors, with the folder: those of tsr_past_run_open, tsr_summary_make,
 * tsr_verdict_make. */
tsr_status tsr_comparison_make(int n, const char *const *directory,
                               tsr_comparison *out, tsr_log *log, tsr_err *err);
void tsr_comparison_clear(tsr_comparison *comparison);

/* Adds a run without overlaps; at most TSR_MOST_COMPARED runs. Errors: as
 * above. */
tsr_status tsr_comparison_add(tsr_comparison *comparison, const char *directory,
                              tsr_log *log, tsr_err *err);

/* Log evidence, or expected log predictive density, of run b minus that of run
 * a, nat, and its standard deviation. NaN where one is not known or the runs
 * have different data. Returns the conclusion. */
typedef tsr_gain tsr_gain_function(const tsr_comparison *comparison, int a,
                                   int b, double *gain, double *error);
tsr_gain_function tsr_evidence_gain, tsr_loo_gain;

/* Prints "  2.1 +- 0.4" as a table cell; blanks for NaN. */
void tsr_gain_print(FILE *out, int width, double gain, double error);

/* Begins `words` with the sentences, one paragraph a line. */
void tsr_comparison_write(const tsr_comparison *comparison, tsr_words *words);

/* Parameters to show side by side: number k, counted without repetition over
 * all runs; NULL past the last. */
const char *tsr_comparison_parameter(const tsr_comparison *comparison, int k);

/* Adds one object: verdict (the sentences), runs, overlaps, conflicts. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_comparison_put(const tsr_comparison *comparison, tsr_json *json,
                              tsr_err *err);

#endif

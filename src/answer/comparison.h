/* Comparison of runs, from their folders: numbers, and the sentences that
 * follow from these numbers. */
#ifndef TSR_ANSWER_COMPARISON_H
#define TSR_ANSWER_COMPARISON_H

#include "answer/verdict.h"

enum { TSR_MOST_COMPARED = 32 };

/* A run of the comparison. */
typedef struct {
    const char *directory; /* borrowed */
    tsr_past_run past;
    tsr_summary *summary;
    tsr_verdict *verdict;
    uint64_t data; /* checksum of all measured values and their coordinates; 0:
                      no data */
    double model_error; /* root mean square of the model's own error over the
                           points of all curves, percent of the intensity; 0:
                           the likelihood has none */
    double probability; /* among the runs of the same data with known log
                           evidence; NaN: not known */
    int is_excluded;    /* by the odds of another run of the same data */
} tsr_compared;

/* Overlap of the distributions of a variable in two runs: sum over 30 bins of
 * the smaller share. 1: equal distributions; 0: no common values. */
typedef struct {
    int a, b;             /* indices of the two runs */
    const char *variable; /* name in the summary of run a */
    double overlap;
} tsr_overlap;

/* Runs that are compared, and the overlaps of their ensembles. */
typedef struct {
    tsr_pool pool; /* owns the overlaps */
    int n;
    tsr_compared run[TSR_MOST_COMPARED];
    int n_overlap;
    tsr_overlap *overlap; /* [n_overlap] one for each pair of runs and each
                             variable of size or shape that both have */
} tsr_comparison;

/* Reads n runs and computes overlaps. The caller clears `out`, also after an
 * error. Errors, with the folder: those of tsr_past_run_open, tsr_summary_make,
 * tsr_verdict_make. */
tsr_status tsr_comparison_make(int n, const char *const *directory,
                               tsr_comparison *out, tsr_log *log, tsr_err *err);
void tsr_comparison_clear(tsr_comparison *comparison);

/* Adds a run without overlaps; at most TSR_MOST_COMPARED runs. Errors: as for
 * tsr_comparison_make. */
tsr_status tsr_comparison_add(tsr_comparison *comparison, const char *directory,
                              tsr_log *log, tsr_err *err);

/* Sets the probability of each run and whether it is excluded, from the log
 * evidence, its error, and a prior 2^-n of n states; other models have equal
 * priors. tsr_comparison_add does this. */
void tsr_comparison_judge(tsr_comparison *comparison);

/* Log evidence, or expected log predictive density, of run b minus that of run
 * a, nat. All NaN where one of the two numbers is not known, the runs have
 * different data, or, for the evidence, a run had one temperature. */
typedef struct {
    double gain, error; /* difference and its standard error */
    double log_odds;    /* for the evidence with the prior of the numbers of
                           states; else the gain */
    tsr_odds says;      /* conclusion on run b */
} tsr_difference;
typedef tsr_difference tsr_difference_function(const tsr_comparison *comparison,
                                               int a, int b);
tsr_difference_function tsr_evidence_gain, tsr_loo_gain;

/* Prints a table cell, such as "2.1 +- 0.4", or "0.267" where error is NaN;
 * blanks where value is not finite. */
void tsr_gain_print(FILE *out, int width, double value, double error);

/* Starts the text `words` and writes the sentences, one paragraph a line. */
void tsr_comparison_write(const tsr_comparison *comparison, tsr_words *words);

/* Name of parameter number k in a table of all runs. Parameters with equal
 * names in several runs count once. NULL past the last parameter. */
const char *tsr_comparison_parameter(const tsr_comparison *comparison, int k);

/* Writes a JSON object: verdict (the sentences), runs, overlaps, conflicts.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_comparison_put(const tsr_comparison *comparison, tsr_json *json,
                              tsr_err *err);

#endif

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
    uint64_t data; /* a checksum of all that was measured */
} tsr_compared;

/* How far the distributions of a variable in two runs overlap: the sum over 30
 * bins of the smaller share; 1 where they are the same, 0 where they do not
 * touch. */
typedef struct {
    int a, b;             /* runs */
    const char *variable; /* of the summary of a */
    double overlap;
} tsr_overlap;

typedef struct {
    tsr_pool pool; /* of the overlaps */
    int n;
    tsr_compared run[TSR_MOST_COMPARED];
    int n_overlap;
    tsr_overlap *overlap; /* [n_overlap] of what says how large a structure is
                             and how its parts lie, by pairs of runs */
} tsr_comparison;

/* Reads n runs. The caller clears it, also after an error. Errors, with the
 * folder: those of tsr_past_run_open, tsr_summary_make, tsr_verdict_make. */
tsr_status tsr_comparison_make(int n, const char *const *directory,
                               tsr_comparison *out, tsr_log *log, tsr_err *err);
void tsr_comparison_clear(tsr_comparison *comparison);

/* Adds a run, at most TSR_MOST_COMPARED, without overlaps. Errors: as above. */
tsr_status tsr_comparison_add(tsr_comparison *comparison, const char *directory,
                              tsr_log *log, tsr_err *err);

/* The log evidence of run b above that of a, and the expected log predictive
 * density, in nat with one standard deviation; NaN where one is not known, or
 * the two saw other data. Returns what that says. */
typedef tsr_gain tsr_gain_function(const tsr_comparison *comparison, int a,
                                   int b, double *gain, double *error);
tsr_gain_function tsr_evidence_gain, tsr_loo_gain;

/* "  2.1 +- 0.4", as a cell of a table; blanks for NaN. */
void tsr_gain_print(FILE *out, int width, double gain, double error);

/* Begins a text with the sentences, a line a paragraph. */
void tsr_comparison_write(const tsr_comparison *comparison, tsr_words *words);

/* The k-th parameter that is told side by side, of any run, in the order of the
 * first that has it; NULL past the last. */
const char *tsr_comparison_parameter(const tsr_comparison *comparison, int k);

/* One object: verdict (the sentences), runs, overlaps, conflicts. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_comparison_put(const tsr_comparison *comparison, tsr_json *json,
                              tsr_err *err);

#endif

/* What `tessera compare` found: in words and tables, as JSON, as a picture. */
#ifndef TSR_CLI_COMPARE_REPORT_H
#define TSR_CLI_COMPARE_REPORT_H

#include "run/verdict.h"

enum { TSR_MOST_COMPARED = 32 };

/* One of the runs. */
typedef struct {
    const char *directory;
    tsr_past_run past;
    tsr_summary *summary;
    tsr_verdict *verdict;
    unsigned long long data; /* a checksum of all that was measured */
} tsr_compared;

/* How far the distributions of a variable in two runs overlap: the sum over
 * bins of the smaller share; 1 where they are the same, 0 where they do not
 * touch. */
typedef struct {
    int a, b; /* runs */
    const char *variable;
    double overlap;
} tsr_overlap;

typedef struct {
    int n;
    tsr_compared *run; /* [n] */
    int n_overlap;
    tsr_overlap *overlap; /* [n_overlap] by pairs of runs */
} tsr_comparison;

tsr_status tsr_comparison_print(const tsr_comparison *c, FILE *out,
                                tsr_err *err);
tsr_status tsr_comparison_print_json(const tsr_comparison *c, FILE *out,
                                     tsr_err *err);

/* What each run says, one beside the other: means and the middle 90 %. Errors:
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_comparison_draw(const tsr_comparison *c, const char *path,
                               tsr_err *err);

#endif

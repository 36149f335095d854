/* Summary of a trace: location, spread and convergence of every variable. */
#ifndef TSR_ANALYSIS_SUMMARY_H
#define TSR_ANALYSIS_SUMMARY_H

#include "analysis/convergence.h"
#include "core/status.h"
#include "io/trace.h"

#include <stdio.h>

typedef struct {
    char *name; /* "rg"; "weight[0]" for an entry of a vector */
    char *unit; /* NULL: none */
    int n_chain, n_draw;
    tsr_convergence value;
} tsr_summary_item;

typedef struct {
    int n;
    tsr_summary_item *item; /* [n] */
} tsr_summary;

/* Every variable of the posterior group, in the order of the file, then lp of
 * sample_stats. A variable with an axis of its own gives one item an entry.
 * Errors: TSR_E_DATA (nothing to summarise: no posterior, or no draw yet),
 * those of tsr_trace_get. */
tsr_status tsr_summary_make(tsr_trace_reader *reader, tsr_summary **out,
                            tsr_err *err);
void tsr_summary_free(tsr_summary *summary);

/* Aligned columns for people: the mean to the digits that its error supports;
 * '-' for NaN. Errors: TSR_E_IO (also where the stream failed before). */
tsr_status tsr_summary_print(const tsr_summary *summary, FILE *out,
                             tsr_err *err);

/* One JSON object: name -> {mean, sd, median, q5, q95, mcse, ess_bulk,
 * ess_tail, rhat}, to the last bit; null for what is not finite. Ends with a
 * newline. */
tsr_status tsr_summary_print_json(const tsr_summary *summary, FILE *out,
                                  tsr_err *err);

#endif

/* What `tessera reweight` says: a table, JSON, the weights as CSV. */
#ifndef TSR_COMMANDS_REWEIGHT_REPORT_H
#define TSR_COMMANDS_REWEIGHT_REPORT_H

#include "analysis/loo.h"
#include "analysis/maxent.h"
#include "analysis/reweight.h"

#include <stdio.h>

typedef struct {
    char *name;
    int has_before;    /* 0: the run had no such variable */
    int is_drawn_anew; /* scale, background, noise: not the draws' own */
    tsr_weighted before, after;
} tsr_reweight_row;

typedef struct {
    const tsr_stored_curve *stored;
    const tsr_saxs *saxs; /* the new data */
    const char *noise;
    tsr_reweight *importance; /* either; owned */
    tsr_maxent *entropy;
    const double *log_weight; /* of it */
    tsr_psis psis;
    double worth; /* independent draws; of importance weights */
    double interpolation;
    int n;
    tsr_reweight_row *row; /* [n] */
} tsr_reweight_report;

/* Fills the rows: every scalar of the posterior, one in memory at a time.
 * Errors: TSR_E_NOMEM, those of tsr_trace_get. */
tsr_status tsr_reweight_report_make(tsr_reweight_report *report, tsr_err *err);
void tsr_reweight_report_clear(tsr_reweight_report *report);

void tsr_reweight_report_print(const tsr_reweight_report *report, FILE *out);
void tsr_reweight_report_json(const tsr_reweight_report *report, FILE *out);

/* chain, draw, weight (the sum is 1), log_weight. Errors: TSR_E_IO. */
tsr_status tsr_reweight_report_csv(const tsr_reweight_report *report,
                                   const char *path, tsr_err *err);

#endif

/* What an evaluation of form-factor tables found, as text, JSON and CSV. */
#ifndef TSR_CLI_EVALUATE_REPORT_H
#define TSR_CLI_EVALUATE_REPORT_H

#include "core/status.h"
#include "model/component_table.h"
#include "model/form_factor_evaluate.h"

#include <stdio.h>

/* One file: either of the two. */
typedef struct {
    char *name; /* as shown */
    tsr_form_factor_table *plain;
    tsr_component_table *components;
} tsr_evaluated_table;

typedef struct {
    const tsr_evaluated_table *table;
    int with_self; /* plain: with S(q) */
    double c1, c2; /* components */
    tsr_error_summary summary;
} tsr_evaluated_row;

typedef struct {
    int n_structure, n_given; /* evaluated, of those given */
    int n_row;
    const tsr_evaluated_row *row; /* [n_row], those of plain tables first */
} tsr_evaluate_report;

void tsr_evaluate_print(const tsr_evaluate_report *report, FILE *out);
void tsr_evaluate_json(const tsr_evaluate_report *report, FILE *out);

/* q, then a column a row: the median of the absolute relative error. Errors:
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_evaluate_csv(const tsr_evaluate_report *report, const char *path,
                            tsr_err *err);

#endif

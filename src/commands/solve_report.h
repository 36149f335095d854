/* What `tessera solve` found: the verdict in words, and as JSON. */
#ifndef TSR_COMMANDS_SOLVE_REPORT_H
#define TSR_COMMANDS_SOLVE_REPORT_H

#include "analysis/summary.h"
#include "answer/verdict.h"
#include "commands/profile_report.h"
#include "core/field.h"

/* One of the runs, read from its folder. */
typedef struct {
    long states;
    char *directory;
    tsr_summary *summary; /* with the evidence */
    tsr_verdict *verdict;
    tsr_convergence chi2, rg; /* chi2 of the first curve; rg in Angstrom */
    long n_draw;              /* a chain */
} tsr_solve_run;

typedef struct {
    const char *directory, *model;
    int n_curve;
    const tsr_profile_result *rigid; /* [n_curve] fits of the model as it is */
    tsr_saxs *const *saxs;           /* [n_curve] */
    const char *bodies;              /* what scatters in these: atoms, two */
    const tsr_strings *flexible;     /* ranges; NULL: nothing moves */
    int n_run;
    const tsr_solve_run *run; /* [n_run] of 1, 2, ... states */
    int chosen;               /* the run that the evidence asks for */
    const char *report;       /* its page; NULL: none */
} tsr_solve;

/* The evidence of a run above that of another: the difference in nat and its
 * standard deviation. Returns whether it counts: more than two standard
 * deviations, and more than 1 nat. Not where either is not known. */
int tsr_solve_gain(const tsr_solve_run *less, const tsr_solve_run *more,
                   double *gain, double *error);

/* Sentences and a table, to be read; or one JSON object with every number that
 * the sentences rest on, and the sentences. Errors: TSR_E_NOMEM. */
tsr_status tsr_solve_print(const tsr_solve *solve, FILE *out, tsr_err *err);
tsr_status tsr_solve_print_json(const tsr_solve *solve, FILE *out,
                                tsr_err *err);

/* Mean and interval of what a summary has under that name; NaN: it has not. */
void tsr_solve_interval(const tsr_summary *summary, const char *name,
                        tsr_convergence *to);

/* `name=`, the title of a run's report: the model's name, where that cannot be
 * mistaken for something else in YAML, and how many states. text [size] out. */
void tsr_solve_name_run(const char *model, const tsr_solve_run *run, char *text,
                        size_t size);

#endif

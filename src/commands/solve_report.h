/* What `tessera solve` found: the verdict in words, and as JSON. */
#ifndef TSR_COMMANDS_SOLVE_REPORT_H
#define TSR_COMMANDS_SOLVE_REPORT_H

#include "answer/comparison.h"
#include "commands/profile_report.h"
#include "core/field.h"

/* How verdict.txt begins. */
#define TSR_SOLVE_MARK "tessera solve: the verdict"

typedef struct {
    const char *directory, *model;
    int n_curve;
    const tsr_profile_result *rigid; /* [n_curve] fits of the model as it is */
    tsr_saxs *const *saxs;           /* [n_curve] */
    const char *bodies;              /* what scatters in these: atoms, two */
    const tsr_strings *flexible;     /* ranges */
    const tsr_model_atoms *atoms;    /* the model as a run has it */
    int is_still;                    /* nothing moves */
    int is_enough;   /* the model fits, and tails alone are flexible: they are
                        not sampled */
    int is_finished; /* all runs are there that will be */
    const tsr_comparison *runs; /* run k has k + 1 states */
    tsr_gain says;              /* of the last above the one before */
    int chosen;                 /* the run that the evidence asks for */
    const char *again;          /* the command that goes on, or samples tails */
    const char *report;         /* its page; NULL: none */
} tsr_solve;

/* Does the model as it is fit every curve? */
int tsr_solve_fits(const tsr_solve *solve);

/* Sentences and a table, to be read: of the model as it is, of the runs, or all
 * of it; or one JSON object with every number that the sentences rest on, and
 * the sentences. Errors: TSR_E_NOMEM. */
tsr_status tsr_solve_print_model(const tsr_solve *solve, FILE *out,
                                 tsr_err *err);
tsr_status tsr_solve_print_runs(const tsr_solve *solve, FILE *out,
                                tsr_err *err);
tsr_status tsr_solve_print(const tsr_solve *solve, FILE *out, tsr_err *err);
tsr_status tsr_solve_print_json(const tsr_solve *solve, FILE *out,
                                tsr_err *err);

/* The page of the rigid fits where there was no run, DIR/report.html; what is
 * to be said is read from DIR/verdict.json. Errors: those of tsr_report_write.
 */
tsr_status tsr_report_rigid(const tsr_solve *solve, tsr_log *log, tsr_err *err);

/* `name=`, the title of a run's report: the model's name, where that cannot be
 * mistaken for something else in YAML, and how many states. text [size] out. */
void tsr_solve_name_run(const char *model, int n_state, char *text,
                        size_t size);

#endif

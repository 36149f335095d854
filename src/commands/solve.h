/* What profile, solve and report share: fits of a structure as it is, and what
 * `tessera solve` found. */
#ifndef TSR_COMMANDS_SOLVE_H
#define TSR_COMMANDS_SOLVE_H

#include "answer/comparison.h"
#include "core/field.h"
#include "posterior/profile_partials.h"
#include "scattering/profile_fit.h"
#include "scattering/saxs.h"

/* ---- fits of a structure as it is (command_profile.c) ---- */

typedef struct {
    tsr_profile_structure structure;
    tsr_profile_fit fit; /* n_point 0: no data; then c1 and c2 as they were
                            asked for */
    double *curve;       /* [n] at the data's q: scale I + background */
    double rg_guinier;   /* Angstrom, of the computed curve; NaN */
    double i0;           /* scale I(0); without data electrons squared */
    int n_comp;
} tsr_profile_result;

void tsr_profile_result_clear(tsr_profile_result *result);

/* Of a structure that was computed: the fit to data (saxs NULL: there are none,
 * c1 and c2 are what they are fixed to, or 1 and 0) where it was not made yet,
 * Guinier's Rg and I(0). Errors: those of tsr_profile_fit_make and
 * tsr_contrast_guinier. */
tsr_status tsr_profile_finish(const tsr_profile_fit_options *options,
                              const tsr_saxs *saxs, tsr_profile_result *result,
                              tsr_err *err);

/* Warns where the model's size is not that of what was measured. Errors: those
 * of tsr_contrast_guinier. */
tsr_status tsr_profile_check_rg(const tsr_profile_result *result,
                                const tsr_saxs *saxs, tsr_log *log,
                                tsr_err *err);

/* Before anything is computed: would a file of `output` (a name or a folder, as
 * --output gives it; NULL: none) take the place of an input, of another
 * structure's, or of one that tessera did not write? data, table: NULL where
 * there are none. Errors: TSR_E_USAGE. */
tsr_status tsr_profile_check_output(const char *output, int is_forced, int n,
                                    const char *const *structure,
                                    const char *data, const char *table,
                                    tsr_err *err);

/* The fit under that name (.fit is added where it has no ending), or in that
 * folder, and its picture beside it (.svg). Errors: TSR_E_IO. */
tsr_status tsr_profile_write_fit(const char *name, const char *structure,
                                 const tsr_saxs *saxs,
                                 const tsr_profile_result *result, tsr_log *log,
                                 tsr_err *err);

/* ---- what solve found (command_solve.c) ---- */

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
    int is_frozen;                   /* nothing moves */
    int is_enough;   /* the model fits, and tails alone are flexible: they are
                        not sampled */
    int is_finished; /* all runs are there that will be */
    const tsr_comparison *runs; /* run k has k + 1 states */
    tsr_gain says;              /* of the last above the one before */
    int chosen;                 /* the run that the evidence asks for */
    const char *again;          /* the command that goes on, or samples tails */
    const char *report;         /* its page; NULL: none */
} tsr_solve;

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

#endif

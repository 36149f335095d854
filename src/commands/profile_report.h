/* What `tessera profile` found, as a table and as JSON. */
#ifndef TSR_COMMANDS_PROFILE_REPORT_H
#define TSR_COMMANDS_PROFILE_REPORT_H

#include "analysis/maxent.h"
#include "core/json.h"
#include "core/log.h"
#include "posterior/profile_partials.h"
#include "scattering/profile_fit.h"
#include "scattering/saxs.h"

#include <stdio.h>

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

/* Fits the structure to data: fit and curve of the result. Errors: those of
 * tsr_profile_fit_make. */
tsr_status tsr_profile_fit_data(const tsr_profile_fit_options *options,
                                const tsr_saxs *saxs,
                                tsr_profile_result *result, tsr_err *err);

/* Warns where the model's size is not that of what was measured. Errors: those
 * of tsr_contrast_guinier. */
tsr_status tsr_profile_check_rg(const tsr_profile_result *result,
                                const tsr_saxs *saxs, tsr_log *log,
                                tsr_err *err);

/* Models of one or more files taken together; see profile_ensemble.c. */
enum {
    TSR_WEIGHTS_EQUAL,
    TSR_WEIGHTS_SQUARES,
    TSR_WEIGHTS_ENTROPY,
    TSR_N_WEIGHTS
};

typedef struct {
    int n;
    tsr_profile_result *model;              /* [n] each alone */
    int n_way;                              /* without data 1: equal weights */
    tsr_profile_result mean[TSR_N_WEIGHTS]; /* "equal weights", ... */
    double *weight[TSR_N_WEIGHTS];          /* [n] with the sum 1 */
    tsr_maxent_point point[TSR_N_WEIGHTS];
} tsr_profile_ensemble;

/* Every model of every file, of bodies the first of each; structures only.
 * Errors: those of tsr_profile_compute; TSR_E_USAGE (one model). */
tsr_status tsr_profile_ensemble_read(tsr_profile_maker *maker,
                                     tsr_profile_bodies bodies, int n_path,
                                     const char *const *path,
                                     tsr_profile_ensemble *ensemble,
                                     tsr_err *err);

/* Means and weights. saxs NULL: without data; theta 0: the elbow. Errors: those
 * of analysis/maxent.h and tsr_profile_fit_data. */
tsr_status tsr_profile_ensemble_weigh(tsr_profile_ensemble *ensemble,
                                      const tsr_saxs *saxs,
                                      const tsr_profile_fit_options *options,
                                      double theta, tsr_err *err);
void tsr_profile_ensemble_clear(tsr_profile_ensemble *ensemble);
void tsr_profile_ensemble_print(FILE *out, const tsr_profile_ensemble *ensemble,
                                const tsr_saxs *saxs);
/* The member "ensemble" of an object. */
void tsr_profile_ensemble_put(tsr_json *json,
                              const tsr_profile_ensemble *ensemble);

/* One line a structure, in the order given, and below it what the marks mean.
 * saxs: NULL without data. */
void tsr_profile_print(FILE *out, int n, const tsr_profile_result *result,
                       const tsr_saxs *saxs);

/* {"data": ..., "structures": [{...}], "ensemble": {...}}, the last where it is
 * not NULL. */
void tsr_profile_print_json(FILE *out, int n, const tsr_profile_result *result,
                            const tsr_saxs *saxs, const char *bodies,
                            const char *engine,
                            const tsr_profile_ensemble *ensemble);

/* The members of one structure's object. */
void tsr_profile_put_members(tsr_json *json, const tsr_profile_result *result);

/* The files that `tessera profile` writes. */

typedef struct {
    const char *path; /* NULL: `out` gets the curve of the only structure */
    FILE *out;
    const tsr_saxs *saxs; /* NULL: curves, else fits */
    double q_min, q_max;  /* of curves, 1/Angstrom */
    int n_q, with_partials;
} tsr_profile_output;

/* Before anything is computed: would a file of `output` (as --output gives it;
 * NULL: none) take the place of an input, of another structure's, or of one
 * that tessera did not write? data, table: NULL where there are none. Errors:
 * TSR_E_USAGE. */
tsr_status tsr_profile_check_output(const char *output, int is_forced, int n,
                                    const char *const *structure,
                                    const char *data, const char *table,
                                    tsr_err *err);

/* result [n], best first: the first one goes to `path`, or each to a file of
 * the structure's name where that is a folder. A fit is PATH (.fit is added
 * where it has no ending) and a picture beside it (.svg). Errors: TSR_E_IO. */
tsr_status tsr_profile_write(const tsr_profile_output *output, int n,
                             const tsr_profile_result *result, tsr_log *log,
                             tsr_err *err);

#endif

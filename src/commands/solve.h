/* Declarations shared by profile, pool, solve and report: fits of the rigid
 * structure, and the result of `tessera solve`. */
#ifndef TSR_COMMANDS_SOLVE_H
#define TSR_COMMANDS_SOLVE_H

#include "answer/comparison.h"
#include "commands/command.h"
#include "core/field.h"
#include "maps/map_view.h"
#include "posterior/profile_partials.h"
#include "scattering/profile_fit.h"
#include "scattering/saxs.h"

/* ---- options of profile and pool (command_profile.c) ---- */

/* A measured curve, its instrument, and the solvent. */
typedef struct {
    char *data;
    int unit, radiation;
    double q_min, q_max;  /* 1/Angstrom; q_max 0: not given */
    double density;       /* of the solvent for X-rays, electrons/A^3 */
    double d2o, exchange; /* for neutrons, as is deuterated */
    tsr_strings deuterated;
    tsr_resolution_options resolution;
} tsr_curve_options;

extern const char *const tsr_curve_radiation_words[],
    *const tsr_curve_unit_words[], *const tsr_curve_dq_words[];

/* Table of these options, for a struct with a member `curve`. */
#define TSR_OPTIONS_CURVE(owner)                                               \
    TSR_FIELD(STRING, "data", owner, curve.data, .letter = 'd',                \
              .argument = "DAT",                                               \
              .doc = "curve to which the structures are fitted: q, I, sigma "  \
                     "in a text, canSAS XML, NXcanSAS or SASBDB's .sascif"),   \
        TSR_FIELD(DOUBLE, "solvent-density", owner, curve.density,             \
                  .argument = "RHO", .initial = "0.334",                       \
                  .unit = "e/Angstrom^3", .min = 0.1, .max = 1.0,              \
                  .doc = "electron density of the buffer: higher with salt, "  \
                         "glycerol or sugar (docs/forward-model.md)"),         \
        TSR_FIELD(                                                             \
            CHOICE, "radiation", owner, curve.radiation, .argument = "KIND",   \
            .initial = "xray", .words = tsr_curve_radiation_words,             \
            .doc = "xray or neutron (with all atoms; docs/forward-model.md)"), \
        TSR_FIELD(DOUBLE, "d2o", owner, curve.d2o, .argument = "X",            \
                  .initial = "0", .max = 1.0,                                  \
                  .doc = "neutrons: fraction of D2O in the solvent, 0 to 1"),  \
        TSR_FIELD(                                                             \
            DOUBLE, "exchange", owner, curve.exchange, .argument = "X",        \
            .initial = "0.9", .max = 1.0,                                      \
            .doc = "neutrons: fraction of the backbone's amide hydrogens "     \
                   "that exchange with the solvent; all other hydrogens of "   \
                   "N, O and S exchange"),                                     \
        TSR_FIELD(STRINGS, "deuterated", owner, curve.deuterated,              \
                  .argument = "CHAIN=X",                                       \
                  .doc =                                                       \
                      "neutrons: fraction of deuterium in the hydrogens of a " \
                      "chain that do not exchange, default 1"),                \
        TSR_FIELD(DOUBLE, "q-min", owner, curve.q_min, .argument = "Q",        \
                  .initial = "0", .unit = "1/Angstrom", .max = 10.0,           \
                  .doc = "leave out data below this q"),                       \
        TSR_FIELD(                                                             \
            DOUBLE, "q-max", owner, curve.q_max, .argument = "Q",              \
            .unit = "1/Angstrom", .min = 0.01, .max = 10.0,                    \
            .doc = "leave out data above this q; without --data the end of "   \
                   "the curve, 0.5"),                                          \
        TSR_FIELD(CHOICE, "q-unit", owner, curve.unit, .argument = "UNIT",     \
                  .initial = "auto", .words = tsr_curve_unit_words,            \
                  .doc = "unit of q in the data: auto, 1/A or 1/nm"),          \
        TSR_FIELD(                                                             \
            NUMBER_OR_WORD, "resolution", owner, curve.resolution.dq,          \
            .argument = "DQ", .unit = "1/Angstrom", .max = 1.0,                \
            .words = tsr_curve_dq_words,                                       \
            .doc =                                                             \
                "standard deviation of q, with which the curve is "            \
                "smeared: a number, or column, the fourth column of the "      \
                "data or Qdev, auto, that column if there is one, or none; "   \
                "default: none, for neutrons auto"),                           \
        TSR_FIELD(                                                             \
            DOUBLE, "wavelength-spread", owner,                                \
            curve.resolution.wavelength_spread, .argument = "X", .max = 0.5,   \
            .doc = "relative full width at half maximum of the wavelengths, "  \
                   "which adds to the smearing"),                              \
        TSR_FIELD(DOUBLE, "slit-length", owner, curve.resolution.slit_length,  \
                  .argument = "L", .unit = "1/Angstrom", .max = 10.0,          \
                  .doc =                                                       \
                      "half length of the slit, across the direction of q"),   \
        TSR_FIELD(DOUBLE, "slit-width", owner, curve.resolution.slit_width,    \
                  .argument = "W", .unit = "1/Angstrom", .max = 1.0,           \
                  .doc = "half width of the slit, along q"),                   \
        TSR_FIELD(STRING, "beam-profile", owner,                               \
                  curve.resolution.beam_profile, .argument = "FILE",           \
                  .doc =                                                       \
                      "beam profile instead of --slit-length: a table of u "   \
                      "(1/Angstrom, across the direction of q) and intensity")

/* Checks the options against each other. *neutron out: the sample, for
 * neutrons. Errors: TSR_E_USAGE. */
tsr_status tsr_curve_check(const tsr_args *args, const tsr_curve_options *o,
                           tsr_neutron *neutron, tsr_err *err);

/* Reads the curve and sets its resolution. The caller frees *out, also after an
 * error. Errors: those of tsr_saxs_read and tsr_saxs_set_resolution. */
tsr_status tsr_curve_read(const tsr_args *args, const tsr_curve_options *o,
                          tsr_log *log, tsr_saxs **out, tsr_err *err);

/* ---- fits of the rigid structure (command_profile.c) ---- */

/* Identical chains of a structure that does not fit: the first alone, or a
 * mixture with all together. */
typedef struct {
    int n_chain;               /* 0: not compared */
    tsr_profile_fit one, best; /* of the first chain, and of the best mixture */
    double fraction;           /* share of its mass in the whole model */
} tsr_profile_species;

/* The computed curve of a structure, and its fit to data. */
typedef struct {
    tsr_profile_structure structure;
    tsr_profile_fit
        fit; /* n_point 0: without data; c1 and c2 are then the given values */
    double *curve; /* [n] scale I + background at q of the data */
    double
        rg_guinier; /* Angstrom, of the computed curve; NaN: no Guinier range */
    double i0;      /* scale I(0); without data in electrons squared */
    int n_comp;
    tsr_profile_species species; /* solve alone sets it */
} tsr_profile_result;

void tsr_profile_result_clear(tsr_profile_result *result);

/* The partial profiles of model k with all atoms, under this name. Errors:
 * those of tsr_map_models_frame and tsr_profile_compute_atoms. */
tsr_status tsr_profile_compute_model(tsr_profile_maker *maker,
                                     const tsr_map_models *models, int k,
                                     const char *name, int is_logged,
                                     tsr_profile_structure *out, tsr_err *err);

/* Completes the result of a computed structure: the fit to the data if not made
 * yet (saxs NULL: no data; c1 and c2 are fixed, by default 1 and 0), Guinier's
 * Rg and I(0). Errors: those of tsr_profile_fit_make and tsr_contrast_guinier.
 */
tsr_status tsr_profile_finish(const tsr_profile_fit_options *options,
                              const tsr_saxs *saxs, tsr_profile_result *result,
                              tsr_err *err);

/* Warns where the Rg of the model differs from that of the data. Errors: those
 * of tsr_contrast_guinier. */
tsr_status tsr_profile_check_rg(const tsr_profile_result *result,
                                const tsr_saxs *saxs, tsr_log *log,
                                tsr_err *err);

/* Writes a sentence that compares data and fit with what the SASBDB entry of
 * the data states; nothing for other data. */
void tsr_profile_describe_entry(const tsr_profile_result *result,
                                const tsr_saxs *saxs, tsr_words *words);

/* Adds what the entry states as the member `entry`, null for other data.
 * Lengths are in Angstrom, masses in kDa. */
void tsr_profile_put_entry(const tsr_saxs *saxs, tsr_json *json);

/* Before the computation: checks that no file of `output` (a name or a folder,
 * as given to --output, or NULL) replaces an input, the file of another
 * structure, or a file that is not from tessera. data, table: may be NULL.
 * Errors: TSR_E_USAGE. */
tsr_status tsr_profile_check_output(const char *output, int is_forced, int n,
                                    const char *const *structure,
                                    const char *data, const char *table,
                                    tsr_err *err);

/* Writes the fit to the file `name` (.fit is added to a name without ending),
 * or into the folder `name`, and a picture next to it (.svg). Errors: TSR_E_IO.
 */
tsr_status tsr_profile_write_fit(const char *name, const char *structure,
                                 const tsr_saxs *saxs,
                                 const tsr_profile_result *result, tsr_log *log,
                                 tsr_err *err);

/* ---- the result of solve (command_solve.c) ---- */

/* First words of verdict.txt. */
#define TSR_SOLVE_MARK "tessera solve: the verdict"

/* The state of a solve. All pointers are borrowed. */
typedef struct {
    const char *directory, *model;
    int n_curve;
    const tsr_profile_result *rigid; /* [n_curve] fits of the rigid model */
    tsr_saxs *const *saxs;           /* [n_curve] */
    const char *bodies;              /* scatterers of these fits: "atoms", or
                                        "two" bodies a residue */
    const tsr_strings *flexible;     /* ranges of flexible residues */
    const tsr_model_atoms *atoms;    /* the model as in a run */
    int is_frozen;                   /* the model has no flexible parts */
    int is_enough;   /* the rigid model fits and only tails are flexible: no
                        sampling */
    int is_finished; /* no further runs will be made */
    const tsr_comparison *runs; /* run k has k + 1 states */
    int chosen; /* index of the run with the smallest number of states that is
                   not excluded */
    const char
        *again; /* command that continues the solve, or samples the tails */
    const char *report; /* path of the report, or NULL */
} tsr_solve;

/* Print sentences and a table on the rigid model, on the runs, or on both; or
 * one JSON object with the sentences and all numbers behind them. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_solve_print_model(const tsr_solve *solve, FILE *out,
                                 tsr_err *err);
tsr_status tsr_solve_print_runs(const tsr_solve *solve, FILE *out,
                                tsr_err *err);
tsr_status tsr_solve_print(const tsr_solve *solve, FILE *out, tsr_err *err);
tsr_status tsr_solve_print_json(const tsr_solve *solve, FILE *out,
                                tsr_err *err);

/* What solve would read: checks model, curves and map as init does, and prints
 * a line for each with name, size and checksum. The `run` of a tsr_command that
 * otherwise is that of solve. Errors: those of tsr_init_model. */
tsr_status tsr_solve_check(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err);

/* Writes the report of the rigid fits, DIR/report.html, for a solve without a
 * run. The sentences come from DIR/verdict.json. Errors: those of
 * tsr_report_write. */
tsr_status tsr_report_rigid(const tsr_solve *solve, tsr_log *log, tsr_err *err);

#endif

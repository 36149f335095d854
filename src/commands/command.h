/* Subcommands and the command line. A command is one file in src/commands with
 * one const struct, and one line in TSR_COMMANDS below. Its options are a table
 * of fields (core/field.h) that fills a struct of the command's own:
 *
 *     typedef struct {
 *         char *output;
 *         long points;
 *     } options;
 *
 *     static const tsr_field fields[] = {
 *         TSR_FIELD(STRING, "output", options, output, .letter = 'o',
 *                   .argument = "FILE", .doc = "where the curve goes"),
 *         TSR_FIELD(INT, "n-q", options, points, .argument = "N",
 *                   .initial = "501", .min = 2, .max = 1e5,
 *                   .doc = "points of the curve"),
 *         {0}};
 *
 *     const tsr_command tsr_command_curve = {
 *         .name = "curve", .doc = "the curve of a structure",
 *         .arguments = "STRUCTURE", .options = fields, .size = sizeof(options),
 *         .run = curve};
 *
 * A BOOL is an option without a value, STRINGS one that may be repeated, a PAIR
 * is LOW,HIGH. Options are --name, --name VALUE, --name=VALUE, -n, -n VALUE,
 * -nVALUE and bundles of letters (-vq); "--" ends them, "-" is an argument.
 * Options and arguments may be mixed. Every command also has --help (-h),
 * --verbose (-v) and --quiet (-q); words after --help (or --help KEY) are
 * neither read nor checked. '--help --table' prints the help for programs. */
#ifndef TSR_COMMANDS_COMMAND_H
#define TSR_COMMANDS_COMMAND_H

#include "core/field.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/ranks.h"
#include "core/status.h"
#include "likelihood/term.h"

#include <stdio.h>

/* The option of every command that writes output files; tsr_file_check_target
 * applies its rule. */
#define TSR_OPTION_FORCE(owner)            \
    TSR_FIELD(BOOL, "force", owner, force, \
              .doc = "also replace files that are not from tessera")

/* The options of commands that print a table, and of commands that compute
 * without a configuration. */
#define TSR_OPTION_JSON(owner)           \
    TSR_FIELD(BOOL, "json", owner, json, \
              .doc = "print one JSON object instead of a table")
#define TSR_OPTION_DEVICE(owner)                                     \
    TSR_FIELD(STRING, "device", owner, device, .argument = "DEVICE", \
              .initial = "auto",                                     \
              .doc = "auto, gpu, cpu, reference (double precision, " \
                     "one core), or a number or part of a name as "  \
                     "listed by 'tessera devices'")

/* The option of commands that analyse many structures, frames or draws. */
#define TSR_OPTION_THREADS(owner)                                        \
    TSR_FIELD(INT, "threads", owner, threads, .argument = "N", .min = 1, \
              .max = TSR_MAX_THREAD,                                     \
              .doc = "number of host threads; default: one for each "    \
                     "processor. Results do not depend on it")

/* The value of this option, or its default. */
static inline int tsr_threads(long given)
{
    int n_rank;
    (void)tsr_ranks_on_node(&n_rank);
    const int share = tsr_parallel_processors() / n_rank;
    return given > 0 ? (int)given : share > 0 ? share : 1;
}

/* A parsed command line. */
typedef struct {
    const void
        *options; /* struct of the command, filled by its table of options */
    int n;
    const char **argument; /* [n] */
    /* Internal to program.c: */
    int n_word, *n_given;    /* [fields] */
    const char *const *word; /* [n_word] the words as typed */
    tsr_field *field; /* options of the command, then the common options, {0} */
} tsr_args;

/* Returns how often an option was given. */
int tsr_args_given(const tsr_args *args, const char *option);

/* Returns `begin`, followed by all words as typed, quoted for a shell. The text
 * belongs to the pool. */
char *tsr_args_command(const tsr_args *args, const char *begin, tsr_pool *pool);

typedef struct {
    const char *name;
    const char *doc; /* one line */
    const char
        *arguments; /* "CONFIG", "MODEL [CURVE]...": brackets mark optional
                       arguments; NULL: the command has no arguments */
    const tsr_field *options; /* NULL: the command has no options of its own */
    size_t size;              /* size of the struct that the options fill */
    const char *about;        /* paragraphs for --help, or NULL */
    const tsr_field *(*keys)(
        void); /* keys of CONFIG; NULL: the command reads no configuration */
    /* Writes results to `out` (standard output), progress and warnings to
     * `log`, an error to `err`. The returned status becomes the exit status.
     * TSR_E_NO without a message prints nothing more. Writing to `out` needs no
     * check: the program checks standard output at the end. NULL: the command
     * is a separate program (TSR_TOOLS). */
    tsr_status (*run)(const tsr_args *args, FILE *out, tsr_log *log,
                      tsr_err *err);
} tsr_command;

/* ---- what commands share ---- */

/* Options of run and resume: values that replace keys of the configuration, and
 * the format of the result. */
typedef struct {
    char *output, *device, *until;
    tsr_strings set;
    long threads, draws;
    int prior_only, dry_run, json, continues;
} tsr_run_options;

/* The functions behind tessera run CONFIG, or with is_resumed 1 tessera resume
 * DIR, and tessera report DIR. options->continues is ignored. */
tsr_status tsr_run_execute(const char *path, int is_resumed,
                           const tsr_run_options *options, FILE *out,
                           tsr_log *log, tsr_err *err);

/* A run keeps the configuration that it began with: warns if the file was
 * changed since. */
void tsr_run_warn_if_changed(const char *file, const char *directory,
                             tsr_log *log);

tsr_status tsr_report_run(const char *directory, const char *output,
                          const char *prior, int force, FILE *out, tsr_log *log,
                          tsr_err *err);

/* Options of init and solve that describe a series of curves, neutron curves
 * and a density map. */
typedef struct {
    char *at;
    tsr_strings sans, deuterated;
    double exchange;
    char *map;
    double resolution_ang;
} tsr_data_options;

/* Table of these options, for a struct with a member `data`. */
#define TSR_OPTIONS_DATA(owner)                                              \
    TSR_FIELD(STRING, "at", owner, data.at, .argument = "X,X,...",           \
              .doc = "concentration, time, ... of each curve, with a unit: " \
                     "\"0,5,20 uM\"; the curves share their states, each "   \
                     "with weights of its own"),                             \
        TSR_FIELD(STRINGS, "sans", owner, data.sans, .argument = "FILE=X",   \
                  .doc = "neutron scattering curve; X, 0 to 1, is the "      \
                         "fraction of D2O in the solvent"),                  \
        TSR_FIELD(DOUBLE, "exchange", owner, data.exchange, .argument = "X", \
                  .initial = "0.9", .min = 0.0, .max = 1.0,                  \
                  .doc = "neutrons: fraction of the backbone's amide "       \
                         "hydrogens that exchange"),                         \
        TSR_FIELD(STRINGS, "deuterated", owner, data.deuterated,             \
                  .argument = "CHAIN=X",                                     \
                  .doc = "neutrons: a deuterated chain; X is the fraction "  \
                         "of deuterium, default 1"),                         \
        TSR_FIELD(STRING, "map", owner, data.map, .argument = "MAP",         \
                  .doc = "density map to fit, with the model already "       \
                         "placed in it; the whole model is flexible, or "    \
                         "at a resolution above 8 Angstrom only the "        \
                         "linkers between rigid parts"),                     \
        TSR_FIELD(DOUBLE, "resolution", owner, data.resolution_ang,          \
                  .letter = 'r', .argument = "R", .min = 0.5, .max = 100.0,  \
                  .doc = "resolution of the map in Angstrom")

/* The curves of a command line MODEL [CURVE]...: first the X-ray curves of its
 * arguments, then the neutron curves of --sans. */
typedef struct {
    tsr_pool pool; /* owns path and d2o */
    int n, n_xray;
    const char **path;   /* [n] */
    double *d2o;         /* [n] fraction of D2O, from n_xray on */
    double *at;          /* [n] coordinates in a series; NULL: no series */
    const char *at_unit; /* "": not stated */
    const tsr_data_options *data;
} tsr_curves;

/* The caller clears the pool, also after an error. Errors: TSR_E_USAGE (not
 * one number of --at for each curve; a missing fraction of D2O, or one outside
 * 0 to 1; options for neutrons without a neutron curve; a map without a
 * resolution, or a resolution without a map), TSR_E_NOMEM. */
tsr_status tsr_curves_read(const tsr_args *args, const tsr_data_options *data,
                           tsr_curves *curves, tsr_err *err);

/* Returns 1 where a configuration's entry agrees with curve k in the neutron
 * options and, if the curves are a series, in `at`. */
int tsr_curves_suit(const tsr_curves *curves, int k,
                    const tsr_term_options *entry);

/* Adds the deuterated chains of --deuterated to *out. Errors: TSR_E_USAGE. */
tsr_status tsr_deuterated_read(const tsr_strings *chains, tsr_neutron *out,
                               tsr_err *err);

/* What tessera init MODEL [CURVE]... needs. */
typedef struct {
    const char *model, *output, *pae, *picture; /* NULL: not given */
    tsr_strings dock;                           /* chains to be docked */
    int force, json;
    const tsr_curves *curves;
} tsr_init_job;

tsr_status tsr_init_model(const tsr_init_job *job, FILE *out, tsr_log *log,
                          tsr_err *err);

/* ---- the commands ---- */

/* Names of the structs of all commands, in the order in which --help lists
 * them. */
#define TSR_COMMANDS(X) \
    X(init)             \
    X(solve)            \
    X(batch)            \
    X(run)              \
    X(resume)           \
    X(status)           \
    X(check)            \
    X(simulate)         \
    X(summary)          \
    X(diagnose)         \
    X(compare)          \
    X(report)           \
    X(export)           \
    X(profile)          \
    X(pool)             \
    X(map)              \
    X(devices)

#define X(name) extern const tsr_command tsr_command_##name;
TSR_COMMANDS(X)
#undef X

/* Commands that are separate programs (tools/NAME): `tessera NAME` starts the
 * program `tessera-NAME`. --help lists them last. */
#define TSR_TRAIN_DOC "make tables of form factors and priors from structures"
#define TSR_BENCH_DOC                                \
    "speed and accuracy of the engine on this "      \
    "machine, efficiency of the moves, independent " \
    "draws per second"
#define TSR_TOOLS(X)        \
    X(train, TSR_TRAIN_DOC) \
    X(bench, TSR_BENCH_DOC)

/* Runs the command named by argv [argc], one of `commands` (the list ends with
 * NULL). Results go to `out`, messages to `message`. An error is printed once,
 * as "tessera COMMAND: text". built_with: lines that --version prints after the
 * number of the version. Returns the exit status. */
int tsr_program(const tsr_command *const *commands, const char *built_with,
                int argc, const char *const *argv, FILE *out, FILE *message);

/* The main functions of `tessera`, and of a tool, which gets the words after
 * `tessera NAME`: set up the process, run the command, close standard output.
 * Return the exit status. */
int tsr_main(const tsr_command *const *commands, const char *built_with,
             int argc, const char *const *argv);
int tsr_main_tool(const tsr_command *tool, int argc, const char *const *argv);

#endif

/* Subcommands. One is one file in src/commands with one const struct, and one
 * line in TSR_COMMANDS below:
 *
 *     const tsr_command tsr_command_check = {
 *         .name = "check", .doc = "validate a configuration",
 *         .usage = {.arguments = "CONFIG", .min_arguments = 1,
 *                   .max_arguments = 1, .options = options},
 *         .run = check}; */
#ifndef TSR_COMMANDS_COMMAND_H
#define TSR_COMMANDS_COMMAND_H

#include "commands/args.h"
#include "core/log.h"
#include "core/status.h"
#include "posterior/config.h"
#include "scattering/neutron.h"

typedef struct {
    const char *name;
    const char *doc; /* one line */
    tsr_usage usage;
    /* Results go to `out` (standard output), progress and remarks to `log`, a
     * failure to `err`. Its status becomes the exit status. TSR_E_NO without
     * a message says nothing more. Writing to `out` needs no check: the program
     * checks it at the end. NULL: a program of its own (TSR_TOOLS). */
    tsr_status (*run)(const tsr_args *args, FILE *out, tsr_log *log,
                      tsr_err *err);
} tsr_command;

/* What --output, --device, --until, --threads, --draws and --checkpoint-every
 * put in place of keys of the file, of run and resume; the configuration is
 * then checked as with these keys. */
tsr_status tsr_run_options(const tsr_args *args, tsr_config *config,
                           tsr_err *err);

/* What says of a command which of its curves are of neutrons, and what else was
 * measured. */
#define TSR_INIT_DATA_OPTIONS                                                 \
    {.name = "sans",                                                          \
     .argument = "FILE=X",                                                    \
     .repeats = 1,                                                            \
     .doc = "a curve of neutrons, in a solvent of which D2O is the share X, " \
            "0 to 1"},                                                        \
        {.name = "exchange",                                                  \
         .argument = "X",                                                     \
         .doc = "of neutrons: the share of the backbone's amide hydrogens "   \
                "that exchange; default 0.9"},                                \
        {.name = "deuterated",                                                \
         .argument = "CHAIN=X",                                               \
         .repeats = 1,                                                        \
         .doc = "of neutrons: a chain that was grown with deuterium; "        \
                "without X all of it"},                                       \
        {.name = "map",                                                       \
         .argument = "MAP",                                                   \
         .doc = "a density map that the model lies in and is to be fitted "   \
                "to; all of the model may bend, or what links rigid parts "   \
                "if the resolution is above 8 Angstrom"},                     \
    {                                                                         \
        .name = "resolution", .letter = 'r', .argument = "R",                 \
        .doc = "resolution of the map in Angstrom"                            \
    }

/* The curves of a command: its arguments, of X-rays, then those of --sans. */
typedef struct {
    int n, n_xray;
    char **path;     /* [n] */
    double *d2o;     /* [n] from n_xray on */
    double exchange; /* of all that are of neutrons */
    int n_deuterated;
    const char *const *deuterated; /* [n_deuterated] as given */
} tsr_init_curves;

/* argument [n]: the curves among the arguments. Clear it also after an error.
 * Errors: TSR_E_USAGE (no share, or none from 0 to 1; options of neutrons
 * without a curve of theirs), TSR_E_NOMEM. */
tsr_status tsr_init_curves_read(const tsr_args *args, int n,
                                const char *const *argument,
                                tsr_init_curves *curves, tsr_err *err);
void tsr_init_curves_clear(tsr_init_curves *curves);

/* These options, as init takes them: word out, with room for twice as many
 * words as there are options. Returns how many. */
int tsr_init_data_words(const tsr_args *args, const char **word);

/* Whether what a configuration says of neutrons (NULL: of X-rays) suits curve
 * k. */
int tsr_init_curves_suit(const tsr_init_curves *curves, int k,
                         const tsr_neutron_options *entry);

/* All commands, by the names of their structs, in the order in which --help
 * lists them. */
#define TSR_COMMANDS(X) \
    X(init)             \
    X(solve)            \
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
    X(reweight)         \
    X(profile)          \
    X(map)              \
    X(devices)

#define X(name) extern const tsr_command tsr_command_##name;
TSR_COMMANDS(X)
#undef X

/* Commands that are programs of their own (tools/NAME), which `tessera NAME`
 * starts as `tessera-NAME`: with their lines of help, listed last. */
#define TSR_TRAIN_DOC \
    "make the tables of form factors and priors from structures"
#define TSR_BENCH_DOC                                               \
    "the engine's speed and accuracy here, that of the moves, and " \
    "independent draws a second"
#define TSR_TOOLS(X)        \
    X(train, TSR_TRAIN_DOC) \
    X(bench, TSR_BENCH_DOC)

/* `tessera`: which command runs, help, version, messages, exit status. */

/* Runs argv [argc] with the `commands`, which end with NULL. Results go to
 * `out`, messages to `message`. A failure is told once, as
 * "tessera COMMAND: text". Returns the exit status. */
int tsr_program(const tsr_command *const *commands, int argc,
                const char *const *argv, FILE *out, FILE *message);

/* The main functions of `tessera` and of a tool, whose words are those after
 * `tessera NAME`: what a process sets up once, standard streams, exit status.
 */
int tsr_main(const tsr_command *const *commands, int argc,
             const char *const *argv);
int tsr_main_tool(const tsr_command *tool, int argc, const char *const *argv);

#endif

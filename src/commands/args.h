/* The words after `tessera COMMAND`: options and arguments.
 *
 * Options are --name, --name VALUE, --name=VALUE, -n, -n VALUE, -nVALUE and
 * bundles of letters (-vq); "--" ends them, "-" is an argument. Options and
 * arguments may be mixed. Nothing here prints. */
#ifndef TSR_COMMANDS_ARGS_H
#define TSR_COMMANDS_ARGS_H

#include "core/field.h"
#include "core/status.h"

#include <stdio.h>

typedef struct {
    const char *name;     /* "output", for --output */
    char letter;          /* 'o', for -o; 0: none */
    const char *argument; /* "DIR"; NULL: takes none */
    const char *initial;  /* the default, as text; NULL: none */
    const char *unit;     /* of the default; NULL: none */
    const char *doc;      /* one line */
    int repeats;          /* 1: may be given several times (--set) */
} tsr_option;

/* Of every command that writes files where it is told to: the rule of
 * tsr_file_check_target. */
#define TSR_OPTION_FORCE                                                       \
    {                                                                          \
        .name = "force", .doc = "replace files that are not from tessera, too" \
    }

/* Of commands that show a table, and of those that compute without a
 * configuration. */
#define TSR_OPTION_JSON                                             \
    {                                                               \
        .name = "json", .doc = "one JSON object instead of a table" \
    }
#define TSR_OPTION_DEVICE                                                  \
    {                                                                      \
        .name = "device", .argument = "DEVICE", .initial = "auto",         \
        .doc = "auto, gpu, cpu, a number or a part of a name of 'tessera " \
               "devices', or reference (double precision, one core)"       \
    }

/* What a command line may hold; part of a command (commands/command.h). */
typedef struct {
    const char *arguments;            /* "CONFIG", "STRUCTURE..."; NULL: none */
    int min_arguments;                /* how many at least */
    int max_arguments;                /* and at most; -1: no bound */
    const tsr_option *options;        /* ends with {0}; NULL: none */
    const char *about;                /* paragraphs for --help; NULL: none */
    const tsr_field *(*fields)(void); /* keys of CONFIG; NULL: it has none */
} tsr_usage;

typedef struct tsr_args tsr_args;

/* Parses argv [argc], the words after the command's name, which are borrowed.
 * Every command also has --help (-h), --verbose (-v) and --quiet (-q); after
 * --help (or --help KEY) nothing more is read or checked. An option given twice
 * that does not repeat is refused. Errors: TSR_E_USAGE, TSR_E_NOMEM. */
tsr_status tsr_args_parse(const tsr_usage *usage, int argc,
                          const char *const *argv, tsr_args **out,
                          tsr_err *err);
void tsr_args_free(tsr_args *args);

/* How often an option was given. */
int tsr_args_count(const tsr_args *args, const char *option);

/* The value given, else the default, which may be NULL. */
const char *tsr_args_value(const tsr_args *args, const char *option);

/* All values of an option that repeats, in order: *value [n]; returns n. */
int tsr_args_values(const tsr_args *args, const char *option,
                    const char *const **value);

/* The value (or default) as a number in [min, max]; both 0: unchecked. *out
 * stays where the option is absent and has no default. Errors: TSR_E_USAGE. */
tsr_status tsr_args_long(const tsr_args *args, const char *option, double min,
                         double max, long *out, tsr_err *err);
tsr_status tsr_args_double(const tsr_args *args, const char *option, double min,
                           double max, double *out, tsr_err *err);

/* The arguments: *argument [n]; returns n. */
int tsr_args_arguments(const tsr_args *args, const char *const **argument);

/* `begin` and behind it all words as they were typed, as a shell takes them.
 * Caller frees; NULL: out of memory. */
char *tsr_args_command(const tsr_args *args, const char *begin);

/* The first of them, for a command that has at least one. */
const char *tsr_args_argument(const tsr_args *args);

/* With --help in args: prints "Usage: PROGRAM NAME ...", options with live
 * defaults and units, and the sections of the field table; or, with a word
 * behind --help, what is in that key. Errors: TSR_E_USAGE (there is none). */
tsr_status tsr_usage_help(const tsr_usage *usage, const char *program,
                          const char *name, const char *doc,
                          const tsr_args *args, FILE *out, tsr_err *err);

#endif

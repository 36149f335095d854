/* Finds the command by its name, runs it with its arguments, and turns what
 * comes of it into a message and an exit status. That standard output could be
 * written is checked here, once for all commands. */
#include "commands/command.h"

#include "core/text.h"

#include <errno.h>
#include <string.h>

static const char PROGRAM[] = "tessera";

static void help(const tsr_command *const *commands, FILE *out)
{
    int width = 0;
    for (int i = 0; commands[i] != NULL; i++) {
        int n = tsr_text_width(commands[i]->name);
        width = n > width ? n : width;
    }
    fprintf(out,
            "Usage: %s COMMAND [OPTION]... [ARGUMENT]...\n"
            "       %s help COMMAND\n"
            "       %s --version\n\n"
            "Bayesian inference of protein structure from small-angle "
            "scattering,\ndistances and density maps.\n",
            PROGRAM, PROGRAM, PROGRAM);
    if (commands[0] != NULL)
        fputs("\nCommands:\n", out);
    for (int i = 0; commands[i] != NULL; i++) {
        fprintf(out, "  %-*s  ", width, commands[i]->name);
        tsr_text_wrap(out, width + 4, width + 4, "", commands[i]->doc);
    }
    fprintf(out, "\n'%s COMMAND --help' shows the options of a command.\n",
            PROGRAM);
}

static const tsr_command *find(const tsr_command *const *commands,
                               const char *name)
{
    for (int i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown(const tsr_command *const *commands, const char *name,
                   FILE *message)
{
    char shown[TSR_EXCERPT_SIZE];
    tsr_nearest nearest = {.typed = name};
    for (int i = 0; commands[i] != NULL; i++)
        tsr_nearest_try(&nearest, commands[i]->name);
    tsr_nearest_try(&nearest, "help");
    fprintf(message, "%s: unknown %s '%s'", PROGRAM,
            name[0] == '-' ? "option" : "command",
            tsr_text_excerpt(name, shown));
    if (nearest.best != NULL)
        fprintf(message, "; did you mean '%s'?\n", nearest.best);
    else
        fprintf(message, "; '%s --help' lists the commands\n", PROGRAM);
    return tsr_exit_status(TSR_E_USAGE);
}

static int finish(const char *name, tsr_status status, const tsr_err *err,
                  FILE *message)
{
    const char *text = err->message[0] != '\0' ? err->message
                       : status != TSR_E_NO    ? tsr_status_text(status)
                                               : "";
    if (status != TSR_OK && *text != '\0')
        fprintf(message, "%s %s: %s\n", PROGRAM, name, text);
    if (status == TSR_E_USAGE)
        fprintf(message, "'%s %s --help' shows how it is used.\n", PROGRAM,
                name);
    return tsr_exit_status(status);
}

static int run(const tsr_command *command, int argc, const char *const *argv,
               FILE *out, FILE *message)
{
    tsr_args *args = NULL;
    tsr_log *log = NULL;
    tsr_err err = {.status = TSR_OK};
    tsr_status status =
        tsr_args_parse(&command->usage, argc, argv, &args, &err);
    if (status != TSR_OK)
        return finish(command->name, status, &err, message);
    if (tsr_args_count(args, "help") > 0) {
        tsr_usage_help(&command->usage, PROGRAM, command->name, command->doc,
                       out);
        goto done;
    }
    log = tsr_log_new(message,
                      tsr_args_count(args, "verbose") > 0 ? TSR_LOG_DEBUG
                      : tsr_args_count(args, "quiet") > 0 ? TSR_LOG_WARNING
                                                          : TSR_LOG_INFO);
    status = tsr_allocated(log, &err);
    TSR_THEN(status, command->run(args, out, log, &err));
done:
    tsr_log_free(log);
    tsr_args_free(args);
    return finish(command->name, status, &err, message);
}

/* A full disk shows at the latest here. A reader that went away (`| head`) is
 * no failure to tell of, but not all was written. */
static int check_output(int exit_status, FILE *out, FILE *message)
{
    errno = 0;
    int failed = fflush(out) != 0;
    int code = errno;
    if (!failed && !ferror(out))
        return exit_status;
    /* whoever failed to write has said so */
    if (code != EPIPE && exit_status == 0)
        fprintf(message, "%s: cannot write to standard output%s%s\n", PROGRAM,
                code != 0 ? ": " : "", code != 0 ? strerror(code) : "");
    return exit_status != 0 ? exit_status : tsr_exit_status(TSR_E_IO);
}

int tsr_program(const tsr_command *const *commands, int argc,
                const char *const *argv, FILE *out, FILE *message)
{
    const char *first = argc > 1 ? argv[1] : "";
    const char *name = first;
    int rest = 2, exit_status = 0;
    if (argc <= 1) {
        help(commands, message);
        return tsr_exit_status(TSR_E_USAGE);
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        fprintf(out, "%s %s\n", PROGRAM, TSR_VERSION);
        return check_output(0, out, message);
    }
    int asks = strcmp(first, "help") == 0 || strcmp(first, "--help") == 0 ||
               strcmp(first, "-h") == 0;
    if (asks && argc == 2) {
        help(commands, out);
        return check_output(0, out, message);
    }
    if (asks) {
        name = argv[2];
        rest = 3;
    }
    const tsr_command *command = find(commands, name);
    if (command == NULL)
        return unknown(commands, name, message);
    if (asks)
        tsr_usage_help(&command->usage, PROGRAM, command->name, command->doc,
                       out);
    else
        exit_status = run(command, argc - rest, argv + rest, out, message);
    return check_output(exit_status, out, message);
}

/* Finds the command by its name, runs it with its arguments, and turns what
 * comes of it into a message and an exit status. That standard output could be
 * written is checked here, once for all commands; and here stands what a
 * process must set up once. */
#include "commands/command.h"

#include "core/text.h"
#include "store/hdf5_object.h"

#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        status = tsr_usage_help(&command->usage, PROGRAM, command->name,
                                command->doc, args, out, &err);
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

/* ---- tools ---- */

/* Becomes the program `tessera-NAME` that lies beside this one, or else in
 * PATH, with argv [argc]. Returns only where there is none. */
static int start_tool(const char *name, int argc, const char *const *argv,
                      FILE *message)
{
    char path[4096], *tool = tsr_words_of("%s-%s", PROGRAM, name);
    char **word = calloc((size_t)argc + 2, sizeof *word);
    tsr_err err = {.status = TSR_OK};
    if (tool == NULL || word == NULL) {
        free(tool);
        free(word);
        return finish(name, tsr_no_memory(&err), &err, message);
    }
    word[0] = tool;
    memcpy(word + 1, argv, (size_t)argc * sizeof *argv); /* read only */
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        snprintf(slash + 1, (size_t)(path + sizeof path - slash - 1), "%s",
                 tool);
        execv(path, word);
    }
    execvp(tool, word);
    const tsr_status status =
        tsr_fail(&err, TSR_E_NOINPUT,
                 "the program '%s' is neither beside %s nor in PATH: %s", tool,
                 PROGRAM, strerror(errno));
    free(tool);
    free(word);
    return finish(name, status, &err, message);
}

/* ---- the whole ---- */

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
    if (code != EPIPE && exit_status <= 1)
        fprintf(message, "%s: cannot write to standard output%s%s\n", PROGRAM,
                code != 0 ? ": " : "", code != 0 ? strerror(code) : "");
    return exit_status > 1 ? exit_status : tsr_exit_status(TSR_E_IO);
}

int tsr_program(const tsr_command *const *commands, int argc,
                const char *const *argv, FILE *out, FILE *message)
{
    const char *first = argc > 1 ? argv[1] : "";
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
    const char *const help_on[] = {"--help", argc > 3 ? argv[3] : ""};
    const char *const *words = asks ? help_on : argv + 2;
    const char *name = argv[asks ? 2 : 1];
    const int n = !asks ? argc - 2 : argc > 3 ? 2 : 1;
    const tsr_command *command = find(commands, name);
    if (command == NULL)
        return unknown(commands, name, message);
    const int exit_status = command->run == NULL
                                ? start_tool(name, n, words, message)
                                : run(command, n, words, out, message);
    return check_output(exit_status, out, message);
}

/* ---- the process ---- */

/* A stream that was closed before the start would lend its number to the next
 * file opened, and messages would end up in a trace. Opened the wrong way
 * round, so that using it still fails. */
static int hold_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return 0;
    return 1;
}

static int set_up(void)
{
    if (!hold_streams())
        return 0;
    /* A reader of our output that goes away must not kill a run between two
     * checkpoints; the write fails instead, and check_output sees it. So with a
     * file that grows beyond a limit. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    gsl_set_error_handler_off();
    tsr_hdf5_quiet();
    return 1;
}

/* NFS and quotas report at the close. */
static int close_output(int exit_status)
{
    if (fclose(stdout) == 0 || exit_status != 0)
        return exit_status;
    int code = errno;
    fprintf(stderr, "%s: cannot close standard output: %s\n", PROGRAM,
            strerror(code));
    return tsr_exit_status(TSR_E_IO);
}

int tsr_main(const tsr_command *const *commands, int argc,
             const char *const *argv)
{
    if (!set_up())
        return tsr_exit_status(TSR_E_IO);
    return close_output(tsr_program(commands, argc, argv, stdout, stderr));
}

int tsr_main_tool(const tsr_command *tool, int argc, const char *const *argv)
{
    if (!set_up())
        return tsr_exit_status(TSR_E_IO);
    int exit_status = run(tool, argc - 1, argv + 1, stdout, stderr);
    return close_output(check_output(exit_status, stdout, stderr));
}

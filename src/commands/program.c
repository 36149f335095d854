/* The command line: finds the command by name, fills the struct of the
 * command's options from the words after the name, runs the command, and
 * converts the result to a message and an exit status. Parsing and --help use
 * the same table of options, so that each option is defined once. Standard
 * output is checked here for all commands, and the process is set up here. */
#define _GNU_SOURCE /* fopencookie */
#include "commands/command.h"

#include "core/interrupt.h"
#include "core/pool.h"
#include "core/ranks.h"
#include "core/text.h"
#include "files/file.h"
#include "session/run_session.h"
#include "store/hdf5_object.h"

#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PROGRAM[] = "tessera", TABLE[] = "--table";

/* ---- options ---- */

/* Options of every command. Their table follows that of the command, whose
 * letters have priority. */
typedef struct {
    int help, verbose, quiet;
} common_options;

static const tsr_field common[] = {
    TSR_FIELD(BOOL, "help", common_options, help, .letter = 'h',
              .doc = "show this text"),
    TSR_FIELD(BOOL, "verbose", common_options, verbose, .letter = 'v',
              .doc = "print more messages"),
    TSR_FIELD(BOOL, "quiet", common_options, quiet, .letter = 'q',
              .doc = "print only warnings and errors")};
enum { N_COMMON = 3 };

typedef struct {
    tsr_pool pool;
    tsr_args args;
    char *object; /* the struct of the command, then the common options */
    const common_options *common;
} line;

static int index_of(const tsr_args *args, const char *name, size_t n)
{
    for (int i = 0; args->field[i].name != NULL; i++)
        if (strncmp(args->field[i].name, name, n) == 0 &&
            args->field[i].name[n] == '\0')
            return i;
    return -1;
}

static int index_of_letter(const tsr_args *args, char letter)
{
    for (int i = 0; args->field[i].name != NULL; i++)
        if (args->field[i].letter == letter)
            return i;
    return -1;
}

int tsr_args_given(const tsr_args *args, const char *option)
{
    const int i = index_of(args, option, strlen(option));
    return i < 0 ? 0 : args->n_given[i];
}

char *tsr_args_command(const tsr_args *args, const char *begin, tsr_pool *pool)
{
    char shown[TSR_SHELL_SIZE], *text = tsr_pool_text(pool, begin);
    for (int i = 0; i < args->n_word && text != NULL; i++) {
        const char *word =
            args->word[i]; /* dashes of an option are not quoted */
        const int n = (int)strspn(word, "-");
        const char *rest =
            n == 0 || word[n] != '\0' ? tsr_text_shell(word + n, shown) : "";
        text = tsr_pool_format(pool, "%s %.*s%s", text, n, word, rest);
    }
    return text;
}

static tsr_status unknown_option(const tsr_args *args, const char *word,
                                 size_t n, tsr_err *err)
{
    char shown[TSR_EXCERPT_SIZE], typed[64] = "";
    if (n < sizeof typed)
        memcpy(typed, word, n);
    const char *nearest = n > 0 ? tsr_field_nearest(args->field, typed) : NULL;
    tsr_text_excerpt(n < sizeof typed ? typed : word, shown);
    if (nearest != NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "unknown option '--%s'; did you mean '--%s'?", shown,
                        nearest);
    return tsr_fail(err, TSR_E_USAGE,
                    "unknown option '--%s'; --help lists the options", shown);
}

/* Puts a value into the struct (NULL: the option is a BOOL). Texts are taken
 * literally, also "null". */
static tsr_status set_value(line *l, int i, const char *value, tsr_err *err)
{
    tsr_field field = l->args.field[i];
    char pair[128];
    const int is_again = l->args.n_given[i]++ > 0;
    if (field.type == TSR_FIELD_STRINGS)
        return tsr_strings_append((void *)(l->object + field.offset), value,
                                  err);
    if (is_again && value != NULL)
        return tsr_fail(err, TSR_E_USAGE, "option '--%s' is given twice",
                        field.name);
    if (field.type == TSR_FIELD_PAIR) {
        snprintf(pair, sizeof pair, "[%s]", value);
        value = pair;
    }
    field.initial = "";
    if (tsr_field_parse(&field, l->object, value != NULL ? value : "true",
                        err) == TSR_OK)
        return TSR_OK;
    return tsr_wrap(err, TSR_E_USAGE, "option '--%s'", field.name);
}

/* Returns 1 for a known option: "-o", or "--output" with or without a value. */
static int is_option(const tsr_args *args, const char *word)
{
    if (word[0] != '-' || word[1] == '\0')
        return 0;
    return word[1] == '-'
               ? index_of(args, word + 2, strcspn(word + 2, "=")) >= 0
               : word[2] == '\0' && index_of_letter(args, word[1]) >= 0;
}

/* Gives an option its value: the rest of its word, or the next word. If the
 * next word is a known option, the value was forgotten. */
static tsr_status read_option(line *l, int i, const char *value, int *at,
                              tsr_err *err)
{
    const tsr_field *f = &l->args.field[i];
    if (f->type != TSR_FIELD_BOOL && value == NULL) {
        if (*at + 1 >= l->args.n_word ||
            is_option(&l->args, l->args.word[*at + 1]))
            return tsr_fail(err, TSR_E_USAGE,
                            "option '--%s' needs a value: --%s %s", f->name,
                            f->name, f->argument);
        value = l->args.word[++*at];
    }
    return set_value(l, i, value, err);
}

static tsr_status read_long_option(line *l, int *at, tsr_err *err)
{
    const char *name = l->args.word[*at] + 2;
    const size_t n = strcspn(name, "=");
    const int i = index_of(&l->args, name, n);
    if (i < 0)
        return unknown_option(&l->args, name, n, err);
    if (l->args.field[i].type == TSR_FIELD_BOOL && name[n] == '=')
        return tsr_fail(err, TSR_E_USAGE, "option '--%s' takes no value",
                        l->args.field[i].name);
    return read_option(l, i, name[n] == '=' ? name + n + 1 : NULL, at, err);
}

static tsr_status read_short_options(line *l, int *at, tsr_err *err)
{
    const char *word = l->args.word[*at];
    char shown[TSR_EXCERPT_SIZE];
    for (const char *s = word + 1; *s != '\0'; s++) {
        const int i = index_of_letter(&l->args, *s);
        if (i < 0)
            return tsr_fail(err, TSR_E_USAGE,
                            "unknown option '-%c' in '%s'; --help lists the "
                            "options",
                            *s > ' ' && *s < 0x7f ? *s : '?',
                            tsr_text_excerpt(word, shown));
        if (l->args.field[i].type != TSR_FIELD_BOOL)
            return read_option(
                l, i, s[1] != '\0' ? s + 1 + (s[1] == '=') : NULL, at, err);
        TSR_TRY(set_value(l, i, NULL, err));
    }
    return TSR_OK;
}

/* Checks the number of arguments: one for each word of "MODEL [CURVE]...", any
 * number with an ellipsis. */
static tsr_status check_arguments(const tsr_command *command, line *l,
                                  tsr_err *err)
{
    char shown[TSR_EXCERPT_SIZE];
    const char *text = command->arguments != NULL ? command->arguments : "";
    int least = 0, most = 0;
    for (const char *s = text; *s != '\0'; s += strspn(s, " ")) {
        least += *s != '[';
        most++;
        s += strcspn(s, " ");
    }
    if (l->common->verbose && l->common->quiet)
        return tsr_fail(err, TSR_E_USAGE,
                        "--verbose and --quiet exclude each other");
    if (l->args.n < least)
        return tsr_fail(err, TSR_E_USAGE, "missing argument: expected %s",
                        text);
    if (strstr(text, "...") == NULL && l->args.n > most)
        return tsr_fail(err, TSR_E_USAGE, "one argument too many: '%s'",
                        tsr_text_excerpt(l->args.argument[most], shown));
    return TSR_OK;
}

static tsr_status read_words(const tsr_command *command, line *l, tsr_err *err)
{
    tsr_args *args = &l->args;
    int has_options = 1;
    for (int at = 0; at < args->n_word; at++) {
        const char *word = args->word[at];
        if (has_options && strcmp(word, "--") == 0)
            has_options = 0;
        else if (has_options && strncmp(word, "--", 2) == 0)
            TSR_TRY(read_long_option(l, &at, err));
        else if (has_options && word[0] == '-' && word[1] != '\0')
            TSR_TRY(read_short_options(l, &at, err));
        else
            args->argument[args->n++] = word;
        if (l->common->help) {
            const char *topic = at + 1 < args->n_word ? args->word[at + 1] : "";
            const int is_topic = *topic != '\0' && *topic != '-';
            args->argument[0] =
                is_topic || strcmp(topic, TABLE) == 0 ? topic : NULL;
            return TSR_OK;
        }
    }
    return check_arguments(command, l, err);
}

/* argv [argc] is borrowed. The caller clears the line, also after an error. */
static tsr_status read_line(const tsr_command *command, int argc,
                            const char *const *argv, line *l, tsr_err *err)
{
    tsr_args *args = &l->args;
    int n = 0;
    while (command->options != NULL && command->options[n].name != NULL)
        n++;
    args->n_word = argc;
    args->word = argv;
    tsr_pool_array(&l->pool, args->argument, argc + 1);
    tsr_pool_array(&l->pool, args->n_given, n + N_COMMON);
    l->object =
        tsr_pool_new(&l->pool, 1, command->size + sizeof(common_options));
    tsr_field *field;
    tsr_pool_array(&l->pool, field, n + N_COMMON + 1);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    args->field = field;
    for (int i = 0; i < n; i++)
        field[i] = command->options[i];
    for (int i = 0; i < N_COMMON; i++) {
        field[n + i] = common[i];
        field[n + i].offset += command->size;
        if (index_of_letter(args, common[i].letter) < n + i)
            field[n + i].letter = '\0';
    }
    args->options = l->object;
    l->common = (const void *)(l->object + command->size);
    TSR_TRY(tsr_fields_init(field, l->object, err));
    return read_words(command, l, err);
}

static void line_clear(line *l)
{
    if (l->args.field != NULL)
        tsr_fields_clear(l->args.field, l->object);
    tsr_pool_clear(&l->pool);
}

/* ---- help ---- */

static int option_head(const tsr_field *f, char *text, size_t size)
{
    char letter[8] = "    ";
    if (f->letter != '\0')
        snprintf(letter, sizeof letter, "-%c, ", f->letter);
    return snprintf(text, size, "  %s--%s%s%s", letter, f->name,
                    f->argument != NULL ? " " : "",
                    f->argument != NULL ? f->argument : "");
}

static void describe_option(const tsr_field *f, char *text, size_t size)
{
    const int has_unit = f->initial != NULL && f->unit != NULL;
    snprintf(text, size, "%s%s%s%s%s%s%s", f->doc,
             f->initial != NULL ? " (default " : "",
             f->initial != NULL ? f->initial : "", has_unit ? " " : "",
             has_unit ? f->unit : "", f->initial != NULL ? ")" : "",
             f->type == TSR_FIELD_STRINGS ? "; may be repeated" : "");
}

static void list_options(const tsr_field *fields, FILE *out)
{
    char text[600];
    int width = 0;
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        const int n = option_head(f, text, sizeof text);
        if (n > width && n <= 30)
            width = n;
    }
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        int n = option_head(f, text, sizeof text);
        fputs(text, out);
        if (n > width) {
            fputc('\n', out);
            n = 0;
        }
        fprintf(out, "%*s", width + 2 - n, "");
        describe_option(f, text, sizeof text);
        tsr_text_wrap(out, width + 2, width + 2, "", text);
    }
}

/* Prints paragraphs. Lines end at newlines of the text, paragraphs at empty
 * lines. */
static void paragraphs(const char *text, FILE *out)
{
    if (text != NULL && *text != '\0')
        fputc('\n', out);
    while (text != NULL && *text != '\0') {
        char part[2000];
        const size_t n = strcspn(text, "\n");
        snprintf(part, sizeof part, "%.*s", (int)n, text);
        if (n > 0)
            tsr_text_wrap(out, 0, 0, "", part);
        else
            fputc('\n', out);
        text += n + (text[n] == '\n');
    }
}

/* Returns 1 where a word is the file of a configuration and not a key. */
static int names_file(const char *word)
{
    const char *dot = strrchr(word, '.');
    return *word == '\0' || strchr(word, '/') != NULL ||
           (dot != NULL &&
            (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0));
}

/* Prints the full names of all keys as --set takes them, one a row. */
static void table_of_keys(const tsr_field *fields, const char *before,
                          FILE *out)
{
    for (const tsr_field *f = fields; f != NULL && f->name != NULL; f++) {
        char name[128];
        const int is_list = f->type == TSR_FIELD_LIST;
        const int is_group = is_list || f->type == TSR_FIELD_GROUP;
        snprintf(name, sizeof name, "%s%s%s", before, f->name,
                 is_list    ? ".0."
                 : is_group ? "."
                            : "");
        if (!is_group || f->selector != NULL)
            fprintf(out, "key\t%s%s\n", name, is_group ? f->selector : "");
        table_of_keys(f->fields, name, out);
        for (int k = 0; f->selector != NULL && f->kind(k).name != NULL; k++)
            table_of_keys(f->kind(k).fields, name, out);
    }
}

/* Prints the help for programs: rows of columns separated by tabs, from which
 * tools/manual.sh makes manual pages and completion. */
static void table(const tsr_command *c, const tsr_field *options, FILE *out)
{
    fprintf(out, "command\t%s\t%s\t%s\n", c->name,
            c->arguments != NULL ? c->arguments : "", c->doc);
    for (const char *s = c->about; s != NULL && *s != '\0';
         s += strcspn(s, "\n"), s += *s == '\n')
        fprintf(out, "about\t%.*s\n", (int)strcspn(s, "\n"), s);
    for (const tsr_field *f = options; f->name != NULL; f++) {
        char text[600];
        describe_option(f, text, sizeof text);
        fprintf(out, "option\t%s\t%.1s\t%s\t%s\t", f->name, &f->letter,
                f->argument != NULL ? f->argument : "", text);
        for (int k = 0; f->words != NULL && f->words[k] != NULL; k++)
            fprintf(out, "%s%s", k > 0 ? " " : "", f->words[k]);
        fputc('\n', out);
    }
    if (c->keys != NULL)
        table_of_keys(c->keys(), "", out);
}

/* Prints "Usage: PROGRAM NAME ...", the options with their defaults and units,
 * and the sections of the configuration. With a word after --help, prints that
 * key. Errors: TSR_E_USAGE (unknown key). */
static tsr_status help_on(const tsr_command *c, const tsr_args *args, FILE *out,
                          tsr_err *err)
{
    const tsr_field *keys = c->keys != NULL ? c->keys() : NULL;
    const char *topic = args->argument[0];
    if (topic != NULL && strcmp(topic, TABLE) == 0) {
        table(c, args->field, out);
        return TSR_OK;
    }
    if (topic != NULL && names_file(topic))
        topic = NULL;
    if (keys != NULL && topic != NULL && strcmp(topic, "all") != 0)
        return tsr_fields_help(keys, topic, 0, out, err);
    fprintf(out, "Usage: %s %s [OPTION]...%s%s\n", PROGRAM, c->name,
            c->arguments != NULL ? " " : "",
            c->arguments != NULL ? c->arguments : "");
    paragraphs(c->doc, out);
    paragraphs(c->about, out);
    fputs("\nOptions:\n", out);
    list_options(args->field, out);
    if (keys == NULL)
        return TSR_OK;
    fputs("\nKeys of CONFIG (YAML; paths relative to it):\n", out);
    TSR_TRY(tsr_fields_help(keys, topic, 2, out, err));
    if (topic == NULL)
        fprintf(out,
                "\n'%s %s --help KEY' lists a section, as contrast, data.saxs "
                "or\nmoves.pivot; '--help all' lists all keys.\n",
                PROGRAM, c->name);
    return TSR_OK;
}

/* ---- the program ---- */

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
    fprintf(
        out,
        "\n'%s COMMAND --help' lists the options of a command.\n'%s gui', a "
        "window in the browser, comes with the Python package.\n",
        PROGRAM, PROGRAM);
}

static const tsr_command *find_command(const tsr_command *const *commands,
                                       const char *name)
{
    for (int i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int report_unknown_command(const tsr_command *const *commands,
                                  const char *name, FILE *message)
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

static int report_status(const char *name, tsr_status status,
                         const tsr_err *err, FILE *message)
{
    const char *text = err->message[0] != '\0' ? err->message
                       : status != TSR_E_NO    ? tsr_status_text(status)
                                               : "";
    if (status != TSR_OK && *text != '\0')
        fprintf(message, "%s %s: %s\n", PROGRAM, name, text);
    if (status == TSR_E_USAGE)
        fprintf(message, "'%s %s --help' shows its usage.\n", PROGRAM, name);
    return tsr_exit_status(status);
}

static int run(const tsr_command *command, int argc, const char *const *argv,
               FILE *out, FILE *message)
{
    line l = {.object = NULL};
    tsr_err err = {.status = TSR_OK};
    tsr_status status = read_line(command, argc, argv, &l, &err);
    if (status == TSR_OK && l.common->help) {
        status = help_on(command, &l.args, out, &err);
    } else if (status == TSR_OK) {
        tsr_log *log = tsr_log_new(message, l.common->verbose ? TSR_LOG_DEBUG
                                            : l.common->quiet ? TSR_LOG_WARNING
                                                              : TSR_LOG_INFO);
        status = tsr_allocated(log, &err);
        TSR_THEN(status, command->run(&l.args, out, log, &err));
        tsr_log_free(log);
    }
    line_clear(&l);
    return report_status(command->name, status, &err, message);
}

/* ---- tools ---- */

/* Replaces this process by the program `tessera-NAME` in the same folder, else
 * in PATH, with argv [argc]. Returns only if the program is not found. */
static int start_tool(const char *name, int argc, const char *const *argv,
                      FILE *message)
{
    char *tool = tsr_text_format("%s-%s", PROGRAM, name);
    char **word = calloc((size_t)argc + 2, sizeof *word);
    tsr_err err = {.status = TSR_OK};
    if (tool == NULL || word == NULL) {
        free(tool);
        free(word);
        return report_status(name, tsr_no_memory(&err), &err, message);
    }
    word[0] = tool;
    memcpy(word + 1, argv, (size_t)argc * sizeof *argv); /* read only */
    char *folder = tsr_file_program_folder();
    char *beside =
        folder != NULL ? tsr_text_format("%s/%s", folder, tool) : NULL;
    if (beside != NULL)
        execv(beside, word);
    free(folder);
    free(beside);
    execvp(tool, word);
    const tsr_status status = tsr_fail(
        &err, TSR_E_NOINPUT,
        "the program '%s' is neither in the folder of %s nor in PATH: %s", tool,
        PROGRAM, strerror(errno));
    free(tool);
    free(word);
    return report_status(name, status, &err, message);
}

/* ---- standard output ---- */

/* Checks standard output: a full disk is detected here at the latest. A closed
 * pipe (`| head`) is reported only by the exit status. */
static int check_output(int exit_status, FILE *out, FILE *message)
{
    errno = 0;
    int failed = fflush(out) != 0;
    int code = errno;
    if (!failed && !ferror(out))
        return exit_status;
    /* the failed writer has reported its error */
    if (code != EPIPE && exit_status <= 1)
        fprintf(message, "%s: cannot write to standard output%s%s\n", PROGRAM,
                code != 0 ? ": " : "", code != 0 ? strerror(code) : "");
    return exit_status > 1 ? exit_status : tsr_exit_status(TSR_E_IO);
}

int tsr_program(const tsr_command *const *commands, const char *built_with,
                int argc, const char *const *argv, FILE *out, FILE *message)
{
    const char *first = argc > 1 ? argv[1] : "";
    if (argc <= 1) {
        help(commands, message);
        return tsr_exit_status(TSR_E_USAGE);
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        fprintf(out, "%s %s%s", PROGRAM, TSR_VERSION, built_with);
        return check_output(0, out, message);
    }
    int asks = strcmp(first, "help") == 0 || strcmp(first, "--help") == 0 ||
               strcmp(first, "-h") == 0;
    if (asks && argc == 2) {
        help(commands, out);
        return check_output(0, out, message);
    }
    const char *const help_words[] = {"--help", argc > 3 ? argv[3] : ""};
    const char *const *words = asks ? help_words : argv + 2;
    const char *name = argv[asks ? 2 : 1];
    const int n = !asks ? argc - 2 : argc > 3 ? 2 : 1;
    const tsr_command *command = find_command(commands, name);
    if (command == NULL)
        return report_unknown_command(commands, name, message);
    const int exit_status = command->run == NULL
                                ? start_tool(name, n, words, message)
                                : run(command, n, words, out, message);
    return check_output(exit_status, out, message);
}

/* ---- the process ---- */

/* If a standard stream is closed at the start, the next file opened would get
 * its number, and messages would end up in a trace. Such a stream is opened on
 * /dev/null, for reading where it should be written, so that its use still
 * fails. */
static int open_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return 0;
    return 1;
}

/* Ends the program as SIGTERM does when standard input ends. */
static void *wait_for_end_of_input(void *unused)
{
    char byte;
    ssize_t n;
    do
        n = read(STDIN_FILENO, &byte, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
    kill(getpid(), SIGTERM);
    return unused;
}

/* A caller that holds the other end of the pipe and is killed thereby ends the
 * program in good order, on any system. */
static void watch_input(void)
{
    pthread_t thread;
    if (getenv("TESSERA_STOP_AT_EOF") == NULL)
        return;
    tsr_interrupt_block(1); /* the thread receives no signals */
    if (pthread_create(&thread, NULL, wait_for_end_of_input, NULL) == 0)
        pthread_detach(thread);
    tsr_interrupt_block(0);
}

static int set_up(void)
{
    if (!open_standard_streams())
        return 0;
    if (tsr_ranks_rank() == 0)
        watch_input();
    /* A closed output pipe must not kill a run between two checkpoints: the
     * write fails instead, and check_output reports it. The same holds for a
     * file beyond a size limit. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    gsl_set_error_handler_off();
    tsr_hdf5_quiet();
    return 1;
}

#ifdef __GLIBC__
static ssize_t write_clean(void *cookie, const char *text, size_t n)
{
    (void)cookie;
    for (size_t i = 0; i < n; i++)
        putchar(tsr_is_control(i > 0 ? text[i - 1] : '\0', text[i]) ? '?'
                                                                    : text[i]);
    return fflush(stdout) == 0 ? (ssize_t)n : 0;
}
#endif

/* Standard output. Tables contain names of files, which can contain sequences
 * that command a terminal: as with ls, a terminal gets no control characters,
 * and a file or pipe gets all bytes. */
static FILE *output(void)
{
    FILE *clean = NULL;
#ifdef __GLIBC__
    if (isatty(STDOUT_FILENO))
        clean = fopencookie(NULL, "w",
                            (cookie_io_functions_t){.write = write_clean});
    if (clean != NULL)
        setvbuf(clean, NULL, _IOLBF, BUFSIZ);
#endif
    return clean != NULL ? clean : stdout;
}

/* NFS and quotas report errors on close. */
static int close_output(int exit_status)
{
    if (fclose(stdout) == 0 || exit_status != 0)
        return exit_status;
    int code = errno;
    fprintf(stderr, "%s: cannot close standard output: %s\n", PROGRAM,
            strerror(code));
    return tsr_exit_status(TSR_E_IO);
}

/* Another rank takes part in the command of rank 0 (tsr_parallel_share). Its
 * messages are those of rank 0, unless it fails before it shares anything. */
static void follow_command(const tsr_command *const *commands, int argc,
                           const char *const *argv)
{
    char *text = NULL;
    size_t n;
    FILE *message = open_memstream(&text, &n), *out = fopen("/dev/null", "w");
    const int exit_status =
        message != NULL && out != NULL
            ? tsr_program(commands, "", argc, argv, out, message)
            : tsr_exit_status(TSR_E_NOMEM);
    if (exit_status == tsr_exit_status(TSR_E_NO)) {
        fclose(out);
        fclose(message);
        free(text);
        return;
    }
    /* The launcher ends the other ranks, which wait for this one. */
    if (message != NULL)
        fflush(message);
    fprintf(stderr, "%s: on rank %d: %s\n", PROGRAM, tsr_ranks_rank(),
            text != NULL ? text : "out of memory");
    _exit(exit_status);
}

/* The other ranks do the work that rank 0 announces (core/ranks.h). They print
 * nothing: what happens to them is an error on rank 0, too. */
static int follow(const tsr_command *const *commands, int argc,
                  const char *const *argv)
{
    int work = TSR_WORK_END;
    tsr_err err = {0};
    tsr_interrupt_catch();
    tsr_status status = TSR_OK;
    do {
        status = tsr_ranks_work(&work, &err);
        if (status == TSR_OK && work == TSR_WORK_RUN)
            (void)tsr_session_follow(NULL, &err);
        if (status == TSR_OK && work == TSR_WORK_COMMAND)
            follow_command(commands, argc, argv);
    } while (status == TSR_OK && work != TSR_WORK_END);
    tsr_ranks_end();
    return tsr_exit_status(status);
}

int tsr_main(const tsr_command *const *commands, const char *built_with,
             int argc, const char *const *argv)
{
    int work = TSR_WORK_END;
    tsr_ranks_begin();
    if (!set_up())
        return tsr_exit_status(TSR_E_IO);
    if (tsr_ranks_rank() > 0)
        return follow(commands, argc, argv);
    const int exit_status = close_output(
        tsr_program(commands, built_with, argc, argv, output(), stderr));
    (void)tsr_ranks_work(&work, NULL);
    tsr_ranks_end();
    return exit_status;
}

int tsr_main_tool(const tsr_command *tool, int argc, const char *const *argv)
{
    if (!set_up())
        return tsr_exit_status(TSR_E_IO);
    FILE *out = output();
    int exit_status = run(tool, argc - 1, argv + 1, out, stderr);
    return close_output(check_output(exit_status, out, stderr));
}

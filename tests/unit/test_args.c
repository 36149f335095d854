#include "commands/args.h"
#include "commands/command.h"
#include "core/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .initial = "runs/new",
     .doc = "folder of the run"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .repeats = 1,
     .doc = "override one key of the configuration, as it would stand there"},
    {.name = "threads",
     .letter = 't',
     .argument = "N",
     .initial = "2",
     .doc = "host threads"},
    {.name = "interval",
     .argument = "T",
     .initial = "0.5",
     .unit = "s",
     .doc = "time between two looks"},
    {.name = "dry-run",
     .letter = 'n',
     .doc = "check everything, sample nothing"},
    {.name = NULL}};

static const tsr_field keys[] = {{.name = "chains",
                                  .type = TSR_FIELD_INT,
                                  .initial = "8",
                                  .min = 1,
                                  .max = 4096,
                                  .doc = "chains side by side"},
                                 {.name = "step",
                                  .type = TSR_FIELD_DOUBLE,
                                  .initial = "0.1",
                                  .unit = "rad",
                                  .doc = "of a move",
                                  .max = 3.0,
                                  .offset = sizeof(long)},
                                 {.name = NULL}};

static const tsr_field *get_keys(void)
{
    return keys;
}

static const tsr_usage usage = {.arguments = "CONFIG [MORE]",
                                .min_arguments = 1,
                                .max_arguments = 2,
                                .options = options,
                                .about = "First paragraph.\n\nSecond one.",
                                .fields = get_keys};

enum { MAX_WORDS = 12 };

static tsr_status parse(const char *const *words, tsr_args **args, tsr_err *err)
{
    int n = 0;
    while (words[n] != NULL)
        n++;
    return tsr_args_parse(&usage, n, words, args, err);
}

/* The words again, as they can be typed. */
static void test_command(void **state)
{
    (void)state;
    static const char *const words[] = {"--set", "a=[1, 2]", "-od", "c", NULL};
    tsr_args *args = NULL;
    assert_int_equal(parse(words, &args, NULL), TSR_OK);
    char *text = tsr_args_command(args, "tessera show");
    assert_string_equal(text, "tessera show --set 'a=[1, 2]' -od c");
    free(text);
    tsr_args_free(args);
}

static void test_forms(void **state)
{
    (void)state;
    static const char *const lines[][MAX_WORDS] = {
        {"--output", "d", "--threads=4", "--set", "a=1", "c", "--set=b=2",
         "-n"},
        {"c", "-o", "d", "-t4", "--set=a=1", "--dry-run", "--set", "b=2"},
        {"-nod", "--set", "a=1", "-t=4", "--set", "b=2", "--", "c"},
        {"-n", "-n", "--threads", "4", "--set=a=1", "-o=d", "--set=b=2", "c"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        tsr_args *args = NULL;
        tsr_err err;
        const char *const *values, *const *arguments;
        long threads = 0;
        if (parse(lines[i], &args, &err) != TSR_OK)
            fail_msg("line %zu: %s", i, err.message);
        assert_string_equal(tsr_args_value(args, "output"), "d");
        assert_int_equal(tsr_args_values(args, "set", &values), 2);
        assert_string_equal(values[0], "a=1");
        assert_string_equal(values[1], "b=2");
        assert_int_equal(tsr_args_count(args, "dry-run"), i == 3 ? 2 : 1);
        assert_int_equal(tsr_args_long(args, "threads", 1, 64, &threads, &err),
                         TSR_OK);
        assert_int_equal(threads, 4);
        assert_int_equal(tsr_args_arguments(args, &arguments), 1);
        assert_string_equal(arguments[0], "c");
        tsr_args_free(args);
    }
}

static void test_defaults(void **state)
{
    (void)state;
    static const char *const line[] = {"--", "-x", "--set", NULL};
    tsr_args *args = NULL;
    const char *const *values, *const *arguments;
    double interval = 0.0;
    long sets = 5;
    assert_int_equal(parse(line, &args, NULL), TSR_OK);
    assert_int_equal(tsr_args_arguments(args, &arguments), 2);
    assert_string_equal(arguments[0], "-x"); /* "--" ended the options */
    assert_string_equal(arguments[1], "--set");
    assert_string_equal(tsr_args_value(args, "output"), "runs/new");
    assert_int_equal(tsr_args_count(args, "output"), 0);
    assert_int_equal(tsr_args_values(args, "set", &values), 0);
    assert_null(tsr_args_value(args, "set"));
    assert_int_equal(tsr_args_double(args, "interval", 0, 9, &interval, NULL),
                     TSR_OK);
    assert_true(interval == 0.5);
    assert_int_equal(tsr_args_long(args, "set", 0, 9, &sets, NULL), TSR_OK);
    assert_int_equal(sets, 5); /* absent, no default: stays */
    tsr_args_free(args);
    static const char *const dash[] = {"-", NULL};
    assert_int_equal(parse(dash, &args, NULL), TSR_OK);
    assert_int_equal(tsr_args_arguments(args, &arguments), 1);
    tsr_args_free(args);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *word[4];
        const char *message;
    } rows[] = {
        {{"--ouput", "d", "c"},
         "unknown option '--ouput'; did you mean '--output'?"},
        {{"--ouput=d", "c"},
         "unknown option '--ouput'; did you mean '--output'?"},
        {{"--verbos", "c"},
         "unknown option '--verbos'; did you mean '--verbose'?"},
        {{"--colour", "c"},
         "unknown option '--colour'; --help lists the options"},
        {{"--=x", "c"}, "unknown option '--'; --help lists the options"},
        {{"-nx", "c"},
         "unknown option '-x' in '-nx'; --help lists the options"},
        {{"c", "--output"}, "option '--output' needs a value: --output DIR"},
        {{"c", "-o"}, "option '--output' needs a value: --output DIR"},
        {{"c", "--output", "-q"},
         "option '--output' needs a value: --output DIR"},
        {{"c", "-o", "--dry-run"},
         "option '--output' needs a value: --output DIR"},
        {{"c", "--dry-run=1"}, "option '--dry-run' takes no value"},
        {{"c", "-oa", "--output=b"}, "option '--output' is given twice"},
        {{"-v", "--quiet", "c"}, "--verbose and --quiet exclude each other"},
        {{"-n"}, "missing argument: expected CONFIG [MORE]"},
        {{"a", "b", "c"}, "one argument too many: 'c'"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tsr_args *args = NULL;
        tsr_err err = {.status = TSR_OK};
        assert_int_equal(parse(rows[i].word, &args, &err), TSR_E_USAGE);
        assert_string_equal(err.message, rows[i].message);
        assert_null(args);
    }
    static const char *const line[] = {"c", "-t", "0", NULL};
    tsr_args *args = NULL;
    tsr_err err;
    long threads = 7;
    assert_int_equal(parse(line, &args, &err), TSR_OK);
    assert_int_equal(tsr_args_long(args, "threads", 1, 64, &threads, &err),
                     TSR_E_USAGE);
    assert_int_equal(err.status, TSR_E_USAGE);
    assert_string_equal(err.message, "option '--threads': value '0' is out of "
                                     "range: expected integer in [1, 64]");
    assert_int_equal(threads, 7);
    tsr_args_free(args);
}

/* ---- the program around it ---- */

static tsr_status last_status;

static tsr_status run_show(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    (void)log;
    const char *const *word;
    int n = tsr_args_arguments(args, &word);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s\n", word[i]);
    return last_status == TSR_OK || last_status == TSR_E_NO
               ? last_status
               : tsr_fail(err, last_status, "it failed");
}

static const tsr_command show = {.name = "show",
                                 .doc = "print the arguments",
                                 .usage = {.arguments = "CONFIG [MORE]",
                                           .min_arguments = 1,
                                           .max_arguments = 2,
                                           .options = options,
                                           .about = "First line.\nNext.\n\n"
                                                    "Second one.",
                                           .fields = get_keys},
                                 .run = run_show};
static const tsr_command *const commands[] = {&show, NULL};

typedef struct {
    int exit_status;
    char *out, *message;
} outcome;

static outcome program(const char *const *words)
{
    const char *argv[MAX_WORDS] = {"tessera"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = words[argc - 1];
    outcome o = {0, NULL, NULL};
    size_t n_out, n_message;
    FILE *out = open_memstream(&o.out, &n_out);
    FILE *message = open_memstream(&o.message, &n_message);
    o.exit_status = tsr_program(commands, argc, argv, out, message);
    fclose(out);
    fclose(message);
    return o;
}

static void test_program(void **state)
{
    (void)state;
    static const struct {
        const char *word[4];
        tsr_status status; /* of the command */
        int exit_status;
        const char *out, *message;
    } rows[] = {
        {{"show", "a", "b"}, TSR_OK, 0, "a\nb\n", ""},
        {{"show", "a"}, TSR_E_NO, 1, "a\n", ""},
        {{"show", "a"}, TSR_E_CONFIG, 78, "a\n", "tessera show: it failed\n"},
        {{"show", "a"},
         TSR_E_INTERRUPTED,
         75,
         "a\n",
         "tessera show: it failed\n"},
        {{"show", "--ouput=x", "a"},
         TSR_OK,
         64,
         "",
         "tessera show: unknown option '--ouput'; did you mean '--output'?\n"
         "'tessera show --help' shows how it is used.\n"},
        {{"shwo"},
         TSR_OK,
         64,
         "",
         "tessera: unknown command 'shwo'; did you mean 'show'?\n"},
        {{"help", "shwo"},
         TSR_OK,
         64,
         "",
         "tessera: unknown command 'shwo'; did you mean 'show'?\n"},
        {{"paint"},
         TSR_OK,
         64,
         "",
         "tessera: unknown command 'paint'; 'tessera --help' lists the "
         "commands\n"},
        {{"--bogus"},
         TSR_OK,
         64,
         "",
         "tessera: unknown option '--bogus'; 'tessera --help' lists the "
         "commands\n"},
        {{"--version"}, TSR_OK, 0, "tessera " TSR_VERSION "\n", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        last_status = rows[i].status;
        outcome o = program(rows[i].word);
        assert_string_equal(o.out, rows[i].out);
        assert_string_equal(o.message, rows[i].message);
        assert_int_equal(o.exit_status, rows[i].exit_status);
        free(o.out);
        free(o.message);
    }
}

static const char command_help[] =
    "Usage: tessera show [OPTION]... CONFIG [MORE]\n"
    "\n"
    "print the arguments\n"
    "\n"
    "First line.\n"
    "Next.\n"
    "\n"
    "Second one.\n"
    "\n"
    "Options:\n"
    "  -o, --output DIR     folder of the run (default runs/new)\n"
    "      --set KEY=VALUE  override one key of the configuration, as it would "
    "stand\n"
    "                       there; may be repeated\n"
    "  -t, --threads N      host threads (default 2)\n"
    "      --interval T     time between two looks (default 0.5 s)\n"
    "  -n, --dry-run        check everything, sample nothing\n"
    "  -h, --help           show this text and stop\n"
    "  -v, --verbose        say more\n"
    "  -q, --quiet          say only warnings and errors\n"
    "\n"
    "Keys of CONFIG (YAML; paths relative to it):\n"
    "  chains  8         chains side by side\n"
    "  step    0.1  rad  of a move\n"
    "\n"
    "'tessera show --help KEY' shows what is in a section, as contrast, "
    "data.saxs\n"
    "or moves.pivot; '--help all' all keys.\n";

static void test_help(void **state)
{
    (void)state;
    static const char *const asks[][MAX_WORDS] = {
        {"show", "--help"}, {"help", "show"}, {"show", "-h", "--bogus"}};
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        outcome o = program(asks[i]);
        assert_int_equal(o.exit_status, 0);
        assert_string_equal(o.out, command_help);
        assert_string_equal(o.message, "");
        free(o.out);
        free(o.message);
    }
    static const char *const of_key[][MAX_WORDS] = {{"show", "--help", "step"},
                                                    {"help", "show", "step"}};
    for (size_t i = 0; i < sizeof of_key / sizeof of_key[0]; i++) {
        outcome o = program(of_key[i]);
        assert_string_equal(o.out,
                            "step  0.1  rad  of a move; number in [0, 3]\n");
        assert_int_equal(o.exit_status, 0);
        free(o.out);
        free(o.message);
    }
    outcome all = program((const char *[]){"show", "--help", "all", NULL});
    assert_memory_equal(all.out, command_help, 500);
    assert_non_null(strstr(all.out, "chains side by side; integer in [1, 4"));
    free(all.out);
    free(all.message);
    outcome none = program((const char *[]){"show", "--help", "setp", NULL});
    assert_int_equal(none.exit_status, 64);
    assert_string_equal(none.out, "");
    assert_memory_equal(
        none.message,
        "tessera show: there is no key 'setp'; did you mean 'step'?\n", 58);
    free(none.out);
    free(none.message);
    static const char *const general[][MAX_WORDS] = {
        {"--help"}, {"help"}, {"-h"}, {NULL}};
    for (size_t i = 0; i < 4; i++) {
        outcome o = program(general[i]);
        const char *text = i == 3 ? o.message : o.out;
        assert_non_null(strstr(text, "Usage: tessera COMMAND"));
        assert_non_null(strstr(text, "  show  print the arguments\n"));
        assert_string_equal(i == 3 ? o.out : o.message, "");
        assert_int_equal(o.exit_status, i == 3 ? 64 : 0);
        free(o.out);
        free(o.message);
    }
}

static void test_full_disk(void **state)
{
    (void)state;
    static const char *const argv[] = {"tessera", "show", "a"};
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        print_message("no /dev/full here\n");
        skip();
    }
    char *text = NULL;
    size_t n;
    FILE *message = open_memstream(&text, &n);
    last_status = TSR_OK;
    assert_int_equal(tsr_program(commands, 3, argv, full, message), 74);
    fclose(message);
    fclose(full);
    assert_string_equal(text, "tessera: cannot write to standard output: No "
                              "space left on device\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command),   cmocka_unit_test(test_forms),
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_program),   cmocka_unit_test(test_help),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

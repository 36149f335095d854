/* A command line fills the struct of its command, and help, error messages and
 * exit statuses are the documented ones. */
#include "commands/command.h"
#include "tests/test.h"

typedef struct {
    char *output;
    tsr_strings set;
    long threads;
    double interval, range[2];
    int dry_run;
} options;

static const tsr_field option_fields[] = {
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "DIR", .initial = "runs/new",
              .doc = "folder of the run"),
    TSR_FIELD(STRINGS, "set", options, set, .argument = "KEY=VALUE",
              .doc = "override one key of the configuration, as it would stand "
                     "there"),
    TSR_FIELD(INT, "threads", options, threads, .letter = 't', .argument = "N",
              .initial = "2", .min = 1, .max = 64, .doc = "host threads"),
    TSR_FIELD(DOUBLE, "interval", options, interval, .argument = "T",
              .initial = "0.5", .unit = "s", .doc = "time between two looks"),
    TSR_FIELD(PAIR, "range", options, range, .argument = "LO,HI",
              .doc = "of q"),
    TSR_FIELD(BOOL, "dry-run", options, dry_run, .letter = 'n',
              .doc = "check everything, sample nothing"),
    {0}};

static const tsr_field keys[] = {
    ROW(.name = "chains", .type = TSR_FIELD_INT, .initial = "8", .min = 1,
        .max = 4096, .doc = "chains side by side"),
    ROW(.name = "step", .type = TSR_FIELD_DOUBLE, .initial = "0.1",
        .unit = "rad", .doc = "of a move", .max = 3.0, .offset = sizeof(long)),
    ROW(.name = NULL)};

static const tsr_field *get_keys(void)
{
    return keys;
}

/* ---- the program ---- */

static tsr_status last_status;
static int is_wordy; /* options are printed, too, and the words again */

static tsr_status run_show(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    (void)log;
    const options *o = args->options;
    for (int i = 0; i < args->n; i++)
        fprintf(out, "%s\n", args->argument[i]);
    if (is_wordy) {
        tsr_pool pool = {0};
        char *again = tsr_args_command(args, "tessera show", &pool);
        fprintf(out, "%s %ld %g [%g, %g] %d", o->output, o->threads,
                o->interval, o->range[0], o->range[1],
                tsr_args_given(args, "dry-run"));
        for (int i = 0; i < o->set.n; i++)
            fprintf(out, " %s", o->set.item[i]);
        fprintf(out, "\n%s\n", again);
        tsr_pool_clear(&pool);
    }
    return last_status == TSR_OK || last_status == TSR_E_NO
               ? last_status
               : tsr_fail(err, last_status, "it failed");
}

static const tsr_command show =
    ROW(.name = "show", .doc = "print the arguments",
        .arguments = "CONFIG [MORE]", .options = option_fields,
        .size = sizeof(options),
        .about = "First line.\nNext.\n\n"
                 "Second one.",
        .keys = get_keys, .run = run_show);
static const tsr_command *const commands[] = {&show, NULL};

enum { MAX_WORDS = 14 };

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
    o.exit_status =
        tsr_program(commands, " (c)\nbuilt\n", argc, argv, out, message);
    fclose(out);
    fclose(message);
    own(o.out, free);
    own(o.message, free);
    return o;
}

/* ---- the words ---- */

TEST(test_words)
{
    static const struct {
        const char *word[MAX_WORDS];
        const char *out; /* arguments, options, the words again */
    } rows[] = {
        {{"show", "--output", "d", "--threads=4", "--set", "a=1", "c",
          "--set=b=2", "-n"},
         "c\nd 4 0.5 [0, 0] 1 a=1 b=2\ntessera show --output d --threads=4 "
         "--set a=1 c --set=b=2 -n\n"},
        {{"show", "c", "-o", "d", "-t4", "--set=a=1", "--dry-run", "--set",
          "b=2"},
         "c\nd 4 0.5 [0, 0] 1 a=1 b=2\ntessera show c -o d -t4 --set=a=1 "
         "--dry-run --set b=2\n"},
        {{"show", "-nod", "--set", "a=[1, 2]", "-t=4", "--", "c"},
         "c\nd 4 0.5 [0, 0] 1 a=[1, 2]\ntessera show -nod --set 'a=[1, 2]' "
         "-t=4 -- c\n"},
        {{"show", "-n", "-n", "-o=null", "--interval", "1e-2", "c", "--range",
          "0.1,0.2"},
         "c\nnull 2 0.01 [0.1, 0.2] 2\ntessera show -n -n -o=null --interval "
         "1e-2 c --range 0.1,0.2\n"},
        {{"show", "--", "-x", "--set"},
         "-x\n--set\nruns/new 2 0.5 [0, 0] 0\ntessera show -- -x --set\n"},
        {{"show", "-"}, "-\nruns/new 2 0.5 [0, 0] 0\ntessera show -\n"}};
    is_wordy = 1;
    last_status = TSR_OK;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        outcome o = program(rows[i].word);
        assert_string_equal(o.message, "");
        assert_string_equal(o.out, rows[i].out);
    }
    is_wordy = 0;
}

TEST(test_errors)
{
    static const struct {
        const char *word[5];
        const char *message;
    } rows[] = {
        {{"show", "--ouput", "d", "c"},
         "unknown option '--ouput'; did you mean '--output'?"},
        {{"show", "--verbos", "c"},
         "unknown option '--verbos'; did you mean '--verbose'?"},
        {{"show", "--colour", "c"},
         "unknown option '--colour'; --help lists the options"},
        {{"show", "--=x", "c"},
         "unknown option '--'; --help lists the options"},
        {{"show", "-nx", "c"},
         "unknown option '-x' in '-nx'; --help lists the options"},
        {{"show", "c", "--output"},
         "option '--output' needs a value: --output DIR"},
        {{"show", "c", "-o"}, "option '--output' needs a value: --output DIR"},
        {{"show", "c", "--output", "-q"},
         "option '--output' needs a value: --output DIR"},
        {{"show", "c", "-o", "--dry-run"},
         "option '--output' needs a value: --output DIR"},
        {{"show", "c", "--dry-run=1"}, "option '--dry-run' takes no value"},
        {{"show", "c", "-oa", "--output=b"},
         "option '--output' is given twice"},
        {{"show", "-v", "--quiet", "c"},
         "--verbose and --quiet exclude each other"},
        {{"show", "-n"}, "missing argument: expected CONFIG [MORE]"},
        {{"show", "a", "b", "c"}, "one argument too many: 'c'"},
        {{"show", "c", "-t", "0"},
         "option '--threads': value '0' is out of range: expected integer in "
         "[1, 64]"},
        {{"show", "c", "-t", "null"},
         "option '--threads': value 'null' is not an integer: expected integer "
         "in [1, 64]"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        outcome o = program(rows[i].word);
        const char *expected =
            format("tessera show: %s\n'tessera show --help' shows its "
                   "usage.\n",
                   rows[i].message);
        assert_string_equal(o.message, expected);
        assert_string_equal(o.out, "");
        assert_int_equal(o.exit_status, 64);
    }
}

/* ---- the program around them ---- */

TEST(test_program)
{
    static const struct {
        const char *word[4];
        tsr_status status; /* of the command */
        int exit_status;
        const char *out, *message;
    } rows[] = {
        ROW({"show", "a", "b"}, TSR_OK, 0, "a\nb\n", ""),
        ROW({"show", "a"}, TSR_E_NO, 1, "a\n", ""),
        ROW({"show", "a"}, TSR_E_CONFIG, 78, "a\n",
            "tessera show: it failed\n"),
        ROW({"show", "a"}, TSR_E_INTERRUPTED, 75, "a\n",
            "tessera show: it failed\n"),
        ROW({"show", "--ouput=x", "a"}, TSR_OK, 64, "",
            "tessera show: unknown option '--ouput'; did you mean '--output'?\n"
            "'tessera show --help' shows its usage.\n"),
        ROW({"shwo"}, TSR_OK, 64, "",
            "tessera: unknown command 'shwo'; did you mean 'show'?\n"),
        ROW({"help", "shwo"}, TSR_OK, 64, "",
            "tessera: unknown command 'shwo'; did you mean 'show'?\n"),
        ROW({"paint"}, TSR_OK, 64, "",
            "tessera: unknown command 'paint'; 'tessera --help' lists the "
            "commands\n"),
        ROW({"--bogus"}, TSR_OK, 64, "",
            "tessera: unknown option '--bogus'; 'tessera --help' lists the "
            "commands\n"),
        ROW({"--version"}, TSR_OK, 0, "tessera " TSR_VERSION " (c)\nbuilt\n",
            "")};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        last_status = rows[i].status;
        outcome o = program(rows[i].word);
        assert_string_equal(o.out, rows[i].out);
        assert_string_equal(o.message, rows[i].message);
        assert_int_equal(o.exit_status, rows[i].exit_status);
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
    "      --range LO,HI    of q\n"
    "  -n, --dry-run        check everything, sample nothing\n"
    "  -h, --help           show this text\n"
    "  -v, --verbose        print more messages\n"
    "  -q, --quiet          print only warnings and errors\n"
    "\n"
    "Keys of CONFIG (YAML; paths relative to it):\n"
    "  chains  8         chains side by side\n"
    "  step    0.1  rad  of a move\n"
    "\n"
    "'tessera show --help KEY' lists a section, as contrast, data.saxs or\n"
    "moves.pivot; '--help all' lists all keys.\n";

TEST(test_help)
{
    static const char *const asks[][MAX_WORDS] = {
        {"show", "--help"}, {"help", "show"}, {"show", "-h", "--bogus"}};
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        outcome o = program(asks[i]);
        assert_int_equal(o.exit_status, 0);
        assert_string_equal(o.out, command_help);
        assert_string_equal(o.message, "");
    }
    static const char *const of_key[][MAX_WORDS] = {{"show", "--help", "step"},
                                                    {"help", "show", "step"}};
    for (size_t i = 0; i < COUNT_OF(of_key); i++) {
        outcome o = program(of_key[i]);
        assert_string_equal(o.out,
                            "step  0.1  rad  of a move; number in [0, 3]\n");
        assert_int_equal(o.exit_status, 0);
    }
    outcome all = program((const char *[]){"show", "--help", "all", NULL});
    assert_memory_equal(all.out, command_help, 500);
    assert_has(all.out, "chains side by side; integer in [1, 4");
    outcome none = program((const char *[]){"show", "--help", "setp", NULL});
    assert_int_equal(none.exit_status, 64);
    assert_string_equal(none.out, "");
    assert_memory_equal(
        none.message,
        "tessera show: there is no key 'setp'; did you mean 'step'?\n", 58);
    static const char *const general[][MAX_WORDS] = {
        {"--help"}, {"help"}, {"-h"}, {NULL}};
    for (size_t i = 0; i < 4; i++) {
        outcome o = program(general[i]);
        const char *text = i == 3 ? o.message : o.out;
        assert_has(text, "Usage: tessera COMMAND");
        assert_has(text, "  show  print the arguments\n");
        assert_string_equal(i == 3 ? o.out : o.message, "");
        assert_int_equal(o.exit_status, i == 3 ? 64 : 0);
    }
}

TEST(test_full_disk)
{
    static const char *const argv[] = {"tessera", "show", "a"};
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        print_message("no /dev/full here\n");
        skip();
    }
    FILE *message = text_begin();
    last_status = TSR_OK;
    assert_int_equal(tsr_program(commands, "", 3, argv, full, message), 74);
    char *text = text_end(message);
    fclose(full);
    assert_string_equal(text, "tessera: cannot write to standard output: No "
                              "space left on device\n");
}

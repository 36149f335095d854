/* Reads the command line against the table of a command's options, and prints
 * that table as help, so that an option is written down once. */
#include "commands/args.h"

#include "core/text.h"

#include <stdlib.h>
#include <string.h>

/* Options of every command, after its own, which may take the letters. */
static const tsr_option common[] = {
    {.name = "help", .letter = 'h', .doc = "show this text and stop"},
    {.name = "verbose", .letter = 'v', .doc = "say more"},
    {.name = "quiet", .letter = 'q', .doc = "say only warnings and errors"},
    {.name = NULL}};

static const tsr_option none[] = {{.name = NULL}};

struct tsr_args {
    const tsr_option *own; /* never NULL */
    int n_word, n_given, n_argument;
    const char *const *word;  /* [n_word] as they were typed, borrowed */
    const tsr_option **given; /* [n_given], one option's side by side */
    const char **value;       /* [n_given], NULL for a flag */
    const char **argument;    /* [n_argument] */
};

static const tsr_option *find_in(const tsr_option *table, const char *name,
                                 size_t n)
{
    for (const tsr_option *o = table; o->name != NULL; o++)
        if (strncmp(o->name, name, n) == 0 && o->name[n] == '\0')
            return o;
    return NULL;
}

static const tsr_option *find(const tsr_args *args, const char *name, size_t n)
{
    const tsr_option *o = find_in(args->own, name, n);
    return o != NULL ? o : find_in(common, name, n);
}

static const tsr_option *find_letter(const tsr_args *args, char letter)
{
    for (const tsr_option *o = args->own; o->name != NULL; o++)
        if (o->letter == letter)
            return o;
    for (const tsr_option *o = common; o->name != NULL; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

static tsr_status unknown(const tsr_args *args, const char *word, size_t n,
                          tsr_err *err)
{
    char shown[TSR_EXCERPT_SIZE], typed[64] = "";
    if (n < sizeof typed)
        memcpy(typed, word, n);
    tsr_nearest nearest = {.typed = typed};
    for (const tsr_option *o = args->own; o->name != NULL; o++)
        tsr_nearest_try(&nearest, o->name);
    for (const tsr_option *o = common; o->name != NULL; o++)
        tsr_nearest_try(&nearest, o->name);
    tsr_text_excerpt(n < sizeof typed ? typed : word, shown);
    if (nearest.best != NULL && n > 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "unknown option '--%s'; did you mean '--%s'?", shown,
                        nearest.best);
    return tsr_fail(err, TSR_E_USAGE,
                    "unknown option '--%s'; --help lists the options", shown);
}

static tsr_status give(tsr_args *args, const tsr_option *o, const char *value,
                       tsr_err *err)
{
    int at = args->n_given;
    while (at > 0 && args->given[at - 1] != o)
        at--;
    if (at > 0 && o->argument != NULL && !o->repeats)
        return tsr_fail(err, TSR_E_USAGE, "option '--%s' is given twice",
                        o->name);
    if (at == 0)
        at = args->n_given;
    /* after the last of its kind, so that tsr_args_values is one array */
    for (int i = args->n_given++; i > at; i--) {
        args->given[i] = args->given[i - 1];
        args->value[i] = args->value[i - 1];
    }
    args->given[at] = o;
    args->value[at] = value;
    return TSR_OK;
}

/* "-o", or "--output" with or without a value, of the command's own. */
static int is_option(const tsr_args *args, const char *word)
{
    if (word[0] != '-' || word[1] == '\0')
        return 0;
    return word[1] == '-' ? find(args, word + 2, strcspn(word + 2, "=")) != NULL
                          : word[2] == '\0' && find_letter(args, word[1]);
}

/* Takes the value of an option from the next word. One that is an option itself
 * is not meant as a value, which was forgotten. */
static tsr_status next_word(const tsr_args *args, const tsr_option *o, int argc,
                            const char *const *argv, int *i, const char **value,
                            tsr_err *err)
{
    if (*i + 1 >= argc || is_option(args, argv[*i + 1]))
        return tsr_fail(err, TSR_E_USAGE,
                        "option '--%s' needs a value: --%s %s", o->name,
                        o->name, o->argument);
    *value = argv[++*i];
    return TSR_OK;
}

static tsr_status take_long(tsr_args *args, int argc, const char *const *argv,
                            int *i, tsr_err *err)
{
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    const tsr_option *o = find(args, name, n);
    if (o == NULL)
        return unknown(args, name, n, err);
    if (o->argument == NULL && value != NULL)
        return tsr_fail(err, TSR_E_USAGE, "option '--%s' takes no value",
                        o->name);
    if (o->argument != NULL && value == NULL)
        TSR_TRY(next_word(args, o, argc, argv, i, &value, err));
    return give(args, o, value, err);
}

static tsr_status take_letters(tsr_args *args, int argc,
                               const char *const *argv, int *i, tsr_err *err)
{
    for (const char *s = argv[*i] + 1; *s != '\0'; s++) {
        const tsr_option *o = find_letter(args, *s);
        const char *value = NULL;
        char shown[TSR_EXCERPT_SIZE];
        if (o == NULL)
            return tsr_fail(err, TSR_E_USAGE,
                            "unknown option '-%c' in '%s'; --help lists the "
                            "options",
                            *s > ' ' && *s < 0x7f ? *s : '?',
                            tsr_text_excerpt(argv[*i], shown));
        if (o->argument != NULL) {
            tsr_status status = TSR_OK;
            if (s[1] != '\0')
                value = s + 1 + (s[1] == '=');
            else
                status = next_word(args, o, argc, argv, i, &value, err);
            return status == TSR_OK ? give(args, o, value, err) : status;
        }
        TSR_TRY(give(args, o, NULL, err));
    }
    return TSR_OK;
}

static tsr_status check(const tsr_args *args, const tsr_usage *usage,
                        tsr_err *err)
{
    char shown[TSR_EXCERPT_SIZE];
    int n = args->n_argument;
    if (tsr_args_count(args, "verbose") > 0 &&
        tsr_args_count(args, "quiet") > 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--verbose and --quiet exclude each other");
    if (n < usage->min_arguments)
        return tsr_fail(err, TSR_E_USAGE, "missing argument: expected %s",
                        usage->arguments != NULL ? usage->arguments : "one");
    if (usage->max_arguments >= 0 && n > usage->max_arguments)
        return tsr_fail(
            err, TSR_E_USAGE, "one argument too many: '%s'",
            tsr_text_excerpt(args->argument[usage->max_arguments], shown));
    return TSR_OK;
}

tsr_status tsr_args_parse(const tsr_usage *usage, int argc,
                          const char *const *argv, tsr_args **out, tsr_err *err)
{
    /* a word gives at most as many options as it has letters */
    size_t most = 1;
    for (int i = 0; i < argc; i++)
        most += strlen(argv[i]) + 1;
    tsr_args *args = calloc(1, sizeof *args);
    tsr_status status = TSR_OK;
    if (args != NULL) {
        args->n_word = argc;
        args->word = argv;
        args->own = usage->options != NULL ? usage->options : none;
        args->given = calloc(most, sizeof *args->given);
        args->value = calloc(most, sizeof *args->value);
        args->argument = calloc(most, sizeof *args->argument);
    }
    if (args == NULL || args->given == NULL || args->value == NULL ||
        args->argument == NULL)
        status = tsr_no_memory(err);

    int options = 1;
    for (int i = 0; i < argc && status == TSR_OK; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0)
            options = 0;
        else if (options && strncmp(word, "--", 2) == 0)
            status = take_long(args, argc, argv, &i, err);
        else if (options && word[0] == '-' && word[1] != '\0')
            status = take_letters(args, argc, argv, &i, err);
        else
            args->argument[args->n_argument++] = word;
        if (status == TSR_OK && tsr_args_count(args, "help") > 0) {
            args->argument[0] =
                i + 1 < argc && argv[i + 1][0] != '-' ? argv[i + 1] : NULL;
            *out = args;
            return TSR_OK;
        }
    }
    TSR_THEN(status, check(args, usage, err));
    if (status != TSR_OK) {
        tsr_args_free(args);
        return status;
    }
    *out = args;
    return TSR_OK;
}

void tsr_args_free(tsr_args *args)
{
    if (args == NULL)
        return;
    free(args->given);
    free(args->value);
    free(args->argument);
    free(args);
}

int tsr_args_count(const tsr_args *args, const char *option)
{
    int n = 0;
    for (int i = 0; i < args->n_given; i++)
        n += strcmp(args->given[i]->name, option) == 0;
    return n;
}

const char *tsr_args_value(const tsr_args *args, const char *option)
{
    for (int i = args->n_given; i-- > 0;)
        if (strcmp(args->given[i]->name, option) == 0)
            return args->value[i];
    const tsr_option *o = find(args, option, strlen(option));
    return o != NULL ? o->initial : NULL;
}

int tsr_args_values(const tsr_args *args, const char *option,
                    const char *const **value)
{
    int first = 0;
    while (first < args->n_given &&
           strcmp(args->given[first]->name, option) != 0)
        first++;
    *value = (const char *const *)args->value + first;
    return tsr_args_count(args, option);
}

/* A table of one field reads and checks the number. */
static tsr_status number(const tsr_args *args, const char *option,
                         tsr_field_type type, double min, double max, void *out,
                         tsr_err *err)
{
    const tsr_field field = {
        .name = option, .type = type, .initial = "", .min = min, .max = max};
    const char *text = tsr_args_value(args, option);
    if (text == NULL || tsr_field_parse(&field, out, text, err) == TSR_OK)
        return TSR_OK;
    return tsr_wrap(err, TSR_E_USAGE, "option '--%s'", option);
}

tsr_status tsr_args_long(const tsr_args *args, const char *option, double min,
                         double max, long *out, tsr_err *err)
{
    return number(args, option, TSR_FIELD_INT, min, max, out, err);
}

tsr_status tsr_args_double(const tsr_args *args, const char *option, double min,
                           double max, double *out, tsr_err *err)
{
    return number(args, option, TSR_FIELD_DOUBLE, min, max, out, err);
}

int tsr_args_arguments(const tsr_args *args, const char *const **argument)
{
    *argument = (const char *const *)args->argument;
    return args->n_argument;
}

char *tsr_args_command(const tsr_args *args, const char *begin)
{
    char shown[TSR_SHELL_SIZE];
    tsr_words w;
    tsr_words_begin(&w);
    tsr_words_say(&w, "%s", begin);
    for (int i = 0; i < args->n_word; i++) { /* the dashes of an option stay */
        const char *word = args->word[i];
        const int dashes = (int)strspn(word, "-");
        tsr_words_say(&w, " %.*s", dashes, word);
        if (dashes == 0 || word[dashes] != '\0')
            tsr_words_say(&w, "%s", tsr_text_shell(word + dashes, shown));
    }
    return tsr_words_end(&w);
}

const char *tsr_args_argument(const tsr_args *args)
{
    return args->argument[0];
}

/* ---- help ---- */

static int head(const tsr_option *o, char *text, size_t size)
{
    char letter[8] = "    ";
    if (o->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(text, size, "  %s--%s%s%s", letter, o->name,
                    o->argument != NULL ? " " : "",
                    o->argument != NULL ? o->argument : "");
}

static void measure(const tsr_option *options, int *width)
{
    char text[200];
    for (const tsr_option *o = options; o->name != NULL; o++) {
        int n = head(o, text, sizeof text);
        if (n > *width && n <= 30)
            *width = n;
    }
}

/* taken: options whose letter a common one must leave to them; may be NULL. */
static void list(const tsr_option *options, const tsr_option *taken, int width,
                 FILE *out)
{
    for (const tsr_option *o = options; o->name != NULL; o++) {
        tsr_option shown = *o;
        char text[600];
        for (const tsr_option *t = taken; t != NULL && t->name != NULL; t++)
            if (t->letter == o->letter)
                shown.letter = 0;
        int n = head(&shown, text, sizeof text);
        fputs(text, out);
        if (n > width)
            fputc('\n', out), n = 0;
        fprintf(out, "%*s", width + 2 - n, "");
        snprintf(text, sizeof text, "%s%s%s%s%s%s%s", o->doc,
                 o->initial != NULL ? " (default " : "",
                 o->initial != NULL ? o->initial : "",
                 o->initial != NULL && o->unit != NULL ? " " : "",
                 o->initial != NULL && o->unit != NULL ? o->unit : "",
                 o->initial != NULL ? ")" : "",
                 o->repeats ? "; may be repeated" : "");
        tsr_text_wrap(out, width + 2, width + 2, "", text);
    }
}

/* Lines end where the text has them, paragraphs at an empty one. */
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

tsr_status tsr_usage_help(const tsr_usage *usage, const char *program,
                          const char *name, const char *doc,
                          const tsr_args *args, FILE *out, tsr_err *err)
{
    const tsr_option *own = usage->options != NULL ? usage->options : none;
    const tsr_field *fields = usage->fields != NULL ? usage->fields() : NULL;
    const char *topic = args->argument[0];
    int width = 0;
    if (fields != NULL && topic != NULL && strcmp(topic, "all") != 0)
        return tsr_fields_help(fields, topic, 0, out, err);
    fprintf(out, "Usage: %s %s [OPTION]...%s%s\n", program, name,
            usage->arguments != NULL ? " " : "",
            usage->arguments != NULL ? usage->arguments : "");
    paragraphs(doc, out);
    paragraphs(usage->about, out);
    fputs("\nOptions:\n", out);
    measure(own, &width);
    measure(common, &width);
    list(own, NULL, width, out);
    list(common, own, width, out);
    if (fields == NULL)
        return TSR_OK;
    fputs("\nKeys of CONFIG (YAML; paths relative to it):\n", out);
    TSR_TRY(tsr_fields_help(fields, topic, 2, out, err));
    if (topic == NULL)
        fprintf(out,
                "\n'%s %s --help KEY' shows what is in a section, as "
                "contrast, data.saxs\nor moves.pivot; '--help all' all keys.\n",
                program, name);
    return TSR_OK;
}

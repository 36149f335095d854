/* Field tables: values from text and back, and what a field expects. */
#include "core/field.h"

#include "core/text.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Text that grows within a fixed buffer; `length` counts on past its end, as
 * snprintf does. */
typedef struct {
    char *text;
    size_t size;
    size_t length;
} buffer;

TSR_PRINTF(2, 3) static void put(buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t used = b->length < b->size ? b->length : b->size;
    int n = vsnprintf(b->text + used, b->size - used, format, args);
    va_end(args);
    b->length += n > 0 ? (size_t)n : 0;
}

/* The fewest digits that read back to the same bits, in the notation that
 * Python's repr chooses: plain between 1e-4 and 1e16. */
static void put_double(buffer *b, double x)
{
    if (!isfinite(x)) {
        put(b, "%s", isnan(x) ? ".nan" : x > 0.0 ? ".inf" : "-.inf");
        return;
    }
    char e[40];
    int digits = 0; /* after the point */
    do {
        snprintf(e, sizeof e, "%.*e", digits, x);
    } while (strtod(e, NULL) != x && ++digits < 17);
    char *mark = strchr(e, 'e');
    int exponent = (int)strtol(mark + 1, NULL, 10);
    if (exponent < -4 || exponent > 15) {
        *mark = '\0';
        put(b, "%se%d", e, exponent);
    } else {
        put(b, "%.*f", digits > exponent ? digits - exponent : 0, x);
    }
}

/* ---- what a field expects ---- */

static int is_checked(const tsr_field *f)
{
    return f->min < 0.0 || f->min > 0.0 || f->max < 0.0 || f->max > 0.0;
}

static int in_range(const tsr_field *f, double x)
{
    return !is_checked(f) || (x >= f->min && x <= f->max);
}

static void put_range(buffer *b, const tsr_field *f, const char *within)
{
    if (!is_checked(f) || (isinf(f->min) && isinf(f->max)))
        return;
    if (isinf(f->max) || isinf(f->min)) {
        put(b, isinf(f->max) ? ", at least " : ", at most ");
        put_double(b, isinf(f->max) ? f->min : f->max);
        return;
    }
    put(b, " %s [", within);
    put_double(b, f->min);
    put(b, ", ");
    put_double(b, f->max);
    put(b, "]");
}

static void put_words(buffer *b, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        put(b, "%s%s", i == 0 ? "" : ", ", words[i]);
}

/* Of a struct without kinds all keys; else those of each kind. */
static void put_keys(buffer *b, const tsr_field *field)
{
    const char *comma = "";
    for (const tsr_field *f = field->fields; f != NULL && f->name != NULL; f++)
        put(b, "%s%s", f == field->fields ? "" : ", ", f->name);
    for (int k = 0; field->selector != NULL && field->kind(k).name != NULL;
         k++, comma = "; ") {
        put(b, "%s%s", comma, field->selector);
        for (const tsr_field *f = field->kind(k).fields; f->name != NULL; f++)
            put(b, ", %s", f->name);
        put(b, " (%s %s)", field->selector, field->kind(k).name);
    }
}

int tsr_field_expects(const tsr_field *field, char *text, size_t size)
{
    buffer b = {text, size, 0};
    if (size > 0)
        text[0] = '\0';
    switch (field->type) {
    case TSR_FIELD_BOOL:
        put(&b, "true or false");
        break;
    case TSR_FIELD_INT:
        put(&b, "integer");
        put_range(&b, field, "in");
        break;
    case TSR_FIELD_DOUBLE:
        put(&b, "number");
        put_range(&b, field, "in");
        break;
    case TSR_FIELD_STRING:
        put(&b, field->is_path ? "path" : "text");
        if (field->is_path && field->words != NULL) {
            put(&b, ", or ");
            put_words(&b, field->words);
        }
        break;
    case TSR_FIELD_CHOICE:
        put(&b, "one of ");
        put_words(&b, field->words);
        break;
    case TSR_FIELD_NUMBER_OR_WORD:
        put(&b, "number");
        put_range(&b, field, "in");
        put(&b, field->words[0] != NULL && field->words[1] != NULL
                    ? ", or one of "
                    : ", or ");
        put_words(&b, field->words);
        break;
    case TSR_FIELD_PAIR:
        put(&b, "ascending pair [low, high]");
        put_range(&b, field, "within");
        break;
    case TSR_FIELD_STRINGS:
        put(&b, "list of texts");
        break;
    case TSR_FIELD_GROUP:
    case TSR_FIELD_LIST:
        put(&b, field->type == TSR_FIELD_LIST
                    ? "list of mappings with keys among "
                    : "mapping with keys among ");
        put_keys(&b, field);
        const tsr_field *alias =
            field->alias != NULL && field->selector == NULL
                ? tsr_field_find(field->fields, field->alias)
                : NULL;
        if (alias != NULL) {
            char inner[200];
            tsr_field_expects(alias, inner, sizeof inner);
            put(&b, ", or %s (its '%s')", inner, alias->name);
        }
        break;
    }
    return (int)b.length;
}

/* ---- text to value ---- */

static tsr_status refuse(const tsr_field *f, const char *text, const char *what,
                         tsr_err *err)
{
    char shown[TSR_EXCERPT_SIZE], expected[512];
    tsr_field_expects(f, expected, sizeof expected);
    return tsr_fail(err, TSR_E_CONFIG, "value '%s' %s: expected %s%s%s%s",
                    tsr_text_excerpt(text, shown), what, expected,
                    f->unit != NULL ? " (" : "", f->unit != NULL ? f->unit : "",
                    f->unit != NULL ? ")" : "");
}

/* 1 where all of the text is a decimal number in YAML's core schema, which is
 * narrower than strtod: no hexadecimal, no "infinity", no leading space. */
static int is_number(const char *s)
{
    s += *s == '+' || *s == '-';
    size_t whole = strspn(s, "0123456789");
    s += whole;
    size_t part = 0;
    if (*s == '.') {
        part = strspn(++s, "0123456789");
        s += part;
    }
    if (whole + part == 0)
        return 0;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '+' || *s == '-';
        size_t n = strspn(s, "0123456789");
        if (n == 0)
            return 0;
        s += n;
    }
    return *s == '\0';
}

/* NULL, or what is wrong with the text. */
static const char *read_double(const tsr_field *f, const char *text, double *x)
{
    if (!is_number(text))
        return "is not a number";
    *x = strtod(text, NULL);
    if (isinf(*x))
        return "is too large for a number";
    return in_range(f, *x) ? NULL : "is out of range";
}

/* As integers: above 2^53 neighbours are one double. */
static int in_range_long(const tsr_field *f, long x)
{
    if (!is_checked(f))
        return 1;
    return (f->min < (double)LONG_MIN || x >= (long)ceil(f->min)) &&
           (f->max >= (double)LONG_MAX || x <= (long)floor(f->max));
}

static const char *read_long(const tsr_field *f, const char *text, long *x)
{
    const char *digits = text + (*text == '+' || *text == '-');
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || digits[n] != '\0')
        return "is not an integer";
    errno = 0;
    *x = strtol(text, NULL, 10);
    if (errno == ERANGE)
        return "is too large for an integer";
    return in_range_long(f, *x) ? NULL : "is out of range";
}

static const char *read_bool(const char *text, int *x)
{
    static const char *const words[] = {"false", "true", "no",
                                        "yes",   "off",  "on"};
    for (int i = 0; i < 6; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *x = i % 2;
            return NULL;
        }
    }
    return "is neither true nor false";
}

static int find_word(const char *const *words, const char *text)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

int tsr_field_names_file(const tsr_field *field, const char *text)
{
    if (!field->is_path || field->words == NULL || text == NULL)
        return field->is_path;
    for (int i = 0; field->words[i] != NULL; i++) {
        const char *word = field->words[i];
        const size_t n = strlen(word);
        if (strncmp(text, word, n) == 0 &&
            (word[n - 1] == ':' || text[n] == '\0'))
            return 0;
    }
    return 1;
}

static const char *read_pair(const tsr_field *f, const char *text, double x[2])
{
    char part[2][64];
    const char *s = text;
    for (int i = 0; i < 2; i++) {
        if (*s++ != "[,"[i])
            return "is not a pair";
        s += strspn(s, " ");
        size_t n = strcspn(s, " ,]");
        if (n >= sizeof part[i])
            return "is not a pair of numbers";
        memcpy(part[i], s, n);
        part[i][n] = '\0';
        s += n;
        s += strspn(s, " ");
    }
    if (strcmp(s, "]") != 0)
        return "is not a pair";
    for (int i = 0; i < 2; i++) {
        const char *wrong = read_double(f, part[i], &x[i]);
        if (wrong != NULL)
            return wrong;
    }
    return x[0] < x[1] ? NULL : "is not ascending";
}

static tsr_status set_string(char **at, const char *text, tsr_err *err)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    if (text != NULL && copy == NULL)
        return tsr_no_memory(err);
    free(*at);
    *at = copy;
    return TSR_OK;
}

tsr_status tsr_field_parse(const tsr_field *field, void *object,
                           const char *text, tsr_err *err)
{
    void *p = (char *)object + field->offset;
    int unset = field->initial == NULL &&
                (strcmp(text, "null") == 0 || strcmp(text, "~") == 0);
    union {
        int i;
        long l;
        double d[2];
        tsr_number_or_word n;
    } v = {.d = {0.0, 0.0}};
    const char *wrong = NULL;
    size_t size = 0;

    switch (field->type) {
    case TSR_FIELD_BOOL:
        size = sizeof v.i;
        if (!unset)
            wrong = read_bool(text, &v.i);
        break;
    case TSR_FIELD_INT:
        size = sizeof v.l;
        if (!unset)
            wrong = read_long(field, text, &v.l);
        break;
    case TSR_FIELD_DOUBLE:
        size = sizeof v.d[0];
        if (!unset)
            wrong = read_double(field, text, &v.d[0]);
        break;
    case TSR_FIELD_STRING:
        return set_string(p, unset ? NULL : text, err);
    case TSR_FIELD_CHOICE:
        size = sizeof v.i;
        v.i = unset ? 0 : find_word(field->words, text);
        wrong = v.i < 0 ? "is not known" : NULL;
        break;
    case TSR_FIELD_NUMBER_OR_WORD: {
        tsr_number_or_word n = {unset ? 0 : find_word(field->words, text), 0.0};
        if (n.word < 0)
            wrong = read_double(field, text, &n.number);
        if (wrong != NULL && !is_number(text))
            wrong = "is neither a number nor a known word";
        size = sizeof v.n;
        v.n = n;
        break;
    }
    case TSR_FIELD_PAIR:
        size = sizeof v.d;
        if (!unset)
            wrong = read_pair(field, text, v.d);
        break;
    default:
        return tsr_fail(err, TSR_E_INTERNAL, "field '%s' is not a scalar",
                        field->name);
    }
    if (wrong != NULL)
        return refuse(field, text, wrong, err);
    memcpy(p, &v, size);
    return TSR_OK;
}

/* ---- value to text ---- */

static void put_number(buffer *b, const tsr_field *f, double x)
{
    /* a field without a default is 0 until it is set, and 0 may be refused */
    if (f->initial == NULL && x == 0.0 && !in_range(f, x))
        put(b, "null");
    else
        put_double(b, x);
}

int tsr_field_format(const tsr_field *field, const void *object, char *text,
                     size_t size)
{
    const void *p = (const char *)object + field->offset;
    buffer b = {text, size, 0};
    if (size > 0)
        text[0] = '\0';
    switch (field->type) {
    case TSR_FIELD_BOOL:
        put(&b, "%s", *(const int *)p ? "true" : "false");
        break;
    case TSR_FIELD_INT: {
        long x = *(const long *)p;
        if (x == 0)
            put_number(&b, field, 0.0);
        else
            put(&b, "%ld", x);
        break;
    }
    case TSR_FIELD_DOUBLE:
        put_number(&b, field, *(const double *)p);
        break;
    case TSR_FIELD_STRING: {
        const char *s = *(char *const *)p;
        put(&b, "%s", s != NULL ? s : "null");
        break;
    }
    case TSR_FIELD_CHOICE:
        put(&b, "%s", field->words[*(const int *)p]);
        break;
    case TSR_FIELD_NUMBER_OR_WORD: {
        const tsr_number_or_word *n = p;
        if (n->word >= 0)
            put(&b, "%s", field->words[n->word]);
        else
            put_double(&b, n->number);
        break;
    }
    case TSR_FIELD_PAIR: {
        const double *x = p;
        if (x[0] == x[1]) {
            put(&b, "null");
            break;
        }
        put(&b, "[");
        put_double(&b, x[0]);
        put(&b, ", ");
        put_double(&b, x[1]);
        put(&b, "]");
        break;
    }
    default:
        break;
    }
    return (int)b.length;
}

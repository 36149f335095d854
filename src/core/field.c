/* Field tables: defaults, ownership of members, conversion from and to text,
 * and help. */
#include "core/field.h"

#include "core/text.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void *at(const tsr_field *field, void *object)
{
    return (char *)object + field->offset;
}

/* Bytes of a field's value in the struct; 0 for a GROUP, whose members have
 * their own sizes. */
static size_t size_of(const tsr_field *field)
{
    static const size_t size[] = {[TSR_FIELD_BOOL] = sizeof(int),
                                  [TSR_FIELD_INT] = sizeof(long),
                                  [TSR_FIELD_DOUBLE] = sizeof(double),
                                  [TSR_FIELD_STRING] = sizeof(char *),
                                  [TSR_FIELD_CHOICE] = sizeof(int),
                                  [TSR_FIELD_NUMBER_OR_WORD] =
                                      sizeof(tsr_number_or_word),
                                  [TSR_FIELD_PAIR] = 2 * sizeof(double),
                                  [TSR_FIELD_STRINGS] = sizeof(tsr_strings),
                                  [TSR_FIELD_GROUP] = 0,
                                  [TSR_FIELD_LIST] = sizeof(tsr_list)};
    return size[field->type];
}

const tsr_field *tsr_field_members(const tsr_field *field, const void *object)
{
    if (field->selector == NULL)
        return field->fields;
    int number;
    memcpy(&number, object, sizeof number);
    return field->kind(number).fields;
}

/* Zeroes all members, so that tsr_fields_clear can be called. */
static void zero_members(const tsr_field *fields, void *object)
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        if (f->type == TSR_FIELD_GROUP && f->selector != NULL)
            memset(at(f, object), 0, f->size);
        else if (f->type == TSR_FIELD_GROUP)
            zero_members(f->fields, at(f, object));
        else
            memset(at(f, object), 0, size_of(f));
    }
}

void tsr_fields_clear(const tsr_field *fields, void *object)
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        void *p = at(f, object);
        if (f->type == TSR_FIELD_GROUP) {
            tsr_fields_clear(tsr_field_members(f, p), p);
        } else if (f->type == TSR_FIELD_STRING) {
            free(*(char **)p);
            *(char **)p = NULL;
        } else if (f->type == TSR_FIELD_STRINGS) {
            tsr_strings *strings = p;
            for (int i = 0; i < strings->n; i++)
                free(strings->item[i]);
            free(strings->item);
            *strings = (tsr_strings){0, NULL};
        } else if (f->type == TSR_FIELD_LIST) {
            tsr_list *list = p;
            for (int i = 0; i < list->n; i++) {
                char *element =
                    (char *)list->item + (size_t)i * f->element_size;
                tsr_fields_clear(tsr_field_members(f, element), element);
            }
            free(list->item);
            *list = (tsr_list){0, NULL};
        }
    }
}

tsr_status tsr_strings_append(tsr_strings *strings, const char *text,
                              tsr_err *err)
{
    if (strings->n == INT_MAX)
        return tsr_fail(err, TSR_E_NOMEM, "a list is too long");
    char *copy = strdup(text);
    char **item =
        realloc(strings->item, ((size_t)strings->n + 1) * sizeof *item);
    if (item != NULL)
        strings->item = item;
    if (copy == NULL || item == NULL) {
        free(copy);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a list of %d",
                        strings->n + 1);
    }
    item[strings->n++] = copy;
    return TSR_OK;
}

tsr_status tsr_field_append(const tsr_field *field, void *object,
                            void **element, tsr_err *err)
{
    tsr_list *list = at(field, object);
    size_t n = (size_t)list->n + 1;
    if (field->element_size == 0)
        return tsr_fail(err, TSR_E_INTERNAL, "field '%s': no element_size",
                        field->name);
    if (n > INT_MAX || n > SIZE_MAX / 2 / field->element_size)
        return tsr_fail(err, TSR_E_NOMEM, "list '%s' is too long", field->name);
    if ((n & (n - 1)) == 0) { /* capacity doubles at n = 1, 2, 4, ... */
        void *item = realloc(list->item, 2 * n * field->element_size);
        if (item == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory for %zu '%s'", n,
                            field->name);
        list->item = item;
    }
    char *fresh = (char *)list->item + (n - 1) * field->element_size;
    memset(fresh, 0, field->element_size);
    TSR_TRY(tsr_fields_init(tsr_field_members(field, fresh), fresh, err));
    list->n++;
    *element = fresh;
    return TSR_OK;
}

static tsr_status init_field(const tsr_field *f, void *object, tsr_err *err)
{
    if (f->type == TSR_FIELD_GROUP)
        return tsr_fields_init(tsr_field_members(f, at(f, object)),
                               at(f, object), err);
    if (f->initial == NULL || strcmp(f->initial, "[]") == 0)
        return TSR_OK; /* lists start empty */
    tsr_status status = tsr_field_parse(f, object, f->initial, err);
    if (status == TSR_OK || status == TSR_E_NOMEM)
        return status;
    return tsr_wrap(err, TSR_E_INTERNAL, "default '%s' of field '%s'",
                    f->initial, f->name);
}

tsr_status tsr_fields_init(const tsr_field *fields, void *object, tsr_err *err)
{
    zero_members(fields, object);
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        tsr_status status = init_field(f, object, err);
        if (status != TSR_OK) {
            tsr_fields_clear(fields, object);
            return status;
        }
    }
    return TSR_OK;
}

/* Swaps the values of fields that both kinds have, except GROUPs and LISTs. */
static void swap_common_fields(const tsr_field *from, void *old,
                               const tsr_field *to, void *fresh)
{
    for (const tsr_field *t = to; t->name != NULL; t++) {
        const tsr_field *f = tsr_field_find(from, t->name);
        if (f == NULL || f->type != t->type || f->words != t->words ||
            t->type == TSR_FIELD_GROUP || t->type == TSR_FIELD_LIST)
            continue;
        char swapped[sizeof(tsr_list) + sizeof(tsr_number_or_word)];
        memcpy(swapped, at(t, fresh), size_of(t));
        memcpy(at(t, fresh), at(f, old), size_of(t));
        memcpy(at(f, old), swapped, size_of(t));
    }
}

tsr_status tsr_field_set_kind(const tsr_field *field, void *object,
                              const char *name, tsr_err *err)
{
    const size_t size =
        field->type == TSR_FIELD_LIST ? field->element_size : field->size;
    const tsr_field *from = tsr_field_members(field, object);
    int number = 0;
    while (field->kind(number).name != NULL &&
           strcmp(field->kind(number).name, name) != 0)
        number++;
    const tsr_field *to = field->kind(number).fields;
    if (field->kind(number).name == NULL) {
        char shown[TSR_EXCERPT_SIZE], known[256] = "";
        size_t n = 0;
        for (int k = 0; field->kind(k).name != NULL && n < sizeof known; k++)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s",
                                  k == 0 ? "" : ", ", field->kind(k).name);
        return tsr_fail(err, TSR_E_CONFIG,
                        "value '%s' is unknown: expected one of %s",
                        tsr_text_excerpt(name, shown), known);
    }
    if (to == from) {
        memcpy(object, &number, sizeof number);
        return TSR_OK;
    }
    void *fresh = calloc(1, size);
    TSR_TRY(tsr_allocated(fresh, err));
    tsr_status status = tsr_fields_init(to, fresh, err);
    if (status == TSR_OK) {
        swap_common_fields(from, object, to, fresh);
        tsr_fields_clear(from, object);
        memcpy(object, fresh, size);
        memcpy(object, &number, sizeof number);
    }
    free(fresh);
    return status;
}

const tsr_field *tsr_field_find(const tsr_field *fields, const char *name)
{
    for (const tsr_field *f = fields; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

const char *tsr_field_nearest(const tsr_field *fields, const char *name)
{
    tsr_nearest nearest = {.typed = name};
    for (const tsr_field *f = fields; f->name != NULL; f++)
        tsr_nearest_try(&nearest, f->name);
    return nearest.best;
}

/* ---- text ----
 *
 * Values from text and back, and descriptions of allowed values. */

/* Text in a buffer of fixed size. `length` counts beyond its end, as snprintf
 * does. */
typedef struct {
    char *text;
    size_t size;
    size_t length;
} buffer;

TSR_PRINTF(2, 3) static void append(buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t used = b->length < b->size ? b->length : b->size;
    int n = vsnprintf(b->text + used, b->size - used, format, args);
    va_end(args);
    b->length += n > 0 ? (size_t)n : 0;
}

/* Appends the fewest digits that are read back to the same bits, with an
 * exponent only below 1e-4 and from 1e16 on. */
static void put_double(buffer *b, double x)
{
    if (!isfinite(x)) {
        append(b, "%s", isnan(x) ? ".nan" : x > 0.0 ? ".inf" : "-.inf");
        return;
    }
    char e[40];
    int digits = 0; /* after the decimal point */
    do {
        snprintf(e, sizeof e, "%.*e", digits, x);
    } while (strtod(e, NULL) != x && ++digits < 17);
    char *mark = strchr(e, 'e');
    int exponent = (int)strtol(mark + 1, NULL, 10);
    if (exponent < -4 || exponent > 15) {
        *mark = '\0';
        append(b, "%se%d", e, exponent);
    } else {
        append(b, "%.*f", digits > exponent ? digits - exponent : 0, x);
    }
}

/* ---- descriptions ---- */

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
        append(b, isinf(f->max) ? ", at least " : ", at most ");
        put_double(b, isinf(f->max) ? f->min : f->max);
        return;
    }
    append(b, " %s [", within);
    put_double(b, f->min);
    append(b, ", ");
    put_double(b, f->max);
    append(b, "]");
}

static void put_words(buffer *b, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        append(b, "%s%s", i == 0 ? "" : ", ", words[i]);
}

/* All keys of a struct, or the keys of each of its kinds. */
static void put_keys(buffer *b, const tsr_field *field)
{
    const char *comma = "";
    for (const tsr_field *f = field->fields; f != NULL && f->name != NULL; f++)
        append(b, "%s%s", f == field->fields ? "" : ", ", f->name);
    for (int k = 0; field->selector != NULL && field->kind(k).name != NULL;
         k++, comma = "; ") {
        append(b, "%s%s", comma, field->selector);
        for (const tsr_field *f = field->kind(k).fields; f->name != NULL; f++)
            append(b, ", %s", f->name);
        append(b, " (%s %s)", field->selector, field->kind(k).name);
    }
}

int tsr_field_expected(const tsr_field *field, char *text, size_t size)
{
    static const char *const what[] = {
        [TSR_FIELD_BOOL] = "true or false",
        [TSR_FIELD_INT] = "integer",
        [TSR_FIELD_DOUBLE] = "number",
        [TSR_FIELD_STRING] = "text",
        [TSR_FIELD_CHOICE] = "one of ",
        [TSR_FIELD_NUMBER_OR_WORD] = "number",
        [TSR_FIELD_PAIR] = "ascending pair [low, high]",
        [TSR_FIELD_STRINGS] = "list of texts",
        [TSR_FIELD_GROUP] = "mapping with keys among ",
        [TSR_FIELD_LIST] = "list of mappings with keys among "};
    const tsr_field_type type = field->type;
    const char *const *words = field->words;
    buffer b = {text, size, 0};
    if (size > 0)
        text[0] = '\0';
    append(&b, "%s", field->is_path ? "path" : what[type]);
    if (type == TSR_FIELD_INT || type == TSR_FIELD_DOUBLE ||
        type == TSR_FIELD_NUMBER_OR_WORD || type == TSR_FIELD_PAIR)
        put_range(&b, field, type == TSR_FIELD_PAIR ? "within" : "in");
    if (words != NULL && type != TSR_FIELD_CHOICE)
        append(&b, type == TSR_FIELD_NUMBER_OR_WORD && words[0] != NULL &&
                           words[1] != NULL
                       ? ", or one of "
                       : ", or ");
    if (words != NULL)
        put_words(&b, words);
    if (type == TSR_FIELD_GROUP || type == TSR_FIELD_LIST) {
        put_keys(&b, field);
        const tsr_field *alias =
            field->alias != NULL && field->selector == NULL
                ? tsr_field_find(field->fields, field->alias)
                : NULL;
        if (alias != NULL) {
            char inner[200];
            tsr_field_expected(alias, inner, sizeof inner);
            append(&b, ", or %s (its '%s')", inner, alias->name);
        }
    }
    return (int)b.length;
}

/* ---- text to value ---- */

static tsr_status refuse(const tsr_field *f, const char *text, const char *what,
                         tsr_err *err)
{
    char shown[TSR_EXCERPT_SIZE], expected[512];
    tsr_field_expected(f, expected, sizeof expected);
    return tsr_fail(err, TSR_E_CONFIG, "value '%s' %s: expected %s%s%s%s",
                    tsr_text_excerpt(text, shown), what, expected,
                    f->unit != NULL ? " (" : "", f->unit != NULL ? f->unit : "",
                    f->unit != NULL ? ")" : "");
}

/* Is the whole text a decimal number of YAML's core schema? That schema is
 * narrower than strtod: no hexadecimal, no "infinity", no leading space. */
static int is_number(const char *s)
{
    char *end;
    (void)strtod(s, &end);
    return s[strspn(s, "+-.0123456789eE")] == '\0' && end != s && *end == '\0';
}

/* Returns NULL, or the error. */
static const char *read_double(const tsr_field *f, const char *text, double *x)
{
    if (!is_number(text))
        return "is not a number";
    *x = strtod(text, NULL);
    if (isinf(*x))
        return "is too large for a number";
    return in_range(f, *x) ? NULL : "is out of range";
}

/* Compares as integers, because above 2^53 neighbouring integers are the same
 * double. */
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
    int end = 0;
    if (sscanf(text, "[ %63[^] ,] , %63[^] ,] ]%n", part[0], part[1], &end) !=
            2 ||
        end == 0 || text[end] != '\0')
        return "is not a pair of numbers";
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
    /* a field without default is 0 until it is set: such a 0, outside the
     * range, is shown as "null" */
    if (f->initial == NULL && x == 0.0 && !in_range(f, x))
        append(b, "null");
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
        append(&b, "%s", *(const int *)p ? "true" : "false");
        break;
    case TSR_FIELD_INT: {
        long x = *(const long *)p;
        if (x == 0)
            put_number(&b, field, 0.0);
        else
            append(&b, "%ld", x);
        break;
    }
    case TSR_FIELD_DOUBLE:
        put_number(&b, field, *(const double *)p);
        break;
    case TSR_FIELD_STRING: {
        const char *s = *(char *const *)p;
        append(&b, "%s", s != NULL ? s : "null");
        break;
    }
    case TSR_FIELD_CHOICE:
        append(&b, "%s", field->words[*(const int *)p]);
        break;
    case TSR_FIELD_NUMBER_OR_WORD: {
        const tsr_number_or_word *n = p;
        if (n->word >= 0)
            append(&b, "%s", field->words[n->word]);
        else
            put_double(&b, n->number);
        break;
    }
    case TSR_FIELD_PAIR: {
        const double *x = p;
        if (x[0] == x[1]) {
            append(&b, "null");
            break;
        }
        append(&b, "[");
        put_double(&b, x[0]);
        append(&b, ", ");
        put_double(&b, x[1]);
        append(&b, "]");
        break;
    }
    default:
        break;
    }
    return (int)b.length;
}

/* ---- help ----
 *
 * Prints four columns (name, default, unit, meaning) and wraps the last one. */

enum { GAP = 2, WIDEST_NAME = 26, INITIAL_MAX = 14, UNIT_MAX = 10 };

/* Layout of the help. */
typedef struct {
    int name, initial, unit; /* widths; 0: empty column */
    int is_flat;             /* 1: without the content of groups */
} columns;

static const char *initial_of(const tsr_field *f)
{
    if (f->type == TSR_FIELD_GROUP)
        return "";
    if (f->initial != NULL)
        return f->initial[0] != '\0' ? f->initial : "\"\"";
    return f->type == TSR_FIELD_STRINGS || f->type == TSR_FIELD_LIST ? "[]"
                                                                     : "-";
}

static void widen(int *width, const char *text, int before, int most)
{
    int n = before + tsr_text_width(text);
    if (n <= most && n > *width)
        *width = n;
}

/* Finds the widths of the columns, which all groups share. A text longer than
 * the largest width of its column does not widen it, but breaks the line. */
static void measure_columns(const tsr_field *fields, int indent, columns *c)
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        widen(&c->name, f->name, indent, WIDEST_NAME);
        widen(&c->initial, initial_of(f), 0, INITIAL_MAX);
        widen(&c->unit, f->unit != NULL ? f->unit : "", 0, UNIT_MAX);
        if (c->is_flat)
            continue;
        if (f->fields != NULL)
            measure_columns(f->fields, indent + 2, c);
        for (int k = 0; f->selector != NULL && f->kind(k).name != NULL; k++)
            measure_columns(f->kind(k).fields, indent + 4, c);
    }
}

/* Moves the cursor to a column, on a new line if fewer than GAP columns lie
 * between. */
static void move_to(FILE *out, int *column, int to)
{
    if (*column > 0 && *column + GAP > to) {
        fputc('\n', out);
        *column = 0;
    }
    fprintf(out, "%*s", to - *column, "");
    *column = to;
}

/* Prints one cell. Returns the column of the next cell. */
static int print_cell(FILE *out, int *column, int from, const char *text,
                      int width)
{
    if (*text != '\0') {
        move_to(out, column, from);
        fputs(text, out);
        *column += tsr_text_width(text);
    }
    return from + width + (width > 0 ? GAP : 0);
}

static void format_meaning(const tsr_field *f, char *text, size_t size)
{
    char expected[600];
    const char *doc = f->doc != NULL ? f->doc : "";
    const char *join = *doc != '\0' ? "; " : "";
    tsr_field_expected(f, expected, sizeof expected);
    if (f->type == TSR_FIELD_STRING) /* the expected type "text" is no
                                        information */
        snprintf(text, size, "%s", doc);
    else if (f->type != TSR_FIELD_GROUP && f->type != TSR_FIELD_LIST)
        snprintf(text, size, "%s%s%s", doc, join, expected);
    else if (f->alias != NULL)
        snprintf(text, size, "%s%s%sa bare value sets %s", doc, join,
                 f->type == TSR_FIELD_LIST ? "list; " : "", f->alias);
    else
        snprintf(text, size, "%s%s", doc,
                 f->type != TSR_FIELD_LIST ? ""
                 : *doc != '\0'            ? "; list"
                                           : "list");
}

static void print(const tsr_field *fields, int indent, const columns *c,
                  FILE *out);

/* Prints each kind, "kind: saxs" with its description, and its keys. */
static void print_kinds(const tsr_field *f, int indent, const columns *c,
                        FILE *out)
{
    for (int k = 0; f->kind(k).name != NULL; k++) {
        const tsr_field_kind kind = f->kind(k);
        int at = c->name + c->initial + c->unit + 3 * GAP;
        int column =
            fprintf(out, "%*s%s: %s", indent, "", f->selector, kind.name);
        if (k == 0)
            column += fprintf(out, " (default)");
        move_to(out, &column, at);
        tsr_text_wrap(out, column, at, "", kind.doc);
        print(kind.fields, indent + 2, c, out);
    }
}

static void print(const tsr_field *fields, int indent, const columns *c,
                  FILE *out)
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        char text[1400];
        format_meaning(f, text, sizeof text);
        if (c->is_flat)
            text[strcspn(text, ";,")] = '\0';
        int column = 0;
        print_cell(out, &column, indent, f->name, 0);
        int at = c->name + GAP;
        at = print_cell(out, &column, at, initial_of(f), c->initial);
        at = print_cell(out, &column, at, f->unit != NULL ? f->unit : "",
                        c->unit);
        if (*text != '\0')
            move_to(out, &column, at);
        tsr_text_wrap(out, column, at, "", text);
        if (c->is_flat)
            continue;
        if (f->fields != NULL)
            print(f->fields, indent + 2, c, out);
        if (f->selector != NULL)
            print_kinds(f, indent + 2, c, out);
    }
}

/* Search for a topic of the help. */
typedef struct {
    const char *topic;
    tsr_field found[2]; /* [0]: the match; its name is NULL until one is found.
                           [1]: end of the table */
    char name[128];     /* full name of the match */
    tsr_nearest nearest;
} search;

/* Finds the first key whose full name is the topic, or else the first whose
 * full name ends with it. */
static void find_topic(search *s, const char *before, const tsr_field *fields)
{
    const size_t n = strlen(s->topic);
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        char name[sizeof s->name];
        const int all = snprintf(name, sizeof name, "%s%s%s", before,
                                 *before != '\0' ? "." : "", f->name);
        const size_t skip = (size_t)all > n ? (size_t)all - n : 0;
        if (strcmp(name + skip, s->topic) == 0 &&
            (s->found[0].name == NULL || (skip == 0 && strlen(s->name) > n)) &&
            (skip == 0 || name[skip - 1] == '.')) {
            s->found[0] = *f;
            memcpy(s->name, name, sizeof name);
            s->found[0].name = s->name;
        }
        tsr_nearest_try(&s->nearest, f->name);
        if (f->fields != NULL)
            find_topic(s, name, f->fields);
        for (int k = 0; f->selector != NULL && f->kind(k).name != NULL; k++) {
            const tsr_field_kind kind = f->kind(k);
            find_topic(s, name,
                       (tsr_field[]){{.name = kind.name,
                                      .type = TSR_FIELD_GROUP,
                                      .fields = kind.fields,
                                      .doc = kind.doc},
                                     {0}});
            find_topic(s, name, kind.fields);
        }
    }
}

tsr_status tsr_fields_help(const tsr_field *fields, const char *topic,
                           int indent, FILE *out, tsr_err *err)
{
    columns c = {.is_flat = topic == NULL};
    const char *dot = topic != NULL ? strrchr(topic, '.') : NULL;
    search s = {.topic = topic, .nearest = {.typed = dot ? dot + 1 : topic}};
    char shown[TSR_EXCERPT_SIZE];
    if (topic != NULL && strcmp(topic, "all") != 0) {
        find_topic(&s, "", fields);
        fields = s.found;
    }
    if (fields->name == NULL)
        return tsr_fail(err, TSR_E_USAGE, "there is no key '%s'%s%s%s",
                        tsr_text_excerpt(topic, shown),
                        s.nearest.best != NULL ? "; did you mean '" : "",
                        s.nearest.best != NULL ? s.nearest.best : "",
                        s.nearest.best != NULL ? "'?" : "");
    measure_columns(fields, indent, &c);
    print(fields, indent, &c, out);
    return TSR_OK;
}

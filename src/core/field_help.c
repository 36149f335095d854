/* Field tables as --help shows them: four columns, the last one wrapped. */
#include "core/field.h"

#include "core/text.h"

#include <string.h>

enum { GAP = 2, NAME_MAX = 26, INITIAL_MAX = 14, UNIT_MAX = 10 };

typedef struct {
    int name, initial, unit; /* widths; 0 where the column is empty */
    int is_flat;             /* without what is in groups */
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

/* Groups share the columns of the whole table; what is longer than a column's
 * bound does not widen it and breaks the line instead. */
static void measure(const tsr_field *fields, int indent, columns *c)
{
    for (const tsr_field *f = fields; f->name != NULL; f++) {
        widen(&c->name, f->name, indent, NAME_MAX);
        widen(&c->initial, initial_of(f), 0, INITIAL_MAX);
        widen(&c->unit, f->unit != NULL ? f->unit : "", 0, UNIT_MAX);
        if (c->is_flat)
            continue;
        if (f->fields != NULL)
            measure(f->fields, indent + 2, c);
        for (int k = 0; f->selector != NULL && f->kind(k).name != NULL; k++)
            measure(f->kind(k).fields, indent + 4, c);
    }
}

/* Moves the cursor to a column, on a new line where it is past it. */
static void move_to(FILE *out, int *column, int to)
{
    if (*column > 0 && *column + GAP > to) {
        fputc('\n', out);
        *column = 0;
    }
    fprintf(out, "%*s", to - *column, "");
    *column = to;
}

/* Prints one cell; returns where the next one starts. */
static int cell(FILE *out, int *column, int from, const char *text, int width)
{
    if (*text != '\0') {
        move_to(out, column, from);
        fputs(text, out);
        *column += tsr_text_width(text);
    }
    return from + width + (width > 0 ? GAP : 0);
}

static void meaning(const tsr_field *f, char *text, size_t size)
{
    char expected[600];
    const char *doc = f->doc != NULL ? f->doc : "";
    const char *join = *doc != '\0' ? "; " : "";
    tsr_field_expects(f, expected, sizeof expected);
    if (f->type == TSR_FIELD_STRING) /* "text" tells nobody anything */
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

/* "kind: saxs" with what it is, and below it the keys of that kind. */
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
        meaning(f, text, sizeof text);
        if (c->is_flat)
            text[strcspn(text, ";,")] = '\0';
        int column = 0;
        cell(out, &column, indent, f->name, 0);
        int at = c->name + GAP;
        at = cell(out, &column, at, initial_of(f), c->initial);
        at = cell(out, &column, at, f->unit != NULL ? f->unit : "", c->unit);
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

typedef struct {
    const char *topic;
    tsr_field found[2]; /* the first; name NULL: not yet */
    char name[128];     /* of it, from the first section on */
    tsr_nearest nearest;
} search;

/* The first key with that name, or else the first with that end of a name. */
static void seek(search *s, const char *before, const tsr_field *fields)
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
            seek(s, name, f->fields);
        for (int k = 0; f->selector != NULL && f->kind(k).name != NULL; k++) {
            const tsr_field_kind kind = f->kind(k);
            seek(s, name,
                 (tsr_field[]){{.name = kind.name,
                                .type = TSR_FIELD_GROUP,
                                .fields = kind.fields,
                                .doc = kind.doc},
                               {0}});
            seek(s, name, kind.fields);
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
        seek(&s, "", fields);
        fields = s.found;
    }
    if (fields->name == NULL)
        return tsr_fail(err, TSR_E_USAGE, "there is no key '%s'%s%s%s",
                        tsr_text_excerpt(topic, shown),
                        s.nearest.best != NULL ? "; did you mean '" : "",
                        s.nearest.best != NULL ? s.nearest.best : "",
                        s.nearest.best != NULL ? "'?" : "");
    measure(fields, indent, &c);
    print(fields, indent, &c, out);
    return TSR_OK;
}

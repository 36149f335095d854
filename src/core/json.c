/* JSON is written directly to the stream, never built in memory: results can be
 * long, and a benchmark shows each row as soon as it is measured. The state of
 * the writer is the stack of open brackets, and for each whether it has an
 * entry, which determines the commas. */
#include "core/json.h"

#include "core/text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void put_string(const tsr_json *j, const char *text)
{
    FILE *out = j->out;
    fputc('"', out);
    while (*text != '\0') {
        const char *from = text;
        const long code = tsr_utf8_next(&text);
        if (code < 0)
            fputs("\\ufffd", out);
        else if (code < 0x20 || (code == '<' && j->is_script))
            fprintf(out, "\\u%04lx", (unsigned long)code);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
    fputc('"', out);
}

/* Writes the comma, line break and key before a value. Returns 0 if the value
 * must be dropped because it is nested too deep. */
static int begin_value(tsr_json *j, const char *key, int is_container)
{
    const int inside = j->depth - 1;
    if (j->too_deep > 0)
        return 0;
    if (inside >= 0) {
        const int on_new_line =
            is_container && (key == NULL || j->depth == 1) && !j->is_script;
        if (j->has_entry[inside])
            fputs(on_new_line || j->is_script ? "," : ", ", j->out);
        if (on_new_line)
            fprintf(j->out, "\n%*s", j->depth, "");
        j->has_entry[inside] = 1;
    }
    if (key != NULL) {
        put_string(j, key);
        fputs(j->is_script ? ":" : ": ", j->out);
    }
    return 1;
}

static void open_container(tsr_json *j, const char *key, const char *bracket)
{
    const int is_deep = j->depth == TSR_JSON_DEPTH;
    if (begin_value(j, key, !is_deep))
        fputs(is_deep ? "null" : (char[2]){bracket[0]}, j->out);
    if (is_deep) {
        j->is_bad = 1;
        j->too_deep++;
        return;
    }
    j->close[j->depth] = bracket[1];
    j->has_entry[j->depth++] = 0;
}

void tsr_json_object(tsr_json *json, const char *key)
{
    open_container(json, key, "{}");
}

void tsr_json_array(tsr_json *json, const char *key)
{
    open_container(json, key, "[]");
}

void tsr_json_close(tsr_json *json)
{
    if (json->too_deep > 0) {
        json->too_deep--;
        return;
    }
    fputc(json->close[--json->depth], json->out);
    if (json->depth == 0 && !json->is_script)
        fputc('\n', json->out);
}

void tsr_json_number(tsr_json *json, const char *key, double value)
{
    char text[32];
    int digits = json->digits > 0 ? json->digits : 15;
    if (!begin_value(json, key, 0))
        return;
    if (!isfinite(value)) {
        fputs("null", json->out);
        return;
    }
    do /* 17 digits always suffice, and 15 in most cases */
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (json->digits == 0 && digits++ < 17 && strtod(text, NULL) != value);
    fputs(text, json->out);
}

void tsr_json_numbers(tsr_json *json, const char *key, int n,
                      const double *value)
{
    tsr_json_array(json, key);
    for (int i = 0; i < n; i++)
        tsr_json_number(json, NULL, value[i]);
    tsr_json_close(json);
}

void tsr_json_integer(tsr_json *json, const char *key, long long value)
{
    if (begin_value(json, key, 0))
        fprintf(json->out, "%lld", value);
}

void tsr_json_boolean(tsr_json *json, const char *key, int value)
{
    if (begin_value(json, key, 0))
        fputs(value ? "true" : "false", json->out);
}

void tsr_json_text(tsr_json *json, const char *key, const char *text)
{
    if (!begin_value(json, key, 0))
        return;
    if (text != NULL)
        put_string(json, text);
    else
        fputs("null", json->out);
}

void tsr_json_texts(tsr_json *json, const char *key, int n, char *const *text)
{
    tsr_json_array(json, key);
    for (int i = 0; i < n; i++)
        tsr_json_text(json, NULL, text[i]);
    tsr_json_close(json);
}

tsr_status tsr_json_lines(tsr_json *json, const char *key, tsr_words *words,
                          tsr_err *err)
{
    char *rest, *text = tsr_words_end(words);
    TSR_TRY(tsr_allocated(text, err));
    tsr_json_array(json, key);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        tsr_json_text(json, NULL, line);
    tsr_json_close(json);
    free(text);
    return TSR_OK;
}

/* ---- members and tables ---- */

/* Copies n characters; '~' becomes a blank, "%%" becomes '%'. */
static void copy_heading(char *to, size_t size, const char *from, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n && used + 1 < size; i++) {
        to[used++] = (char)(from[i] == '~' ? ' ' : from[i]);
        i += from[i] == '%';
    }
    to[used] = '\0';
}

static void add_cell(char *line, size_t size, size_t *n, int width,
                     const char *text)
{
    *n += (size_t)snprintf(line + *n, size - *n, "%s%*s", *n > 0 ? " " : "",
                           width, text);
    *n = *n < size ? *n : size - 1;
}

/* Writes the first value of `values`, "key|heading %8.3f ...", as a member of
 * the JSON or as a cell of the line. Characters after the conversion are
 * printed after a number. Returns the remaining `values`. */
static const char *put_value(tsr_table *t, const char *values, va_list *list)
{
    const int is_entry = *values == '%'; /* entry of an array: no key */
    const size_t n_name = is_entry ? 0 : strcspn(values, " "),
                 n_key = is_entry ? 0 : strcspn(values, " |");
    const char *kind = values + n_name + (is_entry ? 1 : 2); /* after '%' */
    const size_t n_kind = strcspn(kind, " ");
    const int is_left = *kind == '-';
    char name[64], heading[64], after[16], text[256] = "-", *end;
    const char *key = is_entry ? NULL : name;
    int width = (int)strtol(kind + is_left, &end, 10), digits = 0;
    if (*end == '*') {
        width = va_arg(*list, int);
        end++;
    }
    if (*end == '.')
        digits = (int)strtol(end + 1, &end, 10);
    const char conversion = end[*end == 'l'];
    snprintf(name, sizeof name, "%.*s", (int)n_key, values);
    copy_heading(heading, sizeof heading, values + n_key + 1,
                 n_name > n_key ? n_name - n_key - 1 : 0);
    copy_heading(after, sizeof after, end + 1 + (*end == 'l'),
                 (size_t)(kind + n_kind - end) - 1 - (*end == 'l'));
    const int has_json = t->json != NULL && (n_key > 0 || is_entry);
    if (conversion == 's') {
        const char *value = va_arg(*list, const char *);
        if (has_json)
            tsr_json_text(t->json, key, value);
        snprintf(text, sizeof text, "%s", value != NULL ? value : "-");
    } else if (conversion == 'i') {
        const int value = va_arg(*list, int);
        if (has_json)
            tsr_json_boolean(t->json, key, value);
    } else if (conversion == 'd') {
        const long value =
            *end == 'l' ? va_arg(*list, long) : va_arg(*list, int);
        if (has_json)
            tsr_json_integer(t->json, key, value);
        snprintf(text, sizeof text, "%ld", value);
    } else {
        const double value = va_arg(*list, double);
        if (has_json)
            tsr_json_number(t->json, key, value);
        if (!isnan(value))
            snprintf(text, sizeof text,
                     conversion == 'e'   ? "%.*e%s"
                     : conversion == 'g' ? "%.*g%s"
                                         : "%.*f%s",
                     digits, value, after);
    }
    if (t->json == NULL && n_name > n_key) {
        width = is_left ? -width : width;
        add_cell(t->head, sizeof t->head, &t->n_head, width, heading);
        add_cell(t->line, sizeof t->line, &t->n_line, width, text);
    }
    return kind + n_kind + (kind[n_kind] == ' ');
}

/* Handles "key{", "key[", "}" and "]"; entries of arrays have no key. Returns
 * the remaining `values`, or NULL if they begin with a value. */
static const char *put_bracket(tsr_json *j, const char *values)
{
    const size_t n = strcspn(values, "{}[]|% ");
    char key[64];
    const char *key_or_null = n > 0 ? key : NULL;
    snprintf(key, sizeof key, "%.*s", (int)n, values);
    if (values[n] == '{')
        tsr_json_object(j, key_or_null);
    else if (values[n] == '[')
        tsr_json_array(j, key_or_null);
    else if (values[n] == '}' || values[n] == ']')
        tsr_json_close(j);
    else
        return NULL;
    return values + n + 1 + (values[n + 1] == ' ');
}

static void put_values(tsr_table *t, const char *values, va_list list)
{
    va_list at;
    va_copy(at, list);
    while (*values != '\0') {
        const char *next =
            t->json != NULL ? put_bracket(t->json, values) : NULL;
        values = next != NULL ? next : put_value(t, values, &at);
    }
    va_end(at);
}

void tsr_json_members(tsr_json *json, const char *members, ...)
{
    tsr_table table = {.json = json};
    va_list list;
    va_start(list, members);
    put_values(&table, members, list);
    va_end(list);
}

void tsr_table_put(tsr_table *table, const char *values, ...)
{
    va_list list;
    va_start(list, values);
    put_values(table, values, list);
    va_end(list);
}

void tsr_table_row(tsr_table *t, const char *key)
{
    t->n_head = t->n_line = 0;
    if (t->json != NULL)
        tsr_json_object(t->json, key);
}

/* Prints a line without its trailing blanks. */
static void put_line(FILE *out, const char *line, size_t n)
{
    while (n > 0 && line[n - 1] == ' ')
        n--;
    fprintf(out, "%.*s\n", (int)n, line);
}

void tsr_table_end(tsr_table *t)
{
    if (t->json != NULL) {
        tsr_json_close(t->json);
    } else {
        if (t->n_row == 0)
            put_line(t->out, t->head, t->n_head);
        put_line(t->out, t->line, t->n_line);
    }
    t->n_row++;
    fflush(t->json != NULL ? t->json->out : t->out);
}

/* ---- reading ----
 *
 * The reader builds no tree, because the large files are matrices. libyaml,
 * which also reads JSON, would make a node of every number. */

enum { MOST_DEPTH = 64 };

static int fail(tsr_json_reader *r)
{
    r->is_bad = 1;
    return 0;
}

char tsr_json_peek(tsr_json_reader *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) != NULL)
        r->at++;
    return r->is_bad || r->at >= r->end ? '\0' : *r->at;
}

static int accept(tsr_json_reader *r, char c)
{
    if (tsr_json_peek(r) != c)
        return 0;
    r->at++;
    return 1;
}

int tsr_json_open(tsr_json_reader *reader, char bracket)
{
    int is_open = accept(reader, bracket);
    reader->is_first |= is_open;
    return is_open;
}

/* Is there another entry before the bracket `close`? */
static int has_next(tsr_json_reader *r, char close)
{
    int is_first = r->is_first;
    r->is_first = 0;
    if (accept(r, close))
        return 0;
    if (!is_first && !accept(r, ','))
        return fail(r);
    return tsr_json_peek(r) != '\0' ? 1 : fail(r);
}

int tsr_json_entry(tsr_json_reader *reader)
{
    return has_next(reader, ']');
}

int tsr_json_member(tsr_json_reader *r, size_t size, char *key)
{
    if (!has_next(r, '}') || !tsr_json_read_text(r, size, key))
        return 0;
    return accept(r, ':') ? 1 : fail(r);
}

int tsr_json_read_number(tsr_json_reader *reader, double *value)
{
    char c = tsr_json_peek(reader), *end;
    if (c != '-' && !isdigit((unsigned char)c))
        return fail(reader);
    *value = strtod(reader->at, &end);
    reader->at = end;
    return 1;
}

/* Reads the rest of an escape sequence, after the backslash. */
static char read_escape(tsr_json_reader *r)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    char c = *r->at++;
    const char *known = c == '\0' ? NULL : strchr(from, c);
    if (c == 'u') {
        for (int k = 0; k < 4 && isxdigit((unsigned char)*r->at); k++)
            r->at++;
        return '?';
    }
    return known == NULL ? c : to[known - from];
}

int tsr_json_read_text(tsr_json_reader *r, size_t size, char *text)
{
    size_t n = 0;
    if (!accept(r, '"'))
        return fail(r);
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if (c == '\\' && r->at < r->end)
            c = read_escape(r);
        if (n + 1 < size)
            text[n++] = c;
    }
    if (size > 0)
        text[n] = '\0';
    if (r->at >= r->end)
        return fail(r);
    r->at++;
    return 1;
}

static void skip_value(tsr_json_reader *r, int depth)
{
    char key[1];
    if (depth > MOST_DEPTH) {
        fail(r);
    } else if (tsr_json_open(r, '[')) {
        while (tsr_json_entry(r))
            skip_value(r, depth + 1);
    } else if (tsr_json_open(r, '{')) {
        while (tsr_json_member(r, sizeof key, key))
            skip_value(r, depth + 1);
    } else if (tsr_json_peek(r) == '"') {
        (void)tsr_json_read_text(r, sizeof key, key);
    } else {
        const char *from = r->at; /* a number, true, false or null */
        while (r->at < r->end &&
               (isalnum((unsigned char)*r->at) || strchr("+-.", *r->at)))
            r->at++;
        if (r->at == from)
            fail(r);
    }
}

void tsr_json_skip(tsr_json_reader *reader)
{
    skip_value(reader, 0);
}

int tsr_json_find(tsr_json_reader *r, const char *path)
{
    char key[64];
    for (size_t n; *path != '\0'; path += n + (path[n] == '.')) {
        const int is_list = tsr_json_open(r, '[');
        long before = is_list ? strtol(path, NULL, 10) : 0;
        n = strcspn(path, ".");
        if (!is_list && !tsr_json_open(r, '{'))
            return 0;
        for (;; tsr_json_skip(r)) {
            if (is_list ? !tsr_json_entry(r)
                        : !tsr_json_member(r, sizeof key, key))
                return 0;
            if (is_list ? before-- == 0
                        : strlen(key) == n && strncmp(key, path, n) == 0)
                break;
        }
    }
    return tsr_json_peek(r) != '\0';
}

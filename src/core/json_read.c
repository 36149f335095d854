/* A reader without a tree, since the only large files are matrices; libyaml,
 * which reads JSON too, makes a node of every number. */
#include "core/json_read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

static int fail(tsr_json_reader *r)
{
    r->is_bad = 1;
    return 0;
}

char tsr_json_peek(tsr_json_reader *reader)
{
    tsr_json_reader *r = reader;
    while (r->at < r->end && strchr(" \t\r\n", *r->at) != NULL)
        r->at++;
    return r->is_bad || r->at >= r->end ? '\0' : *r->at;
}

static int take(tsr_json_reader *r, char c)
{
    if (tsr_json_peek(r) != c)
        return 0;
    r->at++;
    return 1;
}

int tsr_json_open(tsr_json_reader *reader, char bracket)
{
    int is_open = take(reader, bracket);
    reader->is_first |= is_open;
    return is_open;
}

/* Is there one more in the list that ends with `close`? */
static int next(tsr_json_reader *r, char close)
{
    int is_first = r->is_first;
    r->is_first = 0;
    if (take(r, close))
        return 0;
    if (!is_first && !take(r, ','))
        return fail(r);
    return tsr_json_peek(r) != '\0' ? 1 : fail(r);
}

int tsr_json_entry(tsr_json_reader *reader)
{
    return next(reader, ']');
}

int tsr_json_member(tsr_json_reader *reader, size_t size, char *key)
{
    tsr_json_reader *r = reader;
    if (!next(r, '}') || !tsr_json_read_text(r, size, key))
        return 0;
    return take(r, ':') ? 1 : fail(r);
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

/* The character after a backslash, which is passed. */
static char escaped(tsr_json_reader *r)
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

int tsr_json_read_text(tsr_json_reader *reader, size_t size, char *text)
{
    tsr_json_reader *r = reader;
    size_t n = 0;
    if (!take(r, '"'))
        return fail(r);
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if (c == '\\' && r->at < r->end)
            c = escaped(r);
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
        const char *from = r->at; /* a number, true, false, null */
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

int tsr_json_find(tsr_json_reader *reader, const char *path)
{
    tsr_json_reader *r = reader;
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

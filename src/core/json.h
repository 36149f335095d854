/* Writes JSON (RFC 8259) as it is made: objects and arrays are opened and
 * closed in order, commas and lines come by themselves.
 *
 *     tsr_json j = {.out = out};
 *     tsr_json_object(&j, NULL);
 *     tsr_json_number(&j, "rg", 27.4);
 *     tsr_json_array(&j, "q");
 *     tsr_json_number(&j, NULL, 0.01);
 *     tsr_json_close(&j);
 *     tsr_json_close(&j);
 *
 * A member of an object has a key, an entry of an array has NULL. An object or
 * array within an array begins a line of its own, and so do the members of the
 * outermost object that are objects or arrays. After the last close the line is
 * ended. Errors of writing stay in the stream (ferror). An object or array that
 * is nested too deep is null, without what was to be in it, and is_bad is set;
 * the rest is whole. */
#ifndef TSR_CORE_JSON_H
#define TSR_CORE_JSON_H

#include "core/status.h"
#include "core/text.h"

#include <stddef.h>
#include <stdio.h>

enum { TSR_JSON_DEPTH = 32 }; /* brackets within each other, at most */

typedef struct {
    FILE *out;
    int digits;    /* significant ones of numbers that follow; 0: so many that
                      reading gives back the same double */
    int is_script; /* to stand in a script of a page: no blanks or lines, and
                      no '<', which with "/script" would end it */
    int is_bad;    /* out: something was nested deeper than can be written */
    int depth;     /* what follows is the writer's own */
    int too_deep;  /* open brackets that are not written */
    char close[TSR_JSON_DEPTH], has_entry[TSR_JSON_DEPTH];
} tsr_json;

void tsr_json_object(tsr_json *json, const char *key);
void tsr_json_array(tsr_json *json, const char *key);
void tsr_json_close(tsr_json *json); /* the object or array opened last */

/* null where it is not finite, which JSON cannot say. */
void tsr_json_number(tsr_json *json, const char *key, double value);
void tsr_json_numbers(tsr_json *json, const char *key, int n,
                      const double *value);
void tsr_json_integer(tsr_json *json, const char *key, long long value);
void tsr_json_boolean(tsr_json *json, const char *key, int value);

/* NULL is null; a byte that is no UTF-8 becomes U+FFFD. */
void tsr_json_text(tsr_json *json, const char *key, const char *text);

/* Ends a text: an array of its lines but empty ones. Errors: TSR_E_NOMEM. */
tsr_status tsr_json_lines(tsr_json *json, const char *key, tsr_words *words,
                          tsr_err *err);

/* Several members at once, each a key and a conversion of printf, with one
 * blank between: %g is a number, %d and %ld an integer, %i a truth, %s a text.
 * "key{" or "key[" opens an object or an array, "}" or "]" closes it; what
 * stands in an array has no key.
 *
 *     tsr_json_members(&j, "name %s range[ %g %g ] fit{ chi2 %g fits %i }",
 *                      ...); */
void tsr_json_members(tsr_json *json, const char *members, ...)
    TSR_PRINTF(2, 3);

/* ---- tables ----
 *
 * Rows of values, written as JSON objects or as lines of text under a heading.
 * One list describes both: the word before '|' is the key of a member, the word
 * behind it the heading of a column, in which '~' stands for a blank. A value
 * without a key is left out of the JSON, one without a heading out of the text.
 *
 *     tsr_table t = {.out = out, .json = is_json ? &j : NULL};
 *     for (int i = 0; i < n; i++) {
 *         tsr_table_row(&t, NULL);
 *         tsr_table_put(&t, "name|name %-12s rg|Rg %7.2f mass %g",
 *                       row[i].name, row[i].rg, row[i].mass);
 *         tsr_table_end(&t);
 *     }
 *
 * A number that is NaN is printed as "-". Characters behind a conversion are
 * printed behind the number, as in %6.1f~%%. The first row prints the headings.
 * Every row is flushed. */
typedef struct {
    FILE *out;
    tsr_json *json; /* NULL: text */
    int n_row;      /* what follows is the table's own */
    size_t n_head, n_line;
    char head[512], line[1024];
} tsr_table;

/* A row, in JSON under a key where it is no entry of an array; and its end. */
void tsr_table_row(tsr_table *table, const char *key);
void tsr_table_put(tsr_table *table, const char *values, ...) TSR_PRINTF(2, 3);
void tsr_table_end(tsr_table *table);

/* ---- reading ----
 *
 * Reads JSON (RFC 8259) piece by piece, so that a matrix of millions of numbers
 * never becomes a tree: the caller asks for what it expects next and skips the
 * rest.
 *
 *     tsr_json_reader r = {text, text + size};
 *     char key[32];
 *     if (tsr_json_open(&r, '{'))
 *         while (tsr_json_member(&r, sizeof key, key))
 *             ... read one value, or tsr_json_skip(&r) ...
 *     if (r.is_bad) ...
 *
 * After a mistake everything answers 0 and is_bad is 1; at is where it is. */

typedef struct {
    const char *at, *end; /* *end is readable and NUL */
    int is_bad;
    int is_first; /* the reader's own: nothing of this list was read yet */
} tsr_json_reader;

/* The first character of the next value; 0 at the end. */
char tsr_json_peek(tsr_json_reader *reader);

/* Enters an object ('{') or an array ('['); 0, and nothing is read, where the
 * next value is another. */
int tsr_json_open(tsr_json_reader *reader, char bracket);

/* Moves to the next member of the object, whose key, cut to what has room, is
 * put there; or to the next entry of the array. 0: it has ended. */
int tsr_json_member(tsr_json_reader *reader, size_t size, char *key);
int tsr_json_entry(tsr_json_reader *reader);

/* Moves to what lies under keys and numbers of entries, "runs.0.evidence.log".
 * 0: there is no such thing, and the reader is of no further use. */
int tsr_json_find(tsr_json_reader *reader, const char *path);

/* A number; a string, in which a character written as \uXXXX becomes '?'. */
int tsr_json_read_number(tsr_json_reader *reader, double *value);
int tsr_json_read_text(tsr_json_reader *reader, size_t size, char *text);

/* Passes over one value, whatever it holds. */
void tsr_json_skip(tsr_json_reader *reader);

#endif

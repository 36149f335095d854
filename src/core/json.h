/* Writes JSON (RFC 8259) to a stream. The caller opens and closes objects and
 * arrays in order; the writer adds commas and line breaks.
 *
 *     tsr_json j = {.out = out};
 *     tsr_json_object(&j, NULL);
 *     tsr_json_number(&j, "rg", 27.4);
 *     tsr_json_array(&j, "q");
 *     tsr_json_number(&j, NULL, 0.01);
 *     tsr_json_close(&j);
 *     tsr_json_close(&j);
 *
 * The key is NULL for an entry of an array. An object or array inside an array
 * begins a new line, and so does each object or array that is a direct member
 * of the outermost object. A newline follows the last close. Write errors stay
 * in the stream (ferror). An object or array nested deeper than TSR_JSON_DEPTH
 * is written as null, its content is dropped, and is_bad is set. */
#ifndef TSR_CORE_JSON_H
#define TSR_CORE_JSON_H

#include "core/status.h"
#include "core/text.h"

#include <stddef.h>
#include <stdio.h>

enum { TSR_JSON_DEPTH = 32 }; /* largest nesting of brackets */

/* The state of a writer. The caller sets `out`, `digits` and `is_script`. */
typedef struct {
    FILE *out;
    int digits;    /* significant digits of the numbers that follow; 0:
                      enough to read back the same double */
    int is_script; /* 1: safe inside <script> of an HTML page: without blanks
                      and newlines, and '<' is escaped */
    int is_bad;    /* out: some nesting was too deep */
    int depth;     /* the following members are private */
    int too_deep;  /* open brackets that were dropped */
    char close[TSR_JSON_DEPTH], has_entry[TSR_JSON_DEPTH];
} tsr_json;

/* Open an object or array. */
void tsr_json_object(tsr_json *json, const char *key);
void tsr_json_array(tsr_json *json, const char *key);
void tsr_json_close(tsr_json *json); /* closes the innermost open object or
                                        array */

/* A value that is not finite is written as null, because JSON has no such
 * numbers. */
void tsr_json_number(tsr_json *json, const char *key, double value);
void tsr_json_numbers(tsr_json *json, const char *key, int n,
                      const double *value);
void tsr_json_integer(tsr_json *json, const char *key, long long value);
void tsr_json_boolean(tsr_json *json, const char *key, int value);

/* NULL is written as null. A byte that is not UTF-8 becomes U+FFFD. */
void tsr_json_text(tsr_json *json, const char *key, const char *text);
void tsr_json_texts(tsr_json *json, const char *key, int n, char *const *text);

/* Ends `words`, and writes its non-empty lines as an array of texts. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_json_lines(tsr_json *json, const char *key, tsr_words *words,
                          tsr_err *err);

/* Writes several members. `members` is a list of keys, each followed by a blank
 * and a conversion of printf: %g for a double, %d and %ld for integers, %i for
 * a boolean, %s for a text. "key{" and "key[" open an object or array, "}" and
 * "]" close it; entries of arrays have no key.
 *
 *     tsr_json_members(&j, "name %s range[ %g %g ] fit{ chi2 %g fits %i }",
 *                      ...);
 */
void tsr_json_members(tsr_json *json, const char *members, ...)
    TSR_PRINTF(2, 3);

/* ---- tables ----
 *
 * Rows of values, written either as JSON objects or as lines of text under a
 * heading. One format describes both: the word before '|' is the JSON key, the
 * word after '|' the heading of the column, where '~' stands for a blank. A
 * value without a key is left out of the JSON, a value without a heading out of
 * the text.
 *
 *     tsr_table t = {.out = out, .json = is_json ? &j : NULL};
 *     for (int i = 0; i < n; i++) {
 *         tsr_table_row(&t, NULL);
 *         tsr_table_put(&t, "name|name %-12s rg|Rg %7.2f mass %g",
 *                       row[i].name, row[i].rg, row[i].mass);
 *         tsr_table_end(&t);
 *     }
 *
 * In text, NaN and NULL are printed as "-". Characters after the conversion
 * of a double are printed after the number, as in %6.1f~%%. The headings are
 * printed before the first row. The stream is flushed after each row. */
typedef struct {
    FILE *out;
    tsr_json *json; /* NULL: text */
    int n_row;      /* the following members are private */
    size_t n_head, n_line;
    char head[512], line[1024];
} tsr_table;

/* Begin a row, add values to it, and end it. key: of the row in the JSON; NULL:
 * the row is an entry of an array. */
void tsr_table_row(tsr_table *table, const char *key);
void tsr_table_put(tsr_table *table, const char *values, ...) TSR_PRINTF(2, 3);
void tsr_table_end(tsr_table *table);

/* ---- reading ----
 *
 * Reads JSON (RFC 8259) value by value, so that a matrix of millions of numbers
 * never becomes a tree in memory. The caller reads the values it needs and
 * skips the rest.
 *
 *     tsr_json_reader r = {text, text + size};
 *     char key[32];
 *     if (tsr_json_open(&r, '{'))
 *         while (tsr_json_member(&r, sizeof key, key))
 *             ... read one value, or tsr_json_skip(&r) ...
 *     if (r.is_bad) ...
 *
 * After a syntax error, or a value of another type than the function reads
 * (tsr_json_open excepted), every function returns 0, is_bad is 1, and `at`
 * points to the error. */

/* The state of a reader. The caller sets `at` and `end`. */
typedef struct {
    const char *at, *end; /* *end must be readable and NUL */
    int is_bad;
    int is_first; /* private: no entry of the current object or array has been
                     read */
} tsr_json_reader;

/* First character of the next value; 0 at the end. */
char tsr_json_peek(tsr_json_reader *reader);

/* Enters an object ('{') or array ('['). Returns 0 and reads nothing if the
 * next value has another type. */
int tsr_json_open(tsr_json_reader *reader, char bracket);

/* Moves to the next member of the object and copies its key, cut to `size`; or
 * moves to the next entry of the array. Returns 0 after the last one. */
int tsr_json_member(tsr_json_reader *reader, size_t size, char *key);
int tsr_json_entry(tsr_json_reader *reader);

/* Moves to the value at a path of keys and indices, "runs.0.evidence.log".
 * Returns 0 if the path does not exist; the position of the reader is then
 * undefined. */
int tsr_json_find(tsr_json_reader *reader, const char *path);

/* Read a number, or a string, which is cut to `size`. A character written as
 * \uXXXX becomes '?'. */
int tsr_json_read_number(tsr_json_reader *reader, double *value);
int tsr_json_read_text(tsr_json_reader *reader, size_t size, char *text);

/* Skips one value with all its content. */
void tsr_json_skip(tsr_json_reader *reader);

#endif

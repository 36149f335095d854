/* Reads JSON (RFC 8259) piece by piece, so that a matrix of millions of numbers
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
#ifndef TSR_CORE_JSON_READ_H
#define TSR_CORE_JSON_READ_H

#include <stddef.h>

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

/* Text for the user: excerpts in messages, wrapped paragraphs, nearest
 * names. */
#ifndef TSR_CORE_TEXT_H
#define TSR_CORE_TEXT_H

#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    TSR_TEXT_COLUMNS = 80, /* width of the output */
    TSR_EXCERPT_SIZE = 80, /* bytes, for tsr_text_excerpt */
    TSR_SHELL_SIZE = 4352  /* bytes, for tsr_text_shell */
};

/* Decodes one UTF-8 character and moves *text past it. Returns its code point,
 * or -1 if the bytes are not UTF-8 (*text then moves by one byte). Must not be
 * called at the end of the text. */
long tsr_utf8_next(const char **text);

/* Number of characters of a text, used as its width on a terminal. */
int tsr_text_width(const char *text);

/* `text` as one line for a message. Control characters and bytes that are not
 * UTF-8 become '?'; a long text is cut and ends in "...". Returns `out`. */
const char *tsr_text_excerpt(const char *text, char out[TSR_EXCERPT_SIZE]);

/* Replaces control characters other than tab and newline by '?', so that a
 * message which quotes a file cannot command the terminal. */
void tsr_text_clean(char *text);

/* A file name quoted for a shell, for commands that messages suggest. Special
 * characters are put in quotes, a leading dash gets "./" before it, and control
 * characters become $'\012'. Returns `out`, or "..." if `out` is too small. */
const char *tsr_text_shell(const char *name, char out[TSR_SHELL_SIZE]);

/* The part of `path` after the last slash. */
const char *tsr_text_file_name(const char *path);

/* Prints `text` wrapped at column 80, and a final newline. The cursor is at
 * `column`. Every new line starts with `indent` spaces and `prefix`, and so
 * does the first line if `column` is 0. */
void tsr_text_wrap(FILE *out, int column, int indent, const char *prefix,
                   const char *text);

/* Prints text for HTML or SVG. Special characters are escaped; control
 * characters other than tab and newline become '?'. */
void tsr_text_escape(FILE *out, const char *text);

/* Search for the known name nearest to a misspelt one. Start with {.typed =
 * name} and call tsr_nearest_try for each known name; `best` is then the first
 * of the nearest names, or NULL. A name is near if its Damerau-Levenshtein
 * distance (a swap of neighbours is one edit) is at most a third of the length
 * typed, or at most 1 for short names. */
typedef struct {
    const char *typed;
    const char *best;
    int distance; /* from `typed` to `best` */
} tsr_nearest;

void tsr_nearest_try(tsr_nearest *nearest, const char *name);

/* A text that is assembled piece by piece. A lack of memory is reported only by
 * tsr_words_end. */
typedef struct {
    FILE *out; /* NULL: out of memory */
    char *text;
    size_t size;
} tsr_words;

/* Begin a text, and append to it as printf does. */
void tsr_words_begin(tsr_words *words);
void tsr_words_add(tsr_words *words, const char *format, ...) TSR_PRINTF(2, 3);

/* Ends the text and returns it; the caller frees it. NULL: out of memory. */
char *tsr_words_end(tsr_words *words);

/* Ends the text and prints each non-empty line: `before`, `indent` spaces, and
 * the line, wrapped with the same indent. Errors: TSR_E_NOMEM. */
tsr_status tsr_words_print(tsr_words *words, FILE *out, int indent,
                           const char *before, tsr_err *err);

/* A text as printf formats it; the caller frees it. NULL: out of memory. */
char *tsr_text_format(const char *format, ...) TSR_PRINTF(1, 2);
char *tsr_text_format_list(const char *format, va_list list) TSR_PRINTF(1, 0);

#endif

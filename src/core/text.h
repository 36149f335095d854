/* Text for people: excerpts in messages, wrapped paragraphs, nearest names. */
#ifndef TSR_CORE_TEXT_H
#define TSR_CORE_TEXT_H

#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

enum { TSR_TEXT_COLUMNS = 80, TSR_EXCERPT_SIZE = 80, TSR_SHELL_SIZE = 4352 };

/* Reads one UTF-8 character and moves *text past it. Returns its code point, or
 * -1 where the bytes are no UTF-8 (then *text moves one byte). Not to be called
 * at the end of the text. */
long tsr_utf8_next(const char **text);

/* Number of characters: what a terminal needs for a unit or a name. */
int tsr_text_width(const char *text);

/* `text` fit to stand in one line of a message: a control character or a byte
 * that is no UTF-8 becomes '?', what is long ends in "...". Returns `out`. */
const char *tsr_text_excerpt(const char *text, char out[TSR_EXCERPT_SIZE]);

/* A file's name as one word of a shell's command line, for every command that
 * is proposed: in quotes where a character would mean something else, with ./
 * before a dash, control characters as $'\012'; "..." where `out` is too small.
 * Returns it. */
const char *tsr_text_shell(const char *name, char out[TSR_SHELL_SIZE]);

/* The name of a file without its folders: the end of `path`. */
const char *tsr_text_file_name(const char *path);

/* Prints the words of `text` up to column 80 and ends the line. The cursor is
 * at `column`; every new line starts with `indent` spaces and `prefix`, and so
 * does the first where `column` is 0. */
void tsr_text_wrap(FILE *out, int column, int indent, const char *prefix,
                   const char *text);

/* Prints text for HTML or SVG: what means something there is escaped, a control
 * character other than tab and line end becomes '?'. */
void tsr_text_escape(FILE *out, const char *text);

/* The known name nearest to a misspelt one. Start with {.typed = name}, try the
 * known names in order; `best` is the first of the nearest, or NULL. A name
 * counts where its Damerau-Levenshtein distance (with neighbours swapped as one
 * edit) is at most a third of the length typed, and at least 1. */
typedef struct {
    const char *typed;
    const char *best;
    int distance; /* of best */
} tsr_nearest;

void tsr_nearest_try(tsr_nearest *nearest, const char *name);

/* A text that grows, sentence by sentence. Running out of memory is remembered
 * and told at the end. */

typedef struct {
    FILE *out; /* NULL: out of memory */
    char *text;
    size_t size;
} tsr_words;

void tsr_words_begin(tsr_words *words);
void tsr_words_add(tsr_words *words, const char *format, ...) TSR_PRINTF(2, 3);

/* The text, which the caller frees; NULL: out of memory. */
char *tsr_words_end(tsr_words *words);

/* Ends the text and prints its lines but empty ones, wrapped, each behind
 * `before`. Errors: TSR_E_NOMEM. */
tsr_status tsr_words_print(tsr_words *words, FILE *out, int indent,
                           const char *before, tsr_err *err);

/* One sentence at once. */
char *tsr_text_format(const char *format, ...) TSR_PRINTF(1, 2);
char *tsr_text_format_list(const char *format, va_list list) TSR_PRINTF(1, 0);

#endif

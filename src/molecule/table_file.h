/* Reads the text files of data/: comments on how a table was made, keys, rows.
 *
 *     #: tessera form factors 1        name and version of the format
 *     # any text                       description, kept on reading
 *     #: bodies two                    keys
 *     # more text                      ignored
 *     0 0.01 5.9 36.2                  rows
 *
 * Every line except rows begins with '#', so numpy.loadtxt reads the rows. */
#ifndef TSR_MOLECULE_TABLE_FILE_H
#define TSR_MOLECULE_TABLE_FILE_H

#include "core/status.h"

/* What tsr_table_next found. */
typedef enum { TSR_LINE_END, TSR_LINE_KEY, TSR_LINE_ROW } tsr_line_type;

/* A table that is being read. */
typedef struct {
    char *data, *rest; /* the file's text, and the part not yet read */
    const char *path;  /* borrowed */
    int line;          /* number of the line, from 1 */
    tsr_line_type type;
    char *text;   /* the line, without "#: ", trailing blanks and the newline */
    char *source; /* the description after the first line, without "# "; a
                     caller that keeps it sets this to NULL */
} tsr_table_reader;

/* Opens a file and checks that its first line is "#: <format>". Errors:
 * TSR_E_NOINPUT, TSR_E_DATA, TSR_E_NOMEM. After an error nothing is open. */
tsr_status tsr_table_open(tsr_table_reader *reader, const char *path,
                          const char *format, tsr_err *err);

/* Advances to the next key or row, or to the end (type TSR_LINE_END). Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_table_next(tsr_table_reader *reader, tsr_err *err);

/* Advances to the next line, which must have the key `word`. *text: the line
 * after the key. Errors: TSR_E_DATA (another line), TSR_E_NOMEM. */
tsr_status tsr_table_key(tsr_table_reader *reader, const char *word,
                         char **text, tsr_err *err);

/* Reads n finite numbers from *text, number [n] out, and advances *text beyond
 * them. what: name of the numbers in messages. last 1: no text may follow.
 * Errors: TSR_E_DATA. */
tsr_status tsr_table_numbers(const tsr_table_reader *reader, char **text, int n,
                             double *number, int last, const char *what,
                             tsr_err *err);

/* Fails with TSR_E_DATA and the message "path:line: ...". */
tsr_status tsr_table_fail(const tsr_table_reader *reader, tsr_err *err,
                          const char *format, ...) TSR_PRINTF(3, 4);

/* As for tsr_fail (core/status.h): a static analyser learns that the result is
 * an error. */
#if defined(__clang_analyzer__) && !defined(TSR_TABLE_FILE_ITSELF)
#define tsr_table_fail(reader, err, ...) \
    ((void)(tsr_table_fail)((reader), (err), __VA_ARGS__), TSR_E_DATA)
#endif

void tsr_table_close(tsr_table_reader *reader);

#endif

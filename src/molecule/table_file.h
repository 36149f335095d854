/* The text files of data/: comments that say how a table was made, keys, rows.
 *
 *     #: tessera form factors 1        what it is, and the format's version
 *     # any text                       the source, kept on reading
 *     #: bodies two                    keys
 *     # more text                      passed over
 *     0 0.01 5.9 36.2                  rows
 *
 * Every line but a row begins with '#', so numpy.loadtxt reads the rows. */
#ifndef TSR_MOLECULE_TABLE_FILE_H
#define TSR_MOLECULE_TABLE_FILE_H

#include "core/status.h"

typedef enum { TSR_LINE_END, TSR_LINE_KEY, TSR_LINE_ROW } tsr_line_type;

typedef struct {
    char *data, *rest; /* the file's text, and what of it is to be read */
    const char *path;  /* borrowed */
    int line;          /* of the text, from 1 */
    tsr_line_type type;
    char *text;   /* the line, without "#: " and the newline */
    char *source; /* the lines after the first, without "# "; take it by
                     setting it to NULL */
} tsr_table_reader;

/* Opens a file and checks that its first line is "#: <format>". Errors:
 * TSR_E_NOINPUT, TSR_E_DATA, TSR_E_NOMEM. After an error nothing is open. */
tsr_status tsr_table_open(tsr_table_reader *reader, const char *path,
                          const char *format, tsr_err *err);

/* Goes to the next key, row, or the end. Errors: TSR_E_DATA, TSR_E_NOINPUT. */
tsr_status tsr_table_next(tsr_table_reader *reader, tsr_err *err);

/* The same, and it must be the key `word`: *text is what follows it. */
tsr_status tsr_table_key(tsr_table_reader *reader, const char *word,
                         char **text, tsr_err *err);

/* Reads n finite numbers from *text and moves it past them; `what` names them
 * in the message. With `last`, nothing may follow. */
tsr_status tsr_table_numbers(const tsr_table_reader *reader, char **text, int n,
                             double *number, int last, const char *what,
                             tsr_err *err);

/* "path:line: message", TSR_E_DATA. */
tsr_status tsr_table_fail(const tsr_table_reader *reader, tsr_err *err,
                          const char *format, ...) TSR_PRINTF(3, 4);

/* As tsr_fail: a static analyzer cannot see from here what it returns. */
#if defined(__clang_analyzer__) && !defined(TSR_TABLE_FILE_ITSELF)
#define tsr_table_fail(reader, err, ...) \
    ((void)(tsr_table_fail)((reader), (err), __VA_ARGS__), TSR_E_DATA)
#endif

void tsr_table_close(tsr_table_reader *reader);

#endif

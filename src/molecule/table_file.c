/* Reads the text files of data/ line by line. Messages name the line. */
#define TSR_TABLE_FILE_ITSELF
#include "molecule/table_file.h"

#include "files/file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tsr_status tsr_table_fail(const tsr_table_reader *reader, tsr_err *err,
                          const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tsr_fail(err, TSR_E_DATA, "%s:%d: %s", reader->path, reader->line,
                    text);
}

/* Reads one line without trailing blanks. Returns 0 at the end. */
static int read_line(tsr_table_reader *reader)
{
    if (*reader->rest == '\0')
        return 0;
    size_t n = strcspn(reader->rest, "\n");
    reader->text = reader->rest;
    reader->rest += n + (reader->rest[n] == '\n');
    reader->line++;
    while (n > 0 && strchr(" \t\r", reader->text[n - 1]) != NULL)
        n--;
    reader->text[n] = '\0';
    return 1;
}

static int is_key(const char *text)
{
    return strncmp(text, "#: ", 3) == 0;
}

static tsr_status append_source(tsr_table_reader *reader, tsr_err *err)
{
    const char *text = reader->text + (reader->text[1] == ' ' ? 2 : 1);
    size_t have = reader->source != NULL ? strlen(reader->source) : 0;
    size_t more = strlen(text) + 2;
    char *grown = realloc(reader->source, have + more);
    TSR_TRY(tsr_allocated(grown, err));
    snprintf(grown + have, more, "%s%s", have > 0 ? "\n" : "", text);
    reader->source = grown;
    return TSR_OK;
}

tsr_status tsr_table_next(tsr_table_reader *reader, tsr_err *err)
{
    /* The description ends with the first line that is not a comment. */
    int in_source = reader->line == 1;
    reader->type = TSR_LINE_END;
    while (read_line(reader)) {
        if (is_key(reader->text)) {
            reader->type = TSR_LINE_KEY;
            reader->text += 3;
            return TSR_OK;
        }
        if (reader->text[0] == '#') {
            if (in_source)
                TSR_TRY(append_source(reader, err));
        } else if (reader->text[strspn(reader->text, " \t")] != '\0') {
            reader->type = TSR_LINE_ROW;
            return TSR_OK;
        }
    }
    return TSR_OK;
}

tsr_status tsr_table_key(tsr_table_reader *reader, const char *word,
                         char **text, tsr_err *err)
{
    TSR_TRY(tsr_table_next(reader, err));
    size_t n = strlen(word);
    if (reader->type != TSR_LINE_KEY || strncmp(reader->text, word, n) != 0 ||
        (reader->text[n] != ' ' && reader->text[n] != '\0'))
        return tsr_table_fail(reader, err, "expected '#: %s ...'", word);
    *text = reader->text + n + (reader->text[n] == ' ');
    return TSR_OK;
}

tsr_status tsr_table_open(tsr_table_reader *reader, const char *path,
                          const char *format, tsr_err *err)
{
    size_t size;
    *reader = (tsr_table_reader){.path = path};
    TSR_TRY(tsr_file_read(path, &reader->data, &size, err));
    reader->rest = reader->data;
    if (read_line(reader) && is_key(reader->text) &&
        strcmp(reader->text + 3, format) == 0)
        return TSR_OK;
    reader->line = 1;
    (void)tsr_table_fail(reader, err,
                         "not a table of tessera: expected '#: %s'; "
                         "'tessera train' makes one",
                         format);
    tsr_table_close(reader);
    return TSR_E_DATA;
}

tsr_status tsr_table_numbers(const tsr_table_reader *reader, char **text, int n,
                             double *number, int last, const char *what,
                             tsr_err *err)
{
    for (int i = 0; i < n; i++) {
        char *end;
        number[i] = strtod(*text, &end);
        if (end == *text)
            return tsr_table_fail(
                reader, err, "%s: expected %d numbers, found %d", what, n, i);
        if (!isfinite(number[i]) ||
            (*end != '\0' && strchr(" \t", *end) == NULL))
            return tsr_table_fail(reader, err,
                                  "%s: '%.40s' is not a finite number", what,
                                  *text + strspn(*text, " \t"));
        *text = end;
    }
    if (last && (*text)[strspn(*text, " \t")] != '\0')
        return tsr_table_fail(reader, err, "%s: '%.40s' follows", what,
                              *text + strspn(*text, " \t"));
    return TSR_OK;
}

void tsr_table_close(tsr_table_reader *reader)
{
    free(reader->data);
    free(reader->source);
    *reader = (tsr_table_reader){0};
}

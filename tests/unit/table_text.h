/* A table's file as text, to be spoilt in one place and read again. */
#ifndef TSR_TESTS_TABLE_TEXT_H
#define TSR_TESTS_TABLE_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Caller frees; NULL where the file cannot be read. */
static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

/* Writes `text` with the first `old` after `after` replaced. Returns the number
 * of the line where that is, 0 where there is none. */
static int write_spoilt(const char *path, const char *text, const char *after,
                        const char *old, const char *new)
{
    const char *at = strstr(text, after);
    at = at != NULL ? strstr(at, old) : NULL;
    if (at == NULL)
        return 0;
    int line = 1;
    for (const char *c = text; c < at; c++)
        line += *c == '\n';
    FILE *file = fopen(path, "w");
    fwrite(text, 1, (size_t)(at - text), file);
    fprintf(file, "%s%s", new, at + strlen(old));
    fclose(file);
    return line;
}

#endif

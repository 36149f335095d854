/* All text is UTF-8. Names, units and paths may contain any bytes, so widths
 * count characters, and ill-formed bytes are replaced. */
#include "core/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

long tsr_utf8_next(const char **text)
{
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)*text;
    int n = s[0] < 0x80             ? 1
            : (s[0] & 0xe0) == 0xc0 ? 2
            : (s[0] & 0xf0) == 0xe0 ? 3
            : (s[0] & 0xf8) == 0xf0 ? 4
                                    : 0;
    long code = n == 1 ? s[0] : s[0] & (0x7f >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) { /* includes the final NUL */
            n = 0;
            break;
        }
        code = code << 6 | (s[i] & 0x3f);
    }
    /* overlong forms, surrogates and codes beyond Unicode are ill-formed */
    if (n == 0 || code < least[n] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff)) {
        *text += 1;
        return -1;
    }
    *text += n;
    return code;
}

int tsr_text_width(const char *text)
{
    int width = 0;
    for (; *text != '\0'; width++)
        tsr_utf8_next(&text);
    return width;
}

const char *tsr_text_excerpt(const char *text, char out[TSR_EXCERPT_SIZE])
{
    size_t n = 0;
    while (*text != '\0') {
        const char *from = text;
        long code = tsr_utf8_next(&text);
        size_t length = (size_t)(text - from);
        if (n + length + sizeof "..." > TSR_EXCERPT_SIZE) {
            memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        if (code < 0x20 || (code >= 0x7f && code < 0xa0))
            out[n++] = '?';
        else
            memcpy(out + n, from, length), n += length;
    }
    out[n] = '\0';
    return out;
}

void tsr_text_clean(char *text)
{
    const char *from = text;
    while (*from != '\0') {
        const char *next = from;
        const long code = tsr_utf8_next(&next);
        const long c = code >= 0 ? code : (unsigned char)*from;
        if ((c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7f && c < 0xa0))
            *text++ = '?';
        else
            for (; from < next; from++)
                *text++ = *from;
        from = next;
    }
    *text = '\0';
}

const char *tsr_text_shell(const char *name, char out[TSR_SHELL_SIZE])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                "UVWXYZ0123456789_./+-@%:,=";
    enum { LONGEST = 8, END = 2 }; /* of an escaped character: '$'\012'' */
    const int is_plain = *name != '\0' && name[strspn(name, plain)] == '\0';
    const char *mark = is_plain ? "" : "'";
    size_t n = (size_t)snprintf(out, TSR_SHELL_SIZE, "%s%s", mark,
                                *name == '-' ? "./" : "");
    for (; *name != '\0' && n + LONGEST + END < TSR_SHELL_SIZE; name++) {
        const unsigned char c = (unsigned char)*name;
        n += (size_t)snprintf(out + n, TSR_SHELL_SIZE - n,
                              c == '\''              ? "'\\''"
                              : c < ' ' || c == 0x7f ? "'$'\\%03o''"
                                                     : "%c",
                              c);
    }
    snprintf(out + n, TSR_SHELL_SIZE - n, "%s", mark);
    return *name == '\0' ? out : "...";
}

const char *tsr_text_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void tsr_text_wrap(FILE *out, int column, int indent, const char *prefix,
                   const char *text)
{
    int start = indent + tsr_text_width(prefix);
    int empty = 1; /* no word in this line yet */
    if (column == 0) {
        fprintf(out, "%*s%s", indent, "", prefix);
        column = start;
    }
    for (;;) {
        text += strspn(text, " \t\r\n");
        size_t n = strcspn(text, " \t\r\n");
        if (n == 0)
            break;
        int width = 0;
        for (const char *c = text; c < text + n; width++)
            tsr_utf8_next(&c);
        if (!empty && column + 1 + width > TSR_TEXT_COLUMNS) {
            fprintf(out, "\n%*s%s", indent, "", prefix);
            column = start;
            empty = 1;
        }
        if (!empty)
            fputc(' ', out), column++;
        fwrite(text, 1, n, out);
        column += width;
        empty = 0;
        text += n;
    }
    fputc('\n', out);
}

enum { NAME_MAX_LENGTH = 63 };

/* Optimal string alignment distance: Levenshtein distance with swaps of
 * neighbours (Damerau 1964). */
static int distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int row[3][NAME_MAX_LENGTH + 1];
    int *before = row[0], *last = row[1], *now = row[2];
    for (size_t j = 0; j <= n_b; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= n_a; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= n_b; j++) {
            int d = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < d)
                d = last[j] + 1;
            if (now[j - 1] + 1 < d)
                d = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            now[j] = d;
        }
        int *spare = before;
        before = last, last = now, now = spare;
    }
    return last[n_b];
}

void tsr_nearest_try(tsr_nearest *nearest, const char *name)
{
    size_t n_typed = strlen(nearest->typed), n_name = strlen(name);
    if (n_typed > NAME_MAX_LENGTH || n_name > NAME_MAX_LENGTH)
        return;
    int limit = n_typed < 6 ? 1 : (int)(n_typed / 3);
    int d = distance(nearest->typed, n_typed, name, n_name);
    if (d <= limit && (nearest->best == NULL || d < nearest->distance)) {
        nearest->best = name;
        nearest->distance = d;
    }
}

void tsr_text_escape(FILE *out, const char *text)
{
    static const char special[] = "<>&\"";
    static const char *const entity[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    for (; *text != '\0'; text++) {
        const char *at = strchr(special, *text);
        if (at != NULL)
            fputs(entity[at - special], out);
        else if (strchr("\t\n", *text) != NULL)
            fputc(*text, out);
        else
            fputc((unsigned char)*text < ' ' ? '?' : *text, out);
    }
}

void tsr_words_begin(tsr_words *words)
{
    *words = (tsr_words){NULL, NULL, 0};
    words->out = open_memstream(&words->text, &words->size);
}

void tsr_words_add(tsr_words *words, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (words->out != NULL)
        vfprintf(words->out, format, list);
    va_end(list);
}

char *tsr_words_end(tsr_words *words)
{
    if (words->out == NULL)
        return NULL;
    int failed = ferror(words->out);
    failed |= fclose(words->out) != 0;
    words->out = NULL;
    if (!failed)
        return words->text;
    free(words->text);
    return NULL;
}

tsr_status tsr_words_print(tsr_words *words, FILE *out, int indent,
                           const char *before, tsr_err *err)
{
    char *rest, *text = tsr_words_end(words);
    TSR_TRY(tsr_allocated(text, err));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        fputs(before, out);
        tsr_text_wrap(out, 0, indent, "", line);
    }
    free(text);
    return TSR_OK;
}

char *tsr_text_format_list(const char *format, va_list list)
{
    tsr_words words;
    tsr_words_begin(&words);
    if (words.out != NULL)
        vfprintf(words.out, format, list);
    return tsr_words_end(&words);
}

char *tsr_text_format(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = tsr_text_format_list(format, list);
    va_end(list);
    return text;
}

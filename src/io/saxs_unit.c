/* The unit of q in header lines, as people write it: 1/nm, nm^-1, nm-1,
 * 1/A, A^-1, 1/Angstrom, in brackets, LaTeX or with superscripts. */
#include "io/saxs_table.h"

#include <ctype.h>
#include <string.h>

enum { LINE = 512 };

typedef struct {
    const char *text;
    tsr_q_unit unit;
} unit_word;

/* A longer word comes before its beginning. */
static const unit_word words[] = {
    {"nanometers", TSR_Q_INV_NM}, {"nanometres", TSR_Q_INV_NM},
    {"nanometer", TSR_Q_INV_NM},  {"nanometre", TSR_Q_INV_NM},
    {"nm", TSR_Q_INV_NM},         {"angstroms", TSR_Q_INV_ANG},
    {"angstroem", TSR_Q_INV_ANG}, {"angstrom", TSR_Q_INV_ANG},
    {"ang", TSR_Q_INV_ANG},       {"aa", TSR_Q_INV_ANG},
    {"a", TSR_Q_INV_ANG},
};

static int starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Lower case, the signs for Angstrom spelled out (UTF-8 in its two forms and
 * Latin-1), superscripts as ^-1, and without the marks of LaTeX. */
static void simplify(const char *line, size_t size, char out[LINE])
{
    static const struct {
        const char *from, *to;
    } sign[] = {
        {"\xc3\x85", "angstrom"}, {"\xe2\x84\xab", "angstrom"},
        {"\xc3\xa5", "angstrom"}, {"\xe2\x81\xbb", "^-"},
        {"\xc2\xb9", "1"},        {"\xe2\x88\x92", "-"},
        {"\xe2\x80\x93", "-"},    {"\xc5", "angstrom"},
    };
    size_t n = 0;
    for (size_t i = 0; i < size && n + 10 < LINE;) {
        size_t k = 0, n_sign = sizeof sign / sizeof sign[0];
        while (k < n_sign &&
               (strlen(sign[k].from) > size - i ||
                memcmp(line + i, sign[k].from, strlen(sign[k].from)) != 0))
            k++;
        if (k < n_sign) {
            memcpy(out + n, sign[k].to, strlen(sign[k].to));
            n += strlen(sign[k].to);
            i += strlen(sign[k].from);
            continue;
        }
        char c = line[i++];
        if (c == '(' && i < size && line[i] == '-')
            continue;
        if (strchr("{}\\$*", c) == NULL)
            out[n++] = (char)tolower((unsigned char)c);
    }
    out[n] = '\0';
}

/* "^-1", "-1", " ^ -1" right after the unit. */
static int has_exponent(const char *after, int *has_caret)
{
    *has_caret = 0;
    while (*after == ' ' || *after == '^') {
        *has_caret |= *after == '^';
        after++;
    }
    return starts(after, "-1") && !isalnum((unsigned char)after[2]) &&
           after[2] != '.';
}

/* "1/", "1 / ", "inverse ", "per " right before the unit. */
static int has_reciprocal(const char *begin, const char *unit)
{
    while (unit > begin && unit[-1] == ' ')
        unit--;
    size_t n = (size_t)(unit - begin);
    if (n >= 7 && starts(unit - 7, "inverse"))
        return 1;
    if (n == 0 || unit[-1] != '/')
        return 0;
    for (unit--, n--; n > 0 && unit[-1] == ' '; n--)
        unit--;
    return n > 0 && unit[-1] == '1' &&
           (n == 1 || (!isalnum((unsigned char)unit[-2]) && unit[-2] != '.'));
}

/* The line speaks of q (or s, as ATSAS calls it) before this place. */
static int names_q(const char *begin, const char *unit)
{
    for (const char *p = begin; p < unit; p++)
        if ((*p == 'q' || *p == 's') &&
            (p == begin || !isalnum((unsigned char)p[-1])) &&
            !isalnum((unsigned char)p[1]))
            return 1;
    return 0;
}

static int is_in_brackets(const char *begin, const char *unit)
{
    return unit > begin && (unit[-1] == '[' || unit[-1] == '(');
}

tsr_q_unit tsr_saxs_header_unit(const char *line, size_t size, int is_loose)
{
    char text[LINE];
    simplify(line, size, text);
    for (const char *p = text; *p != '\0'; p++) {
        if (p > text && isalnum((unsigned char)p[-1]))
            continue;
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            size_t n = strlen(words[k].text);
            if (!starts(p, words[k].text) || isalnum((unsigned char)p[n]))
                continue;
            int has_caret;
            if (has_reciprocal(text, p))
                return words[k].unit;
            /* "A-1" is also what people call samples. */
            if (has_exponent(p + n, &has_caret) &&
                (has_caret || n > 1 || is_in_brackets(text, p) ||
                 names_q(text, p)))
                return words[k].unit;
            const char *colon = p;
            while (colon > text && colon[-1] == ' ')
                colon--;
            int after_colon =
                colon > text && (colon[-1] == ':' || colon[-1] == '=');
            if (is_loose && names_q(text, p) &&
                (is_in_brackets(text, p) || after_colon))
                return words[k].unit;
            break;
        }
    }
    return TSR_Q_AUTO;
}

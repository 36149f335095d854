/* Finds the table of numbers in a text that may have headers, comments and
 * footers anywhere: the longest run of rows of one width. Also reads the unit
 * of q out of what the headers say. */
#include "scattering/saxs.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { LINE_TEXT, LINE_ROW, LINE_BROKEN } line_kind;

typedef struct {
    tsr_saxs_row *row;
    int n, room;
} row_list;

typedef struct {
    row_list row;
    row_list broken; /* lines that begin as rows and hold something else */
} line_list;

static const char separators[] = " \t\r\v\f,;\"\x1a";

/* The line without its comment. */
static size_t cut_comment(const char *line, size_t size)
{
    size_t n = 0;
    while (n < size && line[n] != '#' && line[n] != '!')
        n++;
    return n;
}

/* Whether commas in this line are decimal points: each stands between two
 * digits, there is no point, and something else separates the numbers. */
static int has_decimal_comma(const char *line, size_t size)
{
    int n_comma = 0, separated = 0, in_number = 0;
    for (size_t i = 0; i < size; i++) {
        char c = line[i];
        if (c == '.')
            return 0;
        if (c == ',') {
            if (i == 0 || i + 1 == size ||
                !isdigit((unsigned char)line[i - 1]) ||
                !isdigit((unsigned char)line[i + 1]))
                return 0;
            n_comma++;
        } else if (c != '\0' && strchr(separators, c) != NULL) {
            in_number = 0;
        } else if (!in_number) {
            separated += i > 0;
            in_number = 1;
        }
    }
    /* The first token may start the line or follow blanks. */
    if (size > 0 && strchr(separators, line[0]) != NULL)
        separated--;
    return n_comma > 0 && separated > 0;
}

/* One token as a number, whole or not at all. Fortran's 1.0D-02 is one. */
static int parse_number(const char *token, size_t size, int decimal_comma,
                        double *value)
{
    char text[64];
    if (size == 0 || size >= sizeof text)
        return 0;
    for (size_t i = 0; i < size; i++) {
        char c = token[i];
        if (c == 'x' || c == 'X')
            return 0; /* strtod would read hexadecimal */
        if ((c == 'd' || c == 'D') && i > 0 &&
            (isdigit((unsigned char)token[i - 1]) || token[i - 1] == '.'))
            c = 'e';
        if (c == ',' && decimal_comma)
            c = '.';
        text[i] = c;
    }
    text[size] = '\0';
    char *end;
    *value = strtod(text, &end);
    return *end == '\0';
}

static line_kind read_line(const char *line, size_t size, tsr_saxs_row *row)
{
    size = cut_comment(line, size);
    int comma = has_decimal_comma(line, size);
    int n_token = 0, n_number = 0, n_leading = 0;
    row->width = 0;
    for (size_t i = 0; i < size;) {
        if (line[i] != '\0' && strchr(separators, line[i]) != NULL &&
            !(line[i] == ',' && comma)) {
            i++;
            continue;
        }
        size_t from = i;
        while (i < size &&
               (line[i] == '\0' || strchr(separators, line[i]) == NULL ||
                (line[i] == ',' && comma)))
            i++;
        double value;
        int is_number = parse_number(line + from, i - from, comma, &value);
        if (is_number && n_leading == n_token) {
            if (n_leading < 5)
                row->value[n_leading] = value;
            n_leading++;
        }
        n_number += is_number && n_token < 3;
        n_token++;
        if (n_token == 1 && !is_number)
            return LINE_TEXT;
    }
    row->width = n_leading;
    if (n_leading >= 3 || (n_leading == 2 && n_token == 2))
        return LINE_ROW;
    /* "0.1 2.3 N/A" or "0.1 **** 0.2", but not "3 frames averaged". */
    return n_number >= 2 ? LINE_BROKEN : LINE_TEXT;
}

static int add_row(row_list *list, const tsr_saxs_row *row)
{
    if (list->n == list->room) {
        int room = list->room > 0 ? 2 * list->room : 512;
        tsr_saxs_row *more =
            realloc(list->row, (size_t)room * sizeof *list->row);
        if (more == NULL)
            return 0;
        list->row = more;
        list->room = room;
    }
    list->row[list->n++] = *row;
    return 1;
}

/* Where the line ends: at \n, \r\n (then at its \n) or a lone \r. */
static const char *line_end(const char *p, const char *end)
{
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    return p + 1 < end && p[0] == '\r' && p[1] == '\n' ? p + 1 : p;
}

static int list_lines(const char *text, size_t size, line_list *list)
{
    const char *end = text + size;
    long number = 1;
    for (const char *p = text; p < end; number++) {
        const char *stop = line_end(p, end);
        tsr_saxs_row row = {.line = number};
        line_kind kind = read_line(p, (size_t)(stop - p), &row);
        if (kind != LINE_TEXT &&
            !add_row(kind == LINE_ROW ? &list->row : &list->broken, &row))
            return 0;
        p = stop + 1;
    }
    return 1;
}

static int columns(const tsr_saxs_row *row)
{
    return row->width < 3 ? row->width : 3;
}

enum { MIN_TABLE = 5, MOST_BESIDE = 4 };

/* A few rows at the end that leap away in q are a footer's numbers, which must
 * not decide the unit: after other text by ten of the widest steps so far,
 * without it by ten times the whole range. Returns where the table ends. */
static int cut_footer(const tsr_saxs_row *row, int from, int to)
{
    double widest = 0.0;
    for (int k = from + 1; k < to; k++) {
        double step = row[k].value[0] - row[k - 1].value[0];
        int is_apart = row[k].line > row[k - 1].line + 1;
        double usual =
            is_apart ? widest : row[k - 1].value[0] - row[from].value[0];
        if (k - from >= MIN_TABLE && to - k <= MOST_BESIDE && isfinite(step) &&
            step > 10.0 * usual)
            return k;
        widest = fmax(widest, step);
    }
    return to;
}

/* Rows [*from, *to): the longest run of one width, and the rows beside it that
 * have the columns we read and continue q (a flag that some rows lack does not
 * cut a table). */
static void find_run(const row_list *list, int *from, int *to)
{
    const tsr_saxs_row *row = list->row;
    *from = *to = 0;
    for (int a = 0, b; a < list->n; a = b) {
        for (b = a + 1; b < list->n && row[b].width == row[a].width;)
            b++;
        if (b - a > *to - *from)
            *from = a, *to = b;
    }
    if (*to == 0)
        return;
    int need = columns(&row[*from]);
    while (*to < list->n && columns(&row[*to]) == need &&
           row[*to].value[0] > row[*to - 1].value[0])
        ++*to;
    while (*from > 0 && columns(&row[*from - 1]) == need &&
           row[*from - 1].value[0] < row[*from].value[0])
        --*from;
    /* Numbers of a header are beyond the q of the rows. */
    for (int i = 0; i < MOST_BESIDE && *from + MIN_TABLE < *to; i++)
        *from += row[*from].value[0] > row[(*from + *to) / 2].value[0];
    *to = cut_footer(row, *from, *to);
}

/* A row with too few columns must not cut the table unnoticed. */
static tsr_status check_cut(const char *path, const row_list *list, int from,
                            int to, tsr_err *err)
{
    const tsr_saxs_row *row = list->row;
    int need = columns(&row[from]), k = to, cut = -1;
    while (k < list->n && columns(&row[k]) != need)
        k++;
    if (k > to && k < list->n && row[k].value[0] > row[to - 1].value[0])
        cut = to;
    for (k = from - 1; k >= 0 && columns(&row[k]) != need;)
        k--;
    if (cut < 0 && k >= 0 && k < from - 1 &&
        row[k].value[0] < row[from].value[0])
        cut = from - 1;
    if (cut < 0)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s', line %ld: %d columns where the table has %d; "
                    "complete the line or remove it",
                    path, row[cut].line, row[cut].width, row[from].width);
}

/* Does column 1 count the rows, and column 2 ascend as q does? */
static int has_index(const tsr_saxs_table *table)
{
    const tsr_saxs_row *row = table->row;
    int is_index = table->n >= 5 && row[0].width >= 3;
    for (int i = 0; i < table->n && is_index; i++)
        is_index = row[i].value[0] == row[0].value[0] + i &&
                   row[i].value[0] == floor(row[i].value[0]) &&
                   (i == 0 || row[i].value[1] > row[i - 1].value[1]);
    return is_index;
}

static void drop_index(tsr_saxs_table *table)
{
    table->has_index = 1;
    for (int i = 0; i < table->n; i++) {
        tsr_saxs_row *row = &table->row[i];
        memmove(row->value, row->value + 1, 4 * sizeof *row->value);
        row->width--;
    }
    table->has_sigma = columns(&table->row[0]) == 3;
}

/* The header nearest to the table decides; what follows it only where no header
 * says anything. */
static tsr_q_unit find_unit(const char *text, size_t size, long first)
{
    tsr_q_unit strict = TSR_Q_AUTO, loose = TSR_Q_AUTO, after = TSR_Q_AUTO;
    const char *end = text + size;
    long number = 1;
    for (const char *p = text; p < end; number++) {
        const char *stop = line_end(p, end);
        size_t n = (size_t)(stop - p);
        tsr_saxs_row row;
        if (read_line(p, n, &row) != LINE_ROW) {
            tsr_q_unit unit = tsr_saxs_header_unit(p, n, 0);
            if (unit != TSR_Q_AUTO && number < first)
                strict = unit;
            if (unit != TSR_Q_AUTO && number > first && after == TSR_Q_AUTO)
                after = unit;
            unit = tsr_saxs_header_unit(p, n, 1);
            if (unit != TSR_Q_AUTO && number < first)
                loose = unit;
        }
        p = stop + 1;
    }
    return strict != TSR_Q_AUTO ? strict : loose != TSR_Q_AUTO ? loose : after;
}

tsr_status tsr_saxs_table_find(const char *path, const char *text, size_t size,
                               tsr_saxs_table *table, tsr_err *err)
{
    memset(table, 0, sizeof *table);
    if (memchr(text, '\0', size) != NULL)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is not a text file; give a table of q, I, sigma",
                        path);
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; /* byte order mark */
        size -= 3;
    }
    line_list lines = {0};
    row_list *list = &lines.row, *broken = &lines.broken;
    tsr_status status = TSR_OK;
    if (!list_lines(text, size, &lines)) {
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
        goto done;
    }
    int from = 0, to = 0;
    if (list->n > 0)
        find_run(list, &from, &to);
    const long first = to > 0 ? list->row[from].line : 0;
    const long last = to > 0 ? list->row[to - 1].line : 0;
    for (int i = 0; i < broken->n; i++) {
        const long line = broken->row[i].line;
        if ((line > first && line < last) ||
            (broken->n >= MIN_TABLE && broken->n > to - from)) {
            status = tsr_fail(err, TSR_E_DATA,
                              "'%s', line %ld: one of the first three columns "
                              "is not a number (nor is 3%%: give sigma in "
                              "units of I); correct the line or remove it",
                              path, line);
            goto done;
        }
    }
    if (to == 0) {
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s' holds no table: no line has two numbers or "
                          "more; give q, I and sigma in columns",
                          path);
        goto done;
    }
    status = check_cut(path, list, from, to, err);
    if (status != TSR_OK)
        goto done;
    table->n_unused = list->n - (to - from);
    if (table->n_unused > 0)
        table->first_unused = list->row[from > 0 ? 0 : to].line;
    table->n = to - from;
    table->has_sigma = columns(&list->row[from]) == 3;
    table->unit = find_unit(text, size, first);
    memmove(list->row, list->row + from, (size_t)table->n * sizeof *list->row);
    table->row = list->row;
    list->row = NULL;
    if (has_index(table))
        drop_index(table);
    table->has_dq = 1;
    for (int i = 0; i < table->n; i++)
        table->has_dq &= table->row[i].width >= 4;
done:
    free(list->row);
    free(broken->row);
    return status;
}

/* The unit of q in header lines, as people write it: 1/nm, nm^-1, nm-1,
 * 1/A, A^-1, 1/Angstrom, in brackets, LaTeX or with superscripts. */

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

/* Finds the table of numbers in a text with headers, comments and footers
 * anywhere: the longest run of rows of equal width. Also finds the unit of q in
 * the headers, and the columns of other programs. */
#include "scattering/saxs_table.h"

#include "files/file.h"
#include "store/cansas.h"

#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { LINE_TEXT, LINE_ROW, LINE_BROKEN } line_kind;

typedef struct {
    tsr_saxs_row *row;
    int n;
} row_list;

static const char separators[] = " \t\r\v\f,;\"\x1a";

/* 1 if the commas of a line are decimal commas: each lies between two digits,
 * the line has no point, and another character separates the numbers. */
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
    /* the first token may start the line or follow a separator */
    if (size > 0 && strchr(separators, line[0]) != NULL)
        separated--;
    return n_comma > 0 && separated > 0;
}

/* Converts a whole token to a number; accepts Fortran's 1.0D-02. */
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
    for (size_t n = 0; n < size; n++)
        if (line[n] == '#' || line[n] == '!')
            size = n; /* a comment */
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
            if (n_leading < TSR_CANSAS_N)
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
    /* "0.1 2.3 N/A" or "0.1 **** 0.2" are broken rows; "3 frames averaged" is
     * text */
    return n_number >= 2 ? LINE_BROKEN : LINE_TEXT;
}

static void add_row(tsr_pool *pool, row_list *list, const tsr_saxs_row *row)
{
    if ((list->n & (list->n - 1)) == 0) { /* full at 1, 2, 4, 8, ... */
        tsr_saxs_row *more = tsr_pool_resize(
            pool, list->row, 2 * (size_t)list->n + 1, sizeof *more);
        if (more == NULL)
            return;
        list->row = more;
    }
    list->row[list->n++] = *row;
}

/* End of a line: at \n, at the \n of \r\n, or at a lone \r. */
static const char *line_end(const char *p, const char *end)
{
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    return p + 1 < end && p[0] == '\r' && p[1] == '\n' ? p + 1 : p;
}

/* Lists the rows of the text. broken out: lines that begin with a number, are
 * no rows, and have at least two numbers among their first three words. */
static void list_lines(const char *text, const char *end, tsr_pool *pool,
                       row_list *list, row_list *broken)
{
    long number = 1;
    for (const char *p = text; p < end; number++) {
        const char *stop = line_end(p, end);
        tsr_saxs_row row = {.line = number};
        const line_kind kind = read_line(p, (size_t)(stop - p), &row);
        if (kind != LINE_TEXT)
            add_row(pool, kind == LINE_ROW ? list : broken, &row);
        p = stop + 1;
    }
}

static int columns(const tsr_saxs_row *row)
{
    return row->width < 3 ? row->width : 3;
}

enum { MIN_TABLE = 5, MOST_BESIDE = 4 };

/* Returns the end of the table without a footer. A footer is a few last rows
 * with a large step in q, whose numbers must not affect the unit. After other
 * text, a step of ten times the widest previous step counts as large. Directly
 * after the table, it must be ten times the whole range. */
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

/* Finds the rows [*from, *to): the longest run of equal width, extended by
 * adjacent rows that have the needed columns and continue q. A column beyond
 * the third that some rows lack thus does not split a table. */
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
    /* rows of numbers in a header have a q above that of the table */
    for (int i = 0; i < MOST_BESIDE && *from + MIN_TABLE < *to; i++)
        *from += row[*from].value[0] > row[(*from + *to) / 2].value[0];
    *to = cut_footer(row, *from, *to);
}

/* Refuses a row with too few columns that would silently split the table. */
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

/* 1 if column 1 numbers the rows and column 2 ascends like q. */
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

/* ---- files of other programs ---- */

/* 1 if a column is a fit: within a factor of two of I at nine of ten points of
 * the first half. A sigma as large as I differs more at half of the points,
 * because I then scatters by as much. */
static int is_fit(const tsr_saxs_table *table, int column)
{
    const int half = table->n / 2;
    int n_near = 0;
    for (int i = 0; i < half; i++) {
        const double *v = table->row[i].value;
        n_near += v[column] > 0.5 * v[1] && v[column] < 2.0 * v[1];
    }
    return half >= 15 && 10 * n_near >= 9 * half;
}

/* Finds out which columns are sigma and sigma of q. */
static void find_columns(const char *path, const char *text,
                         tsr_saxs_table *table)
{
    const size_t n = strlen(path);
    const int is_fit_3 = table->has_sigma && is_fit(table, 2);
    const int is_fit_4 = table->has_dq && is_fit(table, 3);
    if (strstr(text, "Dif/Atom/Shape/Bord") != NULL ||
        (table->row[0].width >= 5 && n > 4 &&
         strcmp(path + n - 4, ".int") == 0)) {
        table->note = "CRYSOL's columns q and I: computed, not measured";
        table->has_sigma = 0;
    } else if (is_fit_3 && table->has_dq && !is_fit_4) {
        table->note = "column 3 is a fit, and column 4 sigma";
        for (int i = 0; i < table->n; i++)
            table->row[i].value[2] = table->row[i].value[3];
    } else if (is_fit_3) {
        table->note = "column 3 is a fit, and no column is sigma";
        table->has_sigma = 0;
    }
    table->has_dq = table->has_dq && !is_fit_4 && table->note == NULL;
}

/* Converts a curve of canSAS or sasCIF, all q to the unit of Q. A resolution of
 * 0 at all points is none. */
static tsr_status convert(const char *path, tsr_cansas *c, tsr_pool *pool,
                          tsr_saxs_table *table, tsr_err *err)
{
    double scale[TSR_CANSAS_N];
    table->n = c->n;
    table->row = c->point;
    table->has_sigma = c->has[TSR_CANSAS_IDEV];
    if (c->n_data > 1)
        table->note =
            tsr_pool_format(pool, "the first of %d curves is read", c->n_data);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int k = 0; k < TSR_CANSAS_N; k++) {
        char text[TSR_CANSAS_UNIT + 8];
        int is_loose;
        snprintf(text, sizeof text, "q [%s]", c->unit[k]);
        const tsr_q_unit unit =
            tsr_saxs_header_unit(text, strlen(text), &is_loose);
        table->unit = k == TSR_CANSAS_Q ? unit : table->unit;
        if (table->unit == TSR_Q_AUTO && c->unit[TSR_CANSAS_Q][0] != '\0')
            table->note = "the unit of q is neither 1/A nor 1/nm";
        scale[k] = unit == table->unit || unit == TSR_Q_AUTO ? 1.0
                   : unit == TSR_Q_INV_NM                    ? 0.1
                                                             : 10.0;
    }
    for (int i = 0; i < c->n; i++) {
        double *v = c->point[i].value;
        v[TSR_CANSAS_QDEV] *= scale[TSR_CANSAS_QDEV];
        table->has_dq |= c->has[TSR_CANSAS_QDEV] && v[TSR_CANSAS_QDEV] != 0.0;
        for (int k = TSR_CANSAS_DQL; k < TSR_CANSAS_N; k++) {
            if (c->has[k] && fabs(v[k] - c->point->value[k]) > 0.01 * v[k])
                return tsr_fail(err, TSR_E_DATA,
                                "'%s': the slit (dQl, dQw) differs between "
                                "points, which is not supported",
                                path);
            if (c->has[k])
                table->slit[k - TSR_CANSAS_DQL] = v[k] * scale[k];
        }
    }
    table->has_named_dq =
        table->has_dq || table->slit[0] > 0.0 || table->slit[1] > 0.0;
    return c->n > 0 ? TSR_OK
                    : tsr_fail(err, TSR_E_DATA, "'%s': the curve has no points",
                               path);
}

/* ---- the table of a text ---- */

/* The last header line above the table decides. Lines below it count only if no
 * header states a unit. */
static tsr_q_unit find_unit(const char *text, const char *end, long first)
{
    tsr_q_unit strict = TSR_Q_AUTO, loose = TSR_Q_AUTO, after = TSR_Q_AUTO;
    long number = 1;
    for (const char *p = text; p < end; number++) {
        const char *stop = line_end(p, end);
        const size_t n = (size_t)(stop - p);
        tsr_saxs_row row;
        int is_loose = 0;
        tsr_q_unit unit = TSR_Q_AUTO;
        if (read_line(p, n, &row) != LINE_ROW)
            unit = tsr_saxs_header_unit(p, n, &is_loose);
        if (unit != TSR_Q_AUTO && number < first)
            *(is_loose ? &loose : &strict) = unit;
        else if (unit != TSR_Q_AUTO && !is_loose && after == TSR_Q_AUTO)
            after = unit;
        p = stop + 1;
    }
    return strict != TSR_Q_AUTO ? strict : loose != TSR_Q_AUTO ? loose : after;
}

/* Refuses broken rows within the table, and a file with more broken rows than
 * rows in the table. */
static tsr_status check_broken(const char *path, const row_list *broken,
                               long first, long last, int n, tsr_err *err)
{
    for (int i = 0; i < broken->n; i++) {
        const long line = broken->row[i].line;
        if ((line > first && line < last) ||
            (broken->n >= MIN_TABLE && broken->n > n))
            return tsr_fail(
                err, TSR_E_DATA,
                "'%s', line %ld: one of the first three columns is not a "
                "number (3%% is not a number either: give sigma in units of "
                "I); correct the line or remove it",
                path, line);
    }
    return TSR_OK;
}

static tsr_status find_table(const char *path, const char *text, size_t size,
                             tsr_pool *pool, tsr_saxs_table *table,
                             tsr_err *err)
{
    const char *gnom = strstr(text, "J EXP"); /* P(r) follows the curve */
    const char *p_of_r = gnom != NULL ? strstr(gnom, "P(R)") : NULL;
    const char *end = p_of_r != NULL ? p_of_r : text + size;
    row_list list = {0}, broken = {0};
    int from, to;
    if (memchr(text, '\0', size) != NULL)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is not a text file; give a table of q, I, sigma",
                        path);
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3; /* skips a byte order mark */
    list_lines(text, end, pool, &list, &broken);
    if (pool->failed)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
    find_run(&list, &from, &to);
    const long first = to > 0 ? list.row[from].line : 0;
    const long last = to > 0 ? list.row[to - 1].line : 0;
    TSR_TRY(check_broken(path, &broken, first, last, to - from, err));
    if (to == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' holds no table: no line has two numbers or "
                        "more; give q, I and sigma in columns",
                        path);
    TSR_TRY(check_cut(path, &list, from, to, err));
    *table = (tsr_saxs_table){.row = list.row + from,
                              .n = to - from,
                              .has_sigma = columns(&list.row[from]) == 3,
                              .has_dq = 1,
                              .n_unused = list.n - (to - from),
                              .noun = "line",
                              .unit = find_unit(text, end, first)};
    if (table->n_unused > 0)
        table->first_unused = list.row[from > 0 ? 0 : to].line;
    if (has_index(table))
        drop_index(table);
    for (int i = 0; i < table->n; i++)
        table->has_dq &= table->row[i].width >= 4;
    find_columns(path, text, table);
    return TSR_OK;
}

tsr_status tsr_saxs_table_read(const char *path, tsr_pool *pool,
                               tsr_saxs_table *table, tsr_err *err)
{
    char *text;
    size_t size;
    TSR_TRY(tsr_file_read(path, &text, &size, err));
    tsr_cansas curve;
    const int is_hdf5 = size >= 8 && memcmp(text, "\x89HDF\r\n\x1a\n", 8) == 0;
    const char *start = text + strspn(text, "\xef\xbb\xbf \t\r\n");
    const int is_xml = *start == '<', is_cif = tsr_sas_is_cif(text, size);
    *table = (tsr_saxs_table){.noun = is_hdf5 || is_cif ? "point" : "line"};
    tsr_status status =
        is_hdf5  ? tsr_cansas_read_hdf5(path, pool, &curve, err)
        : is_xml ? tsr_cansas_read_xml(path, start, pool, &curve, err)
        : is_cif ? tsr_sas_entry_read(path, text, size, pool, &table->entry,
                                      &curve, err)
                 : find_table(path, text, size, pool, table, err);
    if (is_hdf5 || is_xml || is_cif)
        TSR_THEN(status, convert(path, &curve, pool, table, err));
    free(text);
    return status;
}

/* ---- the unit of q in header lines ----
 *
 * Common notations: 1/nm, nm^-1, nm-1, 1/A, A^-1, 1/Angstrom, in brackets, in
 * LaTeX or with superscripts. */

enum { LINE = 512 };

/* Converts to lower case, replaces signs for Angstrom (two forms in UTF-8, and
 * Latin-1) and superscripts by ASCII, and removes LaTeX markup. */
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

/* 1 if an extended regular expression matches a part of the text. *at and *end
 * out, unless at is NULL: where its second group begins and ends. */
static int matches(const char *text, const char *pattern, size_t *at,
                   size_t *end)
{
    regex_t regex;
    regmatch_t part[3];
    if (regcomp(&regex, pattern, REG_EXTENDED) != 0)
        return 0;
    const int is_found = regexec(&regex, text, 3, part, 0) == 0;
    regfree(&regex);
    if (is_found && at != NULL) {
        *at = (size_t)part[2].rm_so;
        *end = (size_t)part[2].rm_eo;
    }
    return is_found;
}

static int contains(const char *text, const char *pattern)
{
    return matches(text, pattern, NULL, NULL);
}

/* 1 if the unit between the texts `before` and `after` is an inverse length, or
 * (*is_loose 1) a bare unit after the letter q or s. is_short: the unit is a
 * single letter. */
static int is_inverse(const char *before, const char *after, int is_short,
                      int *is_loose)
{
    const int is_in_brackets = contains(before, "[[(]$");
    /* ATSAS calls q s */
    const int names_q = contains(before, "(^|[^a-z0-9])[qs]([^a-z0-9]|$)");
    *is_loose = 0;
    if (contains(before, "(inverse|(^|[^a-z0-9.])1 */) *$"))
        return 1;
    /* "A-1" may also be the name of a sample */
    if (contains(after, "^[ ^]*-1([^a-z0-9.]|$)") &&
        (contains(after, "^ *\\^") || !is_short || is_in_brackets || names_q))
        return 1;
    *is_loose = names_q && (is_in_brackets || contains(before, "[:=] *$"));
    return *is_loose;
}

tsr_q_unit tsr_saxs_header_unit(const char *line, size_t size, int *is_loose)
{
    static const char unit[] = "(^|[^a-z0-9])(nanomet(er|re)s?|nm|"
                               "angstroe?ms?|ang|aa?)([^a-z0-9]|$)";
    char text[LINE], before[LINE];
    tsr_q_unit loose = TSR_Q_AUTO;
    size_t from = 0, at, end;
    simplify(line, size, text);
    while (matches(text + from, unit, &at, &end)) {
        const char *word = text + from + at;
        const tsr_q_unit is = *word == 'n' ? TSR_Q_INV_NM : TSR_Q_INV_ANG;
        snprintf(before, sizeof before, "%.*s", (int)(word - text), text);
        if (is_inverse(before, text + from + end, end == at + 1, is_loose)) {
            if (!*is_loose)
                return is;
            loose = loose == TSR_Q_AUTO ? is : loose;
        }
        from += end;
    }
    *is_loose = loose != TSR_Q_AUTO;
    return loose;
}

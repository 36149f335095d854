/* The files of form factors: ours, of one component or of three, and those that
 * others published.
 *
 * Ours are tables of molecule/table_file.h. Both kinds have the same build, but
 * one component has F and P, as the field prints them, with nine digits, and
 * three have F and E; the heading of a type says what else is known of it. */
#include "scattering/form_factor.h"

#include "core/text.h"
#include "files/file.h"
#include "molecule/table_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUE = TSR_N_COMP + TSR_N_COMP_PAIR };

const char *tsr_form_factor_format(int n_comp)
{
    return n_comp == 1 ? "tessera form factors 1" : "tessera components 2";
}

/* ---- our own ---- */

static void set_row(tsr_form_factor_table *table, int t, int k,
                    const double *value)
{
    int row = t * table->n_q + k, block = table->n_type * table->n_q;
    for (int c = 0; c < table->n_comp; c++)
        table->amplitude[c * block + row] = value[c];
    for (int p = 0; p < table->n_pair; p++)
        table->excess[p * block + row] = value[table->n_comp + p];
    if (table->n_comp == 1)
        table->excess[row] -= value[0] * value[0];
}

static tsr_status read_numbers(tsr_table_reader *r, const char *key, int n,
                               double *v, tsr_err *err)
{
    char *text;
    tsr_status s = tsr_table_key(r, key, &text, err);
    return s == TSR_OK ? tsr_table_numbers(r, &text, n, v, 1, key, err) : s;
}

static tsr_status read_head(tsr_table_reader *r, int n_comp,
                            tsr_form_factor_table **out, tsr_err *err)
{
    char *text;
    double grid[2], reach[2];
    tsr_status s = tsr_table_key(r, "bodies", &text, err);
    if (s != TSR_OK)
        return s;
    tsr_body_model model = TSR_BODIES_ONE;
    if (strcmp(text, "two") == 0)
        model = TSR_BODIES_TWO;
    else if (strcmp(text, "one") != 0)
        return tsr_table_bad(r, err, "bodies '%s': expected one or two", text);
    if ((s = read_numbers(r, "grid", 2, grid, err)) != TSR_OK)
        return s;
    if (grid[0] < 3.0 || grid[0] > 100000.0 || grid[0] != floor(grid[0]) ||
        grid[1] <= 0.0)
        return tsr_table_bad(r, err,
                             "grid: expected 3 to 100000 points and a step "
                             "above 0");
    *out = tsr_form_factor_new(model, n_comp, (int)grid[0], grid[1]);
    if (*out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", r->path);
    if (n_comp == 1)
        return TSR_OK;
    if ((s = read_numbers(r, "neighbours", 2, reach, err)) != TSR_OK)
        return s;
    if (reach[0] < 0.0 || reach[1] <= reach[0])
        return tsr_table_bad(r, err,
                             "neighbours: expected two distances, ascending");
    (*out)->exposure.near_ang = reach[0];
    (*out)->exposure.far_ang = reach[1];
    return read_numbers(r, "carry", 1, &(*out)->exposure.carry, err);
}

static tsr_status read_type(tsr_table_reader *r, tsr_form_factor_table *table,
                            int t, tsr_err *err)
{
    char *text;
    double v[6];
    int one = table->n_comp == 1;
    tsr_status s = tsr_table_key(r, "type", &text, err);
    TSR_THEN(s, tsr_table_numbers(r, &text, one ? 3 : 6, v, 0, "type", err));
    if (s != TSR_OK)
        return s;
    const char *name = tsr_body_type_name(table->model, t);
    text += strspn(text, " \t");
    if (v[0] != (double)t || strcmp(text, name) != 0)
        return tsr_table_bad(r, err, "expected type %d, '%s'", t, name);
    if (one && (v[1] < 0.0 || v[1] != floor(v[1]) || v[1] > 1e15 || v[2] < 0.0))
        return tsr_table_bad(r, err,
                             "type %d: expected a count and a square radius, "
                             "neither negative",
                             t);
    if (!one && (v[1] <= 0.0 || v[2] <= 0.0 || v[3] < 0.0 || v[5] <= 0.0))
        return tsr_table_bad(r, err,
                             "type %d: expected atoms, a radius and a width "
                             "above 0, an exposure not below",
                             t);
    if (one) {
        table->count[t] = (long)v[1];
        table->rg2[t] = v[2];
    } else {
        table->atoms[t] = v[1];
        table->radius[t] = v[2];
        table->exposure.type[t] = (tsr_exposure_type){v[3], v[4], v[5]};
    }
    return TSR_OK;
}

static tsr_status read_row(tsr_table_reader *r, tsr_form_factor_table *table,
                           int t, int k, tsr_err *err)
{
    tsr_status s = tsr_table_next(r, err);
    if (s != TSR_OK)
        return s;
    if (r->type != TSR_LINE_ROW)
        return tsr_table_bad(r, err, "the row of type %d, point %d is missing",
                             t, k);
    char *text = r->text;
    double v[2 + MAX_VALUE], q = k * table->dq_inv_ang;
    int n = 2 + table->n_comp + table->n_pair;
    if ((s = tsr_table_numbers(r, &text, n, v, 1, "row", err)) != TSR_OK)
        return s;
    /* q is printed with 6 digits; the grid's step is the exact one. */
    if (v[0] != (double)t || fabs(v[1] - q) > 1e-5 * (q + 1e-3))
        return tsr_table_bad(r, err, "expected type %d at q = %g", t, q);
    if (table->n_comp == 1 && v[3] < 0.0)
        return tsr_table_bad(r, err, "P = %g is negative", v[3]);
    set_row(table, t, k, v + 2);
    return TSR_OK;
}

static tsr_status read_own(const char *path, int n_comp,
                           tsr_form_factor_table **out, tsr_err *err)
{
    tsr_table_reader r;
    tsr_status s =
        tsr_table_open(&r, path, tsr_form_factor_format(n_comp), err);
    if (s != TSR_OK)
        return s;
    tsr_form_factor_table *table = NULL;
    s = read_head(&r, n_comp, &table, err);
    for (int t = 0; s == TSR_OK && t < table->n_type; t++)
        s = read_type(&r, table, t, err);
    for (int t = 0; s == TSR_OK && t < table->n_type; t++)
        for (int k = 0; s == TSR_OK && k < table->n_q; k++)
            s = read_row(&r, table, t, k, err);
    TSR_THEN(s, tsr_table_next(&r, err));
    if (s == TSR_OK && r.type != TSR_LINE_END)
        s = tsr_table_bad(&r, err, "more rows than the grid has points");
    if (s == TSR_OK) {
        table->source = r.source;
        r.source = NULL;
        *out = table;
    } else {
        tsr_form_factor_free(table);
    }
    tsr_table_close(&r);
    return s;
}

/* ---- published tables ---- */

/* Lists in brackets, as rows of one length. */
typedef struct {
    int n_row, n_column;
    double *value; /* [n_row][n_column] */
} matrix;

static tsr_status append(matrix *m, int n, double value, tsr_err *err)
{
    if ((n & (n - 1)) == 0) {
        size_t room = n == 0 ? 1 : 2 * (size_t)n;
        double *grown = realloc(m->value, room * sizeof *grown);
        if (grown == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "no memory for form factors");
        m->value = grown;
    }
    m->value[n] = value;
    return TSR_OK;
}

static tsr_status parse(const char *path, const char *text, matrix *m,
                        tsr_err *err)
{
    int line = 1, depth = 0, n = 0, row_start = 0;
    for (const char *c = text; *c != '\0';) {
        if (*c == ']' && n > row_start) {
            int length = n - row_start;
            if (m->n_row > 0 && length != m->n_column)
                return tsr_fail(err, TSR_E_DATA,
                                "%s:%d: a row of %d numbers after one of %d",
                                path, line, length, m->n_column);
            m->n_column = length;
            m->n_row++;
            row_start = n;
        }
        line += *c == '\n';
        depth += (*c == '[') - (*c == ']');
        if (strchr("[], \t\r\n", *c) != NULL) {
            c++;
            continue;
        }
        char *end;
        double value = strtod(c, &end);
        if (end == c || depth < 1 || !isfinite(value))
            return tsr_fail(err, TSR_E_DATA,
                            "%s:%d: expected numbers in lists in brackets",
                            path, line);
        TSR_TRY(append(m, n++, value, err));
        c = end;
    }
    if (depth != 0 || m->n_row == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "%s:%d: the brackets do not close, or hold nothing",
                        path, line);
    return TSR_OK;
}

static tsr_status read_matrix(const char *path, matrix *m, tsr_err *err)
{
    char *text = NULL;
    size_t size;
    *m = (matrix){0};
    tsr_status s = tsr_file_read(path, &text, &size, err);
    TSR_THEN(s, parse(path, text, m, err));
    free(text);
    return s;
}

/* The step of the q vector beside `path`, which has n_q values. */
static tsr_status read_step(const char *path, int n_q, double *dq, tsr_err *err)
{
    static const char ending[] = "-q_vector.dat";
    const char *slash = strrchr(path, '/');
    const char *dash = strrchr(slash != NULL ? slash : path, '-');
    size_t stem = dash != NULL ? (size_t)(dash - path) : strlen(path);
    char *beside = malloc(stem + sizeof ending);
    if (beside == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a file name");
    memcpy(beside, path, stem);
    memcpy(beside + stem, ending, sizeof ending);
    matrix q;
    tsr_status s = read_matrix(beside, &q, err);
    if (s == TSR_OK && (q.n_row != 1 || q.n_column != n_q || n_q < 3))
        s = tsr_fail(err, TSR_E_DATA,
                     "'%s' has %d x %d numbers, '%s' %d rows: expected one "
                     "list of as many, at least 3",
                     beside, q.n_row, q.n_column, path, n_q);
    if (s == TSR_OK)
        *dq = q.value[n_q - 1] / (n_q - 1);
    for (int k = 0; k < n_q && s == TSR_OK; k++)
        if (!(*dq > 0.0) || fabs(q.value[k] - k * *dq) > 1e-6 * *dq * n_q)
            s = tsr_fail(err, TSR_E_DATA,
                         "'%s': q is not equally spaced from 0 (number %d, "
                         "%g)",
                         beside, k + 1, q.value[k]);
    free(q.value);
    free(beside);
    return s;
}

static tsr_status fill(const char *path, const matrix *m, double dq,
                       tsr_form_factor_table **out, tsr_err *err)
{
    tsr_body_model model =
        m->n_column == TSR_MAX_TYPE ? TSR_BODIES_TWO : TSR_BODIES_ONE;
    tsr_form_factor_table *table = tsr_form_factor_new(model, 1, m->n_row, dq);
    if (table == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", path);
    table->source = tsr_words_of("as published: %s", tsr_text_file_name(path));
    if (table->source == NULL) {
        tsr_form_factor_free(table);
        return tsr_no_memory(err);
    }
    for (int k = 0; k < m->n_row; k++)
        for (int t = 0; t < m->n_column; t++)
            table->amplitude[t * m->n_row + k] = m->value[k * m->n_column + t];
    *out = table;
    return TSR_OK;
}

static tsr_status read_published(const char *path, tsr_form_factor_table **out,
                                 tsr_err *err)
{
    matrix m;
    double dq = 0.0;
    tsr_status s = read_matrix(path, &m, err);
    if (s == TSR_OK && m.n_column != tsr_body_n_type(TSR_BODIES_ONE) &&
        m.n_column != tsr_body_n_type(TSR_BODIES_TWO))
        s = tsr_fail(err, TSR_E_DATA,
                     "'%s': %d form factors a q; expected 20 (residues) or 21 "
                     "(backbone and side chains)",
                     path, m.n_column);
    TSR_THEN(s, read_step(path, m.n_row, &dq, err));
    TSR_THEN(s, fill(path, &m, dq, out, err));
    free(m.value);
    return s;
}

/* ---- which of them ---- */

tsr_status tsr_form_factor_read(const char *path, tsr_form_factor_table **out,
                                tsr_err *err)
{
    static const char components[] = "#: tessera components";
    char line[sizeof components] = "";
    TSR_TRY(tsr_file_expect(path, err));
    FILE *file = fopen(path, "r");
    *out = NULL;
    if (file != NULL) {
        int bracket = fscanf(file, " %1[[]", line) == 1;
        rewind(file);
        if (bracket || fgets(line, (int)sizeof line, file) == NULL)
            line[0] = bracket ? '[' : '\0';
        fclose(file);
    }
    if (line[0] == '[')
        return read_published(path, out, err);
    return read_own(path, strcmp(line, components) == 0 ? TSR_N_COMP : 1, out,
                    err);
}

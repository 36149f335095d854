#include "model/form_factor_published.h"

#include "io/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists in brackets, as rows of one length. */
typedef struct {
    int n_row, n_column;
    double *value; /* [n_row][n_column] */
} matrix;

int tsr_form_factor_is_published(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    int c;
    do
        c = fgetc(file);
    while (c == ' ' || c == '\t' || c == '\r' || c == '\n');
    fclose(file);
    return c == '[';
}

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
        tsr_status s = append(m, n++, value, err);
        if (s != TSR_OK)
            return s;
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
    if (s == TSR_OK)
        s = parse(path, text, m, err);
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
    static const char source[] = "as published: ";
    tsr_form_factor_table *table = tsr_form_factor_new(model, m->n_row, dq);
    size_t size = sizeof source + strlen(path);
    if (table != NULL)
        table->source = malloc(size);
    if (table == NULL || table->source == NULL) {
        tsr_form_factor_free(table);
        return tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", path);
    }
    const char *slash = strrchr(path, '/');
    snprintf(table->source, size, "%s%s", source,
             slash != NULL ? slash + 1 : path);
    for (int k = 0; k < m->n_row; k++)
        for (int t = 0; t < m->n_column; t++) {
            double f = m->value[k * m->n_column + t];
            table->amplitude[t * m->n_row + k] = f;
            table->self[t * m->n_row + k] = f * f;
        }
    *out = table;
    return TSR_OK;
}

tsr_status tsr_form_factor_read_published(const char *path,
                                          tsr_form_factor_table **out,
                                          tsr_err *err)
{
    matrix m;
    double dq = 0.0;
    *out = NULL;
    tsr_status s = read_matrix(path, &m, err);
    if (s == TSR_OK && m.n_column != tsr_body_n_type(TSR_BODIES_ONE) &&
        m.n_column != tsr_body_n_type(TSR_BODIES_TWO))
        s = tsr_fail(err, TSR_E_DATA,
                     "'%s': %d form factors a q; expected 20 (residues) or 21 "
                     "(backbone and side chains)",
                     path, m.n_column);
    if (s == TSR_OK)
        s = read_step(path, m.n_row, &dq, err);
    if (s == TSR_OK)
        s = fill(path, &m, dq, out, err);
    free(m.value);
    return s;
}

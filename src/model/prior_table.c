#include "model/prior_table.h"
#include "model/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "tessera prior 1";

/* The upper triangle of a covariance, in the order of the file. */
static const int cov_row[6] = {0, 1, 2, 0, 0, 1};
static const int cov_col[6] = {0, 1, 2, 1, 2, 2};

void tsr_prior_table_free(tsr_prior_table *table)
{
    if (table == NULL)
        return;
    free(table->source);
    free(table);
}

/* One view of the two contact tables. */
static double *contact_row(tsr_prior_table *table, tsr_body_model model, int t)
{
    return model == TSR_BODIES_TWO ? table->contact_two[t]
                                   : table->contact_one[t];
}

static void write_contacts(FILE *file, const tsr_prior_table *table,
                           tsr_body_model model)
{
    int n = tsr_body_n_type(model);
    fprintf(file, "#: contact %s\n", model == TSR_BODIES_TWO ? "two" : "one");
    fprintf(file, "# type, contact distance to types 0 to %d (Angstrom)\n",
            n - 1);
    for (int t = 0; t < n; t++) {
        const double *row = model == TSR_BODIES_TWO ? table->contact_two[t]
                                                    : table->contact_one[t];
        fprintf(file, "# %s\n%2d", tsr_body_type_name(model, t), t);
        for (int u = 0; u < n; u++)
            fprintf(file, " %.9g", row[u]);
        fputc('\n', file);
    }
}

tsr_status tsr_prior_table_write(const tsr_prior_table *table, const char *path,
                                 tsr_err *err)
{
    tsr_table_writer w;
    tsr_status s = tsr_table_create(&w, path, format, table->source, err);
    if (s != TSR_OK)
        return s;
    fprintf(w.file, "#: side\n");
    fprintf(w.file, "# amino acid, side chains, mean x y z (Angstrom), "
                    "covariance xx yy zz xy xz yz (Angstrom^2)\n");
    for (int a = 0; a < TSR_N_AMINO; a++) {
        fprintf(w.file, "# %s\n%2d %6ld", tsr_amino_table[a].three, a,
                table->count[a]);
        for (int d = 0; d < 3; d++)
            fprintf(w.file, " %.9g", table->side_mean[a][d]);
        for (int d = 0; d < 6; d++)
            fprintf(w.file, " %.9g",
                    table->side_cov[a][cov_row[d]][cov_col[d]]);
        fputc('\n', w.file);
    }
    write_contacts(w.file, table, TSR_BODIES_TWO);
    write_contacts(w.file, table, TSR_BODIES_ONE);
    return tsr_table_finish(&w, err);
}

/* A row that begins with its number. */
static tsr_status read_row(tsr_table_reader *r, int number, int n, double *v,
                           tsr_err *err)
{
    tsr_status s = tsr_table_next(r, err);
    if (s != TSR_OK)
        return s;
    if (r->type != TSR_LINE_ROW)
        return tsr_table_bad(r, err, "row %d is missing", number);
    char *text = r->text;
    double first;
    s = tsr_table_numbers(r, &text, 1, &first, 0, "row", err);
    if (s != TSR_OK)
        return s;
    if (first != (double)number)
        return tsr_table_bad(r, err, "expected row %d, found %g", number,
                             first);
    return tsr_table_numbers(r, &text, n, v, 1, "row", err);
}

/* Positive definite, by the leading minors. */
static int is_covariance(double c[3][3])
{
    double m2 = c[0][0] * c[1][1] - c[0][1] * c[1][0];
    double m3 = c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) -
                c[0][1] * (c[1][0] * c[2][2] - c[1][2] * c[2][0]) +
                c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0]);
    return c[0][0] > 0.0 && m2 > 0.0 && m3 > 0.0;
}

static tsr_status read_side(tsr_table_reader *r, tsr_prior_table *table, int a,
                            tsr_err *err)
{
    double v[10];
    tsr_status s = read_row(r, a, 10, v, err);
    if (s != TSR_OK)
        return s;
    const char *name = tsr_amino_table[a].three;
    if (v[0] < 0.0 || v[0] != floor(v[0]) || v[0] > 1e15)
        return tsr_table_bad(r, err, "%s: %g side chains", name, v[0]);
    table->count[a] = (long)v[0];
    for (int d = 0; d < 3; d++)
        table->side_mean[a][d] = v[1 + d];
    for (int d = 0; d < 6; d++) {
        table->side_cov[a][cov_row[d]][cov_col[d]] = v[4 + d];
        table->side_cov[a][cov_col[d]][cov_row[d]] = v[4 + d];
    }
    if (tsr_amino_has_side_chain((tsr_amino)a) &&
        !is_covariance(table->side_cov[a]))
        return tsr_table_bad(r, err, "%s: the covariance is not positive",
                             name);
    return TSR_OK;
}

static tsr_status read_contacts(tsr_table_reader *r, tsr_prior_table *table,
                                tsr_body_model model, tsr_err *err)
{
    const char *word = model == TSR_BODIES_TWO ? "two" : "one";
    char *text;
    tsr_status s = tsr_table_key(r, "contact", &text, err);
    if (s != TSR_OK)
        return s;
    if (strcmp(text, word) != 0)
        return tsr_table_bad(r, err, "expected '#: contact %s'", word);
    int n = tsr_body_n_type(model);
    for (int t = 0; t < n; t++) {
        double *row = contact_row(table, model, t);
        if ((s = read_row(r, t, n, row, err)) != TSR_OK)
            return s;
        for (int u = 0; u < n; u++)
            if (row[u] <= 0.0)
                return tsr_table_bad(r, err, "distance %g: expected above 0",
                                     row[u]);
        for (int u = 0; u < t; u++)
            if (row[u] != contact_row(table, model, u)[t])
                return tsr_table_bad(r, err,
                                     "types %d and %d: the table is not "
                                     "symmetric",
                                     t, u);
    }
    return TSR_OK;
}

tsr_status tsr_prior_table_read(const char *path, tsr_prior_table **out,
                                tsr_err *err)
{
    *out = NULL;
    tsr_table_reader r;
    tsr_status s = tsr_table_open(&r, path, format, err);
    if (s != TSR_OK)
        return s;
    char *text;
    tsr_prior_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", path);
    else
        s = tsr_table_key(&r, "side", &text, err);
    for (int a = 0; s == TSR_OK && a < TSR_N_AMINO; a++)
        s = read_side(&r, table, a, err);
    if (s == TSR_OK)
        s = read_contacts(&r, table, TSR_BODIES_TWO, err);
    if (s == TSR_OK)
        s = read_contacts(&r, table, TSR_BODIES_ONE, err);
    if (s == TSR_OK)
        s = tsr_table_next(&r, err);
    if (s == TSR_OK && r.type != TSR_LINE_END)
        s = tsr_table_bad(&r, err, "unexpected after the last row");
    if (s == TSR_OK) {
        table->source = r.source;
        r.source = NULL;
        *out = table;
    } else {
        tsr_prior_table_free(table);
    }
    tsr_table_close(&r);
    return s;
}

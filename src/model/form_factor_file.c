#include "model/form_factor.h"
#include "model/form_factor_published.h"
#include "model/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "tessera form factors 1";

tsr_status tsr_form_factor_write(const tsr_form_factor_table *table,
                                 const char *path, tsr_err *err)
{
    tsr_file_writer w;
    tsr_status s = tsr_table_create(&w, path, format, table->source, err);
    if (s != TSR_OK)
        return s;
    fprintf(w.out, "#: bodies %s\n",
            table->model == TSR_BODIES_TWO ? "two" : "one");
    fprintf(w.out, "# points of q and their step, 1/Angstrom\n");
    fprintf(w.out, "#: grid %d %.17g\n", table->n_q, table->dq_inv_ang);
    fprintf(w.out,
            "# type, occurrences, mean square radius (Angstrom^2), name\n");
    for (int t = 0; t < table->n_type; t++)
        fprintf(w.out, "#: type %2d %7ld %12.9g  %s\n", t, table->count[t],
                table->rg2[t], tsr_body_type_name(table->model, t));
    fprintf(w.out, "# type, q (1/Angstrom), F (e), P (e^2)\n");
    for (int t = 0; t < table->n_type; t++) {
        const double *f = table->amplitude + (size_t)t * (size_t)table->n_q;
        const double *p = table->self + (size_t)t * (size_t)table->n_q;
        fprintf(w.out, "#\n# %s\n", tsr_body_type_name(table->model, t));
        for (int k = 0; k < table->n_q; k++)
            fprintf(w.out, "%2d %8.6g %16.9g %16.9g\n", t,
                    k * table->dq_inv_ang, f[k], p[k]);
    }
    return tsr_file_end(&w, TSR_OK, err);
}

static tsr_status read_grid(tsr_table_reader *r, tsr_form_factor_table **out,
                            tsr_err *err)
{
    char *text;
    tsr_status s = tsr_table_key(r, "bodies", &text, err);
    if (s != TSR_OK)
        return s;
    tsr_body_model model = TSR_BODIES_ONE;
    if (strcmp(text, "two") == 0)
        model = TSR_BODIES_TWO;
    else if (strcmp(text, "one") != 0)
        return tsr_table_bad(r, err, "bodies '%s': expected one or two", text);

    double grid[2];
    if ((s = tsr_table_key(r, "grid", &text, err)) != TSR_OK ||
        (s = tsr_table_numbers(r, &text, 2, grid, 1, "grid", err)) != TSR_OK)
        return s;
    if (grid[0] < 3.0 || grid[0] > 100000.0 || grid[0] != floor(grid[0]) ||
        grid[1] <= 0.0)
        return tsr_table_bad(r, err,
                             "grid: expected 3 to 100000 points and a step "
                             "above 0");
    *out = tsr_form_factor_new(model, (int)grid[0], grid[1]);
    if (*out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", r->path);
    return TSR_OK;
}

static tsr_status read_type(tsr_table_reader *r, tsr_form_factor_table *table,
                            int t, tsr_err *err)
{
    char *text;
    double v[3];
    tsr_status s = tsr_table_key(r, "type", &text, err);
    if (s == TSR_OK)
        s = tsr_table_numbers(r, &text, 3, v, 0, "type", err);
    if (s != TSR_OK)
        return s;
    const char *name = tsr_body_type_name(table->model, t);
    text += strspn(text, " \t");
    if (v[0] != (double)t || strcmp(text, name) != 0)
        return tsr_table_bad(r, err, "expected type %d, '%s'", t, name);
    if (v[1] < 0.0 || v[1] != floor(v[1]) || v[1] > 1e15 || v[2] < 0.0)
        return tsr_table_bad(r, err,
                             "type %d: expected a count and a square radius, "
                             "neither negative",
                             t);
    table->count[t] = (long)v[1];
    table->rg2[t] = v[2];
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
    double v[4], q = k * table->dq_inv_ang;
    if ((s = tsr_table_numbers(r, &text, 4, v, 1, "row", err)) != TSR_OK)
        return s;
    /* q is printed with 6 digits; the grid's step is the exact one. */
    if (v[0] != (double)t || fabs(v[1] - q) > 1e-5 * (q + 1e-3))
        return tsr_table_bad(r, err, "expected type %d at q = %g", t, q);
    if (v[3] < 0.0)
        return tsr_table_bad(r, err, "P = %g is negative", v[3]);
    size_t at = (size_t)t * (size_t)table->n_q + (size_t)k;
    table->amplitude[at] = v[2];
    table->self[at] = v[3];
    return TSR_OK;
}

tsr_status tsr_form_factor_read(const char *path, tsr_form_factor_table **out,
                                tsr_err *err)
{
    *out = NULL;
    if (tsr_form_factor_is_published(path))
        return tsr_form_factor_read_published(path, out, err);
    tsr_table_reader r;
    tsr_status s = tsr_table_open(&r, path, format, err);
    if (s != TSR_OK)
        return s;
    tsr_form_factor_table *table = NULL;
    s = read_grid(&r, &table, err);
    for (int t = 0; s == TSR_OK && t < table->n_type; t++)
        s = read_type(&r, table, t, err);
    for (int t = 0; s == TSR_OK && t < table->n_type; t++)
        for (int k = 0; s == TSR_OK && k < table->n_q; k++)
            s = read_row(&r, table, t, k, err);
    if (s == TSR_OK)
        s = tsr_table_next(&r, err);
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

#include "model/component_table.h"
#include "model/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "tessera components 1";

enum { N_VALUE = TSR_N_COMP + TSR_N_COMP_PAIR };

int tsr_component_is_file(const char *path)
{
    char line[sizeof format + 4] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(line, (int)sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    return strncmp(line, "#: ", 3) == 0 &&
           strncmp(line + 3, format, strlen(format)) == 0;
}

/* A column of the rows: component or pair. */
static double *column(const tsr_component_table *table, int c)
{
    size_t n = (size_t)table->n_type * (size_t)table->n_q;
    return c < TSR_N_COMP ? table->amplitude + (size_t)c * n
                          : table->excess + (size_t)(c - TSR_N_COMP) * n;
}

tsr_status tsr_component_write(const tsr_component_table *table,
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
    fprintf(w.out, "# a neighbour counts 1 below, 0 above, Angstrom\n");
    fprintf(w.out, "#: neighbours %.9g %.9g\n", table->exposure.near_ang,
            table->exposure.far_ang);
    fprintf(w.out,
            "# type, atoms and their mean radius (Angstrom), exposure: A, n0, "
            "w of\n# A / (1 + exp((neighbours - n0) / w)), name\n");
    for (int t = 0; t < table->n_type; t++) {
        const tsr_exposure_type *e = &table->exposure.type[t];
        fprintf(w.out, "#: type %2d %9.6g %9.6g %10.7g %10.7g %10.7g  %s\n", t,
                table->atoms[t], table->radius[t], e->largest, e->middle,
                e->width, tsr_body_type_name(table->model, t));
    }
    fprintf(w.out,
            "# type, q (1/Angstrom), F (e) of solute, displaced solvent, "
            "hydration,\n# E (e^2) of 00 01 02 11 12 22\n");
    for (int t = 0; t < table->n_type; t++) {
        fprintf(w.out, "#\n# %s\n", tsr_body_type_name(table->model, t));
        for (int k = 0; k < table->n_q; k++) {
            fprintf(w.out, "%d %.6g", t, k * table->dq_inv_ang);
            for (int c = 0; c < N_VALUE; c++) {
                double x = column(table, c)[t * table->n_q + k];
                fprintf(w.out, c < TSR_N_COMP ? " %.8g" : " %.6g", x);
            }
            fprintf(w.out, "\n");
        }
    }
    return tsr_file_end(&w, TSR_OK, err);
}

static tsr_status read_head(tsr_table_reader *r, tsr_component_table **out,
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
    double grid[2], reach[2];
    if ((s = tsr_table_key(r, "grid", &text, err)) != TSR_OK ||
        (s = tsr_table_numbers(r, &text, 2, grid, 1, "grid", err)) != TSR_OK)
        return s;
    if (grid[0] < 3.0 || grid[0] > 100000.0 || grid[0] != floor(grid[0]) ||
        grid[1] <= 0.0)
        return tsr_table_bad(r, err,
                             "grid: expected 3 to 100000 points and a step "
                             "above 0");
    if ((s = tsr_table_key(r, "neighbours", &text, err)) != TSR_OK ||
        (s = tsr_table_numbers(r, &text, 2, reach, 1, "neighbours", err)) !=
            TSR_OK)
        return s;
    if (reach[0] < 0.0 || reach[1] <= reach[0])
        return tsr_table_bad(r, err,
                             "neighbours: expected two distances, ascending");
    *out = tsr_component_new(model, (int)grid[0], grid[1]);
    if (*out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", r->path);
    (*out)->exposure.near_ang = reach[0];
    (*out)->exposure.far_ang = reach[1];
    return TSR_OK;
}

static tsr_status read_type(tsr_table_reader *r, tsr_component_table *table,
                            int t, tsr_err *err)
{
    char *text;
    double v[6];
    tsr_status s = tsr_table_key(r, "type", &text, err);
    if (s == TSR_OK)
        s = tsr_table_numbers(r, &text, 6, v, 0, "type", err);
    if (s != TSR_OK)
        return s;
    const char *name = tsr_body_type_name(table->model, t);
    text += strspn(text, " \t");
    if (v[0] != (double)t || strcmp(text, name) != 0)
        return tsr_table_bad(r, err, "expected type %d, '%s'", t, name);
    if (v[1] <= 0.0 || v[2] <= 0.0 || v[3] < 0.0 || v[5] <= 0.0)
        return tsr_table_bad(r, err,
                             "type %d: expected atoms, a radius and a width "
                             "above 0, an exposure not below",
                             t);
    table->atoms[t] = v[1];
    table->radius[t] = v[2];
    table->exposure.type[t] = (tsr_exposure_type){v[3], v[4], v[5]};
    return TSR_OK;
}

static tsr_status read_row(tsr_table_reader *r, tsr_component_table *table,
                           int t, int k, tsr_err *err)
{
    tsr_status s = tsr_table_next(r, err);
    if (s != TSR_OK)
        return s;
    if (r->type != TSR_LINE_ROW)
        return tsr_table_bad(r, err, "the row of type %d, point %d is missing",
                             t, k);
    char *text = r->text;
    double v[2 + N_VALUE], q = k * table->dq_inv_ang;
    s = tsr_table_numbers(r, &text, 2 + N_VALUE, v, 1, "row", err);
    if (s != TSR_OK)
        return s;
    if (v[0] != (double)t || fabs(v[1] - q) > 1e-5 * (q + 1e-3))
        return tsr_table_bad(r, err, "expected type %d at q = %g", t, q);
    for (int c = 0; c < N_VALUE; c++)
        column(table, c)[t * table->n_q + k] = v[2 + c];
    return TSR_OK;
}

tsr_status tsr_component_read(const char *path, tsr_component_table **out,
                              tsr_err *err)
{
    *out = NULL;
    tsr_table_reader r;
    tsr_status s = tsr_table_open(&r, path, format, err);
    if (s != TSR_OK)
        return s;
    tsr_component_table *table = NULL;
    s = read_head(&r, &table, err);
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
        tsr_component_free(table);
    }
    tsr_table_close(&r);
    return s;
}

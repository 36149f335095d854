/* The table of form factors, its files, and exposures.
 *
 * A table stores the excess E = P - F^2 instead of the mean self-intensity P.
 * At small q, E grows as q^4 while P and F^2 are in the hundreds. The
 * difference of interpolated P and F^2 would be dominated by rounding. */
#include "scattering/form_factor.h"

#include "core/text.h"
#include "core/vec3.h"
#include "files/file.h"
#include "molecule/structure.h"
#include "molecule/table_file.h"

#include <gsl/gsl_spline.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- exposures ----
 *
 * The exposed part of a body, estimated from its number of neighbours within a
 * soft sphere by a logistic function for each type. The functions were fitted
 * to the exposures of all atoms. */

/* Switching distances of the body models, chosen among near = 2 to 5 and far =
 * 9 to 13 Angstrom. Over the training structures, they explain the variance of
 * the exposures to within 1 % of the best pair. L minimises the error at c1 =
 * 1, c2 = 1 over 0.25 to 0.6; the minimum is flat within 0.05. */
static const tsr_exposure_model one_body = {.near_ang = 3.3,
                                            .far_ang = 11.1,
                                            .displacement = 0.5},
                                two_bodies = {.near_ang = 4.0,
                                              .far_ang = 10.0,
                                              .displacement = 0.33};

/* The neighbour function u for the square of a distance. */
static double neighbour_weight(const tsr_exposure_model *model, double d2)
{
    double near = model->near_ang, far = model->far_ang;
    if (d2 >= far * far)
        return 0.0;
    double x = (sqrt(d2) - near) / (far - near);
    return x <= 0.0 ? 1.0 : 0.5 * (1.0 + cos(TSR_PI * x));
}

void tsr_exposure_count(const tsr_exposure_model *model, int n,
                        const double (*xyz)[3], double *count)
{
    memset(count, 0, (size_t)n * sizeof *count);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double u =
                neighbour_weight(model, tsr_vec3_distance2(xyz[i], xyz[j]));
            count[i] += u;
            count[j] += u;
        }
}

double tsr_exposure_at(const tsr_exposure_type *type, double count)
{
    if (type->largest == 0.0)
        return 0.0;
    return type->largest / (1.0 + exp((count - type->middle) / type->width));
}

/* Two passes over all pairs: the first counts neighbours, the second moves
 * exposure between neighbours. count, part [n]: zero on entry; part becomes L
 * e_i / n_i. */
static void displace_exposure(const tsr_exposure_model *model, int n,
                              const double (*xyz)[3], const int *dry,
                              double *count, double *part, double *exposure)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++) {
                double u =
                    neighbour_weight(model, tsr_vec3_distance2(xyz[i], xyz[j]));
                if (u == 0.0 || (dry != NULL && (dry[i] || dry[j])))
                    continue;
                count[i] += pass == 0 ? u : 0.0;
                count[j] += pass == 0 ? u : 0.0;
                exposure[i] += u * (part[i] - part[j]);
                exposure[j] += u * (part[j] - part[i]);
            }
        for (int i = 0; i < n && pass == 0; i++)
            part[i] = count[i] > 0.0
                          ? model->displacement * exposure[i] / count[i]
                          : 0.0;
    }
}

tsr_status tsr_exposure_displace(const tsr_exposure_model *model, int n,
                                 const double (*xyz)[3], const int *dry,
                                 double *exposure, tsr_err *err)
{
    double *count = calloc(2 * (size_t)n + 1, sizeof *count);
    if (count == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n);
    if (model->displacement != 0.0)
        displace_exposure(model, n, xyz, dry, count, count + n, exposure);
    free(count);
    return TSR_OK;
}

/* ---- tables ---- */

static tsr_form_factor_table *table_new(tsr_body_model model, int n_more,
                                        int n_comp, int n_q, double dq_inv_ang)
{
    tsr_pool pool = {0};
    tsr_form_factor_table *table = tsr_pool_new(&pool, 1, sizeof *table);
    if (table == NULL)
        return NULL;
    table->model = model;
    table->n_comp = n_comp;
    table->n_pair = n_comp * (n_comp + 1) / 2;
    table->n_trained = tsr_body_n_type(model);
    table->n_type = table->n_trained + n_more;
    table->n_q = n_q;
    table->dq_inv_ang = dq_inv_ang;
    table->exposure = model == TSR_BODIES_ONE ? one_body : two_bodies;
    const size_t n_type = (size_t)table->n_type, n = n_type * (size_t)n_q;
    tsr_pool_array(&pool, table->amplitude, (size_t)n_comp * n);
    tsr_pool_array(&pool, table->excess, (size_t)table->n_pair * n);
    tsr_pool_array(&pool, table->count, n_type);
    tsr_pool_array(&pool, table->rg2, n_type);
    tsr_pool_array(&pool, table->atoms, n_type);
    tsr_pool_array(&pool, table->radius, n_type);
    tsr_pool_array(&pool, table->exposed, n_type);
    table->pool = pool;
    if (!pool.failed)
        return table;
    tsr_form_factor_free(table);
    return NULL;
}

tsr_form_factor_table *tsr_form_factor_new(tsr_body_model model, int n_comp,
                                           int n_q, double dq_inv_ang)
{
    return table_new(model, 0, n_comp, n_q, dq_inv_ang);
}

/* Copies an array [n_block][n_from][n_q] into the first n_from types of an
 * array [n_block][n_to][n_q]. */
static void copy_rows(int n_block, int n_from, int n_to, int n_q,
                      const double *from, double *to)
{
    size_t row = (size_t)n_q;
    for (size_t b = 0; b < (size_t)n_block; b++)
        memcpy(to + b * (size_t)n_to * row, from + b * (size_t)n_from * row,
               (size_t)n_from * row * sizeof *to);
}

tsr_form_factor_table *tsr_form_factor_extend(const tsr_form_factor_table *from,
                                              int n_more)
{
    size_t n = (size_t)from->n_type;
    tsr_form_factor_table *to = table_new(from->model, n_more, from->n_comp,
                                          from->n_q, from->dq_inv_ang);
    if (to == NULL)
        return NULL;
    copy_rows(from->n_comp, from->n_type, to->n_type, from->n_q,
              from->amplitude, to->amplitude);
    copy_rows(from->n_pair, from->n_type, to->n_type, from->n_q, from->excess,
              to->excess);
    memcpy(to->count, from->count, n * sizeof *to->count);
    memcpy(to->rg2, from->rg2, n * sizeof *to->rg2);
    memcpy(to->atoms, from->atoms, n * sizeof *to->atoms);
    memcpy(to->radius, from->radius, n * sizeof *to->radius);
    memcpy(to->exposed, from->exposed, n * sizeof *to->exposed);
    to->exposure = from->exposure;
    to->source = from->source != NULL ? strdup(from->source) : NULL;
    return to;
}

void tsr_form_factor_free(tsr_form_factor_table *table)
{
    if (table == NULL)
        return;
    free(table->source);
    tsr_pool pool = table->pool;
    tsr_pool_clear(&pool);
}

/* Interpolates curves of the table: natural cubic splines through the table
 * mirrored at q = 0, because all curves are even in q. y [n_curve][table->n_q]
 * in, out [n_curve][n_q] at k dq. */
static tsr_status interpolate(const tsr_form_factor_table *table, int n_curve,
                              const double *y, int n_q, double dq_inv_ang,
                              double *out, tsr_err *err)
{
    const double last = (table->n_q - 1) * table->dq_inv_ang;
    const double requested = (n_q - 1) * dq_inv_ang;
    /* The influence of a knot falls by a factor of 3.7 with each step, so 12
     * mirrored knots suffice. */
    const int n_mirror = table->n_q - 1 < 12 ? table->n_q - 1 : 12;
    const int n_knot = n_mirror + table->n_q;
    if (n_q < 1 || !(dq_inv_ang > 0.0))
        return tsr_fail(err, TSR_E_RANGE, "a q grid of %d points, step %g", n_q,
                        dq_inv_ang);
    if (!(requested <= last * (1.0 + 1e-9)))
        return tsr_fail(err, TSR_E_RANGE,
                        "q up to %g 1/Angstrom is needed, but form factors end "
                        "at %g; narrow q_range (or a slit of resolution)",
                        requested, last);
    tsr_pool pool = {0};
    double *knot, *value;
    gsl_spline *spline = gsl_spline_alloc(gsl_interp_cspline, (size_t)n_knot);
    tsr_pool_array(&pool, knot, n_knot);
    tsr_pool_array(&pool, value, n_knot);
    tsr_status status =
        spline == NULL ? tsr_no_memory(err) : tsr_pool_check(&pool, err);
    for (int c = 0; c < n_curve && status == TSR_OK; c++, y += table->n_q) {
        for (int i = 0; i < n_knot; i++) {
            knot[i] = (i - n_mirror) * table->dq_inv_ang;
            value[i] = y[abs(i - n_mirror)];
        }
        gsl_spline_init(spline, knot, value, (size_t)n_knot);
        for (int k = 0; k < n_q; k++) /* rounding: q may exceed the end */
            *out++ = gsl_spline_eval(spline, fmin(k * dq_inv_ang, last), NULL);
    }
    gsl_spline_free(spline);
    tsr_pool_clear(&pool);
    return status;
}

tsr_status tsr_form_factor_resample(const tsr_form_factor_table *table, int n_q,
                                    double dq_inv_ang, double *amplitude,
                                    double *excess, tsr_err *err)
{
    tsr_status s = TSR_OK;
    if (amplitude != NULL)
        s = interpolate(table, table->n_comp * table->n_type, table->amplitude,
                        n_q, dq_inv_ang, amplitude, err);
    if (excess != NULL && s == TSR_OK)
        s = interpolate(table, table->n_pair * table->n_type, table->excess,
                        n_q, dq_inv_ang, excess, err);
    return s;
}

void tsr_form_factor_exposures(const tsr_form_factor_table *table, int n_body,
                               const int *type, const double (*xyz)[3],
                               double *exposure)
{
    tsr_exposure_count(&table->exposure, n_body, xyz, exposure);
    for (int i = 0; i < n_body; i++)
        exposure[i] =
            type[i] < table->n_trained
                ? tsr_exposure_at(&table->exposure.type[type[i]], exposure[i])
                : table->exposed[type[i]];
}

tsr_status tsr_form_factor_set_density(tsr_form_factor_table *table,
                                       double density, tsr_err *err)
{
    double scale = density / TSR_WATER_DENSITY;
    int n = table->n_type * table->n_q;
    if (table->n_comp == 1 && scale != 1.0)
        return tsr_fail(
            err, TSR_E_USAGE,
            "a solvent of %g e/A^3: this table of form factors has one "
            "component that includes water; give a table of three",
            density);
    for (int i = 0; i < n && scale != 1.0; i++) {
        table->amplitude[TSR_DISPLACED * n + i] *= scale;
        for (int a = 0; a < TSR_N_COMP; a++)
            for (int b = a; b < TSR_N_COMP; b++)
                table->excess[tsr_component_pair(a, b) * n + i] *=
                    (a == TSR_DISPLACED ? scale : 1.0) *
                    (b == TSR_DISPLACED ? scale : 1.0);
    }
    return TSR_OK;
}

tsr_status tsr_form_factor_fold(const tsr_form_factor_table *table,
                                tsr_form_factor_table **out, tsr_err *err)
{
    size_t n = (size_t)table->n_type * (size_t)table->n_q;
    const double *f = table->amplitude, *e = table->excess;
    tsr_form_factor_table *t =
        tsr_form_factor_new(table->model, 1, table->n_q, table->dq_inv_ang);
    *out = t;
    if (t == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for form factors");
    for (size_t i = 0; i < n; i++) {
        t->amplitude[i] = f[i] - f[n + i];
        t->excess[i] = e[i] - 2.0 * e[n + i] + e[3 * n + i];
    }
    return TSR_OK;
}

double tsr_component_radius(const tsr_form_factor_table *table, int n,
                            const int *type)
{
    double atoms = 0.0, sum = 0.0;
    for (int i = 0; i < n; i++) {
        atoms += table->atoms[type[i]];
        sum += table->atoms[type[i]] * table->radius[type[i]];
    }
    return sum / atoms;
}

/* ---- files ----
 *
 * Three kinds of files: our own with one component, our own with three, and
 * published ones.
 *
 * Our own files have the format of molecule/table_file.h. One component is
 * stored as F and P, the usual quantities, with nine digits, and three
 * components as F and E. The heading line of a type has its other
 * properties. */

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
    TSR_TRY(tsr_table_key(r, key, &text, err));
    return tsr_table_numbers(r, &text, n, v, 1, key, err);
}

static tsr_status read_head(tsr_table_reader *r, int n_comp,
                            tsr_form_factor_table **out, tsr_err *err)
{
    char *text;
    double grid[2], reach[2];
    TSR_TRY(tsr_table_key(r, "bodies", &text, err));
    const int is_two = strcmp(text, "two") == 0;
    if (!is_two && strcmp(text, "one") != 0)
        return tsr_table_fail(r, err, "bodies '%s': expected one or two", text);
    TSR_TRY(read_numbers(r, "grid", 2, grid, err));
    if (grid[0] < 3.0 || grid[0] > 100000.0 || grid[0] != floor(grid[0]) ||
        grid[1] <= 0.0)
        return tsr_table_fail(r, err,
                              "grid: expected 3 to 100000 points and a step "
                              "above 0");
    *out = tsr_form_factor_new(is_two ? TSR_BODIES_TWO : TSR_BODIES_ONE, n_comp,
                               (int)grid[0], grid[1]);
    if (*out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", r->path);
    if (n_comp == 1)
        return TSR_OK;
    TSR_TRY(read_numbers(r, "neighbours", 2, reach, err));
    if (reach[0] < 0.0 || reach[1] <= reach[0])
        return tsr_table_fail(r, err,
                              "neighbours: expected two distances, ascending");
    (*out)->exposure.near_ang = reach[0];
    (*out)->exposure.far_ang = reach[1];
    return read_numbers(r, "carry", 1, &(*out)->exposure.displacement, err);
}

static tsr_status read_type(tsr_table_reader *r, tsr_form_factor_table *table,
                            int t, tsr_err *err)
{
    char *text;
    double v[6];
    const int one = table->n_comp == 1;
    const char *name = tsr_body_type_name(table->model, t);
    TSR_TRY(tsr_table_key(r, "type", &text, err));
    TSR_TRY(tsr_table_numbers(r, &text, one ? 3 : 6, v, 0, "type", err));
    text += strspn(text, " \t");
    if (v[0] != (double)t || strcmp(text, name) != 0)
        return tsr_table_fail(r, err, "expected type %d, '%s'", t, name);
    if (one && (v[1] < 0.0 || v[1] != floor(v[1]) || v[1] > 1e15 || v[2] < 0.0))
        return tsr_table_fail(r, err,
                              "type %d: expected a count and a square radius, "
                              "neither negative",
                              t);
    if (!one && (v[1] <= 0.0 || v[2] <= 0.0 || v[3] < 0.0 || v[5] <= 0.0))
        return tsr_table_fail(r, err,
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
    const int n = 2 + table->n_comp + table->n_pair;
    double v[2 + MAX_VALUE], q = k * table->dq_inv_ang;
    TSR_TRY(tsr_table_next(r, err));
    if (r->type != TSR_LINE_ROW)
        return tsr_table_fail(r, err, "the row of type %d, point %d is missing",
                              t, k);
    char *text = r->text;
    TSR_TRY(tsr_table_numbers(r, &text, n, v, 1, "row", err));
    /* q has 6 digits in the file; the grid's step is exact */
    if (v[0] != (double)t || fabs(v[1] - q) > 1e-5 * (q + 1e-3))
        return tsr_table_fail(r, err, "expected type %d at q = %g", t, q);
    if (table->n_comp == 1 && v[3] < 0.0)
        return tsr_table_fail(r, err, "P = %g is negative", v[3]);
    set_row(table, t, k, v + 2);
    return TSR_OK;
}

static tsr_status read_body(tsr_table_reader *r, tsr_form_factor_table *table,
                            tsr_err *err)
{
    for (int t = 0; t < table->n_type; t++)
        TSR_TRY(read_type(r, table, t, err));
    for (int t = 0; t < table->n_type; t++)
        for (int k = 0; k < table->n_q; k++)
            TSR_TRY(read_row(r, table, t, k, err));
    TSR_TRY(tsr_table_next(r, err));
    return r->type == TSR_LINE_END
               ? TSR_OK
               : tsr_table_fail(r, err, "more rows than the grid has points");
}

static tsr_status read_own(const char *path, int n_comp,
                           tsr_form_factor_table **out, tsr_err *err)
{
    tsr_table_reader r;
    tsr_form_factor_table *table = NULL;
    TSR_TRY(tsr_table_open(&r, path, tsr_form_factor_format(n_comp), err));
    tsr_status s = read_head(&r, n_comp, &table, err);
    TSR_THEN(s, read_body(&r, table, err));
    if (s == TSR_OK) {
        table->source = r.source;
        r.source = NULL;
    }
    tsr_table_close(&r);
    TSR_HAND_OVER(s, table, out, tsr_form_factor_free);
}

/* ---- published tables ---- */

/* Bracketed lists, read as rows of equal length. */
typedef struct {
    int n_row, n_column;
    double *value; /* [n_row][n_column] */
} matrix;

static tsr_status parse(const char *path, const char *text, tsr_pool *pool,
                        matrix *m, tsr_err *err)
{
    int line = 1, depth = 0, n = 0, row_start = 0;
    *m = (matrix){0};
    tsr_pool_array(pool, m->value, strlen(text)); /* every number has at least
                                                     one character */
    TSR_TRY(tsr_pool_check(pool, err));
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
        m->value[n++] = value;
        c = end;
    }
    if (depth != 0 || m->n_row == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "%s:%d: the brackets do not close, or are empty", path,
                        line);
    return TSR_OK;
}

static tsr_status read_matrix(const char *path, tsr_pool *pool, matrix *m,
                              tsr_err *err)
{
    char *text = NULL;
    size_t size;
    TSR_TRY(tsr_file_read(path, &text, &size, err));
    const tsr_status status = parse(path, text, pool, m, err);
    free(text);
    return status;
}

/* Reads the grid step from the q vector file that belongs to `path`, with n_q
 * values. */
static tsr_status read_step(const char *path, int n_q, tsr_pool *pool,
                            double *dq, tsr_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *dash = strrchr(slash != NULL ? slash : path, '-');
    const int stem = (int)(dash != NULL ? (size_t)(dash - path) : strlen(path));
    const char *beside = tsr_pool_format(pool, "%.*s-q_vector.dat", stem, path);
    matrix q;
    TSR_TRY(tsr_allocated(beside, err));
    TSR_TRY(read_matrix(beside, pool, &q, err));
    if (q.n_row != 1 || q.n_column != n_q || n_q < 3)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has %d x %d numbers, '%s' %d rows: expected one "
                        "list of as many, at least 3",
                        beside, q.n_row, q.n_column, path, n_q);
    *dq = q.value[n_q - 1] / (n_q - 1);
    for (int k = 0; k < n_q; k++)
        if (!(*dq > 0.0) || fabs(q.value[k] - k * *dq) > 1e-6 * *dq * n_q)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': q is not equally spaced from 0 (number %d, "
                            "%g)",
                            beside, k + 1, q.value[k]);
    return TSR_OK;
}

static tsr_status read_published(const char *path, tsr_pool *pool,
                                 tsr_form_factor_table **out, tsr_err *err)
{
    matrix m;
    double dq = 0.0;
    TSR_TRY(read_matrix(path, pool, &m, err));
    if (m.n_column != tsr_body_n_type(TSR_BODIES_ONE) &&
        m.n_column != tsr_body_n_type(TSR_BODIES_TWO))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d form factors per q; expected 20 (residues) "
                        "or 21 (backbone and side chains)",
                        path, m.n_column);
    TSR_TRY(read_step(path, m.n_row, pool, &dq, err));
    tsr_body_model model =
        m.n_column == TSR_MAX_TYPE ? TSR_BODIES_TWO : TSR_BODIES_ONE;
    tsr_form_factor_table *table = tsr_form_factor_new(model, 1, m.n_row, dq);
    if (table == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to read '%s'", path);
    for (int k = 0; k < m.n_row; k++)
        for (int t = 0; t < m.n_column; t++)
            table->amplitude[t * m.n_row + k] = m.value[k * m.n_column + t];
    table->source =
        tsr_text_format("as published: %s", tsr_text_file_name(path));
    tsr_status s = tsr_allocated(table->source, err);
    if (s == TSR_OK)
        *out = table;
    else
        tsr_form_factor_free(table);
    return s;
}

/* ---- the kind of a file, from its first characters ---- */

tsr_status tsr_form_factor_read(const char *path, tsr_form_factor_table **out,
                                tsr_err *err)
{
    static const char components[] = "#: tessera components";
    char line[sizeof components] = "";
    TSR_TRY(tsr_file_check_input(path, err));
    FILE *file = fopen(path, "r");
    *out = NULL;
    if (file != NULL && fscanf(file, " %1[[]", line) != 1) {
        rewind(file);
        if (fgets(line, (int)sizeof line, file) == NULL)
            line[0] = '\0';
    }
    if (file != NULL)
        fclose(file);
    if (line[0] == '[') {
        tsr_pool pool = {0};
        const tsr_status s = read_published(path, &pool, out, err);
        tsr_pool_clear(&pool);
        return s;
    }
    return read_own(path, strcmp(line, components) == 0 ? TSR_N_COMP : 1, out,
                    err);
}

/* ---- bodies in the form that an engine needs ----
 *
 * The hydration amplitude of a body is its exposure times the amplitude of its
 * type, but an engine only has types. Bodies with the same type and exposure
 * therefore form one type of the engine. */

/* Numbers the distinct pairs (type, exposure): out->type. body out: the first
 * body of each pair, with n and n_table additional elements as scratch. Returns
 * the number of pairs. */
static int number_types(int n, const int *type, int n_table,
                        const double *exposure, tsr_coarse_spec *out, int *body)
{
    int n_type = 0;
    int *next = body + n;
    int *last = next + n; /* newest engine type of each table type; `next` links
                             an engine type to an older one */
    for (int t = 0; t < n_table; t++)
        last[t] = -1;
    for (int i = 0; i < n; i++) {
        int e = last[type[i]];
        while (e >= 0 && exposure[body[e]] != exposure[i])
            e = next[e];
        if (e < 0) {
            e = n_type++;
            body[e] = i;
            next[e] = last[type[i]];
            last[type[i]] = e;
        }
        out->type[i] = e;
    }
    return n_type;
}

/* Form factors of the engine's types. body: the first body of each engine type;
 * amplitude [TSR_N_COMP][table->n_type][n_q]: of the table's types. */
static void set_engine_factors(const tsr_form_factor_table *table,
                               const int *type, const int *body,
                               const double *exposure, const double *amplitude,
                               tsr_coarse_spec *out)
{
    size_t n_q = (size_t)out->spec.n_q, n_type = (size_t)out->spec.n_type;
    for (size_t c = 0; c < TSR_N_COMP; c++)
        for (size_t e = 0; e < n_type; e++) {
            size_t t = (size_t)type[body[e]];
            double scale = c == TSR_HYDRATION ? exposure[body[e]] : 1.0;
            const double *from =
                amplitude + (c * (size_t)table->n_type + t) * n_q;
            double *to = out->form_factor + (c * n_type + e) * n_q;
            for (size_t k = 0; k < n_q; k++)
                to[k] = scale * from[k];
        }
}

void tsr_coarse_add_self(const tsr_form_factor_table *table, int n_body,
                         const int *type, const double *exposure, int n_q,
                         const double *excess, double *partial)
{
    size_t row = (size_t)n_q, n_type = (size_t)table->n_type;
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++) {
            size_t pair = (size_t)tsr_component_pair(a, b);
            double *to = partial + pair * row;
            for (int i = 0; i < n_body; i++) {
                double scale = (a == TSR_HYDRATION ? exposure[i] : 1.0) *
                               (b == TSR_HYDRATION ? exposure[i] : 1.0);
                const double *from =
                    excess + (pair * n_type + (size_t)type[i]) * row;
                for (size_t k = 0; k < row; k++)
                    to[k] += scale * from[k];
            }
        }
}

void tsr_coarse_spec_set(tsr_coarse_spec *spec, int n_body, int n_type,
                         int n_comp, int n_q, double dq_inv_ang)
{
    spec->spec = (tsr_engine_spec){.n_body = n_body,
                                   .n_type = n_type,
                                   .n_comp = n_comp,
                                   .n_q = n_q,
                                   .dq_inv_ang = dq_inv_ang,
                                   .n_system = 1,
                                   .type = spec->type,
                                   .form_factor = spec->form_factor};
}

tsr_status tsr_coarse_spec_of(const tsr_form_factor_table *table, int n_body,
                              const int *type, const double *exposure, int n_q,
                              double dq_inv_ang, tsr_pool *pool,
                              tsr_coarse_spec *out, tsr_err *err)
{
    const size_t n = (size_t)n_body, row = (size_t)n_q;
    const size_t n_table = (size_t)table->n_type * row;
    tsr_pool scratch = {0};
    double *amplitude, *excess;
    int *body;
    *out = (tsr_coarse_spec){.radius_ang =
                                 tsr_component_radius(table, n_body, type)};
    tsr_pool_array(pool, out->type, n);
    tsr_pool_array(pool, out->self, TSR_N_COMP_PAIR * row);
    tsr_pool_array(&scratch, body, 2 * n + (size_t)table->n_type);
    tsr_pool_array(&scratch, amplitude, TSR_N_COMP * n_table);
    tsr_pool_array(&scratch, excess, TSR_N_COMP_PAIR * n_table);
    tsr_status s = TSR_OK;
    if (pool->failed || scratch.failed)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for %d bodies", n_body);
    TSR_THEN(s, tsr_form_factor_resample(table, n_q, dq_inv_ang, amplitude,
                                         excess, err));
    if (s == TSR_OK) {
        const int n_type =
            number_types(n_body, type, table->n_type, exposure, out, body);
        tsr_pool_array(pool, out->form_factor,
                       TSR_N_COMP * (size_t)n_type * row);
        tsr_coarse_spec_set(out, n_body, n_type, TSR_N_COMP, n_q, dq_inv_ang);
        s = tsr_pool_check(pool, err);
    }
    if (s == TSR_OK) {
        set_engine_factors(table, type, body, exposure, amplitude, out);
        tsr_coarse_add_self(table, n_body, type, exposure, n_q, excess,
                            out->self);
    }
    tsr_pool_clear(&scratch);
    return s;
}

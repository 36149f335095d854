/* The table of form factors, and the algebra of c1 and c2.
 *
 * A table keeps the excess E = P - F^2 rather than the mean self-intensity P:
 * E begins as q^4 under terms of some hundred, and S(q) must not be made of
 * their rounding when the table is interpolated. */
#include "scattering/form_factor.h"

#include "molecule/structure.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_spline.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- tables ---- */

static tsr_form_factor_table *table_new(tsr_body_model model, int n_more,
                                        int n_comp, int n_q, double dq_inv_ang)
{
    tsr_form_factor_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    table->model = model;
    table->n_comp = n_comp;
    table->n_pair = n_comp * (n_comp + 1) / 2;
    table->n_trained = tsr_body_n_type(model);
    table->n_type = table->n_trained + n_more;
    table->n_q = n_q;
    table->dq_inv_ang = dq_inv_ang;
    table->exposure = tsr_exposure_model_of(model);
    size_t n_type = (size_t)table->n_type, n = n_type * (size_t)n_q;
    table->amplitude = calloc((size_t)n_comp * n, sizeof(double));
    table->excess = calloc((size_t)table->n_pair * n, sizeof(double));
    table->count = calloc(n_type, sizeof *table->count);
    table->rg2 = calloc(n_type, sizeof *table->rg2);
    table->atoms = calloc(n_type, sizeof *table->atoms);
    table->radius = calloc(n_type, sizeof *table->radius);
    table->exposed = calloc(n_type, sizeof *table->exposed);
    if (table->amplitude != NULL && table->excess != NULL &&
        table->count != NULL && table->rg2 != NULL && table->atoms != NULL &&
        table->radius != NULL && table->exposed != NULL)
        return table;
    tsr_form_factor_free(table);
    return NULL;
}

tsr_form_factor_table *tsr_form_factor_new(tsr_body_model model, int n_comp,
                                           int n_q, double dq_inv_ang)
{
    return table_new(model, 0, n_comp, n_q, dq_inv_ang);
}

/* Rows of n_from types become those of more. */
static void copy_rows(int n_block, int n_from, int n_to, int n_q,
                      const double *from, double *to)
{
    size_t row = (size_t)n_q;
    for (size_t b = 0; b < (size_t)n_block; b++)
        memcpy(to + b * (size_t)n_to * row, from + b * (size_t)n_from * row,
               (size_t)n_from * row * sizeof *to);
}

tsr_form_factor_table *tsr_form_factor_grow(const tsr_form_factor_table *table,
                                            int n_more)
{
    const tsr_form_factor_table *from = table;
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
    free(table->amplitude);
    free(table->excess);
    free(table->count);
    free(table->rg2);
    free(table->atoms);
    free(table->radius);
    free(table->exposed);
    free(table->source);
    free(table);
}

/* The table's knots, some of them mirrored to negative q, and one spline. */
typedef struct {
    int n_mirror, n_knot;
    double *q, *y; /* [n_knot] */
    double last;   /* q of the last knot */
    gsl_spline *spline;
    gsl_interp_accel *accel;
} knots;

static void knots_free(knots *e)
{
    free(e->q);
    free(e->y);
    gsl_spline_free(e->spline);
    gsl_interp_accel_free(e->accel);
}

static tsr_status knots_new(knots *e, const tsr_form_factor_table *table,
                            tsr_err *err)
{
    /* The influence of a knot falls by 3.7 with each step: 12 are plenty. */
    e->n_mirror = table->n_q - 1 < 12 ? table->n_q - 1 : 12;
    e->n_knot = e->n_mirror + table->n_q;
    e->last = (table->n_q - 1) * table->dq_inv_ang;
    size_t n = (size_t)e->n_knot;
    e->q = malloc(n * sizeof *e->q);
    e->y = malloc(n * sizeof *e->y);
    e->spline = gsl_spline_alloc(gsl_interp_cspline, n);
    e->accel = gsl_interp_accel_alloc();
    if (e->q == NULL || e->y == NULL || e->spline == NULL || e->accel == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a spline of %d knots",
                        e->n_knot);
    for (int i = 0; i < e->n_knot; i++)
        e->q[i] = (i - e->n_mirror) * table->dq_inv_ang;
    return TSR_OK;
}

static tsr_status one_curve(knots *e, const double *y, int n_q, double dq,
                            double *out, tsr_err *err)
{
    for (int i = 0; i < e->n_knot; i++)
        e->y[i] = y[abs(i - e->n_mirror)];
    int gsl = gsl_spline_init(e->spline, e->q, e->y, (size_t)e->n_knot);
    for (int k = 0; k < n_q && gsl == GSL_SUCCESS; k++) {
        double q =
            k * dq < e->last ? k * dq : e->last; /* rounding at the end */
        gsl = gsl_spline_eval_e(e->spline, q, e->accel, &out[k]);
    }
    if (gsl != GSL_SUCCESS)
        return tsr_fail(err, TSR_E_INTERNAL, "spline of a form factor: %s",
                        gsl_strerror(gsl));
    return TSR_OK;
}

/* Curves of the table between its points: natural cubic splines through the
 * table mirrored at q = 0, for all of them are even in q. out [n_curve][n_q] at
 * k dq from y [n_curve][table->n_q]. */
static tsr_status interpolate(const tsr_form_factor_table *table, int n_curve,
                              const double *y, int n_q, double dq_inv_ang,
                              double *out, tsr_err *err)
{
    double last = (table->n_q - 1) * table->dq_inv_ang;
    double asked = (n_q - 1) * dq_inv_ang;
    if (n_q < 1 || !(dq_inv_ang > 0.0))
        return tsr_fail(err, TSR_E_RANGE, "a q grid of %d points, step %g", n_q,
                        dq_inv_ang);
    if (!(asked <= last * (1.0 + 1e-9)))
        return tsr_fail(err, TSR_E_RANGE,
                        "q up to %g 1/Angstrom is asked of form factors that "
                        "end at %g; narrow q_range (or a "
                        "slit of resolution)",
                        asked, last);
    knots e = {0};
    tsr_status s = knots_new(&e, table, err);
    for (int c = 0; c < n_curve && s == TSR_OK; c++)
        s = one_curve(&e, y + (size_t)c * (size_t)table->n_q, n_q, dq_inv_ang,
                      out + (size_t)c * (size_t)n_q, err);
    knots_free(&e);
    return s;
}

tsr_status tsr_form_factor_at(const tsr_form_factor_table *table, int n_q,
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

void tsr_form_factor_expose(const tsr_form_factor_table *table, int n_body,
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
    double by = density / TSR_WATER_DENSITY;
    int n = table->n_type * table->n_q;
    if (table->n_comp == 1 && by != 1.0)
        return tsr_fail(err, TSR_E_USAGE,
                        "a solvent of %g e/A^3: this table of form factors has "
                        "one component, with water in it; give one of three",
                        density);
    for (int i = 0; i < n && by != 1.0; i++) {
        table->amplitude[TSR_DISPLACED * n + i] *= by;
        for (int a = 0; a < TSR_N_COMP; a++)
            for (int b = a; b < TSR_N_COMP; b++)
                table->excess[tsr_component_pair(a, b) * n + i] *=
                    (a == TSR_DISPLACED ? by : 1.0) *
                    (b == TSR_DISPLACED ? by : 1.0);
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

/* ---- c1 and c2 ---- */

int tsr_component_pair(int a, int b)
{
    return a * (2 * TSR_N_COMP - a - 1) / 2 + b;
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

double tsr_component_power(double radius_ang, double q_inv_ang)
{
    double area = pow(4.0 * pi / 3.0, 2.0 / 3.0) * radius_ang * radius_ang;
    return area * q_inv_ang * q_inv_ang / (4.0 * pi);
}

double tsr_component_scale_of(double c1, double power)
{
    double square = c1 * c1;
    return square * c1 * exp(-(square - 1.0) * power);
}

double tsr_component_scale(double c1, double radius_ang, double q_inv_ang)
{
    return tsr_component_scale_of(c1,
                                  tsr_component_power(radius_ang, q_inv_ang));
}

double tsr_component_intensity(const double *partial, size_t stride, double g,
                               double c2)
{
    const double *p = partial; /* 00 01 02 11 12 22 */
    return p[0] - 2.0 * g * p[stride] + 2.0 * c2 * p[2 * stride] +
           g * g * p[3 * stride] - 2.0 * g * c2 * p[4 * stride] +
           c2 * c2 * p[5 * stride];
}

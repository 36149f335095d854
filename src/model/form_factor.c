#include "model/form_factor.h"

#include "io/structure.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_spline.h>
#include <math.h>
#include <stdlib.h>

/* Fraser, MacRae & Suzuki 1978, J. Appl. Cryst. 11, 693, table 1. */
static double displaced_volume(int z)
{
    switch (z) {
    case 1:
        return 5.15;
    case 6:
        return 16.44;
    case 7:
        return 2.49;
    case 8:
        return 9.13;
    case 16:
        return 19.86;
    default:
        return (double)NAN;
    }
}

double tsr_atom_contrast_amplitude(int z, int n_hydrogen, double q_inv_ang)
{
    static const double rho0 = 0.334; /* e/A^3, water */
    static const double pi = 3.14159265358979323846;
    /* An atom with its hydrogens displaces one volume, as the atomic groups
     * of Svergun et al. 1995 (J. Appl. Cryst. 28, 768) do. */
    double v = displaced_volume(z) + n_hydrogen * displaced_volume(1);
    double g = v * exp(-q_inv_ang * q_inv_ang * cbrt(v * v) / (4.0 * pi));
    double f = tsr_atom_form_factor(z, q_inv_ang);
    if (n_hydrogen > 0)
        f += n_hydrogen * tsr_atom_form_factor(1, q_inv_ang);
    return f - rho0 * g;
}

tsr_form_factor_table *tsr_form_factor_new(tsr_body_model model, int n_q,
                                           double dq_inv_ang)
{
    tsr_form_factor_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    size_t n_type = (size_t)tsr_body_n_type(model);
    table->model = model;
    table->n_type = (int)n_type;
    table->n_q = n_q;
    table->dq_inv_ang = dq_inv_ang;
    table->amplitude = calloc(n_type * (size_t)n_q, sizeof(double));
    table->self = calloc(n_type * (size_t)n_q, sizeof(double));
    table->rg2 = calloc(n_type, sizeof(double));
    table->count = calloc(n_type, sizeof(long));
    if (table->amplitude == NULL || table->self == NULL || table->rg2 == NULL ||
        table->count == NULL) {
        tsr_form_factor_free(table);
        return NULL;
    }
    return table;
}

void tsr_form_factor_free(tsr_form_factor_table *table)
{
    if (table == NULL)
        return;
    free(table->amplitude);
    free(table->self);
    free(table->rg2);
    free(table->count);
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
} even_spline;

static void even_spline_free(even_spline *e)
{
    free(e->q);
    free(e->y);
    gsl_spline_free(e->spline);
    gsl_interp_accel_free(e->accel);
}

static tsr_status even_spline_new(even_spline *e,
                                  const tsr_form_factor_table *table,
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
    if (e->q == NULL || e->y == NULL || e->spline == NULL || e->accel == NULL) {
        even_spline_free(e);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a spline of %d knots",
                        e->n_knot);
    }
    for (int i = 0; i < e->n_knot; i++)
        e->q[i] = (i - e->n_mirror) * table->dq_inv_ang;
    return TSR_OK;
}

/* out[k] = spline through y (from q = 0 on) at k dq. */
static tsr_status even_spline_at(even_spline *e, const double *y, int n_q,
                                 double dq, double *out, tsr_err *err)
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

tsr_status tsr_form_factor_at(const tsr_form_factor_table *table, int n_q,
                              double dq_inv_ang, double *amplitude,
                              double *excess, tsr_err *err)
{
    double last = (table->n_q - 1) * table->dq_inv_ang;
    double asked = (n_q - 1) * dq_inv_ang;
    if (n_q < 1 || !(dq_inv_ang > 0.0))
        return tsr_fail(err, TSR_E_RANGE, "a q grid of %d points, step %g", n_q,
                        dq_inv_ang);
    if (!(asked <= last * (1.0 + 1e-9)))
        return tsr_fail(err, TSR_E_RANGE,
                        "q up to %g 1/Angstrom is asked of form factors that "
                        "end at %g; narrow q_range",
                        asked, last);
    even_spline spline = {0};
    double *difference = malloc((size_t)table->n_q * sizeof *difference);
    tsr_status s = TSR_OK;
    if (difference == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for form factors");
    s = even_spline_new(&spline, table, err);
    if (s != TSR_OK) {
        free(difference);
        return s;
    }
    for (int t = 0; t < table->n_type && s == TSR_OK; t++) {
        const double *f = table->amplitude + (size_t)t * (size_t)table->n_q;
        const double *p = table->self + (size_t)t * (size_t)table->n_q;
        size_t at = (size_t)t * (size_t)n_q;
        if (amplitude != NULL)
            s = even_spline_at(&spline, f, n_q, dq_inv_ang, amplitude + at,
                               err);
        if (excess == NULL || s != TSR_OK)
            continue;
        /* The difference itself, not P and F: it begins as q^4 under terms of
         * some hundred, and S(q) must not be made of their rounding. */
        for (int k = 0; k < table->n_q; k++)
            difference[k] = p[k] - f[k] * f[k];
        s = even_spline_at(&spline, difference, n_q, dq_inv_ang, excess + at,
                           err);
    }
    even_spline_free(&spline);
    free(difference);
    return s;
}

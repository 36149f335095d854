#include "model/even_spline.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_spline.h>
#include <math.h>
#include <stdlib.h>

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

static tsr_status knots_new(knots *e, const tsr_even_spline *table,
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

tsr_status tsr_even_spline_at(const tsr_even_spline *table, int n_curve,
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
                        "end at %g; narrow q_range",
                        asked, last);
    knots e = {0};
    tsr_status s = knots_new(&e, table, err);
    for (int c = 0; c < n_curve && s == TSR_OK; c++)
        s = one_curve(&e, y + (size_t)c * (size_t)table->n_q, n_q, dq_inv_ang,
                      out + (size_t)c * (size_t)n_q, err);
    knots_free(&e);
    return s;
}

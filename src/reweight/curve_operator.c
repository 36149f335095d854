/* A run stores its curves at the q of its own data. A natural spline takes
 * them to other q; it is linear in the curve, so it is kept as a matrix.
 * Whether the run's q are close enough is estimated from every second of them.
 */
#include "reweight/reweight.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_interp.h>
#include <math.h>
#include <stdlib.h>

/* q that are written with few digits are the same. */
static const double same_q = 1e-6; /* 1/Angstrom */

static int find_same(const tsr_saxs *from, double q)
{
    int low = 0, high = from->n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (from->q[middle] < q - same_q)
            low = middle + 1;
        else
            high = middle;
    }
    return fabs(from->q[low] - q) <= same_q ? low : -1;
}

static tsr_status check_range(const tsr_saxs *from, const tsr_saxs *to,
                              tsr_err *err)
{
    const double first = from->q[0], last = from->q[from->n - 1];
    int n_out = 0;
    for (int k = 0; k < to->n; k++)
        n_out += to->q[k] < first - same_q || to->q[k] > last + same_q;
    if (n_out == 0)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "%d of %d points of '%s' (q = %.4g to %.4g 1/A) lie "
                    "outside the run's q, %.4g to %.4g 1/A, where the draws "
                    "have no curve: narrow it with --q-range %.4g,%.4g, or run "
                    "with that data",
                    n_out, to->n, to->path, to->q[0], to->q[to->n - 1], first,
                    last, first, last);
}

tsr_status tsr_curve_operator(const tsr_saxs *from, const tsr_saxs *to,
                              double **matrix, tsr_err *err)
{
    const size_t n = (size_t)from->n;
    *matrix = NULL;
    tsr_status status = check_range(from, to, err);
    if (status != TSR_OK)
        return status;
    double *out = calloc((size_t)to->n * n, sizeof *out);
    double *unit = calloc(n, sizeof *unit);
    gsl_interp *spline = gsl_interp_alloc(gsl_interp_cspline, n);
    if (out == NULL || unit == NULL || spline == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (size_t j = 0; j < n && status == TSR_OK; j++) {
        unit[j] = 1.0;
        gsl_interp_init(spline, from->q, unit, n);
        for (int k = 0; k < to->n; k++) {
            int at = find_same(from, to->q[k]);
            double q = fmin(fmax(to->q[k], from->q[0]), from->q[n - 1]);
            out[(size_t)k * n + j] =
                at >= 0 ? (size_t)at == j
                        : gsl_interp_eval(spline, from->q, unit, q, NULL);
        }
        unit[j] = 0.0;
    }
    gsl_interp_free(spline);
    free(unit);
    if (status != TSR_OK)
        free(out);
    else
        *matrix = out;
    return status;
}

/* The largest error at the points left out, in units of the nearest sigma. */
static double largest_error(const tsr_saxs *from, const tsr_saxs *to,
                            const double *curve, double c, double *q, double *y)
{
    size_t n = 0, at = 0;
    double worst = 0.0;
    for (int k = 0; k < from->n; k += 2, n++)
        q[n] = from->q[k], y[n] = curve[k];
    gsl_interp *spline = gsl_interp_alloc(gsl_interp_cspline, n);
    if (spline == NULL)
        return (double)NAN;
    gsl_interp_init(spline, q, y, n);
    for (int k = 1; k < from->n; k += 2) {
        if (from->q[k] < to->q[0] || from->q[k] > to->q[to->n - 1] ||
            from->q[k] > q[n - 1])
            continue;
        while (at + 1 < (size_t)to->n && to->q[at] < from->q[k])
            at++;
        double e = gsl_interp_eval(spline, q, y, from->q[k], NULL) - curve[k];
        worst = fmax(worst, fabs(c * e) / to->sigma[at]);
    }
    gsl_interp_free(spline);
    return worst / 16.0;
}

static double find_error(const tsr_saxs *from, const tsr_saxs *to,
                         const double *curve, double c)
{
    int n_new = 0;
    for (int k = 0; k < to->n; k++)
        n_new += find_same(from, to->q[k]) < 0;
    if (n_new == 0)
        return 0.0;
    if (from->n < 7)
        return HUGE_VAL; /* half of it is no spline */
    double *q = malloc((size_t)from->n * sizeof *q);
    double *y = malloc((size_t)from->n * sizeof *y);
    double error = q != NULL && y != NULL
                       ? largest_error(from, to, curve, c, q, y)
                       : (double)NAN;
    free(q);
    free(y);
    return error;
}

tsr_status tsr_curve_operator_check(const tsr_saxs *from, const tsr_saxs *to,
                                    const double *curve, double c,
                                    double *error, tsr_err *err)
{
    const double most = 0.3; /* sigma */
    *error = find_error(from, to, curve, c);
    if (*error <= most)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "the run's %d values of q are too far apart to "
                    "interpolate the curve for '%s': the error would be %.2g "
                    "of its sigma (%.2g are allowed); run with that data",
                    from->n, to->path, *error, most);
}

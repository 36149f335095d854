#include "analysis/maxent_curves.h"

#include "analysis/maxent_dual.h"
#include "analysis/reweight.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_eigen.h>
#include <math.h>
#include <stdlib.h>

static const double left_out = 1e-12; /* of the variance */

static void take(tsr_maxent_curves *e, const double *curve)
{
    const int n_run = e->stored->n;
    for (int k = 0; k < e->n; k++) {
        const double *row = e->matrix + (size_t)k * (size_t)n_run;
        double sum = 0.0;
        for (int j = 0; j < n_run; j++)
            sum += row[j] * curve[j];
        e->curve[k] = sum / e->saxs->sigma[k];
    }
}

/* Welford's update of mean and sum of products. */
static tsr_status visit_moments(void *context, size_t at, const double *curve,
                                tsr_err *err)
{
    tsr_maxent_curves *e = context;
    (void)at, (void)err;
    take(e, curve);
    const double part = 1.0 / ++e->n_seen;
    for (int k = 0; k < e->n; k++)
        e->curve[k] -= e->mean[k];
    gsl_vector_view x = gsl_vector_view_array(e->curve, (size_t)e->n);
    gsl_blas_dsyr(CblasLower, 1.0 - part, &x.vector, e->covariance);
    for (int k = 0; k < e->n; k++)
        e->mean[k] += part * e->curve[k];
    return TSR_OK;
}

static tsr_status visit_scores(void *context, size_t at, const double *curve,
                               tsr_err *err)
{
    tsr_maxent_curves *e = context;
    (void)err;
    take(e, curve);
    for (int d = 0; d < e->n_dim; d++) {
        const double *axis = e->axis + (size_t)d * (size_t)e->n;
        double sum = 0.0;
        for (int k = 0; k < e->n; k++)
            sum += axis[k] * (e->curve[k] - e->mean[k]);
        e->score[at * (size_t)e->n_dim + (size_t)d] = sum;
    }
    return TSR_OK;
}

void tsr_maxent_curves_clear(tsr_maxent_curves *e)
{
    free(e->matrix);
    free(e->curve);
    free(e->mean);
    gsl_matrix_free(e->covariance);
    free(e->axis);
    free(e->score);
}

/* The components that carry the variance, the largest first. */
static tsr_status find_axes(tsr_maxent_curves *e, tsr_err *err)
{
    const size_t n = (size_t)e->n;
    tsr_status status = TSR_OK;
    gsl_vector *value = gsl_vector_alloc(n);
    gsl_matrix *vector = gsl_matrix_alloc(n, n);
    gsl_eigen_symmv_workspace *w = gsl_eigen_symmv_alloc(n);
    if (value == NULL || vector == NULL || w == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
        goto done;
    }
    gsl_eigen_symmv(e->covariance, value, vector, w);
    gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
    const double largest = gsl_vector_get(value, 0);
    while (e->n_dim < e->n && e->n_dim < TSR_MAXENT_DIM && largest > 0.0 &&
           gsl_vector_get(value, (size_t)e->n_dim) > left_out * largest)
        e->n_dim++;
    if (e->n_dim == 0) {
        status = tsr_fail(err, TSR_E_DATA,
                          "all curves are the same: there is nothing to weigh");
        goto done;
    }
    e->axis = malloc((size_t)e->n_dim * n * sizeof *e->axis);
    e->score = malloc((size_t)e->n_seen * (size_t)e->n_dim * sizeof *e->score);
    if (e->axis == NULL || e->score == NULL) {
        status =
            tsr_fail(err, TSR_E_NOMEM, "no memory for %d draws", e->n_seen);
        goto done;
    }
    for (size_t d = 0; d < (size_t)e->n_dim; d++)
        for (size_t k = 0; k < n; k++)
            e->axis[d * n + k] = gsl_matrix_get(vector, k, d);
done:
    gsl_eigen_symmv_free(w);
    gsl_vector_free(value);
    gsl_matrix_free(vector);
    return status;
}

tsr_status tsr_maxent_curves_make(const tsr_stored_curve *stored,
                                  const tsr_saxs *saxs, tsr_maxent_curves *e,
                                  tsr_err *err)
{
    const size_t n = (size_t)saxs->n;
    *e = (tsr_maxent_curves){.stored = stored, .saxs = saxs, .n = saxs->n};
    tsr_status status =
        tsr_curve_operator(&stored->saxs, saxs, &e->matrix, err);
    if (status != TSR_OK)
        return status;
    e->curve = calloc(n, sizeof *e->curve);
    e->mean = calloc(n, sizeof *e->mean);
    e->covariance = gsl_matrix_calloc(n, n);
    if (e->curve == NULL || e->mean == NULL || e->covariance == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    status = tsr_stored_curve_each(stored, visit_moments, e, err);
    if (status == TSR_OK)
        status = find_axes(e, err);
    return status == TSR_OK
               ? tsr_stored_curve_each(stored, visit_scores, e, err)
               : status;
}

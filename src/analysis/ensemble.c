/* Least squares is solved by an active set: models come in one by one, the one
 * along which chi2 falls fastest first, and those whose weight would become
 * negative go out again. Scale is the sum of the weights before they are
 * normalised; a free background is projected out of curves and data. */
#include "analysis/ensemble.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int n, n_point;    /* models; points */
    gsl_matrix *curve; /* [n][n_point] by sigma, background projected out */
    double *size;      /* [n] length of each curve, before it was made 1 */
    double *rest;      /* [n_point] data less the weighted sum */
    double *weight;    /* [n] of the curves of length 1 */
    int *in;           /* [n_in] models that carry weight */
    int n_in;
    gsl_vector *best; /* [n] of those that are in: least squares */
} problem;

static void clear(problem *p)
{
    gsl_matrix_free(p->curve);
    gsl_vector_free(p->best);
    free(p->size);
    free(p->rest);
    free(p->weight);
    free(p->in);
}

/* Takes what is along `one` out of x; one has the length 1. */
static void project(int n, const double *one, double *x)
{
    double along = 0.0;
    for (int k = 0; k < n; k++)
        along += one[k] * x[k];
    for (int k = 0; k < n; k++)
        x[k] -= along * one[k];
}

static tsr_status set_up(problem *p, const double *curve, const tsr_saxs *saxs,
                         const tsr_linear *linear, tsr_err *err)
{
    const size_t n = (size_t)p->n, n_point = (size_t)p->n_point;
    double *one = malloc(n_point * sizeof *one), norm = 0.0;
    p->curve = gsl_matrix_alloc(n, n_point);
    p->best = gsl_vector_alloc(n);
    p->size = calloc(n, sizeof *p->size);
    p->rest = calloc(n_point, sizeof *p->rest);
    p->weight = calloc(n, sizeof *p->weight);
    p->in = calloc(n, sizeof *p->in);
    if (one == NULL || p->curve == NULL || p->best == NULL || p->size == NULL ||
        p->rest == NULL || p->weight == NULL || p->in == NULL) {
        free(one);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d models", p->n);
    }
    const double b = linear->infer_background ? 0.0 : linear->background;
    for (size_t k = 0; k < n_point; k++) {
        one[k] = 1.0 / saxs->sigma[k];
        norm += one[k] * one[k];
        p->rest[k] = (saxs->intensity[k] - b) / saxs->sigma[k];
        for (size_t i = 0; i < n; i++)
            gsl_matrix_set(p->curve, i, k,
                           curve[i * n_point + k] / saxs->sigma[k]);
    }
    for (size_t k = 0; k < n_point; k++)
        one[k] /= sqrt(norm);
    if (linear->infer_background)
        project(p->n_point, one, p->rest);
    for (size_t i = 0; i < n; i++) {
        gsl_vector_view row = gsl_matrix_row(p->curve, i);
        if (linear->infer_background)
            project(p->n_point, one, row.vector.data);
        p->size[i] = gsl_blas_dnrm2(&row.vector);
        gsl_vector_scale(&row.vector, 1.0 / p->size[i]);
    }
    free(one);
    return TSR_OK;
}

/* Least squares of the models that are in, by QR with pivots, as curves are
 * much alike. data [n_point]. */
static tsr_status fit_those(problem *p, const double *data, tsr_err *err)
{
    const size_t n = (size_t)p->n_point, m = (size_t)p->n_in;
    gsl_matrix *a = gsl_matrix_alloc(n, m);
    gsl_vector *tau = gsl_vector_alloc(m), *rest = gsl_vector_alloc(n);
    gsl_vector *norm = gsl_vector_alloc(m);
    gsl_permutation *order = gsl_permutation_alloc(m);
    int sign, failed = 1;
    if (a != NULL && tau != NULL && rest != NULL && norm != NULL &&
        order != NULL) {
        gsl_vector_const_view y = gsl_vector_const_view_array(data, n);
        gsl_vector_view x = gsl_vector_subvector(p->best, 0, m);
        for (size_t i = 0; i < m; i++) {
            gsl_vector_view row = gsl_matrix_row(p->curve, (size_t)p->in[i]);
            gsl_matrix_set_col(a, i, &row.vector);
        }
        failed = gsl_linalg_QRPT_decomp(a, tau, order, &sign, norm) != 0 ||
                 gsl_linalg_QRPT_lssolve(a, tau, order, &y.vector, &x.vector,
                                         rest) != 0;
    }
    gsl_matrix_free(a);
    gsl_vector_free(tau);
    gsl_vector_free(norm);
    gsl_vector_free(rest);
    gsl_permutation_free(order);
    return failed ? tsr_fail(err, TSR_E_NOMEM,
                             "no memory for the weights of %d models", p->n_in)
                  : TSR_OK;
}

/* Where chi2 falls fastest, among models that have no weight and are not
 * barred; -1: nowhere. */
static int steepest(const problem *p, const char *is_barred)
{
    const double enough = 1e-9; /* of the length of what is left */
    gsl_vector_const_view rest =
        gsl_vector_const_view_array(p->rest, (size_t)p->n_point);
    double best = enough * gsl_blas_dnrm2(&rest.vector);
    int found = -1;
    for (int i = 0; i < p->n; i++) {
        double fall;
        gsl_vector_view row = gsl_matrix_row(p->curve, (size_t)i);
        gsl_blas_ddot(&row.vector, &rest.vector, &fall);
        if (p->weight[i] == 0.0 && !is_barred[i] && fall > best) {
            best = fall;
            found = i;
        }
    }
    return found;
}

/* Goes towards the least squares of those that are in as far as no weight is
 * negative, and takes out those that are 0 there. Returns 1 where it arrived.
 */
static int go_there(problem *p)
{
    double part = 1.0;
    for (int i = 0; i < p->n_in; i++) {
        const double now = p->weight[p->in[i]];
        const double to = gsl_vector_get(p->best, (size_t)i);
        if (to <= 0.0)
            part = fmin(part, now / (now - to));
    }
    int left = 0;
    for (int i = 0; i < p->n_in; i++) {
        double *now = &p->weight[p->in[i]];
        const double to = gsl_vector_get(p->best, (size_t)i);
        const double next = *now + part * (to - *now);
        *now = to <= 0.0 && next < 1e-12 * fmax(1.0, -to) ? 0.0 : next;
        if (*now > 0.0)
            p->in[left++] = p->in[i];
    }
    const int arrived = part == 1.0;
    p->n_in = left;
    return arrived;
}

static void find_rest(problem *p, const double *data)
{
    memcpy(p->rest, data, (size_t)p->n_point * sizeof *p->rest);
    gsl_vector_view rest = gsl_vector_view_array(p->rest, (size_t)p->n_point);
    for (int i = 0; i < p->n; i++) {
        gsl_vector_view row = gsl_matrix_row(p->curve, (size_t)i);
        if (p->weight[i] > 0.0)
            gsl_blas_daxpy(-p->weight[i], &row.vector, &rest.vector);
    }
}

static tsr_status iterate(problem *p, tsr_err *err)
{
    double *data = malloc((size_t)p->n_point * sizeof *data);
    char *is_barred = calloc((size_t)p->n, 1);
    tsr_status status = TSR_OK;
    if (data == NULL || is_barred == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for %d models", p->n);
    else
        memcpy(data, p->rest, (size_t)p->n_point * sizeof *data);
    for (int turn = 0; turn < 3 * p->n && status == TSR_OK; turn++) {
        const int next = steepest(p, is_barred);
        if (next < 0 || p->n_in >= p->n_point)
            break;
        p->in[p->n_in++] = next;
        status = fit_those(p, data, err);
        if (status == TSR_OK &&
            gsl_vector_get(p->best, (size_t)p->n_in - 1) <= 0.0) {
            is_barred[next] = 1; /* rounding: it does not help after all */
            p->n_in--;
            continue;
        }
        while (status == TSR_OK && !go_there(p))
            status = fit_those(p, data, err);
        find_rest(p, data);
        memset(is_barred, 0, (size_t)p->n);
    }
    free(is_barred);
    free(data);
    return status;
}

/* chi2, scale and background of weights that add up to 1. */
static tsr_status judge(int n, const double *curve, const tsr_saxs *saxs,
                        const tsr_linear *linear, const double *weight,
                        tsr_maxent_point *point, tsr_err *err)
{
    const size_t n_point = (size_t)saxs->n;
    double *model = calloc(2 * n_point, sizeof *model), *by = model + n_point;
    tsr_fit fit = {.scale = 0.0};
    TSR_TRY(tsr_allocated(model, err));
    for (size_t k = 0; k < n_point; k++)
        by[k] = 1.0 / (saxs->sigma[k] * saxs->sigma[k]);
    *point = (tsr_maxent_point){.kl = 0.0};
    for (int i = 0; i < n; i++) {
        if (weight[i] > 0.0)
            point->kl += weight[i] * log(weight[i] * n);
        for (size_t k = 0; k < n_point; k++)
            model[k] += weight[i] * curve[(size_t)i * n_point + k];
    }
    tsr_linear_fit(linear, saxs->n, model, saxs->intensity, by, &fit);
    free(model);
    point->effective = exp(-point->kl);
    point->chi2 = fit.square_sum / saxs->n;
    point->scale = fit.scale;
    point->background = fit.background;
    return TSR_OK;
}

tsr_status tsr_ensemble_least_squares(int n, const double *curve,
                                      const tsr_saxs *saxs,
                                      const tsr_linear *linear, double *weight,
                                      tsr_maxent_point *point, tsr_err *err)
{
    problem p = {.n = n, .n_point = saxs->n};
    double sum = 0.0;
    tsr_status status = set_up(&p, curve, saxs, linear, err);
    TSR_THEN(status, iterate(&p, err));
    for (int i = 0; i < n && status == TSR_OK; i++) {
        weight[i] = p.weight[i] / p.size[i];
        sum += weight[i];
    }
    if (status == TSR_OK && !(sum > 0.0))
        status = tsr_fail(err, TSR_E_NUMERIC,
                          "no positive weight brings any model nearer to the "
                          "data");
    for (int i = 0; i < n && status == TSR_OK; i++)
        weight[i] /= sum;
    clear(&p);
    return status == TSR_OK ? judge(n, curve, saxs, linear, weight, point, err)
                            : status;
}

tsr_status tsr_ensemble_maxent(int n, const double *curve, const tsr_saxs *saxs,
                               const tsr_linear *linear, double theta,
                               double *weight, tsr_maxent_point *point,
                               tsr_err *err)
{
    const tsr_stored_curve stored = {.n_chain = 1,
                                     .n_draw = n,
                                     .n = saxs->n,
                                     .saxs = *saxs,
                                     .in_memory = curve};
    tsr_maxent *m;
    tsr_status status = tsr_maxent_make(&stored, saxs, linear, theta, &m, err);
    for (int i = 0; i < n && status == TSR_OK; i++)
        weight[i] = exp(m->log_weight[i]);
    if (status == TSR_OK)
        *point = m->point[m->chosen];
    tsr_maxent_free(m);
    return status;
}

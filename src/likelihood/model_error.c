/* What is left between two models once their mean curves agree. */
#include "likelihood/likelihood.h"
#include "likelihood/noise.h"

#include <gsl/gsl_eigen.h>
#include <math.h>

static const double same_scale_to = 0.1; /* 1/Angstrom */

static const tsr_probe *probe_of(const tsr_examples *x)
{
    return &x->likelihood->probe[x->likelihood->view[x->view].probe];
}

size_t tsr_examples_size(const tsr_examples *examples, int i)
{
    return (size_t)i * (size_t)tsr_likelihood_n_profile(examples->likelihood);
}

size_t tsr_examples_offset(const tsr_examples *examples, int i)
{
    return tsr_examples_size(examples, i) +
           (size_t)probe_of(examples)->first *
               (size_t)examples->likelihood->grid.n_q;
}

static int n_same(const tsr_examples *x)
{
    return 1 + (int)(same_scale_to / x->likelihood->grid.dq_inv_ang);
}

/* log of atoms over bodies, of conformation i at one c1 and c2, less its mean
 * at small angles, which is a matter of scale: left [n_q] out. Without the
 * ratio where is_plain. */
static void compare(const tsr_examples *x, int i, const double *contrast,
                    int is_plain, double *left)
{
    const tsr_likelihood *l = x->likelihood;
    const tsr_view *view = &l->view[x->view];
    const int n_q = l->grid.n_q;
    const int n_scale = n_same(x) < n_q ? n_same(x) : n_q;
    double mean = 0.0;
    for (int k = 0; k < n_q; k++) {
        const size_t at = (size_t)k;
        const double a = tsr_likelihood_combine(
            l, x->view, x->atoms + tsr_examples_offset(x, i), contrast,
            view->atom_power[k], at);
        const double b = tsr_likelihood_combine(
            l, x->view, x->bodies + tsr_examples_offset(x, i), contrast,
            probe_of(x)->power[k], at);
        const double by =
            is_plain ? 1.0 : tsr_likelihood_ratio(l, x->view, contrast, at);
        left[k] = log(a / (b * by));
        if (!isfinite(left[k]))
            left[k] = 0.0; /* bodies can scatter less than nothing */
    }
    for (int k = 1; k < n_scale; k++)
        mean += left[k] / (n_scale - 1);
    for (int k = 0; k < n_q; k++)
        left[k] -= mean;
}

void tsr_examples_moments(const tsr_examples *x, int is_plain, double *square,
                          double *covariance, double *left)
{
    const int n_q = x->likelihood->grid.n_q;
    const double each = 1.0 / (x->n * x->n_node);
    for (int v = 0; v < x->n_node; v++)
        for (int i = 0; i < x->n; i++) {
            compare(x, i, x->node[v], is_plain, left);
            for (int k = 0; k < n_q; k++)
                square[k] += each * left[k] * left[k];
            for (int k = 0; k < n_q && covariance != NULL; k++)
                for (int j = 0; j < n_q; j++)
                    covariance[k * n_q + j] += each * left[k] * left[j];
        }
}

double tsr_examples_variance_factor(int n)
{
    return n * (1.0 + 1.0 / n) / (n - 3.0);
}

int tsr_examples_components(const tsr_examples *x, const double *square,
                            const double *covariance, double *curve)
{
    const double enough = 0.97, floor = 5e-4 * 5e-4; /* of I */
    const size_t n_q = (size_t)x->likelihood->grid.n_q;
    gsl_matrix *a = gsl_matrix_alloc(n_q, n_q);
    gsl_matrix *vector = gsl_matrix_alloc(n_q, n_q);
    gsl_vector *value = gsl_vector_alloc(n_q);
    gsl_eigen_symmv_workspace *room = gsl_eigen_symmv_alloc(n_q);
    int n = 0;
    if (a != NULL && vector != NULL && value != NULL && room != NULL) {
        double all = 0.0, held = 0.0;
        for (size_t k = 0; k < n_q; k++)
            for (size_t j = 0; j < n_q; j++)
                gsl_matrix_set(
                    a, k, j,
                    covariance[k * n_q + j] /
                        sqrt((square[k] + floor) * (square[j] + floor)));
        for (size_t k = 0; k < n_q; k++)
            all += gsl_matrix_get(a, k, k);
        gsl_eigen_symmv(a, value, vector, room);
        gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
        while (n < TSR_MODEL_ERRORS && held < enough * all &&
               gsl_vector_get(value, (size_t)n) > 1e-9 * all)
            held += gsl_vector_get(value, (size_t)n++);
        for (size_t k = 0; k < n_q; k++) {
            double kept = 0.0;
            for (int e = 0; e < n; e++) {
                const double c = sqrt(gsl_vector_get(value, (size_t)e)) *
                                 gsl_matrix_get(vector, k, (size_t)e);
                curve[(size_t)e * n_q + k] = c;
                kept += c * c;
            }
            const double by = kept > 0.0
                                  ? sqrt(tsr_examples_variance_factor(x->n) *
                                         square[k] / kept)
                                  : 0.0;
            for (int e = 0; e < n; e++)
                curve[(size_t)e * n_q + k] *= by;
        }
    }
    gsl_matrix_free(a);
    gsl_matrix_free(vector);
    gsl_vector_free(value);
    gsl_eigen_symmv_free(room);
    return n;
}

double tsr_examples_percent(const tsr_examples *x, const double *square,
                            double from, double to)
{
    const tsr_q_grid *grid = &x->likelihood->grid;
    double sum = 0.0;
    int n = 0;
    for (int k = 1; k < grid->n_q - 2; k++) {
        const double q = k * grid->dq_inv_ang;
        if (q < from || q >= to)
            continue;
        sum += square[k];
        n++;
    }
    return n > 0 ? 100.0 * sqrt(sum / n) : (double)NAN;
}

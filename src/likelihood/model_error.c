/* The model's own error: how the curves of bodies differ from the curves of
 * atoms after the correction of the mean curve (docs/statistics.md). */
#include "likelihood/likelihood.h"
#include "likelihood/noise.h"

#include <gsl/gsl_eigen.h>
#include <math.h>

static const double q_scale_max = 0.1; /* 1/Angstrom; residuals have mean 0 up
                                          to this q */

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

static int n_scale_points(const tsr_examples *x)
{
    return 1 + (int)(q_scale_max / x->likelihood->grid.dq_inv_ang);
}

/* Residual of conformation i at one c1 and c2, as tsr_examples_moments defines
 * it: residual [n_q] out. */
static void compute_residual(const tsr_examples *x, int i,
                             const double *contrast, int is_plain,
                             double *residual)
{
    const tsr_likelihood *l = x->likelihood;
    const tsr_view *view = &l->view[x->view];
    const int n_q = l->grid.n_q;
    const int n_scale = n_scale_points(x) < n_q ? n_scale_points(x) : n_q;
    double mean = 0.0;
    for (int k = 0; k < n_q; k++) {
        const size_t at = (size_t)k;
        const double a = tsr_likelihood_combine(
            l, x->view, x->atoms + tsr_examples_offset(x, i), contrast,
            view->atom_power[k], at);
        const double b = tsr_likelihood_combine(
            l, x->view, x->bodies + tsr_examples_offset(x, i), contrast,
            probe_of(x)->power[k], at);
        const double scale =
            is_plain ? 1.0 : tsr_likelihood_ratio(l, x->view, contrast, at);
        residual[k] = log(a / (b * scale));
        if (!isfinite(residual[k]))
            residual[k] = 0.0; /* bodies can have a negative intensity */
    }
    for (int k = 1; k < n_scale; k++)
        mean += residual[k] / (n_scale - 1);
    for (int k = 0; k < n_q; k++)
        residual[k] -= mean;
}

void tsr_examples_moments(const tsr_examples *x, int is_plain, double *square,
                          double *covariance, double *residual)
{
    const int n_q = x->likelihood->grid.n_q;
    const double each = 1.0 / (x->n * x->n_node);
    for (int v = 0; v < x->n_node; v++)
        for (int i = 0; i < x->n; i++) {
            compute_residual(x, i, x->node[v], is_plain, residual);
            for (int k = 0; k < n_q; k++)
                square[k] += each * residual[k] * residual[k];
            for (int k = 0; k < n_q && covariance != NULL; k++)
                for (int j = 0; j < n_q; j++)
                    covariance[k * n_q + j] += each * residual[k] * residual[j];
        }
}

double tsr_examples_variance_factor(int n)
{
    return n * (1.0 + 1.0 / n) / (n - 3.0);
}

int tsr_examples_components(const tsr_examples *x, const double *square,
                            const double *covariance, double *curve)
{
    /* Components are added until they explain this fraction of the trace.
     * Relative errors of I below the root of `floor` are negligible. */
    const double wanted = 0.97, floor = 5e-4 * 5e-4;
    const size_t n_q = (size_t)x->likelihood->grid.n_q;
    gsl_matrix *a = gsl_matrix_alloc(n_q, n_q);
    gsl_matrix *vector = gsl_matrix_alloc(n_q, n_q);
    gsl_vector *value = gsl_vector_alloc(n_q);
    gsl_eigen_symmv_workspace *workspace = gsl_eigen_symmv_alloc(n_q);
    int n = 0;
    if (a != NULL && vector != NULL && value != NULL && workspace != NULL) {
        double all = 0.0, explained = 0.0;
        for (size_t k = 0; k < n_q; k++)
            for (size_t j = 0; j < n_q; j++)
                gsl_matrix_set(
                    a, k, j,
                    covariance[k * n_q + j] /
                        sqrt((square[k] + floor) * (square[j] + floor)));
        for (size_t k = 0; k < n_q; k++)
            all += gsl_matrix_get(a, k, k);
        gsl_eigen_symmv(a, value, vector, workspace);
        gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
        while (n < TSR_MODEL_ERRORS && explained < wanted * all &&
               gsl_vector_get(value, (size_t)n) > 1e-9 * all)
            explained += gsl_vector_get(value, (size_t)n++);
        for (size_t k = 0; k < n_q; k++) {
            double variance = 0.0;
            for (int e = 0; e < n; e++) {
                const double c = sqrt(gsl_vector_get(value, (size_t)e)) *
                                 gsl_matrix_get(vector, k, (size_t)e);
                curve[(size_t)e * n_q + k] = c;
                variance += c * c;
            }
            const double scale = variance > 0.0
                                     ? sqrt(tsr_examples_variance_factor(x->n) *
                                            square[k] / variance)
                                     : 0.0;
            for (int e = 0; e < n; e++)
                curve[(size_t)e * n_q + k] *= scale;
        }
    }
    gsl_matrix_free(a);
    gsl_matrix_free(vector);
    gsl_vector_free(value);
    gsl_eigen_symmv_free(workspace);
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

/* The model's own error: how the curves of bodies differ from the curves of
 * atoms after the correction of the mean curve (docs/statistics.md). */
#include "likelihood/likelihood.h"
#include "likelihood/noise.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

size_t tsr_examples_atom_size(const tsr_examples *examples, int i)
{
    const tsr_likelihood *l = examples->likelihood;
    return (size_t)i * (size_t)(l->n_atom_pair * l->grid.n_q);
}

const double *tsr_examples_bodies(const tsr_examples *examples, int i)
{
    return examples->bodies + tsr_examples_size(examples, i) +
           probe_of(examples)->first * examples->likelihood->grid.n_q;
}

const double *tsr_examples_atoms(const tsr_examples *examples, int i)
{
    return examples->atoms + tsr_examples_atom_size(examples, i) +
           probe_of(examples)->first_atom * examples->likelihood->grid.n_q;
}

static int n_scale_points(const tsr_examples *x)
{
    return 1 + (int)(q_scale_max / x->likelihood->grid.dq_inv_ang);
}

/* Residual of conformation i at one c1 and c2: residual [n_q] out. deviation:
 * the d_j of tsr_likelihood_regress out; NULL: the residual without correction.
 */
static void compute_residual(const tsr_examples *x, int i,
                             const double *contrast, double *deviation,
                             double *residual)
{
    const tsr_likelihood *l = x->likelihood;
    const int n_q = l->grid.n_q;
    const int n_scale = n_scale_points(x) < n_q ? n_scale_points(x) : n_q;
    double mean = 0.0;
    for (int k = 0; k < n_q; k++)
        residual[k] =
            tsr_likelihood_combine(l, x->view, tsr_examples_bodies(x, i),
                                   contrast, probe_of(x)->power[k], (size_t)k);
    if (deviation != NULL) {
        tsr_likelihood_deviation(l, x->view, contrast, residual, deviation);
        tsr_likelihood_apply_correction(l, x->view, contrast, residual);
    }
    for (int k = 0; k < n_q; k++) {
        const double a = tsr_likelihood_combine_atoms(
            l, x->view, tsr_examples_atoms(x, i), contrast, (size_t)k);
        residual[k] = log(a / residual[k]);
        if (!isfinite(residual[k]))
            residual[k] = 0.0; /* bodies can have a negative intensity */
    }
    for (int k = 1; k < n_scale; k++)
        mean += residual[k] / (n_scale - 1);
    for (int k = 0; k < n_q; k++)
        residual[k] -= mean;
}

static gsl_matrix new_matrix(tsr_pool *pool, size_t n1, size_t n2)
{
    double *value;
    tsr_pool_array(pool, value, n1 * n2);
    return gsl_matrix_view_array(value, n1, n2).matrix;
}

/* Mean squares without correction, and mean products of (d, r), deviations and
 * residual after correction. d_r: scratch of that size. */
static void add_products(const tsr_examples *x, double *before, gsl_vector *d_r,
                         gsl_matrix *products)
{
    const size_t n_q = (size_t)x->likelihood->grid.n_q;
    double *residual = d_r->data + d_r->size - n_q;
    for (int v = 0; v < x->n_node; v++)
        for (int i = 0; i < x->n; i++) {
            const double each = x->node_weight[v] / x->n;
            compute_residual(x, i, x->node[v], NULL, residual);
            for (size_t k = 0; k < n_q; k++)
                before[k] += each * residual[k] * residual[k];
            compute_residual(x, i, x->node[v], d_r->data, residual);
            gsl_blas_dger(each, d_r, d_r, products);
        }
}

/* weight [n][n_q]: ridge regression of the residual on the deviations. The
 * penalty, a variance of the d_j, keeps the rounding errors of an engine, 1e-6
 * of I, small where the weights multiply them. */
static void regress(const gsl_matrix *products, gsl_matrix *normal,
                    gsl_matrix *weight)
{
    const double penalty = 1e-5;
    const size_t n = weight->size1, n_q = weight->size2;
    const gsl_matrix_const_view dd =
        gsl_matrix_const_submatrix(products, 0, 0, n, n);
    const gsl_matrix_const_view dr =
        gsl_matrix_const_submatrix(products, 0, n, n, n_q);
    gsl_matrix_memcpy(normal, &dd.matrix);
    gsl_matrix_memcpy(weight, &dr.matrix);
    for (size_t k = 0; k < n; k++)
        *gsl_matrix_ptr(normal, k, k) += penalty;
    gsl_linalg_cholesky_decomp1(normal);
    gsl_blas_dtrsm(CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, 1.0,
                   normal, weight);
    gsl_blas_dtrsm(CblasLeft, CblasLower, CblasTrans, CblasNonUnit, 1.0, normal,
                   weight);
}

tsr_status tsr_examples_compare(const tsr_examples *x, double *before,
                                double *covariance, double *weight,
                                tsr_err *err)
{
    const size_t n_q = (size_t)x->likelihood->grid.n_q;
    const size_t n = (size_t)tsr_likelihood_n_regressor(x->likelihood);
    tsr_pool pool = {0};
    gsl_matrix d_r = new_matrix(&pool, 1, n + n_q);
    gsl_matrix products = new_matrix(&pool, n + n_q, n + n_q);
    gsl_matrix half = new_matrix(&pool, n + n_q, n_q);
    gsl_matrix normal = new_matrix(&pool, n, n);
    gsl_matrix rest = new_matrix(&pool, n + n_q, n_q); /* weight above -1 */
    gsl_matrix_view out = gsl_matrix_view_array(covariance, n_q, n_q);
    const tsr_status status = tsr_pool_check(&pool, err);
    if (status == TSR_OK) {
        gsl_vector_view row = gsl_matrix_row(&d_r, 0);
        gsl_matrix_view top = gsl_matrix_submatrix(&rest, 0, 0, n, n_q);
        memset(before, 0, n_q * sizeof *before);
        add_products(x, before, &row.vector, &products);
        for (size_t k = 0; k < n_q; k++)
            gsl_matrix_set(&rest, n + k, k, -1.0);
        if (weight != NULL) {
            regress(&products, &normal, &top.matrix);
            memcpy(weight, rest.data, n * n_q * sizeof *weight);
        }
        gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1.0, &products, &rest, 0.0,
                       &half);
        gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1.0, &rest, &half, 0.0,
                       &out.matrix);
    }
    tsr_pool_clear(&pool);
    return status;
}

/* Adds chi2 of the all-atom curve of each example at each node to square
 * [n][n_node]. Returns the number of data points, 0 when out of memory. */
static int add_chi2(const tsr_examples *x, const tsr_term *term, double *square)
{
    const tsr_likelihood *l = x->likelihood;
    double theta[TSR_TERM_PARAMETERS], *curve;
    tsr_pool pool = {0};
    tsr_pool_array(&pool, curve, l->grid.n_q);
    void *fit = tsr_term_fit_new(term, &pool);
    const tsr_prediction prediction = {.profile = curve};
    int ok = curve != NULL && fit != NULL;
    tsr_term_start(term, theta);
    for (int j = 0; j < x->n * x->n_node && ok; j++) {
        for (int k = 0; k < l->grid.n_q; k++)
            curve[k] = tsr_likelihood_combine_atoms(
                l, x->view, tsr_examples_atoms(x, j / x->n_node),
                x->node[j % x->n_node], (size_t)k);
        ok = term->type->fit(term, NULL, &prediction, theta, fit, NULL) ==
             TSR_OK;
        square[j] += ok ? term->type->chi2(term, fit) : 0.0;
    }
    tsr_pool_clear(&pool);
    return ok ? term->n_point : 0;
}

/* The likelihood of a node is the mean likelihood of the examples there. No
 * example fits the data, so chi2 is divided by the best reduced chi2. */
void tsr_examples_weigh_nodes(tsr_examples *x, int by_data)
{
    const int n = x->n * x->n_node;
    double *square = calloc((size_t)n, sizeof *square), least = HUGE_VAL;
    double sum = 0.0;
    int n_point = 0;
    for (int d = 0; d < x->likelihood->n_term && by_data && square != NULL; d++)
        if (x->likelihood->term[d]->view == x->view &&
            x->likelihood->term[d]->type->is_curve)
            n_point += add_chi2(x, x->likelihood->term[d], square);
    for (int j = 0; j < n && n_point > 0; j++)
        least = fmin(least, square[j]);
    const double by = fmax(1.0, least / n_point);
    for (int v = 0; v < x->n_node; v++) {
        x->node_weight[v] = n_point > 0 ? 0.0 : 1.0;
        for (int i = 0; i < x->n && n_point > 0; i++)
            x->node_weight[v] +=
                exp(0.5 * (least - square[i * x->n_node + v]) / by);
        sum += x->node_weight[v];
    }
    for (int v = 0; v < x->n_node; v++)
        x->node_weight[v] /= sum;
    free(square);
}

double tsr_examples_variance_factor(int n, int p)
{
    return (n + p + 1.0) / (n - p - 3.0);
}

/* The information of the data at each point of the grid: the sum of (I /
 * sigma)^2 over the data nearest to it, less the share of noise. */
static void compute_information(const tsr_examples *x, double *information)
{
    const tsr_likelihood *l = x->likelihood;
    for (int d = 0; d < l->n_term; d++) {
        const tsr_term *t = l->term[d];
        for (int i = 0; i < t->n_point && t->view == x->view; i++) {
            const int k = (int)(t->coord[i] / l->grid.dq_inv_ang + 0.5);
            const double signal = t->observed[i] / t->sigma[i];
            if (t->type->is_curve && k < l->grid.n_q)
                information[k] += fmax(0.0, signal * signal - 1.0);
        }
    }
}

/* With D = diag(information)^(1/2) and the covariance C, the components are the
 * eigenvectors u of D C D: the directions in which the model is wrong, ordered
 * by the ratio of the variances of model and data. Their curves are C D u /
 * value^(1/2). */
int tsr_examples_components(const tsr_examples *x, const double *covariance,
                            double *curve)
{
    const double noticeable = 0.05; /* variance in units of the data's */
    const size_t n_q = (size_t)x->likelihood->grid.n_q;
    const gsl_matrix_const_view c =
        gsl_matrix_const_view_array(covariance, n_q, n_q);
    gsl_matrix *a = gsl_matrix_alloc(n_q, n_q);
    gsl_matrix *vector = gsl_matrix_alloc(n_q, n_q);
    gsl_vector *value = gsl_vector_alloc(n_q), *root = gsl_vector_calloc(n_q);
    gsl_eigen_symmv_workspace *workspace = gsl_eigen_symmv_alloc(n_q);
    int n = 0;
    if (a != NULL && vector != NULL && value != NULL && root != NULL &&
        workspace != NULL) {
        compute_information(x, root->data);
        for (size_t k = 0; k < n_q; k++)
            root->data[k] = sqrt(root->data[k]);
        for (size_t k = 0; k < n_q * n_q; k++)
            a->data[k] =
                covariance[k] * root->data[k / n_q] * root->data[k % n_q];
        gsl_eigen_symmv(a, value, vector, workspace);
        gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
        for (size_t k = 0; k < n_q; k++) {
            gsl_vector_view row = gsl_matrix_row(vector, k);
            gsl_vector_scale(&row.vector, root->data[k]);
        }
        for (; n < TSR_MODEL_ERRORS && n < (int)n_q &&
               gsl_vector_get(value, (size_t)n) > noticeable;
             n++) {
            gsl_vector_view to =
                gsl_vector_view_array(curve + (size_t)n * n_q, n_q);
            const gsl_vector_view u = gsl_matrix_column(vector, (size_t)n);
            gsl_blas_dgemv(CblasNoTrans,
                           1.0 / sqrt(gsl_vector_get(value, (size_t)n)),
                           &c.matrix, &u.vector, 0.0, &to.vector);
        }
    }
    gsl_matrix_free(a);
    gsl_matrix_free(vector);
    gsl_vector_free(value);
    gsl_vector_free(root);
    gsl_eigen_symmv_free(workspace);
    return n;
}

/* Covariance of log I by the errors of data and model, in units of those of the
 * data. The scale is unknown, so log I has a large common error. */
static void whiten(const tsr_examples *x, const double *information,
                   const tsr_profile_error *error, gsl_matrix *out)
{
    const double scale_variance = 1.0;
    const size_t n_q = (size_t)x->likelihood->grid.n_q;
    for (size_t k = 0; k < n_q; k++)
        for (size_t j = 0; j < n_q; j++) {
            double sum = scale_variance;
            for (size_t c = 0; c < (size_t)error->n; c++)
                sum += error->curve[c * n_q + k] / error->reference[k] *
                       error->curve[c * n_q + j] / error->reference[j];
            gsl_matrix_set(out, k, j,
                           (k == j ? 1.0 : 0.0) +
                               sqrt(information[k] * information[j]) * sum);
        }
}

double tsr_examples_change(const tsr_examples *x,
                           const tsr_profile_error *before,
                           const tsr_profile_error *now)
{
    const size_t n_q = (size_t)x->likelihood->grid.n_q;
    double *information = calloc(n_q, sizeof *information);
    gsl_matrix *a = gsl_matrix_alloc(n_q, n_q), *b = gsl_matrix_alloc(n_q, n_q);
    double square = HUGE_VAL;
    if (information != NULL && a != NULL && b != NULL) {
        double log_det = 0.0, trace = 0.0, norm = 0.0;
        compute_information(x, information);
        whiten(x, information, before, a);
        whiten(x, information, now, b);
        gsl_linalg_cholesky_decomp1(a);
        gsl_blas_dtrsm(CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, 1.0,
                       a, b);
        gsl_blas_dtrsm(CblasRight, CblasLower, CblasTrans, CblasNonUnit, 1.0, a,
                       b);
        for (size_t k = 0; k < n_q * n_q; k++) {
            const double more = b->data[k] - (k % (n_q + 1) == 0 ? 1.0 : 0.0);
            norm += more * more;
            trace += k % (n_q + 1) == 0 ? more : 0.0;
        }
        gsl_linalg_cholesky_decomp1(b);
        for (size_t k = 0; k < n_q; k++)
            log_det += 2.0 * log(gsl_matrix_get(b, k, k));
        square = 0.5 * norm + 0.25 * pow(trace - log_det, 2.0);
    }
    free(information);
    gsl_matrix_free(a);
    gsl_matrix_free(b);
    return sqrt(square);
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

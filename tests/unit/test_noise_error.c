/* A noise model with the model error integrated out equals the multivariate
 * normal density with the whole covariance; and two model errors differ as much
 * as data drawn from one of them show. */
#include "likelihood/likelihood.h"
#include "likelihood/term_saxs.h"
#include "tests/objects.h"
#include "tests/test.h"
#include "tests/unit/noise_problem.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>

enum { N_ERROR_CURVE = 3 };

/* Curves of it on the grid, and at the data. */
static void make_errors(const problem *p, double size, double *grid,
                        double (*at_data)[MAX_N])
{
    gsl_rng *rng = rng_new(5, 0);
    for (int e = 0; e < N_ERROR_CURVE; e++) {
        for (int j = 0; j < N_Q; j++)
            grid[e * N_Q + j] = gsl_ran_gaussian(rng, size);
        for (int k = 0; k < p->saxs.n; k++) {
            at_data[e][k] = 0.0;
            for (int j = 0; j < N_Q; j++)
                at_data[e][k] += p->matrix[k * N_Q + j] * grid[e * N_Q + j];
        }
    }
}

static double dense_product(const gsl_matrix *inverse, int n, const double *x,
                            const double *y)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            sum += x[i] * gsl_matrix_get(inverse, (size_t)i, (size_t)j) * y[j];
    return sum;
}

/* The multivariate normal density with the whole covariance, by its Cholesky
 * factor; integrated over those of c > 0 and b that are free, or at c, b. */
static double dense_log(const problem *p, const double *theta,
                        const double (*curve)[MAX_N], int is_integrated,
                        double c, double b)
{
    const double log_2pi = 1.8378770664093453;
    const int n = p->saxs.n;
    const double s = exp(theta[p->type == &tsr_noise_relative]);
    gsl_matrix *a = gsl_matrix_alloc((size_t)n, (size_t)n);
    double log_det = 0.0, one[MAX_N], r[MAX_N];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sd = s * p->sigma[i], sum = 0.0;
            if (p->type == &tsr_noise_relative)
                sd = s * p->intensity[i] * (p->q[i] + exp(theta[0]));
            for (int e = 0; e < N_ERROR_CURVE; e++)
                sum += curve[e][i] * curve[e][j];
            if (is_integrated) /* b 1 is one more error curve */
                sum += p->background_sd * p->background_sd;
            gsl_matrix_set(a, (size_t)i, (size_t)j,
                           sum + (i == j ? sd * sd : 0.0));
        }
    assert_int_equal(gsl_linalg_cholesky_decomp1(a), 0);
    for (size_t i = 0; i < (size_t)n; i++)
        log_det += log(gsl_matrix_get(a, i, i));
    gsl_linalg_cholesky_invert(a);
    for (int i = 0; i < n; i++) {
        one[i] = 1.0;
        r[i] = p->intensity[i] - b - c * p->model[i];
        if (is_integrated && p->background_sd > 0.0)
            r[i] += b; /* its prior is about 0 */
    }
    double sum = -log_det - 0.5 * n * log_2pi;
    if (is_integrated) { /* from the best c and b */
        const double mm = dense_product(a, n, p->model, p->model);
        const double m1 = dense_product(a, n, p->model, one);
        const double oo = dense_product(a, n, one, one);
        const double mr = dense_product(a, n, p->model, r);
        const double ro = dense_product(a, n, one, r);
        const int free_c = p->linear.infer_scale;
        const int free_b =
            p->linear.infer_background && p->background_sd == 0.0;
        const double det = free_c && free_b ? mm * oo - m1 * m1
                           : free_c         ? mm
                           : free_b         ? oo
                                            : 1.0;
        const double dc = !free_c  ? 0.0
                          : free_b ? (mr * oo - ro * m1) / det
                                   : mr / mm;
        const double db = free_b ? (ro - dc * m1) / oo : 0.0;
        for (int i = 0; i < n; i++)
            r[i] -= dc * p->model[i] + db;
        sum += 0.5 * (free_c + free_b) * log_2pi - 0.5 * log(det);
        if (free_c)
            sum += log(gsl_cdf_ugaussian_P((c + dc) *
                                           sqrt(det / (free_b ? oo : 1.0))));
    }
    sum -= 0.5 * dense_product(a, n, r, r);
    gsl_matrix_free(a);
    return sum;
}

static void open_doubtful(problem *p, int model, tsr_number_or_word scale,
                          tsr_number_or_word background, const double *error)
{
    open_model(p, model, scale, background);
    const tsr_noise_spec spec =
        ROW(.options = &p->options, .saxs = &p->saxs, .matrix = p->matrix,
            .n_q = N_Q, .linear = &p->linear, .n_error = N_ERROR_CURVE,
            .error = error);
    p->pool = (tsr_pool){0};
    OK(tsr_noise_new(&spec, &p->pool, &p->state, &err));
    own_copy(&p->pool, release_pool);
}

/* The integral over the model's own error is that of the dense covariance: with
 * fewer points than the grid has and with more, small errors and large, c and b
 * free or not, b with a flat or a normal prior; and another theta may come by
 * `refit` as well as by `fit`. */
TEST(model_error_is_a_covariance)
{
    static const tsr_number_or_word fixed[2] = {{-1, 2.0}, {-1, 40.0}};
    static problem p;
    static double at_data[N_ERROR_CURVE][MAX_N];
    double grid[N_ERROR_CURVE * N_Q];
    for (int i = 0; i < 2 * 2 * 4 * 2 * 2; i++) {
        const int is_normal = i >= 32 && (i / 4 & 2) == 0;
        const int model = i % 2 == 0 ? MEASURED : RELATIVE;
        const int n = i / 2 % 2 == 0 ? 7 : 30, which = i / 4 % 4;
        double theta[2][2] = {{0.3, -0.2}, {-0.7, 0.4}};
        make_problem(&p, n, 2.0, 40.0, (uint64_t)(i + 1));
        if (model == RELATIVE)
            lift(&p);
        make_errors(&p, i % 32 < 16 ? 0.1 : 5.0, grid, at_data);
        p.background_sd = is_normal ? 15.0 : 0.0;
        const double(*curve)[MAX_N] = (const double(*)[MAX_N])at_data;
        open_doubtful(&p, model, which & 1 ? fixed[0] : infer,
                      which & 2 ? fixed[1] : infer, grid);
        p.type->fit(p.state, p.profile, theta[1], &p.fit);
        p.type->refit(p.state, theta[0], &p.fit);
        const double c = p.fit.scale, b = p.fit.background;
        const double again = p.type->log_integral(p.state, &p.fit, theta[0]);
        p.type->fit(p.state, p.profile, theta[0], &p.fit);
        const double whole = p.type->log_integral(p.state, &p.fit, theta[0]);
        const double at =
            p.type->log_lik(p.state, &p.fit, theta[0], 1.03 * c, b - 0.5);
        assert_true(whole == again && c == p.fit.scale);
        assert_near(whole, dense_log(&p, theta[0], curve, 1, 2.0, 40.0), 1e-7);
        if (which == 0)
            assert_near(
                at, dense_log(&p, theta[0], curve, 0, 1.03 * c, b - 0.5), 1e-7);
        if (is_normal)
            continue;
        /* c and b are the best there are */
        assert_true(dense_log(&p, theta[0], curve, 0, c, b) + 1e-9 >
                        dense_log(&p, theta[0], curve, 0, c,
                                  which & 2 ? b : b + 0.01) &&
                    dense_log(&p, theta[0], curve, 0, c, b) + 1e-9 >
                        dense_log(&p, theta[0], curve, 0,
                                  which & 1 ? c : c * 1.0001, b));
    }
}

/* ---- the difference of two model errors ---- */

enum { N_GRID = 9, N_DATA = 6 };

/* Cholesky factor of the covariance of log I at the data: errors of the data,
 * the common scale (variance 1), and the curves relative to the reference. */
static gsl_matrix *log_covariance(const tsr_term *term, double dq,
                                  const tsr_profile_error *error)
{
    gsl_matrix *a = own_gsl_matrix(gsl_matrix_alloc(N_DATA, N_DATA));
    for (int i = 0; i < N_DATA; i++)
        for (int j = 0; j < N_DATA; j++) {
            const int k = (int)lrint(term->coord[i] / dq);
            const int m = (int)lrint(term->coord[j] / dq);
            const double signal = term->observed[i] / term->sigma[i];
            double sum = 1.0 + (i == j ? 1.0 / (signal * signal - 1.0) : 0.0);
            for (int e = 0; e < error->n; e++)
                sum += error->curve[e * N_GRID + k] / error->reference[k] *
                       error->curve[e * N_GRID + m] / error->reference[m];
            gsl_matrix_set(a, (size_t)i, (size_t)j, sum);
        }
    assert_int_equal(gsl_linalg_cholesky_decomp1(a), 0);
    return a;
}

/* Log density of y [N_DATA], up to a constant. */
static double log_normal(const gsl_matrix *lower, const double *y)
{
    double x[N_DATA], sum = 0.0;
    gsl_vector_view v = gsl_vector_view_array(x, N_DATA);
    memcpy(x, y, sizeof x);
    gsl_blas_dtrsv(CblasLower, CblasNoTrans, CblasNonUnit, lower, &v.vector);
    for (size_t i = 0; i < N_DATA; i++)
        sum -= log(gsl_matrix_get(lower, i, i)) + 0.5 * x[i] * x[i];
    return sum;
}

/* tsr_examples_change is the root mean square of the log ratio of the densities
 * over data drawn from the second: for errors that grow, shrink, turn, or stay,
 * of one curve and of two; grid points without data count nothing. */
TEST(change_is_that_of_drawn_data)
{
    enum { N = 100000, N_PAIR = 6 };
    static const struct {
        int n_before, n_now;
        double before, now;
    } pair[N_PAIR] = {{2, 2, 0.02, 0.02}, {0, 1, 0.0, 0.06},
                      {1, 0, 0.02, 0.0},  {1, 2, 0.02, 0.4},
                      {2, 2, 0.02, 0.01}, {1, 1, 0.03, -0.004}};
    static const double q[N_DATA] = {0.02, 0.03, 0.04, 0.06, 0.07, 0.08};
    static const double observed[N_DATA] = {90.0, 70.0, 50.0, 20.0, 12.0, 7.0};
    static const double sigma[N_DATA] = {1.0, 0.8, 0.7, 0.5, 0.4, 0.4};
    tsr_term term = {.type = &tsr_term_saxs,
                     .n_point = N_DATA,
                     .coord = q,
                     .observed = observed,
                     .sigma = sigma};
    tsr_term *terms[] = {&term};
    const tsr_likelihood l = {
        .n_term = 1, .term = terms, .grid = {N_GRID, 0.01}};
    const tsr_examples x = {.likelihood = &l};
    gsl_rng *rng = rng_new(31, 0);
    for (int p = 0; p < N_PAIR; p++) {
        double curve[2][2 * N_GRID], reference[N_GRID];
        for (int k = 0; k < N_GRID; k++) {
            const double t = (double)k / N_GRID, u = 1.0 - t;
            reference[k] = 100.0 * exp(-3.0 * t);
            for (int w = 0; w < 2; w++) {
                const double size = w ? pair[p].now : pair[p].before;
                curve[w][k] = size * reference[k] * t;
                curve[w][N_GRID + k] = size * reference[k] * t * u;
            }
            curve[1][k] += pair[p].now < 0.0 ? 0.02 * reference[k] * u : 0.0;
        }
        const tsr_profile_error before = {pair[p].n_before, curve[0],
                                          reference};
        const tsr_profile_error now = {pair[p].n_now, curve[1], reference};
        const gsl_matrix *a = log_covariance(&term, 0.01, &before);
        const gsl_matrix *b = log_covariance(&term, 0.01, &now);
        double square = 0.0, fourth = 0.0;
        for (int i = 0; i < N; i++) {
            double y[N_DATA];
            gsl_vector_view v = gsl_vector_view_array(y, N_DATA);
            for (int k = 0; k < N_DATA; k++)
                y[k] = gsl_ran_gaussian(rng, 1.0);
            gsl_blas_dtrmv(CblasLower, CblasNoTrans, CblasNonUnit, b,
                           &v.vector);
            const double ratio = pow(log_normal(b, y) - log_normal(a, y), 2.0);
            square += ratio / N, fourth += ratio * ratio / N;
        }
        const double got = tsr_examples_change(&x, &before, &now);
        const double error = sqrt((fourth - square * square) / N);
        if (fabs(got * got - square) > 4.5 * error + 1e-12 ||
            (got > 0.05) != (p > 0))
            fail_msg("pair %d: %g, of draws %g +- %g", p, got * got, square,
                     error);
    }
}

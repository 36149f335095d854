/* The operator from the uniform grid to the q of a data set interpolates to the
 * stated accuracy. */
#include "scattering/q_grid.h"
#include "tests/test.h"

static double sinc(double x)
{
    return x < 1e-9 ? 1.0 : sin(x) / x;
}

/* Point scatterers in an ellipsoid of the largest diameter allowed, or in a
 * rod: I(q) by the Debye sum on the grid, carried to arbitrary q, against the
 * Debye sum there. docs/design.md, section 2 allows 1e-4 of I(q). */
static double worst_error(double d, double flat, double q_max, uint64_t seed)
{
    enum { N = 250, M = 60 };
    gsl_rng *rng = rng_new(seed, 0);
    double(*x)[3] = calloc(N, sizeof *x), q[M], *matrix;
    for (int i = 0; i < N;) {
        double u[3], norm = 0.0;
        for (int k = 0; k < 3; k++)
            u[k] = 2.0 * gsl_rng_uniform(rng) - 1.0, norm += u[k] * u[k];
        if (norm > 1.0)
            continue;
        x[i][0] = 0.5 * d * u[0];
        x[i][1] = 0.5 * d * flat * u[1], x[i][2] = 0.5 * d * flat * u[2];
        i++;
    }
    for (int k = 0; k < M; k++)
        q[k] = q_max * (k + gsl_rng_uniform(rng)) / M;
    tsr_q_grid grid = tsr_q_grid_make(d, q_max);
    assert_true(grid.dq_inv_ang <= 3.14159265358979324 / (1.18 * d));
    OK(tsr_q_operator_new(&grid, M, q, &matrix, &err));
    double *on_grid = array((size_t)grid.n_q, sizeof *on_grid);
    double exact[M] = {0}, worst = 0.0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double r =
                sqrt(pow(x[i][0] - x[j][0], 2) + pow(x[i][1] - x[j][1], 2) +
                     pow(x[i][2] - x[j][2], 2));
            for (int k = 0; k < grid.n_q; k++)
                on_grid[k] += sinc(k * grid.dq_inv_ang * r);
            for (int k = 0; k < M; k++)
                exact[k] += sinc(q[k] * r);
        }
    for (int k = 0; k < M; k++) {
        double sum = 0.0;
        for (int j = 0; j < grid.n_q; j++)
            sum += matrix[k * grid.n_q + j] * on_grid[j];
        worst = fmax(worst, fabs(sum / exact[k] - 1.0));
    }
    free(matrix);
    free(x);
    return worst;
}

TEST(operator_error)
{
    static const struct {
        double d, flat, q_max;
    } cases[] = {ROW(60, 1.0, 0.5), ROW(150, 0.5, 0.3), ROW(300, 0.1, 0.3),
                 ROW(300, 0.02, 0.35), ROW(45, 0.6, 0.9),
                 /* peptides of two to eight residues */
                 ROW(1, 0.9, 0.3), ROW(4, 0.9, 0.2), ROW(7.7, 0.5, 0.5),
                 ROW(12, 0.5, 0.05), ROW(25, 0.5, 1.0)};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        double e = worst_error(cases[k].d, cases[k].flat, cases[k].q_max, k);
        if (!(e < 1e-4))
            fail_msg("D %g, q_max %g: error %g", cases[k].d, cases[k].q_max, e);
    }
}

TEST(beyond_the_grid)
{
    double q[1] = {0.9}, *matrix;
    tsr_q_grid grid = tsr_q_grid_make(100.0, 0.3);
    assert_int_equal(tsr_q_operator_new(&grid, 1, q, &matrix, &err),
                     TSR_E_RANGE);
    assert_null(matrix);
    q[0] = (double)NAN;
    assert_int_equal(tsr_q_operator_new(&grid, 1, q, &matrix, &err),
                     TSR_E_RANGE);
}

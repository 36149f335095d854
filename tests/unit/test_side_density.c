/* Densities of side-chain centres (Gaussian mixtures) are normalised, and draws
 * follow them. */
#include "molecule/prior_density.h"
#include "tests/test.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>

static const tsr_side_mixture mixture = {
    .n = 3,
    .part = {{0.6,
              {1.0, -2.0, 0.5},
              {{0.5, 0.2, -0.1}, {0.2, 0.4, 0.15}, {-0.1, 0.15, 0.3}}},
             {0.3,
              {-1.0, 0.0, 0.0},
              {{0.3, -0.25, 0.0}, {-0.25, 0.3, 0.0}, {0.0, 0.0, 0.2}}},
             {0.1, {0.0, 1.0, -1.0}, {{1, 0, 0}, {0, 0.5, 0}, {0, 0, 0.7}}}}};

static double density_at(const double x[3])
{
    double f = 0.0;
    for (int i = 0; i < mixture.n; i++) {
        const tsr_side_gaussian *g = &mixture.part[i];
        double d[3], inverse[3][3];
        const double(*c)[3] = g->cov;
        double det = 0.0, square = 0.0;
        for (int a = 0; a < 3; a++) {
            d[a] = x[a] - g->mean[a];
            for (int b = 0; b < 3; b++) {
                int p = (b + 1) % 3, q = (b + 2) % 3;
                int r = (a + 1) % 3, s = (a + 2) % 3;
                inverse[a][b] = c[p][r] * c[q][s] - c[p][s] * c[q][r];
            }
        }
        for (int a = 0; a < 3; a++)
            det += c[0][a] * inverse[a][0];
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                square += d[a] * d[b] * inverse[a][b] / det;
        f += g->weight * exp(-0.5 * square) /
             sqrt(8.0 * M_PI * M_PI * M_PI * det);
    }
    return f;
}

TEST(values)
{
    tsr_side_density *d = tsr_side_density_new(&mixture);
    double total = 0.0, h = 0.125;
    for (double x = -7; x < 7; x += h)
        for (double y = -7; y < 7; y += h)
            for (double z = -7; z < 7; z += h) {
                const double at[3] = {x, y, z};
                double f = exp(tsr_side_density_log(d, at));
                total += f * h * h * h;
                if (x == floor(x) && y == floor(y) && z == floor(z)) {
                    double expected = density_at(at);
                    assert_near(f, expected, 1e-12 * expected);
                }
            }
    assert_near(total, 1.0, 1e-9);
    /* where the density itself underflows */
    double far = tsr_side_density_log(d, (double[3]){1e6, -1e6, 1e6});
    assert_true(isfinite(far) && far < -1e11);
    assert_true(
        isnan(tsr_side_density_log(d, (double[3]){(double)NAN, 0.0, 0.0})));
    free(d);
    free(NULL);
}

/* Mean and covariance of the whole, and the share of draws on either side of
 * three planes. */
TEST(draws)
{
    enum { N = 400000 };
    tsr_side_density *d = tsr_side_density_new(&mixture);
    gsl_rng *rng = rng_new(1, 0);
    double mean[3] = {0}, square[3][3] = {{0}};
    double below[3] = {0};
    for (int k = 0; k < N; k++) {
        double x[3];
        tsr_side_density_draw(d, rng, x);
        for (int a = 0; a < 3; a++) {
            mean[a] += x[a] / N;
            below[a] += (x[a] < 0.3) / (double)N;
            for (int b = 0; b < 3; b++)
                square[a][b] += x[a] * x[b] / N;
        }
    }
    for (int a = 0; a < 3; a++) {
        double m = 0.0, q = 0.0;
        for (int i = 0; i < mixture.n; i++) {
            const tsr_side_gaussian *g = &mixture.part[i];
            m += g->weight * g->mean[a];
            q += g->weight *
                 gsl_cdf_ugaussian_P((0.3 - g->mean[a]) / sqrt(g->cov[a][a]));
        }
        assert_near(mean[a], m, 5.0 * sqrt(square[a][a] / N));
        assert_near(below[a], q, 4.0 * sqrt(q * (1.0 - q) / N));
        for (int b = 0; b < 3; b++) {
            double s = 0.0;
            for (int i = 0; i < mixture.n; i++) {
                const tsr_side_gaussian *g = &mixture.part[i];
                s += g->weight * (g->cov[a][b] + g->mean[a] * g->mean[b]);
            }
            assert_near(square[a][b], s, 0.03);
        }
    }
    free(d);
}

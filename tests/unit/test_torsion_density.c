/* Mixtures of bivariate von Mises densities are normalised, and draws follow
 * them. */
#include "molecule/prior_density.h"
#include "tests/test.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>

/* The uniform one, the smallest, skewed, wide against narrow, near the bound
 * where the maximum is flat, and very narrow ones. */
static const tsr_von_mises shape[] = {
    {1.0, 0.3, -2.0, 0.0, 0.0, 0.0},        {1.0, 0.3, -2.0, 1e-9, 1e-7, 1e-9},
    {1.0, 0.3, -2.0, 0.4, 0.0, 0.0},        {1.0, 0.3, -2.0, 0.0, 7.0, 0.0},
    {1.0, -1.1, 2.5, 1.5, 0.8, -1.0},       {1.0, 3.1, -3.1, 30.0, 12.0, 15.0},
    {1.0, 2.0, 0.1, 2.0, 300.0, -20.0},     {1.0, 2.0, 0.1, 300.0, 2.0, 20.0},
    {1.0, -1.0, -0.7, 120.0, 90.0, -102.0}, {1.0, -1.0, -0.7, 50.0, 50.0, 50.0},
    {1.0, -1.0, -0.7, 0.4, 0.4, 0.4},       {1.0, 1.0, 1.0, 1e4, 1e4, 9000.0},
    {1.0, 1.0, 1.0, 1e4, 5.0, -100.0},      {1.0, 1.0, 1.0, 1e4, 1e4, 1e4},
};
enum { N_SHAPE = COUNT_OF(shape) };

static const tsr_torsion_mixture mixture = {
    .n = 5,
    .part = {{0.45, -1.1, -0.75, 90.0, 60.0, -40.0},
             {0.30, -2.1, 2.4, 6.0, 9.0, 2.0},
             {0.15, 1.0, 0.7, 30.0, 25.0, -10.0},
             {0.08, -1.3, 3.1, 15.0, 20.0, 12.0},
             {0.02, 0.0, 0.0, 0.0, 0.0, 0.0}}};

static tsr_torsion_density *density_of(const tsr_torsion_mixture *m)
{
    tsr_torsion_density *density = tsr_torsion_density_new(m);
    assert_non_null(density);
    return own(density, free);
}

static tsr_torsion_density *density_of_part(const tsr_von_mises *part)
{
    tsr_torsion_mixture m = {.n = 1, .part = {*part}};
    return density_of(&m);
}

/* 1 / C of one component, as its logarithm. */
static double log_norm(double k_phi, double k_psi, double lambda)
{
    return tsr_von_mises_moments(k_phi, k_psi, lambda, NULL) + k_phi + k_psi;
}

/* The series against the integral over psi of what is left when phi has been
 * integrated out, 2 pi exp(k2 cos y) I0(sqrt(k1^2 + lambda^2 sin^2 y)), scaled
 * by exp(-k1 - k2). The trapezoid rule on a period converges exponentially. */
TEST(norm)
{
    enum { N = 20000 };
    for (size_t i = 0; i < N_SHAPE; i++) {
        const tsr_von_mises *p = &shape[i];
        double sum = 0.0;
        for (int k = 0; k < N; k++) {
            double y = 2.0 * M_PI * k / N, s = p->lambda * sin(y);
            double a = hypot(p->k_phi, s);
            sum += exp(p->k_psi * (cos(y) - 1.0) + a - p->k_phi +
                       tsr_von_mises_log_i0(a));
        }
        double expected = log(4.0 * M_PI * M_PI * sum / N);
        assert_near(tsr_von_mises_moments(p->k_phi, p->k_psi, p->lambda, NULL),
                    expected, 1e-10);
    }
}

/* Moments are the derivatives of the norm. */
TEST(moments)
{
    for (size_t i = 4; i < 9; i++) {
        const tsr_von_mises *p = &shape[i];
        const double k[3] = {p->k_phi, p->k_psi, p->lambda};
        double m[3];
        tsr_von_mises_moments(k[0], k[1], k[2], m);
        for (int d = 0; d < 3; d++) {
            double h = 1e-4 * fabs(k[d]), up[3], down[3];
            for (int e = 0; e < 3; e++)
                up[e] = down[e] = k[e];
            up[d] += h, down[d] -= h;
            double slope = (log_norm(up[0], up[1], up[2]) -
                            log_norm(down[0], down[1], down[2])) /
                           (2.0 * h);
            assert_near(slope, m[d], 1e-6);
        }
    }
}

/* Both integrals over a grid at once: 1, and each marginal. */
TEST(integrals)
{
    enum { N = 720 };
    for (size_t i = 0; i <= N_SHAPE; i++) {
        if (i < N_SHAPE && (shape[i].k_phi > 1e3 || shape[i].k_psi > 1e3))
            continue; /* narrower than the grid */
        tsr_torsion_density *d =
            i < N_SHAPE ? density_of_part(&shape[i]) : density_of(&mixture);
        double h = 2.0 * M_PI / N, total = 0.0;
        double *by_psi = array(N, sizeof *by_psi);
        for (int a = 0; a < N; a++) {
            double phi = -M_PI + h * a, by_phi = 0.0;
            for (int b = 0; b < N; b++) {
                double f = exp(tsr_torsion_density_log(d, phi, -M_PI + h * b));
                by_phi += f * h;
                by_psi[b] += f * h;
            }
            double marginal = exp(tsr_torsion_density_log_phi(d, phi));
            assert_near(by_phi, marginal, 1e-10 * (1.0 + marginal));
            total += by_phi * h;
        }
        assert_near(total, 1.0, 1e-10);
        for (int b = 0; b < N; b++) {
            double marginal =
                exp(tsr_torsion_density_log_psi(d, -M_PI + h * b));
            assert_near(by_psi[b], marginal, 1e-10 * (1.0 + marginal));
        }
    }
}

/* The narrow ones integrate to 1 over a grid of their own width. */
TEST(narrow)
{
    enum { N = 1200 };
    const tsr_von_mises *p = &shape[11];
    tsr_torsion_density *d = density_of_part(p);
    double h = 0.3 / N, total = 0.0;
    for (int a = -N; a <= N; a++)
        for (int b = -N; b <= N; b++)
            total +=
                exp(tsr_torsion_density_log(d, p->phi + a * h, p->psi + b * h));
    assert_near(total * h * h, 1.0, 1e-10);
}

/* Cosines and sines, the angle, the angle a turn further, the formula. */
TEST(forms)
{
    tsr_torsion_density *d = density_of(&mixture);
    gsl_rng *rng = rng_new(3, 0);
    for (int i = 0; i < 1000; i++) {
        double phi = M_PI * (2.0 * gsl_rng_uniform(rng) - 1.0);
        double psi = M_PI * (2.0 * gsl_rng_uniform(rng) - 1.0);
        double f = 0.0;
        for (int k = 0; k < mixture.n; k++) {
            const tsr_von_mises *p = &mixture.part[k];
            f += p->weight *
                 exp(p->k_phi * cos(phi - p->phi) +
                     p->k_psi * cos(psi - p->psi) +
                     p->lambda * sin(phi - p->phi) * sin(psi - p->psi) -
                     log_norm(p->k_phi, p->k_psi, p->lambda));
        }
        double value = tsr_torsion_density_log(d, phi, psi);
        double at =
            tsr_torsion_density_log_at(d, (double[2]){cos(phi), sin(phi)},
                                       (double[2]){cos(psi), sin(psi)});
        assert_near(value, log(f), 1e-11);
        assert_near(value, at, 1e-12);
        assert_near(value,
                    tsr_torsion_density_log(d, phi + 2 * M_PI, psi - 2 * M_PI),
                    1e-10);
        assert_true(value > log(0.02 / (4.0 * M_PI * M_PI)));
    }
}

/* Far from a narrow component, where its density underflows, the logarithm is
 * what it is. */
TEST(far_away)
{
    for (size_t i = 0; i < N_SHAPE; i++) {
        const tsr_von_mises *p = &shape[i];
        tsr_torsion_density *d = density_of_part(p);
        double peak = tsr_torsion_density_log(d, p->phi, p->psi);
        double far = tsr_torsion_density_log(d, p->phi + M_PI, p->psi + M_PI);
        double fall = 2.0 * (p->k_phi + p->k_psi);
        assert_near(peak - far, fall, 1e-12 * (1.0 + fall));
        assert_true(isfinite(tsr_torsion_density_log_phi(d, p->phi + M_PI)));
        assert_true(isfinite(tsr_torsion_density_log_psi(d, p->psi + M_PI)));
        assert_true(isnan(tsr_torsion_density_log(d, (double)NAN, 0.0)));
    }
}

/* chi^2 of draws over equal cells of a square of `width` rad about the
 * component, whose probabilities come from quadrature within the cell; those of
 * less than 5 are put together with what is outside. */
static void check_draws(const tsr_torsion_density *d, double phi, double psi,
                        double width, unsigned long stream)
{
    enum { SIDE = 24, FINE = 12, N_DRAW = 100000 };
    static double expected[SIDE * SIDE];
    static long seen[SIDE * SIDE];
    double cell = width / SIDE, h = cell / FINE;
    for (int i = 0; i < SIDE * SIDE; i++) {
        double sum = 0.0;
        for (int a = 0; a < FINE; a++)
            for (int b = 0; b < FINE; b++)
                sum += exp(tsr_torsion_density_log(
                    d,
                    phi - 0.5 * width + (double)(i / SIDE) * cell +
                        (a + 0.5) * h,
                    psi - 0.5 * width + (i % SIDE) * cell + (b + 0.5) * h));
        expected[i] = N_DRAW * sum * h * h;
        seen[i] = 0;
    }
    gsl_rng *rng = rng_new(11, stream);
    for (int k = 0; k < N_DRAW; k++) {
        double x, y;
        tsr_torsion_density_draw(d, rng, &x, &y);
        assert_true(x >= -M_PI && x < M_PI && y >= -M_PI && y < M_PI);
        double a = (tsr_von_mises_wrap(x - phi) + 0.5 * width) / cell;
        double b = (tsr_von_mises_wrap(y - psi) + 0.5 * width) / cell;
        if (a >= 0.0 && a < SIDE && b >= 0.0 && b < SIDE)
            seen[(int)a * SIDE + (int)b]++;
    }
    double chi2 = 0.0, rest = N_DRAW;
    long rest_seen = N_DRAW;
    int freedom = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        if (expected[i] < 5.0)
            continue;
        double off = (double)seen[i] - expected[i];
        chi2 += off * off / expected[i];
        freedom++;
        rest -= expected[i];
        rest_seen -= seen[i];
    }
    if (rest > 5.0)
        chi2 += gsl_pow_2((double)rest_seen - rest) / rest;
    else
        freedom--;
    double p = gsl_cdf_chisq_Q(chi2, freedom);
    if (p < 1e-4)
        fail_msg("chi^2 %g of %d, stream %lu", chi2, freedom, stream);
}

TEST(draws)
{
    for (size_t i = 0; i < N_SHAPE; i++) {
        const tsr_von_mises *p = &shape[i];
        double least = fmin(p->k_phi, p->k_psi);
        tsr_torsion_density *d = density_of_part(p);
        double width = 2.0 * M_PI;
        if (least > 1e3)
            width = fabs(p->lambda) < p->k_phi ? 0.12 : 0.7;
        else if (p->k_phi > 1e3) /* phi alone is narrow: look closely */
            width = 0.2;
        check_draws(d, p->phi, p->psi, width, i);
    }
    tsr_torsion_density *d = density_of(&mixture);
    check_draws(d, 0.0, 0.0, 2.0 * M_PI, 100);
    check_draws(d, -1.1, -0.75, 1.0, 101);
}

/* Angles alone, by their mean cosines I1 / I0 and I2 / I0. */
TEST(angles)
{
    static const double kappa[] = {0.0, 1e-6, 0.3, 0.5, 3.0, 50.0, 1e4};
    gsl_rng *rng = rng_new(5, 0);
    for (size_t i = 0; i < COUNT_OF(kappa); i++) {
        enum { N = 200000 };
        double c1 = 0.0, c2 = 0.0, s1 = 0.0, square = 0.0, m[3];
        tsr_von_mises_moments(kappa[i], 0.0, 0.0, m);
        double expected = kappa[i] > 1e-3 ? 1.0 - 2.0 * m[0] / kappa[i] : 0.0;
        for (int k = 0; k < N; k++) {
            double x = tsr_von_mises_draw_angle(rng, kappa[i]);
            c1 += cos(x) / N, s1 += sin(x) / N, c2 += cos(2 * x) / N;
            square += cos(x) * cos(x) / N;
        }
        double error = sqrt((square - c1 * c1) / N);
        assert_near(c1, m[0], 4.0 * error);
        assert_near(c2, expected, 4.0 * sqrt(0.5 / N));
        assert_true(fabs(s1) < 4.0 * sqrt((1.0 - square) / N));
    }
    assert_true(tsr_von_mises_wrap(M_PI) == -M_PI);
    assert_near(tsr_von_mises_wrap(7.0), (7.0 - 2.0 * M_PI), 1e-15);
}

/* Blocks of cells are drawn as often as the integral over them says, and no
 * cell never. */
TEST(cells)
{
    enum { SIDE = 36, BLOCK = 6, FINE = 5, N = SIDE * SIDE };
    const double width = 2.0 * M_PI / SIDE, unit = 0x1p32;
    static uint32_t upto[N];
    double share[BLOCK * BLOCK] = {0.0}, wanted[BLOCK * BLOCK] = {0.0};
    tsr_torsion_density *d = density_of(&mixture);
    tsr_torsion_density_cells(d, SIDE, upto);
    assert_true(upto[N - 1] == UINT32_MAX);
    for (int k = 0; k < N; k++) {
        const int block = k / SIDE / BLOCK * BLOCK + k % SIDE / BLOCK;
        const double own = (upto[k] - (k > 0 ? upto[k - 1] : 0)) / unit;
        assert_true(own > 0.049 / N);
        share[block] += own;
        wanted[block] += 0.05 / N;
        for (int m = 0; m < FINE * FINE; m++) {
            const double phi = (k / SIDE + (m / FINE + 0.5) / FINE) * width;
            const double psi = (k % SIDE + (m % FINE + 0.5) / FINE) * width;
            wanted[block] +=
                0.95 * pow(width / FINE, 2.0) *
                exp(tsr_torsion_density_log(d, phi - M_PI, psi - M_PI));
        }
    }
    for (int k = 0; k < BLOCK * BLOCK; k++)
        if (fabs(share[k] - wanted[k]) > 0.01)
            fail_msg("block %d is drawn with %.4f, not %.4f", k, share[k],
                     wanted[k]);
}

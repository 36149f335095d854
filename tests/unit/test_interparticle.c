/* Interference between particles: the structure factor against hard spheres,
 * and its place in the noise models against the sum over points. */
#include "scattering/contrast.h"
#include "tests/objects.h"
#include "tests/test.h"
#include "tests/unit/noise_problem.h"

/* Structure factor of hard spheres of radius 1 at the volume fraction phi, by
 * the equation of Percus & Yevick (Wertheim 1963; Kinning & Thomas 1984, eq.
 * 8 to 10). */
static double hard_spheres(double q, double phi)
{
    const double x = 2.0 * q, s = sin(x), c = cos(x);
    const double fourth = pow(1.0 - phi, 4.0);
    const double a = pow(1.0 + 2.0 * phi, 2.0) / fourth;
    const double b = -6.0 * phi * pow(1.0 + 0.5 * phi, 2.0) / fourth;
    const double g = 0.5 * phi * a;
    const double sum =
        a * (s - x * c) / (x * x) +
        b * (2.0 * x * s + (2.0 - x * x) * c - 2.0) / pow(x, 3.0) +
        g *
            (-pow(x, 4.0) * c + 4.0 * ((3.0 * x * x - 6.0) * c +
                                       (pow(x, 3.0) - 6.0 * x) * s + 6.0)) /
            pow(x, 5.0);
    return 1.0 / (1.0 + 24.0 * phi * sum / x);
}

static double sphere(double x)
{
    const double f = 3.0 * (sin(x) - x * cos(x)) / (x * x * x);
    return f * f;
}

/* The factor has S(0) of the spheres by construction. In the Guinier range, q R
 * to 1.68, it is off by at most a sixteenth of 1 - S(0), and by an eighth
 * beyond. */
TEST(hard_spheres_repel_each_other)
{
    static const double phi[] = {0.005, 0.02, 0.05};
    for (int i = 0; i < 3; i++) {
        const double s0 = pow(1.0 - phi[i], 4.0) / pow(1.0 + 2.0 * phi[i], 2.0);
        double low = 0.0, all = 0.0;
        for (double q = 0.1; q < 6.0; q += 0.02) {
            double one = sphere(q);
            tsr_structure_factor_apply(s0, 1.0, 1, &one);
            const double off = fabs(one / sphere(q) - hard_spheres(q, phi[i]));
            all = fmax(all, off);
            low = q < 1.68 ? all : low;
        }
        if (low > (1.0 - s0) / 15.0 || all > (1.0 - s0) / 6.0)
            fail_msg("phi %g: off by %g and %g, S(0) %g", phi[i], low, all, s0);
    }
}

/* S(0) = 1 leaves the bits; I(0) is multiplied by S(0). */
TEST(ends_of_the_factor)
{
    double i[3] = {1e4, 321.0, -0.5};
    tsr_structure_factor_apply(1.0, 1e4, 3, i);
    assert_true(i[0] == 1e4 && i[1] == 321.0 && i[2] == -0.5);
    tsr_structure_factor_apply(0.7, 1e4, 3, i);
    assert_near(i[0], 7e3, 1e-9);
}

/* At S(0) = 1 the points have the fit of the rotated rows, with and without the
 * model's own error and a prior of b; at another S(0) the likelihood is that of
 * the model times S(q). */
TEST(noise_models_have_the_factor)
{
    for (int i = 0; i < 4 * N_MODEL; i++) {
        static problem p;
        const int model = i / 4, has_error = i % 2 && model != STUDENT;
        double error[2 * N_Q];
        gsl_rng *rng = rng_new(31, (uint64_t)i);
        make_problem(&p, 30, 2.0, 5.0, 17);
        p.background_sd = i & 2 ? 4.0 : 0.0;
        if (model == RELATIVE)
            lift(&p);
        for (int j = 0; j < 2 * N_Q; j++)
            error[j] = gsl_ran_gaussian(rng, 0.3);
        open_model(&p, model, infer, infer);
        const int at = p.type->n_parameter + 2; /* log S(0) */
        double theta[6] = {0.3, 0.5};
        theta[at] = 0.0;
        for (int way = 0; way < 2; way++) {
            const tsr_noise_spec spec =
                ROW(.options = &p.options, .saxs = &p.saxs, .matrix = p.matrix,
                    .n_q = N_Q, .interparticle = way ? at : 0,
                    .linear = &p.linear, .n_error = has_error ? 2 : 0,
                    .error = error);
            static tsr_fit fit[2];
            static double scratch[2][2 * MAX_N];
            tsr_noise *s;
            OK(tsr_noise_new(&spec, new_pool(), &s, &err));
            fit[way] = (tsr_fit){.model = scratch[way],
                                 .weight = scratch[way] + MAX_N};
            p.type->fit(s, p.profile, theta, &fit[way]);
            if (way == 0)
                continue;
            assert_near(fit[0].scale, fit[1].scale, 1e-9);
            assert_near(fit[0].background, fit[1].background, 1e-8);
            assert_near(p.type->log_lik(s, &fit[0], theta, 2.1, 4.0),
                        p.type->log_lik(s, &fit[1], theta, 2.1, 4.0), 1e-8);
            if (p.type->log_integral != NULL)
                assert_near(p.type->log_integral(s, &fit[0], theta),
                            p.type->log_integral(s, &fit[1], theta), 1e-8);
            theta[at] = log(0.8);
            p.type->fit(s, p.profile, theta, &fit[1]);
            double sum = 0.0;
            for (int k = 0; k < p.saxs.n && !has_error; k++) {
                double m = p.model[k], x = m / p.profile[0];
                m /= 1.0 + (1.0 / 0.8 - 1.0) * x * x;
                sum += p.type->log_point(s, theta, k,
                                         p.intensity[k] - 2.1 * m - 4.0);
            }
            if (!has_error)
                assert_near(p.type->log_lik(s, &fit[1], theta, 2.1, 4.0), sum,
                            1e-8);
        }
    }
}

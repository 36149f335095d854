/* Interference between particles: the structure factor against hard spheres,
 * and its place in a term against the sum over points of the instrument. */
#include "scattering/contrast.h"
#include "tests/objects.h"
#include "tests/saxs_likelihood.h"
#include "tests/test.h"

#include <math.h>

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

/* A term's curve is I(q) S(q), smeared by the instrument, for spheres whose
 * grid has no point to spare: against the sum over the nodes of the instrument;
 * and at S(0) = 1 it is the curve without interference, to the bit. The noise
 * model has the same curve. */
TEST(terms_have_the_factor)
{
    enum { N = 40 };
    static const double slit[] = {0.0, 0.03}, wide[] = {0.0, 0.006};
    const double radius = 40.0, d_max = 2.0 * radius;
    const tsr_topology nothing = {0};
    tsr_form_factor_table *table =
        own_tsr_form_factor(tsr_form_factor_new(TSR_BODIES_TWO, 1, 101, .01));
    const tsr_scattering scattering = {.plain = table};
    for (int i = 0; i < 4; i++)
        for (int way = 0; way < 4; way++) {
            const double s0 = way == 3 ? 1.0 : 0.6 + 0.4 * way;
            double q[N], intensity[N], sigma[N], dq[N], curve[N], theta[6];
            double *profile, *joint, worst = 0.0;
            for (int k = 0; k < N; k++) {
                q[k] = 0.004 + 0.25 * k / N;
                intensity[k] = 100.0, sigma[k] = 1.0;
                dq[k] = wide[i / 2];
            }
            tsr_saxs saxs = {
                .n = N, .q = q, .intensity = intensity, .sigma = sigma};
            saxs.resolution.slit_length = slit[i % 2];
            saxs.resolution.sigma = wide[i / 2] > 0.0 ? dq : NULL;
            tsr_data_set set = {.saxs = &saxs,
                                .noise = noise_of("measured"),
                                .interparticle = {-1, s0},
                                .interparticle_width = 0.1};
            tsr_likelihood *l;
            MAKE(tsr_likelihood, l, saxs_likelihood, &nothing, &scattering,
                 d_max, 1, &set);
            const tsr_saxs_term *t = saxs_term(l, 0);
            profile = array((size_t)l->grid.n_q, sizeof *profile);
            joint = array(4 * (size_t)l->grid.n_q, sizeof *joint);
            profile[0] = 1e4;
            for (int j = 1; j < l->grid.n_q; j++)
                profile[j] = 1e4 * sphere(j * l->grid.dq_inv_ang * radius);
            tsr_saxs_curve(t, profile, s0, joint, curve);
            tsr_pool *pool = new_pool();
            tsr_smearing nodes;
            OK(tsr_smearing_make(&saxs.resolution, N, q, 3.0 * d_max, pool,
                                 &nodes, &err));
            for (int k = 0; k < N; k++) {
                double sum = 0.0;
                for (int j = nodes.first[k]; j < nodes.first[k + 1]; j++) {
                    const double p = sphere(nodes.q[j] * radius + 1e-9);
                    sum += nodes.weight[j] * 1e4 * p /
                           (1.0 + (1.0 / s0 - 1.0) * p * p);
                }
                worst = fmax(worst, fabs(curve[k] - sum));
            }
            if (worst > 0.1)
                fail_msg("instrument %d, S(0) %g: off by %g of 1e4", i, s0,
                         worst);
            tsr_fit *fit = tsr_term_fit_new(&t->term, pool);
            tsr_term_start(&t->term, theta);
            OK(tsr_saxs_fit(t, profile, theta, fit, &err));
            double chi2 = 0.0;
            for (int k = 0; k < N; k++)
                chi2 += pow(100.0 - fit->plain.scale * curve[k] -
                                fit->plain.background,
                            2.0);
            assert_near(chi2, fit->chi2, 1e-7 * chi2);
            if (s0 == 1.0) {
                double plain[N];
                tsr_saxs_curve(t, profile, 1.0, NULL, plain);
                assert_memory_equal(plain, curve, sizeof plain);
            }
        }
}

/* Bodies on the path of `tessera profile` - Debye sums with few types and
 * weights - against coarse_partials on the reference engine, whose types
 * are as many as the exposures. What that one gives is held to plain sums in
 * tests/oracle/test_coarse_profile.c. */
#include "gpu/device.h"
#include "posterior/profile_partials.h"
#include "tests/coarse_partials.h"
#include "tests/engine_support.h"
#include "tests/objects.h"
#include "tests/setup_sample.h"
#include "tests/test.h"

static const char demo[] = "configs/demo/two_domain.pdb";
static const char crystal[] = "../shared/data/saxs/lysozyme_2epe/model.pdb";
static const double q_max = 0.5;

/* What coarse_partials makes of the file on the grid of p, with exposures by
 * the file's atoms where it has any. */
static double *expected(const char *path, tsr_profile_bodies bodies,
                        const tsr_partials *p, double *radius_ang)
{
    sample x;
    read_sample(&x, 0, 0, NULL,
                format("structure: {file: %s, bodies: %s, frozen: true}\n"
                       "contrast: {c1: infer, c2: infer}\n",
                       path, bodies == TSR_PROFILE_TWO ? "two" : "one"));
    const tsr_topology *t = x.s.molecule.topology;
    int *type = array((size_t)t->n_body, sizeof *type);
    double *partial =
        array(TSR_N_COMP_PAIR * (size_t)p->grid.n_q, sizeof *partial);
    for (int b = 0; b < t->n_body; b++)
        type[b] = t->body[b].type;
    assert_true((x.s.data.atoms != NULL) == (strcmp(path, crystal) == 0));
    coarse_partials(x.s.molecule.components, t->n_body, type,
                    (const double(*)[3])x.s.molecule.first->body,
                    x.s.data.atoms != NULL ? x.s.data.exposure : NULL,
                    p->grid.n_q, p->grid.dq_inv_ang, NULL, NULL, partial,
                    radius_ang);
    return partial;
}

/* tolerance: relative to I_ab(q), and to a hundredth of I_ab(0) where a partial
 * profile is next to nothing. */
static void against_engine(const char *path, tsr_profile_bodies bodies,
                           const char *device, tsr_profile_method method,
                           double tolerance)
{
    tsr_profile_structure s;
    double radius;
    const tsr_profile_spec spec = {.bodies = bodies,
                                   .density = TSR_WATER_DENSITY,
                                   .device = device,
                                   .method = method,
                                   .q_max_inv_ang = q_max};
    NEW(tsr_profile_maker, maker, tsr_profile_maker_new, &spec, NULL);
    OK(tsr_profile_compute(maker, path, &s, &err));
    const tsr_partials *p = &s.partials;
    assert_int_equal(p->n_comp, TSR_N_COMP);
    double *want = expected(path, bodies, p, &radius), worst = 0.0;
    size_t n_q = (size_t)p->grid.n_q;
    assert_true(p->radius_ang == radius);
    for (size_t i = 0; i < TSR_N_COMP_PAIR * n_q; i++) {
        double first = want[i / n_q * n_q];
        assert_true(first > 0.0); /* nobody is without hydration */
        worst = fmax(worst, fabs(p->pair[i] - want[i]) /
                                (fabs(want[i]) + 0.01 * first));
    }
    for (size_t k = 0; k < n_q; k++)
        assert_true(p->self == NULL || p->self[k] == 0.0);
    if (!(worst < tolerance))
        fail_msg("%s: %g", path, worst);
    tsr_profile_structure_clear(&s);
}

TEST(on_the_reference)
{
    against_engine(demo, TSR_PROFILE_TWO, "reference", TSR_METHOD_DIRECT, 1e-9);
    against_engine(demo, TSR_PROFILE_ONE, "reference", TSR_METHOD_DIRECT, 1e-9);
}

TEST(by_plane_waves)
{
    against_engine(demo, TSR_PROFILE_TWO, "auto", TSR_METHOD_QUADRATURE, 1e-6);
    against_engine(demo, TSR_PROFILE_ONE, "auto", TSR_METHOD_QUADRATURE, 1e-6);
}

TEST(on_the_device)
{
    need_device();
    against_engine(demo, TSR_PROFILE_TWO, "auto", TSR_METHOD_DIRECT, 1e-5);
    against_engine(demo, TSR_PROFILE_ONE, "auto", TSR_METHOD_DIRECT, 1e-5);
}

TEST(of_a_crystal)
{
    if (access(crystal, R_OK) != 0) {
        print_message("skipped: no %s\n", crystal);
        skip();
    }
    against_engine(crystal, TSR_PROFILE_TWO, "reference", TSR_METHOD_DIRECT,
                   1e-9);
    against_engine(crystal, TSR_PROFILE_ONE, "reference", TSR_METHOD_DIRECT,
                   1e-9);
}

/* A table of one component by name: its S beside the pairs, nothing to fit. At
 * c1 = 1 without hydration the shipped tables of both kinds are one curve. */
TEST(a_table_of_one_component)
{
    static const char *const name[2] = {NULL, "data/form_factors_two_body.dat"};
    enum { N = 26 };
    double q[N], intensity[2][N];
    tsr_profile_structure s;
    tsr_partial_curves curves;
    for (int k = 0; k < N; k++)
        q[k] = q_max * k / (N - 1);
    for (int i = 0; i < 2; i++) {
        const tsr_profile_spec spec = {.bodies = TSR_PROFILE_TWO,
                                       .density = TSR_WATER_DENSITY,
                                       .device = "reference",
                                       .q_max_inv_ang = q_max,
                                       .form_factors = name[i]};
        NEW(tsr_profile_maker, maker, tsr_profile_maker_new, &spec, NULL);
        OK(tsr_profile_compute(maker, demo, &s, &err));
        assert_int_equal(s.partials.n_comp, i == 0 ? 3 : 1);
        OK(tsr_partial_curves_make(&s.partials, N, q, &curves, &err));
        tsr_contrast_intensity(&curves, 1.0, 0.0, intensity[i]);
        tsr_partial_curves_clear(&curves);
        tsr_profile_structure_clear(&s);
    }
    /* eight digits in the files, then differences */
    for (int k = 0; k < N; k++)
        assert_true(fabs(intensity[0][k] / intensity[1][k] - 1.0) < 1e-5);
}

/* Bodies on the path of `tessera profile` - Debye sums with few types and
 * weights - against coarse_partials on the reference engine, whose types
 * are as many as the exposures. What that one gives is held to plain sums in
 * tests/oracle/test_coarse_profile.c. */
#include "posterior/profile_partials.h"

#include "gpu/device.h"
#include "molecule/topology.h"
#include "posterior/all_atoms.h"
#include "posterior/setup.h"
#include "scattering/form_factor.h"
#include "tests/coarse_partials.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char demo[] = "configs/demo/two_domain.pdb";
static const char crystal[] = "../shared/data/saxs/lysozyme_2epe/model.pdb";
static const double q_max = 0.5;

static void must(tsr_status status, const tsr_err *err)
{
    if (status != TSR_OK)
        fail_msg("%s", err->message);
}

/* Exposures by the file's atoms; NULL: it has none. Caller frees. */
static double *expose(const char *path, const tsr_form_factor_table *table,
                      tsr_topology *t, tsr_conformation *first)
{
    tsr_err err;
    const tsr_molecule m = {.topology = t,
                            .first = first,
                            .components = table,
                            .file = path,
                            .density = TSR_WATER_DENSITY};
    tsr_atom_curves *atoms = NULL;
    double *exposure = NULL;
    if (tsr_atom_curves_new(&m, NULL, NULL, NULL, &atoms, &err) == TSR_OK) {
        exposure = calloc((size_t)t->n_body, sizeof *exposure);
        must(tsr_atom_curves_expose(atoms, &m, first, exposure, &err), &err);
    }
    tsr_atom_curves_free(atoms);
    return exposure;
}

/* What coarse_partials makes of the file on the grid of p. */
static double *expected(const char *path, const tsr_form_factor_table *table,
                        const tsr_partials *p, double *radius_ang)
{
    tsr_err err;
    char *prior_path;
    tsr_prior_table *prior;
    tsr_structure *structure;
    tsr_topology *t;
    tsr_conformation *first;
    must(tsr_data_file("prior.dat", &prior_path, &err), &err);
    must(tsr_prior_table_read(prior_path, &prior, &err), &err);
    must(tsr_structure_read(path, &structure, &err), &err);
    must(tsr_topology_from_structure(structure, table->model,
                                     (tsr_flexibility){.is_still = 1}, prior,
                                     NULL, &t, &first, &err),
         &err);
    int *type = calloc((size_t)t->n_body, sizeof *type);
    double *partial =
        calloc(TSR_N_COMP_PAIR * (size_t)p->grid.n_q, sizeof *partial);
    for (int b = 0; b < t->n_body; b++)
        type[b] = t->body[b].type;
    double *exposure = expose(path, table, t, first);
    assert_true((exposure != NULL) == (strcmp(path, crystal) == 0));
    must(coarse_partials(table, t->n_body, type,
                         (const double(*)[3])first->body, exposure, p->grid.n_q,
                         p->grid.dq_inv_ang, NULL, NULL, partial, radius_ang,
                         &err),
         &err);
    free(type);
    free(exposure);
    free(prior_path);
    tsr_conformation_free(first);
    tsr_topology_free(t);
    tsr_structure_free(structure);
    tsr_prior_table_free(prior);
    return partial;
}

/* tolerance: relative to I_ab(q), and to a hundredth of I_ab(0) where a partial
 * profile is next to nothing. */
static void against_engine(const char *path, tsr_profile_bodies bodies,
                           const char *device, tsr_profile_method method,
                           double tolerance)
{
    tsr_err err;
    tsr_profile_maker *maker;
    tsr_profile_structure s;
    tsr_form_factor_table *table;
    double radius;
    must(tsr_form_factor_read(bodies == TSR_PROFILE_TWO
                                  ? "data/components_two_body.dat"
                                  : "data/components_one_body.dat",
                              &table, &err),
         &err);
    const tsr_profile_spec spec = {.bodies = bodies,
                                   .density = TSR_WATER_DENSITY,
                                   .device = device,
                                   .method = method,
                                   .q_max_inv_ang = q_max};
    must(tsr_profile_maker_new(&spec, NULL, &maker, &err), &err);
    must(tsr_profile_compute(maker, path, &s, &err), &err);
    const tsr_partials *p = &s.partials;
    assert_int_equal(p->n_comp, TSR_N_COMP);
    double *want = expected(path, table, p, &radius), worst = 0.0;
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
        print_message("%s: %g\n", path, worst);
    assert_true(worst < tolerance);
    free(want);
    tsr_profile_structure_clear(&s);
    tsr_profile_maker_free(maker);
    tsr_form_factor_free(table);
}

static void on_the_reference(void **state)
{
    (void)state;
    against_engine(demo, TSR_PROFILE_TWO, "reference", TSR_METHOD_DIRECT, 1e-9);
    against_engine(demo, TSR_PROFILE_ONE, "reference", TSR_METHOD_DIRECT, 1e-9);
}

static void by_plane_waves(void **state)
{
    (void)state;
    against_engine(demo, TSR_PROFILE_TWO, "auto", TSR_METHOD_QUADRATURE, 1e-6);
    against_engine(demo, TSR_PROFILE_ONE, "auto", TSR_METHOD_QUADRATURE, 1e-6);
}

static void on_the_device(void **state)
{
    (void)state;
    tsr_device *device;
    tsr_err err;
    if (tsr_device_open("auto", &device, &err) != TSR_OK) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    tsr_device_free(device);
    against_engine(demo, TSR_PROFILE_TWO, "auto", TSR_METHOD_DIRECT, 1e-5);
    against_engine(demo, TSR_PROFILE_ONE, "auto", TSR_METHOD_DIRECT, 1e-5);
}

static void of_a_crystal(void **state)
{
    (void)state;
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
static void a_table_of_one_component(void **state)
{
    (void)state;
    static const char *const name[2] = {NULL, "data/form_factors_two_body.dat"};
    enum { N = 26 };
    double q[N], intensity[2][N];
    tsr_profile_structure s;
    tsr_partial_curves curves;
    tsr_profile_maker *maker;
    tsr_err err;
    for (int k = 0; k < N; k++)
        q[k] = q_max * k / (N - 1);
    for (int i = 0; i < 2; i++) {
        const tsr_profile_spec spec = {.bodies = TSR_PROFILE_TWO,
                                       .density = TSR_WATER_DENSITY,
                                       .device = "reference",
                                       .q_max_inv_ang = q_max,
                                       .form_factors = name[i]};
        must(tsr_profile_maker_new(&spec, NULL, &maker, &err), &err);
        must(tsr_profile_compute(maker, demo, &s, &err), &err);
        assert_int_equal(s.partials.n_comp, i == 0 ? 3 : 1);
        must(tsr_partial_curves_make(&s.partials, N, q, &curves, &err), &err);
        tsr_contrast_intensity(&curves, 1.0, 0.0, intensity[i]);
        tsr_partial_curves_clear(&curves);
        tsr_profile_structure_clear(&s);
        tsr_profile_maker_free(maker);
    }
    for (int k = 0; k < N;
         k++) /* eight digits in the files, then differences */
        assert_true(fabs(intensity[0][k] / intensity[1][k] - 1.0) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_reference), cmocka_unit_test(by_plane_waves),
        cmocka_unit_test(on_the_device), cmocka_unit_test(of_a_crystal),
        cmocka_unit_test(a_table_of_one_component)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The quick version of slow_form_factors.c: a table trained on the first 40
 * structures of the folder against all atoms of three others. */
#include "form_factor_oracle.h"

#include "train/train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define FOLDER "../shared/data/structures"
enum { N_TRAIN = 40, N_TEST = 3 };
static const char *const test_path[N_TEST] = {
    FOLDER "/1ubq.pdb.gz", FOLDER "/1pdo.pdb.gz", FOLDER "/2pvb.pdb.gz"};

/* The recurrence and the sums over kinds against the formula as it stands. */
static void debye_is_debye(void **state)
{
    (void)state;
    double xyz[4][3] = {{0, 0, 0}, {1.5, 0, 0}, {0.3, 22.1, -3}, {-40, 7, 61}};
    int kind[4] = {0, 1, 0, 1};
    oracle_points p = {.n = 4, .n_kind = 2, .kind = kind, .xyz = xyz};
    for (int k = 0; k < ORACLE_N_Q; k++) {
        p.amplitude[0][k] = 7.0 - 0.05 * k;
        p.amplitude[1][k] = -2.0 + 0.01 * k;
    }
    double intensity[ORACLE_N_Q];
    oracle_debye(&p, intensity);
    for (int k = 0; k < ORACLE_N_Q; k++) {
        double expect = 0.0;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                double x = k * ORACLE_DQ *
                           sqrt(pow(xyz[i][0] - xyz[j][0], 2) +
                                pow(xyz[i][1] - xyz[j][1], 2) +
                                pow(xyz[i][2] - xyz[j][2], 2));
                expect += p.amplitude[kind[i]][k] * p.amplitude[kind[j]][k] *
                          (x > 0.0 ? sin(x) / x : 1.0);
            }
        /* rounding of 50 steps of the recurrence, at x down to 0.015 */
        assert_true(fabs(intensity[k] - expect) < 1e-10 * fabs(expect) + 1e-9);
    }
}

static int train(tsr_body_model model, int refine,
                 tsr_form_factor_table **table)
{
    tsr_path_list list;
    if (tsr_path_list_collect(&list, 1, (const char *const[]){FOLDER}, NULL) !=
        TSR_OK) {
        print_message("skipped: no " FOLDER "\n");
        return 0;
    }
    const char *path[N_TRAIN];
    int n = 0;
    for (int i = 0; i < list.n && n < N_TRAIN; i++) {
        int is_test = 0;
        for (int t = 0; t < N_TEST; t++)
            is_test |= strcmp(list.path[i], test_path[t]) == 0;
        if (!is_test)
            path[n++] = list.path[i];
    }
    assert_int_equal(n, N_TRAIN);
    *table = tsr_form_factor_new(model, 1, 51, ORACLE_DQ);
    assert_int_equal(tsr_form_factor_train(*table, n, path, 0, NULL, NULL),
                     TSR_OK);
    if (refine)
        assert_int_equal(tsr_form_factor_refine(*table, n, path, 0, NULL, NULL),
                         TSR_OK);
    tsr_pool_clear(&list.pool);
    return 1;
}

/* bound [structure][band]; about a third above what was measured. */
static void check(tsr_body_model model, int refine,
                  const double bound[N_TEST][ORACLE_N_BAND])
{
    tsr_form_factor_table *table = NULL;
    if (!train(model, refine, &table))
        skip();
    for (int i = 0; i < N_TEST; i++) {
        tsr_structure *structure;
        double atoms[ORACLE_N_Q], plain[ORACLE_N_Q], with_s[ORACLE_N_Q];
        double error[ORACLE_N_BAND];
        assert_int_equal(tsr_structure_read(test_path[i], &structure, NULL),
                         TSR_OK);
        oracle_atoms(structure, atoms);
        oracle_bodies(structure, table, plain, with_s);
        oracle_errors(atoms, with_s, error);
        for (int b = 0; b < ORACLE_N_BAND; b++)
            assert_true(error[b] < bound[i][b]);
        tsr_structure_free(structure);
    }
    tsr_form_factor_free(table);
}

static void two_body_against_atoms(void **state)
{
    (void)state;
    check(TSR_BODIES_TWO, 0,
          (const double[N_TEST][ORACLE_N_BAND]){{0.0015, 0.017, 0.064, 0.113},
                                                {0.0015, 0.008, 0.022, 0.123},
                                                {0.0016, 0.008, 0.089, 0.186}});
}

static void one_body_against_atoms(void **state)
{
    (void)state;
    check(TSR_BODIES_ONE, 0,
          (const double[N_TEST][ORACLE_N_BAND]){{0.0020, 0.033, 0.195, 0.403},
                                                {0.0014, 0.010, 0.086, 0.323},
                                                {0.0015, 0.011, 0.217, 0.460}});
}

static void refined_against_atoms(void **state)
{
    (void)state;
    check(TSR_BODIES_TWO, 1,
          (const double[N_TEST][ORACLE_N_BAND]){{0.0014, 0.008, 0.051, 0.014},
                                                {0.0012, 0.011, 0.012, 0.019},
                                                {0.0012, 0.011, 0.065, 0.088}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(debye_is_debye),
                                       cmocka_unit_test(two_body_against_atoms),
                                       cmocka_unit_test(one_body_against_atoms),
                                       cmocka_unit_test(refined_against_atoms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

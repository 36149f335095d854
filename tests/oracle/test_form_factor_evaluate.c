/* The evaluation of form-factor tables against the oracle's own sums, on
 * structures that the shipped tables were not trained on, and the tables of
 * Stovgaard et al. 2010 as they are published. */
#include "form_factor_oracle.h"

#include "train/train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define FOLDER "../shared/data/structures"
#define PUBLISHED "../shared/data/form_factors/form_factors-"
enum { N_TEST = 3 };
static const char *const test_path[N_TEST] = {
    FOLDER "/1orc.pdb.gz", FOLDER "/1beb.pdb.gz", FOLDER "/1het.pdb.gz"};

static void needs(const char *path)
{
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
}

static double middle(const double *x)
{
    return fmax(fmin(x[0], x[1]), fmin(fmax(x[0], x[1]), x[2]));
}

static void as_the_oracle(const char *path)
{
    needs(test_path[0]);
    needs(path);
    tsr_form_factor_table *table;
    tsr_error_summary summary[2];
    assert_int_equal(tsr_form_factor_read(path, &table, NULL), TSR_OK);
    const tsr_evaluation row[2] = {{table, 0, 1.0, 0.0}, {table, 1, 1.0, 0.0}};
    assert_int_equal(tsr_form_factor_evaluate(N_TEST, test_path, 2, row, 2,
                                              NULL, summary, NULL),
                     TSR_OK);
    double error[2][ORACLE_N_BAND][N_TEST];
    for (int i = 0; i < N_TEST; i++) {
        tsr_structure *s;
        double atoms[ORACLE_N_Q], curve[2][ORACLE_N_Q], e[ORACLE_N_BAND];
        assert_int_equal(tsr_structure_read(test_path[i], &s, NULL), TSR_OK);
        oracle_atoms(s, atoms);
        oracle_bodies(s, table, curve[0], curve[1]);
        for (int w = 0; w < 2; w++) {
            oracle_errors(atoms, curve[w], e);
            for (int b = 0; b < ORACLE_N_BAND; b++)
                error[w][b][i] = e[b];
        }
        tsr_structure_free(s);
    }
    /* bins of 0.05 Angstrom: 1e-4 of I(q) at q = 1, a quarter at 0.5 */
    for (int w = 0; w < 2; w++)
        for (int b = 0; b < ORACLE_N_BAND; b++)
            assert_true(fabs(summary[w].band[b] - middle(error[w][b])) < 1e-4);
    tsr_form_factor_free(table);
}

static void shipped_two_body(void **state)
{
    (void)state;
    as_the_oracle("data/form_factors_two_body.dat");
}

static void published_one_body(void **state)
{
    (void)state;
    as_the_oracle(PUBLISHED "one_body_model.dat");
}

/* What the tables must keep to, at the middle of three that they were
 * not trained on; slow_form_factors.c has all of them. */
static void shipped_are_accurate(void **state)
{
    (void)state;
    static const char *const path[2] = {"data/form_factors_two_body.dat",
                                        "data/form_factors_one_body.dat"};
    static const double bound[2][TSR_ERROR_N_BAND] = {
        {0.002, 0.01, 0.02, 0.04}, {0.003, 0.015, 0.05, 0.10}};
    needs(test_path[0]);
    for (int m = 0; m < 2; m++) {
        tsr_form_factor_table *table;
        tsr_error_summary summary;
        assert_int_equal(tsr_form_factor_read(path[m], &table, NULL), TSR_OK);
        for (int i = 0; i < N_TEST; i++) {
            assert_true(tsr_structure_is_listed(table->source, "held out",
                                                test_path[i]));
            assert_false(tsr_structure_is_listed(table->source, "structures",
                                                 test_path[i]));
        }
        const tsr_evaluation row = {table, 1, 1.0, 0.0};
        assert_int_equal(tsr_form_factor_evaluate(N_TEST, test_path, 1, &row, 0,
                                                  NULL, &summary, NULL),
                         TSR_OK);
        for (int b = 0; b < TSR_ERROR_N_BAND; b++)
            assert_true(summary.band[b] < bound[m][b]);
        tsr_form_factor_free(table);
    }
}

/* Columns by the README of the files; 51 q to 0.75. */
static void published_values(void **state)
{
    (void)state;
    needs(PUBLISHED "two_body_model.dat");
    tsr_form_factor_table *two, *one;
    assert_int_equal(
        tsr_form_factor_read(PUBLISHED "two_body_model.dat", &two, NULL),
        TSR_OK);
    assert_int_equal(
        tsr_form_factor_read(PUBLISHED "one_body_model.dat", &one, NULL),
        TSR_OK);
    assert_int_equal(two->model, TSR_BODIES_TWO);
    assert_int_equal(one->model, TSR_BODIES_ONE);
    assert_int_equal(two->n_q, 51);
    assert_true(fabs(two->dq_inv_ang - 0.015) < 1e-12);
    assert_true(fabs(two->amplitude[0] - 6.0285176818659094) < 1e-12);
    const double *arg = two->amplitude + (1 + TSR_ARG) * 51;
    assert_true(fabs(arg[0] - 17.282486773650298) < 1e-12);
    assert_true(fabs(one->amplitude[TSR_VAL * 51 + 50] - 13.38191366) < 1e-12);
    assert_non_null(strstr(two->source, "two_body_model.dat"));
    double excess[TSR_MAX_TYPE * 51];
    assert_int_equal(
        tsr_form_factor_resample(two, 51, 0.015, NULL, excess, NULL), TSR_OK);
    for (int i = 0; i < TSR_MAX_TYPE * 51; i++)
        assert_true(excess[i] == 0.0);
    tsr_form_factor_free(two);
    tsr_form_factor_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shipped_two_body),
                                       cmocka_unit_test(published_one_body),
                                       cmocka_unit_test(shipped_are_accurate),
                                       cmocka_unit_test(published_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

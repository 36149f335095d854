/* Coarse-grained profiles against all atoms, on structures that the tables
 * were not trained on: every sixth is set aside, the others train
 * (docs/forward-model.md, the table of the prototype). */
#include "form_factor_oracle.h"

#include "train/train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const char folder[] = "../shared/data/structures";
enum { MAX_TEST = 64, N_Q = 101 };

typedef struct {
    int n_train, n_test;
    const char **train;
    const char *test[MAX_TEST];
    tsr_path_list list;
} split;

static int set_up(void **state)
{
    split *s = calloc(1, sizeof *s);
    *state = s;
    if (tsr_path_list_collect(&s->list, 1, (const char *const[]){folder},
                              NULL) != TSR_OK)
        return 0; /* the tests skip */
    s->train = calloc((size_t)s->list.n, sizeof *s->train);
    for (int i = 0; i < s->list.n; i++)
        if (i % 6 == 5 && s->n_test < MAX_TEST)
            s->test[s->n_test++] = s->list.path[i];
        else
            s->train[s->n_train++] = s->list.path[i];
    return 0;
}

static int tear_down(void **state)
{
    split *s = *state;
    tsr_pool_clear(&s->list.pool);
    free(s->train);
    free(s);
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *value, int n)
{
    qsort(value, (size_t)n, sizeof *value, ascending);
    return n % 2 ? value[n / 2] : 0.5 * (value[n / 2 - 1] + value[n / 2]);
}

/* Medians over the structures; prints a row as in docs/forward-model.md. */
static void take_medians(const char *name, int n,
                         double error[ORACLE_N_BAND][MAX_TEST],
                         double median[ORACLE_N_BAND])
{
    printf("| %s |", name);
    for (int b = 0; b < ORACLE_N_BAND; b++) {
        median[b] = median_of(error[b], n);
        printf(" %.2f %% |", 100.0 * median[b]);
    }
    printf("\n");
}

static void check_model(const split *s, tsr_body_model model, int refine,
                        double median_s[ORACLE_N_BAND],
                        double median_plain[ORACLE_N_BAND])
{
    tsr_form_factor_table *table =
        tsr_form_factor_new(model, 1, N_Q, ORACLE_DQ);
    static double e_s[ORACLE_N_BAND][MAX_TEST], e_p[ORACLE_N_BAND][MAX_TEST];
    assert_int_equal(
        tsr_form_factor_train(table, s->n_train, s->train, 0, NULL, NULL),
        TSR_OK);
    if (refine)
        assert_int_equal(
            tsr_form_factor_refine(table, s->n_train, s->train, 0, NULL, NULL),
            TSR_OK);
    for (int i = 0; i < s->n_test; i++) {
        tsr_structure *structure;
        double atoms[ORACLE_N_Q], plain[ORACLE_N_Q], with_s[ORACLE_N_Q];
        double error[ORACLE_N_BAND];
        assert_int_equal(tsr_structure_read(s->test[i], &structure, NULL),
                         TSR_OK);
        oracle_atoms(structure, atoms);
        oracle_bodies(structure, table, plain, with_s);
        oracle_errors(atoms, with_s, error);
        for (int b = 0; b < ORACLE_N_BAND; b++)
            e_s[b][i] = error[b];
        oracle_errors(atoms, plain, error);
        for (int b = 0; b < ORACLE_N_BAND; b++)
            e_p[b][i] = error[b];
        tsr_structure_free(structure);
    }
    const char *word = model == TSR_BODIES_TWO ? "two" : "one";
    char name[64];
    printf("%d structures trained on, %d set aside\n", s->n_train, s->n_test);
    snprintf(name, sizeof name, "%s-body, %s + S", word,
             refine ? "refined" : "amplitudes");
    take_medians(name, s->n_test, e_s, median_s);
    snprintf(name, sizeof name, "%s-body, %s", word,
             refine ? "refined" : "amplitudes");
    take_medians(name, s->n_test, e_p, median_plain);
    tsr_form_factor_free(table);
}

static void assert_below(const double *median, const double *bound)
{
    for (int b = 0; b < ORACLE_N_BAND; b++)
        assert_true(median[b] < bound[b]);
}

/* Bounds of the averages: about a quarter above what was measured with 250
 * structures trained on and 49 set aside: two-body with S 0.06, 0.70, 2.15,
 * 8.08 %, without 0.06, 0.67, 2.65, 9.84 %; one-body with S 0.11, 1.15, 9.07,
 * 23.5 %. Bounds of the refined: what is asked for (measured 0.06, 0.57,
 * 1.52, 2.30 %; one-body 0.11, 0.96, 3.67, 6.91 %). */
static void two_body(void **state)
{
    const split *s = *state;
    if (s->n_train == 0) {
        print_message("skipped: no %s\n", folder);
        skip();
    }
    double with_s[ORACLE_N_BAND], plain[ORACLE_N_BAND];
    check_model(s, TSR_BODIES_TWO, 0, with_s, plain);
    assert_below(with_s, (const double[]){0.001, 0.0102, 0.0275, 0.094});
    assert_below(plain, (const double[]){0.001, 0.0102, 0.035, 0.118});
    /* S is there to help where a body's inside shows. */
    assert_true(with_s[2] < plain[2]);
    assert_true(with_s[3] < plain[3]);
}

static void one_body(void **state)
{
    const split *s = *state;
    if (s->n_train == 0) {
        print_message("skipped: no %s\n", folder);
        skip();
    }
    double with_s[ORACLE_N_BAND], plain[ORACLE_N_BAND];
    check_model(s, TSR_BODIES_ONE, 0, with_s, plain);
    assert_below(with_s, (const double[]){0.0014, 0.0177, 0.113, 0.293});
}

static void two_body_refined(void **state)
{
    const split *s = *state;
    if (s->n_train == 0) {
        print_message("skipped: no %s\n", folder);
        skip();
    }
    double with_s[ORACLE_N_BAND], plain[ORACLE_N_BAND];
    check_model(s, TSR_BODIES_TWO, 1, with_s, plain);
    assert_below(with_s, (const double[]){0.001, 0.01, 0.02, 0.04});
}

static void one_body_refined(void **state)
{
    const split *s = *state;
    if (s->n_train == 0) {
        print_message("skipped: no %s\n", folder);
        skip();
    }
    double with_s[ORACLE_N_BAND], plain[ORACLE_N_BAND];
    check_model(s, TSR_BODIES_ONE, 1, with_s, plain);
    assert_below(with_s, (const double[]){0.0015, 0.015, 0.05, 0.10});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_body), cmocka_unit_test(one_body),
        cmocka_unit_test(two_body_refined), cmocka_unit_test(one_body_refined)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

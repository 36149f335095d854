/* Coarse-grained profiles against all atoms, on structures that the tables
 * were not trained on: every sixth is set aside, the others train
 * (docs/forward-model.md, the table of the prototype). */
#include "form_factor_oracle.h"
#include "tests/test.h"

enum { MOST_FILES = 64, N_Q = 101 };

typedef struct {
    int n_train, n_test;
    const char **train;
    const char *test[MOST_FILES];
    tsr_path_list list;
} split;

FIXTURE(set_up)
{
    split *s = array(1, sizeof *s);
    *state = s;
    own(&s->list.pool, release_pool);
    if (tsr_path_list_collect(&s->list, 1, (const char *const[]){FOLDER},
                              NULL) != TSR_OK)
        return 0; /* the tests skip */
    s->train = array((size_t)s->list.n, sizeof *s->train);
    for (int i = 0; i < s->list.n; i++)
        if (i % 6 == 5 && s->n_test < MOST_FILES)
            s->test[s->n_test++] = s->list.path[i];
        else
            s->train[s->n_train++] = s->list.path[i];
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
                         double error[ORACLE_N_BAND][MOST_FILES],
                         double median[ORACLE_N_BAND])
{
    printf("| %s |", name);
    for (int b = 0; b < ORACLE_N_BAND; b++) {
        median[b] = median_of(error[b], n);
        printf(" %.2f %% |", 100.0 * median[b]);
    }
    printf("\n");
}

/* Bounds of the averages: about a quarter above what was measured with 250
 * structures trained on and 49 set aside: two-body with S 0.06, 0.70, 2.15,
 * 8.08 %, without 0.06, 0.67, 2.65, 9.84 %; one-body with S 0.11, 1.15, 9.07,
 * 23.5 %. Bounds of the refined: what is asked for (measured 0.06, 0.57,
 * 1.52, 2.30 %; one-body 0.11, 0.96, 3.67, 6.91 %). plain: bounds without S, or
 * NULL. */
static void check(const split *s, tsr_body_model model, int refine,
                  const double with_s[ORACLE_N_BAND],
                  const double plain[ORACLE_N_BAND])
{
    static double error[2][ORACLE_N_BAND][MOST_FILES];
    double median[2][ORACLE_N_BAND];
    char name[64];
    if (s->n_train == 0)
        oracle_needs(FOLDER);
    tsr_form_factor_table *table =
        oracle_trained(model, N_Q, refine, s->n_train, s->train);
    for (int i = 0; i < s->n_test; i++) {
        double one[2][ORACLE_N_BAND];
        oracle_compare(s->test[i], table, one);
        for (int w = 0; w < 2; w++)
            for (int b = 0; b < ORACLE_N_BAND; b++)
                error[w][b][i] = one[w][b];
    }
    printf("%d structures trained on, %d set aside\n", s->n_train, s->n_test);
    for (int w = 1; w >= 0; w--) {
        snprintf(name, sizeof name, "%s-body, %s%s",
                 model == TSR_BODIES_TWO ? "two" : "one",
                 refine ? "refined" : "amplitudes", w ? " + S" : "");
        take_medians(name, s->n_test, error[w], median[w]);
    }
    for (int b = 0; b < ORACLE_N_BAND; b++) {
        assert_true(median[1][b] < with_s[b]);
        assert_true(plain == NULL || median[0][b] < plain[b]);
        /* S is there to help where a body's inside shows. */
        assert_true(plain == NULL || b < 2 || median[1][b] < median[0][b]);
    }
}

TEST(two_body)
{
    check(*state, TSR_BODIES_TWO, 0,
          (const double[]){0.001, 0.0102, 0.0275, 0.094},
          (const double[]){0.001, 0.0102, 0.035, 0.118});
}

TEST(one_body)
{
    check(*state, TSR_BODIES_ONE, 0,
          (const double[]){0.0014, 0.0177, 0.113, 0.293}, NULL);
}

TEST(two_body_refined)
{
    check(*state, TSR_BODIES_TWO, 1, (const double[]){0.001, 0.01, 0.02, 0.04},
          NULL);
}

TEST(one_body_refined)
{
    check(*state, TSR_BODIES_ONE, 1,
          (const double[]){0.0015, 0.015, 0.05, 0.10}, NULL);
}

static test_fixture around_all = {set_up, NULL};

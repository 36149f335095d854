/* A test program: TEST(name) { ... } defines a test and enters it in the
 * program's list; main, below, runs the list in the order of the source. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include "tests/check.h"

/* Functions that run before and after all tests of a program, or each of them.
 * A program that needs them defines the variable again with values. */
typedef struct {
    CMFixtureFunction begin, end;
} test_fixture;
static test_fixture around_all, around_each;

enum { MAX_TEST = 64 };
static struct CMUnitTest test_list[MAX_TEST];

#define TEST(test)                                                 \
    static void test(void **state);                                \
    __attribute__((constructor)) static void test##_entry(void)    \
    {                                                              \
        test_list[__COUNTER__] =                                   \
            (struct CMUnitTest){.name = #test, .test_func = test}; \
    }                                                              \
    static void test(__attribute__((unused)) void **state)

static size_t n_owned_before; /* objects of around_all */

static int begin_test(void **state)
{
    n_owned_before = n_owned;
    return around_each.begin != NULL ? around_each.begin(state) : 0;
}

static int end_test(void **state)
{
    const int status = around_each.end != NULL ? around_each.end(state) : 0;
    release_owned(n_owned_before);
    return status;
}

/* TESSERA_TEST: only tests whose names match it (* and ? as in a shell). */
static inline int run_test_list(void)
{
    struct CMUnitTest tests[MAX_TEST];
    size_t n = 0;
    if (getenv("TESSERA_TEST") != NULL)
        cmocka_set_test_filter(getenv("TESSERA_TEST"));
    for (int i = 0; i < MAX_TEST; i++)
        if (test_list[i].name != NULL) {
            tests[n] = test_list[i];
            tests[n].setup_func = begin_test;
            tests[n++].teardown_func = end_test;
        }
    const int n_failed = _cmocka_run_group_tests(
        "tests", tests, n, around_all.begin, around_all.end);
    release_owned(0);
    free(owned);
    return n_failed;
}

#ifndef OWN_MAIN
int main(void)
{
    return run_test_list();
}
#endif

#endif

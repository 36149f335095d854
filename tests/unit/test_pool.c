/* A pool's memory is zeroed, moves when it grows, and goes as a whole; a failed
 * allocation is remembered. Sanitizers see what leaks. */
#include "core/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void test_arrays(void **state)
{
    (void)state;
    tsr_pool pool = {0};
    tsr_err err;
    double *first, *second;
    tsr_pool_array(&pool, first, 1000);
    tsr_pool_array(&pool, second, 10);
    assert_int_equal(tsr_pool_check(&pool, &err), TSR_OK);
    for (int i = 0; i < 1000; i++)
        assert_true(first[i] == 0.0);
    assert_int_equal((uintptr_t)first % _Alignof(max_align_t), 0);
    first[999] = 3.0;
    first = tsr_pool_resize(&pool, first, 100000, sizeof *first);
    assert_non_null(first);
    assert_true(first[999] == 3.0);
    tsr_pool_free(&pool, second);
    assert_string_equal(tsr_pool_format(&pool, "%s-%d", "a", 7), "a-7");
    assert_null(tsr_pool_text(&pool, NULL));
    tsr_pool_free(&pool, first);
    tsr_pool_clear(&pool);
    assert_null(pool.last);
}

static void test_refused(void **state)
{
    (void)state;
    tsr_pool pool = {0};
    tsr_err err;
    char *text = tsr_pool_text(&pool, "kept");
    assert_null(tsr_pool_new(&pool, SIZE_MAX / 4, 8));
    assert_null(tsr_pool_resize(&pool, text, SIZE_MAX - 8, 1));
    assert_string_equal(text, "kept");
    assert_int_equal(tsr_pool_check(&pool, &err), TSR_E_NOMEM);
    tsr_pool_clear(&pool);
    assert_int_equal(tsr_pool_check(&pool, &err), TSR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arrays),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

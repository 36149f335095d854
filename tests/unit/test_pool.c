/* Memory of a pool is zeroed, survives growth, and is freed as a whole; a
 * failed allocation is remembered. */
#include "tests/test.h"

TEST(test_arrays)
{
    tsr_pool pool = {0};
    double *first, *second;
    tsr_pool_array(&pool, first, 1000);
    tsr_pool_array(&pool, second, 10);
    OK(tsr_pool_check(&pool, &err));
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

TEST(test_refused)
{
    tsr_pool pool = {0};
    char *text = tsr_pool_text(&pool, "kept");
    assert_null(tsr_pool_new(&pool, SIZE_MAX / 4, 8));
    assert_null(tsr_pool_resize(&pool, text, SIZE_MAX - 8, 1));
    assert_string_equal(text, "kept");
    assert_int_equal(tsr_pool_check(&pool, &err), TSR_E_NOMEM);
    tsr_pool_clear(&pool);
    OK(tsr_pool_check(&pool, &err));
}

/* A loop over threads computes each item once, and stops at the same error with
 * any number of threads. */
#include "core/parallel.h"
#include "tests/test.h"

#include <stdatomic.h>

enum { N = 200 };

typedef struct {
    atomic_int times[N];
    int bad[2]; /* items that fail */
    int n_inner;
} loop;

static void count_inner(void *context, int part, int thread)
{
    (void)part;
    assert_int_equal(thread, 0);
    assert_int_equal(tsr_parallel_processors(), 1);
    ((loop *)context)->n_inner++;
}

static tsr_status visit(void *context, int item, int thread, tsr_err *e)
{
    loop *l = context;
    assert_in_range(thread, 0, 7);
    atomic_fetch_add(&l->times[item], 1);
    return item == l->bad[0] || item == l->bad[1]
               ? tsr_fail(e, TSR_E_DATA, "item %d", item)
               : TSR_OK;
}

TEST(test_all_items)
{
    for (int n_thread = 1; n_thread <= 8; n_thread++) {
        loop l = {.bad = {-1, -1}};
        OK(tsr_parallel_try(N, n_thread, visit, &l, &err));
        for (int i = 0; i < N; i++)
            assert_int_equal(atomic_load(&l.times[i]), 1);
    }
}

/* Both items fail in some order; the error is always that of the first. */
TEST(test_lowest_error)
{
    for (int turn = 0; turn < 400; turn++) {
        loop l = {.bad = {60 + turn % 7, 61 + turn % 7}};
        char want[32];
        assert_int_equal(tsr_parallel_try(N, 1 + turn % 8, visit, &l, &err),
                         TSR_E_DATA);
        snprintf(want, sizeof want, "item %d", l.bad[0]);
        assert_string_equal(err.message, want);
        assert_int_equal(err.status, TSR_E_DATA);
        for (int i = 0; i < l.bad[0]; i++)
            assert_int_equal(atomic_load(&l.times[i]), 1);
        if (turn % 8 == 0) /* one thread */
            assert_int_equal(atomic_load(&l.times[N - 1]), 0);
    }
}

static tsr_status nest(void *context, int item, int thread, tsr_err *e)
{
    (void)item, (void)thread, (void)e;
    tsr_parallel_run(4, 4, count_inner, context);
    return TSR_OK;
}

/* A loop within one of several items has one thread, and within the only item
 * of a loop all. */
TEST(test_nested)
{
    loop l = {.n_inner = 0};
    const int n = tsr_parallel_processors();
    OK(tsr_parallel_try(2, 1, nest, &l, &err));
    assert_int_equal(l.n_inner, 8);
    assert_int_equal(tsr_parallel_processors(), n);
}

static tsr_status be_first(void *context, int item, int thread, tsr_err *e)
{
    (void)context, (void)item;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return thread == 0 ? TSR_OK : tsr_fail(e, TSR_E_DATA, "another thread");
}

TEST(test_limit)
{
    tsr_parallel_limit(1);
    assert_int_equal(tsr_parallel_processors(), 1);
    OK(tsr_parallel_try(N, 8, be_first, NULL, &err));
    tsr_parallel_limit(TSR_MAX_THREAD);
    FAILS(tsr_parallel_try(N, 8, be_first, NULL, &err), TSR_E_DATA, "another");
}

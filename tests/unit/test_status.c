/* Messages carry their context, and each status has its exit code. */
#include "tests/test.h"

TEST(fail_records)
{
    err = (tsr_err){0};
    assert_int_equal(tsr_fail(&err, TSR_E_IO, "cannot open '%s'", "f"),
                     TSR_E_IO);
    assert_int_equal(err.status, TSR_E_IO);
    assert_string_equal(err.message, "cannot open 'f'");
    assert_int_equal(tsr_fail(NULL, TSR_E_DATA, "no one reads this"),
                     TSR_E_DATA);
}

TEST(wrap_puts_context_first)
{
    tsr_fail(&err, TSR_E_DATA, "line %d", 7);
    assert_int_equal(tsr_wrap(&err, TSR_E_CONFIG, "data[%d]", 0), TSR_E_CONFIG);
    assert_int_equal(err.status, TSR_E_CONFIG);
    assert_string_equal(err.message, "data[0]: line 7");
    assert_int_equal(tsr_wrap(&err, TSR_OK, "y"), TSR_OK);
    assert_string_equal(err.message, "data[0]: line 7");
    assert_int_equal(tsr_wrap(NULL, TSR_E_IO, "x"), TSR_E_IO);
}

TEST(long_messages_are_cut)
{
    static char text[3 * TSR_ERR_SIZE];
    memset(text, 'a', sizeof text - 1);
    tsr_fail(&err, TSR_E_IO, "%s", text);
    assert_int_equal(strlen(err.message), TSR_ERR_SIZE - 1);
    tsr_wrap(&err, TSR_E_IO, "context");
    assert_int_equal(strlen(err.message), TSR_ERR_SIZE - 1);
    assert_memory_equal(err.message, "context: aaa", 12);
    tsr_wrap(&err, TSR_E_IO, "%s", text);
    assert_int_equal(strlen(err.message), TSR_ERR_SIZE - 1);
}

TEST(exit_statuses)
{
    assert_ints(
        tsr_exit_status(TSR_OK), 0, tsr_exit_status(TSR_E_NO), 1,
        tsr_exit_status(TSR_E_USAGE), 64, tsr_exit_status(TSR_E_DATA), 65,
        tsr_exit_status(TSR_E_NOINPUT), 66, tsr_exit_status(TSR_E_INTERNAL), 70,
        tsr_exit_status(TSR_E_IO), 74, tsr_exit_status(TSR_E_INTERRUPTED), 75,
        tsr_exit_status(TSR_E_CONFIG), 78, tsr_exit_status((tsr_status)999), 70,
        tsr_exit_status((tsr_status)-1), 70);
    for (int i = TSR_OK; i <= TSR_E_CONFIG; i++)
        assert_true(strlen(tsr_status_text((tsr_status)i)) > 0);
    assert_string_equal(tsr_status_text((tsr_status)999), "unknown status");
}

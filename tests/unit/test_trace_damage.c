/* A trace with one flipped bit, with its seal and without one. */
#include "folder.h"
#include "store/trace.h"
#include "tests/test.h"

#include <sys/stat.h>

enum { DRAWS = 40, SEAL = 64, N_VARIABLE = 3 };

static const tsr_trace_variable variable[N_VARIABLE] = {
    {.group = TSR_TRACE_POSTERIOR, .name = "rg", .unit = "Angstrom", .n = 1},
    {.group = TSR_TRACE_POSTERIOR, .name = "weight", .dim = "state", .n = 2},
    {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
};

static char folder[64], path[128];

static int enter(void **state)
{
    (void)state;
    if (folder_make(folder, "damage") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/trace.h5", folder);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return folder_remove(folder);
}

/* ---- a file, and what is done to it ---- */

/* Returns its length. */
static long write_trace(void)
{
    const tsr_trace_attribute seed = {"seed", "17"};
    struct stat info;
    tsr_trace *trace;

    OK(tsr_trace_create(path, 1, N_VARIABLE, variable, 1, &seed, &trace, &err));
    for (int d = 0; d < DRAWS; d++) {
        const double value[2] = {d, 0.5 * d};
        for (int v = 0; v < N_VARIABLE; v++)
            OK(tsr_trace_append(trace, v, 1, value, &err));
    }
    OK(tsr_trace_close(trace, &err));
    assert_int_equal(stat(path, &info), 0);
    return (long)info.st_size;
}

static void flip(long at, int bit)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file) ^ (1 << bit);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, file), byte);
    assert_int_equal(fclose(file), 0);
}

static long somewhere(long end)
{
    static unsigned random = 99;
    random = random * 1103515245u + 12345u;
    return (long)(random >> 4) % end;
}

/* Reads `rg` where the file opens; a refusal names the file. */
static tsr_status look(int *n_draw, int *is_right)
{
    int n_chain, n;
    double *value;
    tsr_trace_reader *reader;
    tsr_status status = tsr_trace_open(path, &reader, &err);

    if (status == TSR_OK) {
        status = tsr_trace_get(reader, TSR_TRACE_POSTERIOR, "rg", &n_chain,
                               n_draw, &n, &value, &err);
        *is_right = 1;
        for (int d = 0; status == TSR_OK && d < *n_draw; d++)
            *is_right = *is_right && value[d] == d;
        free(value);
        tsr_trace_reader_free(reader);
    }
    if (status != TSR_OK)
        assert_has(err.message, path);
    return status;
}

static void expect_draws(int wanted)
{
    int n_draw = 0, is_right = 0;
    assert_int_equal(look(&n_draw, &is_right), TSR_OK);
    assert_int_equal(n_draw, wanted);
    assert_true(is_right);
}

/* Opens the file as `resume` does. */
static tsr_status reopen(int n_keep)
{
    const long keep[TSR_DRAWN_N_KIND] = {[TSR_DRAWN_KEPT] = n_keep};
    const tsr_draw_records none = {.fd = -1};
    const tsr_status status = tsr_trace_update(path, &none, keep, &err);
    if (status != TSR_OK)
        assert_has(err.message, path);
    return status;
}

/* ---- tests ---- */

/* Whatever the bit belongs to, nothing of the file is used. */
TEST(test_sealed)
{
    int n_draw, is_right;
    const long whole = write_trace();

    for (int i = 0; i < 150; i++) {
        const long at = somewhere(whole - SEAL);
        flip(at, i % 8);
        if (look(&n_draw, &is_right) != TSR_E_DATA ||
            (i % 10 == 0 && reopen(DRAWS) != TSR_E_DATA))
            fail_msg("bit %d of byte %ld makes no difference", i % 8, at);
        flip(at, i % 8);
    }
    expect_draws(DRAWS);
}

/* A damaged seal is none: the file is read like one of tessera 0.1. */
TEST(test_damaged_seal)
{
    const long whole = write_trace();

    for (long at = whole - SEAL; at < whole; at += 5) {
        int n_draw = DRAWS, is_right = 1;
        flip(at, 1);
        (void)look(&n_draw, &is_right);
        assert_int_equal(n_draw, DRAWS);
        assert_true(is_right);
        flip(at, 1);
    }
}

/* As tessera 0.1 left them: HDF5 itself may say what is wrong, or read other
 * numbers, but nobody dies. Whoever goes on with the file seals it. */
TEST(test_without_seal)
{
    int n_draw, is_right;
    const long end = write_trace() - SEAL;

    assert_int_equal(truncate(path, end), 0);
    expect_draws(DRAWS);
    for (int i = 0; i < 40; i++) {
        const long at = somewhere(i % 2 ? end : end / 8);
        flip(at, i % 8);
        (void)look(&n_draw, &is_right);
        flip(at, i % 8);
    }
    assert_int_equal(reopen(DRAWS / 2), TSR_OK);
    expect_draws(DRAWS / 2);
    flip(end / 2, 0);
    assert_int_equal(look(&n_draw, &is_right), TSR_E_DATA);
}

static test_fixture around_each = {enter, leave};

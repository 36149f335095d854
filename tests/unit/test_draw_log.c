/* The log of draws, and a trace that is brought up to date from it: taken up
 * again, read beside its writer, torn, damaged, of another run. */
#include "files/lock.h"
#include "folder.h"
#include "store/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_CHAIN = 3, N_Q = 40, N_MOVE = 3 };
enum { RG, ACCEPTED, LP, CURVE, WARM, OBSERVED, N_VARIABLE };

static const char *const moves[] = {"pivot", "crankshaft", "side \xc3\xa9"};
static const double q[N_Q] = {0.01, 0.02, 0.04};

static const tsr_trace_variable declared[N_VARIABLE] = {
    [RG] = {.group = TSR_TRACE_POSTERIOR,
            .name = "rg",
            .unit = "Angstrom",
            .n = 1},
    [ACCEPTED] = {.group = TSR_TRACE_SAMPLE_STATS,
                  .name = "accepted",
                  .dim = "move",
                  .n = N_MOVE,
                  .coord_label = moves},
    [LP] = {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
    [CURVE] = {.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
               .name = "intensity",
               .dim = "q",
               .n = N_Q,
               .coord = q,
               .coord_unit = "1/Angstrom",
               .single = 1},
    [WARM] = {.group = TSR_TRACE_WARMUP_POSTERIOR, .name = "rg", .n = 1},
    [OBSERVED] = {.group = TSR_TRACE_OBSERVED_DATA,
                  .name = "intensity",
                  .dim = "q",
                  .n = N_Q,
                  .coord = q},
};

static char folder[64], path[128], log_path[128];
static tsr_err err;

static int enter(void **state)
{
    (void)state;
    if (folder_make(folder, "log") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/trace.h5", folder);
    snprintf(log_path, sizeof log_path, "%s/draws.log", folder);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return folder_remove(folder);
}

/* Noise that the compressor cannot foresee; no draw is like another. */
static double value_at(int v, int chain, long draw, int k)
{
    uint64_t x = (uint64_t)v * 1000003u + (uint64_t)chain * 10007u +
                 (uint64_t)draw * 101u + (uint64_t)k;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(float)((double)(x >> 11) * 0x1p-53 * (double)(draw % 7));
}

/* In the order of the groups, not of the declaration. */
static const int kept[] = {RG, ACCEPTED, LP, CURVE}, warm[] = {WARM};

/* Draws from..to as a record of the log, `more` bytes too long. */
static void append(tsr_draw_log *log, tsr_draw_kind kind, long from, long to,
                   size_t more)
{
    const int *v = kind == TSR_DRAWN_KEPT ? kept : warm;
    const int n_v = kind == TSR_DRAWN_KEPT ? 4 : 1;
    char *value =
        calloc((size_t)(to - from) * N_CHAIN * 45 + 1, sizeof(double));
    char *at = value;
    assert_non_null(value);
    for (int i = 0; i < n_v; i++)
        for (int c = 0; c < N_CHAIN; c++)
            for (long d = from; d < to; d++)
                for (int k = 0; k < declared[v[i]].n; k++) {
                    const double one = value_at(v[i], c, d, k);
                    const float single = (float)one;
                    const int is_single = declared[v[i]].single;
                    const size_t n = is_single ? sizeof single : sizeof one;
                    memcpy(at, is_single ? (const void *)&single : &one, n);
                    at += n;
                }
    const tsr_draw_record record = {.kind = kind,
                                    .first = from,
                                    .n = to - from,
                                    .n_chain = 1,
                                    .n_state = 1,
                                    .size = (size_t)(at - value) + more};
    OK(tsr_draw_log_begin(log, &record, &err));
    OK(tsr_draw_log_part(log, value, &err));
    free(value);
}

static tsr_draw_log *begin(void)
{
    tsr_draw_log *log;
    OK(tsr_draw_log_new(folder, &log, &err));
    return log;
}

static void create(void)
{
    tsr_trace *trace;
    OK(tsr_trace_create(path, N_CHAIN, N_VARIABLE, declared, 0, NULL, &trace,
                        &err));
    OK(tsr_trace_put(trace, OBSERVED, q, &err));
    OK(tsr_trace_close(trace, &err));
}

/* As `resume` does, keep < 0 for all draws. */
static tsr_status update(long n_warm, long keep)
{
    const long n[TSR_DRAWN_N_KIND] = {
        [TSR_DRAWN_WARMUP] = n_warm, [TSR_DRAWN_KEPT] = keep};
    tsr_draw_records records;
    OK(tsr_draw_records_open(path, &records, &err));
    const tsr_status status =
        tsr_trace_update(path, &records, keep < 0 ? NULL : n, &err);
    tsr_draw_records_close(&records);
    return status;
}

/* A reader sees so many draws, to the bit, with their numbers. */
static void check(int n_warm, int n_kept)
{
    tsr_trace_reader *reader;
    OK(tsr_trace_open(path, &reader, &err));
    for (int v = 0; v < OBSERVED; v++) {
        int n_chain, n_draw, n;
        double *value;
        OK(tsr_trace_get(reader, declared[v].group, declared[v].name, &n_chain,
                         &n_draw, &n, &value, &err));
        assert_int_equal(n_draw, v == WARM ? n_warm : n_kept);
        const double *at = value;
        for (int c = 0; c < n_chain; c++)
            for (int d = 0; d < n_draw; d++)
                for (int k = 0; k < n; k++, at++)
                    if (*at != value_at(v, c, d, k))
                        fail_msg("%s [%d][%d][%d] is wrong", declared[v].name,
                                 c, d, k);
        free(value);
    }
    tsr_trace_reader_free(reader);
}

static long size_of(const char *file)
{
    struct stat info;
    return stat(file, &info) == 0 ? (long)info.st_size : -1;
}

/* ---- tests ---- */

/* A run that is killed and taken up again many times, always a little before
 * where it was. */
static void test_resumed(void **state)
{
    (void)state;
    enum { WARM_DRAWS = 70, DRAWS = 3000 };
    unsigned random = 99;
    long checkpoint = 0;

    create();
    tsr_draw_log *log = begin();
    append(log, TSR_DRAWN_WARMUP, 0, 50, 0);
    append(log, TSR_DRAWN_WARMUP, 50, 90, 0);
    assert_int_equal(update(WARM_DRAWS, 0), TSR_E_DATA); /* no record's end */
    assert_non_null(strstr(err.message, "50 draws of warm-up"));
    OK(update(0, -1));
    tsr_draw_log_remove(log);
    check(90, 0);
    OK(update(WARM_DRAWS, 0));
    while (checkpoint < DRAWS) {
        random = random * 1103515245u + 12345u;
        const long more = 1 + (long)(random >> 16) % 400;
        const long lost = (long)(random >> 8) % 60;
        const long last = checkpoint + more < DRAWS ? checkpoint + more : DRAWS;
        append(log, TSR_DRAWN_KEPT, checkpoint, last, 0);
        append(log, TSR_DRAWN_KEPT, last, last + lost, 0);
        OK(tsr_draw_log_sync(log, &err));
        if (random >> 30 == 0) /* somebody looks at it */
            check(WARM_DRAWS, (int)(last + lost));
        OK(update(WARM_DRAWS, last));
        tsr_draw_log_remove(log);
        assert_int_equal(size_of(log_path), -1);
        checkpoint = last;
    }
    check(WARM_DRAWS, DRAWS);
    assert_int_equal(update(WARM_DRAWS, DRAWS + 1), TSR_E_DATA);
    assert_non_null(strstr(err.message, "the checkpoint counts 3001"));
    OK(update(WARM_DRAWS, 0));
    check(WARM_DRAWS, 0);
    tsr_draw_log_free(log);
}

/* Beside a run the file is left alone; behind it, it is brought up to date, but
 * not through a link. */
static void test_read(void **state)
{
    (void)state;
    char other[160];
    tsr_lock *lock;

    create();
    const long empty = size_of(path);
    tsr_draw_log *log = begin();
    append(log, TSR_DRAWN_WARMUP, 0, 10, 0);
    append(log, TSR_DRAWN_KEPT, 0, 400, 0);
    OK(tsr_lock_acquire(folder, &lock, &err));
    check(10, 400);
    assert_int_equal(size_of(path), empty);
    append(log, TSR_DRAWN_KEPT, 400, 500, 0);
    check(10, 500);
    tsr_lock_free(lock);
    snprintf(other, sizeof other, "%s/elsewhere.h5", folder);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    check(10, 500);
    assert_int_equal(size_of(other), empty);
    assert_int_equal(rename(other, path), 0);
    check(10, 500);
    assert_true(size_of(path) > empty);
    tsr_draw_log_free(log);
    assert_int_equal(unlink(log_path), 0);
    check(10, 500);
}

/* Whatever byte the log ends at, it holds its complete records. */
static void test_torn(void **state)
{
    (void)state;
    create();
    tsr_draw_log *log = begin();
    append(log, TSR_DRAWN_KEPT, 0, 3, 0);
    const long first = size_of(log_path);
    append(log, TSR_DRAWN_KEPT, 3, 4, 0);
    const long second = size_of(log_path);
    tsr_draw_log_free(log);
    for (long size = second; size >= 0; size -= 37) {
        assert_int_equal(truncate(log_path, size), 0);
        OK(update(0, 0));
        check(0, size >= second ? 4 : size >= first ? 3 : 0);
    }
}

/* A record that a bit of is wrong ends the log. */
static void test_damaged(void **state)
{
    (void)state;
    create();
    tsr_draw_log *log = begin();
    append(log, TSR_DRAWN_KEPT, 0, 3, 0);
    const long first = size_of(log_path);
    append(log, TSR_DRAWN_KEPT, 3, 4, 0);
    append(log, TSR_DRAWN_KEPT, 4, 6, 0);
    const long second = first + (first - 72) / 3 + 72;
    tsr_draw_log_free(log);
    for (long at = first; at < second; at += 41) {
        FILE *file = fopen(log_path, "r+b");
        assert_non_null(file);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            const int byte = fgetc(file) ^ 8;
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            assert_int_equal(fputc(byte, file), byte);
            assert_int_equal(fflush(file), 0);
            OK(update(0, 0));
            check(0, i == 0 ? 3 : 6);
        }
        fclose(file);
    }
}

static void test_refused(void **state)
{
    (void)state;
    create();
    tsr_draw_log *log = begin();
    append(log, TSR_DRAWN_KEPT, 5, 6, 0);
    assert_int_equal(update(0, -1), TSR_E_DATA);
    assert_non_null(strstr(err.message, "has 0 draws"));
    tsr_draw_log_remove(log);
    append(log, TSR_DRAWN_KEPT, 0, 6, 1);
    assert_int_equal(update(0, -1), TSR_E_DATA);
    assert_non_null(strstr(err.message, "belongs to another run"));
    tsr_draw_log_remove(log);
    check(0, 0);

    const tsr_draw_record one = {.n_chain = 1, .n_state = 1};
    assert_int_equal(symlink(path, log_path), 0);
    const long size = size_of(path);
    assert_int_equal(tsr_draw_log_begin(log, &one, &err), TSR_E_IO);
    assert_int_equal(size_of(path), size);
    assert_int_equal(unlink(log_path), 0);
    append(log, TSR_DRAWN_KEPT, 0, 6, 0);
    assert_int_equal(unlink(log_path), 0);
    assert_int_equal(tsr_draw_log_sync(log, &err), TSR_E_IO);
    assert_non_null(strstr(err.message, "No such file"));
    tsr_draw_log_free(log);
    tsr_draw_log_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resumed, enter, leave),
        cmocka_unit_test_setup_teardown(test_read, enter, leave),
        cmocka_unit_test_setup_teardown(test_torn, enter, leave),
        cmocka_unit_test_setup_teardown(test_damaged, enter, leave),
        cmocka_unit_test_setup_teardown(test_refused, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What readers and writers make of a journal that was left behind: by a writer
 * that died, that lives, of another file, damaged; with and without the right
 * to write. */
#include "folder.h"
#include "store/hdf5_store.h"
#include "store/journal.h"
#include "store/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BEFORE = 10, AFTER = 5000, PAGE = 4096, SEAL = 64, NOBODY = 65534 };

static const tsr_trace_variable variable[] = {
    {.group = TSR_TRACE_POSTERIOR, .name = "rg", .n = 1}};

static char folder[64], path[128], journal[144];

static int enter(void **state)
{
    (void)state;
    if (folder_make(folder, "journal") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/trace.h5", folder);
    snprintf(journal, sizeof journal, "%s.journal", path);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return folder_remove(folder);
}

static char *slurp(const char *file, size_t *size)
{
    struct stat info;
    assert_int_equal(stat(file, &info), 0);
    *size = (size_t)info.st_size;
    char *content = malloc(*size + 1);
    assert_non_null(content);
    int fd = open(file, O_RDONLY);
    assert_int_equal(read(fd, content, *size), (ssize_t)*size);
    close(fd);
    return content;
}

static void append(tsr_trace *trace, int from, int to)
{
    tsr_err err;
    for (double d = from; d < to; d++)
        OK(tsr_trace_append(trace, 0, 1, &d, &err));
}

/* A file in the middle of a commit from BEFORE to AFTER draws: it has grown,
 * the journal is complete, nothing old has been touched. Returns the journal,
 * open and locked as its writer has it. */
static int interrupt(void)
{
    static tsr_journal_page page[1000];
    tsr_trace *trace;
    size_t old_size, new_size, n = 0;
    int fd, is_new;
    tsr_err err;

    OK(tsr_trace_create(path, 1, 1, variable, 0, NULL, &trace, &err));
    append(trace, 0, BEFORE);
    OK(tsr_trace_close(trace, &err));
    assert_int_not_equal(access(journal, F_OK), 0); /* removed by the close */
    char *old = slurp(path, &old_size);
    const int n_keep[TSR_TRACE_N_GROUP] = {BEFORE};
    OK(tsr_trace_reopen(path, 1, 1, variable, n_keep, &trace, &err));
    append(trace, BEFORE, AFTER);
    OK(tsr_trace_close(trace, &err));
    char *new = slurp(path, &new_size);
    assert_true(new_size > old_size);

    for (size_t at = 0; at < old_size; at += PAGE, n++) {
        page[n].at = at;
        page[n].n = new_size - at < PAGE ? new_size - at : PAGE;
        page[n].bytes = (unsigned char *)new + at;
    }
    /* The seal at the end comes with the journal. */
    char seal[SEAL];
    memcpy(seal, new + new_size - SEAL, SEAL);
    page[n].at = new_size - SEAL;
    page[n].n = SEAL;
    page[n++].bytes = (unsigned char *)seal;
    assert_int_equal(
        tsr_journal_write(journal, new_size, n, page, &fd, &is_new), 0);
    memcpy(new, old, old_size);
    memset(new + new_size - SEAL, 0, SEAL);
    int out = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(out, new, new_size), (ssize_t)new_size);
    close(out);
    free(old);
    free(new);
    return fd;
}

/* A reader that opens the file, has other things to do for pause_ms, and then
 * reads it. */
static int draws_after(int pause_ms)
{
    const struct timespec pause = {0, pause_ms * 1000000L};
    tsr_trace_reader *reader;
    tsr_err err;
    int n_chain, n_draw, n;
    double *value;
    OK(tsr_trace_open(path, &reader, &err));
    nanosleep(&pause, NULL);
    OK(tsr_trace_get(reader, TSR_TRACE_POSTERIOR, "rg", &n_chain, &n_draw, &n,
                     &value, &err));
    for (int d = 0; d < n_draw; d++)
        assert_true(value[d] == d);
    free(value);
    tsr_trace_reader_free(reader);
    return n_draw;
}

static int draws(void)
{
    return draws_after(0);
}

static long size_of(const char *file)
{
    struct stat info;
    return stat(file, &info) == 0 ? (long)info.st_size : -1;
}

static void test_dead_writer(void **state)
{
    (void)state;
    close(interrupt());
    assert_false(tsr_journal_is_empty(journal));
    assert_int_equal(draws(), AFTER);
    assert_true(tsr_journal_is_empty(journal));
    assert_int_equal(draws(), AFTER);
}

static void expect_recovery(int finished, int pending, int busy, int orphan)
{
    tsr_recovery recovery;
    tsr_err err;
    OK(tsr_recover(folder, &recovery, &err));
    assert_int_equal(recovery.n_finished, finished);
    assert_int_equal(recovery.n_pending, pending);
    assert_int_equal(recovery.n_busy, busy);
    assert_int_equal(recovery.n_orphan, orphan);
    assert_string_equal(recovery.pending, pending > 0 ? "trace.h5" : "");
}

static void test_directory(void **state)
{
    (void)state;
    tsr_recovery recovery;
    tsr_err err;
    expect_recovery(0, 0, 0, 0);
    int fd = interrupt();
    expect_recovery(0, 0, 1, 0);
    close(fd);
    expect_recovery(1, 0, 0, 0);
    assert_true(tsr_journal_is_empty(journal));
    expect_recovery(0, 0, 0, 0);
    assert_int_equal(draws(), AFTER);
    assert_int_equal(unlink(path), 0);
    close(interrupt());
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(tsr_recover(folder, &recovery, &err), TSR_E_DATA);
    assert_int_equal(unlink(path), 0);
    expect_recovery(0, 0, 0, 1);
    assert_int_equal(tsr_recover(path, &recovery, &err), TSR_E_NOINPUT);
}

static void test_reopened(void **state)
{
    (void)state;
    const int n_keep[TSR_TRACE_N_GROUP] = {AFTER};
    tsr_trace *trace;
    tsr_err err;
    close(interrupt());
    OK(tsr_trace_reopen(path, 1, 1, variable, n_keep, &trace, &err));
    OK(tsr_trace_close(trace, &err));
    assert_int_equal(size_of(journal), -1);
    assert_int_equal(draws(), AFTER);
}

/* Half of the commit's old pages, as a writer in the middle of it leaves them,
 * or one that was killed there. */
static void put_half(void)
{
    size_t size;
    char *content = slurp(journal, &size);
    const char *page = content + 48; /* store/journal.h */
    uint64_t n_page, place[2];
    int out = open(path, O_WRONLY);
    memcpy(&n_page, content + 24, sizeof n_page);
    for (uint64_t i = 0; i < n_page / 2; i++) {
        memcpy(place, page, sizeof place);
        assert_int_equal(
            pwrite(out, page + sizeof place, place[1], (off_t)place[0]),
            (ssize_t)place[1]);
        page += sizeof place + place[1];
    }
    close(out);
    free(content);
}

/* The writer lives, but it is stopped just there: a reader takes the commit as
 * it will be, whatever part of it the file has, and does not touch the file; a
 * second writer is refused. */
static void test_live_writer(void **state)
{
    (void)state;
    const int n_keep[TSR_TRACE_N_GROUP] = {0};
    tsr_trace *trace;
    tsr_err err;
    int fd = interrupt();
    const long size = size_of(journal);
    assert_int_equal(draws(), AFTER);
    put_half();
    size_t n[2];
    char *before = slurp(path, &n[0]);
    assert_int_equal(draws(), AFTER);
    char *after = slurp(path, &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(before, after, n[0]);
    free(before);
    free(after);
    assert_int_equal(size_of(journal), size);
    expect_recovery(0, 0, 1, 0);
    assert_int_equal(
        tsr_trace_reopen(path, 1, 1, variable, n_keep, &trace, &err), TSR_E_IO);
    assert_non_null(strstr(err.message, "another process"));
    close(fd);
    assert_int_equal(draws(), AFTER);
}

/* A live writer that has not finished its journal: the file has grown, which
 * readers do not see. */
static void test_growing(void **state)
{
    (void)state;
    int fd = interrupt();
    assert_int_equal(ftruncate(fd, size_of(journal) - 1), 0);
    assert_int_equal(draws(), BEFORE);
    close(fd);
}

/* What a reader has opened stays as it was, however much is written behind its
 * back. */
static void test_reader_stays(void **state)
{
    (void)state;
    tsr_trace *trace;
    tsr_trace_reader *reader;
    tsr_err err;
    int n_chain, n_draw, n;
    double *value;
    OK(tsr_trace_create(path, 1, 1, variable, 0, NULL, &trace, &err));
    append(trace, 0, BEFORE);
    OK(tsr_trace_flush(trace, &err));
    OK(tsr_trace_open(path, &reader, &err));
    for (int i = 1; i <= 20; i++) {
        append(trace, i * AFTER, (i + 1) * AFTER);
        OK(tsr_trace_flush(trace, &err));
    }
    OK(tsr_trace_get(reader, TSR_TRACE_POSTERIOR, "rg", &n_chain, &n_draw, &n,
                     &value, &err));
    assert_int_equal(n_draw, BEFORE);
    for (int d = 0; d < n_draw; d++)
        assert_true(value[d] == d);
    free(value);
    tsr_trace_reader_free(reader);
    OK(tsr_trace_close(trace, &err));
}

/* A run that is finished has no journal, and is read where it lies: when it
 * goes on while it is read, reading fails, with a message. */
static void test_reader_of_finished(void **state)
{
    (void)state;
    const int n_keep[TSR_TRACE_N_GROUP] = {AFTER};
    tsr_trace *trace;
    tsr_trace_reader *reader;
    tsr_err err;
    int n_chain, n_draw, n;
    double *value;
    OK(tsr_trace_create(path, 1, 1, variable, 0, NULL, &trace, &err));
    append(trace, 0, AFTER);
    OK(tsr_trace_close(trace, &err));
    OK(tsr_trace_open(path, &reader, &err));
    OK(tsr_trace_reopen(path, 1, 1, variable, n_keep, &trace, &err));
    append(trace, AFTER, 2 * AFTER);
    OK(tsr_trace_close(trace, &err));
    assert_int_equal(tsr_trace_get(reader, TSR_TRACE_POSTERIOR, "rg", &n_chain,
                                   &n_draw, &n, &value, &err),
                     TSR_E_IO);
    assert_non_null(strstr(err.message, "try again"));
    tsr_trace_reader_free(reader);
    assert_int_equal(draws(), 2 * AFTER);
}

/* A writer that commits as often as it can, and readers beside it: each sees a
 * state between two commits, never an error. */
static void test_beside(void **state)
{
    (void)state;
    enum { SOME = 100 };
    const int n_keep[TSR_TRACE_N_GROUP] = {1};
    tsr_trace *trace;
    tsr_err err;
    int seen = 0, last = 0, status;
    OK(tsr_trace_create(path, 1, 1, variable, 0, NULL, &trace, &err));
    append(trace, 0, 1);
    OK(tsr_trace_close(trace, &err));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (tsr_trace_reopen(path, 1, 1, variable, n_keep, &trace, &err) !=
            TSR_OK)
            _exit(2);
        for (int i = 1; i < 100 * SOME; i += SOME) {
            append(trace, i, i + SOME);
            if (tsr_trace_flush(trace, &err) != TSR_OK)
                _exit(1);
        }
        _exit(tsr_trace_close(trace, &err) == TSR_OK ? 0 : 3);
    }
    /* A reader that came before the writer would be told to come again. */
    const struct timespec moment = {0, 1000000L};
    for (int i = 0; i < 10000 && size_of(journal) < 0; i++)
        nanosleep(&moment, NULL);
    while (waitpid(child, &status, WNOHANG) == 0) {
        const int now = draws_after(10);
        assert_true(now >= last);
        assert_int_equal(now % SOME, 1);
        seen += now > last;
        last = now;
    }
    assert_int_equal(status, 0);
    assert_true(seen > 2);
}

static void flip(const char *file, off_t at)
{
    char byte;
    int fd = open(file, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte = (char)(byte ^ 4);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* What a reader finds torn beside a live writer it looks at again. */
static void test_comes_again(void **state)
{
    (void)state;
    const struct timespec moment = {0, 50000000L};
    const int fd = interrupt();
    int status;
    flip(path, size_of(path) - 100);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        nanosleep(&moment, NULL);
        flip(path, size_of(path) - 100);
        _exit(0);
    }
    assert_int_equal(draws(), AFTER);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(fd);
}

/* Somebody who may read only sees the whole commit, and changes nothing. */
static void test_read_only(void **state)
{
    (void)state;
    const int n_keep[TSR_TRACE_N_GROUP] = {0};
    size_t n[4];
    close(interrupt());
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(journal, 0444), 0);
    char *file = slurp(path, &n[0]), *beside = slurp(journal, &n[1]);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        tsr_trace *trace;
        tsr_err err;
        if (geteuid() == 0 && setuid(NOBODY) != 0)
            _exit(2);
        if (draws() != AFTER || draws() != AFTER)
            _exit(3);
        expect_recovery(0, 1, 0, 0);
        if (tsr_trace_reopen(path, 1, 1, variable, n_keep, &trace, &err) !=
                TSR_E_IO ||
            strstr(err.message, "make it writable") == NULL)
            _exit(4);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char *file_after = slurp(path, &n[2]),
         *beside_after = slurp(journal, &n[3]);
    assert_int_equal(n[0], n[2]);
    assert_int_equal(n[1], n[3]);
    assert_memory_equal(file, file_after, n[0]);
    assert_memory_equal(beside, beside_after, n[1]);
    free(file);
    free(beside);
    free(file_after);
    free(beside_after);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chmod(journal, 0644), 0);
}

static void test_damaged(void **state)
{
    (void)state;
    tsr_trace_reader *reader;
    tsr_err err;
    close(interrupt());
    const long size = size_of(journal);
    const off_t places[] = {0, 16, 24, 32, 40, 48, 56, 64, 5000, size - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        flip(journal, places[i]);
        assert_int_equal(draws(), BEFORE);
        flip(journal, places[i]);
    }
    const off_t order = 8; /* the format */
    flip(journal, order);
    assert_int_equal(tsr_trace_open(path, &reader, &err), TSR_E_DATA);
    assert_non_null(strstr(err.message, "newer tessera"));
    flip(journal, order);
    char *content = slurp(journal, &(size_t){0});
    const long cuts[] = {1, 47, 48, 60, 4000, size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        assert_int_equal(truncate(journal, cuts[i]), 0);
        assert_int_equal(draws(), BEFORE);
        int fd = open(journal, O_WRONLY);
        assert_int_equal(write(fd, content, (size_t)size), size);
        close(fd);
    }
    free(content);
    assert_int_equal(draws(), AFTER);
}

/* A journal whose checksum is right, with a page that its file cannot have:
 * refused, and no memory is asked for on its account. */
static void test_far_page(void **state)
{
    (void)state;
    const size_t places[] = {(size_t)1 << 42, SIZE_MAX - 4};
    const unsigned char bytes[8] = {0};
    tsr_trace_reader *reader;
    tsr_err err;

    close(interrupt());
    const size_t size = (size_t)size_of(path);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const tsr_journal_page page = {places[i], sizeof bytes, bytes};
        int fd, is_new;
        assert_int_equal(
            tsr_journal_write(journal, size, 1, &page, &fd, &is_new), 0);
        close(fd);
        assert_int_equal(tsr_trace_open(path, &reader, &err), TSR_E_DATA);
        assert_non_null(strstr(err.message, "trace.h5.journal"));
        assert_int_equal(size_of(path), (long)size);
    }
}

static void test_foreign(void **state)
{
    (void)state;
    tsr_trace_reader *reader;
    tsr_trace *trace;
    tsr_err err;

    close(interrupt());
    const long size = size_of(path);
    assert_int_equal(truncate(path, size - 1), 0);
    assert_int_equal(tsr_trace_open(path, &reader, &err), TSR_E_DATA);
    assert_non_null(strstr(err.message, "cut off or replaced"));
    assert_int_equal(size_of(path), size - 1);
    /* a new file does not inherit the journal */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tsr_trace_open(path, &reader, &err), TSR_E_NOINPUT);
    OK(tsr_trace_create(path, 1, 1, variable, 0, NULL, &trace, &err));
    append(trace, 0, 3);
    OK(tsr_trace_close(trace, &err));
    assert_int_equal(draws(), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dead_writer, enter, leave),
        cmocka_unit_test_setup_teardown(test_directory, enter, leave),
        cmocka_unit_test_setup_teardown(test_reopened, enter, leave),
        cmocka_unit_test_setup_teardown(test_live_writer, enter, leave),
        cmocka_unit_test_setup_teardown(test_growing, enter, leave),
        cmocka_unit_test_setup_teardown(test_reader_stays, enter, leave),
        cmocka_unit_test_setup_teardown(test_reader_of_finished, enter, leave),
        cmocka_unit_test_setup_teardown(test_beside, enter, leave),
        cmocka_unit_test_setup_teardown(test_comes_again, enter, leave),
        cmocka_unit_test_setup_teardown(test_read_only, enter, leave),
        cmocka_unit_test_setup_teardown(test_damaged, enter, leave),
        cmocka_unit_test_setup_teardown(test_far_page, enter, leave),
        cmocka_unit_test_setup_teardown(test_foreign, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

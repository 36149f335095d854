/* Checkpoints: written, read back, damaged in every way, replaced. */
#include "store/checkpoint.h"

#include "folder.h"
#include "store/checkpoint_file.h"
#include "store/hdf5_object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64], path[128], previous[128], beside[128];

static int enter(void **state)
{
    (void)state;
    if (folder_make(folder, "checkpoint") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/checkpoint.h5", folder);
    snprintf(previous, sizeof previous, "%s/checkpoint.h5.previous", folder);
    snprintf(beside, sizeof beside, "%s/checkpoint.h5.tmp", folder);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return folder_remove(folder);
}

static void write_number(const char *file, int64_t number)
{
    tsr_checkpoint_writer *writer;
    tsr_err err;
    OK(tsr_checkpoint_new("cafe", &writer, &err));
    OK(tsr_checkpoint_put(writer, "run/number", TSR_CHECKPOINT_INT64, 1,
                          &number, &err));
    OK(tsr_checkpoint_commit(writer, file, &err));
    tsr_checkpoint_writer_free(writer);
}

static int64_t number_in(tsr_checkpoint *checkpoint)
{
    int64_t number;
    tsr_err err;
    OK(tsr_checkpoint_copy(checkpoint, "run/number", TSR_CHECKPOINT_INT64, 1,
                           &number, &err));
    return number;
}

static void test_read_back(void **state)
{
    (void)state;
    tsr_err err;
    const double real[] = {0.1,         -0.0,      (double)INFINITY,
                           (double)NAN, 0x1p-1074, -1e308};
    const int64_t whole[] = {INT64_MIN, -1, INT64_MAX};
    const uint64_t count[] = {UINT64_MAX, 0};
    unsigned char byte[256];
    for (int i = 0; i < 256; i++)
        byte[i] = (unsigned char)i;

    tsr_checkpoint_writer *writer;
    OK(tsr_checkpoint_new("0123abcd", &writer, &err));
    OK(tsr_checkpoint_put(writer, "chain/real", TSR_CHECKPOINT_DOUBLE, 6, real,
                          &err));
    OK(tsr_checkpoint_put(writer, "chain/000012/whole", TSR_CHECKPOINT_INT64, 3,
                          whole, &err));
    OK(tsr_checkpoint_put(writer, "count", TSR_CHECKPOINT_UINT64, 2, count,
                          &err));
    OK(tsr_checkpoint_put(writer, "chain/000012/byte", TSR_CHECKPOINT_BYTES,
                          256, byte, &err));
    OK(tsr_checkpoint_put(writer, "none", TSR_CHECKPOINT_DOUBLE, 0, NULL,
                          &err));
    OK(tsr_checkpoint_put_text(writer, "config", "a: \xc3\xa9\n", &err));
    OK(tsr_checkpoint_put_text(writer, "empty", "", &err));
    const char *const bad[] = {"",   "/a",    "a/",    "a//b",   ".",
                               "..", "a/./b", "count", "count/x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tsr_checkpoint_put(writer, bad[i],
                                            TSR_CHECKPOINT_DOUBLE, 1, real,
                                            &err),
                         TSR_E_INTERNAL);
    OK(tsr_checkpoint_commit(writer, path, &err));
    tsr_checkpoint_writer_free(writer);
    assert_int_not_equal(access(beside, F_OK), 0);
    assert_int_not_equal(access(previous, F_OK), 0);

    tsr_checkpoint *checkpoint;
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
    const void *data;
    size_t n;
    OK(tsr_checkpoint_get(checkpoint, "chain/real", TSR_CHECKPOINT_DOUBLE, &n,
                          &data, &err));
    assert_int_equal(n, 6);
    assert_memory_equal(data, real, sizeof real);
    OK(tsr_checkpoint_get(checkpoint, "chain/000012/whole",
                          TSR_CHECKPOINT_INT64, &n, &data, &err));
    assert_int_equal(n, 3);
    assert_memory_equal(data, whole, sizeof whole);
    OK(tsr_checkpoint_get(checkpoint, "count", TSR_CHECKPOINT_UINT64, NULL,
                          &data, &err));
    assert_memory_equal(data, count, sizeof count);
    OK(tsr_checkpoint_get(checkpoint, "chain/000012/byte", TSR_CHECKPOINT_BYTES,
                          &n, &data, &err));
    assert_int_equal(n, 256);
    assert_memory_equal(data, byte, sizeof byte);
    OK(tsr_checkpoint_get(checkpoint, "none", TSR_CHECKPOINT_DOUBLE, &n, &data,
                          &err));
    assert_int_equal(n, 0);
    OK(tsr_checkpoint_get(checkpoint, "config", TSR_CHECKPOINT_TEXT, &n, &data,
                          &err));
    assert_int_equal(n, 6);
    assert_string_equal((const char *)data, "a: \xc3\xa9\n");
    OK(tsr_checkpoint_get(checkpoint, "empty", TSR_CHECKPOINT_TEXT, &n, &data,
                          &err));
    assert_int_equal(n, 0);
    assert_string_equal((const char *)data, "");

    double copy[6];
    OK(tsr_checkpoint_copy(checkpoint, "chain/real", TSR_CHECKPOINT_DOUBLE, 6,
                           copy, &err));
    assert_memory_equal(copy, real, sizeof real);
    assert_int_equal(tsr_checkpoint_copy(checkpoint, "chain/real",
                                         TSR_CHECKPOINT_DOUBLE, 5, copy, &err),
                     TSR_E_DATA);
    assert_non_null(strstr(err.message, "length 6, not 5"));
    assert_int_equal(tsr_checkpoint_get(checkpoint, "chain/real",
                                        TSR_CHECKPOINT_INT64, &n, &data, &err),
                     TSR_E_DATA);
    assert_non_null(strstr(err.message, "not int64"));
    const char *const absent[] = {"chain/x", "chain", "x/y/z", "count/x", ""};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        assert_int_equal(tsr_checkpoint_get(checkpoint, absent[i],
                                            TSR_CHECKPOINT_TEXT, &n, &data,
                                            &err),
                         TSR_E_DATA);
        assert_null(data);
    }
    assert_true(tsr_checkpoint_has(checkpoint, "chain/000012/byte"));
    assert_false(tsr_checkpoint_has(checkpoint, "chain/000013/byte"));
    assert_int_equal(strlen(tsr_checkpoint_created_at(checkpoint)), 25);
    tsr_checkpoint_free(checkpoint);
    tsr_checkpoint_free(NULL);
    tsr_checkpoint_writer_free(NULL);
}

static char *slurp(const char *file, size_t *size)
{
    struct stat info;
    assert_int_equal(stat(file, &info), 0);
    *size = (size_t)info.st_size;
    char *content = malloc(*size);
    assert_non_null(content);
    int fd = open(file, O_RDONLY);
    assert_int_equal(read(fd, content, *size), (ssize_t)*size);
    close(fd);
    return content;
}

static void spill(const char *file, const char *content, size_t size)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, size), (ssize_t)size);
    close(fd);
}

static void expect_damaged(const char *what, size_t at)
{
    tsr_checkpoint *checkpoint;
    tsr_err err;
    if (tsr_checkpoint_open(path, &checkpoint, &err) != TSR_E_DATA)
        fail_msg("%s at byte %zu went unseen", what, at);
    assert_null(checkpoint);
    assert_non_null(strstr(err.message, "checksum"));
}

/* Every byte changed, every length cut, bytes added. */
static void test_damage(void **state)
{
    (void)state;
    size_t size;
    tsr_checkpoint *checkpoint;
    tsr_err err;

    write_number(path, 7);
    char *good = slurp(path, &size);
    for (size_t at = 0; at < size; at++) {
        int fd = open(path, O_WRONLY);
        const char other = (char)(good[at] ^ (1 << at % 8));
        assert_int_equal(pwrite(fd, &other, 1, (off_t)at), 1);
        expect_damaged("a flipped bit", at);
        assert_int_equal(pwrite(fd, &good[at], 1, (off_t)at), 1);
        close(fd);
    }
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
    tsr_checkpoint_free(checkpoint);
    for (size_t n = size; n-- > 0;) {
        assert_int_equal(truncate(path, (off_t)n), 0);
        expect_damaged("a cut", n);
    }
    assert_int_equal(truncate(path, (off_t)size), 0); /* all zeros */
    expect_damaged("zeros", 0);
    spill(path, good, size);
    assert_int_equal(truncate(path, (off_t)size + 1), 0);
    expect_damaged("a byte more", size);
    free(good);

    assert_int_equal(tsr_checkpoint_open(folder, &checkpoint, &err), TSR_E_IO);
    assert_int_equal(tsr_checkpoint_open("/dev/null/x", &checkpoint, &err),
                     TSR_E_NOINPUT);
}

/* A file with a good seal whose attributes are as given. */
static void seal_file(const char *format, int version)
{
    char *content;
    size_t size;
    hid_t file;
    tsr_err err;

    tsr_hdf5_quiet();
    OK(tsr_checkpoint_image_new(&file, &err));
    OK(tsr_hdf5_text(file, "format", format, &err));
    OK(tsr_hdf5_attribute(file, "format_version", H5T_NATIVE_INT, &version,
                          &err));
    OK(tsr_hdf5_text(file, "tessera_version", "99.1.0", &err));
    OK(tsr_checkpoint_image_take(file, &content, &size, &err));
    H5Fclose(file);
    spill(path, content, size);
    free(content);
}

static void test_foreign(void **state)
{
    (void)state;
    tsr_checkpoint *checkpoint;
    tsr_err err;

    seal_file("tessera checkpoint", TSR_CHECKPOINT_FORMAT + 1);
    assert_int_equal(tsr_checkpoint_open(path, &checkpoint, &err), TSR_E_DATA);
    assert_non_null(strstr(err.message, "format 2 of tessera 99.1.0"));
    assert_non_null(strstr(err.message, "resume with the newer"));
    seal_file("another", TSR_CHECKPOINT_FORMAT);
    assert_int_equal(tsr_checkpoint_open(path, &checkpoint, &err), TSR_E_DATA);
    assert_non_null(strstr(err.message, "no tessera checkpoint"));
    seal_file("tessera checkpoint", TSR_CHECKPOINT_FORMAT);
    assert_int_equal(tsr_checkpoint_open(path, &checkpoint, &err), TSR_E_DATA);
    assert_non_null(strstr(err.message, "lacks"));
}

static void expect_newest(int64_t number, const char *message)
{
    char text[TSR_ERR_SIZE];
    tsr_checkpoint *checkpoint;
    tsr_err err;
    OK(tsr_checkpoint_open_newest(folder, &checkpoint, text, &err));
    assert_int_equal(number_in(checkpoint), number);
    if (message[0] == '\0')
        assert_string_equal(text, "");
    else if (strstr(text, message) == NULL)
        fail_msg("'%s' does not say '%s'", text, message);
    tsr_checkpoint_free(checkpoint);
}

static void test_newest(void **state)
{
    (void)state;
    char text[TSR_ERR_SIZE];
    tsr_checkpoint *checkpoint;
    tsr_err err;

    assert_int_equal(
        tsr_checkpoint_open_newest(folder, &checkpoint, text, &err),
        TSR_E_NOINPUT);
    assert_non_null(strstr(err.message, folder));
    spill(beside, "cut off", 7); /* of a first commit */
    assert_int_equal(
        tsr_checkpoint_open_newest(folder, &checkpoint, text, &err),
        TSR_E_NOINPUT);
    write_number(path, 1);
    expect_newest(1, "");
    write_number(path, 2);
    expect_newest(2, "");
    spill(beside, "cut off", 7);
    expect_newest(2, "");
    write_number(path, 3);
    expect_newest(3, "");
    assert_int_not_equal(access(beside, F_OK), 0);

    assert_int_equal(truncate(path, 1000), 0);
    expect_newest(2, "cut short");
    write_number(path, 4); /* the damaged one is now the one before */
    expect_newest(4, "");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(
        tsr_checkpoint_open_newest(folder, &checkpoint, text, &err),
        TSR_E_DATA);
    assert_null(checkpoint);
    write_number(path, 5);
    write_number(path, 6);
    assert_int_equal(unlink(path), 0);
    expect_newest(5, "No such file");
    spill(path, "bad", 3);
    spill(previous, "bad", 3);
    assert_int_equal(
        tsr_checkpoint_open_newest(folder, &checkpoint, text, &err),
        TSR_E_DATA);
    assert_non_null(strstr(err.message, "checkpoint.h5'"));
    assert_non_null(strstr(err.message, "checkpoint.h5.previous'"));
}

static void test_unwritable(void **state)
{
    (void)state;
    tsr_checkpoint_writer *writer;
    tsr_err err;

    OK(tsr_checkpoint_new("", &writer, &err));
    assert_int_equal(tsr_checkpoint_commit(writer, "/proc/checkpoint.h5", &err),
                     TSR_E_IO);
    assert_non_null(strstr(err.message, "/proc/checkpoint.h5"));
    tsr_checkpoint_writer_free(writer);
    write_number(path, 1);
    OK(tsr_checkpoint_new("", &writer, &err));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* somebody removed the run */
    assert_int_equal(tsr_checkpoint_commit(writer, path, &err), TSR_E_IO);
    assert_non_null(strstr(err.message, "No such file"));
    tsr_checkpoint_writer_free(writer);
    assert_int_equal(mkdir(folder, 0777), 0);
}

/* 512 chains with arrays of their own, and large arrays. The limits are loose
 * for a machine that is shared. */
static void test_speed(void **state)
{
    (void)state;
    enum { N_CHAIN = 512, N_LARGE = 4 << 20 };
    struct timespec begin, end;
    tsr_checkpoint_writer *writer;
    tsr_err err;
    double small[30] = {0}, *large = calloc(N_LARGE, sizeof *large);

    assert_non_null(large);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    OK(tsr_checkpoint_new("", &writer, &err));
    for (int c = 0; c < N_CHAIN; c++)
        for (int i = 0; i < 8; i++) {
            char name[64];
            snprintf(name, sizeof name, "chain/%06d/array%d", c, i);
            OK(tsr_checkpoint_put(writer, name, TSR_CHECKPOINT_DOUBLE, 30,
                                  small, &err));
        }
    OK(tsr_checkpoint_put(writer, "xyz", TSR_CHECKPOINT_DOUBLE, N_LARGE, large,
                          &err));
    OK(tsr_checkpoint_commit(writer, path, &err));
    tsr_checkpoint_writer_free(writer);
    free(large);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) +
                           1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    print_message("4096 small arrays and 32 MiB: %.3f s\n", seconds);
    assert_true(seconds < 10.0);
    tsr_checkpoint *checkpoint;
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
    tsr_checkpoint_free(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_damage, enter, leave),
        cmocka_unit_test_setup_teardown(test_foreign, enter, leave),
        cmocka_unit_test_setup_teardown(test_newest, enter, leave),
        cmocka_unit_test_setup_teardown(test_unwritable, enter, leave),
        cmocka_unit_test_setup_teardown(test_speed, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A checkpoint is read back to the bit, any damage is detected, and a newer
 * checkpoint never costs the older one. */
#include "store/checkpoint.h"
#include "store/hdf5_object.h"
#include "store/hdf5_store.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

OWNED(tsr_checkpoint)

static char path[128], previous[128];

static int enter(void **state)
{
    if (io_setup(state) != 0)
        return -1;
    strcpy(path, io_path("checkpoint.h5"));
    strcpy(previous, io_path("checkpoint.h5.previous"));
    return 0;
}

static const tsr_checkpoint_field number_fields[] = {
    {.name = "run/number", .type = TSR_CHECKPOINT_INT64, .count = 1}, {0}};

static void write_number(const char *file, int64_t number)
{
    tsr_checkpoint_writer *writer;
    OK(tsr_checkpoint_new(file, "cafe", &writer, &err));
    OK(tsr_checkpoint_end(
        writer, tsr_checkpoint_put(writer, number_fields, &number, &err),
        &err));
}

static int64_t number_in(const tsr_checkpoint *checkpoint)
{
    int64_t number;
    OK(tsr_checkpoint_get(checkpoint, number_fields, &number, &err));
    return number;
}

/* A member of each type, in place and owned. */
typedef struct {
    int small[2];
    long steps;
    int64_t whole[3];
    double real[6];
    char *config, *empty, *unset;
    double *many;
    size_t n_many;
    int64_t *none;
    size_t n_none;
} thing;

static const tsr_checkpoint_field thing_fields[] = {
    {"small", TSR_CHECKPOINT_INT, offsetof(thing, small), 2, 0},
    {"place/steps", TSR_CHECKPOINT_LONG, offsetof(thing, steps), 1, 0},
    {"chain/000012/whole", TSR_CHECKPOINT_INT64, offsetof(thing, whole), 3, 0},
    {"chain/real", TSR_CHECKPOINT_DOUBLE, offsetof(thing, real), 6, 0},
    {"config", TSR_CHECKPOINT_TEXT, offsetof(thing, config), 0, 0},
    {"empty", TSR_CHECKPOINT_TEXT, offsetof(thing, empty), 0, 0},
    {"unset", TSR_CHECKPOINT_TEXT, offsetof(thing, unset), 0, 0},
    {"many", TSR_CHECKPOINT_DOUBLE, offsetof(thing, many), 0,
     offsetof(thing, n_many)},
    {"none", TSR_CHECKPOINT_INT64, offsetof(thing, none), 0,
     offsetof(thing, n_none)},
    {0}};

/* Writes one; returns it with its own arrays. */
static thing write_thing(void)
{
    static double many[] = {(double)NAN, 0x1p-1074};
    static char config[] = "a: \xc3\xa9\n", empty[] = "";
    const thing one =
        ROW(.small = {-2147483647 - 1, 2147483647}, .steps = -1234567890123L,
            .whole = {INT64_MIN, -1, INT64_MAX},
            .real = {0.1, -0.0, (double)INFINITY, (double)NAN, 0x1p-1074,
                     -1e308},
            .config = config, .empty = empty, .many = many, .n_many = 2);
    tsr_checkpoint_writer *writer;

    OK(tsr_checkpoint_new(path, "0123abcd", &writer, &err));
    OK(tsr_checkpoint_put(writer, thing_fields, &one, &err));
    OK(tsr_checkpoint_end(writer, TSR_OK, &err));
    return one;
}

TEST(test_read_back)
{
    const thing one = write_thing();
    thing other = {0};
    tsr_checkpoint *checkpoint;
    assert_int_not_equal(access(previous, F_OK), 0);
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
    OK(tsr_checkpoint_get(checkpoint, thing_fields, &other, &err));
    assert_memory_equal(other.small, one.small, sizeof one.small);
    assert_memory_equal(other.whole, one.whole, sizeof one.whole);
    assert_memory_equal(other.real, one.real, sizeof one.real);
    assert_string_equal(other.config, one.config);
    assert_string_equal(other.empty, "");
    assert_string_equal(other.unset, "");
    assert_ints(other.steps, one.steps, other.n_many, 2, other.n_none, 0,
                strlen(tsr_checkpoint_created_at(checkpoint)), 25);
    assert_memory_equal(other.many, one.many, 2 * sizeof *one.many);
    free(other.config);
    free(other.empty);
    free(other.unset);
    free(other.many);
    free(other.none);
    tsr_checkpoint_free(checkpoint);
    tsr_checkpoint_free(NULL);
    OK(tsr_checkpoint_end(NULL, TSR_OK, &err));
}

/* What the file lacks, or has in another shape, is named. */
TEST(test_other_shape)
{
    static const struct {
        const char *name;
        tsr_checkpoint_type type;
        size_t count;
    } wrong[] = {{"chain/real", TSR_CHECKPOINT_DOUBLE, 5},
                 {"chain/real", TSR_CHECKPOINT_INT64, 6},
                 {"place/steps", TSR_CHECKPOINT_DOUBLE, 1},
                 {"small", TSR_CHECKPOINT_TEXT, 0},
                 {"config", TSR_CHECKPOINT_DOUBLE, 0},
                 {"chain/x", TSR_CHECKPOINT_LONG, 1},
                 {"chain", TSR_CHECKPOINT_TEXT, 0},
                 {"x/y/z", TSR_CHECKPOINT_TEXT, 0}};
    FREED(tsr_checkpoint) checkpoint;

    (void)write_thing();
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        thing other = {0};
        const tsr_checkpoint_field field[] = {{wrong[i].name, wrong[i].type, 0,
                                               wrong[i].count,
                                               offsetof(thing, n_many)},
                                              {0}};
        FAILS(tsr_checkpoint_get(checkpoint, field, &other, &err), TSR_E_DATA,
              path);
        assert_has(err.message, wrong[i].name);
        assert_null(other.config);
    }
}

static void expect_damaged(const char *what, size_t at)
{
    tsr_checkpoint *checkpoint;
    if (tsr_checkpoint_open(path, &checkpoint, &err) != TSR_E_DATA)
        fail_msg("%s at byte %zu went unseen", what, at);
    assert_null(checkpoint);
    assert_has(err.message, "damaged");
}

/* Every byte changed, every length cut, bytes added. */
TEST(test_damage)
{
    size_t size;
    tsr_checkpoint *checkpoint;
    write_number(path, 7);
    const char *good = io_read(path, &size);
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
    for (size_t n = size - 1; n > 11; n -= 11) {
        assert_int_equal(truncate(path, (off_t)n), 0);
        expect_damaged("a cut", n);
    }
    assert_int_equal(truncate(path, (off_t)size), 0); /* all zeros */
    expect_damaged("zeros", 0);
    io_write("checkpoint.h5", good, size);
    assert_int_equal(truncate(path, (off_t)size + 1), 0);
    expect_damaged("a byte more", size);
    assert_int_equal(tsr_checkpoint_open(io_dir, &checkpoint, &err),
                     TSR_E_DATA);
    assert_int_equal(tsr_checkpoint_open("/dev/null/x", &checkpoint, &err),
                     TSR_E_NOINPUT);
}

/* A file whose attributes are as given. */
static void write_file(const char *format, int version)
{
    tsr_hdf5_output output;
    OK(tsr_hdf5_output_start(path, NULL, &output, &err));
    OK(tsr_hdf5_texts(output.file, &err, "format", format, "tessera_version",
                      "99.1.0", NULL));
    OK(tsr_hdf5_attribute(output.file, "format_version", H5T_NATIVE_INT, 0,
                          &version, &err));
    OK(tsr_hdf5_output_end(&output, TSR_OK, &err));
}

static void expect_refused(const char *why)
{
    tsr_checkpoint *checkpoint;
    FAILS(tsr_checkpoint_open(path, &checkpoint, &err), TSR_E_DATA, why);
}

TEST(test_foreign)
{
    struct stat info;
    write_file("tessera checkpoint", TSR_CHECKPOINT_FORMAT + 1);
    expect_refused("format 10 of tessera 99.1.0");
    expect_refused("resume with the version that");
    write_file("tessera checkpoint", 3);
    expect_refused("format 3 of tessera 99.1.0");
    /* the seal of that version was another */
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 9), 0);
    expect_refused("format 3 of tessera 99.1.0");
    write_file("another", TSR_CHECKPOINT_FORMAT);
    expect_refused("not a tessera checkpoint");
    write_file("tessera checkpoint", TSR_CHECKPOINT_FORMAT);
    expect_refused("lacks");
}

static void expect_newest(int64_t number, const char *message)
{
    char text[TSR_ERR_SIZE];
    FREED(tsr_checkpoint) checkpoint;
    OK(tsr_checkpoint_open_newest(io_dir, &checkpoint, text, &err));
    assert_int_equal(number_in(checkpoint), number);
    if (message[0] == '\0')
        assert_string_equal(text, "");
    else
        assert_has(text, message);
}

TEST(test_newest)
{
    char text[TSR_ERR_SIZE];
    tsr_checkpoint *checkpoint;
    FAILS(tsr_checkpoint_open_newest(io_dir, &checkpoint, text, &err),
          TSR_E_NOINPUT, io_dir);
    for (int number = 1; number <= 3; number++) {
        write_number(path, number);
        expect_newest(number, "");
    }
    assert_int_equal(truncate(path, 1000), 0);
    expect_newest(2, "damaged");
    write_number(path, 4); /* the damaged one is now the one before */
    expect_newest(4, "");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(
        tsr_checkpoint_open_newest(io_dir, &checkpoint, text, &err),
        TSR_E_DATA);
    assert_null(checkpoint);
    write_number(path, 5);
    write_number(path, 6);
    assert_int_equal(unlink(path), 0);
    expect_newest(5, "No such file");
    io_text("checkpoint.h5", "bad");
    io_text("checkpoint.h5.previous", "bad");
    FAILS(tsr_checkpoint_open_newest(io_dir, &checkpoint, text, &err),
          TSR_E_DATA, "checkpoint.h5'");
    assert_has(err.message, "checkpoint.h5.previous'");
}

TEST(test_unwritable)
{
    tsr_checkpoint_writer *writer;
    FAILS(tsr_checkpoint_new("/proc/checkpoint.h5", "", &writer, &err),
          TSR_E_IO, "/proc/checkpoint.h5");
    write_number(path, 1);
    OK(tsr_checkpoint_new(path, "", &writer, &err));
    assert_int_equal(tsr_checkpoint_end(writer, TSR_E_NOMEM, &err),
                     TSR_E_NOMEM);
    expect_newest(1, "");
    OK(tsr_checkpoint_new(path, "", &writer, &err));
    assert_int_equal(io_teardown(NULL), 0); /* somebody removed the run */
    FAILS(tsr_checkpoint_end(writer, TSR_OK, &err), TSR_E_IO, "No such file");
    assert_int_equal(mkdir(io_dir, 0777), 0);
}

/* 512 chains with arrays of their own, and large arrays. The limits are loose
 * for a machine that is shared. */
TEST(test_speed)
{
    enum { N_CHAIN = 512, N_LARGE = 4 << 20 };
    struct timespec begin, end;
    tsr_checkpoint_writer *writer;
    thing large = {.many = calloc(N_LARGE, sizeof(double)), .n_many = N_LARGE};

    assert_non_null(large.many);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    OK(tsr_checkpoint_new(path, "", &writer, &err));
    for (int c = 0; c < N_CHAIN; c++)
        for (int i = 0; i < 8; i++) {
            const char *name = format("chain/%06d/array%d", c, i);
            const tsr_checkpoint_field field[] = {
                {name, TSR_CHECKPOINT_DOUBLE, offsetof(thing, real), 6, 0},
                {0}};
            OK(tsr_checkpoint_put(writer, field, &large, &err));
        }
    OK(tsr_checkpoint_put(writer, thing_fields, &large, &err));
    OK(tsr_checkpoint_end(writer, TSR_OK, &err));
    free(large.many);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) +
                           1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    print_message("4096 small arrays and 32 MiB: %.3f s\n", seconds);
    assert_true(seconds < 10.0);
    FREED(tsr_checkpoint) checkpoint;
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
}

static test_fixture around_each = {enter, io_teardown};

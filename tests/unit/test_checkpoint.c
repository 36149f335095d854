/* A checkpoint is read back to the bit, any damage is detected, and a newer
 * checkpoint never costs the older one. */
#include "store/checkpoint.h"
#include "store/hdf5_object.h"
#include "store/hdf5_store.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

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

static void write_number(const char *file, long number)
{
    tsr_archive archive = {0};
    const tsr_checkpoint_member members[] = {{"run", .archive = &archive}, {0}};
    tsr_archive_long(&archive, &number, 1);
    OK(tsr_checkpoint_write(file, "cafe", members, &err));
    tsr_archive_clear(&archive);
}

static long number_in(const tsr_checkpoint *checkpoint)
{
    long number;
    tsr_archive archive = {0};
    const tsr_checkpoint_member members[] = {{"run", .archive = &archive}, {0}};
    OK(tsr_checkpoint_get(checkpoint, members, &err));
    tsr_archive_rewind(&archive);
    tsr_archive_long(&archive, &number, 1);
    OK(tsr_archive_end(&archive, &err));
    tsr_archive_clear(&archive);
    return number;
}

static const long whole[3] = {LONG_MIN, -1, LONG_MAX};
static const double real[6] = {0.1,         -0.0,      (double)INFINITY,
                               (double)NAN, 0x1p-1074, -1e308};

/* Archives and texts, of which some are empty. */
static void write_all(void)
{
    tsr_archive full = {0}, none = {0};
    char utf8[] = "a: \xc3\xa9\n", empty[] = "";
    char *config = utf8, *text = empty, *unset = NULL;
    const tsr_checkpoint_member members[] = {
        {"chain/state", .archive = &full},   {"config", .text = &config},
        {"chain/state/text", .text = &text}, {"unset", .text = &unset},
        {"none", .archive = &none},          {0}};
    long w[3];
    double r[6];
    memcpy(w, whole, sizeof w);
    memcpy(r, real, sizeof r);
    tsr_archive_long(&full, w, 3);
    tsr_archive_real(&full, r, 6);
    OK(tsr_checkpoint_write(path, "0123abcd", members, &err));
    tsr_archive_clear(&full);
}

TEST(test_read_back)
{
    tsr_archive full = {0}, none = {0};
    char *config = NULL, *text = NULL, *unset = NULL;
    const tsr_checkpoint_member members[] = {
        {"config", .text = &config},         {"unset", .text = &unset},
        {"chain/state/text", .text = &text}, {"none", .archive = &none},
        {"chain/state", .archive = &full},   {0}};
    tsr_checkpoint *checkpoint;
    long w[3];
    double r[6];
    write_all();
    assert_int_not_equal(access(previous, F_OK), 0);
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
    OK(tsr_checkpoint_get(checkpoint, members, &err));
    tsr_archive_rewind(&full);
    tsr_archive_long(&full, w, 3);
    tsr_archive_real(&full, r, 6);
    OK(tsr_archive_end(&full, &err));
    assert_memory_equal(w, whole, sizeof w);
    assert_memory_equal(r, real, sizeof r);
    assert_string_equal(config, "a: \xc3\xa9\n");
    assert_string_equal(text, "");
    assert_string_equal(unset, "");
    assert_ints(none.n_real, 0, none.n_integer, 0,
                strlen(tsr_checkpoint_created_at(checkpoint)), 25);
    free(config);
    free(text);
    free(unset);
    tsr_archive_clear(&full);
    tsr_archive_clear(&none);
    tsr_checkpoint_free(checkpoint);
    tsr_checkpoint_free(NULL);
}

/* What the file lacks, or has in another shape, is named. */
TEST(test_other_shape)
{
    static const char *const texts[] = {"chain/state/real", "chain", "none",
                                        "x/y/z"},
                             *const archives[] = {"config", "chain", "x"};
    FREED(tsr_checkpoint) checkpoint;

    write_all();
    OK(tsr_checkpoint_open(path, &checkpoint, &err));
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char *text = NULL;
        const tsr_checkpoint_member m[] = {{texts[i], .text = &text}, {0}};
        FAILS(tsr_checkpoint_get(checkpoint, m, &err), TSR_E_DATA, path);
        assert_has(err.message, texts[i]);
        assert_null(text);
    }
    for (size_t i = 0; i < COUNT_OF(archives); i++) {
        tsr_archive archive = {0};
        const tsr_checkpoint_member m[] = {{archives[i], .archive = &archive},
                                           {0}};
        FAILS(tsr_checkpoint_get(checkpoint, m, &err), TSR_E_DATA, path);
        assert_has(err.message, archives[i]);
        assert_null(archive.real);
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

static void expect_newest(long number, const char *message)
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
    char *text = NULL;
    const tsr_checkpoint_member twice[] = {
        {"a", .text = &text}, {"a", .text = &text}, {0}};
    FAILS(tsr_checkpoint_write("/proc/checkpoint.h5", "", twice, &err),
          TSR_E_IO, "/proc/checkpoint.h5");
    write_number(path, 1);
    FAILS(tsr_checkpoint_write(path, "", twice, &err), TSR_E_INTERNAL, "'a'");
    expect_newest(1, "");
    assert_int_equal(io_teardown(NULL), 0); /* somebody removed the run */
    FAILS(tsr_checkpoint_write(path, "", twice + 1, &err), TSR_E_IO,
          "No such file");
    assert_int_equal(mkdir(io_dir, 0777), 0);
}

static test_fixture around_each = {enter, io_teardown};

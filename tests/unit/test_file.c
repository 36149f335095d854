/* A file is replaced as a whole or not at all, no link is followed, and nothing
 * is overwritten without --force. */
#include "files/file.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96], beside[128], victim[96];

static void put(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void assert_content(const char *name, const char *text)
{
    char *data;
    size_t size;
    OK(tsr_file_read(name, &data, &size, &err));
    assert_string_equal(data, text);
    free(data);
}

FIXTURE(enter)
{
    strcpy(folder, "/tmp/tessera-file-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/out", folder);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid());
    put(victim, "precious");
    return 0;
}

FIXTURE(leave)
{
    unlink(path);
    unlink(beside);
    unlink(victim);
    return rmdir(folder);
}

/* A link with the name of the file that is written beside is planted: what it
 * leads to stays, and what is written is no link. */
static void assert_link_is_not_followed(void)
{
    struct stat info;
    assert_content(victim, "precious");
    assert_content(path, "new");
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_not_equal(lstat(beside, &info), 0);
}

TEST(test_replace_and_links)
{
    assert_int_equal(symlink(victim, beside), 0);
    OK(tsr_file_replace(path, "new", 3, &err));
    assert_link_is_not_followed();
}

TEST(test_create_and_links)
{
    int is_taken;
    assert_int_equal(symlink(victim, beside), 0);
    OK(tsr_file_create(path, "new", 3, &is_taken, &err));
    assert_link_is_not_followed();
}

TEST(test_writer_and_links)
{
    tsr_file_writer w;
    assert_int_equal(symlink(victim, beside), 0);
    OK(tsr_file_begin(&w, path, &err));
    fputs("new", w.out);
    OK(tsr_file_end(&w, TSR_OK, &err));
    assert_link_is_not_followed();
}

TEST(test_writer_fails)
{
    struct stat info;
    tsr_file_writer w;
    put(path, "old");
    OK(tsr_file_begin(&w, path, &err));
    fputs("new", w.out);
    assert_int_equal(tsr_file_end(&w, TSR_E_DATA, NULL), TSR_E_DATA);
    assert_content(path, "old");
    assert_int_not_equal(stat(beside, &info), 0);
}

TEST(test_writer_writes_devices_in_place)
{
    struct stat info;
    tsr_file_writer w;
    OK(tsr_file_begin(&w, "/dev/null", &err));
    assert_null(w.beside);
    OK(tsr_file_end(&w, TSR_OK, &err));
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_false(S_ISREG(info.st_mode));
}

/* What had the name of a file that is being written is no reason to fail. */
TEST(test_stale_file_beside)
{
    put(beside, "left by a process that was killed");
    OK(tsr_file_replace(path, "new", 3, &err));
    assert_link_is_not_followed();
}

static tsr_status check_target(const tsr_file_target *target, const char *name)
{
    return tsr_file_check_target(target, name, "# tessera ", " test:", &err);
}

TEST(test_target)
{
    const char *const input[] = {NULL, victim};
    tsr_file_target target = {.maker = "test", .n_input = 2, .input = input};
    OK(check_target(&target, path));
    put(path, "");
    OK(check_target(&target, path));
    put(path, "# tessera 1 test: x\n1 2\n");
    OK(check_target(&target, path));
    put(path, "# tessera 1 other: x\n1 2\n");
    FAILS(check_target(&target, path), TSR_E_USAGE, path);
    assert_has(err.message, "--force");
    target.is_forced = 1;
    OK(check_target(&target, path));
    assert_int_equal(check_target(&target, victim), TSR_E_USAGE);
    assert_null(strstr(err.message, "--force"));
}

static test_fixture around_each = {enter, leave};

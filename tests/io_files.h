/* Small files in a temporary directory, for the tests of the readers. */
#ifndef TSR_TESTS_IO_FILES_H
#define TSR_TESTS_IO_FILES_H

#include "tests/check.h"

#include <unistd.h>

#define SHARED "../shared/data/"

/* The directory: one for the program, or for each test of a program with the
 * fixture {io_setup, io_teardown}. */
static char io_dir[64];
static pid_t io_owner; /* 0: not there; children leave the directory alone */

FIXTURE(io_teardown)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", io_dir);
    io_owner = 0;
    return system(command) == 0 ? 0 : -1;
}

FIXTURE(io_setup)
{
    if (io_owner != 0)
        return 0;
    snprintf(io_dir, sizeof io_dir, "/tmp/tsr-io-XXXXXX");
    io_owner = getpid();
    return mkdtemp(io_dir) == NULL ? -1 : 0;
}

__attribute__((constructor)) static void io_begin(void)
{
    io_setup(NULL);
}

__attribute__((destructor)) static void io_end(void)
{
    if (io_owner == getpid())
        io_teardown(NULL);
}

/* The path of a name in the directory: in one of a few buffers, by turns. */
static inline const char *io_path(const char *name)
{
    static char path[8][160];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", io_dir, name);
    return path[turn];
}

static inline const char *io_write_to(const char *path, const void *data,
                                      size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *io_write(const char *name, const void *data,
                                   size_t size)
{
    return io_write_to(io_path(name), data, size);
}

static inline const char *io_text(const char *name, const char *text)
{
    return io_write(name, text, strlen(text));
}

/* A whole file; size may be NULL. */
static inline char *io_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long n = ftell(file);
    assert_true(n >= 0);
    rewind(file);
    char *data = array((size_t)n + 1, 1);
    const size_t n_read = fread(data, 1, (size_t)n, file);
    if (size != NULL)
        *size = n_read;
    fclose(file);
    return data;
}

static inline int io_have_shared(void)
{
    if (access(SHARED "README.md", R_OK) == 0)
        return 1;
    print_message("skipped: no %s beside the repository\n", SHARED);
    return 0;
}

#define NEEDS_SHARED       \
    if (!io_have_shared()) \
    skip()

/* A generator with a fixed seed: the same damage in every run. */
static inline uint32_t io_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* One damaged copy: cut short, some bytes changed, or both. */
static inline size_t io_damage(char *out, const char *data, size_t size,
                               uint32_t *state)
{
    static const char odd[] = "\0\n\r\t ;,'\"#_-+.eE9x\xff\xc3*ANH";
    memcpy(out, data, size);
    uint32_t how = io_random(state) % 4;
    size_t n = how == 0 ? io_random(state) % (size + 1) : size;
    if (how == 0 || n == 0)
        return n;
    for (uint32_t k = 1 + io_random(state) % 8; k > 0; k--) {
        uint32_t pick = io_random(state) % (uint32_t)sizeof odd;
        out[io_random(state) % n] = odd[pick];
    }
    return how == 1 ? io_random(state) % (n + 1) : n;
}

/* Rounds of damage; TSR_FUZZ asks for more. */
static inline int io_rounds(int usual)
{
    const char *more = getenv("TSR_FUZZ");
    return more != NULL ? atoi(more) : usual;
}

#endif

/* A device gets the line of the tuning table that matches it best. */
#include "gpu/engine_device.h"
#include "tests/test.h"

#include <unistd.h>

static const char table[] = "# a comment\n"
                            "\n"
                            "gpu 0 64 2 4 20 geforce RTX\r\n"
                            "gpu 300 16 1 16 8 *\n"
                            "gpu 0 32 1 16 -1 *\n"
                            "cpu 0 128 1 1 40 EPYC";

static tsr_device_info device(tsr_device_type type, const char *name)
{
    tsr_device_info info = {.type = type};
    snprintf(info.name, sizeof info.name, "%s", name);
    return info;
}

static void expect(tsr_device_type type, const char *name, int n_body,
                   int found, int tile, int parts, int split, int difference)
{
    tsr_device_info info = device(type, name);
    tsr_page_tile_options o = {0};
    int got;
    OK(tsr_tuning_find_in_table(table, "t", &info, n_body, &o, &got, &err));
    assert_ints(got, found, o.tile, tile, o.parts, parts, o.split, split,
                o.difference, difference);
}

TEST(first_that_fits)
{
    expect(TSR_DEVICE_GPU, "NVIDIA GeForce RTX 4090", 0, 1, 64, 2, 4, 20);
    expect(TSR_DEVICE_GPU, "NVIDIA H200", 0, 1, 32, 1, 16, -1);
    expect(TSR_DEVICE_GPU, "NVIDIA H200", 300, 1, 16, 1, 16, 8);
    expect(TSR_DEVICE_GPU, "NVIDIA H200", 301, 1, 32, 1, 16, -1);
    expect(TSR_DEVICE_CPU, "AMD EPYC 7763", 200, 1, 128, 1, 1, 40);
    expect(TSR_DEVICE_CPU, "AMD EPY", 0, 0, 0, 0, 0, 0);
    expect(TSR_DEVICE_OTHER, "NVIDIA H200", 0, 0, 0, 0, 0, 0);
}

TEST(what_is_asked_stays)
{
    tsr_device_info info = device(TSR_DEVICE_GPU, "GeForce RTX");
    tsr_page_tile_options o = {.tile = 16, .split = 3};
    int found;
    OK(tsr_tuning_find_in_table(table, "t", &info, 0, &o, &found, &err));
    assert_ints(o.tile, 16, o.split, 3, o.parts, 2);
    assert_int_equal(o.difference, 0); /* it is for another tile */
}

TEST(errors)
{
    static const char *const bad[] = {
        "gpu 0 32 1 16 12\n",   "gpu 0 32 1 16\n",
        "gpu 0 x 1 16 12 *",    "0 32 1 16 12 *",
        "gpu 0 32 1 1 12.5 *",  "GPU 0 32 1 16 12 *",
        "gpu 0 31 1 16 12 *",   "gpu 0 32 3 16 12 *",
        "gpu 0 32 1 2000 12 *", "gpu 0 32 1 16 0 *",
        "gpu 0 32 1 16 17 *",   "gpu 0 99999999999 1 16 12 *",
        "gpu 32 1 16 12 *",     "gpu -1 32 1 16 12 *"};
    tsr_device_info info = device(TSR_DEVICE_GPU, "NVIDIA H200");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        tsr_page_tile_options o = {0};
        int found;
        const char *text = format("# one\n%s", bad[i]);
        FAILS(tsr_tuning_find_in_table(text, "my.dat", &info, 0, &o, &found,
                                       &err),
              TSR_E_DATA, "my.dat, line 2");
    }
}

/* The table that ships; the user's before it; a line and back. */
TEST(files)
{
    tsr_device_info gpu = device(TSR_DEVICE_GPU, "a GPU of 2040");
    tsr_device_info cpu = device(TSR_DEVICE_CPU, "a CPU of 2040");
    tsr_page_tile_options o = {0},
                          mine = ROW(.tile = 64, .parts = 2, .split = 5,
                                     .difference = 7),
                          got = {0};
    char path[] = "/tmp/tessera-tuning-XXXXXX", line[512];
    unsetenv("TESSERA_TUNING");
    OK(tsr_tuning_find(&gpu, 0, &o, &err));
    assert_true(o.tile > 0 && o.split > 0 && o.parts > 0);
    o = (tsr_page_tile_options){0};
    OK(tsr_tuning_find(&cpu, 400, &o, &err));
    assert_true(o.tile > 0);

    int fd = mkstemp(path);
    assert_true(fd >= 0);
    int n = tsr_tuning_line(&gpu, 0, &mine, line, sizeof line);
    assert_int_equal(write(fd, line, (size_t)n), n);
    close(fd);
    setenv("TESSERA_TUNING", path, 1);
    OK(tsr_tuning_find(&gpu, 1000, &got, &err));
    assert_memory_equal(&got, &mine, sizeof got);
    got = (tsr_page_tile_options){0}; /* not in it: from the shipped one */
    OK(tsr_tuning_find(&cpu, 400, &got, &err));
    assert_memory_equal(&got, &o, sizeof got);
    unlink(path);
    FAILS(tsr_tuning_find(&gpu, 1000, &got, &err), TSR_E_NOINPUT, path);
    unsetenv("TESSERA_TUNING");
}

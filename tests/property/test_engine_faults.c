/* A kernel that cannot be built, or computes wrong numbers, gives a status with
 * a message and no engine.
 *
 * The kernels are spoilt copies (TSR_KERNEL_DIR). */
#include "../engine_support.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

enum { N_BODY = 40, N_Q = 12 };

static const char *const files[] = {"page_tile.cl", "page_tile_simd.cl",
                                    "page_tile_simt.cl"};
enum { N_FILE = COUNT_OF(files) };

static char *read_whole(const char *path)
{
    FILE *in = fopen(path, "rb");
    char *text = array(1, 1 << 20);
    assert_non_null(in);
    assert_true(fread(text, 1, (1 << 20) - 1, in) > 0);
    fclose(in);
    return text;
}

/* Copies of the kernels, or of those spoilt before, with `from` replaced by
 * `to` wherever it stands. */
static void spoil(const char *from, const char *to)
{
    const char *source = getenv("TSR_KERNEL_DIR") == NULL ? "kernels" : io_dir;
    int n = 0;
    for (int i = 0; i < N_FILE; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", source, files[i]);
        char *text = read_whole(path), *rest = text, *at;
        snprintf(path, sizeof path, "%s/%s", io_dir, files[i]);
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        for (; (at = strstr(rest, from)) != NULL; rest = at + strlen(from)) {
            fwrite(rest, 1, (size_t)(at - rest), out);
            fputs(to, out);
            n++;
        }
        fputs(rest, out);
        fclose(out);
    }
    assert_true(n > 0); /* else the test tests nothing */
    setenv("TSR_KERNEL_DIR", io_dir, 1);
}

static tsr_status make(const tsr_device *device,
                       const tsr_page_tile_options *options, tsr_engine **out)
{
    int type[N_BODY] = {0};
    double factor[N_Q];
    for (int k = 0; k < N_Q; k++)
        factor[k] = 10.0;
    tsr_engine_spec spec = {.n_body = N_BODY,
                            .n_type = 1,
                            .n_q = N_Q,
                            .dq_inv_ang = 0.01,
                            .n_system = 1,
                            .type = type,
                            .form_factor = factor};
    return tsr_engine_page_tile_new(&spec, device, options, out, &err);
}

TEST(does_not_build)
{
    const tsr_device *device = *state;
    if (device == NULL)
        skip();
    spoil("#ifndef TILE\n", "#error spoilt_on_purpose\n#ifndef TILE\n");
    for (int v = 0; v < N_VARIANT; v += 4) {
        tsr_engine *engine = (tsr_engine *)1;
        if (!has_variant(&variants[v]))
            continue;
        assert_int_equal(make(device, &variants[v].options, &engine),
                         TSR_E_DEVICE);
        assert_null(engine);
        assert_has(err.message, "clBuildProgram");
        assert_has(err.message, "spoilt_on_purpose"); /* the log */
        assert_has(err.message, tsr_device_get_info(device)->name);
    }
}

TEST(wrong_numbers)
{
    const tsr_device *device = *state;
    const char *name;
    if (device == NULL)
        skip();
    name = tsr_device_get_info(device)->name;
    static const struct {
        const char *from, *to;
        int is_own; /* 1: SIMD and SIMT kernels have code of their own */
    } fault[] = {
        {"value *= weight;", "value *= weight * 1.0002f;", 1},
        {"const uint slot = bits", "const uint slot = 0 & bits", 0},
        {"*odd = s1;", "*odd = s1 * 1.001f;", 0},
        /* updates of molecules of more than three blocks */
        {"twice = is_diagonal ? 1 : 2;",
         "twice = (is_diagonal ? 1 : 2) *\n"
         "    (shape.blocks > 3 && !is_fresh ? 1.3f : 1);",
         0},
        /* some pages of updates */
        {"value *= weight;",
         "value *= k >= 20 && k < 32 && !is_fresh\n"
         "    ? 0.3f * weight : weight;",
         0},
        /* differences */
        {"value += before;", "value = 1.5f * value + before;", 1},
        /* what a rigid group carries along */
        {"entry_i >> 17 != 0 &&", "", 0},
    };
    /* compilers take their time, above all over SIMT */
    for (size_t f = 0; f < COUNT_OF(fault); f++) {
        unsetenv("TSR_KERNEL_DIR");
        spoil(fault[f].from, fault[f].to);
        for (int v = 0; v <= 3 * fault[f].is_own; v += 3) {
            tsr_self_test result;
            if (!has_variant(&variants[v]))
                continue;
            FAILS(tsr_engine_self_test(device, &variants[v].options, 0, 1,
                                       &result, &err),
                  TSR_E_DEVICE, name);
            assert_has(err.message, "self-test"); /* it built */
        }
    }
    unsetenv("TSR_KERNEL_DIR");
    OK(tsr_engine_self_test(device, NULL, 0, 0, NULL, &err));
}

TEST(missing)
{
    const tsr_device *device = *state;
    tsr_engine *engine;
    if (device == NULL)
        skip();
    setenv("TSR_KERNEL_DIR", "/dev/null/x", 1);
    FAILS(make(device, NULL, &engine), TSR_E_NOINPUT, "/dev/null/x");
    unsetenv("TSR_KERNEL_DIR");
}

FIXTURE(set_up)
{
    *state = open_device();
    return 0;
}

static test_fixture around_all = {set_up, NULL};

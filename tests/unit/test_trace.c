/* trace.h5 written and read back; what happens when it cannot be written. */
#include "folder.h"
#include "store/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_CHAIN = 3, N_Q = 5, N_STATE = 2 };
enum { RG, WEIGHT, LP, CURVE, OBSERVED, N_POINT, N_VARIABLE };

static const double q[N_Q] = {0.01, 0.02, 0.04, 0.08, 0.16};

static const tsr_trace_variable variable[N_VARIABLE] = {
    [RG] = {.group = TSR_TRACE_POSTERIOR,
            .name = "rg",
            .unit = "Angstrom",
            .doc = "radius of gyration",
            .n = 1},
    [WEIGHT] = {.group = TSR_TRACE_POSTERIOR,
                .name = "weight",
                .dim = "state",
                .n = N_STATE},
    [LP] = {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
    [CURVE] = {.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
               .name = "intensity",
               .dim = "q",
               .n = N_Q,
               .coord = q,
               .coord_unit = "1/Angstrom",
               .single = 1},
    [OBSERVED] = {.group = TSR_TRACE_OBSERVED_DATA,
                  .name = "intensity",
                  .dim = "q",
                  .n = N_Q,
                  .coord = q},
    [N_POINT] = {.group = TSR_TRACE_CONSTANT_DATA, .name = "n_point", .n = 1},
};

static int width(int v)
{
    return variable[v].n;
}

/* The value that belongs at a place; exact in float32. */
static double value_at(int v, int chain, int draw, int k)
{
    return v * 0.25 + chain * 100.0 + (draw % 4096) * 0.5 + k * 0.125;
}

/* Draws from..from+count of a variable, [N_CHAIN][count][n]; caller frees. */
static double *draws(int v, int from, int count)
{
    double *value =
        malloc((size_t)(N_CHAIN * count * width(v)) * sizeof *value);
    double *to = value;

    assert_non_null(value);
    for (int c = 0; c < N_CHAIN; c++)
        for (int d = 0; d < count; d++)
            for (int k = 0; k < width(v); k++)
                *to++ = value_at(v, c, from + d, k);
    return value;
}

static void append(tsr_trace *trace, int v, int from, int count)
{
    tsr_err err;
    double *value = draws(v, from, count);
    if (tsr_trace_append(trace, v, count, value, &err) != TSR_OK)
        fail_msg("%s", err.message);
    free(value);
}

static void append_all(tsr_trace *trace, int from, int count)
{
    for (int v = 0; v < OBSERVED; v++)
        append(trace, v, from, count);
}

static tsr_trace *create(const char *file)
{
    static const tsr_trace_attribute attribute[] = {{"seed", "17"}};
    tsr_trace *trace;
    tsr_err err;
    if (tsr_trace_create(file, N_CHAIN, N_VARIABLE, variable, 1, attribute,
                         &trace, &err) != TSR_OK)
        fail_msg("%s", err.message);
    return trace;
}

static void finish(tsr_trace *trace)
{
    tsr_err err;
    if (tsr_trace_close(trace, &err) != TSR_OK)
        fail_msg("%s", err.message);
}

static tsr_trace_reader *reader_of(const char *file)
{
    tsr_trace_reader *reader;
    tsr_err err;
    if (tsr_trace_open(file, &reader, &err) != TSR_OK)
        fail_msg("%s", err.message);
    return reader;
}

/* The file holds draws 0..count of every variable, and nothing else. */
static void check_draws(const char *file, int count)
{
    tsr_trace_reader *reader = reader_of(file);

    for (int v = 0; v < OBSERVED; v++) {
        int n_chain, n_draw, n;
        double *value;
        tsr_err err;
        if (tsr_trace_get(reader, variable[v].group, variable[v].name, &n_chain,
                          &n_draw, &n, &value, &err) != TSR_OK)
            fail_msg("%s", err.message);
        assert_int_equal(n_chain, N_CHAIN);
        assert_int_equal(n_draw, count);
        assert_int_equal(n, width(v));
        const double *at = value;
        for (int c = 0; c < N_CHAIN; c++)
            for (int d = 0; d < n_draw; d++)
                for (int k = 0; k < n; k++, at++)
                    if (*at != value_at(v, c, d, k))
                        fail_msg("%s [%d][%d][%d] is %g, not %g",
                                 variable[v].name, c, d, k, *at,
                                 value_at(v, c, d, k));
        free(value);
    }
    tsr_trace_reader_free(reader);
}

/* ---- a folder for each test ---- */

static char folder[64];
static char path[128];

static int enter(void **state)
{
    (void)state;
    if (folder_make(folder, "trace") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/trace.h5", folder);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return folder_remove(folder);
}

/* ---- tests ---- */

static void test_read_back(void **state)
{
    (void)state;
    enum { N_LONG = 200000 };
    char *config = malloc(N_LONG + 1);
    tsr_err err;

    assert_non_null(config);
    memset(config, 'x', N_LONG);
    config[N_LONG] = '\0';
    const tsr_trace_attribute attribute[] = {
        {"config", config},
        {"empty", ""},
        {"device", "\xc3\x85ngstr\xc3\xb6m"}};
    tsr_trace *trace;
    assert_int_equal(tsr_trace_create(path, N_CHAIN, N_VARIABLE, variable, 3,
                                      attribute, &trace, &err),
                     TSR_OK);
    append_all(trace, 0, 7);
    const double observed[N_Q] = {5, 4, 3, 2.5, 1.0 / 3.0};
    const double n_point = 51;
    assert_int_equal(tsr_trace_put(trace, OBSERVED, observed, &err), TSR_OK);
    assert_int_equal(tsr_trace_put(trace, N_POINT, &n_point, &err), TSR_OK);
    finish(trace);
    check_draws(path, 7);

    tsr_trace_reader *reader = reader_of(path);
    const char *const *name;
    assert_int_equal(tsr_trace_variables(reader, TSR_TRACE_POSTERIOR, &name),
                     2);
    assert_string_equal(name[0], "rg");
    assert_string_equal(name[1], "weight");
    assert_int_equal(
        tsr_trace_variables(reader, TSR_TRACE_WARMUP_POSTERIOR, &name), 0);

    int n_chain, n_draw, n;
    double *value;
    assert_int_equal(tsr_trace_get(reader, TSR_TRACE_OBSERVED_DATA, "intensity",
                                   &n_chain, &n_draw, &n, &value, &err),
                     TSR_OK);
    assert_int_equal(n_chain, 1);
    assert_int_equal(n_draw, 1);
    assert_int_equal(n, N_Q);
    assert_memory_equal(value, observed, sizeof observed);
    free(value);
    assert_int_equal(tsr_trace_get(reader, TSR_TRACE_CONSTANT_DATA, "n_point",
                                   &n_chain, &n_draw, &n, &value, &err),
                     TSR_OK);
    assert_int_equal(n, 1);
    assert_true(value[0] == 51.0);
    free(value);
    /* A coordinate is no variable. */
    assert_int_equal(tsr_trace_get(reader, TSR_TRACE_OBSERVED_DATA, "q",
                                   &n_chain, &n_draw, &n, &value, &err),
                     TSR_E_DATA);
    assert_null(value);
    assert_non_null(strstr(err.message, "observed_data/q"));

    for (int i = 0; i < 3; i++) {
        char *text = tsr_trace_attribute_text(reader, attribute[i].name);
        assert_non_null(text);
        assert_string_equal(text, attribute[i].text);
        free(text);
    }
    char *text = tsr_trace_attribute_text(reader, "inference_library");
    assert_string_equal(text, "tessera");
    free(text);
    text = tsr_trace_variable_text(reader, TSR_TRACE_POSTERIOR, "rg", "units");
    assert_string_equal(text, "Angstrom");
    free(text);
    assert_null(tsr_trace_variable_text(reader, TSR_TRACE_POSTERIOR, "weight",
                                        "units"));
    assert_null(tsr_trace_attribute_text(reader, "absent"));
    tsr_trace_reader_free(reader);
    free(config);
}

/* Many draws, with variables out of step with each other. */
static void test_pieces(void **state)
{
    (void)state;
    enum { TOTAL = 60000 };
    unsigned random = 12345;
    tsr_trace *trace = create(path);

    for (int done = 0, piece = 0; done < TOTAL; done += piece) {
        random = random * 1103515245u + 12345u;
        piece = 1 + (int)(random >> 16) % 3000;
        if (piece > TOTAL - done)
            piece = TOTAL - done;
        const int first = piece / 2;
        for (int v = 0; v < OBSERVED; v++) {
            if (first > 0)
                append(trace, v, done, first);
            append(trace, v, done + first, piece - first);
        }
    }
    finish(trace);
    check_draws(path, TOTAL);
    unlink(path);

    trace = create(path);
    append_all(trace, 0, TOTAL);
    finish(trace);
    check_draws(path, TOTAL);
}

static void test_no_draws(void **state)
{
    (void)state;
    finish(create(path));
    check_draws(path, 0);
    assert_int_equal(tsr_trace_close(NULL, NULL), TSR_OK);
}

/* A file is there when it is whole, and stays until another is. */
static void test_in_one_go(void **state)
{
    (void)state;
    tsr_trace *trace = create(path);
    append_all(trace, 0, 10);
    assert_int_not_equal(access(path, F_OK), 0);
    finish(trace);
    check_draws(path, 10);
    trace = create(path);
    append_all(trace, 0, 3);
    check_draws(path, 10);
    tsr_trace_discard(trace);
    check_draws(path, 10);
    trace = create(path);
    append_all(trace, 0, 3);
    finish(trace);
    check_draws(path, 3);
}

static void test_uneven(void **state)
{
    (void)state;
    const double one = 1.0;
    tsr_err err;
    tsr_trace *trace = create(path);

    append_all(trace, 0, 4);
    append(trace, RG, 4, 2);
    assert_int_equal(tsr_trace_append(trace, OBSERVED, 1, &one, &err),
                     TSR_E_INTERNAL);
    assert_int_equal(tsr_trace_put(trace, RG, &one, &err), TSR_E_INTERNAL);
    assert_int_equal(tsr_trace_put(trace, N_VARIABLE, &one, &err),
                     TSR_E_INTERNAL);
    assert_int_equal(tsr_trace_close(trace, &err), TSR_E_INTERNAL);
    assert_non_null(strstr(err.message, "'rg' has 6 draws"));
    assert_non_null(strstr(err.message, "posterior"));
    assert_int_not_equal(access(path, F_OK), 0);
}

static void expect_refused(const tsr_trace_variable *list, int n,
                           const char *why)
{
    tsr_trace *trace;
    tsr_err err;

    assert_int_equal(tsr_trace_create(path, 2, n, list, 0, NULL, &trace, &err),
                     TSR_E_INTERNAL);
    assert_null(trace);
    if (strstr(err.message, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, why);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_declarations(void **state)
{
    (void)state;
    const tsr_trace_group g = TSR_TRACE_POSTERIOR;

    expect_refused((tsr_trace_variable[]){{.group = g, .name = "a/b", .n = 1}},
                   1, "no netCDF name");
    expect_refused((tsr_trace_variable[]){{.group = g, .name = "a", .n = 2}}, 1,
                   "the variable has no dimension");
    expect_refused((tsr_trace_variable[]){{.group = g, .name = "a", .n = 1},
                                          {.group = g, .name = "a", .n = 1}},
                   2, "taken");
    expect_refused(
        (tsr_trace_variable[]){{.group = g, .name = "a", .dim = "q", .n = 3},
                               {.group = g, .name = "b", .dim = "q", .n = 4}},
        2, "another length");
    expect_refused(
        (tsr_trace_variable[]){{.group = g, .name = "q", .dim = "q", .n = 3}},
        1, "taken");
}

static void test_no_trace(void **state)
{
    (void)state;
    tsr_err err;

    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
    /* HDF5's own account of it stays off stderr. */
    tsr_trace_reader *reader;
    int messages[2], terminal = dup(STDERR_FILENO);
    assert_int_equal(pipe(messages), 0);
    dup2(messages[1], STDERR_FILENO);
    close(messages[1]);
    tsr_status opened = tsr_trace_open(path, &reader, &err);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    char printed[8];
    assert_int_equal(read(messages[0], printed, sizeof printed), 0);
    close(messages[0]);
    assert_int_equal(opened, TSR_E_DATA);
    assert_null(reader);
    assert_non_null(strstr(err.message, "HDF5"));
    assert_int_equal(tsr_trace_open("/dev/null/trace.h5", &reader, &err),
                     TSR_E_NOINPUT);
}

static void test_unwritable(void **state)
{
    (void)state;
    tsr_trace *trace;
    tsr_err err;
    /* root may write in any directory but those of /proc */
    const char *where[] = {"/dev/null/trace.h5", "/proc/trace.h5"};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(tsr_trace_create(where[i], N_CHAIN, N_VARIABLE,
                                          variable, 0, NULL, &trace, &err),
                         TSR_E_IO);
        assert_null(trace);
        assert_non_null(strstr(err.message, where[i]));
        if (strstr(err.message, "No such file") == NULL &&
            strstr(err.message, "Not a directory") == NULL &&
            strstr(err.message, "Permission denied") == NULL)
            fail_msg("no reason in '%s'", err.message);
    }
}

/* In a process of its own: its files may not grow past `limit` bytes, as on a
 * full disk. Exits 0 when every failure came as a status, and prints nothing:
 * whatever arrives on stderr is HDF5's. */
static int run_out_of_disk(rlim_t limit)
{
    const struct rlimit size = {limit, limit};
    tsr_trace *trace;
    tsr_err err;

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &size) != 0)
        return 2;
    tsr_status status = tsr_trace_create(path, N_CHAIN, N_VARIABLE, variable, 0,
                                         NULL, &trace, &err);
    if (status != TSR_OK)
        return status == TSR_E_IO && trace == NULL &&
                       strstr(err.message, path) != NULL &&
                       strstr(err.message, "File too large") != NULL &&
                       access(path, F_OK) != 0
                   ? 0
                   : 3;
    for (int i = 0; i < 200 && status == TSR_OK; i++)
        for (int v = 0; v < OBSERVED && status == TSR_OK; v++) {
            double *value = draws(v, i * 500, 500);
            status = tsr_trace_append(trace, v, 500, value, &err);
            free(value);
        }
    if (status == TSR_OK)
        status = tsr_trace_close(trace, &err);
    else
        tsr_trace_discard(trace);
    if (status != TSR_E_IO || strstr(err.message, path) == NULL ||
        strstr(err.message, "File too large") == NULL)
        return 4;
    return access(path, F_OK) != 0 ? 0 : 5;
}

static void test_disk_full(void **state)
{
    (void)state;
    const rlim_t limits[] = {100, 3000, 20000, 60000, 800000, 3000000, 9000000};

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        int messages[2];
        assert_int_equal(pipe(messages), 0);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL); /* cmocka's would go on with the tests */
            dup2(messages[1], STDERR_FILENO);
            exit(run_out_of_disk(limits[i]));
        }
        close(messages[1]);
        char text[500];
        ssize_t n = read(messages[0], text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        close(messages[0]);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text[0] != '\0')
            fail_msg("limit %ld bytes: wait status %#x, stderr '%s'",
                     (long)limits[i], (unsigned)status, text);
    }
}

/* 10,000 draws of 20 scalars in 8 chains, one at a time. A second is the aim
 * (some 0.1 s here); the limit is loose because the machine may be shared. */
static void test_speed(void **state)
{
    (void)state;
    enum { N = 20, CHAINS = 8, DRAWS = 10000 };
    tsr_trace_variable scalar[N];
    char name[N][8];
    struct timespec begin, end;
    tsr_trace *trace;
    tsr_err err;
    for (int v = 0; v < N; v++) {
        snprintf(name[v], sizeof name[v], "v%d", v);
        scalar[v] = (tsr_trace_variable){
            .group = TSR_TRACE_POSTERIOR, .name = name[v], .n = 1};
    }
    assert_int_equal(
        tsr_trace_create(path, CHAINS, N, scalar, 0, NULL, &trace, &err),
        TSR_OK);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int d = 0; d < DRAWS; d++) {
        const double value[CHAINS] = {d, 1, 2, 3, 4, 5, 6, 7};
        for (int v = 0; v < N; v++)
            if (tsr_trace_append(trace, v, 1, value, &err) != TSR_OK)
                fail_msg("%s", err.message);
    }
    finish(trace);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) +
                           1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    print_message("%d appends of %d scalars x %d chains: %.3f s\n", DRAWS, N,
                  CHAINS, seconds);
    assert_true(seconds < 10.0);

    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    const double payload = 8.0 * N * CHAINS * DRAWS;
    print_message("file: %.2f of the payload\n",
                  (double)info.st_size / payload);
    assert_true((double)info.st_size < 1.2 * payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_pieces, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_draws, enter, leave),
        cmocka_unit_test_setup_teardown(test_in_one_go, enter, leave),
        cmocka_unit_test_setup_teardown(test_uneven, enter, leave),
        cmocka_unit_test_setup_teardown(test_declarations, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_trace, enter, leave),
        cmocka_unit_test_setup_teardown(test_unwritable, enter, leave),
        cmocka_unit_test_setup_teardown(test_disk_full, enter, leave),
        cmocka_unit_test_setup_teardown(test_speed, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

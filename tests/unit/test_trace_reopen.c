/* An existing trace taken up again: cut back, appended to, refused. */
#include "folder.h"
#include "store/hdf5_store.h"
#include "store/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_CHAIN = 3, N_Q = 40 };
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
                  .n = 3,
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

static char folder[64], path[128], other[128];

static int enter(void **state)
{
    (void)state;
    if (folder_make(folder, "reopen") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/trace.h5", folder);
    snprintf(other, sizeof other, "%s/other.h5", folder);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return folder_remove(folder);
}

/* Noise that the compressor cannot foresee; no draw is like another. */
static double value_at(int v, int chain, int draw, int k)
{
    uint64_t x = (uint64_t)v * 1000003u + (uint64_t)chain * 10007u +
                 (uint64_t)draw * 101u + (uint64_t)k;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(x >> 11) * 0x1p-53 * (draw % 7);
}

static void append(tsr_trace *trace, tsr_trace_group g, int from, int count)
{
    tsr_err err;
    for (int v = 0; v < OBSERVED; v++) {
        if (declared[v].group != g)
            continue;
        const int n = declared[v].n;
        double *value = malloc((size_t)(N_CHAIN * count * n) * sizeof *value);
        assert_non_null(value);
        double *to = value;
        for (int c = 0; c < N_CHAIN; c++)
            for (int d = 0; d < count; d++)
                for (int k = 0; k < n; k++)
                    *to++ = value_at(v, c, from + d, k);
        OK(tsr_trace_append(trace, v, count, value, &err));
        free(value);
    }
}

static tsr_trace *create(const char *file)
{
    tsr_trace *trace;
    tsr_err err;
    OK(tsr_trace_create(file, N_CHAIN, N_VARIABLE, declared, 0, NULL, &trace,
                        &err));
    OK(tsr_trace_put(trace, OBSERVED, q, &err));
    return trace;
}

static void append_draws(tsr_trace *trace, int from, int to)
{
    if (to > from) {
        append(trace, TSR_TRACE_POSTERIOR, from, to - from);
        append(trace, TSR_TRACE_SAMPLE_STATS, from, to - from);
        append(trace, TSR_TRACE_POSTERIOR_PREDICTIVE, from, to - from);
    }
}

/* Every variable of both files, bit by bit. */
static void check_same(const char *a, const char *b)
{
    const char *file[2] = {a, b};
    tsr_trace_reader *reader[2];
    tsr_err err;

    for (int i = 0; i < 2; i++)
        OK(tsr_trace_open(file[i], &reader[i], &err));
    for (int v = 0; v < N_VARIABLE; v++) {
        int n_chain[2], n_draw[2], n[2];
        double *value[2];
        for (int i = 0; i < 2; i++)
            OK(tsr_trace_get(reader[i], declared[v].group, declared[v].name,
                             &n_chain[i], &n_draw[i], &n[i], &value[i], &err));
        assert_int_equal(n_chain[0], n_chain[1]);
        assert_int_equal(n_draw[0], n_draw[1]);
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(value[0], value[1],
                            sizeof(double) * (size_t)n_chain[0] *
                                (size_t)n_draw[0] * (size_t)n[0]);
        free(value[0]);
        free(value[1]);
    }
    for (int i = 0; i < 2; i++)
        tsr_trace_reader_free(reader[i]);
}

static void keep(int n_keep[TSR_TRACE_N_GROUP], int warm, int draws)
{
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        n_keep[g] = draws;
    n_keep[TSR_TRACE_WARMUP_POSTERIOR] = warm;
}

static tsr_trace *reopen(int warm, int draws)
{
    int n_keep[TSR_TRACE_N_GROUP];
    tsr_trace *trace;
    tsr_err err;
    keep(n_keep, warm, draws);
    OK(tsr_trace_reopen(path, N_CHAIN, N_VARIABLE, declared, n_keep, &trace,
                        &err));
    return trace;
}

/* A run that is killed and taken up again many times, always a little before
 * where it was, against one that never stopped. */
static void test_same_bits(void **state)
{
    (void)state;
    enum { WARM_DRAWS = 700, DRAWS = 5000 };
    unsigned random = 99;
    tsr_err err;

    tsr_trace *whole = create(other);
    append(whole, TSR_TRACE_WARMUP_POSTERIOR, 0, WARM_DRAWS);
    append_draws(whole, 0, DRAWS);
    OK(tsr_trace_close(whole, &err));

    tsr_trace *trace = create(path);
    append(trace, TSR_TRACE_WARMUP_POSTERIOR, 0, 900);
    OK(tsr_trace_close(trace, &err));
    char created_at[64];
    tsr_trace_reader *reader;
    OK(tsr_trace_open(path, &reader, &err));
    char *text = tsr_trace_attribute_text(reader, "created_at");
    snprintf(created_at, sizeof created_at, "%s", text);
    free(text);
    assert_int_equal(tsr_trace_n_draw(reader, TSR_TRACE_WARMUP_POSTERIOR), 900);
    assert_int_equal(tsr_trace_n_draw(reader, TSR_TRACE_POSTERIOR), 0);
    assert_int_equal(tsr_trace_n_draw(reader, TSR_TRACE_OBSERVED_DATA), 0);
    assert_int_equal(tsr_trace_n_draw(reader, TSR_TRACE_LOG_LIKELIHOOD), 0);
    tsr_trace_reader_free(reader);

    int checkpoint = 0, done = 0;
    while (done < DRAWS) {
        fflush(NULL);
        random = random * 1103515245u + 12345u;
        const int more = (int)(random >> 16) % 400;
        const int lost = (int)(random >> 8) % 60;
        const int last = checkpoint + more < DRAWS ? checkpoint + more : DRAWS;
        pid_t child = fork();
        if (child == 0) {
            trace = reopen(WARM_DRAWS, checkpoint);
            append_draws(trace, checkpoint, (checkpoint + last) / 2);
            if (tsr_trace_flush(trace, NULL) != TSR_OK)
                _exit(1);
            append_draws(trace, (checkpoint + last) / 2, last);
            if (tsr_trace_flush(trace, NULL) != TSR_OK)
                _exit(2);
            raise(SIGKILL);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        done = last;
        checkpoint =
            last < DRAWS && last - lost > checkpoint ? last - lost : last;
    }
    OK(tsr_trace_close(reopen(WARM_DRAWS, DRAWS), &err));
    check_same(path, other);
    OK(tsr_trace_open(path, &reader, &err));
    text = tsr_trace_attribute_text(reader, "created_at");
    assert_string_equal(text, created_at);
    free(text);
    tsr_trace_reader_free(reader);

    /* back to nothing, and all over again */
    trace = reopen(0, 0);
    append(trace, TSR_TRACE_WARMUP_POSTERIOR, 0, WARM_DRAWS);
    append_draws(trace, 0, DRAWS);
    OK(tsr_trace_close(trace, &err));
    check_same(path, other);
}

static void refuse(int n_variable, const tsr_trace_variable *list, int n_chain,
                   int draws, const char *why)
{
    int n_keep[TSR_TRACE_N_GROUP];
    tsr_trace *trace;
    tsr_err err;

    keep(n_keep, 0, draws);
    assert_int_equal(
        tsr_trace_reopen(path, n_chain, n_variable, list, n_keep, &trace, &err),
        TSR_E_DATA);
    assert_null(trace);
    assert_non_null(strstr(err.message, path));
    if (strstr(err.message, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, why);
}

static void test_foreign(void **state)
{
    (void)state;
    tsr_err err;
    tsr_trace *trace = create(path);
    append_draws(trace, 0, 10);
    append(trace, TSR_TRACE_WARMUP_POSTERIOR, 0, 4);
    OK(tsr_trace_close(trace, &err));
    trace = create(other);
    append_draws(trace, 0, 10);
    append(trace, TSR_TRACE_WARMUP_POSTERIOR, 0, 4);
    OK(tsr_trace_close(trace, &err));

    tsr_trace_variable list[N_VARIABLE + 1];
#define WITH(change, why)                          \
    do {                                           \
        memcpy(list, declared, sizeof declared);   \
        change;                                    \
        refuse(N_VARIABLE, list, N_CHAIN, 0, why); \
    } while (0)
    const char *const renamed[] = {"pivot", "crankshaft", "side"};
    double shifted[N_Q];
    memcpy(shifted, q, sizeof shifted);
    shifted[N_Q - 1] = 0.25;
    WITH(list[RG].name = "Rg", "lacks 'Rg'");
    WITH(list[RG].unit = "nm", "not in unit 'nm'");
    WITH(list[LP].unit = "nat", "not in unit 'nat'");
    WITH(list[RG].unit = NULL, "not in unit 'none'");
    WITH(list[CURVE].single = 0, "float64");
    WITH(list[CURVE].n = 39, "40 numbers along 'q', not 39");
    WITH(list[CURVE].dim = "q_1", "does not run along 'q_1'");
    WITH(list[CURVE].coord = shifted, "coordinates of dimension 'q'");
    WITH(list[CURVE].coord = NULL, "coordinates of dimension 'q'");
    WITH(list[CURVE].coord_unit = "1/nm", "coordinates of dimension 'q'");
    WITH(list[ACCEPTED].coord_label = renamed, "dimension 'move'");
    WITH(list[ACCEPTED].coord_label = NULL, "dimension 'move'");
    WITH((list[LP].dim = "move", list[LP].n = 3), "2 dimensions, not 3");
    WITH(list[LP].group = TSR_TRACE_LOG_LIKELIHOOD, "'lp', which this run");
    memcpy(list, declared, sizeof declared);
    refuse(OBSERVED, list, N_CHAIN, 0, "group observed_data: not written");
    refuse(N_VARIABLE, list, N_CHAIN + 1, 0, "3 chains, not 4");
    refuse(N_VARIABLE, list, N_CHAIN, 11, "has 10 draws");
    list[N_VARIABLE] = (tsr_trace_variable){
        .group = TSR_TRACE_LOG_LIKELIHOOD, .name = "new", .n = 1};
    refuse(N_VARIABLE + 1, list, N_CHAIN, 0, "log_likelihood: is missing");
    check_same(path, other); /* refusing changed nothing */

    int n_keep[TSR_TRACE_N_GROUP] = {0};
    assert_int_equal(tsr_trace_reopen("/dev/null/x", N_CHAIN, N_VARIABLE,
                                      declared, n_keep, &trace, &err),
                     TSR_E_NOINPUT);
    assert_int_equal(truncate(path, 3000), 0);
    refuse(N_VARIABLE, declared, N_CHAIN, 0, "HDF5");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no HDF5 at all", file);
    fclose(file);
    refuse(N_VARIABLE, declared, N_CHAIN, 0, "HDF5");
}

static void test_labels(void **state)
{
    (void)state;
    tsr_trace_variable list[N_VARIABLE];
    tsr_trace *trace;
    tsr_err err;

    memcpy(list, declared, sizeof declared);
    list[ACCEPTED].coord = q;
    assert_int_equal(tsr_trace_create(path, N_CHAIN, N_VARIABLE, list, 0, NULL,
                                      &trace, &err),
                     TSR_E_INTERNAL);
    assert_non_null(strstr(err.message, "not both"));
}

/* The driver of a store outlives its file, since HDF5 looks at it when it has
 * given back the file's share in it; and goes with the store. */
static void test_driver(void **state)
{
    tsr_hdf5_store *store;
    tsr_err err;
    (void)state;
    assert_int_equal(tsr_hdf5_store_create(path, &store, &err), TSR_OK);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(tsr_hdf5_store_attach(store, access) >= 0);
    const hid_t driver = H5Pget_driver(access);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(file >= 0);
    H5Pclose(access);
    H5Fclose(file);
    assert_true(H5Iis_valid(driver) > 0);
    tsr_hdf5_store_free(store);
    assert_false(H5Iis_valid(driver) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bits, enter, leave),
        cmocka_unit_test_setup_teardown(test_foreign, enter, leave),
        cmocka_unit_test_setup_teardown(test_labels, enter, leave),
        cmocka_unit_test_setup_teardown(test_driver, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Trajectories written, read back, taken up again, by the hundred. */
#include "folder.h"
#include "store/trajectory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_ATOM = 40, N_BODY = 13, N_OBSERVABLE = 2, STRIDE = 10 };

static const tsr_trajectory_observable observables[N_OBSERVABLE] = {
    {"rg", "Angstrom"}, {"lp", NULL}};
static const tsr_trajectory_spec spec = {.n_atom = N_ATOM,
                                         .n_body = N_BODY,
                                         .n_observable = N_OBSERVABLE,
                                         .observable = observables,
                                         .chain = 3,
                                         .state = 1,
                                         .stride = STRIDE};

static char folder[64], path[128], other[128];

static int enter(void **state)
{
    (void)state;
    if (folder_make(folder, "trajectory") != 0)
        return -1;
    snprintf(path, sizeof path, "%s/trajectory-000.h5", folder);
    snprintf(other, sizeof other, "%s/trajectory-001.h5", folder);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return folder_remove(folder);
}

static double noise(int frame, int i)
{
    uint64_t x = (uint64_t)frame * 1000003u + (uint64_t)i * 10007u + 1;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(x >> 11) * 0x1p-53 - 0.5;
}

/* A chain of steps of 3.8 Angstrom that moves a little from frame to frame. */
static void conformation(int frame, int n, double *xyz)
{
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            xyz[3 * i + d] = (i > 0 ? xyz[3 * i - 3 + d] : 0) +
                             3.8 * noise(0, 3 * i + d) +
                             0.1 * noise(frame, 3 * i + d);
}

static void append(tsr_trajectory *t, const tsr_trajectory_spec *s, int from,
                   int to)
{
    double *atom = malloc(3 * sizeof(double) * (size_t)(s->n_atom + 1));
    double *body = malloc(3 * sizeof(double) * (size_t)(s->n_body + 1));
    tsr_err err;

    assert_non_null(atom);
    assert_non_null(body);
    for (int f = from; f < to; f++) {
        const double observable[N_OBSERVABLE] = {20 + noise(f, 0), -f / 3.0};
        conformation(f, s->n_atom, atom);
        conformation(f + 1, s->n_body, body);
        OK(tsr_trajectory_append(t, (int64_t)f * STRIDE, atom, body, observable,
                                 &err));
    }
    free(atom);
    free(body);
}

static tsr_trajectory *create(const char *file)
{
    tsr_trajectory *t;
    tsr_err err;
    OK(tsr_trajectory_create(file, &spec, &t, &err));
    return t;
}

static tsr_trajectory *reopen(int n_keep)
{
    tsr_trajectory *t;
    tsr_err err;
    OK(tsr_trajectory_reopen(path, &spec, n_keep, &t, &err));
    return t;
}

/* The times, which other programs read and we do not, are the steps. */
static void check_times(const char *file, int n)
{
    static double time[2000];
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(f, "particles/atoms/position/time", H5P_DEFAULT);
    hid_t space = H5Dget_space(set);
    assert_int_equal(H5Sget_simple_extent_npoints(space), n);
    assert_true(n <= 2000);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                        time) >= 0);
    for (int k = 0; k < n; k++)
        assert_true(time[k] == k * STRIDE);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(f);
}

/* The file holds the first n frames, to the bit. */
static void check_frames(const char *file, int n)
{
    static float atom[2][N_ATOM][3], body[2][N_BODY][3];
    static double want[3 * N_ATOM];
    tsr_trajectory_reader *reader;
    int64_t step[2];
    double value[2];
    tsr_err err;

    OK(tsr_trajectory_open(file, &reader, &err));
    assert_int_equal(tsr_trajectory_look(reader)->n_frame, n);
    assert_int_equal(tsr_trajectory_look(reader)->n_atom, N_ATOM);
    assert_int_equal(tsr_trajectory_look(reader)->n_body, N_BODY);
    assert_int_equal(tsr_trajectory_look(reader)->chain, 3);
    assert_int_equal(tsr_trajectory_look(reader)->state, 1);
    assert_int_equal(tsr_trajectory_look(reader)->stride, STRIDE);
    for (int f = 0; f < n; f += 2) {
        const int count = n - f < 2 ? 1 : 2;
        OK(tsr_trajectory_read(reader, f, count, step, &atom[0][0][0],
                               &body[0][0][0], &err));
        OK(tsr_trajectory_read_observable(reader, "lp", f, count, value, &err));
        for (int k = 0; k < count; k++) {
            assert_int_equal(step[k], (f + k) * STRIDE);
            assert_true(value[k] == -(f + k) / 3.0);
            conformation(f + k, N_ATOM, want);
            for (int i = 0; i < 3 * N_ATOM; i++)
                assert_true((&atom[k][0][0])[i] == (float)want[i]);
            conformation(f + k + 1, N_BODY, want);
            for (int i = 0; i < 3 * N_BODY; i++)
                assert_true((&body[k][0][0])[i] == (float)want[i]);
        }
    }
    assert_int_equal(
        tsr_trajectory_read(reader, n - 1, 2, step, NULL, NULL, &err),
        TSR_E_RANGE);
    assert_int_equal(tsr_trajectory_read(reader, -1, 1, step, NULL, NULL, &err),
                     TSR_E_RANGE);
    assert_int_equal(
        tsr_trajectory_read_observable(reader, "none", 0, 0, value, &err),
        TSR_E_DATA);
    assert_non_null(strstr(err.message, "none"));
    tsr_trajectory_reader_free(reader);
    check_times(file, n);
}

static void test_read_back(void **state)
{
    (void)state;
    tsr_err err;
    tsr_trajectory *t = create(path);

    check_frames(path, 0);
    append(t, &spec, 0, 5);
    check_frames(path, 0); /* nothing before the flush */
    OK(tsr_trajectory_flush(t, &err));
    check_frames(path, 5);
    append(t, &spec, 5, 2000);
    OK(tsr_trajectory_close(t, &err));
    OK(tsr_trajectory_close(NULL, &err));
    check_frames(path, 2000);
    assert_int_equal(tsr_trajectory_create(path, &spec, &t, &err), TSR_E_IO);
    assert_null(t);
    assert_non_null(strstr(err.message, "exists already"));
    check_frames(path, 2000);
}

static void test_same_bits(void **state)
{
    (void)state;
    enum { FRAMES = 500 };
    unsigned random = 7;
    tsr_err err;
    int kept = 0;

    OK(tsr_trajectory_close(create(path), &err));
    while (kept < FRAMES) {
        random = random * 1103515245u + 12345u;
        const int more = (int)(random >> 16) % 120;
        const int lost = (int)(random >> 8) % 20;
        const int last = kept + more < FRAMES ? kept + more : FRAMES;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            tsr_trajectory *t = reopen(kept);
            append(t, &spec, kept, (kept + last) / 2);
            if (tsr_trajectory_flush(t, NULL) != TSR_OK)
                _exit(1);
            append(t, &spec, (kept + last) / 2, last);
            if (tsr_trajectory_flush(t, NULL) != TSR_OK)
                _exit(2);
            raise(SIGKILL);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        check_frames(path, last);
        kept = last < FRAMES && last - lost > kept ? last - lost : last;
    }
    OK(tsr_trajectory_close(reopen(FRAMES), &err));
    check_frames(path, FRAMES);
    OK(tsr_trajectory_close(reopen(0), &err));
    check_frames(path, 0);
}

static void refuse(const tsr_trajectory_spec *s, int n_keep, const char *why)
{
    tsr_trajectory *t;
    tsr_err err;
    assert_int_equal(tsr_trajectory_reopen(path, s, n_keep, &t, &err),
                     TSR_E_DATA);
    assert_null(t);
    assert_non_null(strstr(err.message, path));
    if (strstr(err.message, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, why);
}

static void test_foreign(void **state)
{
    (void)state;
    tsr_err err;
    tsr_trajectory_spec s;
    tsr_trajectory *t = create(path);
    append(t, &spec, 0, 5);
    OK(tsr_trajectory_close(t, &err));

    const tsr_trajectory_observable units[] = {{"rg", "nm"}, {"lp", NULL}};
    const tsr_trajectory_observable names[] = {{"rg", "Angstrom"}, {"l", NULL}};
#define WITH(change, why)   \
    do {                    \
        s = spec;           \
        change;             \
        refuse(&s, 0, why); \
    } while (0)
    WITH(s.n_atom++, "41 atoms");
    WITH(s.n_atom = 0, "has atoms");
    WITH(s.n_body = 12, "12 bodies");
    WITH(s.chain = 0, "chain is 3, not 0");
    WITH(s.state = 0, "state is 1, not 0");
    WITH(s.stride = 1, "stride is 10, not 1");
    WITH(s.n_observable = 1, "observables");
    WITH(s.observable = units, "'rg' is not in unit 'nm'");
    WITH(s.observable = names, "no 'l'");
    refuse(&spec, 6, "has 5 frames");
    check_frames(path, 5);

    s = spec;
    s.n_atom = s.n_body = 0;
    assert_int_equal(tsr_trajectory_create(other, &s, &t, &err),
                     TSR_E_INTERNAL);
    assert_int_equal(tsr_trajectory_reopen(other, &spec, 0, &t, &err),
                     TSR_E_NOINPUT);
    assert_int_equal(truncate(path, 4000), 0);
    refuse(&spec, 0, "HDF5");
}

/* Only bodies, no observables. */
static void test_bodies_only(void **state)
{
    (void)state;
    const tsr_trajectory_spec s = {.n_body = 4, .stride = 1};
    const double xyz[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    tsr_trajectory_reader *reader;
    tsr_trajectory *t;
    int64_t step;
    float read[12];
    tsr_err err;

    OK(tsr_trajectory_create(path, &s, &t, &err));
    OK(tsr_trajectory_append(t, 17, NULL, xyz, NULL, &err));
    OK(tsr_trajectory_close(t, &err));
    OK(tsr_trajectory_open(path, &reader, &err));
    assert_int_equal(tsr_trajectory_look(reader)->n_atom, 0);
    OK(tsr_trajectory_read(reader, 0, 1, &step, NULL, read, &err));
    assert_int_equal(step, 17);
    for (int i = 0; i < 12; i++)
        assert_true(read[i] == (float)xyz[i]);
    assert_int_equal(tsr_trajectory_read(reader, 0, 1, NULL, read, NULL, &err),
                     TSR_E_DATA);
    tsr_trajectory_reader_free(reader);
    OK(tsr_trajectory_reopen(path, &s, 1, &t, &err));
    OK(tsr_trajectory_close(t, &err));
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int count_open(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void test_size(void **state)
{
    (void)state;
    enum { FRAMES = 500 };
    tsr_trajectory_spec s = spec;
    tsr_trajectory *t;
    double expected, most;
    struct stat info;
    tsr_err err;

    s.n_atom = 1800;
    s.n_body = 700;
    OK(tsr_trajectory_create(path, &s, &t, &err));
    double *xyz = malloc(3 * 1800 * sizeof *xyz);
    double spent = 0;
    assert_non_null(xyz);
    for (int f = 0; f < FRAMES; f++) {
        const double observable[N_OBSERVABLE] = {noise(f, 0), noise(f, 1)};
        conformation(f, 1800, xyz);
        const double begin = now();
        OK(tsr_trajectory_append(t, f, xyz, xyz, observable, &err));
        if (f % 50 == 49)
            OK(tsr_trajectory_flush(t, &err));
        spent += now() - begin;
    }
    free(xyz);
    OK(tsr_trajectory_close(t, &err));
    tsr_trajectory_bytes(&s, FRAMES, &expected, &most);
    assert_int_equal(stat(path, &info), 0);
    const double size = (double)info.st_size;
    print_message("%d frames of 2500 positions: %.0f bytes, %.3f of the "
                  "expected, %.3f of the upper bound, %.2f ms a frame\n",
                  FRAMES, size, size / expected, size / most,
                  1e3 * spent / FRAMES);
    assert_true(size <= most);
    assert_true(fabs(size / expected - 1) < 0.1);

    tsr_trajectory_bytes(&spec, 0, &expected, &most);
    OK(tsr_trajectory_create(other, &spec, &t, &err));
    OK(tsr_trajectory_close(t, &err));
    assert_int_equal(stat(other, &info), 0);
    print_message("empty: %ld bytes\n", (long)info.st_size);
    assert_true((double)info.st_size <= most);
}

static void test_many(void **state)
{
    (void)state;
    enum { N = 128 };
    static tsr_trajectory *t[N];
    tsr_trajectory_spec s = spec;
    tsr_err err;
    const int open_before = count_open();

    s.n_atom = 500;
    double begin = now();
    for (int i = 0; i < N; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s/t-%03d.h5", folder, i);
        OK(tsr_trajectory_create(name, &s, &t[i], &err));
    }
    const double created = now() - begin;
    assert_int_equal(count_open() - open_before, N);
    for (int i = 0; i < N; i++)
        append(t[i], &s, 0, 6);
    begin = now();
    for (int i = 0; i < N; i++)
        OK(tsr_trajectory_flush(t[i], &err));
    const double flushed = now() - begin;
    for (int i = 0; i < N; i++)
        append(t[i], &s, 6, 12);
    begin = now();
    OK(tsr_trajectory_flush_all(t, N, &err));
    const double together = now() - begin;
    assert_int_equal(count_open() - open_before, N);
    begin = now();
    for (int i = 0; i < N; i++)
        OK(tsr_trajectory_flush(t[i], &err));
    OK(tsr_trajectory_flush_all(t, N, &err));
    const double again = now() - begin;
    for (int i = 0; i < N; i++) {
        char name[160];
        tsr_trajectory_reader *reader;
        snprintf(name, sizeof name, "%s/t-%03d.h5", folder, i);
        OK(tsr_trajectory_open(name, &reader, &err));
        assert_int_equal(tsr_trajectory_look(reader)->n_frame, 12);
        tsr_trajectory_reader_free(reader);
    }
    for (int i = 0; i < N; i++)
        OK(tsr_trajectory_close(t[i], &err));
    print_message("%d trajectories: created in %.3f s, 6 frames flushed in "
                  "%.3f s one by one, in %.3f s together, nothing in %.6f s\n",
                  N, created, flushed, together, again);
    assert_true(again < 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_same_bits, enter, leave),
        cmocka_unit_test_setup_teardown(test_foreign, enter, leave),
        cmocka_unit_test_setup_teardown(test_bodies_only, enter, leave),
        cmocka_unit_test_setup_teardown(test_size, enter, leave),
        cmocka_unit_test_setup_teardown(test_many, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Trajectories are read back to the bit, also when resumed from a log, and have
 * the predicted size. */
#include "store/trajectory.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <hdf5.h>
#include <sys/stat.h>

enum { N_ATOM = 40, N_OBSERVABLE = 2, STRIDE = 10 };

static const tsr_trajectory_observable observables[N_OBSERVABLE] = {
    {"lp", NULL}, {"rg", "Angstrom"}};
static const tsr_trajectory_spec spec =
    ROW(.n_atom = N_ATOM, .n_observable = N_OBSERVABLE,
        .observable = observables, .chain = 1, .state = 1, .stride = STRIDE);

static char path[128], other[128];

static int enter(void **state)
{
    if (io_setup(state) != 0)
        return -1;
    strcpy(path, io_path("trajectory-000.h5"));
    strcpy(other, io_path("trajectory-001.h5"));
    return 0;
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

/* Frames from..to in the arrays of tsr_trajectory_append. */
static float *frames(const tsr_trajectory_spec *s, int from, int to,
                     double *observable)
{
    const size_t n = (size_t)(to - from);
    const size_t all = 3 * (size_t)s->n_atom;
    float *value = array(n * all + 2 * n * N_OBSERVABLE, sizeof *value);
    double *xyz = array(all * sizeof *xyz, 1);
    float *atom = value;
    for (int f = from; f < to; f++) {
        observable[N_OBSERVABLE * (f - from)] = -f / 3.0;
        observable[N_OBSERVABLE * (f - from) + 1] = 20 + noise(f, 0);
        conformation(f, s->n_atom, xyz);
        for (int i = 0; i < 3 * s->n_atom; i++)
            *atom++ = (float)xyz[i];
    }
    return value;
}

static void append(tsr_trajectory *t, const tsr_trajectory_spec *s, int from,
                   int to)
{
    const int n = to - from;
    double *observable = array(N_OBSERVABLE * (size_t)n, sizeof *observable);
    int64_t *step = array((size_t)n, sizeof *step);
    float *value = frames(s, from, to, observable);
    for (int f = 0; f < n; f++)
        step[f] = (int64_t)(from + f) * STRIDE;
    OK(tsr_trajectory_append(t, n, step, value, observable, &err));
}

/* Frames from..to as a record of the log, of two chains with two states each:
 * the parts of the others are empty. */
static void log_frames(tsr_draw_log *log, int from, int to)
{
    const size_t n = (size_t)(to - from), n_xyz = n * 3 * N_ATOM;
    const size_t size =
        n_xyz * sizeof(float) + n * N_OBSERVABLE * sizeof(double);
    const tsr_draw_record one =
        ROW(.kind = TSR_DRAWN_FRAMES, .first = from, .n = to - from,
            .n_chain = 2, .n_state = 2, .size = size);
    double *observable = array(n * N_OBSERVABLE, sizeof *observable);
    float *empty = array(size, 1);
    float *value = frames(&spec, from, to, observable);
    memcpy(value + n_xyz, observable, n * N_OBSERVABLE * sizeof *observable);
    OK(tsr_draw_log_begin(log, &one, &err));
    for (int part = 0; part < 4; part++) /* chain 1, state 1 is the third */
        OK(tsr_draw_log_part(log, part == 2 ? value : empty, &err));
}

static tsr_trajectory *create(const char *file)
{
    tsr_trajectory *t;
    OK(tsr_trajectory_create(file, &spec, &t, &err));
    return t;
}

static tsr_status update(int n_keep)
{
    const long keep[TSR_DRAWN_N_KIND] = {[TSR_DRAWN_FRAMES] = n_keep};
    tsr_draw_records records;
    OK(tsr_draw_records_open(path, &records, &err));
    const tsr_status status =
        tsr_trajectory_update(path, &records, n_keep < 0 ? NULL : keep, &err);
    tsr_draw_records_close(&records);
    return status;
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
    static float atom[2][N_ATOM][3];
    static double want[3 * N_ATOM];
    tsr_trajectory_reader *reader;
    int64_t step[2];
    double value[2];
    OK(tsr_trajectory_open(file, &reader, &err));
    const tsr_trajectory_info *info = tsr_trajectory_info_get(reader);
    assert_ints(info->n_frame, n, info->n_atom, N_ATOM, info->chain, 1,
                info->state, 1, info->stride, STRIDE);
    for (int f = 0; f < n; f += 2) {
        const int count = n - f < 2 ? 1 : 2;
        OK(tsr_trajectory_read(reader, f, count, step, atom[0][0], &err));
        OK(tsr_trajectory_read_observable(reader, "lp", f, count, value, &err));
        for (int k = 0; k < count; k++) {
            assert_int_equal(step[k], (f + k) * STRIDE);
            assert_true(value[k] == -(f + k) / 3.0);
            conformation(f + k, N_ATOM, want);
            for (int i = 0; i < 3 * N_ATOM; i++)
                assert_true((&atom[k][0][0])[i] == (float)want[i]);
        }
    }
    assert_int_equal(tsr_trajectory_read(reader, n - 1, 2, step, NULL, &err),
                     TSR_E_RANGE);
    assert_int_equal(tsr_trajectory_read(reader, -1, 1, step, NULL, &err),
                     TSR_E_RANGE);
    FAILS(tsr_trajectory_read_observable(reader, "none", 0, 0, value, &err),
          TSR_E_DATA, "none");
    tsr_trajectory_reader_free(reader);
    check_times(file, n);
}

TEST(test_read_back)
{
    tsr_trajectory *t = create(path);
    append(t, &spec, 0, 5);
    assert_int_not_equal(access(path, F_OK), 0);
    append(t, &spec, 5, 2000);
    OK(tsr_trajectory_close(t, &err));
    OK(tsr_trajectory_close(NULL, &err));
    check_frames(path, 2000);
    OK(tsr_trajectory_close(create(path), &err));
    check_frames(path, 0);
}

/* Taken up again and again, always a little before where it was. */
TEST(test_resumed)
{
    enum { FRAMES = 500 };
    unsigned random = 7;
    tsr_draw_log *log;
    int kept = 0;

    OK(tsr_trajectory_close(create(path), &err));
    OK(tsr_draw_log_new(io_dir, &log, &err));
    while (kept < FRAMES) {
        random = random * 1103515245u + 12345u;
        const int more = 1 + (int)(random >> 16) % 120;
        const int lost = (int)(random >> 8) % 20;
        const int last = kept + more < FRAMES ? kept + more : FRAMES;
        log_frames(log, kept, last);
        log_frames(log, last, last + lost);
        if (random >> 30 == 0) /* somebody looks at it */
            check_frames(path, last + lost);
        OK(update(last));
        tsr_draw_log_remove(log);
        kept = last;
    }
    check_frames(path, FRAMES);
    FAILS(update(FRAMES + 1), TSR_E_DATA, "has 500 frames");
    OK(update(0));
    check_frames(path, 0);
    log_frames(log, 3, 5);
    FAILS(update(-1), TSR_E_DATA, path);
    tsr_draw_log_remove(log);
    tsr_draw_log_free(log);
}

TEST(test_refused)
{
    tsr_trajectory_spec s = {.stride = 1};
    tsr_trajectory *t;
    tsr_draw_log *log;
    assert_int_equal(tsr_trajectory_create(other, &s, &t, &err),
                     TSR_E_INTERNAL);
    assert_int_equal(update(0), TSR_E_NOINPUT);
    s = spec;
    s.n_atom++;
    OK(tsr_trajectory_create(path, &s, &t, &err));
    OK(tsr_trajectory_close(t, &err));
    OK(tsr_draw_log_new(io_dir, &log, &err));
    log_frames(log, 0, 2);
    FAILS(update(-1), TSR_E_DATA, "belongs to another run");
    tsr_draw_log_free(log);
    assert_int_equal(truncate(path, 4000), 0);
    FAILS(update(0), TSR_E_DATA, "HDF5");
}

/* Numbers that would index in front of an array of draws. */
TEST(test_negative_numbers)
{
    const float xyz[3] = {1, 2, 3};
    for (int i = 0; i < 4; i++) {
        const tsr_trajectory_spec s = {
            .n_atom = 1, .chain = -(i == 1), .state = -(i == 2), .stride = 1};
        const int64_t step = i == 3 ? -8 : 8;
        tsr_trajectory_reader *reader = NULL;
        tsr_trajectory *t;
        int64_t read;
        OK(tsr_trajectory_create(path, &s, &t, &err));
        OK(tsr_trajectory_append(t, 1, &step, xyz, NULL, &err));
        OK(tsr_trajectory_close(t, &err));
        tsr_status status = tsr_trajectory_open(path, &reader, &err);
        if (status == TSR_OK)
            status = tsr_trajectory_read(reader, 0, 1, &read, NULL, &err);
        tsr_trajectory_reader_free(reader);
        assert_int_equal(status, i == 0 ? TSR_OK : TSR_E_DATA);
    }
}

TEST(test_size)
{
    enum { FRAMES = 500 };
    tsr_trajectory_spec s = spec;
    tsr_trajectory *t;
    struct stat info;

    s.n_atom = 2500;
    OK(tsr_trajectory_create(path, &s, &t, &err));
    for (int f = 0; f < FRAMES; f += 50)
        append(t, &s, f, f + 50);
    OK(tsr_trajectory_close(t, &err));
    const double expected = tsr_trajectory_bytes(&s, FRAMES);
    assert_int_equal(stat(path, &info), 0);
    const double size = (double)info.st_size;
    assert_near(size / expected, 1, 0.1);
}

static test_fixture around_each = {enter, io_teardown};

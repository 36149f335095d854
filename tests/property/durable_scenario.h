/* What test_durable.c has written under faults, and how it judges what is left:
 * a trace from the start, a trace taken up again, a trajectory, checkpoints.
 * Every number follows from its place, so a wrong one is seen. */
#ifndef TSR_TEST_DURABLE_SCENARIO_H
#define TSR_TEST_DURABLE_SCENARIO_H

#include "store/checkpoint.h"
#include "store/trace.h"
#include "store/trajectory.h"
#include "tests/check.h"

#include <unistd.h>

enum { NOTHING = -1, MOST_COMMITS = 7 };

typedef struct {
    const char *name, *file;
    int begins_full; /* the file is there, from a run of `write` of `before` */
    int n_commit;
    int size[MOST_COMMITS]; /* [n_commit + 1] after so many were reported */
    /* 0, or 3 where a call returned an error */
    int (*write)(const char *path, void (*report)(void));
    /* What is there, or NOTHING; fails the test where it is neither. */
    int (*judge)(const char *path);
    /* From `size` to the end, as resume would. */
    void (*finish)(const char *path, int size);
} durable_scenario;

#define DURABLE_OK(call)                 \
    do {                                 \
        if ((call) != TSR_OK)            \
            fail_msg("%s", err.message); \
    } while (0)

static double durable_value(int v, int chain, int draw, int k)
{
    uint64_t x = ((uint64_t)v << 48) ^ ((uint64_t)chain << 40) ^
                 ((uint64_t)draw << 8) ^ (uint64_t)k;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(float)(x >> 40);
}

/* ---- a trace ---- */

enum { TRACE_CHAINS = 2, TRACE_VARIABLES = 4, TRACE_OBSERVED = 3 };

static const tsr_trace_variable durable_variables[TRACE_VARIABLES] = {
    {.group = TSR_TRACE_POSTERIOR, .name = "rg", .unit = "Angstrom", .n = 1},
    {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
    {.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
     .name = "intensity",
     .dim = "q",
     .n = 20,
     .single = 1},
    {.group = TSR_TRACE_OBSERVED_DATA, .name = "n_point", .n = 1}};

static const int durable_draws[MOST_COMMITS] = {0, 40, 41, 1700, 2400, 2400};

/* A record of draws from..to, as a run appends them. */
static tsr_status durable_append(tsr_draw_log *log, int from, int to)
{
    const size_t n = TRACE_CHAINS * (size_t)(to - from);
    char *value = malloc(n * 22 * sizeof(double) + 1), *at = value;
    if (value == NULL)
        return TSR_E_NOMEM;
    for (int v = 0; v < TRACE_OBSERVED; v++)
        for (int c = 0; c < TRACE_CHAINS; c++)
            for (int d = from; d < to; d++)
                for (int k = 0; k < durable_variables[v].n; k++) {
                    const double one = durable_value(v, c, d, k);
                    const float single = (float)one;
                    const int is_single = durable_variables[v].single;
                    const size_t width = is_single ? sizeof single : sizeof one;
                    memcpy(at, is_single ? (const void *)&single : &one, width);
                    at += width;
                }
    const tsr_draw_record one = {.kind = TSR_DRAWN_KEPT,
                                 .first = from,
                                 .n = to - from,
                                 .n_chain = 1,
                                 .n_state = 1,
                                 .size = (size_t)(at - value)};
    tsr_status status = tsr_draw_log_begin(log, &one, NULL);
    if (status == TSR_OK)
        status = tsr_draw_log_part(log, value, NULL);
    free(value);
    return status;
}

static tsr_draw_log *durable_log(const char *path)
{
    char directory[256];
    tsr_draw_log *log = NULL;
    snprintf(directory, sizeof directory, "%.*s",
             (int)(strrchr(path, '/') - path), path);
    (void)tsr_draw_log_new(directory, &log, NULL);
    return log;
}

typedef tsr_status durable_update(const char *path, const tsr_draw_records *log,
                                  const long keep[TSR_DRAWN_N_KIND],
                                  tsr_err *err);

/* What the log has goes into the file; draws < 0: all of it. */
static tsr_status durable_put(const char *path, durable_update *update,
                              tsr_draw_log *log, long draws)
{
    const long keep[TSR_DRAWN_N_KIND] = {
        [TSR_DRAWN_KEPT] = draws, [TSR_DRAWN_FRAMES] = draws};
    tsr_draw_records records;
    tsr_status status = tsr_draw_records_open(path, &records, NULL);
    if (status == TSR_OK)
        status = update(path, &records, draws < 0 ? NULL : keep, NULL);
    tsr_draw_records_close(&records);
    if (status == TSR_OK)
        tsr_draw_log_drop(log);
    return status;
}

/* Commits number `first` and on, the file being written after some of them;
 * then the end. */
static int durable_go_on(const char *path, int first, const int *size,
                         tsr_status (*append)(tsr_draw_log *, int, int),
                         durable_update *update, void (*report)(void))
{
    tsr_draw_log *log = durable_log(path);
    tsr_status status = log == NULL ? TSR_E_NOMEM : TSR_OK;
    for (int i = first; i < 5 && status == TSR_OK; i++) {
        status = append(log, size[i - 1], size[i]);
        if (status == TSR_OK)
            status = tsr_draw_log_sync(log, NULL);
        if (status == TSR_OK)
            report();
        if (status == TSR_OK && i == 3)
            status = durable_put(path, update, log, -1);
    }
    if (status == TSR_OK)
        status = durable_put(path, update, log, -1);
    tsr_draw_log_free(log);
    if (status != TSR_OK)
        return 3;
    report();
    return 0;
}

static int durable_write_trace(const char *path, void (*report)(void))
{
    const double n_point = 51;
    tsr_trace *trace;
    tsr_status status =
        tsr_trace_create(path, TRACE_CHAINS, TRACE_VARIABLES, durable_variables,
                         0, NULL, &trace, &err);
    if (status == TSR_OK) {
        if (tsr_trace_put(trace, TRACE_OBSERVED, &n_point, &err) != TSR_OK) {
            tsr_trace_discard(trace);
            return 3;
        }
        status = tsr_trace_close(trace, &err);
    }
    if (status != TSR_OK)
        return strstr(err.message, path) == NULL ? 5 : 3;
    report();
    return durable_go_on(path, 1, durable_draws, durable_append,
                         tsr_trace_update, report);
}

static int durable_write_reopened(const char *path, void (*report)(void))
{
    tsr_draw_log *log = durable_log(path);
    const tsr_status status =
        durable_put(path, tsr_trace_update, log, durable_draws[2]);
    tsr_draw_log_free(log);
    if (status != TSR_OK)
        return 3;
    report();
    return durable_go_on(path, 3, durable_draws, durable_append,
                         tsr_trace_update, report);
}

static int durable_judge_trace(const char *path)
{
    tsr_trace_reader *reader;
    int size = NOTHING;

    tsr_status status = tsr_trace_open(path, &reader, &err);
    if (status == TSR_E_NOINPUT || status == TSR_E_DATA)
        return NOTHING;
    DURABLE_OK(status);
    for (int v = 0; v < TRACE_OBSERVED; v++) {
        int n_chain, n_draw, n;
        double *value;
        DURABLE_OK(tsr_trace_get(reader, durable_variables[v].group,
                                 durable_variables[v].name, &n_chain, &n_draw,
                                 &n, &value, &err));
        if (v == 0)
            size = n_draw;
        assert_int_equal(n_draw, size);
        assert_int_equal(n_draw,
                         tsr_trace_n_draw(reader, durable_variables[v].group));
        const double *at = value;
        for (int c = 0; c < n_chain; c++)
            for (int d = 0; d < n_draw; d++)
                for (int k = 0; k < n; k++, at++)
                    if (*at != durable_value(v, c, d, k))
                        fail_msg("%s [%d][%d][%d] of %d draws is wrong",
                                 durable_variables[v].name, c, d, k, n_draw);
        free(value);
    }
    tsr_trace_reader_free(reader);
    return size;
}

/* From `size` on to the end, as resume does. */
static void durable_end(const char *path, int size, int end,
                        tsr_status (*append)(tsr_draw_log *, int, int),
                        durable_update *update)
{
    tsr_draw_log *log = durable_log(path);
    assert_non_null(log);
    assert_int_equal(durable_put(path, update, log, size), TSR_OK);
    if (end > size)
        assert_int_equal(append(log, size, end), TSR_OK);
    assert_int_equal(durable_put(path, update, log, -1), TSR_OK);
    tsr_draw_log_free(log);
}

static void durable_finish_trace(const char *path, int size)
{
    durable_end(path, size, durable_draws[4], durable_append, tsr_trace_update);
    assert_int_equal(durable_judge_trace(path), durable_draws[4]);
}

/* ---- a trajectory ---- */

enum { FRAME_ATOMS = 300 };

static const tsr_trajectory_observable durable_observable[] = {{"rg", "nm"}};
static const tsr_trajectory_spec durable_spec = {.n_atom = FRAME_ATOMS,
                                                 .n_observable = 1,
                                                 .observable =
                                                     durable_observable,
                                                 .stride = 1};
static const int durable_frames[MOST_COMMITS] = {0, 1, 40, 41, 75, 75};

static tsr_status durable_append_frames(tsr_draw_log *log, int from, int to)
{
    const size_t n = (size_t)(to - from), n_xyz = n * 3 * FRAME_ATOMS;
    float *value = malloc((n_xyz + 2 * n) * sizeof *value + 1);
    if (value == NULL)
        return TSR_E_NOMEM;
    for (size_t i = 0; i < n_xyz; i++)
        value[i] = (float)durable_value(8, 0, from + (int)i / (3 * FRAME_ATOMS),
                                        (int)i % (3 * FRAME_ATOMS));
    for (int f = from; f < to; f++) {
        const double rg = durable_value(9, 0, f, 0);
        memcpy(value + n_xyz + 2 * (f - from), &rg, sizeof rg);
    }
    const tsr_draw_record one = {.kind = TSR_DRAWN_FRAMES,
                                 .first = from,
                                 .n = to - from,
                                 .n_chain = 1,
                                 .n_state = 1,
                                 .size = (n_xyz + 2 * n) * sizeof *value};
    tsr_status status = tsr_draw_log_begin(log, &one, NULL);
    if (status == TSR_OK)
        status = tsr_draw_log_part(log, value, NULL);
    free(value);
    return status;
}

static int durable_write_frames(const char *path, void (*report)(void))
{
    tsr_trajectory *t;
    if (tsr_trajectory_create(path, &durable_spec, &t, NULL) != TSR_OK ||
        tsr_trajectory_close(t, NULL) != TSR_OK)
        return 3;
    report();
    return durable_go_on(path, 1, durable_frames, durable_append_frames,
                         tsr_trajectory_update, report);
}

static int durable_judge_frames(const char *path)
{
    static float xyz[3 * FRAME_ATOMS];
    tsr_trajectory_reader *reader;
    tsr_status status = tsr_trajectory_open(path, &reader, &err);
    if (status == TSR_E_NOINPUT || status == TSR_E_DATA)
        return NOTHING;
    DURABLE_OK(status);
    const int n = tsr_trajectory_info_get(reader)->n_frame;
    for (int f = 0; f < n; f++) {
        int64_t step;
        double rg;
        DURABLE_OK(tsr_trajectory_read(reader, f, 1, &step, xyz, NULL, &err));
        DURABLE_OK(
            tsr_trajectory_read_observable(reader, "rg", f, 1, &rg, &err));
        assert_int_equal(step, f);
        assert_true(rg == durable_value(9, 0, f, 0));
        for (int i = 0; i < 3 * FRAME_ATOMS; i++)
            if (xyz[i] != (float)durable_value(8, 0, f, i))
                fail_msg("frame %d of %d is wrong at %d", f, n, i);
    }
    tsr_trajectory_reader_free(reader);
    return n;
}

static void durable_finish_frames(const char *path, int size)
{
    durable_end(path, size, durable_frames[4], durable_append_frames,
                tsr_trajectory_update);
    assert_int_equal(durable_judge_frames(path), durable_frames[4]);
}

/* ---- checkpoints ---- */

enum { NUMBERS = 3000 };

typedef struct {
    int number;
    double value[NUMBERS];
} durable_state;

static const tsr_checkpoint_field durable_fields[] = {
    {"a/number", TSR_CHECKPOINT_INT, offsetof(durable_state, number), 1, 0},
    {"a/value", TSR_CHECKPOINT_DOUBLE, offsetof(durable_state, value), NUMBERS,
     0},
    {0}};

static tsr_status durable_write_checkpoint(const char *path, int number)
{
    static durable_state state;
    tsr_checkpoint_writer *writer;

    state.number = number;
    for (int i = 0; i < NUMBERS; i++)
        state.value[i] = durable_value(7, 0, number, i);
    tsr_status status = tsr_checkpoint_new(path, "hash", &writer, NULL);
    if (status == TSR_OK)
        status = tsr_checkpoint_put(writer, durable_fields, &state, NULL);
    return tsr_checkpoint_end(writer, status, NULL);
}

static int durable_write_checkpoints(const char *path, void (*report)(void))
{
    for (int i = 1; i <= 3; i++) {
        if (durable_write_checkpoint(path, i) != TSR_OK)
            return 3;
        report();
    }
    return 0;
}

static int durable_judge_checkpoint(const char *path)
{
    static durable_state state;
    char directory[256], message[TSR_ERR_SIZE];
    tsr_checkpoint *checkpoint;

    snprintf(directory, sizeof directory, "%.*s",
             (int)(strrchr(path, '/') - path), path);
    tsr_status status =
        tsr_checkpoint_open_newest(directory, &checkpoint, message, &err);
    if (status == TSR_E_NOINPUT)
        return NOTHING;
    DURABLE_OK(status);
    DURABLE_OK(tsr_checkpoint_get(checkpoint, durable_fields, &state, &err));
    for (int i = 0; i < NUMBERS; i++)
        assert_true(state.value[i] == durable_value(7, 0, state.number, i));
    tsr_checkpoint_free(checkpoint);
    /* one that was complete is never out of its place */
    if (message[0] != '\0' && state.number > 1)
        fail_msg("%s", message);
    return state.number;
}

static void durable_finish_checkpoint(const char *path, int size)
{
    assert_int_equal(durable_write_checkpoint(path, size + 1), TSR_OK);
    assert_int_equal(durable_judge_checkpoint(path), size + 1);
}

static const durable_scenario durable_scenarios[] = {
    {"trace",
     "trace.h5",
     0,
     6,
     {NOTHING, 0, 40, 41, 1700, 2400, 2400},
     durable_write_trace,
     durable_judge_trace,
     durable_finish_trace},
    {"reopened",
     "trace.h5",
     1,
     4,
     {2400, 41, 1700, 2400, 2400},
     durable_write_reopened,
     durable_judge_trace,
     durable_finish_trace},
    {"trajectory",
     "trajectory-000.h5",
     0,
     6,
     {NOTHING, 0, 1, 40, 41, 75, 75},
     durable_write_frames,
     durable_judge_frames,
     durable_finish_frames},
    {"checkpoint",
     "checkpoint.h5",
     0,
     3,
     {NOTHING, 1, 2, 3},
     durable_write_checkpoints,
     durable_judge_checkpoint,
     durable_finish_checkpoint}};

#endif

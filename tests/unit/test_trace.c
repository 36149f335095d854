/* trace.h5 and its log of draws are read back to the bit, whole or in part and
 * after kills; damage is detected; a failed write leaves no file. */
#include "files/lock.h"
#include "tests/draws.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

OWNED(tsr_trace_reader)
OWNED(tsr_draw_log)

enum { N_CHAIN = 3, N_Q = 37, N_STATE = 2, N_MOVE = 3, SEAL = 64 };
/* in the order of the groups; those before OBSERVED have draws */
enum { RG, WEIGHT, ACCEPTED, LP, CURVE, WARM, OBSERVED, N_POINT, N_VARIABLE };

static double q[N_Q]; /* 0.01, 0.02 ... 1/Angstrom */
static const char *const moves[N_MOVE] = {"pivot", "crankshaft",
                                          "side \xc3\xa9"};

static const tsr_trace_variable variable[N_VARIABLE] = {
    [RG] = ROW(.group = TSR_TRACE_POSTERIOR, .name = "rg", .unit = "Angstrom",
               .doc = "radius of gyration", .n = 1),
    [WEIGHT] = ROW(.group = TSR_TRACE_POSTERIOR, .name = "weight",
                   .dim = "state", .n = N_STATE),
    [ACCEPTED] = ROW(.group = TSR_TRACE_SAMPLE_STATS, .name = "accepted",
                     .dim = "move", .n = N_MOVE, .coord_label = moves),
    [LP] = {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
    [CURVE] = ROW(.group = TSR_TRACE_POSTERIOR_PREDICTIVE, .name = "intensity",
                  .dim = "q", .n = N_Q, .coord = q, .coord_unit = "1/Angstrom",
                  .single = 1),
    [WARM] = {.group = TSR_TRACE_WARMUP_POSTERIOR, .name = "rg", .n = 1},
    [OBSERVED] = ROW(.group = TSR_TRACE_OBSERVED_DATA, .name = "intensity",
                     .dim = "q", .n = N_Q, .coord = q),
    [N_POINT] = {.group = TSR_TRACE_CONSTANT_DATA, .name = "n_point", .n = 1},
};

/* ---- a trace in a io_dir of its own ---- */

static char path[128], log_path[128];

static int enter(void **state)
{
    for (int k = 0; k < N_Q; k++)
        q[k] = 0.01 * (k + 1);
    if (io_setup(state) != 0)
        return -1;
    strcpy(path, io_path("trace.h5"));
    strcpy(log_path, io_path("draws.log"));
    return 0;
}

static test_fixture around_each = {enter, io_teardown};

static long size_of(const char *file)
{
    struct stat info;
    return stat(file, &info) == 0 ? (long)info.st_size : -1;
}

/* [N_CHAIN][count][n] draws from..from+count of a variable. */
static double *draws(int v, int from, int count)
{
    double *value =
        array((size_t)(N_CHAIN * count * variable[v].n), sizeof *value);
    double *to = value;
    for (int c = 0; c < N_CHAIN; c++)
        for (int d = 0; d < count; d++)
            for (int k = 0; k < variable[v].n; k++)
                *to++ = draw_value(v, c, from + d, k);
    return value;
}

static void append(tsr_trace *trace, int v, int from, int count)
{
    OK(tsr_trace_append(trace, v, count, draws(v, from, count), &err));
}

/* Draws of all variables but those of warm-up. */
static void append_all(tsr_trace *trace, int from, int count)
{
    for (int v = 0; v < WARM; v++)
        append(trace, v, from, count);
}

static tsr_trace *create(void)
{
    static const tsr_trace_attribute attribute[] = {{"seed", "17"}};
    tsr_trace *trace;
    OK(tsr_trace_create(path, N_CHAIN, N_VARIABLE, variable, 1, attribute,
                        &trace, &err));
    return trace;
}

/* A whole file of the first n draws; returns its length. */
static long write_trace(int n)
{
    tsr_trace *trace = create();
    append_all(trace, 0, n);
    OK(tsr_trace_put(trace, OBSERVED, q, &err));
    OK(tsr_trace_close(trace, &err));
    return size_of(path);
}

static tsr_trace_reader *reader_of(void)
{
    tsr_trace_reader *reader;
    OK(tsr_trace_open(path, &reader, &err));
    return own_tsr_trace_reader(reader);
}

/* Values of a variable; n: chains, draws, entries of one. */
static double *values(tsr_trace_reader *reader, tsr_trace_group group,
                      const char *name, int n[3])
{
    double *value;
    OK(tsr_trace_get(reader, group, name, &n[0], &n[1], &n[2], &value, &err));
    return own(value, free);
}

static void check(int n_warm, int n_kept)
{
    tsr_trace_reader *reader = reader_of();
    draws_check(reader, OBSERVED, variable, N_CHAIN, n_warm, n_kept);
}

static void flip(const char *file, long at, int bit)
{
    FILE *stream = fopen(file, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, at, SEEK_SET), 0);
    const int byte = fgetc(stream) ^ (1 << bit);
    assert_ints(fseek(stream, at, SEEK_SET), 0, fputc(byte, stream), byte);
    assert_int_equal(fclose(stream), 0);
}

/* ---- written and read back ---- */

TEST(test_read_back)
{
    enum { N_LONG = 200000 };
    char *config = array(N_LONG + 1, 1);
    memset(config, 'x', N_LONG);
    const tsr_trace_attribute attribute[] = {
        {"config", config},
        {"empty", ""},
        {"device", "\xc3\x85ngstr\xc3\xb6m"},
        {"inference_library", "tessera"}}; /* the last is tessera's own */
    tsr_trace *trace;
    OK(tsr_trace_create(path, N_CHAIN, N_VARIABLE, variable, 3, attribute,
                        &trace, &err));
    append_all(trace, 0, 7);
    const double observed[N_Q] = {5, 4, 3, 2.5, 1.0 / 3.0};
    const double n_point = 51;
    OK(tsr_trace_put(trace, OBSERVED, observed, &err));
    OK(tsr_trace_put(trace, N_POINT, &n_point, &err));
    OK(tsr_trace_close(trace, &err));
    check(0, 7);

    tsr_trace_reader *reader = reader_of();
    const char *const *name;
    assert_int_equal(tsr_trace_variables(reader, TSR_TRACE_POSTERIOR, &name),
                     2);
    assert_string_equal(name[0], "rg");
    assert_string_equal(name[1], "weight");
    assert_int_equal(
        tsr_trace_variables(reader, TSR_TRACE_WARMUP_SAMPLE_STATS, &name), 0);

    int n[3];
    double *value = values(reader, TSR_TRACE_OBSERVED_DATA, "intensity", n);
    assert_ints(n[0], 1, n[1], 1, n[2], N_Q);
    assert_memory_equal(value, observed, sizeof observed);
    value = values(reader, TSR_TRACE_CONSTANT_DATA, "n_point", n);
    assert_ints(n[2], 1, value[0], 51);
    /* A coordinate is no variable. */
    FAILS(tsr_trace_get(reader, TSR_TRACE_OBSERVED_DATA, "q", &n[0], &n[1],
                        &n[2], &value, &err),
          TSR_E_DATA, "observed_data/q");
    assert_null(value);

    for (int i = 0; i < 4; i++)
        assert_string_equal(
            own(tsr_trace_attribute_text(reader, attribute[i].name), free),
            attribute[i].text);
    assert_string_equal(
        own(tsr_trace_variable_text(reader, TSR_TRACE_POSTERIOR, "rg", "units"),
            free),
        "Angstrom");
    assert_null(tsr_trace_variable_text(reader, TSR_TRACE_POSTERIOR, "weight",
                                        "units"));
    assert_null(tsr_trace_attribute_text(reader, "absent"));
}

/* Many draws, with variables out of step with each other. */
TEST(test_pieces)
{
    enum { TOTAL = 12000 };
    unsigned random = 12345;
    tsr_trace *trace = create();

    for (int done = 0, piece = 0; done < TOTAL; done += piece) {
        random = random * 1103515245u + 12345u;
        piece = 1 + (int)(random >> 16) % 3000;
        if (piece > TOTAL - done)
            piece = TOTAL - done;
        const int first = piece / 2;
        for (int v = 0; v < WARM; v++) {
            if (first > 0)
                append(trace, v, done, first);
            append(trace, v, done + first, piece - first);
        }
    }
    OK(tsr_trace_close(trace, &err));
    check(0, TOTAL);
    unlink(path);

    trace = create();
    append_all(trace, 0, TOTAL);
    OK(tsr_trace_close(trace, &err));
    check(0, TOTAL);
}

TEST(test_no_draws)
{
    OK(tsr_trace_close(create(), &err));
    check(0, 0);
    OK(tsr_trace_close(NULL, &err));
}

/* A file is there when it is whole, and stays until another is. */
TEST(test_in_one_go)
{
    tsr_trace *trace = create();
    append_all(trace, 0, 10);
    assert_int_not_equal(access(path, F_OK), 0);
    OK(tsr_trace_close(trace, &err));
    check(0, 10);
    trace = create();
    append_all(trace, 0, 3);
    check(0, 10);
    tsr_trace_discard(trace);
    check(0, 10);
    trace = create();
    append_all(trace, 0, 3);
    OK(tsr_trace_close(trace, &err));
    check(0, 3);
}

TEST(test_uneven)
{
    const double one = 1.0;
    tsr_trace *trace = create();
    append_all(trace, 0, 4);
    append(trace, RG, 4, 2);
    assert_ints(tsr_trace_append(trace, OBSERVED, 1, &one, &err),
                TSR_E_INTERNAL, tsr_trace_put(trace, RG, &one, &err),
                TSR_E_INTERNAL, tsr_trace_put(trace, N_VARIABLE, &one, &err),
                TSR_E_INTERNAL);
    FAILS(tsr_trace_close(trace, &err), TSR_E_INTERNAL, "'rg' has 6 draws");
    assert_has(err.message, "posterior");
    assert_int_not_equal(access(path, F_OK), 0);
}

TEST(test_declarations)
{
    static const struct {
        tsr_trace_variable list[2];
        int n;
        const char *why;
    } refused[] = {
        {{{.name = "a/b", .n = 1}}, 1, "no netCDF name"},
        {{{.name = "a", .n = 2}}, 1, "the variable has no dimension"},
        {{{.name = "a", .n = 1}, {.name = "a", .n = 1}}, 2, "taken"},
        {{{.name = "a", .dim = "q", .n = 3}, {.name = "b", .dim = "q", .n = 4}},
         2,
         "another length"},
        {{{.name = "q", .dim = "q", .n = 3}}, 1, "taken"}};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        tsr_trace *trace;
        tsr_trace_variable list[2];
        memcpy(list, refused[i].list, sizeof list);
        list[0].group = list[1].group = TSR_TRACE_POSTERIOR;
        FAILS(tsr_trace_create(path, 2, refused[i].n, list, 0, NULL, &trace,
                               &err),
              TSR_E_INTERNAL, refused[i].why);
        assert_null(trace);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

TEST(test_no_trace)
{
    io_text("trace.h5", "precious");
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
    assert_has(err.message, "HDF5");
    assert_int_equal(tsr_trace_open("/dev/null/trace.h5", &reader, &err),
                     TSR_E_NOINPUT);
}

TEST(test_unwritable)
{
    tsr_trace *trace;
    /* root may write in any directory but those of /proc */
    const char *where[] = {"/dev/null/trace.h5", "/proc/trace.h5"};

    for (int i = 0; i < 2; i++) {
        FAILS(tsr_trace_create(where[i], N_CHAIN, N_VARIABLE, variable, 0, NULL,
                               &trace, &err),
              TSR_E_IO, where[i]);
        assert_null(trace);
        if (strstr(err.message, "No such file") == NULL &&
            strstr(err.message, "Not a directory") == NULL &&
            strstr(err.message, "Permission denied") == NULL)
            fail_msg("no reason in '%s'", err.message);
    }
}

/* As `resume` does, keep < 0 for all draws. */
static tsr_status update(long n_warm, long keep)
{
    const long n[TSR_DRAWN_N_KIND] = {
        [TSR_DRAWN_WARMUP] = n_warm, [TSR_DRAWN_KEPT] = keep};
    tsr_draw_records records;
    OK(tsr_draw_records_open(path, &records, &err));
    const tsr_status status =
        tsr_trace_update(path, &records, keep < 0 ? NULL : n, &err);
    tsr_draw_records_close(&records);
    if (status != TSR_OK)
        assert_has(err.message, path);
    return status;
}

/* ---- damaged ---- */

enum { DRAWS = 40 };

static long somewhere(long end)
{
    static unsigned random = 99;
    random = random * 1103515245u + 12345u;
    return (long)(random >> 4) % end;
}

/* Reads `rg` where the file opens; a refusal names the file. */
static tsr_status look(int *n_draw, int *is_right)
{
    int n_chain, n;
    double *value;
    tsr_trace_reader *reader;
    tsr_status status = tsr_trace_open(path, &reader, &err);
    if (status == TSR_OK) {
        status = tsr_trace_get(reader, TSR_TRACE_POSTERIOR, "rg", &n_chain,
                               n_draw, &n, &value, &err);
        *is_right = 1;
        for (int d = 0; status == TSR_OK && d < *n_draw; d++)
            *is_right = *is_right && value[d] == draw_value(RG, 0, d, 0);
        free(value);
        tsr_trace_reader_free(reader);
    }
    if (status != TSR_OK)
        assert_has(err.message, path);
    return status;
}

/* Whatever the bit belongs to, nothing of the file is used. */
TEST(test_sealed)
{
    int n_draw, is_right;
    const long whole = write_trace(DRAWS);
    for (int i = 0; i < 150; i++) {
        const long at = somewhere(whole - SEAL);
        flip(path, at, i % 8);
        if (look(&n_draw, &is_right) != TSR_E_DATA ||
            (i % 10 == 0 && update(0, DRAWS) != TSR_E_DATA))
            fail_msg("bit %d of byte %ld makes no difference", i % 8, at);
        flip(path, at, i % 8);
    }
    check(0, DRAWS);
}

/* A damaged seal is none: the file is read like one of tessera 0.1. */
TEST(test_damaged_seal)
{
    const long whole = write_trace(DRAWS);
    for (long at = whole - SEAL; at < whole; at += 5) {
        int n_draw = DRAWS, is_right = 1;
        flip(path, at, 1);
        (void)look(&n_draw, &is_right);
        assert_int_equal(n_draw, DRAWS);
        assert_true(is_right);
        flip(path, at, 1);
    }
}

/* As tessera 0.1 left them: HDF5 itself may say what is wrong, or read other
 * numbers, but nobody dies. Whoever goes on with the file seals it. */
TEST(test_without_seal)
{
    int n_draw, is_right;
    const long end = write_trace(DRAWS) - SEAL;
    assert_int_equal(truncate(path, end), 0);
    check(0, DRAWS);
    for (int i = 0; i < 40; i++) {
        const long at = somewhere(i % 2 ? end : end / 8);
        flip(path, at, i % 8);
        (void)look(&n_draw, &is_right);
        flip(path, at, i % 8);
    }
    assert_int_equal(update(0, DRAWS / 2), TSR_OK);
    check(0, DRAWS / 2);
    flip(path, end / 2, 0);
    assert_int_equal(look(&n_draw, &is_right), TSR_E_DATA);
}

/* ---- in part ---- */

enum { N_DRAW = 700 };

/* In two pieces, so that the blocks of the file are not the writer's. */
static tsr_trace_reader *in_pieces(void)
{
    tsr_trace *trace = create();
    append_all(trace, 0, 300);
    append_all(trace, 300, N_DRAW - 300);
    OK(tsr_trace_put(trace, OBSERVED, q, &err));
    OK(tsr_trace_close(trace, &err));
    return reader_of();
}

static void check_part(tsr_trace_reader *reader, int v,
                       const tsr_trace_part *part)
{
    size_t count = (size_t)N_CHAIN * (size_t)part->n_draw * (size_t)part->n + 1;
    double *value = array(count, sizeof *value);
    const double *at = value;
    value[count - 1] = -1.0;
    OK(tsr_trace_get_part(reader, variable[v].group, variable[v].name, part,
                          value, &err));
    for (int c = 0; c < N_CHAIN; c++)
        for (int d = 0; d < part->n_draw; d++)
            for (int k = 0; k < part->n; k++, at++)
                if (*at !=
                    draw_value(v, c, part->draw_from + d, part->entry_from + k))
                    fail_msg("[%d][%d][%d] is %g", c, d, k, *at);
    assert_true(*at == -1.0); /* nothing beyond */
}

TEST(test_parts)
{
    static const tsr_trace_part part[] = {
        {0, N_DRAW, 0, N_Q}, {0, N_DRAW, 5, 1}, {123, 400, 30, 7},
        {699, 1, 36, 1},     {0, 0, 0, N_Q},    {10, 20, 3, 0},
    };
    tsr_trace_reader *reader = in_pieces();
    for (size_t i = 0; i < COUNT_OF(part); i++)
        check_part(reader, CURVE, &part[i]);
    const tsr_trace_part scalar = {250, 333, 0, 1};
    check_part(reader, RG, &scalar);
}

TEST(test_outside)
{
    static const tsr_trace_part part[] = {
        {1, N_DRAW, 0, 1}, {0, 1, 0, N_Q + 1},    {0, 1, N_Q, 1}, {-1, 1, 0, 1},
        {0, -1, 0, 1},     {N_DRAW + 1, 0, 0, 1}, {0, 1, 0, -1},
    };
    double value[N_CHAIN * (N_Q + 1)];
    tsr_trace_reader *reader = in_pieces();
    for (size_t i = 0; i < COUNT_OF(part); i++)
        FAILS(tsr_trace_get_part(reader, TSR_TRACE_POSTERIOR_PREDICTIVE,
                                 "intensity", &part[i], value, &err),
              TSR_E_DATA, "700 draws of 37");
    FAILS(tsr_trace_get_part(reader, TSR_TRACE_POSTERIOR, "rh", &part[0], value,
                             &err),
          TSR_E_DATA, "posterior/rh");
    assert_int_equal(tsr_trace_get_part(reader, TSR_TRACE_OBSERVED_DATA,
                                        "intensity", &part[0], value, &err),
                     TSR_E_DATA); /* it has no draws */
}

TEST(test_shape_and_coordinates)
{
    int n_chain, n_draw, n;
    double *coord;
    tsr_trace_reader *reader = in_pieces();
    OK(tsr_trace_shape(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, "intensity",
                       &n_chain, &n_draw, &n, &err));
    assert_ints(n_chain, N_CHAIN, n_draw, N_DRAW, n, N_Q);
    static const tsr_trace_group with_q[] = {TSR_TRACE_POSTERIOR_PREDICTIVE,
                                             TSR_TRACE_OBSERVED_DATA};
    for (int i = 0; i < 2; i++) {
        OK(tsr_trace_coordinates(reader, with_q[i], "intensity", &n, &coord,
                                 &err));
        assert_int_equal(n, N_Q);
        for (int k = 0; k < n; k++)
            assert_true(coord[k] == 0.01 * (k + 1));
        free(coord);
    }
    /* texts are no numbers */
    OK(tsr_trace_coordinates(reader, TSR_TRACE_SAMPLE_STATS, "accepted", &n,
                             &coord, &err));
    assert_null(coord);
    assert_ints(n, N_MOVE,
                tsr_trace_shape(reader, TSR_TRACE_POSTERIOR, "none", &n_chain,
                                &n_draw, &n, NULL),
                TSR_E_DATA,
                tsr_trace_coordinates(reader, TSR_TRACE_POSTERIOR, "none", &n,
                                      &coord, NULL),
                TSR_E_DATA);
    assert_null(coord);
}

/* ---- the log ---- */

/* The log of a trace without draws. */
static tsr_draw_log *begin(void)
{
    tsr_draw_log *log;
    write_trace(0);
    OK(tsr_draw_log_new(io_dir, &log, &err));
    return own_tsr_draw_log(log);
}

/* Draws from..to as a record of the log, `more` bytes too long. */
static void log_draws(tsr_draw_log *log, tsr_draw_kind kind, long from, long to,
                      size_t more)
{
    const int is_warm = kind == TSR_DRAWN_WARMUP;
    OK(draws_log(log, kind, variable, is_warm ? WARM : RG,
                 is_warm ? WARM : CURVE, N_CHAIN, from, to, more));
}

/* A run that is killed and taken up again many times, always a little before
 * where it was. */
TEST(test_resumed)
{
    enum { WARM_DRAWS = 70, DRAWS = 3000 };
    unsigned random = 99;
    long checkpoint = 0;

    tsr_draw_log *log = begin();
    log_draws(log, TSR_DRAWN_WARMUP, 0, 50, 0);
    log_draws(log, TSR_DRAWN_WARMUP, 50, 90, 0);
    assert_int_equal(update(WARM_DRAWS, 0), TSR_E_DATA); /* no record's end */
    assert_has(err.message, "50 draws of warm-up");
    OK(update(0, -1));
    tsr_draw_log_remove(log);
    check(90, 0);
    OK(update(WARM_DRAWS, 0));
    while (checkpoint < DRAWS) {
        random = random * 1103515245u + 12345u;
        const long more = 1 + (long)(random >> 16) % 400;
        const long lost = (long)(random >> 8) % 60;
        const long last = checkpoint + more < DRAWS ? checkpoint + more : DRAWS;
        log_draws(log, TSR_DRAWN_KEPT, checkpoint, last, 0);
        log_draws(log, TSR_DRAWN_KEPT, last, last + lost, 0);
        OK(tsr_draw_log_sync(log, &err));
        if (random >> 30 == 0) /* somebody looks at it */
            check(WARM_DRAWS, (int)(last + lost));
        OK(update(WARM_DRAWS, last));
        tsr_draw_log_remove(log);
        assert_int_equal(size_of(log_path), -1);
        checkpoint = last;
    }
    check(WARM_DRAWS, DRAWS);
    FAILS(update(WARM_DRAWS, DRAWS + 1), TSR_E_DATA,
          "the checkpoint counts 3001");
    OK(update(WARM_DRAWS, 0));
    check(WARM_DRAWS, 0);
}

/* Beside a run the file is left alone; behind it, it is brought up to date, but
 * not through a link. */
TEST(test_read_beside_writer)
{
    char other[160];
    tsr_lock *lock;
    tsr_draw_log *log = begin();
    const long empty = size_of(path);
    log_draws(log, TSR_DRAWN_WARMUP, 0, 10, 0);
    log_draws(log, TSR_DRAWN_KEPT, 0, 400, 0);
    OK(tsr_lock_acquire(io_dir, &lock, &err));
    check(10, 400);
    assert_int_equal(size_of(path), empty);
    log_draws(log, TSR_DRAWN_KEPT, 400, 500, 0);
    check(10, 500);
    tsr_lock_free(lock);
    strcpy(other, io_path("elsewhere.h5"));
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    check(10, 500);
    assert_int_equal(size_of(other), empty);
    assert_int_equal(rename(other, path), 0);
    check(10, 500);
    assert_true(size_of(path) > empty);
    assert_int_equal(unlink(log_path), 0);
    check(10, 500);
}

/* Whatever byte the log ends at, it holds its complete records. */
TEST(test_torn)
{
    tsr_draw_log *log = begin();
    log_draws(log, TSR_DRAWN_KEPT, 0, 3, 0);
    const long first = size_of(log_path);
    log_draws(log, TSR_DRAWN_KEPT, 3, 4, 0);
    const long second = size_of(log_path);
    for (long size = second; size >= 0; size -= 37) {
        assert_int_equal(truncate(log_path, size), 0);
        OK(update(0, 0));
        check(0, size >= second ? 4 : size >= first ? 3 : 0);
    }
}

/* A record that a bit of is wrong ends the log. */
TEST(test_log_damaged)
{
    tsr_draw_log *log = begin();
    log_draws(log, TSR_DRAWN_KEPT, 0, 3, 0);
    const long first = size_of(log_path);
    log_draws(log, TSR_DRAWN_KEPT, 3, 4, 0);
    log_draws(log, TSR_DRAWN_KEPT, 4, 6, 0);
    const long second = first + (first - 72) / 3 + 72;
    for (long at = first; at < second; at += at < first + 72 ? 1 : 41) {
        for (int i = 0; i < 2; i++) {
            flip(log_path, at, 3);
            OK(update(0, 0));
            check(0, i == 0 ? 3 : 6);
        }
    }
}

TEST(test_log_refused)
{
    tsr_draw_log *log = begin();
    log_draws(log, TSR_DRAWN_KEPT, 5, 6, 0);
    FAILS(update(0, -1), TSR_E_DATA, "has 0 draws");
    tsr_draw_log_remove(log);
    log_draws(log, TSR_DRAWN_KEPT, 0, 6, 1);
    FAILS(update(0, -1), TSR_E_DATA, "belongs to another run");
    tsr_draw_log_remove(log);
    check(0, 0);

    const tsr_draw_record one = {.n_chain = 1, .n_state = 1};
    assert_int_equal(symlink(path, log_path), 0);
    const long size = size_of(path);
    assert_int_equal(tsr_draw_log_begin(log, &one, &err), TSR_E_IO);
    assert_int_equal(size_of(path), size);
    assert_int_equal(unlink(log_path), 0);
    log_draws(log, TSR_DRAWN_KEPT, 0, 6, 0);
    assert_int_equal(unlink(log_path), 0);
    FAILS(tsr_draw_log_sync(log, &err), TSR_E_IO, "No such file");
    tsr_draw_log_free(NULL);
}

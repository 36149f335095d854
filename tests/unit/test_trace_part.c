/* Parts, sizes and coordinates of a trace, read without the whole. */
#include "io_files.h"
#include "store/trace.h"
#include "tests/test.h"

enum { N_CHAIN = 3, N_DRAW = 700, N_Q = 37 };
enum { RG, CURVE, MOVES, OBSERVED, N_VARIABLE };

static const char *const moves[] = {"pivot", "side_chain", "r\xc3\xa9gime"};
enum { N_MOVE = 3 };

static double value_at(int chain, int draw, int k)
{
    return chain * 1000.0 + draw + k / 64.0; /* exact in float32 */
}

/* Draws in two pieces, so that the blocks of the file are not the writer's. */
static void append(tsr_trace *trace, int v, int n, int from, int count)
{
    double *value =
        malloc((size_t)N_CHAIN * (size_t)count * (size_t)n * sizeof *value);
    double *to = value;
    for (int c = 0; c < N_CHAIN; c++)
        for (int d = 0; d < count; d++)
            for (int k = 0; k < n; k++)
                *to++ = value_at(c, from + d, k);
    OK(tsr_trace_append(trace, v, count, value, &err));
    free(value);
}

static tsr_trace_reader *make(const char *path)
{
    double q[N_Q];
    tsr_trace *trace;
    tsr_trace_reader *reader;
    for (int k = 0; k < N_Q; k++)
        q[k] = 0.01 * (k + 1);
    const tsr_trace_variable variable[N_VARIABLE] = {
        [RG] = {.group = TSR_TRACE_POSTERIOR, .name = "rg", .n = 1},
        [CURVE] = {.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
                   .name = "intensity_mean",
                   .dim = "q",
                   .n = N_Q,
                   .coord = q,
                   .single = 1},
        [MOVES] = {.group = TSR_TRACE_SAMPLE_STATS,
                   .name = "acceptance",
                   .dim = "move",
                   .n = N_MOVE,
                   .coord_label = moves},
        [OBSERVED] = {.group = TSR_TRACE_OBSERVED_DATA,
                      .name = "intensity",
                      .dim = "q",
                      .n = N_Q,
                      .coord = q}};
    OK(tsr_trace_create(path, N_CHAIN, N_VARIABLE, variable, 0, NULL, &trace,
                        &err));
    append(trace, RG, 1, 0, 300);
    append(trace, CURVE, N_Q, 0, 300);
    append(trace, MOVES, N_MOVE, 0, 300);
    append(trace, RG, 1, 300, N_DRAW - 300);
    append(trace, CURVE, N_Q, 300, N_DRAW - 300);
    OK(tsr_trace_put(trace, OBSERVED, q, &err));
    OK(tsr_trace_close(trace, &err));
    OK(tsr_trace_open(path, &reader, &err));
    return reader;
}

static void check(tsr_trace_reader *reader, tsr_trace_group group,
                  const char *name, const tsr_trace_part *part)
{
    size_t count = (size_t)N_CHAIN * (size_t)part->n_draw * (size_t)part->n + 1;
    double *value = calloc(count, sizeof *value);
    const double *at = value;
    value[count - 1] = -1.0;
    OK(tsr_trace_get_part(reader, group, name, part, value, &err));
    for (int c = 0; c < N_CHAIN; c++)
        for (int d = 0; d < part->n_draw; d++)
            for (int k = 0; k < part->n; k++, at++)
                if (*at !=
                    value_at(c, part->draw_from + d, part->entry_from + k))
                    fail_msg("[%d][%d][%d] is %g", c, d, k, *at);
    assert_true(*at == -1.0); /* nothing beyond */
    free(value);
}

TEST(test_parts)
{
    static const tsr_trace_part part[] = {
        {0, N_DRAW, 0, N_Q}, {0, N_DRAW, 5, 1}, {123, 400, 30, 7},
        {699, 1, 36, 1},     {0, 0, 0, N_Q},    {10, 20, 3, 0},
    };
    tsr_trace_reader *reader = make(io_path("trace.h5"));
    for (size_t i = 0; i < COUNT_OF(part); i++)
        check(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, "intensity_mean",
              &part[i]);
    const tsr_trace_part scalar = {250, 333, 0, 1};
    check(reader, TSR_TRACE_POSTERIOR, "rg", &scalar);
    tsr_trace_reader_free(reader);
}

TEST(test_outside)
{
    static const tsr_trace_part part[] = {
        {1, N_DRAW, 0, 1}, {0, 1, 0, N_Q + 1},    {0, 1, N_Q, 1}, {-1, 1, 0, 1},
        {0, -1, 0, 1},     {N_DRAW + 1, 0, 0, 1}, {0, 1, 0, -1},
    };
    double value[N_CHAIN * (N_Q + 1)];
    tsr_trace_reader *reader = make(io_path("trace.h5"));
    for (size_t i = 0; i < COUNT_OF(part); i++) {
        FAILS(tsr_trace_get_part(reader, TSR_TRACE_POSTERIOR_PREDICTIVE,
                                 "intensity_mean", &part[i], value, &err),
              TSR_E_DATA, "700 draws of 37");
    }
    FAILS(tsr_trace_get_part(reader, TSR_TRACE_POSTERIOR, "rh", &part[0], value,
                             &err),
          TSR_E_DATA, "posterior/rh");
    assert_int_equal(tsr_trace_get_part(reader, TSR_TRACE_OBSERVED_DATA,
                                        "intensity", &part[0], value, &err),
                     TSR_E_DATA); /* it has no draws */
    tsr_trace_reader_free(reader);
}

TEST(test_shape_and_coordinates)
{
    int n_chain, n_draw, n;
    double *coord;
    tsr_trace_reader *reader = make(io_path("trace.h5"));
    OK(tsr_trace_shape(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, "intensity_mean",
                       &n_chain, &n_draw, &n, &err));
    assert_int_equal(n_chain, N_CHAIN);
    assert_int_equal(n_draw, N_DRAW);
    assert_int_equal(n, N_Q);
    static const struct {
        tsr_trace_group group;
        const char *name;
    } with_q[] = {{TSR_TRACE_POSTERIOR_PREDICTIVE, "intensity_mean"},
                  {TSR_TRACE_OBSERVED_DATA, "intensity"}};
    for (int i = 0; i < 2; i++) {
        OK(tsr_trace_coordinates(reader, with_q[i].group, with_q[i].name, &n,
                                 &coord, &err));
        assert_int_equal(n, N_Q);
        for (int k = 0; k < n; k++)
            assert_true(coord[k] == 0.01 * (k + 1));
        free(coord);
    }
    /* texts are no numbers */
    OK(tsr_trace_coordinates(reader, TSR_TRACE_SAMPLE_STATS, "acceptance", &n,
                             &coord, &err));
    assert_null(coord);
    assert_int_equal(n, N_MOVE);
    assert_int_equal(tsr_trace_shape(reader, TSR_TRACE_POSTERIOR, "none",
                                     &n_chain, &n_draw, &n, NULL),
                     TSR_E_DATA);
    assert_int_equal(tsr_trace_coordinates(reader, TSR_TRACE_POSTERIOR, "none",
                                           &n, &coord, NULL),
                     TSR_E_DATA);
    assert_null(coord);
    tsr_trace_reader_free(reader);
}

static test_fixture around_each = {io_setup, io_teardown};

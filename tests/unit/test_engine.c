/* Profiles of the reference engine equal closed forms, and every engine refuses
 * the same wrong input. */
#include "../engine_support.h"
#include "gpu/engine_device.h"
#include "tests/test.h"

enum { N_Q = 40 };
static const double dq = 0.02;

static double sinc(double x)
{
    return x > 0.0 ? sin(x) / x : 1.0;
}

typedef struct {
    tsr_engine *engine;
    tsr_batch *batch;
} open_engine;

static open_engine start(const tsr_engine_spec *spec)
{
    open_engine e;
    OK(tsr_engine_reference_new(spec, &e.engine, &err));
    OK(tsr_batch_new(e.engine, 2, &e.batch, &err));
    return e;
}

static void stop(open_engine *e)
{
    tsr_batch_free(e->batch);
    tsr_engine_free(e->engine);
}

static tsr_engine_spec spec_of(int n_body, const int *type, int n_type,
                               const double *form_factor)
{
    return (tsr_engine_spec){.n_body = n_body,
                             .n_type = n_type,
                             .n_q = N_Q,
                             .dq_inv_ang = dq,
                             .n_system = 2,
                             .type = type,
                             .form_factor = form_factor};
}

TEST(two_bodies)
{
    int type[2] = {0, 1};
    double ff[2 * N_Q], xyz[2][3] = {{1, 2, 3}, {1, 6, 6}}, profile[N_Q];
    for (int k = 0; k < N_Q; k++) {
        ff[k] = 3.0 + 0.1 * k;
        ff[N_Q + k] = -2.0 + 0.05 * k;
    }
    tsr_engine_spec spec = spec_of(2, type, 2, ff);
    open_engine e = start(&spec);
    OK(tsr_batch_set(e.batch, 0, (const double(*)[3])xyz, profile, &err));
    for (int k = 0; k < N_Q; k++) {
        double f = ff[k], g = ff[N_Q + k];
        double exact = f * f + g * g + 2 * f * g * sinc(k * dq * 5.0);
        assert_near(profile[k], exact, 1e-13 * (f * f + g * g));
    }
    stop(&e);
}

/* n equal bodies on a line at spacing a: sum_m 2 (n - m) sinc(q a m) + n. */
TEST(line_and_coincident)
{
    enum { N = 50 };
    int type[N] = {0};
    double ff[N_Q], xyz[N][3] = {{0}}, profile[N_Q];
    for (int k = 0; k < N_Q; k++)
        ff[k] = 1.5;
    tsr_engine_spec spec = spec_of(N, type, 1, ff);
    open_engine e = start(&spec);
    for (int i = 0; i < N; i++)
        xyz[i][2] = 3.8 * i - 20.0;
    OK(tsr_batch_set(e.batch, 0, (const double(*)[3])xyz, profile, &err));
    for (int k = 0; k < N_Q; k++) {
        double sum = N;
        for (int m = 1; m < N; m++)
            sum += 2.0 * (N - m) * sinc(k * dq * 3.8 * m);
        assert_near(profile[k] / (2.25 * sum), 1.0, 1e-12);
    }
    memset(xyz, 0, sizeof xyz);
    OK(tsr_batch_set(e.batch, 1, (const double(*)[3])xyz, profile, &err));
    for (int k = 0; k < N_Q; k++)
        assert_near(profile[k] / (2.25 * N * N), 1.0, 1e-13);
    stop(&e);
}

TEST(update_equals_set)
{
    enum { N = 70 };
    int type[N];
    double ff[2 * N_Q], xyz[N][3], before[N_Q], after[N_Q], fresh[N_Q];
    uint64_t random = 1;
    for (int i = 0; i < N; i++) {
        type[i] = i % 2;
        for (int c = 0; c < 3; c++)
            xyz[i][c] = 40.0 * uniform(&random);
    }
    for (int k = 0; k < 2 * N_Q; k++)
        ff[k] = 1.0 + uniform(&random);
    tsr_engine_spec spec = spec_of(N, type, 2, ff);
    open_engine e = start(&spec);
    OK(tsr_batch_set(e.batch, 0, (const double(*)[3])xyz, before, &err));
    double sum = 0.0;
    for (int i = 0; i < N; i++)
        sum += ff[type[i] * N_Q];
    assert_near(before[0] / (sum * sum), 1.0, 1e-13);
    double moved[5][3];
    for (int i = 0; i < 15; i++)
        moved[i / 3][i % 3] = 40.0 * uniform(&random);
    tsr_body_range range = {14, 5, 0, (const double(*)[3])moved};
    tsr_body_proposal proposal = {0, 1, &range};
    OK(tsr_batch_submit(e.batch, 1, &proposal, &err));
    OK(tsr_batch_wait(e.batch, after, &err));
    tsr_batch_reject(e.batch, 0);
    OK(tsr_batch_profile(e.batch, 0, fresh, &err));
    assert_memory_equal(fresh, before, sizeof before);
    OK(tsr_batch_submit(e.batch, 1, &proposal, &err));
    OK(tsr_batch_wait(e.batch, after, &err));
    tsr_batch_accept(e.batch, 0);
    memcpy(xyz + 14, moved, sizeof moved);
    OK(tsr_batch_set(e.batch, 1, (const double(*)[3])xyz, fresh, &err));
    assert_memory_equal(after, fresh, sizeof fresh);
    stop(&e);
}

/* What rounding explains, and what it does not. */
TEST(rounding)
{
    int type[3] = {0, 1, 0};
    double ff[2 * N_Q], bound[N_Q], profile[N_Q], right[N_Q], allowed;
    const double unit = 0x1p-24, places = 8.0 * 32.0 * sqrt(2.0 * 129.0);
    for (int k = 0; k < N_Q; k++) {
        ff[k] = 3.0 + 0.1 * k;
        ff[N_Q + k] = -2.0;
    }
    tsr_engine_spec spec = spec_of(3, type, 2, ff);
    tsr_engine_rounding(&spec, unit, 32, 129, bound);
    for (int k = 0; k < N_Q; k++) {
        double size = 2.0 * ff[k] + 2.0, square = 2.0 * ff[k] * ff[k] + 4.0;
        assert_near(bound[k] / unit / (8.0 * size * size + places * square),
                    1.0, 1e-12);
    }
    open_engine e = start(&spec);
    memcpy(e.engine->rounding, bound, sizeof bound);
    for (int k = 0; k < N_Q; k++) {
        right[k] = k - 20.0; /* some are 0 or negative */
        profile[k] = right[k] + 0.99 * (bound[k] + 1e-5 * fabs(right[k]));
    }
    assert_int_equal(
        tsr_engine_worst_difference(e.engine, profile, right, &allowed), -1);
    profile[7] = right[7] - 1.01 * (bound[7] + 1e-5 * fabs(right[7]));
    assert_int_equal(
        tsr_engine_worst_difference(e.engine, profile, right, &allowed), 7);
    assert_near(allowed - bound[7], 13e-5, 1e-12);
    profile[20] = (double)NAN;
    assert_int_equal(
        tsr_engine_worst_difference(e.engine, profile, right, &allowed), 20);
    stop(&e);
}

/* Joined engines answer as each alone, accept and reject together, and after a
 * failure of one all are where they were. */
TEST(joined)
{
    enum { N = 40, ROW = (1 + 3) * N_Q };
    int type[N];
    double ff[4 * N_Q], xyz[N][3], own[2][3 * N_Q], both[2 * ROW], was[ROW];
    uint64_t random = 3;
    for (int i = 0; i < N; i++) {
        type[i] = i % 2;
        for (int c = 0; c < 3; c++)
            xyz[i][c] = 30.0 * uniform(&random);
    }
    for (int k = 0; k < 4 * N_Q; k++)
        ff[k] = uniform(&random) - 0.3;
    tsr_engine_spec spec[2] = {spec_of(N, type, 2, ff),
                               spec_of(N, type, 2, ff)};
    spec[1].n_comp = 2;
    spec[1].d_bound_ang = 60.0; /* of one part alone */
    open_engine alone[2] = {start(&spec[0]), start(&spec[1])};
    tsr_engine *part[2], *engine;
    tsr_batch *batch;
    for (int i = 0; i < 2; i++)
        OK(tsr_engine_reference_new(&spec[i], &part[i], &err));
    OK(tsr_engine_join(2, part, &engine, &err));
    assert_int_equal(engine->n_pair, 4);
    OK(tsr_batch_new(engine, 2, &batch, &err));
    for (int s = 0; s < 2; s++)
        OK(tsr_batch_set(batch, s, (const double(*)[3])xyz, was, &err));
    double moved[2][3] = {{1, 2, 3}, {5, 5, 5}}, far[1][3] = {{90, 0, 0}};
    const tsr_body_range near = {7, 2, 0, (const double(*)[3])moved};
    const tsr_body_range beyond = {7, 1, 0, (const double(*)[3])far};
    const tsr_body_proposal ask[2] = {{1, 1, &near}, {0, 1, &near}};
    const tsr_body_proposal bad = {0, 1, &beyond};
    assert_int_equal(tsr_batch_submit(batch, 1, &bad, &err), TSR_E_RANGE);
    OK(tsr_batch_submit(batch, 2, ask, &err));
    OK(tsr_batch_wait(batch, both, &err));
    tsr_batch_accept(batch, 1);
    tsr_batch_reject(batch, 0);
    memcpy(xyz + 7, moved, sizeof moved);
    for (int i = 0; i < 2; i++)
        OK(tsr_batch_set(alone[i].batch, 0, (const double(*)[3])xyz, own[i],
                         &err));
    for (int p = 0; p < 2; p++) {
        assert_memory_equal(both + p * ROW, own[0], N_Q * sizeof(double));
        assert_memory_equal(both + p * ROW + N_Q, own[1], sizeof own[1]);
    }
    OK(tsr_batch_profile(batch, 1, both + ROW, &err));
    assert_memory_equal(both + ROW, both, ROW * sizeof(double));
    OK(tsr_batch_profile(batch, 0, both, &err));
    assert_memory_equal(both, was, sizeof was);
    for (int k = 0; k < 3 * N_Q; k++)
        assert_true(engine->rounding[N_Q + k] == part[1]->rounding[k]);
    tsr_batch_free(batch);
    tsr_engine_free(engine);
    stop(&alone[0]);
    stop(&alone[1]);
}

TEST(refusals)
{
    int type[2] = {0, 3};
    double ff[N_Q] = {1.0};
    tsr_engine *engine;
    tsr_engine_spec spec = spec_of(2, type, 1, ff);
    FAILS(tsr_engine_reference_new(&spec, &engine, &err), TSR_E_INTERNAL,
          "body 1 has type 3");
    type[1] = 0;
    ff[5] = (double)NAN;
    assert_int_equal(tsr_engine_spec_check(&spec, &err), TSR_E_INTERNAL);
    ff[5] = 0.0;
    spec.n_q = 1;
    assert_int_equal(tsr_engine_spec_check(&spec, &err), TSR_E_INTERNAL);
    spec.n_q = N_Q;
    spec.dq_inv_ang = -1.0;
    assert_int_equal(tsr_engine_spec_check(&spec, &err), TSR_E_INTERNAL);
}

TEST(largest_distance)
{
    enum { N = 400 };
    static double xyz[N][3];
    uint64_t random = 7;
    for (int round = 0; round < 20; round++) {
        double best = 0.0;
        for (int i = 0; i < N; i++)
            for (int c = 0; c < 3; c++)
                xyz[i][c] =
                    (1 + c * round) * (uniform(&random) - 0.5) + 100.0 * c;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++) {
                double d2 = 0.0;
                for (int c = 0; c < 3; c++)
                    d2 += (xyz[i][c] - xyz[j][c]) * (xyz[i][c] - xyz[j][c]);
                best = d2 > best ? d2 : best;
            }
        assert_near(tsr_largest_distance(N, (const double(*)[3])xyz),
                    sqrt(best), 1e-12 * sqrt(best));
    }
    assert_true(tsr_largest_distance(1, (const double(*)[3])xyz) < 1e-300);
}

/* How many tiles are dirty. */
static int count_dirty(const tsr_dirty_tiles *dirty,
                       const tsr_tile_shape *shape)
{
    int n = 0;
    for (int row = 0; row < shape->n_block; row++)
        for (int column = 0; column <= row; column++)
            n += (int)(tsr_dirty_tiles_bits(dirty, shape, row, 0) >> column &
                       1U);
    assert_int_equal(n == 0, tsr_dirty_tiles_is_empty(dirty, shape));
    return n;
}

/* Dirty tiles: bodies 0..9 and 30..39 in blocks of 10, 45 bodies. */
TEST(dirty_rule)
{
    tsr_tile_shape shape = tsr_tile_shape_make(45, 32, 1, 10, 64);
    CLEARED(tsr_pool) pool = {0};
    tsr_dirty_tiles dirty;
    uint32_t select[5] = {0};
    assert_int_equal(shape.n_tile, 15);
    tsr_dirty_tiles_make(&dirty, &shape, &pool);
    OK(tsr_pool_check(&pool, &err));
    tsr_body_range one = {12, 1, 0, NULL};
    tsr_dirty_tiles_mark(&dirty, &shape, 1, &one);
    assert_int_equal(count_dirty(&dirty, &shape), 5);
    tsr_body_range rigid = {20, 25, 1, NULL}; /* blocks 2, 3 and padded 4 */
    tsr_dirty_tiles_mark(&dirty, &shape, 1, &rigid);
    assert_int_equal(count_dirty(&dirty, &shape), 6);
    tsr_body_range two[2] = {{0, 10, 1, NULL}, {30, 10, 1, NULL}};
    tsr_dirty_tiles_mark(&dirty, &shape, 2, two); /* clean: 00, 30, 33 */
    assert_int_equal(count_dirty(&dirty, &shape), 6);
    assert_int_equal(dirty.n_group, 1);
    tsr_dirty_tiles_flip(&dirty, &shape, select);
    static const uint32_t flipped[5] = {0x16, 0x09, 0x09, 0x16, 0x09};
    assert_memory_equal(select, flipped, sizeof flipped);
    tsr_dirty_tiles_flip(&dirty, &shape, select);
    assert_int_equal(select[0] | select[1] | select[2] | select[3] | select[4],
                     0);
    two[1].group = 2; /* 00 and 33 clean, 30 not */
    tsr_dirty_tiles_mark(&dirty, &shape, 2, two);
    assert_int_equal(count_dirty(&dirty, &shape), 7);
    two[1] = (tsr_body_range){30, 9, 1, NULL}; /* body 39 stayed: 30, 33 too */
    tsr_dirty_tiles_mark(&dirty, &shape, 2, two);
    assert_int_equal(count_dirty(&dirty, &shape), 8);
    two[1] = (tsr_body_range){10, 35, 1, NULL}; /* all as one */
    tsr_dirty_tiles_mark(&dirty, &shape, 2, two);
    assert_int_equal(count_dirty(&dirty, &shape), 0);
    two[1].group = 2;
    tsr_dirty_tiles_mark(&dirty, &shape, 2, two);
    assert_int_equal(count_dirty(&dirty, &shape), 4);
}

/* The plane-wave engine has the profile of the coordinates after any moves of
 * rigid units and loose bodies, and refuses units that are not rigid. */
#include "../engine_support.h"
#include "tests/test.h"

#include "core/vec3.h"
#include "gpu/engine_device.h"
#include "scattering/plane_wave.h"

/* Two units, large enough for tables on a GPU, loose bodies between and behind
 * them, and a unit that is too small for a table. */
enum {
    N_UNIT = 165,
    SECOND = N_UNIT + 10,
    THIRD = SECOND + N_UNIT,
    N_THIRD = 10
};
enum { LOOSE = THIRD + 15, N_BODY = THIRD + 20 };
enum { N_Q = 21, N_COMP = 2, N_SYSTEM = 2 };

static const double dq = 0.016, d_bound = 140.0, radius_ang = 18.0;

typedef struct {
    int type[N_BODY], unit[N_BODY];
    double factor[N_COMP * N_BODY * N_Q];
    double xyz[N_BODY][3];
    tsr_engine_spec spec;
} problem;

static void random_place(uint64_t *random, double x[3])
{
    for (int c = 0; c < 3; c++)
        x[c] = radius_ang * (2.0 * uniform(random) - 1.0);
}

/* Every body is a type of its own, as with exposures. */
static void make_problem(problem *p)
{
    uint64_t random = 11;
    for (int i = 0; i < N_BODY; i++) {
        p->type[i] = i;
        p->unit[i] = i < N_UNIT                           ? 3
                     : i >= SECOND && i < SECOND + N_UNIT ? 1
                     : i >= THIRD && i < THIRD + N_THIRD  ? 0
                                                          : -1;
        random_place(&random, p->xyz[i]);
        p->xyz[i][0] += i < N_UNIT ? -20.0 : i < SECOND ? 0.0 : 20.0;
        for (int a = 0; a < N_COMP; a++) {
            const double size =
                (a == 0 ? 8.0 : -3.0) * (0.5 + uniform(&random));
            for (int k = 0; k < N_Q; k++)
                p->factor[(a * N_BODY + i) * N_Q + k] =
                    size * exp(-(1.0 + a) * k * k * dq * dq);
        }
    }
    p->spec = (tsr_engine_spec){.n_body = N_BODY,
                                .n_type = N_BODY,
                                .n_comp = N_COMP,
                                .n_q = N_Q,
                                .dq_inv_ang = dq,
                                .n_system = N_SYSTEM,
                                .type = p->type,
                                .form_factor = p->factor,
                                .d_bound_ang = d_bound,
                                .unit = p->unit,
                                .rigid = (const double(*)[3])p->xyz};
}

typedef struct {
    tsr_device *device;
    tsr_engine *engine;
    tsr_batch *batch;
} opened;

/* Where there is no device the test is skipped. */
static opened open_waves(const problem *p)
{
    opened o = {.device = need_device()};
    MAKE(tsr_engine, o.engine, tsr_engine_plane_wave_new, &p->spec, o.device,
         0);
    MAKE(tsr_batch, o.batch, tsr_batch_new, o.engine, N_SYSTEM);
    return o;
}

static tsr_motion motion_of(uint64_t *random, const double about[3])
{
    double axis[3];
    tsr_motion motion;
    random_place(random, axis);
    for (int c = 0; c < 3; c++)
        axis[c] += about[c];
    tsr_motion_about(&motion, about, axis, 3.0 * uniform(random));
    for (int c = 0; c < 3; c++)
        motion.shift[c] += 40.0 * (uniform(random) - 0.5);
    return motion;
}

/* First of the points that a place on the circle is read from, and the kernel
 * at all of them. */
static size_t weights(double at, double *out)
{
    float c[TSR_AMPLITUDE_TERMS][TSR_AMPLITUDE_WIDTH];
    const double first = floor(at), angle = acos(2.0 * (at - first) - 1.0);
    tsr_amplitude_kernel(c);
    for (int j = 0; j < TSR_AMPLITUDE_WIDTH; j++) {
        out[j] = 0.0;
        for (int i = 0; i < TSR_AMPLITUDE_TERMS; i++)
            out[j] += (double)c[i][j] * cos(i * angle);
    }
    return (size_t)first;
}

/* What devices read, in double precision: out [BAND][n_comp][2]. */
static void read_table(const tsr_amplitude_table *t, const double n[3],
                       double *out)
{
    const double pi = acos(-1.0), per = t->n_circle / (2.0 * pi);
    const double theta = atan2(hypot(n[0], n[1]), n[2]);
    double phi = atan2(n[1], n[0]), row[TSR_AMPLITUDE_WIDTH],
           column[TSR_AMPLITUDE_WIDTH];
    phi += phi < 0.0 ? 2.0 * pi : 0.0;
    const size_t r = weights(theta * per, row), c = weights(phi * per, column);
    const size_t each = (size_t)(2 * TSR_AMPLITUDE_BAND * t->n_comp);
    memset(out, 0, each * sizeof *out);
    for (size_t i = 0; i < TSR_AMPLITUDE_WIDTH; i++)
        for (size_t j = 0; j < TSR_AMPLITUDE_WIDTH; j++) {
            const float *at =
                t->value + ((r + i) * (size_t)t->columns + c + j) * each;
            for (size_t k = 0; k < each; k++)
                out[k] += row[i] * column[j] * (double)at[k];
        }
}

/* The unit's amplitude by its sum. */
static void sum_up(const problem *p, const double n[3], int comp, int k,
                   double out[2])
{
    out[0] = out[1] = 0.0;
    for (int i = 0; i < N_UNIT; i++) {
        const double f = p->factor[(comp * N_BODY + i) * N_Q + k];
        const double phase = k * dq * tsr_vec3_dot(n, p->xyz[i]);
        out[0] += f * cos(phase);
        out[1] += f * sin(phase);
    }
}

static double norm(const double *a)
{
    return hypot(a[0], a[1]);
}

TEST(table_reads)
{
    static problem p;
    double *exact = array(N_BODY * 8 * N_COMP * 2, sizeof *exact);
    double(*n)[3] = array(N_BODY, sizeof *n);
    uint64_t random = 3;
    assert_non_null(n);
    make_problem(&p);
    const tsr_debye_spec spec = {.n = N_UNIT,
                                 .n_type = N_BODY,
                                 .n_comp = N_COMP,
                                 .n_q = N_Q,
                                 .dq_inv_ang = dq,
                                 .xyz = (const double(*)[3])p.xyz,
                                 .type = p.type,
                                 .form_factor = p.factor};
    for (int i = 0; i < N_BODY; i++) {
        random_place(&random, n[i]);
        if (i < 6) /* poles, and where angles begin */
            for (int c = 0; c < 3; c++)
                n[i][c] = c == i / 2 ? (i % 2 ? -1.0 : 1.0) : 1e-9 * (i % 2);
        tsr_vec3_normalize(n[i]);
    }
    for (int low = 0; low < N_Q; low += TSR_AMPLITUDE_BAND) {
        const int n_k = N_Q - low < 8 ? N_Q - low : 8;
        double got[TSR_AMPLITUDE_BAND * N_COMP * 2], square[8 * N_COMP] = {0.0};
        tsr_amplitude_table t;
        tsr_pool *pool = new_pool();
        OK(tsr_amplitude_table_make(&spec, low, 2, pool, &t, &err));
        for (int i = 0; i < N_BODY; i++)
            for (int j = 0; j < n_k * N_COMP; j++) {
                double *at = exact + 2 * (i * n_k * N_COMP + j);
                sum_up(&p, n[i], j % N_COMP, low + j / N_COMP, at);
                square[j] += pow(norm(at), 2) / N_BODY;
            }
        for (int i = 0; i < N_BODY; i++) {
            read_table(&t, n[i], got);
            for (int j = 0; j < n_k * N_COMP; j++) {
                const double *at = exact + 2 * (i * n_k * N_COMP + j);
                const double off[2] = {got[2 * j] - at[0],
                                       got[2 * j + 1] - at[1]};
                if (!(norm(off) <= 3e-5 * sqrt(square[j])))
                    fail_msg("q %d, direction %d: off by %.1e", low, i,
                             norm(off) / sqrt(square[j]));
            }
        }
        double reach = 0.0;
        for (int i = 0; i < N_UNIT; i++)
            reach = fmax(reach, tsr_vec3_norm(p.xyz[i]));
        assert_true(
            tsr_amplitude_table_size((low + n_k - 1) * dq, reach, N_COMP) ==
            (double)t.rows * t.columns * 16 * N_COMP);
    }
}

typedef struct {
    double now[N_SYSTEM][N_BODY][3], then[N_SYSTEM][N_BODY][3];
    tsr_body_range range[N_SYSTEM][3];
    int n_range[N_SYSTEM];
} positions;

static void move_rigid(positions *x, int s, int first, int count,
                       const tsr_motion *motion)
{
    for (int i = first; i < first + count; i++)
        tsr_motion_apply(motion, x->then[s][i]);
    x->range[s][x->n_range[s]++] = (tsr_body_range){
        first, count, 1, (const double(*)[3])(x->then[s] + first)};
}

static double largest(const double (*xyz)[3])
{
    double most2 = 0.0;
    for (int i = 0; i < N_BODY; i++)
        for (int j = 0; j < i; j++)
            most2 = fmax(most2, tsr_vec3_distance2(xyz[i], xyz[j]));
    return sqrt(most2);
}

/* A unit with the loose bodies next to it, both units, loose bodies, or all. */
static void propose(positions *x, int s, uint64_t *random)
{
    const int kind = (int)(5.0 * uniform(random));
    memcpy(x->then[s], x->now[s], sizeof x->then[s]);
    x->n_range[s] = 0;
    if (kind == 0) {
        const tsr_motion m = motion_of(random, x->now[s][N_UNIT + 5]);
        move_rigid(x, s, 0, N_UNIT + 5, &m);
    } else if (kind == 1) {
        const tsr_motion m = motion_of(random, x->now[s][N_UNIT + 6]);
        move_rigid(x, s, N_UNIT + 7, N_BODY - N_UNIT - 7, &m);
    } else if (kind == 2) { /* the same for both, and what is between stays */
        const tsr_motion m = motion_of(random, x->now[s][N_UNIT + 5]);
        move_rigid(x, s, 0, N_UNIT, &m);
        move_rigid(x, s, SECOND, N_UNIT, &m);
    } else if (kind == 3) { /* far from where it was */
        tsr_motion m = motion_of(random, x->now[s][THIRD + 5]);
        m.shift[2] += 500.0;
        move_rigid(x, s, 0, N_BODY, &m);
    } else {
        const tsr_motion m = motion_of(random, x->now[s][THIRD + 5]);
        move_rigid(x, s, THIRD, N_THIRD, &m);
        for (int c = 0; c < 3; c++)
            x->then[s][LOOSE][c] += uniform(random) - 0.5;
        x->range[s][x->n_range[s]++] = (tsr_body_range){
            LOOSE, 1, 0, (const double(*)[3])(x->then[s] + LOOSE)};
    }
}

static void check(const problem *p, const double (*xyz)[3], const double *got,
                  const tsr_engine *engine)
{
    static const int own[3] = {0, 0, 2};
    double exact[3 * N_Q], allowed;
    tsr_engine_spec spec = p->spec;
    spec.n_system = 1;
    NEW(tsr_engine, reference, tsr_engine_reference_new, &spec);
    NEW(tsr_batch, batch, tsr_batch_new, reference, 1);
    OK(tsr_batch_set(batch, 0, xyz, exact, &err));
    for (int pair = 0; pair < 3; pair++)
        for (int k = 0; k < N_Q; k++) {
            const double size =
                sqrt(exact[k] * exact[2 * N_Q + k]) * (pair == 1) +
                exact[own[pair] * N_Q + k] * (pair != 1);
            const double off =
                fabs(got[pair * N_Q + k] - exact[pair * N_Q + k]) / size;
            if (!(off <= 1e-5))
                fail_msg("pair %d, q %d is off by %.1e", pair, k, off);
        }
    assert_int_equal(tsr_engine_worst_difference(engine, got, exact, &allowed),
                     -1);
}

/* Returns the number of sets of directions that the steps used. */
static int move_units(const problem *p, int n_step)
{
    static positions x;
    double profile[N_SYSTEM * 3 * N_Q];
    uint64_t random = 5;
    int n_taken = 0, n_far = 0, n_set = 0, levels[TSR_PLANE_WAVE_LEVELS] = {0};
    opened o = open_waves(p);
    tsr_engine *engine = o.engine;
    tsr_batch *batch = o.batch;
    assert_has(engine->description, "2 rigid units");
    for (int s = 0; s < N_SYSTEM; s++) {
        memcpy(x.now[s], p->xyz, sizeof p->xyz);
        for (int b = 0; b < N_BODY; b++) /* each begins somewhere else */
            x.now[s][b][0] += 700.3 * s;
        OK(tsr_batch_set(batch, s, (const double(*)[3])x.now[s], profile,
                         &err));
        check(p, (const double(*)[3])x.now[s], profile, engine);
    }
    for (int step = 0; step < n_step; step++) {
        tsr_body_proposal ask[N_SYSTEM];
        for (int s = 0; s < N_SYSTEM; s++) {
            propose(&x, s, &random);
            ask[s] = (tsr_body_proposal){s, x.n_range[s], x.range[s]};
        }
        double d = 0.0;
        for (int s = 0; s < N_SYSTEM; s++)
            d = fmax(d, largest((const double(*)[3])x.then[s]));
        if (fabs(d / d_bound - 1.0) < 1e-5)
            continue;
        const tsr_status status = tsr_batch_submit(batch, N_SYSTEM, ask, &err);
        assert_int_equal(status, d > d_bound ? TSR_E_RANGE : TSR_OK);
        n_far += status != TSR_OK;
        if (status != TSR_OK)
            continue;
        OK(tsr_batch_wait(batch, profile, &err));
        for (int s = 0; s < N_SYSTEM; s++)
            levels[tsr_plane_wave_level(engine, s)]++;
        for (int s = 0; s < N_SYSTEM; s++)
            if (uniform(&random) < 0.6) {
                tsr_batch_accept(batch, s);
                memcpy(x.now[s], x.then[s], sizeof x.now[s]);
                n_taken++;
            } else {
                tsr_batch_reject(batch, s);
            }
        if (step % 10 == 0)
            check(p, (const double(*)[3])x.then[1], profile + 3 * N_Q, engine);
    }
    assert_true(n_taken > n_step / 4 && n_far > n_step / 10);
    for (int l = 0; l < TSR_PLANE_WAVE_LEVELS; l++) /* sets of directions */
        n_set += levels[l] > 0;
    for (int s = 0; s < N_SYSTEM; s++) {
        OK(tsr_batch_profile(batch, s, profile, &err));
        check(p, (const double(*)[3])x.now[s], profile, engine);
    }
    /* bits are those of the coordinates, whatever went before */
    for (int s = 0; s < N_SYSTEM; s++)
        OK(tsr_batch_set(batch, s, (const double(*)[3])x.now[0],
                         profile + s * 3 * N_Q, &err));
    assert_memory_equal(profile, profile + 3 * N_Q, 3 * N_Q * sizeof *profile);
    return n_set;
}

TEST(units_move)
{
    static problem p;
    make_problem(&p);
    assert_true(move_units(&p, 300) > 2);
}

/* Few directions and steps, for a simulator of devices. */
TEST(units_move_at_small_q)
{
    static problem p;
    make_problem(&p);
    p.spec.dq_inv_ang /= 8.0;
    assert_true(move_units(&p, 24) > 0);
}

/* A range moves along x, as a group or a body, and is put back: refused exactly
 * where two bodies come too far apart. */
static void push(tsr_batch *batch, const double (*xyz)[3], int first, int count,
                 double sign)
{
    double moved[N_BODY][3], profile[3 * N_Q];
    int n_refused = 0, n_taken = 0;
    for (double by = 0.0; by < 30.0; by += 0.5) {
        memcpy(moved, xyz, sizeof moved);
        for (int i = first; i < first + count; i++)
            moved[i][0] += sign * by;
        const double d = largest((const double(*)[3])moved);
        const tsr_body_range range = {first, count, count > 1,
                                      (const double(*)[3])(moved + first)};
        const tsr_body_proposal ask = {0, 1, &range};
        const tsr_status status = tsr_batch_submit(batch, 1, &ask, &err);
        assert_int_equal(status, d > d_bound ? TSR_E_RANGE : TSR_OK);
        n_refused += status != TSR_OK;
        if (status != TSR_OK)
            continue;
        OK(tsr_batch_wait(batch, profile, &err));
        tsr_batch_reject(batch, 0);
        n_taken++;
    }
    assert_true(n_refused > 0 && n_taken > 0);
}

static void put(double x[3], double a, double b)
{
    x[0] = a, x[1] = b, x[2] = 0.0;
}

/* Where the sphere about a unit, or what is far from the centre of all, decides
 * that the exact check is needed. */
TEST(too_far)
{
    static problem p;
    double profile[3 * N_Q];
    for (int which = 0; which < 2; which++) {
        make_problem(&p);
        for (int i = 0; i < N_BODY && which == 1; i++)
            p.xyz[i][0] += 40.0;
        put(p.xyz[LOOSE + 3], which == 0 ? 98.0 : 119.0, 0.0);
        if (which == 1) { /* a triangle: farther from the middle than 70 A */
            put(p.xyz[LOOSE], 0.0, -69.0);
            put(p.xyz[LOOSE + 1], 0.0, 69.0);
        }
        const double(*xyz)[3] = (const double(*)[3])p.xyz;
        opened o = open_waves(&p);
        OK(tsr_batch_set(o.batch, 0, xyz, profile, &err));
        if (which == 0)
            push(o.batch, xyz, 0, N_UNIT, -1.0);
        else
            push(o.batch, xyz, LOOSE + 3, 1, 1.0);
    }
}

TEST(not_rigid)
{
    static problem p;
    double before[3 * N_Q], after[3 * N_Q], moved[N_BODY][3];
    make_problem(&p);
    opened o = open_waves(&p);
    tsr_batch *batch = o.batch;
    tsr_engine *none;
    OK(tsr_batch_set(batch, 0, (const double(*)[3])p.xyz, before, &err));
    memcpy(moved, p.xyz, sizeof moved);
    const tsr_body_range part = {N_UNIT - 10, 15, 1,
                                 (const double(*)[3])(moved + N_UNIT - 10)};
    const tsr_body_proposal ask = {0, 1, &part};
    FAILS(tsr_batch_submit(batch, 1, &ask, &err), TSR_E_INTERNAL,
          "10 of the 165 bodies");
    moved[33][1] += 0.01;
    const tsr_body_range bent = {0, N_UNIT, 0, (const double(*)[3])moved};
    const tsr_body_proposal loose = {0, 1, &bent};
    FAILS(tsr_batch_submit(batch, 1, &loose, &err), TSR_E_INTERNAL,
          "changed its shape");
    FAILS(tsr_batch_set(batch, 0, (const double(*)[3])moved, NULL, &err),
          TSR_E_INTERNAL, "changed its shape");
    OK(tsr_batch_profile(batch, 0, after, &err));
    assert_memory_equal(before, after, sizeof before);
    p.spec.rigid = NULL;
    assert_int_equal(
        tsr_engine_plane_wave_new(&p.spec, o.device, 0, &none, &err),
        TSR_E_INTERNAL);
    p.spec.rigid = (const double(*)[3])p.xyz;
    p.unit[7] = N_BODY;
    assert_int_equal(
        tsr_engine_plane_wave_new(&p.spec, o.device, 0, &none, &err),
        TSR_E_INTERNAL);
    p.unit[7] = 3;
    p.spec.n_system = 1000000;
    FAILS(tsr_engine_plane_wave_new(&p.spec, o.device, 0, &none, &err),
          TSR_E_DEVICE, "systems fit");
    assert_true(tsr_engine_capacity(&p.spec, o.device, TSR_ENGINE_PLANE_WAVES) <
                1e6);
}

/* Known answers, by both kinds of kernel. */
TEST(self_test)
{
    tsr_device *device = need_device();
    for (int as_gpu = 0; as_gpu < 2; as_gpu++) {
        tsr_self_test result;
        OK(tsr_plane_wave_self_test(device, as_gpu, as_gpu ? 2 : 0, &result,
                                    &err));
        assert_int_equal(result.n_check, as_gpu ? 38 : 114);
        assert_true(result.max_rel_error > 0.0);
    }
}

/* Tiles for small molecules, plane waves for large ones of few rigid parts;
 * what was asked for in any case. */
TEST(choices)
{
    static const tsr_device_info cpu = {.type = TSR_DEVICE_CPU},
                                 gpu = {.type = TSR_DEVICE_GPU};
    enum { MANY = 10000 };
    int *unit = array(MANY, sizeof *unit);
    tsr_engine_spec spec = {.n_body = MANY,
                            .n_q = 25,
                            .dq_inv_ang = 0.0145,
                            .d_bound_ang = 186.0,
                            .unit = unit};
    for (int i = 0; i < MANY; i++)
        unit[i] = i < MANY / 2 - 10 ? 0 : i < MANY / 2 + 10 ? -1 : 1;
    for (int g = 0; g < 2; g++) {
        const tsr_device_info *info = g ? &gpu : &cpu;
        spec.n_body = MANY;
        assert_int_equal(tsr_engine_choose(&spec, info, TSR_ENGINE_AUTO),
                         TSR_ENGINE_PLANE_WAVES);
        assert_int_equal(tsr_engine_choose(&spec, info, TSR_ENGINE_TILES),
                         TSR_ENGINE_TILES);
        spec.n_body = 300;
        assert_int_equal(tsr_engine_choose(&spec, info, TSR_ENGINE_AUTO),
                         TSR_ENGINE_TILES);
        assert_int_equal(tsr_engine_choose(&spec, info, TSR_ENGINE_PLANE_WAVES),
                         TSR_ENGINE_PLANE_WAVES);
    }
}

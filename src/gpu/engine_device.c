/* The choice of the engine for a molecule and a device, and the self-test of
 * both engines against sums in double precision. */
#include "gpu/engine_device.h"

#include "scattering/debye.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- choice of the engine ---- */

/* Measured costs of a kind of device in seconds, indexed by the number of
 * components minus 1. pair: tiles, one pair of bodies at one q. The others are
 * for one direction of plane waves. step: fixed cost of a step; unit: the pose
 * of a unit; body: the position of a loose body. Measured with 1131 to 10,808
 * bodies (bench/RESULTS.md). */
typedef struct {
    double pair[3], step[3], unit[3], body[3];
} engine_cost;

static const engine_cost cpu_cost = {.pair = {2.2e-11, 3.3e-11, 4.5e-11},
                                     .step = {6e-9, 1.0e-8, 1.4e-8},
                                     .unit = {1.8e-8, 2.8e-8, 3.8e-8},
                                     .body = {8e-10, 9e-10, 1.0e-9}};
static const engine_cost gpu_cost = {.pair = {2.1e-13, 2.7e-13, 3.8e-13},
                                     .step = {3e-10, 6e-10, 9e-10},
                                     .unit = {8e-10, 1.2e-9, 1.7e-9},
                                     .body = {5e-12, 6.5e-12, 8e-12}};

/* Bodies of the largest unit, number of units large enough for a table, and
 * number of bodies outside such units. */
typedef struct {
    int largest, n, loose;
} unit_sizes;

/* least: bodies of the smallest unit that gets a table. */
static unit_sizes sizes_of(const tsr_engine_spec *spec, int least)
{
    unit_sizes out = {.loose = spec->n_body};
    int *n =
        spec->unit != NULL ? calloc((size_t)spec->n_body, sizeof *n) : NULL;
    for (int i = 0; n != NULL && i < spec->n_body; i++)
        if (spec->unit[i] >= 0 && spec->unit[i] < spec->n_body)
            n[spec->unit[i]]++;
    for (int u = 0; n != NULL && u < spec->n_body; u++) {
        out.largest = n[u] > out.largest ? n[u] : out.largest;
        out.n += n[u] >= least;
        out.loose -= n[u] >= least ? n[u] : 0;
    }
    free(n);
    return out;
}

tsr_engine_choice tsr_engine_choose(const tsr_engine_spec *spec,
                                    const tsr_device_info *info,
                                    tsr_engine_choice choice)
{
    const engine_cost *cost =
        info->type == TSR_DEVICE_CPU ? &cpu_cost : &gpu_cost;
    const int k = tsr_engine_n_comp(spec) - 1, n = spec->n_body;
    if (choice != TSR_ENGINE_AUTO)
        return choice;
    if (!(spec->d_bound_ang > 0.0))
        return TSR_ENGINE_TILES;
    /* Model of a step: it rotates the lighter side of a linker. With two units
     * this is one unit, with many units a quarter of them on average. A quarter
     * of the loose bodies moves with it. */
    const unit_sizes size =
        sizes_of(spec, (int)(cost->unit[k] / cost->body[k]));
    const double turned = size.n > 4 ? 0.25 * size.n : size.n > 0 ? 1.0 : 0.0;
    const double moved = 0.25 * size.loose;
    const double lighter = size.n > 4                        ? 0.25 * n
                           : size.largest < n - size.largest ? size.largest
                                                             : n - size.largest;
    const double share = spec->n_copy > 1
                             ? (2.0 * spec->n_unique - 1.0) /
                                   ((double)spec->n_copy * spec->n_copy)
                             : 1.0;
    const double tiles = share * cost->pair[k] * spec->n_q *
                         (lighter * (n - lighter) + moved * n);
    const double waves = tsr_plane_wave_size(spec) *
                         (cost->step[k] + 2.0 * cost->body[k] * moved +
                          2.0 * cost->unit[k] * turned);
    return waves < tiles ? TSR_ENGINE_PLANE_WAVES : TSR_ENGINE_TILES;
}

tsr_status tsr_engine_device_new(const tsr_engine_spec *spec,
                                 const tsr_device *device,
                                 tsr_engine_choice choice, tsr_engine **out,
                                 tsr_err *err)
{
    return tsr_engine_choose(spec, tsr_device_get_info(device), choice) ==
                   TSR_ENGINE_PLANE_WAVES
               ? tsr_engine_plane_wave_new(spec, device, 0, out, err)
               : tsr_engine_page_tile_new(spec, device, NULL, out, err);
}

double tsr_engine_capacity(const tsr_engine_spec *spec,
                           const tsr_device *device, tsr_engine_choice choice)
{
    return tsr_engine_choose(spec, tsr_device_get_info(device), choice) ==
                   TSR_ENGINE_TILES
               ? tsr_page_tile_capacity(spec, device)
               : tsr_plane_wave_capacity(spec, device);
}

/* ---- self-test ---- */

/* N_Q: more pages than a group holds. */
enum { N_Q = 71, N_TYPE = 4, MAX_COMP = 3, N_SYSTEM = 2 };
enum { MAX_PAIR = MAX_COMP * (MAX_COMP + 1) / 2, MAX_RANGE = 2 };
enum { MAX_BODY = 4 * 160 };

/* Allowed error of I(q), the accuracy that the engines promise. */
static const double limit = 1e-5;

/* Plane waves have no tiles. Blocks of this size are large enough for a table,
 * and no two bodies of the sample are farther apart than wave_bound_ang. */
enum { WAVE_BLOCK = 32, WAVE_BLOCK_GPU = 160 };
static const double wave_bound_ang = 150.0;

typedef struct {
    int first, count; /* in eighths of a tile; count 0: up to the last body */
    int group;
} step_range;

/* The steps of the test. The sample has four blocks, the last one incomplete.
 * Up to 3 eighths of a block are updated by a difference. */
static const struct {
    const char *name;
    int accept, n_range;
    step_range range[MAX_RANGE];
} steps[] = {
    {"a difference", 0, 1, {{9, 2, 0}}},
    {"a difference", 1, 1, {{9, 2, 0}}},
    {"differences of two blocks", 1, 1, {{7, 2, 0}}},
    {"full sums", 1, 1, {{3, 7, 0}}},
    {"a rigid group", 1, 1, {{16, 0, 1}}},
    {"a rigid group of two ranges", 1, 2, {{0, 8, 1}, {16, 8, 1}}},
    {"a difference after a rigid group", 1, 1, {{2, 2, 0}}},
    {"a rotation of the whole", 1, 1, {{0, 0, 1}}},
    {"a difference after a rotation", 1, 1, {{9, 2, 0}}},
};
enum { N_STEP = sizeof steps / sizeof steps[0] };

typedef struct {
    tsr_engine_spec spec;
    int type[MAX_BODY];
    int unit[MAX_BODY]; /* plane waves: the third block is a rigid unit */
    double form_factor[MAX_COMP * N_TYPE * N_Q];
    double xyz[MAX_BODY][3], moved[MAX_BODY][3];
    double exact[MAX_PAIR * N_Q], exact_moved[MAX_PAIR * N_Q];
    double profile[N_SYSTEM * MAX_PAIR * N_Q];
    int tile;
    uint64_t random;
    tsr_self_test result;
    const char *failed_step; /* step of the first failure; NULL: none */
    int failed_comp;         /* number of components in that step */
} test_case;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static void random_position(test_case *t, double x[3])
{
    for (int c = 0; c < 3; c++)
        x[c] = 30.0 * uniform(&t->random);
}

static void make_system(test_case *t, int n_comp)
{
    int n = 3 * t->tile + t->tile / 4 + 3;
    t->random = 20130101;
    for (int i = 0; i < n; i++) {
        t->type[i] = i % N_TYPE;
        t->unit[i] = i / t->tile == 2 ? 0 : -1;
        random_position(t, t->xyz[i]);
    }
    memcpy(t->moved, t->xyz, sizeof t->moved);
    for (int c = 0; c < n_comp; c++)
        for (int y = 0; y < N_TYPE; y++)
            for (int k = 0; k < N_Q; k++)
                t->form_factor[(c * N_TYPE + y) * N_Q + k] =
                    (y == 3 - c ? -2.0 : 5.0 + y - c) *
                    exp(-2e-4 * (c + 1) * k * k);
    t->spec = (tsr_engine_spec){.n_body = n,
                                .n_type = N_TYPE,
                                .n_comp = n_comp,
                                .n_q = N_Q,
                                .dq_inv_ang = 0.015,
                                .n_system = N_SYSTEM,
                                .type = t->type,
                                .form_factor = t->form_factor};
}

static tsr_status reference_profile(const test_case *t, const double (*xyz)[3],
                                    double *profile, tsr_err *err)
{
    const tsr_debye_spec spec = {.n = t->spec.n_body,
                                 .n_type = N_TYPE,
                                 .n_comp = t->spec.n_comp,
                                 .n_q = t->spec.n_q,
                                 .dq_inv_ang = t->spec.dq_inv_ang,
                                 .xyz = xyz,
                                 .type = t->type,
                                 .form_factor = t->form_factor};
    return tsr_debye_reference(&spec, NULL, profile, err);
}

/* Errors of I_ab relative to sqrt(I_aa I_bb), because I_ab may be 0. */
static void compare(test_case *t, const double *profile, const double *exact,
                    const char *name)
{
    int n_comp = t->spec.n_comp, n_q = t->spec.n_q;
    const double *diagonal[MAX_COMP], *at = exact; /* diagonal: I_aa */
    for (int a = 0; a < n_comp; a++, at += (n_comp - a + 1) * n_q)
        diagonal[a] = at;
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, exact += n_q, profile += n_q)
            for (int k = 0; k < n_q; k++) {
                double error = fabs(profile[k] - exact[k]) /
                               sqrt(diagonal[a][k] * diagonal[b][k]);
                if (error <= t->result.max_rel_error)
                    continue; /* false for a NaN */
                t->result.max_rel_error = isnan(error) ? HUGE_VAL : error;
            }
    if (t->failed_step == NULL && t->result.max_rel_error > t->result.limit) {
        t->failed_step = name;
        t->failed_comp = n_comp;
    }
    t->result.n_check++;
}

/* Compares the accepted profiles of all systems. */
static tsr_status compare_accepted(test_case *t, tsr_batch *batch,
                                   const char *name, tsr_err *err)
{
    for (int s = 0; s < N_SYSTEM; s++) {
        TSR_TRY(tsr_batch_profile(batch, s, t->profile, err));
        compare(t, t->profile, t->exact, name);
    }
    return TSR_OK;
}

/* Moves a range: rigidly if it has a group, else to random positions. */
static tsr_body_range move_range(test_case *t, const step_range *r)
{
    const double turn[2] = {cos(0.7), sin(0.7)};
    int first = r->first * t->tile / 8, count = r->count * t->tile / 8;
    if (count == 0)
        count = t->spec.n_body - first;
    for (int i = first; i < first + count; i++) {
        const double *x = t->xyz[i];
        double *to = t->moved[i];
        if (r->group == 0) {
            random_position(t, to);
            continue;
        }
        to[0] = turn[0] * x[0] - turn[1] * x[1] + 3.0;
        to[1] = turn[1] * x[0] + turn[0] * x[1];
        to[2] = x[2] - 5.0;
    }
    return (tsr_body_range){first, count, r->group,
                            (const double(*)[3])(t->moved + first)};
}

static tsr_status run_step(test_case *t, tsr_batch *batch, int step,
                           tsr_err *err)
{
    tsr_body_range range[MAX_RANGE];
    tsr_body_proposal proposal[N_SYSTEM];
    int n_range = steps[step].n_range;
    size_t n_profile =
        (size_t)batch->engine->n_pair * (size_t)batch->engine->n_q;
    for (int r = 0; r < n_range; r++)
        range[r] = move_range(t, &steps[step].range[r]);
    for (int s = 0; s < N_SYSTEM; s++)
        proposal[s] = (tsr_body_proposal){s, n_range, range};
    TSR_TRY(tsr_batch_submit(batch, N_SYSTEM, proposal, err));
    TSR_TRY(reference_profile(t, (const double(*)[3])t->moved, t->exact_moved,
                              err));
    TSR_TRY(tsr_batch_wait(batch, t->profile, err));
    for (int s = 0; s < N_SYSTEM; s++) {
        compare(t, t->profile + (size_t)s * n_profile, t->exact_moved,
                steps[step].name);
        if (steps[step].accept)
            tsr_batch_accept(batch, s);
        else
            tsr_batch_reject(batch, s);
    }
    if (steps[step].accept) {
        memcpy(t->xyz, t->moved, sizeof t->xyz);
        memcpy(t->exact, t->exact_moved, sizeof t->exact);
    }
    memcpy(t->moved, t->xyz, sizeof t->moved);
    return compare_accepted(t, batch, steps[step].name, err);
}

static tsr_status run_steps(test_case *t, tsr_batch *batch, tsr_err *err)
{
    TSR_TRY(reference_profile(t, (const double(*)[3])t->xyz, t->exact, err));
    for (int s = 0; s < N_SYSTEM; s++)
        TSR_TRY(tsr_batch_set(batch, s, (const double(*)[3])t->xyz, NULL, err));
    TSR_TRY(compare_accepted(t, batch, "a first full sum", err));
    for (int step = 0; step < N_STEP; step++)
        TSR_TRY(run_step(t, batch, step, err));
    return TSR_OK;
}

/* options NULL: tests plane waves. */
static tsr_status test_engine(test_case *t, const tsr_device *device,
                              const tsr_page_tile_options *options, int as_gpu,
                              int n_comp, tsr_err *err)
{
    tsr_engine *engine = NULL;
    tsr_batch *batch = NULL;
    make_system(t, n_comp);
    if (options == NULL) {
        t->spec.d_bound_ang = wave_bound_ang;
        t->spec.unit = t->unit;
        t->spec.rigid = (const double(*)[3])t->xyz;
    }
    tsr_status status =
        options != NULL
            ? tsr_engine_page_tile_new(&t->spec, device, options, &engine, err)
            : tsr_engine_plane_wave_new(&t->spec, device, as_gpu, &engine, err);
    TSR_THEN(status, tsr_batch_new(engine, N_SYSTEM, &batch, err));
    TSR_THEN(status, run_steps(t, batch, err));
    tsr_batch_free(batch);
    tsr_engine_free(engine);
    return status;
}

/* options NULL: tests plane waves. n_comp 0: 1, 2 and 3 in turn. */
static tsr_status test_all(const tsr_device *device,
                           const tsr_page_tile_options *options, int as_gpu,
                           int tile, int n_comp, tsr_self_test *result,
                           tsr_err *err)
{
    const tsr_device_info *info = tsr_device_get_info(device);
    int first = n_comp > 0 ? n_comp : 1, last = n_comp > 0 ? n_comp : MAX_COMP;
    test_case *t = calloc(1, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
    tsr_status status = TSR_OK;
    t->tile = tile;
    t->result.limit = limit;
    for (int k = first; k <= last && status == TSR_OK; k++)
        status = test_engine(t, device, options, as_gpu, k, err);
    if (status == TSR_OK && t->failed_step != NULL)
        status = tsr_fail(
            err, TSR_E_DEVICE,
            "%s fails the self-test: with %d component%s the first wrong "
            "operation is %s; relative errors of I(q) are up to %.2e, %.0e is "
            "allowed. Do not use this device or driver (%s)",
            info->name, t->failed_comp, t->failed_comp > 1 ? "s" : "",
            t->failed_step, t->result.max_rel_error, t->result.limit,
            info->driver);
    if (result != NULL)
        *result = t->result;
    free(t);
    return status;
}

tsr_status tsr_engine_self_test(const tsr_device *device,
                                const tsr_page_tile_options *options,
                                int n_body, int n_comp, tsr_self_test *result,
                                tsr_err *err)
{
    tsr_page_tile_options o;
    TSR_TRY(tsr_page_tile_resolve(tsr_device_get_info(device), n_body, options,
                                  &o, err));
    return test_all(device, &o, 0, o.tile, n_comp, result, err);
}

tsr_status tsr_plane_wave_self_test(const tsr_device *device, int as_gpu,
                                    int n_comp, tsr_self_test *result,
                                    tsr_err *err)
{
    const int is_gpu =
        as_gpu || tsr_device_get_info(device)->type != TSR_DEVICE_CPU;
    return test_all(device, NULL, as_gpu, is_gpu ? WAVE_BLOCK_GPU : WAVE_BLOCK,
                    n_comp, result, err);
}

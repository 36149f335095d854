/* After any accepted and rejected moves an engine has the profile of the
 * coordinates; a rejection, other batches and other threads leave the same
 * bits. */
#define OWN_MAIN
#include "../engine_walker.h"
#include "tests/test.h"

#include <pthread.h>

/* How many times as long as in `make check`; slow_engine_moves.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

/* TESSERA_TEST_MOVES: so many for every variant. */
static int moves_of(const engine_variant *v)
{
    const char *asked = getenv("TESSERA_TEST_MOVES");
    return asked != NULL ? atoi(asked) : LENGTH * N_MOVE / v->one_of;
}

/* What all tests have: building the kernels of a variant takes longer than most
 * of what is done with them. */
typedef struct {
    tsr_device *device;
    composition c;
    tsr_engine *engine[N_VARIANT]; /* NULL: not on this device */
} bench;

typedef void law(const composition *c, const engine_variant *v,
                 const tsr_device *device, tsr_batch *batch, walker *w);
#define UNUSED __attribute__((unused))

/* A test of every variant. */
#define LAW(name)                                                    \
    static law name##_law;                                           \
    TEST(name)                                                       \
    {                                                                \
        for_each_variant(state, name##_law);                         \
    }                                                                \
    static void name##_law(                                          \
        UNUSED const composition *c, UNUSED const engine_variant *v, \
        UNUSED const tsr_device *device, tsr_batch *batch, walker *w)

static void for_each_variant(void **state, law *check)
{
    const bench *b = *state;
    walker *w = array(N_SYSTEM, sizeof *w);
    for (int v = 0; v < N_VARIANT; v++) {
        if (b->engine[v] == NULL)
            continue;
        NEW(tsr_batch, batch, tsr_batch_new, b->engine[v], N_SYSTEM);
        for (int s = 0; s < N_SYSTEM; s++)
            begin(&b->c, &w[s], batch, s);
        check(&b->c, &variants[v], b->device, batch, w);
    }
}

static void evaluate(tsr_batch *batch, const tsr_body_proposal *proposal, int n,
                     double *profile)
{
    OK(tsr_batch_submit(batch, n, proposal, &err));
    OK(tsr_batch_wait(batch, profile, &err));
}

/* What a run asks of a running profile, and it would see a change of 1 %. */
static int within_rounding(const tsr_batch *batch, const double *profile,
                           const double *right)
{
    double allowed = 0.0, wrong[N_Q];
    memcpy(wrong, profile, sizeof wrong);
    wrong[N_Q - 1] *= 1.01;
    assert_int_equal(
        tsr_engine_worst_difference(batch->engine, wrong, right, &allowed),
        N_Q - 1);
    return tsr_engine_worst_difference(batch->engine, profile, right,
                                       &allowed) == -1;
}

LAW(reject_and_batches)
{
    double before[N_Q], after[N_Q], alone[N_Q], all[N_SYSTEM * N_Q];
    tsr_body_proposal proposal[N_SYSTEM];
    for (int s = 0; s < N_SYSTEM; s++) {
        propose(&w[s], s);
        proposal[s] = w[s].proposal;
    }
    OK(tsr_batch_profile(batch, 3, before, &err));
    evaluate(batch, &proposal[3], 1, alone);
    tsr_batch_reject(batch, 3);
    OK(tsr_batch_profile(batch, 3, after, &err));
    assert_memory_equal(before, after, sizeof before);
    evaluate(batch, proposal, N_SYSTEM, all);
    assert_memory_equal(all + 3 * N_Q, alone, sizeof alone);
    for (int s = 0; s < N_SYSTEM; s++)
        tsr_batch_accept(batch, s);
    OK(tsr_batch_profile(batch, 3, after, &err));
    assert_memory_equal(after, alone, sizeof alone);
}

/* Moves one by one, or all bodies at once: the same bits, since the sums of
 * the tiles are exact. (Without rigid groups: these keep tiles; and without
 * differences, whose rounding depends on their history.) */
LAW(steps_or_all_at_once)
{
    double one[N_Q], other[N_Q];
    for (int i = 0; i < 30; i++) {
        memcpy(w->moved, w->xyz, sizeof w->xyz);
        w->proposal = (tsr_body_proposal){0, 0, w->range};
        add_free(w, below(&w->random, N_BODY - 20), 1 + below(&w->random, 20));
        evaluate(batch, &w->proposal, 1, one);
        tsr_batch_accept(batch, 0);
        memcpy(w->xyz, w->moved, sizeof w->xyz);
    }
    tsr_body_range all = {0, N_BODY, 0, (const double(*)[3])w->xyz};
    tsr_body_proposal proposal = {1, 1, &all};
    evaluate(batch, &proposal, 1, other);
    tsr_batch_reject(batch, 1);
    if (v->options.difference < 0)
        assert_memory_equal(one, other, sizeof one);
    else
        assert_true(worst_error(one, other, N_Q) <= v->limit);
    assert_true(within_rounding(batch, one, other));
}

/* All bodies are proposed where they are: one by one (group 0) or as a group.
 */
static void propose_all(tsr_batch *batch, walker *w, int system, int group,
                        double *profile)
{
    tsr_body_range all = {0, N_BODY, group, (const double(*)[3])w->xyz};
    tsr_body_proposal proposal = {system, 1, &all};
    evaluate(batch, &proposal, 1, profile);
}

/* One body moves n times. Returns whether the bits are now those of a proposal
 * of all bodies at once, whose tiles are summed afresh. */
static int move_one(const engine_variant *v, tsr_batch *batch, walker *w, int n)
{
    double one[N_Q], other[N_Q];
    for (int i = 0; i < n; i++) {
        memcpy(w->moved, w->xyz, sizeof w->xyz);
        w->proposal = (tsr_body_proposal){0, 0, w->range};
        add_free(w, 77, 1);
        evaluate(batch, &w->proposal, 1, one);
        tsr_batch_accept(batch, 0);
        memcpy(w->xyz, w->moved, sizeof w->xyz);
    }
    propose_all(batch, w, 1, 0, other);
    tsr_batch_reject(batch, 1);
    assert_true(worst_error(one, other, N_Q) <= v->limit);
    assert_true(within_rounding(batch, one, other));
    return memcmp(one, other, sizeof one) == 0;
}

static int max_age(const engine_variant *v)
{
    return is_wave(v)               ? TSR_PLANE_WAVE_AGE
           : v->options.max_age > 0 ? v->options.max_age
                                    : 64;
}

/* After max_age differences a block's tiles are summed afresh. */
LAW(differences_end)
{
    assert_int_equal(move_one(v, batch, w, max_age(v)),
                     v->options.difference < 0);
    assert_true(move_one(v, batch, w, 1));
}

/* Tiles within a rigid group keep their differences and the count of them, so
 * that the fresh sums come when they would have come without it. Bodies that
 * all move on their own begin a new count. */
LAW(groups_keep_counts)
{
    const int n = max_age(v), never = v->options.difference < 0;
    double profile[N_Q];
    if (is_wave(v)) /* these are summed afresh where all turned */
        return;
    assert_int_equal(move_one(v, batch, w, n / 2), never);
    propose_all(batch, w, 0, 1, profile);
    tsr_batch_accept(batch, 0);
    assert_int_equal(move_one(v, batch, w, n - n / 2), never);
    assert_true(move_one(v, batch, w, 1));
    assert_int_equal(move_one(v, batch, w, n / 2), never);
    propose_all(batch, w, 0, 0, profile);
    tsr_batch_accept(batch, 0);
    assert_int_equal(move_one(v, batch, w, n - n / 2 + 1), never);
}

/* Proposals in which nothing moves, alone and beside others. */
LAW(nothing_moves)
{
    double before[2 * N_Q], after[2 * N_Q];
    propose(&w[0], 0);
    evaluate(batch, &w[0].proposal, 1, before);
    tsr_batch_accept(batch, 0);
    OK(tsr_batch_profile(batch, 0, before, &err));
    OK(tsr_batch_profile(batch, 1, before + N_Q, &err));
    for (int i = 0; i < 2; i++) {
        tsr_body_proposal none[2] = {{0, 0, i == 0 ? NULL : w[0].range},
                                     {1, 0, i == 0 ? w[1].range : NULL}};
        evaluate(batch, none, 2, after);
        assert_memory_equal(before, after, sizeof before);
        tsr_batch_accept(batch, 0);
        tsr_batch_reject(batch, 1);
        propose(&w[1], 1);
        tsr_body_proposal one[2] = {none[0], w[1].proposal};
        evaluate(batch, one, 2, after);
        assert_memory_equal(before, after, N_Q * sizeof *before);
        tsr_batch_accept(batch, 0);
        tsr_batch_reject(batch, 1);
        OK(tsr_batch_profile(batch, 0, after, &err));
        assert_memory_equal(before, after, N_Q * sizeof *before);
    }
}

LAW(rigid_and_permuted)
{
    double before[N_Q], after[N_Q];
    OK(tsr_batch_profile(batch, 0, before, &err));
    tsr_motion motion = turn(w);
    motion.shift[1] += 300.0;
    memcpy(w->moved, w->xyz, sizeof w->xyz);
    w->proposal = (tsr_body_proposal){0, 0, w->range};
    add_rigid(w, 0, N_BODY, 1, &motion);
    evaluate(batch, &w->proposal, 1, after);
    assert_memory_equal(before, after, sizeof before);
    tsr_batch_accept(batch, 0);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])w->moved, after, &err));
    assert_true(worst_error(after, before, N_Q) <= v->limit);

    composition mixed = *c;
    uint64_t random = 3;
    for (int i = N_BODY - 1; i > 0; i--) {
        int j = below(&random, i + 1), type = mixed.type[i];
        double x[3];
        mixed.type[i] = mixed.type[j], mixed.type[j] = type;
        tsr_vec3_copy(x, mixed.start[i]);
        tsr_vec3_copy(mixed.start[i], mixed.start[j]);
        tsr_vec3_copy(mixed.start[j], x);
    }
    mixed.spec.type = mixed.type;
    tsr_engine *other = new_variant(&mixed.spec, device, v);
    NEW(tsr_batch, other_batch, tsr_batch_new, other, 1);
    OK(tsr_batch_set(other_batch, 0, (const double(*)[3])mixed.start, after,
                     &err));
    assert_true(worst_error(after, before, N_Q) <= v->limit);
}

LAW(errors_leave_the_state)
{
    double before[N_Q], after[N_Q], bad[1][3] = {{0.0, (double)NAN, 0.0}};
    tsr_body_proposal proposal[2];
    tsr_body_range range = {17, 1, 0, (const double(*)[3])bad};
    OK(tsr_batch_profile(batch, 0, before, &err));
    propose(w, 0);
    proposal[0] = w->proposal;
    proposal[1] = (tsr_body_proposal){1, 1, &range};
    FAILS(tsr_batch_submit(batch, 2, proposal, &err), TSR_E_NUMERIC, "body 17");
    bad[0][1] = 3.0 * radius_ang;
    assert_int_equal(tsr_batch_submit(batch, 2, proposal, &err), TSR_E_RANGE);
    bad[0][1] = 0.0;
    range.first = N_BODY;
    assert_int_equal(tsr_batch_submit(batch, 2, proposal, &err),
                     TSR_E_INTERNAL);
    proposal[1].system = 0;
    range.first = 17;
    assert_int_equal(tsr_batch_submit(batch, 2, proposal, &err),
                     TSR_E_INTERNAL);
    memcpy(w->moved, w->xyz, sizeof w->xyz);
    w->moved[5][0] = (double)INFINITY;
    assert_int_equal(
        tsr_batch_set(batch, 0, (const double(*)[3])w->moved, NULL, &err),
        TSR_E_NUMERIC);
    w->moved[5][0] = 4.0 * radius_ang;
    assert_int_equal(
        tsr_batch_set(batch, 0, (const double(*)[3])w->moved, NULL, &err),
        TSR_E_RANGE);
    OK(tsr_batch_profile(batch, 0, after, &err));
    assert_memory_equal(before, after, sizeof before);
    /* and it still computes from that state */
    tsr_body_range all = {0, N_BODY, 0, (const double(*)[3])w->xyz};
    proposal[0] = (tsr_body_proposal){0, 1, &all};
    evaluate(batch, proposal, 1, after);
    tsr_batch_reject(batch, 0);
    assert_memory_equal(before, after, sizeof before);
}

static double largest(const double (*xyz)[3])
{
    double most2 = 0.0;
    for (int i = 0; i < N_BODY; i++)
        for (int j = 0; j < i; j++)
            most2 = fmax(most2, tsr_vec3_distance2(xyz[i], xyz[j]));
    return sqrt(most2);
}

/* Moves that leave the ball: refused exactly when two bodies come farther apart
 * than the grid allows, whatever went before. */
LAW(refused_exactly)
{
    int n_refused = 0, n_taken = 0, n = v->one_of == 1 ? 300 : LENGTH * 60;
    for (int i = 0; i < n; i++) {
        double profile[N_Q], d;
        propose(w, 0);
        const tsr_body_range *last = &w->range[w->proposal.n_range - 1];
        double shift[3], size = 1.2 * radius_ang * uniform(&w->random);
        place(&w->random, shift);
        for (int k = last->first; k < last->first + last->count; k++)
            for (int x = 0; x < 3; x++)
                w->moved[k][x] =
                    0.8 * w->moved[k][x] + shift[x] / radius_ang * size;
        for (int r = 0; r < w->proposal.n_range; r++)
            w->range[r].group = 0;
        d = largest((const double(*)[3])w->moved);
        if (fabs(d / c->spec.d_bound_ang - 1.0) < 1e-5)
            continue; /* single precision may see it on either side */
        tsr_status status = tsr_batch_submit(batch, 1, &w->proposal, &err);
        assert_int_equal(status,
                         d > c->spec.d_bound_ang ? TSR_E_RANGE : TSR_OK);
        n_refused += status != TSR_OK;
        if (status != TSR_OK)
            continue;
        n_taken++;
        OK(tsr_batch_wait(batch, profile, &err));
        if (i % 3 == 0) {
            tsr_batch_reject(batch, 0);
            continue;
        }
        tsr_batch_accept(batch, 0);
        memcpy(w->xyz, w->moved, sizeof w->xyz);
    }
    assert_true(n_refused > n / 10 && n_taken > n / 10);
}

typedef struct {
    tsr_engine *engine;
    walker *walkers;
    unsigned mask;
    int steps;
} thread_work;

static void *thread_main(void *argument)
{
    thread_work *work = argument;
    tsr_batch *batch;
    if (tsr_batch_new(work->engine, N_SYSTEM, &batch, &err) != TSR_OK)
        return work;
    for (int i = 0; i < work->steps; i++)
        step(batch, work->walkers, work->mask);
    tsr_batch_free(batch);
    return NULL;
}

/* The same walks by one thread and by four, two systems each. */
LAW(threads)
{
    double serial[N_SYSTEM][N_Q], parallel[N_Q];
    thread_work work[N_THREAD];
    pthread_t thread[N_THREAD];
    int steps = LENGTH * 30 / v->one_of + 5;
    for (int i = 0; i < steps; i++)
        step(batch, w, 255u);
    for (int s = 0; s < N_SYSTEM; s++) {
        OK(tsr_batch_profile(batch, s, serial[s], &err));
        begin(c, &w[s], batch, s);
    }
    for (int t = 0; t < N_THREAD; t++) {
        work[t] = (thread_work){batch->engine, w, 3u << (2 * t), steps};
        assert_int_equal(
            pthread_create(&thread[t], NULL, thread_main, &work[t]), 0);
    }
    for (int t = 0; t < N_THREAD; t++) {
        void *failed;
        pthread_join(thread[t], &failed);
        assert_null(failed);
    }
    for (int s = 0; s < N_SYSTEM; s++) {
        OK(tsr_batch_profile(batch, s, parallel, &err));
        assert_memory_equal(parallel, serial[s], sizeof parallel);
    }
}

/* Long enough that errors which add up would show. */
LAW(long_run)
{
    double profile[N_Q];
    uint64_t random = 5;
    for (int done = 0; done < moves_of(v);) {
        unsigned mask = 1u + (unsigned)below(&random, 255);
        step(batch, w, mask);
        for (; mask != 0; mask &= mask - 1)
            done++;
    }
    for (int s = 0; s < N_SYSTEM; s++) {
        OK(tsr_batch_profile(batch, s, profile, &err));
        check_against_reference(c, &w[s], profile, v->limit, v->name);
    }
}

/* Of the variants one of each kind: its kernels are others than those of the
 * tests below, and compilers take their time. TESSERA_TEST_TILE: in tiles of
 * that size, for devices that are slow. */
TEST(self_test)
{
    const char *tile = getenv("TESSERA_TEST_TILE");
    const int every =
        LENGTH == 1 && getenv("TESSERA_TEST_VARIANT") == NULL ? 4 : 1;
    const tsr_device *device = ((const bench *)*state)->device;
    for (int v = 0; v < N_VARIANT; v += every) {
        tsr_self_test result;
        if (!has_variant(&variants[v]) || is_wave(&variants[v]))
            continue;
        int n_comp = v == 0 ? 0 : 1; /* all; compilers take their time */
        tsr_page_tile_options o = variants[v].options;
        if (tile != NULL) {
            o.tile = atoi(tile);
            o.difference =
                o.difference < o.tile / 2 ? o.difference : o.tile / 2;
        }
        OK(tsr_engine_self_test(device, &o, 0, n_comp, &result, &err));
        assert_int_equal(result.n_check, v == 0 ? 114 : 38);
        printf("    %-55s %.1e\n", variants[v].name, result.max_rel_error);
    }
}

/* In place of every test, so that each is counted as skipped. */
static void no_device(void **state)
{
    (void)state;
    skip();
}

FIXTURE(setup)
{
    static bench b;
    b.device = open_device();
    compose(&b.c);
    for (int v = 0; b.device != NULL && v < N_VARIANT; v++)
        if (has_variant(&variants[v]))
            b.engine[v] = new_variant(&b.c.spec, b.device, &variants[v]);
    *state = &b;
    return 0;
}

static test_fixture around_all = {setup, NULL};

int main(void)
{
    tsr_device *device = open_device();
    for (size_t i = 0; device == NULL && i < MAX_TEST; i++)
        test_list[i].test_func = no_device;
    return run_test_list();
}

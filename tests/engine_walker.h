/* For laws of engines: systems of two hundred bodies that move at random,
 * alone, in runs and in rigid groups, and their profiles by the reference. */
#ifndef TESTS_ENGINE_WALKER_H
#define TESTS_ENGINE_WALKER_H

#include "core/vec3.h"
#include "engine_support.h"

enum {
    N_BODY = 200,
    N_Q = 24,
    N_TYPE = 5,
    N_SYSTEM = 8,
    N_MOVE = 4000,
    MAX_RANGE = 4,
    N_THREAD = 4
};
static const double radius_ang = 25.0;

typedef struct {
    tsr_engine_spec spec;
    int type[N_BODY];
    double form_factor[N_TYPE * N_Q];
    double start[N_BODY][3];
} composition;

/* A walker: one system's coordinates, its proposal and its random numbers. */
typedef struct {
    uint64_t random;
    double xyz[N_BODY][3], moved[N_BODY][3];
    tsr_body_range range[MAX_RANGE];
    tsr_body_proposal proposal;
} walker;

static void place(uint64_t *random, double x[3])
{
    do {
        for (int c = 0; c < 3; c++)
            x[c] = radius_ang * (2.0 * uniform(random) - 1.0);
    } while (tsr_vec3_norm(x) > radius_ang);
}

static void compose(composition *c)
{
    uint64_t random = 42;
    double d_bound = 2.0 * radius_ang * (1.0 + 1e-6);
    for (int i = 0; i < N_BODY; i++) {
        c->type[i] = (int)(N_TYPE * uniform(&random));
        place(&random, c->start[i]);
    }
    for (int t = 0; t < N_TYPE; t++)
        for (int k = 0; k < N_Q; k++)
            c->form_factor[t * N_Q + k] =
                (t == 2 ? -1.5 : 4.0 + t) * exp(-1e-4 * (t + 1) * k * k);
    c->spec = (tsr_engine_spec){.n_body = N_BODY,
                                .n_type = N_TYPE,
                                .n_q = N_Q,
                                .dq_inv_ang = acos(-1.0) / (2.0 * d_bound),
                                .n_system = N_SYSTEM,
                                .type = c->type,
                                .form_factor = c->form_factor,
                                .d_bound_ang = d_bound};
}

static int below(uint64_t *random, int n)
{
    return (int)(uniform(random) * n);
}

static void add_range(walker *w, int first, int count, int group)
{
    w->range[w->proposal.n_range++] = (tsr_body_range){
        first, count, group, (const double(*)[3])(w->moved + first)};
}

static void add_free(walker *w, int first, int count)
{
    for (int i = first; i < first + count; i++)
        place(&w->random, w->moved[i]);
    add_range(w, first, count, 0);
}

static void add_rigid(walker *w, int first, int count, int group,
                      const tsr_motion *motion)
{
    for (int i = first; i < first + count; i++)
        tsr_motion_apply(motion, w->moved[i]);
    add_range(w, first, count, group);
}

/* About the centre, so that no body leaves the ball. */
static tsr_motion turn(walker *w)
{
    static const double origin[3] = {0.0, 0.0, 0.0};
    double axis[3];
    tsr_motion motion;
    place(&w->random, axis);
    tsr_motion_about(&motion, origin, axis, 6.0 * uniform(&w->random));
    return motion;
}

static void propose(walker *w, int system)
{
    uint64_t *random = &w->random;
    int kind = below(random, 5);
    memcpy(w->moved, w->xyz, sizeof w->xyz);
    w->proposal = (tsr_body_proposal){system, 0, w->range};
    if (kind == 0) {
        add_free(w, below(random, N_BODY), 1);
    } else if (kind == 1) {
        int first = below(random, N_BODY - 12);
        add_free(w, first, 1 + below(random, 12));
    } else if (kind == 2) { /* a pivot: the tail turns */
        tsr_motion motion = turn(w);
        int first = below(random, N_BODY);
        add_rigid(w, first, N_BODY - first, 1, &motion);
    } else if (kind == 3) { /* one group in two ranges, a gap between */
        tsr_motion motion = turn(w);
        add_rigid(w, 0, 1 + below(random, 90), 3, &motion);
        add_rigid(w, 100 + below(random, 20), 1 + below(random, 80), 3,
                  &motion);
    } else { /* two groups and loose bodies */
        tsr_motion one = turn(w), two = turn(w);
        add_rigid(w, below(random, 30), 60, 1, &one);
        add_free(w, 90, 1 + below(random, 6));
        add_rigid(w, 96, 64, 2, &two);
        add_rigid(w, 160 + below(random, 10), 30, 1, &one);
    }
}

static void check_against_reference(const composition *c, const walker *w,
                                    const double *profile, double limit,
                                    const char *name)
{
    tsr_engine_spec spec = c->spec;
    double exact[N_Q];
    spec.n_system = 1;
    spec.d_bound_ang = 0.0;
    NEW(tsr_engine, engine, tsr_engine_reference_new, &spec);
    NEW(tsr_batch, batch, tsr_batch_new, engine, 1);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])w->xyz, exact, &err));
    double error = worst_error(profile, exact, N_Q);
    if (!(error <= limit))
        fail_msg("%s: relative error %.2e of I(q), %.0e allowed", name, error,
                 limit);
}

static void begin(const composition *c, walker *w, tsr_batch *batch, int system)
{
    w->random = 1000 + (uint64_t)system;
    memcpy(w->xyz, c->start, sizeof w->xyz);
    OK(tsr_batch_set(batch, system, (const double(*)[3])w->xyz, NULL, &err));
}

/* One submit of the systems whose bit is in `mask`. */
static void step(tsr_batch *batch, walker *walkers, unsigned mask)
{
    tsr_body_proposal proposal[N_SYSTEM];
    double profile[N_SYSTEM * N_Q];
    int n = 0;
    for (int s = 0; s < N_SYSTEM; s++)
        if (mask >> s & 1) {
            propose(&walkers[s], s);
            proposal[n++] = walkers[s].proposal;
        }
    OK(tsr_batch_submit(batch, n, proposal, &err));
    OK(tsr_batch_wait(batch, profile, &err));
    for (int s = 0; s < N_SYSTEM; s++)
        if (mask >> s & 1) {
            if (uniform(&walkers[s].random) < 0.5) {
                tsr_batch_accept(batch, s);
                memcpy(walkers[s].xyz, walkers[s].moved, sizeof walkers[s].xyz);
            } else {
                tsr_batch_reject(batch, s);
            }
        }
}

#endif

/* Measures the time and error of an engine for artificial molecules and several
 * kinds of moves. Bodies are placed at random in a ball and have about as many
 * types as those of the shipped tables. The random generator is our own, so
 * that every machine measures the same problem. */
#include "bench/command_bench.h"

#include "core/clock.h"
#include "core/pool.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N_TYPE = 21, MAX_RUNS = 2000, MIN_RUNS = 3 };

struct tsr_bench_problem {
    tsr_pool pool;
    tsr_engine_spec spec;
    double radius_ang;
    uint64_t state;   /* of the random generator, for construction */
    uint64_t *random; /* [n_system] of the random generators, for proposals */
    int n_set;        /* number of systems that the engine has */
    int *type;
    double *form_factor;
    int *unit;          /* [n_body] 0 or 1, the half of a body */
    double (*rigid)[3]; /* [n_body] initial coordinates of system 0 */
    double (*xyz)[3];   /* [n_system][n_body] last accepted coordinates */
    double (*moved)[3]; /* [n_system][n_body] proposed coordinates, equal to xyz
                           between proposals */
    tsr_body_range *range;       /* [n_system][n_body] */
    tsr_body_proposal *proposal; /* [n_system] */
    double *profile;             /* [n_system][n_q] */
};

const char *tsr_bench_case_name(tsr_bench_case which)
{
    static const char *const name[] = {"full", "random40", "contiguous10",
                                       "one", "rigid_half"};
    return which < TSR_BENCH_N_CASE ? name[which] : "?";
}

double tsr_bench_pairs(int n_body, tsr_bench_case which)
{
    const double n = n_body, all = n * (n - 1.0) / 2.0,
                 few = n < 10.0 ? 1.0 : 10.0;
    switch (which) {
    case TSR_BENCH_RANDOM40:
        return all * (1.0 - 0.6 * 0.6);
    case TSR_BENCH_CONTIGUOUS10:
        return few * (n - few) + few * (few - 1.0) / 2.0;
    case TSR_BENCH_ONE:
        return n - 1.0;
    case TSR_BENCH_RIGID_HALF:
        return n * n / 4.0;
    default:
        return all;
    }
}

/* xorshift64*: sufficient for positions in a ball, and the same on all
 * machines. */
static double uniform(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(2685821657736338717)) >> 11) * 0x1p-53;
}

static void random_position(const tsr_bench_problem *p, uint64_t *state,
                            double xyz[3])
{
    double r2;
    do {
        r2 = 0.0;
        for (int c = 0; c < 3; c++) {
            xyz[c] = p->radius_ang * (2.0 * uniform(state) - 1.0);
            r2 += xyz[c] * xyz[c];
        }
    } while (r2 > p->radius_ang * p->radius_ang);
}

void tsr_bench_problem_free(tsr_bench_problem *p)
{
    if (p == NULL)
        return;
    tsr_pool_clear(&p->pool);
    free(p);
}

const tsr_engine_spec *tsr_bench_problem_spec(const tsr_bench_problem *p)
{
    return &p->spec;
}

tsr_status tsr_bench_problem_new(int n_body, int n_q, int n_system,
                                 double slack, tsr_bench_problem **out,
                                 tsr_err *err)
{
    size_t n = (size_t)n_body, all = n * (size_t)n_system;
    *out = NULL;
    tsr_bench_problem *p = calloc(1, sizeof *p);
    TSR_TRY(tsr_allocated(p, err));
    p->state = UINT64_C(0x9e3779b97f4a7c15);
    p->radius_ang = 40.0 * cbrt(n_body / 1888.0);
    tsr_pool_array(&p->pool, p->random, n_system);
    tsr_pool_array(&p->pool, p->type, n);
    tsr_pool_array(&p->pool, p->form_factor, N_TYPE * n_q);
    tsr_pool_array(&p->pool, p->unit, n);
    tsr_pool_array(&p->pool, p->rigid, n);
    tsr_pool_array(&p->pool, p->xyz, all);
    tsr_pool_array(&p->pool, p->moved, all);
    tsr_pool_array(&p->pool, p->range, all);
    tsr_pool_array(&p->pool, p->proposal, n_system);
    tsr_pool_array(&p->pool, p->profile, n_system * n_q);
    if (tsr_pool_check(&p->pool, err) != TSR_OK) {
        tsr_bench_problem_free(p);
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for %d systems of %d bodies", n_system,
                        n_body);
    }
    double d_bound = 2.0 * p->radius_ang * slack * (1.0 + 1e-6);
    p->spec = (tsr_engine_spec){.n_body = n_body,
                                .n_type = N_TYPE,
                                .n_q = n_q,
                                .dq_inv_ang = acos(-1.0) / (2.0 * d_bound),
                                .n_system = n_system,
                                .type = p->type,
                                .form_factor = p->form_factor,
                                .d_bound_ang = d_bound};
    for (size_t i = 0; i < n; i++)
        p->type[i] = (int)(uniform(&p->state) * N_TYPE);
    for (int t = 0; t < N_TYPE; t++)
        for (int k = 0; k < n_q; k++) {
            double q = k * p->spec.dq_inv_ang;
            p->form_factor[t * n_q + k] =
                (3.0 + t) * exp(-(0.5 + 0.1 * t) * q * q) - 2.0 * q;
        }
    for (size_t i = 0; i < all; i++)
        random_position(p, &p->state, p->xyz[i]);
    for (size_t i = 0; i < n; i++)
        p->unit[i] = i >= n / 2;
    memcpy(p->rigid, p->xyz, n * sizeof *p->rigid);
    memcpy(p->moved, p->xyz, all * sizeof *p->moved);
    for (int i = 0; i < n_system; i++)
        p->random[i] = p->state + UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)i;
    *out = p;
    return TSR_OK;
}

const tsr_engine_spec *tsr_bench_problem_make_rigid(tsr_bench_problem *p)
{
    const size_t n = (size_t)p->spec.n_body;
    for (size_t s = 0; s < (size_t)p->spec.n_system; s++) {
        memcpy(p->xyz + s * n, p->rigid, n * sizeof *p->xyz);
        memcpy(p->moved + s * n, p->rigid, n * sizeof *p->moved);
    }
    p->spec.unit = p->unit;
    p->spec.rigid = (const double(*)[3])p->rigid;
    return &p->spec;
}

static void turn_half(const tsr_bench_problem *p, tsr_body_proposal *proposal,
                      tsr_body_range *range, const double (*xyz)[3],
                      double (*moved)[3], double angle)
{
    int n = p->spec.n_body, first = n / 2;
    double c = cos(angle), s = sin(angle);
    for (int i = first; i < n; i++) {
        moved[i][0] = c * xyz[i][0] - s * xyz[i][1];
        moved[i][1] = s * xyz[i][0] + c * xyz[i][1];
        moved[i][2] = xyz[i][2];
    }
    range[0] = (tsr_body_range){first, n - first, 1,
                                (const double(*)[3])(moved + first)};
    proposal->n_range = 1;
}

static void propose(tsr_bench_problem *p, tsr_bench_case which, int system)
{
    size_t n = (size_t)p->spec.n_body, at = (size_t)system * n;
    const double(*xyz)[3] = (const double(*)[3])(p->xyz + at);
    double(*moved)[3] = p->moved + at;
    tsr_body_range *range = p->range + at;
    tsr_body_proposal *proposal = &p->proposal[system];
    uint64_t *random = &p->random[system];
    int n_body = p->spec.n_body, first = 0, count = n_body;
    *proposal = (tsr_body_proposal){system, 0, range};
    if (which == TSR_BENCH_RIGID_HALF) {
        turn_half(p, proposal, range, xyz, moved, 6.0 * uniform(random));
        return;
    }
    if (which == TSR_BENCH_RANDOM40) {
        for (int i = 0; i < n_body; i++)
            if (uniform(random) < 0.4) {
                random_position(p, random, moved[i]);
                range[proposal->n_range++] =
                    (tsr_body_range){i, 1, 0, (const double(*)[3])(moved + i)};
            }
        return;
    }
    if (which != TSR_BENCH_FULL) {
        count = which == TSR_BENCH_ONE || n_body < 10 ? 1 : 10;
        first = (int)(uniform(random) * (n_body - count + 1));
    }
    for (int i = first; i < first + count; i++)
        random_position(p, random, moved[i]);
    range[0] =
        (tsr_body_range){first, count, 0, (const double(*)[3])(moved + first)};
    proposal->n_range = 1;
}

/* Accepts or rejects the proposal of a system; xyz and moved are equal
 * afterwards. */
static void decide(tsr_bench_problem *p, tsr_batch *batch, int system,
                   int accept)
{
    size_t at = (size_t)system * (size_t)p->spec.n_body;
    const tsr_body_proposal *proposal = &p->proposal[system];
    for (int r = 0; r < proposal->n_range; r++) {
        const tsr_body_range *range = &proposal->range[r];
        size_t first = at + (size_t)range->first;
        size_t bytes = (size_t)range->count * sizeof *p->xyz;
        if (accept)
            memcpy(p->xyz + first, p->moved + first, bytes);
        else
            memcpy(p->moved + first, p->xyz + first, bytes);
    }
    if (accept)
        tsr_batch_accept(batch, system);
    else
        tsr_batch_reject(batch, system);
}

/* The largest relative deviation of the profile of system 0 from that of the
 * reference engine. */
static tsr_status measure_error(const tsr_bench_problem *p, tsr_batch *batch,
                                double *max_rel_error, tsr_err *err)
{
    tsr_engine_spec spec = p->spec;
    size_t n_q = (size_t)spec.n_q;
    tsr_engine *engine = NULL;
    tsr_batch *own = NULL;
    double *exact = calloc(2 * n_q, sizeof *exact), *profile = exact + n_q;
    spec.n_system = 1;
    tsr_status status = tsr_allocated(exact, err);
    TSR_THEN(status, tsr_batch_profile(batch, 0, profile, err));
    TSR_THEN(status, tsr_engine_reference_new(&spec, &engine, err));
    TSR_THEN(status, tsr_batch_new(engine, 1, &own, err));
    TSR_THEN(status,
             tsr_batch_set(own, 0, (const double(*)[3])p->xyz, exact, err));
    *max_rel_error = 0.0;
    for (size_t k = 0; k < n_q && !status; k++) {
        double error = fabs(profile[k] / exact[k] - 1.0);
        if (!(error <= *max_rel_error)) /* also for NaN */
            *max_rel_error = error;
    }
    tsr_batch_free(own);
    tsr_engine_free(engine);
    free(exact);
    return status;
}

/* Sends the coordinates of the systems below n that the engine does not have
 * yet. */
static tsr_status set_systems(tsr_bench_problem *p, tsr_batch *batch, int n,
                              tsr_err *err)
{
    size_t n_body = (size_t)p->spec.n_body;
    tsr_status status = TSR_OK;
    for (; p->n_set < n && !status; p->n_set += status == TSR_OK)
        status = tsr_batch_set(
            batch, p->n_set,
            (const double(*)[3])(p->xyz + (size_t)p->n_set * n_body), NULL,
            err);
    return status;
}

tsr_status tsr_bench_run(tsr_bench_problem *p, tsr_engine *engine,
                         const tsr_bench_options *o, tsr_bench_row *row,
                         tsr_err *err)
{
    static const int warm_up = 1;
    double us[MAX_RUNS], spent = 0.0, fastest = HUGE_VAL;
    tsr_batch *batch = NULL;
    int n = 0;
    if (o->n_batch < 1 || o->n_batch > p->spec.n_system)
        return tsr_fail(err, TSR_E_USAGE, "a batch of %d of %d systems",
                        o->n_batch, p->spec.n_system);
    *row = (tsr_bench_row){.which = o->which,
                           .batch = o->n_batch,
                           .device_us_per_profile = (double)NAN,
                           .max_rel_error = (double)NAN};
    tsr_status status = tsr_batch_new(engine, o->n_batch, &batch, err);
    if (!status)
        status = set_systems(p, batch, o->n_batch, err);
    for (int run = 0;
         !status && n < MAX_RUNS && (n < MIN_RUNS || spent < 1e6 * o->seconds);
         run++) {
        for (int s = 0; s < o->n_batch; s++)
            propose(p, o->which, s);
        double start = 1e6 * tsr_clock_s();
        status = tsr_batch_submit(batch, o->n_batch, p->proposal, err);
        if (!status)
            status = tsr_batch_wait(batch, p->profile, err);
        double t = 1e6 * tsr_clock_s() - start;
        for (int s = 0; s < o->n_batch && !status; s++)
            decide(p, batch, s, run % 2);
        if (status || run < warm_up)
            continue;
        us[n++] = t;
        spent += t;
        if (t < fastest) {
            fastest = t;
            if (o->device_us != NULL)
                row->device_us_per_profile = o->device_us(batch) / o->n_batch;
        }
    }
    if (!status && o->is_exact)
        status = measure_error(p, batch, &row->max_rel_error, err);
    if (!status) {
        gsl_sort(us, 1, (size_t)n);
        row->n_run = n;
        row->wall_us_per_profile = us[0] / o->n_batch;
        row->median_us_per_profile = us[n / 2] / o->n_batch;
    }
    tsr_batch_free(batch);
    return status;
}

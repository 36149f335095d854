/* The part that all engines share: argument checks, the state of systems and
 * batches, the bound on rounding errors, and the joint engine.
 *
 * One file checks the arguments for all engines, so an error of the caller has
 * the same message on every device. tsr_engine_rounding (engine.h) derives the
 * bound on rounding errors. A profile outside the bound shows a fault of the
 * device, the driver or a kernel. */
#include "engine/engine.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tsr_status tsr_engine_spec_check(const tsr_engine_spec *spec, tsr_err *err)
{
    if (spec == NULL || spec->type == NULL || spec->form_factor == NULL)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: no types or form factors");
    if (spec->n_body < 1 || spec->n_type < 1 || spec->n_system < 1)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d bodies of %d types in %d systems; each "
                        "must be at least 1",
                        spec->n_body, spec->n_type, spec->n_system);
    if (spec->n_comp < 0 || spec->n_comp > 3)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d components; 1 to 3 are possible",
                        spec->n_comp);
    if (spec->n_q < 2)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d grid points; at least 2 are needed",
                        spec->n_q);
    if (!(spec->dq_inv_ang > 0.0) || !isfinite(spec->dq_inv_ang))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: grid step %g 1/Angstrom is not positive",
                        spec->dq_inv_ang);
    if (!(spec->d_bound_ang >= 0.0) || !isfinite(spec->d_bound_ang))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: largest distance %g Angstrom; expected 0 (no "
                        "check) or more",
                        spec->d_bound_ang);
    for (int i = 0; i < spec->n_body; i++)
        if (spec->type[i] < 0 || spec->type[i] >= spec->n_type)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: body %d has type %d of %d", i,
                            spec->type[i], spec->n_type);
    if (spec->unit != NULL && spec->rigid == NULL)
        return tsr_fail(
            err, TSR_E_INTERNAL,
            "engine: rigid units without positions of their bodies");
    for (int i = 0; i < spec->n_body && spec->unit != NULL; i++)
        if (spec->unit[i] < -1 || spec->unit[i] >= spec->n_body)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: body %d belongs to unknown unit %d", i,
                            spec->unit[i]);
    if (spec->n_copy > 1 &&
        (spec->n_body % spec->n_copy != 0 || spec->n_unique < 2 ||
         spec->n_unique > spec->n_copy || spec->copy_weight == NULL))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d bodies in %d copies, %d of them unique",
                        spec->n_body, spec->n_copy, spec->n_unique);
    int n_table = tsr_engine_n_comp(spec) * spec->n_type;
    for (int t = 0; t < n_table; t++)
        for (int k = 0; k < spec->n_q; k++)
            if (!isfinite(spec->form_factor[(size_t)t * (size_t)spec->n_q +
                                            (size_t)k]))
                return tsr_fail(err, TSR_E_INTERNAL,
                                "engine: the form factor of type %d at q = %g "
                                "1/Angstrom is not finite",
                                t % spec->n_type, k * spec->dq_inv_ang);
    return TSR_OK;
}

/* sum_i |F_i| and sum_i F_i^2 of one component at q_k. */
static void sum_form_factors(const tsr_engine_spec *spec, int comp, int k,
                             double *size, double *square)
{
    *size = *square = 0.0;
    for (int i = 0; i < spec->n_body; i++) {
        double f = *tsr_engine_factor(spec, comp, spec->type[i], k);
        *size += fabs(f);
        *square += f * f;
    }
}

void tsr_engine_rounding(const tsr_engine_spec *spec, double unit, int tile,
                         int n_store, double *out)
{
    const double t = 8.0, shared = 8.0; /* shared: units of the errors that
                                           bodies of one type have in common */
    const double copies = spec->n_copy > 1 ? 2.0 * spec->n_unique : 1.0;
    const double independent = t * tile * sqrt(2.0 * n_store * copies);
    const int n_comp = tsr_engine_n_comp(spec);
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++)
            for (int k = 0; k < spec->n_q; k++) {
                double size_a, size_b, square_a, square_b;
                sum_form_factors(spec, a, k, &size_a, &square_a);
                sum_form_factors(spec, b, k, &size_b, &square_b);
                *out++ = unit * (shared * size_a * size_b +
                                 independent * sqrt(square_a * square_b));
            }
}

int tsr_engine_worst_difference(const tsr_engine *engine, const double *profile,
                                const double *correct, double *allowed)
{
    const double promise = 1e-5; /* relative error of an engine's profile */
    double most = 1.0;
    int at = -1;
    for (int k = 0; k < engine->n_pair * engine->n_q; k++) {
        double limit = engine->rounding[k] + promise * fabs(correct[k]);
        double error = fabs(profile[k] - correct[k]);
        if (error <= most * limit) /* false for a NaN */
            continue;
        most = isfinite(error) && limit > 0.0 ? error / limit : HUGE_VAL;
        *allowed = limit;
        at = k;
    }
    return at;
}

/* ---- engines ---- */

static tsr_status open_engine(const tsr_engine_type *type, tsr_engine head,
                              tsr_engine **out, tsr_err *err)
{
    tsr_engine *e = calloc(1, type->size);
    *out = e;
    TSR_TRY(tsr_allocated(e, err));
    *e = head;
    e->type = type;
    tsr_pool_array(&e->pool, e->rounding, tsr_engine_n_profile(e));
    tsr_pool_array(&e->pool, e->state, e->n_system);
    return tsr_engine_finish(out, tsr_pool_check(&e->pool, err));
}

tsr_status tsr_engine_open(const tsr_engine_type *type,
                           const tsr_engine_spec *spec, tsr_engine **out,
                           tsr_err *err)
{
    *out = NULL;
    TSR_TRY(tsr_engine_spec_check(spec, err));
    const int n_comp = tsr_engine_n_comp(spec);
    return open_engine(type,
                       (tsr_engine){.n_body = spec->n_body,
                                    .n_q = spec->n_q,
                                    .n_comp = n_comp,
                                    .n_pair = n_comp * (n_comp + 1) / 2,
                                    .n_system = spec->n_system,
                                    .dq_inv_ang = spec->dq_inv_ang,
                                    .d_bound_ang = spec->d_bound_ang},
                       out, err);
}

void tsr_engine_free(tsr_engine *engine)
{
    if (engine == NULL)
        return;
    if (engine->type->close != NULL)
        engine->type->close(engine);
    tsr_pool_clear(&engine->pool);
    free(engine);
}

tsr_status tsr_engine_finish(tsr_engine **engine, tsr_status status)
{
    if (status == TSR_OK)
        return TSR_OK;
    tsr_engine_free(*engine);
    *engine = NULL;
    return status;
}

/* ---- batches ---- */

tsr_status tsr_batch_new(tsr_engine *engine, int max_proposal, tsr_batch **out,
                         tsr_err *err)
{
    *out = NULL;
    if (max_proposal < 1)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: a batch of %d proposals",
                        max_proposal);
    tsr_batch *b = calloc(1, engine->type->batch_size);
    TSR_TRY(tsr_allocated(b, err));
    b->engine = engine;
    b->max_proposal = max_proposal;
    tsr_pool_array(&b->pool, b->system, max_proposal);
    tsr_status status = tsr_pool_check(&b->pool, err);
    TSR_THEN(status, engine->type->batch_open(b, err));
    TSR_HAND_OVER(status, b, out, tsr_batch_free);
}

static void reject_all(tsr_batch *batch)
{
    for (int p = 0; p < batch->n; p++)
        tsr_batch_reject(batch, batch->system[p]);
    batch->n = 0;
}

void tsr_batch_free(tsr_batch *batch)
{
    if (batch == NULL)
        return;
    reject_all(batch); /* proposals for which nobody waited */
    if (batch->engine->type->batch_close != NULL)
        batch->engine->type->batch_close(batch);
    tsr_pool_clear(&batch->pool);
    free(batch);
}

static tsr_status idle_check(const tsr_batch *batch, tsr_err *err)
{
    return batch->n == 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_INTERNAL,
                          "engine: the batch has %d proposals in flight",
                          batch->n);
}

static tsr_status system_check(const tsr_engine *engine, int system,
                               tsr_err *err)
{
    return system >= 0 && system < engine->n_system
               ? TSR_OK
               : tsr_fail(err, TSR_E_INTERNAL,
                          "engine: there is no system %d of %d", system,
                          engine->n_system);
}

static tsr_status ranges_check(const tsr_engine *engine,
                               const tsr_body_proposal *proposal, tsr_err *err)
{
    int end = 0;
    for (int r = 0; r < proposal->n_range; r++) {
        const tsr_body_range *range = &proposal->range[r];
        if (range->count < 1 || range->group < 0 || range->first < end ||
            range->count > engine->n_body - range->first)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: range %d of a proposal is %d bodies from "
                            "%d, group %d; ranges ascend from %d within %d "
                            "bodies",
                            r, range->count, range->first, range->group, end,
                            engine->n_body);
        end = range->first + range->count;
    }
    return TSR_OK;
}

static tsr_status propose(tsr_batch *batch, const tsr_body_proposal *proposal,
                          tsr_err *err)
{
    const tsr_engine *e = batch->engine;
    const int system = proposal->system;
    TSR_TRY(system_check(e, system, err));
    TSR_TRY(ranges_check(e, proposal, err));
    if ((!batch->is_fresh && !e->state[system].is_set) ||
        e->state[system].is_pending)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d %s", system,
                        e->state[system].is_set
                            ? "has a proposal that was neither accepted nor "
                              "rejected"
                            : "was never set");
    batch->system[batch->n++] = system;
    tsr_status status = TSR_OK;
    if (e->type->propose != NULL)
        status = e->type->propose(batch, proposal, err);
    e->state[system].is_pending = status == TSR_OK;
    return status;
}

tsr_status tsr_batch_submit(tsr_batch *batch, int n,
                            const tsr_body_proposal *proposal, tsr_err *err)
{
    const tsr_engine_type *type = batch->engine->type;
    tsr_status status = idle_check(batch, err);
    if (status == TSR_OK && (n < 0 || n > batch->max_proposal))
        status = tsr_fail(err, TSR_E_INTERNAL,
                          "engine: %d proposals in a batch of %d", n,
                          batch->max_proposal);
    if (status != TSR_OK || n == 0)
        return status;
    batch->n_submitted = n;
    for (int p = 0; p < n && status == TSR_OK; p++)
        status = propose(batch, &proposal[p], err);
    if (status == TSR_OK && type->start != NULL)
        status = type->start(batch, proposal, err);
    if (status == TSR_OK)
        return TSR_OK;
    if (type->cancel != NULL)
        type->cancel(batch);
    reject_all(batch);
    return status;
}

tsr_status tsr_batch_wait(tsr_batch *batch, double *profile, tsr_err *err)
{
    if (batch->n == 0)
        return TSR_OK;
    const tsr_status status = batch->engine->type->wait(batch, profile, err);
    if (status != TSR_OK)
        reject_all(batch);
    batch->n = 0;
    return status;
}

tsr_status tsr_batch_set(tsr_batch *batch, int system, const double (*xyz)[3],
                         double *profile, tsr_err *err)
{
    const tsr_body_range all = {.count = batch->engine->n_body, .xyz = xyz};
    const tsr_body_proposal proposal = {system, 1, &all};
    TSR_TRY(idle_check(batch, err));
    TSR_TRY(system_check(batch->engine, system, err));
    tsr_batch_reject(batch, system);
    batch->is_fresh = 1;
    tsr_status status = tsr_batch_submit(batch, 1, &proposal, err);
    TSR_THEN(status, tsr_batch_wait(batch, profile, err));
    if (status == TSR_OK) {
        tsr_batch_accept(batch, system);
        batch->engine->state[system].is_set = 1;
    }
    batch->is_fresh = 0;
    return status;
}

/* Passes the decision about a pending proposal to the engine's type. */
static void apply_decision(tsr_engine *engine, int system, int is_accepted)
{
    void (*const apply)(tsr_engine * engine, int system) =
        is_accepted ? engine->type->accept : engine->type->reject;
    if (engine->state[system].is_pending && apply != NULL)
        apply(engine, system);
    engine->state[system].is_pending = 0;
}

void tsr_batch_accept(tsr_batch *batch, int system)
{
    apply_decision(batch->engine, system, 1);
}

void tsr_batch_reject(tsr_batch *batch, int system)
{
    apply_decision(batch->engine, system, 0);
}

tsr_status tsr_batch_profile(tsr_batch *batch, int system, double *profile,
                             tsr_err *err)
{
    const tsr_engine *e = batch->engine;
    TSR_TRY(system_check(e, system, err));
    if (!e->state[system].is_set)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d was never set",
                        system);
    e->type->profile(e, system, profile);
    return TSR_OK;
}

tsr_status tsr_engine_xyz_check(int n, int first, int system,
                                const double (*xyz)[3], tsr_err *err)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(xyz[i][0]) || !isfinite(xyz[i][1]) ||
            !isfinite(xyz[i][2]))
            return tsr_fail(err, TSR_E_NUMERIC,
                            "engine: the position (%g, %g, %g) of body %d of "
                            "system %d is not finite",
                            xyz[i][0], xyz[i][1], xyz[i][2], first + i, system);
    return TSR_OK;
}

tsr_status tsr_engine_proposal_check(const tsr_body_proposal *proposal,
                                     tsr_err *err)
{
    for (int r = 0; r < proposal->n_range; r++)
        TSR_TRY(tsr_engine_xyz_check(proposal->range[r].count,
                                     proposal->range[r].first, proposal->system,
                                     proposal->range[r].xyz, err));
    return TSR_OK;
}

double tsr_engine_bounding_ball(int n, const double (*xyz)[3], double centre[3])
{
    double low[3], high[3], most2 = 0.0;
    tsr_vec3_copy(low, xyz[0]);
    tsr_vec3_copy(high, xyz[0]);
    for (int i = 1; i < n; i++)
        for (int c = 0; c < 3; c++) {
            low[c] = xyz[i][c] < low[c] ? xyz[i][c] : low[c];
            high[c] = xyz[i][c] > high[c] ? xyz[i][c] : high[c];
        }
    for (int c = 0; c < 3; c++)
        centre[c] = 0.5 * (low[c] + high[c]);
    for (int i = 0; i < n; i++) {
        const double d2 = tsr_vec3_distance2(xyz[i], centre);
        most2 = d2 > most2 ? d2 : most2;
    }
    return most2;
}

tsr_status tsr_engine_extent_check(const tsr_engine *engine, int system, int n,
                                   const double (*xyz)[3], tsr_err *err)
{
    const double limit = engine->d_bound_ang * (1.0 + 1e-6);
    if (!(limit > 0.0) || !tsr_is_distance_beyond(n, xyz, limit))
        return TSR_OK;
    return tsr_fail(err, TSR_E_RANGE,
                    "engine: two bodies of system %d are %.6g Angstrom apart; "
                    "the q grid allows at most %.6g",
                    system, tsr_largest_distance(n, xyz), engine->d_bound_ang);
}

/* ---- several engines as one ----
 *
 * All parts have the same bodies and systems, and each part has form factors of
 * its own: one part for X-rays, say, and one for each neutron probe. A proposal
 * goes to all parts, and all parts accept it or reject it. The profiles of the
 * parts are concatenated, so a caller sees one engine with the pairs of
 * components of all parts. */

typedef struct {
    tsr_engine base;
    int n;
    tsr_engine **part; /* [n] owned */
} joint_engine;

typedef struct {
    tsr_batch base;
    tsr_batch **part; /* [n] one batch for each part */
    double *profile;  /* [max_proposal][n_pair][n_q] one part's profiles */
} joint_batch;

static const joint_engine *joint_of(const tsr_batch *batch)
{
    return (const joint_engine *)batch->engine;
}

static void joint_close(tsr_engine *engine)
{
    joint_engine *e = (joint_engine *)engine;
    for (int i = 0; i < e->n; i++)
        tsr_engine_free(e->part[i]);
}

static void joint_batch_close(tsr_batch *base)
{
    joint_batch *b = (joint_batch *)base;
    for (int i = 0; b->part != NULL && i < joint_of(base)->n; i++)
        tsr_batch_free(b->part[i]);
}

static tsr_status joint_batch_open(tsr_batch *base, tsr_err *err)
{
    const joint_engine *e = joint_of(base);
    joint_batch *b = (joint_batch *)base;
    tsr_pool_array(&base->pool, b->part, e->n);
    tsr_pool_array(&base->pool, b->profile,
                   (size_t)base->max_proposal * tsr_engine_n_profile(&e->base));
    TSR_TRY(tsr_pool_check(&base->pool, err));
    for (int i = 0; i < e->n; i++)
        TSR_TRY(
            tsr_batch_new(e->part[i], base->max_proposal, &b->part[i], err));
    return TSR_OK;
}

/* The first part checks the positions. If it refuses them, no other part has
 * started, so only the failure of a device can leave the parts with different
 * positions. */
static tsr_status joint_start(tsr_batch *base,
                              const tsr_body_proposal *proposal, tsr_err *err)
{
    joint_batch *b = (joint_batch *)base;
    for (int i = 0; i < joint_of(base)->n; i++)
        TSR_TRY(base->is_fresh
                    ? tsr_batch_set(b->part[i], proposal->system,
                                    proposal->range->xyz, NULL, err)
                    : tsr_batch_submit(b->part[i], base->n, proposal, err));
    return TSR_OK;
}

static void joint_cancel(tsr_batch *base)
{
    joint_batch *b = (joint_batch *)base;
    for (int i = 0; i < joint_of(base)->n; i++)
        (void)tsr_batch_wait(b->part[i], b->profile, NULL);
}

static void joint_profile(const tsr_engine *engine, int system, double *profile)
{
    const joint_engine *e = (const joint_engine *)engine;
    for (int i = 0; i < e->n; i++) {
        e->part[i]->type->profile(e->part[i], system, profile);
        profile += tsr_engine_n_profile(e->part[i]);
    }
}

/* Waits for all parts, also after an error, and copies their profiles into the
 * joint profiles. */
static tsr_status joint_wait(tsr_batch *base, double *profile, tsr_err *err)
{
    const joint_engine *e = joint_of(base);
    const joint_batch *b = (const joint_batch *)base;
    const size_t stride = tsr_engine_n_profile(&e->base);
    tsr_status status = TSR_OK;
    if (base->is_fresh) {
        if (profile != NULL)
            joint_profile(base->engine, base->system[0], profile);
        return TSR_OK;
    }
    for (int i = 0; i < e->n; i++) {
        const size_t row = tsr_engine_n_profile(e->part[i]);
        const tsr_status part = tsr_batch_wait(b->part[i], b->profile,
                                               status == TSR_OK ? err : NULL);
        status = status == TSR_OK ? part : status;
        for (size_t p = 0; p < (size_t)base->n && status == TSR_OK; p++)
            memcpy(profile + p * stride, b->profile + p * row,
                   row * sizeof *profile);
        profile += row;
    }
    return status;
}

static void joint_accept(tsr_engine *engine, int system)
{
    for (int i = 0; i < ((joint_engine *)engine)->n; i++)
        apply_decision(((joint_engine *)engine)->part[i], system, 1);
}

static void joint_reject(tsr_engine *engine, int system)
{
    for (int i = 0; i < ((joint_engine *)engine)->n; i++)
        apply_decision(((joint_engine *)engine)->part[i], system, 0);
}

static const tsr_engine_type joint_type = {
    .name = "joint",
    .doc = "several engines with form factors of their own",
    .size = sizeof(joint_engine),
    .batch_size = sizeof(joint_batch),
    .close = joint_close,
    .batch_open = joint_batch_open,
    .batch_close = joint_batch_close,
    .start = joint_start,
    .cancel = joint_cancel,
    .wait = joint_wait,
    .accept = joint_accept,
    .reject = joint_reject,
    .profile = joint_profile};

/* The head of the joint engine: sums of pairs and memory over the parts. */
static tsr_engine joint_head(int n, tsr_engine *const *part)
{
    tsr_engine sum = *part[0];
    double fraction =
        0.0; /* fraction of the device memory that one system occupies */
    sum.pool = (tsr_pool){0};
    sum.n_comp = sum.n_pair = 0;
    sum.system_bytes = sum.shared_bytes = 0.0;
    for (int i = 0; i < n; i++) {
        sum.n_comp += part[i]->n_comp;
        sum.n_pair += part[i]->n_pair;
        sum.system_bytes += part[i]->system_bytes;
        sum.shared_bytes += part[i]->shared_bytes;
        if (part[i]->max_systems > 0.0)
            fraction += 1.0 / part[i]->max_systems;
    }
    sum.max_systems = fraction > 0.0 ? floor(1.0 / fraction) : 0.0;
    return sum;
}

tsr_status tsr_engine_join(int n, tsr_engine **part, tsr_engine **out,
                           tsr_err *err)
{
    *out = NULL;
    if (n == 1) {
        *out = part[0];
        return TSR_OK;
    }
    for (int i = 1; i < n; i++)
        if (part[i]->n_body != part[0]->n_body ||
            part[i]->n_system != part[0]->n_system ||
            part[i]->n_q != part[0]->n_q ||
            part[i]->dq_inv_ang != part[0]->dq_inv_ang)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: part %d differs in bodies, systems or q "
                            "from the first",
                            i);
    TSR_TRY(open_engine(&joint_type, joint_head(n, part), out, err));
    joint_engine *e = (joint_engine *)*out;
    tsr_pool_array(&e->base.pool, e->part, n);
    if (e->part == NULL)
        return tsr_engine_finish(out, tsr_no_memory(err));
    memcpy(e->part, part, (size_t)n * sizeof(*part));
    e->n = n;
    double *to = e->base.rounding;
    for (int i = 0; i < n; i++) {
        memcpy(to, part[i]->rounding,
               tsr_engine_n_profile(part[i]) * sizeof *to);
        to += tsr_engine_n_profile(part[i]);
    }
    return TSR_OK;
}

/* Several engines as one: the same bodies of the same systems, each engine with
 * form factors of its own, as X-rays and neutrons have them.
 *
 * A proposal goes to all of them and is accepted or rejected by all. Their
 * profiles lie one after another, so that whoever asks sees one engine with as
 * many pairs of components as they have together. */
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    tsr_engine base;
    int n;
    tsr_engine **part; /* [n] owned */
} joint_engine;

typedef struct {
    tsr_batch base;
    tsr_batch **part; /* [n of the engine] */
    int n, *system;   /* [max_proposal] in flight */
    double *profile;  /* [max_proposal][n_pair][n_q] of one part */
} joint_batch;

static const joint_engine *engine_of(const tsr_batch *batch)
{
    return (const joint_engine *)batch->engine;
}

/* Numbers of a part's profile. */
static size_t row_of(const tsr_engine *engine)
{
    return (size_t)engine->n_pair * (size_t)engine->n_q;
}

static void joint_free(tsr_engine *engine)
{
    joint_engine *e = (joint_engine *)engine;
    for (int i = 0; e->part != NULL && i < e->n; i++)
        tsr_engine_free(e->part[i]);
    free(e->part);
    free(e->base.rounding);
    free(e);
}

static void joint_batch_free(tsr_batch *base)
{
    joint_batch *b = (joint_batch *)base;
    for (int i = 0; b->part != NULL && i < engine_of(base)->n; i++)
        tsr_batch_free(b->part[i]);
    free(b->part);
    free(b->system);
    free(b->profile);
    free(b);
}

static tsr_status joint_batch_new(tsr_engine *engine, int max_proposal,
                                  tsr_batch **out, tsr_err *err)
{
    const joint_engine *e = (const joint_engine *)engine;
    const size_t n = (size_t)max_proposal;
    joint_batch *b = calloc(1, sizeof *b);
    if (b == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    b->base.engine = engine;
    b->part = calloc((size_t)e->n, sizeof(*b->part));
    b->system = calloc(n, sizeof *b->system);
    b->profile = calloc(n * row_of(engine), sizeof *b->profile);
    tsr_status status =
        b->part == NULL || b->system == NULL || b->profile == NULL
            ? tsr_fail(err, TSR_E_NOMEM, "out of memory for a batch of %d",
                       max_proposal)
            : TSR_OK;
    for (int i = 0; i < e->n && status == TSR_OK; i++)
        status = tsr_batch_new(e->part[i], max_proposal, &b->part[i], err);
    if (status == TSR_OK)
        *out = &b->base;
    else
        joint_batch_free(&b->base);
    return status;
}

/* What the bodies' places are refused for they are refused for by the first
 * part, so that no part is ahead of another but where a device fails. */
static tsr_status joint_set(tsr_batch *base, int system, const double (*xyz)[3],
                            double *profile, tsr_err *err)
{
    const joint_engine *e = engine_of(base);
    joint_batch *b = (joint_batch *)base;
    for (int i = 0; i < e->n; i++) {
        TSR_TRY(tsr_batch_set(b->part[i], system, xyz, profile, err));
        if (profile != NULL)
            profile += row_of(e->part[i]);
    }
    return TSR_OK;
}

static void joint_accept(tsr_batch *base, int system)
{
    for (int i = 0; i < engine_of(base)->n; i++)
        tsr_batch_accept(((joint_batch *)base)->part[i], system);
}

static void joint_reject(tsr_batch *base, int system)
{
    for (int i = 0; i < engine_of(base)->n; i++)
        tsr_batch_reject(((joint_batch *)base)->part[i], system);
}

/* Parts first..last-1 finish what they were asked, and it is rejected. */
static void give_up(joint_batch *b, int first, int last)
{
    tsr_err nobody;
    for (int i = first; i < last; i++)
        if (tsr_batch_wait(b->part[i], b->profile, &nobody) == TSR_OK)
            for (int p = 0; p < b->n; p++)
                tsr_batch_reject(b->part[i], b->system[p]);
}

static tsr_status joint_submit(tsr_batch *base, int n,
                               const tsr_body_proposal *proposal, tsr_err *err)
{
    const joint_engine *e = engine_of(base);
    joint_batch *b = (joint_batch *)base;
    for (int i = 0; i < e->n; i++) {
        const tsr_status status =
            tsr_batch_submit(b->part[i], n, proposal, err);
        if (status != TSR_OK) {
            give_up(b, 0, i);
            return status;
        }
        b->n = n; /* the first part found that there is room */
        for (int p = 0; p < n; p++)
            b->system[p] = proposal[p].system;
    }
    return TSR_OK;
}

/* Rows of `from` [n] into places of `to` that are `stride` apart. */
static void spread(int n, size_t row, const double *from, size_t stride,
                   double *to)
{
    for (size_t p = 0; p < (size_t)n; p++)
        memcpy(to + p * stride, from + p * row, row * sizeof *to);
}

static tsr_status joint_wait(tsr_batch *base, double *profile, tsr_err *err)
{
    const joint_engine *e = engine_of(base);
    joint_batch *b = (joint_batch *)base;
    for (int i = 0; i < e->n; i++) {
        const size_t row = row_of(e->part[i]);
        const tsr_status status = tsr_batch_wait(b->part[i], b->profile, err);
        if (status != TSR_OK) {
            for (int k = 0; k < i; k++)
                for (int p = 0; p < b->n; p++)
                    tsr_batch_reject(b->part[k], b->system[p]);
            give_up(b, i + 1, e->n);
            return status;
        }
        spread(b->n, row, b->profile, row_of(base->engine), profile);
        profile += row;
    }
    return TSR_OK;
}

static tsr_status joint_profile(tsr_batch *base, int system, double *profile,
                                tsr_err *err)
{
    const joint_engine *e = engine_of(base);
    for (int i = 0; i < e->n; i++) {
        TSR_TRY(tsr_batch_profile(((joint_batch *)base)->part[i], system,
                                  profile, err));
        profile += row_of(e->part[i]);
    }
    return TSR_OK;
}

static const tsr_engine_type joint_type = {
    .name = "joint",
    .doc = "several engines with form factors of their own",
    .free = joint_free,
    .batch_new = joint_batch_new,
    .batch_free = joint_batch_free,
    .set = joint_set,
    .submit = joint_submit,
    .wait = joint_wait,
    .accept = joint_accept,
    .reject = joint_reject,
    .profile = joint_profile};

/* What the parts have together: pairs and how they round, memory. */
static int add_up(joint_engine *e)
{
    tsr_engine *base = &e->base;
    double share = 0.0; /* of the device, that one system takes */
    *base = *e->part[0];
    base->type = &joint_type;
    base->n_comp = base->n_pair = 0;
    base->system_bytes = base->shared_bytes = base->most_systems = 0.0;
    for (int i = 0; i < e->n; i++) {
        base->n_comp += e->part[i]->n_comp;
        base->n_pair += e->part[i]->n_pair;
        base->system_bytes += e->part[i]->system_bytes;
        base->shared_bytes += e->part[i]->shared_bytes;
        if (e->part[i]->most_systems > 0.0)
            share += 1.0 / e->part[i]->most_systems;
    }
    if (share > 0.0)
        base->most_systems = floor(1.0 / share);
    base->rounding = calloc(row_of(base), sizeof *base->rounding);
    double *to = base->rounding;
    for (int i = 0; to != NULL && i < e->n; i++) {
        memcpy(to, e->part[i]->rounding, row_of(e->part[i]) * sizeof *to);
        to += row_of(e->part[i]);
    }
    return base->rounding != NULL;
}

tsr_status tsr_engine_join(int n, tsr_engine **part, tsr_engine **out,
                           tsr_err *err)
{
    joint_engine *e = NULL;
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
                            "engine: part %d has not the bodies, systems or q "
                            "of the first",
                            i);
    e = calloc(1, sizeof *e);
    if (e != NULL)
        e->part = calloc((size_t)n, sizeof(*e->part));
    if (e == NULL || e->part == NULL) {
        free(e);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for an engine");
    }
    memcpy(e->part, part, (size_t)n * sizeof(*part));
    e->n = n;
    if (!add_up(e)) {
        free(e->part);
        free(e);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for an engine");
    }
    *out = &e->base;
    return TSR_OK;
}

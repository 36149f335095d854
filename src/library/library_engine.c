/* The engine of the public library: engine/engine.h with arrays in place of
 * structs, and arguments checked as those of a stranger. */
#include "library/library.h"

#include "core/pool.h"
#include "engine/engine.h"
#include "gpu/device.h"
#include "gpu/engine_device.h"

struct tessera_engine {
    tsr_bodies bodies; /* n 0: the caller's scatterers */
    double q_max;
    tsr_device *device; /* NULL: the reference engine */
    tsr_engine *engine;
};

struct tessera_batch {
    tsr_batch *batch;
    int max_proposal;
    tsr_pool pool;
    tsr_body_proposal *proposal; /* [max_proposal] */
    tsr_body_range *range;       /* [n_range], grows */
    long n_range;
};

/* The layers below report a wrong argument as an internal error, since their
 * callers are tessera itself. */
static tsr_status of_caller(tsr_status status)
{
    return status == TSR_E_INTERNAL ? TSR_E_USAGE : status;
}

/* A flat array as rows of three. A cast would drop const for -Wcast-qual. */
static const double (*rows_of(const double *xyz))[3]
{
    const union {
        const double *flat;
        const double (*row)[3];
    } as = {xyz};
    return as.row;
}

/* Opens the device, tests it, and makes the engine. */
static tsr_status open_engine(const tsr_engine_spec *spec, const char *device,
                              tessera_engine *e, tsr_err *err)
{
    if (device != NULL && strcmp(device, "reference") == 0)
        return tsr_engine_reference_new(spec, &e->engine, err);
    TSR_TRY(tsr_device_open(device, &e->device, err));
    TSR_TRY(tsr_engine_self_test(e->device, NULL, spec->n_body,
                                 tsr_engine_n_comp(spec), NULL, err));
    return tsr_engine_device_new(spec, e->device, TSR_ENGINE_TILES, &e->engine,
                                 err);
}

int tessera_engine_new(int n_body, const int *type, int n_type, int n_comp,
                       int n_q, double dq, const double *form_factor,
                       double d_bound, int n_system, const char *device,
                       tessera_engine **out)
{
    TSR_PUBLIC_NEW(out, type != NULL && form_factor != NULL);
    TSR_REQUIRE(n_comp >= 1 && n_comp <= 3);
    const tsr_engine_spec spec = {.n_body = n_body,
                                  .n_type = n_type,
                                  .n_comp = n_comp,
                                  .n_q = n_q,
                                  .dq_inv_ang = dq,
                                  .n_system = n_system,
                                  .type = type,
                                  .form_factor = form_factor,
                                  .d_bound_ang = d_bound};
    TSR_CALL(of_caller(tsr_engine_spec_check(&spec, err)));
    TSR_CALL(tsr_library_finite("form_factor", (long)n_comp * n_type * n_q,
                                form_factor, err));
    TSR_MAKE(out);
    TSR_MADE(open_engine(&spec, device, *out, err), out, tessera_engine_free);
}

static tsr_status read_bodies(const char *path, int scatterers, double d_bound,
                              tessera_engine *e, tsr_err *err)
{
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)scatterers,
                                   .density = TSR_WATER_DENSITY,
                                   .device = "reference",
                                   .method = TSR_METHOD_AUTO,
                                   .q_max_inv_ang = e->q_max};
    tsr_profile_maker *maker = NULL;
    tsr_status status = tsr_profile_maker_new(&spec, NULL, &maker, err);
    TSR_THEN(status, tsr_bodies_read(maker, path, d_bound, &e->bodies, err));
    tsr_profile_maker_free(maker);
    return status;
}

int tessera_engine_of_file(const char *path, int scatterers, double q_max,
                           double d_bound, int n_system, const char *device,
                           tessera_engine **out)
{
    TSR_PUBLIC_NEW(out, path != NULL);
    TSR_REQUIRE(scatterers == TESSERA_TWO_BODIES ||
                scatterers == TESSERA_ONE_BODY);
    TSR_REQUIRE(q_max >= 0.01 && q_max <= 10.0);
    TSR_REQUIRE(d_bound >= 1.0 && d_bound <= 1e4);
    TSR_REQUIRE(n_system >= 1);
    TSR_MAKE(out);
    (*out)->q_max = q_max;
    tsr_status status = read_bodies(path, scatterers, d_bound, *out, err);
    tsr_engine_spec spec = (*out)->bodies.coarse.spec;
    spec.n_system = n_system;
    spec.d_bound_ang = d_bound;
    TSR_THEN(status, open_engine(&spec, device, *out, err));
    TSR_MADE(status, out, tessera_engine_free);
}

int tessera_engine_n_body(const tessera_engine *engine)
{
    return engine != NULL ? engine->engine->n_body : 0;
}

int tessera_engine_bodies(const tessera_engine *engine, double *xyz,
                          int *residue)
{
    TSR_PUBLIC(engine != NULL && engine->bodies.n > 0);
    const tsr_bodies *b = &engine->bodies;
    if (xyz != NULL)
        memcpy(xyz, b->xyz, (size_t)b->n * sizeof *b->xyz);
    if (residue != NULL)
        memcpy(residue, b->residue, (size_t)b->n * sizeof *residue);
    return TESSERA_OK;
}

int tessera_profile_of_engine(const tessera_engine *engine,
                              const double *profile, tessera_profile **out)
{
    TSR_PUBLIC_NEW(out, engine != NULL && profile != NULL);
    TSR_REQUIRE(engine->bodies.n > 0);
    TSR_MAKE(out);
    (*out)->q_max = engine->q_max;
    TSR_MADE(
        tsr_bodies_profile(&engine->bodies, profile, &(*out)->structure, err),
        out, tessera_profile_free);
}

void tessera_engine_free(tessera_engine *engine)
{
    if (engine == NULL)
        return;
    tsr_engine_free(engine->engine);
    tsr_device_free(engine->device);
    tsr_pool_clear(&engine->bodies.pool);
    free(engine);
}

int tessera_engine_profile_size(const tessera_engine *engine)
{
    return engine != NULL ? (int)tsr_engine_n_profile(engine->engine) : 0;
}

const char *tessera_engine_text(const tessera_engine *engine)
{
    return engine != NULL ? engine->engine->description : "";
}

int tessera_batch_new(tessera_engine *engine, int max_proposal,
                      tessera_batch **out)
{
    TSR_PUBLIC_NEW(out, engine != NULL && max_proposal >= 1);
    TSR_MAKE(out);
    tessera_batch *b = *out;
    b->max_proposal = max_proposal;
    tsr_pool_array(&b->pool, b->proposal, max_proposal);
    tsr_status status = tsr_pool_check(&b->pool, err);
    TSR_THEN(status,
             tsr_batch_new(engine->engine, max_proposal, &b->batch, err));
    TSR_MADE(status, out, tessera_batch_free);
}

void tessera_batch_free(tessera_batch *batch)
{
    if (batch == NULL)
        return;
    tsr_batch_free(batch->batch);
    tsr_pool_clear(&batch->pool);
    free(batch);
}

/* Is `system` a system of the batch's engine? */
static int has_system(const tessera_batch *batch, int system)
{
    return system >= 0 && system < batch->batch->engine->n_system;
}

int tessera_batch_set(tessera_batch *batch, int system, const double *xyz,
                      double *profile)
{
    TSR_PUBLIC(batch != NULL && xyz != NULL);
    return (int)of_caller(
        tsr_batch_set(batch->batch, system, rows_of(xyz), profile, err));
}

static tsr_status reserve_ranges(tessera_batch *b, long n, tsr_err *err)
{
    if (n <= b->n_range)
        return TSR_OK;
    tsr_body_range *more =
        tsr_pool_resize(&b->pool, b->range, (size_t)n, sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    b->range = more;
    b->n_range = n;
    return TSR_OK;
}

int tessera_batch_propose(tessera_batch *batch, int n, const int *system,
                          const int *n_range, const int *range,
                          const double *xyz, double *profile)
{
    TSR_PUBLIC(batch != NULL && n >= 0 && n <= batch->max_proposal);
    if (n == 0)
        return TESSERA_OK;
    TSR_REQUIRE(system != NULL && n_range != NULL && profile != NULL);
    const int n_body = batch->batch->engine->n_body;
    long n_all = 0;
    for (int p = 0; p < n; p++) {
        TSR_REQUIRE(n_range[p] >= 0);
        n_all += n_range[p];
    }
    TSR_REQUIRE(n_all <= (long)n * n_body);
    TSR_REQUIRE(n_all == 0 || (range != NULL && xyz != NULL));
    TSR_CALL(reserve_ranges(batch, n_all, err));
    tsr_body_range *to = batch->range;
    for (int p = 0; p < n; p++) {
        batch->proposal[p] = (tsr_body_proposal){system[p], n_range[p], to};
        for (int r = 0; r < n_range[p]; r++, range += 3, to++) {
            TSR_REQUIRE(range[1] >= 1 && range[1] <= n_body);
            *to = (tsr_body_range){range[0], range[1], range[2], rows_of(xyz)};
            xyz += 3 * (size_t)range[1];
        }
    }
    tsr_status status = tsr_batch_submit(batch->batch, n, batch->proposal, err);
    TSR_THEN(status, tsr_batch_wait(batch->batch, profile, err));
    return (int)of_caller(status);
}

int tessera_batch_accept(tessera_batch *batch, int system)
{
    TSR_PUBLIC(batch != NULL && has_system(batch, system));
    tsr_batch_accept(batch->batch, system);
    return TESSERA_OK;
}

int tessera_batch_reject(tessera_batch *batch, int system)
{
    TSR_PUBLIC(batch != NULL && has_system(batch, system));
    tsr_batch_reject(batch->batch, system);
    return TESSERA_OK;
}

int tessera_batch_profile(tessera_batch *batch, int system, double *profile)
{
    TSR_PUBLIC(batch != NULL && profile != NULL);
    return (int)of_caller(
        tsr_batch_profile(batch->batch, system, profile, err));
}

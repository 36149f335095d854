/* An engine tells its device memory beforehand and refuses, with numbers, to
 * exceed a limit. */
#include "../engine_support.h"
#include "tests/test.h"

enum { N_BODY = 100, N_Q = 20, N_SYSTEM = 8 };

TEST(limit)
{
    int type[N_BODY] = {0};
    double factor[N_Q];
    tsr_engine *engine;
    tsr_device *device = open_device();
    if (device == NULL)
        skip();
    for (int k = 0; k < N_Q; k++)
        factor[k] = 10.0;
    tsr_engine_spec spec =
        ROW(.n_body = N_BODY, .n_type = 1, .n_q = N_Q, .dq_inv_ang = 0.01,
            .n_system = N_SYSTEM, .type = type, .form_factor = factor);
    const double room = tsr_engine_capacity(&spec, device, TSR_ENGINE_TILES);
    OK(tsr_engine_page_tile_new(&spec, device, NULL, &engine, &err));
    const double each = engine->system_bytes, shared = engine->shared_bytes;
    assert_true(engine->max_systems == room);
    tsr_engine_free(engine);
    /* a second component makes three pairs: tiles take thrice as much */
    double two[2 * N_Q];
    tsr_engine_spec pair = spec;
    memcpy(two, factor, sizeof factor);
    memcpy(two + N_Q, factor, sizeof factor);
    pair.n_comp = 2;
    pair.form_factor = two;
    OK(tsr_engine_page_tile_new(&pair, device, NULL, &engine, &err));
    assert_true(engine->system_bytes > each && engine->system_bytes < 3 * each);
    assert_true(fmod(engine->system_bytes - each, 2.0) == 0.0);
    tsr_engine_free(engine);

    tsr_page_tile_options options = {.memory_limit =
                                         (uint64_t)(N_SYSTEM * each + shared)};
    OK(tsr_engine_page_tile_new(&spec, device, &options, &engine, &err));
    assert_true(engine->system_bytes == each);
    assert_true(engine->max_systems == (double)N_SYSTEM);
    tsr_engine_free(engine);
    options.memory_limit--;
    FAILS(tsr_engine_page_tile_new(&spec, device, &options, &engine, &err),
          TSR_E_DEVICE, "8 systems of 100 bodies");
    assert_null(engine);
    assert_has(err.message, "7 systems fit");
}

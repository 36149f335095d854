/* For tests of engines: numbers, and every variant on the device at hand. */
#ifndef TESTS_ENGINE_SUPPORT_H
#define TESTS_ENGINE_SUPPORT_H

#include "engine/engine.h"
#include "gpu/engine_device.h"
#include "tests/objects.h"

#include <fnmatch.h>

static inline double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

typedef struct {
    const char *name;
    tsr_page_tile_options options;
    double limit; /* relative error of I(q) that is tolerated */
    int one_of;   /* of the long runs, the fraction that it does */
} engine_variant;

/* SIMT kernels are slow on a CPU device: they do a part of the moves. 1e-5 is
 * the engine's promise. */
static const engine_variant variants[] = {
    {"SIMD", {.variant = TSR_PAGE_TILE_SIMD}, 1e-5, 1},
    {"SIMD, tile 64, copied, no differences",
     {.variant = TSR_PAGE_TILE_SIMD,
      .tile = 64,
      .difference = -1,
      .transfer = TSR_TRANSFER_COPY},
     1e-5,
     5},
    {"SIMD, tile 16, groups of 12 pages",
     {.variant = TSR_PAGE_TILE_SIMD, .tile = 16, .max_pages = 12},
     1e-5,
     10},
    {"SIMT", {.variant = TSR_PAGE_TILE_SIMT}, 1e-5, 50},
    {"SIMT, copied, many launches, runs of 3",
     {.variant = TSR_PAGE_TILE_SIMT,
      .difference = 16,
      .max_age = 2,
      .transfer = TSR_TRANSFER_COPY,
      .tiles_a_launch = 20,
      .split = 3},
     1e-5,
     100},
    {"SIMT, no atomics, copied, tile 64, groups of 20 pages",
     {.variant = TSR_PAGE_TILE_SIMT,
      .no_atomics = 1,
      .difference = -1,
      .tile = 64,
      .max_pages = 20,
      .transfer = TSR_TRANSFER_COPY},
     1e-5,
     100},
    {"SIMT, no atomics, differences",
     {.variant = TSR_PAGE_TILE_SIMT, .no_atomics = 1, .tile = 16},
     1e-5,
     100},
    {"plane waves", {0}, 1e-5, 10}, /* they have no options */
    {"plane waves, as a GPU's", {0}, 1e-5, 50},
};
enum { N_VARIANT = COUNT_OF(variants) };

static inline int is_wave(const engine_variant *v)
{
    return v >= &variants[N_VARIANT - 2];
}

/* Largest relative difference of two profiles; NaN counts as infinite. */
static inline double worst_error(const double *profile, const double *exact,
                                 int n_q)
{
    double worst = 0.0;
    for (int k = 0; k < n_q; k++) {
        double error = fabs(profile[k] / exact[k] - 1.0);
        if (!(error <= worst))
            worst = isnan(error) ? (double)INFINITY : error;
    }
    return worst;
}

static inline tsr_device *open_device(void)
{
    tsr_device *device;
    const char *choice = getenv("TESSERA_TEST_DEVICE");
    if (tsr_device_open(choice != NULL ? choice : "auto", &device, &err) !=
        TSR_OK) {
        printf("skipped: %s\n", err.message);
        return NULL;
    }
    return own_tsr_device(device);
}

/* The test is skipped where there is no device. */
static inline tsr_device *need_device(void)
{
    tsr_device *device = open_device();
    if (device == NULL)
        skip();
    return device;
}

/* TESSERA_TEST_VARIANT: only variants whose names match it. */
static inline int has_variant(const engine_variant *v)
{
    const char *only = getenv("TESSERA_TEST_VARIANT");
    return only == NULL || fnmatch(only, v->name, 0) == 0;
}

static inline tsr_status make_variant(const tsr_engine_spec *spec,
                                      const tsr_device *device,
                                      const engine_variant *v, tsr_engine **out,
                                      tsr_err *err)
{
    return is_wave(v)
               ? tsr_engine_plane_wave_new(
                     spec, device, v == &variants[N_VARIANT - 1], out, err)
               : tsr_engine_page_tile_new(spec, device, &v->options, out, err);
}

static inline tsr_engine *new_variant(const tsr_engine_spec *spec,
                                      const tsr_device *device,
                                      const engine_variant *v)
{
    NEW(tsr_engine, engine, make_variant, spec, device, v);
    return engine;
}

#endif

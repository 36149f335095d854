/* Known answers of the map sums' program on a device, against the reference:
 * two small models in a small map, all sets of voxels. */
#include "maps/map_sum.h"

#include <math.h>
#include <stdlib.h>

enum { N_ATOM = 120 };

static const double limit = 1e-5; /* some ten times what rounding makes */

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

typedef struct {
    tsr_map *map;
    double xyz[N_ATOM][3];
    unsigned char z[N_ATOM];
    tsr_blur_table blur;
    tsr_density_engine *fast, *slow;
    tsr_density_sums got[2], want[2];
} sample;

/* Atoms within the map and beyond its edges; unknown voxels. */
static tsr_status fill(sample *s, tsr_err *err)
{
    static const int element[] = {6, 7, 8};
    const tsr_map_grid grid = {.n = {21, 18, 27},
                               .step = {1.5, 1.7, 1.3},
                               .origin = {-10.0, 5.0, 100.0}};
    uint64_t state = 2014;
    TSR_TRY(tsr_map_new(&grid, &s->map, err));
    for (size_t k = 0; k < tsr_map_n_voxel(&grid); k++)
        s->map->value[k] = k % 61 == 0 ? NAN : (float)uniform(&state);
    for (int i = 0; i < N_ATOM; i++) {
        s->z[i] = (unsigned char)element[i % 3];
        for (int c = 0; c < 3; c++)
            s->xyz[i][c] = grid.origin[c] + grid.step[c] * grid.n[c] *
                                                (1.2 * uniform(&state) - 0.1);
    }
    return tsr_blur_make(TSR_BLUR_GAUSSIAN, 6.0, 0.3, 3, element, &s->blur,
                         err);
}

static tsr_status run(const sample *s, tsr_density_engine *engine,
                      tsr_density_sums *out, tsr_err *err)
{
    const int first[3] = {0, N_ATOM / 3, N_ATOM};
    const double threshold[2] = {2.0, 4.0};
    const tsr_density_batch batch = {.n_system = 2,
                                     .first = first,
                                     .xyz = (const double(*)[3])s->xyz,
                                     .z = s->z};
    const tsr_density_options o = {.mask_ang = 3.0, .threshold = threshold};
    TSR_TRY(tsr_density_set_blur(engine, &s->blur, err));
    return tsr_density_run(engine, &batch, &o, out, err);
}

/* The larger of `worst` and the relative difference; NaN stays. */
static double worse(double worst, double got, double want)
{
    const double error = fabs(got - want) / (fabs(want) + 1e-30);
    return error <= worst ? worst : error;
}

static double error_of(const tsr_map_sums *got, const tsr_map_sums *want,
                       double worst)
{
    worst = worse(worst, got->n, want->n);
    worst = worse(worst, got->e, want->e);
    worst = worse(worst, got->ee, want->ee);
    worst = worse(worst, got->s, want->s);
    worst = worse(worst, got->ss, want->ss);
    return worse(worst, got->es, want->es);
}

static tsr_status compare(sample *s, const tsr_device *device, double *worst,
                          tsr_err *err)
{
    TSR_TRY(tsr_map_sum_new(device, s->map, &s->fast, err));
    TSR_TRY(tsr_density_reference_new(s->map, &s->slow, err));
    TSR_TRY(run(s, s->fast, s->got, err));
    TSR_TRY(run(s, s->slow, s->want, err));
    for (int k = 0; k < 2; k++) {
        *worst = error_of(&s->got[k].box, &s->want[k].box, *worst);
        *worst = error_of(&s->got[k].mask, &s->want[k].mask, *worst);
        *worst = error_of(&s->got[k].above, &s->want[k].above, *worst);
    }
    return TSR_OK;
}

tsr_status tsr_map_sum_test(const tsr_device *device, double *max_rel_error,
                            tsr_err *err)
{
    double worst = 0.0;
    sample *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a self-test");
    tsr_status status = fill(s, err);
    if (status == TSR_OK)
        status = compare(s, device, &worst, err);
    if (status == TSR_OK && !(worst <= limit))
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s fails the self-test of density maps: a relative "
                          "error of %.2e; %.0e is allowed. Do not use this "
                          "device or driver, or give --device reference",
                          tsr_device_get_info(device)->name, worst, limit);
    if (max_rel_error != NULL)
        *max_rel_error = worst;
    tsr_density_free(s->fast);
    tsr_density_free(s->slow);
    tsr_map_free(s->map);
    free(s);
    return status;
}

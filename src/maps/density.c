/* The reference: every Gaussian at every voxel of its reach, in double
 * precision. */
#include "maps/density.h"

#include "core/parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t tsr_map_n_tile(const tsr_map_grid *grid)
{
    size_t n = 1;
    for (int c = 0; c < 3; c++)
        n *= (size_t)tsr_map_tiles(grid->n[c]);
    return n;
}

/* ---- sums of a whole map ---- */

enum { PARTS = 256, VOXELS_A_THREAD = 1 << 16 };

typedef struct {
    const tsr_map *map;
    size_t n_voxel;
    tsr_map_sums part[PARTS];
} whole_map;

static void add_part(void *context, int part, int thread)
{
    whole_map *w = context;
    const size_t first = w->n_voxel * (size_t)part / PARTS;
    const size_t last = w->n_voxel * ((size_t)part + 1) / PARTS;
    tsr_map_sums sum = {0};
    (void)thread;
    for (size_t k = first; k < last; k++) {
        const double e = (double)w->map->value[k];
        if (isnan(e))
            continue;
        sum.n += 1.0;
        sum.e += e;
        sum.ee += e * e;
    }
    w->part[part] = sum;
}

/* The parts are the same and are added in their order, whoever did them. */
tsr_map_sums tsr_map_whole(const tsr_map *map)
{
    whole_map w = {.map = map, .n_voxel = tsr_map_n_voxel(&map->grid)};
    const size_t useful = w.n_voxel / VOXELS_A_THREAD + 1;
    const int n = tsr_parallel_processors();
    tsr_map_sums whole = {0};
    tsr_parallel_run(PARTS, useful < (size_t)n ? (int)useful : n, add_part, &w);
    for (int k = 0; k < PARTS; k++) {
        whole.n += w.part[k].n;
        whole.e += w.part[k].e;
        whole.ee += w.part[k].ee;
    }
    return whole;
}

tsr_status tsr_density_not_finite(tsr_err *err)
{
    return tsr_fail(err, TSR_E_NUMERIC,
                    "a coordinate of a model is not a finite number");
}

tsr_status tsr_density_set_blur(tsr_density_engine *engine,
                                const tsr_blur_table *blur, tsr_err *err)
{
    return engine->set_blur(engine, blur, err);
}

tsr_status tsr_density_run(tsr_density_engine *engine,
                           const tsr_density_batch *batch,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err)
{
    return engine->run(engine, batch, options, out, err);
}

void tsr_density_free(tsr_density_engine *engine)
{
    if (engine != NULL)
        engine->free(engine);
}

/* ---- the reference ---- */

typedef struct {
    tsr_density_engine base;
    double *density;     /* [n_voxel] of the system at hand */
    unsigned char *mask; /* [n_voxel] */
} reference;

/* Voxels first .. last along an axis that are within `reach` of x. */
static int range(const tsr_map_grid *g, int axis, double x, double reach,
                 int *first, int *last)
{
    const double at = (x - g->origin[axis]) / g->step[axis];
    const double far = reach / g->step[axis];
    const double low = ceil(at - far), high = floor(at + far);
    *first = low < 0.0 ? 0 : low > 1e9 ? (int)1e9 : (int)low;
    *last = high > g->n[axis] - 1.0 ? g->n[axis] - 1
            : high < -1.0           ? -1
                                    : (int)high;
    return *first <= *last;
}

typedef struct {
    int first[3], last[3];
} voxel_box;

static int box_around(const tsr_map_grid *g, const double x[3], double reach,
                      voxel_box *box)
{
    for (int c = 0; c < 3; c++)
        if (!range(g, c, x[c], reach, &box->first[c], &box->last[c]))
            return 0;
    return 1;
}

static double distance2(const tsr_map_grid *g, const double r[3], int x, int y,
                        int z)
{
    const int at[3] = {x, y, z};
    double sum = 0.0;
    for (int c = 0; c < 3; c++) {
        double d = g->origin[c] + g->step[c] * at[c] - r[c];
        sum += d * d;
    }
    return sum;
}

static void add_gaussian(reference *e, const double r[3],
                         const tsr_gaussian *gaussian)
{
    const tsr_map_grid *g = &e->base.map->grid;
    voxel_box b;
    if (!box_around(g, r, TSR_BLUR_REACH * gaussian->sigma_ang, &b))
        return;
    const double falls = 0.5 / (gaussian->sigma_ang * gaussian->sigma_ang);
    for (int z = b.first[2]; z <= b.last[2]; z++)
        for (int y = b.first[1]; y <= b.last[1]; y++) {
            double *row =
                e->density +
                ((size_t)z * (size_t)g->n[1] + (size_t)y) * (size_t)g->n[0];
            for (int x = b.first[0]; x <= b.last[0]; x++)
                row[x] += gaussian->amplitude *
                          exp(-falls * distance2(g, r, x, y, z));
        }
}

static void add_mask(reference *e, const double r[3], double radius)
{
    const tsr_map_grid *g = &e->base.map->grid;
    voxel_box b;
    if (!box_around(g, r, radius, &b))
        return;
    for (int z = b.first[2]; z <= b.last[2]; z++)
        for (int y = b.first[1]; y <= b.last[1]; y++) {
            unsigned char *row =
                e->mask +
                ((size_t)z * (size_t)g->n[1] + (size_t)y) * (size_t)g->n[0];
            for (int x = b.first[0]; x <= b.last[0]; x++)
                if (distance2(g, r, x, y, z) <= radius * radius)
                    row[x] = 1;
        }
}

static void add_up(const reference *e, const tsr_density_options *o,
                   double threshold, tsr_density_sums *out)
{
    const tsr_map *map = e->base.map;
    const int *n = map->grid.n;
    const size_t nx = (size_t)tsr_map_tiles(n[0]);
    const size_t ny = (size_t)tsr_map_tiles(n[1]);
    size_t k = 0;
    for (size_t z = 0; z < (size_t)n[2]; z++)
        for (size_t y = 0; y < (size_t)n[1]; y++)
            for (size_t x = 0; x < (size_t)n[0]; x++, k++) {
                const double value = (double)map->value[k], s = e->density[k];
                if (isnan(value))
                    continue;
                tsr_map_sums_add(&out->box, value, s);
                if (e->mask[k])
                    tsr_map_sums_add(&out->mask, value, s);
                if (s >= threshold)
                    tsr_map_sums_add(&out->above, value, s);
                if (o->tile != NULL)
                    tsr_map_sums_add(
                        &o->tile[(z / TSR_TILE_SIDE * ny + y / TSR_TILE_SIDE) *
                                     nx +
                                 x / TSR_TILE_SIDE],
                        value, s);
            }
}

static tsr_status reference_run(tsr_density_engine *engine,
                                const tsr_density_batch *batch,
                                const tsr_density_options *o,
                                tsr_density_sums *out, tsr_err *err)
{
    reference *e = (reference *)engine;
    const size_t n_voxel = tsr_map_n_voxel(&engine->map->grid);
    for (int i = batch->first[0]; i < batch->first[batch->n_system]; i++)
        for (int c = 0; c < 3; c++)
            if (!(fabs(batch->xyz[i][c]) <= 1e30))
                return tsr_density_not_finite(err);
    if (o->tile != NULL)
        memset(o->tile, 0,
               tsr_map_n_tile(&engine->map->grid) * sizeof *o->tile);
    for (int k = 0; k < batch->n_system; k++) {
        memset(e->density, 0, n_voxel * sizeof *e->density);
        memset(e->mask, 0, n_voxel);
        for (int i = batch->first[k]; i < batch->first[k + 1]; i++) {
            const int z = batch->z[i];
            const tsr_gaussian *own =
                &engine->blur.gaussian[engine->blur.first[z]];
            for (int g = 0; g < engine->blur.count[z]; g++)
                add_gaussian(e, batch->xyz[i], &own[g]);
            if (o->mask_ang > 0.0)
                add_mask(e, batch->xyz[i], o->mask_ang);
        }
        out[k] = (tsr_density_sums){0};
        add_up(e, o, o->threshold != NULL ? o->threshold[k] : (double)INFINITY,
               &out[k]);
        for (size_t v = 0; o->density != NULL && v < n_voxel; v++)
            o->density[v] = (float)e->density[v];
    }
    return TSR_OK;
}

static tsr_status reference_blur(tsr_density_engine *engine,
                                 const tsr_blur_table *blur, tsr_err *err)
{
    (void)err;
    engine->blur = *blur;
    return TSR_OK;
}

static void reference_free(tsr_density_engine *engine)
{
    reference *e = (reference *)engine;
    free(e->density);
    free(e->mask);
    free(e);
}

tsr_status tsr_density_reference_new(const tsr_map *map,
                                     tsr_density_engine **out, tsr_err *err)
{
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    reference *e = calloc(1, sizeof *e);
    *out = NULL;
    if (e != NULL) {
        e->density = calloc(n_voxel, sizeof *e->density);
        e->mask = calloc(n_voxel, 1);
    }
    if (e == NULL || e->density == NULL || e->mask == NULL) {
        if (e != NULL)
            reference_free(&e->base);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a density");
    }
    e->base = (tsr_density_engine){.free = reference_free,
                                   .set_blur = reference_blur,
                                   .run = reference_run,
                                   .map = map,
                                   .whole = tsr_map_whole(map)};
    snprintf(e->base.describe, sizeof e->base.describe,
             "reference, double precision");
    *out = &e->base;
    return TSR_OK;
}

/* Blurred atoms, the density of a model on a grid, and its correlation with a
 * map. */
#include "maps/density.h"

#include "core/parallel.h"

#include <math.h>
#include <string.h>

/* ---- density ----
 *
 * The map is cut into slabs of eight planes along z. A slab adds the Gaussians
 * that reach it, system by system, so that slabs share nothing and threads can
 * take one each. A Gaussian is the product of three factors, one for each axis:
 * a voxel costs one multiply-add. Sums are added slab after slab: they do not
 * depend on the number of threads. */

size_t tsr_map_n_tile(const tsr_map_grid *grid)
{
    size_t n = 1;
    for (int c = 0; c < 3; c++)
        n *= (size_t)tsr_map_tiles(grid->n[c]);
    return n;
}

/* Partial sums, added in fixed order, reduce the rounding error. */
tsr_map_sums tsr_map_whole(const tsr_map *map)
{
    enum { PARTS = 256 };
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    tsr_map_sums whole = {0};
    for (size_t part = 0; part < PARTS; part++) {
        const size_t end = n_voxel * (part + 1) / PARTS;
        tsr_map_sums sum = {0};
        for (size_t k = n_voxel * part / PARTS; k < end; k++)
            if (!isnan(map->value[k]))
                tsr_map_sums_add(&sum, (double)map->value[k], 0.0);
        whole.n += sum.n;
        whole.e += sum.e;
        whole.ee += sum.ee;
    }
    return whole;
}

tsr_status tsr_systems_make(tsr_pool *pool, int n_system, size_t n_atom,
                            tsr_systems *out, tsr_err *err)
{
    *out = (tsr_systems){.n = 0};
    tsr_pool_array(pool, out->first, n_system + 1);
    tsr_pool_array(pool, out->xyz, n_atom);
    tsr_pool_array(pool, out->z, n_atom);
    return tsr_pool_check(pool, err);
}

double (*tsr_systems_add(tsr_systems *s, int n, const int *atom,
                         const double (*xyz)[3], const unsigned char *z))[3]
{
    const int at = s->first[s->n];
    for (int i = 0; i < n; i++) {
        const int from = atom != NULL ? atom[i] : i;
        memcpy(s->xyz[at + i], xyz[from], sizeof *s->xyz);
        s->z[at + i] = z[from];
    }
    s->first[++s->n] = at + n;
    return s->xyz + at;
}

/* The voxels of a box: first to last along x, y, z. Empty where last <
 * first. */
typedef struct {
    int first[3], last[3];
} voxels;

/* Systems of a call whose sums are kept by slab until all slabs are done. */
enum { GROUP = 64 };

typedef struct {
    tsr_density_engine *engine;
    const tsr_systems *systems;
    const tsr_density_options *options;
    int first, n;           /* systems of the present group */
    tsr_density_sums *part; /* [n_slab][GROUP] */
} call;

static voxels slab_of(const tsr_map_grid *g, int slab)
{
    const int first = slab * TSR_TILE_SIDE, end = first + TSR_TILE_SIDE;
    return (voxels){
        {0, 0, first},
        {g->n[0] - 1, g->n[1] - 1, (end < g->n[2] ? end : g->n[2]) - 1}};
}

/* The voxels of a slab within reach of x along each axis. Returns 0 where there
 * are none. */
static int find_reached(const tsr_map_grid *g, const voxels *slab,
                        const double x[3], double reach, voxels *out)
{
    for (int c = 0; c < 3; c++) {
        const double at = (x[c] - g->origin[c]) / g->step[c];
        const double far = reach / g->step[c];
        const double low = fmax(slab->first[c], ceil(at - far));
        const double high = fmin(slab->last[c], floor(at + far));
        if (!(low <= high))
            return 0;
        out->first[c] = (int)low;
        out->last[c] = (int)high;
    }
    return 1;
}

static void extend(voxels *box, const voxels *by)
{
    for (int c = 0; c < 3; c++) {
        if (by->first[c] < box->first[c])
            box->first[c] = by->first[c];
        if (by->last[c] > box->last[c])
            box->last[c] = by->last[c];
    }
}

/* Index of the voxel 0, y, z. */
static size_t row_at(const tsr_map_grid *g, int y, int z)
{
    return ((size_t)z * (size_t)g->n[1] + (size_t)y) * (size_t)g->n[0];
}

static void add_gaussian(const tsr_density_engine *e, const voxels *at,
                         const double x[3], double amplitude, double *factor)
{
    const tsr_map_grid *g = &e->map->grid;
    const double rate = 0.5 / (e->sigma_ang * e->sigma_ang);
    double *along[3] = {factor, factor + g->n[0], factor + g->n[0] + g->n[1]};
    for (int c = 0; c < 3; c++)
        for (int k = at->first[c]; k <= at->last[c]; k++) {
            const double d = g->origin[c] + g->step[c] * k - x[c];
            along[c][k - at->first[c]] = exp(-rate * d * d);
        }
    const int n = at->last[0] - at->first[0] + 1;
    for (int z = at->first[2]; z <= at->last[2]; z++)
        for (int y = at->first[1]; y <= at->last[1]; y++) {
            double *to = e->density + row_at(g, y, z) + at->first[0];
            const double height = amplitude * along[2][z - at->first[2]] *
                                  along[1][y - at->first[1]];
            for (int i = 0; i < n; i++)
                to[i] += height * along[0][i];
        }
}

static void add_mask(const tsr_density_engine *e, const voxels *slab,
                     const double x[3], double radius)
{
    tsr_map_box b = tsr_map_box_about(&e->map->grid, x, radius);
    if (b.at[2] < slab->first[2])
        b.at[2] = slab->first[2];
    if (b.last[2] > slab->last[2])
        b.last[2] = slab->last[2];
    while (tsr_map_box_next(&b))
        e->mask[b.k] |= b.square <= radius * radius;
}

/* Adds the atoms of a system; box out: the voxels that they reach. */
static void add_system(const call *c, int system, const voxels *slab,
                       double *factor, voxels *box)
{
    const tsr_density_engine *e = c->engine;
    const tsr_map_grid *g = &e->map->grid;
    const tsr_systems *s = c->systems;
    const double mask_ang = c->options->mask_ang;
    for (int i = s->first[system]; i < s->first[system + 1]; i++) {
        voxels at;
        if (find_reached(g, slab, s->xyz[i], TSR_BLUR_REACH * e->sigma_ang,
                         &at)) {
            extend(box, &at);
            add_gaussian(e, &at, s->xyz[i], s->z[i], factor);
        }
        if (mask_ang > 0.0 && find_reached(g, slab, s->xyz[i], mask_ang, &at)) {
            extend(box, &at);
            add_mask(e, slab, s->xyz[i], mask_ang);
        }
    }
}

/* Adds the sums over the voxels of a box, and sets their density to 0. */
static void sum_voxels(const call *c, const voxels *box, double threshold,
                       tsr_density_sums *out)
{
    const tsr_density_engine *e = c->engine;
    const tsr_density_options *o = c->options;
    const tsr_map_grid *g = &e->map->grid;
    const size_t nx = (size_t)tsr_map_tiles(g->n[0]);
    const size_t ny = (size_t)tsr_map_tiles(g->n[1]);
    for (int z = box->first[2]; z <= box->last[2]; z++)
        for (int y = box->first[1]; y <= box->last[1]; y++)
            for (int x = box->first[0]; x <= box->last[0]; x++) {
                const size_t k = row_at(g, y, z) + (size_t)x;
                const double value = (double)e->map->value[k];
                const double s = e->density[k];
                const int is_masked = e->mask[k];
                e->density[k] = 0.0;
                e->mask[k] = 0;
                if (o->density != NULL)
                    o->density[k] = (float)s;
                if (isnan(value))
                    continue;
                tsr_map_sums_add(&out->box, value, s);
                if (is_masked)
                    tsr_map_sums_add(&out->mask, value, s);
                if (s >= threshold)
                    tsr_map_sums_add(&out->above, value, s);
                if (o->tile != NULL)
                    tsr_map_sums_add(
                        &o->tile[((size_t)(z / TSR_TILE_SIDE) * ny +
                                  (size_t)(y / TSR_TILE_SIDE)) *
                                     nx +
                                 (size_t)(x / TSR_TILE_SIDE)],
                        value, s);
            }
}

/* Computes a slab for all systems of the group. Voxels that no atom reaches are
 * visited only where they count. */
static void run_slab(void *context, int slab, int thread)
{
    const call *c = context;
    const tsr_density_options *o = c->options;
    const tsr_map_grid *g = &c->engine->map->grid;
    const voxels all = slab_of(g, slab);
    const size_t n_factor = (size_t)(g->n[0] + g->n[1] + TSR_TILE_SIDE);
    for (int k = 0; k < c->n; k++) {
        const double threshold = o->threshold != NULL
                                     ? o->threshold[c->first + k]
                                     : (double)INFINITY;
        voxels box = {{all.last[0], all.last[1], all.last[2]},
                      {-1, -1, all.first[2] - 1}};
        tsr_density_sums *out = &c->part[(size_t)slab * GROUP + (size_t)k];
        *out = (tsr_density_sums){0};
        if (o->density != NULL || o->tile != NULL || threshold <= 0.0)
            box = all;
        add_system(c, c->first + k, &all,
                   c->engine->factor + (size_t)thread * n_factor, &box);
        sum_voxels(c, &box, threshold, out);
    }
}

static void add_sums(tsr_map_sums *to, const tsr_map_sums *from)
{
    to->n += from->n;
    to->e += from->e;
    to->ee += from->ee;
    to->s += from->s;
    to->ss += from->ss;
    to->es += from->es;
}

tsr_status tsr_density_run(tsr_density_engine *engine,
                           const tsr_systems *systems,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err)
{
    const tsr_map_grid *g = &engine->map->grid;
    const int n_slab = tsr_map_tiles(g->n[2]);
    call c = {.engine = engine, .systems = systems, .options = options};
    for (int i = 0; i < systems->first[systems->n]; i++)
        for (int d = 0; d < 3; d++)
            if (!(fabs(systems->xyz[i][d]) <= 1e30))
                return tsr_fail(err, TSR_E_NUMERIC,
                                "a coordinate of a model is not a finite "
                                "number");
    if (options->tile != NULL)
        memset(options->tile, 0, tsr_map_n_tile(g) * sizeof *options->tile);
    tsr_pool pool = {0};
    tsr_pool_array(&pool, c.part, (size_t)n_slab * GROUP);
    TSR_TRY(tsr_pool_check(&pool, err));
    for (c.first = 0; c.first < systems->n; c.first += c.n) {
        c.n = systems->n - c.first < GROUP ? systems->n - c.first : GROUP;
        tsr_parallel_run(n_slab, engine->n_thread, run_slab, &c);
        for (int k = 0; k < c.n; k++) {
            tsr_density_sums *sum = &out[c.first + k];
            *sum = (tsr_density_sums){0};
            for (int slab = 0; slab < n_slab; slab++) {
                const tsr_density_sums *part =
                    &c.part[(size_t)slab * GROUP + (size_t)k];
                add_sums(&sum->box, &part->box);
                add_sums(&sum->mask, &part->mask);
                add_sums(&sum->above, &part->above);
            }
            sum->box.n = engine->whole.n;
            sum->box.e = engine->whole.e;
            sum->box.ee = engine->whole.ee;
        }
    }
    tsr_pool_clear(&pool);
    return TSR_OK;
}

tsr_status tsr_density_one(tsr_density_engine *engine, int n_atom,
                           const double (*xyz)[3], const unsigned char *z,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err)
{
    tsr_systems one;
    tsr_pool pool = {0};
    tsr_status status = tsr_systems_make(&pool, 1, (size_t)n_atom, &one, err);
    if (status == TSR_OK)
        tsr_systems_add(&one, n_atom, NULL, xyz, z);
    TSR_THEN(status, tsr_density_run(engine, &one, options, out, err));
    tsr_pool_clear(&pool);
    return status;
}

tsr_status tsr_density_new(const tsr_map *map, tsr_density_engine **out,
                           tsr_err *err)
{
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    const int n_thread = tsr_parallel_processors();
    tsr_pool pool = {0};
    tsr_density_engine arrays = {
        .map = map, .whole = tsr_map_whole(map), .n_thread = n_thread};
    tsr_density_engine *e = tsr_pool_new(&pool, 1, sizeof *e);
    tsr_pool_array(&pool, arrays.density, n_voxel);
    tsr_pool_array(&pool, arrays.mask, n_voxel);
    tsr_pool_array(&pool, arrays.factor,
                   n_thread *
                       (map->grid.n[0] + map->grid.n[1] + TSR_TILE_SIDE));
    *out = NULL;
    const tsr_status status = tsr_pool_check(&pool, err);
    if (status != TSR_OK) {
        tsr_pool_clear(&pool);
        return status;
    }
    *e = arrays;
    e->pool = pool;
    *out = e;
    return TSR_OK;
}

void tsr_density_free(tsr_density_engine *engine)
{
    if (engine == NULL)
        return;
    tsr_pool pool = engine->pool;
    tsr_pool_clear(&pool);
}

/* ---- correlation ----
 *
 * Correlation coefficients from the six sums. For a constant density the result
 * is NaN, which is no error. */

/* n times the variance of S, the variance of E, and their covariance. */
static double var_s(const tsr_map_sums *m)
{
    return m->ss - m->s * m->s / m->n;
}

static double var_e(const tsr_map_sums *m)
{
    return m->ee - m->e * m->e / m->n;
}

static double cov(const tsr_map_sums *m)
{
    return m->es - m->e * m->s / m->n;
}

/* 1: the variance is not larger than its rounding error. square: sum of
 * squares. */
static int is_flat(double variance, double square)
{
    return !(variance > 1e-12 * square);
}

double tsr_map_cc(const tsr_map_sums *sums)
{
    const tsr_map_sums *m = sums;
    if (!(m->n > 0.0) || is_flat(var_s(m), m->ss) || is_flat(var_e(m), m->ee))
        return (double)NAN;
    return cov(m) / sqrt(var_s(m) * var_e(m));
}

double tsr_map_cc_uncentred(const tsr_map_sums *sums)
{
    if (!(sums->ss > 0.0) || !(sums->ee > 0.0))
        return (double)NAN;
    return sums->es / sqrt(sums->ss * sums->ee);
}

void tsr_map_line(const tsr_map_sums *sums, double *slope, double *offset)
{
    const tsr_map_sums *m = sums;
    const double n = m->n > 0.0 ? m->n : 1.0;
    *slope = m->n > 0.0 && !is_flat(var_s(m), m->ss) ? cov(m) / var_s(m) : 0.0;
    *offset = (m->e - *slope * m->s) / n;
}

double tsr_map_sd_s(const tsr_map_sums *sums)
{
    return sqrt(fmax(0.0, var_s(sums) / sums->n));
}

tsr_status tsr_map_tile_cc(const tsr_map *map, const tsr_map_sums *tile,
                           tsr_pool *pool, tsr_map **out, tsr_err *err)
{
    tsr_map_grid grid = map->grid;
    for (int c = 0; c < 3; c++) {
        grid.n[c] = tsr_map_tiles(map->grid.n[c]);
        grid.step[c] = TSR_TILE_SIDE * map->grid.step[c];
        grid.origin[c] += 0.5 * (TSR_TILE_SIDE - 1) * map->grid.step[c];
    }
    TSR_TRY(tsr_map_new(&grid, pool, out, err));
    const size_t n = tsr_map_n_tile(&map->grid);
    for (size_t k = 0; k < n; k++) {
        const double cc = tsr_map_cc(&tile[k]);
        (*out)->value[k] = isnan(cc) ? 0.0f : (float)cc;
    }
    return TSR_OK;
}

/* From the options of an entry to a map that is ready: file, mask, half-maps,
 * filter, margins cut off, and how many of its voxels are worth one. */
#include "maps/map_source.h"

#include "core/text.h"
#include "maps/density.h"
#include "maps/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- masks ----
 *
 * Distances to the nearest place, within reach of it; then the edge. A place
 * changes only voxels that it can reach. */

/* Squares of distances, where they are smaller than what is there. */
static void come_near(const tsr_map_grid *g, const double x[3], double reach,
                      float *square)
{
    tsr_map_box b = tsr_map_box_about(g, x, reach);
    while (tsr_map_box_next(&b))
        if ((float)b.square < square[b.k])
            square[b.k] = (float)b.square;
}

static void soften(size_t n, double radius, double edge, float *value)
{
    const double pi = 3.14159265358979324;
    for (size_t k = 0; k < n; k++) {
        const double beyond = sqrt((double)value[k]) - radius;
        value[k] = beyond <= 0.0 ? 1.0f
                   : beyond >= edge
                       ? 0.0f
                       : (float)(0.5 + 0.5 * cos(pi * beyond / edge));
    }
}

void tsr_mask_around(const tsr_map_grid *grid, int n, const double (*xyz)[3],
                     double radius_ang, double edge_ang, float *value)
{
    const size_t n_voxel = tsr_map_n_voxel(grid);
    for (size_t k = 0; k < n_voxel; k++)
        value[k] = HUGE_VALF;
    for (int i = 0; i < n; i++)
        come_near(grid, xyz[i], radius_ang + edge_ang, value);
    soften(n_voxel, radius_ang, edge_ang, value);
}

/* Inside, next to a voxel that is not: only from there can others be reached.
 */
static int is_at_surface(const tsr_map *map, double threshold, const int at[3])
{
    const int *n = map->grid.n;
    const size_t step[3] = {1, (size_t)n[0], (size_t)n[0] * (size_t)n[1]};
    const size_t k =
        (size_t)at[0] + step[1] * (size_t)at[1] + step[2] * (size_t)at[2];
    if (!((double)map->value[k] >= threshold))
        return 0;
    for (int c = 0; c < 3; c++)
        if (at[c] == 0 || at[c] == n[c] - 1 ||
            !((double)map->value[k - step[c]] >= threshold) ||
            !((double)map->value[k + step[c]] >= threshold))
            return 1;
    return 0;
}

tsr_status tsr_mask_above(const tsr_map *map, double threshold,
                          double radius_ang, double edge_ang, float *value,
                          tsr_err *err)
{
    const tsr_map_grid *g = &map->grid;
    const size_t n_voxel = tsr_map_n_voxel(g);
    size_t n_in = 0, k = 0;
    for (size_t v = 0; v < n_voxel; v++) {
        const int is_in = (double)map->value[v] >= threshold;
        n_in += (size_t)is_in;
        value[v] = is_in ? 0.0f : HUGE_VALF;
    }
    if (n_in == 0 || n_in == n_voxel)
        return tsr_fail(
            err, TSR_E_DATA, "'%s': %s at or above the mask's threshold %g",
            map->path, n_in == 0 ? "no voxel is" : "all voxels are", threshold);
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++)
            for (int x = 0; x < g->n[0]; x++, k++) {
                const int at[3] = {x, y, z};
                const double place[3] = {g->origin[0] + g->step[0] * x,
                                         g->origin[1] + g->step[1] * y,
                                         g->origin[2] + g->step[2] * z};
                if (is_at_surface(map, threshold, at))
                    come_near(g, place, radius_ang + edge_ang, value);
            }
    soften(n_voxel, radius_ang, edge_ang, value);
    return TSR_OK;
}

tsr_status tsr_mask_parse(const char *text, tsr_mask *kind, double *threshold,
                          tsr_err *err)
{
    static const char begins[] = "threshold:";
    const size_t n = sizeof begins - 1;
    char *end;
    *threshold = 0.0;
    *kind = strcmp(text, "model") == 0      ? TSR_MASK_MODEL
            : strncmp(text, begins, n) == 0 ? TSR_MASK_THRESHOLD
                                            : TSR_MASK_FILE;
    if (*kind != TSR_MASK_THRESHOLD)
        return TSR_OK;
    *threshold = strtod(text + n, &end);
    if (end == text + n || *end != '\0' || !isfinite(*threshold))
        return tsr_fail(err, TSR_E_USAGE,
                        "mask '%.40s': expected a file, model, or a density as "
                        "in threshold:0.02",
                        text);
    return TSR_OK;
}

/* ---- a map that is ready ---- */

/* What is known of a map beside its voxels. */
typedef struct {
    const tsr_map_options *o;
    tsr_log *log;
    tsr_pool pool; /* until it is ready */
    tsr_map_source *out;
    unsigned char *is_inside; /* [n_voxel] of the mask; NULL: all are */
    double share;             /* of the voxels inside */
    double mean;              /* of the map; with a mask, of what is outside */
    double n_free; /* frequencies that the filter leaves; 0: no filter */
} job;

tsr_status tsr_mask_make(const tsr_mask_source *s, const tsr_map *map,
                         tsr_log *log, tsr_pool *pool, float **value,
                         tsr_err *err)
{
    tsr_mask kind;
    double threshold;
    tsr_map *file;
    *value = NULL;
    if (s->mask == NULL)
        return TSR_OK;
    TSR_TRY(tsr_mask_parse(s->mask, &kind, &threshold, err));
    if (kind == TSR_MASK_FILE) {
        TSR_TRY(tsr_map_read(s->mask, s->origin, log, pool, &file, err));
        TSR_TRY(tsr_map_expect_grid("mask", file, map, err));
        *value = file->value;
        return TSR_OK;
    }
    if (kind == TSR_MASK_MODEL && s->start.n == 0)
        return tsr_fail(err, s->no_start_status, "%s", s->no_start);
    tsr_pool_array(pool, *value, tsr_map_n_voxel(&map->grid));
    TSR_TRY(tsr_allocated(*value, err));
    if (kind == TSR_MASK_THRESHOLD)
        return tsr_mask_above(map, threshold, s->distance_ang, s->edge_ang,
                              *value, err);
    tsr_mask_around(&map->grid, s->start.n, s->start.xyz, s->distance_ang,
                    s->edge_ang, *value);
    return TSR_OK;
}

tsr_status tsr_map_source_mask(const tsr_map_options *o, const tsr_map *map,
                               tsr_map_start start, tsr_log *log,
                               tsr_pool *pool, float **value, tsr_err *err)
{
    const tsr_mask_source source = {
        .mask = o->mask,
        .origin = (tsr_map_origin)o->origin,
        .distance_ang = o->mask_distance,
        .edge_ang = o->resolution,
        .start = start,
        .no_start_status = TSR_E_CONFIG,
        .no_start = "data: mask: model is made around the start, which is not "
                    "in its place before it is docked; tessera map dock brings "
                    "it there"};
    return tsr_mask_make(&source, map, log, pool, value, err);
}

/* Inside is where the mask is at least 0.5. */
static tsr_status take_mask(job *j, tsr_map_start start, tsr_err *err)
{
    const tsr_map *map = j->out->map;
    const size_t n = tsr_map_n_voxel(&map->grid);
    double n_in = 0.0, n_out = 0.0, outside = 0.0;
    float *mask;
    TSR_TRY(
        tsr_map_source_mask(j->o, map, start, j->log, &j->pool, &mask, err));
    tsr_pool_array(&j->pool, j->is_inside, n);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    for (size_t k = 0; k < n; k++) {
        j->is_inside[k] = mask[k] >= 0.5f;
        n_in += j->is_inside[k];
        if (!j->is_inside[k] && !isnan(map->value[k])) {
            outside += (double)map->value[k];
            n_out += 1.0;
        }
    }
    if (n_in < 1.0 || n_out < 1.0)
        return tsr_fail(err, TSR_E_DATA,
                        "mask '%s' leaves %.0f voxels inside and %.0f "
                        "outside; is it 1 inside and 0 outside?",
                        j->o->mask, n_in, n_out);
    j->share = n_in / (double)n;
    j->mean = outside / fmax(1.0, n_out);
    return TSR_OK;
}

/* Noise by half-maps, with how far they agree. */
static tsr_status read_halves(job *j, tsr_map_noise *noise, tsr_err *err)
{
    const tsr_map_options *o = j->o;
    tsr_map *half[2];
    tsr_fsc fsc;
    for (int k = 0; k < 2; k++) {
        TSR_TRY(tsr_map_read(o->half[k], (tsr_map_origin)o->origin, j->log,
                             &j->pool, &half[k], err));
        TSR_TRY(tsr_map_check(half[k], 0.0, j->log, err));
    }
    TSR_TRY(tsr_noise_of_halves(half[0], half[1], &j->pool, noise, err));
    TSR_TRY(tsr_map_expect_grid("half-map", half[0], j->out->map, err));
    TSR_TRY(tsr_fsc_make(half[0], half[1]->value, &j->pool, &fsc, err));
    tsr_info(j->log,
             "%s: half-maps agree (FSC 0.143) to %s%.2f Angstrom; the "
             "resolution is said to be %g",
             tsr_text_file_name(o->file), fsc.low_is_at_limit ? "< " : "",
             1.0 / fsc.low_inv_ang, o->resolution);
    return TSR_OK;
}

/* The filter by half-maps, else by what is outside of the mask, else none. */
static tsr_status find_filter(job *j, tsr_err *err)
{
    tsr_map_noise noise;
    tsr_map_source *m = j->out;
    m->filter = (tsr_map_filter){.n = 1, .share = {1.0}};
    m->noise = (double)NAN;
    if (j->o->half[0] != NULL)
        TSR_TRY(read_halves(j, &noise, err));
    else if (j->is_inside != NULL)
        TSR_TRY(tsr_noise_of_solvent(m->map, j->is_inside, j->mean, &j->pool,
                                     &noise, err));
    else
        return TSR_OK;
    TSR_TRY(tsr_noise_whiten(&noise, j->o->resolution, &m->filter, &j->n_free,
                             err));
    return tsr_noise_under(&noise, &m->filter, &m->map->grid, j->is_inside,
                           &m->noise, err);
}

/* The box of what is inside, and a margin, is all that is kept. */
static tsr_status crop(job *j, double margin_ang, tsr_pool *pool, tsr_err *err)
{
    tsr_map *from = j->out->map, *to;
    const int *n = from->grid.n;
    int low[3] = {n[0], n[1], n[2]}, high[3] = {-1, -1, -1};
    const size_t nx = (size_t)n[0], ny = (size_t)n[1];
    const size_t n_voxel = tsr_map_n_voxel(&from->grid);
    for (size_t k = 0; k < n_voxel; k++)
        if (j->is_inside[k]) {
            const int at[3] = {(int)(k % nx), (int)(k / nx % ny),
                               (int)(k / (nx * ny))};
            for (int c = 0; c < 3; c++) {
                low[c] = at[c] < low[c] ? at[c] : low[c];
                high[c] = at[c] > high[c] ? at[c] : high[c];
            }
        }
    tsr_map_grid grid = from->grid;
    for (int c = 0; c < 3; c++) {
        const int margin = (int)ceil(margin_ang / grid.step[c]);
        low[c] = low[c] > margin ? low[c] - margin : 0;
        high[c] = high[c] + margin < n[c] ? high[c] + margin : n[c] - 1;
        grid.n[c] = high[c] - low[c] + 1;
        grid.origin[c] += low[c] * grid.step[c];
    }
    TSR_TRY(tsr_map_new(&grid, pool, &to, err));
    for (int z = 0; z < grid.n[2]; z++)
        for (int y = 0; y < grid.n[1]; y++)
            memcpy(to->value + ((size_t)z * (size_t)grid.n[1] + (size_t)y) *
                                   (size_t)grid.n[0],
                   from->value +
                       ((size_t)(z + low[2]) * ny + (size_t)(y + low[1])) * nx +
                       (size_t)low[0],
                   (size_t)grid.n[0] * sizeof *to->value);
    to->path = from->path;
    tsr_info(j->log,
             "%s: cut to the mask's box, %d x %d x %d voxels of %d x %d x "
             "%d",
             tsr_text_file_name(to->path), grid.n[0], grid.n[1], grid.n[2],
             n[0], n[1], n[2]);
    tsr_pool_drop(pool, from->value);
    j->out->map = to;
    return TSR_OK;
}

/* On what share of the voxels the map's variance lies: (sum E^2)^2 / sum E^4 of
 * them, times 3, by which it is all where E is Gaussian noise. Where the
 * solvent is flat, as in a map that was masked or simulated, a structure that
 * is not quite right leaves its residuals where the molecule is; voxels that
 * are met whatever the structure then tell nothing of how large they are, and
 * the larger the box, the more sure of itself the likelihood would be. */
static double share_with_variance(const tsr_map *map, double mean)
{
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    double n = 0.0, square = 0.0, fourth = 0.0;
    for (size_t k = 0; k < n_voxel; k++)
        if (!isnan(map->value[k])) {
            const double e2 = pow((double)map->value[k] - mean, 2.0);
            n += 1.0;
            square += e2;
            fourth += e2 * e2;
        }
    return fmin(1.0, 3.0 * square * square / (n * fourth));
}

/* How many voxels, or frequencies, are independent. */
static tsr_status count_free(const job *j, double *out, tsr_err *err)
{
    const tsr_map_options *o = j->o;
    const tsr_map *map = j->out->map;
    const tsr_map_grid *g = &map->grid;
    const double n_voxel = (double)tsr_map_n_voxel(g);
    const double volume =
        j->share * n_voxel * g->step[0] * g->step[1] * g->step[2];
    *out = o->independent > 0.0 ? o->independent
           : j->n_free > 0.0
               ? j->share * j->n_free
               : share_with_variance(map, j->mean) * 4.0 / 3.0 *
                     3.14159265358979324 * volume / pow(o->resolution, 3.0);
    *out = fmin(*out, n_voxel);
    if (*out < 10.0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': at %g Angstrom the map has %.1f independent "
                        "voxels, too few to say anything",
                        map->path, o->resolution, *out);
    return TSR_OK;
}

static tsr_status read_source(job *j, tsr_map_start start, tsr_pool *pool,
                              tsr_err *err)
{
    const tsr_map_options *o = j->o;
    tsr_map_source *out = j->out;
    double sd;
    TSR_TRY(tsr_map_read(o->file, (tsr_map_origin)o->origin, j->log, pool,
                         &out->map, err));
    TSR_TRY(tsr_map_check(out->map, o->resolution, j->log, err));
    const tsr_map_grid *g = &out->map->grid;
    for (int c = 0; c < 3; c++)
        out->middle[c] = g->origin[c] + 0.5 * (g->n[c] - 1) * g->step[c];
    const tsr_map_sums whole = tsr_map_whole(out->map);
    tsr_map_spread_e(&whole, &j->mean, &sd);
    if (o->mask != NULL)
        TSR_TRY(take_mask(j, start, err));
    TSR_TRY(find_filter(j, err));
    TSR_TRY(count_free(j, &out->n_free, err));
    const size_t n = tsr_map_n_voxel(g);
    tsr_info(j->log, "%s: %zu voxels count as %.0f independent ones%s",
             tsr_text_file_name(o->file), n, out->n_free,
             j->n_free > 0.0 ? ", the noise whitened" : "");
    for (size_t k = 0; k < n && j->is_inside != NULL; k++)
        if (!j->is_inside[k])
            out->map->value[k] = (float)j->mean;
    if (j->is_inside != NULL)
        TSR_TRY(crop(j, 3.0 * o->resolution, pool, err));
    out->noise /= (double)tsr_map_n_voxel(&out->map->grid);
    return TSR_OK;
}

tsr_status tsr_map_source_read(const tsr_map_options *options,
                               tsr_map_start start, tsr_log *log,
                               tsr_pool *pool, tsr_map_source *out,
                               tsr_err *err)
{
    job j = {.o = options, .log = log, .out = out, .share = 1.0};
    *out = (tsr_map_source){.map = NULL};
    const tsr_status status = read_source(&j, start, pool, err);
    tsr_pool_clear(&j.pool);
    return status;
}

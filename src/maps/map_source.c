/* From the options of an entry to a map that is ready: file, mask, half-maps,
 * filter, margins cut off, and how many of its voxels are worth one. */
#include "maps/map_source.h"

#include "core/text.h"
#include "maps/correlation.h"
#include "maps/map_noise.h"
#include "maps/mask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is known of a map beside its voxels. */
typedef struct {
    tsr_map *map;
    double middle[3];         /* of the file's box */
    unsigned char *is_inside; /* [n_voxel] of the mask; NULL: all are */
    double share;             /* of the voxels inside */
    double mean;              /* of the map; with a mask, of what is outside */
    tsr_map_filter filter;
    double n_free; /* frequencies that the filter leaves; 0: no filter */
    double noise;  /* sum over the voxels of N W N; NaN: not known */
} source_map;

static tsr_status read_mask_file(const tsr_map_options *o, const tsr_map *map,
                                 tsr_log *log, float *value, tsr_err *err)
{
    tsr_map *mask;
    TSR_TRY(tsr_map_read(o->mask, (tsr_map_origin)o->origin, log, &mask, err));
    tsr_status status = TSR_OK;
    if (tsr_map_same_grid(&mask->grid, &map->grid))
        memcpy(value, mask->value, tsr_map_n_voxel(&map->grid) * sizeof *value);
    else
        status =
            tsr_fail(err, TSR_E_DATA,
                     "mask '%s' (%d x %d x %d voxels) is not on the grid "
                     "of '%s' (%d x %d x %d): voxels, steps and origin "
                     "must be the same",
                     o->mask, mask->grid.n[0], mask->grid.n[1], mask->grid.n[2],
                     o->file, map->grid.n[0], map->grid.n[1], map->grid.n[2]);
    tsr_map_free(mask);
    return status;
}

/* A file, or around the start, or around what is dense. */
static tsr_status make_mask(const tsr_map_options *o, const tsr_map *map,
                            tsr_map_start start, tsr_log *log, float *value,
                            tsr_err *err)
{
    tsr_mask kind;
    double threshold;
    TSR_TRY(tsr_mask_parse(o->mask, &kind, &threshold, err));
    if (kind == TSR_MASK_FILE)
        return read_mask_file(o, map, log, value, err);
    if (kind == TSR_MASK_THRESHOLD)
        return tsr_mask_above(map, threshold, o->mask_distance, o->resolution,
                              value, err);
    if (start.n == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "data: mask: model is made around the start, which is "
                        "not in its place before it is docked; tessera map "
                        "dock brings it there");
    tsr_mask_around(&map->grid, start.n, start.xyz, o->mask_distance,
                    o->resolution, value);
    return TSR_OK;
}

tsr_status tsr_map_source_mask(const tsr_map_options *options,
                               const tsr_map *map, tsr_map_start start,
                               tsr_log *log, float **value, tsr_err *err)
{
    *value = NULL;
    if (options->mask == NULL)
        return TSR_OK;
    *value = calloc(tsr_map_n_voxel(&map->grid), sizeof **value);
    if (*value == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a mask");
    tsr_status status = make_mask(options, map, start, log, *value, err);
    if (status != TSR_OK) {
        free(*value);
        *value = NULL;
    }
    return status;
}

/* Inside is where the mask is at least 0.5. */
static tsr_status take_mask(source_map *m, const tsr_map_options *o,
                            tsr_map_start start, tsr_log *log, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&m->map->grid);
    double n_in = 0.0, n_out = 0.0, outside = 0.0;
    float *mask;
    TSR_TRY(tsr_map_source_mask(o, m->map, start, log, &mask, err));
    m->is_inside = calloc(n, 1);
    for (size_t k = 0; k < n && m->is_inside != NULL; k++) {
        m->is_inside[k] = mask[k] >= 0.5f;
        n_in += m->is_inside[k];
        if (!m->is_inside[k] && !isnan(m->map->value[k])) {
            outside += (double)m->map->value[k];
            n_out += 1.0;
        }
    }
    free(mask);
    if (m->is_inside == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a mask");
    if (n_in < 1.0 || n_out < 1.0)
        return tsr_fail(err, TSR_E_DATA,
                        "mask '%s' leaves %.0f voxels inside and %.0f "
                        "outside; is it 1 inside and 0 outside?",
                        o->mask, n_in, n_out);
    m->share = n_in / (double)n;
    m->mean = outside / fmax(1.0, n_out);
    return TSR_OK;
}

/* Noise by half-maps, with how far they agree. */
static tsr_status read_halves(const tsr_map_options *o, const tsr_map *map,
                              tsr_log *log, tsr_map_noise *noise, tsr_err *err)
{
    tsr_map *half[2] = {NULL, NULL};
    tsr_fsc fsc = {.n = 0};
    tsr_status status = TSR_OK;
    for (int k = 0; k < 2 && status == TSR_OK; k++) {
        status = tsr_map_read(o->half[k], (tsr_map_origin)o->origin, log,
                              &half[k], err);
        TSR_THEN(status, tsr_map_check(half[k], 0.0, log, err));
    }
    if (status == TSR_OK)
        status = tsr_noise_of_halves(half[0], half[1], noise, err);
    if (status == TSR_OK && !tsr_map_same_grid(&half[0]->grid, &map->grid)) {
        tsr_noise_clear(noise);
        status = tsr_fail(err, TSR_E_DATA,
                          "half-map '%s' (%d x %d x %d voxels) is not on the "
                          "grid of '%s' (%d x %d x %d)",
                          o->half[0], half[0]->grid.n[0], half[0]->grid.n[1],
                          half[0]->grid.n[2], o->file, map->grid.n[0],
                          map->grid.n[1], map->grid.n[2]);
    }
    if (status == TSR_OK)
        status = tsr_fsc_make(half[0], half[1]->value, &fsc, err);
    if (status == TSR_OK)
        tsr_info(log,
                 "%s: half-maps agree (FSC 0.143) to %s%.2f Angstrom; the "
                 "resolution is said to be %g",
                 tsr_text_file_name(o->file), fsc.low_is_at_limit ? "< " : "",
                 1.0 / fsc.low_inv_ang, o->resolution);
    tsr_fsc_clear(&fsc);
    tsr_map_free(half[0]);
    tsr_map_free(half[1]);
    return status;
}

/* The filter by half-maps, else by what is outside of the mask, else none. */
static tsr_status find_filter(source_map *m, const tsr_map_options *o,
                              tsr_log *log, tsr_err *err)
{
    tsr_map_noise noise;
    m->filter = (tsr_map_filter){.n = 1, .share = {1.0}};
    m->noise = (double)NAN;
    if (o->half[0] == NULL && m->is_inside == NULL)
        return TSR_OK;
    if (o->half[0] != NULL)
        TSR_TRY(read_halves(o, m->map, log, &noise, err));
    else
        TSR_TRY(
            tsr_noise_of_solvent(m->map, m->is_inside, m->mean, &noise, err));
    tsr_status status =
        tsr_noise_whiten(&noise, o->resolution, &m->filter, &m->n_free, err);
    if (status == TSR_OK)
        status = tsr_noise_under(&noise, &m->filter, &m->map->grid,
                                 m->is_inside, &m->noise, err);
    tsr_noise_clear(&noise);
    return status;
}

/* The box that the mask needs, with a margin for what is blurred. */
static tsr_status crop(source_map *m, double margin_ang, tsr_log *log,
                       tsr_err *err)
{
    const tsr_map *from = m->map;
    const int *n = from->grid.n;
    int low[3] = {n[0], n[1], n[2]}, high[3] = {-1, -1, -1};
    const size_t nx = (size_t)n[0], ny = (size_t)n[1];
    const size_t n_voxel = tsr_map_n_voxel(&from->grid);
    for (size_t k = 0; k < n_voxel; k++)
        if (m->is_inside[k]) {
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
    tsr_map *to;
    TSR_TRY(tsr_map_new(&grid, &to, err));
    for (int z = 0; z < grid.n[2]; z++)
        for (int y = 0; y < grid.n[1]; y++)
            memcpy(to->value + ((size_t)z * (size_t)grid.n[1] + (size_t)y) *
                                   (size_t)grid.n[0],
                   from->value +
                       ((size_t)(z + low[2]) * ny + (size_t)(y + low[1])) * nx +
                       (size_t)low[0],
                   (size_t)grid.n[0] * sizeof *to->value);
    to->path = m->map->path;
    m->map->path = NULL;
    tsr_info(log,
             "%s: cut to the mask's box, %d x %d x %d voxels of %d x %d x "
             "%d",
             tsr_text_file_name(to->path), grid.n[0], grid.n[1], grid.n[2],
             n[0], n[1], n[2]);
    tsr_map_free(m->map);
    m->map = to;
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
static tsr_status count_free(const source_map *m, const tsr_map_options *o,
                             double *out, tsr_err *err)
{
    const tsr_map_grid *g = &m->map->grid;
    const double n_voxel = (double)tsr_map_n_voxel(g);
    const double volume =
        m->share * n_voxel * g->step[0] * g->step[1] * g->step[2];
    *out = o->independent > 0.0 ? o->independent
           : m->n_free > 0.0
               ? m->share * m->n_free
               : share_with_variance(m->map, m->mean) * 4.0 / 3.0 *
                     3.14159265358979324 * volume / pow(o->resolution, 3.0);
    *out = fmin(*out, n_voxel);
    if (*out < 10.0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': at %g Angstrom the map has %.1f independent "
                        "voxels, too few to say anything",
                        m->map->path, o->resolution, *out);
    return TSR_OK;
}

static tsr_status read_source(const tsr_map_options *o, tsr_map_start start,
                              tsr_log *log, source_map *m, double *n_free,
                              tsr_err *err)
{
    double sd;
    TSR_TRY(
        tsr_map_read(o->file, (tsr_map_origin)o->origin, log, &m->map, err));
    TSR_TRY(tsr_map_check(m->map, o->resolution, log, err));
    const tsr_map_grid *g = &m->map->grid;
    for (int c = 0; c < 3; c++)
        m->middle[c] = g->origin[c] + 0.5 * (g->n[c] - 1) * g->step[c];
    const tsr_map_sums whole = tsr_map_whole(m->map);
    tsr_map_spread_e(&whole, &m->mean, &sd);
    if (o->mask != NULL)
        TSR_TRY(take_mask(m, o, start, log, err));
    TSR_TRY(find_filter(m, o, log, err));
    TSR_TRY(count_free(m, o, n_free, err));
    tsr_info(log, "%s: %zu voxels count as %.0f independent ones%s",
             tsr_text_file_name(o->file), tsr_map_n_voxel(&m->map->grid),
             *n_free, m->n_free > 0.0 ? ", the noise whitened" : "");
    const size_t n = tsr_map_n_voxel(&m->map->grid);
    for (size_t k = 0; k < n && m->is_inside != NULL; k++)
        if (!m->is_inside[k])
            m->map->value[k] = (float)m->mean;
    return m->is_inside == NULL ? TSR_OK
                                : crop(m, 3.0 * o->resolution, log, err);
}

tsr_status tsr_map_source_read(const tsr_map_options *options,
                               tsr_map_start start, tsr_log *log,
                               tsr_map_source *out, tsr_err *err)
{
    source_map m = {.share = 1.0};
    *out = (tsr_map_source){.map = NULL};
    tsr_status status = read_source(options, start, log, &m, &out->n_free, err);
    free(m.is_inside);
    if (status != TSR_OK) {
        tsr_map_free(m.map);
        return status;
    }
    out->map = m.map;
    memcpy(out->middle, m.middle, sizeof m.middle);
    out->filter = m.filter;
    out->noise = m.noise / (double)tsr_map_n_voxel(&m.map->grid);
    return TSR_OK;
}

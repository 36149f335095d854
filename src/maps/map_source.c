/* Prepares a map as data from the options of an entry: file, mask, half-maps,
 * noise filter, cropping, and the number of independent voxels. */
#include "maps/map_source.h"

#include "core/text.h"
#include "core/vec3.h"
#include "maps/density.h"
#include "maps/fourier.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- masks ----
 *
 * First the distance of each voxel to the nearest position is computed, then
 * the soft edge from the distance. */

/* Lowers the squared distances of voxels within reach of x to those from x. */
static void lower_distances(const tsr_map_grid *g, const double x[3],
                            double reach, float *square)
{
    tsr_map_box b = tsr_map_box_about(g, x, reach);
    while (tsr_map_box_next(&b))
        if ((float)b.square < square[b.k])
            square[b.k] = (float)b.square;
}

static void apply_edge(size_t n, double radius, double edge, float *value)
{
    for (size_t k = 0; k < n; k++) {
        const double beyond = sqrt((double)value[k]) - radius;
        value[k] = beyond <= 0.0 ? 1.0f
                   : beyond >= edge
                       ? 0.0f
                       : (float)(0.5 + 0.5 * cos(TSR_PI * beyond / edge));
    }
}

void tsr_mask_around(const tsr_map_grid *grid, int n, const double (*xyz)[3],
                     double radius_ang, double edge_ang, float *value)
{
    const size_t n_voxel = tsr_map_n_voxel(grid);
    for (size_t k = 0; k < n_voxel; k++)
        value[k] = HUGE_VALF;
    for (int i = 0; i < n; i++)
        lower_distances(grid, xyz[i], radius_ang + edge_ang, value);
    apply_edge(n_voxel, radius_ang, edge_ang, value);
}

/* Whether a voxel is at or above the threshold and has a neighbour that is not,
 * or lies at the grid's border. Only such voxels can be the nearest to a voxel
 * below the threshold. */
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
                const double position[3] = {g->origin[0] + g->step[0] * x,
                                            g->origin[1] + g->step[1] * y,
                                            g->origin[2] + g->step[2] * z};
                if (is_at_surface(map, threshold, at))
                    lower_distances(g, position, radius_ang + edge_ang, value);
            }
    apply_edge(n_voxel, radius_ang, edge_ang, value);
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
                        "mask '%.40s': expected a file, model, or a threshold "
                        "as in threshold:0.02",
                        text);
    return TSR_OK;
}

/* ---- the mask of an entry ---- */

/* A map being prepared. */
typedef struct {
    const tsr_map_options *o;
    tsr_log *log;
    tsr_pool pool; /* memory that is freed when the map is ready */
    tsr_map_source *out;
    unsigned char *is_inside; /* [n_voxel] 1: inside the mask; NULL: no mask */
    double share;             /* share of the voxels that lie inside the mask */
    double mean;              /* mean of the map; with a mask, of the voxels
                                 outside the mask */
    double n_free; /* effective number of frequencies under the filter; 0: all
                      weights are 1 */
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
        TSR_TRY(tsr_map_check_grid("mask", file, map, err));
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

/* Makes the mask of an entry with tsr_mask_make, with the resolution as the
 * width of its edge. */
static tsr_status make_mask(const tsr_map_options *o, const tsr_map *map,
                            tsr_map_start start, tsr_log *log, tsr_pool *pool,
                            float **value, tsr_err *err)
{
    const tsr_mask_source source = {
        .mask = o->mask,
        .origin = (tsr_map_origin)o->origin,
        .distance_ang = o->mask_distance,
        .edge_ang = o->resolution,
        .start = start,
        .no_start_status = TSR_E_CONFIG,
        .no_start =
            "data: mask: model is made around the starting structure, which is "
            "not docked yet; dock it first with tessera map dock"};
    return tsr_mask_make(&source, map, log, pool, value, err);
}

/* Sets is_inside, share and mean of the job. A voxel is inside where the mask
 * is at least 0.5. */
static tsr_status set_mask(job *j, tsr_map_start start, tsr_err *err)
{
    const tsr_map *map = j->out->map;
    const size_t n = tsr_map_n_voxel(&map->grid);
    double n_in = 0.0, n_out = 0.0, outside = 0.0;
    float *mask;
    TSR_TRY(make_mask(j->o, map, start, j->log, &j->pool, &mask, err));
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
                        "mask '%s' leaves %.0f voxels inside and %.0f outside; "
                        "is it 1 inside and 0 outside?",
                        j->o->mask, n_in, n_out);
    j->share = n_in / (double)n;
    j->mean = outside / fmax(1.0, n_out);
    return TSR_OK;
}

/* ---- noise ----
 *
 * The power spectrum of the noise, from half-maps or from the solvent, and a
 * filter that whitens the noise up to the resolution. */

/* Power of the noise in shells of |s|: |F|^2 divided by the number of voxels.
 * For white noise this power is the variance. */
typedef struct {
    tsr_shells shells;
    int n_all;         /* number of shells up to the corners of the grid;
                          `shells` ends at the lowest Nyquist frequency of the
                          axes */
    double *n, *power; /* [n_all] number of frequencies and mean power of each
                          shell */
} spectrum;

enum { PARTS = TSR_FILTER_PARTS };

static const double two_pi = 6.28318530717958648;

/* ---- the power spectrum ---- */

/* Computes the spectrum of values that are 0 except in a share of the voxels,
 * as if all voxels had values. */
static tsr_status compute_spectrum(const tsr_map_grid *grid, const float *value,
                                   double share, tsr_pool *pool, spectrum *out,
                                   tsr_err *err)
{
    const tsr_shells shells = tsr_fourier_shells(grid);
    tsr_shells all = shells;
    double corner = 0.0;
    for (int c = 0; c < 3; c++)
        corner += pow(0.5 / grid->step[c], 2.0);
    all.n = (int)(sqrt(corner) / shells.width_inv_ang + 0.5);
    const size_t n = (size_t)all.n;
    const double n_voxel = (double)tsr_map_n_voxel(grid);
    tsr_shell *shell;
    tsr_fourier f = {.f = NULL};
    *out = (spectrum){.shells = shells, .n_all = all.n};
    tsr_pool_array(pool, shell, n);
    tsr_pool_array(pool, out->n, n);
    tsr_pool_array(pool, out->power, n);
    TSR_TRY(tsr_pool_check(pool, err));
    tsr_status status = tsr_fourier_make(grid, value, 0.0, &f, err);
    if (status == TSR_OK)
        tsr_fourier_compare(&f, &f, &all, shell);
    for (size_t k = 0; k < n && status == TSR_OK; k++) {
        out->n[k] = shell[k].n;
        if (shell[k].n > 0.0)
            out->power[k] = shell[k].ff / (shell[k].n * n_voxel * share);
    }
    tsr_fourier_clear(&f);
    tsr_pool_free(pool, shell);
    return status;
}

static int has_power(const spectrum *noise)
{
    for (int k = 0; k < noise->shells.n; k++)
        if (noise->power[k] > 0.0)
            return 1;
    return 0;
}

/* Computes the spectrum of the noise of the mean of two half-maps, which is
 * half their difference. */
static tsr_status noise_of_halves(const tsr_map *one, const tsr_map *other,
                                  tsr_pool *pool, spectrum *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&one->grid);
    float *value;
    TSR_TRY(tsr_map_check_grid("half-map", one, other, err));
    tsr_pool_array(pool, value, n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (size_t k = 0; k < n; k++)
        value[k] = 0.5f * (one->value[k] - other->value[k]);
    TSR_TRY(compute_spectrum(&one->grid, value, 1.0, pool, out, err));
    if (!has_power(out))
        return tsr_fail(err, TSR_E_DATA,
                        "half-maps '%s' and '%s' are identical: their "
                        "difference is the noise",
                        one->path, other->path);
    return TSR_OK;
}

/* Computes the spectrum of the noise from the voxels outside the mask. */
static tsr_status noise_of_solvent(job *j, spectrum *out, tsr_err *err)
{
    const tsr_map *map = j->out->map;
    const size_t n = tsr_map_n_voxel(&map->grid);
    double n_out = 0.0;
    float *value;
    tsr_pool_array(&j->pool, value, n);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    for (size_t k = 0; k < n; k++)
        if (!j->is_inside[k] && !isnan(map->value[k])) {
            value[k] = (float)((double)map->value[k] - j->mean);
            n_out += 1.0;
        }
    if (n_out < 0.1 * (double)n)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': only %.0f of %zu voxels are outside the mask, "
                        "too few to estimate the noise",
                        map->path, n_out, n);
    TSR_TRY(compute_spectrum(&map->grid, value, n_out / (double)n, &j->pool,
                             out, err));
    if (!has_power(out))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': all voxels outside the mask have the same "
                        "value: the noise cannot be estimated",
                        map->path);
    return TSR_OK;
}

/* ---- the filter ---- */

/* Wanted value of W times power: 1 up to the resolution, falling beyond. */
static double target_response(double s, double resolution_ang)
{
    const double beyond = s * resolution_ang - 1.0;
    return beyond > 0.0 ? exp(-8.0 * beyond * beyond) : 1.0;
}

static double frequency(const spectrum *noise, int k)
{
    return (k + 1) * noise->shells.width_inv_ang;
}

/* Fits the shares of the filter's parts by least squares with a ridge, on
 * normalised columns. Returns 0 where the equations are singular. */
static int fit_shares(const spectrum *noise, double resolution_ang,
                      double ridge, tsr_map_filter *f)
{
    double left[PARTS * PARTS] = {0.0}, right[PARTS] = {0.0};
    double norm[PARTS] = {0.0};
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < noise->shells.n; k++) {
            const double s = frequency(noise, k);
            double g[PARTS];
            for (int m = 0; m < PARTS; m++) {
                g[m] = noise->power[k] *
                       exp(-0.5 * f->extra[m] * two_pi * two_pi * s * s);
                if (pass == 0)
                    norm[m] += noise->n[k] * g[m] * g[m];
            }
            for (int m = 0; m < PARTS && pass == 1; m++) {
                right[m] += noise->n[k] * g[m] *
                            target_response(s, resolution_ang) / sqrt(norm[m]);
                for (int l = 0; l < PARTS; l++)
                    left[m * PARTS + l] +=
                        noise->n[k] * g[m] * g[l] / sqrt(norm[m] * norm[l]);
            }
        }
    for (int m = 0; m < PARTS; m++)
        left[m * PARTS + m] += ridge;
    gsl_matrix_view a = gsl_matrix_view_array(left, PARTS, PARTS);
    gsl_vector_view b = gsl_vector_view_array(right, PARTS);
    if (gsl_linalg_cholesky_decomp1(&a.matrix) != 0)
        return 0;
    gsl_linalg_cholesky_svx(&a.matrix, &b.vector);
    for (int m = 0; m < PARTS; m++)
        f->share[m] = right[m] / sqrt(norm[m]);
    return 1;
}

/* Whether the filter is nonnegative, but for rounding, at frequencies from 0 to
 * beyond the corners of the grid. */
static int is_nonnegative(const spectrum *noise, const tsr_map_filter *f)
{
    double least = tsr_map_filter_at(f, 0.0), most = least;
    for (int k = 0; k < 2 * noise->shells.n; k++) {
        const double s = frequency(noise, k);
        const double w = tsr_map_filter_at(f, s * s);
        least = fmin(least, w);
        most = fmax(most, w);
    }
    return least >= -1e-4 * most && most > 0.0;
}

/* Effective number of frequencies. u = W power should be 1. If u is not 1, the
 * likelihood claims the variance 1 / H for a shift of the molecule, with H =
 * sum W |dS|^2, but the actual variance is J / H^2, with J = sum W u |dS|^2
 * (Godambe 1960). The number of frequencies is chosen so that the two variances
 * agree. |dS|^2, the effect of a shift, is s^2 times the power of atoms blurred
 * by the usual width. */
static double count_frequencies(const spectrum *noise, double resolution_ang,
                                const tsr_map_filter *f)
{
    const double sigma = 0.28 * resolution_ang;
    double n = 0.0, claimed = 0.0, had = 0.0;
    for (int k = 0; k < noise->shells.n; k++) {
        const double s = frequency(noise, k);
        const double w = tsr_map_filter_at(f, s * s), u = w * noise->power[k];
        const double change =
            noise->n[k] * w * s * s * exp(-pow(two_pi * s * sigma, 2.0));
        n += noise->n[k] * u;
        claimed += change;
        had += u * change;
    }
    return n * claimed / had;
}

/* Fits the filter W, a sum of Gaussians, to 1 / power up to the frequency 1 /
 * resolution, and to a falling curve beyond. *n_free out: effective number of
 * frequencies. */
static tsr_status whiten(const spectrum *noise, double resolution_ang,
                         tsr_map_filter *out, double *n_free, tsr_err *err)
{
    const double narrow = 2.0 * pow(resolution_ang / two_pi, 2.0);
    double ridge = 1e-6;
    *out = (tsr_map_filter){.n = PARTS};
    for (int m = 0; m < PARTS; m++)
        out->extra[m] = narrow * pow(2.0, m);
    while (ridge < 1e3 && !(fit_shares(noise, resolution_ang, ridge, out) &&
                            is_nonnegative(noise, out)))
        ridge *= 4.0;
    if (!(ridge < 1e3))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the spectrum of the noise cannot be whitened");
    *n_free = count_frequencies(noise, resolution_ang, out);
    return TSR_OK;
}

/* ---- the noise under the filter ---- */

/* Power at the squared frequency s2; 0 outside all shells. */
static double power_at(const spectrum *noise, double s2)
{
    const int k = (int)(sqrt(s2) / noise->shells.width_inv_ang + 0.5) - 1;
    return k < 0 || k >= noise->n_all ? 0.0 : noise->power[k];
}

/* Computes value [n_voxel] out in real space from one of three spectra: |F|^2
 * of `value` on entry (which 0), the noise's power (which 1), the filter (which
 * 2). */
static tsr_status to_real_space(const spectrum *noise,
                                const tsr_map_filter *filter,
                                const tsr_map_grid *grid, int which,
                                float *value, tsr_err *err)
{
    tsr_fourier f = {.f = NULL};
    size_t at = 0;
    TSR_TRY(tsr_fourier_make(grid, value, 0.0, &f, err));
    for (int z = 0; z < grid->n[2]; z++)
        for (int y = 0; y < grid->n[1]; y++)
            for (int x = 0; x < f.half; x++, at++) {
                const double s2 = tsr_fourier_s2(grid, x, y, z);
                const double a = (double)f.f[at][0], b = (double)f.f[at][1];
                f.f[at][0] =
                    (float)(which == 0   ? a * a + b * b
                            : which == 1 ? power_at(noise, s2)
                                         : tsr_map_filter_at(filter, s2));
                f.f[at][1] = 0.0f;
            }
    const tsr_status status = tsr_fourier_back(&f, value, err);
    tsr_fourier_clear(&f);
    return status;
}

/* Computes the expected sum of N W N over the voxels, for noise N that is set
 * to 0 outside the mask, under the filter W. This expectation is a sum over
 * shifts of the product of three functions: the mask's autocorrelation, the
 * noise's covariance, and the filter's kernel. The mask's edge carries noise to
 * frequencies without noise, whose weights may be large. */
static tsr_status compute_noise(job *j, const spectrum *noise, tsr_err *err)
{
    const tsr_map_filter *filter = &j->out->filter;
    const tsr_map_grid *grid = &j->out->map->grid;
    const size_t n = tsr_map_n_voxel(grid);
    double sum = 0.0;
    float *block;
    for (int k = 0; k < noise->n_all; k++)
        sum += noise->n[k] * noise->power[k] *
               tsr_map_filter_at(filter, pow(frequency(noise, k), 2.0));
    j->out->noise = sum;
    if (j->is_inside == NULL)
        return TSR_OK;
    tsr_pool_array(&j->pool, block, 3 * n);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    for (size_t k = 0; k < n; k++)
        block[k] = j->is_inside[k] ? 1.0f : 0.0f;
    for (int which = 0; which < 3; which++)
        TSR_TRY(to_real_space(noise, filter, grid, which,
                              block + (size_t)which * n, err));
    sum = 0.0;
    for (size_t k = 0; k < n; k++)
        sum +=
            (double)block[k] * (double)block[n + k] * (double)block[2 * n + k];
    j->out->noise = sum;
    return TSR_OK;
}

/* ---- preparing a map ---- */

/* Computes the spectrum of the noise from half-maps, and logs the resolution to
 * which they agree. */
static tsr_status read_halves(job *j, spectrum *noise, tsr_err *err)
{
    const tsr_map_options *o = j->o;
    tsr_map *half[2];
    tsr_fsc fsc;
    for (int k = 0; k < 2; k++) {
        TSR_TRY(tsr_map_read(o->half[k], (tsr_map_origin)o->origin, j->log,
                             &j->pool, &half[k], err));
        TSR_TRY(tsr_map_check(half[k], 0.0, j->log, err));
    }
    TSR_TRY(noise_of_halves(half[0], half[1], &j->pool, noise, err));
    TSR_TRY(tsr_map_check_grid("half-map", half[0], j->out->map, err));
    TSR_TRY(tsr_fsc_make(half[0], half[1]->value, &j->pool, &fsc, err));
    tsr_info(j->log,
             "%s: half-maps agree (FSC 0.143) to %s%.2f Angstrom; the given "
             "resolution is %g",
             tsr_text_file_name(o->file), fsc.low_is_at_limit ? "< " : "",
             1.0 / fsc.low_inv_ang, o->resolution);
    return TSR_OK;
}

/* Finds the filter and the noise under it from the half-maps, or else from the
 * voxels outside the mask. Without half-maps and mask all weights are 1. */
static tsr_status find_filter(job *j, tsr_err *err)
{
    spectrum noise;
    tsr_map_source *m = j->out;
    m->filter = (tsr_map_filter){.n = 1, .share = {1.0}};
    m->noise = (double)NAN;
    if (j->o->half[0] != NULL)
        TSR_TRY(read_halves(j, &noise, err));
    else if (j->is_inside != NULL)
        TSR_TRY(noise_of_solvent(j, &noise, err));
    else
        return TSR_OK;
    TSR_TRY(whiten(&noise, j->o->resolution, &m->filter, &j->n_free, err));
    return compute_noise(j, &noise, err);
}

/* Crops the map to the box of the voxels inside the mask, plus a margin. */
static tsr_status crop_to_mask(job *j, double margin_ang, tsr_pool *pool,
                               tsr_err *err)
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
    tsr_pool_free(pool, from->value);
    j->out->map = to;
    return TSR_OK;
}

/* The share of the voxels that carry the map's variance: 3 (sum E^2)^2 / (n sum
 * E^4), at most 1. The factor 3 makes the share 1 for Gaussian noise. If the
 * solvent is flat, as in masked or simulated maps, the residuals of a wrong
 * structure lie at the molecule only. Voxels of flat solvent fit any structure
 * and do not show the size of residuals. Without this correction the likelihood
 * would become more confident with a larger box. */
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

/* Number of independent voxels or frequencies: the user's, or an estimate. */
static tsr_status count_independent(const job *j, double *out, tsr_err *err)
{
    const tsr_map_options *o = j->o;
    const tsr_map *map = j->out->map;
    const tsr_map_grid *g = &map->grid;
    const double n_voxel = (double)tsr_map_n_voxel(g);
    const double volume =
        j->share * n_voxel * g->step[0] * g->step[1] * g->step[2];
    *out = o->independent > 0.0 ? o->independent
           : j->n_free > 0.0    ? j->share * j->n_free
                             : share_with_variance(map, j->mean) * 4.0 / 3.0 *
                                   TSR_PI * volume / pow(o->resolution, 3.0);
    *out = fmin(*out, n_voxel);
    if (*out < 10.0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': at %g Angstrom the map has %.1f independent "
                        "voxels, too few for inference",
                        map->path, o->resolution, *out);
    return TSR_OK;
}

static tsr_status read_source(job *j, tsr_map_start start, tsr_pool *pool,
                              tsr_err *err)
{
    const tsr_map_options *o = j->o;
    tsr_map_source *out = j->out;
    TSR_TRY(tsr_map_read(o->file, (tsr_map_origin)o->origin, j->log, pool,
                         &out->map, err));
    TSR_TRY(tsr_map_check(out->map, o->resolution, j->log, err));
    const tsr_map_grid *g = &out->map->grid;
    for (int c = 0; c < 3; c++)
        out->middle[c] = g->origin[c] + 0.5 * (g->n[c] - 1) * g->step[c];
    const tsr_map_sums whole = tsr_map_whole(out->map);
    j->mean = whole.e / whole.n;
    if (o->mask != NULL)
        TSR_TRY(set_mask(j, start, err));
    TSR_TRY(find_filter(j, err));
    TSR_TRY(count_independent(j, &out->n_free, err));
    const size_t n = tsr_map_n_voxel(g);
    tsr_info(j->log, "%s: %zu voxels count as %.0f independent ones%s",
             tsr_text_file_name(o->file), n, out->n_free,
             j->n_free > 0.0 ? ", the noise whitened" : "");
    for (size_t k = 0; k < n && j->is_inside != NULL; k++)
        if (!j->is_inside[k])
            out->map->value[k] = (float)j->mean;
    if (j->is_inside != NULL)
        TSR_TRY(crop_to_mask(j, 3.0 * o->resolution, pool, err));
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

/* Transforms by FFTW, and the comparison of two of them shell by shell: half of
 * the frequencies stand for all, as the others are their conjugates. */
#include "maps/fourier.h"

#include "core/random.h"
#include "maps/density.h"

#include <fftw3.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tsr_status no_memory(const tsr_map_grid *g, tsr_err *err)
{
    return tsr_fail(err, TSR_E_NOMEM,
                    "out of memory for Fourier transforms of %d x %d x %d "
                    "voxels",
                    g->n[0], g->n[1], g->n[2]);
}

tsr_status tsr_fourier_make(const tsr_map_grid *grid, const float *value,
                            double mean, tsr_fourier *out, tsr_err *err)
{
    const int *n = grid->n;
    const size_t nx = (size_t)n[0], n_row = (size_t)n[1] * (size_t)n[2];
    *out = (tsr_fourier){.grid = *grid, .half = n[0] / 2 + 1};
    const size_t row = 2 * (size_t)out->half;
    fftwf_complex *f = fftwf_malloc(n_row * row * sizeof(float));
    fftwf_plan plan = f == NULL
                          ? NULL
                          : fftwf_plan_dft_r2c_3d(n[2], n[1], n[0], (float *)f,
                                                  f, FFTW_ESTIMATE);
    out->f = f;
    if (plan == NULL) {
        tsr_fourier_clear(out);
        return no_memory(grid, err);
    }
    float *real = (float *)f;
    for (size_t r = 0; r < n_row; r++)
        for (size_t x = 0; x < nx; x++) {
            const float v = value[r * nx + x];
            real[r * row + x] = isnan(v) ? 0.0f : (float)((double)v - mean);
        }
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
    return TSR_OK;
}

tsr_status tsr_fourier_back(tsr_fourier *fourier, float *value, tsr_err *err)
{
    const int *n = fourier->grid.n;
    const size_t nx = (size_t)n[0], n_row = (size_t)n[1] * (size_t)n[2];
    const size_t row = 2 * (size_t)fourier->half;
    const double scale = 1.0 / (double)(nx * n_row);
    float *real = (float *)fourier->f;
    fftwf_plan plan = fftwf_plan_dft_c2r_3d(n[2], n[1], n[0], fourier->f, real,
                                            FFTW_ESTIMATE);
    if (plan == NULL)
        return no_memory(&fourier->grid, err);
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
    for (size_t r = 0; r < n_row; r++)
        for (size_t x = 0; x < nx; x++)
            value[r * nx + x] = (float)(scale * (double)real[r * row + x]);
    return TSR_OK;
}

void tsr_fourier_clear(tsr_fourier *fourier)
{
    fftwf_free(fourier->f);
    fourier->f = NULL;
}

tsr_shells tsr_fourier_shells(const tsr_map_grid *grid)
{
    double edge = 0.0, nyquist = (double)INFINITY;
    for (int c = 0; c < 3; c++) {
        edge = fmax(edge, grid->n[c] * grid->step[c]);
        nyquist = fmin(nyquist, 0.5 / grid->step[c]);
    }
    return (tsr_shells){(int)floor(nyquist * edge + 1e-6), 1.0 / edge};
}

void tsr_fourier_compare(const tsr_fourier *f, const tsr_fourier *g,
                         const tsr_shells *shells, tsr_shell *out)
{
    const tsr_map_grid *grid = &f->grid;
    size_t at = 0;
    for (int z = 0; z < grid->n[2]; z++)
        for (int y = 0; y < grid->n[1]; y++)
            for (int x = 0; x < f->half; x++, at++) {
                const double radius = sqrt(tsr_fourier_s2(grid, x, y, z));
                const int k = (int)(radius / shells->width_inv_ang + 0.5) - 1;
                const double times = tsr_fourier_times(grid, x);
                if (k < 0 || k >= shells->n)
                    continue;
                const double a = (double)f->f[at][0], b = (double)f->f[at][1];
                const double c = (double)g->f[at][0], d = (double)g->f[at][1];
                out[k].n += times;
                out[k].fg += times * (a * c + b * d);
                out[k].ff += times * (a * a + b * b);
                out[k].gg += times * (c * c + d * d);
            }
}

/* ---- shell correlation ----
 *
 * Fourier shell correlation (Harauz & van Heel 1986; Rosenthal & Henderson
 * 2003), and what a mask makes of it (Chen et al. 2013). */

/* NaN of `map` are the mean of the others. */
static tsr_status transform(const tsr_map *map, const float *value,
                            tsr_fourier *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&map->grid);
    double sum = 0.0, count = 0.0;
    float *known;
    tsr_pool pool = {0};
    tsr_pool_array(&pool, known, n);
    tsr_status status = tsr_pool_check(&pool, err);
    for (size_t k = 0; k < n && status == TSR_OK; k++) {
        known[k] = isnan(map->value[k]) ? NAN : value[k];
        if (!isnan(known[k]))
            sum += (double)known[k], count += 1.0;
    }
    TSR_THEN(status,
             tsr_fourier_make(&map->grid, known,
                              count > 0.0 ? sum / count : 0.0, out, err));
    tsr_pool_clear(&pool);
    return status;
}

/* Where the curve first falls below a level. */
static double crossing(const tsr_fsc *fsc, double level, int *is_at_limit)
{
    *is_at_limit = 0;
    for (int k = 0; k < fsc->n; k++) {
        if (fsc->fsc[k] >= level)
            continue;
        if (k == 0)
            return fsc->s_inv_ang[0];
        double above = fsc->fsc[k - 1] - level, below = level - fsc->fsc[k];
        return fsc->s_inv_ang[k - 1] +
               (fsc->s_inv_ang[k] - fsc->s_inv_ang[k - 1]) * above /
                   (above + below);
    }
    *is_at_limit = 1;
    return fsc->n > 0 ? fsc->s_inv_ang[fsc->n - 1] : (double)NAN;
}

static tsr_status fill(const tsr_fourier *f, const tsr_fourier *g,
                       tsr_pool *pool, tsr_fsc *out, tsr_err *err)
{
    const tsr_shells shells = tsr_fourier_shells(&f->grid);
    const size_t n = (size_t)shells.n;
    tsr_shell *shell;
    tsr_pool_array(pool, shell, n);
    tsr_pool_array(pool, out->s_inv_ang, n);
    tsr_pool_array(pool, out->fsc, n);
    TSR_TRY(tsr_pool_check(pool, err));
    tsr_fourier_compare(f, g, &shells, shell);
    out->n = shells.n;
    for (int k = 0; k < out->n; k++) {
        const double norm = sqrt(shell[k].ff * shell[k].gg);
        out->s_inv_ang[k] = (k + 1) * shells.width_inv_ang;
        out->fsc[k] = norm > 0.0 ? shell[k].fg / norm : 0.0;
    }
    tsr_pool_drop(pool, shell);
    out->half_inv_ang = crossing(out, 0.5, &out->half_is_at_limit);
    out->low_inv_ang = crossing(out, 0.143, &out->low_is_at_limit);
    return TSR_OK;
}

tsr_status tsr_fsc_make(const tsr_map *map, const float *density,
                        tsr_pool *pool, tsr_fsc *out, tsr_err *err)
{
    tsr_fourier f = {.f = NULL}, g = {.f = NULL};
    *out = (tsr_fsc){0};
    tsr_status status = transform(map, map->value, &f, err);
    TSR_THEN(status, transform(map, density, &g, err));
    TSR_THEN(status, fill(&f, &g, pool, out, err));
    tsr_fourier_clear(&f);
    tsr_fourier_clear(&g);
    return status;
}

/* ---- two maps and a mask ---- */

/* The phase of what stands at (x, y, z), as it was drawn; on the planes that
 * hold both a frequency and its conjugate the second takes after the first, so
 * that the map stays real. */
static void randomise_row(tsr_fourier *f, double beyond, int y, int z,
                          gsl_rng *rng)
{
    const tsr_map_grid *g = &f->grid;
    const size_t half = (size_t)f->half, ny = (size_t)g->n[1];
    const size_t row = ((size_t)z * ny + (size_t)y) * half;
    const size_t my = (size_t)((g->n[1] - y) % g->n[1]);
    const size_t mz = (size_t)((g->n[2] - z) % g->n[2]);
    const size_t mirrored = (mz * ny + my) * half;
    for (int x = 0; x < f->half; x++) {
        float *own = f->f[row + (size_t)x];
        const float *other = f->f[mirrored + (size_t)x];
        const double phase = 6.28318530717958648 * gsl_rng_uniform(rng);
        const int is_shared = tsr_fourier_times(g, x) < 2.0;
        if (sqrt(tsr_fourier_s2(g, x, y, z)) < beyond ||
            (is_shared && mirrored == row))
            continue;
        const double size = hypot((double)own[0], (double)own[1]);
        const int is_second = is_shared && mirrored < row;
        own[0] = is_second ? other[0] : (float)(size * cos(phase));
        own[1] = is_second ? -other[1] : (float)(size * sin(phase));
    }
}

/* A map with phases at random beyond a frequency. `stream`: another for each
 * map. */
static tsr_status randomise(const tsr_map *map, double beyond, uint64_t stream,
                            float *out, tsr_err *err)
{
    tsr_fourier f = {.f = NULL};
    gsl_rng *rng = tsr_rng_new(1, stream);
    tsr_status status =
        rng == NULL ? tsr_fail(err, TSR_E_NOMEM, "out of memory for phases")
                    : transform(map, map->value, &f, err);
    for (int z = 0; z < map->grid.n[2] && status == TSR_OK; z++)
        for (int y = 0; y < map->grid.n[1]; y++)
            randomise_row(&f, beyond, y, z, rng);
    TSR_THEN(status, tsr_fourier_back(&f, out, err));
    tsr_fourier_clear(&f);
    gsl_rng_free(rng);
    return status;
}

/* value times the mask, about the mean of what is outside: the solvent's level
 * makes no step at the mask's edge. */
static void apply(size_t n, const float *mask, float *value)
{
    double sum = 0.0, count = 0.0;
    for (size_t k = 0; k < n; k++)
        if (!isnan(value[k])) {
            sum += (1.0 - (double)mask[k]) * (double)value[k];
            count += 1.0 - (double)mask[k];
        }
    const double level = count > 0.0 ? sum / count : 0.0;
    for (size_t k = 0; k < n; k++)
        value[k] = (float)((double)mask[k] * ((double)value[k] - level));
}

/* Both maps under the mask: as they are, or (beyond not infinite) with phases
 * at random. */
static tsr_status compare_masked(const tsr_map *one, const tsr_map *other,
                                 const float *mask, double beyond,
                                 tsr_pool *pool, tsr_fsc *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&one->grid);
    const tsr_map *from[2] = {one, other};
    tsr_map *map[2];
    tsr_pool own = {0};
    tsr_status status = TSR_OK;
    for (int k = 0; k < 2 && status == TSR_OK; k++) {
        status = tsr_map_new(&one->grid, &own, &map[k], err);
        if (status == TSR_OK)
            memcpy(map[k]->value, from[k]->value, n * sizeof(float));
        if (status == TSR_OK && isfinite(beyond))
            status =
                randomise(from[k], beyond, (uint64_t)k, map[k]->value, err);
        if (status == TSR_OK)
            apply(n, mask, map[k]->value);
    }
    TSR_THEN(status, tsr_fsc_make(map[0], map[1]->value, pool, out, err));
    tsr_pool_clear(&own);
    return status;
}

static tsr_status correct(tsr_fsc_halves *h, tsr_pool *pool, tsr_err *err)
{
    tsr_fsc *c = &h->corrected;
    *c = (tsr_fsc){.n = h->plain.n, .s_inv_ang = h->plain.s_inv_ang};
    tsr_pool_array(pool, c->fsc, c->n);
    TSR_TRY(tsr_pool_check(pool, err));
    const double width = c->n > 0 ? h->plain.s_inv_ang[0] : 0.0;
    for (int k = 0; k < c->n; k++) {
        const double s = h->plain.s_inv_ang[k];
        const double masked = h->masked.fsc[k];
        const double random = h->random.n > 0 ? h->random.fsc[k] : 0.0;
        const int is_far = s > h->random_from_inv_ang + 1.5 * width;
        c->fsc[k] = is_far && random < 1.0 ? (masked - random) / (1.0 - random)
                                           : masked;
    }
    c->half_inv_ang = crossing(c, 0.5, &c->half_is_at_limit);
    c->low_inv_ang = crossing(c, 0.143, &c->low_is_at_limit);
    return TSR_OK;
}

static tsr_status compare_halves(const tsr_map *one, const tsr_map *other,
                                 const float *mask, tsr_pool *pool,
                                 tsr_fsc_halves *out, tsr_err *err)
{
    const double sure = 0.8; /* of their own phases both are that alike */
    TSR_TRY(tsr_fsc_make(one, other->value, pool, &out->plain, err));
    out->random_from_inv_ang = (double)INFINITY;
    if (mask == NULL)
        return TSR_OK;
    for (int k = out->plain.n - 1; k >= 0; k--)
        if (out->plain.fsc[k] < sure)
            out->random_from_inv_ang = out->plain.s_inv_ang[k];
    const double from = out->random_from_inv_ang;
    TSR_TRY(compare_masked(one, other, mask, (double)INFINITY, pool,
                           &out->masked, err));
    if (isfinite(from))
        TSR_TRY(
            compare_masked(one, other, mask, from, pool, &out->random, err));
    return correct(out, pool, err);
}

tsr_status tsr_fsc_halves_make(const tsr_map *one, const tsr_map *other,
                               const float *mask, tsr_pool *pool,
                               tsr_fsc_halves *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&one->grid);
    int has_any = mask == NULL;
    *out = (tsr_fsc_halves){.random_from_inv_ang = (double)INFINITY};
    TSR_TRY(tsr_map_expect_grid("map", one, other, err));
    for (size_t k = 0; k < n && !has_any; k++)
        has_any = mask[k] > 0.0f;
    if (!has_any)
        return tsr_fail(err, TSR_E_DATA, "the mask leaves no voxel");
    return compare_halves(one, other, mask, pool, out, err);
}

/* ---- noise ----
 *
 * Power spectra of noise, from half-maps or from the solvent, and the filter
 * that whitens them as far as the resolution lets frequencies count. */

enum { PARTS = TSR_FILTER_PARTS };

static const double two_pi = 6.28318530717958648;

/* ---- the power ---- */

/* Of values that are 0 but in a share of the voxels. */
static tsr_status measure(const tsr_map_grid *grid, const float *value,
                          double share, tsr_pool *pool, tsr_map_noise *out,
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
    *out = (tsr_map_noise){.shells = shells, .n_all = all.n};
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
    tsr_pool_drop(pool, shell);
    return status;
}

static int has_power(const tsr_map_noise *noise)
{
    for (int k = 0; k < noise->shells.n; k++)
        if (noise->power[k] > 0.0)
            return 1;
    return 0;
}

tsr_status tsr_noise_of_halves(const tsr_map *one, const tsr_map *other,
                               tsr_pool *pool, tsr_map_noise *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&one->grid);
    TSR_TRY(tsr_map_expect_grid("half-map", one, other, err));
    float *value;
    tsr_pool_array(pool, value, n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (size_t k = 0; k < n; k++)
        value[k] = 0.5f * (one->value[k] - other->value[k]);
    TSR_TRY(measure(&one->grid, value, 1.0, pool, out, err));
    tsr_pool_drop(pool, value);
    if (!has_power(out))
        return tsr_fail(err, TSR_E_DATA,
                        "half-maps '%s' and '%s' are the same: their "
                        "difference is the noise",
                        one->path, other->path);
    return TSR_OK;
}

tsr_status tsr_noise_of_solvent(const tsr_map *map,
                                const unsigned char *is_inside, double mean,
                                tsr_pool *pool, tsr_map_noise *out,
                                tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&map->grid);
    double n_out = 0.0;
    float *value;
    tsr_pool_array(pool, value, n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (size_t k = 0; k < n; k++)
        if (!is_inside[k] && !isnan(map->value[k])) {
            value[k] = (float)((double)map->value[k] - mean);
            n_out += 1.0;
        }
    if (n_out < 0.1 * (double)n)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': only %.0f of %zu voxels are outside of the "
                        "mask, too few to see the noise in",
                        map->path, n_out, n);
    TSR_TRY(measure(&map->grid, value, n_out / (double)n, pool, out, err));
    tsr_pool_drop(pool, value);
    if (!has_power(out))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': all voxels outside of the mask have one value: "
                        "there is no noise to be seen",
                        map->path);
    return TSR_OK;
}

/* ---- the filter ---- */

/* What W power is wanted to be: 1, and less beyond the resolution. */
static double wanted(double s, double resolution_ang)
{
    const double beyond = s * resolution_ang - 1.0;
    return beyond > 0.0 ? exp(-8.0 * beyond * beyond) : 1.0;
}

static double frequency(const tsr_map_noise *noise, int k)
{
    return (k + 1) * noise->shells.width_inv_ang;
}

/* Shares by least squares with a ridge, in units in which all columns are
 * alike. 0: the equations have no answer. */
static int solve(const tsr_map_noise *noise, double resolution_ang,
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
                right[m] += noise->n[k] * g[m] * wanted(s, resolution_ang) /
                            sqrt(norm[m]);
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

/* Nowhere negative, from 0 to beyond the corners of the grid. */
static int is_filter(const tsr_map_noise *noise, const tsr_map_filter *f)
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

/* Where u is not 1, the likelihood claims a place with the variance 1 / H,
 * H = sum W |dS|^2, and has it with J / H^2, J = sum W u |dS|^2 (Godambe 1960).
 * So many voxels count that the two agree. |dS|^2, what a shift changes, is s^2
 * times the power of atoms blurred by the usual width. */
static double count_free(const tsr_map_noise *noise, double resolution_ang,
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

tsr_status tsr_noise_whiten(const tsr_map_noise *noise, double resolution_ang,
                            tsr_map_filter *out, double *n_free, tsr_err *err)
{
    const double narrow = 2.0 * pow(resolution_ang / two_pi, 2.0);
    double ridge = 1e-6;
    *out = (tsr_map_filter){.n = PARTS};
    for (int m = 0; m < PARTS; m++)
        out->extra[m] = narrow * pow(2.0, m);
    while (ridge < 1e3 &&
           !(solve(noise, resolution_ang, ridge, out) && is_filter(noise, out)))
        ridge *= 4.0;
    if (!(ridge < 1e3))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the noise's spectrum cannot be made white");
    *n_free = count_free(noise, resolution_ang, out);
    return TSR_OK;
}

/* ---- what is left of it in sums ---- */

/* The power at a frequency, and what a filter makes of it. */
static double power_at(const tsr_map_noise *noise, double s2)
{
    const int k = (int)(sqrt(s2) / noise->shells.width_inv_ang + 0.5) - 1;
    return k < 0 || k >= noise->n_all ? 0.0 : noise->power[k];
}

/* Into value [n_voxel] what is its own transform's |F|^2 (which 0), the noise's
 * power (1) or the filter (2), brought back to space. */
static tsr_status in_space(const tsr_map_noise *noise,
                           const tsr_map_filter *filter,
                           const tsr_map_grid *grid, int which, float *value,
                           tsr_err *err)
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

/* The sum over shifts of the mask's pairs of voxels, the noise's covariance and
 * the filter's kernel. */
static tsr_status add_within(const tsr_map_noise *noise,
                             const tsr_map_filter *filter,
                             const tsr_map_grid *grid,
                             const unsigned char *is_inside, float *block,
                             double *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(grid);
    for (size_t k = 0; k < n; k++)
        block[k] = is_inside[k] ? 1.0f : 0.0f;
    for (int which = 0; which < 3; which++)
        TSR_TRY(in_space(noise, filter, grid, which, block + (size_t)which * n,
                         err));
    *out = 0.0;
    for (size_t k = 0; k < n; k++)
        *out +=
            (double)block[k] * (double)block[n + k] * (double)block[2 * n + k];
    return TSR_OK;
}

tsr_status tsr_noise_under(const tsr_map_noise *noise,
                           const tsr_map_filter *filter,
                           const tsr_map_grid *grid,
                           const unsigned char *is_inside, double *out,
                           tsr_err *err)
{
    *out = 0.0;
    for (int k = 0; k < noise->n_all; k++)
        *out += noise->n[k] * noise->power[k] *
                tsr_map_filter_at(filter, pow(frequency(noise, k), 2.0));
    if (is_inside == NULL)
        return TSR_OK;
    float *block = calloc(3 * tsr_map_n_voxel(grid), sizeof *block);
    tsr_status status =
        block == NULL
            ? tsr_fail(err, TSR_E_NOMEM, "out of memory for a mask's noise")
            : add_within(noise, filter, grid, is_inside, block, out, err);
    free(block);
    return status;
}

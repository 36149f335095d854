/* Power spectra of noise, from half-maps or from the solvent, and the filter
 * that whitens them as far as the resolution lets frequencies count. */
#include "maps/map_noise.h"

#include <gsl/gsl_linalg.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = TSR_OVERLAP_PARTS };

static const double two_pi = 6.28318530717958648;

void tsr_noise_clear(tsr_map_noise *noise)
{
    free(noise->n);
    free(noise->power);
    *noise = (tsr_map_noise){.n = NULL};
}

/* ---- the power ---- */

/* Of values that are 0 but in a share of the voxels. */
static tsr_status measure(const tsr_map_grid *grid, const float *value,
                          double share, tsr_map_noise *out, tsr_err *err)
{
    const tsr_shells shells = tsr_fourier_shells(grid);
    tsr_shells all = shells;
    double corner = 0.0;
    for (int c = 0; c < 3; c++)
        corner += pow(0.5 / grid->step[c], 2.0);
    all.n = (int)(sqrt(corner) / shells.width_inv_ang + 0.5);
    const size_t n = (size_t)all.n;
    const double n_voxel = (double)tsr_map_n_voxel(grid);
    tsr_shell *shell = calloc(n + 1, sizeof *shell);
    tsr_fourier f = {.f = NULL};
    *out = (tsr_map_noise){.shells = shells,
                           .n_all = all.n,
                           .n = calloc(n + 1, sizeof *out->n),
                           .power = calloc(n + 1, sizeof *out->power)};
    tsr_status status = TSR_OK;
    if (shell == NULL || out->n == NULL || out->power == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a spectrum");
    if (status == TSR_OK)
        status = tsr_fourier_make(grid, value, 0.0, &f, err);
    if (status == TSR_OK)
        tsr_fourier_compare(&f, &f, &all, shell);
    for (size_t k = 0; k < n && status == TSR_OK; k++) {
        out->n[k] = shell[k].n;
        if (shell[k].n > 0.0)
            out->power[k] = shell[k].ff / (shell[k].n * n_voxel * share);
    }
    tsr_fourier_clear(&f);
    free(shell);
    if (status != TSR_OK)
        tsr_noise_clear(out);
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
                               tsr_map_noise *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&one->grid);
    const int *a = one->grid.n, *b = other->grid.n;
    *out = (tsr_map_noise){.n = NULL};
    if (!tsr_map_same_grid(&one->grid, &other->grid))
        return tsr_fail(err, TSR_E_DATA,
                        "half-maps '%s' (%d x %d x %d voxels) and '%s' (%d x "
                        "%d x %d) are not on one grid: voxels, steps and "
                        "origin must be the same",
                        one->path, a[0], a[1], a[2], other->path, b[0], b[1],
                        b[2]);
    float *value = malloc(n * sizeof *value);
    if (value == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for half-maps");
    for (size_t k = 0; k < n; k++)
        value[k] = 0.5f * (one->value[k] - other->value[k]);
    tsr_status status = measure(&one->grid, value, 1.0, out, err);
    free(value);
    if (status == TSR_OK && !has_power(out)) {
        tsr_noise_clear(out);
        return tsr_fail(err, TSR_E_DATA,
                        "half-maps '%s' and '%s' are the same: their "
                        "difference is the noise",
                        one->path, other->path);
    }
    return status;
}

tsr_status tsr_noise_of_solvent(const tsr_map *map,
                                const unsigned char *is_inside, double mean,
                                tsr_map_noise *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&map->grid);
    double n_out = 0.0;
    *out = (tsr_map_noise){.n = NULL};
    float *value = calloc(n, sizeof *value);
    if (value == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a spectrum");
    for (size_t k = 0; k < n; k++)
        if (!is_inside[k] && !isnan(map->value[k])) {
            value[k] = (float)((double)map->value[k] - mean);
            n_out += 1.0;
        }
    tsr_status status =
        n_out < 0.1 * (double)n
            ? tsr_fail(err, TSR_E_DATA,
                       "'%s': only %.0f of %zu voxels are outside of the mask, "
                       "too few to see the noise in",
                       map->path, n_out, n)
            : measure(&map->grid, value, n_out / (double)n, out, err);
    free(value);
    if (status == TSR_OK && !has_power(out)) {
        tsr_noise_clear(out);
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': all voxels outside of the mask have one value: "
                        "there is no noise to be seen",
                        map->path);
    }
    return status;
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
                const double s2 = pow(tsr_fourier_s(grid, 0, x), 2.0) +
                                  pow(tsr_fourier_s(grid, 1, y), 2.0) +
                                  pow(tsr_fourier_s(grid, 2, z), 2.0);
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

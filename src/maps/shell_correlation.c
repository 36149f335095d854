/* Fourier shell correlation (Harauz & van Heel 1986; Rosenthal & Henderson
 * 2003), and what a mask makes of it (Chen et al. 2013). */
#include "core/random.h"
#include "maps/correlation.h"
#include "maps/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* NaN of `map` are the mean of the others. */
static tsr_status transform(const tsr_map *map, const float *value,
                            tsr_fourier *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&map->grid);
    double sum = 0.0, count = 0.0;
    float *known = malloc(n * sizeof *known);
    if (known == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a shell correlation");
    for (size_t k = 0; k < n; k++) {
        known[k] = isnan(map->value[k]) ? NAN : value[k];
        if (!isnan(known[k]))
            sum += (double)known[k], count += 1.0;
    }
    tsr_status status = tsr_fourier_make(
        &map->grid, known, count > 0.0 ? sum / count : 0.0, out, err);
    free(known);
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

static tsr_status fill(const tsr_fourier *f, const tsr_fourier *g, tsr_fsc *out,
                       tsr_err *err)
{
    const tsr_shells shells = tsr_fourier_shells(&f->grid);
    const size_t n = (size_t)shells.n;
    tsr_shell *shell = calloc(n + 1, sizeof *shell);
    out->s_inv_ang = calloc(n + 1, sizeof *out->s_inv_ang);
    out->fsc = calloc(n + 1, sizeof *out->fsc);
    if (shell == NULL || out->s_inv_ang == NULL || out->fsc == NULL) {
        free(shell);
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a shell correlation");
    }
    tsr_fourier_compare(f, g, &shells, shell);
    out->n = shells.n;
    for (int k = 0; k < out->n; k++) {
        const double norm = sqrt(shell[k].ff * shell[k].gg);
        out->s_inv_ang[k] = (k + 1) * shells.width_inv_ang;
        out->fsc[k] = norm > 0.0 ? shell[k].fg / norm : 0.0;
    }
    free(shell);
    out->half_inv_ang = crossing(out, 0.5, &out->half_is_at_limit);
    out->low_inv_ang = crossing(out, 0.143, &out->low_is_at_limit);
    return TSR_OK;
}

tsr_status tsr_fsc_make(const tsr_map *map, const float *density, tsr_fsc *out,
                        tsr_err *err)
{
    tsr_fourier f = {.f = NULL}, g = {.f = NULL};
    *out = (tsr_fsc){0};
    tsr_status status = transform(map, map->value, &f, err);
    if (status == TSR_OK)
        status = transform(map, density, &g, err);
    if (status == TSR_OK)
        status = fill(&f, &g, out, err);
    tsr_fourier_clear(&f);
    tsr_fourier_clear(&g);
    if (status != TSR_OK)
        tsr_fsc_clear(out);
    return status;
}

void tsr_fsc_clear(tsr_fsc *fsc)
{
    free(fsc->s_inv_ang);
    free(fsc->fsc);
    *fsc = (tsr_fsc){0};
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
        const double s[3] = {tsr_fourier_s(g, 0, x), tsr_fourier_s(g, 1, y),
                             tsr_fourier_s(g, 2, z)};
        float *own = f->f[row + (size_t)x];
        const float *other = f->f[mirrored + (size_t)x];
        const double phase = 6.28318530717958648 * gsl_rng_uniform(rng);
        const int is_shared = tsr_fourier_times(g, x) < 2.0;
        if (sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2]) < beyond ||
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
    if (status == TSR_OK)
        status = tsr_fourier_back(&f, out, err);
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
                                 const float *mask, double beyond, tsr_fsc *out,
                                 tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&one->grid);
    const tsr_map *from[2] = {one, other};
    tsr_map *map[2] = {NULL, NULL};
    tsr_status status = TSR_OK;
    for (int k = 0; k < 2 && status == TSR_OK; k++) {
        status = tsr_map_new(&one->grid, &map[k], err);
        if (status == TSR_OK)
            memcpy(map[k]->value, from[k]->value, n * sizeof(float));
        if (status == TSR_OK && isfinite(beyond))
            status =
                randomise(from[k], beyond, (uint64_t)k, map[k]->value, err);
        if (status == TSR_OK)
            apply(n, mask, map[k]->value);
    }
    if (status == TSR_OK)
        status = tsr_fsc_make(map[0], map[1]->value, out, err);
    tsr_map_free(map[0]);
    tsr_map_free(map[1]);
    return status;
}

static tsr_status correct(tsr_fsc_halves *h, tsr_err *err)
{
    const size_t n = (size_t)h->plain.n + 1;
    tsr_fsc *c = &h->corrected;
    *c = (tsr_fsc){.n = h->plain.n,
                   .s_inv_ang = calloc(n, sizeof(double)),
                   .fsc = calloc(n, sizeof(double))};
    if (c->s_inv_ang == NULL || c->fsc == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a shell correlation");
    const double width = c->n > 0 ? h->plain.s_inv_ang[0] : 0.0;
    for (int k = 0; k < c->n; k++) {
        const double s = h->plain.s_inv_ang[k];
        const double masked = h->masked.fsc[k];
        const double random = h->random.n > 0 ? h->random.fsc[k] : 0.0;
        const int is_far = s > h->random_from_inv_ang + 1.5 * width;
        c->s_inv_ang[k] = s;
        c->fsc[k] = is_far && random < 1.0 ? (masked - random) / (1.0 - random)
                                           : masked;
    }
    c->half_inv_ang = crossing(c, 0.5, &c->half_is_at_limit);
    c->low_inv_ang = crossing(c, 0.143, &c->low_is_at_limit);
    return TSR_OK;
}

static tsr_status compare_halves(const tsr_map *one, const tsr_map *other,
                                 const float *mask, tsr_fsc_halves *out,
                                 tsr_err *err)
{
    const double sure = 0.8; /* of their own phases both are that alike */
    TSR_TRY(tsr_fsc_make(one, other->value, &out->plain, err));
    out->random_from_inv_ang = (double)INFINITY;
    if (mask == NULL)
        return TSR_OK;
    for (int k = out->plain.n - 1; k >= 0; k--)
        if (out->plain.fsc[k] < sure)
            out->random_from_inv_ang = out->plain.s_inv_ang[k];
    const double from = out->random_from_inv_ang;
    TSR_TRY(
        compare_masked(one, other, mask, (double)INFINITY, &out->masked, err));
    if (isfinite(from))
        TSR_TRY(compare_masked(one, other, mask, from, &out->random, err));
    return correct(out, err);
}

tsr_status tsr_fsc_halves_make(const tsr_map *one, const tsr_map *other,
                               const float *mask, tsr_fsc_halves *out,
                               tsr_err *err)
{
    const int *a = one->grid.n, *b = other->grid.n;
    const size_t n = tsr_map_n_voxel(&one->grid);
    int has_any = mask == NULL;
    *out = (tsr_fsc_halves){.random_from_inv_ang = (double)INFINITY};
    if (!tsr_map_same_grid(&one->grid, &other->grid))
        return tsr_fail(err, TSR_E_DATA,
                        "maps '%s' (%d x %d x %d voxels) and '%s' (%d x %d x "
                        "%d) are not on one grid: voxels, steps and origin "
                        "must be the same",
                        one->path, a[0], a[1], a[2], other->path, b[0], b[1],
                        b[2]);
    for (size_t k = 0; k < n && !has_any; k++)
        has_any = mask[k] > 0.0f;
    if (!has_any)
        return tsr_fail(err, TSR_E_DATA, "the mask leaves no voxel");
    tsr_status status = compare_halves(one, other, mask, out, err);
    if (status != TSR_OK)
        tsr_fsc_halves_clear(out);
    return status;
}

void tsr_fsc_halves_clear(tsr_fsc_halves *halves)
{
    tsr_fsc_clear(&halves->plain);
    tsr_fsc_clear(&halves->masked);
    tsr_fsc_clear(&halves->random);
    tsr_fsc_clear(&halves->corrected);
}

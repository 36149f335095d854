/* Fourier shell correlation (Harauz & van Heel 1986; Rosenthal & Henderson
 * 2003), with FFTW's transforms (Frigo & Johnson 2005) in single precision. */
#include "density/correlation.h"

#include <fftw3.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    double fg, ff, gg;
} shell;

/* The transform of values [n_voxel] in place of them; NaN of `map` are the mean
 * of the others. NULL: out of memory. */
static fftwf_complex *transform(const tsr_map *map, const float *value)
{
    const int *n = map->grid.n;
    const size_t nx = (size_t)n[0], row = 2 * (nx / 2 + 1);
    const size_t n_row = (size_t)n[1] * (size_t)n[2];
    double sum = 0.0, count = 0.0;
    for (size_t k = 0; k < nx * n_row; k++)
        if (!isnan(map->value[k]))
            sum += (double)value[k], count += 1.0;
    const double mean = count > 0.0 ? sum / count : 0.0;
    fftwf_complex *f = fftwf_malloc(n_row * row * sizeof(float));
    if (f == NULL)
        return NULL;
    fftwf_plan plan =
        fftwf_plan_dft_r2c_3d(n[2], n[1], n[0], (float *)f, f, FFTW_ESTIMATE);
    if (plan == NULL) {
        fftwf_free(f);
        return NULL;
    }
    float *real = (float *)f;
    for (size_t r = 0; r < n_row; r++)
        for (size_t x = 0; x < nx; x++) {
            const size_t k = r * nx + x;
            real[r * row + x] =
                isnan(map->value[k]) ? 0.0f : (float)((double)value[k] - mean);
        }
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
    return f;
}

/* The frequency of index k of n, and its mirror's, which real transforms leave
 * out along x. */
static double frequency(int k, int n, double step)
{
    return (k <= n / 2 ? k : k - n) / (n * step);
}

static void add_shells(const tsr_map_grid *g, fftwf_complex *f,
                       fftwf_complex *h, double width, int n, shell *shells)
{
    const int half = g->n[0] / 2 + 1;
    size_t at = 0;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++)
            for (int x = 0; x < half; x++, at++) {
                const double s[3] = {x / (g->n[0] * g->step[0]),
                                     frequency(y, g->n[1], g->step[1]),
                                     frequency(z, g->n[2], g->step[2])};
                const double radius =
                    sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
                const int k = (int)(radius / width + 0.5) - 1;
                const double twice = x == 0 || 2 * x == g->n[0] ? 1.0 : 2.0;
                if (k < 0 || k >= n)
                    continue;
                const double a = (double)f[at][0], b = (double)f[at][1];
                const double c = (double)h[at][0], d = (double)h[at][1];
                shells[k].fg += twice * (a * c + b * d);
                shells[k].ff += twice * (a * a + b * b);
                shells[k].gg += twice * (c * c + d * d);
            }
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

static tsr_status fill(const tsr_map_grid *g, fftwf_complex *f,
                       fftwf_complex *h, tsr_fsc *out, tsr_err *err)
{
    double edge = 0.0, nyquist = (double)INFINITY;
    for (int c = 0; c < 3; c++) {
        edge = fmax(edge, g->n[c] * g->step[c]);
        nyquist = fmin(nyquist, 0.5 / g->step[c]);
    }
    const int n = (int)floor(nyquist * edge + 1e-6);
    shell *shells = calloc((size_t)n + 1, sizeof *shells);
    out->s_inv_ang = calloc((size_t)n + 1, sizeof *out->s_inv_ang);
    out->fsc = calloc((size_t)n + 1, sizeof *out->fsc);
    if (shells == NULL || out->s_inv_ang == NULL || out->fsc == NULL) {
        free(shells);
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a shell "
                        "correlation");
    }
    add_shells(g, f, h, 1.0 / edge, n, shells);
    out->n = n;
    for (int k = 0; k < n; k++) {
        const double norm = sqrt(shells[k].ff * shells[k].gg);
        out->s_inv_ang[k] = (k + 1) / edge;
        out->fsc[k] = norm > 0.0 ? shells[k].fg / norm : 0.0;
    }
    free(shells);
    out->half_inv_ang = crossing(out, 0.5, &out->half_is_at_limit);
    out->low_inv_ang = crossing(out, 0.143, &out->low_is_at_limit);
    return TSR_OK;
}

tsr_status tsr_fsc_make(const tsr_map *map, const float *density, tsr_fsc *out,
                        tsr_err *err)
{
    *out = (tsr_fsc){0};
    fftwf_complex *f = transform(map, map->value);
    fftwf_complex *h = transform(map, density);
    tsr_status status =
        f != NULL && h != NULL
            ? fill(&map->grid, f, h, out, err)
            : tsr_fail(err, TSR_E_NOMEM,
                       "out of memory for Fourier "
                       "transforms of %d x %d x %d voxels",
                       map->grid.n[0], map->grid.n[1], map->grid.n[2]);
    fftwf_free(f);
    fftwf_free(h);
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

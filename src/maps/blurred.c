/* Read by cubic B-splines, which go through the voxels once their coefficients
 * are found (Unser 1999, IEEE Signal Process. Mag. 16:22): nine times as exact
 * as the cubic through four voxels, and smooth. Blur, filter and splines'
 * coefficients are products in Fourier space, so that the map is continued
 * periodically. */
#include "maps/blurred.h"

#include "maps/fourier.h"

#include <stdlib.h>
#include <string.h>

static const double two_pi = 6.28318530717958648;

/* One over the transform of a spline's values at the voxels, along an axis. */
static double sharpen(const tsr_map_grid *g, int axis, int k)
{
    return 3.0 / (2.0 + cos(two_pi * k / g->n[axis]));
}

/* The coefficients of the map at one level. */
static void filter_level(const tsr_blurred *b, double variance, tsr_fourier *to)
{
    const tsr_map_grid *g = &to->grid;
    size_t at = 0;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++) {
            const double sz = tsr_fourier_s(g, 2, z);
            const double sy = tsr_fourier_s(g, 1, y);
            const double sharp = sharpen(g, 1, y) * sharpen(g, 2, z);
            for (int x = 0; x < to->half; x++, at++) {
                const double sx = tsr_fourier_s(g, 0, x);
                const double s2 = sx * sx + sy * sy + sz * sz;
                const double w = tsr_map_filter_at(&b->filter, s2) *
                                 exp(-0.5 * variance * two_pi * two_pi * s2) *
                                 sharp * sharpen(g, 0, x);
                to->f[at][0] = (float)(w * (double)to->f[at][0]);
                to->f[at][1] = (float)(w * (double)to->f[at][1]);
            }
        }
}

/* sum of W |F|^2 / N^2, which is that of E W E over the voxels, over N. */
static double filtered_square(const tsr_blurred *b, const tsr_fourier *f)
{
    const tsr_map_grid *g = &f->grid;
    const double n = (double)tsr_map_n_voxel(g);
    double sum = 0.0;
    size_t at = 0;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++)
            for (int x = 0; x < f->half; x++, at++) {
                const double s2 = tsr_fourier_s2(g, x, y, z);
                const double re = (double)f->f[at][0], im = (double)f->f[at][1];
                sum += tsr_fourier_times(g, x) *
                       tsr_map_filter_at(&b->filter, s2) * (re * re + im * im);
            }
    return sum / (n * n);
}

/* Levels 0.16 apart in the logarithm of the variance: reading between them is
 * then exact to some 3e-4. */
static tsr_status space_levels(tsr_blurred *b, const tsr_map *map,
                               double narrow, double wide, tsr_err *err)
{
    int n = 3 + (int)(log(wide / narrow) / 0.16);
    n = n < TSR_MOST_LEVELS ? n : TSR_MOST_LEVELS;
    b->log_first = log(narrow) - 0.005;
    b->step = (log(wide) + 0.005 - b->log_first) / (n - 1);
    b->n_level = n;
    const double bytes = 4.0 * n * (double)tsr_map_n_voxel(&map->grid);
    if (bytes > 0x1p33)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': the map, blurred by %d widths, takes %.1f GiB; "
                        "give it a mask, whose box is all that is kept, or "
                        "crop or bin it",
                        map->path, n, bytes / 0x1p30);
    return TSR_OK;
}

static tsr_status make_levels(tsr_blurred *b, const tsr_map *map, double mean,
                              tsr_pool *pool, tsr_err *err)
{
    tsr_status status = TSR_OK;
    for (int k = 0; k < b->n_level && status == TSR_OK; k++) {
        tsr_fourier f;
        status = tsr_map_new(&map->grid, pool, &b->level[k], err);
        TSR_THEN(status,
                 tsr_fourier_make(&map->grid, map->value, mean, &f, err));
        if (status != TSR_OK)
            break;
        if (k == 0)
            b->square = filtered_square(b, &f);
        filter_level(b, exp(b->log_first + k * b->step), &f);
        status = tsr_fourier_back(&f, b->level[k]->value, err);
        tsr_fourier_clear(&f);
    }
    return status;
}

tsr_status tsr_blurred_make(const tsr_map *map, double mean,
                            const tsr_map_filter *filter, double narrow,
                            double wide, tsr_pool *pool, tsr_blurred **out,
                            tsr_err *err)
{
    tsr_blurred *b = *out = tsr_pool_new(pool, 1, sizeof *b);
    TSR_TRY(tsr_allocated(b, err));
    b->filter = *filter;
    b->n_voxel = (double)tsr_map_n_voxel(&map->grid);
    TSR_TRY(space_levels(b, map, narrow, wide, err));
    return make_levels(b, map, mean, pool, err);
}

/* Weights of coefficients -1, 0, 1, 2 at t in [0, 1] between the two in the
 * middle. */
static void spline(double t, double w[4])
{
    const double u = 1.0 - t;
    w[0] = u * u * u / 6.0;
    w[1] = 2.0 / 3.0 - 0.5 * t * t * (2.0 - t);
    w[2] = 2.0 / 3.0 - 0.5 * u * u * (2.0 - u);
    w[3] = t * t * t / 6.0;
}

/* 0: outside of the grid. */
static int weights(const tsr_map_grid *g, const double x[3], double w[3][4],
                   size_t *first)
{
    int at[3];
    for (int c = 0; c < 3; c++) {
        const double v = (x[c] - g->origin[c]) / g->step[c];
        if (!(v >= 1.0 && v <= g->n[c] - 2.0))
            return 0;
        at[c] = (int)v;
        at[c] = at[c] > g->n[c] - 3 ? g->n[c] - 3 : at[c];
        spline(v - at[c], w[c]);
    }
    *first = ((size_t)(at[2] - 1) * (size_t)g->n[1] + (size_t)(at[1] - 1)) *
                 (size_t)g->n[0] +
             (size_t)(at[0] - 1);
    return 1;
}

double tsr_blurred_level(const tsr_blurred *blurred, double variance)
{
    return (log(variance) - blurred->log_first) / blurred->step;
}

/* Quadratic between three levels. */
double tsr_blurred_read(const tsr_blurred *blurred, double level,
                        const double x[3])
{
    const tsr_blurred *b = blurred;
    const tsr_map_grid *g = &b->level[0]->grid;
    const size_t row = (size_t)g->n[0], plane = row * (size_t)g->n[1];
    int k = (int)(level + 0.5);
    k = k < 1 ? 1 : k > b->n_level - 2 ? b->n_level - 2 : k;
    const double d = level - k;
    const double by[3] = {0.5 * d * (d - 1.0), 1.0 - d * d,
                          0.5 * d * (d + 1.0)};
    double w[3][4], sum = 0.0;
    size_t first;
    if (!weights(g, x, w, &first))
        return 0.0;
    for (int m = 0; m < 3; m++)
        for (size_t j = 0; j < 16; j++) {
            const float *v = b->level[k - 1 + m]->value + first +
                             j / 4 * plane + j % 4 * row;
            sum += by[m] * w[2][j / 4] * w[1][j % 4] *
                   (w[0][0] * (double)v[0] + w[0][1] * (double)v[1] +
                    w[0][2] * (double)v[2] + w[0][3] * (double)v[3]);
        }
    return sum;
}

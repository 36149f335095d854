/* Transforms by FFTW, shell correlations, and blurred maps. Only half of the
 * frequencies are stored; the other half have the complex conjugates. */
#include "maps/fourier.h"

#include "maps/density.h"

#include <fftw3.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

/* FFTW's planner is not thread-safe. */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

/* The plan of a transform in place of f, as voxels [n[2]][n[1]][n[0]], forward
 * or back. NULL: out of memory. */
static fftwf_plan make_plan(const int *n, fftwf_complex *f, int is_back)
{
    pthread_mutex_lock(&planner);
    const fftwf_plan plan =
        is_back ? fftwf_plan_dft_c2r_3d(n[2], n[1], n[0], f, (float *)f,
                                        FFTW_ESTIMATE)
                : fftwf_plan_dft_r2c_3d(n[2], n[1], n[0], (float *)f, f,
                                        FFTW_ESTIMATE);
    pthread_mutex_unlock(&planner);
    return plan;
}

static void run_plan(fftwf_plan plan)
{
    fftwf_execute(plan);
    pthread_mutex_lock(&planner);
    fftwf_destroy_plan(plan);
    pthread_mutex_unlock(&planner);
}

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
    const fftwf_plan plan = f == NULL ? NULL : make_plan(n, f, 0);
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
    run_plan(plan);
    return TSR_OK;
}

tsr_status tsr_fourier_back(tsr_fourier *fourier, float *value, tsr_err *err)
{
    const int *n = fourier->grid.n;
    const size_t nx = (size_t)n[0], n_row = (size_t)n[1] * (size_t)n[2];
    const size_t row = 2 * (size_t)fourier->half;
    const double scale = 1.0 / (double)(nx * n_row);
    float *real = (float *)fourier->f;
    const fftwf_plan plan = make_plan(n, fourier->f, 1);
    if (plan == NULL)
        return no_memory(&fourier->grid, err);
    run_plan(plan);
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
                const double times = tsr_fourier_multiplicity(grid, x);
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
 * 2003), and the effect of a mask on the correlation (Chen et al. 2013). */

/* Transforms `value`. Voxels that are NaN in `map` get the mean of all other
 * voxels. */
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

/* The frequency where the correlation first falls below `level` (tsr_fsc). */
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

static tsr_status compute_fsc(const tsr_fourier *f, const tsr_fourier *g,
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
    tsr_pool_free(pool, shell);
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
    TSR_THEN(status, compute_fsc(&f, &g, pool, out, err));
    tsr_fourier_clear(&f);
    tsr_fourier_clear(&g);
    return status;
}

/* ---- blurred maps ----
 *
 * Maps are interpolated by cubic B-splines that pass through the values of the
 * voxels (Unser 1999, IEEE Signal Process. Mag. 16:22). These splines are
 * smooth, and nine times as exact as cubic interpolation between four voxels.
 * Blur, filter and spline coefficients are computed by multiplication in
 * Fourier space, so the map is periodic. */

static const double two_pi = 6.28318530717958648;

/* Inverse of the transform of a B-spline sampled at the voxels, along an
 * axis. */
static double spline_gain(const tsr_map_grid *g, int axis, int k)
{
    return 3.0 / (2.0 + cos(two_pi * k / g->n[axis]));
}

/* Turns the map's transform into that of the spline coefficients of one
 * level. */
static void filter_level(const tsr_blurred *b, double variance, tsr_fourier *to)
{
    const tsr_map_grid *g = &to->grid;
    size_t at = 0;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++) {
            const double sz = tsr_fourier_s(g, 2, z);
            const double sy = tsr_fourier_s(g, 1, y);
            const double sharp = spline_gain(g, 1, y) * spline_gain(g, 2, z);
            for (int x = 0; x < to->half; x++, at++) {
                const double sx = tsr_fourier_s(g, 0, x);
                const double s2 = sx * sx + sy * sy + sz * sz;
                const double w = tsr_map_filter_at(&b->filter, s2) *
                                 exp(-0.5 * variance * two_pi * two_pi * s2) *
                                 sharp * spline_gain(g, 0, x);
                to->f[at][0] = (float)(w * (double)to->f[at][0]);
                to->f[at][1] = (float)(w * (double)to->f[at][1]);
            }
        }
}

/* Sum of W |F|^2 / N^2, equal to the sum of E W E over the voxels, divided by
 * N. */
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
                sum += tsr_fourier_multiplicity(g, x) *
                       tsr_map_filter_at(&b->filter, s2) * (re * re + im * im);
            }
    return sum / (n * n);
}

/* Chooses levels at most about 0.16 apart in the log of the variance, which
 * makes interpolation exact to about 3e-4. */
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
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s': the map, blurred by %d widths, needs %.1f GiB; give a mask, "
            "so that only its box is stored, or crop or bin the map",
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

/* Weights of coefficients -1, 0, 1, 2 at t in [0, 1] between coefficients 0 and
 * 1. */
static void spline_weights(double t, double w[4])
{
    const double u = 1.0 - t;
    w[0] = u * u * u / 6.0;
    w[1] = 2.0 / 3.0 - 0.5 * t * t * (2.0 - t);
    w[2] = 2.0 / 3.0 - 0.5 * u * u * (2.0 - u);
    w[3] = t * t * t / 6.0;
}

/* The 4 x 4 x 4 coefficients that determine the value at x: index of the first,
 * and their weights along x, y, z. Returns 0 where some lie outside the
 * grid. */
static int voxel_weights(const tsr_map_grid *g, const double x[3],
                         double w[3][4], size_t *first)
{
    int at[3];
    for (int c = 0; c < 3; c++) {
        const double v = (x[c] - g->origin[c]) / g->step[c];
        if (!(v >= 1.0 && v <= g->n[c] - 2.0))
            return 0;
        at[c] = (int)v;
        at[c] = at[c] > g->n[c] - 3 ? g->n[c] - 3 : at[c];
        spline_weights(v - at[c], w[c]);
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

/* Quadratic interpolation between three levels. */
double tsr_blurred_at(const tsr_blurred *blurred, double level,
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
    if (!voxel_weights(g, x, w, &first))
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

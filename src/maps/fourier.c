/* Transforms by FFTW, and the comparison of two of them shell by shell: half of
 * the frequencies stand for all, as the others are their conjugates. */
#include "maps/fourier.h"

#include <fftw3.h>
#include <math.h>

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
                const double s[3] = {tsr_fourier_s(grid, 0, x),
                                     tsr_fourier_s(grid, 1, y),
                                     tsr_fourier_s(grid, 2, z)};
                const double radius =
                    sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
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

/* Discrete Fourier transforms of maps, by FFTW (Frigo & Johnson 2005) in single
 * precision. A map is continued periodically. */
#ifndef TSR_MAPS_FOURIER_H
#define TSR_MAPS_FOURIER_H

#include "maps/density_map.h"

/* F = sum over voxels of value exp(-2 pi i s x), for half of the frequencies
 * along x: the others are their conjugates. */
typedef struct {
    tsr_map_grid grid;
    int half;      /* grid.n[0] / 2 + 1 */
    float (*f)[2]; /* [n[2]][n[1]][half] real and imaginary part */
} tsr_fourier;

/* Of values [n_voxel] less `mean`; NaN count as the mean. Errors: TSR_E_NOMEM.
 */
tsr_status tsr_fourier_make(const tsr_map_grid *grid, const float *value,
                            double mean, tsr_fourier *out, tsr_err *err);

/* Back to values [n_voxel]; the transform is lost. */
tsr_status tsr_fourier_back(tsr_fourier *fourier, float *value, tsr_err *err);
void tsr_fourier_clear(tsr_fourier *fourier);

/* The frequency of index k along an axis, 1/Angstrom, with its sign. */
static inline double tsr_fourier_s(const tsr_map_grid *grid, int axis, int k)
{
    const int n = grid->n[axis];
    return (k <= n / 2 ? k : k - n) / (n * grid->step[axis]);
}

/* How many frequencies the one at index x along the first axis stands for: its
 * conjugate is left out, but for those that are their own. */
static inline double tsr_fourier_times(const tsr_map_grid *grid, int x)
{
    return x == 0 || 2 * x == grid->n[0] ? 1.0 : 2.0;
}

/* Transforms of two maps are compared in shells of equal |s|, the k-th about
 * (k + 1) width, up to Nyquist's frequency. */
typedef struct {
    int n;
    double width_inv_ang;
} tsr_shells;
tsr_shells tsr_fourier_shells(const tsr_map_grid *grid);

typedef struct {
    double n, fg, ff, gg; /* frequencies, sums of Re F G*, |F|^2, |G|^2 */
} tsr_shell;
void tsr_fourier_compare(const tsr_fourier *f, const tsr_fourier *g,
                         const tsr_shells *shells, tsr_shell *out);

#endif

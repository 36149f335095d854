/* Discrete Fourier transforms of maps by FFTW (Frigo & Johnson 2005) in single
 * precision, and their uses: shell correlations and blurred maps. Maps are
 * periodic. */
#ifndef TSR_MAPS_FOURIER_H
#define TSR_MAPS_FOURIER_H

#include "core/pool.h"
#include "maps/density_map.h"

#include <math.h>

/* F(s) = sum over voxels of value exp(-2 pi i s x), for half of the frequencies
 * along x. The other frequencies have the complex conjugates. */
typedef struct {
    tsr_map_grid grid;
    int half;      /* grid.n[0] / 2 + 1 */
    float (*f)[2]; /* [n[2]][n[1]][half] real and imaginary part */
} tsr_fourier;

/* Transforms value [n_voxel] minus `mean`; NaN counts as the mean. The caller
 * clears the transform. Errors: TSR_E_NOMEM. */
tsr_status tsr_fourier_make(const tsr_map_grid *grid, const float *value,
                            double mean, tsr_fourier *out, tsr_err *err);

/* Inverse transform into value [n_voxel]; overwrites the transform. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_fourier_back(tsr_fourier *fourier, float *value, tsr_err *err);
void tsr_fourier_clear(tsr_fourier *fourier);

/* The signed frequency of index k along an axis, 1/Angstrom. */
static inline double tsr_fourier_s(const tsr_map_grid *grid, int axis, int k)
{
    const int n = grid->n[axis];
    return (k <= n / 2 ? k : k - n) / (n * grid->step[axis]);
}

/* Squared frequency |s|^2 at indices x, y, z, 1/Angstrom squared. */
static inline double tsr_fourier_s2(const tsr_map_grid *grid, int x, int y,
                                    int z)
{
    const double s[3] = {tsr_fourier_s(grid, 0, x), tsr_fourier_s(grid, 1, y),
                         tsr_fourier_s(grid, 2, z)};
    return s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
}

/* Number of frequencies that a stored frequency at index x represents: 2, with
 * its conjugate, or 1 where the conjugate is stored too. */
static inline double tsr_fourier_multiplicity(const tsr_map_grid *grid, int x)
{
    return x == 0 || 2 * x == grid->n[0] ? 1.0 : 2.0;
}

/* Shells of equal |s|. Shell k is centred at (k + 1) width_inv_ang; the last
 * centre is not beyond the lowest Nyquist frequency of the three axes. */
typedef struct {
    int n;
    double width_inv_ang;
} tsr_shells;
tsr_shells tsr_fourier_shells(const tsr_map_grid *grid);

/* Sums over the frequencies of a shell. */
typedef struct {
    double n, fg, ff, gg; /* number of frequencies; sums of Re F G*, |F|^2,
                             |G|^2 */
} tsr_shell;

/* Adds the frequencies of two transforms on one grid to the sums of their
 * shells, out [shells->n] in/out. */
void tsr_fourier_compare(const tsr_fourier *f, const tsr_fourier *g,
                         const tsr_shells *shells, tsr_shell *out);

/* ---- Fourier shell correlation ---- */

/* Fourier shell correlation of a map and a density on its grid, sum Re F G* /
 * sqrt(sum |F|^2 sum |G|^2) over shells of width 1 / (longest edge). Voxels
 * that are NaN in the map are set, in map and density, to the mean of all other
 * voxels. */
typedef struct {
    int n;
    double *s_inv_ang, *fsc; /* [n] s > 0 up to the Nyquist frequency */
    /* half, low: the first s where the correlation falls below 0.5 and below
     * 0.143, interpolated linearly between shells. If the correlation stays
     * above: the last s, and is_at_limit is 1. */
    double half_inv_ang, low_inv_ang;
    int half_is_at_limit, low_is_at_limit;
} tsr_fsc;

/* density [n_voxel] in. The pool owns the arrays of *out. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_fsc_make(const tsr_map *map, const float *density,
                        tsr_pool *pool, tsr_fsc *out, tsr_err *err);

/* ---- filters ---- */

/* The sum over voxels of the product of two maps is a sum over frequencies
 * (Parseval); a filter gives each frequency s the weight W(s). W(s) is the sum
 * over n parts of share exp(-extra (2 pi s)^2 / 2), which amounts to blurring
 * one of the maps by Gaussians of variance `extra`. n 1, share 1, extra 0: all
 * frequencies have weight 1. */
enum { TSR_FILTER_PARTS = 6 /* at most */ };

/* A filter W(s). */
typedef struct {
    int n;
    double share[TSR_FILTER_PARTS], extra[TSR_FILTER_PARTS]; /* Angstrom^2 */
} tsr_map_filter;

/* W at the squared frequency s2. */
static inline double tsr_map_filter_at(const tsr_map_filter *f, double s2)
{
    const double half_square = 19.739208802178716 * s2; /* (2 pi s)^2 / 2 */
    double sum = 0.0;
    for (int m = 0; m < f->n; m++)
        sum += f->share[m] * exp(-f->extra[m] * half_square);
    return sum;
}

/* ---- blurred maps ----
 *
 * A map convolved with a Gaussian, to be evaluated at any position: G(x) =
 * sum_v g(x - v) E(v) over the voxels v. g is a normal density per voxel (its
 * sum over the voxels is 1), and E the filtered map minus its mean.
 *
 * The overlap of a model with a map then takes one evaluation for each body,
 * and no grid is computed while a model moves. The map is blurred by closely
 * spaced variances; values for variances in between are interpolated. */

enum { TSR_MOST_LEVELS = 32 };

/* A map at several levels of blur. */
typedef struct {
    tsr_map_filter filter;
    double n_voxel;
    double square; /* sum of E W E over the voxels, divided by n_voxel; E is
                      here the map minus its mean, W the filter */
    /* Level k: spline coefficients of the filtered map, blurred by the variance
     * exp(log_first + k step), Angstrom squared. */
    int n_level;
    double log_first, step;
    tsr_map *level[TSR_MOST_LEVELS];
} tsr_blurred;

/* Blurs a map by variances from `narrow` to `wide`, Angstrom squared. mean: of
 * the map; NaN voxels count as the mean. Errors: TSR_E_NOMEM, TSR_E_DATA (more
 * than 8 GiB). */
tsr_status tsr_blurred_make(const tsr_map *map, double mean,
                            const tsr_map_filter *filter, double narrow,
                            double wide, tsr_pool *pool, tsr_blurred **out,
                            tsr_err *err);

/* tsr_blurred_level: the fractional level of a variance, Angstrom squared.
 * tsr_blurred_at: G at a level and position x; 0 outside the grid, and within
 * one voxel of the grid's border. */
double tsr_blurred_level(const tsr_blurred *blurred, double variance);
double tsr_blurred_at(const tsr_blurred *blurred, double level,
                      const double x[3]);

#endif

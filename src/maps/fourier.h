/* Discrete Fourier transforms of maps, by FFTW (Frigo & Johnson 2005) in single
 * precision, and what is made by them: shell correlations and blurred maps. A
 * map is continued periodically. */
#ifndef TSR_MAPS_FOURIER_H
#define TSR_MAPS_FOURIER_H

#include "core/pool.h"
#include "maps/density_map.h"

#include <math.h>

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

/* |s|^2 of the frequency at indices x, y, z. */
static inline double tsr_fourier_s2(const tsr_map_grid *grid, int x, int y,
                                    int z)
{
    const double s[3] = {tsr_fourier_s(grid, 0, x), tsr_fourier_s(grid, 1, y),
                         tsr_fourier_s(grid, 2, z)};
    return s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
}

/* How many frequencies the one at index x along the first axis stands for: its
 * conjugate is left out, but for those that are their own. */
static inline double tsr_fourier_multiplicity(const tsr_map_grid *grid, int x)
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

/* ---- shells of two maps ---- */

/* Fourier shell correlation of a map and a density on its grid: of the Fourier
 * coefficients F, G in shells of 1 / (longest edge) in s,
 * sum Re F G* / sqrt(sum |F|^2 sum |G|^2). Voxels that are not known are set to
 * the mean of the others, in both. */
typedef struct {
    int n;
    double *s_inv_ang, *fsc; /* [n] from s > 0 up to Nyquist's */
    /* The first s at which it is below 0.5, 0.143, from line to line between
     * shells; where it never is, Nyquist's, and is_at_limit is 1. */
    double half_inv_ang, low_inv_ang;
    int half_is_at_limit, low_is_at_limit;
} tsr_fsc;

/* Errors: TSR_E_NOMEM. */
tsr_status tsr_fsc_make(const tsr_map *map, const float *density,
                        tsr_pool *pool, tsr_fsc *out, tsr_err *err);

/* The same of two maps, as the halves of the data, with a mask or without.
 *
 * A mask takes away the noise around the molecule and makes correlation of its
 * own: the sharper its edge, the more. How much shows where both maps get
 * phases at random beyond a frequency: what then is left there is the mask's,
 * and (masked - random) / (1 - random) is free of it (Chen et al. 2013,
 * Ultramicroscopy 135:24). Phases are random from where the curve without a
 * mask first falls below 0.8; the correction begins two shells later, as the
 * step itself blurs over its neighbours. */
typedef struct {
    tsr_fsc plain;                     /* as the maps are */
    tsr_fsc masked, random, corrected; /* n 0: there is no mask */
    double random_from_inv_ang;        /* infinite: nowhere */
} tsr_fsc_halves;

/* mask [n_voxel]: 1 inside, 0 outside, between at a soft edge; NULL: none.
 * Errors: TSR_E_DATA (other grids, a mask of nothing), TSR_E_NOMEM. */
tsr_status tsr_fsc_halves_make(const tsr_map *one, const tsr_map *other,
                               const float *mask, tsr_pool *pool,
                               tsr_fsc_halves *out, tsr_err *err);

/* ---- filters ---- */

/* What frequencies count in sums over voxels of a product of two maps: W(s),
 * the sum over n parts of share exp(-extra (2 pi s)^2 / 2), so that the product
 * is of one map with the other blurred by these Gaussians. 1, share 1, extra 0:
 * all alike. */
enum { TSR_FILTER_PARTS = 6 /* at most */ };

typedef struct {
    int n;
    double share[TSR_FILTER_PARTS], extra[TSR_FILTER_PARTS]; /* Angstrom^2 */
} tsr_map_filter;

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
 * A map blurred beforehand, to be read anywhere: its mean under a Gaussian,
 * G(x) = sum_v g(x - v) E(v) over the voxels v, where g is a normal density in
 * units of voxels and E the map less its mean.
 *
 * The overlap of a model with a map is then one reading a body, and no grid is
 * needed while a model moves. Widths are close together, and read between. */

enum { TSR_MOST_LEVELS = 32 };

typedef struct {
    tsr_map_filter filter;
    double n_voxel;
    double square; /* sum of E W E over the voxels, divided by their number */
    /* Level k is the map under the filter, blurred by a variance of
       exp(log_first + k step). */
    int n_level;
    double log_first, step;
    tsr_map *level[TSR_MOST_LEVELS];
} tsr_blurred;

/* By variances from `narrow` to `wide`, Angstrom^2. Unknown voxels count as the
 * mean. Errors: TSR_E_NOMEM, TSR_E_DATA (more than 8 GiB). */
tsr_status tsr_blurred_make(const tsr_map *map, double mean,
                            const tsr_map_filter *filter, double narrow,
                            double wide, tsr_pool *pool, tsr_blurred **out,
                            tsr_err *err);

/* Where a variance lies between the levels, and G there at x; 0 outside of the
 * grid. */
double tsr_blurred_level(const tsr_blurred *blurred, double variance);
double tsr_blurred_at(const tsr_blurred *blurred, double level,
                      const double x[3]);

#endif

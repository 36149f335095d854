/* Discrete Fourier transforms of maps, by FFTW (Frigo & Johnson 2005) in single
 * precision. A map is continued periodically. */
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

/* ---- noise ----
 *
 * The noise of a map: its power by frequency, and the filter that makes all
 * frequencies count as what they are worth. */

/* |F|^2 of the noise over the number of voxels, in shells of |s|: of white
 * noise its variance. */
typedef struct {
    tsr_shells shells;
    int n_all;         /* shells up to the corners, beyond Nyquist's frequency
                          of an axis, which `shells` ends at */
    double *n, *power; /* [n_all] frequencies, and the mean of each shell */
} tsr_map_noise;

/* Of the mean of two half-maps: half their difference. Errors: TSR_E_DATA
 * (other grids, half-maps that are the same), TSR_E_NOMEM. */
tsr_status tsr_noise_of_halves(const tsr_map *one, const tsr_map *other,
                               tsr_pool *pool, tsr_map_noise *out,
                               tsr_err *err);

/* Of what is outside of a mask, is_inside [n_voxel]; `mean`: that of the
 * outside. Errors: TSR_E_DATA (less than a tenth is outside, or it is of one
 * value), TSR_E_NOMEM. */
tsr_status tsr_noise_of_solvent(const tsr_map *map,
                                const unsigned char *is_inside, double mean,
                                tsr_pool *pool, tsr_map_noise *out,
                                tsr_err *err);

/* A filter W near 1 / power up to the frequency 1 / resolution, and falling
 * beyond: a sum of Gaussians, by least squares of W power - 1. *n_free out: how
 * many frequencies that is worth. Errors: TSR_E_NUMERIC. */
tsr_status tsr_noise_whiten(const tsr_map_noise *noise, double resolution_ang,
                            tsr_map_filter *out, double *n_free, tsr_err *err);

/* What the noise N makes of sums under a filter: the expected sum of N W N over
 * the voxels where N is set to 0 outside of a mask, is_inside [n_voxel]; NULL:
 * nowhere. A mask's edge carries noise to frequencies that had none, and these
 * may weigh much. Errors: TSR_E_NOMEM. */
tsr_status tsr_noise_under(const tsr_map_noise *noise,
                           const tsr_map_filter *filter,
                           const tsr_map_grid *grid,
                           const unsigned char *is_inside, double *out,
                           tsr_err *err);

#endif

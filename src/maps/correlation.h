/* How well a model's density and a map agree: correlation coefficients, the
 * line between the two, Fourier shell correlation. */
#ifndef TSR_MAPS_CORRELATION_H
#define TSR_MAPS_CORRELATION_H

#include "maps/density.h"

/* Pearson's, with both means taken off, or uncentred (the cosine, as some
 * programs' "correlation" is). NaN where there is no voxel or one of the two
 * does not vary. */
double tsr_map_cc(const tsr_map_sums *sums);
double tsr_map_cc_uncentred(const tsr_map_sums *sums);

/* E = slope S + offset by least squares; 0 and the map's mean where S does not
 * vary. */
void tsr_map_line(const tsr_map_sums *sums, double *slope, double *offset);

/* Mean and standard deviation of S, of E. */
void tsr_map_spread_s(const tsr_map_sums *sums, double *mean, double *sd);
void tsr_map_spread_e(const tsr_map_sums *sums, double *mean, double *sd);

/* The same grid with 8^3 voxels as one, and in each the correlation within the
 * tile; 0 where it is not defined. Errors: TSR_E_NOMEM. */
tsr_status tsr_map_tile_cc(const tsr_map *map, const tsr_map_sums *tile,
                           tsr_map **out, tsr_err *err);

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
tsr_status tsr_fsc_make(const tsr_map *map, const float *density, tsr_fsc *out,
                        tsr_err *err);
void tsr_fsc_clear(tsr_fsc *fsc);

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
                               const float *mask, tsr_fsc_halves *out,
                               tsr_err *err);
void tsr_fsc_halves_clear(tsr_fsc_halves *halves);

#endif

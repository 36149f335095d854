/* The noise of a map: its power by frequency, and the filter that makes all
 * frequencies count as what they are worth. */
#ifndef TSR_MAPS_MAP_NOISE_H
#define TSR_MAPS_MAP_NOISE_H

#include "maps/blurred.h"
#include "maps/fourier.h"

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
                               tsr_map_noise *out, tsr_err *err);

/* Of what is outside of a mask, is_inside [n_voxel]; `mean`: that of the
 * outside. Errors: TSR_E_DATA (less than a tenth is outside, or it is of one
 * value), TSR_E_NOMEM. */
tsr_status tsr_noise_of_solvent(const tsr_map *map,
                                const unsigned char *is_inside, double mean,
                                tsr_map_noise *out, tsr_err *err);
void tsr_noise_clear(tsr_map_noise *noise);

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

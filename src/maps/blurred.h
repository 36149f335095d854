/* A map blurred beforehand, to be read anywhere: its mean under a Gaussian,
 * G(x) = sum_v g(x - v) E(v) over the voxels v, where g is a normal density in
 * units of voxels and E the map less its mean.
 *
 * The overlap of a model with a map is then one reading a body, and no grid is
 * needed while a model moves. Widths are close together, and read between. */
#ifndef TSR_MAPS_BLURRED_H
#define TSR_MAPS_BLURRED_H

#include "maps/fourier.h"

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
double tsr_blurred_read(const tsr_blurred *blurred, double level,
                        const double x[3]);

#endif

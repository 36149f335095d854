/* A map blurred beforehand, to be read anywhere: its mean under a Gaussian,
 * G(x) = sum_v g(x - v) E(v) over the voxels v, where g is a normal density in
 * units of voxels.
 *
 * The overlap of a model with a map is then one reading a body, and no grid is
 * needed while a model moves. */
#ifndef TSR_DENSITY_BLURRED_H
#define TSR_DENSITY_BLURRED_H

#include "io/density_map.h"

/* E is the map less its mean; unknown voxels count as the mean. What comes out
 * are coefficients of splines, for tsr_blurred_read alone. Errors: TSR_E_NOMEM.
 */
tsr_status tsr_blurred_make(const tsr_map *map, double mean, double sigma_ang,
                            tsr_map **out, tsr_err *err);

/* G at x by cubic splines; 0 outside of the grid. */
double tsr_blurred_read(const tsr_map *blurred, const double x[3]);

#endif

/* The systems of one call to the device's map sums, as the kernels see them:
 * coordinates as integers, boxes of tiles, scales of the sums. No OpenCL here.
 */
#ifndef TSR_GPU_MAP_BATCH_H
#define TSR_GPU_MAP_BATCH_H

#include "density/density.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    tsr_map_grid grid;
    tsr_map_sums whole; /* of the map */
    /* The blur in units of voxels and of S; for the kernels, by Gaussian. */
    tsr_blur_table blur;
    double unit; /* of S */
    double most; /* voxels that a Gaussian amounts to */
    int32_t reach[TSR_MOST_GAUSSIANS][4]; /* along x, y, z; 1: of an atom */
    int32_t mask_reach[4];
    int32_t reach_max[3]; /* of all and the mask */
    /* The call's. */
    size_t n_particle, n_cell, n_listed; /* n_listed: at most so many entries in
                                            the lists of all tiles */
    int n_system;
    int32_t (*particle)[4]; /* [n_particle] x, y, z, type | system << 8 */
    int32_t (*system)[8];   /* [n_system] box of tiles; first cell */
    int32_t (*bound)[2][3]; /* [n_system] lowest and highest place */
    double *threshold;      /* [n_system] in units */
    double (*scale)[4];     /* [n_system] of E, E^2, S^2, E S */
    size_t room_particle;
    int room_system;
} tsr_map_batch;

/* Another blur; value [n] out: A / unit, and what falls along x, y, z, by which
 * the exponent of 2 is multiplied. Errors: TSR_E_RANGE. */
tsr_status tsr_map_batch_blur(tsr_map_batch *batch, const tsr_blur_table *blur,
                              float (*value)[4], tsr_err *err);

/* Takes systems from number `first` on, as many as fit one call, at least one:
 * n_system. Errors: TSR_E_NOMEM, TSR_E_RANGE. */
tsr_status tsr_map_batch_fill(tsr_map_batch *batch,
                              const tsr_density_batch *from, int first,
                              const tsr_density_options *options, tsr_err *err);
void tsr_map_batch_clear(tsr_map_batch *batch);

#endif

/* The systems of one call to the device's map sums, as the kernels see them:
 * coordinates as integers, boxes of tiles, scales of the sums. No OpenCL here.
 */
#ifndef TSR_MAPS_MAP_BATCH_H
#define TSR_MAPS_MAP_BATCH_H

#include "maps/density.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* One system, as the kernels have it. */
typedef struct {
    int32_t box[8]; /* first tile along x, y, z; tiles along them; first cell,
                       first particle */
    int32_t n_particle, n_cell;
    double threshold; /* in units */
    double scale[4];  /* of E, E^2, S^2, E S */
} tsr_map_system;

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
    const tsr_density_batch *from;       /* borrowed */
    int first_system;                    /* of the call */
    size_t each;                         /* Gaussians of an atom */
    size_t n_particle, n_cell, n_listed; /* n_listed: at most so many entries in
                                            the lists of all tiles */
    int n_system, is_small; /* small: one work-group lists a system's atoms */
    tsr_map_system *system; /* [1 + n_system] the first of them all 0 */
    int32_t (*bound)[2][3]; /* [n_system] lowest and highest place */
    int is_bad;             /* a coordinate is not finite */
    int room;               /* systems that there is room for */
    pthread_mutex_t shared; /* bound and is_bad */
} tsr_map_batch;

void tsr_map_batch_make(tsr_map_batch *batch, const tsr_map_grid *grid,
                        const tsr_map_sums *whole);
void tsr_map_batch_clear(tsr_map_batch *batch);

/* Another blur; value [n] out: A / unit, and what falls along x, y, z, by which
 * the exponent of 2 is multiplied. Errors: TSR_E_RANGE. */
tsr_status tsr_map_batch_blur(tsr_map_batch *batch, const tsr_blur_table *blur,
                              float (*value)[4], tsr_err *err);

/* Begins a call with the systems from number `first` on, as many as fit by
 * their atoms, at least one; n_atom out. Errors: TSR_E_NOMEM, TSR_E_RANGE. */
tsr_status tsr_map_batch_begin(tsr_map_batch *batch,
                               const tsr_density_batch *from, int first,
                               const tsr_density_options *options,
                               size_t *n_atom, tsr_err *err);

/* The particles of atoms first to first + n - 1 of the call, `each` an atom:
 * out [n * each] of x, y, z, type | system << 8. All are asked for once, by any
 * number of threads. */
void tsr_map_batch_put(void *batch, size_t first, size_t n, void *out);

/* What remains when all particles are made: n_system, which may be fewer if
 * their tiles are too many for a call. Errors: TSR_E_NUMERIC (a coordinate is
 * not finite), TSR_E_RANGE. */
tsr_status tsr_map_batch_end(tsr_map_batch *batch,
                             const tsr_density_options *options, tsr_err *err);

#endif

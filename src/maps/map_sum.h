/* Densities of models and their correlation with a map, on an OpenCL device
 * (kernels/map_sum.cl).
 *
 * The map stays on the device between calls. A call puts the atoms of all its
 * systems into lists, tile by tile, on the device; then one launch makes the
 * densities of those tiles that atoms reach, and all sums. Sums are integers,
 * so that the same atoms give the same bits in whatever order they come, in
 * whatever batch, on every device. They meet the reference's to some 1e-6. */
#ifndef TSR_MAPS_MAP_SUM_H
#define TSR_MAPS_MAP_SUM_H

#include "gpu/device.h"
#include "maps/density.h"

/* The device and the map are borrowed. Errors: TSR_E_DEVICE (no double
 * precision or no 64-bit atomics; a map that its memory cannot hold, with the
 * numbers), TSR_E_RANGE (more than 2000 voxels along an axis), TSR_E_NOMEM. */
tsr_status tsr_map_sum_new(const tsr_device *device, const tsr_map *map,
                           tsr_density_engine **out, tsr_err *err);

/* Known answers of a device against the reference, in a small map.
 * TSR_E_DEVICE, with device and error, where they are wrong; max_rel_error may
 * be NULL. */
tsr_status tsr_map_sum_test(const tsr_device *device, double *max_rel_error,
                            tsr_err *err);

/* What the time of the last call consisted of, in seconds. */
typedef struct {
    double build_s;  /* making the engine: the program and the queue */
    double map_s;    /* bringing it the map, and sums over that */
    double place_s;  /* the host: atoms to the grid, into pinned memory; while
                        more are made the first are sent */
    double send_s;   /* the bus: the atoms */
    double queue_s;  /* the host: room on the device, and asking for launches */
    double kernel_s; /* the device: from the first kernel to the last */
    double read_s;   /* the bus: the sums */
} tsr_map_sum_times;
tsr_map_sum_times tsr_map_sum_last(const tsr_density_engine *engine);

#endif

/* Densities of models and their correlation with a map, on an OpenCL device
 * (kernels/map_sum.cl).
 *
 * The map stays on the device between calls. A call sorts the atoms of all its
 * systems into lists by tile, on the device. One launch then computes the
 * densities of the tiles that atoms reach, and all sums. Sums are integers, so
 * equal atoms give equal bits in any order, in any batch and on any device.
 * They agree with the reference engine to about 1e-6. */
#ifndef TSR_MAPS_MAP_SUM_H
#define TSR_MAPS_MAP_SUM_H

#include "gpu/device.h"
#include "maps/density.h"

/* Makes the engine of a device. device and map are borrowed. Errors:
 * TSR_E_DEVICE (no double precision or no 64-bit atomics; a map larger than the
 * device's largest buffer, with both sizes), TSR_E_RANGE (more than 2000 voxels
 * along an axis), TSR_E_NOMEM. */
tsr_status tsr_map_sum_new(const tsr_device *device, const tsr_map *map,
                           tsr_density_engine **out, tsr_err *err);

/* Compares a device with the reference engine on a small map. Errors:
 * TSR_E_DEVICE, with device and error, where they differ; TSR_E_NOMEM; those of
 * tsr_map_sum_new. *max_rel_error out, may be NULL. */
tsr_status tsr_map_sum_test(const tsr_device *device, double *max_rel_error,
                            tsr_err *err);

/* Times of the last call, s; build_s and map_s are those of tsr_map_sum_new. */
typedef struct {
    double build_s;  /* building the program and the queue */
    double map_s;    /* copying the map to the device, and sums over the map */
    double place_s;  /* host: converting atoms to grid units in pinned memory,
                        overlapping with the first copies */
    double send_s;   /* bus: copying atoms to the device */
    double queue_s;  /* host: allocating device memory, and enqueuing
                        launches */
    double kernel_s; /* device: from the start of the first kernel to the end of
                        the last */
    double read_s;   /* bus: copying the sums back */
} tsr_map_sum_times;
tsr_map_sum_times tsr_map_sum_last(const tsr_density_engine *engine);

#endif

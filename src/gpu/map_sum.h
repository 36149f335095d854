/* Densities of models and their correlation with a map, on an OpenCL device
 * (kernels/map_sum.cl).
 *
 * The map stays on the device between calls. A call puts the atoms of all its
 * systems into lists, tile by tile, on the device; then one launch makes the
 * densities of those tiles that atoms reach, and all sums. Sums are integers,
 * so that the same atoms give the same bits in whatever order they come, in
 * whatever batch, on every device. They meet the reference's to some 1e-6. */
#ifndef TSR_GPU_MAP_SUM_H
#define TSR_GPU_MAP_SUM_H

#include "density/density.h"
#include "gpu/device.h"

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

/* Seconds that the last call's kernels took, by the device's clock. */
double tsr_map_sum_device_s(const tsr_density_engine *engine);

#endif

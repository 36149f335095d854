/* Masks that are made here: 1 near some places, 0 far away, with a soft edge
 * between. */
#ifndef TSR_MAPS_MASK_H
#define TSR_MAPS_MASK_H

#include "maps/density_map.h"

/* value [n_voxel] out: 1 within radius_ang of any of the places xyz [n], then
 * falling as a cosine to 0 over edge_ang. Places may lie outside of the grid.
 * Cost: voxels in reach of a place, for each. */
void tsr_mask_around(const tsr_map_grid *grid, int n, const double (*xyz)[3],
                     double radius_ang, double edge_ang, float *value);

/* The same around the voxels of `map` at or above a threshold. Errors:
 * TSR_E_DATA (there is none, or all are). */
tsr_status tsr_mask_above(const tsr_map *map, double threshold,
                          double radius_ang, double edge_ang, float *value,
                          tsr_err *err);

/* What a user writes for a mask. */
typedef enum { TSR_MASK_FILE, TSR_MASK_MODEL, TSR_MASK_THRESHOLD } tsr_mask;

/* "model", "threshold:0.02", else the name of a file. *threshold out. Errors:
 * TSR_E_USAGE (a threshold that is no number). */
tsr_status tsr_mask_parse(const char *text, tsr_mask *kind, double *threshold,
                          tsr_err *err);

#endif

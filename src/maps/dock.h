/* Where in a map a rigid model belongs: all rotations, all shifts.
 *
 * Orientations that cover all rotations evenly (Alexa 2022, CVPR 8291) are
 * tried at a coarse resolution, each at all shifts at once by a product in
 * Fourier space (Katchalski-Katzir et al. 1992, PNAS 89:2195); the best of them
 * are refined at the map's own. Shifts beyond the box are not looked for. */
#ifndef TSR_MAPS_DOCK_H
#define TSR_MAPS_DOCK_H

#include "maps/density_map.h"

/* x goes to turn (x - from) + to. */
typedef struct {
    double turn[3][3], from[3], to[3];
    double score; /* overlap with the map; of one model, as its correlation */
} tsr_map_pose;
void tsr_map_pose_apply(const tsr_map_pose *pose, const double x[3],
                        double out[3]);

typedef struct {
    double resolution_ang, sigma_ang; /* of the map; of an atom in it */
    int is_laplacian; /* the search weighs edges, by the Laplacian of both
                         (Chacon & Wriggers 2002); refinement does not */
} tsr_dock_options;

/* The best poses [most] of atoms xyz [n] with weights, best first, each other
 * than the ones before by more than the resolution. *n_pose of them out.
 * Errors: TSR_E_NOMEM, TSR_E_DATA. */
tsr_status tsr_dock(const tsr_map *map, int n, const double (*xyz)[3],
                    const double *weight, const tsr_dock_options *options,
                    int most, tsr_map_pose *pose, int *n_pose, tsr_err *err);

#endif

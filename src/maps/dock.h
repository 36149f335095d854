/* Rigid docking: the best positions of a model in a map, over all rotations and
 * shifts.
 *
 * Orientations that cover all rotations evenly (Alexa 2022, CVPR 8291) are
 * tried at a coarse resolution. For each orientation a product in Fourier space
 * scores all shifts at once (Katchalski-Katzir et al. 1992, PNAS 89:2195). The
 * best poses are refined at the map's own resolution. Positions outside the
 * map's box are not searched. */
#ifndef TSR_MAPS_DOCK_H
#define TSR_MAPS_DOCK_H

#include "maps/density_map.h"

/* A rigid motion: x becomes turn (x - from) + to. */
typedef struct {
    double turn[3][3], from[3], to[3];
    double score; /* overlap with the map; among poses of one model proportional
                     to the correlation */
} tsr_map_pose;
void tsr_map_pose_apply(const tsr_map_pose *pose, const double x[3],
                        double out[3]);

/* Options of a search. */
typedef struct {
    double resolution_ang, sigma_ang; /* resolution of the map; width sigma of
                                         an atom in the map */
    int is_laplacian; /* 1: the search compares edges, by the Laplacian of both
                         densities (Chacon & Wriggers 2002); refinement still
                         compares the densities */
} tsr_dock_options;

/* Finds the best poses of a model.
 * xyz     [n]     in   atoms, Angstrom
 * weight  [n]     in
 * pose    [most]  out  best first; any two differ by more than the resolution
 *                      (RMSD)
 * *n_pose         out
 * Errors: TSR_E_NOMEM; TSR_E_NUMERIC (an overlap is not finite); TSR_E_DATA (a
 * model or a blurred map that is too large). */
tsr_status tsr_dock(const tsr_map *map, int n, const double (*xyz)[3],
                    const double *weight, const tsr_dock_options *options,
                    int most, tsr_map_pose *pose, int *n_pose, tsr_err *err);

#endif

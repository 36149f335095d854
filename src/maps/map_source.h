/* A density map as data of a run, with its mask and the power of its noise. */
#ifndef TSR_MAPS_MAP_SOURCE_H
#define TSR_MAPS_MAP_SOURCE_H

#include "core/field.h"
#include "maps/density_map.h"
#include "maps/fourier.h"

/* An entry of `data:` of kind map. */
typedef struct tsr_map_options {
    int kind;
    char *file;
    int origin;                      /* a tsr_map_origin */
    double resolution;               /* Angstrom */
    double independent;              /* independent voxels; 0: estimated */
    tsr_number_or_word sigma_over_r; /* blur sigma / R, or infer */
    double sigma_width;   /* prior: standard deviation of log(sigma / R) */
    int dock;             /* 1: the start is docked first */
    char *half[2], *mask; /* files; NULL: not given */
    double mask_distance; /* Angstrom, distance to which a mask made from the
                             start or a threshold reaches */
} tsr_map_options;

/* Positions of the start, Angstrom, for a mask around the start. */
typedef struct {
    int n; /* number of positions; 0: the start is not in its place in the
              map */
    const double (*xyz)[3];
} tsr_map_start;

/* ---- masks ----
 *
 * The functions below make masks that are 1 near some positions and 0 far away,
 * with a soft edge. */

/* Mask around the positions xyz [n]: value [n_voxel] out is 1 within radius_ang
 * of any position, then falls to 0 over edge_ang as a cosine. Positions may lie
 * outside the grid. Cost: for each position the voxels within reach. */
void tsr_mask_around(const tsr_map_grid *grid, int n, const double (*xyz)[3],
                     double radius_ang, double edge_ang, float *value);

/* Mask as by tsr_mask_around, but around the voxels of `map` at or above a
 * threshold. Errors: TSR_E_DATA (no voxel, or all voxels, are at or above the
 * threshold). */
tsr_status tsr_mask_above(const tsr_map *map, double threshold,
                          double radius_ang, double edge_ang, float *value,
                          tsr_err *err);

/* Kinds of masks that a user can name. */
typedef enum { TSR_MASK_FILE, TSR_MASK_MODEL, TSR_MASK_THRESHOLD } tsr_mask;

/* Parses "model", "threshold:0.02", or else a file name. *threshold out.
 * Errors: TSR_E_USAGE (a threshold that is not a number). */
tsr_status tsr_mask_parse(const char *text, tsr_mask *kind, double *threshold,
                          tsr_err *err);

/* Where a mask comes from. */
typedef struct {
    const char *mask;              /* as the user wrote it; NULL: no mask */
    tsr_map_origin origin;         /* for a mask from a file */
    double distance_ang, edge_ang; /* for a mask around model or voxels: radius
                                      and width of the edge */
    tsr_map_start start;
    tsr_status no_start_status; /* error status and message where the mask needs
                                   the start but start.n is 0 */
    const char *no_start;
} tsr_mask_source;

/* Makes or reads the mask on the grid of a map: *value [n_voxel], 1 inside, 0
 * outside, intermediate at a soft edge; NULL: no mask. Errors: those of
 * tsr_mask_parse, tsr_mask_above and tsr_map_read; no_start_status; TSR_E_DATA
 * (a mask on another grid); TSR_E_NOMEM. */
tsr_status tsr_mask_make(const tsr_mask_source *source, const tsr_map *map,
                         tsr_log *log, tsr_pool *pool, float **value,
                         tsr_err *err);

/* ---- a map prepared as data ---- */

/* A map with its filter and the power of its noise. */
typedef struct {
    tsr_map *map;     /* with a mask: cropped to the mask's box and a margin of
                         3 resolutions, voxels outside the mask set to their
                         mean */
    double middle[3]; /* centre of the whole map in the file, Angstrom */
    tsr_map_filter filter;
    double n_free; /* number of independent voxels or frequencies */
    double noise;  /* expected sum of N W N over the voxels, divided by their
                      number, for noise N under the filter W; NaN: not known */
} tsr_map_source;

/* Reads and prepares the map of an entry. Errors: those of tsr_map_read;
 * TSR_E_DATA (half-maps or a mask on another grid, one value everywhere, too
 * few independent voxels); TSR_E_CONFIG (a mask around a start that is not in
 * its place); TSR_E_NUMERIC (the noise cannot be whitened); TSR_E_NOMEM. */
tsr_status tsr_map_source_read(const tsr_map_options *options,
                               tsr_map_start start, tsr_log *log,
                               tsr_pool *pool, tsr_map_source *out,
                               tsr_err *err);

#endif

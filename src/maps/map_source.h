/* A density map as data, with its mask and its noise. */
#ifndef TSR_MAPS_MAP_SOURCE_H
#define TSR_MAPS_MAP_SOURCE_H

#include "core/field.h"
#include "maps/density_map.h"
#include "maps/fourier.h"

/* An entry of `data:` of kind map. */
typedef struct tsr_map_options {
    int kind;
    char *file;
    int origin; /* a tsr_map_origin */
    double resolution, independent;
    tsr_number_or_word sigma_over_r;
    double sigma_width;
    int dock;
    char *half[2], *mask; /* NULL: none */
    double mask_distance; /* Angstrom, reach of a mask made from the model or a
                             threshold */
} tsr_map_options;

/* The molecule's start, for a mask around it. */
typedef struct {
    int n; /* 0: not known */
    const double (*xyz)[3];
} tsr_map_start;

/* ---- masks ----
 *
 * Masks made here are 1 near some positions and 0 far away, with a soft
 * edge. */

/* Mask around the positions xyz [n]: value [n_voxel] out is 1 within radius_ang
 * of any position, then falls to 0 over edge_ang as a cosine. Positions may lie
 * outside the grid. Cost: for each position the voxels within reach. */
void tsr_mask_around(const tsr_map_grid *grid, int n, const double (*xyz)[3],
                     double radius_ang, double edge_ang, float *value);

/* Mask around the voxels of `map` at or above a threshold. Errors: TSR_E_DATA
 * (no voxel, or all voxels). */
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
    double distance_ang, edge_ang; /* for a mask made here */
    tsr_map_start start;
    tsr_status no_start_status; /* error status and message where the start is
                                   needed but not known */
    const char *no_start;
} tsr_mask_source;

/* Makes or reads the mask on the grid of a map: *value [n_voxel], 1 inside, 0
 * outside, intermediate at a soft edge; NULL: no mask. Errors: as above, those
 * of tsr_map_read, and TSR_E_DATA (another grid). */
tsr_status tsr_mask_make(const tsr_mask_source *source, const tsr_map *map,
                         tsr_log *log, tsr_pool *pool, float **value,
                         tsr_err *err);

/* ---- a map prepared as data ---- */

/* A map with its filter and the noise under it. */
typedef struct {
    tsr_map *map;     /* cropped to the mask's box; voxels outside the mask have
                         the map's mean outside */
    double middle[3]; /* centre of the box in the file, Angstrom */
    tsr_map_filter filter;
    double n_free; /* number of independent voxels or frequencies */
    double noise;  /* expected sum of N W N over the voxels, divided by their
                      number, for noise N under the filter W; NaN: not known */
} tsr_map_source;

/* Reads and prepares the map of an entry. Errors: those of tsr_map_read;
 * TSR_E_DATA (half-maps or a mask on another grid, one value everywhere, too
 * few independent voxels); TSR_E_CONFIG (a mask around a start that is not
 * known). */
tsr_status tsr_map_source_read(const tsr_map_options *options,
                               tsr_map_start start, tsr_log *log,
                               tsr_pool *pool, tsr_map_source *out,
                               tsr_err *err);

/* The mask of an entry. */
tsr_status tsr_map_source_mask(const tsr_map_options *options,
                               const tsr_map *map, tsr_map_start start,
                               tsr_log *log, tsr_pool *pool, float **value,
                               tsr_err *err);

#endif

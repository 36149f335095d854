/* A density map as data: with its mask, and what is known of its noise. */
#ifndef TSR_MAPS_MAP_SOURCE_H
#define TSR_MAPS_MAP_SOURCE_H

#include "core/field.h"
#include "maps/density_map.h"
#include "maps/fourier.h"

/* An entry of `data:` of the kind map. */
typedef struct tsr_map_options {
    int kind;
    char *file;
    int origin; /* tsr_map_origin */
    double resolution, independent;
    tsr_number_or_word sigma_over_r;
    double sigma_width;
    int dock;
    char *half[2], *mask; /* NULL: none */
    double mask_distance; /* Angstrom, of a mask that is made here */
} tsr_map_options;

/* Where the molecule starts, which a mask may be made around. */
typedef struct {
    int n; /* 0: not known */
    const double (*xyz)[3];
} tsr_map_start;

/* ---- masks ----
 *
 * Those that are made here are 1 near some places, 0 far away, with a soft edge
 * between. */

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

typedef struct {
    const char *mask;              /* as a user writes it; NULL: none */
    tsr_map_origin origin;         /* of a file */
    double distance_ang, edge_ang; /* of what is made here */
    tsr_map_start start;
    tsr_status no_start_status; /* where it is needed and not known */
    const char *no_start;
} tsr_mask_source;

/* The mask on the grid of a map: *value [n_voxel], 1 inside, 0 outside, between
 * at a soft edge; NULL where there is none. Errors: those above, of reading a
 * file; TSR_E_DATA (another grid). */
tsr_status tsr_mask_make(const tsr_mask_source *source, const tsr_map *map,
                         tsr_log *log, tsr_pool *pool, float **value,
                         tsr_err *err);

/* ---- a map that is ready ---- */

typedef struct {
    tsr_map *map;     /* outside of a mask its mean; of the mask's box alone */
    double middle[3]; /* of the box that the file has, Angstrom */
    tsr_map_filter filter;
    double n_free; /* voxels, or frequencies, that count as independent */
    double noise;  /* sum of N W N over the voxels, divided by their number, of
                      the noise N under the filter W; NaN: it is not known */
} tsr_map_source;

/* Errors: those of tsr_map_read; TSR_E_DATA
 * (half-maps, or a mask, that do not match, one value everywhere, too few
 * independent voxels), TSR_E_CONFIG (a mask around a start that is not known).
 */
tsr_status tsr_map_source_read(const tsr_map_options *options,
                               tsr_map_start start, tsr_log *log,
                               tsr_pool *pool, tsr_map_source *out,
                               tsr_err *err);

/* That of an entry. */
tsr_status tsr_map_source_mask(const tsr_map_options *options,
                               const tsr_map *map, tsr_map_start start,
                               tsr_log *log, tsr_pool *pool, float **value,
                               tsr_err *err);

#endif

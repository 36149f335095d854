/* A density map as data: with its mask, and what is known of its noise. */
#ifndef TSR_MAPS_MAP_SOURCE_H
#define TSR_MAPS_MAP_SOURCE_H

#include "core/field.h"
#include "maps/blurred.h"

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

typedef struct {
    tsr_map *map;     /* outside of a mask its mean; of the mask's box alone */
    double middle[3]; /* of the box that the file has, Angstrom */
    tsr_map_filter filter;
    double n_free; /* voxels, or frequencies, that count as independent */
    double noise;  /* sum of N W N over the voxels, divided by their number, of
                      the noise N under the filter W; NaN: it is not known */
} tsr_map_source;

/* The caller frees the map. Errors: those of tsr_map_read; TSR_E_DATA
 * (half-maps, or a mask, that do not match, one value everywhere, too few
 * independent voxels), TSR_E_CONFIG (a mask around a start that is not known).
 */
tsr_status tsr_map_source_read(const tsr_map_options *options,
                               tsr_map_start start, tsr_log *log,
                               tsr_map_source *out, tsr_err *err);

/* The mask of the entry on the grid of its map: *value [n_voxel], 1 inside, 0
 * outside, between at a soft edge; caller frees; NULL where there is none. */
tsr_status tsr_map_source_mask(const tsr_map_options *options,
                               const tsr_map *map, tsr_map_start start,
                               tsr_log *log, float **value, tsr_err *err);

#endif

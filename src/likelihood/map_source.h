/* A density map as data: with its mask, and what is known of its noise. */
#ifndef TSR_LIKELIHOOD_MAP_SOURCE_H
#define TSR_LIKELIHOOD_MAP_SOURCE_H

#include "density/blurred.h"

typedef struct {
    const char *file, *half[2], *mask; /* all but the first may be NULL */
    tsr_map_origin origin;
    double resolution_ang;
    double independent; /* voxels that count as independent; 0: found here */
} tsr_map_source_options;

typedef struct {
    tsr_map *map; /* outside of a mask its mean; of the mask's box alone */
    tsr_map_filter filter;
    double n_free; /* voxels, or frequencies, that count as independent */
} tsr_map_source;

/* The caller frees the map. Errors: those of tsr_map_read; TSR_E_DATA
 * (half-maps, or a mask, that do not match, one value everywhere, too few
 * independent voxels). */
tsr_status tsr_map_source_read(const tsr_map_source_options *options,
                               tsr_log *log, tsr_map_source *out, tsr_err *err);

#endif

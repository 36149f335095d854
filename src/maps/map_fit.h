/* What is known of one prediction beside a map: the three sums that its
 * correlation is made of, kept up to date as bodies move.
 *
 *     sum S W E    one reading a body of the map, blurred beforehand
 *     sum S W S    pairs of bodies: two Gaussians overlap in a Gaussian
 *     sum S        a constant
 *
 * E is the map less its mean, W what frequencies count (maps/blurred.h). */
#ifndef TSR_MAPS_MAP_FIT_H
#define TSR_MAPS_MAP_FIT_H

#include "likelihood/term.h"
#include "maps/blurred.h"
#include "maps/overlap.h"

/* What bodies are in the map's eyes: by type, in electrons and Angstrom^2 of
 * their atoms' spread along an axis. They are Gaussians of the blur's width and
 * this spread. A body of what is no amino acid counts as the side chain with as
 * many atoms. */
typedef struct {
    const tsr_topology *topology;
    unsigned char *type; /* of the bodies, up to whole blocks */
    int occurs[TSR_MAX_TYPE];
    double weight[TSR_MAX_TYPE], spread2[TSR_MAX_TYPE];
    int most_state;
    double voxel_volume; /* Angstrom^3 */
    const tsr_blurred *map;
} tsr_map_bodies;

/* Of a topology, with rg2 [n_type] (NULL: points); most_state, voxel_volume and
 * map are the caller's. Errors: TSR_E_NOMEM. */
tsr_status tsr_map_bodies_make(const tsr_topology *topology, const double *rg2,
                               tsr_map_bodies *out, tsr_err *err);
void tsr_map_bodies_clear(tsr_map_bodies *bodies);

/* Arrays follow it: for each state the bodies' coordinates, what the map reads
 * there, and their place for sums of overlaps. */
typedef struct {
    double cc, var_s; /* the correlation, S W S less the mean's part a voxel */
    double sigma_ang; /* of the kernel; 0: there is none */
    double at_level[TSR_MAX_TYPE]; /* of the map, by type */
    double weight[TSR_MAX_STATES];
    int n_state;
    tsr_overlap_kernel kernel;
    int64_t overlap[]; /* [most_state][most_state] of two states, the lower
                          triangle; of one with itself without i = j */
} tsr_map_fit;

/* NULL: out of memory. */
tsr_map_fit *tsr_map_fit_new(const tsr_map_bodies *bodies, tsr_pool *pool);

/* All at a width of the blur. prediction NULL: of the structures that it has.
 */
void tsr_map_fit_make(const tsr_map_bodies *bodies, double sigma_ang,
                      const tsr_prediction *prediction, tsr_map_fit *fit);

/* The same bits from the fit of another prediction at the same width, with as
 * many states: bodies that did not move keep what is known of them. */
void tsr_map_fit_update(const tsr_map_bodies *bodies, const tsr_map_fit *from,
                        const tsr_prediction *prediction, tsr_map_fit *fit);
/* y += by * d2/2 of the sum S W S, by the places of a state's bodies, times v
 * (term.h, stiffen): of the part in which each of two bodies moves. */
void tsr_map_fit_stiffen(const tsr_map_bodies *bodies, const tsr_map_fit *fit,
                         int state, double by, int n, const double *v,
                         double *y);

void tsr_map_fit_copy(const tsr_map_bodies *bodies, const tsr_map_fit *from,
                      tsr_map_fit *fit);

#endif

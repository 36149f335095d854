/* The density of models on the grid of a map, and the sums that every
 * correlation of the two is made of.
 *
 * Two engines give the same numbers: a slow one in double precision on the host
 * (tsr_density_reference_new), which the tests believe, and one for an OpenCL
 * device (maps/map_sum.h). An engine holds one map; many models, or parts of
 * models, or frames, are compared with it in one call. */
#ifndef TSR_MAPS_DENSITY_H
#define TSR_MAPS_DENSITY_H

#include "core/status.h"
#include "maps/blur.h"
#include "maps/density_map.h"

/* Over the voxels of a set: their number, and sums of the map E, of the model's
 * density S, of squares and of the product. */
typedef struct {
    double n, e, ee, s, ss, es;
} tsr_map_sums;

/* One voxel more: e of the map, s of the model. */
static inline void tsr_map_sums_add(tsr_map_sums *sum, double e, double s)
{
    sum->n += 1.0;
    sum->e += e;
    sum->ee += e * e;
    sum->s += s;
    sum->ss += s * s;
    sum->es += e * s;
}

typedef struct {
    tsr_map_sums box;   /* all voxels of the map that are not NaN */
    tsr_map_sums mask;  /* of them those near an atom */
    tsr_map_sums above; /* those where S is at or above the threshold */
} tsr_density_sums;

/* Atoms, one system after the other. */
typedef struct {
    int n_system;
    const int *first;       /* [n_system + 1] into what follows */
    const double (*xyz)[3]; /* Angstrom */
    const unsigned char *z; /* atomic numbers; all are in the blur table */
} tsr_density_batch;

typedef struct {
    double mask_ang;         /* radius of the mask around atoms; 0: no mask */
    const double *threshold; /* [n_system] of S; NULL: `above` is not wanted */
    /* Wanted of a batch of one system only; NULL: not at all. */
    float *density;     /* [n_voxel] S */
    tsr_map_sums *tile; /* [n_tile] over tiles of 8^3 voxels; all 0 where no
                           atom reaches */
} tsr_density_options;

typedef struct tsr_density_engine tsr_density_engine;

struct tsr_density_engine {
    void (*free)(tsr_density_engine *engine);
    tsr_status (*set_blur)(tsr_density_engine *engine,
                           const tsr_blur_table *blur, tsr_err *err);
    tsr_status (*run)(tsr_density_engine *engine,
                      const tsr_density_batch *batch,
                      const tsr_density_options *options, tsr_density_sums *out,
                      tsr_err *err);
    const tsr_map *map; /* borrowed */
    tsr_map_sums whole; /* n, e and ee over the box */
    tsr_blur_table blur;
    char describe[320]; /* which engine, on what */
};

/* The map is borrowed. Errors: TSR_E_NOMEM. */
tsr_status tsr_density_reference_new(const tsr_map *map,
                                     tsr_density_engine **out, tsr_err *err);

/* Another blur; the map stays where it is. Errors: TSR_E_DEVICE. */
tsr_status tsr_density_set_blur(tsr_density_engine *engine,
                                const tsr_blur_table *blur, tsr_err *err);

/* out [n_system]. Errors: TSR_E_NUMERIC (a coordinate that is not finite),
 * TSR_E_NOMEM, TSR_E_DEVICE, TSR_E_RANGE. */
tsr_status tsr_density_run(tsr_density_engine *engine,
                           const tsr_density_batch *batch,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err);
void tsr_density_free(tsr_density_engine *engine);

/* ---- what both engines need ---- */

enum { TSR_TILE_SIDE = 8 /* voxels */ };

/* Number of tiles along an axis of n voxels, and of all. */
static inline int tsr_map_tiles(int n)
{
    return (n + TSR_TILE_SIDE - 1) / TSR_TILE_SIDE;
}
size_t tsr_map_n_tile(const tsr_map_grid *grid);

/* TSR_E_NUMERIC: a coordinate is not finite, or beyond 1e30. */
tsr_status tsr_density_not_finite(tsr_err *err);

/* n, E and E^2 of the whole map; the same bits whatever the number of threads.
 */
tsr_map_sums tsr_map_whole(const tsr_map *map);

#endif

/* Densities of atomic models at a resolution, and their correlation with a map.
 *
 * A map of resolution R shows every atom blurred by a Gaussian of width sigma,
 * in proportion to R, and of a height in proportion to the atomic number (as in
 * molmap of Chimera and in EMAN):
 *
 *     S(x) = sum_i Z_i exp(-|x - r_i|^2 / 2 sigma^2)
 *
 * Programs differ in sigma / R, from 0.19 to 0.5. A correlation is meaningless
 * without sigma / R, so sigma / R is part of every result. */
#ifndef TSR_MAPS_DENSITY_H
#define TSR_MAPS_DENSITY_H

#include "core/pool.h"
#include "core/status.h"
#include "maps/density_map.h"

/* sigma / R of Chimera and EMAN, the default. */
#define TSR_SIGMA_OVER_R 0.225

/* Gaussians are cut off after so many sigma along each axis: exp(-12.5) =
 * 4e-6. */
#define TSR_BLUR_REACH 5.0

/* ---- density ----
 *
 * The density of models on the grid of a map, and the sums from which
 * correlations are computed, in double precision on the processors of the host.
 * An engine holds one map. One call compares many systems with the map: models,
 * parts of models, or frames. */

/* Sums over a set of voxels: their number n, the map's values E, the model's
 * density S, the squares and the product. */
typedef struct {
    double n, e, ee, s, ss, es;
} tsr_map_sums;

/* Adds a voxel with value e of the map and s of the model. */
static inline void tsr_map_sums_add(tsr_map_sums *sum, double e, double s)
{
    sum->n += 1.0;
    sum->e += e;
    sum->ee += e * e;
    sum->s += s;
    sum->ss += s * s;
    sum->es += e * s;
}

/* Sums over three sets of voxels. */
typedef struct {
    tsr_map_sums box;   /* all voxels of the map that are not NaN */
    tsr_map_sums mask;  /* voxels of box within mask_ang of an atom */
    tsr_map_sums above; /* voxels of box where S is at least the threshold */
} tsr_density_sums;

/* What a call of an engine computes. */
typedef struct {
    double mask_ang;         /* Angstrom, radius of the mask around atoms; 0: no
                                mask */
    const double *threshold; /* [n_system] threshold of S; NULL: `above` is all
                                0 */
    /* Optional results, for a call with one system only; NULL: not computed. */
    float *density;     /* [n_voxel] S */
    tsr_map_sums *tile; /* [n_tile] sums over tiles of 8^3 voxels */
} tsr_density_options;

/* An engine: a map, a width, and memory for the density of one system. */
typedef struct {
    tsr_pool pool;      /* owns this structure */
    const tsr_map *map; /* borrowed */
    tsr_map_sums whole; /* n, e and ee over all voxels that are not NaN */
    double sigma_ang;   /* Angstrom; set by the caller before a call */
    int n_thread;
    double *density;     /* [n_voxel] density of a system; 0 between calls */
    unsigned char *mask; /* [n_voxel] 1: within mask_ang; 0 between calls */
    double *factor; /* [n_thread][nx + ny + 8] a Gaussian along each axis */
} tsr_density_engine;

/* Makes an engine without a width. The map is borrowed and must not change.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_density_new(const tsr_map *map, tsr_density_engine **out,
                           tsr_err *err);
void tsr_density_free(tsr_density_engine *engine);

/* Systems assembled one by one, such as parts or moved copies of a model. One
 * call with all systems costs less than a call for each. */
typedef struct {
    int n;            /* number of systems */
    int *first;       /* [n + 1] index of each system's first atom */
    double (*xyz)[3]; /* Angstrom */
    unsigned char *z; /* atomic numbers */
} tsr_systems;

/* Memory for n_system systems with n_atom atoms in all, from the pool. Setting
 * n = 0 empties the list. Errors: TSR_E_NOMEM. */
tsr_status tsr_systems_make(tsr_pool *pool, int n_system, size_t n_atom,
                            tsr_systems *out, tsr_err *err);

/* Appends a system of n atoms, copied from xyz and z: those with the indices
 * atom [n], or, if `atom` is NULL, the first n. Returns the system's
 * coordinates, which the caller may change. */
double (*tsr_systems_add(tsr_systems *systems, int n, const int *atom,
                         const double (*xyz)[3], const unsigned char *z))[3];

/* Computes out [n_system]. Cost: one multiply-add for each voxel within
 * TSR_BLUR_REACH of each atom. Errors: TSR_E_NUMERIC (a coordinate that is
 * not finite), TSR_E_NOMEM. */
tsr_status tsr_density_run(tsr_density_engine *engine,
                           const tsr_systems *systems,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err);

/* Runs one system. */
tsr_status tsr_density_one(tsr_density_engine *engine, int n_atom,
                           const double (*xyz)[3], const unsigned char *z,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err);

enum { TSR_TILE_SIDE = 8 /* voxels */ };

/* Number of tiles along an axis of n voxels, and of all tiles of a grid. */
static inline int tsr_map_tiles(int n)
{
    return (n + TSR_TILE_SIDE - 1) / TSR_TILE_SIDE;
}
size_t tsr_map_n_tile(const tsr_map_grid *grid);

/* n, e and ee over all voxels that are not NaN. */
tsr_map_sums tsr_map_whole(const tsr_map *map);

/* ---- correlation ----
 *
 * Correlation coefficients of a model's density and a map, and the regression
 * line. */

/* Pearson's correlation coefficient, and the uncentred one (cosine), which some
 * programs report. NaN where there is no voxel, where map or density is
 * constant (Pearson), or where one of them is 0 (uncentred). */
double tsr_map_cc(const tsr_map_sums *sums);
double tsr_map_cc_uncentred(const tsr_map_sums *sums);

/* The line E = slope S + offset by least squares; where S is constant, slope is
 * 0 and offset the mean of E. */
void tsr_map_line(const tsr_map_sums *sums, double *slope, double *offset);

/* Standard deviation of S. */
double tsr_map_sd_s(const tsr_map_sums *sums);

/* A map with one voxel for each tile of 8^3 voxels, whose value is the
 * correlation within the tile; 0 where the correlation is not defined. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_map_tile_cc(const tsr_map *map, const tsr_map_sums *tile,
                           tsr_pool *pool, tsr_map **out, tsr_err *err);

#endif

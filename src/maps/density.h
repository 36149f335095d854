/* How an atom looks at a resolution: one Gaussian, or a few.
 *
 * A density map of resolution R shows every atom blurred. Programs do not agree
 * on by how much: the width is sigma = (sigma / R) R with sigma / R from 0.19
 * to 0.5. A correlation without that number says little, so it is part of every
 * result. Three kinds of atoms are blurred so:
 *
 *   gaussian   a point of as many electrons as the element has, as in molmap
 *              of Chimera and in EMAN; sigma / R is 0.225 there
 *   radius     height 1 for every atom, a width in proportion to a radius
 *              (H 1.0, C 1.5, N 1.4, O 1.3, F 1.2, S 1.9, others 1.5 Angstrom),
 *              as in VMD (Stone et al. 2014, Faraday Discuss. 169:265); the
 *              sigma / R is that of carbon, 0.30 there
 *   electron   the potential that electrons scatter from: five Gaussians an
 *              element (International Tables C, table 4.3.2.2; Peng et al.
 *              1996), each of them blurred */
#ifndef TSR_MAPS_DENSITY_H
#define TSR_MAPS_DENSITY_H

#include "core/pool.h"
#include "core/status.h"
#include "maps/density_map.h"

typedef enum { TSR_BLUR_GAUSSIAN, TSR_BLUR_RADIUS, TSR_BLUR_ELECTRON } tsr_blur;

/* Gaussians end at so many sigma along each axis: exp(-12.5) = 4e-6. */
#define TSR_BLUR_REACH 5.0

/* A exp(-r^2 / 2 sigma^2) about the atom. */
typedef struct {
    double amplitude, sigma_ang;
    int is_atom; /* 1: the first of its atom, which a mask is made around */
} tsr_gaussian;

enum { TSR_MOST_GAUSSIANS = 256, TSR_MOST_ELEMENTS = 99 };

typedef struct {
    tsr_blur kind;
    double resolution_ang, sigma_over_r;
    int n;
    tsr_gaussian gaussian[TSR_MOST_GAUSSIANS];
    int first[TSR_MOST_ELEMENTS], count[TSR_MOST_ELEMENTS]; /* of an element */
} tsr_blur_table;

/* "gaussian", "radius", "electron". */
const char *tsr_blur_name(tsr_blur kind);

/* What programs of the kind use. */
double tsr_blur_default_width(tsr_blur kind);

/* For the elements that z [n_atom] names. Errors: TSR_E_DATA (an element that
 * the tables lack, too many elements). */
tsr_status tsr_blur_make(tsr_blur kind, double resolution_ang,
                         double sigma_over_r, int n_atom,
                         const unsigned char *z, tsr_blur_table *out,
                         tsr_err *err);

/* ---- density ----
 *
 * The density of models on the grid of a map, and the sums that every
 * correlation of the two is made of.
 *
 * Two engines give the same numbers: a slow one in double precision on the host
 * (tsr_density_reference_new), which the tests believe, and one for an OpenCL
 * device (maps/map_sum.h). An engine holds one map; many models, or parts of
 * models, or frames, are compared with it in one call. */

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
    tsr_pool pool; /* of what it holds, and of itself */
    void (*free)(tsr_density_engine *engine); /* what is not; NULL: nothing */
    /* Another blur; the map stays where it is. Errors: TSR_E_DEVICE,
     * TSR_E_RANGE. */
    tsr_status (*set_blur)(tsr_density_engine *engine,
                           const tsr_blur_table *blur, tsr_err *err);
    /* out [n_system]. Errors: TSR_E_NUMERIC (a coordinate that is not finite),
     * TSR_E_NOMEM, TSR_E_DEVICE, TSR_E_RANGE. */
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

/* A run of one system. */
tsr_status tsr_density_one(tsr_density_engine *engine, int n_atom,
                           const double (*xyz)[3], const unsigned char *z,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err);
void tsr_density_free(tsr_density_engine *engine);

/* Systems that are put together one by one: parts of a model, or copies of it
 * that are moved. A call with them all costs less than one for each. */
typedef struct {
    int n, *first;
    double (*xyz)[3];
    unsigned char *z;
} tsr_systems;

/* Room for so many, of the pool; n = 0 empties them. Errors: TSR_E_NOMEM. */
tsr_status tsr_systems_make(tsr_pool *pool, int n_system, size_t n_atom,
                            tsr_systems *out, tsr_err *err);

/* One more: n atoms of a model, those of a list or (NULL) the first. Returns
 * its coordinates. */
double (*tsr_systems_add(tsr_systems *systems, int n, const int *atom,
                         const double (*xyz)[3], const unsigned char *z))[3];
tsr_status tsr_systems_run(const tsr_systems *systems,
                           tsr_density_engine *engine,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err);

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

/* n, E and E^2 of the whole map. */
tsr_map_sums tsr_map_whole(const tsr_map *map);

/* ---- correlation ----
 *
 * How well a model's density and a map agree: correlation coefficients and
 * the line between the two. */

/* Pearson's, with both means taken off, or uncentred (the cosine, as some
 * programs' "correlation" is). NaN where there is no voxel or one of the two
 * does not vary. */
double tsr_map_cc(const tsr_map_sums *sums);
double tsr_map_cc_uncentred(const tsr_map_sums *sums);

/* E = slope S + offset by least squares; 0 and the map's mean where S does not
 * vary. */
void tsr_map_line(const tsr_map_sums *sums, double *slope, double *offset);

/* Standard deviation of S. */
double tsr_map_sd_s(const tsr_map_sums *sums);

/* The same grid with 8^3 voxels as one, and in each the correlation within the
 * tile; 0 where it is not defined. Errors: TSR_E_NOMEM. */
tsr_status tsr_map_tile_cc(const tsr_map *map, const tsr_map_sums *tile,
                           tsr_pool *pool, tsr_map **out, tsr_err *err);

#endif

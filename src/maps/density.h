/* Densities of atomic models at a resolution, and their correlation with a map.
 *
 * A map of resolution R shows every atom blurred by a Gaussian of width sigma,
 * in proportion to R. Programs differ in sigma / R, from 0.19 to 0.5. A
 * correlation is meaningless without sigma / R, so sigma / R is part of every
 * result. Three shapes of atoms are available:
 *
 *   gaussian   height in proportion to the atomic number, as in molmap of
 *              Chimera and in EMAN, where sigma / R is 0.225
 *   radius     height 1 for every atom and a width in proportion to a radius
 *              (H 1.0, C 1.5, N 1.4, O 1.3, F 1.2, S 1.9, others 1.5 Angstrom),
 *              as in VMD (Stone et al. 2014, Faraday Discuss. 169:265);
 *              the stated sigma / R is that of carbon; VMD uses 0.30
 *   electron   the electrostatic potential that scatters electrons: five
 *              Gaussians an element (International Tables C, table 4.3.2.2;
 *              Peng et al. 1996), each of them blurred */
#ifndef TSR_MAPS_DENSITY_H
#define TSR_MAPS_DENSITY_H

#include "core/pool.h"
#include "core/status.h"
#include "maps/density_map.h"

typedef enum { TSR_BLUR_GAUSSIAN, TSR_BLUR_RADIUS, TSR_BLUR_ELECTRON } tsr_blur;

/* Gaussians are cut off after so many sigma along each axis: exp(-12.5) =
 * 4e-6. */
#define TSR_BLUR_REACH 5.0

/* A Gaussian: amplitude exp(-r^2 / 2 sigma_ang^2) at distance r from the
 * atom. */
typedef struct {
    double amplitude, sigma_ang;
    int is_atom; /* 1: the first Gaussian of its element. Masks are made around
                    first Gaussians only, and so once around each atom */
} tsr_gaussian;

enum { TSR_MOST_GAUSSIANS = 256, TSR_MOST_ELEMENTS = 99 };

/* The Gaussians of all elements at a resolution. */
typedef struct {
    tsr_blur kind;
    double resolution_ang, sigma_over_r;
    int n;
    tsr_gaussian gaussian[TSR_MOST_GAUSSIANS];
    /* By atomic number: index of the element's first Gaussian, and number of
     * its Gaussians; 0: the element is not in the table. */
    int first[TSR_MOST_ELEMENTS], count[TSR_MOST_ELEMENTS];
} tsr_blur_table;

/* "gaussian", "radius", "electron". */
const char *tsr_blur_name(tsr_blur kind);

/* Usual sigma / R of the programs with this shape of atoms. */
double tsr_blur_default_width(tsr_blur kind);

/* Makes the table for all elements in z [n_atom], the atomic numbers. Errors:
 * TSR_E_DATA (an element without an entry in the tables, too many elements). */
tsr_status tsr_blur_make(tsr_blur kind, double resolution_ang,
                         double sigma_over_r, int n_atom,
                         const unsigned char *z, tsr_blur_table *out,
                         tsr_err *err);

/* ---- density ----
 *
 * The density of models on the grid of a map, and the sums from which
 * correlations are computed.
 *
 * Two engines give the same numbers: a slow one in double precision on the host
 * (tsr_density_reference_new), the standard of the tests, and one for OpenCL
 * devices (maps/map_sum.h). An engine holds one map. One call compares many
 * models, parts of models, or frames with the map. */

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

/* Atoms of several systems, one system after another. */
typedef struct {
    int n_system;
    const int *first;       /* [n_system + 1] index of each system's first
                               atom */
    const double (*xyz)[3]; /* Angstrom */
    const unsigned char *z; /* atomic numbers; all are in the blur table */
} tsr_density_batch;

/* What a call of an engine computes. */
typedef struct {
    double mask_ang;         /* Angstrom, radius of the mask around atoms; 0: no
                                mask */
    const double *threshold; /* [n_system] threshold of S; NULL: `above` is all
                                0 */
    float *density; /* [n_voxel] S, for a batch of one system only; NULL: not
                       stored */
} tsr_density_options;

typedef struct tsr_density_engine tsr_density_engine;

/* An engine: a map, a blur, and functions that compute sums. */
struct tsr_density_engine {
    tsr_pool pool; /* memory of the engine, this structure included */
    void (*free)(tsr_density_engine *engine); /* frees what the pool does not
                                                 own; NULL: nothing */
    /* Sets the blur; the map stays. Errors: TSR_E_DEVICE, TSR_E_RANGE. */
    tsr_status (*set_blur)(tsr_density_engine *engine,
                           const tsr_blur_table *blur, tsr_err *err);
    /* Computes out [n_system]. Errors: TSR_E_NUMERIC (a coordinate that is not
     * finite), TSR_E_NOMEM, TSR_E_DEVICE, TSR_E_RANGE. */
    tsr_status (*run)(tsr_density_engine *engine,
                      const tsr_density_batch *batch,
                      const tsr_density_options *options, tsr_density_sums *out,
                      tsr_err *err);
    /* Makes an engine with the same map and blur, for another thread; it
     * borrows the map on the device, and is freed before `engine`. Errors:
     * TSR_E_NOMEM, TSR_E_DEVICE. */
    tsr_status (*clone)(tsr_density_engine *engine, tsr_density_engine **out,
                        tsr_err *err);
    const tsr_map *map; /* borrowed */
    tsr_map_sums whole; /* n, e and ee over all voxels that are not NaN */
    tsr_blur_table blur;
    char describe[320]; /* name of the engine and its device */
};

/* Makes the reference engine. Call set_blur before the first run. The map is
 * borrowed. Errors: TSR_E_NOMEM. */
tsr_status tsr_density_reference_new(const tsr_map *map,
                                     tsr_density_engine **out, tsr_err *err);

/* Runs a batch of one system. */
tsr_status tsr_density_one(tsr_density_engine *engine, int n_atom,
                           const double (*xyz)[3], const unsigned char *z,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err);
void tsr_density_free(tsr_density_engine *engine);

/* Systems assembled one by one, such as parts or moved copies of a model. One
 * call with all systems costs less than a call for each. */
typedef struct {
    int n, *first;
    double (*xyz)[3];
    unsigned char *z;
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
tsr_status tsr_systems_run(const tsr_systems *systems,
                           tsr_density_engine *engine,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err);

/* ---- shared by both engines ---- */

/* Sets the message that a coordinate is not finite, for coordinates that are
 * not finite or beyond 1e30. Returns TSR_E_NUMERIC. */
tsr_status tsr_density_not_finite(tsr_err *err);

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

#endif

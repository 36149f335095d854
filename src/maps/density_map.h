/* Density maps: numbers on a grid, as electron microscopy gives them.
 *
 * Files are MRC2014 (Cheng et al. 2015, J. Struct. Biol. 192:146), which the
 * CCP4 format is a dialect of, or OpenDX, each of them gzipped or not. In
 * memory a map is always the same: axes x, y, z of the laboratory, x fastest,
 * values in single precision. A voxel that is not a finite number in the file
 * is NaN here, which means "not known" to everybody who computes with a map. */
#ifndef TSR_MAPS_DENSITY_MAP_H
#define TSR_MAPS_DENSITY_MAP_H

#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"

#include <stddef.h>

typedef struct {
    int n[3];         /* voxels along x, y, z */
    double step[3];   /* Angstrom from voxel to voxel */
    double origin[3]; /* Angstrom, centre of the first voxel */
} tsr_map_grid;

typedef struct {
    char *path; /* of the file; NULL: made here */
    tsr_map_grid grid;
    float *value; /* [n[2]][n[1]][n[0]] */
} tsr_map;

static inline size_t tsr_map_n_voxel(const tsr_map_grid *grid)
{
    return (size_t)grid->n[0] * (size_t)grid->n[1] * (size_t)grid->n[2];
}

/* Voxels, steps and origin are the same, within rounding. */
int tsr_map_same_grid(const tsr_map_grid *a, const tsr_map_grid *b);

/* Voxels in the box within reach of x along each axis, one after the other:
 *
 *     tsr_map_box box = tsr_map_box_about(grid, x, reach);
 *     while (tsr_map_box_next(&box))
 *         ... box.k, box.square ... */
typedef struct {
    const tsr_map_grid *grid;
    double x[3];
    int first[3], last[3], at[3];
    size_t row, k;            /* the voxel's place in a map, and its row's */
    double square, across[2]; /* of its distance from x; along y, z alone */
} tsr_map_box;

tsr_map_box tsr_map_box_about(const tsr_map_grid *grid, const double x[3],
                              double reach);
int tsr_map_box_row(tsr_map_box *box); /* goes to the next row of voxels */

static inline int tsr_map_box_next(tsr_map_box *b)
{
    if (++b->at[0] > b->last[0] && !tsr_map_box_row(b))
        return 0;
    const double d = b->grid->origin[0] + b->grid->step[0] * b->at[0] - b->x[0];
    b->square = d * d + b->across[0] + b->across[1];
    b->k = b->row + (size_t)b->at[0];
    return 1;
}

/* Is a map (what: "mask") on the grid of another? Errors: TSR_E_DATA. */
tsr_status tsr_map_check_grid(const char *what, const tsr_map *map,
                              const tsr_map *of, tsr_err *err);

/* Where the first voxel is. MRC2014 has two places for it: the words ORIGIN, in
 * Angstrom, and NXSTART to NZSTART, in voxels. Programs for microscopy write
 * the first, crystallographers' the second, and many files have both, of which
 * only one is meant. AUTO takes ORIGIN unless it is 0, 0, 0. */
typedef enum {
    TSR_MAP_ORIGIN_AUTO,
    TSR_MAP_ORIGIN_FIELD,
    TSR_MAP_ORIGIN_NSTART
} tsr_map_origin;

/* Reads a file; its content decides what it is. The machine stamp may be wrong
 * or 0, statistics in the header are not looked at, axes may have any order,
 * modes are 0, 1, 2, 6 and 12. What is odd but can be read is told to `log`
 * (NULL: silent), and so is what a map of more than 1 GiB takes, before it is
 * read. Errors, naming file and header field: TSR_E_NOINPUT, TSR_E_DATA (cells
 * that are not rectangular, other modes, skewed axes, stacks of volumes, a file
 * that ends too early, voxels that are not 0.1 to 50 Angstrom wide, or farther
 * away than 1e6), TSR_E_NOMEM (more voxels than this machine has memory for,
 * told before reading). */
tsr_status tsr_map_read(const char *path, tsr_map_origin origin, tsr_log *log,
                        tsr_pool *pool, tsr_map **out, tsr_err *err);

/* Can models be compared with it, at that resolution (0: not known)? Says how
 * many voxels are not known. Masks and grids for other maps need no such
 * values. Errors: TSR_E_DATA (no finite voxel, one value everywhere, values
 * beyond 1e20, voxels wider than the resolution). */
tsr_status tsr_map_check(const tsr_map *map, double resolution_ang,
                         tsr_log *log, tsr_err *err);

/* A map of zeros on a grid. Errors: TSR_E_NOMEM. */
tsr_status tsr_map_new(const tsr_map_grid *grid, tsr_pool *pool, tsr_map **out,
                       tsr_err *err);

/* Writes MRC2014, mode 2, beside and renames. title: one line of the header.
 * Errors: TSR_E_IO, TSR_E_DATA (an axis of more than 32,767 voxels). */
tsr_status tsr_map_write(const tsr_map *map, const char *path,
                         const char *title, tsr_err *err);

/* How such a file by tessera is known (files/file.h). */
#define TSR_MAP_MARK "tessera: "

/* Is a model, n atoms at xyz, where the map is? Warns of one that is in part
 * outside. Errors: TSR_E_DATA, with both boxes and a remedy, as "dock it
 * first", where less than the share `least` of it, or nothing, is inside. */
tsr_status tsr_map_check_overlap(const tsr_map_grid *grid, const char *model,
                                 int n, const double (*xyz)[3], double least,
                                 const char *remedy, tsr_log *log,
                                 tsr_err *err);

#endif

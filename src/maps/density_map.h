/* Density maps from electron microscopy: values on a grid.
 *
 * Files are MRC2014 (Cheng et al. 2015, J. Struct. Biol. 192:146), of which
 * CCP4 is a dialect, or OpenDX, either of them also gzipped. In memory all maps
 * have one layout: axes x, y, z of the laboratory, x fastest, single precision.
 * A voxel whose value in the file is not finite is NaN in memory, and all
 * functions treat NaN as "not known". */
#ifndef TSR_MAPS_DENSITY_MAP_H
#define TSR_MAPS_DENSITY_MAP_H

#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"

#include <stddef.h>

/* A rectangular grid of voxels. */
typedef struct {
    int n[3];         /* voxels along x, y, z */
    double step[3];   /* Angstrom between voxels */
    double origin[3]; /* Angstrom, centre of the first voxel */
} tsr_map_grid;

/* A density map in memory. */
typedef struct {
    char *path; /* NULL: the map is not from a file */
    tsr_map_grid grid;
    float *value; /* [n[2]][n[1]][n[0]] */
} tsr_map;

/* Number of voxels. */
static inline size_t tsr_map_n_voxel(const tsr_map_grid *grid)
{
    return (size_t)grid->n[0] * (size_t)grid->n[1] * (size_t)grid->n[2];
}

/* Iterates over the voxels in the box within reach of x along each axis:
 *
 *     tsr_map_box box = tsr_map_box_about(grid, x, reach);
 *     while (tsr_map_box_next(&box))
 *         ... box.k, box.square ... */
typedef struct {
    const tsr_map_grid *grid;
    double x[3];
    int first[3], last[3];    /* voxels of the box along x, y, z */
    int at[3];                /* the present voxel */
    size_t row, k;            /* indices in a map: of the first voxel of the
                                 present row of the grid, and of the present
                                 voxel */
    double square, across[2]; /* squared distance of the present voxel from x,
                                 and the parts of this square along y and z */
} tsr_map_box;

tsr_map_box tsr_map_box_about(const tsr_map_grid *grid, const double x[3],
                              double reach);
int tsr_map_box_row(tsr_map_box *box); /* advances to the next row; returns 0
                                          after the last */

static inline int tsr_map_box_next(tsr_map_box *b)
{
    if (++b->at[0] > b->last[0] && !tsr_map_box_row(b))
        return 0;
    const double d = b->grid->origin[0] + b->grid->step[0] * b->at[0] - b->x[0];
    b->square = d * d + b->across[0] + b->across[1];
    b->k = b->row + (size_t)b->at[0];
    return 1;
}

/* Checks that a map is on the grid of the map `other`. what: name of the map in
 * the message, such as "mask". Errors: TSR_E_DATA. */
tsr_status tsr_map_check_grid(const char *what, const tsr_map *map,
                              const tsr_map *other, tsr_err *err);

/* Position of the first voxel. MRC2014 has two fields for it: ORIGIN, in
 * Angstrom, and NXSTART to NZSTART, in voxels. Microscopy programs write the
 * first, crystallographic programs the second. Many files have both, although
 * only one is meant. AUTO uses ORIGIN unless it is 0, 0, 0. */
typedef enum {
    TSR_MAP_ORIGIN_AUTO,
    TSR_MAP_ORIGIN_FIELD,
    TSR_MAP_ORIGIN_NSTART
} tsr_map_origin;

/* Reads a file, whose content determines the format. Wrong or missing machine
 * stamps are tolerated, statistics in the header are ignored, axes may have any
 * order, and modes may be 0, 1, 2, 6 or 12. origin: for MRC2014 alone. The log
 * (NULL: no log) gets notes on contradictions in the header and, before
 * reading, the memory needed by a map of more than 1 GiB. Errors, naming file
 * and header field: TSR_E_NOINPUT; TSR_E_DATA (cells that are not rectangular,
 * other modes, skewed axes, stacks of volumes, a truncated file, voxels that
 * are not 0.1 to 50 Angstrom wide, or an origin beyond 1e6 Angstrom);
 * TSR_E_NOMEM (a map of more than 90 % of this machine's memory, detected
 * before reading). */
tsr_status tsr_map_read(const char *path, tsr_map_origin origin, tsr_log *log,
                        tsr_pool *pool, tsr_map **out, tsr_err *err);

/* Checks that models can be compared with the map at a resolution (0: not
 * known). Call it for maps that are not masks. The log gets the number of NaN
 * voxels. Errors: TSR_E_DATA (no finite voxel, one value everywhere, values
 * beyond 1e20, voxels wider than the resolution). */
tsr_status tsr_map_check(const tsr_map *map, double resolution_ang,
                         tsr_log *log, tsr_err *err);

/* Makes a map of zeros. Errors: TSR_E_NOMEM. */
tsr_status tsr_map_new(const tsr_map_grid *grid, tsr_pool *pool, tsr_map **out,
                       tsr_err *err);

/* Writes MRC2014, mode 2, atomically. title: text of the header's label.
 * Errors: TSR_E_IO, TSR_E_DATA (an axis of more than 32,767 voxels). */
tsr_status tsr_map_write(const tsr_map *map, const char *path,
                         const char *title, tsr_err *err);

/* The header's label begins with this mark in files that tessera wrote
 * (files/file.h). */
#define TSR_MAP_MARK "tessera: "

/* Checks that a model of n atoms at xyz lies in the map, and warns if some
 * atoms lie outside. model: name for messages. Errors: TSR_E_DATA, with both
 * boxes and the text `remedy`, where no atom is inside, or less than the share
 * `least` of the atoms. */
tsr_status tsr_map_check_overlap(const tsr_map_grid *grid, const char *model,
                                 int n, const double (*xyz)[3], double least,
                                 const char *remedy, tsr_log *log,
                                 tsr_err *err);

#endif

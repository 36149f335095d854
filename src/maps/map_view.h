/* The numbers behind the figures of a report that compare a map with the draws
 * of a run: slices, correlations, shell correlations. Densities are those of
 * all atoms, not of bodies. */
#ifndef TSR_MAPS_MAP_VIEW_H
#define TSR_MAPS_MAP_VIEW_H

#include "core/log.h"
#include "core/status.h"
#include "likelihood/term.h"
#include "maps/density.h"
#include "maps/fourier.h"
#include "molecule/structure.h"

/* Models of a file, frames of a trajectory, or conformations of a run. In an
 * ensemble the states of a draw are consecutive, and their densities add up
 * with their weights. */
typedef struct {
    const char *path; /* as the user gave it, borrowed */
    tsr_atoms *atoms; /* names and elements; coordinates of the first model */
    unsigned char *z; /* [n_atom] atomic numbers */
    int n;            /* number of models */
    double (*xyz)[3]; /* [n][n_atom] Angstrom; with frames [1][n_atom] */
    struct tsr_model_frames *frames; /* an open trajectory or run, whose models
                                        are read one by one; NULL: xyz has all
                                        models */
    long *draw; /* [n] number of the draw in a run, or of the frame in a
                   trajectory; NULL: models of a file */
    int *chain; /* [n] number of the chain; models of a file: NULL */
    /* For a run; models of a file: NULL. */
    int *of_draw;   /* [n] index among the stored draws, ascending; equal for
                       the states of one draw */
    double *weight; /* [n] weight of the state in its draw */
    double (*start)[3]; /* [n_atom] start of the run, Angstrom */
} tsr_map_models;

/* A correlation with the map: that of the start, and median and 90 % interval
 * over the draws. NaN: not defined. */
typedef struct {
    double start, median, q5, q95;
} tsr_map_spread;

/* A plane perpendicular to an axis, through the middle of the model. */
typedef struct {
    int axis;              /* 0 to 2 */
    double at_ang;         /* position on the axis, Angstrom */
    int n[2];              /* pixels along the two other axes, in the order x,
                              y, z */
    double first[2], step; /* Angstrom: lower edges, size of a pixel */
    float *map;            /* [n[1]][n[0]]; NaN: not known */
    float *model, *start;  /* densities of the draws' mean and of the start, in
                              the layout of `map` */
} tsr_map_slice;

/* Correlations, slices and shell correlations of a run with a map. */
typedef struct {
    tsr_pool pool; /* owns all arrays */
    double resolution_ang, sigma_over_r, mask_ang;
    int n_draw;               /* draws analysed */
    tsr_map_spread box, mask; /* over all voxels; over voxels within mask_ang of
                                 an atom */
    int n_residue;            /* residues with atoms, as in the file */
    tsr_map_spread *residue;  /* [n_residue] over voxels within mask_ang of the
                                 residue, with the density of the whole model */
    /* Correlations [1 + n_draw][2 + n_residue]: the start, then the draws;
     * columns box, mask, residues. */
    double *timeline;
    tsr_map_slice slice[3];
    double level, start_level; /* contour levels at which the draws' mean
                                  density, and the density of the start, enclose
                                  the model's volume */
    tsr_fsc mean, start;       /* shell correlation of the map with the draws'
                                  mean, and with the start */
    tsr_fsc halves;            /* shell correlation of the half-maps; n 0: the
                                  entry has no half-maps */
} tsr_map_view;

/* Compares the models of a run with the map of an entry. If the draws are many,
 * analyses every k-th draw; k follows from the cost of a draw. options: of the
 * entry, which must be a map. sigma_over_r: width of the blur over the
 * resolution. Reads map, mask and half-maps from their files. Errors: those of
 * tsr_map_source_read; TSR_E_NOMEM. */
tsr_status tsr_map_view_make(const tsr_term_options *options,
                             const tsr_map_models *models, double sigma_over_r,
                             tsr_map_view *out, tsr_err *err);
void tsr_map_view_clear(tsr_map_view *view);

/* ---- parts ----
 *
 * Parts of a model whose agreement with a map is reported one by one: residues,
 * elements of secondary structure, chains, or selections of the user. */

/* Ways to divide a model. */
typedef enum {
    TSR_BY_RESIDUE,
    TSR_BY_STRUCTURE, /* helices, strands, and the residues between them */
    TSR_BY_CHAIN
} tsr_component_kind;

/* A part of a model. */
typedef struct {
    char name[48]; /* "A:17 GLY", "helix A:12-24", "A" */
    int n;
    int *atom; /* [n] indices of the atoms, ascending */
} tsr_component;

/* All parts of a model. */
typedef struct {
    tsr_pool pool; /* owns all memory; the caller clears it, also after an
                      error */
    int n;
    tsr_component *component; /* [n] in order of the file */
} tsr_components;

/* Divides a model into parts. xyz [n_atom][3], Angstrom: used for
 * TSR_BY_STRUCTURE only, where the secondary structure is determined from it.
 * Errors: TSR_E_DATA (TSR_BY_STRUCTURE: no residue has a whole backbone),
 * TSR_E_NOMEM. */
tsr_status tsr_components_make(tsr_component_kind kind, const tsr_atoms *atoms,
                               const double (*xyz)[3], tsr_components *out,
                               tsr_err *err);

/* Makes parts from n named selections, text [n] in the form NAME=RANGE,RANGE...
 * with ranges as in a configuration ("A:1-29", "B"). Errors: TSR_E_USAGE,
 * TSR_E_NOMEM. */
tsr_status tsr_components_select(int n, const char *const *text,
                                 const tsr_atoms *atoms, tsr_components *out,
                                 tsr_err *err);

#endif

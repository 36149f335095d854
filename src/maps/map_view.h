/* What a report shows of a map beside the draws of a run, in numbers: slices,
 * correlations, shell correlations. All atoms count here, not bodies. */
#ifndef TSR_MAPS_MAP_VIEW_H
#define TSR_MAPS_MAP_VIEW_H

#include "core/log.h"
#include "likelihood/term.h"
#include "maps/correlation.h"
#include "molecule/structure.h"

/* The conformations that are shown. Of an ensemble the states of a draw follow
 * each other, and their densities add up by their weights. */
typedef struct {
    const tsr_atoms *atoms;   /* names and elements */
    const double (*start)[3]; /* [n_atom] where the run began */
    int n;                    /* conformations */
    const double (*xyz)[3];   /* [n][n_atom] */
    const int *draw;          /* [n] which draw each is of, ascending */
    const double *weight;     /* [n] in its draw */
} tsr_map_view_models;

/* The start's, and median and middle 90 % of the draws. NaN: not defined. */
typedef struct {
    double start, median, q5, q95;
} tsr_map_spread;

/* A plane across an axis, through the middle of the model. */
typedef struct {
    int axis;              /* 0 to 2 */
    double at_ang;         /* where it lies on the axis */
    int n[2];              /* pixels along the two others, in order */
    double first[2], step; /* Angstrom: lowest edges, side of a pixel */
    float *map;            /* [n[1]][n[0]]; NaN: not known */
    float *model, *start;  /* densities of the mean of the draws, of the start
                              on the map's scale; as map */
} tsr_map_slice;

typedef struct {
    double resolution_ang, sigma_over_r, mask_ang;
    int n_draw;               /* that were looked at */
    tsr_map_spread box, mask; /* all voxels; those near an atom */
    int n_residue;            /* those that have atoms, as in the file */
    tsr_map_spread *residue;  /* [n_residue] voxels near it, all density */
    /* What these are of, [1 + n_draw][2 + n_residue]: the start's and then the
     * draws'; box, mask, residues. */
    double *timeline;
    tsr_map_slice slice[3];
    double level, start_level; /* contours that enclose the model's volume */
    tsr_fsc mean, start;       /* map and model: mean of the draws; the start */
    tsr_fsc_halves halves;     /* of half-maps; plain.n 0: there are none */
} tsr_map_view;

/* Of an entry of a kind that has maps, at a width of the blur over the
 * resolution. Map, mask and half-maps are read again. Errors: those of reading
 * them; TSR_E_NOMEM; TSR_E_DATA (no atoms of known elements). */
tsr_status tsr_map_view_make(const tsr_term_options *options,
                             const tsr_map_view_models *models,
                             double sigma_over_r, tsr_map_view *out,
                             tsr_err *err);
void tsr_map_view_clear(tsr_map_view *view);

#endif

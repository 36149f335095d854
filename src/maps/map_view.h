/* What a report shows of a map beside the draws of a run, in numbers: slices,
 * correlations, shell correlations. All atoms count here, not bodies. */
#ifndef TSR_MAPS_MAP_VIEW_H
#define TSR_MAPS_MAP_VIEW_H

#include "core/log.h"
#include "core/status.h"
#include "likelihood/term.h"
#include "maps/density.h"
#include "maps/fourier.h"
#include "molecule/structure.h"

/* Models of a file, or the conformations of a run. Of an ensemble the states of
 * a draw follow each other, and their densities add up by their weights. */
typedef struct {
    const char *path; /* as given, borrowed */
    tsr_atoms *atoms; /* names and elements; coordinates of the first model */
    unsigned char *z; /* [n_atom] elements */
    int n;            /* models */
    double (*xyz)[3]; /* [n][n_atom] Angstrom */
    long *draw;       /* [n] of a run: number of the draw; of a trajectory: of
                         the frame; NULL: of a file */
    int *chain;       /* [n] of a run: its chain; else NULL */
    /* Of a run alone; else NULL: */
    int *of_draw;       /* [n] states of one draw have one number, from 0,
                           ascending */
    double *weight;     /* [n] of the state in its draw */
    double (*start)[3]; /* [n_atom] where the run began */
} tsr_map_models;

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
    tsr_pool pool; /* of all arrays */
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
                             const tsr_map_models *models, double sigma_over_r,
                             tsr_map_view *out, tsr_err *err);
void tsr_map_view_clear(tsr_map_view *view);

/* ---- parts ----
 *
 * The parts of a model whose agreement with a map is looked at one by one:
 * residues, elements of secondary structure, chains, or what a user names. */

typedef enum {
    TSR_BY_RESIDUE,
    TSR_BY_STRUCTURE, /* helices, strands, and what is between them */
    TSR_BY_CHAIN
} tsr_component_kind;

typedef struct {
    char name[48]; /* "A:17 GLY", "helix A:12-24", "A" */
    int n;
    int *atom; /* [n] ascending */
} tsr_component;

typedef struct {
    tsr_pool pool; /* of all; the caller clears it, also after an error */
    int n;
    tsr_component *component; /* [n] in order of the file */
} tsr_components;

/* Of atoms at the coordinates xyz [n_atom][3], which decide the secondary
 * structure. Errors: TSR_E_DATA (no backbone to find secondary structure in),
 * TSR_E_NOMEM. */
tsr_status tsr_components_make(tsr_component_kind kind, const tsr_atoms *atoms,
                               const double (*xyz)[3], tsr_components *out,
                               tsr_err *err);

/* Named selections, NAME=RANGE,RANGE... with ranges as in a configuration
 * ("A:1-29", "B"). Errors: TSR_E_USAGE, TSR_E_NOMEM. */
tsr_status tsr_components_select(int n, const char *const *text,
                                 const tsr_atoms *atoms, tsr_components *out,
                                 tsr_err *err);

#endif

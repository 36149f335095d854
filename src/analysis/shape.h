/* What the drawn conformations have in common, and where they differ: distances
 * between residues, mobility, P(r). All of CA. */
#ifndef TSR_ANALYSIS_SHAPE_H
#define TSR_ANALYSIS_SHAPE_H

#include "analysis/frames.h"
#include "core/status.h"

enum {
    TSR_MOST_ROWS = 72,     /* residues of a map, or of the timeline */
    TSR_MOST_COLUMNS = 180, /* draws of the timeline */
    TSR_N_PAIR_BIN = 60
};

typedef struct {
    int n_frame; /* of the run */
    int n;       /* that were looked at, of evenly spread draws */
    int *at;     /* [n] their numbers */
    int n_residue;
    double *rmsf; /* [n_residue] Angstrom, about the mean (superposed) */
    /* residues evenly chosen for maps */
    int n_row;
    int *row;            /* [n_row] residue numbers from 0 */
    double *distance;    /* [n_row][n_row] mean, Angstrom */
    double *distance_sd; /* [n_row][n_row] */
    /* draws evenly chosen for the timeline */
    int n_column;
    int *column;    /* [n_column] numbers of frames */
    double *rg;     /* [n_column] of CA */
    double *change; /* [n_column][n_row] distance from the start, superposed */
    double *contacts; /* [n_column][n_row] CA within 10 Angstrom, 3 or more
                         residues away */
    double *mobility; /* [n_column][n_row] root mean square change of distances
                         to 6 residues on either side, since the column before
                         (the first: since the start) */
    double (*before)[3]; /* [n_residue] of the last column, for it */
    /* P(r): share of pairs per Angstrom; of an ensemble the mean over its
     * states */
    double pair_width; /* of a bin, Angstrom */
    double pair_mean[TSR_N_PAIR_BIN], pair_low[TSR_N_PAIR_BIN],
        pair_high[TSR_N_PAIR_BIN]; /* mean, 5 and 95 % of the draws */
} tsr_shape;

/* Looks at `most` frames at most, and at no more than 200 MB hold. weight [all
 * frames]: what a conformation counts in P(r), as of
 * tsr_frames_weights; NULL: all alike, as in maps and mobility. Errors: those
 * of tsr_frames_read. */
tsr_status tsr_shape_make(tsr_frames *frames, const double *weight, int most,
                          tsr_shape **out, tsr_err *err);
void tsr_shape_free(tsr_shape *shape);

#endif

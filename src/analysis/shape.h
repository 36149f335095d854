/* What the drawn conformations have in common, and where they differ: distances
 * between residues, mobility, groups. All of CA. */
#ifndef TSR_ANALYSIS_SHAPE_H
#define TSR_ANALYSIS_SHAPE_H

#include "analysis/frames.h"
#include "core/status.h"

/* Groups of points: k-means, and how many groups there are. */

enum { TSR_MOST_CLUSTERS = 8 };

typedef struct {
    int k;                            /* groups; 1: one cloud */
    int *of;                          /* [n] group of each point, by size */
    int size[TSR_MOST_CLUSTERS];      /* largest first */
    int nearest[TSR_MOST_CLUSTERS];   /* the point nearest to the centre */
    double spread[TSR_MOST_CLUSTERS]; /* root mean square distance from it */
    /* Mean silhouette (Rousseeuw 1987), of up to 400 points: 1 for groups far
     * apart, some 0.6 for a cloud without gaps cut in two; NaN for k = 1. */
    double silhouette;
} tsr_clusters;

/* Of n points x [n][dim]: the k up to TSR_MOST_CLUSTERS with the largest
 * silhouette, where it is above 0.7, else 1. The same points give the same
 * groups. Cost and memory: linear in n. Source: Lloyd 1982 from the starts of
 * Arthur & Vassilvitskii 2007. Errors: TSR_E_NOMEM. */
tsr_status tsr_clusters_make(int n, int dim, const float *x, tsr_clusters *out,
                             tsr_err *err);
void tsr_clusters_clear(tsr_clusters *clusters);

/* Groups of n things by average linkage: joins the two groups whose members are
 * nearest on average, while that is below the threshold. distance [n][n], used
 * up. group [n] out, from 0 by size, of equal ones the one with the first
 * member first. Returns how many; 0: out of memory. Cost: some n^2. */
int tsr_average_linkage(int n, double *distance, double threshold, int *group);

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
    /* Of the n frames, by the distances between up to 24 residues; spread is
     * the root mean square difference of these distances, Angstrom. */
    tsr_clusters clusters;
    double share[TSR_MOST_CLUSTERS]; /* of each group; the heaviest first */
    /* share of each group in two halves of the chains, first and rest, and how
     * far they overlap: the sum of the smaller ones; NaN: one chain */
    double half[2][TSR_MOST_CLUSTERS];
    double overlap;
} tsr_shape;

/* Looks at `most` frames at most, and at no more than 200 MB hold. weight [all
 * frames]: what a conformation counts in shares and P(r), as of
 * tsr_frames_weights; NULL: all alike, as in maps and mobility. Errors: those
 * of tsr_frames_read. */
tsr_status tsr_shape_make(tsr_frames *frames, const double *weight, int most,
                          tsr_shape **out, tsr_err *err);
void tsr_shape_free(tsr_shape *shape);

#endif

/* Groups of points: k-means, and how many groups there are. */
#ifndef TSR_ANALYSIS_CLUSTERS_H
#define TSR_ANALYSIS_CLUSTERS_H

#include "core/status.h"

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

#endif

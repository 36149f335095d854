#include "analysis/shape_shares.h"

#include <math.h>

static void swap(double *a, double *b)
{
    const double was = *a;
    *a = *b;
    *b = was;
}

static void swap_whole(int *a, int *b)
{
    const int was = *a;
    *a = *b;
    *b = was;
}

/* Groups a and b change numbers, but for the conformations'. */
static void exchange(tsr_shape *s, int a, int b, int *number)
{
    tsr_clusters *c = &s->clusters;
    swap_whole(&c->size[a], &c->size[b]);
    swap_whole(&c->nearest[a], &c->nearest[b]);
    swap(&c->spread[a], &c->spread[b]);
    swap(&s->share[a], &s->share[b]);
    swap(&s->half[0][a], &s->half[0][b]);
    swap(&s->half[1][a], &s->half[1][b]);
    swap_whole(&number[a], &number[b]);
}

/* The heaviest first; those of one share stay in their order. */
static void sort(tsr_shape *s)
{
    const int k = s->clusters.k;
    int was[TSR_MOST_CLUSTERS], now[TSR_MOST_CLUSTERS];
    for (int c = 0; c < k; c++)
        was[c] = c;
    for (int c = 1; c < k; c++)
        for (int d = c; d > 0 && s->share[d] > s->share[d - 1]; d--)
            exchange(s, d, d - 1, was);
    for (int c = 0; c < k; c++)
        now[was[c]] = c;
    for (int i = 0; i < s->n; i++)
        s->clusters.of[i] = now[s->clusters.of[i]];
}

void tsr_shape_find_shares(tsr_shape *shape, const tsr_drawn_frame *frame,
                           const double *weight)
{
    tsr_shape *s = shape;
    int last = 0;
    double sum[2] = {0.0, 0.0};
    for (int i = 0; i < s->n; i++)
        last = frame[s->at[i]].chain > last ? frame[s->at[i]].chain : last;
    s->overlap = (double)NAN;
    for (int i = 0; i < s->n; i++) {
        const int half = 2 * frame[s->at[i]].chain > last;
        s->half[half][s->clusters.of[i]] += weight[i];
        sum[half] += weight[i];
    }
    for (int c = 0; c < s->clusters.k; c++)
        s->share[c] = (s->half[0][c] + s->half[1][c]) / (sum[0] + sum[1]);
    sort(s);
    if (!(sum[0] > 0.0) || !(sum[1] > 0.0))
        return;
    s->overlap = 0.0;
    for (int c = 0; c < s->clusters.k; c++) {
        s->half[0][c] /= sum[0];
        s->half[1][c] /= sum[1];
        s->overlap += fmin(s->half[0][c], s->half[1][c]);
    }
}

/* Largest distances by exact bounds from a centre, which leave few pairs to be
 * looked at. */
#include "molecule/extent.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double radius;
    int index;
} far_point;

static int farther_first(const void *a, const void *b)
{
    const far_point *p = a, *q = b;
    if (p->radius != q->radius)
        return p->radius < q->radius ? 1 : -1;
    return p->index - q->index;
}

/* |ab| <= |ao| + |bo| for any centre o: with the points sorted by their
 * distance from the centroid, a row ends as soon as that bound cannot beat
 * the best pair so far. For a compact molecule few points are looked at. */
double tsr_largest_distance(int n, const double (*xyz)[3])
{
    double best2 = 0.0;
    double centre[3] = {0.0, 0.0, 0.0};
    if (n < 2)
        return 0.0;
    far_point *point = malloc((size_t)n * sizeof *point);
    if (point == NULL) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++)
                best2 = fmax(best2, tsr_vec3_distance2(xyz[i], xyz[j]));
        return sqrt(best2);
    }
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            centre[c] += xyz[i][c] / n;
    for (int i = 0; i < n; i++) {
        point[i].index = i;
        point[i].radius = tsr_vec3_distance(xyz[i], centre);
    }
    qsort(point, (size_t)n, sizeof *point, farther_first);
    for (int i = 0; i < n; i++) {
        /* the margin covers the rounding of the radii */
        double reach = sqrt(best2) * (1.0 - 1e-12);
        if (2.0 * point[i].radius < reach)
            break;
        for (int j = i + 1; j < n; j++) {
            if (point[i].radius + point[j].radius < reach)
                break;
            double d2 =
                tsr_vec3_distance2(xyz[point[i].index], xyz[point[j].index]);
            if (d2 > best2) {
                best2 = d2;
                reach = sqrt(best2) * (1.0 - 1e-12);
            }
        }
    }
    free(point);
    return sqrt(best2);
}

/* Only points that lie outside of limit - (the largest radius) can be an end of
 * such a pair. The margin covers the rounding of radii. */
int tsr_is_distance_beyond(int n, const double (*xyz)[3], double limit)
{
    enum { MOST = 256 };
    double lo[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    double hi[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    double centre[3], most2 = 0.0, reach = limit * (1.0 - 1e-12);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            lo[c] = xyz[i][c] < lo[c] ? xyz[i][c] : lo[c];
            hi[c] = xyz[i][c] > hi[c] ? xyz[i][c] : hi[c];
        }
    for (int c = 0; c < 3; c++)
        centre[c] = 0.5 * (lo[c] + hi[c]);
    for (int i = 0; i < n; i++) {
        double d2 = tsr_vec3_distance2(xyz[i], centre);
        most2 = d2 > most2 ? d2 : most2;
    }
    double inner = reach - sqrt(most2);
    if (sqrt(most2) <= inner)
        return 0;
    double inner2 = inner > 0.0 ? inner * inner : 0.0;
    int outer[MOST], n_outer = 0;
    for (int i = 0; i < n; i++) {
        if (tsr_vec3_distance2(xyz[i], centre) < inner2)
            continue;
        if (n_outer == MOST)
            return tsr_largest_distance(n, xyz) > limit;
        for (int k = 0; k < n_outer; k++)
            if (tsr_vec3_distance(xyz[i], xyz[outer[k]]) > limit)
                return 1;
        outer[n_outer++] = i;
    }
    return 0;
}

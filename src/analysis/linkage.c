/* Average linkage: the two groups that are nearest on average become one. The
 * distances of the new group are the means of theirs, by size (Lance & Williams
 * 1967), and each group remembers its nearest, so that a step looks at n of
 * them and not at n^2. */
#include "analysis/arrangements.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    int n;
    double *distance; /* [n][n] */
    int *size;        /* [n] of the group that has that first member; 0: gone */
    int *nearest;     /* [n] */
    int *group;       /* [n] first member of the group of each */
} job;

static double *at(const job *j, int a, int b)
{
    return j->distance + (size_t)a * (size_t)j->n + (size_t)b;
}

static void find_nearest(job *j, int a)
{
    double least = HUGE_VAL;
    j->nearest[a] = -1;
    for (int b = 0; b < j->n; b++)
        if (b != a && j->size[b] > 0 && *at(j, a, b) < least) {
            least = *at(j, a, b);
            j->nearest[a] = b;
        }
}

/* The group that is nearest to another; -1: there is only one. */
static int find_pair(const job *j)
{
    int best = -1;
    for (int a = 0; a < j->n; a++)
        if (j->size[a] > 0 && j->nearest[a] >= 0 &&
            (best < 0 ||
             *at(j, a, j->nearest[a]) < *at(j, best, j->nearest[best])))
            best = a;
    return best;
}

static void join(job *j, int a, int b)
{
    const double wa = j->size[a], wb = j->size[b];
    for (int c = 0; c < j->n; c++)
        if (c != a && c != b && j->size[c] > 0)
            *at(j, a, c) = *at(j, c, a) =
                (wa * *at(j, a, c) + wb * *at(j, b, c)) / (wa + wb);
    j->size[a] += j->size[b];
    j->size[b] = 0;
    for (int c = 0; c < j->n; c++)
        if (j->group[c] == b)
            j->group[c] = a;
    find_nearest(j, a);
    for (int c = 0; c < j->n; c++) {
        if (j->size[c] == 0 || c == a)
            continue;
        if (j->nearest[c] == a || j->nearest[c] == b)
            find_nearest(j, c);
        else if (*at(j, c, a) < *at(j, c, j->nearest[c]))
            j->nearest[c] = a;
    }
}

/* Numbers of groups by size; returns how many. */
static int number(const job *j, int *group)
{
    int n_group = 0;
    for (int a = 0; a < j->n; a++) {
        int rank = 0;
        n_group += j->size[a] > 0;
        for (int b = 0; b < j->n && j->size[a] > 0; b++)
            rank +=
                j->size[b] > j->size[a] || (j->size[b] == j->size[a] && b < a);
        j->nearest[a] = rank;
    }
    for (int c = 0; c < j->n; c++)
        group[c] = j->nearest[j->group[c]];
    return n_group;
}

int tsr_average_linkage(int n, double *distance, double threshold, int *group)
{
    int *room = malloc(3 * ((size_t)n + 1) * sizeof *room), n_group = 0;
    job j = {n, distance, room, room + n, room + 2 * (size_t)n};
    if (room == NULL)
        return 0;
    for (int a = 0; a < n; a++) {
        j.size[a] = 1;
        j.group[a] = a;
    }
    for (int a = 0; a < n; a++)
        find_nearest(&j, a);
    for (int a;
         (a = find_pair(&j)) >= 0 && *at(&j, a, j.nearest[a]) < threshold;)
        join(&j, a < j.nearest[a] ? a : j.nearest[a],
             a < j.nearest[a] ? j.nearest[a] : a);
    n_group = number(&j, group);
    free(room);
    return n_group;
}

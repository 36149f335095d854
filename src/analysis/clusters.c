/* Groups of conformations in two ways: k-means (Lloyd's rounds from starts that
 * lie far apart, Arthur & Vassilvitskii 2007), where the number of groups is
 * judged by the silhouette, and average linkage, where a threshold gives it.
 * Both always give the same groups for the same points. */
#include "analysis/shape.h"

#include "core/random.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESTARTS = 6, MOST_ROUNDS = 60, MOST_JUDGED = 400 };
static const double clear_gap = 0.7;

typedef struct {
    int n, dim;
    const float *x;  /* [n][dim] */
    double *centre;  /* [TSR_MOST_CLUSTERS][dim] */
    double *sum;     /* [TSR_MOST_CLUSTERS][dim] */
    double *squared; /* [n] distance to the nearest centre */
    int *of;         /* [n] */
} work;

/* Lanes of sums side by side: a single sum waits for itself. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef float four_floats
    __attribute__((vector_size(16), aligned(4), may_alias));

static double squared_distance(const work *w, int i, const double *centre)
{
    const float *x = w->x + (size_t)i * (size_t)w->dim;
    four even = {0.0}, odd = {0.0};
    double sum = 0.0;
    int d = 0;
    for (; d + 8 <= w->dim; d += 8) {
        const four a =
            __builtin_convertvector(*(const four_floats *)(x + d), four) -
            *(const four *)(centre + d);
        const four b =
            __builtin_convertvector(*(const four_floats *)(x + d + 4), four) -
            *(const four *)(centre + d + 4);
        even += a * a;
        odd += b * b;
    }
    for (; d < w->dim; d++) {
        const double off = (double)x[d] - centre[d];
        sum += off * off;
    }
    even += odd;
    return sum + even[0] + even[1] + even[2] + even[3];
}

static double *centre_of(const work *w, int c)
{
    return w->centre + (size_t)c * (size_t)w->dim;
}

static void put_centre(work *w, int c, int i)
{
    for (int d = 0; d < w->dim; d++)
        centre_of(w, c)[d] =
            (double)w->x[(size_t)i * (size_t)w->dim + (size_t)d];
}

/* Points far from all centres so far are likelier to be the next. */
static void choose_starts(work *w, int k, gsl_rng *rng)
{
    put_centre(w, 0, (int)gsl_rng_uniform_int(rng, (unsigned long)w->n));
    for (int i = 0; i < w->n; i++)
        w->squared[i] = DBL_MAX;
    for (int c = 1; c < k; c++) {
        double total = 0.0;
        int i = 0;
        for (i = 0; i < w->n; i++) {
            w->squared[i] = fmin(w->squared[i],
                                 squared_distance(w, i, centre_of(w, c - 1)));
            total += w->squared[i];
        }
        double left = total * gsl_rng_uniform(rng);
        for (i = 0; i + 1 < w->n && left > w->squared[i]; i++)
            left -= w->squared[i];
        put_centre(w, c, i);
    }
}

/* To the nearest centre; the sum of squares. *n_moved: points that changed. */
static double assign(work *w, int k, int *n_moved)
{
    double total = 0.0;
    *n_moved = 0;
    for (int i = 0; i < w->n; i++) {
        int best = 0;
        double least = DBL_MAX;
        for (int c = 0; c < k; c++) {
            const double s = squared_distance(w, i, centre_of(w, c));
            if (s < least) {
                least = s;
                best = c;
            }
        }
        *n_moved += w->of[i] != best;
        w->of[i] = best;
        total += least;
    }
    return total;
}

static void move_centres(work *w, int k)
{
    int count[TSR_MOST_CLUSTERS] = {0};
    memset(w->sum, 0, (size_t)k * (size_t)w->dim * sizeof *w->sum);
    for (int i = 0; i < w->n; i++) {
        const float *x = w->x + (size_t)i * (size_t)w->dim;
        double *sum = w->sum + (size_t)w->of[i] * (size_t)w->dim;
        count[w->of[i]]++;
        for (int d = 0; d < w->dim; d++)
            sum[d] += (double)x[d];
    }
    for (int c = 0; c < k; c++)
        for (int d = 0; d < w->dim && count[c] > 0; d++)
            centre_of(w, c)[d] =
                w->sum[(size_t)c * (size_t)w->dim + (size_t)d] / count[c];
}

/* The best of some starts, into best_of [n]. */
static void group(work *w, int k, gsl_rng *rng, int *best_of)
{
    double least = DBL_MAX;
    for (int start = 0; start < (k > 1 ? RESTARTS : 1); start++) {
        int n_moved = 1;
        double total = 0.0;
        choose_starts(w, k, rng);
        memset(w->of, -1, (size_t)w->n * sizeof *w->of);
        for (int round = 0; round < MOST_ROUNDS && n_moved > 0; round++) {
            total = assign(w, k, &n_moved);
            move_centres(w, k);
        }
        if (total < least) {
            least = total;
            memcpy(best_of, w->of, (size_t)w->n * sizeof *best_of);
        }
    }
    memcpy(w->of, best_of, (size_t)w->n * sizeof *w->of);
    move_centres(w, k);
}

static double distance(const work *w, int a, int b)
{
    const float *x = w->x + (size_t)a * (size_t)w->dim;
    const float *y = w->x + (size_t)b * (size_t)w->dim;
    double sum = 0.0;
    for (int d = 0; d < w->dim; d++) {
        const double off = (double)x[d] - (double)y[d];
        sum += off * off;
    }
    return sqrt(sum);
}

/* Of points evenly chosen: how much nearer the own group is than the next. */
static double silhouette(const work *w, int k)
{
    const int m = w->n < MOST_JUDGED ? w->n : MOST_JUDGED;
    double total = 0.0;
    for (int a = 0; a < m; a++) {
        const int i = (int)((long)a * w->n / m);
        double sum[TSR_MOST_CLUSTERS] = {0.0}, other = DBL_MAX;
        int count[TSR_MOST_CLUSTERS] = {0};
        for (int b = 0; b < m; b++) {
            const int j = (int)((long)b * w->n / m);
            if (j == i)
                continue;
            sum[w->of[j]] += distance(w, i, j);
            count[w->of[j]]++;
        }
        const int own = w->of[i];
        for (int c = 0; c < k; c++)
            if (c != own && count[c] > 0)
                other = fmin(other, sum[c] / count[c]);
        if (count[own] == 0 || other == DBL_MAX)
            continue; /* alone: counts 0 */
        const double mine = sum[own] / count[own];
        const double larger = fmax(mine, other);
        total += larger > 0.0 ? (other - mine) / larger : 0.0;
    }
    return total / m;
}

/* Sizes, the largest first, and what is nearest to the centres. */
static void describe(work *w, int k, tsr_clusters *out)
{
    int size[TSR_MOST_CLUSTERS] = {0}, rank[TSR_MOST_CLUSTERS];
    double least[TSR_MOST_CLUSTERS];
    for (int i = 0; i < w->n; i++)
        size[w->of[i]]++;
    for (int c = 0; c < k; c++) {
        rank[c] = 0;
        for (int o = 0; o < k; o++)
            rank[c] += size[o] > size[c] || (size[o] == size[c] && o < c);
        least[rank[c]] = DBL_MAX;
        out->size[rank[c]] = size[c];
        out->spread[rank[c]] = 0.0;
    }
    for (int i = 0; i < w->n; i++) {
        const int c = w->of[i], r = rank[c];
        const double s = squared_distance(w, i, centre_of(w, c));
        out->of[i] = r;
        out->spread[r] += s / size[c];
        if (s < least[r]) {
            least[r] = s;
            out->nearest[r] = i;
        }
    }
    for (int r = 0; r < k; r++)
        out->spread[r] = sqrt(out->spread[r]);
    out->k = k;
}

void tsr_clusters_clear(tsr_clusters *clusters)
{
    free(clusters->of);
    *clusters = (tsr_clusters){.k = 0};
}

tsr_status tsr_clusters_make(int n, int dim, const float *x, tsr_clusters *out,
                             tsr_err *err)
{
    const size_t room = (size_t)TSR_MOST_CLUSTERS * (size_t)dim;
    work w = {.n = n, .dim = dim, .x = x};
    int *best_of = malloc((size_t)n * sizeof *best_of);
    gsl_rng *rng = tsr_rng_new(1, 0);
    tsr_status status = TSR_OK;
    *out = (tsr_clusters){.silhouette = (double)NAN};
    w.centre = calloc(room, sizeof *w.centre);
    w.sum = calloc(room, sizeof *w.sum);
    w.squared = malloc((size_t)n * sizeof *w.squared);
    w.of = malloc((size_t)n * sizeof *w.of);
    out->of = malloc((size_t)n * sizeof *out->of);
    if (best_of == NULL || rng == NULL || w.centre == NULL || w.sum == NULL ||
        w.squared == NULL || w.of == NULL || out->of == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory to group %d draws", n);
        goto done;
    }
    group(&w, 1, rng, best_of);
    describe(&w, 1, out);
    double best = clear_gap;
    for (int k = 2; k <= TSR_MOST_CLUSTERS && 4 * k <= n; k++) {
        group(&w, k, rng, best_of);
        const double s = silhouette(&w, k);
        if (s > best) {
            best = s;
            describe(&w, k, out);
            out->silhouette = s;
        }
    }
done:
    if (rng != NULL)
        gsl_rng_free(rng);
    free(best_of);
    free(w.centre);
    free(w.sum);
    free(w.squared);
    free(w.of);
    if (status != TSR_OK)
        tsr_clusters_clear(out);
    return status;
}

/* ---- average linkage ---- */

/* The two groups that are nearest on average become one. The distances of the
 * new group are the means of theirs, by size (Lance & Williams 1967), and each
 * group remembers its nearest, so that a step looks at n of them and not at
 * n^2. */
typedef struct {
    int n;
    double *distance; /* [n][n] */
    int *size;        /* [n] of the group that has that first member; 0: gone */
    int *nearest;     /* [n] */
    int *group;       /* [n] first member of the group of each */
} linkage_job;

static double *between(const linkage_job *j, int a, int b)
{
    return j->distance + (size_t)a * (size_t)j->n + (size_t)b;
}

static void nearest_group(linkage_job *j, int a)
{
    double least = HUGE_VAL;
    j->nearest[a] = -1;
    for (int b = 0; b < j->n; b++)
        if (b != a && j->size[b] > 0 && *between(j, a, b) < least) {
            least = *between(j, a, b);
            j->nearest[a] = b;
        }
}

/* The group that is nearest to another; -1: there is only one. */
static int find_pair(const linkage_job *j)
{
    int best = -1;
    for (int a = 0; a < j->n; a++)
        if (j->size[a] > 0 && j->nearest[a] >= 0 &&
            (best < 0 || *between(j, a, j->nearest[a]) <
                             *between(j, best, j->nearest[best])))
            best = a;
    return best;
}

static void join_groups(linkage_job *j, int a, int b)
{
    const double wa = j->size[a], wb = j->size[b];
    for (int c = 0; c < j->n; c++)
        if (c != a && c != b && j->size[c] > 0)
            *between(j, a, c) = *between(j, c, a) =
                (wa * *between(j, a, c) + wb * *between(j, b, c)) / (wa + wb);
    j->size[a] += j->size[b];
    j->size[b] = 0;
    for (int c = 0; c < j->n; c++)
        if (j->group[c] == b)
            j->group[c] = a;
    nearest_group(j, a);
    for (int c = 0; c < j->n; c++) {
        if (j->size[c] == 0 || c == a)
            continue;
        if (j->nearest[c] == a || j->nearest[c] == b)
            nearest_group(j, c);
        else if (*between(j, c, a) < *between(j, c, j->nearest[c]))
            j->nearest[c] = a;
    }
}

/* Numbers of groups by size; returns how many. */
static int number_groups(const linkage_job *j, int *group)
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
    linkage_job j = {n, distance, room, room + n, room + 2 * (size_t)n};
    if (room == NULL)
        return 0;
    for (int a = 0; a < n; a++) {
        j.size[a] = 1;
        j.group[a] = a;
    }
    for (int a = 0; a < n; a++)
        nearest_group(&j, a);
    for (int a;
         (a = find_pair(&j)) >= 0 && *between(&j, a, j.nearest[a]) < threshold;)
        join_groups(&j, a < j.nearest[a] ? a : j.nearest[a],
                    a < j.nearest[a] ? j.nearest[a] : a);
    n_group = number_groups(&j, group);
    free(room);
    return n_group;
}

/* Two clouds of beads, one brought onto the other. Their axes of inertia say
 * how, but for turns by half a circle about them; from each of these four
 * places the cloud goes on to where each bead is nearest to its nearest (Besl &
 * McKay 1992, IEEE Trans. PAMI 14, 239). */
#include "analysis/arrangements.h"

#include "analysis/mean_shape.h"

#include <gsl/gsl_eigen.h>

#include <math.h>
#include <stdlib.h>

enum { LEAST = 4, ROUNDS = 12 };

typedef struct {
    int n, m;
    const double (*a)[3];  /* [n] */
    double (*b)[3];        /* [m] moves */
    double (*home)[3];     /* [m] b in its axes of inertia */
    double (*fixed)[3];    /* [n + m] pairs of nearest beads */
    double (*moving)[3];   /* [n + m] */
    double fine_a, fine_b; /* mean square distance to the nearest bead */
} job;

static int nearest(int n, const double (*x)[3], const double at[3], int but,
                   double *squared)
{
    int best = -1;
    *squared = HUGE_VAL;
    for (int i = 0; i < n; i++) {
        const double d = tsr_vec3_distance2(x[i], at);
        if (i != but && d < *squared) {
            *squared = d;
            best = i;
        }
    }
    return best;
}

static double fineness(int n, const double (*x)[3])
{
    double sum = 0.0, squared;
    for (int i = 0; i < n; i++) {
        (void)nearest(n, x, x[i], i, &squared);
        sum += squared / n;
    }
    return sum;
}

/* The square of the discrepancy where b is, and the pairs. */
static double look(job *j)
{
    double of_a = 0.0, of_b = 0.0, squared;
    const double(*b)[3] = (const double(*)[3])j->b;
    for (int i = 0; i < j->n; i++) {
        const int k = nearest(j->m, b, j->a[i], -1, &squared);
        of_a += squared / j->n;
        tsr_vec3_copy(j->fixed[i], j->a[i]);
        tsr_vec3_copy(j->moving[i], b[k]);
    }
    for (int i = 0; i < j->m; i++) {
        const int k = nearest(j->n, j->a, b[i], -1, &squared);
        of_b += squared / j->m;
        tsr_vec3_copy(j->fixed[j->n + i], j->a[k]);
        tsr_vec3_copy(j->moving[j->n + i], b[i]);
    }
    return 0.5 * (of_a / j->fine_b + of_b / j->fine_a);
}

static double settle(job *j)
{
    double now = look(j), before = HUGE_VAL;
    for (int round = 0; round < ROUNDS && now < 0.999 * before; round++) {
        tsr_motion motion;
        tsr_superpose(j->n + j->m, (const double(*)[3])j->fixed,
                      (const double(*)[3])j->moving, &motion);
        for (int i = 0; i < j->m; i++)
            tsr_motion_apply(&motion, j->b[i]);
        before = now;
        now = look(j);
    }
    return fmin(now, before);
}

/* Into the axes of inertia, the longest first, which form a right-handed frame.
 * 0: out of memory. */
static int turn_to_axes(int n, double (*x)[3])
{
    double centre[3] = {0.0}, square[9] = {0.0}, axis[3][3];
    gsl_vector *value = gsl_vector_alloc(3);
    gsl_matrix *vector = gsl_matrix_alloc(3, 3);
    gsl_eigen_symmv_workspace *w = gsl_eigen_symmv_alloc(3);
    const int is_good = value != NULL && vector != NULL && w != NULL;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            centre[d] += x[i][d] / n;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 9; d++)
            square[d] +=
                (x[i][d / 3] - centre[d / 3]) * (x[i][d % 3] - centre[d % 3]);
    if (is_good) {
        gsl_matrix_view m = gsl_matrix_view_array(square, 3, 3);
        gsl_eigen_symmv(&m.matrix, value, vector, w);
        gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
        for (size_t d = 0; d < 6; d++)
            axis[d / 3][d % 3] = gsl_matrix_get(vector, d % 3, d / 3);
        tsr_vec3_cross(axis[2], axis[0], axis[1]);
        for (int i = 0; i < n; i++) {
            double from[3];
            tsr_vec3_sub(from, x[i], centre);
            for (int d = 0; d < 3; d++)
                x[i][d] = tsr_vec3_dot(from, axis[d]);
        }
    }
    gsl_vector_free(value);
    gsl_matrix_free(vector);
    gsl_eigen_symmv_free(w);
    return is_good;
}

/* The best of the four places where the axes of both lie on each other. */
static double compare(job *j)
{
    static const double turn[4][3] = {
        {1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
    double best = HUGE_VAL;
    j->fine_a = fineness(j->n, j->a);
    j->fine_b = fineness(j->m, (const double(*)[3])j->home);
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < j->m; i++)
            for (int d = 0; d < 3; d++)
                j->b[i][d] = turn[t][d] * j->home[i][d];
        best = fmin(best, settle(j));
    }
    return sqrt(best);
}

double tsr_discrepancy(int n, const double (*a)[3], int m, const double (*b)[3],
                       int is_mirror)
{
    double answer = (double)NAN;
    if (n < LEAST || m < LEAST)
        return answer;
    const size_t all = (size_t)(n + m);
    double(*room)[3] = calloc(3 * all + (size_t)m, sizeof *room);
    if (room == NULL)
        return answer;
    double(*own)[3] = room;
    job j = {.n = n,
             .m = m,
             .a = (const double(*)[3])own,
             .b = room + n,
             .home = room + all,
             .fixed = room + all + m,
             .moving = room + 2 * all + m};
    for (int i = 0; i < n; i++)
        tsr_vec3_copy(own[i], a[i]);
    for (int i = 0; i < m; i++) {
        tsr_vec3_copy(j.home[i], b[i]);
        if (is_mirror)
            j.home[i][0] = -j.home[i][0];
    }
    if (turn_to_axes(n, own) && turn_to_axes(m, j.home))
        answer = compare(&j);
    free(room);
    return answer;
}

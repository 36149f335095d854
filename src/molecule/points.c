/* Searches among points in space. */
#include "molecule/points.h"

#include "core/vec3.h"

#include <gsl/gsl_sort.h>
#include <math.h>

/* ---- neighbour search ----
 *
 * Points are sorted into cubic cells (counting sort) whose side is at least the
 * search radius, so that all neighbours lie in adjacent cells. For few points
 * in a large volume the cells are larger, so that their number stays
 * proportional to that of the points. */

static const double most_ang = 1e100; /* squares of coordinates stay finite */

struct tsr_cell_list {
    double low[3], size; /* corner, side of a cell */
    int n_cell[3];
    int *first;       /* [cells + 1] index into order */
    int *order;       /* [n] points by cell */
    double (*xyz)[3]; /* [n] coordinates in this order */
};

static int cell_along(const tsr_cell_list *c, int axis, double x)
{
    double at = floor((x - c->low[axis]) / c->size);
    return at < 0.0 ? 0 : at >= c->n_cell[axis] ? c->n_cell[axis] - 1 : (int)at;
}

static int cell_of(const tsr_cell_list *c, const double x[3])
{
    int i = cell_along(c, 0, x[0]), j = cell_along(c, 1, x[1]);
    return (i * c->n_cell[1] + j) * c->n_cell[2] + cell_along(c, 2, x[2]);
}

/* Chooses cells with a side of at least `radius`, at most 8 for each point and
 * 64 more. Returns their number. */
static int set_cells(tsr_cell_list *c, int n, const double (*xyz)[3],
                     double radius)
{
    double high[3];
    for (int a = 0; a < 3; a++) {
        c->low[a] = high[a] = xyz[0][a];
        for (int i = 1; i < n; i++) {
            c->low[a] = fmin(c->low[a], xyz[i][a]);
            high[a] = fmax(high[a], xyz[i][a]);
        }
    }
    double total;
    c->size = radius;
    for (;;) {
        total = 1.0;
        for (int a = 0; a < 3; a++)
            total *= floor((high[a] - c->low[a]) / c->size) + 1.0;
        if (total <= 8.0 * n + 64.0)
            break;
        c->size *= 1.3;
    }
    for (int a = 0; a < 3; a++)
        c->n_cell[a] = (int)floor((high[a] - c->low[a]) / c->size) + 1;
    return (int)total;
}

tsr_status tsr_cell_list_new(tsr_pool *pool, int n, const double (*xyz)[3],
                             double radius, tsr_cell_list **out, tsr_err *err)
{
    tsr_cell_list *c;
    *out = NULL;
    for (int i = 0; i < 3 * n; i++)
        if (!(fabs(xyz[i / 3][i % 3]) < most_ang))
            return tsr_fail(err, TSR_E_NUMERIC, "a coordinate is %g",
                            xyz[i / 3][i % 3]);
    tsr_pool_array(pool, c, 1);
    TSR_TRY(tsr_pool_check(pool, err));
    int total = set_cells(c, n, xyz, radius);
    tsr_pool_array(pool, c->first, total + 2);
    tsr_pool_array(pool, c->order, n);
    tsr_pool_array(pool, c->xyz, n);
    TSR_TRY(tsr_pool_check(pool, err));
    /* Counts are stored two positions ahead. After filling, first[] then holds
     * the start of each cell. */
    for (int i = 0; i < n; i++)
        c->first[cell_of(c, xyz[i]) + 2]++;
    for (int k = 2; k < total + 2; k++)
        c->first[k] += c->first[k - 1];
    for (int i = 0; i < n; i++) {
        int at = c->first[cell_of(c, xyz[i]) + 1]++;
        c->order[at] = i;
        tsr_vec3_copy(c->xyz[at], xyz[i]);
    }
    *out = c;
    return TSR_OK;
}

tsr_status tsr_cell_list_of_atoms(tsr_pool *pool, const tsr_atoms *atoms,
                                  double radius, tsr_cell_list **out,
                                  tsr_err *err)
{
    double(*xyz)[3];
    tsr_pool_array(pool, xyz, atoms->n_atom + 1);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < atoms->n_atom; i++)
        tsr_vec3_copy(xyz[i], atoms->atom[i].xyz);
    const tsr_status status = tsr_cell_list_new(
        pool, atoms->n_atom, (const double(*)[3])xyz, radius, out, err);
    tsr_pool_free(pool, xyz);
    return status;
}

int tsr_cell_list_within(const tsr_cell_list *c, const double x[3],
                         double radius, int max, int *index)
{
    int from[3], to[3], n = 0;
    for (int a = 0; a < 3; a++) {
        from[a] = cell_along(c, a, x[a] - radius);
        to[a] = cell_along(c, a, x[a] + radius);
    }
    for (int i = from[0]; i <= to[0]; i++)
        for (int j = from[1]; j <= to[1]; j++) {
            int row = (i * c->n_cell[1] + j) * c->n_cell[2];
            int last = c->first[row + to[2] + 1];
            for (int k = c->first[row + from[2]]; k < last; k++) {
                if (n < max) /* written without a branch, which would be hard to
                                predict */
                    index[n] = c->order[k];
                n += tsr_vec3_distance2(c->xyz[k], x) <= radius * radius;
            }
        }
    return n;
}

/* ---- largest distance ---- */

/* Uses |ab| <= |ao| + |bo| for any centre o. Points are sorted by their
 * distance from the centroid, and the inner loop ends as soon as this bound is
 * below the largest distance so far. For a compact molecule few pairs
 * remain. */
double tsr_largest_distance(int n, const double (*xyz)[3])
{
    double best2 = 0.0, centre[3] = {0.0, 0.0, 0.0}, *radius;
    size_t *order;
    tsr_pool pool = {0};
    tsr_pool_array(&pool, radius, n);
    tsr_pool_array(&pool, order, n);
    if (pool.failed) {
        tsr_pool_clear(&pool);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++)
                best2 = fmax(best2, tsr_vec3_distance2(xyz[i], xyz[j]));
        return sqrt(best2);
    }
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            centre[c] += xyz[i][c] / n;
    for (int i = 0; i < n; i++)
        radius[i] = tsr_vec3_distance(xyz[i], centre);
    gsl_sort_index(order, radius, 1, (size_t)n);
    for (int a = n - 1; a >= 0; a--) {
        const size_t i = order[a];
        /* the factor covers rounding of the radii */
        double reach = sqrt(best2) * (1.0 - 1e-12);
        if (2.0 * radius[i] < reach)
            break;
        for (int b = a - 1; b >= 0; b--) {
            const size_t j = order[b];
            if (radius[i] + radius[j] < reach)
                break;
            const double d2 = tsr_vec3_distance2(xyz[i], xyz[j]);
            if (d2 > best2) {
                best2 = d2;
                reach = sqrt(best2) * (1.0 - 1e-12);
            }
        }
    }
    tsr_pool_clear(&pool);
    return sqrt(best2);
}

/* Only points whose distance from the centre exceeds the limit minus the
 * largest distance from the centre can belong to a pair beyond the limit. The
 * factor covers rounding of these distances. */
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

/* Counting sort of points into cubic cells of at least the search radius, so
 * that what is near a place lies in the cells around it. Where points are few
 * and far between, cells are larger, to keep their number in proportion. */
#include "molecule/cell_list.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

static const double most_ang = 1e100; /* squares stay finite */

struct tsr_cell_list {
    double low[3], size; /* corner, side of a cell */
    int n_cell[3];
    int *first;       /* [cells + 1] into order */
    int *order;       /* [n] points by cell */
    double (*xyz)[3]; /* [n] in this order */
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

/* Cells of at least `radius`, no more than some for each point: few atoms far
 * apart must not take all the memory. */
static int divide(tsr_cell_list *c, int n, const double (*xyz)[3],
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

tsr_status tsr_cell_list_new(int n, const double (*xyz)[3], double radius,
                             tsr_cell_list **out, tsr_err *err)
{
    *out = NULL;
    for (int i = 0; i < 3 * n; i++)
        if (!(fabs(xyz[i / 3][i % 3]) < most_ang))
            return tsr_fail(err, TSR_E_NUMERIC, "a coordinate is %g",
                            xyz[i / 3][i % 3]);
    tsr_cell_list *c = calloc(1, sizeof *c);
    TSR_TRY(tsr_allocated(c, err));
    int total = divide(c, n, xyz, radius);
    c->first = calloc((size_t)total + 2, sizeof *c->first);
    c->order = calloc((size_t)n, sizeof *c->order);
    c->xyz = calloc((size_t)n, sizeof *c->xyz);
    if (c->first == NULL || c->order == NULL || c->xyz == NULL) {
        tsr_cell_list_free(c);
        return tsr_no_memory(err);
    }
    /* Counted one place up, so that filling leaves the starts behind. */
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

void tsr_cell_list_free(tsr_cell_list *cells)
{
    if (cells == NULL)
        return;
    free(cells->first);
    free(cells->order);
    free(cells->xyz);
    free(cells);
}

int tsr_cell_list_near(const tsr_cell_list *cells, const double x[3],
                       double radius, int max, int *index)
{
    const tsr_cell_list *c = cells;
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
                if (n < max) /* without a branch that is hard to foretell */
                    index[n] = c->order[k];
                n += tsr_vec3_distance2(c->xyz[k], x) <= radius * radius;
            }
        }
    return n;
}

/* Distances to the nearest place, within reach of it; then the edge. A place
 * changes only voxels that it can reach. */
#include "maps/mask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Voxels first .. last along an axis within reach of x; 0: none. */
static int range(const tsr_map_grid *g, int axis, double x, double reach,
                 int *first, int *last)
{
    const double at = (x - g->origin[axis]) / g->step[axis];
    const double far = reach / g->step[axis];
    const double low = fmax(0.0, ceil(at - far));
    const double high = fmin(g->n[axis] - 1.0, floor(at + far));
    if (!(low <= high))
        return 0;
    *first = (int)low;
    *last = (int)high;
    return 1;
}

/* Squares of distances, where they are smaller than what is there. */
static void come_near(const tsr_map_grid *g, const double x[3], double reach,
                      float *square)
{
    int first[3], last[3];
    for (int c = 0; c < 3; c++)
        if (!range(g, c, x[c], reach, &first[c], &last[c]))
            return;
    for (int k = first[2]; k <= last[2]; k++)
        for (int j = first[1]; j <= last[1]; j++) {
            const size_t row =
                ((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0];
            const double y = g->origin[1] + g->step[1] * j - x[1];
            const double z = g->origin[2] + g->step[2] * k - x[2];
            for (int i = first[0]; i <= last[0]; i++) {
                const double d = g->origin[0] + g->step[0] * i - x[0];
                const float own = (float)(d * d + y * y + z * z);
                if (own < square[row + (size_t)i])
                    square[row + (size_t)i] = own;
            }
        }
}

static void soften(size_t n, double radius, double edge, float *value)
{
    const double pi = 3.14159265358979324;
    for (size_t k = 0; k < n; k++) {
        const double beyond = sqrt((double)value[k]) - radius;
        value[k] = beyond <= 0.0 ? 1.0f
                   : beyond >= edge
                       ? 0.0f
                       : (float)(0.5 + 0.5 * cos(pi * beyond / edge));
    }
}

void tsr_mask_around(const tsr_map_grid *grid, int n, const double (*xyz)[3],
                     double radius_ang, double edge_ang, float *value)
{
    const size_t n_voxel = tsr_map_n_voxel(grid);
    for (size_t k = 0; k < n_voxel; k++)
        value[k] = HUGE_VALF;
    for (int i = 0; i < n; i++)
        come_near(grid, xyz[i], radius_ang + edge_ang, value);
    soften(n_voxel, radius_ang, edge_ang, value);
}

/* Inside, next to a voxel that is not: only from there can others be reached.
 */
static int is_at_surface(const tsr_map *map, double threshold, const int at[3])
{
    const int *n = map->grid.n;
    const size_t step[3] = {1, (size_t)n[0], (size_t)n[0] * (size_t)n[1]};
    const size_t k =
        (size_t)at[0] + step[1] * (size_t)at[1] + step[2] * (size_t)at[2];
    if (!((double)map->value[k] >= threshold))
        return 0;
    for (int c = 0; c < 3; c++)
        if (at[c] == 0 || at[c] == n[c] - 1 ||
            !((double)map->value[k - step[c]] >= threshold) ||
            !((double)map->value[k + step[c]] >= threshold))
            return 1;
    return 0;
}

tsr_status tsr_mask_above(const tsr_map *map, double threshold,
                          double radius_ang, double edge_ang, float *value,
                          tsr_err *err)
{
    const tsr_map_grid *g = &map->grid;
    const size_t n_voxel = tsr_map_n_voxel(g);
    size_t n_in = 0, k = 0;
    for (size_t v = 0; v < n_voxel; v++) {
        const int is_in = (double)map->value[v] >= threshold;
        n_in += (size_t)is_in;
        value[v] = is_in ? 0.0f : HUGE_VALF;
    }
    if (n_in == 0 || n_in == n_voxel)
        return tsr_fail(
            err, TSR_E_DATA, "'%s': %s at or above the mask's threshold %g",
            map->path, n_in == 0 ? "no voxel is" : "all voxels are", threshold);
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++)
            for (int x = 0; x < g->n[0]; x++, k++) {
                const int at[3] = {x, y, z};
                const double place[3] = {g->origin[0] + g->step[0] * x,
                                         g->origin[1] + g->step[1] * y,
                                         g->origin[2] + g->step[2] * z};
                if (is_at_surface(map, threshold, at))
                    come_near(g, place, radius_ang + edge_ang, value);
            }
    soften(n_voxel, radius_ang, edge_ang, value);
    return TSR_OK;
}

tsr_status tsr_mask_parse(const char *text, tsr_mask *kind, double *threshold,
                          tsr_err *err)
{
    static const char begins[] = "threshold:";
    const size_t n = sizeof begins - 1;
    char *end;
    *threshold = 0.0;
    *kind = strcmp(text, "model") == 0      ? TSR_MASK_MODEL
            : strncmp(text, begins, n) == 0 ? TSR_MASK_THRESHOLD
                                            : TSR_MASK_FILE;
    if (*kind != TSR_MASK_THRESHOLD)
        return TSR_OK;
    *threshold = strtod(text + n, &end);
    if (end == text + n || *end != '\0' || !isfinite(*threshold))
        return tsr_fail(err, TSR_E_USAGE,
                        "mask '%.40s': expected a file, model, or a density as "
                        "in threshold:0.02",
                        text);
    return TSR_OK;
}

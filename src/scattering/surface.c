#include "scattering/surface.h"

#include "core/vec3.h"
#include "model/cell_list.h"

#include <math.h>
#include <stdlib.h>

/* A golden spiral: equal areas between latitudes, turns that never repeat. */
static void spiral(int n, double (*point)[3])
{
    const double turn = 3.14159265358979323846 * (3.0 - sqrt(5.0));
    for (int k = 0; k < n; k++) {
        double z = 1.0 - (2.0 * k + 1.0) / n, r = sqrt(1.0 - z * z);
        point[k][0] = r * cos(turn * k);
        point[k][1] = r * sin(turn * k);
        point[k][2] = z;
    }
}

/* The spheres that reach sphere i, from there; the square of their radius. */
typedef struct {
    double at[3], r2;
} other;

static int find_others(int i, int n_near, const int *near,
                       const double (*xyz)[3], const double *radius,
                       double probe, other *others)
{
    int n = 0;
    for (int k = 0; k < n_near; k++) {
        int j = near[k];
        double reach = radius[i] + radius[j] + 2.0 * probe;
        if (j == i || tsr_vec3_distance2(xyz[i], xyz[j]) >= reach * reach)
            continue;
        tsr_vec3_sub(others[n].at, xyz[j], xyz[i]);
        others[n].r2 = (radius[j] + probe) * (radius[j] + probe);
        n++;
    }
    return n;
}

/* A point that is covered is often covered by what covered the one before. */
static int count_free(int n_point, const double (*point)[3], double r, int n,
                      const other *others)
{
    int n_free = 0, last = 0;
    for (int p = 0; p < n_point; p++) {
        double x[3] = {r * point[p][0], r * point[p][1], r * point[p][2]};
        int is_covered = 0;
        for (int k = 0; k < n && !is_covered; k++) {
            int o = last + k < n ? last + k : last + k - n;
            if (tsr_vec3_distance2(x, others[o].at) < others[o].r2) {
                is_covered = 1;
                last = o;
            }
        }
        n_free += !is_covered;
    }
    return n_free;
}

tsr_status tsr_surface_fraction(int n, const double (*xyz)[3],
                                const double *radius_ang, double probe_ang,
                                int n_point, double *fraction, tsr_err *err)
{
    double largest = 0.0;
    tsr_status status = TSR_OK;
    for (int i = 0; i < n; i++) {
        if (!(radius_ang[i] >= 0.0) || !(probe_ang >= 0.0) || n_point < 1)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "surface: radius %g, probe %g, %d points",
                            radius_ang[i], probe_ang, n_point);
        largest = fmax(largest, radius_ang[i]);
    }
    double reach = fmax(2.0 * (largest + probe_ang), 1e-3);
    size_t size = (size_t)n;
    tsr_cell_list *cells = tsr_cell_list_new(n, xyz, reach);
    double(*point)[3] = calloc((size_t)n_point, sizeof *point);
    int *near = calloc(size, sizeof *near);
    other *others = calloc(size, sizeof *others);
    if (cells == NULL || point == NULL || near == NULL || others == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a surface");
    else
        spiral(n_point, point);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        int found = tsr_cell_list_near(cells, xyz[i], reach, n, near);
        int n_other =
            find_others(i, found, near, xyz, radius_ang, probe_ang, others);
        int n_free = count_free(n_point, (const double(*)[3])point,
                                radius_ang[i] + probe_ang, n_other, others);
        fraction[i] = (double)n_free / n_point;
    }
    tsr_cell_list_free(cells);
    free(point);
    free(near);
    free(others);
    return status;
}

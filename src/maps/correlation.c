/* Correlations from the six sums of two densities. A density without any
 * spread has no correlation: NaN, and no message. */
#include "maps/correlation.h"

#include <math.h>
#include <stdlib.h>

/* n times the variances and the covariance. */
static double var_s(const tsr_map_sums *m)
{
    return m->ss - m->s * m->s / m->n;
}

static double var_e(const tsr_map_sums *m)
{
    return m->ee - m->e * m->e / m->n;
}

static double cov(const tsr_map_sums *m)
{
    return m->es - m->e * m->s / m->n;
}

/* What rounding alone leaves of a difference of equal sums. */
static int is_flat(double variance, double square)
{
    return !(variance > 1e-12 * square);
}

double tsr_map_cc(const tsr_map_sums *sums)
{
    const tsr_map_sums *m = sums;
    if (!(m->n > 0.0) || is_flat(var_s(m), m->ss) || is_flat(var_e(m), m->ee))
        return (double)NAN;
    return cov(m) / sqrt(var_s(m) * var_e(m));
}

double tsr_map_cc_uncentred(const tsr_map_sums *sums)
{
    if (!(sums->ss > 0.0) || !(sums->ee > 0.0))
        return (double)NAN;
    return sums->es / sqrt(sums->ss * sums->ee);
}

void tsr_map_line(const tsr_map_sums *sums, double *slope, double *offset)
{
    const tsr_map_sums *m = sums;
    const double n = m->n > 0.0 ? m->n : 1.0;
    *slope = m->n > 0.0 && !is_flat(var_s(m), m->ss) ? cov(m) / var_s(m) : 0.0;
    *offset = (m->e - *slope * m->s) / n;
}

void tsr_map_spread_s(const tsr_map_sums *sums, double *mean, double *sd)
{
    *mean = sums->s / sums->n;
    *sd = sqrt(fmax(0.0, var_s(sums) / sums->n));
}

void tsr_map_spread_e(const tsr_map_sums *sums, double *mean, double *sd)
{
    *mean = sums->e / sums->n;
    *sd = sqrt(fmax(0.0, var_e(sums) / sums->n));
}

tsr_status tsr_map_tile_cc(const tsr_map *map, const tsr_map_sums *tile,
                           tsr_map **out, tsr_err *err)
{
    tsr_map_grid grid = map->grid;
    for (int c = 0; c < 3; c++) {
        grid.n[c] = tsr_map_tiles(map->grid.n[c]);
        grid.step[c] = TSR_TILE_SIDE * map->grid.step[c];
        grid.origin[c] += 0.5 * (TSR_TILE_SIDE - 1) * map->grid.step[c];
    }
    TSR_TRY(tsr_map_new(&grid, out, err));
    const size_t n = tsr_map_n_tile(&map->grid);
    for (size_t k = 0; k < n; k++) {
        const double cc = tsr_map_cc(&tile[k]);
        (*out)->value[k] = isnan(cc) ? 0.0f : (float)cc;
    }
    return TSR_OK;
}

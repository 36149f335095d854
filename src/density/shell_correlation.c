/* Fourier shell correlation (Harauz & van Heel 1986; Rosenthal & Henderson
 * 2003). */
#include "density/correlation.h"
#include "density/fourier.h"

#include <math.h>
#include <stdlib.h>

/* NaN of `map` are the mean of the others. */
static tsr_status transform(const tsr_map *map, const float *value,
                            tsr_fourier *out, tsr_err *err)
{
    const size_t n = tsr_map_n_voxel(&map->grid);
    double sum = 0.0, count = 0.0;
    float *known = malloc(n * sizeof *known);
    if (known == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a shell correlation");
    for (size_t k = 0; k < n; k++) {
        known[k] = isnan(map->value[k]) ? NAN : value[k];
        if (!isnan(known[k]))
            sum += (double)known[k], count += 1.0;
    }
    tsr_status status = tsr_fourier_make(
        &map->grid, known, count > 0.0 ? sum / count : 0.0, out, err);
    free(known);
    return status;
}

/* Where the curve first falls below a level. */
static double crossing(const tsr_fsc *fsc, double level, int *is_at_limit)
{
    *is_at_limit = 0;
    for (int k = 0; k < fsc->n; k++) {
        if (fsc->fsc[k] >= level)
            continue;
        if (k == 0)
            return fsc->s_inv_ang[0];
        double above = fsc->fsc[k - 1] - level, below = level - fsc->fsc[k];
        return fsc->s_inv_ang[k - 1] +
               (fsc->s_inv_ang[k] - fsc->s_inv_ang[k - 1]) * above /
                   (above + below);
    }
    *is_at_limit = 1;
    return fsc->n > 0 ? fsc->s_inv_ang[fsc->n - 1] : (double)NAN;
}

static tsr_status fill(const tsr_fourier *f, const tsr_fourier *g, tsr_fsc *out,
                       tsr_err *err)
{
    const tsr_shells shells = tsr_fourier_shells(&f->grid);
    const size_t n = (size_t)shells.n;
    tsr_shell *shell = calloc(n + 1, sizeof *shell);
    out->s_inv_ang = calloc(n + 1, sizeof *out->s_inv_ang);
    out->fsc = calloc(n + 1, sizeof *out->fsc);
    if (shell == NULL || out->s_inv_ang == NULL || out->fsc == NULL) {
        free(shell);
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a shell correlation");
    }
    tsr_fourier_compare(f, g, &shells, shell);
    out->n = shells.n;
    for (int k = 0; k < out->n; k++) {
        const double norm = sqrt(shell[k].ff * shell[k].gg);
        out->s_inv_ang[k] = (k + 1) * shells.width_inv_ang;
        out->fsc[k] = norm > 0.0 ? shell[k].fg / norm : 0.0;
    }
    free(shell);
    out->half_inv_ang = crossing(out, 0.5, &out->half_is_at_limit);
    out->low_inv_ang = crossing(out, 0.143, &out->low_is_at_limit);
    return TSR_OK;
}

tsr_status tsr_fsc_make(const tsr_map *map, const float *density, tsr_fsc *out,
                        tsr_err *err)
{
    tsr_fourier f = {.f = NULL}, g = {.f = NULL};
    *out = (tsr_fsc){0};
    tsr_status status = transform(map, map->value, &f, err);
    if (status == TSR_OK)
        status = transform(map, density, &g, err);
    if (status == TSR_OK)
        status = fill(&f, &g, out, err);
    tsr_fourier_clear(&f);
    tsr_fourier_clear(&g);
    if (status != TSR_OK)
        tsr_fsc_clear(out);
    return status;
}

void tsr_fsc_clear(tsr_fsc *fsc)
{
    free(fsc->s_inv_ang);
    free(fsc->fsc);
    *fsc = (tsr_fsc){0};
}

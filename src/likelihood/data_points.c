/* A curve carried to the q of the data, point by point. The noise model
 * `measured` rotates its data once instead, which is cheaper, but needs
 * weights that never change. */
#include "likelihood/data_points.h"

#include <stdlib.h>
#include <string.h>

int tsr_data_points_make(tsr_data_points *points, const tsr_noise_spec *spec)
{
    tsr_data_points *p = points;
    size_t n = (size_t)spec->saxs->n, n_q = (size_t)spec->n_q;
    p->linear = *spec->linear;
    p->saxs = spec->saxs;
    p->n_q = spec->n_q;
    p->column = calloc(n * n_q, sizeof *p->column);
    p->weight = calloc(n, sizeof *p->weight);
    if (p->column == NULL || p->weight == NULL)
        return 0;
    for (size_t k = 0; k < n; k++) {
        for (size_t j = 0; j < n_q; j++)
            p->column[j * n + k] = spec->matrix[k * n_q + j];
        p->weight[k] = 1.0 / (p->saxs->sigma[k] * p->saxs->sigma[k]);
    }
    return 1;
}

void tsr_data_points_clear(tsr_data_points *points)
{
    free(points->column);
    free(points->weight);
    points->column = points->weight = NULL;
}

void tsr_data_points_fit(const tsr_data_points *points, const double *profile,
                         tsr_fit *fit)
{
    const tsr_data_points *p = points;
    size_t n = (size_t)p->saxs->n;
    double *model = fit->model;
    size_t n_q = (size_t)p->n_q, j = 0;
    memset(model, 0, n * sizeof *model);
    for (; j + 4 <= n_q; j += 4) { /* four, to pass over model less often */
        const double *a = p->column + j * n, *x = profile + j;
        const double *b = a + n, *c = b + n, *d = c + n;
        for (size_t k = 0; k < n; k++)
            model[k] +=
                (a[k] * x[0] + b[k] * x[1]) + (c[k] * x[2] + d[k] * x[3]);
    }
    for (; j < n_q; j++)
        for (size_t k = 0; k < n; k++)
            model[k] += p->column[j * n + k] * profile[j];
    tsr_linear_fit(&p->linear, p->saxs->n, model, p->saxs->intensity, p->weight,
                   fit);
    fit->chi2 = fit->square_sum;
}

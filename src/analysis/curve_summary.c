/* Summaries of a curve, point by point: mean, quantiles, R-hat. A run can have
 * more numbers of a curve than memory, so draws are read in blocks and, where
 * that is still too much, only some of the points are looked at. */
#include "analysis/diagnose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tsr_curve_summary_free(tsr_curve_summary *summary)
{
    if (summary == NULL)
        return;
    tsr_pool_clear(&summary->pool);
    free(summary);
}

/* Which points, and their q. */
static tsr_status choose(tsr_curve_summary *s, tsr_trace_reader *reader,
                         double rows, double most, tsr_err *err)
{
    int n_coord;
    double *coord = NULL;
    const double fits = floor(most / rows);
    s->n = fits >= s->n_point ? s->n_point : (int)fmax(2.0, fits);
    s->n = s->n < s->n_point ? s->n : s->n_point;
    tsr_pool_array(&s->pool, s->at, s->n);
    tsr_pool_array(&s->pool, s->q, s->n);
    tsr_pool_array(&s->pool, s->point, s->n);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    tsr_status status = tsr_trace_coordinates(
        reader, TSR_TRACE_POSTERIOR_PREDICTIVE, s->name, &n_coord, &coord, err);
    for (int i = 0; i < s->n && status == TSR_OK; i++) {
        s->at[i] =
            s->n > 1 ? (int)((long)i * (s->n_point - 1) / (s->n - 1)) : 0;
        s->q[i] =
            coord != NULL && n_coord == s->n_point ? coord[s->at[i]] : s->at[i];
    }
    free(coord);
    return status;
}

static tsr_status summarise(tsr_curve_summary *s, tsr_trace_reader *reader,
                            int n_chain, int n_draw, tsr_err *err)
{
    const size_t rows = (size_t)n_chain * (size_t)n_draw;
    const int batch = tsr_columns_that_fit(n_chain, n_draw, s->n);
    double *column = malloc(rows * (size_t)batch * sizeof *column);
    tsr_status status = tsr_allocated(column, err);
    for (int first = 0; first < s->n && status == TSR_OK; first += batch) {
        const int n = s->n - first < batch ? s->n - first : batch;
        status = tsr_columns_get(reader, TSR_TRACE_POSTERIOR_PREDICTIVE,
                                 s->name, n, s->at + first, column, err);
        for (int k = 0; k < n && status == TSR_OK; k++) {
            tsr_convergence *point = &s->point[first + k];
            status =
                tsr_convergence_make(tsr_trace_n_group(reader), n_chain, n_draw,
                                     column + (size_t)k * rows, point, err);
            s->n_bad += status == TSR_OK && isnan(point->mean);
        }
    }
    free(column);
    return status;
}

tsr_status tsr_curve_summary_make(tsr_trace_reader *reader, const char *name,
                                  double most, tsr_curve_summary **out,
                                  tsr_err *err)
{
    int n_chain, n_draw, n;
    *out = NULL;
    TSR_TRY(tsr_trace_shape(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                            &n_chain, &n_draw, &n, err));
    if (n_chain == 0 || n_draw == 0 || n == 0)
        return tsr_fail(err, TSR_E_DATA, "'%s' has no draws", name);
    tsr_curve_summary *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    s->name = tsr_pool_text(&s->pool, name);
    s->n_point = n;
    tsr_status status = choose(s, reader, (double)n_chain * n_draw, most, err);
    TSR_THEN(status, summarise(s, reader, n_chain, n_draw, err));
    if (status != TSR_OK) {
        tsr_curve_summary_free(s);
        s = NULL;
    }
    *out = s;
    return status;
}

int tsr_curve_summary_worst(const tsr_curve_summary *summary)
{
    int worst = -1;
    for (int i = 0; i < summary->n; i++)
        if (!isnan(summary->point[i].rhat) &&
            (worst < 0 || summary->point[i].rhat > summary->point[worst].rhat))
            worst = i;
    return worst;
}

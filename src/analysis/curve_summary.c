/* Summaries of a curve, point by point: mean, quantiles, R-hat. A run can have
 * more numbers of a curve than memory, so draws are read in blocks and, where
 * that is still too much, only some of the points are looked at. */
#include "analysis/diagnose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers in memory: of draws as they are read, and of the points looked at. */
static const double block_numbers = 4194304.0, column_numbers = 33554432.0;

void tsr_curve_summary_free(tsr_curve_summary *summary)
{
    if (summary == NULL)
        return;
    free(summary->name);
    free(summary->at);
    free(summary->q);
    free(summary->point);
    free(summary);
}

static tsr_status no_memory(const char *name, tsr_err *err)
{
    return tsr_fail(err, TSR_E_NOMEM, "no memory to summarise '%s'", name);
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
    s->at = calloc((size_t)s->n, sizeof *s->at);
    s->q = calloc((size_t)s->n, sizeof *s->q);
    s->point = calloc((size_t)s->n, sizeof *s->point);
    if (s->at == NULL || s->q == NULL || s->point == NULL)
        return no_memory(s->name, err);
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

/* Draws of points first .. first + n of those chosen, column [n][rows], in one
 * pass over the variable: whole draws lie together in the file. */
static tsr_status gather(const tsr_curve_summary *s, tsr_trace_reader *reader,
                         int n_chain, int n_draw, int first, int n,
                         double *column, tsr_err *err)
{
    const size_t width = (size_t)s->n_point,
                 rows = (size_t)n_chain * (size_t)n_draw;
    const double one = (double)n_chain * s->n_point; /* numbers of a draw */
    const int most = (int)fmin(n_draw, fmax(1.0, block_numbers / one));
    double *block =
        malloc((size_t)most * (size_t)n_chain * width * sizeof *block);
    tsr_status status = block != NULL ? TSR_OK : no_memory(s->name, err);
    for (int from = 0; from < n_draw && status == TSR_OK; from += most) {
        const int count = n_draw - from < most ? n_draw - from : most;
        const tsr_trace_part part = {from, count, 0, s->n_point};
        status = tsr_trace_get_part(reader, TSR_TRACE_POSTERIOR_PREDICTIVE,
                                    s->name, &part, block, err);
        for (int c = 0; c < n_chain && status == TSR_OK; c++)
            for (int d = 0; d < count; d++) {
                const double *row =
                    block + ((size_t)c * (size_t)count + (size_t)d) * width;
                double *to =
                    column + (size_t)c * (size_t)n_draw + (size_t)(from + d);
                for (int k = 0; k < n; k++)
                    to[(size_t)k * rows] = row[s->at[first + k]];
            }
    }
    free(block);
    return status;
}

static tsr_status summarise(tsr_curve_summary *s, tsr_trace_reader *reader,
                            int n_chain, int n_draw, tsr_err *err)
{
    const size_t rows = (size_t)n_chain * (size_t)n_draw;
    const int batch =
        (int)fmin(s->n, fmax(1.0, floor(column_numbers / (double)rows)));
    double *column = malloc(rows * (size_t)batch * sizeof *column);
    tsr_status status = column != NULL ? TSR_OK : no_memory(s->name, err);
    for (int first = 0; first < s->n && status == TSR_OK; first += batch) {
        const int n = s->n - first < batch ? s->n - first : batch;
        status = gather(s, reader, n_chain, n_draw, first, n, column, err);
        for (int k = 0; k < n && status == TSR_OK; k++) {
            tsr_convergence *point = &s->point[first + k];
            status = tsr_convergence_of_groups(
                tsr_trace_n_group(reader), n_chain, n_draw,
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
    if (s == NULL || (s->name = strdup(name)) == NULL) {
        free(s);
        return no_memory(name, err);
    }
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

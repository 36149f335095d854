#include "reweight/stored_curve.h"

#include "core/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 64 };

void tsr_stored_curve_name(const char *name, int data, size_t size, char *out)
{
    if (data > 0)
        snprintf(out, size, "%s_%d", name, data + 1);
    else
        snprintf(out, size, "%s", name);
}

void tsr_stored_curve_clear(tsr_stored_curve *s)
{
    free(s->saxs.path);
    free(s->saxs.q);
    free(s->saxs.intensity);
    free(s->saxs.sigma);
    free(s->scale);
    free(s->background);
    *s = (tsr_stored_curve){.trace = NULL};
}

tsr_status tsr_stored_curve_scalar(const tsr_stored_curve *s,
                                   tsr_trace_group group, const char *name,
                                   double **value, tsr_err *err)
{
    int n_chain, n_draw, n;
    *value = NULL;
    if (tsr_trace_shape(s->trace, group, name, &n_chain, &n_draw, &n, NULL) !=
        TSR_OK)
        return TSR_OK;
    if (n != 1 || n_chain != s->n_chain || n_draw != s->n_draw)
        return tsr_fail(err, TSR_E_DATA,
                        "%s has %d x %d x %d numbers, the curves %d x %d", name,
                        n_chain, n_draw, n, s->n_chain, s->n_draw);
    return tsr_trace_get(s->trace, group, name, &n_chain, &n_draw, &n, value,
                         err);
}

/* A scalar of the data set, or the value that is fixed for all draws. */
static tsr_status scalar_or(const tsr_stored_curve *s, const char *name,
                            int is_free, double fixed, double **value,
                            tsr_err *err)
{
    char full[NAME];
    const size_t n = (size_t)s->n_chain * (size_t)s->n_draw;
    tsr_stored_curve_name(name, s->data, sizeof full, full);
    tsr_status status = TSR_OK;
    if (is_free) {
        status =
            tsr_stored_curve_scalar(s, TSR_TRACE_POSTERIOR, full, value, err);
        if (status == TSR_OK && *value == NULL)
            status = tsr_fail(err, TSR_E_DATA, "the trace has no %s", full);
        return status;
    }
    *value = malloc((n + 1) * sizeof **value);
    if (*value == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu draws", n);
    for (size_t i = 0; i < n; i++)
        (*value)[i] = fixed;
    return TSR_OK;
}

static tsr_status read_points(tsr_stored_curve *s, const char *path,
                              tsr_err *err)
{
    char name[NAME];
    int one, n, n_sigma = 0;
    tsr_stored_curve_name("intensity", s->data, sizeof name, name);
    s->saxs.path = strdup(path);
    if (s->saxs.path == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    tsr_status status = tsr_trace_get(s->trace, TSR_TRACE_OBSERVED_DATA, name,
                                      &one, &one, &n, &s->saxs.intensity, err);
    s->saxs.n = n;
    if (status == TSR_OK)
        status = tsr_trace_coordinates(s->trace, TSR_TRACE_OBSERVED_DATA, name,
                                       &n, &s->saxs.q, err);
    tsr_stored_curve_name("sigma", s->data, sizeof name, name);
    if (status == TSR_OK)
        status = tsr_trace_get(s->trace, TSR_TRACE_CONSTANT_DATA, name, &one,
                               &one, &n_sigma, &s->saxs.sigma, err);
    if (status == TSR_OK &&
        (s->saxs.q == NULL || s->saxs.n != s->n || n_sigma != s->n))
        status = tsr_fail(err, TSR_E_DATA,
                          "the trace has curves of %d points, data of %d, "
                          "sigma of %d",
                          s->n, s->saxs.n, n_sigma);
    return status;
}

tsr_status tsr_stored_curve_open(tsr_trace_reader *trace, int data,
                                 const char *path, const tsr_linear *linear,
                                 tsr_stored_curve *s, tsr_err *err)
{
    char name[NAME];
    *s = (tsr_stored_curve){.trace = trace, .data = data};
    tsr_stored_curve_name("intensity_mean", data, sizeof name, name);
    tsr_status status =
        tsr_trace_shape(trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                        &s->n_chain, &s->n_draw, &s->n, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "the curves of data set %d", data + 1);
    if (s->n_chain == 0 || s->n_draw == 0)
        return tsr_fail(err, TSR_E_DATA, "the trace has no draws");
    status = read_points(s, path, err);
    if (status == TSR_OK)
        status = scalar_or(s, "scale", linear->infer_scale, linear->scale,
                           &s->scale, err);
    if (status == TSR_OK)
        status = scalar_or(s, "background", linear->infer_background,
                           linear->background, &s->background, err);
    return status;
}

/* At most once a second. */
static void tell(const tsr_stored_curve *s, long done, double *told)
{
    const double now = tsr_clock_s();
    char line[64];
    if (!tsr_log_is_terminal(s->log) || now - *told < 1.0)
        return;
    *told = now;
    snprintf(line, sizeof line, "curves: %.0f %%",
             100.0 * (double)done / ((double)s->n_chain * s->n_draw));
    tsr_log_progress(s->log, line);
}

tsr_status tsr_stored_curve_each(const tsr_stored_curve *s,
                                 tsr_curve_visit each, void *context,
                                 tsr_err *err)
{
    const double room = 2e6; /* numbers */
    const size_t n = (size_t)s->n;
    const double row = (double)s->n_chain * s->n;
    const int most = (int)fmax(1.0, fmin(s->n_draw, floor(room / row)));
    char name[NAME];
    tsr_stored_curve_name("intensity_mean", s->data, sizeof name, name);
    double *block =
        malloc((size_t)most * (size_t)s->n_chain * n * sizeof *block);
    tsr_status status =
        block != NULL ? TSR_OK : tsr_fail(err, TSR_E_NOMEM, "out of memory");
    double told = tsr_clock_s();
    long done = 0;
    for (int from = 0; from < s->n_draw && status == TSR_OK; from += most) {
        const int count = s->n_draw - from < most ? s->n_draw - from : most;
        const tsr_trace_part part = {from, count, 0, s->n};
        status = tsr_trace_get_part(s->trace, TSR_TRACE_POSTERIOR_PREDICTIVE,
                                    name, &part, block, err);
        for (int i = 0; i < s->n_chain * count && status == TSR_OK; i++) {
            const int chain = i / count, draw = from + i % count;
            const size_t at = (size_t)chain * (size_t)s->n_draw + (size_t)draw;
            const double c = s->scale[at], b = s->background[at];
            double *curve = block + (size_t)i * n;
            if (!(c > 0.0) || !isfinite(b)) {
                status = tsr_fail(err, TSR_E_DATA,
                                  "chain %d, draw %d: scale %g, background %g",
                                  chain, draw, c, b);
                break;
            }
            for (size_t k = 0; k < n; k++)
                curve[k] = (curve[k] - b) / c;
            status = each(context, at, curve, err);
            tell(s, ++done, &told);
        }
    }
    tsr_log_progress(s->log, "");
    free(block);
    return status;
}

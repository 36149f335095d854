/* Importance weights of stored draws for other data.
 *
 * The weight of a draw is the ratio of two likelihoods at the draw's structure,
 * of the new data and of the old data, with nuisance parameters integrated out
 * of both. The integral over the model's own error is part of both likelihoods.
 * The stored curves must reproduce the stored likelihoods. Otherwise
 * config.yaml and trace.h5 do not belong together, and the weights would be
 * wrong without a warning. */
#include "analysis/reweight.h"

#include "analysis/summary.h"

#include "core/clock.h"
#include "core/random.h"

#include <gsl/gsl_interp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest difference, nat, between stored and recomputed log likelihood.
 * Storing curves in single precision causes differences of about 1e-3. */
static const double largest_difference = 0.1;

typedef struct {
    const tsr_reweight_options *options;
    tsr_reweight *out;
    tsr_saxs_term *before, *after;
    tsr_fit *fit_before, *fit_after;
    double *log_lik;                     /* stored log likelihoods; NULL: not
                                            compared */
    double *theta[TSR_NOISE_PARAMETERS]; /* stored noise parameters; NULL: the
                                            parameter is fixed */
    gsl_rng *rng;
    int is_checked; /* 1: the interpolation error has been checked */
} work;

void tsr_reweight_free(tsr_reweight *r)
{
    if (r == NULL)
        return;
    tsr_pool_clear(&r->pool);
    free(r);
}

static tsr_status reweight_new(long n, const tsr_saxs_term *term,
                               tsr_reweight **out, tsr_err *err)
{
    tsr_reweight *r = *out = calloc(1, sizeof *r);
    TSR_TRY(tsr_allocated(r, err));
    r->n = n;
    tsr_pool_array(&r->pool, r->log_weight, n);
    tsr_pool_array(&r->pool, r->scale, n);
    tsr_pool_array(&r->pool, r->background, n);
    tsr_pool_array(&r->pool, r->chi2, n);
    for (int i = 0; i < term->n_noise; i++)
        if (term->term.parameter[i].infer) {
            r->noise_name[i] = term->term.parameter[i].name;
            tsr_pool_array(&r->pool, r->noise[i], n);
        }
    return tsr_pool_check(&r->pool, err);
}

/* ---- the stored likelihood ---- */

/* Log likelihood of a draw's curve at its stored nuisance parameters, as the
 * run computed it. */
static double stored_log(work *w, size_t at, const double *curve)
{
    const tsr_stored_curve *s = w->options->stored;
    const tsr_saxs_term *t = w->before;
    double theta[TSR_TERM_PARAMETERS];
    tsr_term_start(&t->term, theta);
    for (int i = 0; i < t->n_noise; i++)
        if (w->theta[i] != NULL)
            theta[i] =
                tsr_parameter_theta(&t->term.parameter[i], w->theta[i][at]);
    theta[t->n_noise] = s->scale[at];
    theta[t->n_noise + 1] = s->background[at];
    t->noise->fit(t->state, curve, theta, w->fit_before);
    return tsr_saxs_log_lik(t, w->fit_before, theta);
}

static tsr_status check_stored(work *w, size_t at, const double *curve,
                               tsr_err *err)
{
    if (w->log_lik == NULL)
        return TSR_OK;
    double again = stored_log(w, at, curve);
    double difference = fabs(again - w->log_lik[at]);
    w->out->recovered = fmax(w->out->recovered, difference);
    if (difference <= largest_difference)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "draw %zu has the log likelihood %.3f, but its stored "
                    "curve gives %.3f: config.yaml does not belong to this "
                    "trace, or one of the two was changed; run again",
                    at, w->log_lik[at], again);
}

/* ---- draw by draw ---- */

static tsr_status reweight_draw(void *context, size_t at, const double *curve,
                                tsr_err *err)
{
    work *w = context;
    tsr_reweight *r = w->out;
    tsr_nuisance_draw drawn = {(double)NAN, (double)NAN, {0.0}};
    tsr_status status = check_stored(w, at, curve, err);
    if (status != TSR_OK)
        return status;
    double before =
        tsr_marginal_log(w->before, curve, w->fit_before, NULL, NULL);
    double after =
        tsr_marginal_log(w->after, curve, w->fit_after, w->rng, &drawn);
    if (!isfinite(before))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "draw %zu has no likelihood under the data of the run",
                        at);
    r->log_weight[at] = after - before;
    r->scale[at] = drawn.scale;
    r->background[at] = drawn.background;
    r->chi2[at] = w->fit_after->chi2 / w->after->saxs->n;
    for (int i = 0; i < TSR_NOISE_PARAMETERS; i++)
        if (r->noise[i] != NULL)
            r->noise[i][at] = tsr_parameter_value(&w->after->term.parameter[i],
                                                  drawn.theta[i]);
    if (!w->is_checked)
        status = tsr_curve_operator_check(&w->options->stored->saxs,
                                          w->options->after.saxs, curve,
                                          drawn.scale, &r->interpolation, err);
    w->is_checked = 1;
    return status;
}

/* ---- setting up ---- */

static tsr_status make_term(const tsr_stored_curve *run,
                            const tsr_data_set *set, int number,
                            tsr_saxs_term **out, tsr_fit **fit, tsr_err *err)
{
    double *matrix = NULL;
    tsr_term *term = NULL;
    tsr_status status = tsr_saxs_term_new(set, number, &term, err);
    *out = (tsr_saxs_term *)term;
    TSR_THEN(status, tsr_curve_operator(&run->saxs, set->saxs, &matrix, err));
    TSR_THEN(status, tsr_saxs_term_prepare(*out, run->n, matrix, err));
    TSR_THEN(status, tsr_saxs_set_model_error(term, &run->error, err));
    if (status != TSR_OK)
        return status;
    *fit = tsr_term_fit_new(term, &term->pool);
    return tsr_allocated(*fit, err);
}

static tsr_status check_temperature(const tsr_stored_curve *s, tsr_err *err)
{
    double *value;
    tsr_status status = tsr_stored_curve_scalar(s, TSR_TRACE_SAMPLE_STATS,
                                                "temperature", &value, err);
    const size_t n = (size_t)s->n_chain * (size_t)s->n_draw;
    for (size_t i = 0; value != NULL && i < n && status == TSR_OK; i++)
        if (value[i] != 1.0)
            status =
                tsr_fail(err, TSR_E_DATA,
                         "the draws were made at the likelihood temperature "
                         "%g; reweighting needs draws of the posterior",
                         value[i]);
    free(value);
    return status;
}

static tsr_status read_stored(work *w, tsr_err *err)
{
    const tsr_stored_curve *s = w->options->stored;
    tsr_status status = check_temperature(s, err);
    if (w->options->n_data > 1) {
        w->out->recovered = (double)NAN;
        return status;
    }
    TSR_THEN(status, tsr_stored_curve_scalar(s, TSR_TRACE_SAMPLE_STATS,
                                             "log_lik", &w->log_lik, err));
    for (int i = 0; i < w->before->n_noise && status == TSR_OK; i++) {
        char name[64];
        tsr_stored_curve_name(w->before->term.parameter[i].name, s->data,
                              sizeof name, name);
        if (!w->before->term.parameter[i].infer)
            continue;
        status = tsr_stored_curve_scalar(s, TSR_TRACE_POSTERIOR, name,
                                         &w->theta[i], err);
        if (status == TSR_OK && w->theta[i] == NULL)
            status = tsr_fail(err, TSR_E_DATA, "the trace has no %s", name);
    }
    return status;
}

tsr_status tsr_reweight_make(const tsr_reweight_options *options,
                             tsr_reweight **out, tsr_err *err)
{
    const tsr_stored_curve *s = options->stored;
    work w = {.options = options,
              .rng = tsr_rng_new((uint64_t)options->seed, 0)};
    tsr_data_set before = options->before;
    *out = NULL;
    before.saxs = &s->saxs;
    tsr_status status =
        make_term(s, &before, s->data, &w.before, &w.fit_before, err);
    TSR_THEN(status, make_term(s, &options->after, s->data, &w.after,
                               &w.fit_after, err));
    TSR_THEN(status, tsr_allocated(w.rng, err));
    TSR_THEN(status,
             reweight_new((long)s->n_chain * s->n_draw, w.after, &w.out, err));
    TSR_THEN(status, read_stored(&w, err));
    TSR_THEN(status, tsr_stored_curve_for_each(s, reweight_draw, &w, err));
    if (status != TSR_OK) {
        tsr_reweight_free(w.out);
        w.out = NULL;
    }
    if (w.before != NULL)
        tsr_term_free(&w.before->term);
    if (w.after != NULL)
        tsr_term_free(&w.after->term);
    free(w.log_lik);
    for (int i = 0; i < TSR_NOISE_PARAMETERS; i++)
        free(w.theta[i]);
    gsl_rng_free(w.rng);
    *out = w.out;
    return status;
}

/* ---- stored curves ----
 *
 * Reads the curves of the draws, in blocks from a run's trace, or from memory,
 * and interpolates them to the q of other data. */

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
    tsr_pool_clear(&s->saxs.pool);
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
                        "%s has %d x %d x %d numbers, but the curves %d x %d",
                        name, n_chain, n_draw, n, s->n_chain, s->n_draw);
    return tsr_trace_get(s->trace, group, name, &n_chain, &n_draw, &n, value,
                         err);
}

/* Reads a scalar of the draws, or, if it was not free, sets all draws to its
 * fixed value. */
static tsr_status scalar_or(tsr_stored_curve *s, const char *name, int is_free,
                            double fixed, double **value, tsr_err *err)
{
    char full[NAME];
    double *all = NULL;
    const size_t n = (size_t)s->n_chain * (size_t)s->n_draw;
    tsr_stored_curve_name(name, s->data, sizeof full, full);
    tsr_pool_array(&s->saxs.pool, *value, n);
    TSR_TRY(tsr_pool_check(&s->saxs.pool, err));
    if (is_free)
        TSR_TRY(
            tsr_stored_curve_scalar(s, TSR_TRACE_POSTERIOR, full, &all, err));
    if (is_free && all == NULL)
        return tsr_fail(err, TSR_E_DATA, "the trace has no %s", full);
    for (size_t i = 0; i < n; i++)
        (*value)[i] = is_free ? all[i] : fixed;
    free(all);
    return TSR_OK;
}

/* Reads a row [n] of the data set. *is_there 0: the trace lacks the
 * variable. */
static tsr_status read_row(const tsr_stored_curve *s, tsr_trace_group group,
                           const char *variable, double *row, int *is_there,
                           tsr_err *err)
{
    char name[NAME];
    int one, n;
    double *all;
    tsr_stored_curve_name(variable, s->data, sizeof name, name);
    *is_there =
        tsr_trace_shape(s->trace, group, name, &one, &one, &n, NULL) == TSR_OK;
    if (!*is_there)
        return TSR_OK;
    if (n != s->n)
        return tsr_fail(err, TSR_E_DATA,
                        "the trace has curves of %d points, but %s has %d",
                        s->n, name, n);
    TSR_TRY(tsr_trace_get(s->trace, group, name, &one, &one, &n, &all, err));
    memcpy(row, all, (size_t)n * sizeof *row);
    free(all);
    return TSR_OK;
}

static tsr_status read_points(tsr_stored_curve *s, const char *path,
                              tsr_err *err)
{
    tsr_saxs *d = &s->saxs;
    char name[NAME];
    int n, is_there[2];
    double *q = NULL;
    d->n = s->n;
    d->path = tsr_pool_text(&d->pool, path);
    tsr_pool_array(&d->pool, d->q, s->n);
    tsr_pool_array(&d->pool, d->intensity, s->n);
    tsr_pool_array(&d->pool, d->sigma, s->n);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    TSR_TRY(read_row(s, TSR_TRACE_OBSERVED_DATA, "intensity", d->intensity,
                     &is_there[0], err));
    TSR_TRY(read_row(s, TSR_TRACE_CONSTANT_DATA, "sigma", d->sigma,
                     &is_there[1], err));
    tsr_stored_curve_name("intensity", s->data, sizeof name, name);
    TSR_TRY(tsr_trace_coordinates(s->trace, TSR_TRACE_OBSERVED_DATA, name, &n,
                                  &q, err));
    if (q == NULL || !is_there[0] || !is_there[1]) {
        free(q);
        return tsr_fail(err, TSR_E_DATA,
                        "the trace lacks q, intensity or sigma of data set %d",
                        s->data + 1);
    }
    memcpy(d->q, q, (size_t)n * sizeof *q);
    free(q);
    return TSR_OK;
}

/* Reads the model's own error at the q of the data, if the run had such an
 * error. */
static tsr_status read_errors(tsr_stored_curve *s, tsr_err *err)
{
    const size_t n = (size_t)s->n;
    int is_there = 1;
    double *row;
    tsr_pool_array(&s->saxs.pool, row, (TSR_MODEL_ERRORS + 1) * n);
    TSR_TRY(tsr_pool_check(&s->saxs.pool, err));
    s->error.reference = row;
    s->error.curve = row + n;
    for (int k = 0; k <= TSR_MODEL_ERRORS && is_there; k++, row += n) {
        TSR_TRY(read_row(s, TSR_TRACE_CONSTANT_DATA, tsr_saxs_error_name(k),
                         row, &is_there, err));
        if (is_there)
            s->error.n = k;
    }
    return TSR_OK;
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
    TSR_THEN(status, read_errors(s, err));
    TSR_THEN(status, scalar_or(s, "scale", linear->infer_scale, linear->scale,
                               &s->scale, err));
    TSR_THEN(status, scalar_or(s, "background", linear->infer_background,
                               linear->background, &s->background, err));
    return status;
}

/* A pass over the curves. On a terminal, the progress is shown at most once a
 * second. */
typedef struct {
    const tsr_stored_curve *stored;
    tsr_curve_callback each;
    void *context;
    long done;
    double last_report; /* time of the last progress line, s */
} pass;

static tsr_status visit_row(void *context, int chain, int draw, double *curve,
                            tsr_err *err)
{
    pass *p = context;
    const tsr_stored_curve *s = p->stored;
    const size_t at = (size_t)chain * (size_t)s->n_draw + (size_t)draw;
    const double c = s->scale[at], b = s->background[at], now = tsr_clock_s();
    if (!(c > 0.0) || !isfinite(b))
        return tsr_fail(err, TSR_E_DATA,
                        "chain %d, draw %d: scale %g, background %g", chain,
                        draw, c, b);
    for (int k = 0; k < s->n; k++)
        curve[k] = (curve[k] - b) / c;
    TSR_TRY(p->each(p->context, at, curve, err));
    p->done++;
    if (tsr_log_is_terminal(s->log) && now - p->last_report >= 1.0) {
        char line[64];
        p->last_report = now;
        snprintf(line, sizeof line, "curves: %.0f %%",
                 100.0 * (double)p->done / ((double)s->n_chain * s->n_draw));
        tsr_log_progress(s->log, line);
    }
    return TSR_OK;
}

tsr_status tsr_stored_curve_for_each(const tsr_stored_curve *s,
                                     tsr_curve_callback each, void *context,
                                     tsr_err *err)
{
    const size_t n_all = (size_t)s->n_chain * (size_t)s->n_draw;
    char name[NAME];
    for (size_t at = 0; s->in_memory != NULL && at < n_all; at++)
        TSR_TRY(each(context, at, s->in_memory + at * (size_t)s->n, err));
    if (s->in_memory != NULL)
        return TSR_OK;
    pass p = {s, each, context, 0, tsr_clock_s()};
    tsr_stored_curve_name("intensity_mean", s->data, sizeof name, name);
    const tsr_status status =
        tsr_rows_for_each(s->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name, 1, 0,
                          s->n, visit_row, &p, err);
    tsr_log_progress(s->log, "");
    return status;
}

/* ---- interpolation to other q ----
 *
 * A run stores its curves at the q of its own data. A natural spline
 * interpolates to other q. The spline is linear in the curve, so it is applied
 * as a matrix. Leaving out every second q shows whether the run's q are close
 * enough. */

/* Values of q closer than this count as equal: files round them. */
static const double same_q = 1e-6; /* 1/Angstrom */

static int find_same(const tsr_saxs *from, double q)
{
    int low = 0, high = from->n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (from->q[middle] < q - same_q)
            low = middle + 1;
        else
            high = middle;
    }
    return fabs(from->q[low] - q) <= same_q ? low : -1;
}

static tsr_status check_range(const tsr_saxs *from, const tsr_saxs *to,
                              tsr_err *err)
{
    const double first = from->q[0], last = from->q[from->n - 1];
    int n_out = 0;
    for (int k = 0; k < to->n; k++)
        n_out += to->q[k] < first - same_q || to->q[k] > last + same_q;
    if (n_out == 0)
        return TSR_OK;
    return tsr_fail(
        err, TSR_E_DATA,
        "%d of %d points of '%s' (q = %.4g to %.4g 1/A) are outside the q "
        "range of the run, %.4g to %.4g 1/A, where the draws have no curve: "
        "narrow it with --q-range %.4g,%.4g, or run with these data",
        n_out, to->n, to->path, to->q[0], to->q[to->n - 1], first, last, first,
        last);
}

tsr_status tsr_curve_operator(const tsr_saxs *from, const tsr_saxs *to,
                              double **matrix, tsr_err *err)
{
    const size_t n = (size_t)from->n;
    *matrix = NULL;
    tsr_status status = check_range(from, to, err);
    if (status != TSR_OK)
        return status;
    double *out = calloc((size_t)to->n * n, sizeof *out);
    double *unit = calloc(n, sizeof *unit);
    gsl_interp *spline = gsl_interp_alloc(gsl_interp_cspline, n);
    if (out == NULL || unit == NULL || spline == NULL)
        status = tsr_no_memory(err);
    for (size_t j = 0; j < n && status == TSR_OK; j++) {
        unit[j] = 1.0;
        gsl_interp_init(spline, from->q, unit, n);
        for (int k = 0; k < to->n; k++) {
            int at = find_same(from, to->q[k]);
            double q = fmin(fmax(to->q[k], from->q[0]), from->q[n - 1]);
            out[(size_t)k * n + j] =
                at >= 0 ? (size_t)at == j
                        : gsl_interp_eval(spline, from->q, unit, q, NULL);
        }
        unit[j] = 0.0;
    }
    gsl_interp_free(spline);
    free(unit);
    if (status != TSR_OK)
        free(out);
    else
        *matrix = out;
    return status;
}

/* Estimate of the largest interpolation error within the q of `to`, in units of
 * the nearest sigma. q, y: scratch. */
static double find_error(const tsr_saxs *from, const tsr_saxs *to,
                         const double *curve, double c, double *q, double *y)
{
    size_t n = 0, at = 0;
    double worst = 0.0;
    for (int k = 0; k < from->n; k += 2, n++)
        q[n] = from->q[k], y[n] = curve[k];
    gsl_interp *spline = gsl_interp_alloc(gsl_interp_cspline, n);
    if (spline == NULL)
        return (double)NAN;
    gsl_interp_init(spline, q, y, n);
    for (int k = 1; k < from->n; k += 2) {
        if (from->q[k] < to->q[0] || from->q[k] > to->q[to->n - 1] ||
            from->q[k] > q[n - 1])
            continue;
        while (at + 1 < (size_t)to->n && to->q[at] < from->q[k])
            at++;
        double e = gsl_interp_eval(spline, q, y, from->q[k], NULL) - curve[k];
        worst = fmax(worst, fabs(c * e) / to->sigma[at]);
    }
    gsl_interp_free(spline);
    return worst / 16.0;
}

tsr_status tsr_curve_operator_check(const tsr_saxs *from, const tsr_saxs *to,
                                    const double *curve, double c,
                                    double *error, tsr_err *err)
{
    const double most = 0.3; /* in units of sigma */
    int n_new = 0;
    for (int k = 0; k < to->n; k++)
        n_new += find_same(from, to->q[k]) < 0;
    *error = n_new == 0 ? 0.0 : HUGE_VAL; /* until estimated, or for good if
                                             there are too few q for a spline
                                             through half of them */
    if (n_new > 0 && from->n >= 7) {
        double *q = malloc(2 * (size_t)from->n * sizeof *q);
        TSR_TRY(tsr_allocated(q, err));
        *error = find_error(from, to, curve, c, q, q + from->n);
        free(q);
    }
    if (*error <= most)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "the %d values of q of the run are too far apart to "
                    "interpolate the curve for '%s': the error would be %.2g "
                    "of its sigma (%.2g are allowed); run with these data",
                    from->n, to->path, *error, most);
}

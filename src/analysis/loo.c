/* Leave-one-out predictive density and Pareto-smoothed importance weights.
 *
 * Only evenly spread draws of a long run are used: more than some thousand
 * draws would increase the cost but hardly the precision. */
#include "analysis/loo.h"

#include "core/parallel.h"

#include "analysis/summary.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Pareto-smoothed importance weights ----
 *
 * The shape k of the tail is estimated by the method of Zhang & Stephens 2009,
 * with the weak prior of Vehtari et al. The largest weights are then replaced
 * by quantiles of the fitted distribution. Weights with k above 0.7 are
 * unreliable. */

typedef struct {
    double log_weight;
    long at;
} entry;

static int by_weight(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->log_weight != y->log_weight)
        return x->log_weight < y->log_weight ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Mean of log(1 - b x). */
static double mean_log1p(double b, int n, const double *x)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += log1p(-b * x[i]);
    return sum / n;
}

/* Fits shape k and scale of a generalised Pareto distribution to x [n],
 * ascending: posterior mean of Zhang & Stephens 2009 (Technometrics 51, 316). A
 * prior worth 10 observations draws k towards 0.5 (Vehtari et al., app. C). */
static tsr_status fit_pareto(int n, const double *x, double *k, double *scale,
                             tsr_err *err)
{
    const double prior_b = 3.0, prior_k = 10.0;
    const int m = 30 + (int)sqrt((double)n);
    double *b = malloc(2 * (size_t)m * sizeof *b), *fit = b + m;
    TSR_TRY(tsr_allocated(b, err));
    const double quartile = x[(int)(n / 4.0 + 0.5) - 1];
    for (int j = 0; j < m; j++) {
        b[j] =
            (1.0 - sqrt(m / (j + 0.5))) / (prior_b * quartile) + 1.0 / x[n - 1];
        double shape = mean_log1p(b[j], n, x);
        fit[j] = n * (log(-b[j] / shape) - shape - 1.0);
    }
    double sum = 0.0, mean = 0.0;
    for (int j = 0; j < m; j++) {
        double all = 0.0;
        for (int i = 0; i < m; i++)
            all += exp(fit[i] - fit[j]);
        if (1.0 / all >= 10.0 * DBL_EPSILON) {
            sum += 1.0 / all;
            mean += b[j] / all;
        }
    }
    mean /= sum;
    *k = mean_log1p(mean, n, x);
    *scale = -*k / mean;
    *k = (n * *k + prior_k * 0.5) / (n + prior_k);
    free(b);
    return TSR_OK;
}

/* Replaces the n largest log weights, which exceed `cut`, by quantiles of the
 * fitted distribution. */
static tsr_status smooth_tail(int n, entry *tail, double cut, double *k,
                              tsr_err *err)
{
    const double floor_weight = exp(cut);
    double scale = 0.0;
    double *x = malloc((size_t)n * sizeof *x);
    TSR_TRY(tsr_allocated(x, err));
    for (int i = 0; i < n; i++)
        x[i] = exp(tail[i].log_weight) - floor_weight;
    tsr_status status = fit_pareto(n, x, k, &scale, err);
    for (int i = 0; i < n && status == TSR_OK && isfinite(*k); i++) {
        double p = (i + 0.5) / n;
        double above = fabs(*k) < 1e-12 ? -scale * log1p(-p)
                                        : scale * expm1(-*k * log1p(-p)) / *k;
        tail[i].log_weight = fmin(log(floor_weight + above), 0.0);
    }
    free(x);
    return status;
}

static tsr_status normalise(long n, double *log_weight, tsr_err *err)
{
    double top = -HUGE_VAL, sum = 0.0;
    for (long i = 0; i < n; i++) {
        if (isnan(log_weight[i]) || log_weight[i] == HUGE_VAL)
            return tsr_fail(err, TSR_E_NUMERIC, "the weight of draw %ld is %g",
                            i, exp(log_weight[i]));
        top = fmax(top, log_weight[i]);
    }
    if (!(top > -HUGE_VAL))
        return tsr_fail(err, TSR_E_NUMERIC, "no draw has a weight above 0");
    for (long i = 0; i < n; i++)
        sum += exp(log_weight[i] - top);
    for (long i = 0; i < n; i++)
        log_weight[i] -= top + log(sum);
    return TSR_OK;
}

tsr_status tsr_psis_smooth(long n, double *log_weight, tsr_psis *psis,
                           tsr_err *err)
{
    enum { LEAST_TAIL = 5 };
    const double equal = 1e-9; /* nat */
    *psis = (tsr_psis){.pareto_k = HUGE_VAL};
    tsr_status status = normalise(n, log_weight, err);
    TSR_TRY(status);
    entry *sorted = malloc((size_t)n * sizeof *sorted);
    TSR_TRY(tsr_allocated(sorted, err));
    for (long i = 0; i < n; i++)
        sorted[i] = (entry){log_weight[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_weight);
    const double top = sorted[n - 1].log_weight;
    const long tail = (long)ceil(fmin((double)n / 5.0, 3.0 * sqrt((double)n)));
    if (top - sorted[0].log_weight < equal) {
        psis->pareto_k = -HUGE_VAL;
    } else if (tail < n) {
        const double cut =
            fmax(sorted[n - tail - 1].log_weight - top, log(DBL_MIN));
        for (long i = 0; i < n; i++)
            sorted[i].log_weight -= top;
        long first = n;
        while (first > 0 && sorted[first - 1].log_weight > cut)
            first--;
        psis->n_tail = (int)(n - first);
        if (psis->n_tail >= LEAST_TAIL)
            status = smooth_tail(psis->n_tail, sorted + first, cut,
                                 &psis->pareto_k, err);
        for (long i = 0; i < n; i++)
            log_weight[sorted[i].at] = sorted[i].log_weight;
    }
    free(sorted);
    TSR_THEN(status, normalise(n, log_weight, err));
    double square = 0.0;
    for (long i = 0; i < n; i++)
        square += exp(2.0 * log_weight[i]);
    psis->ess = 1.0 / square;
    return status;
}

enum { MOST_DRAWS = 4000 };
static const double reliable_k = 0.7;

void tsr_loo_clear(tsr_loo *loo)
{
    free(loo->point);
    *loo = (tsr_loo){.elpd = (double)NAN, .error = (double)NAN};
}

/* log of sum exp(x + log_weight), for weights with sum 1. */
static double log_mean(long n, const double *x, const double *log_weight)
{
    double top = -HUGE_VAL, sum = 0.0;
    for (long i = 0; i < n; i++)
        top = fmax(top, x[i] + log_weight[i]);
    for (long i = 0; i < n; i++)
        sum += exp(x[i] + log_weight[i] - top);
    return top + log(sum);
}

/* Points of a data set, each with its log densities given all points and given
 * all other points, nat, and the Pareto k of the latter. */
typedef struct {
    long n_draw;
    int n;
    const double *log_lik;             /* [n_draw][n] */
    double *with, *without, *pareto_k; /* [n] out */
} points;

static tsr_status leave_out(void *context, int k, int thread, tsr_err *err)
{
    const points *p = context;
    const long n = p->n_draw;
    double *value = calloc(2 * (size_t)n + 1, sizeof *value);
    double *weight = value + n;
    tsr_psis psis;
    (void)thread;
    TSR_TRY(tsr_allocated(value, err));
    for (long i = 0; i < n; i++) {
        value[i] = p->log_lik[(size_t)i * (size_t)p->n + (size_t)k];
        weight[i] = -log((double)n);
    }
    p->with[k] = log_mean(n, value, weight);
    for (long i = 0; i < n; i++)
        weight[i] = -value[i];
    const tsr_status status = tsr_psis_smooth(n, weight, &psis, err);
    p->without[k] = log_mean(n, value, weight);
    p->pareto_k[k] = psis.pareto_k;
    free(value);
    return status;
}

/* sqrt(n var) of n numbers, the standard error of their sum. */
static double error_of_sum(int n, const double *x)
{
    double mean = 0.0, square = 0.0;
    for (int k = 0; k < n; k++)
        mean += x[k] / n;
    for (int k = 0; k < n; k++)
        square += (x[k] - mean) * (x[k] - mean);
    return n > 1 ? sqrt(square * n / (n - 1)) : (double)NAN;
}

/* Adds n points with log densities log_lik [loo->n_draw][n]. */
static tsr_status add_points(tsr_loo *loo, int n, const double *log_lik,
                             tsr_err *err)
{
    double *more = realloc(loo->point, (size_t)(loo->n + n + 1) * sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    loo->point = more;
    double *with = calloc(2 * (size_t)n + 1, sizeof *with);
    points p = {loo->n_draw, n, log_lik, with, more + loo->n, with + n};
    tsr_status status = tsr_allocated(with, err);
    TSR_THEN(status, tsr_parallel_try(n, tsr_parallel_processors(), leave_out,
                                      &p, err));
    for (int k = 0; k < n && status == TSR_OK; k++) {
        loo->elpd += p.without[k];
        loo->p_loo += with[k] - p.without[k];
        loo->worst_k = fmax(loo->worst_k, p.pareto_k[k]);
        loo->n_bad += p.pareto_k[k] > reliable_k;
    }
    loo->n += status == TSR_OK ? n : 0;
    if (status == TSR_OK)
        loo->error = error_of_sum(loo->n, loo->point);
    free(with);
    return status;
}

tsr_status tsr_loo_compute(long n_draw, int n, const double *log_lik,
                           tsr_loo *loo, tsr_err *err)
{
    *loo = (tsr_loo){.n_draw = n_draw, .worst_k = -HUGE_VAL};
    return add_points(loo, n, log_lik, err);
}

/* ---- a run ---- */

tsr_status tsr_loo_make(tsr_trace_reader *reader, tsr_loo *loo, tsr_err *err)
{
    const tsr_trace_group group = TSR_TRACE_LOG_LIKELIHOOD;
    const char *const *name;
    tsr_status status = TSR_OK;
    const int n_name = tsr_trace_variables(reader, group, &name);
    *loo = (tsr_loo){.worst_k = -HUGE_VAL};
    for (int i = 0; i < n_name && status == TSR_OK; i++) {
        int one, n = 0;
        tsr_thinned draws;
        (void)tsr_trace_shape(reader, group, name[i], &one, &one, &n, NULL);
        status = tsr_thinned_get(reader, group, name[i], MOST_DRAWS, 0, n,
                                 &draws, err);
        loo->n_draw = (long)draws.n_chain * draws.n_kept;
        if (status == TSR_OK && loo->n_draw > 0)
            status = add_points(loo, n, draws.value, err);
        free(draws.value);
    }
    /* a single point has no other point to predict it */
    if (loo->n < 2)
        tsr_loo_clear(loo);
    return status;
}

int tsr_loo_compare(const tsr_loo *a, const tsr_loo *b, double *difference,
                    double *error)
{
    *difference = *error = (double)NAN;
    if (a->n != b->n || a->n == 0 || !isfinite(a->elpd) || !isfinite(b->elpd))
        return 0;
    double *each = calloc((size_t)a->n, sizeof *each);
    if (each == NULL)
        return 0;
    for (int k = 0; k < a->n; k++)
        each[k] = b->point[k] - a->point[k];
    *difference = b->elpd - a->elpd;
    *error = error_of_sum(a->n, each);
    free(each);
    return 1;
}

void tsr_loo_put(const tsr_loo *loo, const char *name, tsr_json *json)
{
    if (loo->n == 0) {
        tsr_json_text(json, name, NULL);
        return;
    }
    tsr_json_object(json, name);
    tsr_json_members(
        json, "elpd %g error %g p_loo %g worst_k %g n_bad %d points %d",
        loo->elpd, loo->error, loo->p_loo, loo->worst_k, loo->n_bad, loo->n);
    tsr_json_close(json);
}

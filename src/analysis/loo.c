/* Leaving out one point at a time. Of a long run evenly chosen draws are used,
 * since the answer does not grow better with thousands more while its cost
 * does. */
#include "analysis/loo.h"

#include "analysis/psis.h"
#include "analysis/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWS = 4000 };
static const double reliable_k = 0.7;

void tsr_loo_clear(tsr_loo *loo)
{
    free(loo->point);
    *loo = (tsr_loo){.elpd = (double)NAN, .error = (double)NAN};
}

static tsr_status no_memory(tsr_err *err)
{
    return tsr_fail(err, TSR_E_NOMEM, "no memory to leave out points");
}

/* log of the mean of exp(x + weight), weights of sum 1. */
static double log_mean(long n, const double *x, const double *log_weight)
{
    double top = -HUGE_VAL, sum = 0.0;
    for (long i = 0; i < n; i++)
        top = fmax(top, x[i] + log_weight[i]);
    for (long i = 0; i < n; i++)
        sum += exp(x[i] + log_weight[i] - top);
    return top + log(sum);
}

/* One point: value [n_draw] its log densities, weight [n_draw] scratch. */
static tsr_status leave_out(tsr_loo *loo, int k, const double *value,
                            double *weight, tsr_err *err)
{
    tsr_psis psis;
    const long n = loo->n_draw;
    for (long i = 0; i < n; i++)
        weight[i] = -log((double)n);
    const double with = log_mean(n, value, weight);
    for (long i = 0; i < n; i++)
        weight[i] = -value[i];
    TSR_TRY(tsr_psis_smooth(n, weight, &psis, err));
    loo->point[k] = log_mean(n, value, weight);
    loo->p_loo += with - loo->point[k];
    loo->worst_k = fmax(loo->worst_k, psis.pareto_k);
    loo->n_bad += psis.pareto_k > reliable_k;
    return TSR_OK;
}

/* sqrt(n var) of n numbers. */
static double error_of_sum(int n, const double *x)
{
    double mean = 0.0, square = 0.0;
    for (int k = 0; k < n; k++)
        mean += x[k] / n;
    for (int k = 0; k < n; k++)
        square += (x[k] - mean) * (x[k] - mean);
    return n > 1 ? sqrt(square * n / (n - 1)) : (double)NAN;
}

tsr_status tsr_loo_of(long n_draw, int n, const double *log_lik, tsr_loo *loo,
                      tsr_err *err)
{
    *loo = (tsr_loo){.n = n, .n_draw = n_draw, .worst_k = -HUGE_VAL};
    loo->point = calloc((size_t)n + 1, sizeof *loo->point);
    double *value = calloc(2 * (size_t)n_draw + 1, sizeof *value);
    tsr_status status =
        loo->point == NULL || value == NULL ? no_memory(err) : TSR_OK;
    for (int k = 0; k < n && status == TSR_OK; k++) {
        for (long i = 0; i < n_draw; i++)
            value[i] = log_lik[(size_t)i * (size_t)n + (size_t)k];
        status = leave_out(loo, k, value, value + n_draw, err);
        loo->elpd += status == TSR_OK ? loo->point[k] : 0.0;
    }
    if (status == TSR_OK)
        loo->error = error_of_sum(n, loo->point);
    free(value);
    return status;
}

/* ---- of a run ---- */

/* The draws of one variable of n points, which become the points from `at` on
 * of `width`: all [draws][width]. */
static void place(const tsr_thinned *t, int at, int width, double *all)
{
    const size_t rows = (size_t)t->n_chain * (size_t)t->n_kept;
    for (size_t i = 0; i < rows; i++)
        memcpy(all + i * (size_t)width + at, t->value + i * (size_t)t->n,
               (size_t)t->n * sizeof *all);
}

/* How many points the variables have together; 0 where there is none, or they
 * differ in draws. */
static int count_points(tsr_trace_reader *reader)
{
    const char *const *name;
    int total = 0, chains = 0, draws = 0;
    const int n_name =
        tsr_trace_variables(reader, TSR_TRACE_LOG_LIKELIHOOD, &name);
    for (int i = 0; i < n_name; i++) {
        int n_chain, n_draw, n;
        if (tsr_trace_shape(reader, TSR_TRACE_LOG_LIKELIHOOD, name[i], &n_chain,
                            &n_draw, &n, NULL) != TSR_OK ||
            n_chain < 1 || n_draw < 1 ||
            (i > 0 && (n_chain != chains || n_draw != draws)))
            return 0;
        chains = n_chain;
        draws = n_draw;
        total += n;
    }
    return total;
}

tsr_status tsr_loo_make(tsr_trace_reader *reader, tsr_loo *loo, tsr_err *err)
{
    const char *const *name;
    double *all = NULL;
    size_t rows = 0;
    int at = 0;
    tsr_status status = TSR_OK;
    *loo = (tsr_loo){.elpd = (double)NAN, .error = (double)NAN};
    const int n_name =
        tsr_trace_variables(reader, TSR_TRACE_LOG_LIKELIHOOD, &name);
    const int width = count_points(reader);
    /* without its one point, a run has nothing that could predict it */
    for (int i = 0; i < n_name && width > 1 && status == TSR_OK; i++) {
        tsr_thinned t = {.value = NULL};
        int n_chain, n_draw, n;
        status = tsr_trace_shape(reader, TSR_TRACE_LOG_LIKELIHOOD, name[i],
                                 &n_chain, &n_draw, &n, err);
        TSR_THEN(status, tsr_thinned_get(reader, TSR_TRACE_LOG_LIKELIHOOD,
                                         name[i], MOST_DRAWS, 0, n, &t, err));
        rows = (size_t)t.n_chain * (size_t)t.n_kept;
        if (status == TSR_OK && all == NULL &&
            (all = malloc(rows * (size_t)width * sizeof *all)) == NULL)
            status = no_memory(err);
        if (status == TSR_OK)
            place(&t, at, width, all);
        at += n;
        free(t.value);
    }
    if (status == TSR_OK && all != NULL)
        status = tsr_loo_of((long)rows, width, all, loo, err);
    free(all);
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
    tsr_json_number(json, "elpd", loo->elpd);
    tsr_json_number(json, "error", loo->error);
    tsr_json_number(json, "p_loo", loo->p_loo);
    tsr_json_number(json, "worst_k", loo->worst_k);
    tsr_json_integer(json, "n_bad", loo->n_bad);
    tsr_json_integer(json, "points", loo->n);
    tsr_json_close(json);
}

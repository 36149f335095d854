/* Leaving out one point at a time. Draws are read in blocks, and of a long run
 * evenly chosen ones are kept, since the answer does not grow better with
 * thousands of draws more while its cost does. */
#include "analysis/loo.h"

#include "analysis/psis.h"

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

/* Which draws are kept: every `every`-th. */
typedef struct {
    int n_chain, n_draw, every, n_kept;
} choice;

static choice choose(int n_chain, int n_draw)
{
    const long total = (long)n_chain * n_draw;
    choice c = {n_chain, n_draw, (int)((total + MOST_DRAWS - 1) / MOST_DRAWS),
                0};
    c.n_kept = (n_draw + c.every - 1) / c.every;
    return c;
}

/* The kept draws of a variable of n points, which become the points from `at`
 * on of `width`. all [n_chain][n_kept][width]. */
static tsr_status gather(tsr_trace_reader *reader, const char *name,
                         const choice *c, int n, int at, int width, double *all,
                         tsr_err *err)
{
    double *one = malloc((size_t)c->n_chain * (size_t)n * sizeof *one);
    tsr_status status = one == NULL ? no_memory(err) : TSR_OK;
    for (int d = 0; d < c->n_kept && status == TSR_OK; d++) {
        const tsr_trace_part part = {d * c->every, 1, 0, n};
        status = tsr_trace_get_part(reader, TSR_TRACE_LOG_LIKELIHOOD, name,
                                    &part, one, err);
        for (int k = 0; k < c->n_chain && status == TSR_OK; k++)
            memcpy(all +
                       ((size_t)k * (size_t)c->n_kept + (size_t)d) *
                           (size_t)width +
                       at,
                   one + (size_t)k * (size_t)n, (size_t)n * sizeof *one);
    }
    free(one);
    return status;
}

/* How many points the variables have together, and which draws are kept; 0
 * points where there is nothing to leave out. */
static int count_points(tsr_trace_reader *reader, choice *c)
{
    const char *const *name;
    int total = 0;
    const int n_name =
        tsr_trace_variables(reader, TSR_TRACE_LOG_LIKELIHOOD, &name);
    for (int i = 0; i < n_name; i++) {
        int n_chain, n_draw, n;
        if (tsr_trace_shape(reader, TSR_TRACE_LOG_LIKELIHOOD, name[i], &n_chain,
                            &n_draw, &n, NULL) != TSR_OK ||
            n_chain < 1 || n_draw < 1 ||
            (total > 0 && (n_chain != c->n_chain || n_draw != c->n_draw)))
            return 0;
        *c = choose(n_chain, n_draw);
        total += n;
    }
    return total;
}

tsr_status tsr_loo_make(tsr_trace_reader *reader, tsr_loo *loo, tsr_err *err)
{
    const char *const *name;
    choice c = {0};
    int at = 0;
    *loo = (tsr_loo){.elpd = (double)NAN, .error = (double)NAN};
    const int n_name =
        tsr_trace_variables(reader, TSR_TRACE_LOG_LIKELIHOOD, &name);
    const int width = count_points(reader, &c);
    if (width == 0)
        return TSR_OK;
    const size_t rows = (size_t)c.n_chain * (size_t)c.n_kept;
    double *all = malloc(rows * (size_t)width * sizeof *all);
    tsr_status status = all == NULL ? no_memory(err) : TSR_OK;
    for (int i = 0; i < n_name && status == TSR_OK; i++) {
        int n_chain, n_draw, n;
        status = tsr_trace_shape(reader, TSR_TRACE_LOG_LIKELIHOOD, name[i],
                                 &n_chain, &n_draw, &n, err);
        if (status == TSR_OK)
            status = gather(reader, name[i], &c, n, at, width, all, err);
        at += n;
    }
    if (status == TSR_OK)
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

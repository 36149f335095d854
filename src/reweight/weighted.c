/* Weights stretch the ladder of the ordered draws: each takes as much of it as
 * it weighs, and a quantile is read at that height, linearly between the
 * middles of the steps. GSL has weighted means, but no weighted quantiles. */
#include "reweight/weighted.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double value, weight;
} entry;

static int by_value(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

static double quantile(long n, const entry *e, double p)
{
    double before = 0.0, at = 0.0;
    for (long i = 0; i < n; i++) {
        double middle = before + 0.5 * e[i].weight;
        if (middle >= p) {
            if (i == 0)
                return e[0].value;
            double part = (p - at) / (middle - at);
            return e[i - 1].value + part * (e[i].value - e[i - 1].value);
        }
        at = middle;
        before += e[i].weight;
    }
    return e[n - 1].value;
}

tsr_status tsr_weighted_make(long n, const double *value,
                             const double *log_weight, tsr_weighted *out,
                             tsr_err *err)
{
    const double nan = (double)NAN;
    long n_used = 0;
    double sum = 0.0, mean = 0.0, square = 0.0;
    int is_finite = 1;
    *out = (tsr_weighted){nan, nan, nan, nan, nan};
    entry *e = malloc(((size_t)n + 1) * sizeof *e);
    if (e == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %ld draws", n);
    for (long i = 0; i < n; i++) {
        double w = log_weight != NULL ? exp(log_weight[i]) : 1.0 / (double)n;
        if (!(w > 0.0))
            continue;
        is_finite &= isfinite(value[i]) != 0;
        e[n_used++] = (entry){value[i], w};
        sum += w;
        mean += w * value[i];
    }
    mean /= sum;
    if (n_used > 0 && is_finite) {
        for (long i = 0; i < n_used; i++) {
            e[i].weight /= sum;
            square += e[i].weight * (e[i].value - mean) * (e[i].value - mean);
        }
        qsort(e, (size_t)n_used, sizeof *e, by_value);
        *out =
            (tsr_weighted){mean, sqrt(square), quantile(n_used, e, 0.05),
                           quantile(n_used, e, 0.5), quantile(n_used, e, 0.95)};
    }
    free(e);
    return TSR_OK;
}

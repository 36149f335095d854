/* Chains that have converged visit the same values. Each question here finds a
 * way in which they do not: a chain that never moves, one whose middle 90 %
 * lies apart from all others, two halves of the chains with different
 * distributions (Kolmogorov and Smirnov's test, by as many draws as are
 * independent). */
#include "analysis/diagnose_checks.h"

#include "analysis/convergence.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int tsr_longest_rest(int n_draw, const double *value)
{
    int longest = 0, run = 0;
    for (int d = 0; d < n_draw; d++) {
        run = d > 0 && value[d] == value[d - 1] ? run + 1 : 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

typedef struct {
    double low, high;
} interval;

/* The middle 90 %; x is sorted on the way. */
static interval middle_of(double *x, size_t n)
{
    gsl_sort(x, 1, n);
    return (interval){x[(size_t)(0.05 * (double)(n - 1))],
                      x[(size_t)ceil(0.95 * (double)(n - 1))]};
}

double tsr_chain_gap(int n_chain, int n_draw, const double *value, int c)
{
    const size_t row = (size_t)n_draw, n = (size_t)n_chain * row;
    double *copy = n_chain > 1 && n_draw > 0 ? malloc(n * sizeof *copy) : NULL;
    if (copy == NULL)
        return (double)NAN;
    const size_t at = (size_t)c * row;
    memcpy(copy, value + at, row * sizeof *copy);
    memcpy(copy + row, value, at * sizeof *copy);
    memcpy(copy + row + at, value + at + row, (n - at - row) * sizeof *copy);
    const interval own = middle_of(copy, row);
    const interval rest = middle_of(copy + row, n - row);
    free(copy);
    const double width = fmax(own.high - own.low, rest.high - rest.low);
    const double rounding = 1e-13 * fmax(fabs(own.high), fabs(own.low));
    if (own.low > rest.high + rounding)
        return (own.low - rest.high) / width;
    if (own.high < rest.low - rounding)
        return (own.high - rest.low) / width;
    return 0.0;
}

/* ---- halves ---- */

/* Of sorted samples. */
static double largest_distance(const double *a, size_t n_a, const double *b,
                               size_t n_b)
{
    double largest = 0.0;
    for (size_t i = 0, k = 0; i < n_a && k < n_b;) {
        const double x = fmin(a[i], b[k]);
        while (i < n_a && a[i] <= x)
            i++;
        while (k < n_b && b[k] <= x)
            k++;
        largest = fmax(largest,
                       fabs((double)i / (double)n_a - (double)k / (double)n_b));
    }
    return largest;
}

/* Independent draws of a half; where none of its chains moves, one of each. */
static double worth(const tsr_convergence *half, int n_chain)
{
    return isnan(half->ess_bulk) ? n_chain : half->ess_bulk;
}

/* P(D > distance) of Kolmogorov's distribution for n = n_a n_b / (n_a + n_b),
 * with the correction of Stephens 1970 (J. R. Stat. Soc. B 32, 115). */
static double kolmogorov_p(double distance, double n)
{
    const double x = distance * (sqrt(n) + 0.12 + 0.11 / sqrt(n));
    double sum = 0.0;
    if (isnan(x))
        return x;
    if (x < 0.3) /* there the series is 1 to 1e-5, and converges slowly */
        return 1.0;
    for (int k = 1; k <= 100; k++) {
        const double term = exp(-2.0 * k * k * x * x);
        sum += k % 2 == 1 ? term : -term;
        if (term < 1e-16)
            break;
    }
    return fmin(1.0, 2.0 * sum);
}

tsr_status tsr_half_compare_make(int n_chain, int n_draw, const double *value,
                                 tsr_half_compare *out, tsr_err *err)
{
    /* of one chain, the two halves of its draws are two chains */
    const int rows = n_chain > 1 ? n_chain : 2;
    const int length = n_chain > 1 ? n_draw : n_draw / 2;
    const int first = (rows + 1) / 2;
    const size_t n_a = (size_t)first * (size_t)length;
    const size_t n_b = (size_t)(rows - first) * (size_t)length;
    tsr_convergence a, b;

    *out = (tsr_half_compare){(double)NAN, (double)NAN};
    if (length < 1)
        return TSR_OK;
    double *copy = malloc((n_a + n_b) * sizeof *copy);
    if (copy == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to compare %d chains",
                        n_chain);
    memcpy(copy, value, (n_a + n_b) * sizeof *copy);
    tsr_status status = tsr_convergence_make(first, length, copy, &a, err);
    TSR_THEN(status,
             tsr_convergence_make(rows - first, length, copy + n_a, &b, err));
    if (status == TSR_OK && !isnan(a.mean) && !isnan(b.mean)) {
        gsl_sort(copy, 1, n_a);
        gsl_sort(copy + n_a, 1, n_b);
        out->distance = largest_distance(copy, n_a, copy + n_a, n_b);
        const double w_a = worth(&a, first), w_b = worth(&b, rows - first);
        out->p = kolmogorov_p(out->distance, w_a * w_b / (w_a + w_b));
    }
    free(copy);
    return status;
}

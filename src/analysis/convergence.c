/* R-hat and effective sample size.
 *
 * Both compare chains with each other, and early with late draws of a chain.
 * Both are computed from the normal scores of ranks, so that they are also
 * defined for distributions without a mean. Means, variances and Fourier
 * transforms are GSL's. A trace may hold millions of draws, so the draws are
 * sorted only once: the order of the half chains, and of the distances from the
 * median, follow without another sort. */
#include "analysis/convergence.h"

#include "core/pool.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fft_halfcomplex.h>
#include <gsl/gsl_fft_real.h>
#include <gsl/gsl_statistics_double.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* With fewer draws, half a chain has no autocovariance at lag 1. */
enum { MIN_DRAWS = 4 };

/* Arrays for one variable. A "half" is half a chain: the statistics use 2
 * n_chain halves of n_draw / 2 draws. If n_draw is odd, the middle draw is left
 * out. */
typedef struct {
    tsr_pool pool;
    size_t n;       /* n_chain * n_draw */
    size_t n_half;  /* number of halves */
    size_t length;  /* draws of a half */
    size_t n_fft;   /* at least 2 length, so that the transform does not wrap
                       around */
    double *sorted; /* [n] */
    double *halves; /* [n_half][length] */
    double *work;   /* [n_half][length] scores or indicators of the draws */
    double *fft;    /* [n_fft] */
    double *power;  /* [n_fft] */
    size_t *order;  /* [n] indices of the draws in ascending order of value;
                       after cut_in_halves indices into `halves` */
    size_t *spare;  /* [n] */
    gsl_fft_real_wavetable *forward;
    gsl_fft_halfcomplex_wavetable *back;
    gsl_fft_real_workspace *space;
} arrays;

static void arrays_clear(arrays *a)
{
    tsr_pool_clear(&a->pool);
    if (a->forward != NULL)
        gsl_fft_real_wavetable_free(a->forward);
    if (a->back != NULL)
        gsl_fft_halfcomplex_wavetable_free(a->back);
    if (a->space != NULL)
        gsl_fft_real_workspace_free(a->space);
}

/* The least length >= n of the form 2^k times 1, 3, 5, 9 or 15. */
static size_t fft_length(size_t n)
{
    static const size_t odd[] = {1, 3, 5, 9, 15};
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        size_t at = 2 * odd[i];
        while (at < n)
            at *= 2;
        least = at < least ? at : least;
    }
    return least;
}

/* Returns 0 when out of memory. Call arrays_clear in any case. */
static int arrays_make(arrays *a, size_t n_chain, size_t n_draw)
{
    *a = (arrays){.n = n_chain * n_draw,
                  .n_half = 2 * n_chain,
                  .length = n_draw / 2,
                  .n_fft = fft_length(n_draw)};
    if (a->n / n_draw != n_chain) /* the product overflowed */
        return 0;
    tsr_pool_array(&a->pool, a->sorted, a->n);
    tsr_pool_array(&a->pool, a->halves, a->n);
    tsr_pool_array(&a->pool, a->work, a->n);
    tsr_pool_array(&a->pool, a->fft, a->n_fft);
    tsr_pool_array(&a->pool, a->power, a->n_fft);
    tsr_pool_array(&a->pool, a->order, a->n);
    tsr_pool_array(&a->pool, a->spare, a->n);
    a->forward = gsl_fft_real_wavetable_alloc(a->n_fft);
    a->back = gsl_fft_halfcomplex_wavetable_alloc(a->n_fft);
    a->space = gsl_fft_real_workspace_alloc(a->n_fft);
    return !a->pool.failed && a->forward != NULL && a->back != NULL &&
           a->space != NULL;
}

/* ---- order ---- */

typedef struct {
    double value;
    size_t at;
} value_at;

static int by_value(const void *left, const void *right)
{
    const value_at *a = left, *b = right;
    return (a->value > b->value) - (a->value < b->value);
}

/* Fills a->order with the indices of x [a->n], ascending by value. Returns 0
 * when out of memory. */
static int sort_indices(arrays *a, const double *x)
{
    value_at *sorted = malloc(a->n * sizeof *sorted);
    if (sorted == NULL)
        return 0;
    for (size_t i = 0; i < a->n; i++)
        sorted[i] = (value_at){x[i], i};
    qsort(sorted, a->n, sizeof *sorted, by_value);
    for (size_t i = 0; i < a->n; i++)
        a->order[i] = sorted[i].at;
    free(sorted);
    return 1;
}

/* Fills a->halves, and turns a->order into the order of the draws in
 * a->halves. */
static void cut_in_halves(arrays *a, size_t n_draw, const double *value)
{
    const size_t length = a->length, second = n_draw - length;
    size_t n = 0;
    for (size_t c = 0; c < a->n_half / 2; c++) {
        double *to = a->halves + 2 * c * length;
        memcpy(to, value + c * n_draw, length * sizeof *to);
        memcpy(to + length, value + c * n_draw + second, length * sizeof *to);
    }
    for (size_t i = 0; i < a->n; i++) {
        const size_t c = a->order[i] / n_draw, d = a->order[i] % n_draw;
        if (d < length)
            a->order[n++] = 2 * c * length + d;
        else if (d >= second)
            a->order[n++] = (2 * c + 1) * length + d - second;
    }
}

/* The quantile p of sorted numbers. Because the interpolation starts at the
 * nearer neighbour, the quantile between two equal draws equals them exactly.
 * Markov chains repeat values, and the indicator x <= quantile must not depend
 * on a rounding error. */
static double quantile(const double *sorted, size_t n, double p)
{
    const double at = p * (double)(n - 1);
    const size_t below = (size_t)floor(at);
    const double part = at - (double)below;

    if (below + 1 >= n)
        return sorted[n - 1];
    const double step = sorted[below + 1] - sorted[below];
    return part < 0.5 ? sorted[below] + part * step
                      : sorted[below + 1] - (1.0 - part) * step;
}

/* Replaces x [n] by the normal scores of its ranks (Blom's offset 3/8), ties by
 * their average rank: equation 14 of the paper. order [n]: ascending order of
 * x. */
static void rank_normalise(size_t n, const size_t *order, double *x)
{
    for (size_t i = 0; i < n;) {
        const double first = x[order[i]];
        size_t end = i + 1;
        while (end < n && x[order[end]] == first)
            end++;
        /* The tied values have ranks i + 1 to end. */
        const double rank = 0.5 * (double)(i + 1 + end);
        const double score =
            gsl_cdf_ugaussian_Pinv((rank - 0.375) / ((double)n + 0.25));
        for (; i < end; i++)
            x[order[i]] = score;
    }
}

/* ---- moments ---- */

static int is_constant(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0])
            return 0;
    return 1;
}

/* Variance of the means of the halves, n - 1 in the denominator. */
static double variance_of_means(const arrays *a, const double *halves)
{
    for (size_t h = 0; h < a->n_half; h++)
        a->sorted[h] = gsl_stats_mean(halves + h * a->length, 1, a->length);
    return gsl_stats_variance(a->sorted, 1, a->n_half);
}

/* ---- R-hat and effective sample size ---- */

/* Split R-hat, equations 1 to 4 of the paper. If all halves are constant: NaN
 * (0/0) where they agree, else +inf. */
static double rhat_of(const arrays *a, const double *halves)
{
    const double n = (double)a->length;
    double within = 0.0;

    for (size_t h = 0; h < a->n_half; h++)
        within += gsl_stats_variance(halves + h * a->length, 1, a->length);
    within /= (double)a->n_half;
    return sqrt(variance_of_means(a, halves) / within + (n - 1.0) / n);
}

/* Nested R-hat: compares the variance of the groups' means with the variance
 * within groups, which is the variance between the halves of a group plus the
 * variance within these halves. */
static double rhat_of_groups(const arrays *a, size_t n_group,
                             const double *halves)
{
    const size_t each = a->n_half / n_group, length = a->length;
    double within = 0.0, *mean = a->sorted, *half_mean = a->sorted + n_group;

    for (size_t g = 0; g < n_group; g++) {
        const double *first = halves + g * each * length;
        for (size_t h = 0; h < each; h++) {
            half_mean[h] = gsl_stats_mean(first + h * length, 1, length);
            within += gsl_stats_variance(first + h * length, 1, length) /
                      (double)each;
        }
        within += gsl_stats_variance(half_mean, 1, each);
        mean[g] = gsl_stats_mean(half_mean, 1, each);
    }
    within /= (double)n_group;
    return sqrt(1.0 + gsl_stats_variance(mean, 1, n_group) / within);
}

/* Autocovariance (n in the denominator), averaged over the halves, into
 * a->power. Wiener-Khinchin theorem: the power spectra of the halves are added
 * before the inverse transform. */
static void autocovariance(arrays *a, const double *halves)
{
    const size_t n = a->n_fft;

    memset(a->power, 0, n * sizeof *a->power);
    for (size_t h = 0; h < a->n_half; h++) {
        const double *x = halves + h * a->length;
        const double mean = gsl_stats_mean(x, 1, a->length);
        memset(a->fft, 0, n * sizeof *a->fft);
        for (size_t i = 0; i < a->length; i++)
            a->fft[i] = x[i] - mean;
        gsl_fft_real_transform(a->fft, 1, n, a->forward, a->space);
        /* Half-complex format: real part of frequency 0, real and imaginary
         * parts of frequencies 1, 2, ..., real part of frequency n / 2. */
        a->power[0] += a->fft[0] * a->fft[0];
        a->power[n - 1] += a->fft[n - 1] * a->fft[n - 1];
        for (size_t i = 1; i + 1 < n; i += 2)
            a->power[i] +=
                a->fft[i] * a->fft[i] + a->fft[i + 1] * a->fft[i + 1];
    }
    gsl_fft_halfcomplex_inverse(a->power, 1, n, a->back, a->space);
    const double scale = 1.0 / (double)(a->n_half * a->length);
    for (size_t i = 0; i < a->length; i++)
        a->power[i] *= scale;
}

/* Effective sample size, equations 10 to 13, for input that is not constant.
 * Autocorrelations are summed in pairs of an even and an odd lag. The true pair
 * sums are positive and decreasing (Geyer 1992), so the series stops before the
 * first pair sum below 0, and no pair sum may exceed the previous one. */
static double ess_of(arrays *a, const double *halves)
{
    const size_t length = a->length;
    const double n = (double)length;
    const double total = (double)a->n_half * n;

    autocovariance(a, halves);
    const double *acov = a->power;
    const double within = acov[0] * n / (n - 1.0);
    const double variance = acov[0] + variance_of_means(a, halves);
    if (!(variance > 0.0)) /* the square of the spread underflows */
        return (double)NAN;

    double even = 1.0, odd = 1.0 - (within - acov[1]) / variance;
    double pairs = 0.0; /* sum over the pairs included so far */
    double last = even + odd;
    size_t lag = 2;
    while (lag + 2 < length && even + odd > 0.0) {
        pairs += last;
        even = 1.0 - (within - acov[lag]) / variance;
        odd = 1.0 - (within - acov[lag + 1]) / variance;
        last = fmin(last, even + odd);
        lag += 2;
    }
    /* The last pair is not included. The even term of this pair counts once if
     * the term or the pair is positive, which stabilises the estimate for
     * antithetic chains. */
    const double tail = even > 0.0 || even + odd >= 0.0 ? even : 0.0;
    const double tau = -1.0 + 2.0 * pairs + tail;
    return total / fmax(tau, 1.0 / log10(total));
}

/* Effective sample size of the indicator x <= limit. */
static double ess_below(arrays *a, double limit)
{
    const size_t n = a->n_half * a->length;

    for (size_t i = 0; i < n; i++)
        a->work[i] = a->halves[i] <= limit ? 1.0 : 0.0;
    return is_constant(a->work, n) ? (double)n : ess_of(a, a->work);
}

/* Sets a->work to the rank scores of |x - median|, where x are the halves.
 * Below the median these distances fall with x, above the median they rise, so
 * merging the two sequences replaces a sort. */
static void fold(arrays *a)
{
    const size_t n = a->n_half * a->length, *order = a->order;
    double *x = a->work;

    const double median =
        n % 2 == 1
            ? a->halves[order[n / 2]]
            : 0.5 * (a->halves[order[n / 2 - 1]] + a->halves[order[n / 2]]);
    size_t above = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = fabs(a->halves[i] - median);
        above += a->halves[i] < median;
    }
    size_t below = above;
    for (size_t i = 0; i < n; i++) {
        const int is_below =
            above == n || (below > 0 && x[order[below - 1]] < x[order[above]]);
        a->spare[i] = is_below ? order[--below] : order[above++];
    }
    rank_normalise(n, a->spare, x);
}

static double larger(double a, double b)
{
    return a > b ? a : b; /* returns b where a is NaN */
}

static void diagnose(arrays *a, size_t n_group, tsr_convergence *out)
{
    const int has_groups = n_group > 1 && 2 * n_group < a->n_half;
    const size_t n = a->n_half * a->length;

    out->mcse = out->sd / sqrt(ess_of(a, a->halves));
    out->ess_tail = fmin(ess_below(a, out->q5), ess_below(a, out->q95));
    memcpy(a->work, a->halves, n * sizeof *a->work);
    rank_normalise(n, a->order, a->work);
    out->ess_bulk = ess_of(a, a->work);
    double single = rhat_of(a, a->work), groups = (double)NAN;
    if (has_groups)
        groups = rhat_of_groups(a, n_group, a->work);
    fold(a);
    /* where the folded version is constant, its NaN is ignored */
    single = larger(rhat_of(a, a->work), single);
    if (has_groups)
        groups = larger(rhat_of_groups(a, n_group, a->work), groups);
    out->rhat = has_groups ? groups : single;
    out->rhat_chains = has_groups ? single : (double)NAN;
}

tsr_status tsr_convergence_make(int n_group, int n_chain, int n_draw,
                                const double *value, tsr_convergence *out,
                                tsr_err *err)
{
    const double nan = (double)NAN;
    arrays a;

    *out = (tsr_convergence){nan, nan, nan, nan, nan, nan, nan, nan, nan, nan};
    if (n_chain < 1 || n_draw < 1)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "no draws to summarise: %d chains of %d draws", n_chain,
                        n_draw);
    const size_t chains = (size_t)n_chain, draws = (size_t)n_draw;
    const size_t n = chains * draws;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return TSR_OK;
    if (!arrays_make(&a, chains, draws) || !sort_indices(&a, value)) {
        arrays_clear(&a);
        return tsr_fail(err, TSR_E_NOMEM, "no memory to summarise %zu draws",
                        n);
    }
    for (size_t i = 0; i < n; i++)
        a.sorted[i] = value[a.order[i]];
    out->mean = gsl_stats_mean(value, 1, n);
    out->sd = gsl_stats_sd(value, 1, n);
    out->median = gsl_stats_median_from_sorted_data(a.sorted, 1, n);
    out->q5 = quantile(a.sorted, n, 0.05);
    out->q95 = quantile(a.sorted, n, 0.95);
    if (n_draw >= MIN_DRAWS && a.sorted[0] != a.sorted[n - 1]) {
        cut_in_halves(&a, draws, value);
        /* all values may be equal once the middle draw is left out */
        if (!is_constant(a.halves, a.n_half * a.length))
            diagnose(
                &a, n_group > 0 && n_chain % n_group == 0 ? (size_t)n_group : 0,
                out);
    }
    arrays_clear(&a);
    return TSR_OK;
}

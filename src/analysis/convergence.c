/* R-hat and effective sample size compare chains with each other and early with
 * late draws. Both are computed from ranks, so that they hold for distributions
 * without a mean, too: the draws are replaced by the normal scores of their
 * ranks. Means, variances, orders and Fourier transforms are GSL's. */
#include "analysis/convergence.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fft_halfcomplex.h>
#include <gsl/gsl_fft_real.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer draws a chain leave half a chain without a lag-1 autocovariance. */
enum { MIN_DRAWS = 4 };

/* Arrays for one variable. A "half" is half a chain: the statistics see
 * 2 n_chain chains of n_draw / 2 draws, without the middle draw of an odd
 * number. */
typedef struct {
    size_t n;       /* n_chain * n_draw */
    size_t n_half;  /* how many halves */
    size_t length;  /* of one half */
    size_t n_fft;   /* power of 2, >= 2 length: the FFT must not wrap around */
    double *sorted; /* [n] */
    double *place;  /* [n] where each of `sorted` stood */
    double *halves; /* [n_half][length] */
    double *work;   /* [n_half][length] a transformed version of it */
    double *fft;    /* [n_fft] */
    double *power;  /* [n_fft] */
} arrays;

/* Sets the arrays; the block that holds them all, caller frees; NULL: out of
 * memory. */
static double *arrays_new(arrays *a, size_t n_chain, size_t n_draw)
{
    *a = (arrays){.n = n_chain * n_draw,
                  .n_half = 2 * n_chain,
                  .length = n_draw / 2,
                  .n_fft = 2};
    if (a->n / n_draw != n_chain) /* the product wrapped around */
        return NULL;
    while (a->n_fft < 2 * a->length)
        a->n_fft *= 2;
    double *block = calloc(4 * a->n + 2 * a->n_fft, sizeof *block);
    if (block == NULL)
        return NULL;
    a->sorted = block;
    a->place = a->sorted + a->n;
    a->halves = a->place + a->n;
    a->work = a->halves + a->n;
    a->fft = a->work + a->n;
    a->power = a->fft + a->n_fft;
    return block;
}

/* ---- order ---- */

/* The quantile p of sorted numbers. Written as a step from the nearer
 * neighbour, so that between two equal draws it is that draw to the bit:
 * Markov chains repeat themselves, and the indicator x <= quantile must not
 * hang on a rounding error. */
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

/* Replaces x [n] by the normal scores of its ranks (Blom's offset 3/8), ties
 * by their average rank: equation 14 of the paper. */
static void rank_normalise(arrays *a, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        a->sorted[i] = x[i];
        a->place[i] = (double)i;
    }
    gsl_sort2(a->sorted, 1, a->place, 1, n);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && a->sorted[end] == a->sorted[i])
            end++;
        /* The tie has the ranks i + 1 to end. */
        const double rank = 0.5 * (double)(i + 1 + end);
        const double score =
            gsl_cdf_ugaussian_Pinv((rank - 0.375) / ((double)n + 0.25));
        for (; i < end; i++)
            x[(size_t)a->place[i]] = score;
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

/* Variance of the means of the halves, n - 1 below. */
static double variance_of_means(const arrays *a, const double *halves)
{
    for (size_t h = 0; h < a->n_half; h++)
        a->sorted[h] = gsl_stats_mean(halves + h * a->length, 1, a->length);
    return gsl_stats_variance(a->sorted, 1, a->n_half);
}

/* ---- R-hat and effective sample size ---- */

/* Equations 1 to 4 of the paper. Constant halves: 0/0, NaN, where all agree,
 * and +inf where they do not. */
static double rhat_of(const arrays *a, const double *halves)
{
    const double n = (double)a->length;
    double within = 0.0;

    for (size_t h = 0; h < a->n_half; h++)
        within += gsl_stats_variance(halves + h * a->length, 1, a->length);
    within /= (double)a->n_half;
    return sqrt(variance_of_means(a, halves) / within + (n - 1.0) / n);
}

/* Nested R-hat: the variance of the groups' means over the variance within
 * groups, that between a group's halves and that within them. */
static double rhat_of_groups(const arrays *a, size_t n_group,
                             const double *halves)
{
    const size_t each = a->n_half / n_group, length = a->length;
    double within = 0.0, *mean = a->sorted, *own = a->sorted + n_group;

    for (size_t g = 0; g < n_group; g++) {
        const double *first = halves + g * each * length;
        for (size_t h = 0; h < each; h++) {
            own[h] = gsl_stats_mean(first + h * length, 1, length);
            within += gsl_stats_variance(first + h * length, 1, length) /
                      (double)each;
        }
        within += gsl_stats_variance(own, 1, each);
        mean[g] = gsl_stats_mean(own, 1, each);
    }
    within /= (double)n_group;
    return sqrt(1.0 + gsl_stats_variance(mean, 1, n_group) / within);
}

/* Autocovariance (n below) averaged over the halves, by Wiener and Khinchin;
 * the halves' power spectra are added before the way back. In a->power. */
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
        gsl_fft_real_radix2_transform(a->fft, 1, n);
        /* Half-complex: real parts 0 .. n/2, imaginary parts from the end. */
        a->power[0] += a->fft[0] * a->fft[0];
        a->power[n / 2] += a->fft[n / 2] * a->fft[n / 2];
        for (size_t i = 1; i < n / 2; i++)
            a->power[i] +=
                a->fft[i] * a->fft[i] + a->fft[n - i] * a->fft[n - i];
    }
    gsl_fft_halfcomplex_radix2_inverse(a->power, 1, n);
    const double scale = 1.0 / (double)(a->n_half * a->length);
    for (size_t i = 0; i < a->length; i++)
        a->power[i] *= scale;
}

/* Effective sample size (equations 10 to 13), not for constant input. The
 * autocorrelations come in pairs (even lag, odd lag); Geyer (1992): their sums
 * are positive and fall, so the series ends before the first sum below 0, and
 * no sum may exceed the one before it. */
static double ess_of(arrays *a, const double *halves)
{
    const size_t length = a->length;
    const double n = (double)length;
    const double total = (double)a->n_half * n;

    autocovariance(a, halves);
    const double *acov = a->power;
    const double within = acov[0] * n / (n - 1.0);
    const double variance = acov[0] + variance_of_means(a, halves);
    if (!(variance > 0.0)) /* spread so small that its square is 0 */
        return (double)NAN;

    double even = 1.0, odd = 1.0 - (within - acov[1]) / variance;
    double pairs = 0.0; /* sum over the pairs that are in */
    double last = even + odd;
    size_t lag = 2;
    while (lag + 2 < length && even + odd > 0.0) {
        pairs += last;
        even = 1.0 - (within - acov[lag]) / variance;
        odd = 1.0 - (within - acov[lag + 1]) / variance;
        last = fmin(last, even + odd);
        lag += 2;
    }
    /* The last pair is not in; of it, the even term counts once where it is
     * positive or the pair is, which steadies the estimate for antithetic
     * chains. */
    const double tail = even > 0.0 || even + odd >= 0.0 ? even : 0.0;
    const double tau = -1.0 + 2.0 * pairs + tail;
    return total / fmax(tau, 1.0 / log10(total));
}

/* Of the indicator x <= limit. */
static double ess_below(arrays *a, double limit)
{
    const size_t n = a->n_half * a->length;

    for (size_t i = 0; i < n; i++)
        a->work[i] = a->halves[i] <= limit ? 1.0 : 0.0;
    return is_constant(a->work, n) ? (double)n : ess_of(a, a->work);
}

/* x becomes |x - median|, by ranks. */
static void fold(arrays *a)
{
    const size_t n = a->n_half * a->length;

    memcpy(a->work, a->halves, n * sizeof *a->work);
    gsl_sort(a->work, 1, n);
    const double median = gsl_stats_median_from_sorted_data(a->work, 1, n);
    for (size_t i = 0; i < n; i++)
        a->work[i] = fabs(a->halves[i] - median);
    rank_normalise(a, a->work, n);
}

static double larger(double a, double b)
{
    return a > b ? a : b; /* b where a is NaN */
}

static void diagnose(arrays *a, size_t n_group, tsr_convergence *out)
{
    const int has_groups = n_group > 1 && 2 * n_group < a->n_half;
    const size_t n = a->n_half * a->length;

    out->mcse = out->sd / sqrt(ess_of(a, a->halves));
    out->ess_tail = fmin(ess_below(a, out->q5), ess_below(a, out->q95));
    memcpy(a->work, a->halves, n * sizeof *a->work);
    rank_normalise(a, a->work, n);
    out->ess_bulk = ess_of(a, a->work);
    double single = rhat_of(a, a->work), groups = (double)NAN;
    if (has_groups)
        groups = rhat_of_groups(a, n_group, a->work);
    fold(a);
    /* the folded version may be constant */
    single = larger(rhat_of(a, a->work), single);
    if (has_groups)
        groups = larger(rhat_of_groups(a, n_group, a->work), groups);
    out->rhat = has_groups ? groups : single;
    out->rhat_chains = has_groups ? single : (double)NAN;
}

tsr_status tsr_convergence_make(int n_chain, int n_draw, const double *value,
                                tsr_convergence *out, tsr_err *err)
{
    return tsr_convergence_of_groups(0, n_chain, n_draw, value, out, err);
}

tsr_status tsr_convergence_of_groups(int n_group, int n_chain, int n_draw,
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
    double *block = arrays_new(&a, chains, draws);
    if (block == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to summarise %zu draws",
                        n);
    memcpy(a.sorted, value, n * sizeof *a.sorted);
    gsl_sort(a.sorted, 1, n);
    out->mean = gsl_stats_mean(value, 1, n);
    out->sd = gsl_stats_sd(value, 1, n);
    out->median = gsl_stats_median_from_sorted_data(a.sorted, 1, n);
    out->q5 = quantile(a.sorted, n, 0.05);
    out->q95 = quantile(a.sorted, n, 0.95);
    if (n_draw >= MIN_DRAWS && a.sorted[0] != a.sorted[n - 1]) {
        for (size_t c = 0; c < chains; c++) {
            double *to = a.halves + 2 * c * a.length;
            const double *from = value + c * draws;
            memcpy(to, from, a.length * sizeof *to);
            memcpy(to + a.length, from + draws - a.length,
                   a.length * sizeof *to);
        }
        /* Without the middle draw it may be constant after all. */
        if (!is_constant(a.halves, a.n_half * a.length))
            diagnose(
                &a, n_group > 0 && n_chain % n_group == 0 ? (size_t)n_group : 0,
                out);
    }
    free(block);
    return TSR_OK;
}

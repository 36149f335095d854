/* The noise of a curve, estimated without a model: the distance of each point
 * from a smooth line through its neighbours. */
#include "scattering/saxs.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

enum { WIDTH = 5, MIN_WINDOWS = 40 };

/* d = sum of w_j I_j over five points, where w are the weights of a divided
 * difference of fourth order, vanishes for any cubic. In general d is
 * proportional to the distance of a point from the cubic through two neighbours
 * on either side. For independent noise its variance is the sum of (w_j
 * sigma_j)^2, so t = d / root of the variance is standard normal, and |t| is
 * below 1 in 68.27 % of windows. The function returns the 68.27 % quantile of
 * |t|. This quantile is 1 on average, and outliers in a quarter of the windows
 * hardly change it. A window has every step-th point. Returns NaN for too few
 * points.
 *
 * For noise, the t of consecutive windows correlate by -0.8 and mostly change
 * sign. *is_signal out: 1 if fewer than 65 % change sign, because the curve
 * itself is no cubic over a window. t [n]: scratch. */
static double window_noise(int n, const double *q, const double *intensity,
                           const double *sigma, int step, double *t,
                           int *is_signal)
{
    const double quantile = 0.6827, noise_changes = 0.65;
    const int m = n - (WIDTH - 1) * step;
    int n_change = 0;
    if (m < MIN_WINDOWS)
        return (double)NAN;
    for (int k = 0; k < m; k++) {
        const int last = k + (WIDTH - 1) * step;
        double sum = 0.0, variance = 0.0;
        for (int j = k; j <= last; j += step) {
            double w = 1.0;
            for (int i = k; i <= last; i += step)
                w *= i == j ? 1.0 : (q[last] - q[k]) / (q[j] - q[i]);
            sum += w * intensity[j];
            variance += w * sigma[j] * w * sigma[j];
        }
        t[k] = sum / sqrt(variance);
        n_change += k >= step && t[k] * t[k - step] < 0.0;
    }
    *is_signal = n_change < noise_changes * (m - step);
    for (int k = 0; k < m; k++)
        t[k] = fabs(t[k]);
    gsl_sort(t, 1, (size_t)m);
    return t[(int)(quantile * m)];
}

tsr_saxs_noise tsr_saxs_noise_make(int n, const double *q,
                                   const double *intensity, const double *sigma)
{
    int is_signal[2] = {0, 0};
    double *t = malloc(((size_t)n + 1) * sizeof *t);
    tsr_saxs_noise z = {.n = t != NULL ? n : 0};
    z.next = window_noise(z.n, q, intensity, sigma, 1, t, &is_signal[0]);
    z.second = window_noise(z.n, q, intensity, sigma, 2, t, &is_signal[1]);
    free(t);
    if (is_signal[0] && z.next > 1.0) /* up to 1, the value is still an upper
                                         bound of the noise */
        z.next = (double)NAN;
    if (is_signal[1] || isnan(z.second))
        z.second = z.next;
    z.is_shared = z.next < 0.2 || z.second > (1.4 + 5.0 / sqrt(n)) * z.next;
    z.level = z.is_shared ? fmax(z.next, z.second) : z.next;
    return z;
}

int tsr_saxs_noise_describe(const tsr_saxs_noise *noise, double residual,
                            tsr_words *w)
{
    const tsr_saxs_noise *z = noise;
    const int is_low = z->next < 0.5;
    const int is_high = z->level > 1.5;
    if (isnan(z->next))
        return 0;
    tsr_words_add(w,
                  " Points scatter about a smooth line through their "
                  "neighbours by %.3g sigma",
                  z->next);
    if (is_low)
        tsr_words_add(w, ": %ssigma is too large, and a low chi2 means little",
                      z->is_shared ? "the curve was smoothed or computed, or "
                                   : "");
    else if (z->is_shared)
        tsr_words_add(w, ", every second point by %.3g", z->second);
    if (is_high)
        tsr_words_add(w, ": sigma is %.3g times too small%s%s", z->next,
                      z->is_shared ? " or more" : "",
                      z->next > 30.0 ? " (in another unit than I?)" : "");
    tsr_words_add(w, "%s%s.",
                  z->is_shared ? "; neighbouring points have correlated noise, "
                                 "and CorMap does not apply"
                               : "",
                  z->is_shared && is_low
                      ? "; with noise.scale: 1 a run does not infer less noise"
                      : "");
    if (!(is_low && z->is_shared) &&
        residual > (1.2 + 3.0 / sqrt(z->n)) * z->level)
        tsr_words_add(w,
                      " Residuals of the model are %.3g sigma: the excess over "
                      "the noise is misfit.",
                      residual);
    return is_low || is_high;
}

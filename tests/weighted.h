/* Means of several quantities, with standard errors: over weighted draws, and
 * over blocks of a chain. */
#ifndef TESTS_WEIGHTED_H
#define TESTS_WEIGHTED_H

#include "tests/check.h"

/* value [n][n_value]; w [n]: logarithms of weights, which become weights whose
 * sum is 1. Returns the effective number of draws; *log_sum (or NULL): the
 * logarithm of the sum of the weights. */
static inline double weighted_means(int n, int n_value, const double *value,
                                    double *w, double *mean, double *error,
                                    double *log_sum)
{
    double top = -(double)INFINITY, sum = 0.0, square = 0.0;
    for (int i = 0; i < n; i++)
        top = fmax(top, w[i]);
    for (int i = 0; i < n; i++)
        sum += w[i] = exp(w[i] - top);
    for (int i = 0; i < n; i++)
        w[i] /= sum, square += w[i] * w[i];
    for (int v = 0; v < n_value; v++) {
        mean[v] = error[v] = 0.0;
        for (int i = 0; i < n; i++)
            mean[v] += w[i] * value[i * n_value + v];
        for (int i = 0; i < n; i++)
            error[v] += pow(w[i] * (value[i * n_value + v] - mean[v]), 2.0);
        error[v] = sqrt(error[v]);
    }
    if (log_sum != NULL)
        *log_sum = top + log(sum);
    return 1.0 / square;
}

/* value [n][n_value], of equal weight. */
static inline void block_means(int n, int n_value, const double *value,
                               double *mean, double *error)
{
    double *w = array((size_t)n, sizeof *w);
    weighted_means(n, n_value, value, w, mean, error, NULL);
    for (int v = 0; v < n_value; v++)
        error[v] *= sqrt(n / (n - 1.0));
}

#endif

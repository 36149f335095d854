/* The CorMap test: the longest run of residuals of one sign, and how probable
 * a run as long is by chance alone. It asks for no errors, so it also tells a
 * misfit where sigma is wrong. */
#include "scattering/cormap.h"

#include <math.h>
#include <stdlib.h>

int tsr_cormap_longest_run(int n, const double *residual)
{
    int longest = 0, run = 0, before = 0;
    for (int k = 0; k < n; k++) {
        int sign = (residual[k] > 0.0) - (residual[k] < 0.0);
        run = sign != 0 && sign == before ? run + 1 : sign != 0;
        before = sign;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* n tosses have a run of `run` where the n - 1 comparisons of neighbours hold
 * L = run - 1 times "same" in a row. For the probability p[m] that m
 * comparisons do: p[m] = p[m - 1] + 2^-(L + 1) (1 - p[m - L - 1]), since the
 * first such row that ends at m follows a "different" (p[L] = 2^-L: it begins
 * the series). */
double tsr_cormap_p(int n, int run)
{
    int m = n - 1, l = run - 1;
    if (run <= 1)
        return 1.0;
    if (run > n)
        return 0.0;
    double *p = malloc(((size_t)m + 1) * sizeof *p);
    if (p == NULL)
        return (double)NAN;
    for (int k = 0; k <= m; k++)
        p[k] = k < l    ? 0.0
               : k == l ? ldexp(1.0, -l)
                        : p[k - 1] + ldexp(1.0 - p[k - l - 1], -l - 1);
    double result = p[m];
    free(p);
    return result;
}

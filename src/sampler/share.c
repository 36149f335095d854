/* Dividing a whole number in proportion to weights, by largest remainders:
 * chains and threads among devices of different speed. Where there is enough
 * for all, nobody is left with none. */
#include "sampler/share.h"

#include <math.h>

static double valid(double weight)
{
    return isfinite(weight) && weight > 0.0 ? weight : 0.0;
}

/* The exact part; `total` times whole weights has no rounding. */
static double quota(int total, int n, double weight, double sum)
{
    return sum > 0.0 ? total * valid(weight) / sum : (double)total / n;
}

void tsr_share_divide(int total, int n, const double *weight, int *part)
{
    double sum = 0.0;
    int left = total;
    for (int i = 0; i < n; i++)
        sum += valid(weight[i]);
    for (int i = 0; i < n; i++) {
        part[i] = (int)floor(quota(total, n, weight[i], sum));
        left -= part[i];
    }
    for (; left > 0; left--) {
        int most = 0;
        double best = -HUGE_VAL;
        for (int i = 0; i < n; i++) {
            double lacks = quota(total, n, weight[i], sum) - part[i];
            if (lacks > best)
                most = i, best = lacks;
        }
        part[most]++;
    }
    for (int i = 0; i < n && total >= n; i++) {
        int largest = 0;
        if (part[i] > 0)
            continue;
        for (int j = 1; j < n; j++)
            if (part[j] > part[largest])
                largest = j;
        part[largest]--;
        part[i]++;
    }
}

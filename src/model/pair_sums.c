#include "model/pair_sums.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

static const double bin_width = 0.05; /* Angstrom */

int tsr_pair_points_new(tsr_pair_points *points, int n)
{
    size_t size = (size_t)n + 1;
    points->xyz = malloc(size * sizeof *points->xyz);
    points->kind = malloc(size * sizeof *points->kind);
    points->weight = calloc(size, sizeof *points->weight);
    return points->xyz != NULL && points->kind != NULL && points->weight != NULL
               ? 0
               : -1;
}

void tsr_pair_points_clear(tsr_pair_points *points)
{
    free(points->xyz);
    free(points->kind);
    free(points->weight);
}

static double box_diagonal(const tsr_pair_points *p)
{
    double low[3], high[3];
    tsr_vec3_copy(low, p->xyz[0]);
    tsr_vec3_copy(high, p->xyz[0]);
    for (int i = 1; i < p->n; i++)
        for (int d = 0; d < 3; d++) {
            low[d] = fmin(low[d], p->xyz[i][d]);
            high[d] = fmax(high[d], p->xyz[i][d]);
        }
    return tsr_vec3_distance(low, high);
}

/* sum[pair][k] += over the bins, weight times sinc(q_k r_bin). */
static void sum_bins(const double *bin, size_t n_bin, size_t n_pair, int n_q,
                     const double *sinc, double *sum)
{
    for (size_t p = 0; p < n_pair; p++)
        for (size_t b = 0; b < n_bin; b++) {
            double weight = bin[p * n_bin + b];
            if (weight == 0.0)
                continue;
            const double *from = sinc + b * (size_t)n_q;
            double *to = sum + p * (size_t)n_q;
            for (int k = 0; k < n_q; k++)
                to[k] += weight * from[k];
        }
}

/* Shares `weight` between bins b and b + 1 of a row of bins. */
static void into(double *row, size_t b, double share, double weight)
{
    row[b] += weight * (1.0 - share);
    row[b + 1] += weight * share;
}

static void fill_bins(const tsr_pair_points *p, size_t n_bin,
                      const tsr_pair_sums *bins)
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++) {
            double at = tsr_vec3_distance(p->xyz[i], p->xyz[j]) / bin_width;
            double wi = p->weight[i], wj = p->weight[j];
            int ki = p->kind[i], kj = p->kind[j];
            size_t b = (size_t)at, pair = tsr_pair_index(ki, kj) * n_bin;
            double share = at - (double)b;
            into(bins->plain + pair, b, share, 1.0);
            if (bins->one == NULL)
                continue;
            size_t ij = (size_t)(ki * p->n_kind + kj) * n_bin;
            size_t ji = (size_t)(kj * p->n_kind + ki) * n_bin;
            if (wj != 0.0)
                into(bins->one + ij, b, share, wj);
            if (wi != 0.0)
                into(bins->one + ji, b, share, wi);
            if (wi != 0.0 && wj != 0.0)
                into(bins->both + pair, b, share, wi * wj);
        }
}

tsr_status tsr_pair_sums_add(const tsr_pair_points *points, int n_q,
                             double dq_inv_ang, const tsr_pair_sums *sums,
                             tsr_err *err)
{
    const tsr_pair_points *p = points;
    int weighted = sums->one != NULL && sums->both != NULL;
    size_t n_bin = (size_t)(box_diagonal(p) / bin_width) + 3;
    size_t n_pair = tsr_pair_index(p->n_kind - 1, p->n_kind - 1) + 1;
    size_t n_one = weighted ? (size_t)(p->n_kind * p->n_kind) : 0;
    size_t n_row = weighted ? 2 * n_pair + n_one : n_pair;
    double *bin = calloc(n_bin * n_row, sizeof *bin);
    double *sinc = malloc(n_bin * (size_t)n_q * sizeof *sinc);
    if (bin == NULL || sinc == NULL) {
        free(bin);
        free(sinc);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu distance bins",
                        n_bin * n_row);
    }
    tsr_pair_sums bins = {.plain = bin};
    if (weighted) {
        bins.one = bin + n_bin * n_pair;
        bins.both = bins.one + n_bin * n_one;
    }
    fill_bins(p, n_bin, &bins);
    for (size_t b = 0; b < n_bin; b++)
        for (int k = 0; k < n_q; k++) {
            double x = k * dq_inv_ang * (double)b * bin_width;
            sinc[b * (size_t)n_q + (size_t)k] = x > 0.0 ? sin(x) / x : 1.0;
        }
    sum_bins(bins.plain, n_bin, n_pair, n_q, sinc, sums->plain);
    if (weighted) {
        sum_bins(bins.one, n_bin, n_one, n_q, sinc, sums->one);
        sum_bins(bins.both, n_bin, n_pair, n_q, sinc, sums->both);
    }
    free(bin);
    free(sinc);
    return TSR_OK;
}

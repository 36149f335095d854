/* Each Gaussian is kept as the Cholesky factor of its covariance and that
 * factor's inverse: one gives draws, the other densities. */
#include "molecule/side_density.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

/* cov = L L^T. z = W (x - mean) with W = L^-1, lower too, has unit normals. */
typedef struct {
    double log_scale; /* log(weight / sqrt((2 pi)^3 det cov)) */
    double mean[3];
    double l[6], w[6]; /* 00 10 11 20 21 22 */
    double up_to;      /* sum of weights */
} gaussian;

struct tsr_side_density {
    int n;
    gaussian part[TSR_MAX_SIDE_GAUSSIAN];
};

static void prepare(gaussian *g, const tsr_side_gaussian *from)
{
    const double(*c)[3] = from->cov;
    double *l = g->l, *w = g->w;
    for (int i = 0; i < 3; i++)
        g->mean[i] = from->mean[i];
    l[0] = sqrt(c[0][0]);
    l[1] = c[1][0] / l[0];
    l[2] = sqrt(c[1][1] - l[1] * l[1]);
    l[3] = c[2][0] / l[0];
    l[4] = (c[2][1] - l[3] * l[1]) / l[2];
    l[5] = sqrt(c[2][2] - l[3] * l[3] - l[4] * l[4]);
    w[0] = 1.0 / l[0];
    w[2] = 1.0 / l[2];
    w[5] = 1.0 / l[5];
    w[1] = -l[1] * w[0] * w[2];
    w[4] = -l[4] * w[2] * w[5];
    w[3] = -(l[3] * w[0] + l[4] * w[1]) * w[5];
    g->log_scale = log(from->weight) - 1.5 * log(2.0 * M_PI) -
                   log(l[0] * l[2]) - log(l[5]);
}

tsr_side_density *tsr_side_density_new(const tsr_side_mixture *mixture)
{
    tsr_side_density *density = calloc(1, sizeof *density);
    if (density == NULL)
        return NULL;
    double sum = 0.0;
    for (int i = 0; i < mixture->n; i++) {
        if (mixture->part[i].weight <= 0.0)
            continue;
        gaussian *g = &density->part[density->n++];
        prepare(g, &mixture->part[i]);
        sum += mixture->part[i].weight;
        g->up_to = sum;
    }
    return density;
}

void tsr_side_density_free(tsr_side_density *density)
{
    free(density);
}

/* As in torsion_density.c: the largest is taken out. */
double tsr_side_density_log(const tsr_side_density *density,
                            const double side[3])
{
    double e[TSR_MAX_SIDE_GAUSSIAN], largest = -HUGE_VAL, sum = 0.0;
    for (int i = 0; i < density->n; i++) {
        const gaussian *g = &density->part[i];
        double x = side[0] - g->mean[0], y = side[1] - g->mean[1];
        double z = side[2] - g->mean[2];
        double a = g->w[0] * x, b = g->w[1] * x + g->w[2] * y;
        double c = g->w[3] * x + g->w[4] * y + g->w[5] * z;
        e[i] = g->log_scale - 0.5 * (a * a + b * b + c * c);
        if (e[i] > largest)
            largest = e[i];
    }
    for (int i = 0; i < density->n; i++) {
        double d = e[i] - largest;
        if (!(d <= -40.0)) /* NaN stays NaN */
            sum += exp(d);
    }
    return largest + log(sum);
}

void tsr_side_density_draw(const tsr_side_density *density, gsl_rng *rng,
                           double side[3])
{
    double u = gsl_rng_uniform(rng) * density->part[density->n - 1].up_to;
    int i = 0;
    while (i < density->n - 1 && u >= density->part[i].up_to)
        i++;
    const gaussian *g = &density->part[i];
    double z[3];
    for (int d = 0; d < 3; d++)
        z[d] = gsl_ran_gaussian(rng, 1.0);
    side[0] = g->mean[0] + g->l[0] * z[0];
    side[1] = g->mean[1] + g->l[1] * z[0] + g->l[2] * z[1];
    side[2] = g->mean[2] + g->l[3] * z[0] + g->l[4] * z[1] + g->l[5] * z[2];
}

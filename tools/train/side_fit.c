/* Mixtures of Gaussians fitted to side-chain centres.
 *
 * No Gaussian is narrower than TSR_LEAST_SIDE_SD in any direction. Where there
 * are two or more, the last is broad: the mean of all, four times their
 * covariance, a weight of at least TSR_BROAD_WEIGHT. What is far from all that
 * was seen is then unlikely, and not by hundreds of nats. */
#include "molecule/side_density.h"
#include "train/mixture_train.h"

#include "core/vec3.h"

#include <gsl/gsl_eigen.h>
#include <gsl/gsl_math.h>
#include <math.h>
#include <stdlib.h>

static const double broad_scale = 4.0, start_broad = 0.02;

typedef struct {
    long n;
    int n_part;
    const double *at;          /* [n][3] */
    double *nearest;           /* [n] scratch */
    double mean[3], cov[3][3]; /* of all */
    tsr_side_mixture m;        /* as it is */
    gsl_eigen_symmv_workspace *eigen;
    gsl_matrix *matrix, *vectors;
    gsl_vector *values;
} side_fit;

/* Raises what is below the least variance, along the axes of the covariance:
 * the maximum of the likelihood under that bound. */
static void bound_covariance(side_fit *fit, double cov[3][3])
{
    static const double least = TSR_LEAST_SIDE_SD * TSR_LEAST_SIDE_SD;
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            gsl_matrix_set(fit->matrix, i, j, cov[i][j]);
    gsl_eigen_symmv(fit->matrix, fit->values, fit->vectors, fit->eigen);
    if (gsl_vector_min(fit->values) >= least)
        return;
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < 3; k++)
                sum += fmax(gsl_vector_get(fit->values, k), least) *
                       gsl_matrix_get(fit->vectors, i, k) *
                       gsl_matrix_get(fit->vectors, j, k);
            cov[i][j] = cov[j][i] = sum;
        }
}

/* Weight, weighted sums of x about the mean of all, and of their products. */
typedef struct {
    double weight, x[3], xx[3][3];
} moments;

static void add_moments(moments *to, double share, const double x[3])
{
    to->weight += share;
    for (int i = 0; i < 3; i++) {
        to->x[i] += share * x[i];
        for (int j = 0; j <= i; j++)
            to->xx[i][j] += share * x[i] * x[j];
    }
}

static void covariance_of(const moments *m, double mean[3], double cov[3][3])
{
    for (int i = 0; i < 3; i++)
        mean[i] = m->x[i] / m->weight;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++)
            cov[i][j] = cov[j][i] = m->xx[i][j] / m->weight - mean[i] * mean[j];
}

static void take_moments(side_fit *fit, const moments *m, tsr_side_gaussian *g)
{
    covariance_of(m, g->mean, g->cov);
    for (int i = 0; i < 3; i++)
        g->mean[i] += fit->mean[i];
    bound_covariance(fit, g->cov);
}

/* The precision (inverse covariance) by cofactors, for the inner loop. */
typedef struct {
    double log_scale, mean[3], p[6]; /* p: xx yy zz, twice xy xz yz; halved */
} prepared;

static prepared prepare(const side_fit *fit, const tsr_side_gaussian *g)
{
    const double(*c)[3] = g->cov;
    double xx = c[1][1] * c[2][2] - c[1][2] * c[1][2];
    double yy = c[0][0] * c[2][2] - c[0][2] * c[0][2];
    double zz = c[0][0] * c[1][1] - c[0][1] * c[0][1];
    double xy = c[0][2] * c[1][2] - c[0][1] * c[2][2];
    double xz = c[0][1] * c[1][2] - c[0][2] * c[1][1];
    double yz = c[0][1] * c[0][2] - c[0][0] * c[1][2];
    double det = c[0][0] * xx + c[0][1] * xy + c[0][2] * xz;
    prepared out = {.log_scale =
                        log(g->weight) - 1.5 * log(2.0 * M_PI) - 0.5 * log(det),
                    .p = {0.5 * xx / det, 0.5 * yy / det, 0.5 * zz / det,
                          xy / det, xz / det, yz / det}};
    tsr_vec3_sub(out.mean, g->mean, fit->mean);
    return out;
}

static double log_of(const prepared *g, const double x[3])
{
    double d[3];
    tsr_vec3_sub(d, x, g->mean);
    return g->log_scale - (g->p[0] * d[0] * d[0] + g->p[1] * d[1] * d[1] +
                           g->p[2] * d[2] * d[2] + g->p[3] * d[0] * d[1] +
                           g->p[4] * d[0] * d[2] + g->p[5] * d[1] * d[2]);
}

/* Gaussians that are free: all, or all but the broad one. */
static int n_free(const side_fit *fit)
{
    return fit->n_part > 1 ? fit->n_part - 1 : 1;
}

static double step(void *work)
{
    side_fit *fit = work;
    tsr_side_mixture *m = &fit->m;
    prepared part[TSR_MAX_SIDE_GAUSSIAN];
    moments sum[TSR_MAX_SIDE_GAUSSIAN] = {{0}};
    double e[TSR_MAX_SIDE_GAUSSIAN], weight[TSR_MAX_SIDE_GAUSSIAN], total = 0.0;
    for (int k = 0; k < m->n; k++)
        part[k] = prepare(fit, &m->part[k]);
    for (long i = 0; i < fit->n; i++) {
        double x[3];
        tsr_vec3_sub(x, fit->at + 3 * i, fit->mean);
        for (int k = 0; k < m->n; k++)
            e[k] = log_of(&part[k], x);
        total += tsr_em_shares(m->n, e);
        for (int k = 0; k < m->n; k++)
            if (e[k] > 1e-12)
                add_moments(&sum[k], e[k], x);
    }
    for (int k = 0; k < m->n; k++)
        e[k] = sum[k].weight;
    if (m->n > 1)
        tsr_em_weights(m->n, fit->n, e, TSR_BROAD_WEIGHT, weight);
    for (int k = 0; k < m->n && m->n > 1; k++)
        m->part[k].weight = weight[k];
    for (int k = 0; k < n_free(fit); k++)
        if (sum[k].weight > 1e-3)
            take_moments(fit, &sum[k], &m->part[k]);
    return total / (double)fit->n;
}

static double distance2(const void *work, long i, long j)
{
    const side_fit *fit = work;
    return tsr_vec3_distance2(fit->at + 3 * i, fit->at + 3 * j);
}

/* Each centre goes with the nearest of those picked. In one start of two all
 * Gaussians begin with the same broad covariance: neither finds the better
 * maximum always. */
static void start(void *work, gsl_rng *rng)
{
    side_fit *fit = work;
    int n = n_free(fit), is_broad = gsl_rng_uniform(rng) < 0.5;
    long pick[TSR_MAX_SIDE_GAUSSIAN];
    moments sum[TSR_MAX_SIDE_GAUSSIAN] = {{0}};
    tsr_em_spread(fit, fit->n, distance2, rng, fit->nearest, n, pick);
    for (long i = 0; i < fit->n; i++) {
        double x[3], d2, least = HUGE_VAL;
        int at = 0;
        for (int k = 0; k < n; k++)
            if ((d2 = distance2(fit, i, pick[k])) < least)
                least = d2, at = k;
        tsr_vec3_sub(x, fit->at + 3 * i, fit->mean);
        add_moments(&sum[at], 1.0, x);
    }
    fit->m = (tsr_side_mixture){.count = fit->n, .n = fit->n_part};
    for (int k = 0; k < n; k++) {
        tsr_side_gaussian *g = &fit->m.part[k];
        double share = fit->n_part > 1 ? 1.0 - start_broad : 1.0;
        if (!(sum[k].weight > 0.0)) /* picked twice: as good as another */
            add_moments(&sum[k], 1.0, (double[3]){0.0, 0.0, 0.0});
        g->weight = share * sum[k].weight / (double)fit->n;
        take_moments(fit, &sum[k], g);
        for (int i = 0; i < 3 && is_broad; i++)
            for (int j = 0; j < 3; j++)
                g->cov[i][j] = fit->cov[i][j] / pow(n, 2.0 / 3.0);
        bound_covariance(fit, g->cov);
    }
    if (fit->n_part > 1) {
        tsr_side_gaussian *g = &fit->m.part[n];
        g->weight = start_broad;
        tsr_vec3_copy(g->mean, fit->mean);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                g->cov[i][j] = broad_scale * fit->cov[i][j];
    }
}

static int by_weight(const void *a, const void *b)
{
    const tsr_side_gaussian *p = a, *q = b;
    return (p->weight < q->weight) - (p->weight > q->weight);
}

static void whole(side_fit *fit)
{
    moments all = {0};
    double sum[3] = {0};
    for (long i = 0; i < fit->n; i++)
        for (int d = 0; d < 3; d++)
            sum[d] += fit->at[3 * i + d];
    for (int d = 0; d < 3; d++)
        fit->mean[d] = sum[d] / (double)fit->n;
    for (long i = 0; i < fit->n; i++) {
        double x[3];
        tsr_vec3_sub(x, fit->at + 3 * i, fit->mean);
        add_moments(&all, 1.0, x);
    }
    double mean[3];
    covariance_of(&all, mean, fit->cov);
    bound_covariance(fit, fit->cov);
}

static tsr_status fit_sides(long n, const double *x, int n_part, int effort,
                            void *mixture, tsr_err *err)
{
    static const tsr_em_type type = {start, step};
    side_fit fit = {.n = n, .n_part = n_part, .at = x};
    tsr_status s = TSR_OK;
    fit.nearest = malloc((size_t)n * sizeof *fit.nearest);
    fit.eigen = gsl_eigen_symmv_alloc(3);
    fit.matrix = gsl_matrix_alloc(3, 3);
    fit.vectors = gsl_matrix_alloc(3, 3);
    fit.values = gsl_vector_alloc(3);
    if (fit.nearest == NULL || fit.eigen == NULL || fit.matrix == NULL ||
        fit.vectors == NULL || fit.values == NULL) {
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to fit %ld side chains", n);
        goto done;
    }
    whole(&fit);
    s = tsr_em_run(&type, &fit, &fit.m, sizeof fit.m, effort, err);
    if (s == TSR_OK) {
        qsort(fit.m.part, (size_t)n_free(&fit), sizeof fit.m.part[0],
              by_weight);
        *(tsr_side_mixture *)mixture = fit.m;
    }
done:
    if (fit.values != NULL)
        gsl_vector_free(fit.values);
    if (fit.vectors != NULL)
        gsl_matrix_free(fit.vectors);
    if (fit.matrix != NULL)
        gsl_matrix_free(fit.matrix);
    if (fit.eigen != NULL)
        gsl_eigen_symmv_free(fit.eigen);
    free(fit.nearest);
    return s;
}

static tsr_status evaluate(const void *mixture, long n, const double *x,
                           double *value, tsr_err *err)
{
    tsr_side_density *density = tsr_side_density_new(mixture);
    if (density == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a density");
    for (long i = 0; i < n; i++)
        value[i] = tsr_side_density_log(density, x + 3 * i);
    tsr_side_density_free(density);
    return TSR_OK;
}

const tsr_mixture_type tsr_mixture_side = {.dim = 3,
                                           .least = 1,
                                           .most = TSR_MAX_SIDE_GAUSSIAN,
                                           .size = sizeof(tsr_side_mixture),
                                           .fit = fit_sides,
                                           .evaluate = evaluate};

/* Mixtures of bivariate von Mises distributions fitted to torsions.
 *
 * The last part of every mixture is uniform and has a weight of at least
 * TSR_UNIFORM_WEIGHT: no torsions are forbidden, and the density is nowhere
 * less than that / 4 pi^2. k_phi and k_psi are at most TSR_MAX_KAPPA (2.6
 * degrees), |lambda| at most 0.98 sqrt(k_phi k_psi): no part collapses onto a
 * few residues, and each has one maximum. */
#include "molecule/torsion_density.h"
#include "train/mixture_train.h"

#include <gsl/gsl_math.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_TERM = TSR_VON_MISES_TERM, N_PARAMETER = 5, N_NEWTON = 10 };
static const double most_correlation = 0.98;
static const double flat = 1e-4; /* gradient, where the search ends: 1e-8 nat */
static const double start_kappa = 20.0, start_uniform = 0.02;

typedef struct {
    long n;
    int n_part;            /* with the uniform one */
    double (*at)[N_TERM];  /* [n] 1, cos phi, ... (torsion_density.h) */
    double *nearest;       /* [n] scratch */
    tsr_torsion_mixture m; /* as it is */
} torsion_fit;

/* Unbounded parameters of a part: mu, nu, the logits of k / TSR_MAX_KAPPA, and
 * atanh of lambda / (most_correlation sqrt(k1 k2)). */
typedef struct {
    double x[N_PARAMETER];
    tsr_von_mises part;
    double norm, moment[3]; /* torsion_density.h */
} point;

static void set_angles(point *p)
{
    p->part.phi = p->x[0];
    p->part.psi = p->x[1];
}

static void set_shape(point *p)
{
    p->part.k_phi = TSR_MAX_KAPPA / (1.0 + exp(-p->x[2]));
    p->part.k_psi = TSR_MAX_KAPPA / (1.0 + exp(-p->x[3]));
    p->part.lambda =
        most_correlation * tanh(p->x[4]) * sqrt(p->part.k_phi * p->part.k_psi);
    p->norm = tsr_von_mises_moments(p->part.k_phi, p->part.k_psi,
                                    p->part.lambda, p->moment);
}

static double logit_of(double kappa)
{
    double u = fmin(fmax(kappa / TSR_MAX_KAPPA, 1e-9), 1.0 - 1e-9);
    return log(u / (1.0 - u));
}

static point point_of(const tsr_von_mises *part)
{
    double root = sqrt(part->k_phi * part->k_psi);
    double r = root > 0.0 ? part->lambda / (most_correlation * root) : 0.0;
    point p = {.x = {part->phi, part->psi, logit_of(part->k_phi),
                     logit_of(part->k_psi),
                     atanh(fmin(fmax(r, -0.999), 0.999))},
               .part = *part};
    set_angles(&p);
    set_shape(&p);
    return p;
}

/* Less the log density of a part, in the mean over its residues: that of their
 * mean terms, mean [N_TERM]. gradient [N_PARAMETER] out. */
static double value_of(const point *p, const double *mean, double *gradient)
{
    const double *e = mean;
    double k1 = p->part.k_phi, k2 = p->part.k_psi, l = p->part.lambda;
    double cm = cos(p->part.phi), sm = sin(p->part.phi);
    double cn = cos(p->part.psi), sn = sin(p->part.psi);
    double cos1 = cm * e[1] + sm * e[2], sin1 = cm * e[2] - sm * e[1];
    double cos2 = cn * e[3] + sn * e[4], sin2 = cn * e[4] - sn * e[3];
    /* means of products of cosines and sines of the differences */
    double cs = cm * (cn * e[6] - sn * e[5]) + sm * (cn * e[8] - sn * e[7]);
    double sc = cm * (cn * e[7] + sn * e[8]) - sm * (cn * e[5] + sn * e[6]);
    double ss = cm * (cn * e[8] - sn * e[7]) - sm * (cn * e[6] - sn * e[5]);
    double by_lambda = ss - p->moment[2], t = tanh(p->x[4]);
    gradient[0] = l * cs - k1 * sin1;
    gradient[1] = l * sc - k2 * sin2;
    gradient[2] = -(1.0 - k1 / TSR_MAX_KAPPA) *
                  (k1 * (cos1 - p->moment[0]) + 0.5 * l * by_lambda);
    gradient[3] = -(1.0 - k2 / TSR_MAX_KAPPA) *
                  (k2 * (cos2 - p->moment[1]) + 0.5 * l * by_lambda);
    gradient[4] = -by_lambda * most_correlation * (1.0 - t * t) * sqrt(k1 * k2);
    return p->norm - k1 * (cos1 - 1.0) - k2 * (cos2 - 1.0) - l * ss;
}

/* By differences of the gradient. */
static void hessian_at(const point *p, const double *mean,
                       const double gradient[N_PARAMETER],
                       double h[N_PARAMETER][N_PARAMETER])
{
    static const double little = 1e-5;
    for (int i = 0; i < N_PARAMETER; i++) {
        point q = *p;
        q.x[i] += little;
        if (i < 2)
            set_angles(&q);
        else
            set_shape(&q);
        value_of(&q, mean, h[i]);
        for (int j = 0; j < N_PARAMETER; j++)
            h[i][j] = (h[i][j] - gradient[j]) / little;
    }
    for (int i = 0; i < N_PARAMETER; i++)
        for (int j = 0; j < i; j++)
            h[i][j] = h[j][i] = 0.5 * (h[i][j] + h[j][i]);
}

/* step = -(h + ridge)^-1 gradient, by Cholesky; 0 where that is not positive
 * definite. */
static int solve(double h[N_PARAMETER][N_PARAMETER], double ridge,
                 const double gradient[N_PARAMETER], double step[N_PARAMETER])
{
    double l[N_PARAMETER][N_PARAMETER];
    for (int i = 0; i < N_PARAMETER; i++)
        for (int j = 0; j <= i; j++) {
            double sum = h[i][j] + (i == j ? ridge : 0.0);
            for (int k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            if (i == j && !(sum > 1e-10))
                return 0;
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    for (int i = 0; i < N_PARAMETER; i++) {
        step[i] = -gradient[i];
        for (int k = 0; k < i; k++)
            step[i] -= l[i][k] * step[k];
        step[i] /= l[i][i];
    }
    for (int i = N_PARAMETER - 1; i >= 0; i--) {
        for (int k = i + 1; k < N_PARAMETER; k++)
            step[i] -= l[k][i] * step[k];
        step[i] /= l[i][i];
    }
    return 1;
}

/* One step of Newton's with a ridge that grows until the value falls
 * (Levenberg & Marquardt). Returns 0 where it no longer does. */
static int improve(point *p, const double *mean, double *ridge)
{
    double gradient[N_PARAMETER], h[N_PARAMETER][N_PARAMETER];
    double before = value_of(p, mean, gradient), largest = 0.0;
    for (int i = 0; i < N_PARAMETER; i++)
        largest = fmax(largest, fabs(gradient[i]));
    if (largest < flat)
        return 0;
    hessian_at(p, mean, gradient, h);
    for (int k = 0; k < 12; k++) {
        double step[N_PARAMETER], unused[N_PARAMETER];
        if (solve(h, *ridge, gradient, step)) {
            point q = *p;
            for (int i = 0; i < N_PARAMETER; i++)
                q.x[i] += fmax(-1.0, fmin(1.0, step[i]));
            set_angles(&q);
            set_shape(&q);
            if (value_of(&q, mean, unused) < before) {
                *p = q;
                *ridge *= 0.1;
                return 1;
            }
        }
        *ridge = fmax(1e-3, *ridge * 10.0);
    }
    return 0;
}

static void maximise_part(tsr_von_mises *part, const double mean[N_TERM])
{
    point p = point_of(part);
    double ridge = 0.0;
    for (int i = 0; i < N_NEWTON && improve(&p, mean, &ridge); i++)
        ;
    p.part.phi = tsr_von_mises_wrap(p.part.phi);
    p.part.psi = tsr_von_mises_wrap(p.part.psi);
    *part = p.part;
}

static double step(void *work)
{
    torsion_fit *fit = work;
    tsr_torsion_mixture *m = &fit->m;
    double term[TSR_MAX_VON_MISES][N_TERM];
    double x[TSR_MAX_VON_MISES], weight[TSR_MAX_VON_MISES];
    double sum[TSR_MAX_VON_MISES][N_TERM] = {{0}}, total = 0.0;
    int n = m->n;
    for (int k = 0; k < n; k++)
        tsr_von_mises_terms(&m->part[k], term[k]);
    for (long i = 0; i < fit->n; i++) {
        const double *at = fit->at[i];
        for (int k = 0; k < n; k++) {
            x[k] = 0.0;
            for (int t = 0; t < N_TERM; t++)
                x[k] += term[k][t] * at[t];
        }
        total += tsr_em_shares(n, x);
        for (int k = 0; k < n; k++)
            for (int t = 0; t < N_TERM && x[k] > 1e-12; t++)
                sum[k][t] += x[k] * at[t];
    }
    for (int k = 0; k < n; k++)
        x[k] = sum[k][0];
    tsr_em_weights(n, fit->n, x, TSR_UNIFORM_WEIGHT, weight);
    for (int k = 0; k < n; k++)
        m->part[k].weight = weight[k];
    for (int k = 0; k < n - 1; k++) {
        if (sum[k][0] < 1e-3)
            continue; /* of no residue: nothing to learn from */
        for (int t = N_TERM - 1; t >= 0; t--)
            sum[k][t] /= sum[k][0];
        maximise_part(&m->part[k], sum[k]);
    }
    return total / (double)fit->n;
}

static double distance2(const void *work, long i, long j)
{
    const torsion_fit *fit = work;
    double d2 = 0.0;
    for (int t = 1; t <= 4; t++) {
        double d = fit->at[i][t] - fit->at[j][t];
        d2 += d * d;
    }
    return d2;
}

static void start(void *work, gsl_rng *rng)
{
    torsion_fit *fit = work;
    tsr_torsion_mixture *m = &fit->m;
    long pick[TSR_MAX_VON_MISES];
    int n = fit->n_part - 1;
    tsr_em_spread(fit, fit->n, distance2, rng, fit->nearest, n, pick);
    *m = (tsr_torsion_mixture){.count = fit->n, .n = n + 1};
    for (int k = 0; k < n; k++) {
        const double *at = fit->at[pick[k]];
        m->part[k] = (tsr_von_mises){.weight = (1.0 - start_uniform) / n,
                                     .phi = atan2(at[2], at[1]),
                                     .psi = atan2(at[4], at[3]),
                                     .k_phi = start_kappa,
                                     .k_psi = start_kappa};
    }
    m->part[n] = (tsr_von_mises){.weight = start_uniform};
}

/* The heaviest first, the uniform one last. */
static int by_weight(const void *a, const void *b)
{
    const tsr_von_mises *p = a, *q = b;
    return (p->weight < q->weight) - (p->weight > q->weight);
}

static tsr_status fit_torsions(long n, const double *x, int n_part, int effort,
                               void *mixture, tsr_err *err)
{
    static const tsr_em_type type = {start, step};
    torsion_fit fit = {.n = n, .n_part = n_part};
    tsr_status s = TSR_OK;
    fit.at = malloc((size_t)n * sizeof *fit.at);
    fit.nearest = malloc((size_t)n * sizeof *fit.nearest);
    if (fit.at == NULL || fit.nearest == NULL) {
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to fit %ld torsions", n);
        goto done;
    }
    for (long i = 0; i < n; i++) {
        double a = cos(x[2 * i]), b = sin(x[2 * i]);
        double c = cos(x[2 * i + 1]), d = sin(x[2 * i + 1]);
        memcpy(fit.at[i],
               (double[N_TERM]){1.0, a, b, c, d, a * c, a * d, b * c, b * d},
               sizeof fit.at[i]);
    }
    s = tsr_em_run(&type, &fit, &fit.m, sizeof fit.m, effort, err);
    if (s == TSR_OK) {
        qsort(fit.m.part, (size_t)n_part - 1, sizeof fit.m.part[0], by_weight);
        *(tsr_torsion_mixture *)mixture = fit.m;
    }
done:
    free(fit.nearest);
    free(fit.at);
    return s;
}

static tsr_status evaluate(const void *mixture, long n, const double *x,
                           double *value, tsr_err *err)
{
    tsr_torsion_density *density = tsr_torsion_density_new(mixture);
    if (density == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a density");
    for (long i = 0; i < n; i++)
        value[i] = tsr_torsion_density_log(density, x[2 * i], x[2 * i + 1]);
    tsr_torsion_density_free(density);
    return TSR_OK;
}

const tsr_mixture_type tsr_mixture_torsion = {.dim = 2,
                                              .least = 2,
                                              .most = TSR_MAX_VON_MISES,
                                              .size =
                                                  sizeof(tsr_torsion_mixture),
                                              .fit = fit_torsions,
                                              .evaluate = evaluate};

/* Training mixtures: how a mixture of given size is fitted is the type's; here
 * is what all of them share, the choice of the size by structures held out, the
 * threads, and expectation-maximisation from several starts. Small mixtures
 * have many maxima of nearly the same height, so that one start is not enough,
 * and following all of them to the end would cost ten times as much. */
#include "core/parallel.h"
#include "core/pool.h"
#include "core/random.h"
#include "core/vec3.h"
#include "molecule/prior_density.h"
#include "train/train.h"

#include <gsl/gsl_math.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIAL = 1, FINAL = 5 }; /* effort */
enum { LEAST_HELD_OUT = 10 };
static const double slack = 0.002; /* nat */

/* The observations of a task: those trained on first, then those held out. */
typedef struct {
    tsr_mixture_task *task;
    double *x;
    int *test_file; /* [n_test] */
    long n_train, n_test;
    double *value[TSR_MIXTURE_MOST + 1]; /* [n_test], by number of parts; NULL:
                                            too few observations */
} split;

/* One fit: a task, a number of parts, on part of the observations or all. */
typedef struct {
    split *of;
    int n_part, is_final;
    tsr_status status;
    tsr_err error;
} job;

static tsr_status do_job(const job *j, tsr_err *err)
{
    const split *of = j->of;
    const tsr_mixture_task *task = of->task;
    if (j->is_final)
        return task->type->fit(task->sample->n, task->sample->x, j->n_part,
                               FINAL, task->mixture, err);
    void *mixture = calloc(1, task->type->size);
    TSR_TRY(tsr_allocated(mixture, err));
    tsr_status s =
        task->type->fit(of->n_train, of->x, j->n_part, TRIAL, mixture, err);
    TSR_THEN(s, task->type->evaluate(mixture, of->n_test,
                                     of->x + of->n_train * task->type->dim,
                                     of->value[j->n_part], err));
    free(mixture);
    return s;
}

static void work_on(void *context, int part, int thread)
{
    job *j = (job *)context + part;
    (void)thread;
    j->status = do_job(j, &j->error);
}

static tsr_status do_jobs(int n, job *list, int n_thread, tsr_err *err)
{
    tsr_parallel_run(n, n_thread > 0 ? n_thread : tsr_parallel_processors(),
                     work_on, list);
    for (int i = 0; i < n; i++)
        if (list[i].status != TSR_OK)
            return tsr_fail(err, list[i].status, "%s", list[i].error.message);
    return TSR_OK;
}

static int is_held_out(int file)
{
    return file % TSR_MIXTURE_HOLD_OUT == TSR_MIXTURE_HOLD_OUT - 1;
}

static tsr_status split_make(split *s, tsr_mixture_task *task, tsr_pool *pool,
                             tsr_err *err)
{
    size_t dim = (size_t)task->type->dim;
    *s = (split){.task = task};
    tsr_pool_array(pool, s->x, (size_t)task->sample->n * dim);
    tsr_pool_array(pool, s->test_file, task->sample->n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (long i = 0; i < task->sample->n; i++)
        s->n_train += !is_held_out(task->sample->file[i]);
    long at[2] = {0, s->n_train};
    for (long i = 0; i < task->sample->n; i++) {
        int held_out = is_held_out(task->sample->file[i]);
        if (held_out)
            s->test_file[s->n_test++] = task->sample->file[i];
        memcpy(s->x + (size_t)at[held_out]++ * dim,
               task->sample->x + (size_t)i * dim, dim * sizeof *s->x);
    }
    task->n_held_out = s->n_test;
    return TSR_OK;
}

static double mean_of(const double *x, long n)
{
    double sum = 0.0;
    for (long i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* Standard error of the mean of a - b, which is `mean`: the residues of one
 * structure, which stand together, go together. */
static double standard_error(const split *s, const double *a, const double *b,
                             double mean)
{
    double square = 0.0, sum = 0.0;
    for (long i = 0; i < s->n_test; i++) {
        sum += a[i] - b[i] - mean;
        if (i + 1 == s->n_test || s->test_file[i + 1] != s->test_file[i]) {
            square += sum * sum;
            sum = 0.0;
        }
    }
    return sqrt(square) / (double)s->n_test;
}

static void choose(split *s, tsr_log *log)
{
    tsr_mixture_task *task = s->task;
    int least = task->type->least, most = task->type->most, best = least;
    for (int k = 0; k <= TSR_MIXTURE_MOST; k++)
        task->held_out[k] = (double)NAN;
    task->n_part = least;
    if (s->value[least] == NULL) {
        tsr_info(log, "%s: %ld observations, %ld of them held out: %d",
                 task->name, task->sample->n, s->n_test, least);
        return;
    }
    for (int k = least; k <= most && s->value[k] != NULL; k++) {
        task->held_out[k] = mean_of(s->value[k], s->n_test);
        if (task->held_out[k] > task->held_out[best])
            best = k;
    }
    int chosen = 0;
    for (int k = least; k <= most && s->value[k] != NULL; k++) {
        double less = task->held_out[best] - task->held_out[k];
        double error = standard_error(s, s->value[best], s->value[k], less);
        if (!chosen && less <= fmax(slack, error)) {
            task->n_part = k;
            chosen = 1;
        }
        tsr_debug(log, "%s: %d: held out %.4f nat, %.4f +- %.4f less",
                  task->name, k, task->held_out[k], less, error);
    }
    tsr_info(log,
             "%s: %ld observations, %d parts; held out %ld: %.4f nat "
             "(%d: %.4f, best %d: %.4f)",
             task->name, task->sample->n, task->n_part, s->n_test,
             task->held_out[task->n_part], least, task->held_out[least], best,
             task->held_out[best]);
}

/* From the largest numbers of parts down, so that no thread ends with a long
 * one. A mixture of k parts wants some observations for each. Returns how many
 * jobs there are. */
static int list_trials(job *list, int n_task, split *s, tsr_pool *pool)
{
    enum { LEAST_PER_PART = 10 };
    int n = 0;
    for (int k = TSR_MIXTURE_MOST; k >= 1; k--)
        for (int i = 0; i < n_task; i++) {
            const tsr_mixture_type *type = s[i].task->type;
            if (k < type->least || k > type->most ||
                s[i].n_test < LEAST_HELD_OUT ||
                s[i].n_train < (long)k * LEAST_PER_PART)
                continue;
            tsr_pool_array(pool, s[i].value[k], s[i].n_test);
            list[n++] = (job){.of = &s[i], .n_part = k};
        }
    return n;
}

tsr_status tsr_mixture_train(int n_task, tsr_mixture_task *task, int n_thread,
                             tsr_log *log, tsr_err *err)
{
    tsr_pool pool = {0};
    split *s;
    job *list;
    int n = 0;
    tsr_pool_array(&pool, s, n_task);
    tsr_pool_array(&pool, list, n_task * TSR_MIXTURE_MOST);
    tsr_status status = tsr_pool_check(&pool, err);
    for (int i = 0; i < n_task && status == TSR_OK; i++)
        status = split_make(&s[i], &task[i], &pool, err);
    if (status == TSR_OK) {
        n = list_trials(list, n_task, s, &pool);
        status = tsr_pool_check(&pool, err);
    }
    TSR_THEN(status, do_jobs(n, list, n_thread, err));
    for (int i = 0; i < n_task && status == TSR_OK; i++) {
        choose(&s[i], log);
        list[i] = (job){.of = &s[i], .n_part = task[i].n_part, .is_final = 1};
    }
    TSR_THEN(status, do_jobs(n_task, list, n_thread, err));
    tsr_pool_clear(&pool);
    return status;
}

/* ---- expectation-maximisation ----
 *
 * From several starts (Dempster, Laird & Rubin 1977; short runs from many
 * starts, long ones from the best: Biernacki, Celeux & Govaert 2003), which
 * come from a fixed random stream. */

enum { N_START = 12, N_SHORT = 12, N_LONG = 400, SEED = 20 };
static const double converged = 1e-6; /* nat, an observation and a step */

typedef struct {
    /* A random start into the mixture that `work` knows. */
    void (*start)(void *work, gsl_rng *rng);
    /* One step; returns the mean log density of the observations under the
     * mixture before it. */
    double (*step)(void *work);
} em_type;

/* Steps until they gain too little; returns the last mean log density. */
static double run_long(const em_type *type, void *work)
{
    double before = -HUGE_VAL;
    for (int k = 0; k < N_LONG; k++) {
        double now = type->step(work);
        if (now - before < converged)
            return now;
        before = now;
    }
    return before;
}

/* The number of the start that is highest and not yet followed. */
static int best_left(double highest[N_START])
{
    int best = 0;
    for (int i = 1; i < N_START; i++)
        if (highest[i] > highest[best])
            best = i;
    highest[best] = -HUGE_VAL;
    return best;
}

/* mixture: what start and step change, `size` bytes, flat. The n_long best of
 * the starts are followed to their maxima, and the highest is kept. */
static tsr_status run_em(const em_type *type, void *work, void *mixture,
                         size_t size, int n_long, tsr_err *err)
{
    gsl_rng *rng = tsr_rng_new(SEED, 0);
    char *kept = rng != NULL ? malloc((N_START + 1) * size) : NULL;
    char *best = kept;
    double value[N_START], highest = -HUGE_VAL;
    for (int i = 0; i < N_START && kept != NULL; i++) {
        type->start(work, rng);
        for (int k = 0; k < N_SHORT; k++)
            value[i] = type->step(work);
        memcpy(kept + (size_t)(i + 1) * size, mixture, size);
    }
    for (int i = 0; i < n_long && i < N_START && kept != NULL; i++) {
        int from = best_left(value);
        memcpy(mixture, kept + (size_t)(from + 1) * size, size);
        double now = run_long(type, work);
        if (i == 0 || now > highest) {
            highest = now;
            memcpy(best, mixture, size);
        }
    }
    if (kept != NULL)
        memcpy(mixture, best, size);
    gsl_rng_free(rng);
    const tsr_status s = tsr_allocated(kept, err);
    free(kept);
    return s;
}

/* Picks n of n_x observations, each farther from those before it than chance
 * would have it (k-means++, Arthur & Vassilvitskii 2007). pick [n] out;
 * nearest [n_x] scratch; distance2 of two observations of `work`. */
static void spread_out(const void *work, long n_x,
                       double (*distance2)(const void *work, long i, long j),
                       gsl_rng *rng, double *nearest, int n, long *pick)
{
    for (long i = 0; i < n_x; i++)
        nearest[i] = 1.0;
    for (int k = 0; k < n; k++) {
        double sum = 0.0, below = 0.0;
        for (long i = 0; i < n_x; i++)
            sum += nearest[i];
        double u = gsl_rng_uniform(rng) * sum;
        long at = 0;
        while (at < n_x - 1 && (below += nearest[at]) <= u)
            at++;
        pick[k] = at;
        for (long i = 0; i < n_x; i++) {
            double d2 = distance2(work, i, at);
            if (k == 0 || d2 < nearest[i])
                nearest[i] = d2;
        }
    }
}

/* Shares of n parts in an observation from their log densities, in place;
 * returns the log of the sum of the densities. */
static double shares_of(int n, double *x)
{
    double largest = -HUGE_VAL, all = 0.0;
    for (int k = 0; k < n; k++)
        largest = fmax(largest, x[k]);
    for (int k = 0; k < n; k++) {
        x[k] = x[k] > largest - 40.0 ? exp(x[k] - largest) : 0.0;
        all += x[k];
    }
    for (int k = 0; k < n; k++)
        x[k] /= all;
    return largest + log(all);
}

/* Weights of n parts whose last, broader than the others, has at least
 * `least`: the maximum of the likelihood under that bound. share [n]: the sums
 * of shares in n_x observations. weight [n] out. */
static void weights_of(int n, long n_x, const double *share, double least,
                       double *weight)
{
    const int last = n - 1;
    double broad = fmax(share[last] / (double)n_x, least);
    double others = (double)n_x - share[last];
    for (int k = 0; k < last; k++)
        weight[k] = others > 0.0 ? (1.0 - broad) * share[k] / others
                                 : (1.0 - broad) / last;
    weight[last] = broad;
}

/* Heavy parts first; a part begins with its weight. */
static int by_weight(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p < q) - (p > q);
}

/* ---- mixtures of torsions ----
 *
 * Mixtures of bivariate von Mises distributions fitted to torsions.
 *
 * The last part of every mixture is uniform and has a weight of at least
 * TSR_UNIFORM_WEIGHT: no torsions are forbidden, and the density is nowhere
 * less than that / 4 pi^2. k_phi and k_psi are at most TSR_MAX_KAPPA (2.6
 * degrees), |lambda| at most 0.98 sqrt(k_phi k_psi): no part collapses onto a
 * few residues, and each has one maximum. */

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

static double step_torsion(void *work)
{
    torsion_fit *fit = work;
    tsr_torsion_mixture *m = &fit->m;
    double term[TSR_MAX_VON_MISES][N_TERM];
    double x[TSR_MAX_VON_MISES] = {0}, weight[TSR_MAX_VON_MISES];
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
        total += shares_of(n, x);
        for (int k = 0; k < n; k++)
            for (int t = 0; t < N_TERM && x[k] > 1e-12; t++)
                sum[k][t] += x[k] * at[t];
    }
    for (int k = 0; k < n; k++)
        x[k] = sum[k][0];
    weights_of(n, fit->n, x, TSR_UNIFORM_WEIGHT, weight);
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

static double distance2_torsion(const void *work, long i, long j)
{
    const torsion_fit *fit = work;
    double d2 = 0.0;
    for (int t = 1; t <= 4; t++) {
        double d = fit->at[i][t] - fit->at[j][t];
        d2 += d * d;
    }
    return d2;
}

static void start_torsion(void *work, gsl_rng *rng)
{
    torsion_fit *fit = work;
    tsr_torsion_mixture *m = &fit->m;
    long pick[TSR_MAX_VON_MISES];
    int n = fit->n_part - 1;
    spread_out(fit, fit->n, distance2_torsion, rng, fit->nearest, n, pick);
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

static tsr_status fit_torsions(long n, const double *x, int n_part, int effort,
                               void *mixture, tsr_err *err)
{
    static const em_type type = {start_torsion, step_torsion};
    torsion_fit fit = {.n = n, .n_part = n_part};
    tsr_pool pool = {0};
    tsr_pool_array(&pool, fit.at, n);
    tsr_pool_array(&pool, fit.nearest, n);
    tsr_status s = tsr_pool_check(&pool, err);
    for (long i = 0; i < n && s == TSR_OK; i++) {
        double a = cos(x[2 * i]), b = sin(x[2 * i]);
        double c = cos(x[2 * i + 1]), d = sin(x[2 * i + 1]);
        memcpy(fit.at[i],
               (double[N_TERM]){1.0, a, b, c, d, a * c, a * d, b * c, b * d},
               sizeof fit.at[i]);
    }
    TSR_THEN(s, run_em(&type, &fit, &fit.m, sizeof fit.m, effort, err));
    if (s == TSR_OK) { /* the uniform part stays last */
        qsort(fit.m.part, (size_t)n_part - 1, sizeof fit.m.part[0], by_weight);
        *(tsr_torsion_mixture *)mixture = fit.m;
    }
    tsr_pool_clear(&pool);
    return s;
}

static tsr_status evaluate_torsion(const void *mixture, long n, const double *x,
                                   double *value, tsr_err *err)
{
    tsr_torsion_density *density = tsr_torsion_density_new(mixture);
    TSR_TRY(tsr_allocated(density, err));
    for (long i = 0; i < n; i++)
        value[i] = tsr_torsion_density_log(density, x[2 * i], x[2 * i + 1]);
    free(density);
    return TSR_OK;
}

const tsr_mixture_type tsr_mixture_torsion = {.dim = 2,
                                              .least = 2,
                                              .most = TSR_MAX_VON_MISES,
                                              .size =
                                                  sizeof(tsr_torsion_mixture),
                                              .fit = fit_torsions,
                                              .evaluate = evaluate_torsion};

/* ---- mixtures of side-chain centres ----
 *
 * Mixtures of Gaussians fitted to side-chain centres.
 *
 * No Gaussian is narrower than TSR_LEAST_SIDE_SD in any direction. Where there
 * are two or more, the last is broad: the mean of all, four times their
 * covariance, a weight of at least TSR_BROAD_WEIGHT. What is far from all that
 * was seen is then unlikely, and not by hundreds of nats. */

static const double broad_scale = 4.0, start_broad = 0.02;

typedef struct {
    long n;
    int n_part;
    const double *at;          /* [n][3] */
    double *nearest;           /* [n] scratch */
    double mean[3], cov[3][3]; /* of all */
    tsr_side_mixture m;        /* as it is */
} side_fit;

/* Raises what is below the least variance, along the axes of the covariance:
 * the maximum of the likelihood under that bound. */
static void bound_covariance(double cov[3][3])
{
    static const double least = TSR_LEAST_SIDE_SD * TSR_LEAST_SIDE_SD;
    double matrix[9], value[3], axis[3][3];
    memcpy(matrix, cov, sizeof matrix);
    tsr_eigen(3, matrix, value, axis[0]);
    if (value[2] >= least)
        return;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int k = 0; k < 3; k++)
                sum += fmax(value[k], least) * axis[k][i] * axis[k][j];
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

static void take_moments(const side_fit *fit, const moments *m,
                         tsr_side_gaussian *g)
{
    covariance_of(m, g->mean, g->cov);
    for (int i = 0; i < 3; i++)
        g->mean[i] += fit->mean[i];
    bound_covariance(g->cov);
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

static double step_side(void *work)
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
        total += shares_of(m->n, e);
        for (int k = 0; k < m->n; k++)
            if (e[k] > 1e-12)
                add_moments(&sum[k], e[k], x);
    }
    for (int k = 0; k < m->n; k++)
        e[k] = sum[k].weight;
    if (m->n > 1)
        weights_of(m->n, fit->n, e, TSR_BROAD_WEIGHT, weight);
    for (int k = 0; k < m->n && m->n > 1; k++)
        m->part[k].weight = weight[k];
    for (int k = 0; k < n_free(fit); k++)
        if (sum[k].weight > 1e-3)
            take_moments(fit, &sum[k], &m->part[k]);
    return total / (double)fit->n;
}

static double distance2_side(const void *work, long i, long j)
{
    const side_fit *fit = work;
    return tsr_vec3_distance2(fit->at + 3 * i, fit->at + 3 * j);
}

/* Each centre goes with the nearest of those picked. In one start of two all
 * Gaussians begin with the same broad covariance: neither finds the better
 * maximum always. */
static void start_side(void *work, gsl_rng *rng)
{
    side_fit *fit = work;
    int n = n_free(fit), is_broad = gsl_rng_uniform(rng) < 0.5;
    long pick[TSR_MAX_SIDE_GAUSSIAN];
    moments sum[TSR_MAX_SIDE_GAUSSIAN] = {{0}};
    spread_out(fit, fit->n, distance2_side, rng, fit->nearest, n, pick);
    for (long i = 0; i < fit->n; i++) {
        double x[3], d2, least = HUGE_VAL;
        int at = 0;
        for (int k = 0; k < n; k++)
            if ((d2 = distance2_side(fit, i, pick[k])) < least)
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
        bound_covariance(g->cov);
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
    bound_covariance(fit->cov);
}

static tsr_status fit_sides(long n, const double *x, int n_part, int effort,
                            void *mixture, tsr_err *err)
{
    static const em_type type = {start_side, step_side};
    side_fit fit = {.n = n, .n_part = n_part, .at = x};
    fit.nearest = malloc((size_t)n * sizeof *fit.nearest);
    TSR_TRY(tsr_allocated(fit.nearest, err));
    whole(&fit);
    tsr_status s = run_em(&type, &fit, &fit.m, sizeof fit.m, effort, err);
    if (s == TSR_OK) {
        qsort(fit.m.part, (size_t)n_free(&fit), sizeof fit.m.part[0],
              by_weight);
        *(tsr_side_mixture *)mixture = fit.m;
    }
    free(fit.nearest);
    return s;
}

static tsr_status evaluate_side(const void *mixture, long n, const double *x,
                                double *value, tsr_err *err)
{
    tsr_side_density *density = tsr_side_density_new(mixture);
    TSR_TRY(tsr_allocated(density, err));
    for (long i = 0; i < n; i++)
        value[i] = tsr_side_density_log(density, x + 3 * i);
    free(density);
    return TSR_OK;
}

const tsr_mixture_type tsr_mixture_side = {.dim = 3,
                                           .least = 1,
                                           .most = TSR_MAX_SIDE_GAUSSIAN,
                                           .size = sizeof(tsr_side_mixture),
                                           .fit = fit_sides,
                                           .evaluate = evaluate_side};

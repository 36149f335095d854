/* Trains mixtures: chooses the number of parts on held-out structures, and fits
 * by expectation-maximisation (EM) from several random starts. Small mixtures
 * have many maxima of nearly the same likelihood, so one start is not enough;
 * iterating all starts to convergence would take ten times as long. */
#include "core/parallel.h"
#include "core/pool.h"
#include "core/random.h"
#include "core/vec3.h"
#include "molecule/prior_density.h"
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIAL = 1,
    FINAL = 5
}; /* effort of fits for the choice, and of the last fit */
enum { LEAST_HELD_OUT = 10 };
static const double slack =
    0.002; /* largest loss of held-out log density, nat */

/* The observations of a task: first those for training, then those held out. */
typedef struct {
    tsr_mixture_task *task;
    double *x;
    int *test_file; /* [n_test] */
    long n_train, n_test;
    double *value[TSR_MIXTURE_MOST + 1]; /* [n_test] log densities by number of
                                            parts; NULL: too few observations */
} split_sample;

/* One fit with a number of parts: to the training observations, or (is_final)
 * to all observations. */
typedef struct {
    split_sample *of;
    int n_part, is_final;
    tsr_status status;
    tsr_err error;
} fit_job;

static tsr_status run_job(const fit_job *j, tsr_err *err)
{
    const split_sample *of = j->of;
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

static void run_part(void *context, int part, int thread)
{
    fit_job *j = (fit_job *)context + part;
    (void)thread;
    j->status = run_job(j, &j->error);
}

static tsr_status run_jobs(int n, fit_job *list, int n_thread, tsr_err *err)
{
    tsr_parallel_run(n, n_thread > 0 ? n_thread : tsr_parallel_processors(),
                     run_part, list);
    for (int i = 0; i < n; i++)
        if (list[i].status != TSR_OK)
            return tsr_fail(err, list[i].status, "%s", list[i].error.message);
    return TSR_OK;
}

static int is_held_out(int file)
{
    return file % TSR_MIXTURE_HOLD_OUT == TSR_MIXTURE_HOLD_OUT - 1;
}

static tsr_status split_make(split_sample *s, tsr_mixture_task *task,
                             tsr_pool *pool, tsr_err *err)
{
    size_t dim = (size_t)task->type->dim;
    *s = (split_sample){.task = task};
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

/* Standard error of the mean of a - b, whose mean is `mean`. Residues of one
 * structure are consecutive and count as one cluster, since they are not
 * independent. */
static double standard_error(const split_sample *s, const double *a,
                             const double *b, double mean)
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

static void choose_n_part(split_sample *s, tsr_log *log)
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

/* Lists the fits for the choice, the largest numbers of parts first, so that no
 * thread ends with a long job. A mixture of k parts needs LEAST_PER_PART k
 * observations. Returns the number of jobs. */
static int list_trials(fit_job *list, int n_task, split_sample *s,
                       tsr_pool *pool)
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
            list[n++] = (fit_job){.of = &s[i], .n_part = k};
        }
    return n;
}

tsr_status tsr_mixture_train(int n_task, tsr_mixture_task *task, int n_thread,
                             tsr_log *log, tsr_err *err)
{
    tsr_pool pool = {0};
    split_sample *s;
    fit_job *list;
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
    TSR_THEN(status, run_jobs(n, list, n_thread, err));
    for (int i = 0; i < n_task && status == TSR_OK; i++) {
        choose_n_part(&s[i], log);
        list[i] =
            (fit_job){.of = &s[i], .n_part = task[i].n_part, .is_final = 1};
    }
    TSR_THEN(status, run_jobs(n_task, list, n_thread, err));
    tsr_pool_clear(&pool);
    return status;
}

/* ---- expectation-maximisation ----
 *
 * Dempster, Laird & Rubin 1977. A few steps from each of many starts, then the
 * best are iterated to convergence (Biernacki, Celeux & Govaert 2003). Starts
 * come from a fixed random stream. */

enum { N_START = 12, N_SHORT = 12, N_LONG = 400, SEED = 20 };
static const double converged =
    1e-6; /* smallest gain of a step, nat per observation */

typedef struct {
    /* Sets the mixture in `work` to a random start. */
    void (*start)(void *work, gsl_rng *rng);
    /* One EM step; returns the mean log density of the observations under the
     * mixture before the step. */
    double (*step)(void *work);
} em_type;

/* Steps until the gain is below `converged`; returns the last mean log density.
 */
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

/* Returns the start with the highest log density, and marks it as used. */
static int pop_best_start(double highest[N_START])
{
    int best = 0;
    for (int i = 1; i < N_START; i++)
        if (highest[i] > highest[best])
            best = i;
    highest[best] = -HUGE_VAL;
    return best;
}

/* EM from N_START starts, of which the n_long best are iterated to convergence;
 * the best result is left in `mixture` (`size` bytes, the part of `work` that
 * start and step change). */
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
        int from = pop_best_start(value);
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

/* Picks n of n_x observations far from each other: each with probability
 * proportional to its squared distance from the nearest one picked before
 * (k-means++, Arthur & Vassilvitskii 2007). pick [n] out; nearest [n_x]
 * scratch; distance2: squared distance of two observations of `work`. */
static void pick_spread(const void *work, long n_x,
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

/* Responsibilities of n parts for an observation: x [n] log densities in,
 * responsibilities out. Returns the log of the sum of the densities. */
static double responsibilities(int n, double *x)
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

/* Weights of n parts that maximise the likelihood if the last, broad part has a
 * weight of at least `least`. share [n]: sums of responsibilities over n_x
 * observations. weight [n] out. */
static void bounded_weights(int n, long n_x, const double *share, double least,
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

/* Sorts parts by weight, largest first; weight is the first member of a part.
 */
static int by_weight(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p < q) - (p > q);
}

/* ---- mixtures of torsions ----
 *
 * The last part is uniform, with a weight of at least TSR_UNIFORM_WEIGHT, so
 * that the density is nowhere less than that weight / 4 pi^2. k_phi and k_psi
 * are at most TSR_MAX_KAPPA (a standard deviation of 2.6 degrees), and |lambda|
 * is at most 0.98 sqrt(k_phi k_psi). So no part collapses onto a few residues,
 * and each part has one maximum. */

enum { N_TERM = TSR_VON_MISES_TERM, N_PARAMETER = 5, N_NEWTON = 10 };
static const double most_correlation = 0.98;
static const double flat = 1e-4; /* largest component of the gradient at the end
                                    of the search: 1e-8 nat */
static const double start_kappa = 20.0, start_uniform = 0.02;

typedef struct {
    long n;
    int n_part;            /* parts, the uniform one included */
    double (*at)[N_TERM];  /* [n] 1, cos phi, ... (molecule/prior_density.h) */
    double *nearest;       /* [n] scratch */
    tsr_torsion_mixture m; /* the mixture */
} torsion_fit;

/* A part by its unbounded parameters: phi, psi, the logits of k_phi and k_psi
 * over TSR_MAX_KAPPA, atanh(lambda / (most_correlation sqrt(k_phi k_psi))). */
typedef struct {
    double x[N_PARAMETER];
    tsr_von_mises part;
    double norm, moment[3]; /* of molecule/prior_density.h */
} part_point;

static void set_angles(part_point *p)
{
    p->part.phi = p->x[0];
    p->part.psi = p->x[1];
}

static void set_shape(part_point *p)
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

static part_point point_of(const tsr_von_mises *part)
{
    double root = sqrt(part->k_phi * part->k_psi);
    double r = root > 0.0 ? part->lambda / (most_correlation * root) : 0.0;
    part_point p = {.x = {part->phi, part->psi, logit_of(part->k_phi),
                          logit_of(part->k_psi),
                          atanh(fmin(fmax(r, -0.999), 0.999))},
                    .part = *part};
    set_angles(&p);
    set_shape(&p);
    return p;
}

/* The negative log density of a part, averaged over its residues, from the
 * means of their terms: mean [N_TERM]. gradient [N_PARAMETER] out. */
static double negative_log_density(const part_point *p, const double *mean,
                                   double *gradient)
{
    const double *e = mean;
    double k1 = p->part.k_phi, k2 = p->part.k_psi, l = p->part.lambda;
    double cm = cos(p->part.phi), sm = sin(p->part.phi);
    double cn = cos(p->part.psi), sn = sin(p->part.psi);
    double cos1 = cm * e[1] + sm * e[2], sin1 = cm * e[2] - sm * e[1];
    double cos2 = cn * e[3] + sn * e[4], sin2 = cn * e[4] - sn * e[3];
    /* means of products of cosines and sines of the deviations from phi, psi */
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

/* The Hessian by finite differences of the gradient. */
static void hessian_at(const part_point *p, const double *mean,
                       const double gradient[N_PARAMETER],
                       double h[N_PARAMETER][N_PARAMETER])
{
    static const double delta = 1e-5;
    for (int i = 0; i < N_PARAMETER; i++) {
        part_point q = *p;
        q.x[i] += delta;
        if (i < 2)
            set_angles(&q);
        else
            set_shape(&q);
        negative_log_density(&q, mean, h[i]);
        for (int j = 0; j < N_PARAMETER; j++)
            h[i][j] = (h[i][j] - gradient[j]) / delta;
    }
    for (int i = 0; i < N_PARAMETER; i++)
        for (int j = 0; j < i; j++)
            h[i][j] = h[j][i] = 0.5 * (h[i][j] + h[j][i]);
}

/* step = -(h + ridge)^-1 gradient, by Cholesky decomposition. Returns 0 where h
 * + ridge is not positive definite. */
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

/* One Newton step, with a ridge that grows until the value falls (Levenberg &
 * Marquardt). Returns 0 where the gradient vanishes or no step lowers the
 * value. */
static int newton_step(part_point *p, const double *mean, double *ridge)
{
    double gradient[N_PARAMETER], h[N_PARAMETER][N_PARAMETER];
    double before = negative_log_density(p, mean, gradient), largest = 0.0;
    for (int i = 0; i < N_PARAMETER; i++)
        largest = fmax(largest, fabs(gradient[i]));
    if (largest < flat)
        return 0;
    hessian_at(p, mean, gradient, h);
    for (int k = 0; k < 12; k++) {
        double step[N_PARAMETER], unused[N_PARAMETER];
        if (solve(h, *ridge, gradient, step)) {
            part_point q = *p;
            for (int i = 0; i < N_PARAMETER; i++)
                q.x[i] += fmax(-1.0, fmin(1.0, step[i]));
            set_angles(&q);
            set_shape(&q);
            if (negative_log_density(&q, mean, unused) < before) {
                *p = q;
                *ridge *= 0.1;
                return 1;
            }
        }
        *ridge = fmax(1e-3, *ridge * 10.0);
    }
    return 0;
}

static void fit_part(tsr_von_mises *part, const double mean[N_TERM])
{
    part_point p = point_of(part);
    double ridge = 0.0;
    for (int i = 0; i < N_NEWTON && newton_step(&p, mean, &ridge); i++)
        ;
    p.part.phi = tsr_von_mises_wrap(p.part.phi);
    p.part.psi = tsr_von_mises_wrap(p.part.psi);
    *part = p.part;
}

static double torsion_step(void *work)
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
        total += responsibilities(n, x);
        for (int k = 0; k < n; k++)
            for (int t = 0; t < N_TERM && x[k] > 1e-12; t++)
                sum[k][t] += x[k] * at[t];
    }
    for (int k = 0; k < n; k++)
        x[k] = sum[k][0];
    bounded_weights(n, fit->n, x, TSR_UNIFORM_WEIGHT, weight);
    for (int k = 0; k < n; k++)
        m->part[k].weight = weight[k];
    for (int k = 0; k < n - 1; k++) {
        if (sum[k][0] < 1e-3)
            continue; /* no residue belongs to this part */
        for (int t = N_TERM - 1; t >= 0; t--)
            sum[k][t] /= sum[k][0];
        fit_part(&m->part[k], sum[k]);
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

static void torsion_start(void *work, gsl_rng *rng)
{
    torsion_fit *fit = work;
    tsr_torsion_mixture *m = &fit->m;
    long pick[TSR_MAX_VON_MISES];
    int n = fit->n_part - 1;
    pick_spread(fit, fit->n, distance2_torsion, rng, fit->nearest, n, pick);
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
    static const em_type type = {torsion_start, torsion_step};
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
    if (s == TSR_OK) { /* the uniform part remains the last */
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
 * No Gaussian has a standard deviation below TSR_LEAST_SIDE_SD in any
 * direction. In mixtures of two or more the last Gaussian is broad: the mean of
 * all observations, four times their covariance, a weight of at least
 * TSR_BROAD_WEIGHT. An outlier is then unlikely, but not by hundreds of nats.
 */

static const double broad_scale = 4.0, start_broad = 0.02;

typedef struct {
    long n;
    int n_part;
    const double *at;          /* [n][3] */
    double *nearest;           /* [n] scratch */
    double mean[3], cov[3][3]; /* of all observations */
    tsr_side_mixture m;        /* the mixture */
} side_fit;

/* Raises variances below the bound, along the axes of the covariance, which
 * maximises the likelihood under the bound. */
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

/* Weighted sums of 1, x and x x^T, x relative to the mean of all observations.
 */
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

static void set_gaussian(const side_fit *fit, const moments *m,
                         tsr_side_gaussian *g)
{
    covariance_of(m, g->mean, g->cov);
    for (int i = 0; i < 3; i++)
        g->mean[i] += fit->mean[i];
    bound_covariance(g->cov);
}

/* A Gaussian prepared for the inner loop: log of its norm, mean, and half the
 * precision (inverse covariance, by cofactors). */
typedef struct {
    double log_scale, mean[3], p[6]; /* p: half of xx yy zz, and xy xz yz */
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
    prepared out = {.log_scale = log(g->weight) - 1.5 * log(2.0 * TSR_PI) -
                                 0.5 * log(det),
                    .p = {0.5 * xx / det, 0.5 * yy / det, 0.5 * zz / det,
                          xy / det, xz / det, yz / det}};
    tsr_vec3_sub(out.mean, g->mean, fit->mean);
    return out;
}

static double log_density(const prepared *g, const double x[3])
{
    double d[3];
    tsr_vec3_sub(d, x, g->mean);
    return g->log_scale - (g->p[0] * d[0] * d[0] + g->p[1] * d[1] * d[1] +
                           g->p[2] * d[2] * d[2] + g->p[3] * d[0] * d[1] +
                           g->p[4] * d[0] * d[2] + g->p[5] * d[1] * d[2]);
}

/* The number of Gaussians with free parameters: all but the broad one. */
static int n_free(const side_fit *fit)
{
    return fit->n_part > 1 ? fit->n_part - 1 : 1;
}

static double side_step(void *work)
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
            e[k] = log_density(&part[k], x);
        total += responsibilities(m->n, e);
        for (int k = 0; k < m->n; k++)
            if (e[k] > 1e-12)
                add_moments(&sum[k], e[k], x);
    }
    for (int k = 0; k < m->n; k++)
        e[k] = sum[k].weight;
    if (m->n > 1)
        bounded_weights(m->n, fit->n, e, TSR_BROAD_WEIGHT, weight);
    for (int k = 0; k < m->n && m->n > 1; k++)
        m->part[k].weight = weight[k];
    for (int k = 0; k < n_free(fit); k++)
        if (sum[k].weight > 1e-3)
            set_gaussian(fit, &sum[k], &m->part[k]);
    return total / (double)fit->n;
}

static double distance2_side(const void *work, long i, long j)
{
    const side_fit *fit = work;
    return tsr_vec3_distance2(fit->at + 3 * i, fit->at + 3 * j);
}

/* A start: each observation is assigned to the nearest of the picked ones. In
 * half of the starts all Gaussians begin with the same broad covariance, since
 * neither choice always finds the better maximum. */
static void side_start(void *work, gsl_rng *rng)
{
    side_fit *fit = work;
    int n = n_free(fit), is_broad = gsl_rng_uniform(rng) < 0.5;
    long pick[TSR_MAX_SIDE_GAUSSIAN];
    moments sum[TSR_MAX_SIDE_GAUSSIAN] = {{0}};
    pick_spread(fit, fit->n, distance2_side, rng, fit->nearest, n, pick);
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
        if (!(sum[k].weight >
              0.0)) /* picked twice: no observation is assigned */
            add_moments(&sum[k], 1.0, (double[3]){0.0, 0.0, 0.0});
        g->weight = share * sum[k].weight / (double)fit->n;
        set_gaussian(fit, &sum[k], g);
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

static void set_total_moments(side_fit *fit)
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
    static const em_type type = {side_start, side_step};
    side_fit fit = {.n = n, .n_part = n_part, .at = x};
    fit.nearest = malloc((size_t)n * sizeof *fit.nearest);
    TSR_TRY(tsr_allocated(fit.nearest, err));
    set_total_moments(&fit);
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

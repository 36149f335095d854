/* Training mixtures: how a mixture of given size is fitted is the type's; here
 * is what all of them share, the choice of the size by structures held out, the
 * threads, and expectation-maximisation from several starts. Small mixtures
 * have many maxima of nearly the same height, so that one start is not enough,
 * and following all of them to the end would cost ten times as much. */
#include "train/mixture_train.h"
#include "core/random.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRIAL = 1, FINAL = 5 }; /* effort */
enum { MAX_THREAD = 64, LEAST_HELD_OUT = 10 };
static const double slack = 0.002; /* nat */

/* The observations of a task: those trained on first, then those held out. */
typedef struct {
    tsr_mixture_task *task;
    double *x;
    int *test_file; /* [n_test] */
    long n_train, n_test;
    double *value[TSR_MIXTURE_MOST + 1]; /* [n_test], by number of parts */
} split;

/* One fit: a task, a number of parts, on part of the observations or all. */
typedef struct {
    split *of;
    int n_part, is_final;
} job;

/* The jobs that the threads share; `next` is under the mutex. */
typedef struct {
    int n, next;
    job *job;
    pthread_mutex_t mutex;
    tsr_status status; /* of a job that failed, under the mutex */
    tsr_err error;
} job_list;

static tsr_status do_job(const job *j, tsr_err *err)
{
    split *of = j->of;
    const tsr_mixture_task *task = of->task;
    if (j->is_final)
        return task->type->fit(task->n, task->x, j->n_part, FINAL,
                               task->mixture, err);
    double *value = malloc((size_t)of->n_test * sizeof *value);
    void *mixture = calloc(1, task->type->size);
    tsr_status s;
    if (value == NULL || mixture == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to train a mixture");
    else
        s = task->type->fit(of->n_train, of->x, j->n_part, TRIAL, mixture, err);
    if (s == TSR_OK)
        s = task->type->evaluate(mixture, of->n_test,
                                 of->x + of->n_train * task->type->dim, value,
                                 err);
    if (s == TSR_OK) {
        of->value[j->n_part] = value;
        value = NULL;
    }
    free(mixture);
    free(value);
    return s;
}

static void *work(void *argument)
{
    job_list *list = argument;
    for (;;) {
        pthread_mutex_lock(&list->mutex);
        int i =
            list->status == TSR_OK && list->next < list->n ? list->next++ : -1;
        pthread_mutex_unlock(&list->mutex);
        if (i < 0)
            return NULL;
        tsr_err error;
        tsr_status s = do_job(&list->job[i], &error);
        if (s != TSR_OK) {
            pthread_mutex_lock(&list->mutex);
            list->status = s;
            list->error = error;
            pthread_mutex_unlock(&list->mutex);
        }
    }
}

static tsr_status do_jobs(job_list *list, int n_thread, tsr_err *err)
{
    pthread_t thread[MAX_THREAD];
    long n = n_thread > 0 ? n_thread : sysconf(_SC_NPROCESSORS_ONLN);
    int started = 0;
    list->next = 0;
    while (started < n - 1 && started < MAX_THREAD &&
           pthread_create(&thread[started], NULL, work, list) == 0)
        started++;
    work(list); /* the caller works too, alone where no thread can be had */
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return list->status == TSR_OK
               ? TSR_OK
               : tsr_fail(err, list->status, "%s", list->error.message);
}

static int is_held_out(int file)
{
    return file % TSR_MIXTURE_HOLD_OUT == TSR_MIXTURE_HOLD_OUT - 1;
}

static tsr_status split_make(split *s, tsr_mixture_task *task, tsr_err *err)
{
    size_t dim = (size_t)task->type->dim, n = (size_t)task->n;
    *s = (split){.task = task};
    s->x = malloc((n * dim + 1) * sizeof *s->x);
    s->test_file = malloc((n + 1) * sizeof *s->test_file);
    if (s->x == NULL || s->test_file == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %ld observations",
                        task->n);
    for (long i = 0; i < task->n; i++)
        s->n_train += !is_held_out(task->file[i]);
    long at[2] = {0, s->n_train};
    for (long i = 0; i < task->n; i++) {
        int held_out = is_held_out(task->file[i]);
        if (held_out)
            s->test_file[s->n_test++] = task->file[i];
        memcpy(s->x + (size_t)at[held_out]++ * dim, task->x + (size_t)i * dim,
               dim * sizeof *s->x);
    }
    task->n_held_out = s->n_test;
    return TSR_OK;
}

static void split_clear(split *s)
{
    for (int k = 0; k <= TSR_MIXTURE_MOST; k++)
        free(s->value[k]);
    free(s->x);
    free(s->test_file);
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
        if (log != NULL)
            tsr_info(log, "%s: %ld observations, %ld of them held out: %d", //
                     task->name, task->n, s->n_test, least);
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
        if (log != NULL)
            tsr_debug(log, "%s: %d: held out %.4f nat, %.4f +- %.4f less",
                      task->name, k, task->held_out[k], less, error);
    }
    if (log != NULL)
        tsr_info(log,
                 "%s: %ld observations, %d parts; held out %ld: %.4f nat "
                 "(%d: %.4f, best %d: %.4f)",
                 task->name, task->n, task->n_part, s->n_test,
                 task->held_out[task->n_part], least, task->held_out[least],
                 best, task->held_out[best]);
}

/* From the largest numbers of parts down, so that no thread ends with a long
 * one. A mixture of k parts wants some observations for each. */
static void list_trials(job_list *list, int n_task, split *s)
{
    enum { LEAST_PER_PART = 10 };
    for (int k = TSR_MIXTURE_MOST; k >= 1; k--)
        for (int i = 0; i < n_task; i++) {
            const tsr_mixture_type *type = s[i].task->type;
            if (k < type->least || k > type->most ||
                s[i].n_test < LEAST_HELD_OUT ||
                s[i].n_train < (long)k * LEAST_PER_PART)
                continue;
            list->job[list->n++] = (job){&s[i], k, 0};
        }
}

tsr_status tsr_mixture_train(int n_task, tsr_mixture_task *task, int n_thread,
                             tsr_log *log, tsr_err *err)
{
    job_list list = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    split *s = calloc((size_t)n_task + 1, sizeof *s);
    list.job = malloc(((size_t)n_task + 1) * TSR_MIXTURE_MOST * sizeof(job));
    tsr_status status = TSR_OK;
    if (s == NULL || list.job == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory to train mixtures");
    for (int i = 0; i < n_task && status == TSR_OK; i++)
        status = split_make(&s[i], &task[i], err);
    if (status == TSR_OK) {
        list_trials(&list, n_task, s);
        status = do_jobs(&list, n_thread, err);
    }
    if (status == TSR_OK) {
        list.n = 0;
        for (int i = 0; i < n_task; i++) {
            choose(&s[i], log);
            list.job[list.n++] = (job){&s[i], task[i].n_part, 1};
        }
        status = do_jobs(&list, n_thread, err);
    }
    for (int i = 0; s != NULL && i < n_task; i++)
        split_clear(&s[i]);
    pthread_mutex_destroy(&list.mutex);
    free(list.job);
    free(s);
    return status;
}

/* ---- expectation-maximisation ---- */

enum { N_START = 12, N_SHORT = 12, N_LONG = 400, SEED = 20 };
static const double converged = 1e-6; /* nat, an observation and a step */

/* Steps until they gain too little; returns the last mean log density. */
static double run_long(const tsr_em_type *type, void *work)
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

tsr_status tsr_em_run(const tsr_em_type *type, void *work, void *mixture,
                      size_t size, int n_long, tsr_err *err)
{
    char *kept = malloc((N_START + 1) * size), *best = kept;
    gsl_rng *rng = tsr_rng_new(SEED, 0);
    if (kept == NULL || rng == NULL) {
        free(kept);
        if (rng != NULL)
            gsl_rng_free(rng);
        return tsr_fail(err, TSR_E_NOMEM, "no memory to fit a mixture");
    }
    double value[N_START], highest = -HUGE_VAL;
    for (int i = 0; i < N_START; i++) {
        type->start(work, rng);
        for (int k = 0; k < N_SHORT; k++)
            value[i] = type->step(work);
        memcpy(kept + (size_t)(i + 1) * size, mixture, size);
    }
    for (int i = 0; i < n_long && i < N_START; i++) {
        int from = best_left(value);
        memcpy(mixture, kept + (size_t)(from + 1) * size, size);
        double now = run_long(type, work);
        if (i == 0 || now > highest) {
            highest = now;
            memcpy(best, mixture, size);
        }
    }
    memcpy(mixture, best, size);
    free(kept);
    gsl_rng_free(rng);
    return TSR_OK;
}

void tsr_em_spread(const void *work, long n_x,
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

double tsr_em_shares(int n, double *x)
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

void tsr_em_weights(int n, long n_x, const double *share, double least,
                    double *weight)
{
    int last = n - 1;
    double broad = fmax(share[last] / (double)n_x, least);
    double others = (double)n_x - share[last];
    for (int k = 0; k < last; k++)
        weight[k] = others > 0.0 ? (1.0 - broad) * share[k] / others
                                 : (1.0 - broad) / last;
    weight[last] = broad;
}

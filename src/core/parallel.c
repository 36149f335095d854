/* Each thread takes the next part that is not yet taken, until all are done,
 * because parts may differ in cost. */
#include "core/parallel.h"

#include "core/ranks.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* A loop whose parts are distributed over threads. */
typedef struct {
    int n_part;
    atomic_int next, next_thread;
    tsr_parallel_work work;
    void *context;
} job;

/* Most threads of a loop that this thread begins; 1 while the thread computes
 * one of several parts, since the processors are then busy. */
static _Thread_local int limit = TSR_MAX_THREAD;

int tsr_parallel_processors(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > limit ? limit : (int)n;
}

void tsr_parallel_limit(int n_thread)
{
    limit = n_thread < TSR_MAX_THREAD ? n_thread : TSR_MAX_THREAD;
}

static void *run_parts(void *argument)
{
    job *j = argument;
    const int before = limit;
    int thread = atomic_fetch_add(&j->next_thread, 1), part;
    limit = j->n_part > 1 ? 1 : limit;
    while ((part = atomic_fetch_add(&j->next, 1)) < j->n_part)
        j->work(j->context, part, thread);
    limit = before;
    return NULL;
}

void tsr_parallel_run(int n_part, int n_thread, tsr_parallel_work work,
                      void *context)
{
    pthread_t thread[TSR_MAX_THREAD];
    job j = {.n_part = n_part, .work = work, .context = context};
    int most = n_thread < n_part ? n_thread : n_part;
    int started = 0;
    most = most > limit ? limit : most;
    while (started < most - 1 &&
           pthread_create(&thread[started], NULL, run_parts, &j) == 0)
        started++;
    run_parts(&j);
    for (int t = 0; t < started; t++)
        pthread_join(thread[t], NULL);
}

/* Items first to first + n - 1 of a loop that can fail. */
typedef struct {
    tsr_parallel_item work;
    void *context;
    int first, n;
    pthread_mutex_t lock; /* guards failed, status and err */
    atomic_int failed;    /* the lowest item that failed, or INT_MAX */
    tsr_status status;
    tsr_err err;
} attempt;

static void note_failure(attempt *a, int item, tsr_status status,
                         const tsr_err *err)
{
    pthread_mutex_lock(&a->lock);
    if (status != TSR_OK && item < atomic_load(&a->failed)) {
        atomic_store(&a->failed, item);
        a->status = status;
        a->err = *err;
    }
    pthread_mutex_unlock(&a->lock);
}

static void try_item(void *argument, int part, int thread)
{
    attempt *a = argument;
    const int item = a->first + part;
    tsr_err err = {.status = TSR_OK};
    if (item < atomic_load(&a->failed))
        note_failure(a, item, a->work(a->context, item, thread, &err), &err);
}

static void begin_attempt(attempt *a, int n, tsr_parallel_item work,
                          void *context)
{
    *a = (attempt){.work = work, .context = context, .n = n};
    a->status = TSR_OK;
    atomic_init(&a->failed, INT_MAX);
    pthread_mutex_init(&a->lock, NULL);
}

static tsr_status end_attempt(attempt *a, tsr_err *err)
{
    pthread_mutex_destroy(&a->lock);
    if (a->status != TSR_OK && err != NULL)
        *err = a->err;
    return a->status;
}

tsr_status tsr_parallel_try(int n_item, int n_thread, tsr_parallel_item work,
                            void *context, tsr_err *err)
{
    attempt a;
    begin_attempt(&a, n_item, work, context);
    tsr_parallel_run(n_item, n_thread, try_item, &a);
    return end_attempt(&a, err);
}

/* ---- over ranks ----
 *
 * Only main threads may exchange messages. That of rank 0 deals runs of items
 * to the other ranks, while a second thread computes runs of its own. */

/* What a rank reports with the results of a run, and what it receives: the next
 * run, n 0: none is left. */
typedef struct {
    int first, n;
    int failed; /* item, where status is not TSR_OK */
    tsr_status status;
    tsr_err err;
} item_run;

typedef struct {
    attempt all; /* failed: the lowest item that failed on any rank */
    int n_thread, n_rank;
    int most;      /* items of a run, whose results a message can hold */
    int next;      /* first item that no rank has */
    item_run here; /* the first run of rank 0 */
} dealer;

static item_run next_run(dealer *d)
{
    pthread_mutex_lock(&d->all.lock);
    const int left = d->all.status == TSR_OK ? d->all.n - d->next : 0;
    const int share = left / (2 * d->n_rank);
    int n = share > d->n_thread ? share : d->n_thread;
    n = n < d->most ? n : d->most;
    const item_run run = {.first = d->next, .n = n < left ? n : left};
    d->next += run.n;
    pthread_mutex_unlock(&d->all.lock);
    return run;
}

static void compute_run(const attempt *all, int n_thread, item_run *run)
{
    attempt a;
    begin_attempt(&a, run->n, all->work, all->context);
    a.first = run->first;
    tsr_parallel_run(a.n, n_thread, try_item, &a);
    run->failed = atomic_load(&a.failed);
    run->status = end_attempt(&a, &run->err);
}

static void *compute_here(void *argument)
{
    dealer *d = argument;
    for (item_run run = d->here; run.n > 0; run = next_run(d)) {
        compute_run(&d->all, d->n_thread, &run);
        note_failure(&d->all, run.failed, run.status, &run.err);
    }
    return NULL;
}

/* Rank 0: receives results and deals runs until no rank computes any more. */
static tsr_status deal(dealer *d, size_t n_byte, char *result, tsr_err *err)
{
    for (int n_active = d->n_rank - 1; n_active > 0;) {
        item_run run;
        int from;
        TSR_TRY(tsr_ranks_receive(&run, sizeof run, -1, &from, err));
        if (run.n > 0)
            TSR_TRY(tsr_ranks_receive(result + (size_t)run.first * n_byte,
                                      (size_t)run.n * n_byte, from, NULL, err));
        note_failure(&d->all, run.failed, run.status, &run.err);
        run = next_run(d);
        n_active -= run.n == 0;
        TSR_TRY(tsr_ranks_send(&run, sizeof run, from, err));
    }
    return TSR_OK;
}

/* Another rank: asks rank 0 for runs, and sends their results. */
static tsr_status serve(const attempt *all, int n_thread, size_t n_byte,
                        const char *result, tsr_err *err)
{
    item_run run = {.failed = INT_MAX};
    do {
        TSR_TRY(tsr_ranks_send(&run, sizeof run, 0, err));
        if (run.n > 0)
            TSR_TRY(tsr_ranks_send(result + (size_t)run.first * n_byte,
                                   (size_t)run.n * n_byte, 0, err));
        TSR_TRY(tsr_ranks_receive(&run, sizeof run, 0, NULL, err));
        compute_run(all, n_thread, &run);
    } while (run.n > 0);
    return TSR_E_NO;
}

tsr_status tsr_parallel_share(int n_item, int n_thread, tsr_parallel_item work,
                              void *context, size_t n_byte, void *result,
                              tsr_err *err)
{
    enum { MOST_BYTES = 1 << 28 };
    dealer d = {.n_thread = n_thread,
                .n_rank = tsr_ranks_size(),
                .most = 1 + (int)(MOST_BYTES / (n_byte + 1))};
    int announced = TSR_WORK_COMMAND;
    pthread_t here;
    if (d.n_rank == 1)
        return tsr_parallel_try(n_item, n_thread, work, context, err);
    begin_attempt(&d.all, n_item, work, context);
    if (tsr_ranks_rank() > 0) {
        const tsr_status left = serve(&d.all, n_thread, n_byte, result, err);
        (void)end_attempt(&d.all, NULL);
        return left;
    }
    d.here = next_run(&d);
    tsr_status status = tsr_ranks_work(&announced, err);
    if (status == TSR_OK && pthread_create(&here, NULL, compute_here, &d) != 0)
        status = tsr_no_memory(err);
    else if (status == TSR_OK) {
        status = deal(&d, n_byte, result, err);
        pthread_join(here, NULL);
    }
    const tsr_status failed =
        end_attempt(&d.all, status == TSR_OK ? err : NULL);
    return status != TSR_OK ? status : failed;
}

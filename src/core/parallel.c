/* Each thread takes the next part that is not yet taken, until all are done,
 * because parts may differ in cost. */
#include "core/parallel.h"

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

/* Is this thread computing one of several parts? The processors are then
 * busy. */
static _Thread_local int is_part;

int tsr_parallel_processors(void)
{
    long n = is_part ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > TSR_MAX_THREAD ? TSR_MAX_THREAD : (int)n;
}

static void *run_parts(void *argument)
{
    job *j = argument;
    const int was_part = is_part;
    int thread = atomic_fetch_add(&j->next_thread, 1), part;
    is_part |= j->n_part > 1;
    while ((part = atomic_fetch_add(&j->next, 1)) < j->n_part)
        j->work(j->context, part, thread);
    is_part = was_part;
    return NULL;
}

void tsr_parallel_run(int n_part, int n_thread, tsr_parallel_work work,
                      void *context)
{
    pthread_t thread[TSR_MAX_THREAD];
    job j = {.n_part = n_part, .work = work, .context = context};
    int most = is_part ? 1 : n_thread < n_part ? n_thread : n_part;
    int started = 0;
    most = most > TSR_MAX_THREAD ? TSR_MAX_THREAD : most;
    while (started < most - 1 &&
           pthread_create(&thread[started], NULL, run_parts, &j) == 0)
        started++;
    run_parts(&j);
    for (int t = 0; t < started; t++)
        pthread_join(thread[t], NULL);
}

/* A loop whose items can fail. */
typedef struct {
    tsr_parallel_item work;
    void *context;
    pthread_mutex_t lock; /* guards status and err */
    atomic_int failed;    /* the lowest item that failed, or INT_MAX */
    tsr_status status;
    tsr_err err;
} attempt;

static void try_item(void *argument, int item, int thread)
{
    attempt *a = argument;
    tsr_err err = {.status = TSR_OK};
    if (item > atomic_load(&a->failed))
        return;
    const tsr_status status = a->work(a->context, item, thread, &err);
    if (status == TSR_OK)
        return;
    pthread_mutex_lock(&a->lock);
    if (item < atomic_load(&a->failed)) {
        atomic_store(&a->failed, item);
        a->status = status;
        a->err = err;
    }
    pthread_mutex_unlock(&a->lock);
}

tsr_status tsr_parallel_try(int n_item, int n_thread, tsr_parallel_item work,
                            void *context, tsr_err *err)
{
    attempt a = {.work = work, .context = context, .status = TSR_OK};
    atomic_init(&a.failed, INT_MAX);
    pthread_mutex_init(&a.lock, NULL);
    tsr_parallel_run(n_item, n_thread, try_item, &a);
    pthread_mutex_destroy(&a.lock);
    if (a.status != TSR_OK && err != NULL)
        *err = a.err;
    return a.status;
}

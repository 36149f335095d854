/* Each thread takes the next part that is not yet taken, until all are done,
 * because parts may differ in cost. */
#include "core/parallel.h"

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

int tsr_parallel_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > TSR_MAX_THREAD ? TSR_MAX_THREAD : (int)n;
}

/* Is this thread computing a part? The processors are then busy. */
static _Thread_local int is_part;

static void *run_parts(void *argument)
{
    job *j = argument;
    const int was_part = is_part;
    int thread = atomic_fetch_add(&j->next_thread, 1), part;
    is_part = 1;
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

/* Work that falls into parts, over the processors of the host. */
#ifndef TSR_CORE_PARALLEL_H
#define TSR_CORE_PARALLEL_H

enum { TSR_MAX_THREAD = 256 };

/* The processors that are online, at most TSR_MAX_THREAD. */
int tsr_parallel_processors(void);

/* One part; thread: 0 to n_thread - 1, for scratch of its own. */
typedef void (*tsr_parallel_work)(void *context, int part, int thread);

/* Calls work(context, part, thread) once for each part 0 to n_part - 1, from up
 * to n_thread threads (at most TSR_MAX_THREAD) of which the caller is one;
 * returns when all are done. Which thread does a part is left to chance: a
 * result that must not depend on it goes to a place of the part's own. Where
 * no thread can be had, the caller does all. */
void tsr_parallel_run(int n_part, int n_thread, tsr_parallel_work work,
                      void *context);

#endif

/* Parallel loops over the processors of the host. */
#ifndef TSR_CORE_PARALLEL_H
#define TSR_CORE_PARALLEL_H

enum { TSR_MAX_THREAD = 256 };

/* Number of processors online, at most TSR_MAX_THREAD. */
int tsr_parallel_processors(void);

/* Computes one part of a loop. `thread`, 0 to n_thread - 1, is an index into
 * workspaces, one for each thread. */
typedef void (*tsr_parallel_work)(void *context, int part, int thread);

/* Calls work(context, part, thread) once for each part 0 to n_part - 1, from up
 * to n_thread threads (at most TSR_MAX_THREAD) including the caller, and
 * returns when all parts are done. The assignment of parts to threads varies
 * from call to call, so a reproducible result must be stored by part. If no
 * thread can be created, or the caller is itself computing a part, the caller
 * computes all parts. */
void tsr_parallel_run(int n_part, int n_thread, tsr_parallel_work work,
                      void *context);

#endif

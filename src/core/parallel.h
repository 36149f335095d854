/* Parallel loops over the processors of the host. */
#ifndef TSR_CORE_PARALLEL_H
#define TSR_CORE_PARALLEL_H

#include "core/status.h"

enum { TSR_MAX_THREAD = 256 };

/* Number of processors online, at most TSR_MAX_THREAD; 1 for a thread that
 * computes one of several parts of a loop. */
int tsr_parallel_processors(void);

/* Computes one part of a loop. `thread`, 0 to n_thread - 1, is an index into
 * workspaces, one for each thread. */
typedef void (*tsr_parallel_work)(void *context, int part, int thread);

/* Calls work(context, part, thread) once for each part 0 to n_part - 1, from up
 * to n_thread threads (at most TSR_MAX_THREAD) including the caller, and
 * returns when all parts are done. The assignment of parts to threads varies
 * from call to call, so a reproducible result must be stored by part. The
 * caller computes all parts if no thread can be created, or if it is itself
 * computing one of several parts. */
void tsr_parallel_run(int n_part, int n_thread, tsr_parallel_work work,
                      void *context);

/* Computes one item of a loop that can fail. */
typedef tsr_status (*tsr_parallel_item)(void *context, int item, int thread,
                                        tsr_err *err);

/* Calls work(context, item, thread, err) for the items 0 to n_item - 1, as
 * tsr_parallel_run does, until an item fails. Errors: that of the failed item
 * with the lowest number. Items begin in ascending order, so the error does not
 * depend on the threads. */
tsr_status tsr_parallel_try(int n_item, int n_thread, tsr_parallel_item work,
                            void *context, tsr_err *err);

#endif

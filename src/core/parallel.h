/* Parallel loops over the processors of the host. */
#ifndef TSR_CORE_PARALLEL_H
#define TSR_CORE_PARALLEL_H

#include "core/status.h"

#include <stddef.h>

enum { TSR_MAX_THREAD = 256 };

/* Number of processors online, at most the limit of this thread; 1 for a thread
 * that computes one of several parts of a loop. */
int tsr_parallel_processors(void);

/* Limits the threads of the loops that the calling thread begins from now on;
 * without a call to TSR_MAX_THREAD. */
void tsr_parallel_limit(int n_thread);

/* Computes one part of a loop. `thread`, 0 to n_thread - 1, is an index into
 * workspaces, one for each thread. */
typedef void (*tsr_parallel_work)(void *context, int part, int thread);

/* Calls work(context, part, thread) once for each part 0 to n_part - 1, from up
 * to n_thread threads (at most the limit) including the caller, and returns
 * when all parts are done. The assignment of parts to threads varies from call
 * to call, so a reproducible result must be stored by part. The caller computes
 * all parts if no thread can be created, or if it is itself computing one of
 * several parts. */
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

/* tsr_parallel_try over all ranks (core/ranks.h): called by the main thread of
 * rank 0, whose command line the other ranks have too. Rank 0 announces the
 * command; the others run it as far as this call, compute items for rank 0, and
 * receive TSR_E_NO, with which they leave the command. Ranks receive ever
 * smaller runs of items, at least n_thread, whenever they are idle. result
 * [n_item][n_byte]: where `work` stores the result of an item, without
 * pointers; on rank 0 those of all ranks arrive. Item 0 is computed by rank 0.
 * Errors: as above; TSR_E_DEVICE (a rank is lost), TSR_E_NOMEM. */
tsr_status tsr_parallel_share(int n_item, int n_thread, tsr_parallel_item work,
                              void *context, size_t n_byte, void *result,
                              tsr_err *err);

#endif

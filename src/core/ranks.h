/* The processes of one run, started by mpirun or srun: ranks 0 to size - 1.
 *
 * Rank 0 is the program: it reads options, writes files, prints and decides.
 * The other ranks wait for work that rank 0 announces (tsr_ranks_work) and
 * carry it out together with rank 0. A program without MPI is rank 0 of 1, for
 * which all functions return at once.
 *
 * Only the main thread may call these functions. Calls in which all ranks take
 * part must come in the same order on all ranks. A rank that waits for others
 * sleeps, so that its processor is free for the threads of other ranks. Errors
 * of all functions: TSR_E_DEVICE, another rank cannot be reached. (With most
 * launchers, the end of one rank ends all.) */
#ifndef TSR_CORE_RANKS_H
#define TSR_CORE_RANKS_H

#include "core/archive.h"
#include "core/status.h"

/* Connects this process to the others, before any other call, and disconnects
 * it. Without a launcher the size is 1. */
void tsr_ranks_begin(void);
void tsr_ranks_end(void);

/* Number of ranks, the number of this rank, and its number among the *n ranks
 * of its node, the computer it runs on. */
int tsr_ranks_size(void);
int tsr_ranks_rank(void);
int tsr_ranks_on_node(int *n);

/* The first of n items that rank `of` owns; its last is the one before the
 * first of rank of + 1. Every rank owns n / size items, or one more. */
int tsr_ranks_first(int n, int of);

/* Kinds of work in which all ranks take part. */
enum { TSR_WORK_END, TSR_WORK_RUN };

/* Rank 0 announces work, the other ranks wait for it: *work in on rank 0, out
 * on the others. */
tsr_status tsr_ranks_work(int *work, tsr_err *err);

/* Copies a block from rank `from` to all ranks. */
tsr_status tsr_ranks_broadcast(void *block, size_t n_byte, int from,
                               tsr_err *err);

/* Sends a block to rank `to`, or waits for one of at most n_byte bytes from
 * rank `from` (-1: any rank). *sender (may be NULL) out: the rank that sent. */
tsr_status tsr_ranks_send(const void *block, size_t n_byte, int to,
                          tsr_err *err);
tsr_status tsr_ranks_receive(void *block, size_t n_byte, int from, int *sender,
                             tsr_err *err);

/* Copies an archive from rank `from` to rank `to` (-1: to all ranks). Where the
 * archive arrives, it is ready to restore. Called by all ranks; ranks that are
 * neither `from` nor `to` return at once. Errors: also TSR_E_NOMEM. */
tsr_status tsr_ranks_pass(tsr_archive *archive, int from, int to, tsr_err *err);

/* Called by all ranks at the end of a part of the work. Returns the same on all
 * ranks: the status, with its message, of the first rank that failed. *stop
 * (may be NULL): in, nonzero: this rank is to stop; out, nonzero: some rank is.
 */
tsr_status tsr_ranks_agree(tsr_status status, int *stop, tsr_err *err);

#endif

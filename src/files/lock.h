/* The lock on a run's directory: one process at a time works in it.
 *
 * A lock on the file run.lock in it, which the kernel drops when
 * the process dies, however it dies, and which works over NFS (where a client
 * that vanished keeps it until the server's lease is over). The file holds
 * host, pid and start for messages; it stays behind, and says nothing by
 * itself: only the lock counts. Where the system has no locks bound to an open
 * file, closing any other descriptor of run.lock in the process that holds the
 * lock would drop it; tsr_lock_query therefore must not be asked by the holder
 * there (it is not: Linux has them since 3.15).
 * A child of fork() shares the lock, and holds it until it has closed all it
 * inherited; exec closes it. */
#ifndef TSR_FILES_LOCK_H
#define TSR_FILES_LOCK_H

#include "core/status.h"

typedef struct tsr_lock tsr_lock;

/* Who works, or worked last, in a directory. */
typedef struct {
    int is_held;
    char host[128]; /* "" where unknown */
    long pid;       /* 0 where unknown */
    char since[40]; /* UTC, ISO 8601; "" where unknown */
} tsr_lock_holder;

/* Errors: TSR_E_CONFIG (another process has it; says which), TSR_E_IO (the
 * directory is missing or may not be written; the file system has no locks:
 * says how to go on). */
tsr_status tsr_lock_acquire(const char *directory, tsr_lock **out,
                            tsr_err *err);

/* NULL is fine. */
void tsr_lock_free(tsr_lock *lock);

/* For `status`: changes nothing, works in a read-only directory. Errors:
 * TSR_E_NOINPUT (no such directory), TSR_E_IO. */
tsr_status tsr_lock_query(const char *directory, tsr_lock_holder *holder,
                          tsr_err *err);

#endif

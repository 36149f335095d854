/* The lock on a run's directory, which admits one process at a time.
 *
 * The lock is an fcntl lock on the file run.lock. The kernel releases it when
 * the process ends for any reason. The lock also works over NFS, where the lock
 * of a client that vanished lasts until its lease expires. The file contains
 * host, process id and start time for messages. It is never removed, and its
 * existence means nothing; only the lock counts. The lock belongs to the open
 * file, on Linux since 3.15. On systems without such locks it belongs to the
 * process, and closing any descriptor of run.lock in the process that holds the
 * lock releases it, so that the holder must not call tsr_lock_query on these
 * systems. A child of fork() shares the lock until it closes its inherited
 * descriptors; exec closes them. */
#ifndef TSR_FILES_LOCK_H
#define TSR_FILES_LOCK_H

#include "core/status.h"

typedef struct tsr_lock tsr_lock;

/* The process that works in a directory, or worked there last. */
typedef struct {
    int is_held;    /* 1: the process works there now */
    char host[128]; /* "" if unknown */
    long pid;       /* 0 if unknown */
    char since[40]; /* UTC, ISO 8601; "" if unknown */
} tsr_lock_holder;

/* Acquires the lock. Errors: TSR_E_CONFIG (another process has the lock: the
 * message names the process, if run.lock does; or run.lock was just replaced),
 * TSR_E_IO (no such directory, no permission, or a file system without locks;
 * with a remedy), TSR_E_NOMEM. */
tsr_status tsr_lock_acquire(const char *directory, tsr_lock **out,
                            tsr_err *err);

/* Releases the lock. NULL is fine. */
void tsr_lock_free(tsr_lock *lock);

/* Finds the holder without changing anything, also in a read-only directory. A
 * directory without run.lock has a zeroed holder. Errors: TSR_E_NOINPUT (no
 * such directory), TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_lock_query(const char *directory, tsr_lock_holder *holder,
                          tsr_err *err);

#endif

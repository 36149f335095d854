/* Advisory locks on an open file, dropped by the kernel when their process
 * dies; over NFS as well, where the server keeps them.
 *
 * They are bound to the open file (F_OFD_SETLK), so that a second open() and
 * close() of the same file in this process leaves them alone, and two openings
 * within one process exclude each other. Where the system lacks those it falls
 * back on F_SETLK, whose locks belong to the process and vanish as soon as any
 * descriptor of the file is closed.
 *
 * For src/io only. */
#ifndef TSR_IO_FD_LOCK_H
#define TSR_IO_FD_LOCK_H

typedef enum {
    TSR_FD_LOCKED,
    TSR_FD_HELD,   /* by somebody else */
    TSR_FD_NO_LOCK /* the file system has no locks */
} tsr_fd_lock_result;

/* Tries for wait_ms (0: once). The whole file; exclusive where `exclusive`
 * (needs a descriptor open for writing), else shared. */
tsr_fd_lock_result tsr_fd_lock(int fd, int exclusive, int wait_ms);

/* Would tsr_fd_lock get it? *pid: of the holder where the system tells, else
 * -1. */
tsr_fd_lock_result tsr_fd_lock_test(int fd, long *pid);

#endif

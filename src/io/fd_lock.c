#define _GNU_SOURCE /* F_OFD_SETLK */
#include "io/fd_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static const int step_ms = 5;

static void pause_ms(int ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

/* fcntl with the kind of lock that the system knows. */
static int call(int fd, int set, struct flock *lock)
{
#ifdef F_OFD_SETLK
    lock->l_pid = 0;
    int result = fcntl(fd, set ? F_OFD_SETLK : F_OFD_GETLK, lock);
    if (result == 0 || errno != EINVAL)
        return result;
#endif
    return fcntl(fd, set ? F_SETLK : F_GETLK, lock);
}

tsr_fd_lock_result tsr_fd_lock(int fd, int exclusive, int wait_ms)
{
    for (int waited = 0;; waited += step_ms) {
        struct flock lock = {.l_type = exclusive ? F_WRLCK : F_RDLCK,
                             .l_whence = SEEK_SET};
        if (call(fd, 1, &lock) == 0)
            return TSR_FD_LOCKED;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EACCES)
            return TSR_FD_NO_LOCK;
        if (waited >= wait_ms)
            return TSR_FD_HELD;
        pause_ms(step_ms);
    }
}

tsr_fd_lock_result tsr_fd_lock_test(int fd, long *pid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    *pid = -1;
    if (call(fd, 0, &lock) != 0)
        return TSR_FD_NO_LOCK;
    if (lock.l_type == F_UNLCK)
        return TSR_FD_LOCKED;
    if (lock.l_pid > 0)
        *pid = (long)lock.l_pid;
    return TSR_FD_HELD;
}

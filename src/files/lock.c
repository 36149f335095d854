/* The lock belongs to the open file (F_OFD_SETLK), or to the process on systems
 * without such locks. Its holder writes its identity into the file, for the
 * error message of other processes. */
#define _GNU_SOURCE /* for F_OFD_SETLK */
#include "files/lock.h"

#include "core/clock.h"
#include "core/text.h"
#include "files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum {
    LOCKED,
    HELD,   /* by another process */
    NO_LOCK /* the file system has no locks */
} lock_result;

/* fcntl with the kind of lock that the system supports. */
static int lock_control(int fd, int set, struct flock *lock)
{
#ifdef F_OFD_SETLK
    lock->l_pid = 0;
    int result = fcntl(fd, set ? F_OFD_SETLK : F_OFD_GETLK, lock);
    if (result == 0 || errno != EINVAL)
        return result;
#endif
    return fcntl(fd, set ? F_SETLK : F_GETLK, lock);
}

static lock_result lock_file(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int failed;
    while ((failed = lock_control(fd, 1, &lock) != 0) && errno == EINTR)
        continue;
    return !failed                              ? LOCKED
           : errno == EAGAIN || errno == EACCES ? HELD
                                                : NO_LOCK;
}

/* The result that lock_file would have, without locking. *pid out: process id
 * of the holder, -1 if unknown. */
static lock_result test_lock(int fd, long *pid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    *pid = -1;
    if (lock_control(fd, 0, &lock) != 0)
        return NO_LOCK;
    if (lock.l_type == F_UNLCK)
        return LOCKED;
    if (lock.l_pid > 0)
        *pid = (long)lock.l_pid;
    return HELD;
}

struct tsr_lock {
    int fd;
};

/* Reads lines "host H", "pid N", "since T". Values without a line keep their
 * old contents. */
static void read_holder(int fd, tsr_lock_holder *holder)
{
    char text[512] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    for (char *line = text, *next = NULL; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next == NULL)
            break; /* incomplete line */
        *next++ = '\0';
        if (strncmp(line, "host ", 5) == 0)
            snprintf(holder->host, sizeof holder->host, "%s", line + 5);
        else if (strncmp(line, "pid ", 4) == 0)
            holder->pid = strtol(line + 4, NULL, 10);
        else if (strncmp(line, "since ", 6) == 0)
            snprintf(holder->since, sizeof holder->since, "%s", line + 6);
    }
}

static int write_holder(int fd)
{
    char host[128] = "", since[40], text[512];

    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    tsr_clock_utc(since);
    const int n = snprintf(text, sizeof text, "host %s\npid %ld\nsince %s\n",
                           host, (long)getpid(), since);
    if (ftruncate(fd, 0) != 0)
        return errno;
    return tsr_file_write_at(fd, text, (size_t)n, 0);
}

static tsr_status refuse(const char *directory, int fd, tsr_err *err)
{
    tsr_lock_holder holder = {0};

    read_holder(fd, &holder);
    if (holder.pid == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "another process uses '%s'; wait for it, stop it, or "
                        "choose another output directory",
                        directory);
    return tsr_fail(err, TSR_E_CONFIG,
                    "process %ld on host %s uses '%s' since %s; wait for it, "
                    "stop it, or choose another output directory",
                    holder.pid, holder.host, directory, holder.since);
}

/* Is `fd` still the file `name`? A lock on a file that has been removed does
 * not keep other processes out. */
static int is_in_place(int fd, const char *name)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(name, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static tsr_status lock_directory(const char *directory, const char *name,
                                 tsr_lock *lock, tsr_err *err)
{
    lock->fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (lock->fd < 0)
        return tsr_fail(err, TSR_E_IO, "cannot open '%s': %s", name,
                        strerror(errno));
    switch (lock_file(lock->fd)) {
    case LOCKED:
        break;
    case HELD:
        return refuse(directory, lock->fd, err);
    case NO_LOCK:
        return tsr_fail(err, TSR_E_IO,
                        "cannot lock '%s': %s; runs need a directory on a file "
                        "system with locks (Lustre: mounted with 'flock')",
                        name, strerror(errno));
    }
    if (!is_in_place(lock->fd, name))
        return tsr_fail(err, TSR_E_CONFIG,
                        "another process has just released '%s'; try again",
                        directory);
    const int failed = write_holder(lock->fd);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", name,
                        strerror(failed));
    return TSR_OK;
}

tsr_status tsr_lock_acquire(const char *directory, tsr_lock **out, tsr_err *err)
{
    char *name = tsr_text_format("%s/run.lock", directory);
    tsr_lock *lock = malloc(sizeof *lock);
    if (lock != NULL)
        lock->fd = -1;
    const tsr_status status =
        name != NULL && lock != NULL
            ? lock_directory(directory, name, lock, err)
            : tsr_fail(err, TSR_E_NOMEM, "no memory to lock '%s'", directory);
    free(name);
    TSR_HAND_OVER(status, lock, out, tsr_lock_free);
}

void tsr_lock_free(tsr_lock *lock)
{
    if (lock == NULL)
        return;
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock);
}

tsr_status tsr_lock_query(const char *directory, tsr_lock_holder *holder,
                          tsr_err *err)
{
    struct stat info;
    tsr_status status = TSR_OK;
    long pid = -1;

    memset(holder, 0, sizeof *holder);
    if (stat(directory, &info) != 0 || !S_ISDIR(info.st_mode))
        return tsr_fail(err, TSR_E_NOINPUT, "'%s' is not a directory",
                        directory);
    char *name = tsr_text_format("%s/run.lock", directory);
    if (name == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to check '%s'", directory);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        holder->is_held = test_lock(fd, &pid) == HELD;
        read_holder(fd, holder);
        close(fd);
    } else if (errno != ENOENT) {
        status = tsr_fail(err, TSR_E_IO, "cannot open '%s': %s", name,
                          strerror(errno));
    }
    free(name);
    return status;
}

/* A library to preload (LD_PRELOAD) that makes file operations fail, kills the
 * process in the middle of them, or cuts the power, at a chosen moment.
 *
 *   make build/tests/support/fault.so
 *   TSR_FAULT_DIR=/abs/run TSR_FAULT_AT=17 TSR_FAULT_DO=cut \
 *       LD_PRELOAD=$PWD/build/tests/support/fault.so build/tessera run ...
 *
 * Only operations on what lies in TSR_FAULT_DIR (an absolute path without
 * links; below it to any depth) count: write, pwrite, fsync, fdatasync (also of
 * a directory), ftruncate, rename, link, unlink, and open where it makes a new
 * file. They are numbered from 1, over all threads. stdio's own writes (run.log
 * where it is written by fprintf) pass unseen, and mkdir counts as durable.
 *
 *   TSR_FAULT_AT     the number k; absent or 0: nothing happens but counting
 *   TSR_FAULT_DO     what happens instead of operation k:
 *       kill         SIGKILL before it
 *       tear         SIGKILL after the first half of it, where it is a write;
 *                    else after all of it
 *       cut          power cut before it, see below
 *       TERM         SIGTERM before it, which then happens
 *       ENOSPC EIO EDQUOT EROFS   it fails so; the next one works again.
 *                    With '+' behind (ENOSPC+): all that follow fail too, but
 *                    ftruncate and unlink, which need no space, work for
 *                    ENOSPC and EDQUOT
 *   TSR_FAULT_SEED   which of several outcomes a power cut has
 *   TSR_FAULT_CLOCK  seconds by which time() is ahead, or with '-' behind
 *   TSR_FAULT_COUNT  a file, outside the directory, that always holds the
 *                    number of operations so far, as text
 *
 * A power cut loses what was not synced, in any order: of every file each block
 * of 512 bytes that changed since its last fsync is, at random, new or old, and
 * its length is the new one or the old one (blocks that were never written
 * are 0). Names made, removed or moved since the last fsync of their directory
 * are lost from some random moment on, in order, as journalling file systems
 * do. Then SIGKILL. So the directory holds what a restart would find.
 *
 * For the restoring of removed files the directory may hold ".fault-*" links
 * while the process lives; a kill leaves them there, a cut does not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SECTOR = 512, MOST_FILES = 4096, MOST_NAMES = 4096 };

/* ---- what the process would have called ---- */

static struct {
    ssize_t (*write)(int, const void *, size_t);
    ssize_t (*pwrite)(int, const void *, size_t, off_t);
    int (*fsync)(int);
    int (*fdatasync)(int);
    int (*ftruncate)(int, off_t);
    int (*rename)(const char *, const char *);
    int (*link)(const char *, const char *);
    int (*unlink)(const char *);
    int (*open)(const char *, int, ...);
} real;

/* ---- the plan ---- */

static struct {
    char directory[4096];
    long at, now;
    char what[16];
    int code, goes_on;
    uint64_t random;
    int count;
} plan = {.count = -1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void *to, const char *name)
{
    void *at = dlsym(RTLD_NEXT, name);
    memcpy(to, &at, sizeof at);
}

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

static void prepare(void)
{
    static const struct {
        const char *name;
        int code;
    } codes[] = {
        {"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}};

#define FIND(name) find(&real.name, #name)
    FIND(write), FIND(pwrite), FIND(fsync), FIND(fdatasync), FIND(ftruncate);
    FIND(rename), FIND(link), FIND(unlink), FIND(open);
    snprintf(plan.directory, sizeof plan.directory, "%s", env("TSR_FAULT_DIR"));
    plan.at = strtol(env("TSR_FAULT_AT"), NULL, 10);
    snprintf(plan.what, sizeof plan.what, "%s", env("TSR_FAULT_DO"));
    plan.random = strtoull(env("TSR_FAULT_SEED"), NULL, 10) * 2 + 1;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const size_t n = strlen(codes[i].name);
        if (strncmp(plan.what, codes[i].name, n) != 0)
            continue;
        plan.code = codes[i].code;
        plan.goes_on = plan.what[n] == '+';
    }
    if (env("TSR_FAULT_COUNT")[0] != '\0')
        plan.count = real.open(env("TSR_FAULT_COUNT"),
                               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int next_bit(void)
{
    plan.random ^= plan.random << 13;
    plan.random ^= plan.random >> 7;
    plan.random ^= plan.random << 17;
    return (int)(plan.random >> 40) & 1;
}

static int is_below(const char *path)
{
    const size_t n = strlen(plan.directory);
    return n > 0 && strncmp(path, plan.directory, n) == 0 &&
           (path[n] == '/' || path[n] == '\0');
}

static int path_of(int fd, char path[4096])
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(name, path, 4095);
    path[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static int fd_is_below(int fd)
{
    char path[4096];
    return plan.directory[0] != '\0' && path_of(fd, path) && is_below(path);
}

/* The path made absolute; links in it are not followed. */
static int name_is_below(const char *name, char path[4096])
{
    if (plan.directory[0] == '\0')
        return 0;
    if (name[0] == '/') {
        snprintf(path, 4096, "%s", name);
    } else {
        if (getcwd(path, 4096) == NULL)
            return 0;
        const size_t n = strlen(path);
        snprintf(path + n, 4096 - n, "/%s", name);
    }
    return is_below(path);
}

#include "fault_undo.h"

/* ---- the moment ---- */

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static int now_is(const char *what)
{
    return plan.now == plan.at && strcmp(plan.what, what) == 0;
}

/* Counts an operation. 0: let it happen; else the errno that it fails with. */
static int moment(int needs_space)
{
    char text[32];

    plan.now++;
    if (plan.count >= 0) {
        const int n = snprintf(text, sizeof text, "%ld\n", plan.now);
        (void)!real.pwrite(plan.count, text, (size_t)n, 0);
    }
    if (now_is("kill"))
        die();
    if (now_is("TERM"))
        kill(getpid(), SIGTERM);
    if (now_is("cut")) {
        for (int i = 0; i < n_file; i++)
            mix_old_and_new(i);
        undo_names();
        die();
    }
    if (plan.code == 0 || plan.at == 0 || plan.now < plan.at)
        return 0;
    if (plan.now == plan.at)
        return plan.code;
    const int full = plan.code == ENOSPC || plan.code == EDQUOT;
    return plan.goes_on && (needs_space || !full) ? plan.code : 0;
}

static int enter(void)
{
    pthread_once(&once, prepare);
    return pthread_mutex_lock(&lock);
}

/* An operation that succeeded as a whole, at the moment of a tear. */
static int leave(int result)
{
    const int why = errno;
    if (now_is("tear"))
        die();
    pthread_mutex_unlock(&lock);
    errno = why;
    return result;
}

static int refuse(int code)
{
    pthread_mutex_unlock(&lock);
    errno = code;
    return -1;
}

/* ---- what the process calls ---- */

/* Begins an operation: one that is not ours is passed on, ours may be refused.
 */
#define BEGIN(is_ours, passed_on, needs_space) \
    enter();                                   \
    if (!(is_ours)) {                          \
        pthread_mutex_unlock(&lock);           \
        return passed_on;                      \
    }                                          \
    const int code = moment(needs_space);      \
    if (code != 0)                             \
    return refuse(code)

static ssize_t put(int fd, const void *bytes, size_t n, off_t at, int is_here)
{
    BEGIN(fd_is_below(fd),
          is_here ? real.write(fd, bytes, n) : real.pwrite(fd, bytes, n, at),
          1);
    if (is_here) {
        at = lseek(fd, 0, SEEK_CUR);
        if ((fcntl(fd, F_GETFL) & O_APPEND) != 0)
            at = lseek(fd, 0, SEEK_END);
    }
    remember_bytes(fd, at, n);
    if (now_is("tear"))
        n = n / 2;
    const ssize_t done =
        is_here ? real.write(fd, bytes, n) : real.pwrite(fd, bytes, n, at);
    leave(0);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    return put(fd, bytes, n, 0, 1);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return put(fd, bytes, n, at, 0);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    return put(fd, bytes, n, at, 0);
}

static int sync_one(int fd, int (**call)(int))
{
    BEGIN(fd_is_below(fd), (*call)(fd), 1);
    forget_bytes(fd);
    forget_names(fd);
    return leave((*call)(fd));
}

int fsync(int fd)
{
    return sync_one(fd, &real.fsync);
}

int fdatasync(int fd)
{
    return sync_one(fd, &real.fdatasync);
}

int ftruncate(int fd, off_t size)
{
    struct stat info;
    BEGIN(fd_is_below(fd) && fstat(fd, &info) == 0, real.ftruncate(fd, size),
          0);
    remember_bytes(fd, size < info.st_size ? size : info.st_size,
                   size < info.st_size ? (size_t)(info.st_size - size) : 0);
    return leave(real.ftruncate(fd, size));
}

int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

int rename(const char *from, const char *to)
{
    char old[4096], new[4096], backup[4096] = "";
    BEGIN(name_is_below(from, old) && name_is_below(to, new),
          real.rename(from, to), 1);
    if (want_undo() && !backup_of(new, backup))
        backup[0] = '\0';
    const int result = real.rename(from, to);
    if (result == 0)
        remember_name(new, new, old, backup);
    return leave(result);
}

int link(const char *from, const char *to)
{
    char path[4096];
    BEGIN(name_is_below(to, path), real.link(from, to), 1);
    const int result = real.link(from, to);
    if (result == 0)
        remember_name(path, "", "", "");
    return leave(result);
}

int unlink(const char *from)
{
    char path[4096], backup[4096] = "";
    BEGIN(name_is_below(from, path) && access(path, F_OK) == 0,
          real.unlink(from), 0);
    if (want_undo() && !backup_of(path, backup))
        backup[0] = '\0';
    const int result = real.unlink(from);
    if (result == 0)
        remember_name(path, "", "", backup);
    return leave(result);
}

int open(const char *at, int flags, ...)
{
    char path[4096];
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode =
        (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    enter();
    if ((flags & O_CREAT) == 0 || !name_is_below(at, path)) {
        pthread_mutex_unlock(&lock);
        return real.open(at, flags, mode);
    }
    const int is_new = access(path, F_OK) != 0;
    const int code = is_new ? moment(1) : 0;
    if (code != 0)
        return refuse(code);
    if (!is_new && (flags & O_TRUNC) != 0 && want_undo()) {
        /* as open and ftruncate */
        const int old = real.open(at, O_RDWR | O_CLOEXEC);
        struct stat info;
        if (old >= 0 && fstat(old, &info) == 0)
            remember_bytes(old, 0, (size_t)info.st_size);
        if (old >= 0)
            close(old);
    }
    const int fd = real.open(at, flags, mode);
    if (fd >= 0 && is_new)
        remember_name(path, "", "", "");
    if (is_new)
        return leave(fd);
    pthread_mutex_unlock(&lock);
    return fd;
}

int open64(const char *at, int flags, ...) __attribute__((alias("open")));

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const time_t there = now.tv_sec + strtol(env("TSR_FAULT_CLOCK"), NULL, 10);
    if (out != NULL)
        *out = there;
    return there;
}

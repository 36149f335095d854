#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const size_t max_size = (size_t)1 << 31;

/* The stream's content into a buffer that grows; zlib passes what is not gzip
 * through unchanged. */
static tsr_status read_stream(gzFile stream, const char *path, char **data,
                              size_t *size, tsr_err *err)
{
    size_t room = (size_t)1 << 16, n = 0;
    char *text = malloc(room);
    if (text == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
    for (;;) {
        int got = gzread(stream, text + n, (unsigned)(room - n - 1));
        int code = Z_OK;
        const char *why = gzerror(stream, &code);
        if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
            tsr_status status;
            if (code == Z_ERRNO)
                status = tsr_fail(err, TSR_E_NOINPUT, "cannot read '%s': %s",
                                  path, strerror(errno));
            else
                status = tsr_fail(err, TSR_E_DATA,
                                  "'%s' is a damaged or incomplete gzip file "
                                  "(%s); fetch or pack it again",
                                  path, why);
            free(text);
            return status;
        }
        n += (size_t)got;
        if (got == 0)
            break;
        if (room - n > room / 4)
            continue;
        char *more = room < max_size ? realloc(text, 2 * room) : NULL;
        if (more == NULL) {
            free(text);
            if (room >= max_size)
                return tsr_fail(err, TSR_E_DATA, "'%s' has more than 2 GiB",
                                path);
            return tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'",
                            path);
        }
        text = more;
        room *= 2;
    }
    if (n == 0) {
        free(text);
        return tsr_fail(err, TSR_E_DATA, "'%s' is empty", path);
    }
    text[n] = '\0';
    *data = text;
    *size = n;
    return TSR_OK;
}

tsr_status tsr_file_read(const char *path, char **data, size_t *size,
                         tsr_err *err)
{
    *data = NULL;
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        close(fd);
        return tsr_fail(err, TSR_E_NOINPUT,
                        "'%s' is a directory; name a file in it", path);
    }
    gzFile stream = gzdopen(fd, "rb");
    if (stream == NULL) {
        close(fd);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
    }
    tsr_status status = read_stream(stream, path, data, size, err);
    gzclose_r(stream);
    return status;
}

/* 0, or the errno of what failed. */
static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

int tsr_file_read_at(int fd, void *to, size_t n, size_t at)
{
    char *next = to;

    while (n > 0) {
        ssize_t got = pread(fd, next, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        next += got;
        at += (size_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int tsr_file_write_at(int fd, const void *from, size_t n, size_t at)
{
    const char *next = from;

    while (n > 0) {
        ssize_t put = pwrite(fd, next, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? errno : ENOSPC;
        next += put;
        at += (size_t)put;
        n -= (size_t)put;
    }
    return 0;
}

/* Some file systems cannot sync a directory; nothing can be done about it
 * there. */
int tsr_file_sync_directory(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return ENOMEM;
    int failed = 0;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        failed = errno == EINVAL || errno == ENOTSUP ? 0 : errno;
    if (fd >= 0)
        close(fd);
    free(copy);
    return failed;
}

/* Writes and syncs; 0, or the errno of what failed. */
static int write_file(const char *path, int flags, const char *data,
                      size_t size, int sync)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return errno;
    int failed = write_all(fd, data, size);
    if (failed == 0 && sync && fsync(fd) != 0)
        failed = errno;
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    return failed;
}

/* A name beside `path` that no other process uses; caller frees. */
static char *name_beside(const char *path)
{
    size_t room = strlen(path) + 32;
    char *beside = malloc(room);
    if (beside != NULL)
        snprintf(beside, room, "%s.%ld.tmp", path, (long)getpid());
    return beside;
}

tsr_status tsr_file_replace(const char *path, const char *data, size_t size,
                            tsr_err *err)
{
    struct stat info;
    int direct = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    char *beside = direct ? strdup(path) : name_beside(path);
    if (beside == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path);
    int flags = direct ? 0 : O_CREAT | O_TRUNC;
    int failed = write_file(beside, flags, data, size, !direct);
    if (failed == 0 && !direct && rename(beside, path) != 0)
        failed = errno;
    if (failed != 0 && !direct)
        unlink(beside);
    free(beside);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", path,
                        strerror(failed));
    if (!direct)
        (void)tsr_file_sync_directory(path);
    return TSR_OK;
}

/* link() fails where the name is taken, which rename() does not. Some file
 * systems (FAT, a few network ones) have no links: there the file is written
 * in place. */
tsr_status tsr_file_create(const char *path, const char *data, size_t size,
                           int *is_taken, tsr_err *err)
{
    char *beside = name_beside(path);
    *is_taken = 0;
    if (beside == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path);
    int failed = write_file(beside, O_CREAT | O_TRUNC, data, size, 1);
    if (failed == 0 && link(beside, path) != 0)
        failed = errno;
    unlink(beside);
    free(beside);
    if (failed == EPERM || failed == ENOTSUP || failed == ENOSYS) {
        failed = write_file(path, O_CREAT | O_EXCL, data, size, 1);
        if (failed != 0 && failed != EEXIST)
            unlink(path);
    }
    *is_taken = failed == EEXIST;
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", path,
                        strerror(failed));
    (void)tsr_file_sync_directory(path);
    return TSR_OK;
}

int tsr_file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return a != NULL && b != NULL && stat(a, &x) == 0 && stat(b, &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int tsr_file_is_foreign(const char *path, const char *begins, const char *holds)
{
    char line[160] = "";
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
        return 0;
    FILE *in = fopen(path, "r");
    int is_read = in != NULL && fgets(line, sizeof line, in) != NULL;
    if (in != NULL)
        fclose(in);
    return !is_read || strncmp(line, begins, strlen(begins)) != 0 ||
           strstr(line, holds) == NULL;
}

tsr_status tsr_file_absolute(const char *path, char **out, tsr_err *err)
{
    size_t room = strlen(path) + 2; /* "/", path, the end */
    *out = NULL;
    for (size_t size = 256;; size *= 2) {
        char *whole = malloc(size + room);
        if (whole == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory for a path");
        *whole = '\0';
        if (*path == '/' || getcwd(whole, size) != NULL) {
            const char *slash = *path == '/' || *path == '\0' ? "" : "/";
            size_t n = strlen(whole);
            snprintf(whole + n, size + room - n, "%s%s", slash, path);
            *out = whole;
            return TSR_OK;
        }
        int code = errno;
        free(whole);
        if (code != ERANGE)
            return tsr_fail(err, TSR_E_IO, "cannot find the current folder: %s",
                            strerror(code));
    }
}

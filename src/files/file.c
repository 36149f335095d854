/* Files are read with zlib, which passes uncompressed data through. A file is
 * written under a temporary name, synced and renamed, so that at every moment
 * either the old or the new file exists. */
#define _GNU_SOURCE /* dladdr */
#include "files/file.h"

#include "core/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* May the path be a pipe that a shell makes for <(...), such as /dev/fd/63? */
static int is_shell_pipe(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

tsr_path tsr_path_in(const char *folder, const char *name)
{
    tsr_path path;
    snprintf(path.text, sizeof path.text, "%s/%s", folder, name);
    return path;
}

/* Linux gives the main program's file as it was typed: a bare name if the shell
 * found it in PATH. */
char *tsr_file_program_folder(void)
{
    static const char here = 0;
    Dl_info info;
    const int is_path = dladdr(&here, &info) != 0 && info.dli_fname != NULL &&
                        strchr(info.dli_fname, '/') != NULL;
    char *path = is_path ? realpath(info.dli_fname, NULL) : NULL;
    path = path != NULL ? path : realpath("/proc/self/exe", NULL);
    if (path != NULL)
        *strrchr(path, '/') = '\0';
    return path;
}

tsr_status tsr_file_check_input(const char *path, tsr_err *err)
{
    struct stat info;
    const int is_there = stat(path, &info) == 0;
    if (is_there && S_ISDIR(info.st_mode))
        return tsr_fail(err, TSR_E_NOINPUT,
                        "'%s' is a directory; name a file in it", path);
    if (is_there && S_ISFIFO(info.st_mode) && !is_shell_pipe(path))
        return tsr_fail(err, TSR_E_NOINPUT,
                        "'%s' is a named pipe; write its content into a file",
                        path);
    return TSR_OK;
}

/* Reads the stream into a growing buffer. zlib passes data that are not gzipped
 * through. */
static tsr_status read_stream(gzFile stream, const char *path, size_t most,
                              char **data, size_t *size, tsr_err *err)
{
    size_t capacity = 0, n = 0;
    char *text = NULL;
    tsr_status status = TSR_OK;
    for (int got = 1, code = Z_OK; got > 0 && status == TSR_OK;) {
        if (capacity - n < 2) { /* one byte is for the NUL */
            capacity = capacity == 0 ? (size_t)1 << 16 : 2 * capacity;
            char *more = capacity <= most ? realloc(text, capacity) : NULL;
            if (more == NULL) {
                status = capacity <= most
                             ? tsr_fail(err, TSR_E_NOMEM,
                                        "out of memory reading '%s'", path)
                             : tsr_fail(err, TSR_E_DATA,
                                        "'%s' has more than %zu MiB", path,
                                        most >> 20);
                break;
            }
            text = more;
        }
        got = gzread(stream, text + n, (unsigned)(capacity - n - 1));
        n += got > 0 ? (size_t)got : 0;
        const char *why = gzerror(stream, &code);
        if (code == Z_ERRNO)
            status = tsr_fail(err, TSR_E_NOINPUT, "cannot read '%s': %s", path,
                              strerror(errno));
        else if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
            status = tsr_fail(err, TSR_E_DATA,
                              "'%s' is a damaged or incomplete gzip file "
                              "(%s); fetch or pack it again",
                              path, why);
    }
    if (status != TSR_OK) {
        free(text);
        return status;
    }
    text[n] = '\0';
    *data = text;
    *size = n;
    return TSR_OK;
}

tsr_status tsr_file_read(const char *path, char **data, size_t *size,
                         tsr_err *err)
{
    TSR_TRY(tsr_file_read_limited(path, (size_t)1 << 31, data, size, err));
    if (*size > 0)
        return TSR_OK;
    free(*data);
    *data = NULL;
    return tsr_fail(err, TSR_E_DATA, "'%s' is empty%s", path,
                    is_shell_pipe(path) ? "; a pipe can be read only once"
                                        : "");
}

tsr_status tsr_file_read_limited(const char *path, size_t most, char **data,
                                 size_t *size, tsr_err *err)
{
    *data = NULL;
    *size = 0;
    TSR_TRY(tsr_file_check_input(path, err));
    errno = 0;
    gzFile stream = gzopen(path, "rbe");
    if (stream == NULL)
        return tsr_fail(err, errno != 0 ? TSR_E_NOINPUT : TSR_E_NOMEM,
                        "cannot open '%s': %s", path,
                        strerror(errno != 0 ? errno : ENOMEM));
    tsr_status status = read_stream(stream, path, most, data, size, err);
    gzclose_r(stream);
    return status;
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

/* A file system that cannot sync a directory returns EINVAL or ENOTSUP. */
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

/* With O_EXCL, open() fails if any file or link has the name. unlink() removes
 * a link, never its target. */
int tsr_file_open_new(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return -1;
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

/* Writes, syncs and closes. Returns 0 or an errno. */
static int write_file(int fd, const char *data, size_t size)
{
    if (fd < 0)
        return errno;
    int failed = tsr_file_write_at(fd, data, size, 0);
    if (failed == 0 && fsync(fd) != 0)
        failed = errno;
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    return failed;
}

/* Is this a device or pipe, such as /dev/stdout, which is written directly? */
static int is_device(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

/* A temporary name in the folder of `path`, unique to this process; the caller
 * frees it. */
static char *temporary_name(const char *path)
{
    return tsr_text_format("%s.%ld.tmp", path, (long)getpid());
}

tsr_status tsr_file_begin(tsr_file_writer *writer, const char *path,
                          tsr_err *err)
{
    int direct = is_device(path), fd = -1;
    *writer = (tsr_file_writer){.path = strdup(path),
                                .beside = direct ? NULL : temporary_name(path)};
    if (writer->path != NULL && (direct || writer->beside != NULL))
        fd = direct ? open(path, O_WRONLY | O_CLOEXEC)
                    : tsr_file_open_new(writer->beside);
    writer->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (writer->out != NULL)
        return TSR_OK;
    int why = errno;
    if (fd >= 0) {
        close(fd);
        if (!direct)
            unlink(writer->beside);
    }
    free(writer->path);
    free(writer->beside);
    *writer = (tsr_file_writer){NULL, NULL, NULL};
    return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", path,
                    strerror(why));
}

tsr_status tsr_file_end(tsr_file_writer *w, tsr_status status, tsr_err *err)
{
    if (w->out == NULL)
        return status;
    int direct = w->beside == NULL;
    int failed = ferror(w->out) != 0 || fflush(w->out) != 0;
    int why = failed ? errno : 0;
    if (!failed && !direct && status == TSR_OK && fsync(fileno(w->out)) != 0)
        why = errno;
    if (fclose(w->out) != 0 && why == 0)
        why = errno;
    failed |= why != 0;
    if (status == TSR_OK && !failed && !direct) {
        why = rename(w->beside, w->path) != 0
                  ? errno
                  : tsr_file_sync_directory(w->path);
        failed = why != 0;
    }
    if (!direct && (failed || status != TSR_OK))
        unlink(w->beside);
    if (status == TSR_OK && failed)
        status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", w->path,
                          strerror(why));
    free(w->path);
    free(w->beside);
    *w = (tsr_file_writer){NULL, NULL, NULL};
    return status;
}

tsr_status tsr_file_replace(const char *path, const char *data, size_t size,
                            tsr_err *err)
{
    tsr_file_writer writer;
    TSR_TRY(tsr_file_begin(&writer, path, err));
    fwrite(data, 1, size, writer.out); /* tsr_file_end reports a failure */
    return tsr_file_end(&writer, TSR_OK, err);
}

/* Unlike rename(), link() fails if the name is in use. File systems without
 * links (FAT, some network file systems) get the file written directly. */
tsr_status tsr_file_create(const char *path, const char *data, size_t size,
                           int *is_taken, tsr_err *err)
{
    char *beside = temporary_name(path);
    *is_taken = 0;
    if (beside == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path);
    int failed = write_file(tsr_file_open_new(beside), data, size);
    if (failed == 0 && link(beside, path) != 0)
        failed = errno;
    unlink(beside);
    free(beside);
    if (failed == EPERM || failed == ENOTSUP || failed == ENOSYS) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        failed = write_file(fd, data, size);
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

/* Is there a file of another program at `path`: a non-empty regular file that
 * does not begin as tessera's files do, or cannot be read? */
static int file_is_foreign(const char *path, const char *begins,
                           const char *holds)
{
    char head[512];
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
        return 0;
    FILE *in = fopen(path, "r");
    size_t n = in != NULL ? fread(head, 1, sizeof head - 1, in) : 0;
    if (in != NULL)
        fclose(in);
    for (size_t k = 0; k < n; k++)
        if (head[k] == '\0') /* so that strstr searches binary files, too */
            head[k] = ' ';
    head[n] = '\0';
    return n == 0 || strncmp(head, begins, strlen(begins)) != 0 ||
           strstr(head, holds) == NULL;
}

tsr_status tsr_file_check_target(const tsr_file_target *t, const char *path,
                                 const char *begins, const char *holds,
                                 tsr_err *err)
{
    if (path == NULL)
        return TSR_OK;
    for (int i = 0; i < t->n_input; i++)
        if (tsr_file_is_same(path, t->input[i]))
            return tsr_fail(err, TSR_E_USAGE,
                            "'%s' would replace the input '%s'; choose another "
                            "name with --output",
                            path, t->input[i]);
    if (!t->is_forced && file_is_foreign(path, begins != NULL ? begins : "",
                                         holds != NULL ? holds : ""))
        return tsr_fail(
            err, TSR_E_USAGE,
            "'%s' exists and is not from tessera %s; choose another name with "
            "--output, move that file, or replace it with --force",
            path, t->maker);
    return TSR_OK;
}

tsr_status tsr_file_absolute(const char *path, char **out, tsr_err *err)
{
    char *folder = *path == '/' ? strdup("") : getcwd(NULL, 0);
    *out = NULL;
    if (folder == NULL)
        return tsr_fail(err, TSR_E_IO, "cannot find the current folder: %s",
                        strerror(errno));
    *out = tsr_text_format("%s%s%s", folder,
                           *path == '/' || *path == '\0' ? "" : "/", path);
    free(folder);
    return tsr_allocated(*out, err);
}

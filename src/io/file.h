/* Whole files: read at once, gzipped or not; replaced at once or not at all. */
#ifndef TSR_IO_FILE_H
#define TSR_IO_FILE_H

#include "core/status.h"

#include <stddef.h>

/* Reads a file and, where its content is gzip, unpacks it. *data (caller frees)
 * ends in a NUL that *size does not count. Errors: TSR_E_NOINPUT (missing,
 * a directory, unreadable), TSR_E_DATA (empty, a damaged gzip file, more than
 * 2 GiB). */
tsr_status tsr_file_read(const char *path, char **data, size_t *size,
                         tsr_err *err);

/* Puts `size` bytes into the file at `path`: written beside it, synced and
 * renamed, so that a reader sees the old file or the new one and a crash leaves
 * one of them. A path that is no regular file (/dev/stdout) is written
 * directly. Errors: TSR_E_IO. */
tsr_status tsr_file_replace(const char *path, const char *data, size_t size,
                            tsr_err *err);

/* Makes a file that is not there yet, at once and whole. Where anything has
 * that name, a link that leads nowhere included, *is_taken is 1 and nothing is
 * touched. Errors: TSR_E_IO. */
tsr_status tsr_file_create(const char *path, const char *data, size_t size,
                           int *is_taken, tsr_err *err);

/* Do both names lead to one file that is there? NULL leads nowhere. */
int tsr_file_is_same(const char *a, const char *b);

/* Would be lost if it were replaced: a file with content whose first line does
 * not begin with `begins` or lacks `holds`, or that cannot be read. */
int tsr_file_is_foreign(const char *path, const char *begins,
                        const char *holds);

/* *out (caller frees) = `path` where it is absolute, else the current folder's
 * path, '/', `path`; the current folder alone for an empty one. Errors:
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_file_absolute(const char *path, char **out, tsr_err *err);

/* Whole transfers at a place in an open file; 0, or the errno of what failed
 * (reading past the end: EIO). */
int tsr_file_read_at(int fd, void *to, size_t n, size_t at);
int tsr_file_write_at(int fd, const void *from, size_t n, size_t at);

/* Makes the names in the directory of `path` durable: what was created,
 * renamed or removed there. 0, or the errno of what failed; a file system that
 * cannot sync a directory counts as done. */
int tsr_file_sync_directory(const char *path);

#endif

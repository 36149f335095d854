/* Whole files: read at once, gzipped or not; replaced at once or not at all.
 *
 * What is being written has the name PATH.PID.tmp beside PATH until it is
 * whole. A link of that name, planted by whoever may write in the folder, is
 * taken away and never followed. */
#ifndef TSR_FILES_FILE_H
#define TSR_FILES_FILE_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

/* A path in no memory of its own: unlink(tsr_path_in(folder, name).text). What
 * is cut here is longer than a system call takes (PATH_MAX), so that whoever
 * uses it hears that the name is too long. */
typedef struct {
    char text[4160];
} tsr_path;

tsr_path tsr_path_in(const char *folder, const char *name);

/* Refuses as an input a directory, and a named pipe, which would wait for
 * whoever writes into it; a pipe of the shell, which has its writer, is none.
 * To be called before any input is opened, which tells what is missing. Errors:
 * TSR_E_NOINPUT. */
tsr_status tsr_file_check_input(const char *path, tsr_err *err);

/* Reads a file and, where its content is gzip, unpacks it. *data (caller frees)
 * ends in a NUL that *size does not count. Errors: TSR_E_NOINPUT (missing,
 * a directory, unreadable), TSR_E_DATA (empty, a damaged gzip file, more than
 * 2 GiB). */
tsr_status tsr_file_read(const char *path, char **data, size_t *size,
                         tsr_err *err);

/* The same with another bound than 2 GiB, in bytes, a power of two; may be
 * empty. */
tsr_status tsr_file_read_limited(const char *path, size_t most, char **data,
                                 size_t *size, tsr_err *err);

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

/* The same as tsr_file_replace for what is printed bit by bit. */
typedef struct {
    FILE *out;           /* NULL: nothing is open */
    char *path, *beside; /* beside: NULL where written in place */
} tsr_file_writer;

/* Errors: TSR_E_IO; then nothing is open. */
tsr_status tsr_file_begin(tsr_file_writer *writer, const char *path,
                          tsr_err *err);

/* Puts the file in its place if `status` is TSR_OK and all of it could be
 * written, else takes it away; does nothing where none is open. Returns
 * `status`, or TSR_E_IO. */
tsr_status tsr_file_end(tsr_file_writer *writer, tsr_status status,
                        tsr_err *err);

/* Opens an empty file for reading and writing that this call makes; what had
 * the name is taken away. < 0: errno says why. */
int tsr_file_open_new(const char *path);

/* ---- what a command may write over ----
 *
 * The rule for every file that a command is told to write: never one of its
 * inputs, and a file that tessera did not write itself only with --force. A
 * file is known by how it begins, so that a command can be repeated, and a
 * mistyped name does not cost a measured curve. */
typedef struct {
    const char *maker; /* the command, for messages: "profile" */
    int n_input;
    const char *const *input; /* [n_input], NULL for one that is not there */
    int is_forced;
} tsr_file_target;

/* May `path` (NULL: no file is written) be written? A file of tessera's begins
 * with `begins` and has `holds` in its first 500 bytes (NULL: anything).
 * Errors: TSR_E_USAGE, with the remedy. */
tsr_status tsr_file_check_target(const tsr_file_target *target,
                                 const char *path, const char *begins,
                                 const char *holds, tsr_err *err);

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

/* Do both names lead to one file that is there? NULL leads nowhere. */
int tsr_file_is_same(const char *a, const char *b);

#endif

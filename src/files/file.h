/* Whole files. Reading handles gzip. Writing replaces a file atomically.
 *
 * Until a new file is complete, its name is PATH.PID.tmp beside PATH. A
 * symbolic link of that name, which another user could have created, is removed
 * and never followed. */
#ifndef TSR_FILES_FILE_H
#define TSR_FILES_FILE_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

/* A path in a struct, without allocation: unlink(tsr_path_in(folder,
 * name).text). A path that is cut here is longer than PATH_MAX, so that the
 * system call reports that the name is too long. */
typedef struct {
    char text[4160];
} tsr_path;

tsr_path tsr_path_in(const char *folder, const char *name);

/* The folder of the program or shared library that contains this code. The
 * caller frees it. NULL: unknown, or out of memory. */
char *tsr_file_program_folder(void);

/* Refuses a directory or a named pipe as an input; a named pipe would block
 * until another process writes to it. Pipes of the shell, <(...), are allowed.
 * To be called before an input is opened; opening reports a missing file.
 * Errors: TSR_E_NOINPUT. */
tsr_status tsr_file_check_input(const char *path, tsr_err *err);

/* Reads a file and unpacks it if it is gzipped. *data out, the caller frees it;
 * a NUL follows the *size bytes. Errors: TSR_E_NOINPUT (missing, a directory,
 * unreadable), TSR_E_DATA (empty, a damaged gzip file, 2 GiB or more),
 * TSR_E_NOMEM. */
tsr_status tsr_file_read(const char *path, char **data, size_t *size,
                         tsr_err *err);

/* As tsr_file_read, but refuses files of `most` bytes or more (a power of two,
 * at least 64 KiB) instead of 2 GiB. The file may be empty. */
tsr_status tsr_file_read_limited(const char *path, size_t most, char **data,
                                 size_t *size, tsr_err *err);

/* Replaces the file at `path` atomically: writes a temporary file, syncs it and
 * renames it. A reader, or a crash, finds either the old file or the new one. A
 * path that is not a regular file (/dev/stdout) is written directly. Errors:
 * TSR_E_IO. */
tsr_status tsr_file_replace(const char *path, const char *data, size_t size,
                            tsr_err *err);

/* Creates a file unless a file or link of that name exists, atomically on file
 * systems that have links. Errors: TSR_E_IO, with *is_taken 1 and nothing
 * changed if the name is in use; TSR_E_NOMEM. */
tsr_status tsr_file_create(const char *path, const char *data, size_t size,
                           int *is_taken, tsr_err *err);

/* A file that is replaced as by tsr_file_replace, printed in pieces. */
typedef struct {
    FILE *out;           /* NULL: nothing is open */
    char *path, *beside; /* beside: temporary file, NULL if written
                            directly */
} tsr_file_writer;

/* Opens the temporary file. Errors: TSR_E_IO; nothing is open then. */
tsr_status tsr_file_begin(tsr_file_writer *writer, const char *path,
                          tsr_err *err);

/* Renames the temporary file to its path if `status` is TSR_OK and all writes
 * succeeded; otherwise removes it. Does nothing if nothing is open. Returns
 * `status`, or TSR_E_IO. */
tsr_status tsr_file_end(tsr_file_writer *writer, tsr_status status,
                        tsr_err *err);

/* Creates an empty file, open for reading and writing; an old file of that name
 * is removed. Returns the descriptor; < 0: failed, see errno. */
int tsr_file_open_new(const char *path);

/* ---- files a command may overwrite ----
 *
 * A command never overwrites its inputs, and overwrites a file that tessera did
 * not write only with --force. Files of tessera are recognised by their first
 * bytes. So a command can be repeated, and a mistyped name does not destroy a
 * measured curve. */
typedef struct {
    const char *maker; /* the command, for messages: "profile" */
    int n_input;
    const char *const
        *input;    /* [n_input]; an entry NULL: the input was not given */
    int is_forced; /* 1: --force */
} tsr_file_target;

/* Checks that `path` (NULL: no output file) may be written: it is no input, and
 * without --force it is a new file, an empty file, no regular file, or a file
 * of tessera. A file of tessera begins with `begins` and contains `holds` in
 * its first 511 bytes (NULL: no condition). Errors: TSR_E_USAGE, with a
 * remedy. */
tsr_status tsr_file_check_target(const tsr_file_target *target,
                                 const char *path, const char *begins,
                                 const char *holds, tsr_err *err);

/* Absolute form of a path, in the current folder if it is relative; an empty
 * path is the current folder. The caller frees *out. Errors: TSR_E_IO,
 * TSR_E_NOMEM. */
tsr_status tsr_file_absolute(const char *path, char **out, tsr_err *err);

/* Reads or writes exactly n bytes at an offset of an open file. Returns 0 or an
 * errno (EIO for reading past the end). */
int tsr_file_read_at(int fd, void *to, size_t n, size_t at);
int tsr_file_write_at(int fd, const void *from, size_t n, size_t at);

/* Syncs the directory of `path`, so that created, renamed and removed names
 * survive a power cut. Returns 0 or an errno; 0 also for file systems that
 * cannot sync a directory. */
int tsr_file_sync_directory(const char *path);

/* Do both names refer to the same existing file? 0 if a name is NULL or does
 * not exist. */
int tsr_file_is_same(const char *a, const char *b);

#endif

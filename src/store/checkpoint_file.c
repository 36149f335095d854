/* A checkpoint never lies half written under its name: it is made in memory,
 * sealed, written beside, synced, and renamed. Reading verifies the seal before
 * HDF5 sees a byte. */
#include "store/checkpoint_file.h"

#include "core/text.h"
#include "files/checksum.h"
#include "files/file.h"
#include "store/checkpoint.h"
#include "store/hdf5_object.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEAL = 64, GROW = 1 << 20 };

/* ---- in memory ---- */

/* The driver takes two files of one name for the same, and refuses a name that
 * the disk has. `file` is where the caller keeps the file. */
static void name_image(const hid_t *file, char name[64])
{
    snprintf(name, 64, "/dev/null/checkpoint %p", (const void *)file);
}

tsr_status tsr_checkpoint_image_new(hid_t *file, tsr_err *err)
{
    tsr_status status = TSR_OK;
    char name[64];
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    *file = H5I_INVALID_HID;
    name_image(file, name);
    if (access < 0 || H5Pset_fapl_core(access, GROW, 0) < 0 ||
        (*file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_NOMEM, "cannot make a checkpoint");
    tsr_hdf5_close(access);
    return status;
}

static void write_seal(char *content, size_t size)
{
    char seal[SEAL + 1];

    snprintf(seal, sizeof seal,
             "\ntessera: %16zu bytes, checksum %016" PRIx64 "\n", size,
             tsr_checksum(0, content, size));
    memset(content + size, ' ', SEAL);
    memcpy(content + size, seal, strlen(seal));
}

/* Whether the last bytes say what the others are. */
static int seal_is_good(char *content, size_t size)
{
    char seal[SEAL];

    if (size < SEAL)
        return 0;
    memcpy(seal, content + size - SEAL, SEAL);
    write_seal(content, size - SEAL);
    return memcmp(seal, content + size - SEAL, SEAL) == 0;
}

tsr_status tsr_checkpoint_image_take(hid_t file, char **content, size_t *size,
                                     tsr_err *err)
{
    *content = NULL;
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0)
        return tsr_hdf5_fail(err, TSR_E_NOMEM, "cannot make a checkpoint");
    const ssize_t n = H5Fget_file_image(file, NULL, 0);
    if (n < 0)
        return tsr_hdf5_fail(err, TSR_E_INTERNAL, "cannot make a checkpoint");
    *content = malloc((size_t)n + SEAL);
    if (*content == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a checkpoint");
    if (H5Fget_file_image(file, *content, (size_t)n) != n) {
        free(*content);
        *content = NULL;
        return tsr_hdf5_fail(err, TSR_E_INTERNAL, "cannot make a checkpoint");
    }
    write_seal(*content, (size_t)n);
    *size = (size_t)n + SEAL;
    return TSR_OK;
}

/* ---- reading ---- */

static tsr_status read_whole(const char *path, char **content, size_t *size,
                             tsr_err *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    *content = NULL;
    if (fd < 0)
        return tsr_fail(
            err, errno == ENOENT || errno == ENOTDIR ? TSR_E_NOINPUT : TSR_E_IO,
            "cannot open '%s': %s", path, strerror(errno));
    int failed = fstat(fd, &info) != 0 ? errno : 0;
    if (failed == 0 && !S_ISREG(info.st_mode))
        failed = EISDIR;
    *size = failed == 0 ? (size_t)info.st_size : 0;
    if (failed == 0 && (*content = malloc(*size + 1)) == NULL)
        failed = ENOMEM;
    if (failed == 0)
        failed = tsr_file_read_at(fd, *content, *size, 0);
    close(fd);
    if (failed != 0) {
        free(*content);
        *content = NULL;
        return tsr_fail(err, failed == ENOMEM ? TSR_E_NOMEM : TSR_E_IO,
                        "cannot read '%s': %s", path, strerror(failed));
    }
    return TSR_OK;
}

tsr_status tsr_checkpoint_image_open(const char *path, hid_t *file,
                                     tsr_err *err)
{
    char *content = NULL;
    size_t size = 0;
    tsr_status status = read_whole(path, &content, &size, err);

    *file = H5I_INVALID_HID;
    if (status != TSR_OK)
        return status;
    if (!seal_is_good(content, size)) {
        free(content);
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' (%zu bytes) is cut short, damaged, or no "
                        "checkpoint: its checksum does not fit",
                        path, size);
    }
    char name[64];
    name_image(file, name);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_fapl_core(access, GROW, 0) < 0 ||
        H5Pset_file_image(access, content, size - SEAL) < 0 ||
        (*file = H5Fopen(name, H5F_ACC_RDONLY, access)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "cannot read '%s'", path);
    tsr_hdf5_close(access);
    free(content);
    return status;
}

/* ---- on the disk ---- */

static int write_synced(const char *path, const char *content, size_t size)
{
    int fd = tsr_file_open_new(path);
    if (fd < 0)
        return errno;
    int failed = tsr_file_write_at(fd, content, size, 0);
    if (failed == 0 && fsync(fd) != 0)
        failed = errno;
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    return failed;
}

/* A second name for the present file, so that the first stays in use. It takes
 * the place of the one before it at once: at no moment is there none. */
static int keep_previous(const char *path, const char *previous)
{
    char *name = tsr_words_of("%s.link", path);
    int failed = name == NULL ? ENOMEM : 0;

    if (failed == 0 && access(path, F_OK) != 0) {
        failed = errno;
    } else if (failed == 0) {
        unlink(name); /* of a process that was killed here */
        if (link(path, name) == 0)
            failed = rename(name, previous) == 0 ? 0 : errno;
        else if (errno == EPERM || errno == ENOTSUP || errno == ENOSYS ||
                 errno ==
                     EMLINK) /* no links here: a moment without the first */
            failed = rename(path, previous) == 0 ? 0 : errno;
        else
            failed = errno;
        unlink(name); /* rename leaves it where both are the same file */
    }
    free(name);
    return failed == ENOENT ? 0 : failed;
}

tsr_status tsr_checkpoint_file_replace(const char *path, const char *content,
                                       size_t size, tsr_err *err)
{
    char *beside = tsr_words_of("%s.tmp", path),
         *previous = tsr_words_of("%s.previous", path);
    int failed = beside == NULL || previous == NULL ? ENOMEM : 0;

    if (failed == 0) {
        failed = write_synced(beside, content, size);
        if (failed == 0)
            failed = keep_previous(path, previous);
        if (failed == 0 && rename(beside, path) != 0)
            failed = errno;
        if (failed != 0)
            unlink(beside);
        else
            failed = tsr_file_sync_directory(path);
    }
    free(beside);
    free(previous);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", path,
                        strerror(failed));
    return TSR_OK;
}

/* ---- the newest good one ---- */

tsr_status tsr_checkpoint_open_newest(const char *directory,
                                      tsr_checkpoint **out,
                                      char message[TSR_ERR_SIZE], tsr_err *err)
{
    static const char *const end[] = {"/" TSR_CHECKPOINT_NAME,
                                      "/" TSR_CHECKPOINT_NAME ".previous",
                                      "/" TSR_CHECKPOINT_NAME ".tmp"};
    tsr_err why[3];
    int n_bad = 0;

    *out = NULL;
    message[0] = '\0';
    for (int i = 0; i < 3; i++) {
        char *path = tsr_words_of("%s%s", directory, end[i]);
        if (path == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'",
                            directory);
        tsr_status status = tsr_checkpoint_open(path, out, &why[i]);
        if (status == TSR_OK && i > 0)
            snprintf(message, TSR_ERR_SIZE, "%.*s; going on from '%s' of %s",
                     TSR_ERR_SIZE / 2, why[0].message, path,
                     tsr_checkpoint_created_at(*out));
        free(path);
        if (status == TSR_OK)
            return TSR_OK;
        if (status == TSR_E_NOMEM) {
            if (err != NULL)
                *err = why[i];
            return status;
        }
        n_bad += status != TSR_E_NOINPUT && i < 2;
    }
    if (n_bad == 0)
        return tsr_fail(err, TSR_E_NOINPUT, "'%s' has no checkpoint",
                        directory);
    return tsr_fail(err, TSR_E_DATA, "%.*s; %.*s", TSR_ERR_SIZE / 3,
                    why[0].message, TSR_ERR_SIZE / 3, why[1].message);
}

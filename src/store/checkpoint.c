/* A checkpoint never lies half written under its name: it is made in memory,
 * sealed, written beside, synced, and renamed. Reading verifies the seal before
 * HDF5 sees a byte. */
#include "store/checkpoint.h"

#include "core/clock.h"
#include "core/text.h"
#include "files/checksum.h"
#include "files/file.h"
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

/* Reads a file, verifies its seal, opens it from memory; `file` must keep its
 * place, < 0 on failure. */
static tsr_status open_image(const char *path, hid_t *file, tsr_err *err)
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

/* PATH.tmp, synced; PATH becomes PATH.previous; PATH.tmp becomes PATH; the
 * directory is synced. PATH stays what it was until the last rename replaces
 * it, so one good checkpoint has a known name at every moment. */
static tsr_status replace_file(const char *path, const char *content,
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

/* ---- members ----
 *
 * The HDF5 file of a checkpoint: its attributes, and a data set for each member
 * of a table of fields. */

struct tsr_checkpoint_writer {
    hid_t file; /* in memory */
    hid_t link; /* property list: groups are made as needed */
};

static const char format_name[] = "tessera checkpoint";

/* A text has a type of its own length. */
static hid_t text_type(size_t n)
{
    hid_t text = H5Tcopy(H5T_C_S1);
    if (text >= 0 && (H5Tset_size(text, n > 0 ? n : 1) < 0 ||
                      H5Tset_strpad(text, H5T_STR_NULLPAD) < 0 ||
                      H5Tset_cset(text, H5T_CSET_UTF8) < 0)) {
        H5Tclose(text);
        return H5I_INVALID_HID;
    }
    return text;
}

/* In memory; HDF5 converts where the file has another. */
static hid_t type_of(tsr_checkpoint_type type, size_t n)
{
    switch (type) {
    case TSR_CHECKPOINT_INT:
        return H5Tcopy(H5T_NATIVE_INT);
    case TSR_CHECKPOINT_LONG:
        return H5Tcopy(H5T_NATIVE_LONG);
    case TSR_CHECKPOINT_INT64:
        return H5Tcopy(H5T_NATIVE_INT64);
    case TSR_CHECKPOINT_DOUBLE:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case TSR_CHECKPOINT_TEXT:
    case TSR_CHECKPOINT_N_TYPE:
        break;
    }
    return text_type(n);
}

static int is_whole(tsr_checkpoint_type type)
{
    return type <= TSR_CHECKPOINT_INT64;
}

static hid_t type_in_file(tsr_checkpoint_type type, size_t n)
{
    return type_of(is_whole(type) ? TSR_CHECKPOINT_INT64 : type, n);
}

static size_t size_of(tsr_checkpoint_type type)
{
    return type == TSR_CHECKPOINT_INT      ? sizeof(int)
           : type == TSR_CHECKPOINT_LONG   ? sizeof(long)
           : type == TSR_CHECKPOINT_INT64  ? sizeof(int64_t)
           : type == TSR_CHECKPOINT_DOUBLE ? sizeof(double)
                                           : 1;
}

/* ---- writing ---- */

static tsr_status describe(hid_t file, const char *config_hash, tsr_err *err)
{
    const int version = TSR_CHECKPOINT_FORMAT;
    char created_at[40];

    tsr_clock_utc(created_at);
    TSR_TRY(tsr_hdf5_text(file, "format", format_name, err));
    TSR_TRY(tsr_hdf5_attribute(file, "format_version", H5T_NATIVE_INT, &version,
                               err));
    TSR_TRY(tsr_hdf5_text(file, "tessera_version", TSR_VERSION, err));
    TSR_TRY(tsr_hdf5_text(file, "config_hash", config_hash, err));
    return tsr_hdf5_text(file, "created_at", created_at, err);
}

tsr_status tsr_checkpoint_new(const char *config_hash,
                              tsr_checkpoint_writer **out, tsr_err *err)
{
    tsr_status status = TSR_OK;
    tsr_checkpoint_writer *writer = calloc(1, sizeof *writer);

    *out = NULL;
    if (writer == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a checkpoint");
    tsr_hdf5_quiet();
    writer->file = -1;
    writer->link = H5Pcreate(H5P_LINK_CREATE);
    if (writer->link < 0 ||
        H5Pset_create_intermediate_group(writer->link, 1) < 0)
        status = tsr_hdf5_fail(err, TSR_E_NOMEM, "cannot make a checkpoint");
    TSR_THEN(status, tsr_checkpoint_image_new(&writer->file, err));
    TSR_THEN(status, describe(writer->file, config_hash, err));
    if (status != TSR_OK) {
        tsr_checkpoint_writer_free(writer);
        return status;
    }
    *out = writer;
    return TSR_OK;
}

/* Parts between '/', none of them empty, "." or "..". */
static int name_is_good(const char *name)
{
    for (const char *at = name;; at++) {
        const size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') ||
            (n == 2 && at[0] == '.' && at[1] == '.'))
            return 0;
        at += n;
        if (*at == '\0')
            return 1;
    }
}

static tsr_status put_array(const tsr_checkpoint_writer *writer,
                            const char *name, tsr_checkpoint_type type,
                            size_t n, const void *data, tsr_err *err)
{
    const hsize_t size = n;
    tsr_status status = TSR_OK;
    hid_t set = -1;

    if (!name_is_good(name))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "'%s' is no name for a member of a checkpoint", name);
    hid_t element = type_in_file(type, n), memory = type_of(type, n);
    hid_t space = type == TSR_CHECKPOINT_TEXT
                      ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(1, &size, NULL);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    if (element < 0 || memory < 0 || space < 0 || create < 0 ||
        H5Pset_obj_track_times(create, 0) < 0 ||
        (set = H5Dcreate2(writer->file, name, element, space, writer->link,
                          create, H5P_DEFAULT)) < 0 ||
        (n > 0 &&
         H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        status = tsr_hdf5_fail(err, TSR_E_INTERNAL,
                               "cannot put '%s' into the checkpoint", name);
    tsr_hdf5_close(set);
    tsr_hdf5_close(create);
    tsr_hdf5_close(space);
    tsr_hdf5_close(memory);
    tsr_hdf5_close(element);
    return status;
}

tsr_status tsr_checkpoint_put(tsr_checkpoint_writer *writer,
                              const tsr_checkpoint_field *fields,
                              const void *object, tsr_err *err)
{
    tsr_hdf5_quiet();
    for (const tsr_checkpoint_field *f = fields; f->name != NULL; f++) {
        const char *member = (const char *)object + f->offset;
        const void *data = member;
        size_t n = f->count;
        if (n == 0)
            memcpy(&data, member, sizeof data);
        if (n == 0 && f->type == TSR_CHECKPOINT_TEXT)
            n = data != NULL ? strlen(data) : 0;
        else if (n == 0)
            memcpy(&n, (const char *)object + f->length, sizeof n);
        TSR_TRY(put_array(writer, f->name, f->type, n, data, err));
    }
    return TSR_OK;
}

tsr_status tsr_checkpoint_commit(tsr_checkpoint_writer *writer,
                                 const char *path, tsr_err *err)
{
    char *content = NULL;
    size_t size = 0;

    tsr_hdf5_quiet();
    tsr_status status =
        tsr_checkpoint_image_take(writer->file, &content, &size, err);
    TSR_THEN(status, replace_file(path, content, size, err));
    free(content);
    return status;
}

void tsr_checkpoint_writer_free(tsr_checkpoint_writer *writer)
{
    if (writer == NULL)
        return;
    tsr_hdf5_quiet();
    if (writer->file >= 0)
        H5Fclose(writer->file);
    tsr_hdf5_close(writer->link);
    free(writer);
}

/* ---- reading ---- */

struct tsr_checkpoint {
    hid_t file; /* in memory */
    char *path, *config_hash, *created_at, *version;
};

static tsr_status read_description(tsr_checkpoint *checkpoint, tsr_err *err)
{
    hid_t file = checkpoint->file;
    char *format = tsr_hdf5_attribute_text(file, "format");
    const int is_ours = format != NULL && strcmp(format, format_name) == 0;
    const long long version =
        tsr_hdf5_attribute_integer(file, "format_version", -1);

    free(format);
    if (!is_ours || version < 1)
        return tsr_fail(err, TSR_E_DATA, "'%s' is no tessera checkpoint",
                        checkpoint->path);
    checkpoint->version = tsr_hdf5_attribute_text(file, "tessera_version");
    if (version != TSR_CHECKPOINT_FORMAT)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has format %lld of tessera %s, and this is "
                        "tessera %s, which reads format %d; resume with the "
                        "one that wrote it, or begin a new run",
                        checkpoint->path, version,
                        checkpoint->version != NULL ? checkpoint->version : "?",
                        TSR_VERSION, TSR_CHECKPOINT_FORMAT);
    checkpoint->config_hash = tsr_hdf5_attribute_text(file, "config_hash");
    checkpoint->created_at = tsr_hdf5_attribute_text(file, "created_at");
    if (checkpoint->version == NULL || checkpoint->config_hash == NULL ||
        checkpoint->created_at == NULL)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' lacks tessera_version, config_hash or created_at",
                        checkpoint->path);
    return TSR_OK;
}

tsr_status tsr_checkpoint_open(const char *path, tsr_checkpoint **out,
                               tsr_err *err)
{
    tsr_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);

    *out = NULL;
    if (checkpoint == NULL || (checkpoint->path = strdup(path)) == NULL) {
        free(checkpoint);
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    }
    tsr_hdf5_quiet();
    tsr_status status = open_image(path, &checkpoint->file, err);
    TSR_THEN(status, read_description(checkpoint, err));
    if (status != TSR_OK) {
        tsr_checkpoint_free(checkpoint);
        return status;
    }
    *out = checkpoint;
    return TSR_OK;
}

/* The array of a field, open, and its length. */
static tsr_status find(const tsr_checkpoint *checkpoint,
                       const tsr_checkpoint_field *field, hid_t *set, size_t *n,
                       tsr_err *err)
{
    const char *path = checkpoint->path, *name = field->name;
    const int is_text = field->type == TSR_CHECKPOINT_TEXT;

    *set = -1;
    if (!name_is_good(name) || !tsr_hdf5_has(checkpoint->file, name))
        return tsr_fail(err, TSR_E_DATA, "'%s' has no '%s'", path, name);
    *set = H5Dopen2(checkpoint->file, name, H5P_DEFAULT);
    hid_t stored = *set >= 0 ? H5Dget_type(*set) : -1;
    hid_t space = *set >= 0 ? H5Dget_space(*set) : -1;
    hid_t wanted = stored >= 0 ? type_in_file(field->type, H5Tget_size(stored))
                               : H5I_INVALID_HID;
    const hssize_t length =
        space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    tsr_status status = TSR_OK;
    if (length < 0 || wanted < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot open '%s'", path,
                               name);
    else if (H5Tequal(stored, wanted) <= 0)
        status = tsr_fail(err, TSR_E_DATA, "'%s': '%s' is not %s", path, name,
                          is_text                 ? "text"
                          : is_whole(field->type) ? "whole numbers"
                                                  : "real numbers");
    *n = status != TSR_OK ? 0 : is_text ? H5Tget_size(stored) : (size_t)length;
    if (status == TSR_OK && field->count != 0 && *n != field->count)
        status = tsr_fail(err, TSR_E_DATA, "'%s': '%s' has length %zu, not %zu",
                          path, name, *n, field->count);
    tsr_hdf5_close(wanted);
    tsr_hdf5_close(space);
    tsr_hdf5_close(stored);
    return status;
}

static tsr_status get_array(const tsr_checkpoint *checkpoint, hid_t set,
                            const tsr_checkpoint_field *field, size_t n,
                            char *object, tsr_err *err)
{
    tsr_status status = TSR_OK;
    void *data = object + field->offset;
    if (field->count == 0) { /* with room for the NUL of a text */
        void *owned = calloc(n + 1, size_of(field->type));
        if (owned == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'",
                            field->name);
        memcpy(data, &owned, sizeof owned);
        data = owned;
        if (field->type != TSR_CHECKPOINT_TEXT)
            memcpy(object + field->length, &n, sizeof n);
    }
    hid_t memory = type_of(field->type, n);
    if (memory < 0 || (n > 0 && H5Dread(set, memory, H5S_ALL, H5S_ALL,
                                        H5P_DEFAULT, data) < 0))
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read '%s'",
                               checkpoint->path, field->name);
    tsr_hdf5_close(memory);
    return status;
}

tsr_status tsr_checkpoint_get(const tsr_checkpoint *checkpoint,
                              const tsr_checkpoint_field *fields, void *object,
                              tsr_err *err)
{
    tsr_status status = TSR_OK;
    tsr_hdf5_quiet();
    for (const tsr_checkpoint_field *f = fields;
         status == TSR_OK && f->name != NULL; f++) {
        hid_t set;
        size_t n = 0;
        status = find(checkpoint, f, &set, &n, err);
        TSR_THEN(status, get_array(checkpoint, set, f, n, object, err));
        tsr_hdf5_close(set);
    }
    return status;
}

const char *tsr_checkpoint_created_at(const tsr_checkpoint *checkpoint)
{
    return checkpoint->created_at;
}

void tsr_checkpoint_free(tsr_checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    tsr_hdf5_quiet();
    if (checkpoint->file >= 0)
        H5Fclose(checkpoint->file);
    free(checkpoint->path);
    free(checkpoint->config_hash);
    free(checkpoint->created_at);
    free(checkpoint->version);
    free(checkpoint);
}

/* The HDF5 file of a checkpoint: its attributes, and a data set for each member
 * of a table of fields. Sealing and replacing it is checkpoint_file.c. */
#include "store/checkpoint.h"

#include "core/clock.h"
#include "store/checkpoint_file.h"
#include "store/hdf5_object.h"

#include <stdlib.h>
#include <string.h>

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
    TSR_THEN(status, tsr_checkpoint_file_replace(path, content, size, err));
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
    tsr_status status = tsr_checkpoint_image_open(path, &checkpoint->file, err);
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

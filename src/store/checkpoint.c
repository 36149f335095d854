/* A checkpoint is an HDF5 file (store/hdf5_store.h) with attributes, and one
 * data set for each member in a table of fields. */
#include "store/checkpoint.h"

#include "core/clock.h"
#include "core/text.h"
#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the newest undamaged checkpoint ---- */

tsr_status tsr_checkpoint_open_newest(const char *directory,
                                      tsr_checkpoint **out,
                                      char message[TSR_ERR_SIZE], tsr_err *err)
{
    static const char *const end[] = {"/" TSR_CHECKPOINT_NAME,
                                      "/" TSR_CHECKPOINT_NAME ".previous"};
    tsr_err why[2];
    int n_bad = 0;

    *out = NULL;
    message[0] = '\0';
    for (int i = 0; i < 2; i++) {
        char *path = tsr_text_format("%s%s", directory, end[i]);
        if (path == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'",
                            directory);
        tsr_status status = tsr_checkpoint_open(path, out, &why[i]);
        if (status == TSR_OK && i > 0)
            snprintf(message, TSR_ERR_SIZE, "%.*s; using '%s' of %s instead",
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
        n_bad += status != TSR_E_NOINPUT;
    }
    if (n_bad == 0)
        return tsr_fail(err, TSR_E_NOINPUT, "'%s' has no checkpoint",
                        directory);
    return tsr_fail(err, TSR_E_DATA, "%.*s; %.*s", TSR_ERR_SIZE / 3,
                    why[0].message, TSR_ERR_SIZE / 3, why[1].message);
}

/* ---- members ---- */

struct tsr_checkpoint_writer {
    tsr_hdf5_output output;
    hid_t link; /* property list that creates groups as needed */
};

static const char format_name[] = "tessera checkpoint";

/* HDF5 type of a text of n bytes. The caller closes it. */
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

/* Type in memory, for a text of n bytes. HDF5 converts from and to the type of
 * the file. The caller closes it. */
static hid_t memory_type(tsr_checkpoint_type type, size_t n)
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

static hid_t file_type(tsr_checkpoint_type type, size_t n)
{
    return memory_type(
        type <= TSR_CHECKPOINT_INT64 ? TSR_CHECKPOINT_INT64 : type, n);
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

static tsr_status write_description(hid_t file, const char *config_hash,
                                    tsr_err *err)
{
    const int version = TSR_CHECKPOINT_FORMAT;
    char created_at[40];

    tsr_clock_utc(created_at);
    TSR_TRY(tsr_hdf5_attribute(file, "format_version", H5T_NATIVE_INT, 0,
                               &version, err));
    return tsr_hdf5_texts(file, err, "format", format_name, "tessera_version",
                          TSR_VERSION, "config_hash", config_hash, "created_at",
                          created_at, NULL);
}

tsr_status tsr_checkpoint_new(const char *path, const char *config_hash,
                              tsr_checkpoint_writer **out, tsr_err *err)
{
    tsr_checkpoint_writer *writer = calloc(1, sizeof *writer);

    *out = NULL;
    if (writer == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a checkpoint");
    tsr_hdf5_quiet();
    writer->link = H5Pcreate(H5P_LINK_CREATE);
    tsr_status status =
        writer->link < 0 ||
                H5Pset_create_intermediate_group(writer->link, 1) < 0
            ? tsr_hdf5_fail(err, TSR_E_NOMEM, "cannot make a checkpoint")
            : TSR_OK;
    TSR_THEN(status, tsr_hdf5_output_start(path, NULL, &writer->output, err));
    TSR_THEN(status, write_description(writer->output.file, config_hash, err));
    if (status != TSR_OK)
        return tsr_checkpoint_end(writer, status, err);
    writer->output.keeps_previous = 1;
    *out = writer;
    return TSR_OK;
}

static tsr_status put_array(const tsr_checkpoint_writer *writer,
                            const char *name, tsr_checkpoint_type type,
                            size_t n, const void *data, tsr_err *err)
{
    const hsize_t size = n;
    tsr_status status = TSR_OK;
    hid_t set = -1;

    hid_t element = file_type(type, n), memory = memory_type(type, n);
    hid_t space = type == TSR_CHECKPOINT_TEXT
                      ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(1, &size, NULL);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    if (element < 0 || memory < 0 || space < 0 || create < 0 ||
        H5Pset_obj_track_times(create, 0) < 0 ||
        (set = H5Dcreate2(writer->output.file, name, element, space,
                          writer->link, create, H5P_DEFAULT)) < 0 ||
        (n > 0 &&
         H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        status = tsr_hdf5_fail(err, TSR_E_INTERNAL,
                               "cannot write '%s' to the checkpoint", name);
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

tsr_status tsr_checkpoint_end(tsr_checkpoint_writer *writer, tsr_status status,
                              tsr_err *err)
{
    if (writer == NULL)
        return status;
    tsr_hdf5_quiet();
    tsr_hdf5_close(writer->link);
    status = tsr_hdf5_output_end(&writer->output, status, err);
    free(writer);
    return status;
}

/* ---- reading ---- */

struct tsr_checkpoint {
    tsr_hdf5_input input;
    char *created_at;
};

static tsr_status read_description(tsr_checkpoint *checkpoint, tsr_err *err)
{
    const hid_t file = checkpoint->input.file;
    const char *path = checkpoint->input.path;
    const long long format =
        tsr_hdf5_attribute_integer(file, "format_version", -1);
    char *name = tsr_hdf5_attribute_text(file, "format");
    const int is_ours = name != NULL && strcmp(name, format_name) == 0;

    free(name);
    if (!is_ours || format < 1)
        return tsr_fail(err, TSR_E_DATA, "'%s' is not a tessera checkpoint",
                        path);
    if (format != TSR_CHECKPOINT_FORMAT) {
        char *version = tsr_hdf5_attribute_text(file, "tessera_version");
        tsr_fail(
            err, TSR_E_DATA,
            "'%s' has format %lld of tessera %s, but tessera %s reads format "
            "%d; resume with the version that wrote it, or begin a new run",
            path, format, version != NULL ? version : "?", TSR_VERSION,
            TSR_CHECKPOINT_FORMAT);
        free(version);
        return TSR_E_DATA;
    }
    if (!checkpoint->input.is_sealed)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is truncated or damaged: it has no checksum",
                        path);
    checkpoint->created_at = tsr_hdf5_attribute_text(file, "created_at");
    if (checkpoint->created_at == NULL)
        return tsr_fail(err, TSR_E_DATA, "'%s' lacks created_at", path);
    return TSR_OK;
}

tsr_status tsr_checkpoint_open(const char *path, tsr_checkpoint **out,
                               tsr_err *err)
{
    tsr_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);

    *out = NULL;
    TSR_TRY(tsr_allocated(checkpoint, err));
    tsr_status status = tsr_hdf5_input_open(path, &checkpoint->input, err);
    TSR_THEN(status, read_description(checkpoint, err));
    if (status != TSR_OK) {
        tsr_checkpoint_free(checkpoint);
        return status;
    }
    *out = checkpoint;
    return TSR_OK;
}

/* Opens the data set of a field and returns its length. */
static tsr_status find_array(const tsr_checkpoint *checkpoint,
                             const tsr_checkpoint_field *field, hid_t *set,
                             size_t *n, tsr_err *err)
{
    const hid_t file = checkpoint->input.file;

    *set = tsr_hdf5_has(file, field->name)
               ? H5Dopen2(file, field->name, H5P_DEFAULT)
               : H5I_INVALID_HID;
    hid_t stored = *set >= 0 ? H5Dget_type(*set) : -1;
    hid_t space = *set >= 0 ? H5Dget_space(*set) : -1;
    hid_t wanted = stored >= 0 ? file_type(field->type, H5Tget_size(stored))
                               : H5I_INVALID_HID;
    const hssize_t length =
        space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    const int has_type =
        length >= 0 && wanted >= 0 && H5Tequal(stored, wanted) > 0;
    if (has_type)
        *n = field->type == TSR_CHECKPOINT_TEXT ? H5Tget_size(stored)
                                                : (size_t)length;
    tsr_hdf5_close(wanted);
    tsr_hdf5_close(space);
    tsr_hdf5_close(stored);
    return has_type && (field->count == 0 || *n == field->count)
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "'%s' lacks '%s', or has it in another shape",
                          checkpoint->input.path, field->name);
}

static tsr_status get_array(const tsr_checkpoint *checkpoint, hid_t set,
                            const tsr_checkpoint_field *field, size_t n,
                            char *object, tsr_err *err)
{
    tsr_status status = TSR_OK;
    void *data = object + field->offset;
    if (field->count == 0) { /* one more element, for the NUL of a text */
        void *owned = calloc(n + 1, size_of(field->type));
        if (owned == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'",
                            field->name);
        memcpy(data, &owned, sizeof owned);
        data = owned;
        if (field->type != TSR_CHECKPOINT_TEXT)
            memcpy(object + field->length, &n, sizeof n);
    }
    hid_t memory = memory_type(field->type, n);
    if (memory < 0 || (n > 0 && H5Dread(set, memory, H5S_ALL, H5S_ALL,
                                        H5P_DEFAULT, data) < 0))
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read '%s'",
                               checkpoint->input.path, field->name);
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
        status = find_array(checkpoint, f, &set, &n, err);
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
    tsr_hdf5_input_close(&checkpoint->input);
    free(checkpoint->created_at);
    free(checkpoint);
}

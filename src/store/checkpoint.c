#include "store/checkpoint.h"

#include "store/checkpoint_file.h"
#include "store/hdf5_object.h"

#include <stdlib.h>
#include <string.h>

struct tsr_checkpoint_writer {
    hid_t file; /* in memory */
    hid_t link; /* property list: groups are made as needed */
};

static const char format_name[] = "tessera checkpoint";

/* On disk and in memory; a text has a type of its own length. */
static hid_t type_of(tsr_checkpoint_type type, size_t n)
{
    switch (type) {
    case TSR_CHECKPOINT_DOUBLE:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case TSR_CHECKPOINT_INT64:
        return H5Tcopy(H5T_NATIVE_INT64);
    case TSR_CHECKPOINT_UINT64:
        return H5Tcopy(H5T_NATIVE_UINT64);
    case TSR_CHECKPOINT_BYTES:
        return H5Tcopy(H5T_NATIVE_UCHAR);
    case TSR_CHECKPOINT_TEXT:
    case TSR_CHECKPOINT_N_TYPE:
        break;
    }
    hid_t text = H5Tcopy(H5T_C_S1);
    if (text >= 0 && (H5Tset_size(text, n > 0 ? n : 1) < 0 ||
                      H5Tset_strpad(text, H5T_STR_NULLPAD) < 0 ||
                      H5Tset_cset(text, H5T_CSET_UTF8) < 0)) {
        H5Tclose(text);
        return H5I_INVALID_HID;
    }
    return text;
}

static const char *type_name(tsr_checkpoint_type type)
{
    static const char *const name[TSR_CHECKPOINT_N_TYPE] = {
        "float64", "int64", "uint64", "bytes", "text"};
    return type < TSR_CHECKPOINT_N_TYPE ? name[type] : "of a known type";
}

/* ---- writing ---- */

static tsr_status describe(hid_t file, const char *config_hash, tsr_err *err)
{
    const int version = TSR_CHECKPOINT_FORMAT;
    char created_at[40];

    tsr_hdf5_now(created_at);
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
    if (status == TSR_OK)
        status = tsr_checkpoint_image_new(&writer->file, err);
    if (status == TSR_OK)
        status = describe(writer->file, config_hash, err);
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

tsr_status tsr_checkpoint_put(tsr_checkpoint_writer *writer, const char *name,
                              tsr_checkpoint_type type, size_t n,
                              const void *data, tsr_err *err)
{
    const hsize_t size = n;
    tsr_status status = TSR_OK;
    hid_t set = -1;

    if (!name_is_good(name) || type >= TSR_CHECKPOINT_N_TYPE)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "'%s' is no name for an array of a checkpoint", name);
    tsr_hdf5_quiet();
    hid_t element = type_of(type, n);
    hid_t space = type == TSR_CHECKPOINT_TEXT
                      ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(1, &size, NULL);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    if (element < 0 || space < 0 || create < 0 ||
        H5Pset_obj_track_times(create, 0) < 0 ||
        (set = H5Dcreate2(writer->file, name, element, space, writer->link,
                          create, H5P_DEFAULT)) < 0 ||
        (n > 0 &&
         H5Dwrite(set, element, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        status = tsr_hdf5_fail(err, TSR_E_INTERNAL,
                               "cannot put '%s' into the checkpoint", name);
    tsr_hdf5_close(set);
    tsr_hdf5_close(create);
    tsr_hdf5_close(space);
    tsr_hdf5_close(element);
    return status;
}

tsr_status tsr_checkpoint_put_text(tsr_checkpoint_writer *writer,
                                   const char *name, const char *text,
                                   tsr_err *err)
{
    return tsr_checkpoint_put(writer, name, TSR_CHECKPOINT_TEXT, strlen(text),
                              text, err);
}

tsr_status tsr_checkpoint_commit(tsr_checkpoint_writer *writer,
                                 const char *path, tsr_err *err)
{
    char *content = NULL;
    size_t size = 0;

    tsr_hdf5_quiet();
    tsr_status status =
        tsr_checkpoint_image_take(writer->file, &content, &size, err);
    if (status == TSR_OK)
        status = tsr_checkpoint_file_replace(path, content, size, err);
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

typedef struct array {
    struct array *next;
    max_align_t data[];
} array;

struct tsr_checkpoint {
    hid_t file; /* in memory */
    char *path, *config_hash, *created_at, *version;
    array *given; /* what get returned */
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
    if (version > TSR_CHECKPOINT_FORMAT)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has format %lld of tessera %s, and this is "
                        "tessera %s, which reads up to %d; resume with the "
                        "newer one",
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
    if (status == TSR_OK)
        status = read_description(checkpoint, err);
    if (status != TSR_OK) {
        tsr_checkpoint_free(checkpoint);
        return status;
    }
    *out = checkpoint;
    return TSR_OK;
}

/* The array, open, and its length. */
static tsr_status find(const tsr_checkpoint *checkpoint, const char *name,
                       tsr_checkpoint_type type, hid_t *set, size_t *n,
                       tsr_err *err)
{
    const char *path = checkpoint->path;

    *set = -1;
    if (!tsr_checkpoint_has(checkpoint, name))
        return tsr_fail(err, TSR_E_DATA, "'%s' has no array '%s'", path, name);
    *set = H5Dopen2(checkpoint->file, name, H5P_DEFAULT);
    hid_t stored = *set >= 0 ? H5Dget_type(*set) : -1;
    hid_t space = *set >= 0 ? H5Dget_space(*set) : -1;
    hid_t wanted =
        stored >= 0 ? type_of(type, H5Tget_size(stored)) : H5I_INVALID_HID;
    const hssize_t length =
        space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    tsr_status status = TSR_OK;
    if (length < 0 || wanted < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot open '%s'", path,
                               name);
    else if (H5Tequal(stored, wanted) <= 0)
        status = tsr_fail(err, TSR_E_DATA, "'%s': '%s' is not %s", path, name,
                          type_name(type));
    else
        *n = type == TSR_CHECKPOINT_TEXT ? H5Tget_size(stored) : (size_t)length;
    tsr_hdf5_close(wanted);
    tsr_hdf5_close(space);
    tsr_hdf5_close(stored);
    if (status != TSR_OK && *set >= 0) {
        H5Dclose(*set);
        *set = -1;
    }
    return status;
}

static tsr_status read_array(const tsr_checkpoint *checkpoint, hid_t set,
                             const char *name, tsr_checkpoint_type type,
                             size_t n, void *data, tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t memory = type_of(type, n);

    if (memory < 0 || (n > 0 && H5Dread(set, memory, H5S_ALL, H5S_ALL,
                                        H5P_DEFAULT, data) < 0))
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read '%s'",
                               checkpoint->path, name);
    tsr_hdf5_close(memory);
    return status;
}

tsr_status tsr_checkpoint_get(tsr_checkpoint *checkpoint, const char *name,
                              tsr_checkpoint_type type, size_t *n,
                              const void **data, tsr_err *err)
{
    size_t count = 0;
    hid_t set;

    *data = NULL;
    tsr_hdf5_quiet();
    tsr_status status = find(checkpoint, name, type, &set, &count, err);
    if (status != TSR_OK)
        return status;
    array *one = calloc(1, sizeof *one + 8 * count + 1);
    if (one == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", name);
    } else {
        status = read_array(checkpoint, set, name, type, count, one->data, err);
        one->next = checkpoint->given;
        checkpoint->given = one;
    }
    H5Dclose(set);
    if (status != TSR_OK)
        return status;
    *data = one->data;
    if (n != NULL)
        *n = type == TSR_CHECKPOINT_TEXT ? strlen((const char *)one->data)
                                         : count;
    return TSR_OK;
}

tsr_status tsr_checkpoint_copy(const tsr_checkpoint *checkpoint,
                               const char *name, tsr_checkpoint_type type,
                               size_t n, void *data, tsr_err *err)
{
    size_t count = 0;
    hid_t set;

    tsr_hdf5_quiet();
    TSR_TRY(find(checkpoint, name, type, &set, &count, err));
    tsr_status status =
        count != n
            ? tsr_fail(err, TSR_E_DATA, "'%s': '%s' has length %zu, not %zu",
                       checkpoint->path, name, count, n)
            : read_array(checkpoint, set, name, type, n, data, err);
    H5Dclose(set);
    return status;
}

int tsr_checkpoint_has(const tsr_checkpoint *checkpoint, const char *name)
{
    tsr_hdf5_quiet();
    return name_is_good(name) && tsr_hdf5_has(checkpoint->file, name);
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
    while (checkpoint->given != NULL) {
        array *next = checkpoint->given->next;
        free(checkpoint->given);
        checkpoint->given = next;
    }
    free(checkpoint->path);
    free(checkpoint->config_hash);
    free(checkpoint->created_at);
    free(checkpoint->version);
    free(checkpoint);
}

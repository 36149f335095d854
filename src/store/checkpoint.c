/* A checkpoint is an HDF5 file (store/hdf5_store.h) with attributes, a data set
 * for each text and two for each archive. */
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

static tsr_status put_array(hid_t file, hid_t link, const char *name,
                            const char *end, hid_t type, size_t n,
                            const void *data, tsr_err *err)
{
    const hsize_t size = n;
    char path[80];
    tsr_status status = TSR_OK;
    hid_t set = -1;

    snprintf(path, sizeof path, "%s%s", name, end);
    hid_t space = end[0] == '\0' ? H5Screate(H5S_SCALAR)
                                 : H5Screate_simple(1, &size, NULL);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    if (type < 0 || space < 0 || create < 0 ||
        H5Pset_obj_track_times(create, 0) < 0 ||
        (set = H5Dcreate2(file, path, type, space, link, create, H5P_DEFAULT)) <
            0 ||
        (n > 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        status = tsr_hdf5_fail(err, TSR_E_INTERNAL,
                               "cannot write '%s' to the checkpoint", path);
    tsr_hdf5_close(set);
    tsr_hdf5_close(create);
    tsr_hdf5_close(space);
    return status;
}

static tsr_status put_member(hid_t file, hid_t link,
                             const tsr_checkpoint_member *m, tsr_err *err)
{
    const tsr_archive *a = m->archive;
    if (a != NULL) {
        TSR_TRY(put_array(file, link, m->name, "/real", H5T_NATIVE_DOUBLE,
                          a->n_real, a->real, err));
        return put_array(file, link, m->name, "/integer", H5T_NATIVE_INT64,
                         a->n_integer, a->integer, err);
    }
    const size_t n = *m->text != NULL ? strlen(*m->text) : 0;
    const hid_t type = text_type(n);
    const tsr_status status =
        put_array(file, link, m->name, "", type, n, *m->text, err);
    tsr_hdf5_close(type);
    return status;
}

tsr_status tsr_checkpoint_write(const char *path, const char *config_hash,
                                const tsr_checkpoint_member *members,
                                tsr_err *err)
{
    tsr_hdf5_output output;
    tsr_hdf5_quiet();
    TSR_TRY(tsr_hdf5_output_start(path, NULL, &output, err));
    output.keeps_previous = 1;
    const hid_t link = H5Pcreate(H5P_LINK_CREATE);
    tsr_status status =
        link < 0 || H5Pset_create_intermediate_group(link, 1) < 0
            ? tsr_hdf5_fail(err, TSR_E_NOMEM, "cannot make a checkpoint")
            : write_description(output.file, config_hash, err);
    for (const tsr_checkpoint_member *m = members;
         status == TSR_OK && m->name != NULL; m++)
        status = put_member(output.file, link, m, err);
    tsr_hdf5_close(link);
    return tsr_hdf5_output_end(&output, status, err);
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
    TSR_HAND_OVER(status, checkpoint, out, tsr_checkpoint_free);
}

/* Reads a data set: for end "" a text, else an array of an archive. *value is
 * allocated, with one more element, for the NUL of a text; *n out: its length.
 */
static tsr_status get_array(const tsr_checkpoint *checkpoint, const char *name,
                            const char *end, void **value, size_t *n,
                            tsr_err *err)
{
    const int is_text = end[0] == '\0', is_real = strcmp(end, "/real") == 0;
    char path[80];
    tsr_status status = TSR_OK;
    snprintf(path, sizeof path, "%s%s", name, end);
    const hid_t file = checkpoint->input.file;
    const hid_t set = tsr_hdf5_has(file, path)
                          ? H5Dopen2(file, path, H5P_DEFAULT)
                          : H5I_INVALID_HID;
    const hid_t stored = set >= 0 ? H5Dget_type(set) : -1;
    const hid_t space = set >= 0 ? H5Dget_space(set) : -1;
    const hid_t wanted =
        stored < 0 ? H5I_INVALID_HID
        : is_text  ? text_type(H5Tget_size(stored))
                   : H5Tcopy(is_real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64);
    const hssize_t length =
        space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    if (length < 0 || wanted < 0 || H5Tequal(stored, wanted) <= 0 ||
        H5Sget_simple_extent_ndims(space) != !is_text)
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s' lacks '%s', or has it in another shape",
                          checkpoint->input.path, path);
    if (status == TSR_OK) {
        *n = is_text ? H5Tget_size(stored) : (size_t)length;
        *value = calloc(*n + 1, is_text ? 1 : sizeof(double));
        status = tsr_allocated(*value, err);
    }
    if (status == TSR_OK && *n > 0 &&
        H5Dread(set, wanted, H5S_ALL, H5S_ALL, H5P_DEFAULT, *value) < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read '%s'",
                               checkpoint->input.path, path);
    tsr_hdf5_close(wanted);
    tsr_hdf5_close(space);
    tsr_hdf5_close(stored);
    tsr_hdf5_close(set);
    return status;
}

tsr_status tsr_checkpoint_get(const tsr_checkpoint *checkpoint,
                              const tsr_checkpoint_member *members,
                              tsr_err *err)
{
    tsr_hdf5_quiet();
    for (const tsr_checkpoint_member *m = members; m->name != NULL; m++) {
        tsr_archive *a = m->archive;
        void *real = NULL, *integer = NULL, *text = NULL;
        size_t n;
        tsr_status status = TSR_OK;
        if (a == NULL) {
            status = get_array(checkpoint, m->name, "", &text, &n, err);
            *m->text = text;
        } else {
            status =
                get_array(checkpoint, m->name, "/real", &real, &a->n_real, err);
            TSR_THEN(status, get_array(checkpoint, m->name, "/integer",
                                       &integer, &a->n_integer, err));
            a->real = real;
            a->integer = integer;
        }
        TSR_TRY(status);
    }
    return TSR_OK;
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

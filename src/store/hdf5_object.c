/* Parts of HDF5's interface, with its errors converted to tessera's. */
#include "store/hdf5_object.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tsr_hdf5_quiet(void)
{
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

typedef struct {
    char text[512];
} reason;

/* The innermost entry of the error stack names the cause; the entries above it
 * name only callers. For a failed system call the innermost entry is a long
 * line with addresses, of which only the text before the first ':' and the text
 * of strerror are kept. */
static herr_t keep_innermost(unsigned n, const H5E_error2_t *error, void *data)
{
    static const char mark[] = "error message = '";
    reason *why = (reason *)data;
    const char *desc = error->desc != NULL ? error->desc : "no reason given";

    if (n != 0)
        return 0;
    const char *text = strstr(desc, mark);
    if (text == NULL) {
        snprintf(why->text, sizeof why->text, "%s", desc);
        return 0;
    }
    text += sizeof mark - 1;
    snprintf(why->text, sizeof why->text, "%.*s: %.*s", (int)strcspn(desc, ":"),
             desc, (int)strcspn(text, "'"), text);
    return 0;
}

tsr_status tsr_hdf5_fail(tsr_err *err, tsr_status status, const char *format,
                         ...)
{
    reason why = {""};
    char message[TSR_ERR_SIZE];
    va_list args;

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &why);
    H5Eclear2(H5E_DEFAULT);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (why.text[0] == '\0')
        return tsr_fail(err, status, "%s", message);
    return tsr_fail(err, status, "%s: HDF5: %s", message, why.text);
}

void tsr_hdf5_close(hid_t id)
{
    if (id >= 0)
        H5Idec_ref(id);
}

/* ---- attributes ---- */

int tsr_hdf5_track_order(hid_t create)
{
    return H5Pset_link_creation_order(create, TSR_HDF5_ORDER) >= 0 &&
           H5Pset_attr_creation_order(create, TSR_HDF5_ORDER) >= 0;
}

hid_t tsr_hdf5_text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 ||
                      H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

tsr_status tsr_hdf5_attribute(hid_t object, const char *name, hid_t type,
                              hsize_t n, const void *value, tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t attribute = H5I_INVALID_HID;
    hid_t space =
        n == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, NULL);

    if (type < 0 || space < 0 ||
        (attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT,
                                H5P_DEFAULT)) < 0 ||
        H5Awrite(attribute, type, value) < 0)
        status =
            tsr_hdf5_fail(err, TSR_E_IO, "cannot write attribute '%s'", name);
    tsr_hdf5_close(attribute);
    tsr_hdf5_close(space);
    return status;
}

tsr_status tsr_hdf5_texts(hid_t object, tsr_err *err, ...)
{
    hid_t type = tsr_hdf5_text_type();
    tsr_status status = TSR_OK;
    va_list pairs;

    va_start(pairs, err);
    for (const char *name;
         status == TSR_OK && (name = va_arg(pairs, const char *)) != NULL;) {
        const char *text = va_arg(pairs, const char *);
        if (text != NULL)
            status = tsr_hdf5_attribute(object, name, type, 0, &text, err);
    }
    va_end(pairs);
    tsr_hdf5_close(type);
    return status;
}

/* Text of variable length (tessera) or fixed length (other programs). */
static char *read_text(hid_t attribute, hid_t type)
{
    char *text = NULL;

    if (H5Tis_variable_str(type) > 0) {
        char *theirs = NULL;
        hid_t memory = H5Tcopy(H5T_C_S1);
        if (memory >= 0 && H5Tset_size(memory, H5T_VARIABLE) >= 0 &&
            H5Tset_cset(memory, H5Tget_cset(type)) >= 0 &&
            H5Aread(attribute, memory, (void *)&theirs) >= 0 &&
            theirs != NULL) {
            text = strdup(theirs);
            H5free_memory(theirs);
        }
        tsr_hdf5_close(memory);
        return text;
    }
    size_t size = H5Tget_size(type);
    text = calloc(size + 1, 1);
    if (text != NULL && H5Aread(attribute, type, text) < 0) {
        free(text);
        text = NULL;
    }
    return text;
}

char *tsr_hdf5_attribute_text(hid_t object, const char *name)
{
    char *text = NULL;

    if (H5Aexists(object, name) <= 0)
        return NULL;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        return NULL;
    hid_t type = H5Aget_type(attribute);
    hid_t space = H5Aget_space(attribute);
    if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING &&
        H5Sget_simple_extent_npoints(space) == 1)
        text = read_text(attribute, type);
    tsr_hdf5_close(space);
    tsr_hdf5_close(type);
    H5Aclose(attribute);
    return text;
}

long long tsr_hdf5_attribute_integer(hid_t object, const char *name,
                                     long long otherwise)
{
    long long value = otherwise;

    if (H5Aexists(object, name) <= 0)
        return otherwise;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        return otherwise;
    hid_t space = H5Aget_space(attribute);
    if (space < 0 || H5Sget_simple_extent_npoints(space) != 1 ||
        H5Aread(attribute, H5T_NATIVE_LLONG, &value) < 0)
        value = otherwise;
    tsr_hdf5_close(space);
    H5Aclose(attribute);
    return value;
}

/* ---- data sets ---- */

int tsr_hdf5_shape(hid_t data, hsize_t *size)
{
    enum { MOST_PACKED = 1032, SLACK = 1 << 16 }; /* zlib's limit; of caches */
    hid_t space = data >= 0 ? H5Dget_space(data) : -1;
    hid_t type = space >= 0 ? H5Dget_type(data) : -1;
    const int rank =
        space >= 0 ? H5Sget_simple_extent_dims(space, size, NULL) : -1;
    double bytes = type >= 0 ? (double)H5Tget_size(type) : 0;

    for (int i = 0; i < rank; i++)
        bytes *= (double)size[i];
    tsr_hdf5_close(space);
    tsr_hdf5_close(type);
    if (rank > 0 &&
        bytes / MOST_PACKED > (double)H5Dget_storage_size(data) + SLACK)
        return -1;
    return rank;
}

herr_t tsr_hdf5_scales(hid_t data, int rank, int axis, H5DS_iterate_t visit,
                       void *context)
{
    if (H5Aexists(data, DIMENSION_LIST) <= 0)
        return 0;
    hid_t attribute = H5Aopen(data, DIMENSION_LIST, H5P_DEFAULT);
    hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    hid_t list = attribute >= 0 ? H5Aget_type(attribute) : -1;
    hid_t item =
        list >= 0 && H5Tget_class(list) == H5T_VLEN ? H5Tget_super(list) : -1;
    const int is_list = item >= 0 && H5Tequal(item, H5T_STD_REF_OBJ) > 0 &&
                        H5Sget_simple_extent_npoints(space) == rank;
    tsr_hdf5_close(item);
    tsr_hdf5_close(list);
    tsr_hdf5_close(space);
    tsr_hdf5_close(attribute);
    return is_list
               ? H5DSiterate_scales(data, (unsigned)axis, NULL, visit, context)
               : -1;
}

int tsr_hdf5_block(hid_t data, hid_t type, int rank, const hsize_t *offset,
                   const hsize_t *size, void *to, const void *from)
{
    hid_t in_file = H5Dget_space(data);
    hid_t in_memory = in_file < 0 ? -1 : H5Screate_simple(rank, size, NULL);
    const int is_done =
        in_memory >= 0 &&
        H5Sselect_hyperslab(in_file, H5S_SELECT_SET, offset, NULL, size,
                            NULL) >= 0 &&
        (to != NULL ? H5Dread(data, type, in_memory, in_file, H5P_DEFAULT, to)
                    : H5Dwrite(data, type, in_memory, in_file, H5P_DEFAULT,
                               from)) >= 0;
    /* closing would clear the error stack */
    const hid_t why = is_done ? H5I_INVALID_HID : H5Eget_current_stack();
    tsr_hdf5_close(in_memory);
    tsr_hdf5_close(in_file);
    if (why >= 0)
        H5Eset_current_stack(why);
    return is_done;
}

int tsr_hdf5_has(hid_t file, const char *path)
{
    return H5LTpath_valid(file, path, 0) > 0;
}

#include "store/hdf5_attribute.h"

#include "store/hdf5_error.h"

#include <stdlib.h>
#include <string.h>

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
                              const void *value, tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t attribute = H5I_INVALID_HID;
    hid_t space = H5Screate(H5S_SCALAR);

    if (space < 0 ||
        (attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT,
                                H5P_DEFAULT)) < 0 ||
        H5Awrite(attribute, type, value) < 0)
        status =
            tsr_hdf5_fail(err, TSR_E_IO, "cannot write attribute '%s'", name);
    if (attribute >= 0)
        H5Aclose(attribute);
    if (space >= 0)
        H5Sclose(space);
    return status;
}

tsr_status tsr_hdf5_text(hid_t object, const char *name, const char *text,
                         tsr_err *err)
{
    hid_t type = tsr_hdf5_text_type();

    if (type < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot make a text type");
    tsr_status status = tsr_hdf5_attribute(object, name, type, &text, err);
    H5Tclose(type);
    return status;
}

/* Text of variable length (ours) or fixed (what others write). */
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
        if (memory >= 0)
            H5Tclose(memory);
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
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
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
    if (space >= 0)
        H5Sclose(space);
    H5Aclose(attribute);
    return value;
}

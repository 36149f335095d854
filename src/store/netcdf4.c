/* NetCDF User's Guide, appendix "File format specifications", "The NetCDF-4
 * format"; HDF5 Dimension Scale specification. */
#include "store/netcdf4.h"

#include "store/hdf5_object.h"

#include <hdf5_hl.h>

#include <math.h>

/* netCDF finds the order of dimensions and variables, hence their numbers, from
 * the order of creation; without it a file opens for reading only. */
static const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;

static int track_order(hid_t create)
{
    return H5Pset_link_creation_order(create, order) >= 0 &&
           H5Pset_attr_creation_order(create, order) >= 0;
}

/* Not the latest format: its superblock marks a file as open for writing, and
 * after a kill HDF5 1.10 refuses the file until h5clear is run. The bounds are
 * netCDF's own. */
static hid_t access_list(tsr_hdf5_store *store)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    if (access >= 0 && (H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST,
                                             H5F_LIBVER_V18) < 0 ||
                        tsr_hdf5_store_attach(store, access) < 0)) {
        H5Pclose(access);
        return H5I_INVALID_HID;
    }
    return access;
}

tsr_status tsr_nc4_create(const char *path, tsr_hdf5_store *store, hid_t *file,
                          tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = access_list(store);

    *file = H5I_INVALID_HID;
    if (create < 0 || access < 0 || !track_order(create) ||
        (*file = H5Fcreate(path, H5F_ACC_TRUNC, create, access)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot create the file");
    tsr_hdf5_close(access);
    tsr_hdf5_close(create);
    return status;
}

tsr_status tsr_nc4_open(const char *path, tsr_hdf5_store *store, hid_t *file,
                        tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t access = access_list(store);

    *file = H5I_INVALID_HID;
    if (access < 0 || (*file = H5Fopen(path, H5F_ACC_RDWR, access)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "cannot open it as HDF5");
    tsr_hdf5_close(access);
    return status;
}

tsr_status tsr_nc4_group(hid_t parent, const char *name, hid_t *group,
                         tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t create = H5Pcreate(H5P_GROUP_CREATE);

    *group = H5I_INVALID_HID;
    if (create < 0 || !track_order(create) ||
        (*group = H5Gcreate2(parent, name, H5P_DEFAULT, create, H5P_DEFAULT)) <
            0)
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot create group '%s'", name);
    tsr_hdf5_close(create);
    return status;
}

/* A data set with order-tracked attributes; chunk NULL: contiguous. */
static tsr_status make_dataset(hid_t group, const tsr_nc4_spec *spec,
                               const hsize_t *size, const hsize_t *max,
                               const double *fill, hid_t *data, tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = spec->rank > 0 ? H5Screate_simple(spec->rank, size, max)
                                 : H5Screate(H5S_SCALAR);

    *data = H5I_INVALID_HID;
    int ready = create >= 0 && space >= 0 &&
                H5Pset_attr_creation_order(create, order) >= 0 &&
                H5Pset_obj_track_times(create, 0) >= 0;
    if (ready && fill != NULL)
        ready = H5Pset_fill_value(create, H5T_NATIVE_DOUBLE, fill) >= 0;
    if (ready && spec->chunk != NULL)
        ready = H5Pset_chunk(create, spec->rank, spec->chunk) >= 0;
    if (ready && spec->chunk != NULL && spec->deflate > 0)
        ready = H5Pset_shuffle(create) >= 0 &&
                H5Pset_deflate(create, (unsigned)spec->deflate) >= 0;
    if (!ready || (*data = H5Dcreate2(group, spec->name, spec->type, space,
                                      H5P_DEFAULT, create, H5P_DEFAULT)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot create variable '%s'",
                               spec->name);
    tsr_hdf5_close(space);
    tsr_hdf5_close(create);
    return status;
}

tsr_status tsr_nc4_dimension(hid_t group, const char *name, hid_t type,
                             hsize_t n, hsize_t chunk, int id, hid_t *scale,
                             tsr_err *err)
{
    const hsize_t max = chunk > 0 ? H5S_UNLIMITED : n;
    const tsr_nc4_spec spec = {.name = name,
                               .type = type,
                               .rank = 1,
                               .chunk = chunk > 0 ? &chunk : NULL};
    TSR_TRY(make_dataset(group, &spec, &n, &max, NULL, scale, err));
    if (H5DSset_scale(*scale, name) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot make '%s' a dimension",
                             name);
    return tsr_hdf5_attribute(*scale, "_Netcdf4Dimid", H5T_NATIVE_INT, &id,
                              err);
}

tsr_status tsr_nc4_label_dimension(hid_t group, const char *name, hsize_t n,
                                   const char *const *label, int id,
                                   hid_t *scale, tsr_err *err)
{
    hid_t type = tsr_hdf5_text_type();

    *scale = H5I_INVALID_HID;
    if (type < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot make a text type");
    tsr_status status =
        tsr_nc4_dimension(group, name, type, n, 0, id, scale, err);
    if (status == TSR_OK &&
        H5Dwrite(*scale, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, label) < 0)
        status =
            tsr_hdf5_fail(err, TSR_E_IO, "cannot write dimension '%s'", name);
    H5Tclose(type);
    return status;
}

/* Present and largest length of a dimension. */
static int scale_size(hid_t scale, hsize_t *size, hsize_t *max)
{
    hid_t space = H5Dget_space(scale);
    if (space < 0)
        return 0;
    int rank = H5Sget_simple_extent_dims(space, size, max);
    H5Sclose(space);
    return rank == 1;
}

/* xarray demands the type of the variable itself. */
static tsr_status write_fill_attribute(hid_t data, hid_t type, tsr_err *err)
{
    const double missing = (double)NAN;
    const float missing_single = NAN;

    if (H5Tget_size(type) == sizeof missing_single)
        return tsr_hdf5_attribute(data, "_FillValue", H5T_NATIVE_FLOAT,
                                  &missing_single, err);
    return tsr_hdf5_attribute(data, "_FillValue", H5T_NATIVE_DOUBLE, &missing,
                              err);
}

tsr_status tsr_nc4_variable(hid_t group, const tsr_nc4_spec *spec, hid_t *data,
                            tsr_err *err)
{
    hsize_t size[TSR_NC4_MAX_RANK], max[TSR_NC4_MAX_RANK];
    const double missing = (double)NAN;

    *data = H5I_INVALID_HID;
    for (int i = 0; i < spec->rank; i++)
        if (i >= TSR_NC4_MAX_RANK ||
            !scale_size(spec->scale[i], &size[i], &max[i]))
            return tsr_fail(err, TSR_E_INTERNAL,
                            "variable '%s': axis %d has no dimension",
                            spec->name, i);
    TSR_TRY(make_dataset(group, spec, size, max, &missing, data, err));
    for (int i = 0; i < spec->rank; i++)
        if (H5DSattach_scale(*data, spec->scale[i], (unsigned)i) < 0)
            return tsr_hdf5_fail(err, TSR_E_IO, "cannot attach axis %d of '%s'",
                                 i, spec->name);
    return write_fill_attribute(*data, spec->type, err);
}

/* The netCDF-4 layout on top of HDF5: what netCDF, h5netcdf and xarray expect
 * of groups, dimension scales, variables and attributes.
 *
 * For src/store only. Messages name the object; the caller adds the file. */
#ifndef TSR_STORE_NETCDF4_H
#define TSR_STORE_NETCDF4_H

#include "core/status.h"
#include "store/hdf5_store.h"

#include <hdf5.h>

enum { TSR_NC4_MAX_RANK = 3 };

/* A new HDF5 file in an empty store. */
tsr_status tsr_nc4_create(const char *path, tsr_hdf5_store *store, hid_t *file,
                          tsr_err *err);

/* The file that tsr_nc4_create made, for reading and writing. */
tsr_status tsr_nc4_open(const char *path, tsr_hdf5_store *store, hid_t *file,
                        tsr_err *err);

tsr_status tsr_nc4_group(hid_t parent, const char *name, hid_t *group,
                         tsr_err *err);

/* A dimension with its coordinate variable. `id` is its number in the file,
 * unique; chunk 0: fixed length n, else unlimited from n on. */
tsr_status tsr_nc4_dimension(hid_t group, const char *name, hid_t type,
                             hsize_t n, hsize_t chunk, int id, hid_t *scale,
                             tsr_err *err);

/* The same of fixed length, with texts for coordinates: label [n]. */
tsr_status tsr_nc4_label_dimension(hid_t group, const char *name, hsize_t n,
                                   const char *const *label, int id,
                                   hid_t *scale, tsr_err *err);

typedef struct {
    const char *name;
    hid_t type;           /* on disk: H5T_NATIVE_DOUBLE or _FLOAT */
    int rank;             /* 0 .. TSR_NC4_MAX_RANK */
    const hid_t *scale;   /* [rank] dimensions, slowest first */
    const hsize_t *chunk; /* [rank]; NULL: contiguous */
    int deflate;          /* with chunk: 0 or the level */
} tsr_nc4_spec;

/* A variable whose every axis has its dimension attached; missing values are
 * NaN (_FillValue). */
tsr_status tsr_nc4_variable(hid_t group, const tsr_nc4_spec *spec, hid_t *data,
                            tsr_err *err);

#endif

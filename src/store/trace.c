/* Makes the file of a trace from what the owners of its columns declare, or
 * compares an existing file with it; gathers draws and writes them in blocks;
 * reads them back by group and name. */
#include "store/trace.h"

#include "core/clock.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/text.h"
#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <ctype.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the netCDF-4 layout on top of HDF5 ----
 *
 * What netCDF, h5netcdf and xarray expect of groups, dimension scales,
 * variables and attributes. NetCDF User's Guide, appendix "File format
 * specifications", "The NetCDF-4 format"; HDF5 Dimension Scale specification.
 * Messages name the object; the caller adds the file. */

enum { MAX_RANK = 3 };

typedef struct {
    const char *name;
    hid_t type;           /* on disk: H5T_NATIVE_DOUBLE or _FLOAT */
    int rank;             /* 0 .. MAX_RANK */
    const hid_t *scale;   /* [rank] dimensions, slowest first */
    const hsize_t *chunk; /* [rank]; NULL: contiguous */
    int deflate;          /* with chunk: 0 or the level */
} nc4_spec;

static tsr_status make_group(hid_t parent, const char *name, hid_t *group,
                             tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t create = H5Pcreate(H5P_GROUP_CREATE);

    *group = H5I_INVALID_HID;
    if (create < 0 || !tsr_hdf5_track_order(create) ||
        (*group = H5Gcreate2(parent, name, H5P_DEFAULT, create, H5P_DEFAULT)) <
            0)
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot create group '%s'", name);
    tsr_hdf5_close(create);
    return status;
}

/* A data set with order-tracked attributes; chunk NULL: contiguous. */
static tsr_status make_dataset(hid_t group, const nc4_spec *spec,
                               const hsize_t *size, const hsize_t *max,
                               const double *fill, hid_t *data, tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = spec->rank > 0 ? H5Screate_simple(spec->rank, size, max)
                                 : H5Screate(H5S_SCALAR);

    *data = H5I_INVALID_HID;
    int ready = create >= 0 && space >= 0 &&
                H5Pset_attr_creation_order(create, TSR_HDF5_ORDER) >= 0 &&
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

/* A dimension with its coordinate variable. `id` is its number in the file,
 * unique; chunk 0: fixed length n, else unlimited from n on. */
static tsr_status make_dimension(hid_t group, const char *name, hid_t type,
                                 hsize_t n, hsize_t chunk, int id, hid_t *scale,
                                 tsr_err *err)
{
    const hsize_t max = chunk > 0 ? H5S_UNLIMITED : n;
    const nc4_spec spec = {.name = name,
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

/* The same of fixed length, with texts for coordinates: label [n]. */
static tsr_status label_dimension(hid_t group, const char *name, hsize_t n,
                                  const char *const *label, int id,
                                  hid_t *scale, tsr_err *err)
{
    hid_t type = tsr_hdf5_text_type();

    *scale = H5I_INVALID_HID;
    if (type < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot make a text type");
    tsr_status status = make_dimension(group, name, type, n, 0, id, scale, err);
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

/* A variable whose every axis has its dimension attached; missing values are
 * NaN (_FillValue). */
static tsr_status nc4_variable(hid_t group, const nc4_spec *spec, hid_t *data,
                               tsr_err *err)
{
    hsize_t size[MAX_RANK], max[MAX_RANK];
    const double missing = (double)NAN;

    *data = H5I_INVALID_HID;
    for (int i = 0; i < spec->rank; i++)
        if (i >= MAX_RANK || !scale_size(spec->scale[i], &size[i], &max[i]))
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

/* ---- the layout of a trace ----
 *
 * Checks what the owners of the columns declare, and makes the groups,
 * dimension scales and data sets from it. */

/* Bytes of a chunk. Scalars are rewritten in place at every flush, and a small
 * chunk keeps a short run small; a curve's chunk must be large enough to be
 * worth compressing. Both fit the 1 MiB that HDF5 caches for a variable. */
static const size_t scalar_chunk = (size_t)32 << 10;
static const size_t vector_chunk = (size_t)256 << 10;
static const size_t most_chunk = (size_t)1 << 20;
static const size_t most_chunk_draws = 1024;
/* float32 curves: after the shuffle the first level does nearly all there is.
 */
static const int deflate_level = 1;

static const struct {
    const char *name;
    int has_draws;
} groups[TSR_TRACE_N_GROUP] = {
    [TSR_TRACE_POSTERIOR] = {"posterior", 1},
    [TSR_TRACE_SAMPLE_STATS] = {"sample_stats", 1},
    [TSR_TRACE_POSTERIOR_PREDICTIVE] = {"posterior_predictive", 1},
    [TSR_TRACE_LOG_LIKELIHOOD] = {"log_likelihood", 1},
    [TSR_TRACE_WARMUP_POSTERIOR] = {"warmup_posterior", 1},
    [TSR_TRACE_WARMUP_SAMPLE_STATS] = {"warmup_sample_stats", 1},
    [TSR_TRACE_OBSERVED_DATA] = {"observed_data", 0},
    [TSR_TRACE_CONSTANT_DATA] = {"constant_data", 0},
};

/* "posterior", ... as ArviZ calls it. */
static const char *group_name(tsr_trace_group group)
{
    return groups[group].name;
}

/* 1: its variables begin with the dimensions chain and draw. */
static int group_has_draws(tsr_trace_group group)
{
    return groups[group].has_draws;
}

/* ---- checks ---- */

/* The names that netCDF allows, but for a few rarely seen ones. */
static int name_is_good(const char *name)
{
    if (name == NULL || !(isalnum((unsigned char)name[0]) || name[0] == '_'))
        return 0;
    for (const char *c = name; *c != '\0'; c++)
        if (*c == '/' || *c == ' ' || iscntrl((unsigned char)*c))
            return 0;
    return 1;
}

static int same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* The first variable of v's group with v's dimension: it defines it. */
static int first_of_dim(const tsr_trace_variable *variable, int v)
{
    for (int i = 0; i < v; i++)
        if (variable[i].group == variable[v].group &&
            same(variable[i].dim, variable[v].dim))
            return i;
    return v;
}

static tsr_status check_variable(const tsr_trace_variable *variable, int v,
                                 int n_variable, tsr_err *err)
{
    const tsr_trace_variable *var = &variable[v];

    if ((unsigned)var->group >= TSR_TRACE_N_GROUP)
        return tsr_fail(err, TSR_E_INTERNAL, "variable %d: no group %d", v,
                        (int)var->group);
    const char *group = groups[var->group].name;
    if (!name_is_good(var->name))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "%s, variable %d: '%s' is no netCDF name", group, v,
                        var->name != NULL ? var->name : "(null)");
    if (var->dim != NULL && !name_is_good(var->dim))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "%s/%s: dimension '%s' is no netCDF name", group,
                        var->name, var->dim);
    if (var->n < 1 || (var->dim == NULL && var->n != 1))
        return tsr_fail(
            err, TSR_E_INTERNAL, "%s/%s: %d numbers per draw %s a dimension",
            group, var->name, var->n, var->dim == NULL ? "without" : "along");
    if (var->coord != NULL && var->coord_label != NULL)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "%s/%s: coordinates are numbers or labels, not both",
                        group, var->name);
    if (groups[var->group].has_draws &&
        (same(var->name, "chain") || same(var->name, "draw") ||
         same(var->dim, "chain") || same(var->dim, "draw")))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "%s/%s: 'chain' and 'draw' are taken", group,
                        var->name);
    int first = first_of_dim(variable, v);
    if (variable[first].n != var->n)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "%s/%s: dimension '%s' has length %d here and %d in "
                        "'%s'",
                        group, var->name, var->dim, var->n, variable[first].n,
                        variable[first].name);
    for (int i = 0; i < n_variable; i++) {
        if (variable[i].group != var->group)
            continue;
        if (i < v && same(variable[i].name, var->name))
            return tsr_fail(err, TSR_E_INTERNAL, "%s/%s: declared twice", group,
                            var->name);
        if (same(variable[i].dim, var->name))
            return tsr_fail(err, TSR_E_INTERNAL,
                            "%s/%s: has the name of a dimension, whose "
                            "coordinates are written already",
                            group, var->name);
    }
    return TSR_OK;
}

/* Whether variables can live in one file; TSR_E_INTERNAL with the reason. */
static tsr_status check_declared(int n_chain, int n_variable,
                                 const tsr_trace_variable *variable,
                                 tsr_err *err)
{
    if (n_chain < 1 || n_variable < 1)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "a trace of %d chains and %d variables", n_chain,
                        n_variable);
    for (int v = 0; v < n_variable; v++)
        TSR_TRY(check_variable(variable, v, n_variable, err));
    return TSR_OK;
}

/* ---- attributes ---- */

static tsr_status provenance(hid_t object, const char *created_at, tsr_err *err)
{
    TSR_TRY(tsr_hdf5_text(object, "created_at", created_at, err));
    TSR_TRY(tsr_hdf5_text(object, "inference_library", "tessera", err));
    return tsr_hdf5_text(object, "inference_library_version", TSR_VERSION, err);
}

static tsr_status attributes(hid_t object, int n,
                             const tsr_trace_attribute *attribute, tsr_err *err)
{
    for (int i = 0; i < n; i++)
        TSR_TRY(
            tsr_hdf5_text(object, attribute[i].name, attribute[i].text, err));
    return TSR_OK;
}

static tsr_status describe(hid_t object, const char *unit, const char *doc,
                           tsr_err *err)
{
    if (unit != NULL)
        TSR_TRY(tsr_hdf5_text(object, "units", unit, err));
    if (doc != NULL)
        TSR_TRY(tsr_hdf5_text(object, "long_name", doc, err));
    return TSR_OK;
}

/* ---- dimensions ---- */

/* A dimension of fixed length whose coordinates are 0 .. n-1. */
static tsr_status index_dimension(hid_t group, const char *name, int n, int id,
                                  hid_t *scale, tsr_err *err)
{
    tsr_status status = make_dimension(group, name, H5T_NATIVE_INT64,
                                       (hsize_t)n, 0, id, scale, err);
    if (status != TSR_OK)
        return status;
    int64_t *index = malloc((size_t)n * sizeof *index);
    if (index == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for dimension '%s'", name);
    for (int i = 0; i < n; i++)
        index[i] = i;
    if (H5Dwrite(*scale, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                 index) < 0)
        status =
            tsr_hdf5_fail(err, TSR_E_IO, "cannot write dimension '%s'", name);
    free(index);
    return status;
}

static tsr_status own_dimension(hid_t group, const tsr_trace_variable *var,
                                int id, hid_t *scale, tsr_err *err)
{
    if (var->coord_label != NULL) {
        TSR_TRY(label_dimension(group, var->dim, (hsize_t)var->n,
                                var->coord_label, id, scale, err));
    } else if (var->coord == NULL) {
        TSR_TRY(index_dimension(group, var->dim, var->n, id, scale, err));
    } else {
        TSR_TRY(make_dimension(group, var->dim, H5T_NATIVE_DOUBLE,
                               (hsize_t)var->n, 0, id, scale, err));
        if (H5Dwrite(*scale, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                     var->coord) < 0)
            return tsr_hdf5_fail(err, TSR_E_IO, "cannot write dimension '%s'",
                                 var->dim);
    }
    return describe(*scale, var->coord_unit, NULL, err);
}

/* ---- groups and variables ---- */

static size_t at_least_1(size_t x)
{
    return x > 0 ? x : 1;
}

static tsr_status make_variable(hid_t group, const tsr_trace_variable *var,
                                const hid_t *scale, int rank, int n_chain,
                                hid_t *data, tsr_err *err)
{
    const size_t width = var->single ? sizeof(float) : sizeof(double);
    const size_t row = (size_t)var->n * width;
    const size_t target = var->dim != NULL ? vector_chunk : scalar_chunk;
    hsize_t chunk[MAX_RANK];
    size_t chains = (size_t)n_chain;

    if (chains * row > most_chunk)
        chains = at_least_1(most_chunk / row);
    size_t draws = at_least_1(target / (chains * row));
    chunk[0] = chains;
    chunk[1] = draws < most_chunk_draws ? draws : most_chunk_draws;
    chunk[2] = (hsize_t)var->n;

    const nc4_spec spec = {
        .name = var->name,
        .type = var->single ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE,
        .rank = rank,
        .scale = scale,
        .chunk = groups[var->group].has_draws ? chunk : NULL,
        .deflate = var->single && var->dim != NULL ? deflate_level : 0};
    TSR_TRY(nc4_variable(group, &spec, data, err));
    return describe(*data, var->unit, var->doc, err);
}

typedef struct {
    int n_chain;
    int n_variable;
    const tsr_trace_variable *variable;
    int next_dim_id;
    hid_t *own_scale; /* [n_variable] the dimension that the variable defines */
} layout;

/* Dimensions first, as netCDF itself writes them. */
static tsr_status fill_group(layout *lay, hid_t id, tsr_trace_group g,
                             hid_t *draw, hid_t *data, tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t scale[MAX_RANK] = {-1, -1, -1};
    int rank = 0;

    if (groups[g].has_draws) {
        rank = 2;
        status = index_dimension(id, "chain", lay->n_chain, lay->next_dim_id++,
                                 &scale[0], err);
        TSR_THEN(status, make_dimension(id, "draw", H5T_NATIVE_INT64, 0,
                                        most_chunk_draws, lay->next_dim_id++,
                                        draw, err));
        scale[1] = *draw;
    }
    for (int v = 0; v < lay->n_variable && status == TSR_OK; v++)
        if (lay->variable[v].group == g && lay->variable[v].dim != NULL &&
            first_of_dim(lay->variable, v) == v)
            status = own_dimension(id, &lay->variable[v], lay->next_dim_id++,
                                   &lay->own_scale[v], err);
    for (int v = 0; v < lay->n_variable && status == TSR_OK; v++) {
        const tsr_trace_variable *var = &lay->variable[v];
        if (var->group != g)
            continue;
        if (var->dim != NULL)
            scale[rank] = lay->own_scale[first_of_dim(lay->variable, v)];
        status = make_variable(id, var, scale, rank + (var->dim != NULL),
                               lay->n_chain, &data[v], err);
    }
    if (scale[0] >= 0 && groups[g].has_draws)
        H5Dclose(scale[0]);
    return status;
}

static int group_is_used(int n_variable, const tsr_trace_variable *variable,
                         tsr_trace_group g)
{
    for (int v = 0; v < n_variable; v++)
        if (variable[v].group == g)
            return 1;
    return 0;
}

/* Writes all but the draws into an empty file.
 * draw  [TSR_TRACE_N_GROUP]  out  the draw dimension of each group
 * data  [n_variable]         out  the variables
 * Both are < 0 where there is none, also on failure; caller closes. */
static tsr_status make_layout(hid_t file, int n_chain, int n_variable,
                              const tsr_trace_variable *variable,
                              int n_attribute,
                              const tsr_trace_attribute *attribute, hid_t *draw,
                              hid_t *data, tsr_err *err)
{
    layout lay = {
        .n_chain = n_chain, .n_variable = n_variable, .variable = variable};
    char created_at[40];

    tsr_clock_utc(created_at);
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        draw[g] = -1;
    for (int v = 0; v < n_variable; v++)
        data[v] = -1;
    lay.own_scale = malloc((size_t)n_variable * sizeof *lay.own_scale);
    if (lay.own_scale == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the layout");
    for (int v = 0; v < n_variable; v++)
        lay.own_scale[v] = -1;

    tsr_status status = provenance(file, created_at, err);
    TSR_THEN(status, attributes(file, n_attribute, attribute, err));
    for (int i = 0; i < TSR_TRACE_N_GROUP && status == TSR_OK; i++) {
        tsr_trace_group g = (tsr_trace_group)i;
        hid_t id = -1;
        if (!group_is_used(n_variable, variable, g))
            continue;
        status = make_group(file, groups[g].name, &id, err);
        TSR_THEN(status, provenance(id, created_at, err));
        if (status == TSR_OK && g == TSR_TRACE_POSTERIOR)
            status = attributes(id, n_attribute, attribute, err);
        TSR_THEN(status, fill_group(&lay, id, g, &draw[g], data, err));
        if (status != TSR_OK)
            tsr_wrap(err, status, "group %s", groups[g].name);
        tsr_hdf5_close(id);
    }
    for (int v = 0; v < n_variable; v++)
        tsr_hdf5_close(lay.own_scale[v]);
    free(lay.own_scale);
    return status;
}

/* ---- comparison with the declaration ----
 *
 * An existing trace against its declaration. */

typedef struct {
    int n_chain, n_variable;
    const tsr_trace_variable *variable;
} declaration;

static hsize_t length_of(hid_t data, int axis)
{
    hsize_t size[H5S_MAX_RANK] = {0};
    tsr_hdf5_shape(data, size);
    return size[axis];
}

static int rank_of(hid_t data)
{
    hsize_t size[H5S_MAX_RANK];
    return tsr_hdf5_shape(data, size);
}

static hid_t open_dataset(hid_t group, const char *name)
{
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
        return H5I_INVALID_HID;
    return H5Dopen2(group, name, H5P_DEFAULT);
}

/* ---- one variable ---- */

/* H5DSiterate_scales calls it with the scales of an axis; keeps the last part
 * of the first one's name. */
static herr_t keep_name(hid_t data, unsigned axis, hid_t scale, void *context)
{
    char path[256] = "";

    (void)data, (void)axis;
    if (H5Iget_name(scale, path, sizeof path) < 0)
        return -1;
    snprintf(context, sizeof path, "%s", tsr_text_file_name(path));
    return 1;
}

static int axis_is(hid_t data, int axis, const char *dim)
{
    char name[256] = "";
    H5DSiterate_scales(data, (unsigned)axis, NULL, keep_name, name);
    return strcmp(name, dim) == 0;
}

static int type_is(hid_t data, hid_t wanted)
{
    hid_t type = H5Dget_type(data);
    int same = type >= 0 && H5Tequal(type, wanted) > 0;
    tsr_hdf5_close(type);
    return same;
}

static tsr_status compare_variable(const declaration *as, int v, hid_t data,
                                   tsr_err *err)
{
    const tsr_trace_variable *var = &as->variable[v];
    const int has_draws = group_has_draws(var->group);
    const int rank = (has_draws ? 2 : 0) + (var->dim != NULL);
    const char *name = var->name;

    if (!type_is(data, var->single ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE))
        return tsr_fail(err, TSR_E_DATA, "'%s' is not stored as %s", name,
                        var->single ? "float32" : "float64");
    if (rank_of(data) != rank)
        return tsr_fail(err, TSR_E_DATA, "'%s' has %d dimensions, not %d", name,
                        rank_of(data), rank);
    if (has_draws && (int)length_of(data, 0) != as->n_chain)
        return tsr_fail(err, TSR_E_DATA, "'%s' has %d chains, not %d", name,
                        (int)length_of(data, 0), as->n_chain);
    if (has_draws && (!axis_is(data, 0, "chain") || !axis_is(data, 1, "draw")))
        return tsr_fail(err, TSR_E_DATA, "'%s' is not over chain and draw",
                        name);
    if (var->dim != NULL && (int)length_of(data, rank - 1) != var->n)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has %d numbers along '%s', not "
                        "%d",
                        name, (int)length_of(data, rank - 1), var->dim, var->n);
    if (var->dim != NULL && !axis_is(data, rank - 1, var->dim))
        return tsr_fail(err, TSR_E_DATA, "'%s' does not run along '%s'", name,
                        var->dim);
    if (!tsr_hdf5_text_is(data, "units", var->unit))
        return tsr_fail(err, TSR_E_DATA, "'%s' is not in unit '%s'", name,
                        var->unit != NULL ? var->unit : "none");
    return TSR_OK;
}

/* ---- coordinates ---- */

static int same_labels(hid_t scale, int n, const char *const *label)
{
    hid_t type = H5Dget_type(scale), space = H5Dget_space(scale);
    char **text = calloc((size_t)n, sizeof *text);
    int same = 0;

    if (text != NULL && type >= 0 && space >= 0 &&
        H5Tis_variable_str(type) > 0 &&
        H5Dread(scale, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0) {
        same = 1;
        for (int i = 0; i < n && same; i++)
            same = text[i] != NULL && strcmp(text[i], label[i]) == 0;
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, text);
    }
    free(text);
    tsr_hdf5_close(space);
    tsr_hdf5_close(type);
    return same;
}

static int same_numbers(hid_t scale, int n, const double *coord)
{
    double *number = malloc((size_t)n * sizeof *number);
    int same =
        number != NULL &&
        type_is(scale, coord != NULL ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64) &&
        H5Dread(scale, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                number) >= 0;

    for (int i = 0; i < n && same; i++) {
        const double wanted = coord != NULL ? coord[i] : (double)i;
        same = number[i] == wanted || (isnan(number[i]) && isnan(wanted));
    }
    free(number);
    return same;
}

static tsr_status
compare_coordinates(hid_t group, const tsr_trace_variable *var, tsr_err *err)
{
    hid_t scale = open_dataset(group, var->dim);
    int same =
        scale >= 0 && rank_of(scale) == 1 && (int)length_of(scale, 0) == var->n;

    if (same)
        same = var->coord_label != NULL
                   ? same_labels(scale, var->n, var->coord_label)
                   : same_numbers(scale, var->n, var->coord);
    if (same)
        same = tsr_hdf5_text_is(scale, "units", var->coord_unit);
    tsr_hdf5_close(scale);
    if (!same)
        return tsr_fail(err, TSR_E_DATA,
                        "the coordinates of dimension '%s' differ", var->dim);
    return TSR_OK;
}

/* ---- a group ---- */

static int is_declared(const declaration *as, tsr_trace_group g,
                       const char *name)
{
    for (int v = 0; v < as->n_variable; v++) {
        const tsr_trace_variable *var = &as->variable[v];
        if (var->group == g &&
            (strcmp(var->name, name) == 0 ||
             (var->dim != NULL && strcmp(var->dim, name) == 0)))
            return 1;
    }
    return group_has_draws(g) &&
           (strcmp(name, "chain") == 0 || strcmp(name, "draw") == 0);
}

static tsr_status find_strangers(const declaration *as, tsr_trace_group g,
                                 hid_t group, tsr_err *err)
{
    H5G_info_t info;

    if (H5Gget_info(group, &info) < 0)
        return tsr_hdf5_fail(err, TSR_E_DATA, "cannot list the variables");
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char name[256] = "";
        if (H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                               sizeof name, H5P_DEFAULT) < 0)
            return tsr_hdf5_fail(err, TSR_E_DATA, "cannot list the variables");
        if (!is_declared(as, g, name))
            return tsr_fail(err, TSR_E_DATA,
                            "has '%s', which this run does not write", name);
    }
    return TSR_OK;
}

static tsr_status open_variables(const declaration *as, tsr_trace_group g,
                                 hid_t group, hid_t *data, tsr_err *err)
{
    for (int v = 0; v < as->n_variable; v++) {
        const tsr_trace_variable *var = &as->variable[v];
        if (var->group != g)
            continue;
        data[v] = open_dataset(group, var->name);
        if (data[v] < 0)
            return tsr_fail(err, TSR_E_DATA, "lacks '%s'", var->name);
        TSR_TRY(compare_variable(as, v, data[v], err));
        if (var->dim != NULL && first_of_dim(as->variable, v) == v)
            TSR_TRY(compare_coordinates(group, var, err));
    }
    return TSR_OK;
}

static tsr_status count_draws(const declaration *as, tsr_trace_group g,
                              hid_t draw, const hid_t *data, size_t *n_draw,
                              tsr_err *err)
{
    *n_draw = (size_t)length_of(draw, 0);
    for (int v = 0; v < as->n_variable; v++)
        if (as->variable[v].group == g && length_of(data[v], 1) != *n_draw)
            return tsr_fail(
                err, TSR_E_DATA, "'%s' has %d draws, and 'draw' counts %zu",
                as->variable[v].name, (int)length_of(data[v], 1), *n_draw);
    return TSR_OK;
}

static tsr_status open_group(const declaration *as, tsr_trace_group g,
                             hid_t file, hid_t *draw, hid_t *data,
                             size_t *n_draw, tsr_err *err)
{
    const char *name = group_name(g);
    const int used = group_is_used(as->n_variable, as->variable, g);
    int there = H5Lexists(file, name, H5P_DEFAULT) > 0;
    if (!used && !there)
        return TSR_OK;
    if (used != there)
        return tsr_fail(err, TSR_E_DATA,
                        there ? "not written by this run" : "is missing");
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    if (group < 0)
        return tsr_hdf5_fail(err, TSR_E_DATA, "cannot open it");
    tsr_status status = open_variables(as, g, group, data, err);
    TSR_THEN(status, find_strangers(as, g, group, err));
    if (status == TSR_OK && group_has_draws(g)) {
        *draw = open_dataset(group, "draw");
        status = *draw < 0 || rank_of(*draw) != 1
                     ? tsr_fail(err, TSR_E_DATA, "lacks 'draw'")
                     : count_draws(as, g, *draw, data, n_draw, err);
    }
    H5Gclose(group);
    return status;
}

/* Opens the same in a file that is there already, after comparing it with the
 * declaration: groups, variables, types, dimensions, coordinates, units.
 * n_draw  [TSR_TRACE_N_GROUP]  out  draws in the file
 * Errors: TSR_E_DATA with the first difference; draw and data as above. */
static tsr_status open_layout(hid_t file, int n_chain, int n_variable,
                              const tsr_trace_variable *variable, hid_t *draw,
                              hid_t *data, size_t *n_draw, tsr_err *err)
{
    const declaration as = {n_chain, n_variable, variable};
    tsr_status status = TSR_OK;

    for (int g = 0; g < TSR_TRACE_N_GROUP; g++) {
        draw[g] = H5I_INVALID_HID;
        n_draw[g] = 0;
    }
    for (int v = 0; v < n_variable; v++)
        data[v] = H5I_INVALID_HID;
    for (int i = 0; i < TSR_TRACE_N_GROUP && status == TSR_OK; i++) {
        const tsr_trace_group g = (tsr_trace_group)i;
        status = open_group(&as, g, file, &draw[g], data, &n_draw[g], err);
        if (status != TSR_OK)
            tsr_wrap(err, status, "group %s", group_name(g));
    }
    return status;
}

/* ---- the writer ----
 *
 * Draws are gathered in memory, variable by variable, and go to the file in
 * blocks; after a failed write the trace is broken and is not touched any more.
 */

/* Draws that a group may hold in memory before they go to the file. */
static const size_t hold_bytes = (size_t)4 << 20;

/* One variable and its draws that are not in the file yet. */
typedef struct {
    tsr_trace_group group;
    char *name;
    int rank; /* on disk */
    size_t n; /* numbers per chain and draw */
    hid_t data;
    size_t held, room; /* draws */
    double *buffer;    /* [room][n_chain][n]: draws first, so that it grows
                          at its end */
} variable;

struct tsr_trace {
    tsr_pool pool;
    tsr_hdf5_output output;
    size_t n_chain;
    int n_variable;
    variable *variable;               /* [n_variable] */
    hid_t draw[TSR_TRACE_N_GROUP];    /* its unlimited dimension, or < 0 */
    size_t n_draw[TSR_TRACE_N_GROUP]; /* in the file */
    size_t held_bytes[TSR_TRACE_N_GROUP];
    double *scratch; /* [n_scratch] draws of one variable, chains first */
    size_t n_scratch;
};

/* Closes the file and frees. */
static tsr_status end(tsr_trace *trace, tsr_status status, tsr_err *err)
{
    for (int v = 0; v < trace->n_variable; v++)
        tsr_hdf5_close(trace->variable[v].data);
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        tsr_hdf5_close(trace->draw[g]);
    status = tsr_hdf5_output_end(&trace->output, status, err);
    for (int v = 0; v < trace->n_variable; v++)
        free(trace->variable[v].buffer);
    free(trace->scratch);
    tsr_pool_clear(&trace->pool);
    free(trace);
    return status;
}

static tsr_status trace_new(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *declared, tsr_trace **out,
                            tsr_err *err)
{
    tsr_trace *trace = calloc(1, sizeof *trace);

    *out = trace;
    if (trace == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    trace->output.file = -1;
    trace->n_chain = (size_t)n_chain;
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        trace->draw[g] = -1;
    tsr_pool_array(&trace->pool, trace->variable, n_variable);
    TSR_TRY(tsr_pool_check(&trace->pool, err));
    trace->n_variable = n_variable;
    for (int v = 0; v < n_variable; v++)
        trace->variable[v] =
            (variable){.group = declared[v].group,
                       .rank = (declared[v].dim != NULL) +
                               (group_has_draws(declared[v].group) ? 2 : 0),
                       .n = (size_t)declared[v].n,
                       .data = -1,
                       .name = tsr_pool_text(&trace->pool, declared[v].name)};
    return tsr_pool_check(&trace->pool, err);
}

static tsr_status check_keep(const tsr_trace *trace, const int *n_keep,
                             tsr_err *err)
{
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        if (trace->draw[g] >= 0 &&
            (n_keep[g] < 0 || (size_t)n_keep[g] > trace->n_draw[g]))
            return tsr_fail(err, TSR_E_DATA,
                            "group %s has %zu draws, and the checkpoint counts "
                            "%d",
                            group_name((tsr_trace_group)g), trace->n_draw[g],
                            n_keep[g]);
    return TSR_OK;
}

static tsr_status cut_back(tsr_trace *trace, const int *n_keep, tsr_err *err)
{
    for (int v = 0; v < trace->n_variable; v++) {
        const variable *var = &trace->variable[v];
        if (trace->draw[var->group] < 0 ||
            (size_t)n_keep[var->group] == trace->n_draw[var->group])
            continue;
        const hsize_t size[MAX_RANK] = {trace->n_chain,
                                        (hsize_t)n_keep[var->group], var->n};
        if (H5Dset_extent(var->data, size) < 0)
            return tsr_hdf5_fail(err, TSR_E_IO, "cannot cut '%s'", var->name);
    }
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++) {
        if (trace->draw[g] < 0 || (size_t)n_keep[g] == trace->n_draw[g])
            continue;
        const hsize_t size = (hsize_t)n_keep[g];
        if (H5Dset_extent(trace->draw[g], &size) < 0)
            return tsr_hdf5_fail(err, TSR_E_IO, "cannot cut 'draw'");
        trace->n_draw[g] = (size_t)n_keep[g];
    }
    return TSR_OK;
}

/* The layout of a new file, or that of an old one, cut back to n_keep. */
static tsr_status lay_out(tsr_trace *trace, const tsr_trace_variable *declared,
                          int n_attribute, const tsr_trace_attribute *attribute,
                          const int *n_keep, tsr_err *err)
{
    const int n_chain = (int)trace->n_chain, n_variable = trace->n_variable;
    const hid_t file = trace->output.file;
    hid_t *data;

    tsr_pool_array(&trace->pool, data, n_variable);
    TSR_TRY(tsr_pool_check(&trace->pool, err));
    tsr_status status =
        n_keep == NULL
            ? make_layout(file, n_chain, n_variable, declared, n_attribute,
                          attribute, trace->draw, data, err)
            : open_layout(file, n_chain, n_variable, declared, trace->draw,
                          data, trace->n_draw, err);
    for (int v = 0; v < n_variable; v++)
        trace->variable[v].data = data[v];
    if (n_keep != NULL) {
        TSR_THEN(status, check_keep(trace, n_keep, err));
        TSR_THEN(status, cut_back(trace, n_keep, err));
    }
    return status;
}

/* n_keep NULL: a new file. */
static tsr_status start(const char *path, int n_chain, int n_variable,
                        const tsr_trace_variable *declared, int n_attribute,
                        const tsr_trace_attribute *attribute, const int *n_keep,
                        tsr_trace **out, tsr_err *err)
{
    tsr_trace *trace;
    tsr_status status = check_declared(n_chain, n_variable, declared, err);

    *out = NULL;
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", path);
    status = trace_new(path, n_chain, n_variable, declared, &trace, err);
    if (trace == NULL)
        return status;
    TSR_THEN(status,
             tsr_hdf5_output_start(path, n_keep == NULL, &trace->output, err));
    if (status == TSR_OK) {
        status = lay_out(trace, declared, n_attribute, attribute, n_keep, err);
        if (status != TSR_OK)
            tsr_hdf5_output_wrap(&trace->output, status, err);
    }
    TSR_THEN(status, tsr_hdf5_output_commit(&trace->output, err));
    if (status != TSR_OK)
        return end(trace, status, err);
    tsr_hdf5_output_keep(&trace->output);
    *out = trace;
    return TSR_OK;
}

tsr_status tsr_trace_create(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *declared, int n_attribute,
                            const tsr_trace_attribute *attribute,
                            tsr_trace **out, tsr_err *err)
{
    return start(path, n_chain, n_variable, declared, n_attribute, attribute,
                 NULL, out, err);
}

tsr_status tsr_trace_reopen(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *declared,
                            const int n_keep[TSR_TRACE_N_GROUP],
                            tsr_trace **out, tsr_err *err)
{
    return start(path, n_chain, n_variable, declared, 0, NULL, n_keep, out,
                 err);
}

/* ---- writing ---- */

/* A block of `size` behind the first `start` draws of a variable or of the draw
 * dimension itself, whose draw axis is `axis`. */
static tsr_status write_block(hid_t data, hid_t type, int rank, int axis,
                              const hsize_t *size, hsize_t start,
                              const void *value, const char *name, tsr_err *err)
{
    hsize_t offset[MAX_RANK] = {0};
    hsize_t whole[MAX_RANK] = {0};

    memcpy(whole, size, (size_t)rank * sizeof *whole);
    whole[axis] += start;
    offset[axis] = start;
    if (H5Dset_extent(data, whole) < 0 ||
        !tsr_hdf5_block(data, type, rank, offset, size, NULL, value))
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", name);
    return TSR_OK;
}

static tsr_status want_scratch(tsr_trace *trace, size_t n, tsr_err *err)
{
    if (n <= trace->n_scratch)
        return TSR_OK;
    double *larger = realloc(trace->scratch, n * sizeof *larger);
    if (larger == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to write '%s'",
                        trace->output.path);
    trace->scratch = larger;
    trace->n_scratch = n;
    return TSR_OK;
}

/* The first n_draw held draws of a variable; the buffer has draws first, the
 * file chains. */
static tsr_status write_variable(tsr_trace *trace, variable *var, size_t n_draw,
                                 tsr_err *err)
{
    const size_t n_chain = trace->n_chain, n = var->n;
    const hsize_t size[MAX_RANK] = {n_chain, n_draw, n};
    TSR_TRY(want_scratch(trace, n_chain * n_draw * n, err));
    for (size_t c = 0; c < n_chain; c++)
        for (size_t d = 0; d < n_draw; d++)
            memcpy(trace->scratch + (c * n_draw + d) * n,
                   var->buffer + (d * n_chain + c) * n, n * sizeof(double));
    return write_block(var->data, H5T_NATIVE_DOUBLE, var->rank, 1, size,
                       trace->n_draw[var->group], trace->scratch, var->name,
                       err);
}

static tsr_status write_draw_numbers(tsr_trace *trace, tsr_trace_group g,
                                     size_t n_draw, tsr_err *err)
{
    const hsize_t size = n_draw;
    int64_t *number = malloc(n_draw * sizeof *number);

    if (number == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to write '%s'",
                        trace->output.path);
    for (size_t d = 0; d < n_draw; d++)
        number[d] = (int64_t)(trace->n_draw[g] + d);
    tsr_status status =
        write_block(trace->draw[g], H5T_NATIVE_INT64, 1, 0, &size,
                    trace->n_draw[g], number, "draw", err);
    free(number);
    return status;
}

/* The fewest draws that any variable of the group holds. */
static size_t complete_draws(const tsr_trace *trace, tsr_trace_group g)
{
    size_t least = SIZE_MAX;

    for (int v = 0; v < trace->n_variable; v++)
        if (trace->variable[v].group == g && trace->variable[v].held < least)
            least = trace->variable[v].held;
    return least == SIZE_MAX ? 0 : least;
}

/* Moves the draws that the whole group has from memory to the file. */
static tsr_status write_group(tsr_trace *trace, tsr_trace_group g, tsr_err *err)
{
    const size_t n_draw = complete_draws(trace, g);
    tsr_status status = TSR_OK;

    if (n_draw == 0)
        return TSR_OK;
    for (int v = 0; v < trace->n_variable && status == TSR_OK; v++)
        if (trace->variable[v].group == g)
            status = write_variable(trace, &trace->variable[v], n_draw, err);
    TSR_THEN(status, write_draw_numbers(trace, g, n_draw, err));
    if (status != TSR_OK) {
        trace->output.is_broken = 1;
        return tsr_wrap(err, status, "'%s', group %s", trace->output.path,
                        group_name(g));
    }
    for (int v = 0; v < trace->n_variable; v++) {
        variable *var = &trace->variable[v];
        const size_t draw = trace->n_chain * var->n;
        if (var->group != g)
            continue;
        var->held -= n_draw;
        if (var->held > 0)
            memmove(var->buffer, var->buffer + n_draw * draw,
                    var->held * draw * sizeof *var->buffer);
        trace->held_bytes[g] -= n_draw * draw * sizeof *var->buffer;
    }
    trace->n_draw[g] += n_draw;
    return TSR_OK;
}

static tsr_status want_room(tsr_trace *trace, variable *var, size_t n_draw,
                            tsr_err *err)
{
    if (var->held + n_draw <= var->room)
        return TSR_OK;
    size_t room = 2 * var->room > 64 ? 2 * var->room : 64;
    if (room < var->held + n_draw)
        room = var->held + n_draw;
    double *larger =
        realloc(var->buffer, room * trace->n_chain * var->n * sizeof *larger);
    if (larger == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for draws of '%s'",
                        var->name);
    var->buffer = larger;
    var->room = room;
    return TSR_OK;
}

static tsr_status check_use(const tsr_trace *trace, int v, int draws,
                            tsr_err *err)
{
    if (v < 0 || v >= trace->n_variable)
        return tsr_fail(err, TSR_E_INTERNAL, "'%s' has no variable %d",
                        trace->output.path, v);
    const variable *var = &trace->variable[v];
    if (group_has_draws(var->group) != draws)
        return tsr_fail(err, TSR_E_INTERNAL, "'%s': %s/%s has %s",
                        trace->output.path, group_name(var->group), var->name,
                        draws ? "no draws" : "draws");
    return tsr_hdf5_output_check(&trace->output, err);
}

tsr_status tsr_trace_append(tsr_trace *trace, int v, int n_draw,
                            const double *value, tsr_err *err)
{
    TSR_TRY(check_use(trace, v, 1, err));

    if (n_draw <= 0)
        return TSR_OK;
    variable *var = &trace->variable[v];
    const size_t count = (size_t)n_draw, n = var->n;
    TSR_TRY(want_room(trace, var, count, err));
    double *to = var->buffer + var->held * trace->n_chain * n;
    for (size_t d = 0; d < count; d++)
        for (size_t c = 0; c < trace->n_chain; c++, to += n)
            memcpy(to, value + (c * count + d) * n, n * sizeof *to);
    var->held += count;
    trace->held_bytes[var->group] += count * trace->n_chain * n * sizeof *to;
    if (trace->held_bytes[var->group] <= hold_bytes ||
        complete_draws(trace, var->group) == 0)
        return TSR_OK;
    tsr_hdf5_quiet();
    TSR_TRY(write_group(trace, var->group, err));
    return tsr_hdf5_output_commit(&trace->output, err);
}

tsr_status tsr_trace_put(tsr_trace *trace, int v, const double *value,
                         tsr_err *err)
{
    TSR_TRY(check_use(trace, v, 0, err));
    tsr_hdf5_quiet();
    if (H5Dwrite(trace->variable[v].data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                 H5P_DEFAULT, value) < 0) {
        trace->output.is_broken = 1;
        return tsr_hdf5_fail(err, TSR_E_IO, "'%s': cannot write '%s'",
                             trace->output.path, trace->variable[v].name);
    }
    return TSR_OK;
}

/* TSR_E_INTERNAL where the variables of a group differ in draws. */
static tsr_status check_even(const tsr_trace *trace, tsr_err *err)
{
    for (int v = 0; v < trace->n_variable; v++) {
        const variable *var = &trace->variable[v];
        const size_t least = complete_draws(trace, var->group);
        if (var->held != least)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "'%s', group %s: '%s' has %zu draws, another "
                            "variable %zu",
                            trace->output.path, group_name(var->group),
                            var->name, trace->n_draw[var->group] + var->held,
                            trace->n_draw[var->group] + least);
    }
    return TSR_OK;
}

tsr_status tsr_trace_flush(tsr_trace *trace, tsr_err *err)
{
    TSR_TRY(tsr_hdf5_output_check(&trace->output, err));
    TSR_TRY(check_even(trace, err));
    tsr_hdf5_quiet();
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        TSR_TRY(write_group(trace, (tsr_trace_group)g, err));
    return tsr_hdf5_output_commit(&trace->output, err);
}

tsr_status tsr_trace_close(tsr_trace *trace, tsr_err *err)
{
    if (trace == NULL)
        return TSR_OK;
    return end(trace, tsr_trace_flush(trace, err), err);
}

/* ---- the reader ----
 *
 * Reads variables by group and name, whole or in part, and their
 * coordinates. A part is selected in the file, so that large variables need not
 * fit into memory. */

typedef struct {
    int n;
    char **name; /* [n] */
} name_list;

struct tsr_trace_reader {
    tsr_hdf5_input input;
    name_list group[TSR_TRACE_N_GROUP];
};

static int exists(hid_t parent, const char *name)
{
    return H5Lexists(parent, name, H5P_DEFAULT) > 0;
}

/* ---- opening: the names of the variables ---- */

/* Whether a link leads to a variable; not to a group, nor to a dimension. */
static int is_variable(hid_t group, const char *name)
{
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object < 0)
        return 0;
    int is_data =
        H5Iget_type(object) == H5I_DATASET && H5DSis_scale(object) == 0;
    H5Oclose(object);
    return is_data;
}

/* The name of link i as a new string, in the order of creation where the file
 * tracks it; else NULL. */
static char *link_name(hid_t group, H5_index_t by, hsize_t i)
{
    ssize_t n = H5Lget_name_by_idx(group, ".", by, H5_ITER_INC, i, NULL, 0,
                                   H5P_DEFAULT);
    char *name = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (name != NULL && H5Lget_name_by_idx(group, ".", by, H5_ITER_INC, i, name,
                                           (size_t)n + 1, H5P_DEFAULT) < 0) {
        free(name);
        name = NULL;
    }
    return name;
}

static tsr_status list_names(hid_t group, name_list *list, tsr_err *err)
{
    H5G_info_t info;

    if (H5Gget_info(group, &info) < 0)
        return tsr_hdf5_fail(err, TSR_E_DATA, "cannot list the variables");
    list->name = calloc(info.nlinks + 1, sizeof *list->name);
    if (list->name == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the variables");
    H5_index_t by = H5_INDEX_CRT_ORDER;
    if (info.nlinks > 0) {
        char *first = link_name(group, by, 0);
        if (first == NULL)
            by = H5_INDEX_NAME;
        free(first);
    }
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char *name = link_name(group, by, i);
        if (name == NULL)
            return tsr_hdf5_fail(err, TSR_E_DATA, "cannot list the variables");
        if (is_variable(group, name))
            list->name[list->n++] = name;
        else
            free(name);
    }
    return TSR_OK;
}

static void forget_names(tsr_trace_reader *reader)
{
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++) {
        for (int i = 0; i < reader->group[g].n; i++)
            free(reader->group[g].name[i]);
        free(reader->group[g].name);
        reader->group[g] = (name_list){0, NULL};
    }
}

static tsr_status list_groups(hid_t file, void *context, tsr_err *err)
{
    tsr_trace_reader *reader = context;
    tsr_status status = TSR_OK;

    forget_names(reader);
    for (int i = 0; i < TSR_TRACE_N_GROUP && status == TSR_OK; i++) {
        const char *name = group_name((tsr_trace_group)i);
        if (!exists(file, name))
            continue;
        hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
        if (group < 0) {
            status =
                tsr_hdf5_fail(err, TSR_E_DATA, "cannot open group '%s'", name);
        } else {
            status = list_names(group, &reader->group[i], err);
            H5Gclose(group);
        }
    }
    return status;
}

tsr_status tsr_trace_open(const char *path, tsr_trace_reader **out,
                          tsr_err *err)
{
    *out = NULL;
    if (access(path, R_OK) != 0)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "'%s' is missing or unreadable; is this the directory "
                        "of a run?",
                        path);
    tsr_trace_reader *reader = calloc(1, sizeof *reader);
    TSR_TRY(tsr_allocated(reader, err));
    reader->input.file = -1;
    tsr_status status =
        tsr_hdf5_input_open(path, list_groups, reader, &reader->input, err);
    if (status != TSR_OK) {
        tsr_trace_reader_free(reader);
        reader = NULL;
    }
    *out = reader;
    return status;
}

void tsr_trace_reader_free(tsr_trace_reader *reader)
{
    if (reader == NULL)
        return;
    tsr_hdf5_quiet();
    tsr_hdf5_input_close(&reader->input);
    forget_names(reader);
    free(reader);
}

int tsr_trace_variables(tsr_trace_reader *reader, tsr_trace_group group,
                        const char *const **name)
{
    *name = (const char *const *)reader->group[group].name;
    return reader->group[group].n;
}

int tsr_trace_has(tsr_trace_reader *reader, tsr_trace_group group,
                  const char *name)
{
    const name_list *list = &reader->group[group];
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0)
            return 1;
    return 0;
}

/* ---- values ---- */

/* The variable, or < 0 where there is none of that name. */
static hid_t open_variable(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name)
{
    if (!tsr_trace_has(reader, group, name))
        return -1;
    hid_t parent = H5Gopen2(reader->input.file, group_name(group), H5P_DEFAULT);
    hid_t data = parent >= 0 ? H5Dopen2(parent, name, H5P_DEFAULT) : -1;
    tsr_hdf5_close(parent);
    return data;
}

/* Sizes of the variable as (chain, draw, rest); 0 where it has no such shape.
 */
static int get_shape(hid_t data, int has_draws, int *n_chain, int *n_draw,
                     int *n)
{
    hsize_t size[H5S_MAX_RANK];
    const int rank = tsr_hdf5_shape(data, size);
    if (rank < 0 || (has_draws && rank < 2))
        return 0;
    hsize_t rest = 1;
    for (int i = has_draws ? 2 : 0; i < rank; i++) {
        if (size[i] > INT_MAX || rest * size[i] > INT_MAX)
            return 0;
        rest *= size[i];
    }
    if (has_draws && (size[0] > INT_MAX || size[1] > INT_MAX))
        return 0;
    *n_chain = has_draws ? (int)size[0] : 1;
    *n_draw = has_draws ? (int)size[1] : 1;
    *n = (int)rest;
    return 1;
}

/* The variable and its sizes; on failure *data is < 0. */
static tsr_status open_shaped(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *name, hid_t *data, int *n_chain,
                              int *n_draw, int *n, tsr_err *err)
{
    tsr_hdf5_quiet();
    *data = open_variable(reader, group, name);
    if (*data < 0)
        return tsr_fail(err, TSR_E_DATA, "'%s' has no variable %s/%s",
                        reader->input.path, group_name(group), name);
    if (get_shape(*data, group_has_draws(group), n_chain, n_draw, n))
        return TSR_OK;
    H5Dclose(*data);
    *data = -1;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %s/%s is not an array over chain and draw",
                    reader->input.path, group_name(group), name);
}

static tsr_status unreadable(const tsr_trace_reader *reader,
                             tsr_trace_group group, const char *name,
                             tsr_err *err)
{
    return tsr_hdf5_fail(err, TSR_E_IO, "cannot read %s/%s from '%s'",
                         group_name(group), name, reader->input.path);
}

int tsr_trace_n_draw(tsr_trace_reader *reader, tsr_trace_group group)
{
    int n_chain = 0, n_draw = 0, n = 0;

    if (reader->group[group].n == 0 || !group_has_draws(group))
        return 0;
    tsr_hdf5_quiet();
    hid_t data = open_variable(reader, group, reader->group[group].name[0]);
    if (data < 0 || !get_shape(data, 1, &n_chain, &n_draw, &n))
        n_draw = 0;
    tsr_hdf5_close(data);
    return n_draw;
}

tsr_status tsr_trace_get(tsr_trace_reader *reader, tsr_trace_group group,
                         const char *name, int *n_chain, int *n_draw, int *n,
                         double **value, tsr_err *err)
{
    hid_t data;

    *value = NULL;
    tsr_status status =
        open_shaped(reader, group, name, &data, n_chain, n_draw, n, err);
    if (status != TSR_OK)
        return status;
    const size_t count = (size_t)*n_chain * (size_t)*n_draw * (size_t)*n;
    *value = malloc((count > 0 ? count : 1) * sizeof **value);
    if (*value == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory to read %s/%s from '%s'",
                          group_name(group), name, reader->input.path);
    else if (count > 0 && H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                                  H5P_DEFAULT, *value) < 0)
        status = unreadable(reader, group, name, err);
    if (status != TSR_OK) {
        free(*value);
        *value = NULL;
    }
    H5Dclose(data);
    return status;
}

tsr_status tsr_trace_shape(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, int *n_chain, int *n_draw, int *n,
                           tsr_err *err)
{
    hid_t data;
    TSR_TRY(open_shaped(reader, group, name, &data, n_chain, n_draw, n, err));
    H5Dclose(data);
    return TSR_OK;
}

/* Selects in `file` what `part` says of an array of this shape; the axes after
 * draw count as one, entry by entry where there are several. */
static int select_part(hid_t file, int n_chain, const tsr_trace_part *part)
{
    hsize_t size[H5S_MAX_RANK], from[H5S_MAX_RANK] = {0};
    hsize_t count[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(file, size, NULL);
    if (rank < 2)
        return 0;
    for (int i = 0; i < rank; i++)
        count[i] = 1;
    count[0] = (hsize_t)n_chain;
    from[1] = (hsize_t)part->draw_from;
    count[1] = (hsize_t)part->n_draw;
    if (rank <= 3) {
        from[2] = (hsize_t)part->entry_from;
        count[2] = (hsize_t)part->n;
        return H5Sselect_hyperslab(file, H5S_SELECT_SET, from, NULL, count,
                                   NULL) >= 0;
    }
    for (int k = 0; k < part->n; k++) {
        hsize_t left = (hsize_t)(part->entry_from + k);
        for (int i = rank - 1; i >= 2; i--) {
            from[i] = left % size[i];
            left /= size[i];
        }
        if (H5Sselect_hyperslab(file, k == 0 ? H5S_SELECT_SET : H5S_SELECT_OR,
                                from, NULL, count, NULL) < 0)
            return 0;
    }
    return 1;
}

static tsr_status read_part(hid_t data, int n_chain, const tsr_trace_part *part,
                            double *value)
{
    /* HDF5 copies number by number where the two differ in shape. */
    const hsize_t shape[3] = {(hsize_t)n_chain, (hsize_t)part->n_draw,
                              (hsize_t)part->n};
    const hsize_t count = shape[0] * shape[1] * shape[2];
    hid_t file = H5Dget_space(data);
    const int rank = file >= 0 ? H5Sget_simple_extent_ndims(file) : -1;
    hid_t memory = rank == 2 || rank == 3 ? H5Screate_simple(rank, shape, NULL)
                                          : H5Screate_simple(1, &count, NULL);
    int is_read =
        file >= 0 && memory >= 0 && select_part(file, n_chain, part) &&
        H5Dread(data, H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, value) >= 0;
    tsr_hdf5_close(memory);
    tsr_hdf5_close(file);
    return is_read ? TSR_OK : TSR_E_IO;
}

tsr_status tsr_trace_get_part(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *name, const tsr_trace_part *part,
                              double *value, tsr_err *err)
{
    hid_t data;
    int n_chain, n_draw, n;
    tsr_status status =
        open_shaped(reader, group, name, &data, &n_chain, &n_draw, &n, err);
    if (status != TSR_OK)
        return status;
    if (!group_has_draws(group) || part->draw_from < 0 || part->n_draw < 0 ||
        part->n_draw > n_draw - part->draw_from || part->entry_from < 0 ||
        part->n < 0 || part->n > n - part->entry_from)
        status =
            tsr_fail(err, TSR_E_DATA,
                     "'%s': %s/%s has %d draws of %d numbers, and more "
                     "are asked for",
                     reader->input.path, group_name(group), name, n_draw, n);
    else if (n_chain > 0 && part->n_draw > 0 && part->n > 0 &&
             read_part(data, n_chain, part, value) != TSR_OK)
        status = unreadable(reader, group, name, err);
    H5Dclose(data);
    return status;
}

/* ---- coordinates ---- */

typedef struct {
    int n;
    double *value; /* [n] */
} coordinates;

static H5T_class_t class_of(hid_t data)
{
    hid_t type = H5Dget_type(data);
    H5T_class_t kind = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    tsr_hdf5_close(type);
    return kind == H5T_INTEGER ? H5T_FLOAT : kind;
}

/* Of H5DSiterate_scales: takes the first scale of an axis that is numbers. */
static herr_t take_scale(hid_t data, unsigned axis, hid_t scale, void *context)
{
    coordinates *c = context;
    (void)data;
    (void)axis;
    if (class_of(scale) != H5T_FLOAT)
        return 0;
    hid_t space = H5Dget_space(scale);
    hssize_t n = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    tsr_hdf5_close(space);
    if (n < 0 || n > INT_MAX)
        return -1;
    c->n = (int)n;
    c->value = malloc(((size_t)n + 1) * sizeof *c->value);
    if (c->value == NULL || H5Dread(scale, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                                    H5P_DEFAULT, c->value) < 0)
        return -1;
    return 1; /* no more of them */
}

tsr_status tsr_trace_coordinates(tsr_trace_reader *reader,
                                 tsr_trace_group group, const char *name,
                                 int *n, double **coord, tsr_err *err)
{
    coordinates c = {.n = 0};
    hid_t data;
    int n_chain, n_draw;
    tsr_status status =
        open_shaped(reader, group, name, &data, &n_chain, &n_draw, &c.n, err);
    if (status == TSR_OK) {
        hsize_t size[H5S_MAX_RANK];
        const int rank = tsr_hdf5_shape(data, size);
        if (rank > 0 && H5DSiterate_scales(data, (unsigned)(rank - 1), NULL,
                                           take_scale, &c) < 0) {
            status = unreadable(reader, group, name, err);
            free(c.value);
            c.value = NULL;
        }
        H5Dclose(data);
    }
    *n = c.n;
    *coord = c.value;
    return status;
}

/* ---- attributes ---- */

char *tsr_trace_attribute_text(tsr_trace_reader *reader, const char *name)
{
    tsr_hdf5_quiet();
    return tsr_hdf5_attribute_text(reader->input.file, name);
}

char *tsr_trace_variable_text(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *column, const char *name)
{
    tsr_hdf5_quiet();
    hid_t data = open_variable(reader, group, column);
    char *text = data >= 0 ? tsr_hdf5_attribute_text(data, name) : NULL;
    tsr_hdf5_close(data);
    return text;
}

int tsr_trace_n_group(tsr_trace_reader *reader)
{
    char *text = tsr_trace_attribute_text(reader, "chain_groups");
    const long n = text != NULL ? strtol(text, NULL, 10) : 0;
    free(text);
    return n > 0 && n < INT_MAX ? (int)n : 0;
}

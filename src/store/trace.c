/* Writes a trace from the declarations of its columns, adds draws from
 * draws.log, and reads variables by group and name. */
#include "store/trace.h"

#include "core/clock.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/text.h"
#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <ctype.h>
#include <errno.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the netCDF-4 layout in HDF5 ----
 *
 * Groups, dimension scales, variables and attributes as netCDF, h5netcdf and
 * xarray expect them. Sources: NetCDF User's Guide, appendix "File format
 * specifications", "The NetCDF-4 format"; HDF5 Dimension Scale specification.
 * Messages name the object, and the caller adds the file. */

enum { MAX_RANK = 3 };

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

/* Creates a data set that records the order of its attributes.
 * size, max  [rank]  in  current and largest sizes
 * chunk      [rank]  in  NULL: contiguous
 * fill               in  NULL: no fill value
 */
static tsr_status make_dataset(hid_t group, const char *name, hid_t type,
                               int rank, const hsize_t *size,
                               const hsize_t *max, const hsize_t *chunk,
                               int deflate, const double *fill, hid_t *data,
                               tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space =
        rank > 0 ? H5Screate_simple(rank, size, max) : H5Screate(H5S_SCALAR);

    *data = H5I_INVALID_HID;
    int ready = create >= 0 && space >= 0 &&
                H5Pset_attr_creation_order(create, TSR_HDF5_ORDER) >= 0 &&
                H5Pset_obj_track_times(create, 0) >= 0;
    if (ready && fill != NULL)
        ready = H5Pset_fill_value(create, H5T_NATIVE_DOUBLE, fill) >= 0;
    if (ready && chunk != NULL)
        ready = H5Pset_chunk(create, rank, chunk) >= 0;
    if (ready && chunk != NULL && deflate > 0)
        ready = H5Pset_shuffle(create) >= 0 &&
                H5Pset_deflate(create, (unsigned)deflate) >= 0;
    if (!ready || (*data = H5Dcreate2(group, name, type, space, H5P_DEFAULT,
                                      create, H5P_DEFAULT)) < 0)
        status =
            tsr_hdf5_fail(err, TSR_E_IO, "cannot create variable '%s'", name);
    tsr_hdf5_close(space);
    tsr_hdf5_close(create);
    return status;
}

/* Creates the dimension of a variable with its coordinates. id: number of the
 * dimension, unique in the file. chunk: 0 for the fixed length n; else the
 * dimension is unlimited and empty, in chunks of this length. */
static tsr_status make_dimension(hid_t group, const tsr_trace_variable *var,
                                 hsize_t chunk, int id, hid_t *scale,
                                 tsr_err *err)
{
    const hsize_t n = chunk > 0 ? 0 : (hsize_t)var->n;
    const hsize_t max = chunk > 0 ? H5S_UNLIMITED : n;
    hid_t text = tsr_hdf5_text_type();
    const hid_t type = var->coord_label != NULL ? text
                       : var->coord != NULL     ? H5T_NATIVE_DOUBLE
                                                : H5T_NATIVE_INT64;
    int64_t *index = malloc((n + 1) * sizeof *index);
    tsr_status status = tsr_allocated(index, err);

    for (hsize_t i = 0; i < n && index != NULL; i++)
        index[i] = (int64_t)i;
    const void *value = var->coord_label != NULL
                            ? (const void *)var->coord_label
                        : var->coord != NULL ? (const void *)var->coord
                                             : index;
    TSR_THEN(status,
             make_dataset(group, var->dim, type, 1, &n, &max,
                          chunk > 0 ? &chunk : NULL, 0, NULL, scale, err));
    if (status == TSR_OK && (H5DSset_scale(*scale, var->dim) < 0 ||
                             (n > 0 && H5Dwrite(*scale, type, H5S_ALL, H5S_ALL,
                                                H5P_DEFAULT, value) < 0)))
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot write dimension '%s'",
                               var->dim);
    free(index);
    tsr_hdf5_close(text);
    TSR_THEN(status, tsr_hdf5_attribute(*scale, "_Netcdf4Dimid", H5T_NATIVE_INT,
                                        0, &id, err));
    TSR_THEN(status,
             tsr_hdf5_texts(*scale, err, "units", var->coord_unit, NULL));
    return status;
}

/* ---- the layout of a trace ----
 *
 * Checks the declared variables, and creates groups, dimension scales and data
 * sets. */

/* Sizes of chunks, bytes; most_chunk_draws: draws. Chunks of scalars are small,
 * so that short runs have small files. Chunks of curves must be large enough
 * for compression. Both fit into HDF5's cache of 1 MiB per variable. */
static const size_t scalar_chunk = (size_t)32 << 10;
static const size_t vector_chunk = (size_t)256 << 10;
static const size_t most_chunk = (size_t)1 << 20;
static const size_t most_chunk_draws = 1024;
/* For float32 curves after shuffling, higher levels gain almost nothing. */
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

/* ---- checks ---- */

/* Is the name allowed by netCDF? A few unusual allowed names are refused. */
static int is_netcdf_name(const char *name)
{
    if (name == NULL || !(isalnum((unsigned char)name[0]) || name[0] == '_'))
        return 0;
    for (const char *c = name; *c != '\0'; c++)
        if (*c == '/' || *c == ' ' || iscntrl((unsigned char)*c))
            return 0;
    return 1;
}

static int is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* The first variable of v's group with v's dimension, which defines the
 * dimension. */
static int first_with_dim(const tsr_trace_variable *variable, int v)
{
    for (int i = 0; i < v; i++)
        if (variable[i].group == variable[v].group &&
            is_same(variable[i].dim, variable[v].dim))
            return i;
    return v;
}

/* Checks the declarations. Errors: TSR_E_INTERNAL, with the reason. */
static tsr_status
check_declared(int n_variable, const tsr_trace_variable *variable, tsr_err *err)
{
    for (int v = 0; v < n_variable; v++) {
        const tsr_trace_variable *var = &variable[v];
        const char *why = NULL;
        if (!is_netcdf_name(var->name) ||
            (var->dim != NULL && !is_netcdf_name(var->dim)))
            why = "it or its dimension has no netCDF name";
        else if (var->n < 1 || (var->dim == NULL && var->n != 1))
            why = "the variable has no dimension";
        else if (variable[first_with_dim(variable, v)].n != var->n)
            why = "its dimension has another length before";
        for (int i = 0; i < n_variable; i++)
            if (variable[i].group == var->group &&
                ((i < v && is_same(variable[i].name, var->name)) ||
                 is_same(variable[i].dim, var->name)))
                why = "its name is taken";
        if (why != NULL)
            return tsr_fail(err, TSR_E_INTERNAL, "%s/%s: %s",
                            groups[var->group].name, var->name, why);
    }
    return TSR_OK;
}

/* ---- attributes ---- */

static tsr_status write_provenance(hid_t object, const char *created_at,
                                   tsr_err *err)
{
    return tsr_hdf5_texts(object, err, "created_at", created_at,
                          "inference_library", "tessera",
                          "inference_library_version", TSR_VERSION, NULL);
}

static tsr_status write_attributes(hid_t object, int n,
                                   const tsr_trace_attribute *attribute,
                                   tsr_err *err)
{
    for (int i = 0; i < n; i++)
        TSR_TRY(tsr_hdf5_texts(object, err, attribute[i].name,
                               attribute[i].text, NULL));
    return TSR_OK;
}

/* ---- groups and variables ---- */

static size_t at_least_1(size_t x)
{
    return x > 0 ? x : 1;
}

/* Creates a variable and attaches a dimension scale to each axis. scale [rank]
 * in, in the order of the axes (chain, draw, the variable's own). Missing
 * values are NaN (_FillValue). */
static tsr_status make_variable(hid_t group, const tsr_trace_variable *var,
                                const hid_t *scale, int n_chain, hid_t *data,
                                tsr_err *err)
{
    const int has_draws = groups[var->group].has_draws;
    const int rank = (has_draws ? 2 : 0) + (var->dim != NULL);
    const hid_t type = var->single ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    const size_t width = var->single ? sizeof(float) : sizeof(double);
    const size_t row = (size_t)var->n * width;
    const size_t target = var->dim != NULL ? vector_chunk : scalar_chunk;
    const double missing = (double)NAN;
    const float missing_single = NAN;
    const hsize_t n = (hsize_t)var->n;
    size_t chains = (size_t)n_chain;

    if (chains * row > most_chunk)
        chains = at_least_1(most_chunk / row);
    const size_t draws = at_least_1(target / (chains * row));
    const hsize_t chunk[MAX_RANK] = {
        chains, draws < most_chunk_draws ? draws : most_chunk_draws, n};
    const hsize_t size[MAX_RANK] = {has_draws ? (hsize_t)n_chain : n, 0, n};
    const hsize_t max[MAX_RANK] = {size[0], H5S_UNLIMITED, n};
    TSR_TRY(make_dataset(group, var->name, type, rank, size, max,
                         has_draws ? chunk : NULL,
                         var->single && var->dim != NULL ? deflate_level : 0,
                         &missing, data, err));
    for (int i = 0; i < rank; i++)
        if (H5DSattach_scale(*data, scale[i], (unsigned)i) < 0)
            return tsr_hdf5_fail(err, TSR_E_IO, "cannot attach axis %d of '%s'",
                                 i, var->name);
    /* xarray requires that _FillValue has the type of the variable */
    TSR_TRY(tsr_hdf5_attribute(
        *data, "_FillValue", type, 0,
        var->single ? (const void *)&missing_single : &missing, err));
    return tsr_hdf5_texts(*data, err, "units", var->unit, "long_name", var->doc,
                          NULL);
}

/* ---- names of variables ---- */

typedef struct {
    int n;
    char **name; /* [n] owned by the pool */
} name_list;

/* Is the link a variable, rather than a group or a dimension? */
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

typedef struct {
    tsr_pool *pool;
    name_list *list;
} name_walk;

/* Called by H5Literate for each link of a group. */
static herr_t add_name(hid_t group, const char *name, const H5L_info_t *info,
                       void *context)
{
    const name_walk *walk = context;
    (void)info;
    if (is_variable(group, name))
        walk->list->name[walk->list->n++] = tsr_pool_text(walk->pool, name);
    return 0;
}

/* Lists names in the order of creation if the file records it. */
static tsr_status list_names(tsr_pool *pool, hid_t group, name_list *list,
                             tsr_err *err)
{
    name_walk walk = {pool, list};
    H5G_info_t info;

    if (H5Gget_info(group, &info) < 0)
        return tsr_hdf5_fail(err, TSR_E_DATA, "cannot list the variables");
    tsr_pool_array(pool, list->name, info.nlinks + 1);
    TSR_TRY(tsr_pool_check(pool, err));
    if (H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, add_name,
                   &walk) < 0 &&
        (list->n > 0 || H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL,
                                   add_name, &walk) < 0))
        return tsr_hdf5_fail(err, TSR_E_DATA, "cannot list the variables");
    return tsr_pool_check(pool, err);
}

static tsr_status list_groups(tsr_pool *pool, hid_t file,
                              name_list list[TSR_TRACE_N_GROUP], tsr_err *err)
{
    tsr_status status = TSR_OK;

    for (int g = 0; g < TSR_TRACE_N_GROUP && status == TSR_OK; g++) {
        if (H5Lexists(file, groups[g].name, H5P_DEFAULT) <= 0)
            continue;
        hid_t group = H5Gopen2(file, groups[g].name, H5P_DEFAULT);
        status = group < 0
                     ? tsr_hdf5_fail(err, TSR_E_DATA, "cannot open group '%s'",
                                     groups[g].name)
                     : list_names(pool, group, &list[g], err);
        tsr_hdf5_close(group);
    }
    return status;
}

/* Sizes of a variable: chains, draws, and numbers in a draw, over all further
 * axes. Returns 0 if the variable has no axes chain and draw, or is too large
 * for int. */
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

static hid_t open_in_group(hid_t file, tsr_trace_group group, const char *name)
{
    hid_t parent = H5Gopen2(file, groups[group].name, H5P_DEFAULT);
    hid_t data = parent >= 0 ? H5Dopen2(parent, name, H5P_DEFAULT) : -1;
    tsr_hdf5_close(parent);
    return data;
}

/* ---- the writer ---- */

/* A variable of an open trace. */
typedef struct {
    tsr_trace_group group;
    char *name;
    int rank;       /* in the file */
    size_t n;       /* numbers per chain and draw */
    int single;     /* 1: float32 */
    hsize_t n_draw; /* in the file */
    hid_t data;
} variable;

struct tsr_trace {
    tsr_pool pool;
    tsr_hdf5_output output; /* of a new file */
    hid_t file;
    size_t n_chain;
    int n_variable;
    variable *variable; /* [n_variable] */
};

static void close_trace(void *object)
{
    tsr_trace *trace = object;
    if (trace == NULL)
        return;
    tsr_pool_clear(&trace->pool);
    free(trace);
}

/* Puts the file in place, or discards it, and frees the trace. NULL is fine. */
static tsr_status end_trace(tsr_trace *trace, tsr_status status, tsr_err *err)
{
    if (trace == NULL)
        return status;
    status = tsr_hdf5_output_end(&trace->output, status, err);
    close_trace(trace);
    return status;
}

/* ---- a new file ---- */

/* State while the groups of a new file are created. */
typedef struct {
    tsr_trace *trace;
    const tsr_trace_variable *variable;
    int next_dim_id;
    hid_t *defined_scale; /* [n_variable] dimensions; [v]: set if variable v
                             defines its dimension */
} layout;

/* Creates the dimensions of a group, and then its variables, in the order that
 * netCDF uses. */
static tsr_status make_group_content(layout *lay, hid_t id, tsr_trace_group g,
                                     tsr_err *err)
{
    const int n_variable = lay->trace->n_variable;
    const int n_chain = (int)lay->trace->n_chain;
    hid_t scale[MAX_RANK];
    int rank = 0;

    if (groups[g].has_draws) {
        const tsr_trace_variable chain = {.dim = "chain", .n = n_chain},
                                 draw = {.dim = "draw"};
        rank = 2;
        TSR_TRY(
            make_dimension(id, &chain, 0, lay->next_dim_id++, &scale[0], err));
        TSR_TRY(make_dimension(id, &draw, most_chunk_draws, lay->next_dim_id++,
                               &scale[1], err));
    }
    for (int v = 0; v < n_variable; v++)
        if (lay->variable[v].group == g && lay->variable[v].dim != NULL &&
            first_with_dim(lay->variable, v) == v)
            TSR_TRY(make_dimension(id, &lay->variable[v], 0, lay->next_dim_id++,
                                   &lay->defined_scale[v], err));
    for (int v = 0; v < n_variable; v++) {
        const tsr_trace_variable *var = &lay->variable[v];
        if (var->group != g)
            continue;
        if (var->dim != NULL)
            scale[rank] = lay->defined_scale[first_with_dim(lay->variable, v)];
        TSR_TRY(make_variable(id, var, scale, n_chain,
                              &lay->trace->variable[v].data, err));
    }
    return TSR_OK;
}

/* Creates attributes, groups, dimensions and variables in an empty file. Draws
 * and constants follow by tsr_trace_append and tsr_trace_put. */
static tsr_status
make_layout(tsr_trace *trace, const tsr_trace_variable *declared,
            int n_attribute, const tsr_trace_attribute *attribute, tsr_err *err)
{
    const hid_t file = trace->file;
    layout lay = {.trace = trace, .variable = declared};
    char created_at[40];

    tsr_clock_utc(created_at);
    tsr_pool_array(&trace->pool, lay.defined_scale, trace->n_variable);
    TSR_TRY(tsr_pool_check(&trace->pool, err));
    TSR_TRY(write_provenance(file, created_at, err));
    TSR_TRY(write_attributes(file, n_attribute, attribute, err));
    for (int i = 0; i < TSR_TRACE_N_GROUP; i++) {
        tsr_trace_group g = (tsr_trace_group)i;
        hid_t id = -1;
        int v = 0;
        while (v < trace->n_variable && declared[v].group != g)
            v++;
        if (v == trace->n_variable)
            continue;
        TSR_TRY(make_group(file, groups[g].name, &id, err));
        TSR_TRY(write_provenance(id, created_at, err));
        if (g == TSR_TRACE_POSTERIOR)
            TSR_TRY(write_attributes(id, n_attribute, attribute, err));
        TSR_TRY(tsr_wrap(err, make_group_content(&lay, id, g, err), "group %s",
                         groups[g].name));
    }
    return TSR_OK;
}

tsr_status tsr_trace_create(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *declared, int n_attribute,
                            const tsr_trace_attribute *attribute,
                            tsr_trace **out, tsr_err *err)
{
    tsr_status status = check_declared(n_variable, declared, err);

    *out = NULL;
    TSR_TRY(tsr_wrap(err, status, "'%s'", path));
    tsr_trace *t = calloc(1, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
    t->n_chain = (size_t)n_chain;
    t->n_variable = n_variable;
    tsr_pool_array(&t->pool, t->variable, n_variable);
    for (int v = 0; v < n_variable && t->variable != NULL; v++)
        t->variable[v] =
            (variable){.group = declared[v].group,
                       .rank = (declared[v].dim != NULL) +
                               (groups[declared[v].group].has_draws ? 2 : 0),
                       .n = (size_t)declared[v].n,
                       .name = tsr_pool_text(&t->pool, declared[v].name)};
    status = tsr_pool_check(&t->pool, err);
    TSR_THEN(status, tsr_hdf5_output_start(path, NULL, &t->output, err));
    t->file = t->output.file;
    TSR_THEN(status,
             tsr_wrap(err,
                      make_layout(t, declared, n_attribute, attribute, err),
                      "cannot write '%s'", path));
    if (status != TSR_OK)
        return end_trace(t, status, err);
    *out = t;
    return TSR_OK;
}

/* ---- an existing file ---- */

/* Opens the variables of the file by group, in the order of creation. */
static tsr_status open_variables(tsr_trace *t, tsr_err *err)
{
    name_list list[TSR_TRACE_N_GROUP] = {{0}};

    TSR_TRY(list_groups(&t->pool, t->file, list, err));
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        t->n_variable += list[g].n;
    tsr_pool_array(&t->pool, t->variable, t->n_variable);
    TSR_TRY(tsr_pool_check(&t->pool, err));
    variable *v = t->variable;
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        for (int i = 0; i < list[g].n; i++, v++) {
            int n_chain, n_draw, n;
            hsize_t size[H5S_MAX_RANK];
            const tsr_trace_group group = (tsr_trace_group)g;
            *v = (variable){.group = group, .name = list[g].name[i]};
            v->data = open_in_group(t->file, group, v->name);
            v->rank = tsr_hdf5_shape(v->data, size);
            if (v->rank > MAX_RANK ||
                !get_shape(v->data, groups[g].has_draws, &n_chain, &n_draw, &n))
                return tsr_fail(err, TSR_E_DATA,
                                "%s/%s is not an array over chain and draw",
                                groups[g].name, v->name);
            hid_t type = H5Dget_type(v->data);
            v->single = H5Tget_size(type) == sizeof(float);
            tsr_hdf5_close(type);
            v->n = (size_t)n;
            v->n_draw = (hsize_t)n_draw;
            if (groups[g].has_draws)
                t->n_chain = (size_t)n_chain;
        }
    return TSR_OK;
}

static tsr_status open_trace(hid_t file, void **object, tsr_err *err)
{
    tsr_trace *t = calloc(1, sizeof *t);
    *object = t;
    TSR_TRY(tsr_allocated(t, err));
    t->file = file;
    return open_variables(t, err);
}

/* The kind of draws in a group; TSR_DRAWN_N_KIND: the group has no draws. */
static tsr_draw_kind kind_of(tsr_trace_group group)
{
    return group == TSR_TRACE_WARMUP_POSTERIOR ||
                   group == TSR_TRACE_WARMUP_SAMPLE_STATS
               ? TSR_DRAWN_WARMUP
           : groups[group].has_draws ? TSR_DRAWN_KEPT
                                     : TSR_DRAWN_N_KIND;
}

static tsr_status set_draws(const tsr_trace *t, variable *var, hsize_t n_draw,
                            tsr_err *err)
{
    const hsize_t size[MAX_RANK] = {t->n_chain, n_draw, var->n};

    if (H5Dset_extent(var->data, size) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", var->name);
    var->n_draw = n_draw;
    return TSR_OK;
}

static tsr_status cut_back(void *object, tsr_draw_kind kind, long n_draw,
                           tsr_err *err)
{
    const tsr_trace *t = object;
    for (int v = 0; v < t->n_variable; v++)
        if (kind_of(t->variable[v].group) == kind &&
            t->variable[v].n_draw > (hsize_t)n_draw)
            TSR_TRY(set_draws(t, &t->variable[v], (hsize_t)n_draw, err));
    return TSR_OK;
}

static long count(const void *object, tsr_draw_kind kind)
{
    const tsr_trace *t = object;
    for (int v = 0; v < t->n_variable; v++)
        if (kind_of(t->variable[v].group) == kind)
            return (long)t->variable[v].n_draw;
    return 0;
}

static int only_part(const void *object, const tsr_draw_record *r)
{
    (void)object, (void)r;
    return 0;
}

/* Bytes of one draw of all chains. */
static size_t draw_bytes(const tsr_trace *t, const variable *var)
{
    return t->n_chain * var->n * (var->single ? sizeof(float) : sizeof(double));
}

static size_t size_of(const void *object, const tsr_draw_record *r)
{
    const tsr_trace *t = object;
    size_t n = 0;
    for (int v = 0; v < t->n_variable; v++)
        if (kind_of(t->variable[v].group) == r->kind)
            n += draw_bytes(t, &t->variable[v]);
    return n * (size_t)r->n;
}

/* Appends n_draw draws to a variable. value [n_chain][n_draw][n] in, of the
 * HDF5 type `type`. */
static tsr_status put_values(const tsr_trace *t, variable *var, hsize_t n_draw,
                             hid_t type, const void *value, tsr_err *err)
{
    const hsize_t offset[MAX_RANK] = {0, var->n_draw, 0};
    const hsize_t size[MAX_RANK] = {t->n_chain, n_draw, var->n};
    TSR_TRY(set_draws(t, var, var->n_draw + n_draw, err));
    if (!tsr_hdf5_block(var->data, type, var->rank, offset, size, NULL, value))
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", var->name);
    return tsr_hdf5_output_check(&t->output, err);
}

static tsr_status put_record(void *object, const tsr_draw_record *r,
                             const void *bytes, tsr_err *err)
{
    tsr_trace *t = object;
    const char *value = bytes;
    for (int v = 0; v < t->n_variable; v++) {
        variable *var = &t->variable[v];
        if (kind_of(var->group) != r->kind)
            continue;
        TSR_TRY(put_values(t, var, (hsize_t)r->n,
                           var->single ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE,
                           value, err));
        value += (size_t)r->n * draw_bytes(t, var);
    }
    return TSR_OK;
}

/* ---- draws ---- */

static tsr_status check_use(const tsr_trace *trace, int v, int draws,
                            tsr_err *err)
{
    if (v < 0 || v >= trace->n_variable)
        return tsr_fail(err, TSR_E_INTERNAL, "the trace has no variable %d", v);
    const variable *var = &trace->variable[v];
    if (groups[var->group].has_draws != draws)
        return tsr_fail(err, TSR_E_INTERNAL, "%s/%s has %s",
                        groups[var->group].name, var->name,
                        draws ? "no draws" : "draws");
    return TSR_OK;
}

tsr_status tsr_trace_append(tsr_trace *trace, int v, int n_draw,
                            const double *value, tsr_err *err)
{
    TSR_TRY(check_use(trace, v, 1, err));
    if (n_draw <= 0)
        return TSR_OK;
    tsr_hdf5_quiet();
    return put_values(trace, &trace->variable[v], (hsize_t)n_draw,
                      H5T_NATIVE_DOUBLE, value, err);
}

tsr_status tsr_trace_put(tsr_trace *trace, int v, const double *value,
                         tsr_err *err)
{
    TSR_TRY(check_use(trace, v, 0, err));
    tsr_hdf5_quiet();
    if (H5Dwrite(trace->variable[v].data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                 H5P_DEFAULT, value) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'",
                             trace->variable[v].name);
    return tsr_hdf5_output_check(&trace->output, err);
}

/* Sets the length of the draw dimension of a group to that of its variables,
 * which must agree. New coordinates are the numbers of the draws. */
static tsr_status number_draws(tsr_trace *t, tsr_trace_group g, tsr_err *err)
{
    const variable *first = NULL;
    hsize_t old = 0;

    for (int v = 0; v < t->n_variable; v++) {
        const variable *var = &t->variable[v];
        if (var->group != g)
            continue;
        first = first == NULL ? var : first;
        if (var->n_draw != first->n_draw)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "group %s: '%s' has %d draws, '%s' %d",
                            groups[g].name, first->name, (int)first->n_draw,
                            var->name, (int)var->n_draw);
    }
    if (first == NULL)
        return TSR_OK;
    hid_t draw = open_in_group(t->file, g, "draw");
    int ready = tsr_hdf5_shape(draw, &old) == 1 &&
                H5Dset_extent(draw, &first->n_draw) >= 0;
    const hsize_t n = first->n_draw > old ? first->n_draw - old : 0;
    int64_t *number = malloc((n + 1) * sizeof *number);
    TSR_TRY(tsr_allocated(number, err));
    for (hsize_t d = 0; d < n; d++)
        number[d] = (int64_t)(old + d);
    ready = ready && (n == 0 || tsr_hdf5_block(draw, H5T_NATIVE_INT64, 1, &old,
                                               &n, NULL, number));
    free(number);
    return ready ? TSR_OK : tsr_hdf5_fail(err, TSR_E_IO, "cannot write 'draw'");
}

static tsr_status finish_draws(void *object, tsr_err *err)
{
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        if (groups[g].has_draws)
            TSR_TRY(number_draws(object, (tsr_trace_group)g, err));
    return TSR_OK;
}

tsr_status tsr_trace_close(tsr_trace *trace, tsr_err *err)
{
    return end_trace(trace, trace != NULL ? finish_draws(trace, err) : TSR_OK,
                     err);
}

void tsr_trace_discard(tsr_trace *trace)
{
    (void)end_trace(trace, TSR_E_IO, NULL);
}

/* ---- the reader ----
 *
 * Reads variables by group and name, as a whole or in part, and their
 * coordinates. HDF5 selects the part in the file, so that a large variable need
 * not fit into memory. */

struct tsr_trace_reader {
    tsr_pool pool;
    tsr_hdf5_input input;
    name_list list[TSR_TRACE_N_GROUP];
};

static const tsr_hdf5_updater updater = {.noun = "draws",
                                         .first = TSR_DRAWN_WARMUP,
                                         .last = TSR_DRAWN_KEPT,
                                         .open = open_trace,
                                         .close = close_trace,
                                         .count = count,
                                         .part = only_part,
                                         .size = size_of,
                                         .cut = cut_back,
                                         .append = put_record,
                                         .finish = finish_draws};

tsr_status tsr_trace_open(const char *path, tsr_trace_reader **out,
                          tsr_err *err)
{
    *out = NULL;
    if (access(path, R_OK) != 0)
        return tsr_fail(
            err, TSR_E_NOINPUT,
            "'%s' is missing or unreadable (%s); is this the folder of a run?",
            path, strerror(errno));
    tsr_trace_reader *reader = calloc(1, sizeof *reader);
    TSR_TRY(tsr_allocated(reader, err));
    tsr_status status =
        tsr_hdf5_input_open_all(path, &updater, &reader->input, err);
    if (status == TSR_OK) {
        status = tsr_wrap(
            err,
            list_groups(&reader->pool, reader->input.file, reader->list, err),
            "'%s'", path);
    }
    TSR_HAND_OVER(status, reader, out, tsr_trace_reader_free);
}

tsr_status tsr_trace_update(const char *path, const tsr_draw_records *log,
                            const long keep[TSR_DRAWN_N_KIND], tsr_err *err)
{
    return tsr_hdf5_update(path, &updater, log, keep, err);
}

void tsr_trace_reader_free(tsr_trace_reader *reader)
{
    if (reader == NULL)
        return;
    tsr_hdf5_quiet();
    tsr_hdf5_input_close(&reader->input);
    tsr_pool_clear(&reader->pool);
    free(reader);
}

int tsr_trace_variables(tsr_trace_reader *reader, tsr_trace_group group,
                        const char *const **name)
{
    *name = (const char *const *)reader->list[group].name;
    return reader->list[group].n;
}

int tsr_trace_has(tsr_trace_reader *reader, tsr_trace_group group,
                  const char *name)
{
    const name_list *list = &reader->list[group];
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0)
            return 1;
    return 0;
}

/* ---- values ---- */

/* Returns < 0 if there is no variable of that name. */
static hid_t open_variable(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name)
{
    return tsr_trace_has(reader, group, name)
               ? open_in_group(reader->input.file, group, name)
               : H5I_INVALID_HID;
}

/* Opens a variable and finds its sizes. On failure *data is < 0. */
static tsr_status open_shaped(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *name, hid_t *data, int *n_chain,
                              int *n_draw, int *n, tsr_err *err)
{
    tsr_hdf5_quiet();
    *data = open_variable(reader, group, name);
    if (*data < 0)
        return tsr_fail(err, TSR_E_DATA, "'%s' has no variable %s/%s",
                        reader->input.path, groups[group].name, name);
    if (get_shape(*data, groups[group].has_draws, n_chain, n_draw, n))
        return TSR_OK;
    H5Dclose(*data);
    *data = -1;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %s/%s is not an array over chain and draw",
                    reader->input.path, groups[group].name, name);
}

static tsr_status report_unreadable(const tsr_trace_reader *reader,
                                    tsr_trace_group group, const char *name,
                                    tsr_err *err)
{
    return tsr_hdf5_fail(err, TSR_E_IO, "cannot read %s/%s from '%s'",
                         groups[group].name, name, reader->input.path);
}

int tsr_trace_n_draw(tsr_trace_reader *reader, tsr_trace_group group)
{
    int n_chain = 0, n_draw = 0, n = 0;

    if (reader->list[group].n == 0 || !groups[group].has_draws)
        return 0;
    tsr_hdf5_quiet();
    hid_t data = open_variable(reader, group, reader->list[group].name[0]);
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
    TSR_TRY(status);
    const size_t count = (size_t)*n_chain * (size_t)*n_draw * (size_t)*n;
    *value = malloc((count > 0 ? count : 1) * sizeof **value);
    if (*value == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory to read %s/%s from '%s'",
                          groups[group].name, name, reader->input.path);
    else if (count > 0 && H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                                  H5P_DEFAULT, *value) < 0)
        status = report_unreadable(reader, group, name, err);
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

/* Selects `part` in the data space `file`. All axes behind the axis `draw` are
 * treated as one flattened axis. If the variable has more than one of them,
 * each entry is selected separately. */
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
    /* The data space in memory gets the shape of the selection in the file: if
     * the shapes differ, HDF5 copies number by number, which is slow. */
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
    TSR_TRY(status);
    if (!groups[group].has_draws || part->draw_from < 0 || part->n_draw < 0 ||
        part->n_draw > n_draw - part->draw_from || part->entry_from < 0 ||
        part->n < 0 || part->n > n - part->entry_from)
        status = tsr_fail(
            err, TSR_E_DATA,
            "'%s': %s/%s has %d draws of %d numbers, but more are requested",
            reader->input.path, groups[group].name, name, n_draw, n);
    else if (n_chain > 0 && part->n_draw > 0 && part->n > 0 &&
             read_part(data, n_chain, part, value) != TSR_OK)
        status = report_unreadable(reader, group, name, err);
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

/* Called by H5DSiterate_scales for each scale of an axis: reads the first
 * numeric scale, and stops. */
static herr_t read_scale(hid_t data, unsigned axis, hid_t scale, void *context)
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
    return 1; /* stop */
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
        if (rank > 0 &&
            tsr_hdf5_scales(data, rank, rank - 1, read_scale, &c) < 0) {
            status = report_unreadable(reader, group, name, err);
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
    hid_t data = open_in_group(reader->input.file, group, column);
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

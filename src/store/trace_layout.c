/* Checks what the owners of the columns declare, and makes the groups,
 * dimension scales and data sets from it. */
#include "store/trace_layout.h"

#include "core/clock.h"
#include "store/hdf5_object.h"
#include "store/netcdf4.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

const char *tsr_trace_group_name(tsr_trace_group group)
{
    return groups[group].name;
}

int tsr_trace_group_has_draws(tsr_trace_group group)
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

int tsr_trace_first_of_dim(const tsr_trace_variable *variable, int v)
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
    int first = tsr_trace_first_of_dim(variable, v);
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

tsr_status tsr_trace_layout_check(int n_chain, int n_variable,
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
    tsr_status status = tsr_nc4_dimension(group, name, H5T_NATIVE_INT64,
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
        TSR_TRY(tsr_nc4_label_dimension(group, var->dim, (hsize_t)var->n,
                                        var->coord_label, id, scale, err));
    } else if (var->coord == NULL) {
        TSR_TRY(index_dimension(group, var->dim, var->n, id, scale, err));
    } else {
        TSR_TRY(tsr_nc4_dimension(group, var->dim, H5T_NATIVE_DOUBLE,
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
    hsize_t chunk[TSR_NC4_MAX_RANK];
    size_t chains = (size_t)n_chain;

    if (chains * row > most_chunk)
        chains = at_least_1(most_chunk / row);
    size_t draws = at_least_1(target / (chains * row));
    chunk[0] = chains;
    chunk[1] = draws < most_chunk_draws ? draws : most_chunk_draws;
    chunk[2] = (hsize_t)var->n;

    const tsr_nc4_spec spec = {
        .name = var->name,
        .type = var->single ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE,
        .rank = rank,
        .scale = scale,
        .chunk = groups[var->group].has_draws ? chunk : NULL,
        .deflate = var->single && var->dim != NULL ? deflate_level : 0};
    TSR_TRY(tsr_nc4_variable(group, &spec, data, err));
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
    hid_t scale[TSR_NC4_MAX_RANK] = {-1, -1, -1};
    int rank = 0;

    if (groups[g].has_draws) {
        rank = 2;
        status = index_dimension(id, "chain", lay->n_chain, lay->next_dim_id++,
                                 &scale[0], err);
        TSR_THEN(status, tsr_nc4_dimension(id, "draw", H5T_NATIVE_INT64, 0,
                                           most_chunk_draws, lay->next_dim_id++,
                                           draw, err));
        scale[1] = *draw;
    }
    for (int v = 0; v < lay->n_variable && status == TSR_OK; v++)
        if (lay->variable[v].group == g && lay->variable[v].dim != NULL &&
            tsr_trace_first_of_dim(lay->variable, v) == v)
            status = own_dimension(id, &lay->variable[v], lay->next_dim_id++,
                                   &lay->own_scale[v], err);
    for (int v = 0; v < lay->n_variable && status == TSR_OK; v++) {
        const tsr_trace_variable *var = &lay->variable[v];
        if (var->group != g)
            continue;
        if (var->dim != NULL)
            scale[rank] =
                lay->own_scale[tsr_trace_first_of_dim(lay->variable, v)];
        status = make_variable(id, var, scale, rank + (var->dim != NULL),
                               lay->n_chain, &data[v], err);
    }
    if (scale[0] >= 0 && groups[g].has_draws)
        H5Dclose(scale[0]);
    return status;
}

static int group_is_used(const layout *lay, tsr_trace_group g)
{
    for (int v = 0; v < lay->n_variable; v++)
        if (lay->variable[v].group == g)
            return 1;
    return 0;
}

tsr_status tsr_trace_layout_make(hid_t file, int n_chain, int n_variable,
                                 const tsr_trace_variable *variable,
                                 int n_attribute,
                                 const tsr_trace_attribute *attribute,
                                 hid_t *draw, hid_t *data, tsr_err *err)
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
        if (!group_is_used(&lay, g))
            continue;
        status = tsr_nc4_group(file, groups[g].name, &id, err);
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

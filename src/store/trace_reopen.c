/* An existing trace against its declaration. */
#include "core/text.h"
#include "store/hdf5_object.h"
#include "store/trace_layout.h"

#include <hdf5_hl.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const int has_draws = tsr_trace_group_has_draws(var->group);
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
    return tsr_trace_group_has_draws(g) &&
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
        if (var->dim != NULL && tsr_trace_first_of_dim(as->variable, v) == v)
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
    const char *name = tsr_trace_group_name(g);
    int used = 0;

    for (int v = 0; v < as->n_variable; v++)
        used = used || as->variable[v].group == g;
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
    if (status == TSR_OK && tsr_trace_group_has_draws(g)) {
        *draw = open_dataset(group, "draw");
        status = *draw < 0 || rank_of(*draw) != 1
                     ? tsr_fail(err, TSR_E_DATA, "lacks 'draw'")
                     : count_draws(as, g, *draw, data, n_draw, err);
    }
    H5Gclose(group);
    return status;
}

tsr_status tsr_trace_layout_open(hid_t file, int n_chain, int n_variable,
                                 const tsr_trace_variable *variable,
                                 hid_t *draw, hid_t *data, size_t *n_draw,
                                 tsr_err *err)
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
            tsr_wrap(err, status, "group %s", tsr_trace_group_name(g));
    }
    return status;
}

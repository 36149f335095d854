/* Reads variables by group and name, whole or in part, and their
 * coordinates. A part is selected in the file, so that large variables need not
 * fit into memory. */
#include "store/hdf5_object.h"
#include "store/trace.h"
#include "store/trace_layout.h"

#include <hdf5_hl.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int n;
    char **name; /* [n] */
} name_list;

struct tsr_trace_reader {
    tsr_hdf5_input input;
    char *path;
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
    int variable =
        H5Iget_type(object) == H5I_DATASET && H5DSis_scale(object) == 0;
    H5Oclose(object);
    return variable;
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
        const char *name = tsr_trace_group_name((tsr_trace_group)i);
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
    if (reader == NULL || (reader->path = strdup(path)) == NULL) {
        free(reader);
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    }
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
    free(reader->path);
    free(reader);
}

int tsr_trace_variables(tsr_trace_reader *reader, tsr_trace_group group,
                        const char *const **name)
{
    *name = (const char *const *)reader->group[group].name;
    return reader->group[group].n;
}

/* ---- values ---- */

/* The variable, or < 0 where there is none of that name. */
static hid_t open_variable(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name)
{
    const name_list *list = &reader->group[group];

    for (int i = 0; i < list->n; i++) {
        if (strcmp(list->name[i], name) != 0)
            continue;
        hid_t parent = H5Gopen2(reader->input.file, tsr_trace_group_name(group),
                                H5P_DEFAULT);
        hid_t data = parent >= 0 ? H5Dopen2(parent, name, H5P_DEFAULT) : -1;
        tsr_hdf5_close(parent);
        return data;
    }
    return -1;
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
                        reader->path, tsr_trace_group_name(group), name);
    if (get_shape(*data, tsr_trace_group_has_draws(group), n_chain, n_draw, n))
        return TSR_OK;
    H5Dclose(*data);
    *data = -1;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %s/%s is not an array over chain and draw",
                    reader->path, tsr_trace_group_name(group), name);
}

static tsr_status unreadable(const tsr_trace_reader *reader,
                             tsr_trace_group group, const char *name,
                             tsr_err *err)
{
    return tsr_hdf5_fail(err, TSR_E_IO, "cannot read %s/%s from '%s'",
                         tsr_trace_group_name(group), name, reader->path);
}

int tsr_trace_n_draw(tsr_trace_reader *reader, tsr_trace_group group)
{
    int n_chain = 0, n_draw = 0, n = 0;

    if (reader->group[group].n == 0 || !tsr_trace_group_has_draws(group))
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
                          tsr_trace_group_name(group), name, reader->path);
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
    if (!tsr_trace_group_has_draws(group) || part->draw_from < 0 ||
        part->n_draw < 0 || part->n_draw > n_draw - part->draw_from ||
        part->entry_from < 0 || part->n < 0 || part->n > n - part->entry_from)
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s': %s/%s has %d draws of %d numbers, and more "
                          "are asked for",
                          reader->path, tsr_trace_group_name(group), name,
                          n_draw, n);
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
                              const char *variable, const char *name)
{
    tsr_hdf5_quiet();
    hid_t data = open_variable(reader, group, variable);
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

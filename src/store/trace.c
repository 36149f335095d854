/* Draws are gathered in memory, variable by variable, and go to the file in
 * blocks; after a failed write the trace is broken and is not touched any more.
 */
#include "store/trace.h"

#include "store/hdf5_object.h"
#include "store/hdf5_store.h"
#include "store/netcdf4.h"
#include "store/trace_layout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
    char *path;
    tsr_hdf5_store *store;
    hid_t file;
    int broken; /* a write failed: the file is not touched any more */
    size_t n_chain;
    int n_variable;
    variable *variable;               /* [n_variable] */
    hid_t draw[TSR_TRACE_N_GROUP];    /* its unlimited dimension, or < 0 */
    size_t n_draw[TSR_TRACE_N_GROUP]; /* in the file */
    size_t held_bytes[TSR_TRACE_N_GROUP];
    double *scratch; /* [n_scratch] draws of one variable, chains first */
    size_t n_scratch;
};

static void trace_free(tsr_trace *trace)
{
    for (int v = 0; v < trace->n_variable; v++) {
        free(trace->variable[v].name);
        free(trace->variable[v].buffer);
    }
    free(trace->variable);
    free(trace->scratch);
    tsr_hdf5_store_free(trace->store);
    free(trace->path);
    free(trace);
}

/* Closes what HDF5 holds; its last writes go to the store. */
static tsr_status close_hdf5(tsr_trace *trace, tsr_err *err)
{
    for (int v = 0; v < trace->n_variable; v++)
        tsr_hdf5_close(trace->variable[v].data);
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        tsr_hdf5_close(trace->draw[g]);
    if (trace->file >= 0 && H5Fclose(trace->file) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot close '%s'", trace->path);
    return TSR_OK;
}

static tsr_trace *trace_new(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *declared)
{
    tsr_trace *trace = calloc(1, sizeof *trace);

    if (trace == NULL)
        return NULL;
    trace->file = -1;
    trace->n_chain = (size_t)n_chain;
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        trace->draw[g] = -1;
    trace->path = strdup(path);
    trace->variable = calloc((size_t)n_variable, sizeof *trace->variable);
    if (trace->path == NULL || trace->variable == NULL) {
        trace_free(trace);
        return NULL;
    }
    trace->n_variable = n_variable;
    int complete = 1;
    for (int v = 0; v < n_variable; v++) {
        variable *var = &trace->variable[v];
        var->group = declared[v].group;
        var->rank = (declared[v].dim != NULL) +
                    (tsr_trace_group_has_draws(var->group) ? 2 : 0);
        var->n = (size_t)declared[v].n;
        var->data = -1;
        var->name = strdup(declared[v].name);
        complete = complete && var->name != NULL;
    }
    if (!complete) {
        trace_free(trace);
        return NULL;
    }
    return trace;
}

/* Everything to the disk, past HDF5's caches and the system's. */
static tsr_status commit(tsr_trace *trace, tsr_err *err)
{
    tsr_status status =
        H5Fflush(trace->file, H5F_SCOPE_GLOBAL) < 0
            ? tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", trace->path)
            : tsr_hdf5_store_commit(trace->store, err);
    if (status != TSR_OK)
        trace->broken = 1;
    return status;
}

tsr_status tsr_trace_create(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *declared, int n_attribute,
                            const tsr_trace_attribute *attribute,
                            tsr_trace **out, tsr_err *err)
{
    tsr_status status =
        tsr_trace_layout_check(n_chain, n_variable, declared, err);

    *out = NULL;
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", path);
    tsr_trace *trace = trace_new(path, n_chain, n_variable, declared);
    hid_t *data = malloc((size_t)n_variable * sizeof *data);
    if (trace == NULL || data == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
        goto done;
    }
    status = tsr_hdf5_store_create(path, &trace->store, err);
    if (status != TSR_OK)
        goto done;
    tsr_hdf5_quiet();
    status = tsr_nc4_create(path, trace->store, &trace->file, err);
    if (status == TSR_OK) {
        status = tsr_trace_layout_make(trace->file, n_chain, n_variable,
                                       declared, n_attribute, attribute,
                                       trace->draw, data, err);
        for (int v = 0; v < n_variable; v++)
            trace->variable[v].data = data[v];
    }
    if (status != TSR_OK)
        tsr_wrap(err, status, "cannot write '%s'", path);
    else
        status = commit(trace, err);
done:
    free(data);
    if (status != TSR_OK && trace != NULL) {
        close_hdf5(trace, NULL);
        tsr_hdf5_store_discard(trace->store);
        trace->store = NULL;
        trace_free(trace);
        trace = NULL;
    }
    *out = trace;
    return status;
}

/* ---- going on with an existing file ---- */

static tsr_status check_keep(const tsr_trace *trace, const int *n_keep,
                             tsr_err *err)
{
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        if (trace->draw[g] >= 0 &&
            (n_keep[g] < 0 || (size_t)n_keep[g] > trace->n_draw[g]))
            return tsr_fail(err, TSR_E_DATA,
                            "group %s has %zu draws, and the checkpoint counts "
                            "%d",
                            tsr_trace_group_name((tsr_trace_group)g),
                            trace->n_draw[g], n_keep[g]);
    return TSR_OK;
}

static tsr_status cut_back(tsr_trace *trace, const int *n_keep, tsr_err *err)
{
    for (int v = 0; v < trace->n_variable; v++) {
        const variable *var = &trace->variable[v];
        if (trace->draw[var->group] < 0 ||
            (size_t)n_keep[var->group] == trace->n_draw[var->group])
            continue;
        const hsize_t size[TSR_NC4_MAX_RANK] = {
            trace->n_chain, (hsize_t)n_keep[var->group], var->n};
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

tsr_status tsr_trace_reopen(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *declared,
                            const int n_keep[TSR_TRACE_N_GROUP],
                            tsr_trace **out, tsr_err *err)
{
    tsr_status status =
        tsr_trace_layout_check(n_chain, n_variable, declared, err);

    *out = NULL;
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", path);
    tsr_trace *trace = trace_new(path, n_chain, n_variable, declared);
    hid_t *data = malloc((size_t)n_variable * sizeof *data);
    if (trace == NULL || data == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
        goto done;
    }
    tsr_hdf5_quiet();
    status = tsr_hdf5_store_open(path, &trace->store, err);
    if (status != TSR_OK)
        goto done;
    status = tsr_nc4_open(path, trace->store, &trace->file, err);
    if (status == TSR_OK) {
        status =
            tsr_trace_layout_open(trace->file, n_chain, n_variable, declared,
                                  trace->draw, data, trace->n_draw, err);
        for (int v = 0; v < n_variable; v++)
            trace->variable[v].data = data[v];
    }
    TSR_THEN(status, check_keep(trace, n_keep, err));
    TSR_THEN(status, cut_back(trace, n_keep, err));
    if (status != TSR_OK)
        tsr_wrap(err, status, "'%s'", path);
    else
        status = commit(trace, err);
done:
    free(data);
    if (status != TSR_OK && trace != NULL) {
        close_hdf5(trace, NULL);
        trace_free(trace);
        trace = NULL;
    }
    *out = trace;
    return status;
}

/* ---- writing ---- */

/* A block of `size` behind the first `start` draws of a variable or of the draw
 * dimension itself, whose draw axis is `axis`. */
static tsr_status write_block(hid_t data, hid_t type, int rank, int axis,
                              const hsize_t *size, hsize_t start,
                              const void *value, const char *name, tsr_err *err)
{
    hsize_t offset[TSR_NC4_MAX_RANK] = {0};
    hsize_t whole[TSR_NC4_MAX_RANK] = {0};

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
                        trace->path);
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
    const hsize_t size[TSR_NC4_MAX_RANK] = {n_chain, n_draw, n};
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
                        trace->path);
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
        trace->broken = 1;
        return tsr_wrap(err, status, "'%s', group %s", trace->path,
                        tsr_trace_group_name(g));
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
                        trace->path, v);
    const variable *var = &trace->variable[v];
    if (tsr_trace_group_has_draws(var->group) != draws)
        return tsr_fail(err, TSR_E_INTERNAL, "'%s': %s/%s has %s", trace->path,
                        tsr_trace_group_name(var->group), var->name,
                        draws ? "no draws" : "draws");
    if (trace->broken)
        return tsr_fail(err, TSR_E_IO,
                        "'%s' is not written any more: an earlier write "
                        "failed",
                        trace->path);
    return TSR_OK;
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
    return commit(trace, err);
}

tsr_status tsr_trace_put(tsr_trace *trace, int v, const double *value,
                         tsr_err *err)
{
    TSR_TRY(check_use(trace, v, 0, err));
    tsr_hdf5_quiet();
    if (H5Dwrite(trace->variable[v].data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                 H5P_DEFAULT, value) < 0) {
        trace->broken = 1;
        return tsr_hdf5_fail(err, TSR_E_IO, "'%s': cannot write '%s'",
                             trace->path, trace->variable[v].name);
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
                            trace->path, tsr_trace_group_name(var->group),
                            var->name, trace->n_draw[var->group] + var->held,
                            trace->n_draw[var->group] + least);
    }
    return TSR_OK;
}

tsr_status tsr_trace_flush(tsr_trace *trace, tsr_err *err)
{
    if (trace->broken)
        return tsr_fail(err, TSR_E_IO,
                        "'%s' is not written any more: an earlier write "
                        "failed",
                        trace->path);
    TSR_TRY(check_even(trace, err));
    tsr_hdf5_quiet();
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        TSR_TRY(write_group(trace, (tsr_trace_group)g, err));
    return commit(trace, err);
}

tsr_status tsr_trace_close(tsr_trace *trace, tsr_err *err)
{
    if (trace == NULL)
        return TSR_OK;
    tsr_status status = tsr_trace_flush(trace, err);
    tsr_hdf5_quiet();
    tsr_status closed = close_hdf5(trace, status == TSR_OK ? err : NULL);
    TSR_THEN(status, closed);
    TSR_THEN(status, tsr_hdf5_store_commit(trace->store, err));
    trace_free(trace);
    return status;
}

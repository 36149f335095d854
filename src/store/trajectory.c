/* Appends frames to the data sets and commits when asked or when much is
 * waiting. Frames beyond the number that a run resumes from are cut off when it
 * is opened again. */
#include "store/trajectory.h"

#include "store/hdf5_object.h"
#include "store/hdf5_store.h"
#include "store/netcdf4.h"
#include "store/trajectory_layout.h"

#include <stdlib.h>
#include <string.h>

/* What may wait in memory before it is committed without being asked. */
static const size_t hold_bytes = (size_t)1 << 20;
enum { MOST_AT_ONCE = 64 };

struct tsr_trajectory {
    char *path;
    tsr_hdf5_store *store;
    hid_t file;
    int broken;    /* a write failed: the file is not touched any more */
    int n_frame;   /* written */
    int n_waiting; /* of these, not committed */
    int n[TSR_TRAJECTORY_N_KIND];
    float *single; /* room for the positions of either kind */
    tsr_trajectory_sets sets;
};

static void trajectory_free(tsr_trajectory *t)
{
    tsr_hdf5_store_free(t->store);
    free(t->single);
    free(t->path);
    free(t);
}

static tsr_status close_hdf5(tsr_trajectory *t, tsr_err *err)
{
    tsr_trajectory_sets_close(&t->sets);
    if (t->file >= 0 && H5Fclose(t->file) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot close '%s'", t->path);
    return TSR_OK;
}

static tsr_status check_spec(const tsr_trajectory_spec *spec, tsr_err *err)
{
    if (spec->n_atom < 0 || spec->n_body < 0 ||
        spec->n_atom + spec->n_body == 0 || spec->stride < 1 ||
        spec->n_observable < 0)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "a trajectory of %d atoms, %d bodies, %d observables, "
                        "stride %d",
                        spec->n_atom, spec->n_body, spec->n_observable,
                        spec->stride);
    for (int i = 0; i < spec->n_observable; i++) {
        const char *name = spec->observable[i].name;
        if (name == NULL || name[0] == '\0' || name[0] == '.' ||
            strchr(name, '/') != NULL || strlen(name) > 200)
            return tsr_fail(err, TSR_E_INTERNAL, "'%s' names no observable",
                            name != NULL ? name : "(null)");
        for (int k = 0; k < i; k++)
            if (strcmp(name, spec->observable[k].name) == 0)
                return tsr_fail(err, TSR_E_INTERNAL,
                                "observable '%s' is declared twice", name);
    }
    return TSR_OK;
}

static tsr_status trajectory_new(const char *path,
                                 const tsr_trajectory_spec *spec,
                                 tsr_trajectory **out, tsr_err *err)
{
    const int most = spec->n_atom > spec->n_body ? spec->n_atom : spec->n_body;
    tsr_status status = check_spec(spec, err);

    *out = NULL;
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", path);
    tsr_trajectory *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    t->file = -1;
    t->sets =
        (tsr_trajectory_sets){.position = {-1, -1}, .step = -1, .time = -1};
    t->n[TSR_TRAJECTORY_ATOMS] = spec->n_atom;
    t->n[TSR_TRAJECTORY_BODIES] = spec->n_body;
    t->path = strdup(path);
    t->single = malloc(3 * (size_t)most * sizeof *t->single);
    if (t->path == NULL || t->single == NULL) {
        trajectory_free(t);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    }
    *out = t;
    return TSR_OK;
}

static tsr_status commit(tsr_trajectory *t, tsr_err *err)
{
    tsr_status status =
        H5Fflush(t->file, H5F_SCOPE_GLOBAL) < 0
            ? tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", t->path)
            : tsr_hdf5_store_commit(t->store, err);
    if (status != TSR_OK)
        t->broken = 1;
    else
        t->n_waiting = 0;
    return status;
}

tsr_status tsr_trajectory_create(const char *path,
                                 const tsr_trajectory_spec *spec,
                                 tsr_trajectory **out, tsr_err *err)
{
    tsr_trajectory *t;

    *out = NULL;
    TSR_TRY(trajectory_new(path, spec, &t, err));
    tsr_hdf5_quiet();
    tsr_status status = tsr_hdf5_store_create(path, &t->store, err);
    if (status != TSR_OK) {
        trajectory_free(t);
        return status;
    }
    status = tsr_nc4_create(path, t->store, &t->file, err);
    TSR_THEN(status, tsr_trajectory_layout_make(t->file, spec, &t->sets, err));
    if (status != TSR_OK)
        tsr_wrap(err, status, "cannot write '%s'", path);
    else
        status = commit(t, err);
    if (status != TSR_OK) {
        close_hdf5(t, NULL);
        tsr_hdf5_store_discard(t->store);
        t->store = NULL;
        trajectory_free(t);
        return status;
    }
    *out = t;
    return TSR_OK;
}

/* ---- data sets ---- */

static tsr_status set_frames(hid_t data, int n_frame, tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK];

    if (data < 0)
        return TSR_OK;
    if (tsr_hdf5_shape(data, size) < 1)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot look at a data set");
    size[0] = (hsize_t)n_frame;
    if (H5Dset_extent(data, size) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot set the number of frames");
    return TSR_OK;
}

static tsr_status set_all_frames(tsr_trajectory *t, int n_frame, tsr_err *err)
{
    tsr_trajectory_sets *sets = &t->sets;
    TSR_TRY(set_frames(sets->step, n_frame, err));

    TSR_TRY(set_frames(sets->time, n_frame, err));
    for (int kind = 0; kind < TSR_TRAJECTORY_N_KIND; kind++)
        TSR_TRY(set_frames(sets->position[kind], n_frame, err));
    for (int i = 0; i < sets->n_observable; i++)
        TSR_TRY(set_frames(sets->observable[i], n_frame, err));
    return TSR_OK;
}

tsr_status tsr_trajectory_reopen(const char *path,
                                 const tsr_trajectory_spec *spec, int n_keep,
                                 tsr_trajectory **out, tsr_err *err)
{
    tsr_trajectory *t;

    *out = NULL;
    TSR_TRY(trajectory_new(path, spec, &t, err));
    tsr_hdf5_quiet();
    tsr_status status = tsr_hdf5_store_open(path, &t->store, err);
    if (status != TSR_OK) {
        trajectory_free(t);
        return status;
    }
    status = tsr_nc4_open(path, t->store, &t->file, err);
    TSR_THEN(status, tsr_trajectory_layout_open(t->file, spec, &t->sets,
                                                &t->n_frame, err));
    if (status == TSR_OK && (n_keep < 0 || n_keep > t->n_frame))
        status = tsr_fail(err, TSR_E_DATA,
                          "has %d frames, and the checkpoint counts %d",
                          t->n_frame, n_keep);
    if (status == TSR_OK && n_keep < t->n_frame)
        status = set_all_frames(t, n_keep, err);
    t->n_frame = n_keep;
    if (status != TSR_OK)
        tsr_wrap(err, status, "'%s'", path);
    else
        status = commit(t, err);
    if (status != TSR_OK) {
        close_hdf5(t, NULL);
        trajectory_free(t);
        return status;
    }
    *out = t;
    return TSR_OK;
}

/* One frame, the last, of a data set that is long enough. */
static tsr_status write_last(const tsr_trajectory *t, hid_t data, hid_t type,
                             const void *value, tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK], offset[H5S_MAX_RANK] = {0};
    const int rank = tsr_hdf5_shape(data, size);

    size[0] = 1;
    offset[0] = (hsize_t)t->n_frame;
    if (rank < 1 ||
        !tsr_hdf5_block(data, type, rank, offset, size, NULL, value))
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'", t->path);
    return TSR_OK;
}

static tsr_status write_position(tsr_trajectory *t, int kind,
                                 const double *value, tsr_err *err)
{
    if (t->n[kind] == 0)
        return TSR_OK;
    for (size_t i = 0; i < 3 * (size_t)t->n[kind]; i++)
        t->single[i] = (float)value[i];
    return write_last(t, t->sets.position[kind], H5T_NATIVE_FLOAT, t->single,
                      err);
}

static tsr_status write_frame(tsr_trajectory *t, int64_t step,
                              const double *atom, const double *body,
                              const double *observable, tsr_err *err)
{
    const double time = (double)step;
    TSR_TRY(set_all_frames(t, t->n_frame + 1, err));

    TSR_TRY(write_last(t, t->sets.step, H5T_NATIVE_INT64, &step, err));
    TSR_TRY(write_last(t, t->sets.time, H5T_NATIVE_DOUBLE, &time, err));
    TSR_TRY(write_position(t, TSR_TRAJECTORY_ATOMS, atom, err));
    TSR_TRY(write_position(t, TSR_TRAJECTORY_BODIES, body, err));
    for (int i = 0; i < t->sets.n_observable; i++)
        TSR_TRY(write_last(t, t->sets.observable[i], H5T_NATIVE_DOUBLE,
                           &observable[i], err));
    return TSR_OK;
}

static tsr_status refuse_broken(const tsr_trajectory *t, tsr_err *err)
{
    return tsr_fail(err, TSR_E_IO,
                    "'%s' is not written any more: an earlier write failed",
                    t->path);
}

tsr_status tsr_trajectory_append(tsr_trajectory *t, int64_t step,
                                 const double *atom, const double *body,
                                 const double *observable, tsr_err *err)
{
    if (t->broken)
        return refuse_broken(t, err);
    tsr_hdf5_quiet();
    tsr_status status = write_frame(t, step, atom, body, observable, err);
    if (status != TSR_OK) {
        t->broken = 1;
        return status;
    }
    t->n_frame++;
    t->n_waiting++;
    if (tsr_hdf5_store_pending(t->store) > hold_bytes)
        return commit(t, err);
    return TSR_OK;
}

tsr_status tsr_trajectory_flush(tsr_trajectory *t, tsr_err *err)
{
    if (t->broken)
        return refuse_broken(t, err);
    if (t->n_waiting == 0)
        return TSR_OK;
    tsr_hdf5_quiet();
    return commit(t, err);
}

/* HDF5's part of a flush. 1: the store is to be committed. */
static int flush_hdf5(tsr_trajectory *t, tsr_status *status, tsr_err *err)
{
    tsr_err *why = *status == TSR_OK ? err : NULL;
    tsr_status one = TSR_OK;

    if (t->broken)
        one = refuse_broken(t, why);
    else if (t->n_waiting > 0 && H5Fflush(t->file, H5F_SCOPE_GLOBAL) < 0)
        one = tsr_hdf5_fail(why, TSR_E_IO, "cannot write '%s'", t->path);
    if (one != TSR_OK)
        t->broken = 1;
    if (*status == TSR_OK)
        *status = one;
    return one == TSR_OK && t->n_waiting > 0;
}

tsr_status tsr_trajectory_flush_all(tsr_trajectory *const *trajectory, int n,
                                    tsr_err *err)
{
    tsr_hdf5_store *store[MOST_AT_ONCE];
    tsr_status status = TSR_OK;

    tsr_hdf5_quiet();
    for (int first = 0; first < n; first += MOST_AT_ONCE) {
        const int end = n - first < MOST_AT_ONCE ? n : first + MOST_AT_ONCE;
        int n_store = 0;
        for (int i = first; i < end; i++)
            if (flush_hdf5(trajectory[i], &status, err))
                store[n_store++] = trajectory[i]->store;
        tsr_status one = tsr_hdf5_store_commit_all(
            store, n_store, status == TSR_OK ? err : NULL);
        TSR_THEN(status, one);
        for (int i = first; i < end; i++) {
            if (tsr_hdf5_store_has_failed(trajectory[i]->store))
                trajectory[i]->broken = 1;
            else
                trajectory[i]->n_waiting = 0;
        }
    }
    return status;
}

tsr_status tsr_trajectory_close(tsr_trajectory *t, tsr_err *err)
{
    if (t == NULL)
        return TSR_OK;
    tsr_status status = tsr_trajectory_flush(t, err);
    tsr_hdf5_quiet();
    tsr_status closed = close_hdf5(t, status == TSR_OK ? err : NULL);
    TSR_THEN(status, closed);
    TSR_THEN(status, tsr_hdf5_store_commit(t->store, err));
    trajectory_free(t);
    return status;
}

/* Writes the groups of H5MD, adds frames from draws.log, and reads frames. */
#include "store/trajectory.h"

#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <hdf5.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups and data sets of a trajectory ---- */

enum { MOST_OBSERVABLES = 16 };

/* Open data sets; < 0: no such data set. */
typedef struct {
    hid_t position, step, time;
    hid_t observable[MOST_OBSERVABLES];
} data_sets;

static const data_sets no_sets = {.position = -1, .step = -1, .time = -1};

/* A chunk contains few whole frames, so that reading one frame unpacks
 * little. */
static const size_t position_chunk = (size_t)64 << 10;
enum { MOST_CHUNK_FRAMES = 64, SCALAR_CHUNK_FRAMES = 512 };
static const unsigned deflate_level = 1;

/* ---- creation ---- */

/* A property list that creates the groups of a path as needed. */
static hid_t new_link_list(void)
{
    hid_t link = H5Pcreate(H5P_LINK_CREATE);
    if (link >= 0)
        H5Pset_create_intermediate_group(link, 1);
    return link;
}

/* Opens or creates the group at a path. It is closed with the file. */
static hid_t require_group(hid_t file, const char *path)
{
    if (tsr_hdf5_has(file, path))
        return H5Gopen2(file, path, H5P_DEFAULT);
    hid_t link = new_link_list();
    hid_t group = H5Gcreate2(file, path, link, H5P_DEFAULT, H5P_DEFAULT);
    tsr_hdf5_close(link);
    return group;
}

/* Creates an empty data set [frame] or [frame][n][3]. */
static tsr_status make_set(hid_t file, const char *path, hid_t type, int n,
                           const char *unit, hid_t *data, tsr_err *err)
{
    const int rank = n > 0 ? 3 : 1;
    const hsize_t size[3] = {0, (hsize_t)n, 3};
    const hsize_t most[3] = {H5S_UNLIMITED, (hsize_t)n, 3};
    hsize_t chunk[3] = {SCALAR_CHUNK_FRAMES, (hsize_t)n, 3};
    tsr_status status = TSR_OK;

    if (n > 0) {
        const size_t fit = position_chunk / (3 * sizeof(float) * (size_t)n);
        chunk[0] = fit < 1                   ? 1
                   : fit > MOST_CHUNK_FRAMES ? MOST_CHUNK_FRAMES
                                             : fit;
    }
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), link = new_link_list();
    hid_t space = H5Screate_simple(rank, size, most);
    if (create < 0 || space < 0 || H5Pset_obj_track_times(create, 0) < 0 ||
        H5Pset_chunk(create, rank, chunk) < 0 || H5Pset_shuffle(create) < 0 ||
        H5Pset_deflate(create, deflate_level) < 0 ||
        (*data = H5Dcreate2(file, path, type, space, link, create,
                            H5P_DEFAULT)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot create '%s'", path);
    TSR_THEN(status, tsr_hdf5_texts(*data, err, "unit", unit, NULL));
    tsr_hdf5_close(space);
    tsr_hdf5_close(link);
    tsr_hdf5_close(create);
    return status;
}

/* Creates ELEMENT/value, and ELEMENT/step and ELEMENT/time, which are links to
 * the same two data sets for all elements. */
static tsr_status make_element(hid_t file, const char *element, hid_t type,
                               int n, const char *unit, data_sets *sets,
                               hid_t *value, tsr_err *err)
{
    char path[3][300];

    snprintf(path[0], sizeof path[0], "%s/value", element);
    snprintf(path[1], sizeof path[1], "%s/step", element);
    snprintf(path[2], sizeof path[2], "%s/time", element);
    TSR_TRY(make_set(file, path[0], type, n, unit, value, err));
    if (sets->step < 0) {
        TSR_TRY(make_set(file, path[1], H5T_NATIVE_INT64, 0, NULL, &sets->step,
                         err));
        return make_set(file, path[2], H5T_NATIVE_DOUBLE, 0, "ps", &sets->time,
                        err);
    }
    if (H5Olink(sets->step, file, path[1], H5P_DEFAULT, H5P_DEFAULT) < 0 ||
        H5Olink(sets->time, file, path[2], H5P_DEFAULT, H5P_DEFAULT) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot link '%s'", path[1]);
    return TSR_OK;
}

static tsr_status make_particles(hid_t file, int n, data_sets *sets,
                                 tsr_err *err)
{
    static const char *const boundary[3] = {"none", "none", "none"};
    const int dimension = 3;
    hid_t type = tsr_hdf5_text_type();
    hid_t box = require_group(file, "particles/atoms/box");
    tsr_status status = tsr_hdf5_attribute(box, "dimension", H5T_NATIVE_INT, 0,
                                           &dimension, err);
    TSR_THEN(status,
             tsr_hdf5_attribute(box, "boundary", type, 3, boundary, err));
    tsr_hdf5_close(type);
    TSR_THEN(status,
             make_element(file, "particles/atoms/position", H5T_NATIVE_FLOAT, n,
                          "Angstrom", sets, &sets->position, err));
    return status;
}

static tsr_status make_layout(hid_t file, const tsr_trajectory_spec *spec,
                              data_sets *sets, tsr_err *err)
{
    const struct {
        const char *name;
        int value;
    } number[] = {{"chain", spec->chain},
                  {"state", spec->state},
                  {"stride", spec->stride}};
    const int version[2] = {1, 1};
    hid_t parameters = require_group(file, "parameters");

    TSR_TRY(tsr_hdf5_attribute(require_group(file, "h5md"), "version",
                               H5T_NATIVE_INT, 2, version, err));
    TSR_TRY(tsr_hdf5_texts(require_group(file, "h5md/author"), err, "name",
                           spec->author != NULL ? spec->author : "not given",
                           NULL));
    TSR_TRY(tsr_hdf5_texts(require_group(file, "h5md/creator"), err, "name",
                           "tessera", "version", TSR_VERSION, NULL));
    for (int i = 0; i < 3; i++)
        TSR_TRY(tsr_hdf5_attribute(parameters, number[i].name, H5T_NATIVE_INT,
                                   0, &number[i].value, err));
    TSR_TRY(make_particles(file, spec->n_atom, sets, err));
    for (int i = 0; i < spec->n_observable; i++) {
        char path[280];
        snprintf(path, sizeof path, "observables/%.250s",
                 spec->observable[i].name);
        TSR_TRY(make_element(file, path, H5T_NATIVE_DOUBLE, 0,
                             spec->observable[i].unit, sets,
                             &sets->observable[i], err));
    }
    return TSR_OK;
}

/* ---- opening ---- */

/* Opens the data set at a path; < 0: no such data set. */
static hid_t open_set(hid_t file, const char *path)
{
    return tsr_hdf5_has(file, path) ? H5Dopen2(file, path, H5P_DEFAULT)
                                    : H5I_INVALID_HID;
}

static hid_t position_set(hid_t file, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "particles/atoms/position/%s", name);
    return open_set(file, path);
}

static hid_t observable_set(hid_t file, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "observables/%.250s/value", name);
    return open_set(file, path);
}

/* Value of "chain", "state" or "stride"; -1: missing. */
static long long find_parameter(hid_t file, const char *name)
{
    long long value = -1;
    hid_t group = tsr_hdf5_has(file, "parameters")
                      ? H5Gopen2(file, "parameters", H5P_DEFAULT)
                      : H5I_INVALID_HID;
    if (group >= 0) {
        value = tsr_hdf5_attribute_integer(group, name, -1);
        H5Gclose(group);
    }
    return value;
}

double tsr_trajectory_bytes(const tsr_trajectory_spec *spec, int n_frame)
{
    const double raw = 12.0 * spec->n_atom;
    const double scalar = 8.0 * (2 + spec->n_observable);
    /* B-tree nodes of 2 KiB for up to 64 chunks, at least half full */
    const double chunk = 32.0 * (2 + spec->n_observable / 64.0);

    return 32768.0 + 6144.0 * spec->n_observable +
           n_frame * (0.84 * raw + 0.8 * scalar + chunk);
}

/* ---- an open trajectory ---- */

struct tsr_trajectory {
    tsr_hdf5_output output; /* of a new file */
    hid_t file;
    int n_observable;
    tsr_trajectory_info info;
    data_sets sets;
};

/* Puts the file in place, or discards it, and frees the trajectory. NULL is
 * fine. */
static tsr_status end_trajectory(tsr_trajectory *t, tsr_status status,
                                 tsr_err *err)
{
    if (t == NULL)
        return status;
    status = tsr_hdf5_output_end(&t->output, status, err);
    free(t);
    return status;
}

static tsr_status check_spec(const tsr_trajectory_spec *spec, tsr_err *err)
{
    if (spec->n_atom < 1 || spec->stride < 1 || spec->n_observable < 0 ||
        spec->n_observable > MOST_OBSERVABLES)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "a trajectory of %d atoms, %d observables, stride %d",
                        spec->n_atom, spec->n_observable, spec->stride);
    return TSR_OK;
}

tsr_status tsr_trajectory_create(const char *path,
                                 const tsr_trajectory_spec *spec,
                                 tsr_trajectory **out, tsr_err *err)
{
    tsr_status status = check_spec(spec, err);

    *out = NULL;
    TSR_TRY(tsr_wrap(err, status, "'%s'", path));
    tsr_trajectory *t = calloc(1, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
    t->sets = no_sets;
    t->n_observable = spec->n_observable;
    status = tsr_hdf5_output_start(path, NULL, &t->output, err);
    t->file = t->output.file;
    TSR_THEN(status, tsr_wrap(err, make_layout(t->file, spec, &t->sets, err),
                              "cannot write '%s'", path));
    if (status != TSR_OK)
        return end_trajectory(t, status, err);
    *out = t;
    return TSR_OK;
}

/* Sets the number of frames of a data set to t->info.n_frame + n, and writes
 * the last n frames. Does nothing for data < 0. */
static tsr_status put_frames(const tsr_trajectory *t, hid_t data, hid_t type,
                             int n, const void *value, tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK], offset[H5S_MAX_RANK] = {0};

    if (data < 0)
        return TSR_OK;
    const int rank = tsr_hdf5_shape(data, size);
    offset[0] = (hsize_t)t->info.n_frame;
    size[0] = (hsize_t)(t->info.n_frame + n);
    int ready = rank >= 1 && H5Dset_extent(data, size) >= 0;
    size[0] = (hsize_t)n;
    if (n > 0)
        ready = ready &&
                tsr_hdf5_block(data, type, rank, offset, size, NULL, value);
    return ready ? TSR_OK : tsr_hdf5_fail(err, TSR_E_IO, "cannot write frames");
}

tsr_status tsr_trajectory_append(tsr_trajectory *t, int n, const int64_t *step,
                                 const float *atom, const double *observable,
                                 tsr_err *err)
{
    const data_sets *sets = &t->sets;
    const hid_t real = H5T_NATIVE_DOUBLE;
    double *column = calloc((size_t)n + 1, sizeof *column);
    tsr_status status = tsr_allocated(column, err);

    tsr_hdf5_quiet();
    TSR_THEN(status, put_frames(t, sets->step, H5T_NATIVE_INT64, n, step, err));
    for (int f = 0; f < n && status == TSR_OK; f++)
        column[f] = (double)step[f];
    TSR_THEN(status, put_frames(t, sets->time, real, n, column, err));
    TSR_THEN(status,
             put_frames(t, sets->position, H5T_NATIVE_FLOAT, n, atom, err));
    for (int i = 0; i < t->n_observable && status == TSR_OK; i++) {
        for (int f = 0; f < n; f++)
            column[f] = observable[f * t->n_observable + i];
        status = put_frames(t, sets->observable[i], real, n, column, err);
    }
    free(column);
    t->info.n_frame += n;
    return status == TSR_OK ? tsr_hdf5_output_check(&t->output, err) : status;
}

tsr_status tsr_trajectory_close(tsr_trajectory *t, tsr_err *err)
{
    return end_trajectory(t, TSR_OK, err);
}

/* ---- an existing file ---- */

/* Numbers of frames and atoms, and the parameters of the file. */
static tsr_status read_info(hid_t file, tsr_trajectory_info *info, tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK];
    const hid_t data = position_set(file, "value");
    if (data < 0)
        return tsr_hdf5_fail(
            err, TSR_E_DATA,
            "has no /particles/atoms; is it a trajectory of tessera?");
    const int rank = tsr_hdf5_shape(data, size);
    H5Dclose(data);
    if (rank != 3 || size[2] != 3 || size[0] > INT_MAX || size[1] > INT_MAX)
        return tsr_fail(err, TSR_E_DATA,
                        "the positions of atoms are not [frame][n][3]");
    const char *name[] = {"chain", "state", "stride"};
    int value[3];
    for (int i = 0; i < 3; i++) {
        const long long found = find_parameter(file, name[i]);
        if (found < (i == 2) || found > INT_MAX)
            return tsr_fail(err, TSR_E_DATA,
                            "lacks the number '%s' of /parameters, or it is "
                            "out of range",
                            name[i]);
        value[i] = (int)found;
    }
    *info = (tsr_trajectory_info){.n_frame = (int)size[0],
                                  .n_atom = (int)size[1],
                                  .chain = value[0],
                                  .state = value[1],
                                  .stride = value[2]};
    return TSR_OK;
}

/* Called by H5Literate for each observable, by name. */
static herr_t open_observable(hid_t group, const char *name,
                              const H5L_info_t *info, void *context)
{
    tsr_trajectory *t = context;
    (void)group, (void)info;
    if (t->n_observable == MOST_OBSERVABLES)
        return -1;
    const hid_t data = observable_set(t->file, name);
    t->sets.observable[t->n_observable++] = data;
    return data < 0 ? -1 : 0;
}

static tsr_status open_trajectory(hid_t file, void **object, tsr_err *err)
{
    tsr_trajectory *t = calloc(1, sizeof *t);
    *object = t;
    TSR_TRY(tsr_allocated(t, err));
    t->file = file;
    TSR_TRY(read_info(file, &t->info, err));
    t->sets.position = position_set(file, "value");
    t->sets.step = position_set(file, "step");
    t->sets.time = position_set(file, "time");
    if (t->sets.step < 0 || t->sets.time < 0 ||
        (tsr_hdf5_has(file, "observables") &&
         H5Literate_by_name(file, "observables", H5_INDEX_NAME, H5_ITER_INC,
                            NULL, open_observable, t, H5P_DEFAULT) < 0))
        return tsr_hdf5_fail(err, TSR_E_DATA,
                             "lacks step, time or an observable");
    return TSR_OK;
}

static long count(const void *object, tsr_draw_kind kind)
{
    (void)kind;
    return ((const tsr_trajectory *)object)->info.n_frame;
}

static int part_of(const void *object, const tsr_draw_record *r)
{
    const tsr_trajectory_info *info = &((const tsr_trajectory *)object)->info;
    const int part =
        info->chain * r->n_state + (info->state > 0 ? info->state - 1 : 0);
    return part < r->n_chain * r->n_state ? part : -1;
}

static size_t size_of(const void *object, const tsr_draw_record *r)
{
    const tsr_trajectory *t = object;
    return (size_t)r->n * (3 * sizeof(float) * (size_t)t->info.n_atom +
                           sizeof(double) * (size_t)t->n_observable);
}

static tsr_status cut_back(void *object, tsr_draw_kind kind, long n,
                           tsr_err *err)
{
    tsr_trajectory *t = object;
    (void)kind;
    if (n >= t->info.n_frame)
        return TSR_OK;
    t->info.n_frame = (int)n;
    return tsr_trajectory_append(t, 0, NULL, NULL, NULL, err);
}

static tsr_status put_record(void *object, const tsr_draw_record *r,
                             const void *bytes, tsr_err *err)
{
    tsr_trajectory *t = object;
    const size_t n = (size_t)r->n, n_value = n * (size_t)t->n_observable;
    const float *atom = bytes;
    double *value = calloc(n_value + 1, sizeof *value);
    int64_t *step = calloc(n + 1, sizeof *step);
    tsr_status status =
        value == NULL || step == NULL ? tsr_no_memory(err) : TSR_OK;
    if (status == TSR_OK) {
        memcpy(value, atom + n * 3 * (size_t)t->info.n_atom,
               n_value * sizeof *value);
        for (size_t f = 0; f < n; f++)
            step[f] = (r->first + (long)f) * t->info.stride;
        status = tsr_trajectory_append(t, (int)n, step, atom, value, err);
    }
    free(value);
    free(step);
    return status;
}

static const tsr_hdf5_updater updater = {.noun = "frames",
                                         .first = TSR_DRAWN_FRAMES,
                                         .last = TSR_DRAWN_FRAMES,
                                         .open = open_trajectory,
                                         .close = free,
                                         .count = count,
                                         .part = part_of,
                                         .size = size_of,
                                         .cut = cut_back,
                                         .append = put_record};

tsr_status tsr_trajectory_update(const char *path, const tsr_draw_records *log,
                                 const long keep[TSR_DRAWN_N_KIND],
                                 tsr_err *err)
{
    return tsr_hdf5_update(path, &updater, log, keep, err);
}

/* ---- the reader ----
 *
 * Reads frames of a trajectory. The sizes are read once, when the file is
 * opened. */

struct tsr_trajectory_reader {
    tsr_hdf5_input input;
    tsr_trajectory_info info;
};

tsr_status tsr_trajectory_open(const char *path, tsr_trajectory_reader **out,
                               tsr_err *err)
{
    tsr_trajectory_reader *reader = calloc(1, sizeof *reader);

    *out = NULL;
    TSR_TRY(tsr_allocated(reader, err));
    tsr_status status =
        tsr_hdf5_input_open_all(path, &updater, &reader->input, err);
    TSR_THEN(status,
             tsr_wrap(err, read_info(reader->input.file, &reader->info, err),
                      "'%s'", path));
    TSR_HAND_OVER(status, reader, out, tsr_trajectory_reader_free);
}

void tsr_trajectory_reader_free(tsr_trajectory_reader *reader)
{
    if (reader == NULL)
        return;
    tsr_hdf5_quiet();
    tsr_hdf5_input_close(&reader->input);
    free(reader);
}

const tsr_trajectory_info *
tsr_trajectory_info_get(const tsr_trajectory_reader *reader)
{
    return &reader->info;
}

/* Reads n frames of a data set [frame] or [frame][width][3], and closes it. */
static tsr_status read_frames(const tsr_trajectory_reader *reader, hid_t data,
                              hid_t type, int first, int n, int width,
                              const char *what, void *value, tsr_err *err)
{
    const int rank = width > 0 ? 3 : 1;
    const hsize_t offset[3] = {(hsize_t)first, 0, 0};
    const hsize_t size[3] = {(hsize_t)n, (hsize_t)width, 3};
    hsize_t whole[H5S_MAX_RANK];
    tsr_status status = TSR_OK;

    if (data < 0)
        return tsr_fail(err, TSR_E_DATA, "'%s' has no %s", reader->input.path,
                        what);
    if (first < 0 || n < 0 || n > reader->info.n_frame - first)
        status =
            tsr_fail(err, TSR_E_RANGE,
                     "'%s' has %d frames; %d frames from %d on are missing",
                     reader->input.path, reader->info.n_frame, n, first);
    else if (tsr_hdf5_shape(data, whole) != rank ||
             whole[0] < (hsize_t)(first + n))
        status = tsr_fail(err, TSR_E_DATA, "'%s': %s has another shape",
                          reader->input.path, what);
    else if (n > 0 &&
             !tsr_hdf5_block(data, type, rank, offset, size, value, NULL))
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read %s",
                               reader->input.path, what);
    H5Dclose(data);
    return status;
}

tsr_status tsr_trajectory_read(const tsr_trajectory_reader *reader, int first,
                               int n, int64_t *step, float *atom, tsr_err *err)
{
    const hid_t file = reader->input.file;
    tsr_hdf5_quiet();
    if (step != NULL) {
        TSR_TRY(read_frames(reader, position_set(file, "step"),
                            H5T_NATIVE_INT64, first, n, 0, "step", step, err));
        for (int i = 0; i < n; i++)
            if (step[i] < 0)
                return tsr_fail(
                    err, TSR_E_DATA, "'%s' is damaged: step %lld of frame %d",
                    reader->input.path, (long long)step[i], first + i);
    }
    if (atom != NULL)
        TSR_TRY(read_frames(reader, position_set(file, "value"),
                            H5T_NATIVE_FLOAT, first, n, reader->info.n_atom,
                            "atoms", atom, err));
    return TSR_OK;
}

tsr_status tsr_trajectory_read_observable(const tsr_trajectory_reader *reader,
                                          const char *name, int first, int n,
                                          double *value, tsr_err *err)
{
    tsr_hdf5_quiet();
    hid_t data = observable_set(reader->input.file, name);
    return read_frames(reader, data, H5T_NATIVE_DOUBLE, first, n, 0, name,
                       value, err);
}
